"""`python -m benchmarks.shapes [DEVICE …]`: which block suits `add`, and which tile the product.

What is found goes by hand into `treadle.kernels.tiles`.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace

import treadle as td
from benchmarks.__main__ import DEVICES
from benchmarks.harness import device_seconds
from benchmarks.matmul import CANDIDATES
from benchmarks.workloads import ADD, Workload, add, matmul_workload


def candidates() -> Iterator[tuple[str, Workload, float]]:
    """What is tried: its name, and the work of a run in 10^12 bytes or operations."""
    for block in (128, 256, 512, 1024):
        prepare = functools.partial(add, block=block)
        yield f"add, blocks of {block}", replace(ADD, prepare=prepare), 12e-12 * ADD.size
    for size, tiles in CANDIDATES.items():
        for tile in tiles:
            workload = replace(matmul_workload(tile), size=size)
            yield f"{size}^3 {tuple(tile)}", workload, 2e-12 * size**3


def main() -> None:
    """Time all candidates on the devices named, or on all that are there."""
    for spec in sys.argv[1:] or [name for name in DEVICES if td.is_available(name)]:
        with td.use_device(spec) as device:
            print(f"{device.id}: {device.name}, {device.driver}")
            for name, workload, work in candidates():
                try:
                    run, check = workload.ready()
                    run()
                    check()
                    print(
                        f"  {name:60} {work / device_seconds(device, run)[0]:6.2f} T/s", flush=True
                    )
                except Exception:  # noqa: BLE001 - the other candidates go on
                    traceback.print_exc()


if __name__ == "__main__":
    main()
