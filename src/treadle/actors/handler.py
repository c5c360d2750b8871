"""A handler's kernel: a loop over messages that calls the handler, in the kernel language.

The text is made here; the front end lowers it as it lowers any kernel, with the handler as a device
function. A handler's asserts are made in every launch, unlike those of kernels.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from treadle import lang
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, DtypeError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.signature import ArrayArgument, ScalarArgument, Signature
from treadle.ir.traverse import Node, rewrite_kernel, walk
from treadle.lang.decorators import Function, Kernel, as_function
from treadle.lang.lower import lower_in_full
from treadle.lang.source import Source, function_from_text, resolve_annotations, source_of
from treadle.lang.types import ArrayType, annotation_of, declared_type
from treadle.runtime.arguments import argument_of, bind
from treadle.runtime.convert import Packed, describe

MESSAGES, REPLIES, DONE, FIRST, LAST = (
    f"treadle_{each}" for each in ("messages", "replies", "done", "first", "last")
)
_HEAD = "def {name}({parameters}):\n"
_SERIAL = "    for treadle_k in range(treadle_first, treadle_last):\n"
_PARALLEL = """\
    treadle_k = treadle_first + treadle_lang.grid(1)
    if treadle_k < treadle_last:
"""
_VALUE = "        treadle_reply = treadle_handler(treadle_messages[treadle_k]{states})\n"
_NOTHING = "        treadle_handler(treadle_messages[treadle_k]{states})\n"
_STORE = "        treadle_replies[treadle_k] = treadle_reply\n"
_COUNT = "        treadle_done[0] = treadle_k + 1\n"
_STORE_OF_FIRST = """\
        treadle_t = treadle_lang.thread_idx
        treadle_b = treadle_lang.block_idx
        if treadle_t.x + treadle_t.y + treadle_t.z + treadle_b.x == 0:
            treadle_replies[treadle_k] = treadle_reply
"""
_BARRIER = "        treadle_lang.sync_threads()\n"
# Threads copy messages into memory that they share, and replies out of it, many at once: a read of
# the device's memory takes longer than most handlers, and the first thread waits for none.
_IN_TURN = """\
def {name}({parameters}):
    treadle_lane = treadle_lang.thread_idx.x
    treadle_taken = treadle_lang.shared(treadle_lanes, Message)
    {given}
    for treadle_start in range(treadle_first, treadle_last, treadle_lanes):
        treadle_count = treadle_last - treadle_start
        if treadle_count > treadle_lanes:
            treadle_count = treadle_lanes
        if treadle_lane < treadle_count:
            treadle_taken[treadle_lane] = treadle_messages[treadle_start + treadle_lane]
        treadle_lang.sync_threads()
        if treadle_lane == 0:
            for treadle_k in range(treadle_count):
                {call}treadle_handler(treadle_taken[treadle_k]{states})
        treadle_lang.sync_threads()
        {store}
    if treadle_lane == 0:
        treadle_done[0] = treadle_last
"""
_GIVEN = "treadle_given = treadle_lang.shared(treadle_lanes, Reply)"
_STORE_OF_EACH = """\
        if treadle_lane < treadle_count:
            treadle_replies[treadle_start + treadle_lane] = treadle_given[treadle_lane]
"""
Value = t.Scalar | t.Vector | t.Struct
# What is not the same for one thread among several of a block.
_OF_A_BLOCK = (n.Builtin, n.Barrier, n.Subgroup, n.Print, n.Assert)
# What depends on the threads that run a handler, or on their order.
_AMONG_THREADS = (n.Builtin, n.Barrier, n.Fence, n.Atomic, n.Subgroup, n.Print, n.Assert)


@dataclass(frozen=True)
class Handler:
    """What a handler's definition says: its message, its state, its reply."""

    function: FunctionType
    message: Value
    states: tuple[str, ...]  # the names of the parameters after the message
    annotations: dict[str, Any]
    reply: Value | type | None  # None: no reply; `Inferred`: what its returns give
    options: KernelOptions
    together: bool  # whether several threads run it for one message
    assigned: dict[str, Span]  # where elements or fields of state are assigned
    finite: bool = False  # whether a reply that is not finite is a failure

    @property
    def name(self) -> str:
        """The handler's name."""
        return self.function.__name__


class Inferred:
    """The reply's type where the handler has no annotation for it."""


def read_handler(
    candidate: Any, block: Dim3, several_blocks: bool, fastmath: bool, names: dict[str, Any]
) -> Handler:
    """The handler that a function defines. CompileError if it is not one."""
    function = as_function(candidate)
    source = source_of(function)
    arguments = source.tree.args
    nodes = arguments.posonlyargs + arguments.args
    if not nodes or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        raise _refused(
            source, f"{function.__name__} is an actor's handler: its parameters are the message, "
            "and then its state, each with a name"
        )  # fmt: skip
    if arguments.defaults:
        raise _refused(source, "an actor's state is given to spawn, not by default values")
    annotations = resolve_annotations(function, names)
    states = tuple(node.arg for node in nodes[1:])
    for reserved in ("device", "mode"):
        if reserved in states:
            raise _refused(source, f"state is given to spawn by name, which has its own {reserved}")
    message = _value(annotations.get(nodes[0].arg), source, f"the message {nodes[0].arg}")
    reply: Value | type | None = Inferred
    if "return" in function.__annotations__:
        declared = annotations.get("return")
        reply = None if declared is None else _value(declared, source, "the reply")
    kept = {name: annotations[name] for name in states if name in annotations}
    options = KernelOptions(block, True, fastmath)
    together = block.count > 1 or several_blocks
    assigned = _assigned(source, states)
    return Handler(function, message, states, kept, reply, options, together, assigned)


