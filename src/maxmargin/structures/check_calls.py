"""Calls a user's methods on copies of their arguments, and records what is wrong with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from maxmargin.structures.adapter import LOSS_TOLERANCE, real_number
from maxmargin.structures.base import Structure
from maxmargin.structures.check_report import Finding, StructureReport
from maxmargin.structures.check_values import copied, unchanged
from maxmargin.structures.duck import describe_exception, offers
from maxmargin.structures.vectors import BadFeatures, Features, SparseVector, sparse_vector

__all__ = ["MAX_LISTED", "MethodFailed", "StructureCalls"]

MAX_LISTED = 500  # outputs(x) may be endless: look at this many


class MethodFailed(Exception):  # noqa: N818 (never leaves check_structure)
    """A user's method raised or returned nonsense; the problem is recorded already."""


class StructureCalls:
    """The methods of a structure, as the checks call them.

    Parameters
    ----------
    X, Y : list
        Inputs and their true outputs.
    examples : list of int
        Which of them are tried.
    report : StructureReport
        Where findings go.

    Attributes
    ----------
    structure : Structure
        The structure itself, then its prepared copy; `check_setup` sets it.
    n_features : int
        Size of the joint feature vector, once it is known.
    found : dict
        The findings by kind and method.
    """

    structure: Structure

    def __init__(
        self, X: list[Any], Y: list[Any], examples: list[int], report: StructureReport
    ) -> None:
        self.X, self.Y, self.examples = X, Y, examples
        self.report = report
        self.found: dict[tuple[str, str], Finding] = {}
        self.n_features = 0
        self._true: dict[int, Any] = {}

    # --- recording ---

    def problem(
        self, kind: str, method: str, example: int | None, message: str, advice: str
    ) -> None:
        """Record what must be corrected."""
        self._record(self.report.problems, Finding(method, example, message, advice, kind=kind))

    def warning(
        self, kind: str, method: str, example: int | None, message: str, advice: str
    ) -> None:
        """Record what can be lived with."""
        self._record(self.report.warnings, Finding(method, example, message, advice, kind=kind))

    def _record(self, into: list[Finding], new: Finding) -> None:
        known = self.found.setdefault((new.kind, new.method), new)
        if known is new:
            into.append(new)
        else:
            known.count += 1

    def drop(self, kind: str, method: str) -> None:
        """Take a problem back."""
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
        copies = {name: copied(value) for name, value in given.items()}
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
            raise MethodFailed from error
        for name, value in given.items():
            self.report.checks += 1
            if not unchanged(value, copies[name]):
                self.problem(
                    f"changes {name}",
                    method,
                    i,
                    f"{_call_text(method, i, given)} changed its argument {name}",
                    f"work on a copy of {name}",
                )
        return result

    def true_output(self, i: int) -> Any:
        """Return the output that stands for the truth of example i: the truth, in most cases."""
        if not offers(self.structure, "true_output"):
            return self.Y[i]
        if i not in self._true:
            y = self.call("true_output", i, {"x": self.X[i], "y": self.Y[i]})
            if y is None:
                self.problem(
                    "output is None",
                    "true_output",
                    i,
                    f"true_output(X[{i}], Y[{i}]) returned None; expected an output",
                    "return an output that has no loss",
                )
                raise MethodFailed
            self._true[i] = copied(y)
        return self._true[i]

    def equal(self, i: int, y: Any, y_hat: Any) -> bool:
        """Tell whether the structure takes two outputs for the same."""
        return bool(self.call("equal", i, {"y": y, "y_hat": y_hat}))

    def features(self, i: int, y: Any, origin: str) -> SparseVector:
        """Return f(x_i, y), checked; ``origin`` says in messages which output y is."""
        returned = self.call("joint_feature", i, {"x": self.X[i], "y": y})
        return self.parsed(i, returned, origin, self.n_features)

    def parsed(
        self, i: int, features: Features, origin: str, n_features: int | None
    ) -> SparseVector:
        """Return what joint_feature returned as a sparse vector, checked."""
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
            raise MethodFailed from error

    def loss(self, i: int, y_hat: Any, text: str = "an output") -> float:
        """Return the loss of an output of example i, checked."""
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
            raise MethodFailed
        if not math.isfinite(value):
            self.problem(
                "loss not finite",
                "loss",
                i,
                f"{call} is {value}; expected a finite number",
                "return a number for every output; leave impossible outputs to argmax",
            )
            raise MethodFailed
        if value < -LOSS_TOLERANCE:
            self.problem(
                "negative loss",
                "loss",
                i,
                f"{call} is {value}; expected at least 0",
                "return a cost, not a gain: 0 for the truth and more for worse outputs",
            )
        return value


_FEATURE_ADVICE = {
    "type": "return a 1-d numpy array, a scipy.sparse row, a dict {index: value}, or a tuple "
    "(indices, values)",
    "shape": "return one flat vector; ravel() makes one of a matrix",
    "size": "return vectors of one size for all x and y, the size that n_features states if it is "
    "given",
    "index": "use integer indices from 0 to n_features - 1",
    "finite": "replace NaN and infinities in X, or the computation that makes them",
}


def _call_text(method: str, i: int | None, given: Mapping[str, Any]) -> str:
    if i is None:
        return f"{method}({', '.join(given)})"
    names = {"x": f"X[{i}]", "truth": f"truth=Y[{i}]", "y": "y", "y_hat": "y_hat"}
    return f"{method}({', '.join(names.get(name, name) for name in given)})"
