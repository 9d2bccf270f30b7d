"""Tables of labels and errors."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import label_report
from maxmargin.label_report import (
    confusion_dict,
    errors_text,
    frequent_errors,
    label_averages,
    label_dict,
    labels_text,
)
from maxmargin.metrics import evaluate

PAIRS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1)


@given(PAIRS)
def test_counts(pairs):
    report = evaluate([[a for a, _ in pairs]], [[b for _, b in pairs]])
    wrong = Counter(pair for pair in pairs if pair[0] != pair[1])
    errors = frequent_errors(report)
    assert {(e["truth"], e["predicted"]): e["count"] for e in errors} == wrong
    assert [e["count"] for e in errors] == sorted(wrong.values(), reverse=True)
    for error in errors:
        assert error["of_errors"] == error["count"] / sum(wrong.values())
        truth = sum(a == error["truth"] for a, _ in pairs)
        assert error["of_truth"] == error["count"] / truth
    table = confusion_dict(report)
    assert table["labels"] == sorted({x for pair in pairs for x in pair})
    assert sum(map(sum, table["counts"])) == len(pairs)
    assert set(label_dict(report)) == set(table["labels"])
    recalls = [
        sum(p == (x, x) for p in pairs) / sum(a == x for a, _ in pairs)
        for x in {a for a, _ in pairs}
    ]
    assert label_averages(report)["macro_recall"] == pytest.approx(sum(recalls) / len(recalls))
    assert len(labels_text(report).split("\n")) == len(table["labels"]) + 2
    assert (errors_text(report) == "") == (not wrong)


def test_rare_labels_are_left_out_of_the_text():
    labels = [f"L{k:02d}" for k in range(40) for _ in range(40 - k)]
    text = labels_text(evaluate([labels], [labels]))
    assert "... and 10 rarer labels" in text
    assert "L29" in text
    assert "L30" not in text


def test_large_matrices_are_left_out(monkeypatch):
    monkeypatch.setattr(label_report, "MATRIX", 2)
    report = evaluate([["a", "b", "c"]], [["a", "b", "b"]])
    assert confusion_dict(report) is None
    assert len(confusion_dict(report, whole=True)["labels"]) == 3


def test_nothing():
    report = evaluate([], [])
    assert label_averages(report)["macro_f1"] == 0
    assert errors_text(report) == ""
    assert confusion_dict(report) == {"labels": [], "counts": []}


def test_labels_do_not_move_the_cursor():
    report = evaluate([["\x1b[31m", "b"]], [["b", "b"]])
    assert "\x1b" not in labels_text(report) + errors_text(report)
