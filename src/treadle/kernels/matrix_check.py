"""Whether a device multiplies small matrices right: tried once, before products are made of that.

Drivers of other vendors have been found to place the elements of small matrices wrongly. So a small
product whose result is exact is computed first, of each dtype when it first comes up.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections.abc import Iterable, Iterator, Set

import numpy as np

from treadle.core.dtypes import DType, bf16, float16, float32, i32, u8, u16, u32
from treadle.core.errors import CompileError
from treadle.ir.opaque import unit_of
from treadle.kernels.device_code.attention import LOG2_E
from treadle.kernels.device_code.fragment_product import FragmentTile, fragment_multiplier
from treadle.kernels.device_code.group_product import GroupTile, group_multiplier
from treadle.kernels.device_code.matrix_product import Form, Loading
from treadle.kernels.device_code.opaque_attention import (
    OpaqueAttending,
    OpaqueAttentionTile,
    opaque_attender,
)
from treadle.kernels.factors import dtypes_of
from treadle.kernels.launching import packed
from treadle.lang.types import VectorType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

TRIED = FragmentTile(32, 32, 32, 16, 16, 3)
TRIED_BY_GROUPS = GroupTile(64, 64, 2)
_INNER = 64
_HALF = 2  # bytes
_SIXTEEN = 16  # bytes that are read at once
_LARGEST_ERROR = 2.0**-6  # of attention to numbers of about 1, in float16
_BITS = {1: u8, 2: u16, 4: u32}
_log = logging.getLogger("treadle")
_usable: weakref.WeakKeyDictionary[Device, UsableProducts] = weakref.WeakKeyDictionary()
_Attentions = dict[tuple[OpaqueAttending, OpaqueAttentionTile], bool]
_attentions: weakref.WeakKeyDictionary[Device, _Attentions] = weakref.WeakKeyDictionary()
_usable_groups: weakref.WeakKeyDictionary[Device, UsableProducts] = weakref.WeakKeyDictionary()


class UsableProducts(Set[str]):
    """What a device multiplies by instructions, without that for which it is wrong: tried when it
    is first asked for. While a graph or a function is recorded nothing can be tried, and all that
    is offered is taken."""

    __slots__ = ("__weakref__", "_device", "_found", "_offered", "_tile")

    def __init__(self, device: Device, offered: Set[str], tile: FragmentTile | GroupTile) -> None:
        self._device = weakref.ref(device)
        self._offered = offered
        self._tile = tile
        self._found: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        if name not in self._offered:
            return False
        assert isinstance(name, str)
        found = self._found.get(name)
        device = self._device()
        if found is None and device is not None:
            stream = device.default_stream
            if stream.capturing is not None or stream.interrupt is not None:
                return True
            what = "tiles" if isinstance(self._tile, GroupTile) else "small matrices"
            try:
                found = is_right(device, name, self._tile)
            except CompileError as error:
                _log.warning(
                    "%s refuses products of %s of %s, which are not used: %s",
                    device, what, name, error.message,
                )  # fmt: skip
                found = self._found[name] = False
                return found
            self._found[name] = found
            if not found:
                _log.warning(
                    "%s computes products of %s of %s wrongly: they are not used",
                    device, what, name,
                )  # fmt: skip
        return bool(found)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in sorted(self._offered) if name in self])

    def __len__(self) -> int:
        return len(list(iter(self)))

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> frozenset[str]:  # type: ignore[override]
        return frozenset(names)

    __hash__ = object.__hash__


def usable_products(device: Device) -> UsableProducts:
    """What the device multiplies rightly by instructions."""
    found = _usable.get(device)
    if found is None:
        offered = device.traits.matrix_products
        found = _usable[device] = UsableProducts(device, offered, TRIED)
    return found


def opaque_products(device: Device) -> bool:
    """Whether subgroups multiply small matrices of float16 whose layout is hidden. The driver has
    tried them when the device was opened."""
    if device.traits.matrix_products or "tensor_cores" not in device.features:
        return False
    device.handle  # noqa: B018 - opened here, if it was not
    return unit_of(device.traits.matrix_units) is not None


def usable_groups(device: Device) -> Set[str]:
    """What groups of threads compute products of from tiles, tried in the same way."""
    offered = device.traits.group_products
    if not offered:
        return offered
    found = _usable_groups.get(device)
    if found is None:
        found = _usable_groups[device] = UsableProducts(device, offered, TRIED_BY_GROUPS)
    return found


def attends_rightly(device: Device, what: OpaqueAttending, tile: OpaqueAttentionTile) -> bool:
    """Whether attention by opaque matrices is right, tried once for each kernel. While a graph or a
    function is recorded nothing can be tried, and what was not tried before is not used."""
    what = what._replace(split=False)
    found = _attentions.setdefault(device, {})
    if (what, tile) not in found:
        stream = device.default_stream
        if stream.capturing is not None or stream.interrupt is not None:
            return False
        try:
            found[what, tile] = _attention_error(device, what, tile) < _LARGEST_ERROR
        except CompileError as error:
            found[what, tile] = False
            _log.warning(
                "%s refuses attention by small matrices of float16, which is not used: %s",
                device, error.message,
            )  # fmt: skip
        else:
            if not found[what, tile]:
                _log.warning(
                    "%s computes attention by small matrices of float16 wrongly: it is not used",
                    device,
                )
    return found[what, tile]


def _attention_error(device: Device, what: OpaqueAttending, tile: OpaqueAttentionTile) -> float:
    """How wrong a small problem is: with a window, keys that end within a tile, and scores that
    grow, so that sums are scaled on their way."""
    draw = np.random.default_rng(22)
    queries, keys, right = tile.queries + 3, 4 * tile.keys - 3, 2 * tile.keys
    depth, width = (
        rows.columns if rows.exact else rows.columns - _SIXTEEN // _HALF
        for rows in (what.query, what.value)
    )
    shapes = (queries, depth), (keys, depth), (keys, width)
    q, k, v = (draw.standard_normal(shape).astype(np.float16) for shape in shapes)
    k[tile.keys :: 2] *= np.float16(8)
    scores = q.astype(np.float64) @ k.T.astype(np.float64) / math.sqrt(depth)
    seen = np.arange(keys) <= np.arange(queries)[:, None] + right
    scores = np.where(seen, scores, -math.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    totals = powers.sum(axis=1, keepdims=True)
    wanted = powers / totals @ v.astype(np.float64)
    norms = scores.max(axis=1) + np.log(totals[:, 0])
    sizes = (q.size, float16), (k.size, float16), (v.size, float16)
    given = [DeviceArray.allocate(device, dtype, (size,)) for size, dtype in sizes]
    for array, values in zip(given, (q, k, v), strict=True):
        array.upload(values.reshape(-1))
    out = DeviceArray.allocate(device, float16, (queries * width,))
    out.upload(np.full(queries * width, np.nan, np.float16))
    tops = DeviceArray.allocate(device, float32, (queries,))
    tops.upload(np.full(queries, np.nan, np.float32))
    vec4s = [
        packed(VectorType(i32, 4), *each)
        for each in (
            (0, 0, 0, 0), (0, 0, 0, depth // 4), (0, 0, 0, depth // 4), (0, 0, 0, width // 4),
            (0, 0, 0, 0), (queries, keys, depth, width), (1, 1, 1, 0), (queries, right, 0, 0),
        )
    ]  # fmt: skip
    blocks = -(-queries // tile.queries)
    opaque_attender(what, tile)[blocks, tile.threads](
        *given, 0, out, tops, *vec4s[:5], 0, *vec4s[5:], LOG2_E / math.sqrt(depth), 0, 1.0
    )
    found = out.to_host().astype(np.float64).reshape(queries, width)
    error = max(np.abs(found - wanted).max(), np.abs(tops.to_host() - norms).max())
    return float(error) if math.isfinite(error) else math.inf


def is_right(device: Device, name: str, tile: FragmentTile | GroupTile = TRIED) -> bool:
    """Whether a product of matrices of -1, 0 and 1 (255 for -1 where there are no signs), all of
    whose sums are exact, is right."""
    dtype, other = dtypes_of(name)
    made = i32 if dtype.itemsize == 1 else dtype
    draw = np.random.default_rng(22)
    rows, columns, inner, chunk, blocks = tile.rows, tile.columns, _INNER, _INNER, 1
    if isinstance(tile, GroupTile):  # all blocks of a cluster
        depth = tile.depth_of(dtype.itemsize)
        rows, columns, blocks = rows * tile.tall, columns * tile.wide, tile.cluster
        inner = chunk = depth * tile.split
        if device.traits.clusters:
            chunk = depth
    shapes = ((rows, inner), (inner, columns), (rows, columns))
    x, y = (_drawn(draw, *each) for each in zip(shapes[:2], (dtype, other), strict=True))
    # Tiles of groups have an inner axis that is near, unless elements have 16 bits.
    along = isinstance(tile, GroupTile) and dtype.itemsize != _HALF
    dtypes = dtype, other, made
    bits = [
        DeviceArray.allocate(device, _BITS[each.itemsize], (shape[0] * shape[1],))
        for each, shape in zip(dtypes, shapes, strict=True)
    ]
    for array, values, held in zip(bits, (x, y.T if along else y), dtypes, strict=False):
        array.upload(_bits(values, held).reshape(-1))
    arrays = [
        DeviceArray(device, each.storage, held, each.shape)
        for each, held in zip(bits, dtypes, strict=True)
    ]
    loading = Loading(True, 4, aligned=True) if isinstance(tile, GroupTile) else Loading(True, 1)
    result = None if made is dtype else made
    form = Form(
        dtype, 0, loading, loading._replace(inner=along), 1, True, False, result=result,
        other=None if other is dtype else other,
    )  # fmt: skip
    line = inner // loading.lanes
    of_second = (line, 1) if along else (1, columns // loading.lanes)
    if isinstance(tile, GroupTile):
        kernel = group_multiplier(form, tile)
    else:
        kernel = fragment_multiplier(form, tile.of(dtype))
    numbers = (1, 1, 0, 0, 0, line, 1, 0, 0, 0, 0, *of_second, 0, 1, chunk)
    kernel[(blocks, 1, 1), tile.threads](*arrays, rows, columns, inner, *numbers)
    return bool(np.array_equal(bits[2].to_host(), _bits(x @ y, made).reshape(-1)))


def _drawn(draw: np.random.Generator, shape: tuple[int, int], dtype: DType) -> np.ndarray:
    values = draw.integers(-1, 2, shape).astype(np.float32)
    return np.where(values < 0, np.float32(255), values) if dtype.kind == "uint" else values


def _bits(values: np.ndarray, dtype: DType) -> np.ndarray:
    """The bits of numbers that the dtype has exactly. Negative zeros are zeros."""
    values = values + np.float32(0)
    if dtype is bf16:  # without NumPy's dtype of it, whose import takes long
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(dtype.numpy).view(_BITS[dtype.itemsize].numpy)
