"""Messages for calls and operators that no function fits: the candidates, and why each is none."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.cuda_cpp.lower.conversions import IMPOSSIBLE
from treadle.cuda_cpp.lower.values import Braced, Candidate, Rvalue, Value, describe
from treadle.cuda_cpp.semantics.scopes import Overload
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_type

MOST_LISTED = 3  # candidates


def none_fits(
    what: str, overloads: Sequence[Overload], values: Sequence[Value], reasons: Sequence[str]
) -> str:
    """The message that `what` does not take these arguments: the first candidates, each with the
    reason against it."""
    message = f"no {what} takes {spelled_arguments(values)}"
    candidates = [
        _takes(one.declaration, len(values)) + (f" ({reason})" if reason else "")
        for one, reason in zip(overloads[:MOST_LISTED], reasons, strict=False)
    ]
    if len(overloads) > len(candidates) > 0:
        candidates.append(f"and {len(overloads) - len(candidates)} more")
    return f"{message}: {'; '.join(candidates)}" if candidates else message


def spelled_arguments(values: Sequence[Value]) -> str:
    """The types of arguments, in parentheses."""
    return f"({', '.join(map(spelled_value, values))})"


def spelled_value(value: Value) -> str:
    """The type of an argument, or what it is instead."""
    if isinstance(value, Braced):
        return "{…}"
    type = getattr(value, "type", None)
    return describe(value) if type is None else str(type)


def misfit(candidate: Candidate, values: Sequence[Value]) -> str:
    """The first argument that a candidate does not take."""
    parameters = candidate.declaration.parameters
    for number, rank in enumerate(candidate.ranks):
        if rank != IMPOSSIBLE:
            continue
        written, value = parameters[number].type, values[number]
        if (
            isinstance(written, tree.ReferenceType)
            and not (written.rvalue or isinstance(written.to, tree.ConstType))
            and isinstance(value, Rvalue)
        ):
            needs = f"{spell_type(written)} needs a variable"
            return f"argument {number + 1} is a value, and {needs}: name one, or take const"
        given, wanted = spelled_value(value), candidate.types[number]
        return f"argument {number + 1}, {given}, does not convert to {wanted}"
    return ""


def _takes(declaration: tree.FunctionDeclaration, given: int) -> str:
    """What a function takes: how many arguments, or their types if so many were given."""
    parameters = declaration.parameters
    start = f"{declaration.name.text} of line {declaration.span.line} takes"
    if len(parameters) == given:
        return f"{start} ({', '.join(spell_type(one.type) for one in parameters)})"
    most = f"{len(parameters)} argument{'' if len(parameters) == 1 else 's'}"
    least = sum(one.default is None and not one.pack for one in parameters)
    return f"{start} {most}" if least == len(parameters) else f"{start} {least} to {most}"
