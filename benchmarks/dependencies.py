"""Dependency parsing: attachment scores, training time, sentences a second, exactness.

Claims shown: UAS on the sample of the Wall Street Journal (no relations, punctuation left out) and
UAS and LAS on UD English EWT (all words, as the CoNLL 2018 script counts them), with gold tags, by
one training run on one core; how many sentences a second are parsed; and that on short sentences no
tree scores higher than the one found.

    python benchmarks/dependencies.py --data ../shared/data

C, the gap and the kind of trees were chosen on development data: the last 400 sentences of the WSJ
training file, and the development file of EWT; --choose does that again and prints the scores of
all of them. Times are processor seconds of this process. The last line of standard output is one
JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import DependencyParser
from maxmargin.io.conllu_trees import DependencySentence, read_dependencies
from maxmargin.scores.dependencies import attachment_scores, punctuation
from maxmargin.structures.dependency_trees import list_trees


@dataclass(frozen=True)
class Corpus:
    """A data set, how it is scored, and what was chosen on its development data."""

    folder: str
    labelled: bool
    leave_out: bool  # punctuation, by Penn tags
    wanted: dict[str, float]
    C: float
    gap: float = 0.1
    projective: bool = True


CORPORA = {
    "wsj": Corpus("wsj_sample_dep", False, True, {"uas": 0.86}, C=0.03),
    "ewt": Corpus("ud_english_ewt", True, False, {"uas": 0.85, "las": 0.82}, C=0.03),
}
#: What --choose tries.
CHOICES = [
    {"C": 0.01},
    {"C": 0.03},
    {"C": 0.1},
    {"C": 0.03, "projective": False},
]
#: Of the WSJ training file, where there is no development file.
HELD_OUT = 400
#: All trees of longer sentences are too many.
SHORT = 5

Sentences = list[DependencySentence]


def read(folder: Path, corpus: Corpus, part: str, limit: int | None) -> Sentences:
    """Return a part of a corpus, or its first sentences."""
    return read_dependencies(folder / corpus.folder / f"{part}.conllu.gz", one_root=True)[:limit]


def truths(corpus: Corpus, sentences: Sentences) -> list[Any]:
    """Return the true trees as the parser takes them."""
    if corpus.labelled:
        return [(sentence.heads, sentence.deprels) for sentence in sentences]
    return [sentence.heads for sentence in sentences]


def train(corpus: Corpus, sentences: Sentences, seconds: float, **changes: Any) -> DependencyParser:
    """Return a trained parser."""
    options = {"C": corpus.C, "gap": corpus.gap, "projective": corpus.projective, **changes}
    parser = DependencyParser(random_state=0, time_limit=seconds, **options)
    return parser.fit(sentences, truths(corpus, sentences))


def scores(corpus: Corpus, parser: DependencyParser, sentences: Sentences) -> dict[str, Any]:
    """Return the attachment scores and the speed on some sentences."""
    begin = time.process_time()
    predicted = parser.predict(sentences)
    seconds = time.process_time() - begin
    keep = None
    if corpus.leave_out:
        keep = [~mask for mask in punctuation([s.xpos for s in sentences], "xpos")]
    gold: Any = [sentence.heads for sentence in sentences]
    if corpus.labelled:
        found = attachment_scores(
            gold,
            [heads for heads, _ in predicted],
            [sentence.deprels or [] for sentence in sentences],
            [names for _, names in predicted],
            keep=keep,
        )
    else:
        found = attachment_scores(gold, predicted, keep=keep)
    return {**found, "sentences_per_second": len(sentences) / max(seconds, 1e-9)}


def best_of_all(parser: DependencyParser, sentence: DependencySentence) -> tuple[float, int]:
    """Return the score of the best of all trees of a sentence with all relations, and their number.

    The relation of an arc does not depend on the other arcs. So all trees are scored with the first
    relation everywhere, and what the best relation of an arc adds is found from one tree that has
    it.
    """
    structure, n = parser.structure_, len(sentence)
    trees = list(list_trees(n, projective=structure.projective_, one_root=structure.one_root))

    def values(outputs: list[Any]) -> Any:
        inputs = [sentence] * len(outputs)
        return structure.score_outputs(inputs, outputs, parser.weights_, 1)

    names = structure.labels_
    if not names:
        return float(values([np.array(tree) for tree in trees]).max()), len(trees)
    plain = [names[0]] * n
    totals = values([(np.array(tree), plain) for tree in trees])
    tree_with = {(h, d): tree for tree in trees for d, h in enumerate(tree)}
    arcs = list(tree_with)
    changed = [
        (np.array(tree_with[h, d]), [*plain[:d], name, *plain[d + 1 :]])
        for h, d in arcs
        for name in names
    ]
    found = values(changed).reshape(len(arcs), len(names))
    gain = dict(zip(arcs, (found - found[:, :1]).max(axis=1).tolist(), strict=True))
    for k, tree in enumerate(trees):
        totals[k] += sum(gain[h, d] for d, h in enumerate(tree))
    return float(totals.max()), len(trees) * len(names) ** n


def exhaustive(parser: DependencyParser, sentences: Sentences) -> dict[str, Any]:
    """Compare the predictions for short sentences with all their trees."""
    short = [sentence for sentence in sentences if len(sentence) <= SHORT]
    own = parser.structure_.score_outputs(short, parser.predict(short), parser.weights_, 1)
    best, counts = zip(*(best_of_all(parser, s) for s in short), strict=True) if short else ([], [])
    lost = max([0.0, *(np.array(best) - own).tolist()])
    return {"short_sentences": len(short), "trees": sum(counts), "largest_loss": lost}


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train on a corpus and score on its test data."""
    corpus = CORPORA[name]
    sentences = read(options.data, corpus, "train", options.limit)
    test = read(options.data, corpus, "test", options.limit)
    begin = time.process_time()
    parser = train(corpus, sentences, options.seconds)
    seconds = time.process_time() - begin
    row = {
        "corpus": name,
        "sentences": len(sentences),
        "C": corpus.C,
        "train_seconds": seconds,
        "passes": parser.n_iter_,
        "gap": parser.certificate_.gap,
        **scores(corpus, parser, test),
        **exhaustive(parser, test),
    }
    figures = ", ".join(
        f"{key.upper()} {100 * row[key]:.2f} (wanted {100 * wanted:.0f})"
        for key, wanted in corpus.wanted.items()
    )
    print(
        f"{name}: {figures}; trained in {seconds:.0f} s of one core, {row['passes']} passes to a "
        f"gap of {100 * row['gap']:.1f} %; {row['sentences_per_second']:.0f} sentences a second; "
        f"on {row['short_sentences']} sentences of at most {SHORT} words the best of "
        f"{row['trees']:.3g} trees scores {row['largest_loss']:.1g} more"
    )
    return row


def choose(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Score the choices on development data."""
    corpus = CORPORA[name]
    sentences = read(options.data, corpus, "train", options.limit)
    if name == "wsj":
        held = min(HELD_OUT, len(sentences) // 4)
        sentences, dev = sentences[:-held], sentences[-held:]
    else:
        dev = read(options.data, corpus, "dev", options.limit)
    rows = []
    for choice in CHOICES:
        parser = train(corpus, sentences, options.seconds, **choice)
        rows.append({"corpus": name, **choice, **scores(corpus, parser, dev)})
        las = "" if rows[-1]["las"] is None else f", LAS {100 * rows[-1]['las']:.2f}"
        print(f"{name}, {choice}: UAS {100 * rows[-1]['uas']:.2f}{las} on development data")
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--corpora", nargs="+", choices=[*CORPORA], default=[*CORPORA])
    parser.add_argument("--limit", type=int, help="only so many sentences of each file")
    parser.add_argument("--seconds", type=float, default=1200.0, help="most seconds of a training")
    parser.add_argument("--choose", action="store_true", help="score choices on development data")
    options = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    for name in options.corpora:
        rows += choose(name, options) if options.choose else [measure(name, options)]
    print(json.dumps({"dependencies": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
