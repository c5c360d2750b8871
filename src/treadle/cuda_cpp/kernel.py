"""A kernel of a CUDA C++ file: indexed with grid and block, then called, like a Python kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError, WarpSynchronousWarning, shortened
from treadle.core.nesting import deep_nesting
from treadle.cuda_cpp.arguments import (
    Marshaller,
    check_ranges,
    in_order,
    marshaller_for,
    memory_for,
)
from treadle.cuda_cpp.converted_arrays import ConvertedArray, converted_arguments
from treadle.cuda_cpp.pointer_records import Raw, Tables
from treadle.cuda_cpp.pointer_tables import pointed_arrays, tables_of
from treadle.cuda_cpp.program import (
    KernelInstance,
    Note,
    Program,
    QueuedKernel,
    Sampling,
    symbol_labels,
)
from treadle.cuda_cpp.queued_launches import COUNT, QUEUE, launch_queued
from treadle.cuda_cpp.struct_arguments import split_arguments
from treadle.cuda_cpp.texture import sampled_arguments
from treadle.cuda_cpp.variables import LinkedVariable, Variable
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.passes.grid_parts import has_grid_barriers
from treadle.ir.signature import DeclaredParameter, DeclaredPointer, Signature
from treadle.lang.interpreter_state import state
from treadle.runtime import convert
from treadle.runtime.arguments import declared_arguments
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device, Stream, default_device
from treadle.runtime.grid_launches import GridKernel
from treadle.runtime.launch_config import ConfigurableKernel, ConfiguredKernel

Extent = int | Sequence[int]
_USUAL_BLOCK = 256
_OTHER_DOUBLES = (
    '. Or let double be a float or a pair of floats: td.cuda_module(…, double="float") or "pair", '
    "--double in the terminal"
)
MAX_DEPTH = 64  # of a block along z: CUDA's own limit, whatever the device has


class Kernel(ConfigurableKernel["BoundKernel"]):
    """A `__global__` function of a module, or an instance of a kernel template.

    `kernel[grid, block](…)`, or `kernel[grid, block, shared_bytes, stream](…)`, runs it on the
    device of its arrays; tuples are CUDA's (x, y, z).
    """

    def __init__(
        self,
        program: Program,
        instance: KernelInstance,
        variables: Mapping[str, Variable | LinkedVariable],
        textures: Mapping[str, Any] | None = None,
        other: Callable[..., Kernel] | None = None,
    ) -> None:
        super().__init__()
        self.instance = instance
        self._program = program
        self._known_variables = variables
        self._other = other  # another kernel of the module, by its name and template arguments
        self._textures = {} if textures is None else textures  # of the file's references
        self._sampled: dict[tuple[Sampling | None, ...], Kernel] = {}
        found = [variables[name] for name in (*instance.symbols, *instance.linked)]
        self._variables = [one for one in found if isinstance(one, Variable)]
        self.linked = [one for one in found if isinstance(one, LinkedVariable)]
        self._marshallers: dict[tuple[type, ...], Marshaller] = {}
        self._lowered: dict[Signature, tuple[LoweredKernel, tuple[Note, ...]]] = {}
        self._said: set[Note] = set()
        self._nulls: dict[tuple[Device, int], DeviceArray] = {}
        self._values: dict[tuple[Device, int], tuple[bytes, DeviceArray]] = {}  # uploaded last
        self._parts: dict[Dim3, GridKernel] = {}
        # To the launch path, variables of the file are arguments like others.
        labels = symbol_labels(instance)
        self.parameters = instance.parameters + tuple(
            DeclaredParameter(
                label, DeclaredPointer(variable.symbol.element, f"__{variable.symbol.space}__")
            )
            for label, variable in zip(labels, self._variables, strict=True)
        )

    @property
    def name(self) -> str:
        """Its name, with template arguments if it is an instance of a template."""
        return self.instance.name

    # --- for the launch path (treadle.ir.definition.KernelDefinition) ---

    @property
    def options(self) -> KernelOptions:
        """The options it is compiled with."""
        return self.instance.options

    def captured(self) -> None:
        """No values from outside: a file is complete by itself."""

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR for arguments of these types."""
        lowered, notes = self._lower(signature)
        self._warn(notes)
        return lowered

    def _warn(self, notes: tuple[Note, ...]) -> None:
        """Warn once of each construct that may not compute what its author meant."""
        for note in notes:
            if note.kind == "warned" and note not in self._said:
                self._said.add(note)
                warnings.warn_explicit(
                    f"kernel {self.name}: {note.construct}: {note.reason}",
                    WarpSynchronousWarning,
                    note.span.file,
                    note.span.line,
                )

    def _lower(self, signature: Signature) -> tuple[LoweredKernel, tuple[Note, ...]]:
        found = self._lowered.get(signature)
        if found is None:
            with deep_nesting(self.name, self.instance.span):
                kernel, notes = self._program.lower(self.instance, signature)
            found = self._lowered[signature] = LoweredKernel(kernel, None), notes
        return found

    # --- for users ---

    def bind(self, grid: Dim3, block: Dim3, shared_bytes: Any, stream: Any) -> BoundKernel:
        """The kernel with the grid, block, memory and stream of its brackets."""
        self._check_bounds(block)
        return BoundKernel(self, grid, block, shared_bytes, stream)

    def _check_bounds(self, block: Dim3) -> None:
        most = self.instance.most_threads
        if block.z > MAX_DEPTH:
            raise LaunchError(
                f"kernel {self.name}: a block of {tuple(block)} is {block.z} deep, and CUDA allows "
                f"{MAX_DEPTH} along z: exchange it with x or y"
            )
        if most is not None and block.count > most:
            raise LaunchError(
                f"kernel {self.name}: a block of {tuple(block)} is {block.count} threads, and its "
                f"__launch_bounds__ allow {most}"
            )

    def source(
        self,
        target: str,
        *,
        block: Extent | None = None,
        shared_bytes: int = 0,
        sm: int | str | None = None,
    ) -> str:
        """The generated source for a target: "wgsl", "llvm", "ptx", "cuda", "msl", "numpy" or
        "ir".

        `shared_bytes` is what a launch would give for `extern __shared__`. `sm` is the compute
        capability that "ptx" and "cuda" are printed for, as 80 or "90a"; 70 by default. No device
        is needed. A kernel with barriers of the grid is printed as a kernel for each part, after a
        comment that says in which order they are launched.
        """
        texts = self.texts(target, block=block, shared_bytes=shared_bytes, sm=sm)
        return "\n".join(texts.values())

    def texts(
        self,
        target: str,
        *,
        block: Extent | None = None,
        shared_bytes: int = 0,
        sm: int | str | None = None,
    ) -> dict[str, str]:
        """The source as texts that a compiler takes, by names: one, or one for each part of a
        kernel with barriers of the grid where compilers take one kernel in a text."""
        if block is None:
            block = min(_USUAL_BLOCK, self.instance.most_threads or _USUAL_BLOCK)
        self._check_bounds(Dim3.of(block))
        try:
            if target != "ir" and self.waits_for_grid:
                return self.in_parts(Dim3.of(block)).texts(target, shared_bytes, sm)
            return {self.name: self._launcher.source(target, (), block, shared_bytes, sm)}
        except CompileError as error:
            raise self.with_source(error) from None

    def notes(self) -> tuple[Note, ...]:
        """What it uses, what of it is emulated and what is refused, with lines. CompileError if it
        does not compile."""
        try:
            met = self._lower(self.signature)[1]
        except CompileError as error:
            raise self.with_source(error) from None
        how = "a buffer after the arguments, one for each device"
        symbols = [variable.symbol for variable in self._variables]
        hidden = (Note("emulated", f"__{one.space}__ {one.name}", how, one.span) for one in symbols)
        return (*met, *hidden)

    @property
    def has_dynamic_memory(self) -> bool:
        """Whether it has `extern __shared__` memory, whose size a launch gives."""
        try:
            lowered, _ = self._lower(self.signature)
        except CompileError as error:
            raise self.with_source(error) from None
        return any(memory.length is None for memory in lowered.kernel.memories)

    @cached_property
    def signature(self) -> Signature:
        """The signature of a launch with tensors that have no offset into their memory."""
        return Signature(declared_arguments(self))

    def with_source(self, error: CompileError) -> CompileError:
        """A CompileError that quotes its source line, from whichever file it is in."""
        if getattr(error, "missing", "") == "f64" and _OTHER_DOUBLES not in error.message:
            error.message += _OTHER_DOUBLES
        return shortened(error.with_source(self._program.sources.get(error.file)))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """LaunchError that says how a grid and a block are given."""
        raise LaunchError(
            f"a kernel needs a grid and a block: {self.name}[grid, block](…), where C++ has "
            f"{self.name}<<<grid, block>>>(…)"
        )

    def __repr__(self) -> str:
        return f"<treadle CUDA C++ kernel {self.name}({self.instance.declarations})>"

    # --- for its launches ---

    def marshaller(self, arguments: tuple[Any, ...]) -> Marshaller:
        """The marshaller for arguments of these Python types."""
        kinds = tuple(map(type, arguments))
        marshaller = self._marshallers.get(kinds)
        if marshaller is None:
            marshaller = self._marshallers[kinds] = marshaller_for(self.instance, arguments)
        return marshaller

    @cached_property
    def images(self) -> tuple[int, ...]:
        """The positions of textures and surfaces."""
        declared = [one.declared for one in self.instance.parameters]
        return tuple(
            at for at, one in enumerate(declared) if isinstance(one, DeclaredPointer) and one.shaped
        )

    def with_references(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the textures of the file's references, None for those without."""
        names = self.instance.references
        given = arguments[: len(arguments) - len(names)]
        return (*given, *(self._textures.get(name) for name in names))

    def sampled(self, sampling: tuple[Sampling | None, ...]) -> Kernel:
        """The kernel for textures that are read in certain ways, which are compiled into it."""
        made = self._sampled.get(sampling)
        if made is None:
            instance = replace(self.instance, sampling=sampling)
            made = self._sampled[sampling] = Kernel(
                self._program, instance, self._known_variables, self._textures, self._other
            )
        return made

    def device_for(
        self, arguments: tuple[Any, ...], stream: Stream | None, tables: Tables | None
    ) -> Device:
        """The device that a launch runs on."""
        if stream is not None:
            return stream.device
        found = convert.device_of_arguments(arguments)
        if found is None and tables is not None and tables.pointers:
            found = tables.pointers[0].device
        return found or default_device()

    @cached_property
    def waits_for_grid(self) -> bool:
        """Whether it has barriers of the grid, for which it is launched in parts."""
        if not self.instance.waits_for_grid:
            return False
        lowered, _ = self._lower(self.signature)
        return has_grid_barriers(lowered.kernel.body)

    def in_parts(self, block: Dim3) -> GridKernel:
        """The kernel as parts between barriers of the grid, for blocks of a size."""
        made = self._parts.get(block)
        if made is None:
            made = self._parts[block] = GridKernel(self, block)
        return made

    @cached_property
    def has_hidden(self) -> bool:
        """Whether launches pass it memory that the caller does not: variables, large values."""
        return bool(self._variables or self.instance.uploaded)

    def with_hidden(
        self,
        arguments: tuple[Any, ...],
        nulls: tuple[int, ...],
        stream: Stream | None,
        where: Device,
    ) -> tuple[Any, ...]:
        """The arguments with memory for null pointers and large values, followed by the file's
        variables."""
        made = list(arguments)
        for position in nulls:
            made[position] = self._null(where, position)
        for position in self.instance.uploaded:
            to = stream or where.default_stream
            made[position] = self._uploaded(to, position, made[position])
        return (*made, *(variable.on(where) for variable in self._variables))

    def launch_queued(self, made: tuple[Any, ...], stream: Stream | None) -> None:
        """Launch the kernels that this one queued when it ran with these arguments."""
        queued = self._program.queued(self.instance)
        if not queued.kernels:
            return
        by_name = {one.name: value for one, value in zip(self.parameters, made, strict=True)}
        labels = dict(zip(self.instance.symbols, symbol_labels(self.instance), strict=True))
        count, queue = by_name[labels[COUNT]], by_name[labels[QUEUE]]

        def launch(
            kernel: QueuedKernel, grid: Any, block: Any, shared: int, arguments: list[Any]
        ) -> None:
            assert self._other is not None
            self._other(kernel.name, *kernel.arguments)[grid, block, shared, stream](*arguments)

        if stream is not None:
            stream.synchronize()
        arrays = [by_name[name] for name in queued.arrays]
        for table in tables_of(self.instance.layouts):
            name = self.parameters[table.position].name
            if name in queued.arrays:
                at = queued.arrays.index(name)
                arrays[at] = Raw(arrays[at], pointed_arrays(table, made))
        launch_queued(self.name, count, queue, queued.kernels, arrays, launch)
        for one in arrays:
            if hasattr(one, "__treadle_written__"):
                one.__treadle_written__()

    def _null(self, where: Device, position: int) -> DeviceArray:
        found = self._nulls.get((where, position))
        if (
            found is None or found.storage.pool is not where.pool
        ):  # none, or of before it was closed
            declared = self.parameters[position].declared
            assert isinstance(declared, DeclaredPointer)
            found = self._nulls[where, position] = memory_for(declared.element, 0, where)
        return found

    def _uploaded(self, to: Stream, position: int, value: np.ndarray[Any, Any]) -> DeviceArray:
        """Memory with a large value in it. No kernel writes to it, so launches with the same value
        share it. A recording keeps the value and writes it at each replay."""
        where, raw = to.device, value.tobytes()
        known = self._values.get((where, position))
        if known is not None and known[0] == raw and known[1].storage.pool is where.pool:
            return known[1]
        declared = self.parameters[position].declared
        assert isinstance(declared, DeclaredPointer)
        array = memory_for(declared.element, len(raw), where)
        to.handle.write(array.buffer, 0, memoryview(raw))
        if to.capturing is None:
            self._values[where, position] = raw, array
        return array


class BoundKernel(ConfiguredKernel["Kernel"]):
    """A kernel with its grid and block; calling it launches."""

    __slots__ = ()

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        """Launch with these arguments, in the order of the parameters or by their names."""
        if state.active:
            raise LaunchError(
                f"kernel {self.kernel.name} is CUDA C++, which td.interpret() cannot run as "
                "Python: launch it outside, and print from it with printf"
            )
        kernel, launch = self.kernel, self._launch
        if keywords:
            arguments = in_order(kernel.instance, arguments, keywords)
        tables: Tables | None = None
        if kernel.instance.layouts:
            linked = [one.items for one in kernel.linked]
            arguments, tables = split_arguments(kernel.instance, arguments, linked)
        if kernel.images:
            arguments = kernel.with_references(arguments)
            arguments, sampling = sampled_arguments(kernel.instance, kernel.images, arguments)
            kernel = kernel.sampled(sampling)
            launch = kernel[self.grid, self.block, self.shared_bytes, self.stream]._launch
        converted: tuple[ConvertedArray, ...] = ()
        if kernel.instance.narrowed or kernel.instance.paired:
            arguments, converted = converted_arguments(kernel.instance, arguments)
        marshaller = kernel.marshaller(arguments)
        made = marshaller.apply(arguments)
        if marshaller.nulls or kernel.has_hidden:
            where = kernel.device_for(made, self.stream, tables)
            made = kernel.with_hidden(made, marshaller.nulls, self.stream, where)
        if tables is not None:
            tables.run_on(kernel.device_for(made, self.stream, tables))
            for step in tables.before:
                step(self.stream)
        try:
            if kernel.waits_for_grid:
                parts = kernel.in_parts(self.block)
                parts.launch(self.grid, self.shared_bytes, made, self.stream)
            else:
                launch(made)
        except CompileError as error:
            raise kernel.with_source(error) from None
        except LaunchError:
            check_ranges(kernel.instance, arguments)
            raise
        if QUEUE in kernel.instance.symbols:
            kernel.launch_queued(made, self.stream)
        if tables is not None:
            for step in tables.after:
                step(self.stream)
        for one in converted:
            one.copy_back()
