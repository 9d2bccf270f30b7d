"""What ``maxmargin train`` says of the data before it trains: sizes, and what looks like a mistake.

A file that is read with the wrong format or the wrong column trains without an error, and for much
longer. Each of the warnings here is about something that such mistakes bring with them, and names
the likely cause; none of them stops anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import flush, note, say
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from maxmargin.cli.training_data import Learned

__all__ = ["data_warnings", "tell_data"]

#: As many labels as this are suspicious; fewer are where there are so many of them by tokens.
MANY_LABELS = 1000
SOME_LABELS, TOKENS_A_LABEL = 200, 10
#: Tokens of a sequence that is suspicious, and of one that is the only one.
LONG, LONG_ALONE = 20_000, 1000
#: Smaller files are not judged by how often something occurs in them.
ENOUGH_TOKENS, ENOUGH_FEATURES = 500, 100
SHOWN = 5


def tell_data(learned: Learned, options: argparse.Namespace) -> None:
    """Print the sizes of the data, and warnings.

    Parameters
    ----------
    learned : Learned
        The data in numbers.
    options : argparse.Namespace
        The arguments of the command.
    """
    if options.quiet:
        return
    chain, batch = learned.chain, learned.train.batch
    if not options.json:
        say(
            f"{options.train} ({options.format}): {batch.n_sequences} sequences, "
            f"{batch.n_tokens} tokens, {chain.n_labels} labels, "
            f"{chain.layout.n_token_features} features"
        )
        flush()  # before the minutes that may follow
    if batch.mapped is not None:  # counting would take memory for each feature of each token
        return
    for text in data_warnings(learned, options):
        note(f"maxmargin train: warning: {options.train}: {text}")


def data_warnings(learned: Learned, options: argparse.Namespace) -> Iterator[str]:
    """Say what of the data looks like a mistake.

    Parameters
    ----------
    learned : Learned
        The data in numbers.
    options : argparse.Namespace
        The arguments of the command.

    Yields
    ------
    str
        What was found and what may have caused it, one line each.
    """
    import numpy as np

    batch, codes = learned.train.batch, learned.train.codes
    names, n_tokens = learned.train.names, batch.n_tokens
    counts = np.bincount(codes, minlength=len(names))
    n_labels = int(np.count_nonzero(counts))
    few_each = n_labels >= SOME_LABELS and n_tokens < TOKENS_A_LABEL * n_labels
    if n_labels >= MANY_LABELS or few_each:
        yield (
            f"there are {n_labels} different labels in {n_tokens} tokens, such as "
            f"{_some(names, np.argsort(-counts, kind='stable'))}, and the time of training grows "
            f"with the square of their number; {_where_labels_are(options)}"
        )
    lengths = np.diff(batch.offsets)
    longest = int(lengths.max())
    if longest >= LONG or (len(lengths) == 1 and longest >= LONG_ALONE):
        which = "the only sequence" if len(lengths) == 1 else f"sequence {int(lengths.argmax())}"
        yield (
            f"{which} has {longest} tokens; are the blank lines missing that end sequences"
            + (" (svmhmm: is the qid the same everywhere)?" if options.format == "svmhmm" else "?")
        )
    once = np.flatnonzero(counts == 1)
    if len(once) and n_tokens >= ENOUGH_TOKENS:
        labels = "label occurs" if len(once) == 1 else "labels occur"
        yield (
            f"{len(once)} {labels} once: {_some(names, once)}; from one token little can be "
            "learned, and labels like that are often misspelt, or of a wrong column"
        )
    unique = _unique_features(learned)
    if unique:
        yield unique


def _some(names: list[Any], which: Any) -> str:
    shown = ", ".join(quoted(str(names[k]), 30) for k in which[:SHOWN].tolist())
    return shown + (", ..." if len(which) > SHOWN else "")


def _where_labels_are(options: argparse.Namespace) -> str:
    """Say where the labels were taken from, and what else could have been meant."""
    if options.format == "conllu":
        return f"the labels are those of the last of --columns {options.columns}: is that right?"
    if options.format in ("crfsuite", "svmhmm"):
        return f"a line of {options.format} begins with the label: is it such a file (--format)?"
    column = "the last column" if options.label_column == -1 else f"column {options.label_column}"
    return (
        f"the labels are in {column}: if they are words, say where the labels are with "
        "--label-column, or the format with --format"
    )


def _unique_features(learned: Learned) -> str:
    """Say of which features none occurs twice; nothing can be learned from them."""
    import numpy as np

    encoder: Any = learned.chain.encoder
    indices = learned.train.batch.indices
    if indices is None or encoder.hash_bits is not None or encoder.n_sparse < ENOUGH_FEATURES:
        return ""
    counts = np.bincount(indices, minlength=encoder.n_sparse)
    cause = (
        "what was learned of one token is of no use for another; is there a number of the line or "
        "of the sentence among them, or a whole sentence?"
    )
    if counts.max() == 1:
        return f"each of the {encoder.n_sparse} features occurs in one token only: {cause}"
    template = getattr(encoder, "template", None)
    if template is None:
        return ""
    lines = [line.text for line in template.lines if line.unigram]
    of = encoder.unigrams.lines_of(np.arange(encoder.n_sparse))
    sizes = np.bincount(of, minlength=len(lines))
    repeated = np.bincount(of[counts > 1], minlength=len(lines))
    alone = np.flatnonzero((repeated == 0) & (sizes >= ENOUGH_FEATURES))
    if len(alone) == 0:
        return ""
    shown = _some(lines, alone)
    return (
        f"no feature of the template's line {shown} occurs in two tokens: {cause}"
        if len(alone) == 1
        else f"no feature of {len(alone)} lines of the template ({shown}) occurs in two tokens: "
        f"{cause}"
    )
