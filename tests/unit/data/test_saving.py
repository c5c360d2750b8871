"""States in safetensors files: there and back, for every reader, and whatever happens to a file."""

from __future__ import annotations

import errno
import gzip
import io
import json
import math
import os
import random
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import ml_dtypes
import numpy as np
import pytest

import treadle as td
from treadle.core.errors import FormatError
from treadle.formats import safetensors as own

try:
    import safetensors.numpy
    import safetensors.torch
    import torch
except ImportError:
    torch = None

DTYPES = (
    td.bool, td.u8, td.i8, td.u16, td.i16, td.u32, td.i32, td.u64, td.i64,
    td.float16, td.bfloat16, td.float32, td.float64, td.complex64, td.complex128,
)  # fmt: skip


def tensor(*shape, dtype=td.float32, seed=0):
    data = np.random.default_rng(seed).integers(0, 2 if dtype == td.bool else 100, shape)
    return td.asarray(data.astype(dtype.numpy), device="cpu")


def same(one, two):
    """Whether two states are the same, types, order and bits."""
    if isinstance(one, (td.Tensor, np.ndarray)):
        assert type(one) is type(two)
        mine, theirs = np.asarray(one), np.asarray(two)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert mine.tobytes() == theirs.tobytes()
        return True
    assert type(one) is type(two)
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    return repr(one) == repr(two)


def packed(header, data=b""):
    """A file with this header, which is text, bytes, or an object."""
    text = header if isinstance(header, (str, bytes)) else json.dumps(header)
    raw = text.encode() if isinstance(text, str) else text
    return len(raw).to_bytes(8, "little") + raw + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


# --- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_comes_back(dtype, tmp_path):
    path = tmp_path / "a.safetensors"
    state = {"x": tensor(3, 5, dtype=dtype), "none": tensor(0, 4, dtype=dtype),
             "one": tensor(dtype=dtype), "view": tensor(4, 6, dtype=dtype).T[::2]}  # fmt: skip
    td.save(state, path)
    assert same(td.load(path, device="cpu"), state)


def test_a_nested_state_comes_back(tmp_path):
    path = tmp_path / "run.safetensors"
    state = {
        "model": {"w": tensor(2, 3), "b": tensor(3)},
        "optimizer": {
            "state": {0: {"step": 3, "exp_avg": tensor(2, seed=1)}, 1: {}},
            "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0, 1], "a": None}],
        },
        "numbers": [0, -(2**70), True, False, 0.1, -0.0, math.nan, math.inf, -math.inf, 1 - 2j],
        "complex nan": complex(math.nan, -0.0),
        "text": 'a "quoted" \u00e9\U0001f600 text\n', "": (), "list": [[], [()]],
        "array": np.arange(3, dtype=np.int16), 1.5: {True: None, None: 1},
        "half": np.asarray([1, 2], ml_dtypes.bfloat16), "a.b": tensor(1), "a": {"b": tensor(2)},
        "__metadata__": tensor(1, seed=3),
    }  # fmt: skip
    td.save(state, path)
    assert same(td.load(path, device="cpu"), state)
    alone_too = tensor(2), [tensor(1), 2], 7, {}, None, "text", {"epoch": 3}, {"format": tensor(1)}
    for alone in alone_too:
        td.save(alone, path)
        assert same(td.load(path, device="cpu"), alone)
    td.save({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)}, path)
    assert same(td.load(path), {"a": 0.5, "b": 3, "c": True})


def test_what_requires_gradients_is_saved_by_its_values(tmp_path):
    path = tmp_path / "a.safetensors"
    x = tensor(3).requires_grad_()
    td.save({"x": x, "y": x * 2}, path)
    loaded = td.load(path, device="cpu")
    assert loaded["y"].tolist() == (x * 2).tolist()
    assert not loaded["x"].requires_grad


def test_tied_tensors_are_saved_once_and_come_back_tied(tmp_path):
    path = tmp_path / "a.safetensors"
    shared = tensor(100)
    for state in ({"embed": shared, "head": shared.detach(), "other": tensor(2)},
                  {"m": {"embed": shared, "head": shared}, "format": shared}):  # fmt: skip
        td.save(state, path)
        assert path.stat().st_size < 1000
        loaded = td.load(path, device="cpu")
        assert same(dict(sorted(loaded.items())), dict(sorted(state.items())))
        part = loaded.get("m", loaded)
        assert part["embed"] is part["head"]
    td.save({"format": shared, "x": shared}, path)  # the name of what the file tells of itself
    loaded = td.load(path, device="cpu")
    assert loaded["format"] is loaded["x"]
    td.save({"low": shared[:60], "high": shared[40:]}, path)
    loaded = td.load(path, device="cpu")
    assert (loaded["low"].shape, loaded["high"].shape) == ((60,), (60,))


