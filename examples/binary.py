"""Two classes, numbers, and constraints of one's own, on newsgroups.

Tells posts about computers from all others, with C chosen on a part of the training data; then
learns from the same posts by constraints that are written down one by one, which gives the same
model.

    python examples/binary.py

The folder of the data sets is MAXMARGIN_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV

from maxmargin import BinarySVM, Constraints, StructuralSVM
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.io.labelled_text import read_labelled_text

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, help="training posts, at most")
    args = parser.parse_args(argv)
    folder = args.data / "newsgroups_taxonomy"
    if not folder.is_dir():
        print(f"{folder} is not there; set MAXMARGIN_DATA", file=sys.stderr)
        return 1
    texts, labels = read_labelled_text(folder / "train.txt.gz")
    held_out, truths = read_labelled_text(folder / "test.txt.gz")
    assert labels is not None
    assert truths is not None
    chosen = np.random.default_rng(0).permutation(len(texts))[: args.limit]
    words = BagOfWords(weighting="tfidf")
    X = words.fit_transform([texts[i] for i in chosen])
    y = np.array([labels[i].startswith("comp/") for i in chosen])
    test = words.transform(held_out)
    wanted = np.array([label.startswith("comp/") for label in truths])
    print(f"{len(y)} training and {len(wanted)} test posts, {X.shape[1]} words")

    search = GridSearchCV(BinarySVM(random_state=0), {"C": [0.1, 0.3, 1.0, 3.0]}, cv=3)
    model = search.fit(X, y).best_estimator_
    print(f"C = {model.C:g}: {100 * model.score(test, wanted):.1f} % of the test posts are right")
    print(f"certificate: {model.certificate_}")

    # The same as constraints: s (x, 1)·w >= 1 - ξ, one row for each post.
    signs = np.where(y, 1.0, -1.0)
    rows = np.hstack([X[:200].toarray(), np.ones((len(y[:200]), 1))]) * signs[:200, None]
    few = BinarySVM(C=model.C, gap=1e-6, random_state=0).fit(X[:200], y[:200])
    same = StructuralSVM(
        Constraints(), solver="dualcoordinate", C=model.C, gap=1e-6, dtype="float64", random_state=0
    ).fit(rows[:, None, :], np.ones((len(rows), 1)))
    difference = abs(same.certificate_.primal - few.certificate_.primal)
    print(f"200 posts as constraints: the objective differs by {difference:.1g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
