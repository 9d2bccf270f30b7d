"""Dependency trees in CoNLL-U files."""

from __future__ import annotations

import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import EmptyFileError, FileFormatError
from maxmargin.io.conllu_trees import parse_dependencies, read_dependencies, write_dependencies
from real_data import data_file

SAMPLE = """\
# sent_id = 1
# text = Im Haus  lebt Dr. No
1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_
1\tIn\tin\tADP\tAPPR\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\tART\tCase=Dat|Number=Sing\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\tNN\tCase=Dat\t4\tobl\t_\tSpaceAfter=No
3.1\tleer\tleer\tVERB\t_\t_\t_\t_\t_\t_
4\tDr. No\tNo\tPROPN\tNE\tNumber=Sing\t0\troot\t4:root\t_

# sent_id = 2
1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_
"""


def read(text, **options):
    return parse_dependencies(text.encode(), "x.conllu", **options)


def written(sentences, heads=None, deprels=None):
    out = io.BytesIO()
    heads = [s.heads for s in sentences] if heads is None else heads
    write_dependencies(out, sentences, heads, deprels)
    return out.getvalue().decode()


def tokens(*heads):
    """Return the text of a sentence a, b, c, ... with these heads."""
    return "".join(
        f"{k}\t{chr(96 + k)}\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for k, head in enumerate(heads, 1)
    )


def test_sentences():
    first, second = read(SAMPLE)
    assert first.forms == ["In", "dem", "Haus", "Dr. No"]
    assert first.lemmas == ["in", "der", "Haus", "No"]
    assert first.upos == ["ADP", "DET", "NOUN", "PROPN"]
    assert first.xpos == ["APPR", "ART", "NN", "NE"]
    assert first.feats == ["_", "Case=Dat|Number=Sing", "Case=Dat", "Number=Sing"]
    assert first.heads.dtype == np.int32
    assert first.heads.tolist() == [3, 3, 4, 0]
    assert first.deprels == ["case", "det", "obl", "root"]
    assert len(first) == 4
    assert [first.line_of(k) for k in range(4)] == [4, 5, 6, 8]
    assert (second.first_line, second.line_of(0)) == (10, 11)
    assert second.forms == ["#"]


def test_without_heads():
    text = SAMPLE.replace("\t4\tobl", "\t_\t_").replace("\t0\troot", "\tx\t_")
    first, second = read(text, heads=False)
    assert first.heads is None
    assert first.deprels is None
    assert first.forms == ["In", "dem", "Haus", "Dr. No"]
    assert written([first, second], [[3, 3, 4, 0], [0]]).count("\t0\t_\t") == 2


VARIANTS = [
    SAMPLE,
    "\ufeff" + SAMPLE,
    "\ufeff" + tokens(0, 1),
    SAMPLE.replace("\n", "\r\n"),
    SAMPLE.rstrip("\n"),
    "\n\n" + SAMPLE + "\n\n\n# the end",
    SAMPLE.replace("\n\n", "\n \n\t\n"),
    "# alone\n\n" + SAMPLE + "\n# alone\n\n",
]


@pytest.mark.parametrize("text", VARIANTS)
def test_all_the_rest_is_kept(text):
    sentences = read(text)
    assert "".join(line for s in sentences for line in s.lines) == text
    assert written(sentences, None, [s.deprels for s in sentences]) == text


@pytest.mark.parametrize("text", [v for v in VARIANTS if "Haus" in v])
def test_the_same_file_otherwise_written(text):
    found = read(text)
    assert [s.forms for s in found] == [s.forms for s in read(SAMPLE)]
    assert [s.heads.tolist() for s in found] == [[3, 3, 4, 0], [0]]


def test_other_trees():
    sentences = read(SAMPLE)
    text = written(sentences, [[2, 0, 2, 2], np.array([0])], [["a", "root", "b:c", "d"], ["root"]])
    expected = (
        SAMPLE.replace("\t3\tcase", "\t2\ta")
        .replace("\t3\tdet", "\t0\troot")
        .replace("\t4\tobl", "\t2\tb:c")
        .replace("\t0\troot\t4:root", "\t2\td\t4:root")
    )
    assert text == expected
    again = read(text)
    assert again[0].heads.tolist() == [2, 0, 2, 2]
    assert read(written(sentences))[0].deprels == ["_"] * 4


