"""Operations on the matrices of a subgroup, for targets that have none: each lane gets the words of
the others that it needs, and computes its own numbers of the result.

A number of the result is a sum over the inner axis, whose elements four lanes hold in two words
each. The words come from other lanes by shuffles here, and from their slots of an array where lanes
run one after another (`passes.warps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.matrices import EXCHANGED, EXCHANGES, PRODUCTS, MatrixProduct
from treadle.ir.passes.names import Names
from treadle.ir.rules import BYTE_DOTS
from treadle.ir.traverse import Node, rewrite_kernel
from treadle.ir.types import BF16, BOOL, COMPONENTS, F16, F32, I32, U16, U32, Vector

_TF32_BITS = 0xFFFFE000  # that a product of TF32 looks at
_UPPER_HALF = 0xFFFF0000


class Words(Protocol):
    """Where the words of other lanes come from: statements that give a variable a word of a lane,
    of operand `operand`."""

    def __call__(
        self, operand: int, word: n.Expression, lane: n.Expression, into: n.Variable
    ) -> n.Block:
        """The statements."""


def without_matrices(kernel: n.Kernel, lacks: Callable[[n.Subgroup], bool]) -> n.Kernel:
    """The kernel with the operations that a target lacks made of shuffles."""
    names = Names(kernel)

    def change(node: Node) -> Node:
        if isinstance(node, n.Subgroup) and node.op in n.MATRIX_OPERATIONS and lacks(node):
            return _by_shuffles(node, names)
        return node

    return rewrite_kernel(kernel, change)


def with_unchecked_rows(kernel: n.Kernel) -> n.Kernel:
    """The kernel with rows of matrices loaded without checks, for instructions that load them: in
    place of a row outside another one is loaded, and its elements become zeros in all lanes."""
    names = Names(kernel)

    def change(node: Node) -> Node:
        if not (isinstance(node, n.Subgroup) and node.op in EXCHANGES):
            return node
        (row,) = node.operands
        if not (isinstance(row, n.Load) and isinstance(row.place, n.Element) and row.place.checks):
            return node
        return _with_zeros(node, row.place, names)

    return rewrite_kernel(kernel, change)


def _with_zeros(node: n.Subgroup, place: n.Element, names: Names) -> n.Block:
    span = node.span
    inside = n.Variable(names.fresh("matrix.inside"), BOOL)
    rows = n.Variable(names.fresh("matrix.rows"), U32)  # those that are inside, as bits
    within: n.Expression = n.TRUE
    for check in place.checks:
        both = ir.both(ir.binary("ge", check.index, 0), ir.binary("lt", check.index, check.bound))
        within = both if within == n.TRUE else ir.both(within, both)
    at = ir.select(inside, place.index, 0)
    load = n.Load(n.Element(place.memory, at, place.type, (), place.span), place.type, span)
    words: list[n.Expression] = []
    count = EXCHANGED[node.result.type]
    for number, component in enumerate(COMPONENTS[:count]):
        word = node.result if count == 1 else ir.extract(node.result, component)
        if node.op == "matrix_rows":
            source = ir.add(ir.binary("shr", n.Builtin("lane"), 2), 8 * number)
            words.append(ir.select(_has_bit(rows, source), word, 0))
            continue
        source = ir.add(ir.mul(_lane_part("and", 3), 2), 8 * number)
        low = ir.select(_has_bit(rows, source), ir.binary("and", word, 0xFFFF), 0)
        high = ir.select(_has_bit(rows, ir.add(source, 1)), ir.binary("and", word, _UPPER_HALF), 0)
        words.append(ir.binary("or", low, high))
    return (
        n.Declare(inside, within, span),
        n.Declare(rows, None, span),
        n.Subgroup("ballot", (inside,), rows, None, span),
        n.Subgroup(node.op, (load,), node.result, None, span),
        n.Assign(node.result, _together(words, node.result), span),
    )


def _together(words: Sequence[n.Expression], result: n.Variable) -> n.Expression:
    """The words of a lane as the value of a variable."""
    return words[0] if len(words) == 1 else n.Construct(tuple(words), result.type)


def _has_bit(bits: n.Expression, number: n.Expression) -> n.Expression:
    return ir.binary("ne", ir.binary("and", ir.binary("shr", bits, ir.cast(number, U32)), 1), 0)


def _by_shuffles(node: n.Subgroup, names: Names) -> n.Block:
    given = [
        n.Variable(names.fresh("matrix.words"), operand.type)
        for operand in node.operands[: 2 if len(node.operands) == 3 else 1]
    ]
    declared = [
        n.Declare(variable, operand, node.span)
        for variable, operand in zip(given, _real_rows(node), strict=False)
    ]

    def word_of(operand: int, word: n.Expression, lane: n.Expression, into: n.Variable) -> n.Block:
        """All of a lane's words are sent, since lanes may want different ones."""
        count = operand_words(given[operand])
        if isinstance(word, n.Constant):
            value = ir.extract(given[operand], COMPONENTS[int(word.value)])
            return (n.Subgroup("shuffle", (value, lane), into, None, node.span),)
        own = [n.Variable(names.fresh("matrix.part"), U32) for _ in range(count)]
        sent: list[n.Statement] = []
        for at, part in enumerate(own):
            value = ir.extract(given[operand], COMPONENTS[at])
            sent.append(n.Declare(part, None, node.span))
            sent.append(n.Subgroup("shuffle", (value, lane), part, None, node.span))
        chosen: n.Expression = own[-1]
        for at in reversed(range(count - 1)):
            chosen = ir.select(ir.equal(word, at), own[at], chosen)
        return (*sent, n.Assign(into, chosen, node.span))

    return (*declared, *computed(node, word_of, names))


