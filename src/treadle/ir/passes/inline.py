"""Puts the bodies of functions where they are called, wherever a function is more than a value.

What stays a function is a pure one: from values to a value. A body's early returns become
structure: what follows a branch that returns moves into the other branch, and where a return may
or may not have happened (in a loop, or deep inside) a flag says so. Nothing is duplicated.

A Call inside an expression has no effects (`verify` sees to that), so its body may run before the
statement; only under `logical_and`, `logical_or` and in a loop's condition must it stay where it
is evaluated, and does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.effects import effects
from treadle.ir.passes.returns import without_returns
from treadle.ir.substitute import substitute
from treadle.ir.traverse import map_children, rewrite_block, walk
from treadle.ir.types import BOOL, VOID


def inline(kernel: n.Kernel) -> n.Kernel:
    """The kernel with every call inlined but those of pure value functions.

    Memories of inlined functions become the kernel's, one for each place they are called from.
    Functions that are no longer called are gone.
    """
    inlined = _to_inline(kernel.functions)
    done: dict[str, n.Function] = {}
    for function in kernel.functions:
        owner = _Owner(function, done, inlined)
        body = owner.block(function.body)
        done[function.name] = replace(function, body=body, memories=tuple(owner.memories))
    owner = _Owner(kernel, done, inlined)
    body = owner.block(kernel.body)
    functions = _called(body, [done[function.name] for function in kernel.functions])
    return replace(kernel, body=body, memories=tuple(owner.memories), functions=functions)


def needs_inlining(function: n.Function, functions: Iterable[n.Function]) -> bool:
    """Whether a function can only be inlined: it (or one it calls) takes memory, has memory of
    its own, asks where its thread is, or has effects. `functions` are the kernel's, callees
    before callers."""
    return function.name in _to_inline(functions)


def _to_inline(functions: Iterable[n.Function]) -> frozenset[str]:
    functions = tuple(functions)
    found = set(effects(functions))
    for function in functions:
        takes_memory = any(isinstance(parameter, n.Buffer) for parameter in function.parameters)
        placed = any(isinstance(node, n.Builtin) for node in walk(function.body))
        if takes_memory or function.memories or placed or _calls_any(function.body, found):
            found.add(function.name)
    return frozenset(found)


def _calls_any(nodes: n.Block | n.Expression, names: Iterable[str]) -> bool:
    return any(
        isinstance(node, (n.Call, n.CallStatement)) and node.function in names
        for node in walk(nodes)
    )


def _called(body: n.Block, functions: list[n.Function]) -> tuple[n.Function, ...]:
    """The functions that a body still calls, and those they call, in the order given."""
    wanted: set[str] = set()
    bodies = [body]
    by_name = {function.name: function for function in functions}
    while bodies:
        for node in walk(bodies.pop()):
            if isinstance(node, (n.Call, n.CallStatement)) and node.function not in wanted:
                wanted.add(node.function)
                bodies.append(by_name[node.function].body)
    return tuple(function for function in functions if function.name in wanted)


class _Owner:
    """The kernel or function whose body takes in others."""

    def __init__(
        self, owner: n.Kernel | n.Function, done: dict[str, n.Function], inlined: frozenset[str]
    ) -> None:
        self.done = done
        self.inlined = inlined
        self.memories = list(owner.memories)
        self.taken = {memory.name for memory in owner.memories} | _declared(owner.body)
        self.taken |= {parameter.name for parameter in owner.parameters}
        if isinstance(owner, n.Kernel):
            self.taken |= {buffer.name for buffer in owner.buffers}

    def new_name(self, name: str) -> str:
        """A name not used here yet: `name`, or `name.2` and so on."""
        unique, number = name, 2
        while unique in self.taken:
            unique = f"{name}.{number}"
            number += 1
        self.taken.add(unique)
        return unique

    # --- statements ---

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Statement] = []
        for statement in block:
            self.statement(statement, out)
        same = len(out) == len(block) and all(a is b for a, b in zip(out, block, strict=True))
        return block if same else tuple(out)

    def statement(self, statement: n.Statement, out: list[n.Statement]) -> None:
        """Append a statement to `out`, after what has to run before it."""
        match statement:
            case n.CallStatement():
                self.call_statement(statement, out)
            case n.If():
                condition = self.hoist(statement.condition, out)
                then, otherwise = self.block(statement.then), self.block(statement.otherwise)
                unchanged = (
                    condition is statement.condition
                    and then is statement.then
                    and otherwise is statement.otherwise
                )
                if not unchanged:
                    statement = n.If(condition, then, otherwise, statement.span)
                out.append(statement)
            case n.For():
                start, stop = self.hoist(statement.start, out), self.hoist(statement.stop, out)
                by = None if statement.by is None else self.hoist(statement.by, out)
                body = self.block(statement.body)
                if (
                    start is statement.start
                    and stop is statement.stop
                    and by is statement.by
                    and body is statement.body
                ):
                    out.append(statement)
                else:
                    out.append(replace(statement, start=start, stop=stop, by=by, body=body))
            case n.While():
                out.append(self.while_loop(statement))
            case _:
                out.append(map_children(statement, lambda child: self.hoist(child, out)))

    def while_loop(self, loop: n.While) -> n.While:
        body, update = self.block(loop.body), self.block(loop.update)
        before: list[n.Statement] = []
        condition = self.hoist(loop.condition, before)
        if before:
            leave = n.If(n.Unary("not", condition, BOOL, condition.span), (n.Break(loop.span),))
            return n.While(n.TRUE, (*before, leave, *body), update, loop.span)
        if condition is loop.condition and body is loop.body and update is loop.update:
            return loop
        return n.While(condition, body, update, loop.span)

    def call_statement(self, call: n.CallStatement, out: list[n.Statement]) -> None:
        function = self.done[call.function]
        arguments = tuple(self.hoist(argument, out) for argument in call.arguments)
        if call.function in self.inlined or function.result == VOID:
            self.enter(function, arguments, call.result, out, call.span)
        elif call.result is not None:  # a pure function stays one
            value = n.Call(call.function, arguments, function.result, call.span)
            out.append(n.Assign(call.result, value, call.span))

    # --- expressions ---

    def hoist(self, node: Any, out: list[n.Statement]) -> Any:
        """An expression (or place, check, argument) whose inlined calls have moved to `out`."""
        if not _calls_any(node, self.inlined):
            return node
        if isinstance(node, n.Binary) and node.op in n.LOGICAL:
            return self.hoist_logical(node, out)
        if not (isinstance(node, n.Call) and node.function in self.inlined):
            return map_children(node, lambda child: self.hoist(child, out))
        function = self.done[node.function]
        arguments = tuple(self.hoist(argument, out) for argument in node.arguments)
        result = n.Variable(self.new_name(f"{function.name}.result"), node.type, node.span)
        inside: list[n.Statement] = []
        self.enter(function, arguments, result, inside, node.span)
        last = inside[-1]
        if _only_return(function) and isinstance(last, n.Assign) and last.place is result:
            inside[-1] = n.Declare(result, last.value, node.span)
        else:
            out.append(n.Declare(result, None, node.span))
        out.extend(inside)
        return result

    def hoist_logical(self, node: n.Binary, out: list[n.Statement]) -> n.Expression:
        left = self.hoist(node.left, out)
        if not _calls_any(node.right, self.inlined):
            return replace(node, left=left)
        result = n.Variable(self.new_name("condition"), BOOL, node.span)
        inside: list[n.Statement] = []
        right = self.hoist(node.right, inside)
        inside.append(n.Assign(result, right, node.span))
        undecided = result if node.op == "logical_and" else n.Unary("not", result, BOOL, node.span)
        out.append(n.Declare(result, left, node.span))
        out.append(n.If(undecided, tuple(inside), (), node.span))
        return result

    # --- bodies ---

    def enter(
        self,
        function: n.Function,
        arguments: tuple[Any, ...],
        result: n.Variable | None,
        out: list[n.Statement],
        place: Span,
    ) -> None:
        """Append the body of a function, its names made unique here, its returns made structure.
        Statements that are nowhere in the user's source are where the call is."""
        variables: dict[str, n.Expression] = {}
        memories: dict[str, str] = {}
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            if isinstance(parameter, n.Buffer):
                memories[parameter.name] = argument.memory
            elif isinstance(argument, (n.Constant, n.Builtin)):
                variables[parameter.name] = argument
            else:
                own = n.Variable(self.new_name(parameter.name), parameter.type, parameter.span)
                variables[parameter.name] = own
                out.append(n.Declare(own, argument, argument.span))
        for memory in function.memories:
            memories[memory.name] = self.new_name(memory.name)
            self.memories.append(replace(memory, name=memories[memory.name]))
        for node in walk(function.body):
            if isinstance(node, (n.Declare, n.For)):
                old = node.variable
                new = n.Variable(self.new_name(old.name), old.type, old.span)
                variables[old.name] = new
        body = substitute(function.body, variables, memories)
        if not function.span.line and place.line:
            body = _placed(body, place)
        elif function.span.is_of_header and place.line and not place.is_of_header:
            body = _seen_from(body, place, function)
        returned = n.Variable(self.new_name(f"{function.name}.returned"), BOOL, function.span)
        out.extend(without_returns(body, result, returned))


def _placed(body: n.Block, place: Span) -> n.Block:
    def change(node: Any) -> Any:
        if isinstance(node, n.Statement) and not node.span.line:
            return replace(node, span=place)
        return node

    return rewrite_block(body, change)


def _seen_from(body: n.Block, place: Span, function: n.Function) -> n.Block:
    """The body of a function of one of our headers, at the place of the user's call."""
    name = function.name.partition(".")[0]
    at = place if place.within else place.as_called(name, function.span.file)

    def change(node: Any) -> Any:
        if isinstance(node, n.Statement) and node.span.is_of_header:
            return replace(node, span=at)
        return node

    return rewrite_block(body, change)


def _declared(body: n.Block) -> set[str]:
    return {node.variable.name for node in walk(body) if isinstance(node, (n.Declare, n.For))}


def _only_return(function: n.Function) -> bool:
    return sum(isinstance(node, n.Return) for node in walk(function.body)) == 1