def _assigned(source: Source, states: tuple[str, ...]) -> dict[str, Span]:
    """The states that a handler assigns elements or components of, and where. CompileError where it
    gives one of them another value, which the next message would not see."""
    found: dict[str, Span] = {}
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            continue
        if not isinstance(node.ctx, ast.Store):
            continue
        base: ast.expr = node
        while isinstance(base, ast.Attribute | ast.Subscript):
            base = base.value
        if not isinstance(base, ast.Name) or base.id not in states:
            continue
        span = source.span(node)
        if base is node:
            raise CompileError(lost_assignment(base.id), span, source.text)
        found.setdefault(base.id, span)
    return found


def lost_assignment(name: str) -> str:
    """Why a handler may assign the elements of arrays alone."""
    return (
        f"what is assigned to state {name} would be lost after the message: keep it in an array, "
        f"as in {name}: td.Array[td.f32], and assign {name}[0]"
    )


def _refused(source: Source, message: str) -> CompileError:
    return CompileError(message, source.span(source.tree), source.text)


def _value(annotation: Any, source: Source, what: str) -> Value:
    """The type of a message or reply."""
    try:
        found = None if annotation is None else declared_type(annotation)
    except DtypeError as error:
        raise _refused(source, f"{what}: {error}") from None
    if not isinstance(found, (t.Scalar, t.Vector, t.Struct)):
        raise _refused(
            source, f"{what} of an actor is a dtype, a vector or a td.struct: annotate it, as in "
            f"{source.tree.name}(message: td.f32)"
        )  # fmt: skip
    return found


class HandlerKernel(Kernel):
    """The loop around a handler as a kernel."""

    has_loops = True  # whether the handler has loops, once it was lowered
    is_independent = False  # and whether it uses nothing that threads have in common,
    is_for_any_thread = False  # or at least does the same in a block of any size

    def __init__(self, handler: Handler, reply: Value | None, *, stores: bool = True) -> None:
        self._stores = stores
        self._source = source_of(handler.function)
        text, names = self._text(handler, reply)
        super().__init__(function_from_text(text, None, names), handler.options, None)
        self.parameters = tuple(
            replace(each, label=f"state {each.name}") if each.name in handler.states else each
            for each in self.parameters
        )

    def _text(self, handler: Handler, reply: Value | None) -> tuple[str, dict[str, Any]]:
        """The kernel's text, and what its names stand for."""
        return _text_of(handler, reply, self._stores)

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR, with asserts that are always made."""
        lowered = super().lower(signature)
        bodies = (lowered.kernel.body, *(each.body for each in lowered.kernel.functions))
        nodes = (node for body in bodies for node in walk(body))
        loops = sum(isinstance(node, (n.For, n.While)) for node in nodes)
        self.has_loops = loops > 1  # one is the kernel's own
        self.is_independent = not any(
            each.memories or any(isinstance(node, _AMONG_THREADS) for node in walk(each.body))
            for each in lowered.kernel.functions
        )
        self.is_for_any_thread = not any(
            isinstance(node, _OF_A_BLOCK)
            for each in lowered.kernel.functions
            for node in walk(each.body)
        )
        return replace(lowered, kernel=rewrite_kernel(lowered.kernel, self._always))

    def _always(self, node: Node) -> Node:
        """An assert that is always made; that of the reply is the user's function's."""
        if not isinstance(node, n.Assert):
            return node
        is_own = node.span.file == self.source_code.file
        span = self._source.span(self._source.tree) if is_own else node.span
        return replace(node, always=True, span=span)


class ParallelKernel(HandlerKernel):
    """A thread for each message, for handlers to which the order of messages makes no difference:
    they write no state."""

    def _text(self, handler: Handler, reply: Value | None) -> tuple[str, dict[str, Any]]:
        text, names = _text_of(handler, reply, self._stores)
        return text.replace(_SERIAL, _PARALLEL).replace(_COUNT, ""), names


class InTurnKernel(HandlerKernel):
    """A block whose first thread handles the messages one after the other, while all of them copy
    messages and replies."""

    def __init__(self, handler: Handler, reply: Value | None, lanes: int) -> None:
        self._lanes = lanes
        super().__init__(handler, reply)

    def _text(self, handler: Handler, reply: Value | None) -> tuple[str, dict[str, Any]]:
        names, parameters, states = _names_of(handler, reply, stores=True)
        names |= {"treadle_lanes": self._lanes, "Message": annotation_of(handler.message)}
        given = call = store = "pass"
        if reply is None:
            call = ""
        else:
            names["Reply"] = annotation_of(reply)
            given, call, store = _GIVEN, "treadle_given[treadle_k] = ", _STORE_OF_EACH.strip()
        text = _IN_TURN.format(
            name=handler.name, parameters=parameters, given=given, call=call, states=states,
            store=store,
        )  # fmt: skip
        return text, names


def checks(handler: Handler, reply: Value | None) -> list[str]:
    """Lines that check a reply."""
    if not handler.finite or reply is None:
        return []
    parts = [""]
    if isinstance(reply, t.Vector):
        parts = [f".{part}" for part in t.COMPONENTS[: reply.count]]
    tests = (f"treadle_lang.isfinite(treadle_reply{part})" for part in parts)
    return [f"assert {' and '.join(tests)}, 'a finite reply'"]


def _text_of(handler: Handler, reply: Value | None, stores: bool) -> tuple[str, dict[str, Any]]:
    """The loop's text, and what its names stand for."""
    names, parameters, states = _names_of(handler, reply, stores)
    parts = [_HEAD, _SERIAL, _VALUE if reply is not None else _NOTHING]
    parts += [f"        {line}\n" for line in checks(handler, reply)]
    if stores and reply is not None:
        parts.append(_STORE_OF_FIRST if handler.together else _STORE)
    parts.append(_BARRIER if handler.together else _COUNT)
    form = "".join(parts)
    return form.format(name=handler.name, parameters=parameters, states=states), names


