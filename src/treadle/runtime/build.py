"""Builds a kernel's definition into code for a device, cached in memory and on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from treadle.codegen.records import Options, Target
from treadle.core import background, forks
from treadle.core.background import Call, Raised
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, FormatError, TooManyArrays
from treadle.core.interrupts import Uninterruptible
from treadle.core.limits import DeviceInfo
from treadle.core.nesting import deep_nesting
from treadle.core.version import __version__
from treadle.drivers import base
from treadle.ir.definition import KernelDefinition, LoweredKernel
from treadle.ir.printer import to_text
from treadle.ir.signature import ArrayArgument, Signature
from treadle.runtime import counters, disk_cache, profiler, settings
from treadle.runtime.built_kernel import BuiltKernel, from_bytes, to_bytes
from treadle.runtime.devices import Device
from treadle.runtime.launch_records import BuildVariant

Made = tuple[BuiltKernel, base.CompiledKernel]

_Error = TypeVar("_Error", bound=Exception)

_lowering = forks.lock()


class Build:
    """A kernel that is compiled, or will be by a worker thread."""

    __slots__ = ("_call", "_made", "_place", "built")

    def __init__(
        self,
        built: BuiltKernel,
        made: Made | None,
        call: Call[Made] | None = None,
        place: Callable[[CompileError], CompileError] | None = None,
    ) -> None:
        self.built = built  # what was printed
        self._made = made
        self._call = call
        self._place = place  # what adds its place to an error

    @property
    def ended(self) -> bool:
        """Whether it is compiled, or failed to be."""
        return self._call is None or self._call.ended

    def wait(self) -> None:
        """Wait until it is compiled, or failed to be."""
        if self._call is not None:
            self._call.wait()

    def result(self) -> Made:
        """The code, once it is there. If a compiler failed, its error for who asks first, with the
        kernel's name (`background.Raised` for others, who may have it compiled again)."""
        if self._made is not None:
            return self._made
        assert self._call is not None
        assert self._place is not None
        try:
            return self._call.result()
        except Raised:
            raise
        except CompileError as error:
            raise self._named(self._place(error)) from None
        except Exception as error:
            self._named(error)
            raise

    def _named(self, error: _Error) -> _Error:
        """An error with a note that names the kernel, unless its text does."""
        assert self._call is not None
        if self._call.name not in str(error):
            error.add_note(f"while kernel {self._call.name} was compiled")
        return error


def begin(
    definition: KernelDefinition, signature: Signature, variant: BuildVariant, device: Device
) -> Build:
    """Have a kernel compiled for a device, unless it was before: then it is in memory or on disk.

    Python's part of it is done when this returns; compilers of others work in worker threads.
    """
    with deep_nesting(definition.name):
        return _begin(definition, signature, variant, device)


def _begin(
    definition: KernelDefinition, signature: Signature, variant: BuildVariant, device: Device
) -> Build:
    began = time.perf_counter()
    handle = device.handle
    target = target_of(device.info)
    name = _name_on_disk(definition, signature, variant, target, handle)
    if name is not None and (known := disk_cache.load(name)) is not None:
        found = _found(known.decode("ascii", "replace"), definition, signature, device, began)
        if found is not None:
            return found
    lowered = definition.lower(signature)
    options = Options(
        variant.block,
        _slots(lowered, variant.same),
        variant.folded,
        variant.shared_bytes,
        variant.check,
    )
    key = disk_cache.key_of(
        __version__, disk_cache.source_state(), to_text(lowered.kernel, spans=True),
        repr(options), target.key(), handle.cache_key(),
    )  # fmt: skip
    place = partial(_placed, lowered=lowered)
    with _lowering:  # a second thread finds what the first one has begun
        made: Made | None = device.compiled.get(key)
        if made is not None:
            return Build(made[0], made)
        build: Build | None = device.builds.get(key)
        if build is not None:
            return build
        try:
            built, binary = _from_disk(key) or (None, None)
            how = "compiled" if built is None else "from disk"
            if built is None:
                built = _from_scratch(lowered, options, target, signature)
            if name is not None:
                disk_cache.save(name, key.encode())
        except CompileError as error:
            raise place(error) from None
        finish = partial(_finish, definition.name, key, built, binary, device, handle, how, began)
        return _finishing(
            finish, built, definition.name, key, device, place, at_once=binary is not None
        )


