"""Dtypes: `td.f32`, `td.float32`, `"float32"` and NumPy's float32 are one thing.

A `DType` is an annotation in a kernel, a cast when called, and the `dtype=` of an array. The IR
has its own scalar types, under the same short names (`treadle.ir.types.SCALARS[dtype.short]`).
Complex numbers are elements of arrays only: a kernel sees each as a vector of two floats.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from treadle.core.errors import DtypeError

Kind = Literal["bool", "int", "uint", "float", "complex"]

BFLOAT16_BITS = np.dtype([("bfloat16", "<u2")])
"""What stands for bfloat16 where NumPy has none: a dtype of its own, with which NumPy does not
compute."""


@dataclass(frozen=True, eq=False)
class DType:
    """The type of an array's elements, or of a number in a kernel.

    `name` is the Array API's name, `short` the one that kernels use. It equals NumPy's dtype of
    the same meaning, and either name:

    >>> float32 == np.dtype("float32"), float32 == "f32", float32.short
    (True, True, 'f32')
    >>> int8(200)
    np.int8(-56)
    """

    name: str
    short: str
    kind: Kind
    itemsize: int  # bytes

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype; for bfloat16 the one that `ml_dtypes` adds. ImportError without it."""
        if self.name != "bfloat16":
            return np.dtype(self.name)
        if not has_bfloat16_arrays():
            raise ImportError(
                "NumPy has bfloat16 by the package ml_dtypes, which is not installed: "
                f"{_install('ml_dtypes')}, or convert the tensor first, x.to(td.float32).numpy()",
                name="ml_dtypes",
            )
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found

    @property
    def host(self) -> np.dtype[Any]:
        """NumPy's dtype that holds such numbers: float32 for bfloat16 where NumPy has none."""
        is_missing = self.name == "bfloat16" and not has_bfloat16_arrays()
        return np.dtype(np.float32) if is_missing else self.numpy

    @property
    def stored(self) -> np.dtype[Any]:
        """NumPy's dtype for the bytes of elements: for bfloat16 `BFLOAT16_BITS` where NumPy has
        none, so that files with it can be read."""
        is_missing = self.name == "bfloat16" and not has_bfloat16_arrays()
        return BFLOAT16_BITS if is_missing else self.numpy

    @property
    def is_float(self) -> bool:
        """Whether it is a floating point type."""
        return self.kind == "float"

    @property
    def is_floating_point(self) -> bool:
        """The same, by PyTorch's name."""
        return self.kind == "float"

    @property
    def is_signed(self) -> bool:
        """Whether it has negative numbers."""
        return self.kind in ("int", "float", "complex")

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type, signed or not."""
        return self.kind in ("int", "uint")

    @property
    def is_complex(self) -> bool:
        """Whether it is a type of complex numbers."""
        return self.kind == "complex"

    @property
    def component(self) -> DType:
        """The dtype of the real and of the imaginary part; of other dtypes, itself."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def bits(self) -> int:
        """The size in bits."""
        return self.itemsize * 8

    def __call__(self, value: Any = 0) -> Any:
        """`value` as a NumPy scalar of this dtype, by the rules of a cast in a kernel.

        Integers wrap; a float becomes an integer by truncation and saturates, NaN becomes 0.
        """
        return cast_number(value, self)

    def __getitem__(self, length: int) -> FixedArray:
        """A fixed number of elements, as a field of a struct: `weights: td.f32[4]`."""
        return FixedArray(self, length)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str):
            return other in (self.name, self.short)
        if isinstance(other, np.dtype):
            return self._is_numpy(other)
        if isinstance(other, type) and issubclass(other, np.generic):
            return self._is_numpy(np.dtype(other))
        return NotImplemented

    def _is_numpy(self, other: np.dtype[Any]) -> bool:
        if self.name == "bfloat16" and not has_bfloat16_arrays():
            return False
        return self.numpy == other

    def __hash__(self) -> int:
        if self.name == "bfloat16" and not has_bfloat16_arrays():
            return hash(self.name)
        return hash(self.numpy)

    def __repr__(self) -> str:
        return f"treadle.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))


