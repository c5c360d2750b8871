"""The loop that turns prepared records into WebGPU calls, compiled with LLVM.

Work is collected as records of 48 bytes in host memory (launching writes one record) and turned
into calls of the C library only when a batch is submitted. Compiled, the walk costs a fraction of
what calling the library from Python for each record would. The same loop replays recordings: a
`CALL` record walks another array.

    record     0        4      8            12     16        24       32          40
    DISPATCH   kind     x      y            z      pipeline  group 0  group 1     its dynamic offset
    COPY       kind     -      source              offset    target   offset      size
    CLEAR      kind     -      buffer              offset    size
    TIMESTAMP  kind     index  query set
    RESOLVE    kind     index  query set           buffer    offset   how many
    CALL       kind     -      records             count

Handles are addresses. `group 1` is 0 for a kernel without parameters. A pass is opened by the first
dispatch and closed by a record of another kind. Calls that would change nothing are left out.

Without llvmlite the same functions exist in Python, several times slower, with the same meaning.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treadle.drivers.webgpu_native.native import Handle, Native

RECORD = 48
DISPATCH, COPY, CLEAR, TIMESTAMP, RESOLVE, CALL = range(6)
pack_dispatch = struct.Struct("<IIIIQQQII").pack_into
pack_copy = struct.Struct("<IIQQQQQ").pack_into
pack_clear = struct.Struct("<IIQQQ16x").pack_into
pack_timestamp = struct.Struct("<IIQ32x").pack_into
pack_resolve = struct.Struct("<IIQQQQ8x").pack_into
pack_call = struct.Struct("<IIQQ24x").pack_into

_FUNCTIONS = (
    "wgpuCommandEncoderBeginComputePass",
    "wgpuCommandEncoderCopyBufferToBuffer",
    "wgpuCommandEncoderClearBuffer",
    "wgpuCommandEncoderWriteTimestamp",
    "wgpuCommandEncoderResolveQuerySet",
    "wgpuComputePassEncoderEnd",
    "wgpuComputePassEncoderRelease",
    "wgpuComputePassEncoderSetPipeline",
    "wgpuComputePassEncoderSetBindGroup",
    "wgpuComputePassEncoderDispatchWorkgroups",
)
# How a library makes progress, by `Poll.of_device`: a declaration, and a call with `%poller`.
_POLLS = {
    True: ("i32 @poll(ptr, i32, ptr)", "call i32 @poll(ptr %poller, i32 0, ptr null)"),
    False: ("void @poll(ptr)", "call void @poll(ptr %poller)"),
}

# In C, with `state` = {encoder, pass, pipeline, group 0, group 1, its offset}:
#   encode(encoder, records, count): walk(&state, records, count); close(&state)
#   spin(poller, flag, target, tries): while (*flag < target && tries--) poll(poller)
#   on_done(status, message, flag, value): *flag = value
#   on_mapped(status, message, flag, value): *flag = status
_ASSEMBLY = """
%State = type { ptr, ptr, i64, i64, i64, i32 }

define private void @close(ptr %state) {
entry:
  %pass.at = getelementptr %State, ptr %state, i32 0, i32 1
  %pass = load ptr, ptr %pass.at
  %open = icmp ne ptr %pass, null
  br i1 %open, label %end, label %done
end:
  call void @wgpuComputePassEncoderEnd(ptr %pass)
  call void @wgpuComputePassEncoderRelease(ptr %pass)
  %pipeline.at = getelementptr %State, ptr %state, i32 0, i32 2
  %group.at = getelementptr %State, ptr %state, i32 0, i32 3
  store ptr null, ptr %pass.at
  store i64 0, ptr %pipeline.at
  store i64 0, ptr %group.at
  %parameters.at = getelementptr %State, ptr %state, i32 0, i32 4
  store i64 0, ptr %parameters.at
  br label %done
done:
  ret void
}

