"""How the scripts of this folder begin."""

import os

from treadle import distributed as dist


def init(**options):
    """`td.distributed.init`. Several ranks may have one NVIDIA card, which `--device cuda:0` says:
    NCCL refuses that within a host, so it takes each rank for a host of its own."""
    if os.environ.get("TREADLE_DEVICE", "").startswith("cuda:"):
        os.environ["NCCL_HOSTID"] = os.environ["RANK"]
    dist.init(**options)
