"""Masked subgroup operations, as CUDA has them, made of operations of the whole subgroup.

    sum = subgroup sum v mask m        members = subgroup ballot true; members = members & m
                                       sum = subgroup sum v members

    member = subgroup vote_any p mask m
                                       votes = subgroup ballot p; member = (votes & m) != 0

CUDA lets diverged threads name the lanes that take part. Other targets have no masks, and all
threads of the subgroup must be at an operation. `here` is a flag of the threads that were at the
operation in CUDA's code; the others contribute the neutral value. The mask need not be uniform: the
groups of a subgroup may each give their own. So a mask is a value of each thread, and one operation
of all threads serves all groups at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import neutral_value
from treadle.ir.traverse import Node, rewrite_kernel
from treadle.ir.types import BOOL, I32, SCALARS, U32, Scalar, Type

WIDTH = 32
_ALL_LANES = (1 << WIDTH) - 1


@dataclass(slots=True)
class Unmasked:
    """An operation without its mask: what the threads that are `here` do before it, what all
    threads do, and what the threads that are `here` do after it."""

    before: list[n.Statement] = field(default_factory=list)
    converged: list[n.Statement] = field(default_factory=list)
    after: list[n.Statement] = field(default_factory=list)

    def all(self) -> n.Block:
        """All statements, where every thread is here. `before` assigns what is declared first."""
        declared = [one for one in self.converged if isinstance(one, n.Declare)]
        others = [one for one in self.converged if not isinstance(one, n.Declare)]
        return (*declared, *self.before, *others, *self.after)


def names_all_lanes(mask: n.Expression | None) -> bool:
    """Whether a mask certainly names every lane."""
    return mask is None or (isinstance(mask, n.Constant) and mask.value == _ALL_LANES)


def without_mask(node: n.Subgroup, here: n.Variable | None, names: Names) -> Unmasked:
    """A subgroup operation as operations without a mask, which all threads of the subgroup reach.
    `here` is None where all threads reached the operation anyway."""
    lowering = _Lowering(node, here, names)
    lowering.write()
    return lowering.out


def without_groups(kernel: n.Kernel) -> n.Kernel:
    """The kernel with matches, and reductions over groups of lanes, made of shuffles: for targets
    whose own operations cover the whole subgroup only."""
    names = Names(kernel)

    def change(node: Node) -> Node:
        if not isinstance(node, n.Subgroup):
            return node
        if node.op == "match_any":
            return _match_by_shuffles(node, names)
        if node.op in n.REDUCTIONS and len(node.operands) == 2:
            return _reduction_by_shuffles(node, names)
        return node

    return rewrite_kernel(kernel, change)


def _reduction_by_shuffles(node: n.Subgroup, names: Names) -> n.Block:
    """A loop over the lanes: each is shuffled to all, and a thread adds those of its own group."""
    span, (given, wanted) = node.span, node.operands
    neutral = neutral_value(node)
    assert neutral is not None
    value = n.Variable(names.fresh(f"{node.op}.value"), given.type)
    other = n.Variable(names.fresh(f"{node.op}.other"), given.type)
    lanes = n.Variable(names.fresh(f"{node.op}.lanes"), U32)
    lane = n.Variable(names.fresh(f"{node.op}.lane"), I32)
    more = n.Assign(node.result, combined(node.op, node.result, other), span)
    body = (
        n.Subgroup("shuffle", (value, lane), other, None, span),
        n.If(has_lane(lanes, lane), (more,), (), span),
    )
    return (
        n.Declare(value, given, span),
        n.Declare(lanes, wanted, span),
        n.Declare(other, None, span),
        n.Assign(node.result, neutral, span),
        n.For(lane, n.Constant(0, I32), n.Constant(WIDTH, I32), 1, body, span=span),
    )


def _match_by_shuffles(node: n.Subgroup, names: Names) -> n.Block:
    """A loop over the lanes: each is shuffled to all, and a thread notes those equal to its own."""
    span, result = node.span, node.result
    (given,) = node.operands
    assert isinstance(given.type, Scalar)
    value = n.Variable(names.fresh("match.value"), given.type)
    other = n.Variable(names.fresh("match.other"), given.type)
    here = n.Variable(names.fresh("match.here"), U32)
    lane = n.Variable(names.fresh("match.lane"), I32)
    bit = n.Binary("shl", n.Constant(1, U32), n.Cast(lane, U32), U32)
    same = n.Binary("eq", _bits(value), _bits(other), BOOL)
    more = n.Assign(result, n.Binary("or", result, bit, U32), span)
    body = (
        n.Subgroup("shuffle", (value, lane), other, None, span),
        n.If(same, (more,), (), span),
    )
    return (
        n.Declare(value, given, span),
        n.Declare(other, None, span),
        n.Declare(here, None, span),
        n.Subgroup("ballot", (n.TRUE,), here, None, span),
        n.Assign(result, n.Constant(0, U32), span),
        n.For(lane, n.Constant(0, I32), n.Constant(WIDTH, I32), 1, body, span=span),
        n.Assign(result, _both(result, here), span),
    )


def _bits(value: n.Variable) -> n.Expression:
    """A value to compare by its bits: a match finds equal bits (NaN matches itself, 0 not -0)."""
    assert isinstance(value.type, Scalar)
    return n.Bitcast(value, SCALARS[f"u{value.type.bits}"]) if value.type.is_float else value


def without_masked_reductions(kernel: n.Kernel, integers: bool) -> n.Kernel:
    """The kernel with masked reductions made of shuffles, for CUDA, where each thread loops over
    the lanes of its own mask. `integers`: the GPU reduces 32-bit integers itself (`redux.sync`,
    compute capability 8.0)."""
    names = Names(kernel)

    def change(node: Node) -> Node:
        if not isinstance(node, n.Subgroup) or node.mask is None or node.op not in n.REDUCTIONS:
            return node
        type = node.result.type
        assert isinstance(type, Scalar)
        native = integers and type.is_integer and type.bits == 32
        return node if native else _by_members(node, names)

    return rewrite_kernel(kernel, change)


def _by_members(node: n.Subgroup, names: Names) -> n.Block:
    span = node.span
    neutral = neutral_value(node)
    assert neutral is not None
    assert node.mask is not None
    value, total, other = (
        n.Variable(names.fresh(f"{node.op}.{name}"), neutral.type)
        for name in ("value", "total", "other")
    )
    mask, left = (n.Variable(names.fresh(f"{node.op}.{name}"), U32) for name in ("mask", "left"))
    none = n.Constant(0, U32)
    lane = n.Intrinsic("ctz", (left,), I32)
    lowest = n.Binary("sub", left, n.Constant(1, U32), U32)
    body = (
        n.Subgroup("shuffle", (value, lane), other, mask, span),
        n.Assign(total, combined(node.op, total, other), span),
        n.Assign(left, _both(left, lowest), span),
    )
    return (
        n.Declare(value, node.operands[0], span),
        n.Declare(mask, node.mask, span),
        n.Declare(left, None, span),
        # A mask may name lanes that have returned: the ballot leaves them out.
        n.Subgroup("ballot", (n.TRUE,), left, mask, span),
        n.Declare(total, neutral, span),
        n.Declare(other, None, span),
        n.While(n.Binary("ne", left, none, BOOL), body, (), span),
        n.Assign(node.result, total, span),
    )


class _Lowering:
    def __init__(self, node: n.Subgroup, here: n.Variable | None, names: Names) -> None:
        self.node = node
        self.here = here
        self.names = names
        self.out = Unmasked()
        self.mask = None if names_all_lanes(node.mask) else node.mask

    def write(self) -> None:
        node, op = self.node, self.node.op
        if op == "active":
            self.receive(self.members(None if self.mask is None else self.held(self.mask)))
        elif op in ("match_any", "match_all"):
            self.match()
        elif op in ("ballot", "vote_any", "vote_all") and self.mask is not None:
            self.vote(self.held(node.operands[0]), self.held(self.mask))
        elif self.mask is not None and neutral_value(node) is not None:
            self.reduce(self.held(node.operands[0]), self.held(self.mask))
        elif self.here is None:
            self.out.converged.append(replace(node, mask=None))
        else:
            operands = tuple(self.held(operand) for operand in node.operands)
            self.receive(self.operation(op, operands, node.result.type))

    # --- parts ---

    def held(self, value: n.Expression) -> n.Expression:
        """A value that every thread may evaluate, more than once. A thread that is not here must
        not evaluate the operand itself (it may load out of bounds): that goes into a variable."""
        if isinstance(value, (n.Constant, n.Variable, n.Builtin)):
            return value
        variable = self.variable("given", value.type)
        self.out.before.append(n.Assign(variable, value, self.node.span))
        return variable

    def variable(self, name: str, type: Type) -> n.Variable:
        variable = n.Variable(self.names.fresh(f"{self.node.op}.{name}"), type)
        self.out.converged.append(n.Declare(variable, None, self.node.span))
        return variable

    def operation(self, op: str, operands: tuple[n.Expression, ...], type: Type) -> n.Variable:
        """An operation of the whole subgroup; threads that are not here contribute the neutral
        value."""
        result = self.variable("all", type)
        made = n.Subgroup(op, operands, result, None, self.node.span)
        neutral = neutral_value(made)
        if self.here is not None and neutral is not None:
            own = n.Select(self.here, operands[0], neutral, neutral.type, self.node.span)
            made = n.Subgroup(op, (own, *operands[1:]), result, None, self.node.span)
        self.out.converged.append(made)
        return result

    def ballot(self, condition: n.Expression) -> n.Variable:
        return self.operation("ballot", (condition,), U32)

    def receive(self, value: n.Expression) -> None:
        self.out.after.append(n.Assign(self.node.result, value, self.node.span))

    # --- operations ---

    def vote(self, condition: n.Expression, mask: n.Expression) -> None:
        if self.node.op == "vote_all":  # all are true if no lane of the mask is false
            condition = n.Unary("not", condition, BOOL)
        named = _both(self.ballot(condition), mask)
        none = n.Constant(0, U32)
        match self.node.op:
            case "ballot":
                self.receive(named)
            case "vote_any":
                self.receive(n.Binary("ne", named, none, BOOL))
            case _:
                self.receive(n.Binary("eq", named, none, BOOL))

    def members(self, mask: n.Expression | None) -> n.Expression:
        """The lanes that are here and that the mask names."""
        here = self.ballot(n.TRUE)
        return here if mask is None else _both(here, mask)

    def match(self) -> None:
        value = self.held(self.node.operands[0])
        members = self.members(None if self.mask is None else self.held(self.mask))
        same = _both(self.operation("match_any", (value,), U32), members)
        if self.node.op == "match_any":
            self.receive(same)
            return
        all_equal = n.Binary("eq", same, members, BOOL)
        self.receive(n.Select(all_equal, same, n.Constant(0, U32), U32))

    def reduce(self, value: n.Expression, mask: n.Expression) -> None:
        """A reduction over each thread's own group of lanes."""
        neutral = neutral_value(self.node)
        assert neutral is not None
        if isinstance(mask, n.Constant):
            own = n.Select(has_lane(mask, n.Builtin("lane")), value, neutral, neutral.type)
            self.receive(self.operation(self.node.op, (own,), neutral.type))
            return
        members = self.variable("members", U32)
        self.out.converged.append(n.Assign(members, self.members(mask), self.node.span))
        self.receive(self.operation(self.node.op, (value, members), neutral.type))


def _both(left: n.Expression, right: n.Expression) -> n.Expression:
    return n.Binary("and", left, right, U32)


def has_lane(lanes: n.Expression, lane: n.Expression) -> n.Expression:
    """Whether a set of lanes, a bit each, holds a lane."""
    bit = n.Binary("shr", lanes, n.Cast(lane, U32), U32)
    return n.Binary("ne", _both(bit, n.Constant(1, U32)), n.Constant(0, U32), BOOL)


def combined(op: str, left: n.Expression, right: n.Expression) -> n.Expression:
    """Two values of a reduction combined into one."""
    if op in ("min", "max"):
        return n.Intrinsic(op, (left, right), left.type)
    return n.Binary("add" if op == "sum" else op, left, right, left.type)
