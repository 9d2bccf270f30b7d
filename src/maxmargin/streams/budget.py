"""A budget of memory, and what it means for a training on mapped data.

What is in memory beside the weights, and about how much of it:

    base          the process as it is when training begins (the interpreter, lists of features)
    per sequence  `PER_SEQUENCE` bytes: the heads of blocks, slacks, gaps, an order of visits
    a window      the pages of its data, which are given back when it is left
    its planes    the planes of its sequences, and inner products of their tokens
    other planes  as many as fit; the rest wait in a temporary file

With R for what the budget leaves after the first two, planes that stay in memory when a window is
left have R / `KEPT`; the rest of R is for the window, for orders and buffers, and for what the
allocator cannot give back. A window has about `WINDOW_BYTES` of data, and R / `WINDOW` where that
is less.

Windows are small on purpose. Passes visit them in random order, and the sequences of one together.
With large windows the steps on one undo those on another: chunking (CoNLL-2000, 8,936 sentences)
takes 35 passes to a gap of 1 % in memory, 36, 47, 57 and 90 with windows of 8, 24, 50 and 100
sentences, and 212 to 292 with 500 or more.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

import numpy as np

from maxmargin.features.batch import EncodedBatch, WindowPlan
from maxmargin.memory import format_bytes
from maxmargin.streams.parts import check_directory

__all__ = ["plan_windows", "resident_bytes"]

#: Bytes for each sequence, in memory all the time.
PER_SEQUENCE = 80
#: The least that must be left for windows and planes.
LEAST = 8_000_000
#: Shares of what is left: the data of a window, and planes that are kept.
WINDOW = 12
KEPT = 2
#: Bytes of the data of a window, at most: some pages.
WINDOW_BYTES = 40_000


def resident_bytes() -> int:
    """Return the memory that this process has now (its resident set)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):  # not Linux: the most so far
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


def plan_windows(
    batch: EncodedBatch, memory: int, directory: Any = None, base: int | None = None
) -> WindowPlan | None:
    """Plan how a training on mapped data stays within a budget.

    Parameters
    ----------
    batch : EncodedBatch
        The data, mapped from a file.
    memory : int
        The budget in bytes: what the process may have in memory beside the weights.
    directory : path or None
        Where planes that do not fit are kept. None: the system's directory for temporary files.
    base : int or None
        What the process has in memory now; None: it is measured.

    Returns
    -------
    WindowPlan or None
        None if all data and planes fit in one window: training is as if all was in memory.

    Raises
    ------
    MemoryError
        If the budget is too small; the message says how much is needed.
    """
    base = resident_bytes() if base is None else base
    n, n_tokens = batch.n_sequences, max(batch.n_tokens, 1)
    a_token = batch.nbytes / n_tokens + 4
    longest = int(batch.lengths.max() * a_token)
    fixed = base + PER_SEQUENCE * n
    needed = fixed + max(LEAST, WINDOW * longest)
    if memory < needed:
        raise MemoryError(
            f"a budget of {format_bytes(memory)} is too small; these data need "
            f"{format_bytes(int(1.02 * needed))}: {format_bytes(base)} for the process as it is, "
            f"{format_bytes(PER_SEQUENCE * n)} for {n} sequences, and "
            f"{format_bytes(needed - fixed)} to work in (the weights come on top)"
        )
    left = memory - fixed
    if n_tokens * a_token <= left // WINDOW:
        return None
    window = min(left // WINDOW, WINDOW_BYTES)
    # By tokens, which are about equally large: to read where the features of each begin would
    # bring all of that into memory.
    tokens_each = max(int(window / a_token), 1)
    cuts = np.arange(tokens_each, n_tokens + tokens_each, tokens_each)
    ends = np.unique(np.clip(np.searchsorted(batch.offsets, cuts, side="right") - 1, 1, n))
    ends[-1] = n
    return WindowPlan(tuple(np.unique(ends).tolist()), left // KEPT, check_directory(directory))
