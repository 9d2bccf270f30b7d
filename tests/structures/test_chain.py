"""Chain: what is learned from the data, costs, masks, decoding, the structure protocol."""

from __future__ import annotations

import copy
import itertools
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from maxmargin.solvers import SDM, solve
from maxmargin.structures import Chain, chain_learning, check_structure
from maxmargin.structures.vectors import sparse_vector
from native_problems import run_isolated
from reference_chain import ReferenceChain

X_WORDS = [
    [["the"], ["dog", "noun"], ["barks"]],
    [["dogs", "noun"], ["bark"]],
    [["bark"]],
]
Y_WORDS = [["D", "N", "V"], ["N", "V"], ["V"]]


def prepared(X=X_WORDS, Y=Y_WORDS, **options):
    chain = Chain(**options)
    chain.prepare(X, Y)
    return chain


def random_weights(chain, seed=0, dtype="float64"):
    w = np.random.default_rng(seed).normal(size=chain.n_features)
    return w, chain.pad(w, dtype)


def dense_data(seed, n_labels=3, n=4, d=3, longest=3):
    """Sequences of dense tokens; every label occurs."""
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(1, longest + 1, n), n_labels]
    X = [rng.normal(size=(T, d)) for T in lengths]
    Y = [rng.integers(0, n_labels, T).tolist() for T in lengths]
    Y[-1] = list(range(n_labels))
    return X, Y


def reference_of(chain, cost=None):
    return ReferenceChain(chain.n_labels, chain.encoder.n_sparse + chain.encoder.n_dense, cost)


# --- labels ---


def test_most_frequent_label_comes_first_and_classes_are_sorted():
    chain = prepared()
    assert chain.labels_ == ["V", "N", "D"]
    assert chain.classes_ == ["D", "N", "V"]
    assert [chain.labels_[k] for k in chain.class_columns_] == chain.classes_


def test_ties_keep_the_order_of_the_classes():
    assert prepared([[["a"]] * 3], [["c", "a", "b"]]).labels_ == ["a", "b", "c"]


def test_explicit_labels_fix_set_and_order():
    chain = prepared(labels=["V", "X", "N", "D"])
    assert chain.classes_ == ["V", "X", "N", "D"]
    assert chain.labels_ == ["V", "N", "D", "X"]  # X never occurs
    with pytest.raises(ValueError, match=r"sequence 0, token 0.*'D'"):
        prepared(labels=["N", "V"])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "labels is empty"),
        (["N", "V", "N"], "labels has the entry 'N' twice"),
        ("NV", "labels is a str"),
        ([["N"]], "cannot be hashed"),
        (7, "labels is a int"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises((TypeError, ValueError), match=message):
        prepared(labels=labels)


def test_labels_of_any_kind_come_back_as_they_were():
    Y = [[(1, 2), None, 3], ["x", None], [3]]
    chain = prepared(X_WORDS, Y)
    _, weights = random_weights(chain)
    found = {label for labels in chain.predict(X_WORDS, weights) for label in labels}
    assert found <= {(1, 2), None, 3, "x"}
    numbers = prepared([np.eye(2)], [np.array([1, 0])])
    assert all(type(label) is int for label in numbers.labels_)


def test_too_many_labels(monkeypatch):
    monkeypatch.setattr(chain_learning, "MAX_LABELS", 2)
    with pytest.raises(ValueError, match="there are 3 labels; at most 2 fit the index type"):
        prepared()


def test_a_failed_prepare_changes_nothing():
    chain = prepared()
    before = (chain.labels_, chain.n_features, chain.encoder)
    with pytest.raises(ValueError):
        chain.prepare([[{"a": 1}], [{"a": float("nan")}]], [["N"], ["V"]])
    assert (chain.labels_, chain.n_features, chain.encoder) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.make_problem(X_WORDS, Y_WORDS),
        lambda c: c.predict(X_WORDS, np.zeros(8)),
        lambda c: c.kbest_batch(prepared().encoder.transform(X_WORDS), np.zeros(8), 1),
        lambda c: c.max_marginals_batch(prepared().encoder.transform(X_WORDS), np.zeros(8)),
        lambda c: c.n_weights(),
        lambda c: c.joint_feature(X_WORDS[0], Y_WORDS[0]),
        lambda c: c.argmax(X_WORDS[0], np.zeros(3)),
        lambda c: c.score_labellings(X_WORDS, Y_WORDS, np.zeros(8)),
    ],
)
def test_unprepared(call):
    assert Chain().n_features is None
    with pytest.raises(NotFittedError, match="prepare"):
        call(Chain())


