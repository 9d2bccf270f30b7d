"""What ``maxmargin train`` reports: the figures of its summary, and the lines that it prints."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import say
from maxmargin.cli.kernel import learned_figures
from maxmargin.cli.prior import in_words

if TYPE_CHECKING:
    from maxmargin.selection import Encoded, Outcome
    from maxmargin.structures.chain import Chain

__all__ = [
    "model_figures",
    "print_summary",
    "score_in_words",
    "score_of",
    "sparse_figures",
    "validation_figures",
]


def sparse_figures(best: Outcome, options: argparse.Namespace) -> dict[str, Any]:
    """Return what there is to say of a model before it is re-fitted.

    Parameters
    ----------
    best : Outcome
        The chosen model.
    options : argparse.Namespace
        The arguments of the command.

    Returns
    -------
    dict
        The l1_ratio, the number of weights, whether Ctrl-C ended the training or the search, and
        the trainings of the search.
    """
    summary = {
        "l1_ratio": getattr(best, "l1_ratio", options.l1_ratio),
        "n_nonzero": learned_figures(best.weights, 0)["n_nonzero"],
        "debiased": False,
        "interrupted": getattr(best, "interrupted", False)
        or best.result.interrupted,
    }
    if options.nonzeros is not None:
        tried = getattr(best, "tried", [])
        summary["search"] = [{"l1_ratio": r, "n_nonzero": count} for r, count in tried]
    return summary


def model_figures(
    chain: Chain, train: Encoded, best: Outcome, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the sizes of the data and of the model, and the certificate.

    Parameters
    ----------
    chain : Chain
        Prepared.
    train : Encoded
        The training data.
    best : Outcome
        The model that is written.
    options : argparse.Namespace
        The arguments of the command.

    Returns
    -------
    dict
        As ``--json`` prints them.
    """
    result, L = best.result, chain.n_labels
    history = result.history
    return {
        "n_sequences": train.batch.n_sequences,
        "n_tokens": train.batch.n_tokens,
        "n_labels": L,
        "n_features": chain.layout.n_token_features,
        **learned_figures(best.weights, chain.n_features or 0),
        "solver": options.solver,
        "C": best.C,
        "passes": result.n_passes,
        "oracle_calls": history[-1].oracle_calls if len(history) else 0,
        "primal": best.certificate.primal,
        "dual": best.certificate.dual,
        "gap": best.certificate.gap,
        "converged": best.converged,
        "stop_reason": best.stop_reason,
    }


def validation_figures(best: Outcome) -> dict[str, Any]:
    """Return the scores of a model on the validation data, at the end and pass by pass."""
    return {
        "valid": best.report.to_dict() if best.report is not None else None,
        "valid_passes": best.scores,
        "best_pass": best.best_pass,
    }


def score_of(outcome: Outcome) -> float:
    """Return the score by which models are chosen; NaN if it was not scored."""
    from maxmargin.selection import main_score

    return main_score(outcome.report) if outcome.report is not None else float("nan")


def score_in_words(outcome: Outcome) -> str:
    """Describe what a model reaches on the data that it was scored on."""
    report = outcome.report
    if report is None:
        return "not scored"
    f1 = f", F1 {100 * report.f1:.2f}" if report.has_chunks else ""
    return f"accuracy {100 * report.token_accuracy:.2f} %{f1}"


def print_summary(summary: dict[str, Any], best: Outcome, options: argparse.Namespace) -> None:
    """Print the summary in a few lines: certificate, scores, times and the file."""
    from maxmargin.solvers.ending import certificate_line

    seconds = {name: summary[f"seconds_{name}"] for name in ("read", "features", "train", "write")}
    say(
        certificate_line(
            best.certificate, summary["passes"], summary["stop_reason"], options.gap
        )
    )
    if "prior" in summary:
        say(f"{options.prior}: {in_words(summary['prior'])}")
    if "kernel" in summary:
        say(
            f"kernel {summary['kernel']} (gamma {summary['gamma']:.4g}): {summary['n_support']} "
            "support tokens"
        )
    if summary["l1_ratio"] > 0 or "search" in summary:
        again = ""
        if summary["debiased"]:
            again = f"; {summary['selected']['n_nonzero']} before the features were fitted again"
        say(
            f"{summary['n_nonzero']} of {summary['n_weights']} weights are not zero (l1_ratio = "
            f"{summary['l1_ratio']:.4g}{again})"
        )
    if summary.get("valid"):
        valid = summary["valid"]
        f1 = "" if valid["f1"] is None else f", F1 {100 * valid['f1']:.2f}"
        when = "the end" if summary["best_pass"] is None else f"pass {summary['best_pass']}"
        say(f"{options.valid}: accuracy {100 * valid['token_accuracy']:.2f} %{f1} (after {when})")
    parts = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    say(f"seconds: {parts}; peak memory {summary['peak_rss_mb']:.0f} MB")
    say(f"{options.model}: {summary['model_bytes'] / 1e6:.2f} MB")
    if "report" in summary:
        say(f"{summary['report']}: a page about it")
