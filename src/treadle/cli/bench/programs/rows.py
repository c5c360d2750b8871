"""Loops that make large results: softmax and layer norm of rows, each computed and dropped.

What such a loop takes is compared with what its kernels take on the device, by `td.profile`, and
its peak memory with PyTorch's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.cli.bench.arrays import peak_beyond
from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import (
    Array,
    Library,
    Measurement,
    Setting,
    compare,
    numbers,
    one,
)
from treadle.runtime.profile.session import profile

_COMPARED = 97  # each 97th row
_TOLERANCE = 2e-5
_PROFILED = 5


def _softmax(library: Library, x: Any) -> Any:
    return library.module.nn.functional.softmax(x, -1)


def _layer_norm(library: Library, x: Any) -> Any:
    return library.module.nn.functional.layer_norm(x, (x.shape[-1],))


def _right_softmax(x: Array) -> Array:
    x = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(x / x.sum(-1, keepdims=True))


def _right_layer_norm(x: Array) -> Array:
    x = x - x.mean(-1, keepdims=True)
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5))


_FUNCTIONS: dict[str, tuple[Callable[[Library, Any], Any], Callable[[Array], Array]]] = {
    "softmax": (_softmax, _right_softmax),
    "layer norm": (_layer_norm, _right_layer_norm),
}


def measurements(setting: Setting) -> list[Measurement]:
    """A loop for each function."""
    return [functools.partial(_loop, setting, name) for name in _FUNCTIONS]


def _loop(setting: Setting, name: str) -> list[Figure]:
    compute, right = _FUNCTIONS[name]
    rows, columns = setting.sizes.rows
    values = np.random.default_rng(0).standard_normal((rows, columns), np.float32)
    ours, peer, count = setting.ours, setting.peer, setting.sizes.in_a_row
    x = ours.array(values).realize()
    chosen = values[::_COMPARED]
    found = numbers(compute(ours, x)[::_COMPARED])
    compare(f"{name} of rows", found, right(chosen.astype(np.float64)), _TOLERANCE)

    def results() -> None:
        for _ in range(count):
            compute(ours, x).realize()

    peers = used = None
    if peer is not None:
        y = peer.array(values)

        def theirs() -> None:
            for _ in range(count):
                compute(peer, y)

        if not setting.on_host:
            used = _peak(peer, theirs)
        peers = one(peer.wait, theirs) / count
        del y
    took = one(ours.wait, results) / count
    kernels = _on_device(lambda: compute(ours, x).realize())
    shown = f"{name} of {rows} × {columns}, in a loop of {count}"
    others = (("PyTorch", peers),) if peers else ()
    found_peak = peak_beyond(setting.device, results) / values.nbytes
    return [
        Figure(
            setting.suite, shown, "s", took, peer="the kernels" if kernels else "", peers=kernels,
            others=others,
        ),
        Figure(
            setting.suite, f"{shown}: peak memory", "results", found_peak,
            peer="PyTorch" if used else "", peers=used / values.nbytes if used else None,
        ),
    ]  # fmt: skip


def _on_device(step: Callable[[], object]) -> float | None:
    """Seconds that the kernels of a step take on the device; None if it has no clock."""
    with profile() as measured:
        for _ in range(_PROFILED):
            step()
    chosen = [row for row in measured.table().rows if row.kind in ("kernel", "library")]
    if any(row.timed < row.count for row in chosen):
        return None
    return sum(row.seconds for row in chosen) / _PROFILED


def _peak(peer: Library, run: Callable[[], object]) -> int:
    """Bytes that PyTorch's arrays on a card take at most while something runs, beyond before."""
    cuda = peer.module.cuda
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    run()
    return int(cuda.max_memory_allocated() - before)
