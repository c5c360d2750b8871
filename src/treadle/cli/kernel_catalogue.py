"""The kernels that `treadle kernels` prints, as a table: each is made as a program makes it, by an
expression of tensors or by the kernel library, on a device that is not here (`drivers.offline`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME, DType, float32, int32
from treadle.core.errors import TreadleError, UnsupportedOnTarget
from treadle.kernels.best_tiles import choice_for
from treadle.kernels.device_code.fragment_product import FragmentTile
from treadle.kernels.device_code.group_product import GroupTile
from treadle.kernels.device_code.matrix_product import Tile
from treadle.kernels.device_code.quantized_formats import FORMS
from treadle.kernels.factors import TF32, Factor, Product, dtypes_of
from treadle.kernels.machine import machine_of
from treadle.kernels.product import by_lines, by_tiles
from treadle.kernels.tiles import AnyTile, Problem
from treadle.kernels.tuned_products import tiles_of
from treadle.quant.blocks import FORMATS
from treadle.quant.quantizing import quantize
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tensor import functional
from treadle.tensor.creation import empty
from treadle.tensor.tensor import Tensor

_FLOATS = ("f16", "bf16", "f32")
_WIDE = (*_FLOATS, "f64")
_BYTES = ("i8", "u8")  # their products are int32
_BY_COLUMNS = (*_BYTES, TF32)  # of the second factor


@dataclass(frozen=True)
class Asked:
    """What a kernel is printed for. `dtype` is the short name of a dtype, "tf32", or the name of a
    quantized format."""

    device: Device
    dtype: str
    sizes: tuple[int, ...]
    tile: tuple[int, int, int] | None = None

    def array(self, *shape: int) -> Tensor:
        """An array of the dtype, without contents."""
        return empty(shape, dtype=BY_SHORT_NAME[self.dtype], device=self.device)


@dataclass(frozen=True)
class Entry:
    """A kernel of the catalogue: what it computes, the dtypes that it is printed for, the names of
    its sizes with the usual ones, and what launches it."""

    summary: str
    dtypes: tuple[str, ...]
    sizes: tuple[str, ...]
    usual: tuple[int, ...]
    launch: Callable[[Asked], object]
    has_tiles: bool = False
    usual_dtype: str = "f16"


# --- products -------------------------------------------------------------------------------------


def _arrays(asked: Asked) -> tuple[DeviceArray, DeviceArray, DeviceArray, Product]:
    """Two matrices and their product's memory. They lie row by row; the second one column by column
    where only that suits all tensor cores."""
    dtype, _ = dtypes_of(asked.dtype)
    made = int32 if asked.dtype in _BYTES else dtype
    m, n, k = asked.sizes
    arrays = [
        DeviceArray.allocate(asked.device, held, (count,))
        for held, count in ((dtype, m * k), (dtype, k * n), (made, m * n))
    ]
    second = Factor((), k, 1, 0) if asked.dtype in _BY_COLUMNS else Factor((), 1, n, 0)
    factors = asked.dtype if asked.dtype in _BY_COLUMNS else ""
    plain = Product((), m, n, k, Factor((), k, 1, 0), second, factors)
    return arrays[0], arrays[1], arrays[2], plain


def _gemm(asked: Asked) -> None:
    """As the planner has it: by tensor cores if the device has them for the dtype, otherwise by
    sums in registers."""
    if asked.tile is None:
        by_tiles(*_arrays(asked))
        return
    _by_tiles(asked, asked.dtype in asked.device.traits.matrix_products)


def _gemm_tiled(asked: Asked) -> None:
    _by_tiles(asked, False)


def _gemm_tensor(asked: Asked) -> None:
    offered = asked.device.traits.matrix_products
    if asked.dtype not in offered:
        has = f"it has them for {', '.join(sorted(offered))}" if offered else "it has none"
        raise UnsupportedOnTarget(
            f"{asked.device.name} has no instructions for products of {asked.dtype} matrices that "
            f"kernels are made of ({has}): --sm 75 has them for f16, i8 and u8, --sm 80 and newer "
            "for bf16 and tf32, too; gemm-tiled needs none"
        )
    _by_tiles(asked, True)


def _by_tiles(asked: Asked, tensor: bool) -> None:
    x, y, out, plain = _arrays(asked)
    by_tiles(x, y, out, plain, _tile(asked, tensor), parts=1)


def _tile(asked: Asked, tensor: bool) -> AnyTile:
    """The tile that was asked for, or the one that the planner takes, of tensor cores or not."""
    machine, (dtype, _) = machine_of(asked.device), dtypes_of(asked.dtype)
    m, n, k = asked.sizes
    lines = {k, k if asked.dtype in _BY_COLUMNS else n}  # boxes begin at multiples of 16 bytes
    groups = tensor and asked.dtype in machine.group_products
    groups = groups and not any(line * dtype.itemsize % 16 for line in lines)
    problem = Problem(
        dtype, 1, m, n, k, boxes=groups, rounded=asked.dtype == TF32,
        across=(False, asked.dtype not in _BY_COLUMNS),
    )  # fmt: skip
    known: list[AnyTile] = list(tiles_of(machine, "groups")) if groups else []
    known += [
        tile.of(dtype) if isinstance(tile, FragmentTile) else tile
        for tile in tiles_of(machine, "fragments" if tensor else "registers")
    ]
    planned = choice_for(machine, problem).tile
    if isinstance(planned, (FragmentTile, GroupTile) if tensor else Tile):
        known.insert(0, planned)
    item = dtype.itemsize if tensor else max(dtype.itemsize, 4)
    fitting = [
        tile
        for tile in known
        if tile.shared_bytes(item) <= machine.shared_bytes and tile.threads <= machine.most_threads
    ]
    if asked.tile is None:
        return fitting[0]
    for tile in fitting:
        if _extents(tile, dtype) == asked.tile:
            return tile
    wanted = "x".join(map(str, asked.tile))
    if any(_extents(tile, dtype) == asked.tile for tile in known):
        raise TreadleError(
            f"a tile of {wanted} takes more shared memory than the {machine.shared_bytes} bytes "
            f"that a block has on {asked.device.name}"
        )
    possible = sorted({_extents(tile, dtype) for tile in fitting})
    shown = ", ".join("x".join(map(str, each)) for each in possible)
    raise TreadleError(
        f"there is no tile of {wanted} (rows x columns x depth) for {asked.dtype} on "
        f"{asked.device.name}; there are {shown}"
    )


def _extents(tile: AnyTile, dtype: DType) -> tuple[int, int, int]:
    depth = tile.depth_of(dtype.itemsize) if isinstance(tile, GroupTile) else tile.depth
    return tile.rows, tile.columns, depth


def _gemm_naive(asked: Asked) -> None:
    by_lines(*_arrays(asked))


def _gemm_bias_residual(asked: Asked) -> Tensor:
    m, n, k = asked.sizes
    product = asked.array(m, k) @ asked.array(k, n)
    return product + asked.array(n) + asked.array(m, n)


def _gemv(asked: Asked) -> Tensor:
    m, k = asked.sizes
    return asked.array(m, k) @ asked.array(k)


def _quantized(asked: Asked) -> Tensor:
    rows, n, k = asked.sizes
    block = FORMATS[asked.dtype].elements
    if k % block:
        raise ValueError(
            f"rows of {asked.dtype} are blocks of {block} elements: K, the last number of --size, "
            f"is a multiple of {block}, not {k}"
        )
    weights = quantize(np.zeros((n, k), np.float32), asked.dtype, device=asked.device)
    activations = empty((rows, k), dtype=float32, device=asked.device)
    result: Tensor = activations @ weights.T
    return result


# --- rows and elements ----------------------------------------------------------------------------


def _softmax(asked: Asked) -> Tensor:
    return functional.softmax(asked.array(*asked.sizes), -1)


def _layer_norm(asked: Asked) -> Tensor:
    rows, columns = asked.sizes
    x, weight, bias = asked.array(rows, columns), asked.array(columns), asked.array(columns)
    return functional.layer_norm(x, (columns,), weight, bias)


def _rms_norm(asked: Asked) -> Tensor:
    rows, columns = asked.sizes
    return functional.rms_norm(asked.array(rows, columns), (columns,), asked.array(columns))


def _residual_bias(asked: Asked) -> Tensor:
    rows, columns = asked.sizes
    return asked.array(rows, columns) + asked.array(columns) + asked.array(rows, columns)


def _swiglu(asked: Asked) -> Tensor:
    return functional.silu(asked.array(*asked.sizes)) * asked.array(*asked.sizes)


def _attention(asked: Asked, causal: bool = False) -> Tensor:
    batch, heads, length, size = asked.sizes
    q, k, v = (asked.array(batch, heads, length, size) for _ in range(3))
    return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def _causal_attention(asked: Asked) -> Tensor:
    return _attention(asked, causal=True)


_MNK, _RC = ("M", "N", "K"), ("ROWS", "COLUMNS")
_SQUARE, _ROWS = (4096, 4096, 4096), (8192, 4096)
_HEADS, _USUAL_HEADS = ("BATCH", "HEADS", "LENGTH", "SIZE"), (8, 16, 4096, 64)
CATALOGUE: dict[str, Entry] = {
    "gemm": Entry(
        "C = A B, by tensor cores where there are; B by columns in i8, u8", (*_WIDE, *_BYTES), _MNK,
        _SQUARE, _gemm, has_tiles=True,
    ),
    "gemm-tensor": Entry(
        "C = A B by tensor cores; B by columns in tf32, i8, u8", ("f16", "bf16", TF32, *_BYTES),
        _MNK, _SQUARE, _gemm_tensor, has_tiles=True,
    ),
    "gemm-tiled": Entry(
        "C = A B by tiles in shared memory and registers; B by columns in i8, u8",
        (*_WIDE, *_BYTES), _MNK, _SQUARE, _gemm_tiled, has_tiles=True, usual_dtype="f32",
    ),
    "gemm-naive": Entry(
        "C = A B without shared memory; B by columns in i8, u8", (*_WIDE, *_BYTES), _MNK, _SQUARE,
        _gemm_naive, usual_dtype="f32",
    ),
    "gemm-bias-residual": Entry(
        "C = A B + bias + residual in one kernel", _WIDE, _MNK, _SQUARE, _gemm_bias_residual
    ),
    "gemv": Entry("y = A x", _WIDE, ("M", "K"), (4096, 4096), _gemv),
    "quantized": Entry(
        "ROWS x K of float32 times a matrix of N x K in ggml's blocks, transposed", tuple(FORMS),
        ("ROWS", "N", "K"), (1, 512, 4096), _quantized, usual_dtype="q4_k",
    ),
    "softmax": Entry("softmax of each row", _WIDE, _RC, _ROWS, _softmax),
    "layer-norm": Entry("layer norm of each row, weight and bias", _WIDE, _RC, _ROWS, _layer_norm),
    "rms-norm": Entry("root mean square norm of each row, weight", _WIDE, _RC, _ROWS, _rms_norm),
    "residual-bias": Entry("x + bias + residual", _WIDE, _RC, _ROWS, _residual_bias),
    "swiglu": Entry("silu(gate) * up", _WIDE, _RC, _ROWS, _swiglu),
    "attention": Entry(
        "softmax(Q K^T / sqrt(SIZE)) V of each head", _FLOATS, _HEADS, _USUAL_HEADS, _attention
    ),
    "causal-attention": Entry(
        "the same, each query seeing the keys up to its own", _FLOATS, _HEADS, _USUAL_HEADS,
        _causal_attention,
    ),
}  # fmt: skip


def launch(entry: Entry, asked: Asked) -> None:
    """Have the entry's kernels launched on the device."""
    made: Any = entry.launch(asked)
    if isinstance(made, Tensor):
        made.realize()
