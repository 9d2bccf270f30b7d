"""Model files of taggers with kernels: round trips, damage, what cannot be held."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import maxmargin
from maxmargin import SequenceTagger
from maxmargin.errors import ModelFormatError, NotCompatibleError
from maxmargin.features.columns import ColumnTable
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import load_tagger
from maxmargin.structures.kernels import Kernel, KernelWeights

rng = np.random.default_rng(0)
LENGTHS = [3, 4, 1, 5, 2]
Y = [["ab"[(i + t) % 2] for t in range(n)] for i, n in enumerate(LENGTHS)]
WORDS = [[[f"w{(3 * i + t) % 7}", f"x{t}"] for t in range(n)] for i, n in enumerate(LENGTHS)]
DENSE = [rng.normal(size=(n, 3)) for n in LENGTHS]
KINDS = {
    "strings": WORDS,
    "dicts": [[{"w": row[0], "n": 0.5 * t} for t, row in enumerate(rows)] for rows in WORDS],
    "dense": DENSE,
    "sparse": [sparse.csr_array(x * (x > 0)) for x in DENSE],
    "both": list(zip(WORDS, DENSE, strict=True)),
    "rows": WORDS,
    "hashed": WORDS,
}
OPTIONS = {"rows": {"template": "words"}, "hashed": {"hash_bits": 5}}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["poly", "rbf", Kernel("linear"), Kernel("poly", 3, 0.5, 2.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(tmp_path, kind, kernel, dtype):
    X, path = KINDS[kind], tmp_path / "m.mm"
    allowed, more = [[True, True], [True, True]], OPTIONS.get(kind, {})
    tagger = SequenceTagger(C=1.0, kernel=kernel, dtype=dtype, allowed=allowed, **more).fit(X, Y)
    size = tagger.save(path)
    assert size == path.stat().st_size
    for again in (SequenceTagger.load(path), maxmargin.load(path)):
        assert isinstance(again.weights_, KernelWeights)
        assert list(again.predict(X)) == list(tagger.predict(X))
        for a, b in zip(again.decision_function(X), tagger.decision_function(X), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(again.transitions_, tagger.transitions_)
        assert again.certificate_.primal == tagger.certificate_.primal
        assert again.get_params()["C"] == 1.0
        kept = again.get_params()["kernel"]
        if isinstance(kernel, str):
            assert kept == kernel
        else:
            assert (kept.kind, kept.degree, kept.coef0) == (
                kernel.kind, kernel.degree, kernel.coef0
            )
        assert again.predict(X, known=[["b", None, None], None, None, None, None])[0][0] == "b"
    # saved again it is the same file, and trained again the same model
    again.save(tmp_path / "again.mm")
    assert load_tagger(tmp_path / "again.mm").meta["kernel"] == load_tagger(path).meta["kernel"]
    assert list(SequenceTagger.load(tmp_path / "again.mm").predict(X)) == list(tagger.predict(X))
    refitted = again.fit(X, Y)
    assert refitted.certificate_.gap <= 0.01


def test_features_that_no_support_token_has_are_kept(tmp_path):
    """‖x - x'‖ depends on all features of x."""
    tagger = SequenceTagger(C=0.01, kernel="rbf").fit(WORDS, Y)
    tagger.save(tmp_path / "m.mm")
    again = SequenceTagger.load(tmp_path / "m.mm")
    assert again.structure_.layout.n_sparse == tagger.structure_.layout.n_sparse


def test_what_a_file_cannot_hold(tmp_path):
    def product(a, b):
        return a @ b.T

    K = np.eye(3)
    for kernel, X in ((product, DENSE), (Kernel("precomputed", matrix=K), [[0, 1], [2]])):
        y = Y if X is DENSE else [["a", "b"], ["a"]]
        tagger = SequenceTagger(kernel=kernel).fit(X, y)
        with pytest.raises(NotCompatibleError, match=r"the kernels linear, poly, rbf.*Pickle"):
            tagger.save(tmp_path / "m.mm")
        assert not (tmp_path / "m.mm").exists()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernel") / "m.mm"
    SequenceTagger(C=1.0, kernel="poly").fit(KINDS["both"], Y).save(path)
    return path


def without(arrays, name):
    return {key: array for key, array in arrays.items() if key != name}


DAMAGE = {
    "no kernel": lambda m, a: ({**m, "kernel": []}, a),
    "another kernel": lambda m, a: ({**m, "kernel": {**m["kernel"], "kind": "spline"}}, a),
    "precomputed": lambda m, a: ({**m, "kernel": {**m["kernel"], "kind": "precomputed"}}, a),
    "gamma": lambda m, a: ({**m, "kernel": {**m["kernel"], "gamma": -1.0}}, a),
    "gamma text": lambda m, a: ({**m, "kernel": {**m["kernel"], "gamma": "scale"}}, a),
    "degree": lambda m, a: ({**m, "kernel": {**m["kernel"], "degree": 10**9}}, a),
    "no coefficients": lambda m, a: (m, without(a, "dual_coef")),
    "few coefficients": lambda m, a: (m, {**a, "dual_coef": a["dual_coef"][:-1]}),
    "labels": lambda m, a: (m, {**a, "dual_coef": a["dual_coef"][:, :1].copy()}),
    "infinite": lambda m, a: (m, {**a, "dual_coef": a["dual_coef"] * np.inf}),
    "edges": lambda m, a: (m, {**a, "edges": a["edges"][:-1]}),
    "edges nan": lambda m, a: (m, {**a, "edges": a["edges"] * np.nan}),
    "counts": lambda m, a: (m, {**a, "support_counts": a["support_counts"] + np.uint32(1)}),
    "no counts": lambda m, a: (m, without(a, "support_counts")),
    "no dense": lambda m, a: (m, without(a, "support_dense")),
    "dense": lambda m, a: (m, {**a, "support_dense": a["support_dense"][:, :1].copy()}),
    "indices": lambda m, a: (m, {**a, "support_indices": a["support_indices"] + np.uint32(999)}),
    "order": lambda m, a: (m, {**a, "support_indices": a["support_indices"][::-1].copy()}),
    "float indices": lambda m, a: (m, {**a, "support_indices": a["support_indices"] * 1.0}),
    "values": lambda m, a: (m, {**a, "support_values": np.ones(1)}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files(file, tmp_path, damage):
    container = read_container(file, "tagger")
    meta, arrays = DAMAGE[damage](container.meta, dict(container.arrays))
    path = tmp_path / "bad.mm"
    write_container(path, "tagger", meta, arrays)
    with pytest.raises(ModelFormatError, match=r"bad\.mm: "):
        load_tagger(path)


def test_sizes_that_overflow_are_told(file, tmp_path):
    container = read_container(file, "tagger")
    meta = {**container.meta, "kernel": {**container.meta["kernel"], "gamma": 1e200}}
    write_container(tmp_path / "m.mm", "tagger", meta, container.arrays)
    with pytest.raises(ValueError, match="the kernel poly gives scores that are not finite"):
        SequenceTagger.load(tmp_path / "m.mm").predict(KINDS["both"])


def test_no_prior(file):
    with pytest.raises(NotCompatibleError, match="kernel"):
        SequenceTagger(prior=file).fit(KINDS["both"], Y)


def test_a_table_of_columns(tmp_path):
    table = ColumnTable.from_rows(WORDS)
    tagger = SequenceTagger(C=1.0, kernel="rbf", template="words").fit(table, Y)
    tagger.save(tmp_path / "m.mm")
    loaded = SequenceTagger.load(tmp_path / "m.mm")
    assert list(loaded.predict(table)) == list(tagger.predict(table))
