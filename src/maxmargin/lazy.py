"""What is there without importing it: large libraries are imported by those who need them.

`maxmargin tag` must not wait for SciPy and scikit-learn, which take longer to import than it takes
to tag a book.
"""

from __future__ import annotations

import sys

__all__ = ["is_sparse"]


def is_sparse(thing: object) -> bool:
    """Whether it is a SciPy sparse matrix or array; whoever has one has imported SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(thing))
