"""The profiles of all ranks as one trace for Perfetto."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.core.paths import as_path, naming
from treadle.distributed.collectives import all_gather
from treadle.distributed.group import current, world
from treadle.distributed.messages import recv, send
from treadle.runtime.devices import device as find_device
from treadle.runtime.profile.session import Profile
from treadle.runtime.profile.trace import trace_events
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import from_numpy

_PROCESSES = 100  # numbers of processes in the trace for each rank


def save_profile(profile: Profile, path: str | Path) -> None:
    """Write the profiles of all ranks as one trace, for https://ui.perfetto.dev. All ranks call it,
    after their `with td.profile()` blocks; rank 0 writes the file.

    Each rank has its host, its devices and its communication: what was under way, and who waited.
    Times are those of the store's clock, to which each rank's is compared: within a host they agree
    to microseconds, between hosts to about half the time that a message to the store and back
    takes.

    >>> import tempfile
    >>> import treadle as td
    >>> with td.profile() as p:
    ...     _ = td.distributed.all_reduce(td.ones(3, device="cpu")).tolist()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     td.distributed.save_profile(p, f"{folder}/trace.json")
    """
    target = as_path("save_profile", path)
    profile.end_for("save_profile()")
    client = world().client
    offset = 0.0 if client is None else client.clock()
    events = [*_of_rank(profile, current().rank, offset)]
    found = events if client is None else _gathered(events)
    if found is None:
        return
    first = min((each["ts"] for each in found if "ts" in each), default=0.0)
    for each in found:
        if "ts" in each:
            each["ts"] = round(each["ts"] - first, 3)
    content = {"traceEvents": found, "displayTimeUnit": "ns"}
    with naming(target):
        target.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _of_rank(profile: Profile, rank: int, offset: float) -> Iterator[dict[str, Any]]:
    """A profile's events by the store's clock, with numbers of processes that no other rank has."""
    began = (profile.began + offset) * 1e6
    for each in trace_events(profile):
        process = rank * _PROCESSES + each["pid"]
        event = {**each, "pid": process}
        if "ts" in event:
            event["ts"] += began
        if "id" in event:
            event["id"] = f"{rank}.{event['id']}"
        if event["name"] == "process_name":
            event["args"] = {"name": f"rank {rank}: {event['args']['name']}"}
            order = {"name": "process_sort_index", "ph": "M", "pid": process, "tid": 0}
            yield {**order, "args": {"sort_index": process}}
        yield event


def _gathered(events: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """All ranks' events on rank 0; None on the others."""
    group = current()
    engine = group.engine
    where = (None if engine is None else engine.device) or find_device("cpu")
    own = np.frombuffer(zlib.compress(json.dumps(events).encode(), 1), np.uint8).copy()
    with no_grad():
        sizes = all_gather(asarray([own.size], dtype="int64", device=where)).tolist()
        if group.rank:
            send(from_numpy(own, where), 0).numpy()
            return None
        found = [*events]
        for rank in range(1, group.size):
            given = recv((sizes[rank],), rank, dtype="uint8", device=where).numpy()
            found += json.loads(zlib.decompress(given.tobytes()))
    return found
