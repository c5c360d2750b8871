"""The collectives that bring an array from one layout to another, as data.

What makes pieces smaller comes first, and what makes them larger last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from treadle.distributed.arrays.layout import Layout, Spec

# The bytes that each rank sends for a collective, by those of its largest piece, before or after,
# and the number of ranks: what a ring needs.
_SENT: dict[str, Callable[[int, int, int], Fraction | int]] = {
    "all_reduce": lambda before, after, count: before * 2 * Fraction(count - 1, count),
    "reduce_scatter": lambda before, after, count: after * (count - 1),
    "all_gather": lambda before, after, count: before * (count - 1),
    "all_to_all": lambda before, after, count: after * Fraction(count - 1, count),
    "slice": lambda before, after, count: 0,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One collective along a mesh axis, or a `slice`, for which nothing travels. `axis` is the
    array axis that is split or joined, `source` the one that an all_to_all joins."""

    kind: str
    name: str
    before: Layout
    after: Layout
    axis: int = 0
    source: int = 0

    def sent(self, itemsize: int) -> int:
        """How many bytes each rank sends."""
        count = self.before.mesh.axes[self.name]
        return int(_SENT[self.kind](self.before.most, self.after.most, count)) * itemsize


def steps(layout: Layout, spec: Spec, keep: bool = False) -> Iterator[Step]:
    """The steps to a spec, where nothing is pending; with `keep` what is pending stays so."""
    while True:
        step = _smaller(layout, spec, keep)
        if step is None and layout.pending and not keep:
            name = layout.pending[0]
            rest = layout.replaced(pending=layout.pending[1:])
            step = Step("all_reduce", name, layout, rest)
        if step is None:
            step = _larger(layout, spec)
        if step is None:
            return
        yield step
        layout = step.after


def sent(layout: Layout, spec: Spec, itemsize: int, keep: bool = False) -> int:
    """How many bytes each rank sends to come to a spec."""
    return sum(each.sent(itemsize) for each in steps(layout, spec, keep))


def _smaller(layout: Layout, spec: Spec, keep: bool) -> Step | None:
    """A step after which a rank has less."""
    for kinds in ("reduce_scatter", "slice"):
        for axis, (entry, wanted) in enumerate(zip(layout.spec, spec, strict=True)):
            if len(entry) >= len(wanted) or wanted[: len(entry)] != entry:
                continue
            name = wanted[len(entry)]
            if kinds == "reduce_scatter" and name in layout.pending and not keep:
                left = [each for each in layout.pending if each != name]
                after = layout.replaced(spec=_with(layout.spec, axis, (*entry, name)), pending=left)
                return Step("reduce_scatter", name, layout, after, axis)
            if kinds == "slice" and name in layout.repeated:
                after = layout.replaced(spec=_with(layout.spec, axis, (*entry, name)))
                return Step("slice", name, layout, after, axis)
    return None


def _larger(layout: Layout, spec: Spec) -> Step | None:
    """A step after which an axis is no longer split, or another one is."""
    found = None
    for source, (entry, wanted) in enumerate(zip(layout.spec, spec, strict=True)):
        if wanted[: len(entry)] == entry:
            continue
        name, rest = entry[-1], _with(layout.spec, source, entry[:-1])
        for axis, other in enumerate(rest):
            if axis != source and spec[axis][: len(other) + 1] == (*other, name):
                after = layout.replaced(spec=_with(rest, axis, (*other, name)))
                return Step("all_to_all", name, layout, after, axis, source)
        found = found or Step("all_gather", name, layout, layout.replaced(spec=rest), source)
    return found


def _with(spec: Spec, axis: int, entry: tuple[str, ...]) -> Spec:
    return (*spec[:axis], entry, *spec[axis + 1 :])
