"""Shares of every native structure, made as a worker makes them, in this process."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import (
    Alignment,
    Chain,
    ElasticNet,
    Grammar,
    Multiclass,
    Nonnegative,
    NotCompatibleError,
    StructuralSVM,
    Taxonomy,
)
from maxmargin.distributed.coordinator import Coordinator
from maxmargin.distributed.group import InProcess
from maxmargin.distributed.held import HeldExamples, Reading, prepare_structure
from maxmargin.solvers import SDM

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(30, 4))
CLASSES = [str(k) for k in np.argmax(POINTS @ RNG.normal(size=(4, 3)), axis=1)]
LEAVES = [("a/x", "a/y", "b/z")[int(k)] for k in CLASSES]


def sentences():
    words = [["the", "dog", "barks"], ["the", "cat", "sleeps"], ["a", "dog", "sleeps"]] * 4
    trees = [
        ("S", [("NP", [("D", [a]), ("N", [b])]), ("V", [c])]) for a, b, c in words
    ]
    return words, trees


def pairs_to_align():
    X = [("ACGT", "AGT"), ("GATTA", "GATA"), ("CCGT", "CGT"), ("ACCA", "ACA")] * 3
    Y = [[(0, 0), (2, 1), (3, 2)], [(0, 0), (1, 1), (2, 2), (4, 3)], [(0, 0), (2, 1), (3, 2)],
         [(0, 0), (1, 1), (3, 2)]] * 3
    return X, Y


def tagged():
    X = [[["w=the"], ["w=dog"]], [["w=barks"]], [["w=a"], ["w=cat"], ["w=sleeps"]]] * 4
    Y = [["D", "N"], ["V"], ["D", "N", "V"]] * 4
    return X, Y


CASES = {
    "classes": (Multiclass, (list(POINTS), CLASSES)),
    "costs": (lambda: Multiclass(loss=1 - np.eye(3), bias=1.0), (list(POINTS), CLASSES)),
    "taxonomy": (lambda: Taxonomy(separator="/"), (list(POINTS), LEAVES)),
    "seen": (
        lambda: Taxonomy(separator="/", classes=["a/x", "a/y", "b/z", "b/q"], rivals="seen"),
        (list(POINTS), LEAVES),
    ),
    "chain": (Chain, tagged()),
    "grammar": (Grammar, sentences()),
    "alignment": (Alignment, pairs_to_align()),
}


def group_of(model, X, Y, K):
    pairs, n = list(zip(X, Y, strict=True)), len(X)
    structure = prepare_structure(model._new_structure(), Reading(), pairs)

    def held(k):
        made = HeldExamples(model, Reading(), k, pairs[n * k // K : n * (k + 1) // K])
        made.adopt(structure, n)
        return made

    helds = [held(k) for k in range(K)]
    return InProcess(lambda k: helds[k].share, K), helds[0].model()[1]


@pytest.mark.parametrize("regularizer", [None, ElasticNet(l1_ratio=0.3), Nonnegative()])
@pytest.mark.parametrize("name", CASES)
def test_shares_reach_the_optimum_of_the_whole(name, regularizer):
    make, (X, Y) = CASES[name]
    options = {"C": 0.5, "regularizer": regularizer, "dtype": "float64", "random_state": 0}
    whole = StructuralSVM(make(), gap=1e-5, **options).fit(X, Y).certificate_
    model = StructuralSVM(make(), **options)
    group, bound = group_of(model, X, Y, 3)
    found = Coordinator(
        group, SDM(), C=0.5, regularizer=bound, gap=1e-3, max_rounds=5000
    ).run()
    assert found.converged
    assert found.certificate.gap <= 1e-3
    assert found.certificate.primal >= whole.dual * (1 - 1e-9)
    assert found.certificate.dual <= whole.primal * (1 + 1e-9)


def test_a_class_that_one_share_alone_has_is_known_to_all():
    X, Y = list(POINTS), ["same"] * 10 + ["other"] * 20
    group, _ = group_of(StructuralSVM(Multiclass(), C=0.5), X, Y, 3)
    assert len({share.found().n_weights for share in group.shares}) == 1
    assert group.shares[0].found().n_weights >= 4 * 2


def test_a_structure_without_make_problem_is_named():
    class Own(Multiclass):
        make_problem = None

    with pytest.raises(NotCompatibleError, match=r"Own has no make_problem\(X, Y\)"):
        group_of(StructuralSVM(Own(), C=0.5), list(POINTS), CLASSES, 2)


def test_examples_and_labels_of_a_share_must_go_together():
    structure = Multiclass()
    structure.prepare(POINTS, CLASSES)
    with pytest.raises(ValueError, match="X has 3 examples and y has 2 labels"):
        structure.make_problem(POINTS[:3], CLASSES[:2])
    with pytest.raises(ValueError, match="'unheard'"):
        structure.make_problem(POINTS[:1], ["unheard"])
