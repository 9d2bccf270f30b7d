"""The earlier model that a tagger is adapted from, as ``SequenceTagger(prior=...)`` takes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.checks import is_real
from maxmargin.io.objective import PRIOR
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_prior import ChainPrior

__all__ = ["described_prior", "prior_of"]


def prior_of(prior: Any, precision: Any) -> ChainPrior | None:
    """Make the prior of a chain.

    Parameters
    ----------
    prior : SequenceTagger, path or None
        A trained tagger, or its model file.
    precision : float
        How strongly weights are held at its values.

    Returns
    -------
    ChainPrior or None
        For `Chain`.

    Raises
    ------
    TypeError, ValueError, NotCompatibleError, NotFittedError
        If it is no trained tagger.
    ModelFormatError, OSError
        If it is no model file of one.
    """
    if prior is None:
        return None
    if isinstance(prior, str | os.PathLike):
        from maxmargin.io.tagger_file import dense_weights, load_tagger

        model = load_tagger(prior, None)
        return ChainPrior(model.chain, dense_weights(model), precision)
    structure = getattr(prior, "structure_", None)
    if not isinstance(structure, Chain):
        if hasattr(prior, "get_params") and structure is None:
            check_is_fitted(prior, "weights_")
        raise TypeError(
            f"prior is {prior!r:.80}; expected a trained SequenceTagger, or the path of a model "
            "file of one"
        )
    weights = prior.weights_
    return ChainPrior(structure, weights if isinstance(weights, np.ndarray) else None, precision)


def described_prior(prior: Any, precision: Any) -> str:
    """Say in a few words what a prior is, for a model file, which does not hold it.

    Parameters
    ----------
    prior : SequenceTagger or path
        As `prior_of` takes it.
    precision : float
        How strongly weights are held at its values.

    Returns
    -------
    str
        It begins with `maxmargin.io.objective.PRIOR`.
    """
    named = isinstance(prior, str | os.PathLike)
    name = Path(os.fspath(prior)).name if named else type(prior).__name__
    strength = f"{precision:g}" if is_real(precision) else "?"
    return f"{PRIOR}{name[:100]} (prior_precision={strength})"
