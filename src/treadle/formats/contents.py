"""The contents of files: mapped into memory, JSON, other files that they name, and values in
messages."""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.core.paths import naming
from treadle.formats.json_text import parse_json

Buffer = mmap.mmap | bytes

_LARGEST_JSON = 100_000_000  # bytes
_SHOWN = 80


def mapped(path: Path) -> Buffer:
    """A file's bytes, which the system reads when they are asked for.

    If another program makes the file shorter while it is mapped, reading beyond its end stops the
    process (SIGBUS). Replacing it by another one, as downloads do, is safe.
    """
    with naming(path):
        if not stat.S_ISREG(os.stat(path).st_mode) and not path.is_dir():
            raise FormatError(f"{path} is not a file that can be mapped into memory")
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


def read_json(path: Path, constants: bool = False) -> dict[str, Any]:
    """A JSON object from a file of a reasonable size. `constants` lets NaN and Infinity pass."""
    data = mapped(path)
    if len(data) > _LARGEST_JSON:
        raise FormatError(f"{path} has {len(data)} bytes, and JSON may have {_LARGEST_JSON}")
    parsed = parse_json(data[:], str(path), constants)
    if not isinstance(parsed, dict):
        raise FormatError(f"{path} is not a JSON object")
    return parsed


def file_in(folder: Path, name: Any, asker: str) -> Path:
    """A file that another one in the same folder names. FormatError if it would lie elsewhere.

    Links are followed wherever they lead: Hugging Face's cache is made of links. Its owner made
    them, not what was downloaded.
    """
    if (
        not isinstance(name, str)
        or name in ("", ".", "..")
        or PurePosixPath(name).name != name
        or PureWindowsPath(name).name != name
        or any(letter < " " or letter == ":" for letter in name)
    ):
        raise FormatError(f"{asker} names {shortened(name)}, which is not a file in its folder")
    return folder / name


def shortened(value: object) -> str:
    """A value in an error's text, of which a hostile file can make millions of letters."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def release(bytes: np.ndarray[Any, Any]) -> None:
    """Give back the memory that bytes of a file `mapped` here take in this process, once they are
    copied. They are read from the file again if they are asked for again."""
    base: Any = bytes
    while isinstance(base, np.ndarray):
        base = base.base
    found = getattr(base, "obj", base)
    if not (isinstance(found, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")):
        return
    page = mmap.PAGESIZE
    start = bytes.ctypes.data - np.frombuffer(found, np.uint8).ctypes.data
    first = -(-start // page) * page  # the pages at both ends have other bytes, too
    length = (start + bytes.nbytes) // page * page - first
    if length > 0:
        found.madvise(mmap.MADV_DONTNEED, first, length)