define private void @walk(ptr %state, ptr %records, i64 %count) {
entry:
  %encoder = load ptr, ptr %state
  %pass.at = getelementptr %State, ptr %state, i32 0, i32 1
  %pipeline.at = getelementptr %State, ptr %state, i32 0, i32 2
  %group.at = getelementptr %State, ptr %state, i32 0, i32 3
  %parameters.at = getelementptr %State, ptr %state, i32 0, i32 4
  %offset.at = getelementptr %State, ptr %state, i32 0, i32 5
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %record = getelementptr [48 x i8], ptr %records, i64 %i
  %at4 = getelementptr i8, ptr %record, i64 4
  %at8 = getelementptr i8, ptr %record, i64 8
  %at16 = getelementptr i8, ptr %record, i64 16
  %at24 = getelementptr i8, ptr %record, i64 24
  %at32 = getelementptr i8, ptr %record, i64 32
  %at40 = getelementptr i8, ptr %record, i64 40
  %kind = load i32, ptr %record
  %is.dispatch = icmp eq i32 %kind, 0
  br i1 %is.dispatch, label %dispatch, label %other

dispatch:
  %pass.old = load ptr, ptr %pass.at
  %pass.open = icmp ne ptr %pass.old, null
  br i1 %pass.open, label %pipeline, label %begin
begin:
  %pass.new = call ptr @wgpuCommandEncoderBeginComputePass(ptr %encoder, ptr null)
  store ptr %pass.new, ptr %pass.at
  br label %pipeline
pipeline:
  %pass = phi ptr [ %pass.old, %dispatch ], [ %pass.new, %begin ]
  %pipeline.wanted = load i64, ptr %at16, align 1
  %pipeline.set = load i64, ptr %pipeline.at
  %pipeline.same = icmp eq i64 %pipeline.wanted, %pipeline.set
  br i1 %pipeline.same, label %group0, label %set.pipeline
set.pipeline:
  %pipeline.handle = inttoptr i64 %pipeline.wanted to ptr
  call void @wgpuComputePassEncoderSetPipeline(ptr %pass, ptr %pipeline.handle)
  store i64 %pipeline.wanted, ptr %pipeline.at
  br label %group0
group0:
  %group.wanted = load i64, ptr %at24, align 1
  %group.set = load i64, ptr %group.at
  %group.same = icmp eq i64 %group.wanted, %group.set
  br i1 %group.same, label %group1, label %set.group0
set.group0:
  %group.handle = inttoptr i64 %group.wanted to ptr
  call void @wgpuComputePassEncoderSetBindGroup(
      ptr %pass, i32 0, ptr %group.handle, i64 0, ptr null)
  store i64 %group.wanted, ptr %group.at
  br label %group1
group1:
  %parameters.wanted = load i64, ptr %at32, align 1
  %parameters.none = icmp eq i64 %parameters.wanted, 0
  br i1 %parameters.none, label %go, label %compare.group1
compare.group1:
  %parameters.set = load i64, ptr %parameters.at
  %offset.wanted = load i32, ptr %at40, align 1
  %offset.set = load i32, ptr %offset.at
  %parameters.same = icmp eq i64 %parameters.wanted, %parameters.set
  %offset.same = icmp eq i32 %offset.wanted, %offset.set
  %both.same = and i1 %parameters.same, %offset.same
  br i1 %both.same, label %go, label %set.group1
set.group1:
  %parameters = inttoptr i64 %parameters.wanted to ptr
  call void @wgpuComputePassEncoderSetBindGroup(
      ptr %pass, i32 1, ptr %parameters, i64 1, ptr %at40)
  store i64 %parameters.wanted, ptr %parameters.at
  store i32 %offset.wanted, ptr %offset.at
  br label %go
go:
  %x = load i32, ptr %at4, align 1
  %y = load i32, ptr %at8, align 1
  %at12 = getelementptr i8, ptr %record, i64 12
  %z = load i32, ptr %at12, align 1
  call void @wgpuComputePassEncoderDispatchWorkgroups(ptr %pass, i32 %x, i32 %y, i32 %z)
  br label %next

other:
  %first = load ptr, ptr %at8, align 1
  %second = load i64, ptr %at16, align 1
  %index = load i32, ptr %at4, align 1
  %is.call = icmp eq i32 %kind, 5
  br i1 %is.call, label %call, label %outside
call:
  call void @walk(ptr %state, ptr %first, i64 %second)
  br label %next
outside:
  call void @close(ptr %state)
  %third = load i64, ptr %at24, align 1
  switch i32 %kind, label %next [
    i32 1, label %copy
    i32 2, label %clear
    i32 3, label %timestamp
    i32 4, label %resolve
  ]
copy:
  %target = inttoptr i64 %third to ptr
  %target.offset = load i64, ptr %at32, align 1
  %size = load i64, ptr %at40, align 1
  call void @wgpuCommandEncoderCopyBufferToBuffer(
      ptr %encoder, ptr %first, i64 %second, ptr %target, i64 %target.offset, i64 %size)
  br label %next
clear:
  call void @wgpuCommandEncoderClearBuffer(ptr %encoder, ptr %first, i64 %second, i64 %third)
  br label %next
timestamp:
  call void @wgpuCommandEncoderWriteTimestamp(ptr %encoder, ptr %first, i32 %index)
  br label %next
resolve:
  %resolved = inttoptr i64 %second to ptr
  %many = load i32, ptr %at32, align 1
  call void @wgpuCommandEncoderResolveQuerySet(
      ptr %encoder, ptr %first, i32 %index, i32 %many, ptr %resolved, i64 %third)
  br label %next

next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}

