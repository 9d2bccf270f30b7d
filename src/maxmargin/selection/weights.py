"""Arrays of weights as native code takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin import _native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["aligned_zeros"]


def aligned_zeros(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return n weights of zero, at an address that native code can load whole vectors from."""
    weights: NDArray[Any] = _native.aligned_array(n, dtype.itemsize == 4)
    weights[:] = 0
    return weights
