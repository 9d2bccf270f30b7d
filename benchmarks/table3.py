"""Table 3 of the SDM paper: SDM against stochastic (sub)gradient descent, time to one accuracy.

Claims shown: the time after which SDM has, and keeps to the end of its training, the test accuracy
of 50 epochs of SGD, over the time of these epochs (and the other way round, as the paper has it);
and the best accuracy of each.

    python benchmarks/table3.py --data ../shared/data

SGD here is the subgradient solver on the same objective, with its step calibrated: the last iterate
or the averaged one, whichever ends with the better test accuracy. Its time is that of its native
passes alone, those of the calibration included: what maxmargin does around them for a lower bound
and an average after every epoch is left out. SDM has its whole time, in passes. Test accuracy is
computed with the clock stopped. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from corpora import IN_THE_PAPER, QUICK, Corpus, chosen, corpus_arguments
from maxmargin import Comparison, Subgradient, compare
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.primal import PrimalMachine

#: Seconds of SDM and of SGD in the paper, C = 0.1.
PAPER = {"chunking": (65, 865), "pos": (65, 1928), "jnlpba": (67, 700), "bc2gm": (31, 79)}


class TimedPasses:
    """The native side of a primal solver, with a clock that runs during its passes."""

    def __init__(self, primal: Any) -> None:
        self._primal = primal
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._primal, name)

    def _timed(self, name: str, *args: Any) -> Any:
        begin = time.perf_counter()
        try:
            return getattr(self._primal, name)(*args)
        finally:
            self.seconds += time.perf_counter() - begin

    def subgradient_pass(self, *args: Any) -> Any:
        """Make a pass."""
        return self._timed("subgradient_pass", *args)

    def hinge_of(self, *args: Any) -> Any:
        """Look at a sample, for the calibration."""
        return self._timed("hinge_of", *args)


@dataclass(frozen=True)
class TimedSubgradient(Subgradient):
    """The subgradient solver; ``clocks[-1].seconds`` is the time of its native passes."""

    name: ClassVar[str] = "subgradient"

    clocks: list[TimedPasses] = field(default_factory=list, compare=False, repr=False)

    def start(
        self, problem: Any, C: float, regularizer: Regularizer, single: bool
    ) -> PrimalMachine:
        """Return weights of zero, with a clock."""
        machine = super().start(problem, C, regularizer, single)
        machine.primal = TimedPasses(machine.primal)  # type: ignore[assignment]
        self.clocks.append(machine.primal)
        return machine


def best(found: Comparison, label: str) -> float:
    """Return the best accuracy that a run had after any pass."""
    return 1 - min(point.test_error for point in found[label].points)


def measure(corpus: Corpus, C: float, args: Any) -> dict[str, Any]:
    """Make one row of the table."""
    kinds = {"averaged": TimedSubgradient(), "last": TimedSubgradient(average=False)}
    options: dict[str, Any] = {"C": C, "score": corpus.accuracy, "primal": False}
    sgd = compare(
        corpus.problem, kinds, gap=0.0, time_limit=None, max_passes=args.epochs, **options
    )
    ends = {label: sgd[label].points[-1].test_error for label in kinds}
    kind = min(kinds, key=lambda label: ends[label])
    sdm = compare(
        corpus.problem, ["sdm"], gap=args.gap, time_limit=None, max_passes=10**6, **options
    )
    first = sdm.reached("sdm", ends[kind], "test_error")
    kept = sdm.reached("sdm", ends[kind], "test_error", keep=True)
    seconds = kinds[kind].clocks[-1].seconds
    last = sdm["sdm"].points[-1]
    return {
        "sgd": {
            "kind": kind,
            "accuracies": {label: 1 - error for label, error in ends.items()},
            "accuracy": 1 - ends[kind],
            "best_accuracy": best(sgd, kind),
            "seconds": seconds,
            "seconds_with_bounds": sgd[kind].points[-1].seconds,
            "oracle_calls": sgd[kind].points[-1].oracle_calls,
        },
        "sdm": {
            "seconds_first": None if first is None else first.seconds,
            "seconds": None if kept is None else kept.seconds,
            "oracle_calls": None if kept is None else kept.oracle_calls,
            "accuracy": 1 - last.test_error,
            "best_accuracy": best(sdm, "sdm"),
            "seconds_all": last.seconds,
        },
        "sdm_over_sgd": None if kept is None else kept.seconds / seconds,
        "sgd_over_sdm": None if kept is None else seconds / kept.seconds,
    }


def show(C: float, row: dict[str, Any], epochs: int) -> None:
    sgd, sdm = row["sgd"], row["sdm"]
    there = "never kept" if sdm["seconds"] is None else f"{sdm['seconds']:.2f} s"
    early = "" if sdm["seconds_first"] is None else f" (first met {sdm['seconds_first']:.2f} s)"
    ratio = "-"
    if row["sdm_over_sgd"] is not None:
        ratio = f"{row['sdm_over_sgd']:.3f} = 1/{row['sgd_over_sdm']:.1f}"
    print(
        f"  C = {C:<4g} SGD, {epochs} epochs ({sgd['kind']}) {sgd['seconds']:.2f} s, accuracy "
        f"{100 * sgd['accuracy']:.2f} %   SDM there {there}{early}   ratio {ratio}\n"
        f"           best accuracy: SGD {100 * sgd['best_accuracy']:.2f} %, "
        f"SDM {100 * sdm['best_accuracy']:.2f} %; at the end SDM {100 * sdm['accuracy']:.2f} % "
        f"after {sdm['seconds_all']:.2f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus_arguments(parser)
    parser.add_argument("--epochs", type=int, default=50, help="of SGD")
    parser.add_argument("--gap", type=float, default=1e-3, help="at which SDM ends")
    args = parser.parse_args()
    tasks, Cs = chosen(parser, args)
    output: dict[str, Any] = {}
    print(f"Time until SDM has the test accuracy of {args.epochs} epochs of SGD")
    for task in tasks:
        corpus = Corpus(args.data, task, QUICK if args.quick else None)
        sdm, sgd = PAPER[task]
        paper = f"{IN_THE_PAPER[task]}, C = 0.1, 1/{sgd / sdm:.1f} of a CRF's SGD"
        print(f"\n{corpus} (in the paper: {paper})", flush=True)
        output[task] = {}
        for C in Cs:
            row = measure(corpus, C, args)
            output[task][f"{C:g}"] = row
            show(C, row, args.epochs)
        del corpus
    print(json.dumps(output))


if __name__ == "__main__":
    main()
