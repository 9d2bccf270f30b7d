"""Structures for tests of oracles in other processes, which import this file and little else."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from maxmargin.structures.base import Structure

N, CLASSES, SIZE = 60, 4, 6
#: The process of the tests: set there, and none in the others.
PARENT: list[int] = []


class Classes(Structure):
    """Classes with an argmax of their own, and a loss that grows with the distance."""

    n_features = CLASSES * SIZE

    def joint_feature(self, x: Any, y: int) -> Any:
        return np.kron(np.eye(CLASSES)[y], x)

    def loss(self, y: int, y_hat: int) -> float:
        return float(abs(y - y_hat))

    def argmax(self, x: Any, w: Any, truth: int | None = None) -> int:
        scores = w.reshape(CLASSES, SIZE) @ x
        if truth is not None:
            scores = scores + np.abs(np.arange(CLASSES) - truth)
        return int(np.argmax(scores))


class Listed(Classes):
    """The same, with all outputs listed beside the argmax."""

    def outputs(self, x: Any) -> Any:
        return range(CLASSES)


class Away(Classes):
    """Does something in other processes than that of the tests, for one example."""

    def __init__(self, what: str) -> None:
        self.what = what

    def argmax(self, x: Any, w: Any, truth: int | None = None) -> int:
        if not PARENT and x[0] == X[17, 0]:
            if self.what == "raise":
                return [0][int(x[1] * 0) + 7]
            if self.what == "die":
                os._exit(3)
            if self.what == "nonsense":
                return None  # type: ignore[return-value]
        return super().argmax(x, w, truth)


class Unsendable(Classes):
    def __init__(self) -> None:
        self.why = "has a lock"

    def __deepcopy__(self, memo: Any) -> Unsendable:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot be pickled: it {self.why}")


class Unreadable(Classes):
    """Can be pickled, but not read again."""

    def __deepcopy__(self, memo: Any) -> Unreadable:
        return self

    def __reduce__(self) -> Any:
        return _only_here, ()


def _only_here() -> Any:
    if not PARENT:
        raise ModuleNotFoundError("no module named 'secret'")
    return Unreadable()


class Worse(Classes):
    """Finds the worst output."""

    def argmax(self, x: Any, w: Any, truth: int | None = None) -> int:
        return int(np.argmin(w.reshape(CLASSES, SIZE) @ x))


class Sleepy(Classes):
    def argmax(self, x: Any, w: Any, truth: int | None = None) -> int:
        time.sleep(0.02)
        return super().argmax(x, w, truth)


_rng = np.random.default_rng(0)
X = _rng.normal(size=(N, SIZE))
_scores = X @ _rng.normal(size=(SIZE, CLASSES)) + _rng.normal(size=(N, CLASSES))
Y = [int(y) for y in _scores.argmax(1)]
