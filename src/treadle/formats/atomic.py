"""Writing a file as a whole: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from treadle.core.paths import naming

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LONGEST_NAME = 200  # bytes of it that are in the draft's name; systems allow 255 in all
_OPEN_FILES = ("/dev/", "/proc/")  # names of files that are open already, such as /dev/stdout


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of the one at `path` when the block is left.

    It is written beside it, in the same folder, and is on the disk before it takes the place. If
    the block raises, or the process is killed, or the machine stops, what was at `path` is there
    as it was. (A kill leaves the unfinished file, whose name ends in `.tmp`, to be deleted.)

    Links are followed. A file that has several names (hard links), or is a mount of its own, keeps
    its place: the new content is copied into it when it is complete. What is not a file (a device,
    a FIFO) is written to directly.
    """
    with naming(path):
        facts = _facts(path)
    if facts is not None and (not stat.S_ISREG(facts.st_mode) or _is_open_file(path)):
        with path.open("wb") as file:  # IsADirectoryError of a folder
            yield file
        return
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{_shortened(target.name)}.{secrets.token_hex(4)}.tmp")
    with naming(path):
        handle = os.open(draft, _NEW, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):  # a new file has what the process gives to its files
            os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
        if facts is not None and facts.st_nlink > 1:
            _move_into(draft, target)
        else:
            try:
                os.replace(draft, target)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                _move_into(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _flush_folder(target.parent)


def _facts(path: Path) -> os.stat_result | None:
    """What there is at a path, links followed; None if nothing is. OSError for a loop of links."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_open_file(path: Path) -> bool:
    return os.name == "posix" and os.path.abspath(path).startswith(_OPEN_FILES)


def _shortened(name: str) -> str:
    return os.fsencode(name)[:_LONGEST_NAME].decode(errors="ignore")


def _move_into(draft: Path, target: Path) -> None:
    """Have a file's content in another one, which stays the file that it is."""
    with draft.open("rb") as source, target.open("r+b") as file:
        shutil.copyfileobj(source, file, 1 << 20)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    draft.unlink()


def _flush_folder(folder: Path) -> None:
    """Have the new name on the disk too, where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
