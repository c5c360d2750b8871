"""Inline PTX: instructions on 32-bit integers, as statements of C++ that compute the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import STRING
from treadle.cuda_cpp.syntax import expressions, primaries, tree
from treadle.cuda_cpp.syntax.cursor import Cursor

_UNSIGNED = tree.BuiltinType("unsigned int")
_THREAD = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
_LANE = f"({_THREAD} & 31u)"
_REGISTERS = {
    "%laneid": _LANE,
    "%warpid": f"({_THREAD} >> 5)",
    "%nwarpid": "((blockDim.x * blockDim.y * blockDim.z + 31u) >> 5)",
    "%lanemask_eq": f"(1u << {_LANE})",
    "%lanemask_lt": f"((1u << {_LANE}) - 1u)",
    "%lanemask_le": f"((2u << {_LANE}) - 1u)",
    "%lanemask_ge": f"(~((1u << {_LANE}) - 1u))",
    "%lanemask_gt": f"(~((2u << {_LANE}) - 1u))",
    **{
        f"%{name}.{axis}": f"{variable}.{axis}"
        for name, variable in (
            ("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim")
        )
        for axis in "xyz"
    },
}  # fmt: skip
_LENGTH, _PLACE = "({2} & 255u)", "({1} & 255u)"
_END = f"({_PLACE} + {_LENGTH} > 32u ? 32u : {_PLACE} + {_LENGTH})"
_BITS = "(({3} & 255u) >= 32u ? ~0u : (1u << ({3} & 255u)) - 1u)"
_SELECTED = "__byte_perm({0}, {1}, {2} & 0x7777u)"
# The operands are {0}, {1}, … without the destination, as unsigned int.
_FORMULAS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul.lo": "{0} * {1}",
    "mad.lo": "{0} * {1} + {2}",
    "mul.hi.u32": "__umulhi({0}, {1})",
    "mul.hi.s32": "(unsigned int)__mulhi((int){0}, (int){1})",
    "mad.hi.u32": "__umulhi({0}, {1}) + {2}",
    "min.u32": "({0} < {1} ? {0} : {1})",
    "max.u32": "({0} > {1} ? {0} : {1})",
    "min.s32": "((int){0} < (int){1} ? {0} : {1})",
    "max.s32": "((int){0} > (int){1} ? {0} : {1})",
    "mov": "{0}",
    "and.b32": "{0} & {1}",
    "or.b32": "{0} | {1}",
    "xor.b32": "{0} ^ {1}",
    "not.b32": "~{0}",
    "shl.b32": "({1} > 31u ? 0u : {0} << {1})",
    "shr.u32": "({1} > 31u ? 0u : {0} >> {1})",
    "shr.b32": "({1} > 31u ? 0u : {0} >> {1})",
    "shr.s32": "(unsigned int)((int){0} >> ({1} > 31u ? 31u : {1}))",
    "popc.b32": "(unsigned int)__popc({0})",
    "clz.b32": "(unsigned int)__clz((int){0})",
    "brev.b32": "__brev({0})",
    "shf.l.wrap.b32": "__funnelshift_l({0}, {1}, {2})",
    "shf.l.clamp.b32": "__funnelshift_lc({0}, {1}, {2})",
    "shf.r.wrap.b32": "__funnelshift_r({0}, {1}, {2})",
    "shf.r.clamp.b32": "__funnelshift_rc({0}, {1}, {2})",
    "bfe.u32": f"({_PLACE} > 31u || {_LENGTH} == 0u ? 0u : {_LENGTH} > 31u ? {{0}} >> {_PLACE} "
    f": ({{0}} >> {_PLACE}) & ((1u << {_LENGTH}) - 1u))",
    "bfe.s32": f"({_LENGTH} == 0u ? 0u : {_PLACE} > 31u ? (unsigned int)((int){{0}} >> 31) : "
    f"(unsigned int)((int)({{0}} << (32u - {_END})) >> (32u - {_END} + {_PLACE})))",
    "bfi.b32": f"(({{2}} & 255u) > 31u ? {{1}} : ({{1}} & ~({_BITS} << ({{2}} & 255u))) | "
    f"(({{0}} & {_BITS}) << ({{2}} & 255u)))",
    # A selector with its highest bit set repeats the sign of the byte.
    "prmt.b32": " | ".join(
        f"(({{2}} >> {4 * at + 3} & 1u) ? ({_SELECTED} >> {8 * at + 7} & 1u) * {0xFF << 8 * at}u "
        f": {_SELECTED} & {0xFF << 8 * at}u)"
        for at in range(4)
    ),
}
_ANY_TYPE = ("add", "sub", "mul.lo", "mad.lo", "mov")  # of 32 bits
_COUNTS = {
    name: 1 + max(map(int, re.findall(r"\{(\d)\}", text))) for name, text in _FORMULAS.items()
}


@dataclass(frozen=True, slots=True)
class _Operand:
    constraint: str
    value: tree.Expression


def statement(
    c: Cursor, span: Span, parse: Callable[[Cursor, str], tree.Expression]
) -> tree.Statement | None:
    """The statement of `asm("…" : outputs : inputs : clobbers)` from the parenthesis on; None if an
    instruction or operand is not one of those that are known. `parse` reads an expression."""
    close = c.closing(c.index, "asm")
    c.index += 1
    if c.kinds[c.index] != STRING:
        return None
    text = primaries.primary(c)
    if not isinstance(text, tree.StringLiteral):
        return None
    lists: list[list[_Operand]] = []
    while c.index < close and c.texts[c.index] in (":", "::"):
        lists += [[]] * (len(c.texts[c.index]) - 1)
        c.index += 1
        lists.append([] if len(lists) == 2 else _operands(c))
        if len(lists) > 2:  # the clobbers
            break
    outputs, inputs = [*lists, [], []][:2]
    body = _body(text.text, outputs, inputs, lambda formula: parse(c, formula), span)
    return None if body is None else tree.Compound(tuple(body), span)


def _operands(c: Cursor) -> list[_Operand]:
    found: list[_Operand] = []
    while c.kinds[c.index] == STRING:
        constraint = primaries.primary(c)
        c.expect("(", "after the constraint of an operand")
        value = expressions.expression(c)
        c.expect(")", "after the operand")
        written = constraint.text if isinstance(constraint, tree.StringLiteral) else ""
        found.append(_Operand(written, value))
        if not c.accept(","):
            break
    return found


def _body(
    text: str,
    outputs: list[_Operand],
    inputs: list[_Operand],
    parse: Callable[[str], tree.Expression],
    span: Span,
) -> list[tree.Statement] | None:
    if any(one.constraint not in ("=r", "+r", "=&r") for one in outputs):
        return None
    if any(one.constraint not in ("r", "n") for one in inputs):
        return None
    found: list[tree.Statement] = []
    for place, one in enumerate((*outputs, *inputs)):
        reads = one.constraint in ("+r", "r", "n")
        value = tree.Cast(_UNSIGNED, one.value, span=span) if reads else None
        variable = tree.VariableDeclaration(_name(place), _UNSIGNED, value, span=span)
        found.append(tree.DeclarationStatement((variable,), span))
    for line in filter(None, map(str.strip, text.replace("\n", " ").split(";"))):
        formula = _formula(line, len(outputs), len(outputs) + len(inputs))
        if formula is None:
            return None
        target, value_text = formula
        assigned = tree.Assign("=", tree.Name(target, span=span), parse(value_text), span)
        found.append(tree.ExpressionStatement(assigned, span))
    for place, one in enumerate(outputs):
        given = tree.Assign("=", one.value, tree.Name(_name(place), span=span), span)
        found.append(tree.ExpressionStatement(given, span))
    return found


def _name(place: int) -> str:
    return f"__ptx_operand_{place}"


def _formula(line: str, outputs: int, count: int) -> tuple[str, str] | None:
    """The destination of an instruction and what it gets, as text; None if it is not known."""
    op, _, rest = line.partition(" ")
    parts = [one.strip().replace("%%", "%") for one in rest.split(",")]
    destination = re.fullmatch(r"%(\d+)", parts[0])
    if destination is None or int(destination[1]) >= outputs:
        return None
    operands = [_operand(one, count) for one in parts[1:]]
    given = [one for one in operands if one is not None]
    if len(given) < len(operands):
        return None
    target = _name(int(destination[1]))
    if op == "lop3.b32" and len(given) == 4:
        table = re.fullmatch(r"(\d+|0x[0-9a-f]+)u?", given[3], re.IGNORECASE)
        return None if table is None else (target, _lookup(int(table[1], 0), given))
    base, _, type = op.rpartition(".")
    known = base if base in _ANY_TYPE and type in ("u32", "s32", "b32") else op
    if known not in _FORMULAS or op in _ANY_TYPE or len(given) != _COUNTS[known]:
        return None
    return target, _FORMULAS[known].format(*given)


def _operand(text: str, count: int) -> str | None:
    if text in _REGISTERS:
        return _REGISTERS[text]
    own = re.fullmatch(r"%(\d+)", text)
    if own is not None:
        return _name(int(own[1])) if int(own[1]) < count else None
    number = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|\d+)U?", text)
    if number is None:
        return None
    value = int(number[2], 0 if number[2][:2].lower() == "0x" else 10)
    return f"{(-value if number[1] else value) % (1 << 32)}u"


def _lookup(table: int, operands: list[str]) -> str:
    """`lop3`: the bits for which the table has a 1."""
    terms = []
    for at in range(8):
        if table >> at & 1:
            bits = [at >> 2 & 1, at >> 1 & 1, at & 1]
            pairs = zip(bits, operands[:3], strict=True)
            terms.append(" & ".join(one if bit else f"~{one}" for bit, one in pairs))
    return " | ".join(f"({term})" for term in terms) or "0u"
