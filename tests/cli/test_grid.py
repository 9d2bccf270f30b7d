"""`--grid` over several settings, and `--grid auto`."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_files import refused, run, sentences, summary, text, write
from maxmargin import ColumnTable, SequenceTagger, load
from maxmargin.io.tagger_file import load_tagger
from maxmargin.selection import search_C

TRAIN, VALID = sentences(), sentences(9, seed=2)


@pytest.fixture
def files(tmp_path):
    data = write(tmp_path / "train.tsv", text(TRAIN))
    return data, write(tmp_path / "valid.tsv", text(VALID)), tmp_path / "m.mm"


def test_all_combinations(capsys, files):
    data, valid, model = files
    grid = ("--grid", "C=0.1,1", "--grid", "min-count=1,3", "--grid", "template=words,pos")
    more = ("--grid", "l1_ratio=0,0.5")
    found = summary(capsys, "train", data, "-m", model, "--valid", valid, *grid, *more, "-q")
    rows = found["grid"]
    keys = [(r["template"], r["min_count"], r["l1_ratio"], r["C"]) for r in rows]
    wanted = [(t, m, r, C) for t in ("words", "pos") for m in (1, 3) for r in (0, 0.5)
              for C in (0.1, 1)]
    assert keys == wanted
    best = max(rows, key=lambda row: row["score"])
    assert {name: found[name] for name in ("template", "min_count", "l1_ratio", "C")} == {
        name: best[name] for name in ("template", "min_count", "l1_ratio", "C")
    }
    assert found["valid"]["f1"] == best["score"]
    assert summary(capsys, "eval", "-m", model, valid)["f1"] == best["score"]
    # The model is that of its settings: trained alone it reaches the same (from another start).
    loaded = load_tagger(model)
    assert loaded.meta["params"]["min_count"] == best["min_count"]
    assert loaded.meta["training"]["l1_ratio"] == best["l1_ratio"]
    assert best["template"] in loaded.chain.encoder.template.source


def test_with_folds(capsys, files):
    data, _, model = files
    grid = ("--grid", "C=0.1,1", "--grid", "min-count=1,2", "--cv", "2", "-q")
    found = summary(capsys, "train", data, "-m", model, *grid)
    assert [(r["min_count"], r["C"]) for r in found["cv"]] == [(1, 0.1), (1, 1), (2, 0.1), (2, 1)]
    best = max(found["cv"], key=lambda row: row["score"])
    assert (found["min_count"], found["C"]) == (best["min_count"], best["C"])
    alone = ("-C", found["C"], "--min-count", found["min_count"], "-q")
    again = model.read_bytes()
    run(capsys, "train", data, "-m", model, *alone)
    assert model.read_bytes() == again
    only = summary(capsys, "train", data, *grid)
    assert only["cv"] == found["cv"]
    assert only["min_count"] == found["min_count"]


@pytest.mark.parametrize("how", ["--valid", "--cv"])
def test_auto(capsys, files, how):
    data, valid, model = files
    given_ = (how, valid if how == "--valid" else 2, "-C", "0.0001", "-q")
    found = summary(capsys, "train", data, "-m", model, "--grid", "auto", *given_)
    rows = found["cv" if how == "--cv" else "grid"]
    Cs = [row["C"] for row in rows]
    assert Cs == sorted(Cs)
    assert len(set(Cs)) == len(Cs) >= 6
    best = max(row["score"] for row in rows)
    assert found["C"] == next(row["C"] for row in rows if row["score"] == best)
    assert found["C"] > 0.0001  # it went up from where it began
    both = summary(
        capsys, "train", data, "-m", model, "--grid", "C=auto", "--grid", "min-count=1,2", *given_
    )
    assert {row["min_count"] for row in both["cv" if how == "--cv" else "grid"]} == {1, 2}


def automatic(template):
    """What ``C="auto"`` comes to on the training data."""
    table, labels = ColumnTable.from_rows(TRAIN).labelled()
    return SequenceTagger(C="auto", template=template, random_state=0).fit(table, labels)


def test_a_weight_that_goes_with_the_features(capsys, files):
    data, valid, model = files
    tagger = automatic("words")
    assert 0.1 < tagger.C_ < 1
    found = summary(capsys, "train", data, "-m", model, "-C", "auto", "-q")
    assert found["C"] == pytest.approx(tagger.C_)
    assert found["primal"] == tagger.certificate_.primal
    loaded = load(model)
    assert loaded.C == loaded.C_ == found["C"]
    assert list(loaded.predict(ColumnTable.from_rows(VALID).labelled()[0])) == list(
        tagger.predict(ColumnTable.from_rows(VALID).labelled()[0])
    )
    told = run(capsys, "train", data, "-m", model, "-C", "auto")
    assert told.count(f"-C auto: C={tagger.C_:.4g}\n") == 1
    streamed = summary(capsys, "train", data, "-m", model, "-C", "auto", "--stream", "-q")
    assert streamed["C"] == found["C"]
    path = summary(capsys, "path", data, "--valid", valid, "-C", "auto", "--ratios", "0.5", "-q")
    assert path["path"][0]["C"] == found["C"]
    few = summary(capsys, "train", data, "-m", model, "-C", "auto", "--nonzeros", "40", "-q")
    assert few["C"] == found["C"]


def test_each_template_has_its_own(capsys, files):
    data, valid, model = files
    grid = ("-C", "auto", "--grid", "template=words,ner", "-q")
    for how in (("--valid", valid), ("--cv", 2)):
        found = summary(capsys, "train", data, "-m", model, *how, *grid)
        rows = found["cv" if how[0] == "--cv" else "grid"]
        assert {row["template"]: row["C"] for row in rows} == {
            name: pytest.approx(automatic(name).C_) for name in ("words", "ner")
        }
        assert found["C"] == next(r["C"] for r in rows if r["template"] == found["template"])
    # A search begins with it.
    found = summary(
        capsys, "train", data, "-m", model, "--valid", valid, "-C", "auto", "--grid", "auto", "-q"
    )
    assert any(row["C"] == pytest.approx(automatic("words").C_) for row in found["grid"])
    # Values that are given come before it.
    given = ("--valid", valid, "-C", "auto", "--grid", "C=0.1,1", "-q")
    assert [row["C"] for row in summary(capsys, "train", data, "-m", model, *given)["grid"]] == [
        0.1,
        1,
    ]


def test_automatic_weight_is_refused_where_it_cannot_be(capsys, files, tmp_path):
    data, _, model = files
    assert "'Auto' is not a number above 0, and not auto" in refused(
        capsys, "train", data, "-m", model, "-C", "Auto"
    )
    rules = write(tmp_path / "r.toml", '[[constraint]]\nkind = "first"\nlabel = "B-NP"\n')
    more = ("--constraints", rules, "--unlabelled", data)
    assert "--unlabelled needs a number" in refused(
        capsys, "train", data, "-m", model, "-C", "auto", *more
    )
    assert "--workers needs a number" in refused(
        capsys, "train", data, "-m", model, "-C", "auto", "--workers", "2"
    )
    assert "'auto' is not a number above 0" in refused(
        capsys, "train", "--task", "classes", data, "-m", model, "-C", "auto"
    )


def test_tasks(capsys, tmp_path):
    lines = [f"{'AB'[k % 2]}\t{'red' if k % 2 else 'blue'} w{k % 5}\n" for k in range(20)]
    data, model = write(tmp_path / "x.tsv", "".join(lines)), tmp_path / "m.mm"
    base = ("train", "--task", "classes", data, "-m", model, "--valid", data, "-q")
    found = summary(capsys, *base, "--grid", "auto", "--grid", "min-count=1,2")
    assert {row["min_count"] for row in found["grid"]} == {1, 2}
    best = max(found["grid"], key=lambda row: row["score"])
    assert (found["C"], found["min_count"]) == (best["C"], best["min_count"])
    found = summary(capsys, *base, "--grid", "C=0.1,1", "--grid", "l1-ratio=0,0.5")
    assert [(r["l1_ratio"], r["C"]) for r in found["grid"]] == [(0, 0.1), (0, 1), (0.5, 0.1),
                                                                (0.5, 1)]
    message = refused(capsys, *base, "--grid", "template=a,b")
    assert "expected C=" in message


@pytest.mark.parametrize(
    ("grids", "told"),
    [
        (["D=1"], "found 'D=1'"),
        (["C"], "found 'C'"),
        (["C=0"], "not a number above 0"),
        (["C=1,"], "found 'C=1,'"),
        (["min-count=0"], "not an integer of at least 1"),
        (["l1-ratio=2"], "at most 1"),
        (["C=1,2", "C=3"], "C is given twice"),
        (["auto", "C=1"], "C is given twice"),
        (["Auto"], "found 'Auto'"),
        (["C=auto,1"], "found 'C=auto,1'"),
    ],
)
def test_bad_grids(capsys, files, grids, told):
    data, valid, model = files
    options = [word for grid in grids for word in ("--grid", grid)]
    message = refused(capsys, "train", data, "-m", model, "--valid", valid, *options)
    assert told in message


def test_a_grid_needs_scores(capsys, files):
    data, _, model = files
    assert "needs --valid FILE or --cv K" in refused(
        capsys, "train", data, "-m", model, "--grid", "auto"
    )


@given(st.floats(-4, 4), st.floats(-3, 3))
def test_search_finds_the_top_of_a_hill(top, start):
    tried = search_C(lambda C: -abs(math.log10(C) - top), 10.0**start)
    best = max(tried, key=lambda pair: pair[1])
    assert abs(math.log10(best[0]) - top) <= 0.26  # half a step of the last ones
    Cs = [C for C, _ in tried]
    assert len(set(Cs)) == len(Cs)


def test_search_stops():
    assert len(search_C(lambda C: 1.0, 1.0)) < 30
    assert search_C(lambda C: None, 1.0) == []
    seen = []

    def score(C):
        seen.append(C)
        return None if len(seen) > 3 else C

    assert len(search_C(score, 1.0)) == 3
