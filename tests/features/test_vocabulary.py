from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin._native import Vocabulary, checksum

# Every character that UTF-8 can hold: all but surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_numbers_in_order_of_appearance():
    v = Vocabulary()
    assert len(v) == 0
    assert [v.add(s) for s in ["b", "a", "b", "", "a", "ü"]] == [0, 1, 0, 2, 1, 3]
    assert len(v) == 4
    assert v.names() == ["b", "a", "", "ü"]
    assert v.get("a") == 1
    assert v.get("c") is None
    assert "ü" in v
    assert "u" not in v
    assert v.name(3) == "ü"
    assert repr(v) == "<Vocabulary of 4 strings>"


def test_empty_vocabulary_knows_nothing():
    v = Vocabulary()
    assert v.get("") is None
    assert "" not in v
    assert v.names() == []
    assert pickle.loads(pickle.dumps(v)).names() == []


@given(st.lists(TEXT, max_size=200))
def test_behaves_like_a_dict(strings):
    v = Vocabulary()
    expected: dict[str, int] = {}
    for s in strings:
        assert v.get(s) == expected.get(s)
        assert v.add(s) == expected.setdefault(s, len(expected))
    assert v.names() == list(expected)
    assert all(v.get(s) == i and v.name(i) == s for s, i in expected.items())


def test_strings_of_every_length_and_growth():
    # Lengths around the block sizes of the hash, and enough strings to grow many times.
    strings = ["x" * n for n in range(200)] + [f"feature:{i}" for i in range(30_000)]
    strings += ["x" * 100_000, "x" * 99_999 + "y", "\0", "\0\0", "a\0b", "a\0c"]
    v = Vocabulary()
    assert [v.add(s) for s in strings] == list(range(len(strings)))
    assert [v.get(s) for s in strings] == list(range(len(strings)))
    assert v.get("x" * 200) is None
    assert v.memory_bytes > sum(map(len, strings))


@given(st.lists(TEXT, unique=True))
def test_from_names_and_pickle_round_trip(names):
    v = Vocabulary.from_names(names)
    assert v.names() == names
    for again in (
        pickle.loads(pickle.dumps(v)),
        copy.deepcopy(v),
        copy.copy(v),
        Vocabulary.from_names(v.names()),
    ):
        assert again.names() == names
        assert all(again.get(s) == i for i, s in enumerate(names))
        new = max(names, key=len, default="") + "!"
        assert again.add(new) == len(names)
        assert v.get(new) is None


def test_pickle_is_compact():
    names = [f"w[0]={i}" for i in range(10_000)]
    size = len(pickle.dumps(Vocabulary.from_names(names)))
    assert size < sum(map(len, names)) + len(names) + 200


def test_long_strings_survive_pickling():
    names = ["a" * n for n in (0, 1, 127, 128, 129, 16383, 16384, 70_000)]
    assert pickle.loads(pickle.dumps(Vocabulary.from_names(names))).names() == names


def test_state_is_set_once():
    v = Vocabulary.from_names(["a", "b"])
    with (
        pytest.raises(TypeError),
        pytest.warns(RuntimeWarning, match=r"already-initialized"),
    ):
        v.__setstate__(Vocabulary.from_names(["c"]).__getstate__())
    assert v.names() == ["a", "b"]


def test_from_names_rejects_repeated_names():
    with pytest.raises(ValueError, match=r"name 2: 'a' is also name 0"):
        Vocabulary.from_names(["a", "b", "a"])


@pytest.mark.parametrize("bad", [["a", 1], ["a", None], ["a", b"b"]])
def test_from_names_rejects_other_types(bad):
    with pytest.raises(TypeError, match=r"name 1: found .*; expected a str"):
        Vocabulary.from_names(bad)


@pytest.mark.parametrize("bad", ["abc", None, 3, {"a": 0}, {"a"}])
def test_from_names_wants_a_list(bad):
    with pytest.raises(TypeError, match=r"expected a list of str"):
        Vocabulary.from_names(bad)


