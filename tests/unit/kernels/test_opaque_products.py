"""Products of float16 by opaque matrices, on the CPU, whose lanes exchange what they hold; which
devices take them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.graph import numbering
from treadle.graph.emit import products as emit
from treadle.kernels import best_tiles
from treadle.kernels import product as kernel_products
from treadle.kernels.device_code.opaque_product import OpaqueTile, opaque_multiplier
from treadle.kernels.factors import Factor, Product
from treadle.kernels.machine import Machine
from treadle.kernels.product import by_tiles
from treadle.kernels.tiles import OPAQUE_TILES, Problem, tile_for

SMALL = OpaqueTile(32, 32, 16, 16, 32)


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def _check(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    assert np.all(np.abs(found - wanted) <= 1e-3 * max(np.abs(wanted).max(), 1))


@pytest.mark.parametrize(
    ("m", "n", "k", "turned"),
    [
        (33, 40, 24, (0, 0)),
        (35, 16, 32, (0, 1)),
        (17, 31, 29, (1, 0)),
        (1, 1, 1, (0, 1)),
        (40, 8, 530, (1, 1)),
    ],
)
def test_edges_layouts_and_parts(m, n, k, turned):
    rng = np.random.default_rng()
    x, y = _drawn(rng, m, k), _drawn(rng, k, n)
    given = [np.ascontiguousarray(v.T) if t else v for v, t in zip((x, y), turned, strict=True)]
    a, b = (td.asarray(each, device="cpu")._array for each in given)
    first = Factor((), 1, m, 0) if turned[0] else Factor((), k, 1, 0)
    second = Factor((), k, 1, 0) if turned[1] else Factor((), 1, n, 0)
    with poisoned(a.device):
        out = td.empty((1, m, n), dtype=td.float16, device="cpu")._array
        by_tiles(a, b, out, Product((), m, n, k, first, second), SMALL)
    _check(out.to_host()[0], x.astype("f8") @ y.astype("f8"))


def test_epilogues_and_prologues(monkeypatch):
    """The planner's kernel with a bias and an activation, a computed factor and a stack: on the
    evaluator of PTX, where words take the place of opaque matrices."""
    rng = np.random.default_rng()
    made = []

    def noted(*how):
        made.append(how)
        return opaque_multiplier(*how)

    monkeypatch.setattr(kernel_products, "opaque_multiplier", noted)
    monkeypatch.setattr(best_tiles, "tile_for", lambda *_: SMALL)
    x, y, bias = _drawn(rng, 2, 20, 24), _drawn(rng, 24, 33), _drawn(rng, 33)
    with ptx_device("sm_90") as device, td.use_device(device):
        a, b, c = (td.asarray(each) for each in (x, y, bias))
        found = td.nn.functional.relu((a * 2) @ b + c).numpy()
        plain = (td.asarray(y.T.copy()) @ td.asarray(x[0].T.copy())).numpy()
    wanted = np.maximum(2 * x.astype("f8") @ y.astype("f8") + bias, 0)
    _check(found, wanted)
    _check(plain, y.T.astype("f8") @ x[0].T.astype("f8"))
    assert len(made) == 2
    assert made[0][0].first.computed


def test_sizes_in_the_text(monkeypatch):
    """Large products of whole tiles and packed factors have kernels of their own; others, and those
    whose factors are slices, have numbers of the launch."""
    rng = np.random.default_rng()
    made = []

    def noted(form, tile):
        made.append(form.whole)
        return opaque_multiplier(form, tile)

    monkeypatch.setattr(kernel_products, "opaque_multiplier", noted)
    monkeypatch.setattr(best_tiles, "tile_for", lambda *_: SMALL)
    monkeypatch.setattr(emit, "LARGE_PRODUCT", 1)
    real = numbering.machine_of
    opaque = lambda device: replace(real(device), opaque_products=True)  # noqa: E731
    monkeypatch.setattr(numbering, "machine_of", opaque)
    x, y, z = _drawn(rng, 64, 48), _drawn(rng, 48, 32), _drawn(rng, 64, 96)
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        a, b, c, turned = (td.asarray(v) for v in (x, y, z, np.ascontiguousarray(y.T)))
        for given, other, right, whole in (
            (a, b, x.astype("f8") @ y, True),
            (a, turned.T, x.astype("f8") @ y, True),  # the same sizes, other strides
            (c[:, 48:], b, z[:, 48:].astype("f8") @ y, False),
            (a[:, :40], b[:40], x[:, :40].astype("f8") @ y[:40], False),
            (a[:60], b, x[:60].astype("f8") @ y, False),
            (a[32:], b, x[32:].astype("f8") @ y, True),
            (c[:, :48], b, z[:, :48].astype("f8") @ y, False),
        ):
            made.clear()
            _check((given @ other + 1).numpy(), right + 1)
            assert made in ([whole], [])  # an equal program is not made again
            assert whole or True not in made


def test_who_takes_them():
    problem = Problem(td.float16, 1, 4096, 4096, 4096)
    card = Machine(1024, 48 << 10, 32, opaque_products=True)
    assert OPAQUE_TILES["large"][0].shared_bytes(2) <= 48 << 10  # of NVIDIA's cards in WebGPU
    assert tile_for(card, problem) == OPAQUE_TILES["large"][0]
    assert not isinstance(tile_for(card, problem._replace(dtype=td.float32)), OpaqueTile)
    assert not isinstance(tile_for(replace(card, opaque_products=False), problem), OpaqueTile)
    thin = tile_for(card, problem._replace(rows=16))  # not measured
    assert not isinstance(thin, OpaqueTile)
    few = tile_for(card, problem._replace(rows=1280, columns=1280))
    assert few == OPAQUE_TILES["large"][1]
    small = tile_for(replace(card, shared_bytes=16 << 10), problem)
    assert isinstance(small, OpaqueTile)
    assert small.shared_bytes(2) <= 16 << 10
    assert not isinstance(tile_for(replace(card, shared_bytes=4 << 10), problem), OpaqueTile)


@pytest.mark.parametrize("kind", OPAQUE_TILES)
def test_tiles_of_the_table(kind):
    """A block's threads, and its subgroups' parts."""
    for tile in OPAQUE_TILES[kind]:
        assert tile.rows % tile.warp_rows == tile.columns % tile.warp_columns == 0
        assert not any(each % 16 for each in (tile.warp_rows, tile.warp_columns, tile.depth))
        assert tile.threads <= 256
