"""`python -m benchmarks.library DEVICE [THEME …]`: some themes alone, on the screen alone."""

from __future__ import annotations

import argparse

import treadle as td
from benchmarks import harness
from benchmarks.library import THEMES, cases
from benchmarks.library.case import measure

parser = argparse.ArgumentParser(prog="python -m benchmarks.library", description=__doc__)
parser.add_argument("device", help="cpu, cuda, webgpu or dawn")
parser.add_argument("theme", nargs="*", help=f"of {', '.join(THEMES)}; all if none is named")
chosen = parser.parse_args()
device = td.device(chosen.device)
for case in cases(chosen.theme or THEMES):
    if chosen.device in case.devices:
        harness.show(measure(f"library-{chosen.device}", device, case))
