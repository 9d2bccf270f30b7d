"""Parameters of estimators in model files: what goes in comes back, or is said to be missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from maxmargin.io.objective import NotStored
from maxmargin.io.parameters import describe_parameters, restore_parameters
from maxmargin.regularizers import ElasticNet
from maxmargin.solvers import SDM

COMMON = {"C": 2.0, "C_scale": "sum", "solver": "sdm", "regularizer": None, "gap": 0.01}


def round_trip(params):
    meta, arrays = describe_parameters(params)
    meta = json.loads(json.dumps(meta))
    return restore_parameters(meta, arrays, set(params))


def test_values_of_all_kinds_come_back():
    params = {
        **COMMON,
        "solver": SDM(slack="quadratic"),
        "regularizer": ElasticNet(0.5, 0.5),
        "class_weight": {"a": 1.0, 3: 2.5, ("x", 1): 0.5},
        "weights": [1, [2, "three"], None, True],
        "range": (1, 2),
        "parents": {"leaf": ["left", "right"]},
        "nothing": None,
    }
    assert round_trip(params) == params
    assert type(round_trip(params)["range"]) is tuple


def test_arrays_come_back_with_their_types():
    params = {**COMMON, "cost": np.arange(6.0).reshape(2, 3), "mask": np.array([True, False])}
    restored = round_trip(params)
    np.testing.assert_array_equal(restored["cost"], params["cost"])
    assert restored["mask"].dtype == np.bool_
    assert restored["mask"].tolist() == [True, False]


def test_numpy_numbers_become_numbers():
    assert round_trip({**COMMON, "C": np.float32(0.5), "n": np.int64(3)})["n"] == 3


def test_what_a_file_cannot_hold_is_named():
    restored = round_trip({**COMMON, "function": Path.exists, "inner": [np.datetime64("now")]})
    assert isinstance(restored["function"], NotStored)
    assert "exists" in restored["function"].name
    assert isinstance(restored["inner"][0], NotStored)
    assert round_trip({**COMMON, "function": restored["function"]}) == {
        **COMMON,
        "function": restored["function"],
    }


def test_parameters_that_are_not_known_are_left_out():
    meta, arrays = describe_parameters({**COMMON, "later": 1})
    assert "later" not in restore_parameters(meta, arrays, set(COMMON))


def deep(levels):
    value = 1
    for _ in range(levels):
        value = {"list": [value]}
    return value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", -1.0),
        ("C", "much"),
        ("C", {"list": [1.0]}),
        ("gap", None),
        ("x", [1, 2]),
        ("x", {"nonsense": 1}),
        ("x", {"array": "not there"}),
        ("x", {"array": 3}),
        ("x", {"dict": [[1, 2, 3]]}),
        ("x", {"dict": [[{"list": []}, 1]]}),
        ("x", {"class": 7}),
        ("x", deep(50)),
    ],
)
def test_nonsense_is_refused(name, value):
    meta, arrays = describe_parameters({**COMMON, "x": 1})
    meta["values"][name] = value
    with pytest.raises((ValueError, TypeError, KeyError)):
        restore_parameters(meta, arrays, {*COMMON, "x"})


@pytest.mark.parametrize(
    "changes",
    [
        {"solver": 1},
        {"solver": {"name": "none", "options": {}, "named": True}},
        {"regularizer": "l7"},
        {"values": 3},
        {"slack": "soft"},
    ],
)
def test_nonsense_about_solving_is_refused(changes):
    meta, arrays = describe_parameters(COMMON)
    with pytest.raises((ValueError, TypeError, KeyError)):
        restore_parameters({**meta, **changes}, arrays, set(COMMON))
