"""What is on the page, as records: plain values, without HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.metrics import TagReport
    from maxmargin.scores.calibration import Reliability
    from maxmargin.solvers import Certificate, PassRecord

__all__ = [
    "Confidence",
    "Content",
    "Costly",
    "Course",
    "DataFacts",
    "Evaluation",
    "Learned",
    "Shown",
]


class DataFacts(NamedTuple):
    """How large some data are, and which labels they have.

    Attributes
    ----------
    what : str
        What they are for: "training data".
    source : str
        Where they came from; empty if that is not known.
    lengths : int array of shape (n_sequences,)
        Tokens of each sequence.
    labels : list of (str, int)
        The labels that occur, the most frequent first, with the numbers of their tokens.
    """

    what: str
    source: str
    lengths: NDArray[Any]
    labels: list[tuple[str, int]]

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return int(self.lengths.sum())


class Course(NamedTuple):
    """How a training went, and what is known of its end.

    Attributes
    ----------
    certificate : Certificate
        Of the model.
    history : sequence of PassRecord
        The passes; none where that is not known any more.
    gap : float or None
        The relative gap that was asked for.
    passes : int
        How many passes there were.
    converged : bool
        Whether the gap was reached.
    reason : str
        Why training ended.
    best_pass : int or None
        The pass whose model was kept; None: the last.
    scores : sequence of dict
        Scores on the validation data by pass: ``pass``, ``token_accuracy``, ``f1`` or ``score``.
    """

    certificate: Certificate
    history: Sequence[PassRecord]
    gap: float | None
    passes: int
    converged: bool
    reason: str
    best_pass: int | None = None
    scores: Sequence[Mapping[str, Any]] = ()


class Shown(NamedTuple):
    """A token of an error in context; None in the place of tokens that are left out.

    Attributes
    ----------
    text : str
        The word.
    truth, predicted : str
        Its labels.
    """

    text: str
    truth: str
    predicted: str


class Costly(NamedTuple):
    """A sequence that is labelled wrong.

    Attributes
    ----------
    sequence : int
        Which one, from 0.
    cost : float
        The loss of the prediction, and how much its score is above that of the truth.
    loss : float
        The first part of it.
    n_wrong, n_tokens : int
        Wrong tokens, and all.
    tokens : list of Shown or None
        The wrong tokens and those around them.
    """

    sequence: int
    cost: float
    loss: float
    n_wrong: int
    n_tokens: int
    tokens: list[Shown | None]


class Confidence(NamedTuple):
    """How honest the probabilities of a model are.

    Attributes
    ----------
    temperature : float
        What scores are divided by.
    fitted_here : bool
        Whether it was chosen on the data of the evaluation.
    before, after : Reliability
        At the temperature 1, and at this one.
    """

    temperature: float
    fitted_here: bool
    before: Reliability
    after: Reliability


class Evaluation(NamedTuple):
    """How good a model is on some data.

    Attributes
    ----------
    source : str
        Where the data came from; empty if that is not known.
    on_training : bool
        Whether the model was trained on them.
    report : TagReport
        The scores.
    costly : list of Costly
        The most costly errors.
    words : list of dict
        The words that are wrong most often, from `maxmargin.label_report.error_tokens`.
    unsure : str
        Why the cost of errors has no part of the scores; empty if it has.
    confidence : Confidence or None
        How honest the probabilities are; None if that is not known.
    no_confidence : str
        Why it is not known.
    """

    source: str
    on_training: bool
    report: TagReport
    costly: list[Costly]
    words: list[dict[str, Any]]
    unsure: str = ""
    confidence: Confidence | None = None
    no_confidence: str = ""


class Learned(NamedTuple):
    """What a model has learned.

    Attributes
    ----------
    sizes : list of (str, int)
        Numbers of features, weights, and those that are not zero.
    features : list of dict
        The strongest weights of features: ``feature``, ``label``, ``weight``.
    by_label : list of (str, list of dict)
        The same for some labels.
    transitions : list of dict
        The strongest transitions: ``from``, ``to``, ``weight``.
    missing : str
        What cannot be told, and why; empty if nothing is missing.
    """

    sizes: list[tuple[str, int]]
    features: list[dict[str, Any]]
    by_label: list[tuple[str, list[dict[str, Any]]]]
    transitions: list[dict[str, Any]]
    missing: str = ""


@dataclass(frozen=True)
class Content:
    """All that is on the page; what is None or empty is not there.

    Attributes
    ----------
    title : str
        Of the page.
    about : str
        What the model is, in a sentence.
    course : Course
        Of the training.
    settings : list of (str, object)
        Parameters.
    data : list of DataFacts
        The data.
    evaluation : Evaluation or None
        The scores.
    no_scores : str
        Why there are none.
    figures : mapping
        Scores of other structures than chains, by name.
    learned : Learned or None
        The weights.
    search : list of dict
        The models that were tried, ``C``, ``gap``, ``score`` and other settings.
    folds : list of dict
        The scores of cross-validation.
    seconds : float or None
        Time of training.
    command : str
        The command line; empty if there was none.
    made : str
        When the page was made.
    """

    title: str
    about: str
    course: Course
    settings: list[tuple[str, object]]
    data: list[DataFacts] = field(default_factory=list)
    evaluation: Evaluation | None = None
    no_scores: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    learned: Learned | None = None
    search: Sequence[Mapping[str, Any]] = ()
    folds: Sequence[Mapping[str, Any]] = ()
    seconds: float | None = None
    command: str = ""
    made: str = ""
