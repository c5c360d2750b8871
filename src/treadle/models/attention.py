"""Attention of a layer to its cache: queries are rotated, keys and values stored, then read.

Both are launches whose shapes depend on the number of tokens alone: positions and tables of pages
are elements of an array on the device. So a step can be recorded once, and replayed as sequences
grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core.dtypes import float32, i32
from treadle.core.errors import UnsupportedOnTarget
from treadle.kernels.device_code import paged_attention, paged_attention_cpu, paged_heads
from treadle.kernels.device_code.activation_prologues import Prologue
from treadle.kernels.device_code.paged_attention import Paged
from treadle.kernels.device_code.paged_heads import Storing, power_of_two
from treadle.kernels.launching import packed, serial_threads
from treadle.kernels.machine import machine_of
from treadle.lang.types import VectorType
from treadle.models.cache import PAGE, LayerCache
from treadle.models.config import DecoderConfig
from treadle.models.layers import Columns
from treadle.models.rope import FINE, Rotary
from treadle.models.stream import Rows, plain_rows
from treadle.models.whole_attention import Seen, Texts, attend_whole
from treadle.runtime.devices import Device
from treadle.tensor.assembly import concat
from treadle.tensor.creation import empty
from treadle.tensor.tensor import Tensor, from_numpy

_INTEGERS = VectorType(i32, 4)
_LANES = 16
_THREADS = 256
_QUERIES = 8  # of a block: heads that share keys, times tokens
_HELD = 2048  # elements of queries that a block has in shared memory
_BLOCKS = 264  # that keep a GPU busy while one token is computed
_BLOCKS_CPU = 4
_MOST_PARTS = 32
_PART = 64  # keys at least that a part has of the longest text


@dataclass(frozen=True, eq=False)
class Batch:
    """Tokens that go through a model together, on the device.

    `tokens` are ids (int32). `places` are their positions, their sequences and the table of pages,
    one after the other (`paged_attention`), with `pages` pages for each sequence. `together` says
    that all tokens are one sequence's, so that neighbours share what they read; otherwise, each is
    of another sequence."""

    tokens: Tensor
    places: Tensor
    pages: int
    together: bool = False

    @property
    def count(self) -> int:
        """The number of tokens."""
        return self.tokens.shape[0]


class Angles:
    """Cosines and sines of a rotary embedding on a device."""

    def __init__(self, rotary: Rotary, context: int, device: Device) -> None:
        self.rotary = rotary
        self.table = from_numpy(rotary.table(context).reshape(-1), device)


def attend(
    config: DecoderConfig,
    batch: Batch | Texts,
    heads: Sequence[Columns],
    cache: LayerCache | None,
    angles: Angles,
    *,
    norms: Tensor | None = None,
    window: int = 0,
    scale: float | None = None,
    sinks: Tensor | None = None,
) -> Rows:
    """The result, of shape (tokens, heads * depth), of query, key and value as products gave them.

    `norms` has the weights of the query's norm and of the key's, if heads are divided by their root
    mean square. A query sees `window` keys up to its own, or all with 0. `scale` is 1 / sqrt(depth)
    by default. `sinks` has a score for each head that takes weight and gives nothing.

    Whole texts need no cache, and their result is differentiable."""
    if isinstance(batch, Texts):
        counts = config.heads, config.key_heads, config.key_heads
        query, key, value = (
            each.tensor(count * config.depth) for each, count in zip(heads, counts, strict=True)
        )
        seen = Seen(norms, window, scale, sinks)
        return plain_rows(
            attend_whole(config, batch, (query, key, value), angles.rotary, angles.table, seen)
        )
    assert cache is not None
    if not batch.together and not serial_threads(batch.tokens.device):
        found = _attend_new(config, batch, heads, cache, angles, norms, window, scale, sinks)
        if found is not None:
            return found
    query = store(config, batch, heads, cache, angles, norms)
    return attend_parts(config, batch, query, cache, window=window, scale=scale, sinks=sinks)


def store(
    config: DecoderConfig,
    batch: Batch,
    heads: Sequence[Columns],
    cache: LayerCache,
    angles: Angles,
    norms: Tensor | None = None,
) -> Tensor:
    """The rotated queries; keys, rotated too, and values are written to the cache."""
    device, n = batch.tokens.device, batch.count
    arrays = [*(each.rows for each in heads), norms, cache.scales]
    # Beside them the angles, the places, the result and the elements of the cache.
    if len({id(array) for array in arrays if array is not None}) + 4 > _most_arrays(device):
        heads = _joined(config, heads)
    query, key, value = heads
    threads = _LANES if serial_threads(device) else min(power_of_two(config.depth), _THREADS)
    what = _storing(config, cache, angles, norms, threads)
    out = empty((n, config.heads * config.depth), dtype=float32, device=device)
    paged_heads.storer(what)[n * (config.heads + 2 * config.key_heads), threads](
        query.rows.reshape(-1), key.rows.reshape(-1), value.rows.reshape(-1),
        0 if norms is None else norms,
        angles.table, batch.places, out.reshape(-1), cache.elements,
        0 if cache.scales is None else cache.scales,
        packed(_INTEGERS, query.start, key.start, value.start, 0),
        packed(_INTEGERS, *[each.rows.shape[-1] for each in heads], 0),
        packed(_INTEGERS, n, config.heads, config.key_heads, batch.pages),
        cache.keys, config.epsilon,
    )  # fmt: skip
    return out


def _most_arrays(device: Device) -> int:
    """How many a kernel takes: eight on some of WebGPU's devices."""
    return device.limits.max_buffers_per_kernel