def test_a_flat_state_is_a_plain_file(tmp_path):
    path = tmp_path / "a.safetensors"
    td.save({"b": tensor(3, dtype=td.i8), "w": tensor(2, 2), "tied": tensor(1)}, path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert (8 + length) % 8 == 0
    header = json.loads(raw[8 : 8 + length])
    assert header == {
        "__metadata__": {"format": "pt"},
        "b": entry("I8", [3], [20, 23]), "w": entry("F32", [2, 2], [0, 16]),
        "tied": entry("F32", [1], [16, 20]),
    }  # fmt: skip
    assert len(raw) == 8 + length + 23


def test_a_file_of_another_writer_loads(tmp_path):
    path = tmp_path / "a.safetensors"
    data = np.arange(4, dtype=np.float32).tobytes()
    tied = {"__metadata__": {"head": "w", "note": "text"}, "w": entry("F32", [2, 2], [0, 16])}
    path.write_bytes(packed(json.dumps(tied) + "   ", data))
    loaded = td.load(path, device="cpu")
    assert loaded["w"].tolist() == [[0, 1], [2, 3]]
    assert loaded["head"] is loaded["w"]  # as safetensors.torch.save_model tells of it
    assert set(loaded) == {"w", "head"}


def test_what_cannot_be_saved_is_told_with_its_place(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"as it was")
    endless: list = []
    endless.append(endless)
    for state, message in (
        ({"a": [1, {2}]}, r"state\['a'\]\[1\] is a set"), ({"g": td.Generator(1)}, "get_state"),
        ({"a": {(1, 2): 3}}, r"key \(1, 2\)"), ({"a": np.array(["x"])}, "'a' cannot be saved"),
        (endless, "levels"), ({"\ud800": tensor(1)}, "Unicode"),
        ({"a": np.longdouble(1)}, "longdouble"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=message):
            td.save(state, path)
    assert path.read_bytes() == b"as it was"
    assert list(tmp_path.iterdir()) == [path]


if torch is not None:

    def test_pytorch_reads_what_is_saved_and_the_other_way(tmp_path):
        path = tmp_path / "a.safetensors"
        state = {str(dtype): tensor(3, 2, dtype=dtype) for dtype in DTYPES[:-1]}
        td.save(state, path)
        theirs = safetensors.torch.load_file(path)
        for name, mine in state.items():
            assert str(theirs[name].dtype) == f"torch.{name}"
            assert theirs[name].tolist() == mine.tolist()
        del state["bfloat16"]
        td.save(state, path)
        for name, array in safetensors.numpy.load_file(path).items():
            assert np.array_equal(array, state[name].numpy())
        td.save({"epoch": 3, "x": {"y": tensor(2)}}, path)
        assert safetensors.torch.load_file(path)["x.y"].tolist() == tensor(2).tolist()

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        safetensors.torch.save_file(model.state_dict(), path)
        loaded = td.load(path, device="cpu")
        assert {k: v.tolist() for k, v in loaded.items()} == {
            k: v.tolist() for k, v in model.state_dict().items()
        }
        td.save(loaded, path)
        model.load_state_dict(safetensors.torch.load_file(path))

        tied = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False) for _ in range(2)])
        tied[1].weight = tied[0].weight
        safetensors.torch.save_model(tied, str(path))
        loaded = td.load(path, device="cpu")
        assert loaded["0.weight"] is loaded["1.weight"]
        td.save(loaded, path)
        safetensors.torch.load_model(tied, str(path))


