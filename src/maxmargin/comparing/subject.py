"""`compare`: solvers beside each other, on an estimator with its data or on a native problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from maxmargin.comparing.arguments import Solvers
from maxmargin.comparing.comparison import Comparison
from maxmargin.comparing.run import compare_problem
from maxmargin.errors import NotCompatibleError

if TYPE_CHECKING:
    from maxmargin._native import Problem
    from maxmargin.estimators.argument_types import EvalSet
    from maxmargin.estimators.structural import StructuralEstimator
    from maxmargin.regularizers import Regularizer
    from maxmargin.solvers import Certificate

__all__ = ["compare"]

def compare(
    subject: StructuralEstimator[Any, Any] | Problem,
    *data: Any,
    solvers: Solvers | None = None,
    C: float | None = None,
    regularizer: Regularizer | str | None = None,
    reference: float | str | Certificate | None = None,
    score: Callable[[Any], float] | None = None,
    eval_set: EvalSet[Any, Any] = None,
    gap: float = 1e-3,
    time_limit: float | None = 60.0,
    max_passes: int | None = None,
    seed: int | None = 0,
    dtype: str | None = None,
    n_jobs: int | None = None,
    primal: bool = True,
    until: Mapping[str, float] | None = None,
    fit_params: Mapping[str, Any] | None = None,
) -> Comparison:
    """Run solvers on one problem and record where each is after each pass.

    Called as ``compare(estimator, X, y, solvers=[...])`` with any estimator of this package, which
    is not changed, or as ``compare(problem, solvers, C=...)`` with a native problem.

    A run that fails because its solver does not go with the problem or the regulariser, because it
    diverges or for want of memory is reported as failed; the others go on. Ctrl-C ends the run
    under way and leaves out the rest.

    Parameters
    ----------
    subject : estimator or Problem
        What is trained. An estimator brings its C, regulariser, dtype and structure.
    *data
        With an estimator: X and y, as its ``fit`` takes them. With a problem: the solvers, unless
        they are given by their name.
    solvers : iterable, or dict of label -> solver
        Names from `maxmargin.solvers.SOLVERS`, or descriptions. With an estimator, None is its own.
    C : float
        Weight of the loss; of an estimator its own, unless it is given.
    regularizer : Regularizer, "l2" or None
        Ω of a native problem; None means L2. An estimator has its own.
    reference : float, "sdm", Certificate or None
        What is taken for the optimum: a value; a run of SDM, not counted, to a tenth of `gap`; the
        primal and dual of a certificate; or None, the best dual and the best primal that any of
        the runs ends with.
    score : callable or None
        Gives the score of weights (in the native layout) on test data; 1 is perfect. It must not
        keep or change the weights. The test error is one minus the score.
    eval_set : tuple (X, y), optional
        With an estimator: test data, whose ``score`` after each pass takes the place of ``score``.
    gap : float
        A run stops when its relative duality gap is at most this.
    time_limit : float or None
        Seconds of training for each run.
    max_passes : int or None
        Passes of each run; None: about half a minute of counted work, as for
        `maxmargin.solvers.solve`.
    seed : int or None
        Of every run.
    dtype : {"float32", "float64"} or None
        Size of the weights during training; None: float32, or that of the estimator.
    n_jobs : int or None
        Threads, as for `maxmargin.solvers.solve`; None: one, or as many as the estimator has.
    primal : bool
        Record primals, which takes an oracle pass each (with the clock stopped).
    until : dict of measure -> float, or None
        A run stops as soon as all these figures were as small at some pass (not necessarily the
        same one); ``{"dual": 1e-3}`` is a dual within 0.1 % of the reference. "dual" and "primal"
        need a reference that is known beforehand.
    fit_params : mapping or None
        With an estimator: what else its ``fit`` takes, ``sample_weight`` for example.

    Returns
    -------
    Comparison
        Figures pass by pass, tables, a plot.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, there is no such solver, or solvers are given that do not
        solve the same problem.

    Examples
    --------
    >>> from maxmargin import SequenceTagger, compare
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    >>> found = compare(SequenceTagger(C=1.0), X, y, solvers=["sdm", "bcfw"], max_passes=20)
    >>> found.labels
    ['sdm', 'bcfw']
    """
    shared: dict[str, Any] = {
        "reference": reference,
        "gap": gap,
        "time_limit": time_limit,
        "max_passes": max_passes,
        "seed": seed,
        "primal": primal,
        "until": until,
    }
    if not hasattr(subject, "fit"):
        chosen = data if solvers is None else (*data, solvers)
        if len(chosen) != 1:
            raise TypeError(
                f"found {len(chosen)} lists of solvers; expected compare(problem, solvers, C=...)"
            )
        if C is None:
            raise TypeError("a native problem has no C; give one: compare(problem, solvers, C=...)")
        if eval_set is not None or fit_params:
            raise TypeError("eval_set and fit_params go with an estimator, not with a problem")
        native: Any = subject
        return compare_problem(
            native,
            chosen[0],
            C=C,
            regularizer=regularizer,
            score=score,
            dtype=dtype or "float32",
            n_jobs=n_jobs or 1,
            **shared,
        )
    return _of_estimator(
        subject,
        data,
        solvers,
        given={"C": C, "regularizer": regularizer, "score": score, "dtype": dtype},
        n_jobs=n_jobs,
        eval_set=eval_set,
        fit_params=fit_params or {},
        shared=shared,
    )


def _of_estimator(
    estimator: Any,
    data: tuple[Any, ...],
    solvers: Any,
    *,
    given: dict[str, Any],
    n_jobs: int | None,
    eval_set: Any,
    fit_params: Mapping[str, Any],
    shared: dict[str, Any],
) -> Comparison:
    """Compare solvers on what an estimator would train."""
    from maxmargin.estimators.eval_set import checked_eval_set
    from maxmargin.estimators.training import fitted_copy, training_of

    if len(data) != 2:
        raise TypeError(
            f"found {len(data)} arguments behind the estimator; expected compare(estimator, X, y, "
            "solvers=[...])"
        )
    if given["regularizer"] is not None:
        raise TypeError("an estimator has a regulariser of its own; set it there")
    params = {name: given[name] for name in ("C", "dtype") if given[name] is not None}
    if params:
        from sklearn.base import clone

        estimator = clone(estimator).set_params(**params)
    training = training_of(estimator, *data, **fit_params)
    score = given["score"]
    if eval_set is not None:
        if score is not None:
            raise TypeError("score and eval_set both say how good weights are; give one of them")
        if training.problem.has_kernel:
            raise NotCompatibleError("eval_set does not go with a kernel, which has no weights")
        test = checked_eval_set(eval_set)

        def score(weights: Any) -> float:
            own = training.bound.own_weights(weights)
            return float(fitted_copy(estimator, training.structure, own).score(*test))

    return compare_problem(
        training.problem,
        [training.solver] if solvers is None else solvers,
        C=training.C,
        regularizer=training.bound.regularizer,
        score=score,
        dtype=training.bound.dtype,
        n_jobs=n_jobs or training.threads,
        **shared,
    )
