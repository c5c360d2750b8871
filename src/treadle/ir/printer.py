"""Kernels as text that people read and `ir.parser` reads back.

    kernel saxpy block(64, 1, 1) {
      buffer x: f32
      buffer y: f32
      parameter a: f32 from ("value", "a")
      parameter y.size: i32 from ("size", "y")

      var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
      if (i < y.size) {
        y[i; i in y.size] = (a * x[i]) + y[i]
      }
    }

What is behind a semicolon in brackets are the checks, with `within` instead of `in` where outside
is expected. `v->x` is a component or field, `(x[i])->y` the field of a loaded value where `x[i]->y`
loads just the field, `@f(a)` a call, `f32(i)` a cast,
`vec2<f32>{a, b}` a value made of parts, `x@u32[i]` memory reinterpreted, `&x` a memory handed on.
Constants without a suffix are i32, f32 or bool. Floats are written exactly. Names that are not
plain words stand in backticks. `print "%5.2f"(x) end ""` formats a number as C does, and adds no
line end.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterable

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import walk

# How an operation is written between its operands. The parser reads the same tables.
BINARY_SIGNS: dict[str, str] = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "floordiv": "//", "mod": "%%",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "logical_and": "&&", "logical_or": "||",
}  # fmt: skip
UNARY_SIGNS: dict[str, str] = {"neg": "-", "not": "!", "invert": "~"}

# Words that mean something to the parser; a name that begins with one is put in backticks.
_WORDS = """
    struct function kernel block fastmath trusting registers streamed acquired volatile buffer
    parameter from shared local
    var if else for in range unroll parallel while update break continue return barrier fence
    sequential atomic subgroup clock call print assert true false nan inf select bitcast void
    vec2 vec3 vec4 array