@dataclass(frozen=True)
class FixedArray:
    """The annotation of a struct's field that holds `length` elements."""

    element: Any  # a DType, a vector type, a struct class or another FixedArray
    length: int

    def __getitem__(self, length: int) -> FixedArray:
        return FixedArray(self, length)


bool_ = DType("bool", "bool", "bool", 1)
int8 = DType("int8", "i8", "int", 1)
uint8 = DType("uint8", "u8", "uint", 1)
int16 = DType("int16", "i16", "int", 2)
uint16 = DType("uint16", "u16", "uint", 2)
int32 = DType("int32", "i32", "int", 4)
uint32 = DType("uint32", "u32", "uint", 4)
int64 = DType("int64", "i64", "int", 8)
uint64 = DType("uint64", "u64", "uint", 8)
float16 = DType("float16", "f16", "float", 2)
bfloat16 = DType("bfloat16", "bf16", "float", 2)
float32 = DType("float32", "f32", "float", 4)
float64 = DType("float64", "f64", "float", 8)
complex64 = DType("complex64", "c64", "complex", 8)
complex128 = DType("complex128", "c128", "complex", 16)

i8, u8, i16, u16, i32, u32, i64, u64 = (int8, uint8, int16, uint16, int32, uint32, int64, uint64)
f16, bf16, f32, f64 = float16, bfloat16, float32, float64
c64, c128 = complex64, complex128

# One number of each is one scalar of the IR.
DTYPES: tuple[DType, ...] = (
    bool_, int8, uint8, int16, uint16, int32, uint32, int64, uint64,
    float16, bfloat16, float32, float64,
)  # fmt: skip
BY_SHORT_NAME: dict[str, DType] = {dtype.short: dtype for dtype in DTYPES}
# What elements of arrays may be, besides structs.
ALL_DTYPES: tuple[DType, ...] = (*DTYPES, complex64, complex128)
_BY_NAME: dict[str, DType] = {
    name: dtype for dtype in ALL_DTYPES for name in (dtype.short, dtype.name)
}
_WITHOUT_WIDTH = (int, float, complex, None)


def as_dtype(value: Any) -> DType:
    """The DType that `value` names: a DType, NumPy's dtype or scalar class, a name, or `bool`.

    DtypeError if there is none. Python's `int`, `float` and `complex` have no fixed width and are
    left to `tensor.dtypes.named_dtype`, which knows the devices' defaults.
    """
    if isinstance(value, DType):
        return value
    if value is bool:
        return bool_
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if not any(value is one for one in _WITHOUT_WIDTH):
        try:
            found = _BY_NAME.get(np.dtype(value).newbyteorder("=").name)
        except (TypeError, ValueError):
            found = None
        if found is not None:
            return found
    raise DtypeError(
        f"{value!r} is not a dtype of treadle; there are {', '.join(d.name for d in ALL_DTYPES)}"
    )


def as_number_dtype(value: Any) -> DType:
    """`as_dtype` of one number in a kernel, which is never complex: DtypeError says what it is."""
    dtype = as_dtype(value)
    if dtype.is_complex:
        raise DtypeError(
            f"a kernel has no numbers of {dtype}: use td.vec2[td.{dtype.component.short}], the "
            "real and the imaginary part"
        )
    return dtype


@cache
def has_bfloat16_arrays() -> bool:
    """Whether NumPy has bfloat16, by the package ml_dtypes, which is optional in browsers."""
    return importlib.util.find_spec("ml_dtypes") is not None


def _install(package: str) -> str:
    if sys.platform == "emscripten":
        return f"await micropip.install({package!r}), if this Pyodide has it"
    return f"pip install {package}"


def number_of(raw: bytes | bytearray, dtype: DType | np.dtype[Any]) -> Any:
    """The Python number in the bytes of one element."""
    if isinstance(dtype, DType) and dtype.name == "bfloat16":
        bits = np.uint32(int.from_bytes(raw, "little") << 16)
        return bits.view(np.float32).item()
    return np.frombuffer(raw, dtype.numpy if isinstance(dtype, DType) else dtype)[0].item()


