"""Functions with a backward pass of one's own, and kernels within them."""

import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError, ShapeError


class Cube(td.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (3 * x * x)


class Exponential(td.autograd.Function):
    """In the other style, with the result kept."""

    @staticmethod
    def forward(x, scale):
        return td.exp(x * scale)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * ctx.scale, None


class Both(td.autograd.Function):
    """Sum and product, of which the product is kept."""

    @staticmethod
    def forward(ctx, x, y, times=1):
        product = x * y * times
        ctx.save_for_backward(x, y, None, product)
        ctx.times = times
        return x + y, product

    @staticmethod
    def backward(ctx, g, h):
        x, y, nothing, product = ctx.saved_tensors
        assert nothing is None
        assert product.shape == x.shape
        return g + h * y * ctx.times, g + h * x * ctx.times


def test_both_styles_and_second_gradients(rng):
    x = rng.standard_normal(3)
    check_gradients(Cube.apply, x)
    check_gradients(lambda x: Exponential.apply(scale=0.5, x=x * 2), x)


def test_several_results(rng):
    class Fixed(Both):
        @staticmethod
        def backward(ctx, g, h):
            return *Both.backward(ctx, g, h), None

    x, y = rng.standard_normal(3), rng.standard_normal(3)
    check_gradients(lambda x, y: Fixed.apply(x, y, 2), x, y)
    check_gradients(lambda x, y: Fixed.apply(x, y, 2)[1], x, y)
    with pytest.raises(AutogradError, match="2 gradients, and forward takes 3"):
        Both.apply(*[td.asarray(x, device="cpu").requires_grad_()] * 2, 2)[0].sum().backward()


def test_what_a_context_knows():
    seen = []

    class Watch(td.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, unused):
            ctx.set_materialize_grads(False)
            assert not td.is_grad_enabled()
            whole = td.asarray([1, 2], device="cpu")
            rounded = td.round(x)
            ctx.mark_non_differentiable(rounded)
            seen.append(ctx.needs_input_grad)
            return x * 1, y * 1, rounded, whole

        @staticmethod
        def backward(ctx, g, h, *others):
            seen.append((g is None, h is None, others))
            return g, h, None

    x = td.ones(2, device="cpu").requires_grad_()
    one, _, rounded, whole = Watch.apply(x, td.ones(2, device="cpu"), 3)
    assert not rounded.requires_grad
    assert not whole.requires_grad
    one.sum().backward()
    assert seen == [(True, False, False), (False, True, (None, None))]
    assert x.grad.tolist() == [1.0, 1.0]
    with td.no_grad():
        assert not Watch.apply(x, x, 3)[0].requires_grad


def test_that_an_input_that_is_written_is_followed(device):
    class Double(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x *= 2
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    leaf = td.ones(3, device=device).requires_grad_()
    x = leaf * 3
    y = Double.apply(x)
    assert y is x
    (y * 5).sum().backward()
    assert leaf.grad.tolist() == [30.0] * 3
    with pytest.raises(AutogradError, match="leaf"):
        Double.apply(leaf)


def test_an_input_that_is_returned():
    class Reversed(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = td.ones(2, device="cpu").requires_grad_()
    Reversed.apply(x).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


def test_that_changes_of_saved_values_are_noticed(device):
    x = td.ones(3, device=device).requires_grad_()
    z = x * 2
    y = Cube.apply(z)
    z += 1
    with pytest.raises(AutogradError, match="changed in place"):
        y.sum().backward()
    w = Exponential.apply(x, 1.0)
    z = w * 2
    w += 1
    with pytest.raises(AutogradError, match="changed in place"):
        z.sum().backward()


def test_that_wrong_gradients_are_told():
    class Wrong(td.autograd.Function):
        result = None

        @staticmethod
        def forward(ctx, x, name):
            return x * 1

        @classmethod
        def backward(cls, ctx, g):
            return cls.result

    x = td.ones(3, device="cpu").requires_grad_()
    for result, error, words in (
        ((td.ones(2, device="cpu"), None), ShapeError, r"shape \(2,\) for argument 0"),
        ((td.ones(3, device="cpu"), x.detach()), AutogradError, "argument 1, which is not a"),
        ((3.0, None), AutogradError, "float for argument 0"),
        (td.ones(3, device="cpu"), AutogradError, "1 gradients"),
    ):
        Wrong.result = result
        with pytest.raises(error, match=words):
            Wrong.apply(x, "name").sum().backward()


@td.kernel
def square(x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@td.kernel
def square_back(x: td.Array[td.f32], g: td.Array[td.f32], out: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        out[i] = 2.0 * x[i] * g[i]


class Square(td.autograd.Function):
    """By kernels in both directions."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = td.empty_like(x)
        square.launch(x.size, x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = td.empty_like(x)
        square_back.launch(x.size, x, g, out)
        return out


def test_kernels_within(device):
    x = td.asarray([1.0, 2.0, 3.0], device=device).requires_grad_()
    Square.apply(Square.apply(x * 2)).sum().backward()
    assert x.grad.tolist() == [4 * 16 * value**3 for value in (1.0, 2.0, 3.0)]
    with pytest.raises(AutogradError, match="kernel square_back"):
        td.autograd.grad(Square.apply(x).sum(), x, create_graph=True)


def test_a_kernel_that_writes_an_input(device):
    class InPlace(td.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            square.launch(x.size, x, x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 100

    leaf = td.asarray([1.0, 2.0], device=device).requires_grad_()
    x = leaf * 3
    y = InPlace.apply(x)
    (y * 2).sum().backward()
    assert y.tolist() == [9.0, 36.0]
    assert leaf.grad.tolist() == [600.0, 600.0]
