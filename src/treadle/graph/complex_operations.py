"""The elementwise operations on complex numbers: pairs in IR, or functions over pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType

from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import F32, Type, Vector


def _same(x: n.Expression, y: n.Expression) -> n.Expression:
    parts = [ir.binary("eq", ir.extract(x, c), ir.extract(y, c)) for c in "xy"]
    return ir.binary("and", *parts)


def _differs(x: n.Expression, y: n.Expression) -> n.Expression:
    parts = [ir.binary("ne", ir.extract(x, c), ir.extract(y, c)) for c in "xy"]
    return ir.binary("or", *parts)


def _rounded(z: n.Expression) -> n.Expression:
    return n.Construct(tuple(ir.intrinsic("rint", ir.extract(z, c)) for c in "xy"), z.type)


def _conjugate(z: n.Expression) -> n.Expression:
    imaginary = ir.extract(z, "y")
    return n.Construct((ir.extract(z, "x"), n.Unary("neg", imaginary, imaginary.type)), z.type)


COMPLEX_DIRECT: dict[str, Callable[..., n.Expression]] = {
    "add": lambda x, y: n.Binary("add", x, y, x.type),
    "subtract": lambda x, y: n.Binary("sub", x, y, x.type),
    "negative": lambda z: n.Unary("neg", z, z.type),
    "real": lambda z: ir.extract(z, "x"),
    "imag": lambda z: ir.extract(z, "y"),
    "conj": _conjugate,
    "round": _rounded,
    "equal": _same,
    "not_equal": _differs,
    "where": lambda condition, x, y: n.Select(condition, x, y, x.type),
}

_NAMES = {"multiply": "mul", "divide": "div"}  # where the table's name is another


def complex_definition(op: str, types: Sequence[Type]) -> FunctionType:
    """The function of the kernel language that computes an operation on pairs."""
    from treadle.lang.math.complex import COMPLEX  # when needed, as all mathematics

    pair = types[0]
    assert isinstance(pair, Vector)
    return COMPLEX[f"{_NAMES.get(op, op)}_{'c64' if pair.element == F32 else 'c128'}"]
