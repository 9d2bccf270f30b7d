"""The container of model files: what comes back, what is refused, and what a failure leaves."""

from __future__ import annotations

import contextlib
import copy
import enum
import errno
import gc
import gzip
import hashlib
import json
import os
import resource
import socket
import stat
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin import _native
from maxmargin.errors import ModelFormatError
from maxmargin.io import container
from maxmargin.io.container import read_container, read_header, write_container

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]
META = {"labels": ["A", "Ä", "\x00\n"], "C": 0.1, "n": 2**64, "deep": {"none": None, "yes": True}}


def some_arrays():
    rng = np.random.default_rng(0)
    return {
        "weights": rng.normal(size=(5, 3)).astype("f4"),
        "empty": np.zeros((0, 7), dtype="i8"),
        "scalar": np.array(3.5),
        "bytes": rng.integers(0, 256, size=101).astype("u1"),
    }


def assert_same(found, expected):
    assert list(found) == list(expected)
    for key, array in expected.items():
        assert found[key].shape == array.shape
        assert found[key].dtype == array.dtype.newbyteorder("=")
        assert (
            np.ascontiguousarray(found[key]).tobytes() == array.astype(found[key].dtype).tobytes()
        )


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.mm"
    write_container(path, "tagger", META, some_arrays())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("container")


# What comes back


def test_everything_comes_back(model):
    read = read_container(model)
    assert (read.path, read.kind, read.version) == (str(model), "tagger", 1)
    assert read.meta == META
    assert read.n_bytes == model.stat().st_size
    assert_same(read.arrays, some_arrays())
    assert read_container(str(model), "tagger").meta == META
    assert "'tagger' with 4 arrays" in repr(read)


def test_returns_the_number_of_bytes(tmp_path):
    path = tmp_path / "m"
    for arrays in ({}, some_arrays(), {"last": np.zeros(0)}, {"one": np.zeros(1, "u1")}):
        assert write_container(path, "k", {}, arrays) == path.stat().st_size
        assert_same(read_container(path).arrays, arrays)


@settings(max_examples=100, deadline=None)
@given(
    arrays=st.dictionaries(
        st.text(max_size=8),
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: hnp.arrays(
                dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
            )
        ),
        max_size=5,
    )
)
def test_all_dtypes_and_shapes(folder, arrays):
    path = folder / "arrays.mm"
    assert write_container(path, "k", {}, arrays) == path.stat().st_size
    assert_same(read_container(path).arrays, arrays)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(meta=st.dictionaries(st.text(), JSON, max_size=5), kind=st.text())
def test_all_that_json_can_hold(folder, meta, kind):
    path = folder / "meta.mm"
    write_container(path, kind, meta, {})
    read = read_container(path, kind)
    assert read.meta == meta
    assert json.dumps(read.meta, sort_keys=True) == json.dumps(meta, sort_keys=True)  # 1 and 1.0


def test_any_order_in_memory(tmp_path):
    base = np.arange(24, dtype="f8").reshape(4, 6)
    arrays = {"turned": base.T, "strided": base[::2, ::-1], "big": base.astype(">f8")}
    write_container(tmp_path / "m", "k", {}, arrays)
    assert_same(read_container(tmp_path / "m").arrays, arrays)


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_are_aligned_and_read_only(model, mmap):
    for array in read_container(model, mmap=mmap).arrays.values():
        assert array.ctypes.data % 64 == 0 or array.size == 0
        assert array.flags.c_contiguous
        assert not array.flags.writeable
        with pytest.raises(ValueError):
            array.flags.writeable = True


def test_arrays_keep_the_map_alive(model):
    arrays = dict(read_container(model, mmap=True).arrays)
    model.unlink()
    gc.collect()
    assert_same(arrays, some_arrays())


def test_a_file_that_is_overwritten_in_place(model):
    arrays = dict(read_container(model).arrays)
    model.write_bytes(bytes(model.stat().st_size))
    assert_same(arrays, some_arrays())
    model.write_bytes(b"")
    assert_same(arrays, some_arrays())


