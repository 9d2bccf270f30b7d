"""Column files and feature templates for the benchmarks, until the library has its own reader."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin._native import Vocabulary, encode_tokens

Sentence = list[list[str]]


def read_columns(path: Path) -> list[Sentence]:
    """Sentences of a gzipped column file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip("\n").split("\n\n")
    return [[line.split("\t") for line in block.split("\n")] for block in blocks]


def _at(sentence: Sentence, t: int, column: int) -> str:
    if t < 0:
        return f"_B{t}"
    if t >= len(sentence):
        return f"_E{t - len(sentence) + 1}"
    return sentence[t][column]


def chunking(sentence: Sentence) -> list[list[str]]:
    """Give the usual 19 features: windows and n-grams of words and tags."""
    tokens = []
    for t in range(len(sentence)):
        w = {k: _at(sentence, t + k, 0) for k in range(-2, 3)}
        p = {k: _at(sentence, t + k, 1) for k in range(-2, 3)}
        tokens.append(
            [f"w{k}={w[k]}" for k in range(-2, 3)]
            + [f"wb{k}={w[k]}|{w[k + 1]}" for k in (-1, 0)]
            + [f"p{k}={p[k]}" for k in range(-2, 3)]
            + [f"pb{k}={p[k]}|{p[k + 1]}" for k in range(-2, 2)]
            + [f"pt{k}={p[k]}|{p[k + 1]}|{p[k + 2]}" for k in range(-2, 1)]
        )
    return tokens


def pos(sentence: Sentence) -> list[list[str]]:
    """Give 19 features: word window and bigrams, affixes, shape."""
    tokens = []
    for t in range(len(sentence)):
        w = {k: _at(sentence, t + k, 0) for k in range(-2, 3)}
        x = w[0]
        tokens.append(
            [f"w{k}={w[k]}" for k in range(-2, 3)]
            + [f"wb{k}={w[k]}|{w[k + 1]}" for k in (-1, 0)]
            + [f"pre{k}={x[:k]}" for k in range(1, 5)]
            + [f"suf{k}={x[-k:]}" for k in range(1, 5)]
            + [f"low={x.lower()}", f"cap={x[0].isupper()}"]
            + [f"dig={any(c.isdigit() for c in x)}", f"hyp={'-' in x}"]
        )
    return tokens


#: Task -> (features, label column).
TEMPLATES: dict[str, tuple[Callable[[Sentence], list[list[str]]], int]] = {
    "chunk": (chunking, 2),
    "pos": (pos, 1),
}


def _encode(
    sentences: list[Sentence],
    features: Callable[[Sentence], list[list[str]]],
    vocabulary: Vocabulary,
    grow: bool,
) -> tuple[Any, Any, Any]:
    """Encode some hundred sentences at a time: all feature strings at once would fill memory."""
    lengths: list[Any] = []
    counts: list[Any] = []
    ids: list[Any] = []
    for at in range(0, len(sentences), 500):
        batch = [features(s) for s in sentences[at : at + 500]]
        offsets, indptr, indices, values = encode_tokens(batch, vocabulary, grow)
        assert values is None
        lengths.append(np.diff(offsets))
        counts.append(np.diff(indptr))
        ids.append(indices)
    ends = [np.concatenate([[0], np.cumsum(np.concatenate(x))]) for x in (lengths, counts)]
    return ends[0].astype(np.int64), ends[1].astype(np.int64), np.concatenate(ids)


def encode_task(
    train: list[Sentence],
    test: list[Sentence],
    template: tuple[Callable[[Sentence], list[list[str]]], int],
) -> dict[str, Any]:
    """Encode train and test; labels most frequent first, as the library does."""
    features, column = template
    vocabulary = Vocabulary()
    offsets, indptr, indices = _encode(train, features, vocabulary, True)
    names, codes, counts = np.unique(
        [token[column] for s in train for token in s], return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(names), dtype=np.int32)
    rank[order] = np.arange(len(names))
    known = {name: int(rank[k]) for k, name in enumerate(names)}
    t_offsets, t_indptr, t_indices = _encode(test, features, vocabulary, False)
    return {
        "n_features": len(vocabulary),
        "n_labels": len(names),
        "offsets": offsets,
        "indptr": indptr,
        "indices": indices,
        "labels": rank[codes].astype(np.int32),
        "test": {
            "offsets": t_offsets,
            "indptr": t_indptr,
            "indices": t_indices,
            # A label that training never saw counts as an error.
            "labels": np.array(
                [known.get(token[column], -1) for s in test for token in s], dtype=np.int32
            ),
        },
    }
