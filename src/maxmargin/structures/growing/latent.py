"""Examples whose truths leave a part of the output open, which become more.

The engine trains a structure over complete outputs, whose truths are the *references*. What was
imputed last of each example is kept beside it (`Completed`): it is joined, taken apart and pickled
with the examples, so that whoever forgets an example forgets its completion as well.

A new example's reference is its best completion under the present weights, where the structure can
be given one: what is imputed is then the reference itself, its share of the linear term u₀ is zero,
and the weights do not move before anything was learned from it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice
from maxmargin.structures.adapter import PythonProblem, paired_examples
from maxmargin.structures.chain import Chain
from maxmargin.structures.growing.base import Change, Growing
from maxmargin.structures.growing.chain import GrowingChain
from maxmargin.structures.growing.listed import GrowingPython, Listed
from maxmargin.structures.growing.matrix import GrowingClasses
from maxmargin.structures.latent import Latent, NativeSide, PythonSide, StatesSide
from maxmargin.structures.latent_python import Completions, PythonImputer, completed
from maxmargin.structures.latent_rows import BAGS, LatentRows
from maxmargin.structures.native import NativeStructure
from maxmargin.structures.ragged import EXAMPLE, Schema

__all__ = ["Completed", "GrowingLatent", "growing_latent"]

#: What was imputed, as codes of planes; none of an example: its reference.
CODES = Schema({"starts": (EXAMPLE, "word")}, {"codes": "word"}, counted_by="starts")


class Completed(NamedTuple):
    """Encoded examples, and what was imputed last of each.

    Attributes
    ----------
    data : object
        The examples, their references as truths.
    latent : object
        The codes of the imputed outputs, or the outputs themselves.
    """

    data: Any
    latent: Any


class GrowingLatent(Growing):
    """Examples with latent parts, which become more; see `Growing`.

    Attributes
    ----------
    start : str
        The latent parts of the first examples: as `Latent.prepare_training` takes it.
    rng : numpy.random.Generator
        For "cluster" and "random".
    """

    start = "first"
    rng: np.random.Generator

    def __init__(self, structure: Any, dtype: str) -> None:
        super().__init__(structure, dtype)
        self.rng = np.random.default_rng()

    @abstractmethod
    def completed(self, data: Completed, weights: NDArray[Any], threads: int) -> Completed:
        """Return new examples whose references are their best completions, where they can be.

        Parameters
        ----------
        data : Completed
            From `more`.
        weights : array
            The engine's.
        threads : int
            Threads to use.
        """

    @abstractmethod
    def impute(
        self, problem: _native.Problem, data: Completed, weights: NDArray[Any], threads: int
    ) -> tuple[Completed, int]:
        """Return the examples with their best completions, and how many are new.

        Parameters
        ----------
        problem : Problem
            Of the examples.
        data, weights, threads
            As in `completed`.
        """

    @abstractmethod
    def linear_term(
        self, problem: _native.Problem, data: Completed, C: float, single: bool
    ) -> NDArray[np.float64]:
        """Return C Σ_i (f(x_i, z_i) - f(x_i, reference)) of what was imputed last.

        Parameters
        ----------
        problem, data
            As in `impute`.
        C : float
            Weight of the loss.
        single : bool
            Whether in the layout of 4-byte weights.
        """


class GrowingCodes(GrowingLatent):
    """What native structures share: the examples of another `Growing`, with codes."""

    inner: Growing

    @property
    def dtype(self) -> str:
        """Type of the weights."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: str) -> None:
        self._dtype = dtype
        if "inner" in self.__dict__:
            self.inner.dtype = dtype

    @property
    def relayouts(self) -> bool:  # type: ignore[override]
        """Whether later examples may change the layout of the weights."""
        return self.inner.relayouts

    def _fresh(self, data: Any) -> Completed:
        """Return examples of which the references are imputed."""
        starts = np.zeros(self.inner.count(data) + 1, np.int64)
        return Completed(data, {"starts": starts, "codes": np.empty(0, np.uint32)})

    def adopt(self, parts: Any) -> tuple[Completed, None]:
        """Go on from what ``fit`` made: parts of the problem, and codes of what was imputed."""
        data, change = self.inner.adopt(parts["data"])
        assert change is None
        starts, codes = parts["latent"]
        return Completed(data, {"starts": starts, "codes": codes}), None

    def completed(self, data: Completed, weights: NDArray[Any], threads: int) -> Completed:
        """Return them as they are: nobody can write an output as a truth of any structure."""
        return data

    def _imputer(self, problem: _native.Problem, data: Completed) -> _native.Imputer:
        imputer = _native.Imputer(problem)
        imputer.set_codes(data.latent["starts"], data.latent["codes"])
        return imputer

    def impute(
        self, problem: _native.Problem, data: Completed, weights: NDArray[Any], threads: int
    ) -> tuple[Completed, int]:
        """Impute by the structure's own argmax."""
        imputer = self._imputer(problem, data)
        _, changed = imputer.impute(weights, threads)
        starts, codes = imputer.codes()
        return Completed(data.data, {"starts": starts, "codes": codes}), int(changed)

    def linear_term(
        self, problem: _native.Problem, data: Completed, C: float, single: bool
    ) -> NDArray[np.float64]:
        """Return u₀ of some examples."""
        term: NDArray[np.float64] = self._imputer(problem, data).linear_term(C, single)
        return term

    def problem(self, data: Completed) -> _native.Problem:
        """Return examples as a native problem."""
        return self.inner.problem(data.data)

    def join(self, several: list[Completed]) -> Completed:
        """Return examples one behind the other."""
        return Completed(
            self.inner.join([one.data for one in several]),
            CODES.join([one.latent for one in several]),
        )

    def take(self, data: Completed, examples: NDArray[Any]) -> Completed:
        """Return some of the examples."""
        return Completed(self.inner.take(data.data, examples), CODES.take(data.latent, examples))

    def count(self, data: Completed) -> int:
        """Return the number of examples."""
        return self.inner.count(data.data)

    def purge(self, remaining: list[Completed]) -> tuple[list[Completed], Change | None]:
        """Let go of features that no remaining example has."""
        left, change = self.inner.purge([one.data for one in remaining])
        latent = [one.latent for one in remaining]
        if change is not None:
            latent = [_moved(codes, change) for codes in latent]
        return [Completed(*both) for both in zip(left, latent, strict=True)], change

    def _wrapped(self, change: Change | None) -> Change | None:
        """Return a change of the inner examples as one of these."""
        if change is None:
            return None
        inner = change

        def data(one: Completed) -> Completed:
            return Completed(inner.data(one.data), _moved(one.latent, inner))

        return replace(inner, data=data)

    def model_weights(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the weights in the layout of the structure."""
        return self.inner.model_weights(weights)

    @property
    def n_weights(self) -> int:
        """Number of weights without padding."""
        return self.inner.n_weights

    def layout(self) -> Any:
        """Return the layout for regularisers."""
        return self.inner.layout()


def _moved(latent: Mapping[str, Any], change: Change) -> dict[str, Any]:
    return {**latent, "codes": np.ascontiguousarray(change.codes(latent["codes"]), np.uint32)}


class GrowingStates(GrowingCodes):
    """Labels with states: a chain or classes over pairs (label, state)."""

    structure: Latent

    def __init__(self, structure: Latent, dtype: str) -> None:
        super().__init__(structure, dtype)
        self._kind: Any = GrowingChain if isinstance(structure.structure, Chain) else GrowingClasses
        if structure.ready:
            self.inner = self._kind(structure.prepared.inner, dtype)

    @property
    def _labels(self) -> Any:
        side = self.structure.prepared
        assert isinstance(side, StatesSide)
        return side.labels

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Completed:
        """Learn labels and features, and choose the first states."""
        side = self.structure.new_side()
        assert isinstance(side, StatesSide)
        pairs = side.labels.first_pairs(X, Y, start=self.start, rng=self.rng, dtype=self.dtype)
        side.inner = side.labels.inner
        inner = self._kind(side.inner, self.dtype)
        data = inner.first(X, pairs, fit_params)
        self.structure.take_side(side)
        self.inner = inner
        return self._fresh(data)

    def more(
        self, X: Any, Y: Any, fit_params: Mapping[str, Any]
    ) -> tuple[Completed, Change | None]:
        """Take examples in; their labels are those of the first ones, or of ``labels``."""
        if Y is None:
            raise ValueError("Y is None; expected the labels of each example")
        data, change = self.inner.more(X, self._labels.pairs_of(Y), fit_params)
        return self._fresh(data), self._wrapped(change)

    def completed(self, data: Completed, weights: NDArray[Any], threads: int) -> Completed:
        """Choose the best states under the present weights as those of the references."""
        found, _ = self.impute(self.inner.problem(data.data), data, weights, threads)
        starts, codes = found.latent["starts"], found.latent["codes"]
        parts = dict(data.data)
        labels = parts["labels"].copy()
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        if "offsets" in parts:
            bits = np.uint32((len(self._labels.pairs_) - 1).bit_length())  # of a pair in a code
            labels[parts["offsets"][owner] + (codes >> bits)] = codes & (
                (np.uint32(1) << bits) - np.uint32(1)
            )
        else:
            labels[owner] = codes
        return self._fresh({**parts, "labels": labels})


class GrowingAsGiven(GrowingCodes):
    """A native structure whose loss ignores what is latent; truths are any completions."""

    structure: Latent

    def __init__(self, structure: Latent, dtype: str, inner: Growing) -> None:
        super().__init__(structure, dtype)
        self.inner = inner

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Completed:
        """Let the structure learn from the first examples."""
        side = self.structure.new_side()
        assert isinstance(side, NativeSide)
        data = self.inner.first(X, Y, fit_params)
        self.structure.take_side(side)
        return self._fresh(data)

    def more(
        self, X: Any, Y: Any, fit_params: Mapping[str, Any]
    ) -> tuple[Completed, Change | None]:
        """Take examples in."""
        data, change = self.inner.more(X, Y, fit_params)
        return self._fresh(data), self._wrapped(change)


class Bags(Growing):
    """Sets of rows with a sign, in flat arrays; see `Growing`."""

    structure: LatentRows
    start = "first"
    rng: np.random.Generator | None = None

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        """Learn the classes and the number of features."""
        weights = fit_params.get("sample_weight")
        return self.structure.first_bags(X, Y, weights, start=self.start, rng=self.rng)

    def more(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> tuple[dict[str, Any], None]:
        """Take sets in."""
        return self.structure.bags(X, Y, fit_params.get("sample_weight")), None

    def adopt(self, parts: dict[str, Any]) -> tuple[dict[str, Any], None]:
        """Go on from what ``fit`` made."""
        return {name: parts[name] for name in (*BAGS.pointers, *BAGS.arrays)}, None

    def problem(self, data: dict[str, Any]) -> _native.Problem:
        """Return sets as a native problem."""
        return self.structure.bags_problem(data)

    def join(self, several: list[dict[str, Any]]) -> dict[str, Any]:
        """Return sets one behind the other."""
        return BAGS.join(several)

    def take(self, data: dict[str, Any], examples: NDArray[Any]) -> dict[str, Any]:
        """Return some of the sets."""
        return BAGS.take(data, examples)

    def count(self, data: dict[str, Any]) -> int:
        """Return the number of sets."""
        return BAGS.count(data)


class GrowingBags(GrowingCodes):
    """Sets of rows, of which the best counts."""

    structure: LatentRows
    inner: Bags

    def __init__(self, structure: LatentRows, dtype: str) -> None:
        super().__init__(structure, dtype)
        self.inner = Bags(structure, dtype)

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Completed:
        """Learn the classes and the number of features."""
        self.inner.start, self.inner.rng = self.start, self.rng
        return self._fresh(self.inner.first(X, Y, fit_params))

    def more(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> tuple[Completed, None]:
        """Take sets in."""
        return self._fresh(self.inner.more(X, Y, fit_params)[0]), None

    def completed(self, data: Completed, weights: NDArray[Any], threads: int) -> Completed:
        """Choose the best rows of positive examples as their references."""
        return self._fresh(self.structure.best_rows(data.data, weights))


class Chosen(NamedTuple):
    """Complete outputs of a user's structure, one of each for each example."""

    references: list[Any]
    outputs: list[Any]


class _OwnProblem(_native.PythonProblem):
    """A problem of a user's structure that can be asked for its adapter."""

    def __init__(self, adapter: PythonProblem) -> None:
        super().__init__(adapter)
        self.adapter = adapter


class GrowingCompletions(GrowingLatent):
    """A user's structure with latent parts."""

    structure: Latent
    _n_weights: int | None = None

    def __init__(self, structure: Latent, dtype: str) -> None:
        super().__init__(structure, "float64")
        self._listing = GrowingPython(None, "float64")

    @property
    def _own(self) -> Completions:
        side = self.structure.prepared
        assert isinstance(side, PythonSide)
        assert side.completions is not None
        return side.completions

    @property
    def n_weights(self) -> int:
        """Number of features, as the first feature vector told it."""
        return self._n_weights or 0

    def layout(self) -> Any:
        """Return the layout for regularisers."""
        from maxmargin.structures.weight_layout import StructureLayout

        return StructureLayout(self.structure.prepared.inner, self.n_weights, self.dtype)

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> Completed:
        """Prepare the structure with the first examples, and complete their truths."""
        check_choice("start", self.start, ("random", "first"))
        side = self.structure.new_side()
        assert isinstance(side, PythonSide)
        data = self._listing.listed(*paired_examples(X, Y), fit_params)
        references = side.begin(data.X, data.Y, self.start, self.rng)
        self.structure.take_side(side)
        return self._checked(data, references)

    def more(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> tuple[Completed, None]:
        """Take examples in; `completed` asks for their completions."""
        data = self._listing.listed(*paired_examples(X, Y), fit_params)
        return Completed(data, Chosen([], [])), None

    def _checked(self, data: Listed, references: list[Any]) -> Completed:
        found = Completed(data, Chosen(references, list(references)))
        self.problem(found)  # which says what is wrong with them
        return found

    def adopt(self, parts: Any) -> tuple[Completed, None]:
        """Go on from what ``fit`` made."""
        X, Y, weights, references = parts["data"]["examples"]
        data = self._listing.listed(X, Y, {"sample_weight": weights})
        self._n_weights = parts["data"]["n_weights"]
        return Completed(data, Chosen(list(references), list(parts["latent"]))), None

    def completed(self, data: Completed, weights: NDArray[Any], threads: int) -> Completed:
        """Choose the best completions under the present weights as references."""
        own, w, references = self._own, weights.view(), []
        w.flags.writeable = False
        for i, (x, y) in enumerate(zip(data.data.X, data.data.Y, strict=True)):
            references.append(own.best(x, w, y, i))
            own.require_no_loss(y, references[-1], i)
        return self._checked(data.data, references)

    def problem(self, data: Completed) -> _native.Problem:
        """Return examples as a problem whose oracle is in Python."""
        adapter = PythonProblem(
            completed(self._own),
            data.data.X,
            data.latent.references,
            self._n_weights,
            example_weight=data.data.weights,
        )
        self._n_weights = adapter.n_weights
        return _OwnProblem(adapter)

    def _imputer(self, problem: _native.Problem, data: Completed) -> PythonImputer:
        assert isinstance(problem, _OwnProblem)
        listed, (references, outputs) = data
        return PythonImputer(
            self._own, problem.adapter, listed.X, listed.Y, references, outputs=outputs
        )

    def impute(
        self, problem: _native.Problem, data: Completed, weights: NDArray[Any], threads: int
    ) -> tuple[Completed, int]:
        """Impute by the user's argmax."""
        imputer = self._imputer(problem, data)
        _, changed = imputer.impute(weights, threads)
        return data._replace(latent=data.latent._replace(outputs=imputer.outputs)), changed

    def linear_term(
        self, problem: _native.Problem, data: Completed, C: float, single: bool
    ) -> NDArray[np.float64]:
        """Return u₀ of some examples."""
        return self._imputer(problem, data).linear_term(C, single)

    def join(self, several: list[Completed]) -> Completed:
        """Return examples one behind the other."""
        return Completed(
            self._listing.join([one.data for one in several]),
            Chosen(
                [z for one in several for z in one.latent.references],
                [z for one in several for z in one.latent.outputs],
            ),
        )

    def take(self, data: Completed, examples: NDArray[Any]) -> Completed:
        """Return some of the examples."""
        chosen = examples.tolist()
        return Completed(
            self._listing.take(data.data, examples),
            Chosen(*([outputs[k] for k in chosen] for outputs in data.latent)),
        )

    def count(self, data: Completed) -> int:
        """Return the number of examples."""
        return self._listing.count(data.data)


def growing_latent(
    structure: Latent | LatentRows, dtype: str, growing: Callable[[Any, str], Growing]
) -> GrowingLatent:
    """Return a structure with latent parts whose examples may become more.

    Parameters
    ----------
    structure : Latent or LatentRows
        Nobody else holds it.
    dtype : "float32" or "float64"
        Type of the weights.
    growing : callable
        Does the same for structures without latent parts.
    """
    if isinstance(structure, LatentRows):
        return GrowingBags(structure, dtype)
    if structure.states is not None:
        return GrowingStates(structure, dtype)
    if isinstance(structure.structure, NativeStructure):
        return GrowingAsGiven(structure, dtype, growing(structure.structure, dtype))
    return GrowingCompletions(structure, dtype)
