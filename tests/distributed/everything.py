"""Run by `treadle launch` on some number of ranks: the checks of this folder."""

import sys

import beginning
import derived
import drawn
import grouped
import sharded
import sharded_cases
import trained

import treadle as td
from treadle import distributed as dist

device, seed, count, *parts = sys.argv[1:]
beginning.init()
assert td.default_device().id.startswith(device), td.default_device().id
drawn.run(int(seed), int(count))
derived.refused()
derived.unordered()
CHECKS = {
    "gradients": derived.gradients, "compiled": derived.compiled, "uneven": derived.uneven,
    "training": trained.runs,
    "unused": trained.unused_and_buffers, "changed": trained.changed, "samplers": trained.samplers,
    "sharded": sharded_cases.run, "programs": sharded.programs, "traces": derived.traces,
    "groups": grouped.groups, "messages": grouped.messages, "bad groups": grouped.refused,
}  # fmt: skip
for part in CHECKS if parts == ["all"] else parts:
    CHECKS[part](int(seed))
print("right", dist.rank(), "of", dist.size(), "through", dist.backend())
