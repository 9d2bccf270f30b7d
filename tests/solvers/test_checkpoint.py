"""Checkpoints: resuming bit for bit, and files that are not what they should be."""

from __future__ import annotations

import copy
import errno
import gzip
import io
import json
import os
import pickle
import resource
import stat
import tracemalloc
import zipfile

import numpy as np
import pytest

from kit import assert_same_run, quietly
from maxmargin._native import Engine
from maxmargin.errors import CheckpointWarning, ModelFormatError
from maxmargin.solvers import SDM, checkpoint
from maxmargin.solvers.checkpoint import load_checkpoint, save_checkpoint
from maxmargin.solvers.state import RunState
from native_problems import flat_problem, native_python_problem, random_case


def chain(n=12, n_sparse=15, seed=0):
    rng = np.random.default_rng(seed)
    return random_case(rng, n_labels=4, lengths=[5] * n, n_sparse=n_sparse).problem()


def flat(n=12):
    return native_python_problem(*flat_problem(np.random.default_rng(0), n=n))


SOLVERS = {
    "auto": SDM(cached_passes=4),
    "paper": SDM("paper", tau=1e-6, tau_inner=1e-6, kappa1=3),
    "basic": SDM("basic", tau=1e-6, tau_inner=1e-6),
}


def run(problem, solver, passes, **options):
    """Make so many passes."""
    options = {"C": 0.7, "gap": 0.0, "random_state": 4, **options}
    return quietly(problem, solver, max_passes=passes, **options)


# --- going on ---


@pytest.mark.parametrize("schedule", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("make", [chain, flat])
@pytest.mark.parametrize("stops", [(1,), (3,), (6,), (9,), (1, 2, 5, 8)])
def test_stopped_and_resumed_equals_one_run(schedule, dtype, make, stops, tmp_path):
    path, solver = tmp_path / "run.npz", SOLVERS[schedule]
    whole = run(make(), solver, 10, dtype=dtype)
    for stop in stops:
        part = run(make(), solver, stop, dtype=dtype, checkpoint=path, resume=True, random_state=4)
        assert part.n_passes == stop
    # the order of the visits is the file's business: another seed changes nothing
    rest = run(make(), solver, 10, dtype=dtype, checkpoint=path, resume=True, random_state=99)
    assert_same_run(whole, rest)


@pytest.mark.parametrize("schedule", SOLVERS)
def test_resumed_runs_converge_as_one_run(schedule, tmp_path):
    path, solver = tmp_path / "run.npz", SOLVERS[schedule]
    whole = run(chain(), solver, 5000, gap=1e-3)
    assert whole.converged
    run(chain(), solver, whole.n_passes // 2, gap=1e-3, checkpoint=path)
    rest = run(chain(), solver, 5000, gap=1e-3, checkpoint=path, resume=True)
    assert_same_run(whole, rest)


def test_saving_often_changes_nothing(tmp_path):
    path = tmp_path / "run.npz"
    plain = run(chain(), SDM(), 15)
    saved = run(chain(), SDM(), 15, checkpoint=path, checkpoint_seconds=0.0)
    assert_same_run(plain, saved)
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


def test_time_and_oracle_calls_go_on_counting(tmp_path):
    path = tmp_path / "run.npz"
    first = run(chain(), SDM(), 4, checkpoint=path)
    second = run(chain(), SDM(), 8, checkpoint=path, resume=True)
    assert second.history.column("n_pass").tolist() == list(range(1, 9))
    assert second.history.column("seconds")[:4].tolist() == first.history.column("seconds").tolist()
    assert (np.diff(second.history.column("seconds")) >= 0).all()
    assert (np.diff(second.history.column("oracle_calls")) >= 0).all()


def test_a_run_that_has_its_passes_already_makes_none(tmp_path):
    path = tmp_path / "run.npz"
    first = run(chain(), SDM(), 5, checkpoint=path)
    again = run(chain(), SDM(), 5, checkpoint=path, resume=True)
    assert_same_run(first, again)
    fewer = run(chain(), SDM(), 2, checkpoint=path, resume=True)
    assert fewer.n_passes == 5


@pytest.mark.parametrize("as_text", [True, False])
def test_a_missing_file_starts_anew(tmp_path, as_text):
    path = tmp_path / "run.npz"
    path = str(path) if as_text else path
    anew = run(chain(), SDM(), 5, checkpoint=path, resume=True)
    assert_same_run(anew, run(chain(), SDM(), 5))
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "other.npz", Engine(chain(), 0.7), {})


def test_without_resume_the_old_file_is_replaced(tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"something old")
    result = run(chain(), SDM(), 3, checkpoint=path)
    assert_same_run(result, run(chain(), SDM(), 3, checkpoint=path, resume=True))


def test_the_name_of_the_file_is_kept(tmp_path):
    run(chain(), SDM(), 2, checkpoint=tmp_path / "my run.ckpt")
    assert [p.name for p in tmp_path.iterdir()] == ["my run.ckpt"]


def test_the_threads_may_differ_between_the_parts(tmp_path):
    path = tmp_path / "run.npz"
    whole = run(chain(), SDM(), 40, gap=1e-3)
    run(chain(), SDM(), 5, gap=1e-3, checkpoint=path)
    rest = run(chain(), SDM(), 40, gap=1e-3, checkpoint=path, resume=True, n_jobs=2)
    assert whole.weights.tobytes() == rest.weights.tobytes()


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox]
)
def test_generators_of_all_kinds_can_be_saved(bits, tmp_path):
    path, solver = tmp_path / "run.npz", SDM()

    def generator():
        return np.random.Generator(bits(5))

    whole = run(chain(), solver, 6, random_state=generator())
    run(chain(), solver, 3, random_state=generator(), checkpoint=path)
    rest = run(chain(), solver, 6, random_state=generator(), checkpoint=path, resume=True)
    assert_same_run(whole, rest)


