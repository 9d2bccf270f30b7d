"""The exceptions and warnings of maxmargin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin.printable import LINE, printable

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "CheckpointWarning",
    "ClusterError",
    "ConstraintError",
    "ConvergenceWarning",
    "EmptyFileError",
    "FileFormatError",
    "InUseError",
    "KnownLabelError",
    "MaxMarginError",
    "ModelFormatError",
    "NotCompatibleError",
    "NothingLearnedError",
    "ObjectiveRoseError",
    "OracleProcessError",
    "ScalingWarning",
    "StructureError",
]


class MaxMarginError(Exception):
    """Base of every exception that maxmargin itself defines."""


class ClusterError(MaxMarginError, RuntimeError):
    """A cluster cannot be used, or is not there any more."""


class StructureError(MaxMarginError, ValueError):
    """A method of a structure failed or returned something it must not return.

    Parameters
    ----------
    message : str
        What was found, what was expected, and for which example.
    method : str or None
        Name of the structure's method, for example ``"argmax"``.
    example : int or None
        Index of the example (position in X and Y).

    Notes
    -----
    When a user's method raised, the original exception is the ``__cause__`` of this one, so its
    traceback is printed first.
    """

    def __init__(
        self, message: str, *, method: str | None = None, example: int | None = None
    ) -> None:
        super().__init__(message)
        self.method = method
        self.example = example


class OracleProcessError(MaxMarginError, RuntimeError):
    """A process that ran the oracle of a Python structure (``n_jobs`` above 1) died."""


class _OfAFileError(MaxMarginError, ValueError):
    """An error that quotes a file: its message is safe to print and of a bounded length."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message, LINE))


class FileFormatError(_OfAFileError):
    """A data file is damaged or not of the format as which it is read."""


class EmptyFileError(FileFormatError):
    """A data file holds no sequences."""


class ModelFormatError(_OfAFileError):
    """A model file is damaged, truncated, or not a model file of a known version."""


class InUseError(MaxMarginError, RuntimeError):
    """An engine was called while another call of it, or another training with it, goes on.

    Several threads that fit one estimator with ``warm_start=True`` share one engine, and so does an
    oracle or a callback that fits the estimator that asked it. Each needs an estimator of its own.
    """


class NotSeparableError(MaxMarginError, ValueError):
    """No weights separate the data, and slacks were not allowed."""


class NothingLearnedError(MaxMarginError, ValueError):
    """Training stopped while all weights were zero, and zero was not shown to be the optimum."""


class NotCompatibleError(MaxMarginError, ValueError):
    """Two pieces do not fit together, for example a solver and a structure or a regulariser."""


class ObjectiveRoseError(MaxMarginError, RuntimeError):
    """The objective of a concave-convex procedure rose by more than its tolerance explains.

    Either an imputed output was not the best one (``argmax(x, w, given=y)`` of a structure does not
    find the maximum), or the oracle missed an output.
    """


class ConstraintError(MaxMarginError, ValueError):
    """A constraint of labellings cannot be used: unknown labels or columns, a contradiction."""


class KnownLabelError(MaxMarginError, ValueError):
    """A label that is known before decoding cannot be there.

    Attributes
    ----------
    token : int
        Which one, counted over all sequences.
    place : int
        Which one of its sequence.
    what : str
        What is wrong, without the place.
    """

    def __init__(self, message: str, token: int = 0, place: int = 0, what: str = "") -> None:
        super().__init__(message)
        self.token, self.place, self.what = token, place, what or message

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.token, self.place, self.what)


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training went on without it."""


class CalibrationWarning(UserWarning):
    """Probabilities were asked of a model whose scores are not calibrated."""


class ScalingWarning(UserWarning):
    """Columns of the features are of quite another size than the rest, which slows training."""


def __getattr__(name: str) -> Any:
    if name == "ConvergenceWarning":  # scikit-learn's own, which takes long to import
        from sklearn.exceptions import ConvergenceWarning

        return ConvergenceWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
