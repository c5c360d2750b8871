"""The kernel of a persistent actor: it takes messages out of the rings by itself, and stays.

The first thread of the block polls. Where messages wait, it says to the others how many they are,
and where. What they do together depends on the form:

    SINGLE     one thread is all there is: handlers that assert, print, or use what threads have in
              common. A handler that fails ends the kernel; its message is then still in the ring
    IN_TURN   the threads copy messages and replies, many at once; the first one handles them
    EACH      a thread for each message: handlers to which their order makes no difference
    TOGETHER  all threads handle one message
    BLOCKS    all threads of several blocks handle one message. The first block polls, copies the
              message to the device and rings; the others wait for that. It begins once all are
              there, which other kernels may delay, and goes on to the next when all are done

A message that is asked, or whose reply is dropped, takes a shorter way where it is small: it is in
the cell, too, each word of which has the message's number in its upper half. So one poll shows that
it is there and reads it, with no order between loads; a reply of 32 bits goes back in one word with
its flag, with no fence. The first thread handles it at once.

The words of the control block are those of `ring_code`. It is read through `bell`, too, whose loads
acquire: what senders wrote before they rang is there.
"""

from __future__ import annotations

import enum
import re
from dataclasses import replace
from typing import Any

from treadle import lang
from treadle.actors import ring_code
from treadle.actors.handler import Handler, HandlerKernel, Value, checks, state_parameters
from treadle.actors.mailbox import CELL_WORDS
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import LoweredKernel
from treadle.ir.signature import Signature
from treadle.ir.traverse import Node, rewrite_block
from treadle.lang import builtins
from treadle.lang.decorators import Function
from treadle.lang.types import ArrayType, annotation_of

# Names of the kernel's own begin with this.
_OWN = "treadle_"
_SHARED_BYTES = 16 << 10  # for messages and replies of a block
_MOST_IN_TURN, _MOST_EACH, _MOST_TOGETHER = 128, 256, 32  # messages at a time
_WORDS = ("i32", "u32", "f32")


class Form(enum.Enum):
    """What the threads of a block do."""

    SINGLE = "single"
    IN_TURN = "in turn"
    EACH = "each"
    TOGETHER = "together"
    BLOCKS = "blocks"


