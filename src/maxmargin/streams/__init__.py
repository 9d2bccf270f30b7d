"""Training data that do not fit in memory: encoded once to a file, and trained from there."""

from maxmargin.streams.budget import plan_windows
from maxmargin.streams.corpus import EncodedCorpus, is_encoded
from maxmargin.streams.encode import encode, open_source, temporary_corpus
from maxmargin.streams.encoding import EncodedSummary

__all__ = [
    "EncodedCorpus",
    "EncodedSummary",
    "encode",
    "is_encoded",
    "open_source",
    "plan_windows",
    "temporary_corpus",
]
