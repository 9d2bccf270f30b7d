"""Scores of parse trees against counts made by hand."""

from __future__ import annotations

import pytest

from maxmargin.scores.trees import COLLINS, PLAIN, evaluate_trees
from maxmargin.trees import Tree

TRUE = Tree.parse(
    "(S (NP (DT the) (NN man)) (, ,) (VP (VBD saw) (NP (DT the) (NN dog)) "
    "(PP (IN with) (NP (DT the) (NN telescope)))) (. .))"
)
GUESS = Tree.parse(
    "(S (NP (DT the) (NN man)) (, ,) (VP (VBD saw) (NP (NP (DT the) (NN dog)) "
    "(PP (IN with) (NP (DT the) (NN telescope)))) (. .)))"
)


def parsed(*texts):
    return [Tree.parse(text) for text in texts]


def test_brackets_by_hand():
    assert COLLINS.brackets(TRUE) == {
        ("S", 0, 8): 1,
        ("NP", 0, 2): 1,
        ("VP", 2, 8): 1,
        ("NP", 3, 5): 1,
        ("PP", 5, 8): 1,
        ("NP", 6, 8): 1,
    }
    assert PLAIN.brackets(TRUE) == {
        ("S", 0, 10): 1,
        ("NP", 0, 2): 1,
        ("VP", 3, 9): 1,
        ("NP", 4, 6): 1,
        ("PP", 6, 9): 1,
        ("NP", 7, 9): 1,
    }


def test_a_sentence_by_hand():
    # The guess has one NP more. Without punctuation its VP ends where the true one does.
    report = evaluate_trees([TRUE], [GUESS])
    assert (report.n_true, report.n_predicted, report.n_correct) == (6, 7, 6)
    assert report.precision == pytest.approx(6 / 7)
    assert report.recall == 1
    assert report.f1 == pytest.approx(12 / 13)
    assert (report.exact, report.n_crossing, report.n_without_crossing) == (0, 0, 1)
    plain = evaluate_trees([TRUE], [GUESS], PLAIN)
    assert (plain.n_true, plain.n_predicted, plain.n_correct) == (6, 7, 5)
    assert "F1 92.31 %" in str(report)


def test_micro_averages():
    report = evaluate_trees([TRUE, TRUE, TRUE], [GUESS, TRUE, None])
    assert (report.n_true, report.n_predicted, report.n_correct) == (18, 13, 12)
    assert report.f1 == pytest.approx(24 / 31)
    assert report.exact == pytest.approx(1 / 3)
    assert (report.n_without_tree, report.n_without_crossing, report.n_trees) == (1, 2, 3)
    assert [row.n_correct for row in report.sentences] == [6, 6, 0]
    found = report.to_dict()
    assert found["f1"] == report.f1
    assert found["n_without_tree"] == 1
    assert evaluate_trees([], []).f1 == 0


def test_crossing_brackets():
    true, guess = parsed(
        "(S (A (X a) (X b)) (B (X c) (X d)))", "(S (X a) (C (X b) (D (X c) (X d))))"
    )
    report = evaluate_trees([true], [guess])
    # C spans b c d and crosses A; D spans c d.
    assert (report.n_correct, report.n_crossing, report.crossing) == (1, 1, 1)
    assert report.n_without_crossing == 0


def test_equal_brackets_are_matched_one_to_one():
    twice, once = parsed("(S (NP (NP (NN a))) (X b))", "(S (NP (NN a)) (X b))")
    found = evaluate_trees([twice], [once])
    assert (found.n_true, found.n_predicted, found.n_correct) == (3, 2, 2)
    found = evaluate_trees([once], [twice])
    assert (found.n_true, found.n_predicted, found.n_correct) == (2, 3, 2)


def test_labels_of_evalb():
    true, guess = parsed("(TOP (S (ADVP (RB a)) (X b)))", "(S (PRT (RB a)) (X b))")
    assert evaluate_trees([true], [guess]).exact == 1
    assert evaluate_trees([true], [guess], PLAIN).n_correct == 1
    true, guess = parsed("(S (NP-SBJ-1 (NN a)) (VP=2 (X b)))", "(S (NP (NN a)) (VP (X b)))")
    assert evaluate_trees([true], [guess]).exact == 1
    assert COLLINS.label("-LRB-") == "-LRB-"


def test_nodes_above_punctuation_alone_are_removed():
    true, guess = parsed("(S (NP (NN a)) (PRN (: -)))", "(S (NP (NN a)) (: -))")
    assert evaluate_trees([true], [guess]).exact == 1
    assert evaluate_trees([true], [guess], PLAIN).exact == 0


def test_tags_of_the_truth_decide_what_is_removed():
    true, guess = parsed("(S (NP (NN a)) (POS '))", "(S (NP (NN a)) ('' '))")
    assert evaluate_trees([true], [guess]).exact == 1


def test_other_words():
    other = Tree.parse("(S (NP (DT the) (NN man)))")
    with pytest.raises(ValueError, match="sentence 1: the predicted tree has 2 words, the true"):
        evaluate_trees([TRUE, TRUE], [TRUE, other])
    other = Tree.parse(str(TRUE).replace("dog", "cat"))
    with pytest.raises(ValueError, match="sentence 0: word 5 of the predicted tree is 'cat'"):
        evaluate_trees([TRUE], [other])
    with pytest.raises(ValueError, match="1 true trees, but 0 predicted"):
        evaluate_trees([TRUE], [])
