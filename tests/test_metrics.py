"""Chunk scores against a plain token-by-token twin of conlleval, by hand, and on real data."""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxmargin.metrics import ChunkScore, confusion_text, evaluate, evaluate_codes
from real_data import read_columns

# --- the twin: the same rules, one token after the other ---

ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
STARTS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}


def chunk_ends(before, now):
    (prefix, kind), (next_prefix, next_kind) = before, now
    if prefix in ("[", "]", "S"):
        return True
    if prefix in ("B", "I", "E") and next_prefix == "S":
        return True
    if prefix == "E" and next_prefix == "B":
        return True
    if len(prefix) == 1 and prefix + next_prefix in ENDS:
        return True
    return prefix not in ("O", ".") and kind != next_kind


def chunk_starts(before, now):
    (prefix, kind), (next_prefix, next_kind) = before, now
    if next_prefix in ("[", "]", "S"):
        return True
    if prefix == "S" and next_prefix in ("B", "I", "E"):
        return True
    if prefix == "E" and next_prefix == "B":
        return True
    if len(prefix) == 1 and prefix + next_prefix in STARTS:
        return True
    return next_prefix not in ("O", ".") and kind != next_kind


def split_tag(tag):
    prefix, kind = tag.split("-", 1) if "-" in tag else (tag, "")
    return prefix, "" if kind == "0" else kind


def twin(truth, predicted):
    """Return counts of tokens, right tokens, and chunks (true, predicted, correct) with types."""
    found, guessed, correct = Counter(), Counter(), Counter()
    n_tokens = n_right = 0
    underway = False
    last_true = last_guess = ("O", "")
    for row, other in zip(truth, predicted, strict=True):
        for k, (tag, guess) in enumerate(zip([*row, "O"], [*other, "O"], strict=True)):
            now_true, now_guess = split_tag(tag), split_tag(guess)
            true_end = chunk_ends(last_true, now_true)
            guess_end = chunk_ends(last_guess, now_guess)
            true_start = chunk_starts(last_true, now_true)
            guess_start = chunk_starts(last_guess, now_guess)
            if underway:
                if true_end and guess_end and last_true[1] == last_guess[1]:
                    underway = False
                    correct[last_true[1]] += 1
                elif true_end != guess_end or now_true[1] != now_guess[1]:
                    underway = False
            if true_start and guess_start and now_true[1] == now_guess[1]:
                underway = True
            if true_start:
                found[now_true[1]] += 1
            if guess_start:
                guessed[now_guess[1]] += 1
            if k < len(row):
                n_tokens += 1
                n_right += now_true == now_guess
            last_true, last_guess = now_true, now_guess
    if underway:
        correct[last_true[1]] += 1
    return n_tokens, n_right, found, guessed, correct


def assert_as_twin(truth, predicted):
    report = evaluate(truth, predicted)
    n_tokens, n_right, found, guessed, correct = twin(truth, predicted)
    assert report.n_tokens == n_tokens
    if report.has_chunks:
        assert report.n_correct_tokens == n_right
        totals = sum(found.values()), sum(guessed.values()), sum(correct.values())
        assert report.chunks == ChunkScore(*totals)
        types = sorted({*found, *guessed})
        assert list(report.per_type) == types
        for name in types:
            expected = ChunkScore(found[name], guessed[name], correct[name])
            assert report.per_type[name] == expected, name
    else:
        assert report.chunks == ChunkScore(0, 0, 0)
        assert report.per_type == {}
        assert math.isnan(report.f1)
    return report


IOB = ["O", "B-A", "I-A", "B-B", "I-B"]
IOBES = [*IOB, "E-A", "S-A", "E-B", "S-B"]
ODD = [
    *["B-", "-X", "I", "B", "B-A-B", "I-A-B", "[", "]", ".", "[-A", "]-A", ".-A", "", "-", "--"],
    *["M-A", "M", "NN", "O-A", "E", "S", "B-0", "I-0", "M-0", "b-A", "BB", "BI-A"],
]


def pairs_of_sequences(tags):
    tokens = st.lists(st.tuples(st.sampled_from(tags), st.sampled_from(tags)), max_size=8)
    return st.lists(tokens, max_size=4)


def unzip(pairs):
    return [[a for a, _ in row] for row in pairs], [[b for _, b in row] for row in pairs]


@settings(max_examples=300, deadline=None)
@given(
    pairs=st.one_of(
        pairs_of_sequences(IOB[:3]),
        pairs_of_sequences(IOB),
        pairs_of_sequences(["O", "I-A", "I-B", "B-A"]),
        pairs_of_sequences(IOBES),
        pairs_of_sequences([*IOBES, *ODD]),
    )
)
@example(pairs=[[("B", "B"), ("M", "M")], [("B-A", "B-A")]])  # a chunk that O does not end
@example(pairs=[[("B-A", "B-A")], [("B", "B"), ("M", "M")]])  # nor the end of the file
def test_against_the_twin(pairs):
    assert_as_twin(*unzip(pairs))


