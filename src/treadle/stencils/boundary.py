"""What the arguments of a stencil's decorator say: boundary, constants, halo, tile, storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.dtypes import as_dtype, bfloat16, float16, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.ir import types as t
from treadle.ir.types import leaves
from treadle.lang.decorators import Function, as_function
from treadle.lang.definitions import DeviceFunction
from treadle.lang.positions import RULES, AxisRule
from treadle.lang.rules import fits
from treadle.lang.types import annotation_of
from treadle.runtime.launch import MAX_BLOCK
from treadle.tensor.dtypes import finfo

_CHOICES = ", ".join(f'"{rule}"' for rule in RULES)


@dataclass(frozen=True, slots=True)
class Boundary:
    """The rules: one for all axes, or one for each."""

    rules: tuple[AxisRule, ...]
    each: bool

    def of_axes(self, ndim: int, name: str) -> tuple[AxisRule, ...]:
        """The rule of each axis of a grid; ShapeError if there are fewer or more."""
        if not self.each:
            return self.rules * ndim
        if len(self.rules) != ndim:
            raise ShapeError(
                f"{name} has {len(self.rules)} boundaries, one for each axis, and its grid has "
                f"{ndim} {'axis' if ndim == 1 else 'axes'}"
            )
        return self.rules


def read_boundary(boundary: Any, value: Any) -> Boundary:
    """The rules that a decorator's arguments say. ValueError for what is not a rule."""
    each = isinstance(boundary, Sequence) and not isinstance(boundary, str)
    given = tuple(boundary) if each else (boundary,)
    values = tuple(value) if isinstance(value, Sequence) else (value,) * len(given)
    if len(values) != len(given):
        raise ValueError(
            f"a stencil's value= is a number, or one for each of the {len(given)} boundaries"
        )
    rules = tuple(_rule(one, number) for one, number in zip(given, values, strict=True))
    if value is not None and not any(rule.name == "constant" for rule in rules):
        raise ValueError('a stencil\'s value= goes with boundary="constant"')
    return Boundary(rules, each)


def _rule(given: Any, value: Any) -> AxisRule:
    if isinstance(given, (FunctionType, DeviceFunction)):
        function = given if isinstance(given, DeviceFunction) else Function(as_function(given))
        return AxisRule("function", 0, function)
    if not isinstance(given, str) or given not in RULES:
        raise ValueError(
            f"a stencil's boundary is one of {_CHOICES}, a function of an array and the indices "
            f"outside it, or a list of these, one for each axis: not {given!r}"
        )
    if given != "constant":
        return AxisRule(given)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise ValueError(
            f'a stencil with boundary="constant" needs value=, a number, not {value!r}'
        )
    return AxisRule("constant", value)


def check_constants(name: str, rules: Sequence[AxisRule], array: str, element: t.Type) -> None:
    """DtypeError if a rule's constant is not a value of an array's elements: an integer they do not
    hold, a fraction for integers, a number beyond the largest float."""
    for rule in rules:
        for _, scalar in leaves(element):
            if rule.name == "constant" and not _is_held(rule.value, scalar):
                raise DtypeError(
                    f"{name} has the value {rule.value} outside its arrays (value=), and the "
                    f"elements of {array} are td.{scalar}, which cannot be {rule.value}: give "
                    "another value, or an array of another dtype"
                )


def _is_held(value: bool | int | float, type: t.Scalar) -> bool:
    if type.is_float:
        return abs(value) <= finfo(annotation_of(type)).max or not math.isfinite(value)
    if not math.isfinite(value) or value != int(value):
        return False
    return value in (0, 1) if type == t.BOOL else fits(int(value), type)


def check_halo(halo: Any) -> tuple[int, ...] | None:
    """The halo that a decorator declares: one number, or one for each axis."""
    if halo is None:
        return None
    given = tuple(halo) if isinstance(halo, Sequence) else (halo,)
    if not given or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in given):
        raise ValueError(f"a stencil's halo is a number of cells, or one for each axis: {halo!r}")
    return given


def read_tile(tile: Any) -> Dim3 | None:
    """The block of threads that a decorator asks for in array order: one number, or up to 3. All
    devices run blocks of the same size, so that it is checked once."""
    if tile is None:
        return None
    given = tuple(tile) if isinstance(tile, Sequence) else (tile,)
    if not 1 <= len(given) <= 3 or any(
        isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in given
    ):
        raise ValueError(
            f"a stencil's tile is a number of threads, or up to 3 of them, not {tile!r}"
        )
    if math.prod(given) > MAX_BLOCK:
        raise ValueError(
            f"a stencil's tile has at most {MAX_BLOCK} threads, and {tile!r} has {math.prod(given)}"
        )
    return Dim3(*reversed(given))


def read_storage(storage: Any) -> t.Scalar | None:
    """The dtype that arrays of float32 are kept in, if it is another one. ValueError for one that
    has not 16 bits."""
    dtype = float32 if storage is None else as_dtype(storage)
    if dtype is float32:
        return None
    if dtype not in (float16, bfloat16):
        raise ValueError(
            f"a stencil's storage is td.float16, td.bfloat16 or td.float32, not {storage!r}"
        )
    return t.SCALARS[dtype.short]
