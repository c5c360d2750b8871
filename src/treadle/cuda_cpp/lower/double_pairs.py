"""Kernels whose doubles become pairs of float32: `cuda_module(…, double="pair")`.

The front end lowers a kernel as usual, in float64. Then each operation on doubles becomes a call of
a function on pairs (`lang.math.pair_arithmetic`), each constant a pair, and each function of the
library one that is made for pairs (`lang.math.pair_functions`).

Those functions need sums and products that are rounded as they are written. Compilers of WGSL may
rearrange them, others may fuse them. So each result is combined with a zero that no compiler knows,
which is made of what an array holds (`_zero_of`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.builtins.doubles import AS_BITS, FROM_BITS
from treadle.cuda_cpp.lower.pair_types import PAIR, holds_double, paired
from treadle.ir import nodes as n
from treadle.ir.arithmetic import round_float
from treadle.ir.traverse import map_children, rewrite_block, root_of, walk
from treadle.ir.types import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
)  # fmt: skip
from treadle.lang.lower.standalone import lower_function
from treadle.lang.math import pair_arithmetic, pair_functions
from treadle.lang.source import resolve_annotations, source_of
from treadle.lang.types import ir_type

_ZERO = n.Variable("pair.zero", U32)  # in kernels a variable, in functions their last parameter
_PREFIX = "pair."

# Operations on doubles, by the functions that take their places.
_BINARY = frozenset({"add", "sub", "mul", "div", "rem", *n.COMPARISONS})
_INTRINSICS = {
    "abs": "abs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "rint": "rint", "fma": "fma", "min": "minimum", "max": "maximum", "isnan": "isnan",
    "isinf": "isinf", "isfinite": "isfinite", "signbit": "signbit",
}  # fmt: skip
_ATOMICS = {"add": "add", "sub": "sub", "min": "minimum", "max": "maximum", "exchange": None}
# Functions whose recurrences leave float's range.
_OUT_OF_RANGE = frozenset({"jn_f64", "yn_f64"})
# Functions of the library that see the bits of a double, and those that do it for pairs.
_OF_BITS = {
    "ldexp_f64": "ldexp", "ilogb_f64": "ilogb", "logb_f64": "logb", "head_f64": "head",
    "frexp_exponent_f64": "frexp_exponent", "frexp_fraction_f64": "frexp_fraction",
    "power_of_two_f64": "power_of_two", "with_sign_of_f64": "copysign",
    "flip_sign_by_f64": "flipped", "copysign_f64": "copysign",
}  # fmt: skip


def with_pairs(
    kernel: n.Kernel,
    sizes: Mapping[str, n.Parameter],
    error: Callable[[str, Span], Exception],
) -> n.Kernel:
    """The kernel without doubles; `error` makes the error for what pairs do not have. `sizes` are
    the parameters of the kernel for the sizes of arrays, by their buffers."""
    try:
        return _Pairs(kernel).kernel(sizes)
    except _Refused as refused:
        raise error(refused.message, refused.span) from None


class _Refused(Exception):
    def __init__(self, message: str, span: Span) -> None:
        self.message = message
        self.span = span


def _refused(what: str, span: Span) -> _Refused:
    return _Refused(
        f'{what} of a double that is a pair of floats (double="pair"): load the file with '
        'double="float", or use a device that has float64',
        span,
    )


# --- the library ---------------------------------------------------------------------------------


@cache
def _definitions(module: ModuleType) -> Mapping[str, FunctionType]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }


@cache
def _lowered(module: ModuleType, name: str) -> tuple[n.Function, ...]:
    """A function of the library in IR, its callees first, with names that no file has."""
    definition = _definitions(module)[name]
    annotations = resolve_annotations(definition)
    annotations.pop("return", None)
    types = [ir_type(annotation) for annotation in annotations.values()]
    functions = lower_function(definition, source_of(definition), types)
    own = _definitions(module)
    names = {one.name: f"{_PREFIX}{one.name}" for one in functions if one.name.split(".")[0] in own}

    def renamed(node: Any) -> Any:
        if isinstance(node, n.Call) and node.function in names:
            return replace(node, function=names[node.function])
        return node

    return tuple(
        replace(one, name=names.get(one.name, one.name), body=rewrite_block(one.body, renamed))
        for one in functions
    )


_HELD = frozenset({"add", "sub", "mul", "div"})
_HOLD = f"{_PREFIX}held"


def _held(node: Any) -> Any:
    """A result that is rounded by itself."""
    operation = isinstance(node, n.Binary) and node.op in _HELD
    root = isinstance(node, n.Intrinsic) and node.op == "sqrt"
    if (operation or root) and node.type == F32:
        return n.Call(_HOLD, (node,), F32)
    return node


def _hold() -> n.Function:
    """A number combined with the zero, so that compilers take it as it is."""
    x = n.Variable("x", F32)
    bits = n.Binary("xor", n.Bitcast(x, U32), _ZERO, U32)
    return n.Function(_HOLD, (x, _ZERO), F32, (n.Return(n.Bitcast(bits, F32)),))


# --- kernels -------------------------------------------------------------------------------------


class _Pairs:
    """The rewriting of one kernel."""

    def __init__(self, kernel: n.Kernel) -> None:
        self._kernel = kernel
        self._given = {one.name: one for one in kernel.functions}
        self._made: dict[str, n.Function] = {}  # callees first
        self._parameters = {one.name for one in kernel.parameters if one.type == F64}
        self._count = 0

    def kernel(self, sizes: Mapping[str, n.Parameter]) -> n.Kernel:
        kernel = self._kernel
        if not _uses_doubles(kernel):
            return kernel
        body = self.block(kernel.body)
        buffers = tuple(replace(one, element=paired(one.element)) for one in kernel.buffers)
        memories = tuple(replace(one, element=paired(one.element)) for one in kernel.memories)
        known = {one.name for one in kernel.parameters}
        kernel = replace(kernel, buffers=buffers)
        size, zero = _zero_of(kernel, sizes)
        more = () if size is None or size.name in known else (size,)
        return replace(
            kernel,
            memories=memories,
            parameters=(*(part for one in kernel.parameters for part in _halves(one)), *more),
            body=(*zero, *body),
            functions=tuple(self._made.values()),
        )

    # --- functions ---

    def called(self, name: str, span: Span) -> tuple[str, bool]:
        """The function that is called in the place of one, and whether it takes the zero."""
        plain = name.removesuffix("_f64")
        if name in _OF_BITS:
            return self.arithmetic(_OF_BITS[name]), True
        if plain != name and plain in pair_functions.RELATIVE_BOUNDS:
            return self.library(pair_functions, plain, span), True
        if name in _OUT_OF_RANGE:
            raise _refused(f"there is no {plain}", span)
        given = self._given[name]
        takes_zero = _is_of_doubles(given)
        if name not in self._made:
            if takes_zero:
                try:
                    made = self.function(given, span)
                except _Refused:
                    if plain == name or name.startswith(_PREFIX):
                        raise
                    raise _refused(f"there is no {plain}", span) from None
            else:
                for node in walk(given.body):
                    if isinstance(node, n.Call):
                        self.called(node.function, span)
                made = given
            self._made[name] = made
        return name, takes_zero

    def arithmetic(self, name: str) -> str:
        """A function of pairs."""
        full = f"{_PREFIX}{name}"
        self._made.setdefault(_HOLD, _hold())
        if full not in self._made:
            for one in _lowered(pair_arithmetic, name):
                if one.name in self._made:
                    continue
                if one.name.startswith(_PREFIX):
                    body = rewrite_block(one.body, lambda node: _with_last(_held(node)))
                    one = replace(one, parameters=(*one.parameters, _ZERO), body=body)
                self._made[one.name] = one
        return full

    def library(self, module: ModuleType, name: str, span: Span) -> str:
        """A function that is written for float64."""
        full = f"{_PREFIX}{name}"
        if full not in self._made:
            functions = _lowered(module, name)
            self._given |= {one.name: one for one in functions}
            for one in functions:
                self.called(one.name, span)
        return full

    def function(self, given: n.Function, span: Span) -> n.Function:
        outer, self._parameters = self._parameters, set()
        try:
            parameters = tuple(
                replace(one, type=paired(one.type))
                if isinstance(one, n.Variable)
                else replace(one, element=paired(one.element))
                for one in given.parameters
            )
            return replace(
                given,
                parameters=(*parameters, _ZERO),
                result=paired(given.result),
                body=self.block(given.body),
                memories=tuple(replace(one, element=paired(one.element)) for one in given.memories),
            )
        except _Refused as error:
            raise error if error.span.line else _Refused(error.message, span) from None
        finally:
            self._parameters = outer

    def call(self, name: str, type: Type, *operands: Any, span: Span) -> n.Expression:
        return n.Call(self.arithmetic(name), (*operands, _ZERO), type, span)

    # --- statements ---

    def block(self, block: n.Block) -> n.Block:
        found: list[n.Statement] = []
        for statement in block:
            try:
                found += self.statement(statement)
            except _Refused as error:
                if error.span.line:
                    raise
                raise _Refused(error.message, statement.span) from None
        return tuple(found)

    def statement(self, node: n.Statement) -> n.Block:
        match node:
            case n.If():
                return (
                    replace(
                        node,
                        condition=self.value(node.condition),
                        then=self.block(node.then),
                        otherwise=self.block(node.otherwise),
                    ),
                )
            case n.While():
                return (
                    replace(
                        node,
                        condition=self.value(node.condition),
                        body=self.block(node.body),
                        update=self.block(node.update),
                    ),
                )
            case n.For():
                return (
                    replace(
                        node,
                        start=self.value(node.start),
                        stop=self.value(node.stop),
                        by=None if node.by is None else self.value(node.by),
                        body=self.block(node.body),
                    ),
                )
            case n.Atomic() if holds_double(node.place.type):
                return self.atomic(node)
            case n.Subgroup() if node.result.type == F64:
                return self.shuffle(node)
            case n.CallStatement():
                name, takes_zero = self.called(node.function, node.span)
                changed = map_children(node, self.value)
                assert isinstance(changed, n.CallStatement)
                more = (_ZERO,) if takes_zero else ()
                return (replace(changed, function=name, arguments=(*changed.arguments, *more)),)
        return (map_children(node, self.value),)

    def shuffle(self, node: n.Subgroup) -> n.Block:
        """A shuffle of both parts, one after the other."""
        if not node.op.startswith("shuffle"):
            raise _refused(f"there is no {node.op}", node.span)
        self._count += 1
        span = node.span
        sent = n.Variable(f"pair.sent.{self._count}", PAIR, span)
        found: list[n.Statement] = [n.Declare(sent, self.value(node.operands[0]), span)]
        parts: list[n.Expression] = []
        others = tuple(self.value(one) for one in node.operands[1:])
        mask = None if node.mask is None else self.value(node.mask)
        for axis in ("x", "y"):
            part = n.Variable(f"pair.{axis}.{self._count}", F32, span)
            operands = (n.Extract(sent, axis, F32, span), *others)
            found += [
                n.Declare(part, None, span),
                replace(node, operands=operands, result=part, mask=mask),
            ]
            parts.append(part)
        found.append(n.Assign(self.value(node.result), n.Construct(tuple(parts), PAIR), span))
        return tuple(found)

    def atomic(self, node: n.Atomic) -> n.Block:
        """An atomic as a loop that exchanges all 64 bits, for devices that have those."""
        place = self.value(node.place)
        if not isinstance(place, n.Element) or node.op not in _ATOMICS:
            raise _refused(f"there is no atomic {node.op}", node.span)
        self._count += 1
        span = node.span
        place = replace(place, type=U64)
        seen, got, change = (
            n.Variable(f"pair.{name}.{self._count}", type, span)
            for name, type in (("seen", U64), ("got", U64), ("change", PAIR))
        )
        again = n.Variable(f"pair.again.{self._count}", BOOL, span)
        old = self.call("from_bits", PAIR, seen, span=span)
        name = _ATOMICS[node.op]
        new = change if name is None else self.call(name, PAIR, old, change, span=span)
        bits = self.call("as_bits", U64, new, span=span)
        body = (
            n.Atomic("cas", place, (seen, bits), got, span),
            n.Assign(again, n.Binary("ne", got, seen, BOOL, span), span),
            n.Assign(seen, got, span),
        )
        found: list[n.Statement] = [
            n.Declare(change, self.value(node.operands[0]), span),
            n.Declare(seen, None, span),
            n.Declare(got, None, span),
            n.Declare(again, n.TRUE, span),
            # Read as the exchange reads it: 0 for 0 changes nothing.
            n.Atomic("cas", place, (n.Constant(0, U64), n.Constant(0, U64)), seen, span),
            n.While(again, body, (), span),
        ]
        if node.result is not None:
            found.append(n.Assign(self.value(node.result), old, span))
        return tuple(found)

    # --- expressions, places and checks ---

    def value(self, node: Any) -> Any:
        rule = _RULES.get(type(node))
        if rule is not None:
            return rule(self, node)
        changed = map_children(node, self.value)
        if isinstance(getattr(changed, "type", None), _TYPES) and holds_double(changed.type):
            return replace(changed, type=paired(changed.type))
        return changed

    def constant(self, node: n.Constant) -> n.Expression:
        if node.type != F64:
            return node
        high = round_float(float(node.value), F32)
        low = round_float(float(node.value) - high, F32) if math.isfinite(high) else 0.0
        parts = (n.Constant(high, F32, node.span), n.Constant(low, F32, node.span))
        return n.Construct(parts, PAIR, node.span)

    def variable(self, node: n.Variable) -> n.Expression:
        if node.name in self._parameters:
            parts = tuple(n.Variable(f"{node.name}.{axis}", F32, node.span) for axis in "xy")
            return n.Construct(parts, PAIR, node.span)
        return replace(node, type=paired(node.type))

    def unary(self, node: n.Unary) -> n.Expression:
        operand = self.value(node.operand)
        if node.type == F64:
            return self.call("neg", PAIR, operand, span=node.span)
        return replace(node, operand=operand)

    def binary(self, node: n.Binary) -> n.Expression:
        left, right = self.value(node.left), self.value(node.right)
        if node.left.type != F64:
            if holds_double(node.left.type):
                raise _refused(f"there is no {node.op} of vectors", node.span)
            return replace(node, left=left, right=right)
        if node.op not in _BINARY:
            raise _refused(f"there is no {node.op}", node.span)
        type = BOOL if node.op in n.COMPARISONS else PAIR
        return self.call(node.op, type, left, right, span=node.span)

    def intrinsic(self, node: n.Intrinsic) -> n.Expression:
        operands = tuple(self.value(one) for one in node.operands)
        if node.operands[0].type != F64:
            return replace(node, operands=operands)
        if node.op == "has_near_functions":
            return n.FALSE
        name = _INTRINSICS.get(node.op)
        if name is None:
            raise _refused(f"there is no {node.op}", node.span)
        return self.call(name, paired(node.type), *operands, span=node.span)

    def cast(self, node: n.Cast) -> n.Expression:
        given, wanted = node.operand.type, node.type
        operand = self.value(node.operand)
        if F64 not in (given, wanted):
            return replace(node, operand=operand)
        assert isinstance(given, Scalar)
        assert isinstance(wanted, Scalar)
        if given == wanted:
            return operand  # type: ignore[no-any-return]
        if wanted == F64:
            if given == BOOL:
                given, operand = U32, n.Cast(operand, U32, node.span)
            work = _WORK[given.kind, max(given.bits, 32)]
            if given != work:
                operand = n.Cast(operand, work, node.span)
            return self.call(f"from_{work}", PAIR, operand, span=node.span)
        if wanted == BOOL:
            zero = self.constant(n.Constant(0.0, F64, node.span))
            return self.call("ne", BOOL, operand, zero, span=node.span)
        work = _WORK[wanted.kind, max(wanted.bits, 32)]
        found = self.call(f"to_{work}", work, operand, span=node.span)
        if wanted == work:
            return found
        if wanted.is_integer:  # a cast saturates
            low, high = _range(wanted)
            least, most = n.Constant(low, work), n.Constant(high, work)
            found = n.Intrinsic("max", (found, least), work, node.span)
            found = n.Intrinsic("min", (found, most), work, node.span)
        return n.Cast(found, wanted, node.span)

    def bitcast(self, node: n.Bitcast) -> n.Expression:
        if F64 in (node.type, node.operand.type) and node.type != node.operand.type:
            raise _refused("there are no bits", node.span)
        return replace(node, operand=self.value(node.operand), type=paired(node.type))

    def called_value(self, node: n.Call) -> n.Expression:
        arguments = tuple(self.value(one) for one in node.arguments)
        if node.function == AS_BITS:
            return self.call("as_bits", U64, *arguments, span=node.span)
        if node.function == FROM_BITS:
            return self.call("from_bits", PAIR, *arguments, span=node.span)
        name, takes_zero = self.called(node.function, node.span)
        more = (_ZERO,) if takes_zero else ()
        return replace(node, function=name, arguments=(*arguments, *more), type=paired(node.type))

    def construct(self, node: n.Construct) -> n.Expression:
        type = paired(node.type)
        operands = [self.value(one) for one in node.operands]
        if isinstance(type, Struct) and isinstance(node.type, Struct):
            given = iter(operands)
            names = {field.name for field in node.type.fields}
            operands = [
                next(given) if field.name in names else n.Constant(0, U32) for field in type.fields
            ]
        return replace(node, operands=tuple(operands), type=type)


def _with_last(node: Any) -> Any:
    """A call among functions of pairs, with the zero as its last argument."""
    if isinstance(node, n.Call) and node.function.startswith(_PREFIX):
        return replace(node, arguments=(*node.arguments, _ZERO))
    return node


def _range(type: Scalar) -> tuple[int, int]:
    bits = type.bits - type.is_signed
    return (-(1 << bits) if type.is_signed else 0), (1 << bits) - 1


_WORK: dict[tuple[str, int], Scalar] = {
    ("int", 32): I32, ("uint", 32): U32, ("int", 64): I64, ("uint", 64): U64, ("float", 32): F32,
}  # fmt: skip
_TYPES = (Scalar, Vector, Struct, Array)
_RULES: dict[type, Callable[[_Pairs, Any], Any]] = {
    n.Constant: _Pairs.constant,
    n.Variable: _Pairs.variable,
    n.Unary: _Pairs.unary,
    n.Binary: _Pairs.binary,
    n.Intrinsic: _Pairs.intrinsic,
    n.Cast: _Pairs.cast,
    n.Bitcast: _Pairs.bitcast,
    n.Call: _Pairs.called_value,
    n.Construct: _Pairs.construct,
}


def _uses_doubles(kernel: n.Kernel) -> bool:
    elements = [*(b.element for b in kernel.buffers), *(m.element for m in kernel.memories)]
    return (
        any(map(holds_double, elements))
        or any(one.type == F64 for one in kernel.parameters)
        or _mentions_doubles(kernel.body)
        or any(map(_is_of_doubles, kernel.functions))
    )


def _mentions_doubles(block: Iterable[Any]) -> bool:
    return any(
        isinstance(type := getattr(node, "type", None), _TYPES) and holds_double(type)
        for node in walk(tuple(block))
    )


def _is_of_doubles(function: n.Function) -> bool:
    """Whether doubles are in a function, or in its callees, which it calls with them."""
    types = [
        one.type if isinstance(one, n.Variable) else one.element for one in function.parameters
    ]
    return (
        any(map(holds_double, (*types, function.result)))
        or any(holds_double(memory.element) for memory in function.memories)
        or _mentions_doubles(function.body)
    )


def _halves(parameter: n.Parameter) -> tuple[n.Parameter, ...]:
    """A parameter of the kernel, or both parts of a double: the launch has a vector for it."""
    if parameter.type != F64:
        return (parameter,)
    kind, *path = parameter.origin
    assert kind in ("value", "leaf")
    return tuple(
        replace(parameter, name=f"{parameter.name}.{axis}", type=F32, origin=("leaf", *path, axis))
        for axis in ("x", "y")
    )


def _zero_of(
    kernel: n.Kernel, sizes: Mapping[str, n.Parameter]
) -> tuple[n.Parameter | None, n.Block]:
    """A zero that no compiler knows, and the parameter that it needs: of the bits of an array's
    first element. No square ends in the bits 11 before its last two.

    (A driver may compile a kernel again for the values of parameters, and find one of those.)
    """
    written = {
        root.memory
        for node in walk(kernel.body)
        if isinstance(node, (n.Assign, n.Atomic))
        and isinstance(root := root_of(node.place), n.Element)
    }
    buffers = sorted(
        kernel.buffers,
        key=lambda one: (not _begins_with_word(one.element), one.name in written),
    )
    if not buffers:
        return None, (n.Declare(_ZERO, n.Constant(0, U32)),)
    buffer = buffers[0]
    size = sizes.get(buffer.name)  # without, it has a first element
    start = n.Constant(0, I32 if size is None else size.type)
    checks = () if size is None else (n.Check(start, n.Variable(size.name, size.type)),)
    type = buffer.element if _begins_with_word(buffer.element) else U32
    value: n.Expression = n.Load(n.Element(buffer.name, start, type, checks), type)
    if isinstance(type, Vector):
        value = n.Extract(value, "x", type.element)
    word, square = n.Variable("pair.word", U32), n.Variable("pair.square", U32)
    third, fourth = (n.Binary("shr", square, n.Constant(k, U32), U32) for k in (2, 3))
    both = n.Binary("and", third, fourth, U32)
    return size, (
        n.Declare(word, value if value.type == U32 else n.Bitcast(value, U32)),
        n.Declare(square, n.Binary("mul", word, word, U32)),
        n.Declare(_ZERO, n.Binary("and", both, n.Constant(1, U32), U32)),
    )


def _begins_with_word(type: Type) -> bool:
    """Whether an element begins with a number of 32 bits that is loaded with the whole of it."""
    number = type.element if isinstance(type, Vector) else type
    return number in (F32, I32, U32)
