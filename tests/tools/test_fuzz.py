"""The fuzzer: inputs are known by their number, files are signed, and findings are found."""

from __future__ import annotations

import io
import os
import random
import resource
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import fuzz
from fuzzing import attempt as attempts
from fuzzing import pool
from fuzzing.arrays import mutate_array
from fuzzing.attempt import Finding, Outcome, judge
from fuzzing.checkpoint_file import Checkpoint, mutate_checkpoint
from fuzzing.kinds import KINDS, Input, Seeds, make_input
from fuzzing.model_file import Model, mutate_model
from fuzzing.pool import Batch, run_batches
from fuzzing.seeds import write_seeds
from fuzzing.text import MAX_BYTES, mutate_text
from fuzzing.trees import mutate_tree
from maxmargin.io.container import read_container

INPUTS = 30  # of each kind in the smoke run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz")
    (path / "seeds").mkdir()
    write_seeds(path / "seeds")
    return path


@pytest.fixture(scope="module")
def seeds(folder):
    return Seeds(folder / "seeds")


# --- mutations ---


@pytest.mark.parametrize("kind", KINDS)
def test_an_input_is_known_by_its_number(seeds, kind):
    first = [make_input(kind, n, 0, seeds) for n in range(40)]
    assert [make_input(kind, n, 0, seeds) for n in range(40)] == first
    assert [make_input(kind, n, 1, seeds) for n in range(40)] != first
    assert len({given.data for given in first}) > 30


def test_seeds_are_the_same_every_time(folder, tmp_path):
    write_seeds(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(path.name for path in (folder / "seeds").iterdir())
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / "seeds" / name).read_bytes(), name


def test_models_are_signed(seeds, tmp_path):
    """What is taken apart and put together again is the same file, so is all but what changed."""
    names = seeds.ending(".mm")
    assert len(names) > 5
    path = tmp_path / "model.mm"
    for name in names:
        model = Model(seeds[name])
        assert model.signed() == seeds[name]
        model.meta["more"] = ["of", {"anything": 1}]
        key, array = model.arrays[0]
        model.arrays[0] = (key, np.append(array, array))
        path.write_bytes(model.signed())
        container = read_container(path)  # which checks every checksum
        assert container.meta == model.meta
        np.testing.assert_array_equal(container.arrays[key], model.arrays[0][1])


def test_most_mutated_models_have_right_checksums(seeds, tmp_path):
    path = tmp_path / "model.mm"
    others = [seeds[name] for name in seeds.ending(".mm")]
    outcomes = Counter()
    for n in range(300):
        path.write_bytes(mutate_model(random.Random(n), others[n % len(others)], others))
        try:
            read_container(path)
            outcomes["read"] += 1
        except (ValueError, OSError) as error:
            outcomes["checksum" if "match its checksum" in str(error) else "other"] += 1
    assert outcomes["read"] > 200
    assert 0 < outcomes["checksum"] < 30
    assert outcomes["other"] > 5


def test_most_mutated_checkpoints_are_sound_zip_files(seeds):
    others = [seeds[name] for name in seeds.ending(".npz")]
    assert len(others) > 5
    sound = 0
    for n in range(200):
        data = mutate_checkpoint(random.Random(n), others[n % len(others)], others)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                sound += archive.testzip() is None
        except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError):
            pass
    assert 170 < sound < 200
    whole = Checkpoint(others[0])
    again = Checkpoint(whole.signed())
    assert again.arrays.keys() == whole.arrays.keys()
    np.testing.assert_equal(again.about, whole.about)


def test_texts_stay_small_and_change():
    data = b"a\tb\tO\nc\td\tO\n\ne\tf\tX\n"
    mutated = [mutate_text(random.Random(n), data, [data], [b"w"]) for n in range(500)]
    assert max(map(len, mutated)) <= MAX_BYTES + 100
    assert sum(m != data for m in mutated) > 450
    assert any(m.startswith(b"\x1f\x8b") for m in mutated)


def test_trees_and_arrays_change():
    changed = Counter()
    for n in range(200):
        rng = random.Random(n)
        tree = {"a": [1, 2.5, "x"], "b": {"c": None, "d": True}}
        before = repr(tree)
        mutate_tree(rng, tree)
        changed["tree"] += repr(tree) != before
        for array in (np.arange(6), np.ones((2, 3), np.float32), np.zeros(0, np.uint8)):
            mutated = mutate_array(rng, array)
            assert mutated.size <= 2 * array.size + 2
            changed[array.dtype] += not np.array_equal(mutated, array, equal_nan=True)
    assert min(changed["tree"], changed[np.dtype(int)], changed[np.dtype(np.float32)]) > 120


# --- judging ---


@pytest.mark.parametrize(
    ("outcome", "left", "what"),
    [
        (Outcome(0, "fine", ""), {"out.mm"}, None),
        (Outcome(2, "", "maxmargin eval: error: bad\n"), set(), None),
        (Outcome(1, "", "maxmargin eval: error: a fault\n"), set(), "exit 1"),
        (Outcome(130, "", "maxmargin eval: error: a fault\n"), set(), "exit 130"),
        (Outcome(2, "", "bad\n"), set(), "exit 2 without one line that says why"),
        (Outcome(2, "", "maxmargin eval: error: " + "x" * 500), set(), "long message"),
        (Outcome(2, "", "maxmargin eval: error: bad\n"), {"x.part"}, "files left behind"),
        (Outcome(2, "", "maxmargin eval: error: out of memory\n"), set(), "memory"),
        (Outcome(2, "", "maxmargin eval: error: \x1b[31m\n"), set(), "control character"),
        (Outcome(0, "label \u202e", ""), set(), "control character"),
        (Outcome(0, "", "", ("RuntimeWarning: overflow",)), set(), "warning"),
    ],
)
def test_what_is_a_finding(outcome, left, what):
    found = judge(["eval", "x"], outcome, left)
    assert [finding.what for finding in found] == ([] if what is None else [what])


