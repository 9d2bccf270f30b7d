"""``maxmargin train --cluster ADDRESS`` and ``--workers N``: training on many machines.

The workers read TRAIN themselves, each its own part of it; what comes back is an ordinary model.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from maxmargin.cli.console import note
from maxmargin.cli.loss_weight import AUTO
from maxmargin.cli.options import at_least, is_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxmargin.distributed.records import RoundRecord

__all__ = ["add_cluster", "check_cluster", "is_distributed", "train_on_cluster"]

#: Options that need all data in one place, with what they are when they are not given.
REFUSED: dict[str, Any] = {
    "valid": None,
    "grid": None,
    "cv": None,
    "nonzeros": None,
    "debias": None,
    "prior": None,
    "start": None,
    "embeddings": None,
    "kernel": "linear",
    "stream": False,
    "memory": None,
    "on_error": "raise",
    "report": None,
    "constraints": None,
    "unlabelled": None,
    "l1_ball": None,
}
#: Seconds to wait for a scheduler that does not answer.
PATIENCE = 10.0


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options for many machines."""
    group = parser.add_argument_group(
        "many machines (docs/cluster.md)"
    ).add_mutually_exclusive_group()
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        default=None,
        help="train on the Dask cluster whose scheduler is there (tcp://host:8786); its workers "
        "read TRAIN under the same name, which may be a pattern such as 'parts/*.tsv'",
    )
    group.add_argument(
        "--workers",
        type=at_least(1),
        default=None,
        metavar="N",
        help="train with so many worker processes on this machine",
    )


def is_distributed(options: argparse.Namespace) -> bool:
    """Whether workers are to train."""
    return options.cluster is not None or options.workers is not None


def check_cluster(options: argparse.Namespace) -> None:
    """Refuse what does not go with many machines."""
    if not is_distributed(options):
        return
    name = "--cluster" if options.cluster is not None else "--workers"
    for refused, plain in REFUSED.items():
        if getattr(options, refused, plain) != plain:
            option = refused.replace("_", "-")
            raise ValueError(
                f"--{option} needs all data in one place; it does not go with {name}"
            )
    if options.C == AUTO:
        raise ValueError(f"-C auto needs all data in one place; {name} needs a number (-C 1)")
    if options.solver != "sdm":
        raise ValueError(f"{name} trains with --solver sdm; got {options.solver}")
    if options.slack == "hard":
        raise ValueError(f"--slack hard does not go with {name}: hard margins are no sum of shares")
    if options.train == "-":
        raise ValueError(f"{name} has workers read TRAIN, which cannot be a pipe")
    if options.template is not None and is_function(options.template):
        raise ValueError(
            f"--template {options.template} is a function of this machine; with {name} it must be "
            "a built-in template or a template file"
        )


def train_on_cluster(options: argparse.Namespace) -> tuple[int, dict[str, Any]]:
    """Train as ``--cluster`` or ``--workers`` say, and write the model.

    Parameters
    ----------
    options : argparse.Namespace
        The arguments of the command, which were checked.

    Returns
    -------
    int
        Exit code: 0, or 130 after Ctrl-C (the model is written).
    dict
        As for any other training, with ``rounds``, ``bytes_sent``, ``shares`` and ``faults``.
    """
    from maxmargin.cli.peak_memory import peak_rss_mb
    from maxmargin.cli.saving import save_model
    from maxmargin.cli.train_summary import model_figures, print_summary, sparse_figures
    from maxmargin.errors import ClusterError
    from maxmargin.solvers.interrupts import HeldInterrupt

    begin = time.perf_counter()
    paths = _paths(options)
    reading = _reading(options, paths)
    try:
        with _client(options) as client, _warnings():
            started = time.perf_counter()
            tagger = _tagger(options, client)
            interrupted = _fitted(tagger, paths, reading)
    except (ClusterError, ImportError) as error:  # one line, and no fault of the command
        raise ValueError(str(error)) from error
    trained = time.perf_counter()
    model = tagger.model_
    chain, weights, certificate = model.structure_, model.weights_, model.certificate_
    seconds = model.history_[-1].seconds if len(model.history_) else 0.0
    result = SimpleNamespace(
        history=model.history_, n_passes=len(model.history_), interrupted=interrupted
    )
    best: Any = SimpleNamespace(
        C=options.C,
        weights=weights,
        certificate=certificate,
        result=result,
        converged=model.converged_,
        stop_reason=model.stop_reason_,
    )
    batch = SimpleNamespace(n_sequences=certificate.n_examples, n_tokens=tagger.n_tokens_)
    train: Any = SimpleNamespace(batch=batch)
    summary = {**sparse_figures(best, options), **model_figures(chain, train, best, options)}
    del summary["interrupted"]
    summary |= {
        "rounds": len(model.history_),
        "bytes_sent": tagger.bytes_sent_,
        "shares": tagger.n_shares_,
        "faults": tagger.n_faults_,
        "seconds_start": started - begin,
        "seconds_read": trained - started - seconds,  # features too: workers make them together
        "seconds_features": 0.0,
        "seconds_train": seconds,
    }
    with HeldInterrupt():
        save_model(chain, weights, certificate, summary, options)
    summary["seconds_write"] = time.perf_counter() - trained
    summary["seconds_total"] = time.perf_counter() - begin
    summary["peak_rss_mb"] = peak_rss_mb()
    if not options.quiet and not options.json:
        print_summary(summary, best, options)
    return (130 if interrupted else 0), summary


