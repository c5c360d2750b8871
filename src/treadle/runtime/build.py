"""Builds a kernel's definition into code for a device, cached in memory and on disk."""

from __future__ import annotations

import logging
import sys
import time

from treadle.codegen.records import Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, FormatError
from treadle.core.interrupts import interruptibly
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

_log = logging.getLogger("treadle")
_SLOW = 1.0  # seconds of compiling from which on the log names the kernel


def build(
    definition: KernelDefinition, signature: Signature, variant: BuildVariant, device: Device
) -> tuple[BuiltKernel, base.CompiledKernel]:
    """The kernel compiled for a device; from memory or disk if it was compiled before."""
    with deep_nesting(definition.name):
        return _build(definition, signature, variant, device)


def _build(
    definition: KernelDefinition, signature: Signature, variant: BuildVariant, device: Device
) -> tuple[BuiltKernel, base.CompiledKernel]:
    began = time.perf_counter()
    lowered = definition.lower(signature)
    options = Options(
        variant.block,
        _slots(lowered, variant.same),
        variant.folded,
        variant.shared_bytes,
        variant.check,
    )
    handle = device.handle
    target = target_of(device.info)
    key = disk_cache.key_of(
        __version__, disk_cache.source_state(), to_text(lowered.kernel, spans=True),
        repr(options), target.key(), handle.cache_key(),
    )  # fmt: skip
    known: tuple[BuiltKernel, base.CompiledKernel] | None = device.compiled.get(key)
    if known is not None:
        return known
    how = "from disk"
    try:
        made = _from_disk(key, handle)
        if made is None:
            how = "compiled"
            made = _from_scratch(key, lowered, options, target, signature, handle)
    except CompileError as error:
        raise _placed(error, lowered) from None
    device.compiled[key] = made
    counters.count_kernel()
    if (active := profiler.active) is not None:
        active.note_compilation(definition.name, how, device.id, began)
    seconds = time.perf_counter() - began
    if seconds > _SLOW:
        level = logging.WARNING if _at_a_terminal() else logging.INFO
        text = "compiling kernel %s for %s took %.1f s"
        _log.log(level, text, definition.name, device.id, seconds)
    return made


def _at_a_terminal() -> bool:
    """Whether warnings go to a terminal that a user watches. In a file, a pipe or a notebook they
    would be mixed into the output."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


def _from_disk(key: str, handle: base.Device) -> tuple[BuiltKernel, base.CompiledKernel] | None:
    content = disk_cache.load(key) if settings.disk_cache else None
    if content is None:
        return None
    try:
        built, binary = from_bytes(content)
    except FormatError:
        disk_cache.discard(key)
        return None
    if binary is None:
        return built, interruptibly(lambda: handle.compile(built.code))
    return built, handle.compile(built.code, binary)


def _from_scratch(
    key: str,
    lowered: LoweredKernel,
    options: Options,
    target: Target,
    signature: Signature,
    handle: base.Device,
) -> tuple[BuiltKernel, base.CompiledKernel]:
    # Imported here, so that a process that finds its kernels on disk does not load the compiler.
    from treadle.codegen import pipeline

    ready = pipeline.lower(lowered.kernel, options, target)
    code = pipeline.print_code(ready, options, target)
    arrays = [i for i, one in enumerate(signature.arguments) if isinstance(one, ArrayArgument)]
    names = [buffer.name for buffer in lowered.kernel.buffers]
    writes, reads = (
        frozenset(position for position, name in zip(arrays, names, strict=True) if name in used)
        for used in (pipeline.writes_of(ready.kernel), pipeline.reads_of(lowered.kernel))
    )
    built = BuiltKernel(code, ready.sites, writes, reads)
    compiled = interruptibly(lambda: handle.compile(code))
    if settings.disk_cache:
        disk_cache.save(key, to_bytes(built, handle.binary(compiled)))
    return built, compiled


def print_source(
    definition: KernelDefinition, signature: Signature, target: str, block: Dim3, shared_bytes: int
) -> str:
    """A kernel's source for a target, or its IR, without a device."""
    from treadle.codegen import TARGETS

    if target not in (*TARGETS, "ir"):
        raise CompileError(f"unknown target {target!r}: use one of {', '.join(TARGETS)} or ir")
    with deep_nesting(definition.name):
        return _print_source(definition, signature, target, block, shared_bytes)


def _print_source(
    definition: KernelDefinition, signature: Signature, target: str, block: Dim3, shared_bytes: int
) -> str:
    lowered = definition.lower(signature)
    try:
        if target == "ir":
            return to_text(lowered.kernel)
        options = Options(block, _slots(lowered, None), shared_bytes=shared_bytes)
        from treadle.codegen import pipeline
        from treadle.codegen.target import find_target

        generic = find_target(target).generic
        ready = pipeline.lower(lowered.kernel, options, generic)
        return pipeline.print_code(ready, options, generic).source
    except CompileError as error:
        raise _placed(error, lowered) from None


def _placed(error: CompileError, lowered: LoweredKernel) -> CompileError:
    """An error with its place in the user's source: the kernel's own if it has no other."""
    if not error.span.line:
        error.span = lowered.kernel.span
    return error.with_source(lowered.sources.get(error.span.file))


def target_of(info: DeviceInfo) -> Target:
    """What to print for a device."""
    usual, *others = info.traits.targets
    language = settings.cuda_language if settings.cuda_language in others else usual
    return Target(language, info.dialect, info.limits, info.features)


def _slots(lowered: LoweredKernel, same: tuple[int, ...] | None) -> tuple[tuple[str, int], ...]:
    """A binding for each buffer, in order of first use. Arguments that are the same array share
    one."""
    names = [buffer.name for buffer in lowered.kernel.buffers]
    first = same or tuple(range(len(names)))
    order = {one: slot for slot, one in enumerate(dict.fromkeys(first))}
    return tuple((name, order[one]) for name, one in zip(names, first, strict=True))
