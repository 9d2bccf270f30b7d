"""Model files of taggers: the same model comes back, and damage of any kind is refused."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import resource
import signal
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from maxmargin import _native
from maxmargin.errors import ModelFormatError
from maxmargin.features import FeatureEncoder
from maxmargin.features.columns import ColumnTable
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import dense_weights, load_tagger, save_tagger
from maxmargin.io.tagger_file import weights as file_weights
from maxmargin.selection import FitOptions, fit
from maxmargin.solvers import make_solver, solve
from maxmargin.structures import Chain

TEMPLATE = """\
# words, parts of speech, and what words look like
U:w-1=%x[-1,0]
U:w0=%x[0,0]
U:W0=%X[0,0]
U:p0,1=%x[0,1]|%x[1,1]
U:suf=%s[0,0,2]
U:shape=%h[0,0]
U:cap=%t[0,0,"^\\u"]
B
"""
#: with features of two labels
PAIRS = f'{TEMPLATE}B:w=%x[0,0]\n*:p=%x[-1,1]|%x[0,1]\nB:%t[0,0,"^\\u"]\n'
WORDS = ["the", "old", "Dog", "barks", "at", "Élan", "42", "a-b", "猫", "Wu"]
TAGS = ["DT", "JJ", "NN", "VBZ"]
LABELS = ["B-NP", "I-NP", "O", "B-VP"]
META = {
    "certificate": {"primal": 1.5, "dual": 1.25},
    "training": {"C": 0.1, "passes": 7, "note": "naïve\n"},
    "params": {"allowed": None, "list": [1, 2.5, True, None]},
}
MASKS = ("mask_transition", "mask_start", "mask_end")


# --- data of every kind ---


def lengths_of(rng, n=8):
    return rng.integers(1, 7, n).tolist()


def rows(rng, lengths):
    return [
        [[str(rng.choice(WORDS)), str(rng.choice(TAGS))] for _ in range(T)] for T in lengths
    ]


def words(rng, lengths):
    return [[[f"w:{rng.choice(WORDS)}", f"n{rng.integers(30)}"] for _ in range(T)] for T in lengths]


def dicts(rng, lengths):
    return [
        [
            {"w": str(rng.choice(WORDS)), "n": float(rng.normal()), f"x{rng.integers(20)}": True}
            for _ in range(T)
        ]
        for T in lengths
    ]


def matrices(rng, lengths):
    return [
        sparse.random_array((T, 25), density=0.2, format="csr", rng=rng, dtype=np.float64)
        for T in lengths
    ]


def numbers(rng, lengths, dtype=np.float64):
    return [rng.normal(size=(T, 3)).astype(dtype) for T in lengths]


def pairs(first, dtype=np.float64):
    return lambda rng, lengths: list(
        zip(first(rng, lengths), numbers(rng, lengths, dtype), strict=True)
    )


def shout(sequence):
    """The features of a function: module level, so that it has a name."""
    return [[f"{t}:{cell}" for cell in token] for t, token in enumerate(sequence)]


def template(text=TEMPLATE, **options):
    return TemplateEncoder(Template.parse(text, "toy"), **options)


KINDS = {
    "template": (rows, template),
    "template, min_count": (rows, lambda: template(min_count=2)),
    "template, hash_bits": (rows, lambda: template(hash_bits=6)),
    "template, pairs": (rows, lambda: template(PAIRS)),
    "template, pairs, min_count": (rows, lambda: template(PAIRS, min_count=2)),
    "lists": (words, FeatureEncoder),
    "lists, min_count": (words, lambda: FeatureEncoder(min_count=2)),
    "lists, hash_bits": (words, lambda: FeatureEncoder(hash_bits=5)),
    "dicts": (dicts, FeatureEncoder),
    "dicts, hash_bits": (dicts, lambda: FeatureEncoder(hash_bits=5)),
    "strings+dense": (pairs(dicts), FeatureEncoder),
    "strings+dense, hash_bits": (pairs(dicts), lambda: FeatureEncoder(hash_bits=5)),
    "sparse": (matrices, FeatureEncoder),
    "sparse+dense": (pairs(matrices), FeatureEncoder),
    "sparse+dense32": (pairs(matrices, np.float32), FeatureEncoder),
    "dense": (numbers, FeatureEncoder),
    "function": (rows, lambda: FunctionEncoder(shout)),
    "function, hash_bits": (rows, lambda: FunctionEncoder(shout, hash_bits=5)),
}


def labelled(rng, lengths, labels=LABELS):
    """Random labels that IOB2 allows; every label occurs (the last sequence sees to it)."""
    Y = [[labels[k] for k in rng.integers(0, len(labels), T)] for T in lengths]
    for y in Y:
        for t, label in enumerate(y):
            before = y[t - 1] if t else None
            if label == "I-NP" and before not in ("B-NP", "I-NP"):
                y[t] = "B-NP"
    return Y


def random_weights(chain, rng, share=0.3, dtype="float32", empty_rows=0.4):
    """Weights of which some are zero, and some sparse features have none at all."""
    w = rng.normal(size=(chain.n_features // chain.n_labels, chain.n_labels))
    n_sparse = chain.encoder.n_sparse
    w[:n_sparse] *= rng.random((n_sparse, chain.n_labels)) < share
    w[:n_sparse] *= (rng.random(n_sparse) >= empty_rows)[:, None]
    n_pair, L = chain.encoder.n_pair, chain.n_labels
    pair_rows = w[len(w) - n_pair * L :].reshape(n_pair, L, L)
    pair_rows *= rng.random(pair_rows.shape) < share
    pair_rows *= (rng.random(n_pair) >= empty_rows)[:, None, None]
    return chain.pad(w.ravel(), dtype)


def make(kind="template", seed=0, dtype="float32", share=0.3, empty_rows=0.4, **options):
    """A chain with random weights, and data that it has not seen."""
    rng = np.random.default_rng(seed)
    data, encoder = KINDS[kind]
    lengths = [*lengths_of(rng), len(LABELS)]
    X, Y = data(rng, lengths), labelled(rng, lengths)
    Y[-1] = list(LABELS)
    chain = Chain(encoder=encoder(), **options)
    chain.learn(X, Y, dtype)
    weights = random_weights(chain, rng, share, dtype, empty_rows)
    return chain, weights, X + data(rng, lengths_of(rng))


def loaded(path, kind="template"):
    return load_tagger(path, shout if kind.startswith("function") else None)


def by_name(chain, weights):
    """{name: weights by label} of the features that say something."""
    coef = chain.unpack(weights).coef
    names = chain.encoder.feature_names()
    assert len(names) == len(coef)
    assert len(set(names)) == len(names)
    return {
        name: dict(zip(chain.labels_, row.tolist(), strict=True))
        for name, row in zip(names, coef, strict=True)
        if row.any()
    }


def pairs_by_name(chain, weights):
    """{name: weights by two labels} of the pair features that say something."""
    if not chain.encoder.n_pair:
        return {}
    names, blocks = chain.encoder.pair_names(), chain.unpack(weights).pairs
    assert len(names) == len(blocks) == len(set(names))
    return {name: b.tolist() for name, b in zip(names, blocks, strict=True) if b.any()}


def assert_same_model(model, chain, weights, X):
    """Compare everything that the two models say."""
    found = model.chain
    assert found.classes_ == chain.classes_
    assert [type(c) for c in found.classes_] == [type(c) for c in chain.classes_]
    assert found.labels_ == chain.labels_
    np.testing.assert_array_equal(found.class_columns_, chain.class_columns_)
    assert (found.mask is None) == (chain.mask is None)
    if chain.mask is not None:
        for a, b in zip(found.mask, chain.mask, strict=True):
            np.testing.assert_array_equal(a, b)
    assert type(found.encoder) is type(chain.encoder)
    for name in ("kind", "hash_bits", "min_count", "n_dense"):
        assert getattr(found.encoder, name) == getattr(chain.encoder, name)
    full = dense_weights(model)
    assert full.dtype == weights.dtype
    assert full.ctypes.data % 32 == 0
    assert full.shape == (found.n_weights(full.dtype),)
    assert by_name(found, full) == by_name(chain, weights)
    for a, b in zip(found.unpack(full)[1:4], chain.unpack(weights)[1:4], strict=True):
        np.testing.assert_array_equal(a, b)
    assert pairs_by_name(found, full) == pairs_by_name(chain, weights)
    # Sums of the same numbers in another order: zeros that are left out regroup them.
    close = {"rtol": 1e-5, "atol": 1e-5} if full.dtype == np.float32 else {"rtol": 1e-12}
    for w in (model.weights, full):
        same_sums = found.encoder.feature_names() == chain.encoder.feature_names()
        same_sums = same_sums and isinstance(w, np.ndarray)
        same_sums = same_sums and found.encoder.n_pair == chain.encoder.n_pair
        tolerance = {"rtol": 0} if same_sums else close
        assert found.predict(X, w) == chain.predict(X, weights)
        np.testing.assert_allclose(
            np.concatenate(found.max_marginals(X, w)),
            np.concatenate(chain.max_marginals(X, weights)),
            **tolerance,
        )
        for paths, others in zip(found.kbest(X, w, 3), chain.kbest(X, weights, 3), strict=True):
            assert [labels for labels, _ in paths] == [labels for labels, _ in others]
            scores, wanted = ([score for _, score in p] for p in (paths, others))
            np.testing.assert_allclose(scores, wanted, **tolerance)


@pytest.fixture(params=["full", "sparse"])
def form(request, monkeypatch):
    """Small weights are loaded as a full matrix; with "sparse", all count as large."""
    if request.param == "sparse":
        monkeypatch.setattr(file_weights, "FULL_BYTES", 0)
    return request.param


# --- what comes back ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("allowed", [None, "iob2"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("form")
def test_round_trip(tmp_path, kind, dtype, allowed):
    for seed in range(2):
        chain, weights, X = make(kind, seed, dtype, allowed=allowed)
        size = save_tagger(tmp_path / "m", chain, weights, META)
        assert size == (tmp_path / "m").stat().st_size
        model = loaded(tmp_path / "m", kind)
        assert_same_model(model, chain, weights, X)
        assert {key: model.meta[key] for key in META} == META


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_can_be_saved(tmp_path, kind, dtype):
    chain, weights, X = make(kind, 5, dtype, allowed="iob2")
    save_tagger(tmp_path / "a", chain, weights, META)
    first = loaded(tmp_path / "a", kind)
    save_tagger(tmp_path / "b", first.chain, dense_weights(first), META)
    second = loaded(tmp_path / "b", kind)
    assert_same_model(second, chain, weights, X)
    save_tagger(tmp_path / "c", second.chain, dense_weights(second), META)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert (tmp_path / "b").stat().st_size <= (tmp_path / "a").stat().st_size


def test_saved_over_the_file_it_was_loaded_from(tmp_path):
    chain, weights, X = make()
    save_tagger(tmp_path / "m", chain, weights, META)
    model = load_tagger(tmp_path / "m")
    save_tagger(tmp_path / "m", model.chain, dense_weights(model), META)
    assert_same_model(load_tagger(tmp_path / "m"), chain, weights, X)
    assert_same_model(model, chain, weights, X)


@pytest.mark.parametrize("kind", ["template", "template, pairs", "dicts"])
@pytest.mark.usefixtures("form")
def test_trained(tmp_path, kind):
    rng = np.random.default_rng(3)
    data, encoder = KINDS[kind]
    lengths = lengths_of(rng, 30)
    X, Y = data(rng, lengths), labelled(rng, lengths)
    chain = Chain(encoder=encoder(), allowed="iob2")
    batch, codes = chain.learn(X, Y)
    outcome = fit(chain, chain.encoded_problem(batch, codes), 0.1, FitOptions(gap=0.05))
    save_tagger(tmp_path / "m", chain, outcome.weights, META)
    model = load_tagger(tmp_path / "m")
    assert_same_model(model, chain, outcome.weights, X)
    problem = chain.encoded_problem(batch, codes)
    twin = model.chain.encoded_problem(model.chain.encoder.transform(X), codes)
    assert twin.hinge(model.weights) == pytest.approx(problem.hinge(outcome.weights), rel=1e-6)


def test_tables_with_and_without_their_labels(tmp_path):
    rng = np.random.default_rng(0)
    lengths = lengths_of(rng)
    X, Y = rows(rng, lengths), labelled(rng, lengths)
    # The labels stand in the middle: columns behind them move.
    with_labels = [
        [[word, label, tag] for (word, tag), label in zip(x, y, strict=True)]
        for x, y in zip(X, Y, strict=True)
    ]
    table = ColumnTable.from_rows(with_labels)
    moved = Template.parse(TEMPLATE.replace(",1]", ",2]"), "moved")
    chain = Chain(encoder=TemplateEncoder(moved, label_column=1))
    chain.prepare(table, table.labels(1))
    weights = random_weights(chain, rng)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert (model.chain.encoder.label_column, model.chain.encoder.n_columns) == (1, 3)
    wanted = chain.predict(with_labels, weights)
    assert model.chain.predict(with_labels, model.weights) == wanted
    assert model.chain.predict(X, model.weights) == wanted
    with pytest.raises(ValueError, match="found 1 column"):
        model.chain.predict([[["a"]]], model.weights)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "Ä", "\x00", ""],
        [3, -1, 2**70],
        [True, False],
        [0.1, -2.0, 1e300],
        [1, "1", 2.5],
        ["only"],
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.usefixtures("form")
def test_labels_of_every_type(tmp_path, labels, dtype):
    rng = np.random.default_rng(1)
    lengths = [*lengths_of(rng), len(labels)]
    X, Y = words(rng, lengths), labelled(rng, lengths, labels)
    Y[-1] = list(labels)
    chain = Chain()
    chain.prepare(X, Y)
    weights = random_weights(chain, rng, dtype=dtype)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert_same_model(model, chain, weights, X)
    kinds = {type(label) for y in model.chain.predict(X, model.weights) for label in y}
    assert kinds <= {type(label) for label in labels}


@pytest.mark.parametrize("n_labels", [2, 8, 9, 255, 256, 257, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.usefixtures("form")
def test_many_labels(tmp_path, n_labels, dtype):
    rng = np.random.default_rng(n_labels)
    X, Y = words(rng, [n_labels, 4]), [[*range(n_labels)], [0, 0, 1, 1]]
    chain = Chain()
    chain.prepare(X, Y)
    weights = random_weights(chain, rng, share=0.3, dtype=dtype)
    # One feature has weights for all labels: their number must fit.
    weights.reshape(-1, len(weights) // chain.layout.n_rows)[0, :n_labels] = 1 + np.arange(n_labels)
    save_tagger(tmp_path / "m", chain, weights, {})
    arrays = read_container(tmp_path / "m").arrays
    if n_labels >= 255:
        assert arrays["entry_labels"].dtype == (np.uint8 if n_labels <= 256 else np.uint16)
        assert arrays["counts"].max() == n_labels
    model = load_tagger(tmp_path / "m")
    full = dense_weights(model)
    assert by_name(model.chain, full) == by_name(chain, weights)
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)
    assert model.chain.predict(X, full) == chain.predict(X, weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.usefixtures("form")
def test_all_weights_zero(tmp_path, kind, dtype):
    chain, weights, X = make(kind, dtype=dtype)
    weights[:] = 0
    save_tagger(tmp_path / "m", chain, weights, {})
    model = loaded(tmp_path / "m", kind)
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)
    assert not dense_weights(model).any()
    named = kind in ("template", "lists", "dicts", "strings+dense", "function")
    if named:
        assert model.chain.encoder.n_sparse == 1
        assert model.chain.encoder.feature_names()[0] == chain.encoder.feature_names()[0]


def test_one_feature_without_weights(tmp_path):
    chain = Chain()
    chain.prepare([[["a"], ["a"]]], [["N", "V"]])
    weights = chain.pad(np.zeros(chain.n_features), "float32")
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert model.chain.encoder.feature_names() == ["a"]
    assert model.chain.predict([[["a"], ["b"]]], model.weights) == [["N", "N"]]


@pytest.mark.parametrize(
    "X", [[[[], []]], [([[], []], np.array([[1.0], [2.0]]))]], ids=["strings", "strings+dense"]
)
def test_no_strings_at_all(tmp_path, X):
    chain = Chain()
    chain.prepare(X, [["N", "V"]])
    weights = chain.pad(np.arange(chain.n_features, dtype=float), "float32")
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)


def test_names_of_every_length(tmp_path):
    names = ["", "a", "ä" * 200, "x" * 255, "y" * 256, "z" * 70_000]
    chain = Chain()
    chain.prepare([[[name] for name in names]], [["N", "V"] * 3])
    weights = random_weights(chain, np.random.default_rng(0), share=1.0, empty_rows=0.0)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert model.chain.encoder.feature_names() == names
    assert by_name(model.chain, dense_weights(model)) == by_name(chain, weights)


# --- the form of the weights ---


def test_the_smaller_form_is_chosen(tmp_path, form):
    # Seven labels in rows of eight: entries of 5 bytes are more than a matrix of 4 when all count.
    labels = [f"l{k}" for k in range(7)]
    seen = set()
    for kind in ("template", "lists", "sparse", "sparse+dense", "lists, hash_bits"):
        data, encoder = KINDS[kind]
        for share in (0.0, 0.02, 0.3, 0.6, 0.9, 1.0):
            rng = np.random.default_rng(int(100 * share))
            lengths = [*lengths_of(rng), 7]
            X, Y = data(rng, lengths), labelled(rng, lengths, labels)
            Y[-1] = list(labels)
            chain = Chain(encoder=encoder())
            chain.prepare(X, Y)
            weights = random_weights(chain, rng, share=share, empty_rows=0.0)
            save_tagger(tmp_path / "m", chain, weights, {})
            container = read_container(tmp_path / "m")
            arrays = container.arrays
            full = "weights" in arrays
            assert full != ("counts" in arrays)
            matrix = (container.meta["encoder"]["n_sparse"] + chain.encoder.n_dense + 7 + 2) * 8 * 4
            stored = ("weights", "counts", "entry_labels", "entry_weights", "tail", "rows")
            size = sum(arrays[name].nbytes for name in stored if name in arrays)
            assert size == matrix if full else size < matrix
            coef = chain.unpack(weights).coef[: chain.encoder.n_sparse]
            entries = int((coef != 0).sum())
            if full:
                assert 5 * entries + len(coef) > 0.8 * matrix - 4 * 9 * 8
            seen.add((kind, full))
            model = load_tagger(tmp_path / "m")
            assert isinstance(model.weights, np.ndarray) == (full or form == "full")
            assert_same_model(model, chain, weights, X)
    for kind in ("template", "lists", "sparse", "sparse+dense"):
        assert {(kind, True), (kind, False)} <= seen


def test_full_form_stays_on_disk(tmp_path):
    # L = 8 fills the rows of float32: nothing is smaller than the matrix.
    rng = np.random.default_rng(0)
    X, Y = words(rng, [20, 8]), [[k % 8 for k in range(20)], [*range(8)]]
    for dtype in ("float32", "float64"):
        chain = Chain()
        chain.prepare(X, Y)
        weights = random_weights(chain, rng, share=1.0, dtype=dtype, empty_rows=0.0)
        save_tagger(tmp_path / "m", chain, weights, {})
        assert "weights" in read_container(tmp_path / "m").arrays
        model = load_tagger(tmp_path / "m")
        assert not model.weights.flags.writeable
        assert_same_model(model, chain, weights, X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pair_features_without_weights_are_dropped(tmp_path, dtype):
    chain, weights, X = make("template, pairs", 2, dtype)
    blocks, names = chain.unpack(weights).pairs, chain.encoder.pair_names()
    used = blocks.any(axis=(1, 2))
    assert 0 < used.sum() < len(used)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    found = model.chain.encoder
    assert found.n_pair == used.sum()
    assert found.pair_names() == [name for name, kept in zip(names, used, strict=True) if kept]
    np.testing.assert_array_equal(model.chain.unpack(model.weights).pairs, blocks[used])
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)
    np.testing.assert_allclose(
        model.chain.score_labellings(X, chain.predict(X, weights), model.weights),
        chain.score_labellings(X, chain.predict(X, weights), weights),
        rtol=1e-5,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_pair_feature_has_weights(tmp_path, dtype):
    chain, weights, X = make("template, pairs", 3, dtype)
    chain.unpack(weights).pairs[:] = 0
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert model.chain.encoder.n_pair == 0
    assert model.chain.encoder.pair_names() == []
    assert model.chain.unpack(model.weights).pairs.shape == (0, 4, 4)
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)
    save_tagger(tmp_path / "again", model.chain, dense_weights(model), {})
    assert_same_model(load_tagger(tmp_path / "again"), chain, weights, X)


@pytest.mark.parametrize("kind", ["template", "lists", "dicts", "strings+dense"])
def test_features_without_weights_are_dropped(tmp_path, kind):
    chain, weights, _ = make(kind, share=0.2)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    n_sparse = chain.encoder.n_sparse
    says = chain.unpack(weights).coef[:n_sparse].any(axis=1)
    assert 0 < says.sum() < n_sparse
    names = chain.encoder.feature_names()
    kept = [names[k] for k in np.flatnonzero(says)]
    assert model.chain.encoder.n_sparse == len(kept)
    found = model.chain.encoder.feature_names()[: len(kept)]
    if kind == "template":  # by line of the template
        lines = [line.text.partition("=")[0] for line in chain.encoder.template.lines]
        kept.sort(key=lambda name: lines.index(name.partition("=")[0]))
    assert found == kept
    assert by_name(model.chain, dense_weights(model)) == by_name(chain, weights)


@pytest.mark.parametrize("kind", ["sparse", "sparse+dense", "template, hash_bits"])
def test_features_without_names_keep_their_places(tmp_path, kind):
    chain, weights, _ = make(kind, share=0.2)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    assert model.chain.encoder.n_sparse == chain.encoder.n_sparse
    np.testing.assert_array_equal(dense_weights(model), weights)


def test_names_of_template_features(tmp_path):
    chain, weights, X = make("template", share=1.0, empty_rows=0.0)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m")
    names = model.chain.encoder.feature_names()
    assert sorted(names) == sorted(chain.encoder.feature_names())
    assert len(names) == model.chain.encoder.n_sparse
    program = _native.TemplateProgram(model.chain.encoder.template.program())
    table = ColumnTable.from_rows(X[:9])
    expanded = [program.named_rows(table.native, [0, 1], i) for i in range(len(table))]
    assert {name for x in expanded for token in x for name in token} == set(names)
    assert "U:w0=猫" in names


def test_the_template_comes_back(tmp_path):
    chain, weights, _ = make("template")
    save_tagger(tmp_path / "m", chain, weights, {})
    found = load_tagger(tmp_path / "m").chain.encoder.template
    assert (found.text, found.source) == (TEMPLATE, "toy")


# --- functions ---


def test_a_function_must_be_given(tmp_path):
    chain, weights, X = make("function")
    save_tagger(tmp_path / "m", chain, weights, META)
    with pytest.raises(ValueError, match=r"m: .*:shout, which a file cannot hold") as caught:
        load_tagger(tmp_path / "m")
    assert not isinstance(caught.value, ModelFormatError)
    model = load_tagger(tmp_path / "m", shout)
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)
    assert model.chain.encoder.function is shout


@pytest.mark.parametrize(
    ("kind", "function", "expected"),
    [
        ("template", shout, "none: the model needs none"),
        ("lists", shout, "none: the model needs none"),
        ("template", "words", "none: the model needs none"),
        ("function", "words", "a function"),
        ("function", 3, "a function"),
    ],
)
def test_a_function_that_is_not_needed_or_none(tmp_path, kind, function, expected):
    chain, weights, _ = make(kind)
    save_tagger(tmp_path / "m", chain, weights, META)
    with pytest.raises(ValueError, match=f"m: found .* expected {expected}") as caught:
        load_tagger(tmp_path / "m", function)
    assert not isinstance(caught.value, ModelFormatError)


@pytest.mark.parametrize("function", [lambda x: [*shout(x)], type("F", (), {"__call__": shout})()])
def test_functions_without_a_name(tmp_path, function):
    rng = np.random.default_rng(0)
    lengths = lengths_of(rng)
    chain = Chain(encoder=FunctionEncoder(shout))
    chain.prepare(rows(rng, lengths), labelled(rng, lengths))
    chain.encoder.function = function
    save_tagger(tmp_path / "m", chain, random_weights(chain, rng), {})
    with pytest.raises(ValueError, match="pass it when loading"):
        load_tagger(tmp_path / "m")


def test_functions_on_tables(tmp_path):
    rng = np.random.default_rng(2)
    lengths = lengths_of(rng)
    X, Y = rows(rng, lengths), labelled(rng, lengths)
    both = [
        [[label, *token] for token, label in zip(x, y, strict=True)]
        for x, y in zip(X, Y, strict=True)
    ]
    table = ColumnTable.from_rows(both)
    chain = Chain(encoder=FunctionEncoder(shout, label_column=0))
    chain.prepare(table, table.labels(0))
    weights = random_weights(chain, rng)
    save_tagger(tmp_path / "m", chain, weights, {})
    model = load_tagger(tmp_path / "m", shout)
    wanted = chain.predict(table, weights)
    assert model.chain.predict(table, model.weights) == wanted
    assert model.chain.predict(ColumnTable.from_rows(X), model.weights) == wanted


# --- what cannot be saved ---


@pytest.mark.parametrize("label", [(1, 2), None, b"x", frozenset()])
@pytest.mark.parametrize("exists", [True, False])
def test_labels_that_a_file_cannot_hold(tmp_path, label, exists):
    path = tmp_path / "m"
    if exists:
        path.write_bytes(b"the old model")
    chain = Chain()
    chain.prepare([[["a"], ["b"]]], [["N", label]])
    weights = chain.pad(np.zeros(chain.n_features), "float32")
    with pytest.raises(TypeError, match="a model file holds labels"):
        save_tagger(path, chain, weights, {})
    assert (path.read_bytes() if exists else None) == (b"the old model" if exists else None)
    assert len(list(tmp_path.iterdir())) == exists


@pytest.mark.parametrize("label", [float("inf"), "\ud800"])
def test_labels_that_json_cannot_hold(tmp_path, label):
    chain = Chain()
    chain.prepare([[["a"], ["b"]]], [[0.5 if isinstance(label, float) else "N", label]])
    weights = chain.pad(np.zeros(chain.n_features), "float32")
    with pytest.raises(ValueError, match="meta"):
        save_tagger(tmp_path / "m", chain, weights, {})
    assert list(tmp_path.iterdir()) == []


def test_meta_that_json_cannot_hold(tmp_path):
    chain, weights, _ = make()
    with pytest.raises(TypeError, match="training"):
        save_tagger(tmp_path / "m", chain, weights, {"training": {1, 2}})
    assert list(tmp_path.iterdir()) == []


def refuses(path, chain, weights, meta):
    """Whether saving fails and leaves nothing."""
    with pytest.raises((TypeError, ValueError)):
        save_tagger(path, chain, weights, meta)
    assert not path.exists()


@pytest.mark.parametrize("key", ["classes", "columns", "encoder", "dtype"])
def test_meta_may_not_replace_the_model(tmp_path, key):
    # The meta data of a loaded model have these keys; what the chain says is written.
    chain, weights, X = make()
    save_tagger(tmp_path / "m", chain, weights, {**META, key: "mine"})
    assert_same_model(load_tagger(tmp_path / "m"), chain, weights, X)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda w: w[:-8],
        lambda w: np.concatenate([w, w[:8]]),
        lambda w: np.full_like(w, np.nan),
        lambda w: np.full_like(w, np.inf),
        lambda w: w.astype(np.int32),
    ],
    ids=["too short", "too long", "nan", "inf", "integers"],
)
def test_weights_that_could_not_be_loaded(tmp_path, spoil):
    chain, weights, _ = make()
    refuses(tmp_path / "m", chain, spoil(weights), {})


# --- damage ---


@pytest.fixture(scope="module")
def folder():
    # Thousands of files in the place of each other: where there is one, on a disk in memory.
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, prefix="maxmargin-test-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def model_files(folder):
    """{kind: (content of the file, inputs, predictions)}."""
    files = {}
    for kind in KINDS:
        chain, weights, X = make(kind, allowed="iob2", share=0.25)
        save_tagger(folder / "good", chain, weights, META)
        files[kind] = ((folder / "good").read_bytes(), X, chain.predict(X, weights))
    return files


def damaged(rng, content):
    """The content with one accident."""
    data, at = bytearray(content), int(rng.integers(len(content)))
    accident = rng.integers(6)
    if accident == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif accident == 1:
        del data[at:]
    elif accident == 2:
        data[at:at] = rng.bytes(int(rng.integers(1, 100)))
    elif accident == 3:
        data[at : at + 64] = rng.bytes(len(data[at : at + 64]))
    elif accident == 4:
        del data[at : at + int(rng.integers(1, 100))]
    else:
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    return bytes(data)


@pytest.mark.parametrize("kind", ["template", "strings+dense", "template, hash_bits", "dense"])
def test_random_damage(folder, model_files, kind):
    content, X, wanted = model_files[kind]
    rng = np.random.default_rng(7)
    path, refused = folder / "damaged", 0
    for _ in range(250):
        data = damaged(rng, content)
        path.write_bytes(data)
        try:
            model = loaded(path, kind)
        except ModelFormatError:
            refused += 1
            continue
        assert model.chain.predict(X, model.weights) == wanted
        assert data == content, "damage went unseen"  # zeros over zeros, for example
    assert refused > 200


def test_files_that_are_something_else(folder, model_files):
    path = folder / "other"
    write_container(path, "other", {"a": 1}, {})
    with pytest.raises(ModelFormatError, match="holds a 'other', expected a 'tagger'"):
        load_tagger(path)
    write_container(path, "tagger", {}, {})
    with pytest.raises(ModelFormatError, match="'encoder' is missing"):
        load_tagger(path)
    for content in (b"", b"\n", b"maxmargn", json.dumps(META).encode(), TEMPLATE.encode()):
        path.write_bytes(content)
        with pytest.raises(ModelFormatError):
            load_tagger(path)
    with pytest.raises(FileNotFoundError):
        load_tagger(folder / "missing")
    with pytest.raises(IsADirectoryError):
        load_tagger(folder)


def test_a_checkpoint_is_no_model(tmp_path):
    rng = np.random.default_rng(0)
    lengths = lengths_of(rng)
    chain = Chain()
    batch, codes = chain.learn(words(rng, lengths), labelled(rng, lengths))
    problem = chain.encoded_problem(batch, codes)
    path = tmp_path / "run.npz"
    solve(problem, make_solver("sdm"), C=0.1, max_passes=2, checkpoint=path, warn=False)
    assert path.exists()
    with pytest.raises(ModelFormatError, match="not a maxmargin model"):
        load_tagger(path)


# --- files that are right to the last checksum, and wrong ---

#: What a model may say of inputs that it was not made for, or when its masks leave nothing.
HONEST = (
    "found 2 columns; expected",
    "columns in its sparse matrix; expected",
    "uses only allowed transitions",
    "expected kind",
)


def use(path, kind, X):
    """Load a file and ask the model everything; ModelFormatError and honest answers will do."""
    try:
        model = loaded(path, kind)
    except ModelFormatError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    except ValueError as error:  # of a function that is given
        if not str(error).startswith(f"{path}: found ") or "the model needs none" not in str(error):
            raise
        return
    chain = model.chain
    try:
        predicted = chain.predict(X, model.weights)
        assert [len(y) for y in predicted] == [rows_of(x) for x in X]
        chain.predict(X, dense_weights(model))
        chain.kbest(X, model.weights, 2)
        chain.max_marginals(X, model.weights)
    except ValueError as error:
        if not any(words in str(error) for words in HONEST):
            raise
    try:  # names of a template's features are unpacked when somebody asks for them
        names = [*chain.encoder.feature_names()]
        if isinstance(chain.encoder, TemplateEncoder):
            names += chain.encoder.pair_names()
    except ModelFormatError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    assert len(names) == chain.encoder.n_sparse + chain.encoder.n_dense + chain.encoder.n_pair


def rows_of(x):
    part = x[0] if isinstance(x, tuple) else x
    return part.shape[0] if hasattr(part, "shape") else len(part)


def replaced(meta, place, value):
    """A copy of meta with another value somewhere; the value `...` deletes the key."""
    changed = copy.deepcopy(meta)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return changed


def places(meta, prefix=()):
    """The places of all that a model needs in meta."""
    for key, value in meta.items():
        if prefix or key not in META:
            yield (*prefix, key)
            if isinstance(value, dict):
                yield from places(value, (*prefix, key))


HUGE = [2**31, 2**32 - 1, 2**32, 2**63, 2**64, 2**1000, 1e300]
VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 255, *HUGE, 0.5, 5.5, -0.5, "", "x", "1", "5",
    "columns", "strings", "sparse", "dense", "strings+dense", "sparse+dense", [], [[]], [0], ["a"],
    ["a", "a", "b", "c"], [None] * 4, [[], 1, 2, 3], {}, {"text": 3}, "U\n%x[0,99]", "U:%x[0,99]",
]  # fmt: skip


def array_changes(rng, array):
    """Name and content of what an array might be instead; None: it is missing."""
    yield "missing", None
    zero = np.zeros_like(array, shape=(1, *array.shape[1:]))
    yield "longer by a zero", np.concatenate([array, zero])
    if array.size == 0:
        return
    yield "empty", array[:0]
    yield "cut", array[:-1]
    yield "longer", np.concatenate([array, array[-1:]])
    yield "twice", np.concatenate([array, array])
    yield "scalar", np.array(array.flat[0])
    yield "flat", array.reshape(-1)
    yield "column", array.reshape(-1, 1)
    yield "row", array.reshape(1, -1)
    yield "4-d", array.reshape(1, 1, *array.shape)
    yield "turned", np.ascontiguousarray(array.T)
    yield "backwards", array[::-1].copy()
    yield "constant", np.full_like(array, array.flat[0])
    yield "zeros", np.zeros_like(array)
    yield "ones", np.ones_like(array)
    for dtype in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"):
        if array.dtype != np.dtype(dtype):
            with np.errstate(all="ignore"):
                yield dtype, array.astype(dtype)
    whole = array.dtype.kind == "u"
    extremes = [np.iinfo(array.dtype).max] if whole else [np.nan, np.inf, -np.inf, 3e38, 1e-45]
    for extreme in extremes:
        one = array.copy()
        one.flat[rng.integers(array.size)] = extreme
        yield f"one {extreme}", one
        yield f"all {extreme}", np.full_like(array, extreme)
    if whole:
        for by in (1, -1):
            one = array.copy()
            one.flat[rng.integers(array.size)] += np.array(by).astype(array.dtype)
            yield f"one {by:+}", one
        for bits in (32, 64):  # sums that wrap
            if array.ndim == 1 and array.size > 1:
                wide = array.astype(np.uint64)
                wide[:2] += np.uint64(2 ** (bits - 1))
                yield f"wraps at {bits}", wide
    yield "random", rng.permutation(array.reshape(-1)).reshape(array.shape)


def is_known(kind, place, value):
    """Whether a change is one of those that have tests of their own below."""
    if place[-1] == "hash_bits":
        return value in HUGE or value == 5.5
    if place[-1] == "n_sparse" and kind == "dense":
        return value != 0
    return place[-1] == "n_sparse" and value in HUGE and kind.startswith("sparse")


def changes(kind, container, rng):
    """(description, meta, arrays) of files with right checksums and one thing wrong."""
    often = ("template", "template, pairs", "lists", "sparse+dense", "lists, hash_bits", "function")
    step = 1 if kind in often else 5
    for k, place in enumerate(places(container.meta)):
        for value in [..., *VALUES[k % step :: step]]:
            if not is_known(kind, place, value):
                what = f"{place}: {value!r}"
                yield what, replaced(container.meta, place, value), container.arrays
    for name, array in container.arrays.items():
        if kind.startswith("template") and name in ("names", "name_lengths", "fingerprints"):
            continue  # below
        for what, other in array_changes(rng, array):
            arrays = {k: (other if k == name else v) for k, v in container.arrays.items()}
            if other is None:
                del arrays[name]
            yield f"{name}: {what}", container.meta, arrays
    first, *_ = container.arrays.values()
    yield "one more", container.meta, {**container.arrays, "another": first}
    yield "no arrays", container.meta, {}


def content_of(folder, content):
    (folder / "content").write_bytes(content)
    return read_container(folder / "content")


def failures_of(path, kind, X, every):
    """What goes wrong with files that are wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # there are thousands
        return _failures_of(path, kind, X, every)


