"""How much memory there is, and a clear refusal before an array that does not fit is asked for.

Linux grants nearly every allocation and kills the process later, when the pages are touched. So a
large array is compared with what is there before it is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["available_bytes", "format_bytes", "parse_bytes", "require_memory"]

#: What needs less is not looked at: to ask the system takes longer than to train on small data.
SMALL = 1 << 20


def available_bytes(root: str | Path = "/") -> int | None:
    """Return how many bytes this process can still use without swapping.

    Parameters
    ----------
    root : path
        Where the system's ``proc`` and ``sys`` are; another one only in tests.

    Returns
    -------
    int or None
        On Linux the least of ``MemAvailable`` and what the control groups (versions 1 and 2) of
        this process leave; elsewhere what ``sysconf`` says; None if nothing is known.
    """
    root = Path(root)
    found = [*_meminfo(root), *_control_groups(root)]
    if not found:
        found = list(_sysconf())
    return max(0, min(found)) if found else None


def _read(path: Path) -> str:
    """Text of a file, empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _meminfo(root: Path) -> Iterator[int]:
    for line in _read(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable" and value.split()[:1] and value.split()[0].isdigit():
            yield 1024 * int(value.split()[0])


def _control_groups(root: Path) -> Iterator[int]:
    """Yield what is left of the limit of each control group of this process, parents included."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            mount, limit, usage = "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            mount, limit = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            usage = "memory.usage_in_bytes"
        else:
            continue
        base = root / mount
        # In a container the path may be the host's, which is not visible: the mount then is the
        # group itself, which this walk up to the mount reaches anyway.
        group = base / path.strip("/")
        for place in (group, *group.parents):
            if place != base and base not in place.parents:
                break
            most, used = _read(place / limit).strip(), _read(place / usage).strip()
            if most.isdigit() and used.isdigit():  # no limit is "max" in version 2
                yield int(most) - int(used) + _reclaimable(place)


def _reclaimable(group: Path) -> int:
    """File cache that counts as used memory of a group but is given up on demand."""
    for line in _read(group / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.strip().isdigit():
            return int(value)
    return 0


def _sysconf() -> Iterator[int]:
    if not hasattr(os, "sysconf"):
        return
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            pages, size = os.sysconf(name), os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):  # not known on this system
            continue
        if pages > 0 and size > 0:
            yield pages * size
            return


def format_bytes(n_bytes: int) -> str:
    """Return a number of bytes as people read it.

    Parameters
    ----------
    n_bytes : int
        At least 0.

    Returns
    -------
    str
        For example "1.4 GB".

    Examples
    --------
    >>> format_bytes(1_400_000_000)
    '1.4 GB'
    """
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} PB"


def parse_bytes(text: str) -> int:
    """Read a number of bytes as people write it.

    Parameters
    ----------
    text : str
        A number, maybe with k, M, G or T behind it, and maybe with B behind that.

    Returns
    -------
    int
        The number.

    Examples
    --------
    >>> parse_bytes("500M")
    500000000
    """
    units = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    digits = text.rstrip("kKMGTB").strip()
    unit = text[len(text.rstrip("kKMGTB")) :].removesuffix("B").replace("K", "k")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18) or unit not in units:
        raise ValueError(
            f"{text!r} is not a size: expected a number of bytes, or one with k, M, G or T"
        )
    return int(digits) * units[unit]


def require_memory(
    name: str,
    n_bytes: int,
    *,
    advice: str = 'use fewer features, drop the rare ones, or take dtype="float32"',
) -> None:
    """Raise a MemoryError in words if an array cannot fit.

    Parameters
    ----------
    name : str
        What the memory is for, to complete "... needs 3.1 GB".
    n_bytes : int
        What it needs.
    advice : str
        What the user can do about it.

    Raises
    ------
    MemoryError
        If more is needed than there is. Nothing is raised where that is not known.
    """
    if n_bytes < SMALL:
        return
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{name} needs {format_bytes(n_bytes)}, but only {format_bytes(available)} of memory "
            f"are available; {advice}"
        )
