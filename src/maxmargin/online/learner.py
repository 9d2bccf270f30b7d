"""`OnlineLearner`: Algorithm 2 on examples that come one after the other, and may be taken back.

It joins what there is: the schedule (`maxmargin.solvers.online.Online`), the engine, which gets
blocks for new examples, and the structure, which learns new labels and features from them
(`maxmargin.structures.growing`). Examples are kept, encoded: a certificate must look at all of
them, and an example that is to be forgotten must be found.

*Another layout.* When a label, or more features than there is room for, make the weights longer,
the engine is made anew for the new layout, from its state: multipliers, planes, Gram matrices and
the numbers of u are the same, bit for bit; only their places change.

*Forgetting.* The planes of an example leave u, which is made anew of all remaining multipliers in
8-byte arithmetic; the example's data are dropped, and with them the features that no other example
has. Other multipliers stay as they are. They are feasible for the remaining problem, so its dual is
a lower bound and learning goes on from there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError
from maxmargin.online.chunks import Chunks
from maxmargin.printable import quoted
from maxmargin.regularizers import Regularizer
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.driver import make_certificate
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.online import Online
from maxmargin.structures.growing import Change, Growing

__all__ = ["Bounds", "OnlineLearner"]


class Bounds(NamedTuple):
    """The bounds of Algorithm 2.

    Attributes
    ----------
    lower : float
        LB: the dual. No model of the examples seen, nor of these and any others, has a smaller
        objective.
    upper : float
        UB: the objective of the present weights over the kept planes alone.
    """

    lower: float
    upper: float


class OnlineLearner:
    """A model that learns from one batch of examples after the other.

    Parameters
    ----------
    growing : Growing
        The structure.
    solver : Online
        The schedule.
    C : float
        Weight of the loss.
    seed : int or None
        Of the order in which kept planes are visited.

    Attributes
    ----------
    machine : DualMachine
        The engine, once there are examples.
    ids : list
        Names of the examples, in their order.
    """

    machine: DualMachine
    chunks: Chunks
    regularizer: Regularizer

    def __init__(self, growing: Growing, solver: Online, *, C: float, seed: Any = None) -> None:
        if solver.slack == "hard":
            raise NotCompatibleError(
                "hard margins may be lost with any new example, and nobody could tell; partial_fit "
                'needs slack="linear" or "quadratic"'
            )
        self.growing, self.solver, self.C = growing, solver, C
        self.rng = np.random.default_rng(seed)
        self.ids: list[Hashable] = []
        self._place: dict[Hashable, int] = {}
        self._next = 0
        self.state: dict[str, Any] = {}
        self.work = 0.0
        self.oracle_calls = 0

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.ids)

    # --- examples that come ---

    def begin(
        self,
        X: Any,
        Y: Any,
        fit_params: Mapping[str, Any],
        ids: Iterable[Hashable] | None,
        regularizer: Any,
    ) -> None:
        """Learn from the first examples.

        Parameters
        ----------
        X, Y : object
            Inputs and outputs.
        fit_params : mapping
            What else the structure takes, such as ``sample_weight``.
        ids : iterable or None
            A name for each example.
        regularizer : callable
            Gives the regulariser, once the structure is prepared.
        """
        data = self.growing.first(X, Y, fit_params)
        names = self._names(ids, self.growing.count(data))
        self._start([data], regularizer)
        self._add(names)
        self._explore(np.arange(self.n_examples, dtype=np.uint32))

    def adopt(
        self,
        parts: Any,
        state: dict[str, Any],
        regularizer: Any,
        ids: Iterable[Hashable] | None = None,
    ) -> None:
        """Go on from what ``fit`` left.

        Parameters
        ----------
        parts : object
            The examples, as `Growing.adopt` takes them.
        state : dict
            Of the engine.
        regularizer : callable
            As in `begin`.
        ids : iterable or None
            A name for each example.
        """
        data, change = self.growing.adopt(parts)
        assert change is None
        self._start([data], regularizer)
        self.machine.restore(state)
        self.state = self.solver.begin(self.machine)
        self._add(self._names(ids, self.growing.count(data)))
        self.state["seen"] = self.n_examples

    def learn(
        self,
        X: Any,
        Y: Any,
        fit_params: Mapping[str, Any],
        ids: Iterable[Hashable] | None = None,
    ) -> None:
        """Learn from more examples.

        Parameters
        ----------
        X, Y, fit_params, ids
            As in `begin`.
        """
        if ids is not None:
            ids = list(ids)
            self._check(ids)
            if hasattr(Y, "__len__") and len(ids) != len(Y):
                raise ValueError(
                    f"ids has {len(ids)} names and there are {len(Y)} examples; expected as many"
                )
        data, change = self.growing.more(X, Y, fit_params)
        n, old = self.growing.count(data), self.n_examples
        if change is not None:
            self._move(self.chunks.changed(change), change)
        data = self._arrived(data)
        names = self._names(ids, n)
        self.chunks.append(data, self.growing.problem(data))
        self.machine.grow()
        self._add(names)
        self._explore(np.arange(old, old + n, dtype=np.uint32))

    def _arrived(self, data: Any) -> Any:
        """Return new examples as they are to be learned from."""
        return data

    def improve(self, cycles: int, wanted: float, threads: int) -> None:
        """Look at all examples once more, and again, until the certificate is good enough.

        Parameters
        ----------
        cycles : int
            How often, at most.
        wanted : float
            Relative gap at which to end.
        threads : int
            For certificates.
        """
        for _ in range(cycles):
            certificate = self.certify(threads)
            if certificate.gap <= wanted:
                break
            self.refine(certificate)
            self.cycle()

    def cycle(self) -> None:
        """Look at all examples once more, in a random order."""
        order = self.rng.permutation(self.n_examples).astype(np.uint32)
        if self.state["left"] == 0:  # what the oracle would find is not known: ask it everywhere
            self.state["goal"] = 0.0
        self._explore(order)

    def refine(self, certificate: Certificate) -> None:
        """Narrow the tolerance after a certificate, and optimise to it.

        Parameters
        ----------
        certificate : Certificate
            Of the present model.
        """
        gap = max(certificate.primal - certificate.dual, 0.0)
        relative = gap if self.solver.absolute else gap / max(abs(certificate.primal), 1e-300)
        self.state["tol"] = max(min(self.state["tol"], 0.5 * relative), 1e-15)
        self.state["lower"], self.state["open"] = certificate.dual, gap
        self.solver._due(self.state)
        self._optimise()

    # --- Algorithm 2 ---

    def _explore(self, order: NDArray[np.uint32]) -> None:
        """Lines 3 to 15."""
        while len(order) > 0:
            seed = int(self.rng.integers(2**63))
            result = self.solver.look(self.machine, order, self.state, seed=seed)
            self._count(result)
            order = order[result.looked :]
            if self.state["left"] > 0:
                self._optimise()
            self.solver.trim(self.machine, self.state)
        if self.solver.at_the_end(self.state, self.n_examples):
            self._optimise()
            self.solver.trim(self.machine, self.state)

    def _optimise(self) -> None:
        """Line 12."""
        while self.state["left"] > 0:
            order = self.rng.permutation(self.n_examples).astype(np.uint32)
            self._count(self.solver.optimise(self.machine, order, self.state))

    def _count(self, result: Any) -> None:
        self.work += result.work
        self.oracle_calls += result.oracle_calls

    # --- examples that go ---

    def places(self, ids: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return where examples are.

        Parameters
        ----------
        ids : iterable
            Their names.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        found = []
        for name in ids:
            if name not in self._place:
                raise KeyError(
                    f"there is no example {quoted(name)}; expected one of the {self.n_examples} "
                    "examples that were learned from and not forgotten"
                )
            found.append(self._place[name])
        return np.array(sorted(set(found)), dtype=np.int64)

    def forget(self, ids: Iterable[Hashable]) -> bool:
        """Unlearn examples and erase their data.

        Parameters
        ----------
        ids : iterable
            Their names.

        Returns
        -------
        bool
            Whether examples are left.
        """
        where = self.places(ids)
        if len(where) == 0:
            return True
        if len(where) == self.n_examples:
            return False
        gone = np.zeros(self.n_examples, bool)
        gone[where] = True
        self.machine.release(where.astype(np.uint32))
        remaining, change = self.growing.purge(self.chunks.without(gone))
        self._move(Chunks(self.growing, remaining), change, np.flatnonzero(~gone))
        self.ids = [name for k, name in enumerate(self.ids) if not gone[k]]
        self._place = {name: k for k, name in enumerate(self.ids)}
        self.state["lower"] = self.machine.dual()
        self.state["seen"] = self.n_examples
        return True

    # --- the engine ---

    def _start(self, data: list[Any], regularizer: Any) -> None:
        self.chunks = Chunks(self.growing, data)
        self.regularizer = regularizer(self.growing.layout())
        fields = vars(self.regularizer.link).values()
        if self.growing.relayouts and any(isinstance(value, np.ndarray) for value in fields):
            raise NotCompatibleError(
                f"{self.regularizer} has numbers for each weight, and later examples may bring new "
                "weights; partial_fit needs a regulariser that treats all weights alike"
            )
        self.machine = self._engine(self.chunks)
        self.state = self.solver.begin(self.machine)

    def _engine(self, chunks: Chunks) -> DualMachine:
        single = self.growing.dtype == "float32" and chunks.problem.offers_single
        machine = self.solver.start(chunks.problem, self.C, self.regularizer, single)
        assert isinstance(machine, DualMachine)
        return machine

    def _move(
        self, chunks: Chunks, change: Change | None, stays: NDArray[np.int64] | None = None
    ) -> None:
        """Go on with the same multipliers in another layout, or with some of the examples."""
        state = self.machine.state()
        if change is not None:
            state["codes"] = change.codes(state["codes"])
            for sums in ("weights", "fixed"):
                if sums in state:
                    state[sums] = np.array(change.sums(state[sums]))
        if stays is not None:
            number = np.zeros(self.n_examples, np.uint32)
            number[stays] = np.arange(len(stays), dtype=np.uint32)
            state["example"] = number[state["example"]]
            state["gaps"] = state["gaps"][stays]
        chunks.copied += self.chunks.copied
        machine = self._engine(chunks)
        machine.restore(state)
        self.chunks, self.machine = chunks, machine

    def set_C(self, C: float) -> None:  # noqa: N802
        """Go on with another weight of the loss.

        Parameters
        ----------
        C : float
            The new one.
        """
        if C != self.C:
            self.machine.rescale(C)
            self.C = C
            self.state |= {"lower": self.machine.dual(), "open": 0.0, "goal": 0.0}

    # --- what is known of the model ---

    def weights(self) -> NDArray[Any]:
        """Return a copy of the weights, in the layout of the structure."""
        return self.growing.model_weights(self.machine.weights)

    def bounds(self) -> Bounds:
        """Return the bounds of Algorithm 2, computed at the present weights."""
        lower = self.machine.dual()
        order = np.arange(self.n_examples, dtype=np.uint32)
        return Bounds(lower, lower + self.solver.cached_gap(self.machine, order))

    def certify(self, threads: int) -> Certificate:
        """Look at all examples: primal and dual from scratch, of weights made anew.

        Parameters
        ----------
        threads : int
            For the oracle.
        """
        primal, dual = self.machine.certify(threads)
        self.state["lower"] = dual
        return make_certificate(self.machine, primal, dual, self.n_examples)

    # --- names of examples ---

    def _check(self, ids: list[Hashable]) -> None:
        seen: set[Hashable] = set()
        for k, name in enumerate(ids):
            try:
                known = name in self._place or name in seen
            except TypeError:
                raise TypeError(
                    f"ids: that of example {k} is {quoted(name)}, which cannot be hashed; expected "
                    "a number or a text"
                ) from None
            if known:
                raise ValueError(
                    f"ids: example {k} has the id {quoted(name)}, which another one has already; "
                    "to correct an example, forget it first"
                )
            seen.add(name)

    def _names(self, ids: Iterable[Hashable] | None, n: int) -> list[Hashable]:
        if ids is None:
            names: list[Hashable] = []
            while len(names) < n:
                if self._next not in self._place:
                    names.append(self._next)
                self._next += 1
            return names
        names = list(ids)
        if len(names) != n:
            raise ValueError(f"ids has {len(names)} names and X {n} examples; expected as many")
        self._check(names)
        return names

    def _add(self, names: list[Hashable]) -> None:
        for name in names:
            self._place[name] = len(self.ids)
            self.ids.append(name)

    # --- going on later ---

    def __getstate__(self) -> dict[str, Any]:
        """Return all of it but for native objects: another process goes on bit for bit."""
        kept = {k: v for k, v in self.__dict__.items() if k not in ("machine", "chunks")}
        return kept | {"_engine_state": self.machine.state(), "_data": self.chunks.data}

    def __setstate__(self, state: dict[str, Any]) -> None:
        engine, data = state.pop("_engine_state"), state.pop("_data")
        self.__dict__.update(state)
        # (Pickles of earlier versions do not have it. Between two batches all were looked at.)
        self.state.setdefault("seen", self.n_examples)
        self.chunks = Chunks(self.growing, data)
        self.machine = self._engine(self.chunks)
        self.machine.restore(engine)
