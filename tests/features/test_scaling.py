"""Columns of quite another size than the rest are named; ordinary features are left in peace."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import Chain, SequenceTagger
from maxmargin.errors import ScalingWarning
from maxmargin.features.batch import EncodedBatch
from maxmargin.features.scaling import badly_scaled
from maxmargin.solvers import Certificate
from maxmargin.solvers.ending import not_reached


def tokens(data):
    return [row[None] for row in data]


def labels(target):
    return [[int(t)] for t in target]


def warned(X, Y, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SequenceTagger(C=1.0, max_passes=2, **options).fit(X, Y)
    return [str(w.message) for w in caught if w.category is ScalingWarning]


def load(name):
    found = getattr(datasets, f"load_{name}")()
    return found.data, labels(found.target if name != "diabetes" else found.target > 140)


@pytest.mark.parametrize(
    ("name", "named"), [("wine", ["12"]), ("breast_cancer", ["23", "3", "22", "2"])]
)
def test_measurements_of_very_different_sizes_are_named(name, named):
    data, Y = load(name)
    (message,) = warned(tokens(data), Y)
    assert f" of {data.shape[1]} columns ha" in message
    at = [message.index(f"'dense:{column}' (") for column in named]
    assert at == sorted(at)  # the worst first
    size = np.sqrt(np.mean(np.square(data[:, int(named[0])])))
    assert f"'dense:{named[0]}' ({size:.3g})" in message
    assert "StandardScaler" in message
    assert len(message) < 500
    assert warned(tokens(StandardScaler().fit_transform(data)), Y) == []


@pytest.mark.parametrize("name", ["iris", "digits", "diabetes"])
def test_columns_of_like_sizes_are_left_in_peace(name):
    data, Y = load(name)
    assert warned(tokens(data), Y) == []


def test_no_more_than_five_columns_are_named():
    data = np.ones((20, 40)) + np.random.default_rng(0).random((20, 40))
    data[:, :9] *= 1e5
    (message,) = warned(tokens(data), labels(np.arange(20) % 2))
    assert message.startswith("9 of 40 columns have")
    assert message.count("'dense:") == 5
    assert "and 4 more" in message


def test_small_columns_count_as_well():
    data = np.ones((10, 4))
    data[:, 2] = 1e-3
    (message,) = warned(tokens(data), labels(np.arange(10) % 2))
    assert "'dense:2' (0.001)" in message


def test_text_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("maxmargin.features.scaling._sizes", None)
    assert warned([[["a", "b"], ["c"]], [["a"]]], [["x", "y"], ["x"]]) == []


def test_a_column_that_is_seldom_set_is_not_a_small_one():
    data = np.ones((1000, 3))
    data[1:, 1] = 0.0
    data[:, 2] = 0.0  # never set
    assert warned(tokens(data), labels(np.arange(1000) % 2)) == []


def test_names_of_features_with_values():
    X = [[{"len": 1900.0, "w=a": 1.0, "w=b": 1.0}, {"len": 2100.0, "w=c": 1.0}]] * 2
    (message,) = warned(X, [["A", "B"]] * 2)
    assert message.startswith("1 of 4 columns has")
    assert "'len' (2e+03)" in message
    assert warned([[{"len": 1.9, "w=a": 1.0}, {"w=c": 1.0}]] * 2, [["A", "B"]] * 2) == []


def test_columns_of_sparse_matrices():
    matrix = sparse.csr_matrix(np.array([[1.0, 0, 5000], [0, 2.0, 0], [1.0, 1.0, 3000]]))
    (message,) = warned([matrix], [["A", "B", "A"]])
    assert "'sparse:2'" in message


def test_dense_columns_beside_words():
    words = [[["a"], ["b"], ["c"]]]
    for value, found in ((1.0, False), (1000.0, True)):
        dense = [np.full((3, 1), value)]
        X = list(zip(words, dense, strict=True))
        messages = warned(X, [["A", "B", "A"]])
        assert bool(messages) == found
        assert all("'dense:0' (1e+03)" in message for message in messages)


def test_a_kernel_has_a_scale_of_its_own():
    data, Y = load("wine")
    assert warned(tokens(data[::9]), Y[::9], kernel="rbf") == []


def test_a_chain_of_ones_own_says_it_too():
    data, Y = load("wine")
    with pytest.warns(ScalingWarning, match="dense:12"):
        Chain().prepare_problem(tokens(data), Y)


def test_names_are_safe_and_short():
    X = [[{"\x1b[31m" + "x" * 5000: 1e6, "w=a": 1.0, "w=b": 1.0}]] * 2
    (message,) = warned(X, [["A"], ["B"]])
    assert len(message) < 500
    assert "\x1b" not in message


def test_few_columns_and_none():
    offsets = np.array([0, 2])
    one = EncodedBatch(offsets, 0, dense=np.array([[1e9], [1.0]]))
    assert badly_scaled(one) is None
    two = badly_scaled(EncodedBatch(offsets, 0, dense=np.array([[1e9, 1.0], [1e9, 1.0]])))
    assert two is not None
    assert sorted(two.columns.tolist()) == [0, 1]
    huge = badly_scaled(EncodedBatch(offsets, 0, dense=np.full((2, 3), 1e300) * [1, 1, 1e-9]))
    assert huge is None


def test_it_is_public_and_the_other_warning_points_to_it():
    assert maxmargin.ScalingWarning is ScalingWarning
    certificate = Certificate(2.0, 1.0, 1.0, 3)
    text = not_reached(certificate, "max_passes = 3", 0.01, {"sdm"})
    assert text.endswith("(a ScalingWarning names them) and a large C make training slow: scale "
                         "the features")  # fmt: skip
    more = not_reached(certificate, "max_passes = 3", 0.01, {"interiorpoint"})
    assert more == f'{text}, or, where there are few weights, take solver="interiorpoint"'
