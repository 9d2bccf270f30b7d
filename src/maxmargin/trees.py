"""`Tree`: a parse tree as treebanks write it.

A node has a label and either children, which are nodes, or a word. A node with a word is a
pre-terminal, and its label is a part of speech. Labels and words hold no blanks and no brackets, so
that a tree and its text in brackets are the same thing: ``str`` writes it, `Tree.parse` reads it.

Nothing here recurses. A tree of a hostile file may be as deep as the file is long, and Python's
recursion, also that of ``repr``, ``==``, ``hash`` and ``pickle`` on nested tuples, ends there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from maxmargin.errors import FileFormatError
from maxmargin.printable import quoted

__all__ = ["MAX_DEPTH", "NestedTuple", "Span", "Tree", "category_of", "parse_trees"]

#: A tree in plain Python: a label with a list of children; a leaf is a string.
NestedTuple: TypeAlias = tuple[str, Sequence[Any]]

#: Nodes on the way from the root to a word, at most, in text that is read. Treebanks have some 40.
MAX_DEPTH = 500

_TOKEN = re.compile(r"[()]|[^\s()]+")
_UNFIT = re.compile(r"[\s()]")
_CATEGORY = re.compile(r"[^-=]+(?=[-=])")


def category_of(label: str) -> str:
    """Return a label without function tags and indices: NP of NP-SBJ-1 and of NP=2.

    Parameters
    ----------
    label : str
        A label of the Penn Treebank. One that begins with a hyphen (-LRB-, -NONE-) stays whole.
    """
    found = _CATEGORY.match(label)
    return label if found is None else found.group()


class Span(NamedTuple):
    """A node above the parts of speech: its label, and the words ``begin`` to ``end - 1``."""

    label: str
    begin: int
    end: int


class Tree:
    """A node of a parse tree with all that is below it.

    Parameters
    ----------
    label : str
        A category, or the part of speech of a word. Not empty, without blanks and brackets.
    children : str or sequence of Tree
        A word, or the nodes below; at least one.

    Attributes
    ----------
    label : str
        The label.
    children : tuple of Tree
        The nodes below; empty above a word.
    word : str or None
        The word of a pre-terminal.

    Raises
    ------
    ValueError
        If a label or a word is empty or holds blanks or brackets, or if there are no children.

    Examples
    --------
    >>> tree = Tree.parse("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))")
    >>> tree.words()
    ['the', 'dog', 'barks']
    >>> tree.tags()
    ['DT', 'NN', 'VBZ']
    >>> [tuple(span) for span in tree.spans()]
    [('S', 0, 3), ('NP', 0, 2), ('VP', 2, 3)]
    """

    __slots__ = ("children", "label", "word")

    label: str
    children: tuple[Tree, ...]
    word: str | None

    def __init__(self, label: str, children: str | Iterable[Tree]) -> None:
        self.label = _fit(label, "label")
        if isinstance(children, str):
            self.word = _fit(children, "word")
            self.children = ()
            return
        self.word = None
        self.children = tuple(children)
        if not self.children:
            raise ValueError(f"the node {quoted(label)} has no children; expected a word or nodes")
        for child in self.children:
            if not isinstance(child, Tree):
                raise ValueError(
                    f"found {quoted(child)} below the node {quoted(label)}; expected a Tree, or "
                    "one word in the place of all children"
                )

    @classmethod
    def _make(cls, label: str, children: Iterable[Tree], word: str | None) -> Tree:
        """Make a node of parts that are known to be right."""
        node = cls.__new__(cls)
        node.label, node.children, node.word = label, tuple(children), word
        return node

    @classmethod
    def parse(cls, text: str) -> Tree:
        """Read one tree from its text in brackets.

        Parameters
        ----------
        text : str
            The text, on one or more lines. An outer bracket without a label is left away.

        Returns
        -------
        Tree
            Its root.

        Raises
        ------
        FileFormatError
            If that is no tree, or several; the message names line and column.
        """
        trees = list(parse_trees(text, "the given text"))
        if len(trees) != 1:
            raise FileFormatError(f"found {len(trees)} trees in {quoted(text)}; expected one")
        return trees[0]

    def nodes(self) -> Iterator[Tree]:
        """Give all nodes, each before those below it, from left to right."""
        open_ = [self]
        while open_:
            node = open_.pop()
            yield node
            open_.extend(reversed(node.children))

    def bottom_up(self) -> list[Tree]:
        """Return all nodes, each behind those below it."""
        found, open_ = [], [self]
        while open_:
            node = open_.pop()
            found.append(node)
            open_.extend(node.children)
        found.reverse()  # the root first and the last child next, turned round
        return found

    def leaves(self) -> list[Tree]:
        """Return the nodes that have words, from left to right."""
        return [node for node in self.nodes() if node.word is not None]

    def words(self) -> list[str]:
        """Return the words."""
        return [node.word for node in self.nodes() if node.word is not None]

    def tags(self) -> list[str]:
        """Return the parts of speech of the words."""
        return [node.label for node in self.nodes() if node.word is not None]

    def pairs(self) -> list[tuple[str, str]]:
        """Return the words with their parts of speech."""
        return [(node.word, node.label) for node in self.nodes() if node.word is not None]

    def spans(self) -> list[Span]:
        """Return the nodes that have no word, each before those below it."""
        found: list[tuple[str, int]] = []
        ends: dict[int, int] = {}
        at = 0
        # A number stands for the end of the span that it is the number of.
        open_: list[Tree | int] = [self]
        while open_:
            node = open_.pop()
            if isinstance(node, int):
                ends[node] = at
            elif node.word is not None:
                at += 1
            else:
                open_.append(len(found))
                found.append((node.label, at))
                open_.extend(reversed(node.children))
        return [Span(label, begin, ends[k]) for k, (label, begin) in enumerate(found)]

    def to_tuple(self, *, words: bool = True) -> NestedTuple:
        """Return the tree as ``(label, [children])``; leaves are strings.

        Parameters
        ----------
        words : bool
            Whether words are the leaves, each alone below its part of speech. False: the parts of
            speech are the leaves.
        """
        done: dict[int, Any] = {}
        for node in self.bottom_up():
            below: list[Any]
            if node.word is None:
                below = [done[id(child)] for child in node.children]
            elif words:
                below = [node.word]
            else:
                done[id(node)] = node.label
                continue
            done[id(node)] = (node.label, below)
        top = done[id(self)]
        if isinstance(top, str):
            raise ValueError(f"the tree {self} has no node above the parts of speech")
        return top  # type: ignore[no-any-return]

    @classmethod
    def from_tuple(cls, nested: NestedTuple, words: Sequence[str] | None = None) -> Tree:
        """Make a tree of nested tuples.

        Parameters
        ----------
        nested : tuple
            As `to_tuple` gives them.
        words : list of str or None
            The words, if the leaves of ``nested`` are parts of speech. None: its leaves are words.

        Raises
        ------
        ValueError
            If that is not a tree, or there are more or fewer words than leaves.
        """
        order: list[Any] = []
        open_: list[Any] = [nested]
        while open_:
            item = open_.pop()
            order.append(item)
            if not isinstance(item, str):
                if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
                    raise ValueError(f"found {type(item).__name__}; expected (label, [children])")
                if isinstance(item[1], str) or not isinstance(item[1], Sequence):
                    raise ValueError(
                        f"the children of {quoted(item[0])} are {quoted(item[1])}; expected a list"
                    )
                open_.extend(item[1])
        n_leaves = sum(isinstance(item, str) for item in order)
        if words is not None and len(words) != n_leaves:
            raise ValueError(f"the tree has {n_leaves} leaves, but there are {len(words)} words")
        made: list[Tree | str] = []  # what has no parent yet, the leftmost last
        left = 0
        for item in reversed(order):
            if isinstance(item, str):
                made.append(item if words is None else cls(item, words[left]))
                left += 1
                continue
            n = len(item[1])
            children = made[len(made) - n :] if n else []
            del made[len(made) - n :]
            if n == 1 and isinstance(children[0], str):
                made.append(cls(item[0], children[0]))
            else:
                made.append(cls(item[0], children))  # type: ignore[arg-type]
        (top,) = made
        if isinstance(top, str):
            raise ValueError(f"found the leaf {quoted(top)}; expected (label, [children])")
        return top

    def _pieces(self) -> Iterator[str]:
        open_: list[Tree | None] = [self]
        before = ""
        while open_:
            node = open_.pop()
            if node is None:
                yield ")"
            elif node.word is not None:
                yield f"{before}({node.label} {node.word})"
            else:
                yield f"{before}({node.label}"
                open_.append(None)
                open_.extend(reversed(node.children))
            before = " "

    def __str__(self) -> str:
        return "".join(self._pieces())

    def __repr__(self) -> str:
        return f"Tree.parse({quoted(str(self))})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        open_ = [(self, other)]
        while open_:
            a, b = open_.pop()
            if a is b:
                continue
            if a.label != b.label or a.word != b.word or len(a.children) != len(b.children):
                return False
            open_.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (str(self),)


def _unpickled(text: str) -> Tree:
    (tree,) = parse_trees(text, "a pickled tree", max_depth=len(text))
    return tree


def _fit(text: object, what: str) -> str:
    if not isinstance(text, str) or not text or _UNFIT.search(text):
        raise ValueError(
            f"found the {what} {quoted(text)}; expected text without blanks and brackets "
            "(treebanks write -LRB- and -RRB- for brackets)"
        )
    return text


class _Open:
    """A bracket that is not closed yet."""

    __slots__ = ("at", "children", "label", "word")

    def __init__(self, at: int) -> None:
        self.at = at
        self.label: str | None = None
        self.word: str | None = None
        self.children: list[Tree] = []


def parse_trees(text: str, source: str, *, max_depth: int = MAX_DEPTH) -> Iterator[Tree]:
    """Read trees from text in brackets.

    Parameters
    ----------
    text : str
        Any number of trees, each on one or more lines. An outer bracket without a label, which
        the Penn Treebank has around every tree, is left away.
    source : str
        What messages call the text.
    max_depth : int
        Most brackets that may be open at once.

    Yields
    ------
    Tree
        The trees in their order.

    Raises
    ------
    FileFormatError
        If brackets do not match, a label is missing, text is outside of the brackets, a word has no
        part of speech of its own, or brackets are nested too deeply. The message names line and
        column.
    """

    def error(at: int, message: str) -> FileFormatError:
        line = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        return FileFormatError(f"{source}: line {line}, column {column}: {message}")

    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "(":
            if stack:
                above = stack[-1]
                if above.word is not None:
                    raise error(
                        match.start(),
                        f"found a bracket behind the word {quoted(above.word)}; expected a closing "
                        "bracket, because a word stands alone below its part of speech",
                    )
                if above.label is None and len(stack) > 1:
                    raise error(above.at, "found a bracket without a label; expected one, as (NP")
            if len(stack) >= max_depth:
                raise error(
                    match.start(),
                    f"found more than {max_depth} brackets within each other; expected a tree of "
                    "fewer levels",
                )
            stack.append(_Open(match.start()))
        elif token == ")":
            if not stack:
                raise error(
                    match.start(),
                    "found a closing bracket; expected an opening one, because none is open",
                )
            node = stack.pop()
            if node.label is None:
                if not node.children:
                    raise error(node.at, "found a bracket without a label; expected one, as (NP")
                if len(node.children) > 1:
                    raise error(
                        node.at,
                        f"found an outer bracket without a label around {len(node.children)} trees;"
                        " expected one tree in it",
                    )
                tree = node.children[0]
            else:
                if not node.children and node.word is None:
                    raise error(
                        node.at,
                        f"found nothing in the bracket {quoted(node.label)}; expected a word or "
                        "brackets behind the label",
                    )
                tree = Tree._make(node.label, node.children, node.word)
            if stack:
                stack[-1].children.append(tree)
            else:
                yield tree
        elif not stack:
            raise error(
                match.start(),
                f"found {quoted(token)} outside of the brackets; expected an opening bracket",
            )
        else:
            node = stack[-1]
            if node.label is None and not node.children:
                node.label = token
            elif node.word is None and not node.children:
                node.word = token
            else:
                raise error(
                    match.start(),
                    f"found the word {quoted(token)} without a part of speech of its own; expected "
                    "a bracket around each word, as (NN dog)",
                )
    if stack:
        raise error(
            stack[-1].at,
            f"found the end of the text, but the bracket {quoted(stack[-1].label or '')} that is "
            f"opened here is not closed ({len(stack)} open); expected a closing bracket",
        )
