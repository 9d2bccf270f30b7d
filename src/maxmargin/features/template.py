"""Templates: which features a token of a column file gets.

A template is a text in the syntax of CRF++ and Wapiti, with a few commands of our own; see
``docs/templates.md``. Here it is read and checked; native code expands it, from `Template.program`.

This module is imported by the command-line tagger before anything else happens. It imports nothing
that takes time; what is rarely needed is imported where it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from maxmargin.printable import quoted

if TYPE_CHECKING:
    import os

__all__ = ["Command", "Template", "TemplateLine", "pattern_fault", "shorten"]

#: Largest offset, column or length, either way: all arithmetic on them then fits 64 bits by far.
MAX_NUMBER = 999_999_999

#: Largest template: lines, commands in a line, characters of a pattern. Real ones are far below.
MAX_LINES = 20_000
MAX_COMMANDS = 1_000
MAX_PATTERN = 1_000

#: Kind of a literal in a program. No command has it ("s" is the suffix command).
LITERAL = "="

_MODES = ("relative", "absolute", "indirect")
_COMMANDS = "%x, %t, %m, %p, %s, %h or %c"
_DIGITS = "0123456789"  # str.isdigit knows more digits than a template may have
_BLANKS = " \t\r"
_SHOWN = 40  # characters of a faulty line that a message repeats


class Command(NamedTuple):
    """A command of a template line, such as ``%x[-1,0]``."""

    #: "x" cell, "t" test, "m" match, "p" prefix, "s" suffix, "h" shape or "c" collapsed shape.
    kind: str
    #: What `mode` makes of it: tokens from here, a position, or the column that holds the offset.
    offset: int
    #: "relative", "absolute" or "indirect".
    mode: str
    column: int
    #: The pattern of "t" and "m", the length of "p" and "s".
    argument: str | int | None
    #: Whether the result is lower-cased.
    lower: bool


class TemplateLine(NamedTuple):
    """A line of a template that is neither blank nor a comment."""

    text: str
    #: Number of the line in the template, from 1.
    line: int
    pieces: tuple[str | Command, ...]
    #: Whether the line gives features of a token and its label.
    unigram: bool
    #: Whether the line is about pairs of labels.
    bigram: bool

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands among the pieces."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Command))


class Template:
    """Which features a token of a column file gets. Make one with `parse` or `load`.

    Templates do not change. Two of them are equal if their lines have the same texts; comments and
    blank lines do not count.

    Attributes
    ----------
    text : str
        The template as it was written.
    source : str
        Where it came from, for messages.
    lines : tuple of TemplateLine
        Its lines in order, without comments, blank lines and repetitions.
    """

    __slots__ = ("lines", "source", "text")

    text: str
    source: str
    lines: tuple[TemplateLine, ...]

    def __init__(self, text: str, source: str, lines: tuple[TemplateLine, ...]) -> None:
        for name, value in (("text", text), ("source", source), ("lines", lines)):
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str, source: str = "template") -> Template:
        """Read a template from a text.

        Parameters
        ----------
        text : str
            The lines of the template.
        source : str
            What messages call it, for example the name of its file.

        Returns
        -------
        Template
            The template.

        Raises
        ------
        ValueError
            If the text is not a template; the message names the line, what was found in it, and
            what was expected.
        """
        if not isinstance(text, str):
            raise TypeError(f"{source}: found {type(text).__name__}; expected a str")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            number = text.count("\n", 0, error.start) + 1
            raise ValueError(
                f"{source}, line {number}: found {text[error.start]!r}, half of a surrogate pair; "
                "expected text that UTF-8 can hold"
            ) from None
        lines: dict[str, TemplateLine] = {}  # a feature is there or not: repetitions add nothing
        # Not splitlines(), which also breaks lines at characters that a pattern may hold.
        for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
            stripped = raw.strip(_BLANKS)
            if stripped and not stripped.startswith("#") and stripped not in lines:
                if len(lines) == MAX_LINES:
                    raise ValueError(
                        f"{source}, line {number}: found more than {MAX_LINES} different lines; "
                        f"expected at most {MAX_LINES}"
                    )
                lines[stripped] = _Reader(raw, source, number).read()
        kept = tuple(lines.values())
        if not any(line.unigram for line in kept):
            raise ValueError(
                f"{source}: found no line that gives features; expected at least one U line, such "
                "as U00:%x[0,0]"
            )
        return cls(text, source, kept)

    @classmethod
    def load(cls, spec: Template | str | os.PathLike[str]) -> Template:
        """Get a template as people name it.

        Parameters
        ----------
        spec : Template, str or path
            A template, which is returned as it is; the name of a built-in one ("words", "pos",
            "chunking", "ner", or an older version of it, such as "ner@1"); or a file in UTF-8. A
            file that is called like a built-in template can be given as ``"./words"``.

        Returns
        -------
        Template
            The template.

        Raises
        ------
        ValueError
            If there is no such template, or the file is not a template.
        """
        from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES

        if isinstance(spec, Template):
            return spec
        if isinstance(spec, str) and spec in BUILTIN_TEMPLATES:
            return cls.parse(BUILTIN_TEMPLATES[spec], f"template '{spec}'")
        if not isinstance(spec, str) and not hasattr(spec, "__fspath__"):
            raise TypeError(
                f"template: found {type(spec).__name__}; expected a Template, the name of a "
                "built-in one, or the path of a file"
            )
        return cls.parse(_read_file(spec, tuple(BUILTIN_TEMPLATES)), str(spec))

    @property
    def builtin(self) -> str | None:
        """Which version of which built-in template it is, such as ``ner@1``; None if none."""
        from maxmargin.features.builtin_templates import name_of_builtin

        return name_of_builtin(self.text)

    @property
    def n_columns_needed(self) -> int:
        """How many columns a file must have at least, not counting labels behind them."""
        commands = [command for line in self.lines for command in line.commands]
        indirect = [command.offset for command in commands if command.mode == "indirect"]
        return 1 + max([command.column for command in commands] + indirect, default=-1)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that are the same for equal templates, on any machine."""
        import hashlib

        return hashlib.blake2b("\n".join(self._key()).encode(), digest_size=8).hexdigest()

    def program(
        self, *, bigrams: bool = False
    ) -> list[list[tuple[str, int, int, int, str, bool]]]:
        """Return the lines that give features, as native code takes them.

        Parameters
        ----------
        bigrams : bool
            Whether to return the lines whose features are of two neighbouring labels (B and *
            lines with commands), and not those of one label (U and * lines).

        Returns
        -------
        list of list of tuple
            A list of pieces for each line. A piece is (kind, mode, offset, column,
            argument, lower): mode is 0 relative, 1 absolute, 2 indirect; the argument is always a
            text, a length is written in decimal. A literal is ``("=", 0, 0, 0, text, False)``.
        """
        chosen = (
            line
            for line in self.lines
            if (line.bigram and line.commands if bigrams else line.unigram)
        )
        return [[_instruction(p) for p in line.pieces] for line in chosen]

    def _key(self) -> tuple[str, ...]:
        return tuple(line.text for line in self.lines)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Template) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"<Template {self.source!r}: {len(self.program())} lines of features>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Template does not change; found an assignment to {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Template does not change; found a deletion of {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Template.parse, (self.text, self.source)


