"""Learn to align proteins from pairs that TM-align has aligned by their structures.

Reads ``protein_tmalign`` of the data folder (MAXMARGIN_DATA, or ../shared/data), trains an aligner
that starts from BLOSUM62, prints an alignment, and writes the learned matrix as a picture.

Run it: ``python examples/alignment.py [matrix.svg]``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from maxmargin import Aligner
from maxmargin.io.aligned_pairs import read_aligned_pairs
from maxmargin.io.alignment_forms import pairs_to_rows
from maxmargin.report.matrix_picture import save_matrix_picture


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    folder = Path(os.environ.get("MAXMARGIN_DATA", "../shared/data")) / "protein_tmalign"
    files = [folder / f"{name}_aligned.tsv.gz" for name in ("train", "test")]
    train, test = (read_aligned_pairs(file, alignments=True) for file in files)
    (X, Y), (X_test, Y_test) = (
        ([(p.sequence1, p.sequence2) for p in pairs], [p.alignment for p in pairs])
        for pairs in (train, test)
    )
    model = Aligner("protein", prior="blosum62", prior_scale=0.1, C=0.001, random_state=0).fit(X, Y)
    print(f"{len(X)} pairs, {model.certificate_}")
    print(f"matches found: {100 * model.score(X, Y):.1f} % of the training pairs")
    print(f"               {100 * model.score(X_test, Y_test):.1f} % of the test pairs")

    pair, scores = test[0], model.decision_function(X_test[:1])
    print(f"\n{pair.name1} and {pair.name2}, score {scores[0]:.2f}; by TM-align and by the model:")
    for matches in (pair.alignment, model.predict(X_test[:1])[0]):
        for row in pairs_to_rows(matches, pair.sequence1, pair.sequence2):
            print(row[:90])
        print()
    print(f"a gap: {model.gap_open_:.3f} to open, {model.gap_extend_:.3f} to extend")
    if arguments:
        save_matrix_picture(arguments[0], *model.substitution_matrix_, title="learned scores")
    return 0


if __name__ == "__main__":
    sys.exit(main())
