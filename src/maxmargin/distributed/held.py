"""What a worker holds of a training: the data of a share, and the share once it is made.

This module is what workers import; it does not need Dask. A worker keeps shares by their names in
`_HELD`; whoever knows a name may call its methods (`call`).
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin._native import PythonProblem as NativePythonProblem
from maxmargin.distributed.features import (
    OwnSequences,
    RenumberedSequences,
    Summary,
    summary_of,
)
from maxmargin.distributed.share import Share
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.binding import bind
from maxmargin.estimators.structural import sum_weight
from maxmargin.regularizers import make_regularizer
from maxmargin.regularizers.base import BoundRegularizer
from maxmargin.solvers import make_solver
from maxmargin.streams import open_source, temporary_corpus
from maxmargin.structures.adapter import PythonProblem
from maxmargin.structures.chain_layout import ChainLayout
from maxmargin.structures.native import NativeStructure, PreparedProblem

__all__ = [
    "HeldExamples",
    "HeldSequences",
    "Reading",
    "ShareMissingError",
    "call",
    "drop",
    "hold",
    "prepare_structure",
]


class ShareMissingError(Exception):
    """The worker does not have this share: it is another process than the one that did."""


@dataclass(frozen=True)
class _Kept:
    """What is held under a name, and the lock of whoever calls it."""

    held: Any
    lock: Any = field(default_factory=threading.Lock)


_HELD: dict[str, _Kept] = {}
_LOCK = threading.Lock()


def hold(name: str, make: Callable[..., Any], *args: Any) -> Any:
    """Make something that holds a share, and keep it under a name; return what it has to tell."""
    held = make(*args)
    with _LOCK:
        _HELD[name] = _Kept(held)
    return held.told()


def call(name: str, method: str, *args: Any) -> Any:
    """Call a method of what is held, or of its share."""
    kept = _HELD.get(name)
    if kept is None:
        raise ShareMissingError(name)
    held = kept.held
    own = getattr(held, method, None)
    # A task that was cancelled while it ran goes on to its end; on a worker with several threads
    # the next call must not begin before that.
    with kept.lock:
        return (getattr(held.share, method) if own is None else own)(*args)


def drop(prefix: str) -> int:
    """Forget everything whose name begins so; return how much that was."""
    with _LOCK:
        names = [name for name in _HELD if name.startswith(prefix)]
        for name in names:
            del _HELD[name]
    return len(names)


@dataclass(frozen=True)
class Reading:
    """Where the examples of a share come from.

    Attributes
    ----------
    files : tuple of str
        Files that the worker reads; or none, and pairs (x, y) are given.
    options : dict
        Of `maxmargin.streams.open_source`.
    place : str
        What messages call it.
    """

    files: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    place: str = "the data"

    def source(self, parts: Iterable[Any]) -> Any:
        """Return files, or the pairs of some partitions one after the other."""
        if self.files:
            return open_source(list(self.files), **self.options)
        return [checked_pair(pair, self.place) for part in parts for pair in part]


def checked_pair(pair: Any, place: str) -> tuple[Any, Any]:
    """Return an example as a pair.

    Raises
    ------
    TypeError
        If it is none.
    """
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    raise TypeError(f"{place}: an example is {pair!r:.80}; expected a pair (x, y)")


class HeldSequences:
    """Sequences of a share, for a tagger.

    Parameters
    ----------
    tagger : SequenceTagger
        With the parameters of the training.
    reading : Reading
        Where sequences come from.
    seed : object
        Of the share's visiting orders.
    *parts : iterables
        Partitions of pairs.
    """

    share: Share

    def __init__(self, tagger: Any, reading: Reading, seed: Any, *parts: Any) -> None:
        self.tagger, self.seed = tagger, seed
        options: dict[str, Any] = {
            "template": tagger.template,
            "hash_bits": tagger.hash_bits,
            "dtype": tagger.dtype,
        }
        source = reading.source(parts)
        given = source if reading.files else lambda: source
        self.corpus, _ = temporary_corpus(given, **options)
        self.structure: Any = None

    def told(self) -> Summary:
        """Return what it tells of its features and labels."""
        return summary_of(self.corpus, self.tagger.dtype)

    def adopt(self, summary: Summary, n_examples: int, agrees: bool = False) -> None:
        """Make the share, with the features and labels of all.

        Parameters
        ----------
        summary : Summary
            Of all shares, finished.
        n_examples : int
            Of all shares.
        agrees : bool
            Whether shares agree on weights: each then has those only that its examples read.
        """
        kind = OwnSequences if agrees else RenumberedSequences
        data = kind(self.corpus, summary, self.tagger.dtype)
        training = self.tagger._training(data, None, {})
        self.structure, bound = training.structure, training.bound
        C = sum_weight(self.tagger.C, self.tagger.C_scale, n_examples)
        self.regularizer = own = bound.regularizer
        rows: dict[str, Any] = {}
        if isinstance(data, OwnSequences):
            width = ChainLayout.of(data.batch, len(data.classes)).width(bound.dtype)
            rows = {"rows": data.rows, "n_weights": data.n_rows * width}
            if not own.link.uniform:
                places = data.rows[:, None].astype(np.intp) * width + np.arange(width)
                own = BoundRegularizer(own, own.link.at(places.ravel()))
        self.share = Share(
            bound.prepared.problem,
            training.solver,
            C,
            own,
            single=bound.dtype == "float32",
            seed=self.seed,
            threads=training.threads,
            **rows,
        )

    def model(self) -> tuple[Any, Any]:
        """Return the prepared structure and the regulariser, which are the same for all shares."""
        return self.structure, self.regularizer


class HeldExamples:
    """Examples of a share, for any structure.

    Parameters
    ----------
    model : StructuralSVM
        With the parameters of the training; its structure is prepared.
    reading, seed, *parts
        As in `HeldSequences`.
    """

    share: Share

    def __init__(self, model: Any, reading: Reading, seed: Any, *parts: Any) -> None:
        self.model_, self.seed = model, seed
        self.pairs = list(reading.source(parts))

    def told(self) -> int:
        """Return its number of examples."""
        return len(self.pairs)

    def adopt(self, structure: Any, n_examples: int, agrees: bool = False) -> None:
        """Make the share, with all weights.

        Parameters
        ----------
        structure : Structure
            Prepared.
        n_examples : int
            Of all shares.
        agrees : bool
            As in `HeldSequences.adopt`.
        """
        X, Y = [x for x, _ in self.pairs], [y for _, y in self.pairs]
        model, dtype = self.model_, self.model_.dtype
        if isinstance(structure, NativeStructure):
            prepared = PreparedProblem(_problem_of(structure, X, Y, dtype), {})
        else:
            adapter = PythonProblem(structure, X, Y)
            dtype = "float64"
            parts = {"n_weights": adapter.n_weights}
            prepared = PreparedProblem(NativePythonProblem(adapter), parts)
        regularizer = make_regularizer(model._regularizer(structure))
        bound = bind(
            regularizer, structure, prepared, dtype=dtype, examples=(X, Y), fit_params={}
        )
        self.structure, self.regularizer = structure, bound.regularizer
        self.share = Share(
            bound.prepared.problem,
            make_solver(model.solver),
            sum_weight(model.C, model.C_scale, n_examples),
            bound.regularizer,
            single=bound.dtype == "float32",
            seed=self.seed,
        )

    def model(self) -> tuple[Any, Any]:
        """Return the prepared structure and the regulariser, which are the same for all shares."""
        return self.structure, self.regularizer


def _problem_of(structure: Any, X: list[Any], Y: list[Any], dtype: str) -> Any:
    """Return the native problem of some examples, with what the structure learned of all.

    Raises
    ------
    NotCompatibleError
        If the structure has no method for that.
    """
    make = getattr(structure, "make_problem", None)
    if make is None:
        raise NotCompatibleError(
            f"{type(structure).__name__} has no make_problem(X, Y), which makes the problem of "
            "some examples with what prepare learned of all; it cannot be trained in shares"
        )
    typed = "dtype" in inspect.signature(make).parameters
    return make(X, Y, dtype=dtype) if typed else make(X, Y)


def prepare_structure(structure: Any, reading: Reading, *parts: Any) -> Any:
    """Prepare a structure with all examples, and return it."""
    pairs = list(reading.source(parts))
    structure.prepare([x for x, _ in pairs], [y for _, y in pairs])
    return structure
