"""The rules of a grammar: read off trees, binarised, numbered, and trees as lists of them.

Native code knows binary rules, chains of unary rules, and rules over single terminals
(``native/grammar_rules.hpp``). A rule with more than two children is taken apart. Without
Markovisation the symbols in between stand for the rest of the children,

    NP -> DT JJ NN     becomes     NP -> DT <JJ NN>     <JJ NN> -> JJ NN

so that its weight is at its top, and the others have none. With Markovisation of order h they
stand for the label and the last h children, and every binary rule has a weight of its own.

Either way a tree has one derivation and a derivation one tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.printable import quoted
from maxmargin.structures.grammar_trees import Node, ParseTree, plain_label

__all__ = ["Child", "Rule", "RuleSet"]

#: A label, or a terminal (True).
Child: TypeAlias = tuple[str, bool]
Rule: TypeAlias = tuple[str, tuple[Child, ...]]
#: ("label" | "inner" | "terminal", what).
Symbol: TypeAlias = tuple[str, Any]

#: More chains of unary rules than this are refused.
MOST_CHAINS = 100_000


def _symbol(child: Child) -> Symbol:
    return ("terminal" if child[1] else "label", child[0])


def rule_text(rule: Rule) -> str:
    """Return a rule in words.

    Parameters
    ----------
    rule : (lhs, rhs)
        The rule.

    Returns
    -------
    str
        With an arrow.
    """
    return f"{rule[0]} -> {' '.join(name for name, _ in rule[1])}"


class RuleSet:
    """All rules of a grammar with their numbers.

    Parameters
    ----------
    rules : iterable of (lhs, rhs)
        The rules as trees have them; rhs is a tuple of (symbol, is_terminal).
    roots : iterable of str
        The labels of roots.
    horizontal, binarise, max_chain, ignore, annotation
        As for `maxmargin.structures.grammar.Grammar`.

    Attributes
    ----------
    rules : list of (lhs, rhs)
        The rules as trees have them, sorted.
    weighted : list of (lhs, rhs)
        The rules with weights, in their order.
    labels, terminals, roots : list of str
        Sorted.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        roots: Iterable[str],
        *,
        horizontal: int | None,
        binarise: str,
        max_chain: int | None,
        ignore: Sequence[str],
        annotation: str | None,
    ) -> None:
        self.rules = sorted(set(rules))
        self.horizontal, self.left = horizontal, binarise == "left"
        self.labels = sorted({lhs for lhs, _ in self.rules})
        self.roots = sorted(set(roots))
        self.terminals = sorted({s for _, rhs in self.rules for s, leaf in rhs if leaf})
        self.terminal_numbers = {name: k for k, name in enumerate(self.terminals)}
        self.label_numbers = {name: k for k, name in enumerate(self.labels)}
        for root in self.roots:
            if root not in self.label_numbers:
                raise ValueError(f"the root {quoted(root)} has no rule")
        for lhs, rhs in self.rules:
            for name, leaf in rhs:
                if not leaf and name not in self.label_numbers:
                    text = quoted(rule_text((lhs, rhs)))
                    raise ValueError(
                        f"the rule {text} has the label {quoted(name)}, which has no rule itself"
                    )
        self._number_rules()
        self._classes = [plain_label(label, annotation) for label in self.labels]
        self._make_chains(max_chain)
        counted = sorted(set(self._classes) - set(ignore))
        numbers = {name: k for k, name in enumerate(counted)}
        self._label_class = np.array([numbers.get(c, -1) for c in self._classes], np.int32)
        self._pieces: dict[Rule, list[int] | None] = {}
        self._native: _native.GrammarRules | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None}

    # --- binarisation ---

    def _binary(self, rule: Rule) -> list[tuple[Symbol, Symbol, Symbol, bool]]:
        """Return the binary rules of a rule, the top first: lhs, left, right, has a weight."""
        lhs, rhs = rule
        h, n = self.horizontal, len(rhs)
        children = rhs[::-1] if self.left else rhs
        above: Symbol = ("label", lhs)
        found = []
        for k in range(n - 1):
            if k == n - 2:
                rest = _symbol(children[n - 1])
            elif h is None:
                rest = ("inner", children[k + 1 :][::-1] if self.left else children[k + 1 :])
            else:
                rest = ("inner", (lhs, children[max(0, k + 1 - h) : k + 1]))
            one = _symbol(children[k])
            pair = (rest, one) if self.left else (one, rest)
            found.append((above, *pair, h is not None or k == 0))
            above = rest
        return found

    def _number_rules(self) -> None:
        """Give symbols and rules the numbers that native code has."""
        tops: dict[
            tuple[Symbol, Symbol, Symbol], Rule | None
        ] = {}  # with weights; what they stand for
        inner: set[tuple[Symbol, Symbol, Symbol]] = set()
        for rule in self.rules:
            for lhs, left, right, weighted in self._binary(rule):
                if weighted:
                    tops[lhs, left, right] = rule if self.horizontal is None else None
                else:
                    inner.add((lhs, left, right))
        symbols = {lhs for lhs, _, _ in [*tops, *inner] if lhs[0] == "inner"}
        inner_symbols = sorted(symbols, key=lambda s: repr(s[1]))
        self.n_inner = len(inner_symbols)
        self._numbers: dict[Symbol, int] = {("label", s): k for k, s in enumerate(self.labels)}
        for kind, names in (("inner", [s[1] for s in inner_symbols]), ("terminal", self.terminals)):
            for name in names:
                self._numbers[kind, name] = len(self._numbers)
        number = self._numbers

        def key(rule: tuple[Symbol, Symbol, Symbol]) -> tuple[int, int, int]:
            return number[rule[1]], number[rule[2]], number[rule[0]]

        binary, without = sorted(tops, key=key), sorted(inner, key=key)
        unary = [(lhs, r[0][0]) for lhs, r in self.rules if len(r) == 1 and not r[0][1]]
        lexical = [(lhs, r[0][0]) for lhs, r in self.rules if len(r) == 1 and r[0][1]]
        lexical.sort(key=lambda rule: (rule[1], rule[0]))
        self._unary, self._lexical = unary, lexical
        self._top = [key(rule) for rule in binary]
        self._without = [key(rule) for rule in without]
        self.weighted: list[Rule] = []
        for top in binary:
            stands_for = tops[top]
            self.weighted.append(stands_for or (_name(top[0]), (_child(top[1]), _child(top[2]))))
        self.weighted += [(lhs, ((r, False),)) for lhs, r in unary]
        self.weighted += [(lhs, ((r, True),)) for lhs, r in lexical]
        n, u = len(binary), len(unary)
        self._rule_numbers: dict[Any, int] = {rule: k for k, rule in enumerate(binary)}
        self._rule_numbers |= {("unary", *rule): n + k for k, rule in enumerate(unary)}
        self._rule_numbers |= {("lexical", *rule): n + u + k for k, rule in enumerate(lexical)}
        first = len(self.weighted)
        self._rule_numbers |= {rule: first + k for k, rule in enumerate(without)}
        # For decoding: (lhs, children) of each rule, each (kind, name).
        self._content: list[tuple[Symbol, tuple[Symbol, ...]]] = [
            *((r[0], r[1:]) for r in binary),
            *((("label", lhs), (("label", r),)) for lhs, r in unary),
            *((("label", lhs), (("terminal", r),)) for lhs, r in lexical),
            *((r[0], r[1:]) for r in without),
        ]

    def _make_chains(self, max_chain: int | None) -> None:
        """Enumerate the chains of unary rules that have no class of labels twice."""
        above: list[list[tuple[int, int]]] = [[] for _ in self.labels]
        for k, (lhs, child) in enumerate(self._unary):
            above[self.label_numbers[child]].append((self.label_numbers[lhs], len(self._top) + k))
        self.chain_label = list(range(len(self.labels)))
        self.chain_parent = [0] * len(self.labels)
        self.chain_rule = [0] * len(self.labels)
        paths: list[tuple[str, ...]] = [(c,) for c in self._classes]
        at = 0
        while at < len(self.chain_label):
            path = paths[at]
            if max_chain is None or len(path) < max_chain:
                for label, rule in above[self.chain_label[at]]:
                    if self._classes[label] in path:
                        continue
                    self.chain_label.append(label)
                    self.chain_parent.append(at)
                    self.chain_rule.append(rule)
                    paths.append((*path, self._classes[label]))
            if len(paths) > MOST_CHAINS:
                raise ValueError(
                    f"the unary rules make more than {MOST_CHAINS} chains without a label twice; "
                    f"limit the nodes of a chain with max_chain, for example {len(path)}"
                )
            at += 1
        self._chains = {
            (parent, rule): k
            for k, (parent, rule) in enumerate(zip(self.chain_parent, self.chain_rule, strict=True))
            if k >= len(self.labels)
        }

    @property
    def native(self) -> _native.GrammarRules:
        """The rules in native code."""
        if self._native is None:

            def column(rows: Sequence[Sequence[int]], k: int) -> NDArray[np.uint32]:
                return np.array([row[k] for row in rows], dtype=np.uint32)

            labels, terminals = self.label_numbers, self.terminal_numbers
            unary = [(labels[a], labels[b]) for a, b in self._unary]
            lexical = [(labels[a], terminals[t]) for a, t in self._lexical]
            root = np.full(len(self.labels), -1, np.int32)
            root[[labels[name] for name in self.roots]] = np.arange(len(self.roots))
            self._native = _native.GrammarRules(
                n_labels=len(self.labels),
                n_inner=self.n_inner,
                n_terminals=len(self.terminals),
                left=column(self._top, 0),
                right=column(self._top, 1),
                lhs=column(self._top, 2),
                inner_left=column(self._without, 0),
                inner_right=column(self._without, 1),
                inner_lhs=column(self._without, 2),
                unary_lhs=column(unary, 0),
                unary_child=column(unary, 1),
                lexical_lhs=column(lexical, 0),
                lexical_terminal=column(lexical, 1),
                label_class=self._label_class,
                root=root,
                chain_label=np.array(self.chain_label, np.uint32),
                chain_parent=np.array(self.chain_parent, np.uint32),
                chain_rule=np.array(self.chain_rule, np.uint32),
            )
        return self._native

    # --- trees ---

    def _numbers_of(self, rule: Rule) -> list[int] | None:
        """Return the numbers of the binary rules of a rule, or None."""
        if rule not in self._pieces:
            lhs, rhs = rule
            if len(rhs) == 1:
                kind = "lexical" if rhs[0][1] else "unary"
                keys: list[Any] = [(kind, lhs, rhs[0][0])]
            else:
                keys = [piece[:3] for piece in self._binary(rule)]
            numbers = [self._rule_numbers.get(key, -1) for key in keys]
            self._pieces[rule] = None if -1 in numbers else numbers
        return self._pieces[rule]

    def encode(self, nodes: Sequence[Node], where: str) -> list[int]:
        """Return a tree as native code has it.

        Parameters
        ----------
        nodes : list of Node
            The tree, flattened.
        where : str
            What it is called in messages.

        Returns
        -------
        list of int
            Rule and span of each node of the binary tree, from the top.

        Raises
        ------
        ValueError
            If the grammar does not have this tree.
        """
        if nodes[0].label not in self.roots:
            raise ValueError(
                f"{where} has the root {quoted(nodes[0].label)}; expected one of those in "
                f"training: {', '.join(self.roots[:10])}"
            )
        self._check_chains(nodes, where)
        code: list[int] = []
        stack: list[tuple[int, int, int] | int] = [0]
        while stack:
            at = stack.pop()
            if not isinstance(at, int):
                rule, start, end = at
                code += [rule, start << 16 | end]
                continue
            node = nodes[at]
            numbers = self._numbers_of((node.label, node.children))
            if numbers is None:
                text = rule_text((node.label, node.children))
                raise ValueError(f"{where} has the rule {quoted(text)}, which the grammar lacks")
            stack.extend(reversed(self._in_order(node, nodes, numbers)))
        return code

    def _in_order(
        self, node: Node, nodes: Sequence[Node], numbers: Sequence[int]
    ) -> list[tuple[int, int, int] | int]:
        """Return the rules of one node, and the children that are nodes, as the code has them."""
        n = len(node.places)
        begins = []  # of the children
        position = node.start
        for place in node.places:
            begins.append(position)
            position = position + 1 if place < 0 else nodes[place].end
        if n == 1:
            order: list[Any] = [(numbers[0], node.start, node.end)]
            return order + [p for p in node.places if p >= 0]
        if self.left:
            ends = [*begins[1:], node.end]
            rules = [(r, node.start, ends[n - 1 - k]) for k, r in enumerate(numbers)]
            return [*rules, *(p for p in node.places if p >= 0)]
        order = []
        for k, rule in enumerate(numbers):
            order.append((rule, begins[k], node.end))
            order += [p for p in node.places[k : k + 1] if p >= 0]
        return order + [p for p in node.places[-1:] if p >= 0]

    def _check_chains(self, nodes: Sequence[Node], where: str) -> None:
        """Refuse chains of unary rules that the grammar does not have."""
        covered = -1
        for k, node in enumerate(nodes):
            if k <= covered:
                continue
            chain = [node]
            while len(chain[-1].places) == 1 and chain[-1].places[0] >= 0:
                chain.append(nodes[chain[-1].places[0]])
            covered = k + len(chain) - 1
            if len(chain) == 1:
                continue
            text = " -> ".join(n.label for n in chain)
            entry = self.label_numbers.get(chain[-1].label, -1)
            for below, top in zip(chain[:0:-1], chain[-2::-1], strict=True):
                rule = self._rule_numbers.get(("unary", top.label, below.label))
                if rule is None:
                    raise ValueError(
                        f"{where} has the rule {quoted(f'{top.label} -> {below.label}')}, which "
                        "the grammar lacks"
                    )
                entry = self._chains.get((entry, rule), -1)
                if entry < 0:
                    raise ValueError(
                        f"{where} has the unary chain {quoted(text)} over the tokens "
                        f"{node.start} to {node.end}; expected no label twice in a chain, and no "
                        "more nodes than max_chain"
                    )

    def decode(self, code: Sequence[int]) -> ParseTree:
        """Return the tree of a code.

        Parameters
        ----------
        code : sequence of int
            As `encode` has it.

        Returns
        -------
        ParseTree
            Nested tuples.
        """
        stack: list[Any] = []
        for k in range(len(code) - 2, -1, -2):
            (kind, name), children = self._content[code[k]]
            made: list[Any] = []
            for child_kind, child in children:
                if child_kind == "terminal":
                    made.append(child)
                elif child_kind == "label":
                    made.append(stack.pop())
                else:
                    made += stack.pop()
            stack.append((name, made) if kind == "label" else made)
        tree: ParseTree = stack.pop()
        return tree


def _name(symbol: Symbol) -> str:
    if symbol[0] != "inner":
        return str(symbol[1])
    lhs, siblings = symbol[1]
    return f"@{lhs}[{' '.join(name for name, _ in siblings)}]"


def _child(symbol: Symbol) -> Child:
    return _name(symbol), symbol[0] == "terminal"
