"""`check_structure`: try a user's structure out, and say in words what is wrong with it.

A wrong argmax or loss does not crash a solver; it only makes the result worse, silently. So the
methods are tried here on some examples under weight vectors of several kinds (zero, small, unit,
large, sparse), and what they return is compared with what the protocol promises: the oracle is
never below the truth, no sampled output is better than the maximum, losses are not negative,
feature vectors have one size, nothing is changed in place, and so on.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.structures.adapter import (
    LOSS_TOLERANCE,
    paired_examples,
    real_number,
    value_tolerance,
)
from maxmargin.structures.base import Structure
from maxmargin.structures.duck import (
    accepts_truth,
    as_structure,
    declared_n_features,
    describe_exception,
    offers,
    structure_name,
)
from maxmargin.structures.equality import equal_outputs
from maxmargin.structures.vectors import BadFeatures, Features, SparseVector, sparse_vector

__all__ = ["Problem", "StructureReport", "check_structure"]

MAX_LISTED = 500  # outputs(x) may be endless: look at this many
MAX_BORROWED = 10  # truths of other examples tried as outputs of one example


@dataclass
class Problem:
    """One kind of mistake in a structure.

    Attributes
    ----------
    method : str
        The method that is wrong.
    example : int or None
        The first example where it showed; None if it concerns no single example.
    message : str
        What was found, and what was expected.
    advice : str
        What to do about it.
    count : int
        How often it was found.
    kind : str
        A short name of the kind of mistake, for programs.
    """

    method: str
    example: int | None
    message: str
    advice: str
    count: int = 1
    kind: str = ""

    def __str__(self) -> str:
        where = self.method if self.example is None else f"{self.method}, example {self.example}"
        times = "" if self.count == 1 else f" (found {self.count} times)"
        return f"{where}: {self.message}{times}\n    What to do: {self.advice}"


@dataclass
class StructureReport:
    """What `check_structure` found. True in a condition if there are no problems.

    Attributes
    ----------
    name : str
        The class of the structure.
    problems : list of Problem
        What must be corrected, each kind once.
    warnings : list of Problem
        What can be lived with.
    checks : int
        How many single comparisons were made.
    ok : bool
        True if there are no problems.
    """

    name: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    checks: int = 0

    @property
    def ok(self) -> bool:
        """True if there are no problems (there may be warnings)."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        counts = f"{_count(self.problems, 'problem')}, {_count(self.warnings, 'warning')}"
        lines = [f"{self.name}: {counts} ({self.checks} checks)"]
        for title, found in (("Problems", self.problems), ("Warnings", self.warnings)):
            if found:
                lines += ["", f"{title}:"]
                lines += [f"{k:2}. {problem}" for k, problem in enumerate(found, 1)]
        return "\n".join(lines)


def _count(found: list[Problem], word: str) -> str:
    return f"{len(found) or 'no'} {word}{'' if len(found) == 1 else 's'}"


def check_structure(
    structure: Any,
    X: Any,
    Y: Any,
    *,
    n_weights: int = 5,
    n_samples: int = 20,
    random_state: Any = 0,
    raise_on_error: bool = False,
) -> StructureReport:
    """Try a structure out under random weights and report in words what is wrong with it.

    Parameters
    ----------
    structure : Structure or object with its methods
        The structure to check. It is not changed: a deep copy is prepared and used.
    X, Y : sequence
        Inputs and their true outputs, as they would be given to ``fit``.
    n_weights : int
        How many weight vectors are tried on each example: zero, small, unit, large and sparse
        ones in turn.
    n_samples : int
        How many examples are tried, at most; they are drawn at random.
    random_state : int, Generator or None
        Seed of the draws.
    raise_on_error : bool
        If True, raise a `StructureError` with the report's text if there are problems.

    Returns
    -------
    StructureReport
        Print it to read it.

    Raises
    ------
    ValueError
        If X and Y differ in length or are empty, or a number above is out of range.
    StructureError
        If there are problems and ``raise_on_error`` is True.

    Notes
    -----
    An argmax is compared with outputs that were seen elsewhere: all of ``outputs(x)`` if the
    structure offers it, what argmax returned for the same x under other weights, and the truths
    of other examples, as far as they are of the same kind and length and ``joint_feature`` and
    ``loss`` accept them. So no report of a problem is no proof that there is none, and a structure
    should raise a ValueError for an output that is not possible for an x.

    Examples
    --------
    >>> import numpy as np
    >>> class Classes:  # two classes; the loss has the wrong sign
    ...     def joint_feature(self, x, y):
    ...         return np.kron([y == 0, y == 1], x)
    ...
    ...     def loss(self, y, y_hat):
    ...         return -float(y != y_hat)
    ...
    ...     def outputs(self, x):
    ...         return [0, 1]
    >>> report = check_structure(Classes(), [np.array([1.0, 2.0])], [1])
    >>> report.ok
    False
    >>> report.problems[0].message
    'loss(Y[0], an output) is -1.0; expected at least 0'
    """
    if n_weights < 1:
        raise ValueError(f"n_weights is {n_weights}; expected at least 1")
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; expected at least 1")
    rng = np.random.default_rng(random_state)
    report = _Checker(structure, X, Y, n_weights=n_weights, n_samples=n_samples, rng=rng).run()
    if raise_on_error and not report.ok:
        first = report.problems[0]
        raise StructureError(str(report), method=first.method, example=first.example)
    return report


