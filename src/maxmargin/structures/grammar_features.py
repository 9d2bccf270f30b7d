"""Attributes of nodes: what templates say about a span, as numbers.

A template is a list of atoms joined by ``+``. An atom reads a terminal, or with ``:words`` or
``:tags`` another column of a sentence, at a place in or around the span, or it is ``length``:

    before [ first second ... penultimate last ] after

An attribute that depends on one end of the span only is kept for each token, the others for each
span; native code needs no more than their numbers. Each attribute is conjoined with the labels with
which it occurs in training.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Columns", "NodeTemplates", "Template", "parse_template"]

Ints = NDArray[np.int64]

#: Offset from the first token, or from the last one.
STARTS = {"before": -1, "first": 0, "second": 1}
ENDS = {"penultimate": -1, "last": 0, "after": 1}
COLUMNS = ("terminals", "words", "tags")
#: The first length of each bucket.
BUCKETS = np.array([1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31, 41])
#: Outside of the sentence, and between the values of several atoms.
OUTSIDE, JOINT = "\x02", "\x1f"


class Columns(NamedTuple):
    """Sentences, one after the other.

    Attributes
    ----------
    offsets : array of shape (n + 1,)
        The first token of each.
    terminals, words, tags : list of str or None
        What there is of each token.
    """

    offsets: Ints
    terminals: list[str]
    words: list[str] | None
    tags: list[str] | None


class Template(NamedTuple):
    """A template, taken apart.

    Attributes
    ----------
    text : str
        As it was given.
    starts, ends : tuple of (column, offset)
        The atoms that are relative to the first and to the last token.
    length : bool
        Whether the length is part of it.
    """

    text: str
    starts: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, int], ...]
    length: bool

    @property
    def kind(self) -> str:
        """What it depends on: "first", "last", "length" or "span"."""
        parts = [
            name
            for name, has in (("first", self.starts), ("last", self.ends), ("length", self.length))
            if has
        ]
        return parts[0] if len(parts) == 1 else "span"


def parse_template(text: Any) -> Template:
    """Take a template apart.

    Parameters
    ----------
    text : str
        Atoms joined by ``+``.

    Returns
    -------
    Template
        Its parts.

    Raises
    ------
    ValueError, TypeError
        If it is no template.
    """
    if not isinstance(text, str):
        raise TypeError(f"a template of node features is {text!r}; expected a string")
    starts, ends, length = [], [], False
    for atom in text.split("+"):
        name, _, column = atom.partition(":")
        column = column or "terminals"
        if name == "length" and ":" not in atom:
            length = True
        elif column not in COLUMNS or name not in STARTS | ENDS:
            raise ValueError(
                f"the template {text!r} of node features has the atom {atom!r}; expected length or "
                f"one of {', '.join([*STARTS, *ENDS])}, with :words or :tags behind it if need be"
            )
        elif name in STARTS:
            starts.append((column, STARTS[name]))
        else:
            ends.append((column, ENDS[name]))
    return Template(text, tuple(starts), tuple(ends), length)


def _values(columns: Columns, atoms: tuple[tuple[str, int], ...]) -> list[str]:
    """Return for every token what the atoms read there."""
    n = len(columns.terminals)
    begin = np.repeat(columns.offsets[:-1], np.diff(columns.offsets))
    end = np.repeat(columns.offsets[1:], np.diff(columns.offsets))
    parts = []
    for name, offset in atoms:
        column = getattr(columns, name)
        if column is None:
            raise ValueError(f"node features read the column {name!r}, which a sentence lacks")
        at = np.arange(n) + offset
        inside = (at >= begin) & (at < end)
        places = zip(at.tolist(), inside.tolist(), strict=True)
        parts.append([column[k] if there else OUTSIDE for k, there in places])
    return parts[0] if len(parts) == 1 else [JOINT.join(row) for row in zip(*parts, strict=True)]


class _Vocabulary:
    """Numbers of strings, 1, 2, ...; 0: not known."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.numbers = {name: k + 1 for k, name in enumerate(names)}

    def learn(self, values: Sequence[str]) -> None:
        self.numbers = {name: k + 1 for k, name in enumerate(sorted(set(values)))}

    def look_up(self, values: Sequence[str]) -> Ints:
        get = self.numbers.get
        return np.fromiter((get(v, 0) for v in values), dtype=np.int64, count=len(values))


def buckets(lengths: Any) -> Ints:
    """Return the buckets of lengths.

    Parameters
    ----------
    lengths : array of int
        At least 1.

    Returns
    -------
    array of int
        From 0.
    """
    found: Ints = np.searchsorted(BUCKETS, lengths, side="right") - 1
    return found


