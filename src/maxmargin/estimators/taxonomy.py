"""`TaxonomySVM`: classes that are nodes of a tree or lattice, from matrices or texts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.accuracy import AUTO
from maxmargin.estimators.argument_types import (
    Callbacks,
    ExampleWeights,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.classes import MulticlassSVM
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.structures.class_labels import example_weights
from maxmargin.structures.taxonomy import Taxonomy
from maxmargin.structures.taxonomy_scores import taxonomy_figures
from maxmargin.types import (
    ClassWeight,
    LabelLoss,
    Labels,
    Matrix,
    NodeWeights,
    TaxonomyLike,
    TextFeatures,
)

__all__ = ["TaxonomySVM"]


class TaxonomySVM(MulticlassSVM):
    """Classification with a taxonomy (Tsochantaridis et al., ICML 2004, section 5.2).

    Minimises ½‖W‖² + C Σ_i s_i max_y [loss(y_i, y) + x_i·W λ(y) - x_i·W λ(y_i)], where λ(y) marks
    class y and its ancestors, W has a column for each node, and s_i is the weight of an example.

    Parameters
    ----------
    taxonomy : sequence of label paths, mapping, directed graph or None
        The taxonomy; None: it is read off the labels, which are paths (``"rec/sport/hockey"``) or
        plain labels, all of them then children of one root. See
        `maxmargin.structures.taxonomy.Taxonomy` for the forms that it may have.
    C : float, default=1.0
        Weight of the errors; positive.
    C_scale : {"sum", "mean"}
        As in `StructuralSVM`.
    loss : "tree", "tree_share", "0/1", array of shape (K, K), or dict
        What an error costs: the height of the first common ancestor of truth and answer; the same
        divided by the height of the root; 1; or as in `MulticlassSVM`. With a solver that rescales
        slacks, ``SDM(rescale="slack")``, it scales the slacks.
    classes : "leaves", "all" or list
        Which nodes can be predicted, with or without training examples.
    node_weight : "depth", "inverse_depth", "branch", dict, array or None
        Weights v_z of the nodes; λ_z is their square root.
    rivals : {"all", "seen"}
        Whether a truth is trained against all classes or those with training examples.
    separator : str or None, default="/"
        What stands between the names of a label path; None: labels are no paths.
    unique_names : bool, default=False
        Whether it is an error if a name stands under two parents in label paths.
    add_root : bool, default=False
        Whether a map or graph with several roots gets a common one.
    fit_intercept, intercept_scaling, class_weight, features
        As in `MulticlassSVM`; the intercept is a feature like all others, so that every node has
        one.
    gap : float or "auto"
        The relative duality gap that ends training. "auto": 0.01; on small problems (examples ×
        columns × classes at most 131,072), where that takes milliseconds, as near to the optimum as
        8-byte numbers allow.
    dtype : {"auto", "float32", "float64"}
        Type of the weights. "auto": float64 on small problems, else float32.
    solver, regularizer, max_passes, time_limit, n_jobs, warm_start, verbose, random_state, \
