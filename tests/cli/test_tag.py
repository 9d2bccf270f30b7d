"""`maxmargin tag`: lines one to one, streams, chunks, n best labellings, bad input."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import select
import signal
import subprocess
import sys

import numpy as np
import pytest

from cli_files import COMMAND, conllu, crfsuite, refused, run, sentences, svmhmm, text, write
from maxmargin.cli.main import main
from maxmargin.cli.tagging import streams
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import load_tagger

TRAIN, TEST = sentences(), sentences(7, seed=2)
WIDE, NARROW = text(TEST), text(TEST, (0, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and files to tag."""
    path = tmp_path_factory.mktemp("tag")
    data = write(path / "train.tsv", text(TRAIN))
    assert main(["train", str(data), "-m", str(path / "m.mm"), "-q"]) == 0
    write(path / "test.tsv", WIDE)
    write(path / "narrow.tsv", NARROW)
    return path


@pytest.fixture
def model(folder):
    return folder / "m.mm"


@pytest.fixture
def stdin(monkeypatch):
    """Put bytes into standard input."""

    def put(data):
        raw = io.BufferedReader(io.BytesIO(data if isinstance(data, bytes) else data.encode()))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))

    return put


@pytest.fixture
def chunk(request, monkeypatch):
    """Read so many bytes at a time."""
    monkeypatch.setattr(streams, "CHUNK", request.param)


def predicted(model, sequences=TEST):
    """What the library says, sequence by sequence."""
    loaded = load_tagger(model)
    chain = loaded.chain
    from maxmargin.features.columns import ColumnTable

    batch = chain.encoder.transform(ColumnTable.from_rows([list(rows) for rows in sequences]))
    codes = chain.predict_encoded(batch, loaded.weights, 1)
    labels = iter(chain.labels_[k] for k in codes.tolist())
    return [[next(labels) for _ in rows] for rows in sequences]


def with_labels(sequences, labels, columns=(0, 1, 2), separator="\t"):
    blocks = []
    for rows, tags in zip(sequences, labels, strict=True):
        cells = ([*(row[k] for k in columns), label] for row, label in zip(rows, tags, strict=True))
        blocks.append("".join(separator.join(row) + "\n" for row in cells))
    return "\n".join(blocks)


# --- lines one to one -----------------------------------------------------------------------------


def test_one_column_is_added(capsys, folder, model):
    labels = predicted(model)
    assert run(capsys, "tag", "-m", model, folder / "test.tsv") == with_labels(TEST, labels)
    out = run(capsys, "tag", "-m", model, folder / "narrow.tsv")
    assert out == with_labels(TEST, labels, (0, 1))


def test_labels_in_the_input_change_nothing(capsys, folder, model, tmp_path):
    wrong = [[(word, pos, "?") for word, pos, _ in rows] for rows in TEST]
    path = write(tmp_path / "wrong.tsv", text(wrong))
    assert run(capsys, "tag", "-m", model, path) == with_labels(wrong, predicted(model))


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("chunk", [1 << 20, 11], indirect=True)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("columns", "separator"), [((0, 1, 2), "\t"), ((0, 1), "\t"), ((0, 1), " ")]
)
def test_every_line_is_kept(capsys, model, stdin, *, end, columns, separator):
    first, second = ([separator.join(row[k] for k in columns) for row in rows] for rows in TEST[:2])
    comment = ["# a comment", "#"]
    lines = ["", *comment, *first, "", "", "   ", *comment, "", *second[:1], "# mid", *second[1:]]
    source = end.join(lines)  # without an end of the last line
    labels = predicted(model, TEST[:2])
    stdin(source)
    out = run(capsys, "tag", "-m", model, "--comments", "#")
    assert out.endswith("\n")  # the last line gets an end
    found = out[:-1].split(end)
    assert len(found) == len(lines)
    tokens = iter(label for tags in labels for label in tags)
    for before, after in zip(lines, found, strict=True):
        if before.strip() and not before.startswith("#"):
            assert after == f"{before}{separator}{next(tokens)}"
        else:
            assert after == before
    assert next(tokens, None) is None


