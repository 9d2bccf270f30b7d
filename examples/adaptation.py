"""Adapt a tagger of CORA's references to those of another collection, with a few examples of it.

Reads ``citations_cora`` and ``citations_fluxcim_cs`` from the folder MAXMARGIN_DATA (default:
``../shared/data``), trains on CORA, and compares three models on references of FLUX-CiM: that of
CORA, one trained from nothing on a few references of FLUX-CiM, and one trained on the same few
with the model of CORA as its prior.

Run it: ``python examples/adaptation.py --examples 20``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from maxmargin import SequenceTagger, read_columns


def read(path: Path) -> tuple[list[Any], list[Any]]:
    """Return the tokens and the fields of references."""
    rows = read_columns(path).rows()
    X = [[[token] for token, _ in reference] for reference in rows]
    return X, [[field for _, field in reference] for reference in rows]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=20, help="references of the new collection")
    args = parser.parse_args(argv)
    folder = Path(os.environ.get("MAXMARGIN_DATA", "../shared/data"))
    X, y = read(folder / "citations_fluxcim_cs" / "test.tsv.gz")
    few, rest = (X[: args.examples], y[: args.examples]), (X[200:], y[200:])
    common: dict[str, Any] = {"template": "ner@1", "random_state": 0}
    source = SequenceTagger(C=0.3, **common).fit(*read(folder / "citations_cora" / "train.tsv.gz"))
    nothing = SequenceTagger(C=0.3, **common).fit(*few)
    adapted = SequenceTagger(C=1.0, prior=source, prior_precision=10.0, **common).fit(*few)
    print(f"the model of CORA: {100 * source.score(*rest):.1f} % of the tokens are right")
    print(f"from nothing with {args.examples} references: {100 * nothing.score(*rest):.1f} %")
    print(f"adapted with the same: {100 * adapted.score(*rest):.1f} %")
    print(adapted.prior_match_)
    return 0


if __name__ == "__main__":
    sys.exit(main())
