"""Signs, bounds and priors of single weights, through the estimators; adaptation of taggers.

Optima are compared with those of an independent QP solver (`qp_reference`), in the layout of the
structure: the library has to bring means, precisions and bounds into the padded native one.
"""

from __future__ import annotations

import importlib.util
import json
import math
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import qp_reference
from cli_files import refused, sentences, summary, text, write
from kit import formulated
from maxmargin import Chain, SequenceTagger, StructuralSVM
from maxmargin.cli.main import main
from maxmargin.errors import (
    ConvergenceWarning,
    ModelFormatError,
    NotCompatibleError,
    ScalingWarning,
)
from maxmargin.links import Link
from maxmargin.regularizers import L2, Bounded, ElasticNet, GaussianPrior, Nonnegative
from maxmargin.solvers import SDM, InteriorPoint, NSlack
from native_problems import flat_problem
from real_data import FOLDER, data_file
from reference_chain import ReferenceChain

FORMULATIONS = [(s, r) for s in ("linear", "quadratic") for r in ("margin", "slack", "none")]
KINDS = ("signs", "bounds", "prior", "held", "full")


def made(kind, d, rng):
    """Return a regulariser of each kind for d weights, and its link in the structure's layout."""
    if kind == "signs":
        mask = rng.random(d) < 0.5
        return Nonnegative(where=mask), Link(least=np.where(mask, 0.0, -math.inf))
    if kind == "bounds":
        least, most = -0.3 * rng.random(d), 0.05 + 0.3 * rng.random(d)
        least[0], most[0] = 0.1, 0.2  # bounds that leave out 0
        return Bounded(least, most), Link(least=least, most=most)
    mean, precision = 0.5 * rng.normal(size=d), rng.uniform(0.3, 3.0, d)
    if kind == "held":
        precision[rng.random(d) < 0.3] = math.inf
    return GaussianPrior(mean, precision), Link(offset=mean, scale=1 / precision)


def full_prior(d, rng):
    """Return a prior with a full matrix, the matrix P^½ and the link of P^½ w."""
    A = rng.normal(size=(d, d))
    P = A @ A.T / d + 0.3 * np.eye(d)
    values, vectors = np.linalg.eigh(P)
    half = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    mean = 0.5 * rng.normal(size=d)
    return GaussianPrior(mean, P), half, Link(offset=half @ mean)


def optimum(planes, kind, rng, formulation, C):
    """Return a regulariser and the optimum under it."""
    slack, rescale = formulation
    d = planes.delta.shape[1]
    outputs = formulated(planes, slack, rescale)
    if kind == "full":
        regularizer, half, link = full_prior(d, rng)
        # w·Δ = (P^½ w)·(P^-½ Δ): another root than the library's
        turned = outputs._replace(delta=np.linalg.solve(half, outputs.delta.T).T)
        found = qp_reference.solve_planes(turned, C, slack=slack, link=link)
        return regularizer, found, np.linalg.solve(half, found.w)
    regularizer, link = made(kind, d, rng)
    found = qp_reference.solve_planes(outputs, C, slack=slack, link=link)
    return regularizer, found, found.w


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_python_structures_meet_the_qp(kind, formulation):
    rng = np.random.default_rng(5)
    structure, X, Y = flat_problem(rng)
    planes = qp_reference.list_planes(structure, X, Y)
    regularizer, found, w = optimum(planes, kind, rng, formulation, 0.7)
    slack, rescale = formulation
    model = StructuralSVM(
        structure,
        C=0.7,
        solver=InteriorPoint(slack=slack, rescale=rescale),
        regularizer=regularizer,
        gap=1e-7,
        max_passes=5000,
        random_state=0,
    ).fit(X, Y)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(found.primal, rel=1e-6)
    assert certificate.dual <= found.primal * (1 + 1e-9)
    np.testing.assert_allclose(model.weights_, w, atol=2e-3)
    if kind == "signs":
        assert model.weights_[regularizer.where].min() == 0
    else:
        assert regularizer.penalty(model.weights_) < math.inf


def chain_case(rng, n=5):
    """Return sequences of dense tokens whose labels are in the order of the chain's columns."""
    X = [rng.normal(size=(T, 2)) for T in rng.integers(1, 4, n)]
    Y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    chain = Chain()
    chain.prepare(X, Y)
    codes = [np.array([chain.labels_.index(label) for label in y]) for y in Y]
    return X, Y, qp_reference.list_planes(ReferenceChain(3, 2), X, codes)


