"""Taggers that decode with constraints, and that learn weights of them."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import reference_constraints as reference
from maxmargin import SequenceTagger
from maxmargin.constraints import (
    AtLeast,
    Changes,
    ConstraintSet,
    Exactly,
    First,
    MinimumLength,
    OneSegment,
    Proportion,
    SequenceFunction,
    Words,
)
from maxmargin.errors import ConstraintError, ModelFormatError, NotCompatibleError

LABELS = ["A", "B", "C"]
RULES = ConstraintSet(
    [
        Changes(after="punctuation", name="changes", weight=2.0),
        Words("b", ["B", "C"], name="b"),
        OneSegment(name="once"),
        MinimumLength(2, per="sequence", name="long"),
        Proportion({"A": 0.3}, name="share"),
    ],
    labels=LABELS,
)


def words(rng, n, longest=6):
    return [list(rng.choice(["a", "b", "c", ".", ","], rng.integers(1, longest))) for _ in range(n)]


def data(seed=0, n=12):
    """Return sequences of words as feature dicts, and labels that mostly change at punctuation."""
    rng = np.random.default_rng(seed)
    X, Y = words(rng, n), []
    for x in X:
        y, label = [], 0
        for t, _ in enumerate(x):
            if t and (x[t - 1] in ".," or rng.random() < 0.1):
                label = int(rng.integers(3))
            y.append(LABELS[label])
        Y.append(y)
    return [[{"w": w} for w in x] for x in X], Y


def plain(X):
    return [[token["w"] for token in x] for x in X]


def fitted(**params):
    X, Y = data()
    params = {"C": 1.0, "constraints": RULES, "random_state": 0, "gap": 1e-3} | params
    return SequenceTagger(**params).fit(X, Y), X, Y


def brute(tagger, x, c):
    """Return the best value of all labellings of one sequence, by the scores of the chain."""
    rules = list(RULES.decoding())
    candidates = list(itertools.product(LABELS, repeat=len(x)))
    rest = clone(tagger).set_params(decode="off")
    rest.__dict__ |= {k: v for k, v in tagger.__dict__.items() if k.endswith("_")}
    scores = rest.score_labellings([[{"w": w} for w in x]] * len(candidates), candidates)
    values = [
        s + reference.worth(reference.phi_of_all(rules, [x], [y], LABELS), c, 0.0)
        for s, y in zip(scores, candidates, strict=True)
    ]
    return max(values), dict(zip(candidates, values, strict=True))


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("decode", ["soft", "hard"])
def test_decoding_is_the_best_of_all_labellings(decode, features):
    tagger, _, _ = fitted(decode=decode, penalty=0.7, constraint_features=features)
    new, _ = data(seed=5)
    tagger.set_params(infeasible="relax")
    found = tagger.infer(new)
    bound = RULES.decoding().bind(plain(new), tagger.structure_.labels_)
    c = bound.coefficients(decode, 0.7)
    predicted = tagger.predict(new)
    for i, x in enumerate(plain(new)):
        a, b = bound.offsets[i : i + 2]
        top, values = brute(tagger, x, c[a:b])
        assert found.exact[i]
        if top == -np.inf:  # the fewest violations, then the best score
            top, values = brute(tagger, x, np.full(b - a, 1e7))
            assert found.scores[i] == pytest.approx(top, abs=1e-3)
            assert values[tuple(predicted[i])] == pytest.approx(top, abs=1e-3)
        else:
            assert values[tuple(predicted[i])] == pytest.approx(top, abs=1e-4)


def test_decode_can_be_changed_after_training():
    tagger, X, _ = fitted()
    off = tagger.predict(X)
    bare = SequenceTagger(C=1.0, random_state=0, gap=1e-3, labels=LABELS).fit(*data())
    assert list(bare.predict(X)) == list(off)  # constraints alone change nothing
    assert list(tagger.set_params(decode="soft", penalty=0.0).predict(X)) == list(off)
    tagger.set_params(decode="hard", infeasible="relax")
    report = RULES.report(plain(X), tagger.predict(X))
    before = RULES.report(plain(X), off)
    assert report["changes"].held == report["changes"].cases
    assert before["changes"].held < before["changes"].cases
    tagger.set_params(constraints=ConstraintSet([First("C")]), decode="hard")
    assert {y[0] for y in tagger.predict(X)} == {"C"}


def test_constraint_features_are_learned():
    tagger, X, Y = fitted(constraint_features=True)
    weights = tagger.structure_.constraints.weights
    assert weights.shape == (4,)  # not the share, which is about the sample
    assert weights[0] > 0  # labels change at punctuation
    assert tagger.certificate_.gap <= 1e-3
    # The objective by definition: the certificate's primal is ½‖w‖² + C Σ hinge.
    own = np.asarray(tagger.weights_, float)
    hinge = 0.0
    for x, y in zip(X, Y, strict=True):
        candidates = list(itertools.product(LABELS, repeat=len(x)))
        scores = tagger.score_labellings([x] * len(candidates), candidates)
        loss = [sum(a != b for a, b in zip(y, z, strict=True)) for z in candidates]
        hinge += max(scores + loss) - tagger.score_labellings([x], [y])[0]
    primal = 0.5 * (own @ own) + 0.5 * (weights @ weights) + hinge
    assert tagger.certificate_.primal == pytest.approx(primal, rel=1e-4)


@pytest.mark.parametrize("features", [False, True])
def test_model_files_keep_constraints(tmp_path, features):
    tagger, X, _ = fitted(decode="soft", penalty=0.4, constraint_features=features, beam=77)
    tagger.save(tmp_path / "m.mm")
    again = SequenceTagger.load(tmp_path / "m.mm")
    assert list(again.predict(X)) == list(tagger.predict(X))
    assert again.constraints == RULES
    names = ("decode", "penalty", "constraint_features", "infeasible", "beam")
    assert [getattr(again, n) for n in names] == [getattr(tagger, n) for n in names]
    again.save(tmp_path / "n.mm")
    assert list(SequenceTagger.load(tmp_path / "n.mm").predict(X)) == list(tagger.predict(X))
    again.fit(*data())
    assert list(again.predict(X)) == list(tagger.predict(X))
    copy = pickle.loads(pickle.dumps(tagger))
    assert list(copy.predict(X)) == list(tagger.predict(X))


def test_a_damaged_file_of_constraints(tmp_path, monkeypatch):
    from maxmargin.io.tagger_file import constraints

    tagger, _, _ = fitted(decode="hard", constraint_features=True)
    real = constraints.describe_constraints
    for change in (
        {"toml": "[[constraint]]\nkind = 'no'\n"},
        {"decode": "wild"},
        {"toml": 3},
        {"features": 1},
        {"width": 0},
    ):
        monkeypatch.setattr(
            "maxmargin.io.tagger_file.writing.describe_constraints",
            lambda c, change=change: (real(c)[0] | change, real(c)[1]),
        )
        tagger.save(tmp_path / "m.mm")
        with pytest.raises(ModelFormatError):
            SequenceTagger.load(tmp_path / "m.mm")
    monkeypatch.setattr(
        "maxmargin.io.tagger_file.writing.describe_constraints",
        lambda c: (real(c)[0], {"constraint_weights": np.zeros(9)}),
    )
    tagger.save(tmp_path / "m.mm")
    with pytest.raises(ModelFormatError, match="do not fit"):
        SequenceTagger.load(tmp_path / "m.mm")


def test_contradictions_are_named():
    X, Y = data()
    rules = ConstraintSet(
        [
            First("A", name="starts with A"),
            Words(["a", "b", "c", ".", ","], "B", name="all B"),
            AtLeast("C", 1, name="harmless"),
        ],
        labels=LABELS,
    )
    tagger = SequenceTagger(constraints=rules, decode="hard").fit(X, Y)
    with pytest.raises(ConstraintError, match=r"sequence 0 .*'all B'.*contradict") as info:
        tagger.predict(X[:1])
    named = [name for name in ("starts with A", "all B", "harmless") if name in str(info.value)]
    assert len(named) == 2
    assert "all B" in named
    assert len(tagger.set_params(infeasible="relax").predict(X)) == len(X)
    alone = SequenceTagger(constraints=ConstraintSet([Exactly("A", 9)]), decode="hard").fit(X, Y)
    with pytest.raises(ConstraintError, match="cannot be satisfied"):
        alone.predict([[{"w": "a"}]])
    masked = SequenceTagger(
        constraints=rules, decode="hard", allowed=lambda before, after: before is not None
    ).fit(X, Y)
    with pytest.raises(ConstraintError, match="allowed transitions"):
        masked.predict(X[:1])


def test_a_narrow_beam_warns_or_finds_nothing():
    tagger, _, _ = fitted(decode="hard", beam=1, infeasible="relax")
    rng = np.random.default_rng(3)
    long = [[{"w": w} for w in x] for x in words(rng, 20, longest=25)]
    with pytest.warns(UserWarning, match="beam search of 1 states"):
        tagger.predict(long)
    with pytest.raises(ConstraintError, match=r"greater beam|contradict"):
        tagger.set_params(infeasible="error").predict(long)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.set_params(beam=50_000, infeasible="relax").predict(long)


def test_bad_parameters():
    X, Y = data()
    with pytest.raises(ValueError, match="needs constraints"):
        SequenceTagger(decode="hard").fit(X, Y)
    with pytest.raises(ValueError, match="needs constraints"):
        SequenceTagger(constraint_features=True).fit(X, Y)
    with pytest.raises(ValueError, match="decode must be one of"):
        SequenceTagger(constraints=RULES, decode="maybe").fit(X, Y)
    with pytest.raises(ValueError, match="infeasible must be one of"):
        SequenceTagger(constraints=RULES, infeasible="no").fit(X, Y)
    with pytest.raises(TypeError, match="expected a ConstraintSet"):
        SequenceTagger(constraints=[First("A")]).fit(X, Y)
    with pytest.raises(ConstraintError, match="there is no label 'D'; "):
        SequenceTagger(constraints=ConstraintSet([First("D")])).fit(X, Y)
    with pytest.raises(NotCompatibleError, match="kernel"):
        SequenceTagger(constraints=RULES, constraint_features=True, kernel="rbf").fit(X, Y)
    trained, _, _ = fitted(constraint_features=True)
    with pytest.raises(NotCompatibleError, match="another fit"):
        trained.set_params(constraints=ConstraintSet([First("A")])).predict(X)


def test_what_constraints_do_not_offer():
    tagger, X, _ = fitted(decode="soft")
    for call in (lambda: tagger.predict_kbest(X, 2), lambda: tagger.decision_function(X)):
        with pytest.raises(NotCompatibleError, match="decodes with constraints"):
            call()
    own = ConstraintSet([SequenceFunction(lambda x, y: y[0] == y[-1], name="ends alike")])
    tagger = SequenceTagger(constraints=own, decode="soft", penalty=100.0).fit(*data())
    assert all(y[0] == y[-1] for y in tagger.predict(X[:3]))
    bound = own.bind(plain(X), tagger.structure_.labels_)
    chain = tagger.structure_.encoded_problem(tagger.structure_.encoder.transform(X))
    with pytest.raises(ConstraintError, match="'ends alike': exact inference was asked for"):
        bound.best(bound.problem(chain), tagger.weights_, np.zeros(bound.dimension), exact=True)
    with pytest.raises(ConstraintError, match=r"c has the shape \(1,\)"):
        bound.best(bound.problem(chain), tagger.weights_, np.zeros(1))
    with pytest.raises(ConstraintError, match="a function in function"):
        own.to_toml()


def test_constraints_from_a_file_and_few_labels(tmp_path):
    (tmp_path / "rules.toml").write_text(RULES.to_toml())
    X, _ = data()
    Y = [["A"] * len(x) for x in X]
    tagger = SequenceTagger(constraints=tmp_path / "rules.toml", decode="hard").fit(X, Y)
    assert tagger.classes_.tolist() == LABELS
    (tmp_path / "rules.toml").unlink()  # it was read once
    found = tagger.predict([[{"w": "a"}, {"w": "."}, {"w": "b"}, {"w": "b"}]])[0]
    assert found[:2] == ["A", "A"]
    assert found[2] == found[3] != "A"
