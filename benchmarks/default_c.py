"""Which C is a good default, with many features a token and with few, on development data only.

For each corpus three kinds of features: its built-in template, what sklearn-crfsuite's tutorial
makes of a token (``word2features``: a third as many) and the template "words". Scores are those
of the development file, or of a held-out tenth of the training file where there is none; no test
file is read. Printed for each C: the scores, and for each rule (a constant C, or one that shrinks
with the mean of the squared norms of the tokens' features) what it loses against the best C of each
row, on average and at worst, and how long training takes beside C = 0.1 (processor seconds).

    python benchmarks/default_c.py --data ../shared/data

The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from first_day_tutorial import spelling
from maxmargin import ConvergenceWarning, SequenceTagger, evaluate
from template_choice import choice_data
from templates import CORPORA, Corpus, development

KINDS = ("template", "tutorial", "words")
MORE = {
    "ads": Corpus("Fields, ads", "ads", "ner", chunks=False),
    "citations": Corpus("Fields, citations", "citations_cora", "ner", chunks=False),
}
TAGGED = ("conll2000", "conll2002_esp")  # have parts of speech in the second column
OLD = 0.1  # the default that others are compared with


def tutorial_features(table: Any, *, tags: bool) -> list[list[dict[str, Any]]]:
    """Return the features of sklearn-crfsuite's tutorial, with or without parts of speech."""
    found = []
    for sentence in table.rows([0, 1] if tags else [0]):
        cells = [(row[0], row[1] if tags else "") for row in sentence]
        tokens = []
        for i, (word, _) in enumerate(cells):
            token = {"bias": 1.0, "end3": word[-3:], "end2": word[-2:], "isdigit": word.isdigit()}
            for k, prefix in ((0, ""), (-1, "-1:"), (1, "+1:")):
                if 0 <= i + k < len(cells):
                    token |= spelling(*cells[i + k], prefix)
            token |= {"BOS": True} if i == 0 else {}
            token |= {"EOS": True} if i + 1 == len(cells) else {}
            if not tags:
                token = {name: value for name, value in token.items() if "postag" not in name}
            tokens.append(token)
        found.append(tokens)
    return found


def squared_norm(tagger: SequenceTagger, X: Any) -> float:
    """Return the mean, over tokens, of the squared norm of a token's features."""
    batch = tagger.structure_.encoder.transform(X)
    values = np.ones(1) if batch.values is None else batch.values
    return float(np.mean(np.square(values, dtype=float)) * len(batch.indices) / batch.offsets[-1])


def measure(kind: str, corpus: Corpus, data: Any, values: list[float]) -> dict[str, Any]:
    """Train with each C; return scores and processor seconds, and the norm of the features."""
    (X, y), (X_held, y_held) = data
    template = {"template": corpus.template, "words": "words"}.get(kind)
    if template is None:
        tags = corpus.folder in TAGGED and corpus.label_column == -1
        X, X_held = (tutorial_features(table, tags=tags) for table in (X, X_held))
    about: dict[str, Any] = {"score": [], "seconds": []}
    for C in values:
        tagger = SequenceTagger(C=C, template=template, random_state=0)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            tagger.fit(X, y)
        about["seconds"].append(time.process_time() - begin)
        found = evaluate(y_held.sequences(), tagger.predict(X_held).tolist())
        about["score"].append(100 * (found.f1 if corpus.chunks else found.token_accuracy))
    about["norm"] = squared_norm(tagger, X)
    return about


def between(C: float, values: list[float], measured: list[float]) -> float:
    """Return what was measured at a C, from its two neighbours on the scale of powers."""
    return float(np.interp(np.log(C), np.log(values), measured))


def judge(rule: Any, result: dict[str, Any], values: list[float]) -> dict[str, Any]:
    """Return what a rule loses against the best C of each row, and how long training takes."""
    losses, times = [], []
    for about in result.values():
        C = rule(about["norm"])
        losses.append(max(about["score"]) - between(C, values, about["score"]))
        old = between(OLD, values, about["seconds"])
        times.append(between(C, values, about["seconds"]) / old)
    return {
        "mean loss": float(np.mean(losses)),
        "worst loss": float(np.max(losses)),
        "worst at": list(result)[int(np.argmax(losses))],
        "time": float(np.exp(np.mean(np.log(times)))),
        "longest": float(np.max(times)),
    }


def rules(values: list[float]) -> dict[str, Any]:
    """Return the rules that are compared, by name."""
    constants = {f"C = {C:g}": lambda norm, C=C: C for C in values}
    linear = {f"C = {c:g} / norm": lambda norm, c=c: c / norm for c in (2, 3, 4, 5, 6, 8)}
    root = {
        f"C = {c:g} / root of norm": lambda norm, c=c: c / norm**0.5 for c in (0.5, 0.7, 1, 1.5)
    }
    clipped = {
        f"C = {c:g} / norm, 0.1 to 1": lambda norm, c=c: min(max(c / norm, 0.1), 1.0)
        for c in (2, 3, 4)
    }
    square = {f"C = {c:g} / norm²": lambda norm, c=c: c / norm**2 for c in (50, 100, 150, 200)}
    return constants | linear | clipped | root | square


def numbers(text: str) -> list[float]:
    """Return the numbers of an option."""
    return [float(part) for part in text.split(",")]


def main() -> None:
    corpora = CORPORA | MORE
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--corpora", default=",".join(corpora), help="of %(default)s")
    parser.add_argument("--C", type=numbers, default=numbers("0.03,0.05,0.1,0.2,0.3,0.5,1,2"))
    args = parser.parse_args()
    result: dict[str, Any] = {}
    print(f"| | norm | {' | '.join(f'C = {C:g}' for C in args.C)} |")
    print(f"|---|---|{'---|' * len(args.C)}")
    for name in args.corpora.split(","):
        data = (
            choice_data(args.data, name)
            if name in CORPORA
            else development(args.data, corpora[name])[:2]
        )
        for kind in KINDS:
            about = measure(kind, corpora[name], data, args.C)
            cells = [
                f"{s:.2f} ({t:.1f} s)"
                for s, t in zip(about["score"], about["seconds"], strict=True)
            ]
            title = f"{corpora[name].title}, {kind}"
            print(f"| {title} | {about['norm']:.1f} | {' | '.join(cells)} |", flush=True)
            result[f"{name}, {kind}"] = about
    judged = {title: judge(rule, result, args.C) for title, rule in rules(args.C).items()}
    print("\n| rule | mean loss | worst loss | time | longest |\n|---|---|---|---|---|")
    for title, found in judged.items():
        worst = f"{found['worst loss']:.2f} ({found['worst at']})"
        times = f"{found['time']:.2f} | {found['longest']:.2f}"
        print(f"| {title} | {found['mean loss']:.2f} | {worst} | {times} |")
    print(json.dumps({"C": args.C, "rows": result, "rules": judged}))


if __name__ == "__main__":
    main()