define void @encode(ptr %encoder, ptr %records, i64 %count) {
  %state = alloca %State
  store %State zeroinitializer, ptr %state
  store ptr %encoder, ptr %state
  call void @walk(ptr %state, ptr %records, i64 %count)
  call void @close(ptr %state)
  ret void
}

define i64 @spin(ptr %poller, ptr %flag, i64 %target, i64 %tries) {
entry:
  br label %loop
loop:
  %left = phi i64 [ %tries, %entry ], [ %left.next, %again ]
  %value = load atomic i64, ptr %flag acquire, align 8
  %reached = icmp sge i64 %value, %target
  %tired = icmp eq i64 %left, 0
  %stop = or i1 %reached, %tired
  br i1 %stop, label %done, label %again
again:
  CALL_POLL
  %left.next = sub i64 %left, 1
  br label %loop
done:
  ret i64 %value
}

define void @on_done(i32 %status, MESSAGE, ptr %flag, i64 %value) {
  store atomic i64 %value, ptr %flag release, align 8
  ret void
}

define void @on_mapped(i32 %status, MESSAGE, ptr %flag, i64 %value) {
  %wide = zext i32 %status to i64
  store atomic i64 %wide, ptr %flag release, align 8
  ret void
}
"""
_DECLARATIONS = """
declare ptr @wgpuCommandEncoderBeginComputePass(ptr, ptr)
declare void @wgpuCommandEncoderCopyBufferToBuffer(ptr, ptr, i64, ptr, i64, i64)
declare void @wgpuCommandEncoderClearBuffer(ptr, ptr, i64, i64)
declare void @wgpuCommandEncoderWriteTimestamp(ptr, ptr, i32)
declare void @wgpuCommandEncoderResolveQuerySet(ptr, ptr, i32, i32, ptr, i64)
declare void @wgpuComputePassEncoderEnd(ptr)
declare void @wgpuComputePassEncoderRelease(ptr)
declare void @wgpuComputePassEncoderSetPipeline(ptr, ptr)
declare void @wgpuComputePassEncoderSetBindGroup(ptr, i32, ptr, i64, ptr)
declare void @wgpuComputePassEncoderDispatchWorkgroups(ptr, i32, i32, i32)
declare DECLARE_POLL
"""
# How a WGPUStringView, a struct of 16 bytes, is passed by value: in two registers, except that
# Windows on x86-64 passes its address.
_MESSAGE = "ptr %message" if sys.platform == "win32" else "ptr %text, i64 %length"


@dataclass(frozen=True)
class EncodeLoop:
    """The loop and its helpers for one library."""

    encode: Callable[[Handle, Any, int], None]  # (encoder, records, count)
    spin: Callable[[Handle, Any, int, int], int]  # (poller, flag, target, tries) -> *flag
    on_done: Any  # a WGPUQueueWorkDoneCallback
    on_mapped: Any  # a WGPUBufferMapCallback
    compiled: bool
    keep: Any = None  # what the function addresses live in


@functools.cache
def encode_loop(native: Native) -> EncodeLoop:
    """The loop for a library: compiled if llvmlite is there, else in Python."""
    try:
        from llvmlite import binding
    except ImportError:
        return python_loop(native)
    return _compiled_loop(native, binding)


def _compiled_loop(native: Native, binding: Any) -> EncodeLoop:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    declaration, call = _POLLS[native.provider.poll.of_device]
    parts = {"DECLARE_POLL": declaration, "CALL_POLL": call, "MESSAGE": _MESSAGE}
    text = _DECLARATIONS + _ASSEMBLY
    for name, part in parts.items():
        text = text.replace(name, part)
    module = binding.parse_assembly(text)
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    engine = binding.create_mcjit_compiler(module, machine)
    for name in _FUNCTIONS:
        engine.add_global_mapping(module.get_function(name), native.function_address(name))
    poll = native.function_address(native.provider.poll.function)
    engine.add_global_mapping(module.get_function("poll"), poll)
    engine.finalize_object()
    address = engine.get_function_address
    cast = native.ffi.cast
    return EncodeLoop(
        encode=cast("void (*)(void *, void *, uint64_t)", address("encode")),
        spin=cast("int64_t (*)(void *, int64_t *, int64_t, int64_t)", address("spin")),
        on_done=cast("void *", address("on_done")),
        on_mapped=cast("void *", address("on_mapped")),
        compiled=True,
        keep=engine,
    )


def python_loop(native: Native) -> EncodeLoop:
    """The same four functions without LLVM."""
    ffi, lib, null = native.ffi, native.lib, native.null
    handle = native.handle

    def walk(encoder: Handle, records: Any, count: int, open_pass: Handle) -> Handle:
        raw = bytes(ffi.buffer(records, count * RECORD))
        offset = ffi.new("uint32_t[1]")
        for at in range(0, len(raw), RECORD):
            kind, index = struct.unpack_from("<II", raw, at)
            if kind == DISPATCH:
                if open_pass is None:
                    open_pass = lib.wgpuCommandEncoderBeginComputePass(encoder, null)
                x, y, z, pipeline, group, parameters, offset[0] = struct.unpack_from(
                    "<IIIQQQI", raw, at + 4
                )
                lib.wgpuComputePassEncoderSetPipeline(
                    open_pass, handle("WGPUComputePipeline", pipeline)
                )
                lib.wgpuComputePassEncoderSetBindGroup(
                    open_pass, 0, handle("WGPUBindGroup", group), 0, null
                )
                if parameters:
                    lib.wgpuComputePassEncoderSetBindGroup(
                        open_pass, 1, handle("WGPUBindGroup", parameters), 1, offset
                    )
                lib.wgpuComputePassEncoderDispatchWorkgroups(open_pass, x, y, z)
                continue
            first, second, third, fourth, size = struct.unpack_from("<QQQQQ", raw, at + 8)
            if kind == CALL:
                open_pass = walk(encoder, handle("void *", first), second, open_pass)
                continue
            close(open_pass)
            open_pass = None
            if kind == COPY:
                source, target = handle("WGPUBuffer", first), handle("WGPUBuffer", third)
                native.copy(encoder, source, second, target, fourth, size)
            elif kind == CLEAR:
                lib.wgpuCommandEncoderClearBuffer(
                    encoder, handle("WGPUBuffer", first), second, third
                )
            elif kind == TIMESTAMP:
                lib.wgpuCommandEncoderWriteTimestamp(encoder, handle("WGPUQuerySet", first), index)
            elif kind == RESOLVE:
                queries, resolved = handle("WGPUQuerySet", first), handle("WGPUBuffer", second)
                lib.wgpuCommandEncoderResolveQuerySet(
                    encoder, queries, index, fourth, resolved, third
                )
        return open_pass

    def close(open_pass: Handle) -> None:
        if open_pass is not None:
            lib.wgpuComputePassEncoderEnd(open_pass)
            lib.wgpuComputePassEncoderRelease(open_pass)

    def encode(encoder: Handle, records: Any, count: int) -> None:
        close(walk(encoder, records, count, None))

    def spin(poller: Handle, flag: Any, target: int, tries: int) -> int:
        while flag[0] < target and tries:
            native.poll(poller)
            tries -= 1
        return int(flag[0])

    @ffi.callback("WGPUQueueWorkDoneCallback")  # type: ignore[untyped-decorator]
    def on_done(_status: int, _message: Any, flag: Any, value: Any) -> None:
        ffi.cast("int64_t *", flag)[0] = int(ffi.cast("int64_t", value))

    @ffi.callback("WGPUBufferMapCallback")  # type: ignore[untyped-decorator]
    def on_mapped(status: int, _message: Any, flag: Any, _value: Any) -> None:
        ffi.cast("int64_t *", flag)[0] = status

    return EncodeLoop(encode, spin, on_done, on_mapped, compiled=False, keep=(on_done, on_mapped))
