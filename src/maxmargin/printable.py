"""Foreign text in messages: what a file, a model or a name holds, made safe to print and short.

A text from outside may hold terminal escapes, characters that turn the direction of writing, or ten
megabytes in one field. Whoever quotes such a text calls `quoted`; whoever prints a line that may
hold one calls `one_line`. Letters of every script stay as they are, combining marks included.
"""

from __future__ import annotations

__all__ = ["LINE", "QUOTE", "one_line", "printable", "quoted", "shortened"]

LINE = 500  # characters of a message
QUOTE = 80  # characters of a quoted value
_CUT = " ... "


def shortened(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters: the middle of a longer one is left out.

    Parameters
    ----------
    text : str
        Any text.
    limit : int
        The most characters, at least 7.

    Returns
    -------
    str
        The text, or its beginning and its end with an ellipsis between them.
    """
    if len(text) <= limit:
        return text
    kept = limit - len(_CUT)
    behind = kept // 2
    return f"{text[: kept - behind]}{_CUT}{text[len(text) - behind :]}"


def printable(value: object, limit: int | None = None) -> str:
    r"""Return a text in which nothing moves the cursor, hides, or turns the direction of writing.

    Parameters
    ----------
    value : object
        A text, or what ``str`` makes one of.
    limit : int or None
        The most characters; the middle of a longer text is left out. None: no limit.

    Returns
    -------
    str
        The text; characters that are not printable (as ``str.isprintable`` has it: controls,
        formats, line separators, halves of surrogate pairs, blanks other than a space) are escaped
        as Python escapes them: ``\x1b``, ``\u202e``.
    """
    text = str(value)
    if limit is not None:  # before anything is done to megabytes
        text = shortened(text, 2 * limit)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else _escape(c) for c in text)
    return text if limit is None else shortened(text, limit)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def quoted(value: object, limit: int = QUOTE) -> str:
    r"""Return a value in quotes for a message: ``repr``, but safe and short.

    Parameters
    ----------
    value : object
        A text, bytes, or anything else that has a ``repr``.
    limit : int
        The most characters.

    Returns
    -------
    str
        On one line.
    """
    if isinstance(value, str | bytes | bytearray) and len(value) > limit:
        # Not all of it: the repr of megabytes would be made only to be cut.
        half = limit // 2
        begin, end = repr(value[:half]), repr(value[-half:])
        return printable(f"{begin[:-1]}{_CUT}{end.lstrip('b')[1:]}", limit)
    return printable(repr(value), limit)


def one_line(message: str, limit: int = LINE) -> str:
    """Return a message as one line that can be printed: safe, and of at most `limit` characters.

    Parameters
    ----------
    message : str
        Of several lines, perhaps; runs of white space become a space.
    limit : int
        The most characters.

    Returns
    -------
    str
        Without an end of line.
    """
    return printable(" ".join(shortened(message, 4 * limit).split()), limit)
