"""What a reducing program does in each pass over a row: an analysis that knows no sizes.

The elements that are reduced to one value are a *row*, whatever their axes. Reductions that need
others' results come in later passes; the last pass stores what is wanted for every element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from treadle.graph.emit.body import type_named
from treadle.graph.emit.combine import Reduction, kept_name, kept_type, reduction_of
from treadle.graph.operations import cost_of
from treadle.graph.program import FIXED, Output, Program, Reduce, Step, Style
from treadle.ir.types import size_of

_FREE = ("constant", "scalar")
_COSTS = {"load": 1, "gather": 4, "scalar": 0, "reduce": 0}
_READING = ("load", "gather", "join")
_EXPENSIVE = 8  # what a value costs that is rather stored and read again
_MOST_BUFFERS = 8  # that every device lets a kernel have


class Saved(NamedTuple):
    """A step that is stored in an output's place, from the pass on that computes it first."""

    step: int
    output: Output
    first: int


@dataclass(frozen=True, slots=True)
class RowAnalysis:
    """`passes` are the reductions of each pass over the rows; `varying` the steps that differ
    within a row. `each` are the outputs stored for every element, `once` those of a row. `cost` is
    what an element costs in the most expensive pass. `held` are the steps of each pass whose values
    later passes need from where threads hold them; `words` is how many words they are at most."""

    passes: tuple[tuple[Reduction, ...], ...]
    varying: frozenset[int]
    each: tuple[Output, ...]
    once: tuple[Output, ...]
    saved: tuple[Saved, ...] = ()
    cost: int = 0
    held: tuple[frozenset[int], ...] = ()
    words: int = 0

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """All of them, in order."""
        return tuple(reduction for group in self.passes for reduction in group)


@lru_cache(maxsize=1024)
def row_analysis(program: Program) -> RowAnalysis:
    """The passes of a program."""
    depth = [0] * len(program.steps)
    varying: set[int] = set()
    groups: dict[int, list[Reduction]] = {}
    for number, step in enumerate(program.steps):
        depth[number] = max((depth[source] for source in step.sources), default=0)
        if step.op == "reduce":
            groups.setdefault(depth[number], []).append(reduction_of(program, number))
            depth[number] += 1
        elif _moves(program, number) or any(source in varying for source in _sources(step)):
            varying.add(number)
    passes = tuple(tuple(groups[level]) for level in sorted(groups))
    each = tuple(o for o in program.outputs if _covers_row(program, o.access))
    once = tuple(o for o in program.outputs if not _covers_row(program, o.access))
    analysis = RowAnalysis(passes, frozenset(varying), each, once)
    if program.style == Style.LOOPS:
        analysis = replace(analysis, saved=_saved(program, analysis))
    else:
        held = _held(program, analysis)
        analysis = replace(analysis, held=held, words=_words(program, analysis, held))
    return replace(analysis, cost=_highest_cost(program, analysis))


def _sources(step: Step) -> Sequence[int]:
    """The steps that a step is made of, of a joined array all parts."""
    return [source for source, _ in step.detail] if step.op == "join" else step.sources


def _highest_cost(program: Program, analysis: RowAnalysis) -> int:
    known = {reduction.step for reduction in analysis.reductions}
    wanted = [wanted_in(analysis, number) for number in range(len(analysis.passes) + 1)]
    return max(
        cost(program, set(needed(program, steps, known)) & analysis.varying) for steps in wanted
    )


def _covers_row(program: Program, access: int) -> bool:
    return any(move != FIXED for move in program.accesses[access].axes[program.kept :])


def _moves(program: Program, number: int) -> bool:
    step = program.steps[number]
    if step.op == "join":
        return any(_covers_row(program, at) for _, bounds in step.detail for at, *_ in bounds)
    if step.op not in ("load", "index"):
        return False
    assert isinstance(step.detail, int)
    return _covers_row(program, step.detail)


def needed(program: Program, wanted: Iterable[int], known: Collection[int]) -> list[int]:
    """The steps that the wanted ones need, in order, themselves too, without those known."""
    found: set[int] = set()
    todo = [step for step in wanted if step not in known]
    while todo:
        step = todo.pop()
        if step not in found:
            found.add(step)
            todo += [s for s in program.steps[step].sources if s not in known]
    return sorted(found)


