"""Rows made comparable, on every device: against their formulas in float64, and PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned

TOLERANCES = {"float32": 3e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def standard(x, axes, eps=1e-5):
    middle = x.mean(axis=axes, keepdims=True)
    return (x - middle) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def drawn(rng, *shape, dtype="float32"):
    """Numbers of a dtype, as a tensor and in float64."""
    x = td.asarray(rng.standard_normal(shape).astype(np.float32) * 2 + 0.5).to(dtype)
    return x, x.to(td.float32).numpy().astype(np.float64)


def check(found, wanted, dtype="float32", factor=1.0):
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    tolerance = TOLERANCES[dtype] * factor
    values = found.to(td.float32).numpy()
    np.testing.assert_allclose(values, wanted, tolerance, tolerance * 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once(device, rng, dtype):
    x, wide = drawn(rng, 5, 60, dtype=dtype)
    check(F.softmax(x, dim=1), softmax(wide, 1), dtype)
    check(F.layer_norm(x, 60), standard(wide, 1), dtype)
    weight, own = drawn(rng, 60, dtype=dtype)
    square = np.square(wide).mean(axis=1, keepdims=True)
    check(F.rms_norm(x, 60, weight, eps=1e-3), wide / np.sqrt(square + 1e-3) * own, dtype)


def test_other_axes_and_layouts(device, rng):
    x, wide = drawn(rng, 6, 35, 8)
    for axis in (0, 1, -1):
        check(F.softmax(x, dim=axis), softmax(wide, axis))
    turned, across = x.permute_dims((2, 0, 1)), wide.transpose(2, 0, 1)
    check(F.softmax(turned, dim=-1), softmax(across, -1))
    check(F.softmax(x[:, 1::2], dim=1), softmax(wide[:, 1::2], 1))
    check(F.softmax(x[0, :1].broadcast_to((4, 8)), dim=0), np.full((4, 8), 0.25))
    check(F.layer_norm(turned, (6, 35)), standard(across, (1, 2)), factor=8)


def test_a_few_long_rows(device, rng):
    x, wide = drawn(rng, 2, 20011)
    check(F.softmax(x, dim=1), softmax(wide, 1))
    check(F.log_softmax(x, dim=1), np.log(softmax(wide, 1)))
    check(F.layer_norm(x, 20011), standard(wide, 1), factor=8)


def test_special_values(device):
    inf, nan = math.inf, math.nan
    rows = td.asarray([[-inf] * 3, [0.0, inf, 1.0], [nan, 0.0, 1.0], [0.0, -inf, 0.0]])
    wanted = [[nan] * 3, [nan] * 3, [nan] * 3, [0.5, 0.0, 0.5]]
    found = F.softmax(rows, dim=1).numpy()
    assert np.isnan(found[[0, 2]]).all()
    assert np.isnan(found[1, 1])
    assert found[3].tolist() == wanted[3]
    logs = F.log_softmax(rows, dim=1).numpy()
    assert np.isnan(logs[:3]).all()
    assert logs[3, 1] == -inf
    same = td.asarray([[7.0, 7.0, 7.0]])  # what is left of them is divided by sqrt(eps) = 0.003
    np.testing.assert_allclose(F.layer_norm(same, 3).numpy(), [[0.0, 0.0, 0.0]], atol=1e-3)
    assert np.isnan(F.layer_norm(rows[:3], 3).numpy()).all()
    assert F.softmax(td.asarray([[3.0e38, -3.0e38]]), dim=1).tolist() == [[1.0, 0.0]]
    far = td.asarray([1e6, 1e6 + 1, 1e6 + 2])  # a one-pass variance would lose it
    np.testing.assert_allclose(F.layer_norm(far, 3).numpy(), [-1.22474, 0, 1.22474], 1e-4, 1e-5)


def test_nothing_and_one(device):
    for shape, axis in (((3, 0), 1), ((0, 3), 1), ((0, 3), 0)):
        for function in (F.softmax, F.log_softmax):
            assert function(td.zeros(shape), dim=axis).tolist() == np.zeros(shape).tolist()
    assert F.softmax(td.asarray(3.0), dim=0).item() == 1.0
    assert F.log_softmax(td.asarray(3.0), dim=-1).item() == 0.0
    assert F.layer_norm(td.zeros((3, 0)), 0).shape == (3, 0)
    assert F.rms_norm(td.zeros((0, 3)), 3).shape == (0, 3)
    assert F.group_norm(td.zeros((0, 4, 2)), 2).shape == (0, 4, 2)
    statistics = td.zeros(3), td.ones(3)
    assert F.batch_norm(td.zeros((0, 3)), *statistics, training=True).shape == (0, 3)
    assert F.local_response_norm(td.zeros((0, 3, 2)), 2).shape == (0, 3, 2)
    with pytest.raises(IndexError, match="axis 2"):
        F.softmax(td.zeros((0, 3)), dim=2)


def test_batch_norm_moves_what_it_knows(device, rng):
    x, wide = drawn(rng, 5, 6, 3, 7)
    scale, shift = (td.asarray(rng.standard_normal(6).astype(np.float32)) for _ in range(2))
    middle, spread = td.asarray(np.arange(6, dtype=np.float32)), td.ones(6)
    seen = middle[:3]  # writes are seen through views
    by = (1, 6, 1, 1)
    found = F.batch_norm(x, middle, spread, scale, shift, training=True, momentum=0.25)
    wanted = standard(wide, (0, 2, 3)) * scale.numpy().reshape(by) + shift.numpy().reshape(by)
    check(found, wanted, factor=8)
    axes = (0, 2, 3)
    means = np.arange(6) * 0.75 + wide.mean(axis=axes) * 0.25
    spreads = 0.75 + wide.var(axis=axes, ddof=1) * 0.25
    check(middle, means)
    check(spread, spreads)
    check(seen, means[:3])
    found = F.batch_norm(x, middle, spread, eps=1e-3)
    wanted = (wide - means.reshape(by)) / np.sqrt(spreads.reshape(by) + 1e-3)
    check(found, wanted, factor=4)
    check(F.batch_norm(x, None, None, training=True), standard(wide, axes), factor=8)
    check(F.batch_norm(x[:, :, 0, 0], None, None, training=True), standard(wide[:, :, 0, 0], 0),
          factor=8)  # fmt: skip


def test_instance_and_group_norm(device, rng):
    x, wide = drawn(rng, 3, 6, 5, 4)
    scale, shift = (td.asarray(rng.standard_normal(6).astype(np.float32)) for _ in range(2))
    affine = [value.numpy().reshape(1, 6, 1, 1) for value in (scale, shift)]
    middle, spread = td.zeros(6), td.ones(6)
    found = F.instance_norm(x, middle, spread, scale, shift)
    alone = standard(wide, (2, 3))
    check(found, alone * affine[0] + affine[1], factor=8)
    check(middle, wide.mean(axis=(2, 3)).mean(axis=0) * 0.1)
    check(spread, 0.9 + wide.var(axis=(2, 3), ddof=1).mean(axis=0) * 0.1)
    check(F.instance_norm(x), alone, factor=8)
    known = F.instance_norm(x, middle, spread, use_input_stats=False)
    check(known, F.batch_norm(x, middle, spread).numpy())
    for groups in (1, 2, 6):
        split = standard(wide.reshape(3, groups, -1), 2).reshape(wide.shape)
        check(F.group_norm(x, groups), split, factor=8)
        found = F.group_norm(x, groups, scale, shift)
        check(found, split * affine[0] + affine[1], factor=8)
    flat, own = drawn(rng, 3, 6)
    check(F.group_norm(flat, 2), standard(own.reshape(3, 2, 3), 2).reshape(3, 6), factor=8)


def test_local_response_norm(device, rng):
    x, wide = drawn(rng, 2, 7, 5)
    for size in (1, 2, 5, 9):
        padded = np.pad(np.square(wide), ((0, 0), (size // 2, (size - 1) // 2), (0, 0)))
        near = sum(padded[:, k : k + 7] for k in range(size)) / size
        check(F.local_response_norm(x, size, 0.5, 0.6, 2.0), wide / (2 + 0.5 * near) ** 0.6,
              factor=4)  # fmt: skip


def test_what_is_refused(device):
    x = td.zeros((2, 6, 1))
    with pytest.raises(td.errors.ShapeError, match=r"normalized_shape is \(4,\).*\(2, 6, 1\)"):
        F.rms_norm(x, 4)
    with pytest.raises(td.errors.ShapeError, match=r"rms_norm: weight has shape \(2,\), not \(1,"):
        F.rms_norm(x, 1, td.zeros(2))
    with pytest.raises(td.errors.ShapeError, match=r"6 channels .*\(2, 6, 1\).* are not 4 groups"):
        F.group_norm(x, 4)
    with pytest.raises(td.errors.ShapeError, match=r"one value have no variance.*\(2, 6, 1\)"):
        F.instance_norm(x)
    with pytest.raises(td.errors.ShapeError, match=r"one value have no variance to train with"):
        F.batch_norm(x[:1], None, None, training=True)
    with pytest.raises(td.errors.ShapeError, match=r"running_mean has shape \(5,\), not \(6,\)"):
        F.batch_norm(x, td.zeros(5), td.ones(6))
    with pytest.raises(ValueError, match="without training needs running_mean"):
        F.batch_norm(x, None, None)
    with pytest.raises(ValueError, match="or neither"):
        F.instance_norm(x, td.zeros(6))
    with pytest.raises(td.errors.DtypeError, match="running_var is a tensor of floats"):
        F.batch_norm(x, td.zeros(6), td.ones(6, dtype=td.int32))
    with pytest.raises(td.errors.ShapeError, match=r"\(2, 6\).*axes behind them"):
        F.local_response_norm(x[:, :, 0], 2)
    with pytest.raises(ValueError, match="size is 0"):
        F.local_response_norm(x, 0)
    with pytest.raises(td.errors.DtypeError, match="softmax takes real numbers, and x is of"):
        F.softmax(x > 0)


try:
    import torch
except ImportError:
    torch = None

if torch is not None:

    def test_as_pytorch_has_it(device, rng):
        """Names, order of arguments and defaults."""
        x = rng.standard_normal((4, 6, 5)).astype(np.float32)
        weight, bias, middle = rng.standard_normal((3, 6)).astype(np.float32)
        spread = np.abs(bias) + 1
        calls = {
            "rms_norm": ((5,),),
            "batch_norm": (middle, spread, weight, bias, False, 0.1, 1e-2),
            "instance_norm": (None, None, weight, bias, True, 0.1, 1e-2),
            "group_norm": (3, weight, bias, 1e-2),
            "local_response_norm": (4, 1.0, 0.5, 2.0),
        }
        for name, rest in calls.items():
            theirs = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in rest]
            mine = [td.asarray(a) if isinstance(a, np.ndarray) else a for a in rest]
            wanted = getattr(torch.nn.functional, name)(torch.tensor(x), *theirs).numpy()
            check(getattr(F, name)(td.asarray(x), *mine), wanted, factor=8)