def test_only_new_files_are_left_behind(tmp_path, monkeypatch):
    """A command that fails is not blamed for what the one before it wrote."""

    def run(command):
        (tmp_path / command[0]).touch()
        return Outcome(2 * (command[0] == "second"), "", "maxmargin x: error: bad\n")

    monkeypatch.setattr(attempts, "_run", run)
    monkeypatch.chdir(tmp_path)
    codes, findings = attempts.attempt(Input("file", b"", [["first"], ["second"], ["third"]]))
    assert codes == [0, 2]
    assert findings == [Finding("files left behind", "second")]
    assert list(tmp_path.iterdir()) == []


def test_data_that_is_written_may_hold_anything():
    assert judge(["tag", "x", "-m", "m"], Outcome(0, "\x1b", ""), set()) == []


# --- worker processes ---


def outcome_of_worker(folder, seeds, monkeypatch, behave, timeout=120.0):
    """Run inputs 0 to 4; `behave` is called with their numbers."""

    def make(kind, number, seed, seeds):
        return Input("file", str(number).encode(), [["number", str(number)]])

    def run(command):
        behave(int(command[1]))
        return Outcome(0, "", "")

    monkeypatch.setattr(pool, "make_input", make)
    monkeypatch.setattr(attempts, "_run", run)
    batches = [Batch("column", 0, 2), Batch("column", 2, 5)]
    results = run_batches(
        batches, seed=0, seeds=seeds, folder=folder, jobs=2, timeout=timeout
    )
    assert sorted(path.name for path in folder.iterdir()) == ["seeds"]
    return results["column"]


def test_a_signal_is_laid_to_its_input(folder, seeds, monkeypatch):
    def behave(number):
        if number == 3:
            os.kill(os.getpid(), signal.SIGSEGV)

    result = outcome_of_worker(folder, seeds, monkeypatch, behave)
    assert [(n, f.what) for n, f in result.findings] == [(3, "signal SIGSEGV")]
    assert "behave" in result.findings[0][1].detail
    assert result.inputs == 5
    assert result.codes == {0: 4}


def test_what_takes_too_long_is_ended(folder, seeds, monkeypatch):
    def behave(number):
        if number == 1:
            time.sleep(600)

    result = outcome_of_worker(folder, seeds, monkeypatch, behave, timeout=5.0)
    assert [(n, f.what) for n, f in result.findings] == [(1, "timeout")]
    assert result.inputs == 5


def test_a_worker_that_ends(folder, seeds, monkeypatch):
    def behave(number):
        if number == 2:
            os._exit(3)

    result = outcome_of_worker(folder, seeds, monkeypatch, behave)
    assert [(n, f.what) for n, f in result.findings] == [(2, "the worker ended with 3")]
    assert result.inputs == 5


def test_too_much_memory_is_found_once(folder, seeds, monkeypatch):
    """The peak of a process never falls, so that the inputs after it need another process."""
    # A forked process begins with the present size of this one, whose peak may be far above it.
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    limit = pages * resource.getpagesize() + (64 << 20)
    monkeypatch.setattr(attempts, "MAX_RSS", limit)
    monkeypatch.setattr(pool, "MAX_RSS", limit)

    def behave(number):
        if number == 3:
            np.ones(256 << 17)  # 256 MB

    result = outcome_of_worker(folder, seeds, monkeypatch, behave)
    assert [(n, f.what) for n, f in result.findings] == [(3, "memory")]
    assert result.inputs == 5


# --- all of it ---


def test_the_command():
    """A run of some dozens of inputs of each kind, which must do no harm."""
    command = [sys.executable, fuzz.__file__, "--count", str(INPUTS), "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == list(KINDS)
    assert all(f"{INPUTS} inputs" in line for line in lines[:-1])
    assert lines[-1] == "no findings"


def test_one_input_again(capsys, tmp_path, seeds):
    path = tmp_path / "input"
    one = ["--kind", "conllu", "--only", "17"]
    assert fuzz.main([*one, "--write", str(path)]) == 0
    given = make_input("conllu", 17, 0, seeds)
    assert path.read_bytes() == given.data
    assert capsys.readouterr().out == f"maxmargin {' '.join(given.commands[0])}\n"
    assert fuzz.main(one) == 0
    assert "conllu: 1 inputs" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        fuzz.main(["--only", "3"])
    assert "needs --kind" in capsys.readouterr().err


def test_findings_are_told_and_counted(capsys, monkeypatch, seeds):
    def behave(command):
        return Outcome(1, "", f"error: at {len(command)}\n")

    monkeypatch.setattr(attempts, "_run", behave)
    assert fuzz.main(["--kind", "svmhmm", "--count", "7", "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "exit 1 (7 times: 0, 1, 2, 3, 4 ...): 'error: at " in out
    assert "make fuzz KIND=svmhmm ONLY=NUMBER SEED=3" in out
    assert out.endswith("1 findings\n")
