"""Which arrays a stencil's body reads at which offsets, and which it writes.

The body is lowered once for the types of a call. The lowering notes its accesses, by which races
are refused, and from which the kernel's text is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from treadle import lang
from treadle.core.errors import CompileError, ShapeError
from treadle.core.nesting import deep_nesting
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions
from treadle.ir.signature import ArrayArgument, Signature
from treadle.ir.traverse import walk
from treadle.lang.decorators import Function
from treadle.lang.lower import lower_in_full
from treadle.lang.lower.context import CellAccess
from treadle.lang.positions import AxisRule, CellRules
from treadle.lang.source import function_from_text, source_of
from treadle.stencils.body import Body

MOST_AXES = 3
_SIMPLE = (t.Scalar, t.Vector)
_OF_THREADS = (n.Builtin, n.Barrier, n.Subgroup)
Reach = tuple[tuple[int, int], ...]  # for each axis: the least and the greatest offset


@dataclass(frozen=True)
class Analysis:
    """A body for arguments of some types. Parameters are their positions among the arguments."""

    rules: tuple[AxisRule, ...]
    reaches: tuple[tuple[int, Reach], ...]  # the items of `cells`
    written: tuple[int, ...]  # those that are written at the position
    outputs: tuple[int, ...]  # and those of them of which nothing is read before it is written
    indexed: frozenset[int]  # the arrays that are read at computed indices
    reads: int  # different neighbours that are read
    scattered: frozenset[int]  # and those that are written, or updated by atomics, at such
    # Neighbours that threads may share: elements of numbers and vectors that are not written.
    shared: tuple[tuple[int, tuple[int, ...]], ...]
    elements: tuple[tuple[int, t.Type], ...]  # of the arrays of numbers and vectors: their types
    fixed: frozenset[int]  # accessed at their own cell alone
    # Stacks of grids, and for each axis before those of the grid how many it has at least.
    stacks: tuple[tuple[int, tuple[int, ...]], ...] = ()
    shifted: frozenset[int] = frozenset()  # written at neighbours

    @cached_property
    def cells(self) -> dict[int, Reach]:
        """The arrays accessed at the position, and how far from it."""
        return dict(self.reaches)

    @property
    def ndim(self) -> int:
        """The axes of the grid."""
        return len(self.rules)

    def leading(self, at: int) -> int:
        """How many axes an array has before those of the grid."""
        return len(dict(self.stacks).get(at, ()))

    def reach(self, axis: int) -> tuple[int, int]:
        """The least and the greatest offset along an axis, of all arrays."""
        found = [each[axis] for each in self.cells.values()]
        return min(low for low, _ in found), max(high for _, high in found)


def grid_rank(body: Body, ranks: Sequence[int | None]) -> int:
    """The axes of a stencil's grid: those of the arrays that it writes. ShapeError if they
    differ, or are not 1 to 3."""
    of = {
        name: rank and rank - body.stacked.get(name, 0)
        for name, rank in zip(body.names, ranks, strict=True)
    }
    chosen = body.written_at_position or tuple(name for name in body.names if of[name])[:1]
    found = {of[name] for name in chosen}
    if len(found) > 1:
        texts = ", ".join(f"{name} has {of[name]}" for name in chosen)
        raise ShapeError(f"the arrays that {body.name} writes have one number of axes: {texts}")
    (rank,) = found or {None}
    if rank is None or not 1 <= rank <= MOST_AXES:
        what = "no array" if rank is None else f"{chosen[0]}, which has {rank} axes"
        raise ShapeError(
            f"the stencil {body.name} writes {what}: the grid has 1, 2 or 3 axes, and the body "
            "assigns to an array at its position, as in out[pos] = …"
        )
    return rank


def analyze(
    body: Body,
    signature: Signature,
    rules: tuple[AxisRule, ...],
    options: KernelOptions,
    halo: tuple[int, ...] | None,
    storage: t.Scalar | None,
) -> Analysis:
    """The accesses of a body. CompileError, with the line, for a race, and for offsets beyond the
    halo that was declared."""
    ndim = len(rules)
    written = body.written_at_position
    whose = (
        f"that of {written[0]}"
        if written
        else ("of its first array's axes, as the body itself writes none at its position")
    )
    grid = f"the grid of {body.name} ({whose})"
    probe = CellRules(rules, ((False, False),) * ndim, same_shape=False, storage=storage, grid=grid)
    names: dict[str, Any] = {
        "treadle_body": Function(body.function), "treadle_cell": probe, "treadle_lang": lang,
    }  # fmt: skip
    indices = ", ".join(["treadle_lang.grid(1)"] * ndim)
    passed = ", ".join(
        f"treadle_cell({indices})" if name == body.position else name for name in body.order
    )
    head = f"def {body.name}({', '.join(body.names)}):"
    function = function_from_text(f"{head}\n    treadle_body({passed})\n", None, names)
    source = source_of(function)
    with deep_nesting(body.name, source.span(source.tree), source.text):
        _, lowering = lower_in_full(function, source, signature, options)
    _check_threads(body, lowering.functions, lowering.sources)
    notes = list(dict.fromkeys(lowering.accesses))
    if all(note.offsets is None for note in notes):
        raise body.refused(
            f"{body.name} reads and writes nothing at its position: a stencil has a statement as "
            f"out[{body.position}] = …"
        )
    _check_races(body, notes, lowering.sources)
    if halo is not None:
        _check_halo(body, notes, halo, ndim, lowering.sources)
    return _analysis(body, notes, rules, signature)


def _analysis(
    body: Body,
    notes: Sequence[CellAccess],
    rules: tuple[AxisRule, ...],
    signature: Signature,
) -> Analysis:
    at = {name: number for number, name in enumerate(body.names)}
    offsets: dict[int, list[tuple[int, ...]]] = {}
    for note in notes:
        if note.offsets is not None:
            offsets.setdefault(at[note.parameter], []).append(note.offsets)
    cells: dict[int, Reach] = {
        number: tuple((min(axis), max(axis)) for axis in zip(*found, strict=True))
        for number, found in sorted(offsets.items())
    }
    own = {at[note.parameter] for note in notes if note.offsets is not None and note.kind != "read"}
    first = {(note.parameter, note.layer): note for note in reversed(notes)}
    made = {
        grid
        for grid, note in first.items()
        if note.kind == "write" and note.span in body.plain_writes
    }
    reads = {
        at[note.parameter]
        for note in notes
        if note.kind != "write" and (note.parameter, note.layer) not in made
    }
    stacks: dict[int, tuple[int, ...]] = {}
    for note in notes:
        if note.layer:
            known = stacks.get(at[note.parameter], (0,) * len(note.layer))
            stacks[at[note.parameter]] = tuple(
                max(count, layer + 1) for count, layer in zip(known, note.layer, strict=True)
            )
    written = {at[note.parameter] for note in notes if note.kind != "read"}
    simple = {
        number: argument.element
        for number, argument in enumerate(signature.arguments)
        if isinstance(argument, ArrayArgument) and isinstance(argument.element, _SIMPLE)
    }
    shared = {
        (at[note.parameter], note.offsets): None
        for note in notes
        if note.offsets is not None
        and not note.layer
        and at[note.parameter] in simple.keys() - written
    }
    return Analysis(
        rules=rules,
        shared=tuple(shared),
        elements=tuple((at, simple[at]) for at in cells if at in simple),
        reaches=tuple(cells.items()),
        written=tuple(sorted(own)),
        outputs=tuple(sorted(own - reads)),
        indexed=frozenset(
            at[note.parameter] for note in notes if note.kind == "read" and note.offsets is None
        ),
        reads=len({(n.parameter, n.layer, n.offsets) for n in notes if n.kind != "write"}),
        scattered=frozenset(
            at[n.parameter] for n in notes if n.kind != "read" and n.offsets is None
        ),
        fixed=frozenset(
            number for number, reach in cells.items() if all(pair == (0, 0) for pair in reach)
        ),
        stacks=tuple(sorted(stacks.items())),
        shifted=frozenset(
            at[note.parameter] for note in notes if note.kind != "read" and any(note.offsets or ())
        ),
    )


def _check_threads(body: Body, functions: Sequence[n.Function], sources: Mapping[str, str]) -> None:
    """Refuse what depends on the threads that compute the cells: which these are, devices choose
    differently."""
    for function in functions:
        shared = (memory for memory in function.memories if memory.space == "shared")
        of_threads = (each for each in walk(function.body) if isinstance(each, _OF_THREADS))
        for found in (*shared, *of_threads):
            raise CompileError(
                f"{body.name} uses its thread, block or subgroup, and which threads compute the "
                f"cells of a stencil differs from device to device: {body.position}.index has the "
                "cell's indices; write a @td.kernel for work that threads share",
                found.span,
                sources.get(found.span.file),
            )


def _check_races(body: Body, notes: Sequence[CellAccess], sources: Mapping[str, str]) -> None:
    """Refuse elements that two cells access, one of which writes. Where all accesses to a grid are
    at one offset, each cell has an element for itself."""
    writes: dict[str, list[CellAccess]] = {}
    for note in notes:
        if note.kind in ("write", "update"):
            writes.setdefault(note.parameter, []).append(note)
    for note in notes:
        found = writes.get(note.parameter)
        if found is None or note.kind == "atomic":
            continue
        name, position = note.parameter, body.position
        if note.layer:
            name += f"[{', '.join(map(str, note.layer))}]"
        at = next((each.offsets for each in found if each.layer == note.layer), None)
        if note.kind != "read" and note.offsets is None:
            if all(each.offsets is None for each in found):
                continue
            message = (
                f"{body.name} writes {name} here at computed indices, and elsewhere at its "
                "position, so that two threads may write one element: write an array in one of "
                "the two ways"
            )
        elif note.kind != "read":
            if at is None or note.offsets == at:
                continue
            message = (
                f"{body.name} writes {name} here at the offsets {note.offsets}, and elsewhere at "
                f"{at}, so that two threads write one element: write a grid at one offset alone"
            )
        else:
            anywhere = any(each.offsets is None for each in found) and any(note.offsets or ())
            if note.offsets is not None and note.offsets == at and not anywhere:
                continue
            if note.offsets is not None and at is None and not anywhere:
                continue
            own = f"{name}[{position}], its own cell"
            if any(at or ()):
                steps = ", ".join(map(str, at or ()))
                own = f"{name}[{position}.shifted({steps})], what it writes itself"
            message = (
                f"{body.name} writes {name}, and reads it here at another cell, which another "
                f"thread may have written or not: write to another array (a stencil may read {own})"
            )
        raise CompileError(message, note.span, sources.get(note.span.file))


def _check_halo(
    body: Body,
    notes: Sequence[CellAccess],
    halo: tuple[int, ...],
    ndim: int,
    sources: Mapping[str, str],
) -> None:
    allowed = halo * ndim if len(halo) == 1 else halo
    if len(allowed) != ndim:
        raise ShapeError(
            f"{body.name} has a halo for {len(halo)} axes, and its grid has {ndim}: give one "
            "number, or one for each axis"
        )
    for note in notes:
        far = note.offsets or ()
        for offset, most in zip(far, allowed, strict=False):
            if abs(offset) > most:
                raise CompileError(
                    f"{body.name} {'reads' if note.kind == 'read' else 'writes'} "
                    f"{note.parameter} at the offsets {far}, beyond its halo of "
                    f"{halo[0] if len(halo) == 1 else halo}: declare a larger halo, or leave it "
                    "out (it is found by itself)",
                    note.span,
                    sources.get(note.span.file),
                )
