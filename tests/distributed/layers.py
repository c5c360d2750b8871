"""Run by `treadle launch`: layers whose work is shared out among ranks."""

import sys
from functools import partial

import beginning
import divided
import normed
import piped

from treadle import distributed as dist

seed, *parts = sys.argv[1:]
beginning.init()
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
