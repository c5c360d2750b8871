"""The suite `distributed`: collectives by size, beside those of the library that moves the data.

The measurement is the script `ranks.py`, which `treadle launch` runs as several processes.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treadle.cli.bench.harness import Figure
from treadle.core.errors import DistributedError
from treadle.distributed.launching import Launch, Shown, run
from treadle.runtime.devices import Device, devices

_FEWEST = 2  # processes
_STOPPED = 128  # and a signal's number: the status of a launch that was stopped by it


def measurements(device: Device, small: bool = False) -> list[Callable[[], list[Figure]]]:
    """What the suite measures: all collectives in one launch."""
    same = [each for each in devices() if each.id.partition(":")[0] == device.id.partition(":")[0]]
    has_cards = device.traits.cuda_memory and len(same) >= _FEWEST
    count, backend = (len(same), "nccl") if has_cards else (_FEWEST, "mpi")
    kind = device.id.partition(":")[0]
    return [
        lambda: launched(count, backend, kind, ["-m", "treadle.cli.bench.ranks", str(int(small))])
    ]


def launched(count: int, backend: str, device: str, script: Sequence[str]) -> list[Figure]:
    """The figures that a script writes as JSON to the file of its last argument, on rank 0.
    DistributedError if a process fails."""
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="treadle-") as folder:
        file = Path(folder) / "figures.json"
        launch = Launch(count, [*script, str(file)], backend, variables={"TREADLE_DEVICE": device})
        status = run(launch, said.append, Shown(sys.stderr, sys.stderr))
        found: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    if status > _STOPPED:
        signal.raise_signal(status - _STOPPED)
    if status or not found:
        raise DistributedError(f"distributed: {'; '.join(said) or 'no figures'}")
    return [Figure(**each) for each in found]