# --- an interrupted save -------------------------------------------------------------------------


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.safetensors"
    td.save({"x": tensor(3)}, path)
    os.chmod(path, 0o640)
    before = path.read_bytes()

    broken = {"x": tensor(4), "y": np.zeros(2)}
    original = own.write

    def fails(file, *rest):
        file.write(b"half")
        raise KeyboardInterrupt

    own.write = fails
    try:
        with pytest.raises(KeyboardInterrupt):
            td.save(broken, path)
    finally:
        own.write = original
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    link = tmp_path / "latest"
    link.symlink_to(path)
    td.save(broken, link)
    assert link.is_symlink()
    assert same(td.load(path, device="cpu"), broken)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(FileNotFoundError):
        td.save({}, tmp_path / "nowhere" / "a.safetensors")


def test_what_is_no_file_is_written_to(tmp_path):
    state = {"x": tensor(3)}
    td.save(state, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    link = tmp_path / "nowhere"
    link.symlink_to("/dev/null")
    td.save(state, link)
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    pipe, path = tmp_path / "pipe", tmp_path / "a.safetensors"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    td.save(state, pipe)
    reader.join()
    path.write_bytes(read[0])
    assert same(td.load(path, device="cpu"), state)
    assert stat.S_ISFIFO(pipe.stat().st_mode)

    with pytest.raises(IsADirectoryError):
        td.save(state, tmp_path)
    assert set(tmp_path.iterdir()) == {link, pipe, path}


def test_a_file_that_is_open_is_written_to(tmp_path):
    path = tmp_path / "a.safetensors"
    program = "import treadle as td; td.save({'x': td.ones(3, device='cpu')}, '/dev/stdout')"
    with path.open("wb") as file:
        inode = os.fstat(file.fileno()).st_ino
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True)
    assert path.stat().st_ino == inode
    assert td.load(path, device="cpu")["x"].tolist() == [1, 1, 1]


class Slow(io.RawIOBase):
    """A file without a buffer: few bytes at a time, and no places in it."""

    def __init__(self, content=b""):
        self.content, self.at = bytearray(content), 0

    def writable(self):
        return True

    def readable(self):
        return True

    def write(self, data):
        self.content += bytes(data[:7])
        return min(7, len(data))

    def readinto(self, into):
        part = self.content[self.at : self.at + min(5, len(into))]
        into[: len(part)] = part
        self.at += len(part)
        return len(part)


class Few:
    """An object with the methods that matter, and no more."""

    def __init__(self, content=b""):
        self.content = bytearray(content)

    def write(self, data):
        self.content += data

    def read(self):
        return bytes(self.content)


def test_open_files(tmp_path):
    state = {"w": tensor(3, 2), "deep": {"n": 5, "b": tensor(3, dtype=td.i8)}}
    path = tmp_path / "a.safetensors"
    td.save(state, path)
    whole = path.read_bytes()

    memory = io.BytesIO()
    memory.write(b"before")
    td.save(state, memory)
    assert memory.getvalue() == b"before" + whole
    memory.seek(6)
    assert same(td.load(memory, device="cpu"), state)
    assert memory.tell() == 6 + len(whole)  # and it is still open
    with pytest.raises(FormatError, match="it has 0 bytes"):  # as it stands at its end
        td.load(memory, device="cpu")
    memory.seek(0)
    with pytest.raises(FormatError, match="no safetensors file"):
        td.load(memory, device="cpu")

    with path.open("r+b") as file:
        assert same(td.load(file, device="cpu"), state)
        file.seek(0)
        td.save(state, file)
        assert not file.closed
    with gzip.open(tmp_path / "packed", "wb") as file:
        td.save(state, file)
    with gzip.open(tmp_path / "packed") as file:
        assert same(td.load(file, device="cpu"), state)
    for made in (Slow(), Few()):
        td.save(state, made)
        assert made.content == whole
        assert same(td.load(made, device="cpu"), state)


def test_files_that_are_not_for_bytes(tmp_path):
    path = tmp_path / "a.safetensors"
    for act, mode in ((lambda f: td.save({}, f), "w"), (lambda f: td.load(f, device="cpu"), "r")):
        with path.open(mode) as file, pytest.raises(TypeError, match=f"with the mode '{mode}b'"):
            act(file)
    with path.open("rb") as file, pytest.raises(io.UnsupportedOperation):
        td.save({"x": tensor(1)}, file)


def test_links_are_followed(tmp_path):
    state = {"x": tensor(3)}
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to(second)
    second.symlink_to(first)
    with pytest.raises(OSError, match="symbolic links"):
        td.save(state, first)
    assert first.is_symlink()
    assert second.is_symlink()
    second.unlink()
    td.save(state, first)  # a link to what is not there yet
    assert first.is_symlink()
    assert same(td.load(second, device="cpu"), state)


