"""Mutations of what JSON holds: the tree of dicts, lists and plain values."""

from __future__ import annotations

import random
from typing import Any

from fuzzing.values import INTEGERS, REALS, TEXTS, scalar

__all__ = ["mutate_tree"]


def mutate_tree(rng: random.Random, tree: Any) -> None:
    """Change one place of a tree of dicts and lists.

    Parameters
    ----------
    rng : random.Random
        Decides everything.
    tree : dict or list
        Changed in place.
    """
    places: list[tuple[Any, Any]] = []
    _collect(tree, places)
    if not places:
        return
    parent, key = rng.choice(places)
    value = parent[key]
    what = rng.random()
    if what < 0.12:
        del parent[key]
    elif what < 0.2 and isinstance(parent, list):
        parent.insert(key, value)
    elif what < 0.24 and isinstance(parent, dict):
        parent[rng.choice(TEXTS)] = value
    elif what < 0.34:  # a value that is good elsewhere
        other, place = rng.choice(places)
        parent[key] = _copied(other[place])
    elif what < 0.4:
        parent[key] = _nested(rng, value)
    elif what < 0.55:
        parent[key] = scalar(rng)
    else:
        parent[key] = _alike(rng, value)


def _collect(tree: Any, places: list[tuple[Any, Any]]) -> None:
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    for key in keys:
        places.append((tree, key))
        if isinstance(tree[key], dict | list):
            _collect(tree[key], places)


def _copied(value: Any) -> Any:
    """Return a copy, so that no tree contains itself."""
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_copied(entry) for entry in value]
    return value


def _nested(rng: random.Random, value: Any) -> Any:
    for _ in range(rng.choice((1, 1, 2, 30, 200))):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def _alike(rng: random.Random, value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, 2 * value, rng.choice(INTEGERS)))
    if isinstance(value, float):
        return rng.choice((value * 2, -value, rng.choice(REALS), rng.choice(INTEGERS)))
    if isinstance(value, str):
        k = rng.randint(0, len(value))
        text = rng.choice(TEXTS)
        return rng.choice((text, value[:k], value[:k] + text + value[k:], value * 50))
    if isinstance(value, list) and value:
        copy = _copied(value)
        what = rng.randrange(4)
        if what == 0:
            rng.shuffle(copy)
        elif what == 1:
            copy *= rng.choice((2, 100))
        elif what == 2:
            copy = copy[: rng.randrange(len(copy))]
        else:
            copy[rng.randrange(len(copy))] = rng.choice(copy)
        return copy
    return scalar(rng)
