"""The launch path: from `kernel[grid, block](…)` to a driver.

A launch finds a prepared launch by its key, packs the scalars, and hands buffers and bytes to the
stream; nothing is rebuilt. The key holds what compiled code depends on: the classes of the
arguments (dtype, rank, contiguity, whether there is an offset, device), which arrays are the same
memory, captured constants, block, shared bytes, whether the grid is folded, check mode.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers import base
from treadle.runtime import arguments as binding
from treadle.runtime import convert, reports, settings
from treadle.runtime.arrays import ArrayClass, DeviceArray
from treadle.runtime.build import Built, Variant, build, print_source
from treadle.runtime.definition import KernelDefinition
from treadle.runtime.devices import Device, default_device
from treadle.runtime.signature import Signature
from treadle.runtime.streams import Stream

MAX_BLOCK = 1024  # threads; devices with smaller workgroups run several threads a lane
_FOLD_FROM = 65535  # blocks along an axis that every device takes as they are


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything a repeated launch needs."""

    built: Built
    compiled: base.CompiledKernel
    pack: binding.Packer


class Launcher:
    """The launches of one kernel: its definition, and what was prepared for it so far."""

    def __init__(self, definition: KernelDefinition) -> None:
        self.definition = definition
        self._prepared: dict[Any, Prepared] = {}
        self._lock = threading.Lock()

    def launch_blocks(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        arguments: tuple[Any, ...],
        shared_bytes: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Run `grid` blocks of `block` threads, x first.

        LaunchError, DtypeError or CompileError before anything runs; a grid of 0 is allowed only
        where an argument is an empty array, and then does nothing.
        """
        grid = grid if type(grid) is Dim3 else Dim3.of(grid)
        block = block if type(block) is Dim3 else Dim3.of(block)
        self._run(grid, block, arguments, shared_bytes, stream, ())

    def launch_threads(
        self, extent: int | Sequence[int], arguments: tuple[Any, ...], stream: Stream | None = None
    ) -> None:
        """Run exactly as many threads as `extent` says, in array order: (i, j) has j fastest.

        The block is the kernel's own if it names one, else one that suits the device.
        """
        threads = Dim3.of(tuple(reversed(extent)) if isinstance(extent, Sequence) else extent)
        if min(threads) < 0:
            raise LaunchError(f"{self.definition.name}.launch: negative number of threads {extent}")
        if threads.count == 0:
            return
        axes = len(extent) if isinstance(extent, Sequence) else 1
        device = self._device_of(arguments, stream)
        block = self.definition.options.block or suitable_block(threads, device)
        grid = Dim3(*(-(-n // b) for n, b in zip(threads, block, strict=True)))
        self._run(grid, block, arguments, 0, stream, threads[:axes])

    def _run(
        self,
        grid: Dim3,
        block: Dim3,
        arguments: tuple[Any, ...],
        shared_bytes: int,
        stream: Stream | None,
        threads: tuple[int, ...],
    ) -> None:
        keys: list[Any] = []
        values: list[Any] = []
        buffers: list[base.Buffer] = []
        device: Device | None = None
        numbers = binding.NUMBER_TYPES
        for value in arguments:
            kind = type(value)
            if kind in numbers:
                keys.append(kind)
                values.append(value)
                continue
            try:
                array = value._array
            except AttributeError:
                return self._run_foreign(grid, block, arguments, shared_bytes, stream, threads)
            key = array.key
            device = key.device
            keys.append(key)
            values.append(array)
            buffers.append(array.buffer)
        if stream is None:
            stream = (device or default_device()).default_stream
        self._submit(grid, block, keys, values, buffers, shared_bytes, stream, threads)

    def _submit(
        self,
        grid: Dim3,
        block: Dim3,
        keys: list[Any],
        values: list[Any],
        buffers: list[base.Buffer],
        shared_bytes: int,
        stream: Stream,
        threads: tuple[int, ...],
    ) -> Built | None:
        """Launch; what was launched, or None for a launch that does nothing."""
        same: tuple[int, ...] | None = None
        if len(buffers) > 1:
            unique = dict.fromkeys(buffers)
            if len(unique) < len(buffers):
                same = tuple(buffers.index(buffer) for buffer in buffers)
                buffers = list(unique)
        folded = max(grid) > _FOLD_FROM
        if folded:
            check_extent(self.definition.name, grid, block)
        key = (
            *keys, same, block, shared_bytes, folded, len(threads), stream.handle.device,
            self.definition.captured(), settings.check,
        )  # fmt: skip
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(
                key, grid, block, keys, values, same, shared_bytes, folded, stream.device, threads
            )
        if min(grid) <= 0:
            self._refuse_grid(grid, values)
            return None
        try:
            parameters = prepared.pack(values, grid, threads)
        except (struct.error, OverflowError) as error:
            raise binding.number_out_of_range(error, self.definition, values) from None
        if stream.keeping is not None:
            stream.keeping.extend(values)
        if prepared.built.sites:
            reports.launch_with_report(prepared.compiled, prepared.built, grid, buffers, parameters, stream)
        else:
            stream.handle.launch(prepared.compiled, grid, buffers, parameters)
        return prepared.built

    def _run_foreign(
        self,
        grid: Dim3,
        block: Dim3,
        arguments: tuple[Any, ...],
        shared_bytes: int,
        stream: Stream | None,
        threads: tuple[int, ...],
    ) -> None:
        """A launch with arguments that are not ours: NumPy arrays, DLPack, struct values."""
        binding.check_count(self.definition, len(arguments))
        device = self._device_of(arguments, stream)
        stream = stream or device.default_stream
        taken = convert.take_in(self.definition, arguments, device)
        arrays = [value for value in taken.values if isinstance(value, DeviceArray)]
        buffers = [array.buffer for array in arrays]
        built = self._submit(
            grid, block, taken.keys, taken.values, buffers, shared_bytes, stream, threads
        )
        if built is not None:
            taken.give_back(built.written)

    def _device_of(self, arguments: tuple[Any, ...], stream: Stream | None) -> Device:
        if stream is not None:
            return stream.device
        for value in arguments:
            array = getattr(value, "_array", None)
            if array is not None:
                return array.device  # type: ignore[no-any-return]
        return convert.own_device(arguments) or default_device()

    def _prepare(
        self,
        key: Any,
        grid: Dim3,
        block: Dim3,
        keys: list[Any],
        values: list[Any],
        same: tuple[int, ...] | None,
        shared_bytes: int,
        folded: bool,
        device: Device,
        threads: tuple[int, ...],
    ) -> Prepared:
        definition = self.definition
        binding.check_count(definition, len(keys))
        for position, one in enumerate(keys):
            if isinstance(one, ArrayClass) and one.device is not device:
                name = definition.parameters[position].name
                raise LaunchError(
                    f"argument {position + 1} ({name}) of kernel {definition.name} is on "
                    f"{one.device.id}, but the launch is on {device.id}: move it with "
                    f'{name}.to("{device.id}")'
                )
        check_block(definition.name, block)
        bound = tuple(
            binding.bind(definition, position, one, value)
            for position, (one, value) in enumerate(zip(keys, values, strict=True))
        )
        signature = Signature(tuple(map(binding.argument_of, bound)), len(threads))
        variant = Variant(block, same, folded, shared_bytes, settings.check)
        with self._lock:
            prepared = self._prepared.get(key)
            if prepared is None:
                built, compiled = build(definition, signature, variant, device)
                names = tuple(parameter.name for parameter in definition.parameters)
                pack = binding.make_packer(built.code.layout, names, bound)
                prepared = self._prepared[key] = Prepared(built, compiled, pack)
        return prepared

    def _refuse_grid(self, grid: Dim3, values: list[Any]) -> None:
        if min(grid) == 0 and any(isinstance(v, DeviceArray) and v.size == 0 for v in values):
            return
        raise LaunchError(
            f"kernel {self.definition.name}: the grid {tuple(grid)} has a negative part or a zero; "
            "every part must be at least 1 (0 is allowed where an argument is an empty array)"
        )

    def source(
        self, target: str, arguments: tuple[Any, ...], block: int | Sequence[int] | None = None
    ) -> str:
        """The text that this kernel becomes on a target ("wgsl", "llvm", "ir").

        With arguments, for their types; without, for the parameters' annotations. No device is
        needed.
        """
        extent = Dim3.of(block) if block is not None else self.definition.options.block or Dim3(256)
        check_block(self.definition.name, extent)
        if arguments:
            binding.check_count(self.definition, len(arguments))
            bound = tuple(
                binding.bind(self.definition, position, *convert.describe(value))
                for position, value in enumerate(arguments)
            )
            signature = Signature(tuple(map(binding.argument_of, bound)))
        else:
            signature = Signature(binding.declared_arguments(self.definition))
        return print_source(self.definition, signature, target, extent)


def check_block(name: str, block: Dim3) -> None:
    """LaunchError unless a block is possible."""
    if min(block) < 1:
        raise LaunchError(f"kernel {name}: the block {tuple(block)} must be at least 1 in every part")
    if block.count > MAX_BLOCK:
        raise LaunchError(
            f"kernel {name}: a block of {tuple(block)} is {block.count} threads; at most "
            f"{MAX_BLOCK} are possible on any device"
        )


def check_extent(name: str, grid: Dim3, block: Dim3) -> None:
    """LaunchError unless a thread's index fits an i32: kernels are compiled to count on it."""
    if any(n * b >= 1 << 31 for n, b in zip(grid, block, strict=True)):
        raise LaunchError(
            f"kernel {name}: a grid of {tuple(grid)} blocks of {tuple(block)} threads has 2**31 "
            "threads or more in one direction; spread them over x, y and z, or launch in parts"
        )


def suitable_block(threads: Dim3, device: Device) -> Dim3:
    """A block for a launch by threads: long in x for memory's sake, within the device's limits.

    The CPU runs a block as one loop and likes it long; GPUs like a few subgroups.
    """
    most = min(MAX_BLOCK if device.backend == "cpu" else 256, device.limits.max_threads_per_block)
    flat = threads.y == threads.z == 1
    x = min(most, _power_above(threads.x) if not flat else most)
    if not flat and device.backend != "cpu":
        x = min(x, 32)
    y = min(most // x, _power_above(threads.y))
    return Dim3(x, max(y, 1), 1)


def _power_above(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
