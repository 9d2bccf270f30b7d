"""Model files of taggers: everything that tagging needs, and how good the model is.

A container (`maxmargin.io.container`) of kind "tagger". Its meta data have the labels, the encoder
with its template, the certificate and the settings of training. Its arrays are, with d sparse
features, e dense ones and L labels:

=================  ====================================================================
``counts``         [rows] how many labels a sparse feature has weights for
``entry_labels``   [entries] their numbers
``entry_weights``  [entries] their weights
``rows``           [rows] which features these are; without it, all of them in order
``tail``           [e + L + 2][L] dense features, transitions, start, end
``weights``        [d + e + L + 2][padded L] instead of the five above, if that is smaller
``fingerprints``   [d] what the features of a template are known by
``names``          their names, end to end, compressed by zlib
``name_lengths``   [d] the bytes of each name
``mask_...``       which labels may follow each other, begin and end
=================  ====================================================================

Sparse features whose weights are all zero change no prediction. They are left out where features
have names (of a text model, that is more than half of them), so a model that was loaded has fewer
features than the one that was saved, and says the same.
"""

from __future__ import annotations

import itertools
import math
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.errors import ModelFormatError
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.container import read_container, write_container
from maxmargin.structures.chain import Chain

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from maxmargin.solvers.base import Certificate

__all__ = ["TaggerModel", "dense_weights", "load_tagger", "save_tagger", "training_meta"]

KIND = "tagger"
#: Weights that fit this many bytes are loaded as a full matrix, larger ones stay sparse.
FULL_BYTES = 128 << 20
#: Labels that a file can hold and give back as they were.
_LABEL_TYPES = (str, int, float, bool)


class TaggerModel(NamedTuple):
    """A tagger as a file has it; all that tagging needs, without scikit-learn.

    Attributes
    ----------
    chain : Chain
        The structure, prepared.
    weights : array or SparseWeights
        Its weights.
    meta : dict
        ``certificate``, ``training`` (settings and figures) and ``params`` (of the estimator).
    """

    chain: Chain
    weights: Any
    meta: dict[str, Any]


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

    return {
        "certificate": {
            "primal": certificate.primal,
            "dual": certificate.dual,
            "gap": certificate.gap,
            "C": certificate.C,
            "n_examples": certificate.n_examples,
        },
        "training": {k: v for k, v in settings.items() if _is_plain(v)},
        "params": {k: v for k, v in params.items() if _is_plain(v)},
        "format": file_format,
        "maxmargin": __version__,
    }