def pattern_fault(pattern: str) -> tuple[int, str] | None:
    r"""Find what is wrong with a pattern of ``%t`` or ``%m``: small regular expressions of Wapiti.

    An item is a character, ``.`` for any, or a class: ``\a`` letter, ``\d`` digit, ``\l`` lower
    case, ``\p`` punctuation, ``\s`` space, ``\u`` upper case, ``\w`` letter or digit; in upper case
    the complement. A backslash makes any other character stand for itself. ``*`` behind an item
    repeats it, ``?`` makes it optional; ``^`` at the beginning and ``$`` at the end are anchors.

    Parameters
    ----------
    pattern : str
        The pattern.

    Returns
    -------
    tuple of int and str, or None
        Where it is wrong and what was expected there; None if it is right.
    """
    at = 1 if pattern.startswith("^") else 0
    while at < len(pattern):
        if pattern[at] in "*?":
            return at, f"an item before it, or \\{pattern[at]} for the character itself"
        if pattern[at] == "\\" and at + 1 == len(pattern):
            return at, "a character after the backslash"
        at += 2 if pattern[at] == "\\" else 1
        at += pattern[at : at + 1] in ("*", "?")
    return None


class _Reader:
    """Reads one line of a template; every fault is an exception that says where it is."""

    def __init__(self, raw: str, source: str, number: int) -> None:
        self._raw = raw
        self._source = source
        self._number = number
        self._end = len(raw.rstrip(_BLANKS))
        self._begin = len(raw) - len(raw.lstrip(_BLANKS))
        self._at = self._begin

    def read(self) -> TemplateLine:
        """Read the line."""
        if self._peek() not in "UuBb*":
            self._fail("a line that begins with U, B or *, or with # if it is a comment")
        letter = self._peek()
        pieces: list[str | Command] = []
        n_commands = 0
        while self._at < self._end:
            if self._peek() == "%":
                n_commands += 1
                if n_commands > MAX_COMMANDS:
                    self._fail(f"at most {MAX_COMMANDS} commands in a line")
                pieces.append(self._command())
            else:
                stop = self._raw.find("%", self._at, self._end)
                stop = self._end if stop < 0 else stop
                pieces.append(self._raw[self._at : stop])
                self._at = stop
        text = self._raw[self._begin : self._end]
        return TemplateLine(
            text, self._number, tuple(pieces), unigram=letter in "Uu*", bigram=letter in "Bb*"
        )

    def _command(self) -> Command:
        self._at += 1  # the %
        letter = self._peek()
        kind = letter.lower()
        if not kind or kind not in "xtmpshc":
            self._fail(f"one of the commands {_COMMANDS}", self._at - 1)
        if letter in "HC":
            self._fail(f"%{kind}: there is no lower-cased form of a shape", self._at - 1)
        self._at += 1
        self._expect("[")
        mode, offset = self._offset()
        self._expect(",")
        column = self._count("a column, counted from 0", 0)
        argument: str | int | None = None
        if kind in "tm":
            self._expect(",")
            argument = self._pattern()
        elif kind in "ps":
            self._expect(",")
            argument = self._count("a number of characters, at least 1", 1)
        self._expect("]")
        return Command(kind, offset, mode, column, argument, letter != kind)

    def _offset(self) -> tuple[str, int]:
        self._skip_blanks()
        sign = self._peek()
        if sign == "*":
            self._at += 1
            return "indirect", self._count("the column that holds the offset, counted from 0", 0)
        if sign == "@":
            self._at += 1
            return "absolute", self._integer("a position, such as @1 or @-1")
        return "relative", self._integer("an offset, such as -1, 0 or +1")

    def _pattern(self) -> str:
        self._expect('"')
        start = self._at
        while self._at < self._end and self._peek() != '"':
            # What a backslash protects does not end the pattern; both stay in it.
            self._at += 2 if self._peek() == "\\" else 1
        if self._at >= self._end:
            self._fail('a closing " behind it', start - 1)
        if self._at - start > MAX_PATTERN:
            self._fail(f"a pattern of at most {MAX_PATTERN} characters", start - 1)
        pattern = self._raw[start : self._at]
        fault = pattern_fault(pattern)
        if fault is not None:
            self._fail(fault[1], start + fault[0])
        self._at += 1
        return pattern

    def _count(self, expected: str, least: int) -> int:
        self._skip_blanks()
        start = self._at
        value = self._integer(expected)
        if value < least:
            self._fail(expected, start)
        return value

    def _integer(self, expected: str) -> int:
        self._skip_blanks()
        start = self._at
        if self._peek() in ("+", "-"):
            self._at += 1
        first = self._at
        while self._at < self._end and self._raw[self._at] in _DIGITS:
            self._at += 1
        if first == self._at:
            self._fail(expected, start)
        digits = self._raw[first : self._at].lstrip("0") or "0"
        if len(digits) > len(str(MAX_NUMBER)):
            self._fail(f"a number of at most {MAX_NUMBER}", start)
        return -int(digits) if self._raw[start] == "-" else int(digits)

    def _expect(self, character: str) -> None:
        self._skip_blanks()
        if self._peek() != character:
            self._fail(character)
        self._at += 1

    def _skip_blanks(self) -> None:
        while self._peek() in (" ", "\t"):
            self._at += 1

    def _peek(self) -> str:
        """Return the character that is next, or "" at the end."""
        return self._raw[self._at] if self._at < self._end else ""

    def _fail(self, expected: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        found = repr(shorten(self._raw[at : self._end])) if at < self._end else "the end"
        line = repr(shorten(self._raw[self._begin : self._end]))
        raise ValueError(
            f"{self._source}, line {self._number}: found {found} at character {at + 1} of {line}; "
            f"expected {expected}"
        )


def shorten(text: str) -> str:
    """Return a text as messages show it: not more of it than fits a line."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _instruction(piece: str | Command) -> tuple[str, int, int, int, str, bool]:
    if isinstance(piece, str):
        return (LITERAL, 0, 0, 0, piece, False)
    argument = "" if piece.argument is None else str(piece.argument)
    mode = _MODES.index(piece.mode)
    return (piece.kind, mode, piece.offset, piece.column, argument, piece.lower)


def _read_file(spec: str | os.PathLike[str], names: tuple[str, ...]) -> str:
    from pathlib import Path

    if isinstance(spec, str) and "\n" in spec:
        raise ValueError(
            f"template: found a text of several lines, {shorten(spec)!r}; expected a name or the "
            "path of a file (Template.parse takes the text of a template)"
        )
    try:
        return Path(spec).read_bytes().decode()
    except FileNotFoundError:
        import difflib

        close = difflib.get_close_matches(str(spec), names, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ValueError(
            f"template: no built-in called '{spec}' and no file of that name{hint}; built-in are: "
            f"{', '.join(name for name in names if '@' not in name)}"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise ValueError(
            f"{spec}, line {line}: found the byte 0x{byte:02x}; expected a text in UTF-8"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: NUL in a name
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"template: file {quoted(str(spec), 200)} cannot be read: {reason}"
        ) from error
