"""The objective of training in a model file: what loading must give back so that ``fit`` goes on.

A file holds no code and no pickles, so solvers and regularisers are written as a name and the
values of their parameters, and only those of maxmargin itself can be made again. Of anything else
the file has the name alone; loading puts a `NotStored` in its place, with which ``fit`` refuses to
train.

In the header of a model file, ``objective`` is::

    {"version": 1,
     "C": 0.1, "C_scale": "sum", "gap": 0.01, "max_passes": 1000, "time_limit": null,
     "dtype": "float32",
     "solver": {"name": "sdm", "options": {"schedule": "auto", ...}, "named": true},
     "slack": "linear", "rescale": "margin",
     "regularizer": {"name": "ElasticNet", "options": {"rho1": 0.5, "rho2": 0.5}},
     "loss": "hamming", "labels": false, "allowed": null}

``named`` says that the solver was given by its name. A regulariser of null is `L2`. ``labels`` says
whether the labels were given, which then are the classes of the model. A loss that is not "hamming"
is ``{"pairs": [[truth, label, cost], ...]}`` with places in the classes, or "matrix", which is the
array ``loss_costs``; an ``allowed`` of "matrix" is the array ``mask_transition``. A solver, a
regulariser or an ``allowed`` that cannot be made again is ``{"class": "module:name"}``.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.structures.chain_options import cost_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = [
    "LOSS_COSTS",
    "OBJECTIVE",
    "NotStored",
    "check_meta",
    "describe_objective",
    "plain_value",
    "restore_objective",
]

VERSION = 1
#: The parameters of an estimator that say what is minimised, and how far.
OBJECTIVE = (
    *("C", "C_scale", "gap", "max_passes", "time_limit", "dtype"),
    *("solver", "regularizer", "loss", "labels", "allowed"),
)
#: The array of a loss that is a matrix.
LOSS_COSTS = "loss_costs"
#: Sizes beyond which a number or a text in a header is not taken for what it should be.
MAX_INT = 2**63 - 1
MAX_TEXT = 10_000
MAX_DEPTH = 8
_FORMULATION = {"slack": ("linear", "quadratic", "hard"), "rescale": ("margin", "slack", "none")}


@dataclasses.dataclass(frozen=True)
class NotStored:
    """What an estimator has as a parameter that its file could not hold.

    Attributes
    ----------
    name : str
        Where the object came from, ``module:name``.
    """

    name: str

    def __repr__(self) -> str:
        return f"<not in the model file: {_short(self.name)}>"


# --- writing -------------------------------------------------------------------------------------


def plain_value(value: Any) -> Any:
    """Return a value as a file can hold it, or NotImplemented if it cannot.

    Parameters
    ----------
    value : object
        Numbers of NumPy and of other libraries become Python's.

    Returns
    -------
    None, bool, int, float, str or list
        Or NotImplemented.
    """
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return str.__str__(value) if len(value) <= MAX_TEXT else NotImplemented
    if isinstance(value, numbers.Integral):
        return int(value) if abs(int(value)) <= MAX_INT else NotImplemented
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            return NotImplemented
        return number if math.isfinite(number) else NotImplemented
    if isinstance(value, list):
        entries = [plain_value(entry) for entry in value]
        return NotImplemented if any(e is NotImplemented for e in entries) else entries
    return NotImplemented


def describe_objective(
    params: Mapping[str, Any], chain: Chain
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Describe the objective that a chain was trained with.

    Parameters
    ----------
    params : mapping
        The parameters in `OBJECTIVE`, as an estimator takes them; those that are missing have
        their defaults.
    chain : Chain
        The structure, prepared.

    Returns
    -------
    meta : dict
        For the header of the file.
    arrays : dict
        What the header refers to.
    """
    described: dict[str, Any] = {"version": VERSION}
    defaults = {"C": 0.1, "C_scale": "sum", "gap": 0.01, "max_passes": 1000, "time_limit": None}
    for name, default in (defaults | {"dtype": "float32"}).items():
        value = plain_value(params.get(name, default))
        if value is NotImplemented:
            raise TypeError(f"{name} is {params[name]!r}, which a model file cannot hold")
        described[name] = value
    described |= _describe_solver(params.get("solver", "sdm"))
    described["regularizer"] = _describe_regularizer(params.get("regularizer"))
    described["labels"] = params.get("labels") is not None
    described["loss"], arrays = _describe_loss(params.get("loss", "hamming"), chain.classes_)
    allowed = params.get("allowed")
    if allowed is None or isinstance(allowed, str):
        described["allowed"] = allowed
    elif isinstance(allowed, NotStored) or callable(allowed):
        described["allowed"] = {"class": _origin(allowed)}
    else:
        described["allowed"] = "matrix"
    return described, arrays


