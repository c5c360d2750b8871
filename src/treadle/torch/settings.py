"""Settings of the process: threads, determinism, the precision of products."""

from __future__ import annotations

import os
from typing import Any

from treadle.tensor.precision import get_float32_matmul_precision as get_float32_matmul_precision
from treadle.tensor.precision import set_float32_matmul_precision as set_float32_matmul_precision


class _Settings:
    """What was set, for those who ask."""

    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    interop_threads = 1
    is_deterministic = False
    warns_only = False


_settings = _Settings()


def get_num_threads() -> int:
    """The number of threads that kernels on the CPU use, or what `set_num_threads` said."""
    return int(_settings.threads or 1)


def set_num_threads(num: int) -> None:
    """Noted: kernels on the CPU go on using all processors that the process has. The number of
    these is set from outside, as by `taskset`. RuntimeError unless it is positive."""
    if not isinstance(num, int) or num < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    _settings.threads = num


def get_num_interop_threads() -> int:
    """The number that `set_num_interop_threads` said; 1 before."""
    return _settings.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Noted: operations are not run side by side."""
    _settings.interop_threads = num


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Noted, and nothing to do: kernels give the same results at each run, but for sums by atomics
    where an operation says so."""
    _settings.is_deterministic, _settings.warns_only = bool(mode), warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` said."""
    return _settings.is_deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What `use_deterministic_algorithms` said of warnings."""
    return _settings.warns_only


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """`use_deterministic_algorithms` by a word: "default", "warn" or "error"."""
    words = {"default": 0, "warn": 1, "error": 2}
    number = words.get(debug_mode, debug_mode)
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 with warnings only, or 2."""
    return int(_settings.is_deterministic) * (1 if _settings.warns_only else 2)


def set_flush_denormal(mode: bool) -> bool:
    """False: numbers near 0 are kept as they are."""
    return False


def set_warn_always(b: bool) -> None:
    """Accepted: Python's filters say which warnings are shown."""


def is_warn_always_enabled() -> bool:
    """False: Python's filters say which warnings are shown."""
    return False


def compiled_with_cxx11_abi() -> bool:
    """True, as PyTorch since 2.6."""
    return True
