"""The calls of an exchange in machine code, compiled with LLVM: four calls of Python's instead of
fifteen, each of which takes longer than most of the library's own."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.drivers.webgpu_native.encode_loop import EncodeLoop
from treadle.drivers.webgpu_native.native import Handle, Native

# Each way has words of 64 bits, in this order: `up`, a buffer mapped for writing, its size and the
# info for its mapping; the same of `down`, which is mapped for reading; the records and how many;
# how many bytes are wanted; and, between the calls, the encoder and the command buffer.
WORDS = 11
# In C, with the address of a way:
#   prepare(device, way, data, size): copy the data to where `up` is mapped, end that mapping,
#     encode the records; 0 if it was not mapped
#   submit(queue, way): submit what was encoded, and ask for both mappings
#   abandon(way): drop what was encoded
#   fetch(way, target): copy from where `down` is mapped, and end that mapping; 0 if it was not
_ASSEMBLY = """
%Info = type { ptr, i32, ptr, ptr, ptr }
%Way = type { ptr, i64, ptr, ptr, i64, ptr, ptr, i64, i64, ptr, ptr }

define i64 @prepare(ptr %device, ptr %way, ptr %data, i64 %size) {
entry:
  %up = load ptr, ptr %way
  %up.size.at = getelementptr %Way, ptr %way, i32 0, i32 1
  %up.size = load i64, ptr %up.size.at
  %mapped = call ptr @wgpuBufferGetMappedRange(ptr %up, i64 0, i64 %up.size)
  %missing = icmp eq ptr %mapped, null
  br i1 %missing, label %none, label %fill
fill:
  call void @llvm.memcpy.p0.p0.i64(ptr %mapped, ptr %data, i64 %size, i1 false)
  call void @wgpuBufferUnmap(ptr %up)
  %encoder = call ptr @wgpuDeviceCreateCommandEncoder(ptr %device, ptr null)
  %records.at = getelementptr %Way, ptr %way, i32 0, i32 6
  %records = load ptr, ptr %records.at
  %count.at = getelementptr %Way, ptr %way, i32 0, i32 7
  %count = load i64, ptr %count.at
  call void ENCODE(ptr %encoder, ptr %records, i64 %count)
  %commands = call ptr @wgpuCommandEncoderFinish(ptr %encoder, ptr null)
  %encoder.at = getelementptr %Way, ptr %way, i32 0, i32 9
  store ptr %encoder, ptr %encoder.at
  %commands.at = getelementptr %Way, ptr %way, i32 0, i32 10
  store ptr %commands, ptr %commands.at
  ret i64 1
none:
  ret i64 0
}

define void @abandon(ptr %way) {
  %encoder.at = getelementptr %Way, ptr %way, i32 0, i32 9
  %encoder = load ptr, ptr %encoder.at
  %commands.at = getelementptr %Way, ptr %way, i32 0, i32 10
  %commands = load ptr, ptr %commands.at
  call void @wgpuCommandBufferRelease(ptr %commands)
  call void @wgpuCommandEncoderRelease(ptr %encoder)
  ret void
}

define private void @map(ptr %buffer, i64 %mode, i64 %size, ptr %info) {
  %flag.at = getelementptr %Info, ptr %info, i32 0, i32 3
  %flag = load ptr, ptr %flag.at
  store atomic i64 0, ptr %flag release, align 8
  ; Where structs are passed by address, they are the called function's to change.
  %own = alloca %Info, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %info, i64 40, i1 false)
  %future = call i64 @wgpuBufferMapAsync(ptr %buffer, i64 %mode, i64 0, i64 %size, INFO %own)
  ret void
}