def test_the_header_alone(model):
    read = read_container(model)
    header = read_header(str(model))
    assert header == (str(model), read.kind, read.meta, read.version, read.n_bytes)
    data = bytearray(model.read_bytes())
    data[-1] ^= 1  # in the last array, which nobody looks at
    model.write_bytes(data)
    assert read_header(model) == header
    with pytest.raises(ModelFormatError, match="does not match its checksum"):
        read_container(model)
    data[40] ^= 1
    model.write_bytes(data)
    with pytest.raises(ModelFormatError, match="the header does not match its checksum"):
        read_header(model)


def test_a_file_that_is_cut_while_it_is_read(model, monkeypatch):
    real = os.fstat

    def cut(descriptor):
        about = real(descriptor)
        model.write_bytes(model.read_bytes()[:40])
        return about

    monkeypatch.setattr(os, "fstat", cut)
    with pytest.raises(ModelFormatError, match="is being changed by somebody"):
        read_container(model)


def test_arrays_have_memory_of_their_own(model):
    """Or a model that needs one small array would keep the whole file."""
    first, second, *_ = [a for a in read_container(model).arrays.values() if a.size]
    assert not np.may_share_memory(first.base, second.base)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_model_can_be_saved_over_itself(model, mmap):
    before = model.read_bytes()
    read = read_container(model, mmap=mmap)
    for _ in range(3):
        write_container(model, read.kind, read.meta, read.arrays)
        assert model.read_bytes() == before
    assert_same(read.arrays, some_arrays())


def test_numpy_scalars_and_tuples_in_meta(tmp_path):
    class Colour(str, enum.Enum):  # noqa: UP042 (its str() is not its value)
        RED = "red"

    meta = {
        "i": np.int32(-3), "u": np.uint64(2**64 - 1), "f": np.float32(0.5), "d": np.float64(0.1),
        "b": np.bool_(True), "s": np.str_("text"), "t": (1, (2,)), "e": Colour.RED,
        "p": enum.IntEnum("P", "ONE").ONE, np.str_("k"): 1,
    }  # fmt: skip
    write_container(tmp_path / "m", "k", meta, {})
    read = read_container(tmp_path / "m").meta
    assert read == {
        "i": -3, "u": 2**64 - 1, "f": 0.5, "d": 0.1, "b": True, "s": "text", "t": [1, [2]],
        "e": "red", "p": 1, "k": 1,
    }  # fmt: skip
    assert read["b"] is True


