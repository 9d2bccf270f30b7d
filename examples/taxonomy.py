"""Newsgroups in their taxonomy: learn from label paths, and answer classes that were never seen.

Trains on the messages of 20 newsgroups, whose names are paths (rec/sport/hockey), and prints how
often the class and its parent are right, and the tree loss. Then it leaves some groups out of the
training and looks where their messages are put.

    python examples/taxonomy.py

The folder of the data sets is MAXMARGIN_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from maxmargin import TaxonomySVM
from maxmargin.io.labelled_text import read_labelled_text
from maxmargin.structures.taxonomy_scores import taxonomy_figures

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))

LEFT_OUT = ("rec/sport/hockey", "comp/sys/mac/hardware", "talk/politics/guns")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, help="messages of each file, at most about so many")
    args = parser.parse_args(argv)
    folder = args.data / "newsgroups_taxonomy"
    if not folder.is_dir():
        print(f"{folder} is not there; set MAXMARGIN_DATA", file=sys.stderr)
        return 1
    (texts, labels), (new_texts, truths) = (
        read_labelled_text(folder / f"{part}.txt.gz") for part in ("train", "test")
    )
    assert labels is not None
    assert truths is not None
    step = max(1, len(texts) // args.limit) if args.limit else 1
    texts, labels, new_texts, truths = (x[::step] for x in (texts, labels, new_texts, truths))

    model = TaxonomySVM(C=10.0, features="words", random_state=0).fit(texts, labels)
    print(f"{len(texts)} messages, {len(model.classes_)} classes, {len(model.nodes_)} nodes")
    figures = taxonomy_figures(model.graph_, truths, model.predict(new_texts))
    print(
        f"class right {100 * figures.accuracy:.1f} %, parent right "
        f"{100 * figures.parent_accuracy:.1f} %, tree loss "
        f"{figures.tree_loss * figures.height:.2f} of {figures.height}"
    )
    words = model.describe(5)["strongest"]
    for node in ("rec", "rec/sport", "rec/sport/hockey"):
        if node in words:
            print(f"  {node}: {', '.join(word for word, _ in words[node])}")

    # The taxonomy knows all groups; training sees none of these three.
    seen = [k for k, label in enumerate(labels) if label not in LEFT_OUT]
    model = TaxonomySVM(sorted({*labels, *truths}), C=10.0, features="words", random_state=0)
    model.fit([texts[k] for k in seen], [labels[k] for k in seen])
    for group in LEFT_OUT:
        messages = [text for text, y in zip(new_texts, truths, strict=True) if y == group]
        if not messages:
            continue
        found = Counter(model.predict(messages).tolist()).most_common(3)
        where = ", ".join(f"{y} {100 * n / len(messages):.0f} %" for y, n in found)
        print(f"{group}, never seen, is taken for: {where}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
