"""Functions of one example mapped over many: beside the same, one example after another."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError, ShapeError, ValuesUnknown

try:
    import torch
except ImportError:
    torch = None

F = td.nn.functional


def beside_a_loop(function, *arrays, in_dims=0, rtol=1e-6, device="cpu"):
    """The results of a mapped function are those for each example."""
    dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(arrays)
    tensors = [td.asarray(each, device=device) for each in arrays]
    count = next(a.shape[d] for a, d in zip(arrays, dims, strict=True) if d is not None)
    mapped = td.vmap(function, in_dims=dims)(*tensors)
    each = [
        function(
            *[
                x if d is None else td.asarray(np.take(a, i, d), device=device)
                for a, x, d in zip(arrays, tensors, dims, strict=True)
            ]
        )
        for i in range(count)
    ]
    several = isinstance(mapped, tuple)
    for number, found in enumerate(mapped if several else (mapped,)):
        expected = np.stack([(one[number] if several else one).numpy() for one in each])
        np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=1e-5)


def write(x, by=2):
    y = x * by
    y[1:] += x[:-1]
    y[0] = 7
    return y


def put(x):
    y = x * 2
    y[td.asarray([2, 0], device=x.device), 1:] = x[:2, :2]
    y[td.argmax(x[:, 0])] = 5
    return y


def pick(x):
    place = td.argmax(x, axis=0)
    return x[place, td.asarray([0, 2, 1], device=x.device)], td.take_along_axis(
        x, place[None], axis=0
    )


FUNCTIONS = {
    "elementwise": lambda x: td.where(x > 0, x, -x * 3) + 1,
    "views": lambda x: (x.T[::-1, 1:], x.reshape(-1)[2:7:2], td.concat([x, x[:1]])),
    "reductions": lambda x: (x.sum(0), x.max(), td.argmin(x, axis=1)),
    "products": lambda x: (x @ x.T, td.einsum("ij,ik->jk", x, x)),
    "gather": pick,
    "one place": lambda x: (x[td.argmax(x[:, 0])], x[1:, td.argmin(x[0])]),
    "put": put,
    "powers": lambda x: td.linalg.matrix_power(x[:3], 5),
    "write": write,
    "scatter": lambda x: td.index_add(td.zeros_like(x), 0, td.asarray([1, 1, 0, 3], device=x.device)
                                      , x),
    "sort": lambda x: (td.sort(x, axis=0), td.argsort(x), td.topk(x, 2).values),
    "scan": lambda x: (td.cumulative_sum(x, axis=0), td.cumulative_prod(x, axis=-1)),
    "softmax": lambda x: F.softmax(x, -1),
    "search": lambda x: td.searchsorted(td.sort(x.reshape(-1)), x[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations(rng, name):
    beside_a_loop(FUNCTIONS[name], rng.standard_normal((2, 4, 3)).astype(np.float32))


def test_on_devices(device, rng):
    x = rng.standard_normal((3, 2, 4)).astype(np.float32)
    beside_a_loop(lambda x, y: F.relu(x @ y.T) + x[0, 0], x, x, in_dims=(1, 1), device=device)
    beside_a_loop(lambda x: td.sort(write(x)), x, device=device)


def test_linear_algebra(rng):
    x = rng.standard_normal((2, 3, 3)) + 3 * np.eye(3)

    def function(x):
        solved = td.linalg.solve(x, x[:, :2])
        return td.linalg.det(x), td.linalg.inv(x), solved, td.linalg.qr(x).R

    beside_a_loop(function, x)
    beside_a_loop(
        lambda x: td.abs(td.fft.fft(x, axis=0)) + td.fft.rfft(x, 4, axis=-1).real[:, :1], x
    )


def test_convolution_and_attention(rng):
    x = rng.standard_normal((2, 3, 2, 5, 5)).astype(np.float32)
    w = rng.standard_normal((4, 2, 3, 3)).astype(np.float32)
    beside_a_loop(
        lambda x, w: F.max_pool2d(F.conv2d(x, w, padding=1), 2),
        x,
        w,
        in_dims=(0, None),
        rtol=1e-4,
    )
    q = rng.standard_normal((2, 4, 3)).astype(np.float32)
    beside_a_loop(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q, rtol=1e-4)


def test_axes_and_nesting(rng):
    x = rng.standard_normal((2, 3, 4))
    y = td.asarray(x, device="cpu")
    found = td.vmap(
        lambda a: {"sum": a["x"].sum(), "all": a["x"] * 2}, ({"x": 1},), {"sum": 0, "all": -1}
    )
    result = found({"x": y})
    np.testing.assert_allclose(result["sum"].numpy(), x.sum((0, 2)))
    np.testing.assert_allclose(result["all"].numpy(), np.moveaxis(x, 1, -1) * 2)
    outer = td.vmap(td.vmap(lambda a, b: (a @ b).sum(), (None, 0)), (0, None))(y, td.asarray(
        rng.standard_normal((5, 4, 2)), device="cpu"))  # fmt: skip
    assert outer.shape == (2, 5)
    assert td.vmap(lambda a: td.ones(2, device="cpu"))(y).shape == (2, 2)
    assert td.vmap(lambda a: td.ones(2, device="cpu"), out_dims=None)(y).shape == (2,)
    assert td.vmap(lambda a: a + 1)(td.zeros((0, 3), device="cpu")).shape == (0, 3)


def test_gradients_for_each_example(rng):
    w, b, x = rng.standard_normal((3, 4)), rng.standard_normal(4), rng.standard_normal((5, 3))

    def loss(parameters, x):
        return (F.relu(x @ parameters["w"] + parameters["b"])[:3] * x).sum()

    parameters = {"w": td.asarray(w, device="cpu"), "b": td.asarray(b, device="cpu")}
    values, found = td.vmap(td.value_and_grad(loss), (None, 0))(
        parameters, td.asarray(x, device="cpu")
    )
    for number in range(5):
        value, expected = td.value_and_grad(loss)(parameters, td.asarray(x[number], device="cpu"))
        np.testing.assert_allclose(values.numpy()[number], value.item())
        for name in expected:
            np.testing.assert_allclose(
                found[name].numpy()[number], expected[name].numpy(), atol=1e-12
            )


class Twice(td.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y * 2, x + y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return 2 * g * y + h, 2 * g * x + h


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x @ w, Twice.apply(x, w)),
        lambda x, w: td.linalg.det(td.outer(x, x) + td.eye(3, dtype=w.dtype, device="cpu") * w * w),
        lambda x, w: td.grad(lambda x: (F.silu(x) * w * x).sum())(x),
        lambda x, w: td.cumulative_sum(x * w) + td.checkpoint(lambda x: x * x)(w),
        lambda x, w: td.linalg.pinv((x * w)[:, None]),
        write,
    ],
)  # fmt: skip
def test_gradients_through_a_map(rng, function):
    check_gradients(td.vmap(function, (0, None)), *_pair(rng), second=False)


def _pair(rng):
    return rng.standard_normal((2, 3)), rng.standard_normal(3)


def test_that_what_is_cut_off_stays_so():
    def function(x):
        with td.no_grad():
            y = x * x
        return y * x + x.detach() * 3 + x.detach().requires_grad_()

    x = td.asarray([1.0, 2.0], device="cpu").requires_grad_()
    td.vmap(function)(x).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


def test_second_gradients_through_a_map(rng):
    check_gradients(td.vmap(lambda x, w: F.softmax(x * w, 0), (0, None)), *_pair(rng))


def test_draws():
    x = td.zeros((3, 100), device="cpu")

    def draw(x):
        return x + td.random.uniform(x.shape, device="cpu")

    with pytest.raises(ValuesUnknown, match='randomness="same"'):
        td.vmap(draw)(x)
    same = td.vmap(draw, randomness="same")(x).numpy()
    np.testing.assert_array_equal(same[0], same[2])
    different = td.vmap(draw, randomness="different")(x).numpy()
    assert len(np.unique(different)) > 290
    nested = td.vmap(td.vmap(draw, randomness="different"), randomness="same")
    found = nested(td.zeros((2, 3, 50), device="cpu")).numpy()
    np.testing.assert_array_equal(found[0], found[1])
    assert len(np.unique(found)) > 140
    permuted = td.vmap(lambda x: td.random.permutation(x), randomness="different")
    assert np.sort(permuted(td.asarray(different, device="cpu")).numpy()).shape == (3, 100)


@td.kernel
def kernel(x: td.Array[td.f32]):
    x[0] = 1.0


def test_what_cannot_be_mapped():
    x = td.ones((2, 3), device="cpu")
    outside = td.zeros(3, device="cpu")
    for wrong in (
        lambda x: x * x.sum().item(),
        lambda x: x if x[0] > 0 else -x,
        lambda x: x[x > 0],
        lambda x: kernel[1, 1](x),
    ):
        with pytest.raises(ValuesUnknown, match=r"within td\.vmap"):
            td.vmap(wrong)(x)

    def writes(x):
        outside[...] = x
        return x

    with pytest.raises(ValueError, match="from outside"):
        td.vmap(writes)(x)
    assert outside.tolist() == [0.0] * 3
    w = td.ones(3, device="cpu").requires_grad_()
    with pytest.raises(AutogradError, match=r"use td\.grad"):
        td.vmap(lambda x: (x * w).sum().backward())(x)
    with pytest.raises(ShapeError, match="as many examples"):
        td.vmap(lambda x, y: x)(x, td.ones(3, device="cpu"))
    with pytest.raises(ShapeError, match="in_dims"):
        td.vmap(lambda x: x, in_dims=2)(x)
    with pytest.raises(TypeError, match="float"):
        td.vmap(lambda x, y: x)(x, 1.0)
    with pytest.raises(TypeError, match="returns tensors"):
        td.vmap(lambda x: 3)(x)
    with pytest.raises(ValueError, match="out_dims"):
        td.vmap(lambda x: x, out_dims=None)(x)
    assert x.tolist() == [[1.0] * 3] * 2


def test_that_arguments_are_not_written(device):
    x = td.ones((2, 3), device=device)

    def function(x):
        x[0] = 5
        x *= 2
        return x

    assert td.vmap(function)(x).tolist() == [[10.0, 2.0, 2.0]] * 2
    assert x.tolist() == [[1.0] * 3] * 2


def test_what_an_error_keeps_alive_is_not_computed(device):
    kept = []

    def function(x):
        kept.append(2 * x)  # as the frames of a notebook's last error do
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        td.vmap(function)(td.ones((2, 3), device=device))
    y = td.ones(3, device=device) + 1
    graph = td.Graph(device)
    with graph.capture():  # computes what is pending
        z = (2 * y).realize()
    graph.replay()
    assert z.tolist() == [4.0] * 3
    with pytest.raises(ValuesUnknown):
        kept[0].tolist()
    step = td.compile(lambda x: x + 1)  # which takes the values of all arrays before it traces
    assert step(td.ones(3, device=device)).tolist() == [2, 2, 2]


if torch is not None:

    def test_beside_torch(rng):
        x, y = rng.standard_normal((3, 4)), rng.standard_normal((4, 5, 3))

        def of(lib, x, y):
            inner = lambda a, b: (a * b).sum() * a  # noqa: E731
            return lib.vmap(lib.vmap(inner, in_dims=(None, 0), out_dims=1), in_dims=(1, 0))(x, y)

        mine = of(td, td.asarray(x, device="cpu"), td.asarray(y, device="cpu"))
        theirs = of(torch.func, torch.tensor(x), torch.tensor(y))
        np.testing.assert_allclose(mine.numpy(), theirs.numpy())
