"""Which labels are found and which are taken for others, in tables.

Everything here is counted from the confusions of a `maxmargin.metrics.TagReport`, so that it holds
for any labels: parts of speech, classes of documents, tags of chunks token by token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.metrics import NAME, TagReport, table_lines
from maxmargin.printable import printable

__all__ = [
    "confusion_dict",
    "error_tokens",
    "errors_text",
    "frequent_errors",
    "label_averages",
    "label_dict",
    "labels_text",
]

#: JSON has the whole matrix of confusions of at most so many labels.
MATRIX = 200


def label_dict(report: TagReport) -> dict[str, dict[str, Any]]:
    """Return precision, recall, F1 and counts of each label that occurs, as JSON can hold them.

    Parameters
    ----------
    report : TagReport
        From `maxmargin.metrics.evaluate`.
    """
    return {name: score.to_dict() for name, score in report.per_label.items()}


def label_averages(report: TagReport) -> dict[str, float]:
    """Return the means of precision, recall and F1 over the labels that the truth has.

    Parameters
    ----------
    report : TagReport
        From `maxmargin.metrics.evaluate`.

    Returns
    -------
    dict
        ``macro_precision``, ``macro_recall``, ``macro_f1``; all labels count the same.
    """
    scores = [score for score in report.per_label.values() if score.n_true]
    if not scores:
        return {"macro_precision": 0.0, "macro_recall": 0.0, "macro_f1": 0.0}
    return {
        f"macro_{name}": float(np.mean([getattr(score, name) for score in scores]))
        for name in ("precision", "recall", "f1")
    }


def labels_text(report: TagReport, most: int = 30) -> str:
    """Return precision, recall and F1 of the labels as a table, the most frequent label first.

    Parameters
    ----------
    report : TagReport
        From `maxmargin.metrics.evaluate`.
    most : int
        How many labels to list.

    Returns
    -------
    str
        Lines without a final newline.
    """
    scores = sorted(report.per_label.items(), key=lambda item: -item[1].n_true)
    body = [["label", "precision", "recall", "F1", "true", "predicted"]]
    for name, score in scores[:most]:
        figures = [f"{100 * value:.2f}" for value in (score.precision, score.recall, score.f1)]
        body.append([printable(name, NAME), *figures, str(score.n_true), str(score.n_predicted)])
    means = [f"{100 * value:.2f}" for value in label_averages(report).values()]
    body.append(["(mean of the labels)", *means, "", ""])
    lines = table_lines(body, left=1)
    if len(scores) > most:
        lines.insert(len(lines) - 1, f"... and {len(scores) - most} rarer labels (--json has all)")
    return "\n".join(lines)


def frequent_errors(report: TagReport, most: int | None = None) -> list[dict[str, Any]]:
    """Return which labels are taken for which, the most frequent confusion first.

    Parameters
    ----------
    report : TagReport
        From `maxmargin.metrics.evaluate`.
    most : int or None
        How many at most; None: all.

    Returns
    -------
    list of dict
        ``truth``, ``predicted``, ``count``, ``of_errors`` and ``of_truth`` (shares of all errors
        and of the tokens with that true label).
    """
    wrong = report.confusion.copy()
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    counts = wrong[rows, columns]
    order = np.argsort(-counts, kind="stable")[:most]
    support, total = report.confusion.sum(axis=1), int(counts.sum())
    return [
        {
            "truth": report.labels[rows[k]],
            "predicted": report.labels[columns[k]],
            "count": int(counts[k]),
            "of_errors": float(counts[k] / total),
            "of_truth": float(counts[k] / support[rows[k]]),
        }
        for k in order
    ]


def error_tokens(
    words: Sequence[str],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    labels: Sequence[str],
    most: int,
) -> list[dict[str, Any]]:
    """Return the words that are labelled wrong most often, with both labels.

    Parameters
    ----------
    words : sequence of str
        One for each token.
    truth, predicted : int array of shape (n_tokens,)
        Places in ``labels``.
    labels : sequence of str
        The names.
    most : int
        How many.

    Returns
    -------
    list of dict
        ``token``, ``truth``, ``predicted`` and ``count``.
    """
    wrong = np.flatnonzero(np.asarray(truth) != np.asarray(predicted)).tolist()
    found = Counter((words[t], int(truth[t]), int(predicted[t])) for t in wrong)
    return [
        {"token": word, "truth": labels[a], "predicted": labels[b], "count": count}
        for (word, a, b), count in found.most_common(most)
    ]


def errors_text(
    report: TagReport, tokens: Sequence[dict[str, Any]] = (), most: int = 10
) -> str:
    """Return the most frequent errors as tables; nothing if there are none.

    Parameters
    ----------
    report : TagReport
        From `maxmargin.metrics.evaluate`.
    tokens : sequence of dict
        From `error_tokens`.
    most : int
        How many confusions to list.

    Returns
    -------
    str
        Lines without a final newline.
    """
    errors = frequent_errors(report, most)
    if not errors:
        return ""
    body = [["truth", "predicted", "tokens", "of errors", "of the truth"]]
    for error in errors:
        shares = [f"{100 * error[name]:.2f}%" for name in ("of_errors", "of_truth")]
        names = [printable(error[name], NAME) for name in ("truth", "predicted")]
        body.append([*names, str(error["count"]), *shares])
    lines = table_lines(body, left=2)
    if tokens:
        body = [["token", "truth", "predicted", "times"]]
        for entry in tokens:
            names = [printable(entry[name], NAME) for name in ("token", "truth", "predicted")]
            body.append([*names, str(entry["count"])])
        lines += ["", *table_lines(body, left=3)]
    return "\n".join(lines)


def confusion_dict(report: TagReport, *, whole: bool = False) -> dict[str, Any] | None:
    """Return the matrix of confusions of the labels that occur, as JSON can hold it.

    Parameters
    ----------
    report : TagReport
        From `maxmargin.metrics.evaluate`.
    whole : bool
        All labels, however many there are.

    Returns
    -------
    dict or None
        ``labels`` and ``counts`` (a row for each true label); None where there are too many.
    """
    if whole:
        return {"labels": list(report.labels), "counts": report.confusion.tolist()}
    shown = [k for k, name in enumerate(report.labels) if name in report.per_label]
    if len(shown) > MATRIX:
        return None
    counts = report.confusion[np.ix_(shown, shown)].tolist()
    return {"labels": [report.labels[k] for k in shown], "counts": counts}
