"""What a process of an oracle's pool does (`maxmargin.structures.oracle_pool`)."""

from __future__ import annotations

import pickle
import signal
import time
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import StructureError
from maxmargin.structures.duck import describe_exception

__all__ = ["Failure", "RemoteTracebackError", "answers", "new_executor", "packed", "ready"]


class RemoteTracebackError(Exception):
    """The traceback of an error in another process, as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


@dataclass(frozen=True)
class Failure:
    """An error that the oracle raised.

    Attributes
    ----------
    message : str
        Its text.
    method : str or None
        The structure's method.
    example : int or None
        The example.
    structure_error : bool
        Whether it was a `StructureError`, or else a ValueError.
    trace : str
        The traceback.
    cause : bytes or None
        What the user's method raised, if it can be sent.
    """

    message: str
    method: str | None
    example: int | None
    structure_error: bool
    trace: str
    cause: bytes | None

    @classmethod
    def of(cls, error: Exception, i: int) -> Failure:
        """Return what is sent of an error that the oracle raised for example i."""
        trace = "".join(traceback.format_exception(error))
        cause = _sent(error.__cause__)
        if isinstance(error, StructureError):
            return cls(str(error), error.method, error.example, True, trace, cause)
        return cls(f"{type(error).__name__}: {error}", None, i, False, trace, cause)

    def error(self) -> Exception:
        """Return the error again, with its traceback as the cause of what caused it."""
        remote = RemoteTracebackError(self.trace)
        raised: Exception
        if self.structure_error:
            raised = StructureError(self.message, method=self.method, example=self.example)
        else:
            raised = ValueError(f"{self.message}, for example {self.example}")
        cause = None if self.cause is None else pickle.loads(self.cause)
        if cause is None:
            raised.__cause__ = remote
        else:
            cause.__cause__ = remote
            raised.__cause__ = cause
        return raised


def _sent(error: BaseException | None) -> bytes | None:
    """Return an exception as bytes that are known to become one again, or None."""
    if error is None:
        return None
    try:
        data = _dumped(error)
        return data if isinstance(pickle.loads(data), BaseException) else None
    except Exception:  # a user's own class that cannot be sent
        return None


def _dumped(value: Any) -> bytes:
    """Return a value as bytes, with what a program or a notebook defines itself in them."""
    # joblib's own, wherever its version has it from
    from joblib.externals.loky.cloudpickle_wrapper import dumps  # type: ignore[import-untyped]

    data: bytes = dumps(value)
    return data


def packed(problem: Any) -> bytes:
    """Return a problem as bytes for other processes.

    Parameters
    ----------
    problem : PythonProblem
        Structure and data.

    Returns
    -------
    bytes
        Pickled; what the program itself defines is in it, not only named.
    """
    return _dumped(problem)


def new_executor(n_jobs: int, payload: bytes, path: str) -> Any:
    """Return an executor whose processes hold the problem.

    Parameters
    ----------
    n_jobs : int
        Number of processes.
    payload : bytes
        From `packed`.
    path : str
        The file in which w is.
    """
    from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    return ProcessPoolExecutor(n_jobs, timeout=None, initializer=_begin, initargs=(payload, path))


# --- in the other process ---


class _State:
    """What a process keeps from one task to the next."""

    problem: Any
    native: _native.PythonProblem
    shared: NDArray[np.float64]
    announced = -1
    formulation = ("", "")
    oracle: _native.Oracle
    worse: list[float]
    failed: str | None = None


def _begin(payload: bytes, path: str) -> None:
    # Ctrl-C goes to all processes of a terminal; the first one decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _State.problem = pickle.loads(payload)
        _State.worse = []
        _State.problem.note_worse(_State.worse)
        _State.native = _native.PythonProblem(_State.problem)
        _State.shared = np.memmap(path, dtype=np.float64, mode="r")
    except Exception as error:  # a class that cannot be imported there, for example
        _State.failed = describe_exception(error)


def ready() -> str | None:
    """Return why the process cannot answer, or None: it is there, and has its problem."""
    return _State.failed


def answers(
    announced: int, formulation: tuple[str, str], examples: NDArray[np.uint32]
) -> tuple[list[Any], float]:
    """Ask the oracle for some examples.

    Parameters
    ----------
    announced : int
        Number of the announcement. If it is not the present one, nobody wants the answers.
    formulation : tuple of str
        Slack and rescale.
    examples : ndarray of uint32
        The examples.

    Returns
    -------
    answers : list
        For each example the answer (code, F, bound, more work, by how much answers were worse than
        the truth) or a `Failure`, which is the last one. Fewer where the announcement ended.
    seconds : float
        How long it took.
    """
    state = _State
    found: list[Any] = []
    begin = time.perf_counter()
    if state.shared[0] != announced:
        return found, 0.0
    if formulation != state.formulation:
        state.oracle = _native.Oracle(state.native, *formulation)
        state.formulation, state.announced = formulation, -1
    if state.announced != announced:
        state.oracle.set_weights(np.array(state.shared[1:]))  # methods may keep it: it is theirs
        state.announced = announced
    for i in examples.tolist():
        if state.shared[0] != announced:
            break
        state.worse.clear()
        try:
            code, *numbers = state.oracle.find(i)
        except MemoryError:
            raise
        except Exception as error:
            found.append(Failure.of(error, i))
            break
        found.append((code.tobytes(), *numbers, tuple(state.worse)))
    return found, time.perf_counter() - begin
