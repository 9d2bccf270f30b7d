"""When prediction gives Python's global lock away: for long work only."""

from __future__ import annotations

import sys
import threading

import pytest

from maxmargin import SequenceTagger

SENTENCE = [["the", "D"], ["dog", "N"], ["barks", "V"]] * 8
LABELS = ["D", "N", "V"] * 8


@pytest.fixture
def patient():
    """Let threads wait for the lock until somebody gives it away."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    yield
    sys.setswitchinterval(before)


class Waiting:
    """A thread that wants the lock, and says whether it had it."""

    def __init__(self) -> None:
        self.go, self.ran = threading.Event(), False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        self.go.wait()
        self.ran = True


def features(sentence):
    return [{"word": word, "tag": tag} for word, tag in sentence]


@pytest.mark.parametrize("kind", ["template", "dicts"])
def test_single_sentences_keep_the_lock(patient, kind):
    template = "chunking" if kind == "template" else None
    sentence = SENTENCE if kind == "template" else features(SENTENCE)
    tagger = SequenceTagger(template=template, random_state=0).fit([sentence] * 4, [LABELS] * 4)
    long = [sentence] * 10_000
    tagger.predict([sentence])
    waiting = Waiting()
    waiting.go.set()
    for _ in range(3000):  # one of which would be unlucky
        tagger.predict([sentence])
    short_calls = waiting.ran
    for _ in range(100):  # a busy machine may let the thread run too late
        tagger.predict(long)
        if waiting.ran:
            break
    long_calls = waiting.ran
    waiting.thread.join()
    assert not short_calls  # or threads that serve would wait for each other after every sentence
    assert long_calls
