"""A PCFG by counting: the generative baseline of Table 5 of Tsochantaridis et al. (2004).

The probability of a rule is its share of the rules with the same left side in the training trees
(the maximum-likelihood estimate), that of a root its share of the trees. The best tree is found by
the parser of `maxmargin` with the logarithms as weights, so that the baseline and the large-margin
models have the same rules, the same unknown words and the same answer where there is no parse.
"""

from __future__ import annotations

from collections.abc import Sequence

from maxmargin.structures.treebank import Treebank
from maxmargin.trees import Tree

__all__ = ["PCFG"]


class PCFG:
    """A probabilistic context-free grammar.

    Parameters are those of `maxmargin.Parser`.
    """

    def __init__(
        self,
        *,
        vertical: int = 1,
        horizontal: int | None = None,
        lexicon: str = "tags",
        min_count: int = 2,
    ) -> None:
        self.structure = Treebank(
            "zero_one",
            vertical=vertical,
            horizontal=horizontal,
            lexicon=lexicon,
            min_count=min_count,
            count=True,
        )

    def fit(self, trees: Sequence[Tree]) -> PCFG:
        """Count."""
        structure = self.structure
        structure.prepare(trees, trees)
        self.weights = structure.native_weights(structure.log_probabilities())
        return self

    def predict(self, trees: Sequence[Tree]) -> list[Tree]:
        """Return the most likely trees of the sentences of given trees."""
        found = self.structure.predict(trees, self.weights, 1)
        flat = self.structure.reading_.flat
        return [
            flat(list(tree.pairs())) if guess is None else guess
            for tree, guess in zip(trees, found, strict=True)
        ]
