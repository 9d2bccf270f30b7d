"""``--task trees``: parse trees in brackets."""

from __future__ import annotations

import argparse
from typing import IO, TYPE_CHECKING, Any, ClassVar

from maxmargin.cli.console import note
from maxmargin.cli.options import at_least
from maxmargin.cli.tasks.base import Examples, Task

if TYPE_CHECKING:
    from maxmargin.estimators.parser import Parser

__all__ = ["TreesTask"]


class TreesTask(Task):
    """Parse trees: `Parser`."""

    name: ClassVar[str] = "trees"
    items: ClassVar[str] = "sentences"
    default_C: ClassVar[float] = 0.1
    epilog: ClassVar[str] = """\
Training and test files are trees in brackets, on one or more lines each:
  (S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))
`maxmargin predict` reads such trees (their leaves), or lines with word_TAG or word/TAG, or columns
with tabs (word, tag), and with --lexicon words also lines of plain words.

examples:
  maxmargin train --task trees train.mrg -m parser.mm
  maxmargin eval -m parser.mm test.mrg --json
  maxmargin predict -m parser.mm sentences.txt > trees.mrg
"""

    def add_options(self, group: Any) -> None:
        """Add what a parser needs to know.

        Parameters
        ----------
        group : argparse group
            Where to add them.
        """
        group.add_argument(
            "--loss",
            choices=("brackets", "f1", "zero_one"),
            default="brackets",
            help="what is to be small: wrong and missed brackets; 1 - F1, which takes long above "
            "20 words; wrong trees (default: %(default)s)",
        )
        group.add_argument(
            "--lexicon",
            choices=("tags", "words"),
            default="tags",
            help="what the grammar reads: given tags, or words (default: %(default)s)",
        )
        group.add_argument(
            "--vertical",
            type=at_least(1, 9),
            default=2,
            metavar="V",
            help="labels of how many nodes, itself among them, a node knows (default: %(default)s)",
        )
        group.add_argument(
            "--horizontal",
            choices=("0", "1", "2", "all"),
            default="1",
            help="how many siblings a long rule remembers (default: %(default)s)",
        )
        group.add_argument(
            "--node-features",
            default="edges",
            metavar="NAMES",
            help='"edges" (words and tags at and around the ends of a node\'s span, its length), '
            '"none", or templates with commas between (default: %(default)s)',
        )
        group.add_argument(
            "--min-count",
            type=at_least(1),
            default=2,
            metavar="N",
            help="words that occur fewer times are read as classes (default: %(default)s)",
        )
        group.add_argument(
            "--prior",
            choices=("pcfg",),
            help="keep weights near the log-probabilities of the rules, and not near zero",
        )
        group.add_argument(
            "--max-length",
            type=at_least(1),
            metavar="N",
            help="leave out longer sentences, in training and in eval",
        )
        group.add_argument(
            "--clean",
            action="store_true",
            help="remove traces, function tags and indices (NP-SBJ-1 becomes NP) from all trees",
        )

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return what must be remembered to read further files.

        Parameters
        ----------
        options : argparse.Namespace
            The arguments of ``maxmargin train``.
        """
        return {
            "lexicon": options.lexicon,
            "max_length": options.max_length,
            "clean": options.clean,
        }

    def read(self, path: Any, reading: dict[str, Any], *, truths: bool) -> Examples:
        """Read a file of trees, or of sentences.

        Parameters
        ----------
        path : str
            The file.
        reading : dict
            As `reading` gave it.
        truths : bool
            Whether it must have trees.
        """
        from maxmargin.errors import FileFormatError
        from maxmargin.features.treebank import cleaned
        from maxmargin.io.brackets import read_trees
        from maxmargin.io.tagged_sentences import read_sentences

        if not truths:
            return Examples(read_sentences(path, tags=reading.get("lexicon") != "words"), None)
        trees = read_trees(path)
        if reading.get("clean"):
            trees = [tree for tree in map(cleaned, trees) if tree is not None]
        longest = reading.get("max_length")
        if isinstance(longest, int):
            trees = [tree for tree in trees if len(tree.words()) <= longest]
        for i, tree in enumerate(trees):
            if tree.word is not None:
                raise FileFormatError(
                    f"{path}: tree {i + 1} is {tree}; expected a node above the part of speech"
                )
        if not trees:
            raise FileFormatError(f"{path}: no tree is left of those in it; expected at least one")
        return Examples(trees, trees)

    def make(self, options: argparse.Namespace, **common: Any) -> Parser:
        """Return a parser that is to be fitted.

        Parameters
        ----------
        options : argparse.Namespace
            With the options of `add_options`.
        **common
            Parameters that all estimators have.
        """
        from maxmargin.estimators.parser import Parser

        features: Any = options.node_features
        if features == "none":
            features = None
        elif features != "edges":
            features = [name.strip() for name in features.split(",") if name.strip()]
        return Parser(
            loss=options.loss,
            vertical=options.vertical,
            horizontal=None if options.horizontal == "all" else int(options.horizontal),
            node_features=features,
            lexicon=options.lexicon,
            min_count=options.min_count,
            prior=options.prior,
            **common,
        )

    def write(self, out: IO[bytes], examples: Examples, predicted: Any) -> None:
        """Write trees, one on each line.

        Parameters
        ----------
        out : binary file
            Where to.
        examples : Examples
            The sentences.
        predicted : sequence of Tree
            Their trees.
        """
        from maxmargin.features.treebank import FlatTree

        for tree in predicted:
            out.write(f"{tree}\n".encode())
        flat = [i + 1 for i, tree in enumerate(predicted) if isinstance(tree, FlatTree)]
        if flat:
            shown = ", ".join(map(str, flat[:10])) + (", ..." if len(flat) > 10 else "")
            note(
                f"{len(flat)} of {len(predicted)} sentences have no parse and got flat trees: "
                f"{shown}"
            )

    def score(self, examples: Examples, predicted: Any) -> dict[str, Any]:
        """Return precision, recall, F₁ and exact matches as ``evalb`` counts them.

        Parameters
        ----------
        examples : Examples
            With the true trees.
        predicted : sequence of Tree
            The predicted ones.
        """
        from maxmargin.features.treebank import FlatTree
        from maxmargin.scores.trees import evaluate_trees

        report = evaluate_trees(examples.y, predicted)
        return {
            "f1": report.f1,
            "precision": report.precision,
            "recall": report.recall,
            "exact": report.exact,
            "crossing": report.crossing,
            "n_without_parse": sum(isinstance(tree, FlatTree) for tree in predicted),
        }

    def words(self, figures: dict[str, Any]) -> str:
        """Return scores in a line for people.

        Parameters
        ----------
        figures : dict
            From `score`.
        """
        shares = ", ".join(
            f"{title} {100 * figures[name]:.2f} %"
            for name, title in (
                ("f1", "F1"),
                ("precision", "precision"),
                ("recall", "recall"),
                ("exact", "exact match"),
            )
        )
        line = f"{shares}, {figures['crossing']:.2f} crossing brackets a sentence"
        n = figures["n_without_parse"]
        return f"{line}, {n} without a parse" if n else line
