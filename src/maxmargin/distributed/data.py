"""Data of a distributed training: which share gets which partitions or files.

Shares are contiguous: share k has partitions (or files) after those of share k - 1, so that the
examples have one order, whatever the number of shares; a checkpoint counts them in it.
"""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.distributed.held import Reading
from maxmargin.printable import quoted
from maxmargin.streams.tables import looks_like_table

__all__ = ["Cut", "cut_data", "token_pairs"]


class Cut(NamedTuple):
    """The data of one share.

    Attributes
    ----------
    reading : Reading
        Where examples come from.
    parts : tuple
        Futures of partitions of pairs.
    """

    reading: Reading
    parts: tuple[Any, ...]


def cut_data(
    data: Any,
    n_shares: int,
    client: Any,
    *,
    sequence: str | None = None,
    label: str | None = None,
    rows: bool = True,
    **reading: Any,
) -> list[Cut]:
    """Divide data among shares.

    Parameters
    ----------
    data : dask bag, dask DataFrame, or list of paths
        Pairs (x, y); tokens; or column or Parquet files that workers can read.
    n_shares : int
        At most so many.
    client : distributed.Client
        Of the cluster.
    sequence, label : str
        Columns of a DataFrame: which sequence a token belongs to, and its label.
    rows : bool
        Whether tokens of a DataFrame are rows of text (for a template), or dicts.
    **reading
        Of files, as `maxmargin.streams.open_source` takes it.

    Raises
    ------
    TypeError, ValueError
        If the data are of no such kind, or there are none.
    """
    files = _files(data)
    if files is not None:
        options = dict(reading)
        if sequence is not None:
            options["sequence"] = sequence
        # A table (Parquet, Arrow) is read whole; other files can be cut between sequences.
        if len(files) < n_shares and not any(map(looks_like_table, files)):
            return [
                Cut(Reading(tuple(files), {**options, "part": (k, n_shares)}, files[0]), ())
                for k in range(n_shares)
            ]
        return [
            Cut(Reading(tuple(files[a:b]), options, files[a]), ())
            for a, b in _ranges(len(files), n_shares)
        ]
    if reading:
        raise TypeError(f"{sorted(reading)[0]} is about files; the data are partitions")
    delayed = _partitions(data, client, sequence, label, rows)
    futures = client.compute(delayed)
    sizes = client.gather(client.map(len, futures, pure=False))
    futures = [future for future, n in zip(futures, sizes, strict=True) if n > 0]
    return [
        Cut(Reading(place=f"partitions {a} to {b - 1}"), tuple(futures[a:b]))
        for a, b in _ranges(len(futures), n_shares)
    ]


def _ranges(n: int, n_shares: int) -> list[tuple[int, int]]:
    if n == 0:
        raise ValueError("there are no data: no files, or all partitions are empty")
    K = min(n, n_shares)
    return [(n * k // K, n * (k + 1) // K) for k in range(K)]


def _files(data: Any) -> list[str] | None:
    """Return the paths, if data are files."""
    if isinstance(data, str | os.PathLike):
        data = [data]
    if not isinstance(data, Sequence) or not data:
        return None
    if not all(isinstance(path, str | os.PathLike) for path in data):
        return None
    return [str(Path(path).absolute()) for path in data]


def _partitions(
    data: Any, client: Any, sequence: str | None, label: str | None, rows: bool
) -> list[Any]:
    """Return delayed lists of pairs."""
    delayed: Any = importlib.import_module("dask").delayed
    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        if sequence is None or label is None:
            raise ValueError(
                "a DataFrame of tokens needs the names of two columns: fit(data, "
                "sequence='sentence', label='tag')"
            )
        for name in (sequence, label):
            if name not in data.columns:
                raise ValueError(
                    f"the DataFrame has no column {quoted(str(name))}; it has "
                    f"{', '.join(quoted(str(c)) for c in data.columns)}"
                )
        frames = data.to_delayed()
        ends = client.gather(client.compute([delayed(_ends)(frame, sequence) for frame in frames]))
        known = [(k, end) for k, end in enumerate(ends) if end is not None]
        for (j, (_, last)), (k, (first, _)) in itertools.pairwise(known):
            if last == first:
                raise ValueError(
                    f"sequence {quoted(str(last))} is in partitions {j} and {k}; all tokens of a "
                    "sequence must be in one partition"
                )
        pairs = delayed(token_pairs)
        return [pairs(frame, sequence, label, rows) for frame in frames]
    if hasattr(data, "to_delayed"):
        return [delayed(list)(part) for part in data.to_delayed()]
    raise TypeError(
        f"data are of type {type(data).__name__}; expected a dask bag of pairs (x, y), a dask "
        "DataFrame of tokens, or a list of files"
    )


def _ends(frame: Any, sequence: str) -> tuple[Any, Any] | None:
    column = frame[sequence]
    return None if len(column) == 0 else (column.iloc[0], column.iloc[-1])


def token_pairs(
    frame: Any, sequence: str, label: str, rows: bool
) -> list[tuple[list[Any], list[Any]]]:
    """Return the sequences of a data frame of tokens.

    Parameters
    ----------
    frame : pandas.DataFrame
        A row for each token; those of a sequence stand together.
    sequence, label : str
        The columns.
    rows : bool
        Whether a token is a list of texts, or a dict.
    """
    columns = [name for name in frame.columns if name not in (sequence, label)]
    ids, labels = frame[sequence].tolist(), frame[label].tolist()
    values = [frame[name].tolist() for name in columns]
    pairs: list[tuple[list[Any], list[Any]]] = []
    last: Any = None
    for t, one in enumerate(ids):
        if not pairs or one != last:
            pairs.append(([], []))
            last = one
        cells = [column[t] for column in values]
        token = [str(cell) for cell in cells] if rows else dict(zip(columns, cells, strict=True))
        pairs[-1][0].append(token)
        pairs[-1][1].append(labels[t])
    return pairs