@pytest.mark.parametrize("solver", [SDM(), NSlack(epsilon=1e-7), InteriorPoint()], ids=type)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_chains_meet_the_qp(kind, dtype, solver):
    """Native weights are padded: three labels are four or eight numbers."""
    rng = np.random.default_rng(3)
    X, Y, planes = chain_case(rng)
    regularizer, found, w = optimum(planes, kind, rng, ("linear", "margin"), 0.5)
    inner = isinstance(solver, InteriorPoint)
    gap = 1e-7 if inner else 1e-5
    model = StructuralSVM(
        Chain(), C=0.5, solver=solver, regularizer=regularizer, gap=gap, dtype=dtype,
        max_passes=20_000, random_state=0,
    ).fit(X, Y)  # fmt: skip
    certificate = model.certificate_
    assert certificate.gap <= (gap if inner else 1e-4)
    # 4-byte weights have other bounds: rounded ones.
    rounding = 1e-8 if dtype == "float64" else 1e-6
    assert found.primal * (1 - rounding) <= certificate.primal
    assert certificate.primal - found.primal <= (certificate.gap + rounding) * certificate.primal
    chain = model.structure_
    plain = np.asarray(chain.layout.rows(model.weights_)).reshape(-1)
    np.testing.assert_allclose(plain, w, atol=2e-3 if inner else 3e-2)
    padding = chain.layout.matrix(model.weights_)[:, chain.n_labels :]
    assert not padding.any()
    scores = chain.score_labellings(X, Y, model.weights_)
    assert scores == pytest.approx([chain.score(x, y, plain) for x, y in zip(X, Y, strict=True)],
                                   abs=1e-4)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs_and_bounds_hold_exactly(dtype):
    rng = np.random.default_rng(0)
    X, Y, _ = chain_case(rng, 12)
    least, most = -1 / 3, 0.1  # neither is a 4-byte number
    for regularizer, low, high in (
        (Nonnegative(), 0.0, math.inf),
        (Bounded(least, most), least, most),
        (Bounded(most=most), -math.inf, most),
        (Bounded(0.1, 0.7), 0.1, 0.7),
    ):
        tagger = SequenceTagger(C=1.0, dtype=dtype, regularizer=regularizer, gap=1e-3).fit(X, Y)
        assert tagger.certificate_.gap <= 1e-3
        w = tagger.structure_.layout.rows(tagger.weights_).astype(float)
        assert w.min() >= low
        assert w.max() <= high
        assert (w == w.min()).sum() > 1 or low == -math.inf  # it binds


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("precision", [1e9, math.inf])
def test_a_prior_of_huge_precision_returns_its_mean(precision, dtype):
    rng = np.random.default_rng(1)
    X, Y, planes = chain_case(rng)
    mean = rng.normal(size=planes.delta.shape[1])
    model = StructuralSVM(
        Chain(), C=1.0, dtype=dtype, regularizer=GaussianPrior(mean, precision), gap=1e-4
    ).fit(X, Y)
    plain = model.structure_.layout.rows(model.weights_).reshape(-1)
    np.testing.assert_allclose(plain, mean, atol=1e-6)
    assert model.certificate_.gap <= 1e-4


def test_a_mean_may_be_in_the_native_layout():
    rng = np.random.default_rng(2)
    X, Y, planes = chain_case(rng)
    plain = rng.normal(size=planes.delta.shape[1])
    chain = Chain()
    chain.prepare(X, Y)
    assert len({chain.n_weights("float32"), chain.n_weights("float64"), plain.size}) == 3
    primals = [
        StructuralSVM(Chain(), dtype="float64", regularizer=GaussianPrior(m, 2.0), gap=1e-6)
        .fit(X, Y).certificate_.primal
        for m in (plain, chain.pad(plain, "float32"), chain.pad(plain, "float64"))
    ]  # fmt: skip
    assert primals == pytest.approx([primals[0]] * 3, rel=1e-5)
    with pytest.raises(ValueError, match="mean has 4 entries; expected 21, one for each weight"):
        StructuralSVM(Chain(), regularizer=GaussianPrior(np.zeros(4))).fit(X, Y)


