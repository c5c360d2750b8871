"""Tensor maps: how the driver describes a matrix to the unit that copies boxes of it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from treadle.codegen.records import MAP_ALIGNMENT, MAP_BYTES
from treadle.core.errors import LaunchError
from treadle.drivers.tensor_maps import Matrix

if TYPE_CHECKING:
    from treadle.drivers.cuda.library import Library

_MOST = 1024  # maps that are remembered
# Of CUtensorMapDataType. float32 is TFLOAT32: numbers are rounded as they are copied.
_ELEMENTS = {"f16": 6, "bf16": 9, "f32": 11, "i8": 0, "u8": 0}
# No interleaving; lines of 128 bytes permuted; 256 bytes at a time into the second cache; zeros
# outside.
_LAYOUT = (0, 3, 3, 0)


class TensorMapEncoder:
    """Makes tensor maps, and remembers them."""

    def __init__(self, library: Library) -> None:
        self._library = library
        taken = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64)
        arrays = (ctypes.c_void_p,) * 4
        self._encode = ctypes.CFUNCTYPE(ctypes.c_int, *taken, *arrays, *(ctypes.c_int,) * 4)(
            library.address("cuTensorMapEncodeTiled")
        )
        self._known: dict[Matrix, bytes] = {}

    def __call__(self, matrix: Matrix) -> bytes:
        """The map of a matrix, 128 bytes."""
        found = self._known.get(matrix)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[matrix] = self._made(matrix)
        return found

    def _made(self, matrix: Matrix) -> bytes:
        room = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
        place = -(-ctypes.addressof(room) // MAP_ALIGNMENT) * MAP_ALIGNMENT
        rank = len(matrix.extents)
        extents = (ctypes.c_uint64 * rank)(*matrix.extents)
        steps = (ctypes.c_uint64 * (rank - 1))(*matrix.steps)
        box = (ctypes.c_uint32 * rank)(*matrix.box, *(1,) * (rank - 2))
        ones = (ctypes.c_uint32 * rank)(*(1,) * rank)
        code = self._encode(
            place, _ELEMENTS[matrix.element], rank, matrix.address,
            *(ctypes.addressof(each) for each in (extents, steps, box, ones)), *_LAYOUT,
        )  # fmt: skip
        if code:
            raise LaunchError(
                f"the NVIDIA driver cannot describe a matrix for copies of boxes "
                f"({self._library.describe(code)}): {matrix}"
            )
        return ctypes.string_at(place, MAP_BYTES)
