"""Operations that a target lacks, replaced by calls of small functions written as IR.

`legalize(kernel, missing)` takes the names of what is missing:

    "floordiv" "mod"       flooring division, of integers and floats
    "float_floordiv" "float_mod"   the same of floats alone
    "div" "rem"            integer division that gives 0 for a divisor of 0
    "whole_words"          division of u32 in all 32 bits, whatever is known of the dividend
    "wide_div"             division of 64-bit integers, unless by a constant: word by word
    "half_div"             division of float16 to the last bit
    "f16_fma" "bf16_fma"   the fused product and sum of 16-bit floats, rounded once
    "float_rem"            the exact remainder of floats
    "shift"                shifts by amounts that may reach the width
    "float_to_int"         casts that saturate and turn NaN into 0
    "float_min_max"        minimum and maximum that give NaN for NaN
    "mul_high"             the upper half of a 32-bit product
    "wide_mul_high"        the upper half of a 64-bit product (of 8 and 16 bits: always replaced)
    "wide_bits"            popcount, clz, ctz, reverse_bits of 64 bits
    "narrow_bits"          the same of 8 and 16 bits
    "dot4"                 sums of products of the bytes of words
    "wide_order"           <, <=, > and >= of signed 64-bit integers: by unsigned ones

Where an operand is a constant that makes the plain operation safe, it stays plain. Legalizing
twice is the same as legalizing once: prelude functions are not changed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from treadle.codegen import prelude
from treadle.ir import nodes as n
from treadle.ir.passes.wide.functions import division_by_words
from treadle.ir.prelude_names import is_prelude, prelude_name
from treadle.ir.rules import BYTE_DOTS
from treadle.ir.traverse import rewrite_block
from treadle.ir.types import F16, F32, I32, I64, U32, U64, Scalar, Vector

MISSING = frozenset({
    "floordiv", "mod", "div", "rem", "whole_words", "wide_div",
    "half_div", "f16_fma", "bf16_fma", "float_rem", "float_floordiv", "float_mod",
    "shift", "float_to_int", "float_min_max",
    "mul_high", "wide_mul_high", "wide_bits", "narrow_bits", "wide_order", "dot4",
})  # fmt: skip

_ORDERS = ("lt", "le", "gt", "ge")
_BIT_COUNTS = ("popcount", "clz", "ctz")


def legalize(kernel: n.Kernel, missing: frozenset[str]) -> n.Kernel:
    """The kernel without the operations named in `missing`, and with the functions it now calls."""
    if unknown := missing - MISSING:
        raise ValueError(f"legalize knows no operation {sorted(unknown)}")
    rewriter = _Rewriter(missing, kernel.fastmath)
    body = rewriter.block(kernel.body)
    functions = tuple(
        function
        if is_prelude(function.name)
        else replace(function, body=rewriter.block(function.body))
        for function in kernel.functions
    )
    present = {function.name for function in functions}
    added = tuple(f for name, f in rewriter.needed.items() if name not in present)
    if not added and body is kernel.body and functions == kernel.functions:
        return kernel
    return replace(kernel, body=body, functions=(*added, *functions))


class _Rewriter:
    """Rewrites expressions and remembers which functions they now need, callees first."""

    def __init__(self, missing: frozenset[str], fastmath: bool) -> None:
        self.missing = missing
        self.fastmath = fastmath
        self.needed: dict[str, n.Function] = {}

    def block(self, block: n.Block) -> n.Block:
        return rewrite_block(block, self.change)

    def change(self, node: Any) -> Any:
        match node:
            case n.Binary():
                return self.binary(node)
            case n.Intrinsic():
                return self.intrinsic(node)
            case n.Cast():
                return self.cast(node)
        return node

    # --- one node each ---------------------------------------------------------------------------

    def binary(self, node: n.Binary) -> n.Expression:
        if node.op in ("floordiv", "mod", "div", "rem"):
            return self.division(node)
        if node.op in ("shl", "shr") and "shift" in self.missing:
            return self.shift(node)
        if node.op in _ORDERS and node.left.type == I64 and "wide_order" in self.missing:
            left, right = _sign_flipped(node.left), _sign_flipped(node.right)
            return n.Binary(node.op, left, right, node.type, node.span)
        return node

    def division(self, node: n.Binary) -> n.Expression:
        element = _element(node.type)
        if element.is_float:
            if isinstance(node.right, n.Constant) and node.right.value == 0 and node.op != "div":
                return _by_zero(node)
            if node.op == "div" and element == F16 and "half_div" in self.missing:
                return self.half_division(node)
            names = {f"float_{node.op}"} | ({node.op} & {"floordiv", "mod"})
            return self.float_call(node, node.op) if names & self.missing else node
        wide = "wide_div" in self.missing and element.bits == 64 and not _is_nonzero(node.right)
        if node.op in ("floordiv", "mod") and node.op in self.missing:
            if element.is_signed and not wide:
                return _by_power_of_two(node) or self.call(node.op, node, node.left, node.right)
            if not element.is_signed:
                node = replace(node, op={"floordiv": "div", "mod": "rem"}[node.op])
        if wide:
            return self.by_words(node, element)
        if node.op not in self.missing or node.op not in ("div", "rem"):
            return node
        if _is_nonzero(node.right) and not (node.op == "rem" and element.is_signed):
            return node
        op = f"{node.op}_words" if element == U32 and "whole_words" in self.missing else node.op
        return self.call(op, node, node.left, node.right)

    def by_words(self, node: n.Binary, element: Scalar) -> n.Expression:
        for function in division_by_words(node.op, element):
            self.needed.setdefault(function.name, function)
        return self.call(f"{node.op}_words", node, node.left, node.right)

    def half_division(self, node: n.Binary) -> n.Expression:
        """By way of float32, whose quotient rounds to the right float16."""
        wide = _like(node.type, F32)
        left, right = (n.Cast(operand, wide, node.span) for operand in (node.left, node.right))
        return n.Cast(n.Binary("div", left, right, wide, node.span), node.type, node.span)

    def shift(self, node: n.Binary) -> n.Expression:
        width = _element(node.type).bits
        if isinstance(node.right, n.Constant):
            if 0 <= node.right.value < width:
                return node
            if node.op == "shl" or not _element(node.type).is_signed:
                return n.Constant(0, _element(node.type), node.span)
            return replace(node, right=replace(node.right, value=width - 1))
        return self.call(node.op, node, node.left, node.right)

    def intrinsic(self, node: n.Intrinsic) -> n.Expression:
        if node.op in ("min", "max"):
            exact = "float_min_max" in self.missing and not self.fastmath
            return self.call(node.op, node, *node.operands) if (
                exact and _element(node.type).is_float
            ) else node  # fmt: skip
        if node.op == "fma" and not self.fastmath:
            return self.half_fma(node)
        if node.op == "mul_high":
            return self.mul_high(node)
        if node.op in BYTE_DOTS:
            return self.call(node.op, node, *node.operands) if "dot4" in self.missing else node
        if node.op in (*_BIT_COUNTS, "reverse_bits"):
            return self.bits(node)
        return node

    def half_fma(self, node: n.Intrinsic) -> n.Expression:
        """By way of float32, where the product is exact and the sum is rounded to odd, so that
        rounding it once more is right."""
        if f"{_element(node.type).name}_fma" not in self.missing:
            return node
        single = _like(node.type, F32)
        wide = tuple(n.Cast(operand, single, node.span) for operand in node.operands)
        self.need("odd_fma", F32)
        if isinstance(single, Vector):
            function = prelude.vector_operation("odd_fma", single)
            self.needed.setdefault(function.name, function)
        sum = n.Call(prelude_name("odd_fma", single), wide, single, node.span)
        return n.Cast(sum, node.type, node.span)

    def mul_high(self, node: n.Intrinsic) -> n.Expression:
        element = _element(node.type)
        if element.bits < 32:
            wide = _like(node.type, I32 if element.is_signed else U32)
            left, right = (n.Cast(operand, wide, node.span) for operand in node.operands)
            product = n.Binary("mul", left, right, wide, node.span)
            high = n.Binary("shr", product, _number(element.bits, wide), wide, node.span)
            return n.Cast(high, node.type, node.span)
        if ("wide_mul_high" if element.bits == 64 else "mul_high") in self.missing:
            return self.call("mul_high", node, *node.operands)
        return node

    def bits(self, node: n.Intrinsic) -> n.Expression:
        operand = node.operands[0]
        element = _element(operand.type)
        if element.bits == 64 and "wide_bits" in self.missing:
            return self.call(node.op, node, operand)
        if element.bits >= 32 or "narrow_bits" not in self.missing:
            return node
        if element.is_signed:
            unsigned = Scalar(f"u{element.bits}", "uint", element.bits)
            operand = n.Bitcast(operand, _like(operand.type, unsigned), node.span)
        wide = _like(operand.type, U32)
        word = n.Cast(operand, wide, node.span)
        spare = 32 - element.bits
        if node.op == "reverse_bits":
            turned = n.Intrinsic("reverse_bits", (word,), wide, node.span)
            low = n.Binary("shr", turned, _number(spare, wide), wide, node.span)
            return n.Cast(low, node.type, node.span)
        count = n.Intrinsic(node.op, (word,), I32, node.span)
        if node.op == "clz":
            return n.Binary("sub", count, _number(spare, I32), I32, node.span)
        if node.op == "ctz":
            return n.Intrinsic("min", (count, _number(element.bits, I32)), I32, node.span)
        return count

    def cast(self, node: n.Cast) -> n.Expression:
        source, target = _element(node.operand.type), _element(node.type)
        if not (source.is_float and target.is_integer) or "float_to_int" not in self.missing:
            return node
        operand = node.operand
        if source.bits == 16:  # exact in float32, whose bounds are exact too
            operand = n.Cast(operand, _like(operand.type, F32), node.span)
            source = F32
        function = prelude.float_to_integer(source, target)
        self.needed.setdefault(function.name, function)
        if isinstance(node.type, Vector) and isinstance(operand.type, Vector):
            function = prelude.vector_float_to_integer(operand.type, node.type)
            self.needed.setdefault(function.name, function)
        return n.Call(function.name, (operand,), node.type, node.span)

    # --- calls -----------------------------------------------------------------------------------

    def float_call(self, node: n.Binary, op: str) -> n.Expression:
        """A call on floats; 16-bit floats go through float32, whose result rounds to theirs."""
        if _element(node.type).bits != 16:
            return self.call(op, node, node.left, node.right)
        wide = _like(node.type, F32)
        left, right = (n.Cast(operand, wide, node.span) for operand in (node.left, node.right))
        widened = n.Binary(op, left, right, wide, node.span)
        return n.Cast(self.call(op, widened, left, right), node.type, node.span)

    def call(self, op: str, node: n.Expression, *operands: n.Expression) -> n.Call:
        operand_type = operands[0].type
        element = _element(operand_type)
        if prelude_name(op, element) not in self.needed:
            self.need(op, element)
        if isinstance(operand_type, Vector):
            function = prelude.vector_operation(op, operand_type)
            self.needed.setdefault(function.name, function)
        name = prelude_name(op, operand_type)
        return n.Call(name, operands, node.type, node.span)

    def need(self, op: str, element: Scalar) -> None:
        """Remember a function, after those that it calls (`rem`, for floats)."""
        if element.is_float and op in ("mod", "floordiv"):
            self.need("rem", element)
        function = prelude.operation(op, element)
        self.needed.setdefault(function.name, function)


def _sign_flipped(value: n.Expression) -> n.Expression:
    """A signed 64-bit integer as an unsigned one in the same order."""
    sign = 1 << 63
    if isinstance(value, n.Constant):
        return n.Constant(int(value.value) % (1 << 64) ^ sign, U64, value.span)
    bits = n.Cast(value, U64, value.span)
    return n.Binary("xor", bits, n.Constant(sign, U64, value.span), U64, value.span)


def _by_zero(node: n.Binary) -> n.Expression:
    """A flooring division or remainder of floats by a constant 0: infinite, and no number."""
    if node.op == "floordiv":
        return replace(node, op="div")
    assert isinstance(node.type, Scalar)
    return n.Constant(math.nan, node.type, node.span)


def _element(type: Any) -> Scalar:
    element = type.element if isinstance(type, Vector) else type
    assert isinstance(element, Scalar)
    return element


def _like(type: Any, element: Scalar) -> Scalar | Vector:
    """`type` with another element."""
    return Vector(element, type.count) if isinstance(type, Vector) else element


def _number(value: int, type: Scalar | Vector) -> n.Expression:
    """An integer in every component of a type."""
    if isinstance(type, Vector):
        return n.Construct((n.Constant(value, type.element),) * type.count, type)
    return n.Constant(value, type)


def _is_nonzero(divisor: n.Expression) -> bool:
    """Whether a divisor is a constant other than 0, in each of its components."""
    if isinstance(divisor, n.Construct):
        return all(_is_nonzero(operand) for operand in divisor.operands)
    return isinstance(divisor, n.Constant) and divisor.value != 0


def _by_power_of_two(node: n.Binary) -> n.Expression | None:
    """Flooring division by a power of two: a shift, or a mask for its remainder."""
    divisor = node.right
    if not isinstance(divisor, n.Constant) or not isinstance(node.type, Scalar):
        return None
    value = int(divisor.value)
    if value <= 0 or value & (value - 1):
        return None
    if node.op == "mod":
        return replace(node, op="and", right=replace(divisor, value=value - 1))
    return replace(node, op="shr", right=replace(divisor, value=value.bit_length() - 1))