"""
RESERVED = frozenset(_WORDS.split()) | frozenset(n.BUILTINS) | frozenset(t.SCALARS)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*\Z")
_QUIET_NAN = 0x7FF8000000000000


def to_text(kernel: n.Kernel, spans: bool = False) -> str:
    """The kernel as text. With `spans`, every statement and declaration ends with the place it
    came from (`!file:line:column-end`); the places of expressions are not written."""
    return _Printer(kernel, spans).text()


def expression_text(expression: n.Expression | n.Place) -> str:
    """One expression or place as in the text of a kernel, for messages."""
    return _Printer(None, False).expression(expression)


def spell_name(name: str) -> str:
    """A name as the text shows it: plain, or in backticks if it could be taken for another."""
    if _PLAIN_NAME.match(name) and name.split(".", 1)[0] not in RESERVED:
        return name
    return "`" + json.dumps(name)[1:-1].replace("`", "\\u0060") + "`"


class _Printer:
    def __init__(self, kernel: n.Kernel | None, spans: bool) -> None:
        self.kernel = kernel
        self.spans = spans
        self.lines: list[str] = []
        self.depth = 0
        self.structs = _struct_spellings(kernel) if kernel else {}
        self.memory_types: dict[str, t.Type] = {}  # of the function being printed

    def text(self) -> str:
        kernel = self.kernel
        assert kernel is not None
        for struct_type, spelling in self.structs.items():
            self.open(f"struct {spelling}", None)
            for field in struct_type.fields:
                self.line(f"{spell_name(field.name)}: {self.type(field.type)}")
            self.close(gap=True)
        for function in kernel.functions:
            self.function(function)
        block = f" block({', '.join(map(str, kernel.block))})" if kernel.block else ""
        fastmath = " fastmath" if kernel.fastmath else ""
        trusting = " trusting" if kernel.trusting else ""
        enough = f" registers({kernel.registers})" if kernel.registers else ""
        words = f"{block}{fastmath}{trusting}{enough}"
        self.open(f"kernel {spell_name(kernel.name)}{words}", kernel.span)
        for buffer in kernel.buffers:
            word = "streamed " if buffer.streamed else ""
            word += "acquired " if buffer.acquired else ""
            word += "volatile buffer" if buffer.volatile else "buffer"
            self.line(f"{word} {spell_name(buffer.name)}: {self.type(buffer.element)}", buffer.span)
        for parameter in kernel.parameters:
            origin = ", ".join(json.dumps(part) for part in parameter.origin)
            source = f" from ({origin})" if parameter.origin else ""
            name = spell_name(parameter.name)
            self.line(f"parameter {name}: {parameter.type}{source}", parameter.span)
        self.enter(kernel.buffers, kernel.memories)
        self.memories(kernel.memories)
        if (kernel.buffers or kernel.parameters or kernel.memories) and kernel.body:
            self.lines.append("")
        self.block(kernel.body)
        self.close()
        return "\n".join(self.lines) + "\n"

    # --- lines ---

    def line(self, text: str, span: Span | None = None) -> None:
        self.lines.append("  " * self.depth + text + self.place(span))

    def place(self, span: Span | None) -> str:
        if not self.spans or span is None:
            return ""
        if not span.line:
            return " !-"
        return f" !{json.dumps(span.file)}:{span.line}:{span.column}-{span.end_column}"

    def open(self, text: str, span: Span | None) -> None:
        self.line(text + " {", span)
        self.depth += 1

    def close(self, then: str = "", span: Span | None = None, gap: bool = False) -> None:
        """A closing brace, or with `then` the head of the next part of the statement."""
        self.depth -= 1
        self.line("}" + then, span)
        if then:
            self.depth += 1
        if gap:
            self.lines.append("")

    # --- declarations ---

    def function(self, function: n.Function) -> None:
        parameters = ", ".join(
            f"{spell_name(parameter.name)}: &{self.type(parameter.element)}"
            if isinstance(parameter, n.Buffer)
            else f"{spell_name(parameter.name)}: {self.type(parameter.type)}"
            for parameter in function.parameters
        )
        head = f"function {spell_name(function.name)}({parameters}) -> {self.type(function.result)}"
        self.open(head, function.span)
        buffers = [item for item in function.parameters if isinstance(item, n.Buffer)]
        self.enter(buffers, function.memories)
        self.memories(function.memories)
        self.block(function.body)
        self.close(gap=True)

    def enter(self, buffers: Iterable[n.Buffer], memories: Iterable[n.Memory]) -> None:
        """From here on, elements without a type are of these memories' own types."""
        self.memory_types = {buffer.name: buffer.element for buffer in buffers}
        self.memory_types |= {memory.name: memory.element for memory in memories}

    def memories(self, memories: Iterable[n.Memory]) -> None:
        for memory in memories:
            length = "?" if memory.length is None else memory.length
            name = spell_name(memory.name)
            self.line(f"{memory.space} {name}: {self.type(memory.element)}[{length}]", memory.span)

    def type(self, type: t.Type) -> str:
        match type:
            case t.Struct():
                return self.structs.get(type) or spell_name(type.name)
            case t.Array():
                return f"array<{self.type(type.element)}, {type.length}>"
        return str(type)

    # --- statements ---

    def block(self, block: n.Block) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: n.Statement) -> None:
        match statement:
            case n.If():
                self.if_statement(statement)
            case n.For():
                variable = statement.variable
                bounds = [self.expression(statement.start), self.expression(statement.stop)]
                if statement.by is not None:
                    bounds.append(f"by {self.expression(statement.by)}")
                elif statement.step != 1:
                    bounds.append(str(statement.step))
                flags = " unroll" * statement.unroll + " parallel" * statement.parallel
                declared = f"{spell_name(variable.name)}: {self.type(variable.type)}"
                self.open(f"for {declared} in range({', '.join(bounds)}){flags}", statement.span)
                self.block(statement.body)
                self.close()
            case n.While():
                self.open(f"while ({self.expression(statement.condition)})", statement.span)
                self.block(statement.body)
                if statement.update:
                    self.close(" update {")
                    self.block(statement.update)
                self.close()
            case _:
                self.line(self.simple_statement(statement), statement.span)

    def if_statement(self, statement: n.If) -> None:
        """An if; an if that is all of an else goes on in the same line."""
        self.open(f"if ({self.expression(statement.condition)})", statement.span)
        self.block(statement.then)
        while len(statement.otherwise) == 1 and isinstance(statement.otherwise[0], n.If):
            statement = statement.otherwise[0]
            self.close(f" else if ({self.expression(statement.condition)}) {{", statement.span)
            self.block(statement.then)
        if statement.otherwise:
            self.close(" else {")
            self.block(statement.otherwise)
        self.close()

    def simple_statement(self, statement: n.Statement) -> str:
        match statement:
            case n.Declare():
                value = "" if statement.value is None else f" = {self.expression(statement.value)}"
                variable = statement.variable
                return f"var {spell_name(variable.name)}: {self.type(variable.type)}{value}"
            case n.Assign():
                later = "later " if statement.later else ""
                value = self.expression(statement.value)
                return f"{later}{self.expression(statement.place)} = {value}"
            case n.Return():
                value = "" if statement.value is None else f" {self.expression(statement.value)}"
                return f"return{value}"
            case n.Break():
                return "break"
            case n.Continue():
                return "continue"
            case n.Barrier():
                part = f" part {self.list(statement.part)}" if statement.part else ""
                return f"barrier {statement.scope}{self.mask(statement.mask)}{part}"
            case n.Fence():
                role = "sequential" if statement.sequential else statement.role
                return f"fence {statement.scope} {role}".rstrip()
            case n.Atomic():
                operands = [statement.place, *statement.operands]
                return f"{self.result(statement.result)}atomic {statement.op} {self.list(operands)}"
            case n.Subgroup():
                given = f" {self.list(statement.operands)}" if statement.operands else ""
                operation = f"{statement.op}{given}{self.mask(statement.mask)}"
                return f"{self.result(statement.result)}subgroup {operation}"
            case n.OpaqueStore():
                how = "columns" if statement.columns else "rows"
                given = self.list([statement.place, statement.stride, statement.value])
                return f"opaque {how} {given}"
            case n.Copies():
                return "copies" if statement.left is None else f"copies left {statement.left}"
            case n.Staged():
                numbers = ", ".join(map(str, statement.numbers))
                given = f" from {self.list(statement.operands)}" if statement.operands else ""
                places = f" {self.list(statement.places)}" if statement.places else ""
                return f"staged {statement.op} [{numbers}]{places}{given}"
            case n.Clock():
                return f"{self.result(statement.result)}clock"
            case n.CallStatement():
                call = f"{spell_name(statement.function)}({self.list(statement.arguments)})"
                return f"{self.result(statement.result)}call {call}"
            case n.Print():
                end = "" if statement.end == "\n" else f" end {json.dumps(statement.end)}"
                parts = ", ".join(map(self.printed, statement.parts))
                return f"print {parts}".rstrip() + end
            case n.Assert():
                message = json.dumps(statement.message)
                always = " always" if statement.always else " fault" if statement.fault else ""
                if statement.function:
                    always += f" in {json.dumps(statement.function)}"
                return f"assert {self.expression(statement.condition)}, {message}{always}"
        raise TypeError(f"not a statement: {statement!r}")

    def printed(self, part: str | n.Expression | n.Formatted) -> str:
        match part:
            case str():
                return json.dumps(part)
            case n.Formatted():
                return f"{json.dumps(part.spec)}({self.list((*part.stars, part.value))})"
        return self.expression(part)

    def mask(self, mask: n.Expression | None) -> str:
        return "" if mask is None else f" mask {self.expression(mask)}"

    def result(self, result: n.Variable | None) -> str:
        return "" if result is None else f"{spell_name(result.name)} = "

    def list(self, parts: Iterable[n.Argument | n.Place]) -> str:
        return ", ".join(self.expression(part) for part in parts)

    # --- expressions ---

    def expression(self, node: n.Argument | n.MemoryPlace) -> str:
        match node:
            case n.Constant():
                return constant_text(node)
            case n.Variable():
                return spell_name(node.name)
            case n.Binary():
                left, right = self.operand(node.left), self.operand(node.right)
                return f"{left} {BINARY_SIGNS[node.op]} {right}"
            case n.Load():
                return self.expression(node.place)
            case n.Element():
                seen_as = "" if self.own_type(node) else f"@{self.type(node.type)}"
                index = self.expression(node.index)
                return f"{spell_name(node.memory)}{seen_as}[{index}{self.checks(node.checks)}]"
            case n.Member():
                return f"{self.expression(node.base)}->{spell_name(node.name)}"
            case n.Item():
                index = self.expression(node.index)
                return f"{self.expression(node.base)}[{index}{self.checks(node.checks)}]"
            case n.Builtin():
                axis = f".{'xyz'[node.axis]}" if node.name not in ("lane", "subgroup_size") else ""
                return node.name + axis
            case n.Unary():
                # A number in parentheses is negated; without, the sign would be its own.
                operand = self.operand(node.operand)
                if node.op == "neg" and isinstance(node.operand, n.Constant):
                    operand = f"({operand})"
                return UNARY_SIGNS[node.op] + operand
            case n.Select():
                return f"select({self.list((node.condition, node.if_true, node.if_false))})"
            case n.Cast():
                return f"{self.type(node.type)}({self.expression(node.operand)})"
            case n.Bitcast():
                return f"bitcast<{self.type(node.type)}>({self.expression(node.operand)})"
            case n.Intrinsic():
                return f"{node.op}({self.list(node.operands)})"
            case n.Call():
                return f"@{spell_name(node.function)}({self.list(node.arguments)})"
            case n.Construct():
                return f"{self.type(node.type)}{{{self.list(node.operands)}}}"
            case n.Extract():
                operand = self.expression(node.operand)
                if not isinstance(node.operand, (n.Variable, n.Extract)):
                    operand = f"({operand})"
                return f"{operand}->{spell_name(node.name)}"
            case n.MemoryReference():
                return f"&{spell_name(node.memory)}"
        raise TypeError(f"not an expression: {node!r}")

    def operand(self, node: n.Expression) -> str:
        text = self.expression(node)
        return f"({text})" if isinstance(node, n.Binary) else text

    def checks(self, checks: tuple[n.Check, ...]) -> str:
        texts = []
        for position, check in enumerate(checks):
            axis = "" if check.axis == position else f"axis {check.axis}: "
            inside = "within" if check.expected else "in"
            index, bound = self.expression(check.index), self.expression(check.bound)
            of = f" of {json.dumps(check.of)}" if check.of else ""
            texts.append(f"{axis}{index} {inside} {bound}{of}")
        return "; " + ", ".join(texts) if texts else ""

    def own_type(self, element: n.Element) -> bool:
        """Whether an element has its memory's own type, as far as the text can tell."""
        return self.kernel is None or element.type == self.memory_types.get(element.memory)


