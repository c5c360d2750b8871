"""A kernel as basic blocks, and which branches decide whether a block runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from treadle.ptx_analysis.operands import written
from treadle.ptx_analysis.text import Instruction, Kernel, Label

_ENDS = ("ret", "exit", "trap")


@dataclass(frozen=True)
class Block:
    """Instructions that run one after the other."""

    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]
    """Numbers of blocks; -1 is the end of the kernel."""

    @property
    def branch(self) -> Instruction | None:
        """Its last instruction, if that chooses between successors."""
        return self.instructions[-1] if len(set(self.successors)) > 1 else None


@dataclass(frozen=True)
class Flow:
    """A kernel's blocks, by their numbers, and for each the blocks whose branch decides whether it
    runs (its control dependences, and theirs)."""

    blocks: tuple[Block, ...]
    deciders: tuple[frozenset[int], ...]


def flow_of(kernel: Kernel) -> Flow:
    """The basic blocks of a kernel. Blocks that nothing leads to are there, too."""
    blocks = _blocks(kernel)
    return Flow(blocks, _closed(_control_dependences(blocks)))


def writers_of(flow: Flow) -> dict[str, list[Instruction]]:
    """The instructions that write each register."""
    found: dict[str, list[Instruction]] = {}
    for block in flow.blocks:
        for each in block.instructions:
            for name in written(each):
                found.setdefault(name, []).append(each)
    return found


def reachable(blocks: tuple[Block, ...], start: int) -> frozenset[int]:
    """The blocks that may run after a branch to `start`, itself among them."""
    found, waiting = set(), [start]
    while waiting:
        block = waiting.pop()
        if block >= 0 and block not in found:
            found.add(block)
            waiting += blocks[block].successors
    return frozenset(found)


def _blocks(kernel: Kernel) -> tuple[Block, ...]:
    groups: list[list[Instruction]] = [[]]
    labels: dict[str, int] = {}
    tables: dict[str, tuple[str, ...]] = {}
    label = ""
    for each in kernel.body:
        if isinstance(each, Label):
            if groups[-1]:
                groups.append([])
            labels[each.name] = len(groups) - 1
            label = each.name
        elif each.opcode == ".branchtargets":
            tables[label] = each.operands
        else:
            groups[-1].append(each)
            if each.parts[0] in ("bra", "brx", *_ENDS):
                groups.append([])
    return tuple(
        Block(tuple(group), _successors(group, at, len(groups), labels, tables))
        for at, group in enumerate(groups)
    )


def _successors(
    group: list[Instruction],
    at: int,
    count: int,
    labels: Mapping[str, int],
    tables: Mapping[str, tuple[str, ...]],
) -> tuple[int, ...]:
    following = at + 1 if at + 1 < count else -1
    if not group:
        return (following,)
    last = group[-1]
    kind = last.parts[0]
    if kind == "bra":
        to: tuple[int, ...] = (labels.get(last.operands[0], -1),)
    elif kind == "brx":
        to = tuple(labels.get(name, -1) for name in tables.get(last.operands[1], ()))
    elif kind in _ENDS:
        to = (-1,)
    else:
        return (following,)
    return (*to, following) if last.guard else to


def _control_dependences(blocks: tuple[Block, ...]) -> list[set[int]]:
    """For each block those whose branch decides at once whether it runs: it lies on the way from
    one of their successors to their own post-dominator, which runs in any case."""
    after = _post_dominators(blocks)
    found: list[set[int]] = [set() for _ in blocks]
    for at, block in enumerate(blocks):
        for successor in set(block.successors):
            for each in after.get(successor, ()):
                if each >= 0 and (each not in after[at] or each == at):
                    found[each].add(at)
    return found


def _post_dominators(blocks: tuple[Block, ...]) -> dict[int, frozenset[int]]:
    """For each block the blocks that run after it in any case, itself among them. A loop that never
    ends is taken to end after each of its blocks."""
    every = frozenset(range(-1, len(blocks)))
    ends = _leading_to_the_end(blocks)
    found: dict[int, frozenset[int]] = dict.fromkeys(range(len(blocks)), every)
    found[-1] = frozenset({-1})
    changed = True
    while changed:
        changed = False
        for at in range(len(blocks) - 1, -1, -1):
            following = [*blocks[at].successors, *([] if at in ends else [-1])]
            common = frozenset.intersection(*(found[each] for each in following))
            now = common | {at}
            if now != found[at]:
                found[at], changed = now, True
    return found


def _leading_to_the_end(blocks: tuple[Block, ...]) -> frozenset[int]:
    before: dict[int, list[int]] = {}
    for at, block in enumerate(blocks):
        for successor in block.successors:
            before.setdefault(successor, []).append(at)
    found: set[int] = set()
    waiting: list[int] = list(before.get(-1, ()))
    while waiting:
        block_number = waiting.pop()
        if block_number not in found:
            found.add(block_number)
            waiting += before.get(block_number, ())
    return frozenset(found)


def _closed(direct: Iterable[set[int]]) -> tuple[frozenset[int], ...]:
    """The dependences of dependences, too."""
    found = [set(each) for each in direct]
    changed = True
    while changed:
        changed = False
        for each in found:
            more = set().union(*(found[at] for at in each)) - each
            if more:
                each |= more
                changed = True
    return tuple(frozenset(each) for each in found)
