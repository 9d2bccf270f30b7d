"""The real data sets, for tests marked `data`: where they are, and a small reader.

`MAXMARGIN_DATA` names the folder; without it, `../shared/data` beside the repository is tried.
Tests are skipped where a set is missing.
"""

from __future__ import annotations

import gzip
import itertools
import os
from pathlib import Path

import numpy as np
import pytest

_REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("MAXMARGIN_DATA", _REPOSITORY.parent / "shared" / "data"))


def data_file(name):
    """Return the path of a file of the data sets; skip the test if it is not there."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not there (set MAXMARGIN_DATA to the folder of the data sets)")
    return path


def read_columns(name, limit=None):
    """Return the sequences of a column file: each a list of rows, each row a list of strings."""
    with gzip.open(data_file(name), "rt", encoding="utf-8") as lines:
        groups = itertools.groupby(lines, key=lambda line: line.strip() != "")
        sequences = (
            [line.rstrip("\n").split("\t") for line in group] for filled, group in groups if filled
        )
        return list(itertools.islice(sequences, limit))


def word_window(rows):
    """Return the features of a sequence of rows: the word, its neighbours, its shape."""
    words = ["<s>", *(row[0] for row in rows), "</s>"]
    result = []
    for t, row in enumerate(rows, 1):
        word = row[0]
        result.append(
            [
                "1",
                f"w={word}",
                f"-1={words[t - 1]}",
                f"+1={words[t + 1]}",
                f"lower={word.lower()}",
                f"suffix2={word[-2:]}",
                f"suffix3={word[-3:]}",
                f"upper={word[:1].isupper()}",
                f"digit={any(c.isdigit() for c in word)}",
            ]
        )
    return result


def tagged(name, limit=None, label=-1):
    """Return (X, y) of a column file: word windows, and the column of labels."""
    sequences = read_columns(name, limit)
    return [word_window(rows) for rows in sequences], [
        [row[label] for row in rows] for rows in sequences
    ]


def letters(limit, fold):
    """Return (X, y) of the first words of a fold of the handwritten letters: dense pixels."""
    with np.load(data_file("ocr_letters/letters.npz")) as data:
        chosen = data["fold"] == fold
        pixels = np.unpackbits(data["pixels"][chosen], axis=1).astype(np.float32)
        letter, word = data["letter"][chosen], data["word_id"][chosen]
    ends = np.flatnonzero(np.diff(word)) + 1
    X, y = np.split(pixels, ends)[:limit], np.split(letter, ends)[:limit]
    return X, [[chr(ord("a") + int(k)) for k in row] for row in y]
