"""Parse trees: Table 5 of Tsochantaridis et al. (2004) on a sample of the Penn Treebank.

    python benchmarks/trees.py --data ../shared/data

First the rows of the table, for sentences of at most 10 and 15 words: a PCFG by counting, SVM₂ with
0/1 loss, and SVM₂^Δs and SVM₂^Δm with the loss 1 − F₁, all with the rules of the training trees and
nothing else, given parts of speech. Two rows more have Markovised rules, and the SVM the features
of nodes that a PCFG cannot have. C is chosen on every fifth training sentence with a model of the
others; the model is then trained on all. F₁ and exact matches are micro-averages as ``evalb``
counts them. A paired permutation test compares each row with the PCFG: on the test sentences, which
are few, and on the training sentences in cross-validation, where the test data have no part and C
is chosen within each fold again; there also with the PCFG of the same rules.

Then all lengths: the loss of wrong brackets, parent annotation, horizontal Markovisation and
features of nodes, one after the other, with F₁ and sentences a second. Last, CKY on sentences of 40
words against a bare loop over the same rules. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin import SDM, ConvergenceWarning, Parser, Tree, read_trees
from maxmargin.features.treebank import FlatTree
from maxmargin.scores.paired import f1_test
from maxmargin.scores.trees import PLAIN, TreeReport, evaluate_trees
from pcfg import PCFG

Trees = Sequence[Tree]
Predict = Callable[[Trees], list[Tree]]



class Row(NamedTuple):
    """A row of the table: a model, and what the paper has of it."""

    rules: dict[str, Any]
    loss: str | None  # None: a PCFG
    rescale: str = "margin"
    node_features: str | None = None
    same_rules: str = "PCFG"  # the PCFG with the same rules
    paper: tuple[float, ...] = ()  # accuracy and F1: train, test


PLAIN_RULES = {"vertical": 1, "horizontal": None}
MARKOV_RULES = {"vertical": 1, "horizontal": 1}
#: The paper had 4098 and 163 sentences of at most 10 words. The last two rows are not in it.
ROWS = {
    "PCFG": Row(PLAIN_RULES, None, paper=(61.4, 90.4, 55.2, 86.0)),
    "SVM2": Row(PLAIN_RULES, "zero_one", paper=(66.3, 92.0, 58.9, 86.2)),
    "SVM2-slack-F1": Row(PLAIN_RULES, "f1", "slack", paper=(62.2, 92.1, 58.9, 88.5)),
    "SVM2-margin-F1": Row(PLAIN_RULES, "f1", "margin", paper=(63.5, 92.3, 58.3, 88.4)),
    "PCFG, h=1": Row(MARKOV_RULES, None, same_rules="PCFG, h=1"),
    "SVM2-margin-F1, h=1, nodes": Row(MARKOV_RULES, "f1", "margin", "edges", "PCFG, h=1"),
}
#: Of the mean over the sentences, as in the paper.
GRID = (10.0, 100.0, 1000.0)
HELD_OUT = 5


class Trained(NamedTuple):
    """A way to predict, and what its training was."""

    predict: Predict
    C: float | None
    seconds: float
    gap: float


def svm(trees: Trees, row: Row, C: float, args: Any) -> Trained:
    """Train a model with quadratic slacks."""
    begin = time.process_time()
    parser = Parser(
        loss=row.loss or "zero_one",
        node_features=row.node_features,
        solver=SDM(slack="quadratic", rescale=row.rescale),
        C=C,
        C_scale="mean",
        gap=args.gap,
        random_state=0,
        **row.rules,
    ).fit(None, trees)
    return Trained(parser.predict, C, time.process_time() - begin, parser.certificate_.gap)


def pcfg(trees: Trees, **options: Any) -> Trained:
    begin = time.process_time()
    return Trained(PCFG(**options).fit(trees).predict, None, time.process_time() - begin, 0.0)


def chosen(
    trees: Trees, train: Callable[[Trees, float], Trained], grid: Sequence[float]
) -> Trained:
    """Choose C on every fifth sentence, and train on all with it."""
    if len(grid) == 1:
        return train(trees, grid[0])
    held = list(trees)[HELD_OUT - 1 :: HELD_OUT]
    rest = [tree for i, tree in enumerate(trees) if i % HELD_OUT != HELD_OUT - 1]
    scores = {C: evaluate_trees(held, train(rest, C).predict(held)).f1 for C in grid}
    best = max(grid, key=lambda C: scores[C])
    return train(trees, best)


def table_method(name: str, trees: Trees, args: Any) -> Trained:
    row = ROWS[name]
    if row.loss is None:
        return pcfg(trees, **row.rules)
    return chosen(trees, lambda some, C: svm(some, row, C, args), args.grid)


def cross_validated(name: str, trees: Trees, args: Any) -> TreeReport:
    """Return the scores of sentences by models that have not seen them."""
    found: dict[int, Tree] = {}
    for k in range(args.folds):
        held = list(range(k, len(trees), args.folds))
        rest = [tree for i, tree in enumerate(trees) if i % args.folds != k]
        model = table_method(name, rest, args)
        found |= zip(held, model.predict([trees[i] for i in held]), strict=True)
    return evaluate_trees(trees, [found[i] for i in range(len(trees))])


def table(train: Trees, test: Trees, args: Any) -> dict[str, Any]:
    """Print the rows of the table."""
    print(
        f"{'':26s} {'train':>14s} {'test':>14s} {'test, plain':>14s} {'C':>5s} {'CPU s':>6s} "
        f"{'against the PCFG: test':>24s} {'cross-validated':>24s} {'same rules':>17s}   paper\n"
        f"{'':26s} {'exact':>7s}{'F1':>7s} {'exact':>7s}{'F1':>7s} {'exact':>7s}{'F1':>7s} "
        f"{'':5s} {'':6s} {'F1':>15s}{'p':>9s} {'F1':>7s}{'diff':>8s}{'p':>9s} "
        f"{'diff':>8s}{'p':>9s}"
    )
    output: dict[str, Any] = {}
    reports: dict[str, TreeReport] = {}
    crossed: dict[str, TreeReport] = {}
    for name, row in ROWS.items():
        model = table_method(name, train, args)
        on_train = evaluate_trees(train, model.predict(train))
        guesses = model.predict(test)
        reports[name] = evaluate_trees(test, guesses)
        crossed[name] = cross_validated(name, train, args)
        plain = evaluate_trees(test, guesses, PLAIN)
        here, there, same = (
            f1_test(found[name].sentences, found[other].sentences)
            for found, other in (
                (reports, "PCFG"),
                (crossed, "PCFG"),
                (crossed, row.same_rules),
            )
        )
        output[name] = {
            "C": model.C,
            "seconds": model.seconds,
            "gap": model.gap,
            "train": on_train.to_dict(),
            "test": reports[name].to_dict(),
            "test_plain": plain.to_dict(),
            "cross_validated": crossed[name].to_dict(),
            "without_parse": sum(isinstance(tree, FlatTree) for tree in guesses),
            "test_against_pcfg": here._asdict(),
            "cross_validated_against_pcfg": there._asdict(),
            "cross_validated_against_pcfg_of_the_same_rules": same._asdict(),
        }
        shares = "".join(
            f" {100 * r.exact:7.1f}{100 * r.f1:7.1f}" for r in (on_train, reports[name], plain)
        )
        print(
            f"{name:26s}{shares} {'' if model.C is None else f'{model.C:g}':>5s} "
            f"{model.seconds:6.1f} {100 * here.difference:+15.2f}{here.p_value:9.4f} "
            f"{100 * crossed[name].f1:7.2f}{100 * there.difference:+8.2f}{there.p_value:9.4f} "
            f"{100 * same.difference:+8.2f}{same.p_value:9.4f}   "
            f"{'  '.join(f'{x:.1f}' for x in row.paper)}",
            flush=True,
        )
    return output


#: Options of `Parser` for all lengths, each with something more.
RICHER: dict[str, dict[str, Any]] = {
    "rules": {"vertical": 1, "horizontal": None, "node_features": None},
    "+ horizontal 1": {"vertical": 1, "horizontal": 1, "node_features": None},
    "+ vertical 2": {"vertical": 2, "horizontal": 1, "node_features": None},
    "+ node features": {"vertical": 2, "horizontal": 1, "node_features": "edges"},
}


def scored(predict: Predict, test: Trees) -> tuple[TreeReport, float, int]:
    """Return scores, sentences a second and how many have no parse."""
    begin = time.process_time()
    guesses = predict(test)
    seconds = time.process_time() - begin
    flat = sum(isinstance(tree, FlatTree) for tree in guesses)
    return evaluate_trees(test, guesses), len(test) / seconds, flat


def all_lengths(train: Trees, test: Trees, args: Any) -> dict[str, Any]:
    """Print what richer features bring."""
    output: dict[str, Any] = {}
    print(
        f"{'':34s} {'F1':>7s} {'prec':>7s} {'recall':>7s} {'exact':>7s} {'no parse':>9s} "
        f"{'sent/s':>8s} {'C':>6s} {'train s':>8s}"
    )
    for name, options in RICHER.items():
        if args.richest and name != list(RICHER)[-1]:
            continue
        rules = {key: options[key] for key in ("vertical", "horizontal")}
        rows: dict[str, Trained] = {}
        if options["node_features"] is None or args.richest:
            rows[f"PCFG, {name.replace('node features', 'vertical 2')}"] = pcfg(train, **rules)
        rows[f"SVM, brackets, {name}"] = chosen(
            train, lambda some, C, o=options: rich(some, o, C, args), args.rich_grid
        )
        for title, model in rows.items():
            report, rate, flat = scored(model.predict, test)
            output[title] = {
                **report.to_dict(),
                "sentences_per_second": rate,
                "without_parse": flat,
                "C": model.C,
                "seconds": model.seconds,
                "gap": model.gap,
            }
            print(
                f"{title:34s} {100 * report.f1:7.2f} {100 * report.precision:7.2f} "
                f"{100 * report.recall:7.2f} {100 * report.exact:7.2f} {flat:9d} {rate:8.1f} "
                f"{'' if model.C is None else f'{model.C:g}':>6s} {model.seconds:8.1f}",
                flush=True,
            )
    return output


def bare_loop(train: Trees, test: Trees, words: int = 40, repeat: int = 2) -> dict[str, Any]:
    """Compare CKY, trees included, with a bare loop over spans, splits and rules, values alone."""
    some = [tree for tree in test if len(tree.words()) == words][:5] or list(test[:1])
    output: dict[str, Any] = {}
    print(f"{len(some)} sentences of {words} words: CKY and the bare loop, CPU ms a sentence")
    for name, options in list(RICHER.items())[:3]:
        model = PCFG(vertical=options["vertical"], horizontal=options["horizontal"]).fit(train)
        structure = model.structure
        read = [structure._read(pairs) for pairs in structure.sentences(some)]
        problem = structure.grammar_._sentences(read)
        times: dict[str, list[float]] = {"cky": [], "bare": []}
        for _ in range(repeat):  # in turn, so that both meet the same machine
            begin = time.process_time()
            problem.parse(model.weights, 1)
            middle = time.process_time()
            for i in range(len(some)):
                problem.bare(model.weights, i)
            end = time.process_time()
            times["cky"].append(middle - begin)
            times["bare"].append(end - middle)
        cky, bare = (1000 * min(times[kind]) / len(some) for kind in ("cky", "bare"))
        output[name] = {"cky_ms": cky, "bare_ms": bare, "ratio": cky / bare}
        rules = len(structure.grammar_.rules_)
        print(f"{name:20s} {rules:6d} rules {cky:8.2f} {bare:8.2f}   ratio {cky / bare:.3f}")
    return output


def rich(trees: Trees, options: dict[str, Any], C: float, args: Any) -> Trained:
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is in the output
        parser = Parser(
            C=C, gap=args.rich_gap, max_passes=args.rich_passes, random_state=0, **options
        ).fit(None, trees)
    return Trained(parser.predict, C, time.process_time() - begin, parser.certificate_.gap)


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with wsj_sample_trees/")
    parser.add_argument("--parts", default="10,15,all,cky", help="of %(default)s")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--gap", type=float, default=0.01, help="of the table's models")
    parser.add_argument("--grid", type=numbers, default=GRID, help="values of C for the table")
    parser.add_argument("--rich-gap", type=float, default=0.05, help="for all lengths")
    parser.add_argument("--rich-passes", type=int, default=30, help="most, for all lengths")
    parser.add_argument("--rich-grid", type=numbers, default=[0.01, 0.1], help="for all lengths")
    parser.add_argument("--richest", action="store_true", help="all lengths: the last row alone")
    parser.add_argument("--quick", action="store_true", help="60 sentences, two folds, one C")
    args = parser.parse_args()
    folder = args.data / "wsj_sample_trees"
    train, test = (read_trees(folder / f"{name}.mrg.gz") for name in ("train", "test"))
    if args.quick:
        args.folds, args.grid, args.rich_grid = 2, [100.0], [0.1]
    output: dict[str, Any] = {}
    for part in args.parts.split(","):
        if part == "cky":
            print()
            output[part] = bare_loop(train[:60] if args.quick else train, test)
            continue
        most = 10**9 if part == "all" else int(part)
        some, other = ([t for t in trees if len(t.words()) <= most] for trees in (train, test))
        if args.quick:
            some, other = some[:60], other[:20]
        print(f"\nat most {part} words: {len(some)} training and {len(other)} test sentences")
        output[part] = (all_lengths if part == "all" else table)(some, other, args)
    print(json.dumps(output))


if __name__ == "__main__":
    main()
