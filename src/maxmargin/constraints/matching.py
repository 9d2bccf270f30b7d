"""Which tokens a constraint is about: words, a regular pattern, a class of words, a predicate.

A token matches if any of what is given matches its text; words are compared without regard to case
unless ``match_case`` is set, a pattern must match the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.constraints.sample import Column, Sample, suggestion
from maxmargin.errors import ConstraintError
from maxmargin.printable import quoted

__all__ = ["CLASSES", "TokenMatch"]

#: Classes of words by name.
CLASSES: dict[str, Callable[[str], bool]] = {
    "punctuation": lambda text: text != "" and not any(c.isalnum() for c in text),
    "number": lambda text: any(c.isdigit() for c in text) and not any(c.isalpha() for c in text),
    "capitalised": lambda text: text[:1].isupper(),
    "uppercase": lambda text: text.isupper(),
    "alphabetic": str.isalpha,
    "any": lambda text: True,
}


@dataclass(frozen=True)
class TokenMatch:
    """Tokens, by their text.

    Parameters
    ----------
    words : str or iterable of str
        These words.
    pattern : str or None
        A regular expression that matches the whole text.
    is_ : str or None
        A class of words: "punctuation" (no letters or digits), "number" (digits without letters),
        "capitalised", "uppercase", "alphabetic", "any".
    predicate : callable or None
        A function of the text that tells whether it matches.
    column : int, str or None
        The column of the text; None: that of the words.
    match_case : bool
        Whether words and pattern look at upper and lower case.

    Examples
    --------
    >>> match = TokenMatch(words=("pp", "pages"))
    >>> match.mask(Sample([["Pages", "3"]])).tolist()
    [True, False]
    """

    words: Any = ()
    pattern: str | None = None
    is_: str | None = None
    predicate: Callable[[str], bool] | None = None
    column: Column = None
    match_case: bool = False

    def __post_init__(self) -> None:
        words = (self.words,) if isinstance(self.words, str) else tuple(self.words)
        object.__setattr__(self, "words", words)
        for word in words:
            if not isinstance(word, str):
                raise ConstraintError(f"words has {quoted(word)}; expected texts")
        if self.is_ is not None and self.is_ not in CLASSES:
            raise ConstraintError(
                f"there is no class of words {quoted(self.is_)}{suggestion(self.is_, CLASSES)}"
            )
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except (re.error, TypeError) as error:
                raise ConstraintError(f"pattern {quoted(self.pattern)}: {error}") from None
        if self.predicate is not None and not callable(self.predicate):
            raise ConstraintError(f"predicate is {quoted(self.predicate)}; expected a function")
        if not (words or self.pattern or self.is_ or self.predicate):
            raise ConstraintError(
                "no tokens are named; expected words, a pattern, a class of words or a predicate"
            )

    @classmethod
    def of(cls, thing: Any, **options: Any) -> TokenMatch:
        """Make one of what a user wrote.

        Parameters
        ----------
        thing : TokenMatch, str, iterable of str, re.Pattern or callable
            A name of a class of words ("punctuation"), words, a compiled pattern, or a predicate.
        **options
            ``column`` and ``match_case``.

        Returns
        -------
        TokenMatch
            The tokens that are meant.
        """
        if isinstance(thing, cls):
            return thing
        if isinstance(thing, re.Pattern):
            return cls(pattern=thing.pattern, **{"match_case": True, **options})
        if isinstance(thing, str):
            return cls(is_=thing, **options) if thing in CLASSES else cls(words=(thing,), **options)
        if isinstance(thing, Iterable):
            return cls(words=tuple(thing), **options)
        if callable(thing):
            return cls(predicate=thing, **options)
        raise ConstraintError(
            f"found {quoted(thing)}; expected words, a class of words, a pattern or a function"
        )

    def mask(self, sample: Sample) -> NDArray[np.bool_]:
        """Return which tokens of a sample match.

        Parameters
        ----------
        sample : Sample
            The tokens.

        Returns
        -------
        bool array of shape (n_tokens,)
            Of all sequences, one after the other.
        """
        texts = sample.texts(self.column)
        kinds = {text: self._matches(text) for text in set(texts)}
        return np.fromiter((kinds[text] for text in texts), dtype=np.bool_, count=len(texts))

    def _matches(self, text: str) -> bool:
        fold = (lambda s: s) if self.match_case else str.casefold
        if self.words and fold(text) in {fold(word) for word in self.words}:
            return True
        if self.pattern is not None:
            flags = 0 if self.match_case else re.IGNORECASE
            if re.fullmatch(self.pattern, text, flags):
                return True
        if self.is_ is not None and CLASSES[self.is_](text):
            return True
        return self.predicate is not None and bool(self.predicate(text))

    def __str__(self) -> str:
        parts = []
        if self.words:
            shown = ", ".join(self.words[:4]) + (", ..." if len(self.words) > 4 else "")
            parts.append(shown)
        if self.pattern is not None:
            parts.append(f"/{self.pattern}/")
        if self.is_ is not None:
            parts.append(self.is_)
        if self.predicate is not None:
            parts.append(getattr(self.predicate, "__name__", "predicate"))
        return " or ".join(parts)
