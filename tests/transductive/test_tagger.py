"""TransductiveTagger, the baselines, suggestions, and section 4: use and misuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import SequenceTagger, TransductiveSVM, TransductiveTagger, constraint_driven
from maxmargin.constraints import (
    Changes,
    ConstraintSet,
    First,
    OwnGamma,
    SequenceFunction,
    Words,
)
from maxmargin.errors import ConstraintError, NotCompatibleError
from maxmargin.estimators.self_training import driven_weights
from maxmargin.estimators.transductive import joined, prepare_transductive
from maxmargin.features.columns import ColumnTable
from maxmargin.solvers import make_solver, solve
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_constraints import ChainConstraints
from maxmargin.structures.label_constraints import LabelConstraints
from maxmargin.structures.transduction import TransductiveData

NAMES = ["ann", "bob", "eve", "tom", "kim", "lee"]
THINGS = ["cats", "dogs", "trees", "fish", "rain", "snow"]
RULES = ConstraintSet(
    [
        First("author", weight=4.0),
        Words(pattern="(19|20)[0-9]{2}", labels="date", weight=4.0),
        Changes(after=["."], weight=0.3),
    ]
)


def references(n, seed, names=NAMES, orders=1):
    """Return made-up references: authors . title words . year, or the year before the title."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        parts = [
            ("author", [*rng.choice(names, rng.integers(1, 4)), "."]),
            ("title", [*rng.choice(THINGS, rng.integers(2, 5)), "."]),
            ("date", [str(rng.integers(1950, 2020)), "."]),
        ]
        if orders > 1 and rng.integers(2):
            parts = [parts[0], parts[2], parts[1]]
        X.append([[str(w)] for _, words in parts for w in words])
        y.append([label for label, words in parts for _ in words])
    return X, y


@pytest.fixture(scope="module")
def data():
    few = references(2, 0, NAMES[:2])
    test = references(30, 1, orders=2)
    return few, test


def test_constraints_on_unlabelled_sequences_are_learned(data):
    (X, y), (new, _) = data
    supervised = SequenceTagger(C=1.0, random_state=0).fit(X, y).predict(new)
    tagger = TransductiveTagger(C=1.0, C2=10.0, constraints=RULES, random_state=0)
    learned = tagger.fit(X, y, new).predict(new)
    bound = RULES.bind(new, tagger.structure_.labels_)
    penalty = [
        bound.gamma("sum").value(bound.phi(bound.codes_of(p))) for p in (supervised, learned)
    ]
    assert penalty[0] > 0
    assert penalty[1] < 0.5 * penalty[0]
    assert penalty[1] == pytest.approx(tagger.gammas_[-1].gamma)
    assert len(tagger.gammas_) == len(tagger.outer_history_)
    assert all(g.gamma <= g.bound + 1e-6 for g in tagger.gammas_)
    objectives = tagger.outer_history_.column("objective")
    assert (np.diff(objectives) <= 1e-9).all()
    assert tagger.v_.shape == (prepared(data).bound.dimension,)


def prepared(data, features=False):
    (X, y), (new, _) = data
    chain = Chain(constraints=ChainConstraints(RULES, features=features))
    return prepare_transductive(chain, X, y, new)


@pytest.mark.parametrize(
    "options",
    [
        {"constraint_features": True},
        {"decode": "hard"},
        {"anneal": 1},
        {"begin": "supervised"},
        {"margins": "all"},
    ],
)
def test_variants_and_files(data, options, tmp_path):
    (X, y), (new, truth) = data
    tagger = TransductiveTagger(constraints=RULES, random_state=0, **options).fit(X, y, new)
    assert clone(tagger).get_params() == tagger.get_params()
    path = tmp_path / "model.mm"
    tagger.save(path)
    for cls in (SequenceTagger, TransductiveTagger):
        loaded = cls.load(path)
        assert list(loaded.predict(new)) == list(tagger.predict(new))
        assert loaded.constraints == RULES
    assert tagger.score(new, truth) > 0.4


def test_a_run_can_be_stopped_and_resumed(data, tmp_path):
    (X, y), (new, _) = data
    # Steps that were cut short count as outer iterations, so that enough of them must be left.
    options = {"constraints": RULES, "random_state": 0, "tol": 0.0, "gap": 0.001, "max_outer": 20}
    whole = TransductiveTagger(**options).fit(X, y, new)
    path = tmp_path / "run.ckpt"
    TransductiveTagger(**options, checkpoint=path, max_passes=3).fit(X, y, new)
    again = TransductiveTagger(**options, checkpoint=path, resume=path.exists()).fit(X, y, new)
    assert again.objective_ <= whole.objective_ * 1.01 + 1e-6


