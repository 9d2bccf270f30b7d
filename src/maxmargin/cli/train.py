"""``maxmargin train``: from a file of tagged sequences to a model file."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.cli.cells import check_trained
from maxmargin.cli.console import say
from maxmargin.cli.options import (
    add_reading,
    add_threads,
    at_least,
    make_encoder,
    note,
    number,
    read_data,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maxmargin.features.columns import LabelCodes
    from maxmargin.regularizers import Regularizer
    from maxmargin.solvers.certificate import Certificate
    from maxmargin.structures.chain import Chain
    from maxmargin.training import Encoded, FitOptions, Outcome

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  maxmargin train train.tsv -m pos.mm --template pos
  maxmargin train train.tsv.gz -m ner.mm --template ner -C 0.3 --valid dev.tsv.gz
  maxmargin train train.tsv -m m.mm --template my_template.txt --grid C=0.01,0.1,1 --cv 5
  maxmargin train items.txt --format crfsuite -m m.mm
  maxmargin train train.tsv -m small.mm --nonzeros 5000 --debias

Training minimises ½‖w‖² + C Σ_i max_y [loss(y_i, y) - w·(f(x_i, y_i) - f(x_i, y))] and ends when
the duality gap, relative to that objective, is at most --gap: no model is better by more than that.
Templates: the built-in ones are words, pos, chunking and ner ("maxmargin template NAME" prints
them); a file in the syntax of CRF++ or Wapiti; or module:function, file.py:function in Python.
Ctrl-C ends training after the pass under way and writes the model.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The parser of the command.
    """
    parser.epilog = EPILOG
    parser.add_argument("train", metavar="TRAIN", help="the file to learn from; - is a pipe")
    parser.add_argument(
        "-m", "--model", metavar="MODEL", help="where to write the model (not needed with --cv)"
    )
    add_features(parser)
    add_reading(parser)
    group = parser.add_argument_group("training")
    group.add_argument(
        "-C",
        type=number(0, open_low=True),
        default=0.1,
        metavar="C",
        help="weight of the errors against the size of the weights (default: 0.1)",
    )
    sparse = group.add_mutually_exclusive_group()
    sparse.add_argument(
        "--l1-ratio",
        type=number(0, 1),
        default=0.0,
        metavar="R",
        help="elastic net R‖w‖₁ + (1-R)/2‖w‖² in place of ½‖w‖²: with 0.9, a model of a few "
        "thousand weights; 1 is for --solver lp alone (default: 0)",
    )
    sparse.add_argument(
        "--l1-ball",
        type=number(0, open_low=True),
        default=None,
        metavar="R",
        help="‖w‖₁ <= R in place of ½‖w‖², for --solver subgradient",
    )
    sparse.add_argument(
        "--nonzeros",
        type=at_least(1),
        default=None,
        metavar="N",
        help="search the --l1-ratio that gives about N non-zero weights, and no more",
    )
    group.add_argument(
        "--debias",
        nargs="?",
        choices=("features", "weights"),
        const="features",
        default=None,
        help="train once more with ½‖w‖² on what the elastic net selected: features, each with a "
        "weight for every label (default), or just the weights",
    )
    add_solving(group)
    group.add_argument(
        "--checkpoint", metavar="FILE", help="save the state of training here now and then"
    )
    group.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint if it is there"
    )
    add_threads(parser)
    group = parser.add_argument_group("choosing a model")
    group.add_argument(
        "--valid",
        metavar="FILE",
        help="score the model on this file pass by pass (F1 of chunks, or accuracy) and keep the "
        "best",
    )
    group.add_argument(
        "--grid",
        metavar="C=A,B,...",
        help="train for each C, each from where the last one ended; keep the one that is best on "
        "--valid or by --cv",
    )
    group.add_argument(
        "--cv", type=at_least(2), default=None, metavar="K", help="cross-validate with K folds"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def add_features(parser: argparse.ArgumentParser) -> None:
    """Add the options that tell which features tokens get, and which labels may follow."""
    parser.add_argument(
        "--template",
        metavar="NAME",
        help="which features tokens get: words (default), pos, chunking, ner, a file, or a "
        "Python function",
    )
    parser.add_argument(
        "--min-count",
        type=at_least(1),
        default=1,
        metavar="N",
        help="leave out features that occur in fewer tokens (default: 1)",
    )
    parser.add_argument(
        "--hash-bits",
        type=at_least(1),
        default=None,
        metavar="B",
        help="no list of features: each is one of 2^B by its hash, so that memory is fixed",
    )
    parser.add_argument(
        "--allowed",
        choices=("iob2", "iobes"),
        default=None,
        help="tag only with sequences of labels that this scheme allows",
    )


def add_solving(group: Any, gap: float = 0.01) -> None:
    """Add the options of every training to a group; `gap` is the default of ``--gap``."""
    group.add_argument(
        "--gap",
        type=number(0),
        default=gap,
        metavar="G",
        help=f"relative duality gap that ends training (default: {gap:g})",
    )
    group.add_argument(
        "--solver",
        default="sdm",
        metavar="NAME",
        help="algorithm: sdm (default), sap, nslack, oneslack, bcfw, subgradient, lp, "
        "extragradient",
    )
    group.add_argument(
        "--slack",
        choices=("linear", "quadratic", "hard"),
        default=None,
        help="what slacks cost: C Σ ξ (default), C/2 Σ ξ², or none are allowed",
    )
    group.add_argument(
        "--rescale",
        choices=("margin", "slack", "none"),
        default=None,
        help="what the loss of an output scales: the margin that it must keep (default), the slack "
        "that it may use, or nothing",
    )
    group.add_argument(
        "--max-passes", type=at_least(1), default=1000, metavar="N", help="most passes"
    )
    group.add_argument(
        "--time-limit",
        type=number(0, open_low=True),
        default=None,
        metavar="S",
        help="most seconds of training; the final certificate comes on top",
    )
    group.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float32",
        help="type of the weights (default: float32)",
    )
    group.add_argument(
        "--seed", type=at_least(0, None), default=0, metavar="N", help="of the order of visits (0)"
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
        Exit code: 0, or 130 after Ctrl-C (the model is written).
    dict
        Sizes, times, certificate and scores.
    """
    _check(options)
    clock = [time.perf_counter()]

    from maxmargin.solvers.ending import INTERRUPTED, was_interrupted
    from maxmargin.solvers.interrupts import HeldInterrupt

    Cs = _grid(options)
    read = read_training(options)
    clock.append(time.perf_counter())
    chain, train, valid, weights = learn(*read, options)
    clock.append(time.perf_counter())

    fit_options = solving(options)
    table: list[dict[str, Any]] = []
    if options.cv is not None:
        table = _cross_validation(chain, train, Cs, fit_options, options, weights=weights)
        Cs = [max(table, key=lambda row: row["score"])["C"]]
        if options.model is None:
            return 0, {"cv": table, "C": Cs[0], "n_sequences": train.batch.n_sequences}
    if options.nonzeros is not None:
        outcomes = [_search(chain, train, fit_options, options, valid=valid, weights=weights)]
    else:
        outcomes = _train(chain, train, Cs, fit_options, options, valid=valid, weights=weights)
    best = outcomes[0]
    if valid is not None:
        best = max(outcomes, key=_score)
    sparse = _sparse_summary(best, options)
    if options.debias is not None and not sparse["interrupted"]:
        sparse["selected"] = {"n_nonzero": sparse["n_nonzero"], "gap": best.certificate.gap}
        best = _debias(chain, train, best, fit_options, options, valid=valid, weights=weights)
        sparse["debiased"] = True
    clock.append(time.perf_counter())

    summary = {**sparse, **_summary(chain, train, best, options)}
    interrupted = summary.pop("interrupted")
    if interrupted and not was_interrupted(summary["stop_reason"]):  # the search was, or the grid
        summary["stop_reason"] = f"{INTERRUPTED}; {summary['stop_reason']}"
    summary["seconds_read"], summary["seconds_features"], summary["seconds_train"] = (
        b - a for a, b in itertools.pairwise(clock)
    )
    if table:
        summary["cv"] = table
    if valid is not None:
        summary["valid"] = best.report.to_dict() if best.report is not None else None
        summary["valid_passes"] = best.scores
        summary["best_pass"] = best.best_pass
    if len(outcomes) > 1:
        summary["grid"] = [
            {"C": o.C, "gap": o.certificate.gap, "score": _score(o)} for o in outcomes
        ]
    with HeldInterrupt():  # a model that was trained is written
        save_model(chain, best.weights, best.certificate, summary, options)
    summary["seconds_write"] = time.perf_counter() - clock[-1]
    summary["seconds_total"] = time.perf_counter() - clock[0]
    summary["peak_rss_mb"] = peak_rss_mb()
    if not options.quiet and not options.json:
        _tell(summary, best, options)
    return (130 if interrupted else 0), summary


# --- reading -------------------------------------------------------------------------------------


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
    weights: Any  # of the sequences; None: all the same


def learn(data: Any, labels: LabelCodes, options: argparse.Namespace) -> Learned:
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
    from maxmargin.structures.chain import Chain
    from maxmargin.training import Encoded

    encoder = make_encoder(
        options.template,
        data,
        min_count=options.min_count,
        hash_bits=options.hash_bits,
        threads=options.threads,
    )
    chain = Chain(allowed=options.allowed, encoder=encoder)
    batch, codes = chain.learn(data, labels, getattr(options, "dtype", "float32"))
    if batch.indices is not None and len(batch.indices) == 0:
        raise ValueError(
            f"{options.train}: no token has a feature; is it a {options.format or 'conll'} file?"
        )
    train = Encoded(batch, codes, list(chain.labels_))
    valid = None
    if options.valid is not None:
        valid = encode(chain, *read_labelled(chain, options.valid, options))
    return Learned(chain, train, valid, getattr(data, "sequence_weight", None))


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


def encode(chain: Any, data: Any, labels: LabelCodes) -> Encoded:
    """Encode data with the features and labels that a chain knows.

    Parameters
    ----------
    chain : Chain
        Prepared.
    data : ColumnTable or Items
        What is encoded.
    labels : LabelCodes
        Its labels.

    Returns
    -------
    Encoded
        Labels that the chain does not know get numbers behind those it knows.
    """
    import numpy as np

    from maxmargin.training import Encoded

    names = [str(label) for label in chain.labels_]
    places = {name: k for k, name in enumerate(names)}
    for name in labels.names:
        if name not in places:
            places[name] = len(names)
            names.append(name)
    numbers = np.array([places[name] for name in labels.names], dtype=np.int32)
    return Encoded(chain.encoder.transform(data), numbers[labels.codes], names)


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot work before any work is done."""
    if options.model is None and options.cv is None:
        raise ValueError("-m MODEL is missing: where shall the model be written?")
    if options.grid is not None and options.valid is None and options.cv is None:
        raise ValueError("--grid needs --valid FILE or --cv K to tell which C is best")
    if options.resume and options.checkpoint is None:
        raise ValueError("--resume needs --checkpoint FILE")
    if options.checkpoint is not None and (options.grid is not None or options.cv is not None):
        raise ValueError("--checkpoint is for one training; it does not go with --grid or --cv")
    several = [name for name in ("grid", "cv", "checkpoint") if getattr(options, name) is not None]
    if options.nonzeros is not None and several:
        raise ValueError(
            f"--nonzeros is a search of its own; it does not go with --{several[0]}"
        )
    if options.debias is not None and options.nonzeros is None and options.l1_ratio == 0:
        raise ValueError("--debias needs --l1-ratio R or --nonzeros N to select features")
    check_targets(
        [(options.model, "model"), (options.checkpoint, "checkpoint")],
        [options.train, options.valid],
    )
    from maxmargin.regularizers import ElasticNet, make_regularizer
    from maxmargin.solvers import make_solver
    from maxmargin.solvers.refusals import check_regularizer

    solver = make_solver(options.solver, slack=options.slack, rescale=options.rescale)
    check_regularizer(solver, make_regularizer(regularizer_of(options)))
    if options.nonzeros is not None:
        check_regularizer(solver, ElasticNet(0.5, 0.5))


def regularizer_of(options: argparse.Namespace) -> Regularizer | None:
    """Return what ``--l1-ratio`` and ``--l1-ball`` say, where a command has them; None is L2."""
    from maxmargin.regularizers import L1, ElasticNet, L1Ball

    ratio, radius = getattr(options, "l1_ratio", 0.0), getattr(options, "l1_ball", None)
    if radius is not None:
        return L1Ball(radius)
    if ratio == 1:
        return L1()
    return ElasticNet(l1_ratio=ratio) if ratio else None


def check_targets(
    targets: Sequence[tuple[str | None, str]], sources: Sequence[str | None]
) -> None:
    """Refuse files that cannot be written, or that are read from.

    Parameters
    ----------
    targets : sequence of (str or None, str)
        Files to write, and what each is for; None: not asked for.
    sources : sequence of str or None
        Files that are read.
    """
    import stat
    from pathlib import Path

    for name, what in targets:
        if name is None:
            continue
        if not name:
            raise ValueError(f"the name of the {what} is empty; expected a file")
        try:
            mode = Path(name).stat().st_mode
        except FileNotFoundError:
            mode = stat.S_IFREG
        if stat.S_ISDIR(mode):
            raise ValueError(f"{name}: is a directory; expected a file for the {what}")
        if not stat.S_ISREG(mode):  # which would be replaced by a file
            raise ValueError(f"{name}: is no regular file; expected one for the {what}")
        # Not Path.resolve, which raises a RuntimeError where symbolic links go in a circle.
        target = os.path.realpath(name)
        if not Path(target).parent.is_dir():
            raise ValueError(f"{name}: there is no directory {Path(name).parent}")
        for read in sources:
            if read is not None and os.path.realpath(read) == target:
                raise ValueError(f"{name}: is read from; expected another file for the {what}")


def _grid(options: argparse.Namespace) -> list[float]:
    if options.grid is None:
        return [options.C]
    name, _, values = options.grid.partition("=")
    try:
        if name != "C":
            raise ValueError
        Cs = sorted({number(0, open_low=True)(text) for text in values.split(",")})
    except (ValueError, argparse.ArgumentTypeError):
        raise ValueError(
            f"--grid: found {options.grid!r}; expected C= and numbers above 0 between commas, such "
            "as C=0.01,0.1,1"
        ) from None
    return Cs


# --- training ------------------------------------------------------------------------------------


def solving(options: argparse.Namespace) -> FitOptions:
    """Return how to train, as the options of `add_solving` and further ones say.

    Parameters
    ----------
    options : argparse.Namespace
        Without ``l1_ratio`` and ``checkpoint``, the regulariser is L2 and nothing is saved.

    Returns
    -------
    FitOptions
        For `maxmargin.training` and `maxmargin.path`.
    """
    from maxmargin.solvers import make_solver
    from maxmargin.training import FitOptions

    return FitOptions(
        solver=make_solver(options.solver, slack=options.slack, rescale=options.rescale),
        regularizer=regularizer_of(options),
        gap=options.gap,
        max_passes=options.max_passes,
        time_limit=options.time_limit,
        dtype=options.dtype,
        threads=options.threads,
        seed=options.seed,
        checkpoint=getattr(options, "checkpoint", None),
        resume=getattr(options, "resume", False),
    )


def _train(
    chain: Any,
    train: Encoded,
    Cs: list[float],
    fit_options: FitOptions,
    options: argparse.Namespace,
    *,
    valid: Encoded | None,
    weights: Any,
) -> list[Outcome]:
    from maxmargin.cli.progress import Progress
    from maxmargin.training import fit_grid

    lines: list[Progress] = []

    def callbacks(C: float) -> list[Any]:
        if options.quiet:
            return []
        lines.append(Progress(options.gap, f"C={C:g}: " if len(Cs) > 1 else ""))
        return [lines[-1]]

    def told(score: dict[str, Any]) -> None:
        if lines:
            lines[-1].tell(score)

    def done(outcome: Outcome) -> None:
        if lines:
            lines[-1].close()
        if len(Cs) > 1 and not options.quiet:
            gap = f"gap {100 * outcome.certificate.gap:.2g} %"
            note(f"C={outcome.C:g}: {gap}, {_in_words(outcome)}")

    def warned(message: Warning | str, *_where: Any, **_more: Any) -> None:
        if lines:
            lines[-1].close()
        note(f"maxmargin train: warning: {message}")

    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = warned
        return fit_grid(
            chain,
            train,
            Cs,
            fit_options,
            valid=valid,
            sample_weight=weights,
            callbacks=callbacks,
            told=told,
            done=done,
        )


def _search(
    chain: Any,
    train: Encoded,
    fit_options: FitOptions,
    options: argparse.Namespace,
    *,
    valid: Encoded | None,
    weights: Any,
) -> Outcome:
    """Find the model of --nonzeros."""
    from maxmargin.cli.progress import Progress
    from maxmargin.path import search_nonzeros

    lines: list[Progress] = []

    def callbacks(ratio: float) -> list[Any]:
        if not options.quiet:
            lines.append(Progress(options.gap, f"l1_ratio={ratio:.4g}: "))
        return lines[-1:]

    def told(ratio: float, count: int) -> None:
        if lines:
            lines[-1].close()
            note(f"l1_ratio={ratio:.4g}: {count} non-zero weights")

    return search_nonzeros(
        chain,
        train,
        options.C,
        options.nonzeros,
        fit_options,
        valid=valid,
        sample_weight=weights,
        callbacks=callbacks,
        told=told,
    )


def _debias(
    chain: Any,
    train: Encoded,
    best: Outcome,
    fit_options: FitOptions,
    options: argparse.Namespace,
    *,
    valid: Encoded | None,
    weights: Any,
) -> Outcome:
    """Re-fit the features of a sparse model."""
    from maxmargin.cli.progress import Progress
    from maxmargin.path import debias

    lines = [] if options.quiet else [Progress(options.gap, "debias: ")]
    outcome = debias(
        chain,
        train,
        best,
        fit_options,
        keep=options.debias,
        valid=valid,
        sample_weight=weights,
        callbacks=lines,
    )
    for line in lines:
        line.close()
    return outcome


def _sparse_summary(best: Outcome, options: argparse.Namespace) -> dict[str, Any]:
    """Return what there is to say of a model before it is re-fitted."""
    import numpy as np

    summary = {
        "l1_ratio": getattr(best, "l1_ratio", options.l1_ratio),
        "n_nonzero": int(np.count_nonzero(best.weights)),
        "debiased": False,
        "interrupted": getattr(best, "interrupted", False)
        or best.result.interrupted,
    }
    if options.nonzeros is not None:
        tried = getattr(best, "tried", [])
        summary["search"] = [{"l1_ratio": r, "n_nonzero": count} for r, count in tried]
    return summary


def _cross_validation(
    chain: Any,
    train: Encoded,
    Cs: list[float],
    fit_options: FitOptions,
    options: argparse.Namespace,
    *,
    weights: Any,
) -> list[dict[str, Any]]:
    from maxmargin.training import cross_validate

    def done(fold: int, outcome: Outcome) -> None:
        if not options.quiet:
            note(f"fold {fold + 1} of {options.cv}, C={outcome.C:g}: {_in_words(outcome)}")

    table = cross_validate(
        chain, train, Cs, options.cv, fit_options, sample_weight=weights, done=done
    )
    if not options.quiet and not options.json:
        for row in table:
            accuracy = f"{100 * row['token_accuracy']:.2f} ± {100 * row['token_accuracy_std']:.2f}"
            f1 = f", F1 {100 * row['f1']:.2f} ± {100 * row['f1_std']:.2f}" if "f1" in row else ""
            say(f"C={row['C']:g}: accuracy {accuracy} %{f1}")
    return table


def _score(outcome: Outcome) -> float:
    from maxmargin.training import main_score

    return main_score(outcome.report) if outcome.report is not None else float("nan")


def _in_words(outcome: Outcome) -> str:
    report = outcome.report
    if report is None:
        return "not scored"
    f1 = f", F1 {100 * report.f1:.2f}" if report.has_chunks else ""
    return f"accuracy {100 * report.token_accuracy:.2f} %{f1}"


# --- what comes out ------------------------------------------------------------------------------


def _summary(
    chain: Any, train: Encoded, best: Outcome, options: argparse.Namespace
) -> dict[str, Any]:
    import numpy as np

    result, L = best.result, chain.n_labels
    history = result.history
    return {
        "n_sequences": train.batch.n_sequences,
        "n_tokens": train.batch.n_tokens,
        "n_labels": L,
        "n_features": chain.encoder.n_sparse + chain.encoder.n_dense,
        "n_weights": chain.n_features,
        "n_nonzero": int(np.count_nonzero(best.weights)),
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


def save_model(
    chain: Chain,
    weights: Any,
    certificate: Certificate,
    summary: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    """Write a model, and enter its name and size into the summary.

    Parameters
    ----------
    chain : Chain
        Prepared.
    weights : array
        The native weights.
    certificate : Certificate
        Of these weights.
    summary : dict
        Figures of the training.
    options : argparse.Namespace
        With the options of `add_features` and `add_solving`, and ``model``.
    """
    from maxmargin.io.tagger_file import save_tagger, training_meta

    names = ["n_sequences", "n_tokens", "n_features", "passes", "oracle_calls", "l1_ratio"]
    names += ["debiased", "converged", "stop_reason"]
    settings = {name: summary[name] for name in names} | {"seed": options.seed}
    names = ["solver", "gap", "max_passes", "time_limit", "dtype"]
    names += ["min_count", "hash_bits", "allowed"]
    params = {"C": certificate.C, **{name: getattr(options, name) for name in names}}
    params["random_state"] = options.seed
    meta = training_meta(certificate, settings, params, file_format=options.format or "conll")
    if options.format == "conllu":
        meta["columns_conllu"] = options.columns
    objective = params | {"solver": _solver_of(options)}
    objective["regularizer"] = _trained_with(weights, summary, options)
    summary["model_bytes"] = save_tagger(options.model, chain, weights, meta, objective)
    summary["model"] = options.model


def _solver_of(options: argparse.Namespace) -> Any:
    """Return the solver as one would write it in Python: its name, if that says everything."""
    from maxmargin.solvers import make_solver

    if options.slack is None and options.rescale is None:
        return options.solver
    return make_solver(options.solver, slack=options.slack, rescale=options.rescale)


def _trained_with(
    weights: Any, summary: dict[str, Any], options: argparse.Namespace
) -> Regularizer | None:
    """Return the regulariser of the model that is saved."""
    from maxmargin.regularizers import Selected

    if summary["debiased"]:  # what was selected first is part of the objective
        return Selected(weights)
    told = argparse.Namespace(**vars(options))
    told.l1_ratio = summary["l1_ratio"]
    return regularizer_of(told)


def _tell(summary: dict[str, Any], best: Outcome, options: argparse.Namespace) -> None:
    from maxmargin.solvers.ending import certificate_line

    seconds = {name: summary[f"seconds_{name}"] for name in ("read", "features", "train", "write")}
    say(
        f"{summary['n_sequences']} sequences, {summary['n_tokens']} tokens, "
        f"{summary['n_labels']} labels, {summary['n_features']} features"
    )
    say(
        certificate_line(
            best.certificate, summary["passes"], summary["stop_reason"], options.gap
        )
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


def peak_rss_mb() -> float | None:
    """Return the most memory that this process had so far, in MB; None where nobody knows."""
    try:
        import resource
    except ImportError:  # not on every platform
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
