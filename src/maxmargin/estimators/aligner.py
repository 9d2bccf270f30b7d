"""`Aligner`: learn a substitution matrix and gap penalties, and align pairs of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin.checks import check_number
from maxmargin.estimators.argument_types import (
    Callbacks,
    ExampleWeights,
    PathLike,
    RandomState,
    RegularizerLike,
    SolverLike,
)
from maxmargin.estimators.native import NativeEstimator
from maxmargin.estimators.prior_mean import PriorMean
from maxmargin.io.alignment_forms import pairs_to_rows
from maxmargin.io.substitution import blosum62, integer_scores, write_substitution
from maxmargin.io.text import PathOrFile
from maxmargin.regularizers import make_regularizer
from maxmargin.structures.alignment import Alignment
from maxmargin.structures.alignment_features import END_NAMES
from maxmargin.structures.alignment_sequences import (
    Ranked,
    check_rows,
    listed,
    paired,
    parse_alignment,
)
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.types import Alignments, Pairs, SubstitutionPrior

__all__ = ["Aligner", "SubstitutionMatrix", "match_counts"]

#: Gaps that go with BLOSUM62 where nothing else is said: of the first and of a further residue.
BLOSUM_GAPS = (-11.0, -1.0)


class SubstitutionMatrix(NamedTuple):
    """Scores of matches.

    Attributes
    ----------
    alphabet : str
        The letters of rows and columns.
    scores : ndarray of shape (letters, letters)
        What a match of two letters scores.
    """

    alphabet: str
    scores: NDArray[np.float64]


class Aligner(NativeEstimator[Pairs, Alignments]):
    """Alignments of pairs of sequences by a learned substitution matrix and learned gaps.

    Trained on aligned pairs, it minimises ½‖w‖² + C Σ_i max over alignments of (loss + w·f) - w·f
    of the true alignment. Trained with decoys, it makes the homolog of each native sequence score
    higher than the best alignments with its decoys (section 5.4 of the SVM-struct paper).

    Parameters
    ----------
    alphabet : str or None
        "protein", "dna", "rna", or the characters themselves; None: those of the training data.
    mode : {"global", "local", "semiglobal"}
        Whether unmatched ends are paid for.
    gaps : {"affine", "linear"}
        A weight for the first residue of a gap and one for each further, or one for all.
    substitution : {"symmetric", "free", "identity"} or int array
        Which pairs of letters share a weight; see `Alignment`.
    position : {"product", "difference", "bilinear"} or None
        How features of residues score their matches; see `Alignment`.
    free_ends : tuple of str
        Of "start1", "start2", "end1", "end2": what is free in semiglobal alignments.
    loss : {"matches", "residues"}
        The share of true matches that are missed, or of residues with a wrong partner.
    homolog : {"fixed", "free"}
        With decoys: whether the homolog counts with its given alignment alone, as in the paper.
    unknown : str or None
        A letter of the alphabet as which others are read; None refuses them.
    prior : None, "blosum62" or tuple (alphabet, matrix, gap open, gap extend)
        Weights that are known beforehand: ½‖w - m‖² takes the place of ½‖w‖². "blosum62" comes
        with the gaps -11 and -1. A weight that stands for several entries gets their mean, one
        whose letters the prior does not have 0.
    prior_scale : float
        By what the prior's scores are multiplied: losses are shares, so that a prior with large
        scores is worth many examples.
    solver, C, C_scale, regularizer, gap, max_passes, time_limit, dtype, n_jobs, warm_start, verbose
        See `StructuralSVM`.
    random_state, callbacks, checkpoint, resume
        See `StructuralSVM`.

    Attributes
    ----------
    substitution_matrix_ : SubstitutionMatrix
        Alphabet and scores of matches.
    gap_open_, gap_extend_ : float
        Scores of the first and of each further residue of a gap.
    position_scores_ : ndarray or None
        Weights of features of residues.

    Examples
    --------
    >>> from maxmargin import Aligner
    >>> X = [("ACGT", "ACT"), ("GATTACA", "GTACA"), ("CCGA", "CGA")]
    >>> model = Aligner("dna", C=10.0).fit(X, ["MM1M", "M11MMMM", "1MMM"])
    >>> model.align([("ACGGT", "ACT")])
    [('ACGGT', 'AC--T')]
    >>> model.score(X, ["MM1M", "M11MMMM", "1MMM"])
    1.0
    """

    kind: ClassVar[str] = "alignment"
    structure_type: ClassVar[Any] = Alignment

    def __init__(
        self,
        alphabet: str | None = None,
        *,
        mode: str = "global",
        gaps: str = "affine",
        substitution: str | ArrayLike = "symmetric",
        position: str | None = None,
        free_ends: Sequence[str] = END_NAMES,
        loss: str = "matches",
        homolog: str = "fixed",
        unknown: str | None = None,
        prior: SubstitutionPrior = None,
        prior_scale: float = 1.0,
        solver: SolverLike = "sdm",
        C: float = 1.0,
        C_scale: str = "sum",
        regularizer: RegularizerLike = None,
        gap: float = 0.01,
        max_passes: int | None = None,
        time_limit: float | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: RandomState = None,
        callbacks: Callbacks = None,
        checkpoint: PathLike | None = None,
        resume: bool = False,
    ) -> None:
        super().__init__(
            solver=solver,
            C=C,
            C_scale=C_scale,
            regularizer=regularizer,
            gap=gap,
            max_passes=max_passes,
            time_limit=time_limit,
            dtype=dtype,
            n_jobs=n_jobs,
            warm_start=warm_start,
            verbose=verbose,
            random_state=random_state,
            callbacks=callbacks,
            checkpoint=checkpoint,
            resume=resume,
        )
        self.alphabet = alphabet
        self.mode = mode
        self.gaps = gaps
        self.substitution = substitution
        self.position = position
        self.free_ends = free_ends
        self.loss = loss
        self.homolog = homolog
        self.unknown = unknown
        self.prior = prior
        self.prior_scale = prior_scale

    def _new_structure(self) -> Alignment:
        return Alignment(
            self.alphabet,
            mode=self.mode,
            gaps=self.gaps,
            substitution=self.substitution,
            position=self.position,
            free_ends=self.free_ends,
            loss=self.loss,
            homolog=self.homolog,
            unknown=self.unknown,
        )

    def _regularizer(self, structure: Any) -> Any:
        if self.prior is None:
            return self.regularizer
        mean = prior_weights(structure, self.prior, self.prior_scale)
        return PriorMean(make_regularizer(self.regularizer), mean)

    # --- predictions ---

    def align(self, X: Pairs) -> list[tuple[str, str]]:
        """Return the best alignments as rows with gaps.

        Parameters
        ----------
        X : sequence of pairs
            The inputs. With decoys, the second row is that of the chosen sequence.

        Returns
        -------
        list of (str, str)
            Two rows of the same length for each; ``-`` is a gap.
        """
        X = listed(X, "X", "pairs")
        return [_rows(x, y) for x, y in zip(X, self.predict(X), strict=True)]

    def decision_function(self, X: Pairs) -> NDArray[np.float64]:
        """Return the scores of the best alignments: how similar the sequences are.

        Parameters
        ----------
        X : sequence of pairs
            The inputs.

        Returns
        -------
        ndarray of shape (n_pairs,)
            With decoys, of the best second sequence.
        """
        threads = self._threads()
        scores: NDArray[np.float64]
        _, scores = self.structure_.predict_with_scores(X, self.weights_, threads)
        return scores

    def candidate_scores(self, X: Pairs) -> list[NDArray[np.float64]]:
        """Return the scores of the best alignments with each second sequence.

        Parameters
        ----------
        X : sequence of examples
            Pairs with decoys.

        Returns
        -------
        list of ndarray
            The homolog comes first, then the decoys.
        """
        threads = self._threads()
        found: list[NDArray[np.float64]]
        found = self.structure_.candidate_scores(X, self.weights_, threads)
        return found

    def score(self, X: Pairs, y: Alignments, sample_weight: ExampleWeights = None) -> float:
        """Return the share of the true matches that are found.

        Parameters
        ----------
        X : sequence of pairs
            The inputs.
        y : sequence of alignments
            The true ones. Where a decoy is chosen, no match is found.
        sample_weight : array of shape (n_pairs,), optional
            How much the matches of each pair count.

        Returns
        -------
        float
            From 0 to 1, over all pairs together.
        """
        check_is_fitted(self, "weights_")
        X, y = paired(X, y)
        true = [
            truth.matches if isinstance(truth, Ranked) else _parsed(x, truth, i)
            for i, (x, truth) in enumerate(zip(X, y, strict=True))
        ]
        counts = np.array(match_counts(true, self.predict(X)), dtype=float).reshape(-1, 3)
        weight = sequence_weights(sample_weight, len(X), "pair")
        if weight is None:
            weight = np.ones(len(X))
        total = weight @ counts[:, 1]
        return float(weight @ counts[:, 0] / total) if total > 0 else 1.0

    # --- the model as people see it ---

    @property
    def substitution_matrix_(self) -> SubstitutionMatrix:
        """Alphabet and scores of matches."""
        check_is_fitted(self, "weights_")
        return SubstitutionMatrix(self.structure_.alphabet, self.structure_.matrix(self.weights_))

    @property
    def gap_open_(self) -> float:
        """Score of the first residue of a gap."""
        check_is_fitted(self, "weights_")
        return float(self.structure_.gap_scores(self.weights_)[0])

    @property
    def gap_extend_(self) -> float:
        """Score of each further residue of a gap."""
        check_is_fitted(self, "weights_")
        return float(self.structure_.gap_scores(self.weights_)[1])

    @property
    def position_scores_(self) -> NDArray[np.float64] | None:
        """Weights of features of residues."""
        check_is_fitted(self, "weights_")
        scores: NDArray[np.float64] | None = self.structure_.position_scores(self.weights_)
        return scores

    def write_matrix(self, path: PathOrFile, *, largest: int | None = 20) -> None:
        """Write the substitution matrix as text that BLAST-like tools read.

        Parameters
        ----------
        path : path or binary file
            Where to; "-" is standard output.
        largest : int or None
            The largest absolute value of the integers that are written, since these tools read
            nothing else; comments at the top tell the gaps in the same units. None writes the
            scores as they are, with decimals.
        """
        alphabet, scores = self.substitution_matrix_
        gaps, factor = (self.gap_open_, self.gap_extend_), 1.0
        written: NDArray[Any] = scores
        if largest is not None:
            written, factor = integer_scores(scores, largest)
        comments = [
            f"Learned by maxmargin; scores times {factor:.6g}",
            f"A gap scores {factor * gaps[0]:.6g} for its first residue and {factor * gaps[1]:.6g} "
            "for each further one",
        ]
        write_substitution(path, alphabet, written, comments=comments)

    def text_lines(self) -> Iterator[str]:
        """Give the lines of the substitution matrix as text, with decimals."""
        out = BytesIO()
        self.write_matrix(out, largest=None)
        return iter(out.getvalue().decode().splitlines())

    def describe(self, top: int = 20) -> dict[str, Any]:
        """Say what the model holds; ``maxmargin info`` shows it.

        Parameters
        ----------
        top : int
            How many of the highest and of the lowest scores to list.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        alphabet, scores = self.substitution_matrix_
        structure = self.structure_
        found = {
            **super().describe(top),
            "alphabet": alphabet,
            "mode": structure.mode,
            "gap_open": self.gap_open_,
            "gap_extend": self.gap_extend_,
        }
        if structure.mode == "semiglobal":
            found["free_ends"] = ", ".join(structure.free_ends)
        positions = self.position_scores_
        if positions is not None:
            found["position_scores"] = positions.tolist()
        found["matrix"] = {
            letter: " ".join(f"{score:.3g}" for score in row)
            for letter, row in zip(alphabet, scores, strict=True)
        }
        return found


