"""A profile as Chrome's trace events, which Perfetto shows: a track a thread, stream and actor.

A device's times are converted to the host's clock by an offset that is measured at the device's
first work, with an error of at most half the time of the measurement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treadle.core.paths import naming
from treadle.runtime.profile.records import Entry, ProfileData

_HOST = 1  # the process number of the host; devices follow
# Kinds of entries that the host only submits to a device; the host's own are named by what it does.
_HANDED = frozenset({"kernel", "library", "replay"})


def write_trace(notes: ProfileData, path: Path) -> None:
    """Write the JSON. OSError where it cannot be written."""
    content = {"traceEvents": list(trace_events(notes)), "displayTimeUnit": "ns"}
    with naming(path):
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def trace_events(notes: ProfileData) -> Iterator[dict[str, Any]]:
    """The events: names of tracks, spans, arrows from launch to work, memory."""
    devices = list(dict.fromkeys([e.device for e in notes.entries] + list(notes.memory)))
    numbers = {device: _HOST + 1 + i for i, device in enumerate(devices)}
    threads = {thread: i + 1 for i, thread in enumerate(notes.threads)}
    yield _name("process_name", "host", _HOST)
    for thread, number in threads.items():
        yield _name("thread_name", notes.threads[thread], _HOST, number)
    for device, number in numbers.items():
        clock = "" if notes.timed.get(device, True) else " (the host's time: no timestamps)"
        yield _name("process_name", f"{device}{clock}", number)
    streams = {(entry.device, entry.stream) for entry in notes.entries if entry.on_device}
    for device, stream in sorted(streams):
        name = notes.stream_names.get((device, stream)) or f"stream {stream}"
        yield _name("thread_name", name, numbers[device], stream + 1)
    for flow, entry in enumerate(notes.entries):
        host = {"pid": _HOST, "tid": threads[entry.thread]}
        span = _span(notes, _host_name(entry), entry, (entry.began, entry.ended))
        yield {**span, **host}
        if entry.on_device is None:
            continue
        there = {"pid": numbers[entry.device], "tid": entry.stream + 1}
        done = _span(notes, entry.name, entry, entry.on_device)
        yield {**done, **there}
        arrow = {"name": "launch", "cat": "launch", "id": flow}
        yield {**arrow, "ph": "s", "ts": span["ts"], **host}
        yield {**arrow, "ph": "f", "bp": "e", "ts": done["ts"], **there}
    tracks: dict[str, dict[str, int]] = {}
    for event in notes.events:
        of_kind = tracks.setdefault(event.kind, {})
        of_kind.setdefault(event.track, len(of_kind) + 1)
    processes = {kind: _HOST + 1 + len(devices) + i for i, kind in enumerate(tracks)}
    for kind, process in processes.items():
        yield _name("process_name", kind, process)
        for track, number in tracks[kind].items():
            yield _name("thread_name", track, process, number)
    for event in notes.events:
        began = _microseconds(notes, event.began)
        took = round((event.ended - event.began) * 1e6, 3)
        length = {"ph": "X", "dur": took} if took else {"ph": "i", "s": "t"}
        yield {
            "name": event.name, "cat": event.kind.removesuffix("s"), "ts": began,
            "pid": processes[event.kind], "tid": tracks[event.kind][event.track],
            "args": event.facts, **length,
        }  # fmt: skip
    for when, device, used in notes.memory_used:
        yield {
            "name": "memory of arrays", "ph": "C", "ts": _microseconds(notes, when),
            "pid": numbers[device], "args": {"bytes": used},
        }  # fmt: skip


def _name(kind: str, name: str, process: int, thread: int = 0) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _host_name(entry: Entry) -> str:
    if entry.kind == "compile":
        return f"compile {entry.name}"
    return f"launch {entry.name}" if entry.kind in _HANDED else entry.name


def _span(notes: ProfileData, name: str, entry: Entry, span: tuple[float, float]) -> dict[str, Any]:
    start, end = span
    facts: dict[str, Any] = {"device": entry.device}
    if entry.shape is not None:
        facts["grid"], facts["block"] = map(list, entry.shape)
    amount = entry.amount
    if amount.bytes is not None:
        facts["bytes, estimated" if amount.estimated else "bytes"] = amount.bytes
    if amount.operations is not None:
        facts["operations"] = amount.operations
    return {
        "name": name, "cat": entry.kind, "ph": "X", "ts": _microseconds(notes, start),
        "dur": round((end - start) * 1e6, 3), "args": facts,
    }  # fmt: skip


def _microseconds(notes: ProfileData, when: float) -> float:
    return round((when - notes.began) * 1e6, 3)
