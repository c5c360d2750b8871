"""A program as something to run: its kernels, and the launches for the sizes that came up."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from treadle.core.recent_cache import RecentCache
from treadle.core.sizes import fixed, has_sizes
from treadle.graph.emit.body import dtype_named
from treadle.graph.emit.maps import emit_map, map_strategy
from treadle.graph.emit.row_kernels import emit_rows
from treadle.graph.emit.row_strategy import row_strategy
from treadle.graph.program import FIXED, Kind, Program, Stage, Step, Strategy
from treadle.ir.definition import KernelOptions, LoweredKernel, Work
from treadle.ir.nodes import Kernel
from treadle.ir.signature import Declared, DeclaredParameter, Signature
from treadle.ir.types import F32, I32, I64, SCALARS
from treadle.kernels.launching import new
from treadle.kernels.machine import machine_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.launch import Launcher, Repeat
from treadle.runtime.varying import varying

_RECENT_SIZES = 512  # of each program; others are planned again
_NO_OPERATIONS = frozenset({"load", "gather", "scalar", "constant", "index", "cast"})
_COMPLEX_PARTS = {"c64": SCALARS["f32"], "c128": SCALARS["f64"]}


class FusedKernel:
    """One kernel of a program, as the launch path wants it."""

    options = KernelOptions(checked=False)  # its accesses are right by construction

    def __init__(
        self, program: Program, stage: Stage, scratch: Sequence[str], is_first: bool
    ) -> None:
        self.program = program
        self.scratch = len(scratch)
        self.is_first = is_first  # of the program's launches: the one that reads its arrays
        self.variant = stage.variant
        self.name = program.name
        index = I64 if program.big else I32
        arrays = [*program.buffers, *scratch]
        found: list[tuple[str, Declared]] = [(f"a{k}", None) for k in range(len(arrays))]
        count = program.integers + len(stage.integers)
        found += [(f"n{k}", index) for k in range(count)]
        for k, short in enumerate(program.scalars):
            part = _COMPLEX_PARTS.get(short)
            if part is not None:
                found += [(f"s{k}.x", part), (f"s{k}.y", part)]
            else:
                type = SCALARS[short]
                found.append((f"s{k}", F32 if type.is_float and type.bits < 32 else type))
        self.parameters = tuple(DeclaredParameter(*pair) for pair in found)

    def captured(self) -> Hashable:
        """Nothing: what a program depends on is in it."""
        return None

    def identity(self) -> str | None:
        """The program and its variant as text; None where a user's function is in it."""
        if any(step.op == "apply" for step in self.program.steps):
            return None
        text = f"{self.program!r}\n{self.variant!r}"
        return None if " at 0x" in text else text

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR; shapes do not matter to it."""
        return LoweredKernel(emit(self.program, self.variant), None)

    def work(self, values: Sequence[Any]) -> Work:
        """For profiles: one operation for each step at each point, and every element that is read
        or written, once. What puts parts together does one for each part."""
        program = self.program
        arrays = len(program.buffers) + self.scratch
        if not self.is_first:
            parts = values[len(program.buffers) : arrays]
            moved_parts = sum(array.size * array.dtype.itemsize for array in parts)
            return Work(moved_parts, sum(array.size for array in parts))
        extents = values[arrays:][: program.kept + program.reduced]
        steps = sum(step.op not in _NO_OPERATIONS for step in program.steps)
        used = {number for step in program.steps for number in _accesses(step)}
        used |= {output.access for output in program.outputs}
        moved: dict[int, int] = {}  # bytes of each buffer
        for number in used:
            buffer, axes, _ = program.accesses[number]
            array = values[buffer]
            moving = (n for n, axis in zip(extents, axes, strict=False) if axis != FIXED)
            count = min(math.prod(moving), array.size) * array.dtype.itemsize
            moved[buffer] = max(moved.get(buffer, 0), count)
        operations = math.prod(extents) * steps
        if program.kind == Kind.PRODUCT:  # and the epilogue, once for each element
            operations = 2 * math.prod(extents) + math.prod(extents[:-1]) * (steps - 1)
            for buffer in next(s.detail.buffers for s in program.steps if s.op == "product"):
                if buffer is not None:
                    moved[buffer] = values[buffer].size * values[buffer].dtype.itemsize
        return Work(sum(moved.values()), operations)


def _accesses(step: Step) -> tuple[int, ...]:
    if step.op == "load":
        return (step.detail,)
    return (step.detail[0],) if step.op == "gather" else ()


class Emitter(NamedTuple):
    """What makes launches and kernels of the programs of a kind."""

    strategy: Callable[[Program, tuple[int, ...], Device], Strategy]
    emit: Callable[[Program, Any], Kernel]  # of a program and a stage's variant


def _strategy_of_rows(program: Program, extents: tuple[int, ...], device: Device) -> Strategy:
    return row_strategy(program, extents, machine_of(device))


# Products need passes over IR, whose import takes longer than that of all of `graph`.
def _strategy_of_product(program: Program, extents: tuple[int, ...], device: Device) -> Strategy:
    from treadle.graph.emit.products import product_strategy

    return product_strategy(program, extents, machine_of(device))


def _emit_product(program: Program, variant: Any) -> Kernel:
    from treadle.graph.emit.products import emit_product

    return emit_product(program, variant)


_ROWS = Emitter(_strategy_of_rows, emit_rows)
EMITTERS: dict[Kind, Emitter] = {
    Kind.MAP: Emitter(map_strategy, emit_map),
    Kind.REDUCE: _ROWS,
    Kind.ROWS: _ROWS,
    Kind.PRODUCT: Emitter(_strategy_of_product, _emit_product),
}


def emit(program: Program, variant: Hashable) -> Kernel:
    """A program's kernel in IR."""
    return EMITTERS[program.kind].emit(program, variant)


