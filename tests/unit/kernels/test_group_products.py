"""Products of 16-bit floats by groups of 128 threads: on the PTX evaluator, which has mbarriers,
copies of boxes and `wgmma`, and on the CPU, which does at once what they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from tests.support.ptx_machine import stages as evaluated
from tests.support.ptx_machine.memory import MachineFault
from treadle.core.errors import UnsupportedOnTarget
from treadle.kernels import matrix_check, product, tiles
from treadle.kernels.best_tiles import Choice, candidate_of, choice_from
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.group_product import GroupTile
from treadle.kernels.factors import Factor, Product
from treadle.kernels.machine import Machine
from treadle.kernels.product import by_tiles, launch_by
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


def _drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def _factor(rows: int, columns: int, turned: bool, batch: tuple[int, ...] = ()) -> Factor:
    """A factor whose second axis is the inner one, from rows or from columns of memory."""
    return Factor(batch, *((1, rows) if turned else (columns, 1)), 0)


def _multiplied(
    device: td.Device, x: np.ndarray, y: np.ndarray, tile: GroupTile, turned: tuple[bool, bool],
    parts: int = 0,
) -> np.ndarray:  # fmt: skip
    """x @ y, of arrays that lie in memory as they are, or turned."""
    (m, k), n = x.shape, y.shape[1]
    a, b = (
        td.asarray(np.ascontiguousarray(each.T if is_turned else each), device=device)._array
        for each, is_turned in zip((x, y), turned, strict=True)
    )
    with poisoned(device):
        out = td.empty((1, m, n), dtype=td.float16, device=device)._array
    first, second = _factor(m, k, turned[0]), _factor(n, k, not turned[1])
    by_tiles(a, b, out, Product((), m, n, k, first, second), tile, parts)
    return np.asarray(out.to_host()[0])


def _check(found: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        wanted = x.astype("f8") @ y.astype("f8")
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=2e-3, atol=2e-2)


# Rows, columns and inner extent at the edges of tiles and beyond; stages fewer and more than steps.
CASES = [
    (64, 64, 64, SMALL, (False, False)),
    (72, 136, 200, GroupTile(64, 64, 3), (False, False)),
    (136, 72, 72, GroupTile(128, 64, 2), (True, True)),
    (137, 264, 136, GroupTile(128, 128, 2), (False, True)),
    (8, 8, 8, GroupTile(64, 128, 4), (True, False)),
    (136, 72, 200, GroupTile(64, 64, 2, tall=2), (False, False)),
    (136, 136, 200, GroupTile(64, 64, 3, tall=2, wide=2), (False, True)),
    (200, 72, 264, GroupTile(128, 64, 3, tall=2), (True, True)),
    (72, 72, 328, GroupTile(64, 64, 2, split=2), (False, False)),
    (136, 72, 200, GroupTile(128, 64, 2, registers=208), (False, False)),
    (136, 72, 456, GroupTile(128, 64, 2, split=4), (True, True)),
    (136, 70, 200, GroupTile(64, 64, 2, tall=2, split=2), (False, True)),
]


@pytest.mark.parametrize(("m", "n", "k", "tile", "turned"), CASES)
def test_layouts_and_edges(card, rng, m, n, k, tile, turned):
    x, y = _drawn(rng, m, k), _drawn(rng, k, n)
    _check(_multiplied(card, x, y, tile, turned), x, y)


def test_a_cluster_stays_for_several_tiles(card, rng, monkeypatch):
    """The sums of a tile are taken before those of the next one come in their place."""
    real = product.launch_by
    monkeypatch.setattr(
        product, "launch_by", lambda *given: real(*given)._replace(grid=(given[0].cluster, 1, 1))
    )
    x, y = _drawn(rng, 264, 200), _drawn(rng, 200, 64)
    tile = GroupTile(64, 64, 2, tall=2, split=2)
    _check(_multiplied(card, x, y, tile, (False, False)), x, y)
    _check(_multiplied(card, x, y, GroupTile(64, 64, 2, tall=2), (False, True)), x, y)


# Tiles that several blocks have parts of, and tiles of fewer parts than others; whole ones between;
# columns that are no multiple of four.
STREAMED = [
    (72, 136, 456, 3, GroupTile(64, 64, 2, streamed=True), (False, False)),
    (136, 72, 136, 5, GroupTile(64, 64, 3, streamed=True), (True, False)),
    (64, 70, 648, 4, GroupTile(64, 128, 2, streamed=True), (False, True)),
]


@pytest.mark.parametrize(("m", "n", "k", "blocks", "tile", "turned"), STREAMED)
def test_equal_shares_of_all_steps(card, rng, monkeypatch, m, n, k, blocks, tile, turned):
    monkeypatch.setattr(product, "_at_once", lambda *given: blocks)
    x, y = _drawn(rng, m, k), _drawn(rng, k, n)
    found = _multiplied(card, x, y, tile, turned)
    _check(found, x, y)
    np.testing.assert_array_equal(_multiplied(card, x, y, tile, turned), found)


def test_equal_shares_in_fused_products(card, rng, monkeypatch):
    tile = GroupTile(64, 64, 2, streamed=True)
    monkeypatch.setattr(tiles, "_group", lambda machine, problem: tile)
    monkeypatch.setattr(tiles, "_takes_groups", lambda machine, problem: problem.boxes)
    monkeypatch.setattr(product, "_at_once", lambda *given: 3)
    x, y, bias = _drawn(rng, 2, 40, 200), _drawn(rng, 2, 200, 72), _drawn(rng, 72)
    found = td.nn.functional.relu(td.asarray(x) @ td.asarray(y) + td.asarray(bias)).numpy()
    wanted = np.maximum(x.astype("f8") @ y.astype("f8") + bias, 0)
    np.testing.assert_allclose(found, wanted, rtol=5e-3, atol=5e-2)
    with pytest.raises(UnsupportedOnTarget, match="more than are kept"):
        launch_by(tile, Problem(td.float16, 1, 8192, 8320, 64, boxes=True), Machine(1024, 0, 32))


def test_on_the_cpu(rng):
    x, y = _drawn(rng, 72, 136), _drawn(rng, 136, 80)
    _check(_multiplied(td.device("cpu"), x, y, SMALL, (True, False)), x, y)


def test_the_table_s_largest_tile(card, rng):
    x, y = _drawn(rng, 136, 136), _drawn(rng, 136, 264)
    _check(_multiplied(card, x, y, next(iter(GROUP_TILES)), (False, False)), x, y)


def test_special_values(card, rng):
    """Zeros beyond the ends, never infinity times what lies there."""
    x, y = _drawn(rng, 16, 72), _drawn(rng, 72, 24)
    x[2, 71], x[3, 0], y[4, 4], x[5, 7] = np.inf, np.nan, -np.inf, 6e-8
    _check(_multiplied(card, x, y, SMALL, (False, False)), x, y)


def test_stacks_and_epilogues(card, rng, monkeypatch):
    """Through the planner: fused steps behind the product, one factor for all of a stack."""
    split = GroupTile(64, 64, 2, split=2)
    monkeypatch.setattr(
        tiles, "_group", lambda machine, problem: split if problem.matrices > 1 else SMALL
    )
    monkeypatch.setattr(tiles, "_takes_groups", lambda machine, problem: problem.boxes)
    launched = []
    real = product.group_multiplier
    monkeypatch.setattr(
        product, "group_multiplier", lambda *given: launched.append(given) or real(*given)
    )
    x, y, bias = _drawn(rng, 3, 40, 72), _drawn(rng, 3, 72, 72), _drawn(rng, 72)
    a, b, c = td.asarray(x), td.asarray(y), td.asarray(bias)
    wanted = x.astype("f8") @ y.astype("f8")
    found = td.nn.functional.relu(a @ b + c).numpy()
    np.testing.assert_allclose(found, np.maximum(wanted + bias, 0), rtol=5e-3, atol=5e-2)
    found = (a @ b[0]).astype(td.float32).numpy()
    np.testing.assert_allclose(found, x.astype("f8") @ y[0].astype("f8"), rtol=5e-3, atol=5e-2)
    found = (a[:, 8:] @ b[0].T).numpy()  # begins within the memory
    np.testing.assert_allclose(found, x[:, 8:] @ y[0].T.astype("f8"), rtol=5e-3, atol=5e-2)
    assert {given[1] for given in launched} == {SMALL, split}


def test_bfloat16(card, rng):
    x, y = _drawn(rng, 64, 72), _drawn(rng, 72, 64)
    a, b = (td.asarray(each).astype(td.bfloat16) for each in (x, y))
    out = td.empty((1, 64, 64), dtype=td.bfloat16)
    factors = _factor(64, 72, False), _factor(64, 72, True)
    by_tiles(a._array, b._array, out._array, Product((), 64, 64, 72, *factors), SMALL)
    x, y = (each.astype(td.float32).numpy().astype("f8") for each in (a, b))
    found = out[0].astype(td.float32).numpy()
    np.testing.assert_allclose(found, x @ y, rtol=1e-2, atol=5e-2)


def test_a_launch_recorded_for_other_numbers(card, rng):
    """A graph's launches describe the matrices that they had."""
    x, y = _drawn(rng, 64, 64), _drawn(rng, 64, 64)
    a, b = (td.asarray(each) for each in (x, y))
    out = td.zeros((1, 64, 64), dtype=td.float16)
    wanted = Product((), 64, 64, 64, _factor(64, 64, False), _factor(64, 64, True))
    by_tiles(a._array, b._array, out._array, wanted, SMALL)
    graph = td.Graph(card)
    with graph.capture():
        by_tiles(a._array, b._array, out._array, wanted, SMALL)
    a._array.upload(2 * x)
    graph.replay()
    _check(out.numpy()[0], 2 * x, y)


