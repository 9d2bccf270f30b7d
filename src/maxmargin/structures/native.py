"""What an estimator needs of a structure that trains and predicts in native code."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native

__all__ = ["NativeStructure", "PreparedProblem", "StoredStructure"]


class PreparedProblem(NamedTuple):
    """A native training problem, and what it was made of.

    Attributes
    ----------
    problem : _native.Problem
        What a solver trains.
    parts : dict
        The numbers it was made of: arrays, ints, bytes and None. Two problems with the same parts
        are the same.
    """

    problem: _native.Problem
    parts: dict[str, Any]


@runtime_checkable
class NativeStructure(Protocol):
    """A structure whose data, oracle and predictions are in native code.

    A structure that has these methods besides those of `Structure` is trained by its own native
    problem; one that does not have them is called from native code, example by example.
    """

    def prepare_problem(self, X: Any, Y: Any, **fit_params: Any) -> PreparedProblem:
        """Learn what the data has and make the training problem.

        Parameters
        ----------
        X, Y : object
            Inputs and their true outputs, as the structure understands them.
        **fit_params
            ``dtype``, the type of the weights, and what else ``fit`` of the estimator takes.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """

    def memory_needed(self, dtype: Any) -> tuple[str, int]:
        """Return name and size in bytes of the largest arrays of training.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.
        """

    def native_weights(self, weights: Any) -> Any:
        """Return the weights aligned as native code needs them.

        Parameters
        ----------
        weights : object
            Weights of this structure that may have been moved, for example by pickling.
        """

    def predict(self, X: Any, weights: Any, n_jobs: int) -> list[Any]:
        """Return the best output of every example.

        Parameters
        ----------
        X : object
            The inputs.
        weights : object
            The native weights.
        n_jobs : int
            Number of threads.
        """

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given outputs.

        Parameters
        ----------
        X, Y : object
            Inputs, and an output for each.
        weights : object
            The native weights.
        n_jobs : int
            Number of threads.
        """


@runtime_checkable
class StoredStructure(Protocol):
    """A structure whose prepared state goes into a model file."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights.

        Returns
        -------
        meta : dict
            Values that JSON can hold.
        arrays : dict of str to ndarray
            Integers and floats with at most 4 dimensions.
        """

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Structure
            Ready to predict.

        Raises
        ------
        ValueError, KeyError, TypeError
            If they do not make sense.
        """
