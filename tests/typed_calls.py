"""Calls that type checkers must take, and calls that they must not; mypy checks this file.

``make lint`` runs mypy with ``warn_unused_ignores``: a wrong call that is taken makes its
``type: ignore`` needless, which is an error. The functions are never called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import (
    BinarySVM,
    ColumnTable,
    MulticlassSVM,
    Parser,
    SequenceTagger,
    StructuralSVM,
    Structure,
    compare,
    load,
    path,
)


def features(sentence: list[str]) -> list[dict[str, Any]]:
    return [{"word": word} for word in sentence]


def taggers(  # noqa: PLR0917
    dicts: list[list[dict[str, str]]],
    mixed: list[list[dict[str, Any]]],
    strings: list[list[list[str]]],
    arrays: list[NDArray[np.float64]],
    table: ColumnTable,
    y: list[list[str]],
) -> None:
    costs = {("B", "O"): 2.0}
    weights = {"O": 0.5}
    tagger = SequenceTagger(C=1, loss=costs, class_weight=weights, labels=["B", "O"])
    tagger.fit(dicts, y).fit(mixed, y).fit(strings, y).fit(arrays, y).fit(table, y)
    tagger.fit(dicts, y, eval_set=(dicts, y)).fit(dicts, tagger.predict(dicts))
    SequenceTagger(template=features, allowed=lambda a, b: a != b, kernel="rbf")
    tagger.predict_marginals(dicts)
    tagger.calibrate(dicts, y)
    tagger.predict_single(dicts[0])
    path(tagger, dicts, y)
    compare(tagger, dicts, y, solvers=["sdm", "bcfw"])
    load("model.mm", features)


def wrong_taggers(dicts: list[list[dict[str, str]]], y: list[list[str]]) -> None:
    tagger = SequenceTagger()
    tagger.fit(5, y)  # type: ignore[arg-type]
    tagger.fit(dicts[0], y)  # type: ignore[arg-type]
    tagger.fit(dicts, 3.0)  # type: ignore[arg-type]
    tagger.predict(None)  # type: ignore[arg-type]
    tagger.fit(dicts, y, eval_set=dicts)  # type: ignore[arg-type]
    SequenceTagger(template=3)  # type: ignore[arg-type]
    SequenceTagger(loss=None)  # type: ignore[arg-type]
    SequenceTagger(labels=3)  # type: ignore[arg-type]
    SequenceTagger(allowed=lambda a: True)  # type: ignore[arg-type,misc]
    SequenceTagger(class_weight=["O"])  # type: ignore[arg-type]
    path(tagger, 5, y)  # type: ignore[misc]
    load(3)  # type: ignore[arg-type]


def others(X: NDArray[np.float64], y: list[int], structure: Structure) -> None:
    MulticlassSVM(class_weight="balanced").fit(X, y).predict(X)
    BinarySVM().fit(X.tolist(), y)
    Parser().fit(None, ["(S (NP a) (VP b))"])
    StructuralSVM(structure).fit(X, y)
    MulticlassSVM().fit(None, y)  # type: ignore[arg-type]
    StructuralSVM(5).fit(X, y)  # type: ignore[arg-type]
    StructuralSVM(structure).fit(5, y)  # type: ignore[arg-type]
