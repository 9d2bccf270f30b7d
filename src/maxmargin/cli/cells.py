"""Labels as cells of a text file: which ones a line of columns can hold.

Labels that come from Python may be any text. In a column of a file, a tab or an end of line would
make another column or another token of one, and an empty label none at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.features.columns import LabelCodes

__all__ = ["bad_cell", "check_labels", "check_trained"]


def bad_cell(label: str, *, spaces: bool = True) -> str | None:
    """Say what a cell of a file must not hold and a label does; None if it can be written.

    Parameters
    ----------
    label : str
        The label.
    spaces : bool
        Whether a cell may hold blanks: where columns stand between tabs.

    Returns
    -------
    str or None
        In words.
    """
    if not label.strip():
        return "nothing but white space" if label else "nothing"
    if "\t" in label:
        return "a tab"
    if label.splitlines() != [label]:  # at U+2028 and U+0085, too, which other programs split at
        return "an end of line"
    if not spaces and " " in label:
        return "a space, which stands between columns"
    return None


def check_labels(labels: Iterable[object], model: str, *, spaces: bool = True) -> None:
    """Refuse a model whose labels cannot be written as cells.

    Parameters
    ----------
    labels : iterable
        The labels; those that are no texts are written as ``str`` writes them.
    model : str
        The file, for the message.
    spaces : bool
        As for `bad_cell`.

    Raises
    ------
    ValueError
        If there is such a label.
    """
    for label in labels:
        found = bad_cell(str(label), spaces=spaces)
        if found is not None:
            raise ValueError(
                f"{model}: the label {quoted(label)} holds {found}; expected labels that a cell of "
                "a text file can hold (predict with this model from Python)"
            )


def check_trained(labels: LabelCodes, source: str) -> None:
    """Refuse to learn labels that ``maxmargin tag`` could not write.

    Parameters
    ----------
    labels : LabelCodes
        The labels of a training file.
    source : str
        The file, for the message.

    Raises
    ------
    ValueError
        If there is such a label; the message names its first token.
    """
    import numpy as np

    for code, label in enumerate(labels.names):
        found = bad_cell(label)
        if found is None:
            continue
        token = int(np.argmax(labels.codes == code))
        sequence = int(np.searchsorted(labels.offsets, token, side="right")) - 1
        raise ValueError(
            f"{source}: sequence {sequence}, token {token - int(labels.offsets[sequence])}: the "
            f"label {quoted(label)} holds {found}; expected one that a cell of a text file can hold"
        )
