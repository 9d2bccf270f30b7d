"""A text for each token, for people who look at predictions: its word, as far as that can be known.

Data of columns have the word in their first column. Features that are expanded already have no
word; then it is the value of the feature that is called like a word, or else the first feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features.columns import ColumnTable
from maxmargin.features.items import Items

__all__ = ["TokenTexts"]

#: What the feature with the word of a token is called, the surest names first.
NAMES = (
    *("word", "token", "form", "text", "w", "w[0]", "word[0]", "0:word", "U00"),
    *("word.lower()", "word.lower", "lower", "lemma"),
)
_NAMED = re.compile(r"([^=:]+(?::word)?)[=:](.+)", re.DOTALL)


class TokenTexts:
    """The texts of tokens, made when they are asked for.

    Parameters
    ----------
    X : ColumnTable, Items or list of sequences
        The data, without empty sequences.
    offsets : int array of shape (n_sequences + 1,)
        The first token of each sequence.
    columns : bool
        Whether tokens of lists are rows of columns (and not features).
    """

    def __init__(self, X: Any, offsets: NDArray[np.integer[Any]], *, columns: bool = True) -> None:
        self._X, self._offsets, self._columns = X, offsets, columns

    def __getitem__(self, token: int) -> str:
        """Return the text of a token, counted over all sequences; empty if there is none."""
        if isinstance(self._X, ColumnTable):
            return str(self._X.native.cell(token, 0))
        if isinstance(self._X, Items):
            return _of_names(self._item_names(token))
        i = int(np.searchsorted(self._offsets, token, side="right")) - 1
        return _of_token(self._X[i], token - int(self._offsets[i]), self._columns)

    def _item_names(self, token: int) -> list[str]:
        batch, name = self._X.batch, self._X.vocabulary.name
        if batch.indptr is None or batch.indices is None:
            return []
        row = batch.indices[int(batch.indptr[token]) : int(batch.indptr[token + 1])]
        return [name(j) for j in row.tolist()]


def _of_token(sequence: Any, t: int, columns: bool) -> str:
    """Return the text of a token of what users have as a sequence."""
    if isinstance(sequence, tuple) and len(sequence) == 2 and hasattr(sequence[1], "shape"):
        sequence = sequence[0]  # with dense features beside the others
    if hasattr(sequence, "iloc"):  # a data frame of pandas
        return str(sequence.iloc[t, 0])
    if hasattr(sequence, "shape") or not hasattr(sequence, "__getitem__"):
        return ""  # numbers
    token = sequence[t]
    if isinstance(token, str):
        return token
    if isinstance(token, Mapping):
        for name in NAMES:
            if name in token:
                return str(token[name])
        texts = [str(value) for value in token.values() if isinstance(value, str)]
        return texts[0] if texts else _of_names([str(key) for key in token])
    if isinstance(token, Iterable):
        cells = [str(cell) for cell in token if not hasattr(cell, "shape")]
        return (cells[0] if cells else "") if columns else _of_names(cells)
    return str(token)


def _of_names(names: list[str]) -> str:
    """Return the word among the names of features, such as "w=dog"; else the first of them."""
    found: dict[str, str] = {}
    for name in names:
        match = _NAMED.fullmatch(name)
        if match:
            found.setdefault(match[1], match[2])
    for name in NAMES:
        if name in found:
            return found[name]
    return names[0] if names else ""
