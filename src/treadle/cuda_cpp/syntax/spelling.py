"""Types and simple expressions as C++ text, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.syntax import tree


def spell_type(written: tree.TypeTree | None) -> str:
    """The text of a type."""
    match written:
        case tree.BuiltinType(name):
            return name
        case tree.NamedType(name):
            return spell_name(name)
        case tree.DefinedType(definition):
            return definition.name or "struct"
        case tree.AutoType():
            return "auto"
        case tree.DecltypeType():
            return "decltype(…)"
        case tree.ConstType(of, const, volatile):
            words = [*(["const"] if const else []), *(["volatile"] if volatile else [])]
            if isinstance(of, tree.PointerType):
                return " ".join([spell_type(of), *words])
            return " ".join([*words, spell_type(of)])
        case tree.PointerType(tree.FunctionType(result, parameters)):
            return f"{spell_type(result)} (*)({_spell_parameters(parameters)})"
        case tree.PointerType(to):
            return f"{spell_type(to)}*"
        case tree.ReferenceType(to, rvalue):
            return f"{spell_type(to)}{'&&' if rvalue else '&'}"
        case tree.ArrayType(of, size):
            return f"{spell_type(of)}[{'' if size is None else spell_expression(size)}]"
        case tree.FunctionType(result, parameters):
            return f"{spell_type(result)}({_spell_parameters(parameters)})"
        case tree.MemberPointerType(owner, to):
            return f"{spell_type(to)} {spell_name(owner)}::*"
    return "void"


def _spell_parameters(parameters: Sequence[tree.Parameter]) -> str:
    return ", ".join(spell_type(one.type) for one in parameters)


def spell_name(name: tree.Name) -> str:
    """The text of a name with its qualification and template arguments."""
    spelled = "::".join([*(part.text for part in name.scope), name.text])
    if name.arguments is None:
        return spelled
    return f"{spelled}<{', '.join(map(spell_argument, name.arguments))}>"


def spell_argument(argument: Any) -> str:
    """The text of a template argument: a type or a value."""
    try:
        text = spell_expression(argument)
    except KeyError:
        return spell_type(argument)
    return text


def spell_expression(node: Any) -> str:
    """The text of a simple expression; KeyError for other ones."""
    match node:
        case tree.IntegerLiteral(value=value, suffix=suffix):
            return f"{value}{suffix}"
        case tree.FloatLiteral(value=value, suffix=suffix):
            return f"{value}{suffix}"
        case tree.BoolLiteral(value=value):
            return str(value).lower()
        case tree.CharacterLiteral(value=value):
            return repr(chr(value))
        case tree.Name():
            return spell_name(node)
        case tree.Binary(op=op, left=left, right=right):
            return f"{spell_expression(left)} {op} {spell_expression(right)}"
        case tree.Unary(op=op, operand=operand):
            return f"{op}{spell_expression(operand)}"
        case tree.Call(function=function, arguments=arguments):
            return f"{spell_expression(function)}({', '.join(map(spell_expression, arguments))})"
        case tree.Member(base=base, name=name, arrow=arrow):
            return f"{spell_expression(base)}{'->' if arrow else '.'}{spell_name(name)}"
        case tree.Subscript(base=base, index=index):
            return f"{spell_expression(base)}[{spell_expression(index)}]"
        case tree.SizeOf(operand=operand, op=op):
            return f"{op}({spell_argument(operand)})"
    raise KeyError(node.__class__.__name__)
