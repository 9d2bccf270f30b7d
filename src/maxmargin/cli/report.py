"""``--report FILE``: the page about a model, of ``train`` and of ``eval``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.cli.training_data import Learned
    from maxmargin.estimators.native import NativeEstimator
    from maxmargin.features.columns import LabelCodes
    from maxmargin.io.tagger_file import TaggerModel
    from maxmargin.selection import Outcome

__all__ = ["add_report", "check_report", "report_evaluation", "report_task", "report_training"]

#: Options that are no settings of a training.
NO_SETTINGS = frozenset(
    (
        *("command", "json", "quiet", "verbose", "model", "report", "version", "arguments"),
        *("threads", "resume", "format_flag", "format_recognised", "checkpoint", "spill"),
        *("on_error", "cache_mb"),
    )
)
#: Options that matter only if another one has not this value.
WITH = {
    **dict.fromkeys(("degree", "gamma", "coef0", "kernel"), ("kernel", "linear")),
    **dict.fromkeys(("label_column", "separator"), ("format", "conllu")),
}


def add_report(group: Any, about: str = "data, certificate, gap over time, scores") -> None:
    """Add ``--report`` to a group of options."""
    group.add_argument(
        "--report",
        metavar="FILE",
        help=f"write a page about the model (HTML, one file): {about}",
    )


def check_report(options: argparse.Namespace) -> None:
    """Refuse a name that is no HTML file, before any work is done."""
    if options.report is None:
        return
    if options.model is None:
        raise ValueError("--report is about one model: -m MODEL is missing")
    from maxmargin.report.endings import picture_format
    from maxmargin.report.html.page import FORMATS

    picture_format(options.report, FORMATS)


def _command(options: argparse.Namespace) -> str:
    arguments = getattr(options, "arguments", None)
    return "" if arguments is None else shlex.join(["maxmargin", *arguments])


def _settings(options: argparse.Namespace, chosen: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the options that say how a model was trained, with the values that were chosen."""
    given = {**vars(options), **chosen}
    left_out = {name for name, (other, value) in WITH.items() if given.get(other) == value}
    if given.get("format") != "conllu":
        left_out.add("columns")
    return [
        (name, value)
        for name, value in given.items()
        if name not in NO_SETTINGS | left_out and value not in (None, "") and value is not False
    ]


