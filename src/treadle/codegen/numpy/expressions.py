"""Expressions as NumPy's.

A value is a list of texts, one for each scalar in it: a vector has two to four. Each text is used
once, so that nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.codegen.numpy.emitter import Emitter, register, stored
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import (
    COMPONENTS,
    Scalar,
    Struct,
    Type,
    Vector,
    field_offset,
    leaves,
    size_of,
)

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=",
}  # fmt: skip
_ROUNDED = ("add", "sub", "mul", "div", "rem", "mod", "floordiv")
_EXACT = ("abs", "floor", "ceil", "trunc", "rint", "min", "max")


class Memories:
    """The memories of a kernel as they are used: each as NumPy arrays of one or several types."""

    def __init__(self, strides: dict[str, int], constant: frozenset[str]) -> None:
        self._strides = strides  # bytes of each shared memory for a block, or local for a thread
        self.constant = constant  # those that nothing is written to
        self._names: dict[str, str] = {}
        self.views: dict[tuple[str, str], str] = {}

    def stem(self, memory: str) -> str:
        """The variable of a memory's bytes."""
        return self._names.setdefault(memory, f"b{len(self._names)}")

    def view(self, memory: str, type: Scalar) -> tuple[str, str]:
        """The variable of a memory as an array of a type, and that of where a thread's own part
        begins (empty where all threads have the same)."""
        name = self.views.setdefault((memory, stored(type)), f"{self.stem(memory)}_{stored(type)}")
        return name, f"{name}_at" if memory in self._strides else ""


