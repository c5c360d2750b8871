"""Drawn corner cases of CUDA C++ compute what g++ computes."""

from __future__ import annotations

import pytest
from hypothesis import settings

import treadle as td
from tests.fuzz.corner_runs import expected, run
from tests.fuzz.cuda_corners import THEMES, drawn

pytestmark = pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")

_BATCH = 50
_BATCHES = max(1, settings.default.max_examples // 200)
_ON_GPU = 5  # of a batch: one of each theme


@pytest.mark.timeout(600)
@pytest.mark.parametrize("batch", range(_BATCHES))
def test_corner_cases(batch: int, tmp_path) -> None:
    cases = [drawn(seed) for seed in range(batch * _BATCH, (batch + 1) * _BATCH)]
    numbers = expected(cases, tmp_path)
    cpu = td.device("cpu")
    for seed, (case, wanted) in enumerate(zip(cases, numbers, strict=True), batch * _BATCH):
        assert run(cpu, [case], [wanted]) == [wanted], f"seed {seed}\n{case.text}"


@pytest.mark.parametrize("name", ["webgpu", "dawn"])
def test_on_gpus(name: str, tmp_path) -> None:
    cases = [drawn(seed) for seed in range(1000, 1000 + _ON_GPU)]
    assert len({case.theme for case in cases}) == len(THEMES)
    numbers = expected(cases, tmp_path)
    assert run(td.device(name), cases, numbers) == numbers
