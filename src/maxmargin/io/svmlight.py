"""Files of numbered features as SVM-light and LIBSVM have them: an example a line.

A line is ``label number:value number:value ... # comment``. The label is any text without blanks
and colons; ``qid:number`` after it is ignored. Lines that are blank or hold only a comment are
skipped. Numbers are counted from 1, or from 0 if asked; a line may name them in any order, each at
most once. Values are finite.

A regular expression checks a line as a whole; the numbers of many lines are then converted at once.
Only a line that does not match is looked at field by field, for the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.lines import BOM, decoded
from maxmargin.io.text import PathOrFile, name_of, open_for_writing, read_bytes
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["read_svmlight", "write_svmlight"]

MOST_FEATURES = 2**31 - 1

# No two parts can match the same digits, so that a hostile line takes no longer than another.
_VALUE = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_ROW = re.compile(rf"(?:[ \t]+[0-9]+:{_VALUE})*[ \t]*")
_FIELD = re.compile(rf"[0-9]+:{_VALUE}")
_QID = re.compile(r"[ \t]+qid:[0-9]+")
_AT_ONCE = 1 << 22  # characters that are converted at a time


def read_svmlight(
    path: PathOrFile,
    n_features: int | None = None,
    *,
    zero_based: bool = False,
    drop_beyond: bool = False,
    max_inflated: int | None = None,
) -> tuple[csr_matrix, list[str]]:
    """Read examples with numbered features.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised.
    n_features : int or None
        The number of columns. None: as many as the largest number in the file needs.
    zero_based : bool, default=False
        Whether the first feature has the number 0, and not 1.
    drop_beyond : bool, default=False
        Whether features beyond ``n_features`` are left out, as they are when a model meets features
        that it has never seen. Otherwise they are an error.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    X : scipy.sparse.csr_matrix of float64
        A row for each example; indices are sorted.
    labels : list of str
        The labels as they are written.

    Raises
    ------
    FileFormatError
        If a line is not of the format or a number is out of range. The message names file and line.
    OSError
        If the file cannot be read.
    """
    from scipy.sparse import csr_matrix

    if n_features is not None and not 0 <= n_features <= MOST_FEATURES:
        raise ValueError(
            f"n_features is {n_features!r}; expected None or a number from 0 to {MOST_FEATURES}"
        )
    source = name_of(path)
    text = decoded(read_bytes(path, max_inflated=max_inflated), source).removeprefix(BOM)
    labels: list[str] = []
    lengths: list[int] = []
    line_numbers: list[int] = []
    converted: list[NDArray[np.float64]] = []
    pending: list[str] = []
    n_pending = 0
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole.partition("#")[0] if "#" in whole else whole
        line = line.strip(" \t\r")
        if not line:
            continue
        label, _, rest = line.replace("\t", " ").partition(" ")
        if ":" in label:
            raise FileFormatError(
                f"{source}: line {number}: found {quoted(label)} where the label should be; "
                "expected a label without a colon before the features"
            )
        rest = f" {rest}" if rest else ""
        if "qid:" in rest:
            rest = _QID.sub("", rest, count=1) if _QID.match(rest) else rest
        if not _ROW.fullmatch(rest):
            raise FileFormatError(f"{source}: line {number}: {_complaint(rest)}")
        labels.append(label)
        lengths.append(rest.count(":"))
        line_numbers.append(number)
        pending.append(rest)
        n_pending += len(rest)
        if n_pending > _AT_ONCE:
            converted.append(_numbers("".join(pending)))
            pending, n_pending = [], 0
    if not labels:
        raise EmptyFileError(f"{source}: holds no examples; expected one a line")
    converted.append(_numbers("".join(pending)))
    pairs = np.concatenate(converted).reshape(-1, 2)
    row_of = np.repeat(np.arange(len(labels)), lengths)

    def refuse(wrong: NDArray[np.bool_], complaint: str) -> None:
        if wrong.any():
            at = int(np.argmax(wrong))
            raise FileFormatError(
                f"{source}: line {line_numbers[row_of[at]]}: found feature {pairs[at, 0]:.0f}"
                f"{complaint}"
            )

    first = 0 if zero_based else 1
    refuse(pairs[:, 0] < first, "; expected numbers from 1 on (zero_based=True: from 0 on)")
    refuse(pairs[:, 0] - first >= MOST_FEATURES, f"; expected at most {MOST_FEATURES} features")
    refuse(~np.isfinite(pairs[:, 1]), " with a value that is not finite; expected a finite one")
    if n_features is not None:
        beyond = pairs[:, 0] - first >= n_features
        if drop_beyond:
            pairs, row_of = pairs[~beyond], row_of[~beyond]
        else:
            refuse(beyond, f"; expected {n_features} features, numbered from {first} on")
    columns = pairs[:, 0].astype(np.int64) - first
    if n_features is None:
        n_features = int(columns.max()) + 1 if len(columns) else 0
    if np.any((np.diff(columns) <= 0) & (np.diff(row_of) == 0)):
        order = np.lexsort((columns, row_of))
        pairs, row_of, columns = pairs[order], row_of[order], columns[order]
        twice = np.zeros(len(columns), dtype=bool)
        twice[1:] = (np.diff(columns) == 0) & (np.diff(row_of) == 0)
        refuse(twice, " more than once; expected each feature at most once a line")
    indptr = np.zeros(len(labels) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row_of, minlength=len(labels)), out=indptr[1:])
    # No duplicates, sorted: as SciPy has them, without a look at the data again.
    X = csr_matrix(
        (np.ascontiguousarray(pairs[:, 1]), columns, indptr), shape=(len(labels), n_features)
    )
    X.has_sorted_indices = True
    return X, labels


def _numbers(rows: str) -> NDArray[np.float64]:
    """Convert the checked text of rows: number, value, number, value, ..."""
    words = rows.replace(":", " ").split()
    return np.fromiter(map(float, words), dtype=np.float64, count=len(words))


def _complaint(rest: str) -> str:
    for field in rest.split(" "):
        if field and not _FIELD.fullmatch(field):
            return (
                f"found {quoted(field)}; expected number:value, with a number of a feature and a "
                "finite value"
            )
    return f"found {quoted(rest)}; expected number:value with blanks or tabs between them"


def write_svmlight(
    out: PathOrFile, X: Any, labels: Iterable[object], *, zero_based: bool = False
) -> None:
    """Write examples so that `read_svmlight` gives them back, to the last bit.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    X : sparse matrix or array of shape (n_examples, n_features)
        The examples. What is zero is not written.
    labels : iterable
        A label for each; its ``str`` is written.
    zero_based : bool, default=False
        Whether the first feature gets the number 0, and not 1.

    Raises
    ------
    ValueError
        If a label has blanks, a colon or a ``#``, if a value is not finite, or if there are not as
        many labels as rows.
    """
    from scipy.sparse import csr_matrix

    rows = csr_matrix(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if not np.isfinite(rows.data).all():
        raise ValueError("X holds values that are not finite; expected finite ones")
    names = [str(label) for label in labels]
    if len(names) != rows.shape[0]:
        raise ValueError(f"found {len(names)} labels; expected {rows.shape[0]}, one for each row")
    for i, name in enumerate(names):
        if name.split() != [name] or any(c in name for c in (":", "#", BOM)):
            raise ValueError(
                f"example {i}: found the label {quoted(name)}; expected one without blanks, "
                "colons and '#', as the format demands"
            )
    numbers = (rows.indices + (0 if zero_based else 1)).tolist()
    values = rows.data.tolist()
    ends = rows.indptr.tolist()
    with open_for_writing(out) as file:
        for name, begin, end in zip(names, ends, ends[1:], strict=False):
            fields = [
                f"{number}:{repr(value).removesuffix('.0')}"
                for number, value in zip(numbers[begin:end], values[begin:end], strict=True)
            ]
            file.write(" ".join([name, *fields, ""])[:-1].encode("utf-8") + b"\n")
