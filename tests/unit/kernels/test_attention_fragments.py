"""Attention of 16-bit floats by fragments, and its gradients: on the PTX evaluator, whose sm_90 has
the instructions, and on the CPU, which does what they do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.autograd.rules import attention as rules
from treadle.kernels import attend as forward
from treadle.kernels import attend_gradients as backward
from treadle.kernels import attention_tiles
from treadle.kernels.attention_tiles import _KEY_GRADIENTS, _QUERY_GRADIENTS, _TILES
from treadle.kernels.device_code.attention_fragments import FragmentTile
from treadle.kernels.device_code.attention_gradients import GradientTile

attend = td.nn.functional.scaled_dot_product_attention
BOUNDS = {"float16": 2e-3, "bfloat16": 2e-2}


@pytest.fixture
def card() -> Iterator[td.Device]:
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        yield device


@pytest.fixture
def rng() -> np.random.Generator:
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")  # shown for a failed test
    return np.random.default_rng(seed)


def exact(arrays, g, scale, bias=0.0, kept=1.0):
    """The result and the gradients of query, key and value, in float64. Heads of key and value are
    repeated; `bias` is added to the scores."""
    q, k, v, g = (x.astype("f8") for x in (*arrays, g))
    groups = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(x, groups, axis=1) for x in (k, v))
    scores = q @ keys.swapaxes(-1, -2) * scale + bias
    most = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isfinite(most), most, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
    out = (weights * kept) @ values
    of_weights = g @ values.swapaxes(-1, -2) * kept
    slopes = weights * (of_weights - (g * out).sum(axis=-1, keepdims=True)) * scale

    def summed(x):
        return x.reshape(*k.shape[:2], groups, *x.shape[2:]).sum(axis=2)

    turned = slopes.swapaxes(-1, -2), (weights * kept).swapaxes(-1, -2)
    return out, slopes @ keys, summed(turned[0] @ q), summed(turned[1] @ g)


def hidden(queries, keys, left, right):
    """-infinity for the keys that a window hides."""
    i, j = np.arange(queries)[:, None], np.arange(keys)
    seen = np.ones((queries, keys), bool)
    if left is not None:
        seen &= j >= i - left
    if right is not None:
        seen &= j <= i + right
    return np.where(seen, 0.0, -np.inf)


def drawn(rng, shape, dtype="float16"):
    x = rng.standard_normal(shape).astype(np.float16).astype(np.float32)
    return x if dtype == "float16" else (x.view("u4") & 0xFFFF0000).view("f4")


def check(arrays, g, dtype="float16", bias=0.0, kept=1.0, scale=None, **options):
    """The result and the gradients, beside what they are."""
    kind = getattr(td, dtype)
    leaves = [td.asarray(x).astype(kind).requires_grad_() for x in arrays]
    out = attend(*leaves, enable_gqa=True, scale=scale, **options)
    out.backward(td.asarray(g).astype(kind))
    scale = arrays[0].shape[-1] ** -0.5 if scale is None else scale
    for x, wanted in zip(
        (out, *(leaf.grad for leaf in leaves)), exact(arrays, g, scale, bias, kept), strict=True
    ):
        assert x.dtype == kind
        found = x.detach().astype(td.float32).numpy()
        bound = BOUNDS[dtype] * max(1, np.abs(wanted).max())
        np.testing.assert_allclose(found, wanted, 0, bound)
    return out, leaves


@pytest.mark.parametrize(
    ("heads", "shared", "queries", "keys", "depth", "width", "left", "right"),
    [
        (4, 2, 17, 35, 40, 24, None, 0),  # a part of a fragment's columns, grouped heads
        (2, 1, 21, 67, 5, 3, 4, 2),  # no multiples of anything; queries that see nothing
        (1, 1, 1, 131, 16, 16, None, None),  # parts of the keys
    ],
)
def test_shapes_and_windows(card, rng, heads, shared, queries, keys, depth, width, left, right):
    shapes = (heads, queries, depth), (heads // shared, keys, depth), (heads // shared, keys, width)
    arrays = [drawn(rng, (2, *shape)) for shape in shapes]
    g = drawn(rng, (2, heads, queries, width))
    check(arrays, g, bias=hidden(queries, keys, left, right), window=(left, right))
    if queries > 20:  # more than there are keys
        arrays = [arrays[0], *(x[:, :, :3] for x in arrays[1:])]
        check(arrays, g, bias=hidden(queries, 3, left, right), window=(left, right))


def test_gradients_of_key_and_value_in_turn(card, rng, monkeypatch):
    """As for heads of many columns."""
    monkeypatch.setattr(attention_tiles, "_MOST_TOGETHER", 8)
    arrays = [drawn(rng, (1, 1, 20, 16)) for _ in range(3)]
    check(arrays, drawn(rng, (1, 1, 20, 16)), bias=hidden(20, 20, None, 0), is_causal=True)


def test_masks_and_dropout(card, rng):
    arrays = [drawn(rng, shape) for shape in ((2, 2, 19, 16), (2, 1, 35, 16), (2, 1, 35, 16))]
    g = drawn(rng, (2, 2, 19, 16))
    seen = rng.random((2, 1, 19, 35)) < 0.4
    seen[0, 0, 3] = False
    bias = np.where(seen, 0.0, -np.inf)
    numbers = rng.standard_normal((2, 1, 35)).astype(np.float32)
    check(arrays, g, attn_mask=td.asarray(numbers), bias=numbers, scale=0.7)
    kept = td.random.bernoulli((2, 2, 19, 35), 0.7, generator=td.Generator(3)).numpy() / 0.7
    options = {"dropout_p": 0.3, "generator": td.Generator(3)}
    out, _ = check(arrays, g, bias=bias, kept=kept, attn_mask=td.asarray(seen), **options)
    assert not out.detach().numpy()[0, :, 3].any()


def test_bfloat16(card, rng):
    arrays = [drawn(rng, (1, 2, 20, 32), "bfloat16") for _ in range(3)]
    check(arrays, drawn(rng, (1, 2, 20, 32), "bfloat16"), "bfloat16")


def test_operands_in_place(card, rng):
    """Query, key and value in one array, and rows that begin anywhere."""
    whole = drawn(rng, (2, 17, 3, 2, 24))
    x = td.asarray(whole).astype(td.float16)
    for first in (0, 3):
        q, k, v = (td.permute_dims(x[:, :, i, :, first:], (0, 2, 1, 3)) for i in range(3))
        parts = [whole[:, :, i, :, first:].transpose(0, 2, 1, 3) for i in range(3)]
        wanted = exact(parts, parts[0], (24 - first) ** -0.5)[0]
        np.testing.assert_allclose(attend(q, k, v).astype(td.float32).numpy(), wanted, 0, 2e-3)


def test_special_values(card, rng):
    """NaN stays in the rows that see it; large scores are no infinities."""
    q, k, v = (drawn(rng, (1, 1, 20, 16)) for _ in range(3))
    q[0, 0, 3, 2] = np.nan
    tensors = [td.asarray(x).astype(td.float16) for x in (q * 60, k * 60, v)]
    found = attend(*tensors, is_causal=True).astype(td.float32).numpy()
    # The products by 60 are rounded.
    given = [x.astype(td.float32).numpy() for x in tensors]
    wanted = exact(given, v, 0.25, hidden(20, 20, None, 0))[0]
    np.testing.assert_allclose(found, wanted, 0, 4e-3)
    assert np.isnan(found[0, 0, 3]).all()
    assert np.isnan(found).sum() == 16


def test_other_scales_take_other_kernels(card, rng, monkeypatch):
    monkeypatch.setattr(forward, "_by_fragments", None)  # nothing calls it
    q, k, v = (drawn(rng, (1, 1, 9, 8)) for _ in range(3))
    for scale in (-0.5, 0.0):
        tensors = [td.asarray(x).astype(td.float16) for x in (q, k, v)]
        found = attend(*tensors, scale=scale).astype(td.float32).numpy()
        np.testing.assert_allclose(found, exact((q, k, v), q, scale)[0], 0, 2e-3)


def test_who_takes_fragments(card, monkeypatch):
    """16-bit floats, also where subgroups multiply other dtypes; no more columns than registers."""
    monkeypatch.setattr(attention_tiles, "usable_products", lambda _: {"f16", "f32", "i8"})
    takes = attention_tiles.takes_fragments
    assert takes(card, td.float16, 64, 256, 0.1)
    assert not takes(card, td.float32, 64, 64, 0.1)
    assert not takes(card, td.bfloat16, 64, 64, 0.1)
    assert not takes(card, td.float16, 64, 257, 0.1)
    assert not takes(card, td.float16, 64, 64, float("inf"))


@pytest.mark.parametrize("right", [None, 0])
def test_packed_texts(card, rng, right):
    """Texts that end within tiles and at their edges, in forward and backward kernels; grouped
    heads. NaN and infinities in one of them, before or behind all, reach no other one."""
    starts = np.sort(rng.choice([0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 57, 60], 5))
    arrays = [drawn(rng, (1, heads, 60, 24)) for heads in (2, 1, 1, 2)]
    text = np.searchsorted(starts, np.arange(60), side="right")
    seen = (text[:, None] == text) & (text > 0) & (text < len(starts))
    bias = np.where(seen, 0.0, -np.inf) + hidden(60, 60, None, right)
    bad = [x.copy() for x in arrays]
    spoiled = text == rng.choice(text)
    for x in bad:
        x[:, :, spoiled & (rng.random(60) < 0.8)] = rng.choice([np.nan, np.inf])
    runs = []
    for *operands, g in (arrays, bad):
        leaves = [td.asarray(x).astype(td.float16).requires_grad_() for x in operands]
        out = td.nn.functional.packed_attention(
            *leaves, starts, enable_gqa=True, is_causal=right == 0
        )
        out.backward(td.asarray(g).astype(td.float16))
        runs.append([x.detach().numpy() for x in (out, *(leaf.grad for leaf in leaves))])
    for found, wanted in zip(runs[0], exact(arrays[:3], arrays[3], 24**-0.5, bias), strict=True):
        bound = BOUNDS["float16"] * max(1, np.abs(wanted).max())
        np.testing.assert_allclose(found.astype(np.float32), wanted, 0, bound)
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one[:, :, ~spoiled], other[:, :, ~spoiled])


def test_repeated_runs_are_the_same(card, rng):
    arrays = [drawn(rng, shape) for shape in ((1, 4, 20, 40), (1, 2, 35, 40), (1, 2, 35, 24))]
    g = drawn(rng, (1, 4, 20, 24))
    runs = []
    for _ in range(2):
        out, leaves = check(arrays, g, is_causal=True, bias=hidden(20, 35, None, 0))
        runs.append([x.detach().numpy() for x in (out, *(leaf.grad for leaf in leaves))])
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_compiled(card, rng):
    """Recorded, and replayed with other numbers."""
    function = td.compile(lambda q, k, v: attend(q, k, v, is_causal=True) * 2)
    for _ in range(3):
        arrays = [drawn(rng, (1, 2, 18, 16)) for _ in range(3)]
        found = function(*(td.asarray(x).astype(td.float16) for x in arrays))
        wanted = 2 * exact(arrays, arrays[0], 0.25, hidden(18, 18, None, 0))[0]
        np.testing.assert_allclose(found.astype(td.float32).numpy(), wanted, 0, 4e-3)


@pytest.mark.parametrize("columns", _TILES)
def test_tiles_of_the_table(card, rng, monkeypatch, columns):
    """Which thread does what: more than a block of each."""
    tile = _TILES[columns][0]
    monkeypatch.setattr(forward, "best_tile_for", lambda *_: tile)
    queries, keys = tile.queries + 3, tile.keys + 5
    q, k, v = (drawn(rng, (1, n, columns)) for n in (queries, keys, keys))
    tensors = [td.asarray(x).astype(td.float16) for x in (q, k, v)]
    found = attend(*tensors, window=(None, 7)).astype(td.float32).numpy()
    bias = hidden(queries, keys, None, 7)
    wanted = exact([x[None] for x in (q, k, v)], q[None], columns**-0.5, bias)[0][0]
    np.testing.assert_allclose(found, wanted, 0, 3e-3)


def test_tiles_of_gradients(card, rng, monkeypatch):
    """Those of 64 columns; the others have more of the same parts."""
    monkeypatch.setattr(backward, "query_gradient_tile", lambda *_: _QUERY_GRADIENTS[64][0])
    monkeypatch.setattr(backward, "key_gradient_tiles", lambda *_: _KEY_GRADIENTS[64][0])
    arrays = [drawn(rng, shape) for shape in ((1, 1, 40, 64), *[(1, 1, 130, 64)] * 2)]
    bias = hidden(40, 130, None, 95)
    check(arrays, drawn(rng, (1, 1, 40, 64)), bias=bias, window=(None, 95))


def test_as_cuda_cpp(rng):
    """Through NVIDIA's compiler of CUDA C++, whose code the evaluator runs."""
    with ptx_device("nvrtc") as device, td.use_device(device):
        q, k, v = (drawn(rng, (1, 1, 18, 16)) for _ in range(3))
        found = attend(*(td.asarray(x).astype(td.float16) for x in (q, k, v)), is_causal=True)
    wanted = exact((q, k, v), q, 0.25, hidden(18, 18, None, 0))[0]
    np.testing.assert_allclose(found.astype(td.float32).numpy(), wanted, 0, 2e-3)


def test_on_the_cpu(rng, monkeypatch):
    """Copies that happen at once, and lanes that exchange what they hold."""
    monkeypatch.setattr(forward, "_way", lambda *_: forward._by_fragments)
    monkeypatch.setattr(forward, "best_tile_for", lambda *_: FragmentTile(32, 16, 16))
    monkeypatch.setattr(rules, "derived_by_fragments", lambda *_: True)
    tile = GradientTile(32, 16, 16)
    monkeypatch.setattr(backward, "query_gradient_tile", lambda *_: tile)
    monkeypatch.setattr(backward, "key_gradient_tiles", lambda *_: (tile,))
    with td.use_device("cpu"), poisoned(td.device("cpu")):
        arrays = [drawn(rng, shape) for shape in ((1, 2, 35, 16), (1, 1, 19, 16), (1, 1, 19, 16))]
        check(arrays, drawn(rng, (1, 2, 35, 16)), bias=hidden(35, 19, None, 0), is_causal=True)
