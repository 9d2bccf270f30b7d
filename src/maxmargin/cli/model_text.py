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

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.printable import quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.io.tagger_file import TaggerModel
    from maxmargin.io.text import PathOrFile

__all__ = ["names_of", "read_text", "write_text"]

VERSION = 1
_TOGETHER = 1 << 18  # weights, zeros included, that are turned into text at a time
_TRANSITION, _START, _END, _PAIR = "[transition]", "[start]", "[end]", "[pair]"
_MARKS = {_TRANSITION: 4, _START: 3, _END: 3, _PAIR: 5}  # with the number of fields
_LISTS = {"": "weights", _TRANSITION: "transitions", _START: "start", _END: "end", _PAIR: "pairs"}
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_PLAIN = {"t": "\t", "n": "\n", "r": "\r"}
_ESCAPED = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[\\tnr#\[])?")


# --- writing --------------------------------------------------------------------------------------


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
    from maxmargin.cli.console import naming
    from maxmargin.io.text import name_of, open_for_writing

    chain = model.chain
    labels = [_escape(str(label)) for label in chain.labels_]
    if len(set(labels)) < len(labels):
        twice = next(k for k, label in enumerate(labels) if label in labels[:k])
        same = (labels.index(labels[twice]), twice)
        found = " and ".join(quoted(chain.labels_[k]) for k in same)
        raise ValueError(f"found the labels {found}; expected labels that differ as texts")
    n = 0
    name = "-" if path == "-" else name_of(path)
    with naming(name), open_for_writing(path, text=True) as file:
        file.writelines(_header(model))
        for block in _weight_lines(model, labels):
            file.write("".join(block))
            n += len(block)
    return n


def _header(model: TaggerModel) -> Iterator[str]:
    """Yield the comments."""
    import json

    from maxmargin.cli.info import _certificate, _kind

    template = getattr(model.chain.encoder, "template", None)
    entries = {
        "maxmargin model": VERSION,
        "labels": model.chain.classes_,
        "features": _kind(model.meta["encoder"]),
        "certificate": _certificate(model.meta.get("certificate")),
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
    import numpy as np

    from maxmargin.cli.info import _tail

    encoder, L = model.chain.encoder, model.chain.n_labels
    plain = [str(label) for label in model.chain.labels_]
    order = np.array(sorted(range(L), key=plain.__getitem__), dtype=np.intp)
    ordered = [labels[k] for k in order]
    rows = _Rows(model)
    for names, features in _ordered_features(model, rows):
        texts = [_escape_name(name) for name in names]
        yield [
            f"{texts[row]}\t{ordered[column]}\t{weight}\n"
            for row, column, weight in _nonzero(rows.take(features)[:, order])
        ]
    tail = model.chain.layout.without_sparse.split(_tail(model))
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
    import numpy as np

    rows, columns = np.nonzero(block)
    values = block[rows, columns]
    # Python's own floats are of 8 bytes: of those of 4 it would write digits that say nothing.
    texts = map(repr, values.tolist()) if values.itemsize == 8 else map(str, values)
    return zip(rows.tolist(), columns.tolist(), texts, strict=True)


class _Rows:
    """The weights of features, some at a time, whether they are stored sparsely or in full."""

    def __init__(self, model: TaggerModel) -> None:
        import numpy as np

        from maxmargin._native import SparseWeights
        from maxmargin.cli.info import _matrix, _tail

        layout = model.chain.layout
        self._n_sparse, self._n = layout.n_sparse, layout.n_token_features
        self._n_labels = model.chain.n_labels
        self._sparse = isinstance(model.weights, SparseWeights)
        if self._sparse:
            self._counts, self._labels, self._weights, _ = model.weights.arrays()
            self._ends = np.cumsum(self._counts, dtype=np.int64)
            self._dense = _tail(model)[layout.without_sparse.coef]
        else:
            self._matrix = _matrix(model)

    def used(self) -> NDArray[Any]:
        """Return the features that have weights, ascending."""
        import numpy as np

        if self._sparse:
            there = (self._counts > 0, self._dense.any(axis=1))
            return np.flatnonzero(np.concatenate(there))
        step = max(1, _TOGETHER // self._n_labels)
        parts = [np.empty(0, dtype=np.intp)]
        for begin in range(0, self._n, step):
            part = self._matrix[begin : min(begin + step, self._n)]
            parts.append(np.flatnonzero(part.any(axis=1)) + begin)
        return np.concatenate(parts)

    def take(self, features: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of some features in full."""
        import numpy as np

        if not self._sparse:
            rows: NDArray[Any] = self._matrix[features]
            return rows
        rows = np.zeros((len(features), self._n_labels), dtype=np.float32)
        is_sparse = features < self._n_sparse
        rows[~is_sparse] = self._dense[features[~is_sparse] - self._n_sparse]
        places = np.flatnonzero(is_sparse)
        counts = self._counts[features[places]].astype(np.int64)
        # Entry k of all these, counted on, is so far behind the first entry of its row.
        behind = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = np.repeat(self._ends[features[places]] - counts, counts) + behind
        rows[np.repeat(places, counts), self._labels[entries]] = self._weights[entries]
        return rows


def _ordered_features(
    model: TaggerModel, rows: _Rows
) -> Iterator[tuple[list[str], NDArray[Any]]]:
    """Yield names and numbers of the features that have weights, in the order of the names."""
    import numpy as np

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


def names_of(model: TaggerModel, features: NDArray[Any]) -> list[str]:
    """Return the names of many features, as ``maxmargin info`` writes them.

    Parameters
    ----------
    model : TaggerModel
        The model.
    features : int array
        Numbers of features, dense ones behind the others.

    Returns
    -------
    list of str
        Their names.
    """
    from maxmargin.features.template_encoder import TemplateEncoder

    encoder = model.chain.encoder
    if isinstance(encoder, TemplateEncoder):
        return encoder.names_of(features)
    n = encoder.n_sparse
    numbers = features.tolist()
    if encoder.hash_bits is None and encoder.vocabulary is not None:
        every = encoder.vocabulary.names()
        return [every[j] if j < n else f"dense:{j - n}" for j in numbers]
    kind = "sparse" if encoder.hash_bits is None else "hash"
    return [f"{kind}:{j}" if j < n else f"dense:{j - n}" for j in numbers]


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


# --- reading --------------------------------------------------------------------------------------


def read_text(path: PathOrFile, *, max_inflated: int | None = None) -> dict[str, Any]:
    """Read what `write_text` wrote.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input.
    max_inflated : int or None
        As for `maxmargin.io.text.read_bytes`.

    Returns
    -------
    dict
        ``labels``, ``features`` (their kind), ``certificate``, ``template`` and ``dtype`` as the
        comments have them (None where they do not); and lists of tuples, in the order of the file:
        ``weights`` (feature, label, weight), ``transitions`` (from, to, weight), ``start`` and
        ``end`` (label, weight), ``pairs`` (feature, from, to, weight). Labels are those of the
        comment, or texts without it. Weights are floats that have exactly the value of the model's.

    Raises
    ------
    FileFormatError
        If the file is something else; the message names the line.
    OSError
        If it cannot be read.
    """
    import numpy as np

    from maxmargin.errors import FileFormatError
    from maxmargin.io.text import name_of, read_bytes

    source = name_of(path)
    try:
        text = read_bytes(path, max_inflated=max_inflated).decode("utf-8")
    except UnicodeDecodeError as error:
        line_number = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise FileFormatError(
            f"{source}, line {line_number}: found the byte 0x{byte:02x}; expected a text in UTF-8"
        ) from None
    comments: dict[str, Any] = {}
    found: dict[str, list[Any]] = {kind: [] for kind in _LISTS.values()}
    values: dict[str, list[float]] = {kind: [] for kind in _LISTS.values()}
    known: dict[str, Any] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        try:
            if line.startswith("#"):
                key, value = _comment(line)
                comments[key] = value
                if key == "labels":
                    known = {str(label): label for label in value}
            elif line:
                mark, names, labels, weight = _fields(line)
                if known is not None:
                    labels = [_known(label, known) for label in labels]
                found[_LISTS[mark]].append((*names, *labels))
                values[_LISTS[mark]].append(weight)
        except _LineError as error:
            raise FileFormatError(f"{source}, line {number}: {error}") from None
    if comments.get("maxmargin model") != VERSION:
        raise FileFormatError(
            f"{source}: found no comment '# maxmargin model: {VERSION}'; expected a model as "
            "maxmargin info --text writes it"
        )
    result = {
        key: comments.get(key) for key in ("labels", "features", "certificate", "template", "dtype")
    }
    dtype = np.float64 if result["dtype"] == "float64" else np.float32
    for kind, entries in found.items():
        exact = np.array(values[kind], dtype=dtype).tolist()
        result[kind] = [(*entry, weight) for entry, weight in zip(entries, exact, strict=True)]
    return result


class _LineError(ValueError):
    """A line is wrong; which one, the caller knows."""


def _comment(line: str) -> tuple[str, Any]:
    import json

    key, colon, text = line[1:].partition(":")
    try:
        if colon:
            value = json.loads(text)
            if key.strip() != "labels" or isinstance(value, list):
                return key.strip(), value
    except (ValueError, RecursionError):  # the latter of JSON that is nested very deep
        pass
    raise _LineError(f"found the comment {line[:60]!r}; expected a name, a colon and JSON")


def _fields(line: str) -> tuple[str, list[str], list[str], float]:
    """Return the mark of a line ("" of a feature's), the name if it has one, labels, weight."""
    fields = line.split("\t")
    mark = fields[0] if fields[0] in _MARKS else ""
    expected = _MARKS.get(mark, 3)
    if len(fields) != expected:
        raise _LineError(f"found {len(fields)} fields between tabs; expected {expected}")
    try:
        weight = float(fields[-1])
    except ValueError:
        raise _LineError(f"found the weight {quoted(fields[-1])}; expected a number") from None
    texts = [_unescape(field) if "\\" in field else field for field in fields[:-1]]
    if not mark:
        return mark, texts[:1], texts[1:], weight
    n_names = 2 if mark == _PAIR else 1
    return mark, texts[1:n_names], texts[n_names:], weight


def _known(label: str, known: dict[str, Any]) -> Any:
    if label not in known:
        raise _LineError(f"found the label {quoted(label)}; expected one of those of the comment")
    return known[label]


def _unescape(text: str) -> str:
    return _ESCAPED.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    code = match[1]
    if code is None:
        raise _LineError(
            f"found a backslash before {match.string[match.end() : match.end() + 1]!r}; expected "
            "one of \\\\ \\t \\n \\r \\x.. \\u.... \\U........"
        )
    if len(code) == 1:
        return _PLAIN.get(code, code)
    number = int(code[1:], 16)
    if number > 0x10FFFF:
        raise _LineError(f"found the character \\{code}; expected at most \\U0010ffff")
    return chr(number)
