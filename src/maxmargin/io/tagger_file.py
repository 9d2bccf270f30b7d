"""Model files of taggers: everything that tagging needs, and how good the model is.

A container (`maxmargin.io.container`) of kind "tagger". Its meta data have the labels, the encoder
with its template, the certificate and the settings of training. Its arrays are, with d sparse
features, e dense ones, L labels and g pair features (of two neighbouring labels):

=================  ====================================================================
``counts``         [rows] how many labels a sparse feature has weights for
``entry_labels``   [entries] their numbers, ascending
``entry_weights``  [entries] their weights
``rows``           [rows] which features these are; without it, all of them in order
``tail``           [e + L + 2][L] dense features, transitions, start, end
``weights``        [d + e + L + 2][padded L] instead of the five above, if that is smaller
``fingerprints``   [d] what the features of a template are known by
``names``          their names, end to end, compressed by zlib
``name_lengths``   [d] the bytes of each name
``pair_...``       counts, entry_labels, entry_weights ([g * L] rows), fingerprints, names
                   and name_lengths of the pair features, if there are any
``mask_...``       which labels may follow each other, begin and end
``loss_costs``     [L][L] what errors cost, if the loss of training was such a matrix
=================  ====================================================================

Features whose weights are all zero change no prediction. They are left out where features have
names (of a text model, that is more than half of them), so a model that was loaded has fewer
features than the one that was saved, and says the same.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.features.encode import MAX_HASH_BITS, FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import LineFeatures, TemplateEncoder
from maxmargin.io.container import read_container, write_container
from maxmargin.io.objective import (
    LOSS_COSTS,
    check_meta,
    describe_objective,
    plain_value,
    restore_objective,
)
from maxmargin.memory import require_memory
from maxmargin.printable import quoted
from maxmargin.structures.chain import Chain
from maxmargin.structures.kernels import KernelWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from maxmargin.solvers.certificate import Certificate

__all__ = ["TaggerModel", "dense_weights", "load_tagger", "save_tagger", "training_meta"]

KIND = "tagger"
#: Weights that fit this many bytes are loaded as a full matrix, larger ones stay sparse.
FULL_BYTES = 128 << 20
#: Most features without names (hashed ones, columns of a matrix) that a file may claim to have.
MAX_UNNAMED = 1 << 28
#: Parameters of an estimator that are those of one run, not of the model: a file does not say where
#: somebody else's ``fit`` writes.
NOT_KEPT = ("callbacks", "checkpoint", "resume")
#: Labels that a file can hold and give back as they were.
_LABEL_TYPES = (str, int, float, bool)
_KINDS = ("strings", "sparse", "dense", "strings+dense", "sparse+dense")
_NAMED = ("columns", "strings", "strings+dense")  # kinds whose features have names
_MASKS = ("mask_transition", "mask_start", "mask_end")
_FLOATS = (np.float32, np.float64)
_LABEL_DTYPES = (np.uint8, np.uint16, np.uint32)
_LENGTH_DTYPES = (np.uint8, np.uint32)  # whose sums fit 8 bytes


class TaggerModel(NamedTuple):
    """A tagger as a file has it; all that tagging needs, without scikit-learn.

    Attributes
    ----------
    chain : Chain
        The structure, prepared.
    weights : array or SparseWeights
        Its weights.
    meta : dict
        ``certificate``, ``training`` (settings and figures), ``params`` (of the estimator) and
        ``objective`` (see `maxmargin.io.objective`).
    objective : callable or None
        Makes the parameters of an estimator that say what was minimised; solvers are imported then.
        It raises a ModelFormatError if the file does not make sense there. None: the file was
        written before files had an objective.
    """

    chain: Chain
    weights: Any
    meta: dict[str, Any]
    objective: Callable[[], dict[str, Any]] | None = None


def training_meta(
    certificate: Certificate,
    settings: dict[str, Any],
    params: dict[str, Any],
    file_format: str | None = None,
) -> dict[str, Any]:
    """Put together what a file says of the training of its model.

    Parameters
    ----------
    certificate : Certificate
        Of the weights.
    settings : dict
        Figures of training; what a file cannot hold is left out.
    params : dict
        Parameters of the estimator; what a file cannot hold is left out.
    file_format : str or None
        The format of the training file, which `maxmargin tag` then expects too.

    Returns
    -------
    dict
        The meta data for `save_tagger`.
    """
    from maxmargin import __version__

    figures = {name: getattr(certificate, name) for name in ("primal", "dual", "gap", "C")}
    return {
        "certificate": {
            # A primal is infinite where a hard margin was asked for that the weights do not have;
            # what an earlier file did not tell is NaN.
            **{k: v if math.isfinite(v) else None for k, v in figures.items() if not math.isnan(v)},
            "n_examples": certificate.n_examples,
            "approximate": certificate.approximate,
        },
        "training": _plain_values(settings),
        "params": _plain_values({k: v for k, v in params.items() if k not in NOT_KEPT}),
        "format": file_format,
        "maxmargin": __version__,
    }


def _plain_values(given: dict[str, Any]) -> dict[str, Any]:
    """Return what a file can hold."""
    values = {name: plain_value(value) for name, value in given.items()}
    return {name: value for name, value in values.items() if value is not NotImplemented}


# --- saving --------------------------------------------------------------------------------------


def save_tagger(
    path: Any,
    chain: Chain,
    weights: NDArray[Any] | KernelWeights,
    meta: dict[str, Any],
    objective: Mapping[str, Any] | None = None,
) -> int:
    """Write a tagger to a file, as a whole or not at all.

    Parameters
    ----------
    path : str or path
        The file.
    chain : Chain
        Prepared by training.
    weights : array
        The native weights.
    meta : dict
        What else to keep: ``certificate``, ``training``, ``params``; values that JSON can hold.
    objective : mapping or None
        The parameters of an estimator that say what was minimised, by the names in
        `maxmargin.io.objective.OBJECTIVE`. None: the file does not tell.

    Returns
    -------
    int
        The size of the file in bytes.
    """
    if isinstance(weights, KernelWeights):
        raise NotCompatibleError(
            "a model file holds the weights of features, and this model has none: it has "
            f"{weights.n_support} support tokens of the kernel {weights.kernel.name}. Pickle it, "
            'or train with kernel="linear"'
        )
    for label in chain.classes_:
        if type(label) not in _LABEL_TYPES:
            raise TypeError(
                f"the label {quoted(label)} is a {type(label).__name__}; a model file holds labels "
                "that are str, int, float or bool"
            )
    chain.native_weights(weights)  # checks its size and type
    _require_finite(weights)
    encoder, L = chain.encoder, chain.n_labels
    matrix = weights.reshape(-1, _native.padded_labels(L, weights.itemsize == 4))
    d = encoder.n_sparse
    pair_row = d + encoder.n_dense + L + 2
    nonzero = matrix[:d, :L] != 0
    named = encoder.hash_bits is None and encoder.kind in _NAMED
    kept = np.arange(d)
    if named and d > 0:
        kept = np.flatnonzero(nonzero.any(axis=1))
        if len(kept) == 0:
            kept = np.arange(1)  # a model of nothing is a model still
    arrays: dict[str, NDArray[Any]] = {}
    pairs = np.empty(0, np.intp)
    if isinstance(encoder, TemplateEncoder):
        # By line of the template: a token's features, found line by line, then come in order.
        kept = kept[np.argsort(encoder.unigrams.lines_of(kept), kind="stable")]
        if named:
            arrays |= _line_arrays("", encoder.unigrams, kept)
        if encoder.n_pair:
            blocks = matrix[pair_row:, :L].reshape(encoder.n_pair, L, L)
            pairs = np.flatnonzero(blocks.any(axis=(1, 2)))
            if len(pairs):
                arrays |= _line_arrays("pair_", encoder.bigrams, pairs)
                rows = blocks[pairs].reshape(-1, L)
                arrays |= _entries("pair_", rows, rows != 0)
    elif named and d > 0:
        assert encoder.vocabulary is not None
        every = encoder.vocabulary.names()
        arrays |= _name_arrays("", [every[k] for k in kept.tolist()])
    arrays |= _weight_arrays(matrix[:pair_row], nonzero, kept, named=named)
    if chain.mask is not None:
        arrays |= zip(_MASKS, chain.mask, strict=True)
    told: dict[str, Any] = {}
    if objective is not None:
        told["objective"], more = describe_objective(objective, chain)
        arrays |= more
    description = {
        **meta,
        **told,
        "classes": chain.classes_,
        "columns": chain.class_columns_.tolist(),
        "encoder": {**_describe_encoder(encoder), "n_sparse": len(kept), "n_pair": len(pairs)},
        "dtype": matrix.dtype.name,
    }
    return write_container(path, KIND, description, arrays)


def _weight_arrays(
    matrix: NDArray[Any], nonzero: NDArray[np.bool_], kept: NDArray[np.intp], *, named: bool
) -> dict[str, NDArray[Any]]:
    """Return the weights in the smaller of the two forms.

    Rows are those of the features that are kept, in that order. Features without names keep their
    numbers; of them, ``rows`` lists the ones that have weights.
    """
    n_sparse, n_labels = nonzero.shape
    used = kept if named else np.flatnonzero(nonzero.any(axis=1))
    sparse = _entries("", matrix[used, :n_labels], nonzero[used])
    sparse["tail"] = np.ascontiguousarray(matrix[n_sparse:, :n_labels])
    if not named:
        sparse["rows"] = used.astype(np.uint32)
    n_rows = len(kept) + len(matrix) - n_sparse
    if sum(a.nbytes for a in sparse.values()) < n_rows * matrix.shape[1] * matrix.itemsize:
        return sparse
    return {"weights": np.concatenate([matrix[kept], matrix[n_sparse:]])}


def _entries(
    prefix: str, rows: NDArray[Any], nonzero: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Return rows of weights as entries that are not zero."""
    n_labels = rows.shape[1]
    place, labels = np.nonzero(nonzero)
    counts = nonzero.sum(axis=1)
    return {
        f"{prefix}counts": counts.astype(np.uint8 if n_labels < 256 else np.uint32),
        f"{prefix}entry_labels": labels.astype(np.min_scalar_type(max(n_labels - 1, 1))),
        f"{prefix}entry_weights": rows[place, labels],
    }


