"""The structure protocol: how a user describes an output space.

A *structure* is an output space: joint features f(x, y), a loss, and an argmax. Three methods are
enough (`Structure` explains them); every solver and every regulariser then works with it. Deriving
from `Structure` is the documented way, but any object with the same methods will do
(`maxmargin.structures.duck`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.structures.equality import equal_outputs, output_key
from maxmargin.structures.vectors import Features, sparse_vector

__all__ = ["Structure"]


class Structure(ABC):
    """Base class of a user's own output space.

    A subclass writes three methods:

    - ``joint_feature(x, y)``: the joint feature vector f(x, y);
    - ``loss(y, y_hat)``: how bad ``y_hat`` is when ``y`` is the truth, at least 0, and 0 for the
      truth itself;
    - ``argmax(x, w, truth=None)``: the output with the highest score w.f(x, y); with a truth, the
      output with the highest ``loss(truth, y) + w.f(x, y)``: the oracle (margin-rescaled).

    If the outputs of x can be listed, ``outputs(x)`` may be written instead of ``argmax``, which
    then tries them all.

    Everything else is optional: ``n_features``, ``nonnegative``, ``prepare``, ``score``,
    ``equal``, ``encode``, ``decode``, ``true_output`` and ``best_by_loss``; ``state`` and
    ``restore`` are for model files (see `StructuralSVM.save`). No method may change its arguments,
    and each must give the same answer to the same question.
    ``maxmargin.structures.check.check_structure`` tries a structure out and says in words what is
    wrong with it.

    Attributes
    ----------
    n_features : int or None
        Size of the joint feature vector: a class attribute, an attribute set in ``__init__`` or
        in ``prepare``, or a property. With None (the default) it is taken from the first feature
        vector that tells its size: a numpy array or a scipy.sparse row does, a dict or a tuple
        (indices, values) does not.
    nonnegative : None, True, or array of int or bool
        Which weights must not be negative, because ``argmax`` could not cope with it (the pairs of
        a graph cut, for example): indices, a mask, or True for all. An attribute as ``n_features``
        is. Training and predictions then see no such weights.

    Examples
    --------
    Several yes/no labels for each x, where neighbouring labels like to agree. An output is a tuple
    of 0s and 1s. The weights are one row per label and one weight for each agreement:

    >>> import itertools
    >>> import numpy as np
    >>> from maxmargin.structures.base import Structure
    >>> class Tags(Structure):
    ...     def __init__(self, n_labels):
    ...         self.n_labels = n_labels
    ...
    ...     def joint_feature(self, x, y):
    ...         agreements = sum(a == b for a, b in itertools.pairwise(y))
    ...         return np.append(np.outer(y, x).ravel(), agreements)
    ...
    ...     def loss(self, y, y_hat):
    ...         return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))
    ...
    ...     def argmax(self, x, w, truth=None):
    ...         yes = w[:-1].reshape(self.n_labels, len(x)) @ x  # scores of "yes"; "no" scores 0
    ...         best = {0: (0.0, ()), 1: (0.0, ())}  # last label -> best value, its output
    ...         for j in range(self.n_labels):
    ...             step = {}
    ...             for label in (0, 1):
    ...                 own = yes[j] * label + (truth is not None and truth[j] != label)
    ...                 value, y = max(
    ...                     (v + own + w[-1] * (j > 0 and y[-1] == label), y)
    ...                     for v, y in best.values()
    ...                 )
    ...                 step[label] = (value, (*y, label))
    ...             best = step
    ...         return max(best.values())[1]

    >>> tags = Tags(n_labels=3)
    >>> x = np.array([1.0, -2.0])
    >>> w = np.array([1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.25])
    >>> tags.argmax(x, w)
    (1, 0, 0)
    >>> tags.score(x, (1, 0, 0), w)
    1.25
    >>> tags.argmax(x, w, truth=(1, 0, 0))
    (1, 1, 0)

    Let the library look for mistakes:

    >>> from maxmargin.structures.check import check_structure
    >>> X = [np.array([1.0, -2.0]), np.array([0.5, 1.0])]
    >>> Y = [(1, 0, 0), (0, 1, 1)]
    >>> check_structure(tags, X, Y).ok
    True

    The outputs can be listed here, so ``argmax`` could have been left out:

    >>> class SmallTags(Tags):
    ...     argmax = Structure.argmax  # by brute force
    ...
    ...     def outputs(self, x):
    ...         return itertools.product((0, 1), repeat=self.n_labels)
    >>> SmallTags(n_labels=3).argmax(x, w)
    (1, 0, 0)
    """

    n_features: int | None = None
    nonnegative: Any = None

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> Features:
        """Return the joint feature vector f(x, y).

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        y : object
            An output. If it is no possible output for this x, raise a ValueError.

        Returns
        -------
        1-d array, scipy.sparse row of shape (1, d), dict, or tuple
            A dict maps indices to values; a tuple is (indices, values), where an index that occurs
            twice counts with the sum of its values. The size is the same for all x and y.
        """

    @abstractmethod
    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss of answering ``y_hat`` when ``y`` is the truth.

        Parameters
        ----------
        y : object
            The truth, as it stands in Y.
        y_hat : object
            Any output, as ``argmax`` returns it.

        Returns
        -------
        float
            Finite, at least 0, and 0 if ``y_hat`` equals ``y``.
        """

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best output for x: with a truth, the oracle's answer.

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        w : ndarray of shape (n_features,)
            The weights, 8-byte. The array is read-only during training. Kept, it never changes;
            otherwise the same array may hold other numbers at the next call.
        truth : object or None
            None: maximise ``w.f(x, y)``. Else: maximise ``loss(truth, y) + w.f(x, y)``.

        Returns
        -------
        object
            An output; not None. It should be a new object, or one that later calls leave alone.

        Notes
        -----
        The default tries all of ``outputs(x)``; the first of several best ones wins.
        """
        best: Any = None
        best_value = -np.inf
        empty = True
        for y in self.outputs(x):
            value = float(self.score(x, y, w))
            if truth is not None:
                value += float(self.loss(truth, y))
            if empty or value > best_value:
                best, best_value, empty = y, value, False
        if empty:
            raise ValueError("outputs(x) is empty: there must be at least one output")
        return best

    def outputs(self, x: Any) -> Iterable[Any]:
        """Return all outputs that are possible for x (optional).

        Parameters
        ----------
        x : object
            An input, as it stands in X.

        Returns
        -------
        iterable
            All outputs, the truth among them.

        Notes
        -----
        Training reads the features and losses of the outputs of an example once and keeps them, as
        long as those of all examples take at most 64 MB.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement argmax(x, w, truth=None), or outputs(x) so that "
            "argmax can try all outputs"
        )

    def best_by_loss(self, x: Any, w: NDArray[np.float64], truth: Any) -> Iterable[Any]:
        """Return for every loss that an output can have the output with the best score (optional).

        With it (or with `outputs`) training with slack rescaling or quadratic slacks is exact; with
        `argmax` alone these formulations can only be approximated.

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        w : ndarray of float64, shape (n_features,)
            The weights; read-only.
        truth : object
            The true output.

        Returns
        -------
        iterable
            Outputs other than the truth, one for each value of ``loss(truth, y)``: the one whose
            score is highest among those with that loss. More outputs do no harm.
        """
        raise NotImplementedError(f"{type(self).__name__} does not have best_by_loss")

    def score(self, x: Any, y: Any, w: NDArray[np.float64]) -> float:
        """Return the score w.f(x, y) of an output (optional: only if it can be had faster).

        Parameters
        ----------
        x, y : object
            An input and an output.
        w : ndarray of shape (n_features,)
            The weights.

        Returns
        -------
        float
            The score.
        """
        features = self.joint_feature(x, y)
        if isinstance(features, np.ndarray) and features.shape == w.shape:
            return float(features @ w)
        return sparse_vector(features, len(w)).dot(w)

    def true_output(self, x: Any, truth: Any) -> Any:
        """Return the output that stands for a truth (optional: if truths are no outputs).

        Truths may be of another kind than outputs: grades of documents, where outputs are
        rankings. Then ``loss`` and ``argmax`` get truths as they stand in Y, and all outputs are
        compared with this one.

        Parameters
        ----------
        x : object
            An input, as it stands in X.
        truth : object
            Its truth, as it stands in Y.

        Returns
        -------
        object
            An output that has no loss; by default the truth itself.
        """
        return truth

    def prepare(self, X: Any, Y: Any) -> None:  # noqa: B027 (optional, not forgotten)
        """Look at the training data before training (optional): count labels, set n_features, ...

        An estimator calls it once per ``fit``, on a deep copy of the structure: the user's object
        is never changed.

        Parameters
        ----------
        X, Y : sequence
            The inputs and their true outputs.
        """

    def equal(self, y: Any, y_hat: Any) -> bool:
        """Tell whether two outputs are the same (optional).

        The default compares by content: lists, tuples and numpy arrays entry by entry (a list
        may equal an array), dicts, scipy.sparse matrices and dataclasses too, and anything else
        with ``==``.

        Parameters
        ----------
        y, y_hat : object
            Two outputs.

        Returns
        -------
        bool
            True if they are the same output.
        """
        return equal_outputs(y, y_hat)

    def encode(self, y: Any) -> Hashable:
        """Return a hashable key of an output, the same for equal outputs (optional).

        Parameters
        ----------
        y : object
            An output.

        Returns
        -------
        hashable
            By default the content of y as nested tuples.
        """
        return output_key(y)

    def decode(self, code: Hashable) -> Any:
        """Return the output that ``encode`` made a key of (optional).

        Parameters
        ----------
        code : hashable
            A key from ``encode``.

        Returns
        -------
        object
            The output.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must implement decode to turn a key back into an output"
        )
