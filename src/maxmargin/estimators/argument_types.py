"""Types of arguments that many estimators have; those of data are in `maxmargin.types`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.regularizers import Regularizer
from maxmargin.solvers import Solver
from maxmargin.structures.kernels import KernelLike
from maxmargin.structures.latent import Latent
from maxmargin.types import PathLike

__all__ = [
    "Callbacks",
    "EvalSet",
    "ExampleWeights",
    "In",
    "KernelLike",
    "KnownLabels",
    "Out",
    "PathLike",
    "RandomState",
    "RegularizerLike",
    "SolverLike",
    "StructureLike",
]

#: The inputs of an estimator, and their outputs.
In = TypeVar("In")
Out = TypeVar("Out")


class StructureMethods(Protocol):
    """What a description of an output space must have; see `maxmargin.Structure` for the rest."""

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return the joint features of an input and an output."""

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return what an answer costs."""


#: Called after passes, observers, or callbacks of scikit-learn.
Callbacks: TypeAlias = Iterable[Any] | None
#: Other data, by which the best pass is chosen: inputs and outputs; or a list of one such pair.
EvalSet: TypeAlias = tuple[In, Out] | Sequence[tuple[In, Out]] | None
#: A factor for each example; None: 1 for all.
ExampleWeights: TypeAlias = ArrayLike | None
#: Of sequences: the labels that are known, None where one is not, or of a whole sequence.
KnownLabels: TypeAlias = Sequence[Sequence[Hashable] | None] | None
#: Where random numbers come from.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
#: What weights cost; None: ½‖w‖².
RegularizerLike: TypeAlias = Regularizer | str | None
#: A solver, or its name.
SolverLike: TypeAlias = str | Solver
#: What is predicted: a `Structure`, an object with its methods, or one with latent variables.
StructureLike: TypeAlias = StructureMethods | Latent
