"""Dependency trees by the book: features of arcs by their definition, and all trees listed.

Nothing here calls the native core but for the hash of a text.
"""

from __future__ import annotations

import itertools

import numpy as np

from maxmargin import _native
from maxmargin.features.arc_templates import SPECIALS, ArcTemplates, sentence_columns
from maxmargin.structures.base import Structure
from maxmargin.structures.dependency_trees import list_trees

MASK = 2**64 - 1
SIDE = (0x9AE16A3B2F90404F, 0xC949C7DEFA5ED1A3, 0xB492B66FBE98F273, 0xD6E8FEB86659FD93)


def fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def step(state, value):
    return fold(state ^ value, 0xA0761D6478BD642F)


def top(state):
    return fold(state, 0xE7037ED1A0B428DB) >> 32


def text_hash(text):
    return int(_native.text_hashes([text])[0])


def value_of(columns, column, position):
    """Return the text of a column at a position; 0 is the root."""
    n = len(columns["form"])
    if position < 0 or position > n or position == 0:
        return SPECIALS[1 if position < 0 else 2 if position > n else 0]
    form = columns["form"][position - 1]
    if column.startswith("prefix"):
        return form[: int(column[-1])]
    if column.startswith("suffix"):
        return form[-int(column[-1]) :]
    return form.lower() if column == "lower" else columns[column][position - 1]


def bucket_of(h, d):
    apart = abs(h - d)
    size = next(k for k, most in enumerate((1, 2, 3, 4, 5, 10, 10**9)) if apart <= most)
    return size if h < d else size + 7


def numbers_of(template, columns, h, d):
    """Return the 32-bit numbers of the features that an arc has for a template."""
    seed = text_hash(str(template))

    def part(side, position):
        state, some = seed ^ SIDE[side], False
        for atom in template.atoms:
            if atom.side == side:
                some = True
                text = value_of(columns, atom.column, position + atom.offset)
                state = step(state, text_hash(text))
        return top(state) if some else 0

    bucket = bucket_of(h, d)
    place = bucket if template.distance else 14 + (bucket >= 7)
    ends = part(0, h) + part(1, d) + top(step(seed ^ SIDE[3], place + 1))
    if not any(atom.side == 2 for atom in template.atoms):
        return [ends % 2**32]
    between = {part(2, b) for b in range(min(h, d) + 1, max(h, d))}
    return [(ends + value) % 2**32 for value in sorted(between)]


def weights_of_arc(templates, columns, h, d, label, *, n_labels, bits, label_bits):
    """Return the indices of the weights of an arc, sorted."""
    width = -(-n_labels // 8) * 8
    found = []
    for template in templates.templates:
        if template.label and n_labels == 0:
            continue
        for number in numbers_of(template, columns, h, d):
            if template.label:
                found.append(2**bits + (number >> (32 - label_bits)) * width + label)
            else:
                found.append(number >> (32 - bits))
    return sorted(found)


class ReferenceTrees(Structure):
    """All trees of short sentences; an output is the heads and then the codes of the relations."""

    def __init__(
        self,
        text,
        *,
        n_labels=0,
        bits=5,
        label_bits=3,
        projective=True,
        one_root=True,
        zero_one=False,
    ):
        self.templates = ArcTemplates(text)
        self.n_labels, self.bits, self.label_bits = n_labels, bits, label_bits
        self.projective, self.one_root, self.zero_one = projective, one_root, zero_one
        self.n_features = 2**bits + 2**label_bits * (-(-n_labels // 8) * 8)
        self.known = {}

    def joint_feature(self, x, y):
        columns = sentence_columns(x)
        n = len(columns["form"])
        total = np.zeros(self.n_features)
        labels = y[n:] if self.n_labels else [0] * n
        for d, (h, label) in enumerate(zip(y[:n], labels, strict=True), start=1):
            key = (tuple(x), int(h), d, int(label))
            if key not in self.known:
                self.known[key] = weights_of_arc(
                    self.templates,
                    columns,
                    int(h),
                    d,
                    int(label),
                    n_labels=self.n_labels,
                    bits=self.bits,
                    label_bits=self.label_bits,
                )
            np.add.at(total, self.known[key], 1.0)
        return total

    def loss(self, y, y_hat):
        n = len(y) // 2 if self.n_labels else len(y)
        wrong = np.asarray(y[:n]) != np.asarray(y_hat[:n])
        if self.n_labels:
            wrong = wrong | (np.asarray(y[n:]) != np.asarray(y_hat[n:]))
        return float(wrong.any() if self.zero_one else wrong.sum())

    def outputs(self, x):
        n = len(x)
        for heads in list_trees(n, projective=self.projective, one_root=self.one_root):
            if self.n_labels == 0:
                yield np.array(heads, dtype=np.int32)
                continue
            for labels in itertools.product(range(self.n_labels), repeat=n):
                yield np.array([*heads, *labels], dtype=np.int32)

    def problem(self, X, Y, **changes):
        """Return the same problem for the native core."""
        lengths = [len(x) for x in X]
        arguments = {
            "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "atoms": self.templates.atoms([sentence_columns(x) for x in X]),
            **self.templates.native(),
            "arc_bits": self.bits,
            "row_bits": self.label_bits,
            "n_labels": self.n_labels,
            "projective": self.projective,
            "one_root": self.one_root,
            "zero_one": self.zero_one,
        }
        if Y is not None:
            pairs = list(zip(Y, lengths, strict=True))
            arguments["heads"] = np.concatenate([y[:n] for y, n in pairs]).astype(np.int32)
            if self.n_labels:
                arguments["labels"] = np.concatenate([y[n:] for y, n in pairs]).astype(np.int32)
        return _native.DependencyProblem(**{**arguments, **changes})


TEXT = """
h.word d.word
h.tag d.tag dist?
d.tag-1 h.tag+1
h.tag between.tag d.tag
h.word
d.tag dist
label: d.tag
label: h.tag d.tag
label: h.word
"""


def random_sentences(rng, lengths):
    """Return sentences of few words and tags, so that features repeat."""
    return [
        [(f"w{rng.integers(4)}", f"T{rng.integers(3)}") for _ in range(length)]
        for length in lengths
    ]


def random_tree(rng, reference, x):
    """Return one of the outputs of a sentence."""
    every = list(reference.outputs(x))
    return every[rng.integers(len(every))]