def _joined(config: DecoderConfig, heads: Sequence[Columns]) -> list[Columns]:
    """The columns of several products side by side in one array."""
    widths = [count * config.depth for count in (config.heads, config.key_heads, config.key_heads)]
    parts = [each.tensor(width) for each, width in zip(heads, widths, strict=True)]
    rows = concat(parts, axis=-1)
    return [Columns(rows, start) for start in (0, widths[0], widths[0] + widths[1])]


def attend_stored(
    config: DecoderConfig,
    batch: Batch,
    query: Tensor,
    cache: LayerCache,
    *,
    window: int = 0,
    scale: float | None = None,
    sinks: Tensor | None = None,
    parts: int | None = None,
) -> Tensor:
    """Attention of rotated queries to what is stored. `parts` is into how many the keys of a query
    are split; by default as many as keep the device busy."""
    return attend_parts(
        config, batch, query, cache, window=window, scale=scale, sinks=sinks, parts=parts
    ).tensor()


def attend_parts(
    config: DecoderConfig,
    batch: Batch,
    query: Tensor,
    cache: LayerCache,
    *,
    window: int = 0,
    scale: float | None = None,
    sinks: Tensor | None = None,
    parts: int | None = None,
) -> Rows:
    """The same, as rows that the next product may join from the parts of the keys."""
    device, n = batch.tokens.device, batch.count
    serial = serial_threads(device)
    what, blocks = _paged(config, batch, cache, window, sinks, parts)
    make = paged_attention_cpu.attender_cpu if serial else paged_attention.attender
    result = _Result.of(what, n * config.heads, device)
    make(what)[blocks * what.parts, what.threads](
        query.reshape(-1), cache.elements, 0 if cache.scales is None else cache.scales,
        batch.places, 0 if sinks is None else sinks, result.sums, result.tops,
        packed(_INTEGERS, n, config.key_heads, batch.pages, cache.keys),
        window or 1 << 30, config.depth**-0.5 if scale is None else scale, config.attention_cap,
    )  # fmt: skip
    return result.rows(n)


