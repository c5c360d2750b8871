"""The text of resident kernels, in the kernel language; `resident_kernel` fills it in.

`@` stands for the prefix of the kernel's own names. Lines that begin with marks are for kernels of
a kind: `*` with several blocks, `~` with stamps, `+` that take another actor's replies, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CLOCK_BITS = 12  # cycles of a microsecond are at most 2 to the power of it

# The kernel ends when the host asks for
# attention, after `life` cycles, and after `quiet` cycles without a message. Between two polls it
# pauses for an eighth of the time since the last message, and for `gap` cycles at most.
KERNEL = """\
def {name}({parameters}):
    @lane = @place_of_thread
    @mask = @i32(@control[{MASK}])
    @head = @control[{HEAD}]
    @out = @control[{OUT_TAIL}]
    @out_head = @control[{OUT_HEAD}]
    @done = @control[{PROCESSED}]
    @beat = @control[{HEARTBEAT}]
    @began = @cycles()
    @last = @began
    @plan = @lang.shared(5, @i32)
~    @stamp = @control[{LAST_STAMP}]
~    if @stamp < @launched:
~        @stamp = @launched
~    @seen = @stamp
~    @first_stamp = @lang.shared(1, @i64)
+    @feed_mask = @i32(@feed[{OUT_MASK}])
+    @feed_head = @feed[{OUT_HEAD}]
+    @feed_tail = @feed_head
+    @piped = @control[{PIPED}]
+    @is_fed = False
+    @was_hit = False
    {memory}
    @count = 1
*    @leads = @lang.block_idx.x == 0
*    @blocks = @lang.grid_dim.x
*    @slot = @i32(@life_number & 1)
*    @step = 1
*    @all_here = False
*    if @lane == 0:
*        @lang.atomic_add(@arrivals, @slot, 1)
    while @count > 0:
*        if @lane == 0 and not @leads:
*            @rung = @turn_bell[0]
*            while @rung < (@life_number << 32) + @i64(@step):
*                @rung = @turn_bell[0]
*            @plan[0] = 1
*            if @rung & 0x7fffffff == 0x7fffffff:
*                @plan[0] = 0
        if @lane == 0{and_leads}:
            @count = 0
            @polls = True
            while @polls:
                # Loads that wait for nothing come first: they are under way together.
                @attention = @control[{ATTENTION}]
                {load_cell}
                @tail = @bell[{TAIL}]
+                @feed_tail = @feed_bell[{OUT_TAIL}]
                @now = @cycles()
                @idle = @now - @last
                @polls = @attention == 0 and @now - @began <= @life
                @hit = @polls and {in_cell}
+                if @was_hit and @feed_tail > @feed_head:
+                    @hit = False
+                @was_hit = @hit
                @plan[3] = 0
{at_once}
*                if not @all_here:
*                    @all_here = @arrivals_bell[@slot] >= @blocks
                @waiting = @tail - @head
+                @is_fed = @feed_tail > @feed_head and (@waiting <= 0 or not @is_fed)
+                if @is_fed:
+                    @waiting = @feed_tail - @feed_head
                if @polls and not @hit and @waiting > 0{and_all_here}:
                    @count = {most}
                    if @waiting < @i64(@count):
                        @count = @i32(@waiting)
                    @room = @mask + 1 - @i32(@out - @out_head)
                    if @room < @count:
                        @out_head = @control[{OUT_HEAD}]
                        @room = @mask + 1 - @i32(@out - @out_head)
                    if @room == 0{and_own} and @entries[2 * (@i32(@head) & @mask)] != {TO_OUTBOX}:
                        @room = 1
                    if @room < @count:
                        @count = @room
                    @polls = @count == 0
                if @count > 0 or @hit:
                    @last = @now
                elif @polls:
                    @polls = @idle < @quiet
                    @beat += 1
                    @pause = @idle >> 3
                    if @pause > @gap:
                        @pause = @gap
                    if @pause > 1000 and @polls:
                        @control[{HEARTBEAT}] = @beat
                        while @cycles() - @now < @pause:
                            pass
