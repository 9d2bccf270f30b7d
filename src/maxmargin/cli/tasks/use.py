"""``maxmargin tag`` (or ``predict``) and ``eval`` with models of every task but chains."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.console import naming, say
from maxmargin.cli.label_output import label_figures, print_labels
from maxmargin.cli.tasks.encodings import in_utf8, remembered_encoding, written_as
from maxmargin.cli.tasks.registry import task_named

if TYPE_CHECKING:
    from maxmargin.cli.tasks.base import Examples, Task
    from maxmargin.models.structured import StructuredKind

__all__ = ["evaluate_file", "predict_file"]

#: Options of ``tag`` and ``eval`` that are about tokens with labels, and what they are by default.
CHAIN_ONLY = {
    "nbest": None,
    "scores": False,
    "marginals": False,
    "format": None,
    "function": None,
    "comments": None,
    "known": None,
}


def _refuse_chain_options(options: argparse.Namespace, task: str) -> None:
    for name, default in CHAIN_ONLY.items():
        if getattr(options, name, default) != default:
            raise ValueError(
                f"--{name} is for models of label sequences; {options.model} is of the task {task}"
            )


def _read(kind: StructuredKind, options: argparse.Namespace, *, truths: bool) -> Examples:
    """Read a file as the model says; where it says nonsense, the message names the model."""
    from maxmargin.errors import ModelFormatError

    try:
        reading = dict(kind.reading(options.model))
        if options.encoding is None:
            options.encoding = remembered_encoding(reading)
        reading.pop("encoding", None)
        file = in_utf8(options.file, options.encoding)
        return task_named(kind.task).read(file, reading, truths=truths)
    except ModelFormatError as error:
        raise ModelFormatError(f"{options.model}: {error}") from None


class _Times(NamedTuple):
    """Seconds that the model, the file and its predictions took."""

    load: float
    read: float
    predict: float

    def rate(self, n: int) -> float | None:
        """Return how many were predicted in a second; None where it took no time."""
        return n / self.predict if self.predict > 0 else None


def _predict(
    kind: StructuredKind, options: argparse.Namespace, *, truths: bool
) -> tuple[Task, Any, Examples, Any, _Times]:
    """Return the task, the model, the examples of a file and what is predicted for them."""
    _refuse_chain_options(options, kind.task)
    task = task_named(kind.task)  # before the model is read: it may have no files of examples
    begin = time.perf_counter()
    estimator: Any = kind.load(options.model)
    estimator.n_jobs = options.threads
    loaded = time.perf_counter()
    examples = _read(kind, options, truths=truths)
    known = time.perf_counter()
    predicted = estimator.predict(examples.X)
    times = _Times(loaded - begin, known - loaded, time.perf_counter() - known)
    return task, estimator, examples, predicted, times


def predict_file(kind: StructuredKind, options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Predict the outputs of a file and write them.

    Parameters
    ----------
    kind : StructuredKind
        Of the model.
    options : argparse.Namespace
        The arguments of ``maxmargin tag``.

    Returns
    -------
    int
        Exit code, 0.
    dict
        How much was predicted and how fast.
    """
    from maxmargin.io.text import open_for_writing

    begin = time.perf_counter()
    task, _, examples, predicted, times = _predict(kind, options, truths=False)
    with naming(options.output), open_for_writing(options.output) as out:
        written_as(
            options.encoding,
            out,
            lambda file: task.write(file, examples, predicted),
            options.model,
        )
    return 0, {
        "task": task.name,
        f"n_{task.items}": len(examples),
        "seconds_load": times.load,
        "seconds_read": times.read,
        "seconds_predict": times.predict,
        "seconds": time.perf_counter() - begin,
        f"{task.items}_per_second": times.rate(len(examples)),
    }


def evaluate_file(kind: StructuredKind, options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Predict the outputs of a file and compare them with the true ones.

    Parameters
    ----------
    kind : StructuredKind
        Of the model.
    options : argparse.Namespace
        The arguments of ``maxmargin eval``.

    Returns
    -------
    int
        Exit code, 0.
    dict
        The scores, and how fast.
    """
    task, estimator, examples, predicted, times = _predict(kind, options, truths=True)
    figures = task.score_model(examples, predicted, estimator)
    rate = times.rate(len(examples))
    report = task.report(examples, predicted)
    if report is None and options.confusion:
        raise ValueError(
            f"--confusion is for models whose outputs are labels; {options.model} is of the task "
            f"{task.name}"
        )
    if not options.json:
        say(task.words(figures), needed=True)
        if report is not None:
            print_labels(report, [], options)
        if rate is not None:
            say(f"{len(examples)} {task.items}, {rate:.0f} a second", needed=True)
    return 0, {
        **figures,
        **({} if report is None else label_figures(report, [], options)),
        "task": task.name,
        f"n_{task.items}": len(examples),
        "seconds_load": times.load,
        "seconds_read": times.read,
        "seconds": times.predict,
        f"{task.items}_per_second": rate,
    }
