"""What a model file tells of its training, checked: estimators show it, tagging does without."""

from __future__ import annotations

import os
from typing import Any

from maxmargin.errors import ModelFormatError

__all__ = ["check_told"]

#: Place in the meta data of a file -> the types that it may have.
_NUMBERS: dict[tuple[str, str], tuple[type, ...]] = {
    ("training", "passes"): (int,),
    ("certificate", "n_examples"): (int,),
    ("certificate", "primal"): (int, float),
    ("certificate", "dual"): (int, float),
    ("certificate", "C"): (int, float),
}


def check_told(path: Any, meta: dict[str, Any]) -> None:
    """Check that settings and figures of training are of the types that estimators expect.

    Parameters
    ----------
    path : str or path
        The file, for the message.
    meta : dict
        Its meta data.

    Raises
    ------
    ModelFormatError
        The message names the file and the place.
    """
    told = {name: meta.get(name, {}) for name in ("params", "training", "certificate")}
    for name, found in told.items():
        if not isinstance(found, dict):
            raise ModelFormatError(
                f"{os.fsdecode(path)}: {name} is a {type(found).__name__}; expected a dict"
            )
    for (name, key), wanted in _NUMBERS.items():
        found = told[name].get(key, 0)
        if type(found) not in wanted:
            raise ModelFormatError(
                f"{os.fsdecode(path)}: in {name}, {key} is a {type(found).__name__}; expected a "
                f"number ({' or '.join(kind.__name__ for kind in wanted)})"
            )
