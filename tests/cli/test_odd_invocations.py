"""Whatever the command line is called with: an exit code that says whose fault it was, one line."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from cli_files import conllu, crfsuite, quiet, sentences, text, write
from maxmargin.cli.main import main

HUGE = str(10**30)
DIGITS = "1" * 5000  # more than Python turns into an int
BYTES = b"na\xffme".decode("utf-8", "surrogateescape")

#: Names that are no files that can be read or written, or are so in odd ways.
PLACES = {
    "directory": "folder",
    "missing": "missing",
    "below-a-file": "data.tsv/x",
    "circle": "circle",
    "too-long": "x" * 300,
    "nul": "a\0b",
    "empty": "",
    "bytes": BYTES,
    "escape": "\x1b[31m",
    "no-directory": "no/such/x",
    "secret": "secret",
}
#: Commands with a hole in them.
HOLES = [
    "train {} -m new.mm -q",
    "train data.tsv -q -m {}",
    "train data.tsv -q -m new.mm --template {}",
    "train data.tsv -q -m new.mm --template {}:f",
    "train data.tsv -q -m new.mm --template {}.py:f",
    "train data.tsv -q -m new.mm --valid {}",
    "train data.tsv -q -m new.mm --checkpoint {}",
    "train data.tsv -q -m new.mm --checkpoint {} --resume",
    "train data.tsv -q -m new.mm --comments {}",
    "train data.conllu -q -m new.mm --format conllu --columns {}",
    "tag -m {} data.tsv",
    "tag -m m.mm {}",
    "tag -m m.mm data.tsv -o {}",
    "tag -m m.mm data.tsv --function {}",
    "eval {}",
    "eval -m {} data.tsv",
    "eval -m m.mm {}",
    "info {}",
    "info m.mm --text {}",
    "info m.mm --label {}",
    "convert {} new.crfsuite",
    "convert data.tsv {}",
    "convert data.tsv {} --to crfsuite",
    "convert data.items {} --from crfsuite --to svmhmm",
    "convert data.tsv new.svm --features {}",
    "convert data.tsv new.svm --features names --numeric-labels --labels {}",
    "path {} --valid data.tsv -q",
    "path data.tsv --valid {} -q",
    "path data.tsv --valid data.tsv --ratios 0.5 --gap 0.5 -q -m {}",
    "path data.tsv --valid data.tsv --ratios 0.5 --gap 0.5 -q --plot {}",
    "template {}",
    "{}",
    "{} {} {}",
]
NUMBERS = ["nan", "inf", "-1", "0", "1e400", HUGE, DIGITS, "", "x", "1e308", "0x10", "1.5"]
COUNTED = [
    *(f"train data.tsv -q -m new.mm --gap 0.5 {flag}={{}}" for flag in (
        "-C", "--gap", "--threads", "--seed", "--max-passes", "--time-limit", "--min-count",
        "--hash-bits", "--cv", "--label-column", "--l1-ratio", "--l1-ball", "--grid", "--solver",
    )),
    "train data.tsv -q -m new.mm -C{}",
    "train data.tsv -q -m new.mm --valid data.tsv --grid=C={}",
    "path data.tsv --valid data.tsv -q --gap 0.5 --ratios={}",
    "path data.tsv --valid data.tsv -q --gap 0.5 --ratios 0.5 --Cs={}",
    "path data.tsv --valid data.tsv -q --gap 0.5 --ratios 0.5 --max-loss={}",
    "tag -m m.mm data.tsv --nbest={}",
    "tag -m m.mm data.tsv --threads={}",
    "info m.mm --top={}",
    "demo --no-picture --train=30 --test=3 --seed={}",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that the commands read; commands run in it."""
    path = tmp_path_factory.mktemp("odd")
    write(path / "data.tsv", text(sentences(4)))
    write(path / "data.items", crfsuite(sentences(4)))
    write(path / "data.conllu", conllu(sentences(4)))
    (path / "folder").mkdir()
    (path / "circle").symlink_to("circle")
    write(path / "secret", "a\tA\n").chmod(0)  # which stops all but root
    with contextlib.chdir(path):
        assert main(["train", "data.tsv", "-m", "m.mm", "-q"]) == 0
        yield path


