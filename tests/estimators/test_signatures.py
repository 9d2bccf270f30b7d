"""Public estimators say what they take: `Any` stands only where nothing else can be said.

Annotations are read as they are written, so that aliases of `maxmargin.types` count as types. What
type checkers make of them is in ``typed_calls.py``, which mypy checks (``make lint``).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
from sklearn.base import BaseEstimator

import maxmargin

#: Functions with estimators and data as arguments.
FUNCTIONS = ("load", "compare", "path")

#: Arguments that stay `Any`, with the reason. Each must occur, or it has to go.
ALLOWED = {
    "learn_one x": "one element of X, of whatever kind of X the estimator has",
    "learn_one y": "one element of y",
    "learn_one fit_params": "what else partial_fit of the estimator takes",
    "partial_fit fit_params": "of taxonomies and classes: what else the estimator takes",
    "fit_stream reading": "options of the format",
    "from_columns params": "parameters of the estimator",
    "load return": "an estimator of any kind: the file says which",
    "compare subject": "inputs and outputs of any estimator",
    "compare data": "X and y of any estimator",
    "compare score": "takes the weights, which are those of the structure",
    "compare eval_set": "X and y of any estimator",
    "compare fit_params": "further arguments of fit",
    "path fit_params": "further arguments of fit",
    "load structure": "a function without a common signature: the class of a structure",
}


def estimators() -> list[type]:
    found = [getattr(maxmargin, name) for name in maxmargin.__all__]
    return [one for one in found if inspect.isclass(one) and issubclass(one, BaseEstimator)]


def annotations() -> Iterator[tuple[str, str, str]]:
    """All annotated arguments (and ``return``) of what is public: function, name, annotation."""
    for one in estimators():
        for name, member in inspect.getmembers(one):
            if name.startswith("_") and name != "__init__":
                continue
            function = inspect.unwrap(getattr(member, "__func__", member))
            if not inspect.isfunction(function) or not function.__module__.startswith("maxmargin"):
                continue
            for argument, written in function.__annotations__.items():
                if argument != "return":
                    yield f"{name}", argument, f"{one.__name__}.{name}({argument}: {written})"
    for name in FUNCTIONS:
        for argument, written in inspect.unwrap(getattr(maxmargin, name)).__annotations__.items():
            yield name, argument, f"{name}({argument}: {written})"


def with_any() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for function, argument, written in annotations():
        if re.search(r"\bAny\b", written):
            found.setdefault(f"{function} {argument}", []).append(written)
    return found


def test_the_estimators_are_found():
    names = {one.__name__ for one in estimators()}
    assert {"SequenceTagger", "StructuralSVM", "MulticlassSVM", "Parser", "Aligner"} <= names
    assert sum(1 for _ in annotations()) > 200


def test_any_stands_only_where_it_must():
    needless = {key: written for key, written in with_any().items() if key not in ALLOWED}
    assert not needless, "\n".join(line for lines in needless.values() for line in lines)


@pytest.mark.parametrize("key", ALLOWED)
def test_exceptions_are_still_needed(key):
    assert key in with_any()


def test_every_argument_is_annotated():
    missing = []
    for one in estimators():
        for name, member in inspect.getmembers(one):
            if name.startswith("_") and name != "__init__":
                continue
            function = inspect.unwrap(getattr(member, "__func__", member))
            if not inspect.isfunction(function) or not function.__module__.startswith("maxmargin"):
                continue
            for argument in list(inspect.signature(function).parameters)[1:]:
                if argument not in function.__annotations__:
                    missing.append(f"{one.__name__}.{name}({argument})")
    assert not missing