def test_a_prior_survives_the_change_to_8_bytes():
    """Means that 4-byte numbers do not have, a large C, and features of different sizes."""
    rng = np.random.default_rng(4)
    X, Y, planes = chain_case(rng, 12)
    X = [x * np.array([1.0, 300.0]) for x in X]
    mean = rng.normal(size=planes.delta.shape[1])
    models = {}
    for dtype in ("float32", "float64"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScalingWarning)
            models[dtype] = StructuralSVM(
                Chain(), C=1e4, dtype=dtype, regularizer=GaussianPrior(mean, 3.0), gap=1e-5,
                max_passes=100_000, random_state=0,
            ).fit(X, Y)  # fmt: skip
    single, double = models["float32"], models["float64"]
    assert single.certificate_.widened is not None
    assert single.weights_.dtype == np.float64
    assert single.certificate_.primal == pytest.approx(double.certificate_.primal, rel=2e-5)


def test_a_checkpoint_knows_its_prior(tmp_path):
    rng = np.random.default_rng(6)
    X, Y, planes = chain_case(rng, 8)
    mean = rng.normal(size=planes.delta.shape[1])
    asked = {"structure": Chain(), "C": 1.0, "gap": 1e-6, "random_state": 0}
    asked["checkpoint"] = tmp_path / "run"
    whole = StructuralSVM(**asked, regularizer=GaussianPrior(mean, 2.0)).fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        StructuralSVM(**asked, regularizer=GaussianPrior(mean, 2.0), max_passes=3).fit(X, Y)
    resumed = StructuralSVM(**asked, regularizer=GaussianPrior(mean, 2.0), resume=True).fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    other = StructuralSVM(**asked, regularizer=GaussianPrior(mean + 1e-9, 2.0), resume=True)
    with pytest.raises(ValueError, match="regularizer"):
        other.fit(X, Y)


def test_a_warm_start_under_another_prior():
    rng = np.random.default_rng(7)
    X, Y, planes = chain_case(rng, 8)
    means = rng.normal(size=(2, planes.delta.shape[1]))
    model = StructuralSVM(Chain(), gap=1e-5, warm_start=True, regularizer=GaussianPrior(means[0]))
    model.fit(X, Y).set_params(regularizer=GaussianPrior(means[1], 2.0)).fit(X, Y)
    fresh = StructuralSVM(Chain(), gap=1e-5, regularizer=GaussianPrior(means[1], 2.0)).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=3e-5)


def test_what_does_not_go_with_a_prior():
    rng = np.random.default_rng(8)
    X, Y, planes = chain_case(rng)
    mean = rng.normal(size=planes.delta.shape[1])
    prior = GaussianPrior(mean)
    with pytest.raises(ValueError, match="hard margins"):
        StructuralSVM(Chain(), solver=SDM(slack="hard"), regularizer=prior).fit(X, Y)
    with pytest.raises(NotCompatibleError, match="goes with solver 'sdm'"):
        StructuralSVM(Chain(), solver="bcfw", regularizer=prior).fit(X, Y)
    with pytest.raises(NotCompatibleError, match="with a kernel there are none"):
        SequenceTagger(kernel="rbf", regularizer=prior).fit(X, Y)
    matrix = np.eye(len(mean))
    full = GaussianPrior(mean, matrix)
    with pytest.raises(NotCompatibleError, match="token_weight and sample_weight are not done"):
        SequenceTagger(regularizer=full).fit(X, Y, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="matrix of 2 x 2; expected 21 x 21"):
        StructuralSVM(Chain(), regularizer=GaussianPrior(precision=np.eye(2))).fit(X, Y)
    matrix[0, 0] = -1.0
    with pytest.raises(ValueError, match="not positive definite"):
        StructuralSVM(Chain(), regularizer=GaussianPrior(mean, matrix)).fit(X, Y)


# --- weights by name ---

WORDS = [["dogs", "bark"], ["cats", "sleep"], ["dogs", "sleep"], ["cats", "[x]*"]]
X_WORDS = [[{"w": word, "n": str(len(word))} for word in words] for words in WORDS]
Y_WORDS = [["N", "V"]] * 4