def test_lone_surrogates():
    v = Vocabulary()
    with pytest.raises(ValueError, match=r"'\\ud800' holds a lone surrogate"):
        v.add("\ud800")
    with pytest.raises(ValueError, match=r"name 0: .*surrogate"):
        Vocabulary.from_names(["\udfff"])
    assert v.get("\ud800") is None
    assert "\ud800" not in v
    assert len(v) == 0


def test_other_types():
    v = Vocabulary.from_names(["1"])
    assert 1 not in v
    assert None not in v
    for call in (v.add, v.get):
        for bad in (1, None, b"1"):
            with pytest.raises(TypeError):
                call(bad)
    with pytest.raises(IndexError, match=r"number 1 of a vocabulary of 1 strings"):
        v.name(1)
    with pytest.raises(TypeError):
        v.name(-1)


def test_full_vocabulary_says_so():
    v = Vocabulary(max_size=2)
    v.add("a")
    v.add("b")
    assert v.add("a") == 0
    with pytest.raises(ValueError, match=r"at most 2 strings"):
        v.add("c")
    assert v.names() == ["a", "b"]
    again = pickle.loads(pickle.dumps(v))
    with pytest.raises(ValueError, match=r"at most 2 strings"):
        again.add("c")
    with pytest.raises(ValueError, match=r"at most 1 strings"):
        Vocabulary.from_names(["a", "b"], max_size=1)


LIMIT = 2**32 - 1


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ((), "tuple of four"),
        ((1, LIMIT, b""), "tuple of four"),
        ((2, LIMIT, b"", b""), "unknown version"),
        (("1", LIMIT, b"", b""), "unknown version"),
        ((1, -1, b"", b""), "size limit"),
        ((1, 0, b"a", b"\x01"), "size limit"),
        ((1, LIMIT, "a", b"\x01"), "expected bytes"),
        ((1, LIMIT, b"a", None), "expected bytes"),
        ((1, LIMIT, b"\xff", b"\x01"), "not UTF-8"),
        ((1, LIMIT, b"\xed\xa0\x80", b"\x03"), "not UTF-8"),
        ((1, LIMIT, b"a", b"\x02"), "more than there is text"),
        ((1, LIMIT, b"ab", b"\x01"), "less than there is text"),
        ((1, LIMIT, b"a", b""), "less than there is text"),
        ((1, LIMIT, b"a", b"\x81"), "cut short"),
        ((1, LIMIT, b"a", b"\xff" * 20 + b"\x01"), "too long"),
        ((1, LIMIT, b"a", b"\xff" * 8 + b"\x7f"), "more than there is text"),
        ((1, LIMIT, "ü".encode(), b"\x01\x01"), "within a character"),
        ((1, LIMIT, b"aa", b"\x01\x01"), "twice"),
    ],
)
def test_damaged_state(state, what):
    v = Vocabulary.__new__(Vocabulary)
    with pytest.raises(ValueError, match=what):
        v.__setstate__(state)


@given(
    st.tuples(
        st.just(1),
        st.integers(0, 2**64 - 1),
        st.one_of(st.binary(max_size=20), TEXT.map(str.encode)),
        st.binary(max_size=20),
    )
)
def test_any_state_is_read_or_refused(state):
    v = Vocabulary.__new__(Vocabulary)
    try:
        v.__setstate__(state)
    except ValueError:
        return
    assert "".join(v.names()).encode() == state[2]
    assert [v.get(s) for s in v.names()] == list(range(len(v)))


@given(st.binary(max_size=12))
def test_utf8_is_judged_as_python_does(text):
    try:
        text.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    v = Vocabulary.__new__(Vocabulary)
    if valid:
        v.__setstate__((1, LIMIT, text, bytes([len(text)])))
        assert v.names() == [text.decode()]
    else:
        with pytest.raises(ValueError, match=r"not UTF-8"):
            v.__setstate__((1, LIMIT, text, bytes([len(text)])))


