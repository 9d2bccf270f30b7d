"""`Parser`: parse trees by a weighted context-free grammar, trained with a large margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.checks import check_number
from maxmargin.estimators.argument_types import (
    Callbacks,
    EvalSet,
    ExampleWeights,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.empty import object_array
from maxmargin.estimators.native import NativeEstimator
from maxmargin.estimators.prior_mean import PriorMean
from maxmargin.printable import printable, quoted
from maxmargin.regularizers import make_regularizer
from maxmargin.scores.trees import COLLINS, Counting, TreeReport, evaluate_trees
from maxmargin.structures.treebank import Treebank
from maxmargin.trees import Tree
from maxmargin.types import Sentences, Trees

__all__ = ["Parser"]


class Parser(NativeEstimator[Sentences | None, Trees]):
    """A constituency parser: the best tree of a weighted context-free grammar.

    The grammar is read off the training trees; its rules, and features of its nodes, have weights
    that are trained together: ½‖w‖² + C Σ_i max_y [loss(y_i, y) + w·f(x_i, y) - w·f(x_i, y_i)].

    Parameters
    ----------
    loss : {"brackets", "f1", "zero_one"}
        "brackets": the number of wrong brackets plus the number of missed ones, for sentences of
        any length. "f1": 1 - F₁ of the brackets, exact, for sentences up to about 20 words.
        "zero_one": 1 for every wrong tree.
    vertical : int
        Order of vertical Markovisation: 1 leaves labels as they are, 2 adds the parent's label.
    horizontal : int or None
        How many siblings a rule with more than two children remembers. None: all of them, so that
        rules are those of the training trees, and some sentences have no parse.
    node_features : str, sequence of str or None
        "edges": words and tags at and around the ends of a node's span and its length, each with
        the label of the node. Or templates as in `Grammar`. None: rules alone, as in a PCFG.
    lexicon : {"tags", "words"}
        "tags": the parser is given parts of speech. "words": it finds them.
    min_count : int
        Words that occur fewer times than this in training are read as classes (capitals, digits,
        hyphen, ending), and so are unknown words.
    min_feature_count : int
        How often a node feature must occur with a label in training.
    prior : "pcfg" or None
        "pcfg": weights are kept near the log-probabilities of the rules, counted in the training
        trees, and not near zero: ½‖w - m‖² takes the place of ½‖w‖². For small treebanks.
    prior_scale : float
        What the log-probabilities are multiplied by.
    solver, C, C_scale, regularizer, gap, max_passes, time_limit, dtype, n_jobs, warm_start, \
