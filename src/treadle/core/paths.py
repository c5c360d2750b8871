"""Names of files and folders as people pass them, and what is said of those that name none.

`os.path` asks what there is: unlike `Path`, it has no error for names that the system refuses. `~`
is the shell's word for the home folder; like `open`, nothing here expands it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def as_path(asker: str, path: Any) -> Path:
    """A path from text or a `pathlib.Path`. TypeError for anything else, ValueError for text that
    names nothing; `asker` is the function's name."""
    given = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(given, bytes):
        raise TypeError(f"{asker}: a path is text or a pathlib.Path, not bytes: os.fsdecode(path)")
    if not isinstance(given, str):
        raise TypeError(f"{asker}: a path is text or a pathlib.Path, not {type(path).__name__}")
    if not given:
        raise ValueError(f"{asker}: the path is empty")
    if "\0" in given:
        raise ValueError(f"{asker}: no path has a null character in it: {given!r}")
    return Path(given)


def no_file(path: Path) -> str:
    """The message for a file that does not exist."""
    if os.path.isdir(path):
        return f"{path} is a folder, not a file"
    return f"there is no file {path}{_about_home(path)}"


def no_folder(folder: Path) -> str:
    """The message for a folder that does not exist."""
    if os.path.isfile(folder):
        return f"{folder} is a file, not a folder"
    return f"there is no folder {folder}{_about_home(folder)}"


def _about_home(path: Path) -> str:
    home = path.parts[:1]
    if not home or not home[0].startswith("~") or os.path.exists(home[0]):
        return ""
    return " (~ is not expanded: pathlib.Path(path).expanduser() does that)"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have the errors of the system's calls name the path that was given, and what is missing."""
    try:
        yield
    except FileNotFoundError:
        # An OSError's text ends in its file name.
        missing = f"there is no such file{_about_home(path)}"
        what = missing if path.parent.is_dir() else no_folder(path.parent)
        raise FileNotFoundError(errno.ENOENT, what, str(path)) from None
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
