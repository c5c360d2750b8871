"""The launch path: from `kernel[grid, block](…)` to a driver.

A launch looks up a prepared launch by its key, packs the scalars, and passes buffers and bytes to
the stream; nothing is rebuilt. The key holds everything that compiled code depends on: the classes
of the arguments (dtype, rank, contiguity, whether there is an offset, device), which arrays share
memory, captured constants, block, shared bytes, whether the grid is folded, check mode.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError, TooManyArrays
from treadle.core.observation import unobserved
from treadle.core.sizes import Size, fixed, is_size
from treadle.core.traits import Traits
from treadle.drivers import base
from treadle.ir.definition import KernelDefinition, label_of
from treadle.ir.signature import Signature
from treadle.runtime import arguments as binding
from treadle.runtime import convert, lazy, packed_arrays, profiler, settings, windows
from treadle.runtime.arrays import ArrayClass, DeviceArray
from treadle.runtime.devices import Device, Stream, default_device
from treadle.runtime.launch_records import BuildVariant, LaunchRecord
from treadle.runtime.pending_kernel import PendingKernel
from treadle.runtime.varying import varying

# Compilers are imported by the first build, so that `import treadle` stays fast.
if TYPE_CHECKING:
    from treadle.runtime.build import Build, Made
    from treadle.runtime.built_kernel import BuiltKernel

MAX_BLOCK = 1024  # threads; on devices with smaller workgroups a lane runs several threads
_FOLD_FROM = 65535  # blocks along an axis that every device takes without folding
_SHORT = 64  # threads of a block that is one loop, for extents that vary and are as short
_MOST_PREPARED = 1024  # launches of a kernel; above it the older half is dropped


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a repeated launch needs."""

    built: BuiltKernel
    compiled: base.CompiledKernel
    pack: binding.Packer
    of_arrays: bool  # whether parameters are sizes or offsets of arrays
    numbers: Callable[[], tuple[binding.Fields, Callable[..., bytes]]]  # what `pack` packs, and how


class Repeat:
    """A launch to repeat with arguments of the same classes that share memory in the same way,
    without any lookup. It runs on the device's default stream, and the caller makes sure that no
    pending value has to read what it writes."""

    __slots__ = ("_definition", "_stream", "grid", "prepared", "threads", "twice")

    def __init__(
        self,
        definition: KernelDefinition,
        prepared: Prepared,
        grid: Dim3,
        threads: tuple[int, ...],
        stream: Stream,
        twice: bool,
    ) -> None:
        self._definition = definition
        self.prepared = prepared
        self.grid = grid
        self.threads = threads
        self._stream = stream
        self.twice = twice  # whether one buffer is several arguments

    @property
    def built(self) -> BuiltKernel:
        """The kernel that is launched."""
        return self.prepared.built

    def __call__(self, values: list[Any], arrays: int) -> None:
        """Launch with these values, of which the first `arrays` are arrays."""
        buffers = [array.buffer for array in values[:arrays]]
        if self.twice:
            buffers = list(dict.fromkeys(buffers))
        prepared, grid, to = self.prepared, self.grid, self._stream
        parameters = prepared.pack(values, grid, self.threads)
        if to.capturing is None and profiler.active is None:
            to.handle.launch(prepared.compiled, grid, buffers, parameters)
        else:
            _start(self._definition, prepared, grid, buffers, parameters, values, to)


def _repeat(
    definition: KernelDefinition,
    prepared: Prepared,
    grid: Dim3,
    threads: tuple[int, ...],
    stream: Stream,
    twice: bool,
) -> Repeat | None:
    """A launch to repeat, if its kernel is compiled."""
    if prepared.compiled.is_pending:
        return None
    return Repeat(definition, prepared, grid, threads, stream, twice)


