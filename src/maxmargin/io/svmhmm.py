"""SVM^hmm's files of numbered features.

A line is a token: ``tag qid:sequence number:value number:value ... # comment``. The numbers of the
features are positive; another qid begins a new sequence. Values are between -1e12 and 1e12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin._native import Vocabulary
from maxmargin.io.items import Items, read_items
from maxmargin.io.named_features import NamedFeatures, token_fields
from maxmargin.io.text import PathOrFile
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["number_features", "read_svmhmm", "svmhmm_texts", "tag_text"]

_NO_TAG = ("#", "qid:", "\ufeff")  # what a label cannot begin with


def read_svmhmm(
    path: PathOrFile,
    vocabulary: Vocabulary | None = None,
    *,
    max_inflated: int | None = None,
    encoding: str | None = None,
) -> Items:
    """Read an SVM^hmm file. Feature number k gets the name ``str(k)``.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; compressed files are recognised.
    vocabulary : Vocabulary, optional
        The features that exist; others are left out. Without it, all features of the file exist,
        numbered as they appear.
    max_inflated : int or None
        How many bytes a compressed file may become. None: 100 times its own size, and at least
        256 MB.
    encoding : str or None
        Of the text; None: UTF-8.

    Returns
    -------
    Items

    Raises
    ------
    FileFormatError
        The message names file and line.
    """
    return read_items(path, "svmhmm", vocabulary, max_inflated=max_inflated, encoding=encoding)


def tag_text(label: str) -> str:
    """Return a label as the format can hold it: as it is.

    Parameters
    ----------
    label : str
        The label.

    Returns
    -------
    str
        The label.

    Raises
    ------
    ValueError
        If the format cannot hold it.
    """
    # Here only blanks and tabs separate words; other programs may split at other white space.
    if len(label.split()) != 1 or label.strip() != label or label.startswith(_NO_TAG):
        raise ValueError(
            f"the labels: found the label {quoted(label)}; expected one without white space that "
            "does not begin with '#' or 'qid:', as the format demands"
        )
    return label


def number_features(
    features: NamedFeatures, *, named_by_number: bool
) -> tuple[NamedFeatures, list[str]]:
    """Give features numbers, which ascend within a line of the file.

    Parameters
    ----------
    features : NamedFeatures
        What is written.
    named_by_number : bool
        Whether the names are numbers, which then stay as they are.

    Returns
    -------
    features : NamedFeatures
        In the order of the numbers.
    numbers : list of str
        The number of each feature; those of named ones count from 1.
    """
    if not named_by_number:
        numbers = [str(k) for k in range(1, len(features.names) + 1)]
        return features._replace(order=None), numbers
    batch = features.batch
    assert batch.indptr is not None
    assert batch.indices is not None
    token = np.repeat(np.arange(batch.n_tokens), np.diff(batch.indptr))
    number = np.array([int(name) for name in features.names], dtype=np.uint64)
    order = np.lexsort((number[batch.indices], token))
    return features._replace(order=order), features.names


def svmhmm_texts(
    features: NamedFeatures, numbers: list[str], tags: list[str]
) -> Iterator[str]:
    """Give the text of an SVM^hmm file, sequence by sequence.

    Parameters
    ----------
    features : NamedFeatures
        What is written, from `number_features`; weights of sequences are left out.
    numbers : list of str
        The numbers of the features.
    tags : list of str
        What is written for each label: from `tag_text`, or a number.

    Yields
    ------
    str
        The lines of a sequence.
    """
    for i, tokens in enumerate(token_fields(features, numbers, valued=True), 1):
        lines = [" ".join([tags[code], f"qid:{i}", *row]) for code, row in tokens]
        yield "\n".join([*lines, ""])
