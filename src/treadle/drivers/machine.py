"""What machine this is: its processor's name, its threads, its memory."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

from treadle.core.environment import count
from treadle.core.processors import usable_processors

_MOST_THREADS = 1024


def processor_name() -> str:
    """The processor as its maker calls it, or else its architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model", "cpu model") and value.strip():
                return value.strip()
    return platform.processor() or platform.machine() or "CPU"


def thread_count() -> int:
    """How many threads kernels may use: TREADLE_CPU_THREADS, or the processors we may run on."""
    return threads_wanted() or usable_processors()


def threads_wanted() -> int | None:
    """TREADLE_CPU_THREADS; None where it is not set."""
    return count("TREADLE_CPU_THREADS", _MOST_THREADS, "as many as the process may run on")


def cache_bytes() -> int:
    """Bytes of the largest cache of a processor; 0 if unknown."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        with contextlib.suppress(OSError, ValueError):
            text = path.read_text().strip()
            unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
            sizes.append(int(text.rstrip("KM")) * unit)
    return max(sizes)


def total_memory() -> int:
    """Bytes of memory that this process may use at most; 0 if unknown."""
    total = 0
    with contextlib.suppress(OSError, ValueError, AttributeError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _read_number("/sys/fs/cgroup/memory.max")
    return min(total, limit) if total and limit else total or limit


def free_memory() -> int:
    """Bytes of memory that are available now without swapping; 0 if unknown."""
    free = 0
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
                break
    limit = _read_number("/sys/fs/cgroup/memory.max")
    if limit:
        free = min(free, max(limit - _read_number("/sys/fs/cgroup/memory.current"), 0))
    return free


def _read_number(path: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(path).read_text())
    return 0
