"""Comparisons of solvers on one problem, by their distance to a common optimum.

- `run`: `maxmargin.compare`, which runs the solvers
- `arguments`: its arguments, checked
- `records`: points, runs and the reference, and what is measured of them
- `comparison`: what it returns, with tables and a file format
- `plot`: the picture
"""

from maxmargin.comparing.comparison import Comparison
from maxmargin.comparing.records import Point, Reference, Run
from maxmargin.comparing.run import compare

__all__ = ["Comparison", "Point", "Reference", "Run", "compare"]
