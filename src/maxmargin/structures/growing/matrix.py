"""Examples with one row of numbers each, which become more: classes, taxonomies, rows with a sign.

The number of features is that of the first examples. `Multiclass` takes new classes in, unless
all of them were given (``labels``): the weights get a column more. `Taxonomy` and `Binary` know
their classes from the first examples, or from what was given.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features.example_matrix import ExampleMatrix, example_matrix
from maxmargin.structures.chain_layout import weight_dtype
from maxmargin.structures.class_labels import (
    class_costs,
    encode_classes,
    example_weights,
    known_classes,
)
from maxmargin.structures.growing.base import Change, Growing
from maxmargin.structures.multiclass import Multiclass
from maxmargin.structures.ragged import Schema
from maxmargin.structures.rows import LinearRows
from maxmargin.structures.taxonomy import Taxonomy

__all__ = ["GrowingClasses", "GrowingRows", "GrowingTaxonomy"]


class GrowingMatrix(Growing):
    """What structures over matrices share."""

    #: Arrays of the examples besides those of the matrix.
    OWN: tuple[str, ...] = ("labels",)

    def __init__(self, structure: Any, dtype: str) -> None:
        super().__init__(structure, dtype)
        arrays = dict.fromkeys((*self.OWN, "dense64", "example_weight"), "example")
        arrays |= dict.fromkeys(("indices", "values", "values64"), "entry")
        self.schema = Schema(
            {"indptr": ("example", "entry")},
            arrays,
            ones=("values", "values64", "example_weight"),
            counted_by=self.OWN[0],
        )
        self._sparse: bool | None = None

    @abstractmethod
    def _encoded(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        """Return later examples, by what is known."""

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        """Learn the number of features and the classes of the first examples."""
        prepared = self.structure.prepare_problem(X, Y, **fit_params, dtype=self.dtype)
        return self.adopt(prepared.parts)[0]

    def adopt(self, parts: dict[str, Any]) -> tuple[dict[str, Any], None]:
        """Go on from what ``fit`` made."""
        self._sparse = parts.get("indptr") is not None
        return self._canonical(parts), None

    def more(
        self, X: Any, Y: Any, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Change | None]:
        """Take examples in."""
        return self._encoded(X, Y, fit_params), None

    def _matrix(self, X: Any, n: int) -> dict[str, Any]:
        """Return the rows of examples, checked against those of the first ones."""
        words = getattr(self.structure, "words", None)
        matrix = (
            example_matrix(X, self.structure.n_columns_) if words is None else words.transform(X)
        )
        if matrix.shape[0] != n:
            raise ValueError(
                f"X has {matrix.shape[0]} examples and y has {n} labels; expected as many"
            )
        arrays = ExampleMatrix(matrix, self.structure.bias, weight_dtype(self.dtype).name).arrays
        if (arrays.get("indptr") is not None) != self._sparse:
            kinds = ("dense", "sparse")
            raise ValueError(
                f"X is {kinds[not self._sparse]}, and that of the first examples was "
                f"{kinds[bool(self._sparse)]}; expected the same"
            )
        return arrays

    def _canonical(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arrays of examples, of one type each."""
        kept = {name: parts.get(name) for name in (*self.schema.pointers, *self.schema.arrays)}
        if parts.get("dense32") is not None:
            kept["dense64"] = np.ascontiguousarray(parts["dense32"], dtype=np.float64)
        wide = self.dtype == "float64"
        for name, other, kind in (
            ("values", "values64", np.float64),
            ("values64", "values", np.float32),
        ):
            if kept[name] is not None and wide == (name == "values"):
                kept[other], kept[name] = np.ascontiguousarray(kept[name], dtype=kind), None
        return kept

    def _n_sparse(self) -> int:
        return self.structure.n_columns_ if self._sparse else 0

    def join(self, several: list[dict[str, Any]]) -> dict[str, Any]:
        """Return examples one behind the other."""
        return self.schema.join(several)

    def take(self, data: dict[str, Any], examples: NDArray[Any]) -> dict[str, Any]:
        """Return some of the examples."""
        return self.schema.take(data, examples)

    def count(self, data: dict[str, Any]) -> int:
        """Return the number of examples."""
        return self.schema.count(data)