def test_weights_by_name():
    free = SequenceTagger(C=1.0, gap=1e-4).fit(X_WORDS, Y_WORDS)
    names = free.get_feature_names_out().tolist()
    column = {label: k for k, label in enumerate(free.classes_)}
    assert free.coef_[names.index("w:dogs"), column["V"]] < 0
    assert free.transitions_.min() < 0
    asked = {"C": 1.0, "gap": 1e-4}
    tagger = SequenceTagger(**asked, regularizer=Nonnegative("w:*")).fit(X_WORDS, Y_WORDS)
    chosen = np.array([name.startswith("w:") for name in names])
    assert tagger.coef_[chosen].min() == 0
    assert tagger.coef_[~chosen].min() < 0
    assert tagger.transitions_.min() < 0
    tagger = SequenceTagger(
        **asked, regularizer=Nonnegative({"parts": ["transitions", "coef"], "labels": "V"})
    ).fit(X_WORDS, Y_WORDS)
    assert tagger.coef_[:, column["V"]].min() == tagger.transitions_[:, column["V"]].min() == 0
    assert tagger.coef_[:, column["N"]].min() < 0
    tagger = SequenceTagger(**asked, regularizer=Bounded(0.25, 0.5, ["w:[x]*", "n:4"]))
    rows = tagger.fit(X_WORDS, Y_WORDS).coef_[[names.index("w:[x]*"), names.index("n:4")]]
    assert rows.min() >= 0.25
    assert rows.max() <= 0.5


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("v:*", "names the feature 'v:\\*', and none of the 7 features"),
        ({"labels": ["N", "X"]}, "names the label 'X'; the labels are 'N', 'V'"),
        ({"parts": "middle"}, "names the part 'middle'; expected one of"),
        ({"names": "w"}, "has the key 'names'"),
        ({"parts": "pairs"}, "means no weight"),
        (np.ones(3, bool), "where has 3 entries; expected"),
        ([0, 99], "where has the index 99, and there are"),
    ],
)
def test_names_that_do_not_exist(where, message):
    with pytest.raises(ValueError, match=message):
        SequenceTagger(regularizer=Nonnegative(where)).fit(X_WORDS, Y_WORDS)


def test_structures_without_names_say_so():
    structure, X, Y = flat_problem(np.random.default_rng(0))
    with pytest.raises(NotCompatibleError, match="weights of Flat have no names"):
        StructuralSVM(structure, regularizer=Nonnegative("w")).fit(X, Y)
    model = StructuralSVM(structure, regularizer=Nonnegative([0, -1]), C=1.0).fit(X, Y)
    assert model.weights_[[0, -1]].min() >= 0 > model.weights_.min()


@pytest.mark.parametrize(
    "regularizer",
    [Nonnegative(), Bounded(-1.0, 0.5), GaussianPrior(precision=2.0), Nonnegative("w:*")],
    ids=str,
)
def test_model_files_have_them(regularizer, tmp_path):
    tagger = SequenceTagger(C=1.0, gap=1e-4, regularizer=regularizer).fit(X_WORDS, Y_WORDS)
    tagger.save(tmp_path / "m.mm")
    loaded = SequenceTagger.load(tmp_path / "m.mm")
    assert loaded.regularizer == regularizer
    again = loaded.fit(X_WORDS, Y_WORDS)
    assert again.certificate_.primal == pytest.approx(tagger.certificate_.primal, rel=1e-3)


def test_model_files_have_no_arrays_of_regularizers(tmp_path):
    prior = GaussianPrior(np.zeros(22))
    tagger = SequenceTagger(regularizer=prior).fit(X_WORDS, Y_WORDS)
    tagger.save(tmp_path / "m.mm")
    loaded = SequenceTagger.load(tmp_path / "m.mm")
    with pytest.raises(NotCompatibleError, match=r"regularizer is not known: .*GaussianPrior"):
        loaded.fit(X_WORDS, Y_WORDS)
    loaded.set_params(regularizer=prior).fit(X_WORDS, Y_WORDS)


# --- adaptation ---

OLD = sentences()
NEW = [
    [(f"{word}s" if k % 3 else word, tag, chunk.replace("PP", "ZZ"))
     for k, (word, tag, chunk) in enumerate(rows)]
    for rows in sentences(8, seed=5)
]  # fmt: skip
TEMPLATE = "U:%x[0,0]\nU:%x[0,1]\nU:%x[-1,1]/%x[0,1]\nB:%x[0,1]\n"