def match_counts(true: list[Any], predicted: list[Any]) -> list[tuple[int, int, int]]:
    """Count matches.

    Parameters
    ----------
    true : list of array of shape (k, 2)
        The true alignments.
    predicted : list of array or Ranked
        Alignments, or choices among second sequences with theirs.

    Returns
    -------
    list of (int, int, int)
        For each pair the true matches that were predicted, the true ones and the predicted ones.
    """
    counts = []
    for truth, answer in zip(true, predicted, strict=True):
        wrong = isinstance(answer, Ranked) and answer.which != 0
        matches = answer.matches if isinstance(answer, Ranked) else answer
        own = set(map(tuple, np.asarray(truth).tolist()))
        found = set(map(tuple, np.asarray(matches).tolist()))
        counts.append((0 if wrong else len(own & found), len(own), len(found)))
    return counts


def prior_weights(structure: Alignment, prior: Any, scale: float) -> NDArray[np.float64]:
    """Return the weights that a prior stands for.

    Parameters
    ----------
    structure : Alignment
        Prepared.
    prior : "blosum62" or tuple (alphabet, matrix, gap open, gap extend)
        The prior; see `Aligner`.
    scale : float
        What its scores are multiplied by.

    Returns
    -------
    ndarray
        One number for each weight.
    """
    scale = check_number("prior_scale", scale, above=0.0)
    if isinstance(prior, str):
        if prior.lower() != "blosum62":
            raise ValueError(
                f"prior is {prior!r:.60}; expected 'blosum62' or a tuple (alphabet, matrix, gap "
                "open, gap extend)"
            )
        alphabet, matrix = blosum62()
        given: Any = (alphabet, matrix, *BLOSUM_GAPS)
    else:
        given = prior
    if not isinstance(given, tuple | list) or len(given) != 4 or not isinstance(given[0], str):
        raise ValueError(
            "prior must be None, 'blosum62' or a tuple (alphabet, matrix, gap open, gap extend), "
            f"got {prior!r:.60}"
        )
    letters = {letter: k for k, letter in enumerate(given[0])}
    scores = np.asarray(given[1], dtype=np.float64)
    if scores.shape != (len(given[0]),) * 2 or not np.isfinite(scores).all():
        raise ValueError(
            f"the matrix of the prior has the shape {scores.shape}; expected finite numbers for "
            f"the {len(given[0])} letters of its alphabet"
        )
    layout = structure.layout
    assert layout is not None
    assert structure.alphabet is not None
    mean, count = np.zeros(layout.n_weights), np.zeros(layout.n_weights)
    places = [letters.get(letter, -1) for letter in structure.alphabet]
    for (a, b), weight in np.ndenumerate(layout.table):
        if places[a] >= 0 and places[b] >= 0:
            mean[weight] += scores[places[a], places[b]]
            count[weight] += 1
    for gap, value in ((layout.open, given[2]), (layout.extend, given[3])):
        mean[gap] += check_number("a gap of the prior", value)
        count[gap] += 1
    return scale * mean / np.maximum(count, 1)


def _text(sequence: Any) -> str:
    return sequence if isinstance(sequence, str) else str(sequence[0])


def _rows(x: Any, y: Any) -> tuple[str, str]:
    which = y.which if isinstance(y, Ranked) else 0
    second = x[1] if which == 0 else x[2][which - 1]
    matches = y.matches if isinstance(y, Ranked) else y
    return pairs_to_rows(matches, _text(x[0]), _text(second))


def _parsed(x: Any, y: Any, i: int) -> NDArray[np.int32]:
    check_rows(x, y, i)
    return parse_alignment(y, len(_text(x[0])), len(_text(x[1])), f"the alignment of pair {i}")