def test_reading_a_good_file_imports_nothing_heavy(model):
    program = (
        "import sys; from maxmargin.io.container import read_container\n"
        "read_container(sys.argv[1])\n"
        "print([m for m in ('sklearn', 'scipy', 'tempfile') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, model], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# The format


def by_hand(header, body=b"", version=1, reserved=0, length=None):
    """Assemble a file from a header (an object or its bytes) with right checksums."""
    if not isinstance(header, bytes):
        header = json.dumps(
            header, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
    fixed = b"maxmargn" + struct.pack(
        "<IIQ", version, reserved, len(header) if length is None else length
    )
    file = fixed + struct.pack("<Q", _native.checksum(fixed + header)) + header
    return file + (bytes(-len(file) % 64) + body if body else b"")


def test_the_bytes_are_those_of_the_description(tmp_path):
    path = tmp_path / "m"
    array = np.array([[1, -2]], dtype="i2")
    write_container(path, "k", {"b": "ö", "a": 1.5}, {"x": array})
    entry = {
        "name": "x", "dtype": "i2", "shape": [1, 2], "offset": 192, "nbytes": 4,
        "checksum": _native.checksum(array.tobytes()),
    }  # fmt: skip
    header = {"kind": "k", "meta": {"a": 1.5, "b": "ö"}, "arrays": [entry]}
    assert path.read_bytes() == by_hand(header, struct.pack("<hh", 1, -2))


def test_the_format_does_not_change_unnoticed(tmp_path):
    # If this fails, models that are out there cannot be read any more: a new version is needed.
    write_container(
        tmp_path / "m", "k", {"a": [1, 2.5, None, "é"]}, {"x": np.arange(40, dtype="f4")}
    )
    digest = hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert digest == "db4359e380a176de995afa51b95644d371b3390233f0d594593e0c0d9c8e3cb3"


def test_writing_is_deterministic(tmp_path):
    meta = dict(reversed(META.items()))
    write_container(tmp_path / "a", "k", META, some_arrays())
    write_container(tmp_path / "b", "k", meta, some_arrays())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("pad", range(0, 1100, 7))
def test_offsets_whatever_the_length_of_the_header(tmp_path, pad):
    # Offsets gain a digit around 1000, which may move them on.
    arrays = {f"{i}": np.full(i, i, dtype="u1") for i in range(12)}
    write_container(tmp_path / "m", "k", {"pad": "x" * pad}, arrays)
    assert_same(read_container(tmp_path / "m").arrays, arrays)


# What cannot be written


@pytest.mark.parametrize(
    ("meta", "error", "message"),
    [
        ({"a": {"b": [1, float("nan")]}}, ValueError, r"meta\['a'\]\['b'\]\[1\] is nan"),
        ({"a": np.float32("inf")}, ValueError, r"meta\['a'\] is inf; expected a finite number"),
        ({"a": {1: 2}}, TypeError, r"meta\['a'\] has the key 1; expected keys that are str"),
        ({"a": {1, 2}}, TypeError, r"meta\['a'\] is a set"),
        ({"a": b"x"}, TypeError, r"meta\['a'\] is a bytes"),
        ({"a": np.zeros(3)}, TypeError, r"meta\['a'\] is a ndarray"),
        ({"a": np.timedelta64(3, "ns")}, TypeError, r"meta\['a'\] is a timedelta64"),
        ({"a": 1j}, TypeError, r"meta\['a'\] is a complex"),
        ({"a": ["\ud800"]}, ValueError, r"meta\['a'\]\[0\] is '\\ud800'; .* UTF-8"),
        ({"\ud800": 1}, ValueError, r"meta\['\\ud800'\] is .* UTF-8"),
        ({"a": 1 << 2048}, ValueError, r"meta\['a'\] is an integer of 2049 bits"),
        ([1], TypeError, "meta is a list; expected a dict"),
    ],
)
def test_meta_that_json_cannot_hold(tmp_path, meta, error, message):
    with pytest.raises(error, match=message):
        write_container(tmp_path / "m", "k", meta, {})
    assert list(tmp_path.iterdir()) == []


def test_meta_that_contains_itself(tmp_path):
    meta = {"a": []}
    meta["a"].append(meta)
    with pytest.raises(ValueError, match="nested too deep"):
        write_container(tmp_path / "m", "k", meta, {})


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({"a": [1.0]}, TypeError, r"arrays\['a'\] is a list; expected an ndarray"),
        ({1: np.zeros(1)}, TypeError, "arrays has the key 1"),
        ({"a": np.array([None])}, TypeError, r"arrays\['a'\] has dtype object"),
        ({"a": np.zeros(2, bool)}, TypeError, r"arrays\['a'\] has dtype bool"),
        ({"a": np.zeros(2, "f2")}, TypeError, r"arrays\['a'\] has dtype float16"),
        ({"a": np.zeros(2, "c8")}, TypeError, r"arrays\['a'\] has dtype complex64"),
        ({"a": np.zeros(2, "m8[s]")}, TypeError, r"arrays\['a'\] has dtype timedelta"),
        ({"a": np.zeros(2, "u1,i2")}, TypeError, r"arrays\['a'\] has dtype"),
        ({"a": np.zeros((1,) * 5)}, ValueError, r"arrays\['a'\] has 5 dimensions"),
        ({"\udc80": np.zeros(1)}, ValueError, "UTF-8"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, error, message):
    with pytest.raises(error, match=message):
        write_container(tmp_path / "m", "k", {}, arrays)
    assert list(tmp_path.iterdir()) == []


def test_kind_must_be_text(tmp_path):
    with pytest.raises(TypeError, match="kind is a int"):
        write_container(tmp_path / "m", 3, {}, {})


def test_header_too_long_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MAX_HEADER", 200)
    with pytest.raises(ValueError, match="expected at most 200"):
        write_container(tmp_path / "m", "k", {"a": "x" * 200}, {})
    assert list(tmp_path.iterdir()) == []


# Failures while writing


@contextlib.contextmanager
def left_alone(folder):
    """Check that the files of a folder, and their contents, are the same afterwards."""

    def content():
        return {
            path.name: (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
            for path in folder.iterdir()
        }

    before = content()
    yield
    assert content() == before


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fchmod", "fsync", "replace", "open"])
def test_a_failure_leaves_everything_as_it_was(tmp_path, monkeypatch, step, error, exists):
    path = tmp_path / "model.mm"
    if exists:
        path.write_bytes(b"the old model")
    elif step == "fchmod":
        pytest.skip("a new file keeps the mode it was created with")

    def fail(*args):
        raise error

    with left_alone(tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(type(error)) as caught:
                write_container(path, "k", META, some_arrays())
        if isinstance(error, OSError):
            assert caught.value.errno == errno.ENOSPC
            assert caught.value.filename == str(path)
            assert caught.value.filename2 is None


@pytest.mark.parametrize("room", [0, 10, 5000, 100_000])
def test_no_room_for_the_file(tmp_path, room):
    path = tmp_path / "model.mm"
    path.write_bytes(b"the old model")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with left_alone(tmp_path):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(OSError) as caught:
                write_container(path, "k", META, {"x": np.ones(50_000)})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(path)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_full_disk(tmp_path, monkeypatch, size):
    path = tmp_path / "model.mm"
    path.write_bytes(b"the old model")
    real = os.open

    def on_a_full_disk(file, flags, mode=0o777):
        os.close(real(file, flags, mode))
        return real("/dev/full", os.O_WRONLY)

    with left_alone(tmp_path), monkeypatch.context() as patch:
        patch.setattr(os, "open", on_a_full_disk)
        patch.setattr(os, "fchmod", lambda *args: None)
        with pytest.raises(OSError) as caught:
            write_container(path, "k", META, {"x": np.ones(size)})
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)


def test_the_temporary_file_is_hidden_beside_the_target(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.extend(p.name for p in tmp_path.iterdir()))
    write_container(tmp_path / "m", "k", {}, {})
    (name,) = seen
    assert name.startswith(".")
    assert str(os.getpid()) in name
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_the_target_is_a_directory(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "empty").mkdir()
    with left_alone(tmp_path):
        for name in ("full", "empty", "empty/", "."):
            with pytest.raises(IsADirectoryError) as caught:
                write_container(f"{tmp_path}/{name}", "k", {}, {})
            assert caught.value.filename == f"{tmp_path}/{name}"


@pytest.mark.parametrize("name", ["missing/m.mm", "missing/"])
def test_the_directory_is_missing(tmp_path, name):
    with pytest.raises(FileNotFoundError) as caught:
        write_container(f"{tmp_path}/{name}", "k", {}, {})
    assert caught.value.filename == f"{tmp_path}/{name}"
    assert list(tmp_path.iterdir()) == []


def test_empty_path():
    with pytest.raises(FileNotFoundError):
        write_container("", "k", {}, {})


def test_below_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), left_alone(tmp_path):
        write_container(tmp_path / "file" / "m.mm", "k", {}, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_the_directory_may_not_be_written(tmp_path, model):
    tmp_path.chmod(0o500)
    try:
        with left_alone(tmp_path):
            for name in ("model.mm", "new.mm"):
                with pytest.raises(PermissionError) as caught:
                    write_container(tmp_path / name, "k", {}, {})
                assert caught.value.filename == str(tmp_path / name)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["fifo", "link"])
def test_no_special_file_is_replaced(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    with left_alone(tmp_path), pytest.raises(OSError, match="Not a regular file"):
        write_container(tmp_path / name, "k", {}, {})


def test_the_longest_name_there_can_be(tmp_path):
    path = tmp_path / ("m" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    write_container(path, "k", META, {})
    assert read_container(path).meta == META


# Modes and links


@contextlib.contextmanager
def umask(mask):
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000])
def test_a_new_file_gets_the_ordinary_mode(tmp_path, mask):
    with umask(mask):
        write_container(tmp_path / "m", "k", {}, {})
    assert stat.S_IMODE((tmp_path / "m").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o640, 0o755])
def test_an_existing_file_keeps_its_mode(model, mode):
    model.chmod(mode)
    with umask(0o022):
        write_container(model, "k", {}, {})
    assert stat.S_IMODE(model.stat().st_mode) == mode
    assert read_container(model).kind == "k"


@pytest.mark.parametrize("exists", [True, False])
def test_writing_through_links(tmp_path, exists):
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "m.mm"
    if exists:
        target.write_bytes(b"old")
        target.chmod(0o640)
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(target)
    write_container(tmp_path / "one", "k", META, {})
    assert (tmp_path / "one").is_symlink()
    assert (tmp_path / "two").is_symlink()
    assert not target.is_symlink()
    assert read_container(target).meta == META
    assert [p.name for p in target.parent.iterdir()] == ["m.mm"]
    if exists:
        assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for use in (lambda p: write_container(p, "k", {}, {}), read_container):
        with pytest.raises(OSError) as caught:
            use(tmp_path / "a")
        assert caught.value.errno == errno.ELOOP


# Damage


def refuse(path, data, match=None):
    """Check that a file with these bytes is refused with one line that begins with its name."""
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=match) as caught:
        read_container(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300


def corrupted(rng, data):
    """Return the bytes with one kind of damage."""
    a, b = sorted(int(i) for i in rng.integers(0, len(data) + 1, size=2))
    some = rng.integers(0, 256, size=int(rng.integers(1, 70)), dtype="u1").tobytes()
    match rng.integers(8):
        case 0:
            flipped = bytearray(data)
            for i in rng.integers(0, len(data), size=rng.integers(1, 4)):
                flipped[i] ^= 1 << int(rng.integers(8))
            return bytes(flipped)
        case 1:
            return data[:a]
        case 2:
            return data + (some if rng.integers(2) else bytes(len(some)))
        case 3:
            return data[:a] + some + data[a + len(some) :]
        case 4:
            return data[:a] + bytes(b - a) + data[b:]
        case 5:
            c = min(len(data), b + (b - a))
            return data[:a] + data[b:c] + data[a:b] + data[c:]
        case 6:
            return data[:a] + some + data[a:]
        case _:
            return data[:a] + data[b:]


@pytest.mark.parametrize("seed", range(10))
def test_no_damage_goes_unseen(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "m.mm"
    write_container(path, "k", META, some_arrays())
    data = path.read_bytes()
    for _ in range(120):
        damaged = corrupted(rng, data)
        if damaged == data:
            path.write_bytes(damaged)
            assert_same(read_container(path).arrays, some_arrays())
        else:
            refuse(path, damaged)


def test_every_byte_and_every_length(tmp_path):
    path = tmp_path / "m.mm"
    write_container(path, "k", {}, {"x": np.arange(3.0), "y": np.ones(1, "u1")})
    data = path.read_bytes()
    for i in range(len(data)):
        refuse(path, data[:i])
        refuse(path, data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1 :])


def test_messages_about_length(tmp_path, model):
    data = model.read_bytes()
    path = tmp_path / "x.mm"
    n = len(data)
    refuse(path, data[:-1], f"ends after {n - 1} bytes; expected {n}: it was cut short")
    refuse(path, data[:100], "ends after 100 bytes; expected at least .*: it was cut short")
    refuse(path, data[:9], "ends after 9 bytes; expected at least 32: it was cut short")
    refuse(path, data + b"\0", f"has {n + 1} bytes; expected {n}: something was appended")
    refuse(path, b"", "the file is empty")


def test_messages_about_damage(tmp_path, model):
    data = bytearray(model.read_bytes())
    path = tmp_path / "x.mm"
    data[-1] ^= 1
    refuse(path, bytes(data), "array 'bytes' does not match its checksum")
    data = bytearray(model.read_bytes())
    data[40] ^= 1
    refuse(path, bytes(data), "the header does not match its checksum")


# Other files


def test_other_files(tmp_path):
    path = tmp_path / "x.txt"
    refuse(path, b"The cat sat\n", r"not a maxmargin model \(begins with b'The '\.\.\.\)")
    refuse(path, b"\n", r"not a maxmargin model \(begins with b'\\n'\)")
    refuse(path, b"PK\x03\x04" + bytes(50), "not a maxmargin model")
    refuse(path, b"\x80\x04\x95", "not a maxmargin model")
    refuse(path, bytes(1000), "not a maxmargin model")
    refuse(path, gzip.compress(b"maxmargn"), "compressed with gzip")


def test_a_newer_version(tmp_path):
    header = {"kind": "k", "meta": {}, "arrays": []}
    message = r"newer version of maxmargin \(format 2; this one reads up to 1\)"
    refuse(tmp_path / "m.mm", by_hand(header, version=2), message)
    refuse(tmp_path / "m.mm", by_hand(header, version=0), "the format is 0")
    refuse(tmp_path / "m.mm", by_hand(header, reserved=7), "reserved field 7; expected 1 and 0")


def test_another_kind(model):
    with pytest.raises(ModelFormatError, match="holds a 'tagger', expected a 'checkpoint'"):
        read_container(model, "checkpoint")


def test_no_file_and_directories(tmp_path):
    for name, error in (("none", FileNotFoundError), (".", IsADirectoryError)):
        with pytest.raises(error) as caught:
            read_container(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(model):
    model.chmod(0)
    with pytest.raises(PermissionError):
        read_container(model)


def test_special_files_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero", "/dev/null"):
        with pytest.raises(ModelFormatError, match="not a regular file"):
            read_container(path)


def test_sockets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        with pytest.raises(OSError):
            read_container("s")


def test_no_descriptor_is_left_open(tmp_path, model):
    (tmp_path / "bad").write_bytes(b"bad")
    first = os.open(model, os.O_RDONLY)
    os.close(first)
    for path in (tmp_path / "bad", tmp_path, tmp_path / "none"):
        with pytest.raises((ModelFormatError, OSError)):
            read_container(path)
    read_container(model)
    gc.collect()
    assert os.dup(0) == first
    os.close(first)


# Hostile files: all checksums are right


BODY = np.arange(8, dtype="f4").tobytes().ljust(64, b"\0") + np.arange(3, dtype="u1").tobytes()


def honest():
    """Return a header with two arrays for BODY, which begins at 1024."""
    first = {"name": "x", "dtype": "f4", "shape": [4, 2], "offset": 1024, "nbytes": 32}
    second = {"name": "y", "dtype": "u1", "shape": [3], "offset": 1088, "nbytes": 3}
    first["checksum"] = _native.checksum(BODY[:32])
    second["checksum"] = _native.checksum(BODY[64:])
    return {"kind": "k", "meta": {}, "arrays": [first, second]}


def padded(header, body=BODY):
    """Assemble a file whose header ends at 1024, whatever was done to it."""
    header = copy.deepcopy(header)
    missing = 1024 - len(by_hand(header))
    if isinstance(header["meta"], dict):
        header["meta"]["pad"] = "p" * (missing - len('"pad":""') - (len(header["meta"]) > 0))
    else:
        header["kind"] += "p" * missing
    file = by_hand(header, body)
    assert len(file) == 1024 + len(body)
    return file


def test_the_honest_file_is_good(tmp_path):
    (tmp_path / "m").write_bytes(padded(honest()))
    arrays = read_container(tmp_path / "m").arrays
    assert_same(
        arrays, {"x": np.arange(8, dtype="f4").reshape(4, 2), "y": np.arange(3, dtype="u1")}
    )


HUGE = 10**4000
WRONG_VALUES = [None, True, -1, 0, HUGE, 1.5, "text", [], [[]], {}, {"a": 1}]


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("key", ["name", "dtype", "shape", "offset", "nbytes", "checksum"])
def test_every_value_of_an_entry_is_checked(tmp_path, index, key):
    path = tmp_path / "m"
    for value in WRONG_VALUES:
        header = honest()
        header["arrays"][index][key] = value
        if key == "name" and value == "text":
            continue
        header["arrays"] = header["arrays"][: index + 1]
        refuse(path, by_hand(header, BODY) if value is HUGE else padded(header))
    header = honest()
    del header["arrays"][index][key]
    refuse(path, padded(header), f"'{key}' in entry {index} of the arrays is missing")


@pytest.mark.parametrize("key", ["kind", "meta", "arrays"])
def test_every_value_of_the_header_is_checked(tmp_path, key):
    for value in WRONG_VALUES:
        header = {"kind": "k", "meta": {}, "arrays": []} | {key: value}
        wanted = {"kind": str, "meta": dict, "arrays": list}[key]
        if type(value) is wanted and value != [[]]:
            continue
        refuse(
            tmp_path / "m", by_hand(header), key if value != [[]] or key != "arrays" else "entry 0"
        )
    header = {"kind": "k", "meta": {}, "arrays": []}
    del header[key]
    refuse(tmp_path / "m", by_hand(header), f"'{key}' in the header is missing")


def test_unknown_keys(tmp_path):
    header = honest()
    header["arrays"][0]["more"] = 1
    refuse(tmp_path / "m", padded(header), "'more' in entry 0 of the arrays is unknown")
    refuse(tmp_path / "m", padded(honest() | {"more": 1}), "'more' in the header is unknown")


@pytest.mark.parametrize("value", WRONG_VALUES)
def test_a_header_that_is_no_object(tmp_path, value):
    refuse(tmp_path / "m", by_hand(value), "the header")


@pytest.mark.parametrize(
    ("entry", "changes", "message"),
    [
        (1, {"offset": 1024}, "'offset' of array 'y' is 1024; expected 1088"),
        (1, {"offset": 1040}, "'offset' of array 'y' is 1040; expected 1088"),
        (1, {"offset": 1152}, "'offset' of array 'y' is 1152; expected 1088"),
        (0, {"offset": 0}, "'offset' of array 'x' is 0; expected 1024"),
        (0, {"offset": -64}, "'offset' of array 'x' is -64"),
        (0, {"offset": 2**64 + 1024}, "'offset' of array 'x' is 18446"),
        (0, {"offset": 1024.0}, "'offset' of array 'x' is 1024.0; expected a int"),
        (0, {"nbytes": 31}, "'nbytes' of array 'x' is 31; expected 32"),
        (0, {"nbytes": 2**64 + 32}, "'nbytes' of array 'x' is 18446"),
        (0, {"nbytes": -32}, "'nbytes' of array 'x' is -32"),
        (0, {"shape": [4, 3]}, "'nbytes' of array 'x' is 32; expected 48"),
        (0, {"shape": [-4, -2]}, "array 'x' has a size of -4; expected 0 or more"),
        (0, {"shape": [-1]}, "has a size of -1"),
        (0, {"shape": [4, True, 2]}, "a size in the shape of array 'x' is True; expected a int"),
        (0, {"shape": [4, 2.0]}, "is 2.0; expected a int"),
        (0, {"shape": [4, "2"]}, "is '2'; expected a int"),
        (0, {"shape": [4, 2, 1, 1, 1]}, "array 'x' has 5 dimensions; expected at most 4"),
        (0, {"shape": [2**62, 4]}, "larger than any memory"),
        (0, {"shape": [2**64 + 4, 2]}, "larger than any memory"),
        (0, {"shape": [2**31, 2**31]}, "larger than any memory"),
        (0, {"shape": [2**32], "nbytes": 2**34}, "'offset' of array 'y' is 1088; expected 171"),
        (1, {"shape": [2**40], "nbytes": 2**40}, "ends after 1091 bytes; expected 109951"),
        (1, {"shape": [0, 2**63], "nbytes": 0}, "larger than any memory"),
        (1, {"shape": [2**62, 2**62, 0], "nbytes": 0}, "larger than any memory"),
        (1, {"shape": [0], "nbytes": 0}, "has 1091 bytes; expected 1088: something was appended"),
        (0, {"dtype": "O"}, "array 'x' has dtype 'O'; expected one of u1, i1"),
        (0, {"dtype": "|V8"}, "has dtype '|V8'"),
        (0, {"dtype": "<f4"}, "has dtype '<f4'"),
        (0, {"dtype": ">f4"}, "has dtype '>f4'"),
        (0, {"dtype": "f2"}, "has dtype 'f2'"),
        (0, {"dtype": "U4"}, "has dtype 'U4'"),
        (0, {"dtype": ""}, "has dtype ''"),
        (0, {"dtype": "F4"}, "has dtype 'F4'"),
        (0, {"name": "y"}, "two arrays are called 'y'"),
        (0, {"checksum": 0}, "array 'x' does not match its checksum"),
        (0, {"checksum": "0"}, "the checksum of array 'x' is '0'; expected a int"),
    ],
)
def test_hostile_entries(tmp_path, entry, changes, message):
    header = honest()
    header["arrays"][entry].update(changes)
    refuse(tmp_path / "m", padded(header), message.replace("|", r"\|"))


def test_an_empty_array_between_others(tmp_path):
    header = honest()
    nothing = {"name": "z", "dtype": "f8", "shape": [2**59, 0], "offset": 1088, "nbytes": 0}
    header["arrays"].insert(1, nothing | {"checksum": _native.checksum(b"")})
    (tmp_path / "m").write_bytes(padded(header))
    assert read_container(tmp_path / "m").arrays["z"].shape == (2**59, 0)


def test_something_hidden_in_the_padding(tmp_path):
    body = bytearray(BODY)
    body[63] = 1
    refuse(tmp_path / "m", padded(honest(), bytes(body)), "bytes 1056 to 1088 are not all zero")


GOOD = '{"arrays":[],"kind":"k","meta":%s}'


def test_json_by_hand_is_good(tmp_path):
    (tmp_path / "m").write_bytes(by_hand((GOOD % '{"a":[1,0.5,"é"]}').encode()))
    assert read_container(tmp_path / "m").meta == {"a": [1, 0.5, "é"]}


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}', '{"a":1,"a":2}', '{"a":NaN}', '{"a":Infinity}', '{"a":-Infinity}',
        '{"a":1e999}', '{"a":"\\ud800"}', '{"a": 1}', '{"b":1,"a":2}', '{"a":1.50}',
        '{"a":"\\u0041"}', '{"a":' + "9" * 5000 + "}", '{"a":01}', "{'a':1}", '{"a":1,}', "{",
        "{} {}", '{"a":"\t"}', '{"a":1}//',
    ],
)  # fmt: skip
def test_json_in_another_form(tmp_path, text):
    refuse(tmp_path / "m", by_hand((GOOD % text).encode()), "not JSON in the form that maxmargin")


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"{", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"\0\0\0{", b"\xc3"]
)
def test_a_header_that_is_no_json(tmp_path, data):
    refuse(tmp_path / "m", by_hand(data), "not JSON in the form that maxmargin writes")