def _start(
    definition: KernelDefinition,
    prepared: Prepared,
    grid: Dim3,
    buffers: list[base.Buffer],
    parameters: bytes,
    values: list[Any],
    to: Stream,
) -> None:
    """Pass a launch to the driver, and record it for a capture and the profiler."""
    built = prepared.built
    if to.capturing is not None:
        to.capturing.append(LaunchRecord(definition, built, values))
    if built.sites:
        from treadle.runtime import reports

        reports.launch_with_report(prepared.compiled, built, grid, buffers, parameters, to)
    elif to.capturing is not None or (active := profiler.active) is None:
        to.handle.launch(prepared.compiled, grid, buffers, parameters)
    else:
        launched = LaunchRecord(definition, built, values)
        active.launch(to.handle, prepared.compiled, grid, buffers, parameters, launched)


def threads_of(name: str, extent: int | Sequence[int]) -> Dim3:
    """The threads that `kernel.launch(extent, …)` asks for. LaunchError for what is not a number
    of threads; `name` is the kernel's."""
    try:
        threads = Dim3.of_shape(extent)
    except (TypeError, ValueError) as error:
        raise LaunchError(
            f"{name}.launch takes a number of threads, or a tuple (…, i, j), first: {error}"
        ) from None
    if min(threads) < 0:
        raise LaunchError(f"{name}.launch: negative number of threads {extent}")
    return threads


_Launch = Callable[..., Repeat | None]  # (arguments, what they were converted from)