*            @rung = (@life_number << 32) + 0x7fffffff
*            if @count > 0:
*                @rung = (@life_number << 32) + @i64(@step)
*                @relay[0] = @inbox[@i32(@head) & @mask]
*+                if @is_fed:
*+                    @relay[0] = @feed_messages[@i32(@feed_head) & @feed_mask]
*            @fence()
*            @turn[0] = @rung
+            if @plan[3] == 1:
+                @is_fed = False
~            if @count > 0:
~                if @plan[3] == 0:
~                    @seen = @control[{SENT_STAMP}]
~+                if @is_fed:
~+                    @seen = @feed_stamps[@i32(@feed_head + @i64(@count) - 1) & @feed_mask]
~                {next_stamp}
~                @first_stamp[0] = @stamp
~                @stamp += @i64(@count) - 1
~                @control[{LAST_STAMP}] = @stamp
            @plan[0] = @count
            @plan[1] = @i32(@head) & @mask
+            @plan[4] = 0
+            if @is_fed:
+                @plan[1] = @i32(@feed_head) & @feed_mask
+                @plan[4] = 1
+            @control[{SOURCE}] = @i64(@plan[4])
            @plan[2] = @i32(@out) & @mask
        @lang.sync_threads()
        @count = @plan[0]
        if @count > 0:
            @place = (@plan[1] + @lane) & @mask
+            @is_fed = @plan[4] == 1
+            if @is_fed:
+                @place = (@plan[1] + @lane) & @feed_mask
            @tag = 0
            @sent = @i64(0)
            if @lane < @count{and_leads}:
                if @plan[3] == 0{and_own}:
                    @tag = @i32(@entries[2 * @place])
                    @sent = @entries[2 * @place + 1]
                    @tags[@lane] = @tag
+                elif @is_fed:
+                    @tag = {TAG_OF_PIPED}
+                    @sent = @feed_times[@place]
+                    @tags[@lane] = @tag
                else:
                    @tag = @tags[0]
{handle}
*            @step += 1
*            if @lane == 0:
*                @fence()
*                @lang.atomic_add(@arrivals, @slot, 1)
*                if @leads:
*                    while @arrivals_bell[@slot] < @blocks * @step:
*                        pass
            if @lane < @count{and_leads}:
                if @tag == {TO_OUTBOX}:
                    @at = @plan[2]
                    for @k in range(@lane):
                        if @tags[@k] == {TO_OUTBOX}:
                            @at += 1
                    @at = @at & @mask
                    @times[@at] = @sent
~                    @stamps[@at] = @first_stamp[0] + @i64(@lane)
                    {to_outbox}
                elif @tag >= {ASKED}:
                    {to_answer}
~                    @stamps[@mask + 1 + @tag - {ASKED}] = @first_stamp[0] + @i64(@lane)
                @fence()
                if @tag >= {ASKED}:
                    @flags[@tag - {ASKED}] = {flag}
            @lang.sync_threads()
            if @lane == 0{and_leads}:
                @plain = 0
                for @k in range(@count):
                    if @tags[@k] == {TO_OUTBOX}:
                        @plain += 1
                if @count > 1:
                    @fence()
                if @plain > 0:
                    @out += @i64(@plain)
                    @control[{OUT_TAIL}] = @out
                @moved = @i64(@count)
                @done += @moved
                @control[{PROCESSED}] = @done
+                if @is_fed:
+                    @feed_head += @moved
+                    @piped += @moved
+                    @control[{PIPED}] = @piped
+                    @feed[{OUT_HEAD}] = @feed_head
+                    @moved = @i64(0)
                @head += @moved
                @control[{HEAD}] = @head
    if @lane == 0{and_leads}:
*        @arrivals[1 - @slot] = 0
        @control[{HEARTBEAT}] = @beat
        @control[{PARKED}] = @i64(1)
        @sequential_fence()