@pytest.mark.parametrize("tags", [IOB, IOBES, [*IOBES, *ODD]], ids=["iob", "iobes", "odd"])
def test_long_sequences_against_the_twin(tags):
    rng = random.Random(5)
    truth = [rng.choices(tags, k=rng.randrange(60)) for _ in range(100)]
    # Mostly right, or hardly any chunk would be.
    predicted = [[tag if rng.random() < 0.9 else rng.choice(tags) for tag in row] for row in truth]
    report = assert_as_twin(truth, predicted)
    assert 0.3 < report.f1 < 0.95


# --- by hand ---


def scores(truth, predicted):
    report = evaluate([truth.split()], [predicted.split()])
    return report.n_true_chunks, report.n_predicted_chunks, report.n_correct_chunks


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        ("B-A I-A O B-B", "B-A I-A O B-B", (2, 2, 2)),
        ("B-A I-A O B-B", "B-A O O B-B", (2, 2, 1)),  # too short
        ("B-A O O B-B", "B-A I-A O B-B", (2, 2, 1)),  # too long
        ("B-A I-A", "B-B I-B", (1, 1, 0)),  # wrong type
        ("B-A I-A", "B-A I-B", (1, 2, 0)),  # a change of type begins a chunk
        ("B-A B-A", "B-A I-A", (2, 1, 0)),
        ("I-A I-A O", "B-A I-A O", (1, 1, 1)),  # IOB1 and IOB2 of one chunk
        ("I-A B-A I-A", "B-A B-A I-A", (2, 2, 2)),
        ("I-A I-B", "B-A B-B", (2, 2, 2)),
        ("I-A E-A I-A", "I-A E-A I-A", (2, 2, 2)),  # IOE
        ("S-A B-A E-A B-A I-A E-A", "B-A B-A I-A B-A I-A I-A", (3, 3, 3)),  # IOBES as IOB2
        ("S-A S-A", "S-A S-A", (2, 2, 2)),
        ("S-A E-A S-B I-B", "S-A E-A S-B I-B", (4, 4, 4)),
        ("B-A-B I-A-B", "B-A-B I-A-C", (1, 2, 0)),  # the first hyphen splits
        ("B-A O", "O O", (1, 0, 0)),
    ],
)
def test_by_hand(truth, predicted, expected):
    assert scores(truth, predicted) == expected


def test_chunks_end_with_their_sequence():
    report = evaluate([["B-A"], ["I-A"]], [["B-A"], ["I-A"]])
    assert report.n_true_chunks == report.n_correct_chunks == 2
    joined = evaluate([["B-A", "I-A"]], [["B-A", "I-A"]])
    assert joined.n_true_chunks == 1
    assert evaluate([[], ["B-A"], []], [[], ["B-A"], []]).n_correct_sequences == 3


def test_report():
    truth = [["B-NP", "I-NP", "O", "B-VP"], ["O", "B-PP"], ["B-NP"]]
    predicted = [["B-NP", "I-NP", "O", "B-NP"], ["O", "O"], ["B-NP"]]
    report = evaluate(truth, predicted)
    assert (report.n_tokens, report.n_sequences) == (7, 3)
    assert report.token_accuracy == pytest.approx(5 / 7)
    assert report.sequence_accuracy == pytest.approx(1 / 3)
    assert report.precision == pytest.approx(2 / 3)
    assert report.recall == pytest.approx(2 / 4)
    assert report.f1 == pytest.approx(4 / 7)
    assert report.per_type == {
        "NP": ChunkScore(2, 3, 2),
        "PP": ChunkScore(1, 0, 0),
        "VP": ChunkScore(1, 0, 0),
    }
    assert report.labels == ("B-NP", "B-PP", "B-VP", "I-NP", "O")
    assert report.confusion.dtype == np.int64
    assert report.confusion.tolist() == [
        [2, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0, 2],
    ]
    assert report.per_label["O"] == ChunkScore(2, 3, 2)
    assert report.per_label["B-NP"].precision == pytest.approx(2 / 3)
    assert report.per_label["B-PP"].recall == 0.0
    assert str(report) == report.text()
    assert report.text().split("\n") == [
        "processed 7 tokens with 4 phrases; found: 3 phrases; correct: 2.",
        "accuracy:  71.43%; precision:  66.67%; recall:  50.00%; FB1:  57.14",
        "               NP: precision:  66.67%; recall: 100.00%; FB1:  80.00  3",
        "               PP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
        "               VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0",
    ]


