"""`cp.async`: copies from global to shared memory, that are seen when their thread has waited.

Here a copy reads at once and writes as late as it may: when a wait asks for it. A kernel that does
not wait never sees what it copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.ptx_machine import stages
from tests.support.ptx_machine.arithmetic import Array
from tests.support.ptx_machine.records import Instruction, PtxError
from tests.support.ptx_machine.types import TYPES
from tests.support.ptx_machine.writer import Writer

_SIZES = {"cg": ("16",), "ca": ("4", "8", "16")}


@dataclass
class Begun:
    """A copy of some threads that is not done: where to, what, and in which group of each."""

    threads: Array
    rows: Array
    address: Array
    words: list[Array]
    group: Array
    one: Instruction


class Copies:
    """The copies that are under way."""

    def __init__(self, threads: int) -> None:
        self.begun: list[Begun] = []
        self.groups = np.zeros(threads, np.int64)  # that each thread has ended

    def begin(
        self, threads: Array, rows: Array, address: Array, words: list[Array], one: Instruction
    ) -> None:
        """Copies of the group that is open."""
        given = (threads, rows, address, words, self.groups[threads])
        self.begun.append(Begun(*given, one))  # type: ignore[arg-type]

    def due(self, threads: Array, left: int) -> list[Begun]:
        """Those that some threads wait for: of all groups but the last `left`."""
        waits = np.zeros(len(self.groups), bool)
        waits[threads] = True
        due, others = [], []
        for each in self.begun:
            now = waits[each.threads] & (each.group < self.groups[each.threads] - left)
            if now.any():
                due.append(_some(each, now))
            if not now.all():
                others.append(_some(each, ~now))
        self.begun = others
        return due


def _some(each: Begun, which: Array) -> Begun:
    return Begun(
        each.threads[which], each.rows[which], each.address[which],
        [word[which] for word in each.words], each.group[which], each.one,
    )  # fmt: skip


def cp(w: Writer, one: Instruction) -> None:
    """The code of a copy, of the end of a group, of a wait."""
    words = one.modifiers
    if words[:2] == ("async", "bulk"):
        stages.bulk(w, one)
        return
    if w.program.target < 80:
        raise PtxError(f"{one}: needs sm_80, the target is sm_{w.program.target}")
    if w.guard:
        raise PtxError(f"{one}: has a guard")
    if words == ("async", "commit_group"):
        w.lines.append("F.copies.groups[T] += 1")
        return
    if words == ("async", "wait_group"):
        left = w.read(one.operands[0], TYPES["u32"]).text
        w.lines.append(f"F.finish_copies(T, int({left}))")
        return
    to, source, *sizes = one.operands
    size = str(sizes[0].value) if sizes and hasattr(sizes[0], "value") else ""
    if words[2:] != ("shared", "global") or size not in _SIZES.get(words[1], ()):
        raise PtxError(f"{one}: unknown instruction")
    taken = "None"
    if len(sizes) > 1:
        taken = w.each(w.read(sizes[1], TYPES["u32"]))
    places = f"{w.address(to, 'shared')}, {w.address(source, 'global')}"
    w.lines.append(f"F.begin_copy({places}, {taken}, {size}, T, W, {w.constant(one)})")


def begin_copy(
    frame: Any, to: Array, source: Array, taken: Array | None, size: int, threads: Array,
    rows: Array, one: Instruction,
) -> None:  # fmt: skip
    """Read what is copied: zeros for threads that take no byte."""
    mask = None if taken is None else taken != 0
    if taken is not None and np.any((taken != 0) & (taken != size)):
        raise PtxError(f"{one}: copies a part")
    words = frame.load("global", source, threads, rows, 4, size // 4, one, mask)
    if np.any(to % size):
        raise PtxError(f"{one}: is not aligned")
    frame.copies.begin(threads, rows, to, [np.array(word) for word in words], one)
