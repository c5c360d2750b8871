"""Products of 16-bit floats by fragments: on the PTX evaluator, whose sm_90 has the instructions,
and on the CPU, which does what they do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from tests.support.ptx_machine import matrices
from treadle.kernels import matrix_check
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.factors import Factor, Product
from treadle.kernels.machine import Machine, machine_of
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import FRAGMENT_TILES, Problem, tile_for

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
    assert matrix_check.usable_products(card) == {"f16", "bf16"}
    right = matrix_check.is_right
    monkeypatch.setattr(
        matrix_check, "is_right", lambda device, name: name == "f16" and right(device, name)
    )
    matrix_check._usable.clear()
    assert machine_of(card).matrix_products == {"f16"}
    assert "products of small bf16 matrices wrongly" in caplog.text
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
