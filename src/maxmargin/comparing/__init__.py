"""Comparisons of solvers on one problem, by their distance to a common optimum.

- `subject`: `maxmargin.compare`, on an estimator with its data or on a native problem
- `run`: the runs of the solvers
- `paths`: `maxmargin.path`, a regularisation path of an estimator
- `arguments`: its arguments, checked
- `records`: points, runs and the reference, and what is measured of them
- `comparison`: what it returns, with tables and a file format
- `plot`: the picture
"""

from maxmargin.comparing.comparison import Comparison
from maxmargin.comparing.paths import EstimatorPath, path
from maxmargin.comparing.records import Point, Reference, Run
from maxmargin.comparing.subject import compare

__all__ = ["Comparison", "EstimatorPath", "Point", "Reference", "Run", "compare", "path"]
