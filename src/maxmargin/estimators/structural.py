"""`StructuralSVM`: any structure, any solver; and what all estimators here share."""

from __future__ import annotations

import copy
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin import _native
from maxmargin.errors import ConvergenceWarning, NotCompatibleError, StructureError
from maxmargin.estimators.accuracy import Accuracy
from maxmargin.estimators.binding import bind, with_signs
from maxmargin.estimators.callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from maxmargin.estimators.data_hash import data_hash_of
from maxmargin.estimators.empty import object_array, predicted
from maxmargin.estimators.eval_set import checked_eval_set, keep_best_pass, validation_of
from maxmargin.estimators.online import OnlineMixin, Trained
from maxmargin.estimators.threads import threads_of
from maxmargin.estimators.trained_meta import require_stored, set_model, training_figures
from maxmargin.estimators.training import Training
from maxmargin.io.structure_file import StructureModel, load_structure, save_structure
from maxmargin.io.training_meta import NOT_KEPT
from maxmargin.io.user_structure import StoredUserStructure, UserStructure
from maxmargin.memory import require_memory
from maxmargin.regularizers import make_regularizer
from maxmargin.selection.validation import best_pass
from maxmargin.solvers import SolveResult, make_solver, solve
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.driver import model_weights, require_learned
from maxmargin.solvers.history import History, PassRecord
from maxmargin.solvers.interrupts import HeldInterrupt
from maxmargin.solvers.machine import Machine
from maxmargin.structures.adapter import PythonProblem, example_list, paired_examples, real_number
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.duck import (
    as_structure,
    describe_exception,
    structure_name,
    users_object,
)
from maxmargin.structures.growing import keeps_examples
from maxmargin.structures.native import NativeStructure, PreparedProblem

__all__ = ["StructuralEstimator", "StructuralSVM", "own_copy", "sum_weight"]


class _WarmStart(NamedTuple):
    """What the next fit goes on from."""

    engine: Machine
    problem: _native.Problem  # the engine's own
    data_hash: bytes


