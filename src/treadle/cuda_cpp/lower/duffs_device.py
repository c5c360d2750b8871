"""Cases in a loop or block of a switch (Duff's device), as a switch and a loop of their own."""

from __future__ import annotations

from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context, tree_made
from treadle.cuda_cpp.syntax import tree

_LABELS = (tree.Case, tree.Default)
_LOOPS = (tree.DoWhile, tree.While, tree.For)
_ENTERED, _HERE = "<entered>", "<here>"  # the section of the loop to start at; this iteration's


def flattened(body: tuple[tree.Statement, ...]) -> tuple[tree.Statement, ...]:
    """The statements of a switch, and of blocks in it that have cases and declare nothing."""
    found: list[tree.Statement] = []
    for one in body:
        if isinstance(one, tree.Compound) and _has_cases(one) and not _declares(one):
            found.extend(flattened(one.body))
        else:
            found.append(one)
    return tuple(found)


def _has_cases(block: tree.Statement) -> bool:
    if not isinstance(block, tree.Compound):
        return False
    return any(isinstance(one, _LABELS) or _has_cases(one) for one in block.body)


def _declares(block: tree.Compound) -> bool:
    return any(
        isinstance(one, (tree.DeclarationStatement, tree.StructuredBinding)) for one in block.body
    )


def without_cases_in_loop(cx: Context, node: tree.Switch) -> tree.Statement | None:
    """`switch (…) { case 0: do { …; case 1: …; } while (…); }` without cases in a loop: one switch
    that selects where the first iteration starts, then the loop. None for other switches."""
    if not isinstance(node.body, tree.Compound):
        return None
    body = flattened(node.body.body)
    last = body[-1] if body else None
    labels = body[:-1]
    if not isinstance(last, _LOOPS) or not _has_cases(last.body):
        return None
    if not all(isinstance(one, _LABELS) for one in labels):
        return None
    if isinstance(last, tree.For) and isinstance(last.initializer, tree.DeclarationStatement):
        return None
    loop = last
    made: tree.Statement = tree_made(cx, "loop with cases", node, lambda: _made(node, labels, loop))
    return made


def _made(node: tree.Switch, labels: tuple[Any, ...], loop: Any) -> tree.Statement:
    span = node.span
    choices: list[tree.Statement] = [*labels, *_start_at(0, span)]
    sections: list[list[tree.Statement]] = [[]]
    for one in flattened(loop.body.body):
        if isinstance(one, _LABELS):
            if sections[-1] or len(sections) == 1:
                sections.append([])
                choices.extend([one, *_start_at(len(sections) - 1, span)])
            else:
                choices.insert(-2, one)
        else:
            sections[-1].append(one)
    if not labels:
        choices = choices[2:]
    here = tree.Name(_HERE, span=span)
    steps: list[tree.Statement] = [
        _declared(_HERE, tree.Name(_ENTERED, span=span), span),
        _assigned(0, span),
    ]
    for at, section in enumerate(sections):
        reached = tree.Binary("<=", here, tree.IntegerLiteral(at), span)
        steps.append(tree.If(reached, tree.Compound(tuple(section), span), span=span))
    inside = tree.Compound(tuple(steps), span)
    entered = tree.Name(_ENTERED, span=span)
    anywhere = tree.Binary(">=", entered, tree.IntegerLiteral(0), span)
    return tree.Compound(
        (
            _declared(_ENTERED, tree.Unary("-", tree.IntegerLiteral(1), span), span),
            tree.Switch(node.condition, tree.Compound(tuple(choices), span), span=span),
            tree.If(anywhere, _loop(loop, inside, span), span=span),
        ),
        span,
    )


def _loop(loop: Any, body: tree.Compound, span: Span) -> tree.Statement:
    """The loop, whose condition is not tested before an iteration that a case starts."""
    if isinstance(loop, tree.DoWhile):
        return tree.DoWhile(body, loop.condition, span)
    inside = tree.Binary(">", tree.Name(_ENTERED, span=span), tree.IntegerLiteral(0), span)
    condition = loop.condition
    if condition is not None:
        condition = tree.Binary("||", inside, condition, span)
    if isinstance(loop, tree.While):
        return tree.While(condition, body, loop.unroll, span)
    first = tree.Unary("!", inside, span)
    initial = () if loop.initializer is None else (tree.If(first, loop.initializer, span=span),)
    made = tree.For(None, condition, loop.update, body, loop.unroll, span)
    return tree.Compound((*initial, made), span)


def _declared(name: str, value: tree.Expression, span: Span) -> tree.Statement:
    variable = tree.VariableDeclaration(name, tree.BuiltinType("int", span), value, span=span)
    return tree.DeclarationStatement((variable,), span)


def _assigned(value: int, span: Span) -> tree.Statement:
    target = tree.Name(_ENTERED, span=span)
    return tree.ExpressionStatement(
        tree.Assign("=", target, tree.IntegerLiteral(value), span), span
    )


def _start_at(section: int, span: Span) -> tuple[tree.Statement, ...]:
    return _assigned(section, span), tree.Break(span)