verbose, random_state, callbacks, checkpoint, resume
        As in `StructuralSVM`.

    Attributes
    ----------
    structure_ : Treebank
        What was learned of the data; its ``grammar_`` has the rules.
    labels_ : list of str
        The labels of nodes, with those above them if ``vertical`` is above 1.
    weights_, certificate_, history_, n_iter_, converged_, stop_reason_, n_examples_
        As in `StructuralSVM`.

    Examples
    --------
    >>> from maxmargin import Parser
    >>> trees = [
    ...     "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))",
    ...     "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (PRP it))))",
    ... ]
    >>> parser = Parser(random_state=0).fit(None, trees)
    >>> print(parser.predict([[("the", "DT"), ("cow", "NN"), ("sleeps", "VBZ")]])[0])
    (S (NP (DT the) (NN cow)) (VP (VBZ sleeps)))
    """

    kind: ClassVar[str] = "trees"
    structure_type: ClassVar[Any] = Treebank

    def __init__(
        self,
        *,
        loss: str = "brackets",
        vertical: int = 2,
        horizontal: int | None = 1,
        node_features: str | Sequence[str] | None = "edges",
        lexicon: str = "tags",
        min_count: int = 2,
        min_feature_count: int = 1,
        prior: str | None = None,
        prior_scale: float = 1.0,
        solver: SolverLike = "sdm",
        C: float = 0.1,
        C_scale: str = "sum",
        regularizer: RegularizerLike = None,
        gap: float = 0.01,
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
        self.loss = loss
        self.vertical = vertical
        self.horizontal = horizontal
        self.node_features = node_features
        self.lexicon = lexicon
        self.min_count = min_count
        self.min_feature_count = min_feature_count
        self.prior = prior
        self.prior_scale = prior_scale

    def _new_structure(self) -> Treebank:
        if self.prior not in (None, "pcfg"):
            raise ValueError(f'prior is {quoted(self.prior)}; expected "pcfg" or None')
        return Treebank(
            self.loss,
            lexicon=self.lexicon,
            vertical=self.vertical,
            horizontal=self.horizontal,
            node_features=self.node_features,
            min_count=self.min_count,
            min_feature_count=self.min_feature_count,
            count=self.prior is not None,
        )

    def _regularizer(self, structure: Any) -> Any:
        if self.prior is None:
            return self.regularizer
        scale = check_number("prior_scale", self.prior_scale, above=0.0)
        mean = structure.native_weights(scale * structure.log_probabilities())
        return PriorMean(make_regularizer(self.regularizer), mean)

    def fit(
        self,
        X: Sentences | None,
        y: Trees,
        sample_weight: ExampleWeights = None,
        *,
        eval_set: EvalSet[Sentences | None, Trees] = None,
    ) -> Parser:
        """Train.

        Parameters
        ----------
        X : sequence of sentences, or None
            Each a list of (word, tag), a list of words (with ``lexicon="words"``), or a tree, of
            which the leaves are taken. None: the leaves of ``y``.
        y : sequence of trees
            `Tree`, texts in brackets, or nested tuples ``(label, [children])``. A node alone below
            one of the same label is merged with it.
        sample_weight : array of shape (n_sentences,), optional
            A factor of C for each sentence, finite and not negative.
        eval_set : tuple (X, y), optional
            Other sentences: the model of the pass with the best F₁ on them is kept.

        Returns
        -------
        Parser
            Itself.

        Raises
        ------
        ValueError
            If something is no tree, or the leaves of a tree are not the sentence; the message names
            the sentence and the word.
        """
        super().fit(X, y, sample_weight, eval_set=eval_set)
        return self

    def _after_partial(self) -> None:
        if self._online is not None:
            self._after_load()

    def _after_load(self) -> None:
        self.labels_ = list(self.structure_.grammar_.labels_)

    def predict(self, X: Sentences | None, *, fallback: str = "flat") -> NDArray[np.object_]:
        """Return the best tree of every sentence.

        Parameters
        ----------
        X : sequence of sentences
            As for `fit`.
        fallback : {"flat", "none"}
            What the answer is for a sentence that the grammar has no tree for: a `FlatTree`, with
            all words below the most frequent root, or None.

        Returns
        -------
        array of objects, of shape (n_sentences,)
            A `Tree` for each, with the words, and with ``lexicon="tags"`` the tags, that were
            given. Those that are a `FlatTree` were not found by parsing.
        """
        if fallback not in ("flat", "none"):
            raise ValueError(f'fallback is {quoted(fallback)}; expected "flat" or "none"')
        threads = self._threads()
        structure: Treebank = self.structure_
        if isinstance(X, list | tuple | np.ndarray) and len(X) == 0:
            return object_array([])
        sentences = structure.sentences(X)
        found: list[Tree | None] = structure.predict(sentences, self.weights_, threads)
        if fallback == "none":
            return object_array(found)
        return object_array(
            structure.reading_.flat(pairs) if tree is None else tree
            for tree, pairs in zip(found, sentences, strict=True)
        )

    def evaluate(self, X: Sentences | None, y: Trees, counting: Counting = COLLINS) -> TreeReport:
        """Parse sentences and compare the trees with the true ones.

        Parameters
        ----------
        X : sequence of sentences, or None
            As for `fit`.
        y : sequence of trees
            The true trees.
        counting : Counting
            What counts as a bracket: ``maxmargin.scores.trees.COLLINS`` (as ``evalb`` counts) or
            ``PLAIN``.

        Returns
        -------
        TreeReport
            Precision, recall, F₁, exact matches.
        """
        self._threads()
        trees = self.structure_.trees(y)
        return evaluate_trees(trees, list(self.predict(trees if X is None else X)), counting)

    def score(self, X: Sentences | None, y: Trees) -> float:
        """Return the F₁ of the brackets, as ``evalb`` counts it.

        Parameters
        ----------
        X : sequence of sentences, or None
            As for `fit`.
        y : sequence of trees
            The true trees.

        Returns
        -------
        float
            A share between 0 and 1.
        """
        return self.evaluate(X, y).f1

    def text_lines(self) -> Iterator[str]:
        """Give a line ``name TAB weight`` for every weight that is not zero.

        Returns
        -------
        iterator of str
            Rules ``NP -> DT NN``, roots ``root S`` and attributes ``NP first=DT``, in the order of
            the weights.
        """
        check_is_fitted(self, "weights_")
        yield "# rule, root or attribute\tweight"
        names = self.structure_.grammar_.feature_names()
        for k in np.flatnonzero(self.weights_):
            name = printable(names[k])
            shown = f"\\{name}" if name.startswith("#") else name  # which is no comment
            yield f"{shown}\t{float(self.weights_[k])!r}"

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds.

        Parameters
        ----------
        top : int
            How many of the largest and of the smallest weights to list.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        found = super().describe(top)
        grammar = self.structure_.grammar_
        found |= {
            "lexicon": self.structure_.lexicon,
            "vertical": self.structure_.vertical,
            "n_rules": len(grammar.rules_),
            "n_labels": len(grammar.labels_),
            "n_terminals": len(grammar.terminals_),
        }
        if top > 0:
            weights = np.asarray(self.weights_, dtype=np.float64)
            order = np.argsort(-weights, kind="stable")
            names = grammar.feature_names()
            found["largest"] = {names[k]: float(weights[k]) for k in order[:top]}
            found["smallest"] = {names[k]: float(weights[k]) for k in order[::-1][:top]}
        return found
