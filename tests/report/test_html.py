"""The page about a model: markup, axes, charts, costly errors."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from html_checks import Page
from maxmargin import SequenceTagger
from maxmargin.features.columns import ColumnTable
from maxmargin.features.token_texts import TokenTexts
from maxmargin.report.html import axes, charts
from maxmargin.report.html.content import Confidence, Content, Course
from maxmargin.report.html.costly import costly_errors, window
from maxmargin.report.html.markup import Markup, count, element, foreign, number, percent
from maxmargin.report.html.page import page
from maxmargin.scores.calibration import reliability
from maxmargin.selection.encoded import Encoded
from maxmargin.solvers import Certificate, PassRecord

NAN = math.nan


def record(n, seconds, *, gap=NAN, estimate=NAN, primal=NAN, dual=1.0):
    return PassRecord(n, "exact", seconds, 10 * n, primal, dual, gap, estimate, 5)


def places(chart, kind):
    found = re.findall(r'<circle class="([^"]*)" cx="([^"]*)" cy="([^"]*)"', chart)
    return [(float(x), float(y)) for name, x, y in found if name == kind]


def test_texts_are_escaped_and_markup_is_not():
    made = element("p", "<b>", Markup("<i>&amp;</i>"), ["a", None, ("&",)], title='"<', class_="x")
    assert made == '<p title="&quot;&lt;" class="x">&lt;b&gt;<i>&amp;</i>a&amp;</p>'
    assert element("details", open=True, hidden=False, id=None) == "<details open></details>"


def test_foreign_texts_are_safe_and_short():
    assert foreign("</script>\x1b\u202e") == "<bdi>&lt;/script&gt;\\x1b\\u202e</bdi>"
    long = foreign("ab" * 500, 20)
    shown = re.fullmatch(r'<bdi title="([^"]*)">([^<]*)</bdi>', long)
    assert shown is not None
    assert len(shown[2]) == 20
    assert len(shown[1]) <= 400


def test_numbers_have_their_exact_value():
    assert count(1234567) == '<data value="1234567">1\u202f234\u202f567</data>'
    assert percent(1 / 3) == f'<data value="{1 / 3!r}">33.33\u202f%</data>'
    assert percent(2e-6) == '<data value="2e-06">0.0002\u202f%</data>'
    assert percent(0.0) == '<data value="0.0">0.00\u202f%</data>'
    assert percent(None) == percent(NAN) == "\u2013"
    assert number(math.inf) == "\u221e"
    assert number(NAN) == "\u2013"
    assert number(0.1234567) == '<data value="0.1234567">0.1235</data>'


def test_the_window_has_what_is_around_errors():
    wrong = [False] * 20
    wrong[3] = wrong[12] = True
    assert window(wrong, around=2) == [None, 1, 2, 3, 4, 5, None, 10, 11, 12, 13, 14, None]
    assert window([True, True], around=2) == [0, 1]
    assert window([True] * 100, around=2, most=5) == [0, 1, 2, 3, 4, None]


@pytest.mark.parametrize(
    "values",
    [[0.0], [5.0, 5.0], [1e-9, 2e-9], [-3.0, 8.5], [0, 1e7], [1e6, 1e6 + 1e-3], [99.1, 99.13]],
)
def test_linear_axes_hold_all_values_at_places_in_order(values):
    axis = axes.linear(values)
    shares = [axis.share(value) for value in sorted(values)]
    assert shares == sorted(shares)
    slack = 1e-9 * max(map(abs, values))  # of rounding
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 12
    texts = [text for _, text in axis.ticks]
    assert len(set(texts)) == len(texts) or max(values) - min(values) < 1e-2


def test_logarithmic_axes_end_at_powers_of_ten():
    axis = axes.log([0.003, 0.5], percent=True)
    assert [text for _, text in axis.ticks] == ["0.1\u202f%", "1\u202f%", "10\u202f%", "100\u202f%"]
    assert axis.share(0.01) == pytest.approx(1 / 3)
    assert axis.share(0.0) == 0


def test_the_gap_is_where_it_belongs():
    history = [record(1, 1.0, estimate=0.5), record(2, 2.0, gap=0.1), record(3, 4.0, gap=0.01)]
    chart = charts.gap_chart(history, 0.02, 0.01, None)
    (x1, y1), (x2, y2) = places(chart, "dot first")
    axis = axes.linear([0, 4.0])
    assert (x1, x2) == (pytest.approx(axis.x(2.0), abs=0.06), pytest.approx(axis.x(4.0), abs=0.06))
    assert y2 > y1  # smaller is lower
    assert places(chart, "mark") == [(x2, y2)]
    assert "percent" in chart
    assert charts.gap_chart([record(1, 1.0)], 0.02, 0.01, None) is None
    assert charts.gap_chart([record(1, 1.0, gap=0.0)], None, 0.0, None) is None


def test_long_histories_are_thinned():
    history = [record(k, k, gap=1 / k, primal=1 + 1 / k, dual=1 - 1 / k) for k in range(1, 5000)]
    for chart in (charts.gap_chart(history, 0.01, 1e-4, None), charts.objective_chart(history)):
        assert chart is not None
        assert len(chart) < 20_000


def test_scores_over_time_mark_the_pass_that_was_kept():
    history = [record(k, float(k)) for k in range(1, 4)]
    scores = [{"pass": k, "f1": f1} for k, f1 in enumerate((0.8, 0.9, 0.85), 1)]
    chart = charts.score_chart(history, scores, 2)
    assert places(chart, "mark") == [places(chart, "dot first")[1]]
    assert "F1 in %" in chart
    assert charts.score_chart(history, scores[:1], 1) is None
    assert charts.score_chart(history, [{"pass": 1, "f1": None}], None) is None


def test_lengths_are_counted_once_each():
    lengths = np.array([1] * 10 + [2] * 20 + [3] * 5 + [400])
    chart = charts.length_chart(lengths, "training data")
    heights = [float(h) for h in re.findall(r'class="column"[^>]*height="([^"]*)"', chart)]
    assert heights[0] == pytest.approx(heights[1] / 2, abs=0.1)
    assert charts.length_chart(np.array([4, 4]), "x") is None


def test_the_reliability_diagram_has_a_dot_for_each_bin():
    found = reliability([0.05, 0.95, 0.96, 0.5], [False, True, True, False], n_bins=10)
    chart = charts.reliability_chart(Confidence(0.5, True, found, found))
    assert len(places(chart, "dot first")) == 3
    assert len(places(chart, "dot faint")) == 3
    assert f"{found.error:.4f}" in chart
    same = charts.reliability_chart(Confidence(1.0, False, found, found))
    assert places(same, "dot faint") == []


def tagger_and_data():
    X = [[["a"], ["b"]], [["b"], ["a"], ["b"]], [["a"]]] * 5
    y = [["A", "B"], ["B", "A", "B"], ["A"]] * 5
    tagger = SequenceTagger(C=1.0, random_state=0).fit(X, y)
    return tagger, X


def test_costs_are_loss_and_score_above_the_truth():
    tagger, _ = tagger_and_data()
    X = [[["a"], ["b"], ["a"]], [["b"]], [["a"], ["a"]]]
    y = [["A", "A", "B"], ["B"], ["A", "new"]]
    chain = tagger.structure_
    names = [*map(str, chain.labels_), "new"]
    code = {name: k for k, name in enumerate(names)}
    batch = chain.encoded(X)
    truth = np.array([code[label] for row in y for label in row], dtype=np.int32)
    predicted = chain.predict_encoded(batch, tagger.weights_)
    data = Encoded(batch, truth, names)
    texts = TokenTexts(X, batch.offsets)
    found, reason = costly_errors(chain, tagger.weights_, data, predicted, texts, most=9)
    assert reason == ""
    best = tagger.predict(X)
    score = tagger.score_labellings([X[0], X[0]], [list(best[0]), y[0]])
    assert [error.sequence for error in found] == [0, 2]
    assert found[0].loss == sum(a != b for a, b in zip(best[0], y[0], strict=True))
    assert found[0].cost == pytest.approx(found[0].loss + score[0] - score[1])
    assert found[1].cost == found[1].loss == 1  # the score of an unknown label is not known
    shown = [token for token in found[0].tokens if token is not None]
    assert [token.text for token in shown] == ["a", "b", "a"]
    assert [token.truth for token in shown] == y[0]
    assert [token.predicted for token in shown] == list(best[0])


def test_words_are_found_in_features():
    class Frame:
        def __init__(self, rows):
            self.iloc = self
            self._rows = rows

        def __getitem__(self, place):
            return self._rows[place[0]][place[1]]

    offsets = np.array([0, 2])
    for sequence, columns, wanted in [
        ([{"b": 1.0, "word": "dog"}, {"b": 1.0, "word.lower()": "cat"}], False, ["dog", "cat"]),
        ([{"x": 2.0}, {"pos": "NN"}], False, ["x", "NN"]),
        ([["cap", "w=dog"], ["cap"]], False, ["dog", "cap"]),
        ([["dog", "w=x"], ["cat", "NN"]], True, ["dog", "cat"]),
        (["dog", "cat"], True, ["dog", "cat"]),
        (np.zeros((2, 3)), False, ["", ""]),
        (([["w=a"], ["w=b"]], np.zeros((2, 1))), False, ["a", "b"]),
        (Frame([["dog", 1], ["cat", 2]]), True, ["dog", "cat"]),
    ]:
        texts = TokenTexts([sequence], offsets, columns=columns)
        assert [texts[t] for t in range(2)] == wanted
    table = ColumnTable.from_rows([[["dog", "NN"]], [["cat", "NN"]]])
    texts = TokenTexts(table, np.array([0, 1, 2]))
    assert [texts[0], texts[1]] == ["dog", "cat"]


def test_a_page_without_scores_says_so_and_a_missed_argmax_is_no_certificate():
    course = Course(Certificate(2.0, 1.0, 1.0, 3, missed=1), (), None, 0, False, "a limit")
    content = Content("t", "about", course, [("C", 1.0), ("x", None)], no_scores="No scores.")
    made = Page(page(content))
    assert "No scores." in made.text
    assert "Nothing is certified" in made.text
    assert made.rows("Parameters of the training") == {"C": [1.0], "x": ["none"]}
    assert [title for _, title in made.headings] == ["t", "Certificate", "Scores", "Settings"]
