"""Runs the programs of the playground: their value, or the error with its places in the text.

The worker imports this module once. What it hands over is JSON text, since a dictionary would
arrive in JavaScript as a proxy that has to be given back.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import playground
from pyodide.code import eval_code_async

import treadle as td

# A file, so that kernels find their source, and tracebacks show lines.
PROGRAM = Path("/home/pyodide/program.py")

_running: asyncio.Task[Any] | None = None


async def open_device() -> str:
    """Ask for the GPU; what the page shows of the device that programs get."""
    reason = ""
    await td.init()
    device = td.default_device()
    if device.kind == "cpu":
        try:
            td.device("webgpu")
        except td.errors.TreadleError as error:
            reason = f"Programs run on the CPU, more slowly. {error}"
    limits = device.limits
    facts = {
        "threads in a block": f"{limits.max_threads_per_block:,}",
        "shared memory": _bytes(limits.max_shared_memory),
        "largest buffer": _bytes(limits.max_buffer_size),
        "arrays in a kernel": str(limits.max_buffers_per_kernel),
        "features": ", ".join(sorted(device.features)) or "none",
    }
    return json.dumps({"name": device.name, "id": device.id, "facts": facts, "reason": reason})


async def run(program: str) -> str:
    """Run a program; its outcome."""
    global _running
    PROGRAM.write_text(program)
    playground.begin()
    _running = asyncio.ensure_future(_outcome(program))
    try:
        value = await _running
        return json.dumps({"value": None if value is None else repr(value)})
    except asyncio.CancelledError:
        return json.dumps({"stopped": True})
    except BaseException as error:  # noqa: BLE001  whatever the program raises is shown
        return json.dumps(_described(error))
    finally:
        _running = None
        playground.end()
        sys.stdout.flush()
        sys.stderr.flush()


async def _outcome(program: str) -> Any:
    await td.init()  # opens the device anew if it was lost
    names = {"__name__": "__main__", "__file__": str(PROGRAM), "input": _no_input}
    return await eval_code_async(program, globals=names, filename=str(PROGRAM))


def _no_input(prompt: object = "") -> str:
    raise RuntimeError("programs of the playground have no input: write the value into the program")


def stop() -> None:
    """End the running program at its next `await`."""
    if _running is not None:
        _running.cancel()


def event(target: int, fields: str) -> None:
    """Hand what happened on the page to the object of the program that it is for."""
    playground.event(target, json.loads(fields))


def _described(error: BaseException) -> dict[str, Any]:
    """An error as text, and where in the program it is: the innermost line of the program, and
    for a kernel that does not compile each place that is wrong."""
    shown = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in shown.stack if frame.filename == str(PROGRAM)]
    # Without Pyodide's own calls; and what treadle raises on purpose says all that is needed.
    ours = [frame.filename == str(PROGRAM) for frame in shown.stack]
    shown.stack[:] = shown.stack[ours.index(True) :] if any(ours) else []
    if isinstance(error, td.errors.TreadleError):
        shown.stack[:] = frames
    message = "".join(shown.format()).rstrip().replace(str(PROGRAM), PROGRAM.name)
    summary = "".join(shown.format_exception_only()).strip()
    places = _places(error, summary)
    if not places and frames:
        last = frames[-1]
        column = _characters(last, last.colno)
        end = _characters(last, last.end_colno) if last.end_lineno == last.lineno else 0
        places = [_place(last.lineno or 1, column + 1, end + 1, summary)]
    return {"error": message, "places": places}


def _places(error: BaseException, summary: str) -> list[dict[str, Any]]:
    if isinstance(error, SyntaxError) and error.filename == str(PROGRAM):
        column = error.offset or 1
        return [_place(error.lineno or 1, column, error.end_offset or column, error.msg)]
    if isinstance(error, td.errors.CompileError):
        each = getattr(error, "errors", (error,))
        spans = [(one.span, one.message) for one in each if one.file == str(PROGRAM)]
        return [_place(span.line, span.column, span.end_column, text) for span, text in spans]
    return []


def _place(line: int, column: int, end: int, message: str) -> dict[str, Any]:
    return {"line": line, "column": column, "endColumn": max(end, column + 1), "message": message}


def _characters(frame: traceback.FrameSummary, column: int | None) -> int:
    """A column of a frame, which Python counts in bytes of UTF-8, in characters."""
    text = PROGRAM.read_text().splitlines()[(frame.lineno or 1) - 1]
    return len(text.encode()[: column or 0].decode(errors="ignore"))


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
