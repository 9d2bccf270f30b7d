"""How good predicted tags are: accuracies, confusions, and the chunk scores of conlleval.

Chunks are counted as by ``conlleval``, the Perl script of the CoNLL shared tasks (version of
2004-01-26), so that numbers can be compared with published ones. A tag is PREFIX-TYPE, split at the
first hyphen; where chunks begin and end follows from two neighbouring tags alone, so IOB1, IOB2,
IOE and bracket tags are treated alike. A chunk is correct if it begins and ends where the true
one does and has the same type.

The script knows no tag S and no B after E of one type. For these, IOBES is understood here: S is a
chunk of one token, and a B after E begins a new chunk. (And the script prints the line of chunks
without a type, which only odd tags make, twice.)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.printable import printable, quoted

__all__ = [
    "NAME",
    "ChunkScore",
    "TagReport",
    "confusion_text",
    "evaluate",
    "evaluate_codes",
    "table_lines",
]

NAME = 100  # characters of a label in a table
_PREFIXES = "BIOES[]."
_OTHER = len(_PREFIXES)  # every other prefix


def _pairs(names: str) -> NDArray[np.bool_]:
    """Return the table [before][now] of prefixes that is true at pairs such as "BO"; * is any."""
    table = np.zeros((_OTHER + 1, _OTHER + 1), dtype=np.bool_)
    for pair in names.split():
        before, now = (slice(None) if c == "*" else _PREFIXES.index(c) for c in pair)
        table[before, now] = True
    return table


# First the rules of the script, then those for IOBES.
_ENDS = _pairs("BB BO IB IO EE EI EO [* ]*  S* EB ES BS IS")
_STARTS = _pairs("BB IB OB OI EE EI OE *[ *]  *S EB SB SI SE")
# Between different types a chunk ends and another starts, but not outside of chunks.
_INSIDE = np.array([prefix not in "O." for prefix in _PREFIXES] + [True])


@dataclass(frozen=True)
class ChunkScore:
    """How well the chunks of a type, all chunks, or the tokens of a label were found.

    Parameters
    ----------
    n_true : int
        How many there are in the truth: the support.
    n_predicted : int
        How many were predicted.
    n_correct : int
        How many of the predicted ones are right.
    """

    n_true: int
    n_predicted: int
    n_correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted ones that is right; 0 if none was predicted."""
        return self.n_correct / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true ones that was found; 0 if there are none."""
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the scores and counts, as JSON can hold them."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "n_true": self.n_true,
            "n_predicted": self.n_predicted,
            "n_correct": self.n_correct,
        }

    def _line(self) -> str:
        # In the script's order of operations: another may round the last digit differently.
        precision = 100 * self.n_correct / self.n_predicted if self.n_predicted else 0.0
        recall = 100 * self.n_correct / self.n_true if self.n_true else 0.0
        both = precision + recall
        f1 = 2 * precision * recall / both if both > 0 else 0.0
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


@dataclass(frozen=True, eq=False)
class TagReport:
    """How good predicted tag sequences are; printing it shows what conlleval prints.

    Parameters
    ----------
    n_tokens, n_sequences : int
        Size of what was evaluated.
    n_correct_tokens, n_correct_sequences : int
        Tokens, and whole sequences, that were predicted right.
    has_chunks : bool
        Whether a tag of the truth begins with B-, I-, E- or S-. If not (parts of speech, say), no
        chunks are counted and their scores are NaN.
    chunks : ChunkScore
        All chunks together.
    per_type : dict of str to ChunkScore
        The chunks of each type, sorted by name.
    labels : tuple of str
        Names of the rows and columns of `confusion`.
    confusion : int64 array [labels][labels]
        Number of tokens by true (row) and predicted (column) label.
    """

    n_tokens: int
    n_sequences: int
    n_correct_tokens: int
    n_correct_sequences: int
    has_chunks: bool
    chunks: ChunkScore
    per_type: dict[str, ChunkScore]
    labels: tuple[str, ...]
    confusion: NDArray[np.int64]

    @property
    def token_accuracy(self) -> float:
        """Share of the tokens that is right; NaN without tokens."""
        return self.n_correct_tokens / self.n_tokens if self.n_tokens else math.nan

    @property
    def sequence_accuracy(self) -> float:
        """Share of the sequences that is right everywhere; NaN without sequences."""
        return self.n_correct_sequences / self.n_sequences if self.n_sequences else math.nan

    @property
    def precision(self) -> float:
        """Share of the predicted chunks that is right."""
        return self.chunks.precision if self.has_chunks else math.nan

    @property
    def recall(self) -> float:
        """Share of the true chunks that was found."""
        return self.chunks.recall if self.has_chunks else math.nan

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return self.chunks.f1 if self.has_chunks else math.nan

    @property
    def n_true_chunks(self) -> int:
        """Number of chunks in the truth."""
        return self.chunks.n_true

    @property
    def n_predicted_chunks(self) -> int:
        """Number of predicted chunks."""
        return self.chunks.n_predicted

    @property
    def n_correct_chunks(self) -> int:
        """Number of predicted chunks that are right."""
        return self.chunks.n_correct

    @cached_property
    def per_label(self) -> dict[str, ChunkScore]:
        """Tokens of each label that occurs, in the order of `labels`; recall is its accuracy."""
        true, predicted = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return {
            self.labels[k]: ChunkScore(int(true[k]), int(predicted[k]), int(self.confusion[k, k]))
            for k in np.flatnonzero(true + predicted)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return scores, counts and types, as JSON can hold them: None in place of NaN."""
        scores = ("token_accuracy", "sequence_accuracy", "f1", "precision", "recall")
        result: dict[str, Any] = {}
        for name in scores:
            value = getattr(self, name)
            result[name] = None if math.isnan(value) else value
        result |= {
            "n_tokens": self.n_tokens,
            "n_sequences": self.n_sequences,
            "n_true_chunks": self.n_true_chunks,
            "n_predicted_chunks": self.n_predicted_chunks,
            "n_correct_chunks": self.n_correct_chunks,
            "per_type": {name: score.to_dict() for name, score in self.per_type.items()},
        }
        return result

    def text(self) -> str:
        """Return what conlleval prints; only accuracies if the labels are no chunk tags."""
        if not self.has_chunks:
            head = f"processed {self.n_tokens} tokens in {self.n_sequences} sequences."
            if not self.n_tokens:
                return head
            sequences = 100 * self.n_correct_sequences / self.n_sequences
            return f"{head}\n{self._accuracy()}; of sequences: {sequences:6.2f}%"
        lines = [
            f"processed {self.n_tokens} tokens with {self.n_true_chunks} phrases; "
            f"found: {self.n_predicted_chunks} phrases; correct: {self.n_correct_chunks}.",
            f"{self._accuracy()}; {self.chunks._line()}",
        ]
        for name, score in self.per_type.items():
            lines.append(f"{printable(name, NAME):>17}: {score._line()}  {score.n_predicted}")
        return "\n".join(lines)

    def _accuracy(self) -> str:
        return f"accuracy: {100 * self.n_correct_tokens / self.n_tokens:6.2f}%"

    def __str__(self) -> str:
        return self.text()


