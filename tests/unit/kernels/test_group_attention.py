"""Attention of 16-bit floats by groups of 128 threads: on the PTX evaluator, which has mbarriers,
copies of boxes and `wgmma`, and on the CPU, which does at once what they do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import attend as forward
from treadle.kernels import attend_gradients as backward
from treadle.kernels import attention_tiles
from treadle.kernels.device_code.group_attention import (
    GroupAttentionTile,
    Order,
    iterations_of,
    place_of,
)
from treadle.kernels.device_code.group_attention_gradients import GroupGradientTile
from treadle.kernels.machine import Machine
from treadle.lang import builtins

ALL = {"group_attender", "group_query_gradient", "group_key_gradients"}
attend = td.nn.functional.scaled_dot_product_attention


@pytest.fixture
def card(monkeypatch) -> Iterator[td.Device]:
    """A device on which problems of any size take the kernel."""
    monkeypatch.setattr(forward, "_BUSY_FRAGMENTS", 1)
    monkeypatch.setattr(attention_tiles, "_FEW_OF_GROUP", 0)
    monkeypatch.setattr(attention_tiles, "usable_groups", lambda _: {"f16", "bf16"})
    # Few blocks, which stay for several tiles.
    machine = Machine(1024, 227 << 10, 32, multiprocessors=2)
    monkeypatch.setattr(forward, "machine_of", lambda _: machine)
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        yield device


@pytest.fixture
def small(monkeypatch) -> None:
    """Tiles that take the evaluator less time."""
    monkeypatch.setattr(
        attention_tiles, "_GROUP_TILES", {256: GroupAttentionTile(128, 16, 3, True, 240)}
    )
    tile = GroupGradientTile(64, 16, 3, 1)
    monkeypatch.setattr(attention_tiles, "_GROUP_GRADIENTS", {256: (tile, (tile,))})


@pytest.fixture
def launched(monkeypatch) -> set[str]:
    """What was launched: the names of the kernels' makers."""
    found: set[str] = set()

    def note(module: object, name: str) -> None:
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: found.add(name) or real(*given))

    note(forward, "group_attender")
    note(backward, "group_query_gradient")
    note(backward, "group_key_gradients")
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def exact(q, k, v, g, left=None, right=None):
    """The result and the gradients of query, key and value, in float64."""
    q, k, v, g = (x.astype("f8") for x in (q, k, v, g))
    repeats, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    keys, values = (np.repeat(x, repeats, axis=1) for x in (k, v))
    scores = q @ keys.swapaxes(-1, -2) * scale
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    seen = np.ones(scores.shape[-2:], bool)
    if left is not None:
        seen &= j >= i - left
    if right is not None:
        seen &= j <= i + right
    scores = np.where(seen, scores, -np.inf)
    most = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(most), most, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
    out = weights @ values
    slopes = weights * (g @ values.swapaxes(-1, -2) - (g * out).sum(axis=-1, keepdims=True)) * scale

    def shared(x):
        return x.reshape(*k.shape[:2], repeats, *x.shape[2:]).sum(axis=2)

    of_keys, of_values = slopes.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g
    return out, slopes @ keys, shared(of_keys), shared(of_values)


def check(arrays, g, left=None, right=None):
    """The result and the gradients, beside what they are."""
    leaves = [td.asarray(x).requires_grad_() for x in arrays]
    out = attend(*leaves, window=(left, right), enable_gqa=True)
    out.backward(td.asarray(g))
    results = out, *(leaf.grad for leaf in leaves)
    for found, wanted in zip(results, exact(*arrays, g, left, right), strict=True):
        near(found.detach().numpy(), wanted)


def near(found, wanted, bound=2e-3):
    np.testing.assert_allclose(found, wanted, 0, bound * max(1.0, np.abs(wanted).max()))


# Heads of query and of key, queries, keys, columns of query and value, window.
CASES = [
    (4, 2, 75, 91, 64, 64, None, 0),  # grouped heads, edges of tiles
    (1, 1, 67, 37, 72, 136, 3, 2),  # parts of a line; queries that see nothing
    (3, 3, 131, 70, 64, 64, None, None),  # several tiles of queries
]


@pytest.mark.parametrize(
    ("heads", "own", "queries", "keys", "depth", "width", "left", "right"), CASES
)
def test_shapes_and_windows(
    card, small, launched, rng, heads, own, queries, keys, depth, width, left, right
):
    shapes = (heads, queries, depth), (own, keys, depth), (own, keys, width)
    arrays = [drawn(rng, 1, *shape) for shape in shapes]
    check(arrays, drawn(rng, 1, heads, queries, width), left, right)
    assert launched == ALL


def test_rounds_of_pairs_and_the_rest(card, small, rng, monkeypatch):
    """Heads whose keys do not fit the cache together."""
    monkeypatch.setattr(forward, "NEAR_BYTES", 1)
    arrays = [drawn(rng, 1, 5, rows, 64) for rows in (131, 40, 40)]
    found = attend(*map(td.asarray, arrays), window=(None, 0)).numpy()
    near(found, exact(*arrays, arrays[0], None, 0)[0])


