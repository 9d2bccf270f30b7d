"""Dask clusters: the client, its workers, and the shares that they hold.

Shares live in the memory of workers (`maxmargin.distributed.held`); tasks that are pinned to a
worker call their methods. Dask does not know of the shares, so that it neither moves nor forgets
them; what it does know is which workers there are. A share whose worker has gone, or is another
process than before, is lost: `DaskShares.recover` gives it to another worker, which reads its data
again (Dask makes lost partitions anew).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.metadata
import importlib.util
import socket
import time
import urllib.parse
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maxmargin.distributed.features import merge
from maxmargin.distributed.group import ShareGroup, SharesLostError
from maxmargin.distributed.held import ShareMissingError, call, drop, hold
from maxmargin.errors import ClusterError, NotCompatibleError

__all__ = [
    "DaskShares",
    "check_sendable",
    "check_workers",
    "local_client",
    "remote_client",
    "require_client",
    "require_dask",
]

#: What all workers must have.
PACKAGE = "maxmargin"
#: Seconds without a scheduler, or without any worker, after which it counts as gone.
PATIENCE = 20.0
#: Seconds between two looks at which workers there are.
LOOK = 0.25


def require_dask() -> Any:
    """Return the module ``distributed``.

    Raises
    ------
    ImportError
        If Dask is not installed; the message names the extra.
    """
    for name in ("dask", "distributed"):
        if importlib.util.find_spec(name) is None:
            raise ImportError(
                f"training on many machines needs {name!r}, which is not installed: "
                'pip install "maxmargin[dask]"'
            )
    import distributed

    return distributed


def require_client(client: Any = None) -> Any:
    """Return a client that is connected: the given one, or the one that was made last.

    Raises
    ------
    ClusterError
        If there is none, or it is closed.
    TypeError
        If it is something else.
    """
    distributed = require_dask()
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            raise ClusterError(
                "there is no Dask client; give one: client=Client(address)"
            ) from error
    if not isinstance(client, distributed.Client):
        raise TypeError(
            f"client is of type {type(client).__name__}; expected a distributed.Client"
        )
    if client.asynchronous:
        raise ClusterError("the client is asynchronous; expected Client(..., asynchronous=False)")
    if client.status != "running":
        raise ClusterError(
            f"the Dask client is {client.status}; expected one that is connected to a scheduler"
        )
    return client


def workers_of(client: Any) -> dict[str, int]:
    """Return the addresses of the present workers, with their numbers of threads."""
    return dict(client.nthreads())


def own_version() -> str:
    """Return the version of maxmargin here."""
    return importlib.metadata.version(PACKAGE)


def check_workers(client: Any, seconds: float = 10.0) -> list[str]:
    """Return the workers, all of which have this version of maxmargin.

    A worker that dies while it is asked is none: the others are asked again.

    Raises
    ------
    ClusterError
        If there are none, or one has another version or none; the message names it.
    """
    end = time.monotonic() + seconds
    own = own_version()
    found: dict[str, Any] = {}
    while True:
        if workers_of(client):
            # A function of the standard library: a worker without maxmargin could not load ours.
            found = client.run(importlib.metadata.version, PACKAGE, on_error="return")
        late = time.monotonic() > end
        if found and (late or not any(isinstance(v, OSError) for v in found.values())):
            break
        if late:
            raise ClusterError(f"the cluster has no workers (waited {seconds:g} s)")
        time.sleep(LOOK)
    for address, version in sorted(found.items()):
        if isinstance(version, importlib.metadata.PackageNotFoundError):
            raise ClusterError(
                f"worker {address} has no maxmargin; install maxmargin {own} there, too"
            )
        if isinstance(version, BaseException):
            raise ClusterError(f"worker {address} does not answer: {version!r:.200}")
        if version != own:
            raise ClusterError(
                f"worker {address} has maxmargin {version}, and this is {own}; all machines need "
                "the same version"
            )
    return sorted(found)


def check_sendable(what: str, value: Any) -> None:
    """Refuse what cannot be sent to workers.

    Raises
    ------
    NotCompatibleError
        If it cannot be pickled, with the reason.
    """
    import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:
        raise NotCompatibleError(
            f"{what} cannot be sent to the workers, because it cannot be pickled: "
            f"{type(error).__name__}: {str(error)[:200]}"
        ) from error


@contextlib.contextmanager
def local_client(n_workers: int) -> Iterator[Any]:
    """Give a client of a cluster of processes on this machine.

    Parameters
    ----------
    n_workers : int
        How many, with one thread each.
    """
    distributed = require_dask()
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _parts_of(address: str) -> tuple[str, str, int]:
    """Return protocol, host and port of an address.

    Raises
    ------
    ValueError
        If it is none.
    """
    parts = urllib.parse.urlsplit(address if "://" in address else f"tcp://{address}")
    known = ("tcp", "tls", "ws", "wss", "ucx")
    if parts.scheme not in known or not parts.hostname or parts.port is None:
        raise ValueError("expected an address such as tcp://host:8786")
    return parts.scheme, parts.hostname, parts.port


@contextlib.contextmanager
def remote_client(address: str, seconds: float) -> Iterator[Any]:
    """Give a client of the cluster whose scheduler is at an address.

    Parameters
    ----------
    address : str
        Such as ``tcp://host:8786``.
    seconds : float
        How long to wait for an answer.

    Raises
    ------
    ClusterError
        If there is none.
    """
    distributed = require_dask()
    try:
        # A client tries for much longer than it is told to if nobody listens.
        kind, host, port = _parts_of(address)
        if kind in ("tcp", "tls"):
            socket.create_connection((host, port), timeout=seconds).close()
        client = distributed.Client(address, timeout=seconds)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"{address}: no Dask scheduler answers there (waited {seconds:g} s): "
            f"{type(error).__name__}: {str(error)[:200]}"
        ) from error
    with client:
        yield client


class DaskShares(ShareGroup):
    """The shares of a training on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    make : callable
        Class of `maxmargin.distributed.held`.
    given : sequence
        For each share what ``make`` takes: a tuple of arguments, which may contain futures.
    workers : sequence of str
        Where the shares go.
    """

    def __init__(
        self,
        client: Any,
        make: Callable[..., Any],
        given: Sequence[tuple[Any, ...]],
        workers: Sequence[str],
    ) -> None:
        self.client, self._make, self._given = client, make, list(given)
        self.size = len(self._given)
        self.run = f"maxmargin-{uuid.uuid4().hex[:12]}"
        self.homes = [workers[k % len(workers)] for k in range(self.size)]
        self._adopted: tuple[Any, ...] | None = None
        self._told: list[Any] = []

    # ---- data ----

    def open(self) -> list[Any]:
        """Have every share read its data; return what each has to tell of them."""
        self._told = self._try(lambda: self._all(self._opening(range(self.size))))
        return self._told

    def _try(self, call: Callable[[], Any]) -> Any:
        """Call something before training: lost shares just begin anew."""
        lost: set[int] = set()
        for _ in range(5):
            try:
                if lost:
                    self.recover(sorted(lost))
                    lost = set()
                return call()
            except SharesLostError as error:
                lost |= set(error.shares)
        raise ClusterError("workers were lost again and again while data were read")

    def _opening(self, shares: Sequence[int]) -> dict[int, Any]:
        return {
            k: self.client.submit(
                hold,
                self._name(k),
                self._make,
                *self._given[k],
                workers=[self.homes[k]],
                allow_other_workers=False,
                pure=False,
            )
            for k in shares
        }

    def merged(self) -> Any:
        """Return the summaries of all shares as one, merged two by two on the workers."""
        level = self._told
        while len(level) > 1:
            pairs = list(zip(level[::2], level[1::2], strict=False))
            futures = [self.client.submit(merge, a, b, pure=False) for a, b in pairs]
            odd = level[len(pairs) * 2 :]
            level = [*self.client.gather(futures), *odd]
        return level[0]

    def adopt(self, *common: Any) -> None:
        """Make the shares."""
        self._adopted = common
        self._try(lambda: self.call("adopt", *common))

    def model(self) -> tuple[Any, Any]:
        """Return the prepared structure and the regulariser, which are the same for all shares."""
        found: tuple[Any, Any] = self._try(lambda: self.call_one(0, "model"))
        return found

    # ---- calls ----

    def _name(self, k: int) -> str:
        return f"{self.run}:{k}"

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Call a method of every share and return the answers in order."""
        # Arguments go with every task: `Client.scatter` waits for ever for a worker that has died.
        futures = {
            k: self._submit(k, method, *common, *(() if each is None else (each[k],)))
            for k in range(self.size)
        }
        return self._all(futures)

    def call_one(self, k: int, method: str, *args: Any) -> Any:
        """Call a method of one share."""
        return self._all({k: self._submit(k, method, *args)})[0]

    def _submit(self, k: int, method: str, *args: Any) -> Any:
        with self._asking():
            return self.client.submit(
                call,
                self._name(k),
                method,
                *args,
                workers=[self.homes[k]],
                allow_other_workers=False,
                pure=False,
            )

    def _all(self, futures: dict[int, Any]) -> list[Any]:
        """Wait for tasks of shares, and see which of them are lost."""
        wait: Any = require_dask().wait
        shares = list(futures)
        waiting, since = set(shares), time.monotonic()
        while waiting:
            with self._asking(), contextlib.suppress(TimeoutError):
                wait([futures[k] for k in waiting], timeout=LOOK)
            waiting = {k for k in waiting if not futures[k].done()}
            if not waiting:
                break
            if self.client.status != "running":
                if time.monotonic() - since > PATIENCE:
                    raise self._gone("it does not answer")
                continue
            since = time.monotonic()
            with self._asking():
                present = workers_of(self.client)
            gone = [k for k in waiting if self.homes[k] not in present]
            if gone:
                self._cancel(futures)
                raise SharesLostError(gone)
        lost = []
        for k in shares:
            error = futures[k].exception() if futures[k].status == "error" else None
            if futures[k].status in ("cancelled", "lost") or _is_loss(error):
                lost.append(k)
            elif error is not None:
                raise error
        if lost:
            if self.client.status != "running":
                raise self._gone("tasks were cancelled")
            self._cancel(futures)
            raise SharesLostError(lost)
        return self._gathered(futures)

    def _gathered(self, futures: dict[int, Any]) -> list[Any]:
        """Return the results of tasks that are done.

        A worker may die between the end of its task and the moment at which the result is fetched.
        Dask then makes the task anew where it was, which is nowhere: `Client.gather` alone would
        wait for ever.
        """
        with self._asking():
            gathering = asyncio.run_coroutine_threadsafe(
                # Not through the scheduler, unless a worker cannot be reached from here.
                self.client.gather(list(futures.values()), direct=True, asynchronous=True),
                self.client.loop.asyncio_loop,
            )
        while True:
            with self._asking(), contextlib.suppress(concurrent.futures.TimeoutError):
                return list(gathering.result(LOOK))
            if gathering.done():  # just now, or the time-out was its own
                with self._asking():
                    return list(gathering.result())
            if self.client.status != "running":
                gathering.cancel()
                raise self._gone("results were not sent")
            with self._asking():
                present = workers_of(self.client)
            gone = [k for k in futures if self.homes[k] not in present]
            if gone:
                gathering.cancel()
                self._cancel(futures)
                raise SharesLostError(gone)

    def _cancel(self, futures: dict[int, Any]) -> None:
        with contextlib.suppress(Exception):
            self.client.cancel(list(futures.values()), force=True)

    def _gone(self, why: str) -> ClusterError:
        return ClusterError(f"the scheduler of the cluster has gone away ({why})")

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn what Dask raises when a worker or its scheduler goes away into our own errors."""
        try:
            yield
        except (ClusterError, SharesLostError, KeyboardInterrupt):
            raise
        except Exception as error:
            # The scheduler learns of a lost worker in a moment, as the client does of a lost
            # scheduler.
            end = time.monotonic() + 5.0
            while time.monotonic() < end:
                if self.client.status != "running":
                    raise self._gone(type(error).__name__) from error
                try:
                    present = workers_of(self.client)
                except Exception as other:
                    raise self._gone(type(other).__name__) from error
                lost = [k for k, home in enumerate(self.homes) if home not in present]
                if lost:
                    raise SharesLostError(lost) from error
                time.sleep(LOOK)
            raise

    # ---- faults ----

    def _move(self, lost: Sequence[int]) -> None:
        """Choose other homes for lost shares: a worker that is new, or that has the fewest."""
        end = time.monotonic() + PATIENCE
        grace = time.monotonic() + 3.0
        while True:
            with self._asking():
                present = workers_of(self.client)
            held = Counter(home for k, home in enumerate(self.homes) if k not in lost)
            free = [address for address in present if held[address] == 0]
            # A nanny starts another process within a moment; that is better than two shares in one.
            if present and (len(free) >= len(set(lost)) or time.monotonic() > grace):
                break
            if time.monotonic() > end:
                raise ClusterError(
                    f"all workers of the cluster have gone away (waited {PATIENCE:g} s)"
                )
            time.sleep(LOOK)
        for k in lost:
            home = min(present, key=lambda address: (held[address], address))
            self.homes[k] = home
            held[home] += 1

    def recover(self, lost: Sequence[int]) -> None:
        """Give lost shares to workers that are there, which read their data again."""
        self._move(lost)
        self._all(self._opening(lost))
        if self._adopted is not None:
            self._all({k: self._submit(k, "adopt", *self._adopted) for k in lost})

    def close(self) -> None:
        """Have the workers forget the shares."""
        with contextlib.suppress(Exception):
            self.client.run(drop, self.run, on_error="ignore")


def _is_loss(error: BaseException | None) -> bool:
    """Whether an error means that the worker of a share has gone."""
    if error is None:
        return False
    name = type(error).__name__
    return isinstance(error, ShareMissingError) or name in (
        "KilledWorker",
        "CancelledError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "FutureLostError",
        "WorkerDiedError",
    )
