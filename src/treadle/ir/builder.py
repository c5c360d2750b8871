"""Making kernels in Python: expressions that type themselves, and blocks by `with`.

    >>> from treadle.ir.printer import to_text
    >>> b = Builder("scale", block=64)
    >>> x, n = b.buffer("x", F32), b.parameter("n", I32, "size", "x")
    >>> i = b.let("i", global_index(0))
    >>> with b.when(less(i, n)):
    ...     b.store(x, i, mul(load(x, i), 2.0))
    >>> print(to_text(b.kernel()), end="")
    kernel scale block(64, 1, 1) {
      buffer x: f32
      parameter n: i32 from ("size", "x")
    <BLANKLINE>
      var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
      if (i < n) {
        x[i] = x[i] * 2.0
      }
    }

Python numbers become constants of the other operand's type. Nothing is checked here: `verify` is
for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeAlias

from treadle.core.dim3 import Dim3
from treadle.core.source import NOWHERE, Span
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir.rules import binary_type, intrinsic_type
from treadle.ir.types import BOOL, F32, I32, Array, Scalar, Type, Vector, member_type

Operand: TypeAlias = n.Expression | bool | int | float
MemoryLike: TypeAlias = n.Buffer | n.Memory

# --- expressions ---------------------------------------------------------------------------------


def constant(value: bool | int | float, type: Scalar) -> n.Constant:
    """A number as a constant of `type`, rounded or wrapped to it."""
    if type.is_float:
        return n.Constant(arithmetic.round_float(float(value), type), type)
    return n.Constant(bool(value) if type == BOOL else arithmetic.wrap(int(value), type), type)


def as_expression(operand: Operand, type: Type | None = None) -> n.Expression:
    """An operand as an expression: numbers take `type`, or else bool, i32 or f32."""
    if not isinstance(operand, (bool, int, float)):
        return operand
    if isinstance(type, Vector):
        return splat(constant(operand, type.element), type)
    if not isinstance(type, Scalar):
        type = BOOL if isinstance(operand, bool) else I32 if isinstance(operand, int) else F32
    return constant(operand, type)


def splat(value: n.Expression, type: Vector) -> n.Expression:
    """A vector with one value in every component."""
    return n.Construct((value,) * type.count, type)


def binary(op: str, left: Operand, right: Operand) -> n.Binary:
    """A binary operation; a number takes the type of the other operand."""
    if isinstance(left, (bool, int, float)) and not isinstance(right, (bool, int, float)):
        left = as_expression(left, right.type)
    first = as_expression(left)
    return n.Binary(op, first, as_expression(right, first.type), binary_type(op, first.type))


def add(left: Operand, right: Operand) -> n.Binary:
    """Left + right."""
    return binary("add", left, right)


def sub(left: Operand, right: Operand) -> n.Binary:
    """Left - right."""
    return binary("sub", left, right)


def mul(left: Operand, right: Operand) -> n.Binary:
    """Left * right."""
    return binary("mul", left, right)


def less(left: Operand, right: Operand) -> n.Binary:
    """Left < right."""
    return binary("lt", left, right)


def equal(left: Operand, right: Operand) -> n.Binary:
    """Left == right."""
    return binary("eq", left, right)


def both(left: n.Expression, right: n.Expression) -> n.Binary:
    """`left and right`; the right operand is not evaluated unless needed."""
    return n.Binary("logical_and", left, right, BOOL)


def negate(condition: n.Expression) -> n.Unary:
    """`not condition`."""
    return n.Unary("not", condition, BOOL)


def select(condition: n.Expression, if_true: n.Expression, if_false: Operand) -> n.Select:
    """One of two values, both evaluated."""
    return n.Select(condition, if_true, as_expression(if_false, if_true.type), if_true.type)


def intrinsic(op: str, first: n.Expression, *others: Operand) -> n.Intrinsic:
    """One of `nodes.INTRINSICS`."""
    operands = (first, *(as_expression(other, first.type) for other in others))
    return n.Intrinsic(op, operands, intrinsic_type(op, first.type))


def cast(value: n.Expression, type: Type) -> n.Expression:
    """The value as another type; itself if it has that type."""
    return value if value.type == type else n.Cast(value, type)


def extract(value: n.Expression, name: str) -> n.Extract:
    """A component or field of a value."""
    return n.Extract(value, name, member_type(value.type, name))


def builtin(name: str, axis: int = 0) -> n.Builtin:
    """`thread_idx`, `block_idx` and the like."""
    return n.Builtin(name, axis)


def global_index(axis: int = 0) -> n.Binary:
    """This thread's index in the whole grid."""
    start = mul(builtin("block_idx", axis), builtin("block_dim", axis))
    return add(start, builtin("thread_idx", axis))


def check(index: Operand, bound: Operand, axis: int = 0) -> n.Check:
    """The access takes place only if 0 <= index < bound."""
    return n.Check(as_expression(index), as_expression(bound), axis)


def element(
    memory: MemoryLike, index: Operand, checks: Sequence[n.Check] = (), type: Type | None = None
) -> n.Element:
    """The place of an element; `type` reinterprets the memory."""
    return n.Element(memory.name, as_expression(index), type or memory.element, tuple(checks))


def member(base: n.Place, name: str) -> n.Member:
    """The place of a component or field."""
    return n.Member(base, name, member_type(base.type, name))


