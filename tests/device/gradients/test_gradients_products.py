"""Gradients of products: those of differences, and that factors are read as they lie."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients

CASES = {
    "matrices": (td.matmul, "complex", (2, 3), (3, 2)),
    "stacks": (td.matmul, "real", (2, 1, 2, 3), (3, 3, 2)),
    "stack and vector": (td.matmul, "real", (2, 2, 3), (3,)),
    "with itself": (lambda x: x @ x.T, "real", (3, 2)),
    "repeated": (lambda x, y: x @ td.broadcast_to(y, (2, 3, 2)), "real", (2, 2, 3), (3, 2)),
    "vecdot": (lambda x, y: td.vecdot(x, y, axis=0), "complex", (3, 1), (3, 2)),
    "outer": (td.outer, "complex", (2,), (3,)),
    "summed in one alone": (lambda x, y: td.einsum("ij,kl->il", x, y), "real", (2, 3), (2, 2)),
    "one element": (lambda x, y: td.einsum("ij,ij->i", x, y), "real", (1, 3), (2, 1)),
    "diagonal": (lambda x: td.einsum("iij->j", x), "real", (2, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_differences(name, rng):
    function, kind, *shapes = CASES[name]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if kind == "complex":
        arrays = [x + 1j * rng.standard_normal(x.shape) for x in arrays]
    check_gradients(function, *arrays, second=name == "stacks")


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((1, 2, 3), (0, 3, 4))])
def test_axes_without_elements(shapes):
    x, y = (td.zeros(shape, device="cpu").requires_grad_() for shape in shapes)
    (x @ y).sum().backward()
    assert (x.grad.shape, y.grad.shape) == shapes
    assert not x.grad.numpy().any()
    assert not y.grad.numpy().any()


EMPTY = {
    "columns by rows": lambda y: y[..., :0] @ y[..., :0, :],
    "rows by columns": lambda y: y[..., :0, :] @ y[..., :0],
    "by itself": lambda y: y @ y.mT,
    "views of one": lambda y: y[..., :1, :] @ y[..., :1, :].mT,
    "dots": lambda y: td.vecdot(y[..., :0], y[..., :0]),
    "einsum": lambda y: td.einsum("bij,bkj->bik", y, y[..., :0, :]),
}


@pytest.mark.parametrize("shape", [(3, 0, 0), (3, 0, 2), (3, 2, 0), (0, 3, 3), (3, 2, 2)], ids=str)
@pytest.mark.parametrize("name", EMPTY)
def test_views_of_empty_matrices(name, shape):
    """A recorded product has the shape of one that is not."""
    if name == "by itself" or shape[-1] == shape[-2]:
        plain = td.asarray(np.zeros(shape), device="cpu")
        y = td.asarray(np.zeros(shape), device="cpu").requires_grad_()
        made = EMPTY[name](y)
        assert made.shape == EMPTY[name](plain).shape == made.numpy().shape
        made.sum().backward()
        assert y.grad.shape == shape


def test_that_factors_may_both_be_repeated(device):
    """Along one axis that both were broadcast along: the product has it, too."""
    a = td.arange(4.0, device=device).reshape(1, 2, 2).requires_grad_()
    b = (td.arange(4.0, device=device).reshape(2, 2) + 1).requires_grad_()
    made = td.broadcast_to(a, (3, 2, 2)) @ td.broadcast_to(b, (3, 2, 2))
    assert made.shape == (3, 2, 2)
    made.sum().backward()
    assert a.grad.tolist() == [[[9.0, 21.0], [9.0, 21.0]]]
    assert b.grad.tolist() == [[6.0, 6.0], [12.0, 12.0]]


def test_products_with_integers(device):
    x = td.asarray([[1, 2], [3, 4]], dtype="int32", device=device)
    y = td.ones((2, 1), device=device).requires_grad_()
    (x @ y).sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), [[4.0], [6.0]])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_on_every_device(device, dtype, rng):
    x, y = rng.integers(-2, 3, (20, 24)), rng.integers(-2, 3, (3, 24, 16))
    mine = [
        td.asarray(each.astype(np.float32), device=device).to(dtype).requires_grad_()
        for each in (x, y)
    ]
    (mine[0] @ mine[1]).sum().backward()
    assert str(mine[0].grad.dtype) == dtype
    by_x = np.broadcast_to(y.sum((0, 2)), x.shape)
    by_y = np.broadcast_to(x.sum(0)[:, None], y.shape)
    for tensor, expected in zip(mine, (by_x, by_y), strict=True):
        np.testing.assert_allclose(tensor.grad.to(td.float32).numpy(), expected, rtol=4e-3)


def kernels_of(function, *arrays):
    """What a backward pass through one product takes, in words."""
    tensors = [td.asarray(x.astype(np.float32), device="cpu").requires_grad_() for x in arrays]
    result = function(*tensors).realize()
    seed = td.ones_like(result).realize()
    return str(td.explain(*td.autograd.grad(result, tensors, seed)))


@pytest.mark.parametrize("case", ["linear", "stacks", "one weight", "repeated weight"])
def test_that_factors_are_read_as_they_lie(case, rng):
    function, *shapes = {
        "linear": (lambda x, w: x @ w.T, (64, 128), (96, 128)),
        "stacks": (td.matmul, (4, 64, 128), (4, 128, 96)),
        "one weight": (td.matmul, (4, 64, 128), (128, 96)),
        "repeated weight": (
            lambda x, w: x @ td.broadcast_to(w, (4, 128, 96)), (4, 64, 128), (128, 96)
        ),
    }[case]  # fmt: skip
    text = kernels_of(function, *[rng.standard_normal(shape) for shape in shapes])
    assert text.startswith("2 kernels\n1. product"), text
    assert "\n2. product" in text


def test_that_a_factor_is_kept_only_for_the_other(rng):
    """Weights that need no gradient may change before the backward pass."""
    x = td.asarray(rng.standard_normal((3, 4)), device="cpu")
    w = td.asarray(rng.standard_normal((4, 2)), device="cpu").requires_grad_()
    y = x @ w
    with td.no_grad():
        w += 1.0
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.broadcast_to(x.numpy().sum(0)[:, None], (4, 2)))
