"""User-defined literals: calls of the functions that they name."""

from __future__ import annotations

from dataclasses import replace

from treadle.cuda_cpp.lower.context import Context, tree_made
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.values import Value
from treadle.cuda_cpp.syntax import tree


def lower_user_literal(cx: Context, node: tree.UserLiteral) -> Value:
    """`12_km`, as a call of `operator""_km`: with the value, the number's text or its characters as
    template arguments, whichever the file declares."""
    made = tree_made(cx, "user literal", node, lambda: _literal_call(cx, node))
    return lower(cx, made)


def _literal_call(cx: Context, node: tree.UserLiteral) -> tree.Call:
    name = tree.Name(f'operator""{node.suffix}', span=node.span)
    literal = node.literal
    arguments: tuple[tree.Expression, ...] = (literal,)
    if isinstance(literal, tree.StringLiteral):
        arguments = (literal, tree.IntegerLiteral(len(literal.data), "ul", span=node.span))
    elif isinstance(literal, (tree.IntegerLiteral, tree.FloatLiteral)):
        found = lower(cx, name)
        heads = [one.declaration for one in getattr(found, "overloads", ())]
        if isinstance(literal, tree.IntegerLiteral):
            arguments = (replace(literal, suffix="ull"),)
        else:
            arguments = (tree.Cast(tree.BuiltinType("long double"), literal, span=node.span),)
        wanted = "unsigned long long" if isinstance(literal, tree.IntegerLiteral) else "long double"
        if not any(_takes(one, tree.BuiltinType(wanted)) for one in heads):
            if any(one.parameters for one in heads):
                arguments = (tree.StringLiteral(node.text.encode(), node.span),)
            else:
                arguments = ()
                characters = tuple(
                    tree.CharacterLiteral(ord(each), node.span) for each in node.text
                )
                name = replace(name, arguments=characters)
    return tree.Call(name, arguments, span=node.span)


def _takes(function: tree.FunctionDeclaration, type: tree.TypeTree) -> bool:
    return [one.type for one in function.parameters] == [type]