def report_training(
    learned: Learned,
    best: Outcome,
    inputs: Any,
    summary: Mapping[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Write the page about a tagger that was trained.

    Parameters
    ----------
    learned : Learned
        The chain and the data.
    best : Outcome
        The model.
    inputs : ColumnTable, Items or None
        The training data as they were read; None where they are not in memory.
    summary : dict
        What ``--json`` prints.
    options : argparse.Namespace
        The arguments of the command, with the settings of the model.

    Returns
    -------
    dict
        More figures for ``--json``.
    """
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.token_texts import TokenTexts
    from maxmargin.report.html.content import Content, Course
    from maxmargin.report.html.gather import data_facts, evaluation_of, learned_of
    from maxmargin.report.html.page import write_page

    chain, train, valid, threads = learned.chain, learned.train, learned.valid, options.threads
    offsets = train.batch.offsets
    data = [data_facts("training data", options.train, offsets, train.codes, train.names)]
    evaluation, no_scores = None, ""
    if valid is not None:
        data.append(
            data_facts(
                "validation data", options.valid, valid.batch.offsets, valid.codes, valid.names
            )
        )
        evaluation = evaluation_of(
            chain,
            best.weights,
            valid,
            TokenTexts(learned.valid_data, valid.batch.offsets),
            inputs=learned.valid_data,
            source=options.valid,
            temperature=summary.get("temperature"),
            fitted=True,
            threads=threads,
        )
    elif inputs is not None:
        evaluation = evaluation_of(
            chain,
            best.weights,
            train,
            TokenTexts(inputs, offsets),
            inputs=inputs,
            source=options.train,
            on_training=True,
            threads=threads,
        )
    else:
        no_scores = (
            "There are no scores: the training data were streamed from a file, and no --valid FILE "
            "was given."
        )
    chosen: dict[str, Any] = {"C": summary["C"], "l1_ratio": summary["l1_ratio"]}
    if options.template is None and isinstance(inputs, ColumnTable):
        chosen["template"] = "words"
    content = Content(
        title=f"Report of {options.model}",
        about=f"A tagger with {chain.n_labels} labels, trained on {options.train}"
        + (f" and scored on {options.valid}." if valid is not None else "."),
        course=Course(
            best.certificate,
            best.result.history,
            options.gap,
            best.result.n_passes,
            best.converged,
            summary["stop_reason"],
            best.best_pass,
            best.scores,
        ),
        settings=_settings(options, chosen),
        data=data,
        evaluation=evaluation,
        no_scores=no_scores,
        learned=learned_of(chain, best.weights, [name for name, _ in data[0].labels]),
        search=summary.get("grid", ()),
        folds=summary.get("cv", ()),
        seconds=summary["seconds_train"],
        command=_command(options),
    )
    return write_page(options.report, content)


def report_evaluation(
    model: TaggerModel,
    inputs: Any,
    labels: LabelCodes,
    temperature: float | None,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Write the page about a tagger from a file, scored on data with labels.

    Parameters
    ----------
    model : TaggerModel
        The model.
    inputs : ColumnTable or Items
        The data.
    labels : LabelCodes
        Their labels.
    temperature : float or None
        That of the model, if it has one.
    options : argparse.Namespace
        The arguments of the command.

    Returns
    -------
    dict
        More figures for ``--json``.
    """
    from maxmargin.features.token_texts import TokenTexts
    from maxmargin.io.training_meta import restore_certificate
    from maxmargin.report.html.content import Content, Course
    from maxmargin.report.html.gather import data_facts, evaluation_of, learned_of
    from maxmargin.report.html.page import write_page
    from maxmargin.selection.encoded import encode_labelled

    chain, meta = model.chain, model.meta
    labelled = encode_labelled(chain, inputs, labels)
    offsets = labelled.batch.offsets
    data = [data_facts("test data", options.file, offsets, labelled.codes, labelled.names)]
    training, params = meta.get("training", {}), meta.get("params", {})
    content = Content(
        title=f"Report of {options.model}",
        about=f"A tagger with {chain.n_labels} labels, scored on {options.file}.",
        course=Course(
            restore_certificate(meta.get("certificate", {})),
            (),
            params.get("gap"),
            int(training.get("passes") or 0),
            bool(training.get("converged", False)),
            str(training.get("stop_reason", "unknown")),
        ),
        settings=[(name, value) for name, value in params.items() if value is not None],
        data=data,
        evaluation=evaluation_of(
            chain,
            model.weights,
            labelled,
            TokenTexts(inputs, offsets),
            inputs=inputs,
            source=options.file,
            temperature=temperature,
            threads=options.threads,
        ),
        learned=learned_of(chain, model.weights, [name for name, _ in data[0].labels]),
        command=_command(options),
    )
    return write_page(options.report, content)


def report_task(
    estimator: NativeEstimator[Any, Any],
    scores: Mapping[str, Any] | None,
    summary: Mapping[str, Any],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Write the page about a model of another task than chains: without errors in context.

    Parameters
    ----------
    estimator : NativeEstimator
        The model.
    scores : dict or None
        What it reaches on the validation data.
    summary : dict
        What ``--json`` prints.
    options : argparse.Namespace
        The arguments of the command, with the settings of the model.

    Returns
    -------
    dict
        More figures for ``--json``.
    """
    from maxmargin.report.html.content import Content, Course, Learned
    from maxmargin.report.html.page import write_page

    sizes = [
        (name.removeprefix("n_").replace("_", " "), value)
        for name, value in summary.items()
        if name.startswith("n_") and isinstance(value, int)
    ]
    content = Content(
        title=f"Report of {options.model}",
        about=f"A model of the task {options.task}, trained on {options.train}"
        + (f" and scored on {options.valid}." if scores is not None else "."),
        course=Course(
            estimator.certificate_,
            estimator.history_,
            options.gap,
            estimator.n_iter_,
            estimator.converged_,
            estimator.stop_reason_,
        ),
        settings=_settings(options, {"C": summary["C"]}),
        no_scores="There are no scores: no --valid FILE was given.",
        figures=scores or {},
        learned=Learned(
            sizes,
            [],
            [],
            [],
            "Errors in context and strongest features are on the pages of taggers; maxmargin info "
            "shows the strongest weights of this model.",
        ),
        search=summary.get("grid", ()),
        seconds=summary["seconds_train"],
        command=_command(options),
    )
    return write_page(options.report, content)
