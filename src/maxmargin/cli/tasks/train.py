"""``maxmargin train --task NAME`` for every task but chains: read, fit, choose, save."""

from __future__ import annotations

import argparse
import time
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.console import flush, note, say
from maxmargin.cli.grid import add_grid, grid_of, in_words, settings_of
from maxmargin.cli.options import add_threads, number
from maxmargin.cli.peak_memory import peak_rss_mb
from maxmargin.cli.progress import Progress
from maxmargin.cli.reading import add_encoding
from maxmargin.cli.report import add_report, check_report, report_task
from maxmargin.cli.targets import check_targets
from maxmargin.cli.tasks.encodings import in_utf8
from maxmargin.cli.tasks.registry import CHAIN, TASKS, task_named
from maxmargin.cli.training_options import (
    add_regularizer,
    add_saving,
    add_solving,
    add_talking,
    regularizer_of,
    solver_of,
)

if TYPE_CHECKING:
    from maxmargin.cli.tasks.base import Examples, Task
    from maxmargin.estimators.native import NativeEstimator

__all__ = ["TaskTraining"]


class _Trained(NamedTuple):
    """A model, and what it reaches on the validation file."""

    estimator: NativeEstimator[Any, Any]
    figures: dict[str, Any] | None
    setting: dict[str, Any] = {}  # noqa: RUF012

    @property
    def score(self) -> float:
        """The score by which models are chosen."""
        return float("nan") if self.figures is None else float(next(iter(self.figures.values())))