class StructuralEstimator(OnlineMixin, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
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
    eval_scores_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        solver: Any,
        C: float,
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

    @with_callbacks
    def _fit(self, X: Any, Y: Any, *, eval_set: Any = None, **fit_params: Any) -> None:
        """Train and keep the model; after Ctrl-C too, which is raised when all of it is there."""
        self._train(self._training(X, Y, fit_params), eval_set)

    def _training(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Training:
        """Return all that a training needs, with the data as a problem."""
        solver = make_solver(self.solver)
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
        C = sum_weight(self.C, self.C_scale, bound.prepared.problem.n_examples)
        return Training((X, Y), fit_params, structure, bound, solver, C, wanted, threads)

    def _train(self, training: Training, eval_set: Any = None) -> None:
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
            self._trained_state = Trained(result.engine, parts, examples, bound.dtype)
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


class StructuralSVM(StructuralEstimator):
    """A large-margin model of any structure, trained by any solver.

    Minimises ½‖w‖² + C Σ_i max_y [loss(y_i, y) + w·f(x_i, y) - w·f(x_i, y_i)].

    Parameters
    ----------
    structure : Structure or object with its methods
        What is predicted: `Chain`, or a description of your own (see `Structure`). It is never
        changed; a deep copy of it is prepared and trained.
    solver : str or Solver
        The algorithm, by name ("sdm") or with its own parameters (``SDM(...)``).
    C : float
        Weight of the loss; positive.
    C_scale : {"sum", "mean"}
        "sum": C multiplies the sum over the examples, as above. "mean": it multiplies their mean,
        so that C/n takes the place of C.
    regularizer : Regularizer, "l2" or None
        None is `L2`. Others are `ElasticNet`, `Nonnegative`, `Bounded` and `GaussianPrior`, and
        those of single solvers, `L1` and `L1Ball`.
    gap : float
        Training stops when the relative duality gap (primal - dual) / primal is this small.
    max_passes : int or None
        Most passes over the examples. None: as many as about half a minute of work is, by count and
        not by the clock, and at least 1000.
    time_limit : float or None
        Most seconds of training; the final certificate and callbacks come on top.
    dtype : {"float32", "float64"}
        Type of the weights. Structures written in Python always train in float64. Where rounding
        of float32 weights keeps the gap above the one asked for (a large C, features of very
        different sizes), training goes on in float64 by itself: ``weights_`` are then float64,
        because the certificate is of them, and ``certificate_.widened`` and ``stop_reason_`` say
        so.
    n_jobs : int or None
        Threads for passes at a fixed w, for certificates and for prediction, as scikit-learn
        counts them (None is 1, -1 all processors). The result does not depend on it. Structures
        written in Python use one.
    warm_start : bool
        Whether ``fit`` goes on from where the last one ended, which needs the same data; C and
        the stopping rules may be different. The state of training is then kept in memory with the
        estimator. It is not pickled: after unpickling, the next ``fit`` starts anew.
    verbose : int
        1 or 2: progress on standard error.
    random_state : int, RandomState, Generator or None
        Seed of the visiting order.
    callbacks : list of callables or None
        Each is called with the record of every pass; a true answer ends training. Callbacks of
        scikit-learn (1.9 or later) are given to ``set_callbacks`` instead; see Notes.
    checkpoint : path or None
        File where the state of training is saved now and then.
    resume : bool
        Whether to go on from the checkpoint if it is there.

    Attributes
    ----------
    structure_ : Structure
        The prepared copy of the structure.
    weights_ : array
        The weights, in the layout of the structure (``structure_.unpack(weights_)`` of a `Chain`).
    certificate_ : Certificate
        Primal, dual and gap of these weights, computed from scratch.
    history_ : History
        What each pass did.
    n_iter_ : int
        Number of passes.
    converged_ : bool
        Whether the certificate is within ``gap``, or the solver's own criterion holds.
    stop_reason_ : str
        Why training ended: a limit, the gap that was reached, the solver's criterion.
    n_examples_ : int
        Number of training examples.

    Notes
    -----
    With scikit-learn 1.9 or later, ``set_callbacks(ProgressBar())`` and the like work as in
    scikit-learn. Each pass is a task within the fit, and a true answer at the end of a pass ends
    training. The ``fitted_estimator`` of a pass has the weights of that moment; the primal of its
    ``certificate_`` is as training accumulated it, NaN after passes that do not know it.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuralSVM, Structure
    >>> class Classes(Structure):
    ...     def joint_feature(self, x, y):
    ...         return np.kron(np.eye(3)[y], x)
    ...
    ...     def loss(self, y, y_hat):
    ...         return float(y != y_hat)
    ...
    ...     def outputs(self, x):
    ...         return range(3)
    >>> X = [np.array(x) for x in ([1.0, 0.0], [0.0, 1.0], [-1.0, -1.0])]
    >>> model = StructuralSVM(Classes(), C=10.0).fit(X, [0, 1, 2])
    >>> model.predict(X).tolist()
    [0, 1, 2]
    >>> bool(model.certificate_.gap <= 0.01)
    True
    """

    kind: ClassVar[str] = "structural"
    _trained: dict[str, Any]

    def __init__(
        self,
        structure: Any = None,
        *,
        solver: Any = "sdm",
        C: float = 1.0,
        C_scale: str = "sum",
        regularizer: Any = None,
        gap: float = 0.01,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        callbacks: Any = None,
        checkpoint: Any = None,
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
            warm_start=warm_start,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.structure = structure

    def _new_structure(self) -> Structure:
        if self.structure is None:
            raise NotCompatibleError(
                "StructuralSVM needs a structure: StructuralSVM(structure=Chain()), or one of your "
                "own with joint_feature, loss and argmax"
            )
        as_structure(self.structure)  # a class, or missing methods, are better told before copying
        return as_structure(own_copy(self.structure))

    def _regularizer(self, structure: Structure) -> Any:
        return with_signs(self.regularizer, structure)

    def fit(
        self, X: Any, Y: Any, sample_weight: Any = None, *, eval_set: Any = None
    ) -> StructuralSVM:
        """Train.

        Parameters
        ----------
        X : sequence
            The inputs, as the structure understands them.
        Y : sequence
            Their true outputs.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.
        eval_set : tuple (X, Y), optional
            Other data: the model of the pass with the best ``score`` on them is kept.

        Returns
        -------
        StructuralSVM
            Itself.

        Raises
        ------
        ValueError
            If X and Y do not go together or a parameter is out of range.
        StructureError
            If a method of the structure fails or returns nonsense.
        NotCompatibleError
            If structure, solver and regulariser do not go together.
        MemoryError
            If the weights need more memory than there is.
        NothingLearnedError
            If training stopped, at a limit for example, before any weight was other than zero, and
            zero was not shown to be the optimum.
        KeyboardInterrupt
            After Ctrl-C, when the model so far is there.
        """
        if Y is None:
            raise ValueError("StructuralSVM requires Y to be passed, but it is None")
        require_stored(self)
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._fit(X, Y, eval_set=eval_set, **weighted)
        return self

    def predict(self, X: Any) -> NDArray[np.object_]:
        """Return the best output of every input.

        Parameters
        ----------
        X : sequence
            The inputs; none is fine.

        Returns
        -------
        array of objects, of shape (n_examples,)
            One output for each.
        """
        threads = self._threads()
        if isinstance(self.structure_, NativeStructure):
            return predicted(self.structure_, X, self.weights_, threads)
        w = self._read_only_weights()
        return object_array(
            self._call("argmax", i, x, w) for i, x in enumerate(example_list(X, "X"))
        )

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean loss of the predictions: the higher the better, 0 is perfect.

        Parameters
        ----------
        X : sequence
            The inputs.
        Y : sequence
            Their true outputs.
        sample_weight : array of shape (n_examples,), optional
            How much each of them counts.

        Returns
        -------
        float
            Minus the mean over the examples of ``loss(y, prediction)``.
        """
        check_is_fitted(self, "weights_")
        inputs, truths = paired_examples(X, Y)
        predicted = self.predict(inputs)
        losses = [
            self._number("loss", i, y, y_hat)
            for i, (y, y_hat) in enumerate(zip(truths, predicted, strict=True))
        ]
        weights = sequence_weights(sample_weight, len(losses), "example")
        return -float(np.average(losses, weights=weights))

    def score_outputs(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given outputs.

        Parameters
        ----------
        X : sequence
            The inputs.
        Y : sequence
            An output for each.

        Returns
        -------
        array of shape (n_examples,)
            The scores; only scores of the same input can be compared.
        """
        threads = self._threads()
        if isinstance(self.structure_, NativeStructure):
            return self.structure_.score_outputs(X, Y, self.weights_, threads)
        w = self._read_only_weights()
        pairs = zip(*paired_examples(X, Y), strict=True)
        return np.array([self._number("score", i, x, y, w) for i, (x, y) in enumerate(pairs)])

    # --- files ---

    def save(self, path: Any) -> int:
        """Write the model to a file, as a whole or not at all.

        The file has weights, certificate, parameters, the name of the structure's class, and what
        ``state()`` of the structure returns (a dict of numbers, texts, lists, dicts and arrays), or
        its attributes if it has no such method. It has no code and no pickles.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        int
            Its size in bytes.

        Raises
        ------
        NotCompatibleError
            If a file cannot hold the state of the structure.
        """
        check_is_fitted(self, "weights_")
        params = {k: v for k, v in self._trained.items() if k not in NOT_KEPT}
        del params["structure"]
        state: Any = UserStructure(self.structure_)
        model = StructureModel(state, self.weights_, params, training_figures(self))
        return save_structure(path, self.kind, model)

    @classmethod
    def load(cls, path: Any, structure: Any = None, *, mmap: bool = False) -> StructuralSVM:
        """Read a model from a file that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        structure : class, object, str or None
            The class of the structure (or an object of it, or "module:name", which is then
            imported). None: the class that the file names, if it is one of maxmargin's own or is
            in a module that the program has imported already; a file makes nobody import anything.
        mmap : bool, default=False
            Whether to map the file into memory and not to read it. Nobody may then change the file
            in place while the model is in use.

        Returns
        -------
        StructuralSVM
            Fitted; its ``history_`` is empty. Its parameters are those of the training.

        Raises
        ------
        ModelFormatError
            If the file is damaged, of a newer version, or no model file of this kind.
        NotCompatibleError
            If the class is not known, or is another one.
        """
        known = cls().get_params(deep=False).keys() - {*NOT_KEPT, "structure"}
        stored = StoredUserStructure(structure)
        model = load_structure(path, cls.kind, stored, known, mmap=mmap)
        own = model.structure.structure
        loaded = cls(users_object(own), **model.params)
        set_model(loaded, own, model)
        loaded._after_fit()
        return loaded

    def _after_fit(self) -> None:
        self._trained = self.get_params(deep=False)

    def _read_only_weights(self) -> NDArray[np.float64]:
        w: NDArray[np.float64] = self.weights_.view()
        w.flags.writeable = False
        return w

    def _call(self, method: str, i: int, *args: Any) -> Any:
        name = structure_name(self.structure_)
        try:
            answer = getattr(self.structure_, method)(*args)
        except MemoryError:
            raise
        except Exception as error:
            raise StructureError(
                f"{method} of {name} failed: {describe_exception(error)}, for example {i}",
                method=method,
                example=i,
            ) from error
        if answer is None:
            raise StructureError(
                f"{method} of {name} returned None, for example {i}", method=method, example=i
            )
        return answer

    def _number(self, method: str, i: int, *args: Any) -> float:
        answer = self._call(method, i, *args)
        number = real_number(answer)
        if number is None:
            raise StructureError(
                f"{method} of {structure_name(self.structure_)} returned an object of type "
                f"{type(answer).__name__}, for example {i}; expected a number",
                method=method,
                example=i,
            )
        return number


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
