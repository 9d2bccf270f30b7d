"""The encoder of a tagger in a model file: how inputs become features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin import _native
from maxmargin.errors import ModelFormatError
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder
from maxmargin.io.tagger_file.embeddings import describe_embeddings, read_stored_embeddings
from maxmargin.io.tagger_file.names import read_fingerprints, read_name_table, read_names
from maxmargin.io.tagger_file.sizes import bounded_integer
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from maxmargin.io.container import Container
    from maxmargin.io.tagger_file.sizes import Sizes

__all__ = ["FunctionNeededError", "describe_encoder", "read_encoder"]

_KINDS = ("strings", "sparse", "dense", "strings+dense", "sparse+dense")


def describe_encoder(encoder: FeatureEncoder | TemplateEncoder) -> dict[str, Any]:
    """Return what the header says of an encoder, without the numbers of its features.

    Parameters
    ----------
    encoder : FeatureEncoder or TemplateEncoder
        Fitted.

    Returns
    -------
    dict
        Values that JSON can hold.
    """
    described: dict[str, Any] = {
        "kind": encoder.kind,
        "hash_bits": encoder.hash_bits,
        "min_count": encoder.min_count,
        "n_dense": encoder.n_dense,
    }
    if isinstance(encoder, TemplateEncoder):
        described["template"] = {"text": encoder.template.text, "source": encoder.template.source}
        if encoder.embeddings is not None:
            described["embeddings"] = describe_embeddings(encoder.embeddings)
    if isinstance(encoder, TemplateEncoder | FunctionEncoder):
        described["n_columns"] = encoder.n_columns
        described["label_column"] = encoder.label_column
    if isinstance(encoder, FunctionEncoder):
        function = encoder.function
        module = getattr(function, "__module__", "?")
        described["function"] = f"{module}:{getattr(function, '__qualname__', repr(function))}"
    return described


class FunctionNeededError(ValueError):
    """The file is good, but the caller must give the function of its features, or must not."""


def read_encoder(
    container: Container, sizes: Sizes, function: Callable[[Any], Any] | None
) -> FeatureEncoder | TemplateEncoder:
    """Make the encoder that a file describes.

    Parameters
    ----------
    container : Container
        The content of the file.
    sizes : Sizes
        The numbers of features.
    function : callable or None
        The function that makes the features, for a model that was trained with one.

    Returns
    -------
    FeatureEncoder or TemplateEncoder
        Fitted.

    Raises
    ------
    FunctionNeededError
        If the function is missing, or if there must not be one.
    ValueError, KeyError
        If the description does not make sense.
    """
    described: dict[str, Any] = container.meta["encoder"]
    if function is not None and ("function" not in described or not callable(function)):
        raise FunctionNeededError(
            f"found {function!r} as the function of the features; expected "
            + ("a function" if "function" in described else "none: the model needs none")
        )
    min_count = bounded_integer(described, "min_count", 1, 2**63)
    if described["kind"] == TemplateEncoder.kind:
        return _template_encoder(container, described, sizes, min_count)
    if "function" in described:
        if function is None:
            raise FunctionNeededError(
                f"the features of this model are made by the function "
                f"{described['function']}, which a file cannot hold; pass it when loading"
            )
        n_columns, label_column = _columns(described)
        by_function = FunctionEncoder(
            function, label_column=label_column, hash_bits=sizes.hash_bits
        )
        by_function.n_columns = n_columns
        encoder: FeatureEncoder = by_function
    else:
        encoder = FeatureEncoder(hash_bits=sizes.hash_bits)
    kind = described["kind"]
    first, _, second = str(kind).partition("+")
    sparse, dense = first in ("strings", "sparse"), "dense" in (first, second)
    if kind not in _KINDS or dense != (sizes.n_dense > 0) or (sizes.n_sparse > 0 and not sparse):
        raise ValueError(
            f"the kind of features is {quoted(kind)}, which does not fit their numbers"
        )
    if sizes.n_pair:
        raise ValueError("only templates have features of two labels")
    encoder.min_count = min_count
    encoder.kind, encoder.n_sparse, encoder.n_dense = kind, sizes.n_sparse, sizes.n_dense
    if first == "strings" and sizes.hash_bits is None:
        encoder.vocabulary = _native.Vocabulary()
        if sizes.n_sparse:
            table = read_name_table(container.arrays, "", sizes.n_sparse)
            encoder.vocabulary = _native.Vocabulary.from_table(*table)
    return encoder


def _columns(described: Mapping[str, Any]) -> tuple[int, int | None]:
    n_columns = bounded_integer(described, "n_columns", 0, 2**32)
    if described["label_column"] is None:
        return n_columns, None
    return n_columns, bounded_integer(described, "label_column", 0, max(n_columns - 1, 0))


def _template_encoder(
    container: Container, described: Mapping[str, Any], sizes: Sizes, min_count: int
) -> TemplateEncoder:
    given = described["template"]
    template = Template.parse(given["text"], str(given["source"]))
    n_columns, label_column = _columns(described)
    if n_columns == 0 or template.n_columns_needed > n_columns:
        raise ValueError("the template needs more columns than there were")
    embeddings = None
    if "embeddings" in described:
        embeddings = read_stored_embeddings(container, described["embeddings"])
    if sizes.n_dense != (0 if embeddings is None else embeddings.n_features):
        raise ValueError("the dense features of a template are those of its embeddings")
    if embeddings is not None and embeddings.column >= n_columns:
        raise ValueError("the embeddings need more columns than there were")
    arrays, path = container.arrays, container.path
    listed = sizes.hash_bits is None
    pairs = sizes.n_pair > 0 and listed
    encoder = TemplateEncoder.restore(
        template,
        n_columns=n_columns,
        label_column=label_column,
        hash_bits=sizes.hash_bits,
        fingerprints=read_fingerprints(arrays, "", sizes.n_sparse) if listed else None,
        names=_names_when_asked(path, arrays, "", sizes.n_sparse),
        pair_fingerprints=read_fingerprints(arrays, "pair_", sizes.n_pair) if pairs else None,
        pair_names=_names_when_asked(path, arrays, "pair_", sizes.n_pair),
        min_count=min_count,
        embeddings=embeddings,
    )
    if bool(encoder.bigrams.program) < bool(sizes.n_pair):
        raise ValueError("the template has no lines for features of two labels")
    for features in (encoder.unigrams, encoder.bigrams):
        features.index()  # which refuses repeated fingerprints
    return encoder


def _names_when_asked(
    path: str, arrays: Mapping[str, NDArray[Any]], prefix: str, n: int
) -> Callable[[], list[str]]:
    """Return a function that reads the names of features, or raises an error with the file's."""

    def names() -> list[str]:
        try:
            return read_names(arrays, prefix, n)
        except ValueError as error:
            raise ModelFormatError(f"{path}: the model is inconsistent: {error}") from None

    return names
