"""Attachment scores."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.io.conllu_trees import read_dependencies
from maxmargin.scores.dependencies import attachment_counts, attachment_scores, punctuation
from real_data import data_file

GOLD = [np.array([2, 0, 2]), np.array([0])]
FOUND = [[2, 0, 1], [0]]
GOLD_NAMES = [["nsubj:pass", "root", "punct"], ["root"]]
NAMES = [["nsubj", "parataxis", "punct"], ["root:x"]]


def test_scores():
    assert attachment_scores(GOLD, FOUND) == {"uas": 0.75, "las": None, "n": 4}
    assert attachment_scores(GOLD, FOUND, GOLD_NAMES, NAMES) == {"uas": 0.75, "las": 0.5, "n": 4}
    assert attachment_counts(GOLD, FOUND, GOLD_NAMES, NAMES).tolist() == [[3, 2, 1], [1, 1, 1]]


def test_a_wrong_head_with_the_right_relation_is_wrong():
    assert attachment_scores([[0, 1, 1]], [[0, 1, 2]], [["a"] * 3], [["a"] * 3])["las"] == 2 / 3


def test_without_punctuation():
    keep = [~mask for mask in punctuation([["N", "V", "PUNCT"], ["X"]], "upos")]
    scores = attachment_scores(GOLD, FOUND, GOLD_NAMES, NAMES, keep=keep)
    assert scores == {"uas": 1.0, "las": 2 / 3, "n": 3}


def test_what_is_punctuation():
    def which(words, by):
        return punctuation([words], by)[0].tolist()

    assert which(["PUNCT", "SYM", "punct"], "upos") == [True, False, False]
    assert which(["``", "''", ",", ":", "."], "xpos") == [True] * 5
    assert which(["-LRB-", "$", "NN"], "xpos") == [False] * 3
    words = ["...", "\u00ab", "-", "$", "a.", "", "\u3002"]
    assert which(words, "form") == [True, True, True, False, False, False, True]
    with pytest.raises(ValueError, match="by is 'tag'"):
        punctuation([], "tag")


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.integers(0, 3),
                st.sampled_from(["a", "a:b", "b"]),
                st.sampled_from(["a", "a:c", "b"]),
                st.booleans(),
            ),
            min_size=1,
        ),
        min_size=1,
    )
)
def test_against_a_plain_count(sentences):
    columns = [[[row[k] for row in rows] for rows in sentences] for k in range(5)]
    rows = [row for sentence in sentences for row in sentence if row[4]]
    arguments = columns[:4]
    if not rows:
        with pytest.raises(ValueError, match="no words that count"):
            attachment_scores(*arguments, keep=columns[4])
        return
    scores = attachment_scores(*arguments, keep=columns[4])
    assert scores["n"] == len(rows)
    assert scores["uas"] == sum(a == b for a, b, *_ in rows) / len(rows)
    assert scores["las"] == sum(a == b and r[0] == s[0] for a, b, r, s, _ in rows) / len(rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((GOLD, FOUND[:1]), "found predicted heads of 1 sentences; expected 2"),
        ((GOLD, FOUND, GOLD_NAMES), "found relations on one side only"),
        ((GOLD, FOUND, GOLD_NAMES, NAMES[:1]), "found predicted relations of 1 sentences"),
        ((GOLD, [[2, 0, 2], [0, 1]]), "sentence 1: found predicted heads of shape (2,)"),
        ((GOLD, FOUND, [["a"], ["b"]], NAMES), "sentence 0: found true relations of shape (1,)"),
        (([], []), "found no words that count"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        attachment_scores(*arguments)


def test_bad_keep():
    with pytest.raises(ValueError, match="sentence 1: found words to keep"):
        attachment_scores(GOLD, FOUND, keep=[[True] * 3, []])


@pytest.mark.data
def test_heads_to_the_left_neighbour_on_real_text():
    sentences = read_dependencies(data_file("wsj_sample_dep/test.conllu.gz"))
    gold = [s.heads for s in sentences]
    chains = [np.arange(len(s)) for s in sentences]
    keep = [~mask for mask in punctuation([s.xpos for s in sentences], "xpos")]
    everything, words = attachment_scores(gold, chains), attachment_scores(gold, chains, keep=keep)
    assert everything["n"] == 12146
    plain = [
        head == k
        for s in sentences
        for k, (head, tag) in enumerate(zip(s.heads, s.xpos, strict=True))
        if tag not in ("``", "''", ",", ":", ".")
    ]
    assert words == {"uas": sum(plain) / len(plain), "las": None, "n": len(plain)}
    assert len(plain) < 11000
    assert attachment_scores(gold, gold, keep=keep)["uas"] == 1