def columns(sequences, n=2):
    return [[list(row[:n]) for row in rows] for rows in sequences], [
        [row[-1] for row in rows] for rows in sequences
    ]


def dicts(sequences):
    return [[{"w": w, "p": p} for w, p, _ in rows] for rows in sequences], [
        [row[-1] for row in rows] for rows in sequences
    ]


def template(tmp_path):
    path = tmp_path / "template.txt"
    path.write_text(TEMPLATE, encoding="utf-8")
    return path


def rows_by_name(tagger):
    """Return weights by feature and label, transitions and pair features included."""
    chain = tagger.structure_
    parts, labels = chain.unpack(tagger.weights_), chain.labels_
    found = {}
    for name, row in zip(chain.encoder.feature_names(), parts.coef, strict=True):
        found |= {(name, b): row[k] for k, b in enumerate(labels)}
    found |= {(a, b): parts.transitions[j, k] for j, a in enumerate(labels)
              for k, b in enumerate(labels)}  # fmt: skip
    for name in ("start", "end"):
        found |= {(f"<{name}>", b): getattr(parts, name)[k] for k, b in enumerate(labels)}
    if chain.layout.n_pair:
        for name, block in zip(chain.encoder.pair_names(), parts.pairs, strict=True):
            found |= {(name, a, b): block[j, k] for j, a in enumerate(labels)
                      for k, b in enumerate(labels)}  # fmt: skip
    return found


def features_of(tagger):
    encoder = tagger.structure_.encoder
    return {*encoder.feature_names(), *(encoder.pair_names() if encoder.n_pair else ())}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["dicts", "template", "rare"])
def test_adaptation_by_name(kind, dtype, tmp_path):
    data = dicts if kind == "dicts" else columns
    params = {} if kind == "dicts" else {"template": template(tmp_path)}
    asked = {"C": 1.0, "gap": 1e-4, "random_state": 0, **params}
    old = SequenceTagger(**asked).fit(*data(OLD))
    more = {"min_count": 2} if kind == "rare" else {}
    new = SequenceTagger(**asked, **more, dtype=dtype, prior=old).fit(*data(NEW))
    before, after = rows_by_name(old), rows_by_name(new)
    assert before.keys() < after.keys()
    assert set(new.classes_) == set(old.classes_) | {"B-ZZ"}
    assert new.certificate_.gap <= 1e-4
    # Weights of features that the new data do not have stay what they were. (The first training may
    # have gone over to 8-byte weights; a prior is rounded to the type that is asked for.)
    plain = SequenceTagger(**asked).fit(*data(NEW))
    fresh, used = features_of(plain), set(plain.classes_)
    unseen = [name for name in before if name[0] in features_of(old) - fresh]
    assert len(unseen) > 10
    for name in unseen:
        assert after[name] == after[name].dtype.type(before[name]), name
    assert max(abs(after[name] - before[name]) for name in before) > 0.01
    match = new.prior_match_
    assert match.labels == len(old.classes_)
    assert match.shared_labels == match.new_labels - 1 == len(used) - 1
    assert 0 < match.shared_features < match.new_features
    assert "of the prior" in str(match)
    # And of all weights: the primal is what it is said to be.
    names = sorted(after, key=str)
    w, m = (np.array([v.get(name, 0.0) for name in names]) for v in (after, before))
    hinge = sum(_hinge(new, x, y) for x, y in zip(*data(NEW), strict=True))
    by_hand = 0.5 * ((w - m) ** 2).sum() + hinge
    assert new.certificate_.primal == pytest.approx(by_hand, rel=1e-5)


def _hinge(tagger, x, y):
    chain = tagger.structure_
    w = np.asarray(chain.layout.rows(tagger.weights_), float).reshape(-1)
    wrong = chain.argmax(x, w, truth=y)
    return chain.loss(y, wrong) + chain.score(x, wrong, w) - chain.score(x, y, w)


