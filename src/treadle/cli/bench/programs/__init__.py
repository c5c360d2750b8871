"""The suite `programs`: whole programs, as people write them, beside the same in PyTorch.

One file a program, each with its `measurements`. A result is compared with NumPy's in float64, or
with PyTorch's, before anything is timed.
"""

from __future__ import annotations

from typing import Any

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
from treadle.cli.bench.programs.setting import Measurement, setting_for
from treadle.runtime.devices import Device

# The programs' modules, by what they are called on the command line.
PROGRAMS: dict[str, Any] = {
    "operations": operations,
    "mlp": perceptron,
    "decoder": decoder,
    "resnet": resnet,
    "rows": rows,
    "lstm": sequences,
    "loops": loops,
    "digits": digits,
    "lengths": lengths,
}


def measurements(device: Device, small: bool = False, suite: str = "programs") -> list[Measurement]:
    """What the suite measures, one after the other."""
    chosen = setting_for(suite, device, small)
    return [one for program in PROGRAMS.values() for one in program.measurements(chosen)]