def _line_arrays(
    prefix: str, features: LineFeatures, kept: NDArray[np.intp]
) -> dict[str, NDArray[Any]]:
    arrays = {f"{prefix}fingerprints": features.fingerprints[kept]}
    return arrays | _name_arrays(prefix, features.names_of(kept))


def _name_arrays(prefix: str, names: list[str]) -> dict[str, NDArray[Any]]:
    encoded = [name.encode("utf-8") for name in names]
    lengths = np.array([len(name) for name in encoded], dtype=np.uint32)
    packed = zlib.compress(b"".join(encoded), 1)  # for people who ask; tagging does without
    small = lengths.max(initial=0) < 256
    return {
        f"{prefix}names": np.frombuffer(packed, dtype=np.uint8),
        f"{prefix}name_lengths": lengths.astype(np.uint8) if small else lengths,
    }


def _describe_encoder(encoder: FeatureEncoder | TemplateEncoder) -> dict[str, Any]:
    described: dict[str, Any] = {
        "kind": encoder.kind,
        "hash_bits": encoder.hash_bits,
        "min_count": encoder.min_count,
        "n_dense": encoder.n_dense,
    }
    if isinstance(encoder, TemplateEncoder):
        described["template"] = {"text": encoder.template.text, "source": encoder.template.source}
    if isinstance(encoder, TemplateEncoder | FunctionEncoder):
        described["n_columns"] = encoder.n_columns
        described["label_column"] = encoder.label_column
    if isinstance(encoder, FunctionEncoder):
        function = encoder.function
        module = getattr(function, "__module__", "?")
        described["function"] = f"{module}:{getattr(function, '__qualname__', repr(function))}"
    return described


