"""What other processes see of this one's actors: a file that is written anew again and again.

The files are in the folder of the disk cache, which no other user can write to, one for each
process that has given itself a name.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import platform
import threading
import time
from pathlib import Path
from typing import Any

from treadle.actors.living import living
from treadle.actors.status import status_of
from treadle.core import forks
from treadle.core.errors import TreadleError
from treadle.runtime.cache_folder import cache_folder, is_trusted

_SECONDS = 0.5  # between two writings
_STALE = 20 * _SECONDS  # after which a process that has not written is taken for gone
_LARGEST = 1 << 24  # bytes of a file that is read

_lock = forks.lock()
_published: dict[str, Any] = {}  # the name and the thread of this process


def publish(name: str) -> None:
    """Show this process's actors to `treadle actors`, under a name, until it ends."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 64:
        raise ValueError(f"a process's name is 1 to 64 printable characters, not {name!r}")
    with _lock:
        _published["name"] = name
        path = _folder() / f"{os.getpid()}.json"
        _write(path, name)
        if "thread" not in _published:
            thread = threading.Thread(
                target=_keep_writing, args=(path,), name="treadle published actors", daemon=True
            )
            _published["thread"] = thread
            thread.start()
            atexit.register(_remove, path)


def published() -> list[dict[str, Any]]:
    """What the living processes of this user have published last, by name."""
    found = []
    for path in _folder().glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            facts = path.stat()
            if not is_trusted(facts) or facts.st_size > _LARGEST:
                continue
            if time.time() - facts.st_mtime > _STALE:
                _remove(path)
                continue
            process = json.loads(path.read_text(encoding="utf-8"))
            if not _was_killed(process):
                found.append(process)
    return sorted(found, key=lambda process: (str(process["name"]), process["pid"]))


def _was_killed(process: dict[str, Any]) -> bool:
    """Whether a process of this system ended without removing its file."""
    if os.name != "posix" or process["place"] != _place():
        return False
    try:
        os.kill(process["pid"], 0)  # no signal, only the question
    except ProcessLookupError:
        return True
    return False


def _place() -> str:
    """Where numbers of processes mean the same: a system, or a container of it."""
    place = platform.node()
    with contextlib.suppress(OSError):
        place += " " + str(Path("/proc/self/ns/pid").readlink())
    return place


def _folder() -> Path:
    cache = cache_folder()
    if cache.fault or cache.is_read_only:
        raise TreadleError(f"actors cannot be shown: {cache.fault or 'the cache is read-only'}")
    folder = cache.folder / "actors"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _keep_writing(path: Path) -> None:
    while True:
        time.sleep(_SECONDS)
        with contextlib.suppress(OSError):
            _write(path, _published["name"])


def _write(path: Path, name: str) -> None:
    """Replace a process's file."""
    actors = [
        {"actor": core.name, "device": core.device, **dataclasses.asdict(status_of(core))}
        for core in sorted(living, key=lambda core: core.name)
    ]
    facts = {"name": name, "pid": os.getpid(), "place": _place(), "actors": actors}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(facts), encoding="utf-8")
    part.replace(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


@forks.in_child
def _in_child(amidst: bool) -> None:
    """The thread is the parent's, and so is the name."""
    _published.clear()
