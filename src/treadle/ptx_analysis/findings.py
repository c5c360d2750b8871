"""All that is said of a module's kernels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from treadle.ptx_analysis.flow import Flow, flow_of, writers_of
from treadle.ptx_analysis.lanes import LaneValues, bank_passes, sectors
from treadle.ptx_analysis.operands import address, address_names, read
from treadle.ptx_analysis.text import Instruction, Kernel, parse
from treadle.ptx_analysis.variance import Variance, ends_otherwise, partly_run, variance_of
from treadle.ptx_analysis.wide_loads import Access, wide_loads

_USUAL_BLOCK = (256, 1, 1)
_BOUNDED = ("and", "rem", "min", "max", "selp", "slct", "bfe", "sad")
"""What keeps an index within bounds without a branch."""
_BY_LANE = ("ld", "st", "ldmatrix", "stmatrix")
"""Opcodes with an address for each lane. Atomics are made one after the other in any case."""
_STRIDED = 2
"""From how many times the sectors that would do an access to global memory is reported."""


@dataclass(frozen=True)
class Finding:
    """Something to look at, in one place or several that are alike."""

    kind: str
    """"barrier", "unchecked", "banks" or "sectors"."""
    text: str
    places: tuple[Instruction, ...]


@dataclass(frozen=True)
class KernelReport:
    """What is said of a kernel."""

    name: str
    line: int
    block: tuple[int, int, int]
    block_is_required: bool
    """Whether the kernel says so (`.reqntid`); else the block is an assumption."""
    instructions: int
    shared: int
    """Bytes of shared memory that are declared."""
    has_dynamic_shared: bool
    barriers: int
    accesses: tuple[tuple[str, int], ...]
    """How many instructions access each state space."""
    findings: tuple[Finding, ...]
    unknown: int
    """Accesses to shared and global memory of which it is not known how lanes' addresses differ."""


def report(text: str, block: tuple[int, int, int] | None = None) -> tuple[KernelReport, ...]:
    """What can be said of each kernel of a PTX module from its text alone.

    `block` is assumed for kernels that do not require one; 256 threads if it is None. Raises
    `FormatError` if the text is not PTX.
    """
    return tuple(_of_kernel(kernel, block) for kernel in parse(text).kernels)


def _of_kernel(kernel: Kernel, block: tuple[int, int, int] | None) -> KernelReport:
    flow = flow_of(kernel)
    variance = variance_of(flow)
    lanes = LaneValues(flow, kernel.block or block or _USUAL_BLOCK)
    memory = list(_memory(kernel, flow, lanes))
    spaces: dict[str, int] = {}
    for each in kernel.instructions:
        if (space := _space(each)) is not None:
            spaces[space] = spaces.get(space, 0) + 1
    findings = [*_barriers(flow, variance), *_unchecked(flow, variance)]
    findings += [each for each in memory if each is not None]
    return KernelReport(
        kernel.name,
        kernel.line,
        lanes.block,
        kernel.block is not None,
        len(kernel.instructions),
        sum(each.bytes for each in kernel.shared),
        any(each.bytes == 0 for each in kernel.shared),
        sum(_is_barrier(each) for each in kernel.instructions),
        tuple(sorted(spaces.items())),
        _joined(findings),
        memory.count(None),
    )