# --- loading -------------------------------------------------------------------------------------


def load_tagger(
    path: Any, function: Callable[[Any], Any] | None = None, *, mmap: bool = False
) -> TaggerModel:
    """Read a tagger from a file.

    Parameters
    ----------
    path : str or path
        The file.
    function : callable, optional
        The function that gave the features in training, for a model that was trained with one.
        (A file holds no code.)
    mmap : bool, default=False
        Whether to map the file into memory and not to read it; nobody may then change it in place.
        See `maxmargin.io.container.read_container`.

    Returns
    -------
    TaggerModel
        Ready to tag.

    Raises
    ------
    ModelFormatError
        If the file is damaged, of a newer version, or no model file.
    MemoryError
        If the weights need more memory than there is.
    OSError
        If it cannot be read.
    """
    container = read_container(path, KIND, mmap=mmap)
    with _told_of(container.path):
        return _Reader(container.path, container.meta, container.arrays).model(function)


@contextlib.contextmanager
def _told_of(path: str) -> Iterator[None]:
    """Turn all that goes wrong with what a file holds into an error that names the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        if isinstance(error, _FunctionError):
            raise ValueError(f"{path}: {error}") from None
        if isinstance(error, ModelFormatError):
            raise
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFormatError(f"{path}: the model is inconsistent: {what}") from error


class _FunctionError(ValueError):
    """The file is good, but the caller must give the function of its features, or must not."""


class _Reader:
    """Makes a model of what a file holds, and trusts none of it."""

    def __init__(self, path: str, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.path = path
        self.meta = meta
        self.arrays = arrays
        check_meta(meta)
        self.described: dict[str, Any] = meta["encoder"]
        self.n_labels = len(meta["classes"])
        self.n_sparse = self._integer("n_sparse", 0, 2**32 - 1)
        self.n_dense = self._integer("n_dense", 0, 2**32 - 1)
        # The first files of this version had no pair features and did not say so.
        self.n_pair = self._integer("n_pair", 0, 2**32 - 1) if "n_pair" in self.described else 0
        self.hash_bits: int | None = None
        if self.described["hash_bits"] is not None:
            self.hash_bits = self._integer("hash_bits", 1, MAX_HASH_BITS)
            if self.n_sparse != 2**self.hash_bits:
                raise ValueError("the number of features does not fit the bits of their hash")
        if self.n_pair == 0 and any(name.startswith("pair_") for name in arrays):
            raise ValueError("there are weights of pair features, but no such features")
        named = self.hash_bits is None and self.described["kind"] in _NAMED
        if not named and self.n_sparse > MAX_UNNAMED:
            raise ValueError(f"it claims to have {self.n_sparse} features without names")

    def _integer(self, name: str, low: int, high: int) -> int:
        value = self.described[name]
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"{name} is {quoted(value)}; expected {low} to {high}")
        return value

    def model(self, function: Callable[[Any], Any] | None) -> TaggerModel:
        classes, L = self.meta["classes"], self.n_labels
        columns = self.meta["columns"]
        if any(type(c) not in _LABEL_TYPES for c in classes) or len(set(classes)) != L or L == 0:
            raise ValueError("the labels are not labels, or some are the same")
        if any(type(c) is not int for c in columns) or sorted(columns) != [*range(L)]:
            raise ValueError("the labels are not numbered from 0")
        encoder = self.encoder(function)
        weights = self.weights()
        encoder.double = getattr(weights, "dtype", None) == np.float64
        mask = None
        if any(name in self.arrays for name in _MASKS):
            mask = tuple(self.arrays[name] for name in _MASKS)
            right = [m.shape for m in mask] == [(L * L,), (L,), (L,)]
            if not right or any(m.dtype != np.uint8 for m in mask):
                raise ValueError("the masks do not fit the labels")
        chain = Chain.restore(encoder, classes, np.array(columns, dtype=np.intp), mask)  # type: ignore[arg-type]
        if "objective" not in self.meta:
            return TaggerModel(chain, weights, self.meta)
        costs = {name: array for name, array in self.arrays.items() if name == LOSS_COSTS}
        return TaggerModel(chain, weights, self.meta, lambda: self._objective(chain, costs))

    def _objective(self, chain: Chain, costs: dict[str, NDArray[Any]]) -> dict[str, Any]:
        with _told_of(self.path):
            return restore_objective(self.meta, chain, costs)

    # --- the encoder -----------------------------------------------------------------------------

    def encoder(self, function: Callable[[Any], Any] | None) -> FeatureEncoder | TemplateEncoder:
        if function is not None and ("function" not in self.described or not callable(function)):
            raise _FunctionError(
                f"found {function!r} as the function of the features; expected "
                + ("a function" if "function" in self.described else "none: the model needs none")
            )
        min_count = self._integer("min_count", 1, 2**63)
        if self.described["kind"] == TemplateEncoder.kind:
            return self._template_encoder(min_count)
        if "function" in self.described:
            if function is None:
                raise _FunctionError(
                    f"the features of this model are made by the function "
                    f"{self.described['function']}, which a file cannot hold; pass it when loading"
                )
            n_columns, label_column = self._columns()
            by_function = FunctionEncoder(
                function, label_column=label_column, hash_bits=self.hash_bits
            )
            by_function.n_columns = n_columns
            encoder: FeatureEncoder = by_function
        else:
            encoder = FeatureEncoder(hash_bits=self.hash_bits)
        kind = self.described["kind"]
        first, _, second = str(kind).partition("+")
        sparse, dense = first in ("strings", "sparse"), "dense" in (first, second)
        if kind not in _KINDS or dense != (self.n_dense > 0) or (self.n_sparse > 0 and not sparse):
            raise ValueError(
                f"the kind of features is {quoted(kind)}, which does not fit their numbers"
            )
        if self.n_pair:
            raise ValueError("only templates have features of two labels")
        encoder.min_count = min_count
        encoder.kind, encoder.n_sparse, encoder.n_dense = kind, self.n_sparse, self.n_dense
        if first == "strings" and self.hash_bits is None:
            encoder.vocabulary = _native.Vocabulary()
            if self.n_sparse:
                encoder.vocabulary = _native.Vocabulary.from_table(*self._name_table(""))
        return encoder

    def _columns(self) -> tuple[int, int | None]:
        n_columns = self._integer("n_columns", 0, 2**32)
        if self.described["label_column"] is None:
            return n_columns, None
        return n_columns, self._integer("label_column", 0, max(n_columns - 1, 0))

    def _template_encoder(self, min_count: int) -> TemplateEncoder:
        described = self.described["template"]
        template = Template.parse(described["text"], str(described["source"]))
        n_columns, label_column = self._columns()
        if n_columns == 0 or template.n_columns_needed > n_columns:
            raise ValueError("the template needs more columns than there were")
        if self.n_dense:
            raise ValueError("templates give no dense features")
        encoder = TemplateEncoder.restore(
            template,
            n_columns=n_columns,
            label_column=label_column,
            hash_bits=self.hash_bits,
            fingerprints=self._fingerprints("", self.n_sparse),
            names=lambda: self._names(""),
            pair_fingerprints=self._fingerprints("pair_", self.n_pair) if self.n_pair else None,
            pair_names=lambda: self._names("pair_"),
            min_count=min_count,
        )
        if bool(encoder.bigrams.program) < bool(self.n_pair):
            raise ValueError("the template has no lines for features of two labels")
        for features in (encoder.unigrams, encoder.bigrams):
            features.index()  # which refuses repeated fingerprints
        return encoder

    def _fingerprints(self, prefix: str, n: int) -> NDArray[np.uint64] | None:
        if self.hash_bits is not None:
            return None
        fingerprints = self.arrays[f"{prefix}fingerprints"]
        if fingerprints.dtype != np.uint64 or fingerprints.shape != (n,):
            raise ValueError("the fingerprints do not fit the features")
        lengths, names = self.arrays[f"{prefix}name_lengths"], self.arrays[f"{prefix}names"]
        if lengths.shape != (n,) or lengths.dtype not in _LENGTH_DTYPES or names.dtype != np.uint8:
            raise ValueError("the names do not fit the features")
        return fingerprints

    def _name_table(self, prefix: str) -> tuple[bytes, NDArray[np.int64]]:
        """Return the names end to end, and where each ends."""
        lengths, packed = self.arrays[f"{prefix}name_lengths"], self.arrays[f"{prefix}names"]
        n = self.n_pair if prefix else self.n_sparse
        if lengths.shape != (n,) or lengths.dtype not in _LENGTH_DTYPES or packed.dtype != np.uint8:
            raise ValueError("the names do not fit the features")
        ends = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(lengths, out=ends[1:])
        size = int(ends[-1])
        try:
            unpack = zlib.decompressobj()
            text = unpack.decompress(packed.tobytes(), max(size, 1))
        except zlib.error as error:
            raise ValueError(f"the names cannot be read ({error})") from None
        if len(text) != size or unpack.unconsumed_tail:
            raise ValueError("the names are cut short or too long")
        return text, ends

    def _names(self, prefix: str) -> list[str]:
        """Return the names; called when somebody asks for them."""
        try:
            text, ends = self._name_table(prefix)
            return [text[a:b].decode("utf-8") for a, b in itertools.pairwise(ends.tolist())]
        except ValueError as error:
            raise ModelFormatError(f"{self.path}: the model is inconsistent: {error}") from None

    # --- the weights -----------------------------------------------------------------------------

    def weights(self) -> Any:
        """Return the weights as native code takes them: sparse ones if they are large."""
        n_rows = self.n_sparse + self.n_dense + self.n_labels + 2
        if "weights" in self.arrays:
            matrix = self.arrays["weights"]
            single = matrix.dtype == np.float32
            padded = _native.padded_labels(self.n_labels, single)
            if matrix.dtype not in _FLOATS or matrix.shape != (n_rows, padded):
                raise ValueError("the weights do not fit the features and labels")
            _require_finite(matrix)
            if not self.n_pair:
                return matrix.reshape(-1)
            full: Any = matrix
        else:
            sparse = self._sparse(n_rows)
            if not self.n_pair and isinstance(sparse, _native.SparseWeights):
                # Whole vectors of a full matrix are added faster than entries one by one.
                size = n_rows * _native.padded_labels(self.n_labels, True) * 4
                return sparse.dense() if size <= FULL_BYTES else sparse
            full = sparse.dense() if isinstance(sparse, _native.SparseWeights) else sparse
            if not self.n_pair:
                return full
            full = full.reshape(n_rows, -1)
        return self._with_pairs(full)

    def _entries(self, prefix: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        names = ("counts", "entry_labels", "entry_weights")
        counts, labels, values = (self.arrays[f"{prefix}{name}"] for name in names)
        if counts.ndim != 1 or counts.dtype not in (np.uint8, np.uint32):
            raise ValueError("the rows of the weights have no counts")
        if values.ndim != 1 or values.shape != labels.shape or labels.dtype not in _LABEL_DTYPES:
            raise ValueError("the entries of the weights do not fit each other")
        if values.dtype not in _FLOATS:
            raise ValueError("the weights are not numbers")
        if int(counts.sum(dtype=np.uint64)) != len(labels) or len(labels) >= 2**32:
            raise ValueError("the rows of the weights do not fit their entries")
        if len(labels) and int(labels.max()) >= self.n_labels:
            raise ValueError("a weight is of a label that does not exist")
        _require_finite(values)
        return counts, labels, values

    def _sparse(self, n_rows: int) -> Any:
        counts, labels, values = self._entries("")
        tail = self.arrays["tail"]
        if tail.shape != (n_rows - self.n_sparse, self.n_labels) or tail.dtype != values.dtype:
            raise ValueError("the weights do not fit the features and labels")
        _require_finite(tail)
        if "rows" in self.arrays:
            rows, given = self.arrays["rows"], counts
            if rows.shape != counts.shape or rows.dtype != np.uint32:
                raise ValueError("the rows of the weights do not fit their counts")
            if len(rows) and (
                rows[-1] >= self.n_sparse or (np.diff(rows.astype(np.int64)) <= 0).any()
            ):
                raise ValueError("the rows of the weights are not in order")
            require_memory(f"the rows of {self.n_sparse} features", 16 * self.n_sparse)
            counts = np.zeros(self.n_sparse, dtype=given.dtype)
            counts[rows] = given
        if len(counts) != self.n_sparse:
            raise ValueError("the weights do not fit the features")
        starts = _starts(counts)
        with np.errstate(over="ignore"):  # of 8-byte weights this is only a check of the rest
            sparse = _native.SparseWeights(
                self.n_labels,
                starts,
                labels,
                values.astype(np.float32, copy=False),
                tail.astype(np.float32, copy=False).reshape(-1),
            )
        return sparse if values.dtype == np.float32 else self._full(counts, labels, values, tail)

    def _full(self, counts: Any, labels: Any, values: Any, tail: Any) -> NDArray[Any]:
        """Return a full matrix of the same type as the values."""
        single = values.dtype == np.float32
        padded = _native.padded_labels(self.n_labels, single)
        n_rows = len(counts) + len(tail)
        require_memory("the weights", n_rows * padded * values.itemsize)
        weights: NDArray[Any] = _native.aligned_array(n_rows * padded, single)
        matrix = weights.reshape(n_rows, padded)
        matrix[:] = 0
        matrix[np.repeat(np.arange(len(counts)), counts), labels] = values
        matrix[len(counts) :, : self.n_labels] = tail
        return weights

    def _with_pairs(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the matrix with the weights of the pair features behind it."""
        L, padded = self.n_labels, matrix.shape[1]
        counts, labels, values = self._entries("pair_")
        if values.dtype != matrix.dtype or len(counts) != self.n_pair * L:
            raise ValueError("the weights of the pair features do not fit the others")
        row = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        if (np.diff(row * L + labels) <= 0).any():
            raise ValueError("the labels of a row are not in order")
        n_rows = len(matrix) + len(counts)
        require_memory("the weights", n_rows * padded * matrix.itemsize)
        weights: NDArray[Any] = _native.aligned_array(n_rows * padded, matrix.itemsize == 4)
        full = weights.reshape(n_rows, padded)
        full[: len(matrix)] = matrix
        full[len(matrix) :] = 0
        full[len(matrix) + np.repeat(np.arange(len(counts)), counts), labels] = values
        return weights


def _starts(counts: NDArray[Any]) -> NDArray[np.uint32]:
    starts = np.zeros(len(counts) + 1, dtype=np.uint64)
    np.cumsum(counts, out=starts[1:], dtype=np.uint64)
    return starts.astype(np.uint32)


def _require_finite(array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise ValueError("a weight is not a finite number")


def dense_weights(model: TaggerModel) -> NDArray[Any]:
    """Return the weights of a loaded model as the full matrix that estimators keep.

    Parameters
    ----------
    model : TaggerModel
        What `load_tagger` gave.

    Returns
    -------
    array
        Native weights, aligned.
    """
    if isinstance(model.weights, _native.SparseWeights):
        size = _native.padded_labels(model.chain.n_labels, True) * 4 * model.weights.n_rows
        require_memory("the full matrix of the weights", size)
        return model.weights.dense()
    weights: Any = model.chain.native_weights(model.weights)
    return np.asarray(weights)
