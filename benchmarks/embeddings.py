"""Word vectors made of unlabelled text, as features beside a template: what they bring.

The vectors are made here, of words alone: how often a word has another one within two tokens to its
left and to its right (nearer ones count more), positive pointwise mutual information with contexts
smoothed by the power 0.75, and a truncated singular value decomposition, U √S. Neither labels nor
the words of development and test files are used. Tasks:

- ads: fields of apartment ads, 102 labelled ones, and the text of 8,464 more without labels;
- spanish: CoNLL-2002 names, a tenth of the training sentences with labels, the text of all;
- spanish-all: the same with all labels;
- genes: BC2GM, a tenth of the training sentences with labels, the text of all and of JNLPBA's;
- genes-all: the same with all labels.

For each, with and without vectors, C is the best of some on development data, and so are the length
of the vectors and the window. The test file is read once, for what was chosen.

    python benchmarks/embeddings.py --data ../shared/data

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from maxmargin import ColumnTable, Embeddings, SequenceTagger, evaluate, read_columns

AROUND = 2  # words to each side that count as context
CONTEXTS = 20_000  # most frequent words that count as context
SMOOTHING = 0.75
END = -2  # a place behind or before a sentence

Sentences = list[list[str]]


@dataclass(frozen=True)
class Task:
    """A corpus, which of its training sentences have labels, and where more text is."""

    corpus: str
    template: str
    every: int
    text: tuple[str, ...]
    chunks: bool = True


TASKS = {
    "ads": Task("ads", "words", 1, ("ads/train", "ads/unlabelled"), chunks=False),
    "spanish": Task("conll2002_esp", "ner", 10, ("conll2002_esp/train",)),
    "spanish-all": Task("conll2002_esp", "ner", 1, ("conll2002_esp/train",)),
    "genes": Task("bc2gm", "ner", 10, ("bc2gm/train", "jnlpba/train")),
    "genes-all": Task("bc2gm", "ner", 1, ("bc2gm/train", "jnlpba/train")),
}


def words_of(folder: Path, names: tuple[str, ...]) -> Sentences:
    """Return the words of some files, in lower case."""
    tables = [read_columns(folder / f"{name}.tsv.gz") for name in names]
    sentences = itertools.chain.from_iterable(table.rows([0]) for table in tables)
    return [[row[0].lower() for row in sentence] for sentence in sentences]


def counts_of(text: Sentences) -> tuple[list[str], sp.csr_array]:
    """Return the words that occur twice, and the counts of their left and right contexts."""
    frequency = Counter(itertools.chain.from_iterable(text))
    vocabulary = [word for word, n in frequency.most_common() if n > 1]
    number = {word: k for k, word in enumerate(vocabulary)}
    rows = [[number.get(word, -1) for word in sentence] + [END] * AROUND for sentence in text]
    tokens = np.concatenate([np.full(AROUND, END), *(np.array(row) for row in rows)])
    n_contexts = min(len(vocabulary), CONTEXTS)
    shape = (len(vocabulary), n_contexts + 1)  # the last one is the end of a sentence
    sides = []
    for left in (True, False):
        side = sp.csr_array(shape)
        for k in range(1, AROUND + 1):
            word, context = (tokens[k:], tokens[:-k]) if left else (tokens[:-k], tokens[k:])
            used = (word >= 0) & (context != -1) & (context < n_contexts)
            at = (word[used], np.where(context[used] == END, n_contexts, context[used]))
            side = side + sp.coo_array((np.full(len(at[0]), 1 / k), at), shape=shape).tocsr()
        sides.append(side)
    return vocabulary, sp.hstack(sides).tocsr()


def vectors_of(counts: sp.csr_array, size: int) -> np.ndarray:
    """Return U √S of the positive pointwise mutual information."""
    of_word, of_context = counts.sum(axis=1), counts.sum(axis=0) ** SMOOTHING
    of_context = of_context / of_context.sum()
    entries = counts.tocoo()
    shares = entries.data / (of_word[entries.row] * of_context[entries.col])
    kept = shares > 1
    at = (entries.row[kept], entries.col[kept])
    information = sp.coo_array((np.log(shares[kept]), at), shape=counts.shape).tocsr()
    left, values, _ = randomized_svd(information, size, n_iter=5, random_state=0)
    return np.ascontiguousarray(left * np.sqrt(values), dtype=np.float32)


def labelled(path: Path, every: int = 1, limit: int | None = None) -> Any:
    """Return every so-manieth sentence of a file, with its labels."""
    return ColumnTable.from_rows(read_columns(path).rows()[::every][:limit]).labelled()


def train(task: Task, data: Any, C: float, embeddings: Any) -> tuple[SequenceTagger, float]:
    """Train; return the tagger and the seconds of the processor."""
    begin = time.process_time()
    tagger = SequenceTagger(C=C, template=task.template, embeddings=embeddings, random_state=0)
    return tagger.fit(*data), time.process_time() - begin


def score(task: Task, tagger: SequenceTagger, data: Any) -> float:
    """Return F1 of chunks, or accuracy, in %."""
    found = evaluate(data[1].sequences(), tagger.predict(data[0]).tolist())
    return 100 * float(found.f1 if task.chunks else found.token_accuracy)


def measure(folder: Path, task: Task, args: argparse.Namespace) -> dict[str, Any]:
    """Choose on development data with and without vectors; score both on test data."""
    corpus = folder / task.corpus
    data = labelled(corpus / "train.tsv.gz", task.every, args.limit)
    held = labelled(corpus / "dev.tsv.gz", limit=args.limit)
    text = words_of(folder, task.text)[: args.limit]
    begin = time.process_time()
    vocabulary, counts = counts_of(text)
    choices: list[tuple[str, Any]] = [("without", None)]
    for size in args.sizes:
        vectors = vectors_of(counts, size)
        for window in args.windows:
            made = Embeddings.of_matrix(vocabulary, vectors, window=window)
            choices.append((f"{size} numbers, window {window}", made))
    print(
        f"  {len(data[0])} labelled sentences, text of {sum(map(len, text)):,} words; vectors of "
        f"{len(vocabulary):,} words made in {time.process_time() - begin:.0f} s",
        flush=True,
    )
    result: dict[str, Any] = {"n_labelled": len(data[0]), "n_vectors": len(vocabulary)}
    best: dict[bool, tuple[float, Any]] = {}
    for name, embeddings in choices:
        for C in args.C:
            tagger, seconds = train(task, data, C, embeddings)
            value = score(task, tagger, held)
            print(f"  C = {C:g}, {name}: dev {value:.2f} % ({seconds:.1f} s)", flush=True)
            kind = embeddings is not None
            if kind not in best or value > best[kind][0]:
                best[kind] = (value, (f"C = {C:g}, {name}", tagger, seconds))
    test = labelled(corpus / "test.tsv.gz", limit=args.limit)
    for kind, title in ((False, "without"), (True, "with")):
        value, (name, tagger, seconds) = best[kind]
        on_test = score(task, tagger, test)
        result[title] = {"chosen": name, "dev": value, "test": on_test, "seconds": seconds}
        print(f"  {title}: {name}: dev {value:.2f} %, test {on_test:.2f} %, {seconds:.1f} s")
    gain = result["with"]["test"] - result["without"]["test"]
    result["gain"] = gain
    print(f"  gain on test data: {gain:+.2f}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with ads/ ...")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of %(default)s")
    parser.add_argument("--C", default="0.1,0.3")
    parser.add_argument("--sizes", default="50,100", help="numbers of a vector")
    parser.add_argument("--windows", default="0,1", help="words to each side with their vectors")
    parser.add_argument("--limit", type=int, default=None, help="sentences of each file, at most")
    args = parser.parse_args()
    args.C = [float(C) for C in args.C.split(",")]
    args.sizes = [int(size) for size in args.sizes.split(",")]
    args.windows = [int(window) for window in args.windows.split(",")]
    result = {}
    for name in args.tasks.split(","):
        task = TASKS[name]
        print(f"{name} ({'F1' if task.chunks else 'accuracy'})", flush=True)
        result[name] = measure(args.data, task, args)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
