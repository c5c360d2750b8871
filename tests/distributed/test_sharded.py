"""`td.distributed.Sharded` and its checkpoints, through `treadle launch` and MPI."""

from __future__ import annotations

import os
import re

from tests.distributed import sharding
from tests.distributed.test_distributed import launched


def ran(count, folder, *parts, device="cpu"):
    seed = int.from_bytes(os.urandom(4), "little")
    done = launched(count, "sharding.py", device, seed, folder, *parts, device=device)
    assert done.returncode == 0, done.stdout + done.stderr
    found = sorted(re.findall(r"\[(\d)\] right (\d) of (\d)", done.stdout))
    assert found == [(str(rank), str(rank), str(count)) for rank in range(count)]


def test_training_and_checkpoints_between_numbers_of_ranks(tmp_path):
    ran(2, tmp_path, "training", "narrow", "memory", "frozen", "unreached", "refused", "save")
    ran(3, tmp_path, "short", "load")
    ran(4, tmp_path, "short", "load")
    sharding.load(tmp_path)  # of a single rank


def test_webgpu(tmp_path):
    ran(2, tmp_path, "single", device="webgpu")
