"""Checks of what the header of a model file says of training, as far as they need no solver."""

from __future__ import annotations

from typing import Any

from maxmargin.io.header_values import (
    MAX_INT,
    require_choice,
    require_dict,
    require_integer,
    require_number,
    require_plain,
    require_text,
    short_value,
)
from maxmargin.io.objective import FORMULATION, VERSION

__all__ = ["check_common", "check_meta", "check_solving", "check_training"]

_ALLOWED = ("iob2", "iobes")


def check_meta(meta: dict[str, Any]) -> None:
    """Check all that a header says of training, as far as that needs no solver.

    Parameters
    ----------
    meta : dict
        Of a model file.

    Raises
    ------
    ValueError
        If a value is not what it should be; the message names it.
    """
    check_training(meta)
    _check_reading(require_dict(meta.get("reading", {}), "reading"))
    if "objective" in meta:
        _check_objective(require_dict(meta["objective"], "the objective"), len(meta["classes"]))


def check_training(meta: dict[str, Any]) -> None:
    """Check certificate, figures and parameters of a training.

    Parameters
    ----------
    meta : dict
        Of a model file of any kind.

    Raises
    ------
    ValueError
        If a value is not what it should be; the message names it.
    """
    certificate = require_dict(meta.get("certificate", {}), "the certificate")
    for name in ("primal", "dual", "gap", "C"):
        if name in certificate and not (name == "primal" and certificate[name] is None):
            require_number(certificate[name], f"{name} of the certificate")
    if "n_examples" in certificate:
        require_integer(certificate["n_examples"], "n_examples of the certificate", 0)
    if "widened" in certificate:
        require_integer(certificate["widened"], "widened of the certificate", 0)
    if "approximate" in certificate:
        require_choice(certificate["approximate"], "approximate of the certificate", (False, True))
    training = require_dict(meta.get("training", {}), "training")
    require_plain(training, "training", 0)
    for name in ("passes", "n_features", "oracle_calls"):
        if training.get(name) is not None:
            require_integer(training[name], f"{name} of training", 0)
    if "converged" in training:
        require_choice(training["converged"], "converged of training", (False, True))
    if "stop_reason" in training:
        require_text(training["stop_reason"], "stop_reason of training")
    params = require_dict(meta.get("params", {}), "params")
    require_plain(params, "params", 0)
    for name, value in params.items():
        if name in _PARAMS:
            _PARAMS[name](value, f"{name} of params")
    for name in ("format", "maxmargin", "columns_conllu"):
        if meta.get(name) is not None:
            require_text(meta[name], name)


def _check_reading(reading: dict[str, Any]) -> None:
    """Check how the training file was read, as `maxmargin tag` then reads others."""
    from maxmargin.io.text import check_encoding

    for name, value in reading.items():
        require_text(value, f"{name} of reading")
    if "separator" in reading:
        require_choice(reading["separator"], "separator of reading", ("auto", "tab", "space"))
    if "encoding" in reading:
        check_encoding(reading["encoding"])


def _check_objective(objective: dict[str, Any], n_labels: int) -> None:
    version = require_integer(objective["version"], "version of the objective", 1)
    if version > VERSION:
        raise ValueError(
            f"its objective was written by a newer version of maxmargin (version {version}; this "
            f"one reads up to {VERSION})"
        )
    for name in ("C", "C_scale", "gap", "max_passes", "time_limit", "dtype"):
        _PARAMS[name](objective[name], f"{name} of the objective")
    if version == 1:  # which knew no other limit
        _count(objective["max_passes"], "max_passes of the objective")
    check_solving(objective)
    require_choice(objective["labels"], "labels of the objective", (False, True))
    for name, texts in (("loss", ("hamming", "matrix")), ("allowed", (None, *_ALLOWED, "matrix"))):
        value = objective[name]
        if isinstance(value, dict) and "class" in value:
            require_text(value["class"], f"class of {name} of the objective")
        elif name == "loss" and isinstance(value, dict):
            _check_pairs(value["pairs"], n_labels)
        else:
            require_choice(value, f"{name} of the objective", texts)


