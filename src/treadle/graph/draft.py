"""`Draft`: what a kernel has while it is built, before its axes are merged and numbers ordered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from treadle.graph.loops import Loops
from treadle.graph.node import Node
from treadle.graph.product_groups import FactorAxes
from treadle.graph.program import Space, Step
from treadle.graph.reads import Place, Reads
from treadle.graph.schedule import Plan


class Gather(NamedTuple):
    """A step that reads at computed indices: the number of the step and of its access, and how many
    elements there are."""

    step: int
    access: int
    elements: int


@dataclass(slots=True)
class Draft:
    """A kernel for a node of a plan, or for one of the parts of a joined array (`part`).

    `loops` are those that it runs, `reads` what it reads, `steps` what it computes, from the
    constants too, and `target` where it stores `result`. `cost` is what the steps cost beside an
    addition. Details of steps are numbered at the end: those of `gathers`, of `joins` and of the
    `product`.
    """

    plan: Plan
    node: Node
    part: int | None
    loops: Loops
    reads: Reads
    slow_to_compile: bool
    steps: list[Step] = field(default_factory=list)
    constants: list[Node] = field(default_factory=list)
    scalar_types: list[str] = field(default_factory=list)
    cost: int = 0
    gathers: list[Gather] = field(default_factory=list)
    joins: list[int] = field(default_factory=list)  # steps
    joined: list[Node] = field(default_factory=list)  # arrays whose parts are distinguished
    product: Node | None = None
    product_step: int = -1
    factors: dict[Space, FactorAxes] = field(default_factory=dict)  # those that its loads compute
    prologues: dict[Space, int] = field(default_factory=dict)  # and their steps
    target: Place | None = None
    result: int = -1

    def add(self, step: Step) -> int:
        """The number of one more step."""
        self.steps.append(step)
        return len(self.steps) - 1
