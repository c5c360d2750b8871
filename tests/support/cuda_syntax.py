"""Trees of CUDA C++ in short: what tests compare, and how they get a tree from a text."""

from __future__ import annotations

from treadle.cuda_cpp.source.preprocessor import preprocess
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.translation_unit import Parsed, parse

FILE = "test.cu"


def parsed(text: str) -> Parsed:
    """The tree of a text, without what every file includes, and its errors."""
    read = preprocess(text, FILE)
    own = [token for token in read.tokens if token.file == FILE]
    return parse(own, read.texts, FILE)


def declarations(text: str) -> tuple[tree.Declaration, ...]:
    """The declarations of a text that has no errors."""
    found = parsed(text)
    assert not found.errors, str(found.errors[0])
    return found.unit.declarations


def function(text: str) -> tree.FunctionDeclaration:
    """The last declaration of a text, which is a function."""
    found = declarations(text)[-1]
    assert isinstance(found, tree.FunctionDeclaration)
    return found


def statements(text: str, before: str = "") -> tuple[tree.Statement, ...]:
    """The statements of a device function."""
    body = function(f"{before}\n__device__ void f() {{\n{text}\n}}").body
    assert body is not None
    return body.body


def expression(text: str, before: str = "") -> str:
    """An expression, with parentheses around everything."""
    (found,) = statements(f"{text};", before)
    assert isinstance(found, tree.ExpressionStatement)
    return shown(found.expression)


def variable(text: str, before: str = "") -> str:
    """The variables that a statement declares, as `name: type`, with what they begin with."""
    (found,) = statements(text, before)
    assert isinstance(found, tree.DeclarationStatement)
    return "; ".join(shown(declared) for declared in found.declarations)


def error_lines(text: str) -> list[int]:
    """The lines of the errors in a text."""
    return [error.line for error in parsed(text).errors]


def shown(node: object) -> str:
    """A tree in one line."""
    match node:
        case None:
            return ""
        case tree.This():
            return "this"
        case tree.Name(text, scope, arguments):
            path = "::".join([*(shown(part) for part in scope), text])
            return path if arguments is None else f"{path}<{_list(arguments)}>"
        case tree.Unary(op, operand):
            return f"({op}{shown(operand)})"
        case tree.Postfix(op, operand):
            return f"({shown(operand)}{op})"
        case tree.Binary(op, left, right) | tree.Assign(op, left, right):
            return f"({shown(left)} {op} {shown(right)})"
        case tree.Conditional(condition, if_true, if_false):
            return f"({shown(condition)} ? {shown(if_true)} : {shown(if_false)})"
        case tree.Call(called, arguments, launch):
            return f"{shown(called)}{'<<<>>>' if launch else ''}({_list(arguments)})"
        case tree.Subscript(base, index):
            return f"{shown(base)}[{shown(index)}]"
        case tree.Member(base, name, arrow):
            return f"{shown(base)}{'->' if arrow else '.'}{shown(name)}"
        case tree.Cast(kind, operand, style):
            return f"{style}<{shown(kind)}>({shown(operand)})"
        case tree.Construct(kind, arguments, braces):
            inner = _list(arguments)
            return f"new_value {shown(kind)}" + (f"{{{inner}}}" if braces else f"({inner})")
        case tree.InitializerList(items, names):
            named = names or (None,) * len(items)
            pairs = zip(named, items, strict=True)
            return "{" + ", ".join(f"{f'.{n}=' if n else ''}{shown(i)}" for n, i in pairs) + "}"
        case tree.SizeOf(operand, op):
            return f"{op}({shown(operand)})"
        case tree.PackExpansion(pattern):
            return f"{shown(pattern)}..."
        case tree.Lambda(default, captures, call):
            parts = [default, *(_capture(one) for one in captures)]
            given = ", ".join(
                f"{p.name}: {shown(p.type)}".removeprefix(": ") for p in call.parameters
            )
            const = " const" * call.const
            return (
                f"lambda[{' '.join(filter(None, parts))}]({given} -> {shown(call.result)}{const})"
            )
        case tree.Refused(construct) | tree.RefusedStatement(construct):
            return f"REFUSED {construct}"
        case tree.VariableDeclaration():
            return _variable(node)
        case _:
            return _literal(node) or _allocation(node) or _type(node)


def _capture(node: tree.Capture) -> str:
    value = "" if node.initializer is None else f" = {shown(node.initializer)}"
    return f"{'&' * (node.by_reference and node.name != 'this')}{node.name}{value}"


def _literal(node: object) -> str:
    match node:
        case tree.IntegerLiteral(value, suffix):
            return f"{value}{suffix}"
        case tree.FloatLiteral(value, suffix):
            return f"{value!r}{suffix}"
        case tree.CharacterLiteral(value):
            return f"char {value}"
        case tree.StringLiteral(data):
            return repr(data.decode())
        case tree.UserLiteral(literal, suffix):
            return f"{_literal(literal)}{suffix}"
        case tree.BoolLiteral(value):
            return str(value).lower()
        case tree.NullLiteral():
            return "nullptr"
    return ""


def _type(node: object) -> str:
    match node:
        case tree.BuiltinType(name):
            return name
        case tree.NamedType(name):
            return shown(name)
        case tree.AutoType():
            return "auto"
        case tree.DecltypeType(operand):
            return f"decltype({shown(operand)})"
        case tree.DefinedType(definition):
            return f"defined {type(definition).__name__}"
        case tree.ConstType(of, const, volatile):
            return f"{'const ' * const}{'volatile ' * volatile}{shown(of)}"
        case tree.PointerType(to, restrict):
            return f"{'restrict ' * restrict}pointer to {shown(to)}"
        case tree.ReferenceType(to, rvalue):
            return f"{'rvalue ' * rvalue}reference to {shown(to)}"
        case tree.ArrayType(of, size):
            return f"array[{shown(size)}] of {shown(of)}"
        case tree.FunctionType(result, parameters):
            return f"function({_list(p.type for p in parameters)}) to {shown(result)}"
        case _:
            raise AssertionError(f"a test meets {type(node).__name__}")


def _variable(node: tree.VariableDeclaration) -> str:
    initializer = ""
    if node.initializer is not None:
        initializer = f" {'direct' if node.direct else '='} {shown(node.initializer)}"
    words = "".join(f"{word} " for word in sorted(node.specifiers))
    return f"{words}{node.name}: {shown(node.type)}{initializer}"


def _list(nodes: object) -> str:
    return ", ".join(shown(node) for node in nodes)  # type: ignore[attr-defined]


def _allocation(node: object) -> str:
    match node:
        case tree.New(kind, count, initializer, place):
            where = "" if place is None else f"({shown(place)}) "
            length = "" if count is None else f"[{shown(count)}]"
            values = "" if initializer is None else f" {shown(initializer)}"
            return f"new {where}{shown(kind)}{length}{values}"
        case tree.Delete(operand, array):
            return f"delete{'[]' * array} {shown(operand)}"
    return ""