def test_uninitialised_object_is_refused():
    v = Vocabulary.__new__(Vocabulary)
    with pytest.raises(TypeError), pytest.warns(RuntimeWarning, match=r"uninitialized"):
        v.names()


def test_reading_from_several_threads():
    names = [str(i) for i in range(5000)]
    v = Vocabulary.from_names(names)
    wrong = []

    def read():
        wrong.extend(i for i, s in enumerate(names) if v.get(s) != i)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- tables, as model files hold them ---


@given(st.lists(TEXT, unique=True))
def test_table_round_trip(names):
    v = Vocabulary.from_names(names)
    text, ends = v.table()
    assert text == "".join(names).encode()
    assert ends.dtype == np.int64
    assert ends.tolist() == np.cumsum([0, *(len(s.encode()) for s in names)]).tolist()
    again = Vocabulary.from_table(text, ends)
    assert again.names() == names
    assert all(again.get(s) == i for i, s in enumerate(names))
    new = max(names, key=len, default="") + "!"
    assert again.add(new) == len(names)
    assert v.get(new) is None


def test_table_of_many_strings():
    names = [f"w[0]={i}" for i in range(20_000)]
    text, ends = Vocabulary.from_names(names).table()
    assert Vocabulary.from_table(np.frombuffer(text, np.uint8), ends).names() == names


@pytest.mark.parametrize(
    ("text", "ends", "message"),
    [
        (b"", [], "do not fit their lengths"),
        (b"ab", [0, 1], "do not fit their lengths"),
        (b"ab", [0, 3], "do not fit their lengths"),
        (b"ab", [1, 2], "do not fit their lengths"),
        (b"ab", [0], "do not fit their lengths"),
        (b"ab", [0, -1], "do not fit their lengths"),
        (b"abc", [0, 2, 1, 3], "not in order"),
        (b"abc", [0, -1, 3], "not in order"),
        (b"abc", [0, 5, 3], "not in order"),
        (b"abc", [0, 2**62, 3], "not in order"),
        (b"abc", [0, -(2**63), 3], "not in order"),
        (b"aa", [0, 1, 2], "occurs twice"),
        (b"a", [0, 0, 0, 1], "occurs twice"),
        (b"\xff", [0, 1], "not UTF-8"),
        ("ü".encode(), [0, 1, 2], "not UTF-8"),
    ],
)
def test_damaged_tables(text, ends, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_table(text, np.array(ends, np.int64))


@given(st.binary(max_size=8), st.lists(st.integers(-2, 9), max_size=5))
def test_any_table_is_read_or_refused(text, ends):
    try:
        v = Vocabulary.from_table(text, np.array(ends, np.int64))
    except ValueError:
        return
    assert v.table()[0] == text
    assert v.table()[1].tolist() == ends


def test_tables_of_other_types():
    for text, ends in (("ab", [0, 2]), (b"ab", None), (None, np.array([0])), (b"a", np.eye(2))):
        with pytest.raises(TypeError):
            Vocabulary.from_table(text, ends)


@given(st.lists(TEXT, unique=True))
def test_hashes(names):
    found = Vocabulary.from_names(names).hashes()
    assert found.dtype == np.uint64
    assert found.tolist() == [checksum(s.encode()) for s in names]


def test_hashes_are_the_same_everywhere():
    # Model files depend on them.
    strings = ["", "a", "abcd", "a longer string", "a string of more than sixteen bytes, hashed"]
    assert Vocabulary.from_names(strings).hashes().tolist() == [
        0x1eb244682e62ca05,
        0x2d03fb7858ab8619,
        0x0e823b00e8813bdc,
        0x9ed1c60c04ef70ba,
        0xdf5d1078bf6811c8,
    ]
