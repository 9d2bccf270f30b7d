"""Train on more data than a budget of memory holds, and go on after an interruption.

python examples/streaming.py
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from maxmargin import SequenceTagger
from maxmargin.streams import EncodedCorpus, encode

WORDS = {"N": ("dogs", "cats", "trees"), "V": ("bark", "sleep", "grow"), "D": ("the", "some")}


def sentences(n: int):
    """Yield sentences of an invented language, as they would come from anywhere."""
    rng = random.Random(0)
    for _ in range(n):
        tags = rng.choices("NVD", k=rng.randint(3, 12))
        yield [[rng.choice(WORDS[tag])] for tag in tags], tags


def main() -> None:
    """Encode once, train twice: in one go, and stopped and resumed."""
    with tempfile.TemporaryDirectory() as folder:
        data, checkpoint = Path(folder) / "data.mme", Path(folder) / "run.ckpt"
        summary = encode(lambda: sentences(5000), data)
        print(f"{summary.n_sequences} sequences, {summary.n_bytes / 1e6:.1f} MB")
        corpus = EncodedCorpus.open(data)
        whole = SequenceTagger(random_state=0, gap=0.001).fit_stream(corpus, memory="2G")
        print(whole.certificate_)
        stopped = SequenceTagger(random_state=0, gap=0.001, max_passes=2, checkpoint=checkpoint)
        stopped.fit_stream(corpus, memory="2G")
        resumed = stopped.set_params(max_passes=None, resume=True)
        resumed.fit_stream(corpus, memory="2G")
        print("the same model:", bool((resumed.weights_ == whole.weights_).all()))


if __name__ == "__main__":
    main()
