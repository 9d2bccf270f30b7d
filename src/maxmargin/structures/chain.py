"""`Chain`: label sequences, the Python face of the native chain.

    f(x, y) = Σ_t x_t ⊗ e(y_t) + Σ_t e(y_{t-1}) ⊗ e(y_t) + start(y_1) + end(y_T)
    l(y, ŷ) = Σ_t weight_t * cost[y_t][ŷ_t]               (Hamming: cost = [y_t != ŷ_t])

The weights are one matrix. Its rows are the sparse features, the dense features, the transitions
by first label, start and end; its columns are the labels in the order of ``Chain.labels_``. Native
code pads the columns to the vector width (`Chain.pad`, `Chain.unpack`).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features import (
    EncodedBatch,
    FeatureEncoder,
    LabelCodes,
    check_lengths,
    encode_labels,
)
from maxmargin.features.labels import label_list
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.memory import require_memory
from maxmargin.printable import quoted
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_options import (
    allowed_mask,
    cost_matrix,
    explicit_labels,
    sequence_weights,
    token_weights,
)
from maxmargin.structures.kernels import (
    Kernel,
    KernelProblem,
    KernelWeights,
    make_kernel,
    token_numbers,
)

__all__ = ["Chain", "ChainWeights", "PreparedProblem"]

Floats: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Weights: TypeAlias = Floats | _native.SparseWeights | KernelWeights
Encoder: TypeAlias = FeatureEncoder | TemplateEncoder
Labelling: TypeAlias = list[Any]

MAX_LABELS = 2**24 - 1  # of the native index type
ALIGNMENT = 32  # bytes; native code loads whole vectors of weights


class ChainWeights(NamedTuple):
    """The weights of a chain by what they belong to; L labels, in the order of ``labels_``.

    Attributes
    ----------
    coef : array of shape (n_features, L)
        Emissions: the sparse features, then the dense ones.
    transitions : array of shape (L, L)
        ``transitions[p, l]``: label p followed by label l.
    start, end : array of shape (L,)
        First and last label of a sequence.
    pairs : array of shape (n_pair, L, L)
        Features of a token and two labels: ``pairs[g, p, l]`` for label p followed by label l at a
        token that has feature g.
    """

    coef: Floats
    transitions: Floats
    start: Floats
    end: Floats
    pairs: Floats


class PreparedProblem(NamedTuple):
    """A native training problem, and what it was made of.

    Attributes
    ----------
    problem : _native.Problem
        What a solver trains.
    parts : dict
        The numbers it was made of: arrays, ints, bytes and None. Two problems with the same parts
        are the same.
    """

    problem: _native.Problem
    parts: dict[str, Any]


class _Mask(NamedTuple):
    """Which edges decoding may use; uint8, in the order of ``labels_``, as native code takes it."""

    transition: NDArray[np.uint8]  # [L * L]
    start: NDArray[np.uint8]  # [L]
    end: NDArray[np.uint8]  # [L]


class Chain(Structure):
    """Label sequences: one label for every token, scored with their features and transitions.

    X is a list of sequences, Y a list of label sequences of the same lengths; what a sequence may
    look like is described in `maxmargin.features.encode`. Training runs in native code.

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
        loss: Any = "hamming",
        labels: Any = None,
        allowed: Any = None,
        encoder: Encoder | None = None,
        *,
        kernel: Any = "linear",
        degree: int = 2,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        cache_mb: float = 200,
    ) -> None:
        self.loss_spec = loss
        self.labels = labels
        self.allowed = allowed
        self.encoder: Encoder = FeatureEncoder() if encoder is None else encoder
        self.kernel = kernel
        self.degree, self.gamma, self.coef0, self.cache_mb = degree, gamma, coef0, cache_mb
        self._kernel: Kernel | None = None  # its parameters as numbers, once prepared
        self._n_kernel_tokens = 0
        self.classes_: list[Any] = []
        self.labels_: list[Any] = []
        self.class_columns_: NDArray[np.intp] = np.empty(0, np.intp)
        self._codes: dict[Any, int] = {}
        self._cost: NDArray[np.float64] | None = None
        self._mask: _Mask | None = None

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
        parts = self._parts(batch, codes, token_weight, sample_weight)
        problem = self._problem(batch, parts)
        features = self.encoder.identity()
        parts |= {"features": features, "labels_": self.labels_, "kernel": _identity(self._kernel)}
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
        batch = self._encoded(X)
        codes, _ = encode_labels(Y, self._codes)
        return self._problem(batch, self._parts(batch, codes, token_weight, sample_weight))

    def encoded_problem(
        self,
        batch: EncodedBatch,
        codes: NDArray[np.int32] | None = None,
        token_weight: Any = None,
        sample_weight: Any = None,
    ) -> _native.ChainProblem:
        """Make a native problem of encoded sequences, for a chain without a kernel.

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
        ChainProblem
            What a solver trains, or what can be decoded.
        """
        self._require_weights("encoded_problem")
        return _native.ChainProblem(**self._parts(batch, codes, token_weight, sample_weight))

    def _problem(self, batch: EncodedBatch, parts: dict[str, Any]) -> _native.Problem:
        if self._kernel is None:
            return _native.ChainProblem(**parts)
        kept = ("n_labels", "labels", "token_weight", "token_weight64", "cost", "example_weight")
        problem = KernelProblem(batch, self._kernel, **{name: parts[name] for name in kept})
        self._n_kernel_tokens = problem.tokens.n_tokens
        return problem

    def _encoded(self, X: Any) -> EncodedBatch:
        """Return X in numbers, by what is known."""
        self._require_prepared()
        return self.encoder.transform(X if self._kernel is None else token_numbers(X, self._kernel))

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
        known = None if self.labels is None else explicit_labels(self.labels)
        codes, classes = encode_labels(Y, known)
        n_labels = len(classes)
        if n_labels > MAX_LABELS:
            raise ValueError(
                f"there are {n_labels} labels; at most {MAX_LABELS} fit the index type"
            )
        # Native code goes through the labels of a row of weights from the first to the last. With
        # the most frequent labels in front, the weights that matter share few cache lines. A
        # stable sort keeps ties in the order of the classes.
        counts = np.bincount(codes, minlength=n_labels)
        order = np.argsort(-counts, kind="stable")
        columns = np.empty(n_labels, dtype=np.intp)
        columns[order] = np.arange(n_labels)
        cost = cost_matrix(self.loss_spec, classes)
        mask = allowed_mask(self.allowed, classes)
        encoder = self.encoder.fresh()
        encoder.double = str(dtype) == "float64"
        batch = encoder.fit_transform(X if kernel is None else token_numbers(X, kernel))
        if kernel is not None:
            if batch.n_pair:
                raise NotCompatibleError(
                    f"there are {batch.n_pair} pair features (lines of the template that begin "
                    "with B), which have weights; with a kernel, only the features of single "
                    'tokens do without. Leave these lines out, or use kernel="linear"'
                )
            kernel = kernel.resolved(batch)
        # From here on nothing fails: a chain is prepared as a whole or left as it was.
        self.encoder = encoder
        self._kernel = kernel
        self._set_labels(classes, columns)
        self._cost = None if cost is None else np.ascontiguousarray(cost[np.ix_(order, order)])
        self._mask = None
        if mask is not None:
            transition, start, end = mask
            self._mask = _Mask(
                transition[np.ix_(order, order)].astype(np.uint8).ravel(),
                start[order].astype(np.uint8),
                end[order].astype(np.uint8),
            )
        return batch, columns.astype(np.int32)[codes]

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
        chain._mask = None if mask is None else _Mask(*mask)
        return chain

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
        if codes is not None:
            self._require_trainable(batch)
        dense, values = batch.dense, batch.values
        single = dense is not None and dense.dtype == np.float32
        narrow = values is not None and values.dtype == np.float32
        factor = token_weights(token_weight, batch.lengths)
        double = self.encoder.double
        return {
            "n_labels": self.n_labels,
            "n_sparse": batch.n_sparse,
            "offsets": batch.offsets,
            "indptr": batch.indptr,
            "indices": batch.indices,
            "values": values if narrow else None,
            "values64": None if narrow else values,
            "dense32": dense if single else None,
            "dense64": None if single else dense,
            "labels": codes,
            "token_weight": None if double or factor is None else factor.astype(np.float32),
            "token_weight64": factor if double else None,
            "cost": self._cost,
            "example_weight": sequence_weights(sample_weight, batch.n_sequences),
            "n_pair": batch.n_pair,
            "pair_indptr": batch.pair_indptr,
            "pair_indices": batch.pair_indices,
        }

    def _require_trainable(self, batch: EncodedBatch) -> None:
        """Refuse a sequence whose tables do not fit, before the system ends the process."""
        lengths = batch.lengths
        i = int(np.argmax(lengths))
        n, begin = int(lengths[i]), int(batch.offsets[i])
        padded = _native.padded_labels(self.n_labels, True)
        # Scores and forward scores with room to grow, the transitions into each token where they
        # differ, codes and cells of a plane, and twice the features of its tokens.
        a_token = 10 * padded + 64 + (4 * padded * self.n_labels if batch.n_pair else 0)
        features = 0 if batch.indptr is None else int(batch.indptr[begin + n] - batch.indptr[begin])
        needed = n * a_token + 8 * features
        if needed > 1_000_000:  # of less, no system runs short
            require_memory(
                f"training on sequence {i}, of {n} tokens and {self.n_labels} labels,",
                needed,
                advice="cut it into shorter sequences",
            )

    # --- sizes -----------------------------------------------------------------------------------

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.labels_)

    @property
    def _n_token_features(self) -> int:
        return self.encoder.n_sparse + self.encoder.n_dense

    @property
    def _n_pair(self) -> int:
        return self.encoder.n_pair

    @property
    def _n_rows(self) -> int:
        return self._n_token_features + self.n_labels + 2 + self._n_pair * self.n_labels

    @property
    def n_features(self) -> int | None:  # type: ignore[override]
        """Number of weights without padding; None before ``prepare``."""
        return self._n_rows * self.n_labels if self.labels_ else None

    def n_weights(self, dtype: Any = "float32") -> int:
        """Return the number of weights of the native array, padding included.

        Parameters
        ----------
        dtype : "float32" or "float64"
            Type of the weights.

        Returns
        -------
        int
            The length of the array.
        """
        self._require_prepared()
        single = _weight_dtype(dtype).itemsize == 4
        return self._n_rows * _native.padded_labels(self.n_labels, single)

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
            The weights of the engine, the copy that is returned, and the 8-byte weights that the
            certificate is computed from; they are in memory at the same time.
        """
        kind = _weight_dtype(dtype)
        if self._kernel is not None:
            return self._kernel_memory(kind)
        pairs = f" + {self._n_pair} pair features x {self.n_labels}" if self._n_pair else ""
        name = (
            f"the weights ({self._n_token_features} features + {self.n_labels} transitions + 2"
            f"{pairs}, times {self.n_labels} labels, {kind.name}, with a copy and the 8-byte "
            "certificate)"
        )
        own = self.n_weights(kind) * kind.itemsize
        return name, 2 * own + 8 * self.n_weights("float64")

    def _kernel_memory(self, kind: np.dtype[Any]) -> tuple[str, int]:
        m, L = self._n_kernel_tokens, self.n_labels
        assert self._kernel is not None
        cache = min(int(self._kernel.cache_mb * 1e6), m * m * kind.itemsize)
        rows = m + L + 2
        # Coefficients, scores and the change of a step; the first two once more to certify them.
        own = 3 * rows * _native.padded_labels(L, kind.itemsize == 4) * kind.itemsize
        exact = 2 * rows * _native.padded_labels(L, False) * 8
        name = (
            f"coefficients and scores ({m} different tokens + {L} transitions + 2, times {L} "
            f"labels, {kind.name} and for the certificate 8-byte, and {cache / 1e6:.0f} MB of the "
            "kernel)"
        )
        return name, own + exact + cache

    def _require_prepared(self) -> None:
        if not self.labels_:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this Chain knows no labels yet; call prepare(X, Y) first")

    # --- weights ---------------------------------------------------------------------------------

    def unpack(self, weights: Floats | KernelWeights) -> ChainWeights:
        """Return views of the native weights, without the padding.

        Parameters
        ----------
        weights : array of shape (n_weights(dtype),) or KernelWeights
            The native weights.

        Returns
        -------
        ChainWeights
            Labels in the order of ``labels_``. With a kernel there are no weights of features:
            ``coef`` has no rows.
        """
        if isinstance(weights, KernelWeights):
            edges, n = weights.edges, self.n_labels
            none = np.empty((0, n))
            return ChainWeights(none, edges[:n], edges[n], edges[n + 1], np.empty((0, n, n)))
        self._check_weights(weights)
        rows: Floats = weights.reshape(self._n_rows, -1)[:, : self.n_labels]
        d, L = self._n_token_features, self.n_labels
        pairs: Floats = rows[d + L + 2 :].reshape(self._n_pair, L, L)
        return ChainWeights(rows[:d], rows[d : d + L], rows[d + L], rows[d + L + 1], pairs)

    def pad(self, w: Floats, dtype: Any = "float64") -> Floats:
        """Return weights without padding as a native array.

        Parameters
        ----------
        w : array of shape (n_features,)
            Weights as the protocol's methods take them.
        dtype : "float32" or "float64"
            Type of the result.

        Returns
        -------
        array of shape (n_weights(dtype),)
            Padded with zeros and aligned.
        """
        rows = self._rows(w)
        result = _aligned_zeros(self.n_weights(dtype), _weight_dtype(dtype))
        result.reshape(self._n_rows, -1)[:, : self.n_labels] = rows
        return result

    def native_weights(self, weights: Weights) -> Weights:
        """Return the weights as native code takes them: a copy only if they are not aligned.

        Parameters
        ----------
        weights : array of shape (n_weights(dtype),), SparseWeights or KernelWeights
            Native weights that may have been moved, for example by pickling.

        Returns
        -------
        array, SparseWeights or KernelWeights
            The same numbers, aligned.
        """
        if isinstance(weights, _native.SparseWeights | KernelWeights):
            return weights
        self._check_weights(weights)
        if weights.flags.c_contiguous and weights.ctypes.data % ALIGNMENT == 0:
            return weights
        result = _aligned_zeros(len(weights), weights.dtype)
        result[:] = weights
        return result

    def _check_weights(self, weights: Floats) -> None:
        if not isinstance(weights, np.ndarray) or weights.dtype not in (np.float32, np.float64):
            raise TypeError("weights must be a numpy array of float32 or float64")
        expected = self.n_weights(weights.dtype)
        if weights.shape != (expected,):
            raise ValueError(f"weights has the shape {weights.shape}; expected ({expected},)")

    def _rows(self, w: Floats) -> Floats:
        """Return the weights of the protocol's methods as a matrix, one row a feature."""
        self._require_prepared()
        if w.shape != (self.n_features,):
            raise ValueError(f"w has the shape {w.shape}; expected ({self.n_features},)")
        return w.reshape(self._n_rows, self.n_labels)

    # --- prediction ------------------------------------------------------------------------------

    def _decodable(self, batch: EncodedBatch, weights: Weights) -> tuple[_native.ChainProblem, Any]:
        """Return encoded sequences as a problem, and the native weights to decode it with."""
        if isinstance(weights, KernelWeights):
            return weights.decodable(batch)
        return _native.ChainProblem(**self._parts(batch)), self.native_weights(weights)

    def predict(self, X: Any, weights: Weights, n_jobs: int = 1) -> list[Labelling]:
        """Return the best labelling of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list of lists of labels
            One list a sequence.
        """
        batch = self._encoded(X)
        return _split(self._decoded(self.predict_encoded(batch, weights, n_jobs)), batch.offsets)

    def predict_encoded(
        self, batch: EncodedBatch, weights: Weights, n_jobs: int = 1
    ) -> NDArray[np.int32]:
        """Return the codes of the best labelling of every encoded sequence, within ``allowed``.

        Parameters
        ----------
        batch : EncodedBatch
            What ``encoder.transform`` made.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        int32 array of shape (n_tokens,)
            Places in ``labels_``.
        """
        self._require_prepared()
        problem, native = self._decodable(batch, weights)
        codes, _ = problem.predict(native, n_jobs, *self._masks())
        return codes

    def kbest(
        self, X: Any, weights: Weights, k: int, n_jobs: int = 1
    ) -> list[list[tuple[Labelling, float]]]:
        """Return the k best labellings of every sequence, within ``allowed``.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        weights : array or SparseWeights
            The native weights.
        k : int
            How many; at least 1.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list of lists of (labels, score)
            For every sequence its labellings, best first; fewer where fewer exist.
        """
        try:
            k = operator.index(k)
        except TypeError:
            raise TypeError(f"k is {k!r}; expected an integer") from None
        if k < 1:
            raise ValueError(f"k is {k}; expected at least 1")
        problem, native = self._decodable(self._encoded(X), weights)
        found = problem.kbest(native, k, n_jobs, *self._masks())
        return [[(self._decoded(codes), float(score)) for score, codes in paths] for paths in found]

    def score_labellings(
        self, X: Any, Y: Any, weights: Weights, n_jobs: int = 1
    ) -> NDArray[np.float64]:
        """Return the score w·f(x, y) of given labellings.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        Y : list of label sequences
            Their labels, all of them known.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        array of shape (n_sequences,)
            The scores.
        """
        self._require_prepared()
        check_lengths(X, Y)
        codes, _ = encode_labels(Y, self._codes)
        problem, native = self._decodable(self._encoded(X), weights)
        return problem.score(native, codes, n_jobs)

    def max_marginals(self, X: Any, weights: Weights, n_jobs: int = 1) -> list[NDArray[np.float64]]:
        """Return, for each token and label, the score of the best labelling with that label there.

        Parameters
        ----------
        X : list of sequences
            The inputs; unknown features are ignored.
        weights : array or SparseWeights
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list of arrays of shape (T, L)
            Over all labellings, whatever ``allowed`` says; columns in the order of ``labels_``.
        """
        batch = self._encoded(X)
        problem, native = self._decodable(batch, weights)
        flat = problem.max_marginals(native, n_jobs)
        return np.split(flat.reshape(-1, self.n_labels), batch.offsets[1:-1])

    def known_codes(self, Y: Any) -> NDArray[np.int32]:
        """Return the codes of labels (places in ``labels_``), -1 for a label that is not known.

        Parameters
        ----------
        Y : list of label sequences, or LabelCodes
            Any labels.

        Returns
        -------
        int32 array of shape (n_tokens,)
            The labels of all sequences, one after the other.
        """
        self._require_prepared()
        get = self._codes.get
        if isinstance(Y, LabelCodes):
            return np.array([get(name, -1) for name in Y.names], dtype=np.int32)[Y.codes]
        labels = itertools.chain.from_iterable(map(label_list, Y))
        return np.fromiter((get(label, -1) for label in labels), dtype=np.int32)

    def _masks(self) -> tuple[Any, Any, Any]:
        return (None, None, None) if self._mask is None else self._mask

    def _decoded(self, codes: NDArray[np.int32]) -> Labelling:
        return list(map(self.labels_.__getitem__, codes.tolist()))

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
        n_sparse, d, L = self.encoder.n_sparse, self._n_token_features, self.n_labels
        labels = codes.astype(np.int64)
        indices, values = [], []
        if batch.indptr is not None and batch.indices is not None:
            ids = batch.indices.astype(np.int64)
            indices.append(ids * L + np.repeat(labels, np.diff(batch.indptr)))
            ones = np.ones(len(batch.indices))
            values.append(ones if batch.values is None else batch.values.astype(np.float64))
        if batch.dense is not None:
            columns = n_sparse + np.arange(batch.n_dense)
            indices.append((columns * L + labels[:, None]).ravel())
            values.append(batch.dense.astype(np.float64).ravel())
        edges = [(d + labels[:-1]) * L + labels[1:], (d + L) * L + labels[:1]]
        edges.append((d + L + 1) * L + labels[-1:])
        for t, g in _pairs_of(batch):
            edges.append((d + L + 2 + g * L + labels[t - 1]) * L + labels[t])
        indices += edges
        values.append(np.ones(sum(map(len, edges))))
        return np.concatenate(indices), np.concatenate(values)

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
        unknown = truth < 0
        if self._cost is None:
            return float(np.sum(truth != labels))
        costs = np.where(unknown, self._cost.max(), self._cost[truth, labels])
        return float(costs.sum())

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
        d, L = self._n_token_features, self.n_labels
        transition, start, end = rows[d : d + L], rows[d + L], rows[d + L + 1]
        batch = self.encoder.transform([x])
        unary = self._unary(batch, rows[:d])
        if truth is not None:
            check_lengths([x], [truth])
            codes, _ = encode_labels([truth], self._codes)
            unary += (1.0 - np.eye(L) if self._cost is None else self._cost)[codes]
        elif self._mask is not None:
            transition, start, end = (
                np.where(allowed.reshape(weight.shape) != 0, weight, -np.inf)
                for weight, allowed in zip((transition, start, end), self._mask, strict=True)
            )
        steps: NDArray[np.float64] = np.repeat(transition[None], batch.n_tokens, axis=0)
        for t, g in _pairs_of(batch):
            steps[t] += rows[d + L + 2 + g[:, None] * L + np.arange(L)].sum(axis=0)
        return self._decoded(_viterbi(unary, steps, start, end))

    def _require_weights(self, method: str) -> None:
        self._require_prepared()
        if self._kernel is not None:
            raise NotCompatibleError(
                f"{method} is about weights of features, and a chain with the kernel "
                f'{self._kernel.name} has none; use kernel="linear", or predict'
            )

    def _unary(self, batch: EncodedBatch, coef: Floats) -> NDArray[np.float64]:
        """Return [T][L]: the scores of the labels of one sequence without transitions."""
        n_sparse = self.encoder.n_sparse
        unary = np.zeros((batch.n_tokens, self.n_labels))
        if batch.indptr is not None and batch.indices is not None:
            token = np.repeat(np.arange(batch.n_tokens), np.diff(batch.indptr))
            values = 1.0 if batch.values is None else batch.values[:, None].astype(np.float64)
            np.add.at(unary, token, values * coef[batch.indices])
        if batch.dense is not None:
            unary += batch.dense.astype(np.float64) @ coef[n_sparse:]
        return unary


