"""One computation of the library, measured beside its peers and beside what the machine could do.

A result is compared with the reference before anything is timed. Beside each figure stands the
part of the device's roofline that it reaches: inputs and outputs moved once, at a copy's rate, or
the operations that it counts, at the rate of multiplications and additions in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import (
    Figure,
    device_seconds,
    installed,
    torch_on_cuda,
    torch_seconds,
    wall_seconds,
)
from benchmarks.library.roofline import ceiling

Arrays = Sequence[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Case:
    """`arrays` makes the inputs, `compute` what is timed from treadle's tensors of them, `torch`
    and `numpy` what the peers compute of theirs (`torch` gets PyTorch and its tensors, `numpy` the
    arrays), `reference` the right result from the arrays (in float64; None: NumPy's is right).

    `amount` is what `unit` counts in a second of one run: operations for "GFLOP/s", bytes that have
    to be moved for "GB/s", elements for "M/s". `targets` has for a device's id the peer beside
    which, and the ratio of speeds that is aimed at; "copy" is a copy of the first array.
    `devices` are the ids it is for. The arrays are made on the host, in `dtype` if that is given.
    """

    theme: str
    name: str
    arrays: Callable[[], Arrays]
    compute: Callable[..., Any]
    amount: float
    unit: str
    devices: tuple[str, ...] = ("cpu", "cuda", "webgpu", "dawn")
    torch: Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    tolerance: float = 2e-5  # relative, of a norm
    dtype: str = ""
    targets: dict[str, tuple[str, float]] = field(default_factory=dict)
    copied: bool = False  # whether a copy of the first array is a peer

    def suits(self, device: td.Device, spec: str) -> bool:
        """Whether it is measured on a device; a software adapter's speed is of no interest."""
        return spec in self.devices and device.kind != "software"


_SCALES = {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "GB/s": 1e9, "M/s": 1e6}


def measure(suite: str, device: td.Device, case: Case) -> list[Figure]:
    """A case's figure."""
    with td.use_device(device):
        return _measured(suite, device, case)


def _measured(suite: str, device: td.Device, case: Case) -> list[Figure]:
    arrays = case.arrays()
    tensors = [td.asarray(array, device=device) for array in arrays]
    if case.dtype:
        tensors = [t.to(case.dtype) if t.dtype == td.float32 else t for t in tensors]
    size = _check(case, tensors, arrays)
    runs: list[Callable[[], object]] = [lambda: _realized(case.compute(*tensors))]
    if case.copied:
        runs.append(lambda: tensors[0].copied().realize())
    on_card = device.kind == "discrete"
    timed = device_seconds(device, *runs) if on_card else []
    peers: dict[str, float] = {}
    if not on_card:  # in turns with the peers, since a shared machine's speed moves
        names, others = _host_peers(case, arrays)
        timed = wall_seconds(device.synchronize, *runs, *others)
        peers |= dict(zip(names, timed[len(runs) :], strict=True))
    elif case.torch is not None and (torch := torch_on_cuda()) is not None:
        peers["PyTorch"] = torch_seconds(torch, _torch_run(case, torch, arrays, "cuda"))[0]
    rate = case.amount / _SCALES[case.unit]
    if case.copied:
        bytes_copied = 2 * tensors[0].nbytes
        peers["copy"] = timed[1] * case.amount / bytes_copied  # as if it moved what the case does
    peer, target = case.targets.get(suite.removeprefix("library-"), ("", None))
    first = peer if peer in peers else next(iter(peers), "")
    moved = size + sum(tensor.nbytes for tensor in tensors)
    operations = case.amount if case.unit in ("GFLOP/s", "TFLOP/s") else 0
    best = ceiling(device).seconds(moved, operations, case.dtype in ("float16", "bfloat16"))
    return [
        Figure(
            suite, f"{case.theme}: {case.name}", case.unit, rate / timed[0], target, True, first,
            rate / peers[first] if first else None, True,
            others=tuple((n, rate / took) for n, took in peers.items() if n != first),
            seconds=timed[0], roofline=best / timed[0],
        )
    ]  # fmt: skip


def _host_peers(case: Case, arrays: Arrays) -> tuple[list[str], list[Callable[[], object]]]:
    names: list[str] = []
    runs: list[Callable[[], object]] = []
    if case.numpy is not None:
        function = case.numpy
        names.append("NumPy")
        runs.append(lambda: function(*arrays))
    if case.torch is not None and (torch := installed("torch")) is not None:
        names.append("PyTorch")
        runs.append(_torch_run(case, torch, arrays, "cpu"))
    return names, runs


def _torch_run(case: Case, torch: Any, arrays: Arrays, where: str) -> Callable[[], object]:
    function = case.torch
    assert function is not None
    tensors = [torch.asarray(array, device=where) for array in arrays]
    if case.dtype:
        dtype = getattr(torch, case.dtype)
        tensors = [t.to(dtype) if t.dtype == torch.float32 else t for t in tensors]
    return lambda: function(torch, *tensors)


def _realized(result: Any) -> None:
    for each in result if isinstance(result, tuple) else (result,):
        each.realize()


def _check(case: Case, tensors: Sequence[td.Tensor], arrays: Arrays) -> int:
    """An error unless the (first) result is right; the bytes of all results."""
    function = case.reference or case.numpy
    if function is None:
        raise ValueError(f"{case.name} has no reference to be compared with")
    right = function(*arrays)
    found = case.compute(*tensors)
    if isinstance(right, tuple):
        right = right[0]
    results = found if isinstance(found, tuple) else (found,)
    found = results[0]
    size = sum(result.nbytes for result in results)
    if found.dtype == td.bfloat16:
        found = found.to(td.float32)
    values = found.numpy()
    wide = np.complex128 if np.iscomplexobj(values) else np.float64
    error = np.linalg.norm((values.astype(wide) - right).ravel())
    norm = np.linalg.norm(np.asarray(right, wide).ravel())
    if values.shape != np.shape(right) or not error <= case.tolerance * max(norm, 1e-30):
        raise ValueError(
            f"{case.name} on {found.device.id} is wrong: shape {values.shape} where "
            f"{np.shape(right)} is right, relative error {error / norm:.1e}"
        )
    return size
