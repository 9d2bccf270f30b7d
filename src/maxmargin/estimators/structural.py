"""What all estimators share: prepare the data, train, keep the model."""

from __future__ import annotations

import copy
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin import _native
from maxmargin.errors import ConvergenceWarning, NotCompatibleError
from maxmargin.estimators.accuracy import Accuracy
from maxmargin.estimators.argument_types import EvalSet, In, Out
from maxmargin.estimators.binding import bind
from maxmargin.estimators.callbacks import (
    CallbackSupportMixin,
    FitTasks,
    closing_callbacks,
    with_callbacks,
)
from maxmargin.estimators.data_hash import data_hash_of
from maxmargin.estimators.eval_set import checked_eval_set, keep_best_pass, validation_of
from maxmargin.estimators.online import OnlineMixin, Trained
from maxmargin.estimators.threads import threads_of
from maxmargin.estimators.training import Training
from maxmargin.memory import require_memory
from maxmargin.regularizers import make_regularizer
from maxmargin.selection.validation import best_pass
from maxmargin.solvers import SolveResult, make_solver, solve
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.driver import model_weights, require_learned
from maxmargin.solvers.history import History, PassRecord
from maxmargin.solvers.interrupts import HeldInterrupt
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.registry import repeatable
from maxmargin.structures.adapter import PythonProblem, paired_examples
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.duck import (
    describe_exception,
    structure_name,
)
from maxmargin.structures.growing import keeps_examples
from maxmargin.structures.native import NativeStructure, PreparedProblem

__all__ = ["StructuralEstimator", "own_copy", "sum_weight"]


class _WarmStart(NamedTuple):
    """What the next fit goes on from."""

    engine: Machine
    problem: _native.Problem  # the engine's own
    data_hash: bytes


