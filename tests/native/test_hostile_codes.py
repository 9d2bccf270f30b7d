"""Codes of planes from a damaged checkpoint: refused, or harmless, for every native structure."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.structures.alignment import Alignment
from maxmargin.structures.grammar import Grammar
from maxmargin.structures.grammar_trees import leaves
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.taxonomy import Taxonomy
from native_problems import everyone
from reference_dependency import TEXT, ReferenceTrees, random_sentences, random_tree
from reference_grammar import random_treebank


def alignments(rng):
    structure = Alignment("AB", homolog="free")
    words = ["".join(rng.choice(list("AB"), 4)) for _ in range(12)]
    X = [(a, b, [c]) for a, b, c in zip(words[:4], words[4:8], words[8:], strict=True)]
    return structure.prepare_problem(X, [[(0, 0), (2, 3)]] * 4, dtype="float64").problem


def grammars(rng):
    Y = random_treebank(rng, 4)
    return Grammar().prepare_problem([leaves(y) for y in Y], Y, dtype="float64").problem


def dependencies(rng, n_labels=2):
    reference = ReferenceTrees(TEXT, n_labels=n_labels)
    X = random_sentences(rng, [1, 2, 3, 4])
    return reference.problem(X, [random_tree(rng, reference, x) for x in X])


def classes(rng):
    X = rng.normal(size=(4, 3))
    return Multiclass().prepare_problem(X, ["a", "b", "c", "a"], dtype="float64").problem


def taxonomies(rng):
    X = rng.normal(size=(4, 3))
    return Taxonomy().prepare_problem(X, ["a/b", "a/c", "d/e", "a/b"], dtype="float64").problem


KINDS = {
    "alignments": alignments,
    "grammars": grammars,
    "relations": dependencies,
    "heads": lambda rng: dependencies(rng, 0),
    "classes": classes,
    "taxonomies": taxonomies,
}


def work(engine):
    """Call everything that reads codes."""
    for _ in range(2):
        engine.exact_pass(everyone(4), _native.PassOptions())
        engine.cached_pass(everyone(4), _native.PassOptions())
    engine.certify()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [False, True])
def test_random_codes_are_refused_or_do_no_harm(kind, single):
    rng = np.random.default_rng(5)
    problem = KINDS[kind](rng)
    engine = _native.Engine(problem, 0.7, single=single)
    work(engine)
    state = engine.state()
    assert state["codes"].size > 0
    refused = 0
    tempting = [0, 1, 2, 3, 4, 5, 7, 2**16, 2**16 + 1, 2**31, 2**32 - 1]
    for _ in range(300):
        damaged = {name: array.copy() for name, array in state.items()}
        codes = damaged["codes"]
        for k in rng.integers(codes.size, size=rng.integers(1, 4)):
            codes[k] = rng.choice(tempting) if rng.random() < 0.8 else rng.integers(2**32)
        other = _native.Engine(problem, 0.7, single=single)
        try:
            other.restore(damaged)
        except ValueError:
            refused += 1
            continue
        work(other)
    assert refused > 0