# --- bad data ---


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([], [], "X is empty"),
        (X_WORDS, None, "Y is None"),
        (X_WORDS, Y_WORDS[:2], "X has 3 sequences and y has 2"),
        (X_WORDS, [["D", "N", "V"], ["N"], ["V"]], "sequence 1 has 2 tokens in X and 1 labels"),
        ([[["a"]], []], [["N"], []], "sequence 1 is empty"),
        ([[{"a": float("nan")}]], [["N"]], "sequence 0, token 0"),
        ([np.array([[1.0, np.inf]])], [["N"]], "sequence 0, token 0, column 1"),
        ([sparse.csr_array([[0.0, np.nan]])], [["N"]], "sequence 0, token 0, column 1"),
        ([[["a"]]], ["N"], "sequence 0 is a str"),
    ],
)
def test_bad_data(X, Y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        prepared(X, Y)


def test_problem_of_known_features_and_labels():
    chain = prepared()
    problem = chain.make_problem([[["new"], ["dog"]]], [["N", "V"]])
    assert problem.n_examples == 1
    with pytest.raises(ValueError, match="'X'"):
        chain.make_problem([[["dog"]]], [["X"]])
    with pytest.raises(ValueError, match="sequence 0 has 1 tokens in X and 2 labels"):
        chain.make_problem([[["dog"]]], [["N", "V"]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([[1, 1, 1], [1, 1]], "token_weight has 2 sequences and X has 3"),
        (
            [[1, 1, 1], [1], [1]],
            r"token_weight of sequence 1 has the shape \(1,\); expected \(2,\)",
        ),
        ([[1, 1, 1], [1, -2.0], [1]], r"sequence 1, token 1 is -2\.0"),
        ([[1, 1, 1], [np.nan, 1], [1]], "sequence 1, token 0 is nan"),
        ([[1, 1, 1], [1, 1], [1e300]], r"sequence 2, token 0 is 1e\+300"),
        ([[1, 1, 1], [1, 2e12], [1]], r"sequence 1, token 1 is 2.* from 0 to 1e12$"),
        ([["a", 1, 1], [1, 1], [1]], "list of lists of numbers"),
        (3, "list of lists of numbers"),
    ],
)
def test_bad_token_weights(weight, message):
    with pytest.raises((TypeError, ValueError), match=message):
        prepared().make_problem(X_WORDS, Y_WORDS, token_weight=weight)


# --- costs ---


def test_cost_matrix_is_in_the_order_of_the_classes():
    cost = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]  # D, N, V
    chain = prepared(loss=cost)
    assert chain.loss(["D", "N", "V"], ["V", "D", "N"]) == 2 + 3 + 6
    assert prepared(loss=cost, labels=["V", "N", "D"]).loss(["V"], ["D"]) == 2


def test_cost_dict():
    chain = prepared(loss={("N", "V"): 5, ("V", "D"): 0.5, ("N", "N"): 0})
    assert chain.loss(["N", "V", "V", "D"], ["V", "D", "V", "V"]) == 5 + 0.5 + 0 + 1


