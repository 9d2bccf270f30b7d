"""Taggers: models over a chain of labels, which `SequenceTagger` and ``maxmargin train`` make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._native import SparseWeights
from maxmargin.errors import NotCompatibleError
from maxmargin.io.container import read_header
from maxmargin.io.tagger_file import KIND, TaggerModel, dense_weights, load_tagger, save_tagger
from maxmargin.models.base import DescriptionRequest, InputFiles, ModelKind
from maxmargin.models.header import feature_kind, listed, shown_certificate, stored_objective
from maxmargin.models.selected import selected
from maxmargin.models.strongest import strongest_features, strongest_transitions
from maxmargin.models.text import write_text
from maxmargin.models.weight_rows import count_nonzero, memory_bytes
from maxmargin.printable import quoted
from maxmargin.structures.kernels import KernelWeights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maxmargin.estimators import SequenceTagger
    from maxmargin.features.batch import EncodedBatch
    from maxmargin.features.columns import ColumnTable
    from maxmargin.features.items import Items
    from maxmargin.features.template import Template
    from maxmargin.structures.chain import Chain

__all__ = ["TaggerKind"]


class TaggerKind(ModelKind):
    """Taggers; a model is a `TaggerModel`."""

    name = KIND

    def save(self, path: Any, model: TaggerModel) -> int:
        """Write a model to a file."""
        weights = model.weights
        if isinstance(weights, SparseWeights):
            weights = dense_weights(model)
        objective = None if model.objective is None else model.objective()
        return save_tagger(path, model.chain, weights, model.meta, objective)

    def load(
        self, path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
    ) -> TaggerModel:
        """Read a model from a file."""
        return load_tagger(path, function, mmap=mmap)

    def load_to_describe(self, path: Any) -> TaggerModel:
        """Read a model from a file; any function stands in for the one that makes its features."""
        encoder = read_header(path).meta.get("encoder")
        by_function = isinstance(encoder, dict) and "function" in encoder
        return load_tagger(path, _make_no_features if by_function else None)

    def load_estimator(
        self, path: Any, template: Any = None, *, mmap: bool = False
    ) -> SequenceTagger:
        """Read a `SequenceTagger`."""
        from maxmargin.estimators import SequenceTagger

        return SequenceTagger.load(path, template, mmap=mmap)

    def inputs(self, model: TaggerModel) -> InputFiles:
        """Say which text files hold inputs of a model."""
        encoder: Any = model.chain.encoder
        columns = hasattr(encoder, "n_columns")
        if not columns and encoder.kind != "strings":
            raise NotCompatibleError(
                f"was trained on arrays ({encoder.kind}), which no text file holds; use it from "
                "Python"
            )
        taken = model.meta.get("columns_conllu")
        return InputFiles(
            columns=columns,
            file_format=model.meta.get("format"),
            conllu_columns=None if taken is None else str(taken),
            n_columns=encoder.n_columns if columns else None,
            label_column=encoder.label_column if columns else None,
            vocabulary=encoder.vocabulary,
            reading=model.meta.get("reading", {}),
        )

    def labels(self, model: TaggerModel) -> list[Any]:
        """Return the labels by their codes."""
        return list(model.chain.labels_)

    def predict(
        self, model: TaggerModel, data: ColumnTable | Items, threads: int = 1, known: Any = None
    ) -> NDArray[np.int32]:
        """Predict the label of each token."""
        batch = _encoded(model, data, threads)
        return model.chain.predict_encoded(batch, model.weights, threads, known, inputs=data)

    def margins(
        self, model: TaggerModel, data: ColumnTable | Items, threads: int = 1, known: Any = None
    ) -> tuple[NDArray[np.int32], list[float]]:
        """Predict labels, with how much each beats the best labelling that has another one."""
        chain = model.chain
        batch = _encoded(model, data, threads)
        codes = chain.predict_encoded(batch, model.weights, threads, known, inputs=data)
        scores = chain.max_marginals_batch(batch, model.weights, threads, known)
        tokens = np.arange(len(codes))
        chosen = scores[tokens, codes]
        scores[tokens, codes] = -np.inf
        rivals = scores.max(axis=1) if chain.n_labels > 1 else np.full(len(codes), -np.inf)
        with np.errstate(invalid="ignore"):  # of infinite scores the difference is no number
            return codes, (chosen - rivals).tolist()

    def marginals(
        self, model: TaggerModel, data: ColumnTable | Items, threads: int = 1, known: Any = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """Predict labels, with the probability of each; at the temperature 1 if it has none."""
        chain, batch = model.chain, _encoded(model, data, threads)
        codes = chain.predict_encoded(batch, model.weights, threads, known)
        temperature = self.temperature(model) or 1.0
        log_z, table = chain.marginals_batch(
            batch, model.weights, temperature, threads, known=known
        )
        return codes, table[np.arange(len(codes)), codes], log_z

    def temperature(self, model: TaggerModel) -> float | None:
        """Return the temperature that the file has."""
        found = model.meta.get("temperature")
        return None if found is None else float(found)

    def kbest(
        self,
        model: TaggerModel,
        data: ColumnTable | Items,
        k: int,
        threads: int = 1,
        known: Any = None,
    ) -> list[list[tuple[float, NDArray[np.int32]]]]:
        """Predict the k best labellings of each sequence."""
        batch = _encoded(model, data, threads)
        return model.chain.kbest_batch(batch, model.weights, k, threads, known)

    def describe(self, model: TaggerModel, request: DescriptionRequest) -> dict[str, Any]:
        """Say what a model holds.

        Returns
        -------
        dict
            ``features`` (their kind), ``n_features``, ``n_features_trained`` (None if the file does
            not say), ``n_labels``, ``n_pair_features``, ``n_weights`` (of a full model),
            ``n_nonzero``, ``memory_bytes``, ``labels``, ``certificate``, ``objective`` (None if the
            file does not say), ``training``, ``params``, ``template`` (its source), ``top``,
            ``transitions``; with ``selected`` also ``selected``, with a kernel ``kernel`` and
            ``n_support``, with word vectors ``embeddings``. The start of a sequence is the
            ``from`` None, its end the ``to`` None.
        """
        chain, meta = model.chain, model.meta
        template = getattr(chain.encoder, "template", None)
        label = None if request.label is None else _label_number(chain, request.label)
        given = [meta.get(name) for name in ("training", "params")]
        training, params = (entry if isinstance(entry, dict) else {} for entry in given)
        summary: dict[str, Any] = {
            "features": feature_kind(meta["encoder"]),
            "n_features": chain.layout.n_token_features,
            "n_features_trained": training.get("n_features"),
            "n_labels": chain.n_labels,
            "n_pair_features": chain.encoder.n_pair,
            "n_weights": chain.n_features,
            "n_nonzero": count_nonzero(model),
            "memory_bytes": memory_bytes(model),
            "labels": chain.classes_,
            "certificate": shown_certificate(meta.get("certificate")),
            "objective": stored_objective(model),
            "temperature": self.temperature(model),
            "training": training,
            "params": params,
            "template": None if template is None else template.source,
            "top": strongest_features(model, request.top, label),
            "transitions": strongest_transitions(model, request.transitions, label),
        }
        if isinstance(model.weights, KernelWeights):
            weights = model.weights
            summary["n_weights"] = weights.dual_coef.size + weights.edges.size
            summary["kernel"] = dict(meta["kernel"])
            summary["n_support"] = weights.n_support
        if "embeddings" in meta["encoder"]:
            given = meta["encoder"]["embeddings"]
            shown = ("source", "n_words", "size", "window", "scale", "column", "store")
            summary["embeddings"] = {name: given[name] for name in shown}
        if request.selected:
            summary["selected"] = selected(model)
        return summary

    def template(self, model: TaggerModel) -> Template:
        """Return the template that makes the features."""
        template: Template | None = getattr(model.chain.encoder, "template", None)
        if template is None:
            described = model.meta["encoder"]
            origin = described.get("function")
            made = (
                f"made by the function {origin}" if origin else f"of the kind {described['kind']}"
            )
            raise NotCompatibleError(f"has no template; its features are {made}")
        return template

    def write_text(self, path: Any, model: TaggerModel) -> int:
        """Write all weights that are not zero as a text."""
        if isinstance(model.weights, KernelWeights):
            raise NotCompatibleError(
                f"has no weights of features, but {model.weights.n_support} support tokens of the "
                f"kernel {model.weights.kernel.name}; no text has them"
            )
        return write_text(path, model)


def _make_no_features(_: Any) -> Any:
    raise AssertionError("features are not made here")


def _encoded(model: TaggerModel, data: ColumnTable | Items, threads: int) -> EncodedBatch:
    encoder: Any = model.chain.encoder
    if hasattr(encoder, "threads"):
        encoder.threads = threads
    batch: EncodedBatch = encoder.transform(data)
    return batch


def _label_number(chain: Chain, wanted: str) -> int:
    """Return where a label is in ``labels_``; labels that are no texts are found by theirs."""
    for k, label in enumerate(chain.labels_):
        if str(label) == wanted:
            return k
    raise NotCompatibleError(
        f"has no label {quoted(wanted)}; expected one of {listed(chain.classes_)}"
    )
