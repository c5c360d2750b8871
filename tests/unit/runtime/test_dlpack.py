"""Capsules: what is read from those of NumPy, and what NumPy reads from ours."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

from treadle.core import dtypes
from treadle.core.errors import DtypeError
from treadle.runtime import dlpack

VERSIONS = [None, (1, 0)]


class Keep:
    """Counts how many of it were let go."""

    gone = 0

    def __del__(self):
        Keep.gone += 1


class Ours:
    """A producer that lends `data` through our capsules."""

    def __init__(self, data, **flags):
        self.data = data
        self.flags = flags

    def __dlpack_device__(self):
        return (dlpack.CPU, 0)

    def __dlpack__(self, *, max_version=None, **_options):
        data = self.data
        return dlpack.capsule(
            data.ctypes.data, (dlpack.CPU, 0), dtypes.as_dtype(data.dtype), data.shape,
            tuple(s // data.itemsize for s in data.strides), keep=Keep(),
            versioned=max_version is not None, **self.flags,
        )  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"]
)
def test_numpy_arrays_are_read(version, name):
    data = np.ones((5, 6), name)[1:4, ::-2]
    taken = dlpack.Managed(data.__dlpack__(max_version=version))
    assert taken.address == data.ctypes.data
    assert taken.device == (1, 0)
    assert taken.dtype == name
    assert taken.shape == (3, 3)
    assert taken.strides == (6, -2)
    assert taken.read_only is False


def test_what_may_not_be_written_says_so():
    data = np.zeros(3)
    data.flags.writeable = False
    assert dlpack.Managed(data.__dlpack__(max_version=(1, 0))).read_only


@pytest.mark.parametrize("version", VERSIONS)
def test_the_producer_hears_that_we_are_done(version):
    data = np.zeros(1000)
    before = sys.getrefcount(data)
    taken = dlpack.Managed(data.__dlpack__(max_version=version))
    assert sys.getrefcount(data) == before + 1
    del taken
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_capsule_is_taken_once(version):
    capsule = np.zeros(3).__dlpack__(max_version=version)
    taken = dlpack.Managed(capsule)
    with pytest.raises(BufferError, match="consumed before"):
        dlpack.Managed(capsule)
    assert taken.shape == (3,)


@pytest.mark.parametrize("other", [None, 3, np.zeros(3)])
def test_what_is_no_capsule(other):
    with pytest.raises(BufferError, match="is not a DLPack capsule"):
        dlpack.Managed(other)


def test_elements_that_no_array_has(monkeypatch):
    data = np.zeros(3, np.complex64)
    before = sys.getrefcount(data)
    monkeypatch.setitem(dlpack._CODE_OF, "complex64", (5, 32))
    taken = dlpack.capsule(
        data.ctypes.data, (dlpack.CPU, 0), dtypes.complex64, (3,), (1,), keep=data, versioned=True
    )
    with pytest.raises(DtypeError, match="complex32"):
        dlpack.Managed(taken)
    gc.collect()
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("flags", [{}, {"copied": True}])
def test_numpy_reads_ours(flags):
    data = np.arange(12, dtype=np.int16).reshape(3, 4)
    before = Keep.gone
    seen = np.from_dlpack(Ours(data.T, **flags))
    np.testing.assert_array_equal(seen, data.T)
    assert seen.flags.writeable
    seen[1, 2] = 77
    assert data[2, 1] == 77
    del seen
    assert Keep.gone == before + 1


def test_numpy_may_not_write_what_is_read_only():
    assert not np.from_dlpack(Ours(np.zeros(3), read_only=True)).flags.writeable


@pytest.mark.parametrize("version", VERSIONS)
def test_a_capsule_that_nobody_took(version):
    before = Keep.gone
    capsule = Ours(np.zeros(3)).__dlpack__(max_version=version)
    assert Keep.gone == before
    del capsule
    assert Keep.gone == before + 1


@pytest.mark.parametrize("version", VERSIONS)
def test_ours_are_read_by_ourselves(version):
    data = np.zeros((2, 0, 3), np.float32)
    taken = dlpack.Managed(Ours(data).__dlpack__(max_version=version))
    assert (taken.shape, taken.dtype) == ((2, 0, 3), dtypes.float32)


def test_the_end_of_the_interpreter_with_memory_lent():
    """Arrays that outlive the module let go of nothing, and nothing crashes."""
    text = (
        "import numpy as np, treadle as td, sys\n"
        "sys.kept = [np.from_dlpack(td.zeros(100, device='cpu')) for _ in range(3)]\n"
        "sys.capsule = td.zeros(3, device='cpu').__dlpack__()\n"
        "x = td.zeros(3, device='cpu')\n"
        "ring = [np.asarray(x), td.from_dlpack(np.ones(3))]\n"
        "ring.append(ring)\n"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, env=paths
    )
    assert (done.returncode, done.stderr) == (0, "")