def _attend_new(
    config: DecoderConfig, batch: Batch, heads: Sequence[Columns], cache: LayerCache,
    angles: Angles, norms: Tensor | None, window: int, scale: float | None, sinks: Tensor | None,
) -> Rows | None:  # fmt: skip
    """Attention of tokens of different sequences, whose keys and values the same launch stores.
    None where a kernel has too few arrays or too little shared memory for that."""
    device, n, depth = batch.tokens.device, batch.count, config.depth
    arrays = [*(each.rows for each in heads), norms, cache.scales, sinks]
    count = len({id(array) for array in arrays if array is not None})
    if count + 5 > _most_arrays(device):
        return None
    what, blocks = _paged(config, batch, cache, window, sinks, None)
    storing = _storing(config, cache, angles, norms, what.threads)
    needed = what.shared_bytes + paged_attention.bytes_to_prepare(what, storing)
    if needed > device.limits.max_shared_memory:
        return None
    result = _Result.of(what, n * config.heads, device)
    query, key, value = heads
    paged_attention.new_attender(what, storing)[blocks * what.parts, what.threads](
        query.rows.reshape(-1), key.rows.reshape(-1), value.rows.reshape(-1),
        0 if norms is None else norms, angles.table, cache.elements,
        0 if cache.scales is None else cache.scales, batch.places, 0 if sinks is None else sinks,
        result.sums, result.tops, packed(_INTEGERS, query.start, key.start, value.start, 0),
        packed(_INTEGERS, *[each.rows.shape[-1] for each in heads], 0),
        packed(_INTEGERS, n, config.key_heads, batch.pages, cache.keys),
        window or 1 << 30, depth**-0.5 if scale is None else scale, config.attention_cap,
        config.epsilon,
    )  # fmt: skip
    return result.rows(n)


def _paged(
    config: DecoderConfig, batch: Batch, cache: LayerCache, window: int, sinks: Tensor | None,
    parts: int | None,
) -> tuple[Paged, int]:  # fmt: skip
    """The kernel for a batch, and how many blocks have each part of the keys."""
    device, n, depth = batch.tokens.device, batch.count, config.depth
    serial = serial_threads(device)
    threads = _LANES if serial else _THREADS
    most = _QUERIES if serial else min(_QUERIES, max(_HELD // depth, 1))
    tokens = max(min(most // config.group, n), 1) if batch.together else 1
    blocks = -(-n // tokens) * config.key_heads
    what = Paged(
        _dtype(cache), config.group, depth, PAGE, tokens, 1, threads, config.attention_cap > 0,
        sinks is not None, serial, _compact(device),
    )  # fmt: skip
    if parts is None:
        parts = min(max((_BLOCKS_CPU if serial else _BLOCKS) // blocks, 1), _MOST_PARTS)
        if not serial:
            seen = min(batch.pages * PAGE, window or 1 << 30)
            parts = min(parts, -(-seen // max(_PART, what.tile)))
    if depth % (_LANES if serial else 4) or depth > 4 * threads * (8 if serial else 1):
        raise UnsupportedOnTarget(
            f"attention with heads of {depth} elements is not supported on {device}: a multiple of "
            f"{_LANES if serial else 4} is"
        )
    return what._replace(parts=parts), blocks


def _storing(
    config: DecoderConfig, cache: LayerCache, angles: Angles, norms: Tensor | None, threads: int
) -> Storing:
    rotary, compact = angles.rotary, _compact(cache.elements.device)
    return Storing(
        _dtype(cache), config.depth, rotary.pairs, rotary.adjacent, FINE, PAGE, norms is not None,
        threads, compact,
    )  # fmt: skip


def _compact(device: Device) -> bool:
    """Whether a GPU's driver compiles loops sooner than what they do, unrolled."""
    return not serial_threads(device) and machine_of(device).slow_to_compile


@dataclass(frozen=True, eq=False)
class _Result:
    """Where attention writes what: the result, or sums of the parts of the keys and their peaks."""

    what: Paged
    out: Tensor
    sums: Tensor
    tops: Tensor

    @staticmethod
    def of(what: Paged, lines: int, device: Device) -> _Result:
        """New memory for so many heads of tokens."""
        out = empty(lines * what.depth, dtype=float32, device=device)
        if what.parts == 1:
            return _Result(what, out, out, out)
        sums = empty(lines * what.parts * what.depth, dtype=float32, device=device)
        return _Result(what, out, sums, empty(lines * what.parts * 2, dtype=float32, device=device))

    def rows(self, count: int) -> Rows:
        """The rows of so many tokens."""
        what, out = self.what, self.out.reshape(count, -1)
        if what.parts == 1:
            return plain_rows(out)

        def joined() -> Tensor:
            join = paged_attention.joiner(what.depth, what.parts, what.threads)
            join[self.out.size // what.depth, what.threads](self.sums, self.tops, self.out)
            return out

        prologue = Prologue("joined", out.shape[1], parts=what.parts, depth=what.depth)
        return Rows(prologue, (self.sums, self.tops), count, joined)


def _dtype(cache: LayerCache) -> Any:
    return cache.elements.dtype
