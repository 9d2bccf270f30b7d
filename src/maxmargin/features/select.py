"""Which encoder a template asks for."""

from __future__ import annotations

from typing import Any

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
        For expansion.

    Returns
    -------
    FeatureEncoder or TemplateEncoder
        It knows nothing yet.
    """
    if template is None:
        return FeatureEncoder(min_count=min_count, hash_bits=hash_bits)
    if callable(template) and not isinstance(template, Template):
        return FunctionEncoder(template, min_count=min_count, hash_bits=hash_bits)
    return TemplateEncoder(
        Template.load(template),
        min_count=min_count,
        hash_bits=hash_bits,
        threads=threads,
    )