def test_the_layout_of_conlleval():
    n_tokens, score = 47377, ChunkScore(23852, 23843, 22315)
    report = evaluate([["B-NP"]], [["B-NP"]])
    changed = type(report)(
        **{
            **{k: v for k, v in vars(report).items() if k in report.__dataclass_fields__},
            "n_tokens": n_tokens,
            "n_correct_tokens": 45373,
            "chunks": score,
            "per_type": {"ADJP": ChunkScore(438, 417, 333)},
        }
    )
    assert changed.text() == (
        "processed 47377 tokens with 23852 phrases; found: 23843 phrases; correct: 22315.\n"
        "accuracy:  95.77%; precision:  93.59%; recall:  93.56%; FB1:  93.57\n"
        "             ADJP: precision:  79.86%; recall:  76.03%; FB1:  77.89  417"
    )


def test_nothing_found_scores_zero():
    report = evaluate([["B-A", "I-A", "O"]], [["O", "O", "O"]])
    assert report.has_chunks
    assert (report.precision, report.recall, report.f1) == (0.0, 0.0, 0.0)
    assert report.token_accuracy == pytest.approx(1 / 3)


def test_to_dict_is_json():
    report = evaluate([["B-A", "O"]], [["B-A", "B-B"]])
    ones, zeros = (dict.fromkeys(("precision", "recall", "f1"), v) for v in (1.0, 0.0))
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == {
        "token_accuracy": 0.5,
        "sequence_accuracy": 0.0,
        "f1": pytest.approx(2 / 3),
        "precision": 0.5,
        "recall": 1.0,
        "n_tokens": 2,
        "n_sequences": 1,
        "n_true_chunks": 1,
        "n_predicted_chunks": 2,
        "n_correct_chunks": 1,
        "per_type": {
            "A": {**ones, "n_true": 1, "n_predicted": 1, "n_correct": 1},
            "B": {**zeros, "n_true": 0, "n_predicted": 1, "n_correct": 0},
        },
    }


@pytest.mark.parametrize(
    "labels",
    [["NN", "VB", "I"], ["-LRB-", "O", "--"], [1, 2, (3, 4)], ["O"], ["B", "B-", "X"][::2]],
)
def test_labels_that_are_no_chunk_tags(labels):
    report = evaluate([labels, labels], [labels, labels[::-1]])
    assert not report.has_chunks
    assert math.isnan(report.f1)
    assert math.isnan(report.precision)
    assert math.isnan(report.recall)
    result = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert result["f1"] is result["precision"] is result["recall"] is None
    assert result["per_type"] == {}
    assert set(report.per_label) == {str(label) for label in labels}
    assert "phrases" not in str(report)


def test_text_without_chunks():
    report = evaluate([["NN", "VB"], ["NN"]], [["NN", "NN"], ["NN"]])
    assert str(report) == (
        "processed 3 tokens in 2 sequences.\naccuracy:  66.67%; of sequences:  50.00%"
    )


@pytest.mark.parametrize("sequences", [[], [[]], [[], []]])
def test_no_tokens(sequences):
    report = evaluate(sequences, sequences)
    assert report.n_tokens == 0
    assert report.to_dict()["token_accuracy"] is None
    assert report.to_dict()["sequence_accuracy"] == (1.0 if sequences else None)
    assert str(report) == f"processed 0 tokens in {len(sequences)} sequences."
    assert confusion_text(report) == "0 of 0 tokens are confused, 0 pairs"


def test_labels_of_other_kinds():
    truth = [np.array([1, 2, 2]), (True,)]
    report = evaluate(truth, [[1, 2, 1], [1]])
    assert report.labels == ("1", "2")
    assert report.confusion.tolist() == [[2, 0], [1, 1]]
    assert evaluate(np.array([["B-A", "O"]]), iter([iter(["B-A", "O"])])).f1 == 1.0


# --- codes ---


def test_codes_as_names():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    truth, predicted = rng.integers(0, len(IOBES), (2, offsets[-1]))
    by_code = evaluate_codes(truth.astype(np.int32), predicted.astype(np.uint8), offsets, IOBES)
    names = np.array(IOBES, dtype=object)
    by_name = evaluate(*(np.split(names[codes], offsets[1:-1]) for codes in (truth, predicted)))
    assert by_code.to_dict() == by_name.to_dict()
    assert by_code.per_label == by_name.per_label
    assert by_code.labels == tuple(IOBES)


