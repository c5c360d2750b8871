"""`python -m benchmarks.programs DEVICE [PROGRAM …]`: some programs, on the screen alone.

`--lengths N` has N texts of different lengths go through the decoder after the first hundred.
"""

from __future__ import annotations

import argparse
import dataclasses

import treadle as td
from benchmarks import harness
from benchmarks.programs import with_targets
from treadle.cli.bench.programs import PROGRAMS
from treadle.cli.bench.programs.setting import setting_for

parser = argparse.ArgumentParser(
    prog="python -m benchmarks.programs",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument("device", help="cpu, cuda, webgpu or dawn")
parser.add_argument("program", nargs="*", choices=[*PROGRAMS, []], help="which; all if none")
parser.add_argument("--lengths", type=int, help="of texts (400 on a card, 100 elsewhere)")
chosen = parser.parse_args()
device = td.device(chosen.device)
made = setting_for(f"programs-{chosen.device}", device)
if chosen.lengths:
    first = made.sizes.lengths[0]
    room = max(made.sizes.any_length.room, first + chosen.lengths + 1)
    sizes = dataclasses.replace(
        made.sizes,
        any_length=dataclasses.replace(made.sizes.any_length, room=room),
        lengths=(first, chosen.lengths),
    )
    made = dataclasses.replace(made, sizes=sizes)
with td.use_device(device):
    for name in chosen.program or PROGRAMS:
        for part in PROGRAMS[name].measurements(made):
            harness.show(with_targets(part(), chosen.device))
