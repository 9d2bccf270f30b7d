"""``maxmargin train --start FILE``: a training that begins with what an earlier one left.

FILE is a model, under whose weights the first planes are looked for, or a checkpoint of the same
data, whose multipliers are gone on from (`maxmargin.solvers.planting` says what either is worth).
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note
from maxmargin.cli.model import naming_model

if TYPE_CHECKING:
    from maxmargin.selection import FitOptions
    from maxmargin.structures.chain import Chain

__all__ = ["add_start", "check_start", "start_encoder", "with_start"]


def add_start(group: Any) -> None:
    """Add ``--start``."""
    group.add_argument(
        "--start",
        metavar="FILE",
        help="begin with what an earlier training left: a model (the planes that its weights find, "
        "and its template unless one is given), or a --checkpoint of the same data (its "
        "multipliers, whatever its -C was, which saves passes; a model alone hardly does)",
    )


def check_start(options: argparse.Namespace) -> None:
    """Refuse options that do not go with ``--start``.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.
    """
    if options.start is None:
        return
    for name in ("cv", "nonzeros", "resume", "prior"):
        if getattr(options, name, None):
            raise ValueError(f"--start does not go with --{name}")
    if options.slack == "hard":
        raise ValueError("--start does not go with --slack hard")


def _is_checkpoint(path: str) -> bool:
    from pathlib import Path

    with Path(path).open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def start_encoder(options: argparse.Namespace) -> Any:
    """Return the encoder of the model to start from; None if there is none.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.
    """
    path = getattr(options, "start", None)
    if path is None or _is_checkpoint(path):
        return None
    from maxmargin.io.tagger_file import load_tagger

    return load_tagger(path, _no_features if _by_function(path) else None).chain.encoder


def _by_function(path: str) -> bool:
    from maxmargin.io.container import read_header

    encoder = read_header(path).meta.get("encoder")
    return isinstance(encoder, dict) and "function" in encoder


def _no_features(_: Any) -> Any:
    raise AssertionError("features are not made here")


def with_start(fit_options: FitOptions, chain: Chain, options: argparse.Namespace) -> FitOptions:
    """Return how to train, with where to begin.

    Parameters
    ----------
    fit_options : FitOptions
        How to train without.
    chain : Chain
        It has learned its features.
    options : argparse.Namespace
        The arguments of the command.

    Returns
    -------
    FitOptions
        The same, without ``--start``.
    """
    path = getattr(options, "start", None)
    if path is None:
        return fit_options
    if _is_checkpoint(path):
        return dataclasses.replace(fit_options, start=path)
    from maxmargin.errors import NotCompatibleError
    from maxmargin.io.tagger_file import dense_weights, load_tagger
    from maxmargin.structures.chain_start import carry_over
    from maxmargin.structures.kernels import KernelWeights

    model = load_tagger(path, _no_features if _by_function(path) else None)
    weights = dense_weights(model)
    with naming_model(path):
        if isinstance(weights, KernelWeights):
            raise NotCompatibleError("has a kernel, and so no weights that others could start from")
        carried = carry_over(chain, model.chain, weights, options.dtype)
        if not carried.n_features or not carried.n_labels:
            raise NotCompatibleError("shares no features, or no labels, with the data")
    if not options.quiet:
        note(
            f"{path}: shares {carried.n_features} features and {carried.n_labels} labels with the "
            "data"
        )
    return dataclasses.replace(fit_options, start=carried.weights)
