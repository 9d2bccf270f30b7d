"""`BagOfWords`: texts as sparse rows of word counts, with a vocabulary that goes into a model file.

A text is cut into words (runs of letters, digits and underscores), in lower case unless told
otherwise; n-grams are neighbouring words with a space between. A word is kept if it occurs in at
least ``min_count`` texts of the training data. The value of a word with the count c in a text is

    "counts"  c           "log"    1 + log c          "binary"  1
    "tfidf"   (1 + log c) (1 + log((1 + n) / (1 + n_w)))      n texts, n_w of them with the word

and rows of all but "counts" and "binary" are then scaled to length one, so that long and short
texts count alike. Words that are not known are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice
from maxmargin.printable import quoted

__all__ = ["WEIGHTINGS", "BagOfWords"]

WEIGHTINGS = ("tfidf", "log", "counts", "binary")
_WORD = re.compile(r"\w+")
_MAX_NGRAMS = 10


class BagOfWords:
    """Texts as sparse rows.

    Parameters
    ----------
    ngrams : int
        Up to so many neighbouring words make a feature.
    min_count : int
        A feature occurs in at least so many texts of the training data.
    weighting : {"tfidf", "log", "counts", "binary"}
        The values; see the module's text.
    lowercase : bool
        Whether upper and lower case are the same.

    Attributes
    ----------
    n_words : int
        Number of features.

    Examples
    --------
    >>> bag = BagOfWords(weighting="counts")
    >>> bag.fit_transform(["the cat", "the dog and the cat"]).toarray().tolist()
    [[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 1.0, 2.0]]
    >>> bag.names()
    ['and', 'cat', 'dog', 'the']
    """

    def __init__(
        self,
        ngrams: int = 1,
        min_count: int = 1,
        weighting: str = "tfidf",
        *,
        lowercase: bool = True,
    ) -> None:
        for name, value, most in (
            ("ngrams", ngrams, _MAX_NGRAMS),
            ("min_count", min_count, 2**31),
        ):
            if type(value) is not int or not 1 <= value <= most:
                raise ValueError(f"{name} is {value!r}; expected an int from 1 to {most}")
        check_choice("weighting", weighting, WEIGHTINGS)
        if type(lowercase) is not bool:
            raise TypeError(f"lowercase is {lowercase!r}; expected True or False")
        self.ngrams = ngrams
        self.min_count = min_count
        self.weighting = weighting
        self.lowercase = lowercase
        self._places: dict[str, int] = {}
        self._idf: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, given: Any) -> BagOfWords:
        """Make one of what a parameter of an estimator holds.

        Parameters
        ----------
        given : "words", dict of options, or BagOfWords
            As the user wrote it.

        Returns
        -------
        BagOfWords
            Without words yet.
        """
        if isinstance(given, BagOfWords):
            return given.fresh()
        if isinstance(given, Mapping):
            known = {"ngrams", "min_count", "weighting", "lowercase"}
            for name in given:
                if name not in known:
                    raise ValueError(
                        f"features has the option {quoted(name)}; expected some of "
                        f"{', '.join(sorted(known))}"
                    )
            return cls(**given)
        if given == "words":
            return cls()
        raise ValueError(
            f'features is {quoted(given)}; expected None, "words" or a dict of options of '
            "BagOfWords"
        )

    def fresh(self) -> BagOfWords:
        """Return one with the same options that has no words yet."""
        return BagOfWords(**self._options())

    def _options(self) -> dict[str, Any]:
        return {
            "ngrams": self.ngrams,
            "min_count": self.min_count,
            "weighting": self.weighting,
            "lowercase": self.lowercase,
        }

    def __repr__(self) -> str:
        return f"BagOfWords({', '.join(f'{k}={v!r}' for k, v in self._options().items())})"

    @property
    def n_words(self) -> int:
        """Number of features."""
        return len(self._places)

    def names(self) -> list[str]:
        """Return the words, in the order of the columns."""
        return list(self._places)

    # --- texts to numbers ---

    def _features(self, text: str) -> list[str]:
        words = _WORD.findall(text.lower() if self.lowercase else text)
        if self.ngrams == 1:
            return words
        found = list(words)
        for n in range(2, self.ngrams + 1):
            found += [" ".join(words[k : k + n]) for k in range(len(words) - n + 1)]
        return found

    def fit_transform(self, X: Any) -> Any:
        """Learn the words of texts and return the texts as rows.

        Parameters
        ----------
        X : list of str
            The texts.

        Returns
        -------
        csr_array of float32, shape (n_texts, n_words)
            The rows.

        Raises
        ------
        TypeError, ValueError
            If X is no list of texts, or no word occurs often enough.
        """
        texts = _texts(X)
        counts = [Counter(self._features(text)) for text in texts]
        seen: Counter[str] = Counter()
        for count in counts:
            seen.update(count.keys())
        names = sorted(name for name, n in seen.items() if n >= self.min_count)
        if not names:
            raise ValueError(
                f"no word occurs in at least {self.min_count} of the {len(texts)} texts; expected "
                "one, or there is nothing to learn from"
            )
        self._places = {name: k for k, name in enumerate(names)}
        self._idf = None
        if self.weighting == "tfidf":
            in_texts = np.array([seen[name] for name in names], dtype=np.float64)
            self._idf = 1.0 + np.log((1.0 + len(texts)) / (1.0 + in_texts))
        return self._rows(counts)

    def transform(self, X: Any) -> Any:
        """Return texts as rows, by the words that are known.

        Parameters
        ----------
        X : list of str
            The texts.

        Returns
        -------
        csr_array of float32, shape (n_texts, n_words)
            The rows.
        """
        return self._rows([Counter(self._features(text)) for text in _texts(X)])

    def _rows(self, counts: list[Counter[str]]) -> Any:
        import scipy.sparse

        places, values, indptr = [], [], [0]
        find = self._places.get
        for count in counts:
            row = sorted((k, n) for name, n in count.items() if (k := find(name)) is not None)
            places += [k for k, _ in row]
            values += [n for _, n in row]
            indptr.append(len(places))
        kind = np.int32 if len(places) < 2**31 else np.int64
        columns, ends = np.array(places, dtype=kind), np.array(indptr, dtype=kind)
        numbers = self._weighted(columns, np.array(values, dtype=np.float64), ends)
        return scipy.sparse.csr_array(
            (numbers, columns, ends),
            shape=(len(counts), max(self.n_words, 1)),
        )

    def _weighted(
        self, columns: NDArray[Any], counts: NDArray[np.float64], indptr: NDArray[Any]
    ) -> NDArray[np.float32]:
        if self.weighting == "binary":
            return np.ones(len(counts), np.float32)
        if self.weighting == "counts":
            return counts.astype(np.float32)
        values = 1.0 + np.log(np.maximum(counts, 1.0))
        if self._idf is not None:
            values *= self._idf[columns]
        lengths = np.diff(indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        norms = np.sqrt(np.bincount(row, values * values, len(lengths)))
        return (values / norms[row]).astype(np.float32)

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return options and words as JSON values and arrays.

        Returns
        -------
        meta : dict
            The options and the number of words.
        arrays : dict
            ``names`` (UTF-8, a line each), and ``idf`` for "tfidf".
        """
        text = "\n".join(self._places).encode("utf-8", "surrogatepass")
        arrays: dict[str, NDArray[Any]] = {"names": np.frombuffer(text, dtype=np.uint8)}
        if self._idf is not None:
            arrays["idf"] = self._idf
        return {**self._options(), "n_words": self.n_words}, arrays

    @classmethod
    def restore(cls, meta: Any, arrays: Mapping[str, NDArray[Any]]) -> BagOfWords:
        """Make one of what `state` gave.

        Parameters
        ----------
        meta, arrays : dict
            Out of a file: nothing of it is trusted.

        Returns
        -------
        BagOfWords
            With its words.

        Raises
        ------
        ValueError, TypeError, KeyError
            If they do not make sense.
        """
        if not isinstance(meta, dict):
            raise TypeError("the options of the words are not there")
        bag = cls(
            ngrams=meta["ngrams"],
            min_count=meta["min_count"],
            weighting=meta["weighting"],
            lowercase=meta["lowercase"],
        )
        blob = arrays["names"]
        if blob.dtype != np.uint8 or blob.ndim != 1:
            raise ValueError("the words are no text")
        names = blob.tobytes().decode("utf-8", "surrogatepass").split("\n")
        bag._places = {name: k for k, name in enumerate(names)}
        if bag.n_words != len(names) or len(names) != meta["n_words"]:
            raise ValueError("there are not as many words as the header says, or one is twice")
        if bag.weighting == "tfidf":
            idf = arrays["idf"]
            if idf.shape != (len(names),) or idf.dtype != np.float64:
                raise ValueError("there is not one weight for each word")
            if not ((idf >= 1) & (idf <= 1e6)).all():
                raise ValueError("a weight of a word is out of range")
            bag._idf = np.array(idf)
        return bag


def _texts(X: Any) -> list[str]:
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise TypeError(f"X is a {type(X).__name__}; expected a list of texts")
    texts = list(X)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"X: example {i} is a {type(text).__name__}; expected a text (str)")
    if not texts:
        raise ValueError("X is empty; expected at least one text")
    return texts
