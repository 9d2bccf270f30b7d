"""`ProgressBar`: how far a training is, in a terminal or a notebook.

With ``rich`` or ``tqdm`` installed, whichever is there first; without both, or where nobody looks
(a file, a pipe), it shows nothing. (With scikit-learn 1.9 or later its own ``ProgressBar`` can be
given to ``set_callbacks``; that one counts passes.)
"""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

from maxmargin.solvers.history import PassRecord

__all__ = ["ProgressBar"]


class ProgressBar:
    """A callback that shows a bar: ``SequenceTagger(callbacks=[ProgressBar()])``.

    The bar is about the gap: it is full when the gap is the one asked for, and goes by its
    logarithm, because training makes the gap smaller by a factor and not by an amount.

    Parameters
    ----------
    gap : float
        The gap at which the bar is full; that of the estimator.
    backend : {"auto", "rich", "tqdm", "none"}
        What draws it. "auto": ``rich``, else ``tqdm``, else nothing; nothing also where standard
        error is neither a terminal nor a notebook.

    Attributes
    ----------
    share : float
        How full the bar is, from 0 to 1.

    Examples
    --------
    >>> from maxmargin import SequenceTagger
    >>> from maxmargin.estimators.progress import ProgressBar
    >>> tagger = SequenceTagger(callbacks=[ProgressBar(gap=0.01)])
    """

    def __init__(self, gap: float = 0.01, *, backend: str = "auto") -> None:
        if backend not in ("auto", "rich", "tqdm", "none"):
            raise ValueError(f'backend is {backend!r}; expected "auto", "rich", "tqdm" or "none"')
        if not gap > 0:
            raise ValueError(f"gap is {gap!r}; expected a number above 0")
        self.gap = gap
        self.backend = backend
        self.share = 0.0
        self._first = math.nan
        self._bar: _Bar | None = None
        self._last = 0

    def __call__(self, record: PassRecord) -> bool:
        """Show a pass; it never ends the training."""
        if record.n_pass <= self._last or self._bar is None:  # another training
            self.close()
            self._bar = _open(self.backend)
            self.share, self._first = 0.0, math.nan
        self._last = record.n_pass
        if record.gap > 0 and math.isfinite(record.gap):
            if math.isnan(self._first):
                self._first = max(record.gap, self.gap)
            whole = math.log(self._first / self.gap)
            done = math.log(self._first / max(record.gap, self.gap))
            self.share = max(self.share, done / whole if whole > 0 else 1.0)
        shown = "" if math.isnan(record.gap) else f"gap {100 * record.gap:.2g} %"
        self._bar.update(self.share, f"pass {record.n_pass} {shown}".rstrip())
        if self.share >= 1.0:
            self.close()
        return False

    def close(self) -> None:
        """Take the bar away; a later pass shows a new one."""
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    def __getstate__(self) -> dict[str, Any]:
        # What is copied or sent to another process is a bar that is not shown yet.
        return {**self.__dict__, "_bar": None, "_last": 0}

    def __del__(self) -> None:
        if getattr(self, "_bar", None) is not None:
            self.close()


class _Bar:
    """Shows nothing."""

    def update(self, share: float, text: str) -> None:
        """Show how far it is."""

    def close(self) -> None:
        """End it."""


class _Rich(_Bar):
    def __init__(self) -> None:
        progress = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console")
        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TimeElapsedColumn(),
            console=console.Console(stderr=True),
        )
        self._progress.start()
        self._task = self._progress.add_task("training", total=1.0)

    def update(self, share: float, text: str) -> None:
        self._progress.update(self._task, completed=share, description=text)

    def close(self) -> None:
        self._progress.stop()


class _Tqdm(_Bar):
    def __init__(self) -> None:
        # Of a notebook its own bar, else one of text.
        auto = importlib.import_module("tqdm.auto")
        self._bar = auto.tqdm(total=1.0, bar_format="{desc} {bar} {elapsed}", file=sys.stderr)

    def update(self, share: float, text: str) -> None:
        self._bar.set_description_str(text, refresh=False)
        self._bar.update(share - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    kernel = None if shell is None else shell.get_ipython()
    return kernel is not None and "IPKernelApp" in getattr(kernel, "config", {})


def _open(backend: str) -> _Bar:
    """Return a bar of the wanted kind, or one that shows nothing."""
    if backend == "none":
        return _Bar()
    if backend == "auto":
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if not terminal and not _in_notebook():
            return _Bar()
    for name, kind in (("rich", _Rich), ("tqdm", _Tqdm)):
        if backend not in ("auto", name):
            continue
        try:
            return kind()
        except ImportError:
            if backend == name:
                raise
    return _Bar()
