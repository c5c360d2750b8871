"""Products with quantized matrices: `linear(x, w)` is `x @ w.T` for rows of `w` in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from treadle.core.dtypes import float32
from treadle.core.errors import ShapeError
from treadle.graph.calls import call, call_of_several
from treadle.graph.node import Node
from treadle.kernels.device_code.activation_prologues import Prologue
from treadle.kernels.device_code.quantized_activations import Packing
from treadle.kernels.device_code.quantized_formats import FORMS, PLANES
from treadle.kernels.launching import serial_threads
from treadle.kernels.quantized_products import (
    MOST_ROWS,
    Matrix,
    can_multiply,
    multiply_packed,
    multiply_rows,
    pack,
    packed_shape,
)
from treadle.quant.blocks import Quantized
from treadle.runtime.arrays import packed_strides
from treadle.runtime.devices import Device
from treadle.tensor.assembly import concat
from treadle.tensor.tensor import Tensor, from_node

Activations = Literal["int8", "float"]
# Elements of the matrix that are dequantized at a time: such as stay in a CPU's cache, or as a GPU
# has memory for.
_TOGETHER = {True: 1 << 21, False: 1 << 27}


def linear(x: Tensor, w: Quantized, activations: Activations | None = None) -> Tensor:
    """`x @ w.T` in float32: x of shape (..., n), w of (rows, n), the result of (..., rows).

    `activations="float"` computes with x as it is. `"int8"` may round it to 8 bits with a scale for
    each 32 elements, as other runtimes do: this is faster, and costs about 5e-3 of the result.
    """
    return linears(x, [w], activations)[0]


def linears(
    x: Tensor, weights: Sequence[Quantized], activations: Activations | None = None
) -> list[Tensor]:
    """`linear(x, w)` for each of the weights; x is rounded to 8 bits only once for all."""
    made: dict[Packing, Node] = {}
    return [_linear(x, w, activations or "int8", made) for w in weights]


def _linear(x: Tensor, w: Quantized, activations: Activations, made: dict[Packing, Node]) -> Tensor:
    rows, n = w.shape
    if not x.ndim or x.shape[-1] != n:
        raise ShapeError(
            f"a quantized matrix of shape {w.shape} multiplies rows of {n} elements, not those of "
            f"an array of shape {x.shape}"
        )
    flat = x.astype(float32, copy=False).reshape(-1, n)
    name, many = w.format.name, flat.shape[0]
    floats, serial = activations == "float", serial_threads(x.device)
    if can_multiply(x.device, name, floats, many, rows, n):
        paired = serial and FORMS[name].paired and many <= MOST_ROWS
        packing = Packing(floats, serial, paired)
        if packing not in made:
            made[packing] = call(pack, (flat._node,), *packed_shape(many, n, floats), (packing,))
        nodes, matrix = _of_matrix(w)
        sources = (made[packing], *nodes)
        found = from_node(
            call(multiply_packed, sources, (many, rows), float32, (matrix, floats, n))
        )
    else:
        found = _by_parts(flat, w)
    return found.reshape(*x.shape[:-1], rows)


def can_follow(
    device: Device, weights: Sequence[Quantized], activations: Activations | None, many: int, n: int
) -> bool:
    """Whether `product_after` takes so many rows and these matrices: few rows, on a GPU."""
    floats = activations == "float"
    return not serial_threads(device) and all(
        w.shape[1] == n and can_multiply(device, w.format.name, floats, many, w.shape[0], n)
        for w in weights
    )


def product_after(
    prologue: Prologue,
    arrays: Sequence[Tensor],
    many: int,
    weights: Sequence[Quantized],
    activations: Activations | None = None,
    least: float = 0.0,
) -> tuple[Tensor, Tensor | None]:
    """What several matrices give for rows that a prologue computes of arrays, one after the other
    in each row; and the stream that the prologue writes, if it does. `least` is added to mean
    squares. `can_follow` says when that is possible."""
    given: list[Node] = []
    matrices: list[Matrix] = []
    for w in weights:
        nodes, matrix = _of_matrix(w)
        if matrices and (joined := _joined(given[-len(nodes) :], matrices[-1], nodes, matrix)):
            matrices[-1] = joined
        else:
            given += nodes
            matrices.append(matrix)
    rows = sum(matrix.rows for matrix in matrices)
    shapes = [(many, prologue.columns), (many, rows)] if prologue.writes else [(many, rows)]
    sources = [*map(_whole, arrays), *given]
    options = (prologue, least, activations == "float", many, tuple(matrices))
    made = [
        from_node(node)
        for node in call_of_several(
            multiply_rows, sources, [(shape, float32) for shape in shapes], options
        )
    ]
    return made[-1], made[0] if prologue.writes else None


def _whole(array: Tensor) -> Node:
    """A node with the elements of an array, without a copy where only its shape is another one."""
    node, start = _in_memory(array)
    return array._node if start or node.size != array.size else node


def _of_matrix(w: Quantized) -> tuple[list[Node], Matrix]:
    """The nodes of a matrix's planes, and how kernels find the matrix there."""
    planes = {"values" if key == "low" else key: plane for key, plane in w.planes.items()}
    present = tuple(key for key in PLANES if key in planes)
    found_in = [_in_memory(planes[key]) for key in present]
    places = tuple(
        (start, planes[key].size) for key, (_, start) in zip(present, found_in, strict=True)
    )
    return [node for node, _ in found_in], Matrix(w.format.name, present, places, w.shape[0])


def _joined(
    before: Sequence[Node], first: Matrix, after: Sequence[Node], second: Matrix
) -> Matrix | None:
    """Two matrices as one, where the second follows the first in memory."""
    if first.format != second.format or list(before) != list(after):
        return None
    pairs = list(zip(first.places, second.places, strict=True))
    if any(start + size != following for (start, size), (following, _) in pairs):
        return None
    places = tuple((start, size + more) for (start, size), (_, more) in pairs)
    return first._replace(places=places, rows=first.rows + second.rows)


def _in_memory(plane: Tensor) -> tuple[Node, int]:
    """A node that has a plane, and where it begins there: rows of a matrix (one of several experts)
    are read in place."""
    view = plane._view
    if view is None or plane._boundary is not None or view.strides != packed_strides(view.shape):
        return plane._node, 0
    return plane._cell.value, view.offset


def _by_parts(x: Tensor, w: Quantized) -> Tensor:
    """The product with the dequantized matrix, some of its rows at a time."""
    rows, n = w.shape
    step = max(_TOGETHER[x.device.traits.host_memory] // max(n, 1), 1)
    parts = [
        x @ w.format.dequantize({key: plane[at : at + step] for key, plane in w.planes.items()}).T
        for at in range(0, rows, step)
    ]
    return parts[0] if len(parts) == 1 else concat(parts, axis=1)