class Expressions:
    """Prints expressions into an emitter, before whose next line they are computed."""

    def __init__(self, emitter: Emitter, memories: Memories) -> None:
        self.emitter = emitter
        self.memories = memories

    def is_own(self, node: n.Expression) -> bool:
        """Whether a value certainly does not change with memory."""
        match node:
            case n.Binary() | n.Unary() | n.Constant() | n.Variable() | n.Builtin() | n.Intrinsic():
                return True
            case n.Extract():
                return self.is_own(node.operand)
            case n.Cast() | n.Bitcast():
                return self.is_own(node.operand)
            case n.Select():
                return self.is_own(node.if_true) and self.is_own(node.if_false)
            case n.Construct():
                return all(map(self.is_own, node.operands))
            case n.Load():
                root = root_of(node.place)
                return isinstance(root, n.Variable) or root.memory in self.memories.constant
        return False

    def one(self, node: n.Expression) -> str:
        """The text of a scalar."""
        (text,) = self.parts(node)
        return text

    def owned(self, node: n.Expression) -> list[str]:
        """The parts as values that do not change with memory."""
        parts = self.parts(node)
        return parts if self.is_own(node) else [f"own({part})" for part in parts]

    def parts(self, node: n.Expression) -> list[str]:
        """The texts of the scalars in a value."""
        match node:
            case n.Constant():
                return [self.emitter.constants.name(node.value, node.type)]
            case n.Variable():
                return [*self.emitter.parts(node)]
            case n.Builtin():
                text = f"c.{node.name}[{node.axis}]"
                return [text if node.type.name == "i32" else f"{text}.astype({node.type.name})"]
            case n.Unary():
                sign = "-" if node.op == "neg" else "~"
                return [f"({sign}{part})" for part in self.parts(node.operand)]
            case n.Binary():
                return self.binary(node)
            case n.Select():
                return self.select(node)
            case n.Cast():
                source, target = _scalar(node.operand.type), _scalar(node.type)
                return [cast(part, source, target) for part in self.parts(node.operand)]
            case n.Bitcast():
                return self.bitcast(node)
            case n.Intrinsic():
                return self.intrinsic(node)
            case n.Call():
                return self.call(node)
            case n.Construct():
                return [part for operand in node.operands for part in self.parts(operand)]
            case n.Extract():
                start, count = leaf_range(node.operand.type, node.name)
                return self.parts(node.operand)[start : start + count]
            case n.Load():
                return self.load(node)

    def binary(self, node: n.Binary) -> list[str]:
        if node.op in n.LOGICAL:
            return [self.logical(node)]
        type = _scalar(node.left.type)
        left, right = self.parts(node.left), self.parts(node.right)
        return [_operation(node.op, a, b, type) for a, b in zip(left, right, strict=True)]

    def logical(self, node: n.Binary) -> str:
        """The right side of a call may not end for threads that do not ask for it."""
        sign = "&" if node.op == "logical_and" else "|"
        if not any(isinstance(inner, n.Call) for inner in walk(node.right)):
            return f"({self.one(node.left)} {sign} {self.one(node.right)})"
        emitter, outer = self.emitter, self.emitter.mask
        left = emitter.temporary(self.one(node.left))
        inner, right = emitter.fresh("m"), emitter.fresh()
        emitter.line(f"{right} = {emitter.constants.name(sign == '|', _BOOL)}")
        emitter.line(f"{inner} = {'both' if sign == '&' else 'without'}({outer}, {left})")
        with emitter.indented(f"if {inner} is not False:"):
            emitter.mask = inner
            emitter.line(f"{right} = {self.one(node.right)}")
        emitter.mask = outer
        return f"({left} {sign} {right})"

    def select(self, node: n.Select) -> list[str]:
        condition = self.one(node.condition)
        left, right = self.parts(node.if_true), self.parts(node.if_false)
        if len(left) > 1:
            condition = self.emitter.temporary(condition)
        return [f"select({condition}, {a}, {b})" for a, b in zip(left, right, strict=True)]

    def bitcast(self, node: n.Bitcast) -> list[str]:
        source, target = _scalar(node.operand.type), _scalar(node.type)
        parts = self.parts(node.operand)
        if source.bits != target.bits:
            raise UnsupportedOnTarget(
                f"the bits of a {node.operand.type} cannot be seen as a {node.type} by NumPy",
                node.span,
            )
        return [_bits(part, source, target) for part in parts]

    def intrinsic(self, node: n.Intrinsic) -> list[str]:
        type = _scalar(node.operands[0].type)
        operands = [self.parts(operand) for operand in node.operands]
        if node.op == "dot":
            total = ""
            for a, b in zip(*operands, strict=True):
                product = _operation("mul", a, b, type)
                total = _operation("add", total, product, type) if total else product
            return [total]
        return [_called(node.op, parts, type) for parts in zip(*operands, strict=True)]

    def call(self, node: n.Call) -> list[str]:
        arguments = [
            part
            for argument in node.arguments
            if not isinstance(argument, n.MemoryReference)
            for part in self.parts(argument)
        ]
        emitter = self.emitter
        text = f"{function_name(node.function)}({', '.join(['c', emitter.mask, *arguments])})"
        count = len(leaves(node.type))
        result = emitter.once(text)
        return [result] if count == 1 else [f"{result}[{i}]" for i in range(count)]

    # --- memory ----------------------------------------------------------------------------------

    def load(self, node: n.Load) -> list[str]:
        if isinstance(root_of(node.place), n.Variable):
            return self.part_of_variable(node.place)
        address = self.address(node.place)
        found = []
        for offset, type in leaves(node.type):
            view, index = self.element(address, offset, type)
            checks = f", {address.checks}" if address.checks else ""
            found.append(self.emitter.once(_loaded(f"load({view}, {index}{checks})", type)))
        return found

    def part_of_variable(self, place: n.Place) -> list[str]:
        """The Python variables of a variable, or of a part of one that is always the same."""
        if isinstance(place, n.Variable):
            return [*self.emitter.parts(place)]
        if not isinstance(place, n.Member):
            raise UnsupportedOnTarget(
                "an array in a variable, of which an item is loaded, was not put into memory for "
                "NumPy", place.span,
            )  # fmt: skip
        start, count = leaf_range(place.base.type, place.name)
        return self.part_of_variable(place.base)[start : start + count]

    def choices(self, place: n.Place) -> list[tuple[list[str], list[str]]]:
        """The parts of a variable that a place may be, each with the conditions under which it is:
        items of arrays are chosen by numbers."""
        if isinstance(place, n.Variable):
            return [([*self.emitter.parts(place)], [])]
        assert isinstance(place, (n.Member, n.Item))
        bases = self.choices(place.base)
        if isinstance(place, n.Member):
            start, count = leaf_range(place.base.type, place.name)
            return [(parts[start : start + count], conditions) for parts, conditions in bases]
        index = self.emitter.temporary(self.one(place.index))
        checks = [
            self.emitter.temporary(f"inside({self.one(check.index)}, {self.one(check.bound)})")
            for check in place.checks
        ]
        count = len(leaves(place.type))
        return [
            (
                parts[at : at + count],
                [*conditions, *checks, f"({index} == {at // count})"],
            )
            for parts, conditions in bases
            for at in range(0, len(parts), count)
        ]

    def address(self, place: n.Place) -> Address:
        """Where a place lies in its memory."""
        checks: list[n.Check] = []
        terms, offset, memory = self._terms(place, checks)
        emitter = self.emitter
        texts = [
            emitter.once(f"inside({self.one(check.index)}, {self.one(check.bound)})")
            for check in checks
        ]
        ok = texts[0] if texts else ""
        for text in texts[1:]:
            ok = f"all_of({ok}, {text})"
        several = len(leaves(place.type)) > 1
        if several and ok:
            ok = emitter.once(ok)
        if several:
            terms = [(emitter.once(text), size) for text, size in terms]
        return Address(memory, tuple(terms), offset, ok)

    def _terms(
        self, place: n.Place, checks: list[n.Check]
    ) -> tuple[list[tuple[str, int]], int, str]:
        """The indices of a place with the bytes that each counts, bytes beside them, the memory."""
        match place:
            case n.Element():
                checks.extend(place.checks)
                size = size_of(place.type)
                if isinstance(place.index, n.Constant):
                    return [], int(place.index.value) * size, place.memory
                return [(self.one(place.index), size)], 0, place.memory
            case n.Member():
                terms, offset, memory = self._terms(place.base, checks)
                return terms, offset + member_offset(place.base.type, place.name), memory
            case n.Item():
                terms, offset, memory = self._terms(place.base, checks)
                checks.extend(place.checks)
                return [*terms, (self.one(place.index), size_of(place.type))], offset, memory
        raise TypeError(f"{place!r} is not in memory")

    def element(self, address: Address, offset: int, type: Scalar) -> tuple[str, str]:
        """A memory as an array of a type, and the index of the scalar at an offset."""
        size = size_of(type)
        view, start = self.memories.view(address.memory, type)
        sum = [
            text if bytes == size else f"times({text}, {bytes // size})"
            for text, bytes in address.terms
        ]
        if start:
            sum.append(start)
        constant = (address.offset + offset) // size
        if constant or not sum:
            sum.append(str(constant))
        return view, " + ".join(sum)


