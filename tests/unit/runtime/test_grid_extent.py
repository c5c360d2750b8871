"""A thread's index fits an i32: kernels are compiled without checks that this makes needless."""

from __future__ import annotations

import pytest

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.runtime.launch import check_extent


def test_grids_of_2_to_the_31_threads_are_refused() -> None:
    check_extent("k", Dim3(2**31 // 64 - 1, 2**20, 1), Dim3(64, 16))
    for grid in (Dim3(2**31 // 64), Dim3(1, 2**27), Dim3(1, 1, 2**31)):
        with pytest.raises(LaunchError, match="threads or more along one axis"):
            check_extent("k", grid, Dim3(64, 16))