def _origin(thing: Any) -> str:
    if isinstance(thing, NotStored):
        return thing.name
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}:{named.__qualname__}"[:MAX_TEXT]


def _options(thing: Any) -> dict[str, Any] | None:
    """Return the parameters of a dataclass, if a file can hold them all."""
    values = {
        field.name: plain_value(getattr(thing, field.name))
        for field in dataclasses.fields(thing)
        if field.init
    }
    return None if any(v is NotImplemented for v in values.values()) else values


def _describe_solver(given: Any) -> dict[str, Any]:
    from maxmargin.solvers import SOLVERS, make_solver

    if isinstance(given, NotStored):
        return {"solver": {"class": given.name}, "slack": None, "rescale": None}
    solver = make_solver(given)
    own = type(solver) is SOLVERS.get(solver.name)
    options = _options(solver) if own else None
    described: dict[str, Any] = {"class": _origin(solver)}
    if options is not None:
        described = {"name": solver.name, "options": options, "named": isinstance(given, str)}
    formulation = {
        name: value if (value := getattr(solver, name)) in known else None
        for name, known in _FORMULATION.items()
    }
    return {"solver": described, **formulation}


def _describe_regularizer(given: Any) -> Any:
    from maxmargin.regularizers import make_regularizer

    if given is None:
        return None
    if isinstance(given, NotStored):
        return {"class": given.name}
    regularizer = make_regularizer(given)
    if isinstance(given, str):
        return "l2"
    kind = type(regularizer)
    options = _options(regularizer) if _regularizers().get(kind.__name__) is kind else None
    if options is None:
        return {"class": _origin(regularizer)}
    return {"name": kind.__name__, "options": options}


def _regularizers() -> dict[str, Any]:
    from maxmargin.regularizers import L1, L2, ElasticNet, L1Ball

    return {kind.__name__: kind for kind in (L1, L2, ElasticNet, L1Ball)}


def _describe_loss(loss: Any, classes: list[Any]) -> tuple[Any, dict[str, NDArray[Any]]]:
    if isinstance(loss, NotStored):
        return {"class": loss.name}, {}
    cost = cost_matrix(loss, classes)  # checks it
    if cost is None:
        return "hamming", {}
    if not isinstance(loss, Mapping):
        return "matrix", {LOSS_COSTS: cost}
    place = {label: k for k, label in enumerate(classes)}
    pairs = sorted((place[a], place[b]) for a, b in loss)
    return {"pairs": [[a, b, float(cost[a, b])] for a, b in pairs]}, {}


# --- reading -------------------------------------------------------------------------------------


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
    certificate = _dict(meta.get("certificate", {}), "the certificate")
    for name in ("primal", "dual", "gap", "C"):
        if name in certificate and not (name == "primal" and certificate[name] is None):
            _number(certificate[name], f"{name} of the certificate")
    if "n_examples" in certificate:
        _integer(certificate["n_examples"], "n_examples of the certificate", 0)
    if "approximate" in certificate:
        _choice(certificate["approximate"], "approximate of the certificate", (False, True))
    training = _dict(meta.get("training", {}), "training")
    _check_plain(training, "training", 0)
    for name in ("passes", "n_features", "oracle_calls"):
        if training.get(name) is not None:
            _integer(training[name], f"{name} of training", 0)
    if "converged" in training:
        _choice(training["converged"], "converged of training", (False, True))
    if "stop_reason" in training:
        _text(training["stop_reason"], "stop_reason of training")
    params = _dict(meta.get("params", {}), "params")
    _check_plain(params, "params", 0)
    for name, value in params.items():
        if name in _PARAMS:
            _PARAMS[name](value, f"{name} of params")
    for name in ("format", "maxmargin", "columns_conllu"):
        if meta.get(name) is not None:
            _text(meta[name], name)
    if "objective" in meta:
        _check_objective(_dict(meta["objective"], "the objective"), len(meta["classes"]))


