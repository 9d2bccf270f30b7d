"""The task ``taxonomy``: documents whose class is a label path (`TaxonomySVM`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from maxmargin.cli.tasks.base import Examples
from maxmargin.cli.tasks.classes import TEXT, ClassesTask
from maxmargin.cli.tasks.encodings import in_utf8
from maxmargin.errors import FileFormatError, ModelFormatError
from maxmargin.printable import quoted

if TYPE_CHECKING:
    import argparse

    from maxmargin.estimators.classes import MulticlassSVM

__all__ = ["TaxonomyTask"]

SEPARATOR = "/"


class TaxonomyTask(ClassesTask):
    """Documents (``label path TAB text``) with a class that is a node of a taxonomy."""

    name: ClassVar[str] = "taxonomy"
    epilog: ClassVar[str] = """\
A file has a document in each line: its label path, a tab, its text.

  rec/sport/hockey	The goalie was hurt in the second period ...

The taxonomy is that of the label paths, or of the file of --taxonomy (a label path in each line),
which may have classes without any document: they can be predicted by what their parents learned.
eval --json has accuracy, tree_loss (the mean height of the first common ancestor of truth and
answer, divided by the height of the root) and parent_accuracy.

  maxmargin train --task taxonomy train.txt -m news.mm
  maxmargin eval -m news.mm test.txt --json
  maxmargin predict -m news.mm new.txt
"""

    def add_options(self, group: Any) -> None:
        """Add the options of the task."""
        super().add_options(group)
        group.add_argument(
            "--taxonomy", metavar="FILE", help="all classes: a file with a label path in each line"
        )
        group.add_argument(
            "--separator",
            default=SEPARATOR,
            metavar="TEXT",
            help="between the names of a label path (default: /)",
        )
        group.add_argument(
            "--loss",
            choices=("tree", "tree_share", "0/1"),
            default="tree",
            help="what an error costs: the height of the first common ancestor, the same divided "
            "by the height of the root, or 1 (default: tree)",
        )
        group.add_argument(
            "--node-weight",
            choices=("depth", "inverse_depth", "branch"),
            help="weights of the nodes of the taxonomy (default: 1 for all)",
        )
        group.add_argument(
            "--inner-labels",
            action="store_true",
            help="every node may be a label, not only the leaves",
        )
        group.add_argument(
            "--unique-names",
            action="store_true",
            help="refuse a name that stands under two parents",
        )
        group.add_argument(
            "--rivals",
            choices=("all", "seen"),
            default="all",
            help="train against all classes, or against those with documents (default: all)",
        )

    def check(self, options: argparse.Namespace) -> None:
        """Refuse a separator that cannot be one."""
        super().check(options)
        if not options.separator or "\t" in options.separator or "\n" in options.separator:
            raise ValueError(
                f"--separator is {quoted(options.separator)}; expected some text without tabs and "
                "ends of lines"
            )

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return the format of the files, and what label paths must be like."""
        return {
            **super().reading(options),
            "separator": options.separator,
            "leaves": not options.inner_labels,
            "unique_names": options.unique_names,
        }

    def read(self, path: Any, reading: dict[str, Any], *, truths: bool) -> Examples:
        """Read a file and check its label paths."""
        examples = super().read(path, reading, truths=truths)
        if truths:
            _check_paths(path, examples.y, reading)
        return examples

    def make(self, options: argparse.Namespace, **common: Any) -> MulticlassSVM:
        """Return the estimator that the options describe."""
        from maxmargin.estimators.taxonomy import TaxonomySVM

        taxonomy = None
        if options.taxonomy is not None:
            taxonomy = _read_taxonomy(
                in_utf8(options.taxonomy, options.encoding), self.reading(options)
            )
        return TaxonomySVM(
            taxonomy,
            classes="all" if options.inner_labels else "leaves",
            loss=options.loss,
            node_weight=options.node_weight,
            rivals=options.rivals,
            separator=options.separator,
            unique_names=options.unique_names,
            **self.class_options(options),
            **common,
        )

    def score(self, examples: Examples, predicted: Any) -> dict[str, Any]:
        """Return the share of right classes, which needs no taxonomy."""
        return {"accuracy": super().score(examples, predicted)["accuracy"]}

    def score_model(self, examples: Examples, predicted: Any, model: Any) -> dict[str, Any]:
        """Return accuracy, tree loss and accuracy of the parents, by the model's taxonomy."""
        from maxmargin.structures.taxonomy_scores import taxonomy_figures

        figures = taxonomy_figures(
            model.graph_,
            examples.y,
            predicted,
            separator=_separator(getattr(model, "file_meta_", {})),
        )
        return {
            "accuracy": figures.accuracy,
            "tree_loss": figures.tree_loss,
            "parent_accuracy": figures.parent_accuracy,
        }


def _separator(reading: dict[str, Any]) -> str:
    found = reading.get("separator", SEPARATOR)
    if not isinstance(found, str) or not found:
        raise ModelFormatError(
            f"the model says that {quoted(found)} stands between the names of paths"
        )
    return found


def _check_paths(path: Any, labels: Iterable[Any], reading: dict[str, Any]) -> None:
    """Refuse label paths with empty names, or that contradict each other; name the lines."""
    from maxmargin.structures.taxonomy_graph import graph_of_labels, path_prefixes

    separator = _separator(reading)
    first: dict[str, int] = {}
    for i, label in enumerate(labels):
        first.setdefault(str(label), i)
    inner: dict[str, str] = {}
    for label, i in first.items():
        try:
            *above, _ = path_prefixes(label, separator)
        except ValueError as error:
            raise FileFormatError(f"{_place(path, i, reading)}: {error}") from error
        inner.update(dict.fromkeys(above, label))
    both = next((label for label in first if label in inner), None)
    if reading.get("leaves", True) and both is not None:
        other = inner[both]
        raise FileFormatError(
            f"{_place(path, first[both], reading)}: label paths contradict each other: "
            f"{quoted(both)} is a label, but {quoted(other)} lies below it (first in "
            f"{_place(path, first[other], reading, short=True)}); expected leaves "
            "(--inner-labels allows both)"
        )
    if reading.get("unique_names") is True:
        try:
            graph_of_labels(first, separator, unique_names=True)
        except ValueError as error:
            raise FileFormatError(f"{path}: {error}") from error


def _place(path: Any, i: int, reading: dict[str, Any], *, short: bool = False) -> str:
    """Return file and line of document i, or its number where the file cannot be read again."""
    place = f"document {i + 1}"
    if reading.get("format", TEXT) == TEXT and str(path) != "-":
        from maxmargin.io.lines import read_lines

        if hasattr(path, "seek"):  # a file in memory, from its beginning again
            path.seek(0)
        lines, _ = read_lines(path)
        place = f"line {[n for n, line in enumerate(lines, 1) if line.strip()][i]}"
    return place if short else f"{path}: {place}"


def _read_taxonomy(path: Any, reading: dict[str, Any]) -> list[str]:
    """Read label paths, one a line."""
    from maxmargin.io.lines import read_lines
    from maxmargin.structures.taxonomy_graph import path_prefixes

    lines, source = read_lines(path)
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            path_prefixes(line.strip(), _separator(reading))
        except ValueError as error:
            raise FileFormatError(f"{source}: line {number}: {error}") from error
        found.append(line.strip())
    if not found:
        raise FileFormatError(f"{source}: holds no label path; expected one a line")
    return found