@pytest.mark.parametrize("levels", [100, 500, 900, 990, 1000, 5000, 200_000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting(tmp_path, levels, left, right):
    value = left * levels + ("1" if left != "[" else "") + right * levels
    for key in ("kind", "arrays"):
        text = {"arrays": "[]", "kind": '"k"', "meta": "{}"} | {key: value}
        text = ",".join(f'"{name}":{part}' for name, part in text.items())
        refuse(tmp_path / "m", by_hand(f"{{{text}}}".encode()))
    (tmp_path / "m").write_bytes(by_hand((GOOD % f'{{"a":{value}}}').encode()))
    with contextlib.suppress(ModelFormatError):
        read_container(tmp_path / "m")
    refuse(tmp_path / "m", by_hand((left * levels).encode()))


def test_a_header_over_the_limit(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(by_hand({}, length=(64 << 20) + 1))
    os.truncate(path, 65 << 20)  # sparse: nothing of this is on the disk
    with pytest.raises(ModelFormatError, match="has 67108865 bytes; expected at most 67108864"):
        read_container(path)
    refuse(path, by_hand({}, length=2**64 - 1), "has 18446744073709551615 bytes")
    refuse(path, by_hand({}, length=1000), "ends after 34 bytes; expected at least 1032")


def test_long_texts_are_not_repeated_in_messages(tmp_path):
    header = honest()
    header["arrays"][0]["name"] = "n\n" * 100_000
    refuse(tmp_path / "m", by_hand(header, BODY), "offset")
    refuse(tmp_path / "m", by_hand({"kind": "k", "meta": {}, "arrays": [], "z\n" * 9999: 1}))
    header["kind"] = "k" * 100_000
    header["arrays"] = []
    (tmp_path / "m").write_bytes(by_hand(header))
    with pytest.raises(ModelFormatError) as caught:
        read_container(tmp_path / "m", "tagger")
    assert len(str(caught.value)) < len(str(tmp_path)) + 200
