"""The arguments of ``maxmargin train``, and which of them go together."""

from __future__ import annotations

import argparse

from maxmargin.cli.cluster import add_cluster, check_cluster
from maxmargin.cli.embeddings import add_embeddings, check_embeddings
from maxmargin.cli.grid import add_grid
from maxmargin.cli.kernel import add_kernel, check_kernel
from maxmargin.cli.loss_weight import add_loss_weight
from maxmargin.cli.options import add_reading, add_threads, at_least
from maxmargin.cli.report import add_report, check_report
from maxmargin.cli.start import add_start, check_start
from maxmargin.cli.streaming import add_streaming, check_streaming
from maxmargin.cli.targets import check_targets
from maxmargin.cli.tasks.registry import CHAIN, TASKS
from maxmargin.cli.training_options import (
    add_features,
    add_prior,
    add_regularizer,
    add_saving,
    add_solving,
    add_talking,
    regularizer_of,
    solver_of,
)
from maxmargin.cli.transduction import add_transduction, check_transduction

__all__ = ["check_options", "configure"]

EPILOG = """\
examples:
  maxmargin train train.tsv -m pos.mm --template pos
  maxmargin train items.crfsuite -m m.mm -C auto
  maxmargin train train.tsv.gz -m ner.mm --template ner -C 0.3 --valid dev.tsv.gz
  maxmargin train train.tsv -m m.mm --template my_template.txt --grid C=0.01,0.1,1 --cv 5
  maxmargin train train.tsv -m m.mm --valid dev.tsv --grid auto --grid template=pos,ner
  maxmargin train train.tsv -m m.mm --valid dev.tsv --report m.html
  maxmargin train train.tsv -m ner.mm --template ner --embeddings vectors.txt
  maxmargin train more.tsv -m new.mm --start old.mm
  maxmargin train train.tsv -m small.mm --nonzeros 5000 --debias
  maxmargin train target.tsv -m adapted.mm --prior source.mm
  maxmargin train large.tsv.gz -m m.mm --template pos --memory 500M
  maxmargin train 'parts/*.tsv' -m m.mm --template pos --cluster tcp://scheduler:8786
  maxmargin train few.tsv -m m.mm --unlabelled much.tsv --constraints rules.toml -C 1

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
    parser.add_argument(
        "--task",
        choices=(CHAIN, *TASKS),
        default=CHAIN,
        help="what is predicted (default: chain, a label for each token); "
        '"maxmargin train --task NAME --help" has the options of the others',
    )
    add_features(parser)
    add_embeddings(parser)
    add_reading(parser, tables=True)
    group = parser.add_argument_group("training")
    add_loss_weight(group)
    sparse = group.add_mutually_exclusive_group()
    add_regularizer(sparse)
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
    add_prior(group)
    add_kernel(parser.add_argument_group("kernels"))
    add_solving(group)
    add_saving(group)
    add_start(group)
    add_streaming(parser)
    add_cluster(parser)
    add_threads(parser)
    add_transduction(parser)
    group = parser.add_argument_group("choosing a model")
    group.add_argument(
        "--valid",
        metavar="FILE",
        help="score the model on this file pass by pass (F1 of chunks, or accuracy) and keep the "
        "best",
    )
    add_grid(group)
    group.add_argument(
        "--cv", type=at_least(2), default=None, metavar="K", help="cross-validate with K folds"
    )
    add_report(
        group, "data, settings, gap over time, scores, errors in context, strongest features"
    )
    add_talking(parser)


def check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, before any file is read."""
    check_transduction(options)
    check_cluster(options)
    if options.model is None and options.cv is None:
        raise ValueError("-m MODEL is missing: where shall the model be written?")
    if options.grid is not None and options.valid is None and options.cv is None:
        raise ValueError("--grid needs --valid FILE or --cv K to tell which model is best")
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
    if options.prior is None and options.prior_precision is not None:
        raise ValueError("--prior-precision needs --prior OLD, the model that weights are held at")
    others = [name for name in ("l1_ratio", "l1_ball", "nonzeros") if getattr(options, name)]
    if options.prior is not None and others:
        other = others[0].replace("_", "-")
        raise ValueError(f"--prior is a regulariser of its own; it does not go with --{other}")
    check_embeddings(options)
    check_kernel(options)
    check_start(options)
    check_report(options)
    check_targets(
        [
            (options.model, "model"),
            (options.checkpoint, "checkpoint"),
            (options.report, "report"),
        ],
        [options.train, options.valid, options.prior, options.start, options.embeddings],
    )
    check_streaming(options)
    from maxmargin.regularizers import ElasticNet, make_regularizer
    from maxmargin.solvers.refusals import check_regularizer

    solver = solver_of(options)
    check_regularizer(solver, make_regularizer(regularizer_of(options)))
    if options.nonzeros is not None:
        check_regularizer(solver, ElasticNet(0.5, 0.5))
