"""Small loops in machine code around kernels: sharing blocks among threads, replaying launches.

A *call* is eight words: entry, bindings, parameters, grid, first block, last block, the fewest
blocks that a thread takes of it at a time, and its weight: `SINGLE` for what one thread runs,
`SHORT` and `LONG` for what several may. Copies and fills are calls too, of an entry that ignores
what it does not need.

A *team* is the threads that replay calls together, and the memory by which they do. One of them
goes through the calls. Those of one thread it runs itself. The blocks of others it publishes, as a
ticket: a number of the call, and how many blocks are left. All threads of the team take blocks from
the ticket, by an exchange that fails if another thread was faster. So what the ticket's call is
needs no lock: it changes only when no blocks are left, and then no exchange succeeds. A thread that
comes late, or is interrupted, delays nothing but the blocks that it has taken.
"""

from __future__ import annotations

import contextlib
import ctypes

from treadle.core.errors import CompileError
from treadle.core.once import once
from treadle.drivers.base import CodeStore
from treadle.drivers.cpu.compiler import Loaded, compiler

CALL_WORDS = 8
SINGLE, SHORT, LONG = range(3)

# Words of a team; those that one thread writes often and others read have a cache line each.
TEAM_WORDS = 40
TICKET = 0  # the number of a call << 32 | blocks that are left
FINISHED = 8  # blocks of this call
CALL, LAST, LEAST, PARTS = 16, 17, 18, 19  # the call, its blocks, how they are divided
WEIGHT = 20  # of the call
OPEN = 24  # 0 as soon as helpers are not needed any more
WAITS = 32  # whether the blocks of the call are published, and waited for
SHARED_FROM = 33  # the least weight of calls that are shared

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
  %offset = mul i64 %i, 8
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

define internal i1 @treadle.take(ptr %team) {
entry:
  %call.at = getelementptr i64, ptr %team, i64 16
  %last.at = getelementptr i64, ptr %team, i64 17
  %least.at = getelementptr i64, ptr %team, i64 18
  %parts.at = getelementptr i64, ptr %team, i64 19
  br label %again
again:
  %ticket = load atomic i64, ptr %team acquire, align 8
  %left = and i64 %ticket, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %nothing, label %some
some:
  %call = load atomic ptr, ptr %call.at monotonic, align 8
  %last = load atomic i64, ptr %last.at monotonic, align 8
  %least = load atomic i64, ptr %least.at monotonic, align 8
  %parts = load atomic i64, ptr %parts.at monotonic, align 8
  %part = udiv i64 %left, %parts
  %wanted = call i64 @llvm.umax.i64(i64 %part, i64 %least)
  %taken = call i64 @llvm.umin.i64(i64 %wanted, i64 %left)
  %less = sub i64 %ticket, %taken
  %pair = cmpxchg ptr %team, i64 %ticket, i64 %less acq_rel acquire, align 8
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %run, label %again
run:
  %first = sub i64 %last, %left
  %end = add i64 %first, %taken
  %entry.at = load ptr, ptr %call
  %b.at = getelementptr i64, ptr %call, i64 1
  %bindings = load ptr, ptr %b.at
  %p.at = getelementptr i64, ptr %call, i64 2
  %parameters = load ptr, ptr %p.at
  %g.at = getelementptr i64, ptr %call, i64 3
  %grid = load ptr, ptr %g.at
  call void %entry.at(ptr %bindings, ptr %parameters, ptr %grid, i64 %first, i64 %end)
  %finished = getelementptr i64, ptr %team, i64 8
  %ignored = atomicrmw add ptr %finished, i64 %taken release
  ret i1 true
nothing:
  ret i1 false
}

