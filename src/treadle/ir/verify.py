"""Says what is wrong with a kernel, and where: every rule of `ir.nodes`, one message for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from treadle.core import printf
from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.effects import effects
from treadle.ir.matrices import EXCHANGED, EXCHANGES, FIRST, operand_types
from treadle.ir.opaque import ELEMENTS, LOADS, MULTIPLIED
from treadle.ir.rules import subgroup_type
from treadle.ir.verify_expressions import ExpressionRules, is_integer, is_number
from treadle.ir.verify_stages import check_order, check_sums, fault_of

ATOMIC_TYPES = (t.I32, t.U32, t.I64, t.U64, t.F32, t.F64, t.F16, t.BF16, t.U16)


def verify(kernel: n.Kernel) -> None:
    """Raises CompileError at the first fault, with the span of the node (or of its statement)."""
    known: dict[str, n.Function] = {}
    effectful = effects(kernel.functions)
    everyone = {function.name for function in kernel.functions}
    for function in kernel.functions:
        if function.name in known:
            raise CompileError(f"two functions are named {function.name!r}", function.span)
        _Body(function.name, known, everyone, effectful).function(function)
        known[function.name] = function
    if kernel.block is not None and min(kernel.block) < 1:
        raise CompileError(
            f"a block has at least one thread in each direction, not {tuple(kernel.block)}",
            kernel.span,
        )
    _Body(None, known, everyone, effectful).kernel(kernel)


class _Body(ExpressionRules):
    """The body of a kernel or function, walked in order with its scopes."""

    result: t.Type | None = None  # of the function; None in a kernel

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # Memories that may be shared: a function's parameters may be.
        self.shared: set[str] = set()
        self.spaces: dict[str, str] = {}  # of the memories of kernels and functions

    # --- declarations ---

    def kernel(self, kernel: n.Kernel) -> None:
        self.span = kernel.span
        for buffer in kernel.buffers:
            self.declare_memory(buffer.name, buffer.element, buffer.span)
        for parameter in kernel.parameters:
            self.declare(n.Variable(parameter.name, parameter.type), parameter.span, "a parameter")
        self.memories_of(kernel.memories)
        self.block(kernel.body)
        check_order(kernel.body)
        check_sums(kernel.body)

    def function(self, function: n.Function) -> None:
        self.span = function.span
        self.result = function.result
        for parameter in function.parameters:
            if isinstance(parameter, n.Buffer):
                self.declare_memory(parameter.name, parameter.element, parameter.span)
                self.shared.add(parameter.name)
            else:
                self.declare(parameter, parameter.span, "a parameter")
        self.memories_of(function.memories)
        self.block(function.body)
        if function.result != t.VOID and not _always_returns(function.body):
            self.fail(
                f"{function.name!r} gives {function.result}, but may end without a return",
                function.span,
            )

    def memories_of(self, memories: Iterable[n.Memory]) -> None:
        for memory in memories:
            self.declare_memory(memory.name, memory.element, memory.span)
            if memory.space == "shared":
                self.shared.add(memory.name)
            self.spaces[memory.name] = memory.space
            if memory.length is None and memory.space == "local":
                self.fail(f"the local memory {memory.name!r} needs a length", memory.span)
            if memory.length is not None and memory.length < 1:
                self.fail(f"the memory {memory.name!r} has no elements", memory.span)

    def declare_memory(self, name: str, element: t.Type, span: Span) -> None:
        self.new_name(name, span)
        if not _has_size(element):
            self.fail(f"{name!r} cannot hold elements of type {element}", span)
        self.memories[name] = element

    def declare(self, variable: n.Variable, span: Span, role: str = "a variable") -> None:
        self.new_name(variable.name, span)
        if not _has_size(variable.type):
            self.fail(f"{variable.name!r} cannot be of type {variable.type}", span)
        self.variables[variable.name] = variable.type
        self.roles[variable.name] = role
        self.scopes[-1].append(variable.name)

    def new_name(self, name: str, span: Span) -> None:
        if name in self.ever:
            self.fail(f"{name!r} is declared twice", span)
        self.ever.add(name)

    # --- statements ---

    def block(self, block: n.Block) -> None:
        self.scopes.append([])
        for statement in block:
            self.span = statement.span if statement.span.line else self.span
            rule = _RULES.get(type(statement))
            if rule is None:
                self.fail(f"{type(statement).__name__} is not a statement", NOWHERE)
            rule(self, statement)
        for name in self.scopes.pop():
            del self.variables[name]

    def declare_statement(self, node: n.Declare) -> None:
        if node.value is not None:
            self.expression(node.value)
            self.require_type(
                node.value, node.variable.type, f"the value of {node.variable.name!r}"
            )
        self.declare(node.variable, node.span)

    def assign(self, node: n.Assign) -> None:
        self.place(node.place)
        self.writable(node.place, node.span)
        self.expression(node.value)
        self.require_type(node.value, node.place.type, "the value assigned")
        if node.later:
            self.later_copy(node)

    def later_copy(self, node: n.Assign) -> None:
        """Only shared memory is filled by copies that happen later, with 4, 8 or 16 bytes each."""
        place = node.place
        if not isinstance(place, n.Element) or place.memory not in self.shared:
            self.fail("a later copy goes to an element of shared memory", node.span)
        if t.size_of(place.type) not in (4, 8, 16):
            self.fail(f"a later copy has 4, 8 or 16 bytes, not a {place.type}", node.span)

    def copies(self, node: n.Copies) -> None:
        if node.left is not None and node.left < 0:
            self.fail("a wait for copies leaves 0 groups or more", node.span)

    def staged(self, node: n.Staged) -> None:
        for place in node.places:
            self.place(place)
            self.writable(place, node.span)
        for operand in node.operands:
            self.expression(operand)
        fault = fault_of(node, self.shared, self.spaces)
        if fault is not None:
            self.fail(fault, node.span)

    def writable(self, place: n.Place, span: Span) -> None:
        root: n.Place = place
        while isinstance(root, (n.Member, n.Item)):
            root = root.base
        if isinstance(root, n.Variable) and self.roles.get(root.name) != "a variable":
            role = self.roles[root.name]
            self.fail(f"{root.name!r} is {role} and cannot be changed: copy it first", span)

    def receives(self, result: n.Variable, type: t.Type, what: str, span: Span) -> None:
        """Check the variable that takes a statement's result."""
        self.expression(result)
        self.writable(result, span)
        if result.type != type:
            self.fail(f"{what} gives {type}, but {result.name!r} is {result.type}", span)

    def condition(self, condition: n.Expression, of: str) -> None:
        self.expression(condition)
        self.require_type(condition, t.BOOL, f"the condition of {of}")

    def if_statement(self, node: n.If) -> None:
        self.condition(node.condition, "an if")
        self.block(node.then)
        self.block(node.otherwise)

    def for_statement(self, node: n.For) -> None:
        type = node.variable.type
        if not is_integer(type):
            self.fail(f"a for loop counts with an integer, not {type}", node.span)
        for bound, word in ((node.start, "start"), (node.stop, "stop")):
            self.expression(bound)
            self.require_type(bound, type, f"the {word} of the loop")
        if node.by is not None:
            self.expression(node.by)
            self.require_type(node.by, type, "the step of the loop")
        elif node.step == 0:
            self.fail("the step of a for loop is not 0", node.span)
        if node.step < 0 and isinstance(type, t.Scalar) and not type.is_signed:
            self.fail(f"a loop over {type} cannot step downwards", node.span)
        self.scopes.append([])
        self.declare(node.variable, node.span, "a loop variable")
        with self.inside("parallel loop" if node.parallel else "loop"):
            self.block(node.body)
        for name in self.scopes.pop():
            del self.variables[name]

    def while_statement(self, node: n.While) -> None:
        self.condition(node.condition, "a while")
        with self.inside("loop"):
            self.block(node.body)
        with self.inside("update"):
            self.block(node.update)

    @contextmanager
    def inside(self, where: str) -> Iterator[None]:
        self.enclosing.append(where)
        yield
        self.enclosing.pop()

    def leave_loop(self, node: n.Break | n.Continue) -> None:
        word = "break" if isinstance(node, n.Break) else "continue"
        innermost = self.enclosing[-1] if self.enclosing else None
        if innermost is None:
            self.fail(f"{word} stands outside of a loop", node.span)
        if innermost == "update":
            self.fail(f"{word} stands in the update of a while", node.span)
        if innermost == "parallel loop" and word == "break":
            self.fail("a parallel loop cannot be left with break", node.span)

    def return_statement(self, node: n.Return) -> None:
        if "update" in self.enclosing:
            self.fail("return stands in the update of a while", node.span)
        if "parallel loop" in self.enclosing:
            self.fail("a parallel loop cannot be left with return", node.span)
        if node.value is not None:
            self.expression(node.value)
        if self.result is None and node.value is not None:
            self.fail("a kernel returns no value", node.span)
        if self.result is None:
            return
        given = t.VOID if node.value is None else node.value.type
        if given != self.result:
            self.fail(f"{self.owner!r} gives {self.result}, but returns {given} here", node.span)

    def barrier(self, node: n.Barrier) -> None:
        if node.scope == "grid":
            self.fail("a kernel with a barrier of the grid is compiled in parts", node.span)
        if node.scope not in ("block", "subgroup"):
            self.fail(f"a barrier's scope is block or subgroup, not {node.scope!r}", node.span)
        if node.scope == "block" and node.mask is not None:
            self.fail("only a subgroup's barrier has a mask", node.span)
        if node.part and (node.scope != "block" or len(node.part) != 2):
            self.fail("a part is the number of a barrier of the block and its threads", node.span)
        for one in node.part:
            self.expression(one)
            self.require_type(one, t.U32, "the part of a block")
        self.mask(node.mask)

    def mask(self, mask: n.Expression | None) -> None:
        if mask is not None:
            self.expression(mask)
            self.require_type(mask, t.U32, "a mask of lanes")

    def fence(self, node: n.Fence) -> None:
        if node.scope not in ("block", "device", "system"):
            self.fail(f"a fence's scope is block, device or system, not {node.scope!r}", node.span)
        if node.role and node.scope != "block":
            self.fail("fences with a role are those of a block", node.span)

    def atomic(self, node: n.Atomic) -> None:
        if node.op not in n.ATOMICS:
            self.fail(f"there is no atomic {node.op!r}", node.span)
        self.memory_place(node.place)
        type = node.place.type
        if type not in ATOMIC_TYPES:
            allowed = ", ".join(map(str, ATOMIC_TYPES))
            self.fail(f"atomics work on one of {allowed}, not on {type}", node.span)
        if node.op in ("and", "or", "xor") and not is_integer(type):
            self.fail(f"an atomic {node.op} works on integers, not on {type}", node.span)
        if node.op in ("inc", "dec") and type != t.U32:
            self.fail(f"an atomic {node.op} works on u32, not on {type}", node.span)
        count = 2 if node.op == "cas" else 1
        self.require_count(f"an atomic {node.op}", count, node.operands, node.span)
        for operand in node.operands:
            self.expression(operand)
            self.require_type(operand, type, f"an operand of an atomic {node.op}")
        if node.result is not None:
            self.receives(node.result, type, f"the atomic {node.op}", node.span)

    def matrices(self, node: n.Subgroup) -> None:
        """An operation on matrices that the lanes hold together."""
        wanted = operand_types(node.op)
        what = f"subgroup {node.op}"
        self.require_count(what, len(wanted), node.operands, node.span)
        for operand, type in zip(node.operands, wanted, strict=True):
            self.expression(operand)
            self.require_type(operand, type, f"an operand of {what}")
        if node.mask is not None:
            self.fail(f"{what} takes no mask", node.span)
        fewer = node.op in EXCHANGES and node.result.type in EXCHANGED
        self.receives(node.result, node.result.type if fewer else wanted[-1], what, node.span)

    def opaque(self, node: n.Subgroup) -> None:
        """An operation on matrices whose layout is the target's own."""
        what, type = f"subgroup {node.op}", node.result.type
        self.require_count(what, n.OPAQUE_OPERATIONS[node.op], node.operands, node.span)
        for operand in node.operands:
            self.expression(operand)
        if node.mask is not None:
            self.fail(f"{what} takes no mask", node.span)
        element = ELEMENTS.get(type) if isinstance(type, t.Struct) else None
        if element is None:
            self.fail(f"{what} gives a matrix, but {node.result.name!r} is {type}", node.span)
        if node.op in LOADS:
            first, stride = node.operands
            if not isinstance(first, n.Load) or not isinstance(first.place, n.Element):
                self.fail(f"{what} takes the load of its first element", node.span)
            self.matrix_memory(first.place, stride, element, what)
        elif node.op == "opaque_multiply":
            for operand, wanted in zip(node.operands, MULTIPLIED, strict=True):
                self.require_type(operand, wanted, f"an operand of {what}")
            type = MULTIPLIED[-1]
        else:
            self.require_type(node.operands[0], element, f"the operand of {what}")
        self.receives(node.result, type, what, node.span)

    def opaque_store(self, node: n.OpaqueStore) -> None:
        self.memory_place(node.place)
        for part in (node.stride, node.value):
            self.expression(part)
        type = node.value.type
        element = ELEMENTS.get(type) if isinstance(type, t.Struct) else None
        if element is None:
            self.fail(f"a matrix is stored, not {type}", node.span)
        self.matrix_memory(node.place, node.stride, element, "a store of a matrix")

    def matrix_memory(
        self, place: n.Element, stride: n.Expression, element: t.Scalar, what: str
    ) -> None:
        """Where an opaque matrix is loaded or stored: nothing else guards that."""
        if place.memory not in self.shared or place.checks:
            self.fail(f"{what} takes shared memory, without checks", place.span)
        if place.type != element and t.size_of(place.type) != t.size_of(FIRST):
            self.fail(f"{what} takes elements of {element}, or of 16 bytes", place.span)
        self.require_type(stride, t.I32, f"the stride of {what}")

    def subgroup(self, node: n.Subgroup) -> None:
        if node.op in n.OPAQUE_OPERATIONS:
            self.opaque(node)
            return
        if node.op in n.MATRIX_OPERATIONS:
            self.matrices(node)
            return
        if node.op not in n.SUBGROUP_OPERATIONS:
            self.fail(f"there is no subgroup operation {node.op!r}", node.span)
        count = n.SUBGROUP_OPERATIONS[node.op]
        if node.op in n.REDUCTIONS and len(node.operands) == 2 and node.mask is None:
            count = 2
        self.require_count(f"subgroup {node.op}", count, node.operands, node.span)
        for operand in node.operands:
            self.expression(operand)
        self.mask(node.mask)
        if node.op == "prefix_sum" and node.mask is not None:
            self.fail("subgroup prefix_sum takes no mask", node.span)
        shuffles = node.op.startswith("shuffle")
        given: t.Type = node.operands[0].type if node.operands else t.VOID
        if node.op in ("vote_all", "vote_any", "ballot"):
            self.require_type(node.operands[0], t.BOOL, f"the operand of subgroup {node.op}")
        elif node.op in ("and", "or", "xor") and not is_integer(given):
            self.fail(f"subgroup {node.op} works on integers, not on {given}", node.span)
        elif count and not (isinstance(given, t.Scalar) and (shuffles or is_number(given))):
            self.fail(f"subgroup {node.op} works on one number, not on {given}", node.span)
        for operand in node.operands[1:]:
            if operand.type not in ((t.I32, t.U32) if shuffles else (t.U32,)):
                wanted = "its lane as i32 or u32" if shuffles else "lanes as u32"
                self.fail(f"subgroup {node.op} takes {wanted}", node.span)
        result = subgroup_type(node.op, given)
        self.receives(node.result, result, f"subgroup {node.op}", node.span)

    def clock(self, node: n.Clock) -> None:
        self.receives(node.result, t.U64, "clock", node.span)

    def call_statement(self, node: n.CallStatement) -> None:
        function = self.called(node.function, node.arguments, node.span)
        if node.result is None:
            return
        if function.result == t.VOID:
            self.fail(
                f"{node.function!r} gives nothing to put into {node.result.name!r}", node.span
            )
        self.receives(node.result, function.result, repr(node.function), node.span)

    def print_statement(self, node: n.Print) -> None:
        for part in node.parts:
            if isinstance(part, str):
                continue
            if isinstance(part, n.Formatted):
                self.formatted(part)
                continue
            self.expression(part)
            if not isinstance(part.type, t.Scalar):
                self.fail(f"print takes text and numbers, not {part.type}", part.span)

    def formatted(self, node: n.Formatted) -> None:
        try:
            one = printf.conversion(node.spec)
        except printf.FormatError as error:
            self.fail(str(error), node.span)
        self.require_count(f"the conversion {node.spec}", one.stars, node.stars, node.span)
        for star in node.stars:
            self.expression(star)
            self.require_type(star, t.I32, f"a * of {node.spec}")
        self.expression(node.value)
        type = node.value.type
        if type == t.Vector(t.F32, 2):  # the sum of two floats
            type = t.F32
        suits = isinstance(type, t.Scalar) and (
            type.is_float if one.kind in printf.FLOAT_KINDS else not type.is_float
        )
        if one.kind in printf.TEXT_KINDS or not suits:
            wanted = printf.TAKES[one.kind]
            self.fail(f"{node.spec} prints {wanted}, not {type}", node.span)

    def assert_statement(self, node: n.Assert) -> None:
        self.condition(node.condition, "an assert")


