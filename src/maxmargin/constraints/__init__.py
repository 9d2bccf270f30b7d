"""Prior knowledge about labellings, in a language that people can read.

    >>> from maxmargin.constraints import Changes, ConstraintSet, First, OneSegment, Words
    >>> rules = ConstraintSet([
    ...     First(["author", "editor"]),
    ...     Changes(after="punctuation"),
    ...     Words(["pp", "pages"], "pages"),
    ...     OneSegment(),
    ... ])
    >>> len(rules)
    4

Paper: Yu, "Transductive Learning of Structural SVMs via Prior Knowledge Constraints", AISTATS 2012.
``docs/constraints.md`` explains the language, its TOML form, and what is exact.
"""

from maxmargin.constraints.base import Case, Constraint
from maxmargin.constraints.bound import BoundConstraints, Inference
from maxmargin.constraints.expectations import NGrams, Proportion
from maxmargin.constraints.functions import EdgeFunction, SequenceFunction, TokenFunction
from maxmargin.constraints.gamma import (
    Gamma,
    GammaBlocks,
    IntervalGamma,
    OwnGamma,
    SumGamma,
)
from maxmargin.constraints.local import Changes, First, Last, Words
from maxmargin.constraints.matching import TokenMatch
from maxmargin.constraints.report import ConstraintReport
from maxmargin.constraints.sample import Sample
from maxmargin.constraints.sequence_rules import (
    AtLeast,
    AtMost,
    Exactly,
    MinimumLength,
    OneSegment,
    Order,
)
from maxmargin.constraints.sets import ConstraintSet

__all__ = [
    "AtLeast",
    "AtMost",
    "BoundConstraints",
    "Case",
    "Changes",
    "Constraint",
    "ConstraintReport",
    "ConstraintSet",
    "EdgeFunction",
    "Exactly",
    "First",
    "Gamma",
    "GammaBlocks",
    "Inference",
    "IntervalGamma",
    "Last",
    "MinimumLength",
    "NGrams",
    "OneSegment",
    "Order",
    "OwnGamma",
    "Proportion",
    "Sample",
    "SequenceFunction",
    "SumGamma",
    "TokenFunction",
    "TokenMatch",
    "Words",
]
