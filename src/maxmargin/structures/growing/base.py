"""What an online learner needs of a structure: examples that come one after the other.

`Growing` wraps a structure. Its `first` learns from the first examples what the structure must
know (labels, features, rules, ...), and `more` takes others in. What they hand over is opaque to
the learner, which joins, takes apart and makes problems of it through the same object. Where a
structure learns something new from later examples (a label, a feature) the layout of the weights
may change; a `Change` then says what becomes of multipliers' codes and of u.

A call that raises leaves the structure as it was: nothing of a batch is taken by halves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.structures.weight_layout import StructureLayout

__all__ = ["Change", "Growing", "same"]


def same(values: Any) -> Any:
    """Return what was given."""
    return values


@dataclass(frozen=True)
class Change:
    """Another layout of the weights.

    Attributes
    ----------
    codes : callable
        The codes of planes in the new layout. (uint32 array to uint32 array)
    sums : callable
        u in the new layout, of the old native array.
    data : callable
        Examples that were encoded before the change, as they are encoded now.
    """

    codes: Callable[[NDArray[np.uint32]], NDArray[np.uint32]]
    sums: Callable[[NDArray[Any]], NDArray[Any]]
    data: Callable[[Any], Any] = same


class Growing(ABC):
    """The examples of a structure, which become more.

    Parameters
    ----------
    structure : Structure
        Not prepared, or as an earlier training left it.
    dtype : "float32" or "float64"
        Type of the weights.
    """

    #: Whether later examples may change the layout of the weights.
    relayouts = False

    def __init__(self, structure: Any, dtype: str) -> None:
        self.structure = structure
        self.dtype = dtype

    @abstractmethod
    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Any:
        """Prepare the structure with the first examples and return them encoded.

        Parameters
        ----------
        X, Y : object
            Inputs and their true outputs.
        fit_params : mapping
            What else ``fit`` of the estimator takes.
        """

    @abstractmethod
    def more(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> tuple[Any, Change | None]:
        """Take later examples in and return them encoded.

        Parameters
        ----------
        X, Y, fit_params
            As in `first`.

        Returns
        -------
        data : object
            The examples.
        change : Change or None
            If the layout of the weights is another one now.
        """

    @abstractmethod
    def adopt(self, parts: dict[str, Any]) -> tuple[Any, Change | None]:
        """Return the examples of a problem that was trained by ``fit``.

        Parameters
        ----------
        parts : dict
            Of `PreparedProblem`, or the examples themselves.

        Returns
        -------
        data, change
            As in `more`.
        """

    @abstractmethod
    def problem(self, data: Any) -> _native.Problem:
        """Return encoded examples as a native problem in the present layout.

        Parameters
        ----------
        data : object
            What `first`, `more`, `join` or `take` returned.
        """

    @abstractmethod
    def join(self, several: list[Any]) -> Any:
        """Return encoded examples one behind the other.

        Parameters
        ----------
        several : list
            Of what `more` returned.
        """

    @abstractmethod
    def take(self, data: Any, examples: NDArray[Any]) -> Any:
        """Return some of the encoded examples; nothing of the others is in them.

        Parameters
        ----------
        data : object
            Encoded examples.
        examples : int array
            Which ones.
        """

    @abstractmethod
    def count(self, data: Any) -> int:
        """Return the number of encoded examples.

        Parameters
        ----------
        data : object
            Encoded examples.
        """

    def purge(self, remaining: list[Any]) -> tuple[list[Any], Change | None]:
        """Let the structure forget the features that no remaining example has.

        Parameters
        ----------
        remaining : list
            All examples that are left, encoded.

        Returns
        -------
        remaining : list
            The same with the features' new numbers.
        change : Change or None
            If the layout of the weights is another one now.
        """
        return remaining, None

    def model_weights(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the engine's weights in the layout of the structure, as a copy.

        Parameters
        ----------
        weights : array
            The engine's.
        """
        aligned: NDArray[Any] = _native.aligned_array(weights.size, weights.dtype == np.float32)
        aligned[:] = weights
        return aligned

    @property
    def n_weights(self) -> int:
        """Number of weights without padding."""
        return self.structure.n_features or 0

    def layout(self) -> StructureLayout:
        """Return the layout for regularisers with arrays over the weights."""
        return StructureLayout(self.structure, self.n_weights, self.dtype)
