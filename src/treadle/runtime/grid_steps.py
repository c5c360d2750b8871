"""What the host does around the parts of a kernel with barriers of the grid, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.passes.grid_parts import Ask, Count, Decide, GridParts, Launch, Step
from treadle.ir.passes.grid_state import ANSWERS
from treadle.ir.printer import expression_text

_LINE = 97  # characters, without the mark of a comment


def host_steps(parts: GridParts, names: Sequence[str], block: Dim3) -> list[str]:
    """Lines that say in which order, and how often, the parts of these names are launched."""
    parts = _without_idle(_without_idle(parts))  # a branch of idle steps is idle, too
    order = list(_in_order(parts))
    numbers: dict[int | None, int] = {at: number for number, at in enumerate(order, 1)}
    lines = [
        f"A kernel with barriers of the grid, as {len(names)} kernels: a launch ends where a "
        "barrier is.",
        "All are launched with the same grid, block and arguments. The host does these steps:",
    ]
    for number, at in enumerate(order, 1):
        lines.append(f"  {number}. {_text(parts.steps[at], names, numbers, number)}")
    words = parts.block_words + block.count * parts.thread_words
    dynamic = f", and {parts.dynamic_words} for each element of dynamic shared memory"
    each = f" and {words} more for each block" if words else ""
    lines.append(
        f"grid.kept is a buffer that lasts over all launches, of {ANSWERS} words of 32 bits{each}"
        f"{dynamic if parts.dynamic_bytes else ''}."
    )
    if parts.asks:
        lines.append(
            "Its first two words are 0 before each launch. After it the first says whether threads "
            "found a condition true, and the second whether some found it false; if neither, all "
            "have returned, and nothing more is launched."
        )
    if parts.counters:
        counters = ", ".join(one.name for one in parts.counters)
        lines.append(f"The host's counters, which are parameters too: {counters}.")
    return [part for line in lines for part in wrap(line, _LINE, subsequent_indent="  ")]


def _without_idle(parts: GridParts) -> GridParts:
    """The parts without steps that only lead to others, as between two barriers in a row."""
    steps = parts.steps

    def busy(at: int | None) -> int | None:
        seen = set[int]()
        while at is not None and at not in seen:
            seen.add(at)
            step = steps[at]
            if not isinstance(step, Decide):
                break
            if step.condition != n.TRUE and step.then != step.otherwise:
                break
            at = step.then
        return at

    def led(step: Step) -> Step:
        match step:
            case Launch() | Count():
                return replace(step, next=busy(step.next))
        return replace(step, then=busy(step.then), otherwise=busy(step.otherwise))

    return replace(parts, steps=tuple(map(led, steps)), first=busy(parts.first))


def _in_order(parts: GridParts) -> Iterator[int]:
    """The steps that are reached, each before what follows if it holds or is done."""
    left, seen = [parts.first], set[int | None]([None])
    while left:
        at = left.pop()
        if at in seen:
            continue
        assert at is not None
        seen.add(at)
        yield at
        match parts.steps[at]:
            case Launch(next=following) | Count(next=following):
                left.append(following)
            case Ask() | Decide() as choice:
                left += [choice.otherwise, choice.then]


def _text(step: Step, names: Sequence[str], numbers: dict[int | None, int], own: int) -> str:
    def then(at: int | None) -> str:
        return "end" if at is None else f"go to {numbers[at]}"

    def after(at: int | None) -> str:
        return "" if at is not None and numbers[at] == own + 1 else f", then {then(at)}"

    match step:
        case Launch(part, following):
            return f"launch {names[part]}{after(following)}"
        case Count(counter, value, following):
            return f"{counter} = {expression_text(value)}{after(following)}"
        case Decide(condition, yes, no):
            return f"if {expression_text(condition)}: {then(yes)}, else {then(no)}"
        case Ask(yes, no, span):
            return f"if the threads found line {span.line} true: {then(yes)}, else {then(no)}"
