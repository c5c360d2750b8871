"""Whole kernels without 64-bit integers: declarations and statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval
from treadle.ir.passes.range_expressions import type_range
from treadle.ir.passes.variable_ranges import function_ranges, variable_ranges
from treadle.ir.passes.wide.expressions import Words
from treadle.ir.passes.wide.functions import call, called_functions
from treadle.ir.passes.wide.intervals import Intervals, word_for
from treadle.ir.passes.wide.layout import PAIR, holds_wide, is_wide, paired
from treadle.ir.traverse import map_children, walk
from treadle.ir.types import BOOL, U32, Scalar

_REDUCTIONS = frozenset({*n.REDUCTIONS, "prefix_sum"})


def pair_words(kernel: n.Kernel, threads: Dim3 | None = None) -> n.Kernel:
    """The kernel without i64 and u64. Parameters keep their types, since a launch packs them: they
    are read as pairs of words, which is what they are in memory. `threads` are those that
    `thread_idx` counts, where they are others than the block's.

    UnsupportedOnTarget for atomics on 64 bits, and sums of 64 bits over a subgroup.
    """
    if not _uses_wide(kernel):
        return kernel
    threads = threads or kernel.block
    given = {p.name: _parameter_range(p) for p in kernel.parameters}
    body = _Body(kernel, given | variable_ranges(kernel, threads), kernel.body, threads)
    statements = body.block(kernel.body)
    needed = dict(body.words.functions)
    own: list[n.Function] = []
    for function in kernel.functions:
        ranges = function_ranges(kernel, function, threads)
        inner = _Body(kernel, ranges, function.body, threads)
        own.append(inner.function(function))
        needed |= inner.words.functions
    made = (*needed.values(), *own)
    added = called_functions([statements, *(function.body for function in made)])
    return replace(
        kernel,
        buffers=tuple(replace(b, element=paired(b.element)) for b in kernel.buffers),
        memories=_paired_memories(kernel.memories),
        body=statements,
        functions=(*added, *made),
    )


def _uses_wide(kernel: n.Kernel) -> bool:
    elements = [*(b.element for b in kernel.buffers), *(m.element for m in kernel.memories)]
    blocks = [kernel.body, *(function.body for function in kernel.functions)]
    return any(holds_wide(element) for element in elements) or any(
        holds_wide(node.type) for block in blocks for node in walk(block) if hasattr(node, "type")
    )


def _parameter_range(parameter: n.Parameter) -> Interval:
    if not parameter.type.is_integer:
        return (0, 0)
    low, high = type_range(parameter.type)
    extent = parameter.origin[:1] in (("size",), ("shape",), ("threads",), ("grid",), ("length",))
    return (0 if extent else low), high


def _paired_memories(memories: tuple[n.Memory, ...]) -> tuple[n.Memory, ...]:
    return tuple(replace(memory, element=paired(memory.element)) for memory in memories)


class _Body:
    """Rewrites the statements of a kernel or function."""

    def __init__(
        self,
        kernel: n.Kernel,
        ranges: Mapping[str, Interval],
        body: n.Block,
        threads: Dim3 | None,
    ) -> None:
        variables = [node for node in walk(body) if isinstance(node, n.Variable)]
        self.names = {variable.name for variable in variables}
        declared = {name for name in ranges if name not in {p.name for p in kernel.parameters}}
        narrowed: dict[str, Scalar] = {}
        for variable in variables:
            if is_wide(variable.type) and variable.name in declared:
                kept = word_for(*ranges[variable.name])
                if kept is not None:
                    narrowed[variable.name] = kept
        self.words = Words(Intervals(ranges, threads), narrowed)

    def function(self, function: n.Function) -> n.Function:
        """A device function; its parameters and its result are pairs."""
        parameters = tuple(
            replace(one, type=paired(one.type))
            if isinstance(one, n.Variable)
            else replace(one, element=paired(one.element))
            for one in function.parameters
        )
        return replace(
            function,
            parameters=parameters,
            result=paired(function.result),
            memories=_paired_memories(function.memories),
            body=self.block(function.body),
        )

    # --- statements ---

    def block(self, block: n.Block) -> n.Block:
        found: list[n.Statement] = []
        for statement in block:
            found += self.statement(statement)
        return tuple(found)

    def statement(self, node: n.Statement) -> n.Block:
        words = self.words
        match node:
            case n.Declare():
                variable = words.variable(node.variable)
                value = None if node.value is None else self.kept(node.value, variable)
                return (replace(node, variable=variable, value=value),)
            case n.Assign():
                place = words.place_of(node.place)
                return (replace(node, place=place, value=self.kept(node.value, place)),)
            case n.If():
                then, otherwise = self.block(node.then), self.block(node.otherwise)
                condition = words.value(node.condition)
                return (replace(node, condition=condition, then=then, otherwise=otherwise),)
            case n.While():
                body, update = self.block(node.body), self.block(node.update)
                condition = words.value(node.condition)
                return (replace(node, condition=condition, body=body, update=update),)
            case n.For():
                return self.loop(node)
            case n.Atomic() if is_wide(node.place.type):
                raise UnsupportedOnTarget(
                    f"atomics on {node.place.type} need the feature 'int64_atomics'; "
                    "use 32-bit atomics, or a device that has it",
                    node.span,
                )
            case n.Subgroup() if node.op in _REDUCTIONS and holds_wide(node.result.type):
                raise UnsupportedOnTarget(
                    f"subgroup {node.op} of {node.result.type}: WGSL has it for 32 bits; reduce "
                    "with shuffles",
                    node.span,
                )
            case n.Subgroup() if is_wide(node.result.type):
                return self.shuffle(node)
            case n.Atomic() | n.Subgroup() | n.CallStatement() if node.result is not None:
                changed = map_children(replace(node, result=None), words.value)  # type: ignore[arg-type]
                return (replace(changed, result=words.variable(node.result)),)
        return (map_children(node, words.value),)

    def kept(self, value: n.Expression, target: n.Place) -> n.Expression:
        """A value in the form that a variable or place keeps it in."""
        if is_wide(value.type) and isinstance(target.type, Scalar):
            return self.words.word(value, target.type)
        return self.words.value(value)  # type: ignore[no-any-return]

    # --- loops ---

    def loop(self, node: n.For) -> n.Block:
        """A loop over 64-bit numbers that are not known to be narrow is one with a condition."""
        words, variable = self.words, node.variable
        if not is_wide(variable.type):
            start, stop = words.value(node.start), words.value(node.stop)
            return (replace(node, start=start, stop=stop, body=self.block(node.body)),)
        kept = words.narrowed.get(variable.name)
        if kept is not None:
            start, stop = words.word(node.start, kept), words.word(node.stop, kept)
            counter = words.variable(variable)
            body = self.block(node.body)
            return (replace(node, variable=counter, start=start, stop=stop, body=body),)
        return self.counted(node)

    def counted(self, node: n.For) -> n.Block:
        """The loop as a `while`. It goes on as long as there is more than a step to the end, so
        that the variable never wraps."""
        assert isinstance(node.variable.type, Scalar)
        words, span, type = self.words, node.span, node.variable.type
        counter = words.variable(node.variable)
        stop = n.Variable(self.fresh(f"{node.variable.name}.stop"), counter.type, span)
        more = n.Variable(self.fresh(f"{node.variable.name}.more"), BOOL, span)
        step = words.pair(n.Constant(abs(node.step), type, span))
        up = node.step > 0
        first, last = (counter, stop) if up else (stop, counter)
        rest = call("sub_u64", last, first)
        moved = call("add_u64" if up else "sub_u64", counter, step)
        update = (
            n.Assign(more, call("less_u64", step, rest), span),
            n.Assign(counter, moved, span),
        )
        return (
            n.Declare(counter, words.pair(node.start), span),
            n.Declare(stop, words.pair(node.stop), span),
            n.Declare(more, call(f"less_{type}", first, last), span),
            n.While(more, self.block(node.body), update, span),
        )

    # --- subgroups ---

    def shuffle(self, node: n.Subgroup) -> n.Block:
        """A shuffle of 64 bits: of their words, one after the other."""
        words, span = self.words, node.span
        pair = n.Variable(self.fresh(f"{node.result.name}.sent"), PAIR, span)
        found: list[n.Statement] = [n.Declare(pair, words.pair(node.operands[0]), span)]
        lane = words.value(node.operands[1])
        halves: list[n.Expression] = []
        for axis, name in (("x", "low"), ("y", "high")):
            half = n.Variable(self.fresh(f"{node.result.name}.{name}"), U32, span)
            sent = n.Extract(pair, axis, U32, span)
            found += [
                n.Declare(half, None, span),
                replace(node, operands=(sent, lane), result=half),
            ]
            halves.append(half)
        together = n.Construct(tuple(halves), PAIR, span)
        found.append(n.Assign(words.variable(node.result), together, span))
        return tuple(found)

    def fresh(self, wish: str) -> str:
        """A name that no variable here has."""
        name, number = wish, 0
        while name in self.names:
            number += 1
            name = f"{wish}.{number}"
        self.names.add(name)
        return name
