"""Complex tensors: made, moved and shared, and in kernels pairs of floats."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import treadle as td


@td.kernel
def square(z: td.Array[td.complex64], out: td.Array[td.vec2[td.f32]]):
    i = td.grid(1)
    if i < z.size:
        out[i].x = z[i].x * z[i].x - z[i].y * z[i].y
        out[i].y = 2.0 * z[i].x * z[i].y


@td.kernel
def swap(z):
    i = td.grid(1)
    z[i] = z[i].yx


NUMBERS = np.array([1 + 2j, -3.5j, 4, 0, -1 - 1j, 0.5 + 8j, 7 - 2j], np.complex64)


def test_round_trip(device):
    z = td.asarray(NUMBERS)
    assert (z.dtype, z.nbytes) == (td.complex64, 56)
    np.testing.assert_array_equal(z.numpy(), NUMBERS)
    np.testing.assert_array_equal(z[::-2].numpy(), NUMBERS[::-2])
    assert td.asarray([1j, 2]).dtype == td.complex64
    assert td.asarray(np.zeros((0, 3), np.complex64)).shape == (0, 3)
    assert complex(z[1]) == -3.5j
    assert "complex64" in repr(z)
    copy = pickle.loads(pickle.dumps(z))
    np.testing.assert_array_equal(copy.to("cpu").numpy(), NUMBERS)
    z[1::3] = [9j, 5]
    assert z.tolist()[:5] == [1 + 2j, 9j, 4, 0, 5]
    assert td.full(2, 3 - 1j).tolist() == [3 - 1j] * 2
    assert td.zeros(2, dtype="c64").tolist() == [0j, 0j]


def test_casts(device):
    z = td.asarray(NUMBERS)
    assert z.to(td.bool).tolist() == [True, True, True, False, True, True, True]
    assert td.asarray([1, 2]).to(td.complex64).tolist() == [1, 2]
    real = td.zeros(7)
    for refused in (
        lambda: z.to(td.f32),
        lambda: z.to(td.int32),
        lambda: real.__setitem__(slice(None), z),
        lambda: real.__setitem__(slice(None, None, 2), 1j),
        lambda: td.full(3, 1j, dtype=td.f32),
        lambda: td.asarray([1j], dtype=td.f32),
    ):
        with pytest.raises(td.errors.DtypeError, match=r"imaginary parts|is complex"):
            refused()
    assert real.tolist() == [0.0] * 7


def test_complex128_needs_float64(device):
    if "float64" not in device.features:
        with pytest.raises(td.errors.DtypeError, match=r"use dtype=td\.complex64"):
            td.zeros(3, dtype=td.complex128)
        return
    z = td.asarray([1 + 1e-12j], dtype=td.complex128)
    swap.launch(1, z)
    assert z.tolist() == [1e-12 + 1j]


@pytest.mark.parametrize("mode", ["compiled", "interpreted"])
def test_an_element_is_a_vector_of_two(device, mode):
    z, out = td.asarray(NUMBERS), td.zeros(7, dtype=td.complex64)
    host = NUMBERS.copy()
    strided = np.repeat(NUMBERS, 2)[::2]
    if mode == "interpreted":
        with td.interpret():
            square.launch(7, z, out)
            swap.launch(7, host)
            swap.launch(7, strided)
    else:
        square.launch(7, z, out)
        swap.launch(7, host)
        swap.launch(7, strided)
    np.testing.assert_allclose(out.numpy(), NUMBERS**2, rtol=1e-6)
    np.testing.assert_array_equal(host, NUMBERS.imag + 1j * NUMBERS.real)
    np.testing.assert_array_equal(strided, host)
    pairs = td.zeros((7, 2))  # what is declared as vectors takes rows of floats too
    square.launch(7, z, pairs)
    np.testing.assert_array_equal(pairs.numpy()[:, 1], out.numpy().imag)
    with pytest.raises(td.errors.DtypeError, match=r"argument 1 \(z\)"):
        square.launch(7, td.zeros(7, dtype=td.i32), out)


def test_elementwise(device):
    @td.elementwise
    def turned(z, by):
        return td.vec2[td.f32](-z.y, z.x) * by

    @td.elementwise
    def size(z):
        return td.hypot(z.x, z.y)

    z = td.asarray(NUMBERS)
    made = turned(z[:, None], np.array([1, 2, 4], np.float32))
    assert made.dtype == td.complex64
    np.testing.assert_array_equal(made.numpy(), NUMBERS[:, None] * 1j * [1, 2, 4])
    assert size(z).dtype == td.f32
    np.testing.assert_allclose(size(z).numpy(), np.abs(NUMBERS), rtol=1e-6)


def test_a_kernel_has_no_complex_numbers(device):
    @td.kernel
    def cast(out: td.Array[td.f32]):
        out[0] = td.complex64(1.0).x

    unit = np.complex64(1j)

    @td.kernel
    def captured(out: td.Array[td.f32]):
        out[0] = unit

    for kernel in (cast, captured):
        with pytest.raises(td.errors.CompileError, match="complex"):
            kernel[1, 1](td.zeros(1))


def test_other_libraries_share_them():
    data = NUMBERS.copy()
    shared = td.from_dlpack(data)
    swap.launch(1, shared)
    assert data[0] == 2 + 1j
    back = np.from_dlpack(td.asarray(data, dtype=td.complex128, device="cpu"))
    assert back.dtype == np.complex128
    np.testing.assert_array_equal(back, data)


def test_distances_are_real(device):
    """Lengths of complex vectors, and how far apart they are."""
    x = np.array([[1 + 2j, -3.5j, 4], [0, -1 - 1j, 0.5 + 8j], [7 - 2j, 2, 1j]], np.complex64)
    functional = td.nn.functional
    first, second = np.triu_indices(3, 1)
    for p in (0.0, 1.0, 2.0, 3.0, np.inf):
        away = np.abs(x[first] - x[second])
        wanted = np.linalg.norm(away, p, axis=-1)
        found = functional.pdist(td.asarray(x), p)
        assert found.dtype is td.float32
        np.testing.assert_allclose(found.numpy(), wanted, 2e-6)
        found = functional.pairwise_distance(
            td.asarray(x[first]), td.asarray(x[second]), p, eps=0.0
        )
        assert found.dtype is td.float32
        np.testing.assert_allclose(found.numpy(), wanted, 2e-6)
    found = functional.normalize(td.asarray(x), dim=1).numpy()
    np.testing.assert_allclose(found, x / np.linalg.norm(x, axis=1, keepdims=True), 2e-6)


def test_powers_and_their_logarithms(device):
    z = np.stack([NUMBERS[:6], NUMBERS[1:]]) + 0.25
    x, y = td.asarray(z)
    wide = z.astype(np.complex128)
    cases = {
        "exp2": (td.exp2(x), 2 ** wide[0]),
        "rsqrt": (td.rsqrt(x), 1 / np.sqrt(wide[0])),
        "sigmoid": (td.sigmoid(x), 1 / (1 + np.exp(-wide[0]))),
        "logaddexp": (td.logaddexp(x, y), None),
        "logsumexp": (td.logsumexp(td.stack([x, y + 200]), axis=0), None),
    }
    for name, (found, wanted) in cases.items():
        assert found.dtype is td.complex64
        got = found.numpy()
        if wanted is None:  # the imaginary part is one of many
            got = np.exp(got.astype(np.complex128) - 200 * (name == "logsumexp"))
            far = np.exp(-200) if name == "logsumexp" else 1
            wanted = np.exp(wide[0]) * far + np.exp(wide[1])
            tolerance = 1e-4
        else:
            tolerance = 5e-6
        np.testing.assert_allclose(got, wanted, tolerance, tolerance, err_msg=name)
    assert td.logsumexp(x[:0]).real.item() == -np.inf


def test_convolutions_and_distances_of_targets(device):
    rng = np.random.default_rng(4)

    def draw(*shape):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)

    row, weight, bias = draw(9), draw(3), draw(1)
    x, w, b = (td.asarray(each) for each in (row[None, None], weight[None, None], bias))
    functional = td.nn.functional
    found = functional.conv1d(x, w, b)
    assert found.dtype is td.complex64
    wanted = np.convolve(row, weight[::-1], "valid") + bias
    np.testing.assert_allclose(found.numpy()[0, 0], wanted, 1e-5, 1e-5)
    found = functional.conv_transpose1d(x, w, b)
    np.testing.assert_allclose(found.numpy()[0, 0], np.convolve(row, weight) + bias, 1e-5, 1e-5)
    found = functional.l1_loss(x, x[..., ::-1])
    assert found.dtype is td.float32
    np.testing.assert_allclose(found.item(), np.abs(row - row[::-1]).mean(), 1e-5)