class StructuralEstimator(OnlineMixin[In, Out], CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """What every estimator does: prepare, check, solve, keep the model.

    A subclass names its parameters in its own ``__init__`` and says in ``_new_structure`` what is
    trained; see `StructuralSVM` for the meaning of the parameters and attributes.
    """

    weights_: Any
    structure_: Any
    certificate_: Certificate
    history_: History
    converged_: bool
    stop_reason_: str
    n_iter_: int
    n_examples_: int
    best_pass_: int
    #: Of estimators whose steps several threads may make at the same time.
    deterministic: bool = False
    eval_scores_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        solver: Any,
        C: float | str,
        C_scale: str,
        regularizer: Any,
        gap: Any,
        max_passes: int | None,
        time_limit: float | None,
        dtype: str,
        n_jobs: int | None,
        warm_start: bool,
        verbose: int,
        random_state: Any,
        callbacks: Any,
        checkpoint: Any,
        resume: bool,
    ) -> None:
        self.solver = solver
        self.C = C
        self.C_scale = C_scale
        self.regularizer = regularizer
        self.gap = gap
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.resume = resume

    @abstractmethod
    def _new_structure(self) -> Structure:
        """Return the structure to be trained, which nobody else holds."""

    def _loss_weight(self, structure: Any) -> Any:
        """Return the number that C stands for, once the structure has seen the data."""
        return self.C

    @with_callbacks
    def _fit(
        self, X: Any, Y: Any, *, eval_set: EvalSet[Any, Any] = None, **fit_params: Any
    ) -> None:
        """Train and keep the model; after Ctrl-C too, which is raised when all of it is there."""
        with closing_callbacks(self.callbacks):
            self._train(self._training(X, Y, fit_params), eval_set)

    def _training(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Training:
        """Return all that a training needs, with the data as a problem."""
        solver = make_solver(self.solver)
        if self.deterministic not in (True, False):
            raise ValueError(f"deterministic must be True or False, got {self.deterministic!r}")
        if self.deterministic:
            solver = repeatable(solver)
        threads = threads_of(self.n_jobs)
        structure = self._new_structure()
        make_regularizer(self.regularizer)  # a wrong one is better told before the data are read
        wanted = self._accuracy(X, Y)
        prepared, dtype = self._prepare(structure, X, Y, fit_params, wanted.dtype)
        bound = bind(
            make_regularizer(self._regularizer(structure)),
            structure,
            prepared,
            dtype=dtype,
            examples=(X, Y),
            fit_params=fit_params,
        )
        C = sum_weight(
            self._loss_weight(structure), self.C_scale, bound.prepared.problem.n_examples
        )
        return Training((X, Y), fit_params, structure, bound, solver, C, wanted, threads)

    def _train(self, training: Training, eval_set: EvalSet[Any, Any] = None) -> None:
        structure, bound, wanted = training.structure, training.bound, training.wanted
        warm = getattr(self, "_warm", None) if self.warm_start else None
        data_hash = b""
        if self.warm_start:
            data_hash = data_hash_of({**bound.prepared.parts, "dtype": bound.dtype})
        if warm is not None and warm.data_hash != data_hash:
            raise ValueError(
                "warm_start=True goes on from the last fit, but the data, the labels, the "
                "features, the loss or the dtype have changed since; fit with warm_start=False, "
                "or a clone of the estimator, to start anew"
            )
        problem = training.problem if warm is None else warm.problem

        def model_after(records: list[PassRecord], engine: Machine) -> dict[str, Any]:
            last = records[-1]
            return {
                "structure_": structure,
                "weights_": bound.own_weights(model_weights(problem, engine)),
                "certificate_": Certificate(last.primal, last.dual, engine.C, problem.n_examples),
                "history_": History(records),
                "converged_": bool(last.gap <= wanted.enough),
                "stop_reason_": "copied for a callback",
                "n_iter_": last.n_pass,
                "n_examples_": problem.n_examples,
            }

        validation = None
        if eval_set is not None:
            validation = validation_of(self, training, *checked_eval_set(eval_set))
        tasks = FitTasks(self, *training.examples, model_after)
        observers: list[Any] = [*tasks.observers()]
        if validation is not None:
            observers.append(validation)
        with warnings.catch_warnings():
            if wanted.enough != wanted.gap:  # the rest is a bonus
                warnings.simplefilter("ignore", ConvergenceWarning)
            result = solve(
                problem,
                training.solver,
                C=training.C,
                dtype=bound.dtype,
                regularizer=bound.regularizer,
                gap=wanted.gap,
                max_passes=wanted.max_passes,
                time_limit=self.time_limit,
                n_jobs=training.threads,
                verbose=self.verbose,
                random_state=self.random_state,
                callbacks=[*(self.callbacks or ()), *observers],
                checkpoint=self.checkpoint,
                resume=self.resume,
                engine=None if warm is None else warm.engine,
            )
        require_learned(result)
        best = None
        if validation is not None:
            at_end = validation.score(result.weights).value
            best = best_pass(validation, result, at_end, training.threads)
        with HeldInterrupt() as held:
            # Everything is set at the end: a fit that fails leaves the fitted model as it was.
            self._forget_online()
            self._keep(structure, result, problem)
            examples = None
            if keeps_examples(structure):
                examples = (*training.examples, training.fit_params)
            parts = bound.prepared.parts
            params = self._present_params()
            self._trained_state = Trained(result.engine, parts, examples, bound.dtype, params)
            self.weights_ = bound.own_weights(result.weights)
            if wanted.enough != wanted.gap and not result.converged:
                self.converged_ = result.certificate.gap <= wanted.enough
            keep_best_pass(self, validation, best, bound.own_weights, wanted.gap)
            if self.warm_start:
                self._warm = _WarmStart(result.engine, problem, data_hash)
            else:
                # The engine holds the data and all planes: often far more than the model.
                self.__dict__.pop("_warm", None)
            self._after_fit()
        tasks.end_fit()
        if result.interrupted or held.came:
            raise KeyboardInterrupt
        if wanted.enough != wanted.gap and not result.converged and not self.converged_:
            warnings.warn(
                f"training stopped ({result.stop_reason}) with a gap of "
                f"{result.certificate.gap:.2g}; expected at most {wanted.enough:g}",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _after_fit(self) -> None:
        """Set what else a fitted model has, once structure and weights are there."""

    def _accuracy(self, X: Any, Y: Any) -> Accuracy:
        """Return what the training is asked for."""
        return Accuracy(self.gap, self.gap, self.dtype, self.max_passes)

    def _prepare(
        self, structure: Structure, X: Any, Y: Any, fit_params: Mapping[str, Any], dtype: str
    ) -> tuple[PreparedProblem, str]:
        """Return the training problem and the type of its weights."""
        if isinstance(structure, NativeStructure):
            prepared = structure.prepare_problem(X, Y, **fit_params, dtype=dtype)
            require_memory(*structure.memory_needed(dtype))
            return prepared, dtype
        inputs, truths = paired_examples(X, Y)
        structure.prepare(inputs, truths)
        weights = sequence_weights(fit_params.get("sample_weight"), len(inputs), "example")
        adapter = PythonProblem(structure, inputs, truths, example_weight=weights)
        require_memory(
            f"the weights ({adapter.n_weights} features, float64, with a copy and the certificate)",
            3 * 8 * adapter.n_weights,
            advice="use fewer features",
        )
        # All that tells one training set from another without asking what its examples are.
        parts = {
            "n_weights": adapter.n_weights,
            "truths": [adapter.truth_features(i)[:2] for i in range(adapter.n_examples)],
            "example_weight": weights,
        }
        return PreparedProblem(_native.PythonProblem(adapter), parts), "float64"

    def _regularizer(self, structure: Structure) -> Any:
        """Return the regulariser of the prepared structure."""
        return self.regularizer

    def _keep(self, structure: Structure, result: SolveResult, problem: _native.Problem) -> None:
        self.structure_ = structure
        self.weights_ = result.weights
        self.certificate_ = result.certificate
        self.history_ = result.history
        self.converged_ = result.converged
        self.stop_reason_ = result.stop_reason
        self.n_iter_ = result.n_passes
        self.n_examples_ = problem.n_examples

    def _threads(self) -> int:
        """Threads for prediction, once fitted."""
        check_is_fitted(self, "weights_")
        return threads_of(self.n_jobs)

    def __getstate__(self) -> dict[str, Any]:
        # An engine points into native memory and cannot be written down.
        state = dict(super().__getstate__())
        state.pop("_warm", None)
        state.pop("_trained_state", None)
        # During fit, scikit-learn keeps the tasks here; a copy made meanwhile is not being fitted.
        state.pop("_callback_fit_ctx", None)
        state.pop("_skl_callbacks_to_teardown", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "weights_" in state and isinstance(self.structure_, NativeStructure):
            # Unpickled arrays lie anywhere: align them once, not at every prediction.
            self.weights_ = self.structure_.native_weights(self.weights_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True  # inputs are whatever the structure understands
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def own_copy(structure: Any) -> Any:
    """Return a deep copy of a user's structure, which training may change.

    Raises
    ------
    NotCompatibleError
        If it cannot be copied.
    """
    try:
        return copy.deepcopy(structure)
    except MemoryError:
        raise
    except Exception as error:
        raise NotCompatibleError(
            f"{structure_name(structure)} cannot be deep-copied, which training needs because it "
            f"must not change it: {describe_exception(error)}"
        ) from error


def sum_weight(C: Any, scale: Any, n_examples: int) -> Any:
    """Return the C of the sum over examples; what is wrong with C itself is the solver's to say."""
    if scale == "sum":
        return C
    if scale == "mean":
        return C / n_examples if isinstance(C, numbers.Real) else C
    raise ValueError(f'C_scale must be "sum" or "mean", got {scale!r}')
