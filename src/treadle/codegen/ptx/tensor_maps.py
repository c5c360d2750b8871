"""The matrices that a kernel copies boxes of, as the driver has to describe them.

A launch hands over a description of 128 bytes (a tensor map) for each, in a parameter behind the
kernel's own. It is made of the kernel's pointers and numbers, so extents, steps and the start are
sums of products of these; nothing else could be known before the kernel runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.ptx.emitter import Emitter, Instruction
from treadle.codegen.records import (
    MAP_ALIGNMENT,
    MAP_BYTES,
    ParameterLayout,
    TensorMap,
    Terms,
)  # fmt: skip
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.stages import box_of, line_of
from treadle.ir.traverse import statements_in
from treadle.ir.types import COMPONENTS, I32, I64, Scalar, Struct

_INTEGERS = (I32, I64)


class TensorMaps:
    """The maps of a kernel that is being printed."""

    def __init__(
        self, e: Emitter, kernel: n.Kernel, slots: Mapping[str, int], layout: ParameterLayout
    ) -> None:
        self._e = e
        self._bindings = {
            slot: at for at, slot in enumerate(sorted({slots[b.name] for b in kernel.buffers}))
        }
        self._slots = slots
        self._places = {slot.parameter.name: slot for slot in layout.slots}
        self._body = kernel.body
        self._values: dict[str, n.Expression | None] | None = None  # of variables that are set once
        self._registers: dict[TensorMap, str] = {}
        self.declared: list[str] = []  # parameters
        _, self.cluster, self.sharing, apart = _prepared(kernel)
        self.apart = bool(apart)

    @property
    def maps(self) -> tuple[TensorMap, ...]:
        """The maps, in the order of their parameters."""
        return tuple(self._registers)

    def register(self, node: n.Staged) -> str:
        """The register with the address of the map for a copy."""
        source, extents, steps, _ = box_of(node.operands)
        assert isinstance(source, n.Load)
        assert isinstance(source.place, n.Element)
        assert isinstance(source.type, Scalar)
        made = TensorMap(
            self._bindings[self._slots[source.place.memory]], str(source.type),
            self._terms(source.place.index), tuple(map(self._terms, extents)),
            tuple(map(self._terms, steps)),
            (line_of(source.type), node.numbers[0] // node.numbers[1]),
        )  # fmt: skip
        if made not in self._registers:
            e = self._e
            name = e.module.names.fresh(f"{source.place.memory}_map")
            self.declared.append(f"\n    .param .align {MAP_ALIGNMENT} .b8 {name}[{MAP_BYTES}]")
            place = e.first("b64", "mov.b64", name)
            self._registers[made] = e.first("b64", "cvta.param.u64", place)
            e.head.append(
                Instruction("", "prefetch.tensormap", [], (f"[{self._registers[made]}]",))
            )
        return self._registers[made]

    def _terms(self, node: n.Expression) -> Terms:
        """A number as a sum of products of parameters with numbers."""
        found: dict[tuple[int, str], int] = {}
        for (offset, stored), factor in self._sum(node, 1):
            found[offset, stored] = found.get((offset, stored), 0) + factor
        return tuple((factor, *place) for place, factor in found.items() if factor)

    def _sum(self, node: n.Expression, by: int) -> list[tuple[tuple[int, str], int]]:
        match node:
            case n.Constant():
                return [((-1, ""), by * int(node.value))]
            case n.Cast() if node.type in _INTEGERS:
                return self._sum(node.operand, by)
            case n.Variable() if node.name in self._places:
                slot = self._places[node.name]
                return [((slot.offset, slot.stored), by)]
            case n.Variable():
                value = self._value(node.name)
                if value is not None:
                    return self._sum(value, by)
            case n.Extract():
                part = self._part(node)
                if part is not None:
                    return self._sum(part, by)
            case n.Binary(op="add" | "sub"):
                sign = 1 if node.op == "add" else -1
                return self._sum(node.left, by) + self._sum(node.right, sign * by)
            case n.Binary(op="mul", right=n.Constant(value=factor)):
                return self._sum(node.left, by * int(factor))
            case n.Binary(op="mul", left=n.Constant(value=factor)):
                return self._sum(node.right, by * int(factor))
            case n.Binary(op="shl", right=n.Constant(value=factor)):
                return self._sum(node.left, by << int(factor))
        raise CompileError(
            "the matrix that boxes are copied of is described before the kernel runs: its start, "
            "extents and steps are parameters of the kernel, their sums, and multiples",
            node.span,
        )

    def _part(self, node: n.Extract) -> n.Expression | None:
        """The part of a struct or vector that is extracted."""
        whole: n.Expression | None = node.operand
        while isinstance(whole, n.Variable):
            whole = self._value(whole.name)
        if not isinstance(whole, n.Construct):
            return None
        names = tuple(COMPONENTS)
        if isinstance(whole.type, Struct):
            names = tuple([each.name for each in whole.type.fields])
        return whole.operands[names.index(node.name)]

    def _value(self, name: str) -> n.Expression | None:
        """What a variable is for good; None if it changes."""
        if self._values is None:
            self._values = {}
            for node in statements_in(self._body):
                if isinstance(node, n.Declare):
                    again = node.variable.name in self._values
                    self._values[node.variable.name] = None if again else node.value
                elif isinstance(node, n.Assign) and isinstance(node.place, n.Variable):
                    self._values[node.place.name] = None
        return self._values.get(name)


def _prepared(kernel: n.Kernel) -> tuple[int, ...]:
    """How many stages a kernel has, how many blocks are a cluster, how many of these share boxes,
    and whether copies have threads of their own."""
    for node in statements_in(kernel.body):
        if isinstance(node, n.Staged) and node.op == "prepare":
            return node.numbers
    return 0, 1, 1, 0