def test_baselines(data):
    _, (_, truth) = data
    both = prepared(data)
    problem = both.labelled_problem(1.0, 64)
    start = solve(problem, make_solver("sdm"), C=1.0, random_state=0).weights
    codes = both.chain.known_codes(truth)

    def accuracy(weights):
        return np.mean(both.chain.predict_encoded(both.unlabelled, weights) == codes)

    both.chain.constraints = None
    driven = constraint_driven(both, start, penalty=2.0, mixing=0.5, random_state=0)
    assert accuracy(driven) > accuracy(start)
    three = constraint_driven(both, start, penalty=2.0, mixing=0.5, top=3, rounds=1)
    assert three.shape == start.shape
    same = constraint_driven(both, start, mixing=1.0, rounds=1)
    assert np.allclose(same, start)
    with pytest.raises(ValueError, match="mixing"):
        constraint_driven(both, start, mixing=1.5)
    with pytest.raises(ValueError, match="rounds"):
        constraint_driven(both, start, rounds=0)


def test_constraint_features_are_trained_by_self_training_too(data):
    both = prepared(data, features=True)
    problem = both.labelled_problem(1.0, 64)
    found = solve(problem, make_solver("sdm"), C=1.0, random_state=0).weights
    start = both.chain.own_weights(found)
    groups = both.chain.constraints.weights
    trained, own = driven_weights(both, start, groups, penalty=2.0, mixing=0.3, random_state=0)
    assert trained.shape == start.shape
    assert own.shape == groups.shape == (3,)
    assert (own >= groups - 1e-9).all()  # what is imputed satisfies the constraints
    assert own.sum() > groups.sum()
    same = driven_weights(both, start, groups, mixing=1.0, rounds=1)
    assert np.allclose(same[0], start)
    assert np.allclose(same[1], groups)
    with pytest.raises(NotCompatibleError, match="several labellings"):
        driven_weights(both, start, groups, top=2)


def test_a_constraint_may_have_no_weight_in_the_model(data, tmp_path):
    (X, y), (new, _) = data
    rules = ConstraintSet([replace(rule, feature=rule.kind == "changes") for rule in RULES])
    for cls, arguments in ((SequenceTagger, (X, y)), (TransductiveTagger, (X, y, new))):
        tagger = cls(constraints=rules, constraint_features=True, random_state=0).fit(*arguments)
        assert tagger.structure_.constraints.weights.shape == (1,)
        tagger.save(tmp_path / "m.mm")
        assert list(cls.load(tmp_path / "m.mm").predict(new)) == list(tagger.predict(new))
    with pytest.raises(ConstraintError, match="expected true or false"):
        First("author", feature="no")


def test_suggestions_are_unsure_violating_and_diverse(data):
    (X, y), (new, _) = data
    tagger = SequenceTagger(C=1.0, constraints=RULES, random_state=0).fit(X, y)
    known, twice = X[0], [*new[:5], new[0]]
    found = tagger.suggest([*twice, known], 7)
    assert sorted(s.index for s in found) == list(range(7))
    assert found[0].index != 6  # the training sequence is the surest
    order = [s.index for s in found]
    first, second = sorted((order.index(0), order.index(5)))
    assert second == 6 or second - first > 1  # a copy comes late
    plain = tagger.suggest([*twice, known], 7, diverse=False)
    worths = [s.worth for s in plain]
    assert worths == sorted(worths, reverse=True)
    with pytest.raises(ValueError, match="n must be"):
        tagger.suggest(new, 0)


def test_a_sequence_counts_for_all_its_unsure_tokens(data):
    """Not for their mean: a short one comes after a longer one with the greater mean margin."""
    (X, y), _ = data
    tagger = SequenceTagger(C=1.0, random_state=0).fit(X, y)
    short = [["unseen"], ["words"]]
    found = tagger.suggest([short, short * 4, X[0]], 3, diverse=False)
    assert [s.index for s in found] == [1, 2, 0]
    assert found[2].margin < found[1].margin
    assert [s.worth for s in found] == [1.0, 0.5, 0.0]


