"""CoNLL-U to columns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.errors import FileFormatError
from maxmargin.io.conllu import COLUMNS, conllu_to_columns

SAMPLE = """\
# sent_id = 1
# text = Im Haus  lebt Dr. No
1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_
1\tIn\tin\tADP\tAPPR\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\tART\tCase=Dat|Number=Sing\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\tNN\tCase=Dat\t4\tobl\t_\tSpaceAfter=No
3.1\tleer\tleer\tVERB\t_\t_\t_\t_\t_\t_
4\tDr. No\tNo\tPROPN\tNE\tNumber=Sing\t0\troot\t_\t_

# sent_id = 2
1\t#\t#\tSYM\t_\tCase=\t0\troot\t_\t_
"""


def convert(text, *columns):
    return conllu_to_columns(text.encode(), columns, "x.conllu").decode()


def test_columns():
    assert convert(SAMPLE, "form", "upos") == (
        "In\tADP\ndem\tDET\nHaus\tNOUN\nDr. No\tPROPN\n\n#\tSYM\n\n"
    )
    assert convert(SAMPLE, "upos", "id", "upos").startswith("ADP\t1\tADP\n")
    assert convert(SAMPLE, *COLUMNS).splitlines()[2] == SAMPLE.splitlines()[5]


def test_single_features():
    assert convert(SAMPLE, "form", "feats.Case", "feats.Number") == (
        "In\t_\t_\ndem\tDat\tSing\nHaus\tDat\t_\nDr. No\t_\tSing\n\n#\t_\t_\n\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + SAMPLE,
        SAMPLE.replace("\n", "\r\n"),
        SAMPLE.rstrip("\n"),
        "\n\n" + SAMPLE + "\n\n\n# the end",
        SAMPLE.replace("\n\n", "\n \n\t\n"),
    ],
)
def test_the_same_file_otherwise_written(text):
    assert convert(text, "form", "upos") == convert(SAMPLE, "form", "upos")


LINE = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_"
BAD = {
    "1\ta\n": "line 1: found 2 columns; expected 10, with tabs between them",
    f"{LINE}\n\n{LINE}\tx\n": "line 3: found 11 columns; expected 10",
    f"# x\n{LINE.replace(chr(9), '  ')}": "line 2: found 1 columns; expected 10",
    LINE.replace("1", "x"): "line 1: found the id 'x'; expected a number",
    LINE.replace("1", "1-"): "line 1: found the id '1-'",
    LINE.replace("1", ""): "line 1: found the id ''",
    f"\n{LINE.replace('X', '')}": "line 2: found nothing in column upos; expected a value, or _",
    "1\ta\ta\tX\t_\tCase\t0\troot\t_\t_": "line 1: found 'Case' in column feats; expected Name=Val",
    "": "holds no sequences",
    "# only\n\n# comments": "holds no sequences",
    "1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_\n\n": "holds no sequences",
}


@pytest.mark.parametrize("text", BAD, ids=repr)
def test_bad_files(text):
    with pytest.raises(FileFormatError, match=r"x\.conllu: " + re.escape(BAD[text])):
        convert(text, "form", "feats.Case")


def test_bad_bytes():
    data = f"{LINE}\n".encode() + b"1\t\xff\n"
    with pytest.raises(FileFormatError, match="x: line 2: found bytes that are not UTF-8"):
        conllu_to_columns(data, ["form"], "x")


@pytest.mark.parametrize("column", ["word", "FORM", "feats.", "misc.Gloss", ""])
def test_bad_columns(column):
    with pytest.raises(ValueError, match=r"found the column .*; expected one of id, form, lemma"):
        convert(SAMPLE, "form", column)


def test_no_columns():
    with pytest.raises(ValueError, match="expected a list of at least one name"):
        convert(SAMPLE)
    with pytest.raises(ValueError, match="expected a list of at least one name"):
        conllu_to_columns(SAMPLE.encode(), "form", "x")


CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=6
)


@given(
    st.lists(st.lists(st.tuples(*[CELLS] * 9), min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4),
)
def test_round_trip(sentences, columns):
    tokens = [[(str(k), *token) for k, token in enumerate(s, 1)] for s in sentences]
    text = "\n\n".join("\n".join("\t".join(token) for token in s) for s in tokens)
    wanted = [COLUMNS.index(column) for column in columns]
    out = "".join(
        "".join("\t".join(token[k] for k in wanted) + "\n" for token in s) + "\n" for s in tokens
    )
    assert convert(text, *columns) == out
