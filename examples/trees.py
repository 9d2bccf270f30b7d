"""Learn to parse: a PCFG-like grammar with a large margin, on a sample of the Penn Treebank.

Trains on short sentences with given parts of speech, first with the rules of the grammar alone,
then with what only a discriminative model can use (words and tags at the ends of a constituent, its
length), and parses the test sentences.

    python examples/trees.py

The folder of the data sets is MAXMARGIN_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from maxmargin import Parser, read_trees

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--max-length", type=int, default=15, help="words of a sentence, at most")
    parser.add_argument("--limit", type=int, help="training sentences, at most")
    args = parser.parse_args(argv)
    folder = args.data / "wsj_sample_trees"
    if not folder.is_dir():
        print(f"{folder} is not there; set MAXMARGIN_DATA", file=sys.stderr)
        return 1
    files = (read_trees(folder / f"{name}.mrg.gz") for name in ("train", "test"))
    train, test = ([t for t in trees if len(t.words()) <= args.max_length] for trees in files)
    train = train[: args.limit]
    print(f"{len(train)} training and {len(test)} test sentences")

    rules = Parser(vertical=1, horizontal=None, node_features=None, random_state=0)
    rules.fit(None, train)
    print(f"rules alone:             {rules.evaluate(None, test)}")
    rich = Parser(random_state=0).fit(None, train)
    print(f"with features of nodes:  {rich.evaluate(None, test)}")

    # A sentence that is parsed differently by the two.
    for truth, first, second in zip(test, rules.predict(test), rich.predict(test), strict=True):
        if first != second == truth:
            print(f"\n{' '.join(truth.words())}\n  rules:    {first}\n  features: {second}")
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
