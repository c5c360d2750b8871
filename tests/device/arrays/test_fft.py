"""Fourier transforms against NumPy's, in complex128."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.device_arrays import has
from tests.support.poison import poisoned
from treadle.kernels import fourier, fourier_plans, tables

ALL_SHORT = range(1, 42)
# Several stages; two passes; chirps of a prime and of what a prime is in; what threads of a block
# share unevenly.
LONG = [1000, 1009, 2 * 1009, 4099, 5005, 1 << 13, 3 << 11, 1 << 16]


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


def complex_numbers(rng, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def near(found, expected, error=4e-7):
    """Relative, of the norm: roundings add up as the root of the stages."""
    assert found.shape == expected.shape
    wide = found.numpy().astype(np.result_type(expected))
    assert np.linalg.norm(wide - expected) <= error * np.linalg.norm(expected)


def holds_all(rng, n):
    """Every kind of transform of a length, in rows."""
    x = complex_numbers(rng, 3, n)
    t, wide = td.asarray(x), x.astype(complex)
    near(td.fft.fft(t), np.fft.fft(wide))
    near(td.fft.ifft(t), np.fft.ifft(wide))
    near(td.fft.rfft(td.real(t)), np.fft.rfft(wide.real))
    near(td.fft.irfft(t, n), np.fft.irfft(wide, n))
    near(td.fft.ifft(td.fft.fft(t)), wide)


@pytest.mark.parametrize("n", [1, 4, 13, 17, 24, "drawn"])
def test_short_lengths(device, rng, n):
    """Each radix has its turn over time; all of them are in the slow test."""
    count = int(rng.choice(ALL_SHORT)) if n == "drawn" else n
    x = complex_numbers(rng, 3, count)
    near(td.fft.fft(td.asarray(x)), np.fft.fft(x.astype(complex)))


def test_short_rows(device, rng):
    """Of few threads each, which share blocks: their elements go through shared memory in order."""
    n, count = (
        int(rng.choice([2, 6, 8, 10, 14, 15, 16, 17, 19, 22, 23, 26, 29, 31])),
        int(rng.choice([1, 3, 37])),
    )
    x = complex_numbers(rng, count, n)
    t, wide = td.asarray(x), x.astype(complex)
    near(td.fft.ifft(t), np.fft.ifft(wide))
    near(td.fft.rfft(td.real(t)), np.fft.rfft(wide.real))
    near(td.fft.irfft(t, n), np.fft.irfft(wide, n))


@pytest.mark.slow
@pytest.mark.parametrize("n", [*ALL_SHORT, *LONG], ids=str)
def test_every_length(device, rng, n):
    holds_all(rng, n)


def test_a_long_one(device, rng):
    """In passes of many lines. (A software adapter takes long to compile them.)"""
    n = 1 << 20 if device.backend == "cpu" else 64
    x = complex_numbers(rng, n)
    near(td.fft.fft(td.asarray(x)), np.fft.fft(x.astype(complex)))


def test_three_passes(device, rng, monkeypatch):
    """With factors before the first and after the last, and cut at both ends."""
    monkeypatch.setattr(fourier, "_capacity", lambda *_: fourier_plans.Capacity(4, 4))
    x = complex_numbers(rng, 2, 36, 3)
    t = td.asarray(x)
    for n in (64, 31):
        near(td.fft.fft(t, n, axis=1), np.fft.fft(x.astype(complex), n, axis=1))
    monkeypatch.setattr(fourier, "_MOST_TWIDDLES", 1)
    monkeypatch.setattr(fourier, "_MOST_TWIDDLES_SERIAL", 1)
    near(td.fft.ifft(td.real(t), 64, axis=1), np.fft.ifft(x.real.astype(float), 64, axis=1))


@pytest.mark.parametrize("n", [6, 5])
@pytest.mark.parametrize("axis", [0, 2])
def test_real_numbers(device, rng, axis, n):
    """Even and odd numbers of them, cut and filled up, side by side or not; parts that should be
    zero do not count."""
    x = complex_numbers(rng, 4, 3, 4)
    t, wide = td.asarray(x), x.astype(complex)
    near(td.fft.rfft(td.real(t), n, axis), np.fft.rfft(wide.real, n, axis))
    near(td.fft.ihfft(td.real(t), n, axis), np.fft.ihfft(wide.real, n, axis))
    near(td.fft.irfft(t, n, axis), np.fft.irfft(wide, n, axis))
    near(td.fft.hfft(t, n, axis), np.fft.hfft(wide, n, axis))


def test_real_numbers_in_several_stages(device, rng):
    x = rng.standard_normal((5, 40)).astype(np.float32)
    near(td.fft.rfft(td.asarray(x)), np.fft.rfft(x.astype(float)))


def test_convolutions(device, rng):
    """By a chirp, in one launch; what is beyond the end is not read, and not written."""
    x = complex_numbers(rng, 3, 41)
    t, wide = td.asarray(x), x.astype(complex)
    near(td.fft.rfft(td.real(t), 74), np.fft.rfft(wide.real, 74))
    near(td.fft.irfft(t, 74), np.fft.irfft(wide, 74))
    columns = complex_numbers(rng, 2, 40, 3)
    t, wide = td.asarray(columns), columns.astype(complex)
    near(td.fft.ifft(t, 37, axis=1), np.fft.ifft(wide, 37, axis=1))


def test_convolutions_by_parts(device, rng, monkeypatch):
    """In three launches, as with more elements than a block has room for."""
    monkeypatch.setattr(
        fourier, "_capacity", lambda *_: fourier_plans.Capacity(64, 32, threads=256)
    )
    if device.backend == "cpu":
        return
    x = complex_numbers(rng, 2, 150)
    near(td.fft.ifft(td.asarray(x), 139), np.fft.ifft(x[:, :139].astype(complex)))
    columns = complex_numbers(rng, 1, 130, 3)
    t, wide = td.asarray(columns), columns.astype(complex)
    near(td.fft.irfft(t, 278, axis=1), np.fft.irfft(wide, 278, axis=1))


def test_rows_as_matrices(device, rng):
    """On the CPU: of columns that fill groups of lanes, and that do not."""
    for n in (256, 340) if device.backend == "cpu" else ():
        x = complex_numbers(rng, 2, n)
        near(td.fft.fft(td.asarray(x)), np.fft.fft(x.astype(complex)))


def test_what_is_cut_off_is_not_read(device, rng):
    x = complex_numbers(rng, 2, 20)
    x[:, 17:] = np.nan
    near(td.fft.fft(td.asarray(x), 17), np.fft.fft(x[:, :17].astype(complex)))


def test_views(device, rng):
    """Transposed, strided, flipped, broadcast."""
    x = complex_numbers(rng, 4, 6)
    t = td.asarray(x)
    for seen, expected in [
        (t.T, x.T), (t[::2, ::-1], x[::2, ::-1]), (td.broadcast_to(t[:1], (5, 6)), x[[0] * 5]),
        (t[1:], x[1:]),
    ]:  # fmt: skip
        near(td.fft.fft(seen, 4), np.fft.fft(expected.astype(complex), 4))
    odd = td.real(t).reshape(-1)[1:9]
    near(td.fft.rfft(odd), np.fft.rfft(x.real.ravel()[1:9].astype(float)))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_several_axes(device, rng, norm):
    x = complex_numbers(rng, 4, 3, 6)
    t, wide = td.asarray(x), x.astype(complex)
    for axes in ((0, 2), (1,)):
        near(td.fft.fftn(t, axes=axes, norm=norm), np.fft.fftn(wide, axes=axes, norm=norm))
    near(td.fft.ifftn(t, norm=norm), np.fft.ifftn(wide, norm=norm))
    near(td.fft.rfftn(td.real(t), norm=norm), np.fft.rfftn(wide.real, norm=norm))
    near(td.fft.irfftn(td.fft.rfftn(td.real(t), norm=norm), norm=norm), wide.real)
    near(td.fft.fft2(t, (4, -1), norm=norm), np.fft.fft2(wide, (4, 6), norm=norm))
    near(td.fft.ifft2(t, norm=norm), np.fft.ifft2(wide, norm=norm))
    near(td.fft.rfft2(td.real(t), norm=norm), np.fft.rfft2(wide.real, norm=norm))
    s = (4, 6)
    near(td.fft.irfft2(t, s, norm=norm), np.fft.irfft2(wide, s, norm=norm))
    near(td.fft.hfft(t, norm=norm), np.fft.hfft(wide, norm=norm))
    near(td.fft.ihfft(td.real(t), norm=norm), np.fft.ihfft(wide.real, norm=norm))


def test_double_precision(device, rng):
    if not has(device, td.complex128):
        return
    x = rng.standard_normal((2, 8))
    found = td.fft.fft(td.asarray(x))
    assert found.dtype is td.complex128
    near(found, np.fft.fft(x), 1e-15)
    near(td.fft.irfft(td.fft.rfft(td.asarray(x))), x, 1e-15)


def test_dtypes(device):
    for dtype in (td.int8, td.uint32, td.bool, td.int32):
        found = td.fft.fft(td.asarray([1, 0, 1, 1], dtype=dtype))
        assert found.dtype is td.complex64
        near(found, np.fft.fft([1.0, 0.0, 1.0, 1.0]))
    assert td.fft.irfft(td.ones(3)).dtype is td.float32
    for dtype in (td.float16, td.bfloat16):
        with pytest.raises(td.errors.DtypeError, match=r"no transforms of .*float16"):
            td.fft.fft(td.ones(3, dtype=dtype))
    for function in (td.fft.rfft, td.fft.rfftn, td.fft.rfft2, td.fft.ihfft):
        with pytest.raises(td.errors.DtypeError, match="takes real numbers, not complex64"):
            function(td.ones((2, 3), dtype=td.complex64))


def test_nothing(device):
    """No lines; no elements, which zeros fill up."""
    assert td.fft.fft(td.ones((0, 4))).numpy().shape == (0, 4)
    assert td.fft.rfft(td.ones((4, 0)), axis=0).numpy().shape == (3, 0)
    assert td.fft.fft(td.ones((2, 0)), 3).tolist() == [[0j] * 3] * 2
    assert td.fft.irfft(td.ones((2, 0)), 3).tolist() == [[0.0] * 3] * 2
    x = td.ones((2, 2), dtype=td.complex64)
    same = td.fft.fftn(x, axes=())
    x[0] = 5  # and it is a copy
    near(same, np.ones((2, 2), complex))


def test_what_is_around_them(device, rng):
    """Lazy: nothing runs before somebody reads, and expressions go in and out."""
    x = complex_numbers(rng, 4, 6)
    t = td.asarray(x)
    found = td.abs(td.fft.ifft(td.fft.fft(t * 2 + 1) * 3)).sum(axis=0)
    near(found, np.abs(x.astype(complex) * 6 + 3).sum(axis=0))


def test_a_capture_brings_its_factors(device, rng):
    """Factors that come while launches are recorded are there when these are replayed, and those
    that come later are there without a replay."""
    n = 22
    x = complex_numbers(rng, n)
    t = td.asarray(x)
    graph = td.Graph(device)
    with graph.capture():
        found = td.fft.fft(t)
    near(td.fft.fft(td.conj(t)), np.fft.fft(x.conj().astype(complex)))
    graph.replay()
    near(found, np.fft.fft(x.astype(complex)))


def test_factors_are_forgotten(device, rng, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_BYTES", 64)
    device.tables.clear()
    for n in (36, 60, 36):
        x = complex_numbers(rng, n)
        near(td.fft.fft(td.asarray(x)), np.fft.fft(x.astype(complex)))
    assert len(device.tables) == 1


def test_frequencies(device):
    for n in (1, 2, 7, 8):
        for ours, numpys in [
            (td.fft.fftfreq, np.fft.fftfreq), (td.fft.rfftfreq, np.fft.rfftfreq),
        ]:  # fmt: skip
            found = ours(n, d=0.3)
            assert found.dtype is td.float32
            np.testing.assert_allclose(found.numpy(), numpys(n, 0.3), 1e-7)
    x = np.arange(30.0, dtype=np.float32).reshape(5, 6)
    t = td.asarray(x)
    for axes in (None, 0, (1,), (-1, 0), ()):
        np.testing.assert_array_equal(td.fft.fftshift(t, axes).numpy(), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(td.fft.ifftshift(t, axes).numpy(), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: td.fft.fft(x, 0), ValueError, "n is 0, and a transform has at least 1"),
        (lambda x: td.fft.fft(x, 2.5), TypeError, "n is an integer, not float"),
        (lambda x: td.fft.fft(x, axis=2), IndexError, r"axis 2 is not from -2 to 1"),
        (lambda x: td.fft.fft(x, norm="both"), ValueError, "norm is 'both', not one of 'backward'"),
        (lambda x: td.fft.fft(x[:, :0]), ValueError, "as it is there would be 0: give n"),
        (lambda x: td.fft.irfft(x[:, :1]), ValueError, "as it is there would be 0: give n"),
        (lambda x: td.fft.fft(x[0, 0]), td.errors.ShapeError, "has no axes"),
        (lambda x: td.fft.fftn(x, axes=(0, -2)), ValueError, "an axis is named twice"),
        (lambda x: td.fft.fftn(x, (2, 2, 2)), td.errors.ShapeError, "s has 3 lengths"),
        (lambda x: td.fft.fftn(x, (2,), (0, 1)), td.errors.ShapeError, "1 lengths for 2 axes"),
        (lambda x: td.fft.fftn(x, (2, 0)), ValueError, "a length in s|s is 0"),
        (lambda x: td.fft.rfftn(x, axes=()), ValueError, "axes is empty"),
        (lambda x: td.fft.irfftn(x, axes=()), ValueError, "axes is empty"),
        (lambda x: td.fft.fft(x, 1 << 31), td.errors.ShapeError, "too many at once"),
        (lambda x: td.fft.fftfreq(0), ValueError, "n is 0"),
        (lambda x: td.fft.rfftfreq(3, d=0), ValueError, "d must not be 0"),
        (lambda x: td.fft.fftfreq(3, dtype=td.int32), td.errors.DtypeError, "real numbers"),
        (lambda x: td.fft.fftshift(x, 2), IndexError, "axis 2"),
    ],
)  # fmt: skip
def test_refusals(device, call, error, words):
    with pytest.raises(error, match=words):
        call(td.ones((2, 3)))


def test_factors_by_two():
    """Products of the two are the roots of unity to the power line * k."""
    first, cofactor, last = 60, 35, 4
    table = fourier_plans.pass_twiddles_by_two(first, cofactor, last).reshape(-1, cofactor)
    k, lines = np.arange(first)[:, None], np.arange(cofactor)
    behind = first // last
    found = table[np.arange(first) // behind] * table[last + np.arange(first) % behind]
    expected = np.exp(-2j * np.pi * k * lines / (first * cofactor))
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_parts_of_a_length():
    """Their product is the length, and none is too long; what has a large prime factor has none."""
    capacity = fourier_plans.Capacity(64, 32)
    for n in (1, 64, 65, 1000, 1 << 15, 3**9):
        parts = fourier_plans.split(n, 9, 1, capacity)
        assert parts is not None
        assert np.prod(parts) == n
        assert n <= 64 or max(parts) <= 32
    assert fourier_plans.split(1 << 16, 1, 1, capacity) is None
    assert fourier_plans.split(74, 1, 1, capacity) is None
    for n in (*ALL_SHORT, 360, 1000, 1024, 4096):
        if (radices := fourier_plans.radices(n)) is not None:
            found, lanes = fourier_plans.block_radices(n, 256)
            assert np.prod(found) == n
            assert lanes <= 256
            for across in (False, True):
                tile = fourier_plans.block_plan(n, 1000, 4608, across, 256).tile
                assert tile.threads <= 256
                assert tile.lines * n <= 4608
        assert radices is None or np.prod(radices) == n
        assert fourier_plans.convolution_length(n) >= 2 * n - 1
        assert fourier_plans.radices(fourier_plans.convolution_length(n))
