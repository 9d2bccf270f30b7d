"""`LatentStructuralSVM`: outputs of which the truth gives a part only."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.checks import check_number, check_whole
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import (
    Callbacks,
    EvalSet,
    ExampleWeights,
    In,
    Out,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
    StructureLike,
)
from maxmargin.estimators.binding import bind
from maxmargin.estimators.callbacks import FitTasks, closing_callbacks, with_callbacks
from maxmargin.estimators.empty import object_array
from maxmargin.estimators.online import LAZY, Trained
from maxmargin.estimators.structural import StructuralEstimator, own_copy, sum_weight
from maxmargin.estimators.threads import threads_of
from maxmargin.estimators.trained_meta import require_stored, set_model, training_figures
from maxmargin.io.latent_structure import LatentState, StoredLatent
from maxmargin.io.structure_file import StructureModel, load_structure, save_structure
from maxmargin.io.training_meta import NOT_KEPT
from maxmargin.online import LatentLearner, OnlineLearner
from maxmargin.regularizers import GaussianPrior, make_regularizer
from maxmargin.solvers import Online, make_solver
from maxmargin.solvers.cccp import CCCPResult
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.driver import model_weights, require_learned
from maxmargin.solvers.history import History, PassRecord
from maxmargin.solvers.interrupts import HeldInterrupt
from maxmargin.solvers.latent import train_latent
from maxmargin.solvers.machine import Machine
from maxmargin.solvers.outer import OuterHistory
from maxmargin.solvers.registry import SOLVERS
from maxmargin.solvers.seeds import seed_of
from maxmargin.structures.adapter import paired_examples, real_number
from maxmargin.structures.growing import Growing, GrowingLatent, keeps_examples
from maxmargin.structures.latent import Latent, LatentTraining
from maxmargin.structures.latent_python import PythonImputer
from maxmargin.structures.native import NativeStructure
from maxmargin.types import Examples

__all__ = ["LatentEstimator", "LatentStructuralSVM"]


class LatentEstimator(StructuralEstimator[In, Out]):
    """What the estimators with latent parts share: several starts, the procedure, the model.

    A subclass says in ``_new_latent`` what is trained and in ``_one_start`` how one start of it is
    prepared; see `LatentStructuralSVM` for parameters and attributes.
    """

    objective_: float
    outer_history_: OuterHistory
    start_objectives_: list[float]
    tol: float
    max_outer: int
    start: str
    n_starts: int
    anneal: float
    self_paced: bool

    _lazy: ClassVar[tuple[str, ...]] = (*LAZY, "objective_", "outer_history_", "start_objectives_")

    # --- learning online ---

    def _online_structure(self) -> Any:
        return self._new_latent()

    def _new_learner(self, grown: Growing, solver: Online, C: float, seed: Any) -> OnlineLearner:
        assert isinstance(grown, GrowingLatent)
        if self._trained_state is None:
            once = {"n_starts": 1, "anneal": 0.0, "self_paced": False}
            for name, plain in once.items():
                if getattr(self, name) != plain:
                    raise NotCompatibleError(
                        f"{name}={getattr(self, name)!r} goes over all examples several times; "
                        f"partial_fit needs {name}={plain!r}, or a fit before it"
                    )
        grown.start, grown.rng = self._start_of(grown.structure), np.random.default_rng(seed)
        gap = check_number("gap", self.gap, least=0.0)
        tol = check_number("tol", self.tol, least=0.0)
        learner = LatentLearner(grown, solver, C=C, seed=seed, gap=gap, tol=tol)
        learner.threads = threads_of(self.n_jobs)
        return learner

    @abstractmethod
    def _start_of(self, latent: Any) -> str:
        """Return how the latent parts of the first examples are chosen."""

    def _lazily(self, name: str) -> Any:
        learner = self._online
        assert isinstance(learner, LatentLearner)
        if name == "objective_":
            certificate = self._certify()
            return learner.objective(certificate)
        if name == "outer_history_":
            return OuterHistory(list(learner.outer))
        if name == "start_objectives_":
            return [self.objective_]
        return super()._lazily(name)

    def _certify(self) -> Certificate:
        certificate = super()._certify()
        assert isinstance(self._online, LatentLearner)
        self.converged_ = self.converged_ and self._online.settled
        return certificate

    @abstractmethod
    def _new_latent(self) -> Any:
        """Return what is trained, which nobody else holds."""

    @abstractmethod
    def _one_start(
        self, latent: Any, X: Any, Y: Any, rng: np.random.Generator, first: bool, **more: Any
    ) -> LatentTraining:
        """Return what one start of it works on; of several, whether it is the first."""

    @abstractmethod
    def _trained_structure(self, latent: Any) -> Any:
        """Return the structure whose weights are trained."""

    @with_callbacks
    def _fit_latent(
        self, X: Any, Y: Any, *, eval_set: EvalSet[Any, Any] = None, **fit_params: Any
    ) -> None:
        """Train and keep the model; after Ctrl-C too, which is raised when all of it is there."""
        if eval_set is not None:
            raise NotCompatibleError(
                "eval_set chooses among the passes of one convex problem, and with latent parts "
                "there are several; use no eval_set"
            )
        solver = make_solver(self.solver)
        if not solver.linear_terms or (solver.slack, solver.rescale) != ("linear", "margin"):
            able = " or ".join(repr(name) for name, kind in SOLVERS.items() if kind.linear_terms)
            raise NotCompatibleError(
                f"{solver} does not make the convex steps of a latent training; use solver {able}, "
                'with slack="linear" and rescale="margin"'
            )
        given = make_regularizer(self.regularizer)
        if isinstance(given, GaussianPrior) and given.full:
            raise NotCompatibleError(
                "a matrix as the precision of a prior is not done with latent parts; give the "
                "diagonal of the matrix"
            )
        threads = threads_of(self.n_jobs)
        n_starts = check_whole("n_starts", self.n_starts, 1)
        anneal = check_number("anneal", self.anneal, least=0.0)
        seed = seed_of(self.random_state)
        tasks: FitTasks | None = None
        best: tuple[CCCPResult, Any, LatentTraining] | None = None
        objectives: list[float] = []
        stopped = False
        with closing_callbacks(self.callbacks):
            for k in range(n_starts):
                latent = self._new_latent()
                rng = np.random.default_rng([seed, k])
                training = self._one_start(latent, X, Y, rng, k == 0, **fit_params)
                structure = self._trained_structure(latent)
                _, dtype, regularizer, _ = bind(
                    given,
                    structure,
                    training.prepared,
                    dtype=training.dtype,
                    examples=(X, Y),
                    fit_params={},
                )
                problem = training.prepared.problem
                if tasks is None:
                    tasks = FitTasks(self, X, Y, _model_after(latent, problem, self.gap))
                result = train_latent(
                    training._replace(dtype=dtype),
                    solver,
                    C=sum_weight(self.C, self.C_scale, problem.n_examples),
                    anneal=anneal,
                    self_paced=bool(self.self_paced),
                    regularizer=regularizer,
                    gap=self.gap,
                    tol=self.tol,
                    max_outer=self.max_outer,
                    max_passes=self.max_passes,
                    time_limit=self.time_limit,
                    n_jobs=threads,
                    verbose=self.verbose,
                    random_state=[seed, k],
                    callbacks=[*(self.callbacks or ()), *tasks.observers()],
                    checkpoint=_numbered(self.checkpoint, k, n_starts),
                    resume=self.resume,
                )
                objectives.append(result.objective)
                if best is None or result.objective < best[0].objective:
                    best = result, latent, training._replace(dtype=dtype)
                stopped = result.interrupted
                if stopped:
                    break
        assert best is not None
        assert tasks is not None
        result, latent, training = best
        require_learned(result)
        with HeldInterrupt() as held:
            self._forget_online()
            self._trained_state = self._left((X, Y, fit_params), result, latent, training)
            self._keep(latent, result, problem)
            self._after_fit()
            self.objective_ = result.objective
            self.outer_history_ = result.outer
            self.start_objectives_ = objectives
            self.__dict__.pop("_warm", None)
        tasks.end_fit()
        if stopped or held.came:
            raise KeyboardInterrupt

    def _left(
        self,
        examples: tuple[Any, Any, Mapping[str, Any]],
        result: CCCPResult,
        latent: Any,
        training: LatentTraining,
    ) -> Trained:
        """Return what ``partial_fit`` goes on from: multipliers, data, and completions."""
        imputer: Any = training.imputer
        found = imputer.outputs if isinstance(imputer, PythonImputer) else imputer.codes()
        parts: Any = training.prepared.parts
        inner = self._trained_structure(latent)
        if isinstance(inner, NativeStructure) and keeps_examples(inner):
            parts = examples
        parts = {"data": parts, "latent": found}
        return Trained(result.engine, parts, None, training.dtype, self._present_params())


class LatentStructuralSVM(LatentEstimator[Examples, Examples]):
    """A large-margin model whose outputs have a latent part that no truth gives.

    Minimises ½‖w‖² + C Σ_i [max_z (loss(y_i, z) + w·f(x_i, z)) - max_{z: y_i} w·f(x_i, z)] over
    complete outputs z = (y, h), by the concave-convex procedure: the latent parts of the truths are
    imputed, the convex problem that then remains is solved with a certificate, and so on. The
    objective never rises from one outer iteration to the next, which is checked while it runs
    (`ObjectiveRoseError`). The result is a local optimum, which depends on the start.

    Reference: Yu and Joachims, "Learning structural SVMs with latent variables", ICML 2009; (13) of
    the dual-coordinate paper.

    Parameters
    ----------
    structure : Latent, or a structure with latent parts
        `Latent` explains what such a structure is: a chain or classes whose labels have states
        (``Latent(Chain(), states=3)``), or one of your own with ``argmax(x, w, given=y)``.
    start : {"auto", "cluster", "random", "first"}
        The latent parts that the first convex step takes for true. "cluster" (states of labels
        only): k-means on the features of the tokens of each label. "random". "first": the first
        state, or what ``argmax`` with ``given`` returns under weights of zero. "auto": "cluster"
        for states of labels, else "first". A structure of your own with ``initial(x, y, rng)``
        chooses itself.
    n_starts : int
        So many starts with seeds of their own are trained one after the other, and the one with
        the lowest objective is kept (``start_objectives_`` has all of them). The result is a local
        optimum all the same.
    anneal : float
        Above 0: some stages before the last minimise an objective in which the choice of latent
        parts is blurred by noise of this size, in units of the root mean square of the weights,
        halved from stage to stage (randomised smoothing). Each stage keeps its own objective from
        rising; the last stage is the plain procedure.
    self_paced : bool
        Whether examples enter by their ease: the first stages train on the examples with the
        smallest slacks (of each class, where examples have one), in growing shares (Kumar, Packer
        and Koller, NIPS 2010). While a stage has
        some examples only, the objective of all may rise; the last stage is the plain procedure on
        all of them.
    solver : str or Solver
        What makes the convex steps: a dual one, with linear slacks and margin rescaling.
    C, C_scale, regularizer, dtype, n_jobs, verbose, random_state, callbacks
        As for `StructuralSVM`.
    gap : float
        Relative duality gap of the convex step that the model comes from. Earlier steps are solved
        more coarsely.
    tol : float
        Training ends when the objective falls by no more than this share in an outer iteration, or
        when no latent part changes.
    max_outer : int
        Most outer iterations of a stage.
    max_passes : int or None
        Most passes of one convex step.
    time_limit : float or None
        Most seconds of training, for each start.
    checkpoint : path or None
        File where the last stage is saved now and then; with several starts, one file for each
        (``name.0``, ``name.1``, ...).
    resume : bool
        Whether to go on from the checkpoint if it is there.

    Attributes
    ----------
    structure_ : Latent
        The prepared copy of the structure.
    weights_ : array
        The weights, in the layout of the structure.
    objective_ : float
        The objective of these weights, as above.
    certificate_ : Certificate
        Primal, dual and gap of the convex step that they come from: of the problem in which the
        latent parts of the truths are those imputed for it. The objective is no higher than its
        primal. It says nothing of other local optima.
    history_ : History
        What each pass did, over all convex steps of the start that was kept.
    outer_history_ : OuterHistory
        What each outer iteration did: objective, gap, latent parts that changed, passes, seconds.
    start_objectives_ : list of float
        The objective that each start ended with.
    n_iter_ : int
        Number of passes.
    converged_, stop_reason_, n_examples_
        As for `StructuralSVM`.

    Examples
    --------
    Two classes, one of which is made of two groups on both sides of the other. With one prototype
    for each class they cannot be told apart; with two states they can:

    >>> import numpy as np
    >>> from maxmargin import Latent, LatentStructuralSVM, Multiclass
    >>> X = np.array([[-3.0, 1.0], [-2.5, 1.0], [0.2, 1.0], [-0.1, 1.0], [2.6, 1.0], [3.0, 1.0]])
    >>> y = ["out", "out", "in", "in", "out", "out"]
    >>> structure = Latent(Multiclass(), states={"out": 2})
    >>> model = LatentStructuralSVM(structure, C=10.0, random_state=0).fit(X, y)
    >>> list(model.predict(X)) == y
    True
    >>> states = [state for _, state in model.predict_latent(X)]
    >>> states[0] == states[1] != states[4] == states[5]
    True
    """

    def __init__(
        self,
        structure: StructureLike | None = None,
        *,
        start: str = "auto",
        n_starts: int = 1,
        anneal: float = 0.0,
        self_paced: bool = False,
        solver: SolverLike = "sdm",
        C: float = 1.0,
        C_scale: str = "sum",
        regularizer: RegularizerLike = None,
        gap: float = 0.01,
        tol: float = 1e-3,
        max_outer: int = 100,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
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
        self.structure = structure
        self.start = start
        self.n_starts, self.anneal, self.self_paced = n_starts, anneal, self_paced
        self.tol, self.max_outer = tol, max_outer

    kind: ClassVar[str] = "latent_structural"

    def _new_structure(self) -> Any:
        raise NotImplementedError  # a `Latent` is not trained as a structure of its own

    def _new_latent(self) -> Latent:
        if self.structure is None:
            raise NotCompatibleError(
                "LatentStructuralSVM needs a structure with latent parts: "
                "LatentStructuralSVM(Latent(Chain(), states=2)), or one of your own"
            )
        own = own_copy(self.structure)
        return own if isinstance(own, Latent) else Latent(own)

    def _start_of(self, latent: Latent) -> str:
        if self.start != "auto":
            return self.start
        return "first" if latent.states is None else "cluster"

    def _one_start(
        self, latent: Latent, X: Any, Y: Any, rng: np.random.Generator, first: bool, **more: Any
    ) -> LatentTraining:
        start = self._start_of(latent)
        # Of several starts the first is the one asked for; clusters have seeds, "first" has none.
        if start == "first" and not first:
            start = "random"
        return latent.prepare_training(X, Y, start=start, rng=rng, dtype=self.dtype, **more)

    def _trained_structure(self, latent: Latent) -> Any:
        return latent.prepared.inner

    def fit(
        self, X: Examples, Y: Examples, sample_weight: ExampleWeights = None
    ) -> LatentStructuralSVM:
        """Train.

        Parameters
        ----------
        X : sequence
            The inputs, as the structure understands them.
        Y : sequence
            Their truths: the visible parts of the outputs.
        sample_weight : array of shape (n_examples,), optional
            A factor of C for each example, finite and not negative.

        Returns
        -------
        LatentStructuralSVM
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X and Y do not go together or a parameter is out of range.
        StructureError
            If a method of the structure fails or returns nonsense: no completion of a truth, a
            completion with a loss. The message names the example.
        ObjectiveRoseError
            If the objective rises, because a maximum was missed.
        NotCompatibleError
            If structure, solver and regulariser do not go together.
        """
        if Y is None:
            raise ValueError("LatentStructuralSVM requires Y to be passed, but it is None")
        require_stored(self)
        self._fit_latent(X, Y, sample_weight=sample_weight)
        return self

    def predict(self, X: Examples) -> NDArray[np.object_]:
        """Return the visible part of the best output of every input.

        Parameters
        ----------
        X : sequence
            The inputs.

        Returns
        -------
        array of objects, of shape (n_examples,)
            One y for each.
        """
        return object_array(self.structure_.predict(X, self.weights_, self._threads()))

    def predict_latent(self, X: Examples, Y: Examples | None = None) -> list[Any]:
        """Return the best complete output of every input.

        Parameters
        ----------
        X : sequence
            The inputs.
        Y : sequence or None
            With truths: the best outputs that have these as their visible parts, which is what
            training imputes.

        Returns
        -------
        list
            One z for each: (y, h) of most structures, a list of pairs (label, state) of a chain
            with states.
        """
        return self.structure_.complete(X, self.weights_, self._threads(), Y)  # type: ignore[no-any-return]

    def score(self, X: Examples, Y: Examples) -> float:
        """Return minus the mean loss of the predictions: the higher the better, 0 is perfect.

        Parameters
        ----------
        X : sequence
            The inputs.
        Y : sequence
            Their truths.

        Returns
        -------
        float
            Minus the mean over the examples of ``loss(y, prediction)``.
        """
        check_is_fitted(self, "weights_")
        _, truths = paired_examples(X, Y)
        found = self.predict_latent(X)
        losses = [self.structure_.loss(y, z) for y, z in zip(truths, found, strict=True)]
        return -float(np.mean(losses))

    # --- files ---

    def save(self, path: PathLike) -> int:
        """Write the model to a file, as a whole or not at all.

        The file has weights, certificate, objective, parameters, and what prediction needs of the
        structure: labels, states and features of a chain or of classes, the state of another native
        structure, or that of your own with the name of its class, as for `StructuralSVM.save`. It
        has no code and no pickles.

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
        meta = training_figures(self)
        meta["objective_value"] = float(self.objective_)
        state: Any = LatentState(self.structure_)
        return save_structure(path, self.kind, StructureModel(state, self.weights_, params, meta))

    @classmethod
    def load(
        cls,
        path: PathLike,
        structure: StructureLike | Callable[..., Any] | str | None = None,
        *,
        mmap: bool = False,
    ) -> LatentStructuralSVM:
        """Read a model from a file that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        structure : class, object, str or None
            The class of a structure of your own; see `StructuralSVM.load`.
        mmap : bool, default=False
            Whether to map the file into memory and not to read it. Nobody may then change the file
            in place while the model is in use.

        Returns
        -------
        LatentStructuralSVM
            Fitted; its histories are empty. A model with states of labels has no ``structure``:
            give one (``set_params``) before it is fitted anew.

        Raises
        ------
        ModelFormatError
            If the file is damaged, of a newer version, or no model file of this kind.
        NotCompatibleError
            If the class is not known, or is another one.
        """
        known = cls().get_params(deep=False).keys() - {*NOT_KEPT, "structure"}
        model = load_structure(path, cls.kind, StoredLatent(structure), known, mmap=mmap)
        latent = model.structure.latent
        again = None if latent.states is not None else Latent(latent.structure)
        loaded = cls(again, **model.params)
        set_model(loaded, latent, model)
        value = real_number(model.meta.get("objective_value"))
        loaded.objective_ = float("nan") if value is None else value
        loaded.outer_history_, loaded.start_objectives_ = OuterHistory(), [loaded.objective_]
        loaded._after_fit()
        return loaded

    def _after_fit(self) -> None:
        self._trained = self.get_params(deep=False)

    def _after_partial(self) -> None:
        self._trained = self.get_params(deep=False)


def _model_after(
    latent: Any, problem: Any, gap: float
) -> Callable[[list[PassRecord], Machine], dict[str, Any]]:
    """Return what makes the model of a pass, for callbacks of scikit-learn."""

    def model_after(records: list[PassRecord], engine: Machine) -> dict[str, Any]:
        last = records[-1]
        return {
            "structure_": latent,
            "weights_": model_weights(problem, engine),
            "certificate_": Certificate(last.primal, last.dual, engine.C, problem.n_examples),
            "history_": History(records),
            "outer_history_": OuterHistory(),
            "objective_": float("nan"),
            "start_objectives_": [],
            "converged_": bool(last.gap <= gap),
            "stop_reason_": "copied for a callback",
            "n_iter_": last.n_pass,
            "n_examples_": problem.n_examples,
        }

    return model_after


def _numbered(path: Any, k: int, n: int) -> Any:
    """Return the checkpoint of one of several starts."""
    return path if path is None or n == 1 else f"{os.fspath(path)}.{k}"
