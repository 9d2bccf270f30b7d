"""Large-margin learning of structured outputs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.comparing import Comparison, EstimatorPath, compare, path
    from maxmargin.errors import (
        CalibrationWarning,
        CheckpointWarning,
        ConvergenceWarning,
        FileFormatError,
        InUseError,
        MaxMarginError,
        ModelFormatError,
        NotCompatibleError,
        NotSeparableError,
        ObjectiveRoseError,
        ScalingWarning,
        StructureError,
    )
    from maxmargin.estimators import SequenceTagger, StructuralSVM
    from maxmargin.estimators.aligner import Aligner
    from maxmargin.estimators.classes import MulticlassSVM
    from maxmargin.estimators.dependency import DependencyParser
    from maxmargin.estimators.files import load
    from maxmargin.estimators.latent import LatentStructuralSVM
    from maxmargin.estimators.latent_svm import LatentSVM
    from maxmargin.estimators.linear import SVR, BinarySVM
    from maxmargin.estimators.parser import Parser
    from maxmargin.estimators.progress import ProgressBar
    from maxmargin.estimators.self_training import constraint_driven
    from maxmargin.estimators.taxonomy import TaxonomySVM
    from maxmargin.estimators.transductive import TransductiveTagger
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.embeddings import Embeddings
    from maxmargin.features.template import Template
    from maxmargin.io.brackets import read_trees, write_trees
    from maxmargin.io.columns import read_columns
    from maxmargin.io.embeddings import read_embeddings
    from maxmargin.metrics import evaluate
    from maxmargin.regularizers import (
        L1,
        L2,
        Bounded,
        ElasticNet,
        GaussianPrior,
        L1Ball,
        Nonnegative,
    )
    from maxmargin.solvers import (
        BCFW,
        LP,
        SAP,
        SDM,
        Certificate,
        DualCoordinate,
        ExtraGradient,
        History,
        InteriorPoint,
        NSlack,
        OneSlack,
        Online,
        Subgradient,
    )
    from maxmargin.solvers.transductive import TransductiveSVM
    from maxmargin.structures import Chain, Kernel, Structure, StructureReport, check_structure
    from maxmargin.structures.alignment import Alignment
    from maxmargin.structures.constraints import Constraints
    from maxmargin.structures.dependency import DependencyTree
    from maxmargin.structures.grammar import Grammar
    from maxmargin.structures.latent import Latent
    from maxmargin.structures.multiclass import Multiclass
    from maxmargin.structures.taxonomy import Taxonomy
    from maxmargin.trees import Tree

    __version__: str

__all__ = [
    "BCFW",
    "L1",
    "L2",
    "LP",
    "SAP",
    "SDM",
    "SVR",
    "Aligner",
    "Alignment",
    "BinarySVM",
    "Bounded",
    "CalibrationWarning",
    "Certificate",
    "Chain",
    "CheckpointWarning",
    "ColumnTable",
    "Comparison",
    "Constraints",
    "ConvergenceWarning",
    "DependencyParser",
    "DependencyTree",
    "DualCoordinate",
    "ElasticNet",
    "Embeddings",
    "EstimatorPath",
    "ExtraGradient",
    "FileFormatError",
    "GaussianPrior",
    "Grammar",
    "History",
    "InUseError",
    "InteriorPoint",
    "Kernel",
    "L1Ball",
    "Latent",
    "LatentSVM",
    "LatentStructuralSVM",
    "MaxMarginError",
    "ModelFormatError",
    "Multiclass",
    "MulticlassSVM",
    "NSlack",
    "Nonnegative",
    "NotCompatibleError",
    "NotSeparableError",
    "ObjectiveRoseError",
    "OneSlack",
    "Online",
    "Parser",
    "ProgressBar",
    "ScalingWarning",
    "SequenceTagger",
    "StructuralSVM",
    "Structure",
    "StructureError",
    "StructureReport",
    "Subgradient",
    "Taxonomy",
    "TaxonomySVM",
    "Template",
    "TransductiveSVM",
    "TransductiveTagger",
    "Tree",
    "__version__",
    "check_structure",
    "compare",
    "constraint_driven",
    "evaluate",
    "load",
    "path",
    "read_columns",
    "read_embeddings",
    "read_trees",
    "write_trees",
]

# Where the public names live. They are imported when first asked for, so that `import maxmargin`
# (and with it `maxmargin --help`) does not wait for scikit-learn and SciPy.
_HOMES = {
    "comparing": ("Comparison", "EstimatorPath", "compare", "path"),
    "errors": (
        "CalibrationWarning",
        "CheckpointWarning",
        "ConvergenceWarning",
        "FileFormatError",
        "InUseError",
        "MaxMarginError",
        "ModelFormatError",
        "NotCompatibleError",
        "NotSeparableError",
        "ObjectiveRoseError",
        "ScalingWarning",
        "StructureError",
    ),
    "estimators": ("SequenceTagger", "StructuralSVM"),
    "estimators.aligner": ("Aligner",),
    "estimators.classes": ("MulticlassSVM",),
    "estimators.dependency": ("DependencyParser",),
    "estimators.latent": ("LatentStructuralSVM",),
    "estimators.latent_svm": ("LatentSVM",),
    "estimators.linear": ("SVR", "BinarySVM"),
    "estimators.files": ("load",),
    "estimators.parser": ("Parser",),
    "estimators.self_training": ("constraint_driven",),
    "estimators.progress": ("ProgressBar",),
    "estimators.taxonomy": ("TaxonomySVM",),
    "estimators.transductive": ("TransductiveTagger",),
    "features.columns": ("ColumnTable",),
    "features.embeddings": ("Embeddings",),
    "features.template": ("Template",),
    "io.brackets": ("read_trees", "write_trees"),
    "io.columns": ("read_columns",),
    "io.embeddings": ("read_embeddings",),
    "metrics": ("evaluate",),
    "regularizers": (
        "L1",
        "L1Ball",
        "L2",
        "Bounded",
        "ElasticNet",
        "GaussianPrior",
        "Nonnegative",
    ),
    "solvers": (
        "BCFW",
        "LP",
        "SAP",
        "SDM",
        "Certificate",
        "DualCoordinate",
        "ExtraGradient",
        "History",
        "InteriorPoint",
        "NSlack",
        "OneSlack",
        "Online",
        "Subgradient",
    ),
    "solvers.transductive": ("TransductiveSVM",),
    "structures": ("Chain", "Kernel", "Structure", "StructureReport", "check_structure"),
    "structures.alignment": ("Alignment",),
    "structures.constraints": ("Constraints",),
    "structures.dependency": ("DependencyTree",),
    "structures.grammar": ("Grammar",),
    "structures.latent": ("Latent",),
    "structures.multiclass": ("Multiclass",),
    "structures.taxonomy": ("Taxonomy",),
    "trees": ("Tree",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
#: Modules that are part of the interface: `maxmargin.scorers.chunk_f1` needs no import of its own.
_MODULES = ("constraints", "distributed", "scorers", "streams", "types")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("maxmargin")
    elif name in _HOME_OF:
        value = getattr(import_module(f"maxmargin.{_HOME_OF[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"maxmargin.{name}")
    else:
        raise AttributeError(f"module 'maxmargin' has no attribute {name!r}")
    globals()[name] = value  # asked for once only
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
