"""Encoded files: the same models as from the data, whatever these are."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from maxmargin import SequenceTagger
from maxmargin.cli.main import main
from maxmargin.errors import FileFormatError
from maxmargin.io import container
from maxmargin.streams import EncodedCorpus, encode, temporary_corpus
from maxmargin.streams.sources import ColumnFile, ItemFile
from stream_data import ROOM, in_memory, objects, sentences


@pytest.mark.parametrize("options", [{}, {"min_count": 2}, {"min_count": 3}, {"hash_bits": 8}])
@pytest.mark.parametrize("template", ["words", "pos"])
def test_an_encoded_file_gives_the_model_of_its_data(columns, tmp_path, options, template):
    summary = encode(columns, tmp_path / "d.mme", template=template, **options)
    corpus = EncodedCorpus.open(tmp_path / "d.mme")
    assert summary.n_sequences == corpus.n_sequences == 60
    direct = in_memory(columns, template=template, **options)
    again = SequenceTagger(random_state=0).fit(corpus)
    assert np.array_equal(direct.weights_, again.weights_)
    assert direct.structure_.labels_ == again.structure_.labels_
    assert direct.certificate_ == again.certificate_
    direct.save(tmp_path / "a.mm")
    again.save(tmp_path / "b.mm")
    one, two = (container.read_container(tmp_path / name) for name in ("a.mm", "b.mm"))
    assert one.checksums == two.checksums  # names, fingerprints and weights


@pytest.mark.parametrize("piece_bytes", [1, 40, 1000])
def test_pieces_do_not_change_the_file(columns, tmp_path, piece_bytes):
    encode(columns, tmp_path / "whole.mme", template="pos", min_count=2)
    source = ColumnFile([columns], piece_bytes=piece_bytes)
    encode(source, tmp_path / "pieces.mme", template="pos", min_count=2, threads=2)
    assert (tmp_path / "whole.mme").read_bytes() == (tmp_path / "pieces.mme").read_bytes()


def test_gzip_several_files_and_files_that_are_open(columns, tmp_path):
    text = columns.read_bytes()
    middle = text.index(b"\n\n", len(text) // 2) + 2
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(text[:middle]))
    (tmp_path / "b.tsv").write_bytes(text[middle:])
    encode(columns, tmp_path / "d.mme")
    encode([tmp_path / "a.tsv.gz", tmp_path / "b.tsv"], tmp_path / "e.mme")
    encode(io.BytesIO(text), tmp_path / "f.mme")
    hashes = {EncodedCorpus.open(tmp_path / f"{k}.mme").batch.mapped.hash for k in "def"}
    assert len(hashes) == 1


def test_pair_features_and_bags_of_words(columns, tmp_path):
    template = tmp_path / "t.txt"
    template.write_text("U:%x[-1,0]\nU:%x[1,0]\nU2:%x[0,0]\nB:%x[0,1]\nB\n")
    encode(columns, tmp_path / "d.mme", template=template, min_count=2)
    direct = in_memory(columns, template=template, min_count=2)
    again = SequenceTagger(random_state=0).fit(EncodedCorpus.open(tmp_path / "d.mme"))
    assert np.array_equal(direct.weights_, again.weights_)
    assert direct.structure_.encoder.pair_names() == again.structure_.encoder.pair_names()
    assert list(direct.get_feature_names_out()) == list(again.get_feature_names_out())


@pytest.mark.parametrize("kind", ["strings", "dense", "strings+dense", "lists", "sparse"])
def test_a_stream_of_python_objects(kind):
    X, y = objects(kind)
    direct = SequenceTagger(random_state=0).fit(X, y)
    streamed = SequenceTagger(random_state=0).fit_stream(lambda: zip(X, y, strict=True))
    assert np.array_equal(direct.weights_, streamed.weights_)
    assert list(streamed.predict(X)) == list(direct.predict(X))
    once = SequenceTagger(random_state=0).fit_stream(zip(X, y, strict=True))
    assert np.array_equal(direct.weights_, once.weights_)


@pytest.mark.parametrize("options", [{"min_count": 2}, {"hash_bits": 7}])
def test_strings_that_are_counted_or_hashed(options):
    X, y = objects("strings")
    direct = SequenceTagger(random_state=0, **options).fit(X, y)
    streamed = SequenceTagger(random_state=0, **options).fit_stream(zip(X, y, strict=True))
    assert np.array_equal(direct.weights_, streamed.weights_)


@pytest.mark.parametrize("file_format", ["crfsuite", "svmhmm"])
def test_item_files(tmp_path, file_format):
    data = sentences(30)
    if file_format == "crfsuite":
        text = "".join(
            f"@weight:{1 + i % 2}\n"
            + "".join(f"{t}\tw={w}\tlen:{len(w)}\n" for w, t in zip(*s, strict=True))
            + "\n"
            for i, s in enumerate(data)
        )
    else:
        text = "".join(
            "".join(
                f"{t} qid:{i} {1 + len(w)}:1 {20 + ord(w[0])}:0.5\n"
                for w, t in zip(*s, strict=True)
            )
            for i, s in enumerate(data)
        )
    path = tmp_path / "items.txt"
    path.write_text(text)
    train = ["train", str(path), "--format", file_format, "-q", "-m"]
    assert main([*train, str(tmp_path / "a.mm")]) == 0
    encode(ItemFile([path], file_format, piece_bytes=100), tmp_path / "d.mme")
    assert main(["train", str(tmp_path / "d.mme"), "-q", "-m", str(tmp_path / "b.mm")]) == 0
    one, two = (container.read_container(tmp_path / name) for name in ("a.mm", "b.mm"))
    assert one.checksums == two.checksums
    assert two.meta["format"] == file_format


def test_conllu_in_pieces(tmp_path):
    lines = []
    for words, tags in sentences(20):
        lines.append("# a comment")
        lines += [
            f"{k}\t{w}\t_\t{t}\t_\t_\t_\t_\t_\t_"
            for k, (w, t) in enumerate(zip(words, tags, strict=True), 1)
        ]
        lines.append("")
    path = tmp_path / "t.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    args = ["train", str(path), "--format", "conllu", "-q", "-m"]
    assert main([*args, str(tmp_path / "a.mm")]) == 0
    assert main([*args, str(tmp_path / "b.mm"), "--stream"]) == 0
    one, two = (container.read_container(tmp_path / name) for name in ("a.mm", "b.mm"))
    assert one.checksums == two.checksums
    assert two.meta["columns_conllu"] == "form,upos"


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_parquet_and_arrow(columns, tmp_path, nested, ending):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    data = sentences()
    if nested:
        table = pa.table(
            {
                "word": [s[0] for s in data],
                "first": [[w[:1] for w in s[0]] for s in data],
                "tag": [s[1] for s in data],
            }
        )
    else:
        flat = [(i, w, w[:1], t) for i, s in enumerate(data) for w, t in zip(*s, strict=True)]
        names = ("sentence", "word", "first", "tag")
        table = pa.table({name: [row[k] for row in flat] for k, name in enumerate(names)})
    path = tmp_path / f"d.{ending}"
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=50)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    by = {} if nested else {"sequence": "sentence"}
    streamed = SequenceTagger(random_state=0, template="pos").fit_stream(path, **by)
    assert np.array_equal(streamed.weights_, in_memory(columns, template="pos").weights_)
    with pytest.raises(FileFormatError, match=r"no column 'lemma'; its columns are .*'word'"):
        encode(path, tmp_path / "d.mme", columns=["lemma", "tag"], **by)
    if not nested:
        args = ["encode", str(path), "-o", str(tmp_path / "d.mme"), "--sequence", "sentence", "-q"]
        assert main([*args, "--columns", "word,first,tag", "--template", "pos"]) == 0
        assert EncodedCorpus.open(tmp_path / "d.mme").n_sequences == 60


def test_bad_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing of the kind")
    with pytest.raises(FileFormatError, match=r"bad\.parquet: cannot be read as Parquet"):
        encode(tmp_path / "bad.parquet", tmp_path / "d.mme")
    table = pa.table({"s": [1, 1, 2, 2], "w": ["a", None, "b", "c"], "t": ["N", "N", "V", "V"]})
    pq.write_table(table, tmp_path / "none.parquet")
    with pytest.raises(FileFormatError, match="row 1"):
        encode(tmp_path / "none.parquet", tmp_path / "d.mme", sequence="s")
    found = encode(tmp_path / "none.parquet", tmp_path / "d.mme", sequence="s", on_error="skip")
    assert (found.n_sequences, found.n_skipped) == (1, 1)
    # Rows are those of the data, not of the part that is in memory.
    words = pa.table({"s": [1, 2, 3, 3], "w": ["a", "b", "c", None], "t": ["N", "N", "V", "V"]})
    pq.write_table(words, tmp_path / "late.parquet")
    place = r"late\.parquet: row 3, column 'w': found a missing value"
    with pytest.raises(FileFormatError, match=place):
        encode(tmp_path / "late.parquet", tmp_path / "d.mme", sequence="s")
    found = encode(tmp_path / "late.parquet", tmp_path / "d.mme", sequence="s", on_error="skip")
    assert (found.n_sequences, found.n_skipped) == (2, 1)
    assert re.search(place, found.first_error)


def test_the_command(columns, tmp_path, capsys):
    out = str(tmp_path / "d.mme")
    assert main(["encode", str(columns), "-o", out, "--template", "pos", "--min-count", "2"]) == 0
    assert "60 sequences" in capsys.readouterr().out
    assert main(["info", out, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["kind"], found["n_sequences"], found["min_count"]) == ("encoded", 60, 2)
    assert main(["info", out]) == 0
    assert "n_sequences: 60" in capsys.readouterr().out
    models = [str(tmp_path / f"{k}.mm") for k in range(3)]
    features = ["--template", "pos", "--min-count", "2"]
    assert main(["train", str(columns), "-m", models[0], *features, "--json", "-q"]) == 0
    plain = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert main(["train", out, "-m", models[1], "--json", "-q"]) == 0
    encoded = json.loads(capsys.readouterr().out.splitlines()[-1])
    stream = ["--stream", "--memory", ROOM, "--json", "-q"]
    assert main(["train", str(columns), "-m", models[2], *features, *stream]) == 0
    streamed = json.loads(capsys.readouterr().out.splitlines()[-1])
    for found in (encoded, streamed):
        assert plain.keys() <= found.keys()
        assert found["gap"] == plain["gap"]
        assert found["peak_rss_mb"] > 0
    files = [container.read_container(model) for model in models]
    assert files[0].checksums == files[1].checksums == files[2].checksums
    assert files[0].meta["params"] == files[1].meta["params"]


def test_what_does_not_go_with_a_stream(columns, tmp_path, capsys):
    args = ["train", str(columns), "-m", str(tmp_path / "m.mm"), "--stream"]
    for more, message in ((["--cv", "2"], "--cv"), (["--nonzeros", "5"], "--nonzeros")):
        assert main([*args, *more]) == 2
        assert message in capsys.readouterr().err


def test_a_pipe(columns, tmp_path):
    command = [
        sys.executable,
        "-m",
        "maxmargin",
        "encode",
        "-",
        "-o",
        str(tmp_path / "p.mme"),
        "-q",
    ]
    done = subprocess.run(command, input=columns.read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    encode(columns, tmp_path / "d.mme")
    hashes = {EncodedCorpus.open(tmp_path / name).batch.mapped.hash for name in ("p.mme", "d.mme")}
    assert len(hashes) == 1


def test_a_temporary_corpus_leaves_no_file(columns, tmp_path):
    corpus, summary = temporary_corpus(columns, spill=tmp_path / ".", template="pos")
    assert summary.n_sequences == 60
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.tsv"]
    assert SequenceTagger().fit(corpus).n_examples_ == 60
