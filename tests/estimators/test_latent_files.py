"""Model files of `LatentStructuralSVM`: round trips, classes of users, damage."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import maxmargin
import reference_latent as reference
from latent_models import FINE, kinds, words
from maxmargin import Chain, Latent, LatentStructuralSVM, Multiclass
from maxmargin.cli.main import main
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.models.kinds import kind_of

COARSE = FINE | {"gap": 0.01, "tol": 1e-3}


def models():
    """Return fitted models of every way, with inputs."""
    found = {}
    for name, (model, X, y) in kinds().items():
        if name != "bags":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = (model.set_params(gap=0.01, tol=1e-3).fit(X, y), X, y)
    X, Y = words()
    rule = {"allowed": lambda a, b: (a, b) != ("a", "b")}
    Y = [
        ["c" if t and (y[t - 1], label) == ("a", "b") else label for t, label in enumerate(y)]
        for y in Y
    ]
    ruled = LatentStructuralSVM(Latent(Chain(**rule), states={"a": 2}), **COARSE).fit(X, Y)
    found["rules"] = (ruled, X, Y)
    dense = [np.array([[float(len(t)), 1.0] for t in x]) for x in X]
    found["dense"] = (
        LatentStructuralSVM(Latent(Chain(), states=2), **(COARSE | {"dtype": "float32"})).fit(
            dense, Y
        ),
        dense,
        Y,
    )
    return found


MODELS = models()


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("kind", list(MODELS))
def test_round_trip(tmp_path, kind, mmap):
    model, X, y = MODELS[kind]
    assert model.save(tmp_path / "m.mm") == (tmp_path / "m.mm").stat().st_size
    again = LatentStructuralSVM.load(tmp_path / "m.mm", mmap=mmap)
    assert np.array_equal(again.weights_, model.weights_)
    assert list(again.predict(X)) == list(model.predict(X))
    assert again.predict_latent(X) == model.predict_latent(X)
    if kind != "native":
        assert again.predict_latent(X, y) == model.predict_latent(X, y)
    assert again.score(X, y) == model.score(X, y)
    assert again.certificate_ == model.certificate_
    assert again.objective_ == model.objective_
    assert again.C == model.C
    assert again.gap == model.gap
    again.save(tmp_path / "again.mm")
    once_more = LatentStructuralSVM.load(tmp_path / "again.mm")
    assert list(once_more.predict(X)) == list(model.predict(X))


def test_online_models_are_saved(tmp_path):
    model, X, y = kinds()["chain"]
    model.partial_fit(X, y).save(tmp_path / "m.mm")
    again = LatentStructuralSVM.load(tmp_path / "m.mm")
    assert list(again.predict(X)) == list(model.predict(X))
    assert again.objective_ == model.objective_


def test_fit_after_loading_asks_for_what_a_file_has_not(tmp_path):
    model, X, y = MODELS["chain"]
    model.save(tmp_path / "m.mm")
    again = LatentStructuralSVM.load(tmp_path / "m.mm")
    with pytest.raises(NotCompatibleError, match="needs a structure with latent parts"):
        again.fit(X, y)
    again.set_params(structure=Latent(Chain(), states=2)).fit(X, y)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-6)
    own, X, y = MODELS["asked"]
    own.save(tmp_path / "o.mm")
    assert LatentStructuralSVM.load(tmp_path / "o.mm").fit(X, y).objective_ == pytest.approx(
        own.objective_, rel=1e-6
    )


def test_classes_of_users(tmp_path):
    model, X, _ = MODELS["asked"]
    model.save(tmp_path / "m.mm")
    for given in (reference.Asked, Latent(reference.Asked()), "reference_latent:Asked"):
        again = LatentStructuralSVM.load(tmp_path / "m.mm", given)
        assert list(again.predict(X)) == list(model.predict(X))
    with pytest.raises(NotCompatibleError, match="the class given is"):
        LatentStructuralSVM.load(tmp_path / "m.mm", reference.Tables)


def test_what_a_file_cannot_hold(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        LatentStructuralSVM(Latent(Chain(), states=2)).save(tmp_path / "m.mm")
    rows = np.random.default_rng(0).normal(size=(20, 2))
    labels = [frozenset("ab") if x[0] > 0 else frozenset("c") for x in rows]
    model = LatentStructuralSVM(Latent(Multiclass(), states=2), **COARSE).fit(rows, labels)
    with pytest.raises(NotCompatibleError, match="frozenset"):
        model.save(tmp_path / "m.mm")
    assert not (tmp_path / "m.mm").exists()


def test_other_kinds_and_damage(tmp_path):
    model, _, _ = MODELS["chain"]
    path = tmp_path / "m.mm"
    model.save(path)
    with pytest.raises(ModelFormatError, match="latent_structural"):
        maxmargin.StructuralSVM.load(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelFormatError):
        LatentStructuralSVM.load(path)
    rng = np.random.default_rng(0)
    for _ in range(200):
        broken = bytearray(data)
        for at in rng.integers(len(data), size=3):
            broken[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(broken))
        try:
            LatentStructuralSVM.load(path)
        except (ModelFormatError, NotCompatibleError, MemoryError):
            continue


@pytest.mark.parametrize("kind", list(MODELS))
def test_the_command_line_describes_it(tmp_path, capsys, kind):
    MODELS[kind][0].save(tmp_path / "m.mm")
    assert main(["info", str(tmp_path / "m.mm")]) == 0
    said = capsys.readouterr().out
    assert "Latent of" in said
    assert "latent_structural" in said


def test_the_registry_loads_it(tmp_path):
    model, X, _ = MODELS["chain"]
    path = tmp_path / "m.mm"
    model.save(path)
    again = kind_of(path).load_estimator(path)
    assert list(again.predict(X)) == list(model.predict(X))
