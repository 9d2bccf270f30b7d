"""The task ``alignment``: pairs of sequences in, alignments out (`maxmargin.Aligner`)."""

from __future__ import annotations

from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, ClassVar

from maxmargin.cli.options import number
from maxmargin.cli.tasks.base import Examples, Task
from maxmargin.io.compression import plain_name

if TYPE_CHECKING:
    import argparse

    from maxmargin.estimators.aligner import Aligner
    from maxmargin.io.aligned_pairs import AlignedPair

__all__ = ["AlignmentTask"]

_MODES = ("global", "local", "semiglobal")
_ENDS = ("start1", "start2", "end1", "end2")
_EPILOG = """\
TRAIN has a pair a line, tab-separated: the two sequences, with their names before them if they have
any, and an alignment of the letters M, 1 and 2 behind them; or two rows with gaps and no such
alignment. TM-align's results are of this kind. maxmargin tag (or predict) takes such a file with or
without alignments, or FASTA, in which each two records are a pair. maxmargin info MODEL --text FILE
writes the substitution matrix as BLAST-like tools read it.

example:
  maxmargin train --task alignment pairs.tsv -m model.mm --mode global -C 0.1
  maxmargin predict -m model.mm sequences.fasta
"""


class AlignmentTask(Task):
    """Alignments of pairs of sequences."""

    name: ClassVar[str] = "alignment"
    items: ClassVar[str] = "pairs"
    default_C: ClassVar[float] = 0.1
    epilog: ClassVar[str] = _EPILOG

    def __init__(self) -> None:
        # The training file and the decoys of its pairs: examples of training alone have them.
        self._train: Any = None
        self._decoys: dict[str, list[str]] = {}

    def add_options(self, group: Any) -> None:
        """Add the options of the task."""
        group.add_argument(
            "--mode", choices=_MODES, default="global", help="whether ends are paid for"
        )
        group.add_argument(
            "--free-ends",
            metavar="END,...",
            help=f"of semiglobal alignments: some of {', '.join(_ENDS)} (default: all)",
        )
        group.add_argument(
            "--gaps",
            choices=("affine", "linear"),
            default="affine",
            help="weights for the first and for further residues of a gap, or one for all",
        )
        group.add_argument(
            "--alphabet",
            metavar="LETTERS",
            default="protein",
            help="protein, dna, rna, or the letters themselves (default: protein)",
        )
        group.add_argument(
            "--unknown", metavar="LETTER", help="read letters outside of the alphabet as this one"
        )
        group.add_argument(
            "--substitution",
            choices=("symmetric", "free", "identity"),
            default="symmetric",
            help="a weight for two letters in either order, for each ordered pair, or two in all",
        )
        group.add_argument(
            "--loss",
            choices=("matches", "residues"),
            default="matches",
            help="the share of matches missed, or of residues with a wrong partner",
        )
        group.add_argument(
            "--prior", choices=("blosum62",), help="weights are drawn to this matrix, not to zero"
        )
        group.add_argument(
            "--prior-scale",
            type=number(0, open_low=True),
            default=0.1,
            metavar="NUMBER",
            help="the prior's scores times this (default: 0.1)",
        )
        group.add_argument(
            "--decoys",
            metavar="FILE",
            help="pairs of unrelated sequences: a second sequence must score higher than those "
            "that are here paired with the first one",
        )
        group.add_argument(
            "--homolog",
            choices=("fixed", "free"),
            default="fixed",
            help="with decoys: whether other alignments of the true pair are wrong, too (free)",
        )

    def check(self, options: argparse.Namespace) -> None:
        """Refuse free ends that there are not, and an odd alphabet."""
        from maxmargin.structures.alignment import Alignment

        if options.free_ends is not None and options.mode != "semiglobal":
            raise ValueError("--free-ends is for --mode semiglobal")
        alphabet = Alignment(
            options.alphabet, free_ends=_free_ends(options), unknown=options.unknown
        ).alphabet
        if options.unknown is not None and options.unknown not in (alphabet or ""):
            raise ValueError(f"--unknown {options.unknown}: is not in the alphabet {alphabet}")

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return the alphabet and the mode."""
        from maxmargin.structures.alignment_sequences import ALPHABETS

        self._train = options.train
        reading = {
            "alphabet": ALPHABETS.get(options.alphabet, options.alphabet),
            "unknown": options.unknown,
            "mode": options.mode,
        }
        if options.decoys is not None:
            for pair in self._pairs(options.decoys, reading, truths=False):
                for one, other in (
                    (pair.sequence1, pair.sequence2),
                    (pair.sequence2, pair.sequence1),
                ):
                    self._decoys.setdefault(one, []).append(other)
        return reading

    def read(self, path: Any, reading: dict[str, Any], *, truths: bool) -> Examples:
        """Read a file of pairs, or FASTA."""
        pairs = self._pairs(path, reading, truths=truths)
        X: list[Any] = [(pair.sequence1, pair.sequence2) for pair in pairs]
        if self._decoys and path == self._train:
            X = [(*x, self._decoys[x[0]]) if x[0] in self._decoys else x for x in X]
            if all(len(x) == 2 for x in X):
                raise ValueError(
                    f"{path}: no first sequence of a pair is in the file of decoys; expected pairs "
                    "of it with unrelated sequences there"
                )
        y = [pair.alignment for pair in pairs] if truths else None
        return Examples(X, y, (pairs, reading.get("mode")))

    def _pairs(self, path: Any, reading: dict[str, Any], *, truths: bool) -> list[AlignedPair]:
        from maxmargin.errors import FileFormatError
        from maxmargin.io.aligned_pairs import AlignedPair, read_aligned_pairs
        from maxmargin.io.fasta import read_fasta
        from maxmargin.io.text import name_of, read_bytes
        from maxmargin.printable import quoted

        source = name_of(path)
        data = read_bytes(path)
        file = BytesIO(data)
        # For messages; it is not compressed any more, whatever its name says.
        file.name = plain_name(source)
        if data.lstrip()[:1] == b">":
            if truths:
                raise FileFormatError(
                    f"{source}: is FASTA, which has no alignments; expected a file of aligned pairs"
                )
            records = read_fasta(file)
            if len(records) % 2 == 1:
                raise FileFormatError(
                    f"{source}: has {len(records)} sequences; expected an even number, as each two "
                    "are a pair"
                )
            pairs = [
                AlignedPair(first[0], second[0], first[1], second[1])
                for first, second in zip(records[::2], records[1::2], strict=True)
            ]
        else:
            pairs = read_aligned_pairs(file, alignments=truths)
        alphabet, unknown = reading.get("alphabet"), reading.get("unknown")
        if isinstance(alphabet, str) and unknown is None:
            known = set(alphabet)
            for k, pair in enumerate(pairs):
                for which, sequence in enumerate((pair.sequence1, pair.sequence2), 1):
                    if known.issuperset(sequence):
                        continue
                    at = next(i for i, letter in enumerate(sequence) if letter not in known)
                    place = f"line {pair.line}" if pair.line else f"pair {k + 1}"
                    raise FileFormatError(
                        f"{source}: {place}: found {quoted(sequence[at])} at position {at + 1} of "
                        f"sequence {which}; expected letters of the alphabet {alphabet} (train "
                        "with --unknown X to read others as X)"
                    )
        return pairs

    def make(self, options: argparse.Namespace, **common: Any) -> Aligner:
        """Return the estimator."""
        from maxmargin.estimators.aligner import Aligner

        return Aligner(
            options.alphabet,
            mode=options.mode,
            gaps=options.gaps,
            substitution=options.substitution,
            free_ends=_free_ends(options),
            loss=options.loss,
            homolog=options.homolog,
            unknown=options.unknown,
            prior=options.prior,
            prior_scale=options.prior_scale,
            **common,
        )

    def write(self, out: IO[bytes], examples: Examples, predicted: Any) -> None:
        """Write alignments in the usual text form."""
        import dataclasses

        from maxmargin.io.alignment_text import write_alignment_texts

        pairs, mode = examples.raw
        found = [
            dataclasses.replace(pair, alignment=matches)
            for pair, matches in zip(pairs, predicted, strict=True)
        ]
        write_alignment_texts(out, found, local=mode == "local")

    def score(self, examples: Examples, predicted: Any) -> dict[str, Any]:
        """Return the shares of true matches found, and of found ones that are true."""
        from maxmargin.estimators.aligner import match_counts

        counts = match_counts(examples.y, predicted)
        right, true, found = (sum(column) for column in zip(*counts, strict=True))
        return {
            "match_accuracy": right / true if true else 1.0,
            "match_precision": right / found if found else 1.0,
            "n_matches": true,
        }


def _free_ends(options: argparse.Namespace) -> tuple[str, ...]:
    if options.free_ends is None:
        return _ENDS
    return tuple(end.strip() for end in options.free_ends.split(",") if end.strip())
