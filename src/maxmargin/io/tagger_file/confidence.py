"""What a model file says of the temperature of a tagger, and of the weights of its classes.

``temperature`` is a number above 0; files without it hold models that are not calibrated.
``class_weight`` is "balanced", or ``{"pairs": [[label, factor], ...]}``, or ``{"class": name}`` for
something that a file cannot hold; files without it hold models that were trained without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maxmargin.io.header_values import (
    plain_value,
    require_dict,
    require_number,
    require_text,
    short_value,
)
from maxmargin.io.objective import NotStored, origin_of

__all__ = ["check_confidence", "confidence_meta", "restore_confidence"]


def confidence_meta(tagger: Any) -> dict[str, Any]:
    """Return what the header says of a tagger's temperature and class weights.

    Parameters
    ----------
    tagger : SequenceTagger
        Fitted.

    Returns
    -------
    dict
        ``temperature`` and ``class_weight``, where there are any.
    """
    meta: dict[str, Any] = {}
    if getattr(tagger, "temperature_", None) is not None:
        meta["temperature"] = float(tagger.temperature_)
    given = getattr(tagger, "_trained_class_weight", tagger.class_weight)
    if isinstance(given, str):
        meta["class_weight"] = given
    elif isinstance(given, Mapping):
        pairs = [[plain_value(label), float(value)] for label, value in given.items()]
        meta["class_weight"] = {"pairs": pairs}
    elif given is not None:
        meta["class_weight"] = {"class": origin_of(given)}
    return meta


def check_confidence(meta: dict[str, Any]) -> None:
    """Check what a header says of temperature and class weights.

    Parameters
    ----------
    meta : dict
        Of a model file.

    Raises
    ------
    ValueError
        If a value is not what it should be; the message names it.
    """
    if "temperature" in meta and require_number(meta["temperature"], "temperature") <= 0:
        raise ValueError(
            f"the temperature is {short_value(meta['temperature'])}; expected a number above 0"
        )
    given = meta.get("class_weight")
    if given is None or isinstance(given, str):
        if given not in (None, "balanced"):
            raise ValueError(f"class_weight is {short_value(given)}; expected balanced or pairs")
        return
    described = require_dict(given, "class_weight")
    if "class" in described:
        require_text(described["class"], "class of class_weight")
        return
    pairs = described["pairs"]
    if not isinstance(pairs, list):
        raise ValueError("the pairs of class_weight are no list")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or isinstance(pair[0], list | dict):
            raise ValueError("class_weight has an entry that is not a label and a number")
        if require_number(pair[1], "a factor of class_weight") < 0:
            raise ValueError("a factor of class_weight is negative")


def restore_confidence(tagger: Any, meta: dict[str, Any]) -> None:
    """Give a loaded tagger its temperature and class weights.

    Parameters
    ----------
    tagger : SequenceTagger
        As it was made of the rest of the file.
    meta : dict
        Of the file, checked.
    """
    if "temperature" in meta:
        tagger.temperature_ = float(meta["temperature"])
    given = meta.get("class_weight")
    if isinstance(given, dict) and "class" in given:
        given = NotStored(given["class"])
    elif isinstance(given, dict):
        given = {label: float(value) for label, value in given["pairs"]}
    tagger.class_weight = tagger._trained_class_weight = given
