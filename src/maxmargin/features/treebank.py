"""Treebank trees as a grammar reads them, and back.

A context-free grammar read off a treebank takes each node to be independent of everything around it
but its label. What is done to the trees before they are read decides how bad that assumption is:

*Cleaning* (`cleaned`): traces and the nodes they leave empty are removed, function tags and indices
are cut off (NP-SBJ-1 becomes NP), and a node whose only child has the same label is merged with it.
The last is always done (`without_loops`): a rule X → X could be used any number of times.

*Vertical Markovisation* of order v: a label carries those of the v − 1 nodes above it, NP^S and
NP^VP (v = 2), as Johnson (1998) and Klein and Manning (2003) have it. The root has nothing above it
and so has a label of its own, which also distinguishes whole sentences from embedded ones. On
output all behind the first ^ is cut off again. Parts of speech carry nothing.

*Horizontal Markovisation* is a matter of how long rules are binarised, and so of the grammar.

*Words.* Words that occur fewer than `min_count` times in training are read as their shape class
(`maxmargin.features.word_shapes`), in training and later; an unknown word as the longest of its
classes that occurred in training, and if none did, as the most frequent word or class.

With ``lexicon="tags"`` the terminals of the grammar are the given parts of speech (the setting of
Johnson, and of section 5.5 of Tsochantaridis et al.), and words are there for features of nodes
alone; a part of speech that did not occur in training is read as the most frequent one that did.
With ``lexicon="words"`` the terminals are words, and the parts of speech are nodes that the parser
chooses. The rules "tag → class", learned from rare words, are the smoothing of the lexicon. In both
cases every sentence consists of terminals that the grammar knows, and the output has the words, and
with "tags" the parts of speech, that were given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maxmargin.features.word_shapes import is_class, shape_classes
from maxmargin.printable import quoted
from maxmargin.trees import NestedTuple, Tree, category_of

__all__ = ["FlatTree", "TreeReading", "cleaned", "without_loops"]

_ABOVE = "^"
_TRACE = "-NONE-"


class FlatTree(Tree):
    """A tree that was not found by parsing: a root with all words directly below it."""

    __slots__ = ()


def cleaned(tree: Tree) -> Tree | None:
    """Return a tree without traces, function tags, and nodes alone below one of the same label.

    Parameters
    ----------
    tree : Tree
        As the Penn Treebank has it.

    Returns
    -------
    Tree or None
        None if nothing but traces is in it.
    """
    done: dict[int, Tree | None] = {}
    for node in tree.bottom_up():
        if node.word is not None:
            done[id(node)] = None if node.label == _TRACE else node
            continue
        below = [made for child in node.children if (made := done[id(child)]) is not None]
        done[id(node)] = Tree(category_of(node.label), below) if below else None
    found = done[id(tree)]
    return None if found is None else without_loops(found)


def without_loops(tree: Tree) -> Tree:
    """Return a tree in which no node stands alone below a node of the same label.

    Parameters
    ----------
    tree : Tree
        Any tree.
    """
    done: dict[int, Tree] = {}
    for node in tree.bottom_up():
        if node.word is not None:
            done[id(node)] = node
            continue
        below = [done[id(child)] for child in node.children]
        while len(below) == 1 and below[0].word is None and below[0].label == node.label:
            below = list(below[0].children)
        done[id(node)] = Tree(node.label, below)
    return done[id(tree)]


@dataclass
class TreeReading:
    """How trees and sentences are given to a grammar; `learn` fills in what training data has.

    Parameters
    ----------
    lexicon : {"tags", "words"}
        What the grammar reads.
    vertical : int
        1: labels as they are; v: with those of the v - 1 nodes above.
    min_count : int
        Words that occur fewer times than this in training are read as their shape class.
    root : str
        The most frequent label of roots.
    tags : frozenset of str
        Parts of speech that occur in training.
    words : frozenset of str
        Words and classes that occur in training as they are read.
    usual_tag, usual_word : str
        The most frequent ones.
    """

    lexicon: str = "tags"
    vertical: int = 1
    min_count: int = 2
    root: str = ""
    tags: frozenset[str] = field(default_factory=frozenset)
    words: frozenset[str] = field(default_factory=frozenset)
    usual_tag: str = ""
    usual_word: str = ""

    def __post_init__(self) -> None:
        if self.lexicon not in ("tags", "words"):
            raise ValueError(f'lexicon is {quoted(self.lexicon)}; expected "tags" or "words"')
        for name, value, least in (
            ("vertical", self.vertical, 1),
            ("min_count", self.min_count, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {quoted(value)}; expected an integer from {least} on")

    def learn(self, trees: Sequence[Tree]) -> None:
        """Learn the terminals, and what is most frequent.

        Parameters
        ----------
        trees : sequence of Tree
            The training data; at least one.

        Raises
        ------
        ValueError
            If a tree has no node above the parts of speech, or a label that holds ^ where labels
            carry those above them.
        """
        if not trees:
            raise ValueError("found no trees to learn from; expected at least one")
        for i, tree in enumerate(trees):
            if tree.word is not None:
                raise ValueError(
                    f"tree {i} is {quoted(str(tree))}; expected a node above the part of speech"
                )
            if self.vertical > 1:
                _check_labels(i, tree)
        self.root = _most_frequent(tree.label for tree in trees)
        self.tags = frozenset(tag for tree in trees for tag in tree.tags())
        self.usual_tag = _most_frequent(tag for tree in trees for tag in tree.tags())
        counts = Counter(word for tree in trees for word in tree.words())
        frequent = {word for word, n in counts.items() if n >= self.min_count}
        frequent -= {word for word in frequent if is_class(word)}
        read: Counter[str] = Counter()
        for tree in trees:
            for t, word in enumerate(tree.words()):
                read[word if word in frequent else shape_classes(word, first=t == 0)[0]] += 1
        self.words = frozenset(read)
        self.usual_word = _most_frequent(read)

    def read_words(self, words: Sequence[str]) -> list[str]:
        """Return the words of a sentence as they are read: themselves or classes.

        Parameters
        ----------
        words : sequence of str
            The words.
        """
        return [self._read_word(word, t == 0) for t, word in enumerate(words)]

    def _read_word(self, word: str, first: bool) -> str:
        if word in self.words and not is_class(word):
            return word
        for name in shape_classes(word, first=first):
            if name in self.words:
                return name
        return self.usual_word

    def read_tags(self, tags: Sequence[str]) -> list[str]:
        """Return the parts of speech of a sentence as they are read.

        Parameters
        ----------
        tags : sequence of str
            The parts of speech.
        """
        return [tag if tag in self.tags else self.usual_tag for tag in tags]

    def terminals(self, pairs: Sequence[tuple[str, str | None]]) -> list[str]:
        """Return a sentence as the grammar reads it.

        Parameters
        ----------
        pairs : sequence of (word, tag)
            The words with their parts of speech, which may be None if the grammar reads words.

        Returns
        -------
        list of str
            A terminal for each word.
        """
        if self.lexicon == "tags":
            return self.read_tags([tag or "" for _, tag in pairs])
        return self.read_words([word for word, _ in pairs])

    def encode(self, tree: Tree) -> NestedTuple:
        """Return a tree as the grammar reads it.

        Parameters
        ----------
        tree : Tree
            A tree of a treebank, with a node above the parts of speech.

        Returns
        -------
        tuple
            Nested ``(label, [children])``; the leaves are the `terminals` of its words.
        """
        tree = without_loops(tree)
        symbols = iter(self.terminals(tree.pairs()))
        keep = self.vertical - 1
        top: list[Any] = []
        # A node, the labels above it from the nearest on, and the list it belongs into.
        open_: list[tuple[Tree, tuple[str, ...], list[Any]]] = [(tree, (), top)]
        while open_:
            node, above, into = open_.pop()
            if node.word is not None:
                symbol = next(symbols)
                into.append(symbol if self.lexicon == "tags" else (node.label, [symbol]))
                continue
            below: list[Any] = []
            into.append((_ABOVE.join([node.label, *above]), below))
            above = (node.label, *above)[:keep]
            open_.extend((child, above, below) for child in reversed(node.children))
        return top[0]  # type: ignore[no-any-return]

    def decode(
        self, nested: NestedTuple | None, pairs: Sequence[tuple[str, str | None]]
    ) -> Tree | None:
        """Undo `encode`.

        Parameters
        ----------
        nested : tuple or None
            A tree of the grammar over the `terminals` of the sentence. None: there is none.
        pairs : sequence of (word, tag)
            The sentence.

        Returns
        -------
        Tree or None
            With the labels of the treebank, and the words and tags of the sentence.
        """
        if nested is None:
            return None
        words = iter(pairs)
        order: list[tuple[str, int, str | None]] = []  # label, number of children, word
        open_: list[Any] = [nested]
        while open_:
            item = open_.pop()
            if isinstance(item, str):  # a part of speech
                word, tag = next(words)
                order.append((item if tag is None else tag, 0, word))
            elif self.lexicon == "words" and len(item[1]) == 1 and isinstance(item[1][0], str):
                word, _ = next(words)
                order.append((item[0], 0, word))
            else:
                category = item[0].partition(_ABOVE)[0] if self.vertical > 1 else item[0]
                order.append((category, len(item[1]), None))
                open_.extend(reversed(item[1]))
        made: list[Tree] = []  # without a parent yet; the leftmost last
        for label, n, leaf in reversed(order):
            if leaf is not None:
                made.append(Tree(label, leaf))
            else:
                children = made[len(made) - n :][::-1]
                del made[len(made) - n :]
                made.append(Tree(label, children))
        return made[0]

    def flat(self, pairs: Sequence[tuple[str, str | None]]) -> FlatTree:
        """Return the answer for a sentence that the grammar has no tree for.

        Parameters
        ----------
        pairs : sequence of (word, tag)
            The sentence.

        Returns
        -------
        FlatTree
            The most frequent root with all words below it. A word whose tag is not known has the
            most frequent one.
        """
        return FlatTree(self.root, [Tree(tag or self.usual_tag, word) for word, tag in pairs])

    def state(self) -> dict[str, Any]:
        """Return all that was given and learned, as JSON holds it."""
        return {
            "lexicon": self.lexicon,
            "vertical": self.vertical,
            "min_count": self.min_count,
            "root": self.root,
            "tags": sorted(self.tags),
            "words": sorted(self.words),
            "usual_tag": self.usual_tag,
            "usual_word": self.usual_word,
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> TreeReading:
        """Undo `state`.

        Parameters
        ----------
        state : mapping
            What `state` gave, perhaps damaged since.

        Raises
        ------
        ValueError, KeyError, TypeError
            If it is damaged.
        """
        found = cls(state["lexicon"], state["vertical"], state["min_count"])
        for name in ("root", "usual_tag", "usual_word"):
            if not isinstance(state[name], str):
                raise TypeError(f"{name} is not a text")
            setattr(found, name, state[name])
        for name in ("tags", "words"):
            if not isinstance(state[name], list) or not all(
                isinstance(one, str) for one in state[name]
            ):
                raise TypeError(f"{name} are not texts")
            setattr(found, name, frozenset(state[name]))
        if found.usual_tag not in found.tags or found.usual_word not in found.words:
            raise ValueError("the most frequent word or tag does not occur")
        found.flat([("word", None)])  # root and tag can be written in a tree
        return found


def _check_labels(i: int, tree: Tree) -> None:
    for node in tree.nodes():
        if node.word is None and _ABOVE in node.label:
            raise ValueError(
                f"tree {i} has the label {quoted(node.label)}; with vertical above 1, labels must "
                f"not hold {_ABOVE}"
            )


def _most_frequent(names: Iterable[str] | Counter[str]) -> str:
    """Return the most frequent name, the first in the alphabet if there are several."""
    counts = names if isinstance(names, Counter) else Counter(names)
    return min(counts, key=lambda name: (-counts[name], name))
