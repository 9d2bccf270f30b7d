"""Templates expanded slowly and clearly, to test the native expansion against.

    expand(template, sequence)[t]   the names of the features of token t, in the order of the lines
    expand(..., bigrams=True)[t]    the names of its features of two labels

A sequence is a list of rows, a row a list of strings. A name occurs as often as lines give it. Only
the parsed pieces of a template are used; what they mean is written down here once more.
"""

from __future__ import annotations

import unicodedata

FARTHEST = 1 << 40  # that an indirect offset reaches


class NoFeatureError(Exception):
    """The line gives no feature at this token."""


# --- characters -----------------------------------------------------------------------------------


def is_letter(c):
    return unicodedata.category(c).startswith("L")


def is_digit(c):
    return unicodedata.category(c) == "Nd"


def is_lower(c):
    return unicodedata.category(c) == "Ll"


def is_upper(c):
    return unicodedata.category(c) in ("Lu", "Lt")


def is_punctuation(c):
    return unicodedata.category(c)[0] in "PS"


def is_space(c):
    return unicodedata.category(c).startswith("Z") or c in " \t\n\v\f\r"


def lower(text):
    return "".join(lower_character(c) for c in text)


def lower_character(c):
    if c == "İ":
        return "i"
    return c.lower() if len(c.lower()) == 1 else c


def shape(text):
    return "".join(shape_character(c) for c in text)


def shape_character(c):
    if is_upper(c):
        return "X"
    if is_letter(c):
        return "x"
    return "d" if is_digit(c) else c


def collapse(text):
    return "".join(c for k, c in enumerate(text) if k == 0 or c != text[k - 1])


# --- the small regular expressions of Wapiti ------------------------------------------------------

CLASSES = {
    "a": is_letter,
    "d": is_digit,
    "l": is_lower,
    "p": is_punctuation,
    "s": is_space,
    "u": is_upper,
    "w": lambda c: is_letter(c) or is_digit(c),
}


def item_matches(item, c):
    """Whether a character is what an item (".", "x" or "\\x") stands for."""
    if item == ".":
        return True
    if not item.startswith("\\"):
        return c == item
    name = item[1]
    if name in CLASSES:
        return CLASSES[name](c)
    if name in "ADLPSUW":
        return not CLASSES[name.lower()](c)
    return c == name


def match_here(pattern, text):
    """Return the length of the match at the beginning of a text; None if there is none."""
    if pattern == "":
        return 0
    if pattern == "$":
        return 0 if text == "" else None
    size = 2 if pattern[0] == "\\" else 1
    item, rest = pattern[:size], pattern[size:]
    first = text != "" and item_matches(item, text[0])
    if rest.startswith("*"):  # as few as possible
        length = match_here(rest[1:], text)
        if length is None and first:
            length = plus_one(match_here(pattern, text[1:]))
        return length
    if rest.startswith("?"):  # rather one than none
        length = plus_one(match_here(rest[1:], text[1:])) if first else None
        return match_here(rest[1:], text) if length is None else length
    return plus_one(match_here(rest, text[1:])) if first else None


def plus_one(length):
    return None if length is None else length + 1


def search(pattern, text):
    """Return the leftmost match as a string; None if there is none."""
    if pattern.startswith("^"):
        length = match_here(pattern[1:], text)
        return None if length is None else text[:length]
    for start in range(len(text) + 1):
        length = match_here(pattern, text[start:])
        if length is not None:
            return text[start : start + length]
    return None


# --- commands -------------------------------------------------------------------------------------


def leading_integer(text):
    """As atoi in C: 0 if a text does not begin with an integer; very large ones are cut."""
    text = text.lstrip(" \t\n\v\f\r")
    sign = -1 if text.startswith("-") else 1
    text = text[1:] if text[:1] in ("+", "-") else text
    digits = ""
    for c in text:
        if c not in "0123456789":
            break
        digits += c
    digits = digits.lstrip("0") or "0"
    # Fourteen digits are more than FARTHEST; int() refuses thousands of them.
    return sign * (min(int(digits[:14]), FARTHEST))


def position(command, sequence, t):
    if command.mode == "relative":
        return t + command.offset
    if command.mode == "indirect":
        return t + leading_integer(sequence[t][command.offset])
    return command.offset - 1 if command.offset >= 0 else len(sequence) + command.offset


def value(command, sequence, t):
    """Return what replaces a command at a token."""
    at = position(command, sequence, t)
    inside = 0 <= at < len(sequence)
    if inside:
        cell = sequence[at][command.column]
    else:
        cell = f"_B{at}" if at < 0 else f"_B+{at - len(sequence) + 1}"
    if command.kind == "t":
        result = "false" if search(command.argument, cell) is None else "true"
    elif command.kind == "m":
        result = search(command.argument, cell) or ""
    elif command.kind in "ps":
        n = command.argument
        if not inside or len(cell) < n:
            raise NoFeatureError
        result = cell[:n] if command.kind == "p" else cell[-n:]
    elif command.kind in "hc" and inside:
        result = shape(cell) if command.kind == "h" else collapse(shape(cell))
    else:
        result = cell
    return lower(result) if command.lower else result


def expand(template, sequence, *, bigrams=False):
    """Return the names of the features of each token, in the order of the template's lines.

    Those of U and * lines; with `bigrams`, those of B and * lines that have commands.
    """
    lines = [
        line
        for line in template.lines
        if (line.bigram and line.commands if bigrams else line.unigram)
    ]
    return [
        [name for line in lines for name in line_names(line, sequence, t)]
        for t in range(len(sequence))
    ]


def line_names(line, sequence, t):
    """Return the name that a line gives at a token, in a list that is empty if it gives none."""
    try:
        return ["".join(p if isinstance(p, str) else value(p, sequence, t) for p in line.pieces)]
    except NoFeatureError:
        return []
