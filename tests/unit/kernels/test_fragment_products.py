"""Products by fragments: on the PTX evaluator, whose sm_90 has the instructions, and on the CPU,
which does what they do. And products whose tiles are copied later."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from tests.support.ptx_machine import matrices
from treadle.core.errors import CompileError
from treadle.kernels import matrix_check, product
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.factors import TF32, Factor, Product, dtypes_of
from treadle.kernels.machine import Machine, machine_of
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import FRAGMENT_TILES, Problem, tile_for

LAYOUTS = ((False, False), (True, True), (True, False), (False, True))  # which factors are turned
TILES = sorted({tile for row in FRAGMENT_TILES.values() for tile in row})


@pytest.fixture
def card() -> Iterator[td.Device]:
    with ptx_device("sm_90") as device, td.use_device(device):
        yield device


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def _check(found: td.Tensor, wanted: np.ndarray, bound: float = 1e-3) -> None:
    values = found.astype(td.float32).numpy()
    assert values.shape == wanted.shape
    assert np.all(np.abs(values - wanted) <= bound * np.maximum(np.abs(wanted).max(), 1))


@pytest.mark.parametrize(("m", "n", "k"), [(40, 48, 72), (33, 31, 29), (7, 100, 12), (65, 2, 2)])
def test_layouts_epilogues_and_prologues(card, rng, m, n, k):
    x, y, bias = _drawn(rng, m, k), _drawn(rng, k, n), _drawn(rng, n)
    a, b, c = td.asarray(x), td.asarray(y), td.asarray(bias)
    wanted = x.astype("f8") @ y.astype("f8")
    _check(a @ b, wanted)
    _check(td.nn.functional.relu(td.asarray(x.T.copy()).T @ b + c), np.maximum(wanted + bias, 0))
    _check((a * 2) @ td.asarray(y.T.copy()).T, 2 * wanted)
    _check(a.astype(td.bfloat16) @ b.astype(td.bfloat16), wanted, 2e-2)


def test_stacks_slices_and_parts(card, rng):
    x, y = _drawn(rng, 3, 2, 20, 24), _drawn(rng, 2, 24, 17)
    _check(td.asarray(x) @ td.asarray(y), x.astype("f8") @ y.astype("f8"))
    x, y = _drawn(rng, 16, 1030), _drawn(rng, 1030, 12)
    _check(td.asarray(x) @ td.asarray(y), x.astype("f8") @ y.astype("f8"))
    x, y = x[:, 3:999], y[3:999]
    _check(td.asarray(x) @ td.asarray(y), x.astype("f8") @ y.astype("f8"))


def test_special_values(card, rng):
    """Zeros beyond the end of the inner axis, never infinity times zero."""
    x, y = _drawn(rng, 9, 11), _drawn(rng, 11, 5)
    x[2, 10], x[3, 0], y[4, 4] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = x.astype("f8") @ y.astype("f8")
    found = (td.asarray(x) @ td.asarray(y)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: "x".join(map(str, tile[:6])))
def test_tiles_of_the_table(rng, tile):
    """Which thread does what: one product of more than a block, on the PTX evaluator."""
    m, n, k = tile.rows + 3, tile.columns + 8, 3 * tile.depth + 8
    x, y = _drawn(rng, m, k), _drawn(rng, k, n)
    with ptx_device("sm_90") as device:
        a, b = (td.asarray(array, device=device)._array for array in (x, y))
        with poisoned(device):
            out = td.empty((1, m, n), dtype=td.float16, device=device)._array
            by_tiles(a, b, out, _plain(m, n, k), tile)
        wanted = x.astype("f8") @ y.astype("f8")
        np.testing.assert_allclose(out.to_host()[0], wanted, rtol=2e-3, atol=2e-2)


def _tf32(x: np.ndarray) -> np.ndarray:
    """Rounded to the nearest with 10 bits of fraction."""
    bits = (np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)


def _bytes(rng: np.random.Generator, dtype: td.DType, shape: tuple[int, int]) -> np.ndarray:
    low = -128 if dtype is td.int8 else 0
    return rng.integers(low, low + 256, shape).astype(dtype.numpy)


@pytest.mark.parametrize(
    ("device", "name", "m", "n", "k"),
    [
        (device, name, *sizes)
        for device, *sizes in (("sm_90", 20, 24, 48), ("sm_90", 33, 17, 29), ("cpu", 33, 17, 29))
        for name in ("i8", TF32)
    ]
    + [("sm_90", "u8i8", 33, 17, 29)],
)
def test_other_dtypes_in_all_layouts(rng, device, name, m, n, k):
    """8-bit integers are exact in int32, also for -128; float32 is that of numbers rounded to TF32.
    Elements across the inner axis are turned on their way, four lines at once where they are
    aligned."""
    if name != TF32:
        x, y = (
            _bytes(rng, dtype, shape)
            for dtype, shape in zip(dtypes_of(name), ((m, k), (k, n)), strict=True)
        )
        x[:3], y[:, :3] = x.min(), y.min()
        wanted = x.astype("f8") @ y.astype("f8")
    else:
        x, y = (rng.standard_normal(shape).astype("f4") for shape in ((m, k), (k, n)))
        wanted = _tf32(x).astype("f8") @ _tf32(y).astype("f8")
    places = contextlib.nullcontext("cpu") if device == "cpu" else ptx_device(device)
    factors, made = name, td.float32 if name == TF32 else td.int32
    with places as place:
        layouts = LAYOUTS if m == 20 else LAYOUTS[1:3]
        for turned in layouts if name in ("i8", TF32) and device != "cpu" else LAYOUTS[3:]:
            laid_out = [each.T if t else each for each, t in zip((x, y), turned, strict=True)]
            a, b = (td.asarray(each.copy(), device=place)._array for each in laid_out)
            first = Factor((), 1, m, 0) if turned[0] else Factor((), k, 1, 0)
            second = Factor((), k, 1, 0) if turned[1] else Factor((), 1, n, 0)
            with poisoned(a.device):
                out = td.empty((1, m, n), dtype=made, device=place)._array
                tile = FragmentTile(16, 16, 32, 16, 16, 2).of(a.dtype)
                by_tiles(a, b, out, Product((), m, n, k, first, second, factors), tile)
            np.testing.assert_allclose(out.to_host()[0], wanted, rtol=1e-5, atol=1e-5)


def test_large_factors_are_turned_first(card, rng, monkeypatch):
    """By a copy, where each tile of the result would turn them once more."""
    monkeypatch.setattr(product, "LARGE_PRODUCT", 1 << 10)
    monkeypatch.setattr(product, "MANY_LINES", 30)
    x, y = (rng.integers(-128, 128, shape).astype("i1") for shape in ((40, 70), (70, 33)))
    a, b = td.asarray(x), td.asarray(y)
    wanted = x.astype("i4") @ y.astype("i4")
    found = td.matmul(a, b, dtype=td.int32)
    assert "int8[33, 70]" in td.explain(found)
    np.testing.assert_array_equal(found.numpy(), wanted)
    found = td.matmul(td.asarray(x.T.copy()).mT, b, dtype=td.int32).astype(td.float32) * 2
    assert td.explain(found).startswith("3 kernels")
    np.testing.assert_array_equal(found.numpy(), 2 * wanted)
    assert td.explain(a @ b).startswith("2 kernels")
    np.testing.assert_array_equal((a @ b).numpy(), x @ y)
    bound = td.asarray(np.ascontiguousarray(y.T)).mT
    assert td.explain(td.matmul(a, bound, dtype=td.int32)).startswith("1 kernel")
    half = a.astype(td.float16).realize() @ b.astype(td.float16).realize()
    assert td.explain(half).startswith("1 kernel")


def test_special_values_as_tf32(card, rng):
    """NaN stays NaN, which an addition would make a number of; infinities stay."""
    x, y = (rng.standard_normal(shape).astype("f4") for shape in ((20, 41), (41, 16)))
    x[2, 10], x[3, 0], y[4, 4], x[5, 5] = np.inf, np.nan, -np.inf, 1e-42
    x.view(np.uint32)[6, 1], x.view(np.uint32)[7, 1] = 0x7FFFFFFF, 0xFFC00001
    plain = np.where(np.isnan(x), np.float32(np.nan), x)
    with np.errstate(invalid="ignore"):
        wanted = _tf32(plain).astype("f8") @ _tf32(y).astype("f8")
    wanted[[3, 6, 7]] = np.nan
    td.set_float32_matmul_precision("high")
    try:
        found = (td.asarray(x) @ td.asarray(y)).numpy()
    finally:
        td.set_float32_matmul_precision("highest")
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", ["sm_90", "nvrtc", "cpu"])
def test_tiles_that_are_copied_later(rng, device):
    """All layouts, aligned and not, with and without an end within a step."""
    tile = Tile(32, 32, 8, 1, 1, copies=3, warp_columns=8)
    places = contextlib.nullcontext("cpu") if device == "cpu" else ptx_device(device)
    with places as place:
        for m, n, k in ((40, 36, 48), (33, 17, 29), (5, 7, 1)):
            x, y = (rng.standard_normal(shape).astype("f4") for shape in ((m, k), (k, n)))
            for turned in LAYOUTS if device == "sm_90" else LAYOUTS[1:3]:
                laid_out = [each.T if t else each for each, t in zip((x, y), turned, strict=True)]
                a, b = (td.asarray(each.copy(), device=place)._array for each in laid_out)
                first = Factor((), 1, m, 0) if turned[0] else Factor((), k, 1, 0)
                second = Factor((), k, 1, 0) if turned[1] else Factor((), 1, n, 0)
                with poisoned(a.device):
                    out = td.empty((1, m, n), device=place)._array
                    by_tiles(a, b, out, Product((), m, n, k, first, second), tile)
                wanted = x.astype("f8") @ y.astype("f8")
                np.testing.assert_allclose(out.to_host()[0], wanted, rtol=1e-5, atol=1e-5)


def test_as_cuda_cpp(rng):
    """Through NVIDIA's compiler of CUDA C++, whose code the evaluator runs."""
    x, y = _drawn(rng, 40, 72), _drawn(rng, 72, 48)
    with ptx_device("nvrtc") as device, td.use_device(device):
        _check(td.asarray(x) @ td.asarray(y), x.astype("f8") @ y.astype("f8"))


