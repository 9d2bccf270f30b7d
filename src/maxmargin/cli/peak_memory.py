"""The memory that a command took, for its summary."""

from __future__ import annotations

import sys

__all__ = ["peak_rss_mb"]


def peak_rss_mb() -> float | None:
    """Return the most memory that this process had so far, in MB; None where it is unknown.

    On Linux what the system calls the high-water mark of this program. (``ru_maxrss`` has that of
    the process that started it, too, if it was larger.)
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1.024e-3
    except (OSError, ValueError, IndexError):
        pass  # another system
    try:
        import resource
    except ImportError:  # the module exists on Unix only
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