def _failures_of(path, kind, X, every):
    failures = []
    for what, meta, arrays in every:
        write_container(path, "tagger", meta, arrays)
        try:
            use(path, kind, X)
        except Exception as error:
            failures.append(f"{what}: {type(error).__name__}: {error}"[:150])
    return "\n".join(failures)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_with_right_checksums(folder, model_files, kind):
    content, X, _ = model_files[kind]
    container = content_of(folder, content)
    every = changes(kind, container, np.random.default_rng(0))
    assert not failures_of(folder / "wrong", kind, X, every)


@pytest.mark.parametrize("kind", ["template", "template, pairs"])
@pytest.mark.parametrize("name", ["names", "name_lengths", "fingerprints"])
def test_wrong_names_of_template_features(folder, model_files, kind, name):
    content, X, _ = model_files[kind]
    container = content_of(folder, content)
    every = [
        (what, container.meta, {k: v for k, v in changed.items() if v is not None})
        for what, other in array_changes(np.random.default_rng(0), container.arrays[name])
        for changed in [{**container.arrays, name: other}]
    ]
    assert not failures_of(folder / "wrong", kind, X, every)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("pair_counts", lambda a: None),
        ("pair_entry_labels", lambda a: None),
        ("pair_entry_weights", lambda a: None),
        ("pair_fingerprints", lambda a: None),
        ("pair_names", lambda a: None),
        ("pair_name_lengths", lambda a: None),
        ("pair_counts", lambda a: a[:-1]),
        ("pair_counts", lambda a: np.append(a, a[:0].dtype.type(0))),  # fits the entries
        ("pair_counts", lambda a: a.astype(np.int64)),
        ("pair_counts", lambda a: a.reshape(-1, 2)),
        ("pair_counts", lambda a: a + a.dtype.type(1)),
        ("pair_entry_labels", lambda a: a[:-1]),
        ("pair_entry_labels", lambda a: np.full_like(a, len(LABELS))),
        ("pair_entry_labels", lambda a: np.full_like(a, 255)),
        ("pair_entry_labels", lambda a: a.astype(np.int8)),
        ("pair_entry_weights", lambda a: a[1:]),
        ("pair_entry_weights", lambda a: np.full_like(a, np.nan)),
        ("pair_entry_weights", lambda a: np.full_like(a, np.inf)),
        ("pair_entry_weights", lambda a: a.astype(np.float64)),  # the others have 4 bytes
        ("pair_entry_weights", lambda a: a.astype(np.int32)),
        ("pair_fingerprints", lambda a: a[:-1]),
        ("pair_fingerprints", lambda a: np.full_like(a, 7)),
        ("pair_fingerprints", lambda a: a.astype(np.int64)),
        ("pair_name_lengths", lambda a: a[:-1]),
        ("pair_name_lengths", lambda a: a.astype(np.float64)),
        ("pair_names", lambda a: a.astype(np.uint16)),
    ],
)
def test_wrong_arrays_of_pair_features_are_refused(folder, model_files, name, spoil):
    container = content_of(folder, model_files["template, pairs"][0])
    arrays = {**container.arrays, name: spoil(container.arrays[name])}
    arrays = {key: array for key, array in arrays.items() if array is not None}
    write_container(folder / "wrong", "tagger", container.meta, arrays)
    with pytest.raises(ModelFormatError, match="the model is inconsistent"):
        load_tagger(folder / "wrong")


