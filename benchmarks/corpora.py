"""The corpora of the SDM paper's tables in numbers, for `table2.py` and `table3.py`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.features.columns import ColumnTable
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.columns import read_columns
from maxmargin.structures import Chain
from peers import TASKS

#: Task -> name of the set that it stands for in the paper.
IN_THE_PAPER = {"chunking": "CoNLL", "pos": "POS", "jnlpba": "BioNLP", "bc2gm": "BioCreative"}

#: Sentences of each file with --quick.
QUICK = 300


class Corpus:
    """A task in numbers: the training problem, and a score on the test data."""

    def __init__(self, folder: Path, task: str, limit: int | None = None) -> None:
        about = TASKS[task]
        column = -1 if about.label_column is None else about.label_column
        train, labels = self._read(folder / about.corpus / "train.tsv.gz", limit).labelled(column)
        test = self._read(folder / about.corpus / "test.tsv.gz", limit)
        self.title = about.title
        self.chain = Chain(encoder=TemplateEncoder(Template.load(about.template)))
        self.batch, codes = self.chain.learn(train, labels)
        self.problem = self.chain.encoded_problem(self.batch, codes)
        self._test = self.chain.encoder.transform(test)
        self._truth = self.chain.known_codes(test.labels(column))

    @staticmethod
    def _read(path: Path, limit: int | None) -> ColumnTable:
        table = read_columns(path)
        return table if limit is None else ColumnTable.from_rows(table.rows()[:limit])

    def accuracy(self, weights: Any) -> float:
        """Share of test tokens that are labelled right."""
        return float(np.mean(self.chain.predict_encoded(self._test, weights) == self._truth))

    def __str__(self) -> str:
        return (
            f"{self.title}: {self.problem.n_examples} sentences, {self.batch.n_tokens} tokens, "
            f"{self.batch.n_sparse} features, {self.chain.n_labels} labels"
        )


def corpus_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that both tables have."""
    parser.add_argument("--data", type=Path, required=True, help="folder with conll2000/ ...")
    parser.add_argument("--tasks", default=",".join(IN_THE_PAPER), help="of %(default)s")
    parser.add_argument("--C", default="0.1,1", help="values of C")
    help_quick = f"the first {QUICK} sentences of each file, to see whether all works"
    parser.add_argument("--quick", action="store_true", help=help_quick)


def chosen(parser: argparse.ArgumentParser, args: Any) -> tuple[list[str], list[float]]:
    """Return the tasks and the values of C that were asked for."""
    tasks = args.tasks.split(",")
    if not set(tasks) <= set(IN_THE_PAPER):
        parser.error(f"--tasks takes some of {', '.join(IN_THE_PAPER)}; got {args.tasks}")
    try:
        return tasks, [float(C) for C in args.C.split(",")]
    except ValueError:
        parser.error(f"--C takes numbers with commas between; got {args.C}")
