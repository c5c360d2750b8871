"""Subgroup operations as loops over arrays, for lanes that run one after another.

Every lane stores its operand in its slot of an array. Then each lane reads another lane's slot
(shuffles), or one loop reduces the array in the order of the lanes (votes and reductions):

    w = subgroup shuffle v, l      v.lanes[lane] = v
                                   barrier subgroup
                                   w = v.lanes[l]
"""

from __future__ import annotations

from treadle.ir import nodes as n
from treadle.ir.passes.masks import combined, has_lane
from treadle.ir.passes.matrices import computed, operand_words
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import neutral_value
from treadle.ir.traverse import rewrite_block
from treadle.ir.types import BOOL, COMPONENTS, I32, SCALARS, U32, Scalar, Type

CUT = n.Barrier("subgroup")
_COMBINED = {
    "vote_all": "logical_and", "vote_any": "logical_or", "sum": "add", "or": "or", "xor": "xor",
}  # fmt: skip


class WarpArrays:
    """Expands the warp operations of a kernel.

    An operation becomes what lanes do before it, a barrier of the subgroup, what happens once for
    the warp, and what lanes do after it.
    """

    def __init__(self, names: Names, width: int) -> None:
        self.names = names
        self.width = width
        self.arrays: dict[str, n.Memory] = {}  # variables that are always slots
        self.plain: set[str] = set()  # variables that the lanes of a warp share
        self.once: list[n.Statement] = []  # statements to be executed once for the warp
        self.count = n.Variable(names.fresh("warp.count"), I32)  # the number of lanes
        self.plain.add(self.count.name)

    def expand(self, block: n.Block) -> n.Block:
        """The block with every operation replaced."""

        def change(node: object) -> object:
            if not isinstance(node, n.Subgroup):
                return node
            if node.op in n.MATRIX_OPERATIONS:
                return self._matrices(node)
            if node.op.startswith("shuffle"):
                return self._shuffle(node)
            if node.op == "prefix_sum":
                return self._prefix_sum(node)
            if node.op == "match_any":
                return self._match(node)
            if len(node.operands) == 2:
                return self._reduction_of_lanes(node)
            return self._reduction(node)

        return rewrite_block(block, change)

    def _once(self, *statements: n.Statement) -> n.Block:
        self.once.extend(statements)
        return statements

    def _lanes(self, name: str, type: Type) -> n.Variable:
        """A new variable with a slot for each lane, which other lanes may read."""
        variable = n.Variable(self.names.fresh(name), type)
        memory = n.Memory(self.names.fresh(f"{variable.name}.lanes"), "local", type, self.width)
        self.arrays[variable.name] = memory
        return variable

    def _slot(self, variable: n.Variable, lane: n.Expression) -> n.Element:
        return n.Element(self.arrays[variable.name].name, lane, variable.type)

    def _warp_variable(self, name: str, type: Type) -> n.Variable:
        variable = n.Variable(self.names.fresh(name), type)
        self.plain.add(variable.name)
        return variable

    def _shuffle(self, statement: n.Subgroup) -> n.Block:
        value, by = statement.operands
        given = self._lanes("shuffle.value", value.type)
        source = n.Variable(self.names.fresh("shuffle.lane"), I32)
        lane = n.Builtin("lane")
        by = by if by.type == I32 else n.Cast(by, I32)
        combine = {"shuffle_up": "sub", "shuffle_down": "add", "shuffle_xor": "xor"}
        if statement.op in combine:
            by = n.Binary(combine[statement.op], lane, by, I32)
        inside = n.Binary(
            "logical_and",
            n.Binary("ge", source, n.Constant(0, I32), BOOL),
            n.Binary("lt", source, self.count, BOOL),
            BOOL,
        )
        other = n.Load(self._slot(given, source), value.type)
        span = statement.span
        return (
            n.Assign(given, value, span),
            CUT,
            n.Declare(source, by, span),
            n.Assign(statement.result, given, span),
            n.If(inside, (n.Assign(statement.result, other, span),), (), span),
        )

    def _matrices(self, statement: n.Subgroup) -> n.Block:
        """Each lane stores its words of the factors, and reads those of others."""
        span = statement.span
        factors = statement.operands[: 2 if len(statement.operands) == 3 else 1]
        memories: list[n.Memory] = []
        stores: list[n.Statement] = []
        for factor in factors:
            count = operand_words(factor)
            words = n.Variable(self.names.fresh("matrix.words"), factor.type)
            name = self.names.fresh(f"{words.name}.lanes")
            memory = n.Memory(name, "local", U32, self.width * count)
            self.arrays[name] = memory
            memories.append(memory)
            stores.append(n.Declare(words, factor, span))
            for at, component in enumerate(COMPONENTS[:count]):
                place = _word(memory, count, n.Builtin("lane"), n.Constant(at, I32))
                stores.append(n.Assign(place, n.Extract(words, component, U32), span))

        def word_of(
            operand: int, word: n.Expression, lane: n.Expression, into: n.Variable
        ) -> n.Block:
            place = _word(memories[operand], operand_words(factors[operand]), lane, word)
            return (n.Assign(into, n.Load(place, U32), span),)

        return (*stores, CUT, *computed(statement, word_of, self.names))

    def _reduction(self, statement: n.Subgroup) -> n.Block:
        (value,) = statement.operands
        given = self._lanes(f"{statement.op}.value", value.type)
        total = self._warp_variable(f"{statement.op}.total", statement.result.type)
        lane = n.Variable(self.names.fresh("lane"), I32)
        slot = n.Load(self._slot(given, lane), value.type)
        first = 0
        start: n.Expression | None = None
        body: tuple[n.Statement, ...]
        if statement.op in ("min", "max", "and"):
            first = 1
            start = n.Load(self._slot(given, n.Constant(0, I32)), value.type)
            body = (n.Assign(total, combined(statement.op, total, slot)),)
        elif statement.op == "ballot":
            bit = n.Binary("shl", n.Constant(1, U32), n.Cast(lane, U32), U32)
            body = (n.If(slot, (n.Assign(total, n.Binary("or", total, bit, U32)),)),)
        else:
            start = n.TRUE if statement.op == "vote_all" else None
            body = (n.Assign(total, n.Binary(_COMBINED[statement.op], total, slot, total.type)),)
        loop = n.For(lane, n.Constant(first, I32), self.count, 1, body, span=statement.span)
        return (
            n.Assign(given, value, statement.span),
            CUT,
            *self._once(n.Declare(total, start, statement.span), loop),
            n.Assign(statement.result, total, statement.span),
        )

    def _match(self, statement: n.Subgroup) -> n.Block:
        """The lanes whose slot is equal to a lane's own."""
        (value,) = statement.operands
        assert isinstance(value.type, Scalar)
        if value.type.is_float:
            value = n.Bitcast(value, SCALARS[f"u{value.type.bits}"], value.span)
        given = self._lanes("match.value", value.type)
        lane = n.Variable(self.names.fresh("lane"), I32)
        slot = n.Load(self._slot(given, lane), value.type)
        bit = n.Binary("shl", n.Constant(1, U32), n.Cast(lane, U32), U32)
        more = n.Assign(statement.result, n.Binary("or", statement.result, bit, U32))
        same = n.If(n.Binary("eq", slot, given, BOOL), (more,))
        return (
            n.Assign(given, value, statement.span),
            CUT,
            n.Assign(statement.result, n.Constant(0, U32), statement.span),
            n.For(lane, n.Constant(0, I32), self.count, 1, (same,), span=statement.span),
        )

    def _reduction_of_lanes(self, statement: n.Subgroup) -> n.Block:
        """A reduction over a group of lanes: each lane runs the loop for its own group."""
        value, wanted = statement.operands
        neutral = neutral_value(statement)
        assert neutral is not None
        given = self._lanes(f"{statement.op}.value", value.type)
        lane = n.Variable(self.names.fresh("lane"), I32)
        slot = n.Load(self._slot(given, lane), value.type)
        more = n.Assign(statement.result, combined(statement.op, statement.result, slot))
        return (
            n.Assign(given, value, statement.span),
            CUT,
            n.Assign(statement.result, neutral, statement.span),
            n.For(
                lane, n.Constant(0, I32), self.count, 1, (n.If(has_lane(wanted, lane), (more,)),),
                span=statement.span,
            ),
        )  # fmt: skip

    def _prefix_sum(self, statement: n.Subgroup) -> n.Block:
        (value,) = statement.operands
        given = self._lanes("prefix_sum.value", value.type)
        result = self._lanes("prefix_sum.result", value.type)
        total = self._warp_variable("prefix_sum.total", value.type)
        lane = n.Variable(self.names.fresh("lane"), I32)
        body = (
            n.Assign(self._slot(result, lane), total),
            n.Assign(
                total,
                n.Binary("add", total, n.Load(self._slot(given, lane), value.type), value.type),
            ),
        )
        loop = n.For(lane, n.Constant(0, I32), self.count, 1, body, span=statement.span)
        return (
            n.Assign(given, value, statement.span),
            CUT,
            *self._once(n.Declare(total, None, statement.span), loop),
            n.Assign(statement.result, result, statement.span),
        )


def _word(memory: n.Memory, count: int, lane: n.Expression, word: n.Expression) -> n.Element:
    """A lane's word of a factor, of which it has `count`."""
    start = n.Binary("mul", lane, n.Constant(count, I32), I32)
    return n.Element(memory.name, n.Binary("add", start, word, I32), U32)
