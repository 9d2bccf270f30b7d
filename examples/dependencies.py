"""Train a dependency parser on real sentences and parse some others.

The data are sentences of the Wall Street Journal with their heads (``wsj_sample_dep``); the folder
is named by ``MAXMARGIN_DATA``, by default ``../shared/data``.

Run it: ``python examples/dependencies.py``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from maxmargin import DependencyParser
from maxmargin.io.conllu_trees import read_dependencies
from maxmargin.scores.dependencies import attachment_scores, punctuation


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train and test a dependency parser.")
    parser.add_argument("--sentences", type=int, default=1000, help="how many to learn from")
    options = parser.parse_args(argv)
    folder = Path(os.environ.get("MAXMARGIN_DATA", "../shared/data")) / "wsj_sample_dep"
    train = read_dependencies(folder / "train.conllu.gz", one_root=True)[: options.sentences]
    test = read_dependencies(folder / "test.conllu.gz")

    model = DependencyParser(C=0.03, gap=0.1, random_state=0)
    model.fit(train, [sentence.heads for sentence in train])
    print(f"{len(train)} sentences, {model.n_iter_} passes; {model.certificate_}")

    predicted = model.predict(test)
    keep = [~mask for mask in punctuation([sentence.xpos for sentence in test], "xpos")]
    scores = attachment_scores([sentence.heads for sentence in test], predicted, keep=keep)
    print(f"UAS without punctuation: {100 * scores['uas']:.1f} % of {scores['n']} words")

    sentence, heads = test[0], predicted[0]
    for word, head in zip(sentence.forms, heads, strict=True):
        print(f"{word:>20} <- {sentence.forms[head - 1] if head else '(root)'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
