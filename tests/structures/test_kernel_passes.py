"""Passes of a training with a kernel are scored, and the best one is kept with its certificate."""

from __future__ import annotations

import numpy as np
import pytest

from cli_files import sentences, summary, text, write
from maxmargin import SequenceTagger
from maxmargin.structures.chain import Chain

KERNEL = {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": 0.0}


def data(n, seed, noise):
    draw = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = draw.integers(3, size=draw.integers(1, 6))
        wrong = draw.random(len(labels)) < noise
        seen = np.where(wrong, draw.integers(3, size=len(labels)), labels)
        X.append([[f"w={k}", f"x={draw.integers(6)}"] for k in seen.tolist()])
        y.append(labels.tolist())
    return X, y


def primal(tagger, X, y):
    """Return the objective of a kernel that is an inner product, from the weights it means."""
    chain, learned = tagger.structure_, tagger.weights_
    support = learned.support
    coef = np.zeros((chain.encoder.n_sparse, chain.n_labels))
    for t in range(support.n_tokens):
        row = support.indices[support.indptr[t] : support.indptr[t + 1]]
        coef[row] += learned.dual_coef[t]
    w = np.concatenate([coef, learned.edges]).ravel()
    linear = Chain(encoder=chain.encoder)
    linear.labels_, linear.classes_ = chain.labels_, chain.classes_
    linear._codes = chain._codes
    total = 0.0
    for x, truth in zip(X, y, strict=True):
        answer = linear.argmax(x, w, truth)
        score = {}
        for name, labels in (("answer", answer), ("truth", truth)):
            places, values = linear.joint_feature(x, labels)
            score[name] = w[places] @ values
        total += linear.loss(truth, answer) + score["answer"] - score["truth"]
    return 0.5 * w @ w + tagger.C * total


@pytest.mark.parametrize("solver", ["sdm", "sap"])
def test_the_best_pass_is_kept_with_its_own_primal(solver):
    train, dev = data(60, 0, 0.6), data(60, 12, 0.6)  # pass 28 of 91 is the best
    params = {"C": 5.0, "gap": 1e-4, "random_state": 0, "solver": solver, **KERNEL}
    plain = SequenceTagger(**params).fit(*train)
    tagger = SequenceTagger(**params).fit(*train, eval_set=dev)
    # Scoring and keeping change nothing of the training.
    assert tagger.history_.column("dual").tolist() == plain.history_.column("dual").tolist()
    assert tagger.score(*dev) == pytest.approx(
        max(row["token_accuracy"] for row in tagger.eval_scores_)
    )
    assert tagger.score(*dev) > plain.score(*dev)
    assert tagger.best_pass_ < tagger.n_iter_
    assert tagger.certificate_.dual == plain.certificate_.dual
    assert tagger.certificate_.primal > plain.certificate_.primal
    for one in (plain, tagger):
        assert one.certificate_.primal == pytest.approx(primal(one, *train), rel=1e-5)
    # The engine is that of the end: going on from it ends at once.
    again = SequenceTagger(**params, warm_start=True).fit(*train, eval_set=dev)
    passes = again.n_iter_
    again.fit(*train)
    assert again.n_iter_ < passes / 2
    assert again.certificate_.gap <= 1e-4


def test_train_valid_scores_each_pass(capsys, tmp_path):
    file = write(tmp_path / "t.tsv", text(sentences(20)))
    dev = write(tmp_path / "d.tsv", text(sentences(20, seed=5)))
    given = ["train", file, "-m", tmp_path / "m.mm", "--kernel", "rbf", "--valid", dev, "-q"]
    found = summary(capsys, *given, "--gap", "0.001")
    assert len(found["valid_passes"]) > 1
    best = max(row["f1"] for row in found["valid_passes"])
    assert found["valid"]["f1"] == best
    scores = summary(capsys, "eval", "-m", tmp_path / "m.mm", dev)
    assert scores["f1"] == best
