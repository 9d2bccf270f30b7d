"""C of maxmargin for those who know their c2 of CRFsuite, on development data only.

CRFsuite's L-BFGS minimises c2 ‖w‖² - Σ_i log p(y_i | x_i), which is 2 c2 times
½‖w‖² + 1/(2 c2) Σ_i (-log p). So C = 1/(2 c2) is the same price of the loss against that of the
weights; but the two losses differ, and whether that C is also the best one has to be measured. This
script trains both with the same features for several values, and prints the score of each on data
that it was not trained on: the development file where the corpus has one, else every tenth training
sentence. Test files are not read.

    python benchmarks/choosing_c.py --data ../shared/data

It also prints what the gap has to do with the score. The last line of standard output is one JSON
object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from maxmargin import ConvergenceWarning, SequenceTagger, evaluate, read_columns
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from peers import TASKS

Rows = list[list[list[str]]]
HELD_OUT = 10  # of so many training sentences one is held out where there is no development file


def read(folder: Path, name: str, limit: int | None) -> tuple[Rows, Rows]:
    """Return training and development sentences, with their labels."""
    corpus = folder / TASKS[name].corpus
    rows = read_columns(corpus / "train.tsv.gz").rows()
    development = corpus / "dev.tsv.gz"
    if development.exists():
        held = read_columns(development).rows()
    else:
        held = rows[::HELD_OUT]
        rows = [row for i, row in enumerate(rows) if i % HELD_OUT]
    return rows[:limit], held[:limit]


def split(rows: Rows, column: int | None) -> tuple[Rows, list[list[str]]]:
    """Return the columns that features are made of, and the labels."""
    at = -1 if column is None else column
    labels = [[row[at] for row in sentence] for sentence in rows]
    at %= len(rows[0][0])
    cells = [[row[:at] for row in sentence] for sentence in rows]
    return cells, labels


def score(truth: Any, predicted: Any, *, chunks: bool) -> float:
    """Return F1 of chunks, or accuracy, in %."""
    found = evaluate(truth, predicted)
    return 100 * float(found.f1 if chunks else found.token_accuracy)


def strings(template: Template, rows: Rows) -> list[list[list[str]]]:
    """Return the features that a template makes, as CRFsuite takes them."""
    encoder = TemplateEncoder(template)
    batch = encoder.fit_transform(rows)
    names, indptr = encoder.feature_names(), batch.indptr.tolist()
    found = [names[j] for j in batch.indices.tolist()]
    tokens = [found[a:b] for a, b in itertools.pairwise(indptr)]
    offsets = batch.offsets.tolist()
    return [tokens[a:b] for a, b in itertools.pairwise(offsets)]


def crfsuite(train: Any, held: Any, c2: float, folder: Path) -> tuple[list[list[str]], float]:
    """Train CRFsuite and tag; return the labels and the seconds of training."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer("lbfgs", {"c2": c2}, verbose=False)
    for x, y in zip(*train, strict=True):
        trainer.append(x, y)
    model = str(folder / "crfsuite.model")
    begin = time.process_time()
    trainer.train(model)
    seconds = time.process_time() - begin
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return [tagger.tag(x) for x in held], seconds


def ours(train: Any, held: Any, template: str, C: float, gap: float) -> tuple[Any, float, Any]:
    """Train maxmargin and tag; return the labels, the seconds of training and the tagger."""
    tagger = SequenceTagger(C=C, template=template, gap=gap, random_state=0)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger.fit(*train)
    return tagger.predict(held), time.process_time() - begin, tagger


def numbers(text: str) -> list[float]:
    """Return the numbers of an option."""
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--tasks", default="chunking,pos,esp,bc2gm", help="of " + ", ".join(TASKS))
    parser.add_argument("--c2", type=numbers, default=numbers("10,1,0.1,0.01"))
    parser.add_argument("--C", type=numbers, default=numbers("0.01,0.03,0.05,0.1,0.3,0.5,1,5,50"))
    parser.add_argument("--gaps", type=numbers, default=numbers("0.3,0.1,0.03,0.01,0.001"))
    parser.add_argument("--limit", type=int, default=3000, help="sentences of each file, at most")
    args = parser.parse_args()
    result: dict[str, Any] = {}
    for name in args.tasks.split(","):
        task = TASKS[name]
        train, held = (split(rows, task.label_column) for rows in read(args.data, name, args.limit))
        template = Template.load(task.template)
        print(f"\n{task.title}: {len(train[0])} sentences, tried on {len(held[0])}", flush=True)
        about: dict[str, Any] = {"c2": {}, "C": {}, "gap": {}}
        features = strings(template, train[0]), strings(template, held[0])
        with tempfile.TemporaryDirectory() as temporary:
            for c2 in args.c2:
                tags, seconds = crfsuite((features[0], train[1]), features[1], c2, Path(temporary))
                about["c2"][c2] = value = score(held[1], tags, chunks=task.chunks)
                print(f"  CRFsuite c2 = {c2:g}: {value:.2f} % ({seconds:.1f} s)", flush=True)
        for C in args.C:
            tags, seconds, _ = ours(train, held[0], task.template, C, 0.01)
            about["C"][C] = value = score(held[1], tags, chunks=task.chunks)
            print(f"  C = {C:g}: {value:.2f} % ({seconds:.1f} s)", flush=True)
        best = max(about["C"], key=about["C"].get)
        known = max(about["c2"], key=about["c2"].get)
        print(f"  best: C = {best:g} and c2 = {known:g}, for which 1/(2 c2) = {0.5 / known:g}")
        for gap in args.gaps:
            tags, seconds, tagger = ours(train, held[0], task.template, best, gap)
            value = score(held[1], tags, chunks=task.chunks)
            about["gap"][gap] = [value, tagger.n_iter_, seconds]
            print(f"  gap {gap:g}: {value:.2f} %, {tagger.n_iter_} passes ({seconds:.1f} s)")
        result[name] = about
    print(json.dumps(result))


if __name__ == "__main__":
    main()
