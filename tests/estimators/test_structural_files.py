"""Model files of structures of the user's own: what they hold, and whose code they run."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin import (
    SDM,
    Chain,
    ElasticNet,
    ModelFormatError,
    Multiclass,
    NotCompatibleError,
    StructuralSVM,
    Structure,
)
from maxmargin.cli.main import main
from maxmargin.io.container import read_container, write_container

RNG = np.random.default_rng(0)
X = list(RNG.normal(size=(40, 3)))
Y = [int(np.argmax(x + 0.5 * RNG.normal(size=3))) for x in X]


class Classes(Structure):
    """Classes; which there are is learned by prepare."""

    def __init__(self, scale=1.0, names=None):
        self.scale, self.names = scale, names
        self.table = np.arange(4.0).reshape(2, 2)
        self.options = {"deep": [1, (2, "x"), None, True]}

    def prepare(self, X, Y):
        self.n_classes = 1 + max(Y)
        self.n_features = self.n_classes * len(X[0])

    def joint_feature(self, x, y):
        return self.scale * np.kron(np.eye(self.n_classes)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def outputs(self, x):
        return range(self.n_classes)


class WithState(Classes):
    """A structure that says itself what is kept."""

    def __init__(self, scale=1.0):
        super().__init__(scale)
        self.cache = object()  # which no file can hold

    def state(self):
        return {"scale": self.scale, "n_classes": self.n_classes, "mean": np.ones(3)}

    @classmethod
    def restore(cls, state):
        made = cls(state["scale"])
        made.n_classes, made.n_features = state["n_classes"], 3 * state["n_classes"]
        made.mean = state["mean"]
        return made


class Duck:
    """The methods alone."""

    def joint_feature(self, x, y):
        return np.kron(np.eye(3)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def argmax(self, x, w, truth=None):
        scores = w.reshape(3, -1) @ x
        if truth is not None:
            scores = scores + (np.arange(3) != truth)
        return int(np.argmax(scores))


def fitted(structure, **params):
    return StructuralSVM(structure, C=1.0, random_state=0, **params).fit(X, Y)


STRUCTURES = [Classes(2.0, ["a"]), WithState(2.0), Duck()]


@pytest.mark.parametrize("structure", STRUCTURES, ids=["attributes", "state", "methods"])
def test_round_trip(tmp_path, structure):
    model = fitted(structure, solver=SDM("paper"), regularizer=ElasticNet(l1_ratio=0.3))
    size = model.save(tmp_path / "m.mm")
    assert size == (tmp_path / "m.mm").stat().st_size
    for loaded in (StructuralSVM.load(tmp_path / "m.mm"), maxmargin.load(tmp_path / "m.mm")):
        assert loaded.predict(X).tolist() == model.predict(X).tolist()
        np.testing.assert_array_equal(loaded.weights_, model.weights_)
        assert loaded.certificate_ == model.certificate_
        assert (loaded.C, loaded.solver) == (1.0, SDM("paper"))
        assert loaded.stop_reason_ == model.stop_reason_
        assert type(loaded.structure) is type(structure)
        np.testing.assert_array_equal(loaded.fit(X, Y).weights_, model.weights_)


def test_attributes_come_back_as_they_were(tmp_path):
    fitted(Classes(2.0, ["a"])).save(tmp_path / "m.mm")
    structure = StructuralSVM.load(tmp_path / "m.mm").structure_
    assert structure.options == {"deep": [1, (2, "x"), None, True]}
    assert structure.table.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert (structure.scale, structure.names, structure.n_classes) == (2.0, ["a"], 3)


def test_native_structures(tmp_path):
    model = StructuralSVM(Multiclass(), C=1.0).fit(np.array(X), Y)
    model.save(tmp_path / "m.mm")
    loaded = StructuralSVM.load(tmp_path / "m.mm")
    assert loaded.predict(np.array(X)).tolist() == model.predict(np.array(X)).tolist()


def test_what_a_file_cannot_hold(tmp_path):
    class Open(Classes):
        def __init__(self):
            super().__init__()
            self.function = print

    with pytest.raises(NotCompatibleError, match=r"'function' of Open.*state\(\)"):
        fitted(Open()).save(tmp_path / "m.mm")
    assert not (tmp_path / "m.mm").exists()
    chain = StructuralSVM(Chain()).fit([[["a"]], [["b"]]], [["A"], ["B"]])
    with pytest.raises(NotCompatibleError, match="SequenceTagger"):
        chain.save(tmp_path / "m.mm")
    with pytest.raises(NotFittedError):
        StructuralSVM(Classes()).save(tmp_path / "m.mm")


# --- whose class it is ---


def renamed(path, name):
    whole = read_container(path, "structural")
    meta = {**whole.meta, "structure": {**whole.meta["structure"], "class": name}}
    write_container(path, "structural", meta, dict(whole.arrays))


def test_a_file_imports_nothing(tmp_path, monkeypatch):
    """A module that only the file names is not imported, though it could be."""
    (tmp_path / "trap.py").write_text("raise SystemExit('the trap was sprung')\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "m.mm"
    fitted(Classes()).save(path)
    for name in ("trap:Classes", "trap", "nowhere:Classes", f"{__name__}:Missing", "os:system"):
        renamed(path, name)
        with pytest.raises(NotCompatibleError, match=r"not imported.*StructuralSVM\.load"):
            StructuralSVM.load(path)
    assert "trap" not in sys.modules


def test_classes_that_are_no_structures_are_refused(tmp_path):
    path = tmp_path / "m.mm"
    fitted(Classes()).save(path)
    for name in ("subprocess:Popen", "builtins:dict"):
        renamed(path, name)
        with pytest.raises(NotCompatibleError, match="is no structure"):
            StructuralSVM.load(path)
    assert subprocess.Popen is not None


def test_the_class_can_be_given(tmp_path, monkeypatch):
    path = tmp_path / "m.mm"
    model = fitted(Classes())
    model.save(path)
    renamed(path, "moved.away:Classes")
    module = types.ModuleType("a_module_of_ours")
    module.Classes = Classes
    monkeypatch.setitem(sys.modules, "a_module_of_ours", module)
    for given in (Classes, Classes(), "a_module_of_ours:Classes"):
        loaded = StructuralSVM.load(path, structure=given)
        assert loaded.predict(X).tolist() == model.predict(X).tolist()
    with pytest.raises(NotCompatibleError, match="the class given is"):
        StructuralSVM.load(path, structure=Duck)
    renamed(path, "x:dict")
    with pytest.raises(NotCompatibleError, match="no structure"):
        StructuralSVM.load(path, structure=dict)


def test_damaged_files(tmp_path):
    path = tmp_path / "m.mm"
    fitted(Classes()).save(path)
    whole = read_container(path, "structural")
    structure = whole.meta["structure"]
    for change in (
        {"structure": {**structure, "form": "pickle"}},
        {"structure": {**structure, "class": 3}},
        {"structure": {**structure, "values": []}},
        {"structure": {**structure, "values": {"x": {"array": "nowhere"}}}},
        {"n_weights": 10**9},
        {"structure": 7},
    ):
        write_container(path, "structural", {**whole.meta, **change}, dict(whole.arrays))
        with pytest.raises((ModelFormatError, NotCompatibleError)):
            StructuralSVM.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(ModelFormatError):
        StructuralSVM.load(path)


def test_the_command_line_describes_it(tmp_path, capsys):
    path = tmp_path / "m.mm"
    fitted(Classes()).save(path)
    renamed(path, "somewhere.else:Classes")  # no class is needed for that
    assert main(["info", str(path)]) == 0
    assert "Classes" in capsys.readouterr().out
    assert main(["info", str(path), "--json"]) == 0
    assert main(["tag", "-m", str(path), "nothing.tsv"]) == 2
    assert "Python" in capsys.readouterr().err


def test_sample_weights_of_python_structures():
    """Twice the weight is the example twice; weight zero is no example."""
    weights = np.array([2.0, 0.0] * 20)
    weighted = StructuralSVM(Duck(), gap=1e-8, random_state=0).fit(X, Y, sample_weight=weights)
    listed = [k for k in range(40) for _ in range(int(weights[k]))]
    repeated = StructuralSVM(Duck(), gap=1e-8, random_state=0)
    repeated.fit([X[k] for k in listed], [Y[k] for k in listed])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-3)
    for bad in (weights[:3], -weights, np.zeros(40), ["a"] * 40):
        with pytest.raises((ValueError, TypeError), match="sample_weight"):
            StructuralSVM(Duck()).fit(X, Y, sample_weight=bad)
