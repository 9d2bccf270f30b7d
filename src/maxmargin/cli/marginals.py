"""Probabilities on the command line: cells of ``tag --marginals``, the temperature of ``train``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from maxmargin.cli.training_data import Learned
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items
    from maxmargin.models.base import ModelKind

__all__ = ["labelling_shares", "probability_cells", "require_calibrated", "temperature_of"]

#: Probabilities are written with four digits behind the point.
PARTS = 10_000


def require_calibrated(kind: ModelKind, model: Any, path: str) -> None:
    """Say so on standard error if a model has no temperature.

    Parameters
    ----------
    kind : ModelKind
        Of the model.
    model : object
        The model.
    path : str
        Its file.
    """
    if kind.temperature(model) is None:
        note(
            f"maxmargin tag: warning: {path} is not calibrated, and its probabilities may be far "
            "from honest; run maxmargin calibrate, or train with --valid"
        )


def probability_cells(
    codes: NDArray[np.int32], probabilities: NDArray[np.float64], names: list[str], separator: str
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the cells of labels with their probabilities, each text once.

    Parameters
    ----------
    codes : int32 array of shape (n_tokens,)
        The labels.
    probabilities : array of shape (n_tokens,)
        Their probabilities.
    names : list of str
        Names of the labels.
    separator : str
        What stands between columns.

    Returns
    -------
    places : int32 array of shape (n_tokens,)
        Places in the texts.
    texts : list of str
        ``label separator probability``.
    """
    import numpy as np

    parts = np.rint(np.clip(probabilities, 0.0, 1.0) * PARTS).astype(np.int64)
    found, places = np.unique(codes * (PARTS + 1) + parts, return_inverse=True)
    texts = [
        f"{names[key // (PARTS + 1)]}{separator}{key % (PARTS + 1) / PARTS:.4f}"
        for key in found.tolist()
    ]
    return places.astype(np.int32), texts


def labelling_shares(
    kind: ModelKind, model: Any, data: ColumnTable | Items, threads: int, known: Any = None
) -> list[Callable[[float], str]]:
    """Return, for each sequence, what makes a probability of the score of a labelling.

    Parameters
    ----------
    kind : ModelKind
        Of the model.
    model : object
        The model.
    data : ColumnTable or Items
        The sequences.
    threads : int
        Number of threads.
    known : int32 array or None
        Codes of known labels, -1 where one is not; the probabilities are among the labellings that
        have them.

    Returns
    -------
    list of callables
        Each gives a text, with a blank before it.
    """
    import math

    temperature = kind.temperature(model) or 1.0
    given = {} if known is None else {"known": known}
    _, _, log_z = kind.marginals(model, data, threads, **given)

    def share(z: float) -> Callable[[float], str]:
        return lambda score: f" {math.exp(min(score / temperature - z, 0.0)):.6f}"

    return [share(z) for z in log_z.tolist()]


def temperature_of(learned: Learned, weights: Any, threads: int) -> float | None:
    """Return the temperature of a model by the validation data; None where they tell none.

    Parameters
    ----------
    learned : Learned
        With the chain and validation data.
    weights : array
        The native weights.
    threads : int
        Number of threads.

    Returns
    -------
    float or None
        The temperature.
    """
    from maxmargin.selection.calibration import find_temperature

    valid = learned.valid
    assert valid is not None
    try:
        found = find_temperature(learned.chain, valid.batch, valid.codes, weights, threads)
    except ValueError:  # no sequence has labels that the model knows and allows
        return None
    return found.temperature
