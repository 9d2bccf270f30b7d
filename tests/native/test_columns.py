"""Column files in memory: parsing against a slow splitter, one column more, errors."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kit import BoomError, NoRepr
from maxmargin._native import Columns

BOM = "\ufeff"

# --- a slow splitter ------------------------------------------------------------------------------


class RaggedError(Exception):
    pass


def lines_of(text):
    """The lines with their ends: (line, carriage return)."""
    lines = text.removeprefix(BOM).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [(line.removesuffix("\r"), "\r" if line.endswith("\r") else "") for line in lines]


def is_token(line, comment):
    return bool(line.strip(" \t\r\v\f")) and not (comment and line.startswith(comment))


def split(text, separator="auto", comment=""):
    """Sequences of (line number, cells), and the separator that was used."""
    sequences, sequence, n_columns, first = [], [], None, None
    for number, (line, _) in enumerate(lines_of(text), 1):
        if not line.strip(" \t\r\v\f"):
            sequences.append(sequence)
            sequence = []
            continue
        if not is_token(line, comment):
            continue
        if separator == "auto":
            separator = "tab" if "\t" in line else "space"
        cells = line.split("\t") if separator == "tab" else re.findall("[^ \t]+", line)
        if n_columns is None:
            n_columns, first = len(cells), number
        if len(cells) != n_columns:
            raise RaggedError(number, len(cells), n_columns, first, separator)
        sequence.append((number, cells))
    return [s for s in [*sequences, sequence] if s], separator


def assert_is(table, sequences, first_line=1):
    tokens = [token for sequence in sequences for token in sequence]
    ends = [0]
    for sequence in sequences:
        ends.append(ends[-1] + len(sequence))
    assert table.offsets.tolist() == ends
    assert table.offsets.dtype == np.int64
    assert (table.n_tokens, table.n_sequences) == (len(tokens), len(sequences))
    if not tokens:
        return
    n = len(tokens[0][1])
    assert table.n_columns == n
    every = list(range(n))
    for i, sequence in enumerate(sequences):
        assert table.rows(i, every) == [cells for _, cells in sequence]
        assert table.rows(i, every[::-1]) == [cells[::-1] for _, cells in sequence]
        assert table.rows(i, []) == [[] for _ in sequence]
    for t, (number, cells) in enumerate(tokens):
        assert [table.cell(t, k) for k in every] == cells
        assert table.line_of(t) == number + first_line - 1
    for k in every:
        codes, names = table.codes(k)
        column = [cells[k] for _, cells in tokens]
        assert codes.dtype == np.int32
        assert names == list(dict.fromkeys(column))
        assert [names[c] for c in codes] == column


def check(text, separator="auto", comment=""):
    """Parse a text and compare; None if both refuse it."""
    data = text.encode()
    try:
        sequences, used = split(text, separator, comment)
    except RaggedError as error:
        number, found, wanted, first, used = error.args
        columns = "1 column" if found == 1 else f"{found} columns"
        message = (
            f"line {number}: found {columns} (separated by {used}s); "
            f"expected {wanted}, as in line {first}"
        )
        with pytest.raises(ValueError) as caught:
            Columns.parse(data, separator, comment)
        assert str(caught.value) == message
        return None
    table = Columns.parse(data, separator, comment)
    assert_is(table, sequences)
    assert table.separator == used
    assert table.n_lines == len(lines_of(text))
    return table


SEPARATORS = st.sampled_from(["auto", "tab", "space"])
COMMENTS = st.sampled_from(["", "#", "# ", "é"])
WILD = st.text(st.sampled_from("abé#  \t\t\r\n\n\v\f\0\ufeff\u2028\x85😀"), max_size=40)
CELL = st.text(st.sampled_from("abé#.,\0😀\u2028\xa0"), min_size=1, max_size=3)
BLANK = st.sampled_from(["", " ", "\t", " \t ", "\v", "\f\r"])


@st.composite
def texts(draw):
    """Texts of which most can be parsed."""
    n = draw(st.integers(1, 3))
    gap = draw(st.sampled_from(["\t", " ", "  ", " \t"]))
    cells = CELL | st.just("") if gap == "\t" and n > 1 else CELL
    row = st.lists(cells, min_size=n, max_size=n).map(gap.join)
    comment = CELL.map("# {}".format)
    ending = st.sampled_from(draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]])))
    line = st.tuples(st.one_of(row, row, row, BLANK, comment), ending).map("".join)
    text = "".join(draw(st.lists(line, max_size=8)))
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return draw(st.sampled_from(["", BOM])) + text


@given(texts(), SEPARATORS, COMMENTS)
@example("", "auto", "")
@example(BOM, "auto", "")
@example("\n\n", "auto", "")
@example("a b\r\n\r\nc d", "auto", "")
@example(BOM + "# x\na\tb\n", "auto", "#")
@example("a b\tc\n", "space", "")
@example("\ta\n", "auto", "")
def test_against_a_slow_splitter(text, separator, comment):
    check(text, separator, comment)


@given(WILD, SEPARATORS, COMMENTS)
def test_wild_texts_against_a_slow_splitter(text, separator, comment):
    check(text, separator, comment)


@given(st.binary(max_size=20), SEPARATORS)
def test_any_bytes_are_read_or_refused(data, separator):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        with pytest.raises(ValueError, match=r"line \d+: byte \d+ is 0x.., which is not UTF-8"):
            Columns.parse(data, separator)
    else:
        check(text, separator)


# --- what parsing means ---------------------------------------------------------------------------


def test_tokens_lines_and_sequences():
    table = check("# head\nthe\tDT\ndog\tNN\n\n\n# x\nit\tPRP", comment="#")
    assert table.offsets.tolist() == [0, 2, 3]
    assert [table.line_of(t) for t in range(3)] == [2, 3, 7]
    assert table.n_lines == 7
    assert table.memory_bytes >= 6 * 8 + 3 * 8


@pytest.mark.parametrize(
    ("text", "separator", "used", "cells"),
    [
        ("a b\tc", "auto", "tab", ["a b", "c"]),
        ("a  b c", "auto", "space", ["a", "b", "c"]),
        ("a b\tc", "space", "space", ["a", "b", "c"]),
        ("a b c", "tab", "tab", ["a b c"]),
        ("a\t\tb\t", "auto", "tab", ["a", "", "b", ""]),
        (" a  b ", "space", "space", ["a", "b"]),
        ("a\xa0b\u3000c", "auto", "space", ["a\xa0b\u3000c"]),
        ("a", "auto", "space", ["a"]),
    ],
)
def test_separators(text, separator, used, cells):
    table = check(text, separator)
    assert table.separator == used
    assert table.rows(0, list(range(len(cells)))) == [cells]


def test_the_first_token_chooses_the_separator():
    assert Columns.parse(b"\t\n# a\tb\nc d\n", comment="#").separator == "space"
    assert Columns.parse(b" \n").separator == "auto"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends(end):
    table = check(end.join(["a b", "", "c d", ""]))
    assert table.rows(1, [0, 1]) == [["c", "d"]]
    # Only the last carriage return belongs to the end of a line.
    assert check("a\r\r\n").cell(0, 0) == "a\r"


def test_numbers_of_lines_and_columns_that_are_given():
    table = Columns.parse(b"a b\n\nc d\n", n_columns=2, first_line=100)
    assert_is(table, split("a b\n\nc d\n")[0], first_line=100)
    with pytest.raises(ValueError, match=r"^line 100: found 2 columns .*; expected 3$"):
        Columns.parse(b"a b\n", n_columns=3, first_line=100)
    with pytest.raises(ValueError, match=r"^line 101: .*; expected 1, as in line 100$"):
        Columns.parse(b"a\na b\n", first_line=100)
    with pytest.raises(ValueError, match=r"^line 101: byte 1 is 0xff"):
        Columns.parse(b"a\n\xff", first_line=100)
    with pytest.raises(ValueError, match=r"expected 9223372036854775808"):
        Columns.parse(b"a b\n", n_columns=2**63)
    assert Columns.parse(b"\n", n_columns=2**63).n_tokens == 0


def test_the_text_lives_as_long_as_the_table():
    table = Columns.parse(b"".join(b"word%d tag\n" % i for i in range(50_000)))
    gc.collect()
    assert bytes(10_000_000).count(1) == 0  # reuses what was let go
    assert table.cell(49_999, 0) == "word49999"


def test_a_text_that_changes_its_size():
    held = bytearray(b"a b\n" * 1000)
    table = Columns.parse(held)
    try:
        held.clear()
    except BufferError:  # it is held
        return
    held.extend(b"x" * 10)
    assert table.cell(0, 0) == "a"  # it was copied


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\n\xff\n", "line 2: byte 1 is 0xff"),
        (b"a b\nc\xc3\n", "line 2: byte 2 is 0xc3"),
        ("ä\nöü".encode() + b"\xe9", "line 2: byte 5 is 0xe9"),
        ("😀".encode() + b"\x80", "line 1: byte 5 is 0x80"),
        ("😀".encode()[:3] + b"\n", "line 1: byte 1 is 0xf0"),
        (b"ok\n\xed\xa0\x80", "line 2: byte 1 is 0xed"),
        (b"ok\n# \xc0\x80", "line 2: byte 3 is 0xc0"),
        (b"a b\nragged\nx\xff", "line 3: byte 2 is 0xff"),
        (b"a\xe2\x82\nb", "line 1: byte 2 is 0xe2"),
        (b"\n" * 5000 + b"\xf5", "line 5001: byte 1 is 0xf5"),
    ],
)
def test_not_utf8(data, message):
    with pytest.raises(ValueError) as caught:
        Columns.parse(data, comment="#")
    assert str(caught.value) == (
        f"{message}, which is not UTF-8 there; expected UTF-8 text, or the name of its encoding, "
        "such as latin-1 (--encoding; in Python, encoding=)"
    )


def test_a_bad_byte_at_the_end_of_a_long_line_is_found_in_time():
    n = 8_000_000  # if the line were read again for each byte of it, this would take hours
    with pytest.raises(ValueError, match=rf"byte {n + 1} is 0xff"):
        Columns.parse(b"a" * n + b"\xff")


def test_cells_of_sixteen_megabytes():
    most = 2**24 - 1
    assert len(Columns.parse(b"a" * most).cell(0, 0)) == most
    with pytest.raises(ValueError, match=r"^line 2: a cell has more than 16 million bytes"):
        Columns.parse(b"a\n" + b"a" * (most + 1))
    with pytest.raises(ValueError, match=r"a cell has more than 16 million bytes"):
        Columns.from_rows([["a" * (most + 1)]])


# --- arguments out of range -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.cell(2, 0),
        lambda t: t.cell(-1, 0),
        lambda t: t.cell(0, 2),
        lambda t: t.cell(0, -1),
        lambda t: t.cell(2**62, 2**62),
        lambda t: t.line_of(2),
        lambda t: t.line_of(-1),
        lambda t: t.codes(2),
        lambda t: t.codes(2**63),
        lambda t: t.rows(1, [0]),
        lambda t: t.rows(0, [2]),
        lambda t: t.rows(0, [0, 2**64 - 1]),
        lambda t: t.with_column(np.zeros(1, np.int32), ["N"]),
        lambda t: t.with_column(np.zeros(3, np.int32), ["N"]),
        lambda t: t.with_column(np.array([0, 1], np.int32), ["N"]),
        lambda t: t.with_column(np.array([0, -1], np.int32), ["N"]),
        lambda t: t.with_column(np.zeros(2, np.int32), []),
    ],
)
def test_out_of_range(call):
    with pytest.raises(ValueError):
        call(Columns.parse(b"a b\nc d\n"))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.cell(2**64, 0),
        lambda t: t.cell("0", 0),
        lambda t: t.codes(-1),
        lambda t: t.rows(-1, [0]),
        lambda t: t.rows(0, [-1]),
        lambda t: t.rows(0, None),
        lambda t: t.with_column([0, 0], ["N"]),
        lambda t: t.with_column(np.zeros((1, 2), np.int32), ["N"]),
        lambda t: t.with_column(np.zeros(2, np.int32), [1]),
        lambda t: t.with_column(np.zeros(2, np.int32), None),
        lambda t: Columns.parse(None),
        lambda t: Columns.parse("a b"),
        lambda t: Columns.parse(np.zeros((2, 2), np.uint8)),
        lambda t: Columns.parse(b"a", n_columns=-1),
        lambda t: Columns.parse(b"a", comment=None),
    ],
)
def test_other_types(call):
    with pytest.raises(TypeError):
        call(Columns.parse(b"a b\nc d\n"))


def test_an_empty_table():
    table = Columns.parse(b"\n \n")
    assert (table.n_tokens, table.n_sequences, table.n_columns, table.n_lines) == (0, 0, 0, 2)
    assert table.offsets.tolist() == [0]
    for call in (lambda: table.cell(0, 0), lambda: table.codes(0), lambda: table.rows(0, [])):
        with pytest.raises(ValueError, match=r"there is no"):
            call()
    assert table.with_column(np.zeros(0, np.int32), []) == b"\n \n"


def test_unknown_separator():
    with pytest.raises(ValueError, match=r"separator is ';'; expected auto, tab or space"):
        Columns.parse(b"a", ";")


# --- one column more ------------------------------------------------------------------------------


def with_labels(text, separator, comment, labels):
    """What with_column should write."""
    gap = " " if separator == "space" else "\t"
    labels = iter(labels)
    mark = BOM if text.startswith(BOM) else ""
    written = [
        line + (gap + next(labels) if is_token(line, comment) else "") + cr + "\n"
        for line, cr in lines_of(text)
    ]
    return mark + "".join(written)


@given(texts() | WILD, SEPARATORS, COMMENTS, st.data())
def test_one_column_more(text, separator, comment, data):
    table = check(text, separator, comment)
    if table is None or text in ("", BOM):
        return
    names = ["N", "é-1", "#"]
    n = table.n_tokens
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), np.int32)
    labels = [names[k] for k in codes]
    out = table.with_column(codes, names, comment)
    assert out.decode() == with_labels(text, table.separator, comment, labels)
    if comment.endswith(" "):  # "#" is a token and "# N" a comment
        return
    again = Columns.parse(out, table.separator, comment)
    assert again.n_lines == table.n_lines
    assert again.offsets.tolist() == table.offsets.tolist()
    if n > 0:
        m = table.n_columns
        assert again.n_columns == m + 1
        assert [again.cell(t, m) for t in range(n)] == labels
        for i in range(table.n_sequences):
            assert again.rows(i, list(range(m))) == table.rows(i, list(range(m)))
            assert [again.line_of(t) for t in range(n)] == [table.line_of(t) for t in range(n)]


def test_one_column_more_by_hand():
    text = BOM + "# c\r\na b\r\n \t\r\n\r\nc d"
    table = Columns.parse(text.encode(), comment="#")
    out = table.with_column(np.array([1, 0], np.int32), ["N", "ü"], "#").decode()
    assert out == BOM + "# c\r\na b ü\r\n \t\r\n\r\nc d N\n"
    table = Columns.parse(b"a\tb c\n")
    assert table.with_column(np.zeros(1, np.int32), ["N"]) == b"a\tb c\tN\n"


# --- tables made by hand --------------------------------------------------------------------------

ROW_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@given(st.data())
def test_from_rows(data):
    n = data.draw(st.integers(1, 3))
    row = st.lists(ROW_TEXT, min_size=n, max_size=n)
    row = row | row.map(tuple) | row.map(lambda r: np.array(r, object))
    X = data.draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=4))
    sequences = [[(0, list(r)) for r in sequence] for sequence in X]
    for table in (Columns.from_rows(X), Columns.from_rows(tuple(map(tuple, X)), n)):
        every = list(range(n))
        assert [table.rows(i, every) for i in range(len(X))] == [
            [cells for _, cells in s] for s in sequences
        ]
        assert table.offsets.tolist() == np.cumsum([0, *map(len, X)]).tolist()
        for k in every:
            codes, names = table.codes(k)
            assert [names[c] for c in codes] == [str(r[k]) for s in X for r in s]


def test_from_rows_of_one_column():
    table = Columns.from_rows([["a", ["b"], ("c",)], [b"d", np.str_("e")]])
    assert [table.rows(i, [0]) for i in range(2)] == [[["a"], ["b"], ["c"]], [["d"], ["e"]]]
    assert table.n_columns == 1
    # Words are whatever they are: blanks, comments, nothing at all.
    table = Columns.from_rows([["a b", "#", "", "\n"]])
    assert table.rows(0, [0]) == [["a b"], ["#"], [""], ["\n"]]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X is empty; expected at least one sequence"),
        ([["a"], []], "sequence 1 is empty; expected at least one token"),
        ([["a"], [["b", "c"]]], "sequence 1, token 0: found 2 columns; expected 1"),
        ([[["a", "b"], ["c"]]], "sequence 0, token 1: found 1 columns; expected 2"),
        ([[["a", "b"], "cd"]], "sequence 0, token 1: found 1 columns; expected 2"),
        ([[[]]], "sequence 0, token 0: found 0 columns; expected at least one"),
        ([["a", []]], "sequence 0, token 1: found 0 columns; expected 1"),
        ([["a", "\ud800"]], r"sequence 0, token 1: the string '\\ud800' holds a lone surrogate"),
        ([[["a", "\udfff"]]], r"sequence 0, token 0: the string '\\udfff' holds a lone"),
        ([["a", b"\xff"]], r"sequence 0, token 1: b'\\xff' is not UTF-8"),
    ],
)
def test_bad_rows(X, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Columns.from_rows(X)


def test_the_number_of_columns_can_be_demanded():
    assert Columns.from_rows([[["a", "b"]]], 2).n_columns == 2
    with pytest.raises(
        ValueError, match=r"^sequence 0, token 0: found 2 columns; expected 3$"
    ):
        Columns.from_rows([[["a", "b"]]], 3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (3, "X is an int; expected a list of sequences"),
        ("ab", "X is a str; expected"),
        ({"a": 1}, "X is a dict; expected"),
        ({"a"}, "X is a set; expected"),
        (iter([["a"]]), "X is a list_iterator; expected"),
        (["ab"], "sequence 0 is a str; expected"),
        ([["a"], None], "sequence 1 is None; expected"),
        ([["a"], {"a": 1}], "sequence 1 is a dict; expected"),
        ([["a", None]], "sequence 0, token 1: found None; expected"),
        ([["a", 3]], "sequence 0, token 1: found an int; expected"),
        ([["a", {"b"}]], "sequence 0, token 1: found a set; expected"),
        ([[["a", 3]]], "sequence 0, token 0: column 1 is an int, 3; expected a str"),
        ([[["a", None]]], "sequence 0, token 0: column 1 is None, None; expected a str"),
        ([[["a", ["b"]]]], r"sequence 0, token 0: column 1 is a list, \['b'\]; expected a str"),
    ],
)
def test_rows_of_other_types(X, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        Columns.from_rows(X)


def test_none_as_rows():
    with pytest.raises(TypeError):
        Columns.from_rows(None)


# --- objects that misbehave -----------------------------------------------------------------------


class Hostile:
    """A collection that does something when it is asked how long it is, or for its items."""

    def __init__(self, items, on_len=None, on_iter=None):
        self.items, self.on_len, self.on_iter = items, on_len, on_iter

    def __len__(self):
        if self.on_len:
            self.on_len()
        return len(self.items)

    def __iter__(self):
        for item in self.items:
            yield item
            if self.on_iter:
                self.on_iter()


def boom():
    raise BoomError


def test_what_hostile_objects_raise_is_passed_on():
    for bad in ({"on_len": boom}, {"on_iter": boom}):
        for X in (
            Hostile([["a"]], **bad),
            [Hostile(["a"], **bad)],
            [["a", Hostile(["a"], **bad)]],
        ):
            with pytest.raises(BoomError):
                Columns.from_rows(X)


def test_lists_that_change_while_they_are_read():
    X: list = []
    X += [[Hostile(["a"], on_len=X.clear)], ["b"]]
    assert Columns.from_rows(X).n_sequences == 1
    sequence: list = []
    sequence += [Hostile(["a"], on_iter=sequence.clear), "b"]
    assert Columns.from_rows([sequence]).n_tokens == 1
    sequence = ["a"]
    sequence.append(Hostile(["b"], on_iter=lambda: sequence.append("c")))
    table = Columns.from_rows([sequence])
    assert table.rows(0, [0]) == [["a"], ["b"], ["c"]]


def test_a_cell_without_a_repr():
    with pytest.raises(TypeError, match=r"column 1 is a NoRepr, <NoRepr>; expected a str"):
        Columns.from_rows([[["a", NoRepr(BoomError())]]])
    with pytest.raises(KeyboardInterrupt):
        Columns.from_rows([[["a", NoRepr(KeyboardInterrupt())]]])


@pytest.mark.parametrize(
    ("bases", "made"), [("object", "Evil()"), ("str", r"Evil('\ud800')")], ids=["type", "surrogate"]
)
def test_a_cell_that_drops_itself_while_it_is_shown(bases, made):
    program = f"""
        from maxmargin._native import Columns

        class Evil({bases}):
            def __repr__(self):
                row.clear()
                raise RuntimeError

        row = ["a"]
        row.append({made})
        try:
            Columns.from_rows([[row]])
        except (TypeError, ValueError) as error:
            assert "sequence 0, token 0" in str(error)
            print("refused")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONMALLOC": "debug"},  # freed memory is written over
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(max_size=3), st.binary(max_size=2)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.text(max_size=2), inner, max_size=2),
        ),
        max_leaves=12,
    )
)
def test_any_object_is_read_or_refused(X):
    with contextlib.suppress(ValueError, TypeError):
        Columns.from_rows(X)


def test_rows_have_no_text_to_put_a_column_into():
    table = Columns.from_rows([["ab", "c"], ["d"]])
    with pytest.raises(ValueError, match=r"made of rows has no lines"):
        table.with_column(np.zeros(3, np.int32), ["N"])


@pytest.mark.parametrize("text", [b"", BOM.encode()])
def test_an_empty_text_with_one_column_more(text):
    assert Columns.parse(text).with_column(np.zeros(0, np.int32), []) in (text, text + b"\n")
