"""`DependencyTree`: the head of every word of a sentence, and its relation to it.

A tree is scored by the sum over its arcs (first order): f(x, y) is the sum of the features of the
arcs from heads to dependents, which templates make of words, tags and what lies between
(``maxmargin.features.arc_templates``). The loss counts the words with a wrong head or relation.
Oracle and prediction are Eisner's algorithm for projective trees and that of Chu, Liu and Edmonds
for all trees (``native/dependency.hpp``).

An output is the array of heads, or a pair (heads, relations).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.features.arc_templates import ArcTemplates, default_templates, sentence_columns
from maxmargin.memory import require_memory
from maxmargin.printable import quoted
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.dependency_trees import (
    checked_heads,
    heads_and_names,
    is_projective,
    list_trees,
)
from maxmargin.structures.native import PreparedProblem

__all__ = ["DependencyTree", "paired_sentences"]

_LOSSES = ("hamming", "zero_one")
_DTYPES = ("float32", "float64")
#: With no larger share of trees with crossing arcs in the training data, projective="auto" is True.
_FEW_CROSSING = 0.05


class DependencyTree(Structure):
    """Dependency trees over the words of sentences.

    Parameters
    ----------
    templates : str or None
        Features of arcs, one template on each line (``maxmargin.features.arc_templates``). None:
        the set of McDonald, Crammer and Pereira (2005) over those tags that the training data have.
    projective : bool or "auto"
        Whether trees may not have crossing arcs. "auto": if at most one in twenty of the training
        trees has any, since trees without crossing arcs are then found more reliably. Training
        trees may have crossing arcs all the same; they are learned from as they are, but cannot be
        predicted.
    one_root : bool
        Whether exactly one word has the root as its head.
    labelled : bool or "auto"
        Whether arcs have relations. "auto": if the training data have them.
    loss : {"hamming", "zero_one"}
        "hamming" counts the words with a wrong head or relation; "zero_one" is 1 for every wrong
        tree.
    bits : int
        There are ``2 ** bits`` weights of arcs, which features share by their hashes; 3 to 30.
    label_bits : int
        There are ``2 ** label_bits`` rows of weights of relations; 3 to 24.

    Attributes
    ----------
    templates_ : ArcTemplates
        The templates in use, after ``prepare``.
    projective_ : bool
        Whether trees are projective.
    labels_ : tuple of str
        The relations, sorted; empty if arcs have none.
    """

    def __init__(
        self,
        templates: str | None = None,
        *,
        projective: bool | str = "auto",
        one_root: bool = True,
        labelled: bool | str = "auto",
        loss: str = "hamming",
        bits: int = 22,
        label_bits: int = 16,
    ) -> None:
        if loss not in _LOSSES:
            raise ValueError(f'loss must be "hamming" or "zero_one", got {quoted(loss)}')
        for name, value in (("projective", projective), ("labelled", labelled)):
            if not (isinstance(value, bool) or value == "auto"):
                raise ValueError(f'{name} must be True, False or "auto", got {quoted(value)}')
        if not isinstance(one_root, bool | np.bool_):
            raise ValueError(f"one_root must be True or False, got {quoted(one_root)}")
        for name, number, most in (("bits", bits, 30), ("label_bits", label_bits, 24)):
            if isinstance(number, bool) or not isinstance(number, int) or not 3 <= number <= most:
                raise ValueError(f"{name} must be a number from 3 to {most}, got {quoted(number)}")
        self.templates = templates
        self.projective = projective
        self.one_root = bool(one_root)
        self.labelled = labelled
        self.loss_name = loss
        self.bits = bits
        self.label_bits = label_bits
        if templates is not None:
            ArcTemplates(templates)  # what is wrong with them is better told at once

    # --- learning ---

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn from the training data which tags and relations there are.

        Parameters
        ----------
        X : sequence of sentences
            See ``maxmargin.features.arc_templates.sentence_columns``.
        Y : sequence
            The heads of each sentence, or pairs (heads, relations).
        """
        self._prepare(*paired_sentences(X, Y))

    def _prepare(self, X: list[Any], Y: list[Any]) -> tuple[list[dict[str, list[str]]], _Trees]:
        columns = _columns(X)
        trees = self._trees(columns, Y, labelled=self.labelled)
        self.labels_ = tuple(sorted(set(trees.names)))
        if not columns:
            raise ValueError("X is empty; expected at least one sentence")
        for i, sentence in enumerate(columns):
            if not sentence["form"]:
                raise ValueError(f"sentence {i} has no words; leave it out of the training data")
        has = {
            name: any(value != "_" for sentence in columns for value in sentence[name])
            for name in ("upos", "xpos")
        }
        text = self.templates
        if text is None:
            text = default_templates(coarse=has["upos"], fine=has["xpos"])
        self.templates_ = ArcTemplates(text)
        if self.labels_ and not self.templates_.has_labels:
            raise ValueError(
                "the templates have none of relations (label: ...), and the trees have relations; "
                "add some, or take labelled=False"
            )
        if isinstance(self.projective, bool):
            self.projective_ = self.projective
        else:
            crossing = sum(not is_projective(heads) for heads in trees.split())
            self.projective_ = crossing <= _FEW_CROSSING * len(columns)
        return columns, trees

    def _trees(
        self, columns: list[dict[str, list[str]]], Y: list[Any], labelled: Any = None
    ) -> _Trees:
        """Return given outputs as arrays, checked."""
        if labelled is None:
            labelled = bool(self.labels_)
        pairs = [heads_and_names(y) for y in Y]
        if labelled == "auto":
            labelled = any(relations is not None for _, relations in pairs)
        heads, names = [], []
        for i, (sentence, (given, relations)) in enumerate(zip(columns, pairs, strict=True)):
            n = len(sentence["form"])
            heads.append(checked_heads(given, n, f"sentence {i}", one_root=self.one_root))
            if not labelled:
                continue
            if relations is None or len(relations) != n:
                count = "none" if relations is None else str(len(relations))
                raise ValueError(
                    f"sentence {i}: found {count} of {n} relations; expected all of them "
                    "(labelled=False learns heads alone)"
                )
            for relation in relations:
                if not isinstance(relation, str):
                    raise ValueError(f"sentence {i}: the relation {quoted(relation)} is no string")
            names += relations
        return _Trees(heads, names)

    # --- native code ---

    def prepare_problem(
        self, X: Any, Y: Any, *, sample_weight: Any = None, dtype: Any = "float32", **_: Any
    ) -> PreparedProblem:
        """Learn what the data has and make the training problem.

        Parameters
        ----------
        X : sequence of sentences
            The inputs.
        Y : sequence
            Their heads, or pairs (heads, relations).
        sample_weight : array of shape (n_sentences,) or None
            A factor of C for each sentence.
        dtype : "float32" or "float64"
            Type of the weights.
        **_
            Nothing else is used.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        inputs, truths = paired_sentences(X, Y)
        columns, trees = self._prepare(inputs, truths)
        return PreparedProblem(*self._truths(columns, trees, sample_weight))

    def make_problem(self, X: Any, Y: Any, sample_weight: Any = None) -> _native.DependencyProblem:
        """Make a native problem of more sentences, with the relations that are known.

        Parameters
        ----------
        X, Y, sample_weight
            As for `prepare_problem`.
        """
        inputs, truths = paired_sentences(X, Y)
        columns = _columns(inputs)
        for i, sentence in enumerate(columns):
            if not sentence["form"]:
                raise ValueError(f"sentence {i} has no words; leave it out of the training data")
        return self._truths(columns, self._trees(columns, truths), sample_weight)[0]

    def _truths(
        self, columns: list[dict[str, list[str]]], trees: _Trees, sample_weight: Any
    ) -> tuple[_native.DependencyProblem, dict[str, Any]]:
        arguments = self._arguments(columns)
        arguments["heads"] = trees.heads
        if self.labels_:
            arguments["labels"] = self._codes(trees.names)
        if sample_weight is not None:
            arguments["example_weight"] = sequence_weights(sample_weight, len(columns), "sentence")
        return _native.DependencyProblem(**arguments), arguments

    def _arguments(self, columns: list[dict[str, list[str]]]) -> dict[str, Any]:
        lengths = [len(sentence["form"]) for sentence in columns]
        _require_table(max(lengths, default=0))
        return {
            "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "atoms": self.templates_.atoms(columns),
            **self.templates_.native(),
            "arc_bits": self.bits,
            "row_bits": self.label_bits,
            "n_labels": len(self.labels_),
            "projective": self.projective_,
            "one_root": self.one_root,
            "zero_one": self.loss_name == "zero_one",
        }

    def _codes(self, names: Sequence[str]) -> NDArray[np.int32]:
        known = {name: code for code, name in enumerate(self.labels_)}
        for name in names:
            if name not in known:
                raise ValueError(f"the relation {quoted(name)} is none of the training data's")
        return np.array([known[name] for name in names], dtype=np.int32)

    def _coded(
        self, X: Any, Y: Any
    ) -> tuple[_native.DependencyProblem, NDArray[np.int32], NDArray[np.int32]]:
        """Return a problem without truths, and given outputs as codes."""
        inputs, outputs = paired_sentences(X, Y)
        columns = _columns(inputs)
        trees = self._trees(columns, outputs)
        codes = self._codes(trees.names) if self.labels_ else np.zeros_like(trees.heads)
        return _native.DependencyProblem(**self._arguments(columns)), trees.heads, codes

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of weights."""
        width = -(-len(self.labels_) // 8) * 8  # rows are whole vectors
        return int(2**self.bits + 2**self.label_bits * width)

    def memory_needed(self, dtype: Any) -> tuple[str, int]:
        """Return name and size in bytes of the largest arrays of training.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        name : str
            What they are.
        size : int
            Bytes.
        """
        if dtype not in _DTYPES:
            raise ValueError(f'dtype must be "float32" or "float64", got {quoted(dtype)}')
        size = self.n_features * (2 * np.dtype(dtype).itemsize + 16)
        return f"the weights ({self.n_features}, {dtype}, with a copy and the certificate)", size

    def native_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights as native code needs them.

        Parameters
        ----------
        weights : array
            Weights of this structure.

        Returns
        -------
        array
            The same numbers, in one piece.

        Raises
        ------
        ValueError
            If there are too many or too few.
        """
        given = np.ascontiguousarray(weights)
        if given.shape != (self.n_features,) or given.dtype.name not in _DTYPES:
            raise ValueError(
                f"found weights of shape {given.shape} and type {given.dtype}; expected "
                f"{self.n_features} of type float32 or float64"
            )
        return given

    def relation_rows(self, weights: Any) -> NDArray[Any]:
        """Return the weights of relations: a column for each, and a row for each hash.

        Parameters
        ----------
        weights : array
            Weights of this structure.

        Returns
        -------
        array of shape (2 ** label_bits, n_relations)
            A view of them.
        """
        rows = self.native_weights(weights)[2**self.bits :].reshape(2**self.label_bits, -1)
        return rows[:, : len(self.labels_)]

    def predict(self, X: Any, weights: Any, n_jobs: int) -> list[Any]:
        """Return the best tree of every sentence.

        Parameters
        ----------
        X : sequence of sentences
            The inputs.
        weights : array
            The weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list
            Heads, or pairs (heads, relations) if arcs have relations.
        """
        columns = _columns(_listed(X, "X"))
        problem = _native.DependencyProblem(**self._arguments(columns))
        return self._outputs(problem.predict(weights, n_jobs), columns)

    def _outputs(self, found: tuple[Any, Any], columns: list[dict[str, list[str]]]) -> list[Any]:
        ends = np.cumsum([len(sentence["form"]) for sentence in columns])[:-1]
        heads = [np.array(part) for part in np.split(found[0], ends)] if columns else []
        if not self.labels_:
            return heads
        names = np.array(self.labels_, dtype=object)
        relations = [part.tolist() for part in np.split(names[found[1]], ends)] if columns else []
        return list(zip(heads, relations, strict=True))

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given trees.

        Parameters
        ----------
        X, Y : sequence
            Sentences, and a tree for each.
        weights : array
            The weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_sentences,)
            The scores.
        """
        problem, heads, codes = self._coded(X, Y)
        return np.asarray(problem.score(weights, heads, codes, n_jobs))

    # --- one sentence, in Python ---

    def joint_feature(self, x: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the features of a tree.

        Parameters
        ----------
        x : sentence
            The input.
        y : heads or (heads, relations)
            The tree.

        Returns
        -------
        indices, values : arrays
            The weights that the tree has, and how often it has each of them.
        """
        problem, heads, codes = self._coded([x], [y])
        indices, counts = np.unique(problem.features(heads, codes)[0], return_counts=True)
        return indices.astype(np.int64), counts.astype(np.float64)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the number of words with a wrong head or relation, or 0 or 1.

        Parameters
        ----------
        y, y_hat : heads or (heads, relations)
            The truth and an answer.

        Returns
        -------
        float
            The loss.
        """
        heads, names = heads_and_names(y)
        others, other_names = heads_and_names(y_hat)
        wrong = np.asarray(heads) != np.asarray(others)
        if names is not None and other_names is not None:
            pairs = zip(names, other_names, strict=True)
            wrong = wrong | np.array([a != b for a, b in pairs], dtype=bool)
        count = float(np.sum(wrong))
        return min(count, 1.0) if self.loss_name == "zero_one" else count

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best tree, or the oracle's answer.

        Parameters
        ----------
        x : sentence
            The input.
        w : array
            The weights.
        truth : heads, (heads, relations) or None
            The true tree; with it the loss is added to the score.

        Returns
        -------
        heads or (heads, relations)
            The tree.
        """
        columns = _columns([x])
        arguments = self._arguments(columns)
        w = np.ascontiguousarray(w, dtype=np.float64)
        if truth is None:
            return self._outputs(_native.DependencyProblem(**arguments).predict(w, 1), columns)[0]
        trees = self._trees(columns, [truth])
        arguments["heads"] = trees.heads
        if self.labels_:
            arguments["labels"] = self._codes(trees.names)
        problem = _native.DependencyProblem(**arguments)
        return self._outputs(problem.oracle(w), columns)[0]

    def outputs(self, x: Any) -> Iterable[Any]:
        """Give all trees of a sentence of at most six words.

        Parameters
        ----------
        x : sentence
            The input.

        Returns
        -------
        iterable
            All trees, with all relations.

        Raises
        ------
        NotImplementedError
            If the sentence is longer.
        """
        n = len(sentence_columns(x)["form"])
        if n > 6:
            raise NotImplementedError(f"the trees of {n} words are too many to be listed")
        trees = list_trees(n, projective=self.projective_, one_root=self.one_root)
        if not self.labels_:
            return (np.array(heads, dtype=np.int32) for heads in trees)
        return (
            (np.array(heads, dtype=np.int32), list(names))
            for heads in trees
            for names in itertools.product(self.labels_, repeat=n)
        )

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights.

        Returns
        -------
        meta : dict
            Templates, relations and options.
        arrays : dict
            Empty.
        """
        meta = {
            "templates": self.templates_.text,
            "labels": list(self.labels_),
            "projective": self.projective_,
            "one_root": self.one_root,
            "loss": self.loss_name,
            "bits": self.bits,
            "label_bits": self.label_bits,
        }
        return meta, {}

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        DependencyTree
            Ready to predict.

        Raises
        ------
        ValueError, KeyError, TypeError
            If they do not make sense.
        """
        labels = meta["labels"]
        if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
            raise ValueError("the relations are no list of strings")
        if len(set(labels)) != len(labels) or len(labels) >= 65535:
            raise ValueError("there are too many relations, or the same twice")
        for name in ("projective", "one_root"):
            if not isinstance(meta[name], bool):
                raise ValueError(f"{name} is neither true nor false")
        if not isinstance(meta["templates"], str) or len(meta["templates"]) > 10**6:
            raise ValueError("the templates are no text of at most a million characters")
        made = cls(
            meta["templates"],
            projective=meta["projective"],
            one_root=meta["one_root"],
            labelled=bool(labels),
            loss=meta["loss"],
            bits=meta["bits"],
            label_bits=meta["label_bits"],
        )
        made.templates_ = ArcTemplates(meta["templates"])
        if len(made.templates_.templates) > 4096:
            raise ValueError("there are more than 4096 templates")
        made.labels_ = tuple(labels)
        made.projective_ = meta["projective"]
        return made


class _Trees:
    """The trees of some sentences as arrays: the heads of all words, and their relations."""

    def __init__(self, heads: list[NDArray[np.int32]], names: list[str]) -> None:
        self.names = names
        self._parts = heads
        self.heads = np.concatenate([np.zeros(0, dtype=np.int32), *heads])

    def split(self) -> list[NDArray[np.int32]]:
        """Return the heads of each sentence."""
        return self._parts


def _require_table(longest: int) -> None:
    """Refuse a sentence whose arcs do not fit, before the system ends the process."""
    needed = 80 * (longest + 1) ** 2  # scores of arcs and the chart of the decoder
    if needed > 10_000_000:
        require_memory(
            f"the table of all arcs of a sentence of {longest} words",
            needed,
            advice="cut it into shorter sentences",
        )


def _listed(X: Any, name: str) -> list[Any]:
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise ValueError(
            f"{name} is an object of type {type(X).__name__}; expected a sequence of sentences"
        )
    return list(X)


def paired_sentences(X: Any, Y: Any) -> tuple[list[Any], list[Any]]:
    """Return sentences and their trees as lists of the same length."""
    inputs, outputs = _listed(X, "X"), _listed(Y, "y")
    if len(inputs) != len(outputs):
        raise ValueError(f"X has {len(inputs)} sentences and y has {len(outputs)} trees")
    return inputs, outputs


def _columns(X: list[Any]) -> list[dict[str, list[str]]]:
    return [sentence_columns(x, f"sentence {i}") for i, x in enumerate(X)]
