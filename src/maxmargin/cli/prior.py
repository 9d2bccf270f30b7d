"""``maxmargin train --prior OLD``: the model that is adapted, from its file to the summary."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.features.template import Template
    from maxmargin.io.objective import NotStored
    from maxmargin.selection import FitOptions
    from maxmargin.structures.chain import Chain
    from maxmargin.structures.chain_prior import ChainPrior

__all__ = [
    "encoder_like",
    "in_words",
    "prior_figures",
    "read_prior",
    "stored_prior",
    "template_like",
    "with_prior",
]


def read_prior(options: argparse.Namespace) -> ChainPrior | None:
    """Read the model of ``--prior``.

    Parameters
    ----------
    options : argparse.Namespace
        With ``prior`` and ``prior_precision``, if the command has them.

    Returns
    -------
    ChainPrior or None
        None without ``--prior``.
    """
    path = getattr(options, "prior", None)
    if path is None:
        return None
    from maxmargin.io.tagger_file import dense_weights, load_tagger
    from maxmargin.structures.chain_prior import ChainPrior

    model = load_tagger(path, None)
    return ChainPrior(model.chain, dense_weights(model), _precision(options))


def encoder_like(earlier: Any, made: Any, path: str) -> Any:
    """Return an encoder with the template of a prior, where the user gave none.

    Parameters
    ----------
    earlier : FeatureEncoder or TemplateEncoder
        That of the prior.
    made : TemplateEncoder
        That of the default template, with the user's other options.
    path : str
        The file of the prior, for messages.

    Returns
    -------
    TemplateEncoder
        It knows nothing yet.
    """
    from maxmargin.features.template_encoder import TemplateEncoder

    return TemplateEncoder(
        template_like(earlier, path),
        min_count=made.min_count,
        hash_bits=made.hash_bits,
        threads=made.threads,
        embeddings=earlier.embeddings if made.embeddings is None else made.embeddings,
    )


def template_like(earlier: Any, path: str) -> Template:
    """Return the template of a prior, where the user gave none.

    Parameters
    ----------
    earlier : FeatureEncoder or TemplateEncoder
        The encoder of the prior.
    path : str
        The file of the prior, for messages.
    """
    from maxmargin.features.template_encoder import TemplateEncoder

    if not isinstance(earlier, TemplateEncoder):
        raise ValueError(
            f"{path}: its features were made by a Python function, or were expanded; give the same "
            "function as --template, or a file of that format"
        )
    return earlier.template


def with_prior(fit_options: FitOptions, chain: Chain) -> FitOptions:
    """Return how to train, with the prior of a chain that has learned its features.

    Parameters
    ----------
    fit_options : FitOptions
        How to train without.
    chain : Chain
        Prepared.

    Returns
    -------
    FitOptions
        The same, if there is no prior.
    """
    if chain.prior is None:
        return fit_options
    return dataclasses.replace(fit_options, regularizer=chain.prior.regularizer(chain))


def prior_figures(chain: Chain) -> dict[str, Any]:
    """Return what of the prior and of the data is the same, for the summary."""
    if chain.prior is None:
        return {}
    return {"prior": {**chain.prior.match._asdict(), "precision": chain.prior.precision}}


def in_words(figures: dict[str, Any]) -> str:
    """Say in one line what `prior_figures` has."""
    from maxmargin.structures.chain_prior import PriorMatch

    match = PriorMatch(*(figures[name] for name in PriorMatch._fields))
    return f"prior of precision {figures['precision']:g}; {match}"


def stored_prior(options: argparse.Namespace) -> NotStored:
    """Return what a model file says of the prior, which it does not hold."""
    from maxmargin.io.objective import PRIOR, NotStored

    name = Path(options.prior).name[:100]
    return NotStored(f"{PRIOR}{name} (prior_precision={_precision(options):g})")


def _precision(options: argparse.Namespace) -> float:
    given = getattr(options, "prior_precision", None)
    return 1.0 if given is None else float(given)
