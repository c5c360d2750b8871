"""Events of this thread's function calls, reported to `Dependencies`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType
from typing import Any

from treadle.core.observation import observed, state
from treadle.tensor.compiled.code_origin import IGNORED, is_package_file, origin_of
from treadle.tensor.compiled.dependencies import CALLS, CHECKS, Dependencies

_TOOLS = range(6)


@contextmanager
def report_calls(dependencies: Dependencies) -> Iterator[None]:
    """Report the functions that run within this context."""
    if sys.version_info >= (3, 12):
        tool = next((each for each in _TOOLS if sys.monitoring.get_tool(each) is None), None)
        if tool is not None:
            with _monitored(dependencies, tool):
                yield
            return
    with _profiled(dependencies):
        yield


@contextmanager
def _profiled(dependencies: Dependencies) -> Iterator[None]:
    """Report by the thread's profiling function. An existing one is called as well; a profiler of
    the standard library is paused."""
    before: Any = sys.getprofile()
    is_paused = hasattr(before, "disable") and hasattr(before, "enable")
    if is_paused:
        before.disable()

    def note(frame: Any, event: str, value: Any) -> None:
        if before is not None and not is_paused:
            before(frame, event, value)
        if event == "call":
            if origin_of(frame.f_code) != IGNORED:
                _notify(dependencies, dependencies.entered, frame)
            elif frame.f_code in CHECKS:
                _notify(dependencies, dependencies.checks, frame)
        elif event == "return" and value is not None:
            dependencies.left(frame, value)
        elif event == "c_call" and value.__name__ in CALLS:
            _notify(dependencies, dependencies.calls, frame, value, value.__self__, frame.f_lasti)

    sys.setprofile(note)
    try:
        with observed(replaceable=before is None or is_paused):
            yield
    finally:
        sys.setprofile(None if is_paused else before)
        if is_paused:
            before.enable()


def _notify(
    dependencies: Dependencies, note: Callable[..., None], frame: FrameType, *more: Any
) -> None:
    """Report an event. Reading the environment may run any code, such as properties that raise."""
    try:
        note(frame, *more)
    except Exception as error:  # noqa: BLE001 - it is an error of the user's code, and is reported
        code = frame.f_code
        where = f"{code.co_filename}:{code.co_firstlineno}"
        dependencies.unreachable[f"what {code.co_name} ({where}) reads"] = (
            f"which could not be looked at ({type(error).__name__}: {error})"
        )


if sys.version_info >= (3, 12):

    @contextmanager
    def _monitored(dependencies: Dependencies, tool: int) -> Iterator[None]:
        """Report by the interpreter's monitoring, as one of its tools."""
        monitoring = sys.monitoring
        events = monitoring.events
        thread = threading.get_ident()

        def entered(code: CodeType, place: int) -> Any:
            if code in CHECKS:
                if threading.get_ident() == thread:
                    _notify(dependencies, dependencies.checks, sys._getframe(1))
                return None
            if origin_of(code) == IGNORED:
                return monitoring.DISABLE
            if threading.get_ident() == thread:
                _notify(dependencies, dependencies.entered, sys._getframe(1))
            return None

        def left(code: CodeType, place: int, value: Any) -> Any:
            if state.paused and is_package_file(code.co_filename):
                return monitoring.DISABLE  # only this package calls it
            if value is not None and threading.get_ident() == thread:
                dependencies.left(sys._getframe(1), value)
            return None

        def calls(code: CodeType, place: int, function: Any, first: Any) -> Any:
            if origin_of(code) == IGNORED:
                return monitoring.DISABLE
            kind = type(function)
            if kind is not BuiltinFunctionType and kind is not MethodDescriptorType:
                return None
            if function.__name__ in CALLS and threading.get_ident() == thread:
                owner = first if kind is MethodDescriptorType else function.__self__
                frame = sys._getframe(1)
                _notify(dependencies, dependencies.calls, frame, function, owner, place, (first,))
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
            with observed(replaceable=False):
                yield
        finally:
            monitoring.set_events(tool, 0)
            for event in callbacks:  # they refer to the dependencies, and these to all arrays
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
