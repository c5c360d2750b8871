"""The memory that MPICH's ranks of a host share, which outlives a job that is killed.

MPICH gives it a name, as a file in /dev/shm, by which the ranks of a host find it when MPI begins,
and removes that when MPI ends as it should. When all ranks have it the name has no use any more;
the memory stays until its last process has ended, in whatever way.
"""

from __future__ import annotations

import contextlib
import os
import re

_MAPPED = "/proc/self/maps"  # Linux's
# Inode and name of what MPICH of 4.2 and later shares, if it has still the name.
_LINE = re.compile(r"\S+ \S+ \S+ \S+ (\d+)\s+(/dev/shm/mpich_shm_\w+)")


def forget_names() -> None:
    """Remove the names of what this process shares, once all ranks of the host have it."""
    try:
        with open(_MAPPED) as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        found = _LINE.fullmatch(line.strip())
        if found is None:
            continue
        inode, name = found.groups()
        # Another job may have the name by now: then it is another file.
        with contextlib.suppress(OSError):
            if os.stat(name).st_ino == int(inode):
                os.unlink(name)
