"""Large files that were read are kept on disk, and read again when anything changes."""

from pathlib import Path

import pytest

import treadle as td
from treadle.cuda_cpp import kept_files
from treadle.cuda_cpp.lower import program, read
from treadle.cuda_cpp.syntax import source_file
from treadle.runtime import disk_cache

TEXT = """
#include "sizes.h"
#ifdef TWICE
#define FACTOR 2
#endif
struct Pair { float first[3]; int second : 3; };
template <typename T, int N = WIDTH> __device__ T sum(const T (&x)[N]) {
    T total = 0;
    for (int i = 0; i < N; ++i) total += x[i] * FACTOR;
    return total;
}
__global__ void compute(float *out) {
    float x[WIDTH];
    for (int i = 0; i < WIDTH; ++i) x[i] = i + 1;
    if (threadIdx.x == 0) *out = sum(x);
    auto twice = [](float y) { return y + y; };
    out[1] = twice("ab"[0] == 'a' ? 1.5f : 0);
}
"""


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Opens a file in a cache of its own, and says what it computes and whether it was read."""
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_files, "_FEWEST_TOKENS", 10)
    readings = []
    monkeypatch.setattr(
        "treadle.cuda_cpp.lower.read", lambda *given: readings.append(1) or read(*given)
    )

    def open_it(path: Path, **options):
        readings.clear()
        module = td.cuda_module(path, **options)
        out = td.zeros(2, device="cpu")
        module.compute[1, 1](out)
        return out.numpy().tolist(), bool(readings)

    return open_it


@pytest.fixture
def path(tmp_path):
    (tmp_path / "sizes.h").write_text("#pragma once\n#define WIDTH 3\n#define FACTOR 1\n")
    (tmp_path / "file.cu").write_text(TEXT)
    return tmp_path / "file.cu"


def test_a_file_is_read_once(opened, path):
    assert opened(path) == ([6, 3], True)
    assert opened(path) == ([6, 3], False)
    assert opened(path, defines={"OTHER": 1}) == ([6, 3], True)
    assert opened(path, double="float") == ([6, 3], True)
    assert opened(path) == ([6, 3], False)


def test_a_file_is_checked_once(opened, path, monkeypatch):
    checks = []
    own = program.Program.checked
    monkeypatch.setattr(program.Program, "checked", lambda self: checks.append(1) or own(self))
    opened(path)
    opened(path)
    assert checks == [1]
    path.write_text(TEXT.replace("out[1] =", "out[1] = nothing +"))
    for _ in range(2):  # a file with errors is not kept
        with pytest.raises(td.errors.CompileError, match="nothing is not declared"):
            opened(path)


def test_warnings_are_kept(opened, path):
    path.write_text(TEXT.replace("out[1] =", "int unset; out[1] = unset * 0 + 1 / 0 +"))
    for _ in range(2):
        with pytest.warns(td.errors.CompileWarning) as caught:
            opened(path)
        assert ["unset is read here" in str(one.message) for one in caught] == [True, False]


def test_a_changed_file_is_read_again(opened, path):
    assert opened(path) == ([6, 3], True)
    path.write_text(TEXT.replace("1.5f", "2.5f"))
    assert opened(path) == ([6, 5], True)
    (path.parent / "sizes.h").write_text("#define WIDTH 4\n#define FACTOR 1\n")
    assert opened(path) == ([10, 5], True)
    assert opened(path) == ([10, 5], False)


def test_a_header_that_was_not_there_is_found(opened, path):
    near, far = path.parent, path.parent / "far"
    far.mkdir()
    (near / "sizes.h").rename(far / "sizes.h")
    assert opened(path, include=far) == ([6, 3], True)
    assert opened(path, include=far) == ([6, 3], False)
    (near / "sizes.h").write_text("#define WIDTH 2\n#define FACTOR 1\n")
    assert opened(path, include=far) == ([3, 3], True)
    (near / "sizes.h").unlink()
    assert opened(path, include=far) == ([6, 3], True)


@pytest.mark.parametrize("damage", [lambda x: x[:-9], lambda x: b"", lambda x: x[::-1]])
def test_a_damaged_entry_is_read_again(opened, path, damage):
    opened(path)
    entry = _entry()
    disk_cache.save(entry.stem, damage(disk_cache.load(entry.stem)))
    assert opened(path) == ([6, 3], True)
    assert opened(path) == ([6, 3], False)


def _entry() -> Path:
    """The entry of the file: of all in the cache, the one that `from_bytes` takes."""
    for entry in disk_cache.folder().glob("??/*.entry"):
        try:
            source_file.from_bytes(disk_cache.load(entry.stem))
        except ValueError:
            continue
        return entry
    raise AssertionError("nothing was kept")


def test_messages_are_the_same(opened, path):
    path.write_text(TEXT.replace("*out = sum(x)", "*out = sum(x, 1)"))
    messages = []
    for _ in range(2):
        with pytest.raises(td.errors.CompileError) as caught:
            opened(path)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "file.cu:15" in messages[0]
    assert "^^^" in messages[0]


def test_no_other_class_is_read():
    import pickle
    import zlib

    for one in (print, Path("/"), {"a": 1}, 3):
        with pytest.raises(ValueError, match="not a"):
            source_file.from_bytes(zlib.compress(pickle.dumps(one)))


def test_trees_are_the_same():
    whole = read(
        TEXT.replace('#include "sizes.h"', "#define WIDTH 3\n#define FACTOR 1")
        + "enum class E { A }; using enum E; template <class T> concept C = sizeof(T) > 1;\n"
        "template <C T> requires (C<T> && true) __device__ int g(C auto x) { return 0; }\n",
        "f",
        {},
        (),
    )
    assert source_file.from_bytes(source_file.to_bytes(whole)) == whole
