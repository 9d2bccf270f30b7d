"""`LatentSVM`: binary labels, where the best of an example's rows counts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.argument_types import (
    Callbacks,
    EvalSet,
    ExampleWeights,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.latent import LatentEstimator
from maxmargin.estimators.native import NativeEstimator
from maxmargin.features.example_matrix import bias_value
from maxmargin.printable import quoted
from maxmargin.structures.class_labels import class_array, encode_classes
from maxmargin.structures.latent import LatentTraining
from maxmargin.structures.latent_rows import LatentRows
from maxmargin.types import Bags, Labels

__all__ = ["LatentSVM"]


class LatentSVM(
    ClassifierMixin,  # type: ignore[misc]
    LatentEstimator[Bags, ArrayLike],
    NativeEstimator[Bags, ArrayLike],
):
    """A binary classifier of sets of rows, whose score is that of the best row.

    Minimises ½‖w‖² + C Σ_{pos} max(0, 1 - max_z w·φ(x_i, z)) + C Σ_{neg} max(0, 1 + max_z w·φ(x_i,
    z)), where the rows φ(x_i, z) of an example are what X has of it: section 1.4 of the
    dual-coordinate paper (with l = +1 for negatives, where it prints -1), known from part-based
    detectors and multiple-instance learning. The best rows of positive examples are imputed, those
    of negative ones range over all: with the former fixed, the problem is convex. Training
    alternates between the two; the objective never rises, which is checked while it runs. The
    result is a local optimum, which depends on the start.

    Parameters
    ----------
    C, C_scale, solver, regularizer, dtype, n_jobs, verbose, random_state, callbacks
        As for `StructuralSVM`.
    fit_intercept : bool
        Whether there is a bias: the weight of one more feature, which all rows have. It is
        regularised like all others, the less the larger its value is.
    intercept_scaling : float
        The value of that feature.
    start : {"first", "random"}
        The row of each positive example that the first convex step takes for the best.
    n_starts, anneal, self_paced, gap, tol, max_outer, max_passes, time_limit, checkpoint, resume
        As for `LatentStructuralSVM`.

    Attributes
    ----------
    classes_ : array
        The negative and the positive class, in sorted order.
    coef_ : array of shape (1, n_features)
        The weights of the features.
    intercept_ : array of shape (1,)
        What is added to the score of every row.
    objective_, certificate_, history_, outer_history_, start_objectives_, converged_, stop_reason_
        As for `LatentStructuralSVM`.

    Examples
    --------
    A bag is positive if one of its numbers is large:

    >>> import numpy as np
    >>> from maxmargin import LatentSVM
    >>> bags = [[[0.1], [3.0]], [[2.9], [0.2], [0.3]], [[0.2]], [[0.1], [0.4]]]
    >>> model = LatentSVM(C=100.0).fit(bags, [1, 1, 0, 0])
    >>> model.predict([[[0.3], [0.2], [2.8]], [[0.5]]]).tolist()
    [1, 0]
    >>> model.predict_latent([[[0.3], [0.2], [2.8]]]).tolist()
    [2]
    """

    _classes_given: list[Any] | None = None

    kind: ClassVar[str] = "latent"
    structure_type: ClassVar[Any] = LatentRows

    def __init__(
        self,
        C: float = 1.0,
        *,
        C_scale: str = "sum",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        start: str = "first",
        n_starts: int = 1,
        anneal: float = 0.0,
        self_paced: bool = False,
        solver: SolverLike = "sdm",
        regularizer: RegularizerLike = None,
        gap: float = 0.001,
        tol: float = 1e-3,
        max_outer: int = 100,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float64",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
        callbacks: Callbacks = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            solver=solver,
            C=C,
            C_scale=C_scale,
            regularizer=regularizer,
            gap=gap,
            max_passes=max_passes,
            time_limit=time_limit,
            dtype=dtype,
            n_jobs=n_jobs,
            warm_start=False,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.fit_intercept, self.intercept_scaling = fit_intercept, intercept_scaling
        self.start, self.n_starts = start, n_starts
        self.anneal, self.self_paced = anneal, self_paced
        self.tol, self.max_outer = tol, max_outer

    def _new_structure(self) -> Any:
        return self._new_latent()

    def _new_latent(self) -> LatentRows:
        return LatentRows(bias_value(self.fit_intercept, self.intercept_scaling))

    def _start_of(self, latent: LatentRows) -> str:
        return self.start

    def _online_structure(self) -> LatentRows:
        structure = self._new_latent()
        if self._classes_given is not None:
            structure.classes_ = self._classes_given
        return structure

    def partial_fit(
        self,
        X: Bags,
        y: ArrayLike,
        classes: Labels = None,
        sample_weight: ExampleWeights = None,
        *,
        ids: Iterable[Hashable] | None = None,
    ) -> Self:
        """Learn from more examples, without forgetting those that were seen before.

        The best rows of new positive examples are chosen under the present weights, and those of
        all of them now and then anew; see ``docs/online.md``.

        Parameters
        ----------
        X : list of matrices, or array of shape (n_examples, n_rows, n_features)
            The rows of every example; as many features as in the first call.
        y : sequence
            Labels of two classes.
        classes : array, optional
            Both classes, in the first call: it may then have examples of one only.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example.
        ids : iterable, optional
            A name for each example, by which ``forget`` knows it.

        Returns
        -------
        LatentSVM
            Itself.
        """
        self._classes_given = None
        if classes is not None:
            given = encode_classes(classes)[1]
            known = given if self._is_new else self.structure_.classes_
            if len(given) != 2 or given != known:
                raise ValueError(
                    f"classes is {quoted(classes)}; expected two"
                    + ("" if self._is_new else f", those of the first call: {quoted(known)}")
                )
            self._classes_given = given
        return self._learn_more(X, y, ids, {"sample_weight": sample_weight})

    @property
    def _is_new(self) -> bool:
        return self._online is None and self._trained_state is None

    def _one_start(
        self, latent: LatentRows, X: Any, Y: Any, rng: np.random.Generator, first: bool, **more: Any
    ) -> LatentTraining:
        start = self.start if first else "random"
        return latent.prepare_training(X, Y, start=start, rng=rng, dtype=self.dtype, **more)

    def _trained_structure(self, latent: LatentRows) -> Any:
        return latent

    def _fit(self, X: Any, Y: Any, **fit_params: Any) -> None:
        self._fit_latent(X, Y, **fit_params)

    def fit(
        self,
        X: Bags,
        y: ArrayLike,
        sample_weight: ExampleWeights = None,
        *,
        eval_set: EvalSet[Bags, ArrayLike] = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : list of matrices, or array of shape (n_examples, n_rows, n_features)
            The rows of every example, dense or sparse; their number may differ.
        y : sequence
            Labels of two classes.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        eval_set : None
            Not done with latent parts.

        Returns
        -------
        LatentSVM
            Itself.

        Raises
        ------
        ValueError, TypeError
            If an example has no rows, a number is not finite, or y has not two classes; the message
            names the example.
        """
        return super().fit(X, y, sample_weight, eval_set=eval_set)

    @property
    def classes_(self) -> NDArray[Any]:
        """The negative and the positive class."""
        check_is_fitted(self, "weights_")
        return class_array(self.structure_.classes_)

    @property
    def coef_(self) -> NDArray[Any]:
        """The weights of the features."""
        check_is_fitted(self, "weights_")
        coef: NDArray[Any] = self.weights_[None, : self.structure_.n_columns_]
        return coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """What is added to the score of every row."""
        check_is_fitted(self, "weights_")
        bias = self.structure_.bias
        return np.array([float(self.weights_[-1]) * bias if bias != 0 else 0.0])

    def decision_function(self, X: Bags) -> NDArray[np.float64]:
        """Return the score of the best row of every example.

        Parameters
        ----------
        X : list of matrices
            The rows of every example.

        Returns
        -------
        array of shape (n_examples,)
            Above 0 for the positive class.
        """
        check_is_fitted(self, "weights_")
        return np.array([own.max() for own in self.structure_.scores(X, self.weights_)])

    def predict(self, X: Bags) -> NDArray[Any]:
        """Return the class of every example.

        Parameters
        ----------
        X : list of matrices
            The rows of every example.

        Returns
        -------
        array of shape (n_examples,)
            The positive class where the best row has a score above 0.
        """
        found: NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return found

    def predict_latent(self, X: Bags) -> NDArray[np.intp]:
        """Return the best row of every example.

        Parameters
        ----------
        X : list of matrices
            The rows of every example.

        Returns
        -------
        array of shape (n_examples,)
            Numbers of rows, the first of several best ones.
        """
        check_is_fitted(self, "weights_")
        scores = self.structure_.scores(X, self.weights_)
        return np.array([int(np.argmax(own)) for own in scores], dtype=np.intp)

    def _after_load(self) -> None:
        from maxmargin.solvers.outer import OuterHistory

        if self._online is not None:  # which tells all of it
            return

        self.outer_history_ = OuterHistory()
        self.objective_ = math.nan  # which files do not have
        self.start_objectives_ = []
