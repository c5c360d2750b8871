"""Prints, assertions and failed checks as records in a report buffer that the host reads.

The buffer `treadle.report` holds u32 words:

    word 0    how many words of records were asked for; threads add to it
    word 1    the words of the whole buffer, set by the host (which clears the others)
    word 2…   records, one after another: site number + 1, block, thread, values

Blocks and threads are linear numbers, x fastest; a value of 64 bits takes two words, low first. A
record that does not fit is counted in word 0 and not written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.printf import Conversion, conversion, format_float, format_integer
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import negate
from treadle.ir.traverse import children, walk
from treadle.ir.types import BOOL, F32, F64, I32, PAIR_OF_FLOATS, U32, U64, Scalar, Vector

REPORT = "treadle.report"
HEADER = 2  # words before the first record
_PREFIX = 3  # words of a record before its values
_EMPTY = "which is a null pointer (None) or an array without elements"

Number: TypeAlias = bool | int | float
Words: TypeAlias = Sequence[int] | npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How C's printf spells a value of a type; an i32 for each `*` comes before the value."""

    conversion: Conversion
    type: Scalar

    @property
    def types(self) -> tuple[Scalar, ...]:
        """The types of its values, in order."""
        return (*[I32] * self.conversion.stars, self.type)

    def text(self, values: Sequence[Number]) -> str:
        """The value spelled."""
        *counts, value = values
        stars = tuple(map(int, counts))
        if self.type.is_float:
            return format_float(self.conversion, float(value), stars)
        return format_integer(self.conversion, int(value), self.type.bits, stars)