def constant_text(constant: n.Constant) -> str:
    """A constant, exactly: Python's shortest form of a float gives back all of its bits."""
    value, type = constant.value, constant.type
    suffix = "" if type in (t.BOOL, t.I32, t.F32) else f":{type}"
    if type == t.BOOL:
        return "true" if value else "false"
    if type.is_integer:
        return f"{int(value)}{suffix}"
    value = float(value)
    if math.isnan(value):
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return ("nan" if bits == _QUIET_NAN else f"nan(0x{bits:x})") + suffix
    return f"{value!r}{suffix}"


def _struct_spellings(kernel: n.Kernel) -> dict[t.Struct, str]:
    """The structs a kernel uses, inner before outer; one of a name already taken gets a `~2`."""
    found: dict[t.Struct, str] = {}
    taken: set[str] = set()

    def add(type: t.Type) -> None:
        if isinstance(type, t.Array):
            add(type.element)
        if not isinstance(type, t.Struct) or type in found:
            return
        for field in type.fields:
            add(field.type)
        plain = spelling = spell_name(type.name)
        number = 2
        while spelling in taken:
            spelling = f"{plain}~{number}"
            number += 1
        taken.add(spelling)
        found[type] = spelling

    for function in kernel.functions:
        for parameter in function.parameters:
            add(parameter.element if isinstance(parameter, n.Buffer) else parameter.type)
        add(function.result)
        _types_inside(function.memories, function.body, add)
    for buffer in kernel.buffers:
        add(buffer.element)
    _types_inside(kernel.memories, kernel.body, add)
    return found


def _types_inside(
    memories: tuple[n.Memory, ...], body: n.Block, add: Callable[[t.Type], None]
) -> None:
    for memory in memories:
        add(memory.element)
    for node in walk(body):
        if hasattr(node, "type"):
            add(node.type)
