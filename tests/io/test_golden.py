"""Models that were written once load for ever; see tests/golden/make_golden.py."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from maxmargin import SDM, Certificate, ElasticNet, SequenceTagger
from maxmargin.io.container import read_container
from maxmargin.io.tagger_file import dense_weights, load_tagger, save_tagger

GOLDEN = Path(__file__).parents[1] / "golden"
DIGESTS = {
    "tagger-v1": "d4e9f775df1f4cb1a13a731eb974acbc80d129c817c492c30ceba0ca456be35f",
    "tagger-strings-v1": "01d809c72355e0b1f9e814231fb2f8428a5bcd38465cfc34707a6eb521b0d069",
}
KINDS = {"tagger-v1": "columns", "tagger-strings-v1": "strings"}


OBJECTIVE = "tagger-objective-v1"  # a model that says what was minimised


@pytest.fixture(params=DIGESTS)
def name(request):
    return request.param


def expected_of(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def assert_as_expected(model, expected):
    chain = model.chain
    assert chain.predict(expected["inputs"], model.weights) == expected["labels"]
    full = dense_weights(model)
    assert chain.predict(expected["inputs"], full) == expected["labels"]
    assert chain.classes_ == expected["classes"]
    assert chain.labels_ == expected["label_order"]
    names = chain.encoder.feature_names()
    assert len(names) == expected["n_features"]
    weights = chain.unpack(full)
    number = {name: k for k, name in enumerate(names)}
    assert len(expected["weights"]) >= 10
    for name, row in expected["weights"].items():
        assert weights.coef[number[name]].tolist() == row
    assert weights.transitions.tolist() == expected["transitions"]
    assert weights.start.tolist() == expected["start"]
    assert weights.end.tolist() == expected["end"]
    scores = [paths[0][1] for paths in chain.kbest(expected["inputs"], model.weights, 1)]
    np.testing.assert_allclose(scores, expected["scores"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        *DIGESTS.items(),
        (OBJECTIVE, "84769c752904397e1551ba5099b858f808ec527715e8bc50b364d40202ddbd2d"),
    ],
)
def test_the_files_are_the_old_ones(name, digest):
    content = (GOLDEN / f"{name}.mm").read_bytes()
    assert len(content) < 20_000
    assert hashlib.sha256(content).hexdigest() == digest, "golden files are never replaced"


def test_golden_objective(tmp_path):
    expected = expected_of(OBJECTIVE)
    for path in (GOLDEN / f"{OBJECTIVE}.mm", tmp_path / "again"):
        tagger = SequenceTagger.load(path)
        tagger.save(tmp_path / "again")
        assert tagger.predict(expected["inputs"]).tolist() == expected["labels"]
        assert tagger.certificate_ == Certificate(**expected["certificate"])
        assert tagger.certificate_.approximate
        assert (tagger.C, tagger.C_scale, tagger.gap) == (2.0, "mean", 0.02)
        assert tagger.solver == SDM(rescale="slack", cached_passes=7)
        assert tagger.regularizer == ElasticNet(0.125, 0.875)
        np.testing.assert_array_equal(tagger.loss, [[0, 1, 2.5], [0.5, 0, 1], [3, 1, 0]])
        assert (tagger.labels, tagger.allowed) == (["O", "B-X", "I-X"], "iob2")


def test_golden_model(name):
    model = load_tagger(GOLDEN / f"{name}.mm")
    expected = expected_of(name)
    assert_as_expected(model, expected)
    assert model.chain.encoder.kind == KINDS[name]
    assert {key: model.meta[key] for key in expected["meta"]} == expected["meta"]
    assert (model.chain.mask is not None) == (name == "tagger-strings-v1")
    assert len({label for labels in expected["labels"] for label in labels}) >= 3


def test_a_copy(name, tmp_path):
    shutil.copy(GOLDEN / f"{name}.mm", tmp_path / "copy")
    model = load_tagger(str(tmp_path / "copy"))
    (tmp_path / "copy").unlink()
    assert_as_expected(model, expected_of(name))


def test_saved_again(name, tmp_path):
    model = load_tagger(GOLDEN / f"{name}.mm")
    save_tagger(tmp_path / "again", model.chain, dense_weights(model), expected_of(name)["meta"])
    assert_as_expected(load_tagger(tmp_path / "again"), expected_of(name))


def test_both_forms_are_covered():
    arrays = read_container(GOLDEN / "tagger-v1.mm").arrays
    assert {"fingerprints", "names", "counts", "entry_labels", "tail"} <= set(arrays)
    arrays = read_container(GOLDEN / "tagger-strings-v1.mm").arrays
    assert {"names", "name_lengths", "mask_transition", "mask_start", "mask_end"} <= set(arrays)


def test_inputs_have_what_they_should():
    tokens = [token for x in expected_of("tagger-strings-v1")["inputs"] for token in x]
    assert any(isinstance(value, float) for token in tokens for value in token.values())
    labels = expected_of("tagger-strings-v1")["labels"]
    for sequence in labels:
        for before, label in zip([None, *sequence], sequence, strict=False):
            assert label != "I-X" or before in ("B-X", "I-X")