def test_who_takes_groups():
    """Aligned factors in memory, on devices that have such products, where blocks are many."""
    problem = Problem(td.float16, 1, 4096, 4096, 4096, boxes=True)
    names = frozenset({"f16", "bf16"})
    card = Machine(
        1024, 227 << 10, 32, matrix_products=names, group_products=names, multiprocessors=132
    )
    tile = tile_for(card, problem)
    assert isinstance(tile, GroupTile)
    assert (tile.rows, tile.columns) == (128, 256)
    assert launch_by(tile, problem, card).grid == (132, 1, 1)
    # Of fewer tiles than multiprocessors, smaller ones.
    small = problem._replace(rows=1024, columns=1024)
    assert tile_for(card, small) == GroupTile(64, 128, 8)
    assert launch_by(GroupTile(64, 128, 8), small, card).grid == (128, 1, 1)
    assert isinstance(tile_for(card, problem._replace(boxes=False)), FragmentTile)
    assert isinstance(tile_for(card, problem._replace(rows=64, columns=64)), FragmentTile)
    assert isinstance(tile_for(card, problem._replace(rows=16)), FragmentTile)
    assert not isinstance(tile_for(card, problem._replace(dtype=td.float32)), GroupTile)
    older = Machine(1024, 99 << 10, 32, matrix_products=names)
    assert isinstance(tile_for(older, problem), FragmentTile)
    little = Machine(1024, 99 << 10, 32, matrix_products=names, group_products=names)
    assert isinstance(tile_for(little, problem), FragmentTile)