def test_on_the_cpu(rng):
    """Copies that happen at once, and lanes that exchange what they hold."""
    m, n, k = 17, 24, 40
    x, y = _drawn(rng, m, k), _drawn(rng, k, n)
    a, b = (td.asarray(array, device="cpu")._array for array in (x, y))
    with poisoned(a.device):
        out = td.empty((1, m, n), dtype=td.float16, device="cpu")._array
        by_tiles(a, b, out, _plain(m, n, k), FragmentTile(16, 16, 32, 16, 16, 2))
    np.testing.assert_allclose(out.to_host()[0], x.astype("f8") @ y.astype("f8"), 2e-3, 2e-2)


def _plain(m: int, n: int, k: int) -> Product:
    return Product((), m, n, k, Factor((), k, 1, 0), Factor((), 1, n, 0))


def test_what_is_wrong_is_left_out(card, monkeypatch, caplog):
    assert matrix_check.usable_products(card) == {
        "f16", "bf16", "i8", "u8", "i8u8", "u8i8", "tf32"
    }  # fmt: skip
    tried = []
    monkeypatch.setattr(
        matrix_check,
        "is_right",
        lambda device, name, tile: not tried.append(name) and name == "f16",
    )
    matrix_check._usable.clear()
    found = machine_of(card).matrix_products
    assert "bf16" not in found
    assert "f64" not in found
    assert tried == ["bf16"]  # only what is asked for
    assert found == {"f16"}
    assert "products of small matrices of bf16 wrongly" in caplog.text
    matrix_check._usable.clear()

    def refused(device, name, tile):
        raise CompileError("the driver does not know it")

    monkeypatch.setattr(matrix_check, "is_right", refused)
    assert "i8" not in machine_of(card).matrix_products
    assert "small matrices of i8, which are not used: the driver does not know it" in caplog.text
    matrix_check._usable.clear()


