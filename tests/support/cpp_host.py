"""Kernels of CUDA C++ that g++ compiles too, as functions of the host: what they compute there is
what they must compute on a device."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import treadle as td

_BEFORE = """
#include <cmath>
#include <cstdint>
#include <new>
#include <utility>
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
"""
_AFTER = """
extern "C" void run(const int *in, int *out) { kernel(in, out); }
"""
ROOM = 256  # of the output


@cache
def by_host(source: str, values: tuple[int, ...], standard: str = "c++17") -> list[int]:
    """What `kernel(const int *in, int *out)` of a file writes, compiled by g++."""
    with TemporaryDirectory() as folder:
        file, library = Path(folder, "host.cpp"), Path(folder, "host.so")
        file.write_text(_BEFORE + source + _AFTER)
        options = ["-w", "-fpermissive", f"-std={standard}", "-O1", "-fwrapv", "-shared", "-fPIC"]
        subprocess.run(["g++", *options, str(file), "-o", str(library)], check=True)
        given = np.array(values, np.int32)
        found = np.full(ROOM, -77, np.int32)
        ctypes.CDLL(str(library)).run(
            given.ctypes.data_as(ctypes.c_void_p), found.ctypes.data_as(ctypes.c_void_p)
        )
        result: list[int] = found.tolist()
        return result


def by_device(source: str, values: tuple[int, ...], device: Any, **options: Any) -> list[int]:
    """What one thread of a device writes; `options` are those of cuda_module."""
    out = td.full((ROOM,), -77, dtype=td.int32, device=device)
    given = td.asarray(np.array(values, np.int32), device=device)
    td.cuda_module(source, **options).kernel("kernel")[1, 1](given, out)
    result: list[int] = out.tolist()
    return result


@contextmanager
def doubles_if_any(device: Any) -> Iterator[None]:
    """Kernels with doubles are refused, in words, on a device that has none."""
    try:
        yield
    except td.errors.UnsupportedOnTarget as error:
        has_doubles = device.backend != "webgpu" or "float64" in device.features
        if has_doubles or "needs the feature 'float64'" not in str(error):
            raise


def check(source: str, device: Any, *values: int, standard: str = "c++17", **options: Any) -> None:
    """The kernel of a file writes the same on a device as on the host."""
    expected = by_host(source, values, standard)
    with doubles_if_any(td.device(device)):
        assert by_device(source, values, device, **options) == expected


def in_one_kernel(features: Sequence[tuple[str, str]]) -> str:
    """A file with a kernel that computes several things: of each what stands before, and what
    writes to `out[k++]`."""
    parts, calls = [], []
    for number, (before, body) in enumerate(features):
        name = f"feature_{number}"
        head = "__device__ void run(const int *in, int n, int *out, int &k)"
        parts.append(f"namespace {name} {{\n{before}\n{head}\n{{\n{body}\n}}\n}}")
        calls.append(f"    {name}::run(in, in[0], out, k);")
    kernel = "__global__ void kernel(const int *in, int *out)\n{\n    int k = 0;"
    return "\n".join((*parts, kernel, *calls, "}"))