def cast_number(value: Any, dtype: DType) -> Any:
    """One number as a NumPy scalar of `dtype`, by the rules of a cast in a kernel.

    DtypeError for a complex number that would lose its imaginary part.
    """
    form = dtype.host.type
    if dtype.kind == "bool":
        return np.bool_(value != 0)
    if isinstance(value, (complex, np.complexfloating)) and not dtype.is_complex:
        raise DtypeError(f"{value} is complex and {dtype} is not: cast value.real, or abs(value)")
    if dtype.is_float or dtype.is_complex:
        with np.errstate(over="ignore"):
            if dtype is bfloat16:
                return _as_bfloat16(_rounded_to_odd(value), form)
            return form(value)
    if isinstance(value, (int, np.integer, np.bool_)):
        return _wrap(int(value), dtype)
    number = float(value)
    if number != number:
        return form(0)
    low, high = integer_range(dtype)
    if number >= high:
        return form(high)
    if number <= low:
        return form(low)
    return form(int(number))


def misfit(value: Any, dtype: DType) -> str | None:
    """Why a dtype cannot hold a number, in words; None if it can. Floats are rounded, but a finite
    one does not become infinite; integers hold whole numbers of their range.

    >>> misfit(300, u8), misfit(2.0, i32), misfit(1e9, f16)
    ('300 does not fit uint8 (0 to 255)', None, '1000000000.0 is too large for float16')
    """
    if type(value) is dtype.host.type or dtype.kind == "bool" or dtype.is_complex:
        return None
    if not isinstance(value, (int, float, np.integer, np.floating)):
        return None  # what else there is `cast_number` takes or refuses
    number = value.item() if isinstance(value, np.generic) else value  # Python compares exactly
    if dtype.is_float:
        try:
            lost = math.isinf(cast_number(float(number), dtype)) and not math.isinf(number)
        except OverflowError:  # an integer beyond all floats
            lost = True
        return f"{shown_number(number)} is too large for {dtype}" if lost else None
    if number % 1 != 0:  # also where it is infinite or NaN
        return f"{number} does not fit {dtype}, which holds whole numbers"
    low, high = integer_range(dtype)
    if low <= number <= high:
        return None
    return f"{shown_number(number)} does not fit {dtype} ({low} to {high})"


def plain_numbers(dtype: DType) -> tuple[type, Any, Any, type] | None:
    """The Python numbers that a dtype holds, and of which NumPy's scalar makes what `cast_number`
    does: their class, the least and the greatest; the scalar's class. None where NumPy has none.

    >>> plain_numbers(u8)
    (<class 'int'>, 0, 255, <class 'numpy.uint8'>)
    """
    if dtype.is_complex or dtype is bfloat16:
        return None
    form = dtype.numpy.type
    if dtype.is_float:
        most = float(np.finfo(form).max)
        return float, -most, most, form
    if dtype.kind == "bool":
        return bool, False, True, form
    return int, *integer_range(dtype), form


def shown_number(number: float) -> str:
    """A number for messages; Python refuses to write integers of thousands of digits."""
    if isinstance(number, int) and number.bit_length() > 256:
        return f"an integer of {number.bit_length()} bits"
    return str(number)


def _as_bfloat16(value: Any, form: Any) -> Any:
    """A number rounded to bfloat16, as such or as a float32."""
    if form is not np.float32:
        return form(value)
    single = np.float32(value)
    if single != single:
        return single
    bits = int(single.view(np.uint32))
    bits += 0x7FFF + (bits >> 16 & 1)
    return np.uint32(bits & 0xFFFF0000).view(np.float32)


def _rounded_to_odd(value: Any) -> Any:
    """A number as a float32 from which it is rounded to bfloat16 as if at once: one that is cut off
    has its last bit set, so that it is never taken for the middle between two."""
    if not isinstance(value, (int, float, np.integer, np.float64)) or value != value:
        return value
    exact: Any = value
    single = np.float32(exact)
    if not np.isfinite(single) or float(single) == exact:
        return single
    bits = single.view(np.uint32)
    if abs(float(single)) > abs(exact):
        bits -= np.uint32(1)
    return (bits | np.uint32(1)).view(np.float32)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype."""
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def _wrap(value: int, dtype: DType) -> Any:
    value &= (1 << dtype.bits) - 1
    if dtype.kind == "int" and value >> (dtype.bits - 1):
        value -= 1 << dtype.bits
    return dtype.numpy.type(value)
