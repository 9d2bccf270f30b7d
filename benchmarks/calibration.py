"""How honest the probabilities of taggers are, before calibration and after, and what they cost.

For CoNLL-2000 chunking the last tenth of the training file is held out for the calibration; for
CoNLL-2002 Spanish it is the development file. The error is the expected calibration error of the
predicted labels (15 bins) on the test file. C is the default; nothing is chosen on test data. With
python-crfsuite installed, its marginals are measured too: the same features, L-BFGS with the
default c2 of 1, trained on the same sentences, with at most 100 iterations.

    python benchmarks/calibration.py --data ../shared/data [--crfsuite]

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import CalibrationWarning, ColumnTable, SequenceTagger
from maxmargin.io.columns import read_columns
from maxmargin.models.kinds import kind_of
from maxmargin.scores.calibration import calibration_error

TIMES = 15


def rows(path: Path) -> tuple[list[Any], list[Any]]:
    """Return sentences as rows of columns without the label, and the labels."""
    sentences = read_columns(path).rows()
    X = [[row[:-1] for row in sentence] for sentence in sentences]
    return X, [[row[-1] for row in sentence] for sentence in sentences]


def parts(folder: Path, corpus: str) -> dict[str, tuple[list[Any], list[Any]]]:
    """Return training, development and test data."""
    train, test = rows(folder / corpus / "train.tsv.gz"), rows(folder / corpus / "test.tsv.gz")
    if (folder / corpus / "dev.tsv.gz").exists():
        return {"train": train, "dev": rows(folder / corpus / "dev.tsv.gz"), "test": test}
    n = len(train[0]) * 9 // 10
    return {
        "train": (train[0][:n], train[1][:n]),
        "dev": (train[0][n:], train[1][n:]),
        "test": test,
    }


def honesty(tables: Any, found: Any, classes: list[Any], truth: list[Any]) -> float:
    """Return the calibration error of predicted labels."""
    place = {label: k for k, label in enumerate(classes)}
    codes = np.array([place[label] for row in found for label in row])
    table = np.concatenate(list(tables))
    right = np.concatenate([np.equal(y, z) for y, z in zip(truth, found, strict=True)])
    confidence = np.minimum(table[np.arange(len(codes)), codes], 1.0)
    return calibration_error(confidence, right)


def measure(data: dict[str, Any], template: str) -> tuple[dict[str, Any], SequenceTagger]:
    """Train, calibrate and measure."""
    tagger = SequenceTagger(template=template, random_state=0).fit(*data["train"])
    X, y = data["test"]
    found = tagger.predict(X)
    classes = tagger.classes_.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        before = honesty(tagger.predict_proba(X), found, classes, y)
    begin = time.perf_counter()
    tagger.calibrate(*data["dev"])
    seconds = time.perf_counter() - begin
    return {
        "accuracy": tagger.score(X, y),
        "temperature": tagger.temperature_,
        "error_before": before,
        "error_after": honesty(tagger.predict_proba(X), found, classes, y),
        "seconds_calibrate": seconds,
    }, tagger


def cost(tagger: SequenceTagger, X: list[Any]) -> float:
    """Return the time of ``tag --marginals`` over that of ``tag``, from strings, by turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.mm"
        tagger.save(path)
        kind = kind_of(path)
        model = kind.load(path)
    table = ColumnTable.from_rows(X)
    best = {"predict": math.inf, "marginals": math.inf}
    for _ in range(TIMES):
        for name, earlier in best.items():
            begin = time.process_time()
            getattr(kind, name)(model, table, 1)
            best[name] = min(earlier, time.process_time() - begin)
    return best["marginals"] / best["predict"]


def crfsuite(data: dict[str, Any], tagger: SequenceTagger) -> dict[str, Any]:
    """Train CRFsuite on the same features and measure its marginals."""
    import pycrfsuite

    encoder = tagger.structure_.encoder
    names = np.array(encoder.feature_names())

    def items(X: list[Any]) -> list[Any]:
        batch = encoder.transform(ColumnTable.from_rows(X))
        tokens = [
            names[batch.indices[a:b]].tolist()
            for a, b in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)
        ]
        bounds = zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
        return [tokens[a:b] for a, b in bounds]

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": 1.0, "max_iterations": 100})
    for x, labels in zip(items(data["train"][0]), data["train"][1], strict=True):
        trainer.append(x, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crf.model")
        begin = time.perf_counter()
        trainer.train(path)
        seconds = time.perf_counter() - begin
        crf = pycrfsuite.Tagger()
        crf.open(path)
        X, y = data["test"]
        classes, found, tables = crf.labels(), [], []
        for x in items(X):
            found.append(crf.tag(x))
            tables.append(
                np.array([[crf.marginal(label, t) for label in classes] for t in range(len(x))])
            )
    right = np.concatenate([np.equal(a, b) for a, b in zip(y, found, strict=True)])
    return {
        "accuracy": float(np.mean(right)),
        "error": honesty(tables, found, classes, y),
        "seconds_train": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--crfsuite", action="store_true", help="train CRFsuite too: minutes")
    parser.add_argument("--quick", action="store_true", help="300 sentences of each file")
    options = parser.parse_args()
    results = {}
    for corpus, template in (("conll2000", "chunking@1"), ("conll2002_esp", "ner@1")):
        data = parts(options.data, corpus)
        if options.quick:
            data = {name: (X[:300], y[:300]) for name, (X, y) in data.items()}
        result, tagger = measure(data, template)
        result["marginals_over_tag"] = cost(tagger, data["test"][0])
        print(
            f"{corpus}: accuracy {result['accuracy']:.4f}, "
            f"temperature {result['temperature']:.3f}, "
            f"calibration error {result['error_before']:.4f} before and "
            f"{result['error_after']:.4f} after ({result['seconds_calibrate']:.2f} s); "
            f"marginals take {result['marginals_over_tag']:.2f} times as long as labels"
        )
        if options.crfsuite:
            result["crfsuite"] = other = crfsuite(data, tagger)
            print(
                f"  CRFsuite: accuracy {other['accuracy']:.4f}, calibration error "
                f"{other['error']:.4f}, trained in {other['seconds_train']:.0f} s"
            )
        results[corpus] = result
    print(json.dumps(results))


if __name__ == "__main__":
    main()