# --- small helpers -------------------------------------------------------------------------------


def _split(labels: Labelling, offsets: NDArray[np.int64]) -> list[Labelling]:
    return [labels[a:b] for a, b in itertools.pairwise(offsets.tolist())]


def _identity(kernel: Kernel | None) -> list[Any]:
    """Return what tells one kernel from another."""
    if kernel is None:
        return []
    return [kernel.kind, kernel.degree, kernel.gamma, kernel.coef0, kernel.matrix]


def _weight_dtype(dtype: Any) -> np.dtype[Any]:
    for kind in (np.dtype(np.float32), np.dtype(np.float64)):
        if dtype in (kind, kind.name):
            return kind
    raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}')


def _aligned_zeros(n: int, dtype: np.dtype[Any]) -> Floats:
    array: Floats = _native.aligned_array(n, dtype.itemsize == 4)
    array[:] = 0
    return array


def _pairs_of(batch: EncodedBatch) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the tokens of one sequence that have pair features, but for the first, with them."""
    if batch.pair_indptr is None or batch.pair_indices is None:
        return
    for t in range(1, batch.n_tokens):
        features = batch.pair_indices[batch.pair_indptr[t] : batch.pair_indptr[t + 1]]
        if len(features):
            yield t, features.astype(np.int64)


def _viterbi(
    unary: NDArray[np.float64], steps: Floats, start: Floats, end: Floats
) -> NDArray[np.int32]:
    """Return the codes of the best path; -inf forbids an edge. ``steps[t]`` leads to token t."""
    T = len(unary)
    back = np.zeros(unary.shape, dtype=np.int32)
    best = unary[0] + start
    for t in range(1, T):
        reach = best[:, None] + steps[t]
        back[t] = reach.argmax(axis=0)
        best = reach.max(axis=0) + unary[t]
    best = best + end
    if np.isneginf(best.max()):
        raise ValueError("no labelling of the sequence uses only allowed transitions")
    path = np.empty(T, dtype=np.int32)
    path[-1] = best.argmax()
    for t in range(T - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path
