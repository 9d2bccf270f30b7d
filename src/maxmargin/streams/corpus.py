"""`EncodedCorpus`: training data that were encoded once, mapped from a file by many trainings.

The file is a container (`maxmargin.io.container`) of the kind "encoded": versioned, with a checksum
for every byte. What the header says and what the arrays hold is checked before native code sees it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._native import Vocabulary
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.features.batch import EncodedBatch, MappedFile, WindowPlan
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.encoded import EncodedSequences
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.container import Container, read_container, read_header
from maxmargin.io.tagger_file.model import LABEL_TYPES
from maxmargin.io.tagger_file.sizes import bounded_integer
from maxmargin.printable import quoted
from maxmargin.streams.encoding import KIND, VERSION

__all__ = ["EncodedCorpus", "is_encoded"]

_ROWS = ("offsets", "indptr", "indices", "values", "dense", "pair_indptr", "pair_indices", "labels")
_OBJECT_KINDS = ("strings", "sparse", "dense", "strings+dense", "sparse+dense")


def is_encoded(path: Any) -> bool:
    """Whether a path is that of an encoded file, by its first bytes.

    Parameters
    ----------
    path : path
        What somebody gave.

    Returns
    -------
    bool
        False for everything that is no container of the kind "encoded", a damaged one included.
    """
    if not isinstance(path, str | bytes | os.PathLike) or not os.path.isfile(path):  # noqa: PTH113
        return False
    with open(path, "rb") as file:  # noqa: PTH123
        if file.read(8) != b"maxmargn":
            return False
    return read_header(os.fsdecode(path)).kind == KIND


class EncodedCorpus(EncodedSequences):
    """Training data in an encoded file; what `SequenceTagger.fit` takes in the place of X and y.

    Made by `open`, from a file that ``maxmargin encode`` or `encode` wrote. The arrays are mapped
    from the file, so that many trainings on one machine share them. Nobody may change the file in
    place meanwhile; to replace it does no harm.

    Attributes
    ----------
    path : str
        The file.
    n_sequences, n_tokens, n_labels : int
        How much there is.
    classes : list
        The labels.
    meta : dict
        What else the file says: ``source``, ``format``, ``n_skipped``, ...
    n_bytes : int
        Size of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.streams import EncodedCorpus, encode
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> data = [([["dogs"], ["bark"]], ["N", "V"]), ([["cats"]], ["N"])]
    >>> _ = encode(data, folder / "data.mme")
    >>> corpus = EncodedCorpus.open(folder / "data.mme")
    >>> corpus.n_sequences, corpus.n_tokens, corpus.classes
    (2, 3, ['N', 'V'])
    """

    def __init__(self, container: Container, function: Any = None) -> None:
        self.path = container.path
        self.meta = container.meta
        self.n_bytes = container.n_bytes
        self._function = function
        self._arrays = container.arrays
        meta, arrays = container.meta, container.arrays
        self.classes = _labels(meta)
        counts = np.array(meta["label_counts"], dtype=np.int64)
        if counts.shape != (len(self.classes),) or (counts < 0).any():
            raise ValueError("the counts of the labels do not fit the labels")
        self.label_counts = counts
        described = meta["encoder"]
        self._n_sparse = bounded_integer(described, "n_sparse", 0, 2**32 - 1)
        self._n_pair = bounded_integer(described, "n_pair", 0, 2**32 - 1)
        for name in _ROWS:
            self._check_array(name)
        offsets, codes = arrays["offsets"], arrays["labels"]
        pages = _pages(offsets)
        mapped = MappedFile(pages, _hash(container))
        self.batch = EncodedBatch(
            offsets,
            self._n_sparse,
            arrays.get("indptr"),
            arrays.get("indices"),
            arrays.get("values"),
            arrays.get("dense"),
            self._n_pair,
            arrays.get("pair_indptr"),
            arrays.get("pair_indices"),
            mapped,
        )
        if len(codes) != self.batch.n_tokens or counts.sum() != self.batch.n_tokens:
            raise ValueError("there is not one label for each token")
        self.codes = codes
        self.sequence_weight = arrays.get("sequence_weight")
        if self.sequence_weight is not None and self.sequence_weight.shape != (len(offsets) - 1,):
            raise ValueError("there is not one weight for each sequence")
        dense, sizes = self.batch.n_dense, (meta["n_sequences"], meta["n_tokens"])
        if sizes != (self.batch.n_sequences, self.batch.n_tokens) or dense != described["n_dense"]:
            raise ValueError("the header has other sizes than the arrays")
        self._encoder()  # which checks the rest

    @classmethod
    def open(cls, path: Any, template: Any = None) -> EncodedCorpus:
        """Open an encoded file; all of it is read once, to verify its checksums.

        Parameters
        ----------
        path : path
            The file.
        template : callable or None
            Of a file whose features were made by a function: that function, for prediction.

        Returns
        -------
        EncodedCorpus
            Its arrays are mapped.

        Raises
        ------
        ModelFormatError
            If the file is damaged, cut short, of a newer version, or no encoded file.
        OSError
            If it cannot be read.
        """
        name = os.fsdecode(path)
        header = read_header(name)
        if header.kind != KIND:
            raise ModelFormatError(
                f"{name}: holds a model of the kind {quoted(header.kind)}; expected encoded "
                "training data, as maxmargin encode writes them"
            )
        version = header.meta.get("version")
        if version != VERSION:
            raise ModelFormatError(
                f"{name}: encoded data of version {quoted(str(version), 40)}; this maxmargin reads "
                f"version {VERSION}: encode the data again"
            )
        container = read_container(name, KIND, mmap=True)
        try:
            return cls(container, template)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            if isinstance(error, ModelFormatError | NotCompatibleError):
                raise
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ModelFormatError(f"{name}: the encoded data are inconsistent: {said}") from None

    def __repr__(self) -> str:
        return (
            f"<EncodedCorpus {self.path!r}: {self.n_sequences} sequences, {self.n_tokens} tokens, "
            f"{len(self.classes)} labels>"
        )

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return self.batch.n_sequences

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self.batch.n_tokens

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.classes)

    def in_windows(self, plan: WindowPlan | None) -> EncodedCorpus:
        """Return the same corpus, to be worked through in windows.

        Parameters
        ----------
        plan : WindowPlan or None
            The windows; None: none.
        """
        copy = object.__new__(EncodedCorpus)
        copy.__dict__.update(self.__dict__)
        assert self.batch.mapped is not None
        mapped = dataclasses.replace(self.batch.mapped, windows=plan)
        copy.batch = dataclasses.replace(self.batch, mapped=mapped)
        return copy

    # --- the encoder -----------------------------------------------------------------------------

    def encoder_for(self, asked: Any, dtype: Any) -> Any:
        """Return the encoder that made the numbers; see `EncodedSequences.encoder_for`.

        Parameters
        ----------
        asked : encoder
            One that asks for nothing in particular (no template, every feature), or for the same
            features.
        dtype : "float32" or "float64"
            Type of the weights.

        Raises
        ------
        NotCompatibleError
            If it asks for other features, or values are kept in another precision.
        """
        encoder = self._encoder()
        if "values" in self._arrays and (str(dtype) == "float64") != bool(self.meta["double"]):
            have, want = ("float64", "float32") if self.meta["double"] else ("float32", "float64")
            raise NotCompatibleError(
                f"{self.path}: values of features were encoded for dtype={have!r}, and training is "
                f"with dtype={want!r}; encode the data with --dtype {want}"
            )
        if asked is None or (type(asked) is FeatureEncoder and not _particular(asked)):
            return encoder
        for name in ("hash_bits", "min_count"):
            there, here = getattr(encoder, name), getattr(asked, name)
            if there != here and not (name == "min_count" and here == 1):
                raise NotCompatibleError(
                    f"{self.path}: was encoded with {name}={there}, and training asks for "
                    f"{name}={here}; encode the data again, or leave it out"
                )
        if isinstance(asked, TemplateEncoder):
            if asked.embeddings is not None:
                raise NotCompatibleError(
                    f"{self.path}: an encoded file has no words to look up; embeddings need the "
                    "data as they were"
                )
            same = isinstance(encoder, TemplateEncoder)
            if not same or encoder.template.text != asked.template.text:
                raise NotCompatibleError(
                    f"{self.path}: was encoded with another template than "
                    f"{quoted(asked.template.source)}; encode the data again, or leave it out"
                )
        return encoder

    def _encoder(self) -> Any:
        described, arrays = self.meta["encoder"], self._arrays
        kind, bits = described["kind"], described["hash_bits"]
        if bits is not None and (type(bits) is not int or self._n_sparse != 2**bits):
            raise ValueError("the number of hashed features is not a power of two")
        min_count = bounded_integer(described, "min_count", 1, 2**63)
        if kind == TemplateEncoder.kind:
            given = described["template"]
            template = Template.parse(str(given["text"]), str(given["source"]))
            n_columns = bounded_integer(described, "n_columns", 1, 2**32)
            column = described["label_column"]
            if column is not None:
                column = bounded_integer(described, "label_column", 0, n_columns - 1)
            if template.n_columns_needed > n_columns:
                raise ValueError("the template needs more columns than there were")
            listed = bits is None
            encoder = TemplateEncoder.restore(
                template,
                n_columns=n_columns,
                label_column=column,
                hash_bits=bits,
                fingerprints=self._named("", self._n_sparse) if listed else None,
                pair_fingerprints=self._named("pair_", self._n_pair) if listed else None,
                min_count=min_count,
            )
            for prefix, features in (("", encoder.unigrams), ("pair_", encoder.bigrams)):
                if listed and f"{prefix}lines" in arrays:
                    features.lines = arrays[f"{prefix}lines"]
                    features.lookup = self._lookup(prefix)
            return encoder
        if kind not in _OBJECT_KINDS:
            raise ValueError(f"the kind of features is {quoted(str(kind), 40)}, which is not known")
        made: FeatureEncoder = FeatureEncoder(hash_bits=bits)
        if "function" in described:
            function = _missing_function(str(described["function"]))
            made = FunctionEncoder(self._function or function, hash_bits=bits)
            made.n_columns = bounded_integer(described, "n_columns", 0, 2**32)
            made.label_column = described["label_column"]
        made.min_count, made.kind = min_count, kind
        made.double = bool(self.meta["double"])
        made.n_sparse, made.n_dense = self._n_sparse, self.batch.n_dense
        if kind.startswith("strings") and bits is None:
            text, ends = self._name_table("", self._n_sparse)
            made.vocabulary = Vocabulary.from_table(text.tobytes(), np.array(ends))
        return made

    def _named(self, prefix: str, n: int) -> NDArray[np.uint64]:
        """Return the fingerprints of features, with the arrays beside them checked."""
        if n == 0:
            return np.empty(0, np.uint64)
        fingerprints, lines = self._arrays[f"{prefix}fingerprints"], self._arrays[f"{prefix}lines"]
        for array, dtype in ((fingerprints, np.uint64), (lines, np.uint32)):
            if array.dtype != dtype or array.shape != (n,):
                raise ValueError("the fingerprints do not fit the features")
        self._name_table(prefix, n)
        return fingerprints

    def _name_table(self, prefix: str, n: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        text, ends = self._arrays[f"{prefix}name_text"], self._arrays[f"{prefix}name_ends"]
        fits = ends.dtype == np.int64 and ends.shape == (n + 1,) and text.dtype == np.uint8
        if not fits or ends[0] != 0 or ends[-1] != text.size or (np.diff(ends) < 0).any():
            raise ValueError("the names do not fit the features")
        return text, ends

    def _lookup(self, prefix: str) -> Any:
        text, ends = self._arrays[f"{prefix}name_text"], self._arrays[f"{prefix}name_ends"]
        path = self.path

        def names(features: NDArray[Any]) -> list[str]:
            try:
                return [text[ends[k] : ends[k + 1]].tobytes().decode() for k in features.tolist()]
            except UnicodeDecodeError:
                raise ModelFormatError(f"{path}: a name of a feature is not UTF-8") from None

        return names

    def _check_array(self, name: str) -> None:
        wanted = {"indices": "u4", "pair_indices": "u4", "labels": "i4"}
        wanted |= {"offsets": "i8", "indptr": "i8", "pair_indptr": "i8"}
        if name in self._arrays and name in wanted:
            array = self._arrays[name]
            if array.dtype != np.dtype(wanted[name]) or array.ndim != 1:
                raise ValueError(f"the array {name} is {array.ndim}-d {array.dtype}")


def _labels(meta: dict[str, Any]) -> list[Any]:
    classes = meta["classes"]
    if not isinstance(classes, list) or not classes:
        raise ValueError("there are no labels")
    if any(type(label) not in LABEL_TYPES for label in classes):
        raise ValueError("a label is neither text nor number")
    if len({(type(label), label) for label in classes}) != len(classes):
        raise ValueError("a label is there twice")
    return classes


def _particular(encoder: FeatureEncoder) -> bool:
    return encoder.min_count != 1 or encoder.hash_bits is not None


def _pages(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return all bytes of the mapping that an array is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
        base = base.base
    whole: NDArray[np.uint8] = base
    return whole


def _hash(container: Container) -> int:
    """Return a hash of features and labels, from the checksums of the arrays."""
    known = [(name, container.checksums.get(name)) for name in _ROWS]
    sizes = [container.meta["encoder"][name] for name in ("n_sparse", "n_pair")]
    digest = hashlib.sha256(repr((known, sizes)).encode()).digest()
    return int.from_bytes(digest[:8], "little")


def _missing_function(name: str) -> Any:
    def function(_: Any) -> Any:
        raise NotCompatibleError(
            f"the features were made by the function {name}, which a file cannot hold; give it to "
            "EncodedCorpus.open(path, template=...)"
        )

    function.__qualname__ = name.rpartition(":")[2] or "function"
    function.__module__ = name.partition(":")[0]
    return function
