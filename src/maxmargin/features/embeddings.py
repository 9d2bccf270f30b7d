"""`Embeddings`: vectors of words, as dense features beside those of a template.

A word that has no vector as it is written is looked up in lower case, then with a capital first
("MADRID" as "madrid", then as "Madrid"), then as ``<unk>`` if there is such a vector; else, and
outside of its sequence, it has zeros.

All vectors are multiplied by one factor, after which the root mean square of their lengths is
`Embeddings.scale`. One regulariser pulls at all weights alike, so the size of the vectors decides
how much they count beside the features of the template, each of which has the length 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import MAX_VALUE
from maxmargin.checks import check_choice, check_number, check_whole
from maxmargin.features.columns import ColumnTable
from maxmargin.printable import quoted

__all__ = ["MAX_WINDOW", "STORES", "UNKNOWN", "Embeddings", "first_bad_row"]

#: The word whose vector stands for words that have none.
UNKNOWN = "<unk>"
#: What a model file keeps of the vectors: all of them, or the name and the hash of their file.
STORES = ("vectors", "reference")
#: Tokens to each side whose vectors a token may have, at most.
MAX_WINDOW = 10

#: Numbers that are looked at together when vectors are checked.
_AT_ONCE = 1 << 20


class Embeddings:
    """Vectors of words, and how tokens get features from them. They do not change.

    Parameters
    ----------
    vectors : mapping of str to vectors
        The vectors, all of one length; `maxmargin.read_embeddings` reads them from a file.
    column : int
        The column of the tokens that has the words, counted from 0.
    window : int
        How many tokens to each side give their vectors, too: with 1, a token has three vectors, of
        the word before, of its own and of the one behind.
    scale : float
        The root mean square of the lengths of all vectors, after scaling; positive.
    store : {"vectors", "reference"}
        What a model file keeps: all vectors, so that it needs no other file; or only the name of
        the file that they were read from and a hash of its words and numbers.
    source : str
        Where they came from, for messages.

    Attributes
    ----------
    words : list of str
        The words.
    vectors : float32 array of shape (n_words, size)
        Their vectors, as they were given.
    size : int
        Length of a vector.

    Examples
    --------
    >>> embeddings = Embeddings({"dog": [3.0, 0.0], "cat": [0.0, 3.0]}, scale=1.0)
    >>> embeddings.vector("Dog").tolist()
    [1.0, 0.0]
    >>> embeddings.vector("bird").tolist()
    [0.0, 0.0]
    """

    words: list[str]
    vectors: NDArray[np.float32]
    column: int
    window: int
    scale: float
    store: str
    source: str
    path: str | None = None
    encoding = "utf-8"

    def __init__(
        self,
        vectors: Mapping[str, Any],
        *,
        column: int = 0,
        window: int = 0,
        scale: float = 1.0,
        store: str = "vectors",
        source: str = "embeddings",
    ) -> None:
        words, matrix = _of_mapping(vectors, source)
        self._set(words, matrix, source)
        self._choose(column=column, window=window, scale=scale, store=store)

    @classmethod
    def of_matrix(
        cls,
        words: list[str],
        vectors: NDArray[np.float32],
        *,
        column: int = 0,
        window: int = 0,
        scale: float = 1.0,
        store: str = "vectors",
        source: str = "embeddings",
        path: str | None = None,
        encoding: str = "utf-8",
    ) -> Embeddings:
        """Make them of words and a matrix, which are not copied.

        Parameters
        ----------
        words : list of str
            The words, no two of them alike.
        vectors : float32 array of shape (n_words, size)
            Their vectors, all of them finite.
        column, window, scale, store, source
            As for the class.
        path : str or None
            The file that they were read from.
        encoding : str
            Of that file.

        Returns
        -------
        Embeddings
            The same vectors.
        """
        made = cls.__new__(cls)
        made.path, made.encoding = path, encoding
        made._set(words, vectors, source)
        made._choose(column=column, window=window, scale=scale, store=store)
        return made

    def _set(self, words: list[str], vectors: NDArray[np.float32], source: str) -> None:
        if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != len(words):
            raise ValueError(
                f"{source}: found a {vectors.ndim}-d array of {vectors.dtype} for {len(words)} "
                "words; expected a 2-d array of float32 with a row for each"
            )
        if vectors.shape[0] == 0 or vectors.shape[1] == 0:
            raise ValueError(f"{source}: found no vectors; expected at least one, of a number")
        self.words, self.vectors, self.source = words, vectors, source
        self._places: dict[str, int] | None = None
        self._hash: str | None = None

    def _choose(self, *, column: int, window: int, scale: float, store: str) -> None:
        self.column = check_whole("column", column, 0)
        self.window = check_whole("window", window, 0)
        if self.window > MAX_WINDOW:
            raise ValueError(f"window is {window}; expected at most {MAX_WINDOW}")
        self.scale = check_number("scale", scale, above=0.0)
        check_choice("store", store, STORES)
        if store == "reference" and self.path is None:
            raise ValueError(
                'store="reference" is for vectors that were read from a file (read_embeddings); '
                'these were not, and a model file must hold them: store="vectors"'
            )
        self.store = store
        square = float(np.einsum("ij,ij->", self.vectors, self.vectors, dtype=np.float64))
        size = (square / len(self.words)) ** 0.5
        if size == 0.0:
            raise ValueError(f"{self.source}: all vectors are zero; expected some that are not")
        self._factor = self.scale / size

    @property
    def size(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features of a token."""
        return self.size * (2 * self.window + 1)

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"<Embeddings {self.source!r}: {len(self)} words, vectors of {self.size} numbers>"

    @property
    def hash(self) -> str:
        """Thirty-two hexadecimal digits that are the same for the same words and numbers."""
        if self._hash is None:
            digest = hashlib.blake2b(digest_size=16)
            digest.update("\n".join(self.words).encode("utf-8", "surrogatepass"))
            digest.update(np.asarray(self.vectors, dtype="<f4").tobytes())
            self._hash = digest.hexdigest()
        return self._hash

    def identity(self) -> tuple[Any, ...]:
        """Return what differs between embeddings that give other features."""
        return self.hash, self.column, self.window, self.scale

    def place(self, word: str) -> int:
        """Return which vector a word has; -1 if it has none.

        Parameters
        ----------
        word : str
            As it is written.

        Returns
        -------
        int
            A row of ``vectors``.
        """
        if self._places is None:
            self._places = {known: k for k, known in enumerate(self.words)}
        places = self._places
        for form in (word, word.lower(), word.capitalize(), UNKNOWN):
            found = places.get(form)
            if found is not None:
                return found
        return -1

    def vector(self, word: str) -> NDArray[np.float32]:
        """Return the vector of a word as the features of a token have it.

        Parameters
        ----------
        word : str
            As it is written.

        Returns
        -------
        float32 array of shape (size,)
            Zeros if it has none.
        """
        (vector,) = self._scaled(np.array([self.place(word)]))
        return np.asarray(vector, np.float32)

    def _scaled(self, places: NDArray[np.intp]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self.vectors[places] * np.float32(self._factor)
        rows[places < 0] = 0.0
        return rows

    def rows(self, table: ColumnTable, column: int) -> NDArray[np.float32]:
        """Return the features of all tokens of a table.

        Parameters
        ----------
        table : ColumnTable
            The tokens.
        column : int
            Which of its columns has the words.

        Returns
        -------
        float32 array of shape (n_tokens, n_features)
            From the first word of the window to the last.
        """
        codes, names = table.native.codes(column)
        of_words = self._scaled(np.array([self.place(name) for name in names], dtype=np.intp))
        if self.window == 0:
            return of_words[codes]
        n, d = len(codes), self.size
        features = np.zeros((n, self.n_features), np.float32)
        sequence = np.repeat(np.arange(table.n_sequences), np.diff(table.offsets))
        for k, offset in enumerate(range(-self.window, self.window + 1)):
            here = np.arange(max(0, -offset), min(n, n - offset))
            here = here[sequence[here] == sequence[here + offset]]
            features[here, k * d : (k + 1) * d] = of_words[codes[here + offset]]
        return features

    def names(self) -> list[str]:
        """Names of the features, such as ``embedding[-1]:0``: the offset, and the number."""
        offsets = range(-self.window, self.window + 1)
        return [f"embedding[{offset}]:{j}" for offset in offsets for j in range(self.size)]

    def known_share(self, words: Iterable[str]) -> float:
        """Return the share of words that have a vector of their own, in some spelling.

        Parameters
        ----------
        words : iterable of str
            At least one.

        Returns
        -------
        float
            From 0 to 1.
        """
        unknown = (-1, self.place(UNKNOWN))
        return float(np.mean([self.place(word) not in unknown for word in words]))

    def __copy__(self) -> Embeddings:
        return self

    def __deepcopy__(self, memo: Any) -> Embeddings:
        return self  # They do not change, and scikit-learn's clones would copy them many times.


def first_bad_row(vectors: NDArray[np.float32]) -> int | None:
    """Find a vector with a number that is not finite, or too large to compute with.

    Parameters
    ----------
    vectors : float32 array of shape (n_words, size)
        What was read.

    Returns
    -------
    int or None
        The first such row.
    """
    step = max(1, _AT_ONCE // max(1, vectors.shape[1]))
    for begin in range(0, len(vectors), step):
        bad = ~(np.abs(vectors[begin : begin + step]) <= MAX_VALUE).all(axis=1)
        if bad.any():
            return begin + int(np.argmax(bad))
    return None


def _of_mapping(given: Any, source: str) -> tuple[list[str], NDArray[np.float32]]:
    """Check the vectors of a mapping and put them below each other."""
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{source}: found {type(given).__name__}; expected a mapping of words to vectors, or "
            "the path of a file"
        )
    if len(given) == 0:
        raise ValueError(f"{source}: found no words; expected at least one")
    words: list[str] = []
    matrix: NDArray[np.float32] | None = None
    for k, (word, vector) in enumerate(given.items()):
        if not isinstance(word, str):
            raise TypeError(f"{source}: found {type(word).__name__} as a word; expected str")
        try:
            with np.errstate(over="ignore"):
                values = np.asarray(vector, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{source}: the vector of {quoted(word)} is {quoted(vector, 60)}; expected numbers"
            ) from None
        if matrix is None:
            if values.ndim != 1 or len(values) == 0:
                raise ValueError(
                    f"{source}: the vector of {quoted(word)} is a {values.ndim}-d array with "
                    f"{values.size} numbers; expected a 1-d one with at least one number"
                )
            matrix = np.empty((len(given), len(values)), np.float32)
        if values.shape != matrix.shape[1:]:
            raise ValueError(
                f"{source}: the vector of {quoted(word)} has the shape {values.shape}; expected "
                f"{matrix.shape[1:]}, as that of {quoted(words[0])}"
            )
        with np.errstate(over="ignore"):
            matrix[k] = values
        words.append(word)
    assert matrix is not None
    bad = first_bad_row(matrix)
    if bad is not None:
        raise ValueError(
            f"{source}: the vector of {quoted(words[bad])} has a number that is not between -1e12 "
            "and 1e12; expected finite numbers"
        )
    return words, matrix
