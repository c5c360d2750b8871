"""Run by `treadle launch`: layers whose work is shared out among ranks."""

import os
import sys
from functools import partial

import divided
import normed
import piped

from treadle import distributed as dist

seed, *parts = sys.argv[1:]
if "NCCL_SOCKET_IFNAME" in os.environ:  # several ranks on one card, which NCCL takes for hosts
    os.environ["NCCL_HOSTID"] = os.environ["RANK"]
dist.init()
CHECKS = {
    "divided": divided.light,
    "all divided": divided.full,
    "normed": partial(normed.run, is_full=False),
    "all normed": partial(normed.run, is_full=True),
    "piped": partial(piped.pipeline, is_full=False),
    "all piped": partial(piped.pipeline, is_full=True),
    "piped copies": piped.with_data_parallel,
}
for part in parts:
    CHECKS[part](int(seed))
print("right", dist.rank(), "of", dist.size(), "through", dist.backend())