def test_without_comments_every_line_is_a_token(capsys, model, stdin):
    stdin("#\tSYM\nof\tIN\n")
    assert [line.count("\t") for line in run(capsys, "tag", "-m", model).splitlines()] == [2, 2]


@pytest.mark.parametrize("nothing", ["", "\n", "\n\n  \n", "# only\n"])
def test_nothing_to_tag(capsys, model, stdin, tmp_path, nothing):
    stdin(nothing)
    assert run(capsys, "tag", "-m", model, "--comments", "#") == nothing
    path = write(tmp_path / "nothing.tsv", nothing)
    assert run(capsys, "tag", "-m", model, path, "--comments", "#") == nothing


@pytest.mark.parametrize("kind", ["crfsuite", "svmhmm", "conllu"])
def test_nothing_to_tag_in_other_formats(capsys, tmp_path, kind):
    made = {"crfsuite": crfsuite, "svmhmm": svmhmm, "conllu": conllu}[kind]
    data = write(tmp_path / "train", made(TRAIN))
    run(capsys, "train", data, "--format", kind, "-m", tmp_path / "m.mm", "-q")
    assert run(capsys, "tag", "-m", tmp_path / "m.mm", write(tmp_path / "empty", "")) == ""


def test_gzip(capsys, folder, model, stdin, tmp_path):
    plain = run(capsys, "tag", "-m", model, folder / "test.tsv")
    packed = write(tmp_path / "test.tsv.gz", gzip.compress(WIDE.encode()))
    assert run(capsys, "tag", "-m", model, packed) == plain
    stdin(packed.read_bytes())
    assert run(capsys, "tag", "-m", model) == plain
    out = tmp_path / "out.tsv.gz"
    assert run(capsys, "tag", "-m", model, packed, "-o", out) == ""
    assert gzip.decompress(out.read_bytes()).decode() == plain


@pytest.mark.parametrize("size", [1, 2, 7, 64, 500])
@pytest.mark.parametrize("options", [[], ["--scores"], ["--nbest", "2"]])
def test_chunks(capsys, monkeypatch, folder, size, options):
    arguments = ["tag", "-m", folder / "m.mm", folder / "test.tsv", *options]
    whole = run(capsys, *arguments)
    monkeypatch.setattr(streams, "CHUNK", size)
    assert run(capsys, *arguments) == whole


def test_threads(capsys, folder, model):
    one = run(capsys, "tag", "-m", model, folder / "test.tsv")
    assert run(capsys, "tag", "-m", model, folder / "test.tsv", "--threads", "2") == one


# --- more than labels -----------------------------------------------------------------------------


def blocks_of(out):
    """Take the output of --nbest apart: for each sequence, (rank, score, rows)."""
    result = []
    for block in out.split("\n\n")[:-1]:
        head, *rows = block.split("\n")
        mark, rank, score = head.split()
        assert mark == "#"
        if rank == "0":
            result.append([])
        result[-1].append((int(rank), float(score), rows))
    return result


@pytest.mark.parametrize("file", ["test.tsv", "narrow.tsv"])
def test_nbest(capsys, folder, model, file):
    plain = run(capsys, "tag", "-m", model, folder / file)
    found = blocks_of(run(capsys, "tag", "-m", model, folder / file, "--nbest", "4"))
    assert len(found) == len(TEST)
    for labellings, best in zip(found, plain.rstrip("\n").split("\n\n"), strict=True):
        assert [rank for rank, _, _ in labellings] == [0, 1, 2, 3]
        scores = [score for _, score, _ in labellings]
        assert scores == sorted(scores, reverse=True)
        assert labellings[0][2] == best.split("\n")
        assert len({tuple(rows) for _, _, rows in labellings}) == 4


