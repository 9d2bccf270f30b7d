"""Files with labels: read, and turned into the numbers that models are trained and scored on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.cells import check_trained
from maxmargin.cli.embeddings import read_given_embeddings
from maxmargin.cli.kernel import kernel_options
from maxmargin.cli.options import make_encoder, read_data
from maxmargin.cli.prior import encoder_like, read_prior
from maxmargin.cli.start import start_encoder

if TYPE_CHECKING:
    from maxmargin.features.columns import LabelCodes
    from maxmargin.selection import Encoded
    from maxmargin.structures.chain import Chain

__all__ = ["Learned", "learn_features", "read_labelled", "read_training", "read_valid"]


def read_training(options: argparse.Namespace) -> tuple[Any, LabelCodes]:
    """Read the file to learn from.

    Parameters
    ----------
    options : argparse.Namespace
        Which file, and how to read it.

    Returns
    -------
    data : ColumnTable or Items
        What is in the file, without the labels.
    labels : LabelCodes
        Its labels.
    """
    from maxmargin.features.columns import ColumnTable

    data: Any = read_data(options.train, options)
    if not isinstance(data, ColumnTable):
        check_trained(data.label_codes, options.train)
        return data, data.label_codes
    if data.n_columns < 2:
        raise ValueError(
            f"{data.source}: found 1 column; expected at least 2, a feature and a label (a "
            "file without labels cannot be learned from)"
        )
    table, labels = data.labelled(options.label_column)
    check_trained(labels, data.source)
    return table, labels


class Learned(NamedTuple):
    """A chain that knows its features and labels, and the data of a training in numbers."""

    chain: Chain
    train: Encoded
    valid: Encoded | None
    weights: Any  # a factor of C for each sequence; None: 1 for all
    valid_data: Any = None  # the validation data as they were read, for --report


def learn_features(data: Any, labels: LabelCodes, options: argparse.Namespace) -> Learned:
    """Learn features and labels, and encode the training and validation data.

    Parameters
    ----------
    data, labels
        What `read_training` gave.
    options : argparse.Namespace
        With the options of `add_features` and ``valid``.

    Returns
    -------
    Learned
        All that training takes.
    """
    from maxmargin.features.columns import ColumnTable
    from maxmargin.selection import Encoded
    from maxmargin.structures.chain import Chain

    prior = read_prior(options)
    encoder = make_encoder(
        options.template,
        data,
        min_count=options.min_count,
        hash_bits=options.hash_bits,
        threads=options.threads,
        embeddings=read_given_embeddings(options),
    )
    if options.template is None and isinstance(data, ColumnTable):
        earlier = start_encoder(options) if prior is None else prior.chain.encoder
        if earlier is not None:
            path = getattr(options, "prior", None) or options.start
            encoder = encoder_like(earlier, encoder, path)
    chain = Chain(
        allowed=options.allowed, encoder=encoder, prior=prior, **kernel_options(options)
    )
    batch, codes = chain.learn(data, labels, getattr(options, "dtype", "float32"))
    if batch.indices is not None and len(batch.indices) == 0:
        raise ValueError(
            f"{options.train}: no token has a feature; is it a {options.format or 'conll'} file?"
        )
    train = Encoded(batch, codes, list(chain.labels_))
    valid, valid_data = read_valid(chain, options)
    return Learned(chain, train, valid, getattr(data, "sequence_weight", None), valid_data)


def read_valid(chain: Chain, options: argparse.Namespace) -> tuple[Encoded | None, Any]:
    """Read and encode the file of ``--valid``, if there is one.

    Parameters
    ----------
    chain : Chain
        Prepared.
    options : argparse.Namespace
        Which file, and how to read it.

    Returns
    -------
    Encoded or None
        The sequences in numbers.
    ColumnTable, Items or None
        The same as they were read, where ``--report`` shows them.
    """
    from maxmargin.selection import encode_labelled

    if options.valid is None:
        return None, None
    data, labels = read_labelled(chain, options.valid, options)
    shown = getattr(options, "report", None) is not None
    return encode_labelled(chain, data, labels), data if shown else None


def read_labelled(chain: Any, path: str, options: argparse.Namespace) -> tuple[Any, LabelCodes]:
    """Read another file with labels for a chain that is prepared.

    Parameters
    ----------
    chain : Chain
        Prepared.
    path : str
        The file.
    options : argparse.Namespace
        How to read it.

    Returns
    -------
    data : ColumnTable or Items
        What is in the file.
    labels : LabelCodes
        Its labels.
    """
    data: Any = read_data(path, options, chain.encoder.vocabulary)
    column = getattr(chain.encoder, "label_column", None)
    if column is not None and data.n_columns != chain.encoder.n_columns:
        raise ValueError(
            f"{data.source}: found {data.n_columns} columns; expected {chain.encoder.n_columns}, "
            f"as in training, with the label in column {column}"
        )
    return data, data.label_codes if column is None else data.labels(column)
