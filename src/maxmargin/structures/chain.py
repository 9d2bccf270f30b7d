"""`Chain`: label sequences, the Python face of the native chain.

    f(x, y) = Σ_t x_t ⊗ e(y_t) + Σ_t e(y_{t-1}) ⊗ e(y_t) + start(y_1) + end(y_T)
    l(y, ŷ) = Σ_t weight_t * cost[y_t][ŷ_t]               (Hamming: cost = [y_t != ŷ_t])

The weights are one matrix. What its rows belong to is known by `ChainLayout`; its columns are the
labels in the order of ``Chain.labels_``. Native code pads the columns to the vector width
(`Chain.pad`, `Chain.unpack`).

How a chain is learned, decoded and laid out are files of their own: ``chain_learning.py`` (labels
and features), ``chain_problem.py`` (native problems), ``chain_decoding.py`` (predictions),
``chain_layout.py`` (rows of weights), ``chain_weight_forms.py`` (native and plain weights),
``chain_sequence.py`` (one sequence, in Python).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features import EncodedBatch, FeatureEncoder, check_lengths, encode_labels
from maxmargin.features.encoded import EncodedSequences
from maxmargin.features.scaling import warn_if_badly_scaled
from maxmargin.printable import quoted
from maxmargin.structures.auto_weight import automatic_C
from maxmargin.structures.chain_constraints import ChainConstraints
from maxmargin.structures.chain_decoding import Labelling, Weights
from maxmargin.structures.chain_learning import (
    EdgeMask,
    Encoder,
    learn_features,
    learn_labels,
    order_labels,
)
from maxmargin.structures.chain_prior import ChainPrior
from maxmargin.structures.chain_problem import (
    kernel_problem,
    problem_arguments,
)
from maxmargin.structures.chain_sequence import best_labelling, joint_features
from maxmargin.structures.chain_weight_forms import ChainWeightForms
from maxmargin.structures.kernels import (
    Kernel,
    KernelLike,
    KernelWeights,
    make_kernel,
    token_numbers,
)
from maxmargin.structures.native import PreparedProblem
from maxmargin.types import Allowed, LabelLoss, Labels

__all__ = ["Chain"]


class Chain(ChainWeightForms):
    """Label sequences: one label for every token, scored with their features and transitions.

    X is a list of sequences, Y a list of label sequences of the same lengths; what a sequence may
    look like is described in ``maxmargin.features.encode``. Training runs in native code.

    Parameters
    ----------
    loss : "hamming", array of shape (L, L), or dict
        What an error costs. "hamming": 1 for each wrong token. An array: ``loss[a][b]`` for the
        label b where a is the truth, in the order of ``classes_``. A dict
        ``{(truth, label): cost}``: pairs that are not in it cost 1. Costs are finite, not
        negative, and 0 for the truth itself.
    labels : list or None
        All labels, and their order. None: the labels of Y, sorted where they can be sorted, else
        in order of appearance.
    allowed : None, "iob2", "iobes", callable, or array of shape (L, L)
        Which labels may follow each other in a prediction. "iob2": I-X only after B-X or I-X.
        "iobes": B-X and I-X are followed by I-X or E-X; everything else by O, B or S; sequences
        begin with O, B or S and end with O, E or S. A callable ``allowed(previous, next)`` tells
        whether a label may follow another; ``previous`` is None for the first label and ``next``
        is None behind the last one. An array, in the order of ``classes_``: ``allowed[a][b]``
        tells whether b may follow a.
    encoder : FeatureEncoder, TemplateEncoder or None
        How X becomes numbers; a fresh copy of it is fitted by ``prepare``. None: a
        `FeatureEncoder`, for features as Python objects.
    kernel : {"linear", "poly", "rbf"}, callable or Kernel
        How emissions are scored. "linear": each feature has weights. Else through a kernel between
        tokens, with training tokens instead of weights (see `Kernel`); then the regulariser is
        `L2`, the solver one of the dual ones, and there are no pair features.
    degree, gamma, coef0, cache_mb
        Parameters of the kernel, as in `Kernel`; a `Kernel` brings its own.
    prior : ChainPrior or None
        A trained chain whose features and labels this one gets, besides those of its data.
    constraints : ChainConstraints or None
        Prior knowledge that predictions, and with constraint features training, take into account.

    Attributes
    ----------
    classes_ : list
        The labels in the order of ``labels``, or sorted. Costs and masks are given in this order.
    labels_ : list
        The same labels in the order of the weights: the most frequent one first.
    class_columns_ : array of int
        Where each class is in ``labels_``: ``labels_[class_columns_[k]] == classes_[k]``.
    encoder : FeatureEncoder or TemplateEncoder
        Turns X into numbers; known features are those of ``prepare``, others are ignored.
    n_features : int or None
        Number of weights of the protocol's methods, without padding; None before ``prepare``.

    Notes
    -----
    ``allowed`` limits what is predicted (``predict``, ``kbest`` and ``argmax`` without a truth),
    not what is learned: the oracle looks at all labellings.

    The methods of the structure protocol (``joint_feature``, ``loss``, ``argmax``) work on one
    sequence, in Python: for checks and for reading. Everything else runs in native code.

    Examples
    --------
    >>> import numpy as np
    >>> chain = Chain()
    >>> X = [[["dogs"], ["bark"]], [["bark"]]]
    >>> chain.prepare(X, [["N", "V"], ["V"]])
    >>> chain.labels_
    ['V', 'N']
    >>> w = np.zeros(chain.n_features)
    >>> chain.unpack(chain.pad(w)).coef.shape
    (2, 2)
    >>> chain.loss(["N", "V"], ["N", "N"])
    1.0
    """

    def __init__(
        self,
        loss: LabelLoss = "hamming",
        labels: Labels = None,
        allowed: Allowed = None,
        encoder: Encoder | None = None,
        *,
        kernel: KernelLike = "linear",
        degree: int = 2,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        cache_mb: float = 200,
        prior: ChainPrior | None = None,
        constraints: ChainConstraints | None = None,
    ) -> None:
        self.loss_spec = loss
        self.labels = labels
        self.allowed = allowed
        self.encoder: Encoder = FeatureEncoder() if encoder is None else encoder
        self.kernel = kernel
        self.degree, self.gamma, self.coef0, self.cache_mb = degree, gamma, coef0, cache_mb
        self.prior = prior
        self.constraints = constraints
        self.finds_C = False  # whether automatic_C is wanted, which reads all values once more
        self.automatic_C: float | None = None  # of the training data, for C="auto"
        self._kernel: Kernel | None = None  # its parameters as numbers, once prepared
        self._n_kernel_tokens = 0
        self.classes_: list[Any] = []
        self.labels_: list[Any] = []
        self.class_columns_: NDArray[np.intp] = np.empty(0, np.intp)
        self._codes: dict[Any, int] = {}
        self._cost: NDArray[np.float64] | None = None
        self._mask: EdgeMask | None = None

    def __repr__(self) -> str:
        defaults: dict[str, Any] = {"loss": "hamming", "labels": None, "allowed": None}
        defaults |= {"kernel": "linear", "degree": 2, "gamma": "scale", "coef0": 1.0}
        defaults |= {"cache_mb": 200}
        shown = {name: getattr(self, name) for name in defaults} | {"loss": self.loss_spec}
        given = (
            f"{name}={value!r}"
            for name, value in shown.items()
            if type(value) is not type(defaults[name]) or value != defaults[name]
        )
        return f"Chain({', '.join(given)})"

    # --- learning what there is ------------------------------------------------------------------

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn the features of X and the labels of Y.

        Parameters
        ----------
        X : list of sequences
            The training inputs.
        Y : list of label sequences
            Their labels.
        """
        self.learn(X, Y)

    def prepare_problem(
        self,
        X: Any,
        Y: Any,
        token_weight: Any = None,
        sample_weight: Any = None,
        *,
        dtype: Any = "float32",
    ) -> PreparedProblem:
        """Learn the features and labels and make the training problem, reading X once.

        Parameters
        ----------
        X, Y, token_weight, sample_weight
            As for `make_problem`.
        dtype : "float32" or "float64"
            As which values of sparse features and weights of tokens are kept.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        batch, codes = self.learn(X, Y, dtype)
        if isinstance(X, EncodedSequences) and sample_weight is None:
            sample_weight = X.sequence_weight
        if self.finds_C:
            self.automatic_C = automatic_C(batch, kernel=self._kernel is not None)
        parts = self._parts(batch, codes, token_weight, sample_weight)
        problem = self._constrained(self._problem(batch, parts), X)
        if batch.mapped is not None:  # the file is known by its hash
            arrays = {"mapping", "offsets", "indptr", "indices", "values", "values64", "dense32"}
            arrays |= {"dense64", "labels", "pair_indptr", "pair_indices"}
            parts = {name: part for name, part in parts.items() if name not in arrays}
        features = self.encoder.identity()
        parts |= {"features": features, "labels_": self.labels_, "kernel": _identity(self._kernel)}
        if self.constraints is not None:
            parts |= {"constraints": repr(self.constraints.rules)}
        return PreparedProblem(problem, parts)

    def make_problem(
        self, X: Any, Y: Any, token_weight: Any = None, sample_weight: Any = None
    ) -> _native.Problem:
        """Make a native training problem with the features and labels that are known.

        Parameters
        ----------
        X : list of sequences
            The inputs. Features that ``prepare`` did not see are ignored.
        Y : list of label sequences
            Their labels, all of them known.
        token_weight : list of arrays, optional
            A factor of the cost of each token, finite and not negative; as long as Y.
        sample_weight : array of shape (n_sequences,), optional
            A factor of C for each sequence, finite and not negative.

        Returns
        -------
        ChainProblem or KernelProblem
            What a solver trains.

        Raises
        ------
        ValueError
            If lengths differ, a label is not known, or a weight is negative or not finite.
        """
        self._require_prepared()
        check_lengths(X, Y)
        batch = self.encoded(X)
        codes, _ = encode_labels(Y, self._codes)
        parts = self._parts(batch, codes, token_weight, sample_weight)
        return self._constrained(self._problem(batch, parts), X)

    def _constrained(self, problem: _native.Problem, X: Any) -> _native.Problem:
        """Return the problem with constraint features, if there shall be some."""
        if self.constraints is None:
            return problem
        self.constraints.rules.check_labels(self.labels_)
        if not self.constraints.features:
            return problem
        if not isinstance(problem, _native.ChainProblem):
            raise NotCompatibleError(
                'constraint features have weights, and a kernel has none; use kernel="linear"'
            )
        return self.constraints.problem(problem, X, self.labels_)

    def own_weights(self, weights: Any) -> Any:
        """Return the weights of the chain out of those that were trained.

        Parameters
        ----------
        weights : array or KernelWeights
            With those of the constraint features behind them, if there are some; these are kept in
            ``constraints``.

        Returns
        -------
        array or KernelWeights
            What predictions take.
        """
        if self.constraints is None or not self.constraints.features:
            return weights
        return self.constraints.split(weights, self.layout)

    def encoded_problem(
        self,
        batch: EncodedBatch,
        codes: NDArray[np.int32] | None = None,
        token_weight: Any = None,
        sample_weight: Any = None,
    ) -> _native.Problem:
        """Make a native problem of encoded sequences.

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder`` made.
        codes : int32 array of shape (n_tokens,), optional
            The true labels, as places in ``labels_``; needed for training.
        token_weight, sample_weight
            As for `make_problem`.

        Returns
        -------
        ChainProblem or KernelProblem
            What a solver trains; without a kernel it can be decoded, too.
        """
        self._require_prepared()
        return self._problem(batch, self._parts(batch, codes, token_weight, sample_weight))

    def _problem(self, batch: EncodedBatch, parts: dict[str, Any]) -> _native.Problem:
        if self._kernel is None:
            plain = _native.ChainProblem(**parts)
            if batch.mapped is not None:
                plain.windows = batch.mapped.windows
            return plain
        problem = kernel_problem(batch, self._kernel, parts)
        self._n_kernel_tokens = problem.tokens.n_tokens
        return problem

    def encoded(self, X: Any) -> EncodedBatch:
        """Return X in numbers, by what is known."""
        self._require_prepared()
        return self.encoder.transform(X if self._kernel is None else token_numbers(X, self._kernel))

    def _decodable(self, batch: EncodedBatch, weights: Weights) -> tuple[_native.ChainProblem, Any]:
        """Return encoded sequences as a problem, and the native weights to decode it with."""
        if isinstance(weights, KernelWeights):
            return weights.decodable(batch)
        return _native.ChainProblem(**self._parts(batch)), self.native_weights(weights)

    def learn(
        self, X: Any, Y: Any, dtype: Any = "float32"
    ) -> tuple[EncodedBatch, NDArray[np.int32]]:
        """Learn the features of X and the labels of Y, and encode both.

        Parameters
        ----------
        X : list of sequences or ColumnTable
            The training inputs.
        Y : list of label sequences or LabelCodes
            Their labels.
        dtype : "float32" or "float64"
            As which values of sparse features are kept, here and later.

        Returns
        -------
        batch : EncodedBatch
            X in numbers.
        codes : int32 array of shape (n_tokens,)
            Y in numbers: places in ``labels_``.
        """
        if isinstance(X, EncodedSequences):
            return self._learn_encoded(X, dtype)
        if Y is None:
            raise ValueError("Y is None; expected a list of label sequences, one for each of X")
        check_lengths(X, Y)
        kernel = make_kernel(
            self.kernel,
            degree=self.degree,
            gamma=self.gamma,
            coef0=self.coef0,
            cache_mb=self.cache_mb,
        )
        prior, wanted = self.prior, self.labels
        if prior is not None:
            if kernel is not None:
                raise NotCompatibleError(
                    "a prior is about the weights of the features, and with a kernel there are "
                    'none; use kernel="linear"'
                )
            wanted = prior.labels(Y, self.labels)
        labels = learn_labels(Y, wanted, self.loss_spec, self.allowed)
        features = learn_features(X, self.encoder, kernel, dtype)
        if prior is not None:
            batch = prior.extend(features.encoder, X, features.batch)
            features = features._replace(batch=batch)
        if features.kernel is None:  # a kernel has its own scale, and no columns with weights
            warn_if_badly_scaled(features.batch, features.encoder.feature_names)
        # From here on nothing fails: a chain is prepared as a whole or left as it was.
        self.encoder, self._kernel = features.encoder, features.kernel
        self._set_labels(labels.classes, labels.columns)
        self._cost, self._mask = labels.cost, labels.mask
        return features.batch, labels.codes

    def _learn_encoded(
        self, data: EncodedSequences, dtype: Any
    ) -> tuple[EncodedBatch, NDArray[np.int32]]:
        """Take over the features and labels of sequences that were encoded before."""
        if self.kernel != "linear":
            raise NotCompatibleError(
                f"sequences that were encoded before are not trained with the kernel "
                f"{self.kernel!r}: tokens would have to be compared by the data themselves; give "
                "these"
            )
        if self.labels is not None and list(self.labels) != data.classes:
            raise NotCompatibleError(
                f"labels are {quoted(str(list(self.labels)), 80)}, and the sequences were encoded "
                f"with {quoted(str(data.classes), 80)}; encode them with these labels"
            )
        encoder = data.encoder_for(self.encoder, dtype)
        classes, counts, batch = list(data.classes), data.label_counts, data.batch
        if self.prior is not None:
            classes, counts = self.prior.encoded_labels(classes, counts, self.labels)
            batch = self.prior.extend(encoder, None, batch)
        columns, cost, mask = order_labels(classes, counts, self.loss_spec, self.allowed)
        self.encoder, self._kernel = encoder, None
        self._set_labels(classes, columns)
        self._cost, self._mask = cost, mask
        return batch, data.codes

    def _set_labels(self, classes: list[Any], columns: NDArray[np.intp]) -> None:
        self.classes_ = classes
        self.class_columns_ = columns
        self.labels_ = [classes[k] for k in np.argsort(columns)]
        self._codes = {label: code for code, label in enumerate(self.labels_)}

    @classmethod
    def restore(
        cls,
        encoder: Encoder,
        classes: list[Any],
        columns: NDArray[np.intp],
        mask: tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]] | None = None,
        **options: Any,
    ) -> Chain:
        """Make a chain that is prepared, as a model file has it.

        Parameters
        ----------
        encoder : FeatureEncoder or TemplateEncoder
            It knows the features.
        classes, columns
            As ``classes_`` and ``class_columns_``.
        mask : tuple of arrays or None
            What may follow, begin and end, in the order of ``labels_``.
        **options
            Parameters of the constructor.

        Returns
        -------
        Chain
            Ready for prediction. Costs of errors are not restored: they matter in training only.
        """
        chain = cls(**options, encoder=encoder)
        chain._set_labels(classes, columns)
        chain._mask = None if mask is None else EdgeMask(*mask)
        if isinstance(chain.kernel, Kernel):  # its parameters are numbers
            chain._kernel = chain.kernel
        return chain

    @property
    def cost(self) -> NDArray[np.float64] | None:
        """Costs [truth][label] in the order of ``labels_``; None: 1 for each error."""
        return self._cost

    @cost.setter
    def cost(self, cost: NDArray[np.float64] | None) -> None:
        self._cost = cost

    @property
    def mask(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]] | None:
        """What may follow, begin and end, in the order of ``labels_``; None: everything."""
        return self._mask

    def _parts(
        self,
        batch: EncodedBatch,
        codes: NDArray[np.int32] | None = None,
        token_weight: Any = None,
        sample_weight: Any = None,
    ) -> dict[str, Any]:
        """Arguments of a native ChainProblem."""
        return problem_arguments(
            batch,
            self.n_labels,
            codes,
            cost=self._cost,
            token_weight=token_weight,
            sample_weight=sample_weight,
            double=self.encoder.double,
        )

    # --- the structure protocol, one sequence at a time ------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return f(x, y) as (indices, values), without padding.

        Parameters
        ----------
        x : sequence
            One sequence of tokens; unknown features are ignored.
        y : sequence of labels
            One label a token, all of them known.

        Returns
        -------
        tuple of two arrays
            Indices (some may occur twice) and values.
        """
        self._require_weights("joint_feature")
        check_lengths([x], [y])
        batch = self.encoder.transform([x])
        codes, _ = encode_labels([y], self._codes)
        return joint_features(batch, codes, self.layout)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the cost of labelling ``y_hat`` where ``y`` is the truth.

        Parameters
        ----------
        y, y_hat : sequence of labels
            Of the same length. A label in ``y`` that is not known can only be missed: it costs as
            much as the most expensive error.

        Returns
        -------
        float
            The sum over the tokens.
        """
        truth, labels = self.known_codes([y]), self.known_codes([y_hat])
        if len(truth) != len(labels):
            raise ValueError(f"y has {len(truth)} labels and y_hat {len(labels)}; expected as many")
        if (labels < 0).any():
            t = int(np.argmax(labels < 0))
            raise ValueError(
                f"y_hat has the label {quoted(y_hat[t])} at token {t}, which is not known"
            )
        return float(self.token_costs(truth, labels).sum())

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Labelling:
        """Return the best labelling of one sequence; with a truth, the oracle's answer.

        Parameters
        ----------
        x : sequence
            One sequence of tokens; unknown features are ignored.
        w : array of shape (n_features,)
            The weights, without padding.
        truth : sequence of labels or None
            With a truth: maximise ``loss(truth, y) + w·f(x, y)`` over all labellings. Without:
            maximise ``w·f(x, y)`` over those within ``allowed``.

        Returns
        -------
        list of labels
            One a token; of several best ones, the one with the more frequent labels at the end.
        """
        self._require_weights("argmax")
        rows = self._rows(np.asarray(w, dtype=np.float64))
        batch = self.encoder.transform([x])
        if truth is None:
            return self._decoded(best_labelling(batch, rows, self.layout, mask=self._mask))
        check_lengths([x], [truth])
        codes, _ = encode_labels([truth], self._codes)
        cost = 1.0 - np.eye(self.n_labels) if self._cost is None else self._cost
        return self._decoded(best_labelling(batch, rows, self.layout, costs=cost[codes]))


def _identity(kernel: Kernel | None) -> list[Any]:
    """Return what tells one kernel from another."""
    if kernel is None:
        return []
    return [kernel.kind, kernel.degree, kernel.gamma, kernel.coef0, kernel.matrix]
