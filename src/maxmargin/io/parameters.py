"""The parameters of an estimator in a model file, so that a loaded one can be fitted again.

A file holds no code and no pickles. Numbers, texts and None are kept as they are, solvers and
regularisers as `maxmargin.io.objective` describes them, and containers by their type::

    {"list": [...]}, {"tuple": [...]}, {"dict": [[key, value], ...]}, {"array": "param_0"}

where an array is one of the arrays of the file. Of anything else the file has the name alone,
``{"class": "module:name"}``; loading puts a `NotStored` in its place, with which ``fit`` refuses to
train.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.io.header_values import (
    plain_value,
    require_dict,
    require_plain,
    require_text,
    short_value,
)
from maxmargin.io.meta_checks import check_common, check_solving
from maxmargin.io.objective import (
    NotStored,
    describe_regularizer,
    describe_solver,
    origin_of,
    restore_regularizer,
    restore_solver,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["describe_parameters", "describe_value", "restore_parameters", "restore_value"]

#: Lists in lists, at most: deeper ones are no parameters.
MAX_DEPTH = 6
_SOLVING = ("solver", "regularizer")
_ARRAY_KINDS = "biuf"


def describe_parameters(
    params: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Describe the parameters of an estimator.

    Parameters
    ----------
    params : mapping
        By their names; ``solver`` and ``regularizer`` are among them.

    Returns
    -------
    meta : dict
        For the header of the file.
    arrays : dict
        What the header refers to.
    """
    arrays: dict[str, NDArray[Any]] = {}
    described: dict[str, Any] = {
        **describe_solver(params["solver"]),
        "regularizer": describe_regularizer(params["regularizer"]),
        "values": {
            name: _described(value, arrays, 0)
            for name, value in params.items()
            if name not in _SOLVING
        },
    }
    return described, arrays


def describe_value(value: Any, arrays: dict[str, NDArray[Any]], prefix: str) -> Any:
    """Describe one value for a header.

    Parameters
    ----------
    value : object
        Numbers, texts, None, and lists, tuples, dicts and arrays of them; of anything else the
        description has the name of its class alone.
    arrays : dict
        Where arrays go.
    prefix : str
        What their names begin with.

    Returns
    -------
    object
        What JSON can hold.
    """
    return _described(value, arrays, 0, prefix)


def restore_value(value: Any, arrays: Mapping[str, NDArray[Any]], what: str) -> Any:
    """Make a value of what `describe_value` gave; nothing of it is trusted.

    Parameters
    ----------
    value : object
        From a header.
    arrays : mapping
        The arrays of the file.
    what : str
        What it is, for messages.

    Returns
    -------
    object
        The value.
    """
    return _restored(value, arrays, what, 0)


def _described(
    value: Any, arrays: dict[str, NDArray[Any]], depth: int, prefix: str = "param_"
) -> Any:
    if isinstance(value, NotStored):
        return {"class": value.name}
    if isinstance(value, np.ndarray) and value.dtype.kind in _ARRAY_KINDS and value.ndim in (1, 2):
        name = f"{prefix}{len(arrays)}"
        kept = value.astype(np.uint8) if value.dtype == np.bool_ else value
        arrays[name] = np.ascontiguousarray(kept)
        flag = {"bool": True} if value.dtype == np.bool_ else {}
        return {"array": name, **flag}
    if isinstance(value, list | tuple | dict) and depth < MAX_DEPTH:
        inner: list[Any]
        if isinstance(value, dict):
            inner = [
                [_described(part, arrays, depth + 1, prefix) for part in pair]
                for pair in value.items()
            ]
            return {"dict": inner}
        inner = [_described(entry, arrays, depth + 1, prefix) for entry in value]
        return {"list" if isinstance(value, list) else "tuple": inner}
    plain = plain_value(value)
    if plain is NotImplemented or isinstance(plain, list):
        return {"class": origin_of(value)}
    return plain


def restore_parameters(
    meta: dict[str, Any], arrays: Mapping[str, NDArray[Any]], known: set[str]
) -> dict[str, Any]:
    """Make the parameters of an estimator from what a header says of them.

    Parameters
    ----------
    meta : dict
        What `describe_parameters` gave; nothing of it is trusted.
    arrays : mapping
        The arrays of the file.
    known : set of str
        The names of the parameters that the estimator has; others are left out.

    Returns
    -------
    dict
        The parameters that the file has.

    Raises
    ------
    ValueError, TypeError, KeyError
        If something cannot be made of what the header says.
    """
    require_dict(meta, "the parameters")
    check_solving(meta)
    values = require_dict(meta["values"], "the values of the parameters")
    params = {
        name: _restored(value, arrays, name, 0) for name, value in values.items() if name in known
    }
    check_common(params)
    params["solver"] = restore_solver(meta)
    params["regularizer"] = restore_regularizer(meta["regularizer"])
    return params


def _restored(value: Any, arrays: Mapping[str, NDArray[Any]], name: str, depth: int) -> Any:
    what = f"the parameter {short_value(name)}"
    if depth > MAX_DEPTH:
        raise ValueError(f"{what} is nested too deep")
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError(f"{what} is a list without its type")
        require_plain(value, what, 0)
        return value
    if "class" in value:
        return NotStored(require_text(value["class"], what))
    if "array" in value:
        array = arrays[require_text(value["array"], what)]
        return array.astype(np.bool_) if value.get("bool") is True else np.array(array)
    for kind, make in (("list", list), ("tuple", tuple)):
        if isinstance(value.get(kind), list):
            return make([_restored(entry, arrays, name, depth + 1) for entry in value[kind]])
    if isinstance(value.get("dict"), list):
        made: dict[Any, Any] = {}
        for pair in value["dict"]:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError(f"{what} has an entry that is not a key and a value")
            key, entry = (_restored(part, arrays, name, depth + 1) for part in pair)
            made[key] = entry
        return made
    raise ValueError(f"{what} is {short_value(value)}; expected a value of a known type")
