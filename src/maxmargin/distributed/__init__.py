"""Training on many machines, with Dask (extra ``dask``)."""

from __future__ import annotations

__all__: list[str] = []
