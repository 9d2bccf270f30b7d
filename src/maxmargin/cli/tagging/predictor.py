"""A model with the options that say what is written of its predictions."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maxmargin.cli.marginals import labelling_shares, probability_cells
from maxmargin.cli.model import LoadedModel, naming_model
from maxmargin.cli.tagging.known import KnownLabels

if TYPE_CHECKING:
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items

__all__ = ["Predictor"]


class Predictor:
    """A model with the options that say what is written of its predictions.

    Parameters
    ----------
    loaded : LoadedModel
        The model.
    options : argparse.Namespace
        The arguments of the command.

    Attributes
    ----------
    labels : list
        The labels by their codes.
    names : list of str
        The same as texts.
    known : KnownLabels
        Finds the labels that are known already.
    """

    def __init__(self, loaded: LoadedModel, options: argparse.Namespace) -> None:
        self.kind, self.model, self.inputs = loaded
        self.options = options
        self.labels = self.kind.labels(self.model)
        self.names = [str(label) for label in self.labels]
        self.known = KnownLabels(options, self.names, self.inputs)

    def cells(
        self, data: ColumnTable | Items, separator: str, known: Any = None
    ) -> tuple[Any, list[str]]:
        """Return what is written for the tokens, as places in a list of texts.

        Parameters
        ----------
        data : ColumnTable or Items
            What is tagged.
        separator : str
            What stands between a label and its score.
        known : int32 array or None
            Codes of known labels, -1 where one is not.
        """
        threads = self.options.threads
        if self.options.marginals:
            with naming_model(self.options.model), self._naming(data):
                codes, probabilities, _ = self.kind.marginals(
                    self.model, data, threads, **_given(known)
                )
            return probability_cells(codes, probabilities, self.names, separator)
        if not self.options.scores:
            with self._naming(data):
                return self.kind.predict(self.model, data, threads, **_given(known)), self.names
        import numpy as np

        with naming_model(self.options.model), self._naming(data):
            codes, margins = self.kind.margins(self.model, data, threads, **_given(known))
        cells = [
            f"{self.names[c]}{separator}{m:.4f}"
            for c, m in zip(codes.tolist(), margins, strict=True)
        ]
        return np.arange(len(cells), dtype=np.int32), cells

    def kbest(
        self, data: ColumnTable | Items, known: Any = None
    ) -> Iterator[list[tuple[str, list[int]]]]:
        """Yield for each sequence the head line and the labels' codes of each of its best ones."""
        options = self.options
        with naming_model(options.model), self._naming(data):
            found = self.kind.kbest(
                self.model, data, options.nbest, options.threads, **_given(known)
            )
        shares: list[Any] = [None] * len(found)
        if options.marginals:
            shares = labelling_shares(
                self.kind, self.model, data, options.threads, **_given(known)
            )
        for outputs, share in zip(found, shares, strict=True):
            yield [
                (f"# {rank} {score:.6f}{share(score) if share else ''}", codes.tolist())
                for rank, (score, codes) in enumerate(outputs)
            ]

    @contextlib.contextmanager
    def _naming(self, data: Any) -> Iterator[None]:
        """Name file and line of a known label that cannot be there."""
        from maxmargin.errors import KnownLabelError

        try:
            yield
        except KnownLabelError as error:
            raise ValueError(self.known.complaint(data, error.token, error.what)) from None


def _given(known: Any) -> dict[str, Any]:
    """Return the argument for known labels; kinds of models of others may not take it."""
    return {} if known is None else {"known": known}
