"""The built-in templates beside their first versions: scores, features, time and size of models.

C is the default of 0.1, the gap that of 1 %. Scores are F1 of chunks, or accuracy of parts of
speech, in %. Development data are the development file where a corpus has one; else every tenth
sentence of the training file, and the model that is scored there is trained on the others. The
model that is scored on the test file is trained on the whole training file. The second versions
were chosen by ``benchmarks/template_choice.py``, which reads no test file.

    python benchmarks/templates.py --data ../shared/data

Of Brown every sixth training sentence is used, to save time (``--brown 1`` uses all). Times are
processor seconds of the trainings for the test file, old and new by turns, the best of
``--repeats``; ratios are what to look at. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxmargin import ColumnTable, SequenceTagger, evaluate, read_columns
from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES

HELD_OUT = 10  # of so many training sentences one is held out where there is no development file


@dataclass(frozen=True)
class Corpus:
    """A task: the folder, its template, the column that is learnt, and how it is scored."""

    title: str
    folder: str
    template: str
    label_column: int = -1
    chunks: bool = True


CORPORA = {
    "chunking": Corpus("Chunking, CoNLL-2000", "conll2000", "chunking"),
    "esp": Corpus("Names, CoNLL-2002 Spanish", "conll2002_esp", "ner"),
    "bc2gm": Corpus("Genes, BC2GM", "bc2gm", "ner"),
    "jnlpba": Corpus("Names, JNLPBA", "jnlpba", "ner"),
    "pos": Corpus("Parts of speech, CoNLL-2000", "conll2000", "pos", 1, chunks=False),
    "wsj": Corpus("Parts of speech, WSJ sample", "wsj_sample_pos", "pos", chunks=False),
    "brown": Corpus("Parts of speech, Brown", "brown_pos", "pos", chunks=False),
}


def labelled(rows: list[Any], corpus: Corpus) -> Any:
    """Return sentences as a table, and their labels."""
    return ColumnTable.from_rows(rows).labelled(corpus.label_column)


def development(folder: Path, corpus: Corpus, every: int = 1) -> tuple[Any, Any, Any]:
    """Return what is trained on and scored for a choice, and the whole training data."""
    whole = read_columns(folder / corpus.folder / "train.tsv.gz").rows()[::every]
    path = folder / corpus.folder / "dev.tsv.gz"
    if path.exists():
        train, held = whole, read_columns(path).rows()
    else:
        held = whole[::HELD_OUT]
        train = [sentence for i, sentence in enumerate(whole) if i % HELD_OUT]
    return labelled(train, corpus), labelled(held, corpus), labelled(whole, corpus)


def score(tagger: SequenceTagger, data: Any, *, chunks: bool) -> float:
    """Return F1 of chunks, or accuracy, in %."""
    found = evaluate(data[1].sequences(), tagger.predict(data[0]).tolist())
    return 100 * float(found.f1 if chunks else found.token_accuracy)


def train(template: Any, data: Any, **options: Any) -> tuple[SequenceTagger, float]:
    """Train with the defaults; return the tagger and the seconds of the processor."""
    begin = time.process_time()
    tagger = SequenceTagger(template=template, random_state=0, **options).fit(*data)
    return tagger, time.process_time() - begin


def measure(folder: Path, corpus: Corpus, every: int, repeats: int) -> dict[str, Any]:
    """Measure the old and the new template on one corpus."""
    part, held, whole = development(folder, corpus, every)
    test = labelled(read_columns(folder / corpus.folder / "test.tsv.gz").rows(), corpus)
    versions = {"old": f"{corpus.template}@1", "new": corpus.template}
    about: dict[str, Any] = {name: {"seconds": math.inf} for name in versions}
    for _ in range(repeats):
        for name, template in versions.items():
            tagger, seconds = train(template, whole)
            about[name]["seconds"] = min(about[name]["seconds"], seconds)
            about[name]["tagger"] = tagger
    for name, template in versions.items():
        tagger = about[name].pop("tagger")
        begin = time.process_time()
        about[name]["test"] = score(tagger, test, chunks=corpus.chunks)
        about[name]["seconds_tag"] = time.process_time() - begin
        about[name]["n_features"] = tagger.structure_.encoder.n_sparse
        with tempfile.TemporaryDirectory() as temporary:
            about[name]["megabytes"] = tagger.save(Path(temporary) / "m.mm") / 1e6
        if part[0].n_sequences != whole[0].n_sequences:
            tagger = train(template, part)[0]
        about[name]["dev"] = score(tagger, held, chunks=corpus.chunks)
    return about


def row(title: str, about: dict[str, Any]) -> str:
    """Return a line of the table."""
    old, new = about["old"], about["new"]
    cells = [title]
    for kind in ("dev", "test"):
        cells.append(f"{old[kind]:.2f} → {new[kind]:.2f} ({new[kind] - old[kind]:+.2f})")
    cells.append(f"{old['n_features']:,} → {new['n_features']:,}")
    cells += [f"{new[kind] / old[kind]:.2f}" for kind in ("seconds", "seconds_tag", "megabytes")]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--corpora", default=",".join(CORPORA), help="of %(default)s")
    parser.add_argument("--brown", type=int, default=6, metavar="N", help="every Nth sentence")
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    for name, text in BUILTIN_TEMPLATES.items():
        if "@" in name:
            print(f"{name}: {sum(line.startswith('U') for line in text.splitlines())} features")
    print("| | development, % | test, % | features | training time | tagging time | model size |")
    print("|---|---|---|---|---|---|---|")
    result = {}
    for name in args.corpora.split(","):
        every = args.brown if name == "brown" else 1
        result[name] = measure(args.data, CORPORA[name], every, args.repeats)
        print(row(CORPORA[name].title, result[name]), flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
