"""FASTA files: names and sequences.

A line ``>name description`` begins a sequence, which is all that follows up to the next such line;
blanks and ends of lines within it are left out. Lines that begin with ``;`` are comments, and blank
lines are skipped. A sequence may be of any alphabet and may hold gaps (``-``); its letters are kept
as they are, upper and lower case. It must not be empty, and the first word of a title, its name,
neither.
"""

from __future__ import annotations

from collections.abc import Iterable

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.lines import read_lines
from maxmargin.io.text import PathOrFile, open_for_writing
from maxmargin.printable import quoted

__all__ = ["read_fasta", "write_fasta"]

WIDTH = 60  # letters in a line that is written


def read_fasta(
    path: PathOrFile, *, whole_titles: bool = False, max_inflated: int | None = None
) -> list[tuple[str, str]]:
    """Read names and sequences.

    Parameters
    ----------
    path : path or binary file
        "-" is standard input; gzip is recognised. Lines may end with CR LF.
    whole_titles : bool, default=False
        Whether a name is the whole line after ``>``, and not only its first word.
    max_inflated : int or None
        How many bytes a gzip file may become. None: 100 times its own size, and at least 256 MB.

    Returns
    -------
    list of (name, sequence)
        In the order of the file.

    Raises
    ------
    FileFormatError
        If there are letters before the first title, a title without a name or without a sequence,
        or nothing at all. The message names file and line.
    OSError
        If the file cannot be read.
    """
    lines, source = read_lines(path, max_inflated=max_inflated)
    found: list[tuple[str, str]] = []
    name, at, parts = "", 0, list[str]()

    def finish() -> None:
        if at:
            sequence = "".join(parts)
            if not sequence:
                raise FileFormatError(
                    f"{source}: line {at}: found no sequence after the title {quoted(name)}; "
                    "expected letters"
                )
            found.append((name, sequence))

    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            finish()
            title = line[1:].strip()
            if not title:
                raise FileFormatError(
                    f"{source}: line {number}: found a title without a name; expected >name"
                )
            name, at, parts = title if whole_titles else title.split()[0], number, []
        elif not line.startswith(";"):
            letters = "".join(line.split())
            if letters and not at:
                raise FileFormatError(
                    f"{source}: line {number}: found {quoted(letters)} before the first title; "
                    "expected >name"
                )
            if ">" in letters:
                raise FileFormatError(
                    f"{source}: line {number}: found '>' within a sequence; expected it at the "
                    "beginning of a line"
                )
            parts.append(letters)
    finish()
    if not found:
        raise EmptyFileError(f"{source}: holds no sequences; expected >name and letters")
    return found


def write_fasta(
    out: PathOrFile, records: Iterable[tuple[str, str]], *, width: int = WIDTH
) -> None:
    """Write names and sequences.

    Parameters
    ----------
    out : path or binary file
        Where to; "-" is standard output, and a name that ends with ``.gz`` is compressed.
    records : iterable of (name, sequence)
        What is written.
    width : int, default=60
        Letters a line.

    Raises
    ------
    ValueError
        If a name is empty or not on one line, or if a sequence is empty or holds blanks, ``>`` or
        ``;``.
    """
    if width < 1:
        raise ValueError(f"width is {width}; expected at least 1")
    parts: list[str] = []
    for i, (name, sequence) in enumerate(records):
        if not name or name.strip() != name or "\n" in name:
            raise ValueError(
                f"sequence {i}: found the name {quoted(name)}; expected one that is not empty, on "
                "one line and without blanks around it"
            )
        if sequence.split() != [sequence] or ">" in sequence or ";" in sequence:
            raise ValueError(
                f"sequence {i}: found the sequence {quoted(sequence)}; expected one that is not "
                "empty, without blanks, '>' and ';'"
            )
        parts.append(f">{name}\n")
        parts += [f"{sequence[k : k + width]}\n" for k in range(0, len(sequence), width)]
    with open_for_writing(out) as file:
        file.write("".join(parts).encode("utf-8"))
