"""Labels put into a CoNLL-U text, of which everything else stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from maxmargin.io.conllu import COLUMNS, check_column

__all__ = ["conllu_sentences", "with_labels"]

_BOM = b"\xef\xbb\xbf"
_FEATS, _MISC = COLUMNS.index("feats"), COLUMNS.index("misc")


def with_labels(
    data: bytes, column: str, labels: Sequence[str], notes: Sequence[str] | None = None
) -> bytes:
    """Put labels into a column.

    Parameters
    ----------
    data : bytes
        The text; `maxmargin.io.conllu.conllu_to_columns` has read it without an error.
    column : str
        Where to; a single feature such as ``feats.Case`` takes its place among the others.
    labels : sequence of str
        One for each token. Comments, multiword tokens and empty nodes are none.
    notes : sequence of str, optional
        Name=Value pairs, one for each token, that are added to MISC.

    Returns
    -------
    bytes
        The text with the labels.
    """
    check_column(column)
    place = _FEATS if column.startswith("feats.") else COLUMNS.index(column)
    feature = column.removeprefix("feats.").encode() if column.startswith("feats.") else None
    mark = _BOM if data.startswith(_BOM) else b""
    lines = data[len(mark) :].split(b"\n")
    at = 0
    for k, line in enumerate(lines):
        cells = _token(line)
        if cells is None:
            continue
        label = labels[at].encode()
        end = b"\r" if cells[-1].endswith(b"\r") else b""
        cells[-1] = cells[-1].removesuffix(b"\r")
        cells[place] = label if feature is None else _with_feature(cells[place], feature, label)
        if notes is not None:
            cells[_MISC] = _with_note(cells[_MISC], notes[at].encode())
        lines[k] = b"\t".join(cells) + end
        at += 1
    assert at == len(labels), f"{at} tokens and {len(labels)} labels"
    return mark + b"\n".join(lines)


def conllu_sentences(data: bytes) -> Iterator[bytes]:
    """Give the sentences of a text, each with what stands before it and the blank lines behind it.

    Parameters
    ----------
    data : bytes
        The text.

    Yields
    ------
    bytes
        Each has a token; end to end they are the text.
    """
    piece: list[bytes] = []
    tokens = ended = False
    *whole, rest = data.removeprefix(_BOM).split(b"\n")
    for line in [*(line + b"\n" for line in whole), *([rest] if rest else [])]:
        blank = not line.strip()
        if ended and not blank:
            yield b"".join(piece)
            piece, tokens, ended = [], False, False
        tokens = tokens or _token(line.rstrip(b"\r\n")) is not None
        ended = tokens and blank
        piece.append(line)
    if tokens:
        yield b"".join(piece)


def _token(line: bytes) -> list[bytes] | None:
    """Return the cells of a line that is a token, None of any other line."""
    if line.startswith(b"#"):
        return None
    cells = line.split(b"\t")
    return cells if len(cells) == len(COLUMNS) and cells[0].isdigit() else None


def _with_feature(cell: bytes, name: bytes, value: bytes) -> bytes:
    """Return a FEATS cell with a value for a feature; ``_`` takes the feature away."""
    pairs = [] if cell == b"_" else cell.split(b"|")
    kept = [pair for pair in pairs if not pair.startswith(name + b"=")]
    if len(kept) < len(pairs) and value != b"_":  # in its place
        pairs = [
            name + b"=" + value if pair.startswith(name + b"=") else pair for pair in pairs
        ]
        return b"|".join(pairs)
    if value != b"_":  # CoNLL-U sorts features by their names, whatever the case
        kept = sorted([*kept, name + b"=" + value], key=lambda pair: pair.lower())
    return b"|".join(kept) or b"_"


def _with_note(cell: bytes, note: bytes) -> bytes:
    return note if cell == b"_" else cell + b"|" + note