def _check_objective(objective: dict[str, Any], n_labels: int) -> None:
    version = _integer(objective["version"], "version of the objective", 1)
    if version > VERSION:
        raise ValueError(
            f"its objective was written by a newer version of maxmargin (version {version}; this "
            f"one reads up to {VERSION})"
        )
    for name in ("C", "C_scale", "gap", "max_passes", "time_limit", "dtype"):
        _PARAMS[name](objective[name], f"{name} of the objective")
    for name in ("solver", "regularizer"):
        value = objective[name]
        if name == "regularizer" and value in (None, "l2"):
            continue
        what = f"{name} of the objective"
        _dict(value, what)
        _check_plain(value, what, 0)
        if "class" in value:
            _text(value["class"], f"class of the {what}")
        else:
            _text(value["name"], f"name of the {what}")
            _dict(value["options"], f"options of the {what}")
    if "name" in objective["solver"]:
        _choice(objective["solver"]["named"], "named of the solver", (False, True))
    for name, known in _FORMULATION.items():
        _choice(objective[name], f"{name} of the objective", (None, *known))
    _choice(objective["labels"], "labels of the objective", (False, True))
    for name, texts in (("loss", ("hamming", "matrix")), ("allowed", (None, *_ALLOWED, "matrix"))):
        value = objective[name]
        if isinstance(value, dict) and "class" in value:
            _text(value["class"], f"class of {name} of the objective")
        elif name == "loss" and isinstance(value, dict):
            _check_pairs(value["pairs"], n_labels)
        else:
            _choice(value, f"{name} of the objective", texts)


def _check_pairs(pairs: Any, n_labels: int) -> None:
    if not isinstance(pairs, list):
        raise ValueError("the pairs of the loss are no list")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 3:
            raise ValueError("the loss has an entry that is not a truth, a label and a cost")
        for place in pair[:2]:
            if _integer(place, "a label of the loss", 0) >= n_labels:
                raise ValueError("the loss is of a label that does not exist")
        if _number(pair[2], "a cost of the loss") < 0:
            raise ValueError("a cost of the loss is negative")