Launch = Callable[[tuple[Any, ...]], Repeat | None]


class Runner(Protocol):
    """What runs a program."""

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute the outputs, which are the last of the arrays. `repeats` are an earlier run's
        launches, whose arrays were of the same classes; or empty, and then filled."""


class Sized:
    """A program ready to run for extents that are known."""

    __slots__ = ("launches", "scratch")

    def __init__(self, launches: list[tuple[Launch, Stage]], strategy: Strategy) -> None:
        self.launches = launches
        self.scratch = strategy.scratch

    def run(
        self,
        arrays: Sequence[DeviceArray],
        integers: tuple[int, ...],
        scalars: Sequence[Any],
        repeats: list[Repeat],
    ) -> None:
        """Compute the outputs, which are the last of the arrays. `repeats` are an earlier run's
        launches, whose arrays were of the same classes; or empty, and then filled."""
        like = arrays[-1]
        scratch = [new(like, dtype_named(short), count) for short, count in self.scratch]
        scalars = _flat(scalars)
        known = len(repeats) == len(self.launches)
        found: list[Repeat] = []
        for number, (launch, stage) in enumerate(self.launches):
            own = [scratch[each] for each in stage.scratch]
            values = [*arrays, *own, *integers, *stage.integers, *scalars]
            if known:
                repeats[number](values, len(arrays) + len(own))
            elif (made := launch(tuple(values))) is not None:
                found.append(made)
        if not known:
            repeats[:] = found


def _flat(scalars: Sequence[Any]) -> Sequence[Any]:
    """Complex numbers as two."""
    if not scalars or not any(type(value) is complex for value in scalars):
        return scalars
    found: list[Any] = []
    for value in scalars:
        found += [value.real, value.imag] if isinstance(value, complex) else [value]
    return found


class Fused:
    """A program on one device."""

    __slots__ = ("_axes", "_launchers", "_sizes", "device", "program")

    def __init__(self, program: Program, device: Device) -> None:
        self.program = program
        self.device = device
        self._axes = program.kept + program.reduced
        self._launchers: dict[Any, Launcher] = {}
        self._sizes: RecentCache[tuple[int, ...], Sized] = RecentCache(_RECENT_SIZES)

    def sized(self, integers: tuple[int, ...]) -> Sized:
        """The program for these extents (the first of the integers)."""
        extents = integers[: self._axes]
        if varying.get() is not None and has_sizes(extents):
            return self._plan(extents)  # for this trace alone
        found = self._sizes.get(extents)
        if found is None:
            found = self._sizes[extents] = self._plan(extents)
        return found

    def _plan(self, extents: tuple[int, ...]) -> Sized:
        program = self.program
        strategy = EMITTERS[program.kind].strategy(program, extents, self.device)
        launches: list[tuple[Launch, Stage]] = []
        for number, stage in enumerate(strategy.stages):
            if varying.get() is not None:
                stage = replace(stage, variant=fixed(stage.variant))
            shorts = [strategy.scratch[each][0] for each in stage.scratch]
            key = (stage.variant, tuple(shorts), len(stage.integers), number == 0)
            launcher = self._launchers.get(key)
            if launcher is None:
                launcher = self._launchers[key] = Launcher(
                    FusedKernel(program, stage, shorts, number == 0)
                )
            launch = launcher.bound(stage.grid, stage.block, 0, None, stage.threads)
            launches.append((launch, stage))
        return Sized(launches, strategy)


def fused_for(device: Device, program: Program) -> Fused:
    """A program's kernels on a device."""
    if varying.get() is not None:
        program = fixed(program)
    found: Fused | None = device.programs.get(program)
    if found is None:
        found = device.programs[program] = Fused(program, device)
    return found
