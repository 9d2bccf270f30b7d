"""`Embeddings`: vectors of words as features of tokens, against their definition."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import Embeddings, NotCompatibleError, SequenceTagger
from maxmargin.features.columns import ColumnTable
from maxmargin.features.select import encoder_of
from maxmargin.features.template import Template
from maxmargin.features.template_encoder import TemplateEncoder

VECTORS = {
    "dog": [3.0, 0.0, 0.0],
    "Madrid": [0.0, 2.0, 0.0],
    "barks": [0.0, 0.0, -1.0],
    "the": [0.5, 0.5, 0.5],
}
X = [[["the"], ["Dog"], ["barks"]], [["MADRID"]], [["bird"], ["BARKS"]]]
y = [["D", "N", "V"], ["N"], ["N", "V"]]


def expected_rows(window: int, scale: float) -> np.ndarray:
    """The features of X, token by token, by the words that the definition looks up."""
    factor = scale / np.sqrt(np.mean([np.dot(v, v) for v in VECTORS.values()]))
    found = {"the": "the", "Dog": "dog", "barks": "barks", "MADRID": "Madrid", "BARKS": "barks"}
    rows = []
    for sequence in X:
        for t in range(len(sequence)):
            row = []
            for k in range(t - window, t + window + 1):
                inside = 0 <= k < len(sequence)
                word = found.get(sequence[k][0]) if inside else None
                row += [0.0] * 3 if word is None else [factor * v for v in VECTORS[word]]
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("window", [0, 1, 2, 5])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_rows_are_those_of_the_definition(window: int, scale: float) -> None:
    embeddings = Embeddings(VECTORS, window=window, scale=scale)
    table = ColumnTable.from_rows(X)
    rows = embeddings.rows(table, 0)
    assert rows.dtype == np.float32
    assert rows.shape == (6, embeddings.n_features)
    np.testing.assert_allclose(rows, expected_rows(window, scale), rtol=1e-6)
    assert len(embeddings.names()) == len(set(embeddings.names())) == embeddings.n_features


def test_the_way_a_word_is_written_comes_first() -> None:
    embeddings = Embeddings({"us": [1.0], "US": [2.0], "Us": [3.0]})
    assert [embeddings.place(w) for w in ("us", "US", "Us", "uS")] == [0, 1, 2, 0]


def test_unknown_words_have_the_vector_of_unk() -> None:
    embeddings = Embeddings({**VECTORS, "<unk>": [1.0, 1.0, 1.0]})
    assert embeddings.place("bird") == len(VECTORS)
    assert Embeddings(VECTORS).place("bird") == -1
    assert not Embeddings(VECTORS).vector("bird").any()
    assert embeddings.known_share(["dog", "bird"]) == 0.5


def test_the_column_is_that_of_training() -> None:
    rows = [[[str(k), row[0]] for k, row in enumerate(sequence)] for sequence in X]
    template = Template.parse("U:%x[0,0]\n")
    encoder = TemplateEncoder(template, embeddings=Embeddings(VECTORS, column=1))
    labelled = [
        [["?", *row] for row in sequence] for sequence in rows
    ]  # the label in front, as `which` must say
    table = ColumnTable.from_rows(labelled)
    shifted = TemplateEncoder(
        Template.parse("U:%x[0,1]\n"), embeddings=Embeddings(VECTORS, column=2), label_column=0
    )
    trained = shifted.fit_transform(table)
    assert trained.dense is not None
    np.testing.assert_allclose(trained.dense, expected_rows(0, 1.0), rtol=1e-6)
    tagged = shifted.transform(ColumnTable.from_rows(rows))  # without the label
    np.testing.assert_array_equal(tagged.dense, trained.dense)
    np.testing.assert_array_equal(encoder.fit_transform(rows).dense, trained.dense)


@pytest.mark.parametrize("column", [0, 7])
def test_a_column_without_words_is_refused(column: int) -> None:
    encoder = TemplateEncoder(
        Template.parse("U:%x[0,1]\n"), embeddings=Embeddings(VECTORS, column=column), label_column=0
    )
    with pytest.raises(ValueError, match=f"column {column}, which"):
        encoder.fit_transform([[["N", "dog"]]])


@pytest.mark.parametrize(
    ("vectors", "options", "error", "message"),
    [
        ({}, {}, ValueError, "no words"),
        ({"a": []}, {}, ValueError, "'a'.*at least one number"),
        ({"a": [1.0], "b": [1.0, 2.0]}, {}, ValueError, "'b' has the shape .2,.; expected .1,."),
        ({"a": [1.0], "b": [np.nan]}, {}, ValueError, "'b'.*finite"),
        ({"a": [1.0], "b": [np.inf]}, {}, ValueError, "'b'.*finite"),
        ({"a": [1.0], "b": [1e300]}, {}, ValueError, "'b'.*finite"),
        ({"a": ["x"]}, {}, TypeError, "'a'.*numbers"),
        ({1: [1.0]}, {}, TypeError, "int as a word"),
        ({"a": [0.0]}, {}, ValueError, "all vectors are zero"),
        ([1.0], {}, TypeError, "found list"),
        ({"a": [1.0]}, {"scale": 0}, ValueError, "scale"),
        ({"a": [1.0]}, {"scale": "x"}, TypeError, "scale"),
        ({"a": [1.0]}, {"window": -1}, ValueError, "window"),
        ({"a": [1.0]}, {"window": 1000}, ValueError, "window is 1000; expected at most"),
        ({"a": [1.0]}, {"column": 0.5}, TypeError, "column"),
        ({"a": [1.0]}, {"store": "none"}, ValueError, "store"),
        ({"a": [1.0]}, {"store": "reference"}, ValueError, "read from a file"),
    ],
)
def test_bad_vectors_are_named(vectors, options, error, message) -> None:
    with pytest.raises(error, match=message):
        Embeddings(vectors, **options)


@pytest.mark.parametrize("template", [None, lambda x: [[w] for w in x]])
def test_there_must_be_a_template(template) -> None:
    with pytest.raises(NotCompatibleError, match="embeddings are looked up"):
        encoder_of(template, embeddings=Embeddings(VECTORS))


def test_clones_and_copies_share_the_vectors() -> None:
    embeddings = Embeddings(VECTORS)
    assert copy.deepcopy(embeddings) is embeddings
    assert copy.copy(embeddings) is embeddings
    assert clone(SequenceTagger(embeddings=embeddings)).embeddings is embeddings
    again = pickle.loads(pickle.dumps(embeddings))
    assert again.identity() == embeddings.identity()
    assert Embeddings({**VECTORS, "dog": [1.0, 1.0, 1.0]}).hash != embeddings.hash
    assert Embeddings(VECTORS, scale=2.0).identity() != embeddings.identity()


def test_a_tagger_learns_from_vectors_what_words_do_not_tell() -> None:
    rng = np.random.default_rng(0)
    vectors = {f"n{k}": rng.normal((2, 0), 0.3) for k in range(40)}
    vectors |= {f"v{k}": rng.normal((0, 2), 0.3) for k in range(40)}
    words = list(vectors)
    rng.shuffle(words)
    rows = [[[word]] for word in words]
    labels = [[word[0]] for word in words]
    template = Template.parse("U:%x[0,0]\n")  # new words have no known feature
    plain = SequenceTagger(template=template, C=1.0, random_state=0).fit(rows[:40], labels[:40])
    dense = SequenceTagger(template=template, C=1.0, embeddings=vectors, random_state=0)
    dense.fit(rows[:40], labels[:40])
    assert dense.score(rows[40:], labels[40:]) == 1.0
    assert plain.score(rows[40:], labels[40:]) < 0.8
    assert dense.get_feature_names_out()[-2:].tolist() == ["embedding[0]:0", "embedding[0]:1"]
    assert dense.coef_.shape == (42, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dense_features_are_those_of_tuples(dtype: str) -> None:
    """The same problem as features in strings beside an array: the same objective."""
    embeddings = Embeddings(VECTORS, window=1)
    tagger = SequenceTagger(
        template=Template.parse("U:%x[0,0]\n"), embeddings=embeddings, gap=1e-6, dtype=dtype
    ).fit(X, y)
    dense = np.split(embeddings.rows(ColumnTable.from_rows(X), 0), [3, 4])
    pairs = [
        ([[f"U:{row[0]}"] for row in x], d.astype(dtype)) for x, d in zip(X, dense, strict=True)
    ]
    twin = SequenceTagger(gap=1e-6, dtype=dtype).fit(pairs, y)
    assert tagger.certificate_.primal == pytest.approx(twin.certificate_.primal, rel=1e-5)


def test_learning_goes_on_with_vectors() -> None:
    tagger = SequenceTagger(template="words", embeddings=VECTORS, random_state=0)
    tagger.partial_fit(X[:2], y[:2])
    tagger.partial_fit(X[2:], y[2:])
    assert tagger.n_examples_ == 3
    assert list(tagger.predict(X)) == y


def test_streams_refuse_them(tmp_path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("dog\tN\n\n")
    with pytest.raises(NotCompatibleError, match="in memory"):
        SequenceTagger(template="words", embeddings=VECTORS).fit_stream(path)


def test_a_prior_must_have_the_same_vectors() -> None:
    first = SequenceTagger(template="words", embeddings=VECTORS, random_state=0).fit(X, y)
    again = SequenceTagger(template="words", embeddings=VECTORS, prior=first, random_state=0)
    again.fit(X, y)
    assert again.prior_match_.shared_features == again.prior_match_.new_features
    other = {word: [1.0, 2.0, 3.0] for word in VECTORS}
    with pytest.raises(NotCompatibleError, match="embeddings"):
        SequenceTagger(template="words", embeddings=other, prior=first).fit(X, y)
    with pytest.raises(NotCompatibleError, match="embeddings"):
        SequenceTagger(template="words", prior=first).fit(X, y)


@pytest.mark.parametrize("kernel", ["poly", "rbf"])
def test_kernels_see_the_vectors(kernel: str, tmp_path) -> None:
    tagger = SequenceTagger(
        template="words", embeddings=VECTORS, kernel=kernel, solver="sdm", random_state=0
    ).fit(X, y)
    tagger.save(tmp_path / "k.mm")
    again = SequenceTagger.load(tmp_path / "k.mm")
    for a, b in zip(tagger.decision_function(X), again.decision_function(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
