"""`DependencyParser`: dependency trees, trained with a large margin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.argument_types import (
    Callbacks,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.native import NativeEstimator
from maxmargin.printable import printable
from maxmargin.scores.dependencies import attachment_scores
from maxmargin.structures.dependency import DependencyTree, paired_sentences
from maxmargin.structures.dependency_trees import checked_heads, heads_and_names
from maxmargin.types import Examples

__all__ = ["DependencyParser"]


class DependencyParser(NativeEstimator[Examples, Examples]):
    """A first-order dependency parser, projective or not, with relations or without.

    Minimises ½‖w‖² + C Σ_i max_y [loss(y_i, y) + w·f(x_i, y) - w·f(x_i, y_i)] over trees y, where
    f is a sum over the arcs of a tree.

    Parameters
    ----------
    templates : str or None
        Features of arcs, one template on each line; see ``maxmargin.features.arc_templates`` for
        the language. None: the set of McDonald, Crammer and Pereira (2005).
    projective : bool or "auto"
        Whether trees may not have crossing arcs. "auto": if at most one in twenty trees of the
        training data has any. Trees with crossing arcs are then learned from as they are (their
        margins count), but only trees without any are predicted.
    one_root : bool
        Whether exactly one word of a sentence has the root (0) as its head.
    labelled : bool or "auto"
        Whether to learn and predict relations. "auto": if ``y`` has them.
    loss : {"hamming", "zero_one"}
        "hamming" counts the words with a wrong head or relation; "zero_one" is 1 for every wrong
        tree.
    bits : int
        There are ``2 ** bits`` weights of arcs, which features share by their hashes.
    label_bits : int
        There are ``2 ** label_bits`` rows of weights, each with a weight for each relation.
    solver, C, C_scale, regularizer, gap, max_passes, time_limit, dtype, n_jobs
        As for `StructuralSVM`. C multiplies the sum of the losses of the sentences. Accuracy is no
        longer better below a gap of some percent.
    warm_start, verbose, random_state, callbacks, checkpoint, resume
        As for `StructuralSVM`.

    Attributes
    ----------
    structure_ : DependencyTree
        With the templates, relations and kind of trees in use.
    weights_, certificate_, history_, converged_, stop_reason_, n_iter_, n_examples_
        As for `StructuralSVM`.

    Examples
    --------
    >>> from maxmargin import DependencyParser
    >>> X = [[("the", "DT"), ("dog", "NN"), ("barks", "VBZ")], [("cats", "NNS"), ("sleep", "VBP")]]
    >>> y = [([2, 3, 0], ["det", "nsubj", "root"]), ([2, 0], ["nsubj", "root"])]
    >>> parser = DependencyParser(C=1.0, bits=12, label_bits=8).fit(X, y)
    >>> heads, relations = parser.predict([[("the", "DT"), ("cat", "NN"), ("sleeps", "VBZ")]])[0]
    >>> heads.tolist(), relations
    ([2, 3, 0], ['det', 'nsubj', 'root'])
    """

    kind: ClassVar[str] = "dependencies"
    structure_type: ClassVar[Any] = DependencyTree

    def __init__(
        self,
        *,
        templates: str | None = None,
        projective: bool | str = "auto",
        one_root: bool = True,
        labelled: bool | str = "auto",
        loss: str = "hamming",
        bits: int = 22,
        label_bits: int = 16,
        solver: SolverLike = "sdm",
        C: float = 0.03,
        C_scale: str = "sum",
        regularizer: RegularizerLike = None,
        gap: float = 0.05,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
        callbacks: Callbacks = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            solver=solver,
            C=C,
            C_scale=C_scale,
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
        self.templates = templates
        self.projective = projective
        self.one_root = one_root
        self.labelled = labelled
        self.loss = loss
        self.bits = bits
        self.label_bits = label_bits

    def _new_structure(self) -> DependencyTree:
        return DependencyTree(
            self.templates,
            projective=self.projective,
            one_root=self.one_root,
            labelled=self.labelled,
            loss=self.loss,
            bits=self.bits,
            label_bits=self.label_bits,
        )

    def score(self, X: Examples, y: Examples) -> float:
        """Return the share of words with the right head, and the right relation if there are any.

        Parameters
        ----------
        X : sequence of sentences
            The inputs.
        y : sequence
            Their true trees.

        Returns
        -------
        float
            UAS; LAS if the model has relations (of which the part before a colon counts).
        """
        check_is_fitted(self, "weights_")
        X, y = paired_sentences(X, y)
        predicted = self.predict(X)
        truths = [heads_and_names(tree) for tree in y]
        labelled = bool(self.structure_.labels_)
        gold = [
            checked_heads(heads, len(found[0] if labelled else found), where, one_root=False)
            for i, (found, (heads, _)) in enumerate(zip(predicted, truths, strict=True))
            for where in [f"sentence {i}"]
        ]
        if not labelled:
            return float(attachment_scores(gold, predicted)["uas"])
        las = attachment_scores(
            gold,
            [heads for heads, _ in predicted],
            [_given(names, i) for i, (_, names) in enumerate(truths)],
            [names for _, names in predicted],
        )["las"]
        assert las is not None
        return float(las)

    def text_lines(self) -> Iterator[str]:
        """Give a line for every weight that is not zero.

        Returns
        -------
        iterator of str
            ``arc TAB hash:NUMBER TAB weight``, and then ``relation TAB hash:NUMBER TAB RELATION
            TAB weight``: features have no names, only the numbers to which they are hashed.
        """
        check_is_fitted(self, "weights_")
        structure: DependencyTree = self.structure_
        yield "# arc or relation\tfeature\trelation\tweight"
        n_arcs = 2**structure.bits
        width = (structure.n_features - n_arcs) // 2**structure.label_bits
        labels = [printable(label) for label in structure.labels_]
        labels += [""] * (width - len(labels))  # places that only a foreign file can fill
        for k in np.flatnonzero(self.weights_).tolist():
            weight = repr(float(self.weights_[k]))
            if k < n_arcs:
                yield f"arc\thash:{k}\t{weight}"
            else:
                row, label = divmod(k - n_arcs, width)
                yield f"relation\thash:{row}\t{labels[label]}\t{weight}"

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds.

        Parameters
        ----------
        top : int
            How many relations to list with their weights. (Features of arcs have no names: they
            are known by their hashes only.)

        Returns
        -------
        dict
            Sizes, relations and options; in ``relation_weights`` the relations with the largest
            norms of weights, each with that norm and its largest and smallest weight.
        """
        found = super().describe(top)
        structure: DependencyTree = self.structure_
        found |= {
            "n_templates": len(structure.templates_.templates),
            "n_relations": len(structure.labels_),
            "relations": list(structure.labels_),
            "projective": structure.projective_,
            "one_root": structure.one_root,
        }
        if top > 0 and structure.labels_:
            rows = structure.relation_rows(self.weights_)
            norms = np.sqrt(np.einsum("rl,rl->l", rows, rows, dtype=np.float64))
            found["relation_weights"] = {
                structure.labels_[k]: {
                    "norm": float(norms[k]),
                    "largest": float(rows[:, k].max()),
                    "smallest": float(rows[:, k].min()),
                }
                for k in np.argsort(-norms, kind="stable")[:top]
            }
        return found


def _given(names: list[Any] | None, i: int) -> list[Any]:
    if names is None:
        raise ValueError(f"the true tree of sentence {i} has no relations, but the model has some")
    return names
