"""Layers over ranks, through `treadle launch` and MPI: one launch for many checks."""

from __future__ import annotations

import os

import pytest

from tests.distributed.test_distributed import launched


@pytest.mark.parametrize(
    ("count", "device", "parts"),
    [
        # Each rank compiles three hundred kernels on "cpu", and these are not what is tested here.
        (2, "numpy", ["divided", "piped", "normed"]),
        pytest.param(
            4, "cpu", ["all divided", "all piped", "piped copies", "all normed"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["2", "4"],
)  # fmt: skip
def test_layers(count, device, parts):
    seed = int.from_bytes(os.urandom(4), "little")
    done = launched(count, "layers.py", seed, *parts, device=device)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout}{done.stderr}"
    assert done.stdout.count("right") == count
