"""Attention to keys and values in pages, beside the formula in float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.models.attention import Angles, Batch, attend, attend_stored, store
from treadle.models.cache import PAGE, Cache
from treadle.models.config import DecoderConfig, RopeConfig
from treadle.models.layers import Columns
from treadle.models.rope import Rotary, frequencies

LENGTHS = (70, 5, 33)  # of three sequences
PAGES = 4  # of a sequence, at most


def config_of(heads: int, key_heads: int, depth: int, cap: float = 0.0) -> DecoderConfig:
    return DecoderConfig(
        "small", "small", layers=1, width=8, heads=heads, key_heads=key_heads, depth=depth, inner=8,
        vocabulary=9, context=128, epsilon=1e-6, rope=RopeConfig(depth, 1e4, 1e4),
        attention_cap=cap,
    )  # fmt: skip


def batch_of(device: Any, positions: list[int], sequences: list[int], together: bool) -> Batch:
    """Sequences whose pages lie in no order."""
    table = (np.arange(len(LENGTHS) * PAGES) * 7 + 3) % (len(LENGTHS) * PAGES) + 1
    places = np.concatenate([positions, sequences, table]).astype(np.int32)
    tokens = td.zeros(len(positions), dtype=td.int32, device=device)
    return Batch(tokens, td.asarray(places, device=device), PAGES, together)


def stored(device: Any, rng: Any, config: DecoderConfig, entries: Any) -> SimpleNamespace:
    """A cache with the keys and values of all sequences, which are also returned as they are."""
    cache = Cache(config, device, len(LENGTHS) * PAGES + 1, entries)
    angles = Angles(Rotary(np.zeros(config.depth // 2)), 128, device)  # no rotation
    wide, few = config.heads * config.depth, config.key_heads * config.depth
    kept = []
    for number, length in enumerate(LENGTHS):
        keys, values = rng.standard_normal((2, length, few), dtype=np.float32)
        query = np.zeros((length, wide), np.float32)
        batch = batch_of(device, list(range(length)), [number] * length, True)
        heads = tuple(Columns(td.asarray(x, device=device)) for x in (query, keys, values))
        store(config, batch, heads, cache.layers[0], angles)
        shape = (length, config.key_heads, config.depth)
        kept.append((keys.reshape(shape), values.reshape(shape)))
    return SimpleNamespace(layer=cache.layers[0], kept=kept)


def formula(
    config: DecoderConfig, query: Any, keys: Any, values: Any, position: int, window: int,
    scale: float, sinks: Any,
) -> np.ndarray:  # fmt: skip
    """A token's result in float64."""
    first = max(position + 1 - window, 0) if window else 0
    q = query.reshape(config.key_heads, config.group, config.depth).astype(np.float64)
    scores = np.einsum("hgd,shd->hgs", q, keys[first : position + 1].astype(np.float64)) * scale
    if config.attention_cap:
        scores = config.attention_cap * np.tanh(scores / config.attention_cap)
    weights = np.exp(scores)
    totals = weights.sum(-1, keepdims=True)
    if sinks is not None:
        totals = totals + np.exp(sinks.reshape(config.key_heads, config.group, 1))
    return np.einsum("hgs,shd->hgd", weights / totals, values[first : position + 1]).reshape(-1)


@pytest.mark.parametrize(
    ("shape", "entries", "window", "cap", "sinks", "parts", "bound"),
    [
        ((6, 2, 16), "f32", 20, 3.0, True, 3, 2e-5),
        ((2, 2, 64), "f16", 0, 0.0, False, None, 3e-3),
        ((4, 2, 32), "q8_0", 40, 0.0, True, 2, 6e-2),
        ((5, 1, 80), "f16", 0, 0.0, False, None, 3e-3),
        ((4, 1, 256), "f32", 0, 0.0, True, 2, 2e-5),
    ],
)
def test_each_sequence_sees_its_own_pages(
    device, rng, shape, entries, window, cap, sinks, parts, bound
):
    """Tokens of several sequences in one batch, and neighbours of one sequence that share reads."""
    config = config_of(*shape, cap)
    have = stored(device, rng, config, entries)
    sink = rng.standard_normal(config.heads).astype(np.float32) if sinks else None
    for together, positions, sequences in (
        (False, [69, 4, -1, 32], [0, 1, 0, 2]),
        (True, [30, 31, 32, -1], [2, 2, 2, 0]),
    ):
        n = len(positions)
        query = rng.standard_normal((n, config.heads * config.depth), dtype=np.float32)
        found = attend_stored(
            config, batch_of(device, positions, sequences, together),
            td.asarray(query.reshape(-1), device=device), have.layer, window=window, scale=0.3,
            sinks=None if sink is None else td.asarray(sink, device=device), parts=parts,
        ).numpy()  # fmt: skip
        for i, (position, number) in enumerate(zip(positions, sequences, strict=True)):
            wanted = np.zeros(config.heads * config.depth)
            if position >= 0:
                wanted = formula(
                    config, query[i], *have.kept[number], position, window, 0.3, sink
                )  # fmt: skip
            np.testing.assert_allclose(found[i], wanted, atol=bound)