@pytest.mark.parametrize(
    ("heads", "tiles", "blocks", "together", "most"),
    [(64, 32, 132, 16, 1.03), (33, 64, 132, 8, 1.03), (5, 3, 4, 1, 1.5), (1, 1, 1, 4, 1.0)],
)
@pytest.mark.parametrize("paired", [True, False])
def test_all_tiles_are_distributed_evenly(heads, tiles, blocks, together, most, paired):
    """Each once, and no block has much more than others, where tiles see more and more keys or
    all as many."""

    @td.kernel
    def deal(found: td.Array[td.i32], order: Order, block_of: td.Array[td.i32]):
        for block in range(blocks):
            for iteration in range(iterations_of(order, tiles, block, blocks)):
                head, tile = place_of(iteration, order, tiles, block, blocks)
                found[head * tiles + tile] += 1
                block_of[head * tiles + tile] = block

    found, block_of = (td.zeros(heads * tiles, dtype=td.int32, device="cpu") for _ in range(2))
    order = forward.order_of(paired, tiles, heads, blocks, together)
    deal[1, 1](found, order, block_of)
    assert found.numpy().tolist() == [1] * (heads * tiles)
    lengths = np.tile(np.arange(tiles) + 1 if paired else np.ones(tiles, int), heads)
    loads = np.bincount(block_of.numpy(), lengths, blocks)
    fair = max(lengths.sum() / blocks, lengths.max())
    assert loads.max() <= (most if paired else 1) * np.ceil(fair)


def test_the_tables_tiles(card, launched, rng):
    """Of the most usual heads: groups of threads that are at different steps."""
    arrays = [drawn(rng, 1, 1, 200, 128) for _ in range(3)]
    found = attend(*map(td.asarray, arrays), is_causal=True).numpy()
    near(found, exact(*arrays, arrays[0], None, 0)[0])
    assert launched


def test_gradients_of_key_and_value_in_turn(card, small, launched, rng, monkeypatch):
    """As for heads of many columns."""
    query, (keys,) = attention_tiles._GROUP_GRADIENTS[256]
    monkeypatch.setattr(attention_tiles, "_GROUP_GRADIENTS", {256: (query, (keys, keys))})
    arrays = [drawn(rng, 1, 1, 40, 64) for _ in range(3)]
    check(arrays, drawn(rng, 1, 1, 40, 64))
    assert launched == ALL


def test_packed_projections(card, small, launched, rng):
    """Heads side by side in rows, as views of one array; rows that are not aligned are for
    fragments."""
    x = drawn(rng, 40, 3, 2, 64)
    q, k, v = (td.asarray(x)[:, i].swapaxes(0, 1) for i in range(3))
    wanted = exact(*(x[:, i].swapaxes(0, 1)[None] for i in range(3)), x[:, 0].swapaxes(0, 1)[None])
    near(attend(q, k, v).numpy(), wanted[0][0])
    assert launched
    launched.clear()
    x = np.ascontiguousarray(x[..., :63])
    q, k, v = (td.asarray(x)[:, i].swapaxes(0, 1) for i in range(3))
    wanted = exact(*(x[:, i].swapaxes(0, 1)[None] for i in range(3)), x[:, 0].swapaxes(0, 1)[None])
    near(attend(q, k, v).numpy(), wanted[0][0])
    assert not launched


def test_special_values(card, small, rng):
    """NaN and infinities stay in their rows, and in what sees them."""
    arrays = [drawn(rng, 1, 1, 40, 64) for _ in range(3)]
    arrays[0][0, 0, 3, 1] = np.nan
    arrays[2][0, 0, 20, 5] = np.inf
    with np.errstate(invalid="ignore"):
        wanted = exact(*arrays, arrays[0], None, 0)[0]
    found = attend(*map(td.asarray, arrays), is_causal=True).numpy()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    np.testing.assert_allclose(found, wanted, 2e-3, 2e-3)


