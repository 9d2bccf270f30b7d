"""Bad sequences, full disks, damaged files: clear errors, and nothing stays behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from maxmargin import SequenceTagger
from maxmargin.cli.main import main
from maxmargin.errors import FileFormatError, ModelFormatError, NotCompatibleError
from maxmargin.io import container
from maxmargin.streams import EncodedCorpus, encode
from maxmargin.streams.sources import ColumnFile
from stream_data import column_text, in_memory, objects, sentences


def test_a_bad_line_in_the_middle(tmp_path):
    data = sentences(50)
    lines = column_text(data).split("\n")
    lines[40] = "only-one-cell"
    path = tmp_path / "bad.tsv"
    path.write_text("\n".join(lines), encoding="utf-8")
    for piece in (50, 10**6):
        with pytest.raises(FileFormatError, match=r"bad\.tsv: line 41"):
            encode(ColumnFile([path], piece_bytes=piece), tmp_path / "d.mme")
        assert not (tmp_path / "d.mme").exists()
        found = encode(
            ColumnFile([path], piece_bytes=piece),
            tmp_path / "d.mme",
            on_error="skip",
            template="pos",
        )
        assert (found.n_sequences, found.n_skipped) == (49, 1)
        assert "line 41" in found.first_error
        (tmp_path / "d.mme").unlink()
    # What is left is what a file without the bad sequence gives.
    text = "\n".join(lines)
    good = [s for s in text.split("\n\n") if "only-one-cell" not in s]
    (tmp_path / "good.tsv").write_text("\n\n".join(good), encoding="utf-8")
    streamed = SequenceTagger(template="pos", random_state=0).fit_stream(path, on_error="skip")
    assert streamed.n_skipped_ == 1
    assert np.array_equal(
        streamed.weights_, in_memory(tmp_path / "good.tsv", template="pos").weights_
    )


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (([[{"w": float("nan")}]], ["N"]), r"sequence 7, token 0.*nan"),
        (([["a"], ["b"]], ["N"]), r"sequence 7 has 2 tokens and 1 label|sequence 7"),
        (([], []), "sequence 7"),
        ("no pair", "example 7 of the stream is a str"),
        (([["a"], ["b"]], ["N", None]), r"sequence 7, token 1: the label None is a NoneType"),
        (([["a"]], "N"), "example 7 of the stream has a str for its labels"),
        ((3, ["N"]), "sequence 7"),
    ],
)
def test_a_bad_example_in_the_middle_of_a_stream(bad, message):
    X, y = objects("strings")
    X = [[{"w": t["w"]} for t in x] for x in X]
    stream = list(zip(X, y, strict=True))
    stream.insert(7, bad)
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceTagger().fit_stream(stream)
    model = SequenceTagger(random_state=0).fit_stream(stream, on_error="skip")
    assert model.n_skipped_ == 1
    assert np.array_equal(model.weights_, SequenceTagger(random_state=0).fit(X, y).weights_)


def test_labels_that_come_late_and_labels_that_are_not_known(tmp_path):
    data = [([["a"], ["b"]], ["N", "N"])] * 5 + [([["c"]], ["Z"])]
    encode(data, tmp_path / "d.mme")
    assert EncodedCorpus.open(tmp_path / "d.mme").classes == ["N", "Z"]
    with pytest.raises(ValueError, match=r"sequence 5.*unknown label 'Z'"):
        encode(data, tmp_path / "e.mme", labels=["N", "V"])
    found = encode(data, tmp_path / "e.mme", labels=["N", "V"], on_error="skip")
    assert found.n_skipped == 1
    corpus = EncodedCorpus.open(tmp_path / "e.mme")
    assert corpus.classes == ["N", "V"]
    SequenceTagger(labels=["N", "V"]).fit(corpus)
    with pytest.raises(NotCompatibleError, match="encode them with these labels"):
        SequenceTagger(labels=["V", "N"]).fit(corpus)


def test_numbers_as_labels(tmp_path):
    data = [([["a"], ["b"]], [1, 0])] * 5
    encode(data, tmp_path / "d.mme")
    model = SequenceTagger().fit(EncodedCorpus.open(tmp_path / "d.mme"))
    assert list(model.predict([[["a"], ["b"]]])) == [[1, 0]]
    with pytest.raises(TypeError, match="str, int, float or bool"):
        encode([([["a"]], [(1, 2)])], tmp_path / "d.mme")


def test_empty_data(tmp_path, capsys):
    path = tmp_path / "empty.tsv"
    path.write_text("\n\n")
    with pytest.raises(FileFormatError, match="holds no sequences"):
        encode(path, tmp_path / "d.mme")
    with pytest.raises(FileFormatError, match="holds no sequences"):
        SequenceTagger().fit_stream(iter([]))
    assert main(["encode", str(path), "-o", str(tmp_path / "d.mme")]) == 2
    assert "holds no sequences" in capsys.readouterr().err
    with pytest.raises(ValueError, match="on_error"):
        encode(path, tmp_path / "d.mme", on_error="ignore")
    with pytest.raises(TypeError, match="expected an iterable"):
        SequenceTagger().fit_stream(3)


def test_other_features_than_were_encoded(corpus):
    for options, message in (
        ({"template": "words"}, "another template"),
        ({"hash_bits": 5}, "hash_bits=None"),
        ({"min_count": 2}, "min_count=1"),
        ({"kernel": "rbf"}, "kernel"),
    ):
        with pytest.raises(NotCompatibleError, match=message):
            SequenceTagger(**options).fit(corpus)
    SequenceTagger(template="pos").fit(corpus)


def test_values_in_another_precision(tmp_path):
    X, y = objects("strings")
    encode(zip(X, y, strict=True), tmp_path / "d.mme")
    with pytest.raises(NotCompatibleError, match="--dtype float64"):
        SequenceTagger(dtype="float64").fit(EncodedCorpus.open(tmp_path / "d.mme"))
    encode(zip(X, y, strict=True), tmp_path / "d.mme", dtype="float64")
    wide = SequenceTagger(dtype="float64", random_state=0).fit(
        EncodedCorpus.open(tmp_path / "d.mme")
    )
    direct = SequenceTagger(dtype="float64", random_state=0).fit(X, y)
    assert np.array_equal(wide.weights_, direct.weights_)


def test_a_function_as_template(columns, tmp_path):
    encode(columns, tmp_path / "d.mme", template=first_letters)
    corpus = EncodedCorpus.open(tmp_path / "d.mme", template=first_letters)
    model = SequenceTagger(random_state=0).fit(corpus)
    direct = in_memory(columns, template=first_letters)
    assert np.array_equal(model.weights_, direct.weights_)
    bare = SequenceTagger(random_state=0).fit(EncodedCorpus.open(tmp_path / "d.mme"))
    with pytest.raises(NotCompatibleError, match="first_letters"):
        bare.predict([[["a", "b"]]])


def first_letters(rows):
    return [[f"w={row[0]}", f"c={row[0][0]}"] for row in rows]


def test_damaged_files_are_refused(corpus, tmp_path):
    good = Path(corpus.path).read_bytes()
    path = tmp_path / "bad.mme"
    for cut in (0, 5, 31, 200, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:cut])
        with pytest.raises(ModelFormatError, match=r"bad\.mme"):
            EncodedCorpus.open(path)
    for at in range(40, len(good), len(good) // 60):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        with pytest.raises(ModelFormatError, match=r"bad\.mme"):
            EncodedCorpus.open(path)


def resigned(corpus, path, **changes):
    found = container.read_container(corpus.path)
    meta, arrays = dict(found.meta), dict(found.arrays)
    for name, change in changes.items():
        if name in arrays:
            arrays[name] = change(np.array(arrays[name]))
        else:
            meta[name] = change(meta[name])
    container.write_container(path, "encoded", meta, arrays)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("version", lambda _: 2, "version '2'; this maxmargin reads version 1"),
        ("classes", lambda c: c[:-1], "counts of the labels"),
        ("classes", lambda c: [c[0]] * len(c), "twice"),
        ("label_counts", lambda c: [-1, *c[1:]], "counts"),
        ("n_tokens", lambda n: n + 1, "other sizes"),
        ("labels", lambda a: a[:-1], "one label for each token"),
        ("labels", lambda a: a + 9, "label code out of range"),
        ("indices", lambda a: a + np.uint32(2**31), "feature ids"),
        ("indices", lambda a: a[::-1].copy(), "feature ids"),
        ("indptr", lambda a: np.concatenate([a[:5], a[4:5] - 3, a[6:]]), "indptr"),
        ("offsets", lambda a: a[::-1].copy(), "offsets"),
        ("name_ends", lambda a: a[::-1].copy(), "names do not fit"),
        ("fingerprints", lambda a: a[:-1], "fingerprints do not fit"),
        ("encoder", lambda e: e | {"kind": "what"}, "kind of features"),
        ("encoder", lambda e: e | {"n_sparse": 3}, "do not fit|feature ids"),
        ("encoder", lambda e: e | {"n_sparse": True}, "n_sparse"),
    ],
)
def test_files_that_were_signed_anew(corpus, tmp_path, name, change, message):
    path = tmp_path / "bad.mme"
    resigned(corpus, path, **{name: change})
    with pytest.raises(ValueError, match=message):
        SequenceTagger(max_passes=1, gap=0.99).fit(EncodedCorpus.open(path))


def test_models_and_encoded_files_are_not_mixed_up(corpus, columns, tmp_path, capsys):
    model = tmp_path / "m.mm"
    in_memory(columns, template="pos").save(model)
    with pytest.raises(ModelFormatError, match="expected encoded training data"):
        EncodedCorpus.open(model)
    assert main(["tag", "-m", corpus.path, str(columns)]) == 2
    assert "holds encoded training data and no model" in capsys.readouterr().err
    assert main(["train", corpus.path, "-m", corpus.path]) == 2


def test_golden_file():
    """A file of the first version stays readable."""
    golden = Path(__file__).parents[1] / "golden" / "encoded-v1.mme"
    corpus = EncodedCorpus.open(golden)
    assert (corpus.n_sequences, corpus.n_tokens, corpus.classes) == (2, 3, ["N", "V"])
    model = SequenceTagger(C=1.0, random_state=0).fit(corpus)
    assert list(model.predict([[["dogs"], ["bark"]]])) == [["N", "V"]]