# `@` stands for the prefix of the kernel's own names. The kernel ends when the host asks for
# attention, after `life` cycles, and after `quiet` cycles without a message. Between two polls it
# pauses for an eighth of the time since the last message, and for `gap` cycles at most. Lines that
# begin with `*` are for several blocks.
_TEXT = """\
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
    @plan = @lang.shared(4, @i32)
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
                @now = @cycles()
                @idle = @now - @last
                @polls = @attention == 0 and @now - @began <= @life
                @hit = @polls and {in_cell}
                @plan[3] = 0
{at_once}
*                if not @all_here:
*                    @all_here = @arrivals_bell[@slot] >= @blocks
                if @polls and not @hit and @tail > @head{and_all_here}:
                    @count = {most}
                    if @tail - @head < @i64(@count):
                        @count = @i32(@tail - @head)
                    @room = @mask + 1 - @i32(@out - @out_head)
                    if @room < @count:
                        @out_head = @control[{OUT_HEAD}]
                        @room = @mask + 1 - @i32(@out - @out_head)
                    if @room == 0 and @entries[2 * (@i32(@head) & @mask)] != {TO_OUTBOX}:
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
*            @fence()
*            @turn[0] = @rung
            @plan[0] = @count
            @plan[1] = @i32(@head) & @mask
            @plan[2] = @i32(@out) & @mask
        @lang.sync_threads()
        @count = @plan[0]
        if @count > 0:
            @place = (@plan[1] + @lane) & @mask
            @tag = 0
            @sent = @i64(0)
            if @lane < @count{and_leads}:
                if @plan[3] == 0:
                    @tag = @i32(@entries[2 * @place])
                    @sent = @entries[2 * @place + 1]
                    @tags[@lane] = @tag
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
                    {to_outbox}
                elif @tag >= {ASKED}:
                    {to_answer}
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
                @head += @i64(@count)
                @done += @i64(@count)
                @control[{PROCESSED}] = @done
                @control[{HEAD}] = @head
    if @lane == 0{and_leads}:
*        @arrivals[1 - @slot] = 0
        @control[{HEARTBEAT}] = @beat
        @control[{PARKED}] = @i64(1)
        @sequential_fence()
"""
_SINGLE = """\
            {call}(@inbox[@place]{states})
{checks}"""
_EACH = """\
            if @lane < @count:
                {call}(@inbox[@place]{states})
{checks}"""
_IN_TURN = """\
            if @lane < @count:
                @messages[@lane] = @inbox[@place]
            @lang.sync_threads()
            if @lane == 0:
                for @k in range(@count):
                    {call}(@messages[@k]{states})
{checks}{store}            @lang.sync_threads()
"""
_TOGETHER = """\
            if @lane < @count and @plan[3] == 0:
                @messages[@lane] = @inbox[@place]
            @lang.sync_threads()
            for @k in range(@count):
                {call}(@messages[@k]{states})
{checks}                if @lane == 0:
                    {store_or_pass}
                @lang.sync_threads()
"""
_BLOCKS = """\
            if @lane == 0:
                @messages[0] = @relay[0]
            @lang.sync_threads()
            {call}(@messages[0]{states})
{checks}            @lang.sync_threads()
"""
# A message in the cell: handled by the first thread, or given to all.
_AT_ONCE = """\
                if @hit:
                    {call}({from_cell}{states})
{checks}                    @head += 1
                    @done += 1
                    @control[{PROCESSED}] = @done
                    @control[{HEAD}] = @head
                    if @tag_in_cell >= {ASKED}:
                        {answer}
"""
_FOR_ALL = """\
                if @hit:
                    @messages[0] = {from_cell}
                    @tags[0] = @tag_in_cell
                    @plan[3] = 1
                    @count = 1
                    @polls = False
"""
_INDENT = {
    Form.SINGLE: " " * 12, Form.EACH: " " * 16, Form.IN_TURN: " " * 20, Form.TOGETHER: " " * 16,
    Form.BLOCKS: " " * 12,
}  # fmt: skip
_HANDLES = {
    Form.SINGLE: _SINGLE, Form.EACH: _EACH, Form.IN_TURN: _IN_TURN, Form.TOGETHER: _TOGETHER,
    Form.BLOCKS: _BLOCKS,
}  # fmt: skip
_CYCLES, _FENCE, _SEQUENTIAL = builtins.cycles, builtins.fence_system, builtins.fence_sequential


def threads_of(form: Form, message: Value, reply: Value | None, block: Dim3 | None = None) -> int:
    """How many messages the threads of a block take at a time in a form; how many threads it has,
    where that is free."""
    if form in (Form.SINGLE, Form.BLOCKS):
        return 1
    if form is Form.EACH:
        return _MOST_EACH
    most = _MOST_IN_TURN if block is None else min(block.count, _MOST_TOGETHER)
    size = t.size_of(message) + (0 if reply is None else t.size_of(reply))
    while most > 1 and most * size > _SHARED_BYTES:
        most //= 2
    return most


def fits_cell(message: Value) -> bool:
    """Whether a message has the short way: a few words of 32 bits."""
    return _is_of_words(message) and t.size_of(message) <= 4 * CELL_WORDS


def _is_of_words(type: t.Type) -> bool:
    if isinstance(type, t.Struct):
        return all(_is_of_words(field.type) for field in type.fields)
    scalar = type.element if isinstance(type, t.Vector) else type
    return isinstance(scalar, t.Scalar) and scalar.name in _WORDS


def is_short(reply: Value | None) -> bool:
    """Whether a reply goes back in one word with its flag."""
    return isinstance(reply, t.Scalar) and reply.name in _WORDS