def test_fewer_labellings_than_asked_for(capsys, model, stdin):
    stdin("dog\tNN\n")
    n_labels = len(load_tagger(model).chain.labels_)
    [found] = blocks_of(run(capsys, "tag", "-m", model, "--nbest", "1000"))
    assert len(found) == n_labels


def test_scores(capsys, folder, model):
    plain = run(capsys, "tag", "-m", model, folder / "test.tsv").split("\n")
    out = run(capsys, "tag", "-m", model, folder / "test.tsv", "--scores").split("\n")
    assert [line.rpartition("\t")[0] for line in out] == plain
    margins = [[float(line.rpartition("\t")[2]) for line in block.split("\n")]
               for block in "\n".join(out).rstrip("\n").split("\n\n")]
    found = blocks_of(run(capsys, "tag", "-m", model, folder / "test.tsv", "--nbest", "2"))
    for margin, [(_, best, _), (_, second, _)] in zip(margins, found, strict=True):
        assert min(margin) >= 0
        # The labelling that is second differs somewhere, and there the margin is the least.
        assert min(margin) == pytest.approx(best - second, abs=2e-4)


def test_scores_of_weights_whose_sums_overflow(capsys, folder, tmp_path):
    """RuntimeWarnings are errors in tests; a user would see one in front of the output."""
    path = tmp_path / "large.mm"
    run(capsys, "train", folder / "train.tsv", "-m", path, "--dtype", "float64", "-q")
    container = read_container(path)
    arrays = {
        name: np.full_like(array, 1e308) if array.dtype.kind == "f" else array
        for name, array in container.arrays.items()
    }
    write_container(path, container.kind, container.meta, arrays)
    out = run(capsys, "tag", "-m", path, folder / "test.tsv", "--scores")
    assert out.count("\n") == WIDE.count("\n")


def test_allowed_labellings_only(capsys, folder, tmp_path):
    model = tmp_path / "m.mm"
    run(capsys, "train", folder / "train.tsv", "-m", model, "--allowed", "iob2", "-C", "0.001",
        "--max-passes", "1", "-q")
    out = run(capsys, "tag", "-m", model, folder / "test.tsv", "--nbest", "20")
    for labellings in blocks_of(out):
        for _, _, rows in labellings:
            before = "O"
            for row in rows:
                label = row.rpartition("\t")[2]
                if label.startswith("I-"):
                    assert before[1:] == label[1:]
                before = label


def test_output_file_and_json(capsys, folder, model, tmp_path):
    plain = run(capsys, "tag", "-m", model, folder / "test.tsv")
    out = tmp_path / "out.tsv"
    told = json.loads(run(capsys, "tag", "-m", model, folder / "test.tsv", "-o", out, "--json"))
    assert out.read_text() == plain
    assert told["n_sequences"] == len(TEST)
    assert told["n_tokens"] == sum(map(len, TEST))
    assert told["tokens_per_second"] > 0
    assert "-o FILE" in refused(capsys, "tag", "-m", model, folder / "test.tsv", "--json")
    same = write(tmp_path / "same.tsv", WIDE)  # a file may be replaced by its own answer
    run(capsys, "tag", "-m", model, same, "-o", same)
    assert same.read_text() == plain


# --- other formats --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["crfsuite", "svmhmm"])
def test_items(capsys, tmp_path, kind):
    made = {"crfsuite": crfsuite, "svmhmm": svmhmm}[kind]
    model = tmp_path / "m.mm"
    data = write(tmp_path / "train", made(TRAIN))
    run(capsys, "train", data, "--format", kind, "-m", model, "-q")
    path = write(tmp_path / "test", made(TEST))
    out = run(capsys, "tag", "-m", model, path)
    labels = [block.split("\n") for block in out.rstrip("\n").split("\n\n")]
    assert [len(block) for block in labels] == [len(rows) for rows in TEST]
    right = [row[2] == label for rows, tags in zip(TEST, labels, strict=True)
             for row, label in zip(rows, tags, strict=True)]
    told = json.loads(run(capsys, "eval", "-m", model, path, "--json"))
    assert sum(right) / len(right) == pytest.approx(told["token_accuracy"])
    found = blocks_of(run(capsys, "tag", "-m", model, path, "--nbest", "2"))
    assert [best for (_, _, best), _ in found] == labels
    scored = run(capsys, "tag", "-m", model, path, "--scores").split("\n")
    assert [line.partition("\t")[0] for line in scored] == out.split("\n")
    message = refused(capsys, "tag", "-m", model, path, "--format", "conll")
    assert f"was trained on {kind} files" in message


