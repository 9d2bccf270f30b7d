"""Section 4 of the transductive paper on handwritten words: labels as constraints (Eq. (16))."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.constraints import ConstraintSet
from maxmargin.solvers import make_solver, solve
from maxmargin.solvers.transductive import TransductiveSVM
from maxmargin.structures.chain import Chain
from maxmargin.structures.label_constraints import LabelConstraints
from maxmargin.structures.transduction import TransductiveData

#: C of the standard structural SVM for the mean loss, and C₂ and μ of (16). With v at the labels
#: (16) has (μ/2) times the Hamming loss on either side.
C, C2, MU = 1000.0, 1000.0, 1.0


def folds(data: Path) -> tuple[list[Any], list[list[int]], Any]:
    """Return the words as matrices of pixels, their letters and their folds."""
    letters = np.load(data / "ocr_letters" / "letters.npz")
    pixels = np.unpackbits(letters["pixels"], axis=1).astype(np.float64)
    ends = np.flatnonzero(np.diff(letters["word_id"])) + 1
    X = np.split(pixels, ends)
    Y = [y.tolist() for y in np.split(letters["letter"], ends)]
    return X, Y, letters["fold"][np.concatenate([[0], ends])]


def compare_ocr(data: Path, labelled: list[int], draws: int) -> dict[str, Any]:
    """Return the accuracies of both, over the folds.

    Parameters
    ----------
    data : Path
        The folder of the data sets.
    labelled : list of int
        Training words of a fold; 0: all of the nine other folds.
    draws : int
        How many of the ten folds to take.

    Returns
    -------
    dict
        Number labelled -> mean token accuracies in per cent, and their standard error.
    """
    X, Y, fold = folds(data)
    figures: dict[str, Any] = {}
    for n in labelled:
        standard, constraints = [], []
        used = 0
        for k in range(min(draws, 10)):
            train = np.flatnonzero(fold != k)
            train = (
                train[: n or len(train)]
                if n == 0
                else np.random.default_rng(k).permutation(train)[:n]
            )
            test = np.flatnonzero(fold == k)
            used = len(train)
            chain = Chain(labels=list(range(26)))
            batch, codes = chain.learn([X[i] for i in train], [Y[i] for i in train])
            there = chain.encoder.transform([X[i] for i in test])
            truth = np.concatenate([Y[i] for i in test])
            share = np.full(used, 1.0 / used)
            problem = chain.encoded_problem(batch, codes, None, share)
            model = solve(problem, make_solver("sdm"), C=C, gap=0.02, random_state=0, warn=False)
            standard.append(accuracy(chain, there, model.weights, truth))
            rule = LabelConstraints(codes=tuple(codes.tolist()), n_labels=26)
            words = [["x"] * len(X[i]) for i in train]
            bound = ConstraintSet([rule]).bind(words, chain.labels_)
            both = TransductiveData(chain, None, None, None, batch, codes, bound)
            svm = TransductiveSVM(
                C2=C2, mu=MU, gap=0.05, tol=1e-2, max_outer=5, gammas=False, random_state=0
            )
            zero = chain.layout.zeros("float32")  # the paper's start: w = 0
            constraints.append(accuracy(chain, there, svm.train(both, zero).chain_weights, truth))
            print(
                f"fold {k}: standard {standard[-1]:.2f}, constraints {constraints[-1]:.2f}",
                flush=True,
            )
        gain = np.array(constraints) - np.array(standard)
        error = float(np.std(gain, ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else 0.0
        mean = {
            name: round(float(np.mean(x)), 2)
            for name, x in (("supervised", standard), ("transductive", constraints))
        }
        # There are no unlabelled words here: constraint features and CODL have nothing to add.
        figures[str(used)] = {
            **mean,
            "transductive_i": mean["transductive"],
            "codl": mean["supervised"],
            "standard_error": round(error, 2),
            "folds": len(gain),
        }
    return figures


def accuracy(chain: Chain, batch: Any, weights: Any, truth: Any) -> float:
    """Return the token accuracy in per cent."""
    codes = chain.predict_encoded(batch, weights)
    return 100 * float(np.mean(np.array(chain.labels_)[codes] == truth))
