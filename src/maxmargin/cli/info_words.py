"""What a model holds, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maxmargin.memory import format_bytes
from maxmargin.models.header import NAME, listed
from maxmargin.printable import printable

__all__ = ["describe"]

TEMPLATE_LINES = 3  # that are shown of a template
#: What is shown in words of its own; other entries of a description as they are.
_KNOWN = frozenset(
    (
        *("file", "format_version", "n_bytes", "features", "n_features", "n_features_trained"),
        *("n_labels", "n_pair_features", "n_weights", "n_nonzero", "memory_bytes", "labels"),
        *("certificate", "objective", "training", "params", "template", "top", "transitions"),
        "selected",
    )
)


def describe(summary: dict[str, Any], template_lines: list[str]) -> Iterator[str]:
    """Say what a model holds.

    Parameters
    ----------
    summary : dict
        As ``run`` of `maxmargin.cli.info` returns it.
    template_lines : list of str
        The lines of the template that give features.

    Yields
    ------
    str
        The lines.
    """
    size, version = format_bytes(summary["n_bytes"]), summary["format_version"]
    yield f"{summary['file']}: {size}, format {version}"
    if "n_features" in summary:
        kept, trained = summary["n_features"], summary.get("n_features_trained")
        of = f" of {trained} in training" if isinstance(trained, int) and trained != kept else ""
        yield f"  features     {kept}{of} ({summary['features']})"
    if "labels" in summary:
        yield f"  labels       {len(summary['labels'])}: {listed(summary['labels'])}"
    if "n_weights" in summary:
        full, nonzero = summary["n_weights"], summary["n_nonzero"]
        yield f"  weights      {full}, {nonzero} of them not zero ({100 * nonzero / full:.1f} %)"
    if "memory_bytes" in summary:
        yield f"  memory       {format_bytes(summary['memory_bytes'])} of weights when loaded"
    if "certificate" in summary:
        yield f"  certificate  {_certificate_words(summary['certificate'])}"
    for key, text in _flat({k: v for k, v in summary.items() if k not in _KNOWN}):
        yield f"  {key:12s} {text}"
    sections = (
        ("objective", _objective_words(summary.get("objective"))),
        ("training", summary.get("training")),
        ("parameters", summary.get("params")),
    )
    for title, given in sections:
        if not given:
            continue
        yield f"  {title}"
        settings = list(_flat(given))
        width = max(len(key) for key, _ in settings) + 1
        for key, value in settings:
            yield f"    {key + ':':{width}s} {value}"
    if summary.get("template") is not None:
        yield f"  template     {summary['template']}, {len(template_lines)} lines of features"
        for line in template_lines[:TEMPLATE_LINES]:
            yield f"    {_printable(line)}"
        if len(template_lines) > TEMPLATE_LINES:
            yield "    ... (all of it: --template)"
    if summary.get("top"):
        yield ""
        yield "strongest weights"
        width = max(len(_printable(entry["label"])) for entry in summary["top"])
        for entry in summary["top"]:
            label = _printable(entry["label"])
            yield f"  {entry['weight']:+10.4f}  {label:{width}s}  {_printable(entry['feature'])}"
    if summary.get("transitions"):
        yield ""
        yield "strongest transitions"
        for entry in summary["transitions"]:
            before = "(start)" if entry["from"] is None else _printable(entry["from"])
            behind = "(end)" if entry["to"] is None else _printable(entry["to"])
            yield f"  {entry['weight']:+10.4f}  {before} -> {behind}"
    if "selected" in summary:
        by_line = summary.get("template") is not None
        yield from _selected_words(summary["selected"], template=by_line)


def _certificate_words(certificate: dict[str, Any] | None) -> str:
    """Return how good a model is, for certain."""
    if certificate is None:
        return "none"
    gap = certificate["gap"]
    within = "" if gap is None else f": within {100 * gap:.3g} % of the optimum"
    return (
        f"primal {_shown(certificate['primal'])}, "
        f"dual {_shown(certificate['dual'])}{within} (C = {_shown(certificate['C'])})"
        + (", with an approximate oracle" if "approximate" in certificate else "")
    )


def _objective_words(objective: dict[str, Any] | None) -> dict[str, Any]:
    """Return what was minimised, in a few words each."""
    if objective is None:
        return {}
    words = {
        "C": f"{objective['C']:g} (of the {objective['C_scale']} over the sequences)",
        "regularizer": _call(objective["regularizer"] or "l2"),
        "slack": objective["slack"],
        "rescale": objective["rescale"],
        "loss": objective["loss"],
        "solver": _call(objective["solver"]),
        "gap": objective["gap"],
    }
    if isinstance(words["loss"], dict):
        pairs = words["loss"].get("pairs")
        words["loss"] = _call(words["loss"]) if pairs is None else f"costs of {len(pairs)} pairs"
    return words


def _call(thing: Any) -> str:
    """Return a solver or regulariser as one would write it."""
    if isinstance(thing, str):
        return thing
    if "class" in thing:
        return f"{thing['class']} (not in the file)"
    options = ", ".join(f"{key}={value!r}" for key, value in thing["options"].items())
    return f"{thing['name']}({options})"


def _selected_words(found: dict[str, Any], *, template: bool) -> Iterator[str]:
    """Put what was selected into tables."""
    if found["lines"]:
        yield ""
        yield f"not zero, by {'line of the template' if template else 'kind of feature'}"
        yield "    features     weights"
        for entry in found["lines"]:
            line = "(no line fits)" if entry["line"] is None else _printable(entry["line"])
            yield f"  {entry['features']:10d}  {entry['weights']:10d}  {line}"
    yield ""
    yield "not zero, by label"
    yield "     weights"
    for entry in found["labels"]:
        yield f"  {entry['weights']:10d}  {_printable(entry['label'])}"
    yield f"  {found['transitions']:10d}  (transitions, with start and end)"


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings as keys and values in words; those within others are called outer.inner."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield _printable(f"{prefix}{key}"), _shown(value)


def _shown(value: Any) -> str:
    """Put a value into words, shortly."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return listed([_shown(entry) for entry in value]) if value else "none"
    return _printable(value)


def _printable(value: Any) -> str:
    """Return a text in which nothing moves the cursor, and which leaves room for others."""
    return printable(value, NAME)
