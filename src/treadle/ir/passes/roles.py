"""Copies to stages (`ir.stages`) apart from everything else: one part of a kernel for the threads
that claim stages and begin copies, one for the groups that multiply.

Both are slices of one program: each has the statements of its own that have an effect, and what
these depend on. They meet in the barriers of stages alone, as they do where one thread does both,
so nothing waits that did not wait before; only the order between a copy and what stands before it
in the text is given up, and that is what the barriers are for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir.effects import effect_of
from treadle.ir.traverse import Node, rewrite_block, root_of, statements_in, walk
from treadle.ir.types import BOOL

APART = n.Variable("copies.apart", BOOL)
"""Whether a thread is one of those that copy; a printer says which these are."""
FIRST = n.Variable("copies.first", BOOL)
"""Whether one of these is of the first warp, which copies where there are several."""

_COPIES = ("claim", "copy")
_BOTH = ("meet",)  # all threads of a cluster come to
_JUMPS = (n.Break, n.Continue, n.Return)


def copiers_of(kernel: n.Kernel) -> int:
    """How many threads a block has in addition, for copies."""
    for node in statements_in(kernel.body):
        if isinstance(node, n.Staged) and node.op == "prepare":
            apart = node.numbers[3]
            return 0 if not apart else stages.COPIERS if apart == 1 else stages.GROUP
    return 0


def with_roles(kernel: n.Kernel) -> n.Kernel:
    """The kernel with an `If` of two parts behind `prepare`, up to `leave`: what `APART` threads do
    and what all others do. It is inlined. CompileError where copies need what groups compute, or
    where the groups wait for the whole block."""
    at = next(i for i, node in enumerate(kernel.body) if _is(node, "prepare"))
    behind = kernel.body[at + 1 :]
    left = tuple(node for node in behind if _is(node, "leave"))
    behind = tuple(node for node in behind if not _is(node, "leave"))
    for node in statements_in(behind):
        if isinstance(node, n.Barrier) and node.scope == "block":
            raise CompileError(
                "where copies have threads of their own, these do not come to a barrier of the "
                "block: let the groups wait for stages only",
                node.span,
            )
    copied = _slice(behind, lambda node: _is(node, *_COPIES, *_BOTH))
    for each in walk(copied):
        own = isinstance(each, n.Builtin) and each.name in ("thread_idx", "lane")
        if own or (isinstance(each, n.Element) and _is_read(each, copied)):
            raise CompileError(
                "what is copied where copies have threads of their own is known without memory and "
                "without the thread's number",
                each.span,
            )
    others = _slice(behind, lambda node: _has_effect(node) and not _is(node, *_COPIES))
    copied = _renamed(copied)
    more = kernel.body[at].numbers[3]  # type: ignore[union-attr]
    if more > 1:
        if any(_is(node, *_BOTH) for node in statements_in(behind)):
            raise CompileError(
                "a whole group that copies does not come to where a cluster meets: let copies have "
                "a warp", kernel.span,
            )  # fmt: skip
        fewer = _left_registers(kernel, more)
        copied = (_registers(fewer, 0), n.If(FIRST, copied))
        others = (_registers(more, 1), *others)
    both = n.If(APART, copied, others, kernel.span)
    return replace(kernel, body=(*kernel.body[: at + 1], both, *left))


def _registers(count: int, more: int) -> n.Staged:
    return n.Staged("registers", (), (), (count, more))


def _left_registers(kernel: n.Kernel, taken: int) -> int:
    """How many registers are left for a thread that copies, where a thread of the groups takes so
    many, of those that the block is launched with: a card hands out no others."""
    assert kernel.block is not None
    groups = kernel.block.count // stages.GROUP
    step = stages.REGISTER_STEP
    begun = stages.REGISTERS // (stages.GROUP * (groups + 1)) // step * step
    left = begun * (groups + 1) - groups * taken
    if left < stages.FEWEST_REGISTERS or taken < begun:
        raise CompileError(
            f"{groups} groups of {stages.GROUP} threads with {taken} registers each: threads that "
            f"copy need {stages.FEWEST_REGISTERS}, and all threads begin with {begun}",
            kernel.span,
        )
    return left // step * step


def _is(node: Node, *operations: str) -> bool:
    return isinstance(node, n.Staged) and node.op in operations


def _has_effect(node: n.Statement) -> bool:
    return effect_of(node) is not None or isinstance(node, (n.CallStatement, n.Return))


def _is_read(place: n.Element, block: n.Block) -> bool:
    """Whether a place is read, and not only where a copy comes from or goes to."""
    for node in statements_in(block):
        if isinstance(node, n.Staged):
            sources = [op.place for op in node.operands[:1] if isinstance(op, n.Load)]
            if any(place is each for each in (*node.places, *sources)):
                return False
    return True


def _slice(block: n.Block, is_wanted: Callable[[n.Statement], bool]) -> n.Block:
    """The statements that are wanted, and those that they depend on."""
    needed: set[str] = set()
    while True:
        before = len(needed)
        kept = _kept(block, is_wanted, needed)
        for node in walk(kept):
            if isinstance(node, n.Variable):
                needed.add(node.name)
        if len(needed) == before:
            return kept


def _kept(
    block: n.Block, is_wanted: Callable[[n.Statement], bool], needed: set[str]
) -> tuple[Any, ...]:
    found: list[n.Statement] = []
    for node in block:
        match node:
            case n.If():
                then = _kept(node.then, is_wanted, needed)
                otherwise = _kept(node.otherwise, is_wanted, needed)
                if then or otherwise:
                    found.append(replace(node, then=then, otherwise=otherwise))
            case n.For():
                body = _kept(node.body, is_wanted, needed)
                if _does_something(body):
                    found.append(replace(node, body=body))
            case n.While():
                body = _kept(node.body, is_wanted, needed)
                update = _kept(node.update, is_wanted, needed)
                if _does_something((*body, *update)):
                    found.append(replace(node, body=body, update=update))
            case n.Declare():
                if node.variable.name in needed:
                    found.append(node)
            case _ if isinstance(node, _JUMPS) or is_wanted(node) or _sets(node, needed):
                found.append(node)
    return tuple(found)


def _does_something(body: n.Block) -> bool:
    return any(not isinstance(node, (n.Break, n.Continue, n.If)) for node in statements_in(body))


def _sets(node: n.Statement, needed: set[str]) -> bool:
    """Whether a statement gives a variable that is needed a value."""
    if isinstance(node, n.Assign):
        root = root_of(node.place)
        return isinstance(root, n.Variable) and root.name in needed
    result = getattr(node, "result", None)
    return isinstance(result, n.Variable) and result.name in needed


def _renamed(block: n.Block) -> n.Block:
    """The block with names of its own for what is declared in it."""
    own = {
        node.variable.name for node in statements_in(block) if isinstance(node, (n.Declare, n.For))
    }

    def change(node: Node) -> Node:
        if isinstance(node, n.Variable) and node.name in own:
            return replace(node, name=f"copier.{node.name}")
        return node

    return rewrite_block(block, change)