def _answer(reply: Value | None, value: str) -> tuple[str, str]:
    """The line that stores the reply to a message that was asked, and the flag after it."""
    flag = f"@i64({ring_code.ANSWERED})"
    if reply is None:
        return "pass", flag
    if is_short(reply):
        return "pass", f"(@i64(@lang.bitcast({value}, @u32)) << 32) | {ring_code.ANSWERED}"
    return f"@answers[@tag - {ring_code.ASKED}] = {value}", flag


def _from_words(message: Value, names: dict[str, Any], words: list[str]) -> str:
    """The message made of the words of the cell; the types that it names are added to the names."""
    given = iter(words)

    def made(type: t.Type) -> str:
        if isinstance(type, t.Scalar):
            word = f"@i32({next(given)})"
            if type == t.I32:
                return word
            return f"@lang.bitcast({word}, @{type.name})"
        parts: list[t.Type]
        if isinstance(type, t.Vector):
            parts = [type.element] * type.count
        else:
            assert isinstance(type, t.Struct)
            parts = [field.type for field in type.fields]
        name = f"Type{len(names)}"
        names[name] = annotation_of(type)
        return f"@{name}({', '.join(map(made, parts))})"

    return made(message)


def _indented(lines: list[str], by: str) -> str:
    return "".join(f"{by}{line}\n" for line in lines)