def _joined(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings of the same words as one, in the order of their first places."""
    places: dict[tuple[str, str], list[Instruction]] = {}
    for each in findings:
        places.setdefault((each.kind, each.text), []).extend(each.places)
    found = [Finding(*key, tuple(sorted(at, key=lambda i: i.line))) for key, at in places.items()]
    return tuple(sorted(found, key=lambda each: each.places[0].line))


def _is_barrier(instruction: Instruction) -> bool:
    """Whether all threads of a block wait for each other there."""
    parts = instruction.parts
    return parts[0] in ("bar", "barrier") and not {"warp", "arrive", "cluster"} & set(parts)


def _barriers(flow: Flow, variance: Variance) -> Iterator[Finding]:
    """Barriers that threads of a block may reach at different times, or not at all."""
    waiting = [
        at for at, block in enumerate(flow.blocks) if any(map(_is_barrier, block.instructions))
    ]
    for at in waiting:
        for each in filter(_is_barrier, flow.blocks[at].instructions):
            if each.guard and each.guard in variance.registers:
                words = f"{each.guard} differs between the threads of a block"
                yield Finding("barrier", words, (each,))
        branches = partly_run(flow, variance, at)
        first = next(filter(_is_barrier, flow.blocks[at].instructions))
        # Threads that have returned are not waited for.
        ended = [each for each in branches if ends_otherwise(flow, each, at, waiting)]
        chosen = [each for each in branches if each not in ended] or ended
        if chosen:
            words = f"threads of a block go different ways at {_lines(flow, chosen)}"
            if chosen == ended:
                words += "; right only if those that do not come here have returned"
            yield Finding("barrier", words, (first,))


def _lines(flow: Flow, branches: Iterable[int]) -> str:
    """Where branches are, in words."""
    places = [flow.blocks[each].instructions[-1] for each in branches]
    lines = ", ".join(str(each.line) for each in places)
    sources = sorted({each.source for each in places if each.source is not None})
    words = f" (of the source {', '.join(map(str, sources))})" if sources else ""
    return f"line{'s' * (len(places) > 1)} {lines}{words}"


def _unchecked(flow: Flow, variance: Variance) -> Iterator[Finding]:
    """Accesses to global memory whose address depends on the thread and that no comparison with the
    same index decides on."""
    sources = _Sources(flow)
    for at, block in enumerate(flow.blocks):
        for each in block.instructions:
            if _space(each) != "global" or each.parts[0] == "prefetch":
                continue
            index = [name for name in address_names(each) if name in variance.registers]
            if not index or any(sources.is_bounded(name) for name in index):
                continue
            of_index = frozenset().union(*(sources.of(name) for name in index))
            tests = [flow.blocks[decider].instructions[-1] for decider in flow.deciders[at]]
            conditions = [test.guard for test in (*tests, each) if test.guard]
            if not any(of_index & sources.of(name) for name in conditions):
                words = "no test of its index decides whether it is made"
                yield Finding("unchecked", words, (each,))


class _Sources:
    """Where registers' values come from."""

    def __init__(self, flow: Flow) -> None:
        self._places = writers_of(flow)

    def of(self, register: str) -> frozenset[str]:
        """Everything that goes into a value and differs between threads or blocks at its source:
        special registers, what was loaded. Parameters are in common to all."""
        return self._through(register)[0]

    def is_bounded(self, register: str) -> bool:
        """Whether something on the way keeps the value within bounds."""
        return self._through(register)[1]

    def _through(self, register: str) -> tuple[frozenset[str], bool]:
        found, bounded = set(), False
        seen, waiting = {register}, [register]
        while waiting:
            name = waiting.pop()
            for each in self._places.get(name, ()):
                parts = each.parts
                bounded |= parts[0] in _BOUNDED and not parts[-1].startswith(("pred", "f"))
                if parts[0] in ("ld", "atom", "shfl"):
                    found |= {name} if "param" not in parts else set()
                    continue
                for source in read(each):
                    if source not in seen:
                        seen.add(source)
                        waiting.append(source)
            if name.startswith(("%tid", "%ctaid", "%laneid")):
                found.add(name)
        return frozenset(found), bounded


def _memory(kernel: Kernel, flow: Flow, lanes: LaneValues) -> Iterator[Finding | None]:
    """Bank conflicts and accesses to scattered sectors; None for each of unknown addresses."""
    loads: dict[Instruction, Access] = {}
    for each in kernel.instructions:
        space = _space(each)
        if space not in ("shared", "global") or each.parts[0] not in (
            "ld",
            "st",
            "ldmatrix",
            "stmatrix",
        ):
            continue
        width = _width(each)
        found = lanes.address(address(each)[0])
        if found is None:
            yield None
        elif space == "shared":
            one = Access((each,), found, width)
            if each.parts[0] == "ld" and not each.guard and "volatile" not in each.parts:
                loads[each] = one
            else:
                yield from _conflicts(one)
        else:
            touched, least = sectors(found, width)
            if touched >= _STRIDED * least and touched > 1:
                words = (
                    f"not coalesced: {touched} sectors of 32 bytes for a warp instead of {least}"
                )
                yield Finding("sectors", words, (each,))

    alignments = {variable.name: variable.alignment for variable in kernel.shared}
    for block in flow.blocks:
        for access in wide_loads(block.instructions, loads, alignments):
            yield from _conflicts(access)


def _conflicts(access: Access) -> Iterator[Finding]:
    passes, least = bank_passes(access.address, access.width)
    if passes > least:
        words = f"bank conflicts: {passes} accesses for a warp instead of {least}"
        yield Finding("banks", words, access.places)


def _space(instruction: Instruction) -> str | None:
    """The state space that an instruction accesses: "generic" if it names none."""
    parts = instruction.parts
    if parts[0] in ("ldmatrix", "stmatrix"):
        return "shared"
    if parts[0] not in ("ld", "ldu", "st", "atom", "red", "prefetch"):
        return None
    for each in parts[1:]:
        if each.startswith(("shared", "global", "local", "const", "param")):
            return re.sub(r"::.*", "", each)
    return "generic"


def _width(instruction: Instruction) -> int:
    """The bytes that each lane accesses."""
    parts = instruction.parts
    if parts[0] in ("ldmatrix", "stmatrix"):
        return 16
    count = next((int(each[1:]) for each in parts if re.fullmatch(r"v\d", each)), 1)
    bits = re.search(r"\d+", parts[-1])
    return count * (int(bits[0]) // 8 if bits else 4)