class TaskTraining:
    """The command ``train`` of one task.

    Parameters
    ----------
    name : str
        The task.
    """

    def __init__(self, name: str) -> None:
        self.task: Task = task_named(name)

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the command.

        Parameters
        ----------
        parser : argparse.ArgumentParser
            The parser of the command.
        """
        task = self.task
        parser.epilog = task.epilog
        parser.add_argument("train", metavar="TRAIN", help="the file to learn from; - is a pipe")
        parser.add_argument(
            "-m", "--model", metavar="MODEL", required=True, help="where to write the model"
        )
        parser.add_argument(
            "--task", choices=(CHAIN, *TASKS), default=task.name, help="what is predicted"
        )
        own = parser.add_argument_group(f"options of the task {task.name}")
        task.add_options(own)
        add_encoding(own)
        group = parser.add_argument_group("training")
        group.add_argument(
            "-C",
            type=number(0, open_low=True),
            default=task.default_C,
            metavar="C",
            help="weight of the errors against the size of the weights (default: "
            f"{task.default_C:g})",
        )
        add_regularizer(group.add_mutually_exclusive_group())
        add_solving(group)
        add_saving(group)
        add_threads(parser)
        group = parser.add_argument_group("choosing a model")
        group.add_argument(
            "--valid", metavar="FILE", help="score the model on this file; needed by --grid"
        )
        add_grid(group, "C, l1-ratio or min-count, where the task has them")
        add_report(group)
        add_talking(parser)

    def run(self, options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
        """Run the command.

        Parameters
        ----------
        options : argparse.Namespace
            As `configure` describes them.

        Returns
        -------
        int
            Exit code: 0, or 130 after Ctrl-C (the model is written).
        dict
            Sizes, times, certificate and scores.
        """
        self._check(options)
        begin = time.perf_counter()
        grid = grid_of(options)
        reading = self.task.reading(options)
        train = self.task.read(in_utf8(options.train, options.encoding), reading, truths=True)
        valid = None
        if options.valid is not None:
            valid = self.task.read(in_utf8(options.valid, options.encoding), reading, truths=True)
        if options.encoding is not None:
            reading["encoding"] = options.encoding
        known = time.perf_counter()
        if not options.quiet and not options.json:
            say(f"{options.train}: {len(train)} {self.task.items}")
            flush()

        from maxmargin.selection.auto_c import search_C
        from maxmargin.solvers.ending import was_interrupted
        from maxmargin.solvers.interrupts import HeldInterrupt

        import_module("maxmargin.estimators.native")  # seconds, which are not those of training
        ready = time.perf_counter()
        outcomes: list[_Trained] = []
        several = len(grid.Cs) > 1 or grid.auto or grid.several
        for setting, own in settings_of(options, grid):

            def score(C: float, own: Any = own, setting: Any = setting) -> float | None:
                if outcomes and was_interrupted(outcomes[-1].estimator.stop_reason_):
                    return None
                label = f"{in_words(setting)}C={C:.4g}: " if several else ""
                outcomes.append(self._fitted(C, train, valid, own, label=label, setting=setting))
                return outcomes[-1].score

            if grid.auto:
                search_C(score, grid.Cs[0])
            else:
                for C in grid.Cs:
                    score(C)
        best = outcomes[-1] if valid is None else max(outcomes, key=lambda one: one.score)
        interrupted = was_interrupted(outcomes[-1].estimator.stop_reason_)
        trained = time.perf_counter()
        options = argparse.Namespace(**{**vars(options), **best.setting})
        summary = self._figures(best, train, options)
        summary |= best.setting
        summary["seconds_read"], summary["seconds_train"] = known - begin, trained - ready
        if len(outcomes) > 1:
            summary["grid"] = [
                {
                    "C": o.estimator.C,
                    "gap": o.estimator.certificate_.gap,
                    "score": o.score,
                    **o.setting,
                }
                for o in outcomes
            ]
        best.estimator.file_meta_ = reading
        with HeldInterrupt():  # Ctrl-C waits until the trained model is written
            summary["model_bytes"] = best.estimator.save(options.model)
        summary["model"] = options.model
        summary["seconds_write"] = time.perf_counter() - trained
        if options.report is not None:
            summary |= report_task(best.estimator, best.figures, summary, options)
        summary["seconds_total"] = time.perf_counter() - begin
        summary["peak_rss_mb"] = peak_rss_mb()
        if not options.quiet and not options.json:
            self._print(summary, best, options)
        return (130 if interrupted else 0), summary

    def _check(self, options: argparse.Namespace) -> None:
        from maxmargin.regularizers import make_regularizer
        from maxmargin.solvers.refusals import check_regularizer

        if options.grid is not None and options.valid is None:
            raise ValueError("--grid needs --valid FILE to tell which model is best")
        if options.resume and options.checkpoint is None:
            raise ValueError("--resume needs --checkpoint FILE")
        if options.checkpoint is not None and options.grid is not None:
            raise ValueError("--checkpoint is for one training; it does not go with --grid")
        check_report(options)
        check_targets(
            [
                (options.model, "model"),
                (options.checkpoint, "checkpoint"),
                (options.report, "report"),
            ],
            [options.train, options.valid],
        )
        self.task.check(options)
        check_regularizer(solver_of(options), make_regularizer(regularizer_of(options)))

    def _fitted(
        self,
        C: float,
        train: Examples,
        valid: Examples | None,
        options: argparse.Namespace,
        *,
        label: str,
        setting: dict[str, Any],
    ) -> _Trained:
        """Train with one C, with lines of progress that begin with a label."""
        lines = [Progress(options.gap, label, verbose=options.verbose)] if not options.quiet else []
        plain = options.slack is None and options.rescale is None
        estimator = self.task.make(
            options,
            C=C,
            # By its name where that says all, so that the model file says no more than that.
            solver=options.solver if plain else solver_of(options),
            regularizer=regularizer_of(options),
            gap=options.gap,
            max_passes=options.max_passes,
            time_limit=options.time_limit,
            dtype=options.dtype,
            n_jobs=options.threads,
            random_state=options.seed,
            callbacks=lines,
            checkpoint=options.checkpoint,
            resume=options.resume,
        )

        def show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
            for line in lines:
                line.close()
            note(f"maxmargin train: warning: {message}")

        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            try:
                estimator.fit(train.X, train.y)
            except KeyboardInterrupt:
                if not hasattr(estimator, "weights_"):
                    raise  # it came before there was a model
        for line in lines:
            line.close()
        figures = None
        if valid is not None:
            figures = self.task.score_model(valid, estimator.predict(valid.X), estimator)
            if label and not options.quiet:
                gap = f"gap {100 * estimator.certificate_.gap:.2g} %"
                note(f"{label}{gap}, {self.task.words(figures)}")
        return _Trained(estimator, figures, setting)

    def _figures(
        self, best: _Trained, train: Examples, options: argparse.Namespace
    ) -> dict[str, Any]:
        """Return sizes, certificate and scores, as ``--json`` prints them."""
        estimator = best.estimator
        certificate, history = estimator.certificate_, estimator.history_
        summary: dict[str, Any] = {
            "task": self.task.name,
            f"n_{self.task.items}": len(train),
            "n_examples": estimator.n_examples_,
            **{
                name: value
                for name, value in estimator.describe(0).items()
                if name.startswith("n_") and isinstance(value, int)
            },
            "solver": options.solver,
            "C": estimator.C,
            "l1_ratio": options.l1_ratio,
            "passes": estimator.n_iter_,
            "oracle_calls": history[-1].oracle_calls if len(history) else 0,
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "converged": estimator.converged_,
            "stop_reason": estimator.stop_reason_,
        }
        if best.figures is not None:
            summary["valid"] = best.figures
        return summary

    def _print(
        self, summary: dict[str, Any], best: _Trained, options: argparse.Namespace
    ) -> None:
        from maxmargin.solvers.ending import certificate_line

        estimator = best.estimator
        say(f"{summary['n_nonzero']} of {summary['n_weights']} weights are not zero")
        say(
            certificate_line(
                estimator.certificate_, estimator.n_iter_, estimator.stop_reason_, options.gap
            )
        )
        if best.figures is not None:
            say(f"{options.valid}: {self.task.words(best.figures)}")
        parts = ", ".join(
            f"{name} {summary[f'seconds_{name}']:.2f}" for name in ("read", "train", "write")
        )
        memory = summary["peak_rss_mb"]
        peak = "" if memory is None else f"; peak memory {memory:.0f} MB"
        say(f"seconds: {parts}{peak}")
        say(f"{options.model}: {summary['model_bytes'] / 1e6:.2f} MB")
        if "report" in summary:
            say(f"{summary['report']}: a page about it")
