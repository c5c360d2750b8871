"""The kernel that has all gradients of a norm: on the PTX evaluator, where subgroups have rows, and
on webgpu, where blocks have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import norm_gradients
from treadle.kernels.norm_gradients import norm_backward

F = td.nn.functional
# Rows, columns: one of each, primes, whole vectors, the widest of a subgroup, one more, several
# rows for each subgroup of the blocks.
SIZES = [(1, 1), (3, 5), (9, 96), (2, 128), (5, 131), (3, 1024), (2, 1028), (67, 7)]
BOUNDS = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@contextlib.contextmanager
def found(name: str) -> Iterator[td.Device]:
    with ptx_device("sm_90") if name == "ptx" else contextlib.nullcontext() as device:
        device = device or td.device(name)
        with td.use_device(device), poisoned(device):
            yield device


def exact(x, g, scale, centered, eps):
    """The gradients of input, factors and terms, in float64."""
    x, g, scale = (each.astype("f8") for each in (x, g, scale))
    middle = x.mean(axis=1, keepdims=True) * centered
    inverse = 1 / np.sqrt(((x - middle) ** 2).mean(axis=1, keepdims=True) + eps)
    y, inner = (x - middle) * inverse, g * scale
    across = inner.mean(axis=1, keepdims=True) * centered
    along = (inner * y).mean(axis=1, keepdims=True)
    return (inner - across - y * along) * inverse, (g * y).sum(axis=0), g.sum(axis=0)


@pytest.mark.parametrize("name", ["ptx", "webgpu"])
@pytest.mark.parametrize("dtype", list(BOUNDS))
def test_gradients_of_norms(name, dtype, monkeypatch):
    rng = np.random.default_rng()
    monkeypatch.setattr(norm_gradients, "_BLOCKS", 2)  # so that blocks have several rows
    with found(name) as device:
        for rows, columns in SIZES if dtype == "float32" else SIZES[3:5]:
            x, g = rng.standard_normal((2, rows, columns)) * 2 + 1
            w, b = rng.standard_normal((2, columns))
            given = [td.asarray(each.astype("f4"), device=device) for each in (x, g, w, b)]
            x, g, w, b = (each.to(dtype) for each in given)
            x, w, b = (each.detach().requires_grad_() for each in (x, w, b))
            values = [each.detach().to(td.float32).numpy() for each in (x, g, w)]
            for centered in (True, False):
                if centered:
                    y, leaves = F.layer_norm(x, columns, w, b, 1e-3), (x, w, b)
                else:
                    y, leaves = F.rms_norm(x, columns, w, 1e-3), (x, w)
                mine = td.autograd.grad(y, leaves, g)
                assert norm_backward.__name__ in str(td.explain(mine[0]))
                for one, right in zip(mine, exact(*values, centered, 1e-3), strict=False):
                    one = one.to(td.float32).numpy()
                    assert one.shape == right.shape
                    assert np.abs(one - right).max() <= BOUNDS[dtype] * max(np.abs(right).max(), 1)


def test_special_values_of_norms():
    """A row with an infinity or NaN spoils its own gradient and the sums, and no other row's."""
    rng = np.random.default_rng()
    with found("ptx") as device:
        x, g = rng.standard_normal((2, 4, 96)).astype("f4")
        x[1, 7], x[2, 0] = np.inf, np.nan
        w = td.asarray(rng.standard_normal(96).astype("f4"), device=device).requires_grad_()
        leaf = td.asarray(x, device=device).requires_grad_()
        y = F.layer_norm(leaf, 96, w, None)
        of_x, of_w = td.autograd.grad(y, (leaf, w), td.asarray(g, device=device))
        right = exact(x[[0, 3]], g[[0, 3]], w.detach().numpy(), True, 1e-5)[0]
        assert np.abs(of_x.numpy()[[0, 3]] - right).max() < 2e-5
        assert np.isnan(of_x.numpy()[1:3]).all()
        assert np.isnan(of_w.numpy()).all()
