"""The machine code that works on an actor's rings, in LLVM assembly: its parts put together, for a
processor.

`@word(NAME)` is the address of a word of the control block `%c`; other names in capitals are
constants of `ring_code`, or what a processor or a system has for them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from treadle.actors import ring_clock, ring_handling, ring_sending, ring_waiting

_DECLARED = """
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
_SOURCE = "".join(
    (ring_clock.TEXT, ring_sending.TEXT, ring_handling.TEXT, ring_waiting.TEXT, _DECLARED)
)

# By the processor: what a thread does while it polls, and a clock that all of its cores share.
_PAUSES = {
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
_CLOCKS = {
    "x86_64": ("call i64 @llvm.readcyclecounter()", "declare i64 @llvm.readcyclecounter()"),
    "aarch64": ('call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()', ""),
}
# The system's time, by its own function, whose address is ADDRESS.
_WALL = """\
%time = alloca [2 x i64], align 8
  %failed = call i32 inttoptr (i64 ADDRESS to ptr)(i32 0, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %ns.at = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.at, align 8
  %whole = mul i64 %seconds, 1000000
  %part = sdiv i64 %ns, 1000
  %us = add i64 %whole, %part"""
# Of Windows: steps of 100 ns since 1601.
_WALL_OF_WINDOWS = """\
%time = alloca i64, align 8
  call void inttoptr (i64 ADDRESS to ptr)(ptr %time)
  %steps = load i64, ptr %time, align 8
  %since = udiv i64 %steps, 10
  %us = sub i64 %since, 11644473600000000"""

# Ticks of that clock, some 20 µs, for which threads that wait are not notified while there is work.
_DELAYS = {"x86_64": "50000", "aarch64": "1000"}
_SLICE = 100  # such delays are a turn
for _each in (_PAUSES, _CLOCKS):
    _each["arm64"] = _each["aarch64"]
_DELAYS["arm64"] = _DELAYS["aarch64"]


def source_for(processor: str, words: Mapping[str, int], yields: int, wall: int) -> str:
    """The module for a processor, with the words of the control block. Addresses of the system's
    functions: `yields` gives up the processor (0 if there is none), `wall` says what time it is."""
    pause, declared = _PAUSES.get(processor, ("", ""))
    clock, clock_declared = _CLOCKS.get(processor, ("add i64 0, 0", ""))
    text = re.sub(
        r"@word\((\w+)\)",
        lambda found: f"getelementptr i64, ptr %c, i64 {words[found[1]]}",
        _SOURCE,
    )
    text = re.sub(r"\b[A-Z_]{4,}\b", lambda found: str(words.get(found[0], found[0])), text)
    text = text.replace("PAUSE", pause).replace("CLOCK", clock)
    wall_code = _WALL_OF_WINDOWS if sys.platform == "win32" else _WALL
    text = text.replace("  WALL\n", f"  {wall_code.replace('ADDRESS', str(wall))}\n")
    given_up = f"%ignored = call i32 inttoptr (i64 {yields} to ptr)()" if yields else ""
    text = text.replace("YIELD", given_up)
    delay = _DELAYS.get(processor, "0")
    text = text.replace("DELAY", delay).replace("SLICE", str(_SLICE * int(delay)))
    shown = "define i64 @treadle.clock() {\n  %t = call i64 @now()\n  ret i64 %t\n}\n"
    return f"{text}{shown}{declared}\n{clock_declared}\n"
