"""Parquet and Arrow data sets, read in batches of rows (needs ``pyarrow``)."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from maxmargin._native import Vocabulary
from maxmargin.errors import FileFormatError
from maxmargin.features.columns import ColumnTable
from maxmargin.io.tables import from_table
from maxmargin.io.text import name_of
from maxmargin.printable import quoted
from maxmargin.streams.sources import Chunk, Skipped, Source

__all__ = ["TableFiles", "looks_like_table"]

_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


def looks_like_table(path: Any) -> bool:
    """Whether a path names a Parquet or Arrow file, or a directory of them.

    Parameters
    ----------
    path : path
        What somebody gave.

    Returns
    -------
    bool
        By its ending, or because it is a directory that has such files.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    name = os.fsdecode(path)
    if name.lower().endswith(_ENDINGS):
        return True
    folder = Path(name)
    tables = (file for file in folder.rglob("*") if file.name.lower().endswith(_ENDINGS))
    return folder.is_dir() and next(tables, None) is not None


class TableFiles(Source):
    """Sequences in a Parquet or Arrow data set.

    Parameters
    ----------
    dataset : path, list of paths, or pyarrow.dataset.Dataset
        Where they are.
    columns : list of str or None
        The columns that features are made of, and the label's last. None: all but ``sequence``.
    sequence : str, list of str or None
        The columns whose change begins another sequence: a row is a token. None: a row is a
        sequence, and its cells are lists.
    rows : int
        Rows that are read at a time.
    """

    file_format = "conll"

    def __init__(
        self,
        dataset: Any,
        columns: Sequence[str] | None = None,
        sequence: str | Sequence[str] | None = None,
        *,
        rows: int = 1 << 14,
    ) -> None:
        self.dataset, self.name = _opened(dataset)
        by = [] if sequence is None else [sequence] if isinstance(sequence, str) else list(sequence)
        self.by = by
        names = list(self.dataset.schema.names)
        self.columns = [n for n in names if n not in by] if columns is None else list(columns)
        known = ", ".join(quoted(n) for n in names[:20]) + (", ..." if len(names) > 20 else "")
        for name in [*self.columns, *by]:
            if names.count(name) != 1:
                raise FileFormatError(
                    f"{self.name}: found no column {quoted(name)}; its columns are {known}"
                )
        if len(self.columns) < 2:
            raise FileFormatError(
                f"{self.name}: found the columns {known}; expected at least two beside those that "
                "tell sequences apart, a feature and the label"
            )
        self.rows = rows

    def chunks(self, skipped: Skipped, vocabulary: Callable[[], Vocabulary]) -> Iterator[Chunk]:
        """Give the sequences; parameters are those of `Source.chunks`."""
        import pyarrow as pa  # type: ignore[import-untyped]

        *features, label = self.columns
        scanner = self.dataset.scanner(
            columns=[*self.columns, *self.by], batch_size=self.rows, use_threads=False
        )
        held: Any = None
        first = 0  # the row of the data set with which a batch begins
        for batch in scanner.to_batches():
            if batch.num_rows == 0:
                continue
            table = pa.Table.from_batches([batch])
            if not self.by:
                yield from self._chunk(table, features, label, first, skipped)
                first += table.num_rows
                continue
            table = table if held is None else pa.concat_tables([held, table])
            cut = self._last_change(table)
            held = table.slice(cut)
            if cut:
                yield from self._chunk(table.slice(0, cut), features, label, first, skipped)
                first += cut
        if held is not None and held.num_rows:
            yield from self._chunk(held, features, label, first, skipped)

    def _last_change(self, table: Any) -> int:
        """Return the row from which on all rows are of one sequence."""
        cells = [table.column(name).to_pylist() for name in self.by]
        keys = list(zip(*cells, strict=True))
        at = len(keys) - 1
        while at > 0 and keys[at - 1] == keys[-1]:
            at -= 1
        return at

    def _chunk(
        self, table: Any, features: list[str], label: str, first: int, skipped: Skipped
    ) -> Iterator[Chunk]:
        by = self.by or None
        try:
            rows, labels = from_table(table, features, label, by)
        except ValueError as error:
            if skipped.raises:
                raise self._at_row(error, first) from None
            yield from self._good(table, features, label, first, skipped)
            return
        assert labels is not None
        cells = [
            [(*token, tag) for token, tag in zip(tokens, tags, strict=True)]
            for tokens, tags in zip(rows, labels, strict=True)
        ]
        yield Chunk(*ColumnTable.from_rows(cells, self.name).labelled(-1), self.name)

    def _at_row(self, error: ValueError, first: int) -> FileFormatError:
        """Return an error about a row of a part as one about a row of the data."""
        text = re.sub(r"^row (\d+)", lambda row: f"row {first + int(row[1])}", str(error))
        return FileFormatError(f"{self.name}: {text}")

    def _good(
        self, table: Any, features: list[str], label: str, first: int, skipped: Skipped
    ) -> Iterator[Chunk]:
        """Give what is good of some rows, sequence by sequence."""
        if not self.by:
            ends = list(range(table.num_rows + 1))
        else:
            cells = [table.column(name).to_pylist() for name in self.by]
            keys = list(zip(*cells, strict=True))
            ends = [0, *(k for k in range(1, len(keys)) if keys[k] != keys[k - 1]), len(keys)]
        for a, b in itertools.pairwise(ends):
            part = table.slice(a, b - a)
            try:
                from_table(part, features, label, self.by or None)
            except ValueError as error:
                skipped.note(self._at_row(error, first + a))
            else:
                yield from self._chunk(part, features, label, first + a, skipped)


def _opened(given: Any) -> tuple[Any, str]:
    """Return a data set and what messages call it."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "Parquet and Arrow files are read with pyarrow, which is not installed; install it "
            "with: pip install 'maxmargin[arrow]'"
        ) from None
    if isinstance(given, ds.Dataset):
        return given, "the data set"
    paths = [given] if isinstance(given, str | bytes | os.PathLike) else list(given)
    names = [os.fsdecode(path) for path in paths]
    shown = ", ".join(name_of(path) for path in paths)
    arrow = names[0].lower().endswith((".arrow", ".feather", ".ipc"))
    try:
        return ds.dataset(
            names if len(names) > 1 else names[0], format="ipc" if arrow else "parquet"
        ), shown
    except FileNotFoundError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise FileFormatError(
            f"{shown}: cannot be read as {'Arrow' if arrow else 'Parquet'}: "
            f"{str(error).splitlines()[0][:200]}"
        ) from None
