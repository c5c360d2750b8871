"""Functional forms: gradients of functions, products with Jacobians, and how they nest."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError, DtypeError, ShapeError

try:
    import torch
except ImportError:
    torch = None


def _loss(parameters, x, scale=1.0):
    hidden = x @ parameters["w"] + parameters["b"][0]
    return (hidden * hidden).sum() * scale


def _arguments(rng, device, dtype=np.float32):
    w, b, x = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 4), (4,), (5, 3)))
    put = lambda values: td.asarray(values, device=device)  # noqa: E731
    return {"w": put(w), "b": [put(b)]}, put(x)


def test_that_gradients_are_nested_as_arguments(device, rng):
    parameters, x = _arguments(rng, device)
    value, (by, by_x) = td.value_and_grad(_loss, argnums=(0, -1))(parameters, x, scale=2.0)
    assert (by["w"].shape, by["b"][0].shape, by_x.shape) == ((3, 4), (4,), (5, 3))
    leaf = parameters["w"].detach().requires_grad_()
    loss = _loss({"w": leaf, "b": parameters["b"]}, x, 2.0)
    loss.backward()
    # Sums of terms of several units, in two orders: one that cancels is off by their rounding.
    np.testing.assert_allclose(by["w"].numpy(), leaf.grad.numpy(), rtol=1e-6, atol=4e-6)
    np.testing.assert_allclose(value.item(), loss.item(), rtol=1e-6)
    assert not any(each.requires_grad for each in (value, by["w"], parameters["w"]))


def test_that_transforms_nest_and_keep_their_variables_apart():
    x = td.asarray(3.0, device="cpu")
    # The inner derivative is by y alone: x + y at y = 1, so x * (x + 2y) = x² + 2x by x.
    f = lambda x: x * td.grad(lambda y: x * y + y * y)(td.asarray(1.0, device="cpu"))  # noqa: E731
    assert td.grad(f)(x).item() == 8.0
    third = td.grad(td.grad(td.grad(lambda x: x * x * x * x)))
    assert third(x).item() == 72.0
    assert not third(x).requires_grad


def test_gradients_through_a_gradient():
    def penalty(x):
        slope = td.grad(lambda y: (y * y * (y + x)).sum())(x)
        return (slope * slope).sum()

    check_gradients(penalty, np.array([0.5, -1.5]), second=False)


def test_that_what_is_closed_over_has_gradients():
    w = td.asarray(2.0, device="cpu").requires_grad_()
    x = td.asarray(3.0, device="cpu")
    slope = td.grad(lambda x: w * w * x * x)(x)
    slope.backward()  # of 2 w² x by w
    assert w.grad.item() == 24.0
    with td.no_grad():
        slope = td.grad(lambda x: w * x * x)(x)
    assert (slope.item(), slope.requires_grad) == (12.0, False)


def test_that_an_auxiliary_result_is_passed_on():
    x = td.asarray(3.0, device="cpu")
    slope, aux = td.grad(lambda x: (x * x, {"doubled": x * 2, "name": "a"}), has_aux=True)(x)
    assert (slope.item(), aux["doubled"].item(), aux["name"]) == (6.0, 6.0, "a")
    assert not aux["doubled"].requires_grad
    (value, aux), slope = td.value_and_grad(lambda x: (x * x, x + 1), has_aux=True)(x)
    assert (value.item(), aux.item(), slope.item()) == (9.0, 4.0, 6.0)


def test_that_writes_in_a_function_leave_its_argument_alone(device):
    def f(x):
        x[0] = x[1] * 3
        return (x * x).sum()

    x = td.asarray([1.0, 2.0], device=device)
    assert td.grad(f)(x).tolist() == [0.0, 40.0]
    assert x.tolist() == [1.0, 2.0]


def test_numbers_and_unused_arguments():
    both = td.grad(lambda x, y: x * x, argnums=(0, 1))
    assert both(3.0, td.ones(2, device="cpu"))[0].item() == 6.0
    x = td.asarray(3.0, device="cpu")
    by = td.grad(lambda x, y: x * x, argnums=1)(x, td.ones(2, device="cpu"))
    assert by.tolist() == [0.0, 0.0]


def test_vjp_of_several_results(rng):
    def through(x, a, b):
        (first, second), back = td.vjp(lambda x: (x * x * x, (x * x).sum()), x)
        return first, second, back((a, b))[0]

    x, a, b = rng.standard_normal(2), rng.standard_normal(2), np.array(0.7)
    check_gradients(through, x, a, b, second=False)


def test_jvp_beside_differences(rng):
    x, t = rng.standard_normal(3), rng.standard_normal(3)
    f = lambda x: x * x * x.sum()  # noqa: E731
    value, change = td.jvp(f, (td.asarray(x, device="cpu"),), (td.asarray(t, device="cpu"),))
    np.testing.assert_allclose(value.numpy(), f(x), rtol=1e-12)
    np.testing.assert_allclose(change.numpy(), 2 * x * t * x.sum() + x * x * t.sum(), rtol=1e-12)
    check_gradients(lambda x, t: td.jvp(f, (x,), (t,)), x, t, second=False)


def test_jvp_of_complex_numbers(rng):
    z, t = (rng.standard_normal((2, 3)).astype(np.complex128) * (1 + 0.5j) for _ in range(2))
    z, t = z[0] + 1j * z[1], t[0] - 1j * t[1]
    f = lambda z: td.conj(z) * z * z  # noqa: E731  not holomorphic
    _, change = td.jvp(f, (td.asarray(z, device="cpu"),), (td.asarray(t, device="cpu"),))
    expected = 2 * np.abs(z) ** 2 * t + z * z * np.conj(t)
    np.testing.assert_allclose(change.numpy(), expected, rtol=1e-12)


def test_directions_that_do_not_matter():
    x = td.ones(3, device="cpu")
    value, change = td.jvp(lambda x: (x > 0, td.zeros(2, device="cpu")), (x,), (x,))
    assert value[0].tolist() == [True] * 3
    assert change[1].tolist() == [0.0, 0.0]


def test_that_mistakes_are_told():
    x = td.ones(3, device="cpu")
    with pytest.raises(AutogradError, match=r"shape \(3,\)"):
        td.grad(lambda x: x * 2)(x)
    with pytest.raises(AutogradError, match="returned int"):
        td.grad(lambda x: 2)(x)
    with pytest.raises(AutogradError, match="by argument 1"):
        td.grad(lambda x: x.sum(), argnums=1)(x)
    with pytest.raises(DtypeError, match="int32"):
        td.grad(lambda x: x.sum())(td.ones(2, dtype=td.int32, device="cpu"))
    with pytest.raises(AutogradError, match="is a str"):
        td.grad(lambda x: x.sum())("x")
    with pytest.raises(ShapeError, match="nested"):
        td.vjp(lambda x: (x, x), x)[1]({"a": x})
    with pytest.raises(ShapeError, match="direction"):
        td.jvp(lambda x: x, (x,), (td.ones(2, device="cpu"),))


if torch is not None:

    def test_beside_torch(rng):
        x, y = rng.standard_normal((3, 4)), rng.standard_normal((4, 3))

        def f(x, y):
            product = x @ y
            return (product * product).sum() * x.sum()

        def by_both(grad, x, y):
            return grad(lambda x, y: (grad(f)(x, y) * x).sum(), argnums=(0, 1))(x, y)

        theirs = by_both(torch.func.grad, torch.tensor(x), torch.tensor(y))
        mine = by_both(td.grad, td.asarray(x, device="cpu"), td.asarray(y, device="cpu"))
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9)


# --- Jacobians -----------------------------------------------------------------------------------


def test_jacobians_by_either_way(rng):
    x, y = (td.asarray(rng.standard_normal(shape), device="cpu") for shape in ((2, 3), (3,)))
    f = lambda x, y: {"a": x @ y, "b": (x * y).sum(0)[:2] * y[0]}  # noqa: E731
    back, forth = (each(f, argnums=(0, 1))(x, y) for each in (td.jacrev, td.jacfwd))
    for name in ("a", "b"):
        for one, other, shape in zip(back[name], forth[name], ((2, 2, 3), (2, 3)), strict=True):
            assert one.shape == other.shape == shape
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)
    np.testing.assert_allclose(back["a"][1].numpy(), x.numpy())
    found, aux = td.jacfwd(lambda x: (x * x, x + 1), has_aux=True)(y)
    np.testing.assert_allclose(found.numpy(), np.diag(2 * y.numpy()))
    np.testing.assert_allclose(aux.numpy(), y.numpy() + 1)
    with pytest.raises(AutogradError, match="real numbers"):
        td.jacrev(lambda z: z)(td.asarray([1j], device="cpu"))


def test_hessian(rng):
    x = rng.standard_normal(3)
    found = td.hessian(lambda x: (x * x * x).sum() * x[0])(td.asarray(x, device="cpu")).numpy()
    expected = np.diag(6 * x * x[0])
    expected[0] += 3 * x * x
    expected[:, 0] += 3 * x * x
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_gradcheck():
    values = np.array([0.5, -1.5]), np.array([1 + 2j, 0.5j])
    x, z = (td.asarray(each, device="cpu").requires_grad_() for each in values)
    check = td.autograd.gradcheck
    assert check(lambda x, z, n: (z * x * n, td.abs(z), x > 0), (x, z, 2.0))

    class Wrong(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    assert not check(Wrong.apply, x, raise_exception=False)
    with pytest.raises(AutogradError, match=r"is 3\.0 by gradients and (2\.0|1\.9)"):
        check(Wrong.apply, [x])
    with pytest.raises(ValueError, match="requires_grad_"):
        check(Wrong.apply, x.detach())
    with pytest.warns(UserWarning, match="use float64"):
        check(lambda x: x, td.ones(1, device="cpu").requires_grad_(), atol=0.1)