def _finishing(
    finish: Callable[[], Made],
    built: BuiltKernel,
    name: str,
    key: str,
    device: Device,
    place: Callable[[CompileError], CompileError],
    *,
    at_once: bool,
) -> Build:
    """Compile printed code, by a worker thread unless machine code is only loaded."""
    if at_once:
        return Build(built, finish())
    call = Call(finish, name)
    build = Build(built, None, call, place)
    with Uninterruptible():
        device.builds[key] = build
        background.begin(call)
    return build


def _name_on_disk(
    definition: KernelDefinition,
    signature: Signature,
    variant: BuildVariant,
    target: Target,
    handle: base.Device,
) -> str | None:
    """The name of the entry that has the key of a kernel that need not be lowered to find it."""
    identity = getattr(definition, "identity", None)
    text = identity() if identity is not None and settings.disk_cache else None
    if text is None:
        return None
    return disk_cache.key_of(
        "key of", __version__, disk_cache.source_state(), text, repr(signature), repr(variant),
        target.key(), handle.cache_key(),
    )  # fmt: skip


def _found(
    key: str, definition: KernelDefinition, signature: Signature, device: Device, began: float
) -> Build | None:
    """A kernel that is in memory or on disk, without lowering it."""

    def place(error: CompileError) -> CompileError:
        return _placed(error, definition.lower(signature))

    handle = device.handle
    with _lowering:
        made: Made | None = device.compiled.get(key)
        if made is not None:
            return Build(made[0], made)
        build: Build | None = device.builds.get(key)
        if build is not None:
            return build
        found = _from_disk(key)
        if found is None:
            return None
        built, binary = found
        finish = partial(
            _finish, definition.name, key, built, binary, device, handle, "from disk", began
        )
        try:
            return _finishing(
                finish, built, definition.name, key, device, place, at_once=binary is not None
            )
        except CompileError as error:
            raise place(error) from None


def _finish(
    name: str,
    key: str,
    built: BuiltKernel,
    binary: bytes | None,
    device: Device,
    handle: base.Device,
    how: str,
    began: float,
) -> Made:
    """Compile printed code and keep it; in a worker thread, if that takes time."""
    try:
        compiled = handle.compile(built.code, binary)
        made = built, compiled
        if device.is_open_as(handle):
            device.compiled[key] = made
        if how == "compiled" and settings.disk_cache:
            disk_cache.save(key, to_bytes(built, handle.binary(compiled)))
    finally:
        device.builds.pop(key, None)
    counters.count_kernel()
    if (active := profiler.active) is not None:
        active.note_compilation(name, how, device.id, began)
    return made


def _from_disk(key: str) -> tuple[BuiltKernel, bytes | None] | None:
    content = disk_cache.load(key) if settings.disk_cache else None
    if content is None:
        return None
    try:
        return from_bytes(content)
    except FormatError:
        disk_cache.discard(key)
        return None


def _from_scratch(
    lowered: LoweredKernel, options: Options, target: Target, signature: Signature
) -> BuiltKernel:
    # Here, so that a process that finds its kernels on disk does not load the compiler.
    from treadle.codegen import pipeline
    from treadle.ir.passes.whole_subgroups import has_matrices

    ready = pipeline.lower(lowered.kernel, options, target)
    arrays = [i for i, one in enumerate(signature.arguments) if isinstance(one, ArrayArgument)]
    names = [buffer.name for buffer in lowered.kernel.buffers]
    writes, reads = (
        frozenset(position for position, name in zip(arrays, names, strict=True) if name in used)
        for used in (pipeline.writes_of(ready.kernel), pipeline.reads_of(lowered.kernel))
    )
    try:
        code = pipeline.print_code(ready, options, target)
    except TooManyArrays as error:
        error.written = writes
        raise
    whole = signature.threads > 0 and has_matrices(lowered.kernel)
    return BuiltKernel(code, ready.sites, writes, reads, whole)


