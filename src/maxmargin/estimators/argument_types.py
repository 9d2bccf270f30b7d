"""Types of arguments that many estimators have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.regularizers import Regularizer
from maxmargin.solvers import Solver

__all__ = [
    "Callbacks",
    "EvalSet",
    "ExampleWeights",
    "KnownLabels",
    "PathLike",
    "RandomState",
    "RegularizerLike",
    "SolverLike",
]

#: Called after passes, observers, or callbacks of scikit-learn.
Callbacks: TypeAlias = Iterable[Any] | None
#: Other data, by which the best pass is chosen: inputs and outputs; or a list of one such pair.
EvalSet: TypeAlias = tuple[Any, Any] | Sequence[tuple[Any, Any]] | None
#: A factor for each example; None: 1 for all.
ExampleWeights: TypeAlias = ArrayLike | None
#: Of sequences: the labels that are known, None where one is not, or of a whole sequence.
KnownLabels: TypeAlias = Sequence[Sequence[Any] | None] | None
#: The name of a file.
PathLike: TypeAlias = str | os.PathLike[str]
#: Where random numbers come from.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
#: What weights cost; None: ½‖w‖².
RegularizerLike: TypeAlias = Regularizer | str | None
#: A solver, or its name.
SolverLike: TypeAlias = str | Solver
