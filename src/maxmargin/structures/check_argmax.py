"""Checks of argmax: no output that was seen elsewhere is better than what it returns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.structures.adapter import LOSS_TOLERANCE, real_number, value_tolerance
from maxmargin.structures.check_calls import MAX_LISTED, MethodFailed, StructureCalls
from maxmargin.structures.check_values import copied, kind_of, shape_of, unchanged
from maxmargin.structures.duck import nonnegative_weights, offers
from maxmargin.structures.vectors import SparseVector, sparse_vector

__all__ = ["ArgmaxChecks"]

MAX_BORROWED = 10  # truths of other examples tried as outputs of one example


@dataclass
class Candidate:
    """An output of one example, with all that the comparisons need."""

    y: Any
    features: SparseVector
    loss: float
    origin: str


@dataclass
class Answer:
    """What argmax returned under one weight vector, with and without the truth."""

    w: NDArray[np.float64]
    label: str
    plain: Candidate | None = None
    oracle: Candidate | None = None


class ArgmaxChecks:
    """Asks argmax under several weights and compares its answers with all outputs that are known.

    Parameters
    ----------
    calls : StructureCalls
        The structure, prepared.
    n_weights : int
        How many weight vectors are tried.
    rng : Generator
        Draws the weights.
    has_truth : bool
        Whether argmax takes a truth.
    """

    def __init__(
        self,
        calls: StructureCalls,
        *,
        n_weights: int,
        rng: np.random.Generator,
        has_truth: bool,
    ) -> None:
        self.calls, self.n_weights, self.rng, self.has_truth = calls, n_weights, rng, has_truth
        self.other_outputs = 0  # outputs seen that differ from the truth ...
        self.with_loss = 0  # ... and those of them that have a loss
        self.pairs = 0  # argmax with and without the truth ...
        self.same_pairs = 0  # ... that gave the same output

    def _weight_vectors(self) -> Iterator[tuple[NDArray[np.float64], str]]:
        d = self.calls.n_features
        for k in range(self.n_weights):
            kind = ("zero", "small", "unit", "large", "sparse")[k % 5]
            w = self.rng.normal(size=d)
            if kind == "zero":
                w = np.zeros(d)
            elif kind == "sparse":
                kept = self.rng.choice(d, size=max(1, d // 10), replace=False)
                mask = np.zeros(d, dtype=bool)
                mask[kept] = True
                w[~mask] = 0.0
            else:
                w *= {"small": 1e-3, "unit": 1.0, "large": 1e3}[kind]
            where = nonnegative_weights(self.calls.structure, d)
            if where is not None:
                w[where] = np.abs(w[where])
            yield w, f"{kind} random weights" if kind != "zero" else "zero weights"

    def run(self, truths: dict[int, SparseVector]) -> None:
        """Check argmax on some examples.

        Parameters
        ----------
        truths : dict
            The joint features of the true outputs, by example.
        """
        weights = list(self._weight_vectors())
        for i, features in truths.items():
            truth = Candidate(self.calls.true_output(i), features, 0.0, f"the truth Y[{i}]")
            answers = [Answer(w, label) for w, label in weights]
            kept: list[tuple[Any, Any, str]] = []  # what argmax returned, and a copy of it
            for answer in answers:
                answer.plain = self._ask(i, answer, truth, kept, with_truth=False)
                if self.has_truth:
                    answer.oracle = self._ask(i, answer, truth, kept, with_truth=True)
            self._check_reused(i, kept)
            candidates = self._candidates(i, truth, answers)
            for answer in answers:
                self._compare(i, answer, truth, candidates)
        self._check_truth_used()
        if self.other_outputs and not self.with_loss:
            self.calls.warning(
                "no loss",
                "loss",
                None,
                f"loss was 0 for all {self.other_outputs} outputs seen that differ from their "
                "truth: there is nothing to learn from",
                "return more than 0 for outputs that differ from the truth",
            )

    def _ask(
        self,
        i: int,
        answer: Answer,
        truth: Candidate,
        kept: list[tuple[Any, Any, str]],
        *,
        with_truth: bool,
    ) -> Candidate | None:
        """Call argmax (twice) and look at the output by itself."""
        args = {"x": self.calls.X[i], "w": answer.w}
        given = self.calls.Y[i] if with_truth else None
        text = f"argmax(X[{i}], w, truth=Y[{i}])" if with_truth else f"argmax(X[{i}], w)"
        try:
            y = self.calls.call("argmax", i, args, given)
            kept.append((y, copied(y), text))
            self._check_kind(i, y, text)
            y = copied(y)
            result = self._candidate(i, y, f"the output of {text}")
        except MethodFailed:
            return None
        try:
            again = self.calls.call("argmax", i, args, given, read_only=True)
            self.calls.report.checks += 1
            if not self.calls.equal(i, y, again):
                other = self._candidate(i, copied(again), f"the output of {text}")
                self._differ(i, answer, result, other, text, with_truth=with_truth)
        except MethodFailed:
            pass
        return result

    def _candidate(self, i: int, y: Any, origin: str) -> Candidate:
        features = self.calls.features(i, y, origin)
        loss = self.calls.loss(i, y)
        self.calls.report.checks += 1
        if not self.calls.equal(i, self.calls.true_output(i), y):
            self.other_outputs += 1
            self.with_loss += loss > LOSS_TOLERANCE
        elif loss > LOSS_TOLERANCE:
            self.calls.problem(
                "loss of the truth",
                "loss",
                i,
                f"loss(Y[{i}], an output equal to it) is {loss}; expected 0",
                "the truth itself costs nothing; compare by content",
            )
        self._check_score(i, y, features, origin)
        return Candidate(y, features, loss, origin)

    def _check_score(self, i: int, y: Any, features: SparseVector, origin: str) -> None:
        if not offers(self.calls.structure, "score"):
            return
        w = self.rng.normal(size=self.calls.n_features)
        where = nonnegative_weights(self.calls.structure, self.calls.n_features)
        if where is not None:
            w[where] = np.abs(w[where])
        returned = self.calls.call("score", i, {"x": self.calls.X[i], "y": y, "w": w})
        score = real_number(returned)
        expected = features.dot(w)
        self.calls.report.checks += 1
        if score is None or not abs(score - expected) <= value_tolerance(
            w, 0.0, features, features
        ):
            self.calls.problem(
                "score",
                "score",
                i,
                f"score(X[{i}], {origin}, w) returned {returned!r}, but w . joint_feature is "
                f"{expected:.6g}",
                "let score and joint_feature agree, or leave score out",
            )

    def _check_kind(self, i: int, y: Any, text: str) -> None:
        self.calls.report.checks += 1
        if y is None:
            self.calls.problem(
                "output is None",
                "argmax",
                i,
                f"{text} returned None; expected an output",
                "return the best output; is a return statement missing?",
            )
            raise MethodFailed
        expected, found = kind_of(self.calls.true_output(i)), kind_of(y)
        if expected != found:
            self.calls.problem(
                "kind of output",
                "argmax",
                i,
                f"{text} returned {found}, but the truth Y[{i}] is {expected}",
                "let argmax return outputs of the same kind as those in Y, and Y hold what loss "
                "and joint_feature take as outputs",
            )

    def _differ(
        self,
        i: int,
        answer: Answer,
        first: Candidate,
        second: Candidate,
        text: str,
        *,
        with_truth: bool,
    ) -> None:
        gap = abs(_value(first, answer.w, with_truth) - _value(second, answer.w, with_truth))
        loss = max(abs(first.loss), abs(second.loss))
        if gap <= value_tolerance(answer.w, loss, first.features, second.features):
            self.calls.warning(
                "ties",
                "argmax",
                i,
                f"two calls of {text} returned different outputs of the same value",
                "break ties the same way every time, so that training can be repeated",
            )
        else:
            self.calls.problem(
                "not deterministic",
                "argmax",
                i,
                f"two calls of {text} returned different outputs, whose values differ by {gap:.6g}",
                "let it depend on its arguments alone: no random numbers, no state kept between "
                "calls",
            )

    def _check_reused(self, i: int, kept: list[tuple[Any, Any, str]]) -> None:
        for y, before, text in kept:
            self.calls.report.checks += 1
            if not unchanged(before, y):
                self.calls.problem(
                    "output reused",
                    "argmax",
                    i,
                    f"the output of {text} was changed by a later call",
                    "return a new object (a copy of the buffer) from every call",
                )

    def _candidates(self, i: int, truth: Candidate, answers: list[Answer]) -> list[Candidate]:
        """Collect outputs that argmax can be compared with."""
        pool = [truth]
        for answer in answers:
            pool += [c for c in (answer.plain, answer.oracle) if c is not None]
        listed: list[Any] | None = None
        if offers(self.calls.structure, "outputs"):
            try:
                listed = self.calls.call("outputs", i, {"x": self.calls.X[i]})
                self._check_listed(i, listed)
                for k, y in enumerate(listed[:MAX_LISTED]):
                    pool.append(self._candidate(i, y, f"output {k} of outputs(X[{i}])"))
            except MethodFailed:
                pass
        else:
            pool += self._borrowed(i)
        return pool

    def _check_listed(self, i: int, listed: list[Any]) -> None:
        if len(listed) > MAX_LISTED:
            return
        self.calls.report.checks += 1
        if not any(self.calls.equal(i, self.calls.true_output(i), y) for y in listed):
            self.calls.problem(
                "truth not listed",
                "outputs",
                i,
                f"the truth Y[{i}] is not among the {len(listed)} outputs of outputs(X[{i}])",
                "list every possible output, and let Y hold outputs of the same kind",
            )

    def _borrowed(self, i: int) -> Iterator[Candidate]:
        """Yield truths of other examples that seem to be outputs of this one, too."""
        others = self.rng.permutation([j for j in range(len(self.calls.Y)) if j != i])
        structure, shape = self.calls.structure, shape_of(self.calls.Y[i])
        fitting = (int(j) for j in others if shape_of(self.calls.Y[int(j)]) == shape)
        for j in itertools.islice(fitting, MAX_BORROWED):
            try:
                y = copied(self.calls.true_output(j))
            except MethodFailed:
                continue
            try:  # refusing an output is no mistake, so nothing is recorded here
                returned = structure.joint_feature(copied(self.calls.X[i]), y)
                features = sparse_vector(returned, self.calls.n_features)
                loss = real_number(structure.loss(copied(self.calls.Y[i]), y))
            except MemoryError:
                raise
            except Exception:
                continue
            if loss is not None and math.isfinite(loss):
                yield Candidate(y, features, loss, f"Y[{j}], the truth of another example")

    def _compare(
        self, i: int, answer: Answer, truth: Candidate, candidates: list[Candidate]
    ) -> None:
        """Compare what argmax returned under one w with everything that was sampled."""
        if answer.plain is not None:
            self._against(i, answer, answer.plain, truth, candidates, with_truth=False)
        if answer.oracle is not None:
            self._against(i, answer, answer.oracle, truth, candidates, with_truth=True)
        if answer.plain is not None and answer.oracle is not None:
            try:
                self.same_pairs += self.calls.equal(i, answer.plain.y, answer.oracle.y)
                self.pairs += 1
            except MethodFailed:
                pass

    def _against(
        self,
        i: int,
        answer: Answer,
        found: Candidate,
        truth: Candidate,
        candidates: list[Candidate],
        *,
        with_truth: bool,
    ) -> None:
        w = answer.w
        value = _value(found, w, with_truth)
        call = f"argmax(X[{i}], w, truth=Y[{i}])" if with_truth else f"argmax(X[{i}], w)"
        what = "loss + score" if with_truth else "score"
        prefix = "oracle" if with_truth else "argmax"
        formula = "loss(truth, y) + w.f(x, y)" if with_truth else "w.f(x, y)"
        worst: tuple[float, Candidate] | None = None
        for other in candidates:
            self.calls.report.checks += 1
            gap = _value(other, w, with_truth) - value
            loss = max(abs(found.loss), abs(other.loss)) if with_truth else 0.0
            if gap <= value_tolerance(w, loss, found.features, other.features):
                continue
            if other is truth:
                self.calls.problem(
                    f"{prefix} below the truth",
                    "argmax",
                    i,
                    f"under {answer.label} the output of {call} has {what} {value:.6g}, which is "
                    f"{gap:.6g} below that of the truth",
                    f"argmax must maximise {formula} over all outputs, the truth among them",
                )
            elif worst is None or gap > worst[0]:
                worst = (gap, other)
        if worst is not None:
            gap, other = worst
            self.calls.problem(
                f"{prefix} not maximal",
                "argmax",
                i,
                f"under {answer.label} the output of {call} has {what} {value:.6g}, but "
                f"{other.origin} has {value + gap:.6g}",
                f"argmax must maximise {formula} over all outputs"
                + (
                    f"; if that output is not possible for X[{i}], let joint_feature raise a "
                    "ValueError for it"
                    if other.origin.endswith("another example")
                    else ""
                ),
            )

    def _check_truth_used(self) -> None:
        """See whether the oracle always returns what argmax returns, though the loss matters."""
        self.calls.report.checks += 1
        not_maximal = self.calls.found.get(("oracle not maximal", "argmax"))
        if not_maximal is None or self.pairs == 0 or self.same_pairs < self.pairs:
            return
        self.calls.drop("oracle not maximal", "argmax")
        self.calls.problem(
            "truth ignored",
            "argmax",
            not_maximal.example,
            f"argmax returned the same output with truth=Y[i] as without it in all {self.pairs} "
            "trials, although the loss makes another output better: it seems to ignore truth. "
            + not_maximal.message[0].upper()
            + not_maximal.message[1:],
            "when truth is not None, maximise loss(truth, y) + w.f(x, y)",
        )


def _value(candidate: Candidate, w: NDArray[np.float64], with_loss: bool) -> float:
    return candidate.features.dot(w) + (candidate.loss if with_loss else 0.0)
