"""What an expression becomes: its kernels, what each computes, and why it was cut there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from treadle.graph.groups import Group, groups_of
from treadle.graph.node import PRODUCT, Node
from treadle.graph.program import Kind, Program, Reduce, Step
from treadle.graph.realize import watchers
from treadle.graph.schedule import Plan
from treadle.kernels.factors import TF32
from treadle.lang.builtins import COMPARISONS, OPERATORS

_INFIX = OPERATORS | COMPARISONS | {"pow": "**", "logical_and": "and", "logical_or": "or"}
_MOST_SHOWN = 4  # parts of a joined array
_LONGEST = 60  # characters of an expression before it gets a name of its own


class Explanation(str):
    """A text that shows itself as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(nodes: Sequence[Node]) -> Explanation:
    """The kernels that computing these nodes would take. Nothing is computed."""
    pending = [node for node in nodes if node.array is None]
    if not pending:
        return Explanation("nothing is pending: the elements are in memory")
    groups = groups_of(Plan(pending))
    names: dict[Node, str] = {}
    texts = [describe(group, names, f"{at}. ") for at, group in enumerate(groups, 1)]
    kernels = sum(max(len(group.parts), 1) for group in groups)
    count = f"{kernels} kernel{'' if kernels == 1 else 's'}"
    return Explanation("\n".join([count, *texts]))


def describe(group: Group, names: dict[Node, str], mark: str = "") -> str:
    """A group in a few lines."""
    node, program = group.node, group.program
    names[node] = name = f"t{sum(each.startswith('t') for each in names.values()) + 1}"
    if group.parts:
        return _described_parts(group, names, mark)
    what = program.name if program is not None else node.detail.name
    form = "" if program is None or program.kind == Kind.MAP else f" ({program.kind})"
    lines = [
        f"{mark}{what}{form}: {name} = {_array(node)} on {node.device.id}, "
        f"computed because {group.reason}"
    ]
    for leaf in group.leaves:
        if leaf not in names:
            names[leaf] = f"x{sum(each.startswith('x') for each in names.values()) + 1}"
    leaves = [names[leaf] for leaf in group.leaves]
    if program is None and node.op != PRODUCT:
        return f"{lines[0]}\n     of {', '.join(leaves)}"
    reads = [f"{names[leaf]} {_array(leaf)}" for leaf in dict.fromkeys(group.leaves)]
    if reads:
        lines.append(f"reads {', '.join(reads)}")
    if program is None:
        product = _product(leaves, node.detail.factors == TF32)
        return "\n     ".join([*lines, f"{name} = {product}"])
    if "int64" not in node.device.features and any(map(_wraps, program.steps)):
        lines.append("adds up uint32 in uint32, which wraps: the device has no 64-bit integers")
    numbers = [repr(constant.detail) for constant in group.constants]
    lines += _Expression(program, leaves, numbers).lines(name)
    return "\n     ".join(lines)


def _described_parts(group: Group, names: dict[Node, str], mark: str) -> str:
    """A joined array, with a line for each part, or for the first and the last ones."""
    node, parts = group.node, group.parts
    name = names[node]
    lines = [
        f"{mark}join: {name} = {_array(node)} on {node.device.id}, computed because "
        f"{group.reason}; {len(parts)} part{'' if len(parts) == 1 else 's'}, each written by a "
        "kernel into its place"
    ]
    for number, part in enumerate(parts):
        if _MOST_SHOWN <= number < len(parts) - 1:
            if number == _MOST_SHOWN:
                lines.append("…")
            continue
        for leaf in part.leaves:
            if leaf not in names:
                names[leaf] = f"x{sum(each.startswith('x') for each in names.values()) + 1}"
        assert part.program is not None
        leaves = [names[leaf] for leaf in part.leaves]
        numbers = [repr(constant.detail) for constant in part.constants]
        lines += _Expression(part.program, leaves, numbers).lines(f"{name}, part {number + 1}")
    return "\n     ".join(lines)


def _wraps(step: Step) -> bool:
    """Whether a step adds up numbers of 32 bits that 64 would hold."""
    return step.op == "reduce" and step.detail in (Reduce.SUM, Reduce.PROD) and step.type == "u32"


def _array(node: Node) -> str:
    return f"{node.dtype}{list(node.shape)}"


class _Expression:
    """A program's steps as people write them."""

    def __init__(self, program: Program, leaves: Sequence[str], numbers: Sequence[str]) -> None:
        self.program = program
        self.leaves = leaves
        self.numbers = numbers
        self.found: list[str] = []
        self.text: dict[int, str] = {}

    def lines(self, name: str) -> list[str]:
        uses: dict[int, int] = {}
        for step in self.program.steps:
            for source in step.sources:
                uses[source] = uses.get(source, 0) + 1
        for number, step in enumerate(self.program.steps):
            text = self._step(step)
            simple = not step.sources
            if not simple and (uses.get(number, 0) > 1 or len(text) > _LONGEST):
                self.found.append(f"v{len(self.found) + 1} = {_bare(text)}")
                text = f"v{len(self.found)}"
            self.text[number] = text
        for output in self.program.outputs:
            self.found.append(f"{name} = {_bare(self.text[output.step])}")
        return self.found

    def _step(self, step: Step) -> str:
        sources = [self.text[source] for source in step.sources]
        detail: Any = step.detail
        access = self.program.accesses[detail] if step.op == "load" else None
        if access is not None:
            return str(self.leaves[access.buffer])
        if step.op == "scalar":
            return str(self.numbers[detail])
        if step.op == "index":
            return "index"
        if step.op == "gather":
            buffer = self.program.accesses[detail[0]].buffer
            return f"{self.leaves[buffer]}[{sources[0]}]"
        if step.op == "product":
            pairs = zip(detail.buffers, detail.prologues, strict=True)
            factors = [self.text[own.step] if own else self.leaves[at] for at, own in pairs]
            product = _product(factors, detail.rounded)
            return product if detail.rounded else f"({product})"
        if step.op == "join":
            return f"join({', '.join(_bare(self.text[source]) for source, _ in detail)})"
        if step.op == "cast":
            return f"{step.type}({_bare(sources[0])})"
        if step.op == "reduce":
            return f"{detail}({_bare(sources[0])})"
        if step.op in _INFIX:
            return f"({f' {_INFIX[step.op]} '.join(sources)})"
        name = detail.name if step.op == "apply" else step.op
        return f"{name}({', '.join(map(_bare, sources))})"


def _product(factors: Sequence[str], rounded: bool) -> str:
    product = " @ ".join(factors)
    return f"tf32({product})" if rounded else product


def _bare(text: str) -> str:
    """Without the brackets around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1]


def explain_everything() -> None:
    """From here on, every kernel is described on standard error before it runs."""
    if _watch not in watchers:
        watchers.append(_watch)


def _watch(group: Group) -> None:
    sys.stderr.write(f"treadle: {describe(group, {})}\n")
