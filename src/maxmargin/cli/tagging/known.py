"""``maxmargin tag --known K``: a column of labels that are known, ``_`` where one is not."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maxmargin.features.columns import ColumnTable, LabelCodes
    from maxmargin.features.items import Items
    from maxmargin.models.base import InputFiles

__all__ = ["UNKNOWN", "KnownLabels", "add_known"]

#: What stands where a label is not known.
UNKNOWN = "_"
SHOWN = 8  # labels in a message


def add_known(parser: argparse.ArgumentParser) -> None:
    """Add ``--known``."""
    parser.add_argument(
        "--known",
        metavar="K",
        default=None,
        help="a column of labels that are known already, with _ where one is not: they stay, and "
        "the others become the best that go with them. Counted from 0, -1 is the last; of CoNLL-U "
        "the name of a column, such as upos; of crfsuite and svmhmm 0, the label itself. It may "
        "stand beside the columns of training",
    )


class KnownLabels:
    """Finds the labels that are known already.

    Parameters
    ----------
    options : argparse.Namespace
        With ``known``, ``format`` and ``file``.
    labels : sequence of str
        The labels of the model by their codes.
    inputs : InputFiles
        What the model reads.
    """

    def __init__(
        self, options: argparse.Namespace, labels: Sequence[str], inputs: InputFiles
    ) -> None:
        from maxmargin.io.text import name_of

        self._labels, self._inputs = labels, inputs
        self._codes = {label: k for k, label in enumerate(labels)}
        self._codes[UNKNOWN] = -1
        self._column: str | int | None = options.known
        self._source = name_of(options.file)
        self._lines: list[int] | None = None  # of the tokens of a CoNLL-U text
        if options.known is None:
            return
        if options.format == "conllu":
            from maxmargin.io.conllu import check_column

            check_column(options.known)
            return
        try:
            self._column = int(options.known)
        except ValueError:
            raise ValueError(
                f"--known: found {quoted(options.known)}; expected the number of a column, counted "
                "from 0 (names are for CoNLL-U)"
            ) from None
        if options.format in ("crfsuite", "svmhmm") and self._column != 0:
            raise ValueError(
                f"--known: found {self._column}; expected 0, because {options.format} files have "
                "their labels first"
            )

    def of_table(self, table: ColumnTable) -> tuple[ColumnTable, Any]:
        """Return a table as the model reads it, and the known labels.

        Parameters
        ----------
        table : ColumnTable
            The file.

        Returns
        -------
        table : ColumnTable
            It passes over a column that was not there in training.
        known : int32 array or None
            Codes, and -1 where nothing is known.
        """
        if self._column is None:
            return table, None
        from maxmargin.features.columns import ColumnTable

        assert isinstance(self._column, int)
        column = table.column_index(self._column, "--known: column")
        known = self._coded(table.labels(column), table, f"column {column}")
        same = column == self._inputs.label_column and table.n_columns == self._inputs.n_columns
        return (table if same else ColumnTable(table.native, table.source, extra=column)), known

    def of_items(self, items: Items) -> Any:
        """Return the known labels of a file of items; None if there are none."""
        if self._column is None:
            return None
        return self._coded(items.label_codes, items, "the label")

    def of_conllu(self, data: bytes, first_line: int) -> Any:
        """Return the known labels of a CoNLL-U text.

        Parameters
        ----------
        data : bytes
            Some sentences.
        first_line : int
            The number of their first line.

        Returns
        -------
        int32 array or None
            Codes, and -1 where nothing is known.
        """
        if self._column is None:
            return None
        from maxmargin.io.columns import parse_columns
        from maxmargin.io.conllu import conllu_to_columns

        # Lines of the text that are tokens, as `conllu_to_columns` takes them.
        rows = enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), first_line)
        self._lines = [n for n, line in rows if line.partition(b"\t")[0].isdigit()]
        taken = conllu_to_columns(data, [str(self._column)], self._source, first_line)
        table = parse_columns(taken, self._source, separator="tab")
        return self._coded(table.labels(0), table, f"column {self._column}")

    def complaint(self, data: Any, token: int, what: str) -> str:
        """Return a message about a token, with its file and line.

        Parameters
        ----------
        data : ColumnTable or Items
            Where it is.
        token : int
            Which one, counted over all sequences.
        what : str
            What is wrong with it.
        """
        import numpy as np

        if self._lines is not None:
            place = f"line {self._lines[token]}"
        elif hasattr(data, "place"):
            place = data.place(token)
        else:
            offsets = data.batch.offsets
            sequence = int(np.searchsorted(offsets, token, side="right")) - 1
            place = f"sequence {sequence}, token {token - int(offsets[sequence])}"
        return f"{self._source}: {place}: {what}"

    def _coded(self, labels: LabelCodes, data: Any, column: str) -> Any:
        import numpy as np

        codes = np.array([self._codes.get(name, -2) for name in labels.names], dtype=np.int32)
        known = codes[labels.codes]
        if (known == -2).any():
            token = int(np.argmax(known == -2))
            label = labels.names[labels.codes[token]]
            some = ", ".join(self._labels[:SHOWN]) + (" ..." if len(self._labels) > SHOWN else "")
            raise ValueError(
                self.complaint(
                    data,
                    token,
                    f"{column}: found the label {quoted(label)}, which the model does not know; "
                    f"expected one of its {len(self._labels)} labels ({some}), or {UNKNOWN}",
                )
            )
        return known
