"""What the header of a model file says of the training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from maxmargin.io.header_values import plain_value

if TYPE_CHECKING:
    from maxmargin.solvers.certificate import Certificate

__all__ = ["NOT_KEPT", "restore_certificate", "training_meta"]

#: Parameters of an estimator that are those of one run, not of the model: a file does not say where
#: somebody else's ``fit`` writes.
NOT_KEPT = ("callbacks", "checkpoint", "resume")


def training_meta(
    certificate: Certificate,
    settings: dict[str, Any],
    params: dict[str, Any],
    file_format: str | None = None,
) -> dict[str, Any]:
    """Put together what a file says of the training of its model.

    Parameters
    ----------
    certificate : Certificate
        Of the weights.
    settings : dict
        Figures of training; what a file cannot hold is left out.
    params : dict
        Parameters of the estimator; what a file cannot hold is left out.
    file_format : str or None
        The format of the training file, which `maxmargin tag` then expects too.

    Returns
    -------
    dict
        The meta data for the header.
    """
    from maxmargin import __version__

    figures = {name: getattr(certificate, name) for name in ("primal", "dual", "gap", "C")}
    return {
        "certificate": {
            # A primal is infinite where a hard margin was asked for that the weights do not have;
            # what an earlier file does not have is NaN.
            **{k: v if math.isfinite(v) else None for k, v in figures.items() if not math.isnan(v)},
            "n_examples": certificate.n_examples,
            "approximate": certificate.approximate,
            **({} if certificate.widened is None else {"widened": certificate.widened}),
        },
        "training": _plain_values(settings),
        "params": _plain_values({k: v for k, v in params.items() if k not in NOT_KEPT}),
        "format": file_format,
        "maxmargin": __version__,
    }


def _plain_values(given: dict[str, Any]) -> dict[str, Any]:
    """Return what a file can hold."""
    values = {name: plain_value(value) for name, value in given.items()}
    return {name: value for name, value in values.items() if value is not NotImplemented}


def restore_certificate(figures: dict[str, Any]) -> Certificate:
    """Return a certificate as a file has it.

    Parameters
    ----------
    figures : dict
        ``certificate`` of the header, checked by `maxmargin.io.meta_checks`.

    Returns
    -------
    Certificate
        NaN where the file does not tell.
    """
    from maxmargin.solvers.certificate import Certificate

    primal = figures.get("primal", math.nan)
    return Certificate(
        primal=math.inf if primal is None else float(primal),  # of a hard margin
        dual=float(figures.get("dual", math.nan)),
        C=float(figures.get("C", math.nan)),
        n_examples=figures.get("n_examples", 0),
        approximate=figures.get("approximate", False),
        widened=figures.get("widened"),
    )