def test_unknown_truth_costs_the_most():
    assert prepared().loss(["new", "N"], ["N", "N"]) == 1.0
    assert prepared(loss={("N", "V"): 5}).loss(["new", "N"], ["N", "N"]) == 5.0
    with pytest.raises(ValueError, match="y_hat has the label 'new' at token 0"):
        prepared().loss(["N"], ["new"])
    with pytest.raises(ValueError, match="y has 1 labels and y_hat 2"):
        prepared().loss(["N"], ["N", "N"])


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("zero-one", "loss is 'zero-one'"),
        (np.ones((2, 2)), r"shape \(2, 2\); expected \(3, 3\).*'D', 'N', 'V'"),
        (np.ones((3, 3)), "label 'D' where 'D' is the truth is 1.0; expected 0"),
        ({("N", "V"): -1}, "label 'V' where 'N' is the truth is -1.0"),
        ({("N", "V"): np.nan}, "label 'V' where 'N' is the truth is nan"),
        ({("N", "V"): np.inf}, "is inf"),
        ({("N", "N"): 1}, "expected 0 for the truth"),
        ({("N", "X"): 1}, "there is no label 'X'"),
        ({"NV": 1}, r"key 'NV'; expected pairs"),
        ({("N", "V"): "much"}, "'much'; expected a number"),
        ([["a"]], "loss is a list"),
        (None, "loss is a NoneType|shape"),
    ],
)
def test_bad_loss(loss, message):
    with pytest.raises((TypeError, ValueError), match=message):
        prepared(loss=loss)


# --- allowed transitions ---


def spans(scheme, length):
    """All labellings of one type of entity that a scheme allows, by their grammar."""
    if length == 0:
        return {()}
    pieces = {("O",)}
    for n in range(1, length + 1):
        if scheme == "iob2":
            pieces.add(("B-X", *["I-X"] * (n - 1)))
        else:
            pieces.add(("S-X",) if n == 1 else ("B-X", *["I-X"] * (n - 2), "E-X"))
    return {p + rest for p in pieces if len(p) <= length for rest in spans(scheme, length - len(p))}


@pytest.mark.parametrize(
    ("scheme", "labels"),
    [("iob2", ["O", "B-X", "I-X"]), ("iobes", ["O", "B-X", "I-X", "E-X", "S-X"])],
)
def test_scheme_allows_exactly_its_labellings(scheme, labels):
    X = [[["a"]] * 4]
    chain = prepared(X, [labels[:1] * 4], labels=labels, allowed=scheme)
    found = chain.kbest(X, chain.pad(np.zeros(chain.n_features)), k=10_000)[0]
    assert len(found) == len(spans(scheme, 4))
    assert {tuple(path) for path, _ in found} == spans(scheme, 4)


def test_types_of_entities_are_not_mixed():
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    chain = prepared([[["a"]] * 2], [["O", "O"]], labels=labels, allowed="iob2")
    paths = chain.kbest([[["a"]] * 2], chain.pad(np.zeros(chain.n_features)), k=100)[0]
    assert ["B-X", "I-Y"] not in [path for path, _ in paths]
    assert ["B-X", "I-X"] in [path for path, _ in paths]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_allowed_in_every_way_of_decoding(dtype):
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 4)) for T in (1, 2, 7, 30)]
    Y = [rng.choice(labels, T).tolist() for T in (1, 2, 7, 30)]
    chain = prepared(X, Y, labels=labels, allowed="iob2")
    free = prepared(X, Y, labels=labels)
    for seed in range(5):
        w, weights = random_weights(chain, seed, dtype)
        answers = chain.predict(X, weights)
        assert answers != free.predict(X, weights)
        best = chain.kbest(X, weights, 3)
        for x, labels_, paths in zip(X, answers, best, strict=True):
            for a, b in itertools.pairwise(["O", *labels_]):
                assert b[0] != "I" or a[1:] == b[1:]
            assert paths[0][0] == labels_ == chain.argmax(x, w)


def test_callable_and_array():
    def never_twice(previous, following):
        if previous is None:
            return following != "N"
        return previous != following

    X = [[["a"]] * 3]
    every = prepared(X, [["D", "N", "V"]], allowed=never_twice).kbest
    chain = prepared(X, [["D", "N", "V"]])
    zeros = chain.pad(np.zeros(chain.n_features))
    paths = [path for path, _ in every(X, zeros, 100)[0]]
    assert len(paths) == 2 * 2 * 2
    assert all(a != b for path in paths for a, b in itertools.pairwise(path))
    assert all(path[0] != "N" for path in paths)
    array = ~np.eye(3, dtype=bool)
    masked = prepared(X, [["D", "N", "V"]], allowed=array)
    assert len(masked.kbest(X, zeros, 100)[0]) == 3 * 2 * 2


