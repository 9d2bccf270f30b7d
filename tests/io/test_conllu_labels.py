"""Labels are put into CoNLL-U, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.io.conllu import COLUMNS, conllu_to_columns
from maxmargin.io.conllu_labels import conllu_sentences, with_labels

TEXT = b"""\
# sent_id = 1
# text = vamonos al mar
1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tvamos\tir\tVERB\t_\tMood=Imp|Number=Plur\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\tCase=Acc\t1\tobj\t_\t_
2.1\tx\tx\tVERB\t_\t_\t_\t_\t0:root\t_

# newpar
1\tal mar\tmar\tNOUN\t_\t_\t0\troot\t_\tA=1


"""


def tokens_of(data, columns=("form",)):
    taken = conllu_to_columns(data, list(columns), "x").split(b"\n")
    return [line.decode() for line in taken if line]


def test_only_the_column_changes():
    found = with_labels(TEXT, "upos", ["A", "B", "C"])
    assert found == (
        TEXT.replace(b"\tir\tVERB", b"\tir\tA").replace(b"PRON", b"B").replace(b"NOUN", b"C")
    )


def test_the_same_labels_give_the_same_bytes():
    for data in (
        TEXT,
        TEXT.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + TEXT,
        TEXT.rstrip(b"\n"),
        b"\n\n" + TEXT,
    ):
        for column in (*COLUMNS[1:], "feats.Case"):
            cells = tokens_of(data, [column])
            assert with_labels(data, column, cells) == data, column


def test_single_features():
    found = with_labels(TEXT, "feats.Gender", ["Masc", "_", "Fem"])
    assert b"\tGender=Masc|Mood=Imp|Number=Plur\t" in found
    assert b"\tGender=Fem\t0" in found
    assert b"\tCase=Acc\t1" in found
    found = with_labels(TEXT, "feats.Case", ["_", "_", "_"])
    assert b"nosotros\tPRON\t_\t_\t1" in found
    found = with_labels(TEXT, "feats.Mood", ["Ind", "_", "_"])
    assert b"Mood=Ind|Number=Plur" in found


def test_notes_go_to_misc():
    found = with_labels(TEXT.replace(b"\n", b"\r\n"), "upos", ["A", "B", "C"], ["M=1"] * 3)
    assert found.count(b"\tM=1\r\n") == 2
    assert b"\tA=1|M=1\r\n" in found
    assert b"SpaceAfter=No\r\n" in found


def test_sentences():
    found = list(conllu_sentences(TEXT))
    assert b"".join(found) == TEXT
    assert [len(tokens_of(piece)) for piece in found] == [2, 1]
    assert list(conllu_sentences(b"# nothing\n\n")) == []
    assert b"".join(conllu_sentences(TEXT.rstrip(b"\n"))) == TEXT.rstrip(b"\n")


def test_no_such_column():
    with pytest.raises(ValueError, match="found the column 'word'"):
        with_labels(TEXT, "word", [])


CELL = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1,
               max_size=3)
LINE = st.one_of(
    st.just("# c"),
    st.just(""),
    st.builds("1-2\t{}\t_\t_\t_\t_\t_\t_\t_\t_".format, CELL),
    st.builds("1.1\t{}\t_\t_\t_\t_\t_\t_\t_\t_".format, CELL),
    st.builds("{}\t{}\t{}\tT\t_\t_\t_\t_\t_\t_".format, st.integers(1, 9), CELL, CELL),
)


@given(st.lists(LINE, max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_text_survives(lines, end, final):
    data = (end.join(["1\ta\tb\tT\t_\t_\t_\t_\t_\t_", *lines]) + end * final).encode()
    labels = tokens_of(data, ["upos"])
    assert with_labels(data, "upos", labels) == data
    changed = with_labels(data, "upos", ["Q"] * len(labels))
    assert tokens_of(changed, ["upos"]) == ["Q"] * len(labels)
    assert tokens_of(changed, ["form", "lemma"]) == tokens_of(data, ["form", "lemma"])
    assert len(list(conllu_sentences(data))) >= 1
    assert b"".join(conllu_sentences(data)) + data[len(b"".join(conllu_sentences(data))):] == data
