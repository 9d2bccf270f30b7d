"""Templates of arcs: the language, the built-in set, and what sentences look like."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.features.arc_templates import ArcTemplates, default_templates, sentence_columns
from reference_dependency import numbers_of, weights_of_arc


def test_the_language():
    made = ArcTemplates(
        "# a comment\n\nh.word d.tag dist?  # both\nlabel: d.suffix3 h.upos-2 dist\n"
        "between.pos h.form\n"
    )
    assert [str(t) for t in made.templates] == [
        "h.form d.xpos",
        "h.form d.xpos dist",
        "label: d.suffix3 h.upos-2 dist",
        "between.upos h.form",
    ]
    assert made.columns == ("form", "xpos", "suffix3", "upos")
    assert made.has_labels
    # The same template twice is one.
    assert len(ArcTemplates("h.word dist?\nh.form\n").templates) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h.word\nq.word", r"line 2: 'q.word' is no atom; expected h\., d\. or between\."),
        ("h.words", "line 1: 'h.words' is no atom"),
        ("h.prefix0", "is no atom"),
        ("h.word+", "is no atom"),
        ("h.word+1000", "is no atom"),
        ("dist?", "line 1: no atom"),
        ("label:", "line 1: no atom"),
        ("label: between.tag", "cannot have between"),
        ("label: d.tag", "none of an arc"),
        ("", "none of an arc"),
        (3, "must be a text, got int"),
    ],
)
def test_what_is_no_template(text, message):
    with pytest.raises(ValueError, match=message):
        ArcTemplates(text)


def test_the_built_in_set_is_that_of_the_paper():
    lines = [str(t) for t in ArcTemplates(default_templates(coarse=False)).templates]
    for line in (
        "h.form h.xpos d.form d.xpos",  # the bigram of everything
        "h.xpos d.xpos dist",
        "h.xpos between.xpos d.xpos",
        "h.xpos h.xpos+1 d.xpos-1 d.xpos",
        "h.xpos-1 h.xpos d.xpos d.xpos+1 dist",
    ):
        assert line in lines
    assert not any("upos" in line for line in lines)
    assert any("upos" in str(t) for t in ArcTemplates(default_templates()).templates)
    words = ArcTemplates(default_templates(coarse=False, fine=False))
    assert not {"upos", "xpos"} & set(words.columns)
    assert "xpos" not in ArcTemplates(default_templates(fine=False)).columns


@pytest.mark.parametrize("n_labels", [0, 3, 9])
def test_features_of_all_arcs_against_the_reference(n_labels):
    """Every arc of sentences of all lengths, with every template of the built-in set."""
    templates = ArcTemplates(default_templates() + "h.prefix2 between.lemma+1 between.upos dist?\n")
    rng = np.random.default_rng(0)
    sentence = [
        {
            "form": f"Wort{k}",
            "lemma": f"l{k % 3}",
            "upos": f"U{rng.integers(3)}",
            "xpos": f"X{k % 4}",
        }
        for k in range(14)
    ]
    for n in (1, 2, 14):
        columns = sentence_columns(sentence[:n])
        problem = _native.DependencyProblem(
            offsets=np.array([0, n]),
            atoms=templates.atoms([columns]),
            **templates.native(),
            arc_bits=13,
            row_bits=7,
            n_labels=n_labels,
        )
        for h in range(n + 1):
            heads = np.array([h if h != d else 0 for d in range(1, n + 1)], dtype=np.int32)
            label = h % max(n_labels, 1)
            labels = np.full(n, label, dtype=np.int32)
            expected = []
            for d, head in enumerate(heads.tolist(), start=1):
                options = {"n_labels": n_labels, "bits": 13, "label_bits": 7}
                expected += weights_of_arc(templates, columns, head, d, label, **options)
            assert sorted(problem.features(heads, labels)[0].tolist()) == sorted(expected)


def test_direction_distance_and_neighbours_are_told_apart():
    columns = sentence_columns([("a", "X")] * 20)
    plain, far = ArcTemplates("h.tag d.tag dist?").templates
    assert numbers_of(plain, columns, 3, 5) == numbers_of(plain, columns, 3, 19)
    assert numbers_of(plain, columns, 3, 5) != numbers_of(plain, columns, 5, 3)
    assert numbers_of(far, columns, 3, 9) == numbers_of(far, columns, 3, 13)
    assert numbers_of(far, columns, 3, 5) != numbers_of(far, columns, 3, 6)
    (edge,) = ArcTemplates("d.tag+1").templates
    assert numbers_of(edge, columns, 1, 20) != numbers_of(edge, columns, 1, 19)
    (between,) = ArcTemplates("between.tag").templates
    assert numbers_of(between, columns, 4, 5) == []
    assert len(numbers_of(between, columns, 4, 9)) == 1  # a set


def test_sentences_as_people_write_them():
    expected = {"form": ["a", "b"], "lemma": ["_"] * 2, "feats": ["_"] * 2}
    assert sentence_columns(["a", "b"]) == {**expected, "upos": ["_"] * 2, "xpos": ["_"] * 2}
    tagged = {**expected, "upos": ["_"] * 2, "xpos": ["X", "Y"]}
    assert sentence_columns([("a", "X"), ["b", "Y"]]) == tagged
    assert (
        sentence_columns([{"word": "a", "tag": "X"}, {"form": "b", "xpos": "Y", "other": 1}])
        == tagged
    )
    assert sentence_columns([("a", "U", "X"), ("b", "V", "Y")])["upos"] == ["U", "V"]
    whole = SimpleNamespace(forms=["a", "b"], lemmas=None, upos=["_"] * 2, xpos=["X", "Y"])
    assert sentence_columns(whole) == tagged


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("text", "sentence 4 is an object of type str"),
        (3, "expected a sequence of tokens"),
        ([("a", "X"), 7], "token 2 of sentence 4 is '?7"),
        ([("a", 7)], "token 1 of sentence 4"),
        ([()], "token 1"),
        ([{"tag": "X"}], "token 1"),
        (SimpleNamespace(forms=["a"], xpos=["X", "Y"]), "has 1 forms and 2 of xpos"),
    ],
)
def test_what_is_no_sentence(sentence, message):
    with pytest.raises(ValueError, match=message):
        sentence_columns(sentence, "sentence 4")
