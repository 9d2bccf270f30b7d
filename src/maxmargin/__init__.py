"""Large-margin learning of structured outputs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.comparing import Comparison, compare
    from maxmargin.errors import (
        CheckpointWarning,
        ConvergenceWarning,
        FileFormatError,
        InUseError,
        MaxMarginError,
        ModelFormatError,
        NotCompatibleError,
        NotSeparableError,
        ScalingWarning,
        StructureError,
    )
    from maxmargin.estimators import SequenceTagger, StructuralSVM
    from maxmargin.estimators.files import load
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.template import Template
    from maxmargin.io.columns import read_columns
    from maxmargin.metrics import evaluate
    from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball
    from maxmargin.solvers import (
        BCFW,
        LP,
        SAP,
        SDM,
        Certificate,
        ExtraGradient,
        History,
        InteriorPoint,
        NSlack,
        OneSlack,
        Subgradient,
    )
    from maxmargin.structures import Chain, Kernel, Structure, StructureReport, check_structure

    __version__: str

__all__ = [
    "BCFW",
    "L1",
    "L2",
    "LP",
    "SAP",
    "SDM",
    "Certificate",
    "Chain",
    "CheckpointWarning",
    "ColumnTable",
    "Comparison",
    "ConvergenceWarning",
    "ElasticNet",
    "ExtraGradient",
    "FileFormatError",
    "History",
    "InUseError",
    "InteriorPoint",
    "Kernel",
    "L1Ball",
    "MaxMarginError",
    "ModelFormatError",
    "NSlack",
    "NotCompatibleError",
    "NotSeparableError",
    "OneSlack",
    "ScalingWarning",
    "SequenceTagger",
    "StructuralSVM",
    "Structure",
    "StructureError",
    "StructureReport",
    "Subgradient",
    "Template",
    "__version__",
    "check_structure",
    "compare",
    "evaluate",
    "load",
    "read_columns",
]

# Where the public names live. They are imported when first asked for, so that `import maxmargin`
# (and with it `maxmargin --help`) does not wait for scikit-learn and SciPy.
_HOMES = {
    "comparing": ("Comparison", "compare"),
    "errors": (
        "CheckpointWarning",
        "ConvergenceWarning",
        "FileFormatError",
        "InUseError",
        "MaxMarginError",
        "ModelFormatError",
        "NotCompatibleError",
        "NotSeparableError",
        "ScalingWarning",
        "StructureError",
    ),
    "estimators": ("SequenceTagger", "StructuralSVM"),
    "estimators.files": ("load",),
    "features.columns": ("ColumnTable",),
    "features.template": ("Template",),
    "io.columns": ("read_columns",),
    "metrics": ("evaluate",),
    "regularizers": ("L1", "L1Ball", "L2", "ElasticNet"),
    "solvers": (
        "BCFW",
        "LP",
        "SAP",
        "SDM",
        "Certificate",
        "ExtraGradient",
        "History",
        "InteriorPoint",
        "NSlack",
        "OneSlack",
        "Subgradient",
    ),
    "structures": ("Chain", "Kernel", "Structure", "StructureReport", "check_structure"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("maxmargin")
    elif name in _HOME_OF:
        value = getattr(import_module(f"maxmargin.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'maxmargin' has no attribute {name!r}")
    globals()[name] = value  # asked for once only
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
