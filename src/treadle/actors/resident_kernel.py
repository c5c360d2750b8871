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

Kernels that give stamps have a clock of their own, see `docs/design/actors.md`.

The words of the control block are those of `ring_code`. It is read through `bell`, too, whose loads
acquire: what senders wrote before they rang is there.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import Any

from treadle import lang
from treadle.actors import resident_text, ring_code
from treadle.actors.handler import Handler, HandlerKernel, Value, checks, state_parameters
from treadle.actors.mailbox import CELL_WORDS
from treadle.actors.resident_text import Kind, fetch, indented, next_stamp
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


# How deep the call of the handler stands in a form, and where the message is fetched before it.
_DEPTHS = {
    Form.SINGLE: (12, 12), Form.EACH: (16, 16), Form.IN_TURN: (20, 16), Form.TOGETHER: (16, 16),
    Form.BLOCKS: (12, 12),
}  # fmt: skip
_HANDLES = {
    Form.SINGLE: resident_text.SINGLE, Form.EACH: resident_text.EACH,
    Form.IN_TURN: resident_text.IN_TURN, Form.TOGETHER: resident_text.TOGETHER,
    Form.BLOCKS: resident_text.BLOCKS,
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


class ResidentKernel(HandlerKernel):
    """A handler's kernel that stays resident. With `stamped` its replies get stamps; with `fed` it
    takes the replies of another actor out of their ring, too."""

    def __init__(
        self,
        handler: Handler,
        reply: Value | None,
        form: Form = Form.SINGLE,
        *,
        stamped: bool = False,
        fed: bool = False,
    ) -> None:
        self.form = form
        self.kind = Kind(form is Form.BLOCKS, stamped, fed)
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
        kind = self.kind
        if kind.stamped:
            parameters.append("@stamps: @Words")
        if kind.fed:
            parameters += [f"@{each}: @Words" for each in ("feed", "feed_bell", "feed_times")]
            parameters.append("@feed_messages: @Messages")
        if kind.fed and kind.stamped:
            parameters.append("@feed_stamps: @Words")
        numbers = ["life", "quiet", "life_number", "gap"]
        numbers += ["launched"] if kind.stamped else []
        parameters += [f"@{each}: @i64" for each in numbers]
        states: dict[str, Any] = {}
        parameters += state_parameters(handler, states)
        text = self._filled(handler, reply, ", ".join(parameters), names).replace("@", _OWN)
        return text, {**{_OWN + name: value for name, value in names.items()}, **states}

    def _filled(
        self, handler: Handler, reply: Value | None, parameters: str, names: dict[str, Any]
    ) -> str:
        form, kind = self.form, self.kind
        several = kind.several
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
        deep, fetched_at = _DEPTHS[form]
        fetching, fetched = fetch(fetched_at, fed=kind.fed)
        spaces = " " * deep
        handle = _HANDLES[form].format(
            call=call, states=states, checks=indented(checks(handler, reply), spaces),
            fetch=fetching, fetched=fetched,
            store=f"{spaces}{store}\n" if kept else "", store_or_pass=store if kept else "pass",
        )  # fmt: skip
        value = "@replies[@lane]" if kept else "@reply"
        words = dict(ring_code.WORDS)
        answer, flag = _answer(reply, value)
        text = kind.chosen(resident_text.KERNEL).format(
            name=handler.name, parameters=parameters, memory="\n    ".join(memory), most=most,
            and_leads=" and @leads" if several else "",
            and_all_here=" and @all_here" if several else "",
            and_own=" and not @is_fed" if kind.fed else "",
            TAG_OF_PIPED=ring_code.DROPPED if reply is None else ring_code.TO_OUTBOX,
            next_stamp=next_stamp(16, ring_code.COUNTER_BITS),
            handle=handle.rstrip("\n"), flag=flag, to_answer=answer,
            to_outbox="pass" if reply is None else f"@outbox[@at] = {value}",
            **self._short_way(handler, reply, names, call=call, states=states), **words,
        )  # fmt: skip
        return resident_text.for_threads(text, single=form is Form.SINGLE)

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
        if self.kind.stamped:
            loads += [f"@low = @cell[{count}]", f"@high = @cell[{count + 1}]"]
            loads.append("@cell_stamp = (@high & 0xffffffff) << 32 | (@low & 0xffffffff)")
            cells += ["@low", "@high"]
        hits = [f"@i32({cell} >> 32) == @number" for cell in cells]
        hits.append(f"@tag_in_cell != {ring_code.TO_OUTBOX}")
        answer, flag = _answer(reply, "@reply")
        stored = [] if answer == "pass" else [answer]
        if self.kind.stamped:
            stored.append(f"@stamps[@mask + 1 + @tag - {ring_code.ASKED}] = @stamp")
        lines = [*stored, "@fence()"] if stored else []
        lines.append(f"@flags[@tag - {ring_code.ASKED}] = {flag}")
        text = resident_text
        form = text.FOR_ALL if self.form is Form.TOGETHER else text.AT_ONCE
        at_once = self.kind.chosen(form).format(
            next_stamp=next_stamp(20, ring_code.COUNTER_BITS),
            call=call, states=states, checks=indented(checks(handler, reply), " " * 20),
            from_cell=_from_words(message, names, cells[1:count]),
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
