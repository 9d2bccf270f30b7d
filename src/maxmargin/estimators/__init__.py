"""The scikit-learn face: estimators that join a structure and a solver."""

from maxmargin.estimators.classes import MulticlassSVM
from maxmargin.estimators.linear import SVR, BinarySVM
from maxmargin.estimators.structural_svm import StructuralSVM
from maxmargin.estimators.tagger import SequenceTagger
from maxmargin.estimators.taxonomy import TaxonomySVM

__all__ = [
    "SVR",
    "BinarySVM",
    "MulticlassSVM",
    "SequenceTagger",
    "StructuralSVM",
    "TaxonomySVM",
]
