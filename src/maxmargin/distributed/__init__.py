"""Training on many machines, with Dask (extra ``dask``): see ``docs/cluster.md``."""

from __future__ import annotations

from maxmargin.distributed.coordinator import Coordinator
from maxmargin.distributed.estimators import DaskSequenceTagger, DaskStructuralSVM
from maxmargin.distributed.group import InProcess, ShareGroup
from maxmargin.distributed.records import Outcome, RoundRecord
from maxmargin.distributed.share import Share

__all__ = [
    "Coordinator",
    "DaskSequenceTagger",
    "DaskStructuralSVM",
    "InProcess",
    "Outcome",
    "RoundRecord",
    "Share",
    "ShareGroup",
]
