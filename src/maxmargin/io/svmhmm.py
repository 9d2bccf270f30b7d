"""SVM^hmm's files of numbered features.

A line is a token: ``tag qid:sequence number:value number:value ... # comment``. The numbers of the
features are positive; another qid begins a new sequence. Values are between -1e12 and 1e12.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin._native import Vocabulary
from maxmargin.features.batch import EncodedBatch
from maxmargin.io.items import Items, read_items
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import quoted

__all__ = ["read_svmhmm", "write_svmhmm"]


def read_svmhmm(
    path: PathOrFile, vocabulary: Vocabulary | None = None, *, max_inflated: int | None = None
) -> Items:
    """Read an SVM^hmm file. Feature number k gets the name ``str(k)``.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised.
    vocabulary : Vocabulary, optional
        The features that exist; others are left out. Without it, all features of the file exist,
        numbered as they appear.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    Items

    Raises
    ------
    FileFormatError
        The message names file and line.
    """
    return read_items(path, "svmhmm", vocabulary, max_inflated=max_inflated)


def tag_text(label: Any, place: str) -> str:
    if not isinstance(label, str | int | np.integer):
        raise TypeError(
            f"{place}: the label {quoted(label)} is of type {type(label).__name__}; "
            "expected a str or an int"
        )
    tag = str(label)
    # Only blanks and tabs part words here, but other programs may see more.
    if len(tag.split()) != 1 or tag.strip() != tag or tag.startswith(("#", "qid:", "\ufeff")):
        raise ValueError(
            f"{place}: found the label {quoted(tag)}; expected one without white space that does "
            "not begin with '#' or 'qid:', as the format demands"
        )
    return tag


def write_svmhmm(
    path: PathOrFile, batch: EncodedBatch, labels: Sequence[Sequence[Any]]
) -> None:
    """Write an SVM^hmm file, in which feature ``id`` has the number ``id + 1``.

    Parameters
    ----------
    path : path or binary file
        "-" is standard output; a name that ends with ``.gz`` is compressed.
    batch : EncodedBatch
        Tokens with sparse features only.
    labels : list of sequences of labels
        One str or int for each token.

    Raises
    ------
    ValueError, TypeError
        If sizes differ, or if a label cannot be written in this format; nothing is written then.
    """
    if batch.indptr is None or batch.indices is None or batch.dense is not None:
        raise ValueError("the batch has dense features; expected sparse features only")
    if len(labels) != batch.n_sequences:
        raise ValueError(
            f"there are {batch.n_sequences} sequences and {len(labels)} sequences of labels; "
            "expected as many"
        )
    offsets = batch.offsets.tolist()
    with open_for_writing(path, text=True) as file:
        for i, its_labels in enumerate(labels):
            begin, end = offsets[i], offsets[i + 1]
            if len(its_labels) != end - begin:
                raise ValueError(
                    f"sequence {i} has {end - begin} tokens and {len(its_labels)} labels; "
                    "expected as many"
                )
            lines = []
            rows = batch.indptr[begin : end + 1].tolist()
            for t, label in enumerate(its_labels):
                a, b = rows[t], rows[t + 1]
                numbers = (batch.indices[a:b].astype(np.int64) + 1).tolist()
                values = ["1"] * (b - a) if batch.values is None else batch.values[a:b].tolist()
                words = [tag_text(label, f"sequence {i}, token {t}"), f"qid:{i + 1}"]
                words += [f"{k}:{value}" for k, value in zip(numbers, values, strict=True)]
                lines.append(" ".join(words) + "\n")
            file.writelines(lines)