class Launcher:
    """The launches of one kernel: its definition, and its prepared launches."""

    def __init__(self, definition: KernelDefinition) -> None:
        self.definition = definition
        self._prepared: dict[Any, Prepared] = {}
        self._begun: dict[Any, Build] = {}  # what is compiled, by the same keys
        self._crowded: dict[Any, TooManyArrays] = {}  # whose arrays are packed, by the same keys
        self._pending: dict[Any, Prepared] = {}  # launches that were recorded before it was
        self._lock = forks.lock()

    def launch_threads(
        self, extent: int | Sequence[int], arguments: tuple[Any, ...], stream: Stream | None = None
    ) -> None:
        """Run exactly `extent` threads, in array order: in (i, j), j varies fastest.

        The block is the kernel's own if it has one, else one that suits the device.
        """
        name = self.definition.name
        threads = threads_of(name, extent)
        if threads.count == 0:
            return
        axes = len(extent) if isinstance(extent, Sequence) else 1
        device = self._device_of(arguments, stream)
        block = self.definition.options.block or suitable_block(threads, device)
        check_block(name, block)
        grid = Dim3(*(-(-n // b) for n, b in zip(threads, block, strict=True)))
        self.bound(grid, block, 0, stream, threads[:axes])(arguments)

    def bound(
        self,
        grid: Dim3,
        block: Dim3,
        shared_bytes: int = 0,
        stream: Stream | None = None,
        threads: tuple[int, ...] = (),
    ) -> Callable[[tuple[Any, ...]], Repeat | None]:
        """A function of the arguments that runs `grid` blocks of `block` threads, for many calls.

        It returns the launch, or None where there is nothing to repeat. It raises LaunchError,
        DtypeError or CompileError before anything runs. A grid of 0 is allowed only where an
        argument is an empty array, and then nothing runs.
        """
        definition, name = self.definition, self.definition.name
        block, shared_bytes = _for_code(block, shared_bytes)
        runs, folded = _form_of(grid)
        if folded:
            check_extent(definition.name, grid, block)
        _check_launch_options(definition.name, shared_bytes, stream)
        shape = (block, shared_bytes, folded, len(threads))
        prepared_launches = self._prepared
        captured = definition.captured
        numbers, packed = binding.NUMBER_TYPES, convert.Packed

        def launch(
            arguments: tuple[Any, ...], taken: convert.ConvertedArguments | None = None
        ) -> Repeat | None:
            keys: list[Any] = [shape]
            values: list[Any] = []
            buffers: list[base.Buffer] = []
            to = stream
            for value in arguments:
                kind = type(value)
                if kind in numbers:
                    keys.append(kind)
                    values.append(value)
                    continue
                if kind is packed:
                    keys.append(value.key)
                    values.append(value.data)
                    continue
                try:
                    array = value.__treadle_array__(name)
                except AttributeError:
                    if kind is Size:
                        keys.append(int)
                        values.append(value)
                        continue
                    return self._launch_foreign(launch, arguments, stream)
                if to is None:
                    to = array.device.default_stream
                keys.append(array.key)
                values.append(array)
                buffers.append(array.buffer)
            if to is None:
                to = default_device().default_stream
            twice = len(buffers) > 1 and len(set(buffers)) < len(buffers)
            if twice:
                keys.append(tuple(buffers.index(buffer) for buffer in buffers))
                buffers = list(dict.fromkeys(buffers))
            handle = to.handle
            key = (*keys, handle.device, captured(), settings.check)
            prepared = prepared_launches.get(key)
            if prepared is None:
                variant = BuildVariant(block, _sharing(keys), folded, shared_bytes, settings.check)
                pending = handle.takes_pending and _is_seen_whole(buffers, to.device)
                fitting = self._fitting(key, values, variant, len(threads), to.device, pending)
                if not isinstance(fitting, Prepared):
                    self._launch_packed(launch, arguments, values, to, fitting, taken)
                    return None
                prepared = fitting
            if not runs:
                _refuse_grid(definition.name, grid, values)
                return None
            if prepared.built.whole:
                check_whole_subgroups(name, threads, block)
            for position in prepared.built.written:
                _about_to_write(arguments[position], values[position])
            try:
                blocks, parameters = _packed(prepared, grid, values, threads, to)
            except (struct.error, OverflowError) as error:
                raise binding.number_out_of_range(error, definition, values) from None
            try:
                _start(definition, prepared, blocks, buffers, parameters, values, to)
            except base.ArrayTooLarge:
                narrow = windows.narrow(arguments, to.device)
                if narrow is None:
                    raise
                return launch(narrow, taken)
            return _repeat(definition, prepared, grid, threads, to, twice)

        return launch

    def _launch_foreign(
        self,
        launch: _Launch,
        arguments: tuple[Any, ...],
        stream: Stream | None,
    ) -> Repeat | None:
        """A launch with arguments to convert: NumPy's arrays, other libraries', struct values."""
        binding.check_count(self.definition, len(arguments))
        device = self._device_of(arguments, stream)
        taken = convert.convert_arguments(
            self.definition, arguments, stream or device.default_stream
        )
        with taken.order:
            launched = launch(tuple(taken.arguments), taken)
        if launched is not None:
            taken.copy_back(launched.built.written)
        return launched

    def _launch_packed(
        self,
        launch: _Launch,
        arguments: tuple[Any, ...],
        values: list[Any],
        to: Stream,
        found: TooManyArrays | None,
        taken: convert.ConvertedArguments | None,
    ) -> None:
        """A launch of a kernel with more arrays than the device binds, some of which are copied to
        one buffer. The error that was found, if that is too large; nothing without one."""
        arrays = {at: value for at, value in enumerate(values) if isinstance(value, DeviceArray)}
        if found is None or any(array.key.imagined for array in arrays.values()):
            return
        packed = packed_arrays.pack(self.definition, arrays, found)
        if packed is None:
            raise found
        packed.copy_in(to)
        launch(packed_arrays.in_place(arguments, packed))
        for position in found.written:
            _about_to_write(arguments[position], values[position])
        packed.copy_back(to)
        if taken is not None:
            taken.copy_back(found.written)

    def _device_of(self, arguments: tuple[Any, ...], stream: Stream | None) -> Device:
        if stream is not None:
            return stream.device
        return convert.device_of_arguments(arguments) or default_device()

    def _fitting(
        self,
        key: tuple[Any, ...],
        values: list[Any],
        variant: BuildVariant,
        axes: int,
        device: Device,
        pending: bool,
    ) -> Prepared | TooManyArrays | None:
        """What `_prepare` gives, or how many arrays too many the launch has for the device."""
        found = self._crowded.get(key)
        if found is not None:
            return found
        try:
            return self._prepare(key, values, variant, axes, device, pending)
        except TooManyArrays as error:
            if len(self._crowded) >= _MOST_PREPARED:
                self._crowded.clear()
            found = self._crowded[key] = error.with_traceback(None)
            return found

    def _prepare(
        self,
        key: tuple[Any, ...],
        values: list[Any],
        variant: BuildVariant,
        axes: int,
        device: Device,
        pending: bool,
    ) -> Prepared | None:
        """Everything for the first launch of a kind: arguments checked, code built. None if an
        array is imagined: then its code is built meanwhile, by other threads. With `pending` a
        kernel is returned that is still being compiled, if it is."""
        if pending and (known := self._pending.get(key)) is not None:
            return known
        definition = self.definition
        classes = key[1 : len(values) + 1]
        imagined = any(isinstance(one, ArrayClass) and one.imagined for one in classes)
        if imagined:
            classes = tuple(_in_memory(one) for one in classes)
            key = (key[0], *classes, *key[len(values) + 1 :])
            if key in self._prepared or key in self._begun or len(self._begun) >= _MOST_PREPARED:
                return None
        binding.check_count(definition, len(classes))
        for position, one in enumerate(classes):
            if isinstance(one, ArrayClass) and one.device is not device and one.device:
                name = definition.parameters[position].name
                what = f"{label_of(definition.parameters, position)} of kernel {definition.name}"
                raise LaunchError(
                    f"{what} is on {one.device.id}, but the launch is on {device.id}: move it with "
                    f'{name}.to("{device.id}")'
                )
        check_block(definition.name, variant.block)
        bound = tuple(
            binding.bind(definition, position, one, value)
            for position, (one, value) in enumerate(zip(classes, values, strict=True))
        )
        signature = Signature(tuple(map(binding.argument_of, bound)), axes)
        build = partial(self._built, key, signature, variant, device)
        with unobserved():
            made = build(_never_waits if imagined else _may_be_pending if pending else _waits)
        if imagined or isinstance(made, Prepared):
            return made if isinstance(made, Prepared) and not imagined else None
        built = made[0] if isinstance(made, tuple) else made.built
        with self._lock:
            prepared = self._prepared.get(key)
            if prepared is None:
                _check_written(definition, classes, built.written)
                names = tuple(parameter.name for parameter in definition.parameters)
                pack, of_arrays = binding.make_packer(built.code.layout, names, bound)
                numbers = partial(binding.make_fields, built.code.layout, names, bound)
                if isinstance(made, tuple):
                    prepared = Prepared(built, made[1], pack, of_arrays, numbers)
                    self._remember(key, prepared)
                else:
                    kernel = PendingKernel(
                        device.handle, built.code, partial(self._compiled, key, build)
                    )
                    prepared = Prepared(built, kernel, pack, of_arrays, numbers)
                    self._pending[key] = prepared
        return prepared

    def _compiled(self, key: tuple[Any, ...], build: Callable[..., Any]) -> base.CompiledKernel:
        """The code of a launch that was prepared before it was compiled."""
        with unobserved():
            made = build(_waits)
        if isinstance(made, Prepared):
            return made.compiled
        with self._lock:
            prepared = self._pending.pop(key, None)
            if prepared is not None:
                self._remember(key, replace(prepared, built=made[0], compiled=made[1]))
        compiled: base.CompiledKernel = made[1]
        return compiled

    def _remember(self, key: tuple[Any, ...], prepared: Prepared) -> None:
        if len(self._prepared) >= _MOST_PREPARED:  # for example, a captured number changes
            for old in list(self._prepared)[: _MOST_PREPARED // 2]:
                del self._prepared[old]
        self._prepared[key] = prepared

    def _built(
        self,
        key: tuple[Any, ...],
        signature: Signature,
        variant: BuildVariant,
        device: Device,
        leaves: Callable[[Build], bool],
    ) -> Made | Prepared | Build:
        """The code for a key, waited for without a lock; what another thread prepared meanwhile;
        or what compiles it, if `leaves` says that it is not waited for."""
        from treadle.core.background import Raised
        from treadle.runtime.build import begin

        while True:
            with self._lock:
                if (prepared := self._prepared.get(key)) is not None:
                    return prepared
                begun = self._begun.get(key)
                if begun is None:
                    begun = begin(self.definition, signature, variant, device)
                    self._begun[key] = begun
            if leaves(begun):
                return begun
            failed = True
            try:
                return begun.result()
            except Raised:  # another thread has that error: this one has its own
                continue
            except KeyboardInterrupt:
                failed = False  # it goes on, and the next launch finds what it gives
                raise
            finally:
                if failed and self._begun.get(key) is begun:
                    del self._begun[key]

    def source(
        self,
        target: str,
        arguments: tuple[Any, ...],
        block: int | Sequence[int] | None = None,
        shared_bytes: int = 0,
        sm: int | str | None = None,
    ) -> str:
        """The source of this kernel for a target ("wgsl", "ptx", "ir", …), and for a card of
        NVIDIA's of a compute capability, `sm`.

        The types are those of the arguments, or of the annotations without arguments. No device is
        needed.
        """
        from treadle.runtime.build import print_source

        extent = Dim3.of(block) if block is not None else self.definition.options.block or Dim3(256)
        check_block(self.definition.name, extent)
        _check_launch_options(self.definition.name, shared_bytes, None)
        if arguments:
            binding.check_count(self.definition, len(arguments))
            bound = tuple(
                binding.bind(self.definition, position, *convert.describe(value))
                for position, value in enumerate(arguments)
            )
            signature = Signature(tuple(map(binding.argument_of, bound)))
        else:
            signature = Signature(binding.declared_arguments(self.definition))
        return print_source(self.definition, signature, target, extent, shared_bytes, sm)


def _check_launch_options(name: str, shared_bytes: Any, stream: Any) -> None:
    """LaunchError if the shared bytes are not a size, or the stream is not a stream."""
    if isinstance(shared_bytes, bool) or not isinstance(shared_bytes, int) or shared_bytes < 0:
        raise LaunchError(
            f"kernel {name}[grid, block, shared_bytes]: the bytes of dynamic shared memory are an "
            f"integer from 0 on, not {shared_bytes!r}"
        )
    if stream is not None and not isinstance(stream, Stream):
        raise LaunchError(
            f"kernel {name}[grid, block, shared_bytes, stream]: a stream comes from "
            f"device.stream(), not {stream!r}"
        )


def _check_written(
    definition: KernelDefinition, classes: Sequence[Any], written: frozenset[int]
) -> None:
    """LaunchError if the kernel writes to read-only memory."""
    for position in sorted(written):
        if classes[position].read_only:
            what = f"{label_of(definition.parameters, position)} of kernel {definition.name}"
            raise LaunchError(
                f"{what} is written by the kernel, but it is read-only: pass a copy (x.copy()), "
                "or make it writable"
            )


def _waits(build: Build) -> bool:
    return False


def _never_waits(build: Build) -> bool:
    return True


def _may_be_pending(build: Build) -> bool:
    """Whether a launch is recorded before its kernel is compiled. What reports is launched
    otherwise."""
    return not build.ended and not build.built.sites


def _is_seen_whole(buffers: Sequence[base.Buffer], device: Device) -> bool:
    """Whether no driver refuses one of these buffers for its size (`base.ArrayTooLarge`)."""
    most = device.limits.max_binding_size
    return all(buffer.size <= most for buffer in buffers)


def _in_memory(one: Any) -> Any:
    """The class of an argument whose memory is there."""
    return one.of_memory if isinstance(one, ArrayClass) and one.imagined else one


def _about_to_write(argument: Any, array: DeviceArray) -> None:
    """Compute the pending values that read an array, before a launch writes to it."""
    storage = array.storage
    if storage.readers is not None:
        lazy.arrays.finish_readers(storage)
    if argument is not array:
        argument.__treadle_written__()


def _sharing(keys: list[Any]) -> tuple[int, ...] | None:
    """Which arrays share memory, which is the last part of a launch's key where some do."""
    return keys[-1] if isinstance(keys[-1], tuple) and len(keys) > 1 else None


def check_extent(name: str, grid: Dim3, block: Dim3) -> None:
    """LaunchError unless a thread's index fits an i32: compiled kernels rely on it."""
    if any(n * b >= 1 << 31 for n, b in zip(grid, block, strict=True)):
        raise LaunchError(
            f"kernel {name}: a grid of {tuple(grid)} blocks of {tuple(block)} threads has 2**31 "
            "threads or more along one axis; distribute them over x, y and z, or launch in parts"
        )


def _packed(
    prepared: Prepared, grid: Dim3, values: list[Any], threads: tuple[int, ...], to: Stream
) -> tuple[Dim3, bytes]:
    """The grid and the parameter block of a launch, whose sizes are noted while it is traced."""
    if to.capturing is not None and (noted := varying.get()) is not None:
        return noted.launch(prepared.compiled, prepared.numbers(), grid, values, threads, to.handle)
    return grid, prepared.pack(values, grid, threads)


def _for_code(block: Dim3, shared_bytes: int) -> tuple[Dim3, int]:
    """What code is compiled for, as integers."""
    if varying.get() is None:
        return block, shared_bytes
    return Dim3(*fixed(tuple(block))), fixed(shared_bytes)


def _form_of(grid: Dim3) -> tuple[bool, bool]:
    """Whether a grid has blocks, and whether it must be folded on some devices. Each extent is
    asked for by itself, so that sizes are not compared with each other."""
    x, y, z = grid
    folded = x > _FOLD_FROM or y > _FOLD_FROM or z > _FOLD_FROM
    return x > 0 and y > 0 and z > 0, folded


def _refuse_grid(name: str, grid: Dim3, values: list[Any]) -> None:
    if min(grid) == 0 and any(isinstance(v, DeviceArray) and v.size == 0 for v in values):
        return
    raise LaunchError(
        f"kernel {name}: the grid {tuple(grid)} has a negative or zero extent; each extent must be "
        "at least 1 (0 is allowed where an argument is an empty array)"
    )


def check_block(name: str, block: Dim3) -> None:
    """LaunchError unless the block is positive and within the limit."""
    if min(block) < 1:
        raise LaunchError(
            f"kernel {name}: the block {tuple(block)} must be at least 1 along each axis"
        )
    if block.count > MAX_BLOCK:
        raise LaunchError(
            f"kernel {name}: a block of {tuple(block)} is {block.count} threads; at most "
            f"{MAX_BLOCK} are possible on any device"
        )


def check_whole_subgroups(name: str, threads: tuple[int, ...], block: Dim3) -> None:
    """LaunchError if a launch by threads has only some of the threads of a subgroup."""
    if block.x % 32 == 0 and threads[0] % 32 == 0:
        return
    from treadle.ir.passes.whole_subgroups import needs_whole_subgroups, splits_subgroups

    extent: Sequence[int] = fixed(threads)
    if splits_subgroups(extent, block):
        asked = extent[0] if len(extent) == 1 else f"{tuple(reversed(extent))}"
        along = "" if len(extent) == 1 else " along the last axis"
        blocks = "" if block.x % 32 == 0 else f" in blocks of {' x '.join(map(str, block))}"
        raise needs_whole_subgroups(name, f"{along}, not {asked}{blocks}")


def suitable_block(threads: Dim3, device: Device) -> Dim3:
    """A block for a launch by threads: long in x, so that accesses coalesce, within the limits.

    The CPU runs a block as one loop, which should be long; GPUs run best with a few subgroups.
    """
    traits = device.traits
    most = min(traits.usual_block, device.limits.max_threads_per_block)
    flat = threads.y == threads.z == 1
    x = most if flat else _power_above(threads.x, min(most, traits.usual_row), traits)
    y = _power_above(threads.y, most // x, traits)
    return Dim3(x, max(y, 1), 1)


def _power_above(n: int, most: int, traits: Traits) -> int:
    if not is_size(n):
        return min(1 << max(n - 1, 0).bit_length(), most)
    # Code is compiled for a block, so one that serves many sizes is better than the best for one.
    return min(most, _SHORT) if traits.serial_threads and n <= _SHORT else most