def test_array_is_in_the_order_of_the_classes():
    only_d_to_v = np.zeros((3, 3), dtype=bool)
    only_d_to_v[0, 2] = True
    chain = prepared(allowed=only_d_to_v)
    _, weights = random_weights(chain)
    assert chain.predict([[["a"], ["b"]]], weights) == [["D", "V"]]


def test_nothing_allowed():
    chain = prepared(allowed=np.zeros((3, 3), dtype=bool))
    w, weights = random_weights(chain)
    with pytest.raises(ValueError, match="sequence 1 uses only allowed"):
        chain.predict([[["a"]], [["a"], ["b"]]], weights)
    with pytest.raises(ValueError, match="allowed"):
        chain.kbest([[["a"], ["b"]]], weights, 2)
    with pytest.raises(ValueError, match="allowed"):
        chain.argmax([["a"], ["b"]], w)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ("iob1", "allowed is 'iob1'"),
        ("iob2", "the label 'D' does not follow allowed=\"iob2\"; expected O, B-..., I-..."),
        (np.ones((2, 2), bool), r"shape \(2, 2\); expected \(3, 3\)"),
        (np.full((3, 3), 0.5), "must hold bools"),
        (np.full((3, 3), 2), "must hold bools"),
    ],
)
def test_bad_allowed(allowed, message):
    with pytest.raises(ValueError, match=message):
        prepared(allowed=allowed)


@pytest.mark.parametrize("label", ["", "B", "B-", "E-X", "b-X", 3, None])
def test_labels_that_do_not_follow_the_scheme(label):
    with pytest.raises(ValueError, match="does not follow"):
        prepared([[["a"], ["b"]]], [["O", "B-X"]], labels=["O", "B-X", label], allowed="iob2")


# --- weights ---


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 9])
def test_unpack_undoes_pad(dtype, n_labels):
    X, Y = dense_data(0, n_labels)
    chain = prepared(X, Y)
    w, weights = random_weights(chain, dtype=dtype)
    assert weights.shape == (chain.n_weights(dtype),)
    assert weights.dtype == dtype
    parts = chain.unpack(weights)
    reference = reference_of(chain).split(w.astype(dtype))
    assert parts.pairs.shape == (0, n_labels, n_labels)
    for found, expected in zip(parts[:4], reference, strict=True):
        assert np.shares_memory(found, weights)
        np.testing.assert_array_equal(found, expected)


def test_memory_needed():
    chain = prepared()
    name, n_bytes = chain.memory_needed("float32")
    assert "float32" in name
    assert n_bytes == 2 * 4 * chain.n_weights("float32") + 8 * chain.n_weights("float64")
    with pytest.raises(ValueError, match="dtype must be"):
        chain.memory_needed("float16")


def test_weights_that_do_not_fit():
    chain = prepared()
    with pytest.raises(ValueError, match="weights has the shape"):
        chain.predict(X_WORDS, np.zeros(3))
    with pytest.raises(TypeError, match="float32 or float64"):
        chain.predict(X_WORDS, np.zeros(chain.n_weights("float64"), dtype=int))
    with pytest.raises(ValueError, match="w has the shape"):
        chain.argmax(X_WORDS[0], np.zeros(3))


def test_weights_that_are_not_aligned():
    chain = prepared()
    _, weights = random_weights(chain)
    buffer = np.empty(len(weights) + 1)
    moved = buffer[1:] if buffer[1:].ctypes.data % 32 else buffer[:-1]
    moved[:] = weights
    moved.flags.writeable = False
    assert chain.native_weights(weights) is weights
    assert chain.predict(X_WORDS, moved) == chain.predict(X_WORDS, weights)