def check_solving(objective: dict[str, Any]) -> None:
    """Check what a header says of solver, formulation and regulariser.

    Parameters
    ----------
    objective : dict
        With ``solver``, ``slack``, ``rescale`` and ``regularizer``.

    Raises
    ------
    ValueError, KeyError
        If a value is not what it should be, or missing.
    """
    for name in ("solver", "regularizer"):
        value = objective[name]
        if name == "regularizer" and value in (None, "l2"):
            continue
        what = f"{name} of the objective"
        require_dict(value, what)
        require_plain(value, what, 0)
        if "class" in value:
            require_text(value["class"], f"class of the {what}")
        else:
            require_text(value["name"], f"name of the {what}")
            require_dict(value["options"], f"options of the {what}")
    if "name" in objective["solver"]:
        require_choice(objective["solver"]["named"], "named of the solver", (False, True))
    for name, known in FORMULATION.items():
        require_choice(objective[name], f"{name} of the objective", (None, *known))


def check_common(params: dict[str, Any]) -> None:
    """Check the parameters that every estimator has, where they are there.

    Parameters
    ----------
    params : dict
        Parameters by their names.

    Raises
    ------
    ValueError
        If a value is not what it should be; the message names it.
    """
    for name in _COMMON:
        by_itself = name in ("gap", "dtype") and params.get(name) == "auto"
        if name in params and not by_itself:
            _PARAMS[name](params[name], f"the parameter {name}")


def _check_pairs(pairs: Any, n_labels: int) -> None:
    if not isinstance(pairs, list):
        raise ValueError("the pairs of the loss are no list")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 3:
            raise ValueError("the loss has an entry that is not a truth, a label and a cost")
        for place in pair[:2]:
            if require_integer(place, "a label of the loss", 0) >= n_labels:
                raise ValueError("the loss is of a label that does not exist")
        if require_number(pair[2], "a cost of the loss") < 0:
            raise ValueError("a cost of the loss is negative")


def _positive(value: Any, what: str) -> None:
    if require_number(value, what) <= 0:
        raise ValueError(f"{what} is {short_value(value)}; expected a number above 0")


def _not_negative(value: Any, what: str) -> None:
    if require_number(value, what) < 0:
        raise ValueError(f"{what} is {short_value(value)}; expected a number that is not negative")


def _positive_or_none(value: Any, what: str) -> None:
    if value is not None:
        _positive(value, what)


def _flag(value: Any, what: str) -> None:
    require_choice(value, what, (False, True, 0, 1))


def _count(value: Any, what: str) -> None:
    require_integer(value, what, 1)


def _count_or_none(value: Any, what: str) -> None:
    if value is not None:
        _count(value, what)


def _any_integer(value: Any, what: str) -> None:
    if not isinstance(value, bool):
        require_integer(value, what, -MAX_INT)


def _any_integer_or_none(value: Any, what: str) -> None:
    if value is not None:
        _any_integer(value, what)


def _one_of(*among: Any) -> Any:
    return lambda value, what: require_choice(value, what, among)


def _gamma(value: Any, what: str) -> None:
    if not isinstance(value, str):
        require_number(value, what)


def _text_or_none(value: Any, what: str) -> None:
    if value is not None and not isinstance(value, list):
        require_text(value, what)


#: Of a parameter that may be in a file, what it must be. (Others are ignored.)
_PARAMS: dict[str, Any] = {
    "C": _positive,
    "C_scale": _one_of("sum", "mean"),
    "gap": _not_negative,
    "max_passes": _count_or_none,
    "time_limit": _positive_or_none,
    "dtype": _one_of("float32", "float64"),
    "n_jobs": _any_integer_or_none,
    "warm_start": _flag,
    "verbose": _any_integer,
    "random_state": _any_integer_or_none,
    "min_count": _count,
    "hash_bits": _count_or_none,
    "kernel": require_text,
    "degree": _any_integer,
    "gamma": _gamma,
    "coef0": require_number,
    "cache_mb": require_number,
    "prior_precision": _positive,
    # In files that have no objective:
    "solver": require_text,
    "regularizer": _text_or_none,
    "loss": _text_or_none,
    "labels": _text_or_none,
    "allowed": _text_or_none,
}
#: Those that every estimator has.
_COMMON = (
    *("C", "C_scale", "gap", "max_passes", "time_limit", "dtype"),
    *("n_jobs", "warm_start", "verbose", "random_state"),
)
