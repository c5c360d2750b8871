"""Products with quantized matrices: weights a second beside a copy, prompts beside float32.

Under `decode`, a row of activations is multiplied by a large matrix, as for each token that a model
generates; the peer is what a copy reads and writes. On the CPU, measurements alternate with the
copy's and the best of each counts, since other programs take bandwidth too.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, device_seconds
from treadle.kernels.device_code.quantized_formats import FORMS
from treadle.quant.blocks import FORMATS
from treadle.quant.products import linear
from treadle.runtime.devices import Device

__all__ = ["about", "measurements"]

about = about_device

_COLUMNS = 4096
_BYTES = {"cpu": 64 << 20, "gpu": 256 << 20, "software": 1 << 20}
_OF_COPY = 0.7  # of the bytes that a copy reads and writes, on a large GPU
_REPEATS = 25
_PROMPT = 512
_MOST_USED = ("q4_1", "q5_0", "q8_0", "q4_k", "q6_k")


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    device = td.device(spec)
    suite = f"quantized-{spec}"
    decode = [functools.partial(_decode, suite, device, name) for name in FORMS]
    prompts = [functools.partial(_prompt, suite, device, name) for name in _MOST_USED]
    return [*decode, *([] if device.kind == "software" else prompts)]


def _matrix(name: str, rows: int, columns: int, device: Device) -> td.quant.QuantizedTensor:
    """A matrix of random bytes, with scales of ordinary size."""
    kind, random = FORMATS[name], np.random.default_rng(1)
    some = random.integers(0, 256, (64, columns // kind.elements, kind.nbytes), np.uint8)
    planes = kind.split(some)
    for key in {"scale", "min"} & planes.keys():
        planes[key][:] = 121 if planes[key].dtype == np.uint8 else 0.01
    blocks = np.tile(kind.join(planes), (rows // 64, 1, 1))
    return td.quant.QuantizedTensor.from_blocks(blocks, (rows, columns), kind, device)


def _activations(rows: int, device: Device) -> td.Tensor:
    random = np.random.default_rng(2)
    return td.asarray(random.normal(size=(rows, _COLUMNS)).astype(np.float32), device=device)


def _kind(device: Device) -> str:
    return "cpu" if device.traits.host_memory else device.kind


def _times(device: Device, *runs: Callable[[], Any]) -> Sequence[float]:
    """Seconds of each: by events on a GPU; the best of several, in turns, on a CPU."""
    if not device.traits.host_memory:
        return device_seconds(device, *runs)
    best = [float("inf")] * len(runs)
    for _ in range(_REPEATS):
        for at, run in enumerate(runs):
            began = time.perf_counter()
            run()
            best[at] = min(best[at], time.perf_counter() - began)
    return best


def _decode(suite: str, device: Device, name: str) -> list[Figure]:
    wanted = _BYTES.get(_kind(device), _BYTES["gpu"])
    rows = int(wanted * 8 / FORMATS[name].bits / _COLUMNS) // 64 * 64
    w, x = _matrix(name, rows, _COLUMNS, device), _activations(1, device)
    source = td.ones(wanted // 4, dtype=td.float32, device=device).realize()
    ours, copy = _times(device, lambda: linear(x, w).realize(), lambda: (source + 0).realize())
    speed, peak = w.nbytes / ours / 1e9, 2 * wanted / copy / 1e9
    large = device.kind == "discrete" and device.name.startswith("cuda")
    return [
        Figure(
            suite, f"decode {name}, {w.nbytes >> 20} MiB", "GB/s", speed,
            _OF_COPY if large and name in _MOST_USED else None, True, "copy", peak, ratio=large,
            seconds=ours, roofline=speed / peak,
        )
    ]  # fmt: skip


def _prompt(suite: str, device: Device, name: str) -> list[Figure]:
    size = 2048 if device.traits.host_memory else _COLUMNS
    w, x = _matrix(name, size, _COLUMNS, device), _activations(_PROMPT, device)
    plain = w.dequantize().realize()
    ours, theirs = _times(device, lambda: linear(x, w).realize(), lambda: (x @ plain.T).realize())
    work = 2 * _PROMPT * size * _COLUMNS / 1e12
    return [
        Figure(
            suite, f"{_PROMPT} rows by {size} × {_COLUMNS} {name}", "TFLOP/s", work / ours, None,
            True, "float32", work / theirs, seconds=ours,
        )
    ]  # fmt: skip
