"""`path`: a regularisation path of any estimator, from sparse models to dense ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maxmargin.errors import NotCompatibleError
from maxmargin.regularizers import ElasticNet, make_regularizer
from maxmargin.selection.path import RATIOS, Path, path_points, trained_path
from maxmargin.solvers import SolveResult, solve
from maxmargin.structures.weight_layout import StructureLayout

if TYPE_CHECKING:
    from maxmargin.estimators.argument_types import EvalSet, In, Out
    from maxmargin.estimators.structural import StructuralEstimator
    from maxmargin.estimators.training import Training
    from maxmargin.solvers.machine import Machine

__all__ = ["EstimatorPath", "path"]


@dataclass(frozen=True, eq=False)
class EstimatorPath(Path):
    """The models of a path, which can be had as estimators.

    Attributes
    ----------
    template : estimator
        The estimator whose path it is.
    training : Training
        What was trained.
    """

    template: Any = None
    training: Training | None = None

    def estimator(self, k: int) -> Any:
        """Return a model of the path.

        Parameters
        ----------
        k : int
            Which point; ``choose`` gives one.

        Returns
        -------
        estimator
            Fitted, with the elastic net and the C of the point.
        """
        from sklearn.base import clone

        from maxmargin.estimators.training import fitted_copy
        from maxmargin.solvers.history import History

        assert self.training is not None
        point, n = self.points[k], self.training.problem.n_examples
        C = point.C * n if getattr(self.template, "C_scale", "sum") == "mean" else point.C
        params = {"C": C, "regularizer": ElasticNet(l1_ratio=point.l1_ratio)}
        own = self.training.bound.own_weights(self.weights(k))
        fitted = fitted_copy(
            clone(self.template).set_params(**params), self.training.structure, own
        )
        fitted.certificate_, fitted.history_ = point.certificate, History()
        fitted.converged_, fitted.stop_reason_ = point.converged, point.stop_reason
        fitted.n_iter_, fitted.n_examples_ = point.passes, n
        return fitted


def path(
    estimator: StructuralEstimator[In, Out],
    X: In,
    y: Out,
    *,
    l1_ratios: Iterable[float] = RATIOS,
    Cs: Iterable[float] | None = None,
    eval_set: EvalSet[In, Out] = None,
    fit_params: Mapping[str, Any] | None = None,
) -> EstimatorPath:
    """Train an estimator with each of several l1_ratios, each from where the last one ended.

    Parameters
    ----------
    estimator : estimator
        Any of this package whose solver does elastic nets; it is not changed. Its regulariser must
        be the default, for that of each point takes its place.
    X, y : object
        Inputs and true outputs, as its ``fit`` takes them.
    l1_ratios : iterable of float
        In the order of training; from sparse to dense is fastest.
    Cs : iterable of float or None
        Weights of the loss; None: that of the estimator.
    eval_set : tuple (X, y), optional
        Data on which the end of each training is scored, by ``score`` of the estimator;
        ``choose`` needs it.
    fit_params : mapping or None
        What else its ``fit`` takes, ``sample_weight`` for example.

    Returns
    -------
    EstimatorPath
        Sizes, certificates and scores; ``choose`` gives the sparsest model that is about as good as
        the best, and `EstimatorPath.estimator` a model. After Ctrl-C the models so far.

    Examples
    --------
    >>> from maxmargin import SequenceTagger, path
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    >>> found = path(SequenceTagger(C=1.0), X, y, l1_ratios=[0.5, 0.0], eval_set=(X, y))
    >>> [point.l1_ratio for point in found.points]
    [0.5, 0.0]
    >>> found.estimator(found.choose()).predict(X).tolist() == y
    True
    """
    from maxmargin.estimators.eval_set import checked_eval_set
    from maxmargin.estimators.training import fitted_copy, training_of

    if not hasattr(estimator, "fit"):
        raise TypeError(f"found a {type(estimator).__name__}; expected an estimator")
    given = getattr(estimator, "regularizer", None)
    if given is not None and str(make_regularizer(given)) != str(make_regularizer(None)):
        raise NotCompatibleError(
            f"the regulariser of the estimator is {given}; expected None, as each point of a path "
            "has its own"
        )
    if getattr(estimator, "checkpoint", None) is not None:
        raise ValueError("a checkpoint is for one training; several do not go with one")
    training = training_of(estimator, X, y, **(fit_params or {}))
    if str(training.bound.regularizer) != str(make_regularizer(None)):
        raise NotCompatibleError(
            f"this estimator has the regulariser {training.bound.regularizer} of its own, which "
            "does not go with a path"
        )
    test = None if eval_set is None else checked_eval_set(eval_set)
    structure, problem, wanted = training.structure, training.problem, training.wanted
    size = training.bound.prepared.parts.get("n_weights") or structure.n_features or 0

    def train(net: ElasticNet, ratio: float, C: float, machine: Machine | None) -> SolveResult:
        layout = StructureLayout(structure, size, training.bound.dtype)
        return solve(
            problem,
            training.solver,
            C=C,
            dtype=training.bound.dtype,
            regularizer=net.bound(layout),
            gap=wanted.gap,
            max_passes=wanted.max_passes,
            time_limit=estimator.time_limit,
            n_jobs=training.threads,
            verbose=estimator.verbose,
            random_state=estimator.random_state,
            callbacks=estimator.callbacks or (),
            engine=machine,
        )

    def judge(weights: Any) -> dict[str, Any]:
        if test is None:
            return {}
        fitted = fitted_copy(estimator, structure, training.bound.own_weights(weights))
        return {"own_score": float(fitted.score(*test))}

    mean = estimator.C_scale == "mean"
    own = training.C * (training.problem.n_examples if mean else 1)  # a number, if C is "auto"
    points = path_points(l1_ratios, [own] if Cs is None else Cs)
    scale = training.C / own
    made = trained_path([(ratio, C * scale) for ratio, C in points], train, judge)
    return EstimatorPath(made.points, made.n_weights, made.dtype, estimator, training)