_RULES: dict[type, Callable[[_Body, Any], None]] = {
    n.Declare: _Body.declare_statement,
    n.Assign: _Body.assign,
    n.If: _Body.if_statement,
    n.For: _Body.for_statement,
    n.While: _Body.while_statement,
    n.Break: _Body.leave_loop,
    n.Continue: _Body.leave_loop,
    n.Return: _Body.return_statement,
    n.Barrier: _Body.barrier,
    n.Fence: _Body.fence,
    n.Atomic: _Body.atomic,
    n.Subgroup: _Body.subgroup,
    n.OpaqueStore: _Body.opaque_store,
    n.Clock: _Body.clock,
    n.Copies: _Body.copies,
    n.Staged: _Body.staged,
    n.CallStatement: _Body.call_statement,
    n.Print: _Body.print_statement,
    n.Assert: _Body.assert_statement,
}


def _has_size(type: t.Type) -> bool:
    match type:
        case t.Void():
            return False
        case t.Array():
            return type.length > 0 and _has_size(type.element)
        case t.Struct():
            return bool(type.fields) and all(_has_size(field.type) for field in type.fields)
        case t.Vector():
            return 2 <= type.count <= 4
    return True


def _always_returns(block: n.Block) -> bool:
    """Whether no path runs off the end of a block."""
    for statement in block:
        match statement:
            case n.Return() | n.Break() | n.Continue():
                return True  # leaving a loop is judged where the loop is
            case n.If() if _always_returns(statement.then) and _always_returns(statement.otherwise):
                return True
            case n.While(condition=n.Constant(value=True)) if not _has_break(statement.body):
                return True
    return False


def _has_break(block: n.Block) -> bool:
    """Whether a break in the block leaves the loop that the block is the body of."""
    return any(
        isinstance(statement, n.Break)
        or (
            isinstance(statement, n.If)
            and (_has_break(statement.then) or _has_break(statement.otherwise))
        )
        for statement in block
    )
