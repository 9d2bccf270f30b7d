"""Kernels between tokens, for the emissions of a `Chain`.

With a kernel k the score of label l at a token x is Σ_s k(x, x_s) B[s][l] over training tokens s,
in the place of w_l·x. B are sums of multipliers; most of its rows are zero in the end, and the
tokens of the others, the *support tokens*, are what the model keeps. Transitions, start and end
have weights as ever.

Training is native code (``native/kernel_chain.hpp``): it computes rows of the kernel's matrix when
they are needed and keeps those used last, in a bounded number of bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _native
from maxmargin.checks import is_number, is_whole
from maxmargin.errors import NotCompatibleError, StructureError
from maxmargin.features import EncodedBatch
from maxmargin.structures.chain_layout import ChainLayout, ChainWeights, Floats
from maxmargin.structures.tokens import distinct_tokens, token_matrix, token_variance

__all__ = ["Kernel", "KernelLike", "KernelProblem", "KernelWeights", "make_kernel", "token_numbers"]

#: Names that ``kernel="..."`` takes; "linear" is the chain without the detour.
KINDS = ("linear", "poly", "rbf", "precomputed")

#: Bytes of kernel values that prediction computes at once.
BLOCK_BYTES = 2**25

#: Tokens of which a user's function is looked at before training.
CHECKED_TOKENS = 32


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel between tokens, with its parameters.

    Parameters
    ----------
    kind : {"linear", "poly", "rbf", "precomputed"} or callable
        "linear": x·x'. "poly": (gamma x·x' + coef0)^degree. "rbf": exp(-gamma ‖x - x'‖²).
        "precomputed": entries of ``matrix``. A callable takes two matrices of tokens, (n1, d) and
        (n2, d), and returns the (n1, n2) values as an array; the matrices are NumPy arrays where X
        has arrays, else SciPy sparse matrices in CSR format.
    degree : int
        Of "poly"; at least 1.
    gamma : "scale", "auto" or float
        Of "poly" and "rbf". "scale": 1 / (n_features · variance of the features); "auto":
        1 / n_features; as in scikit-learn.
    coef0 : float
        Of "poly".
    matrix : array of shape (n, n) or None
        Of "precomputed": the values between all tokens that there are, those to be tagged later
        among them. Sequences of X are then sequences of token numbers, places in this matrix.
    cache_mb : float
        Megabytes that training may use to keep rows of the kernel's matrix; positive. It makes no
        difference to the result.

    Notes
    -----
    ``kernel="linear"`` of a `Chain` is the chain without kernels; ``kernel=Kernel("linear")`` is
    the same model through the kernel, which pays where there are far more features than tokens.
    """

    kind: Any = "rbf"
    degree: int = 2
    gamma: Any = "scale"
    coef0: float = 1.0
    matrix: Any = field(default=None, repr=False)
    cache_mb: float = 200

    def __post_init__(self) -> None:
        if not callable(self.kind) and self.kind not in KINDS:
            raise ValueError(
                f"kernel must be one of {', '.join(map(repr, KINDS))}, a function of two matrices "
                f"or a Kernel; got {self.kind!r}"
            )
        if not is_whole(self.degree, 1) or self.degree > 1000:
            raise ValueError(f"degree must be a whole number from 1 to 1000, got {self.degree!r}")
        if self.gamma not in ("scale", "auto") and not is_number(self.gamma, above=0.0):
            raise ValueError(
                f'gamma must be "scale", "auto" or a positive number, got {self.gamma!r}'
            )
        if not is_number(self.coef0):
            raise ValueError(f"coef0 must be a finite number, got {self.coef0!r}")
        if not is_number(self.cache_mb, above=0.0):
            raise ValueError(f"cache_mb must be a positive number, got {self.cache_mb!r}")
        if (self.kind == "precomputed") != (self.matrix is not None):
            raise ValueError(
                'a precomputed kernel has a matrix, and no other has: Kernel("precomputed", '
                f"matrix=K); got kind {self.kind!r} and a matrix of type "
                f"{type(self.matrix).__name__}"
            )

    @property
    def precomputed(self) -> bool:
        """Whether tokens are places in a matrix."""
        return isinstance(self.kind, str) and self.kind == "precomputed"

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.kind if isinstance(self.kind, str) else getattr(self.kind, "__name__", "kernel")

    def resolved(self, batch: EncodedBatch) -> Kernel:
        """Return the kernel with gamma as a number.

        Parameters
        ----------
        batch : EncodedBatch
            The training tokens.

        Returns
        -------
        Kernel
            What training and prediction use.
        """
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = 1.0 / (batch.n_sparse + batch.n_dense)
            variance = token_variance(batch) if self.gamma == "scale" else 1.0
            gamma = gamma / variance if variance > 0 else 1.0
        return replace(self, gamma=float(gamma))

    def between(self, tokens: EncodedBatch) -> _native.TokenKernel:
        """Return the native kernel between some tokens; gamma must be a number.

        Parameters
        ----------
        tokens : EncodedBatch
            Distinct tokens, each a sequence of its own.

        Returns
        -------
        _native.TokenKernel
            It computes rows and blocks of their matrix.
        """
        if self.precomputed:
            return _native.MatrixKernel(self.matrix, _places(tokens))
        if callable(self.kind):
            return self._between_by_function(tokens)
        features = _features(tokens)
        return _native.FeatureKernel(
            self.kind, self.gamma, self.coef0, self.degree, tokens.n_sparse, **features
        )

    def _between_by_function(self, tokens: EncodedBatch) -> _native.TokenKernel:
        matrix = token_matrix(tokens)

        def block(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
            return self.values(matrix[first], matrix[second])

        some = np.arange(min(tokens.n_tokens, CHECKED_TOKENS))
        _check_symmetric(block(some, some), f"the kernel {self.name}")
        return _native.PythonKernel(block, tokens.n_tokens)

    def values(self, first: Any, second: Any) -> NDArray[np.float64]:
        """Return the values of a user's function, checked.

        Parameters
        ----------
        first, second : array or sparse matrix
            Tokens, one a row.

        Returns
        -------
        array of shape (n1, n2)
            Finite.
        """
        wanted = (first.shape[0], second.shape[0])
        try:
            found = self.kind(first, second)
        except Exception as error:
            raise StructureError(
                f"the kernel {self.name} failed on matrices of the shapes {first.shape} and "
                f"{second.shape}: {type(error).__name__}: {error}",
                method=self.name,
            ) from error
        try:
            found = found.toarray() if hasattr(found, "toarray") else found
            values = np.ascontiguousarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            raise StructureError(
                f"the kernel {self.name} returned an object of type {type(found).__name__}; "
                f"expected an array of numbers of the shape {wanted}",
                method=self.name,
            ) from None
        if values.shape != wanted:
            raise StructureError(
                f"the kernel {self.name} returned an array of the shape {np.shape(found)}; "
                f"expected {wanted}",
                method=self.name,
            )
        if not np.isfinite(values).all():
            raise StructureError(
                f"the kernel {self.name} returned {values[~np.isfinite(values)][0]}; "
                "expected finite numbers",
                method=self.name,
            )
        return values


#: A kernel between tokens: its name, a function of two matrices, or a `Kernel`.
KernelLike: TypeAlias = str | Callable[[Any, Any], ArrayLike] | Kernel


def make_kernel(
    kernel: Any, *, degree: Any, gamma: Any, coef0: Any, cache_mb: Any
) -> Kernel | None:
    """Turn what a user wrote into a kernel.

    Parameters
    ----------
    kernel : str, callable or Kernel
        A `Kernel` brings its own parameters.
    degree, gamma, coef0, cache_mb
        Parameters of the others.

    Returns
    -------
    Kernel or None
        None for "linear", which needs none. A matrix has been checked.
    """
    if isinstance(kernel, Kernel):
        if kernel.precomputed:
            return replace(kernel, matrix=_checked_matrix(kernel.matrix))
        return kernel
    if isinstance(kernel, str) and kernel == "linear":
        return None
    return Kernel(kernel, degree, gamma, coef0, cache_mb=cache_mb)


class KernelProblem(_native.KernelProblem):
    """A native training problem of a chain with a kernel.

    Parameters
    ----------
    batch : EncodedBatch
        The training sequences.
    kernel : Kernel
        As `Kernel.resolved` gives it.
    **parts
        Further arguments of a native ``ChainProblem``: labels, costs, weights.
    """

    def __init__(self, batch: EncodedBatch, kernel: Kernel, **parts: Any) -> None:
        self.kernel = kernel
        kinds, self.tokens = distinct_tokens(batch)
        self.n_labels = int(parts["n_labels"])
        chain = _own_features(batch.offsets, kinds, self.tokens.n_tokens, **parts)
        super().__init__(chain, kernel.between(self.tokens), int(kernel.cache_mb * 1e6))

    def model_weights(self, engine: _native.Engine) -> KernelWeights:
        """Return what an engine has learned so far.

        Parameters
        ----------
        engine : Engine
            It trains this problem.

        Returns
        -------
        KernelWeights
            With the support tokens only.
        """
        layout = ChainLayout(self.tokens.n_tokens, 0, self.n_labels)
        rows = layout.rows(engine.sums().astype(np.float64))
        support = np.flatnonzero(rows[layout.coef].any(axis=1))
        if len(support) == 0:
            support = np.arange(1)  # a model of nothing is a model still
        tokens, kernel = self.tokens.take(support), self.kernel
        if kernel.precomputed:
            kernel = replace(kernel, matrix=kernel.matrix[:, _places(tokens)])
        return KernelWeights(kernel, tokens, rows[support], rows[layout.edges].copy())


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """What a chain with a kernel has learned; the counterpart of an array of weights.

    Attributes
    ----------
    kernel : Kernel
        With its parameters as numbers. A precomputed one has the columns of the support tokens.
    support : EncodedBatch
        The support tokens, each a sequence of its own.
    dual_coef : array of shape (n_support, L)
        Their coefficients; labels in the order of ``Chain.labels_``.
    edges : array of shape (L + 2, L)
        Weights of the transitions by first label, of start and of end.
    """

    kernel: Kernel
    support: EncodedBatch
    dual_coef: NDArray[np.float64]
    edges: NDArray[np.float64]

    @property
    def n_support(self) -> int:
        """Number of support tokens."""
        return len(self.dual_coef)

    def __getstate__(self) -> dict[str, Any]:
        # Native memory cannot be written down; it is made anew when it is needed.
        return {k: v for k, v in self.__dict__.items() if k not in ("_native_kernel", "_matrix")}

    @functools.cached_property
    def _native_kernel(self) -> Any:
        return self.kernel.between(self.support)

    @functools.cached_property
    def _matrix(self) -> Any:
        return token_matrix(self.support)

    def split(self) -> ChainWeights:
        """Return the weights of the edges by what they belong to; ``coef`` has no rows.

        Returns
        -------
        ChainWeights
            Labels in the order of ``Chain.labels_``.
        """
        return ChainLayout(0, 0, self.edges.shape[1]).split(self.edges)

    def values(self, tokens: EncodedBatch) -> NDArray[np.float64]:
        """Return the kernel between tokens and the support tokens.

        Parameters
        ----------
        tokens : EncodedBatch
            Any tokens.

        Returns
        -------
        array of shape (n_tokens, n_support)
            The values.
        """
        if self.kernel.precomputed:
            values: NDArray[np.float64] = self.kernel.matrix[_places(tokens)]
            return values
        if callable(self.kernel.kind):
            return self.kernel.values(token_matrix(tokens), self._matrix)
        flat: NDArray[np.float64] = self._native_kernel.rows_of(**_features(tokens))
        return flat.reshape(tokens.n_tokens, self.n_support)

    def emissions(self, tokens: EncodedBatch) -> NDArray[np.float64]:
        """Return the scores of all labels at some tokens, without transitions.

        Parameters
        ----------
        tokens : EncodedBatch
            Any tokens, each a sequence of its own.

        Returns
        -------
        array of shape (n_tokens, L)
            The scores.
        """
        scores = np.empty((tokens.n_tokens, self.dual_coef.shape[1]))
        step = max(1, BLOCK_BYTES // (8 * self.n_support))
        for begin in range(0, tokens.n_tokens, step):
            some = slice(begin, min(begin + step, tokens.n_tokens))
            block = tokens.take(np.arange(some.start, some.stop))
            with np.errstate(over="ignore", invalid="ignore"):
                scores[some] = self.values(block) @ self.dual_coef
        if not np.isfinite(scores).all():
            raise ValueError(
                f"the kernel {self.kernel.name} gives scores that are not finite; are there "
                "features of very large size?"
            )
        return scores

    def decodable(self, batch: EncodedBatch) -> tuple[_native.ChainProblem, Floats]:
        """Return sequences as a problem that can be decoded, and the weights to decode it with.

        Each distinct token is a feature of its own, whose weights are its scores.

        Parameters
        ----------
        batch : EncodedBatch
            Any sequences.

        Returns
        -------
        problem : ChainProblem
            The sequences.
        weights : array
            Native weights.
        """
        kinds, tokens = distinct_tokens(batch)
        L = self.dual_coef.shape[1]
        layout = ChainLayout(tokens.n_tokens, 0, L)
        weights = layout.pad(np.vstack([self.emissions(tokens), self.edges]), "float64")
        return _own_features(batch.offsets, kinds, tokens.n_tokens, n_labels=L), weights


# --- tokens as numbers ---------------------------------------------------------------------------


def token_numbers(X: Any, kernel: Kernel) -> Any:
    """Turn sequences of token numbers into what an encoder takes.

    Parameters
    ----------
    X : list of sequences of int
        For a precomputed kernel: places in its matrix.
    kernel : Kernel
        The kernel.

    Returns
    -------
    list of arrays of shape (T, 1)
        The same numbers; X itself if the kernel is not precomputed.
    """
    if not kernel.precomputed:
        return X
    n, result = len(kernel.matrix), []
    for i, sequence in enumerate(X):
        numbers_ = np.asarray(sequence)
        if numbers_.ndim == 2 and numbers_.shape[1] == 1:
            numbers_ = numbers_[:, 0]
        if numbers_.ndim != 1 or numbers_.dtype.kind not in "iu":
            raise ValueError(
                f"sequence {i} is a {numbers_.ndim}-d array of {numbers_.dtype}; with a "
                "precomputed kernel, expected a sequence of token numbers (int)"
            )
        outside = (numbers_ < 0) | (numbers_ >= n)
        if outside.any():
            t = int(np.argmax(outside))
            raise ValueError(
                f"sequence {i}, token {t} is number {numbers_[t]}; expected 0 to {n - 1}, a row "
                "of the kernel's matrix"
            )
        result.append(numbers_[:, None].astype(np.float64))
    return result


def _places(tokens: EncodedBatch) -> NDArray[np.uint32]:
    if tokens.dense is None or tokens.n_dense != 1:
        raise NotCompatibleError("with a precomputed kernel, X must be sequences of token numbers")
    return tokens.dense[:, 0].astype(np.uint32)


# --- small helpers -------------------------------------------------------------------------------


def _own_features(
    offsets: NDArray[np.int64], kinds: NDArray[np.uint32], n: int, **parts: Any
) -> _native.ChainProblem:
    """Return a chain in which each distinct token is a sparse feature of its own."""
    indptr = np.arange(len(kinds) + 1, dtype=np.int64)
    return _native.ChainProblem(offsets=offsets, n_sparse=n, indptr=indptr, indices=kinds, **parts)


def _features(tokens: EncodedBatch) -> dict[str, Any]:
    """Arguments of a native FeatureKernel."""
    dense = None if tokens.dense is None else tokens.dense.astype(np.float64, copy=False)
    narrow = tokens.values is not None and tokens.values.dtype == np.float32
    return {
        "indptr": tokens.indptr,
        "indices": tokens.indices,
        "values": tokens.values if narrow else None,
        "values64": None if narrow else tokens.values,
        "dense": dense,
    }


def _checked_matrix(matrix: Any) -> NDArray[np.float64]:
    name = "the matrix of the kernel"
    try:
        K = np.ascontiguousarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} is an object of type {type(matrix).__name__}; expected an array of numbers"
        ) from None
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not len(K):
        raise ValueError(
            f"{name} has the shape {np.shape(matrix)}; expected (n, n), tokens x tokens"
        )
    if not np.isfinite(K).all():
        a, b = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"{name} has {K[a, b]} at [{a}, {b}]; expected finite numbers")
    _check_symmetric(K, name)
    return K


def _check_symmetric(K: NDArray[np.float64], name: str) -> None:
    off = np.abs(K - K.T) > 1e-6 * np.abs(K).max()
    if off.any():
        a, b = np.argwhere(off)[0]
        raise ValueError(
            f"{name} has {K[a, b]:g} for tokens {a} and {b} but {K[b, a]:g} for {b} and {a}; "
            "expected a symmetric kernel"
        )
    if (np.diag(K) < 0).any():
        a = int(np.argmin(np.diag(K)))
        raise ValueError(
            f"{name} has {K[a, a]:g} for token {a} and itself; expected a positive semidefinite "
            "kernel, whose diagonal is not negative"
        )
