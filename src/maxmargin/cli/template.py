"""``maxmargin template``: print a built-in template."""

from __future__ import annotations

import argparse
from typing import Any

from maxmargin.cli.console import say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES

    parser.add_argument(
        "name", nargs="?", choices=sorted(BUILTIN_TEMPLATES), help="which; without it, list them"
    )


def run(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Run the command.

    Parameters
    ----------
    options : argparse.Namespace
        ``name`` and ``json``.

    Returns
    -------
    int
        Exit code, 0.
    dict
        The names and texts.
    """
    from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES

    if options.name is None:
        if not options.json:
            say("\n".join(sorted(BUILTIN_TEMPLATES)), needed=True)
        return 0, dict(BUILTIN_TEMPLATES)
    text = BUILTIN_TEMPLATES[options.name]
    if not options.json:
        say(text.removesuffix("\n"), needed=True)
    return 0, {options.name: text}
