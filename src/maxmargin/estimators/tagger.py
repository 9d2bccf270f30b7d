"""`SequenceTagger`: a label for every token of a sequence.

Its parameters and its training are here. What it predicts, how sure it is, its weights and its
files are in ``chain_predictions.py``, ``confidence.py``, ``chain_attributes.py`` and
``tagger_files.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from typing import Any

from maxmargin.checks import is_real
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.argument_types import (
    Callbacks,
    EvalSet,
    ExampleWeights,
    KernelLike,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.chain_attributes import ChainAttributes
from maxmargin.estimators.class_weights import weights_of_tokens
from maxmargin.estimators.confidence import Confidences
from maxmargin.estimators.crfsuite_names import CrfsuiteNames
from maxmargin.estimators.priors import described_prior, prior_of
from maxmargin.estimators.reporting import Reports
from maxmargin.estimators.tagger_files import TaggerFiles
from maxmargin.estimators.threads import threads_of
from maxmargin.features.encoded import EncodedSequences
from maxmargin.features.select import encoder_of
from maxmargin.io.embeddings import embeddings_of
from maxmargin.io.objective import OBJECTIVE, PRIOR, NotStored
from maxmargin.io.text import PathOrFile
from maxmargin.regularizers import L2, make_regularizer
from maxmargin.structures.auto_weight import is_auto, refuse_auto
from maxmargin.structures.chain import Chain
from maxmargin.types import (
    Allowed,
    ClassWeight,
    ConstraintsLike,
    EmbeddingsLike,
    LabelLoss,
    Labels,
    LabelSequences,
    Sequences,
    StreamSource,
    TemplateLike,
    TokenWeights,
)

__all__ = ["SequenceTagger"]


class SequenceTagger(TaggerFiles, Confidences, Reports, ChainAttributes, CrfsuiteNames):
    """Tag sequences: words with parts of speech, letters of a word image, fields of a text, ...

    A structural SVM over a `Chain`: features of the tokens and transitions between neighbouring
    labels. Minimises ½‖w‖² + C Σ_i max_y [loss(y_i, y) + w·f(x_i, y) - w·f(x_i, y_i)].

    X is a list of sequences, all of one kind: lists of feature dicts (read as python-crfsuite
    reads them), lists of lists of strings, (T, d) numpy arrays, (T, d) SciPy sparse matrices, or
    tuples of a list or a sparse matrix and an array. y is a list of label sequences. With a
    ``template``, X is a `ColumnTable`, or a list of sequences of rows of strings; a sequence may
    be a data frame (pandas, polars, pyarrow), whose columns count by their place.

    Features of X that were not seen by ``fit`` are ignored in prediction; arrays and matrices must
    have as many columns as in ``fit``.

    Parameters
    ----------
    C : float or "auto"
        Weight of the loss; positive. "auto": larger than 0.1 where tokens have few features, up to
        1: 3 divided by the mean squared norm of the tokens' features (see ``docs/choosing.md``).
    C_scale : {"sum", "mean"}
        "sum": C multiplies the sum over the sequences. "mean": C/n takes the place of C.
    loss : "hamming", array of shape (L, L), or dict
        What an error costs: 1 for each wrong token; or ``loss[a][b]`` for the label b where a is
        the truth, in the order of ``classes_``; or ``{(truth, label): cost}``, where other errors
        cost 1.
    class_weight : dict, "balanced" or None
        Factors of the cost of a token by its true label; labels that a dict does not have count 1.
        "balanced": n / (L n_l) for a label that n_l of the n tokens have.
    labels : list or None
        All labels, in the order ``classes_`` shall have. None: the labels of y.
    allowed : None, "iob2", "iobes", callable, or array of shape (L, L)
        Which labels may follow each other in a prediction; see `Chain`.
    template : None, str, path, Template or callable
        How rows of columns become features: a built-in template ("words", "pos", "chunking",
        "ner"), a file in the syntax of CRF++ and Wapiti, a `Template`, or a function that takes a
        sequence and returns the features of its tokens, lists of strings or dicts. None: X has
        features already.
    min_count : int
        Features (of strings or of a template) that occur in fewer tokens are left out.
    hash_bits : int or None
        With a number, features of strings or of a template are not listed: each is one of
        2^hash_bits by its hash, which fixes the memory.
    embeddings : None, path, mapping of str to vectors, or Embeddings
        Vectors of words, a text file of word2vec or GloVe or a dict, as dense features beside
        those of the ``template``. See ``docs/embeddings.md``; `Embeddings` and
        `maxmargin.read_embeddings` have the choices.
    kernel : {"linear", "poly", "rbf"}, callable or Kernel
        "linear": each feature has weights. Else labels are scored through a kernel between tokens,
        (gamma x·x' + coef0)^degree, exp(-gamma ‖x - x'‖²), a function of two matrices, or a
        `Kernel`; then the regulariser is L2 and the solver "sdm" or "sap".
    degree : int
        Of the kernel "poly".
    gamma : "scale", "auto" or float
        Of the kernels "poly" and "rbf"; "scale" is 1 / (n_features · variance of the features),
        "auto" is 1 / n_features.
    coef0 : float
        Of the kernel "poly".
    cache_mb : float
        Megabytes in which training keeps rows of the kernel's matrix.
    prior : SequenceTagger, path or None
        A trained tagger, or its model file, to be adapted to new data: its weights take the place
        of zero in what is paid for the weights (see ``docs/priors.md``). Features and labels are
        matched by name; those that y and X do not have are in the new model too, with the weights
        they had. The template must be the same. With a prior, ``regularizer`` is None.
    prior_precision : float
        How strongly the weights that the prior has are held at its values: p in ½ p (w - w_prior)².
        Other weights are held at zero by a precision of 1. Infinity: they do not move.
    constraints : ConstraintSet, path or None
        Prior knowledge about labellings, or a TOML file with it; see ``docs/constraints.md``.
    decode : {"off", "soft", "hard"}
        Whether predictions ignore violated constraints, pay ``penalty`` times their weights, or
        have none. May be changed after ``fit``, as ``constraints`` may.
    penalty : float
        What a violation of weight 1 costs in soft decoding, in units of the scores.
    constraint_features : bool
        Whether the model has a weight for each constraint, learned with the others and used in
        every prediction.
    infeasible : {"error", "relax"}
        What happens to a sequence of which no labelling satisfies what is hard: an error that names
        the constraints, or the best of the labellings with the fewest violations.
    beam : int
        States a token that decoding keeps where constraints need states beside the labels.
    solver, regularizer, gap, max_passes, time_limit
        As in `StructuralSVM`.
    dtype, n_jobs, deterministic, warm_start, verbose, random_state, callbacks, checkpoint, resume
        As in `StructuralSVM`.

    Attributes
    ----------
    classes_ : array of shape (L,)
        The labels: in the order of ``labels`` if they were given, else sorted, or in the order of
        appearance if they cannot be sorted. All arrays over labels are in this order.
    coef_ : array of shape (n_features, L)
        Weights of the features, computed when asked for; names in `get_feature_names_out`. Not
        there with a kernel: ``weights_.dual_coef`` has the coefficients of the support tokens.
    transitions_ : array of shape (L, L)
        ``transitions_[a, b]``: weight of label a followed by label b.
    start_, end_ : array of shape (L,)
        Weights of the first and of the last label.
    n_features_in_ : int
        Number of columns of X; only if X has columns (arrays or sparse matrices).
    structure_ : Chain
        The prepared structure.
    prior_match_ : PriorMatch
        With a prior: how many features and labels it shares with the data.
    temperature_, calibration_
        What scores are divided by to make probabilities of them, and how it was found; there once
        `calibrate` was called.
    state_features_, transition_features_ : dict
        Weights that are not zero by feature and label, and by two neighbouring labels.
    C_ : float
        The C of the training: what "auto" stood for.
    best_pass_, eval_scores_
        With an ``eval_set``: the pass whose model was kept, and the scores of all that were tried.
    weights_, certificate_, history_, n_iter_, converged_, stop_reason_, n_examples_
        As in `StructuralSVM`.

    Examples
    --------
    >>> X = [[{"w": "dogs"}, {"w": "bark"}], [{"w": "cats"}, {"w": "sleep"}]]
    >>> y = [["N", "V"], ["N", "V"]]
    >>> tagger = SequenceTagger(C=1.0).fit(X, y)
    >>> tagger.predict([[{"w": "cats"}, {"w": "bark"}]]).tolist()
    [['N', 'V']]
    >>> tagger.score(X, y)
    1.0
    """

    structure_: Chain
    n_skipped_: int
    C_: float
    _trained_class_weight: Any

    def __init__(
        self,
        C: float | str = 0.1,
        *,
        C_scale: str = "sum",
        loss: LabelLoss = "hamming",
        class_weight: ClassWeight = None,
        labels: Labels = None,
        allowed: Allowed = None,
        template: TemplateLike = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        embeddings: EmbeddingsLike = None,
        kernel: KernelLike = "linear",
        degree: int = 2,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        cache_mb: float = 200,
        prior: SequenceTagger | PathLike | None = None,
        prior_precision: float = 1.0,
        constraints: ConstraintsLike = None,
        decode: str = "off",
        penalty: float = 1.0,
        constraint_features: bool = False,
        infeasible: str = "error",
        beam: int = 1000,
        solver: SolverLike = "sdm",
        regularizer: RegularizerLike = None,
        gap: float = 0.01,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        deterministic: bool = False,
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
        self.deterministic = deterministic
        self.loss = loss
        self.class_weight = class_weight
        self.labels = labels
        self.allowed = allowed
        self.template = template
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.embeddings = embeddings
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.cache_mb = cache_mb
        self.prior = prior
        self.prior_precision = prior_precision
        self.constraints = constraints
        self.decode = decode
        self.penalty = penalty
        self.constraint_features = constraint_features
        self.infeasible = infeasible
        self.beam = beam

    def _new_structure(self) -> Chain:
        encoder = encoder_of(
            self.template,
            min_count=self.min_count,
            hash_bits=self.hash_bits,
            threads=threads_of(self.n_jobs),
            embeddings=embeddings_of(self.embeddings),
        )
        rules = self._rules(features=self.constraint_features, reread=True)
        labels = self.labels
        if labels is None and rules is not None and rules.rules.labels:
            labels = list(rules.rules.labels)  # few labelled sequences may not have them all
        chain = Chain(
            loss=self.loss,
            labels=labels,
            allowed=self.allowed,
            encoder=encoder,
            kernel=self.kernel,
            degree=self.degree,
            gamma=self.gamma,
            coef0=self.coef0,
            cache_mb=self.cache_mb,
            prior=prior_of(self.prior, self.prior_precision),
            constraints=rules,
        )
        chain.finds_C = is_auto(self.C)
        return chain

    def _regularizer(self, structure: Any) -> Any:
        if structure.prior is None:
            return self.regularizer
        return structure.prior.regularizer(structure)

    def _loss_weight(self, structure: Any) -> Any:
        if not is_auto(self.C):
            if not is_real(self.C):
                raise TypeError(f'C must be a number or "auto", got {self.C!r}')
            return self.C
        return structure.automatic_C

    def _present_C(self) -> Any:  # noqa: N802
        # "auto" is what it was in fit: data that come later do not change it.
        found = getattr(getattr(self, "structure_", None), "automatic_C", None)
        if found is None:
            refuse_auto(self.C, "partial_fit without a fit before")
        return found if is_auto(self.C) else self.C

    def _keep(self, structure: Any, result: Any, problem: Any) -> None:
        super()._keep(structure, result, problem)
        self.__dict__.pop("prior_match_", None)
        if structure.prior is not None:
            self.prior_match_ = structure.prior.match
            structure.prior = None  # the model does not need the one that it came from

    def __sklearn_clone__(self) -> SequenceTagger:
        """Clone it with the same prior: a clone of the prior would not be trained."""
        bare = type(self)(**(self.get_params(deep=False) | {"prior": None}))
        for name, value in self.__dict__.items():  # what scikit-learn keeps of an estimator
            if name.startswith("_skl") or name in ("_metadata_request", "_sklearn_output_config"):
                bare.__dict__[name] = value
        clone: SequenceTagger = super(SequenceTagger, bare).__sklearn_clone__()
        clone.prior = self.prior
        return clone

    def fit(
        self,
        X: Sequences,
        y: LabelSequences | None = None,
        token_weight: TokenWeights = None,
        sample_weight: ExampleWeights = None,
        *,
        eval_set: EvalSet[Sequences, LabelSequences] = None,
    ) -> SequenceTagger:
        """Train.

        Parameters
        ----------
        X : list of sequences, or EncodedCorpus
            The inputs; an encoded corpus has its labels too, and takes no y.
        y : list of label sequences
            One label for each token.
        token_weight : list of arrays, optional
            A factor of the cost of each token, finite and not negative.
        sample_weight : array of shape (n_sequences,), optional
            A factor of C for each sequence, finite and not negative.
        eval_set : tuple (X, y), optional
            Other sequences, by which the best pass is chosen, as ``maxmargin train --valid`` does:
            by F1 of chunks, or by token accuracy where there are none.

        Returns
        -------
        SequenceTagger
            Itself.

        Raises
        ------
        ValueError, TypeError
            If X, y or a parameter is not as it must be; the message names the sequence and token.
        MemoryError
            If the weights need more memory than there is.
        KeyboardInterrupt
            After Ctrl-C, when the model so far is there.
        """
        if y is None and not isinstance(X, EncodedSequences):
            raise ValueError("SequenceTagger requires y to be passed, but the target y is None")
        self._check_stored({name: getattr(self, name) for name in OBJECTIVE})
        self._minimised()  # what does not go together is told before the data are read
        if self.class_weight is not None:
            token_weight = self._weighed(X, y, token_weight, sample_weight)
        self._fit(
            X, y, eval_set=eval_set, token_weight=token_weight, sample_weight=sample_weight
        )
        return self

    def _weighed(self, X: Any, y: Any, token_weight: Any, sample_weight: Any) -> Any:
        """Return the weights of the tokens with the factors of their labels."""
        if isinstance(X, EncodedSequences):
            raise NotCompatibleError(
                "class_weight needs labels in memory, and these data are an encoded file; use "
                "class_weight=None, or fit(X, y)"
            )
        return weights_of_tokens(
            self.class_weight,
            X,
            y,
            labels=self.labels,
            token_weight=token_weight,
            sample_weight=sample_weight,
        )

    def _minimised(self) -> dict[str, Any]:
        """Return the parameters that say what is minimised."""
        params = {name: getattr(self, name) for name in OBJECTIVE}
        if self.prior is not None:
            if not isinstance(make_regularizer(self.regularizer), L2):
                raise NotCompatibleError(
                    f"prior is a regulariser of its own, and does not go with "
                    f"{self.regularizer!r}; use regularizer=None, or no prior"
                )
            params["regularizer"] = NotStored(described_prior(self.prior, self.prior_precision))
        if is_auto(self.C):  # a file has the number
            params["C"] = getattr(self, "C_", self.C)
        return params

    def _after_fit(self) -> None:
        for earlier in ("_file_meta", "_objective_unknown", "temperature_", "calibration_"):
            self.__dict__.pop(earlier, None)
        C = self._loss_weight(self.structure_)
        if C is not None:  # data that came later do not change what "auto" came to
            self.C_ = float(C)
        self._trained = self._minimised()
        self._trained_class_weight = self.class_weight

    def _after_load(self) -> None:
        if is_real(self.C) and not getattr(self, "_objective_unknown", False):
            self.C_ = float(self.C)

    def partial_fit(
        self,
        X: Sequences,
        y: LabelSequences,
        token_weight: TokenWeights = None,
        sample_weight: ExampleWeights = None,
        *,
        ids: Iterable[Hashable] | None = None,
    ) -> SequenceTagger:
        """Learn from more sequences, without forgetting those that were seen before.

        New features and new labels are learned; see ``docs/online.md``.

        Parameters
        ----------
        X, y, token_weight, sample_weight
            As for `fit`.
        ids : iterable, optional
            A name for each sequence, by which `forget` knows it.

        Returns
        -------
        SequenceTagger
            Itself.
        """
        if isinstance(X, EncodedSequences):
            raise NotCompatibleError(
                "partial_fit takes sequences and their labels, and these data are an encoded file; "
                "train with fit, or give the sequences themselves"
            )
        self._check_stored({name: getattr(self, name) for name in OBJECTIVE})
        if isinstance(self.class_weight, str):
            raise NotCompatibleError(
                f"class_weight={self.class_weight!r} needs the labels of all sequences at once; "
                "partial_fit takes a dict of factors, or None"
            )
        if self.class_weight is not None and y is not None:
            token_weight = self._weighed(X, y, token_weight, sample_weight)
        weights = {"token_weight": token_weight, "sample_weight": sample_weight}
        self._learn_more(X, y, ids, weights)
        SequenceTagger._after_fit(self)
        return self

    def _check_stored(self, params: dict[str, Any]) -> None:
        """Refuse to train something else than the model that was loaded."""
        for name, value in params.items():
            if isinstance(value, NotStored):
                if value.name.startswith(PRIOR):
                    raise NotCompatibleError(
                        f"the model was trained with {value.name[:200]}, which its file does not "
                        "hold; give it, or another one, with set_params(prior=..., "
                        "regularizer=None) before fit"
                    )
                raise NotCompatibleError(
                    f"{name} is not known: the model was loaded from a file, which cannot hold "
                    f"{value.name[:200]!r}; give it with set_params({name}=...) before fit"
                )
        if getattr(self, "_objective_unknown", False):
            warnings.warn(
                "the model was loaded from a file that does not say with which regulariser and "
                "formulation it was trained (files of earlier versions do not); fit uses "
                f"solver={self.solver!r}, regularizer={self.regularizer!r}, loss={self.loss!r}",
                UserWarning,
                stacklevel=3,
            )

    def fit_stream(
        self,
        source: StreamSource,
        *,
        memory: int | str | None = None,
        spill: PathLike | None = None,
        on_error: str = "raise",
        **reading: Any,
    ) -> SequenceTagger:
        """Train on data that need not fit in memory.

        The data are encoded once, in chunks, to a temporary file (unless they are encoded already),
        and trained from there, with no more in memory than the budget says. Certificates, gaps and
        limits mean what they mean for ``fit``. See ``docs/streaming.md``.

        Parameters
        ----------
        source : EncodedCorpus, path, list of paths, pyarrow Dataset, iterable, or callable
            An encoded file; column files; Parquet or Arrow files; or pairs (x, y), from an iterable
            or from a function that returns one.
        memory : int, str or None
            Budget in bytes, or a text such as "500M": what the process may have in memory beside
            the weights. None: 1 GB.
        spill : path or None
            Directory for temporary files: the encoded data, and planes beyond the budget. None: the
            system's own.
        on_error : {"raise", "skip"}
            Whether a bad sequence ends everything, or is left out and counted (``n_skipped_``).
        **reading
            How files are read, as for ``maxmargin.streams.open_source``: ``file_format``,
            ``label_column``, ``columns``, ``sequence``, ``separator``, ``comment``,
            ``max_inflated``.

        Returns
        -------
        SequenceTagger
            Itself.

        Raises
        ------
        ValueError, TypeError
            If something is wrong with a sequence; the message names file and line, or the example.
        MemoryError
            If the budget is too small; the message says how much is needed.
        OSError
            If a disk is full; no temporary file stays behind.
        """
        from maxmargin.estimators.streaming import streamed_corpus

        corpus, n_skipped = streamed_corpus(
            self, source, memory=memory, spill=spill, on_error=on_error, reading=reading
        )
        self.fit(corpus)
        self.n_skipped_ = n_skipped
        return self

    # --- files -----------------------------------------------------------------------------------

    @classmethod
    def from_columns(
        cls,
        path: PathOrFile,
        *,
        template: TemplateLike = "words",
        label_column: int = -1,
        separator: str = "auto",
        comment: str | None = None,
        max_inflated: int | None = None,
        **params: Any,
    ) -> SequenceTagger:
        """Train on a column file; the twin of ``maxmargin train``.

        Parameters
        ----------
        path : path or binary file
            One token a line, columns between tabs or spaces, a blank line between sequences; gzip
            is recognised.
        template : str, path, Template or callable
            How columns become features.
        label_column : int
            The column of the labels, counted from 0; -1 is the last.
        separator, comment, max_inflated
            As for `maxmargin.read_columns`.
        **params
            Further parameters of the tagger.

        Returns
        -------
        SequenceTagger
            Fitted. With the same parameters and ``random_state=0`` it is the model that the
            command line writes.
        """
        from maxmargin.io.columns import read_columns

        table = read_columns(
            path, separator=separator, comment=comment, max_inflated=max_inflated
        )
        X, labels = table.labelled(label_column)
        return cls(template=template, **params).fit(X, labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.target_tags.two_d_labels = True
        return tags
