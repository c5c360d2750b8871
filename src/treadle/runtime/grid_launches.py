"""Launches of kernels with barriers of the grid, as several launches (`ir.passes.grid_parts`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.dtypes import uint32
from treadle.core.errors import LaunchError
from treadle.ir import nodes as n
from treadle.ir.builder import constant
from treadle.ir.definition import KernelDefinition, KernelOptions, LoweredKernel
from treadle.ir.passes.grid_parts import (
    Ask,
    Count,
    Decide,
    GridParts,
    Launch,
    grid_parts,
    steps_for,
    value_of,
    with_offset,
)
from treadle.ir.passes.grid_state import ANSWERS, KEPT
from treadle.ir.passes.uniformity import written_memories
from treadle.ir.signature import ArrayArgument, DeclaredParameter, DeclaredPointer, Signature
from treadle.ir.types import U32, Scalar
from treadle.runtime import convert
from treadle.runtime.arguments import declared_arguments
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Stream, default_device
from treadle.runtime.grid_steps import host_steps
from treadle.runtime.launch import Launcher

_MOST_WORDS = 1 << 31
_COMMENTS = {"llvm": ";", "numpy": "#"}  # of languages without C's
_ONE_TEXT = frozenset({"cuda", "msl"})  # languages whose texts have any number of kernels


class GridKernel:
    """A kernel with barriers of the grid, for blocks of one size."""

    def __init__(self, definition: KernelDefinition, block: Dim3) -> None:
        self.definition = definition
        self.block = block
        self._parts: dict[Signature, GridParts] = {}

    def parts_for(self, signature: Signature) -> GridParts:
        """The parts for arguments of certain types."""
        found = self._parts.get(signature)
        if found is None:
            kernel = self.definition.lower(signature).kernel
            found = self._parts[signature] = grid_parts(kernel, self.block)
        return found

    @cached_property
    def signature(self) -> Signature:
        """The signature of the declared parameters."""
        return Signature(declared_arguments(self.definition))

    @property
    def parts(self) -> GridParts:
        """The parts for the declared parameters; other signatures have as many."""
        return self.parts_for(self.signature)

    @cached_property
    def launchers(self) -> tuple[Launcher, ...]:
        """What launches each part."""
        return tuple(Launcher(GridPart(self, number)) for number in range(len(self.parts.parts)))

    @cached_property
    def written(self) -> frozenset[int]:
        """The positions of the arrays that the kernel stores to."""
        arguments = self.signature.arguments
        arrays = [at for at, one in enumerate(arguments) if isinstance(one, ArrayArgument)]
        parts = self.parts.parts
        names = set().union(*map(written_memories, parts))
        buffers = parts[0].buffers if parts else ()
        return frozenset(at for at, one in zip(arrays, buffers, strict=False) if one.name in names)

    def launch(
        self, grid: Dim3, shared_bytes: int, arguments: tuple[Any, ...], stream: Stream | None
    ) -> None:
        """Run `grid` blocks. LaunchError as for other launches, and where the threads of the grid
        do not agree on the way."""
        device = convert.device_of_arguments(arguments) if stream is None else stream.device
        to = stream or (device or default_device()).default_stream
        taken = convert.convert_arguments(self.definition, arguments, to)
        with taken.order:
            self._run(grid, shared_bytes, tuple(taken.arguments), to)
        taken.copy_back(self.written)

    def texts(self, target: str, shared_bytes: int, sm: int | str | None) -> dict[str, str]:
        """The source of the parts, by names: each part is a kernel of its own name. Where a
        compiler takes several kernels in one text it is one text, and else a text for each."""
        from treadle.codegen.c_family.joined import joined

        plain = re.sub(r"\W+", "_", self.definition.name).strip("_")  # of until<float>, too
        names = [f"{plain}_{number + 1}" for number in range(len(self.launchers))]
        printed = [
            Launcher(GridPart(self, number, name)).source(target, (), self.block, shared_bytes, sm)
            for number, name in enumerate(names)
        ]
        mark = _COMMENTS.get(target, "//")
        lines = host_steps(self.parts, names, self.block)
        head = "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
        if not printed:  # barriers without anything between them
            return {self.definition.name: head}
        if target in _ONE_TEXT:
            return {self.definition.name: f"{head}\n{joined(printed)}"}
        if len(printed) > 1:
            printed = [
                f"{mark} {'-' * 80}\n{mark} Part {number} of {len(names)}: a module of its own.\n"
                f"{text}"
                for number, text in enumerate(printed, 1)
            ]
        printed[0] = f"{head}\n{printed[0]}"
        return dict(zip(names, printed, strict=True))

    def _run(self, grid: Dim3, shared_bytes: int, arguments: tuple[Any, ...], to: Stream) -> None:
        parts, name = self.parts, self.definition.name
        if parts.asks and to.capturing is not None:
            raise LaunchError(
                f"kernel {name} has barriers of the grid around which its data decide, so the host "
                "reads what they decided, and a graph cannot record it"
            )
        words = parts.words(grid, self.block, shared_bytes)
        if words >= _MOST_WORDS:
            raise LaunchError(
                f"kernel {name} would keep {words:,} numbers of its threads at a barrier of the "
                f"grid, and {_MOST_WORDS - 1:,} are possible: launch fewer blocks, and let each "
                "thread loop"
            )
        kept = DeviceArray.allocate(to.device, uint32, (max(words, ANSWERS),))
        answers = np.zeros(ANSWERS, np.uint32)
        if parts.asks:
            to.handle.write(kept.buffer, 0, answers.view(np.uint8).data)
        known = self._known(parts, grid, arguments)
        launches: dict[int, Callable[..., Any]] = {}
        arguments = self._in_memory(arguments)
        steps = steps_for(parts.steps, grid)
        at = parts.first
        while at is not None:
            match steps[at]:
                case Launch(part, following):
                    if part not in launches:
                        launches[part] = self.launchers[part].bound(
                            grid, self.block, shared_bytes, to
                        )
                    counters = tuple(known[one.name].value for one in parts.counters)
                    launches[part]((*arguments, kept, *counters))
                    at = following
                case Count(counter, value, following):
                    known[counter] = value_of(value, known)
                    at = following
                case Decide(condition, then, otherwise):
                    at = then if value_of(condition, known).value else otherwise
                case Ask(then, otherwise, span):
                    to.handle.read(kept.buffer, 0, answers.view(np.uint8).data)
                    holds, holds_not = (bool(one) for one in answers)
                    if holds and holds_not:
                        raise LaunchError(
                            f"kernel {name}: not all threads of the grid go the same way at line "
                            f"{span.line}, around a barrier of the grid, which all must reach"
                        )
                    if not holds and not holds_not:
                        return  # all threads have returned
                    at = then if holds else otherwise
                    answers[:] = 0
                    to.handle.write(kept.buffer, 0, answers.view(np.uint8).data)

    def _in_memory(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with arrays in place of tensors; those that the kernel stores to learn of
        it."""
        name = self.definition.name

        def arrays() -> tuple[Any, ...]:
            return tuple(
                one.__treadle_array__(name) if hasattr(one, "__treadle_array__") else one
                for one in arguments
            )

        arrays()  # refuses tensors before any of them learns of something
        for position in self.written:
            if hasattr(arguments[position], "__treadle_written__"):
                arguments[position].__treadle_written__()
        return arrays()

    def _known(
        self, parts: GridParts, grid: Dim3, arguments: tuple[Any, ...]
    ) -> dict[str, n.Constant]:
        """The values of parameters and counters, as far as the host has them."""
        known = {one.name: n.Constant(0, _scalar(one)) for one in parts.counters}
        places = {one.name: at for at, one in enumerate(self.definition.parameters)}
        for parameter in parts.parts[0].parameters if parts.parts else ():
            match parameter.origin:
                case ("value", str() as argument) if argument in places:
                    value = arguments[places[argument]]
                    if isinstance(value, (bool, int, float, np.generic)):
                        number = value.item() if isinstance(value, np.generic) else value
                        known[parameter.name] = constant(number, parameter.type)
                case ("grid", int() as axis):
                    known[parameter.name] = n.Constant(grid[axis], parameter.type)
        return known


