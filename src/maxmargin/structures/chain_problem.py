"""Native problems of a chain: their arguments, and the memory that training on them needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.features import EncodedBatch
from maxmargin.memory import require_memory
from maxmargin.structures.chain_layout import ChainLayout, weight_dtype
from maxmargin.structures.chain_options import sequence_weights, token_weights
from maxmargin.structures.kernels import Kernel, KernelProblem

__all__ = ["kernel_memory", "kernel_problem", "problem_arguments", "weights_memory"]


def problem_arguments(
    batch: EncodedBatch,
    n_labels: int,
    codes: NDArray[np.int32] | None = None,
    *,
    cost: NDArray[np.float64] | None = None,
    token_weight: Any = None,
    sample_weight: Any = None,
    double: bool = False,
) -> dict[str, Any]:
    """Return the arguments of a native ``ChainProblem``.

    Parameters
    ----------
    batch : EncodedBatch
        The sequences.
    n_labels : int
        Number of labels.
    codes : int32 array of shape (n_tokens,) or None
        The true labels; with them the problem can be trained.
    cost : array of shape (L, L) or None
        The cost of errors; None for Hamming.
    token_weight, sample_weight
        As for `Chain.make_problem`.
    double : bool
        Whether weights of tokens are kept in 8 bytes.

    Returns
    -------
    dict
        The arguments by name.

    Raises
    ------
    MemoryError
        If a sequence is too long to be trained on.
    """
    if codes is not None:
        _require_trainable(batch, n_labels)
    dense, values = batch.dense, batch.values
    single = dense is not None and dense.dtype == np.float32
    narrow = values is not None and values.dtype == np.float32
    factor = token_weights(token_weight, batch.lengths)
    mapped = batch.mapped
    return {
        "n_labels": n_labels,
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
        "cost": cost,
        "example_weight": sequence_weights(sample_weight, batch.n_sequences),
        "n_pair": batch.n_pair,
        "pair_indptr": batch.pair_indptr,
        "pair_indices": batch.pair_indices,
        **({} if mapped is None else {"mapping": mapped.pages, "file_hash": mapped.hash}),
    }


def kernel_problem(batch: EncodedBatch, kernel: Kernel, arguments: dict[str, Any]) -> KernelProblem:
    """Make the training problem of a chain with a kernel.

    Parameters
    ----------
    batch : EncodedBatch
        The sequences.
    kernel : Kernel
        With its parameters as numbers.
    arguments : dict
        What `problem_arguments` gave.

    Returns
    -------
    KernelProblem
        What a solver trains.
    """
    kept = ("n_labels", "labels", "token_weight", "token_weight64", "cost", "example_weight")
    return KernelProblem(batch, kernel, **{name: arguments[name] for name in kept})


def _require_trainable(batch: EncodedBatch, n_labels: int) -> None:
    """Refuse a sequence whose tables do not fit, before the system ends the process."""
    lengths = batch.lengths
    i = int(np.argmax(lengths))
    n, begin = int(lengths[i]), int(batch.offsets[i])
    padded = ChainLayout.of(batch, n_labels).width("float32")
    # Scores and forward scores with room to grow, the transitions into each token where they
    # differ, codes and cells of a plane, and twice the features of its tokens.
    a_token = 10 * padded + 64 + (4 * padded * n_labels if batch.n_pair else 0)
    features = 0 if batch.indptr is None else int(batch.indptr[begin + n] - batch.indptr[begin])
    needed = n * a_token + 8 * features
    if needed > 1_000_000:  # of less, no system runs short
        require_memory(
            f"training on sequence {i}, of {n} tokens and {n_labels} labels,",
            needed,
            advice="cut it into shorter sequences",
        )


def weights_memory(layout: ChainLayout, dtype: Any) -> tuple[str, int]:
    """Estimate what the weights need in training, data and planes not counted.

    Parameters
    ----------
    layout : ChainLayout
        The rows of the weights.
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
    L = layout.n_labels
    pairs = f" + {layout.n_pair} pair features x {L}" if layout.n_pair else ""
    name = (
        f"the weights ({layout.n_token_features} features + {L} transitions + 2"
        f"{pairs}, times {L} labels, {weight_dtype(dtype).name}, with a copy and the 8-byte "
        "certificate)"
    )
    return name, 2 * layout.n_bytes(dtype) + layout.n_bytes("float64")


def kernel_memory(kernel: Kernel, n_tokens: int, n_labels: int, dtype: Any) -> tuple[str, int]:
    """Estimate what training with a kernel needs, data and planes not counted.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_tokens : int
        Number of different tokens.
    n_labels : int
        Number of labels.
    dtype : "float32" or "float64"
        Type of the coefficients.

    Returns
    -------
    name : str
        What is counted, in words.
    n_bytes : int
        Coefficients, scores and the rows of the kernel's matrix that are kept.
    """
    kind = weight_dtype(dtype)
    layout = ChainLayout(n_tokens, 0, n_labels)  # each different token is a feature of its own
    cache = min(int(kernel.cache_mb * 1e6), n_tokens * n_tokens * kind.itemsize)
    # Coefficients, scores and the change of a step; the first two once more to certify them.
    n_bytes = 3 * layout.n_bytes(kind) + 2 * layout.n_bytes("float64") + cache
    name = (
        f"coefficients and scores ({n_tokens} different tokens + {n_labels} transitions + 2, times "
        f"{n_labels} labels, {kind.name} and for the certificate 8-byte, and {cache / 1e6:.0f} MB "
        "of the kernel)"
    )
    return name, n_bytes