def test_repeated_labels_of_pair_features_are_refused(folder, model_files):
    container = content_of(folder, model_files["template, pairs"][0])
    assert container.arrays["pair_counts"].max() > 1
    labels = np.zeros_like(container.arrays["pair_entry_labels"])
    arrays = {**container.arrays, "pair_entry_labels": labels}
    write_container(folder / "wrong", "tagger", container.meta, arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


def test_pair_features_that_are_not_counted_are_refused(folder, model_files):
    container = content_of(folder, model_files["template, pairs"][0])
    meta = replaced(container.meta, ("encoder", "n_pair"), ...)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize("by", [-1, 1, 2**20, 2**31])
def test_a_wrong_number_of_pair_features_is_refused(folder, model_files, by):
    container = content_of(folder, model_files["template, pairs"][0])
    n_pair = container.meta["encoder"]["n_pair"]
    meta = replaced(container.meta, ("encoder", "n_pair"), n_pair + by)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError, match="do not fit"):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize(
    ("text", "message"),
    [(TEMPLATE, "no lines for features of two labels"), ("U:w0=%x[0,0]\nB", "no lines")],
)
def test_pair_features_without_lines_are_refused(folder, model_files, text, message):
    container = content_of(folder, model_files["template, pairs"][0])
    meta = replaced(container.meta, ("encoder", "template", "text"), text)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError, match=message):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize("kind", ["lists", "dense", "template, hash_bits"])
