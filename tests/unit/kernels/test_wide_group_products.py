"""Products of TF32 and of 8-bit integers by groups of 128 threads, on the PTX evaluator and on the
CPU: both factors lie along the inner axis, and sums have 32 bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.core.dtypes import DType
from treadle.core.errors import UnsupportedOnTarget
from treadle.kernels import matrix_check, product, tiles
from treadle.kernels.device_code.group_product import GroupTile
from treadle.kernels.factors import TF32, Factor, Product
from treadle.kernels.machine import Machine
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import GROUP_TILES, Problem, tile_for

SMALL = GroupTile(64, 64, 2)


@pytest.fixture
def card() -> Iterator[td.Device]:
    with ptx_device("sm_90") as device, td.use_device(device):
        yield device


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


def as_tf32(x: np.ndarray) -> np.ndarray:
    """The nearest numbers with 10 bits of fraction, in float64, of two the even one."""
    fraction, exponent = np.frexp(x.astype("f8"))
    return np.where(np.isfinite(x), np.ldexp(np.rint(fraction * 2**11) / 2**11, exponent), x)


def _drawn(rng: np.random.Generator, dtype: DType, *shape: int) -> np.ndarray:
    if dtype is td.float32:
        return rng.standard_normal(shape).astype(np.float32)
    low = 0 if dtype is td.uint8 else -128
    return rng.integers(low, low + 256, shape).astype(dtype.numpy)


def _multiplied(
    device: td.Device, x: np.ndarray, y: np.ndarray, tile: GroupTile, result: DType
) -> np.ndarray:
    """x @ y.T"""
    (m, k), n = x.shape, y.shape[0]
    a, b = (td.asarray(each, device=device)._array for each in (x, y))
    with poisoned(device):
        out = td.empty((1, m, n), dtype=result, device=device)._array
    names = {"float32": "", "int8": "i8", "uint8": "u8"}
    factors = names[x.dtype.name] + names[y.dtype.name]
    factors = {"": TF32, "i8i8": "i8", "u8u8": "u8"}.get(factors, factors)
    along = Factor((), k, 1, 0)
    by_tiles(a, b, out, Product((), m, n, k, along, along, factors), tile)
    return np.asarray(out.to_host()[0])


def _check(found: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    if x.dtype == np.float32:
        with np.errstate(invalid="ignore"):
            wanted = as_tf32(x) @ as_tf32(y).T
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
        return
    wanted = x.astype("i8") @ y.T.astype("i8")
    np.testing.assert_array_equal(found, wanted.astype(found.dtype))


# Rows, columns and inner extent at the edges of tiles and beyond; stages fewer and more than steps.
CASES = [
    (1, 4, 16, SMALL),
    (72, 137, 208, GroupTile(64, 64, 3)),
    (130, 136, 80, GroupTile(128, 128, 2)),
    (64, 128, 272, GroupTile(64, 128, 4)),
]


@pytest.mark.parametrize(("m", "n", "k", "tile"), CASES)
@pytest.mark.parametrize("dtype", [td.float32, td.int8], ids=str)
def test_edges(card, rng, dtype, m, n, k, tile):
    x, y = _drawn(rng, dtype, m, k), _drawn(rng, dtype, n, k)
    result = td.float32 if dtype is td.float32 else td.int32
    _check(_multiplied(card, x, y, tile, result), x, y)


@pytest.mark.parametrize("dtype", [td.float32, td.int8], ids=str)
def test_the_table_s_largest_tile(card, rng, dtype):
    x, y = _drawn(rng, dtype, 136, 144), _drawn(rng, dtype, 260, 144)
    tile = next(iter(GROUP_TILES))
    result = td.float32 if dtype is td.float32 else td.int32
    _check(_multiplied(card, x, y, tile, result), x, y)


@pytest.mark.parametrize(
    ("one", "other"), [(td.uint8, td.uint8), (td.uint8, td.int8), (td.int8, td.uint8)], ids=str
)
def test_bytes_without_signs(card, rng, one, other):
    x, y = _drawn(rng, one, 40, 144), _drawn(rng, other, 72, 144)
    _check(_multiplied(card, x, y, SMALL, td.int32), x, y)
    _check(_multiplied(td.device("cpu"), x, y, SMALL, td.int32), x, y)


def test_results_that_wrap(card, rng):
    """int8 times int8 is int8."""
    x, y = _drawn(rng, td.int8, 40, 48), _drawn(rng, td.int8, 72, 48)
    _check(_multiplied(card, x, y, SMALL, td.int8), x, y)


@pytest.mark.parametrize("dtype", [td.float32, td.int8], ids=str)
def test_on_the_cpu(rng, dtype):
    x, y = _drawn(rng, dtype, 70, 144), _drawn(rng, dtype, 44, 144)
    result = td.float32 if dtype is td.float32 else td.int32
    _check(_multiplied(td.device("cpu"), x, y, SMALL, result), x, y)


def test_special_values(card, rng):
    """NaN and infinities stay in their rows and columns; what rounds to infinity is infinity."""
    x, y = _drawn(rng, td.float32, 16, 36), _drawn(rng, td.float32, 24, 36)
    x[2, 35], x[3, 0], y[4, 4], x[5, 7] = np.inf, np.nan, -np.inf, 1e-42
    found = _multiplied(card, x, y, SMALL, td.float32)
    x[5, 7] = 0  # smaller than TF32's least distance there
    _check(found, x, y)
    large = np.zeros((8, 8), np.float32)
    large[0, 0], large[1, 1] = np.finfo(np.float32).max, -np.finfo(np.float32).max
    found = _multiplied(card, large, np.eye(8, dtype=np.float32), SMALL, td.float32)
    assert found[0, 0] == np.inf
    assert found[1, 1] == -np.inf


@pytest.mark.parametrize("name", ["card", "cpu"])
def test_numbers_are_rounded_to_the_nearest(card, rng, name):
    """A product with the unit matrix shows what became of a factor, whichever it is."""
    device = card if name == "card" else td.device("cpu")
    x = np.frombuffer(rng.bytes(4 * 64 * 32), np.float32).reshape(64, 32).copy()
    x[:16].view(np.uint32)[:] |= np.uint32(0x1FFF)
    x[:16].view(np.uint32)[:] ^= np.uint32(0x0FFF)  # in the middle of two
    x[~np.isfinite(x) | (np.abs(x) < 1e-30) | (np.abs(x) > 1e38)] = 1.5
    one = np.eye(32, dtype=np.float32)
    np.testing.assert_array_equal(_multiplied(device, x, one, SMALL, td.float32), as_tf32(x))
    np.testing.assert_array_equal(_multiplied(device, one, x, SMALL, td.float32), as_tf32(x).T)


def test_through_the_planner(card, rng, monkeypatch):
    """Fused steps behind the product; a factor that lies across is copied first."""
    monkeypatch.setattr(tiles, "_group", lambda machine, problem: SMALL)
    monkeypatch.setattr(tiles, "_takes_groups", lambda machine, problem: problem.boxes)
    monkeypatch.setattr(product, "LARGE_PRODUCT", 0)
    monkeypatch.setattr(product, "MANY_LINES", 1)
    launched = []
    real = product.group_multiplier
    monkeypatch.setattr(
        product, "group_multiplier", lambda *given: launched.append(given) or real(*given)
    )
    x, y, bias = (_drawn(rng, td.float32, *shape) for shape in ((2, 40, 72), (72, 40), (40,)))
    wanted = as_tf32(x) @ as_tf32(y)
    before = td.get_float32_matmul_precision()
    td.set_float32_matmul_precision("high")
    try:
        found = td.nn.functional.relu(td.asarray(x) @ td.asarray(y) + td.asarray(bias)).numpy()
    finally:
        td.set_float32_matmul_precision(before)
    np.testing.assert_allclose(found, np.maximum(wanted + bias, 0), rtol=1e-5, atol=1e-4)
    assert len(launched) == 1
    left, right = _drawn(rng, td.int8, 48, 80), _drawn(rng, td.int8, 80, 33)
    a, b = (td.asarray(each).astype(td.int32) for each in (left, right))
    found = ((a @ b).astype(td.float32) * 0.5).numpy()
    np.testing.assert_array_equal(found, (left.astype("i4") @ right.astype("i4")) * np.float32(0.5))
    assert len(launched) == 2
    # Both factors turned by the kernel for that, in a compiled function, too.
    left, right = _drawn(rng, td.int8, 80, 48), _drawn(rng, td.int8, 80, 36)
    a, b = td.asarray(left), td.asarray(right)
    wanted = left.T.astype("i4") @ right.astype("i4")
    found = td.matmul(a.mT, b, dtype=td.int32)
    assert td.explain(found).count("transposed") == 2
    np.testing.assert_array_equal(found.numpy(), wanted)
    product_of = td.compile(lambda x, y: td.matmul(x.mT, y, dtype=td.int32) + 1)
    for _ in range(3):
        np.testing.assert_array_equal(product_of(a, b).numpy(), wanted + 1)


def test_who_takes_groups():
    """TF32 only when it was asked for; only factors along the inner axis, which `boxes` says."""
    names = frozenset({"f16", "tf32", "i8"})
    card = Machine(
        1024, 227 << 10, 32, matrix_products=names, group_products=names, multiprocessors=132
    )
    problem = Problem(td.float32, 1, 4096, 4096, 4096, boxes=True)
    assert not isinstance(tile_for(card, problem), GroupTile)
    assert isinstance(tile_for(card, problem._replace(rounded=True)), GroupTile)
    assert isinstance(tile_for(card, problem._replace(dtype=td.int8)), GroupTile)
    assert not isinstance(tile_for(card, problem._replace(dtype=td.int16)), GroupTile)


def test_a_factor_that_lies_across_is_refused(card, rng):
    x, y = (td.asarray(_drawn(rng, td.int8, 64, 64))._array for _ in range(2))
    out = td.empty((1, 64, 64), dtype=td.int32)._array
    along, across = Factor((), 64, 1, 0), Factor((), 1, 64, 0)
    with pytest.raises(UnsupportedOnTarget, match="along the inner axis"):
        by_tiles(x, y, out, Product((), 64, 64, 64, along, across, "i8"), SMALL)


@pytest.mark.parametrize("name", ["tf32", "i8", "u8", "i8u8", "u8i8"])
def test_they_are_tried_first(card, name):
    assert matrix_check.is_right(card, name, matrix_check.TRIED_BY_GROUPS)