def _fitted(tagger: Any, paths: list[str], reading: dict[str, Any]) -> bool:
    """Train; return whether Ctrl-C ended it with a model."""
    try:
        tagger.fit(paths, **reading)
    except KeyboardInterrupt:
        if "model_" not in vars(tagger):
            raise
        return True
    return False


def _paths(options: argparse.Namespace) -> list[str]:
    """Return the files that TRAIN names."""
    import glob
    from pathlib import Path

    from maxmargin.streams import is_encoded

    given = options.train
    if Path(given).exists() or not glob.has_magic(given):
        paths = [given]
    else:
        paths = sorted(glob.glob(given))  # noqa: PTH207 (patterns may be absolute)
        if not paths:
            raise FileNotFoundError(f"{given}: no file has such a name")
    if Path(paths[0]).is_file() and is_encoded(paths[0]):
        raise ValueError(
            f"{paths[0]}: is an encoded file, which has one list of features; workers read the "
            "files that it was made from"
        )
    return paths


def _reading(options: argparse.Namespace, paths: list[str]) -> dict[str, Any]:
    """Return how workers read their files."""
    from maxmargin.cli.streaming import recognised_format

    by, columns = options.sequence, options.columns
    recognised_format(options, paths)
    reading = {
        "file_format": options.format,
        "label_column": options.label_column,
        "separator": options.separator,
        "comment": options.comments,
        "max_inflated": options.max_inflated,
        "encoding": options.encoding,
        "columns": None if columns is None else columns.split(","),
    }
    if by is not None:
        reading["sequence"] = by.split(",")
    return reading


def _tagger(options: argparse.Namespace, client: Any) -> Any:
    from maxmargin.cli.training_options import regularizer_of, solver_of
    from maxmargin.distributed import DaskSequenceTagger
    from maxmargin.features.template import Template

    template: Any = options.template
    if options.format in ("crfsuite", "svmhmm"):
        if template is not None:
            raise ValueError(
                "--template is for columns; the features of crfsuite and svmhmm files are expanded"
            )
    else:
        template = Template.load("words" if template is None else template)
    return DaskSequenceTagger(
        client=client,
        C=options.C,
        solver=solver_of(options),
        regularizer=regularizer_of(options),
        gap=options.gap,
        max_passes=options.max_passes,
        time_limit=options.time_limit,
        template=template,
        min_count=options.min_count,
        hash_bits=options.hash_bits,
        allowed=options.allowed,
        dtype=options.dtype,
        random_state=options.seed,
        checkpoint=options.checkpoint,
        resume=options.resume,
        callbacks=[] if options.quiet else [RoundLines(options.verbose)],
    )


@contextlib.contextmanager
def _client(options: argparse.Namespace) -> Iterator[Any]:
    """Give a client of the cluster of ``--cluster``, or of one that is made."""
    from maxmargin.distributed.cluster import local_client, remote_client

    if options.workers is not None:
        with local_client(options.workers) as client:
            yield client
    else:
        with remote_client(options.cluster, PATIENCE) as client:
            yield client


@contextlib.contextmanager
def _warnings() -> Iterator[None]:
    """Turn warnings into lines."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_where, **_more: note(
            f"maxmargin train: warning: {message}"
        )
        yield


class RoundLines:
    """A callback that prints a line for each round, with the bytes that were sent.

    Parameters
    ----------
    verbose : int
        0: rounds that know the gap, and one of ten others; 1: all of them.
    """

    def __init__(self, verbose: int = 0) -> None:
        self._verbose = verbose
        self._sent = 0

    def __call__(self, record: RoundRecord) -> None:
        """Show a round."""
        self._sent += record.bytes_up + record.bytes_down
        if record.recovered:
            note(f"maxmargin train: {record.recovered} share(s) were lost and made anew")
        if math.isfinite(record.gap):
            gap = f"gap {100 * record.gap:.3g} %"
        elif self._verbose or record.n_pass % 10 == 1:
            gap = f"gap about {100 * record.gap_estimate:.2g} %"
        else:
            return
        sent = (record.bytes_up + record.bytes_down) / 1e6
        note(
            f"round {record.n_pass} {gap}  {record.seconds:.1f} s  {record.passes} passes  sent "
            f"{sent:.2f} MB ({self._sent / 1e6:.1f} MB in all)"
        )
