"""What the header of a tagger's file says of the model, for people who ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin.printable import printable

if TYPE_CHECKING:
    from maxmargin.io.tagger_file import TaggerModel

__all__ = ["NAME", "feature_kind", "listed", "shown_certificate", "stored_objective"]

NAME = 300  # characters of a label or of a feature's name
SHOWN_LABELS = 12


def listed(values: list[Any]) -> str:
    """Return the first values of a list, and how many more there are.

    Parameters
    ----------
    values : list
        Labels, for example.

    Returns
    -------
    str
        Values with commas between them, made printable and short.
    """
    shown = ", ".join(printable(value, NAME) for value in values[:SHOWN_LABELS])
    more = len(values) - SHOWN_LABELS
    return shown if more <= 0 else f"{shown} and {more} more"


def feature_kind(described: dict[str, Any]) -> str:
    """Return the kind of the features in words.

    Parameters
    ----------
    described : dict
        What the header says of the encoder.

    Returns
    -------
    str
        For example ``"template, hashed to 20 bits"``.
    """
    if "template" in described:
        kind = "template"
    elif "function" in described:
        kind = f"function {described['function']}"
    else:
        kind = str(described["kind"])
    if described.get("hash_bits") is not None:
        kind += f", hashed to {described['hash_bits']} bits"
    return kind


def shown_certificate(given: Any) -> dict[str, Any] | None:
    """Return primal, dual, gap and C of a certificate as a file has it.

    Parameters
    ----------
    given : object
        What the header says.

    Returns
    -------
    dict or None
        None if the file has no certificate.
    """
    if not isinstance(given, dict):
        return None
    result = {key: given.get(key) for key in ("primal", "dual", "gap", "C")}
    primal, dual = result["primal"], result["dual"]
    if primal is not None and dual is not None:
        from maxmargin.solvers.certificate import relative_gap

        result["gap"] = relative_gap(primal, dual)
    if given.get("approximate"):
        result["approximate"] = True
    return result


def stored_objective(model: TaggerModel) -> dict[str, Any] | None:
    """Return what was minimised, as the file has it.

    Parameters
    ----------
    model : TaggerModel
        The model.

    Returns
    -------
    dict or None
        None if the file does not have it.
    """
    if model.objective is None:
        return None
    model.objective()  # checks it
    stored: dict[str, Any] = model.meta["objective"]
    return stored
