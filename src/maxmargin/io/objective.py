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

A ``max_passes`` of null, the limit on work, makes it version 2. ``named`` says that the solver was
given by its name. A regulariser of null is `L2`. ``labels`` says
whether the labels were given, which then are the classes of the model. A loss that is not "hamming"
is ``{"pairs": [[truth, label, cost], ...]}`` with places in the classes, or "matrix", which is the
array ``loss_costs``; an ``allowed`` of "matrix" is the array ``mask_transition``. A solver, a
regulariser or an ``allowed`` that cannot be made again is ``{"class": "module:name"}``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.io.header_values import MAX_TEXT, plain_value, short_value
from maxmargin.structures.chain_options import cost_matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.structures.chain import Chain

__all__ = [
    "FORMULATION",
    "LOSS_COSTS",
    "OBJECTIVE",
    "PRIOR",
    "VERSION",
    "NotStored",
    "describe_objective",
    "describe_regularizer",
    "describe_solver",
    "origin_of",
    "restore_objective",
    "restore_regularizer",
    "restore_solver",
]

#: Version of what a header says of the objective, at most.
VERSION = 2
#: The parameters of an estimator that say what is minimised, and how far.
OBJECTIVE = (
    *("C", "C_scale", "gap", "max_passes", "time_limit", "dtype"),
    *("solver", "regularizer", "loss", "labels", "allowed"),
)
#: How a `NotStored` begins that stands for the prior of a tagger.
PRIOR = "the prior "
#: The array of a loss that is a matrix.
LOSS_COSTS = "loss_costs"
#: Parameters of a solver that are part of the objective, with what they can be.
FORMULATION = {"slack": ("linear", "quadratic", "hard"), "rescale": ("margin", "slack", "none")}


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
        return f"<not in the model file: {short_value(self.name)}>"


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
    described: dict[str, Any] = {"version": 1}
    defaults = {"C": 0.1, "C_scale": "sum", "gap": 0.01, "max_passes": None, "time_limit": None}
    for name, default in (defaults | {"dtype": "float32"}).items():
        value = plain_value(params.get(name, default))
        if value is NotImplemented:
            raise TypeError(f"{name} is {params[name]!r}, which a model file cannot hold")
        described[name] = value
    if described["max_passes"] is None:
        described["version"] = 2  # which version 1 did not know
    described |= describe_solver(params.get("solver", "sdm"))
    described["regularizer"] = describe_regularizer(params.get("regularizer"))
    described["labels"] = params.get("labels") is not None
    described["loss"], arrays = _describe_loss(params.get("loss", "hamming"), chain.classes_)
    allowed = params.get("allowed")
    if allowed is None or isinstance(allowed, str):
        described["allowed"] = allowed
    elif isinstance(allowed, NotStored) or callable(allowed):
        described["allowed"] = {"class": origin_of(allowed)}
    else:
        described["allowed"] = "matrix"
    return described, arrays


def origin_of(thing: Any) -> str:
    """Return where an object that a file cannot hold comes from, ``module:name``.

    Parameters
    ----------
    thing : object
        A function, an object of a class, or a `NotStored`.

    Returns
    -------
    str
        The name.
    """
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


def describe_solver(given: Any) -> dict[str, Any]:
    """Describe a solver for a header.

    Parameters
    ----------
    given : str, Solver or NotStored
        As an estimator takes it.

    Returns
    -------
    dict
        ``solver``, and the formulation: ``slack`` and ``rescale``.
    """
    from maxmargin.solvers import SOLVERS, make_solver

    if isinstance(given, NotStored):
        return {"solver": {"class": given.name}, "slack": None, "rescale": None}
    solver = make_solver(given)
    own = type(solver) is SOLVERS.get(solver.name)
    options = _options(solver) if own else None
    described: dict[str, Any] = {"class": origin_of(solver)}
    if options is not None:
        described = {"name": solver.name, "options": options, "named": isinstance(given, str)}
    formulation = {
        name: value if (value := getattr(solver, name)) in known else None
        for name, known in FORMULATION.items()
    }
    return {"solver": described, **formulation}


def describe_regularizer(given: Any) -> Any:
    """Describe a regulariser for a header.

    Parameters
    ----------
    given : None, str, Regularizer or NotStored
        As an estimator takes it.

    Returns
    -------
    None, str or dict
        See the head of this file.
    """
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
        return {"class": origin_of(regularizer)}
    return {"name": kind.__name__, "options": options}


def _regularizers() -> dict[str, Any]:
    from maxmargin.regularizers import (
        L1,
        L2,
        Bounded,
        ElasticNet,
        GaussianPrior,
        L1Ball,
        Nonnegative,
    )

    kinds = (L1, L2, Bounded, ElasticNet, GaussianPrior, L1Ball, Nonnegative)
    return {kind.__name__: kind for kind in kinds}


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


def restore_objective(
    meta: dict[str, Any], chain: Chain, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """Make the parameters of an estimator from what a header says of the objective.

    Parameters
    ----------
    meta : dict
        Of a model file, after `maxmargin.io.meta_checks.check_meta`; it has an ``objective``.
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
    params["solver"] = restore_solver(objective)
    params["regularizer"] = restore_regularizer(objective["regularizer"])
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


def restore_solver(objective: dict[str, Any]) -> Any:
    """Make a solver of what `describe_solver` gave, checked by `check_solving`.

    Parameters
    ----------
    objective : dict
        With ``solver``, ``slack`` and ``rescale``.

    Returns
    -------
    str, Solver or NotStored
        As an estimator takes it.
    """
    from maxmargin.solvers import SOLVERS

    given = objective["solver"]
    if "class" in given:
        return NotStored(given["class"])
    if given["name"] not in SOLVERS:
        raise ValueError(f"the solver {short_value(given['name'])} is not known")
    kind = SOLVERS[given["name"]]
    solver = _made(kind, given["options"], "solver")
    for name in FORMULATION:
        if objective[name] != getattr(solver, name):
            raise ValueError(f"the {name} of the solver is not that of the objective")
    # Defaults may be others in another version: then a name alone would not be the same solver.
    return given["name"] if given["named"] and solver == kind() else solver


def restore_regularizer(given: Any) -> Any:
    """Make a regulariser of what `describe_regularizer` gave, checked by `check_solving`.

    Parameters
    ----------
    given : None, str or dict
        What the header says.

    Returns
    -------
    None, str, Regularizer or NotStored
        As an estimator takes it.
    """
    if given is None or isinstance(given, str):
        return given
    if "class" in given:
        return NotStored(given["class"])
    kinds = _regularizers()
    if given["name"] not in kinds:
        raise ValueError(f"the regulariser {short_value(given['name'])} is not known")
    return _made(kinds[given["name"]], given["options"], "regulariser")


def _made(kind: Any, options: dict[str, Any], what: str) -> Any:
    known = {field.name for field in dataclasses.fields(kind) if field.init}
    for name in options:
        if name not in known:
            raise ValueError(f"the {what} {kind.__name__} has no parameter {short_value(name)}")
    try:
        return kind(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the {what} {kind.__name__}: {str(error)[:200]}") from error
