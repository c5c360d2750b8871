"""What a trial is: a kernel of somebody else's file, a launch of it, and what counts as agreement.

Inputs come from a generator that is seeded with the trial's name, so that every process that runs a
trial makes the same ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

NumPy = np.ndarray[Any, Any]
Dims = int | tuple[int, ...]


# --- arguments -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Memory that a pointer parameter points to; `output` if it is compared afterwards."""

    make: Callable[[np.random.Generator], NumPy]
    output: bool = False


@dataclass(frozen=True, slots=True)
class Vector:
    """A `uchar4`, `float2`, … by value."""

    dtype: type[np.generic]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A struct by value, or in constant memory."""

    dtype: np.dtype[Any]
    values: tuple[Any, ...]

    def numpy(self) -> NumPy:
        """It as an array without dimensions."""
        return np.array(self.values, self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A struct with pointers in it by value: its fields by name, in order."""

    values: Mapping[str, Argument]


# An `int` or `float` of Python is the same in C++; other types are NumPy's scalars. None is NULL.
Argument: TypeAlias = "Array | Vector | Record | Fields | int | float | np.generic | None"


def reals(
    *shape: int, low: float = -1.0, high: float = 1.0, dtype: Any = np.float32, output: bool = False
) -> Array:
    """Uniform floats."""
    return Array(lambda rng: rng.uniform(low, high, shape).astype(dtype), output)


def integers(
    *shape: int, low: int = 0, high: int = 1000, dtype: Any = np.int32, output: bool = False
) -> Array:
    """Uniform integers from `low` up to `high` - 1."""
    return Array(lambda rng: rng.integers(low, high, shape).astype(dtype), output)


def words(*shape: int, output: bool = False) -> Array:
    """Integers of 32 random bits."""
    return integers(*shape, high=1 << 32, dtype=np.uint32, output=output)


def filled(value: Any, *shape: int, dtype: Any = np.float32, output: bool = True) -> Array:
    """One value everywhere; an output unless it is said otherwise."""
    return Array(lambda _: np.full(shape, value, dtype), output)


def result(*shape: int, dtype: Any = np.float32) -> Array:
    """An output that the kernel writes: 77 until then, and where it does not."""
    return filled(77, *shape, dtype=dtype)


def given(values: Any, dtype: Any = np.int32, output: bool = False) -> Array:
    """These values."""
    return Array(lambda _: np.array(values, dtype), output)


def made(make: Callable[[np.random.Generator], NumPy], output: bool = False) -> Array:
    """Whatever a function makes."""
    return Array(make, output)


# --- agreement -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exact:
    """Bit for bit; what is no number is the same as any other."""


@dataclass(frozen=True, slots=True)
class Norm:
    """Relative error by norm of the floats of an output; integers must be equal, unless they are
    the bytes of what `view` says."""

    most: float
    why: str
    view: type[np.generic] | None = None


@dataclass(frozen=True, slots=True)
class Levels:
    """Bytes, such as an image's, may differ by so much."""

    most: int
    why: str


@dataclass(frozen=True, slots=True)
class Share:
    """So many of an output's elements may differ, in any way."""

    most: float
    why: str


@dataclass(frozen=True, slots=True)
class Holds:
    """Outputs that differ from run to run: what must be true of them instead."""

    true: Callable[[list[NumPy]], bool]
    why: str


@dataclass(frozen=True, slots=True)
class Printed:
    """What the kernel prints, line by line in any order."""


Agreement = Exact | Norm | Levels | Share | Holds | Printed

FUSED = Norm(1e-5, "products and sums may be fused, and sums taken in another order")
MATH = Norm(1e-5, "libraries' functions differ in their last bits")
FAST = Norm(1e-4, "fast functions are exact to about 20 bits")
HALVES = Norm(2e-3, "sums of halves, of which one bit is 1e-3")


# --- trials --------------------------------------------------------------------------------------

# A type, a number, or the name of a function.
Template = type[np.generic] | int | np.generic | str


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A launch of a kernel.

    `file` has the kernel, and `unit` is what is compiled, where a header needs a file around it.
    With `strip`, host code is taken out of CUDA's reference, since it uses libraries that are not
    installed; the kernels' text stays as it is. `prelude` then stands in for those libraries.
    """

    file: str
    kernel: str
    grid: Dims = 1
    block: Dims = 1
    arguments: tuple[Argument, ...] = ()
    agreement: Agreement = field(default_factory=Exact)
    template: tuple[Template, ...] = ()
    shared: int = 0
    constants: Mapping[str, Array | Record] = field(default_factory=dict)
    read_back: Mapping[str, tuple[Any, tuple[int, ...]]] = field(default_factory=dict)
    unit: str = ""
    strip: bool = False
    prelude: str = ""
    include: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    impossible: str = ""  # why there is no launch
    cooperative: bool = False  # CUDA is asked to run all blocks at once

    @property
    def source(self) -> str:
        """The file that is compiled."""
        return self.unit or self.file

    @property
    def name(self) -> str:
        """What tells it from all others."""
        text = f"{self.file}:{self.kernel}"
        return f"{text}<{', '.join(map(cpp_argument, self.template))}>" if self.template else text

    def rng(self) -> np.random.Generator:
        """The generator of its inputs."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))


def dims(extent: Dims) -> tuple[int, int, int]:
    """A grid or block with all three axes.

    >>> dims(8), dims((2, 3))
    ((8, 1, 1), (2, 3, 1))
    """
    given_ = (extent,) if isinstance(extent, int) else extent
    x, y, z = (*given_, 1, 1)[:3]
    return x, y, z


_CPP = {
    np.float32: "float", np.float64: "double", np.int32: "int", np.uint32: "unsigned int",
    np.uint8: "unsigned char", np.uint16: "unsigned short", np.float16: "__half",
}  # fmt: skip


def cpp_argument(argument: Template) -> str:
    """A template's argument as C++.

    >>> cpp_argument(np.float32), cpp_argument(16), cpp_argument(np.uint32(1)), cpp_argument(True)
    ('float', '16', '1U', 'true')
    """
    if isinstance(argument, str):
        return argument
    if isinstance(argument, type):
        return _CPP[argument]
    if isinstance(argument, (bool, np.bool_)):
        return "true" if argument else "false"
    return f"{int(argument)}{'U' * isinstance(argument, np.uint32)}"


REASONS = (
    "texture or surface", "inline assembly", "class template", "cooperative group",
    "external library", "dynamic parallelism", "switched off in its file",
)  # fmt: skip
REFUSED = ("dynamic parallelism",)  # counted all the same: refused by design


@dataclass(frozen=True, slots=True)
class Excluded:
    """A kernel that is not tried, and for which of REASONS."""

    file: str
    kernel: str
    reason: str
