"""`SequenceTagger.fit_stream`: training on data that do not fit in memory."""

from __future__ import annotations

from typing import Any

from maxmargin.checks import check_number
from maxmargin.errors import NotCompatibleError
from maxmargin.estimators.threads import threads_of
from maxmargin.memory import parse_bytes
from maxmargin.streams import EncodedCorpus, plan_windows, temporary_corpus

__all__ = ["DEFAULT_MEMORY", "budget_of", "streamed_corpus"]

#: The budget of those who name none.
DEFAULT_MEMORY = 1_000_000_000
#: Share of the budget that the list of features may take while the data are encoded.
FEATURES_SHARE = 0.5


def budget_of(memory: Any) -> int:
    """Return a budget in bytes.

    Parameters
    ----------
    memory : int, str or None
        Bytes, or a text such as "500M"; None: 1 GB.

    Returns
    -------
    int
        Bytes.
    """
    if memory is None:
        return DEFAULT_MEMORY
    if isinstance(memory, str):
        return parse_bytes(memory)
    return int(check_number("memory", memory, above=0.0))


def streamed_corpus(
    tagger: Any,
    source: Any,
    *,
    memory: Any,
    spill: Any,
    on_error: str,
    reading: dict[str, Any],
) -> tuple[EncodedCorpus, int]:
    """Encode what a tagger is to be trained on, and plan its windows.

    Parameters
    ----------
    tagger : SequenceTagger
        Its parameters say which features there are.
    source, memory, spill, on_error, reading
        As for `SequenceTagger.fit_stream`.

    Returns
    -------
    corpus : EncodedCorpus
        To be fitted.
    n_skipped : int
        Bad sequences that were left out.
    """
    if tagger.embeddings is not None:
        raise NotCompatibleError(
            "embeddings need all data in memory: use fit(X, y), or embeddings=None with fit_stream"
        )
    budget = budget_of(memory)
    corpus, summary = temporary_corpus(
        source,
        spill=spill,
        template=tagger.template,
        min_count=tagger.min_count,
        hash_bits=tagger.hash_bits,
        labels=tagger.labels,
        dtype=tagger.dtype,
        on_error=on_error,
        memory=int(FEATURES_SHARE * budget),
        threads=threads_of(tagger.n_jobs),
        **reading,
    )
    plan = plan_windows(corpus.batch, budget, spill)
    return corpus.in_windows(plan), 0 if summary is None else summary.n_skipped
