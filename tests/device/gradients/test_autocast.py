"""`td.autocast`: which functions compute in which dtype, and what gradients have."""

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError
from treadle.tensor.composites import composite
from treadle.tensor.elementwise_functions import RULES
from treadle.tensor.precision import LOWERED, WIDENED, cast_by_name

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


@pytest.mark.parametrize("name", sorted(LOWERED | WIDENED))
def test_every_function_of_the_tables_is_cast(name):
    if name in RULES:
        return  # `elementwise_functions.apply` looks it up
    function = next(getattr(room, name) for room in (F, td.linalg, td) if hasattr(room, name))
    casting = {decorator(function).__code__ for decorator in (composite, cast_by_name)}
    found = set()
    while hasattr(function, "__wrapped__"):
        found.add(function.__code__)
        function = function.__wrapped__
    assert casting & found, f"decorate {name} with @cast_by_name"


def test_convolutions_and_attention_are_lower(device):
    x = td.ones((1, 4, 6), device=device)
    with td.autocast(td.float16):
        assert F.conv1d(x, td.ones((2, 4, 3), device=device)).dtype == td.float16
        assert td.nn.Conv2d(1, 2, 3, device=device)(x[None]).dtype == td.float16
        assert F.conv_transpose1d(x, td.ones((4, 2, 3), device=device)).dtype == td.float16
        found = F.scaled_dot_product_attention(x, x, x)
        assert found.dtype == td.float16
        np.testing.assert_array_equal(found.numpy(), np.ones((1, 4, 6)))


def test_losses_and_norms_are_float32(device):
    x = td.asarray(np.linspace(-200, 300, 8).reshape(2, 4), dtype=td.float16, device=device)
    with td.autocast(td.float16):
        assert F.mse_loss(x, x - x).dtype == td.float32
        assert F.mse_loss(x, x - x, reduction="sum").item() > 65504  # too large for float16
        assert F.layer_norm(x, 4).dtype == td.float32
        assert F.binary_cross_entropy_with_logits(x, x - x).dtype == td.float32
        assert F.cosine_similarity(x, x).dtype == td.float32
        assert td.linalg.vector_norm(x).dtype == td.float32


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
