"""Other axes, other shapes, and tensors put together from others, beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SHAPES = [(), (1,), (5,), (0,), (3, 4), (2, 0, 3), (1, 7, 1), (2, 3, 5)]


def both(shape, dtype=np.int32):
    data = np.arange(1, np.prod(shape, dtype=int) + 1).astype(dtype).reshape(shape)
    return td.asarray(data), data


def same(ours, expected):
    assert ours.shape == expected.shape
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(ours.numpy(), expected)


# --- views ---------------------------------------------------------------------------------------

VIEWS = {
    "flip": (lambda m, x: m.flip(x), 0),
    "flip last": (lambda m, x: m.flip(x, axis=-1), 1),
    "flip two": (lambda m, x: m.flip(x, axis=(0, -1)), 2),
    "swapaxes": (lambda m, x: m.swapaxes(x, 0, -1), 1),
    "moveaxis": (lambda m, x: m.moveaxis(x, 0, -1), 1),
    "moveaxis two": (lambda m, x: m.moveaxis(x, (-1, 0), (0, 1)), 2),
    "expand first": (lambda m, x: m.expand_dims(x, axis=0), 0),
    "expand last": (lambda m, x: m.expand_dims(x, axis=-1), 0),
    "expand two": (lambda m, x: m.expand_dims(x, axis=(0, -1)), 0),
    "squeeze": (lambda m, x: m.squeeze(x), 0),
    "matrix_transpose": (lambda m, x: m.matrix_transpose(x), 2),
    "permute": (lambda m, x: m.permute_dims(x, tuple(range(x.ndim))[::-1]), 0),
    "transpose": (lambda m, x: x.transpose(), 0),
    "mT": (lambda m, x: x.mT, 2),
    "ravel": (lambda m, x: x.ravel(), 0),
    "new axis by reshape": (lambda m, x: m.reshape(x, (*x.shape, 1)), 0),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_views_alias(device, name, shape):
    function, least = VIEWS[name]
    if len(shape) < least:
        shape = (1,) * (least - len(shape)) + shape
    x, data = both(shape)
    data = data.copy()
    ours, expected = function(td, x), function(np, data)
    same(ours, np.asarray(expected))
    if not shape:  # NumPy gives scalars for some of them
        expected = data.reshape(ours.shape)
    ours[...] = ours + 100
    expected[...] = expected + 100
    same(x, data)
    x[...] = 7
    data[...] = 7
    same(ours, expected)


def test_what_is_written_may_have_a_name(device):
    x, data = both((4,))
    later = x + 100
    x[...] = later
    same(x, data + 100)
    same(later, data + 100)
    turned = td.flip(x) * 2
    x[1:] = turned[1:]
    same(x, np.array([101, 206, 204, 202], np.int32))
    same(turned, np.array([208, 206, 204, 202], np.int32))


def test_squeeze_named_axes(device):
    x, data = both((1, 3, 1, 2))
    same(td.squeeze(x, axis=0), data.squeeze(0))
    same(td.squeeze(x, (0, -2)), data.squeeze((0, -2)))
    same(td.squeeze(x, ()), data)
    same(x.squeeze(dim=2), data.squeeze(2))


@pytest.mark.parametrize("offset", [-4, -2, 0, 1, 3, 9])
def test_diagonal(device, offset):
    x, data = both((3, 4))
    same(td.diagonal(x, offset=offset), np.diagonal(data, offset))
    x, data = both((2, 3, 4))
    same(x.diagonal(offset=offset, axis1=-1, axis2=0), np.diagonal(data, offset, -1, 0))


def test_writing_a_diagonal(device):
    x = td.zeros((3, 3))
    x.diagonal()[...] = 2
    same(x, np.eye(3, dtype=np.float32) * 2)


def test_broadcasting(device):
    x, data = both((3, 1))
    same(td.broadcast_to(x, (2, 3, 4)), np.broadcast_to(data, (2, 3, 4)))
    same(x.broadcast_to((3, 0)), np.broadcast_to(data, (3, 0)))
    same(td.broadcast_to(td.full((), 3), 5), np.full(5, 3, td.full((), 3).dtype.numpy))
    y, other = both((1, 2))
    for ours, expected in zip(
        td.broadcast_arrays(x, y), np.broadcast_arrays(data, other), strict=True
    ):
        same(ours, expected)
    assert td.broadcast_arrays() == []
    with pytest.raises(ValueError, match="broadcast"):
        x.broadcast_to((3, 4))[0] = 1
    with pytest.raises(td.errors.ShapeError, match=r"\(3, 1\)"):
        td.broadcast_to(x, (4, 1))
    with pytest.raises(td.errors.ShapeError, match=r"\(3, 1\) and \(2, 2\)"):
        td.broadcast_arrays(x, td.zeros((2, 2)))


def test_a_broadcast_tensor_follows_what_it_shows(device):
    x, _ = both((2, 1))
    wide = td.broadcast_to(x, (2, 3))
    x[0] = 9
    assert wide.tolist() == [[9, 9, 9], [2, 2, 2]]


def test_transposes(device):
    x, data = both((2, 3))
    same(x.T, data.T)
    x, data = both((2, 3, 4))
    same(x.transpose(2, 0, 1), data.transpose(2, 0, 1))
    same(x.permute((1, -1, 0)), data.transpose(1, 2, 0))
    for shape in [(), (3,), (2, 3, 4)]:
        with pytest.raises(ValueError, match="two axes"):
            _ = td.zeros(shape).T
    with pytest.raises(ValueError, match="two axes"):
        _ = td.zeros(3).mT


# --- shapes --------------------------------------------------------------------------------------


def test_reshape_and_copies(device):
    x, data = both((3, 4))
    for shape in [(4, 3), (-1,), (2, -1, 3), 12, (12, 1, 1)]:
        same(td.reshape(x, shape), data.reshape(shape))
        same(td.reshape(x.T, shape), data.T.reshape(shape))
    shared = td.reshape(x, (2, 6), copy=False)
    copied = td.reshape(x, (2, 6), copy=True)
    x[0] = 0
    assert shared.tolist()[0] == [0, 0, 0, 0, 5, 6]
    assert copied.tolist()[0] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="copy"):
        td.reshape(x.T, (12,), copy=False)
    for wrong in [(5,), (-1, -1), (-2, -6), (3, 4, 0)]:
        with pytest.raises(td.errors.ShapeError):
            td.reshape(x, wrong)


def test_reshape_of_nothing(device):
    x = td.zeros((2, 0, 3))
    for shape in [(0,), (-1,), (0, 7), (3, -1), (5, 0, 2)]:
        assert td.reshape(x, shape).numpy().shape == np.zeros((2, 0, 3)).reshape(shape).shape
    assert td.reshape(td.full((), 3.0), (1, 1)).tolist() == [[3.0]]
    assert td.reshape(td.ones((1, 1)), ()).item() == 1


def test_flatten_copies(device):
    x, data = both((2, 3, 4))
    flat = x.flatten()
    x[...] = 0
    same(flat, data.flatten())
    same(x.flatten(start_dim=1), np.zeros((2, 12), np.int32))
    assert td.full((), 1.0).flatten().shape == (1,)
    assert td.zeros((2, 3, 0, 5)).flatten(1, -2).shape == (2, 0, 5)


def test_copies_are_independent(device):
    x, _ = both((2, 3))
    copies = [
        x.clone(), x.T.contiguous().T, td.astype(x, x.dtype), td.asarray(x, copy=True), x.flatten(),
        td.concat([x]), td.tile(x, 1), td.repeat(x, 1, axis=0), td.roll(x, 0), td.tril(x, k=9),
        td.meshgrid(x[0])[0], td.stack([x]), +x,
    ]  # fmt: skip
    x[...] = 0
    for copied in copies:
        assert copied.tolist() != (x.tolist())
        copied[...] = 5
        assert x.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert x.contiguous() is x
    assert td.astype(x, x.dtype, copy=False) is x


# --- put together --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat(device, axis):
    x, data = both((2, 3))
    parts = [x, x.T.T + 10, x[:, ::-1]]
    expected = [data, data + 10, data[:, ::-1]]
    same(td.concat(parts, axis=axis), np.concatenate(expected, axis=axis))


def test_concat_of_sizes_and_dtypes(device):
    x, data = both((2, 3), np.int16)
    y, other = both((0, 3), np.float32)
    z, third = both((4, 3), np.uint8)
    same(td.concat([x, y, z]), np.concatenate([data, other, third], dtype=np.float32))
    same(td.concat((y, y)), np.concatenate([other, other]))
    assert td.concat([td.full((), 1.0), td.full((), 2.0)], axis=None).tolist() == [1.0, 2.0]
    flags = td.asarray([True, False])
    same(td.concat([flags, flags[:1]]), np.array([True, False, True]))


def test_what_is_concatenated_may_be_written_after(device):
    x = td.zeros(3)
    joined = td.concat([x, x + 1])
    x[...] = 9
    joined[0] = 4
    assert joined.tolist() == [4, 0, 0, 1, 1, 1]
    assert x.tolist() == [9, 9, 9]
    x[1:] = td.concat([x[:1], x[:1] + 1])
    assert x.tolist() == [9, 9, 10]


def test_many_parts(device):
    parts = [td.full(2, i) for i in range(40)]
    assert td.concat(parts).tolist() == [i for i in range(40) for _ in "ab"]
    assert td.stack(parts, axis=-1).tolist() == [list(range(40))] * 2


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_stack_and_unstack(device, axis):
    x, data = both((2, 3))
    stacked = td.stack([x, x * 2, -x], axis=axis)
    same(stacked, np.stack([data, data * 2, -data], axis=axis))
    for part, expected in zip(td.unstack(stacked, axis=axis), [data, data * 2, -data], strict=True):
        same(part, expected)


def test_unstack_gives_views(device):
    x, _ = both((2, 3))
    td.unstack(x, axis=1)[2][...] = 0
    assert x.tolist() == [[1, 2, 0], [4, 5, 0]]
    assert [row.tolist() for row in x] == [[1, 2, 0], [4, 5, 0]]
    assert td.unstack(td.zeros((0, 2))) == ()
    with pytest.raises(TypeError, match="without axes"):
        iter(td.full((), 1))


def test_split(device):
    x, data = both((4, 6))
    for where, axis in [(2, 0), (3, 1), ([1, 3], -1), ([2, 9], 0), ([3, 1], 0), ([-2], 1), ([], 0)]:
        for part, expected in zip(
            td.split(x, where, axis=axis), np.split(data, where, axis=axis), strict=True
        ):
            same(part, expected)
    with pytest.raises(td.errors.ShapeError, match="5 equal parts"):
        td.split(x, 5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_repeat_and_tile(device, shape):
    x, data = both(shape)
    for count in (0, 1, 3):
        same(td.repeat(x, count), np.repeat(data, count))
        for axis in range(-len(shape), len(shape)):
            same(x.repeat(count, axis=axis), data.repeat(count, axis=axis))
    for times in [(), 2, (2,), (1, 3), (2, 1, 2, 1), (0,), (2, 0)]:
        same(td.tile(x, times), np.tile(data, times))


def test_repeat_by_an_array(device):
    x, data = both((3, 4))
    counts = np.array([2, 0, 1])
    same(td.repeat(x, td.asarray(counts.tolist()), axis=0), np.repeat(data, counts, axis=0))
    same(td.repeat(x + 1, td.asarray([3, 0, 0, 1], dtype="uint8"), axis=1),
         np.repeat(data + 1, [3, 0, 0, 1], axis=1))  # fmt: skip
    same(td.repeat(x, td.asarray([2]), axis=1), np.repeat(data, 2, axis=1))
    same(td.repeat(x.T, np.arange(12)), np.repeat(data.T, np.arange(12)))
    same(td.repeat(x, td.asarray([0, 0, 0]), axis=0), data[:0])
    for wrong, error in [([1, 2], ValueError), ([1, -1, 2], ValueError), ([0.5] * 3, TypeError)]:
        with pytest.raises(error, match="repeat"):
            td.repeat(x, td.asarray(wrong), axis=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_roll(device, shape):
    x, data = both(shape)
    for shift in (0, 1, -2, 13, -(10**20)):
        same(td.roll(x, shift), np.roll(data, int(shift % max(data.size, 1))))
        for axis in range(-len(shape), len(shape)):
            by = shift % max(shape[axis], 1)
            same(td.roll(x, shift, axis=axis), np.roll(data, by, axis=axis))
    if len(shape) > 1:
        same(td.roll(x, (1, -2), axis=(0, -1)), np.roll(data, (1, -2), axis=(0, -1)))
        same(x.roll(1, dim=(0, 1)), np.roll(data, 1, axis=(0, 1)))
        same(td.roll(x, (1, 2), axis=(1, 1)), np.roll(data, (1, 2), axis=(1, 1)))


@pytest.mark.parametrize("k", [-(10**30), -5, -1, 0, 1, 2, 7, 10**30])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 3, 3), (0, 3), (3, 0), (1, 1)], ids=str)
def test_triangles(device, shape, k):
    x, data = both(shape)
    near = max(-9, min(k, 9))
    same(td.tril(x, k=k), np.tril(data, near))
    same(td.triu(x, k=k), np.triu(data, near))


def test_triangles_of_other_dtypes(device):
    data = np.full((3, 3), np.nan, np.float32)
    np.testing.assert_array_equal(td.tril(td.asarray(data)).numpy(), np.tril(data))
    flags = np.ones((2, 3), bool)
    same(td.triu(td.asarray(flags)), np.triu(flags))
    numbers = np.full((2, 2), 1 + 2j, np.complex64)
    same(td.asarray(numbers).tril(), np.tril(numbers))
    with pytest.raises(ValueError, match="two axes"):
        td.tril(td.zeros(3))


def test_meshgrid(device):
    a, b, c = td.asarray([1, 2, 3]), td.asarray([4, 5]), td.full((), 6)
    for indexing in ("xy", "ij"):
        for parts in [(a,), (a, b), (a, b, c)]:
            expected = np.meshgrid(*[part.numpy() for part in parts], indexing=indexing)
            ours = td.meshgrid(*parts, indexing=indexing)
            assert isinstance(ours, list)
            for one, other in zip(ours, expected, strict=True):
                same(one, other)
    assert td.meshgrid() == []
    with pytest.raises(td.errors.ShapeError):
        td.meshgrid(td.zeros((2, 2)))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_diff(device, n):
    x, data = both((3, 5))
    x, data = x * x, data * data
    for axis in (0, 1, -1):
        same(td.diff(x, axis=axis, n=n), np.diff(data, axis=axis, n=n))
    edge = data[:, :2]
    same(td.diff(x, n=n, prepend=td.asarray(edge), append=td.asarray(edge[:, :1])),
         np.diff(data, n=n, prepend=edge, append=edge[:, :1]))  # fmt: skip
    same(td.diff(x, n=n, prepend=0), np.diff(data, n=n, prepend=np.int32(0)))


def test_diff_of_bools(device):
    flags = np.array([True, True, False, True])
    same(td.diff(td.asarray(flags)), np.diff(flags))
    with pytest.raises(ValueError, match="diff"):
        td.diff(td.zeros(3), n=-1)


# --- every dtype ---------------------------------------------------------------------------------

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "complex64"]
WIDE = ["int64", "uint64", "float64", "complex128"]


def has(device, dtype):
    try:
        td.empty(1, dtype=dtype)
    except td.errors.DtypeError:
        return False
    return True


@pytest.mark.parametrize("dtype", [*DTYPES, *WIDE, "float16"])
def test_every_dtype(device, dtype):
    if not has(device, dtype):
        assert device.backend == "webgpu"
        return
    x, data = both((3, 5), dtype)
    same(td.concat([x.T, td.flip(x.T)], axis=1), np.concatenate([data.T, np.flip(data.T)], axis=1))
    same(td.roll(x, 2, axis=1), np.roll(data, 2, axis=1))
    same(td.tile(x, (1, 2)), np.tile(data, (1, 2)))
    same(td.repeat(x, td.asarray([1, 0, 2]), axis=0), np.repeat(data, [1, 0, 2], axis=0))
    same(td.tril(x), np.tril(data))


def test_bfloat16(device):
    x = td.asarray([[1.5, 2.5], [-3.0, 4.0]], dtype=td.bfloat16)
    joined = td.concat([x, td.flip(x, axis=0)]).to(td.float32)
    assert joined.tolist() == [[1.5, 2.5], [-3.0, 4.0], [-3.0, 4.0], [1.5, 2.5]]
    assert td.concat([x, td.zeros((1, 2), dtype=td.float16)]).dtype == td.float32


# --- errors --------------------------------------------------------------------------------------

WRONG_AXES = {
    "flip": lambda x: td.flip(x, axis=2),
    "expand_dims": lambda x: td.expand_dims(x, axis=3),
    "expand_dims before": lambda x: td.expand_dims(x, axis=-4),
    "squeeze": lambda x: td.squeeze(x, axis=2),
    "concat": lambda x: td.concat([x, x], axis=2),
    "stack": lambda x: td.stack([x, x], axis=3),
    "unstack": lambda x: td.unstack(x, axis=-3),
    "roll": lambda x: td.roll(x, 1, axis=2),
    "repeat": lambda x: td.repeat(x, 2, axis=2),
    "diff": lambda x: td.diff(x, axis=2),
    "moveaxis": lambda x: td.moveaxis(x, 2, 0),
    "swapaxes": lambda x: td.swapaxes(x, 0, 2),
    "permute_dims": lambda x: td.permute_dims(x, (0, 2)),
}


@pytest.mark.parametrize("name", WRONG_AXES)
def test_wrong_axes(device, name):
    with pytest.raises(IndexError, match=rf"{name.split()[0]}: axis -?\d is not .* \(ndim is \d\)"):
        WRONG_AXES[name](td.zeros((2, 3)))


def test_what_does_not_fit(device):
    x = td.zeros((2, 3))
    for wrong in (
        lambda: td.squeeze(x, axis=0),
        lambda: td.permute_dims(x, (0,)),
        lambda: td.permute_dims(x, (0, 0)),
        lambda: td.flip(x, axis=(0, -2)),
        lambda: td.moveaxis(x, (0, 1), 0),
        lambda: td.concat([x, td.zeros((3, 2))]),
        lambda: td.concat([x, td.zeros(3)]),
        lambda: td.concat([]),
        lambda: td.concat([td.full((), 1.0)] * 2),
        lambda: td.stack([x, x.T]),
        lambda: td.stack([]),
        lambda: td.tile(x, -1),
        lambda: td.repeat(x, -1),
        lambda: td.roll(x, (1, 2, 3), axis=(0, 1)),
        lambda: td.diagonal(x, axis1=0, axis2=-2),
        lambda: x.flatten(1, 0),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            wrong()
    with pytest.raises(TypeError, match="dim"):
        td.flip(x, axis=0, dim=0)
    with pytest.raises(TypeError, match="integer"):
        td.flip(x, axis=0.5)
    signed, unsigned = ("int64", "uint64") if has(device, "uint64") else ("float32", "complex128")
    with pytest.raises(td.errors.DtypeError, match=unsigned):
        td.concat([td.zeros(1, dtype=signed), td.zeros(1, dtype=unsigned)])


def test_joining_on_two_devices():
    from tests.support.ptx_device import ptx_device

    with ptx_device("sm_90") as other, pytest.raises(td.errors.LaunchError, match="move"):
        td.concat([td.zeros(1, device="cpu"), td.zeros(1, device=other)])
