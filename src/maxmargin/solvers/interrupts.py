"""Ctrl-C at moments when nothing may be left half-done."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["HeldInterrupt"]


class HeldInterrupt:
    """While it is entered, Ctrl-C is noted instead of raised.

    Only where Python would raise `KeyboardInterrupt`: in the main thread, with Python's own
    handler; whoever has another one has it for a reason.

    Attributes
    ----------
    came : bool
        Whether somebody pressed Ctrl-C meanwhile.
    """

    def __init__(self) -> None:
        self.came = False
        self._held = False

    def __enter__(self) -> HeldInterrupt:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._held = True
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True

    def __exit__(self, *_: Any) -> None:
        if self._held:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._held = False
