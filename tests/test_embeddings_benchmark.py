"""The vectors that ``benchmarks/embeddings.py`` makes, against their definition word by word."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
TEXT = [["a", "b", "a", "c"], ["c", "a", "once"], ["b", "c", "c"]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "embeddings", raising=False)
    import embeddings

    yield embeddings
    del sys.modules["embeddings"]


def brute(vocabulary: list[str]) -> np.ndarray:
    """Count the contexts within two tokens to the left, then to the right; the last is the end."""
    n = len(vocabulary)
    counts = np.zeros((n, 2 * (n + 1)))
    for sentence in TEXT:
        for t, word in enumerate(sentence):
            for side, sign in enumerate((-1, 1)):
                for k in (1, 2):
                    at = t + sign * k
                    inside = 0 <= at < len(sentence)
                    context = sentence[at] if inside else None
                    if word in vocabulary and (context is None or context in vocabulary):
                        column = n if context is None else vocabulary.index(context)
                        counts[vocabulary.index(word), side * (n + 1) + column] += 1 / k
    return counts


def test_counts(script: Any) -> None:
    vocabulary, counts = script.counts_of(TEXT)
    assert sorted(vocabulary) == ["a", "b", "c"]
    np.testing.assert_allclose(counts.toarray(), brute(vocabulary))


def test_vectors_are_the_svd_of_the_information(script: Any) -> None:
    _, counts = script.counts_of(TEXT)
    dense = counts.toarray()
    shares = dense.sum(axis=0) ** 0.75
    with np.errstate(divide="ignore"):
        information = np.log(dense / np.outer(dense.sum(axis=1), shares / shares.sum()))
    information = np.maximum(information, 0)
    left, values, _ = np.linalg.svd(information, full_matrices=False)
    expected = left[:, :2] * np.sqrt(values[:2])
    found = script.vectors_of(counts, 2)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)
