"""Whole programs: a kernel's source, its arguments and its launch, drawn together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.expressions import (
    INTEGERS,
    WIDE_INTEGERS,
    Choices,
    Expressions,
    Function,
    Memory,
    Name,
    highest,
    lowest,
)
from tests.fuzz.statements import (
    COMMUTING,
    STRUCT,
    VARIABLE_TYPES,
    Accumulator,
    Body,
    draw_function,
)

NUMPY = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "f16": np.float16, "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
}  # fmt: skip
ARRAY_TYPES = ("i32", "f32", "u32", "i8", "u8", "i16", "u16", "f16", "bool")
BLOCKS = (1, 4, 7, 16, 32, 33, 40)
BLOCKS_2D = ((4, 2), (5, 3), (8, 4), (3, 7))


@dataclass(frozen=True)
class ArrayArgument:
    """An array to pass: its contents come from a seed, its layout from a slice of a larger one."""

    name: str
    type: str
    shape: tuple[int, ...]
    seed: int
    layout: str = "whole"  # "offset", "strided": a view

    def whole(self) -> np.ndarray[Any, Any]:
        """The array that is allocated; `view` of it is passed."""
        shape = self.shape
        if self.layout == "offset":
            shape = (shape[0] + 3, *shape[1:])
        elif self.layout == "strided":
            shape = (*shape[:-1], 2 * shape[-1] + 1)
        return contents(self.type, shape, self.seed)

    def view(self, whole: Any) -> Any:
        """What is passed; works on NumPy arrays and tensors."""
        if self.layout == "offset":
            return whole[3:]
        if self.layout == "strided":
            return whole[..., 1::2]
        return whole


@dataclass(frozen=True)
class Program:
    """What a run needs. `threads` is None for a launch by blocks."""

    source: str
    arrays: tuple[ArrayArgument, ...]
    same: tuple[tuple[str, str], ...]  # parameter: the array argument that it is, too
    order: tuple[str, ...]  # parameters
    scalars: dict[str, Any]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    threads: int | None = None

    def __str__(self) -> str:
        lines = [self.source]
        lines += [f"# {a.name}: {a.type} {a.shape} {a.layout}, seed {a.seed}" for a in self.arrays]
        lines += [f"# {name} is {other}" for name, other in self.same]
        lines += [f"# {name} = {value!r}" for name, value in self.scalars.items()]
        launch = (
            f".launch({self.threads}, …)" if self.threads else f"[{self.grid}, {self.block}](…)"
        )
        lines.append(f"# fuzzed{launch} with ({', '.join(self.order)})")
        return "\n".join(lines)


def contents(type: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Small numbers, with a few of the type's extremes among integers."""
    rng = np.random.default_rng(seed)
    if type == "bool":
        return rng.random(shape) < 0.5
    if type in ("f32", "f16"):
        return (rng.integers(-40, 41, shape) / 4).astype(NUMPY[type])
    low, high = lowest(type), highest(type)
    wide = rng.integers(low, high, shape, endpoint=True)
    small = rng.integers(max(low, -4), 12, shape)
    edges = rng.choice([low, high, low + 1, high - 1], shape)
    kind = rng.random(shape)
    return np.where(kind < 0.6, small, np.where(kind < 0.9, wide, edges)).astype(NUMPY[type])


def program_from(tape: bytes, wide: bool = False) -> Program:
    """The program that a tape of bytes decides on, perhaps with wide types (`Choices.wide`)."""
    return _Drawing(Choices(tape, wide)).program()


def array_type(type: str, axes: int) -> str:
    """The annotation of an array parameter."""
    return f"td.Array[td.{type}, 2]" if axes == 2 else f"td.Array[td.{type}]"