def test_a_checkpoint_with_another_kind_of_generator_is_told_so(tmp_path):
    path = tmp_path / "run.npz"
    run(chain(), SDM(), 3, checkpoint=path)
    other = np.random.Generator(np.random.SFC64(0))
    with pytest.raises(ValueError):
        run(chain(), SDM(), 6, checkpoint=path, resume=True, random_state=other)


# --- files of other runs ---


@pytest.mark.parametrize(
    ("problem", "solver", "options", "what"),
    [
        (chain(13), SDM(), {}, "n_examples is 12 there and 13 here"),
        (chain(12, 16), SDM(), {}, "n_weights"),
        (chain(), SDM(), {"C": 0.8}, "C is 0.7 there and 0.8 here"),
        (chain(), SDM(), {"dtype": "float64"}, "n_weights|dtype"),
        (chain(), SDM("paper"), {}, "solver.*auto.*paper"),
        (chain(), SDM(cached_passes=7), {}, "solver.*cached_passes=20.*cached_passes=7"),
        (flat(), SDM(), {}, "n_weights|dtype"),
        (chain(seed=1), SDM(), {}, "data|problem|examples"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(problem, solver, options, what, tmp_path):
    path = tmp_path / "run.npz"
    run(chain(), SDM(), 3, checkpoint=path)
    content = path.read_bytes()
    with pytest.raises(ModelFormatError, match=what):
        run(problem, solver, 6, checkpoint=path, resume=True, **options)
    assert path.read_bytes() == content


# --- damaged files ---


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    run(chain(), SDM(), 4, checkpoint=path)
    return path.read_bytes()


def try_load(path, content):
    """Return whether it was read; anything but a ModelFormatError is a failure."""
    path.write_bytes(content)
    message = None
    try:
        run(chain(), SDM(), 5, checkpoint=path, resume=True)
    except ModelFormatError as error:
        message = str(error)
    assert message is None or str(path) in message
    return message is None


def test_truncated_files(saved, tmp_path):
    for n in [*range(40), *np.linspace(40, len(saved) - 1, 80).astype(int).tolist()]:
        assert not try_load(tmp_path / "cut.npz", saved[:n]), n


def test_flipped_bits(saved, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(saved)
        for _ in range(int(rng.integers(1, 4))):
            damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        try_load(tmp_path / "flipped.npz", bytes(damaged))


def test_flipped_bits_in_the_directory_of_the_archive(saved, tmp_path):
    start = saved.index(b"PK\x01\x02")
    rng = np.random.default_rng(1)
    for position in range(start, start + 46):  # every field of the first entry
        damaged = bytearray(saved)
        damaged[position] ^= 1 << int(rng.integers(8))
        try_load(tmp_path / "flipped.npz", bytes(damaged))
    for bit in (0x01, 0x20, 0x40):  # "encrypted", "patched", "strongly encrypted"
        damaged = bytearray(saved)
        damaged[start + 8] |= bit
        damaged[6] |= bit
        assert not try_load(tmp_path / "flipped.npz", bytes(damaged))


def test_replaced_and_inserted_bytes(saved, tmp_path):
    rng = np.random.default_rng(2)
    for _ in range(60):
        damaged = bytearray(saved)
        a, n = int(rng.integers(len(damaged))), int(rng.integers(1, 50))
        damaged[a : a + int(rng.integers(0, 2)) * n] = rng.bytes(n)
        try_load(tmp_path / "replaced.npz", bytes(damaged))


def npz(path, **arrays):
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path.read_bytes()


def test_files_of_another_kind(saved, tmp_path):
    path, other = tmp_path / "run.npz", tmp_path / "other"
    np.save(other.with_suffix(".npy"), np.arange(5))
    with zipfile.ZipFile(other.with_suffix(".zip"), "w") as archive:
        archive.writestr("about.txt", "hello")
        archive.writestr("about", "hello")
    contents = [
        b"",
        b"\x00",
        b"PK\x03\x04",
        b"hello " * 100,
        b'{"format": "maxmargin checkpoint"}',
        pickle.dumps({"a": 1}),
        saved[1:],
        other.with_suffix(".npy").read_bytes(),
        other.with_suffix(".zip").read_bytes(),
        npz(other),
        npz(other, x=np.arange(3)),
        npz(other, about=np.arange(3)),
        npz(other, about=np.array([{"a": 1}], dtype=object)),
    ]
    for content in contents:
        assert not try_load(path, content), content[:40]


def test_a_directory_is_not_a_checkpoint(tmp_path):
    with pytest.raises(ModelFormatError):
        run(chain(), SDM(), 2, checkpoint=tmp_path, resume=True)


def rewritten(saved, path, change, **arrays):
    """Return the file with its JSON text, or its arrays, changed: whole, but not true."""
    path.write_bytes(saved)
    with np.load(path) as stored:
        kept = dict(stored)
    about = json.loads(bytes(kept["about"]).decode())
    about = change(about) or about
    kept["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    kept.update(arrays)
    return npz(path, **{k: v for k, v in kept.items() if v is not None})


CHANGES = {
    "list": lambda a: [a],
    "null": lambda a: "null",
    "format": lambda a: a.update(format="other"),
    "version": lambda a: a.update(version=99),
    "no version": lambda a: a.pop("version") and None,
    "no identity": lambda a: a.pop("identity") and None,
    "identity a list": lambda a: a.update(identity=[]),
    "identity empty": lambda a: a.update(identity={}),
    "no run": lambda a: a.pop("run") and None,
    "run a list": lambda a: a.update(run=[1]),
    "run of other fields": lambda a: a["run"].update(colour=1),
    "history a number": lambda a: a["run"].update(history=3),
    "history of numbers": lambda a: a["run"].update(history=[3]),
    "history of other fields": lambda a: a["run"].update(history=[{"x": 1}]),
    "no generator": lambda a: a["run"].update(rng={}),
    "generator a list": lambda a: a["run"].update(rng=[]),
    "generator of text": lambda a: a["run"]["rng"].update(state="x"),
    "solver state empty": lambda a: a["run"].update(solver={}),
    "solver state a list": lambda a: a["run"].update(solver=[1]),
    "dual of text": lambda a: a["run"].update(dual="high"),
    "seconds of text": lambda a: a["run"].update(seconds="long"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whole_files_with_a_text_that_is_not_true(name, saved, tmp_path):
    path = tmp_path / "run.npz"
    assert not try_load(path, rewritten(saved, path, CHANGES[name])), name


def test_the_version_is_named(saved, tmp_path):
    path = tmp_path / "run.npz"
    rewritten(saved, path, CHANGES["version"])
    with pytest.raises(ModelFormatError, match="version 99"):
        run(chain(), SDM(), 5, checkpoint=path, resume=True)


def test_whole_files_with_arrays_that_are_not_true(saved, tmp_path):
    path = tmp_path / "run.npz"
    names = [k for k in Engine(chain(), 0.7).state() if k]
    path.write_bytes(saved)
    with np.load(path) as stored:
        arrays = {name: stored[f"engine_{name}"] for name in names}
    for name, array in arrays.items():
        for other in (
            None,  # missing
            array.ravel()[:-1] if array.size else np.ones(3),
            array.astype(complex),
            np.array(["text"]),
            array.astype("S8"),
        ):
            changed = rewritten(saved, path, lambda a: None, **{f"engine_{name}": other})
            assert not try_load(path, changed), (name, other)
        # what cannot be told from a true one may be read, but must not crash
        mixed = np.roll(array, 1)
        try_load(path, rewritten(saved, path, lambda a: None, **{f"engine_{name}": mixed}))


# --- writing fails ---


def test_a_missing_directory(tmp_path):
    with pytest.raises(OSError):
        run(chain(), SDM(), 2, checkpoint=tmp_path / "no" / "run.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_nothing_half_written_is_left(error, monkeypatch, tmp_path):
    path = tmp_path / "run.npz"
    run(chain(), SDM(), 2, checkpoint=path)
    content = path.read_bytes()

    def fail(archive, name, array):
        archive.writestr(name, b"half")
        raise error

    monkeypatch.setattr(checkpoint, "_write_array", fail)
    with pytest.raises(type(error)):
        run(chain(), SDM(), 4, checkpoint=path, resume=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == content


def half_written(error, monkeypatch):
    def fail(archive, name, array):
        archive.writestr(name, b"half")
        raise error

    monkeypatch.setattr(checkpoint, "_write_array", fail)


@pytest.mark.parametrize("error", [OSError("disk full"), OSError(errno.ENOSPC, "No space left")])
def test_training_goes_on_without_checkpoints(error, monkeypatch, tmp_path):
    path = tmp_path / "run.npz"
    run(chain(), SDM(), 2, checkpoint=path)
    content = path.read_bytes()
    with monkeypatch.context() as patch:
        half_written(error, patch)
        with pytest.warns(CheckpointWarning) as caught:
            result = run(
                chain(), SDM(), 6, checkpoint=path, resume=True, checkpoint_seconds=0.0
            )
    assert len([w for w in caught if w.category is CheckpointWarning]) == 1
    assert str(path) in str(caught[0].message)
    assert error.strerror is None or error.strerror in str(caught[0].message)
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == content
    assert_same_run(result, run(chain(), SDM(), 6))


def test_a_small_limit_for_files(tmp_path):
    path = tmp_path / "run.npz"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.warns(CheckpointWarning, match="File too large"):
            result = run(chain(), SDM(), 4, checkpoint=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_same_run(result, run(chain(), SDM(), 4))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_on_the_disk_with_the_usual_mode(monkeypatch, tmp_path):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), real(fd)))
    old = os.umask(0o027)
    try:
        run(chain(), SDM(), 2, checkpoint=tmp_path / "run.npz")
    finally:
        os.umask(old)
    assert len(synced) == 1
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o640
    (tmp_path / "run.npz").chmod(0o600)
    run(chain(), SDM(), 2, checkpoint=tmp_path / "run.npz")
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o600


def test_a_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="Not a regular file"):
        run(chain(), SDM(), 2, checkpoint=tmp_path / "fifo")
    assert (tmp_path / "fifo").is_fifo()


# --- files that are something else, or much larger than they look ---


def refused(path):
    with pytest.raises(ModelFormatError) as caught:
        run(chain(), SDM(), 5, checkpoint=path, resume=True)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "pickle" not in message
    assert len(message) < len(str(path)) + 300
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "the file is empty"),
        (b"hello world", "it begins with b'hello wo'"),
        (b"maxmargn" + bytes(100), "it is a model file"),
        (pickle.dumps({"a": 1}), "it begins with"),
        (gzip.compress(b"x"), "compressed with gzip"),
    ],
    ids=["empty", "text", "model", "pickle", "gzip"],  # gzip has the time in it
)
def test_what_a_file_is_instead(content, found, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    message = refused(path)
    assert "not a maxmargin checkpoint" in message
    assert found in message


def test_an_archive_of_something_else(tmp_path):
    np.savez(tmp_path / "run.npz", x=np.arange(3))
    assert "without the text that describes the run" in refused(tmp_path / "run.npz")


def memory_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def stored(saved, path):
    path.write_bytes(saved)
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", ["about", "engine_u", "engine_new"])
def test_members_that_inflate(saved, tmp_path, name):
    path = tmp_path / "run.npz"
    arrays = stored(saved, path)
    np.savez_compressed(path, **{**arrays, name: np.zeros(40_000_000, dtype=np.uint8)})
    assert path.stat().st_size < 1_000_000
    assert memory_of(lambda: refused(path)) < 5_000_000


def test_unknown_members_are_not_read(saved, tmp_path):
    path = tmp_path / "run.npz"
    arrays = stored(saved, path)
    np.savez(path, **arrays)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("other.npy", bytes(40_000_000))

    def resumed():
        assert run(chain(), SDM(), 5, checkpoint=path, resume=True).n_passes == 5

    assert memory_of(resumed) < 5_000_000


@pytest.mark.parametrize("shape", [(2**40,), (-1,), (2**62, 2**62), (3,)])
def test_headers_that_claim_more_than_there_is(saved, tmp_path, shape):
    path = tmp_path / "run.npz"
    path.write_bytes(saved)
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("engine_more.npy", header.getvalue() + bytes(8))
    assert "the array 'engine_more.npy' says that it has the shape" in refused(path)


def test_members_that_share_their_bytes(saved, tmp_path):
    path = tmp_path / "run.npz"
    arrays = stored(saved, path)
    np.savez(path, **arrays, engine_long=np.zeros(10_000))
    with zipfile.ZipFile(path, "a") as archive:
        original = archive.getinfo("engine_long.npy")
        for k in range(50):
            twin = copy.copy(original)
            twin.filename = f"engine_long{k}.npy"
            archive.filelist.append(twin)
        archive._didModify = True
    assert "expected no more" in refused(path)


def test_long_names_are_cut(saved, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(saved)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"engine_{'x' * 60_000}.npy", b"hello")
    refused(path)


def test_arrays_of_objects(saved, tmp_path):
    path = tmp_path / "run.npz"
    arrays = stored(saved, path)
    np.savez(path, **{**arrays, "engine_u": np.array([{"a": 1}], dtype=object)})
    assert "is not of numbers" in refused(path)


def test_save_and_load_directly(tmp_path):
    path, problem = tmp_path / "run", chain()
    engine = run(problem, SDM(), 4).engine
    state = RunState({"a": None}, {"b": 2**100}, 1.5, 2.5, 7, [{"gap": float("nan")}])
    save_checkpoint(path, engine, state, {"C": 0.7})
    other = Engine(problem, 0.7)
    loaded = load_checkpoint(path, other, {"C": 0.7})
    assert repr(loaded) == repr(state)
    for name, array in engine.state().items():
        np.testing.assert_array_equal(other.state()[name], array)
    with pytest.raises(ModelFormatError, match="D is None there and 1 here"):
        load_checkpoint(path, Engine(problem, 0.7), {"D": 1})