@pytest.mark.parametrize("precision", [1e8, math.inf])
def test_a_strong_prior_stays(precision, tmp_path):
    asked = {"C": 1.0, "gap": 1e-3, "template": template(tmp_path)}
    old = SequenceTagger(**asked).fit(*columns(OLD))
    new = SequenceTagger(**asked, prior=old, prior_precision=precision).fit(*columns(NEW))
    before, after = rows_by_name(old), rows_by_name(new)
    assert all(after[name] == pytest.approx(before[name], abs=1e-5) for name in before)
    assert max(abs(after[name]) for name in after if name not in before) > 0.01
    assert new.score(*columns(NEW)) > old.score(*columns(NEW))


def test_the_names_of_an_adapted_model_survive(tmp_path):
    asked = {"C": 1.0, "gap": 1e-3, "template": template(tmp_path)}
    old = SequenceTagger(**asked).fit(*columns(OLD))
    old.save(tmp_path / "old.mm")
    X, y = columns(NEW)
    new = SequenceTagger(**asked, prior=tmp_path / "old.mm").fit(X, y)
    new.save(tmp_path / "new.mm")
    weights = {name: w for name, w in rows_by_name(new).items() if w}
    for copy in (pickle.loads(pickle.dumps(new)), SequenceTagger.load(tmp_path / "new.mm")):
        assert {name: w for name, w in rows_by_name(copy).items() if w} == weights
        assert copy.predict(X).tolist() == new.predict(X).tolist()
    again = SequenceTagger(**asked, prior=new).fit(X, y)  # and it can be a prior itself
    assert again.prior_match_.shared_features == again.prior_match_.new_features


@pytest.mark.parametrize("kind", ["dense", "sparse", "hashed"])
def test_features_without_names_are_matched_by_number(kind):
    rng = np.random.default_rng(0)
    if kind == "hashed":
        (X, y), (X2, y2), params = dicts(OLD), dicts(NEW), {"hash_bits": 8}
    else:
        from scipy.sparse import csr_array

        shape = np.asarray if kind == "dense" else csr_array
        X, X2 = ([shape(rng.normal(size=(3, 4))) for _ in range(6)] for _ in range(2))
        y, y2, params = [["a", "b", "a"]] * 6, [["b", "a", "c"]] * 6, {}
    old = SequenceTagger(C=1.0, **params).fit(X, y)
    new = SequenceTagger(C=1.0, prior=old, prior_precision=math.inf, **params).fit(X2, y2)
    columns_of = [list(new.classes_).index(label) for label in old.classes_]
    np.testing.assert_array_equal(new.coef_[:, columns_of], old.coef_)


def test_priors_that_do_not_fit(tmp_path):
    X, y = dicts(NEW)
    old = SequenceTagger(C=1.0).fit(*dicts(OLD))

    def refuse(message, kind=ValueError, data=(X, y), **params):
        with pytest.raises(kind, match=message):
            SequenceTagger(**({"prior": old} | params)).fit(*data)

    refuse("prior is 7; expected a trained SequenceTagger", TypeError, prior=7)
    refuse("not fitted", NotFittedError, prior=SequenceTagger())
    refuse("No such file", FileNotFoundError, prior=tmp_path / "none.mm")
    (tmp_path / "bad.mm").write_bytes(b"nothing")
    refuse("bad.mm", ModelFormatError, prior=tmp_path / "bad.mm")
    refuse("prior_precision must be above 0, got 0", prior_precision=0)
    refuse("prior_precision must be above 0, got nan", prior_precision=math.nan)
    refuse("prior_precision must be a number, got '1'", TypeError, prior_precision="1")
    refuse("prior is a regulariser of its own", regularizer=ElasticNet(0.5, 0.5))
    refuse("labels does not have 'B-NP', which the prior has", labels=["O", "B-ZZ"])
    refuse("trained with features of kind strings, and this is a template",
           NotCompatibleError, data=columns(NEW), template=template(tmp_path))  # fmt: skip
    refuse("and this is .* hash_bits=9", NotCompatibleError, hash_bits=9)
    refuse("another vocabulary: 0 of the 1 features of the data are among the",
           data=([[["q"]]], [["O"]]))  # fmt: skip
    refuse("and 0 of the 1 labels among its 6", data=([[{"w": "dog"}]], [[3]]))
    refuse('use kernel="linear"', NotCompatibleError, kernel="rbf",
           data=([np.ones((1, 2))], [["O"]]))  # fmt: skip
    other = tmp_path / "other.txt"
    other.write_text(TEMPLATE + "U:%x[1,1]\n", encoding="utf-8")
    by_template = SequenceTagger(template=other).fit(*columns(OLD))
    refuse("another template: 5 lines, and this one has 4; they differ in 'U:%x\\[1,1\\]'",
           NotCompatibleError, data=columns(NEW), template=template(tmp_path),
           prior=by_template)  # fmt: skip
    kernel = SequenceTagger(kernel="rbf").fit([np.ones((2, 2))], [["O", "B-NP"]])
    refuse("but a kernel", NotCompatibleError, prior=kernel)
    with pytest.raises(NotCompatibleError, match="goes with solver 'sdm'"):
        SequenceTagger(prior=old, solver="bcfw").fit(X, y)
    with pytest.raises(ValueError, match="hard margins"):
        SequenceTagger(prior=old, solver=SDM(slack="hard")).fit(X, y)
    fine = SequenceTagger(prior=old, regularizer=L2(), labels=["B-ZZ", *old.classes_])
    assert fine.fit(X, y).classes_[0] == "B-ZZ"


