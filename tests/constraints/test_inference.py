"""Inference with every kind of constraint against enumeration of all labellings."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_constraints as reference
from maxmargin import _native
from maxmargin.constraints import (
    AtLeast,
    AtMost,
    Changes,
    ConstraintSet,
    EdgeFunction,
    Exactly,
    First,
    Last,
    MinimumLength,
    NGrams,
    OneSegment,
    Order,
    Proportion,
    SequenceFunction,
    TokenFunction,
    Words,
)

LABELS = ["A", "B", "C", "D"]
WORDS = ["a", "b", "c", ".", ","]


def token_value(x, t, label):
    return 0.5 * (len(x) + t + LABELS.index(label)) % 3 - 0.5


def edge_value(x, t, before, label):
    return float(before <= label) if x[t] == "a" else 1.0


def whole_value(x, y):
    return [float(y[0] == y[-1]), float(len(set(y)) > 1)]


def kinds(L):
    """Return constraints of every kind over the first L labels."""
    A, B, last = LABELS[0], LABELS[1], LABELS[L - 1]
    pairs = list(itertools.product(LABELS[:L], repeat=2))
    return {
        "words": Words(["a", "b"], [B]),
        "changes": Changes(after="punctuation"),
        "first": First([A]),
        "last": Last([B]),
        "at_least": AtLeast(B, 2),
        "at_least_segments": AtLeast(A, 2, of="segments"),
        "at_most": AtMost(A, 1),
        "exactly": Exactly(last, 1),
        "exactly_segments": Exactly(B, 1, of="segments"),
        "at_least_count": AtLeast(B, 2, form="count"),
        "exactly_count": Exactly(A, 2, form="count", of="segments"),
        "segments": OneSegment(),
        "segments_token": OneSegment([A, B], per="token"),
        "order": Order([B, A]),
        "order_token": Order([A, last] if L > 1 else [A, B], per="token"),
        "length": MinimumLength(2),
        "length_sequence": MinimumLength(2, [B], per="sequence"),
        "length_three": MinimumLength(3),
        "proportion": Proportion({A: 0.5, B: (None, 0.3)}),
        "proportion_count": Proportion({A: 0.5}, encode="count"),
        "bigrams": NGrams({(A, B): 0.5}),
        "bigrams_count": NGrams({(A, B): 0.5}, encode="count"),
        "trigrams": NGrams({(A, B, A): 0.5, (A, A, last): 0.1, (B, A, A): 0.2}),
        "fourgrams": NGrams({(A, B, A, B): 0.5}),
        "all_bigrams": NGrams(dict.fromkeys(pairs, 0.5)),
        "token_function": TokenFunction(token_value),
        "edge_function": EdgeFunction(edge_value),
    }


NAMES = sorted(kinds(3))


def chain_of(lengths, L, rng, pairs=False):
    """Return a chain problem whose tokens have dense features, and weights of it."""
    tokens = sum(lengths)
    dense = rng.normal(size=(tokens, 2))
    more = {}
    if pairs:
        more = {
            "n_pair": 1,
            "pair_indptr": np.arange(tokens + 1, dtype=np.int64),
            "pair_indices": np.zeros(tokens, np.uint32),
        }
    chain = _native.ChainProblem(
        n_labels=L,
        n_sparse=0,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        dense64=dense,
        **more,
    )
    width = _native.padded_labels(L, False)
    rows = 2 + L + 2 + (L if pairs else 0)
    weights = _native.aligned_array(rows * width, False)
    weights[:] = 0
    weights.reshape(rows, width)[:, :L] = np.round(rng.normal(size=(rows, L)), 3)
    return chain, weights


def scorer(chain, weights, offsets, i):
    """Return a function of a labelling: w·Φ of sequence i."""
    n = int(offsets[-1])

    def score(y):
        codes = np.zeros(n, np.int32)
        codes[offsets[i] : offsets[i + 1]] = [LABELS.index(label) for label in y]
        return float(chain.score(weights, codes)[i])

    return score


@st.composite
def tasks(draw, names):
    L = draw(st.integers(2, 3))
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
    X = draw(st.lists(words, min_size=1, max_size=2))
    chosen = [dataclasses.replace(kinds(L)[name], name=name) for name in draw(names)]
    seed = draw(st.integers(0, 2**32 - 1))
    q = draw(st.sampled_from([0.0, 0.25, -0.25, 1.0, -1.0]))
    return L, X, chosen, seed, q


def check(task, hard=False, width=10_000):
    L, X, chosen, seed, q = task
    rng = np.random.default_rng(seed)
    labels = LABELS[:L]
    bound = ConstraintSet(chosen).bind(X, labels)
    chain, weights = chain_of([len(x) for x in X], L, rng, pairs=bool(seed % 2))
    problem = bound.problem(chain)
    c = np.round(rng.normal(size=bound.dimension), 2)
    if hard:
        binary = {"Words", "Changes", "First", "Last", "OneSegment", "Order", "MinimumLength"}
        may = [type(k).__name__ in binary or getattr(k, "form", "") == "satisfied" for k in chosen]
        picked = np.array([*may, False])[bound.owner] & (rng.random(bound.dimension) < 0.5)
        c[picked] = np.inf
    found = bound.best(problem, weights, c, q, width=width, chain=chain)
    offsets = bound.sample.offsets
    total = reference.phi_of_all(
        chosen,
        X,
        [[labels[k] for k in found.codes[a:b]] for a, b in itertools.pairwise(offsets)],
        labels,
    )
    np.testing.assert_allclose(bound.phi(found.codes), total)
    for i, x in enumerate(X):
        a, b = bound.offsets[i : i + 2]
        score = scorer(chain, weights, offsets, i)
        top, values = reference.best(score, chosen, x, labels, c=c[a:b], q=q)
        if top == -np.inf:
            assert found.scores[i] == -np.inf
            assert width < 100 or found.bounds[i] == -np.inf
            continue
        y = tuple(labels[k] for k in found.codes[offsets[i] : offsets[i + 1]])
        if found.scores[i] > -np.inf:
            assert found.scores[i] == pytest.approx(values[y], abs=1e-8)
        assert found.bounds[i] >= top - 1e-8
        if found.exact[i]:
            assert found.scores[i] == pytest.approx(top, abs=1e-8)
    return found


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_each_kind_alone(name, data):
    found = check(data.draw(tasks(st.just([name]))))
    assert found.exact.all()


@given(task=tasks(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True)))
@settings(max_examples=150, deadline=None)
def test_several_kinds_together(task):
    found = check(task)
    assert found.exact.all()


@given(task=tasks(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)))
@settings(max_examples=100, deadline=None)
def test_hard_coordinates(task):
    assert check(task, hard=True).exact.all()


@given(
    task=tasks(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)),
    width=st.integers(1, 4),
)
@settings(max_examples=100, deadline=None)
def test_a_narrow_beam_bounds_what_it_missed(task, width):
    check(task, width=width)
    check(task, hard=True, width=width)


@given(task=tasks(st.just(["words", "segments"])))
@settings(max_examples=30, deadline=None)
def test_functions_of_the_whole_labelling(task):
    L, X, chosen, seed, q = task
    whole = SequenceFunction(whole_value, size=2, candidates=3)
    check((L, X, [*chosen, whole], seed, q))
    # With as many candidates as there are labellings nothing is missed.
    every = SequenceFunction(whole_value, size=2, candidates=3**5 + 1)
    assert check((L, X, [*chosen, every], seed, q)).exact.all()
