"""Operator functions and defaulted functions that C++ forbids: by how many operands they have, and
where they are declared."""

from __future__ import annotations

from treadle.cuda_cpp.syntax import tree

_UNARY_TOO = frozenset(("+", "-", "*", "&", "++", "--"))
_UNARY = frozenset(("~", "!"))
_BINARY_TEXT = "/ % ^ | < > <= >= == != <=> << >> && || += -= *= /= %= ^= &= |= <<= >>= ,"
_BINARY = frozenset(_BINARY_TEXT.split())
_MEMBERS = frozenset(("=", "[]", "()", "->"))
_CONVERSION = "operator ()"


def wrong_operator(one: tree.FunctionDeclaration, owner: tree.StructDeclaration | None) -> str:
    """What is wrong with an operator function, in words; "" if nothing is. Of one that is defined
    outside of its class it is not known whether that is a class."""
    name = one.name.text
    if not name.startswith("operator") or one.name.scope:
        return ""
    is_member = owner is not None and "friend" not in one.specifiers
    if name == _CONVERSION and one.name.arguments:
        return _wrong_conversion(one, is_member)
    op = name.removeprefix("operator")
    if op in _MEMBERS and not is_member:
        return f"{name} is a function of a class only: declare it in the class"
    if op not in _UNARY | _UNARY_TOO | _BINARY or any(each.pack for each in one.parameters):
        return ""
    if any(each.default is not None for each in one.parameters):
        return f"{name} has a default argument, which operators cannot have"
    count = len(one.parameters) + (is_member and "static" not in one.specifiers)
    if not _may_have(op, count):
        operands = "one operand" if op in _UNARY else "two operands"
        operands = "one or two operands" if op in _UNARY_TOO else operands
        return f"{name} has {operands}, and this has {count}{' with its object' * is_member}"
    if op in ("++", "--") and count == 2 and _is_other_number(one.parameters[-1].type):
        return f"the second parameter of {name}, for {op} behind its operand, is an int"
    if not is_member and one.parameters and all(_is_built_in(p.type) for p in one.parameters):
        return f"{name} has no operand of a class or enum, so it cannot be another function"
    return ""


def _may_have(op: str, count: int) -> bool:
    if op in _UNARY:
        return count == 1
    return count == 2 or (op in _UNARY_TOO and count == 1)


def _wrong_conversion(one: tree.FunctionDeclaration, is_member: bool) -> str:
    if not is_member:
        return "a conversion function is a function of a class: declare it there"
    if one.parameters:
        return "a conversion function has no parameters"
    if one.name.arguments and one.result is not one.name.arguments[0]:
        return "a conversion function has no type before operator: the one behind it is its result"
    return ""


def _is_other_number(type: tree.TypeTree) -> bool:
    return isinstance(type, tree.BuiltinType) and type.name != "int"


def _is_built_in(type: tree.TypeTree) -> bool:
    while isinstance(type, (tree.ConstType, tree.PointerType, tree.ReferenceType)):
        type = type.of if isinstance(type, tree.ConstType) else type.to
    return isinstance(type, tree.BuiltinType)


def wrong_default(one: tree.FunctionDeclaration, owner: tree.StructDeclaration | None) -> str:
    """What is wrong with `= default`, in words; "" if nothing is."""
    if one.note != "defaulted" or one.name.scope or one.name.text.startswith("operator"):
        return ""
    if owner is None or one.result is not None:
        return f"{one.name.text} is not a function that C++ can define by = default: give it a body"
    copies = len(one.parameters) == 1 and isinstance(one.parameters[0].type, tree.ReferenceType)
    if one.parameters and not copies:
        return "a constructor with such parameters cannot be = default: give it a body"
    return ""
