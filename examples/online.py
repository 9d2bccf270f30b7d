"""Learning from a stream, correcting an example and forgetting one, on chunks of CoNLL-2000.

    python examples/online.py

The folder of the data sets is MAXMARGIN_DATA, or ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from maxmargin import SequenceTagger
from maxmargin.io.columns import read_columns

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path(__file__).parents[2] / "shared" / "data"))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=2000, help="how long the stream is")
    args = parser.parse_args(argv)
    file = DATA / "conll2000" / "train.tsv.gz"
    if not file.exists():
        print(f"{file} is not there; set MAXMARGIN_DATA", file=sys.stderr)
        return 2
    rows = read_columns(file).rows()[: args.sentences + 500]
    X = [[row[:2] for row in sentence] for sentence in rows]
    y = [[row[2] for row in sentence] for sentence in rows]
    stream, later = slice(0, args.sentences), slice(args.sentences, None)

    tagger = SequenceTagger(C=0.1, template="chunking", random_state=0)
    tagger.partial_fit(X[:100], y[:100])
    for k in range(100, args.sentences):
        tagger.learn_one(X[k], y[k])
        if k + 1 in (500, 1000, args.sentences):
            print(f"{k + 1:5} sentences: accuracy {tagger.score(X[later], y[later]):.4f}")
    print(f"one pass:  {tagger.certificate_}")
    tagger.refine(3)
    print(f"four:      {tagger.certificate_}, accuracy {tagger.score(X[later], y[later]):.4f}")

    wrong = 7  # somebody corrects a sentence, and somebody else takes one back
    tagger.forget([wrong]).learn_one(X[wrong], y[wrong], id=wrong)
    tagger.forget([11])
    print(f"{tagger.n_examples_} sentences are left: {tagger.certificate_}")
    batch = SequenceTagger(C=0.1, template="chunking", random_state=0)
    batch.fit(X[stream], y[stream])
    print(f"batch:     {batch.certificate_}, accuracy {batch.score(X[later], y[later]):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
