"""The command `maxmargin` itself: help, version, usage errors, how failures are told."""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys

import pytest

import maxmargin
from cli_files import COMMAND, refused, run, sentences, text, write
from maxmargin.cli import train
from maxmargin.cli.main import COMMANDS, main
from maxmargin.cli.options import size
from maxmargin.features.builtin_templates import BUILTIN_TEMPLATES


def usage_error(capsys, *arguments):
    """Run what cannot be parsed; return the one line on standard error."""
    assert main([*arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_help(capsys):
    out = run(capsys, "--help")
    assert out.startswith("usage: maxmargin")
    for name, (_, summary) in COMMANDS.items():
        assert f"    {name} " in out
        assert summary in out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(capsys, command):
    out = run(capsys, command, "--help")
    assert out.startswith(f"usage: maxmargin {command} ")
    assert "--json" in out


def test_help_needs_no_library():
    script = (
        "import sys; from maxmargin.cli.main import main; code = main(['train', '--help']);"
        "sys.exit(code or 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version(capsys):
    assert run(capsys, "--version") == f"maxmargin {maxmargin.__version__}\n"


def test_no_arguments(capsys):
    assert run(capsys) == run(capsys, "--help")


def test_usage_errors(capsys):
    err = usage_error(capsys, "tagg")
    assert err.startswith("maxmargin: error: ")
    assert "'tagg'" in err
    assert "'tag'" in err
    assert usage_error(capsys, "--nonsense").startswith("maxmargin: error: ")
    usage_error(capsys, "two\nlines")


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option_of_a_command(capsys, command):
    needed = {"train": ["t"], "tag": ["-m", "m"], "eval": ["t"], "info": ["m"]}
    needed["predict"], needed["path"] = ["-m", "m"], ["t", "--valid", "v"]
    needed["encode"] = ["t", "-o", "e"]
    needed["constraints"], needed["suggest"] = ["t"], ["-m", "m", "t"]
    needed["calibrate"] = ["-m", "m", "dev"]
    arguments = [command, *needed.get(command, ["a", "b"] if command == "convert" else [])]
    err = usage_error(capsys, *arguments, "--nonsense=two\nlines")
    assert err.startswith(f"maxmargin {command}: error: ")
    assert "--nonsense" in err
    assert f"see maxmargin {command} --help" in err


@pytest.mark.parametrize("command", ["train", "tag", "eval", "info", "convert"])
def test_missing_argument(capsys, command):
    assert usage_error(capsys, command).startswith(f"maxmargin {command}: error: ")


def test_as_a_process():
    done = subprocess.run([*COMMAND, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"maxmargin {maxmargin.__version__}\n"
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["train", "path", "tag", "eval", "convert"])
def test_gzip_bombs(monkeypatch, capsys, tmp_path, command):
    from maxmargin.io import compression as inflate_module

    data = write(tmp_path / "train.tsv", text(sentences()))
    model = tmp_path / "m.mm"
    assert main(["train", str(data), "-m", str(model), "-q"]) == 0
    monkeypatch.setattr(inflate_module, "LEAST_INFLATED", 1000)
    monkeypatch.setattr(inflate_module, "MOST_EXPANSION", 2)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(data.read_bytes() * 2))
    rest = {
        "train": ["-m", tmp_path / "n.mm"],
        "path": ["-m", tmp_path / "n.mm", "--valid", data],
        "tag": ["-m", model],
        "eval": ["-m", model],
        "convert": [tmp_path / "out.tsv"],
    }[command]
    capsys.readouterr()
    message = refused(capsys, command, bomb, *rest)
    assert f"{bomb}: the gzip stream" in message
    assert "--max-inflated SIZE" in message
    assert main([command, str(bomb), *map(str, rest), "--max-inflated", "1M"]) == 0


@pytest.mark.parametrize(
    ("given", "value"),
    [("0", 0), ("123", 123), ("5k", 5000), ("5K", 5000), ("7MB", 7 * 10**6), ("20G", 2 * 10**10)],
)
def test_sizes(given, value):
    assert size(given) == value


@pytest.mark.parametrize("given", ["", "M", "-1", "1.5G", "1x", "1GG", "1e9", "٣", "9" * 30])
def test_bad_sizes(given):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size"):
        size(given)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (MemoryError(), 2, "out of memory"),
        (MemoryError("std::bad_alloc"), 2, "out of memory"),
        (MemoryError("9 GB are needed"), 2, "9 GB are needed"),
        (OSError(28, "No space left on device", "x.mm"), 2, "x.mm: no space left on device"),
        (OSError("no file at all"), 2, "no file at all"),
        (ValueError("two\nlines"), 2, "two lines"),
        (TypeError("a type"), 2, "a type"),
        (FloatingPointError("not finite"), 2, "not finite"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (RuntimeError("a bug"), 1, "a fault of maxmargin, please report it: RuntimeError: a bug"),
    ],
)
def test_failures_are_one_line(monkeypatch, capsys, error, code, told):
    def fail(options):
        raise error

    monkeypatch.delenv("MAXMARGIN_DEBUG", raising=False)
    monkeypatch.setattr(train, "run", fail)
    assert main(["train", "x", "-m", "y"]) == code
    assert capsys.readouterr() == ("", f"maxmargin train: error: {told}\n")


def test_tracebacks_for_those_who_want_them(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DEBUG", "1")
    assert main(["eval", str(tmp_path / "missing")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("maxmargin eval: error: ")


@pytest.mark.parametrize("name", BUILTIN_TEMPLATES)
def test_templates_can_be_edited_and_used(capsys, tmp_path, name):
    """What `template` prints is a file that `train` takes, and it says the same."""
    data = write(tmp_path / "train.tsv", text(sentences()))
    printed = run(capsys, "template", name)
    assert printed == BUILTIN_TEMPLATES[name]
    models = [tmp_path / "a.mm", tmp_path / "b.mm"]
    for model, template in zip(models, [name, write(tmp_path / "t", printed)], strict=True):
        run(capsys, "train", data, "-m", model, "--template", template, "-q")
    assert run(capsys, "tag", "-m", models[0], data) == run(capsys, "tag", "-m", models[1], data)


def test_templates_are_listed(capsys):
    assert run(capsys, "template").split() == sorted(BUILTIN_TEMPLATES)
    assert "invalid choice: 'wrods'" in refused(capsys, "template", "wrods")