def cost(program: Program, steps: Iterable[int]) -> int:
    """What steps cost beside an addition."""
    total = 0
    for number in steps:
        op, _, short, detail = program.steps[number]
        total += _COSTS[op] if op in _COSTS else cost_of(op, short, detail)
        if op == "join":
            total += cost(program, needed(program, _sources(program.steps[number]), ()))
    return total


def wanted_in(analysis: RowAnalysis, number: int) -> list[int]:
    """The steps that pass `number` needs for every element: the last pass stores."""
    if number < len(analysis.passes):
        return [reduction.source for reduction in analysis.passes[number]]
    return [output.step for output in analysis.each]


def steady(program: Program, analysis: RowAnalysis, wanted: Iterable[int]) -> list[int]:
    """The steps that are one value for a row and that the wanted ones need for every element."""
    reduced = {reduction.step for reduction in analysis.reductions}
    found: set[int] = set()
    seen: set[int] = set()
    todo = list(wanted)
    while todo:
        step = todo.pop()
        if step in seen:
            continue
        seen.add(step)
        if step in analysis.varying:
            todo += program.steps[step].sources
        elif program.steps[step].op not in _FREE and step not in reduced:
            found.add(step)
    return sorted(found)


def _saved(program: Program, analysis: RowAnalysis) -> tuple[Saved, ...]:
    """The expensive values that a later pass needs again, each with an output to be stored in.

    Nothing that is read later may be overwritten, and an output may be an input's memory."""
    if len(analysis.passes) == 0 or not analysis.each:
        return ()
    reduced = {reduction.step for reduction in analysis.reductions}
    free = list(analysis.each)
    found: list[Saved] = []
    for number in range(len(analysis.passes)):
        known = reduced | {saved.step for saved in found}
        here = set(needed(program, wanted_in(analysis, number), known)) & analysis.varying
        later: set[int] = set()
        for after in _after(analysis, number):
            later |= set(needed(program, wanted_in(analysis, after), known))
        for step in sorted(here & later, reverse=True):
            known = reduced | {saved.step for saved in found}
            if _price(program, analysis, step, known) < _EXPENSIVE:
                continue
            if any(_reads(program, analysis, k, known | {step}) for k in _after(analysis, number)):
                continue
            home = next((o for o in free if _takes(program, o, step)), None)
            if home is not None:
                found.append(Saved(step, home, number))
                free.remove(home)
    return tuple(found)


def _after(analysis: RowAnalysis, number: int) -> range:
    return range(number + 1, len(analysis.passes) + 1)


def _reads(program: Program, analysis: RowAnalysis, number: int, known: Collection[int]) -> bool:
    """Whether a pass reads elements: they may lie where the output does."""
    steps = needed(program, wanted_in(analysis, number), known)
    return any(program.steps[step].op in _READING and step in analysis.varying for step in steps)


def _takes(program: Program, output: Output, step: int) -> bool:
    return program.buffers[program.accesses[output.access].buffer] == program.steps[step].type


def _held(program: Program, analysis: RowAnalysis) -> tuple[frozenset[int], ...]:
    """What threads hold of their elements from each pass on: what is expensive, and what comes
    from memory. All else is computed again, so that it takes no registers between passes."""
    known = {reduction.step for reduction in analysis.reductions}
    found: list[frozenset[int]] = []
    for number in range(len(analysis.passes)):
        here = set(needed(program, wanted_in(analysis, number), known)) & analysis.varying
        chosen: set[int] = set()
        for step in sorted(here, reverse=True):
            again = known | chosen
            if any(
                step in needed(program, wanted_in(analysis, after), again)
                for after in _after(analysis, number)
            ) and _is_worth_holding(program, analysis, step, known):
                chosen.add(step)
        found.append(frozenset(chosen))
        known |= chosen
    return tuple(found)


def _is_worth_holding(
    program: Program, analysis: RowAnalysis, step: int, known: Collection[int]
) -> bool:
    from_memory = program.steps[step].op in _READING
    return from_memory or _price(program, analysis, step, known) >= _EXPENSIVE


def _price(program: Program, analysis: RowAnalysis, step: int, known: Collection[int]) -> int:
    """What it costs to compute a step for one more element."""
    return cost(program, analysis.varying.intersection(needed(program, [step], known)))


