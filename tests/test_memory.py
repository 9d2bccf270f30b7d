"""How much memory there is: real and pretended systems, and the refusal in words."""

from __future__ import annotations

import os
import sys

import pytest

from maxmargin import memory
from maxmargin.memory import available_bytes, format_bytes, require_memory

MEMINFO = "MemTotal:       8000 kB\nMemFree: 10 kB\nMemAvailable:    4000 kB\n"


def system(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_of_this_machine():
    available = available_bytes()
    assert 0 < available <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_meminfo_alone(tmp_path):
    assert available_bytes(system(tmp_path, {"proc/meminfo": MEMINFO})) == 4000 * 1024


def test_control_group_version_2(tmp_path):
    root = system(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/user/job/memory.max": "max\n",
            "sys/fs/cgroup/user/job/memory.current": "5\n",
            "sys/fs/cgroup/user/memory.max": "1000000\n",
            "sys/fs/cgroup/user/memory.current": "400000\n",
            "sys/fs/cgroup/user/memory.stat": "anon 1\ninactive_file 50000\n",
        },
    )
    assert available_bytes(root) == 1_000_000 - 400_000 + 50_000  # the parent's limit counts


def test_control_group_version_1(tmp_path):
    root = system(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:cpu:/x\n3:memory:/hosts/path\n1:name=systemd:/y\n",
            # in a container the group itself is mounted, whatever the host's path says
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "700000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "100000\n",
            "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 7\n",
        },
    )
    assert available_bytes(root) == 600_007


def test_group_over_its_limit_leaves_nothing(tmp_path):
    root = system(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "10\n",
            "sys/fs/cgroup/memory.current": "20\n",
        },
    )
    assert available_bytes(root) == 0


@pytest.mark.parametrize("text", ["", "MemAvailable:\n", "MemAvailable: many kB\n", "\0\n::\n"])
def test_nonsense_falls_back_to_sysconf(tmp_path, monkeypatch, text):
    root = system(tmp_path, {"proc/meminfo": text, "proc/self/cgroup": text})
    pages = {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}

    def sysconf(name):
        if name not in pages:
            raise ValueError("unrecognized configuration name")
        return pages[name]

    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert available_bytes(root) == 40960


def test_unknown(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert available_bytes(tmp_path) is None
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    require_memory("an array", 10**30)  # nothing known, nothing refused


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1500, "1.5 kB"),
        (2 * 10**9, "2.0 GB"),
        (10**18, "1000.0 PB"),
    ],
)
def test_format_bytes(size, text):
    assert format_bytes(size) == text


def test_refusal_names_array_need_and_rest(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 5_000_000)
    require_memory("the weights", 5_000_000)
    with pytest.raises(MemoryError, match=r"the weights needs 5\.1 MB, but only 5\.0 MB.*float32"):
        require_memory("the weights", 5_100_000)
    with pytest.raises(MemoryError, match=r"; buy more$"):
        require_memory("the weights", 5_100_000, advice="buy more")