def test_a_wrong_place_is_noticed(card, monkeypatch):
    """Rows and columns of a factor exchanged, as a wrong driver would have them."""
    assert matrix_check.is_right(card, "f16")
    real = matrices.lanes_of

    def exchanged(warps, threads, values):
        found = real(warps, threads, values)
        return found[:, ::-1] if values.dtype == np.uint32 else found

    monkeypatch.setattr(matrices, "lanes_of", exchanged)
    assert not matrix_check.is_right(card, "f16")


def test_who_takes_fragments():
    """Devices whose subgroups multiply the dtype, where a block fits."""
    problem = Problem(td.float16, 1, 4096, 4096, 4096)
    card = Machine(1024, 227 << 10, 32, matrix_products=frozenset({"f16"}))
    assert isinstance(tile_for(card, problem), FragmentTile)
    assert not isinstance(tile_for(card, problem._replace(dtype=td.float32)), FragmentTile)
    assert not isinstance(tile_for(Machine(1024, 227 << 10, 32), problem), FragmentTile)
    small = Machine(1024, 99 << 10, 32, matrix_products=frozenset({"f16"}))
    assert tile_for(small, problem).shared_bytes(2) <= 99 << 10
    whole = problem._replace(dtype=td.float32)
    every = Machine(1024, 227 << 10, 32, matrix_products=frozenset({"tf32", "i8"}))
    assert not isinstance(tile_for(every, whole), FragmentTile)  # not asked for
    rounded = tile_for(every, whole._replace(rounded=True))
    bytes_ = tile_for(every, problem._replace(dtype=td.int8))
    assert isinstance(rounded, FragmentTile)
    assert isinstance(bytes_, FragmentTile)
    assert 4 * rounded.depth == bytes_.depth
    later = Machine(1024, 227 << 10, 32, double_buffers=True, later_copies=True)
    assert tile_for(later, whole).is_copied
    low = tile_for(later, whole._replace(matrices=16, rows=64, columns=6272, inner=64))
    assert low.is_copied
    assert low.rows == 64  # others would be half empty
    assert not tile_for(later, whole._replace(computed=True)).is_copied
    assert not tile_for(later, problem).is_copied
    assert not tile_for(replace(later, later_copies=False), whole).is_copied