def _scalar(variable: n.Variable) -> Scalar:
    assert isinstance(variable.type, Scalar)
    return variable.type


class GridPart:
    """The definition of a part (`ir.definition.KernelDefinition`)."""

    def __init__(self, whole: GridKernel, number: int, printed_as: str | None = None) -> None:
        self._whole = whole
        self._number = number
        self._printed_as = printed_as
        self.name = whole.definition.name
        counters = tuple(
            DeclaredParameter(f"grid.{one.name}", _scalar(one)) for one in whole.parts.counters
        )
        kept = DeclaredParameter(KEPT, DeclaredPointer(U32, "unsigned int *"))
        self.parameters = (*whole.definition.parameters, kept, *counters)

    @property
    def options(self) -> KernelOptions:
        """Those of the whole kernel."""
        return self._whole.definition.options

    @cached_property
    def signature(self) -> Signature:
        """The signature of the declared parameters."""
        return Signature(declared_arguments(self))

    def captured(self) -> Any:
        """Those of the whole kernel."""
        return self._whole.definition.captured()

    def lower(self, signature: Signature) -> LoweredKernel:
        """The part in IR."""
        whole = self._whole
        count = len(whole.definition.parameters)
        own = Signature(signature.arguments[:count], signature.threads)
        parts, declared = whole.parts_for(own), whole.parts
        assert parts.steps == declared.steps, "parts depend on the types of arguments"
        lowered = whole.definition.lower(own)
        kernel = parts.parts[self._number]
        kept = signature.arguments[count]
        assert isinstance(kept, ArrayArgument)
        if kept.has_offset:
            kernel = with_offset(kernel)
        if self._printed_as is not None:
            kernel = replace(kernel, name=self._printed_as)
        return LoweredKernel(kernel, lowered.captured, lowered.sources)