# --- decoding, against the reference ---


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.booleans())
def test_decoding_agrees_with_brute_force(seed, n_labels, with_cost):
    X, Y = dense_data(seed, n_labels)
    rng = np.random.default_rng(seed)
    cost = rng.random((n_labels, n_labels)) * (1 - np.eye(n_labels))
    chain = prepared(X, Y, loss=cost if with_cost else "hamming")
    order = [chain.classes_.index(label) for label in chain.labels_]
    reference = reference_of(chain, cost[np.ix_(order, order)] if with_cost else None)
    w, weights = random_weights(chain, seed)

    def codes(labels):
        return [chain.labels_.index(label) for label in labels]

    best = chain.kbest(X, weights, 4)
    marginals = chain.max_marginals(X, weights)
    scores = chain.score_labellings(X, Y, weights)
    for i, (x, y, found) in enumerate(zip(X, Y, chain.predict(X, weights), strict=True)):
        truth = codes(y)
        assert codes(found) == reference.brute_argmax(x, w).tolist()
        assert chain.argmax(x, w) == found
        assert codes(chain.argmax(x, w, truth=y)) == reference.brute_argmax(x, w, truth).tolist()
        assert chain.loss(y, found) == pytest.approx(reference.loss(truth, codes(found)))
        features = sparse_vector(chain.joint_feature(x, y), chain.n_features)
        dense = np.zeros(chain.n_features)
        dense[features.indices] = features.values
        np.testing.assert_allclose(dense, reference.joint_feature(x, truth))
        assert scores[i] == pytest.approx(w @ dense)
        expected = reference.kbest(x, w, 4)
        assert [codes(path) for path, _ in best[i]] == [path.tolist() for _, path in expected]
        np.testing.assert_allclose([s for _, s in best[i]], [s for s, _ in expected])
        every, values = reference.all_outputs(len(x)), reference.all_values(x, w)
        for t, label in itertools.product(range(len(x)), range(n_labels)):
            assert marginals[i][t, label] == pytest.approx(values[every[:, t] == label].max())


def test_all_kinds_of_input_mean_the_same():
    rng = np.random.default_rng(0)
    X = [(rng.random((T, 4)) < 0.5).astype(float) for T in (1, 3, 5)]
    for x in X:
        x[:, 0] = 1
    X[0][0] = 1  # all features occur in order, so that strings get the same numbers
    Y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    kinds = {
        "dense": X,
        "sparse": [sparse.csr_array(x) for x in X],
        "strings": [[[f"f{j}" for j in np.flatnonzero(row)] for row in x] for x in X],
        "dicts": [[{f"f{j}": row[j] for j in range(4)} for row in x] for x in X],
        "both": [(sparse.csc_array(x[:, :2]), x[:, 2:]) for x in X],
    }
    answers, features = [], []
    for given_X in kinds.values():
        chain = prepared(given_X, Y)
        w, weights = random_weights(chain)
        answers.append(chain.predict(given_X, weights))
        assert answers[-1] == [chain.argmax(x, w) for x in given_X]
        vector = sparse_vector(chain.joint_feature(given_X[2], Y[2]))
        features.append((vector.indices.tolist(), vector.values.tolist()))
    assert all(answer == answers[0] for answer in answers)
    assert all(feature == features[0] for feature in features)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_encoded_batches_are_decoded_like_their_sequences(kernel):
    X, Y = dense_data(5, n=6)
    rising = Chain(allowed=lambda a, b: None in (a, b) or a < b, kernel=kernel)
    problem = rising.prepare_problem(X, Y, dtype="float64").problem
    weights = solve(problem, SDM(), C=1.0, dtype="float64").weights
    batch = rising.encoder.transform(X)
    found = rising.kbest_batch(batch, weights, 3)
    assert [
        [([rising.labels_[c] for c in codes.tolist()], score) for score, codes in paths]
        for paths in found
    ] == rising.kbest(X, weights, 3)
    for _, codes in itertools.chain.from_iterable(found):
        labels = [rising.labels_[c] for c in codes.tolist()]
        assert labels == sorted(set(labels))
    best = np.concatenate([paths[0][1] for paths in found])
    np.testing.assert_array_equal(best, rising.predict_encoded(batch, weights))
    marginals = rising.max_marginals_batch(batch, weights)
    assert marginals.shape == (batch.n_tokens, 3)
    np.testing.assert_array_equal(marginals, np.concatenate(rising.max_marginals(X, weights)))
    scores = rising.score_outputs(X, Y, weights)
    np.testing.assert_array_equal(scores, rising.score_labellings(X, Y, weights))


