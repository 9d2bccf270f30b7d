"""`Alignment`: alignments of two sequences as a structure (section 5.4 of the SVM-struct paper).

The joint features of a pair and an alignment are counts of its operations: how often which letters
are matched, how many gaps there are and how long, and if asked sums of features of the matched
positions. The argmax is the dynamic programme of Needleman and Wunsch, or Smith and Waterman, with
Gotoh's affine gaps, in native code (``native/alignment_table.hpp``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _native
from maxmargin.checks import check_choice
from maxmargin.memory import require_memory
from maxmargin.structures.alignment_features import (
    END_NAMES,
    MODES,
    POSITIONS,
    AlignmentLayout,
    loss_count,
    match_table,
)
from maxmargin.structures.alignment_sequences import (
    ALPHABETS,
    EncodedPairs,
    Matches,
    Ranked,
    check_rows,
    encode_pairs,
    given_matches,
    learn_alphabet,
    listed,
    paired,
    parse_alignment,
)
from maxmargin.structures.base import Structure
from maxmargin.structures.chain_options import sequence_weights
from maxmargin.structures.native import PreparedProblem

__all__ = ["Alignment"]

LOSSES = ("matches", "residues")
HOMOLOGS = ("fixed", "free")


class Alignment(Structure):
    """Alignments of pairs of sequences, and choices among several second sequences.

    An input is a pair (first, second) of texts. With decoys it is (first, second, [decoy, ...]),
    and the output says which second sequence is the homolog, with the alignment. A sequence may
    also be (text, array) with a row of features for each character.

    Parameters
    ----------
    alphabet : str or None
        "protein", "dna", "rna", or the characters themselves; None: those of the training data.
    mode : {"global", "local", "semiglobal"}
        Whether the ends of the sequences are paid for. In local alignments they are not; nothing
        matched scores 0. In semiglobal ones ``free_ends`` are not.
    gaps : {"affine", "linear"}
        A gap of k residues scores open + (k - 1) extend, or k times one weight.
    substitution : {"symmetric", "free", "identity"} or int array of shape (letters, letters)
        Weights of matches: one for two letters in either order, one for each ordered pair, two in
        all (the same letter or not), or the number of the weight for each ordered pair.
    position : {"product", "difference", "bilinear"} or None
        How features p, q of two residues score their match: Σ v_k p_k q_k, Σ v_k abs(p_k - q_k) or
        p·V q with a matrix V. None: sequences have no such features.
    free_ends : tuple of str
        Of "start1", "start2", "end1" and "end2": ends of the first or second sequence that are
        free in semiglobal alignments. Where both sequences begin (or end) freely, the longer
        overhang is free.
    loss : {"matches", "residues"}
        The share of the true matches that are missed; or the number of residues of both sequences
        with a wrong partner (or with one where the truth has none), divided by the number of those
        that have one.
    homolog : {"fixed", "free"}
        With decoys: whether the homolog counts with its given alignment alone, as in the paper
        (every output with a decoy has the loss 1), or other alignments with it are outputs too,
        with the loss above.
    unknown : str or None
        A letter of the alphabet as which characters outside of it are read; None refuses them.
    """

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
    ) -> None:
        check_choice("mode", mode, MODES)
        check_choice("gaps", gaps, ("affine", "linear"))
        check_choice("loss", loss, LOSSES)
        check_choice("homolog", homolog, HOMOLOGS)
        if position is not None:
            check_choice("position", position, POSITIONS)
        if not isinstance(free_ends, Iterable):
            raise TypeError(f"free_ends is {free_ends!r}; expected some of {', '.join(END_NAMES)}")
        ends = (free_ends,) if isinstance(free_ends, str) else tuple(free_ends)
        for end in ends:
            check_choice("an end of free_ends", end, END_NAMES)
        if alphabet is not None:
            alphabet = _checked_alphabet(ALPHABETS.get(alphabet, alphabet))
        if unknown is not None and (not isinstance(unknown, str) or len(unknown) != 1):
            raise ValueError(f"unknown is {unknown!r}; expected one letter of the alphabet")
        self.alphabet = alphabet
        self.mode, self.gaps, self.substitution = mode, gaps, substitution
        self.position, self.free_ends = position, ends
        self.loss_kind, self.homolog, self.unknown = loss, homolog, unknown
        self.layout: AlignmentLayout | None = None
        self._largest = 0
        if alphabet is not None and position is None:
            self._set_layout(0)

    # --- what training and prediction need ---

    @property
    def n_features(self) -> int | None:  # type: ignore[override]
        """Number of weights, once the alphabet is known."""
        return None if self.layout is None else self.layout.n_weights

    def prepare(self, X: Any, Y: Any) -> None:
        """Learn the alphabet, if none was given, and the number of features of a residue."""
        X = list(X)
        if self.alphabet is None:
            self.alphabet = _checked_alphabet(learn_alphabet(X))
        if self.layout is None:
            encoded = encode_pairs(X[:1], self.alphabet, self._unknown(), None)
            n_position = 0 if encoded.position is None else encoded.position.shape[1]
            if (n_position > 0) != (self.position is not None):
                raise ValueError(
                    f"the residues of the first pair have {n_position} features, but position is "
                    f"{self.position!r}"
                )
            self._set_layout(n_position)

    def prepare_problem(
        self, X: Any, Y: Any, *, dtype: Any, sample_weight: Any = None
    ) -> PreparedProblem:
        """Learn the alphabet and make the training problem.

        Parameters
        ----------
        X : sequence of examples
            Pairs, or pairs with decoys.
        Y : sequence of alignments
            Of the first with the second sequence of each.
        dtype : "float32" or "float64"
            Type of the weights.
        sample_weight : array, optional
            A factor of C for each example.

        Returns
        -------
        PreparedProblem
            The native problem, and its parts.
        """
        X, Y = paired(X, Y)
        self.prepare(X, Y)
        arguments = self._truths(X, Y, sample_weight)
        return PreparedProblem(_native.AlignmentProblem(**arguments), arguments)

    def make_problem(self, X: Any, Y: Any, sample_weight: Any = None) -> _native.AlignmentProblem:
        """Make a native problem of more pairs, with the alphabet that is known.

        Parameters
        ----------
        X, Y, sample_weight
            As for `prepare_problem`.
        """
        return _native.AlignmentProblem(**self._truths(*paired(X, Y), sample_weight))

    def _truths(self, X: Any, Y: Any, sample_weight: Any) -> dict[str, Any]:
        encoded = self._encode(X)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            check_rows(x, y, i)
        arguments = self._arguments(encoded, Y)
        arguments["example_weight"] = sequence_weights(sample_weight, len(X), "pair")
        return arguments

    def memory_needed(self, dtype: Any) -> tuple[str, int]:
        """Return what the weights and the largest table need."""
        layout = self._layout()
        name = f"the weights ({layout.n_weights}) and the table of the longest pair"
        return name, 3 * 8 * layout.n_weights + self._largest

    def native_weights(self, weights: Any) -> NDArray[Any]:
        """Return the weights as native code takes them."""
        kept = np.ascontiguousarray(weights)
        if kept.shape != (self._layout().n_weights,) or kept.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"the weights are of the shape {kept.shape} and type {kept.dtype}; expected "
                f"{self._layout().n_weights} floats"
            )
        return kept

    def predict(self, X: Any, weights: Any, n_jobs: int = 1) -> list[Any]:
        """Return the best alignment of each pair, or the best `Ranked` one with decoys."""
        return self.predict_with_scores(X, weights, n_jobs)[0]

    def predict_with_scores(
        self, X: Any, weights: Any, n_jobs: int = 1
    ) -> tuple[list[Any], NDArray[np.float64]]:
        """Return the best outputs and their scores.

        Parameters
        ----------
        X : sequence of examples
            The inputs.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        outputs : list
            As `predict` returns them.
        scores : ndarray
            One for each.
        """
        X = listed(X, "X", "pairs")
        if not X:
            return [], np.zeros(0)
        encoded, which, ends, flat, scores = self._best(X, weights, n_jobs)
        return self._outputs(encoded, which, ends, flat), scores

    def candidate_scores(self, X: Any, weights: Any, n_jobs: int = 1) -> list[NDArray[np.float64]]:
        """Return the score of the best alignment with each second sequence of each example.

        Parameters
        ----------
        X : sequence of examples
            The inputs.
        weights : array
            The native weights.
        n_jobs : int
            Number of threads.

        Returns
        -------
        list of ndarray
            The homolog comes first, then the decoys.
        """
        X = listed(X, "X", "pairs")
        if not X:
            return []
        encoded = self._encode(X)
        problem = _native.AlignmentProblem(**self._arguments(encoded, None))
        scores = problem.candidate_scores(self.native_weights(weights), n_jobs)
        return np.split(scores, encoded.candidates_from[1:-1])

    def score_outputs(self, X: Any, Y: Any, weights: Any, n_jobs: int = 1) -> NDArray[np.float64]:
        """Return the scores of given outputs."""
        # A decoy that was chosen stands where the homolog would.
        pairs = []
        outputs = []
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            if isinstance(y, Ranked) and y.which > 0:
                if not 1 <= y.which <= len(x[2]):
                    raise ValueError(f"output {i} is decoy {y.which - 1}, of {len(x[2])}")
                pairs.append((x[0], x[2][y.which - 1]))
            else:
                pairs.append(tuple(x[:2]))
            outputs.append(y.matches if isinstance(y, Ranked) else y)
        problem = _native.AlignmentProblem(**self._arguments(self._encode(pairs), outputs))
        return problem.score(self.native_weights(weights), n_jobs)

    # --- one example ---

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        """Return the counts of the operations of an alignment.

        Parameters
        ----------
        x : tuple
            An example.
        y : alignment or Ranked
            An output.

        Returns
        -------
        ndarray of float64
            One entry for each weight.
        """
        which = y.which if isinstance(y, Ranked) else 0
        matches = y.matches if isinstance(y, Ranked) else y
        pair = (x[0], x[1] if which == 0 else x[2][which - 1])
        encoded = self._encode([pair])
        n, m = encoded.lengths[0]
        parsed = parse_alignment(matches, n, m)
        p: list[Any] = [None, None]
        if encoded.position is not None:
            p = np.split(encoded.position, [n])
        return self._layout().features(encoded.letters[:n], encoded.letters[n:], parsed, p[0], p[1])

    def loss(self, y: Any, y_hat: Any) -> float:
        """Return the share of matches or residues that are wrong; 1 for a decoy."""
        if isinstance(y_hat, Ranked) and y_hat.which != 0:
            return 1.0
        true, found = (one.matches if isinstance(one, Ranked) else one for one in (y, y_hat))
        wrong, size = loss_count(self.loss_kind, given_matches(true), given_matches(found))
        return wrong / max(size, 1)

    def argmax(self, x: Any, w: NDArray[np.float64], truth: Any = None) -> Any:
        """Return the best output; with a truth, of score plus loss."""
        weights = np.ascontiguousarray(w, dtype=np.float64)
        if truth is None:
            return self.predict([x], weights, 1)[0]
        encoded = self._encode([x])
        problem = _native.AlignmentProblem(**self._arguments(encoded, [truth]))
        which, ends, flat, _ = problem.augmented(self.native_weights(weights), 1.0)
        return self._outputs(encoded, which, ends, flat)[0]

    # --- the weights as people see them ---

    def matrix(self, weights: Any) -> NDArray[np.float64]:
        """Return the substitution matrix.

        Parameters
        ----------
        weights : array
            The weights.

        Returns
        -------
        ndarray of shape (letters, letters)
            Scores of matches.
        """
        return np.asarray(weights, dtype=np.float64)[self._layout().table]

    def gap_scores(self, weights: Any) -> tuple[float, float]:
        """Return the scores of the first and of a further residue of a gap.

        Parameters
        ----------
        weights : array
            The weights.

        Returns
        -------
        tuple of float
            The same twice, if gaps are linear.
        """
        layout = self._layout()
        return float(weights[layout.open]), float(weights[layout.extend])

    def position_scores(self, weights: Any) -> NDArray[np.float64] | None:
        """Return the weights of features of positions; a matrix, if they are bilinear.

        Parameters
        ----------
        weights : array
            The weights.

        Returns
        -------
        ndarray or None
            None where there are none.
        """
        layout = self._layout()
        if self.position is None:
            return None
        own = np.asarray(weights, dtype=np.float64)[layout.position_from :]
        d = layout.n_position
        return own.reshape(d, d) if self.position == "bilinear" else own

    # --- model files ---

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a model file holds of it."""
        layout = self._layout()
        by_name = isinstance(self.substitution, str)
        meta = {
            "alphabet": self.alphabet,
            "mode": self.mode,
            "gaps": self.gaps,
            "substitution": self.substitution if by_name else "table",
            "position": self.position,
            "n_position": layout.n_position,
            "free_ends": list(self.free_ends),
            "loss": self.loss_kind,
            "homolog": self.homolog,
            "unknown": self.unknown,
        }
        return meta, {} if by_name else {"table": layout.table}

    @classmethod
    def restore(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Alignment:
        """Make a structure of what a model file holds."""
        alphabet = meta["alphabet"]
        if not isinstance(alphabet, str):
            raise TypeError("the alphabet is no text")
        substitution: Any = meta["substitution"]
        if substitution == "table":
            substitution = arrays["table"]
        elif not isinstance(substitution, str):
            raise TypeError("substitution is no text")
        if not isinstance(meta["free_ends"], list):
            raise TypeError("free_ends is no list")
        n_position = meta["n_position"]
        if isinstance(n_position, bool) or not isinstance(n_position, int):
            raise TypeError("n_position is no integer")
        if not 0 <= n_position < 65536 or (n_position > 0) != (meta["position"] is not None):
            raise ValueError(f"n_position is {n_position}, with position {meta['position']!r:.40}")
        made = cls(
            _checked_alphabet(alphabet),
            mode=meta["mode"],
            gaps=meta["gaps"],
            substitution=substitution,
            position=meta["position"],
            free_ends=meta["free_ends"],
            loss=meta["loss"],
            homolog=meta["homolog"],
            unknown=meta["unknown"],
        )
        made._unknown()
        made._set_layout(n_position)
        return made

    # --- helpers ---

    def _set_layout(self, n_position: int) -> None:
        assert self.alphabet is not None
        table = match_table(self.substitution, len(self.alphabet))
        affine = self.gaps == "affine"
        self.layout = AlignmentLayout(
            self.mode, self.free_ends, affine, table, self.position, n_position
        )

    def _layout(self) -> AlignmentLayout:
        if self.layout is None:
            raise ValueError("the alphabet is not known before training: give alphabet, or fit")
        return self.layout

    def _unknown(self) -> str | None:
        assert self.alphabet is not None
        if self.unknown is not None and self.unknown not in self.alphabet:
            raise ValueError(f"unknown is {self.unknown!r}, which is not in the alphabet")
        return self.unknown

    def _encode(self, X: list[Any]) -> EncodedPairs:
        layout = self._layout()
        assert self.alphabet is not None
        encoded = encode_pairs(X, self.alphabet, self._unknown(), layout.n_position)
        self._largest = encoded.largest
        if encoded.largest > 1_000_000:  # of less, no system runs short
            require_memory(
                f"the table of the longest pair ({encoded.largest} cells)",
                encoded.largest,
                advice="cut the sequences into shorter ones",
            )
        return encoded

    def _arguments(self, encoded: EncodedPairs, Y: list[Any] | None) -> dict[str, Any]:
        """Return the arguments of the native problem; without Y, nothing is matched."""
        layout = self._layout()
        truths = [np.zeros((0, 2), dtype=np.int32)] * len(encoded.lengths)
        if Y is not None:
            truths = [
                self._truth(y, i, *lengths)
                for i, (y, lengths) in enumerate(zip(Y, encoded.lengths, strict=True))
            ]
        return {
            "mode": MODES.index(self.mode),
            "free_ends": layout.free_bits,
            "loss": LOSSES.index(self.loss_kind),
            "fixed_homolog": self.homolog == "fixed",
            "table": layout.table,
            "open": layout.open,
            "extend": layout.extend,
            "n_weights": layout.n_weights,
            "letters": encoded.letters,
            "sequences": encoded.sequences,
            "native": encoded.native,
            "candidates_from": encoded.candidates_from,
            "candidates": encoded.candidates,
            "matches_from": np.cumsum([0, *(len(t) for t in truths)]).astype(np.int64),
            "matches": np.ascontiguousarray(np.concatenate(truths), dtype=np.int32),
            "position_score": 0 if self.position is None else 1 + POSITIONS.index(self.position),
            "position": encoded.position,
        }

    def _truth(self, y: Any, i: int, n: int, m: int) -> Matches:
        if isinstance(y, Ranked):
            if y.which != 0:
                raise ValueError(
                    f"the truth of pair {i} is decoy {y.which - 1}; the homolog comes first, and "
                    "is number 0"
                )
            y = y.matches
        return parse_alignment(y, n, m, f"the alignment of pair {i}")

    def _best(
        self, X: Any, weights: Any, n_jobs: int
    ) -> tuple[
        EncodedPairs, NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]
    ]:
        encoded = self._encode(X)
        problem = _native.AlignmentProblem(**self._arguments(encoded, None))
        which, ends, flat, scores = problem.predict(self.native_weights(weights), n_jobs)
        return encoded, which, ends, flat, scores

    @staticmethod
    def _outputs(
        encoded: EncodedPairs,
        which: NDArray[np.int32],
        ends: NDArray[np.int64],
        flat: NDArray[np.int32],
    ) -> list[Any]:
        matches = np.split(flat.reshape(-1, 2), ends[1:-1])
        return [
            Ranked(int(k), found) if encoded.has_decoys(i) else found
            for i, (k, found) in enumerate(zip(which, matches, strict=True))
        ]


def _checked_alphabet(alphabet: Any) -> str:
    if not isinstance(alphabet, str):
        raise TypeError(f"the alphabet is {alphabet!r:.60}; expected a text")
    if not 1 <= len(alphabet) <= 255 or len(set(alphabet)) != len(alphabet):
        raise ValueError(
            f"the alphabet {alphabet!r:.80} must have 1 to 255 different characters, each once"
        )
    if set(alphabet) & set("-."):
        raise ValueError("the alphabet must not have - or ., which stand for gaps")
    return alphabet