def test_conllu(capsys, tmp_path):
    model = tmp_path / "m.mm"
    data = write(tmp_path / "train.conllu", conllu(TRAIN))
    run(capsys, "train", data, "--format", "conllu", "--columns", "form,upos,xpos", "-m", model,
        "-q")
    out = run(capsys, "tag", "-m", model, write(tmp_path / "test.conllu", conllu(TEST)))
    labels = itertools.chain.from_iterable(predicted(model))
    tagged = [[(word, tag, next(labels)) for word, tag, _ in rows] for rows in TEST]
    assert out == conllu(tagged)


def test_function(capsys, folder, tmp_path):
    code = write(tmp_path / "f.py", "def words(rows):\n    return [['w=' + r[0]] for r in rows]\n")
    model = tmp_path / "m.mm"
    run(capsys, "train", folder / "train.tsv", "-m", model, "--template", f"{code}:words", "-q")
    out = run(capsys, "tag", "-m", model, folder / "test.tsv", "--function", f"{code}:words")
    assert len(out.split("\n")) == len(WIDE.split("\n"))
    message = refused(capsys, "tag", "-m", model, folder / "test.tsv")
    assert f"{model}: " in message
    assert "function" in message
    message = refused(capsys, "tag", "-m", model, folder / "test.tsv", "--function", "words")
    assert "--function" in message
    code.write_text("def words(rows):\n    return [row[7] for row in rows]\n")
    for command in ("tag", "eval"):
        arguments = [command, "-m", model, folder / "test.tsv", "--function", f"{code}:words"]
        message = refused(capsys, *arguments)
        assert f"--function {code}:words, at {folder / 'test.tsv'}: IndexError: " in message


# --- as a process ---------------------------------------------------------------------------------


def read_until(stream, mark, seconds=20):
    """Read from a pipe until something has come."""
    data = b""
    while mark not in data:
        ready, _, _ = select.select([stream], [], [], seconds)
        assert ready, f"nothing more came after {data!r}"
        piece = os.read(stream.fileno(), 4096)
        assert piece, f"it ended after {data!r}"
        data += piece
    return data


