"""The suite `programs`: whole programs, as people write them, beside the same in PyTorch.

One file a program, each with its `measurements`. A result is compared with NumPy's in float64, or
with PyTorch's, before anything is timed.
"""

from __future__ import annotations

from treadle.cli.bench.programs import (
    decoder,
    digits,
    lengths,
    loops,
    operations,
    perceptron,
    resnet,
    rows,
    sequences,
)
from treadle.cli.bench.programs.setting import Measurement, setting
from treadle.runtime.devices import Device

_PROGRAMS = (
    operations, perceptron, decoder, resnet, rows, sequences, loops, digits, lengths,
)  # fmt: skip


def measurements(device: Device, small: bool = False, suite: str = "programs") -> list[Measurement]:
    """What the suite measures, one after the other."""
    chosen = setting(suite, device, small)
    return [one for program in _PROGRAMS for one in program.measurements(chosen)]
