"""`load`: an estimator from a model file."""

from __future__ import annotations

from typing import Any

from maxmargin.estimators.tagger import SequenceTagger

__all__ = ["load"]


def load(path: Any, template: Any = None) -> SequenceTagger:
    """Read a model from a file.

    Parameters
    ----------
    path : str or path
        A file that ``save`` of an estimator or ``maxmargin train`` wrote.
    template : callable, optional
        Of a model whose features were made by a function: that function.

    Returns
    -------
    SequenceTagger
        Fitted. (Taggers are the only models that have files so far.)

    Raises
    ------
    ModelFormatError
        If the file is damaged, of a newer version, or no model file.
    OSError
        If it cannot be read.
    """
    return SequenceTagger.load(path, template)
