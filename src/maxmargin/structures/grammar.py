"""`Grammar`: parse trees of a weighted context-free grammar, the Python face of the native parser.

    f(x, y) = Σ over nodes of y: e(rule of the node) + Σ over its attributes: e(attribute, label)
              + e(label of the root)

A tree is a nested tuple ``(label, [child, ...])``; a child is such a tuple or a string, which is a
terminal. The grammar has all rules of the training trees, of any arity.

Trees as nodes are in ``grammar_trees.py``, rules and their binarisation in ``grammar_rules.py``,
attributes of nodes in ``grammar_features.py``, what is checked of inputs in
``grammar_sentences.py``. Parsing and oracles are native: CKY
(``native/cky.hpp``), the best tree other than the truth (``native/cky_other.hpp``), and a dynamic
programme over the counts that F₁ needs (``native/cky_search.hpp``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice, check_whole
from maxmargin.memory import require_memory
from maxmargin.printable import quoted
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.grammar_features import Columns, NodeTemplates
from maxmargin.structures.grammar_rules import Rule, RuleSet
from maxmargin.structures.grammar_sentences import (
    Sentence,
    checked_pairs,
    checked_sentence,
    joined_columns,
)
from maxmargin.structures.grammar_trees import Node, ParseTree, bracket_spans, flatten
from maxmargin.structures.native import PreparedProblem

__all__ = ["Grammar", "ParseTree", "Sentence"]

LOSSES = ("f1", "zero_one", "brackets")


class Grammar(Structure):
    """Parse trees: the best one of a weighted context-free grammar, found by CKY.

    X is a list of sentences: lists of terminals (str), or `Sentence`. Y is a list of trees
    ``(label, [child, ...])`` whose leaves are the terminals. ``predict`` returns such trees, and
    None for a sentence that has no parse.

    Parameters
    ----------
    loss : {"f1", "zero_one", "brackets"}
        "f1": 1 - F₁ of the labelled spans, F₁ = 2 correct / (gold + predicted). "brackets": the
        number of predicted spans that are wrong plus the number of gold spans that are missed.
        "zero_one": 1 for every tree but the truth.
    node_features : sequence of str
        Templates of attributes of a node, each conjoined with its label: ``before``, ``first``,
        ``second``, ``penultimate``, ``last``, ``after`` (terminals in and around the span),
        ``length`` (of the span, in buckets); ``first:words`` and ``first:tags`` read the other
        columns of a `Sentence`; ``first+last`` is the pair of both. Only what occurs at nodes of
        training trees is a feature.
    horizontal : None, 0, 1 or 2
        None: the rules are those of the trees. Else Markovisation: a rule with more than two
        children becomes a chain of binary rules that remember so many siblings, each with a weight
        of its own; rules that no tree has can then be put together.
    binarise : {"right", "left"}
        From which end rules with more than two children are taken apart. Without Markovisation it
        changes nothing but the speed.
    max_chain : int or None
        The most nodes in a chain of unary rules. None: as many as there are labels. No chain has a
        label twice.
    min_count : int
        How often an attribute must occur with a label in training to be a feature.
    count_root : bool
        Does the root's span count in the loss?
    count_preterminals : bool
        Do nodes whose only child is a terminal count in the loss? True where terminals are
        part-of-speech tags, False where they are words, with tags above them.
    ignore : sequence of str
        Labels that do not count in the loss.
    annotation : str or None
        What follows this mark in a label (``NP^S``) is an annotation, which the loss does not see.

    Attributes
    ----------
    rules_ : list of (lhs, rhs)
        The rules that have weights, in the order of the weights; rhs is a tuple of (symbol,
        is_terminal). With Markovisation they have symbols of the form ``@NP[DT]``.
    labels_ : list of str
        The labels of nodes, sorted.
    terminals_ : list of str
        The terminals that the grammar knows, sorted.
    roots_ : list of str
        The labels that a root may have.
    n_features : int or None
        Number of weights: rules, roots, attributes with labels.

    Notes
    -----
    Binarisation, CKY and all oracles are native. Margin and slack rescaling are exact for all three
    losses, with linear and quadratic slacks: "brackets" is a sum over nodes, "zero_one" asks for
    the best tree but the truth, and "f1" for the best tree by its counts of brackets and of right
    ones.

    Examples
    --------
    >>> tree = ("S", [("NP", ["DT", "NN"]), ("VP", ["VB", ("NP", ["NN"])])])
    >>> grammar = Grammar()
    >>> grammar.prepare([["DT", "NN", "VB", "NN"]], [tree])
    >>> grammar.labels_, grammar.terminals_, grammar.roots_
    (['NP', 'S', 'VP'], ['DT', 'NN', 'VB'], ['S'])
    >>> w = np.zeros(grammar.n_features)
    >>> grammar.predict([["NN", "VB", "NN"], ["DT", "NN"]], w, n_jobs=1)
    [('S', [('NP', ['NN']), ('VP', ['VB', ('NP', ['NN'])])]), None]
    """

    def __init__(
        self,
        loss: str = "f1",
        node_features: Sequence[str] = (),
        *,
        horizontal: int | None = None,
        binarise: str = "right",
        max_chain: int | None = None,
        min_count: int = 1,
        count_root: bool = True,
        count_preterminals: bool = True,
        ignore: Sequence[str] = (),
        annotation: str | None = "^",
    ) -> None:
        self.loss_name = loss
        self.node_features = node_features
        self.horizontal = horizontal
        self.binarise = binarise
        self.max_chain = max_chain
        self.min_count = min_count
        self.count_root = count_root
        self.count_preterminals = count_preterminals
        self.ignore = ignore
        self.annotation = annotation
        self._rules: RuleSet | None = None
        self._templates = NodeTemplates(())

    def __repr__(self) -> str:
        defaults = Grammar().options()
        given = {k: v for k, v in self.options().items() if v != defaults[k]}
        return f"Grammar({', '.join(f'{k}={v!r}' for k, v in given.items())})"

    def options(self) -> dict[str, Any]:
        """Return the parameters of the constructor.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {
            "loss": self.loss_name,
            "node_features": list(self.node_features),
            "horizontal": self.horizontal,
            "binarise": self.binarise,
            "max_chain": self.max_chain,
            "min_count": self.min_count,
            "count_root": self.count_root,
            "count_preterminals": self.count_preterminals,
            "ignore": list(self.ignore),
            "annotation": self.annotation,
        }

    def _check_options(self) -> None:
        check_choice("loss", self.loss_name, LOSSES)
        check_choice("binarise", self.binarise, ("right", "left"))
        if self.horizontal is not None and self.horizontal not in (0, 1, 2):
            raise ValueError(f"horizontal is {self.horizontal!r}; expected None, 0, 1 or 2")
        if self.max_chain is not None:
            check_whole("max_chain", self.max_chain, 1)
        check_whole("min_count", self.min_count, 1)
        for name in ("node_features", "ignore"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"{name} is a string; expected a list of strings")
        for name in ("count_root", "count_preterminals"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is {getattr(self, name)!r}; expected True or False")
        if not all(isinstance(label, str) for label in self.ignore):
            raise TypeError("ignore has something else than labels; expected strings")
        if self.annotation is not None and (
            not isinstance(self.annotation, str) or not self.annotation
        ):
            raise ValueError(f"annotation is {self.annotation!r}; expected None or a mark")

    # --- learning what there is ------------------------------------------------------------------

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn rules and features.

        Parameters
        ----------
        X : list of sentences
            The training inputs.
        Y : list of trees
            Their trees.
        """
        self._learn(X, Y)

    def _learn(self, X: Any, Y: Any) -> tuple[Columns, list[list[Node]]]:
        self._check_options()
        templates = NodeTemplates(self.node_features)
        columns, trees = checked_pairs(X, Y)
        rules = self._rule_set(
            ((node.label, node.children) for nodes in trees for node in nodes),
            (nodes[0].label for nodes in trees),
        )
        if templates.templates:
            starts = columns.offsets[:-1].tolist()
            flat = [
                (start + node.start, start + node.end - 1, rules.label_numbers[node.label])
                for start, nodes in zip(starts, trees, strict=True)
                for node in nodes
            ]
            first, last, label = np.array(flat, dtype=np.int64).T
            templates.learn(columns, (first, last, label), len(rules.labels), self.min_count)
        # From here on nothing fails: a grammar is prepared as a whole or left as it was.
        self._rules, self._templates = rules, templates
        return columns, trees

    def _rule_set(self, rules: Iterable[Rule], roots: Iterable[str]) -> RuleSet:
        return RuleSet(
            rules,
            roots,
            horizontal=self.horizontal,
            binarise=self.binarise,
            max_chain=self.max_chain,
            ignore=self.ignore,
            annotation=self.annotation,
        )

    def prepare_problem(
        self, X: Any, Y: Any, sample_weight: Any = None, *, dtype: Any = "float32"
    ) -> PreparedProblem:
        """Learn rules and features and make the training problem.

        Parameters
        ----------
        X : list of sentences
            Lists of terminals, or `Sentence`.
        Y : list of trees
            ``(label, [child, ...])``, with the terminals as leaves.
        sample_weight : array of shape (n_sentences,), optional
            A factor of C for each sentence.
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        weight_dtype(dtype)
        columns, trees = self._learn(X, Y)
        return self._problem(columns, trees, sample_weight)

    def make_problem(self, X: Any, Y: Any, sample_weight: Any = None) -> _native.Problem:
        """Make a native training problem with the rules and features that are known.

        Parameters
        ----------
        X, Y, sample_weight
            As for `prepare_problem`; all rules of Y are known.

        Returns
        -------
        GrammarProblem
            What a solver trains.
        """
        self._require_prepared()
        columns, trees = checked_pairs(X, Y)
        return self._problem(columns, trees, sample_weight).problem

    def _problem(
        self, columns: Columns, trees: list[list[Node]], sample_weight: Any
    ) -> PreparedProblem:
        rules = self._require_prepared()
        codes = [rules.encode(nodes, f"tree {i}") for i, nodes in enumerate(trees)]
        parts = self._encoded(columns) | {
            "code_ptr": np.cumsum([0, *map(len, codes)]).astype(np.int64),
            "codes": np.array([word for code in codes for word in code], np.uint32),
            "example_weight": sequence_weights(sample_weight, len(trees), "sentence"),
            "loss": self.loss_name,
            "count_root": self.count_root,
            "count_preterminals": self.count_preterminals,
        }
        problem = _native.GrammarProblem(rules=rules.native, **parts)
        identity = json.dumps([rules.rules, rules.roots, self.options()])
        return PreparedProblem(problem, {**parts, "grammar": identity})

    def _encoded(self, columns: Columns) -> dict[str, Any]:
        """Return sentences as arguments of a native problem."""
        rules = self._require_prepared()
        get = rules.terminal_numbers.get
        numbers = np.array([get(t, -1) for t in columns.terminals], dtype=np.int32)
        longest = int(np.diff(columns.offsets).max())
        _require_chart(longest, rules)
        return {
            "offsets": columns.offsets,
            "terminals": numbers,
            **self._templates.encode(columns),
        }

    def _require_prepared(self) -> RuleSet:
        if self._rules is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this Grammar knows no rules yet; call prepare(X, Y) first")
        return self._rules

    # --- what is known ---------------------------------------------------------------------------

    @property
    def rules_(self) -> list[Rule]:
        """The rules that have weights, in the order of the weights."""
        return self._require_prepared().weighted

    @property
    def labels_(self) -> list[str]:
        """The labels of nodes, sorted."""
        return self._require_prepared().labels

    @property
    def terminals_(self) -> list[str]:
        """The terminals that the grammar knows, sorted."""
        return self._require_prepared().terminals

    @property
    def roots_(self) -> list[str]:
        """The labels that a root may have, sorted."""
        return self._require_prepared().roots

    @property
    def n_features(self) -> int | None:  # type: ignore[override]
        """Number of weights; None before ``prepare``."""
        if self._rules is None:
            return None
        return len(self._rules.weighted) + len(self._rules.roots) + self._templates.n_entries

    def feature_names(self) -> list[str]:
        """Return what each weight belongs to, in words.

        Returns
        -------
        list of str
            Rules ``NP -> DT NN``, roots ``root S``, attributes ``NP first=DT``.
        """
        rules = self._require_prepared()
        return [
            *(f"{lhs} -> {' '.join(name for name, _ in rhs)}" for lhs, rhs in rules.weighted),
            *(f"root {label}" for label in rules.roots),
            *(
                f"{label} {name}={value}"
                for name, value, label in self._templates.names(rules.labels)
            ),
        ]

    def memory_needed(self, dtype: Any = "float32") -> tuple[str, int]:
        """Estimate what the weights need in training, data and planes not counted.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        name : str
            What is counted, in words.
        n_bytes : int
            The weights of the engine, a copy, and the 8-byte weights of the certificate.
        """
        n, kind = self.n_features or 0, weight_dtype(dtype)
        name = (
            f"the weights ({n} of rules and features, {kind.name}, with a copy and the 8-byte "
            "certificate)"
        )
        return name, n * (2 * kind.itemsize + 8)

    def native_weights(self, weights: Any) -> Any:
        """Return the weights as native code takes them.

        Parameters
        ----------
        weights : array of shape (n_features,)
            float32 or float64.

        Returns
        -------
        array
            The same numbers, contiguous.
        """
        if not isinstance(weights, np.ndarray) or weights.dtype not in (np.float32, np.float64):
            raise TypeError("weights must be a numpy array of float32 or float64")
        if weights.shape != (self.n_features,):
            raise ValueError(
                f"weights has the shape {weights.shape}; expected ({self.n_features},)"
            )
        return np.ascontiguousarray(weights)

    # --- predictions -----------------------------------------------------------------------------

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[ParseTree | None]:
        """Return the best tree of every sentence.

        Parameters
        ----------
        X : list of sentences
            Lists of terminals, or `Sentence`.
        weights : array of shape (n_features,)
            The weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list of trees
            None for a sentence that has no parse: it is empty, has a terminal that no rule has, or
            no tree of the grammar has these leaves.
        """
        rules, native = self._require_prepared(), self.native_weights(weights)
        sentences = [checked_sentence(i, x) for i, x in enumerate(X)]
        known = rules.terminal_numbers
        can = [
            i
            for i, s in enumerate(sentences)
            if len(s.terminals) and all(t in known for t in s.terminals)
        ]
        found: list[ParseTree | None] = [None] * len(sentences)
        if not can:
            return found
        problem = self._sentences([sentences[i] for i in can])
        ptr, codes = problem.parse(native, n_jobs)
        words, places = codes.tolist(), ptr.tolist()
        for k, i in enumerate(can):
            if places[k] < places[k + 1]:
                found[i] = rules.decode(words[places[k] : places[k + 1]])
        return found

    def _sentences(self, sentences: Sequence[Sentence]) -> _native.GrammarProblem:
        """Return sentences as a native problem without trees."""
        rules = self._require_prepared()
        columns = joined_columns(sentences)
        return _native.GrammarProblem(rules=rules.native, **self._encoded(columns))

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given trees.

        Parameters
        ----------
        X, Y : list
            Sentences, and a tree of the grammar for each.
        weights : array of shape (n_features,)
            The weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_sentences,)
            The scores.
        """
        rules, native = self._require_prepared(), self.native_weights(weights)
        columns, trees = checked_pairs(X, Y)
        codes = [rules.encode(nodes, f"tree {i}") for i, nodes in enumerate(trees)]
        problem = _native.GrammarProblem(rules=rules.native, **self._encoded(columns))
        ptr = np.cumsum([0, *map(len, codes)]).astype(np.int64)
        flat = np.array([word for code in codes for word in code], np.uint32)
        return problem.score(native, ptr, flat, n_jobs)

    # --- the structure protocol, one sentence at a time ------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return f(x, y) as (indices, values).

        Parameters
        ----------
        x : sentence
            Terminals, or a `Sentence`.
        y : tree
            A tree of the grammar over them.

        Returns
        -------
        tuple of two arrays
            Indices (some may occur twice) and ones.
        """
        rules = self._require_prepared()
        columns, (nodes,) = checked_pairs([x], [y])
        code = rules.encode(nodes, "the tree")
        found = [rule for rule in code[::2] if rule < len(rules.weighted)]
        found.append(len(rules.weighted) + rules.roots.index(nodes[0].label))
        base, n = len(rules.weighted) + len(rules.roots), len(columns.terminals)
        given = self._templates.encode(columns)
        ptr, labels = self._templates.entry_ptr, self._templates.entry_label
        for node in nodes:
            i, j = node.start, node.end
            rows = {"first": i, "last": j - 1, "length": j - i}
            rows["span"] = i * n - i * (i - 1) // 2 + j - i - 1
            for kind, row in rows.items():
                if f"{kind}_ptr" not in given:
                    continue
                a, b = given[f"{kind}_ptr"][row : row + 2]
                for attribute in given[f"{kind}_ids"][a:b].tolist():
                    own = labels[ptr[attribute] : ptr[attribute + 1]]
                    at = np.flatnonzero(own == rules.label_numbers[node.label])
                    found += (base + ptr[attribute] + at).tolist()
        return np.array(found, np.int64), np.ones(len(found))

    def brackets(self, y: Any) -> list[tuple[str, int, int]]:
        """Return the labelled spans of a tree that count in the loss.

        Parameters
        ----------
        y : tree
            Any tree.

        Returns
        -------
        list of (label, start, end)
            Without annotations; from the top.
        """
        return bracket_spans(
            flatten(y),
            count_root=self.count_root,
            count_preterminals=self.count_preterminals,
            ignore=frozenset(self.ignore),
            annotation=self.annotation,
        )

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the loss of answering ``y_hat`` where ``y`` is the truth.

        Parameters
        ----------
        y, y_hat : tree
            Trees over the same terminals.

        Returns
        -------
        float
            As the parameter ``loss`` says.
        """
        if self.loss_name == "zero_one":
            return float(flatten(y) != flatten(y_hat))
        gold, found = set(self.brackets(y)), self.brackets(y_hat)
        correct, total = sum(b in gold for b in found), len(gold) + len(found)
        if self.loss_name == "brackets":
            return float(total - 2 * correct)
        return 1.0 - 2.0 * correct / total if total else 0.0

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> ParseTree:
        """Return the best tree of one sentence; with a truth, the oracle's answer.

        Parameters
        ----------
        x : sentence
            Terminals, or a `Sentence`.
        w : array of shape (n_features,)
            The weights.
        truth : tree or None
            With a truth: maximise ``loss(truth, y) + w·f(x, y)``. Without: ``w·f(x, y)``.

        Returns
        -------
        tree
            The best one.

        Raises
        ------
        ValueError
            If the sentence has no parse.
        """
        native = self.native_weights(np.array(w, dtype=np.float64))
        if truth is not None:
            code, _, _, _ = self.make_problem([x], [truth]).oracle(native, 0)  # type: ignore[attr-defined]
            return self._require_prepared().decode(code.tolist())
        (tree,) = self.predict([x], native)
        if tree is None:
            raise ValueError(f"the sentence {quoted(x)} has no parse under this grammar")
        return tree

    # --- files -----------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights.

        Returns
        -------
        meta : dict
            Values that JSON can hold.
        arrays : dict of str to ndarray
            Rules, roots and attributes.
        """
        rules = self._require_prepared()
        arrays = dict(self._templates.state())
        symbols = sorted({*rules.labels, *rules.terminals})
        numbers = {name: k for k, name in enumerate(symbols)}
        ptr = np.cumsum([0, *(len(rhs) for _, rhs in rules.rules)]).astype(np.int64)
        arrays["rule_ptr"] = ptr
        arrays["rule_lhs"] = np.array([numbers[lhs] for lhs, _ in rules.rules], np.int64)
        arrays["rule_rhs"] = np.array(
            [2 * numbers[name] + leaf for _, rhs in rules.rules for name, leaf in rhs], np.int64
        )
        meta = {"options": self.options(), "symbols": symbols, "roots": list(rules.roots)}
        return meta, arrays

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a prepared grammar of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Grammar
            Ready to predict.

        Raises
        ------
        ValueError, KeyError, TypeError
            If they do not make sense.
        """
        options, symbols, roots = meta["options"], meta["symbols"], meta["roots"]
        if not isinstance(options, dict):
            raise TypeError("the options of the grammar are no dictionary")
        made = cls(**options)
        made._check_options()
        for names in (symbols, roots):
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError("the symbols of the grammar are no list of strings")
        ptr, lhs, rhs = (np.asarray(arrays[f"rule_{k}"]) for k in ("ptr", "lhs", "rhs"))
        for array in (ptr, lhs, rhs):
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise ValueError("the rules of the grammar are no lists of whole numbers")
        if len(ptr) != len(lhs) + 1 or len(lhs) == 0 or ptr[0] != 0 or ptr[-1] != len(rhs):
            raise ValueError("the rules of the grammar do not fit together")
        if (np.diff(ptr) <= 0).any() or lhs.min() < 0 or lhs.max() >= len(symbols):
            raise ValueError("a rule of the grammar is empty or has an unknown symbol")
        if rhs.min() < 0 or rhs.max() >= 2 * len(symbols):
            raise ValueError("a rule of the grammar has an unknown symbol")
        places, children = ptr.tolist(), [(symbols[k >> 1], bool(k & 1)) for k in rhs.tolist()]
        rules = [
            (symbols[k], tuple(children[a:b]))
            for k, a, b in zip(lhs.tolist(), places[:-1], places[1:], strict=True)
        ]
        if not roots:
            raise ValueError("the grammar has no root")
        made._rules = made._rule_set(rules, roots)
        n_labels = len(made._rules.labels)
        made._templates = NodeTemplates.restore(made.node_features, arrays, n_labels)
        return made


def _require_chart(longest: int, rules: RuleSet) -> None:
    """Refuse a sentence whose chart does not fit, before the system ends the process."""
    cells = longest * (longest + 1) // 2
    n_symbols = len(rules.labels) + rules.n_inner + len(rules.terminals)
    needed = cells * (12 * ((n_symbols + 63) // 64) + 12 * len(rules.labels) + 16 * 64)
    if needed > 10_000_000:
        require_memory(
            f"the chart of a sentence of {longest} terminals",
            needed,
            advice="cut it into shorter sentences",
        )
