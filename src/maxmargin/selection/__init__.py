"""Training on encoded data and choosing among models; without scikit-learn.

The command line and the tests of its models use these calls; each file has one idea:

- `encoded`: sequences in numbers, with their true labels
- `fitting`: one training
- `validation`: scores, and the best pass of a training
- `grid`: several C
- `cross_validation`: folds
- `auto_c`: a search for C
- `path`: several l1_ratios, and the sparsest model that is good enough
- `nonzeros`: the l1_ratio for a wanted number of weights
- `refit`: a sparse model trained again without L1
"""

from maxmargin.selection.auto_c import search_C
from maxmargin.selection.cross_validation import cross_validate, folds
from maxmargin.selection.encoded import Encoded, encode_labelled
from maxmargin.selection.fitting import FitOptions, Outcome, fit
from maxmargin.selection.grid import fit_grid
from maxmargin.selection.nonzeros import SparseOutcome, search_nonzeros
from maxmargin.selection.path import (
    RATIOS,
    Path,
    PathPoint,
    path_points,
    regularization_path,
)
from maxmargin.selection.refit import debias
from maxmargin.selection.validation import Validation, main_score, report_of

__all__ = [
    "RATIOS",
    "Encoded",
    "FitOptions",
    "Outcome",
    "Path",
    "PathPoint",
    "SparseOutcome",
    "Validation",
    "cross_validate",
    "debias",
    "encode_labelled",
    "fit",
    "fit_grid",
    "folds",
    "main_score",
    "path_points",
    "regularization_path",
    "report_of",
    "search_C",
    "search_nonzeros",
]
