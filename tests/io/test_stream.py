"""Streams of column text: cut behind blank lines, with work in proportion to their length."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.cli.tagging import streams
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
    monkeypatch.setattr(streams, "CHUNK", 100)
    text = b"# a\n\n" + b"dog\tNN\n" * 4096 + b"\ncat\tNN\n\n"
    pieces = list(streams.pieces(io.BytesIO(text)))
    assert pieces[0] == (b"# a\n\n", 1)
    assert pieces[1:] == [(text[5:], 3)]  # both sequences end in the last 100 bytes
    assert made[0].n_searched <= 1.03 * len(text)