class Address:
    """A place in memory: indices with the bytes that each counts, bytes beside them, and the text
    of the checks."""

    __slots__ = ("checks", "memory", "offset", "terms")

    def __init__(
        self, memory: str, terms: tuple[tuple[str, int], ...], offset: int, checks: str
    ) -> None:
        self.memory, self.terms, self.offset, self.checks = memory, terms, offset, checks


_BOOL = n.TRUE.type


def function_name(name: str) -> str:
    """The Python name of a function of the kernel."""
    return "f_" + "".join(
        one if one.isascii() and one.isalnum() else f"_{ord(one):x}_" for one in name
    )


def _scalar(type: Type) -> Scalar:
    element = type.element if isinstance(type, Vector) else type
    assert isinstance(element, Scalar)
    return element


def leaf_range(type: Type, name: str) -> tuple[int, int]:
    """Where the scalars of a component or field begin among those of a value, and their number."""
    if isinstance(type, Vector):
        return COMPONENTS.index(name), 1
    assert isinstance(type, Struct)
    start = 0
    for field in type.fields:
        count = len(leaves(field.type))
        if field.name == name:
            return start, count
        start += count
    raise KeyError(name)


def member_offset(type: Type, name: str) -> int:
    """Bytes from the start of a value to its component or field."""
    if isinstance(type, Vector):
        return COMPONENTS.index(name) * size_of(type.element)
    assert isinstance(type, Struct)
    return field_offset(type, name)


def _operation(op: str, left: str, right: str, type: Scalar) -> str:
    sign = _SIGNS.get(op)
    if op == "div":
        sign = "/" if type.is_float else "//" if type.kind == "uint" else None
    if sign is not None:
        text = f"({left} {sign} {right})"
    else:
        text = f"{'quotient' if op == 'div' else 'fmod'}({left}, {right})"
    return f"round_bf16({text})" if type.name == "bf16" and op in _ROUNDED else text


def _called(op: str, operands: Sequence[str], type: Scalar) -> str:
    arguments = ", ".join(operands)
    if op == "fma":
        return f"fma_{type.name}({arguments})" if type.is_float else f"fma_int({arguments})"
    text = f"{op}({arguments})" if op not in ("min", "max", "abs") else f"{op}_({arguments})"
    narrow = type.is_float and (op.startswith("fast_") or op == "sqrt")
    return f"round_bf16({text})" if narrow and type.name == "bf16" else text


def cast(text: str, source: Scalar, target: Scalar) -> str:
    """A number as one of another type."""
    if source.name == target.name:
        return text
    if target.kind == "bool":
        return f"({text} != 0)"
    if target.is_integer and source.is_float:
        return f"truncate({text}, {target.name})"
    if target.name == "bf16":
        if source.is_float:
            return f"round_bf16({text})"
        return f"integer_to_bf16({text})"
    if source.name == "bf16" and target.name == "f32":
        return text
    return f"{text}.astype({target.name})"


def _bits(text: str, source: Scalar, target: Scalar) -> str:
    if source.name == target.name:
        return text
    if source.name == "bf16":
        text = f"bf16_bits({text})"
    elif source.kind == "bool":
        text = f"{text}.astype(u8)"
    if target.name == "bf16":
        return f"bf16_of({text}.view(u16))"
    if target.kind == "bool":
        return f"({text} != 0)"
    return f"{text}.view({target.name})"


def _loaded(text: str, type: Scalar) -> str:
    """An element of memory as a number to compute with."""
    if type.kind == "bool":
        return f"({text} != 0)"
    return f"bf16_of({text})" if type.name == "bf16" else text


def to_store(text: str, type: Scalar) -> str:
    """A number as an element of memory."""
    if type.kind == "bool":
        return f"{text}.astype(u8)"
    return f"bf16_bits({text})" if type.name == "bf16" else text


__all__ = ["Address", "Expressions", "Memories", "cast", "function_name", "register", "to_store"]
