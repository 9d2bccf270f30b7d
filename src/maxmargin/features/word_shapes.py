"""Classes of words that a model has not seen: capitals, digits, hyphens, endings.

The class of an unknown word says what its letters show of its part of speech. It is made of up to
four parts, the most telling first, and each shorter list of parts is a class as well. Whoever knows
only some classes takes the longest that is known::

    "Reaganomics"  ->  ?+Xx+ics, ?+Xx, ?
    "mid-1990s"    ->  ?+9+-+s, ?+9+-, ?+9, ?
    "walking"      ->  ?+ing, ?

The parts are

- ``9`` for a word with a digit, ``99`` for one of digits, points, commas and the like alone;
- ``X`` for a word in capitals, ``Xx`` for one that begins with a capital, ``xX`` for one that has a
  capital elsewhere; ``X1`` and ``Xx1`` for the first word of a sentence, where a capital says less;
- ``-`` for a word with a hyphen;
- an ending of a list of common ones, the longest that fits and leaves two characters before it.

Every class begins with ``?+`` or is ``?``. So a class is never confused with a word, if words that
look like one are treated as unknown (`is_class`).
"""

from __future__ import annotations

__all__ = ["UNKNOWN", "is_class", "shape_classes"]

#: The class of every word.
UNKNOWN = "?"

_TEXT = """
able ably age al ally an ance ant ar ary ate ated ates ation ations ed ee en ence ency ent er
ers es ess est ful ian ible ic ical ics ies ing ings ion ions ise ish ism ist ists ity ive ize
less ly ment ments ness or ors ory ous s ship th ties tion tions ty ure us ward wise y
"""
_ENDINGS = frozenset(_TEXT.split())
_LONGEST = max(map(len, _ENDINGS))


def is_class(word: str) -> bool:
    """Whether a word looks like a class.

    Parameters
    ----------
    word : str
        A word.
    """
    return word == UNKNOWN or word.startswith(f"{UNKNOWN}+")


def shape_classes(word: str, *, first: bool = False) -> list[str]:
    """Return the classes of a word, the most telling one first.

    Parameters
    ----------
    word : str
        The word.
    first : bool
        Whether it begins a sentence.

    Returns
    -------
    list of str
        Each is the one before without its last part; the last is `UNKNOWN`.

    Examples
    --------
    >>> shape_classes("Walking", first=True)
    ['?+Xx1+ing', '?+Xx1', '?']
    >>> shape_classes("1,000")
    ['?+99', '?']
    """
    parts = []
    letters = [c for c in word if c.isalpha()]
    digits = any(c.isdigit() for c in word)
    if digits:
        parts.append("9" if letters else "99")
    if letters:
        place = "1" if first else ""
        if len(letters) > 1 and all(c.isupper() for c in letters):
            parts.append(f"X{place}")
        elif word[0].isupper():
            parts.append(f"Xx{place}")
        elif any(c.isupper() for c in letters):
            parts.append("xX")
        if "-" in word:
            parts.append("-")
        lower = word.lower()
        for n in range(min(_LONGEST, len(lower) - 2), 0, -1):
            if lower[-n:] in _ENDINGS:
                parts.append(lower[-n:])
                break
    found = ["+".join([UNKNOWN, *parts[:n]]) for n in range(len(parts), 0, -1)]
    return [*found, UNKNOWN]
