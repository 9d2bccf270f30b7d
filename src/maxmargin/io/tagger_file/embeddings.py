"""The embeddings of a tagger in a model file: all vectors, or where they are.

The header's ``encoder`` has ``embeddings``: the choices of `Embeddings`, the number of words and a
hash of words and numbers. The vectors are the arrays ``embedding_vectors`` [words][numbers] and the
words ``embedding_names`` and ``embedding_name_lengths``, as names of features are kept. With
``store="reference"`` there are no such arrays: the file that the vectors were read from is read
again, from where it was or from beside the model file, and must give the same hash.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.errors import FileFormatError
from maxmargin.features.embeddings import MAX_WINDOW, STORES, Embeddings, first_bad_row
from maxmargin.io.embeddings import read_embeddings
from maxmargin.io.tagger_file.names import name_arrays, read_names
from maxmargin.io.tagger_file.sizes import bounded_integer
from maxmargin.printable import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from maxmargin.io.container import Container

__all__ = [
    "EmbeddingsNeededError",
    "describe_embeddings",
    "embedding_arrays",
    "read_stored_embeddings",
]

_PREFIX, _VECTORS = "embedding_", "embedding_vectors"
_CHOICES = ("column", "window", "scale", "store", "source")


class EmbeddingsNeededError(ValueError):
    """The model file is good, but the file of its word vectors is not there, or another one is."""


def describe_embeddings(embeddings: Embeddings) -> dict[str, Any]:
    """Return what the header says of embeddings.

    Parameters
    ----------
    embeddings : Embeddings
        Those of an encoder.

    Returns
    -------
    dict
        Values that JSON can hold.
    """
    described = {name: getattr(embeddings, name) for name in _CHOICES}
    described |= {"n_words": len(embeddings), "size": embeddings.size, "hash": embeddings.hash}
    # The name in messages; where somebody else's file is says nothing about the model.
    described["source"] = Path(embeddings.source).name
    if embeddings.store == "reference":
        described |= {"path": embeddings.path, "encoding": embeddings.encoding}
    return described


def embedding_arrays(embeddings: Embeddings | None) -> dict[str, NDArray[Any]]:
    """Return the arrays that a file has of embeddings.

    Parameters
    ----------
    embeddings : Embeddings or None
        Those of an encoder; None: there are none.

    Returns
    -------
    dict
        The arrays by their names.
    """
    if embeddings is None or embeddings.store == "reference":
        return {}
    return {_VECTORS: embeddings.vectors, **name_arrays(_PREFIX, embeddings.words)}


def read_stored_embeddings(container: Container, described: Mapping[str, Any]) -> Embeddings:
    """Return the embeddings of a model file.

    Parameters
    ----------
    container : Container
        The content of the file.
    described : mapping
        What `describe_embeddings` returned.

    Returns
    -------
    Embeddings
        As they were saved.

    Raises
    ------
    EmbeddingsNeededError
        If the vectors are in a file of their own that is not there, or has others.
    ValueError, KeyError
        If the description does not make sense.
    """
    n = bounded_integer(described, "n_words", 1, 2**32)
    size = bounded_integer(described, "size", 1, 2**32)
    bounded_integer(described, "column", 0, 2**32)
    bounded_integer(described, "window", 0, MAX_WINDOW)
    if described["store"] not in STORES or type(described["scale"]) not in (int, float):
        raise ValueError("the choices of the embeddings are not known")
    choices: dict[str, Any] = {name: described[name] for name in _CHOICES}
    choices["source"] = str(choices["source"])
    if described["store"] == "reference":
        return _read_reference(container.path, described, choices, n)
    vectors = container.arrays[_VECTORS]
    if vectors.shape != (n, size) or vectors.dtype != np.float32:
        raise ValueError("the word vectors do not fit their number")
    if first_bad_row(vectors) is not None:
        raise ValueError("a word vector has a number that is not finite")
    words = read_names(container.arrays, _PREFIX, n)
    if len(set(words)) != n:
        raise ValueError("a word has two vectors")
    return Embeddings.of_matrix(words, vectors, **choices)


def _read_reference(
    model: str, described: Mapping[str, Any], choices: dict[str, Any], n: int
) -> Embeddings:
    """Read the file of the vectors, and make sure that it is the same."""
    given, encoding = str(described["path"]), str(described["encoding"])
    places = [Path(given), Path(model).parent / Path(given).name]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise EmbeddingsNeededError(
            "the word vectors of this model are in a file of their own, which is not there; "
            f"expected {quoted(given)}, or a file of that name beside the model"
        )
    del choices["source"]
    try:
        embeddings = read_embeddings(file, limit=n, encoding=encoding, **choices)
    except FileFormatError as error:
        raise EmbeddingsNeededError(f"its word vectors cannot be read: {error}") from None
    if embeddings.hash != described["hash"]:
        raise EmbeddingsNeededError(
            f"this model was trained with other word vectors than those of {quoted(str(file))}; "
            f"expected {n} words with vectors of {described['size']} numbers, the same as then"
        )
    return embeddings
