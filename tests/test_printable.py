"""Foreign text in messages: what is escaped, what stays, and how long it may be."""

from __future__ import annotations

import unicodedata

import pytest

from maxmargin.errors import FileFormatError, ModelFormatError
from maxmargin.printable import LINE, one_line, printable, quoted, shortened

UNSAFE = "\x1b\x07\x00\x7f\x85\x9b\n\r\t\u200e\u202a\u202e\u2066\u2069\u2028\u2029\ufeff\udcff"


@pytest.mark.parametrize("character", UNSAFE)
def test_what_is_unsafe_is_escaped(character):
    for safe in (printable(f"a{character}b"), quoted(f"a{character}b"), str(
        FileFormatError(f"a{character}b")
    )):
        assert safe.isprintable()
        assert character.encode("unicode_escape").decode() in safe
    assert one_line(f"a{character}b").isprintable()


def test_no_control_and_no_format_character_is_left():
    text = "".join(map(chr, [*range(0x3000), *range(0xD7F0, 0x11000), *range(0xE0000, 0xE0200)]))
    left = {unicodedata.category(c) for c in printable(text)}
    assert not left & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@pytest.mark.parametrize("text", ["Łódź", "e\u0301", "हिन्दी", "日本語", "שלום", "a b", "\\n", "😀"])
def test_letters_stay(text):
    assert printable(text) == text
    assert one_line(text) == text
    assert quoted(text) == repr(text)


def test_long_texts_keep_their_ends():
    text = "begin" + "x" * 10_000_000 + "end"
    for short, limit in [
        (shortened(text, 100), 100), (printable(text, 100), 100), (one_line(text), LINE),
        (str(FileFormatError(text)), LINE), (str(ModelFormatError(text)), LINE),
    ]:
        assert len(short) == limit
        assert short.startswith("begin")
        assert short.endswith("end")
        assert " ... " in short
    assert len(quoted(text)) <= 80
    assert quoted(text).startswith("'begin")
    assert quoted(text).endswith("end'")
    assert len(quoted(text.encode())) <= 80
    assert quoted(text.encode()).startswith("b'begin")


def test_escapes_count_as_what_they_are_printed_as():
    for text in ("\x1b" * 1000, "\U000e0001" * 499):
        assert len(one_line(text)) <= LINE
        assert len(quoted(text)) <= 80
        assert len(printable(text, 50)) <= 50


def test_short_texts_stay():
    assert shortened("abcdefg", 7) == "abcdefg"
    assert len(shortened("abcdefgh", 7)) == 7
    assert one_line(" two\n  lines ") == "two lines"
    assert quoted(17) == "17"
    assert quoted([1, "a"]) == "[1, 'a']"


def test_errors_can_be_pickled():
    import pickle

    error = pickle.loads(pickle.dumps(FileFormatError("x" * 1000)))
    assert isinstance(error, FileFormatError)
    assert len(str(error)) == LINE
