"""All trees of a small grammar, written down: what native parsing is compared with."""

from __future__ import annotations

import itertools

import numpy as np

from maxmargin.structures.base import Structure
from maxmargin.structures.grammar_trees import flatten, leaves, plain_label


def all_trees(rules, roots, terminals, *, max_chain=None, annotation="^"):
    """Every tree over the terminals whose unary chains have no label twice."""
    by_lhs = {}
    for lhs, rhs in rules:
        by_lhs.setdefault(lhs, []).append(rhs)
    known = {}

    def sequences(rhs, i, j):
        """Every way to derive the symbols from the terminals i to j, as lists of children."""
        if len(rhs) == 1:
            name, leaf = rhs[0]
            if leaf:
                return [[name]] if j == i + 1 and terminals[i] == name else []
            return [[tree] for tree in trees(name, i, j, ())]
        found = []
        for k in range(i + 1, j - len(rhs) + 2):
            heads = sequences(rhs[:1], i, k)
            if heads:
                rests = sequences(rhs[1:], k, j)
                found += [h + r for h in heads for r in rests]
        return found

    def trees(label, i, j, above):
        """Every tree with this root; `above` are the labels of the chain that it continues."""
        if (label, i, j, above) in known:
            return known[label, i, j, above]
        own = plain_label(label, annotation)
        found = []
        if own not in above and (max_chain is None or len(above) < max_chain):
            for rhs in by_lhs.get(label, []):
                if len(rhs) == 1 and not rhs[0][1]:
                    found += [(label, [t]) for t in trees(rhs[0][0], i, j, (*above, own))]
                else:
                    found += [(label, children) for children in sequences(rhs, i, j)]
        known[label, i, j, above] = found
        return found

    return list(itertools.chain.from_iterable(trees(r, 0, len(terminals), ()) for r in roots))


class ReferenceGrammar(Structure):
    """A prepared `Grammar` by brute force: every tree listed, scores by joint features."""

    def __init__(self, grammar):
        self.grammar = grammar
        self.n_features = grammar.n_features

    def joint_feature(self, x, y):
        indices, values = self.grammar.joint_feature(x, y)
        f = np.zeros(self.n_features)
        np.add.at(f, indices, values)
        return f

    def loss(self, y, y_hat):
        return self.grammar.loss(y, y_hat)

    def n_outputs(self, x):
        return len(self.outputs(x))

    def outputs(self, x):
        rules = self.grammar._rules
        terminals = getattr(x, "terminals", x)
        return all_trees(
            rules.rules,
            rules.roots,
            list(terminals),
            max_chain=self.grammar.max_chain,
            annotation=self.grammar.annotation,
        )


def same_tree(a, b):
    return flatten(a) == flatten(b)


def random_treebank(rng, n, *, longest=5):
    """Return random trees of any arity, with unary chains, over few labels and terminals."""
    found = []
    while len(found) < n:
        tree = _random_tree(rng, 2, ())
        if len(leaves(tree)) <= longest:
            found.append(tree)
    return found


def _random_tree(rng, depth, above):
    label = str(rng.choice([name for name in ("S", "N", "V") if name not in above]))
    if depth > 0 and len(above) < 2 and rng.random() < 0.25:
        return label, [_random_tree(rng, depth, (*above, label))]
    children = []
    for _ in range(rng.integers(1, 4) if depth > 0 else rng.integers(1, 3)):
        if depth == 0 or rng.random() < 0.5:
            children.append(str(rng.choice(["a", "b"])))
        else:
            children.append(_random_tree(rng, depth - 1, ()))
    if len(children) == 1 and not isinstance(children[0], str):
        children.append("a")  # a chain would go on
    return label, children
