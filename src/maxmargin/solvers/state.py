"""What a checkpoint holds of a run besides the machine, and how its values are checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["RunState", "check_stored"]


@dataclass
class RunState:
    """All that a checkpoint must hold besides the engine: enough to go on bit for bit."""

    solver: dict[str, Any] = field(default_factory=dict)
    rng: dict[str, Any] = field(default_factory=dict)
    dual: float = 0.0
    seconds: float = 0.0
    oracle_calls: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    # What files of earlier versions do not have:
    work: float = 0.0
    stuck: int = 0
    watch: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, Any] = field(default_factory=dict)
    widened: int | None = None


def check_stored(name: str, value: Any, like: Any) -> None:
    """Refuse a value of a solver's state that is not of the kind of its first one.

    Parameters
    ----------
    name : str
        Its name, for the message.
    value : object
        What a checkpoint has.
    like : bool, int, float or None
        The value before the first pass; None stands for a number that is not known yet.
    """
    if isinstance(like, bool):
        if isinstance(value, bool):
            return
        raise ValueError(f"{name} is {value!r}; expected true or false")
    if value is None and like is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(like, int):
        if not number or not isinstance(value, int) or not 0 <= value < 2**53:
            raise ValueError(f"{name} is {str(value)[:40]}; expected a whole number from 0 on")
    elif not number or not abs(value) < 1e300:
        raise ValueError(f"{name} is {str(value)[:40]}; expected a finite number")