@dataclass(frozen=True, slots=True)
class ReportSite:
    """A place in the kernel that reports. `parts` are literal text, and the types of values."""

    kind: Literal["print", "assert", "fault", "check", "stop"]  # "stop" is an assertion of C's
    span: Span
    parts: tuple[str | Scalar | Spelling, ...]
    memory: str = ""  # of a check: what was indexed, and along which axis
    axis: int = 0
    function: str = ""  # of a stop: the function that holds it, if not the kernel itself
    end: str = "\n"  # of a print: what comes after its parts

    @property
    def types(self) -> tuple[Scalar, ...]:
        """The types of the values in a record, in order."""
        return tuple(type for part in self.parts for type in _types_of(part))

    @property
    def words(self) -> int:
        """The words of a record."""
        return _PREFIX + sum(map(_words_of, self.types))


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One record: which thread of which block was where, with what values."""

    site: ReportSite
    block: int
    thread: int
    values: tuple[Number, ...]


# --- into the kernel -----------------------------------------------------------------------------


def instrument(
    kernel: n.Kernel, check: bool, *, stops: bool = True
) -> tuple[n.Kernel, tuple[ReportSite, ...]]:
    """The kernel writing reports instead of printing, and its report sites.

    With `check`, all assertions and accesses report too; without, only assertions that are always
    made are left. A thread in which one of these fails ends there, if `stops`. A kernel with
    nothing to report comes back without a report buffer. Functions with effects must be inlined:
    CompileError if one is left.
    """
    for function in kernel.functions:
        for node in walk(function.body):
            if isinstance(node, (n.Print, n.Assert)):
                raise CompileError(
                    f"{function.name} prints or asserts; it is inlined before reports are made",
                    node.span,
                )
    writer = _Writer(kernel, check, stops)
    body = writer.block(kernel.body)
    if not writer.sites:
        return (kernel if body == kernel.body else replace(kernel, body=body)), ()
    buffers = (*kernel.buffers, n.Buffer(REPORT, U32))
    return replace(kernel, body=body, buffers=buffers), tuple(writer.sites)


@dataclass(frozen=True, slots=True)
class _Failing:
    """A check that an expression makes, and the conditions under which it is evaluated."""

    path: tuple[n.Expression, ...]
    check: n.Check
    memory: str


class _Writer:
    def __init__(self, kernel: n.Kernel, check: bool, stops: bool) -> None:
        self.check = check
        self.stops = stops
        self.names = Names(kernel)
        self.sites: list[ReportSite] = []

    def block(self, block: n.Block) -> n.Block:
        return tuple(new for statement in block for new in self.statement(statement))

    def statement(self, statement: n.Statement) -> Iterator[n.Statement]:
        match statement:
            case n.Print():
                yield from self.checks(statement, statement.span)
                yield from self.print(statement)
            case n.Assert():
                yield from self.assertion(statement)
            case n.If():
                yield from self.checks(statement.condition, statement.span)
                then, otherwise = self.block(statement.then), self.block(statement.otherwise)
                yield replace(statement, then=then, otherwise=otherwise)
            case n.For():
                yield from self.checks(statement.start, statement.span)
                yield from self.checks(statement.stop, statement.span)
                yield replace(statement, body=self.block(statement.body))
            case n.While():
                yield self.while_loop(statement)
            case _:
                yield from self.checks(statement, statement.span)
                yield statement

    def while_loop(self, loop: n.While) -> n.Statement:
        """The condition is checked in every iteration, before it is evaluated."""
        body = self.block(loop.body)
        stops, self.stops = self.stops, False  # no thread can end in an update
        update = self.block(loop.update)
        self.stops = stops
        checks = tuple(self.checks(loop.condition, loop.span))
        if not checks:
            return replace(loop, body=body, update=update)
        leave = n.If(negate(loop.condition), (n.Break(loop.span),), (), loop.span)
        return replace(loop, condition=n.TRUE, body=(*checks, leave, *body), update=update)

    def assertion(self, statement: n.Assert) -> Iterator[n.Statement]:
        condition, message, span = statement.condition, statement.message, statement.span
        if not (self.check or statement.always):
            return
        yield from self.checks(statement, span)
        if not statement.always:
            site = ReportSite("fault" if statement.fault else "assert", span, (message,))
            yield n.If(negate(condition), self.record(site, ()), (), span)
            return
        site = ReportSite("stop", span, (message,), function=statement.function)
        end = (n.Return(None, span),) if self.stops else ()
        yield n.If(negate(condition), (*self.record(site, ()), *end), (), span)

    def print(self, statement: n.Print) -> n.Block:
        parts: list[str | Scalar | Spelling] = []
        values: list[n.Expression] = []
        for part in statement.parts:
            match part:
                case str():
                    parts.append(part)
                case n.Formatted(spec, value, stars):
                    parts.append(Spelling(conversion(spec), _scalar_type(value)))
                    values += (*stars, value)
                case _:
                    parts.append(_scalar_type(part))
                    values.append(part)
        site = ReportSite("print", statement.span, tuple(parts), end=statement.end)
        return self.record(site, tuple(values))

    def checks(self, node: n.Statement | n.Expression, span: Span) -> Iterator[n.Statement]:
        """What reports the failing checks of an expression, or of a simple statement."""
        if not self.check:
            return
        found: list[_Failing] = []
        _find_checks(node, (), found)
        for failing in dict.fromkeys(found):
            index, bound = failing.check.index, failing.check.bound
            type = _scalar_type(index)
            zero = n.Constant(0, type)
            below = n.Binary("lt", index, zero, BOOL)
            above = n.Binary("ge", index, bound, BOOL)
            condition: n.Expression = n.Binary("logical_or", below, above, BOOL)
            for one in reversed(failing.path):
                condition = n.Binary("logical_and", one, condition, BOOL)
            parts = (type, _scalar_type(bound))
            site = ReportSite("check", span, parts, failing.memory, failing.check.axis)
            yield n.If(condition, self.record(site, (index, bound)), (), span)

    def record(self, site: ReportSite, values: tuple[n.Expression, ...]) -> n.Block:
        """Statements that write one record, if there is room for it."""
        at = n.Variable(self.names.fresh("report.at"), U32)
        capacity = n.Variable(self.names.fresh("report.capacity"), U32)
        span = site.span
        self.sites.append(site)
        words: list[n.Expression] = [
            _u32(len(self.sites)),
            _linear("block_idx", "grid_dim"),
            _linear("thread_idx", "block_dim"),
        ]
        for value in values:
            words.extend(_as_words(value))
        length = _u32(site.words)
        room = n.Binary("sub", capacity, at, U32)
        fits = n.Binary(
            "logical_and",
            n.Binary("lt", at, capacity, BOOL),
            n.Binary("ge", room, _u32(site.words + HEADER), BOOL),
            BOOL,
        )
        stores = tuple(
            n.Assign(_word(n.Binary("add", n.Cast(at, I32), _i32(HEADER + k), I32)), word, span)
            for k, word in enumerate(words)
        )
        return (
            n.Declare(at, None, span),
            n.Atomic("add", _word(_i32(0)), (length,), at, span),
            n.Declare(capacity, n.Load(_word(_i32(1)), U32), span),
            n.If(fits, stores, (), span),
        )


def _find_checks(node: object, path: tuple[n.Expression, ...], found: list[_Failing]) -> None:
    """Collects checks, innermost first, with the conditions around them."""
    match node:
        case n.Binary("logical_and" | "logical_or" as op, left, right):
            _find_checks(left, path, found)
            taken = left if op == "logical_and" else negate(left)
            _find_checks(right, (*path, taken), found)
            return
        case n.Select(condition, if_true, if_false):
            _find_checks(condition, path, found)
            _find_checks(if_true, (*path, condition), found)
            _find_checks(if_false, (*path, negate(condition)), found)
            return
    for child in children(node):
        _find_checks(child, path, found)
    if isinstance(node, (n.Element, n.Item)):
        name = _spelled_place(node.base) if isinstance(node, n.Item) else _written(node.memory)
        checks = [check for check in node.checks if not check.expected]
        found.extend(_Failing(path, check, check.of or name) for check in checks)


def _spelled_place(place: n.Place) -> str:
    """A place as messages name it, without the values of indices."""
    match place:
        case n.Variable(name=name):
            return _written(name)
        case n.Element(memory=memory):
            return _written(memory)
        case n.Member(base=base, name=name):
            return f"{_spelled_place(base)}.{name}"
        case n.Item(base=base):
            return f"{_spelled_place(base)}[…]"


def _written(name: str) -> str:
    """A name as it is written: the second `m` of a kernel is m.2 in the IR."""
    before, dot, number = name.rpartition(".")
    return before if dot and number.isdigit() else name


def _u32(value: int) -> n.Constant:
    return n.Constant(value, U32)


def _i32(value: int) -> n.Constant:
    return n.Constant(value, I32)


def _word(index: n.Expression) -> n.Element:
    return n.Element(REPORT, index, U32)


def _linear(position: str, extent: str) -> n.Expression:
    """The number of a block or thread, x fastest."""
    x, y, z = (n.Cast(n.Builtin(position, axis), U32) for axis in range(3))
    width, height = (n.Cast(n.Builtin(extent, axis), U32) for axis in range(2))
    row = n.Binary("add", y, n.Binary("mul", height, z, U32), U32)
    return n.Binary("add", x, n.Binary("mul", width, row, U32), U32)


def _scalar_type(value: n.Expression) -> Scalar:
    if value.type == Vector(F32, 2):
        return PAIR_OF_FLOATS
    assert isinstance(value.type, Scalar)
    return value.type


def _types_of(part: str | Scalar | Spelling) -> tuple[Scalar, ...]:
    match part:
        case str():
            return ()
        case Spelling():
            return part.types
    return (part,)


def _words_of(type: Scalar) -> int:
    return 2 if type.bits == 64 else 1


def _as_words(value: n.Expression) -> tuple[n.Expression, ...]:
    type = _scalar_type(value)
    if type == PAIR_OF_FLOATS:
        return tuple(n.Bitcast(n.Extract(value, axis, F32), U32) for axis in ("x", "y"))
    if type.bits < 64:
        if type.is_float:
            return (n.Bitcast(value if type == F32 else n.Cast(value, F32), U32),)
        return (value if type == U32 else n.Cast(value, U32),)
    whole = n.Bitcast(value, U64) if type.is_float else n.Cast(value, U64)
    high = n.Binary("shr", whole, n.Constant(32, U64), U64)
    return (n.Cast(whole, U32), n.Cast(high, U32))


# --- out of the buffer ---------------------------------------------------------------------------


def decode_report(words: Words, sites: Sequence[ReportSite]) -> list[ReportEntry]:
    """The records in a report buffer, in the order they were written."""
    data = np.asarray(words, np.uint32)
    end = HEADER + min(int(data[0]), len(data) - HEADER)
    entries: list[ReportEntry] = []
    at = HEADER
    while at < end and data[at]:
        site = sites[int(data[at]) - 1]
        values: list[Number] = []
        place = at + _PREFIX
        for type in site.types:
            length = _words_of(type)
            values.append(_number(data[place : place + length], type))
            place += length
        entries.append(ReportEntry(site, int(data[at + 1]), int(data[at + 2]), tuple(values)))
        at = place
    return entries


def lost_words(words: Words, sites: Sequence[ReportSite]) -> int:
    """The words of records that did not fit into a report buffer; 0 if all did."""
    written = sum(entry.site.words for entry in decode_report(words, sites))
    return int(words[0]) - written


def format_entry(entry: ReportEntry, kernel: str, block: Dim3, grid: Dim3) -> str:
    """A record as text: what was printed, without its end, or what failed and where."""
    site = entry.site
    if site.kind == "print":
        return "".join(_printed(entry))
    if site.kind == "stop":
        file = f"{site.span.file}:{site.span.line}: " if site.span.line else ""
        at, thread = list(_point(entry.block, grid)), list(_point(entry.thread, block))
        failed = f"Assertion `{site.parts[0]}` failed"
        return f"{file}{site.function or kernel}: block: {at}, thread: {thread} {failed}"
    line = f", line {site.span.line}" if site.span.line else ""
    if line and site.span.file[:1] not in ("", "<"):  # a function that it calls may be elsewhere
        line += f" of {os.path.basename(site.span.file)}"
    if site.span.within:
        line += f", in {site.span.within}"
    elif site.span.is_of_header:
        line += f" of {site.span.file.strip('<>')}"
    where = f"block {_point(entry.block, grid)}, thread {_point(entry.thread, block)}"
    return f"kernel {kernel}{line}: {_failure(entry)}, {where}"


def _failure(entry: ReportEntry) -> str:
    """What failed."""
    site = entry.site
    if site.kind == "fault":
        return str(site.parts[0])
    if site.kind == "assert":
        return f"assertion failed: {site.parts[0]}"
    index, extent = entry.values
    if index == n.GIVEN_BACK:
        return f"{site.memory} is accessed after it was given back"
    if index == n.NOT_GIVEN:
        return f"an access beside all {site.memory}"
    if index == n.MISALIGNED:
        return f"an access at an address that is not aligned for {site.memory}"
    if not extent:
        return f"index {index} is outside {site.memory}, {_EMPTY}"
    return f"index {index} is outside {site.memory} of extent {extent} (axis {site.axis})"


def _printed(entry: ReportEntry) -> Iterator[str]:
    numbers = iter(entry.values)
    for part in entry.site.parts:
        values = [next(numbers) for _ in _types_of(part)]
        match part:
            case str():
                yield part
            case Spelling():
                yield part.text(values)
            case _:
                yield _spelled(values[0], part)


def _number(words: npt.NDArray[np.uint32], type: Scalar) -> Number:
    if type == BOOL:
        return bool(words[0])
    if type == PAIR_OF_FLOATS:
        high, low = map(float, words.view(np.float32))
        return high + low
    if type.is_float:
        return float(words.view(np.float64 if type == F64 else np.float32)[0])
    value = sum(int(word) << (32 * k) for k, word in enumerate(words))
    bits = 32 * len(words)
    return value - (1 << bits) if type.is_signed and value >> (bits - 1) else value


def _spelled(value: Number, type: Scalar) -> str:
    return str(np.float32(value)) if type.is_float and type.bits < 64 else str(value)


def _point(linear: int, extent: Dim3) -> tuple[int, int, int]:
    return (
        linear % extent.x,
        linear // extent.x % extent.y,
        linear // (extent.x * extent.y),
    )
