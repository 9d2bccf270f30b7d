"""The scikit-learn face: estimators that join a structure and a solver."""

from maxmargin.estimators.structural import StructuralSVM
from maxmargin.estimators.tagger import SequenceTagger

__all__ = ["SequenceTagger", "StructuralSVM"]
