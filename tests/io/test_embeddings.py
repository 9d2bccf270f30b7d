"""Files of word vectors, and model files with them."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import FileFormatError, ModelFormatError, SequenceTagger, read_embeddings
from maxmargin.errors import EmptyFileError
from maxmargin.io.container import read_container, write_container
from maxmargin.io.embeddings import embeddings_of
from maxmargin.models.base import DescriptionRequest
from maxmargin.models.kinds import kind_of

TEXT = "dog 1 2.5\ncat -1e-1 3\nbarks 0 -2\n"
WORDS = ["dog", "cat", "barks"]
NUMBERS = [[1, 2.5], [-0.1, 3], [0, -2]]
X = [[["dog"], ["barks"]], [["Cat"], ["sleeps"]]]
y = [["N", "V"], ["N", "V"]]


def written(folder: Path, text: str | bytes, name: str = "v.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "3 2\n" + TEXT,  # word2vec
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", " \n"),  # as word2vec ends its lines
        TEXT.replace(" ", "\t"),
        TEXT.rstrip("\n"),
        "\n\n" + TEXT + "\n",
        gzip.compress(TEXT.encode(), mtime=0),
    ],
)
def test_formats(tmp_path: Path, text: str | bytes) -> None:
    embeddings = read_embeddings(written(tmp_path, text))
    assert embeddings.words == WORDS
    np.testing.assert_allclose(embeddings.vectors, NUMBERS, rtol=1e-7)


def test_many_words_in_pieces_of_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(30_000, 8)).astype(np.float32)
    lines = [f"wörd{k} " + " ".join(map(str, row)) for k, row in enumerate(numbers.tolist())]
    embeddings = read_embeddings(written(tmp_path, "\n".join(lines)))
    assert embeddings.words == [f"wörd{k}" for k in range(30_000)]
    np.testing.assert_array_equal(embeddings.vectors, numbers)


def test_words_with_blanks(tmp_path: Path) -> None:
    text = "dog 1 2\n. . . 3 4\nat name@domain.com 5 6\nno\u00a0break 7 8\n1 9 10\n"
    embeddings = read_embeddings(written(tmp_path, text))
    assert embeddings.words == ["dog", ". . .", "at name@domain.com", "no\u00a0break", "1"]
    assert embeddings.vectors[:, 0].tolist() == [1, 3, 5, 7, 9]


@pytest.mark.parametrize("head", ["", "3 2\n"])
def test_a_limit_reads_the_first_words(tmp_path: Path, head: str) -> None:
    text = head + "dog 1 2\ndog 3 4\ncat 1 1\n" + ("bad line\n" if not head else "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_embeddings(written(tmp_path, text), limit=2).words == ["dog", "cat"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT + "bird 1\n", r"line 4: found 1 numbers behind 'bird'; expected 2, as line 1 says"),
        (TEXT + "bird\n", r"line 4: found 0 numbers behind 'bird'; expected 2"),
        (TEXT + "bird 1 2 3\n", r"line 4: found 3 numbers behind 'bird'; expected 2"),
        ("3 2\ndog 1 2 3\n", r"line 2: found 3 numbers behind 'dog'; expected 2, as line 1 says"),
        (TEXT + "bird 1 x\n", r"line 4: found 'x' in the vector of 'bird'; expected a number"),
        (TEXT + "bird 1 nan\n", r"line 4: found a number that is not between .*'bird'"),
        (TEXT + "bird 1e400 0\n", r"line 4: .*'bird'; expected finite numbers"),
        (TEXT + "bird -inf 0\n", r"line 4: .*'bird'; expected finite numbers"),
        ("4 2\n" + TEXT, r"found 3 words; expected 4, as the first line says"),
        ("2 2\n" + TEXT, r"found 3 words; expected 2, as the first line says"),
        ("3 0\n" + TEXT, r"line 1: the first line says vectors of 0 numbers"),
        ("3 99999999999999\n", r"line 1: the first line says vectors of 99999999999999 numbers"),
        ("these are words\n", r"line 1: found 'words'; expected a word and the numbers"),
        (b"dog 1 2\nb\xe9b\xe9 1 2\n", r"line 2: found bytes that are not UTF-8.*encoding"),
        (b"3 2\ndog \x00\x00\x80\x3f\x00\xff\x00\x40\ncat ", r"line 2: .*binary"),
        (TEXT.encode("utf-16"), r"looks like UTF-16"),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path: Path, text: Any, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_embeddings(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("text", ["", "\n\n", "0 50\n"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    with pytest.raises(EmptyFileError, match="holds no vectors"):
        read_embeddings(written(tmp_path, text))


def test_other_encodings(tmp_path: Path) -> None:
    path = written(tmp_path, "bébé 1 2\n".encode("latin-1"))
    assert read_embeddings(path, encoding="latin-1").words == ["bébé"]
    with pytest.raises(ValueError, match="encoding"):
        read_embeddings(path, encoding="klingon")


def test_of_a_repeated_word_the_first_vector_counts(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT + "dog 7 7\ncat 8 8\n")
    with pytest.warns(UserWarning, match=r"line 4: found 2 words a second time, 'dog' of line 1"):
        embeddings = read_embeddings(path)
    np.testing.assert_allclose(embeddings.vectors, NUMBERS, rtol=1e-7)


def test_what_may_be_given(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    embeddings = read_embeddings(path)
    assert embeddings_of(None) is None
    assert embeddings_of(embeddings) is embeddings
    by_name = [embeddings_of(str(path)), embeddings_of(path)]
    by_name.append(embeddings_of(dict(zip(WORDS, NUMBERS, strict=True))))
    assert {e.hash for e in by_name if e is not None} == {embeddings.hash}
    with pytest.raises(TypeError, match="embeddings is 3"):
        embeddings_of(3)
    with pytest.raises(FileNotFoundError):
        embeddings_of(tmp_path / "nothing.txt")


def test_a_model_file_is_enough(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    embeddings = read_embeddings(path, window=1, scale=0.5)
    tagger = SequenceTagger(template="words", embeddings=embeddings, random_state=0).fit(X, y)
    tagger.save(tmp_path / "m.mm")
    path.unlink()
    for mmap in (False, True):
        again = maxmargin.load(tmp_path / "m.mm", mmap=mmap)
        assert again.embeddings.identity() == embeddings.identity()
        for a, b in zip(tagger.decision_function(X), again.decision_function(X), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4)
    again.fit(X, y)
    assert again.certificate_.primal == pytest.approx(tagger.certificate_.primal)
    assert str(tmp_path).encode() not in (tmp_path / "m.mm").read_bytes()


def test_hashed_features_beside_vectors(tmp_path: Path) -> None:
    vectors = dict(zip(WORDS, NUMBERS, strict=True))
    tagger = SequenceTagger(template="words", embeddings=vectors, hash_bits=8, random_state=0)
    tagger.fit(X, y).save(tmp_path / "m.mm")
    again = SequenceTagger.load(tmp_path / "m.mm")
    assert again.get_feature_names_out()[-3:].tolist() == [
        *("hash:255", "embedding[0]:0", "embedding[0]:1"),
    ]
    for a, b in zip(tagger.decision_function(X), again.decision_function(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_a_reference_needs_the_same_file(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT + "bird 1 1\n")
    embeddings = read_embeddings(path, store="reference", limit=3)
    tagger = SequenceTagger(template="words", embeddings=embeddings, random_state=0).fit(X, y)
    model = tmp_path / "elsewhere" / "m.mm"
    model.parent.mkdir()
    tagger.save(model)
    tagger.save(tmp_path / "again.mm")
    assert b"embedding_vectors" not in model.read_bytes()
    assert list(SequenceTagger.load(model).predict(X)) == y
    path.rename(model.parent / "v.txt")
    again = SequenceTagger.load(model)
    assert again.embeddings.words == WORDS
    assert again.embeddings.store == "reference"
    with pytest.raises(ValueError, match="which is not there"):
        SequenceTagger.load(tmp_path / "again.mm")
    (model.parent / "v.txt").write_text("dog 1 2.5\ncat -1e-1 3\nbarks 0 2\n")
    with pytest.raises(ValueError, match="other word vectors"):
        SequenceTagger.load(model)
    (model.parent / "v.txt").write_text("dog 1 2.5\ncat 3\n")
    with pytest.raises(ValueError, match=r"m\.mm: its word vectors .*v\.txt: line 2"):
        SequenceTagger.load(model)


def model_parts(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    vectors = dict(zip(WORDS, NUMBERS, strict=True))
    tagger = SequenceTagger(template="words", embeddings=vectors, random_state=0).fit(X, y)
    path = folder / "m.mm"
    tagger.save(path)
    container = read_container(path, "tagger")
    return path, dict(container.meta), {k: np.array(v) for k, v in container.arrays.items()}


def test_what_info_says(tmp_path: Path) -> None:
    path, _, _ = model_parts(tmp_path)
    kind = kind_of(path)
    said = kind.describe(kind.load(path), DescriptionRequest(top=1000, selected=True))
    assert said["embeddings"]["n_words"] == 3
    assert said["embeddings"]["size"] == 2
    assert said["selected"]["lines"][-1]["line"] == "embeddings"
    assert "embedding[0]:1" in {weight["feature"] for weight in said["top"]}


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("n_words", 2),
        ("n_words", 0),
        ("size", 3),
        ("window", 1),
        ("window", 99),
        ("column", 5),
        ("column", -1),
        ("scale", 0),
        ("scale", "1"),
        ("store", "elsewhere"),
        ("vectors", "shape"),
        ("vectors", "nan"),
        ("vectors", "dtype"),
        ("vectors", None),
        ("names", "same"),
    ],
)
def test_damaged_model_files(tmp_path: Path, change: str, value: Any) -> None:
    path, meta, arrays = model_parts(tmp_path)
    if change == "vectors":
        vectors = arrays.pop("embedding_vectors")
        if value == "nan":
            vectors[1, 1] = np.nan
        if value is not None:
            arrays["embedding_vectors"] = {
                "shape": vectors[:2], "nan": vectors, "dtype": vectors.astype(np.float64)
            }[value]
    elif change == "names":
        from maxmargin.io.tagger_file.names import name_arrays

        arrays |= name_arrays("embedding_", ["dog", "cat", "dog"])
    else:
        encoder = dict(meta["encoder"])
        encoder["embeddings"] = encoder["embeddings"] | {change: value}
        meta["encoder"] = encoder
    write_container(path, "tagger", meta, arrays)
    with pytest.raises(ModelFormatError):
        SequenceTagger.load(path)