@pytest.mark.parametrize("adjacent", [False, True])
def test_rotations_and_norms(device, rng, adjacent):
    """What is stored is rotated by its position, after the norm of its head."""
    config, dims = config_of(2, 1, 32), 24  # of 32 elements
    rotary = Rotary(frequencies(dims // 2), 1.5, adjacent)
    positions = [3, 0, 1001]
    cache = Cache(config, device, 64, "f32")
    table = np.arange(1, 33, dtype=np.int32)
    places = np.concatenate([positions, [0] * 3, table]).astype(np.int32)
    tokens = td.zeros(3, dtype=td.int32, device=device)
    batch = Batch(tokens, td.asarray(places, device=device), 32)
    fused = rng.standard_normal((3, 128), dtype=np.float32)
    norms = rng.standard_normal(64, dtype=np.float32)
    rows = td.asarray(fused, device=device)
    query = store(
        config, batch, (Columns(rows), Columns(rows, 64), Columns(rows, 96)), cache.layers[0],
        Angles(rotary, 1024, device), td.asarray(norms, device=device),
    )  # fmt: skip
    elements = cache.layers[0].elements.numpy().reshape(2, 64, PAGE, 32)
    for i, position in enumerate(positions):
        heads = fused[i].reshape(4, 32).astype(np.float64)
        heads[:3] /= np.sqrt((heads[:3] ** 2).mean(-1, keepdims=True) + 1e-6)
        heads[:2] *= norms[:32]
        heads[2] *= norms[32:]
        turns = np.exp(1j * position * 10000.0 ** (-np.arange(12) / 12)) * 1.5
        for head in heads[:3]:
            first, second = (head[:24:2], head[1:24:2]) if adjacent else (head[:12], head[12:24])
            turned = (first + 1j * second) * turns
            first[:], second[:] = turned.real, turned.imag
        found = query.numpy().reshape(3, 2, 32)[i]
        np.testing.assert_allclose(found, heads[:2], atol=5e-6)
        page, place = table[position // PAGE], position % PAGE
        np.testing.assert_allclose(elements[0, page, place], heads[2], atol=5e-6)
        np.testing.assert_array_equal(elements[1, page, place], fused[i, 96:])


@pytest.mark.parametrize(
    ("shape", "entries", "window", "normed", "sinks"),
    [((6, 2, 32), "f32", 20, True, True), ((2, 2, 64), "f16", 0, False, False),
     ((4, 1, 32), "q8_0", 0, True, False), ((4, 1, 256), "f32", 0, True, True)],
)  # fmt: skip
def test_new_keys_are_stored_and_seen(device, rng, shape, entries, window, normed, sinks):
    """A token of each of three sequences, and padding: as storing and attending one after the
    other, in the result and in the cache. On GPUs it is one launch."""
    config = config_of(*shape)
    heads, few, depth = shape
    angles = Angles(Rotary(frequencies(depth // 2)), 128, device)
    rows = rng.standard_normal((4, (heads + 2 * few) * depth), dtype=np.float32)
    sink = td.asarray(rng.standard_normal(heads).astype(np.float32), device=device)
    norms = td.asarray(rng.standard_normal(2 * depth, dtype=np.float32), device=device)
    seed = rng.integers(1 << 30)
    found = []
    for at_once in (False, True):
        have = stored(device, np.random.default_rng(seed), config, entries)
        batch = batch_of(device, [70, 5, -1, 33], [0, 1, 0, 2], False)
        given = td.asarray(rows, device=device)
        parts = [Columns(given, at * depth) for at in (0, heads, heads + few)]
        options = {"window": window, "sinks": sink if sinks else None}
        weights = norms if normed else None
        if at_once:
            result = attend(
                config, batch, parts, have.layer, angles, norms=weights, **options
            ).tensor()
        else:
            query = store(config, batch, parts, have.layer, angles, weights)
            result = attend_stored(config, batch, query, have.layer, **options)
        found.append((result.numpy(), have.layer.elements.numpy().astype(np.float32)))
    # Norms are summed in another order, so that what is stored may be rounded to the other side.
    of_result, of_cache = {"f32": (2e-5, 2e-6), "f16": (1e-3, 2e-3), "q8_0": (4e-2, 1)}[entries]
    np.testing.assert_allclose(found[1][0], found[0][0], atol=of_result)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-3, atol=of_cache)
    assert not found[1][0][2].any()
    assert found[1][0][[0, 1, 3]].all()
