"""`Treebank`: sentences and trees of a treebank, parsed by a `Grammar`.

What stands between the two is in `maxmargin.features.treebank`: labels that carry those above them,
words as classes, terminals that are tags or words. Everything else is done by the grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import FileFormatError
from maxmargin.features.treebank import TreeReading
from maxmargin.printable import quoted
from maxmargin.structures.base import Structure
from maxmargin.structures.grammar import Grammar, Sentence
from maxmargin.structures.native import PreparedProblem
from maxmargin.structures.vectors import sparse_vector
from maxmargin.trees import Tree

__all__ = ["NODE_FEATURES", "TaggedWords", "Treebank"]

#: A sentence: words with their parts of speech, None where they are not known.
TaggedWords = list[tuple[str, str | None]]

#: Sets of node features by name, for grammars that read tags and that read words.
NODE_FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "edges": {
        "tags": (
            "length",
            "first",
            "last",
            "before",
            "after",
            "first:words",
            "last:words",
            "before:words",
            "after:words",
            "before+first",
            "last+after",
            "first+last",
            "before+after",
            "first:words+last:words",
        ),
        "words": (
            "length",
            "first",
            "last",
            "before",
            "after",
            "before+first",
            "last+after",
            "first+last",
            "before+after",
        ),
    }
}


class Treebank(Structure):
    """Trees of a treebank as the best trees of a weighted grammar.

    X is a list of sentences: lists of (word, tag), lists of words (with ``lexicon="words"``), or
    trees, of which the leaves are taken. Y is a list of `Tree`, texts in brackets or nested tuples.

    Parameters
    ----------
    loss : {"brackets", "f1", "zero_one"}
        See `Grammar`.
    lexicon : {"tags", "words"}
        What the grammar reads; see `maxmargin.features.treebank`.
    vertical : int
        1: labels as they are; v: with those of the v - 1 nodes above.
    horizontal : int or None
        Siblings that binary rules remember; None: rules as they are in the trees.
    node_features : str, sequence of str or None
        "edges": words and tags in and around the span of a node, and its length, each with its
        label (`NODE_FEATURES`). Or templates as in `Grammar`. None: rules alone.
    min_count : int
        Words that occur fewer times than this are read as classes.
    min_feature_count : int
        How often a node feature must occur with a label in training.
    binarise, max_chain
        As in `Grammar`.
    count : bool
        Whether to count how often each feature occurs in the training trees, for
        `log_probabilities`.

    Attributes
    ----------
    reading_ : TreeReading
        What is known of words, tags and roots.
    grammar_ : Grammar
        The prepared grammar.
    counts_ : float64 array [n_features]
        If asked for: how often each feature occurs in the training trees.
    """

    reading_: TreeReading
    grammar_: Grammar
    counts_: NDArray[np.float64]

    def __init__(
        self,
        loss: str = "brackets",
        *,
        lexicon: str = "tags",
        vertical: int = 1,
        horizontal: int | None = None,
        node_features: str | Sequence[str] | None = None,
        min_count: int = 2,
        min_feature_count: int = 1,
        binarise: str = "right",
        max_chain: int | None = None,
        count: bool = False,
    ) -> None:
        self.loss_name = loss
        self.lexicon = lexicon
        self.vertical = vertical
        self.horizontal = horizontal
        self.node_features = node_features
        self.min_count = min_count
        self.min_feature_count = min_feature_count
        self.binarise = binarise
        self.max_chain = max_chain
        self.count = count

    @property
    def n_features(self) -> int | None:  # type: ignore[override]
        """Number of weights; None before training data were seen."""
        grammar = self.__dict__.get("grammar_")
        return None if grammar is None else grammar.n_features

    def _templates(self) -> tuple[str, ...]:
        given = self.node_features
        if given is None:
            return ()
        if isinstance(given, str):
            if given not in NODE_FEATURES:
                raise ValueError(
                    f"node_features is {quoted(given)}; expected one of "
                    f"{', '.join(map(quoted, NODE_FEATURES))}, a list of templates, or None"
                )
            return NODE_FEATURES[given][self.lexicon]
        if not isinstance(given, Iterable):
            raise TypeError(
                f"node_features is {quoted(given)}; expected one of "
                f"{', '.join(map(quoted, NODE_FEATURES))}, a list of templates, or None"
            )
        return tuple(given)

    def _new_grammar(self) -> Grammar:
        return Grammar(
            self.loss_name,
            node_features=self._templates(),
            horizontal=self.horizontal,
            binarise=self.binarise,
            max_chain=self.max_chain,
            min_count=self.min_feature_count,
            count_preterminals=self.lexicon == "tags",
            annotation="^" if self.vertical > 1 else None,
        )

    # --- inputs ---

    def sentences(self, X: Any) -> list[TaggedWords]:
        """Return sentences as lists of (word, tag).

        Parameters
        ----------
        X : sequence
            Sentences in any of the forms that are understood.

        Raises
        ------
        ValueError
            If one is none; the message names it.
        """
        if isinstance(X, str | Tree) or not isinstance(X, Iterable):
            raise ValueError(
                f"X is {quoted(X)}; expected a list of sentences, each a list of (word, tag), a "
                "list of words or a Tree"
            )
        return [self._sentence(i, x) for i, x in enumerate(X)]

    def _sentence(self, i: int, x: Any) -> TaggedWords:
        if isinstance(x, Tree):
            return list(x.pairs())
        if isinstance(x, str) or not isinstance(x, Iterable):
            raise ValueError(
                f"sentence {i} is {quoted(x)}; expected a list of (word, tag), a list of words or "
                "a Tree"
            )
        found: TaggedWords = []
        for t, token in enumerate(x):
            if isinstance(token, str):
                word, tag = token, None
            elif isinstance(token, tuple | list) and len(token) == 2:
                word, tag = token
            else:
                raise ValueError(
                    f"sentence {i}: token {t} is {quoted(token)}; expected (word, tag) or a word"
                )
            if not isinstance(word, str) or not isinstance(tag, str | None):
                raise ValueError(
                    f"sentence {i}: token {t} is {quoted(token)}; expected texts as word and tag"
                )
            if tag is None and self.lexicon == "tags":
                raise ValueError(
                    f"sentence {i}: token {t} is the word {quoted(word)} without a tag; expected "
                    '(word, tag), or lexicon="words"'
                )
            try:
                Tree("X" if tag is None else tag, word)
            except ValueError as error:
                raise ValueError(f"sentence {i}: token {t}: {error}") from None
            found.append((word, tag))
        if not found:
            raise ValueError(f"sentence {i} has no words; expected at least one")
        return found

    def trees(self, Y: Any) -> list[Tree]:
        """Return trees given as `Tree`, texts or nested tuples.

        Parameters
        ----------
        Y : sequence
            The trees.

        Raises
        ------
        ValueError
            If one is none; the message names it.
        """
        if isinstance(Y, str | Tree) or not isinstance(Y, Iterable):
            raise ValueError(f"y is {quoted(Y)}; expected a list of trees")
        return [_tree(i, y) for i, y in enumerate(Y)]

    def _pairs_of(self, X: Any, Y: Any) -> tuple[list[TaggedWords], list[Tree]]:
        """Return sentences and trees that go together."""
        trees = self.trees(Y)
        sentences = self.sentences(trees if X is None else X)
        if len(sentences) != len(trees):
            raise ValueError(f"X has {len(sentences)} sentences, y has {len(trees)} trees")
        for i, (pairs, tree) in enumerate(zip(sentences, trees, strict=True)):
            self._check_leaves(i, pairs, tree)
        return sentences, trees

    def _check_leaves(self, i: int, pairs: TaggedWords, tree: Tree) -> None:
        leaves = tree.pairs()
        if len(leaves) != len(pairs):
            raise ValueError(
                f"sentence {i} has {len(pairs)} words, but its tree has {len(leaves)} leaves"
            )
        for t, ((word, tag), (leaf, above)) in enumerate(zip(pairs, leaves, strict=True)):
            if word != leaf:
                raise ValueError(
                    f"sentence {i}: leaf {t} of the tree is {quoted(leaf)}; expected "
                    f"{quoted(word)}, as in the sentence"
                )
            if self.lexicon == "tags" and tag != above:
                raise ValueError(
                    f"sentence {i}: the tag of {quoted(word)} (word {t}) is {quoted(above)} in the "
                    f"tree and {quoted(tag)} in the sentence; expected the same"
                )

    def _read(self, pairs: TaggedWords) -> Sentence:
        """Return a sentence as the grammar takes it."""
        words = self.reading_.read_words([word for word, _ in pairs])
        if self.lexicon == "words":
            return Sentence(words, words)
        tags = self.reading_.terminals(pairs)
        return Sentence(tags, words, tags)

    # --- training ---

    def _learn(self, X: Any, Y: Any) -> tuple[list[Sentence], list[Any]]:
        reading = TreeReading(self.lexicon, self.vertical, self.min_count)
        sentences, trees = self._pairs_of(X, Y)
        reading.learn(trees)
        self.reading_ = reading
        self.grammar_ = self._new_grammar()
        return [self._read(pairs) for pairs in sentences], [reading.encode(tree) for tree in trees]

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn terminals, rules and features.

        Parameters
        ----------
        X, Y : sequence
            Sentences and their trees.
        """
        learned = self._learn(X, Y)
        self.grammar_.prepare(*learned)
        if self.count:
            self._count(*learned)

    def prepare_problem(self, X: Any, Y: Any, **fit_params: Any) -> PreparedProblem:
        """Learn terminals, rules and features, and make the native problem.

        Parameters
        ----------
        X, Y : sequence
            Sentences (None: the leaves of the trees) and their trees.
        **fit_params
            ``sample_weight`` and ``dtype``.
        """
        learned = self._learn(X, Y)
        prepared = self.grammar_.prepare_problem(*learned, **fit_params)
        if self.count:
            self._count(*learned)
        return prepared

    def make_problem(self, X: Any, Y: Any, sample_weight: Any = None) -> _native.Problem:
        """Make a native problem of more sentences, with the words and rules that are known.

        Parameters
        ----------
        X, Y : sequence
            Sentences and their trees; all rules of Y are known.
        sample_weight : array, optional
            A factor of C for each sentence.
        """
        sentences, trees = self._pairs_of(X, Y)
        encoded = [self.reading_.encode(tree) for tree in trees]
        read = [self._read(pairs) for pairs in sentences]
        return self.grammar_.make_problem(read, encoded, sample_weight)

    def _count(self, sentences: list[Sentence], encoded: list[Any]) -> None:
        n = self.grammar_.n_features
        assert n is not None
        self.counts_ = np.zeros(n)
        for sentence, tree in zip(sentences, encoded, strict=True):
            found = sparse_vector(self.grammar_.joint_feature(sentence, tree), n)
            self.counts_[found.indices] += found.values

    def log_probabilities(self) -> NDArray[np.float64]:
        """Return the weights of the PCFG by counting, the maximum-likelihood estimate.

        The probability of a rule is its share of the rules with the same left side in the training
        trees, that of a root its share of the trees. Features of nodes have the weight 0.

        Returns
        -------
        float64 array [n_features]
            The logarithms. The score of a tree is the logarithm of its probability.
        """
        grammar, counts = self.grammar_, self.counts_
        lefts = [left for left, _ in grammar.rules_]
        number = {left: k for k, left in enumerate(dict.fromkeys(lefts))}
        n, roots = len(lefts), len(grammar.roots_)
        group = np.array([number[left] for left in lefts] + [len(number)] * roots, np.int64)
        totals = np.bincount(group, weights=counts[: n + roots])
        weights = np.zeros(len(counts))
        weights[: n + roots] = np.log(counts[: n + roots] / totals[group])
        return weights

    def memory_needed(self, dtype: Any) -> tuple[str, int]:
        """Return name and size in bytes of the largest arrays of training.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.
        """
        return self.grammar_.memory_needed(dtype)

    def native_weights(self, weights: Any) -> Any:
        """Return the weights aligned as native code needs them.

        Parameters
        ----------
        weights : array
            The weights.
        """
        return self.grammar_.native_weights(weights)

    # --- prediction ---

    def predict(self, X: Any, weights: Any, n_jobs: int) -> list[Tree | None]:
        """Return the best tree of every sentence, and None where there is none.

        Parameters
        ----------
        X : sequence
            Sentences.
        weights : array
            The weights.
        n_jobs : int
            Number of threads.
        """
        sentences = self.sentences(X)
        found = self.grammar_.predict([self._read(pairs) for pairs in sentences], weights, n_jobs)
        return [
            self.reading_.decode(nested, pairs)
            for nested, pairs in zip(found, sentences, strict=True)
        ]

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int) -> NDArray[np.float64]:
        """Return the scores of given trees.

        Parameters
        ----------
        X, Y : sequence
            Sentences and trees.
        weights : array
            The weights.
        n_jobs : int
            Number of threads.
        """
        sentences, trees = self._pairs_of(X, Y)
        read = [self._read(pairs) for pairs in sentences]
        encoded = [self.reading_.encode(tree) for tree in trees]
        return self.grammar_.score_outputs(read, encoded, weights, n_jobs)

    # --- one example ---

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return the features of a tree.

        Parameters
        ----------
        x : sentence
            A sentence.
        y : Tree
            One of its trees.
        """
        ((pairs,), (tree,)) = self._pairs_of([x], [y])
        return self.grammar_.joint_feature(self._read(pairs), self.reading_.encode(tree))

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss of a tree.

        Parameters
        ----------
        y, y_hat : Tree
            The truth and another tree.
        """
        true, guess = self.trees([y, y_hat])
        return self.grammar_.loss(self.reading_.encode(true), self.reading_.encode(guess))

    def argmax(self, x: Any, w: Any, truth: Any = None) -> Any:
        """Return the best tree, or the oracle's.

        Parameters
        ----------
        x : sentence
            A sentence.
        w : array
            The weights.
        truth : Tree or None
            The true tree, for the oracle.
        """
        (pairs,) = self.sentences([x])
        encoded = None if truth is None else self.reading_.encode(self.trees([truth])[0])
        return self.reading_.decode(self.grammar_.argmax(self._read(pairs), w, encoded), pairs)

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        grammar, arrays = self.grammar_.state()
        return {"reading": self.reading_.state(), "grammar": grammar}, arrays

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Treebank:
        """Undo `state`.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave; nothing of it is trusted.

        Raises
        ------
        ValueError, KeyError, TypeError
            If they do not make sense.
        """
        reading = TreeReading.restore(meta["reading"])
        if not isinstance(meta["grammar"], dict):
            raise TypeError("the grammar is not described")
        made = cls(lexicon=reading.lexicon, vertical=reading.vertical, min_count=reading.min_count)
        made.reading_ = reading
        made.grammar_ = Grammar.restore(meta["grammar"], arrays)
        return made


def _tree(i: int, y: Any) -> Tree:
    if isinstance(y, Tree):
        return y
    try:
        if isinstance(y, str):
            return Tree.parse(y)
        return Tree.from_tuple(y)
    except FileFormatError as error:
        raise ValueError(f"tree {i}: {error}") from None
    except ValueError as error:
        raise ValueError(
            f"tree {i}: {error}; expected a Tree, a text in brackets or nested tuples"
        ) from None
