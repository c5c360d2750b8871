"""Computes what is known at compile time, and drops what never runs.

Everything here is exact: a folded kernel gives the same bits. Float remainders are left to the
target; `x + 0.0` is not `x` (for -0.0), but `x - 0.0` is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.passes.fold_expressions import ExpressionFolder
from treadle.ir.traverse import rewrite_kernel
from treadle.ir.types import BOOL, Scalar


def fold(kernel: n.Kernel, *, keeps_failing: bool = False) -> n.Kernel:
    """The kernel with constants computed, constant branches taken and dead code dropped.

    Variables that are never assigned and whose value is a constant or another such variable are
    replaced by it. An access of which a check always fails does nothing, and is dropped too, unless
    `keeps_failing`: `instrument` has yet to see those that it reports.
    """
    functions = []
    for function in kernel.functions:
        body = _Folder(function.body, keeps_failing).body(function.body)
        functions.append(function if body is function.body else replace(function, body=body))
    body = _Folder(kernel.body, keeps_failing).body(kernel.body)
    if body and isinstance(body[-1], n.Return):
        body = body[:-1]
    return replace(kernel, body=body, functions=tuple(functions))


def specialize(kernel: n.Kernel, block: Dim3) -> n.Kernel:
    """The kernel for one block: `block_dim` is a constant, `thread_idx` 0 along an axis
    with one thread."""

    def change(node: Any) -> Any:
        if isinstance(node, n.Builtin):
            if node.name == "block_dim":
                return n.Constant(block[node.axis], node.type, node.span)
            if node.name == "thread_idx" and block[node.axis] == 1:
                return n.Constant(0, node.type, node.span)
        return node

    return replace(rewrite_kernel(kernel, change), block=block)


class _Folder(ExpressionFolder):
    """Folds one body: the kernel's or a function's."""

    def __init__(self, body: n.Block, keeps_failing: bool) -> None:
        super().__init__(keeps_failing=keeps_failing)
        self.assigned: set[str] = set()
        _collect_assigned(body, self.assigned)

    def body(self, block: n.Block) -> n.Block:
        """A block with every statement folded; the same tuple if nothing changed."""
        result: list[n.Statement] = []
        changed = False
        for position, statement in enumerate(block):
            new = _STATEMENTS[statement.__class__](self, statement)
            if new is statement:
                result.append(statement)
            else:
                changed = True
                if new.__class__ is tuple:
                    result.extend(new)
                else:
                    result.append(new)
            if result and leaves(result[-1]):
                changed = changed or position + 1 < len(block)
                break
        return tuple(result) if changed else block

    # Each gives the statement, another, or a tuple of statements in its place.

    def keep(self, node: n.Statement) -> n.Statement:
        return node

    def declare(self, node: n.Declare) -> n.Statement | n.Block:
        variable, value = node.variable, node.value
        if value is not None:
            value = self.expression(value)
        if variable.name not in self.assigned:
            known = value
            if value is None and isinstance(variable.type, Scalar):
                known = zero(variable.type)
            if isinstance(known, n.Constant) or (
                isinstance(known, n.Variable) and known.name not in self.assigned
            ):
                self.known[variable.name] = known
                return ()
        return node if value is node.value else n.Declare(variable, value, node.span)

    def assign(self, node: n.Assign) -> n.Statement | n.Block:
        place, value = self.place(node.place), self.expression(node.value)
        if self.never(place):
            return ()
        if place is node.place and value is node.value:
            return node
        return n.Assign(place, value, node.span, node.later)

    def if_statement(self, node: n.If) -> n.Statement | n.Block:
        condition = self.expression(node.condition)
        if isinstance(condition, n.Constant):
            return self.body(node.then if condition.value else node.otherwise)
        then, otherwise = self.body(node.then), self.body(node.otherwise)
        if not then:
            if not otherwise:
                return ()
            inverse = n.Unary("not", condition, BOOL, condition.span)
            return n.If(self.expression(inverse), otherwise, (), node.span)
        if condition is node.condition and then is node.then and otherwise is node.otherwise:
            return node
        return n.If(condition, then, otherwise, node.span)

    def for_statement(self, node: n.For) -> n.Statement | n.Block:
        start, stop = self.expression(node.start), self.expression(node.stop)
        by = None if node.by is None else self.expression(node.by)
        known = isinstance(start, n.Constant) and isinstance(stop, n.Constant)
        if known and node.step and not range(start.value, stop.value, node.step):
            return ()
        body = _without_last_continue(self.body(node.body))
        if not body:
            return ()
        if start is node.start and stop is node.stop and by is node.by and body is node.body:
            return node
        return replace(node, start=start, stop=stop, body=body, by=by)

    def while_statement(self, node: n.While) -> n.Statement | n.Block:
        condition = self.expression(node.condition)
        if isinstance(condition, n.Constant) and not condition.value:
            return ()
        body = _without_last_continue(self.body(node.body))
        update = self.body(node.update)
        if condition is node.condition and body is node.body and update is node.update:
            return node
        return n.While(condition, body, update, node.span)

    def return_statement(self, node: n.Return) -> n.Statement:
        if node.value is None:
            return node
        value = self.expression(node.value)
        return node if value is node.value else n.Return(value, node.span)

    def atomic(self, node: n.Atomic) -> n.Statement | n.Block:
        place, operands = self.place(node.place), self.each(node.operands)
        if self.never(place):
            if node.result is None:
                return ()
            assert isinstance(node.result.type, Scalar)
            return n.Assign(node.result, zero(node.result.type), node.span)
        if place is node.place and operands is node.operands:
            return node
        return n.Atomic(node.op, place, operands, node.result, node.span)

    def subgroup(self, node: n.Subgroup) -> n.Statement:
        operands, mask = self.each(node.operands), self.mask(node.mask)
        if operands is node.operands and mask is node.mask:
            return node
        return n.Subgroup(node.op, operands, node.result, mask, node.span)

    def opaque_store(self, node: n.OpaqueStore) -> n.Statement:
        place, (stride, value) = self.place(node.place), self.each((node.stride, node.value))
        return n.OpaqueStore(place, stride, value, node.columns, node.span)

    def staged(self, node: n.Staged) -> n.Statement:
        places = tuple(self.place(place) for place in node.places)
        operands = self.each(node.operands)
        same = all(new is old for new, old in zip(places, node.places, strict=True))
        if same and operands is node.operands:
            return node
        return replace(node, places=places, operands=operands)

    def barrier(self, node: n.Barrier) -> n.Statement:
        mask, part = self.mask(node.mask), self.each(node.part)
        if mask is node.mask and part is node.part:
            return node
        return n.Barrier(node.scope, mask, node.span, part)

    def mask(self, mask: n.Expression | None) -> n.Expression | None:
        return None if mask is None else self.expression(mask)

    def call_statement(self, node: n.CallStatement) -> n.Statement:
        arguments = self.each(node.arguments)
        if arguments is node.arguments:
            return node
        return n.CallStatement(node.function, arguments, node.result, node.span)

    def print_statement(self, node: n.Print) -> n.Statement:
        parts = tuple(p if isinstance(p, str) else self.printed(p) for p in node.parts)
        same = all(new is old for new, old in zip(parts, node.parts, strict=True))
        return node if same else n.Print(parts, node.end, node.span)

    def printed(self, part: n.Expression | n.Formatted) -> n.Expression | n.Formatted:
        if not isinstance(part, n.Formatted):
            folded: n.Expression = self.expression(part)
            return folded
        value, stars = self.expression(part.value), self.each(part.stars)
        if value is part.value and stars is part.stars:
            return part
        return n.Formatted(part.spec, value, stars, part.span)

    def assert_statement(self, node: n.Assert) -> n.Statement | n.Block:
        condition = self.expression(node.condition)
        if isinstance(condition, n.Constant) and condition.value:
            return ()
        return node if condition is node.condition else replace(node, condition=condition)


_STATEMENTS: dict[type, Callable[[_Folder, Any], Any]] = {
    n.Declare: _Folder.declare,
    n.Assign: _Folder.assign,
    n.If: _Folder.if_statement,
    n.For: _Folder.for_statement,
    n.While: _Folder.while_statement,
    n.Break: _Folder.keep,
    n.Continue: _Folder.keep,
    n.Return: _Folder.return_statement,
    n.Barrier: _Folder.barrier,
    n.Fence: _Folder.keep,
    n.Atomic: _Folder.atomic,
    n.Subgroup: _Folder.subgroup,
    n.OpaqueStore: _Folder.opaque_store,
    n.Clock: _Folder.keep,
    n.Copies: _Folder.keep,
    n.Staged: _Folder.staged,
    n.CallStatement: _Folder.call_statement,
    n.Print: _Folder.print_statement,
    n.Assert: _Folder.assert_statement,
}


def zero(type: Scalar) -> n.Constant:
    """The zero of a scalar type."""
    return n.Constant(False if type.kind == "bool" else 0.0 if type.is_float else 0, type)


def leaves(statement: n.Statement) -> bool:
    """Whether what follows a statement in its block can never run."""
    match statement:
        case n.Return() | n.Break() | n.Continue():
            return True
        case n.If(then=then, otherwise=otherwise):
            return bool(then and otherwise) and leaves(then[-1]) and leaves(otherwise[-1])
        case n.While(condition=n.Constant(value=True), body=body):
            return not breaks(body)
    return False


def breaks(block: n.Block) -> bool:
    """Whether a break in the block leaves the loop that the block is the body of."""
    return any(
        isinstance(s, n.Break) or (isinstance(s, n.If) and (breaks(s.then) or breaks(s.otherwise)))
        for s in block
    )


def _without_last_continue(body: n.Block) -> n.Block:
    return body[:-1] if body and isinstance(body[-1], n.Continue) else body


def _collect_assigned(block: n.Block, found: set[str]) -> None:
    """The variables that anything but their declaration gives a value."""
    for statement in block:
        match statement:
            case n.Assign(place=place):
                while isinstance(place, (n.Member, n.Item)):
                    place = place.base
                if isinstance(place, n.Variable):
                    found.add(place.name)
            case n.If():
                _collect_assigned(statement.then, found)
                _collect_assigned(statement.otherwise, found)
            case n.For():
                _collect_assigned(statement.body, found)
            case n.While():
                _collect_assigned(statement.body, found)
                _collect_assigned(statement.update, found)
            case (
                n.Atomic(result=n.Variable(name=name))
                | n.CallStatement(result=n.Variable(name=name))
            ):
                found.add(name)
            case n.Subgroup() | n.Clock():
                found.add(statement.result.name)
