"""`td.autocast`: which functions compute in which dtype, and what gradients have."""

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError

F = td.nn.functional


@pytest.mark.parametrize("dtype", [td.bfloat16, td.float16])
def test_products_are_lower_and_losses_are_not(device, rng, dtype):
    x = td.asarray(rng.standard_normal((4, 16)).astype(np.float32), device=device)
    w = td.asarray(rng.standard_normal((3, 16)).astype(np.float32), device=device).requires_grad_()
    with td.autocast(dtype):
        y = F.linear(x, w)
        loss = (F.softmax(y, -1) ** 2).sum()
        assert (y.dtype, loss.dtype) == (dtype, td.float32)
        assert (x + 1).dtype == td.float32
        assert td.einsum("ij,kj->ik", x, w).dtype == dtype
    loss.backward()
    assert w.grad.dtype == td.float32
    with td.autocast(dtype, enabled=False):
        plain = (F.softmax(F.linear(x, w), -1) ** 2).sum()
        assert plain.dtype == td.float32
    (wanted,) = td.autograd.grad(plain, w)
    error = np.abs(w.grad.numpy() - wanted.numpy()).max() / np.abs(wanted.numpy()).max()
    assert 0 < error < 0.05


def test_a_device_may_come_first_and_a_decorator_works():
    @td.autocast("cpu", dtype=td.bfloat16)
    def product(x):
        return x @ x

    assert product(td.ones((2, 2), device="cpu")).dtype == td.bfloat16
    with td.autocast(device_type="cpu", dtype=td.float16):
        assert (td.ones((2, 2), device="cpu") @ td.ones(2, device="cpu")).dtype == td.float16
    with td.autocast("cpu"):
        assert product(td.ones((2, 2), device="cpu", dtype=td.float64)).dtype == td.float64


def test_other_dtypes_are_refused():
    with pytest.raises(DtypeError, match="float16 and bfloat16"):
        td.autocast(td.float64)
