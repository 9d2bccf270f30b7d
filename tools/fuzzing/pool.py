"""Worker processes that take batches of inputs; a crash is laid to the input that made it.

A worker is forked, so that it starts at once. It says in shared memory which input it works on and
since when, and sends what it finds through a pipe. Its parent notices when it dies or is stuck,
and starts another one behind that input.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import json
import mmap
import os
import resource
import select
import signal
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fuzzing.attempt import MAX_RSS, Finding, attempt, peak_rss
from fuzzing.kinds import Seeds, make_input

__all__ = ["Batch", "Result", "run_batches"]

#: What a worker may ask for beyond what it has at the start: far above what counts as a finding.
ADDRESS_SPACE = 4 << 30
_NOW = struct.Struct("<qd")  # the number of the input, and when it was begun (0: it is done)


class Batch(NamedTuple):
    """Numbers of inputs of one kind."""

    kind: str
    first: int
    last: int  # one behind


@dataclass
class Result:
    """What came of the inputs of a kind."""

    inputs: int = 0
    codes: collections.Counter[int] = field(default_factory=collections.Counter)
    findings: list[tuple[int, Finding]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)
    peak: int = 0


class _Worker:
    """A forked process that does one batch."""

    def __init__(self, batch: Batch, seed: int, seeds: Seeds, folder: Path) -> None:
        self.batch = batch
        self.shared = mmap.mmap(-1, _NOW.size)
        self.shared[:] = _NOW.pack(batch.first - 1, 0.0)
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.crash = folder / f"{self.folder.name}.crash"
        self.received = b""
        self.stuck = False
        self.pipe, end = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                os.close(self.pipe)
                _work(batch, seed, seeds, self, end)
                code = 0
            finally:
                os._exit(code)
        os.close(end)

    @property
    def now(self) -> tuple[int, float]:
        """The number of the present input, and when it was begun; 0 if it is done."""
        number, since = _NOW.unpack(self.shared[:])
        return number, since

    def crash_text(self) -> str:
        """Return where Python was when the process crashed, innermost frames first."""
        with contextlib.suppress(OSError):
            lines = self.crash.read_text("utf-8", "replace").splitlines()
            return " | ".join(line.strip() for line in lines if line.startswith("  File"))[:400]
        return ""


def _work(batch: Batch, seed: int, seeds: Seeds, worker: _Worker, end: int) -> None:
    """Do the batch; in the worker process."""
    faulthandler.enable(worker.crash.open("wb"), all_threads=False)
    os.chdir(worker.folder)
    limit = _address_space() + ADDRESS_SPACE
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(batch.first, batch.last):
        begin = time.monotonic()
        worker.shared[:] = _NOW.pack(number, begin)
        codes, findings = attempt(make_input(batch.kind, number, seed, seeds))
        seconds = time.monotonic() - begin
        message = {"number": number, "codes": codes, "seconds": seconds, "findings": findings}
        message["peak"] = peak_rss()
        _send(end, json.dumps(message).encode() + b"\n")
        worker.shared[:] = _NOW.pack(number, 0.0)
        if peak_rss() > MAX_RSS:
            break  # the peak of a process never falls: the next inputs get a new one


def _address_space() -> int:
    """Return the size of this process's address space, or 0 where that is not known."""
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        return pages * mmap.PAGESIZE
    return 0


def _send(end: int, data: bytes) -> None:
    while data:
        data = data[os.write(end, data) :]


def run_batches(
    batches: list[Batch],
    *,
    seed: int,
    seeds: Seeds,
    folder: Path,
    jobs: int = 2,
    timeout: float = 20.0,
) -> dict[str, Result]:
    """Run inputs in worker processes.

    Parameters
    ----------
    batches : list of Batch
        What to run.
    seed : int
        Of the whole run.
    seeds : Seeds
        What is mutated.
    folder : Path
        Where workers get directories; the seeds are in ``seeds`` there.
    jobs : int
        How many workers at a time.
    timeout : float
        Seconds that an input may take.

    Returns
    -------
    dict of str to Result
        By kind.
    """
    waiting = collections.deque(batches)
    results = {batch.kind: Result() for batch in batches}
    workers: list[_Worker] = []
    while waiting or workers:
        while waiting and len(workers) < jobs:
            workers.append(_Worker(waiting.popleft(), seed, seeds, folder))
        ready, _, _ = select.select([worker.pipe for worker in workers], [], [], 0.2)
        for worker in list(workers):
            result = results[worker.batch.kind]
            ended = worker.pipe in ready and not _receive(worker, result)
            _, since = worker.now
            if not ended and since and time.monotonic() - since > timeout and not worker.stuck:
                worker.stuck = True
                os.kill(worker.pid, signal.SIGABRT)  # the handler writes down where Python was
            if not ended:
                continue
            workers.remove(worker)
            rest = _finish(worker, result, timeout)
            if rest < worker.batch.last:
                waiting.appendleft(worker.batch._replace(first=rest))
    return results


def _receive(worker: _Worker, result: Result) -> bool:
    """Take what the worker has sent; return False at the end."""
    data = os.read(worker.pipe, 1 << 16)
    worker.received += data
    *lines, worker.received = worker.received.split(b"\n")
    for line in lines:
        message: dict[str, Any] = json.loads(line)
        number = message["number"]
        result.inputs += 1
        result.codes.update(message["codes"])
        result.slowest = max(result.slowest, (message["seconds"], number))
        result.peak = max(result.peak, message["peak"])
        result.findings += [(number, Finding(*finding)) for finding in message["findings"]]
    return bool(data)


def _finish(worker: _Worker, result: Result, timeout: float) -> int:
    """Judge how a worker ended; return the number of the input that comes next."""
    _, status = os.waitpid(worker.pid, 0)
    os.close(worker.pipe)
    number, since = worker.now
    if since:
        result.inputs += 1
        where = worker.crash_text()
        code = os.waitstatus_to_exitcode(status)
        if worker.stuck:
            result.findings.append((number, Finding("timeout", f"{timeout:g} s; {where}")))
        elif code < 0:
            name = signal.Signals(-code).name
            result.findings.append((number, Finding(f"signal {name}", where)))
        else:
            result.findings.append((number, Finding(f"the worker ended with {code}", where)))
    for path in worker.folder.iterdir():
        path.unlink()
    worker.folder.rmdir()
    worker.crash.unlink(missing_ok=True)
    worker.shared.close()
    return number + 1