def test_sentences_in_another_order():
    sentences = read(SAMPLE.rstrip("\n"))
    text = written(sentences[::-1])
    assert [s.forms for s in read(text)] == [s.forms for s in sentences[::-1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\t_\n", "line 1: found 3 columns; expected 10"),
        (tokens(0).replace("\t", " "), "line 1: found 1 columns; expected 10"),
        (tokens(0, 3), "line 2: found the head 3; expected a number from 0 to 2"),
        (tokens(0) + "\n" + tokens(2, 9, 0), "line 4: found the head 9; expected a number from 0"),
        (tokens("x"), "line 1: found the head 'x'; expected a number from 0 to 1"),
        (tokens(0, "_"), "line 2: found the head '_'; expected a number from 0 to 2"),
        (tokens(0, "-1"), "line 2: found the head '-1'; expected a number"),
        (tokens(0, "\u0661"), "line 2: found the head '\u0661'; expected a number"),
        (tokens(0, "9" * 99), "line 2: found the head '9999"),
        (tokens(1), "line 1: found no root in the sentence of 1 words"),
        (tokens(0) + "\n" + tokens(2, 1), "line 3: found no root in the sentence of 2 words"),
        (tokens(0, 2), "line 2: found a cycle in the heads: 2 'b' -> 2 'b'; expected a tree"),
        (
            tokens(0, 1) + "\n#\n" + tokens(2, 4, 0, 5, 2),
            "line 6: found a cycle in the heads: 2 'b' -> 4 'd' -> 5 'e' -> 2 'b'; expected a tree",
        ),
        (tokens(0, *range(3, 22), 2), "'b' -> 3 'c' -> 4 'd' -> 5 'e' -> 6 'f' -> 7 'g' -> 8 'h'"),
        (tokens(0, 1).replace("2\tb", "3\tb"), "line 2: found the id 3 after 1 words"),
        (tokens(0, 1).replace("2\tb", "1\tb"), "line 2: found the id 1 after 1 words"),
        (tokens(0).replace("1\ta", "01\ta"), "line 1: found the id 01 after 0 words"),
        (tokens(0).replace("1\ta", "a\ta"), "line 1: found the id 'a'; expected a number, a range"),
        (tokens(0).replace("a", ""), "line 1: found nothing in column form; expected a value"),
        (SAMPLE.replace("1-2\t", "2-3\t"), "line 3: found the multiword token 2-3 after 0 words"),
        (SAMPLE.replace("1-2\t", "1-0\t"), "line 3: found the multiword token 1-0 after 0 words"),
        (SAMPLE.replace("1-2\t", "1-5\t"), "line 9: found the end of a sentence after 4 words"),
        ("1-2" + tokens(0)[1:] + tokens(0), "line 2: found the end of a sentence after 1 words"),
        (SAMPLE.replace("3.1\t", "2.1\t"), "line 7: found the empty node 2.1 after 3 words"),
    ],
)
def test_bad_input(text, message):
    with pytest.raises(FileFormatError, match=re.escape(message)) as error:
        read(text)
    assert str(error.value).startswith("x.conllu: line ")


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_bytes(tokens(0).encode() + b"2\t\xff")
    with pytest.raises(FileFormatError, match=re.escape(f"{path}: line 2: found bytes")):
        read_dependencies(path)


def test_one_root():
    text = tokens(0) + "\n" + tokens(2, 0, 0)
    assert read(text)[1].heads.tolist() == [2, 0, 0]
    with pytest.raises(FileFormatError, match="line 5: found a second root, word 3, beside word 2"):
        read(text, one_root=True)
    assert len(read(SAMPLE, one_root=True)) == 2


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_nothing(text):
    with pytest.raises(EmptyFileError, match="no sentences"):
        read(text)


@given(st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=7), min_size=1, max_size=4))
def test_heads_are_read_if_and_only_if_they_are_trees(heads):
    def is_tree(sentence):
        for word in range(1, len(sentence) + 1):
            at, steps = word, 0
            while at and steps <= len(sentence):
                if sentence[at - 1] > len(sentence):
                    return False
                at, steps = sentence[at - 1], steps + 1
            if at:
                return False
        return True

    text = "\n".join(tokens(*sentence) for sentence in heads)
    if all(map(is_tree, heads)):
        assert [s.heads.tolist() for s in read(text)] == heads
    else:
        with pytest.raises(FileFormatError):
            read(text)


@pytest.mark.parametrize(
    ("heads", "deprels", "message"),
    [
        ([[3, 3, 4, 0]], None, "found heads of 1 sentences; expected 2"),
        ([[3, 3, 4, 0], [0]], [["a"] * 4], "and relations of 1; expected 2"),
        ([[3, 3, 4, 0], [0, 1]], None, "sentence 1: found heads of shape (2,)"),
        ([[3, 3, 4, 0.0], [0]], None, "sentence 0: found heads of shape (4,) and type float64"),
        ([[3, 3, 5, 0], [0]], None, "sentence 0: found the head 5 of word 3"),
        ([[3, -1, 5, 0], [0]], None, "sentence 0: found the head -1 of word 2"),
        ([[3, 3, 4, 0], [0]], [["a"] * 3, ["a"]], "sentence 0: found 3 relations; expected 4"),
        ([[3, 3, 4, 0], [0]], [["a"] * 4, ["\t"]], "sentence 1: found the relation '\\t'"),
        ([[3, 3, 4, 0], [0]], [["a"] * 4, [""]], "sentence 1: found the relation ''"),
    ],
)
def test_what_cannot_be_written(tmp_path, heads, deprels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write_dependencies(tmp_path / "x", read(SAMPLE), heads, deprels)
    assert not (tmp_path / "x").exists()


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_sentences", "n_words"),
    [("ud_english_ewt/dev", 2001, 25147), ("wsj_sample_dep/test", 513, 12146)],
)
def test_real_files(tmp_path, name, n_sentences, n_words):
    path = data_file(f"{name}.conllu.gz")
    sentences = read_dependencies(path, one_root=True)
    assert (len(sentences), sum(map(len, sentences))) == (n_sentences, n_words)
    again = tmp_path / "again.conllu"
    write_dependencies(
        again, sentences, [s.heads for s in sentences], [s.deprels for s in sentences]
    )
    with gzip.open(path) as file:
        assert file.read() == again.read_bytes()
