"""Model files of structures that write down their state: round trips, damage and lies."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.errors import ModelFormatError
from maxmargin.io.container import read_container, write_container
from maxmargin.io.structure_file import StructureModel, load_structure, save_structure

PARAMS = {"C": 1.0, "solver": "sdm", "regularizer": None, "dtype": "float32"}


class Names:
    """A structure that is a list of names with a number each."""

    def __init__(self, names, numbers):
        self.names, self.numbers = names, numbers

    def state(self):
        return {"names": self.names}, {"numbers": self.numbers}

    @classmethod
    def restore(cls, meta, arrays):
        if len(meta["names"]) != len(arrays["numbers"]):
            raise ValueError("names and numbers differ in length")
        return cls(meta["names"], arrays["numbers"])

    def native_weights(self, weights):
        if len(weights) % len(self.names):
            raise ValueError(f"expected a multiple of {len(self.names)} weights")
        return np.array(weights)


def model(weights):
    meta = {"certificate": {"primal": 2.0, "dual": 1.5, "gap": 0.25, "C": 1.0, "n_examples": 3}}
    return StructureModel(Names(["a", "b"], np.array([3, 4])), weights, PARAMS, meta)


def reread(path):
    return load_structure(path, "names", Names, set(PARAMS))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_round_trip(tmp_path, dtype, share):
    rng = np.random.default_rng(0)
    weights = (rng.normal(size=200) * (rng.random(200) < share)).astype(dtype)
    path = tmp_path / "m.mm"
    size = save_structure(path, "names", model(weights))
    assert size == path.stat().st_size
    found = reread(path)
    np.testing.assert_array_equal(found.weights, weights)
    assert found.weights.dtype == weights.dtype
    assert found.structure.names == ["a", "b"]
    assert found.structure.numbers.tolist() == [3, 4]
    assert found.params == PARAMS
    assert found.meta["certificate"]["primal"] == 2.0
    sparse = "weight_places" in read_container(path, "names").arrays
    assert sparse == (share < 1.0)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not finite"):
        save_structure(tmp_path / "m.mm", "names", model(np.array([1.0, np.inf])))
    assert not list(tmp_path.iterdir())


def changed(path, meta=(), **arrays):
    """Write a file again with other values, and with good checksums."""
    held = read_container(path, "names")
    write_container(path, "names", {**held.meta, **dict(meta)}, {**held.arrays, **arrays})


@pytest.mark.parametrize(
    ("meta", "arrays", "what"),
    [
        ({"structure_version": 2}, {}, "newer version"),
        ({"structure_version": "1"}, {}, "structure_version"),
        ({"structure": {"names": ["a"]}}, {}, "differ in length"),
        ({"structure": {}}, {}, "'names' is missing"),
        ({"structure": 3}, {}, "expected a dict"),
        ({"parameters": {}}, {}, "missing"),
        ({"dtype": "int8"}, {}, "dtype"),
        ({"n_weights": 5}, {}, "place that does not exist|multiple"),
        ({"n_weights": -1}, {}, "n_weights"),
        ({"n_weights": 2**60}, {}, "memory"),
        ({"certificate": {"primal": "low"}}, {}, "primal"),
        ({"reading": 3}, {}, "reading"),
        ({}, {"weight_values": np.array([np.nan] * 3, np.float32)}, "not finite"),
        ({}, {"weight_values": np.zeros(2, np.float32)}, "go together"),
        ({}, {"weight_places": np.array([0, 1, 10**6], np.uint32)}, "does not exist"),
        ({}, {"weight_places": np.array([0.0, 1, 2])}, "go together"),
    ],
)
def test_lies_are_found(tmp_path, meta, arrays, what):
    path = tmp_path / "m.mm"
    weights = np.zeros(100, np.float32)
    weights[[3, 7, 9]] = 1.0
    save_structure(path, "names", model(weights))
    changed(path, meta, **arrays)
    with pytest.raises((ModelFormatError, MemoryError), match=what) as caught:
        reread(path)
    if isinstance(caught.value, ModelFormatError):
        assert str(path) in str(caught.value)


def test_another_kind_is_refused(tmp_path):
    path = tmp_path / "m.mm"
    save_structure(path, "names", model(np.ones(2, np.float32)))
    with pytest.raises(ModelFormatError, match="names"):
        load_structure(path, "numbers", Names, set(PARAMS))
