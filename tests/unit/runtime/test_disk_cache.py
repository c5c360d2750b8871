"""Compiled code on disk: whole or absent, shared between processes, made anew when damaged."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle.runtime import disk_cache


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    return tmp_path


def entries(folder):
    return sorted(folder.rglob("*.entry"))


def test_what_is_saved_is_loaded():
    key = disk_cache.key_of("some", "text")
    assert disk_cache.load(key) is None
    disk_cache.save(key, b"content")
    assert disk_cache.load(key) == b"content"
    assert disk_cache.usage().entries == 1


def test_keys_tell_where_texts_end():
    assert disk_cache.key_of("ab", "c") != disk_cache.key_of("a", "bc")


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign"])
def test_a_damaged_entry_is_dropped(folder, damage):
    key = disk_cache.key_of("x")
    disk_cache.save(key, bytes(range(200)))
    (path,) = entries(folder)
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[-3] ^= 1
    damaged = {"cut": data[:50], "flipped": data, "empty": b"", "foreign": b"something else"}
    path.write_bytes(bytes(damaged[damage]))
    assert disk_cache.load(key) is None
    assert not path.exists()
    disk_cache.save(key, b"new")
    assert disk_cache.load(key) == b"new"


def test_clear_says_what_it_removed():
    for name in "abc":
        disk_cache.save(disk_cache.key_of(name), b"12345")
    assert disk_cache.clear().entries == 3
    assert disk_cache.usage().entries == 0


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(blocked))
    disk_cache.save(disk_cache.key_of("x"), b"content")
    assert disk_cache.load(disk_cache.key_of("x")) is None


def _write_and_read(number):
    for turn in range(200):
        key = disk_cache.key_of(str(turn % 5))
        disk_cache.save(key, bytes([turn % 5]) * 10_000)
        found = disk_cache.load(key)
        if found != bytes([turn % 5]) * 10_000:
            return f"process {number}, turn {turn}"
    return ""


def test_processes_share_it():
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert pool.map(_write_and_read, range(3)) == ["", "", ""]


SCRIPT = """
import sys, numpy as np, treadle as td
from treadle.codegen import lowering
printed = []
plain = lowering.print_code
def print_code(*arguments):
    printed.append(1)
    return plain(*arguments)
lowering.print_code = print_code
for _ in sys.argv[2:]:  # kernels made before it from text are no part of its key
    td.kernel(source="def other(x: td.Array[td.f32]): x[0] = 1.0")
@td.kernel(source='''
def triple(x: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        x[i] = 3.0 * x[i]
''')
def triple(x): ...
x = td.asarray([1.0] * 10, device=sys.argv[1])
triple[1, 32](x)
assert x.tolist() == [3.0] * 10
print(len(printed))
"""


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_a_second_process_compiles_nothing(folder, device):
    def run(*more):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, device, *more],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout)

    assert run() == 1
    assert run() == 0
    assert run("after another kernel") == 0
    for path in entries(folder):
        path.write_bytes(path.read_bytes()[:-1])
    assert run() == 1
    assert run() == 0


def test_another_constant_is_another_entry(folder):
    factor = 2.0

    @td.kernel
    def scale(x: td.Array[td.f32]):
        i = td.grid(1)
        x[i] = factor * x[i]

    x = td.ones(4, device="cpu").realize()
    before = len(entries(folder))
    scale[1, 4](x)
    factor = 5.0
    scale[1, 4](x)
    np.testing.assert_array_equal(x.numpy(), np.full(4, 10, np.float32))
    assert len(entries(folder)) == before + 2
