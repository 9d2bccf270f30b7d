"""Who is told of passes: callbacks, and observers that may look at the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.machine import Machine

__all__ = ["Callback", "PassObserver"]

#: Called after each pass with its record; a true answer ends the training.
Callback = Callable[[PassRecord], object]


@runtime_checkable
class PassObserver(Protocol):
    """A callback that is also told when a pass begins, and that may look at the machine.

    It must not change the machine. What it needs of the weights it copies (``copy_weights``): the
    next pass goes on in the same memory.
    """

    def begin_pass(self, machine: Machine) -> None:
        """Take note that a pass begins."""

    def end_pass(self, record: PassRecord, machine: Machine) -> object:
        """Take note of a finished pass; a true answer ends the training.

        A pass that Ctrl-C cut short has no record and does not come here.
        """