callbacks, checkpoint, resume
        As in `StructuralSVM`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The classes, in the order of all arrays over classes.
    nodes_ : list
        The nodes that have weights, in the order of the columns of ``node_coef_``.
    graph_ : TaxonomyGraph
        The whole taxonomy.
    n_features_in_, feature_names_in_
        As in `MulticlassSVM`.
    structure_, weights_, certificate_, history_, converged_, stop_reason_, n_iter_, n_examples_
        As in `StructuralSVM`.

    Examples
    --------
    >>> from maxmargin import TaxonomySVM
    >>> texts = ["the puck and the goalie", "a fast engine", "pills and doctors"]
    >>> labels = ["rec/sport/hockey", "rec/autos", "sci/med"]
    >>> model = TaxonomySVM(features="words", C=10.0, random_state=0).fit(texts, labels)
    >>> model.predict(["a goalie"]).tolist()
    ['rec/sport/hockey']
    >>> model.predict_path(["a goalie"])
    [('rec', 'rec/sport', 'rec/sport/hockey')]
    >>> model.tree_loss(["a goalie"], ["rec/autos"])
    2.0
    """

    kind: ClassVar[str] = "taxonomy"
    structure_type: ClassVar[Any] = Taxonomy

    structure_: Taxonomy

    #: The classes follow from ``classes``; see `MulticlassSVM`.
    labels = None

    def __init__(
        self,
        taxonomy: TaxonomyLike = None,
        *,
        C: float = 1.0,
        C_scale: str = "sum",
        loss: LabelLoss = "tree",
        classes: Labels = "leaves",
        node_weight: NodeWeights = None,
        rivals: str = "all",
        separator: str | None = "/",
        unique_names: bool = False,
        add_root: bool = False,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        features: TextFeatures = None,
        solver: SolverLike = "sdm",
        regularizer: RegularizerLike = None,
        gap: float | str = AUTO,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = AUTO,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
        callbacks: Callbacks = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            C,
            C_scale=C_scale,
            loss=loss,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            class_weight=class_weight,
            features=features,
            solver=solver,
            regularizer=regularizer,
            gap=gap,
            max_passes=max_passes,
            time_limit=time_limit,
            dtype=dtype,
            n_jobs=n_jobs,
            warm_start=warm_start,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.taxonomy = taxonomy
        self.classes = classes
        self.node_weight = node_weight
        self.rivals = rivals
        self.separator = separator
        self.unique_names = unique_names
        self.add_root = add_root

    def _new_structure(self) -> Taxonomy:
        return Taxonomy(
            self.taxonomy,
            classes=self.classes,
            loss=self.loss,
            node_weight=self.node_weight,
            separator=self.separator,
            unique_names=self.unique_names,
            add_root=self.add_root,
            rivals=self.rivals,
            bias=self._bias(),
            words=None if self.features is None else BagOfWords.of(self.features),
        )

    def _fix_classes(self, structure: Any, classes: list[Any]) -> None:
        structure.classes = classes

    # --- predictions ---

    @property
    def nodes_(self) -> list[Hashable]:
        """The nodes that have weights."""
        check_is_fitted(self, "weights_")
        return self.structure_.nodes_

    @property
    def graph_(self) -> Any:
        """The whole taxonomy."""
        check_is_fitted(self, "weights_")
        return self.structure_.graph_

    def predict_path(self, X: Matrix) -> list[tuple[Hashable, ...]]:
        """Return the nodes from below the root down to the best class of every input.

        Parameters
        ----------
        X : matrix or texts, as `fit` took them
            The inputs.

        Returns
        -------
        list of tuples
            The names of the nodes. In a lattice, the way through the first parent of each node.
        """
        X = self._checked(X)
        codes = self.structure_.predict_codes(X, self.weights_, self._threads())
        nodes = self.structure_.known.nodes
        paths = {c: self.graph_.path(nodes[c]) for c in set(codes.tolist())}
        return [paths[c] for c in codes.tolist()]

    def tree_loss(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ExampleWeights = None,
        *,
        normalize: bool = False,
    ) -> float:
        """Return the mean height of the first common ancestor of truth and prediction.

        Parameters
        ----------
        X : matrix or texts, as `fit` took them
            The inputs.
        y : sequence
            Their true labels: nodes of the taxonomy.
        sample_weight : array of shape (n_examples,), optional
            Weights of the mean.
        normalize : bool, default=False
            Whether to divide by the height of the root, which makes it a share between 0 and 1.

        Returns
        -------
        float
            The mean; 0 is perfect.
        """
        predicted = self.predict(X)
        weights = example_weights(sample_weight, len(predicted))
        figures = taxonomy_figures(self.graph_, y, predicted.tolist(), weights)
        return figures.tree_loss if normalize else figures.tree_loss * figures.height

    # --- the model ---

    @property
    def node_coef_(self) -> NDArray[Any]:
        """Weights of the features, a row for each of ``nodes_``; the biases are left out."""
        check_is_fitted(self, "weights_")
        return self.structure_.unpack(self.weights_)[: self.structure_.n_columns_].T

    def _by_class(self) -> NDArray[Any]:
        check_is_fitted(self, "weights_")
        rows = self.structure_.class_weights(self.weights_).T
        return rows[1:] - rows[:1] if len(rows) == 2 else rows

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds; ``maxmargin info`` shows it.

        Parameters
        ----------
        top : int
            How many of the largest weights of each node to list, for at most 20 nodes.

        Returns
        -------
        dict
            Sizes, classes, the nodes with their heights, and with texts the strongest words of
            each node.
        """
        found = super().describe(0)
        structure, graph = self.structure_, self.graph_
        found["n_nodes"] = len(graph.names)
        found["n_node_columns"] = len(structure.nodes_)
        found["height"] = int(graph.heights[0])
        found["tree"] = graph.is_tree
        if structure.words is not None and top > 0:
            names = structure.words.names()
            W = self.node_coef_
            found["strongest"] = {
                str(node): [
                    [names[j], float(row[j])] for j in np.argsort(-row, kind="stable")[:top]
                ]
                for node, row in zip(structure.nodes_[:20], W, strict=False)
            }
        return found
