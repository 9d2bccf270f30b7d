"""The steps of sklearn-crfsuite's tutorial on CoNLL-2002 Spanish, for any estimator of its kind.

Features of the tutorial (words, suffixes, spelling, parts of speech, those of both neighbours),
training on the training file, the tutorial's score (F1 weighted over labels, without O) and that of
the shared task (F1 of names) on the test file, marginals, the strongest transitions, and a search
with three folds. ``first_day_theirs.py`` runs them with sklearn-crfsuite, ``first_day_ours.py``
with maxmargin; ``first_day.py`` runs both. The last line of standard output is one JSON object;
times are processor seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, make_scorer

from maxmargin import evaluate, read_columns
from maxmargin.scores.calibration import calibration_error

FOLDS = 3
TRIED = int(os.environ.get("FIRST_DAY_TRIED", "50"))  # settings of a random search
Sentence = list[list[str]]


def spelling(word: str, tag: str, prefix: str) -> dict[str, Any]:
    """Return what the tutorial tells of a word and of its neighbours."""
    return {
        f"{prefix}lower": word.lower(),
        f"{prefix}istitle": word.istitle(),
        f"{prefix}isupper": word.isupper(),
        f"{prefix}postag": tag,
        f"{prefix}postag2": tag[:2],
    }


def features(sentence: Sentence) -> list[dict[str, Any]]:
    """Return the features of the tutorial for each token."""
    tokens = []
    for i, (word, tag, _) in enumerate(sentence):
        token = {"bias": 1.0, "end3": word[-3:], "end2": word[-2:], "isdigit": word.isdigit()}
        token |= spelling(word, tag, "")
        if i > 0:
            token |= spelling(*sentence[i - 1][:2], "-1:")
        else:
            token["BOS"] = True
        if i + 1 < len(sentence):
            token |= spelling(*sentence[i + 1][:2], "+1:")
        else:
            token["EOS"] = True
        tokens.append(token)
    return tokens


def labels(sentence: Sentence) -> list[str]:
    """Return the labels of a sentence."""
    return [row[-1] for row in sentence]


def flat_f1(truth: Any, found: Any) -> float:
    """Return the score of the tutorial: F1 weighted over the labels, without O."""
    true, predicted = list(chain(*truth)), list(chain(*found))
    names = sorted(set(true) - {"O"})
    return float(f1_score(true, predicted, average="weighted", labels=names, zero_division=0))


def honesty(marginals: Any, found: Any, truth: Any) -> float:
    """Return the expected calibration error of the predicted labels."""
    sure, right = [], []
    for tables, answer, true in zip(marginals, found, truth, strict=True):
        for table, label, correct in zip(tables, answer, true, strict=True):
            sure.append(min(table[label], 1.0))
            right.append(label == correct)
    return float(calibration_error(np.array(sure), np.array(right)))


class Clock:
    """Processor seconds of the steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.process_time()

    def __call__(self, step: str) -> None:
        """Note the seconds since the step before."""
        now = time.process_time()
        self.seconds[step] = now - self._last
        self._last = now


def tutorial(
    choices: dict[str, Any],
    search: Callable[[Any, Any], Any],
    prepare: Callable[[Any, Any, Any], Any] | None = None,
) -> None:
    """Run the steps of the tutorial.

    Parameters
    ----------
    choices : dict
        Estimators by the names of what may be run; "search" is tried by the search.
    search : callable
        Takes the estimator and a scorer, returns scikit-learn's search over it.
    prepare : callable or None
        What has to be done with an estimator and development data before marginals.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("choice", choices=list(choices))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=None)
    args = parser.parse_args()
    np.random.seed(0)  # noqa: NPY002  # of random searches
    clock = Clock()
    sentences = {
        part: read_columns(args.data / "conll2002_esp" / f"{part}.tsv.gz").rows()[: args.limit]
        for part in ("train", "dev", "test")
    }
    clock("read")
    X = {part: [features(s) for s in some] for part, some in sentences.items()}
    y = {part: [labels(s) for s in some] for part, some in sentences.items()}
    clock("features")
    crf, result = choices[args.choice], {}
    if args.choice == "search":
        tried = search(crf, make_scorer(flat_f1)).fit(X["train"], y["train"])
        crf, result["chosen"] = tried.best_estimator_, tried.best_params_
        result["n_trainings"] = FOLDS * len(tried.cv_results_["params"]) + 1
    else:
        crf.fit(X["train"], y["train"])
    clock("train")
    found = [list(answer) for answer in crf.predict(X["test"])]
    clock("predict")
    if prepare is not None:
        prepare(crf, X["dev"], y["dev"])
    clock("prepare")
    marginals = crf.predict_marginals(X["test"])
    clock("marginals")
    strongest = Counter(crf.transition_features_).most_common(3)
    result |= {
        "seconds": clock.seconds,
        "flat_f1": 100 * flat_f1(y["test"], found),
        "f1": 100 * float(evaluate(y["test"], found).f1),
        "calibration_error": honesty(marginals, found, y["test"]),
        "transitions": [list(pair) for pair, _ in strongest],
    }
    print(json.dumps(result))
