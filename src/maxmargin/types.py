"""Types of what users hand over: sequences, labels, matrices, losses.

They say what a call takes, for readers and for type checkers, and are for annotations of your own
too. Nothing is checked by them when a program runs; the checks are where the data are read. Types
of SciPy, pandas, polars, pyarrow and networkx are described by what is used of them
(`SparseMatrix`, `DataFrame`, `Graph`), since not all of these libraries are there, or have types.

An element of a container is ``Any`` where only a structure of the user's knows what it is. So is a
label that is a key of a mapping: mappings are invariant in their keys, so that a
``dict[str, float]`` would not be a mapping of labels to numbers otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.constraints.sets import ConstraintSet
from maxmargin.features.columns import ColumnTable, LabelCodes
from maxmargin.features.embeddings import Embeddings
from maxmargin.features.encoded import EncodedSequences
from maxmargin.features.template import Template
from maxmargin.trees import Tree

__all__ = [
    "Alignments",
    "Allowed",
    "Bags",
    "ClassWeight",
    "ConstraintsLike",
    "DataFrame",
    "EmbeddingsLike",
    "Examples",
    "FeatureFunction",
    "Graph",
    "LabelLoss",
    "LabelSequences",
    "Labels",
    "Matrix",
    "NodeWeights",
    "Pairs",
    "PathLike",
    "Sentences",
    "SequenceLike",
    "Sequences",
    "SparseMatrix",
    "StreamSource",
    "SubstitutionPrior",
    "TaxonomyLike",
    "TemplateLike",
    "TextFeatures",
    "TokenWeights",
    "Trees",
]


class SparseMatrix(Protocol):
    """A matrix that keeps what is not zero: any format of SciPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """Return it as compressed rows."""


class DataFrame(Protocol):
    """A table of pandas, polars or pyarrow."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


class Graph(Protocol):
    """A directed graph of networkx."""

    @property
    def nodes(self) -> Any:
        """The nodes."""

    @property
    def edges(self) -> Any:
        """The edges, from parents to children."""


#: The name of a file.
PathLike: TypeAlias = str | os.PathLike[str]
#: Examples of a structure that alone knows what they are.
Examples: TypeAlias = Sequence[Any] | NDArray[Any]
#: A row an example.
Matrix: TypeAlias = ArrayLike | SparseMatrix | DataFrame

#: A sequence: a list of tokens (feature dicts, lists of strings, rows of columns, or what a
#: function makes features of), an array, a sparse matrix, a data frame, or a tuple of two of these.
SequenceLike: TypeAlias = Sequence[object] | NDArray[Any] | SparseMatrix | DataFrame
#: Sequences, all of one kind; a table of columns; or what was encoded before.
Sequences: TypeAlias = (
    Sequence[SequenceLike] | NDArray[np.object_] | ColumnTable | EncodedSequences
)
#: A label for every token of every sequence.
LabelSequences: TypeAlias = (
    Sequence[Sequence[Hashable] | NDArray[Any]] | NDArray[np.object_] | LabelCodes
)
#: A number for every token of every sequence; None: 1 for all.
TokenWeights: TypeAlias = Sequence[ArrayLike] | NDArray[Any] | None
#: All labels, in their order; None: those of the data.
Labels: TypeAlias = Sequence[Hashable] | NDArray[Any] | None
#: What an error costs: a name, a matrix over the labels, or costs by truth and answer.
LabelLoss: TypeAlias = str | ArrayLike | Mapping[tuple[Any, Any], float]
#: Factors of the cost by the true label: a mapping, or "balanced".
ClassWeight: TypeAlias = Mapping[Any, float] | str | None
#: Which labels may follow each other: a name, a function of two labels, or a matrix.
Allowed: TypeAlias = str | Callable[[Any, Any], bool] | ArrayLike | None
#: Makes features, a list of strings or a dict for each token, of a sequence.
FeatureFunction: TypeAlias = Callable[[Any], Any]
#: How rows of columns become features; None: they are features already.
TemplateLike: TypeAlias = str | os.PathLike[str] | Template | FeatureFunction | None
#: Vectors of words: a file, or a mapping of words to vectors.
EmbeddingsLike: TypeAlias = str | os.PathLike[str] | Mapping[str, ArrayLike] | Embeddings | None
#: Prior knowledge about labellings, or a file with it.
ConstraintsLike: TypeAlias = ConstraintSet | str | os.PathLike[str] | None
#: Where a stream of labelled sequences comes from: encoded data, files, a pyarrow Dataset, pairs
#: (x, y), or a function that returns such pairs.
StreamSource: TypeAlias = (
    EncodedSequences
    | str
    | os.PathLike[str]
    | Iterable[object]
    | Callable[[], Iterable[tuple[Any, Any]]]
    | DataFrame
)

#: How texts become rows: None (they are rows), "words", or the options of a bag of words.
TextFeatures: TypeAlias = str | Mapping[str, Any] | None
#: A taxonomy: label paths, the parent or parents of each node, or a graph; None: of the labels.
TaxonomyLike: TypeAlias = Sequence[str] | Mapping[Any, Any] | Graph | None
#: Weights of the nodes of a taxonomy: a rule, a mapping, or an array.
NodeWeights: TypeAlias = str | Mapping[Any, float] | ArrayLike | None
#: Examples that are matrices, of any number of rows each.
Bags: TypeAlias = Sequence[ArrayLike | SparseMatrix] | NDArray[Any]

#: Sentences: of (word, tag) pairs, of words, or trees, of which the leaves are taken.
Sentences: TypeAlias = Sequence[Sequence[object] | Tree] | NDArray[np.object_]
#: Trees, as `maxmargin.Tree`, as texts in brackets, or as nested tuples.
Trees: TypeAlias = Sequence[Tree | str | tuple[Any, ...]] | NDArray[np.object_]
#: Two sequences each, with features of their letters or with decoys perhaps.
Pairs: TypeAlias = Sequence[object] | NDArray[np.object_]
#: Alignments of pairs, in any of the forms of `maxmargin.Alignment`.
Alignments: TypeAlias = Sequence[object] | NDArray[np.object_]
#: Scores of letters that are known beforehand: a name, or (alphabet, matrix, gap open, gap extend).
SubstitutionPrior: TypeAlias = str | tuple[str, ArrayLike, float, float] | None