def evaluate(
    truth: Iterable[Iterable[Hashable]],
    predicted: Iterable[Iterable[Hashable]],
    *,
    has_chunks: bool | None = None,
) -> TagReport:
    """Compare predicted label sequences with the true ones.

    Parameters
    ----------
    truth, predicted : sequences of sequences of labels
        Labels may be anything hashable; those that are no strings are shown with ``str``.
    has_chunks : bool or None
        Whether chunks are counted. None: if a tag of the truth begins with B-, I-, E- or S-.

    Returns
    -------
    TagReport
        Accuracies, chunk scores and confusions; its labels are sorted.

    Raises
    ------
    ValueError
        If the two differ in length, somewhere, or if different labels look the same.
    """
    true_rows, predicted_rows = _rows(truth, "truth"), _rows(predicted, "predicted")
    if len(true_rows) != len(predicted_rows):
        raise ValueError(
            f"truth has {len(true_rows)} sequences, predicted has {len(predicted_rows)}"
        )
    for i, (row, other) in enumerate(zip(true_rows, predicted_rows, strict=True)):
        if len(row) != len(other):
            raise ValueError(
                f"sequence {i}: truth has {len(row)} labels, predicted has {len(other)}"
            )
    found = set(chain.from_iterable(true_rows)) | set(chain.from_iterable(predicted_rows))
    labels = sorted(found, key=str)
    code = {label: k for k, label in enumerate(labels)}
    lengths = np.fromiter(map(len, true_rows), np.int64, len(true_rows))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return evaluate_codes(
        np.fromiter(map(code.__getitem__, chain.from_iterable(true_rows)), np.int64),
        np.fromiter(map(code.__getitem__, chain.from_iterable(predicted_rows)), np.int64),
        offsets,
        [str(label) for label in labels],
        has_chunks=has_chunks,
    )


