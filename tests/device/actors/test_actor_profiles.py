"""What happens to actors in a profile's trace: a track for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td


@td.actor(capacity=64, restarts=1, keep_state=True)
def sum_up(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    assert message >= 0
    total[0] = total[0] + message
    return total[0]


def events_of(profile: Any, path: Path) -> dict[str, list[dict[str, Any]]]:
    """The events of the trace's actors by their tracks."""
    profile.save(path)
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    (process,) = (
        e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "actors"
    )
    mine = [e for e in events if e["pid"] == process]
    names = {e["tid"]: e["args"]["name"] for e in mine if e["name"] == "thread_name"}
    tracks: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for e in mine:
        if e["ph"] in "Xi":
            tracks[names[e["tid"]]].append(e)
    return tracks


def test_the_life_of_an_actor(device: td.Device, mode: str | None, tmp_path: Path) -> None:
    total = np.zeros(1, np.int32)
    with sum_up.spawn(total=total, mode=mode) as before, td.profile() as p:
        assert before.ask(1, timeout=60) == 1
        ref = sum_up.spawn(total=total, mode=mode)
        ref.send_many(np.ones(40, np.int32))
        assert ref.receive_many(40, timeout=60)[-1] == 40
        ref.pause(timeout=60)
        ref.resume(timeout=60)
        with pytest.raises(td.errors.ActorFailed):
            ref.ask(-3, timeout=60)
        assert ref.ask(2, timeout=60) == 42
        ref.terminate(timeout=60)
    tracks = events_of(p, tmp_path / "trace.json")
    assert len(tracks) == 2
    older, events = (tracks[name] for name in sorted(tracks, key=lambda name: int(name.split()[1])))
    assert sorted({e["name"] for e in older}) == ["handle"]
    assert all(f" on {device.id}" in track and track.startswith("sum_up ") for track in tracks)
    names = [e["name"] for e in events if e["name"] != "handle"]
    assert names == ["spawn", "pause", "resume", "error", "restart", "end"]
    by_name = {e["name"]: e for e in events}
    assert "message -3" in by_name["error"]["args"]["error"]
    assert by_name["end"]["args"] == {"state": "terminated"}
    handled = [e for e in events if e["name"] == "handle"]
    assert sum(e["args"]["messages"] for e in handled) == 41
    assert all(e["ph"] == "X" and e["ts"] >= 0 and e["dur"] > 0 for e in handled)


def test_one_that_is_busy_as_the_profile_begins_and_ends(
    device: td.Device, mode: str | None, tmp_path: Path
) -> None:
    """What it has done by then is in the profile, and no more."""
    with sum_up.spawn(total=np.zeros(1, np.int32), mode=mode) as ref:
        before = ref.ask(1, timeout=60)
        with td.profile() as p:
            for _ in range(5):
                ref.ask(1, timeout=60)
        assert before == 1
        ref.ask(1, timeout=60)
        (events,) = events_of(p, tmp_path / "trace.json").values()
        assert sum(e["args"]["messages"] for e in events) == 5
