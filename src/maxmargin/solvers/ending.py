"""How a training ended, in words: every sentence about it is made here.

A model is *converged* if its certificate is within the gap asked for, or if the solver's own
criterion holds. Both are decided from the certificate of the returned weights, and never from what
a pass believed on the way; so the figure in a reason is the figure of the certificate.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from maxmargin.solvers.certificate import Certificate, widened_reason

__all__ = [
    "INTERRUPTED",
    "Ending",
    "best_pass_reason",
    "certificate_line",
    "ending",
    "not_reached",
    "nothing_learned",
    "rounding_reason",
    "stuck_reason",
    "was_interrupted",
]

#: The cause of an end by Ctrl-C.
INTERRUPTED = "interrupted"


class Ending(NamedTuple):
    """Whether a training converged, and why it ended."""

    converged: bool
    reason: str


def ending(
    certificate: Certificate,
    asked: float,
    *,
    cause: str = "",
    own: str = "",
    widened: int | None = None,
) -> Ending:
    """Judge the end of a training.

    Parameters
    ----------
    certificate : Certificate
        Of the weights that are returned.
    asked : float
        The relative gap asked for.
    cause : str
        What ended the loop of passes from outside (a limit, a callback, Ctrl-C); empty: nothing.
    own : str
        The solver's own criterion, in words, if it holds; else empty.
    widened : int or None
        The pass after which 8-byte weights took the place of 4-byte ones, if they did.

    Returns
    -------
    Ending
        The reason names what ended the passes, the gap if it was reached, the solver's own
        criterion if it holds, and the change to 8-byte weights.
    """
    went_on = widened_reason(widened)
    if certificate.missed is not None:  # whatever the gap says, nothing is proven
        would = own or (f"gap {certificate.gap:.3g}" if certificate.gap <= asked else "")
        but = f"{would}, but argmax missed a better output" if would else ""
        why = (cause, but or "argmax missed an output", went_on)
        return Ending(False, "; ".join(filter(None, why)))
    within = certificate.gap <= asked
    reached = f"gap {certificate.gap:.3g} <= {asked:g}" if within else ""
    return Ending(within or bool(own), "; ".join(filter(None, (cause, reached, own, went_on))))


def was_interrupted(reason: str) -> bool:
    """Whether a reason is that of an end by Ctrl-C."""
    return reason.split(";", maxsplit=1)[0] == INTERRUPTED


def rounding_reason(dtype: str, asked: float, no_room: str = "") -> str:
    """Say why training cannot come closer to the optimum.

    Parameters
    ----------
    dtype : str
        Type of the weights.
    asked : float
        The relative gap asked for.
    no_room : str
        Why there were no 8-byte weights in the place of 4-byte ones, if there was a reason.
    """
    better = 'use dtype="float64", or ask for less' if dtype == "float32" else "ask for less"
    why = f" ({no_room})" if no_room else ""
    return f"rounding of {dtype} weights keeps the gap above {asked:g}{why}: {better}"


def stuck_reason(dtype: str) -> str:
    """Say why no pass moves anything any more."""
    return f"no step raises the dual any more: rounding of {dtype} weights"


def best_pass_reason(best_pass: int, n_passes: int, reason: str) -> str:
    """Tell a model that validation chose among the passes from the end of its training."""
    return (
        f"the model of pass {best_pass} of {n_passes}, the best on the validation data; "
        f"at the end of training: {reason}"
    )


def _share(gap: float, asked: float) -> str:
    """Return a gap in per cent, with so many digits that it does not look like the one asked for.

    >>> _share(0.0123456, 0.01), _share(0.01000049, 0.01)
    ('1.23', '1.00005')
    """
    text = f"{100 * gap:.3g}"
    if gap > asked >= float(text) / 100:
        text = f"{100 * gap:.6g}"
    return text


def certificate_line(certificate: Certificate, passes: int, reason: str, asked: float) -> str:
    """Return the line about a model at the end of a command.

    Parameters
    ----------
    certificate : Certificate
        Of the model.
    passes : int
        Passes that were made.
    reason : str
        Why training ended.
    asked : float
        The relative gap asked for.

    Returns
    -------
    str
        Objective, bound, gap and the reason.
    """
    if certificate.missed is not None:
        return f"{certificate} ({passes} passes; {reason})"
    oracle = ", with an approximate oracle" if certificate.approximate else ""
    return (
        f"primal {certificate.primal:.6g}, dual {certificate.dual:.6g}: within "
        f"{_share(certificate.gap, asked)} % of the optimum{oracle} "
        f"(C = {certificate.C:g}, {passes} passes; {reason})"
    )


def not_reached(
    certificate: Certificate, reason: str, asked: float, solvers: Container[str] = ()
) -> str:
    """Return the warning about a training that did not converge.

    Parameters
    ----------
    certificate : Certificate
        Of the weights that are returned.
    reason : str
        Why training ended.
    asked : float
        The relative gap asked for.
    solvers : container of str
        The names of all solvers, of which one may be better for a hard problem.

    Returns
    -------
    str
        What was reached, and what to do.
    """
    if certificate.missed is not None:
        return f"training ended with a model of unknown quality ({reason}): {certificate}"
    other = ""
    if "interiorpoint" in solvers:
        other = ', or, where there are few weights, take solver="interiorpoint"'
    return (
        f"training stopped before the gap was reached ({reason}): primal "
        f"{certificate.primal:.6g}, dual {certificate.dual:.6g}: within "
        f"{_share(certificate.gap, asked)} % of the optimum (C = {certificate.C:g}); asked for was "
        f"{100 * asked:g} %. Raise max_passes or time_limit, or ask for less. Features of very "
        "different sizes (a ScalingWarning names them) and a large C make training slow: scale "
        f"the features{other}"
    )


def nothing_learned(certificate: Certificate, reason: str) -> str:
    """Return the error about weights of zero that nothing shows to be the optimum."""
    return (
        f"nothing was learned: all weights are zero where training stopped ({reason}), and its "
        f"certificate (primal {certificate.primal:.6g}, dual {certificate.dual:.6g}) does not show "
        "that zero is the optimum. Raise time_limit or max_passes; where zero would be the optimum "
        "(a tiny C with a large L1 penalty), longer training proves it"
    )