def print_source(
    definition: KernelDefinition,
    signature: Signature,
    target: str,
    block: Dim3,
    shared_bytes: int,
    sm: int | str | None = None,
) -> str:
    """A kernel's source for a target, or its IR, without a device. `sm` is a card's compute
    capability (`offline.find_card`); CompileError for one that is not known, and for targets that
    are not of NVIDIA's cards."""
    from treadle.codegen import TARGETS

    if target not in (*TARGETS, "ir"):
        raise CompileError(f"unknown target {target!r}: use one of {', '.join(TARGETS)} or ir")
    described = None if sm is None else _target_of_card(sm, target)
    with deep_nesting(definition.name):
        if target == "ir":
            return to_text(definition.lower(signature).kernel)
        if described is None:
            from treadle.codegen.target import find_target

            described = find_target(target).generic
        return printed_for(definition, signature, described, block, shared_bytes)


def _target_of_card(sm: int | str, language: str) -> Target:
    """What to print for a card that need not be here."""
    from treadle.drivers.offline import find_card

    try:
        return target_of(find_card(sm, language))
    except ValueError as error:
        raise CompileError(str(error)) from None


def printed_for(
    definition: KernelDefinition,
    signature: Signature,
    target: Target,
    block: Dim3,
    shared_bytes: int,
) -> str:
    """A kernel's source for a device with certain limits and features, which need not be here. If
    it has too many arrays for that, it is that of a launch with some of them in one buffer."""
    from treadle.codegen import pipeline

    lowered = definition.lower(signature)
    options = Options(block, _slots(lowered, None), shared_bytes=shared_bytes)
    try:
        ready = pipeline.lower(lowered.kernel, options, target)
        try:
            return pipeline.print_code(ready, options, target).source
        except TooManyArrays as error:
            written = pipeline.writes_of(lowered.kernel)
            signature, same = _packed(signature, lowered, written, error.bindings - error.most + 1)
        lowered = definition.lower(signature)
        options = replace(options, slots=_slots(lowered, same))
        ready = pipeline.lower(lowered.kernel, options, target)
        return pipeline.print_code(ready, options, target).source
    except CompileError as error:
        raise _placed(error, lowered) from None


def _packed(
    signature: Signature, lowered: LoweredKernel, written: frozenset[str], count: int
) -> tuple[Signature, tuple[int, ...]]:
    """The signature of a launch with `count` arrays in one buffer, each with an offset in it, and
    which arrays share a buffer: arrays that are only read, if there are enough."""
    names = [buffer.name for buffer in lowered.kernel.buffers]
    order = sorted(range(len(names)), key=lambda at: (names[at] in written, at))
    chosen = sorted(order[:count])
    same = tuple(chosen[0] if at in chosen else at for at in range(len(names)))
    arguments = list(signature.arguments)
    arrays = [i for i, one in enumerate(arguments) if isinstance(one, ArrayArgument)]
    for at in chosen:
        array = arguments[arrays[at]]
        assert isinstance(array, ArrayArgument)
        arguments[arrays[at]] = replace(array, has_offset=True)
    return replace(signature, arguments=tuple(arguments)), same


def _placed(error: CompileError, lowered: LoweredKernel) -> CompileError:
    """An error with its place in the user's source: the kernel's own if it has no other."""
    if not error.span.line:
        error.span = lowered.kernel.span
    return error.with_source(lowered.sources.get(error.span.file))


def target_of(info: DeviceInfo) -> Target:
    """What to print for a device."""
    usual, *others = info.traits.targets
    language = settings.cuda_language if settings.cuda_language in others else usual
    return Target(language, info.dialect, info.limits, info.features, info.traits.matrix_units)


def _slots(lowered: LoweredKernel, same: tuple[int, ...] | None) -> tuple[tuple[str, int], ...]:
    """A binding for each buffer, in order of first use. Arguments that are the same array share
    one."""
    names = [buffer.name for buffer in lowered.kernel.buffers]
    first = same or tuple(range(len(names)))
    order = {one: slot for slot, one in enumerate(dict.fromkeys(first))}
    return tuple((name, order[one]) for name, one in zip(names, first, strict=True))