class _Failed(Exception):  # noqa: N818 (never leaves this file)
    """A user's method raised or returned nonsense; the problem is recorded already."""


@dataclass
class _Candidate:
    """An output of one example, with all that the comparisons need."""

    y: Any
    features: SparseVector
    loss: float
    origin: str


@dataclass
class _Answer:
    """What argmax returned under one weight vector, with and without the truth."""

    w: NDArray[np.float64]
    label: str
    plain: _Candidate | None = None
    oracle: _Candidate | None = None


class _Checker:
    def __init__(
        self,
        structure: Any,
        X: Any,
        Y: Any,
        *,
        n_weights: int,
        n_samples: int,
        rng: np.random.Generator,
    ) -> None:
        self.original = structure
        self.X_given, self.Y_given = X, Y
        self.X, self.Y = paired_examples(X, Y)
        self.n_weights = n_weights
        self.rng = rng
        n = len(self.X)
        chosen = rng.choice(n, size=min(n, n_samples), replace=False)
        self.examples: list[int] = sorted(int(i) for i in chosen)
        self.report = StructureReport(structure_name(structure))
        self.found: dict[tuple[str, str], Problem] = {}
        self.structure: Structure
        self.has_truth = True
        self.n_features = 0
        self.other_outputs = 0  # outputs seen that differ from the truth ...
        self.with_loss = 0  # ... and those of them that have a loss
        self.pairs = 0  # argmax with and without the truth ...
        self.same_pairs = 0  # ... that gave the same output

    # --- recording ---

    def problem(
        self, kind: str, method: str, example: int | None, message: str, advice: str
    ) -> None:
        self._record(self.report.problems, Problem(method, example, message, advice, kind=kind))

    def warning(
        self, kind: str, method: str, example: int | None, message: str, advice: str
    ) -> None:
        self._record(self.report.warnings, Problem(method, example, message, advice, kind=kind))

    def _record(self, into: list[Problem], new: Problem) -> None:
        known = self.found.setdefault((new.kind, new.method), new)
        if known is new:
            into.append(new)
        else:
            known.count += 1

    def drop(self, kind: str, method: str) -> None:
        found = self.found.pop((kind, method), None)
        if found is not None:
            self.report.problems.remove(found)

    # --- calling the user's methods ---

    def call(
        self,
        method: str,
        i: int | None,
        args: dict[str, Any],
        truth: Any = None,
        *,
        read_only: bool = False,
    ) -> Any:
        """Call a method on copies of its arguments, and see whether it changed them."""
        given = dict(args) if truth is None else {**args, "truth": truth}
        copies = {name: _copy(value) for name, value in given.items()}
        if read_only:
            copies["w"].flags.writeable = False
        positional = [copies[name] for name in args]
        keywords = {} if truth is None else {"truth": copies["truth"]}
        self.report.checks += 1
        try:
            result = getattr(self.structure, method)(*positional, **keywords)
            if method == "outputs":
                result = list(itertools.islice(result, MAX_LISTED + 1))
        except MemoryError:
            raise
        except Exception as error:
            if read_only and ("changes w", method) not in self.found:
                self.problem(
                    "writes w",
                    method,
                    i,
                    f"{_call_text(method, i, given)} raised {describe_exception(error)} when w "
                    "was read-only",
                    "accept weights that cannot be written to, as they are during training; "
                    "copy them first if a compiled function insists",
                )
            elif not read_only:
                self.problem(
                    "exception",
                    method,
                    i,
                    f"{_call_text(method, i, given)} raised {describe_exception(error)}",
                    f"make {method} work for every example"
                    + ("" if i is None else f"; call it by hand on example {i} for the traceback"),
                )
            raise _Failed from error
        for name, value in given.items():
            self.report.checks += 1
            if not _unchanged(value, copies[name]):
                self.problem(
                    f"changes {name}",
                    method,
                    i,
                    f"{_call_text(method, i, given)} changed its argument {name}",
                    f"work on a copy of {name}",
                )
        return result

    def equal(self, i: int, y: Any, y_hat: Any) -> bool:
        return bool(self.call("equal", i, {"y": y, "y_hat": y_hat}))

    def features(self, i: int, y: Any, origin: str) -> SparseVector:
        returned = self.call("joint_feature", i, {"x": self.X[i], "y": y})
        return self.parsed(i, returned, origin, self.n_features)

    def parsed(
        self, i: int, features: Features, origin: str, n_features: int | None
    ) -> SparseVector:
        self.report.checks += 1
        try:
            return sparse_vector(features, n_features)
        except BadFeatures as error:
            self.problem(
                f"features: {error.kind}",
                "joint_feature",
                i,
                f"joint_feature(X[{i}], {origin}) returned {error}",
                _FEATURE_ADVICE[error.kind],
            )
            raise _Failed from error

    def loss(self, i: int, y_hat: Any, text: str = "an output") -> float:
        returned = self.call("loss", i, {"y": self.Y[i], "y_hat": y_hat})
        call = f"loss(Y[{i}], {text})"
        self.report.checks += 1
        value = real_number(returned)
        if value is None:
            self.problem(
                "loss type",
                "loss",
                i,
                f"{call} returned an object of type {type(returned).__name__}; expected a float",
                "return one number",
            )
            raise _Failed
        if not math.isfinite(value):
            self.problem(
                "loss not finite",
                "loss",
                i,
                f"{call} is {value}; expected a finite number",
                "return a number for every output; leave impossible outputs to argmax",
            )
            raise _Failed
        if value < -LOSS_TOLERANCE:
            self.problem(
                "negative loss",
                "loss",
                i,
                f"{call} is {value}; expected at least 0",
                "return a cost, not a gain: 0 for the truth and more for worse outputs",
            )
        return value

    # --- the checks ---

    def run(self) -> StructureReport:
        try:
            self.check_protocol()
            self.check_pickle()
            self.check_prepare()
            good = self.check_truths()
            if good:
                self.check_argmax(good)
        except _Failed:
            pass
        return self.report

    def check_protocol(self) -> None:
        self.report.checks += 2
        try:
            self.structure = as_structure(self.original)
        except NotCompatibleError as error:
            self.problem(
                "not a structure", "structure", None, str(error), "write the missing methods"
            )
            raise _Failed from error
        if not accepts_truth(self.structure):
            self.has_truth = False
            self.problem(
                "signature",
                "argmax",
                None,
                "argmax cannot be called as argmax(x, w) and argmax(x, w, truth=y)",
                "give it a parameter truth=None: def argmax(self, x, w, truth=None)",
            )

    def check_pickle(self) -> None:
        self.report.checks += 1
        try:
            pickle.dumps(self.original)
        except MemoryError:
            raise
        except Exception as error:
            self.warning(
                "pickle",
                "structure",
                None,
                f"the structure cannot be pickled: {describe_exception(error)}",
                "define its class at the top of a module and keep no lambdas, open files or "
                "generators in it; else models cannot be pickled or sent to other processes",
            )

    def check_prepare(self) -> None:
        self.report.checks += 1
        try:
            self.structure = as_structure(copy.deepcopy(self.original))
        except MemoryError:
            raise
        except Exception as error:
            self.problem(
                "copy",
                "structure",
                None,
                f"the structure cannot be deep-copied: {describe_exception(error)}",
                "an estimator trains a deep copy: keep nothing in it that copy.deepcopy refuses, "
                "or write __deepcopy__",
            )
            if offers(self.structure, "prepare"):
                raise _Failed from error
        if offers(self.structure, "prepare"):
            self.call("prepare", None, {"X": self.X_given, "Y": self.Y_given})

    def check_truths(self) -> dict[int, SparseVector]:
        """Check features and loss of the truths; return the features if weights can be tried."""
        features: dict[int, Features] = {}
        for i in self.examples:
            try:
                features[i] = self.truth_features(i)
            except _Failed:
                continue
        for i in self.examples:
            try:
                self.check_truth_loss(i)
            except _Failed:
                continue
        self.check_encoders()
        if not features or not self.find_n_features(features):
            return {}
        good: dict[int, SparseVector] = {}
        for i, returned in features.items():
            try:
                good[i] = self.parsed(i, returned, f"Y[{i}]", self.n_features)
            except _Failed:
                continue
        wrong_size = any(
            (kind, "joint_feature") in self.found for kind in ("features: size", "features: index")
        )
        return {} if wrong_size else good

    def truth_features(self, i: int) -> Features:
        args = {"x": self.X[i], "y": self.Y[i]}
        first = _copy(self.call("joint_feature", i, args))
        second = self.call("joint_feature", i, args)
        self.report.checks += 1
        if not _same_features(first, second):
            self.problem(
                "not deterministic",
                "joint_feature",
                i,
                f"two calls of joint_feature(X[{i}], Y[{i}]) returned different vectors",
                "let it depend on x and y alone: no random numbers, no state kept between calls",
            )
        return first

    def check_truth_loss(self, i: int) -> None:
        y = self.Y[i]
        value = self.loss(i, y, f"Y[{i}]")
        again = self.loss(i, y, f"Y[{i}]")
        self.report.checks += 2
        if value != again:
            self.loss_not_deterministic(i, value, again)
        if value > LOSS_TOLERANCE:
            self.problem(
                "loss of the truth",
                "loss",
                i,
                f"loss(Y[{i}], Y[{i}]) is {value}; expected 0",
                "the truth itself costs nothing; subtract its own cost",
            )
        self.report.checks += 1
        if not self.equal(i, y, _copy(y)):
            self.warning(
                "equal",
                "equal",
                i,
                f"equal(Y[{i}], a copy of Y[{i}]) is False",
                "write equal(y, y_hat), or give the class of the outputs an __eq__",
            )

    def loss_not_deterministic(self, i: int, value: float, again: float) -> None:
        self.problem(
            "not deterministic",
            "loss",
            i,
            f"two calls of loss with the same outputs returned {value} and {again}",
            "let it depend on y and y_hat alone: no random numbers, no state kept between calls",
        )

    def check_encoders(self) -> None:
        if not offers(self.structure, "encode") and not offers(self.structure, "decode"):
            return
        for i in self.examples:
            try:
                code = self.call("encode", i, {"y": self.Y[i]})
                again = self.call("encode", i, {"y": self.Y[i]})
                self.report.checks += 1
                try:
                    useful = hash(code) == hash(again) and code == again
                except TypeError:
                    useful = False
                if not useful:
                    self.problem(
                        "key",
                        "encode",
                        i,
                        f"encode(Y[{i}]) gave no hashable key that is the same for equal outputs",
                        "return a number, a string, or a tuple of such",
                    )
                if not offers(self.structure, "decode"):
                    continue
                decoded = self.call("decode", i, {"code": code})
                self.report.checks += 1
                if not self.equal(i, self.Y[i], decoded):
                    self.problem(
                        "decode",
                        "decode",
                        i,
                        f"decode(encode(Y[{i}])) is not equal to Y[{i}]",
                        "let decode undo encode",
                    )
            except _Failed:
                continue

    def find_n_features(self, features: dict[int, Features]) -> bool:
        self.report.checks += 1
        try:
            n_features = declared_n_features(self.structure)
        except StructureError as error:
            self.problem(
                "n_features",
                "n_features",
                None,
                str(error),
                "set n_features to the size of the joint feature vector",
            )
            return False
        if n_features is None:
            for i, returned in features.items():
                try:
                    n_features = self.parsed(i, returned, f"Y[{i}]", None).size
                except _Failed:
                    continue
                if n_features is not None:
                    break
        if not n_features:
            if not any(kind.startswith("features: ") for kind, _ in self.found):
                self.problem(
                    "n_features",
                    "n_features",
                    None,
                    "the number of features is not known: joint_feature returns dicts or tuples "
                    "(indices, values), which do not tell it, or an empty vector",
                    "set n_features on the structure (an attribute or a property; prepare(X, Y) "
                    "may set it)",
                )
            return False
        self.n_features = n_features
        return True

    def weight_vectors(self) -> Iterator[tuple[NDArray[np.float64], str]]:
        d = self.n_features
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
            yield w, f"{kind} random weights" if kind != "zero" else "zero weights"

    def check_argmax(self, truths: dict[int, SparseVector]) -> None:
        weights = list(self.weight_vectors())
        for i, features in truths.items():
            truth = _Candidate(self.Y[i], features, 0.0, f"the truth Y[{i}]")
            answers = [_Answer(w, label) for w, label in weights]
            kept: list[tuple[Any, Any, str]] = []  # what argmax returned, and a copy of it
            for answer in answers:
                answer.plain = self.ask(i, answer, truth, kept, with_truth=False)
                if self.has_truth:
                    answer.oracle = self.ask(i, answer, truth, kept, with_truth=True)
            self.check_reused(i, kept)
            candidates = self.candidates(i, truth, answers)
            for answer in answers:
                self.compare(i, answer, truth, candidates)
        self.check_truth_used()
        if self.other_outputs and not self.with_loss:
            self.warning(
                "no loss",
                "loss",
                None,
                f"loss was 0 for all {self.other_outputs} outputs seen that differ from their "
                "truth: there is nothing to learn from",
                "return more than 0 for outputs that differ from the truth",
            )

    def ask(
        self,
        i: int,
        answer: _Answer,
        truth: _Candidate,
        kept: list[tuple[Any, Any, str]],
        *,
        with_truth: bool,
    ) -> _Candidate | None:
        """Call argmax (twice) and look at the output by itself."""
        args = {"x": self.X[i], "w": answer.w}
        given = truth.y if with_truth else None
        text = f"argmax(X[{i}], w, truth=Y[{i}])" if with_truth else f"argmax(X[{i}], w)"
        try:
            y = self.call("argmax", i, args, given)
            kept.append((y, _copy(y), text))
            self.check_kind(i, y, text)
            y = _copy(y)
            result = self.candidate(i, y, f"the output of {text}")
        except _Failed:
            return None
        try:
            again = self.call("argmax", i, args, given, read_only=True)
            self.report.checks += 1
            if not self.equal(i, y, again):
                other = self.candidate(i, _copy(again), f"the output of {text}")
                self.differ(i, answer, result, other, text, with_truth=with_truth)
        except _Failed:
            pass
        return result

    def candidate(self, i: int, y: Any, origin: str) -> _Candidate:
        features = self.features(i, y, origin)
        loss = self.loss(i, y)
        self.report.checks += 1
        if not self.equal(i, self.Y[i], y):
            self.other_outputs += 1
            self.with_loss += loss > LOSS_TOLERANCE
        elif loss > LOSS_TOLERANCE:
            self.problem(
                "loss of the truth",
                "loss",
                i,
                f"loss(Y[{i}], an output equal to it) is {loss}; expected 0",
                "the truth itself costs nothing; compare by content",
            )
        self.check_score(i, y, features, origin)
        return _Candidate(y, features, loss, origin)

    def check_score(self, i: int, y: Any, features: SparseVector, origin: str) -> None:
        if not offers(self.structure, "score"):
            return
        w = self.rng.normal(size=self.n_features)
        returned = self.call("score", i, {"x": self.X[i], "y": y, "w": w})
        score = real_number(returned)
        expected = features.dot(w)
        self.report.checks += 1
        if score is None or not abs(score - expected) <= value_tolerance(
            w, 0.0, features, features
        ):
            self.problem(
                "score",
                "score",
                i,
                f"score(X[{i}], {origin}, w) returned {returned!r}, but w . joint_feature is "
                f"{expected:.6g}",
                "let score and joint_feature agree, or leave score out",
            )

    def check_kind(self, i: int, y: Any, text: str) -> None:
        self.report.checks += 1
        if y is None:
            self.problem(
                "output is None",
                "argmax",
                i,
                f"{text} returned None; expected an output",
                "return the best output; is a return statement missing?",
            )
            raise _Failed
        expected, found = _kind(self.Y[i]), _kind(y)
        if expected != found:
            self.problem(
                "kind of output",
                "argmax",
                i,
                f"{text} returned {found}, but the truth Y[{i}] is {expected}",
                "let argmax return outputs of the same kind as those in Y, and Y hold what loss "
                "and joint_feature take as outputs",
            )

    def differ(
        self,
        i: int,
        answer: _Answer,
        first: _Candidate,
        second: _Candidate,
        text: str,
        *,
        with_truth: bool,
    ) -> None:
        gap = abs(_value(first, answer.w, with_truth) - _value(second, answer.w, with_truth))
        loss = max(abs(first.loss), abs(second.loss))
        if gap <= value_tolerance(answer.w, loss, first.features, second.features):
            self.warning(
                "ties",
                "argmax",
                i,
                f"two calls of {text} returned different outputs of the same value",
                "break ties the same way every time, so that training can be repeated",
            )
        else:
            self.problem(
                "not deterministic",
                "argmax",
                i,
                f"two calls of {text} returned different outputs, whose values differ by {gap:.6g}",
                "let it depend on its arguments alone: no random numbers, no state kept between "
                "calls",
            )

    def check_reused(self, i: int, kept: list[tuple[Any, Any, str]]) -> None:
        for y, before, text in kept:
            self.report.checks += 1
            if not _unchanged(before, y):
                self.problem(
                    "output reused",
                    "argmax",
                    i,
                    f"the output of {text} was changed by a later call",
                    "return a new object (a copy of the buffer) from every call",
                )

    def candidates(self, i: int, truth: _Candidate, answers: list[_Answer]) -> list[_Candidate]:
        """Collect outputs that argmax can be compared with."""
        pool = [truth]
        for answer in answers:
            pool += [c for c in (answer.plain, answer.oracle) if c is not None]
        listed: list[Any] | None = None
        if offers(self.structure, "outputs"):
            try:
                listed = self.call("outputs", i, {"x": self.X[i]})
                self.check_listed(i, listed)
                for k, y in enumerate(listed[:MAX_LISTED]):
                    pool.append(self.candidate(i, y, f"output {k} of outputs(X[{i}])"))
            except _Failed:
                pass
        else:
            pool += self.borrowed(i)
        return pool

    def check_listed(self, i: int, listed: list[Any]) -> None:
        if len(listed) > MAX_LISTED:
            return
        self.report.checks += 1
        if not any(self.equal(i, self.Y[i], y) for y in listed):
            self.problem(
                "truth not listed",
                "outputs",
                i,
                f"the truth Y[{i}] is not among the {len(listed)} outputs of outputs(X[{i}])",
                "list every possible output, and let Y hold outputs of the same kind",
            )

    def borrowed(self, i: int) -> Iterator[_Candidate]:
        """Yield truths of other examples that seem to be outputs of this one, too."""
        others = self.rng.permutation([j for j in range(len(self.Y)) if j != i])
        shape = _shape(self.Y[i])
        fitting = (int(j) for j in others if _shape(self.Y[int(j)]) == shape)
        for j in itertools.islice(fitting, MAX_BORROWED):
            y = _copy(self.Y[j])
            try:  # refusing an output is no mistake, so nothing is recorded here
                features = sparse_vector(
                    self.structure.joint_feature(_copy(self.X[i]), y), self.n_features
                )
                loss = real_number(self.structure.loss(_copy(self.Y[i]), y))
            except MemoryError:
                raise
            except Exception:
                continue
            if loss is not None and math.isfinite(loss):
                yield _Candidate(y, features, loss, f"Y[{j}], the truth of another example")

    def compare(
        self, i: int, answer: _Answer, truth: _Candidate, candidates: list[_Candidate]
    ) -> None:
        """Compare what argmax returned under one w with everything that was sampled."""
        if answer.plain is not None:
            self.against(i, answer, answer.plain, truth, candidates, with_truth=False)
        if answer.oracle is not None:
            self.against(i, answer, answer.oracle, truth, candidates, with_truth=True)
        if answer.plain is not None and answer.oracle is not None:
            try:
                self.same_pairs += self.equal(i, answer.plain.y, answer.oracle.y)
                self.pairs += 1
            except _Failed:
                pass

    def against(
        self,
        i: int,
        answer: _Answer,
        found: _Candidate,
        truth: _Candidate,
        candidates: list[_Candidate],
        *,
        with_truth: bool,
    ) -> None:
        w = answer.w
        value = _value(found, w, with_truth)
        call = f"argmax(X[{i}], w, truth=Y[{i}])" if with_truth else f"argmax(X[{i}], w)"
        what = "loss + score" if with_truth else "score"
        prefix = "oracle" if with_truth else "argmax"
        formula = "loss(truth, y) + w.f(x, y)" if with_truth else "w.f(x, y)"
        worst: tuple[float, _Candidate] | None = None
        for other in candidates:
            self.report.checks += 1
            gap = _value(other, w, with_truth) - value
            loss = max(abs(found.loss), abs(other.loss)) if with_truth else 0.0
            if gap <= value_tolerance(w, loss, found.features, other.features):
                continue
            if other is truth:
                self.problem(
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
            self.problem(
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

    def check_truth_used(self) -> None:
        """See whether the oracle always returns what argmax returns, though the loss matters."""
        self.report.checks += 1
        not_maximal = self.found.get(("oracle not maximal", "argmax"))
        if not_maximal is None or self.pairs == 0 or self.same_pairs < self.pairs:
            return
        self.drop("oracle not maximal", "argmax")
        self.problem(
            "truth ignored",
            "argmax",
            not_maximal.example,
            f"argmax returned the same output with truth=Y[i] as without it in all {self.pairs} "
            "trials, although the loss makes another output better: it seems to ignore truth. "
            + not_maximal.message[0].upper()
            + not_maximal.message[1:],
            "when truth is not None, maximise loss(truth, y) + w.f(x, y)",
        )


_FEATURE_ADVICE = {
    "type": "return a 1-d numpy array, a scipy.sparse row, a dict {index: value}, or a tuple "
    "(indices, values)",
    "shape": "return one flat vector; ravel() makes one of a matrix",
    "size": "return vectors of one size for all x and y, the size that n_features states if it is "
    "given",
    "index": "use integer indices from 0 to n_features - 1",
    "finite": "replace NaN and infinities in X, or the computation that makes them",
}


def _value(candidate: _Candidate, w: NDArray[np.float64], with_loss: bool) -> float:
    return candidate.features.dot(w) + (candidate.loss if with_loss else 0.0)


def _copy(value: Any) -> Any:
    """Return a deep copy, or the object itself if it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except MemoryError:
        raise
    except Exception:
        return value


def _unchanged(before: Any, after: Any) -> bool:
    """Tell whether an argument still has the content it had before a call.

    Objects without a comparison of their own are compared by their public attributes; private
    ones may be caches.
    """
    try:
        if equal_outputs(before, after):
            return True
    except MemoryError:
        raise
    except Exception:
        return True  # cannot be told
    if (
        type(before) is not type(after)
        or getattr(type(before), "__eq__", None) is not object.__eq__
    ):
        return not _comparable(before)
    attributes = {k: v for k, v in getattr(before, "__dict__", {}).items() if k[:1] != "_"}
    return all(
        hasattr(after, k) and (_unchanged(v, getattr(after, k)) or not _comparable(v))
        for k, v in attributes.items()
    )


def _comparable(value: Any) -> bool:
    """Tell whether a copy of the object equals it, so that a comparison means something."""
    try:
        return equal_outputs(value, copy.deepcopy(value))
    except MemoryError:
        raise
    except Exception:
        return False


def _same_features(first: Features, second: Features) -> bool:
    try:
        a, b = sparse_vector(first), sparse_vector(second)
    except BadFeatures:
        return True  # reported where it is parsed
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.values, b.values)


def _kind(y: Any) -> str:
    """Say in words of what kind an output is, as coarsely as outputs may vary."""
    if isinstance(y, np.ndarray) and y.ndim == 0:
        y = y[()]
    if isinstance(y, list | tuple | np.ndarray):
        first = next(iter(y), None)
        return "a sequence" if first is None else f"a sequence of {_kind(first)[2:]}s"
    if isinstance(y, str):
        return "a string"
    if real_number(y) is not None:
        return "a number"
    if isinstance(y, Mapping):
        return "a mapping"
    if isinstance(y, set | frozenset):
        return "a set"
    return f"an object of type {type(y).__name__}"


def _shape(y: Any) -> tuple[Any, ...]:
    """Return the kind and size of an output: what must agree to swap the outputs of examples."""
    if isinstance(y, np.ndarray):
        return ("a sequence", y.shape)
    if isinstance(y, list | tuple):
        return ("a sequence", (len(y),))
    return (_kind(y),)


def _call_text(method: str, i: int | None, given: Mapping[str, Any]) -> str:
    if i is None:
        return f"{method}({', '.join(given)})"
    names = {"x": f"X[{i}]", "truth": f"truth=Y[{i}]", "y": "y", "y_hat": "y_hat"}
    return f"{method}({', '.join(names.get(name, name) for name in given)})"
