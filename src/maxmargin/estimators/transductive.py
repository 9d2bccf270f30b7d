"""`TransductiveTagger`: a tagger that learns from labels, unlabelled text and constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.checks import check_choice, check_number
from maxmargin.errors import ConstraintError, NotCompatibleError
from maxmargin.estimators.argument_types import ExampleWeights, PathLike, RandomState, SolverLike
from maxmargin.estimators.self_training import driven_weights
from maxmargin.estimators.structural import sum_weight
from maxmargin.estimators.tagger import SequenceTagger
from maxmargin.estimators.threads import threads_of
from maxmargin.features import check_lengths
from maxmargin.features.columns import ColumnTable
from maxmargin.io.objective import OBJECTIVE
from maxmargin.printable import quoted
from maxmargin.solvers import make_solver, solve
from maxmargin.solvers.driver import require_learned
from maxmargin.solvers.outer import OuterHistory
from maxmargin.solvers.transductive import GammaRecord, TransductiveSVM
from maxmargin.structures.auto_weight import refuse_auto
from maxmargin.structures.chain import Chain
from maxmargin.structures.transduction import TransductiveData
from maxmargin.types import (
    Allowed,
    ConstraintsLike,
    LabelLoss,
    Labels,
    LabelSequences,
    Sequences,
    TemplateLike,
    TokenWeights,
)

__all__ = ["TransductiveTagger", "joined", "prepare_transductive"]


#: What stands in the label column of unlabelled sequences.
NO_LABEL = "?"
#: Of the start by constraint-driven learning: what an imputed sequence weighs beside a labelled
#: one, and the share of the supervised model.
DRIVEN_SHARE, DRIVEN_MIXING = 0.2, 0.3


def joined(X: Any, more: Any) -> Any:
    """Return two lists of sequences, or two tables, as one.

    Parameters
    ----------
    X, more : list of sequences or ColumnTable
        Sequences of one kind. Where X is a table with a label column, ``more`` may have it or not.

    Returns
    -------
    list or ColumnTable
        The sequences of X first.
    """
    if not isinstance(X, ColumnTable):
        return list(X) + (more.rows() if isinstance(more, ColumnTable) else list(more))
    rows = more.rows() if isinstance(more, ColumnTable) else [list(x) for x in more]
    width, column = X.n_columns, X.label_column
    if column is not None and rows and len(rows[0][0]) == width - 1:
        rows = [[[*t[:column], NO_LABEL, *t[column:]] for t in x] for x in rows]
    if rows and len(rows[0][0]) != width:
        source = more.source if isinstance(more, ColumnTable) else "X_unlabelled"
        raise ValueError(
            f"{source}: found {len(rows[0][0])} columns; expected {width}, as the labelled data "
            "have, or one less without the labels"
        )
    table = ColumnTable.from_rows(X.rows() + rows, X.source)
    return table if column is None else table.labelled(column)[0]


def prepare_transductive(
    chain: Chain,
    X: Any,
    y: Any,
    X_unlabelled: Any,
    *,
    dtype: str = "float32",
    sample_weight: ExampleWeights = None,
    token_weight: Any = None,
) -> TransductiveData:
    """Learn the labels of y and the features of all sequences, and encode them.

    Parameters
    ----------
    chain : Chain
        With constraints; it is prepared here. Words that only unlabelled sequences have get
        features too.
    X, y : list of sequences, list of label sequences
        The labelled ones.
    X_unlabelled : list of sequences
        The others, of the same kind.
    dtype, sample_weight, token_weight
        As for `Chain.prepare_problem`.

    Returns
    -------
    TransductiveData
        Its reference is yet to be set: every label is the first one.
    """
    if X_unlabelled is None or len(X_unlabelled) == 0:
        raise ValueError(
            "X_unlabelled is empty; expected at least one unlabelled sequence (without unlabelled "
            "data, train a SequenceTagger)"
        )
    rules = chain.constraints
    if rules is None or len(rules.rules) == 0:
        raise ConstraintError(
            "there are no constraints; expected a ConstraintSet with at least one, which is what "
            "unlabelled sequences are learned from"
        )
    check_lengths(X, y)
    if chain.labels is None:  # few labelled sequences may lack labels that the rules declare
        present = dict.fromkeys(label for labels in _sequences(y) for label in labels)
        chain.labels = list(dict.fromkeys([*present, *rules.rules.labels]))
    _, codes = chain.learn(X, y, dtype)
    if chain.kernel != "linear":
        raise NotCompatibleError('transductive training goes with kernel="linear" only')
    rules.rules.check_labels(chain.labels_)
    if rules.features:
        for constraint in rules.rules:
            if getattr(constraint, "form", "satisfied") == "count":
                raise NotCompatibleError(
                    f"constraint {quoted(constraint.title)} counts, and constraint features are "
                    'binary; use form="satisfied"'
                )
    every = joined(X, X_unlabelled)
    encoder = chain.encoder.fresh()
    encoder.double = dtype == "float64"
    batch = encoder.fit_transform(every)
    chain.encoder = encoder
    n = len(X)
    labelled = batch.take(np.arange(n))
    unlabelled = batch.take(np.arange(n, len(every)))
    bound = rules.rules.bind(X_unlabelled, chain.labels_)
    if bound.dimension == 0:
        raise ConstraintError(
            "no constraint is about anything in X_unlabelled: none of their words occurs there"
        )
    own = rules.rules.bind(X, chain.labels_) if rules.features else None
    reference = np.zeros(unlabelled.n_tokens, np.int32)
    return TransductiveData(
        chain,
        labelled,
        codes,
        own,
        unlabelled,
        reference,
        bound,
        rules.features,
        sample_weight,
        token_weight,
    )


def _sequences(y: Any) -> Any:
    """Return label sequences, whatever holds them."""
    return y.sequences() if hasattr(y, "sequences") else y


class TransductiveTagger(SequenceTagger):
    """Tag sequences with few labels: learn from unlabelled sequences and prior knowledge.

    The transductive structural SVM of Yu (AISTATS 2012): beside the loss on labelled sequences,
    violated constraints on unlabelled ones are paid for. ``docs/transductive.md`` has an example
    from nothing to result.

    Parameters
    ----------
    C : float
        Weight of the loss of a labelled sequence, as in `SequenceTagger`.
    C2 : float
        Weight of the unlabelled sequences together.
    mu : float
        The paper's μ: what a violation weighs is μ/4.
    gamma_scale : {"sum", "mean"}
        Whether Γ sums over the unlabelled sequences or averages.
    schedule : {"engine", "paper"}
        How the convex steps are solved: see `TransductiveSVM`.
    begin : {"driven", "supervised"}
        Where the concave-convex procedure begins, which it may do anywhere. "supervised": at the
        model of the labelled sequences, as in the paper. "driven": from there by constraint-driven
        self-training (`constraint_driven`), with μ as the penalty and a fifth of C.
    margins : {"labels", "all"}
        "all": objective (13). "labels": constraints that need states beside the labels (one
        segment, order, counts) guide the imputation only, which makes training with them much
        faster; see `TransductiveSVM`.
    label_margin : float
        Margin of unlabelled sequences against labels other than those of the start, as a share of
        the loss; 0: margins of violations only, as in the paper. See `TransductiveSVM`.
    anneal : int
        Stages with smaller μ before the last.
    tol, max_outer
        When the concave-convex procedure ends. From the start by self-training few iterations are
        as good as many, or better.
    constraints, decode, penalty, constraint_features, infeasible, beam
        As in `SequenceTagger`. Constraints may be given to ``fit`` as well. ``beam`` is that of
        training too, where thousands of inferences are made.
    C_scale, loss, labels, allowed, template, min_count, hash_bits
        As in `SequenceTagger`.
    solver, gap, max_passes, time_limit, dtype, n_jobs, verbose, random_state, checkpoint, resume
        As in `SequenceTagger`; ``gap`` is that of the convex steps.

    Attributes
    ----------
    outer_history_ : OuterHistory
        One record for each outer iteration.
    gammas_ : list of GammaRecord
        Objective (13), Γ(v), the Γ of the predictions and Lemma 2's bound, at each of them.
    objective_ : float
        Objective (13) of the model.
    v_ : array
        The auxiliary vectors.
    weights_, certificate_, history_, ...
        As in `SequenceTagger`; the certificate is that of the last convex step.

    Examples
    --------
    >>> from maxmargin.constraints import ConstraintSet, First, Words
    >>> X, y = [["Doe", ".", "Cats", "1999"]], [["author", "author", "title", "date"]]
    >>> new = [["Roe", ".", "Dogs", "2001"], ["Poe", ".", "Mice", "and", "men", "2002"]]
    >>> rules = ConstraintSet([First("author"), Words(pattern="[0-9]{4}", labels="date")])
    >>> tagger = TransductiveTagger(template=lambda x: [[w] for w in x], constraints=rules)
    >>> tagger.fit(X, y, new).predict(new)[0][3]
    'date'
    """

    outer_history_: OuterHistory
    gammas_: list[GammaRecord]
    objective_: float
    v_: NDArray[np.float64]

    def __init__(
        self,
        C: float = 1.0,
        *,
        C2: float = 300.0,
        mu: float = 4.0,
        gamma_scale: str = "sum",
        schedule: str = "engine",
        begin: str = "driven",
        margins: str = "labels",
        label_margin: float = 0.1,
        anneal: int = 0,
        tol: float = 1e-3,
        max_outer: int = 2,
        constraints: ConstraintsLike = None,
        decode: str = "off",
        penalty: float = 1.0,
        constraint_features: bool = False,
        infeasible: str = "error",
        beam: int = 64,
        C_scale: str = "sum",
        loss: LabelLoss = "hamming",
        labels: Labels = None,
        allowed: Allowed = None,
        template: TemplateLike = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        solver: SolverLike = "sdm",
        gap: float = 0.1,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            C=C,
            C_scale=C_scale,
            loss=loss,
            labels=labels,
            allowed=allowed,
            template=template,
            min_count=min_count,
            hash_bits=hash_bits,
            constraints=constraints,
            decode=decode,
            penalty=penalty,
            constraint_features=constraint_features,
            infeasible=infeasible,
            beam=beam,
            solver=solver,
            gap=gap,
            max_passes=max_passes,
            time_limit=time_limit,
            dtype=dtype,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.C2 = C2
        self.mu = mu
        self.gamma_scale = gamma_scale
        self.schedule = schedule
        self.begin = begin
        self.margins = margins
        self.label_margin = label_margin
        self.anneal = anneal
        self.tol = tol
        self.max_outer = max_outer

    def __sklearn_clone__(self) -> TransductiveTagger:
        """Clone it as any estimator: there is no prior."""
        clone: TransductiveTagger = super(SequenceTagger, self).__sklearn_clone__()
        return clone

    def fit(  # type: ignore[override]
        self,
        X: Sequences,
        y: LabelSequences,
        X_unlabelled: Sequences | None = None,
        *,
        constraints: ConstraintsLike = None,
        token_weight: TokenWeights = None,
        sample_weight: ExampleWeights = None,
    ) -> TransductiveTagger:
        """Train: a supervised model first, the start, and from it the transductive model.

        Parameters
        ----------
        X : list of sequences
            The labelled sequences.
        y : list of label sequences
            Their labels.
        X_unlabelled : list of sequences
            Further sequences of the same kind; those to be labelled may be among them.
        constraints : ConstraintSet, path or None
            Sets the parameter of that name.
        token_weight, sample_weight
            As for `SequenceTagger.fit`.

        Returns
        -------
        TransductiveTagger
            Itself.
        """
        if y is None:
            raise ValueError("TransductiveTagger requires y to be passed, but it is None")
        if constraints is not None:
            self.constraints = constraints
        if self.regularizer is not None or self.prior is not None:
            raise NotCompatibleError("transductive training goes with the regulariser L2 only")
        refuse_auto(self.C, "transductive training")
        check_choice("begin", self.begin, ("driven", "supervised"))
        threads, chain = threads_of(self.n_jobs), self._new_structure()
        data = prepare_transductive(
            chain,
            X,
            y,
            X_unlabelled,
            dtype=self.dtype,
            sample_weight=sample_weight,
            token_weight=token_weight,
        )
        svm = self._svm(data, threads)
        supervised = data.labelled_problem(svm.C1 / data.n_labelled, self.beam)
        assert supervised is not None
        first = solve(
            supervised,
            make_solver(self.solver),
            C=1.0,
            dtype=self.dtype,
            gap=min(self.gap, 0.01),
            n_jobs=threads,
            random_state=self.random_state,
            warn=False,
        )
        require_learned(first)
        own = chain.own_weights(first.weights)
        groups = None if chain.constraints is None else chain.constraints.weights
        if self.begin == "driven":
            own, groups = driven_weights(
                data,
                own,
                groups,
                C=DRIVEN_SHARE * svm.C1 / data.n_labelled,
                penalty=self.mu,
                mixing=DRIVEN_MIXING,
                beam=self.beam,
                n_jobs=threads,
                random_state=self.random_state,
            )
        trained = svm.train(data, own, groups)
        self._keep(chain, trained.result, trained.transduction.problem)
        self.weights_ = trained.chain_weights
        if chain.constraints is not None and chain.constraints.features:
            chain.constraints.weights = trained.group_weights
        self.outer_history_, self.gammas_ = trained.result.outer, trained.gammas
        self.objective_, self.v_ = trained.objective, trained.v
        self.n_examples_ = data.n_labelled
        for of_a_file in ("_file_meta", "_objective_unknown"):
            self.__dict__.pop(of_a_file, None)
        self._trained = {name: getattr(self, name) for name in OBJECTIVE}
        self.C_ = float(self.C)
        return self

    def _svm(self, data: TransductiveData, threads: int) -> TransductiveSVM:
        C = check_number("C", self.C, above=0.0)
        return TransductiveSVM(
            C1=sum_weight(C, self.C_scale, data.n_labelled) * data.n_labelled,
            C2=self.C2,
            mu=self.mu,
            scale=self.gamma_scale,
            schedule=self.schedule,
            anneal=self.anneal,
            solver=self.solver,
            gap=self.gap,
            tol=self.tol,
            max_outer=self.max_outer,
            max_passes=self.max_passes,
            time_limit=self.time_limit,
            dtype=self.dtype,
            n_jobs=threads,
            width=self.beam,
            margins=self.margins,
            label_margin=self.label_margin,
            verbose=self.verbose,
            random_state=self.random_state,
            checkpoint=self.checkpoint,
            resume=self.resume,
        )
