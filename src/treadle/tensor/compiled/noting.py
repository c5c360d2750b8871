"""Telling a watch which Python functions run on this thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType
from typing import Any

from treadle.tensor.compiled.places import IGNORED, whose
from treadle.tensor.compiled.watch import CALLS, CHECKS, Watch

_TOOLS = range(6)


@contextmanager
def noted(watch: Watch) -> Iterator[None]:
    """Report the functions that run within to a watch."""
    if sys.version_info >= (3, 12):
        tool = next((each for each in _TOOLS if sys.monitoring.get_tool(each) is None), None)
        if tool is not None:
            with _monitored(watch, tool):
                yield
            return
    with _profiled(watch):
        yield


@contextmanager
def _profiled(watch: Watch) -> Iterator[None]:
    """By the thread's profiling function; one that is there is called as well, a profiler of the
    standard library's rests."""
    before: Any = sys.getprofile()
    rests = hasattr(before, "disable") and hasattr(before, "enable")
    if rests:
        before.disable()

    def note(frame: Any, event: str, value: Any) -> None:
        if before is not None and not rests:
            before(frame, event, value)
        if event == "call":
            if whose(frame.f_code) != IGNORED:
                _tell(watch, watch.entered, frame)
            elif frame.f_code in CHECKS:
                _tell(watch, watch.checks, frame)
        elif event == "return" and value is not None:
            watch.left(frame, value)
        elif event == "c_call" and value.__name__ in CALLS:
            _tell(watch, watch.calls, frame, value, value.__self__, frame.f_lasti)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None if rests else before)
        if rests:
            before.enable()


def _tell(watch: Watch, note: Callable[..., None], frame: FrameType, *more: Any) -> None:
    """What is around a function may be anything: an object whose attributes raise, say."""
    try:
        note(frame, *more)
    except Exception as error:  # noqa: BLE001 - it is the user's, and is reported
        code = frame.f_code
        where = f"{code.co_filename}:{code.co_firstlineno}"
        watch.unreachable[f"what {code.co_name} ({where}) reads"] = (
            f"which could not be looked at ({type(error).__name__}: {error})"
        )


if sys.version_info >= (3, 12):

    @contextmanager
    def _monitored(watch: Watch, tool: int) -> Iterator[None]:
        """By the interpreter's monitoring, as one of its tools."""
        monitoring = sys.monitoring
        events = monitoring.events
        thread = threading.get_ident()

        def entered(code: CodeType, place: int) -> Any:
            if code in CHECKS:
                if threading.get_ident() == thread:
                    _tell(watch, watch.checks, sys._getframe(1))
                return None
            if whose(code) == IGNORED:
                return monitoring.DISABLE
            if threading.get_ident() == thread:
                _tell(watch, watch.entered, sys._getframe(1))
            return None

        def left(code: CodeType, place: int, value: Any) -> None:
            if value is not None and threading.get_ident() == thread:
                watch.left(sys._getframe(1), value)

        def calls(code: CodeType, place: int, function: Any, first: Any) -> Any:
            if whose(code) == IGNORED:
                return monitoring.DISABLE
            kind = type(function)
            if kind is not BuiltinFunctionType and kind is not MethodDescriptorType:
                return None
            if function.__name__ in CALLS and threading.get_ident() == thread:
                owner = first if kind is MethodDescriptorType else function.__self__
                frame = sys._getframe(1)
                _tell(watch, watch.calls, frame, function, owner, place, (first,))
            return None

        callbacks: dict[int, Any] = {
            events.PY_START: entered, events.PY_RESUME: entered, events.PY_RETURN: left,
            events.PY_YIELD: left, events.CALL: calls,
        }  # fmt: skip
        monitoring.use_tool_id(tool, "treadle")
        try:
            for event, callback in callbacks.items():
                monitoring.register_callback(tool, event, callback)
            monitoring.set_events(tool, sum(callbacks))
            monitoring.restart_events()
            yield
        finally:
            monitoring.set_events(tool, 0)
            for event in callbacks:  # they have the watch, and it all arrays
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
