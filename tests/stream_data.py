"""Small tagged sentences, as files and as Python objects, for the tests of streams."""

from __future__ import annotations

import random
import tempfile

import numpy as np

from maxmargin import SequenceTagger
from maxmargin.features.batch import WindowPlan

#: A budget above what a process has in which many tests were run, or that a sanitizer watches.
ROOM = "20G"

WORDS = ["dogs", "cats", "bark", "sleep", "the", "a", "run", "old", "red", "Über"]


def sentences(n=60, seed=0, longest=9):
    rng = random.Random(seed)
    out = []
    for _ in range(n):
        words = [
            rng.choice(WORDS) + rng.choice(["", "", "x", "y"])
            for _ in range(rng.randint(1, longest))
        ]
        tags = [("N" if w[0] in "dc" else "V" if w[0] in "bsr" else "D") for w in words]
        tags = [t if rng.random() > 0.1 else rng.choice("NVD") for t in tags]
        out.append((words, tags))
    return out


def column_text(data):
    return "".join(
        "".join(f"{w}\t{w[:1]}\t{t}\n" for w, t in zip(*s, strict=True)) + "\n" for s in data
    )


def in_memory(path, **params):
    return SequenceTagger.from_columns(path, random_state=0, **params)


def tiny_windows(corpus, size=3, limit=0):
    n = corpus.n_sequences
    return corpus.in_windows(WindowPlan((*range(size, n, size), n), limit, tempfile.gettempdir()))


def objects(kind):
    rng = np.random.default_rng(0)
    data = sentences(40)
    y = [tags for _, tags in data]
    dense = [rng.normal(size=(len(tags), 3)) for tags in y]
    strings = [[{"w": w, "len": float(len(w)), "first": w[0]} for w in words] for words, _ in data]
    X = {"strings": strings, "dense": dense}.get(kind)
    if kind == "strings+dense":
        X = list(zip(strings, dense, strict=True))
    if kind == "lists":
        X = [[[w, w[:1]] for w in words] for words, _ in data]
    if kind == "sparse":
        import scipy.sparse

        X = [scipy.sparse.csr_array(np.abs(d) > 1) * 1.5 for d in dense]
    return X, y