def _words(program: Program, analysis: RowAnalysis, held: Sequence[Collection[int]]) -> int:
    """How many words an element takes that is held, where that is most."""
    known = {reduction.step for reduction in analysis.reductions}
    most = 0
    for number, steps in enumerate(held):
        known |= set(steps)
        needed_later: set[int] = set()
        for after in _after(analysis, number):
            wanted = wanted_in(analysis, after)
            reached = {*wanted, *needed(program, wanted, known)}
            sources = {source for step in reached for source in program.steps[step].sources}
            needed_later |= (reached | sources) & known & analysis.varying
        sizes = [size_of(type_named(program.steps[step].type)) for step in needed_later]
        most = max(most, sum(-(-size // 4) for size in sizes))
    return most


# --- sums of exponentials ------------------------------------------------------------------------
#
# A softmax wants sum(exp(x - max(x))), which needs the maximum first, and so a pass of its own. But
# a sum so far can be moved to a greater maximum when one is met (Milakov and Gimelshein, "Online
# normalizer calculation for softmax", 2018). So the sum becomes a reduction of x itself, EXP_SUM,
# whose state is the greatest value so far and the sum beside it. This saves a pass where rows are
# too long to be held.


@lru_cache(maxsize=1024)
def online(program: Program) -> Program:
    """A program whose sums of exponentials below a maximum need not wait for it; itself if it has
    none."""
    steps = tuple(_exp_sum(program, step) or step for step in program.steps)
    return program if steps == program.steps else program._replace(steps=steps)


def _exp_sum(program: Program, step: Step) -> Step | None:
    """The reduction of x that a step sum(exp(x - max(x))) is."""
    if step.op != "reduce" or step.detail != Reduce.SUM:
        return None
    powers = program.steps[step.sources[0]]
    below = program.steps[powers.sources[0]] if powers.op == "exp" else powers
    if below.op != "subtract":
        return None
    x, shift = below.sources
    greatest = program.steps[shift]
    if greatest.op != "reduce" or greatest.detail != Reduce.MAX or greatest.sources != (x,):
        return None
    types = {step.type, powers.type, below.type, program.steps[x].type}
    if types not in ({"f32"}, {"f64"}):
        return None
    return step._replace(sources=(x,), detail=Reduce.EXP_SUM)


# --- what kernels leave for each other ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scratch:
    """The layout of scratch memory: a buffer for each dtype in `names`, in which results come
    first, one for each row, and then states, one for each part of each row.

    `results` and `states` say for a step, or a part of its state, the buffer and the number there.
    """

    names: tuple[str, ...]
    results: dict[int, tuple[int, int]]
    states: dict[tuple[int, int], tuple[int, int]]
    counts: tuple[tuple[int, int], ...]  # results and states in each buffer

    def fits(self, program: Program) -> bool:
        """Whether a kernel can have these buffers beside the program's own."""
        return len(program.buffers) + len(self.names) <= _MOST_BUFFERS

    def buffers(self, rows: int, parts: int) -> tuple[tuple[str, int], ...]:
        """The buffers' dtypes and elements."""
        return tuple(
            (name, rows * (results + states * parts))
            for name, (results, states) in zip(self.names, self.counts, strict=True)
        )


@lru_cache(maxsize=1024)
def scratch_of(program: Program) -> Scratch:
    """The scratch memory of a program whose rows are done in parts."""
    analysis = row_analysis(program)
    names: list[str] = []
    counts: list[list[int]] = []
    results: dict[int, tuple[int, int]] = {}
    states: dict[tuple[int, int], tuple[int, int]] = {}

    def place(name: str, column: int) -> tuple[int, int]:
        if name not in names:
            names.append(name)
            counts.append([0, 0])
        buffer = names.index(name)
        counts[buffer][column] += 1
        return buffer, counts[buffer][column] - 1

    for reduction in analysis.reductions:
        type = kept_type(type_named(program.steps[reduction.step].type))
        results[reduction.step] = place(kept_name(type), 0)
        for part, type in enumerate(reduction.parts):
            states[reduction.step, part] = place(kept_name(kept_type(type)), 1)
    return Scratch(tuple(names), results, states, tuple((a, b) for a, b in counts))