def _real_rows(node: n.Subgroup) -> Sequence[n.Expression]:
    """The operands; lanes whose rows no lane gets load the first one."""
    if node.op not in EXCHANGES or EXCHANGED[node.result.type] == 4:
        return node.operands
    (row,) = node.operands
    if not (isinstance(row, n.Load) and isinstance(row.place, n.Element)) or row.place.checks:
        return node.operands
    lanes = 8 * EXCHANGED[node.result.type]
    has = ir.binary("lt", n.Builtin("lane"), lanes)
    return (replace(row, place=replace(row.place, index=ir.select(has, row.place.index, 0))),)


def computed(node: n.Subgroup, word_of: Words, names: Names) -> n.Block:
    """What a lane does for its numbers of the result, given the words of others."""
    if node.op in PRODUCTS:
        return _product(node, PRODUCTS[node.op], word_of, names)
    return _exchange(node, word_of, names)


def _lane_part(op: str, by: int) -> n.Expression:
    return ir.binary(op, n.Builtin("lane"), by)


def _product(node: n.Subgroup, product: MatrixProduct, word_of: Words, names: Names) -> n.Block:
    """A loop over the four lanes that hold parts of a row or column, and over their two words."""
    span = node.span
    sums = [n.Variable(names.fresh("matrix.sum"), product.sums) for _ in range(4)]
    start = n.Variable(names.fresh("matrix.sums"), node.result.type)
    part = n.Variable(names.fresh("matrix.part"), I32)
    half, quad = ir.binary("shr", part, 2), ir.binary("and", part, 3)
    row = n.Variable(names.fresh("matrix.row"), I32)  # the first lane of this row's four
    columns = [n.Variable(names.fresh("matrix.column"), I32) for _ in range(2)]
    words = [n.Variable(names.fresh("matrix.word"), U32) for _ in range(4)]
    upper, lower, *seconds = words
    body: list[n.Statement] = [n.Declare(each, None, span) for each in words]
    body += word_of(0, ir.mul(half, 2), ir.add(row, quad), upper)
    body += word_of(0, ir.add(ir.mul(half, 2), 1), ir.add(row, quad), lower)
    for second, column in zip(seconds, columns, strict=True):
        body += word_of(1, half, ir.add(column, quad), second)
    body += _dots(product, sums, (upper, lower), seconds, names)
    first_column = ir.mul(_lane_part("and", 3), 8)
    return (
        n.Declare(start, node.operands[2], span),
        *(
            n.Declare(total, ir.extract(start, COMPONENTS[at]), span)
            for at, total in enumerate(sums)
        ),
        n.Declare(row, _lane_part("and", 28), span),
        n.Declare(columns[0], first_column, span),
        n.Declare(columns[1], ir.add(first_column, 4), span),
        n.For(part, ir.constant(0, I32), ir.constant(8, I32), 1, tuple(body), span=span),
        n.Assign(node.result, n.Construct(tuple(sums), node.result.type), span),
    )


