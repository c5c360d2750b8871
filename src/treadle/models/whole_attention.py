"""Attention within whole texts, without a cache: what training differentiates.

It computes the same as the launches into a cache in `attention`, from operations that have
derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.dtypes import int32
from treadle.models.config import DecoderConfig
from treadle.models.rope import FINE, Rotary
from treadle.tensor.assembly import concat, stack
from treadle.tensor.elementwise_functions import where
from treadle.tensor.functional.attention import scaled_dot_product_attention
from treadle.tensor.functional.normalization import rms_norm, softmax
from treadle.tensor.manipulation import permute_dims
from treadle.tensor.products import matmul
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor

_HIDDEN = float("-inf")  # the score of a key that a query does not see


@dataclass(frozen=True, eq=False)
class Texts:
    """Whole texts of one length that go through a model together: the ids of all their tokens, one
    text after the other."""

    tokens: Tensor
    length: int


@dataclass(frozen=True, eq=False)
class Seen:
    """What a layer's attention is like: `attention.attend` has what the numbers mean."""

    norms: Tensor | None
    window: int
    scale: float | None
    sinks: Tensor | None


def attend_whole(
    config: DecoderConfig,
    texts: Texts,
    rows: tuple[Tensor, Tensor, Tensor],
    rotary: Rotary,
    table: Tensor,
    seen: Seen,
) -> Tensor:
    """The result, of shape (tokens, heads * depth), of query, key and value, each with a row for
    each token. `table` is the rotary embedding's, on the device."""
    length, depth = texts.length, config.depth
    counts = config.heads, config.key_heads, config.key_heads
    query, key, value = (
        each.reshape(-1, length, count, depth) for each, count in zip(rows, counts, strict=True)
    )
    if seen.norms is not None:
        query = rms_norm(query, depth, seen.norms[:depth], config.epsilon)
        key = rms_norm(key, depth, seen.norms[depth:], config.epsilon)
    cosines, sines = _angles(rotary, table, length)
    query, key = (_rotated(each, rotary, cosines, sines) for each in (query, key))
    query, key, value = (permute_dims(each, (0, 2, 1, 3)) for each in (query, key, value))
    scale = depth**-0.5 if seen.scale is None else seen.scale
    if config.attention_cap or seen.sinks is not None:
        found = _by_scores(config, query * scale, key, value, seen)
    else:
        found = scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale, enable_gqa=True,
            window=(seen.window - 1, 0) if seen.window else None,
        )  # fmt: skip
    return permute_dims(found, (0, 2, 1, 3)).reshape(-1, config.heads * depth)


def _angles(rotary: Rotary, table: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of positions 0 to `length` - 1, of shape (length, 1, pairs)."""
    coarse = -(-length // FINE)
    parts = table.reshape(-1, 1, rotary.pairs, 2)
    fine, far = parts[:FINE], parts[FINE : FINE + coarse].reshape(-1, 1, 1, rotary.pairs, 2)
    cosines = far[..., 0] * fine[..., 0] - far[..., 1] * fine[..., 1]
    sines = far[..., 1] * fine[..., 0] + far[..., 0] * fine[..., 1]
    shape = (coarse * FINE, 1, rotary.pairs)
    return cosines.reshape(shape)[:length], sines.reshape(shape)[:length]


def _rotated(x: Tensor, rotary: Rotary, cosines: Tensor, sines: Tensor) -> Tensor:
    """Heads (texts, length, heads, depth) with their pairs rotated."""
    pairs = rotary.pairs
    turned, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    if rotary.adjacent:
        apart = turned.reshape(*x.shape[:-1], pairs, 2)
        first, second = apart[..., 0], apart[..., 1]
    else:
        first, second = turned[..., :pairs], turned[..., pairs:]
    made = first * cosines - second * sines, second * cosines + first * sines
    if rotary.adjacent:
        joined = stack(made, axis=-1).reshape(turned.shape)
    else:
        joined = concat(made, axis=-1)
    return joined if rest.shape[-1] == 0 else concat((joined, rest), axis=-1)


def _by_scores(
    config: DecoderConfig, query: Tensor, key: Tensor, value: Tensor, seen: Seen
) -> Tensor:
    """Attention with its scores in memory, where they are capped or heads have sinks."""
    texts, heads, length, depth = query.shape
    apart = query.reshape(texts, config.key_heads, config.group, length, depth)
    key, value = (each.reshape(texts, config.key_heads, 1, length, depth) for each in (key, value))
    scores = matmul(apart, permute_dims(key, (0, 1, 2, 4, 3)))
    if config.attention_cap:
        scores = (scores / config.attention_cap).tanh() * config.attention_cap
    at = arange(length, dtype=int32, device=query.device)
    behind = at.reshape(-1, 1) - at
    visible = behind >= 0
    if seen.window:
        visible = visible & (behind < seen.window)
    scores = where(visible, scores, _HIDDEN)
    if seen.sinks is not None:
        shape = (texts, config.key_heads, config.group, length, 1)
        sinks = seen.sinks.reshape(1, config.key_heads, config.group, 1, 1).broadcast_to(shape)
        scores = concat((scores, sinks), axis=-1)
    weights = softmax(scores, -1)[..., :length]
    return matmul(weights, value).reshape(texts, heads, length, depth)
