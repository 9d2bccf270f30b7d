"""Streams of column text: cut behind blank lines, with work in proportion to their length."""

from __future__ import annotations

import argparse
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.cli import tag
from maxmargin.io import stream
from maxmargin.io.stream import SequenceCutter


def whole_sequences(text):
    """Where the last blank line of a text ends, found without any state."""
    ends = [text.rfind(mark) + len(mark) for mark in (b"\n\n", b"\n\r\n") if mark in text]
    return max(ends, default=0)


@given(st.lists(st.text("a\r\n", max_size=6).map(str.encode), max_size=12))
def test_it_cuts_as_a_search_of_all_that_is_held_does(chunks):
    cutter, held = SequenceCutter(), b""
    for chunk in chunks:
        held += chunk
        cut = whole_sequences(held)
        assert cutter.add(chunk) == held[:cut]
        held = held[cut:]
    assert cutter.rest() == held
    assert cutter.rest() == b""


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_long_sequence_is_searched_once(size):
    text = b"dog\tNN\n" * 4096
    cutter = SequenceCutter()
    for at in range(0, len(text), size):
        assert cutter.add(text[at : at + size]) == b""
    assert cutter.rest() == text
    assert cutter.n_searched <= len(text) + 2 * -(-len(text) // size)


def test_tag_searches_a_long_sequence_once(monkeypatch):
    made = []

    class Kept(SequenceCutter):
        def __init__(self):
            super().__init__()
            made.append(self)

    monkeypatch.setattr(stream, "SequenceCutter", Kept)
    monkeypatch.setattr(tag, "CHUNK", 100)
    options = argparse.Namespace(file="-", separator="auto", comments="#")
    text = b"# a\n\n" + b"dog\tNN\n" * 4096 + b"\ncat\tNN\n\n"
    pieces = list(tag._tables(io.BytesIO(text), options, ["A"]))
    assert pieces[0] == b"# a\n\n"
    assert [table.n_tokens for table in pieces[1:]] == [4097]  # both end in the last 100 bytes
    assert made[0].n_searched <= 1.03 * len(text)
