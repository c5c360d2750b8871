"""array-api-compat, through which most libraries ask an array what it is."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

compat = pytest.importorskip("array_api_compat")
extra = pytest.importorskip("array_api_extra")


def test_what_it_says_of_a_tensor(device):
    x = td.asarray(np.zeros((2, 3), np.float32)) + 1
    assert compat.is_array_api_obj(x)
    assert compat.array_namespace(x, td.ones(2)) is td
    assert compat.is_writeable_array(x)
    assert not compat.is_numpy_array(x)
    assert compat.device(x) == device
    assert compat.size(x) == 6
    assert compat.to_device(x, "cpu").device.id == "cpu"
    assert compat.to_device(x, device) is x


def test_tensors_and_numpy_arrays_are_two_namespaces():
    with pytest.raises(TypeError, match="Multiple namespaces"):
        compat.array_namespace(td.ones(2, device="cpu"), np.ones(2))


def test_what_is_built_on_the_standard_alone(device):
    x = td.asarray(np.array([[3.0, 1.0], [2.0, 5.0]], np.float32))
    assert extra.atleast_nd(x, ndim=3, xp=td).shape == (1, 2, 2)
    padded = extra.pad(x, 1, constant_values=9.0, xp=td)
    np.testing.assert_array_equal(np.asarray(padded), np.pad(x.numpy(), 1, constant_values=9))
    np.testing.assert_allclose(np.asarray(extra.cov(x, xp=td)), np.cov(x.numpy()), rtol=1e-5)
    close = extra.isclose(x, td.asarray(np.array([3.0, 2.0], np.float32)), xp=td)
    assert close.tolist() == [[True, False], [False, False]]
    changed = extra.at(x, td.asarray(np.array([True, False]))).add(10.0, xp=td)
    assert changed.tolist() == [[13, 11], [2, 5]]
