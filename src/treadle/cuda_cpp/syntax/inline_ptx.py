"""Inline PTX as statements of C++ that compute the same, on every target.

Registers become variables, predicates conditions, and each instruction an assignment or a call
(`ptx_formulas.py`, `ptx_instructions.py`). What is not translated becomes a statement that is
refused when a kernel with it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import STRING
from treadle.cuda_cpp.syntax import expressions, primaries, tree
from treadle.cuda_cpp.syntax.cursor import Cursor, SyntaxProblem
from treadle.cuda_cpp.syntax.ptx_flow import Jump, structured, target_of
from treadle.cuda_cpp.syntax.ptx_instructions import translated
from treadle.cuda_cpp.syntax.ptx_text import (
    Declaration,
    Instruction,
    Label,
    NotTranslated,
    Registers,
    Statement,
    addresses,
    statements,
)

_TYPES: dict[str, tree.TypeTree] = {
    "h": tree.BuiltinType("unsigned short"),
    "r": tree.BuiltinType("unsigned int"),
    "l": tree.BuiltinType("unsigned long long"),
    "f": tree.BuiltinType("float"),
    "d": tree.BuiltinType("double"),
    "address": tree.PointerType(tree.BuiltinType("char")),
}


_LETTERS = ("h", "r", "q", "l", "f", "d", "n", "C")  # of CUDA's constraints


@dataclass(frozen=True, slots=True)
class _Operand:
    constraint: str
    value: tree.Expression
    span: Span  # of the constraint


def statement(
    c: Cursor, span: Span, parse: Callable[[Cursor, str], tree.Statement]
) -> tree.Statement:
    """The statement of `asm("…" : outputs : inputs : clobbers)` from the parenthesis on. `parse`
    reads a block."""
    close = c.closing(c.index, "asm")
    c.index += 1
    try:
        return _statement(c, span, close, parse)
    except NotTranslated as reason:
        return tree.RefusedStatement("asm", span, str(reason))
    except (IndexError, ValueError):  # operands or modifiers that are not there, or not numbers
        return tree.RefusedStatement("asm", span, "it is not well-formed PTX")


def _statement(
    c: Cursor, span: Span, close: int, parse: Callable[[Cursor, str], tree.Statement]
) -> tree.Statement:
    text = primaries.primary(c) if c.kinds[c.index] == STRING else None
    if not isinstance(text, tree.StringLiteral):
        raise c.problem('the text of asm is a string literal, such as "membar.gl;"')
    lists: list[list[_Operand]] = []
    while c.index < close and c.texts[c.index] in (":", "::"):
        lists += [[]] * (len(c.texts[c.index]) - 1)
        c.index += 1
        lists.append([] if len(lists) == 2 else _operands(c))
        if len(lists) > 2:  # the clobbers
            break
    outputs, inputs = [*lists, [], []][:2]
    _check_constraints(c, outputs, inputs)
    _check_operands(c, text.text, len(outputs) + len(inputs), span)
    found = list(statements(text.text))
    instructions = [one for one in found if isinstance(one, Instruction)]
    operands = [*outputs, *inputs]
    kinds = {f"%{place}": _kind(one) for place, one in enumerate(operands)}
    wide = {name: kind for name, kind in kinds.items() if kind == "l"}
    for one in found:
        if isinstance(one, Declaration) and one.kind == "l":
            wide |= dict.fromkeys(one.names, "l")
    pointers = addresses(instructions, wide)
    kinds |= {name: "address" for name in kinds if name in pointers}
    registers = Registers([{name: (_name(name), kind) for name, kind in kinds.items()}])
    _check_outputs(outputs, kinds)
    checks = [tree.OperandCheck(one.constraint.lstrip("=+&"), one.value, span) for one in operands]
    body = [*checks, *_declared(operands, kinds, span)]
    flows = any(
        isinstance(one, Label) or (isinstance(one, Instruction) and one.parts[0] == "bra")
        for one in found
    )
    text_of = _with_branches if flows else _straight
    body.append(parse(c, f"{{{text_of(found, registers, pointers)}}}"))
    for place, output in enumerate(outputs):
        made = tree.Name(_name(f"%{place}"), span=span)
        body.append(tree.ExpressionStatement(tree.Assign("=", output.value, made, span), span))
    return tree.Compound(tuple(body), span)


def _check_operands(c: Cursor, text: str, count: int, span: Span) -> None:
    """Report an operand in the text that is not given."""
    for number in map(int, re.findall(r"(?<!%)%(\d+)", text)):
        if number >= count:
            given = f"has {count}, from %0 on" if count else "has none"
            message = f"the text of asm names the operand %{number}, and asm {given}"
            c.report(SyntaxProblem(message, span))
            return


def _check_constraints(c: Cursor, outputs: Sequence[_Operand], inputs: Sequence[_Operand]) -> None:
    """Report constraints that nvcc does not take."""
    for one in (*outputs, *inputs):
        wrong = _wrong_constraint(one.constraint, any(one is each for each in outputs))
        if wrong:
            c.report(SyntaxProblem(wrong, one.span))


def _wrong_constraint(constraint: str, is_output: bool) -> str:
    """What is wrong with a constraint, in words; "" if nothing is."""
    letter = constraint.lstrip("=+&")
    if len(letter) < 2 and letter not in _LETTERS:
        return f'the constraint "{constraint}" of asm is none of CUDA\'s: {", ".join(_LETTERS)}'
    if is_output and constraint == letter:
        return f'an output of asm has the constraint "={letter}", or "+{letter}" if it is read, too'
    if is_output and letter in ("n", "C"):
        return f'the constraint "{letter}" of asm is for constants, which cannot be outputs'
    if not is_output and constraint != letter:
        return f'an input of asm has the constraint "{letter}": outputs are before the second colon'
    return ""


def _check_outputs(outputs: Sequence[_Operand], kinds: dict[str, str]) -> None:
    for place in range(len(outputs)):
        if kinds[f"%{place}"] == "address":
            raise NotTranslated(f"%{place} is an address, and cannot be given to a number")


def _name(operand: str) -> str:
    return f"__ptx_operand_{operand[1:]}"


def _kind(operand: _Operand) -> str:
    letter = operand.constraint.lstrip("=+&")
    if letter == "n":
        return "r"
    if letter not in _TYPES or letter == "address":
        raise NotTranslated(f"an operand with the constraint {operand.constraint!r} is not known")
    return letter


def _declared(
    operands: Sequence[_Operand], kinds: dict[str, str], span: Span
) -> list[tree.Statement]:
    """The operands as variables, with the values of those that are read."""
    found: list[tree.Statement] = []
    for place, one in enumerate(operands):
        type = _TYPES[kinds[f"%{place}"]]
        reads = not one.constraint.startswith("=")
        value = tree.Cast(type, one.value, span=span) if reads else None
        constant = frozenset({"constexpr"} if one.constraint == "n" else ())
        variable = tree.VariableDeclaration(
            _name(f"%{place}"), type, value, specifiers=constant, span=span
        )
        found.append(tree.DeclarationStatement((variable,), span))
    return found


def _straight(found: Sequence[Statement], r: Registers, pointers: set[str]) -> str:
    """The C++ text of statements without branches."""
    lines = []
    for one in found:
        if isinstance(one, str):
            _enter_or_leave(one, r)
            lines.append(one)
        else:
            lines.append(_line(one, r, pointers))
    return "".join(lines)


def _with_branches(found: Sequence[Statement], r: Registers, pointers: set[str]) -> str:
    """The C++ text of statements with branches: all registers are declared before them."""
    declared: list[str] = []
    labels: dict[tuple[int, ...], dict[str, int]] = {}
    steps: list[str | tuple[str, str, tuple[int, ...]]] = []
    scope: tuple[int, ...] = ()
    for place, one in enumerate(found):
        match one:
            case str():
                _enter_or_leave(one, r)
                scope = (*scope, place) if one == "{" else scope[:-1]
            case Declaration():
                declared.append(_line(one, r, pointers))
            case Label(name):
                labels.setdefault(scope, {})[name] = len(steps)
            case Instruction() if one.parts[0] == "bra":
                if one.name not in ("bra", "bra.uni") or len(one.arguments) != 1:
                    raise NotTranslated(f"{one.name} is not translated")
                steps.append((_guard(one, r), one.arguments[0].text, scope))
            case _:
                steps.append(_line(one, r, pointers))
    flow = [
        one if isinstance(one, str) else Jump(one[0], target_of(labels, *one[1:])) for one in steps
    ]
    return "".join(declared) + structured(flow, r.fresh())


def _enter_or_leave(brace: str, r: Registers) -> None:
    if brace == "{":
        r.scopes.append({})
    elif len(r.scopes) == 1:
        raise NotTranslated("its braces do not match")
    else:
        r.scopes.pop()


def _line(one: Statement, r: Registers, pointers: set[str]) -> str:
    """The C++ text of a declaration or an instruction."""
    if isinstance(one, Declaration):
        return "".join(
            r.declare(name, "address" if name in pointers else one.kind) for name in one.names
        )
    assert isinstance(one, Instruction)
    made = translated(r, one)
    return f"if ({_guard(one, r)}) {{{made}}}" if one.guard else made


def _guard(one: Instruction, r: Registers) -> str:
    """The condition of an instruction; "" if it has none."""
    if not one.guard:
        return ""
    found = r.find(one.guard.removeprefix("!"))
    if found is None or found[1] != "p":
        raise NotTranslated(f"{one.guard} is not a predicate")
    return f"{'!' if one.guard[0] == '!' else ''}{found[0]}"


def _operands(c: Cursor) -> list[_Operand]:
    found: list[_Operand] = []
    while c.kinds[c.index] == STRING:
        span = c.span
        constraint = primaries.primary(c)
        c.expect("(", "after the constraint of an operand")
        value = expressions.expression(c)
        c.expect(")", "after the operand")
        written = constraint.text if isinstance(constraint, tree.StringLiteral) else ""
        found.append(_Operand(written, value, span))
        if not c.accept(","):
            break
    return found