class _Drawing:
    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.arrays: list[ArrayArgument] = []
        self.annotations: dict[str, str] = {}
        self.scalars: dict[str, Any] = {}
        self.same: list[tuple[str, str]] = []

    def program(self) -> Program:
        choices = self.choices
        self.axes = 2 if choices.chance(25) else 1
        if self.axes == 2:
            block: tuple[int, ...] = choices.pick(BLOCKS_2D)
            grid: tuple[int, ...] = (choices.number(1, 2), choices.number(1, 2))
        else:
            block = (choices.pick(BLOCKS),)
            grid = (choices.number(1, 3 if block[0] < 33 else 2),)
        self.threads = int(np.prod(block))
        self.block = block
        self.total = self.threads * int(np.prod(grid))
        by_threads = self.axes == 1 and choices.chance(15)

        functions: list[Function] = []
        lines = ["import treadle as td", "", "STEP = 3", ""]
        fields: tuple[str, ...] = ()
        if choices.wide:
            types = (*VARIABLE_TYPES, "i64", "u64")
            fields = tuple(choices.pick(types) for _ in range(choices.number(2, 3)))
            members = [f"    f{k}: td.{type}" for k, type in enumerate(fields)]
            lines += ["@td.struct", f"class {STRUCT}:", *members, "", ""]
        for k in range(choices.weighted([(4, 0), (3, 1), (2, 2)])):
            text, function = draw_function(choices, f"helper{k}", functions)
            lines += [*text, "", ""]
            functions.append(function)

        e = Expressions(choices, self.threads)
        e.functions = functions
        body = Body(choices, e, None)
        body.fields = fields
        self.body, self.e = body, e
        if self.axes == 2:
            body.line("i, j = td.grid(2)")
            e.names += [Name("i", "i32", assignable=False), Name("j", "i32", assignable=False)]
        else:
            body.line("i = td.grid(1)")
            e.names.append(Name("i", "i32", assignable=False))
        e.names.append(Name("td.i32(STEP)", "i32", True, assignable=False, fixed=True))
        self._inputs()
        self._outputs()
        self._accumulators()
        self._scalars()
        if not by_threads:
            self._block_level()
        body.budget = choices.number(3, 16)
        while body.budget > 0 and not choices.over:
            body.statements(4)
        self._finish()

        order = tuple(choices.pick(self._orders()))
        heads = [f"{n}: {self.annotations[n]}" if self.annotations[n] else n for n in order]
        lines += ["@td.kernel", f"def fuzzed({', '.join(heads)}):", *body.lines, ""]
        return Program(
            "\n".join(lines), tuple(self.arrays), tuple(self.same), order, self.scalars, grid,
            block, choices.number(1, self.total) if by_threads else None,
        )  # fmt: skip

    def _orders(self) -> list[list[str]]:
        names = list(self.annotations)
        return [names, names[::-1], names[1:] + names[:1]]

    # --- arguments ---

    def _array(self, name: str, type: str, axes: int, roomy: bool = False) -> tuple[str, ...]:
        """Make an array argument; its extents as text."""
        choices = self.choices
        if axes == 2:
            shape: tuple[int, ...] = (choices.number(1, 9), choices.number(1, 9))
        elif choices.chance(3):
            shape = (0,)
        else:
            shape = (choices.number(1, self.total + 3) if roomy else choices.number(1, 40),)
        layout = choices.weighted([(8, "whole"), (1, "offset"), (1, "strided")])
        if 0 in shape:
            layout = "whole"
        self.arrays.append(ArrayArgument(name, type, shape, choices.number(0, 99), layout))
        self._annotate(name, array_type(type, axes))
        return tuple(f"{name}.shape[{k}]" for k in range(2)) if axes == 2 else (f"{name}.size",)

    def _annotate(self, name: str, annotation: str) -> None:
        self.annotations[name] = "" if self.choices.chance(20) else annotation

    def _inputs(self) -> None:
        for k in range(self.choices.number(0, 2)):
            type, axes = self.choices.pick(ARRAY_TYPES), 2 if self.choices.chance(20) else 1
            extents = self._array(f"x{k}", type, axes)
            self.e.memories.append(Memory(f"x{k}", type, extents))
            self._extents_as_names(extents)
        if self.e.memories and self.choices.chance(10):
            twin = self.choices.pick(self.e.memories)
            self.same.append(("twin", twin.name))
            self._annotate("twin", array_type(twin.type, len(twin.extents)))
            extents = tuple(extent.replace(twin.name, "twin", 1) for extent in twin.extents)
            self.e.memories.append(Memory("twin", twin.type, extents))

    def _extents_as_names(self, extents: tuple[str, ...]) -> None:
        self.e.names += [Name(e, "i32", True, assignable=False, fixed=True) for e in extents]

    def _outputs(self) -> None:
        self.outputs: list[Memory] = []
        for k in range(self.choices.number(1, 3)):
            type, name = self.choices.pick(ARRAY_TYPES), f"out{k}"
            if self.choices.wide and k == 0:
                type = "i32"  # where 64-bit variables are seen
            extents = self._array(name, type, self.axes, roomy=True)
            if self.axes == 2:
                slot = self.choices.weighted([(5, "i, j"), (1, "i + 1, j"), (1, "i, 2 * j")])
            else:
                slot = self.choices.weighted(
                    [(8, "i"), (1, "i + 1"), (1, "2 * i"), (1, f"{name}.size - 1 - i")]
                )
            memory = Memory(name, type, extents, slot, "own", "own")
            self.outputs.append(memory)
            self.e.memories.append(memory)
            if self.choices.chance(8):
                self.same.append((f"{name}b", name))
                self._annotate(f"{name}b", array_type(type, self.axes))
                self.e.memories.append(Memory(f"{name}b", type, extents, slot, "own", "own"))

    def _accumulators(self) -> None:
        for k in range(self.choices.weighted([(5, 0), (2, 1), (1, 2)])):
            type = self.choices.pick(("i32", "u32"))
            extents = self._array(f"acc{k}", type, self.choices.pick((1, 2)))
            kind = self.choices.pick(tuple(COMMUTING))
            self.body.accumulators.append(Accumulator(f"acc{k}", type, extents, kind))

    def _scalars(self) -> None:
        for k in range(self.choices.number(0, 3)):
            type, name = self.choices.pick(("i32", "f32", "u32", "bool", "i8", "u16")), f"s{k}"
            value = contents(type, (1,), self.choices.number(0, 99))[0]
            self.scalars[name] = value if type not in ("i32", "f32", "bool") else value.item()
            self._annotate(name, f"td.{type}")
            self.e.names.append(Name(name, type, True, assignable=False, fixed=True))

    # --- what threads of a block do together ---

    def _block_level(self) -> None:
        body, choices, e = self.body, self.choices, self.e
        for text in ("td.block_idx.x", "td.block_dim.x", "td.grid_dim.x"):
            if choices.chance(20):
                e.names.append(Name(text, "i32", True, assignable=False, fixed=True))
        body.lanes = choices.chance(15) and self.threads >= 4
        if not choices.chance(55):
            return
        body.barriers = True
        if self.axes == 2:
            body.line("t = td.thread_idx.y * td.block_dim.x + td.thread_idx.x")
        else:
            body.line("t = td.thread_idx.x")
        e.names.append(Name("t", "i32", assignable=False))
        for k in range(choices.number(1, 2)):
            type = choices.pick(("i32", "f32", "u32", "i8", "u16", "f16", "bool"))
            self._shared(f"part{k}", type)
        # Rounds through device memory: threads read what others of their block wrote there.
        twice = {other for _, other in self.same}
        for memory in self.outputs:
            if self.axes == 2 or memory.slot != "i" or memory.name in twice:
                continue
            if choices.chance(40):
                memory.block = f"td.block_idx.x * {self.threads} + {{0}}"
                body.exchanged.append(memory)

    def _shared(self, name: str, type: str) -> None:
        body, choices = self.body, self.choices
        spare = choices.number(0, 3)
        if choices.chance(25):
            width = choices.number(2, 6)
            rows = -(-self.threads // width) + spare
            slot, block = f"t // {width}, t % {width}", f"{{0}} // {width}, {{0}} % {width}"
            shape, extents = f"({rows}, {width})", (str(rows), str(width))
        else:
            slot, block, shape = "t", "{0}", str(self.threads + spare)
            extents = (shape,)
        body.line(f"{name} = td.shared({shape}, td.{type})")
        start = "td.f16(0.0)" if type == "f16" else "False" if type == "bool" else "0"
        body.line(f"{name}[{slot}] = {start}")
        memory = Memory(name, type, extents, slot, "own", "own", block)
        body.shared.append(memory)
        self.e.memories.append(memory)

    def _finish(self) -> None:
        """Let every variable of the outermost block be seen in an output."""
        body, e = self.body, self.e
        for memory in self.outputs:
            names = [n.name for n in e.names if n.type == memory.type and n.assignable]
            if memory.type == "i32":
                wide = [n.name for n in e.names if n.type in WIDE_INTEGERS and n.assignable]
                names += [f"td.i32({part})" for n in wide for part in (n, f"{n} >> 32")]
            if names and memory.type in INTEGERS:
                body.line(f"{memory.name}[{memory.slot}] ^= {' ^ '.join(names)}")
            elif names:
                body.line(f"{memory.name}[{memory.slot}] = {names[-1]}")
