"""Files that a command is going to write, checked before any work is done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_targets"]


def check_targets(
    targets: Sequence[tuple[str | None, str]], sources: Sequence[str | None]
) -> None:
    """Refuse files that cannot be written, or that are read from.

    Parameters
    ----------
    targets : sequence of (str or None, str)
        Files to write, and what each is for; None: not asked for.
    sources : sequence of str or None
        Files that are read.
    """
    import stat
    from pathlib import Path

    seen: dict[str, str] = {}
    for name, what in targets:
        if name is None:
            continue
        if not name:
            raise ValueError(f"the name of the {what} is empty; expected a file")
        try:
            mode = Path(name).stat().st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG
        if stat.S_ISDIR(mode):
            raise ValueError(f"{name}: is a directory; expected a file for the {what}")
        if not stat.S_ISREG(mode):  # a device or a pipe, which writing would replace by a file
            raise ValueError(f"{name}: is no regular file; expected one for the {what}")
        # Not Path.resolve, which raises a RuntimeError where symbolic links go in a circle.
        target = os.path.realpath(name)
        if not Path(target).parent.is_dir():
            raise ValueError(f"{name}: there is no directory {Path(name).parent}")
        if target in seen:
            raise ValueError(
                f"{name}: is to be the {seen[target]} and the {what}; expected two files"
            )
        seen[target] = what
        for read in sources:
            if read is not None and os.path.realpath(read) == target:
                raise ValueError(f"{name}: is read from; expected another file for the {what}")
