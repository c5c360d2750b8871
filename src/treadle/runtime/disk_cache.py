"""Compiled code, cached on disk between processes.

An entry is one file, named by the hash of everything that its content depends on: the kernel's IR,
the options, the device, treadle's version. Several processes may share the folder: an entry is
written to a temporary file and renamed into place, so a reader sees all of it or nothing. Each
entry has a checksum; an entry that does not match it is removed and built again.

The size is bounded: entries that were not used for `KEPT_DAYS` are removed, and above `MOST_BYTES`
the least recently used ones. Entries lie in 256 subfolders by the first byte of their names, which
are hashes, so that each has about the same share. Saving one entry in 16 trims its own subfolder
and one more, so that no process ever scans the whole folder, and few saves look at other entries.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from treadle.core.environment import warn_once
from treadle.core.once import once
from treadle.runtime import page_storage
from treadle.runtime.cache_folder import cache_folder, is_trusted

MOST_BYTES = 512 << 20
KEPT_DAYS = 90

_MAGIC = b"treadle2"
_SUFFIX = ".entry"
_UNFINISHED = ".part"
_DIGEST = 32
_FOLDERS = 256
_HOUR = 3600.0
_IN_A_PAGE = sys.platform == "emscripten"
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def folder() -> Path:
    """The folder of the entries: TREADLE_CACHE_DIR, else the platform's cache folder, else a folder
    of this user's among the temporary files."""
    return cache_folder().folder


def is_usable() -> bool:
    """Whether there are entries, or can be. If not, the reason is logged once."""
    return not cache_folder().fault


def can_save() -> bool:
    """Whether entries can be written now, which is tried."""
    where = cache_folder()
    if where.fault or where.is_read_only:
        return False
    try:
        with tempfile.TemporaryFile(dir=where.folder):
            return True
    except OSError:
        return False


def key_of(*parts: str) -> str:
    """The name of the entry that depends on exactly these strings."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def load(key: str) -> bytes | None:
    """The entry's content, or None if there is no intact entry."""
    if _IN_A_PAGE:
        page_storage.load_if_possible()
    path = _path(key)
    if path is None:
        return None
    try:
        with os.fdopen(os.open(path, _OPEN), "rb") as file:
            facts = os.fstat(file.fileno())
            if not is_trusted(facts):
                return None
            data = file.read()
    except OSError:
        return None
    content = data[len(_MAGIC) + _DIGEST :]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) :][:_DIGEST] != _checksum(content):
        discard(key)
        return None
    if time.time() - facts.st_mtime > _HOUR:  # its mtime is its last use, to the hour
        with contextlib.suppress(OSError):
            os.utime(path)
    return content


def discard(key: str) -> None:
    """Remove an entry that cannot be used."""
    path = _path(key)
    if path is not None:
        with contextlib.suppress(OSError):
            path.unlink()


def save(key: str, content: bytes) -> None:
    """Save an entry. A folder that cannot be written to is not an error: code is built again, and a
    warning says so once."""
    path = _path(key)
    if path is None or cache_folder().is_read_only:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=_UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + _checksum(content) + content)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        warn_once(f"compiled kernels are not kept in {folder()}: one cannot be written ({reason})")
        return
    if key[4] == "0":  # names are hashes: one in 16
        _tidy(path.parent, path)
        _tidy(path.parents[1] / key[2:4], path)
    if _IN_A_PAGE:
        page_storage.changed()


def _tidy(subfolder: Path, newest: Path) -> None:
    """Trim a subfolder to its share of the bytes, and to entries that were used lately."""
    now = time.time()
    found: list[tuple[float, int, str]] = []
    with contextlib.suppress(OSError):
        for time_used, size, path in _files(subfolder):
            unfinished = path.endswith(_UNFINISHED)  # left by a process that was killed
            if now - time_used > (_HOUR if unfinished else KEPT_DAYS * 24 * _HOUR):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            elif not unfinished:
                found.append((time_used, size, path))
    room = MOST_BYTES // _FOLDERS
    excess = sum(size for _, size, _ in found) - room
    if excess <= 0:
        return
    excess += room // 8  # some room, or every save would remove an entry
    for _, size, path in sorted(found):
        if excess <= 0:
            break
        if path != str(newest):
            excess -= size
            with contextlib.suppress(OSError):
                os.unlink(path)


def _files(subfolder: Path) -> Iterator[tuple[float, int, str]]:
    """The last use, size and path of each of treadle's files."""
    with os.scandir(subfolder) as entries:
        for entry in entries:
            if entry.name.endswith((_SUFFIX, _UNFINISHED)):
                with contextlib.suppress(OSError):  # another process may have removed it
                    facts = entry.stat(follow_symlinks=False)
                    yield facts.st_mtime, facts.st_size, entry.path


@once
def source_state() -> str:
    """A hash of the times and sizes of treadle's own files, so that edited source makes new keys
    while the version stays the same. In a page, where files are unpacked at each visit, it is a
    hash of the list that their package has."""
    if _IN_A_PAGE:
        from importlib.metadata import PackageNotFoundError, distribution

        with contextlib.suppress(PackageNotFoundError):
            if listed := distribution("treadle").read_text("RECORD"):
                return key_of(listed)
    digest = hashlib.sha256()
    own = Path(__file__).parents[1]
    for path in sorted((*own.rglob("*.py"), *own.rglob("*.cuh"))):
        facts = path.stat()
        digest.update(f"{path.name} {facts.st_mtime_ns} {facts.st_size}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """The size of the cache."""

    folder: Path
    entries: int
    nbytes: int


def usage() -> Usage:
    """How many entries there are and how many bytes they take."""
    entries, nbytes = 0, 0
    for subfolder in _subfolders():
        with contextlib.suppress(OSError):  # another user's
            for _, size, path in _files(subfolder):
                entries += path.endswith(_SUFFIX)
                nbytes += size
    return Usage(folder(), entries, nbytes)


def clear() -> Usage:
    """Remove every entry; returns what was removed."""
    entries, nbytes = 0, 0
    for subfolder in _subfolders():
        with contextlib.suppress(OSError):  # another user's
            for _, size, path in _files(subfolder):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    entries += path.endswith(_SUFFIX)
                    nbytes += size
    return Usage(folder(), entries, nbytes)


def small_entries(most: int) -> Iterator[bytes]:
    """The contents of all intact entries of at most so many bytes: to look for results whose names
    are not known. It goes through the whole folder."""
    for subfolder in _subfolders():
        with contextlib.suppress(OSError):  # another user's
            for _, size, path in _files(subfolder):
                if path.endswith(_SUFFIX) and size <= most + len(_MAGIC) + _DIGEST:
                    content = load(Path(path).stem)
                    if content is not None:
                        yield content


def _subfolders() -> list[Path]:
    where = cache_folder()
    return [] if where.fault else sorted(path for path in where.folder.glob("??") if path.is_dir())


def _path(key: str) -> Path | None:
    where = cache_folder()
    return None if where.fault else where.folder / key[:2] / f"{key}{_SUFFIX}"


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
