"""Objects by value that a kernel only reads: their scalars are parameters of the launch.

An object with arrays in it has a local memory, which is filled at the start. If the kernel never
writes to it, it is read from the parameters instead. These are uniform, so barriers may depend on
them without an analysis by each target. A memory that is not read is not filled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, zero_of
from treadle.cuda_cpp.lower.context import Context, Lowering
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of, walk

_MOST_CHOICES = 16  # elements that an index selects from without a memory


def remember(cx: Context, memory: str, key: Any, filling: Iterable[n.Statement]) -> None:
    """Record what a memory is filled with at the start, for `read_parameter`. If the kernel writes
    to it, `key` becomes a fact, and the next run of the lowering reads the memory."""
    lowering = cx.lowering
    assigns = [one for one in filling if isinstance(one, n.Assign)]
    lowering.fillings[memory] = assigns
    if key in lowering.facts.assigned or key in lowering.facts.in_memory:
        return
    lowering.parameter_keys[memory] = key
    parts: dict[str | int, Any] = {}
    for one in assigns:
        inner = parts
        *way, last = _steps(one.place)
        for step in way:
            inner = inner.setdefault(_known(step), {})
        inner[_known(last)] = one.value
    lowering.parameter_objects[memory] = parts


def read_parameter(cx: Context, place: n.Place, span: Span) -> n.Expression | None:
    """The value at a place in an object by value that the kernel only reads. None for other places,
    and if an index selects from many elements."""
    root = root_of(place)
    if not isinstance(root, n.Element):
        return None
    parts = cx.lowering.parameter_objects.get(root.memory)
    if parts is None or root.type != cx.lowering.memory_targets[root.memory].element:
        return None
    steps = _steps(place)
    choices = 1
    inner: Any = parts
    for step in steps:
        if not isinstance(inner, dict):
            break
        if isinstance(step, n.Expression) and not isinstance(step, n.Constant):
            choices *= len(inner)
            inner = inner[0]
        elif _known(step) in inner:
            inner = inner[_known(step)]
        else:  # out of the bounds of an array
            return None
    if choices > _MOST_CHOICES:
        return None
    kept = [
        cx.let(step) if isinstance(step, n.Expression) and _costs(step) else step for step in steps
    ]
    return _read(parts, kept, place.type, span)


def _steps(place: n.Place) -> list[Any]:
    """The path to a place from the start of its memory: names of members, indices of elements."""
    steps: list[Any] = []
    while True:
        match place:
            case n.Element(index=index):
                return [index, *reversed(steps)]
            case n.Member(base=base, name=name):
                steps.append(name)
                place = base
            case n.Item(base=base, index=index):
                steps.append(index)
                place = base
            case _:
                raise AssertionError(place)


def _known(step: Any) -> str | int:
    return int(step.value) if isinstance(step, n.Constant) else step


def _costs(index: n.Expression) -> bool:
    """Whether an index should be computed only once."""
    return any(isinstance(node, (n.Load, n.Call)) for node in walk(index))


def _read(parts: Any, steps: list[Any], type: ir.Type, span: Span) -> n.Expression:
    if isinstance(parts, n.Expression):  # a number, or a vector with a component to select
        return n.Extract(parts, steps[0], type, span) if steps else parts
    if not steps:
        assert isinstance(type, ir.Struct)
        fields = tuple(
            _read(parts[field.name], [], field.type, span)
            if field.name in parts
            else zero_of(field.type, span)
            for field in type.fields
        )
        return n.Construct(fields, type, span)
    step, *rest = steps
    if isinstance(step, (str, n.Constant)):
        return _read(parts[_known(step)], rest, type, span)
    result = zero_of(type, span)  # out of bounds
    for at in reversed(range(len(parts))):
        test = n.Binary("eq", step, constant(at, step.type), ir.BOOL, span)
        result = n.Select(test, _read(parts[at], rest, type, span), result, type, span)
    return result


def without_unread(body: n.Block, lowering: Lowering) -> n.Block:
    """The body without the filling of memories that are not used otherwise."""
    fillings = {id(one): memory for memory, all in lowering.fillings.items() for one in all}
    touched = {
        node.memory
        for statement in body
        if id(statement) not in fillings
        for node in walk((statement,))
        if isinstance(node, n.Element)
    }
    return tuple(one for one in body if id(one) not in fillings or fillings[id(one)] in touched)
