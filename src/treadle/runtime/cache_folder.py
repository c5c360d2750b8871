"""The folder of the disk cache: one that no other user can write to.

It holds machine code that this process will run. So a folder that belongs to another user, or that
others may write to, is not used, and neither is another user's file in it. A warning states once
why a folder is not used.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from treadle.core.environment import warn_once

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_POSIX = hasattr(os, "geteuid")  # not in a browser, which has one user


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder for the cache, and why it cannot be used ("" if it can). One that was chosen may be
    filled already, as in a container's image: then it is read, but not written to."""

    folder: Path
    fault: str = ""
    is_read_only: bool = False


_found: dict[tuple[str | None, ...], CacheFolder] = {}  # by environment variables


def cache_folder() -> CacheFolder:
    """The folder of this process, created and checked at its first use."""
    variables = ("TREADLE_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "TMPDIR")
    key = tuple(map(os.environ.get, variables))
    known = _found.get(key)
    if known is None:
        known = _found[key] = _choose()
    return known


def _choose() -> CacheFolder:
    chosen = os.environ.get("TREADLE_CACHE_DIR", "").strip()
    if chosen:
        made = _chosen(chosen)
        shown = repr(chosen) if len(chosen) <= 60 else f"{chosen[:60]!r}…"
        if made.fault:
            warn_once(f"TREADLE_CACHE_DIR is {shown}: {made.fault}; compiled kernels are not kept")
        elif made.is_read_only:
            warn_once(
                f"TREADLE_CACHE_DIR is {shown}: this process may not write to {made.folder}; "
                "compiled kernels that are in it are used, and others are not kept"
            )
        return made
    usual = _usual()
    made = CacheFolder(Path(), "there is no home folder") if usual is None else _prepared(usual)
    if made.is_read_only:
        made = CacheFolder(made.folder, f"this process may not write to {made.folder}")
    if not made.fault:
        return made
    user = f"-{os.getuid()}" if _POSIX else ""
    spare = _prepared(Path(tempfile.gettempdir()) / f"treadle{user}")
    if spare.folder.is_symlink():  # any user may create a link in /tmp
        spare = CacheFolder(spare.folder, f"{spare.folder} is a link")
    kept = f"are kept in {spare.folder}" if not spare.fault else f"are not kept ({spare.fault})"
    warn_once(f"{made.fault}: compiled kernels {kept}; TREADLE_CACHE_DIR chooses another folder")
    return spare


def _chosen(text: str) -> CacheFolder:
    """The folder that TREADLE_CACHE_DIR names, and what is wrong with it."""
    folder = Path(text)
    if any(sign < " " for sign in text):
        return CacheFolder(folder, "no folder has a control character in its name")
    if text.startswith("~") and not os.path.isdir(folder.parts[0]):  # not a folder named "~"
        return CacheFolder(folder, "~ is expanded by shells only; write the whole path")
    return _prepared(folder)


def _usual() -> Path | None:
    """The platform's cache folder; None where there is no home folder."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        inside: tuple[str, ...] = ("AppData", "Local")
    elif sys.platform == "darwin":
        base, inside = None, ("Library", "Caches")
    else:
        base, inside = os.environ.get("XDG_CACHE_HOME"), (".cache",)
    if base and os.path.isabs(base):  # the XDG specification ignores relative paths
        return Path(base) / "treadle"
    try:
        return Path.home().joinpath(*inside, "treadle")
    except RuntimeError:
        return None


def _prepared(folder: Path) -> CacheFolder:
    """Create a folder if it is missing, and check it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.stat()
    except OSError as error:
        for part in (folder, *folder.parents):
            if os.path.isfile(part):
                return CacheFolder(folder, f"{part} is a file, not a folder")
        return CacheFolder(folder, f"the folder cannot be made ({error.strerror or error})")
    fault = _fault(folder, facts)
    return CacheFolder(folder, fault, not fault and not _allows(folder, os.W_OK | os.X_OK))


def _fault(folder: Path, facts: os.stat_result) -> str:
    if _POSIX and not is_trusted(facts):
        return f"{folder} belongs to another user (uid {facts.st_uid})"
    if _POSIX and facts.st_mode & _OTHERS_WRITE:
        return f"other users may write to {folder} (`chmod 700` prevents that)"
    if not _allows(folder, os.R_OK | os.X_OK):
        return f"this process may not read {folder}"
    return ""


def _allows(folder: Path, access: int) -> bool:
    """Whether this process may access a folder in these ways."""
    effective = os.access in os.supports_effective_ids
    return os.access(folder, access, effective_ids=effective)


def is_trusted(facts: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user or to root."""
    return not _POSIX or facts.st_uid in (os.geteuid(), 0)