def item(base: n.Place, index: Operand, checks: Sequence[n.Check] = ()) -> n.Item:
    """The place of an item of an array inside a struct."""
    assert isinstance(base.type, Array), f"{base.type} has no items"
    return n.Item(base, as_expression(index), base.type.element, tuple(checks))


def load(
    place: MemoryLike | n.MemoryPlace, index: Operand = 0, checks: Sequence[n.Check] = ()
) -> n.Load:
    """The value at a place, or of element `index` of a memory."""
    if isinstance(place, (n.Buffer, n.Memory)):
        place = element(place, index, checks)
    return n.Load(place, place.type)


# --- blocks and kernels --------------------------------------------------------------------------


class Builder:
    """Collects statements in nested blocks, and the declarations of a kernel or function."""

    def __init__(
        self, name: str, block: int | Sequence[int] | None = None, span: Span = NOWHERE
    ) -> None:
        self.name = name
        self.block = None if block is None else Dim3.of(block)
        self.span = span
        self.buffers: list[n.Buffer] = []
        self.parameters: list[n.Parameter] = []
        self.arguments: list[n.Variable | n.Buffer] = []
        self.memories: list[n.Memory] = []
        self.functions: list[n.Function] = []
        self._blocks: list[list[n.Statement]] = [[]]

    # Declarations.

    def buffer(self, name: str, element: Type) -> n.Buffer:
        """A buffer parameter."""
        buffer = n.Buffer(name, element)
        self.buffers.append(buffer)
        self.arguments.append(buffer)
        return buffer

    def parameter(self, name: str, type: Scalar, *origin: str | int) -> n.Variable:
        """A scalar parameter of a kernel; its origin is ("value", name) unless given."""
        self.parameters.append(n.Parameter(name, type, origin or ("value", name)))
        return n.Variable(name, type)

    def argument(self, name: str, type: Type) -> n.Variable:
        """A value parameter of a function."""
        variable = n.Variable(name, type)
        self.arguments.append(variable)
        return variable

    def memory(
        self, space: Literal["shared", "local"], name: str, element: Type, length: int | None
    ) -> n.Memory:
        """A shared or local memory."""
        memory = n.Memory(name, space, element, length)
        self.memories.append(memory)
        return memory

    def kernel(self, fastmath: bool = False, trusting: bool = False) -> n.Kernel:
        """The kernel made of everything so far."""
        return n.Kernel(
            self.name,
            tuple(self.buffers),
            tuple(self.parameters),
            self.body(),
            tuple(self.memories),
            tuple(self.functions),
            self.block,
            fastmath,
            trusting,
            span=self.span,
        )

    def function(self, result: Type) -> n.Function:
        """The function made of everything so far; its parameters are in the order declared."""
        arguments, memories = tuple(self.arguments), tuple(self.memories)
        return n.Function(self.name, arguments, result, self.body(), memories, self.span)

    def body(self) -> n.Block:
        """The statements of the outermost block so far."""
        return tuple(self._blocks[0])

    # Statements.

    def emit(self, *statements: n.Statement) -> None:
        """Append statements to the innermost open block."""
        self._blocks[-1].extend(statements)

    def variable(self, name: str, type: Type) -> n.Variable:
        """Declare a variable that starts as zero."""
        variable = n.Variable(name, type)
        self.emit(n.Declare(variable))
        return variable

    def let(self, name: str, value: Operand) -> n.Variable:
        """Declare a variable with a value."""
        expression = as_expression(value)
        variable = n.Variable(name, expression.type)
        self.emit(n.Declare(variable, expression))
        return variable

    def assign(self, place: n.Place, value: Operand) -> None:
        """Put a value into a place."""
        self.emit(n.Assign(place, as_expression(value, place.type)))

    def store(
        self, memory: MemoryLike, index: Operand, value: Operand, checks: Sequence[n.Check] = ()
    ) -> None:
        """Put a value into an element of a memory."""
        self.assign(element(memory, index, checks), value)

    @contextmanager
    def _open(self) -> Iterator[list[n.Statement]]:
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()

    @contextmanager
    def aside(self) -> Iterator[list[n.Statement]]:
        """Statements that go nowhere yet: they are given."""
        with self._open() as inside:
            yield inside

    @contextmanager
    def when(self, condition: n.Expression) -> Iterator[None]:
        """An if."""
        with self._open() as inside:
            yield
        self.emit(n.If(condition, tuple(inside)))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else of the if just closed."""
        with self._open() as inside:
            yield
        last = self._blocks[-1].pop()
        assert isinstance(last, n.If), "otherwise() follows a when()"
        self.emit(n.If(last.condition, last.then, tuple(inside), last.span))

    @contextmanager
    def loop(
        self,
        name: str,
        start: Operand,
        stop: Operand,
        step: int = 1,
        *,
        type: Scalar = I32,
        unroll: bool = False,
        parallel: bool = False,
    ) -> Iterator[n.Variable]:
        """A for loop; gives its variable."""
        variable = n.Variable(name, type)
        with self._open() as inside:
            yield variable
        first, last = as_expression(start, type), as_expression(stop, type)
        self.emit(n.For(variable, first, last, step, tuple(inside), unroll, parallel))

    @contextmanager
    def repeat(self, condition: n.Expression, update: Sequence[n.Statement] = ()) -> Iterator[None]:
        """A while loop."""
        with self._open() as inside:
            yield
        self.emit(n.While(condition, tuple(inside), tuple(update)))
