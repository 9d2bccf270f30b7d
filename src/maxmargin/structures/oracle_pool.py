"""A user's oracle in a pool of processes.

A pass that asks the oracle of many examples under one w announces them
(``native/oracle_pool.hpp``). `OraclePool` sends them in pieces to processes that hold a copy of the
structure and of the data, and hands out their answers in the order in which the pass asks. The
problem goes to each process once, when it starts; w is written into a file that all of them map,
once for each announcement.

Which process finds an answer makes no difference to it, so that what is decided by the clock (are
there processes at all, how many examples are sent at a time) changes no result.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.errors import OracleProcessError
from maxmargin.structures import oracle_worker
from maxmargin.structures.duck import describe_exception, structure_name

__all__ = ["OraclePool"]

#: Seconds that calls of the oracle must have taken in this process before others are started: about
#: what it costs to start them.
WORTH_STARTING = 1.0

#: An answer that is found in less time is not worth sending.
WORTH_SENDING = 2e-4

#: Seconds of work that are sent at a time: Ctrl-C and time limits wait for no more than that, or
#: one call.
PIECE_SECONDS = 0.05

#: Pieces for each process in one announcement, at least, so that all end at about the same time.
PIECES_EACH = 4


class _Piece(NamedTuple):
    """Examples that were sent off together: positions in the announcement."""

    begin: int
    end: int
    future: Any


class OraclePool:
    """Processes that answer for the oracle of a user's structure.

    Parameters
    ----------
    problem : PythonProblem
        Structure and data. It is sent to each process when it starts.
    n_jobs : int
        Number of processes, beside this one, which waits for their answers.

    Notes
    -----
    No process is started before calls of the oracle took `WORTH_STARTING` seconds, and calls that
    take less than `WORTH_SENDING` stay here. A problem that cannot be sent, or processes that
    cannot be started, give a warning, and all calls stay here.
    """

    def __init__(self, problem: Any, n_jobs: int) -> None:
        self._problem = problem
        self._name = structure_name(problem.structure)
        self.n_jobs = n_jobs
        self._executor: Any = None
        self._starting: list[Any] = []  # a future for each process that is not known to be there
        self._refused = False
        self._shared: NDArray[np.float64] | None = None  # number of the announcement, then w
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of the file with w
        self._announced = 0
        self._sent = False
        self._calls, self._seconds = 0, 0.0
        self._examples: NDArray[np.uint32] = np.empty(0, np.uint32)
        self._weights: NDArray[np.float64] | None = None
        self._formulation = ("linear", "margin")
        self._at = 0  # where in the examples the pass is
        self._pieces: deque[_Piece] = deque()
        self._answers: tuple[int, list[Any]] = (0, [])  # of a piece: where it begins, what came
        self._abandoned: list[Any] = []

    def __enter__(self) -> OraclePool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def started(self) -> bool:
        """Whether there are other processes."""
        return self._executor is not None

    # --- what native code calls ---

    def begin(
        self,
        examples: NDArray[np.uint32],
        w: NDArray[np.float64],
        slack: str,
        rescale: str,
    ) -> None:
        """Announce that the oracle will be asked.

        Parameters
        ----------
        examples : ndarray of uint32
            For which examples, in this order.
        w : ndarray of float64
            Under which weights. They stay as they are until `end`.
        slack, rescale : str
            The formulation of the margin.
        """
        self._announced += 1
        self._sent = False
        self._examples, self._weights, self._formulation = examples, w, (slack, rescale)
        self._at = 0
        self._answers = (0, [])

    def take(self, i: int) -> tuple[NDArray[np.uint32], float, float, float] | None:
        """Return the answer for an example, or None: it is to be found here.

        Parameters
        ----------
        i : int
            An example that was announced, behind the one that was asked for last.

        Returns
        -------
        code : ndarray of uint32
            The plane as native code keeps it; empty: the truth.
        F, bound, more_work : float
            What else native code wants to know.
        """
        at = self._at + int(np.argmax(self._examples[self._at :] == i))
        self._at = at
        self._send()
        begin, answers = self._answers
        while not at < begin + len(answers):
            if not self._pieces or at < self._pieces[0].begin:
                return None
            piece = self._pieces.popleft()
            begin, answers = self._answers = piece.begin, self._received(piece)
        return self._checked(i, answers[at - begin])

    def took(self, seconds: float) -> None:
        """Note how long a call took here.

        Parameters
        ----------
        seconds : float
            As measured.
        """
        self._calls += 1
        self._seconds += seconds

    def end(self) -> None:
        """Announce that there are no more calls; what is under way is given up."""
        if self._shared is not None:
            self._shared[0] = -1.0  # whoever is at work stops behind the call that goes on
        self._abandoned += [piece.future for piece in self._pieces]
        self._pieces.clear()
        self._weights = None

    # --- sending and receiving ---

    @property
    def _cost(self) -> float:
        return self._seconds / max(self._calls, 1)

    def _send(self) -> None:
        """Send off all that is left of the announcement, if that is worth it."""
        if self._sent or self._cost < WORTH_SENDING:
            return
        if self._executor is None:
            if not self._refused and self._seconds >= WORTH_STARTING:
                self._start()
            return
        if any(not future.done() for future in self._starting):
            return
        failed = [why for why in map(self._result, self._starting) if why is not None]
        self._starting = []
        if failed:
            self.close()
            self._warn(f"{self._name} or its data cannot be read by another process: {failed[0]}")
            return
        self._sent = True
        left = len(self._examples) - self._at
        if left < 2:
            return
        self._publish()
        size = max(int(PIECE_SECONDS / max(self._cost, 1e-6)), 1)
        size = min(size, -(-left // (PIECES_EACH * self.n_jobs)))
        for begin in range(self._at, len(self._examples), size):
            end = min(begin + size, len(self._examples))
            task = (self._announced, self._formulation, self._examples[begin:end])
            self._pieces.append(_Piece(begin, end, self._submitted(oracle_worker.answers, *task)))

    def _publish(self) -> None:
        """Write w where all processes see it, once nobody is at work under another one."""
        for future in self._abandoned:
            if not future.cancel():
                self._result(future)
        self._abandoned = []
        assert self._shared is not None
        assert self._weights is not None
        self._shared[1:] = self._weights
        self._shared[0] = self._announced

    def _received(self, piece: _Piece) -> list[Any]:
        found, seconds = self._result(piece.future)
        self._calls += len(found)
        self._seconds += seconds
        return list(found)

    def _checked(self, i: int, answer: Any) -> tuple[NDArray[np.uint32], float, float, float]:
        """Return an answer, or raise what the user's method raised in another process."""
        if isinstance(answer, oracle_worker.Failure):
            raise answer.error()
        code, F, bound, more_work, worse = answer
        for value in worse:
            self._problem.count_worse(i, value)
        return np.frombuffer(code, np.uint32), F, bound, more_work

    def _submitted(self, function: Any, *args: Any) -> Any:
        try:
            return self._executor.submit(function, *args)
        except RuntimeError as error:  # loky's BrokenProcessPool, or shut down
            raise self._died(error) from error

    def _result(self, future: Any) -> Any:
        from concurrent.futures import BrokenExecutor

        try:
            return future.result()
        except BrokenExecutor as error:
            raise self._died(error) from error

    def _died(self, error: Exception) -> OracleProcessError:
        return OracleProcessError(
            f"a process that ran the oracle of {self._name} died "
            f"({type(error).__name__}: {_first_line(error)}). Either native code that its methods "
            "call crashed, or they ended the process, or the system ended it because memory ran "
            "out (each of the processes has a copy of the data). With n_jobs=1 all runs in one "
            "process"
        )

    # --- the processes ---

    def _start(self) -> None:
        """Start the processes; they work when they are ready."""
        self._refused = True
        try:
            payload = oracle_worker.packed(self._problem)
        except MemoryError:
            raise
        except Exception as error:
            self._warn(
                f"{self._name} or its data cannot be sent to another process (pickled): "
                f"{describe_exception(error)}"
            )
            return
        try:
            executor = oracle_worker.new_executor(self.n_jobs, payload, self._share())
            # The first tasks make it start processes; each says that it is ready.
            self._starting = [executor.submit(oracle_worker.ready) for _ in range(self.n_jobs)]
        except (OSError, AssertionError, RuntimeError) as error:
            self.close()
            self._warn(f"no process could be started: {describe_exception(error)}")
            return
        self._executor = executor

    def _share(self) -> str:
        """Make the file that holds w, in memory if there is a place for that; return its name."""
        size = self._problem.n_weights + 1
        place = _memory_directory(8 * size)
        self._folder = tempfile.TemporaryDirectory(
            prefix="maxmargin-w-", dir=place, ignore_cleanup_errors=True
        )
        name = str(Path(self._folder.name) / "w")
        self._shared = np.memmap(name, dtype=np.float64, mode="w+", shape=(size,))
        return name

    def _warn(self, why: str) -> None:
        warnings.warn(
            f"n_jobs={self.n_jobs} starts no other process, and the oracle runs in this one: {why}",
            UserWarning,
            stacklevel=2,
        )

    def close(self) -> None:
        """End the processes, whatever they do."""
        executor, self._executor = self._executor, None
        self._pieces.clear()
        self._abandoned = []
        self._starting = []
        self._refused = True
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)
        self._shared = None
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def wait_until_ready(self, seconds: float = 60.0) -> bool:
        """Start the processes now and wait for them; for tests and benchmarks.

        Parameters
        ----------
        seconds : float
            How long to wait.

        Returns
        -------
        bool
            Whether they are ready.
        """
        if self._executor is None and not self._refused:
            self._start()
        limit = time.monotonic() + seconds
        while any(not future.done() for future in self._starting) and time.monotonic() < limit:
            time.sleep(0.01)
        return self.started and all(future.done() for future in self._starting)


def _memory_directory(n_bytes: int) -> str | None:
    """Return where files are kept in memory, if there is such a place with room; else None."""
    place = "/dev/shm"
    try:
        room = os.statvfs(place)
    except (AttributeError, OSError):
        return None
    free = room.f_bavail * room.f_frsize
    return place if os.access(place, os.W_OK) and free > 2 * n_bytes else None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
