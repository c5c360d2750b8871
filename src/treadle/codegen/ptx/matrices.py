"""What the lanes of a warp do with matrices: `mma.sync`, and `ldmatrix` from shared memory.

Cards of compute capability 8.0 and later have one instruction for each product. Those of 7.5 have
smaller ones, of which two or four make it: their halves of the words are laid out alike.
"""

from __future__ import annotations

from treadle.codegen.nvidia import MULTIPLIED
from treadle.codegen.ptx import memory
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.expressions import Expressions
from treadle.codegen.ptx.spelling import MOVES, REGISTERS, is_literal
from treadle.ir import nodes as n
from treadle.ir.matrices import EXCHANGED, PRODUCTS

_HALVES = "m16n8k8.row.col.f32.f16.f16.f32"  # of the inner axis
_WHOLE_BYTES, _QUARTERS = "m16n8k32", "m8n8k16"  # of bytes: of the inner axis and of the rows
_SINCE = (7, 0)
_SINCE_SMALLER = (6, 5)


def matrices(body: Expressions, node: n.Subgroup) -> tuple[str, ...]:
    """The registers with a lane's numbers of the result. `nvidia.has_matrices` holds."""
    if node.op in PRODUCTS:
        return _product(body, node)
    e = body.e
    e.module.has(75, _SINCE_SMALLER)
    (row,) = node.operands
    assert isinstance(row, n.Load)
    count = EXCHANGED[node.result.type]
    results = [e.register("b32") for _ in range(count)]
    turned = ".trans" if node.op == "matrix_columns" else ""
    address = memory.operand(e, body.address(row.place))
    e.ops(results, f"ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16", address)
    return tuple(results)


def _product(body: Expressions, node: n.Subgroup) -> tuple[str, ...]:
    e = body.e
    kind = REGISTERS[PRODUCTS[node.op].sums.name]
    first, second, sums = (
        _registers(e, held, body.value(operand).leaves)
        for held, operand in zip(("b32", "b32", kind), node.operands, strict=True)
    )

    def multiply(shape: str, left: list[str], right: list[str], added: list[str]) -> list[str]:
        results = [e.register(kind) for _ in added]
        operands = [_group(words) for words in (left, right, added)]
        e.ops(results, f"mma.sync.aligned.{shape}", *operands)
        return results

    if e.module.has(80, _SINCE):
        return tuple(multiply(MULTIPLIED[node.op], first, second, sums))
    e.module.has(75, _SINCE_SMALLER)
    for half in range(2):
        left, right = first[2 * half : 2 * half + 2], [second[half]]
        if node.op == "multiply_f16":
            sums = multiply(_HALVES, left, right, sums)
        else:
            quarter = MULTIPLIED[node.op].replace(_WHOLE_BYTES, _QUARTERS)
            upper = multiply(quarter, left[:1], right, sums[:2])
            sums = [*upper, *multiply(quarter, left[1:], right, sums[2:])]
    return tuple(sums)


def _registers(e: Emitter, kind: str, leaves: tuple[str, ...]) -> list[str]:
    """Operands in registers: `mma` takes no numbers."""
    return [e.op(kind, MOVES[kind], leaf) if is_literal(leaf) else leaf for leaf in leaves]


def _group(registers: list[str]) -> str:
    return f"{{{', '.join(registers)}}}"
