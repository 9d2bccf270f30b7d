"""``tagger.report(...)``: a page about a tagger, as ``maxmargin train --report`` writes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.chain_predictions import ChainPredictions
from maxmargin.estimators.empty import labelled_without_empty
from maxmargin.estimators.eval_set import checked_eval_set, encoded_labelled
from maxmargin.estimators.threads import threads_of
from maxmargin.features import encode_labels
from maxmargin.features.columns import LabelCodes
from maxmargin.features.labels import label_list
from maxmargin.features.token_texts import TokenTexts
from maxmargin.types import LabelSequences, Sequences

if TYPE_CHECKING:
    from maxmargin.report.html.content import DataFacts, Evaluation
    from maxmargin.structures.chain import Chain

__all__ = ["Reports"]


class Reports(ChainPredictions):
    """The method of a tagger that writes a page about it."""

    def report(
        self,
        path: str | os.PathLike[str],
        X: Sequences | None = None,
        y: LabelSequences | None = None,
        *,
        train: tuple[Sequences, LabelSequences] | None = None,
        words: Sequence[Sequence[str]] | None = None,
        title: str = "",
    ) -> dict[str, Any]:
        """Write a page about the model: one HTML file that needs nothing else.

        It has the data, the parameters, the certificate and the gap over time, scores by label,
        confusions, the most costly errors in context, the strongest features and transitions, and
        how honest the probabilities are; see ``docs/report.md``.

        Parameters
        ----------
        path : str or path
            The file; replaced if it exists. Its name ends with ``.html`` or ``.htm``.
        X : list of sequences, optional
            Sequences that the model was not trained on; it is scored on these.
        y : list of label sequences, optional
            Their labels.
        train : tuple (X, y), optional
            The data that the model was trained on, to be described. Without ``X`` and ``y``, the
            scores are on these, and the page warns of it.
        words : list of sequences of str, optional
            A text for each token of the data that are scored. By default it is the first column, or
            the feature that is called like a word.
        title : str
            Of the page.

        Returns
        -------
        dict
            ``report`` and ``report_bytes``; with ``X`` and ``y`` also ``temperature``,
            ``calibration_error`` and ``calibration_error_before`` (at the temperature 1). A model
            that is not calibrated gets a temperature for the page only.
        """
        from maxmargin.report.html.content import Content, Course
        from maxmargin.report.html.gather import learned_of
        from maxmargin.report.html.page import write_page

        check_is_fitted(self, "weights_")
        if (X is None) != (y is None):
            raise ValueError(
                f"report got {'y without X' if X is None else 'X without y'}; expected both, the "
                "sequences to be scored and their labels, or none"
            )
        chain, data = self._decoder(), []
        if train is not None:
            train = checked_eval_set(train, "train")
            data.append(_facts("training data", train[1]))
        evaluation, no_scores = None, ""
        if X is not None:
            data.append(_facts("test data", y))
            evaluation = self._evaluated(chain, X, y, words, on_training=False)
        elif train is not None:
            evaluation = self._evaluated(chain, *train, words, on_training=True)
        else:
            no_scores = (
                "There are no scores: report(path, X, y) has them of sequences that the model was "
                "not trained on."
            )
        history = self.history_
        best = getattr(self, "best_pass_", None)
        params = self.get_params(deep=False)
        labels = [name for name, _ in data[0].labels] if data else []
        content = Content(
            title=title or f"Report of a {type(self).__name__}",
            about=f"A tagger with {chain.n_labels} labels, trained on "
            f"{self.certificate_.n_examples} sequences.",
            course=Course(
                self.certificate_,
                history,
                self.gap if isinstance(self.gap, float) else None,
                self.n_iter_,
                self.converged_,
                self.stop_reason_,
                None if best == self.n_iter_ else best,
                getattr(self, "eval_scores_", ()),
            ),
            settings=[(name, value) for name, value in params.items() if value is not None],
            data=data,
            evaluation=evaluation,
            no_scores=no_scores,
            learned=learned_of(chain, self.weights_, labels),
            seconds=history[-1].seconds if len(history) else None,
        )
        return write_page(path, content)

    def _evaluated(
        self, chain: Chain, X: Any, y: Any, words: Any, *, on_training: bool
    ) -> Evaluation:
        from maxmargin.report.html.gather import evaluation_of

        X, y, _ = labelled_without_empty(X, y)
        labelled = encoded_labelled(chain, X, y)
        offsets = labelled.batch.offsets
        columns = hasattr(chain.encoder, "n_columns") or hasattr(chain.encoder, "function")
        texts = TokenTexts(X, offsets, columns=columns)
        if words is not None:
            texts = TokenTexts(_checked_words(words, offsets), offsets)
        return evaluation_of(
            chain,
            self.weights_,
            labelled,
            texts,
            inputs=X,
            on_training=on_training,
            temperature=getattr(self, "temperature_", None),
            threads=threads_of(self.n_jobs),
        )


def _facts(what: str, y: Any) -> DataFacts:
    """Count the labels of some data, and the lengths of their sequences."""
    from maxmargin.report.html.gather import data_facts

    if isinstance(y, LabelCodes):
        return data_facts(what, "", y.offsets, y.codes, y.names)
    rows = [labels for labels in map(label_list, y) if len(labels)]
    codes, classes = encode_labels(rows)
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in rows])])
    return data_facts(what, "", offsets, codes, classes)


def _checked_words(words: Any, offsets: Any) -> list[list[str]]:
    """Return the texts of tokens, as many as there are tokens."""
    rows = [list(map(str, row)) for row in words]
    rows = [row for row in rows if row]
    lengths = np.diff(offsets).tolist()
    if len(rows) != len(lengths):
        raise ValueError(f"words has {len(rows)} sequences with tokens, and X {len(lengths)}")
    for i, (row, n) in enumerate(zip(rows, lengths, strict=True)):
        if len(row) != n:
            raise ValueError(f"sequence {i} has {n} tokens and {len(row)} words; expected as many")
    return rows