"""
SINGLE = """\
{fetch}            {call}({fetched}{states})
{checks}"""
EACH = """\
            if @lane < @count:
{fetch}                {call}({fetched}{states})
{checks}"""
IN_TURN = """\
            if @lane < @count:
{fetch}                @messages[@lane] = {fetched}
            @lang.sync_threads()
            if @lane == 0:
                for @k in range(@count):
                    {call}(@messages[@k]{states})
{checks}{store}            @lang.sync_threads()
"""
TOGETHER = """\
            if @lane < @count and @plan[3] == 0:
{fetch}                @messages[@lane] = {fetched}
            @lang.sync_threads()
            for @k in range(@count):
                {call}(@messages[@k]{states})
{checks}                if @lane == 0:
                    {store_or_pass}
                @lang.sync_threads()
"""
BLOCKS = """\
            if @lane == 0:
                @messages[0] = @relay[0]
            @lang.sync_threads()
            {call}(@messages[0]{states})
{checks}            @lang.sync_threads()
"""
# A message in the cell: handled by the first thread, or given to all.
AT_ONCE = """\
                if @hit:
+                    @control[{SOURCE}] = @i64(0)
                    {call}({from_cell}{states})
~                    @seen = @cell_stamp
~                    {next_stamp}
~                    @control[{LAST_STAMP}] = @stamp
{checks}                    @head += 1
                    @done += 1
                    @control[{PROCESSED}] = @done
                    @control[{HEAD}] = @head
                    if @tag_in_cell >= {ASKED}:
                        {answer}
"""
FOR_ALL = """\
                if @hit:
                    @messages[0] = {from_cell}
                    @tags[0] = @tag_in_cell
                    @plan[3] = 1
~                    @seen = @cell_stamp
                    @count = 1
                    @polls = False
"""
# The next stamp: later than the last one and than what was seen, and not before the time of the
# launch and what has passed since, by a clock not faster than any card's.
_NEXT_STAMP = """\
@stamp += 1
if @seen >= @stamp:
    @stamp = @seen + 1
@time = @launched + ((@now - @began) >> {CLOCK_BITS} << {COUNTER_BITS})
if @time > @stamp:
    @stamp = @time
"""
# A message from the place that it has in either ring.
_FETCH = """\
if @is_fed:
    @message = @feed_messages[@place]
else:
    @message = @inbox[@place]
"""


@dataclass(frozen=True)
class Kind:
    """What a resident kernel is beside its form."""

    several: bool = False  # blocks
    stamped: bool = False  # replies
    fed: bool = False  # by another actor, whose replies are its messages

    def chosen(self, text: str) -> str:
        """The text with the lines of this kind."""
        marks = {"*": self.several, "~": self.stamped, "+": self.fed}
        lines = []
        for line in text.splitlines(keepends=True):
            body = line.lstrip("*~+")
            if all(marks[mark] for mark in line[: len(line) - len(body)]):
                lines.append(body)
        return "".join(lines)


def next_stamp(deep: int, counter_bits: int) -> str:
    """The lines that set `stamp` to the next one, for a place that is so deep; the first one's
    spaces are there."""
    text = _NEXT_STAMP.format(CLOCK_BITS=CLOCK_BITS, COUNTER_BITS=counter_bits)
    return indented(text.splitlines(), " " * deep).strip()


def fetch(deep: int, *, fed: bool) -> tuple[str, str]:
    """The lines that fetch a message from its ring, and what stands for it after them."""
    if not fed:
        return "", "@inbox[@place]"
    return indented(_FETCH.splitlines(), " " * deep), "@message"


def indented(lines: list[str], by: str) -> str:
    """Lines of a text, each after so many spaces."""
    return "".join(f"{by}{line}\n" for line in lines)


_BARRIERS = re.compile(r" +@lang\.sync_threads\(\)\n")
_LANE = (
    "@lang.thread_idx.x + @lang.block_dim.x * "
    "(@lang.thread_idx.y + @lang.block_dim.y * @lang.thread_idx.z)"
)


def for_threads(text: str, *, single: bool) -> str:
    """The text for one thread, without barriers; or for several."""
    if single:
        text = _BARRIERS.sub("", text)
    return text.replace("@place_of_thread", "0" if single else _LANE)
