"""How long it takes until a kernel of some 200 lines can run on one of the devices."""

from __future__ import annotations

import functools
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device
from treadle.core.dim3 import Dim3
from treadle.ir.definition import LoweredKernel
from treadle.ir.signature import Signature
from treadle.lang.interpreter.arguments import take_arguments
from treadle.runtime import settings
from treadle.runtime.build import begin
from treadle.runtime.launch_records import BuildVariant

__all__ = ["about", "measurements"]

about = about_device
_NAME = "kernel of 200 lines"
_AIMS = {"cuda": (150, 10)}  # ms, printed and loaded, and from the disk cache
_ROUNDS = 5
# What is written here once is compiled once: the process's number makes it new to drivers, too,
# which keep what they compiled on disk.
_numbers = itertools.count(os.getpid() << 8)

_HEAD = """\
def long_kernel(x: td.Array[td.f32], table: td.Array[td.i32], out: td.Array[td.f32], steps: td.i32):
    part = td.shared(64, td.f32)
    i = td.grid(1)
    t = td.thread_idx.x
    n = x.size
    total = {number}.0 * 1e-9
"""
# What the kernel is made of, in turns: arithmetic, decisions, a loop, an exchange between threads.
_PARTS = (
    """\
    a = x[td.minimum(i + {odd}, n - 1)] * {factor} + total
    b = x[td.maximum(i - {odd}, 0)] - 0.5
    c = a * b - total
    d = td.fma(a, c, b)
    e = td.minimum(td.maximum(d, -2.0), 2.0)
    f = td.sqrt(td.abs(c) + 1.0)
    g = e * f + 0.125 * a
    h = td.where(g > c, g - d, c - e)
    u = (a + h) * {factor}
    v = (b - g) * 0.5
    w = td.abs(u) + td.abs(v)
    m = td.minimum(w, 4.0)
    total = 0.25 * (total + h) + 0.0625 * m
    total = total + 0.001 * td.f32(i & {bit})
""",
    """\
    flag = table[(i + {odd}) & 15]
    p = x[td.minimum(i + {odd}, n - 1)]
    if p > total:
        total += p * {factor} - 1.0
    elif flag & {bit} != 0:
        total -= td.minimum(p, 0.75)
    else:
        total = total * 0.5 + p
    if flag > {odd} and i < n - {odd}:
        q = x[i + {odd}]
        total = total + q * q
    else:
        total = total - 0.25
    total = td.minimum(td.maximum(total, -8.0), 8.0)
""",
    """\
    near = td.minimum(i + {odd}, n - 1)
    sum = 0.0
    most = -10.0
    for k in range(steps):
        r = x[(near + k) % n]
        s = r * {factor} + total
        sum += s / (1.0 + r * r)
        most = td.maximum(most, s)
        if s > 6.0:
            break
    mean = sum * 0.25
    spread = most - mean
    total = 0.5 * total + 0.5 * mean
    total = total - 0.125 * spread
""",
    """\
    part[t] = total
    td.sync_threads()
    left = part[(t + 63) & 63]
    right = part[(t + 1) & 63]
    other = part[63 - t]
    td.sync_threads()
    slope = 0.5 * (right - left)
    curve = left - 2.0 * total + right
    total = total + 0.25 * curve
    total = total - 0.0625 * slope * {factor}
    total = 0.75 * total + 0.25 * other
    part[t] = total * 0.5
    td.sync_threads()
    total = total + 0.125 * part[(t + {odd}) & 63]
    td.sync_threads()
""",
)
_TAIL = """\
    if i < out.size:
        out[i] = total
"""


def long_kernel(number: int) -> str:
    """The text of a kernel of some 200 lines, another for each number."""
    parts = [
        _PARTS[k % 4].format(odd=2 * k + 1, factor=1.0 + k / 16, bit=1 << (k % 4))
        for k in range(14)
    ]
    return _HEAD.format(number=number) + "".join(parts) + _TAIL


def launch(text: str) -> Any:
    """Make a kernel of a text, launch it, and read what it computed."""
    x, table, out, steps = arguments()
    td.kernel(source=text)[2, 64](x, table, out, steps)
    return out.numpy()


def arguments() -> tuple[Any, ...]:
    """What the kernel is launched with."""
    x, table = np.linspace(-1, 1, 1000, dtype=np.float32), np.arange(16, dtype=np.int32)
    return td.asarray(x), td.asarray(table), td.full(128, float("nan")), 3


class _Lowered:
    """A kernel whose IR is there already: what remains is to print, compile and load it."""

    def __init__(self, text: str) -> None:
        kernel = td.kernel(source=text)
        hosts = tuple(a.numpy() if isinstance(a, td.Tensor) else a for a in arguments())
        self.signature = Signature(tuple(take_arguments(kernel, hosts).signature), 0)
        self.name, self.options, self.parameters = kernel.name, kernel.options, kernel.parameters
        self.captured = kernel.captured
        self._lowered = kernel.lower(self.signature)

    def lower(self, signature: Signature) -> LoweredKernel:
        return self._lowered

    def milliseconds(self, device: td.Device) -> float:
        """How long it takes to build it for a device that does not have it."""
        device.compiled.clear()
        began = time.perf_counter()
        begin(self, self.signature, BuildVariant(Dim3(64)), device).result()
        return 1e3 * (time.perf_counter() - began)


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return [functools.partial(_loading, spec)]


def _loading(spec: str) -> list[Figure]:
    new, known = _AIMS.get(spec, (None, None))
    with td.use_device(spec) as device:
        with _disk_cache(on=False):
            first = launch(long_kernel(0))  # the compiler itself is loaded from here on
            kernels = [_Lowered(long_kernel(next(_numbers))) for _ in range(_ROUNDS)]
            printed = [kernel.milliseconds(device) for kernel in kernels]
            began = time.perf_counter()
            launch(long_kernel(next(_numbers)))
            whole = 1e3 * (time.perf_counter() - began)
        with _disk_cache(on=True):
            kernels[0].milliseconds(device)
            loaded = [kernels[0].milliseconds(device) for _ in range(_ROUNDS)]
            for _ in range(2):  # kept, and found again
                device.compiled.clear()
                np.testing.assert_array_equal(launch(long_kernel(0)), first)
    suite = f"compile-{spec}"
    return [
        Figure(suite, f"{_NAME}, printed and loaded", "ms", statistics.median(printed), new),
        Figure(suite, f"{_NAME}, from the disk cache", "ms", statistics.median(loaded), known),
        Figure(suite, f"{_NAME}, from its text to its result", "ms", whole),
    ]


@contextmanager
def _disk_cache(on: bool) -> Iterator[None]:
    """Within the block, compiled code goes to an empty folder and comes from there, or does not."""
    before = settings.disk_cache, os.environ.get("TREADLE_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="treadle-benchmarks-") as folder:
        settings.disk_cache, os.environ["TREADLE_CACHE_DIR"] = on, folder
        try:
            yield
        finally:
            settings.disk_cache = before[0]
            if before[1] is None:
                del os.environ["TREADLE_CACHE_DIR"]
            else:
                os.environ["TREADLE_CACHE_DIR"] = before[1]
