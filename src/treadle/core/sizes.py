"""`Size`: an integer of a plan or of a trace that may be another one next time.

A plan is made for the sizes of one graph, a trace for those of one call. To use them for others,
the code that makes them runs once with objects in place of the sizes that differ: they compute as
integers do, and record which integers were made of them (instructions) and what comparisons said
(facts). From the record a Python function is made, which takes other sizes, checks the facts in the
order in which they were asked for, and returns the integers; so that code itself is written for
plain integers.

A `Size` is not an `int`, and so no C code takes its value unseen: what would use it as one without
asking, such as `range`, has to call `__index__`, and then that it has this very value becomes a
fact. It says of itself that it is one, though (`__class__`), so that `isinstance(n, int)` holds.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Iterator
from numbers import Number as AnyNumber
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parents[1]) + os.sep

Number = Any  # an int or a Size: the planner's annotations say int

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_SMALL_POWER = 8  # exponents up to here are multiplications


class Size:
    """An integer whose value is known for now. Operations with integers and sizes give sizes,
    comparisons give booleans and become facts of the record. When the record is closed, it is its
    value."""

    __slots__ = ("number", "record", "value")
    __class__ = property(lambda self: int)  # for isinstance

    def __init__(self, record: Any, value: int, number: int) -> None:
        self.record = record
        self.value = value
        self.number = number  # of its event

    def __index__(self) -> int:
        self.record.holds("==", self, self.value)
        return self.value

    __int__ = __trunc__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __complex__(self) -> complex:
        return complex(self.__index__())

    def __bool__(self) -> bool:
        return not self.record.holds("==", self, 0)

    def __hash__(self) -> int:
        # Dictionaries of treadle's own have sizes apart by what they are: another one, or an equal
        # integer, is then not found, and that is right for every value. A user's program looks for
        # integers, and that it finds one, or none, depends on the value.
        if is_own_code(sys._getframe(1)):
            return hash((id(self.record), self.number))
        return hash(self.__index__())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is Size:
            if other.record is not self.record:
                if self.record.is_open and other.record.is_open:
                    return False  # of two plans
                return self.value == other.value
            a, b = (self, other) if self.number < other.number else (other, self)
            return bool(self.record.holds("==", a, b))
        if isinstance(other, int):
            return bool(self.record.holds("==", self, int(other)))
        if isinstance(other, AnyNumber):
            return bool(operator.eq(self.__index__(), other))
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: Number) -> Any:
        return self._compared("<", other, operator.lt)

    def __le__(self, other: Number) -> Any:
        return self._compared("<=", other, operator.le)

    def __gt__(self, other: Number) -> Any:
        found = self._compared("<=", other, operator.le, operator.gt)
        return found if found is NotImplemented else not found

    def __ge__(self, other: Number) -> Any:
        found = self._compared("<", other, operator.lt, operator.ge)
        return found if found is NotImplemented else not found

    def _compared(self, op: str, other: Number, compare: Any, inverse: Any = None) -> Any:
        if isinstance(other, int):
            return self.record.holds(op, self, other)
        if isinstance(other, AnyNumber):
            value = self.__index__()
            # NaN is neither less nor greater.
            return compare(value, other) if inverse is None else not inverse(value, other)
        return NotImplemented

    def _with(self, op: str, other: Number, turned: bool = False) -> Any:
        """What an operation makes of this and another number."""
        if isinstance(other, int):
            return self.record.made(op, *((other, self) if turned else (self, other)))
        return self._with_value(OPERATIONS[op], other, turned)

    def _with_value(self, operation: Callable[..., Any], other: Any, turned: bool = False) -> Any:
        """What an operation makes of the value, which becomes a fact."""
        if not isinstance(other, AnyNumber):
            return NotImplemented
        value = self.__index__()
        other = fixed(other)
        return operation(other, value) if turned else operation(value, other)

    def __add__(self, other: Number) -> Number:
        return self._with("+", other)

    def __radd__(self, other: Number) -> Number:
        return self._with("+", other, True)

    def __sub__(self, other: Number) -> Number:
        return self._with("-", other)

    def __rsub__(self, other: Number) -> Number:
        return self._with("-", other, True)

    def __mul__(self, other: Number) -> Number:
        if isinstance(other, (tuple, list)):  # repeated so often
            return other * self.__index__()
        return self._with("*", other)

    def __rmul__(self, other: Number) -> Number:
        if isinstance(other, (tuple, list)):
            return other * self.__index__()
        return self._with("*", other, True)

    def __floordiv__(self, other: Number) -> Number:
        return self._with("//", _divisor(other))

    def __rfloordiv__(self, other: Number) -> Number:
        return self._with("//", other, True) if _divisor(self) is self else NotImplemented

    def __mod__(self, other: Number) -> Number:
        return self._with("%", _divisor(other))

    def __rmod__(self, other: Number) -> Number:
        if isinstance(other, (str, bytes)):
            return NotImplemented
        return self._with("%", other, True) if _divisor(self) is self else NotImplemented

    def __divmod__(self, other: Number) -> tuple[Number, Number]:
        return self // other, self % other

    def __rdivmod__(self, other: Number) -> tuple[Number, Number]:
        return other // self, other % self

    def __truediv__(self, other: Number) -> Any:
        return self._with_value(operator.truediv, other)

    def __rtruediv__(self, other: Number) -> Any:
        return self._with_value(operator.truediv, other, True)

    def __pow__(self, other: Number, modulus: Any = None) -> Any:
        if type(other) is int and 1 <= other <= _SMALL_POWER and modulus is None:
            found: Number = self
            for _ in range(other - 1):
                found = found * self
            return found
        if modulus is not None:
            return pow(self.__index__(), other, modulus)
        return self._with_value(operator.pow, other)

    def __rpow__(self, other: Number) -> Any:
        return self._with_value(operator.pow, other, True)

    def __lshift__(self, other: Number) -> Number:
        return self._with("<<", other)

    def __rlshift__(self, other: Number) -> Number:
        return self._with("<<", other, True)

    def __rshift__(self, other: Number) -> Number:
        return self._with(">>", other)

    def __rrshift__(self, other: Number) -> Number:
        return self._with(">>", other, True)

    def __and__(self, other: Number) -> Number:
        return self._with("&", other)

    def __or__(self, other: Number) -> Number:
        return self._with("|", other)

    def __xor__(self, other: Number) -> Number:
        return self._with("^", other)

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def __neg__(self) -> Number:
        return self.record.made("-", 0, self)

    def __pos__(self) -> Number:
        return self

    def __invert__(self) -> Number:
        return -1 - self

    def __abs__(self) -> Number:
        return -self if self < 0 else self

    def __round__(self, digits: int | None = None) -> Number:
        return self if digits is None or digits >= 0 else round(self.__index__(), digits)

    def __ceil__(self) -> Number:
        return self

    __floor__ = __ceil__

    def bit_length(self) -> Number:
        """As an integer's."""
        return self.record.made("bits", self, 0)

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, memo: Any) -> Size:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (self.__index__(),)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np  # as `core` does without it otherwise

        return np.asarray(self.__index__(), dtype)

    def __getattr__(self, name: str) -> Any:
        """What else an integer has: methods and attributes of its value."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__index__(), name)

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec)

    def __repr__(self) -> str:
        return repr(self.__index__())


def is_size(number: object) -> bool:
    """Whether something is a size, which `isinstance` does not tell from an integer."""
    return type(number) is Size


def valued(numbers: Any) -> Any:
    """Numbers, or (named) tuples of them, with sizes as the integers that they are now. That they
    have these values does not become a fact: for choices that are right for any value."""
    if type(numbers) is Size:
        return numbers.value
    if isinstance(numbers, tuple):
        found = [valued(each) for each in numbers]
        return type(numbers)(*found) if hasattr(numbers, "_fields") else tuple(found)
    return numbers


def fixed(numbers: Any) -> Any:
    """Numbers, or (named) tuples of them, with sizes as the integers that they are: that they are
    these becomes a fact. For what code is compiled for, and where no size can stand."""
    if type(numbers) is Size:
        return numbers.__index__()
    if isinstance(numbers, tuple):
        found = [fixed(each) for each in numbers]
        if all(one is other for one, other in zip(found, numbers, strict=True)):
            return numbers
        return type(numbers)(*found) if hasattr(numbers, "_fields") else tuple(found)
    return numbers


def index(number: Any) -> Any:
    """`operator.index`, that leaves a size as it is."""
    return number if type(number) is Size else operator.index(number)


def slice_of(part: slice, extent: Number) -> tuple[Number, Number, int]:
    """Where a slice of an axis begins, how many elements it has, and its step.

    >>> slice_of(slice(None, None, -2), 7), slice_of(slice(5, 9), 7)
    ((6, 4, -2), (5, 2, 1))
    """
    if not (
        type(extent) is Size or type(part.start) is Size
        or type(part.stop) is Size or type(part.step) is Size
    ):  # fmt: skip
        start, stop, step = part.indices(extent)
        return start, len(range(start, stop, step)), step
    step = 1 if part.step is None else index(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, extent) if step > 0 else (-1, extent - 1)

    def within(place: Any, default: Number) -> Number:
        if place is None:
            return default
        place = index(place)
        if place < 0:
            place = place + extent
            return low if place < low else place
        return high if place > high else place

    start, stop = within(part.start, low), within(part.stop, high)
    if step < 0:
        start, stop = within(part.start, high), within(part.stop, low)
        count = 0 if stop >= start else (start - stop - 1) // -step + 1
    else:
        count = 0 if stop <= start else (stop - start - 1) // step + 1
    return start, count, step


def has_sizes(numbers: Any) -> bool:
    """Whether there is a size in tuples of numbers."""
    return any(True for _ in sizes_in(numbers))


def sizes_in(results: Any) -> Iterator[Size]:
    if type(results) is Size:
        yield results
    elif isinstance(results, tuple):
        for each in results:
            yield from sizes_in(each)


def _divisor(number: Number) -> Number:
    """A divisor, of which it is a fact that it is not 0."""
    if type(number) is Size and not number:
        raise ZeroDivisionError("integer division or modulo by zero")
    return number


def _is_generated(code: Any) -> bool:
    """Whether code is a dataclass's, which asks for its fields on behalf of who asks for it."""
    return code.co_filename == "<string>" and code.co_name in ("__hash__", "__eq__")


def is_own_code(frame: Any) -> bool:
    """Whether a frame runs code of treadle's."""
    while _is_generated(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    name: str = frame.f_code.co_filename
    return name.startswith(_PACKAGE)