def test_pair_features_of_other_kinds_are_refused(folder, model_files, kind):
    container = content_of(folder, model_files[kind][0])
    assert container.meta["encoder"]["n_pair"] == 0
    meta = replaced(container.meta, ("encoder", "n_pair"), 1)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


def test_a_file_that_does_not_speak_of_pair_features(folder, model_files):
    content, X, wanted = model_files["template"]  # as the first files
    container = content_of(folder, content)
    meta = replaced(container.meta, ("encoder", "n_pair"), ...)
    write_container(folder / "old", "tagger", meta, container.arrays)
    model = load_tagger(folder / "old")
    assert model.chain.predict(X, model.weights) == wanted


def test_a_model_without_readable_names_tags(folder, model_files):
    content, X, wanted = model_files["template"]
    container = content_of(folder, content)
    arrays = {**container.arrays, "names": container.arrays["names"][::-1].copy()}
    write_container(folder / "wrong", "tagger", container.meta, arrays)
    try:
        model = load_tagger(folder / "wrong")
    except ModelFormatError:
        return
    assert model.chain.predict(X, model.weights) == wanted


@contextlib.contextmanager
def limited(seconds=2.0, memory=1 << 30):
    """Fail what takes much processor time (which others on the machine do not add to) or memory."""

    def late(*_):
        raise RuntimeError(f"takes more than {seconds} s")

    with open("/proc/self/statm") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, handler)


needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("hash_bits", [2**40, 2**63, 2**1000, 1e300])
def test_absurd_hash_bits(folder, model_files, hash_bits):
    container = content_of(folder, model_files["template, hash_bits"][0])
    meta = replaced(container.meta, ("encoder", "hash_bits"), hash_bits)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with limited(), pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize("kind", ["lists, hash_bits", "template, hash_bits"])
def test_hash_bits_that_are_no_integer(folder, model_files, kind):
    container = content_of(folder, model_files[kind][0])
    bits = container.meta["encoder"]["hash_bits"]
    meta = replaced(container.meta, ("encoder", "hash_bits"), bits + 0.5)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


@needs_proc
@pytest.mark.parametrize("n_sparse", [2**31, 2**32 - 1])
def test_absurd_number_of_features(folder, model_files, n_sparse):
    container = content_of(folder, model_files["sparse"][0])
    assert "rows" in container.arrays
    meta = replaced(container.meta, ("encoder", "n_sparse"), n_sparse)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with limited(seconds=5), pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


def test_dense_features_only_and_sparse_ones(folder, model_files):
    container = content_of(folder, model_files["dense"][0])
    assert "rows" in container.arrays
    meta = replaced(container.meta, ("encoder", "n_sparse"), 255)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("lists", "strings+dense"),
        ("lists", "dense"),
        ("dicts", "sparse+dense"),
        ("strings+dense", "strings"),
        ("strings+dense", "dense"),
        ("sparse", "sparse+dense"),
        ("sparse", "dense"),
        ("sparse+dense", "sparse"),
        ("dense", "sparse"),  # "sparse+dense" without sparse features is possible
    ],
)
def test_kind_that_does_not_fit_the_features(folder, model_files, kind, other):
    container = content_of(folder, model_files[kind][0])
    meta = replaced(container.meta, ("encoder", "kind"), other)
    write_container(folder / "wrong", "tagger", meta, container.arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize("missing", MASKS)
def test_a_missing_mask(folder, model_files, missing):
    container = content_of(folder, model_files["template"][0])
    arrays = {name: array for name, array in container.arrays.items() if name != missing}
    write_container(folder / "wrong", "tagger", container.meta, arrays)
    with pytest.raises(ModelFormatError):
        load_tagger(folder / "wrong")


def test_entry_labels_of_another_type(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = words(rng, [300, 4]), [[*range(300)], [0, 0, 1, 1]]
    chain = Chain()
    chain.prepare(X, Y)
    weights = random_weights(chain, rng, share=0.3)
    save_tagger(tmp_path / "m", chain, weights, {})
    container = read_container(tmp_path / "m")
    labels = container.arrays["entry_labels"].astype(np.uint64)
    arrays = {**container.arrays, "entry_labels": labels}
    write_container(tmp_path / "wrong", "tagger", container.meta, arrays)
    try:
        model = load_tagger(tmp_path / "wrong")
    except ModelFormatError:
        return
    assert by_name(model.chain, dense_weights(model)) == by_name(chain, weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("padding", [1.0, 100.0, 1e30])
def test_padding_that_is_not_zero(tmp_path, dtype, padding):
    rng = np.random.default_rng(0)
    X, Y = words(rng, [20, 7]), [[k % 7 for k in range(20)], [*range(7)]]
    chain = Chain()
    chain.prepare(X, Y)
    weights = random_weights(chain, rng, share=1.0, dtype=dtype, empty_rows=0.0)
    save_tagger(tmp_path / "m", chain, weights, {})
    container = read_container(tmp_path / "m")
    matrix = weights.reshape(chain.layout.n_rows, -1).copy()
    matrix[:, 7:] = padding
    arrays = {name: container.arrays[name] for name in ("names", "name_lengths")}
    arrays["weights"] = matrix
    write_container(tmp_path / "wrong", "tagger", container.meta, arrays)
    try:
        model = load_tagger(tmp_path / "wrong")
    except ModelFormatError:
        return
    assert model.chain.predict(X, model.weights) == chain.predict(X, weights)
    np.testing.assert_array_equal(
        np.concatenate(model.chain.max_marginals(X, model.weights)),
        np.concatenate(chain.max_marginals(X, weights)),
    )


@needs_proc
@pytest.mark.parametrize("claim", ["little", "much"])
def test_a_bomb_in_the_names(folder, model_files, claim):
    content, _, _ = model_files["lists"]
    container = content_of(folder, content)
    bomb = zlib.compress(bytes(1 << 27), 1)
    lengths = container.arrays["name_lengths"]
    if claim == "much":
        bomb = zlib.compress(bytes(100), 9)
        lengths = np.full(lengths.shape, 2**32 - 1, dtype=np.uint32)
    arrays = {
        **container.arrays,
        "names": np.frombuffer(bomb, dtype=np.uint8),
        "name_lengths": lengths,
    }
    write_container(folder / "wrong", "tagger", container.meta, arrays)
    with limited(memory=1 << 26), pytest.raises(ModelFormatError, match="names"):
        load_tagger(folder / "wrong")


@pytest.mark.parametrize(
    "names", [b"\xff\xfe", b"aa", b"a" * 4], ids=["not UTF-8", "twice", "too long"]
)
def test_bad_names_of_strings(tmp_path, names):
    chain = Chain()
    chain.prepare([[["a"], ["b"]]], [["N", "V"]])
    weights = chain.pad(np.arange(1.0, 1 + chain.n_features), "float32")
    save_tagger(tmp_path / "m", chain, weights, {})
    container = read_container(tmp_path / "m")
    packed = np.frombuffer(zlib.compress(names), dtype=np.uint8)
    write_container(
        tmp_path / "m", "tagger", container.meta, {**container.arrays, "names": packed}
    )
    with pytest.raises(ModelFormatError):
        load_tagger(tmp_path / "m")
