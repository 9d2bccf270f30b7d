"""Label sequences that become more, with new features and new labels.

The engine's weights have room for more features than are known: rows of the layout beyond them are
zero and nobody reads them. So most examples change nothing but the number of known features, and
the layout changes when the room is used up, by half of it each time: a feature is moved O(1) times.
New labels stand behind the known ones in the columns of the weights, whatever their order among the
classes, and the codes of planes stay what they are, unless a label needs one bit more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.errors import NotCompatibleError
from maxmargin.features import EncodedBatch, check_lengths, encode_labels
from maxmargin.features.growing import (
    absorb,
    begin_growing,
    check_growing,
    fresh_like,
    keep_features,
    listed,
)
from maxmargin.structures.chain import Chain
from maxmargin.structures.chain_layout import ChainLayout, weight_dtype
from maxmargin.structures.chain_learning import MAX_LABELS, EdgeMask
from maxmargin.structures.chain_options import allowed_mask, cost_matrix
from maxmargin.structures.chain_problem import problem_arguments
from maxmargin.structures.growing.base import Change, Growing, same
from maxmargin.structures.ragged import Schema

__all__ = ["GrowingChain"]

SCHEMA = Schema(
    {
        "offsets": ("example", "token"),
        "indptr": ("token", "entry"),
        "pair_indptr": ("token", "pair"),
    },
    {
        "indices": "entry",
        "values": "entry",
        "values64": "entry",
        "dense64": "token",
        "labels": "token",
        "token_weight": "token",
        "token_weight64": "token",
        "example_weight": "example",
        "pair_indices": "pair",
    },
    ones=("values", "values64", "token_weight", "token_weight64", "example_weight"),
    counted_by="offsets",
)
#: Arrays of the examples; the other arguments of a problem are those of the layout.
KEPT = (*SCHEMA.pointers, *SCHEMA.arrays)


class GrowingChain(Growing):
    """The sequences of a chain, which become more; see `Growing`."""

    structure: Chain
    relayouts = True

    def __init__(self, structure: Chain, dtype: str) -> None:
        super().__init__(structure, dtype)
        if structure.kernel != "linear":
            raise NotCompatibleError(
                "with a kernel each training token is a weight of its own, and all of them must be "
                'known at once: partial_fit needs kernel="linear"'
            )
        if structure.prior is not None:
            raise NotCompatibleError(
                "a prior is joined with all training data at once; fit with it, or partial_fit "
                "without"
            )
        check_growing(structure.encoder)
        self._room = (0, 0)  # sparse and pair features that the weights have rows for

    # --- examples in numbers ---

    def first(self, X: Any, Y: Any, fit_params: Mapping[str, Any]) -> dict[str, Any]:
        """Learn labels and features of the first sequences."""
        chain = self.structure
        batch, codes = chain.learn(X, Y, self.dtype)
        parts = self._arguments(batch, codes, fit_params)
        begin_growing(chain.encoder)
        self._room = (batch.n_sparse, batch.n_pair)
        return parts

    def adopt(self, parts: dict[str, Any]) -> tuple[dict[str, Any], None]:
        """Go on from what ``fit`` made."""
        if "offsets" not in parts:  # of a mapped file
            raise NotCompatibleError(
                "the model was trained from an encoded file or a stream, whose data are not kept "
                "in memory, and partial_fit needs all examples; begin with partial_fit, or with "
                "fit(X, y)"
            )
        encoder = self.structure.encoder
        begin_growing(encoder)
        self._room = (encoder.n_sparse, encoder.n_pair)
        return _canonical(parts), None

    def _arguments(
        self, batch: EncodedBatch, codes: NDArray[np.int32], fit_params: Mapping[str, Any]
    ) -> dict[str, Any]:
        double = self.structure.encoder.double
        n = max(self.structure.n_labels, int(codes.max()) + 1)
        return _canonical(problem_arguments(batch, n, codes, double=double, **fit_params))

    def more(
        self, X: Any, Y: Any, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Change | None]:
        """Take sequences in, with the features and labels that they bring."""
        chain = self.structure
        encoder = chain.encoder
        if Y is None:
            raise ValueError("Y is None; expected a list of label sequences, one for each of X")
        check_lengths(X, Y)
        codes, names, learned = self._labels(Y)
        fresh = fresh_like(encoder, X) if listed(encoder) else None
        batch = encoder.transform(X) if fresh is None else fresh.fit_transform(X)
        if batch.n_dense != encoder.n_dense or getattr(fresh, "kind", None) not in (
            None,
            encoder.kind,
        ):
            raise ValueError(
                f"X is of kind {getattr(fresh, 'kind', encoder.kind)} with {batch.n_dense} dense "
                f"columns; expected kind {encoder.kind} with {encoder.n_dense}, as before"
            )
        parts = self._arguments(batch, codes, fit_params)
        old = self._layout()
        # From here on nothing fails: a batch is taken as a whole or not at all.
        if fresh is not None:
            self._take_features(parts, absorb(encoder, fresh), batch)
        if names:
            self._take_labels(names, learned)
        return parts, self._changed(old)

    @staticmethod
    def _take_features(parts: dict[str, Any], numbers: Any, batch: Any) -> None:
        values = parts.get("values") if parts.get("values64") is None else parts["values64"]
        rows = _native.renumber(batch.indptr, batch.indices, values, numbers[0])
        parts["indptr"], parts["indices"] = rows[0], rows[1]
        if values is not None:
            parts["values64" if parts.get("values64") is not None else "values"] = rows[2]
        if batch.pair_indptr is not None:
            pairs = _native.renumber(batch.pair_indptr, batch.pair_indices, None, numbers[1])
            parts["pair_indptr"], parts["pair_indices"] = pairs[0], pairs[1]

    def _labels(self, Y: Any) -> tuple[NDArray[np.int32], list[Any], Any]:
        """Return codes, new labels, and all that is to be known of the classes then."""
        chain = self.structure
        if chain.labels is not None:
            return encode_labels(Y, chain._codes)[0], [], None
        own, found = encode_labels(Y)
        new = [label for label in found if label not in chain._codes]
        known = {**chain._codes, **{label: len(chain._codes) + k for k, label in enumerate(new)}}
        codes = np.array([known[label] for label in found], np.int32)[own]
        if not new:
            return codes, [], None
        if len(known) > MAX_LABELS:
            raise ValueError(
                f"there are {len(known)} labels; at most {MAX_LABELS} fit the index type"
            )
        classes = [*chain.classes_, *new]
        with contextlib.suppress(TypeError):
            classes = sorted(classes)
        columns = np.array([known[label] for label in classes], np.intp)
        order = np.argsort(columns)
        cost = cost_matrix(chain.loss_spec, classes)  # which an array of costs cannot be
        mask = allowed_mask(chain.allowed, classes)
        if cost is not None:
            cost = np.ascontiguousarray(cost[np.ix_(order, order)])
        edges = None
        if mask is not None:
            edges = EdgeMask(
                mask[0][np.ix_(order, order)].astype(np.uint8).ravel(),
                mask[1][order].astype(np.uint8),
                mask[2][order].astype(np.uint8),
            )
        return codes, new, (classes, columns, cost, edges)

    def _take_labels(self, new: list[Any], learned: Any) -> None:
        classes, columns, cost, edges = learned
        self.structure._set_labels(classes, columns)
        self.structure._cost, self.structure._mask = cost, edges

    # --- the layout of the weights ---

    def _layout(self) -> ChainLayout:
        sparse, pair = self._room
        return ChainLayout(sparse, self.structure.encoder.n_dense, self.structure.n_labels, pair)

    def _changed(self, old: ChainLayout) -> Change | None:
        """Make room for what is known by now; say what changed."""
        encoder = self.structure.encoder
        wanted = (encoder.n_sparse, encoder.n_pair)
        self._room = (
            _room(self._room[0], wanted[0]),
            _room(self._room[1], wanted[1]),
        )
        new = self._layout()
        if new == old:
            return None
        return self._change(old, new)

    def _change(
        self,
        old: ChainLayout,
        new: ChainLayout,
        sparse: NDArray[Any] | None = None,
        pair: NDArray[Any] | None = None,
    ) -> Change:
        """Return the change of layout; `sparse` and `pair`: the old numbers of what is kept."""

        def sums(u: NDArray[Any]) -> NDArray[Any]:
            before = old.split(old.rows(u))
            moved = new.zeros(u.dtype)
            after = new.split(new.rows(moved))
            L = old.n_labels
            rows = np.arange(min(old.n_sparse, new.n_sparse)) if sparse is None else sparse
            after.coef[: len(rows), :L] = before.coef[rows]
            after.coef[new.n_sparse :, :L] = before.coef[old.n_sparse :]
            after.transitions[:L, :L] = before.transitions
            after.start[:L], after.end[:L] = before.start, before.end
            kept = np.arange(min(old.n_pair, new.n_pair)) if pair is None else pair
            after.pairs[: len(kept), :L, :L] = before.pairs[kept]
            return moved

        before, after = _label_bits(old.n_labels), _label_bits(new.n_labels)

        def codes(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
            token, label = words >> np.uint32(before), words & np.uint32(2**before - 1)
            return token << np.uint32(after) | label

        return Change(same if before == after else codes, sums)

    def problem(self, data: dict[str, Any]) -> _native.Problem:
        """Return sequences as a native problem."""
        arrays: dict[str, Any] = {name: data.get(name) for name in KEPT}
        return _native.ChainProblem(
            n_labels=self.structure.n_labels,
            n_sparse=self._room[0],
            n_pair=self._room[1],
            cost=self.structure._cost,
            **arrays,
        )

    def model_weights(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the weights without the room for more features."""
        own, engine = self.structure.layout, self._layout()
        if own == engine:
            return super().model_weights(weights)
        rows = engine.split(engine.rows(weights))
        model = own.zeros(weight_dtype(weights.dtype))
        mine = own.split(own.rows(model))
        mine.coef[: own.n_sparse] = rows.coef[: own.n_sparse]
        mine.coef[own.n_sparse :] = rows.coef[engine.n_sparse :]
        mine.transitions[:], mine.start[:], mine.end[:] = rows.transitions, rows.start, rows.end
        mine.pairs[:] = rows.pairs[: own.n_pair]
        return model

    # --- several ---

    def join(self, several: list[dict[str, Any]]) -> dict[str, Any]:
        """Return sequences one behind the other."""
        return SCHEMA.join(several)

    def take(self, data: dict[str, Any], examples: NDArray[Any]) -> dict[str, Any]:
        """Return some of the sequences."""
        return SCHEMA.take(data, examples)

    def count(self, data: dict[str, Any]) -> int:
        """Return the number of sequences."""
        return SCHEMA.count(data)

    def purge(self, remaining: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Change | None]:
        """Let go of the features that no remaining sequence has; labels stay."""
        encoder = self.structure.encoder
        if not listed(encoder):
            return remaining, None
        kept = [
            _used(remaining, "indices", encoder.n_sparse),
            _used(remaining, "pair_indices", encoder.n_pair),
        ]
        if len(kept[0]) == 0:  # a chain needs a feature at least
            kept[0] = np.arange(min(1, encoder.n_sparse))
        if (len(kept[0]), len(kept[1])) == (encoder.n_sparse, encoder.n_pair):
            return remaining, None
        old = self._layout()
        left = [dict(parts) for parts in remaining]
        for name, these, n in (
            ("indices", kept[0], encoder.n_sparse),
            ("pair_indices", kept[1], encoder.n_pair),
        ):
            number = np.zeros(n, np.uint32)
            number[these] = np.arange(len(these), dtype=np.uint32)
            for parts in left:
                if parts.get(name) is not None:
                    parts[name] = number[parts[name]]
        keep_features(encoder, kept[0], kept[1])
        self._room = (encoder.n_sparse, encoder.n_pair)
        return left, self._change(old, self._layout(), kept[0], kept[1])


def _canonical(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of examples, dense features as 8-byte numbers."""
    kept = {name: parts.get(name) for name in KEPT}
    if parts.get("dense32") is not None:
        kept["dense64"] = np.ascontiguousarray(parts["dense32"], dtype=np.float64)
    return kept


def _room(room: int, wanted: int) -> int:
    return room if wanted <= room else max(wanted, room + room // 2)


def _label_bits(n_labels: int) -> int:
    """Return the bits of a label in a plane's code, as ``native/chain_frame.hpp`` has it."""
    return (n_labels - 1).bit_length()


def _used(remaining: list[dict[str, Any]], name: str, n: int) -> NDArray[np.int64]:
    used = np.zeros(n, bool)
    for parts in remaining:
        if parts.get(name) is not None:
            used[parts[name]] = True
    return np.flatnonzero(used)
