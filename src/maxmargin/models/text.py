r"""Models as texts, to read, to compare and to take elsewhere: ``maxmargin info MODEL --text``.

A line has fields between tabs. All weights that are not zero are there, and no others::

    # maxmargin model: 1
    # labels: ["D", "N"]
    w=dogs          N    0.25
    [transition]    D    N    1.5
    [start]         D    0.125
    [end]           N    0.5
    [pair]          B:w=dogs    D    N    -0.75

First come comments: a name, a colon and JSON. Then features of a label, transitions, and the
features of two labels, each in the order of their texts. A weight is the shortest decimal number
that gives it back exactly. In names and labels, what cannot be printed is written as Python writes
it (``\t``, ``\n``, ``\x1b``, ``\u2028``), a backslash is doubled, and a name that would be taken
for something else (it begins with ``#``, or is ``[start]`` or the like) has one in front.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.io.text import open_for_writing
from maxmargin.models.header import feature_kind, shown_certificate
from maxmargin.models.weight_rows import FeatureRows, names_of, tail_rows
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.io.tagger_file import TaggerModel
    from maxmargin.io.text import PathOrFile

__all__ = ["write_text"]

VERSION = 1
_TOGETHER = 1 << 18  # weights, zeros included, that are turned into text at a time
_TRANSITION, _START, _END, _PAIR = "[transition]", "[start]", "[end]", "[pair]"
_MARKS = (_TRANSITION, _START, _END, _PAIR)
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def write_text(path: PathOrFile, model: TaggerModel) -> int:
    """Write a model as a text, as a whole or not at all.

    Parameters
    ----------
    path : path or binary file
        "-" is standard output; a name that ends with ``.gz`` is compressed.
    model : TaggerModel
        The model.

    Returns
    -------
    int
        How many weights were written.

    Raises
    ------
    ValueError
        If two labels are the same as texts.
    OSError
        If the file cannot be written.
    """
    chain = model.chain
    labels = [_escape(str(label)) for label in chain.labels_]
    if len(set(labels)) < len(labels):
        twice = next(k for k, label in enumerate(labels) if label in labels[:k])
        same = (labels.index(labels[twice]), twice)
        found = " and ".join(quoted(chain.labels_[k]) for k in same)
        raise ValueError(f"found the labels {found}; expected labels that differ as texts")
    n = 0
    with open_for_writing(path, text=True) as file:
        file.writelines(_header(model))
        for block in _weight_lines(model, labels):
            file.write("".join(block))
            n += len(block)
    return n


def _header(model: TaggerModel) -> Iterator[str]:
    """Yield the comments."""
    template = getattr(model.chain.encoder, "template", None)
    entries = {
        "maxmargin model": VERSION,
        "labels": model.chain.classes_,
        "features": feature_kind(model.meta["encoder"]),
        "certificate": shown_certificate(model.meta.get("certificate")),
        "template": None if template is None else template.source,
        "dtype": _dtype(model),
    }
    for key, value in entries.items():
        text = json.dumps(value, ensure_ascii=False)
        if not text.isprintable():
            text = json.dumps(value).replace("\x7f", "\\u007f")  # which JSON leaves as it is
        yield f"# {key}: {text}\n"


def _dtype(model: TaggerModel) -> str:
    """Return the type of the weights; sparse ones are always of 4 bytes."""
    return str(getattr(getattr(model.weights, "dtype", None), "name", "float32"))


def _weight_lines(model: TaggerModel, labels: list[str]) -> Iterator[list[str]]:
    """Yield the lines of the weights, many at a time."""
    encoder, L = model.chain.encoder, model.chain.n_labels
    plain = [str(label) for label in model.chain.labels_]
    order = np.array(sorted(range(L), key=plain.__getitem__), dtype=np.intp)
    ordered = [labels[k] for k in order]
    rows = FeatureRows(model)
    for names, features in _ordered_features(model, rows):
        texts = [_escape_name(name) for name in names]
        yield [
            f"{texts[row]}\t{ordered[column]}\t{weight}\n"
            for row, column, weight in _nonzero(rows.take(features)[:, order])
        ]
    tail = model.chain.layout.without_sparse.split(tail_rows(model))
    yield [
        f"{_TRANSITION}\t{ordered[row]}\t{ordered[column]}\t{weight}\n"
        for row, column, weight in _nonzero(tail.transitions[np.ix_(order, order)])
    ]
    for mark, row_of_mark in ((_START, tail.start), (_END, tail.end)):
        yield [
            f"{mark}\t{ordered[column]}\t{weight}\n"
            for _, column, weight in _nonzero(row_of_mark[None, order])
        ]
    if not encoder.n_pair:
        return
    pair_names: list[str] = encoder.pair_names()  # type: ignore[union-attr]
    step = max(1, _TOGETHER // (L * L))
    by_name = sorted(range(len(pair_names)), key=pair_names.__getitem__)
    for begin in range(0, len(by_name), step):
        chosen = by_name[begin : begin + step]
        texts = [_escape(pair_names[j]) for j in chosen]
        pairs = tail.pairs[np.ix_(np.array(chosen), order, order)].reshape(-1, L)
        yield [
            f"{_PAIR}\t{texts[row // L]}\t{ordered[row % L]}\t{ordered[column]}\t{weight}\n"
            for row, column, weight in _nonzero(pairs)
        ]


def _nonzero(block: NDArray[Any]) -> Iterator[tuple[int, int, str]]:
    """Return row, column and text of what is not zero, row by row."""
    rows, columns = np.nonzero(block)
    values = block[rows, columns]
    # Python's floats have 8 bytes: it would write more digits of 4-byte numbers than they have.
    texts = map(repr, values.tolist()) if values.itemsize == 8 else map(str, values)
    return zip(rows.tolist(), columns.tolist(), texts, strict=True)


def _ordered_features(
    model: TaggerModel, rows: FeatureRows
) -> Iterator[tuple[list[str], NDArray[Any]]]:
    """Yield names and numbers of the features that have weights, in the order of the names."""
    encoder = model.chain.encoder
    used = rows.used()
    names: list[str] | None = None
    if encoder.hash_bits is None and encoder.kind not in ("sparse", "sparse+dense", "dense"):
        names = names_of(model, used)
        order = sorted(range(len(names)), key=names.__getitem__)
        names = [names[k] for k in order]
        used = used[order]
    else:  # Millions of names that are a number each: "dense:" first, then "hash:" or "sparse:".
        is_dense = used >= encoder.n_sparse
        numbers = np.where(is_dense, used - encoder.n_sparse, used)
        digits = np.ones(len(numbers), dtype=np.int64)
        for k in range(1, 11):
            digits += numbers >= 10**k
        # As texts, numbers are in the order of their digits from the left; of 1 and 10, 1 is first.
        used = used[np.lexsort((digits, numbers * 10 ** (11 - digits), ~is_dense))]
    step = max(1, _TOGETHER // model.chain.n_labels)
    for begin in range(0, len(used), step):
        part = used[begin : begin + step]
        yield (names_of(model, part) if names is None else names[begin : begin + step]), part


def _escape(text: str) -> str:
    """Return a text without anything that a line cannot hold."""
    if text.isprintable():
        return text.replace("\\", "\\\\") if "\\" in text else text
    return "".join(
        _ESCAPES.get(c) or (c if c.isprintable() else c.encode("unicode_escape").decode())
        for c in text
    )


def _escape_name(name: str) -> str:
    """Return the name of a feature as a line begins with it."""
    escaped = _escape(name)
    return f"\\{escaped}" if name.startswith("#") or name in _MARKS else escaped