def _rows(sequences: Iterable[Iterable[Hashable]], name: str) -> list[list[Hashable]]:
    """Return the sequences as lists, each checked to be one of labels."""
    if isinstance(sequences, str):
        raise ValueError(f"{name} is a string, expected a list of sequences of labels")
    rows = []
    for i, sequence in enumerate(sequences):
        # A string is iterable, but its letters are not meant to be labels.
        if isinstance(sequence, str) or not isinstance(sequence, Iterable):
            raise ValueError(
                f"sequence {i} of {name} is {quoted(sequence)}, expected a sequence of labels"
            )
        row = list(sequence)
        try:
            set(row)
        except TypeError as error:
            raise ValueError(f"sequence {i} of {name}: a label is not hashable: {error}") from None
        rows.append(row)
    return rows


def evaluate_codes(
    truth: ArrayLike,
    predicted: ArrayLike,
    offsets: ArrayLike,
    labels: Sequence[str],
    *,
    has_chunks: bool | None = None,
) -> TagReport:
    """Compare predicted tags with the true ones, both as codes.

    Parameters
    ----------
    truth, predicted : int array [tokens]
        Positions in `labels`, the sequences one after the other.
    offsets : int array [n + 1]
        Sequence i has the tokens ``offsets[i]`` to ``offsets[i + 1] - 1``.
    labels : sequence of str
        Their names, all different.
    has_chunks : bool or None
        As for `evaluate`.

    Returns
    -------
    TagReport
        Accuracies, chunk scores and confusions.

    Raises
    ------
    ValueError
        If shapes do not fit together, or a code has no label.
    """
    labels = tuple(labels)
    if len(set(labels)) != len(labels):
        twice = next(name for name in labels if labels.count(name) > 1)
        raise ValueError(f"two different labels are both named {quoted(twice)}")
    t, p, bounds = _checked(truth, predicted, offsets, len(labels))
    confusion = np.bincount(t * len(labels) + p, minlength=len(labels) ** 2)
    confusion = confusion.astype(np.int64, copy=False).reshape(len(labels), len(labels))
    occurs = np.flatnonzero(confusion.sum(axis=1))
    if has_chunks is None:
        has_chunks = any(labels[k][:2] in ("B-", "I-", "E-", "S-") for k in occurs)

    chunks, per_type = ChunkScore(0, 0, 0), dict[str, ChunkScore]()
    wrong = t != p
    if has_chunks:
        tags = _Tags(labels)
        wrong = tags.tag[t] != tags.tag[p]
        chunks, per_type = _count_chunks(t, p, bounds, tags)
    wrong_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(wrong)])[bounds]
    return TagReport(
        n_tokens=len(t),
        n_sequences=len(bounds) - 1,
        n_correct_tokens=len(t) - int(wrong_before[-1]),
        n_correct_sequences=int(np.count_nonzero(np.diff(wrong_before) == 0)),
        has_chunks=has_chunks,
        chunks=chunks,
        per_type=per_type,
        labels=labels,
        confusion=confusion,
    )


