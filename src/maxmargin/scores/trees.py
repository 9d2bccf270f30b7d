"""How good predicted parse trees are: brackets as ``evalb`` counts them.

A *bracket* is a node above the parts of speech: its label and the words that it spans. Precision is
the share of the predicted brackets that are in the true tree, recall the share of the true ones
that were predicted, both over all brackets of the corpus (micro-averages), and F₁ is their harmonic
mean. Equal brackets of one tree, (NP (NP ...)), are matched one to one. A tree is an exact match if
all its brackets are matched and there are no others.

``evalb`` (Sekine and Collins) reads what it counts from a parameter file. `COLLINS` is the one that
nearly all published figures were made with, ``COLLINS.prm``:

- words with the tags , : `` '' . and traces (-NONE-) are removed before spans are counted, and so
  are nodes that dominate nothing else;
- brackets labelled TOP are not counted (nor those with an empty label, which the reader removes);
- ADVP and PRT are the same label.

`PLAIN` counts every bracket with its span over all words. Function tags (NP-SBJ, NP=2) are not part
of a label under either: all behind the first - or = is left away, as ``evalb`` does, except in
labels that begin with one (-LRB-).

Which words are removed is decided by the tags of the true tree, also in a predicted tree that has
others. Two differences from the program: a sentence that has no predicted tree counts with all its
true brackets missed, while ``evalb`` leaves it out of its sums; and a predicted tree whose
words are not those of the true one is an error, while ``evalb`` counts it as such and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from maxmargin.printable import quoted
from maxmargin.trees import Tree, category_of

__all__ = ["COLLINS", "PLAIN", "BracketCounts", "Counting", "TreeReport", "evaluate_trees"]


@dataclass(frozen=True)
class Counting:
    """What counts as a bracket.

    Parameters
    ----------
    no_words : frozenset of str
        Parts of speech whose words are removed from the sentence.
    no_labels : frozenset of str
        Labels of nodes that are not counted.
    equal : mapping of str to str
        Labels that count as another one.
    """

    no_words: frozenset[str] = frozenset()
    no_labels: frozenset[str] = frozenset()
    equal: dict[str, str] = field(default_factory=dict)

    def label(self, label: str) -> str:
        """Return a label as it is compared.

        Parameters
        ----------
        label : str
            As the tree has it.
        """
        label = category_of(label)
        return self.equal.get(label, label)

    def brackets(
        self, tree: Tree, tags: Sequence[str] | None = None
    ) -> Counter[tuple[str, int, int]]:
        """Return the brackets of a tree, with their numbers.

        Parameters
        ----------
        tree : Tree
            A tree.
        tags : sequence of str or None
            The parts of speech that decide which words are removed; None: those of the tree.

        Returns
        -------
        Counter
            Of (label, begin, end).
        """
        place = [0]  # of each word among those that count
        for tag in tree.tags() if tags is None else tags:
            place.append(place[-1] + (tag not in self.no_words))
        found: Counter[tuple[str, int, int]] = Counter()
        for span in tree.spans():
            begin, end = place[span.begin], place[span.end]
            if begin < end and span.label not in self.no_labels:
                found[self.label(span.label), begin, end] += 1
        return found


#: As COLLINS.prm of evalb.
COLLINS = Counting(
    no_words=frozenset([",", ":", "``", "''", ".", "-NONE-"]),
    no_labels=frozenset(["TOP"]),
    equal={"PRT": "ADVP"},
)
#: Every node above the parts of speech.
PLAIN = Counting()


@dataclass(frozen=True)
class BracketCounts:
    """What was counted in one sentence, or in all together.

    Parameters
    ----------
    n_true, n_predicted, n_correct : int
        Brackets of the true tree, of the predicted one, and of both.
    n_crossing : int
        Predicted brackets that overlap with a true one without being within it or around it.
    n_exact : int
        Trees with all brackets right.
    n_trees : int
        Trees that were counted.
    """

    n_true: int = 0
    n_predicted: int = 0
    n_correct: int = 0
    n_crossing: int = 0
    n_exact: int = 0
    n_trees: int = 1

    @property
    def precision(self) -> float:
        """Share of the predicted brackets that is right; 0 if none was predicted."""
        return self.n_correct / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true brackets that was found; 0 if there are none."""
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if both are."""
        both = self.n_true + self.n_predicted
        return 2 * self.n_correct / both if both else 0.0

    @property
    def exact(self) -> float:
        """Share of the trees that have all brackets right; 0 without trees."""
        return self.n_exact / self.n_trees if self.n_trees else 0.0

    @property
    def crossing(self) -> float:
        """Crossing brackets a tree; 0 without trees."""
        return self.n_crossing / self.n_trees if self.n_trees else 0.0


@dataclass(frozen=True)
class TreeReport(BracketCounts):
    """The counts of a corpus, with those of its sentences.

    Parameters
    ----------
    sentences : tuple of BracketCounts
        The counts of each sentence, for tests of significance.
    n_without_tree : int
        Sentences for which nothing was predicted.
    n_without_crossing : int
        Sentences with a predicted tree that has no crossing bracket.
    """

    sentences: tuple[BracketCounts, ...] = ()
    n_without_tree: int = 0
    n_without_crossing: int = 0

    def to_dict(self) -> dict[str, float]:
        """Return shares and counts, as JSON can hold them."""
        return {
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "exact": self.exact,
            "crossing": self.crossing,
            "n_true": self.n_true,
            "n_predicted": self.n_predicted,
            "n_correct": self.n_correct,
            "n_trees": self.n_trees,
            "n_without_tree": self.n_without_tree,
        }

    def __str__(self) -> str:
        return (
            f"F1 {100 * self.f1:.2f} %, precision {100 * self.precision:.2f} %, recall "
            f"{100 * self.recall:.2f} %, exact match {100 * self.exact:.2f} % of {self.n_trees}"
        )


def evaluate_trees(
    truth: Sequence[Tree], predicted: Sequence[Tree | None], counting: Counting = COLLINS
) -> TreeReport:
    """Compare predicted trees with the true ones.

    Parameters
    ----------
    truth : sequence of Tree
        The true trees.
    predicted : sequence of Tree or None
        A tree for each, with the same words, or None where no tree was found.
    counting : Counting
        What counts as a bracket: `COLLINS` or `PLAIN`, or another choice.

    Returns
    -------
    TreeReport
        Counts and shares.

    Raises
    ------
    ValueError
        If there are more or fewer predicted trees, or one has other words; the message names the
        sentence and the word.
    """
    if len(truth) != len(predicted):
        raise ValueError(f"there are {len(truth)} true trees, but {len(predicted)} predicted ones")
    rows = []
    without_tree = 0
    for i, (true, guess) in enumerate(zip(truth, predicted, strict=True)):
        wanted = counting.brackets(true)
        if guess is None:
            without_tree += 1
            rows.append(BracketCounts(wanted.total()))
            continue
        _check_words(i, true, guess)
        found = counting.brackets(guess, true.tags())
        n_correct = (wanted & found).total()
        rows.append(
            BracketCounts(
                wanted.total(),
                found.total(),
                n_correct,
                _crossing(wanted, found),
                int(n_correct == wanted.total() == found.total()),
            )
        )
    return TreeReport(
        n_true=sum(row.n_true for row in rows),
        n_predicted=sum(row.n_predicted for row in rows),
        n_correct=sum(row.n_correct for row in rows),
        n_crossing=sum(row.n_crossing for row in rows),
        n_exact=sum(row.n_exact for row in rows),
        n_trees=len(rows),
        sentences=tuple(rows),
        n_without_tree=without_tree,
        n_without_crossing=sum(row.n_crossing == 0 for row in rows) - without_tree,
    )


def _check_words(i: int, true: Tree, guess: Tree) -> None:
    wanted, found = true.words(), guess.words()
    if wanted == found:
        return
    if len(wanted) != len(found):
        raise ValueError(
            f"sentence {i}: the predicted tree has {len(found)} words, the true one {len(wanted)}"
        )
    t = next(k for k, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b)
    raise ValueError(
        f"sentence {i}: word {t} of the predicted tree is {quoted(found[t])}; expected "
        f"{quoted(wanted[t])}, as in the true one"
    )


def _crossing(wanted: Counter[tuple[str, int, int]], found: Counter[tuple[str, int, int]]) -> int:
    spans = {(begin, end) for _, begin, end in wanted}
    return sum(
        number
        for (_, begin, end), number in found.items()
        if any(a < begin < b < end or begin < a < end < b for a, b in spans)
    )