def restore_objective(
    meta: dict[str, Any], chain: Chain, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """Make the parameters of an estimator from what a header says of the objective.

    Parameters
    ----------
    meta : dict
        Of a model file, after `check_meta`; it has an ``objective``.
    chain : Chain
        The structure of the model.
    arrays : mapping
        The arrays of the file.

    Returns
    -------
    dict
        The parameters in `OBJECTIVE`.

    Raises
    ------
    ValueError, TypeError, KeyError
        If something cannot be made of what the header says.
    """
    objective = meta["objective"]
    names = ("C", "C_scale", "gap", "max_passes", "time_limit", "dtype")
    params = {name: objective[name] for name in names}
    params["solver"] = _solver(objective)
    params["regularizer"] = _regularizer(objective["regularizer"])
    params["labels"] = list(chain.classes_) if objective["labels"] else None
    loss = objective["loss"]
    if isinstance(loss, dict) and "class" in loss:
        loss = NotStored(loss["class"])
    elif isinstance(loss, dict):
        classes = chain.classes_
        loss = {(classes[a], classes[b]): float(cost) for a, b, cost in loss["pairs"]}
    elif loss == "matrix":
        loss = arrays[LOSS_COSTS]
        if loss.dtype != np.float64:
            raise ValueError("the costs of the loss are not of float64")
    if not isinstance(loss, NotStored):
        cost_matrix(loss, chain.classes_)  # checks it
    params["loss"] = loss
    allowed = objective["allowed"]
    if isinstance(allowed, dict):
        allowed = NotStored(allowed["class"])
    elif allowed == "matrix":
        if chain.mask is None:
            raise ValueError("it says which labels may follow each other, and there is no mask")
        columns, L = chain.class_columns_, chain.n_labels
        allowed = chain.mask[0].reshape(L, L)[np.ix_(columns, columns)].astype(np.bool_)
    params["allowed"] = allowed
    return params


def _solver(objective: dict[str, Any]) -> Any:
    from maxmargin.solvers import SOLVERS

    given = objective["solver"]
    if "class" in given:
        return NotStored(given["class"])
    if given["name"] not in SOLVERS:
        raise ValueError(f"the solver {_short(given['name'])} is not known")
    kind = SOLVERS[given["name"]]
    solver = _made(kind, given["options"], "solver")
    for name in _FORMULATION:
        if objective[name] != getattr(solver, name):
            raise ValueError(f"the {name} of the solver is not that of the objective")
    # Defaults may be others in another version: then a name alone would not be the same solver.
    return given["name"] if given["named"] and solver == kind() else solver


def _regularizer(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given
    if "class" in given:
        return NotStored(given["class"])
    kinds = _regularizers()
    if given["name"] not in kinds:
        raise ValueError(f"the regulariser {_short(given['name'])} is not known")
    return _made(kinds[given["name"]], given["options"], "regulariser")


def _made(kind: Any, options: dict[str, Any], what: str) -> Any:
    known = {field.name for field in dataclasses.fields(kind) if field.init}
    for name in options:
        if name not in known:
            raise ValueError(f"the {what} {kind.__name__} has no parameter {_short(name)}")
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the {what} {kind.__name__}: {str(error)[:200]}") from error


# --- checks of single values ---------------------------------------------------------------------

_ALLOWED = ("iob2", "iobes")


def _short(value: Any) -> str:
    """Return a few characters on one line: a file may hold megabytes of anything."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_INT:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"
    text = repr(value[:61] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _dict(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {_short(value)}; expected a dict")
    return value


def _number(value: Any, what: str) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not abs(value) <= (MAX_INT if isinstance(value, int) else math.inf):
        raise ValueError(f"{what} is {_short(value)}; expected a finite number")
    return float(value)


def _integer(value: Any, what: str, least: int) -> int:
    if type(value) is not int or not least <= value <= MAX_INT:
        raise ValueError(f"{what} is {_short(value)}; expected an integer from {least} to 2^63 - 1")
    return value


def _text(value: Any, what: str) -> str:
    if type(value) is not str or len(value) > MAX_TEXT:
        raise ValueError(f"{what} is {_short(value)}; expected a text of at most {MAX_TEXT}")
    return value


def _choice(value: Any, what: str, among: tuple[Any, ...]) -> None:
    if not any(type(value) is type(one) and value == one for one in among):
        raise ValueError(f"{what} is {_short(value)}; expected {' or '.join(map(repr, among))}")


def _check_plain(value: Any, what: str, depth: int) -> None:
    """Check what is kept as it is: numbers and texts of a sensible size, in lists and dicts."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{what} is nested too deep")
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in inner:
            _check_plain(entry, what if depth else f"{_short(key)} of {what}", depth + 1)
    elif isinstance(value, str):
        _text(value, what)
    elif value is not None and not isinstance(value, bool):
        _number(value, what)


def _positive(value: Any, what: str) -> None:
    if _number(value, what) <= 0:
        raise ValueError(f"{what} is {_short(value)}; expected a number above 0")


def _not_negative(value: Any, what: str) -> None:
    if _number(value, what) < 0:
        raise ValueError(f"{what} is {_short(value)}; expected a number that is not negative")


def _positive_or_none(value: Any, what: str) -> None:
    if value is not None:
        _positive(value, what)


def _flag(value: Any, what: str) -> None:
    _choice(value, what, (False, True, 0, 1))


def _count(value: Any, what: str) -> None:
    _integer(value, what, 1)


def _count_or_none(value: Any, what: str) -> None:
    if value is not None:
        _count(value, what)


def _any_integer(value: Any, what: str) -> None:
    if not isinstance(value, bool):
        _integer(value, what, -MAX_INT)


def _any_integer_or_none(value: Any, what: str) -> None:
    if value is not None:
        _any_integer(value, what)


def _one_of(*among: Any) -> Any:
    return lambda value, what: _choice(value, what, among)


def _gamma(value: Any, what: str) -> None:
    if not isinstance(value, str):
        _number(value, what)


def _text_or_none(value: Any, what: str) -> None:
    if value is not None and not isinstance(value, list):
        _text(value, what)


#: Of a parameter that may be in a file, what it must be. (Others are ignored.)
_PARAMS: dict[str, Any] = {
    "C": _positive,
    "C_scale": _one_of("sum", "mean"),
    "gap": _not_negative,
    "max_passes": _count,
    "time_limit": _positive_or_none,
    "dtype": _one_of("float32", "float64"),
    "n_jobs": _any_integer_or_none,
    "warm_start": _flag,
    "verbose": _any_integer,
    "random_state": _any_integer_or_none,
    "min_count": _count,
    "hash_bits": _count_or_none,
    "kernel": _text,
    "degree": _any_integer,
    "gamma": _gamma,
    "coef0": _number,
    "cache_mb": _number,
    # In files that have no objective:
    "solver": _text,
    "regularizer": _text_or_none,
    "loss": _text_or_none,
    "labels": _text_or_none,
    "allowed": _text_or_none,
}
