"""`@td.elementwise`: broadcasting, layouts, dtypes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.bfloat16 import BFLOAT16


@td.elementwise
def combine(x, y):
    return x * 2.0 + y


@td.elementwise
def absolute_difference(x, y):
    if x > y:
        return x - y
    return y - x


SHAPES = [
    ((), ()),
    ((1,), (7,)),
    ((5,), ()),
    ((3, 1), (1, 4)),
    ((3, 4), (4,)),
    ((3, 4), (3, 1)),
    ((2, 3, 4), (3, 1)),
    ((2, 1, 5, 3), (4, 1, 3)),
    ((2, 1, 3, 1, 5), (1, 4, 1, 6, 1)),
    ((2, 1, 3, 1, 2, 1), (3, 1, 2, 1, 3)),
    ((1, 1), (1, 1, 1)),
    ((300, 1), (1, 700)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(device, rng, shapes):
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    found = combine(td.asarray(x), td.asarray(y))
    assert isinstance(found, td.Tensor)
    assert found.dtype == td.f32
    assert found.device is device
    expected = np.asarray(x * np.float32(2) + y)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shapes", [((0,), (1,)), ((3, 0), (3, 1)), ((2, 0, 4), ())], ids=str)
def test_nothing_to_compute(device, shapes):
    found = combine(td.zeros(shapes[0]), td.ones(shapes[1]))
    assert found.shape == np.broadcast_shapes(*shapes)
    assert found.numpy().size == 0


CUTS = {
    "step": np.s_[::2, 1::3],
    "backwards": np.s_[::-1, ::-2],
    "column": np.s_[:, 3:4],
    "row": np.s_[5:6, :],
    "offset": np.s_[2:7, 4:9],
    "new axis": np.s_[:, None, 3:],
}


@pytest.mark.parametrize("cut", CUTS)
def test_views(device, rng, cut):
    x, y = rng.standard_normal((2, 8, 11)).astype(np.float32)
    found = combine(td.asarray(x)[CUTS[cut]], td.asarray(y)[CUTS[cut]])
    np.testing.assert_allclose(found.numpy(), 2 * x[CUTS[cut]] + y[CUTS[cut]], rtol=1e-6, atol=1e-6)


def test_numbers_and_numpy_arrays(device, rng):
    x = rng.standard_normal((4, 5)).astype(np.float32)
    ours = td.asarray(x)
    row, single = np.full(5, 3, np.float32), np.full((), 3, np.float32)
    for other in (3, 3.0, np.float32(3), row, single):
        found = combine(ours, other)
        assert found.dtype == td.f32
        np.testing.assert_allclose(found.numpy(), 2 * x + 3, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(combine(1.5, ours).numpy(), 3 + x, rtol=1e-6, atol=1e-6)
    only = combine(x, x.T.copy().T)
    assert only.device is device
    np.testing.assert_allclose(only.numpy(), 3 * x, rtol=1e-6, atol=1e-6)
    assert combine(1.5, 4.0).item() == 7.0
    assert combine(y=1.0, x=ours).shape == (4, 5)


def test_host_arrays_are_left_alone(device):
    x = np.arange(6, dtype=np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(combine(x, x[::-1]).numpy(), 2 * x + x[::-1])
    np.testing.assert_array_equal(x, np.arange(6))


@td.elementwise
def add(x, y):
    return x + y


@td.elementwise
def multiply(x, y):
    return x * y


@td.elementwise
def less(x, y):
    return x < y


@td.elementwise
def ratio(x, y):
    return x / y


@td.elementwise
def pick(x, y):
    return x if y else -x


DTYPES = [
    (add, np.int32, np.int32, td.i32),
    (add, np.int32, np.float32, td.f32),
    (add, np.uint8, np.uint8, td.u8),
    (add, np.int16, np.int32, td.i32),
    (multiply, np.float16, np.float16, td.f16),
    *((multiply, narrow, narrow, td.bf16) for narrow in BFLOAT16),
    (less, np.int32, np.int32, td.bool),
    (ratio, np.int32, np.int32, td.f32),
    (pick, np.float32, np.bool_, td.f32),
]


@pytest.mark.parametrize("case", DTYPES, ids=lambda c: f"{c[0].__name__}-{c[1].__name__}")
def test_dtypes_are_those_of_the_expression(device, rng, case):
    function, first, second, result = case
    x, y = rng.integers(0, 9, 33).astype(first), rng.integers(1, 5, 33).astype(second)
    found = function(td.asarray(x), td.asarray(y))
    assert found.dtype == result
    plain = {
        add: lambda x, y: x + y, multiply: lambda x, y: x * y, less: lambda x, y: x < y,
        ratio: lambda x, y: x / y, pick: lambda x, y: np.where(y, x, -x),
    }  # fmt: skip
    expected = plain[function](x, y)
    np.testing.assert_allclose(
        found.numpy().astype(np.float64), expected.astype(np.float64), rtol=1e-6
    )


@td.elementwise
def typed(x: td.f32, scale: td.f32 = 2.0):
    return x * scale


def test_annotations_and_defaults(device):
    x = td.arange(4, dtype=td.i32)
    assert typed(x).tolist() == [0.0, 2.0, 4.0, 6.0]
    assert typed(x, 3).tolist() == [0.0, 3.0, 6.0, 9.0]
    assert typed(x).dtype == td.f32


@td.struct
class Sample:
    value: td.f32
    count: td.i32


@td.elementwise
def merged(a, b):
    return Sample(a.value + b.value, a.count + b.count)


@td.elementwise
def mean(sample):
    return sample.value / td.f32(sample.count)


def test_structs(device):
    a, b = np.zeros(5, Sample.dtype), np.zeros((3, 1), Sample.dtype)
    a["value"], a["count"] = np.arange(5), 1
    b["value"], b["count"] = 10, 3
    found = merged(td.asarray(a), td.asarray(b))
    assert found.shape == (3, 5)
    np.testing.assert_array_equal(found.numpy()["value"], np.tile(np.arange(5) + 10, (3, 1)))
    np.testing.assert_array_equal(mean(found).numpy(), np.tile((np.arange(5) + 10) / 4, (3, 1)))
    assert mean(Sample(3.0, 2)).item() == 1.5


def test_statements_and_other_functions(device, rng):
    @td.elementwise
    def norm(x, y):
        return td.sqrt(absolute_difference(x, y))

    x, y = rng.standard_normal((2, 50)).astype(np.float32)
    found = norm(td.asarray(x), td.asarray(y))
    np.testing.assert_allclose(found.numpy(), np.sqrt(abs(x - y)), rtol=1e-5)


def test_in_a_kernel_it_is_a_device_function(device):
    @td.kernel
    def apply(x: td.Array[td.f32]):
        i = td.grid(1)
        if i < x.size:
            x[i] = combine(x[i], 1.0)

    x = td.arange(5, dtype=td.f32)
    apply.launch(5, x)
    assert x.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


def test_a_changed_constant_changes_the_values_and_the_dtype(device):
    scale = 2

    @td.elementwise
    def scaled(x):
        return x * scale

    x = td.arange(3, dtype=td.i32)
    assert scaled(x).tolist() == [0, 2, 4]
    scale = 0.5
    found = scaled(x)
    assert found.tolist() == [0.0, 0.5, 1.0]
    assert found.dtype == td.f32


def test_interpreted(device, rng):
    x, y = rng.standard_normal((4, 1)).astype(np.float32), rng.standard_normal(3).astype(np.float32)
    ours = td.asarray(x), td.asarray(y)
    with td.interpret():
        found = combine(*ours)
    np.testing.assert_allclose(found.numpy(), 2 * x + y, rtol=1e-6, atol=1e-6)


def test_shapes_that_do_not_broadcast(device):
    with pytest.raises(td.errors.ShapeError, match=r"x of shape \(3,\) and y of shape \(2, 4\)"):
        combine(td.zeros(3), td.zeros((2, 4)))


def test_arrays_on_two_devices(device):
    if device.backend == "cpu":
        with pytest.raises(td.errors.LaunchError, match=r"y\.to\(\"webgpu"):
            combine(td.zeros(3, device="webgpu"), td.zeros(3))
    else:
        with pytest.raises(td.errors.LaunchError, match=r"y is on cpu.*y\.to\("):
            combine(td.zeros(3), td.zeros(3, device="cpu"))


def test_what_is_refused(device):
    x = td.zeros(3)
    with pytest.raises(td.errors.LaunchError, match="missing a required argument: 'y'"):
        combine(x)
    with pytest.raises(td.errors.DtypeError, match=r"argument 2 \(y\).*list"):
        combine(x, [1.0, 2.0, 3.0])

    @td.elementwise
    def nothing(x):
        y = x + 1  # noqa: F841

    @td.elementwise
    def pair(x):
        return x, x

    @td.elementwise
    def mixed(x, y):
        return (
            x + y  # the line of the message
        )

    with pytest.raises(td.errors.CompileError, match="gives nothing"):
        nothing(x)
    with pytest.raises(td.errors.CompileError, match="gives a tuple"):
        pair(x)
    with pytest.raises(td.errors.CompileError) as caught:
        mixed(td.zeros(3, dtype=td.i32), td.zeros(3, dtype=td.u32))
    assert caught.value.span.file == __file__
    assert caught.value.span.line == mixed.definition.__code__.co_firstlineno + 3
    assert combine(x, x).tolist() == [0.0] * 3
