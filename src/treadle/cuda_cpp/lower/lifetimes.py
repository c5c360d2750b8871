"""Lifetimes of objects whose copies or ends run code.

A prvalue is a place that is marked as one. What is initialized with it takes it over: its
bytes are copied, as if the object had been constructed there, and only the new object is destroyed.
Each block, and each full expression, has a list of the objects that end with it
(`Context.endings`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.cuda_cpp.lower.context import Context, Ending
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.values import Lvalue, SplitStruct, Value, same_object, with_category
from treadle.cuda_cpp.semantics.types import CppType
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of


def begin(cx: Context, value: Value, type: CppType) -> None:
    """Note that an object begins, which ends with the current block or full expression."""
    if not cx.lowering.unevaluated and acts(type):
        cx.endings[-1].append(Ending(with_category(value, "lvalue"), type))


def temporary(cx: Context, value: Any, type: CppType) -> Any:
    """A new temporary object as a prvalue, which ends with the full expression."""
    begin(cx, value, type)
    return with_category(value, "prvalue")


def is_local(cx: Context, value: Value) -> bool:
    """Whether an object is a local variable of this function, or a temporary of it."""
    return any(same_object(one.value, value) for own in cx.endings[1:] for one in own)


def take(cx: Context, value: Value) -> None:
    """Take an object over, which another one continues: it does not end here."""
    for own in reversed(cx.endings):
        for at, one in enumerate(own):
            if same_object(one.value, value):
                del own[at]
                return


def whole_condition(cx: Context, make: Callable[[], n.Expression]) -> n.Expression:
    """A condition that is a full expression: its temporaries end before it is tested."""
    with cx.lifetime() as endings:
        found = make()
        if endings:
            found = cx.copied(found)
    return found


def conditional(cx: Context, before: int, block: list[n.Statement]) -> None:
    """Objects that began in a block which runs on a condition, in a full expression that had
    `before` of them, end only if it ran. The block is not emitted yet."""
    for ending in cx.endings[-1][before:]:
        made = cx.variable("begun", ir.BOOL)
        block.append(n.Assign(made, ending.made or n.TRUE, cx.span))
        ending.made = made
        names = set(_variables(ending.value))
        for at, statement in reversed([*enumerate(block)]):  # declared before the condition
            if isinstance(statement, n.Declare) and statement.variable.name in names:
                cx.emit(n.Declare(statement.variable, None, statement.span))
                if statement.value is None:
                    del block[at]
                    continue
                block[at] = n.Assign(statement.variable, statement.value, statement.span)


def _variables(value: Any) -> list[str]:
    """The variables of the IR that an object consists of."""
    if isinstance(value, SplitStruct):
        return [name for part in value.fields.values() for name in _variables(part)]
    if isinstance(value, Lvalue):
        root = root_of(value.place)
        return [root.name] if isinstance(root, n.Variable) else []
    found = (getattr(value, "offset", None), getattr(value, "tag", None))
    return [one.name for one in found if isinstance(one, n.Variable)]
