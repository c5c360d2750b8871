"""Compiled code on disk: whole or absent, shared between processes, made anew when damaged."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import FormatError
from treadle.core.printf import Conversion
from treadle.core.source import Span
from treadle.ir.nodes import Parameter
from treadle.ir.passes.instrument import ReportSite, Spelling
from treadle.ir.types import F32, F64, I32
from treadle.runtime import cache_folder, disk_cache
from treadle.runtime.built_kernel import BuiltKernel, from_bytes, to_bytes


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


def test_clear_says_what_it_removed(folder):
    for name in "abc":
        disk_cache.save(disk_cache.key_of(name), b"12345")
    unfinished = entries(folder)[0].with_suffix(".part")
    unfinished.write_bytes(b"half")
    assert disk_cache.clear().entries == 3
    assert not unfinished.exists()
    assert disk_cache.usage().entries == 0


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(blocked))
    said = []
    monkeypatch.setattr(cache_folder, "warn_once", said.append)
    disk_cache.save(disk_cache.key_of("x"), b"content")
    assert disk_cache.load(disk_cache.key_of("x")) is None
    assert disk_cache.usage().entries == 0
    (line,) = said
    assert str(blocked) in line
    assert line.endswith("/file is a file, not a folder; compiled kernels are not kept")


@pytest.mark.parametrize(
    ("chosen", "fault"),
    [("~/cache", "write the whole path"), ("a\nb", "control character"),
     ("x" * 300, "cannot be made"), ("file", "file is a file, not a folder"),
     ("file/in/it", "file is a file, not a folder")],
    ids=["home", "lines", "long", "file", "inside"],
)  # fmt: skip
def test_nonsense_for_a_folder_is_one_line_and_makes_nothing(chosen, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TREADLE_CACHE_DIR", chosen)
    said = []
    monkeypatch.setattr(cache_folder, "warn_once", said.append)
    assert not disk_cache.is_usable()
    assert disk_cache.clear().entries == 0
    (line,) = said
    assert fault in line
    assert "\n" not in line
    assert len(line) < 400
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_blanks_are_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE_DIR", "  ")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert disk_cache.folder() == tmp_path / ".cache" / "treadle"
    monkeypatch.setenv("TREADLE_CACHE_DIR", f" {tmp_path}/chosen\n")
    assert disk_cache.folder() == tmp_path / "chosen"


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(cache_folder, "warn_once", lines.append)
    return lines


@pytest.fixture
def forbid(monkeypatch):
    """Forbid ways to access folders, also to root, who runs tests in containers."""
    forbidden = {}

    def access(path, mode, **how):
        return not forbidden.get(os.fspath(path), 0) & mode

    monkeypatch.setattr(os, "access", access)
    return forbidden


def test_a_chosen_folder_that_cannot_be_written_to_is_read(tmp_path, monkeypatch, said, forbid):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    known, other = disk_cache.key_of("x"), disk_cache.key_of("y")
    disk_cache.save(known, b"content")
    forbid[str(tmp_path)] = os.W_OK
    cache_folder._found.clear()
    disk_cache.save(other, b"content")
    assert disk_cache.load(known) == b"content"
    assert disk_cache.load(other) is None
    assert disk_cache.is_usable()
    (line,) = said
    assert f"may not write to {tmp_path}; compiled kernels that are in it are used" in line


def test_a_chosen_folder_that_cannot_be_read_is_not_used(tmp_path, monkeypatch, said, forbid):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    forbid[str(tmp_path)] = os.R_OK
    disk_cache.save(disk_cache.key_of("x"), b"content")
    assert not disk_cache.is_usable()
    (line,) = said
    assert line.endswith(f"this process may not read {tmp_path}; compiled kernels are not kept")


def test_the_usual_folder_that_cannot_be_written_to(tmp_path, monkeypatch, said, forbid):
    monkeypatch.delenv("TREADLE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache_folder, "_usual", lambda: tmp_path / "treadle")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    forbid[str(tmp_path / "treadle")] = os.W_OK
    disk_cache.save(disk_cache.key_of("x"), b"content")
    assert disk_cache.load(disk_cache.key_of("x")) == b"content"
    assert disk_cache.folder().parent == tmp_path / "temporary"
    (line,) = said
    assert f"may not write to {tmp_path / 'treadle'}: compiled kernels are kept in" in line


def test_subfolders_of_another_user(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    lines = []
    monkeypatch.setattr(disk_cache, "warn_once", lines.append)
    for text in ("x", "y"):
        disk_cache.save(disk_cache.key_of(text), b"content")
    closed = tmp_path / disk_cache.key_of("x")[:2]
    scan, make = os.scandir, disk_cache.tempfile.mkstemp

    def refuse(path, after, *given, **named):
        if os.fspath(path) == str(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return after(*given, **named)

    monkeypatch.setattr(os, "scandir", lambda path: refuse(path, scan, path))
    monkeypatch.setattr(
        disk_cache.tempfile,
        "mkstemp",
        lambda dir, suffix: refuse(dir, make, dir=dir, suffix=suffix),
    )
    assert disk_cache.usage().entries == 1
    disk_cache.save(disk_cache.key_of("x"), b"content")
    assert disk_cache.clear().entries == 1
    (line,) = lines
    assert line.endswith("one cannot be written (Permission denied)")


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, said):
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(open_folder))
    key = disk_cache.key_of("x")
    disk_cache.save(key, b"content")
    assert disk_cache.load(key) is None
    assert not list(open_folder.iterdir())
    (line,) = said
    assert "chmod 700" in line


def test_another_users_folder_is_not_used(tmp_path, monkeypatch, said):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr(cache_folder, "is_trusted", lambda facts: facts.st_uid == os.geteuid())
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(theirs))
    assert disk_cache.load(disk_cache.key_of("x")) is None
    assert "belongs to another user" in said[0]


def test_another_users_entry_is_not_read(folder, monkeypatch):
    key = disk_cache.key_of("x")
    disk_cache.save(key, b"content")
    monkeypatch.setattr(disk_cache, "is_trusted", lambda facts: False)
    assert disk_cache.load(key) is None
    assert entries(folder)  # and is not ours to remove


def test_what_is_made_is_for_this_user_alone(tmp_path, monkeypatch):
    chosen = tmp_path / "new" / "cache"
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(chosen))
    disk_cache.save(disk_cache.key_of("x"), b"content")
    assert chosen.stat().st_mode & 0o777 == 0o700
    (entry,) = entries(chosen)
    assert entry.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("base", ["", "relative/folder"])
def test_cache_homes_that_count_as_not_set(tmp_path, monkeypatch, base):
    monkeypatch.delenv("TREADLE_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert disk_cache.folder() == tmp_path / ".cache" / "treadle"


def _homeless(self):
    raise RuntimeError("Could not determine home directory.")


def test_without_a_home_there_is_a_folder_among_the_temporary_files(tmp_path, monkeypatch, said):
    for name in ("TREADLE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", classmethod(_homeless))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    key = disk_cache.key_of("x")
    disk_cache.save(key, b"content")
    assert disk_cache.load(key) == b"content"
    assert disk_cache.folder() == tmp_path / f"treadle-{os.getuid()}"
    assert disk_cache.folder().stat().st_mode & 0o777 == 0o700
    (line,) = said
    assert line.startswith("there is no home folder: compiled kernels are kept in ")


def test_a_user_without_home_and_name_computes(tmp_path):
    """As in a container that runs with a number of its own."""
    code = (
        "import pwd\n"
        "def unknown(number): raise KeyError(number)\n"
        "pwd.getpwuid = unknown\n"
        "import treadle as td\n"
        "assert (td.ones(3, device='cpu') * 2 + 1).tolist() == [3, 3, 3]\n"
        "assert td.zeros(3, device='cpu').tolist() == [0, 0, 0]\n"
    )
    unknown = ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME", "TREADLE_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in unknown}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert len(entries(tmp_path / f"treadle-{os.getuid()}")) == 2  # a kernel, and its key


def test_what_was_used_longest_ago_goes_first(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 256 * 5000)
    keys = [f"ab{second:02x}{number:060x}" for number, second in enumerate((1, 2, 3, 4, 5, 6))]
    for age, key in enumerate(keys[:4]):
        disk_cache.save(key, bytes(1000))
        path = folder / "ab" / f"{key}.entry"
        when = time.time() - 10_000 * (4 - age)
        os.utime(path, (when, when))
    assert disk_cache.load(keys[0]) == bytes(1000)  # used now
    disk_cache.save(keys[4], bytes(1000))
    disk_cache.save(keys[5], bytes(1000))
    left = [key for key in keys if disk_cache.load(key) is not None]
    assert left == [keys[0], *keys[3:]]
    assert disk_cache.usage().nbytes <= disk_cache.MOST_BYTES // 256


def test_what_was_not_used_for_months_goes(folder):
    old, new = disk_cache.key_of("old"), disk_cache.key_of("new")
    # Its second byte names the other's subfolder, and what follows says that both are trimmed.
    new = f"{new[:2]}{old[:2]}0{new[5:]}"
    disk_cache.save(old, b"content")
    (path,) = entries(folder)
    unfinished = path.with_suffix(".part")  # of a process that was killed
    unfinished.write_bytes(b"half")
    other = path.with_name("somebody else's")
    other.write_bytes(b"left alone")
    when = time.time() - (disk_cache.KEPT_DAYS + 1) * 86400
    for each in (path, unfinished, other):
        os.utime(each, (when, when))
    disk_cache.save(new, b"content")
    assert not path.exists()
    assert not unfinished.exists()
    assert other.exists()
    assert disk_cache.load(new) == b"content"


def test_one_entry_may_be_larger_than_its_share(monkeypatch):
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 256)
    key = disk_cache.key_of("x")
    key = f"{key[:4]}0{key[5:]}"
    disk_cache.save(key, bytes(1000))
    assert disk_cache.load(key) == bytes(1000)


def test_few_saves_look_at_other_entries(folder, monkeypatch):
    """One in 16 trims, and so the folder stays small."""
    looked = []
    real = disk_cache._tidy
    monkeypatch.setattr(disk_cache, "_tidy", lambda *given: looked.append(given) or real(*given))
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 256 * 5000)
    for number in range(64):
        key = disk_cache.key_of(str(number))
        disk_cache.save(f"abcd{key[4:]}", bytes(1000))
    saved = [disk_cache.key_of(str(number))[4] for number in range(64)]
    assert len(looked) == 2 * saved.count("0")
    assert len(entries(folder)) < 64


_BUILT = BuiltKernel(
    KernelCode(
        "llvm", "", "k", "entry", "text \U0001f9f5 \ud800", Dim3(4, 2), Dim3(8),
        (Binding(("a", "b"), True),), ParameterLayout.of((Parameter("n", I32, ("size", 0)),)),
        folded=True, requires=frozenset({"float64"}),
    ),
    (
        ReportSite(
            "print", Span("f.py", 3, 1, 9), ("x = ", F32, Spelling(Conversion("f", width="*"), F64))
        ),
    ),
    frozenset({0, 2}),
    frozenset(),
)  # fmt: skip


@pytest.mark.parametrize("binary", [None, b"", b"machine code"])
def test_entries_are_plain_data(binary):
    assert from_bytes(to_bytes(_BUILT, binary)) == (_BUILT, binary)


@pytest.mark.parametrize("text", [
    b"", b"[]", b"null", b"[1,true]", b'[["Path","/"],false]', b'[["system","ls"],false]',
    b'[{"BuiltKernel":1},false]', b'[["tuple",1],false]', b'[["BuiltKernel",1],false]',
    b"[" * 100_000,
])  # fmt: skip
def test_nothing_else_is_made_from_an_entry(text):
    data = len(text).to_bytes(8, "little") + text
    with pytest.raises(FormatError, match="not a compiled kernel"):
        from_bytes(data)


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
from treadle.codegen import pipeline
printed = []
plain = pipeline.print_code
def print_code(*arguments):
    printed.append(1)
    return plain(*arguments)
pipeline.print_code = print_code
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
    if device == "webgpu":  # what follows is the same for all devices
        return
    assert run("after another kernel") == 0
    for path in entries(folder):
        path.write_bytes(path.read_bytes()[:-1])
    assert run() == 1
    assert run() == 0


OWN_KERNELS = """
import sys, numpy as np, treadle as td
x = np.random.default_rng(0).standard_normal((2, 3, 9, 9)).astype(np.float32)
w = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
a, b = td.asarray(x, device=sys.argv[1]), td.asarray(w, device=sys.argv[1])
y = td.nn.functional.softmax(td.nn.functional.conv2d(a, b), -1).numpy()
rows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
right = np.exp(np.einsum("bcijkl,ockl->boij", rows, w))
assert np.allclose(y, right / right.sum(-1, keepdims=True), rtol=1e-4)
print(*(name in sys.modules for name in ("treadle.lang.lower", "treadle.codegen.pipeline")))
"""


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_the_librarys_kernels_are_found_without_being_lowered(folder, device):
    def run():
        done = subprocess.run(
            [sys.executable, "-c", OWN_KERNELS, device], capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert run() == ["True", "True"]
    assert run() == ["False", "False"]
    if device == "webgpu":  # what follows is the same for all devices
        return
    for path in entries(folder):
        path.write_bytes(path.read_bytes()[:-1])
    assert run() == ["True", "True"]
    assert run() == ["False", "False"]


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
