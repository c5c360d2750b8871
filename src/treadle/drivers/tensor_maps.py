"""The matrices that a launch's kernel copies boxes of, in numbers, and the bytes that such a kernel
takes: what describes them follows its pointers and parameters."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from treadle.codegen.records import MAP_ALIGNMENT, MAP_BYTES, KernelCode, TensorMap, Terms

_ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "u8": 1}
_FORMATS = {"i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q"}


class Matrix(NamedTuple):
    """A matrix in memory: its first element's address, extents of its axes, the bytes from an
    element to the next of the second axis and of the further ones, and the extents of a box."""

    element: str
    address: int
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, int]


def matrix_of(described: TensorMap, pointers: bytes, parameters: bytes) -> Matrix:
    """The matrix for the pointers and parameters of a launch. An axis from the third on whose
    elements are all in one place has one."""

    def number(terms: Terms) -> int:
        total = 0
        for factor, offset, stored in terms:
            if offset < 0:
                total += factor
            else:
                total += factor * int(struct.unpack_from(_FORMATS[stored], parameters, offset)[0])
        return total

    size = _ELEMENT_BYTES[described.element]
    (pointer,) = struct.unpack_from("<Q", pointers, 8 * described.binding)
    near, far, *stacks = map(number, described.extents)
    far_step, *steps = (size * number(terms) for terms in described.steps)
    moves = zip(stacks, steps, strict=True)
    placed = [(stack, step) if step else (1, far_step) for stack, step in moves]
    address = pointer + size * number(described.start)
    return Matrix(
        described.element, address, (near, far, *[stack for stack, _ in placed]),
        (far_step, *[step for _, step in placed]), described.box,
    )  # fmt: skip


def map_places(code: KernelCode) -> tuple[int, ...]:
    """Where the maps of a kernel lie among the bytes that it takes, if these begin at a multiple of
    their alignment."""
    end = 8 * len(code.bindings) + code.layout.size
    first = -(-end // MAP_ALIGNMENT) * MAP_ALIGNMENT
    return tuple(first + MAP_BYTES * at for at in range(len(code.maps)))


def with_maps(
    code: KernelCode,
    places: Sequence[int],
    pointers: bytes,
    parameters: bytes,
    encode: Callable[[Matrix], bytes],
) -> bytes:
    """The bytes that a kernel takes, of whose parameters maps lie at `places`."""
    given = bytearray(pointers + parameters)
    for each, place in zip(code.maps, places, strict=True):
        given[place:] = bytes(max(place - len(given), 0))
        given[place:] = encode(matrix_of(each, pointers, parameters))
    return bytes(given)
