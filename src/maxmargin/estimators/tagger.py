"""`SequenceTagger`: a label for every token of a sequence."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.constraints import ConstraintSet, Inference
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.class_weights import weights_of_tokens
from maxmargin.estimators.confidence import Confidences
from maxmargin.estimators.crfsuite_names import CrfsuiteNames
from maxmargin.estimators.empty import labelled_without_empty, predicted, without_empty
from maxmargin.estimators.priors import described_prior, prior_of
from maxmargin.estimators.structural import StructuralEstimator
from maxmargin.estimators.suggesting import Suggestion, suggest
from maxmargin.estimators.threads import threads_of
from maxmargin.features import check_lengths
from maxmargin.features.encoded import EncodedSequences
from maxmargin.features.select import encoder_of
from maxmargin.io.embeddings import embeddings_of
from maxmargin.io.objective import OBJECTIVE, PRIOR, NotStored
from maxmargin.io.tagger_file.confidence import confidence_meta, restore_confidence
from maxmargin.regularizers import L2, make_regularizer
from maxmargin.solvers.history import History
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_constraints import ChainConstraints
from maxmargin.structures.chain_layout import ChainWeights
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.kernels import KINDS, KernelWeights

__all__ = ["SequenceTagger"]

#: Parameters that a model file keeps beside the others: with the constraints themselves.
CONSTRAINT_PARAMS = (
    *("constraints", "decode", "penalty", "constraint_features", "infeasible", "beam"),
)


class SequenceTagger(Confidences, CrfsuiteNames, StructuralEstimator):
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
    C : float
        Weight of the loss; positive.
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
    dtype, n_jobs, warm_start, verbose, random_state, callbacks, checkpoint, resume
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
    _file_meta: dict[str, Any]
    _trained: dict[str, Any]
    _trained_class_weight: Any
    _objective_unknown: bool

    def __init__(
        self,
        C: float = 0.1,
        *,
        C_scale: str = "sum",
        loss: Any = "hamming",
        class_weight: Any = None,
        labels: Any = None,
        allowed: Any = None,
        template: Any = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        embeddings: Any = None,
        kernel: Any = "linear",
        degree: int = 2,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        cache_mb: float = 200,
        prior: Any = None,
        prior_precision: float = 1.0,
        constraints: Any = None,
        decode: str = "off",
        penalty: float = 1.0,
        constraint_features: bool = False,
        infeasible: str = "error",
        beam: int = 1000,
        solver: Any = "sdm",
        regularizer: Any = None,
        gap: float = 0.01,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        callbacks: Any = None,
        checkpoint: Any = None,
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
        return Chain(
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

    def _rules(
        self, features: bool, weights: Any = None, *, reread: bool = False
    ) -> ChainConstraints | None:
        """Return the constraints as the parameters have them; a file is read once a fit."""
        if self.constraints is None:
            if self.decode != "off" or features:
                raise ValueError(
                    f"decode={self.decode!r} with constraint_features={features} needs "
                    "constraints; expected a ConstraintSet"
                )
            return None
        rules, source = self.constraints, None
        if isinstance(rules, str | os.PathLike):
            source = os.fspath(rules)
            known = getattr(getattr(self, "structure_", None), "constraints", None)
            if known is not None and known.source == source and not reread:
                rules = known.rules
            else:
                rules = ConstraintSet.from_toml(rules)
        return ChainConstraints(
            rules, self.decode, self.penalty, features, self.infeasible, self.beam, weights, source
        )

    def _decoder(self) -> Chain:
        """Return the chain, decoding as the parameters say now."""
        check_is_fitted(self, "weights_")
        chain = self.structure_
        trained = chain.constraints
        features = trained is not None and trained.features
        rules = self._rules(features, None if trained is None else trained.weights)
        if features and (rules is None or trained is None or rules.rules != trained.rules):
            raise NotCompatibleError(
                "the model has weights of the constraints that it was trained with; others, or "
                "none, need another fit"
            )
        if rules is not None:
            rules.rules.check_labels(chain.labels_)
        chain.constraints = rules
        return chain

    def _regularizer(self, structure: Any) -> Any:
        if structure.prior is None:
            return self.regularizer
        return structure.prior.regularizer(structure)

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
        X: Any,
        y: Any = None,
        token_weight: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
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
        return params

    def _after_fit(self) -> None:
        for earlier in ("_file_meta", "_objective_unknown", "temperature_", "calibration_"):
            self.__dict__.pop(earlier, None)
        self._trained = self._minimised()
        self._trained_class_weight = self.class_weight

    def partial_fit(
        self,
        X: Any,
        y: Any,
        token_weight: Any = None,
        sample_weight: Any = None,
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
        source: Any,
        *,
        memory: Any = None,
        spill: Any = None,
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
        path: Any,
        *,
        template: Any = "words",
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

    def save(self, path: Any) -> int:
        """Write the model to a file, as a whole or not at all.

        Features whose weights are all zero are left out where features have names: they change no
        prediction. The file has the objective too (C, loss, solver and regulariser with their
        parameters, ...), so that a loaded tagger trains as this one was trained. Of solvers,
        regularisers and functions that are not maxmargin's own it has the names only; ``fit`` of a
        loaded tagger then asks for them. ``callbacks``, ``checkpoint`` and ``resume`` are not kept.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        int
            Its size in bytes.
        """
        from maxmargin.io.tagger_file import KIND, TaggerModel
        from maxmargin.io.training_meta import training_meta
        from maxmargin.models.kinds import kind_named

        check_is_fitted(self, "weights_")
        settings = {
            "n_sequences": self.n_examples_,
            "n_features": self.structure_.layout.n_token_features,
            "passes": self.n_iter_,
            "oracle_calls": self.history_[-1].oracle_calls if len(self.history_) else 0,
            "converged": self.converged_,
            "stop_reason": self.stop_reason_,
        }
        params = self.get_params(deep=False)
        # The file does not hold the model that this one was adapted from; constraints and
        # embeddings are apart.
        apart = ("prior", "embeddings", *CONSTRAINT_PARAMS)
        params = {k: v for k, v in params.items() if k not in apart}
        # What was minimised, not what the parameters have been set to since.
        trained = getattr(self, "_trained", None)
        if trained is None and not getattr(self, "_objective_unknown", False):
            trained = {name: params[name] for name in OBJECTIVE}
        if trained is not None:  # it has them all, and these may be long
            params = {k: v for k, v in params.items() if k not in ("loss", "labels")} | {
                k: v for k, v in trained.items() if k not in ("loss", "labels")
            }
        meta = training_meta(self.certificate_, settings, params)
        # What the file said from which this model came; a new fit forgets it.
        meta |= getattr(self, "_file_meta", {})
        meta |= confidence_meta(self)
        objective = None if trained is None else trained.copy
        model = TaggerModel(self._decoder(), self.weights_, meta, objective)
        return kind_named(KIND).save(path, model)

    @classmethod
    def load(cls, path: Any, template: Any = None, *, mmap: bool = False) -> SequenceTagger:
        """Read a model from a file that `save` or ``maxmargin train`` wrote.

        Parameters
        ----------
        path : str or path
            The file.
        template : callable, optional
            Of a model whose features were made by a function: that function.
        mmap : bool, default=False
            Whether to map the file into memory and not to read it, so that processes on one
            machine share the memory of large models. Nobody may then change the file in place
            (``cp new.mm model.mm``) while the tagger is in use: it would predict by whatever is in
            the file now, or the process would be killed (SIGBUS). Replacing it (``save``,
            ``maxmargin train``, ``mv``) does no harm.

        Returns
        -------
        SequenceTagger
            Fitted; its ``history_`` is empty. Its parameters are those of the training, so that
            ``fit`` minimises the same objective; where the file could not hold one (a solver, a
            regulariser or a function of your own), ``fit`` asks for it.

        Raises
        ------
        ModelFormatError
            If the file is damaged, of a newer version, or no model file.
        """
        from maxmargin.io.tagger_file import dense_weights, load_tagger
        from maxmargin.io.training_meta import NOT_KEPT, restore_certificate

        model = load_tagger(path, template, mmap=mmap)
        meta = model.meta
        apart = {*NOT_KEPT, "prior", "embeddings", *CONSTRAINT_PARAMS}
        known = cls().get_params(deep=False).keys() - apart
        params = {k: v for k, v in meta.get("params", {}).items() if k in known}
        if model.objective is not None:
            params |= model.objective()
        encoder = model.chain.encoder
        params["template"] = getattr(encoder, "template", getattr(encoder, "function", None))
        params["embeddings"] = getattr(encoder, "embeddings", None)
        rules = model.chain.constraints
        if rules is not None:
            params |= {
                "constraints": rules.rules,
                "decode": rules.decode,
                "penalty": rules.penalty,
                "constraint_features": rules.features,
                "infeasible": rules.infeasible,
                "beam": rules.width,
            }
        if isinstance(model.weights, KernelWeights) and params.get("kernel") not in KINDS:
            params["kernel"] = model.weights.kernel  # which was no text
        names = cls().get_params(deep=False)
        tagger = cls(**{k: v for k, v in params.items() if k in names})
        if model.objective is None:
            tagger._objective_unknown = True
        else:
            tagger._trained = {name: params[name] for name in OBJECTIVE}
        training, certificate = meta.get("training", {}), meta.get("certificate", {})
        tagger.structure_ = model.chain
        tagger.weights_ = dense_weights(model)
        tagger.certificate_ = restore_certificate(certificate)
        tagger.history_ = History()
        tagger.converged_ = bool(training.get("converged", False))
        tagger.stop_reason_ = str(training.get("stop_reason", "unknown"))
        tagger.n_iter_ = int(training.get("passes", 0))
        tagger.n_examples_ = int(certificate.get("n_examples", 0))
        said = ("training", "format", "columns_conllu", "reading")
        tagger._file_meta = {name: meta[name] for name in said if name in meta}
        restore_confidence(tagger, meta)
        return tagger

    # --- prediction ------------------------------------------------------------------------------

    def predict(self, X: Any, known: Any = None) -> NDArray[np.object_]:
        """Return the best labels of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored. None is fine, and so are empty sequences.

        Returns
        -------
        array of objects, of shape (n_sequences,)
            A list of labels for each, as they were in y (numpy scalars as Python ones).
        """
        threads = self._threads()
        return predicted(self._decoder(), X, self.weights_, threads, known)

    def infer(self, X: Any) -> Inference:
        """Return the best labels under the constraints, with their scores and upper bounds.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        known : list of sequences, optional
            Labels that are known already, None where one is not (or None for a whole sequence):
            the answer is exactly the best of the labellings that have them.

        Returns
        -------
        Inference
            ``codes`` are places in ``structure_.labels_``; ``exact`` tells where the labelling is
            known to be the best. See ``docs/constraints.md``.
        """
        threads = self._threads()
        chain = self._decoder()
        return chain.infer(chain.encoder.transform(X), self.weights_, threads, inputs=X)

    def suggest(self, X: Any, n: int = 20, *, diverse: bool = True) -> list[Suggestion]:
        """Return which sequences to label next: where the model is unsure or violates constraints.

        Parameters
        ----------
        X : list of sequences
            Unlabelled ones.
        n : int
            How many.
        diverse : bool
            Whether those like others that were chosen count less.

        Returns
        -------
        list of Suggestion
            The most useful first; ``maxmargin.estimators.suggesting`` has the rule.
        """
        threads = self._threads()
        return suggest(
            self._decoder(), self.weights_, X, n, diverse=diverse, n_jobs=threads
        )

    def predict_kbest(
        self, X: Any, k: int, known: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        k : int
            How many; at least 1.
        known : list of sequences, optional
            As for `predict`.

        Returns
        -------
        list of lists of (labels, score)
            For every sequence its labellings, best first; fewer where fewer exist.
        """
        threads, filled, chain = self._threads(), without_empty(X), self._decoder()
        found = []
        if not filled.nothing:
            found = chain.kbest(filled.X, self.weights_, k, threads, filled.chosen(known))
        return filled.spread(found, lambda: [([], 0.0)])

    def decision_function(self, X: Any) -> list[NDArray[np.float64]]:
        """Return, for each token and label, the score of the best labelling with that label there.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.

        Returns
        -------
        list of arrays of shape (T, L)
            Max-marginals over all labellings, whatever ``allowed`` says; columns in the order of
            ``classes_``. The difference of two columns tells how much the model prefers a label.
        """
        threads, filled, chain = self._threads(), without_empty(X), self._decoder()
        found = [] if filled.nothing else chain.max_marginals(filled.X, self.weights_, threads)
        ordered = [scores[:, chain.class_columns_] for scores in found]
        return filled.spread(ordered, lambda: np.empty((0, chain.n_labels)))

    def score_labellings(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given labellings.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        y : list of label sequences
            One label for each token, all of them in ``classes_``.

        Returns
        -------
        array of shape (n_sequences,)
            The scores; only scores of the same sequence can be compared.
        """
        threads = self._threads()
        return self._decoder().score_labellings(X, y, self.weights_, threads)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of tokens that are labelled right.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        y : list of label sequences
            The true labels; one that was not in training counts as an error.
        sample_weight : array of shape (n_sequences,), optional
            How much the tokens of each sequence count.

        Returns
        -------
        float
            Token accuracy, from 0 to 1. Other scores are in ``maxmargin.scorers``.
        """
        check_is_fitted(self, "weights_")
        if sample_weight is not None:
            weights: Any = sequence_weights(sample_weight, len(y))
            sample_weight = np.repeat(weights, [len(labels) for labels in y])
        X, y, _ = labelled_without_empty(X, y)
        check_lengths(X, y)
        truth = self.structure_.known_codes(y)
        right = truth == self.structure_.known_codes(self.predict(X))
        return float(np.average(right, weights=sample_weight))

    # --- the model -------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of all arrays over labels."""
        check_is_fitted(self, "weights_")
        return _label_array(self.structure_.classes_)

    @property
    def coef_(self) -> NDArray[Any]:
        """Weights of the features, [n_features][L]."""
        check_is_fitted(self, "weights_")
        if isinstance(self.weights_, KernelWeights):
            raise AttributeError(
                "coef_ has the weights of the features, and with a kernel there are none; see "
                "weights_.dual_coef for the coefficients of the support tokens"
            )
        return self._unpacked().coef[:, self.structure_.class_columns_]

    @property
    def transitions_(self) -> NDArray[Any]:
        """Weights of label a followed by label b, [L][L]."""
        columns = self.structure_.class_columns_
        return self._unpacked().transitions[np.ix_(columns, columns)]

    @property
    def start_(self) -> NDArray[Any]:
        """Weights of the first label, [L]."""
        return self._unpacked().start[self.structure_.class_columns_]

    @property
    def end_(self) -> NDArray[Any]:
        """Weights of the last label, [L]."""
        return self._unpacked().end[self.structure_.class_columns_]

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X, if it has columns."""
        check_is_fitted(self, "weights_")
        encoder = self.structure_.encoder
        if encoder.kind not in ("dense", "sparse"):
            raise AttributeError(
                f"n_features_in_ is the number of columns of X, but X was of kind {encoder.kind}"
            )
        return self.structure_.layout.n_token_features

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features: of the rows of ``coef_``.

        Parameters
        ----------
        input_features : None
            Not used; here because scikit-learn passes it.

        Returns
        -------
        array of str
            The sparse features first; columns of arrays are called "dense:0", "dense:1", ...
        """
        check_is_fitted(self, "weights_")
        return np.array(self.structure_.encoder.feature_names(), dtype=object)

    def _unpacked(self) -> ChainWeights:
        check_is_fitted(self, "weights_")
        return self.structure_.unpack(self.weights_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.target_tags.two_d_labels = True
        return tags


def _label_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array that gives them back unchanged: of objects if need be."""
    array = np.array(labels) if len({type(label) for label in labels}) == 1 else None
    if array is None or array.ndim != 1 or array.tolist() != labels:
        array = np.empty(len(labels), dtype=object)
        for k, label in enumerate(labels):  # not at once: NumPy would take tuples apart
            array[k] = label
    return array
