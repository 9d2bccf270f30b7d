"""`load`: an estimator from a model file."""

from __future__ import annotations

from typing import Any

from maxmargin.models.kinds import kind_of
from maxmargin.types import FeatureFunction, PathLike

__all__ = ["load"]


def load(path: PathLike, template: FeatureFunction | None = None, *, mmap: bool = False) -> Any:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
        A file that ``save`` of an estimator or ``maxmargin train`` wrote.
    template : callable, optional
        Of a model whose features were made by a function: that function.
    mmap : bool, default=False
        Whether to map the file into memory and not to read it, so that processes on one
        machine share the memory of large models. Nobody may then change the file in place
        (``cp new.mm model.mm``) while the model is in use: it would predict by whatever is in
        the file now, or the process would be killed (SIGBUS). Replacing it (``save``,
        ``maxmargin train``, ``mv``) does no harm.

    Returns
    -------
    estimator
        Fitted: a `SequenceTagger`, a `Parser`, ..., as the kind of the file says.

    Raises
    ------
    ModelFormatError
        If the file is damaged, of a newer version, of a kind that is not known, or no model file.
    OSError
        If it cannot be read.
    """
    return kind_of(path).load_estimator(path, template, mmap=mmap)