def _dots(
    product: MatrixProduct,
    sums: Sequence[n.Variable],
    firsts: Sequence[n.Variable],
    seconds: Sequence[n.Variable],
    names: Names,
) -> n.Block:
    """Add the products of the elements of two words each."""
    if product.per == 4:
        left, right = ([n.Bitcast(word, I32) for word in words] for words in (firsts, seconds))
        op = "dot4_" + "".join(dict.fromkeys(map(str, product.elements)))
        if op not in BYTE_DOTS:  # those of unsigned and signed bytes take the unsigned ones first
            op = "dot4_u8i8"
            pairs = [(right[at % 2], left[at // 2]) for at in range(len(sums))]
        else:
            pairs = [(left[at // 2], right[at % 2]) for at in range(len(sums))]
        return tuple(
            n.Assign(total, n.Intrinsic(op, (*pair, total), I32))
            for total, pair in zip(sums, pairs, strict=True)
        )
    statements: list[n.Statement] = []
    for at in range(product.per):
        values = []
        for word in (*firsts, *seconds):
            value = n.Variable(names.fresh("matrix.element"), F32)
            statements.append(n.Declare(value, _element(product, word, at)))
            values.append(value)
        for number, total in enumerate(sums):
            added = ir.mul(values[number // 2], values[2 + number % 2])
            statements.append(n.Assign(total, ir.add(added, total)))
    return tuple(statements)


def _element(product: MatrixProduct, word: n.Expression, at: int) -> n.Expression:
    """Part `at` of a word as float32."""
    if product.element == F32:
        return n.Bitcast(ir.binary("and", word, _TF32_BITS), F32)
    if product.element == BF16:
        high = ir.binary("and", word, _UPPER_HALF) if at else ir.binary("shl", word, 16)
        return n.Bitcast(high, F32)
    assert product.element == F16
    half = n.Cast(ir.binary("shr", word, 16) if at else word, U16)
    return n.Cast(n.Bitcast(half, F16), F32)


def _exchange(node: n.Subgroup, word_of: Words, names: Names) -> n.Block:
    """The rows of matrices of 8 x 8 elements, brought to the lanes that hold them."""
    span = node.span
    count = EXCHANGED[node.result.type]
    results = [n.Variable(names.fresh("matrix.result"), U32) for _ in range(count)]
    statements: list[n.Statement] = []
    lane = n.Builtin("lane")
    for at, result in enumerate(results):
        statements.append(n.Declare(result, None, span))
        if node.op == "matrix_rows":
            source = ir.add(ir.binary("shr", lane, 2), 8 * at)
            statements += word_of(0, _lane_part("and", 3), source, result)
            continue
        halves: list[n.Expression] = []
        for row in range(2):
            source = ir.add(ir.mul(_lane_part("and", 3), 2), 8 * at + row)
            word = n.Variable(names.fresh("matrix.word"), U32)
            statements.append(n.Declare(word, None, span))
            statements += word_of(0, ir.binary("shr", lane, 3), source, word)
            shift = ir.cast(ir.mul(ir.binary("and", ir.binary("shr", lane, 2), 1), 16), U32)
            half = ir.binary("and", n.Binary("shr", word, shift, U32), 0xFFFF)
            halves.append(ir.binary("shl", half, 16) if row else half)
        statements.append(n.Assign(result, ir.binary("or", *halves), span))
    return (*statements, n.Assign(node.result, _together(results, node.result), span))


def operand_words(operand: n.Expression) -> int:
    """How many words a lane has of an operand."""
    assert isinstance(operand.type, Vector)
    return operand.type.count
