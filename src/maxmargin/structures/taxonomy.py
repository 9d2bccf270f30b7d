"""`Taxonomy`: classes that are nodes of a tree or lattice (svmstruct, section 5.2).

The features are f(x, y) = x ⊗ λ(y): every node of the taxonomy has a weight for each feature of x,
and a class is scored by its own weights plus those of its ancestors. What a class has in common
with others is learned from the examples of all of them, and a class without any example is still
scored by its ancestors.

The weights are a matrix with a row for each feature of x (the last is the bias, if there is one)
and a column for each node, in the order of ``nodes_``; native code pads the rows. λ and the losses
are in ``taxonomy_classes.py`` and ``taxonomy_costs.py``, the forms in which a taxonomy is given in
``taxonomy_graph.py``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.checks import check_choice
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.features.example_matrix import ExampleMatrix, example_matrix
from maxmargin.printable import quoted
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.class_labels import encode_classes, example_weights
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.native import PreparedProblem
from maxmargin.structures.taxonomy_classes import (
    ClassNodes,
    Lambdas,
    choose_classes,
    class_names,
    node_weights,
    some_rows,
)
from maxmargin.structures.taxonomy_costs import costs_of
from maxmargin.structures.taxonomy_graph import TaxonomyGraph, graph_of_labels, read_taxonomy
from maxmargin.structures.taxonomy_state import restored_classes, stored_classes
from maxmargin.types import LabelLoss, Labels, NodeWeights, TaxonomyLike

__all__ = ["Taxonomy"]


class Taxonomy(Multiclass):
    """Classes that are nodes of a taxonomy.

    X is a matrix with a row for each example, dense or sparse, or a list of texts if ``words`` is
    given. Y is a list of labels.

    Parameters
    ----------
    taxonomy : sequence of label paths, mapping, directed graph or None
        The taxonomy: label paths (``["rec/autos", "rec/sport/hockey"]``), the parent or parents of
        each node (``{"hockey": "sport", "sport": "rec"}``), or a graph of networkx with edges from
        parents to children. None: it is read off the labels of the training examples; labels that
        are no texts, or have no separator, are then children of the root.
    classes : "leaves", "all" or sequence
        Which nodes can be predicted, with or without training examples: the leaves, every node
        but the root, or these.
    loss : "tree", "tree_share", "0/1", array or dict
        "tree": the height of the first common ancestor of truth and answer, as in the paper
        (`TaxonomyGraph.tree_loss`); "tree_share": the same divided by the height of the root;
        "0/1": 1 for every error. An array has the cost of each answer (column) for each truth
        (row), in the order of ``classes_``; a dict has it by the pair (truth, answer), and 1 for
        pairs that it does not have.
    node_weight : "depth", "inverse_depth", "branch", mapping, array or None
        v_z of each node; see ``maxmargin.structures.taxonomy_classes``. None: 1.
    separator : str or None
        What stands between the names of a label path; None: labels are no paths.
    unique_names : bool
        Whether it is an error if a name stands under two parents in label paths.
    add_root : bool
        Whether a map or graph with several roots gets a common one.
    rivals : "all" or "seen"
        Against which classes a truth is trained. "all": every class, as in the paper; the own
        weights of a class without examples are then learned from where it is wrong. "seen": those
        with training examples; the others have no weights of their own, only their ancestors'.
    bias : float
        Value of one more feature that all examples have; 0 for none.
    words : BagOfWords or None
        How texts become numbers; a fresh copy of it learns the words of X.

    Attributes
    ----------
    classes_ : list
        The labels that can be predicted, sorted where they can be.
    nodes_ : list
        The names of the nodes that have weights, in the order of the columns of the weights.
    graph_ : TaxonomyGraph
        The whole taxonomy.
    n_columns_ : int
        Number of features of x, without the bias.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.structures.taxonomy import Taxonomy
    >>> Y = ["rec/autos", "rec/sport/hockey", "sci/med"]
    >>> taxonomy = Taxonomy()
    >>> taxonomy.prepare(np.eye(3), Y)
    >>> taxonomy.nodes_
    ['rec', 'sci', 'rec/autos', 'rec/sport', 'sci/med', 'rec/sport/hockey']
    >>> [taxonomy.loss("rec/autos", y) for y in Y]
    [0.0, 2.0, 3.0]
    """

    def __init__(
        self,
        taxonomy: TaxonomyLike | TaxonomyGraph = None,
        *,
        classes: Labels = "leaves",
        loss: LabelLoss = "tree",
        node_weight: NodeWeights = None,
        separator: str | None = "/",
        unique_names: bool = False,
        add_root: bool = False,
        rivals: str = "all",
        bias: float = 0.0,
        words: BagOfWords | None = None,
    ) -> None:
        super().__init__(loss, bias=bias, words=words)
        self.taxonomy = taxonomy
        self.classes = classes
        self.node_weight = node_weight
        self.separator = separator
        self.unique_names = unique_names
        self.add_root = add_root
        self.rivals = rivals
        self.nodes_: list[Hashable] = []
        self._known: ClassNodes | None = None
        # Classes of the training labels, ascending: the rivals of "seen".
        self._seen: NDArray[np.int32] = np.empty(0, np.int32)

    def __repr__(self) -> str:
        return f"Taxonomy(loss={self.loss_spec!r}, bias={self.bias!r}, words={self.words!r})"

    # --- what is known of the classes ---

    def _learn(self, X: Any, Y: Any) -> tuple[Any, NDArray[np.int32]]:
        """Learn the classes and the features; nothing of it is kept if anything is wrong."""
        if not (isinstance(self.bias, int | float) and 0 <= self.bias <= _native.MAX_VALUE):
            raise ValueError(f"bias is {self.bias!r}; expected a number from 0 to 1e12")
        check_choice("rivals", self.rivals, ("all", "seen"))
        if self.separator is not None and (
            not isinstance(self.separator, str) or not self.separator
        ):
            raise ValueError(f"separator is {quoted(self.separator)}; expected a text or None")
        seen_codes, seen = encode_classes(Y)
        words = None if self.words is None else self.words.fresh()
        matrix = example_matrix(X) if words is None else words.fit_transform(X)
        if matrix.shape[0] != len(seen_codes):
            raise ValueError(
                f"X has {matrix.shape[0]} examples and y has {len(seen_codes)} labels; expected "
                "as many"
            )
        # The first example of each label, for messages.
        first = {seen[c]: i for i, c in reversed(list(enumerate(seen_codes.tolist())))}
        graph = self._graph(sorted(first, key=first.__getitem__))
        names = choose_classes(graph, self.classes, first)
        with contextlib.suppress(TypeError):  # labels of several types: in the order of the nodes
            names = sorted(names)  # type: ignore[type-var]
        if len(names) < 2:
            raise ValueError(f"there is one class only ({quoted(names[0])}); expected at least two")
        nodes = tuple(graph.index[name] for name in names)
        known = ClassNodes(graph, nodes, node_weights(graph, self.node_weight))
        cost = costs_of(self.loss_spec, known, names)
        _ = known.lambdas  # which may fail
        if words is not None:
            self.words = words
        self._known = known
        self._set(names, int(matrix.shape[1]), cost)
        place = np.array([self._codes[label] for label in seen], dtype=np.int32)
        self._seen = np.unique(place)
        return matrix, place[seen_codes]

    def _graph(self, labels: list[Hashable]) -> TaxonomyGraph:
        if self.taxonomy is None:
            extra = () if isinstance(self.classes, str) else tuple(class_names(self.classes))
            return graph_of_labels(
                (*labels, *extra), self.separator, unique_names=self.unique_names
            )
        return read_taxonomy(
            self.taxonomy,
            separator=self.separator,
            unique_names=self.unique_names,
            add_root=self.add_root,
        )

    def _set(self, classes: list[Any], n_columns: int, cost: Any) -> None:
        super()._set(classes, n_columns, cost)
        self.nodes_ = [self.graph_.names[z] for z in self.known.column_nodes]
        self.n_features = self.n_rows * len(self.nodes_)

    @property
    def known(self) -> ClassNodes:
        """The nodes of the classes."""
        self._require_prepared()
        assert self._known is not None
        return self._known

    @property
    def graph_(self) -> TaxonomyGraph:
        """The whole taxonomy."""
        return self.known.graph

    # --- training and prediction, in native code ---

    def _training_problem(
        self, matrix: Any, codes: NDArray[np.int32], sample_weight: Any, dtype: Any
    ) -> PreparedProblem:
        kind = weight_dtype(dtype).name
        cost, lambdas = self._cost, self.known.lambdas
        if self.rivals == "seen":
            seen = self._seen
            codes = np.searchsorted(seen, codes).astype(np.int32)
            lambdas = some_rows(lambdas, seen)
            cost = None if cost is None else np.ascontiguousarray(cost[np.ix_(seen, seen)])
        parts = {
            **self._arguments(ExampleMatrix(matrix, self.bias, kind), codes, lambdas),
            "example_weight": example_weights(sample_weight, len(codes)),
            "cost": cost,
        }
        problem = _native.TaxonomyProblem(**parts)
        return PreparedProblem(problem, {**parts, "classes": self.classes_})

    def _arguments(
        self, rows: ExampleMatrix, codes: NDArray[np.int32], lambdas: Lambdas
    ) -> dict[str, Any]:
        begins, columns, values = lambdas
        own = {"begins": begins, "columns": columns, "lambdas": values, "labels": codes}
        return {"n_columns": len(self.nodes_), **own, **rows.arrays}

    def _native_problem(self, rows: ExampleMatrix, codes: NDArray[np.int32]) -> Any:
        return _native.TaxonomyProblem(**self._arguments(rows, codes, self.known.lambdas))

    # --- weights ---

    def memory_needed(self, dtype: Any) -> tuple[str, int]:
        """Return name and size in bytes of the largest arrays of training.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.
        """
        name, n_bytes = super().memory_needed(dtype)
        return name.replace(f"{len(self.classes_)} classes", f"{len(self.nodes_)} nodes"), n_bytes

    def _width(self, kind: np.dtype[Any]) -> int:
        return int(_native.padded_labels(len(self.nodes_), kind.itemsize == 4))

    def unpack(self, weights: Any) -> NDArray[Any]:
        """Return the weights as a matrix.

        Parameters
        ----------
        weights : array
            The native weights.

        Returns
        -------
        array of shape (n_rows, n_nodes)
            A view: a row for each feature, the bias last, and a column for each of ``nodes_``.
        """
        self._require_prepared()
        matrix: NDArray[Any] = np.asarray(weights).reshape(self.n_rows, -1)
        return matrix[:, : len(self.nodes_)]

    def class_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights by which each class is scored: the sums over its ancestors.

        Parameters
        ----------
        weights : array
            The native weights.

        Returns
        -------
        array of shape (n_rows, n_classes)
            A row for each feature, the bias last.
        """
        W = self.unpack(weights)
        begins, columns, values = self.known.lambdas
        own = W[:, columns] * values.astype(W.dtype)
        sums: NDArray[Any] = np.add.reduceat(own, begins[:-1], axis=1)
        return sums

    # --- the protocol: one example, in Python ---

    def _lambda(self, y: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        begins, columns, values = self.known.lambdas
        if y not in self._codes:
            raise ValueError(f"{quoted(y)} is none of the {len(self._codes)} classes")
        a, b = begins[self._codes[y] : self._codes[y] + 2]
        return columns[a:b].astype(np.intp), values[a:b]

    def joint_feature(self, x: Any, y: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return x ⊗ λ(y): feature j at column c has the place ``j * n_nodes + c``."""
        columns, values = self._lambda(y)
        row = self._row(x)
        places = np.flatnonzero(row)
        indices = places[:, None] * len(self.nodes_) + columns[None, :]
        return indices.ravel(), np.outer(row[places], values).ravel()

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best class; with a truth, the oracle's answer."""
        nodes = self._row(x) @ np.asarray(w).reshape(self.n_rows, len(self.nodes_))
        begins, columns, values = self.known.lambdas
        scores = np.add.reduceat(nodes[columns] * values, begins[:-1])
        if truth is not None:
            scores = scores + [self.loss(truth, label) for label in self.classes_]
        return self.classes_[int(np.argmax(scores))]

    # --- files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that prediction needs besides the weights."""
        meta, arrays = super().state()
        del meta["classes"]
        own_meta, own_arrays = stored_classes(self.known)
        return meta | own_meta, arrays | own_arrays

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Taxonomy:
        """Make a prepared structure of a state that was read from a file.

        Parameters
        ----------
        meta, arrays : dict
            What `state` gave, or anything else: nothing of it is trusted.

        Returns
        -------
        Taxonomy
            Ready to predict.
        """
        known = restored_classes(meta, arrays)
        names = [known.graph.names[z] for z in known.nodes]
        # Everything but the nodes is as flat classes have it.
        flat = Multiclass.restore({**meta, "classes": list(range(len(names)))}, arrays)
        made = cls(
            known.graph,
            classes=names,
            loss=flat.loss_spec,
            node_weight=known.weight,
            bias=flat.bias,
            words=flat.words,
        )
        made._known = known
        _ = known.lambdas
        made.classes_ = names
        made._set(names, flat.n_columns_, flat._cost)
        return made
