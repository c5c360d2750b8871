"""Branches of inline PTX as statements of C++.

What jumps over some instructions becomes an `if`, what jumps back a loop. Other flow becomes a loop
over all pieces between labels, of which a number says the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.cuda_cpp.syntax.ptx_text import NotTranslated


@dataclass(frozen=True, slots=True)
class Jump:
    """A branch to a place, if its C++ condition holds; "" for one that always does."""

    condition: str
    to: int  # the number of the statement that is next


Step = str | Jump


class _Tangled(Exception):
    """The flow is not made of branches and loops."""


def structured(steps: Sequence[Step], number: str) -> str:
    """The C++ text of statements and jumps among them; `number` is a free name of a variable."""
    try:
        return _Flow(steps).part(0, len(steps), None, None)
    except _Tangled:
        return _by_number(steps, number)


class _Flow:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.jumps = [(at, one.to) for at, one in enumerate(steps) if isinstance(one, Jump)]

    def part(self, first: int, end: int, again: int | None, over: int | None) -> str:
        """The text of the steps from `first` to `end`, inside a loop whose `continue` leads to
        `again` and whose `break` to `over`."""
        text, at = "", first
        while at < end:
            back = [source for source, to in self.jumps if to == at and at <= source < end]
            if back and at != again:
                last = back[-1] + 1
                self.check_entries(at, last)
                text += self.loop(at, last, back)
                at = last
                continue
            step = self.steps[at]
            if isinstance(step, str):
                text += step
                at += 1
                continue
            if step.to in (again, over):
                word = "continue;" if step.to == again else "break;"
                text += f"if ({step.condition}) {word}" if step.condition else word
                at += 1
                continue
            if not at < step.to <= end:
                raise _Tangled
            made, at = self.branch(at, step, end, again, over)
            text += made
        return text

    def loop(self, first: int, end: int, back: Sequence[int]) -> str:
        last = self.steps[end - 1]
        assert isinstance(last, Jump)
        if len(back) == 1 and end - 1 > first:  # nothing else continues it
            body = self.part(first, end - 1, first, end)
            return f"do {{{body}}} while ({last.condition or 'true'});"
        ends = "break;" if last.condition else ""
        return f"while (true) {{{self.part(first, end, first, end)}{ends}}}"

    def branch(
        self, at: int, step: Jump, end: int, again: int | None, over: int | None
    ) -> tuple[str, int]:
        """An `if` over what a jump leaves out, and the step after it."""
        to = step.to
        if not step.condition:  # no thread comes to what is left out
            self.check_entries(at + 1, to, at_start=True)
            return "", to
        self.check_entries(at + 1, to, at_start=True)
        last = self.steps[to - 1] if to - 1 > at else None
        if isinstance(last, Jump) and not last.condition and to < last.to <= end:
            entries = [source for source, target in self.jumps if target == to and source != at]
            if not entries and last.to not in (again, over):  # if … else …
                self.check_entries(to, last.to)
                one = self.part(at + 1, to - 1, again, over)
                other = self.part(to, last.to, again, over)
                return f"if (!({step.condition})) {{{one}}} else {{{other}}}", last.to
        return f"if (!({step.condition})) {{{self.part(at + 1, to, again, over)}}}", to

    def check_entries(self, first: int, end: int, at_start: bool = False) -> None:
        """Nothing outside of the steps leads into them, at their start perhaps."""
        for source, to in self.jumps:
            inside = first <= to < end if at_start else first < to < end
            if inside and not first <= source < end:
                raise _Tangled


def _by_number(steps: Sequence[Step], number: str) -> str:
    """A loop over the pieces between targets of jumps: `number` says which one is next."""
    targets = {0, *(one.to for one in steps if isinstance(one, Jump))}
    targets |= {at + 1 for at, one in enumerate(steps) if isinstance(one, Jump)}
    starts = sorted(one for one in targets if one < len(steps))
    text = f"unsigned int {number} = 0u; while ({number} < {len(steps)}u) {{"
    for first, end in zip(starts, [*starts[1:], len(steps)], strict=True):
        text += f"if ({number} == {first}u) {{ {number} = {end}u;"
        for one in steps[first:end]:
            if isinstance(one, str):
                text += one
            else:
                given = f"if ({one.condition}) " if one.condition else ""
                text += f"{given}{number} = {one.to}u;"
        text += "}"
    return text + "}"


def target_of(
    labels: dict[tuple[int, ...], dict[str, int]], name: str, scope: tuple[int, ...]
) -> int:
    """The place of a label that is seen from a scope."""
    for depth in range(len(scope), -1, -1):
        found = labels.get(scope[:depth], {}).get(name)
        if found is not None:
            return found
    raise NotTranslated(f"its text has no label {name}")