def _checked(
    truth: ArrayLike, predicted: ArrayLike, offsets: ArrayLike, n_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the three as int64 arrays that fit together."""
    arrays = []
    for name, given in (("truth", truth), ("predicted", predicted), ("offsets", offsets)):
        array = np.asarray(given)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(
                f"{name} must be one row of integers, got {array.dtype} of shape {array.shape}"
            )
        arrays.append(array.astype(np.int64, copy=False))
    t, p, bounds = arrays
    if len(t) != len(p):
        raise ValueError(f"truth has {len(t)} tokens, predicted has {len(p)}")
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != len(t):
        ends = f"{bounds[0]} to {bounds[-1]}" if len(bounds) else "nothing"
        raise ValueError(f"offsets must go from 0 to the {len(t)} tokens, got {ends}")
    falls = np.flatnonzero(np.diff(bounds) < 0)
    if len(falls):
        raise ValueError(f"offsets must not fall, but sequence {falls[0]} ends before it begins")
    for name, codes in (("truth", t), ("predicted", p)):
        bad = np.flatnonzero((codes < 0) | (codes >= n_labels))
        if len(bad):
            k = int(bad[0])
            i = int(np.searchsorted(bounds, k, side="right")) - 1
            raise ValueError(
                f"sequence {i}: token {k - bounds[i]} of {name} has the code {codes[k]}, "
                f"but there are {n_labels} labels"
            )
    return t, p, bounds


class _Tags:
    """What conlleval sees in labels; the last entry of `prefix` and `type` is a sequence's end."""

    def __init__(self, labels: Sequence[str]) -> None:
        split = [name.partition("-") for name in (*labels, "O")]
        # To Perl the string 0 is false, and the script drops a false type.
        pairs = [(prefix, "" if kind == "0" else kind) for prefix, _, kind in split]
        self.types = sorted({kind for _, kind in pairs})
        place = {kind: k for k, kind in enumerate(self.types)}
        number = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
        self.type = np.array([place[kind] for _, kind in pairs])
        self.tag = np.array([number[pair] for pair in pairs])  # "B" and "B-" are one tag
        self.prefix = np.array(
            [_PREFIXES.index(p) if len(p) == 1 and p in _PREFIXES else _OTHER for p, _ in pairs]
        )


class _Edges:
    """Where chunks of one tagging begin, and where they have ended, in a stream of codes."""

    def __init__(self, stream: NDArray[np.int64], tags: _Tags) -> None:
        prefix, self.type = tags.prefix.take(stream), tags.type.take(stream)
        outside = len(tags.prefix) - 1
        before = np.concatenate([tags.prefix[outside:], prefix[:-1]])
        self.type_before = np.concatenate([tags.type[outside:], self.type[:-1]])
        changes = self.type_before != self.type
        pair = before * (_OTHER + 1) + prefix  # numpy takes by one flat index faster than by two
        self.starts = _STARTS.take(pair) | (changes & _INSIDE.take(prefix))
        self.ends = _ENDS.take(pair) | (changes & _INSIDE.take(before))


def _count_chunks(
    truth: NDArray[np.int64],
    predicted: NDArray[np.int64],
    offsets: NDArray[np.int64],
    tags: _Tags,
) -> tuple[ChunkScore, dict[str, ChunkScore]]:
    """Count all chunks, and those of each type that occurs."""
    n_sequences = len(offsets) - 1
    # Each sequence is followed by one place outside of chunks, as the script reads an empty line.
    place = np.arange(len(truth)) + np.repeat(np.arange(n_sequences), np.diff(offsets))
    streams = np.full((2, len(truth) + n_sequences), len(tags.prefix) - 1)
    streams[0, place], streams[1, place] = truth, predicted
    t, p = _Edges(streams[0], tags), _Edges(streams[1], tags)

    # After a common start of one type, a chunk is correct if the next event is a common end. It is
    # wrong if the next event is an end in one tagging only, or a difference of types. So it is
    # enough to compare each event with the one before it, and no loop is needed.
    same = t.type == p.type
    opens = t.starts & p.starts & same
    finishes = t.ends & p.ends & (t.type_before == p.type_before)
    spoils = (t.ends != p.ends) | ~same
    events = np.flatnonzero(opens | finishes | spoils)
    underway = np.concatenate([np.zeros(1, np.bool_), opens[events]])
    correct = t.type_before[events[underway[:-1] & finishes[events]]]
    if underway[-1]:  # after unknown prefixes O ends no chunk; the script ends it with the file
        correct = np.append(correct, tags.type[-1])

    def count(types: NDArray[np.int64]) -> list[int]:
        numbers: list[int] = np.bincount(types, minlength=len(tags.types)).tolist()
        return numbers

    n_true, n_predicted = count(t.type[t.starts]), count(p.type[p.starts])
    per_type = {
        name: ChunkScore(*counts)
        for name, *counts in zip(tags.types, n_true, n_predicted, count(correct), strict=True)
        if counts[0] or counts[1]
    }
    return ChunkScore(sum(n_true), sum(n_predicted), len(correct)), per_type


def confusion_text(report: TagReport, most: int = 20, matrix: int = 12) -> str:
    """Return the confusions in readable form.

    Parameters
    ----------
    report : TagReport
        From `evaluate`.
    most : int
        How many of the most frequent confusions to list.
    matrix : int
        The whole matrix is shown too if no more labels than this occur.

    Returns
    -------
    str
        Lines without a final newline.
    """
    wrong = report.confusion.copy()
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    counts = wrong[rows, columns]
    order = np.argsort(-counts, kind="stable")[: max(0, most)]
    names = [printable(label, NAME) for label in report.labels]
    lines = [f"{counts.sum()} of {report.n_tokens} tokens are confused, {len(counts)} pairs"]
    if len(order):
        body = [["truth", "predicted", "tokens", "of the truth"]]
        support = report.confusion.sum(axis=1)
        for k in order:
            row, column, number = rows[k], columns[k], counts[k]
            share = f"{100 * number / support[row]:.2f}%"
            body.append([names[row], names[column], str(number), share])
        lines += ["", *table_lines(body, left=2)]
    shown = [k for k, name in enumerate(report.labels) if name in report.per_label]
    if 0 < len(shown) <= matrix:
        body = [["truth \\ predicted", *(names[k] for k in shown)]]
        for k in shown:
            body.append([names[k], *map(str, report.confusion[k, shown])])
        lines += ["", *table_lines(body, left=1)]
    return "\n".join(lines)


def table_lines(body: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return the lines of a table whose first columns are aligned to the left.

    Parameters
    ----------
    body : sequence of rows of str
        The first row is the head.
    left : int
        How many columns are aligned to the left.
    """
    widths = [max(map(len, column)) for column in zip(*body, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in body
    ]
