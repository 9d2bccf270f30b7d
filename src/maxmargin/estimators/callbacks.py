"""Callbacks of estimators: the end of one's own, and scikit-learn's (``set_callbacks``).

scikit-learn has callbacks from 1.9 on. With an older one the estimators have no ``set_callbacks``,
and nothing else is different.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from maxmargin.solvers.history import PassRecord
from maxmargin.solvers.machine import Machine

try:
    from sklearn import callback as _sklearn_callback
except ImportError:
    _sklearn_callback = None

__all__ = ["CallbackSupportMixin", "FitTasks", "closing_callbacks", "with_callbacks"]

_Method = TypeVar("_Method", bound=Callable[..., Any])

if TYPE_CHECKING or _sklearn_callback is None:

    class CallbackSupportMixin:
        """Stands in for scikit-learn's mixin where it has none."""

else:
    CallbackSupportMixin = _sklearn_callback.CallbackSupportMixin


def with_callbacks(method: _Method) -> _Method:
    """Tear callbacks down when the method ends, however it ends.

    Parameters
    ----------
    method : function
        The method that makes a `FitTasks`.

    Returns
    -------
    function
        The decorated method; the method itself where scikit-learn has no callbacks.
    """
    if _sklearn_callback is None:
        return method
    decorated: _Method = _sklearn_callback.with_callbacks(method)
    return decorated


@contextmanager
def closing_callbacks(callbacks: Iterable[Any] | None) -> Iterator[None]:
    """Call ``close()`` of the callbacks that have it when training ends, however it ends.

    A callback is told of passes, and cannot know which of them was the last: training also ends by
    limits, by Ctrl-C and by errors.

    Parameters
    ----------
    callbacks : iterable of callable or None
        The parameter of the estimator.
    """
    try:
        yield
    finally:
        for callback in callbacks or ():
            close = getattr(callback, "close", None)
            if callable(close):
                close()


class FitTasks:
    """Tells scikit-learn's callbacks of a fit, and of each of its passes as a task within it.

    It is a `PassObserver` for the driver. What a callback gets of a pass: ``X`` and ``y`` as they
    came to ``fit``, and at its end a ``fitted_estimator`` with the weights of that moment, made
    only if the callback's signature asks for one. ``metadata`` is None: scorers would be given
    it, and scores here take no token weights.

    Parameters
    ----------
    estimator : StructuralEstimator
        The estimator being fitted.
    X, y : object
        The training data.
    model_after : callable
        ``model_after(records, engine)``, where the last record is that of the pass that has just
        ended: the attributes of an estimator whose training ended here.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        model_after: Callable[[list[PassRecord], Machine], dict[str, Any]],
    ) -> None:
        self.estimator, self.X, self.y, self.model_after = estimator, X, y, model_after
        self.records: list[PassRecord] = []
        self.fit_task: Any = None
        self.pass_task: Any = None
        if _sklearn_callback is not None:
            most = estimator.max_passes
            # A max_passes that is no number is the driver's to complain about.
            self.fit_task = estimator._init_callback_context(
                max_subtasks=int(most) if isinstance(most, numbers.Integral) else None
            )
            self.fit_task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def observers(self) -> list[FitTasks]:
        """Return what the driver shall tell of passes: nothing if no callback listens."""
        return [self] if getattr(self.estimator, "_skl_callbacks", None) else []

    def begin_pass(self, engine: Machine) -> None:
        """Begin the task of a pass."""
        self.pass_task = self.fit_task.subcontext(task_name="pass")
        self.pass_task.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)

    def end_pass(self, record: PassRecord, engine: Machine) -> bool:
        """End the task of a pass; true if a callback wants to stop."""
        self.records.append(record)
        task, self.pass_task = self.pass_task, None
        return bool(
            task.call_on_fit_task_end(
                estimator=self.estimator,
                X=self.X,
                y=self.y,
                reconstruction_attributes=lambda: self.model_after(self.records, engine),
            )
        )

    def end_fit(self) -> None:
        """End the fit, once the estimator has its model."""
        if self.pass_task is not None:  # Ctrl-C: this pass has no record
            self.pass_task.call_on_fit_task_end(estimator=self.estimator)
            self.pass_task = None
        if self.fit_task is not None:
            self.fit_task.call_on_fit_task_end(
                estimator=self.estimator, X=self.X, y=self.y, reconstruction_attributes={}
            )
