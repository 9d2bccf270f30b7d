"""Constraints on labellings: what decoding with them and weights of them gain, and what they cost.

Claims shown: token accuracy on the test set of a tagger of citations with words as its only
features, trained on a few labelled references, alone, with constraint features, with hard decoding
and with both; and processor seconds of the inference problems (14) and (15) of the transductive
paper and of hard decoding over all unlabelled references, with the share that is exact.

    python benchmarks/constraints.py --data ../shared/data

C is chosen on the development set for each of the two models. The rules are those of
``examples/constraints/citations.toml``. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import SequenceTagger
from maxmargin.constraints import ConstraintSet
from maxmargin.io.columns import read_columns

RULES = Path(__file__).parents[1] / "examples" / "constraints" / "citations.toml"
CS = (0.1, 1.0, 10.0)
MUS = (0.1, 1.0, 10.0)


def words(rows: Any) -> list[list[dict[str, str]]]:
    """Return sequences of rows as tokens with one feature: the word in small letters."""
    return [[{"w": token[0].lower()} for token in sequence] for sequence in rows]


def read(folder: Path, name: str) -> tuple[Any, Any]:
    """Return the inputs and the labels of a file."""
    rows = read_columns(folder / "citations_cora" / f"{name}.tsv.gz").rows()
    return words(rows), [[token[-1] for token in sequence] for sequence in rows]


def accuracies(folder: Path, n: int, rules: ConstraintSet) -> tuple[dict[str, float], Any]:
    """Return accuracies in per cent by way of training and decoding, and the plain tagger."""
    X, y = read(folder, "train")
    dev, test = read(folder, "dev"), read(folder, "test")
    out, plain = {}, None
    for features in (False, True):
        trained = [
            SequenceTagger(
                C=C, constraints=rules, constraint_features=features, random_state=0
            ).fit(X[:n], y[:n])
            for C in CS
        ]
        best = max(trained, key=lambda tagger: tagger.score(*dev))
        plain = plain or best
        name = "features" if features else "plain"
        out[name] = 100 * best.score(*test)
        best.set_params(decode="hard", infeasible="relax")
        out[f"{name}, hard"] = 100 * best.score(*test)
        best.set_params(decode="off")
    return out, plain


def seconds(folder: Path, tagger: SequenceTagger, rules: ConstraintSet) -> dict[str, Any]:
    """Return processor seconds and exact shares of inference over the unlabelled references."""
    X = words(read_columns(folder / "citations_cora" / "unlabelled.tsv.gz").rows())
    chain = tagger.structure_
    bound = rules.bind(X, chain.labels_)
    problem = bound.problem(chain.encoded_problem(chain.encoder.transform(X)))
    weights = chain.native_weights(tagger.weights_)
    v = np.ones(bound.dimension)
    asked = {f"(14), mu = {mu:g}": (-mu / 2 * v, mu / 4) for mu in MUS}
    asked |= {f"(15), mu = {mu:g}": (mu / 2 * v, -mu / 4) for mu in MUS}
    asked["hard"] = bound.coefficients("hard"), 0.0
    out = {"sequences": len(X)}
    for name, (c, q) in asked.items():
        begin = time.process_time()
        found = bound.best(problem, weights, c, q)
        used = time.process_time() - begin
        out[name] = {"seconds": used, "exact": float(found.exact.mean())}
    return out


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Constraints on labellings of citations.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--labelled", type=int, default=20, help="labelled references")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rules = ConstraintSet.from_toml(RULES)
    found, plain = accuracies(options.data, options.labelled, rules)
    for name, accuracy in found.items():
        print(f"{name:16} {accuracy:6.2f} % of the tokens of the test set")
    costs = seconds(options.data, plain, rules)
    for name, entry in costs.items():
        if name != "sequences":
            print(f"{name:16} {entry['seconds']:6.3f} s, {100 * entry['exact']:.1f} % exact")
    print(json.dumps({"labelled": options.labelled, "accuracy": found, "inference": costs}))


if __name__ == "__main__":
    main()