def test_labels_that_do_not_occur():
    report = evaluate_codes([0, 1], [0, 0], [0, 2], ["NN", "VB", "B-A"])
    assert not report.has_chunks  # what counts is what the truth holds
    assert report.confusion.shape == (3, 3)
    assert list(report.per_label) == ["NN", "VB"]


def test_there_is_no_loop_over_tokens():
    """Counted in lines of Python that are run."""
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, len(IOBES), (2, 100_000))
    offsets = np.arange(0, 100_001, 20)
    n_lines = 0

    def count(frame, event, argument):
        nonlocal n_lines
        n_lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        report = evaluate_codes(truth, predicted, offsets, IOBES)
    finally:
        sys.settrace(before)
    assert 0 < n_lines < 5000
    assert report.n_sequences == 5000


# --- bad input ---


@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([["O"]], [], "truth has 1 sequences, predicted has 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sequence 1: truth has 2 labels, predicted has 1"),
        (["B-NP"], ["B-NP"], "sequence 0 of truth is 'B-NP', expected a sequence of labels"),
        ("O", "O", "truth is a string"),
        ([["O"]], [3], "sequence 0 of predicted is 3, expected"),
        ([["O"], [["O"]]], [["O"], ["O"]], "sequence 1 of truth: a label is not hashable.*list"),
        ([[1]], [["1"]], "two different labels are both named '1'"),
    ],
)
def test_bad_sequences(truth, predicted, message):
    with pytest.raises(ValueError, match=message):
        evaluate(truth, predicted)


@pytest.mark.parametrize(
    ("truth", "predicted", "offsets", "labels", "message"),
    [
        ([0, 0], [0], [0, 2], ["O"], "truth has 2 tokens, predicted has 1"),
        ([0.0], [0], [0, 1], ["O"], "truth must be one row of integers, got float64"),
        ([0], [[0]], [0, 1], ["O"], r"predicted must be .* of shape \(1, 1\)"),
        ([0], [0], [], ["O"], "offsets must go from 0 to the 1 tokens, got nothing"),
        ([0], [0], [0, 2], ["O"], "offsets must go from 0 to the 1 tokens, got 0 to 2"),
        ([0], [0], [1, 1], ["O"], "got 1 to 1"),
        ([0] * 3, [0] * 3, [0, 2, 1, 3], ["O"], "must not fall, but sequence 1 ends before"),
        ([0, 0, 1], [0] * 3, [0, 1, 1, 3], ["O"], "sequence 2: token 1 of truth has the code 1"),
        ([0], [-1], [0, 1], ["O"], "sequence 0: token 0 of predicted has the code -1.* 1 labels"),
        ([0], [0], [0, 1], ["O", "O"], "both named 'O'"),
    ],
)
def test_bad_codes(truth, predicted, offsets, labels, message):
    with pytest.raises(ValueError, match=message):
        evaluate_codes(truth, predicted, offsets, labels)


# --- confusions ---


def test_confusion_text():
    report = evaluate([["N", "V", "V", "V", "ADJ"]], [["N", "N", "V", "N", "N"]])
    assert confusion_text(report).split("\n") == [
        "3 of 5 tokens are confused, 2 pairs",
        "",
        "truth  predicted  tokens  of the truth",
        "V      N               2        66.67%",
        "ADJ    N               1       100.00%",
        "",
        "truth \\ predicted  ADJ  N  V",
        "ADJ                  0  1  0",
        "N                    0  1  0",
        "V                    0  2  1",
    ]
    assert confusion_text(report, most=1, matrix=2).split("\n")[2:] == [
        "truth  predicted  tokens  of the truth",
        "V      N               2        66.67%",
    ]
    assert confusion_text(report, most=0, matrix=0) == "3 of 5 tokens are confused, 2 pairs"


# --- real data ---


@pytest.mark.data
def test_conll2000():
    truth = [[row[-1] for row in rows] for rows in read_columns("conll2000/test.tsv.gz")]
    report = evaluate(truth, truth)
    assert (report.n_tokens, report.n_true_chunks) == (47377, 23852)  # as the task publishes
    assert report.f1 == report.token_accuracy == report.sequence_accuracy == 1.0
    assert report.per_type["NP"].n_true == 12422
    iob1 = [
        [
            "I" + tag[1:] if tag[0] == "B" and before[2:] != tag[2:] else tag
            for before, tag in zip(["O", *row], row, strict=False)
        ]
        for row in truth
    ]
    other = evaluate(truth, iob1)
    assert other.f1 == 1.0  # the same chunks, written differently
    assert other.token_accuracy < 0.8
    rng = random.Random(0)
    tags = sorted({tag for row in truth for tag in row})
    noisy = [[tag if rng.random() < 0.95 else rng.choice(tags) for tag in row] for row in truth]
    assert_as_twin(truth, noisy)