def test_clones_and_searches_keep_the_prior():
    old = SequenceTagger(C=1.0).fit(*dicts(OLD))
    tagger = SequenceTagger(prior=old, prior_precision=2.0)
    assert clone(tagger).prior is old
    X, y = dicts(NEW)
    found = GridSearchCV(tagger, {"C": [0.1, 1.0], "prior_precision": [1.0, 5.0]}, cv=2).fit(X, y)
    assert found.best_estimator_.prior_match_.shared_labels > 0


def test_a_file_says_what_it_does_not_hold(tmp_path):
    old = SequenceTagger(C=1.0).fit(*dicts(OLD))
    old.save(tmp_path / "old.mm")
    new = SequenceTagger(prior=tmp_path / "old.mm", prior_precision=3.0).fit(*dicts(NEW))
    new.save(tmp_path / "new.mm")
    loaded = SequenceTagger.load(tmp_path / "new.mm")
    assert loaded.prior is None
    assert loaded.prior_precision == 3.0
    with pytest.raises(NotCompatibleError, match=r"the prior old.mm \(prior_precision=3\)"):
        loaded.fit(*dicts(NEW))
    loaded.set_params(prior=old, regularizer=None).fit(*dicts(NEW))
    assert loaded.certificate_.primal == pytest.approx(new.certificate_.primal, rel=0.02)


# --- the command ---


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "old.tsv", text(OLD))
    write(tmp_path / "new.tsv", text(NEW))
    template(tmp_path)
    old = tmp_path / "old.mm"
    command = ["train", tmp_path / "old.tsv", "-m", old, "--template", tmp_path / "template.txt"]
    assert main([*map(str, command), "-q"]) == 0
    return tmp_path


def test_the_command_adapts(files, capsys):
    command = ["train", str(files / "new.tsv"), "-m", str(files / "new.mm")]
    prior = ["--prior", str(files / "old.mm"), "--prior-precision", "2"]
    found = summary(capsys, *command, *prior, "-q")
    assert found["prior"]["shared_labels"] == found["prior"]["new_labels"] - 1
    assert found["prior"]["precision"] == 2
    assert main([*command, *prior]) == 0
    assert "prior of precision 2; " in capsys.readouterr().out
    same = SequenceTagger(
        prior=files / "old.mm", prior_precision=2.0, template=files / "template.txt", random_state=0
    ).fit(*columns(NEW))
    assert found["primal"] == pytest.approx(same.certificate_.primal, rel=1e-9)
    assert main(["info", str(files / "new.mm")]) == 0
    assert "the prior old.mm (prior_precision=2)" in capsys.readouterr().out
    more = ["--cv", "2", "--grid", "C=0.1,1"]
    assert main([*command, *prior, *more, "-q"]) == 0