def test_what_does_not_suit_is_refused(card, rng):
    x, y = _drawn(rng, 64, 63), _drawn(rng, 63, 64)
    with pytest.raises(UnsupportedOnTarget, match="multiples of 16 bytes"):
        _multiplied(card, x, y, SMALL, (False, False))


def test_an_inner_axis_too_short_to_split_is_refused(card, rng):
    x, y = _drawn(rng, 64, 320), _drawn(rng, 320, 64)
    with pytest.raises(UnsupportedOnTarget, match="too short to be split over 4"):
        _multiplied(card, x, y, GroupTile(64, 64, 2, split=4), (False, False))


def test_tiles_of_clusters_for_a_problem():
    """What the tuner has found for sizes nearby is not used where blocks would get no part."""
    names = frozenset({"f16"})
    card = Machine(
        1024, 227 << 10, 32, matrix_products=names, group_products=names, clusters=True,
        multiprocessors=132,
    )  # fmt: skip
    tile = GroupTile(128, 128, 4, split=4)
    problem = Problem(td.float16, 1, 1024, 1024, 1024, boxes=True)
    first, found = tile_for(card, problem), candidate_of(Choice(tile))
    assert choice_from(card, problem, first, found).tile == tile
    assert choice_from(card, problem._replace(inner=320), first, found).tile == first
    streamed = candidate_of(Choice(GroupTile(128, 128, 6, streamed=True)))
    large = problem._replace(rows=1 << 13, columns=1 << 13)
    assert choice_from(card, problem, first, streamed).tile.streamed
    assert not choice_from(card, large, first, streamed).tile.streamed
    # As many clusters as run at once, and a part of the inner axis for each of their blocks.
    assert launch_by(tile, problem, card)[2:] == ((132, 1, 1), 1, 256)
    older = replace(card, clusters=False)
    assert launch_by(tile, problem, older)[2:] == ((132, 1, 1), 1, 1024)


def test_an_older_card_refuses(rng):
    x, y = _drawn(rng, 64, 64), _drawn(rng, 64, 64)
    with ptx_device("sm_70") as device, pytest.raises(UnsupportedOnTarget, match="sm_90a"):
        _multiplied(device, x, y, SMALL, (False, False))


def test_a_wrong_place_is_noticed(card, monkeypatch):
    """Tiles whose pieces lie elsewhere, as a wrong description would have them."""
    assert matrix_check.is_right(card, "f16", matrix_check.TRIED_BY_GROUPS)
    monkeypatch.setattr(evaluated, "_permuted", lambda place: place)
    words = []
    monkeypatch.setattr(
        evaluated, "_places", lambda word, lines, turned, *rest, real=evaluated._places: real(
            words.append(word) or word, lines, not turned, *rest
        ),
    )  # fmt: skip
    assert not matrix_check.is_right(card, "f16", matrix_check.TRIED_BY_GROUPS)
    assert words


def test_a_tile_that_is_filled_too_early_is_a_fault(card, rng, monkeypatch):
    """What the evaluator is for: groups that release stages before they have read them."""
    from treadle.codegen.ptx import stages as printed

    real = printed.staged

    def early(body, maps, node):
        if node.op == "settle" and node.numbers == (1,):
            body.e.do("wgmma.wait_group.sync.aligned", "2")
        else:
            real(body, maps, node)

    monkeypatch.setattr("treadle.codegen.ptx.statements.stages.staged", early)
    x, y = _drawn(rng, 64, 264), _drawn(rng, 264, 64)
    tile = GroupTile(64, 64, 2, together=7)  # a kernel of its own
    with pytest.raises(MachineFault, match=r"changed before|never ends"):
        _multiplied(card, x, y, tile, (False, False))