def _names_of(
    handler: Handler, reply: Value | None, stores: bool
) -> tuple[dict[str, Any], str, str]:
    """What the names of a loop's text stand for; its parameters, and the handler's arguments after
    the message."""
    names: dict[str, Any] = {
        "treadle_handler": Function(handler.function),
        "treadle_lang": lang,
        "Messages": ArrayType(annotation_of(handler.message)),
        "Index": annotation_of(t.I32), "Done": ArrayType(annotation_of(t.I32)),
    }  # fmt: skip
    parameters = [f"{MESSAGES}: Messages"]
    if stores and reply is not None:
        names["Replies"] = ArrayType(annotation_of(reply))
        parameters.append(f"{REPLIES}: Replies")
    parameters += [f"{DONE}: Done", f"{FIRST}: Index", f"{LAST}: Index"]
    parameters += state_parameters(handler, names)
    states = "".join(f", {name}" for name in handler.states)
    return names, ", ".join(parameters), states


def state_parameters(handler: Handler, names: dict[str, Any]) -> list[str]:
    """The parameters of the state, whose annotations are added to the names."""
    parameters = []
    for at, state in enumerate(handler.states):
        if state in handler.annotations:
            names[f"State{at}"] = handler.annotations[state]
            parameters.append(f"{state}: State{at}")
        else:
            parameters.append(state)
    return parameters


def _described(state: Any) -> tuple[Any, Any]:
    return (state.key, state.data) if isinstance(state, Packed) else describe(state)


def _is_tuple(type: t.Type) -> bool:
    """Whether a function that returns a tuple has this result."""
    names = tuple(field.name for field in type.fields) if isinstance(type, t.Struct) else ()
    return bool(names) and names == tuple(f"item{at}" for at in range(len(names)))


def reply_of(handler: Handler, states: Sequence[Any]) -> Value | None:
    """The type of a handler's reply for these states, which a launch would take. CompileError if
    replies are to be finite, and this is not a float or a vector of floats."""
    found = _reply_of(handler, states)
    scalar = found.element if isinstance(found, t.Vector) else found
    if handler.finite and not (isinstance(scalar, t.Scalar) and scalar.is_float):
        raise _refused(
            source_of(handler.function),
            f"finite=True checks replies that are floats or vectors of floats, and {handler.name} "
            f"replies with {'nothing' if found is None else found}",
        )
    return found


def _reply_of(handler: Handler, states: Sequence[Any]) -> Value | None:
    if handler.reply is not Inferred:
        return handler.reply  # type: ignore[return-value]
    probe = HandlerKernel(handler, None, stores=False)
    index = ScalarArgument(t.I32)
    known = (ArrayArgument(handler.message, 1), ArrayArgument(t.I32, 1), index, index)
    given = (
        argument_of(bind(probe, len(known) + at, *_described(state)))
        for at, state in enumerate(states)
    )
    signature = Signature((*known, *given))
    _, lowering = lower_in_full(probe.definition, probe.source_code, signature, handler.options)
    found = next(
        types.get("return")
        for (function, _), types in lowering.types.items()
        if function is handler.function
    )
    if found is None or isinstance(found, t.Void):
        return None
    if not isinstance(found, (t.Scalar, t.Vector, t.Struct)) or _is_tuple(found):
        raise _refused(
            source_of(handler.function),
            f"the reply of {handler.name} is several values: return a number, a vector or a "
            "td.struct",
        )
    return found
