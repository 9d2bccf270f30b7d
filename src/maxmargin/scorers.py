"""Scorers of label sequences by name, for ``GridSearchCV(scoring=...)`` and its kin.

They compare whole sequences, chunks or tokens, as `maxmargin.evaluate` counts them, and work with
every estimator that predicts sequences of labels, taggers of other libraries included::

    GridSearchCV(SequenceTagger(), {"C": [0.03, 0.1, 0.3]}, scoring=scorers.chunk_f1)

The functions behind them, ``chunk_f1_score`` and so on, take true and predicted sequences, and
weights of the sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from maxmargin.metrics import TagReport, evaluate

__all__ = [
    "chunk_f1",
    "chunk_f1_score",
    "chunk_precision",
    "chunk_precision_score",
    "chunk_recall",
    "chunk_recall_score",
    "get_scorer",
    "macro_f1",
    "macro_f1_score",
    "names",
    "sequence_accuracy",
    "sequence_accuracy_score",
    "token_accuracy",
    "token_accuracy_score",
    "weighted_f1",
    "weighted_f1_score",
]

Labels = Sequence[Sequence[Any]]


class _Counts:
    """Counts of reports, with weights of the sequences."""

    def __init__(self, y_true: Labels, y_pred: Labels, sample_weight: Any) -> None:
        reports, weights = _reports(y_true, y_pred, sample_weight)
        self.reports, self.weights = reports, weights

    def total(self, count: Callable[[TagReport], float]) -> float:
        """Return the weighted sum of a count."""
        values = [count(report) for report in self.reports]
        return float(np.dot(self.weights, values)) if values else 0.0


def _reports(
    y_true: Labels, y_pred: Labels, sample_weight: Any
) -> tuple[list[TagReport], NDArray[np.float64]]:
    """Return one report of all sequences, or one of each if they do not weigh the same."""
    if sample_weight is None:
        return [evaluate(y_true, y_pred)], np.ones(1)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (len(y_true),) or len(y_pred) != len(y_true):
        raise ValueError(
            f"sample_weight has the shape {weights.shape}, y_true {len(y_true)} and y_pred "
            f"{len(y_pred)} sequences; expected as many"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight must be finite, not negative, and not all zero")
    chunks = evaluate(y_true, y_pred).has_chunks
    return [
        evaluate([truth], [found], has_chunks=chunks)
        for truth, found in zip(y_true, y_pred, strict=True)
    ], weights


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _harmonic(precision: float, recall: float) -> float:
    return _share(2 * precision * recall, precision + recall)


def token_accuracy_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the share of tokens with the right label.

    Parameters
    ----------
    y_true, y_pred : sequences of sequences of labels
        True and predicted labels.
    sample_weight : array of shape (n_sequences,), optional
        How much the tokens of each sequence count.

    Returns
    -------
    float
        From 0 to 1.
    """
    counts = _Counts(y_true, y_pred, sample_weight)
    return _share(counts.total(lambda r: r.n_correct_tokens), counts.total(lambda r: r.n_tokens))


def sequence_accuracy_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the share of sequences whose labels are all right.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `token_accuracy_score`; a weight is that of a sequence.

    Returns
    -------
    float
        From 0 to 1.
    """
    counts = _Counts(y_true, y_pred, sample_weight)
    right = counts.total(lambda r: r.n_correct_sequences)
    return _share(right, counts.total(lambda r: r.n_sequences))


def chunk_precision_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the share of predicted chunks that are right, as conlleval counts them.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `token_accuracy_score`; labels are tags such as B-NP, I-NP and O.

    Returns
    -------
    float
        From 0 to 1; 0 if none was predicted.
    """
    counts = _Counts(y_true, y_pred, sample_weight)
    right = counts.total(lambda r: r.n_correct_chunks)
    return _share(right, counts.total(lambda r: r.n_predicted_chunks))


def chunk_recall_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the share of true chunks that were found, as conlleval counts them.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `chunk_precision_score`.

    Returns
    -------
    float
        From 0 to 1; 0 if there are none.
    """
    counts = _Counts(y_true, y_pred, sample_weight)
    right = counts.total(lambda r: r.n_correct_chunks)
    return _share(right, counts.total(lambda r: r.n_true_chunks))


def chunk_f1_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the harmonic mean of precision and recall of chunks, as conlleval counts them.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `chunk_precision_score`.

    Returns
    -------
    float
        From 0 to 1.
    """
    counts = _Counts(y_true, y_pred, sample_weight)
    right = counts.total(lambda r: r.n_correct_chunks)
    precision = _share(right, counts.total(lambda r: r.n_predicted_chunks))
    return _harmonic(precision, _share(right, counts.total(lambda r: r.n_true_chunks)))


def _label_scores(
    y_true: Labels, y_pred: Labels, sample_weight: Any
) -> tuple[list[float], list[float]]:
    """Return F1 and number of true tokens of each label."""
    counts = _Counts(y_true, y_pred, sample_weight)
    labels = sorted({label for report in counts.reports for label in report.per_label})

    def total(label: str, name: str) -> float:
        return counts.total(
            lambda r: getattr(r.per_label[label], name) if label in r.per_label else 0
        )

    scores, support = [], []
    for label in labels:
        right, true = total(label, "n_correct"), total(label, "n_true")
        scores.append(_harmonic(_share(right, total(label, "n_predicted")), _share(right, true)))
        support.append(true)
    return scores, support


def macro_f1_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the mean over labels of the F1 of their tokens.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `token_accuracy_score`.

    Returns
    -------
    float
        From 0 to 1; over the labels that occur in either.
    """
    scores, _ = _label_scores(y_true, y_pred, sample_weight)
    return float(np.mean(scores)) if scores else 0.0


def weighted_f1_score(y_true: Labels, y_pred: Labels, *, sample_weight: Any = None) -> float:
    """Return the mean of the F1 of the tokens of each label, by how often the label is true.

    Parameters
    ----------
    y_true, y_pred, sample_weight
        As for `token_accuracy_score`.

    Returns
    -------
    float
        From 0 to 1.
    """
    scores, support = _label_scores(y_true, y_pred, sample_weight)
    return float(np.average(scores, weights=support)) if sum(support) > 0 else 0.0


token_accuracy = make_scorer(token_accuracy_score)
sequence_accuracy = make_scorer(sequence_accuracy_score)
chunk_precision = make_scorer(chunk_precision_score)
chunk_recall = make_scorer(chunk_recall_score)
chunk_f1 = make_scorer(chunk_f1_score)
macro_f1 = make_scorer(macro_f1_score)
weighted_f1 = make_scorer(weighted_f1_score)

_SCORERS: dict[str, Any] = {
    "token_accuracy": token_accuracy,
    "sequence_accuracy": sequence_accuracy,
    "chunk_precision": chunk_precision,
    "chunk_recall": chunk_recall,
    "chunk_f1": chunk_f1,
    "macro_f1": macro_f1,
    "weighted_f1": weighted_f1,
}


def names() -> list[str]:
    """Return the names of all scorers, sorted."""
    return sorted(_SCORERS)


def get_scorer(name: str) -> Any:
    """Return a scorer by its name.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    scorer
        ``scorer(estimator, X, y)`` gives a number, the higher the better.

    Examples
    --------
    >>> get_scorer("chunk_f1") is chunk_f1
    True
    """
    if name not in _SCORERS:
        raise ValueError(f"there is no scorer {name!r}; expected one of {', '.join(names())}")
    return _SCORERS[name]