define void @submit(ptr %queue, ptr %way) {
  %commands.at = getelementptr %Way, ptr %way, i32 0, i32 10
  call void @wgpuQueueSubmit(ptr %queue, i64 1, ptr %commands.at)
  call void @abandon(ptr %way)
  %down.at = getelementptr %Way, ptr %way, i32 0, i32 3
  %down = load ptr, ptr %down.at
  %down.size.at = getelementptr %Way, ptr %way, i32 0, i32 4
  %down.size = load i64, ptr %down.size.at
  %down.info.at = getelementptr %Way, ptr %way, i32 0, i32 5
  %down.info = load ptr, ptr %down.info.at
  call void @map(ptr %down, i64 1, i64 %down.size, ptr %down.info)
  %up = load ptr, ptr %way
  %up.size.at = getelementptr %Way, ptr %way, i32 0, i32 1
  %up.size = load i64, ptr %up.size.at
  %up.info.at = getelementptr %Way, ptr %way, i32 0, i32 2
  %up.info = load ptr, ptr %up.info.at
  call void @map(ptr %up, i64 2, i64 %up.size, ptr %up.info)
  ret void
}

define i64 @fetch(ptr %way, ptr %target) {
entry:
  %down.at = getelementptr %Way, ptr %way, i32 0, i32 3
  %down = load ptr, ptr %down.at
  %down.size.at = getelementptr %Way, ptr %way, i32 0, i32 4
  %down.size = load i64, ptr %down.size.at
  %mapped = call ptr @wgpuBufferGetConstMappedRange(ptr %down, i64 0, i64 %down.size)
  %missing = icmp eq ptr %mapped, null
  br i1 %missing, label %none, label %copy
copy:
  %wanted.at = getelementptr %Way, ptr %way, i32 0, i32 8
  %wanted = load i64, ptr %wanted.at
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %mapped, i64 %wanted, i1 false)
  call void @wgpuBufferUnmap(ptr %down)
  ret i64 1
none:
  ret i64 0
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @wgpuBufferGetMappedRange(ptr, i64, i64)
declare ptr @wgpuBufferGetConstMappedRange(ptr, i64, i64)
declare void @wgpuBufferUnmap(ptr)
declare ptr @wgpuDeviceCreateCommandEncoder(ptr, ptr)
declare ptr @wgpuCommandEncoderFinish(ptr, ptr)
declare void @wgpuCommandBufferRelease(ptr)
declare void @wgpuCommandEncoderRelease(ptr)
declare void @wgpuQueueSubmit(ptr, i64, ptr)
declare i64 @wgpuBufferMapAsync(ptr, i64, i64, i64, INFO)
"""
_FUNCTIONS = (
    "wgpuBufferGetMappedRange",
    "wgpuBufferGetConstMappedRange",
    "wgpuBufferUnmap",
    "wgpuDeviceCreateCommandEncoder",
    "wgpuCommandEncoderFinish",
    "wgpuCommandBufferRelease",
    "wgpuCommandEncoderRelease",
    "wgpuQueueSubmit",
    "wgpuBufferMapAsync",
)


@dataclass(frozen=True)
class ExchangeCode:
    """The functions for one library."""

    prepare: Callable[[Handle, int, int, int], int]  # (device, way, data, size)
    submit: Callable[[Handle, int], None]  # (queue, way)
    abandon: Callable[[int], None]  # (way)
    fetch: Callable[[int, int], int]  # (way, target)
    keep: Any  # what the function addresses live in


@functools.cache
def exchange_code(native: Native, loop: EncodeLoop) -> ExchangeCode:
    """The functions for a library whose encode loop is compiled."""
    from llvmlite import binding

    # A struct of 40 bytes is passed on the stack on x86-64, else its address is.
    on_stack = platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32"
    encode = native.address(loop.encode)
    text = _ASSEMBLY.replace("ENCODE(", f"inttoptr (i64 {encode} to ptr)(")
    text = text.replace("INFO", "ptr byval(%Info) align 8" if on_stack else "ptr")
    module = binding.parse_assembly(text)
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    engine = binding.create_mcjit_compiler(module, machine)
    for name in _FUNCTIONS:
        engine.add_global_mapping(module.get_function(name), native.function_address(name))
    engine.finalize_object()
    address, cast = engine.get_function_address, native.ffi.cast
    return ExchangeCode(
        prepare=cast("int64_t (*)(void *, size_t, size_t, size_t)", address("prepare")),
        submit=cast("void (*)(void *, size_t)", address("submit")),
        abandon=cast("void (*)(size_t)", address("abandon")),
        fetch=cast("int64_t (*)(size_t, size_t)", address("fetch")),
        keep=engine,
    )