def test_runs_have_the_same_bits(card, small, rng):
    arrays = [drawn(rng, 1, 2, 70, 64) for _ in range(3)]
    runs = []
    for _ in range(2):
        leaves = [td.asarray(x).requires_grad_() for x in arrays]
        out = attend(*leaves, is_causal=True)
        out.backward(out.detach())
        runs.append([x.detach().numpy() for x in (out, *(leaf.grad for leaf in leaves))])
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_who_takes_groups(card, launched, rng, monkeypatch):
    """Neither masks, nor dropout, nor few queries, nor devices without groups."""
    q, k, v = (td.asarray(drawn(rng, 1, 1, 20, 16)) for _ in range(3))
    attend(q, k, v, td.asarray(np.ones((20, 20), bool))).numpy()
    attend(q, k, v, dropout_p=0.5).numpy()
    monkeypatch.setattr(forward, "_BUSY_FRAGMENTS", 1 << 15)
    rows = td.broadcast_to(td.asarray(drawn(rng, 1, 1, 1, 16)), (1, 1, 20, 16))
    attend(q, rows, rows).numpy()
    long = td.asarray(drawn(rng, 1, 1, 1024, 16))
    attend(q, long, long).numpy()  # its keys are split
    monkeypatch.setattr(forward, "_BUSY_FRAGMENTS", 1)
    monkeypatch.setattr(attention_tiles, "_FEW_OF_GROUP", 64)
    attend(q, k, v).numpy()
    monkeypatch.setattr(attention_tiles, "usable_groups", lambda _: frozenset())
    attend(q, k, v).numpy()
    assert not launched
    limits = card.limits
    counts = 64, 64
    monkeypatch.setattr(attention_tiles, "usable_groups", lambda _: {"f16"})
    take = attention_tiles.group_tile_for
    assert take(card, td.float16, 64, 64, counts) == attention_tiles._GROUP_TILES[64]
    assert take(card, td.float16, 64, 64, (60, 64)) is None
    assert take(card, td.bfloat16, 64, 64, counts) is None
    for columns in (64, 128, 192, 256):
        assert take(card, td.float16, columns, columns, counts).bytes(columns, columns) <= (
            limits.max_shared_memory
        )
        assert attention_tiles.group_gradient_tiles(card, td.float16, columns, columns, counts)


@pytest.mark.parametrize("name", ["cpu", "ptx"])
def test_a_held_factor(rng, name):
    """A product of words that threads hold and of lines of a box of four axes, after one that
    replaces what the sums were."""
    words, four = td.vec4[td.u32], td.vec4[td.f32]

    @td.kernel(checked=False)
    def multiply(x: td.Array[td.f16], y: td.Array[td.f16], out: td.Array[td.f32]):
        left = td.shared(64 * 64, td.f16)
        right = td.shared(2 * 80 * 64, td.f16)
        barriers = td.shared(10, td.u64)
        sums = td.local(16, four)
        held = td.local(2, words)
        t = td.thread_idx.x
        for j in td.static_range(16):
            sums[j] = four(td.inf)
        builtins.prepare_stages(barriers, 5)
        builtins.claim_stage(barriers, 0, 1, (64 + 2 * 80) * 128)
        builtins.copy_tile(left, 0, barriers, 0, x, 0, (64, 64, 1), (64, 4096), (0, 0, 0), 64)
        for part in td.static_range(2):
            builtins.copy_tile(
                right, part * 80 * 64, barriers, 0, y, 0, (128, 80, 2, 2), (256, 128, 20480),
                (part * 64, 0, 1, 1), 80,
            )  # fmt: skip
        builtins.wait_stage(barriers, 0, 0)
        builtins.begin_product(sums, left, 0, right, 0, True, False)
        for k in td.static_range(2):
            # The row t / 4 % 8 of 16 x 16 ones and zeros, shifted: rows of the identity.
            line = td.u32(t // 4 % 8)
            at = td.u32(t % 4 * 2)
            low = td.where(line == at, td.u32(0x3C00), td.u32(0))
            high = td.where(line == at + td.u32(1), td.u32(0x3C000000), td.u32(0))
            held[k] = words(low | high, td.u32(0), td.u32(0), low | high)
        builtins.settle_products(0)
        builtins.hand_stage(barriers, 1 + t // 32)
        builtins.wait_stage(barriers, 1 + t // 32, 0)
        builtins.multiply_held(sums, held, right, 32 * 64, False, 80)
        builtins.settle_products(0, td.f32(1.0))
        for j in td.static_range(16):
            row = t // 32 * 16 + t % 32 // 4
            for i in td.static_range(4):
                found = sums[j].x if i == 0 else sums[j].y if i == 1 else sums[j].z
                found = sums[j].w if i == 3 else found
                out[(row + i // 2 * 8) * 128 + j * 8 + t % 4 * 2 + i % 2] = found

    x, y = drawn(rng, 64, 64), drawn(rng, 2, 80, 2, 128)
    near_tiles = y[1, :, 1].astype("f8").copy()
    # The first product takes tiles of 64 lines that follow each other.
    lines = np.concatenate([near_tiles[:, :64], near_tiles[:, 64:]])
    first = np.concatenate([lines[:64], lines[64:128]], axis=1)
    wanted = x.astype("f8") @ first
    wanted += np.tile(near_tiles[32:48] + near_tiles[48:64], (4, 1))
    with ptx_device("sm_90") if name == "ptx" else nullcontext(td.device(name)) as device:
        out = td.empty(64 * 128, dtype=td.float32, device=device)
        multiply[1, 128](
            *(td.asarray(each.reshape(-1), device=device) for each in (x, y)), out
        )  # fmt: skip
        np.testing.assert_allclose(out.numpy().reshape(64, 128), wanted, 1e-3, 1e-3)
