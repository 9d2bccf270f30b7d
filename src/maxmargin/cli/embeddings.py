"""``--embeddings FILE``: word vectors as dense features beside those of a template."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maxmargin.cli.options import at_least, number

if TYPE_CHECKING:
    from maxmargin.features.embeddings import Embeddings

__all__ = ["add_embeddings", "check_embeddings", "read_given_embeddings"]

#: The options beside ``--embeddings``, and the parameters of `read_embeddings` that they set.
_CHOICES = {
    "embedding_column": "column",
    "embedding_window": "window",
    "embedding_scale": "scale",
    "embedding_words": "limit",
}


def add_embeddings(parser: argparse.ArgumentParser) -> None:
    """Add ``--embeddings`` and the options for how its vectors are used."""
    group = parser.add_argument_group("word vectors")
    group.add_argument(
        "--embeddings",
        metavar="FILE",
        help="vectors of words, a text file of word2vec or GloVe: tokens have those of their words "
        "as features, beside those of --template",
    )
    group.add_argument(
        "--embedding-window",
        type=at_least(0),
        default=None,
        metavar="N",
        help="vectors of so many words before and behind, too (default: 0)",
    )
    group.add_argument(
        "--embedding-scale",
        type=number(0, open_low=True),
        default=None,
        metavar="S",
        help="length of the vectors, where a feature of the template has 1 (default: 1)",
    )
    group.add_argument(
        "--embedding-words",
        type=at_least(1),
        default=None,
        metavar="N",
        help="read the first N words of the file only (default: all)",
    )
    group.add_argument(
        "--embedding-column",
        type=at_least(0),
        default=None,
        metavar="K",
        help="column of the words, counted from 0 (default: 0)",
    )
    group.add_argument(
        "--embedding-reference",
        action="store_true",
        help="write the name and a hash of FILE to the model, not the vectors: tagging then needs "
        "FILE, too",
    )


def check_embeddings(options: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command.
    """
    if getattr(options, "embeddings", None) is None:
        given = [name for name in _CHOICES if getattr(options, name, None) is not None]
        given += ["embedding_reference"] if getattr(options, "embedding_reference", False) else []
        if given:
            raise ValueError(f"--{given[0].replace('_', '-')} needs --embeddings FILE")


def read_given_embeddings(options: argparse.Namespace) -> Embeddings | None:
    """Read the file of ``--embeddings``, once for all trainings of a command.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command, which may have no such options.

    Returns
    -------
    Embeddings or None
        None without ``--embeddings``.
    """
    path = getattr(options, "embeddings", None)
    if path is None:
        return None
    from maxmargin.io.embeddings import read_embeddings

    given = {name: getattr(options, option) for option, name in _CHOICES.items()}
    choices: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if options.embedding_reference:
        choices["store"] = "reference"
    key = (path, *sorted(choices.items()))
    if _READ.get("key") != key:
        _READ.update(key=key, embeddings=read_embeddings(path, **choices))
    return _READ["embeddings"]  # type: ignore[no-any-return]


#: What was read last: a search makes features several times.
_READ: dict[str, Any] = {}
