"""Functions of one word against Python's strings; regular expressions against a plain twin."""

from __future__ import annotations

import sys
import unicodedata
from itertools import groupby

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxmargin import _native

# The tables are fixed; Python's change with its version. Latin letters have long been settled.
SAME_UNICODE = unicodedata.unidata_version == _native.unicode_version
CODE_POINTS = range(sys.maxunicode + 1 if SAME_UNICODE else 0x250)

characters = st.characters(codec="utf-8", max_codepoint=max(CODE_POINTS))
# Plain words, awkward ones (final sigma, dotted I, letters that grow or shrink by lower-casing,
# marks, digits of other scripts, astral letters), and anything.
words = st.one_of(
    st.text("aZé9-'."),
    st.text("ΣσİıẞȺKǅ\u0301٣中ª\U00010400𝐀😀 \t\u00a0\x00"),
    st.text(characters),
)


def python_class(c):
    """Return the class of a character by the running Python's Unicode."""
    category = unicodedata.category(c)
    if category[0] == "Z" or c in " \t\n\v\f\r":
        return "space"
    if category[0] in "PS":
        return "punctuation"
    if category[0] == "L":
        return {"Lu": "upper", "Lt": "upper", "Ll": "lower"}.get(category, "other_letter")
    return "digit" if category == "Nd" else "other"


def python_lower(c):
    return "i" if c == "İ" else c.lower()


def python_shape(c):
    kinds = {"upper": "X", "lower": "x", "other_letter": "x", "digit": "d"}
    return kinds.get(python_class(c), c)


def test_every_class():
    wrong = [hex(cp) for cp in CODE_POINTS if _native.char_class(cp) != python_class(chr(cp))]
    assert not wrong


def test_every_lower_case():
    letters = "".join(map(chr, (cp for cp in CODE_POINTS if not 0xD800 <= cp < 0xE000)))
    expected = "".join(map(python_lower, letters))
    assert len(expected) == len(letters)
    assert _native.word_function("lower", letters) == expected


def test_no_class_beyond_unicode():
    assert _native.char_class(0x10FFFF) == "other"
    with pytest.raises(ValueError, match="0x10ffff"):
        _native.char_class(0x110000)


@settings(deadline=None)
@given(words)
def test_lower_case(word):
    expected = "".join(map(python_lower, word))
    assert _native.word_function("lower", word) == expected


@settings(deadline=None)
@given(words, st.integers(0, 12))
def test_prefix_and_suffix(word, n):
    has = n <= len(word)
    assert _native.word_function("prefix", word, n) == (word[:n] if has else None)
    assert _native.word_function("suffix", word, n) == (word[len(word) - n :] if has else None)


@settings(deadline=None)
@given(words)
def test_shapes(word):
    shape = "".join(map(python_shape, word))
    assert _native.word_function("shape", word) == shape
    short = "".join(c for c, _ in groupby(shape))
    assert _native.word_function("short_shape", word) == short


@pytest.mark.parametrize(
    ("word", "shape", "short"),
    [
        ("", "", ""),
        ("McDonald's", "XxXxxxxx'x", "XxXx'x"),
        ("1990-12", "dddd-dd", "d-d"),
        ("U.S.A.", "X.X.X.", "X.X.X."),
        ("...", "...", "."),
        ("Ängström№5", "Xxxxxxxx№d", "Xx№d"),
        ("中国", "xx", "x"),
    ],
)
def test_shapes_by_hand(word, shape, short):
    assert _native.word_function("shape", word) == shape
    assert _native.word_function("short_shape", word) == short


def test_unknown_function():
    with pytest.raises(ValueError, match="'upper' is none of prefix"):
        _native.word_function("upper", "a")


def decode_plainly(data):
    """Decode the shortest valid beginning, else count one byte as U+FFFD."""
    out = []
    while data:
        size = 1
        cp = 0xFFFD
        for k in range(1, 5):
            try:
                cp = ord(data[:k].decode())
            except UnicodeDecodeError:
                continue
            size = k
            break
        out.append(cp)
        data = data[size:]
    return out


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=12),
        st.lists(st.sampled_from([0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED,
                                  0xEF, 0xF0, 0xF4, 0xF5, 0xFF])).map(bytes),
        words.map(str.encode),
    )
)  # fmt: skip
def test_decoding_survives_anything(data):
    assert _native.decode_utf8(data) == decode_plainly(data)


# --- regular expressions -------------------------------------------------------------------------


def plain_items(pattern):
    """Return (anchored at start, [(escaped, character, repeat)], anchored at end)."""
    at_start = pattern.startswith("^")
    rest = pattern[at_start:]
    items = []
    while rest:
        if rest == "$":
            return at_start, items, True
        escaped = rest[0] == "\\"
        c = rest[escaped]
        rest = rest[1 + escaped :]
        repeat = rest[:1] if rest[:1] in ("*", "?") else ""
        rest = rest[len(repeat) :]
        items.append((escaped, c, repeat))
    return at_start, items, False


def plain_takes(escaped, x, c):
    letters = ("upper", "lower", "other_letter")
    classes = {
        "a": letters,
        "d": ("digit",),
        "l": ("lower",),
        "p": ("punctuation",),
        "s": ("space",),
        "u": ("upper",),
        "w": (*letters, "digit"),
    }
    if not escaped:
        return x in (".", c)
    if x.lower() in classes and x.isascii():
        return (python_class(c) in classes[x.lower()]) == x.islower()
    return x == c


