"""The memory that a command took, for its summary."""

from __future__ import annotations

import sys

__all__ = ["peak_rss_mb"]


def peak_rss_mb() -> float | None:
    """Return the most memory that this process had so far, in MB; None where it is unknown."""
    try:
        import resource
    except ImportError:  # the module exists on Unix only
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
