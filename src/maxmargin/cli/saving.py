"""The model file that a training ends with."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.kernel import kernel_options
from maxmargin.cli.prior import stored_prior
from maxmargin.cli.reading import remembered
from maxmargin.cli.training_options import regularizer_of, solver_of

if TYPE_CHECKING:
    from maxmargin.io.objective import NotStored
    from maxmargin.regularizers import Regularizer
    from maxmargin.solvers import Certificate
    from maxmargin.structures.chain import Chain

__all__ = ["save_model"]


def save_model(
    chain: Chain,
    weights: Any,
    certificate: Certificate,
    summary: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    """Write a model, and enter its name and size into the summary.

    Parameters
    ----------
    chain : Chain
        Prepared.
    weights : array
        The native weights.
    certificate : Certificate
        Of these weights.
    summary : dict
        Figures of the training.
    options : argparse.Namespace
        With the options of `add_features` and `add_solving`, and ``model``.
    """
    from maxmargin.io.tagger_file import save_tagger
    from maxmargin.io.training_meta import training_meta

    names = ["n_sequences", "n_tokens", "n_features", "passes", "oracle_calls", "l1_ratio"]
    names += ["debiased", "converged", "stop_reason"]
    settings = {name: summary[name] for name in names} | {"seed": options.seed}
    names = ["solver", "gap", "max_passes", "time_limit", "dtype"]
    names += ["min_count", "hash_bits", "allowed"]
    params = {"C": certificate.C, **{name: getattr(options, name) for name in names}}
    params["random_state"] = options.seed
    params |= kernel_options(options)
    meta = training_meta(certificate, settings, params, file_format=options.format or "conll")
    if options.format == "conllu":
        meta["columns_conllu"] = options.columns
    if summary.get("temperature") is not None:
        meta["temperature"] = summary["temperature"]
    meta["reading"] = remembered(options)
    objective = params | {"solver": _written_solver(options)}
    objective["regularizer"] = _trained_with(weights, summary, options)
    summary["model_bytes"] = save_tagger(options.model, chain, weights, meta, objective)
    summary["model"] = options.model


def _written_solver(options: argparse.Namespace) -> Any:
    """Return the solver as a parameter of the tagger: its name if it has no other options."""
    if options.slack is None and options.rescale is None:
        return options.solver
    return solver_of(options)


def _trained_with(
    weights: Any, summary: dict[str, Any], options: argparse.Namespace
) -> Regularizer | NotStored | None:
    """Return the regulariser of the model that is saved."""
    from maxmargin.regularizers import Selected

    if getattr(options, "prior", None) is not None:
        return stored_prior(options)
    if summary["debiased"]:  # the re-fit keeps the weights that were not selected at zero
        return Selected(weights)
    trained = argparse.Namespace(**vars(options))
    trained.l1_ratio = summary["l1_ratio"]
    return regularizer_of(trained)
