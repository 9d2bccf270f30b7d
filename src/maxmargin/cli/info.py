"""``maxmargin info``: what a model holds."""

from __future__ import annotations

import argparse
from typing import Any

from maxmargin.cli.console import naming, say
from maxmargin.cli.model import naming_model
from maxmargin.cli.options import at_least

__all__ = ["configure", "run"]

FEW_TRANSITIONS = 5  # that are shown if nobody asks for them


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument(
        "--top",
        type=at_least(0),
        default=20,
        metavar="N",
        help="how many of the largest and of the smallest weights to list (default: %(default)s)",
    )
    parser.add_argument(
        "--label", default=None, metavar="LABEL", help="list weights and transitions of this label"
    )
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument(
        "--template",
        action="store_true",
        help="print the template of the model and nothing else, as a file that --template of "
        "train takes",
    )
    alone.add_argument(
        "--text",
        nargs="?",
        const="-",
        default=None,
        metavar="FILE",
        help="write all weights that are not zero as a text, one a line, and nothing else; "
        "without FILE, or with -, to standard output",
    )
    parser.add_argument(
        "--selected",
        action="store_true",
        help="count the features and weights that are not zero, by line of the template and by "
        "label",
    )
    parser.add_argument(
        "--transitions",
        action="store_true",
        help=f"list as many transitions as weights (default: {FEW_TRANSITIONS} of each sign)",
    )


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run the command.

    Parameters
    ----------
    options : argparse.Namespace
        As `configure` describes them.

    Returns
    -------
    int
        Exit code, 0.
    dict
        ``file``, ``format_version``, ``n_bytes`` and what ``describe`` of the kind of the model
        gives (of a tagger, `maxmargin.models.tagger.TaggerKind.describe`); with ``template`` also
        ``template_text``, and with ``text`` also ``text`` (``file`` and how many ``weights`` it
        got).

    Raises
    ------
    ModelFormatError
        If the file is no model.
    ValueError
        If there is no such label, no template to print, or the text would replace the model.
    OSError
        If the model cannot be read, or the text not be written.
    """
    from maxmargin.io.container import read_header
    from maxmargin.models.base import DescriptionRequest
    from maxmargin.models.kinds import kind_of

    path = options.model
    if read_header(path).kind == "encoded":
        from maxmargin.cli.streaming import describe_encoded

        found = describe_encoded(path)
        if not options.json:
            for name, value in found.items():
                say(f"{name}: {value}", needed=True)
        return 0, found
    kind, header = kind_of(path), read_header(path)
    model = kind.load_to_describe(path)
    few = options.top if options.transitions else min(options.top, FEW_TRANSITIONS)
    wanted = options.json or not (options.template or options.text is not None)
    with naming_model(path):
        template = kind.template(model) if options.template else None
        request = DescriptionRequest(
            top=options.top if wanted else 0,
            transitions=few if wanted else 0,
            label=options.label,
            selected=options.selected and wanted,
        )
        summary: dict[str, Any] = {
            "file": path,
            "format_version": header.version,
            "n_bytes": header.n_bytes,
            **kind.describe(model, request),
        }
    if options.text is not None:
        _refuse_itself(path, options.text)
        with naming_model(path), naming(options.text):
            n_written = kind.write_text(options.text, model)
        summary["text"] = {"file": options.text, "weights": n_written}
    elif template is not None:
        summary["template_text"] = template.text
        if not options.json:
            _print_template(template.text)
    elif not options.json:
        from maxmargin.cli.info_words import describe

        lines: list[str] = []
        if summary.get("template") is not None:
            lines = [line.text for line in kind.template(model).lines if line.unigram]
        for text in describe(summary, lines):
            say(text, needed=True)
    return 0, summary


def _print_template(text: str) -> None:
    """Print a template: as it is to a file or a pipe, so that a terminal can show it to one."""
    import sys

    whole = text if text.endswith("\n") else f"{text}\n"
    buffer = getattr(sys.stdout, "buffer", None)
    if sys.stdout is None or sys.stdout.isatty() or buffer is None:
        say(whole.removesuffix("\n"), needed=True)
    else:
        sys.stdout.flush()
        buffer.write(whole.encode())


def _refuse_itself(model: str, text: str) -> None:
    """Make sure that a text does not take the place of the model that it is of."""
    from pathlib import Path

    if text != "-" and Path(text).exists() and Path(text).samefile(model):
        raise ValueError(f"--text {text}: is the model itself; expected another file")
