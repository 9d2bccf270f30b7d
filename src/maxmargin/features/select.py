"""Which encoder a template asks for."""

from __future__ import annotations

from typing import Any

from maxmargin.errors import NotCompatibleError
from maxmargin.features.embeddings import Embeddings
from maxmargin.features.encode import FeatureEncoder
from maxmargin.features.function_encoder import FunctionEncoder
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder

__all__ = ["encoder_of"]


def encoder_of(
    template: Any,
    *,
    min_count: int = 1,
    hash_bits: int | None = None,
    threads: int = 1,
    embeddings: Embeddings | None = None,
) -> FeatureEncoder | TemplateEncoder:
    """Make the encoder for a template.

    Parameters
    ----------
    template : None, str, path, Template or callable
        None: features are given as they are. A function: it makes them. Else columns are expanded
        by a built-in template, a file, or a `Template`.
    min_count, hash_bits
        As in `FeatureEncoder`.
    threads : int
        For expansion, and for looking up strings.
    embeddings : Embeddings or None
        Vectors of words, beside a template.

    Returns
    -------
    FeatureEncoder or TemplateEncoder
        It knows nothing yet.

    Raises
    ------
    NotCompatibleError
        If there are embeddings and no template: nobody knows what the words are.
    """
    if embeddings is not None and (template is None or _is_function(template)):
        given = "no template" if template is None else "a function in the place of a template"
        raise NotCompatibleError(
            f"embeddings are looked up by the words of a column, and there is {given}; use a "
            "template, or give each sequence as a tuple of its features and an array of vectors"
        )
    if template is None:
        return FeatureEncoder(min_count=min_count, hash_bits=hash_bits, threads=threads)
    if _is_function(template):
        return FunctionEncoder(
            template, min_count=min_count, hash_bits=hash_bits, threads=threads
        )
    return TemplateEncoder(
        Template.load(template),
        min_count=min_count,
        hash_bits=hash_bits,
        threads=threads,
        embeddings=embeddings,
    )


def _is_function(template: Any) -> bool:
    return callable(template) and not isinstance(template, Template)