class NodeTemplates:
    """The attributes of spans, learned from the nodes of training trees.

    Parameters
    ----------
    templates : sequence of str
        See the module.

    Attributes
    ----------
    entry_ptr, entry_label : array of int
        The labels with which each attribute is a feature.
    """

    def __init__(self, templates: Sequence[Any]) -> None:
        self.templates = [parse_template(t) for t in templates]
        self.entry_ptr: Ints = np.zeros(1, np.int64)
        self.entry_label: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._starts = [_Vocabulary() for _ in self.templates]
        self._ends = [_Vocabulary() for _ in self.templates]
        self._keys: list[Ints] = [np.zeros(0, np.int64) for _ in self.templates]
        self._first: list[int] = [0] * len(self.templates)  # attribute of the first key

    @property
    def n_entries(self) -> int:
        """Number of pairs of attribute and label."""
        return len(self.entry_label)

    def learn(
        self,
        columns: Columns,
        nodes: tuple[Ints, Ints, Ints],
        n_labels: int,
        min_count: int = 1,
    ) -> None:
        """Learn the attributes of nodes.

        Parameters
        ----------
        columns : Columns
            The sentences.
        nodes : tuple of three arrays
            First token and last token of each node, among all tokens, and the number of its label.
        n_labels : int
            How many labels there are.
        min_count : int
            How often an attribute must occur with a label.
        """
        first, last, label = nodes
        first_attribute = 0
        pairs: list[Ints] = []
        for t, template in enumerate(self.templates):
            if template.starts:
                self._starts[t].learn(_values(columns, template.starts))
            if template.ends:
                self._ends[t].learn(_values(columns, template.ends))
            start, end = self._parts(t, columns)
            keys = self._key(t, start[first], end[last], last - first + 1)
            both, counts = np.unique(keys * n_labels + label, return_counts=True)
            both = both[counts >= min_count]
            known = np.unique(both // n_labels)
            self._keys[t], self._first[t] = known, first_attribute
            attribute = first_attribute + np.searchsorted(known, both // n_labels)
            pairs.append(attribute * n_labels + both % n_labels)
            first_attribute += len(known)
        entries = np.sort(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)
        counts = np.bincount(entries // n_labels, minlength=first_attribute)
        self.entry_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.entry_label = (entries % n_labels).astype(np.uint32)

    def _parts(self, t: int, columns: Columns) -> tuple[Ints, Ints]:
        """Return the numbers of what a template reads at each token, as first and as last."""
        template = self.templates[t]
        nothing = np.zeros(len(columns.terminals), np.int64)
        starts = (
            self._starts[t].look_up(_values(columns, template.starts))
            if template.starts
            else nothing
        )
        ends = self._ends[t].look_up(_values(columns, template.ends)) if template.ends else nothing
        return starts, ends

    def _key(self, t: int, start: Ints, end: Ints, length: Ints) -> Ints:
        """Return one number for what a template says; negative where it is not known."""
        template = self.templates[t]
        width = len(self._ends[t].numbers) + 1
        key = start * width + end
        if template.length:
            key = key * len(BUCKETS) + buckets(length)
        unknown = (start == 0) if template.starts else np.zeros(len(key), bool)
        if template.ends:
            unknown = unknown | (end == 0)
        return np.where(unknown, -1, key)

    def _attributes(self, t: int, keys: Ints) -> Ints:
        """Return the attributes of keys, -1 for those that are not known."""
        known = self._keys[t]
        if not len(known):
            return np.full(len(keys), -1, np.int64)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, self._first[t] + at, -1)

    def encode(self, columns: Columns) -> dict[str, Any]:
        """Return the attributes of sentences as arguments of a native problem.

        Parameters
        ----------
        columns : Columns
            The sentences.

        Returns
        -------
        dict
            Places and numbers of attributes, by what they depend on.
        """
        found: dict[str, Any] = {
            "entry_ptr": self.entry_ptr,
            "entry_label": self.entry_label,
        }
        if not self.templates:
            return found
        lengths = np.diff(columns.offsets)
        longest = int(lengths.max())
        rows: dict[str, list[Ints]] = {"first": [], "last": [], "length": [], "span": []}
        for t, template in enumerate(self.templates):
            kind = template.kind
            start, end = self._parts(t, columns)
            if kind == "length":
                every = np.arange(longest + 1)
                keys = self._key(t, every * 0, every * 0, np.maximum(every, 1))
            elif kind == "span":
                first, last = all_spans(columns.offsets)
                keys = self._key(t, start[first], end[last], last - first + 1)
            else:
                keys = self._key(t, start, end, start * 0 + 1)
            rows[kind].append(self._attributes(t, keys))
        for kind, these in rows.items():
            if these:
                found[f"{kind}_ptr"], found[f"{kind}_ids"] = _csr(np.stack(these, axis=1))
        return found

    # --- files ---

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, as arrays.

        Returns
        -------
        dict
            For `restore`.
        """
        arrays: dict[str, NDArray[Any]] = {
            "entry_ptr": self.entry_ptr,
            "entry_label": self.entry_label,
        }
        for t in range(len(self.templates)):
            arrays[f"keys{t}"] = self._keys[t]
            arrays[f"starts{t}"] = _packed(self._starts[t])
            arrays[f"ends{t}"] = _packed(self._ends[t])
        return arrays

    @classmethod
    def restore(
        cls, templates: Sequence[Any], arrays: dict[str, Any], n_labels: int
    ) -> NodeTemplates:
        """Make templates that know what was learned.

        Parameters
        ----------
        templates : sequence of str
            As in training.
        arrays : dict
            What `state` gave, or anything else.
        n_labels : int
            How many labels there are.

        Returns
        -------
        NodeTemplates
            Ready to encode.

        Raises
        ------
        ValueError, KeyError, TypeError
            If the arrays do not make sense.
        """
        made = cls(templates)
        first = 0
        for t in range(len(made.templates)):
            keys = _ints(arrays[f"keys{t}"])
            if (np.diff(keys) <= 0).any() or (keys < 0).any():
                raise ValueError("the keys of attributes are not ascending")
            made._starts[t] = _unpacked(arrays[f"starts{t}"])
            made._ends[t] = _unpacked(arrays[f"ends{t}"])
            n_keys = (len(made._starts[t].numbers) + 1) * (len(made._ends[t].numbers) + 1)
            n_keys *= len(BUCKETS) if made.templates[t].length else 1
            if len(keys) > 0 and keys[-1] >= n_keys:
                raise ValueError("a key of an attribute is out of range")
            made._keys[t], made._first[t] = keys, first
            first += len(keys)
        ptr, label = _ints(arrays["entry_ptr"]), _ints(arrays["entry_label"])
        if (
            len(ptr) != first + 1
            or ptr[0] != 0
            or ptr[-1] != len(label)
            or (np.diff(ptr) < 0).any()
        ):
            raise ValueError("the entries of attributes do not fit")
        inside = np.ones(len(label), bool)
        inside[ptr[:-1][ptr[:-1] < len(label)]] = False  # the first of each
        if (
            (label < 0).any()
            or (label >= n_labels).any()
            or (np.diff(label)[inside[1:]] <= 0).any()
        ):
            raise ValueError("the labels of attributes are out of range or do not ascend")
        made.entry_ptr, made.entry_label = ptr, label.astype(np.uint32)
        return made

    def names(self, labels: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return (template, value, label) of every feature.

        Parameters
        ----------
        labels : sequence of str
            The labels by number.

        Returns
        -------
        list
            In the order of the weights.
        """
        found = []
        attribute = 0
        for t, template in enumerate(self.templates):
            starts = ["", *self._starts[t].numbers]
            ends = ["", *self._ends[t].numbers]
            for key in self._keys[t].tolist():
                rest, bucket = divmod(key, len(BUCKETS)) if template.length else (key, 0)
                start, end = divmod(rest, len(ends))
                parts = ([starts[start]] if template.starts else []) + (
                    [ends[end]] if template.ends else []
                )
                if template.length:
                    parts.append(f"{BUCKETS[bucket]}+")
                value = " ".join(parts).replace(JOINT, " ").replace(OUTSIDE, "-")
                for e in range(self.entry_ptr[attribute], self.entry_ptr[attribute + 1]):
                    found.append((template.text, value, labels[self.entry_label[e]]))
                attribute += 1
        return found


def all_spans(offsets: Ints) -> tuple[Ints, Ints]:
    """Return first and last token of all spans of all sentences, in native code's order.

    Parameters
    ----------
    offsets : array of shape (n + 1,)
        The first token of each sentence.

    Returns
    -------
    tuple of two arrays
        By sentence, then by beginning, then by end.
    """
    lengths = np.diff(offsets)
    remaining = np.concatenate([np.arange(n, 0, -1) for n in lengths.tolist()])
    first = np.repeat(np.arange(offsets[-1]), remaining)
    begin = np.repeat(np.concatenate([[0], np.cumsum(remaining)[:-1]]), remaining)
    return first, first + (np.arange(len(first)) - begin)


def _csr(attributes: Ints) -> tuple[Ints, NDArray[np.uint32]]:
    """Return rows of attributes without those that are not known (-1)."""
    known = attributes >= 0
    ptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
    return ptr, attributes[known].astype(np.uint32)


def _packed(vocabulary: _Vocabulary) -> NDArray[np.uint8]:
    text = json.dumps(list(vocabulary.numbers)).encode()
    return np.frombuffer(text, dtype=np.uint8)


def _unpacked(array: Any) -> _Vocabulary:
    names = json.loads(np.asarray(array, dtype=np.uint8).tobytes())
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("a vocabulary of attributes is no list of strings")
    if len(set(names)) != len(names):
        raise ValueError("a vocabulary of attributes has a string twice")
    return _Vocabulary(names)


def _ints(array: Any) -> Ints:
    found = np.asarray(array)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError("expected a list of whole numbers")
    return found.astype(np.int64)
