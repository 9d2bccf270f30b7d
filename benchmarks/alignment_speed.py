"""Cells a second of the dynamic programme of alignments, beside a plain loop in C and parasail.

`benchmarks/alignment.py` prints it.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_pairs import Pairs, fixed_aligner
from maxmargin import Alignment
from maxmargin.io.substitution import blosum62

PLAIN_LOOP = r"""
float plain(const unsigned char *a, int n, const unsigned char *b, int m, const float *S, int K,
            float open, float extend, unsigned char *trace, float *H, float *X) {
  for (int j = 0; j <= m; ++j) { H[j] = j ? open + (j - 1) * extend : 0; X[j] = -1e30f; }
  for (int i = 1; i <= n; ++i) {
    float diagonal = H[0], y = -1e30f;
    const float *s = S + a[i - 1] * K;
    H[0] = open + (i - 1) * extend;
    for (int j = 1; j <= m; ++j) {
      unsigned char t = 0;
      float xo = H[j] + open, xe = X[j] + extend, yo = H[j - 1] + open, ye = y + extend;
      if (xe > xo) { X[j] = xe; t |= 4; } else X[j] = xo;
      if (ye > yo) { y = ye; t |= 8; } else y = yo;
      float h = diagonal + s[b[j - 1]];
      diagonal = H[j];
      if (X[j] > h) { h = X[j]; t |= 1; }
      if (y > h) { h = y; t = (t & ~3) | 2; }
      H[j] = h;
      trace[(long)(i - 1) * m + j - 1] = t;
    }
  }
  return H[m];
}
"""


class PlainLoop:
    """The plain loop in C, compiled here."""

    def __init__(self, folder: str) -> None:
        source, library = Path(folder) / "plain.c", Path(folder) / "plain.so"
        source.write_text(PLAIN_LOOP)
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise OSError("no C compiler")
        subprocess.run([compiler, "-O3", "-shared", "-fPIC", "-o", library, source], check=True)
        self.plain = ctypes.CDLL(str(library)).plain
        self.plain.restype = ctypes.c_float

    def scores(
        self, X: list[tuple[str, str]], S: NDArray[np.float32], open_: float, extend: float
    ) -> list[float]:
        """Return the scores of the best alignments; the time is in ``seconds``."""
        place = {letter: k for k, letter in enumerate(Alignment("protein").alphabet or "")}
        found = []
        longest = max(max(map(len, x)) for x in X)
        trace = np.empty(longest * longest, dtype=np.uint8)
        H, row = np.empty(longest + 1, dtype=np.float32), np.empty(longest + 1, dtype=np.float32)
        coded = [[np.array([place[c] for c in s], dtype=np.uint8) for s in x] for x in X]

        def at(array: NDArray[Any]) -> ctypes.c_void_p:
            return ctypes.c_void_p(array.ctypes.data)

        begin = time.process_time()
        for a, b in coded:
            found.append(
                self.plain(
                    *(at(a), len(a), at(b), len(b), at(S), len(S)),
                    *(ctypes.c_float(open_), ctypes.c_float(extend), at(trace), at(H), at(row)),
                )
            )
        self.seconds = time.process_time() - begin
        return found


def speed(pairs: Pairs, repeats: int) -> dict[str, Any]:
    """Return millions of cells a second, the best of some interleaved runs."""
    best: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        best[name] = max(best.get(name, 0.0), pairs.cells / seconds / 1e6)

    model = fixed_aligner(blosum62(), -11, -1)
    problems = {}
    for mode, dtype in itertools.product(("global", "local", "semiglobal"), ("float32", "float64")):
        structure = Alignment("protein", mode=mode, loss="residues")
        problem = structure.prepare_problem(*pairs, dtype=dtype).problem
        problems[mode, dtype] = problem, model.weights_.astype(dtype)
    scores = model.structure_.matrix(model.weights_).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        try:
            plain = PlainLoop(folder)
        except (OSError, subprocess.CalledProcessError):
            plain = None
        for _ in range(repeats):
            for (mode, dtype), (problem, weights) in problems.items():
                begin = time.process_time()
                problem.augmented(weights, 1.0)
                note(f"{mode} {dtype}", time.process_time() - begin)
            if plain is not None:
                found = plain.scores(pairs.X, scores, -11.0, -1.0)
                note("plain C loop", plain.seconds)
                # The plain loop may go from a gap in one sequence to one in the other in either
                # order, which makes no difference to the best score.
                assert np.allclose(found, model.decision_function(pairs.X))
            for name, seconds in parasail_seconds(pairs):
                note(name, seconds)
    return {
        "cells_per_second": best,
        "over_plain": best["global float32"] / best["plain C loop"]
        if "plain C loop" in best
        else None,
    }


def parasail_seconds(pairs: Pairs) -> list[tuple[str, float]]:
    try:
        import parasail
    except ImportError:
        return []
    timed = []
    for name in ("nw_trace", "nw_trace_scan_16"):
        align = getattr(parasail, name)
        begin = time.process_time()
        for a, b in pairs.X:
            align(a, b, 11, 1, parasail.blosum62)
        timed.append((f"parasail {name}", time.process_time() - begin))
    return timed
