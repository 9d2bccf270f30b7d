"""``C="auto"``: a weight of the loss that goes with the number and size of a token's features.

With half as many features a token, weights must be twice as large for the same margins, and what
they cost beside the loss grows. So the C that is best on development data falls with the mean
squared norm of the tokens' features: about 0.1 with the thirty to forty features of a built-in
template, 0.2 to 0.5 with those of sklearn-crfsuite's tutorial (``benchmarks/default_c.py``, which
compares the rules; no test file was read for the choice). Both ends are fixed: no smaller C than
the default is needed, and above 1 training takes longer for nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import NotCompatibleError
from maxmargin.features import EncodedBatch

__all__ = ["automatic_C", "is_auto", "refuse_auto", "squared_norm"]

#: C is this over the mean squared norm of the tokens' features, within these ends.
SHARE, LEAST, MOST = 3.0, 0.1, 1.0

#: Values that are squared at once.
PIECE = 1 << 20


def is_auto(C: object) -> bool:
    """Whether C is the word "auto"."""
    return isinstance(C, str) and C == "auto"


def refuse_auto(C: object, where: str) -> None:
    """Raise an error if C is "auto", for training that does not have all data at once.

    Parameters
    ----------
    C : object
        What was given.
    where : str
        The training that needs a number.
    """
    if is_auto(C):
        raise NotCompatibleError(
            f'C="auto" needs all labelled data at once; {where} needs a number, such as the C_ of '
            "a SequenceTagger that was fitted to a part of them"
        )


def squared_norm(batch: EncodedBatch) -> float:
    """Return the mean, over tokens, of the squared norm of a token's features.

    Parameters
    ----------
    batch : EncodedBatch
        The tokens.
    """
    total = 0.0
    if batch.values is not None:
        total += _sum_of_squares(batch.values)
    elif batch.indices is not None:
        total += len(batch.indices)
    if batch.dense is not None:
        total += _sum_of_squares(batch.dense.reshape(-1))
    return total / int(batch.offsets[-1])


def _sum_of_squares(values: NDArray[np.floating]) -> float:
    # In pieces, since the values may be those of a mapped file that is larger than memory.
    pieces = range(0, len(values), PIECE)
    squares = (np.square(values[k : k + PIECE], dtype=np.float64) for k in pieces)
    return float(sum(piece.sum() for piece in squares))


def automatic_C(batch: EncodedBatch, *, kernel: bool = False) -> float:  # noqa: N802
    """Return the C that ``C="auto"`` stands for.

    Parameters
    ----------
    batch : EncodedBatch
        The training tokens.
    kernel : bool
        Whether they are compared by a kernel: then it is the default of 0.1.
    """
    norm = squared_norm(batch)
    if kernel or norm == 0:
        return LEAST
    return float(np.clip(SHARE / norm, LEAST, MOST))
