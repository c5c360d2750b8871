"""Small loops in machine code around kernels: sharing blocks among threads, replaying launches.

A *call* is six words: entry, bindings, parameters, grid, first block, last block. Copies and
fills are calls too, of an entry that ignores what it does not need.
"""

from __future__ import annotations

import ctypes

from treadle.core.once import once
from treadle.drivers.cpu.compiler import Loaded, compiler

CALL_WORDS = 6

_SOURCE = """
define void @treadle.share(ptr %call, ptr %shared, i64 %chunk, i64 %total, i64 %spins) {
entry:
  %entry.at = load ptr, ptr %call
  %b.at = getelementptr i64, ptr %call, i64 1
  %bindings = load ptr, ptr %b.at
  %p.at = getelementptr i64, ptr %call, i64 2
  %parameters = load ptr, ptr %p.at
  %g.at = getelementptr i64, ptr %call, i64 3
  %grid = load ptr, ptr %g.at
  %finished = getelementptr i64, ptr %shared, i64 8
  br label %claim
claim:
  %first = atomicrmw add ptr %shared, i64 %chunk monotonic
  %none = icmp uge i64 %first, %total
  br i1 %none, label %wait, label %run
run:
  %end = add i64 %first, %chunk
  %last = call i64 @llvm.umin.i64(i64 %end, i64 %total)
  call void %entry.at(ptr %bindings, ptr %parameters, ptr %grid, i64 %first, i64 %last)
  %count = sub i64 %last, %first
  %ignored = atomicrmw add ptr %finished, i64 %count release
  br label %claim
wait:
  %turn = phi i64 [ 0, %claim ], [ %next, %again ]
  %so.far = load atomic i64, ptr %finished acquire, align 8
  %all = icmp uge i64 %so.far, %total
  %tired = icmp uge i64 %turn, %spins
  %leave = or i1 %all, %tired
  br i1 %leave, label %done, label %again
again:
  %next = add i64 %turn, 1
  br label %wait
done:
  ret void
}

define void @treadle.replay(ptr %calls, i64 %count) {
entry:
  %any = icmp ne i64 %count, 0
  br i1 %any, label %run, label %done
run:
  %i = phi i64 [ 0, %entry ], [ %next, %run ]
  %offset = mul i64 %i, 6
  %call = getelementptr i64, ptr %calls, i64 %offset
  %entry.at = load ptr, ptr %call
  %b.at = getelementptr i64, ptr %call, i64 1
  %bindings = load ptr, ptr %b.at
  %p.at = getelementptr i64, ptr %call, i64 2
  %parameters = load ptr, ptr %p.at
  %g.at = getelementptr i64, ptr %call, i64 3
  %grid = load ptr, ptr %g.at
  %f.at = getelementptr i64, ptr %call, i64 4
  %first = load i64, ptr %f.at
  %l.at = getelementptr i64, ptr %call, i64 5
  %last = load i64, ptr %l.at
  call void %entry.at(ptr %bindings, ptr %parameters, ptr %grid, i64 %first, i64 %last)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %run, label %done
done:
  ret void
}

define void @treadle.copy(ptr %bindings, ptr %parameters, ptr %grid, i64 %first, i64 %last) {
  %target = load ptr, ptr %bindings
  %s.at = getelementptr ptr, ptr %bindings, i64 1
  %source = load ptr, ptr %s.at
  call void @llvm.memmove.p0.p0.i64(ptr %target, ptr %source, i64 %last, i1 false)
  ret void
}

define void @treadle.zero(ptr %bindings, ptr %parameters, ptr %grid, i64 %first, i64 %last) {
  %target = load ptr, ptr %bindings
  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %last, i1 false)
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_SYMBOLS = ("treadle.share", "treadle.replay", "treadle.copy", "treadle.zero")


@once
def _loaded() -> Loaded:
    host = compiler()
    return host.load_object(host.compile_object(_SOURCE, "the driver's loops"), _SYMBOLS)


def address(name: str) -> int:
    """The address of the driver's own `copy` or `zero` entry."""
    return _loaded().addresses[f"treadle.{name}"]


@once
def share() -> ctypes._CFuncPtr:  # type: ignore[name-defined]
    """Run chunks of a call's blocks until none is left, then wait a while for those of others.

    Takes (call, shared, chunk, total, spins). `shared` is two counters, 64 bytes apart: blocks
    handed out, blocks finished.
    """
    prototype = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    )
    return prototype(_loaded().addresses["treadle.share"])


@once
def replay() -> ctypes._CFuncPtr:  # type: ignore[name-defined]
    """Run calls one after the other. Takes (calls, count)."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    return prototype(_loaded().addresses["treadle.replay"])
