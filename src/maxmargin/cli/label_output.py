"""Scores of labels and the most frequent errors, as ``maxmargin eval`` prints them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say

if TYPE_CHECKING:
    from maxmargin.metrics import TagReport

__all__ = ["label_figures", "print_labels"]


def print_labels(
    report: TagReport, tokens: list[dict[str, Any]], options: argparse.Namespace
) -> None:
    """Print the scores of labels, and the errors.

    Parameters
    ----------
    report : TagReport
        The scores.
    tokens : list of dict
        The words that are wrong most often.
    options : argparse.Namespace
        With ``brief``, ``errors`` and ``confusion``.
    """
    from maxmargin.label_report import errors_text, labels_text
    from maxmargin.metrics import confusion_text

    if not options.brief and report.n_tokens:
        say(f"\n{labels_text(report)}", needed=True)
        errors = errors_text(report, tokens, options.errors) if options.errors else ""
        if errors:
            say(f"\n{errors}", needed=True)
    if options.confusion:
        say(f"\n{confusion_text(report)}", needed=True)


def label_figures(
    report: TagReport, tokens: list[dict[str, Any]], options: argparse.Namespace
) -> dict[str, Any]:
    """Return the scores of labels and the errors, as ``--json`` prints them.

    Parameters
    ----------
    report : TagReport
        The scores.
    tokens : list of dict
        The words that are wrong most often.
    options : argparse.Namespace
        With ``errors`` and ``confusion``.
    """
    from maxmargin.label_report import (
        confusion_dict,
        frequent_errors,
        label_averages,
        label_dict,
    )

    return {
        "per_label": label_dict(report),
        **label_averages(report),
        "errors": frequent_errors(report, options.errors),
        "error_tokens": tokens,
        "confusion": confusion_dict(report, whole=options.confusion),
    }
