"""`LatentLearner`: examples with latent parts that come one after the other.

The objective over the examples seen so far has a concave part (`maxmargin.solvers.cccp`)::

    J(w) = Ω(w) + C Σ_i max_z F_i(z) - C Σ_i max_h w·f(x_i, y_i, h)

With completions imputed for all truths it is convex, and learning is that of `OnlineLearner` under
the fixed linear term u₀ of the completions. What is added:

*New examples* are completed under the present w when they come. The completion is their reference,
so that u₀ and w stay as they are.

*Re-imputation*: all completions are chosen anew at the present w, and u₀ moves with them;
multipliers and planes stay. After a batch that happens when there are half as many examples more
than at the last time, so that its cost (some passes over all examples) is a constant for each
example; `improve` does it whenever a convex step is done.

*The objective of what has been seen does not rise in a re-imputation step.* With P_k the convex
objective under the k-th imputation, J ≤ P_k, with equality at the w where it was made. A step is
carried on until its P_k is no higher than J was when it began; where its gap is down to what is
asked for and it is still higher, multipliers and completions go back to what they were then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError, ObjectiveRoseError
from maxmargin.online.chunks import Chunks
from maxmargin.online.learner import OnlineLearner
from maxmargin.solvers.cccp import COARSE, FOLLOWS
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.dual import DualMachine
from maxmargin.solvers.online import Online
from maxmargin.solvers.outer import OuterHistory, OuterRecord, linear_value, rounding_of
from maxmargin.structures.growing import GrowingLatent

__all__ = ["LatentLearner"]

#: Completions are chosen anew when there are so many times the examples of the last time.
GROWN = 1.5
#: Cycles that a re-imputation step may take beyond those asked for, until the objective is below
#: that of its beginning; then it is undone.
MOST = 20


class _Found(NamedTuple):
    """Completions of all examples under one w."""

    data: list[Any]
    term: NDArray[np.float64]  # u₀
    changed: int
    gained: float  # by which J is below the convex objective
    rounding: float


class _Saved(NamedTuple):
    """What a re-imputation step began with."""

    engine: Any
    data: list[Any]
    term: NDArray[np.float64] | None
    state: dict[str, Any]
    bound: float


class LatentLearner(OnlineLearner):
    """A model with latent parts that learns from one batch of examples after the other.

    Parameters
    ----------
    growing, solver, C, seed
        As for `OnlineLearner`.
    gap : float
        Relative gap to which a convex step is carried on, at most.
    tol : float
        Completions are settled when another imputation lowers the objective by no more than this
        share of it.

    Attributes
    ----------
    outer : OuterHistory
        A record for each imputation since the last example came or went.
    settled : bool
        Whether the last imputation changed nothing that matters.
    threads : int
        For imputing and for certificates.
    """

    growing: GrowingLatent

    def __init__(
        self,
        growing: GrowingLatent,
        solver: Online,
        *,
        C: float,
        seed: Any = None,
        gap: float = 0.01,
        tol: float = 1e-3,
    ) -> None:
        if (solver.slack, solver.rescale) != ("linear", "margin"):
            raise NotCompatibleError(
                f'latent parts need slack="linear" and rescale="margin"; {solver} has '
                f"slack={solver.slack!r} and rescale={solver.rescale!r}"
            )
        super().__init__(growing, solver, C=C, seed=seed)
        self.gap, self.tol, self.threads = gap, tol, 1
        self._imputed = 0  # examples at the last imputation
        self._saved: _Saved | None = None
        self._restart()

    def _restart(self) -> None:
        """Begin a new sequence of imputations: the objective is one of other examples."""
        self.outer, self.settled = OuterHistory(), False
        self._bound, self._asked = math.inf, max(self.gap, COARSE)
        self._seconds, self._cycles = 0.0, 0
        self._saved = None

    # --- examples that come and go ---

    def begin(
        self,
        X: Any,
        Y: Any,
        fit_params: Mapping[str, Any],
        ids: Iterable[Hashable] | None,
        regularizer: Any,
    ) -> None:
        """Learn from the first examples; see `OnlineLearner.begin`."""
        super().begin(X, Y, fit_params, ids, regularizer)
        self._after_batch()

    def adopt(
        self,
        parts: Any,
        state: dict[str, Any],
        regularizer: Any,
        ids: Iterable[Hashable] | None = None,
    ) -> None:
        """Go on from what ``fit`` left, with the completions of its weights."""
        super().adopt(parts, state, regularizer, ids)
        self._take_term()
        self._imputed = self.n_examples

    def learn(
        self,
        X: Any,
        Y: Any,
        fit_params: Mapping[str, Any],
        ids: Iterable[Hashable] | None = None,
    ) -> None:
        """Learn from more examples; see `OnlineLearner.learn`."""
        super().learn(X, Y, fit_params, ids)
        self._after_batch()

    def _arrived(self, data: Any) -> Any:
        return self.growing.completed(data, self.machine.weights, self.threads)

    def _after_batch(self) -> None:
        self._restart()
        if self.n_examples >= GROWN * self._imputed:
            if self._impute(self.certify(self.threads)):
                self.cycle()
            self._settle(self.gap, self.threads)

    def forget(self, ids: Iterable[Hashable]) -> bool:
        """Unlearn examples and erase their data and completions; see `OnlineLearner.forget`."""
        left = super().forget(ids)
        if left:
            self._restart()
            self._imputed = min(self._imputed, self.n_examples)
            self._take_term()
            self.machine.refresh()  # u of what is left, from scratch
            self.state["lower"] = self.machine.dual()
        return left

    def set_C(self, C: float) -> None:  # noqa: N802
        """Go on with another weight of the loss."""
        if C != self.C:
            super().set_C(C)
            self.chunks.problem.linear_term = self._term(self.chunks)
            self._take_term()
            self._restart()

    # --- the linear term ---

    @property
    def _single(self) -> bool:
        return bool(self.machine.made_as[0] == "float32")

    def _term(self, chunks: Chunks, single: bool | None = None) -> NDArray[np.float64]:
        """Return u₀ of the completions of all examples."""
        single = self._single if single is None else single
        terms = [
            self.growing.linear_term(problem, data, self.C, single)
            for problem, data in zip(chunks.problems, chunks.data, strict=True)
        ]
        return np.asarray(sum(terms[1:], terms[0]))

    def _engine(self, chunks: Chunks) -> DualMachine:
        single = self.growing.dtype == "float32" and bool(chunks.problem.offers_single)
        chunks.problem.linear_term = self._term(chunks, single)
        return super()._engine(chunks)

    def _take_term(self) -> None:
        """Let u₀ be that of the problem; multipliers stay."""
        self.machine.take_linear_term()
        self.state |= {"lower": self.machine.dual(), "open": 0.0, "goal": 0.0}

    # --- imputing ---

    def _find(self, certificate: Certificate) -> _Found:
        """Return the completions of all truths under the present w, of which a certificate is."""
        w, before = np.array(self.machine.weights), self.machine.fixed
        data, changed = [], 0
        for problem, entry in zip(self.chunks.problems, self.chunks.data, strict=True):
            own, moved = self.growing.impute(problem, entry, self.machine.weights, self.threads)
            data.append(own)
            changed += moved
        terms = (
            self.growing.linear_term(problem, entry, self.C, self._single)
            for problem, entry in zip(self.chunks.problems, data, strict=True)
        )
        term: NDArray[np.float64] = np.asarray(sum(terms, np.float64(0)))
        old = linear_value(w, before)
        rounding = rounding_of(certificate, w, before, old)
        gained = linear_value(w, term.astype(w.dtype)) - old
        if gained < -rounding:
            raise ObjectiveRoseError(
                f"what was imputed for {self.n_examples} examples is worse by {-gained:.6g} than "
                "what was imputed before, under the same weights: the argmax that imputes (argmax "
                "with given=...) does not find the best output"
            )
        return _Found(data, term, changed, max(gained, 0.0), rounding)

    def objective(self, certificate: Certificate) -> float:
        """Return J of the weights of which a certificate is.

        Parameters
        ----------
        certificate : Certificate
            What `certify` gave, with nothing learned since.
        """
        return certificate.primal - self._find(certificate).gained

    def _impute(self, certificate: Certificate) -> bool:
        """Move u₀ to the completions of the present w, unless they are settled."""
        began = time.perf_counter()
        found = self._find(certificate)
        objective = certificate.primal - found.gained
        share = (self._bound - objective) / max(abs(objective), 1e-300)
        self.settled = found.changed == 0 or share <= self.tol
        self._imputed = self.n_examples
        self._seconds += time.perf_counter() - began
        if not self.settled or certificate.gap <= self.gap:
            self._record(objective, certificate, found.changed)
        if self.settled:
            self._asked, self._saved = self.gap, None
            return False
        if math.isfinite(share):
            self._asked = max(self.gap, min(self._asked, FOLLOWS * share))
        term = self.chunks.problem.linear_term
        state = self.machine.state()
        self._saved = _Saved(state, self.chunks.data, term, dict(self.state), self._bound)
        self._bound = min(objective, self._bound)
        self.chunks.data, self.chunks.problem.linear_term = found.data, found.term
        self._take_term()
        self.solver._due(self.state)
        self._optimise()
        return True

    def _record(self, objective: float, certificate: Certificate, changed: int) -> None:
        self.outer.append(
            OuterRecord(
                n_outer=len(self.outer) + 1,
                objective=min(objective, self._bound),  # they differ by rounding at most
                bound=certificate.primal,
                changed=changed,
                gap=certificate.gap,
                asked=self._asked,
                passes=self._cycles,
                seconds=self._seconds,
            )
        )
        self._cycles = 0

    def cycle(self) -> None:
        """Look at all examples once more, in a random order."""
        began = time.perf_counter()
        super().cycle()
        self._cycles += 1
        self._seconds += time.perf_counter() - began

    def improve(self, cycles: int, wanted: float, threads: int) -> None:
        """Look at all examples again, impute anew whenever a convex step is done.

        Parameters
        ----------
        cycles, wanted, threads
            As for `OnlineLearner.improve`. It ends when the convex step has the gap wanted and
            completions are settled.
        """
        self.gap, self.threads = wanted, threads
        for _ in range(cycles):
            certificate = self.certify(threads)
            if not self._advance(certificate):
                break
            self.cycle()
        self._settle(wanted, threads)

    def _advance(self, certificate: Certificate) -> bool:
        """Impute if the convex step is done, else go on with it; tell whether there is more."""
        done = certificate.gap <= self.gap
        if self._above(certificate):
            if done:
                self._undo()
                return False
        elif certificate.gap <= max(self.gap, self._asked):
            if self._impute(certificate):
                return True
            if done:
                return False
        self.refine(certificate)
        return True

    def _above(self, certificate: Certificate) -> bool:
        """Tell whether a convex step is still above the objective that it began with."""
        return certificate.primal > self._bound

    def _settle(self, wanted: float, threads: int) -> None:
        """Carry a re-imputation step on until it is below its beginning, or undo it."""
        for _ in range(MOST):
            if self._saved is None:
                return
            certificate = self.certify(threads)
            if not self._above(certificate):
                self._saved = None
                return
            if certificate.gap <= wanted:
                break
            self.refine(certificate)
            self.cycle()
        self._undo()

    def _undo(self) -> None:
        """Go back to where the last imputation was made."""
        saved = self._saved
        if saved is None:
            return
        self.machine.restore(saved.engine)
        self.chunks.data, self.chunks.problem.linear_term = saved.data, saved.term
        self.state, self._bound = saved.state, saved.bound
        self._saved, self.settled = None, True
