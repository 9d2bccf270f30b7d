"""`OnlineMixin`: ``partial_fit``, ``learn_one`` and ``forget``, for every estimator.

An estimator that learns online has an `OnlineLearner`. What a fitted model has besides
(``weights_``, ``certificate_``, ...) is made when somebody asks for it: copying the weights after
each example would cost far more than learning from it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Generic, NamedTuple, Self

import numpy as np

from maxmargin.checks import check_number, check_whole
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import ExampleWeights, In, Out
from maxmargin.estimators.threads import threads_of
from maxmargin.online import OnlineLearner
from maxmargin.regularizers import GaussianPrior, make_regularizer
from maxmargin.solvers import Online, make_solver
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.history import History
from maxmargin.solvers.machine import Machine
from maxmargin.structures.growing import Growing, growing

__all__ = ["OnlineMixin", "Trained"]

#: Parameters that may be different from one ``partial_fit`` to the next; C, too.
FREE = {"gap", "max_passes", "time_limit", "n_jobs", "verbose", "callbacks", "checkpoint"}
FREE |= {"resume", "warm_start", "random_state", "C", "solver", "tol", "max_outer"}

#: What a model has and is made when it is asked for.
LAZY = ("weights_", "certificate_", "history_", "converged_", "stop_reason_", "n_iter_")
#: ... or is asked of the learner each time.
LIVE = "n_examples_"


class Trained(NamedTuple):
    """What ``fit`` leaves for a ``partial_fit`` to go on from.

    Attributes
    ----------
    machine : Machine
        What the solver moved.
    parts : dict
        What the problem was made of.
    examples : tuple
        X, y and what else ``fit`` was given, of structures that keep them as they are.
    dtype : str
        Type of the weights.
    params : dict
        The estimator's parameters on which weights and planes depend.
    """

    machine: Machine
    parts: dict[str, Any]
    examples: tuple[Any, Any, Mapping[str, Any]] | None
    dtype: str
    params: dict[str, Any]


class OnlineMixin(Generic[In, Out]):
    """What estimators that learn online share; a base of `StructuralEstimator`."""

    #: What a model has and is made when it is asked for.
    _lazy: ClassVar[tuple[str, ...]] = LAZY

    _online: OnlineLearner | None = None
    _online_params: dict[str, Any]
    _trained_state: Trained | None = None
    structure_: Any

    # --- learning ---

    def partial_fit(
        self,
        X: In,
        y: Out,
        *,
        ids: Iterable[Hashable] | None = None,
        sample_weight: ExampleWeights = None,
    ) -> Self:
        """Learn from more examples, without forgetting those that were seen before.

        One pass of Algorithm 2 of the dual-coordinate paper (`maxmargin.Online`) over the new
        examples; earlier ones take part through the planes that were kept. After ``fit`` it goes
        on from the fitted model with its multipliers. See ``docs/online.md``.

        Parameters
        ----------
        X, y
            As for ``fit``.
        ids : iterable, optional
            A name for each example, by which `forget` knows it; numbers from 0 on if not given.
        sample_weight : array, optional
            A factor of C for each example.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError, TypeError
            If something is not as it must be; the message names the example. Nothing of the batch
            has been learned then.
        """
        return self._learn_more(X, y, ids, {"sample_weight": sample_weight})

    def learn_one(self, x: Any, y: Any, *, id: Hashable = None, **fit_params: Any) -> Self:
        """Learn from one more example; see `partial_fit`.

        Parameters
        ----------
        x, y
            An input and its true output.
        id : hashable, optional
            The name of the example.
        **fit_params
            What else `partial_fit` takes; weights as lists of one entry.

        Returns
        -------
        estimator
            Itself. What it takes does not grow with the number of examples before it.
        """
        ids = None if id is None else [id]
        more: Any = [y]
        return self.partial_fit(self._one(x), more, ids=ids, **fit_params)

    def _one(self, x: Any) -> Any:
        """Return one input as a batch."""
        return [x]

    def _learn_more(
        self,
        X: Any,
        y: Any,
        ids: Iterable[Hashable] | None,
        fit_params: Mapping[str, Any],
    ) -> Self:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but it is None")
        learner = self._online
        if learner is not None:
            self._check_params(self._online_params)
            learner.set_C(self._online_C())
            learner.learn(X, y, fit_params, ids)
        else:
            self._begin_online(X, y, ids, fit_params)
        self._stale()
        return self

    def _begin_online(
        self, X: Any, y: Any, ids: Iterable[Hashable] | None, fit_params: Mapping[str, Any]
    ) -> None:
        trained = self._trained_state
        if trained is None and "weights_" in self.__dict__:
            raise NotCompatibleError(
                "this model has weights and no multipliers to go on from: it was loaded from a "
                "file, or unpickled after fit. Fit it anew, or take it as a prior of a new model "
                "where the estimator has one"
            )
        params = self._present_params()
        C = self._online_C()
        solver = self._online_solver()
        if trained is None:
            dtype = self._accuracy(X, y).dtype
            structure = self._online_structure()
        else:
            self._check_params(trained.params)
            dtype, structure = trained.dtype, self.structure_
        grown = growing(structure, dtype)
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        before = C if trained is None else getattr(trained.machine, "C", C)
        learner = self._new_learner(grown, solver, before, seed)

        def regularizer(layout: Any) -> Any:
            found = make_regularizer(self._regularizer(structure))
            if isinstance(found, GaussianPrior) and found.full:
                raise NotCompatibleError(
                    "a matrix as the precision of a prior needs all examples at once; give its "
                    "diagonal, or use fit"
                )
            return found.bound(layout)

        if trained is None:
            learner.begin(X, y, fit_params, ids, regularizer)
        else:
            machine: Any = trained.machine
            if not hasattr(machine, "release") or machine.formulation != (
                solver.slack,
                solver.rescale,
            ):
                raise NotCompatibleError(
                    f"solver {self.solver!r} keeps no multipliers of examples to go on from; fit "
                    'with "sdm", "dualcoordinate", "nslack" or "online", or begin with partial_fit'
                )
            machine.refresh()
            state = machine.state()
            if str(machine.weights.dtype) != dtype:
                grown.dtype = str(machine.weights.dtype)
            if machine.factored and not solver.factored:  # the other way round, a block is one part
                raise NotCompatibleError(
                    f"solver {self.solver!r} keeps planes in another form than Online; fit with "
                    '"sdm" or "online", or begin with partial_fit'
                )
            for unused in ("beta", "lag", "visits", "price", "mapped"):
                state.pop(unused, None)
            learner.adopt(trained.examples or trained.parts, state, regularizer)
            learner.set_C(C)  # multipliers stay as they are where it has been changed since
            learner.learn(X, y, fit_params, ids)
        self._online, self._online_params = learner, params
        self._trained_state = None
        self.structure_ = structure

    def _new_learner(self, grown: Growing, solver: Online, C: float, seed: Any) -> OnlineLearner:
        return OnlineLearner(grown, solver, C=C, seed=seed)

    def _online_structure(self) -> Any:
        return self._new_structure()

    def _online_solver(self) -> Online:
        solver = make_solver(self.solver)
        if isinstance(solver, Online):
            return solver
        return Online(slack=solver.slack, rescale=solver.rescale)

    def _online_C(self) -> float:  # noqa: N802
        if self.C_scale != "sum":
            raise NotCompatibleError(
                f"C_scale={self.C_scale!r} divides C by the number of examples, which changes with "
                'every new one; partial_fit needs C_scale="sum"'
            )
        return check_number("C", self._present_C(), above=0.0)

    def _present_C(self) -> Any:  # noqa: N802
        """Return the number that C stands for while learning online."""
        return self.C

    def _present_params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.get_params(deep=False)
        return {name: value for name, value in params.items() if name not in FREE}

    def _check_params(self, params: Mapping[str, Any]) -> None:
        """Refuse to go on with other features, labels or losses than before."""
        for name, value in self._present_params().items():
            before = params.get(name)
            if value is before:
                continue
            try:
                alike = bool(np.all(value == before))
            except (TypeError, ValueError):
                alike = False
            if not alike:
                raise NotCompatibleError(
                    f"{name} was {before!r} for the examples learned from so far and is {value!r} "
                    "now; weights and planes depend on it. Set it back, or start anew with fit or "
                    "a clone of the estimator"
                )

    # --- more passes, and less examples ---

    def refine(self, cycles: int = 1) -> Self:
        """Look at all examples once more, and again, until the certificate is within ``gap``.

        Parameters
        ----------
        cycles : int
            How often, at most.

        Returns
        -------
        estimator
            Itself.
        """
        learner = self._require_online("refine")
        gap = self.gap
        wanted = gap if isinstance(gap, int | float) else 0.001
        learner.improve(check_whole("cycles", cycles, 1), wanted, threads_of(self.n_jobs))
        self._stale()
        return self

    def forget(self, ids: Iterable[Hashable]) -> Self:
        """Unlearn examples and erase their data.

        Their planes leave the weights exactly: what is left is the model of the remaining
        multipliers. Their data, and the features that only they had, are no longer in the
        estimator, nor in files or pickles that it writes from now on. See ``docs/online.md``.

        Parameters
        ----------
        ids : iterable
            Names of examples; ``example_ids_`` has all of them.

        Returns
        -------
        estimator
            Itself; as if it had never been fitted if no example is left.

        Raises
        ------
        KeyError
            If there is no such example; none has been forgotten then.
        """
        if isinstance(ids, str | bytes):
            raise TypeError(f"ids is the text {ids!r}; expected a list of names of examples")
        learner = self._require_online("forget")
        left = learner.forget(list(ids))
        self._stale()
        if not left:
            self._online = None
            for name in ("structure_", "_online_params", "_trained"):
                self.__dict__.pop(name, None)
        return self

    def _require_online(self, what: str) -> OnlineLearner:
        if self._online is None:
            raise NotCompatibleError(
                f"{what} is about examples that partial_fit or learn_one took in; this "
                f"{type(self).__name__} has none"
            )
        return self._online

    @property
    def example_ids_(self) -> list[Hashable]:
        """Names of the examples that the model, and its certificate, are about."""
        return list(self._require_online("example_ids_").ids)

    # --- the model, when it is asked for ---

    def _stale(self) -> None:
        for name in (*self._lazy, LIVE):
            self.__dict__.pop(name, None)
        self._after_partial()

    def _after_partial(self) -> None:
        """Set the attributes of a fitted model that follow from the structure."""

    def __getattr__(self, name: str) -> Any:
        learner = self.__dict__.get("_online")
        if learner is None or name not in (*self._lazy, LIVE):
            return object.__getattribute__(self, name)  # raises, in the words of a property if any
        if name == LIVE:
            return learner.n_examples
        self.__dict__[name] = self._lazily(name)
        return self.__dict__[name]

    def _lazily(self, name: str) -> Any:
        """Return an attribute of the model that somebody asked for."""
        if name == "weights_":
            return self._require_online(name).weights()
        if name == "history_":
            return History()
        if name == "stop_reason_":
            return "all examples were looked at once"
        if name == "n_iter_":
            return 1
        self._certify()
        return self.__dict__[name]

    def _certify(self) -> Certificate:
        learner = self._require_online("a certificate")
        self.certificate_ = learner.certify(threads_of(self.n_jobs))
        self.weights_ = learner.weights()  # of which the certificate is
        gap = self.gap
        self.converged_ = isinstance(gap, int | float) and self.certificate_.gap <= gap
        return self.certificate_

    def _forget_online(self) -> None:
        """Start anew: ``fit`` was called."""
        for name in ("_online", "_online_params", "_trained_state"):
            self.__dict__.pop(name, None)
