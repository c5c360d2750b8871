"""Running a kernel: its blocks in chunks, and what the generated code calls while a chunk runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.ptx_machine import copies, matrices, stages
from tests.support.ptx_machine import memory as memories
from tests.support.ptx_machine.arithmetic import Array
from tests.support.ptx_machine.atomics import atomic
from tests.support.ptx_machine.instructions import translate
from tests.support.ptx_machine.memory import GlobalMemory, MachineFault, Spaces
from tests.support.ptx_machine.program import BasicBlock, Program, program_of
from tests.support.ptx_machine.records import Instruction, Module, Name, Variable
from tests.support.ptx_machine.schedule import Schedule, layout_of
from tests.support.ptx_machine.text import parse
from tests.support.ptx_machine.types import TYPES, PtxType
from tests.support.ptx_machine.writer import Block, V, Writer

_CHUNK_THREADS = 8192
_CHUNK_LOCAL = 1 << 26  # bytes of local memory in a chunk
_DIRECTIVES = 3
_OF_MATRICES: dict[str, Callable[..., Any]] = {
    "multiply": matrices.multiply, "spread": matrices.spread, "first": matrices.first,
}  # fmt: skip


class Kernel:
    """One `.entry`, loaded: its variables have places, its code is translated as it is reached."""

    def __init__(
        self, module: Module, entry: str, memory: GlobalMemory, strict: bool = True
    ) -> None:
        self.program: Program = program_of(module, entry, strict)
        if not strict:
            self.program.watched.clear()
        self.memory = memory
        self.parameters, self.parameter_bytes = _lay_out(self.program.function.parameters)
        self.places, self.shared_bytes, self.local_bytes = self._place_variables()
        for name, place in self.parameters.items():
            self.places[name] = stages.PARAMETERS + place
        self._blocks: list[Block | None] = [None] * len(self.program.blocks)

    def _place_variables(self) -> tuple[dict[str, int], int, int]:
        places: dict[str, int] = {}
        ends = {"shared": 0, "local": 0}
        by_kind = sorted(self.program.variables.values(), key=lambda variable: variable.size == 0)
        for variable in by_kind:  # what the launch sizes comes last
            if variable.space in ends:
                start = -(-ends[variable.space] // variable.align) * variable.align
                places[variable.name] = start
                ends[variable.space] = start + variable.size
            else:
                places[variable.name] = self.memory.allocate(variable.size)
                bytes = self.memory.slice(places[variable.name], variable.size)
                bytes[:] = 0
                bytes[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        return places, ends["shared"], ends["local"]

    def code(self, block: BasicBlock) -> Block:
        """The block as a function."""
        known = self._blocks[block.number]
        if known is None:
            writer = Writer(self.program, block, self.places)
            for one in block.body:
                translate(writer, one)
            known = writer.function(self._condition(writer, block))
            self._blocks[block.number] = known
        return known

    def _condition(self, writer: Writer, block: BasicBlock) -> str:
        writer.one = block.last
        if (
            block.end == "barrier"
            and block.last
            and any(isinstance(one, Name) for one in block.last.operands)
        ):
            # Which barrier each thread waits at, and for how many.
            values = [writer.each(writer.read(one, TYPES["u32"])) for one in block.last.operands]
            return f"np.stack(({', '.join(values)},))"
        if block.condition is None:
            return "None"
        condition: V = writer.read(block.condition, TYPES["pred"])
        return condition.text

    # --- launching ---

    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        parameters: bytes,
        dynamic_shared: int = 0,
    ) -> None:
        """Run every block. `parameters` are the kernel's, each at its alignment."""
        name, asked = self.program.name, self.program.function.block
        asked += (1,) * (_DIRECTIVES - len(asked)) if asked else ()
        if self.program.function.exact_block and asked != tuple(block):
            raise MachineFault(f"{name}: a block of {block}, but .reqntid says {asked}")
        if len(parameters) < self.parameter_bytes:
            raise MachineFault(
                f"{name}: {len(parameters)} bytes of parameters, of {self.parameter_bytes}"
            )
        threads = block[0] * block[1] * block[2]
        most = min(_CHUNK_THREADS // threads, _CHUNK_LOCAL // max(threads * self.local_bytes, 1))
        count, cluster = grid[0] * grid[1] * grid[2], self.program.function.cluster
        chunk = max(most // cluster, 1) * cluster
        if grid[0] % cluster:
            raise MachineFault(f"{name}: {grid[0]} blocks, in clusters of {cluster}")
        self.memory.begin_launch()
        with np.errstate(all="ignore"):
            for first in range(0, count, chunk):
                frame = Frame(
                    self, grid, block, range(first, min(first + chunk, count)), parameters,
                    self.shared_bytes + dynamic_shared,
                )  # fmt: skip
                frame.run()
        self.memory.end_launch(name)


def load(text: str, entry: str, memory: GlobalMemory, strict: bool = True) -> Kernel:
    """A kernel from its module's text. If not `strict`, it may read registers that were never
    written, as the code of compilers does where it does not matter what they hold."""
    return Kernel(parse(text), entry, memory, strict)


def _lay_out(parameters: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    places: dict[str, int] = {}
    end = 0
    for parameter in parameters:
        places[parameter.name] = start = -(-end // parameter.align) * parameter.align
        end = start + parameter.size
    return places, end


class Frame:
    """Some blocks of a launch while they run. What the generated code calls is here."""

    def __init__(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        blocks: range,
        parameters: bytes,
        shared_bytes: int,
    ) -> None:
        self.kernel = kernel
        self.program = kernel.program
        self.layout = layout_of(len(blocks), block[0] * block[1] * block[2])
        self.lanes, self.all, self.rows = self.layout.lanes, self.layout.all, self.layout.rows
        self.warps = self.layout.warps()
        self.spaces = Spaces(
            kernel.memory,
            len(blocks),
            self.lanes,
            shared_bytes,
            kernel.local_bytes,
            self.program.function.cluster,
        )
        self.registers: list[Any] = [None] * len(self.program.registers)
        self._defined: dict[int, Any] = {}
        self._parameters = parameters
        self._grid, self._block, self._blocks = grid, block, blocks
        self._shared_bytes = shared_bytes
        self._cycles = 0
        self.copies = copies.Copies(self.lanes)
        self.stages = stages.Stages(self)

    def run(self) -> None:
        """Until every thread has returned."""
        schedule = Schedule(self.program, self.layout, self.warps, self._blocks.start)
        code, registers = self.kernel.code, self.registers
        schedule.run(lambda block, threads: code(block)(self, registers, threads))

    # --- registers ---

    def put(self, at: int, threads: Array, value: Array, dtype: str) -> None:
        """A register's value for some threads."""
        if self.registers[at] is None:
            self.registers[at] = np.zeros(self.lanes, dtype)
        self.registers[at][threads] = value

    def old(self, at: int, threads: Any, dtype: str) -> Array:
        """A register's value, if it has one yet."""
        held = self.registers[at]
        if held is None:
            return np.zeros(self.lanes if threads is None else len(threads), dtype)
        return held if threads is None else held[threads]

    def define(self, at: int, threads: Array, mask: Array | None) -> None:
        """A watched register was written."""
        if at not in self._defined:
            self._defined[at] = np.zeros(self.lanes, bool)
        self._defined[at][threads if mask is None else threads[mask]] = True

    def check(
        self, at: int, threads: Array, mask: Array | None, one: Instruction, name: str
    ) -> None:
        """MachineFault if a watched register was not written by each thread that reads it."""
        used = threads if mask is None else threads[mask]
        known = self._defined.get(at)
        missing = used if known is None else used[~known[used]]
        if len(missing):
            raise MachineFault(
                f"{one}: {name} was never written by thread {int(missing[0])} of the launch's chunk"
            )

    def special(self, name: str, threads: Any) -> Array:
        """A special register."""
        if name == "%clock64":
            self._cycles += 1
            return np.full(self.lanes if threads is None else len(threads), self._cycles, np.uint64)
        # Those of a block are the same for every launch of its shape.
        shape = self._grid if name.startswith("%nctaid") else self._block
        key = name, shape, self._shared_bytes
        values = self.layout.known.get(key)
        if values is None:
            values = self._special_values(name).astype(np.uint32)
            if not name.startswith("%ctaid"):
                self.layout.known[key] = values
        return values if threads is None else values[threads]

    def _special_values(self, name: str) -> Array:
        word, _, axis = name[1:].partition(".")
        at = "xyz".index(axis) if axis else -1
        lane, bit = self.warps.lane, self.warps.bit
        dynamic = self._shared_bytes - self.kernel.shared_bytes
        made: dict[str, Callable[[], Array]] = {
            "tid": lambda: _along(self.layout.in_block, self._block, at),
            "ctaid": lambda: _along(self.rows + self._blocks.start, self._grid, at),
            "ntid": lambda: self._all(self._block[at]),
            "nctaid": lambda: self._all(self._grid[at]),
            "laneid": lambda: lane,
            "cluster_ctarank": lambda: self.rows % self.program.function.cluster,
            "warpid": lambda: self.warps.warp_in_block,
            "nwarpid": lambda: self._all(self.warps.per_block),
            "lanemask_eq": lambda: bit,
            "lanemask_lt": lambda: bit - np.uint32(1),
            "lanemask_le": lambda: bit | (bit - np.uint32(1)),
            "lanemask_gt": lambda: ~(bit | (bit - np.uint32(1))),
            "lanemask_ge": lambda: ~(bit - np.uint32(1)),
            "dynamic_smem_size": lambda: self._all(dynamic),
            "total_smem_size": lambda: self._all(self._shared_bytes),
        }
        if word not in made:
            raise MachineFault(f"{self.program.name}: the special register {name} is unknown")
        return made[word]()

    def ranked(self, threads: Any, address: Any) -> Array:
        """An address of shared memory, as each thread of a cluster has it."""
        found = address + (self.special("%cluster_ctarank", threads) << memories.RANK_AT)
        return found.astype(address.dtype)

    def _all(self, value: int) -> Array:
        return np.full(self.lanes, value)

    def parameter(self, name: str, offset: int, dtype: str) -> Any:
        """A kernel parameter."""
        at = self.kernel.parameters[name] + offset
        return np.frombuffer(self._parameters, dtype, 1, at)[0]

    # --- memory; a mask says which of the threads take part ---

    @staticmethod
    def window(space: str) -> Any:
        """Where a space lies among generic addresses."""
        bases = {"shared": memories.SHARED_WINDOW, "local": memories.LOCAL_WINDOW}
        return np.uint64(bases.get(space, 0))

    def load(
        self,
        space: str,
        address: Array,
        threads: Array,
        rows: Array,
        width: int,
        count: int,
        one: Instruction,
        mask: Array | None,
    ) -> list[Array]:
        if mask is None:
            return memories.load(self.spaces, space, address, threads, rows, width, count, one)
        at = np.flatnonzero(mask)
        results = [np.zeros(len(threads), f"u{width}") for _ in range(count)]
        if len(at):
            some = memories.load(
                self.spaces, space, address[at], threads[at], rows[at], width, count, one
            )
            for result, found in zip(results, some, strict=True):
                result[at] = found
        return results

    def store(
        self,
        space: str,
        address: Array,
        values: list[Array],
        threads: Array,
        rows: Array,
        width: int,
        one: Instruction,
        mask: Array | None,
    ) -> None:
        if mask is not None:
            at = np.flatnonzero(mask)
            if not len(at):
                return
            address, threads, rows = address[at], threads[at], rows[at]
            values = [value[at] for value in values]
        memories.store(self.spaces, space, address, values, threads, rows, width, one)

    def begin_copy(self, *arguments: Any) -> None:
        copies.begin_copy(self, *arguments)

    def finish_copies(self, threads: Array, left: int) -> None:
        """Write what these threads wait for."""
        for each in self.copies.due(threads, left):
            self.store("shared", each.address, each.words, each.threads, each.rows, 4, each.one,
                       None)  # fmt: skip

    def atomic(
        self,
        space: str,
        operation: str,
        type: PtxType,
        address: Array,
        operands: list[Array],
        threads: Array,
        rows: Array,
        one: Instruction,
        mask: Array | None,
    ) -> Array:
        if mask is None:
            return atomic(
                self.spaces, space, operation, type, address, operands, threads, rows, one
            )
        at = np.flatnonzero(mask)
        result = np.zeros(len(threads), type.stored)
        if len(at):
            some = [operand[at] for operand in operands]
            result[at] = atomic(
                self.spaces, space, operation, type, address[at], some, threads[at], rows[at], one
            )
        return result

    def together(
        self,
        method: str,
        threads: Array,
        mask: Array | None,
        mode: str,
        operands: tuple[Array, ...],
        one: Instruction,
    ) -> Any:
        """An operation of warps, for those of the threads that the guard lets through."""
        if method in _OF_MATRICES:
            return _OF_MATRICES[method](self.warps, threads, mode, operands, one)
        if mask is None:
            return getattr(self.warps, method)(threads, mode, *operands, one)
        at = np.flatnonzero(mask)
        if not len(at):
            at = np.zeros(0, int)
        found = getattr(self.warps, method)(threads[at], mode, *(o[at] for o in operands), one)
        whole = []
        for part in found if isinstance(found, tuple) else (found,):
            result = np.zeros(len(threads), part.dtype)
            result[at] = part
            whole.append(result)
        return tuple(whole) if isinstance(found, tuple) else whole[0]


def _along(flat: Array, extents: tuple[int, int, int], axis: int) -> Array:
    """The place along an axis, from a number that counts x fastest."""
    x, y, _ = extents
    return (flat % x, flat // x % y, flat // (x * y))[axis]