def plain_end(items, at_end, text, at):
    """Return where the match that is tried first ends, or None: by trying, one after the other."""
    if not items:
        return at if at == len(text) or not at_end else None
    (escaped, x, repeat), rest = items[0], items[1:]
    takes = at < len(text) and plain_takes(escaped, x, text[at])
    if repeat == "*":
        tries = [(rest, at), (items, at + 1)] if takes else [(rest, at)]
    elif repeat == "?":
        tries = [(rest, at + 1), (rest, at)] if takes else [(rest, at)]
    else:
        tries = [(rest, at + 1)] if takes else []
    ends = (plain_end(left, at_end, text, place) for left, place in tries)
    return next((end for end in ends if end is not None), None)


def plain_match(pattern, text):
    """Return the match as a pair of positions in code points, or None."""
    at_start, items, at_end = plain_items(pattern)
    for start in range(1 if at_start else len(text) + 1):
        end = plain_end(items, at_end, text, start)
        if end is not None:
            return start, end
    return None


def native_match(pattern, text):
    """Return the match as a pair of positions in code points, or None."""
    found = _native.regex_match(pattern, text)
    if found is None:
        return None
    begin, length = found
    data = text.encode()
    return len(data[:begin].decode()), len(data[: begin + length].decode())


units = st.one_of(
    st.sampled_from("aaab.é1A^$+["),
    st.sampled_from(["\\" + c for c in "adlpsuwADLPSUW.*?\\^$né"]),
)
# (After ^ at the start, a repetition has nothing to repeat.)
patterns = st.builds(
    lambda start, items, end: start + "".join(items) + end,
    st.sampled_from(["", "", "^"]),
    st.lists(st.builds("".join, st.tuples(units, st.sampled_from(["", "", "*", "?"]))), max_size=6),
    st.sampled_from(["", "", "$"]),
).filter(lambda pattern: pattern[:2] not in ("^*", "^?"))


@settings(max_examples=1000, deadline=None)
@given(patterns, st.text("aaabbé1A. +*$^\\[中n", max_size=8))
@example("a?ab", "ab")
@example("a*a?a*$", "aaa")
@example(".?.?.?$", "aéb中")
def test_regex_is_its_twin(pattern, text):
    assert native_match(pattern, text) == plain_match(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("", "", (0, 0)),
        ("", "ab", (0, 0)),
        ("^", "ab", (0, 0)),
        ("$", "ab", (2, 2)),
        ("^$", "", (0, 0)),
        ("^$", "a", None),
        (".", "", None),
        (r"\D", "", None),
        (r"\u", "McDonald", (0, 1)),
        (r"^\u\l*$", "Donald", (0, 6)),
        (r"^\u\l*$", "McDonald", None),
        (r"\d*", "12", (0, 0)),  # the shortest first
        (r"\d*$", "a12", (1, 3)),
        (r"\d\d*-", "x1990-12", (1, 6)),
        (r"a.*b", "xabab", (1, 3)),
        (r"ab?", "ab", (0, 2)),  # taken if that will do
        (r"ab?b", "ab", (0, 2)),
        (r".?.?.?$", "abcdef", (3, 6)),
        (r"^.?.?.?", "abcdef", (0, 3)),
        (r"^.?.?.?", "ab", (0, 2)),
        ("a+", "aaa", None),
        ("a+", "aa+", (1, 3)),
        ("a^b", "a^b", (0, 3)),
        ("a$b", "a$b", (0, 3)),
        ("$*$", "a$$", (1, 3)),
        ("^^a", "^a", (0, 2)),
        (r"\^a\$", "x^a$", (1, 4)),
        (r"\*\?\.\\", r"a*?.\\", (1, 5)),
        (r"\n", "n", (0, 1)),
        (r"\p", "a€", (1, 2)),
        (r"\s", "a b", (1, 2)),
        (r"\w\W", "a1-", (1, 3)),
        (r"\a\A", "é1", (0, 2)),
        (r"\a", "中", (0, 1)),
        (r"\l", "中", None),
        (r"^.$", "é", (0, 1)),
        ("é*$", "éé", (0, 2)),
        ("a", "\x00a", (1, 2)),
    ],
)
def test_regex_by_hand(pattern, text, matched):
    assert native_match(pattern, text) == matched
    assert plain_match(pattern, text) == matched


def test_regex_counts_bytes():
    assert _native.regex_match("b", "é中b") == (5, 1)
    assert _native.regex_match("中", "é中b") == (2, 3)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("\\", r"the \\ at byte 0 has nothing after it \(write \\\\ for"),
        ("é\\", r"the \\ at byte 2 has nothing"),
        ("*", r"the \* at byte 0 has no character before it to repeat \(write \\\* for"),
        ("?a", r"the \? at byte 0 has no character"),
        ("^*", r"the \* at byte 1 has no character"),
        ("x**", r"'x\*\*': the \* at byte 2 has no character"),
        ("x*?", r"the \? at byte 2 has no character"),
        ("x?*", r"the \* at byte 2 has no character"),
    ],
)
def test_regex_refuses(pattern, message):
    with pytest.raises(ValueError, match=message):
        _native.regex_match(pattern, "x")


@pytest.mark.parametrize("stars", [30, 64, 65, 300])
def test_hostile_patterns_return(stars):
    text = "a" * 10_000
    assert _native.regex_match("a*" * stars + "b", text) is None
    assert _native.regex_match("a?" * stars + "b", text) is None
    assert _native.regex_match("^" + "a*" * stars + "$", text) == (0, 10_000)
    assert _native.regex_match("a?" * stars + "a" * stars + "$", text) == (
        10_000 - 2 * stars,
        2 * stars,
    )


def test_long_texts_return():
    text = "é" * 1_000_000
    assert _native.regex_match(".*b", text) is None
    assert _native.regex_match("^é*$", text) == (0, 2_000_000)
    assert _native.regex_match("b", text + "b") == (2_000_000, 1)
    assert _native.regex_match("é*" * 100_000, "é") == (0, 0)