define i64 @treadle.lead(ptr %calls, i64 %start, i64 %count, ptr %team, i64 %spins) {
entry:
  %finished = getelementptr i64, ptr %team, i64 8
  %call.at = getelementptr i64, ptr %team, i64 16
  %last.at = getelementptr i64, ptr %team, i64 17
  %least.at = getelementptr i64, ptr %team, i64 18
  %waits.at = getelementptr i64, ptr %team, i64 32
  %waits = load i64, ptr %waits.at
  %weight.at = getelementptr i64, ptr %team, i64 20
  %from.at = getelementptr i64, ptr %team, i64 33
  %from = load i64, ptr %from.at
  %resumed = icmp ne i64 %waits, 0
  br label %next
next:
  %i = phi i64 [ %start, %entry ], [ %after, %step ]
  %over = icmp uge i64 %i, %count
  br i1 %over, label %done, label %one
one:
  %offset = mul i64 %i, 8
  %call = getelementptr i64, ptr %calls, i64 %offset
  %l.at = getelementptr i64, ptr %call, i64 5
  %last = load i64, ptr %l.at
  %is.first = icmp eq i64 %i, %start
  %waits.still = and i1 %resumed, %is.first
  br i1 %waits.still, label %wait, label %begin
begin:
  %c.at = getelementptr i64, ptr %call, i64 6
  %least = load i64, ptr %c.at
  %w.at = getelementptr i64, ptr %call, i64 7
  %weight = load i64, ptr %w.at
  %single = icmp ult i64 %weight, %from
  br i1 %single, label %run, label %publish
run:
  %entry.at = load ptr, ptr %call
  %b.at = getelementptr i64, ptr %call, i64 1
  %bindings = load ptr, ptr %b.at
  %p.at = getelementptr i64, ptr %call, i64 2
  %parameters = load ptr, ptr %p.at
  %g.at = getelementptr i64, ptr %call, i64 3
  %grid = load ptr, ptr %g.at
  call void %entry.at(ptr %bindings, ptr %parameters, ptr %grid, i64 0, i64 %last)
  br label %step
publish:
  store i64 %weight, ptr %weight.at
  store atomic ptr %call, ptr %call.at monotonic, align 8
  store atomic i64 %last, ptr %last.at monotonic, align 8
  store atomic i64 %least, ptr %least.at monotonic, align 8
  store atomic i64 0, ptr %finished monotonic, align 8
  %old = load atomic i64, ptr %team monotonic, align 8
  %number = add i64 %old, 4294967296
  %ticket = or i64 %number, %last
  store atomic i64 %ticket, ptr %team release, align 8
  br label %work
work:
  %worked = call i1 @treadle.take(ptr %team)
  br i1 %worked, label %work, label %wait
wait:
  %turn = phi i64 [ 0, %one ], [ 0, %work ], [ %turns, %pause ]
  %so.far = load atomic i64, ptr %finished acquire, align 8
  %all = icmp uge i64 %so.far, %last
  br i1 %all, label %ended, label %later
later:
  %tired = icmp uge i64 %turn, %spins
  br i1 %tired, label %leave, label %pause
pause:
  PAUSE
  %turns = add i64 %turn, 1
  br label %wait
ended:
  store i64 0, ptr %waits.at
  br label %step
step:
  %after = add i64 %i, 1
  br label %next
leave:
  store i64 1, ptr %waits.at
  ret i64 %i
done:
  ret i64 %count
}

define void @treadle.help(ptr %team, i64 %spins) {
entry:
  %open.at = getelementptr i64, ptr %team, i64 24
  br label %work
work:
  %turn = phi i64 [ 0, %entry ], [ 0, %work ], [ %turns, %pause ]
  %worked = call i1 @treadle.take(ptr %team)
  br i1 %worked, label %work, label %idle
idle:
  %open = load atomic i64, ptr %open.at monotonic, align 8
  %closed = icmp eq i64 %open, 0
  %tired = icmp uge i64 %turn, %spins
  %leaves = or i1 %closed, %tired
  br i1 %leaves, label %done, label %pause
pause:
  PAUSE
  %turns = add i64 %turn, 1
  br label %work
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
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

# What a thread does while it spins, by the processor: other threads of its core are faster then.
_PAUSES = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
_PAUSES["arm64"] = _PAUSES["aarch64"]

# Where the loops are kept between processes: where all kernels are kept, too, LLVM's code generator
# then need not be loaded, which takes 40 MB and 0.1 s.
store: list[CodeStore | None] = [None]
_NAMES = ("share", "replay", "lead", "help", "copy", "zero")


@once
def _loaded() -> Loaded:
    host, kept = compiler(), store[0]
    pause, declared = _PAUSES.get(host.triple.partition("-")[0], ("", ""))
    source = _SOURCE.replace("PAUSE", pause) + declared + "\n"
    symbols = tuple(f"treadle.{name}" for name in _NAMES)
    depends_on = ("the loops of the cpu", source, *host.identity())
    image = None if kept is None else kept.load(*depends_on)
    if image is not None:
        with contextlib.suppress(CompileError):
            return host.load_object(image, symbols)
    image = host.compile_object(source, "the driver's loops")
    if kept is not None:
        kept.save(image, *depends_on)
    return host.load_object(image, symbols)


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


@once
def lead() -> ctypes._CFuncPtr:  # type: ignore[name-defined]
    """Run calls one after the other, with a team's help.

    Takes (calls, start, count, team, spins). Returns the count, or the number of a call whose
    blocks others did not finish within so many iterations: it is to be called again with that
    number in place of `start`.
    """
    words = ctypes.c_int64
    prototype = ctypes.CFUNCTYPE(
        words, ctypes.c_void_p, words, words, ctypes.c_void_p, words
    )  # fmt: skip
    return prototype(_loaded().addresses["treadle.lead"])


@once
def help() -> ctypes._CFuncPtr:  # type: ignore[name-defined]
    """Run blocks of what a team's leader publishes, until it is closed, or nothing was published
    for a while. Takes (team, spins)."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    return prototype(_loaded().addresses["treadle.help"])
