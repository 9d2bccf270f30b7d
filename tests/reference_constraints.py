"""φ of constraints by definition, in plain Python: what native code is tested against."""

from __future__ import annotations

import itertools

import numpy as np

from maxmargin.constraints import (
    AtLeast,
    AtMost,
    Changes,
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


def runs(y):
    """Return the segments as [first, end, label]."""
    out = []
    for t, label in enumerate(y):
        if out and out[-1][2] == label:
            out[-1][1] = t + 1
        else:
            out.append([t, t + 1, label])
    return out


def punctuation(word):
    return not any(c.isalnum() for c in word)


def phi(constraint, x, y, labels):
    """Return the entries of φ of one constraint on one sequence of words, in their order."""
    n = len(y)
    match constraint:
        case Words():
            return [float(y[t] in constraint.labels) for t in range(n) if x[t] in constraint.words]
        case Changes():
            return [float(y[t] == y[t - 1]) for t in range(1, n) if not punctuation(x[t - 1])]
        case First():
            return [float(y[0] in constraint.labels)]
        case Last():
            return [float(y[-1] in constraint.labels)]
        case AtLeast() | AtMost() | Exactly():
            if constraint.of == "tokens":
                k = sum(label in constraint.labels for label in y)
            else:
                k = sum(label in constraint.labels for _, _, label in runs(y))
            if constraint.form == "count":
                return [float(k)]
            low, high = constraint.bounds
            return [float(low <= k <= high)]
        case OneSegment():
            bad = set()
            for k, (begin, _, label) in enumerate(runs(y)):
                meant = constraint.labels is None or label in constraint.labels
                if meant and any(other == label for _, _, other in runs(y)[:k]):
                    bad.add(begin)
            return per(constraint, bad, range(1, n))
        case Order():
            bad = set()
            order = list(constraint.labels)
            for begin, _, label in runs(y):
                before = [order.index(b) for b in y[:begin] if b in order]
                if label in order and before and max(before) > order.index(label):
                    bad.add(begin)
            return per(constraint, bad, range(1, n))
        case MinimumLength():
            bad = {
                end
                for begin, end, label in runs(y)
                if (constraint.labels is None or label in constraint.labels)
                and end - begin < constraint.k
            }
            return per(constraint, bad, range(1, n + 1))
        case Proportion() | NGrams():
            grams = [gram for gram, _ in constraint.grams]
            size = len(grams[0])
            hits = [
                [float(t + 1 >= size and tuple(y[t + 1 - size : t + 1]) == g) for t in range(n)]
                for g in grams
            ]
            if constraint.encode == "count":
                return [sum(row) for row in hits]
            if size == 2:
                return [value for row in hits for value in row[1:]]
            if size == 1:
                return [value for row in hits for value in row]
            return [row[t] for t in range(n) for row in hits]
        case TokenFunction():
            values = [[constraint.function(x, t, label) for label in labels] for t in range(n)]
            kept = tables(values, constraint.goal)
            return [float(values[t][labels.index(y[t])]) for t in kept]
        case EdgeFunction():
            pairs = list(itertools.product(labels, repeat=2))
            values = [[constraint.function(x, t, *pair) for pair in pairs] for t in range(1, n)]
            kept = tables(values, constraint.goal)
            return [float(values[t][pairs.index((y[t], y[t + 1]))]) for t in kept]
        case SequenceFunction():
            return np.atleast_1d(constraint.function(x, list(y))).astype(float).tolist()
    raise TypeError(constraint)


def per(constraint, bad, places):
    if constraint.per == "sequence":
        return [float(not bad)]
    return [float(t not in bad) for t in places]


def tables(values, goal):
    """Return the tokens in the order of the assembly: by table, then by token."""
    kept = [t for t, row in enumerate(values) if any(v != goal for v in row)]
    return sorted(kept, key=lambda t: (list(map(float, values[t])), t))


def phi_of_all(constraints, X, Y, labels):
    """Return φ of all sequences, one after the other."""
    return np.array(
        [
            value
            for x, y in zip(X, Y, strict=True)
            for constraint in constraints
            for value in phi(constraint, x, y, labels)
        ]
    )


def worth(phi, c, q):
    """Return Σ c φ + q ‖φ‖², where an infinite c needs φ to be above zero."""
    total = 0.0
    for value, coefficient in zip(phi, c, strict=True):
        if np.isinf(coefficient):
            if value == 0:
                return -np.inf
            continue
        total += coefficient * value + q * value * value
    return total


def best(score, constraints, x, labels, *, c, q):
    """Return the best value and all best labellings, by enumeration."""
    values = {}
    for y in itertools.product(labels, repeat=len(x)):
        found = np.array([v for k in constraints for v in phi(k, x, y, labels)])
        values[y] = score(y) + worth(found, c, q)
    top = max(values.values())
    return top, values
