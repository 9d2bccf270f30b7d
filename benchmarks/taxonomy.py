"""Table 1 of svmstruct on real taxonomies: flat against taxonomy, 0/1 against tree loss.

Claim shown: what a taxonomy is worth in the output features (flt: inner nodes have the weight 0,
which is the multiclass SVM; tax: all nodes have the weight 1, as in the paper) and in the loss
(0/1, or tree: the height of the first common ancestor), with 2 and 4 training documents a class and
with all of them; then what happens to test documents of classes that training never saw, and to
such classes of a made-up lattice.

    python benchmarks/taxonomy.py --data ../shared/data [--draws 5] [--corpora trec_questions]

C, and for the tree loss whether margins or slacks are rescaled, are chosen for each column and draw
on a held-out part of the training file, by the loss that is trained: of few documents, up to 1000
of the others; of all, a quarter, and then the model is trained on all of them. Test data choose
nothing. A fifth column chooses the weights of the nodes in the same way (tax w). Figures are means
over the draws with their standard errors; with all documents there is one draw, and the standard
error is that over test documents. Tree losses are heights, as in the paper. The last line of
standard output is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import SDM, TaxonomySVM
from maxmargin.features.bag_of_words import BagOfWords
from maxmargin.io.labelled_text import read_labelled_text
from maxmargin.structures.taxonomy_graph import TaxonomyGraph, graph_of_labels

#: Corpus -> neighbouring words that make a feature, at most. Questions are short.
CORPORA = {"newsgroups_taxonomy": 1, "trec_questions": 2}

#: The columns of the table: output features and loss.
COLUMNS = (
    ("flt", "0/1"),
    ("tax", "0/1"),
    ("flt", "tree"),
    ("tax", "tree"),
    ("tax w", "tree"),
)

#: The columns whose tree losses are compared.
PAIR = ("flt 0/1", "tax tree")

#: Values of C that are tried.
CS = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Setting:
    """What is chosen on held-out data."""

    C: float
    rescale: str
    weights: str


@dataclass(frozen=True)
class Documents:
    """Texts with their label paths."""

    texts: list[str]
    labels: np.ndarray[Any, Any]

    def __getitem__(self, rows: Any) -> Documents:
        return Documents([self.texts[i] for i in rows], self.labels[rows])

    def __len__(self) -> int:
        return len(self.texts)


class Corpus:
    """Training and test documents, and the taxonomy of all their labels."""

    def __init__(self, folder: Path, name: str, limit: int | None = None) -> None:
        self.name, self.ngrams = name, CORPORA[name]
        self.train, self.test = (
            self._read(folder / name / f"{part}.txt.gz", limit) for part in ("train", "test")
        )
        self.paths = sorted({*self.train.labels, *self.test.labels})
        self.graph = graph_of_labels(self.paths, "/")

    @staticmethod
    def _read(path: Path, limit: int | None) -> Documents:
        texts, labels = read_labelled_text(path)
        step = 1 if limit is None else max(1, len(texts) // limit)
        return Documents(texts[::step], np.array(labels)[::step])

    def rows(self, train: Documents, *others: Documents) -> list[Any]:
        """Return texts in numbers, by the words of the first."""
        bag = BagOfWords(ngrams=self.ngrams)
        return [bag.fit_transform(train.texts), *(bag.transform(o.texts) for o in others)]

    def model(self, features: str, loss: str, setting: Setting, **more: Any) -> TaxonomySVM:
        """Return an estimator that is to be fitted."""
        return TaxonomySVM(
            self.paths,
            loss=loss,
            C=setting.C,
            solver=SDM(rescale=setting.rescale),
            node_weight=node_weight(self.graph, features, setting.weights),
            fit_intercept=False,
            gap=1e-3,
            random_state=0,
            **more,
        )

    def losses(self, truths: Any, found: Any) -> tuple[Any, Any]:
        """Return whether each answer is right, and its tree loss."""
        index = self.graph.index
        pairs = [(index[a], index[b]) for a, b in zip(truths, found, strict=True)]
        known = {pair: self.graph.tree_loss(*pair) for pair in set(pairs)}
        return (
            np.array([float(a == b) for a, b in pairs]),
            np.array([float(known[pair]) for pair in pairs]),
        )


def node_weight(graph: TaxonomyGraph, features: str, weights: str) -> Any:
    """Return the weights of the nodes: none of inner ones for flat classes."""
    if features == "flt":
        inner = np.flatnonzero(graph.heights[1:] > 0) + 1
        return {graph.names[z]: 0.0 for z in inner}
    return None if weights == "one" else weights


def settings(features: str, loss: str) -> list[Setting]:
    """Return what is tried, the preferred among equals first."""
    rescales = ("margin",) if loss == "0/1" else ("margin", "slack")
    weights = ("one", "depth", "branch") if features == "tax w" else ("one",)
    return [Setting(C, r, w) for w, r, C in itertools.product(weights, rescales, CS)]


def choose(corpus: Corpus, column: tuple[str, str], train: Documents, held: Documents) -> Setting:
    """Return the setting with the least loss on held-out documents, of the kind that is trained."""
    X, H = corpus.rows(train, held)
    best, least = None, np.inf
    for setting in settings(*column):
        found = corpus.model(*column, setting).fit(X, train.labels).predict(H)
        right, tree = corpus.losses(held.labels, found)
        loss = float(np.mean(tree if column[1] == "tree" else 1 - right))
        if loss < least:
            best, least = setting, loss
    assert best is not None
    return best


def draw(corpus: Corpus, per_class: int | None, rng: Any) -> tuple[Documents, Documents, Documents]:
    """Return documents to train on, to choose on, and to train on for choosing."""
    order = rng.permutation(len(corpus.train))
    if per_class is None:
        quarter = len(order) // 4
        return corpus.train, corpus.train[order[:quarter]], corpus.train[order[quarter:]]
    labels = corpus.train.labels[order]
    rank = np.empty(len(order), dtype=int)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        rank[places] = np.arange(len(places))
    picked = corpus.train[order[rank < per_class]]
    return picked, corpus.train[order[rank >= per_class][:1000]], picked


def table(corpus: Corpus, per_class: int | None, draws: int) -> dict[str, Any]:
    """Make the rows of one training size."""
    figures: dict[str, list[tuple[float, float]]] = {" ".join(c): [] for c in COLUMNS}
    spread: dict[str, tuple[float, float]] = {}
    trees: dict[str, Any] = {}
    chosen: dict[str, list[str]] = {name: [] for name in figures}
    truths = corpus.test.labels
    n = 1 if per_class is None else draws
    for k in range(n):
        train, held, first = draw(corpus, per_class, np.random.default_rng(k))
        X, T = corpus.rows(train, corpus.test)
        for column in COLUMNS:
            name, setting = " ".join(column), choose(corpus, column, first, held)
            found = corpus.model(*column, setting).fit(X, train.labels).predict(T)
            right, tree = corpus.losses(truths, found)
            figures[name].append((float(right.mean()), float(tree.mean())))
            over = np.sqrt(len(truths))
            spread[name] = float(right.std() / over), float(tree.std() / over)
            trees[name] = tree
            chosen[name].append(f"{setting.C:g} {setting.rescale} {setting.weights}")
    size = "all" if per_class is None else str(per_class)
    print(f"\n{corpus.name}, {size} training documents a class, {n} draw(s)")
    print("           " + "".join(f"{name:>15}" for name in figures))
    result: dict[str, Any] = {}
    for row, what, scale in ((0, "accuracy", 100.0), (1, "tree loss", 1.0)):
        cells = {}
        for name, values in figures.items():
            column_values = np.array([v[row] for v in values]) * scale
            error = spread[name][row] * scale
            if n > 1:
                error = float(column_values.std(ddof=1) / np.sqrt(n))
            cells[name] = (float(column_values.mean()), error)
        form = "{:>8.2f} ± {:4.2f}" if row == 0 else "{:>7.3f} ± {:5.3f}"
        print(f"{what:<11}" + "".join(form.format(*cell) for cell in cells.values()))
        result[what] = cells
    # Paired: by draws, or by test documents where there is one draw.
    gains = np.array([a[1] - b[1] for a, b in zip(*(figures[c] for c in PAIR), strict=True)])
    if n == 1:
        gains = trees["flt 0/1"] - trees["tax tree"]
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))
    result["gain"] = (gain, error)
    share = 100 * gain / max(result["tree loss"]["flt 0/1"][0], 1e-9)
    print(
        f"           tree loss of tax tree below flt 0/1 by {gain:.3f} ± {error:.3f}: {share:.1f} %"
    )
    print("           chosen: " + "; ".join(f"{c}: {most_common(s)}" for c, s in chosen.items()))
    return result


def most_common(chosen: list[str]) -> str:
    """Return the setting that was chosen most often."""
    best = max(dict.fromkeys(chosen), key=chosen.count)
    return f"{best} ({chosen.count(best)} of {len(chosen)})"


def unseen(corpus: Corpus, draws: int) -> dict[str, Any]:
    """Leave classes out of training, one below each node that has several leaves; test on them."""
    below: dict[int, list[str]] = {}
    for label in corpus.paths:
        below.setdefault(corpus.graph.parents[corpus.graph.index[label]][0], []).append(label)
    groups = [labels for node, labels in below.items() if node != 0 and len(labels) > 1]
    columns = {
        "flt 0/1": ("flt", "0/1", "all"),
        "tax tree": ("tax", "tree", "all"),
        "tax tree seen": ("tax", "tree", "seen"),
    }
    figures: dict[str, list[list[float]]] = {name: [] for name in columns}
    for k in range(draws):
        rng = np.random.default_rng(1000 + k)
        left_out = {labels[rng.integers(len(labels))] for labels in groups}
        is_out = np.isin(corpus.train.labels, list(left_out))
        train = corpus.train[np.flatnonzero(~is_out)]
        order = rng.permutation(len(train))
        held, first = train[order[: len(order) // 4]], train[order[len(order) // 4 :]]
        X, T = corpus.rows(train, corpus.test)
        test_out = np.isin(corpus.test.labels, list(left_out))
        chosen: dict[tuple[str, str], Setting] = {}
        for name, (features, loss, rivals) in columns.items():
            if (features, loss) not in chosen:
                chosen[features, loss] = choose(corpus, (features, loss), first, held)
            setting = chosen[features, loss]
            model = corpus.model(features, loss, setting, rivals=rivals).fit(X, train.labels)
            found, truths = model.predict(T), corpus.test.labels
            right, tree = corpus.losses(truths, found)
            parents = [
                corpus.graph.parents[corpus.graph.index[a]]
                == corpus.graph.parents[corpus.graph.index[b]]
                for a, b in zip(truths, found, strict=True)
            ]
            top = [a.split("/")[0] == b.split("/")[0] for a, b in zip(truths, found, strict=True)]
            figures[name].append(
                [
                    100 * float(np.mean(right[test_out])),
                    100 * float(np.mean(np.array(parents)[test_out])),
                    100 * float(np.mean(np.array(top)[test_out])),
                    float(np.mean(tree[test_out])),
                    100 * float(np.mean(right[~test_out])),
                ]
            )
    print(f"\n{corpus.name}, {len(groups)} classes left out of training, {draws} draw(s)")
    rows = (
        "unseen: class right",
        "unseen: parent right",
        "unseen: top node right",
        "unseen: tree loss",
        "seen: class right",
    )
    print(" " * 24 + "".join(f"{name:>17}" for name in figures))
    result: dict[str, Any] = {}
    for j, row in enumerate(rows):
        values = {name: np.array(v)[:, j] for name, v in figures.items()}
        cells = {
            name: (float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v))) if draws > 1 else 0.0)
            for name, v in values.items()
        }
        form = "{:>9.3f} ± {:5.3f}" if "loss" in row else "{:>10.2f} ± {:4.2f}"
        print(f"{row:<24}" + "".join(form.format(*cell) for cell in cells.values()))
        result[row] = cells
    return result


def lattice(draws: int) -> dict[str, Any]:
    """Make up classes with two parents, a colour and a shape; four of 16 are never seen."""
    colours, shapes = ("red", "green", "blue", "grey"), ("disc", "square", "star", "cross")
    columns = {z: k for k, z in enumerate((*colours, *shapes))}
    pairs = list(itertools.product(colours, shapes))
    parents: dict[str, Any] = {f"{c} {s}": [c, s] for c, s in pairs}
    parents |= dict.fromkeys(columns, "thing")
    left_out = {f"{c} {s}" for c, s in zip(colours, shapes, strict=True)}
    figures: dict[str, list[float]] = {}
    for k in range(draws):
        rng = np.random.default_rng(k)

        def looks(label: str, rng: Any = rng) -> Any:
            x = rng.normal(scale=0.2, size=len(columns))
            x[[columns[z] for z in label.split()]] += 1.0
            return x

        labels = [f"{c} {s}" for c, s in pairs if f"{c} {s}" not in left_out] * 6
        truths = sorted(left_out) * 20
        X, T = (np.array([looks(y) for y in some]) for some in (labels, truths))
        for name, rivals, weight in (
            ("flat", "all", 0.0),
            ("all", "all", 1.0),
            ("seen", "seen", 1.0),
        ):
            model = TaxonomySVM(
                parents,
                rivals=rivals,
                node_weight=dict.fromkeys(columns, weight),
                fit_intercept=False,
                gap=1e-3,
                random_state=0,
            )
            found = model.fit(X, labels).predict(T)
            figures.setdefault(name, []).append(100 * float(np.mean(found == np.array(truths))))
    print(f"\nmade up: 12 of 16 pairs of a colour and a shape are trained, {draws} draw(s)")
    result = {}
    for name, values in figures.items():
        error = float(np.std(values, ddof=1) / np.sqrt(draws)) if draws > 1 else 0.0
        result[name] = (float(np.mean(values)), error)
        title = "flat classes" if name == "flat" else f"lattice, rivals={name}"
        print(
            f"  {title:<22} class right, of the other four: {np.mean(values):5.1f} ± {error:.1f} %"
        )
    return result


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with trec_questions/ ...")
    parser.add_argument("--corpora", default=",".join(CORPORA), help="of %(default)s")
    parser.add_argument("--draws", type=int, default=5, help="for 2 and 4 documents a class")
    parser.add_argument("--sizes", default="2,4,all", help="documents a class")
    parser.add_argument("--limit", type=int, help="read about so many documents of each file")
    options = parser.parse_args(arguments)
    begin = time.process_time()
    results: dict[str, Any] = {}
    for name in options.corpora.split(","):
        corpus = Corpus(options.data, name, options.limit)
        print(
            f"{name}: {len(corpus.train)} training and {len(corpus.test)} test documents, "
            f"{len(corpus.paths)} classes, {len(corpus.graph.names)} nodes, height "
            f"{corpus.graph.heights[0]}"
        )
        for size in options.sizes.split(","):
            per_class = None if size == "all" else int(size)
            results[f"{name} {size}"] = table(corpus, per_class, options.draws)
        results[f"{name} unseen"] = unseen(corpus, options.draws)
    results["lattice"] = lattice(options.draws)
    results["cpu_seconds"] = round(time.process_time() - begin, 1)
    print(f"\n{results['cpu_seconds']} seconds of CPU time")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
