"""Invented sentences with dependency trees, as CoNLL-U files have them."""

from __future__ import annotations

import random

WORDS = {
    "DET": ["the", "a", "every"],
    "ADJ": ["old", "red", "quiet"],
    "NOUN": ["dog", "cat", "mill", "book"],
    "VERB": ["sees", "finds", "reads"],
    "ADP": ["in", "under", "near"],
}


def noun_phrase(draw):
    """Return rows (word, tag, head within the phrase or None, relation)."""
    rows = [("DET", "det")] if draw.random() < 0.7 else []
    rows += [("ADJ", "amod")] if draw.random() < 0.4 else []
    return [*rows, ("NOUN", None)]


def trees(n=30, seed=1):
    """Return sentences: lists of rows (word, tag, head, relation)."""
    draw = random.Random(seed)
    found = []
    for _ in range(n):
        rows = []

        def phrase(relation, governor, mark=None, rows=rows):
            begin = len(rows)
            inner = noun_phrase(draw)
            inner = [("ADP", "case"), *inner] if mark else inner
            last = begin + len(inner)
            for tag, name in inner:
                rows.append(
                    [draw.choice(WORDS[tag]), tag, last if name else governor, name or relation]
                )
            return last

        subject = phrase("nsubj", None)
        verb = len(rows) + 1
        rows[subject - 1][2] = verb
        rows.append([draw.choice(WORDS["VERB"]), "VERB", 0, "root"])
        if draw.random() < 0.7:
            target = phrase("obj", verb)
            if draw.random() < 0.4:
                phrase("nmod", target, mark=True)
        if draw.random() < 0.5:
            phrase("obl:place", verb, mark=True)
        rows.append([".", "PUNCT", verb, "punct"])
        found.append([tuple(row) for row in rows])
    return found


def conllu(sentences, *, extras=False):
    """Return sentences as a CoNLL-U file; `extras`: comments, multiword tokens, empty nodes."""
    lines = []
    for i, rows in enumerate(sentences):
        if extras:
            lines.append(f"# sent_id = {i}\n1-2\t{rows[0][0]}{rows[1][0]}" + "\t_" * 8 + "\n")
        for k, (word, tag, head, relation) in enumerate(rows, start=1):
            lines.append(f"{k}\t{word}\t{word}\t{tag}\t{tag}\t_\t{head}\t{relation}\t_\tX={k}\n")
        if extras:
            lines.append(f"{len(rows)}.1\tnothing" + "\t_" * 8 + "\n")
        lines.append("\n")
    return "".join(lines)


def examples(sentences):
    """Return X and y."""
    X = [[(word, tag, tag) for word, tag, _, _ in rows] for rows in sentences]
    y = [([head for *_, head, _ in rows], [row[3] for row in rows]) for rows in sentences]
    return X, y
