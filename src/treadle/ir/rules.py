"""What type an expression has, given its parts: one table for builder, parser and verifier."""

from __future__ import annotations

from treadle.ir import nodes as n
from treadle.ir.types import BOOL, I32, U32, Type, Vector

# The question is answered, and the functions are called, only where a target says that it has them
# (`codegen.target.TargetRecord.has_near_functions`).
NEAR = frozenset({"has_near_functions", "near_exp2", "near_reciprocal"})
TESTS = frozenset({"isnan", "isinf", "isfinite", "signbit", "has_near_functions"})
COUNTS = frozenset({"popcount", "clz", "ctz"})
BYTE_DOTS = frozenset({"dot4_i8", "dot4_u8", "dot4_u8i8"})  # of I32, the bytes of words
INTEGER_INTRINSICS = COUNTS | {"reverse_bits", "mul_high"}
NUMBER_INTRINSICS = frozenset({"abs", "min", "max", "dot"})  # the others take floats
LANES = frozenset({"ballot", "active", "match_any", "match_all"})  # subgroup operations
BOOL_RESULTS = frozenset(n.COMPARISONS + n.LOGICAL)


def binary_type(op: str, operand: Type) -> Type:
    """The type of a binary operation on two operands of type `operand`."""
    return BOOL if op in BOOL_RESULTS else operand


def intrinsic_type(op: str, operand: Type) -> Type:
    """The type of an intrinsic whose operands have type `operand`."""
    if op in TESTS:
        return BOOL
    if op in COUNTS:
        return I32
    if op == "dot" and isinstance(operand, Vector):
        return operand.element
    return operand


def subgroup_type(op: str, operand: Type) -> Type:
    """The type of a subgroup operation's result; `operand` is its first, or its last if it is one
    on matrices."""
    if op in LANES:
        return U32
    return BOOL if op in ("vote_all", "vote_any") else operand


def element_of(type: Type) -> Type:
    """A vector's element; any other type itself."""
    return type.element if isinstance(type, Vector) else type
