"""Launches of kernels that print, assert or check, whose report is read and shown after each."""

from __future__ import annotations

import sys

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.dtypes import uint32
from treadle.core.errors import LaunchError
from treadle.drivers import base
from treadle.ir.passes.instrument import decode_report, format_entry, lost_words
from treadle.runtime.arrays import DeviceArray, bytes_of
from treadle.runtime.built_kernel import BuiltKernel
from treadle.runtime.devices import Stream

WORDS = 1 << 16  # of a report: a few thousand lines; those that do not fit are counted


def launch_with_report(
    compiled: base.CompiledKernel,
    built: BuiltKernel,
    grid: Dim3,
    buffers: list[base.Buffer],
    parameters: bytes,
    stream: Stream,
) -> None:
    """Launch, wait, print what the kernel printed; LaunchError for the first failed check."""
    if stream.interrupt is not None:
        stream.interrupt(f"kernel {built.code.name} prints or checks")
    if stream.capturing is not None:
        raise LaunchError(
            f"kernel {built.code.name} prints or checks, which cannot be captured in a graph"
        )
    report = DeviceArray.allocate(stream.device, uint32, (WORDS,))
    words = np.zeros(WORDS, np.uint32)
    words[1] = WORDS
    report.upload(words)
    stream.handle.launch(compiled, grid, [*buffers, report.buffer], parameters)
    stream.handle.read(report.buffer, 0, bytes_of(words))
    show(words, built, grid)


def show(
    words: np.ndarray[tuple[int, ...], np.dtype[np.uint32]], built: BuiltKernel, grid: Dim3
) -> None:
    """Print the entries of a report; LaunchError for the first failed check in it."""
    failed: list[str] = []
    for entry in decode_report(words, built.sites):
        line = format_entry(entry, built.code.name, built.code.block, grid)
        if entry.site.kind == "print":
            sys.stdout.write(line + entry.site.end)
        else:
            failed.append(line)
    if lost := lost_words(words, built.sites):
        sys.stdout.write(f"kernel {built.code.name}: {lost * 4} bytes of reports did not fit\n")
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise LaunchError(failed[0] + more)
