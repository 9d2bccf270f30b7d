"""The features of the templates "chunking" and "pos", written by hand in Python."""

from __future__ import annotations

Sentence = list[list[str]]


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
