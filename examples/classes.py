"""Sort newsgroup messages into their groups: words as features, C chosen on held-out messages.

Every fifth training message is held out to choose C and the features. The model with the best
choice is then trained on all training messages and scored once on the test messages. At last the
same with a cost matrix, in which an answer of another family (comp/..., rec/...) costs twice as
much as one of the same family; the mean costs of both models are printed.

    python examples/classes.py

The folder of the data sets is MAXMARGIN_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import MulticlassSVM
from maxmargin.io.labelled_text import read_labelled_text

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))
CHOICES = [
    {"C": C, "features": {"ngrams": ngrams, "min_count": 2}}
    for ngrams in (1, 2)
    for C in (0.3, 1.0, 3.0)
]


def family(label: str) -> str:
    return label.partition("/")[0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--every", type=int, default=1, help="take one message in so many")
    args = parser.parse_args(argv)
    folder = args.data / "newsgroups_taxonomy"
    if not folder.is_dir():
        print(f"{folder} is not there; set MAXMARGIN_DATA", file=sys.stderr)
        return 1
    (texts, labels), (test, truths) = (
        read_labelled_text(folder / f"{name}.txt.gz") for name in ("train", "test")
    )
    assert labels is not None
    assert truths is not None
    texts, labels = texts[:: args.every], labels[:: args.every]
    held = np.arange(len(texts)) % 5 == 4

    def some(values: list[str], which: Any) -> list[str]:
        return [value for value, take in zip(values, which, strict=True) if take]

    best: dict[str, Any] = {}
    top = -1.0
    for choice in CHOICES:
        model = MulticlassSVM(random_state=0, **choice)
        model.fit(some(texts, ~held), some(labels, ~held))
        accuracy = model.score(some(texts, held), some(labels, held))
        print(f"C = {choice['C']:<4} {choice['features']}: {accuracy:.3f} of the held-out messages")
        if accuracy > top:
            best, top = choice, accuracy

    model = MulticlassSVM(random_state=0, **best).fit(texts, labels)
    print(f"\nall training messages: {model.certificate_}")
    print(f"test messages: {model.score(test, truths):.3f} right")
    for label, words in list(model.describe(5)["strongest"].items())[:4]:
        print(f"  {label:28s} {' '.join(word for word, _ in words)}")

    costs = {
        (a, b): 1.0 if family(a) == family(b) else 2.0
        for a in model.classes_
        for b in model.classes_
        if a != b
    }
    careful = MulticlassSVM(random_state=0, loss=costs, **best).fit(texts, labels)
    for name, one in (("0/1 loss", model), ("costs by family", careful)):
        answers = one.predict(test)
        cost = np.mean([costs.get(pair, 0.0) for pair in zip(truths, answers, strict=True)])
        print(f"{name}: mean cost {cost:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
