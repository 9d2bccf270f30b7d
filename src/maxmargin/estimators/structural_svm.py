"""`StructuralSVM`: any structure, any solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.estimators.argument_types import (
    Callbacks,
    EvalSet,
    ExampleWeights,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
    StructureLike,
)
from maxmargin.estimators.binding import with_signs
from maxmargin.estimators.empty import object_array, predicted
from maxmargin.estimators.structural import StructuralEstimator, own_copy
from maxmargin.estimators.trained_meta import require_stored, set_model, training_figures
from maxmargin.io.structure_file import StructureModel, load_structure, save_structure
from maxmargin.io.training_meta import NOT_KEPT
from maxmargin.io.user_structure import StoredUserStructure, UserStructure
from maxmargin.structures.adapter import example_list, paired_examples, real_number
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.duck import (
    as_structure,
    describe_exception,
    structure_name,
    users_object,
)
from maxmargin.structures.native import NativeStructure
from maxmargin.types import Examples

__all__ = ["StructuralSVM"]


class StructuralSVM(StructuralEstimator[Examples, Examples]):
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
        counts them (None is 1, -1 all processors). The result does not depend on it, but for
        native structures, whose steps several threads make on a share of the examples each (from
        1,000 on) unless the training is ``deterministic``: each number of threads then has its own
        result. Of structures written in Python the oracle runs in so many other
        processes, if it is slow enough for that; the result is another one than with 1, but the
        same for all numbers above 1 (``docs/writing_a_structure.md``, "Several processes").
    deterministic : bool
        Whether one thread makes all steps, so that weights do not depend on the number of threads
        (above one, where the oracle is dear). Without it they do, but are the same each time for
        the same number and the same ``random_state``. It is the same as
        ``solver=SDM(deterministic=True)``.
    warm_start : bool
        Whether ``fit`` goes on from where the last one ended, which needs the same data; C and
        the stopping rules may be different. The state of training is then kept in memory with the
        estimator. It is not pickled: after unpickling, the next ``fit`` starts anew.
    verbose : int
        1 or 2: progress on standard error.
    random_state : int, RandomState, Generator or None
        Seed of the visiting order.
    callbacks : list of callables or None
        Each is called with the record of every pass; a true answer ends training. Where one has a
        method ``close``, that is called when training ends, however it ends. Callbacks of
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
        structure: StructureLike | None = None,
        *,
        solver: SolverLike = "sdm",
        C: float = 1.0,
        C_scale: str = "sum",
        regularizer: RegularizerLike = None,
        gap: float = 0.01,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        deterministic: bool = False,
        warm_start: bool = False,
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
            warm_start=warm_start,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.deterministic = deterministic
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
        self,
        X: Examples,
        Y: Examples,
        sample_weight: ExampleWeights = None,
        *,
        eval_set: EvalSet[Examples, Examples] = None,
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

    def predict(self, X: Examples) -> NDArray[np.object_]:
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

    def score(self, X: Examples, Y: Examples, sample_weight: ExampleWeights = None) -> float:
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

    def score_outputs(self, X: Examples, Y: Examples) -> NDArray[np.float64]:
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

    def save(self, path: PathLike) -> int:
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
    def load(
        cls,
        path: PathLike,
        structure: StructureLike | Callable[..., Any] | str | None = None,
        *,
        mmap: bool = False,
    ) -> StructuralSVM:
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