def _is_plain(value: Any) -> bool:
    """Whether a file can hold the value and give it back as it was."""
    if isinstance(value, list):
        return all(_is_plain(entry) for entry in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or type(value) in (bool, int, str)


# --- saving --------------------------------------------------------------------------------------


def save_tagger(path: Any, chain: Chain, weights: NDArray[Any], meta: dict[str, Any]) -> int:
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

    Returns
    -------
    int
        The size of the file in bytes.
    """
    for label in chain.classes_:
        if type(label) not in _LABEL_TYPES:
            raise TypeError(
                f"the label {label!r} is a {type(label).__name__}; a model file holds labels that "
                "are str, int, float or bool"
            )
    encoder = chain.encoder
    matrix = weights.reshape(-1, _native.padded_labels(chain.n_labels, weights.itemsize == 4))
    nonzero = matrix[: encoder.n_sparse, : chain.n_labels] != 0
    named = isinstance(encoder, TemplateEncoder) or encoder.vocabulary is not None
    named = named and encoder.hash_bits is None
    kept = np.flatnonzero(nonzero.any(axis=1)) if named else np.arange(encoder.n_sparse)
    if len(kept) == 0 and encoder.n_sparse > 0 and named:
        kept = np.arange(1)  # a model of nothing is a model still
    if isinstance(encoder, TemplateEncoder):
        # By line of the template: a token's features, found line by line, then come in order.
        kept = kept[np.argsort(encoder.lines_of(kept), kind="stable")]
    arrays = _weight_arrays(matrix, nonzero, kept, named=named)
    if encoder.n_sparse > 0:
        arrays.update(_encoder_arrays(encoder, kept))
    if chain.mask is not None:
        names = ("mask_transition", "mask_start", "mask_end")
        arrays.update(zip(names, chain.mask, strict=True))
    description = {
        "classes": chain.classes_,
        "columns": chain.class_columns_.tolist(),
        "encoder": _describe_encoder(encoder, len(kept)),
        "dtype": matrix.dtype.name,
        **meta,
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
    counts = nonzero.sum(axis=1)
    used = kept if named else np.flatnonzero(counts)
    counts = counts[used]
    label_type = np.min_scalar_type(max(n_labels - 1, 1))
    rows, places = np.nonzero(nonzero[used])
    sparse: dict[str, NDArray[Any]] = {
        "counts": counts.astype(np.uint8 if n_labels < 256 else np.uint32),
        "entry_labels": places.astype(label_type),
        "entry_weights": matrix[used[rows], places],
        "tail": np.ascontiguousarray(matrix[n_sparse:, :n_labels]),
    }
    if not named:
        sparse["rows"] = used.astype(np.uint32)
    n_rows = len(kept) + len(matrix) - n_sparse
    if sum(a.nbytes for a in sparse.values()) < n_rows * matrix.shape[1] * matrix.itemsize:
        return sparse
    return {"weights": np.concatenate([matrix[kept], matrix[n_sparse:]])}


def _encoder_arrays(
    encoder: FeatureEncoder | TemplateEncoder, kept: NDArray[np.intp]
) -> dict[str, NDArray[Any]]:
    if encoder.hash_bits is not None:
        return {}
    if isinstance(encoder, TemplateEncoder):
        assert encoder.fingerprints is not None
        arrays = {"fingerprints": encoder.fingerprints[kept]}
        names = encoder.names_of(kept)
    elif encoder.vocabulary is not None:
        arrays = {}
        every = encoder.vocabulary.names()
        names = [every[k] for k in kept.tolist()]
    else:
        return {}
    encoded = [name.encode("utf-8") for name in names]
    lengths = np.array([len(name) for name in encoded])
    packed = zlib.compress(b"".join(encoded), 1)  # for people who ask; tagging does without
    arrays["names"] = np.frombuffer(packed, dtype=np.uint8)
    arrays["name_lengths"] = lengths.astype(np.uint8 if lengths.max() < 256 else np.uint32)
    return arrays


def _describe_encoder(encoder: FeatureEncoder | TemplateEncoder, n_kept: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "kind": encoder.kind,
        "hash_bits": encoder.hash_bits,
        "min_count": encoder.min_count,
        "n_sparse": encoder.n_sparse if encoder.hash_bits is not None else n_kept,
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


def load_tagger(path: Any, function: Callable[[Any], Any] | None = None) -> TaggerModel:
    """Read a tagger from a file.

    Parameters
    ----------
    path : str or path
        The file.
    function : callable, optional
        The function that gave the features in training, for a model that was trained with one.
        (A file holds no code.)

    Returns
    -------
    TaggerModel
        Ready to tag.

    Raises
    ------
    ModelFormatError
        If the file is damaged, of a newer version, or no model file.
    OSError
        If it cannot be read.
    """
    container = read_container(path, KIND)
    try:
        return _restore(container.meta, container.arrays, function)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        if isinstance(error, _NeedsFunctionError):
            raise ValueError(f"{container.path}: {error}") from None
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFormatError(f"{container.path}: the model is inconsistent: {what}") from error


class _NeedsFunctionError(ValueError):
    """The file is good, but the caller must give the function of its features."""


def _restore(
    meta: dict[str, Any], arrays: dict[str, NDArray[Any]], function: Callable[[Any], Any] | None
) -> TaggerModel:
    classes, columns = meta["classes"], np.array(meta["columns"], dtype=np.intp)
    L = len(classes)
    distinct = len({(type(c), c) for c in classes})
    if not L or distinct != L or sorted(columns.tolist()) != [*range(L)]:
        raise ValueError("the labels are not numbered from 0")
    described = meta["encoder"]
    n_sparse, n_dense = int(described["n_sparse"]), int(described["n_dense"])
    if not (0 <= n_sparse < 2**32 and 0 <= n_dense < 2**32):
        raise ValueError("the number of features is out of range")
    encoder = _restore_encoder(described, arrays, function)
    weights = _restore_weights(arrays, n_sparse, n_sparse + n_dense + L + 2, L)
    mask = None
    if "mask_start" in arrays:
        mask = (arrays["mask_transition"], arrays["mask_start"], arrays["mask_end"])
        right = [m.shape for m in mask] == [(L * L,), (L,), (L,)]
        if not right or any(m.dtype != np.uint8 for m in mask):
            raise ValueError("the masks do not fit the labels")
    chain = Chain.restore(encoder, classes, columns, mask)
    return TaggerModel(chain, weights, meta)


def _restore_encoder(
    described: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    function: Callable[[Any], Any] | None,
) -> FeatureEncoder | TemplateEncoder:
    hash_bits, min_count = described["hash_bits"], int(described["min_count"])
    n_sparse, n_dense = int(described["n_sparse"]), int(described["n_dense"])
    if hash_bits is not None and n_sparse != 2 ** int(hash_bits):
        raise ValueError("the number of features does not fit the bits of their hash")
    if "template" in described:
        template = Template.parse(
            described["template"]["text"], str(described["template"]["source"])
        )
        label_column, n_columns = described["label_column"], int(described["n_columns"])
        if label_column is not None and not 0 <= int(label_column) < n_columns:
            raise ValueError("the label column is out of range")
        if template.n_columns_needed > n_columns:
            raise ValueError("the template needs more columns than there were")
        fingerprints = None
        if hash_bits is None:
            fingerprints = arrays["fingerprints"]
            if fingerprints.dtype != np.uint64 or fingerprints.shape != (n_sparse,):
                raise ValueError("the fingerprints do not fit the features")
        return TemplateEncoder.restore(
            template,
            n_columns=n_columns,
            label_column=None if label_column is None else int(label_column),
            hash_bits=hash_bits,
            fingerprints=fingerprints,
            names=lambda: _names(arrays, n_sparse),
            min_count=min_count,
        )
    if "function" in described:
        if function is None:
            raise _NeedsFunctionError(
                f"the features of this model are made by the function {described['function']}, "
                "which a file cannot hold; pass it when loading"
            )
        encoder: FeatureEncoder = FunctionEncoder(
            function, label_column=described["label_column"], hash_bits=hash_bits
        )
        assert isinstance(encoder, FunctionEncoder)
        encoder.n_columns = int(described["n_columns"])
    else:
        encoder = FeatureEncoder(hash_bits=hash_bits)
    encoder.min_count = min_count
    kind = str(described["kind"])
    if kind not in ("strings", "sparse", "dense", "strings+dense", "sparse+dense"):
        raise ValueError(f"the kind of features is {kind!r}")
    encoder.kind, encoder.n_sparse, encoder.n_dense = kind, n_sparse, n_dense
    if kind.startswith("strings") and hash_bits is None:
        text, ends = _name_table(arrays, n_sparse)
        encoder.vocabulary = _native.Vocabulary.from_table(text, ends)
    return encoder


def _name_table(
    arrays: dict[str, NDArray[Any]], n_sparse: int
) -> tuple[bytes, NDArray[np.int64]]:
    """Return the names end to end, and where each ends."""
    lengths = arrays["name_lengths"]
    if lengths.shape != (n_sparse,) or lengths.dtype.kind != "u":
        raise ValueError("the names do not fit the features")
    ends = np.zeros(n_sparse + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    size = int(ends[-1])
    try:
        unpack = zlib.decompressobj()
        text = unpack.decompress(arrays["names"].tobytes(), max(size, 1))
    except zlib.error as error:
        raise ValueError(f"the names cannot be read ({error})") from None
    if len(text) != size or unpack.unconsumed_tail:
        raise ValueError("the names are cut short or too long")
    return text, ends


def _names(arrays: dict[str, NDArray[Any]], n_sparse: int) -> list[str]:
    text, ends = _name_table(arrays, n_sparse)
    places = ends.tolist()
    return [text[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(places)]


def _restore_weights(
    arrays: dict[str, NDArray[Any]], n_sparse: int, n_rows: int, n_labels: int
) -> Any:
    """Return the weights as native code takes them: sparse if they are 4-byte and stored so."""
    if "weights" in arrays:
        matrix = arrays["weights"]
        single = matrix.dtype == np.float32
        if matrix.dtype not in (np.float32, np.float64) or matrix.shape != (
            n_rows,
            _native.padded_labels(n_labels, single),
        ):
            raise ValueError("the weights do not fit the features and labels")
        _require_finite(matrix)
        return matrix.reshape(-1)
    counts, tail = arrays["counts"], arrays["tail"]
    labels, values = arrays["entry_labels"], arrays["entry_weights"]
    if tail.shape != (n_rows - n_sparse, n_labels) or counts.dtype.kind != "u" or counts.ndim != 1:
        raise ValueError("the weights do not fit the features and labels")
    if values.ndim != 1 or values.shape != labels.shape or labels.dtype.kind != "u":
        raise ValueError("the entries of the weights do not fit each other")
    if values.dtype != tail.dtype or values.dtype not in (np.float32, np.float64):
        raise ValueError("the weights are not numbers of one type")
    _require_finite(values)
    _require_finite(tail)
    if "rows" in arrays:
        rows, given = arrays["rows"], counts
        if rows.shape != counts.shape or rows.dtype != np.uint32:
            raise ValueError("the rows of the weights do not fit their counts")
        if len(rows) and (rows[-1] >= n_sparse or (np.diff(rows.astype(np.int64)) <= 0).any()):
            raise ValueError("the rows of the weights are not in order")
        counts = np.zeros(n_sparse, dtype=np.uint32)
        counts[rows] = given
    if len(counts) != n_sparse:
        raise ValueError("the weights do not fit the features")
    starts = np.zeros(n_sparse + 1, dtype=np.uint64)
    np.cumsum(counts, out=starts[1:])
    if int(starts[-1]) != len(labels) or len(labels) >= 2**32:
        raise ValueError("the rows of the weights do not fit their entries")
    if len(labels) and int(labels.max()) >= n_labels:
        raise ValueError("a weight is of a label that does not exist")
    if values.dtype == np.float32:
        sparse = _native.SparseWeights(
            n_labels, starts.astype(np.uint32), labels, values, tail.reshape(-1)
        )
        # Whole vectors of a full matrix are added faster than entries one by one.
        full = n_rows * _native.padded_labels(n_labels, True) * 4
        return sparse.dense() if full <= FULL_BYTES else sparse
    return _dense(counts, labels, values, tail, n_labels)


def _require_finite(array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise ValueError("a weight is not a finite number")


def _dense(
    counts: NDArray[Any],
    labels: NDArray[Any],
    values: NDArray[Any],
    tail: NDArray[Any],
    n_labels: int,
) -> NDArray[Any]:
    single = values.dtype == np.float32
    padded = _native.padded_labels(n_labels, single)
    n_rows = len(counts) + len(tail)
    weights: NDArray[Any] = _native.aligned_array(n_rows * padded, single)
    matrix = weights.reshape(n_rows, padded)
    matrix[:] = 0
    matrix[np.repeat(np.arange(len(counts)), counts), labels] = values
    matrix[len(counts) :, :n_labels] = tail
    return weights


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
        return model.weights.dense()
    weights: Any = model.chain.native_weights(model.weights)
    return np.asarray(weights)