def test_the_command_refuses(files, capsys):
    command = ["train", files / "new.tsv", "-m", files / "m.mm"]
    prior = ["--prior", files / "old.mm"]
    for options, message in (
        (["--prior-precision", "2"], "--prior-precision needs --prior OLD"),
        ([*prior, "--l1-ratio", "0.5"], "does not go with --l1-ratio"),
        ([*prior, "--nonzeros", "5"], "does not go with --nonzeros"),
        ([*prior, "--template", "words"], "another template"),
        ([*prior, "--solver", "bcfw"], "goes with solver 'sdm'"),
        ([*prior, "--slack", "hard"], "hard margins"),
        ([*prior, "--hash-bits", "9"], "hash_bits"),
        (["--prior", files / "none.mm"], "none.mm"),
        (["--prior", files / "new.tsv"], "new.tsv"),
    ):
        assert message in refused(capsys, *command, "-q", *options)
    assert "old.mm" in refused(capsys, "train", files / "new.tsv", "-m", files / "old.mm", *prior)


# --- other structures, the example and the benchmark ---


def test_classes_have_padded_weights_too():
    from maxmargin import MulticlassSVM

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    d = MulticlassSVM().fit(X, y).structure_.n_features
    mean = rng.normal(size=d)
    for dtype in ("float32", "float64"):
        asked = {"dtype": dtype, "gap": 1e-4, "random_state": 0}
        held = MulticlassSVM(**asked, regularizer=GaussianPrior(mean, math.inf)).fit(X, y)
        plain = held.structure_.unpack(held.weights_).reshape(-1)
        np.testing.assert_allclose(plain, mean, atol=1e-6)
        scores = held.structure_.score_outputs(X, y, held.weights_, 1)
        f = [held.structure_.joint_feature(row, label) for row, label in zip(X, y, strict=True)]
        assert scores == pytest.approx([_dense(v, d) @ mean for v in f], abs=1e-4)
        signs = MulticlassSVM(**asked, regularizer=Nonnegative(np.arange(d) < 5)).fit(X, y)
        w = signs.structure_.unpack(signs.weights_).reshape(-1)
        assert w[:5].min() == 0 > w[5:].min()


def _dense(features, d):
    if isinstance(features, tuple):
        found = np.zeros(d)
        np.add.at(found, features[0], features[1])
        return found
    return np.asarray(features)


def _script(folder, name):
    path = Path(__file__).parents[1] / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.data
def test_the_example(capsys, monkeypatch):
    for name in ("citations_cora", "citations_fluxcim_cs"):
        data_file(name)
    monkeypatch.setenv("MAXMARGIN_DATA", str(FOLDER))
    assert _script("examples", "adaptation").main(["--examples", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    right = [float(re.search(r": ([\d.]+) %", line)[1]) for line in lines[:3]]
    assert right[2] > right[1] + 3  # adapted, and from nothing


def test_the_benchmark(tmp_path, capsys):
    script = _script("benchmarks", "adaptation")
    old, new = columns(OLD, 1), columns(NEW * 4, 1)
    task = script.Task(old, old, new, None, "F1", script.Grid((0.1, 1.0), (0.1,), (1.0,)))
    found = script.run(task, (2, 6), range(2))
    assert len(found["scores"]["prior 6"]) == 2
    assert found["chosen"]["nothing 2"][0]["C"] in (0.1, 1.0)
    for k in range(2):
        part = script.run(task, (2, 6), range(k, k + 1))
        write(tmp_path / f"{k}.txt", f"text\n{json.dumps({'toy': part})}\n")
    merged = script.merged([tmp_path / "0.txt", tmp_path / "1.txt"])["toy"]
    assert merged["scores"] == found["scores"]
    script.show("toy", merged)
    assert "toy: F1 in %, 2 draws" in capsys.readouterr().out
    assert script._untyped("B-NP", "NP") == script._untyped("B-LOC", "") == "B-X"
    assert script._untyped("I-VP", "NP") == script._untyped("O", "") == "O"
    assert script.mean_and_error([1.0, 3.0]) == (2.0, pytest.approx(1.0))


def test_a_prior_of_an_older_template_names_it():
    X, y = [[["dogs"], ["bark"]], [["cats"], ["sleep"]]], [["N", "V"], ["N", "V"]]
    old = SequenceTagger(template="pos@1", random_state=0).fit(X, y)
    with pytest.raises(NotCompatibleError, match=r"another template.*\(its template is pos@1\)"):
        SequenceTagger(template="pos", prior=old).fit(X, y)
    SequenceTagger(template="pos@1", prior=old, random_state=0).fit(X, y)
