"""The task ``classes``: documents or rows of numbers with one class each (`MulticlassSVM`)."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, ClassVar

from maxmargin.cli.options import at_least, number
from maxmargin.cli.tasks.base import Examples, Task
from maxmargin.errors import ModelFormatError
from maxmargin.io.compression import plain_name
from maxmargin.printable import quoted

if TYPE_CHECKING:
    import argparse

    from maxmargin.estimators.classes import MulticlassSVM
    from maxmargin.metrics import TagReport

__all__ = ["ClassesTask"]

TEXT, SVMLIGHT = "text", "svmlight"
#: Names of files that end so are of SVM-light's format, also with .gz and the like behind.
ENDINGS = (".svm", ".svmlight", ".libsvm")


class ClassesTask(Task):
    """Documents (``label TAB text``) or rows of numbered features, with one class each."""

    name: ClassVar[str] = "classes"
    items: ClassVar[str] = "documents"
    default_C: ClassVar[float] = 1.0
    epilog: ClassVar[str] = """\
A file has a document in each line: its label, a tab, its text. Files whose names end with .svm,
.svmlight or .libsvm (or --format svmlight) have numbered features: LABEL 3:0.5 7:1 ...

  maxmargin train --task classes train.tsv -m news.mm --ngrams 2 --min-count 2
  maxmargin eval -m news.mm test.tsv --json
  maxmargin predict -m news.mm new.txt
"""

    def add_options(self, group: Any) -> None:
        """Add the options of the task."""
        group.add_argument(
            "--format",
            choices=(TEXT, SVMLIGHT),
            help="of the files (default: by the name of TRAIN)",
        )
        group.add_argument(
            "--ngrams",
            type=at_least(1, 10),
            metavar="N",
            help="up to N neighbouring words make a feature (default: 1)",
        )
        group.add_argument(
            "--min-count",
            type=at_least(1),
            metavar="N",
            help="a word or n-gram occurs in at least N documents (default: 1)",
        )
        values = group.add_mutually_exclusive_group()
        for weighting, text in (
            (
                "tfidf",
                "logarithms of counts, times inverse document frequency, length one (default)",
            ),
            ("log", "logarithms of counts, length one"),
            ("counts", "counts as they are"),
            ("binary", "1 for every word that occurs"),
        ):
            values.add_argument(
                f"--{weighting}",
                dest="weighting",
                action="store_const",
                const=weighting,
                help=f"values of words: {text}",
            )
        group.add_argument(
            "--keep-case",
            action="store_true",
            help="tell upper from lower case",
        )
        group.add_argument(
            "--class-weight",
            choices=("balanced",),
            help="balanced: all classes count alike, however many documents they have",
        )
        group.add_argument("--no-bias", action="store_true", help="no bias for each class")
        group.add_argument(
            "--bias-scale",
            type=number(0, open_low=True),
            default=1.0,
            metavar="VALUE",
            help="the bias is the weight of a feature with this value; the larger, the less it is "
            "regularised (default: 1)",
        )

    def check(self, options: argparse.Namespace) -> None:
        """Refuse options of words for files without words."""
        given = {
            "--ngrams": options.ngrams,
            "--min-count": options.min_count,
            f"--{options.weighting}": options.weighting,
            "--keep-case": options.keep_case or None,
        }
        if self.reading(options)["format"] == SVMLIGHT:
            for name, value in given.items():
                if value is not None:
                    raise ValueError(
                        f"{name} is for texts; {options.train} is of the format svmlight"
                    )

    def reading(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return the format of the files."""
        found = options.format
        if found is None:
            bare = plain_name(str(options.train))
            found = SVMLIGHT if bare.endswith(ENDINGS) else TEXT
        return {"format": found}

    def read(self, path: Any, reading: dict[str, Any], *, truths: bool) -> Examples:
        """Read a file. The first one, that of the training, says how many features there are."""
        kind = reading.get("format", TEXT)
        if kind == TEXT:
            from maxmargin.io.labelled_text import read_labelled_text

            texts, labels = read_labelled_text(path, truths)
            return Examples(texts, labels, texts)
        if kind != SVMLIGHT:
            raise ModelFormatError(
                f"the model says that its files are of the format {quoted(kind)}"
            )
        from maxmargin.io.svmlight import read_svmlight

        known = reading.get("n_features")
        if known is not None and (type(known) is not int or not 1 <= known < 2**31):
            raise ModelFormatError(f"the model says that it has {quoted(known)} features")
        X, y = read_svmlight(path, known, drop_beyond=known is not None)
        reading.setdefault("n_features", int(X.shape[1]))
        return Examples(X, y if truths else None)

    def make(self, options: argparse.Namespace, **common: Any) -> MulticlassSVM:
        """Return the estimator that the options describe."""
        from maxmargin.estimators.classes import MulticlassSVM

        return MulticlassSVM(**self.class_options(options), **common)

    def class_options(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return the parameters that the options of this task are about.

        Parameters
        ----------
        options : argparse.Namespace
            The arguments of ``maxmargin train``.
        """
        features: dict[str, Any] | None = None
        if self.reading(options)["format"] == TEXT:
            features = {
                "ngrams": options.ngrams or 1,
                "min_count": options.min_count or 1,
                "weighting": options.weighting or "tfidf",
                "lowercase": not options.keep_case,
            }
        return {
            "features": features,
            "class_weight": options.class_weight,
            "fit_intercept": not options.no_bias,
            "intercept_scaling": options.bias_scale,
        }

    def write(self, out: IO[bytes], examples: Examples, predicted: Any) -> None:
        """Write ``label TAB text``, or the label alone where there is no text."""
        labels = [str(label) for label in predicted]
        if examples.raw is None:
            out.write("".join(f"{label}\n" for label in labels).encode("utf-8"))
            return
        from maxmargin.io.labelled_text import write_labelled_text

        write_labelled_text(out, labels, examples.raw)

    def score(self, examples: Examples, predicted: Any) -> dict[str, Any]:
        """Return the share of right classes, and the mean of the F1 of all classes."""
        from collections import Counter

        truths, answers = list(examples.y), [str(label) for label in predicted]
        right = Counter(t for t, a in zip(truths, answers, strict=True) if t == a)
        true, given = Counter(truths), Counter(answers)
        f1 = [2 * right[c] / (true[c] + given[c]) for c in true | given]
        return {
            "accuracy": sum(right.values()) / len(truths),
            "macro_f1": sum(f1) / len(f1),
        }

    def report(self, examples: Examples, predicted: Any) -> TagReport:
        """Return the scores of each class."""
        from maxmargin.metrics import evaluate

        return evaluate([[str(y)] for y in examples.y], [[str(label)] for label in predicted])
