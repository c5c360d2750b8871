"""Compiled code kept on disk between processes.

An entry is one file named by the hash of everything its content depends on: the kernel's IR, the
options, the device, treadle's version. Several processes may share the folder: an entry is written
to a file of its own and renamed into place, so a reader sees all of it or none. Each entry carries
a checksum; one that does not match is removed and made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from treadle.core.once import once

_MAGIC = b"treadle1"
_SUFFIX = ".entry"
_DIGEST = 32


def folder() -> Path:
    """Where entries are kept: TREADLE_CACHE_DIR, else the platform's cache folder."""
    chosen = os.environ.get("TREADLE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "treadle"


def key_of(*parts: str) -> str:
    """The name of the entry that depends on exactly these texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def load(key: str) -> bytes | None:
    """The entry's content, or None if there is no whole one."""
    path = _path(key)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[len(_MAGIC) + _DIGEST :]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) :][:_DIGEST] != _checksum(content):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    return content


def save(key: str, content: bytes) -> None:
    """Keep an entry. A folder that cannot be written to is no error: the code is made anew."""
    path = _path(key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + _checksum(content) + content)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError:
        return


@once
def source_state() -> str:
    """When and how long treadle's own files are: another state of the source is another key, also
    while its version stays the same."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        facts = path.stat()
        digest.update(f"{path.name} {facts.st_mtime_ns} {facts.st_size}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the cache holds."""

    folder: Path
    entries: int
    nbytes: int


def usage() -> Usage:
    """How many entries there are and how many bytes they take."""
    sizes = [path.stat().st_size for path in _entries()]
    return Usage(folder(), len(sizes), sum(sizes))


def clear() -> Usage:
    """Remove every entry; says what was removed."""
    before = usage()
    for path in _entries():
        with contextlib.suppress(OSError):
            path.unlink()
    return before


def _entries() -> list[Path]:
    return sorted(folder().glob(f"??/*{_SUFFIX}"))


def _path(key: str) -> Path:
    return folder() / key[:2] / f"{key}{_SUFFIX}"


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