class GrowingClasses(GrowingMatrix):
    """The examples of classes; see `Growing`."""

    structure: Multiclass
    relayouts = True

    def _encoded(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        codes = known_classes(Y, self.structure._codes)
        return self._parts(X, codes, fit_params)

    def _parts(
        self, X: Any, codes: NDArray[np.int32], fit_params: Mapping[str, Any]
    ) -> dict[str, Any]:
        weights = example_weights(fit_params.get("sample_weight"), len(codes))
        own = {"labels": codes, "example_weight": weights}
        return self._canonical({**self._matrix(X, len(codes)), **own})

    def more(
        self, X: Any, Y: Any, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Change | None]:
        """Take examples in, with the classes that they bring."""
        known = self.structure.classes_
        if self.structure.labels is not None:
            encode_classes(Y, self.structure.labels)  # which names one that is not among them
            return self._encoded(X, Y, fit_params), None
        own, found = encode_classes(Y)
        new = [label for label in found if label not in self.structure._codes]
        if not new:
            return self._encoded(X, Y, fit_params), None
        classes = [*known, *new]
        with contextlib.suppress(TypeError):
            classes = sorted(classes)
        place = {label: k for k, label in enumerate(classes)}
        codes = np.array([place[label] for label in found], np.int32)[own]
        cost = class_costs(self.structure.loss_spec, classes)
        parts = self._parts(X, codes, fit_params)
        return parts, self._take_classes(classes, cost)

    def _take_classes(self, classes: list[Any], cost: Any) -> Change:
        """Know these classes, and say what changes by that."""
        structure = self.structure
        old = structure.classes_
        rows, width = structure.n_rows, structure._width
        before = {kind: width(np.dtype(kind)) for kind in ("float32", "float64")}
        structure._set(classes, structure.n_columns_, cost)
        place = np.array([structure._codes[label] for label in old], np.uint32)

        def sums(u: NDArray[Any]) -> NDArray[Any]:
            after = _native.aligned_array(rows * width(u.dtype), u.dtype == np.float32)
            after[:] = 0
            mine = u.reshape(rows, before[u.dtype.name])[:, : len(old)]
            after.reshape(rows, -1)[:, place] = mine
            return after  # type: ignore[no-any-return]

        def renumbered(data: dict[str, Any]) -> dict[str, Any]:
            return {**data, "labels": place[data["labels"]].astype(np.int32)}

        return Change(lambda codes: place[codes], sums, renumbered)

    def problem(self, data: dict[str, Any]) -> _native.Problem:
        """Return examples as a native problem."""
        structure = self.structure
        return _native.MulticlassProblem(
            n_classes=len(structure.classes_),
            cost=structure._cost,
            n_sparse=self._n_sparse(),
            **data,
        )


class GrowingTaxonomy(GrowingMatrix):
    """The examples of classes in a taxonomy, whose nodes are fixed; see `Growing`."""

    structure: Taxonomy

    def __init__(self, structure: Taxonomy, dtype: str) -> None:
        super().__init__(structure, dtype)
        if structure.rivals == "seen":
            raise NotCompatibleError(
                'rivals="seen" asks which classes all training data have; partial_fit needs '
                'rivals="all"'
            )

    def _encoded(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        codes = known_classes(Y, self.structure._codes)
        weights = example_weights(fit_params.get("sample_weight"), len(codes))
        own = {"labels": codes, "example_weight": weights}
        return self._canonical({**self._matrix(X, len(codes)), **own})

    def problem(self, data: dict[str, Any]) -> _native.Problem:
        """Return examples as a native problem."""
        begins, columns, values = self.structure.known.lambdas
        return _native.TaxonomyProblem(
            n_columns=len(self.structure.nodes_),
            begins=begins,
            columns=columns,
            lambdas=values,
            cost=self.structure._cost,
            n_sparse=self._n_sparse(),
            **data,
        )


class GrowingRows(GrowingMatrix):
    """Rows with a sign: binary classes and regression; see `Growing`."""

    structure: LinearRows
    OWN = ("above", "below")

    def _encoded(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        above, below = self.structure.bounds_of(Y, fit_params.get("margins"))
        weights = example_weights(fit_params.get("sample_weight"), len(above))
        own = {"above": above, "below": below, "example_weight": weights}
        return self._canonical({**self._matrix(X, len(above)), **own})

    def problem(self, data: dict[str, Any]) -> _native.Problem:
        """Return examples as a native problem."""
        return _native.RowProblem(n_sparse=self._n_sparse(), **data)
