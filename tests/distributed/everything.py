"""Run by `treadle launch` on some number of ranks: the checks of this folder."""

import os
import sys

import derived
import drawn
import trained

import treadle as td
from treadle import distributed as dist

device, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if device.startswith("cuda"):  # several ranks on one card, which NCCL takes for several hosts
    os.environ["NCCL_HOSTID"] = os.environ["RANK"]
dist.init()
assert td.default_device().id.startswith(device), td.default_device().id
drawn.run(seed, count)
derived.refused()
derived.unordered()
if device != "webgpu":
    derived.gradients(seed)
    derived.compiled(seed)
    trained.run(seed)
print("right", dist.rank(), "of", dist.size(), "through", dist.backend())
