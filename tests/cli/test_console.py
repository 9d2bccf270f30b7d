"""Standard streams that are closed, full, broken or not UTF-8; text that no terminal may get."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from cli_files import COMMAND, refused, run, sentences, text, write
from cli_processes import Commands, Ended
from maxmargin.cli import train
from maxmargin.cli.main import main
from maxmargin.io.container import read_container, write_container
from maxmargin.io.tagger_file import load_tagger

DATA = text(sentences(6))
UGLY = "\x1b[31m\u202e\x9bred"  # a terminal escape, a turn of direction, a C1 control
SHOWN = r"\x1b[31m\u202e\x9bred"


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    data = write(folder / "data.tsv", DATA)
    assert main(["train", str(data), "-m", str(folder / "m.mm"), "-q"]) == 0
    return folder


@pytest.fixture(scope="module")
def commands():
    with Commands() as process:
        yield process


@pytest.fixture
def folder(origin, tmp_path):
    for name in ("data.tsv", "m.mm"):
        shutil.copy(origin / name, tmp_path)
    return tmp_path


TRAIN = "train data.tsv -m new.mm --max-passes 2 --gap 0.9"
FULL = Path("/dev/full")


def without_progress(err):
    """Return what was written besides the lines that tell how far training is."""
    return b"".join(line for line in err.splitlines(True) if not line.startswith(b"pass "))


def one_error(ended, told):
    """Whether a command ended with one line that says something."""
    assert ended.code == 2, ended
    assert ended.out == b""
    err = ended.err.decode()
    assert err.count("\n") == 1
    assert "error: " in err
    assert told in err


# --- closed ---------------------------------------------------------------------------------------


def test_closed_input(commands, folder):
    lines = ["tag -m m.mm", TRAIN.replace("data.tsv", "-"), "eval -m m.mm -",
                "convert - out.crfsuite"]
    for line in lines:
        ended = commands.run(folder, line, closed=["stdin"])
        one_error(ended, "standard input is closed")
    assert not (folder / "new.mm").exists()


def test_closed_output_that_is_needed(commands, folder):
    lines = ["--help", "--version", "", "train --help", "info m.mm", "info m.mm --text",
                "info m.mm --template", "info m.mm --json", "eval -m m.mm data.tsv", "template",
                "template words", "tag -m m.mm data.tsv", "convert data.tsv - --to crfsuite",
                f"{TRAIN} --json"]
    for line in lines:
        ended = commands.run(folder, line, closed=["stdout"])
        one_error(ended, "standard output is closed")
    assert not (folder / "new.mm").exists()


@pytest.mark.parametrize("closed", [["stdout"], ["stderr"], ["stdin", "stdout", "stderr"]])
def test_what_goes_to_files_does_without_streams(commands, folder, closed):
    """And the files do not get the numbers of the streams, into which others may write."""
    lines = [TRAIN, "tag -m m.mm data.tsv -o out.tsv", "convert data.tsv out.crfsuite",
                "info m.mm --text out"]
    written = [folder / name for name in ("out.tsv", "out.crfsuite", "out")]
    assert {commands.run(folder, line).code for line in lines} == {0}
    there = [path.read_bytes() for path in written]
    for path in (*written, folder / "new.mm"):
        path.unlink()
    for line in lines:
        ended = commands.run(folder, line, closed=closed)
        assert (ended.code, without_progress(ended.err)) == (0, b"")
    assert [path.read_bytes() for path in written] == there
    load_tagger(folder / "new.mm")


def test_closed_error_stream(commands, folder):
    tag = "tag -m m.mm data.tsv"
    assert commands.run(folder, tag, closed=["stderr"]) == commands.run(folder, tag)
    for line in ("tag -m missing.mm data.tsv", "tag --nonsense"):
        assert commands.run(folder, line, closed=["stderr"]) == (2, b"", b"")
    assert commands.run(folder, tag, closed=["stdin", "stdout", "stderr"]) == (2, b"", b"")


def test_closed_streams_of_a_real_process(folder):
    def shell(arguments, redirect):
        words = ["sh", "-c", f'exec "$@" {redirect}', "sh", *COMMAND, *arguments.split()]
        return subprocess.run(words, cwd=folder, capture_output=True, check=False)

    for arguments, redirect in (("tag -m m.mm", "<&-"), ("info m.mm", ">&-")):
        done = shell(arguments, redirect)
        one_error(Ended(done.returncode, done.stdout, done.stderr), "is closed")
    done = shell("info missing.mm", "2>&-")
    assert (done.returncode, done.stdout) == (2, b"")


# --- full, broken ---------------------------------------------------------------------------------

PRINTING = ["--help", "--version", "info m.mm", "info m.mm --text", "info m.mm --json",
            "eval -m m.mm data.tsv", "template words", "tag -m m.mm data.tsv",
            "convert data.tsv - --to conll"]


@pytest.mark.skipif(not FULL.is_char_device(), reason="no device that is full")
def test_full_output(commands, folder):
    for line in PRINTING:
        ended = commands.run(folder, line, stdout=str(FULL))
        one_error(ended, "error: standard output: no space left on device\n")


@pytest.mark.skipif(not FULL.is_char_device(), reason="no device that is full")
def test_full_files_are_named(commands, folder):
    lines = ["tag -m m.mm data.tsv -o /dev/full", "info m.mm --text /dev/full",
                "convert data.tsv /dev/full --to crfsuite"]
    for line in lines:
        ended = commands.run(folder, line)
        one_error(ended, "error: /dev/full: no space left on device\n")
    assert commands.run(folder, "info missing", stderr=str(FULL)).code == 2


def test_a_reader_that_is_gone(commands, folder):
    for line in [*PRINTING, f"{TRAIN} --json"]:
        ended = commands.run(folder, line, stdout="broken")
        assert (ended.code, without_progress(ended.err)) == (0, b"")


# --- other encodings ------------------------------------------------------------------------------


def test_an_ascii_terminal(commands, tmp_path):
    data = write(tmp_path / "data.tsv", "żółw\tŻ\n日本\t名\n\n" * 4)
    lines = ["path --help", "train data.tsv -m ż.mm -q", "eval -m ż.mm data.tsv --confusion",
                "info ż.mm"]
    for line in lines:
        ended = commands.run(tmp_path, line, encoding="ascii")
        assert (ended.code, ended.err) == (0, b"")
        assert ended.out.isascii()
    assert rb"\u540d" in ended.out
    tagged = commands.run(tmp_path, "tag -m ż.mm data.tsv", encoding="ascii")
    wrong = commands.run(tmp_path, f"info {'ż' * 100}.mm", encoding="ascii")
    assert wrong.code == 2
    assert wrong.err.isascii()
    assert len(wrong.err) <= 501
    # Data is UTF-8 whatever the terminal is.
    assert (tagged.code, tagged.err) == (0, b"")
    rows = data.read_text().split("\n")[:-1]
    assert tagged.out.decode() == "".join(f"{x}\t{x[-1]}\n" if x else "\n" for x in rows)


# --- text from outside ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ugly(tmp_path_factory):
    """A model all of whose names would move the cursor."""
    folder = tmp_path_factory.mktemp("ugly")
    lines = f"{UGLY}w\tB-{UGLY}\nb{UGLY}\tI-{UGLY}\nc\tO\n\n" * 4
    data = write(folder / f"data{UGLY}.tsv", lines)
    template = write(folder / f"t{UGLY}", f"# {UGLY}\nU{UGLY}:%x[0,0]\nB{UGLY}:%x[0,0]\nB\n")
    model = folder / f"m{UGLY}.mm"
    assert main(["train", str(data), "-m", str(model), "--template", str(template), "-q"]) == 0
    return data, model, template


def assert_safe(printed):
    assert all(line.isprintable() for line in printed.split("\n"))


def test_reports_are_safe(ugly, capsys):
    data, model, _ = ugly
    for arguments in (
        ["info", model], ["info", model, "--selected", "--transitions"], ["info", model, "--text"],
        ["info", model, "--json"], ["eval", "-m", model, data, "--confusion"],
        ["eval", "-m", model, data, "--json", "--confusion"],
        ["train", data, "-m", model.with_name(f"again{UGLY}.mm"), "--valid", data],
        ["path", data, "--valid", data, "--ratios", "0.5", "-m", model.with_name(f"p{UGLY}.mm")],
        ["convert", data, model.with_name(f"o{UGLY}.crfsuite"), "--template", "words"],
    ):
        out = run(capsys, *arguments)
        assert_safe(out.replace("\t", " ") if "--text" in arguments else out)
        if "--json" not in arguments:
            assert SHOWN in out


def test_what_a_model_says_of_itself_is_safe_and_short(ugly, capsys, tmp_path):
    _, good, _ = ugly
    container = read_container(good, "tagger")
    meta = json.loads(json.dumps(container.meta))
    meta["training"][f"key{UGLY}"] = UGLY * 500
    meta["params"]["x" * 5_000] = [UGLY] * 100
    meta["encoder"]["source"] = UGLY * 10_000
    model = tmp_path / "m.mm"
    write_container(model, "tagger", meta, container.arrays)
    out = run(capsys, "info", model)
    assert_safe(out)
    assert f"key{SHOWN}:" in out
    assert max(map(len, out.split("\n"))) <= 2000
    write_container(model, UGLY * 10_000, meta, container.arrays)
    for command in ("info", "tag -m"):
        err = refused(capsys, *command.split(), model)
        assert_safe(err)
        assert len(err) <= 501


def test_notes_are_safe(ugly, capsys):
    data, _, template = ugly
    arguments = ["convert", data, data.with_name("o.crfsuite"), "--template", template]
    assert main([str(a) for a in arguments]) == 0
    out, err = capsys.readouterr()
    assert "are left out" in err
    assert_safe(out + err)


def test_a_template_is_safe_on_a_terminal_and_exact_elsewhere(ugly, capsysbinary, monkeypatch):
    _, model, template = ugly
    assert main(["info", str(model), "--template"]) == 0
    assert capsysbinary.readouterr().out == template.read_bytes()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["info", str(model), "--template"]) == 0
    out = capsysbinary.readouterr().out.decode()
    assert_safe(out)
    assert f"U{SHOWN}:%x[0,0]" in out


def test_tagged_data_is_exact(ugly, capsysbinary):
    data, model, _ = ugly
    assert main(["tag", "-m", str(model), str(data)]) == 0
    out = capsysbinary.readouterr().out.decode()
    for line, tagged in zip(data.read_text().split("\n"), out.split("\n"), strict=True):
        assert tagged == (f"{line}\t{line.partition(chr(9))[2]}" if line else "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", f"missing{UGLY}"], ["tag", "-m", "{m}", f"missing{UGLY}"],
        ["info", "{m}", "--label", UGLY * 2], ["train", "{d}", "-m", f"no{UGLY}/x.mm"],
        ["train", "{d}", "-m", "x.mm", "--template", UGLY], [f"--{UGLY}"], [f"tag{UGLY}"],
        ["train", "{d}", f"--{UGLY}"], ["train", "{d}", "-m", "x", "-C", UGLY],
        ["convert", "{d}", f"out.{UGLY}"], ["convert", "{d}", "x.svm", "--label-column", "9"],
        ["eval", "{d}", "--format", "svmhmm"], ["eval", "{d}", "--format", "crfsuite"],
        ["eval", "{d}", "--format", "conllu"],
        ["train", "{d}", "-m", "x.mm", "--solver", UGLY], ["train", "{d}", "--grid", UGLY],
    ],
)
def test_errors_are_safe(ugly, arguments, capsys, monkeypatch, tmp_path):
    data, model, _ = ugly
    monkeypatch.chdir(tmp_path)
    assert main([a.format(m=model, d=data) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert_safe(err)


def print_warning(*about):
    """Print as `warnings.showwarning` does."""
    message, category, filename, line_number = about[:4]
    sys.stderr.write(warnings.formatwarning(message, category, filename, line_number))


def test_warnings_are_one_safe_line(monkeypatch, capsys):
    def warn(options):
        warnings.warn(f"a{UGLY}\nb" + "x" * 1000, UserWarning, stacklevel=1)
        return 0, {}

    monkeypatch.setattr(train, "run", warn)
    before = warnings.formatwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # As outside of pytest, which keeps warnings for itself.
        monkeypatch.setattr(warnings, "showwarning", print_warning)
        assert main(["train", "x"]) == 0
    err = capsys.readouterr().err
    assert err.startswith(f"maxmargin train: warning: a{SHOWN} bxx")
    assert err.count("\n") == 1
    assert len(err) <= 501
    assert_safe(err)
    assert warnings.formatwarning is before


def test_tracebacks_are_safe(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DEBUG", "1")
    assert main(["eval", str(tmp_path / UGLY)]) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert_safe(err)


# --- length ---------------------------------------------------------------------------------------

LONG = "x" * 3_000_000


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        (f"{LONG}\n", ["eval", "{f}", "--format", "svmhmm"]),
        (f"A\tw:{LONG}\n", ["eval", "{f}", "--format", "crfsuite"]),
        (f"@{LONG}\n", ["train", "{f}", "-m", "m", "--format", "crfsuite"]),
        ("\t".join([LONG, *"_________"]), ["eval", "{f}", "--format", "conllu"]),
        ("\t".join(["1", *"abcd", LONG, *"____"]),
         ["train", "{f}", "-m", "m", "--format", "conllu", "--columns", "form,feats.Case"]),
        (f"U:%{LONG}[0,0]\n", ["train", "{d}", "-m", "m", "--template", "{f}"]),
        (f"U:%x[{LONG},0]\n", ["train", "{d}", "-m", "m", "--template", "{f}"]),
        (f"{LONG}\n", ["train", "{d}", "-m", "m", "--template", "{f}"]),
        (f"a\t@{LONG}\n", ["convert", "{f}", "o.crfsuite"]),
        (f"a\t#{LONG}\n", ["convert", "{f}", "o.svm"]),
        (f"def f(rows): raise ValueError({LONG!r})", ["train", "{d}", "-m", "m", "--template",
                                                     "{f}.py:f"]),
    ],
)
def test_messages_are_short(folder, monkeypatch, capsys, content, arguments):
    monkeypatch.chdir(folder)
    Path("long.py").write_text(content)
    Path("long").write_text(content)
    given = [a.format(f="long", d="data.tsv") for a in arguments]
    assert len(refused(capsys, *given)) <= 501


def test_options_are_short(capsys):
    for arguments in (["train", "x", "-C", LONG], [LONG], ["train", f"--{LONG}"], ["info", LONG]):
        assert main(arguments) == 2
        err = capsys.readouterr().err
        assert len(err) <= 501
        assert err.count("\n") == 1


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["_parser", "import_module"])
def test_ctrl_c_before_the_work(monkeypatch, capsys, where):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"maxmargin.cli.main.{where}", interrupted)
    assert main(["train", "x", "-m", "y"]) == 130
    assert capsys.readouterr() == ("", "maxmargin train: error: interrupted\n")


def test_ctrl_c_while_reading(folder):
    with subprocess.Popen(
        [*COMMAND, "train", "-", "-m", "new.mm"], cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:
        # It has begun to read as soon as the pipe, which holds less, takes all of this.
        running.stdin.write(b"a\tA\n" * 50_000)
        running.stdin.flush()
        for _ in range(20):  # Python sees a signal late that comes just before it waits for more
            running.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(2)
                break
        assert running.returncode == 130
        assert running.stdout.read() == b""
        assert running.stderr.read() == b"maxmargin train: error: interrupted\n"
    assert not (folder / "new.mm").exists()


