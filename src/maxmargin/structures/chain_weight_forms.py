"""The weights of a chain in their forms: padded as native code has them, plain, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.structures.chain_decoding import ChainDecoding, Weights
from maxmargin.structures.chain_layout import ALIGNMENT, ChainLayout, ChainWeights, Floats
from maxmargin.structures.chain_learning import Encoder
from maxmargin.structures.chain_names import named_weights
from maxmargin.structures.chain_problem import kernel_memory, weights_memory
from maxmargin.structures.kernels import Kernel, KernelWeights

__all__ = ["ChainWeightForms"]


class ChainWeightForms(ChainDecoding):
    """Sizes and layouts of the weights of a chain."""

    encoder: Encoder
    _kernel: Kernel | None
    _n_kernel_tokens: int

    # --- sizes -----------------------------------------------------------------------------------

    @property
    def layout(self) -> ChainLayout:
        """The rows of the weights: which belong to features, transitions, start and end."""
        return ChainLayout.of(self.encoder, self.n_labels)

    @property
    def n_features(self) -> int | None:  # type: ignore[override]
        """Number of weights without padding; None before ``prepare``."""
        return self.layout.size if self.labels_ else None

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
        return self.layout.n_weights(dtype)

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
        if self._kernel is None:
            return weights_memory(self.layout, dtype)
        return kernel_memory(self._kernel, self._n_kernel_tokens, self.n_labels, dtype)

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
            return weights.split()
        self._check_weights(weights)
        return self.layout.split(self.layout.rows(weights))

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
        return self.layout.pad(self._rows(w), dtype)

    def plain_vector(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return an array with an entry for each weight, without padding.

        Parameters
        ----------
        values : array
            Of ``n_features`` entries, or in the native layout of 4- or 8-byte weights.

        Returns
        -------
        array of shape (n_features,) or None
            None if it has another number of entries.
        """
        self._require_weights("an array over the weights")
        return self.layout.plain_vector(values)

    def native_vector(self, values: NDArray[Any], dtype: Any) -> NDArray[np.float64]:
        """Return an array with an entry for each weight in the native layout.

        Parameters
        ----------
        values : array of shape (n_features,)
            Without padding.
        dtype : "float32" or "float64"
            Of the weights whose layout it gets; the result is of float64.

        Returns
        -------
        array of shape (n_weights(dtype),)
            Padded with zeros.
        """
        return self.layout.native_vector(values, dtype)

    def weights_named(self, where: Any) -> NDArray[np.bool_]:
        """Return which weights a description by names means.

        Parameters
        ----------
        where : str, list of str or dict
            As in `maxmargin.Bounded`.

        Returns
        -------
        bool array of shape (n_features,)
            Without padding.
        """
        self._require_weights("a choice of weights by name")
        return named_weights(self, where)

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
        result = self.layout.zeros(weights.dtype)
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
        return w.reshape(self.layout.n_rows, self.n_labels)

    def _require_weights(self, method: str) -> None:
        self._require_prepared()
        if self._kernel is not None:
            raise NotCompatibleError(
                f"{method} is about weights of features, and a chain with the kernel "
                f'{self._kernel.name} has none; use kernel="linear", or predict'
            )