@pytest.fixture
def odd(folder, capsysbinary):
    """Run a command; check how it ends."""

    def call(words):
        code = main(words)
        out, err = (stream.decode("utf-8") for stream in capsysbinary.readouterr())
        err = quiet(err)
        about = (words, code, err[:600])
        assert code in (0, 2), about
        assert "fault of maxmargin" not in err, about
        assert "incompatible function" not in err, about  # what nanobind says of wrong types
        assert "Traceback" not in err, about
        if code == 0:
            assert err == "", about
        else:
            assert out == "", about
            assert err.count("\n") == 1, about
            assert err.startswith("maxmargin"), about
            assert len(err) <= 501, about
            assert err[:-1].isprintable(), about
        left = [name for name in folder.iterdir() if name.suffix in (".part", ".tmp")]
        assert left == [], about
        return code

    return call


def filled(command, value):
    return [word.replace("{}", value) for word in command.split()]


@pytest.mark.parametrize("place", PLACES)
def test_places(odd, place):
    for command in HOLES:
        odd(filled(command, PLACES[place]))


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:12] or "empty")
def test_numbers(odd, number, monkeypatch):
    # Numbers out of all reason do not train to the end: the least number of passes will do.
    monkeypatch.setattr("maxmargin.solvers.limits.MOST_WORK", 0.0)
    for command in COUNTED:
        odd(filled(command, number))


def test_names_that_are_not_utf8(odd, folder):
    """What only looks odd works."""
    data = f"{BYTES}.tsv"
    write(folder / data, text(sentences(4)))
    for words in (
        ["train", data, "-m", f"{BYTES}.mm", "--valid", data],
        ["info", f"{BYTES}.mm"],
        ["eval", "-m", f"{BYTES}.mm", data],
        ["tag", "-m", f"{BYTES}.mm", data, "-o", f"{BYTES}.tagged"],
        ["convert", data, f"{BYTES}.crfsuite"],
        ["info", f"{BYTES}.mm", "--json"],
    ):
        assert odd(words) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes that have a name")
def test_pipes_that_have_a_name(odd, folder):
    pipe = folder / "pipe"
    os.mkfifo(pipe)

    def feed(content):
        with pipe.open("wb") as file:
            file.write(content)

    for content, words, expected in (
        ((folder / "data.tsv").read_bytes(), ["eval", "-m", "m.mm", "pipe"], 0),
        (b"\x1b[31m\n", ["train", "pipe", "-m", "new.mm"], 2),
    ):
        writer = threading.Thread(target=feed, args=(content,), daemon=True)
        writer.start()
        assert odd(words) == expected
        writer.join(20)
        assert not writer.is_alive()
    # Nothing takes the pipe's place, and nobody waits for somebody to write a model into it.
    for words in ("train data.tsv -m new.mm --checkpoint pipe", "train data.tsv -m pipe",
                  "info pipe", "tag -m pipe data.tsv"):
        assert odd(words.split()) == 2
    assert pipe.is_fifo()
    pipe.unlink()


def test_a_file_that_disappears(odd, folder, monkeypatch):
    from maxmargin.cli import training_data

    gone = write(folder / "gone.tsv", text(sentences(3)))
    learn = training_data.make_encoder

    def slowly(*arguments, **options):
        gone.unlink()
        return learn(*arguments, **options)

    monkeypatch.setattr(training_data, "make_encoder", slowly)
    words = ["train", "data.tsv", "-m", "new.mm", "-q", "--valid", "gone.tsv"]
    assert odd(words) == 2


def test_data_that_cannot_be_learned_from(odd, folder):
    write(folder / "large.items", "A\tw:1e30\n\nB\tw:-1e30\n\n")
    for words in (["train", "large.items", "--format", "crfsuite", "-m", "new.mm"],):
        odd(words)


def test_ctrl_c_is_told_in_one_line(folder, monkeypatch, capsys):
    from maxmargin.cli import train

    def interrupted(options):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(train, "check_options", interrupted)
    assert main(["train", "data.tsv", "-m", "new.mm"]) == 130
    assert capsys.readouterr() == ("", "maxmargin train: error: interrupted\n")
