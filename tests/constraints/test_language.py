"""The constraint language: what it refuses, its TOML form, its reports, Γ."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import real_data
from maxmargin import ColumnTable
from maxmargin.constraints import (
    AtLeast,
    AtMost,
    Changes,
    ConstraintSet,
    EdgeFunction,
    Exactly,
    First,
    IntervalGamma,
    Last,
    MinimumLength,
    NGrams,
    OneSegment,
    Order,
    OwnGamma,
    Proportion,
    SequenceFunction,
    SumGamma,
    TokenFunction,
    TokenMatch,
    Words,
)
from maxmargin.errors import ConstraintError, FileFormatError

RULES = Path(__file__).parents[2] / "examples" / "constraints"

EVERY_KIND = [
    Words(["pp", 'a "quoted" word', "tab\tbed"], "pages", name="p", weight=2.5),
    Words(pattern=r"(19|20)\d\d", labels=["date", 3], match_case=True),
    Words(is_="number", labels="volume", column="word", name="numbers"),
    Changes(after="punctuation", weight=math.inf),
    Changes(at=["In", "Proc"], column=0, name="in"),
    First(["author", "editor"]),
    Last("date"),
    AtLeast("title", 2, form="count"),
    AtMost(["note", "tech"], 3, of="segments"),
    Exactly("title", 1, of="segments"),
    OneSegment(),
    OneSegment(["title"], per="token"),
    Order(["author", "title", "date"], per="token"),
    MinimumLength(3, ["title"]),
    Proportion({"date": 0.1, "title": (0.2, None), "note": (None, 0.1)}),
    NGrams({("author", "title"): 0.9, ("title", "date"): (0.1, 0.5)}, encode="count"),
    NGrams({("a", "b", "c"): 1.0}, name="three"),
]


# --- TOML ---


def test_every_kind_survives_toml():
    rules = ConstraintSet(EVERY_KIND, columns=["word", "field"])
    again = ConstraintSet.from_toml_text(rules.to_toml())
    assert again == rules
    assert again.to_toml() == rules.to_toml()


@given(
    words=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=3),
    labels=st.lists(st.one_of(st.text(), st.integers(-9, 9)), min_size=1, max_size=3, unique=True),
    weight=st.floats(1e-6, 1e6),
)
@settings(max_examples=50, deadline=None)
def test_any_text_survives_toml(words, labels, weight):
    rules = ConstraintSet([Words(words, labels, weight=weight, name="x")])
    assert ConstraintSet.from_toml_text(rules.to_toml()) == rules


GOOD = '[[constraint]]\nkind = "first"\nlabels = ["A"]\n\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            GOOD + '[[constraint]]\nkind = "words"\nwords = ["a"]\nlables = "x"\n',
            "f.toml, line 8: unknown key 'lables' of kind words; did you mean 'labels'?",
        ),
        (
            GOOD + '[[constraint]]\nkind = "wrods"\n',
            "line 6: unknown kind 'wrods'; did you mean 'words'?",
        ),
        (GOOD + "[[constraint]]\nwords = 3\n", "line 5: the constraint has no kind"),
        ('colums = ["a"]\n' + GOOD, "line 1: unknown key 'colums'; did you mean 'columns'?"),
        ("columns = 3\n" + GOOD, "line 1: columns is '?3'?; expected a list of names"),
        (
            GOOD + '[[constraint]]\nkind = "at_least"\nlabels = "A"\nk = -1\n',
            "line 8: kind at_least: k ",
        ),
        (
            GOOD + '[[constraint]]\nkind = "at_least"\nlabels = "A"\nof = "words"\n',
            "line 8: .*of must be",
        ),
        (
            GOOD + '[[constraint]]\nkind = "words"\npattern = "("\nlabels = "A"\n',
            "line 7: .*pattern",
        ),
        (GOOD + '[[constraint]]\nkind = "words"\nlabels = "A"\n', "line 5: .*no tokens are named"),
        (
            GOOD + '[[constraint]]\nkind = "words"\nis = "numbr"\nlabels = "A"\n',
            "did you mean 'number'",
        ),
        (GOOD + '[[constraint]]\nkind = "first"\nlabels = "A"\nweight = 0\n', "line 8: .*weight"),
        (GOOD + GOOD, "line 5: two constraints are called"),
        ("[[constraint]\n", "f.toml: line 1, column 13"),
        ("", r"has no \[\[constraint\]\]"),
        ("constraint = 3\n", r"begin with \[\[constraint\]\]"),
        ('labels = ["B"]\n' + GOOD, "line 4, constraint .*: there is no label 'A'"),
        (
            GOOD + '[[constraint]]\nkind = "words"\nwords = "a"\nlabels = "A"\nmatch_case = 1\n',
            "line 9: match_case",
        ),
        (
            GOOD + '[[constraint]]\nkind = "words"\nwords = "a"\nlabels = "A"\ncolumn = 1.5\n',
            "line 9: column",
        ),
    ],
)
def test_errors_of_toml_name_line_and_key(text, message):
    with pytest.raises(FileFormatError, match=message):
        ConstraintSet.from_toml_text(text, "f.toml")


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_bytes(b"\n\xff\n")
    with pytest.raises(FileFormatError, match="line 2: is not UTF-8"):
        ConstraintSet.from_toml(file)
    with pytest.raises(OSError, match="No such file"):
        ConstraintSet.from_toml(tmp_path / "none.toml")


def test_an_unknown_label_or_column_names_its_line(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(
        '[[constraint]]\nkind = "words"\nwords = "a"\nlabels = ["A",\n  "C"]\ncolumn = "pos"\n'
    )
    rules = ConstraintSet.from_toml(file)
    with pytest.raises(ConstraintError, match=r"rules.toml, line 5, .*no label 'C'"):
        rules.bind([["x"]], ["A", "B"])
    with pytest.raises(ConstraintError, match=r"rules.toml, line 6, .*no column or feature 'pos'"):
        rules.bind([[("x", "y")]], ["A", "C"])
    again = ConstraintSet(rules, columns=["word", "pos"])
    assert again.bind([[("x", "a")]], ["A", "C"]).dimension == 1


# --- where words come from ---


@pytest.mark.parametrize(
    ("X", "column"),
    [
        ([["a", "."], ["b"]], None),
        ([[("a", "x"), (".", "y")], [("b", "z")]], 0),
        ([[("x", "a"), ("y", ".")], [("z", "b")]], 1),
        ([[("x", "a"), ("y", ".")], [("z", "b")]], "word"),
        ([[{"w": "a"}, {"w": "."}], [{"w": "b", "x": 1.0}]], None),
        ([[{"form": "a", "p": "q"}, {"form": ".", "p": "q"}], [{"form": "b"}]], "form"),
        ([[["1", "w=a"], ["w=."]], [["w=b"]]], None),
        (ColumnTable.from_rows([[("a", "x"), (".", "y")], [("b", "z")]]), 0),
        (ColumnTable.from_rows([[("x", "a"), ("y", ".")], [("z", "b")]]), "word"),
    ],
)
def test_words_of_all_sorts_of_tokens(X, column):
    rules = ConstraintSet([Words(["A", "b"], "L", column=column)], columns=["pos", "word"])
    bound = rules.bind(X, ["L", "M"])
    assert bound.offsets.tolist() == [0, 1, 2]
    assert bound.phi(np.array([0, 1, 1], np.int32)).tolist() == [1.0, 0.0]


def test_data_frames_have_names_of_columns():
    pandas = pytest.importorskip("pandas")
    X = [pandas.DataFrame({"word": ["a", "."], "n": [1, 2]})]
    for column in (None, "word", 0):
        assert ConstraintSet([Words("a", "L", column=column)]).bind(X, ["L"]).dimension == 1
    with pytest.raises(ConstraintError, match="did you mean 'word'"):
        ConstraintSet([Words("a", "L", column="wrod")]).bind(X, ["L"])


@pytest.mark.parametrize(
    ("X", "column", "message"),
    [
        ([["a"]], "pos", "no column 'pos'"),
        ([["a"]], 1, "words, without columns"),
        ([[("a", "b")]], 2, "no column 2; it has 2"),
        ([[{"x": "a"}]], None, "has no feature called word"),
        ([[{"word": "a"}]], "wrod", "did you mean 'word'"),
        ([[["w=a"]]], "v", "did you mean 'w'|expected one of"),
        ([np.zeros((2, 3))], None, "constraints on words need tokens"),
        (ColumnTable.from_rows([[("a", "b")]]), 5, "no column 5"),
        (ColumnTable.from_rows([[("a", "b")]]), "pos", "columns have no names"),
    ],
)
def test_columns_that_are_not_there(X, column, message):
    with pytest.raises(ConstraintError, match=message):
        ConstraintSet([Words("a", "L", column=column)]).bind(X, ["L"])


def test_matching():
    match = TokenMatch(words=["Pp"], pattern="[0-9]+", is_="punctuation", predicate=str.isupper)
    assert [match._matches(w) for w in ("pP", "12", "?!", "USA", "Usa", "1a")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]
    assert not TokenMatch(words=["Pp"], match_case=True)._matches("pp")
    assert TokenMatch.of(re.compile("a+"))._matches("aaa")
    assert not TokenMatch.of(re.compile("a+"))._matches("AAA")
    assert TokenMatch.of(lambda w: w == "z")._matches("z")
    assert TokenMatch.of(["x", "y"])._matches("Y")
    with pytest.raises(ConstraintError, match="expected words"):
        TokenMatch.of(3)


# --- bad input ---


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: First([]), "labels is empty"),
        (lambda: First(["A", "A"]), "a label twice"),
        (lambda: Order(["A"]), "one label is no order"),
        (Changes, "neither after nor at"),
        (lambda: Proportion({}), "shares is empty"),
        (lambda: Proportion({"A": "x"}), "the target is 'x'"),
        (lambda: Proportion({"A": (0.5, 0.2)}), "no interval"),
        (lambda: Proportion({"A": 1.5}), "no share of tokens"),
        (lambda: NGrams({("A",): 1, ("A", "B"): 1}), "one length"),
        (lambda: NGrams({("A", "B", "C"): 1}, encode="count"), "cannot be encoded as counts"),
        (lambda: TokenFunction(3), "expected a function"),
        (lambda: Words("a", "A", weight=-1), "weight is"),
        (lambda: Words("a", "A", name=3), "name is"),
        (lambda: ConstraintSet([First("A"), First("A")]), "two constraints are called"),
        (lambda: ConstraintSet([First("A")], labels=["B"]), "there is no label 'A'"),
    ],
)
def test_constraints_that_make_no_sense(make, message):
    with pytest.raises(ConstraintError, match=message):
        make()


def test_things_that_are_no_constraints():
    with pytest.raises(TypeError, match="found a str"):
        ConstraintSet(["A"])
    with pytest.raises(KeyError, match="did you mean 'first'"):
        ConstraintSet([First("A", name="first")])["fist"]
    with pytest.raises(ConstraintError, match="a function in predicate"):
        ConstraintSet([Words(predicate=str.isupper, labels="A")]).to_toml()


def test_functions_that_return_nonsense():
    X = [["a", "b"]]
    with pytest.raises(
        ConstraintError, match="sequence 0, token 0, label A: the function returned"
    ):
        ConstraintSet([TokenFunction(lambda x, t, y: math.nan, name="f")]).bind(X, ["A"])
    with pytest.raises(ZeroDivisionError) as info:
        ConstraintSet([EdgeFunction(lambda x, t, p, y: 1 / 0, name="f")]).bind(X, ["A"])
    assert "sequence 0, token 1" in info.value.__notes__[0]
    bound = ConstraintSet([SequenceFunction(lambda x, y: [1, 0], name="f")]).bind(X, ["A"])
    with pytest.raises(ConstraintError, match=r"φ has the shape \(2,\); expected \(1,\)"):
        bound.phi(np.zeros(2, np.int32))
    bound = ConstraintSet([SequenceFunction(lambda x, y: 2.0, name="f")]).bind(X, ["A"])
    with pytest.raises(ConstraintError, match="numbers from 0 to 1"):
        bound.phi(np.zeros(2, np.int32))


# --- Γ ---


def gammas():
    rng = np.random.default_rng(0)
    X = [["a", "b", "."], ["b", "a"]]
    every = [
        Words("a", "A"),
        OneSegment(),
        AtLeast("A", 2, form="count"),
        AtMost("B", 1, form="count"),
        Exactly("A", 1, form="count", of="segments", weight=3.0),
        Proportion({"A": 0.25, "B": (0.1, 0.4)}),
        NGrams({("A", "B"): 0.5}),
        NGrams({("A", "B", "A"): (None, 0.2)}, name="long"),
    ]
    bound = ConstraintSet(every).bind(X, ["A", "B"])
    yield from ((bound.gamma(scale), rng) for scale in ("sum", "mean"))
    squares = OwnGamma(lambda v: (float(np.hypot(1, v).sum()), v / np.hypot(1, v)), 4, 2.0)
    yield squares, rng
    yield SumGamma((squares, IntervalGamma.coordinates(4, [1, 2], low=0.0, high=1.0))), rng


@pytest.mark.parametrize("k", range(4))
def test_gamma_is_convex_and_lipschitz_with_its_subgradient(k):
    gamma, rng = list(gammas())[k]
    for _ in range(30):
        u, v = rng.normal(size=(2, gamma.dimension)) * 2
        slope = gamma.subgradient(u)
        assert gamma.value(v) >= gamma.value(u) + slope @ (v - u) - 1e-9
        assert np.linalg.norm(slope) <= gamma.lipschitz + 1e-9
        assert (
            abs(gamma.value(u) - gamma.value(v)) <= gamma.lipschitz * np.linalg.norm(u - v) + 1e-9
        )


def test_gamma_blocks_are_its_planes():
    gamma, rng = next(gammas())
    blocks = gamma.blocks()
    for _ in range(10):
        v = rng.normal(size=gamma.dimension) * 2
        rows = np.array(
            [
                blocks.values[a:b] @ v[blocks.indices[a:b]]
                for a, b in zip(blocks.indptr[:-1], blocks.indptr[1:], strict=True)
            ]
        )
        tops = np.maximum.reduceat(rows + blocks.loss, blocks.offsets[:-1])
        assert blocks.weight @ tops == pytest.approx(gamma.value(v))
    assert (blocks.loss[blocks.offsets[:-1]] == 0).all()


def test_gamma_by_hand():
    X = [["a", "b"], ["a"]]
    bound = ConstraintSet([Words("a", "A", weight=2.0), Proportion({"B": 0.5})]).bind(X, ["A", "B"])
    codes = np.array([1, 1, 0], np.int32)
    phi = bound.phi(codes)
    assert phi.tolist() == [0, 1, 1, 1, 0]
    share = abs(2 / 3 - 0.5)
    assert bound.gamma("sum").value(phi) == pytest.approx(2.0 + share)
    assert bound.gamma("mean").value(phi) == pytest.approx(1.0 + share)
    assert bound.target.tolist() == [1, 0.5, 0.5, 1, 0.5]


def test_gamma_refuses_wrong_dimensions():
    gamma = IntervalGamma.coordinates(3, [0, 1], low=1.0, high=1.0)
    with pytest.raises(ConstraintError, match=r"v has the shape \(2,\); expected \(3,\)"):
        gamma.value(np.zeros(2))
    with pytest.raises(ConstraintError, match=r"low has the shape \(3,\)"):
        IntervalGamma.coordinates(3, [0, 1], low=np.ones(3), high=1.0)
    with pytest.raises(ConstraintError, match=r"lower bound 2\.0 above"):
        IntervalGamma.coordinates(3, [0], low=2.0, high=1.0)
    with pytest.raises(ConstraintError, match="out of range"):
        IntervalGamma.coordinates(3, [3], low=1.0, high=1.0)
    with pytest.raises(ConstraintError, match="above the Lipschitz constant"):
        OwnGamma(lambda v: (0.0, np.ones(2)), 2, 1.0).value(np.zeros(2))
    with pytest.raises(ConstraintError, match=r"subgradient has the shape \(2,\)"):
        OwnGamma(lambda v: (0.0, np.ones(2)), 3, 9.0).value(np.zeros(3))


# --- reports ---


def counts(report):
    return {row.title: (row.held, row.cases) for row in report.rows}


def test_report_counts_cases_and_shows_violations():
    X = [["A.", "b", ".", "c"], ["b", "d"]]
    Y = [["x", "x", "x", "y"], ["y", "x"]]
    rules = ConstraintSet(
        [
            First("x"),
            Last("x"),
            Changes(after="punctuation", name="changes"),
            Words("b", "x"),
            AtLeast("x", 2),
            AtMost("x", 1, of="segments"),
            Order(["x", "y"]),
            OneSegment(),
            MinimumLength(2),
            Proportion({"x": 0.65}),
            NGrams({("x", "x"): (2, None)}),
            TokenFunction(lambda x, t, y: y == "x", name="f"),
            SequenceFunction(lambda x, y: y[0] == "x", name="g"),
        ]
    )
    report = rules.report(X, Y)
    found = counts(report)
    assert list(found.values()) == [
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (2, 2),
        (1, 2),
        (2, 2),
        (1, 4),
        (1, 1),
        (0, 1),
        (4, 6),
        (1, 2),
    ]
    assert "sequence 1, token 0: [b/y d/x]" in report.text()
    assert report["changes"].sequences_violated == 1
    again = rules.report(X, Y, predicted=[["x"] * 4, ["x", "y"]], examples=0)
    assert "predictions" in again.text()
    assert again.predicted[0].held == 2
    entry = again.to_dict()["constraints"][0]
    assert entry["labels"]["held"], entry["predictions"]["held"] == (1, 2)
    assert rules.report(X, None, Y).source == "predictions"


def test_report_refuses_what_does_not_fit():
    rules = ConstraintSet([First("x")])
    with pytest.raises(ConstraintError, match="neither labels nor predictions"):
        rules.report([["a"]], None)
    with pytest.raises(ConstraintError, match="X has 1 sequences and y 2"):
        rules.report([["a"]], [["x"], ["x"]])
    with pytest.raises(ConstraintError, match="sequence 0 has 1 tokens, and 2 labels"):
        rules.report([["a"]], [["x", "x"]])


def labelled(name):
    parts = ("train", "dev", "test")
    return [rows for part in parts for rows in real_data.read_columns(f"{name}/{part}.tsv.gz")]


@pytest.mark.data
def test_report_on_citations_has_the_counts_of_the_readme():
    rows = labelled("citations_cora")
    rules = ConstraintSet.from_toml(RULES / "citations.toml")
    X, y = [[t[0] for t in s] for s in rows], [[t[1] for t in s] for s in rows]
    assert list(counts(rules.report(X, y)).values()) == [
        (479, 500),
        (2174, 2278),
        (497, 500),
        (140, 140),
        (483, 497),
        (107, 107),
        (15, 17),
        (21, 21),
        (31, 35),
        (243, 247),
        (18, 18),
    ]


@pytest.mark.data
def test_report_on_ads_has_the_counts_of_the_readme():
    rows = labelled("ads")
    rules = ConstraintSet.from_toml(RULES / "ads.toml")
    X, y = [[t[0] for t in s] for s in rows], [[t[1] for t in s] for s in rows]
    # The changes: 1160 of 1835 with somewhat fewer marks of punctuation.
    assert list(counts(rules.report(X, y)).values()) == [
        (1166, 1835),
        (2051, 2137),
        (410, 421),
        (60, 62),
        (217, 242),
        (192, 197),
        (330, 338),
        (8, 9),
        (3, 5),
        (61, 63),
        (9, 10),
        (35, 48),
        (40, 44),
    ]
