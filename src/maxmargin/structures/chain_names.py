"""Weights of a chain by the names of their features, their labels and their parts."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.printable import quoted

__all__ = ["named_weights"]

_KEYS = ("features", "labels", "parts")


def named_weights(chain: Any, where: Any) -> NDArray[np.bool_]:
    """Return which weights of a chain a description by names means.

    Parameters
    ----------
    chain : Chain
        Prepared.
    where : str, list of str or dict
        Names of features, with ``*`` and ``?`` for any characters, or a dict with some of
        "features", "labels" and "parts". A weight must be meant by all that are given; that of a
        transition belongs to its second label.

    Returns
    -------
    bool array of shape (n_features,)
        Without padding.

    Raises
    ------
    ValueError, TypeError
        If a name does not exist; the message says which do.
    """
    if isinstance(where, str | list):
        where = {"features": where}
    unknown = [key for key in where if key not in _KEYS]
    if unknown:
        raise ValueError(f"where has the key {unknown[0]!r:.80}; expected some of {_KEYS}")
    layout, L = chain.layout, chain.n_labels
    rows = np.ones(layout.n_rows, bool)
    if "parts" in where or "features" in where:
        rows = _part_rows(layout, where.get("parts", "coef"))
    if "features" in where:
        coef = np.zeros(layout.n_rows, bool)
        coef[layout.coef] = _matching(chain.encoder.feature_names(), where["features"])
        rows &= coef
    columns = np.ones(L, bool)
    if "labels" in where:
        columns = np.zeros(L, bool)
        labels = where["labels"]
        for label in labels if isinstance(labels, list | tuple) else [labels]:
            if label not in chain.labels_:
                known = ", ".join(quoted(name, 40) for name in chain.classes_[:10])
                raise ValueError(f"where names the label {quoted(label)}; the labels are {known}")
            columns[chain.labels_.index(label)] = True
    mask: NDArray[np.bool_] = np.outer(rows, columns).reshape(-1)
    if not mask.any():
        raise ValueError(f"where is {where!r:.80}, which means no weight")
    return mask


def _part_rows(layout: Any, parts: Any) -> NDArray[np.bool_]:
    rows = np.zeros(layout.n_rows, bool)
    known = ("coef", "transitions", "start", "end", "pairs")
    for part in [parts] if isinstance(parts, str) else parts:
        if part not in known:
            raise ValueError(f"where names the part {part!r:.80}; expected one of {known}")
        rows[getattr(layout, part)] = True
    return rows


def _matching(names: list[str], patterns: Any) -> NDArray[np.bool_]:
    """Return which names match one of some patterns; each of them must match something."""
    found = np.zeros(len(names), bool)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matches = re.compile(fnmatch.translate(pattern)).match
        # A name with brackets or stars in it means itself, too.
        hit = (name == pattern or matches(name) is not None for name in names)
        hits = np.fromiter(hit, bool, len(names))
        if not hits.any():
            raise ValueError(
                f"where names the feature {quoted(pattern)}, and none of the {len(names)} features "
                "is called like that"
            )
        found |= hits
    return found
