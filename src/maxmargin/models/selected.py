"""What a sparse model selected: features and weights that are not zero, counted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.models.weight_rows import names_of, tail_rows, weight_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maxmargin.features.template import TemplateLine
    from maxmargin.io.tagger_file import TaggerModel

__all__ = ["selected"]

MOST_GROUPS = 50  # of features that are texts; more are not listed


def selected(model: TaggerModel) -> dict[str, Any]:
    """Count what is not zero: the features that a sparse model selected.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    dict
        ``lines``, a list of ``line``, ``features`` and ``weights``: of a template all lines that
        give features, those of pairs of labels included (a line None has the features that fit
        none), and one called "embeddings" if there are some; of features that are texts what stands
        before the first ``:`` or ``=``, if there are at most `MOST_GROUPS` such groups; else
        nothing. ``labels``, a list of ``label`` and ``weights``, where the weights of a pair of
        labels count for the second. ``transitions``, with those of start and end. The weights of
        all labels and the transitions together are all weights that are not zero.
    """
    chain = model.chain
    encoder, L = chain.encoder, chain.n_labels
    template = getattr(encoder, "template", None)
    named = encoder.hash_bits is None and (template is not None or encoder.vocabulary is not None)
    of_label = np.zeros(L, dtype=np.int64)
    of_feature = np.zeros(chain.layout.n_token_features if named else 0, dtype=np.int64)
    for weights, features, labels in weight_blocks(model, None):
        there = weights != 0
        of_label += np.bincount(labels[there], minlength=L)
        found = features[there]  # ascending
        if named and len(found):
            counts = np.bincount(found - found[0])
            of_feature[found[0] : found[0] + len(counts)] += counts
    layout, tail = chain.layout.without_sparse, tail_rows(model)
    pairs = layout.split(tail).pairs != 0
    of_label += pairs.sum(axis=(0, 1))
    of_pair = pairs.sum(axis=(1, 2))
    lines: list[dict[str, Any]] = []
    if named and template is not None:
        lines = _by_line(model, of_feature, of_pair)
    elif named:
        lines = _by_group(model, of_feature)
    return {
        "lines": lines,
        "labels": [
            {"label": label, "weights": int(of_label[column])}
            for label, column in zip(chain.classes_, chain.class_columns_, strict=True)
        ],
        "transitions": int(np.count_nonzero(tail[layout.edges])),
    }


def _by_line(
    model: TaggerModel, of_feature: NDArray[Any], of_pair: NDArray[Any]
) -> list[dict[str, Any]]:
    """Count features and weights for each line of the template."""
    encoder = model.chain.encoder
    assert isinstance(encoder, TemplateEncoder)
    every = encoder.template.lines
    unigrams = [k for k, line in enumerate(every) if line.unigram]
    bigrams = [k for k, line in enumerate(every) if line.bigram and line.commands]
    nowhere = len(every)
    features, weights = [0] * (nowhere + 1), [0] * (nowhere + 1)
    sparse, dense = of_feature[: encoder.n_sparse], of_feature[encoder.n_sparse :]
    known = ((encoder.unigrams, unigrams, sparse), (encoder.bigrams, bigrams, of_pair))
    for given, numbers, counts in known:
        there = np.flatnonzero(counts)
        find = _line_finder([every[k] for k in numbers])
        names = given.names_of(there)
        for name, count in zip(names, counts[there].tolist(), strict=True):
            place = find(name)
            line = nowhere if place is None else numbers[place]
            features[line] += 1
            weights[line] += count
    listed = sorted({*unigrams, *bigrams}) + [nowhere] * (features[nowhere] > 0)
    counted: list[dict[str, Any]] = [
        {
            "line": None if k == nowhere else every[k].text,
            "features": features[k],
            "weights": weights[k],
        }
        for k in listed
    ]
    if encoder.embeddings is not None:
        n_used = int(np.count_nonzero(dense))
        counted.append({"line": "embeddings", "features": n_used, "weights": int(dense.sum())})
    return counted


def _line_finder(lines: list[TemplateLine]) -> Callable[[str], int | None]:
    """Return a function that finds the first line that can have given a name; None if none can.

    A command may have become any text. Atomic groups take the first place where a literal fits,
    which is as good as any later one: no name takes more than a few looks at it.
    """
    choices = []
    for line in lines:
        literals = [""]  # with commands between them
        behind_command = False
        for piece in line.pieces:
            if isinstance(piece, str):
                literals[-1] = piece
            elif not behind_command:  # commands side by side are as one
                literals.append("")
            behind_command = not isinstance(piece, str)
        first, *others = literals
        middle = "".join(f"(?>.*?{re.escape(text)})" for text in others[:-1])
        last = f".*{re.escape(others[-1])}" if others else ""
        choices.append(f"({re.escape(first)}{middle}{last})")
    match = re.compile("|".join(choices), re.DOTALL).fullmatch

    def find(name: str) -> int | None:
        found = match(name)
        return None if found is None or found.lastindex is None else found.lastindex - 1

    return find


def _by_group(model: TaggerModel, of_feature: NDArray[Any]) -> list[dict[str, Any]]:
    """Count features and weights by what stands before the first : or = of a name."""
    there = np.flatnonzero(of_feature)
    groups: dict[str, list[int]] = {}
    for name, count in zip(names_of(model, there), of_feature[there].tolist(), strict=True):
        group = groups.setdefault(name.partition(":")[0].partition("=")[0], [0, 0])
        if len(groups) > MOST_GROUPS:
            return []
        group[0] += 1
        group[1] += count
    return [
        {"line": key, "features": features, "weights": weights}
        for key, (features, weights) in sorted(groups.items())
    ]
