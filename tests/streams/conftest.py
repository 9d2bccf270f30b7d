"""What the tests of streams start from."""

from __future__ import annotations

import pytest

from maxmargin.streams import EncodedCorpus, encode
from stream_data import column_text, sentences


@pytest.fixture
def columns(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(column_text(sentences()), encoding="utf-8")
    return path


@pytest.fixture
def corpus(columns, tmp_path):
    encode(columns, tmp_path / "corpus.mme", template="pos")
    return EncodedCorpus.open(tmp_path / "corpus.mme")
