"""From a model and data to the records of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import NotCompatibleError
from maxmargin.features.token_texts import TokenTexts
from maxmargin.io.tagger_file import TaggerModel
from maxmargin.label_report import error_tokens
from maxmargin.metrics import evaluate_codes
from maxmargin.models.strongest import strongest_features, strongest_transitions
from maxmargin.models.weight_rows import count_nonzero
from maxmargin.report.html.content import Confidence, DataFacts, Evaluation, Learned
from maxmargin.report.html.costly import costly_errors
from maxmargin.scores.calibration import reliability
from maxmargin.selection.calibration import confidences, find_temperature
from maxmargin.structures.kernels import KernelWeights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.features.batch import EncodedBatch
    from maxmargin.selection.encoded import Encoded
    from maxmargin.structures.chain import Chain

__all__ = ["data_facts", "evaluation_of", "learned_of"]

#: Of the most costly errors, words, features, labels with features of their own, transitions.
ERRORS, WORDS, FEATURES, LABELS, EACH, TRANSITIONS = 12, 12, 12, 12, 6, 10


def data_facts(
    what: str, source: str, offsets: NDArray[Any], codes: NDArray[Any], names: Sequence[Any]
) -> DataFacts:
    """Count sequences, tokens and labels.

    Parameters
    ----------
    what, source : str
        What the data are for, and where they came from.
    offsets : int array of shape (n_sequences + 1,)
        The first token of each sequence.
    codes : int array of shape (n_tokens,)
        Labels, as places in ``names``.
    names : sequence
        The labels.

    Returns
    -------
    DataFacts
        For the page.
    """
    counts = np.bincount(codes, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    labels = [(str(names[k]), int(counts[k])) for k in order.tolist() if counts[k]]
    return DataFacts(what, source, np.diff(offsets), labels)


def evaluation_of(
    chain: Chain,
    weights: Any,
    data: Encoded,
    texts: TokenTexts,
    *,
    inputs: Any = None,
    source: str = "",
    on_training: bool = False,
    temperature: float | None = None,
    fitted: bool = False,
    threads: int = 1,
) -> Evaluation:
    """Score a model on some data.

    Parameters
    ----------
    chain : Chain
        The structure.
    weights : array, SparseWeights or KernelWeights
        The model.
    data : Encoded
        Sequences with their true labels.
    texts : TokenTexts
        Their words.
    inputs : object
        The sequences as they were given; needed where there are constraints.
    source : str
        Where they came from.
    on_training : bool
        Whether the model was trained on them; its probabilities are not judged then.
    temperature : float or None
        What the model's scores are divided by; None: it is chosen on these data.
    fitted : bool
        Whether the temperature that is given was chosen on these data.
    threads : int
        Number of threads.

    Returns
    -------
    Evaluation
        For the page.
    """
    batch, truth, names = data.batch, data.codes, [str(name) for name in data.names]
    predicted = chain.predict_encoded(batch, weights, threads, inputs=inputs)
    report = evaluate_codes(truth, predicted, batch.offsets, names)
    costly, unsure = costly_errors(
        chain, weights, data, predicted, texts, most=ERRORS, threads=threads
    )
    words: Any = texts
    found: Confidence | None = None
    why = ""
    if on_training:
        why = (
            "Probabilities are not judged on the data of training, where every model is right more "
            "often than elsewhere: give data that it did not see (--valid FILE)."
        )
    else:
        try:
            found = _confidence(
                chain, batch, weights, truth, predicted, at=temperature, threads=threads
            )
            found = found._replace(fitted_here=fitted or temperature is None)
        except NotCompatibleError:
            why = "A model that decodes with constraints has no probabilities."
        except ValueError as error:  # no sequence has labels that the model knows and allows
            why = f"There is no temperature: {error}."
    return Evaluation(
        source,
        on_training,
        report,
        costly,
        error_tokens(words, truth, predicted, names, WORDS),
        unsure,
        found,
        why,
    )


def _confidence(
    chain: Chain,
    batch: EncodedBatch,
    weights: Any,
    truth: NDArray[np.int32],
    predicted: NDArray[np.int32],
    *,
    at: float | None,
    threads: int,
) -> Confidence:
    temperature = at
    if temperature is None:
        temperature = find_temperature(chain, batch, truth, weights, threads).temperature
    right = predicted == truth
    before, after = (
        reliability(
            confidences(chain, batch, predicted, weights, temperature=T, threads=threads), right
        )
        for T in (1.0, temperature)
    )
    return Confidence(temperature, False, before, after)


def learned_of(chain: Chain, weights: Any, labels: Sequence[str] = ()) -> Learned:
    """Find the strongest weights of a model.

    Parameters
    ----------
    chain : Chain
        The structure.
    weights : array, SparseWeights or KernelWeights
        The model.
    labels : sequence of str
        Labels by how much they matter: the first ones get features of their own.

    Returns
    -------
    Learned
        For the page.
    """
    model = TaggerModel(chain, weights, {})
    n_weights = chain.n_features or 0
    missing = ""
    sizes = [("labels", chain.n_labels), ("features of tokens", chain.layout.n_token_features)]
    if isinstance(weights, KernelWeights):
        n_weights = weights.dual_coef.size + weights.edges.size
        sizes.append(("support tokens", weights.n_support))
        missing = (
            f"Labels are scored through the kernel {weights.kernel.name} between tokens, so "
            "features have no weights of their own that could be listed here."
        )
    sizes += [("weights", int(n_weights)), ("weights that are not zero", count_nonzero(model))]
    places = {str(label): k for k, label in enumerate(chain.labels_)}
    by_label: list[tuple[str, list[dict[str, Any]]]] = []
    if not missing:
        order = [label for label in labels if label in places] or list(places)
        by_label = [
            (label, strongest_features(model, EACH, places[label])) for label in order[:LABELS]
        ]
    return Learned(
        sizes,
        strongest_features(model, FEATURES, None),
        by_label,
        strongest_transitions(model, TRANSITIONS, None),
        missing,
    )
