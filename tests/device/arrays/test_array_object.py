"""What the Array API has arrays have, for libraries that take any array."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import treadle as td


@pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12"])
def test_the_namespace_is_found(version):
    x = td.zeros(2, device="cpu")
    assert x.__array_namespace__(api_version=version) is td
    assert td.__array_api_version__ == "2024.12"


@pytest.mark.parametrize("version", ["2020.12", "2031.12", 2024, ""])
def test_other_versions_are_refused(version):
    with pytest.raises(ValueError, match=r"2024\.12"):
        td.zeros(2, device="cpu").__array_namespace__(api_version=version)


def test_newaxis():
    assert td.newaxis is None
    assert td.zeros(3, device="cpu")[:, td.newaxis].shape == (3, 1)


def test_parts_of_real_numbers(device):
    """The imaginary part of a real number is 0; no tensor is without one."""
    for dtype in ("float32", "int8", "bool"):
        x = td.asarray([1, 0], dtype=dtype)
        assert hasattr(x, "imag")
        assert (x.imag.dtype, x.imag.tolist()) == (dtype, [0, 0])
        assert x.real.tolist() == [1, 0]
    assert td.asarray([1 + 2j]).imag.tolist() == [2.0]


def test_to_device(device):
    x = td.arange(3, dtype=td.f32) + 1
    assert x.to_device(x.device) is x
    assert x.to_device(device.id) is x
    moved = x.to_device("cpu")
    assert (moved.device.id, moved.tolist()) == ("cpu", [1, 2, 3])
    assert moved.to_device(x.device).device == x.device
    with pytest.raises(ValueError, match="leave stream out"):
        x.to_device("cpu", stream=1)


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "asarray": lambda x: td.asarray(x, copy=True),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_copies_of_what_is_not_computed_yet(device, make):
    x = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    pending = x * 2
    pending[0, 1] = 50
    part = pending[:, 1:]
    twin, piece = make(pending), make(part)
    pending += 1
    x[...] = 0
    twin[1, 0] = -1
    assert twin.tolist() == [[0, 50, 4], [-1, 8, 10]]
    assert piece.tolist() == [[50, 4], [8, 10]]
    assert part.tolist() == [[51, 5], [9, 11]]
    assert twin.device is piece.device is device


def test_a_copy_of_several_keeps_what_they_share():
    x = td.zeros(3, device="cpu")
    twin = copy.deepcopy({"a": x, "b": x})
    assert twin["a"] is twin["b"]
    twin["a"][0] = 1
    assert twin["b"].tolist() == [1, 0, 0]
    assert x.tolist() == [0, 0, 0]