def test_a_stream_is_answered_as_it_comes(model):
    with subprocess.Popen(
        [*COMMAND, "tag", "-m", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        try:
            labels = predicted(model)
            for rows, tags in zip(TEST[:3], labels, strict=False):
                process.stdin.write(text([rows]).encode() + b"\n")
                answer = read_until(process.stdout, b"\n\n")
                assert answer.decode() == with_labels([rows], [tags]) + "\n"
            process.stdin.write(b"dog\tNN\tX")
            process.stdin.close()
            assert process.stdout.read().startswith(b"dog\tNN\tX\t")
            assert process.wait(300) == 0
        finally:
            process.kill()


def test_a_reader_that_has_seen_enough(model, tmp_path):
    many = write(tmp_path / "many.tsv", text(sentences(20_000, seed=3)))
    with subprocess.Popen(
        [*COMMAND, "tag", "-m", model, many], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().count(b"\t") == 3
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(300) == 0


def test_ctrl_c(model):
    with subprocess.Popen(
        [*COMMAND, "tag", "-m", model],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    ) as process:
        process.stdin.write(b"dog\tNN\n\n")
        read_until(process.stdout, b"\n\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
        assert process.stderr.read() == b"maxmargin tag: error: interrupted\n"


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("chunk", [3, 40, 1 << 20], indirect=True)
def test_an_error_names_its_line(capsys, model, stdin, tmp_path):
    bad = WIDE + "\n\nlast\tline\n"
    number = len(bad.splitlines())
    path = write(tmp_path / "bad.tsv", bad)
    out = tmp_path / "out.tsv"
    message = refused(capsys, "tag", "-m", model, path, "-o", out)
    assert f"{path}: line {number}: found 2 columns" in message
    stdin(bad)
    message = refused(capsys, "tag", "-m", model, "-o", out)
    assert f"standard input: line {number}: found 2 columns" in message
    path.write_bytes(WIDE.encode() + b"\na\tb\t\xff\n")
    message = refused(capsys, "tag", "-m", model, path, "-o", out)
    assert f"{path}: line {number - 1}: " in message
    assert "UTF-8" in message
    assert not out.exists()


def damage(model, path, kind):
    data = bytearray(model.read_bytes())
    if kind == "truncated":
        del data[len(data) // 2 :]
    elif kind == "flipped":
        data[len(data) // 2] ^= 4
    elif kind == "newer":
        data[8] += 1
    elif kind == "empty":
        data.clear()
    elif kind == "text":
        data = WIDE.encode()
    elif kind == "directory":
        path.mkdir()
    if kind not in ("missing", "directory"):
        path.write_bytes(data)


DAMAGES = {
    "truncated": "cut short",
    "flipped": "damaged",
    "newer": "newer version",
    "empty": "the file is empty",
    "text": "not a maxmargin model",
    "directory": "is a directory",
    "missing": "no such file",
}


@pytest.mark.parametrize("command", ["tag", "eval"])
@pytest.mark.parametrize("kind", DAMAGES)
def test_bad_models(capsys, folder, tmp_path, command, kind):
    path = tmp_path / "bad.mm"
    damage(folder / "m.mm", path, kind)
    message = refused(capsys, command, "-m", path, folder / "test.tsv")
    assert DAMAGES[kind] in message
    assert f"{path}: " in message


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\tb\tc\td\n", "found 4 columns; expected 3"),
        ("a\n", "found 1 column; expected 3"),
        (b"a\tb\tc\n\xc3(\tb\tc\n", "line 2"),
        (b"\x00\xff\x80", "UTF-8"),
        (gzip.compress(WIDE.encode())[:50], "cut short"),
        (None, "no such file"),
        ("", None),
    ],
    ids=["wide", "narrow", "not UTF-8", "binary", "broken gzip", "missing", "empty"],
)
def test_bad_files(capsys, model, tmp_path, content, told):
    path, out = tmp_path / "in.tsv", tmp_path / "out.tsv"
    if content is not None:
        write(path, content)
    if told is None:
        run(capsys, "tag", "-m", model, path, "-o", out)
        assert out.read_bytes() == b""
        return
    message = refused(capsys, "tag", "-m", model, path, "-o", out)
    assert f"{path}: " in message
    assert told in message
    assert [p.name for p in tmp_path.iterdir()] == ([] if content is None else ["in.tsv"])


def test_bad_usage(capsys, folder, model, tmp_path):
    source = folder / "test.tsv"

    def error(*arguments):
        return refused(capsys, "tag", "-m", model, *arguments)

    assert f"{tmp_path}: is a directory" in error(tmp_path)
    assert f"{tmp_path}: is a directory" in error(source, "-o", tmp_path)
    assert f"{tmp_path}/no/x: no such file" in error(source, "-o", tmp_path / "no" / "x")
    assert "do not go together" in error(source, "--nbest", "2", "--scores")
    assert "--nbest" in error(source, "--nbest", "0")
    assert "--threads" in error(source, "--threads", "none")
    assert "crfsuite" in error(source, "--format", "crfsuite")
    assert "-m" in refused(capsys, "tag", source)
    assert not list(tmp_path.iterdir())
