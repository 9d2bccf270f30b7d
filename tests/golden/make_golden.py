"""Makes the golden models of tests/io/test_golden.py: `python tests/golden/make_golden.py`.

Files that were written once must load in all later versions, so the script leaves files that are
there as they are. A new version of the format gets new files beside the old ones.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from maxmargin import SDM, ElasticNet, SequenceTagger
from maxmargin.features.columns import ColumnTable
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.tagger_file import dense_weights, load_tagger, save_tagger
from maxmargin.selection import FitOptions, fit
from maxmargin.streams import encode
from maxmargin.structures import Chain

HERE = Path(__file__).parent

# Invented words with invented tags: things (T), doings (D), qualities (Q), small words (S).
SENTENCES = """\
blom/T dakt/D ./P|so blom/T dakt/D ./P|da fline/Q blom/T dakt/D ./P|ki da Wurf/T rilt/D ?/P
da Wurf/T rilt/D da blom/T ./P|da osse/Q Wurf/T dakt/D ./P|rilt/D da Wurf/T ?/P|Ketta/T dakt/D !/P
Ketta/T rilt/D 3/Q blom/T ./P|ki Ketta/T grunt/D ?/P|da fline/Q osse/Q Wurf/T grunt/D ./P
Ämo/T grunt/D da Ketta/T ./P|so Ämo/T dakt/D 17/Q blom/T ./P|da blom/T grunt/D ki da Wurf/T ./P
x-blom/T dakt/D ./P|da x-Wurf/T rilt/D 3/Q x-blom/T ./P|fline/Q Ämo/T rilt/D osse/Q Ketta/T !/P
ki dakt/D da blom/T ?/P|so grunt/D da fline/Q Ämo/T ?/P|Ketta/T dakt/D ki Ämo/T rilt/D ./P
17/Q Wurf/T grunt/D ./P|da Wurf/T dakt/D so da blom/T rilt/D ./P|猫/T dakt/D ./P
da 猫/T rilt/D 猫/T !/P
"""
UNSEEN = """\
da fline/Q Dorp/T brilt/D ./P|ki 99/Q x-Ketta/T dakt/D ?/P|猫/T grunt/D|zzz/T|so da Ämo/T rilt/D ./P
"""
TEMPLATE = r"""# a little of everything
U:w-1=%x[-1,0]
U:w0=%x[0,0]
U:low=%X[0,0]
U:w0,+1=%x[0,0]|%X[1,0]
U:len-1=%x[-1,1]
U:first=%x[@1,0]
U:pre=%p[0,0,1]
U:suf=%s[0,0,2]
U:shape=%h[0,0]
U:short=%c[1,0]
U:digit=%t[0,0,"^\d*$"]
U:part=%m[0,0,"^\a-"]
B
"""


def read(text):
    """Rows of [word, length, tag]."""
    sentences = []
    for part in text.replace("\n", "|").split("|"):
        cells = [cell.rpartition("/") if "/" in cell else (cell, "", "S") for cell in part.split()]
        rows = [[word, str(len(word)), tag] for word, _, tag in cells if word]
        if rows:
            sentences.append(rows)
    return sentences


def chunks(sentence):
    """Features with numbers, and labels of chunks: qualities and things are one."""
    features, labels, inside = [], [], False
    for t, (word, length, tag) in enumerate(sentence):
        number = {"length": int(length) / 4, "place": (t + 1) / len(sentence), "dot": -0.5}
        before = {"w": sentence[t - 1][0]} if t else {}
        features.append({"w": word, "end": [word[-1], word[-2:]], "before": before, **number})
        noun = tag in ("Q", "T")
        labels.append("O" if not noun else "I-X" if inside else "B-X")
        inside = noun
    return features, labels


def train(chain, X, Y):
    """Return the weights."""
    batch, codes = chain.learn(X, Y)
    options = FitOptions(gap=0.01, max_passes=200, seed=0)
    return fit(chain, chain.encoded_problem(batch, codes), 0.5, options)


def write(name, chain, outcome, inputs):
    """Write a model, and what it says."""
    path = HERE / f"{name}.mm"
    certificate = {"primal": outcome.certificate.primal, "dual": outcome.certificate.dual}
    meta = {"certificate": certificate, "training": {"C": outcome.C}, "params": {}}
    size = save_tagger(path, chain, outcome.weights, meta)
    model = load_tagger(path)
    weights = model.chain.unpack(dense_weights(model))
    names = model.chain.encoder.feature_names()
    chosen = range(0, len(names), max(1, len(names) // 12))
    expected = {
        "inputs": inputs,
        "labels": chain.predict(inputs, outcome.weights),
        "classes": chain.classes_,
        "label_order": chain.labels_,
        "n_features": len(names),
        "weights": {names[k]: [float(v) for v in weights.coef[k]] for k in chosen},
        "transitions": weights.transitions.tolist(),
        "start": weights.start.tolist(),
        "end": weights.end.tolist(),
        "scores": [paths[0][1] for paths in chain.kbest(inputs, outcome.weights, 1)],
        "meta": meta,
    }
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{path.name}: {size} bytes, {len(names)} features")


def write_objective(name, sentences, inputs):
    """Write a model with its objective, as `SequenceTagger.save` does, and what it says."""
    X, Y = zip(*map(chunks, sentences), strict=True)
    tagger = SequenceTagger(
        C=2.0,
        C_scale="mean",
        loss=[[0, 1, 2.5], [0.5, 0, 1], [3, 1, 0]],
        labels=("O", "B-X", "I-X"),
        allowed="iob2",
        solver=SDM(slack="linear", rescale="slack", cached_passes=7),
        regularizer=ElasticNet(l1_ratio=0.125),
        gap=0.02,
        random_state=0,
    ).fit(list(X), list(Y))
    size = tagger.save(HERE / f"{name}.mm")
    expected = {
        "inputs": inputs,
        "labels": tagger.predict(inputs),
        "certificate": dataclasses.asdict(tagger.certificate_),
    }
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {size} bytes")


def main():
    """Write the files that are not there."""
    sentences = read(SENTENCES)
    if not (HERE / "tagger-objective-v1.mm").exists():
        inputs = [chunks(sentence)[0] for sentence in [*sentences[::4], *read(UNSEEN)]]
        write_objective("tagger-objective-v1", sentences, inputs)
    if not (HERE / "encoded-v1.mme").exists():
        encode([([["dogs"], ["bark"]], ["N", "V"]), ([["cats"]], ["N"])], HERE / "encoded-v1.mme")
    if (HERE / "tagger-v1.mm").exists():
        return
    unseen = [[row[:2] for row in sentence] for sentence in [*sentences[::4], *read(UNSEEN)]]

    table = ColumnTable.from_rows(sentences)
    chain = Chain(encoder=TemplateEncoder(Template.parse(TEMPLATE, "golden"), label_column=2))
    write("tagger-v1", chain, train(chain, table, table.labels(2)), unseen)

    chain = Chain(allowed="iob2")
    X, Y = zip(*map(chunks, sentences), strict=True)
    inputs = [chunks(sentence)[0] for sentence in [*sentences[::4], *read(UNSEEN)]]
    write("tagger-strings-v1", chain, train(chain, list(X), list(Y)), inputs)


if __name__ == "__main__":
    main()
