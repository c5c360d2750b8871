"""Which threads run next: groups that stand at one place, their partings, meetings and waits.

Where a branch divides a group, the part at the smallest block number goes first, so that those who
left a loop or took the shorter way wait for the others, and groups that meet become one. A barrier
holds a group until every thread of its block is there that has not returned, and what a warp does
together one that lacks threads which it names.

Threads that run in step never show that a barrier is missing. So in kernels with shared memory or
barriers the odd warps of a block wait until the even ones have come to the next barrier, and the
other way round from there to the one after. Where there are fences, threads may wait for others in
a loop, so that the others go on now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array
from tests.support.ptx_machine.memory import MachineFault, MissingMembers, NotYet
from tests.support.ptx_machine.program import BasicBlock, Program
from tests.support.ptx_machine.records import Integer
from tests.support.ptx_machine.warps import WARP, Warps

_PATIENCE = 16  # blocks of code, after which another group has a turn
_MOST_STEPS = 5_000_000  # blocks of code that a chunk may run: more is a loop without an end


class Layout:
    """The threads of some blocks of one size, numbered block after block."""

    def __init__(self, blocks: int, per_block: int) -> None:
        self.blocks, self.per_block = blocks, per_block
        self.lanes = blocks * per_block
        self.all = np.arange(self.lanes)
        self.rows = np.repeat(np.arange(blocks), per_block)
        self.in_block = np.tile(np.arange(per_block), blocks)
        self.odd = self.in_block // WARP % 2 == 1
        self._warps = Warps(blocks, per_block)
        self.known: dict[Any, Any] = {}  # special registers

    def warps(self) -> Warps:
        """The warps, all of them running."""
        return copy(self._warps)


@lru_cache(maxsize=64)
def layout_of(blocks: int, per_block: int) -> Layout:
    """The layout, made once."""
    return Layout(blocks, per_block)


class Schedule:
    """The groups of a chunk's threads. A group is the threads' numbers; None is all there are."""

    def __init__(self, program: Program, layout: Layout, warps: Warps, first_block: int) -> None:
        self._program = program
        self._layout = layout
        self._warps = warps
        self._first_block = first_block
        shared = any(variable.space == "shared" for variable in program.variables.values())
        barriers = any(block.end == "barrier" for block in program.blocks)
        self._apart = (shared or barriers) and bool(layout.odd.any())
        self._fences = any(
            one.opcode in ("fence", "membar") for block in program.blocks for one in block.body
        )
        self._turn = False  # whether the odd warps go first
        self._groups: dict[tuple[bool, int], Any] = {}  # later or not, and the block's number
        self._waiting: dict[int, Any] = {}
        self._named: Array | None = None  # the numbers of barriers, and of threads, in registers
        self._parked: dict[tuple[bool, int], Any] = {}  # groups that lack threads they name
        self._moved = True  # whether anybody went on since these were last tried
        self._stuck = False
        self._late = False  # of the group that runs

    def run(self, code: Callable[[BasicBlock, Any], Array | None]) -> None:
        """Run `code` for groups until every thread has returned; it gives a block's condition."""
        blocks = self._program.blocks
        self._start(0, None)
        for step in range(_MOST_STEPS):
            if not self._groups:
                if self._parked:
                    self._groups, self._parked = self._parked, {}
                    self._stuck, self._moved = not self._moved, False
                    continue
                if not self._waiting:
                    return
                self._release()
            key = min(self._groups)
            if self._fences and step % _PATIENCE == 0:
                key = sorted(self._groups)[step // _PATIENCE % len(self._groups)]
            threads = self._groups.pop(key)
            self._late, number = key
            block = blocks[number]
            try:
                condition = code(block, threads)
            except MissingMembers as fault:
                # In a structured program threads are together, but for those that wait alone, and
                # where groups have turns.
                together = self._program.structured and not self._parked and not self._fences
                if self._stuck or (together and not isinstance(fault, NotYet)):
                    raise
                if len(fault.go_on):
                    self._groups[key] = fault.go_on
                    threads = self._layout.all if threads is None else threads
                    threads = threads[~np.isin(threads, fault.go_on)]
                self._parked[key] = threads
                continue
            self._moved = True
            if block.end == "jump":
                self._add(block.target, threads)
            elif block.end == "branch":
                self._divide(condition, threads, block.target, block.next)
            elif block.end == "exit":
                self._leave(condition, threads, block.next)
            elif block.end == "trap":
                raise MachineFault(f"{block.last}: a trap")
            elif threads is None:
                self._add(block.next, None)
            else:
                if condition is not None:
                    self._note(condition, threads)
                waiting = self._waiting.get(number)
                self._waiting[number] = threads if waiting is None else _joined(waiting, threads)
        raise MachineFault(f"{self._program.name}: it does not come to an end")

    def _start(self, number: int, threads: Any) -> None:
        """Let threads go on that may pass a barrier, or begin."""
        if not self._apart:
            self._late = False
            self._add(number, threads)
            return
        some = self._layout.all if threads is None else threads
        later = self._layout.odd[some] != self._turn
        for self._late, part in ((False, some[~later]), (True, some[later])):
            if len(part):
                self._add(number, part)

    def _add(self, number: int, threads: Any) -> None:
        groups, key = self._groups, (self._late, number)
        if key in self._parked:
            threads = _joined(self._parked.pop(key), threads)
        if key in groups:
            threads = _joined(groups[key], threads)
            if len(threads) == self._layout.lanes:
                threads = None
        groups[key] = threads

    def _divide(self, condition: Any, threads: Any, target: int, next: int) -> None:
        count = self._layout.lanes if threads is None else len(threads)
        taken = int(np.count_nonzero(condition)) if np.ndim(condition) else bool(condition) * count
        if taken == count:
            self._add(target, threads)
        elif taken == 0:
            self._add(next, threads)
        else:
            some = self._layout.all if threads is None else threads
            self._add(target, some[condition])
            self._add(next, some[~condition])

    def _leave(self, condition: Any, threads: Any, next: int) -> None:
        if threads is None and condition is None:
            return  # nobody is left to care
        some = self._layout.all if threads is None else threads
        if condition is None:
            self._warps.leave(some)
            return
        condition = np.broadcast_to(condition, some.shape)
        if condition.any():
            self._warps.leave(some[condition])
            threads = some[~condition]
        if threads is None or len(threads):
            self._add(next, threads)

    def _release(self) -> None:
        """Everybody waits at barriers: blocks that are complete go on. Warps may wait at several
        instructions, the threads of one warp at one."""
        self._turn = not self._turn
        if any(len(self._program.blocks[number].last.operands) > 1 for number in self._waiting):
            self._release_parts()
            return
        waiting, self._waiting = self._waiting, {}
        layout, warps = self._layout, self._warps
        place = np.full(layout.lanes, -1)
        for number, threads in waiting.items():
            place[layout.all if threads is None else threads] = number
        runs = warps.running[warps.warp] & warps.bit != 0
        places = np.unique(np.stack((warps.warp, place))[:, runs], axis=1)
        torn = places[0, 1:][places[0, 1:] == places[0, :-1]]
        apart = np.isin(warps.warp, torn) if len(waiting) > 1 else place < 0
        for number, threads in waiting.items():
            block = self._program.blocks[number]
            for row, there, running in self._incomplete(threads, place >= 0, apart):
                raise MachineFault(
                    f"{block.last}: {there} of {running} threads of block "
                    f"{self._first_block + row} are here; the others wait elsewhere"
                )
        for number, threads in waiting.items():
            self._start(self._program.blocks[number].next, threads)

    def _release_parts(self) -> None:
        """The same with barriers of parts of a block: those go on at which enough threads wait."""
        waiting, self._waiting = self._waiting, {}
        layout, warps = self._layout, self._warps
        runs = warps.running[warps.warp] & warps.bit != 0
        running = np.bincount(layout.rows[runs], minlength=layout.blocks)
        # By block and barrier: the instructions, and the threads at each.
        arrived: dict[tuple[int, int], list[tuple[int, Array]]] = {}
        needed: dict[tuple[int, int], int] = {}
        for number, threads in waiting.items():
            some = layout.all if threads is None else threads
            names, counts = self._asked(number, some)
            for row, name, count in np.unique(
                np.stack((layout.rows[some], names, counts)), axis=1
            ).T.tolist():
                own = some[(layout.rows[some] == row) & (names == name)]
                arrived.setdefault((row, name), []).append((number, own))
                needed[row, name] = count or int(running[row])
        moved = False
        for (row, name), groups in arrived.items():
            there = sum(len(threads) for _, threads in groups)
            if there > needed[row, name]:
                raise MachineFault(f"barrier {name}: {there} threads, {needed[row, name]} expected")
            for number, threads in groups:
                if there == needed[row, name]:
                    self._start(self._program.blocks[number].next, threads)
                    moved = True
                    continue
                before = self._waiting.get(number)
                self._waiting[number] = threads if before is None else _joined(before, threads)
        if not moved:
            raise MachineFault(f"{self._program.name}: threads wait at barriers for ever")

    def _note(self, values: Array, threads: Array) -> None:
        """Keep which barriers threads wait at, and for how many, as their registers say."""
        if self._named is None:
            self._named = np.zeros((2, self._layout.lanes), np.int64)
        self._named[: len(values), threads] = values

    def _asked(self, number: int, threads: Array) -> tuple[Array, Array]:
        """The barrier that each thread waits at, and for how many: 0 are all of its block."""
        operands = self._program.blocks[number].last.operands
        if all(isinstance(one, Integer) for one in operands):
            name, *count = (one.value for one in operands)
            return np.full(len(threads), name), np.full(len(threads), count[0] if count else 0)
        assert self._named is not None
        return self._named[0, threads], self._named[1, threads]

    def _incomplete(self, threads: Array, waits: Array, apart: Array) -> Iterator[tuple[int, ...]]:
        """Rows of blocks some of whose running threads are here, where others do not wait or a
        warp is apart; how many are here, and how many run."""
        layout, warps = self._layout, self._warps
        runs = warps.running[warps.warp] & warps.bit != 0

        def counted(some: Array) -> Array:
            return np.bincount(layout.rows[some], minlength=layout.blocks)

        there, running = counted(threads), counted(runs)
        wrong = (counted(runs & waits) < running) | (counted(runs & apart) > 0)
        for row in np.flatnonzero((there > 0) & wrong):
            yield int(row), int(there[row]), int(running[row])


def _joined(some: Array, others: Array) -> Array:
    both = np.concatenate((some, others))
    both.sort()
    return both
