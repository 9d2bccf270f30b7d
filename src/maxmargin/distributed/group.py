"""The shares of a training, wherever they are: what the coordinator talks to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from maxmargin.distributed.share import Share

__all__ = ["InProcess", "ShareGroup", "SharesLostError"]


class SharesLostError(Exception):
    """Some shares are not there any more.

    Parameters
    ----------
    shares : sequence of int
        Their numbers.
    """

    def __init__(self, shares: Sequence[int]) -> None:
        super().__init__(f"shares {list(shares)} were lost")
        self.shares = list(shares)


class ShareGroup(ABC):
    """All shares; calls go to all of them at once."""

    #: Number of shares.
    size: int

    @abstractmethod
    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Call a method of every share and return the answers in order.

        Parameters
        ----------
        method : str
            A method of `Share`.
        *common : object
            What all of them are given.
        each : sequence, optional
            One more argument for each.

        Raises
        ------
        SharesLostError
            If some shares are lost; the others have answered or will not be asked again.
        """

    @abstractmethod
    def call_one(self, k: int, method: str, *args: Any) -> Any:
        """Call a method of one share."""

    @abstractmethod
    def recover(self, lost: Sequence[int]) -> None:
        """Make lost shares anew, with their data and without multipliers."""


class InProcess(ShareGroup):
    """Shares in this process, one after the other: for simulations and tests.

    Parameters
    ----------
    make : callable
        Makes share k.
    size : int
        How many there are.
    """

    def __init__(self, make: Callable[[int], Share], size: int) -> None:
        self.size = size
        self._make = make
        self.shares: list[Share | None] = [make(k) for k in range(size)]

    def call(self, method: str, *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Call a method of every share and return the answers in order."""
        lost = [k for k, share in enumerate(self.shares) if share is None]
        if lost:
            raise SharesLostError(lost)
        return [
            self.call_one(k, method, *common, *(() if each is None else (each[k],)))
            for k in range(self.size)
        ]

    def call_one(self, k: int, method: str, *args: Any) -> Any:
        """Call a method of one share."""
        share = self.shares[k]
        if share is None:
            raise SharesLostError([k])
        return getattr(share, method)(*args)

    def lose(self, k: int) -> None:
        """Forget a share, as if its machine had gone."""
        self.shares[k] = None

    def recover(self, lost: Sequence[int]) -> None:
        """Make lost shares anew."""
        for k in lost:
            self.shares[k] = self._make(k)