def test_labels_as_constraints_are_a_structural_svm(data):
    """Section 4: Eq. (16) from w = 0 learns what the labels say."""
    _, (X, y) = data
    chain = Chain()
    batch, codes = chain.learn(X, y)
    rule = LabelConstraints(codes=tuple(codes.tolist()), n_labels=chain.n_labels)
    bound = ConstraintSet([rule]).bind(X, chain.labels_)
    both = TransductiveData(chain, None, None, None, batch, codes, bound)
    svm = TransductiveSVM(C2=30.0, mu=2.0, random_state=0)
    result = svm.train(both, chain.layout.zeros("float32"))
    assert result.transduction.n_free == 0
    assert np.array_equal(result.v, bound.phi(codes))  # v stays at the labels
    problem = chain.encoded_problem(batch, codes, None, np.full(len(X), 30.0 / len(X)))
    standard = solve(problem, make_solver("sdm"), C=1.0, random_state=0).weights
    hits = [
        np.mean(chain.predict_encoded(batch, w) == codes) for w in (standard, result.chain_weights)
    ]
    assert hits[1] >= hits[0] - 0.1
    assert hits[1] > 0.85
    with pytest.raises(ConstraintError, match="expected"):
        ConstraintSet([LabelConstraints(codes=(0,), n_labels=3)]).bind(X, chain.labels_)


def test_tables_are_joined_with_and_without_labels():
    X, _ = ColumnTable.from_rows([[("a", "A"), ("b", "B")]]).labelled(1)
    bare = ColumnTable.from_rows([[("c",)]])
    both = joined(X, bare)
    assert both.label_column == 1
    assert both.rows()[1] == [["c", "?"]]
    assert joined(X, ColumnTable.from_rows([[("c", "A")]])).rows()[1] == [["c", "A"]]
    with pytest.raises(ValueError, match="found 3 columns; expected 2"):
        joined(X, ColumnTable.from_rows([[("c", "d", "e")]]))


def test_labels_that_only_the_rules_declare():
    X, y = references(3, 0)
    rules = ConstraintSet([*RULES, Words("x", "note")], labels=["author", "title", "date", "note"])
    new = [[*x, ["x"]] for x in X]
    tagger = TransductiveTagger(constraints=rules, random_state=0).fit(X, y, new)
    assert "note" in tagger.classes_


def test_bad_input(data):
    (X, y), (new, _) = data
    tagger = TransductiveTagger(constraints=RULES)
    for nothing in (None, []):
        with pytest.raises(ValueError, match="X_unlabelled is empty"):
            tagger.fit(X, y, nothing)
    with pytest.raises(ConstraintError, match="no constraints"):
        TransductiveTagger().fit(X, y, new)
    with pytest.raises(ConstraintError, match="there is no label 'autor'"):
        tagger.fit(X, y, new, constraints=ConstraintSet([First("autor")]))
    with pytest.raises(ConstraintError, match="occurs there"):
        tagger.fit(X, y, new, constraints=ConstraintSet([Words("never", "date")]))
    function = SequenceFunction(lambda x, y: [1.0], name="f")
    with pytest.raises(ConstraintError, match="no exact inference"):
        tagger.fit(X, y, new, constraints=ConstraintSet([function]))
    contradiction = ConstraintSet([First("author"), Words(NAMES, "title")])
    hard = TransductiveTagger(decode="hard", random_state=0)
    hard.fit(X, y, new, constraints=contradiction)
    with pytest.raises(ConstraintError, match="contradict each other"):
        hard.predict(new)
    for options, match in (
        ({"C2": 0}, "C2"),
        ({"mu": -1}, "mu"),
        ({"gamma_scale": "max"}, "scale"),
        ({"schedule": "fast"}, "schedule"),
        ({"anneal": -1}, "anneal"),
        ({"begin": "zero"}, "begin"),
        ({"margins": "some"}, "margins"),
        ({"label_margin": -1}, "label_margin"),
    ):
        with pytest.raises(ValueError, match=match):
            TransductiveTagger(constraints=RULES, **options).fit(X, y, new)


def test_a_target_of_the_wrong_dimension_is_refused(data):
    both = prepared(data)
    own = OwnGamma(lambda v: (0.0, np.zeros(3)), 3, 1.0)
    start = both.chain.layout.zeros("float32")
    with pytest.raises(ConstraintError, match="expected"):
        TransductiveSVM(schedule="paper").train(both, start, gamma=own)
    with pytest.raises(NotCompatibleError, match="paper"):
        TransductiveSVM().train(both, start, gamma=own)