class ResidentKernel(HandlerKernel):
    """A handler's kernel that stays resident."""

    def __init__(self, handler: Handler, reply: Value | None, form: Form = Form.SINGLE) -> None:
        self.form = form
        super().__init__(handler, reply)

    def _text(self, handler: Handler, reply: Value | None) -> tuple[str, dict[str, Any]]:
        i32, i64 = annotation_of(t.I32), annotation_of(t.I64)
        names: dict[str, Any] = {
            "handler": Function(handler.function), "lang": lang, "i32": i32, "i64": i64,
            "u32": annotation_of(t.U32), "f32": annotation_of(t.F32),
            "cycles": _CYCLES, "fence": _FENCE, "sequential_fence": _SEQUENTIAL,
            "Words": ArrayType(i64), "Message": annotation_of(handler.message),
            "Messages": ArrayType(annotation_of(handler.message)),
        }  # fmt: skip
        words = ("control", "bell", "cell", "entries", "flags", "times")
        parameters = [f"@{each}: @Words" for each in words] + ["@inbox: @Messages"]
        if reply is not None:
            names["Reply"] = annotation_of(reply)
            names["Replies"] = ArrayType(names["Reply"])
            parameters += [f"@{each}: @Replies" for each in ("outbox", "answers")]
        if self.form is Form.BLOCKS:
            names["Counts"] = ArrayType(i32)
            parameters += ["@turn: @Words", "@turn_bell: @Words", "@arrivals: @Counts"]
            parameters += ["@arrivals_bell: @Counts", "@relay: @Messages"]
        numbers = ("life", "quiet", "life_number", "gap")
        parameters += [f"@{each}: @i64" for each in numbers]
        states: dict[str, Any] = {}
        parameters += state_parameters(handler, states)
        text = self._filled(handler, reply, ", ".join(parameters), names).replace("@", _OWN)
        return text, {**{_OWN + name: value for name, value in names.items()}, **states}

    def _filled(
        self, handler: Handler, reply: Value | None, parameters: str, names: dict[str, Any]
    ) -> str:
        form, several = self.form, self.form is Form.BLOCKS
        block = handler.options.block if form is Form.TOGETHER else None
        most = threads_of(form, handler.message, reply, block)
        memory = [f"@tags = @lang.shared({most}, @i32)"]
        if form not in (Form.SINGLE, Form.EACH):
            memory.append(f"@messages = @lang.shared({most}, @Message)")
        kept = form in (Form.IN_TURN, Form.TOGETHER) and reply is not None
        if kept:
            memory.append(f"@replies = @lang.shared({most}, @Reply)")
        call = "@handler" if reply is None else "@reply = @handler"
        states = "".join(f", {each}" for each in handler.states)
        store = "@replies[@k] = @reply"
        deep = _INDENT[form]
        handle = _HANDLES[form].format(
            call=call, states=states, checks=_indented(checks(handler, reply), deep),
            store=f"{deep}{store}\n" if kept else "", store_or_pass=store if kept else "pass",
        )  # fmt: skip
        value = "@replies[@lane]" if kept else "@reply"
        words = dict(ring_code.WORDS)
        answer, flag = _answer(reply, value)
        text = _for_blocks(_TEXT, several).format(
            name=handler.name, parameters=parameters, memory="\n    ".join(memory), most=most,
            and_leads=" and @leads" if several else "",
            and_all_here=" and @all_here" if several else "",
            handle=handle.rstrip("\n"), flag=flag, to_answer=answer,
            to_outbox="pass" if reply is None else f"@outbox[@at] = {value}",
            **self._short_way(handler, reply, names, call=call, states=states), **words,
        )  # fmt: skip
        if form is Form.SINGLE:
            text = _without_others(text)
        return text.replace("@place_of_thread", "0" if form is Form.SINGLE else _LANE)

    def _short_way(
        self, handler: Handler, reply: Value | None, names: dict[str, Any], call: str, states: str
    ) -> dict[str, str]:
        """The parts of the text for a message in the cell; without them where it is too large."""
        message = handler.message
        if not fits_cell(message) or self.form is Form.BLOCKS:
            return {"load_cell": "pass", "in_cell": "False", "at_once": ""}
        count = 1 + t.size_of(message) // 4
        cells = [f"@cell{at}" for at in range(count)]
        loads = [f"{cell} = @cell[{at}]" for at, cell in enumerate(cells)]
        loads += ["@tag_in_cell = @i32(@cell0)", "@number = @i32(@head + 1)"]
        hits = [f"@i32({cell} >> 32) == @number" for cell in cells]
        hits.append(f"@tag_in_cell != {ring_code.TO_OUTBOX}")
        answer, flag = _answer(reply, "@reply")
        lines = [f"@flags[@tag - {ring_code.ASKED}] = {flag}"]
        if answer != "pass":
            lines = [answer, "@fence()", *lines]
        form = _FOR_ALL if self.form is Form.TOGETHER else _AT_ONCE
        at_once = form.format(
            call=call, states=states, checks=_indented(checks(handler, reply), " " * 20),
            from_cell=_from_words(message, names, cells[1:]),
            answer="\n                        ".join(lines).replace("@tag ", "@tag_in_cell "),
            **ring_code.WORDS,
        )  # fmt: skip
        joined = "\n                ".join(loads)
        return {"load_cell": joined, "in_cell": " and ".join(hits), "at_once": at_once}

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR: its rings are volatile, and loads through the bell acquire."""
        lowered = super().lower(signature)
        kernel = lowered.kernel
        buffers = tuple(
            replace(
                each,
                volatile=each.name.startswith(_OWN),
                acquired=each.name.startswith(_OWN) and each.name.endswith("bell"),
            )
            for each in kernel.buffers
        )
        # Its own indices are right. Tests of them would keep loads from being under way together.
        body = rewrite_block(kernel.body, _unchecked)
        return replace(lowered, kernel=replace(kernel, buffers=buffers, body=body))


def _unchecked(node: Node) -> Node:
    if isinstance(node, n.Element) and node.memory.startswith(_OWN):
        return replace(node, checks=())
    return node


_LANE = (
    "@lang.thread_idx.x + @lang.block_dim.x * "
    "(@lang.thread_idx.y + @lang.block_dim.y * @lang.thread_idx.z)"
)


_BARRIERS = re.compile(r" +@lang\.sync_threads\(\)\n")


def _for_blocks(text: str, several: bool) -> str:
    """The text with its lines for several blocks, or without them."""
    lines = (line for line in text.splitlines(keepends=True) if several or line[0] != "*")
    return "".join(line.removeprefix("*") for line in lines)


def _without_others(text: str) -> str:
    """The text for one thread: without barriers."""
    return _BARRIERS.sub("", text)