def test_a_file_of_several_names_stays_one(tmp_path):
    path, other = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    td.save({"x": np.zeros(1000)}, path)
    other.hardlink_to(path)
    state = {"x": tensor(3)}
    td.save(state, path)
    assert path.samefile(other)
    assert same(td.load(other, device="cpu"), state)
    assert set(tmp_path.iterdir()) == {path, other}


def test_a_mount_of_its_own_stays_one(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    td.save({"x": np.zeros(1000)}, path)
    inode = path.stat().st_ino

    def is_busy(source, target):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "replace", is_busy)
    state = {"x": tensor(3)}
    td.save(state, path)
    assert path.stat().st_ino == inode
    assert same(td.load(path, device="cpu"), state)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a" * 250, "é" * 125, "x" * 255])
def test_long_names(tmp_path, name):
    state = {"x": tensor(3)}
    for _ in range(2):
        td.save(state, tmp_path / name)
    assert same(td.load(tmp_path / name, device="cpu"), state)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_kill_during_a_save_leaves_a_whole_file(tmp_path):
    path = tmp_path / "a.safetensors"
    program = f"""
        import os, sys
        import numpy as np, treadle as td
        td.save({{"n": 0, "x": np.zeros(3)}}, {str(tmp_path) + ".first"!r})  # imports what it takes
        for line in sys.stdin:
            child = os.fork()
            while child == 0:
                n = int(line)
                td.save({{"n": n, "x": np.full(300_000, n), "y": np.full(3, n)}}, {str(path)!r})
            print(child, flush=True)
            os.waitpid(child, 0)
            print("killed", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    td.save({"n": -1, "x": np.full(1, -1), "y": np.full(1, -1)}, path)
    unfinished = set()
    with process:
        for n in range(12):
            process.stdin.write(f"{n}\n")
            child = int(process.stdout.readline())
            time.sleep(random.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "killed\n"
            state = td.load(path, device="cpu")
            assert state["n"] <= n
            assert np.all(state["x"] == state["n"])
            assert np.all(state["y"] == state["n"])
            unfinished.update(tmp_path.glob(".a.safetensors.*.tmp"))
        process.stdin.close()
    assert state["n"] > -1
    assert len(unfinished) <= 12


# --- files that lie ------------------------------------------------------------------------------

HUGE = 2**62
HOSTILE = {
    "empty": (b"", "0 bytes"),
    "short": (b"\x01\x00", "truncated"),
    "long header": (packed("{}")[:8].replace(b"\x02", b"\xff") + b"{}", "255"),
    "huge header": (b"\xff" * 8 + b"{}", "header should take"),
    "no JSON": (packed("{'a': 1}"), "not JSON"),
    "not UTF-8": (packed(b'{"\xff": 1}'), "UTF-8"),
    "UTF-16": (packed("{}".encode("utf-16")), "UTF-8"),
    "deep": (packed("[" * 100_000), "nested"),
    "deep objects": (packed('{"a":' * 100_000), "nested"),
    "no object": (packed("[1]"), "object"),
    "NaN": (packed('{"a": NaN}'), "NaN"),
    "twice": (packed('{"a": 1, "a": 2}'), "twice"),
    "many digits": (packed('{"a": ' + "9" * 10_000 + "}"), "not JSON"),
    "metadata": (packed({"__metadata__": {"a": 1}}), "texts"),
    "metadata list": (packed({"__metadata__": []}), "texts"),
    "no entry": (packed({"a": 3}), "tell its dtype"),
    "more": (packed({"a": entry() | {"more": 1}}, b"1234"), "nothing else"),
    "unknown dtype": (packed({"a": entry("F31")}, b"1234"), "F31"),
    "no dtype": (packed({"a": entry(["F32"])}, b"1234"), "dtype"),
    "8-bit float": (packed({"a": entry("F8_E4M3", [4])}, b"1234"), "cast it"),
    "shape": (packed({"a": entry(shape=[2])}, b"1234"), "needs 8"),
    "negative": (packed({"a": entry(shape=[-1])}, b"1234"), "no shape"),
    "truth": (packed({"a": entry(shape=[True])}, b"1234"), "no shape"),
    "fraction": (packed({"a": entry(shape=[1.0])}, b"1234"), "no shape"),
    "huge shape": (packed({"a": entry(shape=[HUGE] * 8)}, b"1234"), "needs"),
    "huge and empty": (packed({"a": entry(shape=[0, HUGE, HUGE], offsets=[0, 0])}), "large|memory"),
    "axes": (packed({"a": entry(shape=[1] * 65)}, b"1234"), "64"),
    "offsets": (packed({"a": entry(offsets=[4, 0])}, b"1234"), "no place"),
    "one offset": (packed({"a": entry(offsets=[4])}, b"1234"), "no place"),
    "outside": (packed({"a": entry(offsets=[0, 4])}, b"123"), "truncated"),
    "far outside": (packed({"a": entry("F32", [HUGE // 4], [0, HUGE])}, b"123"), "truncated"),
    "hole": (packed({"a": entry(offsets=[4, 8])}, b"12345678"), "hole"),
    "overlap": (packed({"a": entry(), "b": entry(offsets=[2, 6])}, b"123456"), "another tensor"),
    "same place": (packed({"a": entry(), "b": entry()}, b"1234"), "another tensor"),
    "left over": (packed({"a": entry()}, b"12345"), "belong to none"),
    "zip": (b"PK\x03\x04" + bytes(100), "weights_only"),
    "pickle": (b"\x80\x02" + bytes(100), "save_file"),
    "gguf": (b"GGUF" + bytes(100), "GGUF"),
}  # fmt: skip
STRUCTURES = {
    "no JSON": "{", "tag": '{"set":[]}', "two tags": '{"tuple":[],"list":[]}', "no tag": "{}",
    "missing tensor": '{"tensor":"b"}', "tensor": '{"tensor":1}', "tuple": '{"tuple":1}',
    "pair": '{"dict":[1]}', "key": '{"dict":[[[],1]]}', "short": '{"dict":[["a"]]}',
    "float": '{"float":"x"}', "complex": '{"complex":["x","1"]}', "NaN": "NaN",
    "deep": "[" * 200 + "]" * 200, "very deep": "[" * 90_000,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_words(name, tmp_path):
    raw, message = HOSTILE[name]
    path = tmp_path / "a.safetensors"
    path.write_bytes(raw)
    with pytest.raises((FormatError, td.errors.ShapeError), match=message) as failure:
        td.load(path, device="cpu")
    assert len(str(failure.value)) < 700
    assert isinstance(failure.value, FormatError) or name == "huge and empty"


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_hostile_structure_is_refused(name, tmp_path):
    path = tmp_path / "a.safetensors"
    header = {"__metadata__": {"treadle.state": STRUCTURES[name]}, "a": entry()}
    path.write_bytes(packed(header, b"1234"))
    with pytest.raises(FormatError):
        td.load(path, device="cpu")


def test_mutations_are_refused_or_load(tmp_path):
    path = tmp_path / "a.safetensors"
    td.save({"a": tensor(3), "z": tensor(2, dtype=td.complex128), "n": [1, (2.5, None)],
             "b": np.ones(2, np.int16), "o": {0: tensor(dtype=td.bool)}}, path)  # fmt: skip
    whole = path.read_bytes()
    draw = random.Random(12)
    length = int.from_bytes(whole[:8], "little")
    refused = 0
    for _ in range(250):
        raw = bytearray(whole)
        for _ in range(draw.choice((1, 1, 2, 8))):
            at = draw.randrange(8 + length) if raw is not None else 0
            kind = draw.randrange(4)
            if kind == 0:
                raw[at % len(raw)] = draw.randrange(256)
            elif kind == 1:
                raw[at % len(raw)] = draw.choice(b'0123456789[]{},:"-')
            elif kind == 2:
                del raw[at : at + draw.randrange(1, 9)]
            else:
                raw[at:at] = raw[at : at + draw.randrange(1, 9)]
            if kind > 1 and draw.random() < 0.7:  # so that more than the length is looked at
                raw[:8] = (length + len(raw) - len(whole)).to_bytes(8, "little", signed=True)
        if draw.random() < 0.1:
            del raw[draw.randrange(len(raw)) :]
        path.write_bytes(raw)
        try:
            td.load(path, device="cpu")
        except FormatError:
            refused += 1
    assert refused > 120