def test_threads_change_nothing():
    X, Y = dense_data(3, n=20)
    chain = prepared(X, Y)
    _, weights = random_weights(chain)
    assert chain.predict(X, weights, 2) == chain.predict(X, weights, 1)
    assert chain.kbest(X, weights, 3, 2) == chain.kbest(X, weights, 3, 1)
    for a, b in zip(
        chain.max_marginals(X, weights, 2), chain.max_marginals(X, weights, 1), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", None])
def test_bad_k(k):
    chain = prepared()
    with pytest.raises((TypeError, ValueError), match="k is"):
        chain.kbest(X_WORDS, random_weights(chain)[1], k)


def test_fewer_than_k_exist():
    chain = prepared()
    assert len(chain.kbest([[["a"]]], random_weights(chain)[1], 50)[0]) == 3


def test_unknown_features_are_ignored():
    chain = prepared()
    _, weights = random_weights(chain)
    known = chain.predict([[["dog"], ["bark"]]], weights)
    assert chain.predict([[["dog", "?"], ["bark", "!"]]], weights) == known
    with pytest.raises(ValueError, match="kind"):
        chain.predict([np.eye(2)], weights)


# --- as a structure ---


@pytest.mark.parametrize(
    ("X", "Y", "options"),
    [
        (X_WORDS, Y_WORDS, {}),
        (X_WORDS, Y_WORDS, {"loss": {("N", "V"): 3}}),
        (*dense_data(1), {}),
        ([(sparse.csr_array(x), x) for x in dense_data(2)[0]], dense_data(2)[1], {}),
    ],
)
def test_check_structure_finds_nothing(X, Y, options):
    report = check_structure(Chain(**options), X, Y)
    assert report.ok, str(report)
    assert not report.warnings, str(report)


def test_copies():
    chain = prepared(allowed=np.ones((3, 3), bool), loss={("N", "V"): 2})
    _, weights = random_weights(chain)
    for twin in (copy.deepcopy(chain), pickle.loads(pickle.dumps(chain))):
        assert twin.predict(X_WORDS, weights) == chain.predict(X_WORDS, weights)
        assert twin.loss(["N"], ["V"]) == 2


def test_repr():
    assert repr(Chain()) == "Chain()"
    assert repr(Chain(allowed="iob2", labels=["O"])) == "Chain(labels=['O'], allowed='iob2')"
    assert "array" in repr(Chain(loss=np.zeros((1, 1))))


# --- very long sequences --------------------------------------------------------------------------


def test_a_sequence_that_does_not_fit_is_refused_before_training(monkeypatch):
    from maxmargin import memory

    X = [[["a"]] * 10, [["a", "b"]] * 100_000]
    Y = [["x"] * 10, ["x", "y"] * 50_000]
    chain = prepared(X, Y)
    assert chain.make_problem(X, Y).n_examples == 2
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000_000)
    message = r"^training on sequence 1, of 100000 tokens and 2 labels, needs 1\d\.. MB, but only "
    with pytest.raises(MemoryError, match=message + r"10\.0 MB .*; cut it into shorter sequences$"):
        chain.make_problem(X, Y)


def train_on_a_long_sequence():
    """Train on a sequence whose first plane has 2 million entries of few features."""
    import resource

    from maxmargin.solvers import SDM, solve

    n = 100_000
    X = [[[f"f{(k * j) % 50}" for j in range(1, 11)] for k in range(n)]]
    Y = [[str(k % 3) for k in range(n)]]
    problem = prepared(X, Y).make_problem(X, Y)
    del X, Y
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solve(problem, SDM(), C=0.1, max_passes=1, random_state=0)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100_000  # kB; a hash table of the entries alone would be 200 MB


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
def test_the_memory_of_training_on_a_long_sequence():
    run_isolated(__file__, "train_on_a_long_sequence")
