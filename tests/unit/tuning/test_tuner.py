"""The autotuner on the CPU: its budget, what it rejects, what it keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.ptx_device import ptx_device
from tests.support.tuned_copies import COPIES, RIGHT, WRONG, copies, workload_of
from treadle.kernels import best_tiles, tiles, tuned_attention, tuned_convolutions, tuned_products
from treadle.kernels.best_tiles import Choice, candidate_of, choice_for, choice_from, kind_of, tuned
from treadle.kernels.convolve import TUNED
from treadle.kernels.device_code.convolution import Tile
from treadle.kernels.machine import Machine, machine_of
from treadle.kernels.tiles import Problem, tile_for
from treadle.kernels.tuned_attention import ATTENTION, Heads
from treadle.kernels.tuned_convolutions import CONVOLUTIONS, Layer
from treadle.kernels.tuned_families import FAMILIES
from treadle.kernels.tuned_products import PRODUCTS, tiles_of
from treadle.kernels.tuned_tiles import best_tile
from treadle.runtime import disk_cache, settings
from treadle.tuning import choices, tuner
from treadle.tuning.records import Candidate, Result, are_close


@pytest.fixture(autouse=True)
def cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[td.Device]:
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    device = td.device("cpu")
    choices.choices_of(device).forget()
    yield device
    choices.choices_of(device).forget()


def ticking(step: float) -> Callable[[], float]:
    """A clock that goes on whenever it is read."""
    now = [0.0]

    def read() -> float:
        now[0] += step
        return now[0]

    return read


def test_a_wrong_candidate_is_rejected_and_named(cpu, caplog):
    found = [*tuner.tune(cpu, [(copies(), workload_of(1000))], 60.0)]
    (outcome,) = found
    assert outcome.rejected == (WRONG,)
    assert outcome.result is not None
    assert outcome.result.chosen in RIGHT
    assert outcome.result.complete
    assert outcome.result.tried == outcome.candidates == len(RIGHT) + 1
    assert f"cpu: {WRONG} computes copies of 1000 wrongly: it is not used" in caplog.text


def test_a_wrong_first_guess_gives_nothing(cpu):
    """Results that change from run to run cannot be compared."""
    calls = iter(range(100))
    family = copies(lambda values, _: values + next(calls))
    (outcome,) = tuner.tune(cpu, [(family, workload_of(10))], 60.0)
    assert outcome.result is None
    assert "does not give the same result twice" in outcome.failure
    assert choices.result_of(cpu, workload_of(10).problem) is None


def test_the_budget(cpu):
    """A problem has its share of the time; those for which none is left are left out; the next run
    goes on with what was not done."""
    family = replace(copies(), workloads=lambda _: [workload_of(10 * 4**at) for at in range(4)])
    todo = tuner.workloads_of(cpu, [family])
    assert len(todo) == 4
    outcomes = [*tuner.tune(cpu, todo, 8.0, clock=ticking(1.0))]
    assert 0 < len(outcomes) < 4
    for each in outcomes:
        assert each.result is not None
        assert not each.result.complete
        assert each.result.tried < each.candidates
    seen = []
    progress = tuner.Progress(lambda at: seen.append((at.problem, at.problems, at.candidate)))
    again = [*tuner.tune(cpu, tuner.workloads_of(cpu, [family]), 1e6, progress)]
    assert [each.result.complete for each in again] == [True] * 4
    assert seen[0][:2] == (1, 4)
    assert tuner.workloads_of(cpu, [family]) == []
    assert len(tuner.workloads_of(cpu, [family], again=True)) == 4


def test_a_short_run_keeps_what_is_shipped(cpu, monkeypatch):
    """It is measured whatever the budget, so that a first guess does not take its place."""
    workload = workload_of(1000)
    shipped = RIGHT[-1]
    monkeypatch.setattr(choices, "shipped_for", lambda name, problem: shipped)
    asked: list[Candidate] = []
    real = tuner._try

    def noted(device, bench, candidate, is_right, trial):
        asked.append(candidate)
        real(device, bench, candidate, is_right, trial)
        trial.times[candidate] = 1.0 if candidate == shipped else 2.0

    monkeypatch.setattr(tuner, "_try", noted)
    monkeypatch.setattr(tuner, "medians", lambda batches: [1.0, 2.0][: len(batches)][::-1])
    (outcome,) = tuner.tune(cpu, [(copies(), workload)], 1.5, clock=ticking(1.0))
    assert asked == [RIGHT[0], shipped]
    assert outcome.result is not None
    assert outcome.result.chosen == shipped
    assert not outcome.result.complete


def test_results_are_kept_by_device_version_and_edition(cpu, monkeypatch):
    problem = workload_of(100).problem
    kept = Result(RIGHT[1], 1e-3, 2e-3, 3, True)
    choices.keep(cpu, problem, kept)
    assert choices.result_of(cpu, problem) == kept
    assert choices.choices_of(cpu).find(problem, None) == RIGHT[1]
    assert choices.result_of(cpu, replace(problem, edition=2)) is None
    monkeypatch.setattr(choices, "__version__", "another")
    assert choices.result_of(cpu, problem) is None
    monkeypatch.undo()
    monkeypatch.setattr(choices, "identity", lambda device: "another driver")
    assert choices.result_of(cpu, problem) is None


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"chosen": 1}', b"\xff", b"[1, 2]"])
def test_damaged_results_are_not_used(cpu, damage):
    problem = workload_of(100).problem
    disk_cache.save(choices._key(cpu, problem), damage)
    assert choices.result_of(cpu, problem) is None
    assert choices.choices_of(cpu).find(problem, None) is None


def test_killed_half_way(cpu, tmp_path):
    """What was found before is there and whole, and the rest is tuned by the next run."""
    code = """
import os, signal, sys, time
import treadle as td
from tests.support.tuned_copies import copies, workload_of
from treadle.tuning import tuner
device, family = td.device("cpu"), copies()
todo = [(family, workload_of(10 * 4**at)) for at in range(50)]
for outcome in tuner.tune(device, todo, 600.0):
    print(outcome.workload.label, flush=True)
"""
    environment = {**os.environ, "TREADLE_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        done = [process.stdout.readline().strip() for _ in range(2)]
        process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    assert done == ["copies of 10", "copies of 40"]
    for at in range(2):
        result = choices.result_of(cpu, workload_of(10 * 4**at).problem)
        assert result is not None
        assert result.chosen in RIGHT
    family = replace(copies(), workloads=lambda _: [workload_of(10 * 4**at) for at in range(50)])
    left = len(tuner.workloads_of(cpu, [family]))
    assert 40 < left < 49


# --- what planners make of it ---------------------------------------------------------------------

CHOSEN = Candidate("registers", (3, 32, 64, 8, 1, 1, 1, 16, 0, 1))


def test_the_planner_takes_what_was_found(cpu, monkeypatch):
    problem = Problem(td.float32, 1, 1000, 900, 700)
    near = problem._replace(rows=1100)
    machine = machine_of(cpu)
    first = tile_for(machine, problem)
    assert choice_for(machine, problem) == (first, 0)
    known = tuned(problem, first)
    assert known is not None
    choices.keep(cpu, known, Result(CHOSEN, 1e-3, 2e-3, 3, True))
    for each in (problem, near):
        found = choice_for(machine, each)
        assert candidate_of(found).numbers[:10] == CHOSEN.numbers
        assert found.tile.guarded is True
    assert choice_for(machine, problem._replace(rows=100)).tile != found.tile
    monkeypatch.setattr(settings, "tune", "0")
    choices.choices_of(cpu).forget()
    assert choice_for(machine, problem) == (first, 0)


@pytest.mark.parametrize(
    "candidate",
    [
        Candidate("registers", ()),
        Candidate("registers", (32, 32)),
        Candidate("unknown", CHOSEN.numbers),
        Candidate("fragments", (0, 128, 128, 64, 64, 64, 3, 1)),  # not on this machine
        Candidate("registers", (0, 1024, 1024, 8, 1, 1, 1, 16, 1, 0)),  # too many threads
    ],
)
def test_what_the_machine_does_not_allow_is_not_taken(cpu, candidate):
    problem = Problem(td.float32, 1, 1000, 900, 700)
    machine = machine_of(cpu)
    first = tile_for(machine, problem)
    assert choice_from(machine, problem, first, candidate) == (first, 0)


def test_groups_of_threads_are_tuned_where_they_multiply():
    """On Hopper, for factors of which boxes can be copied; what is found says nothing of others."""
    offered = frozenset({"f16"})
    card = Machine(
        1024, 227 << 10, 32, matrix_products=offered, group_products=offered, multiprocessors=132
    )
    problem = Problem(td.float16, 1, 4096, 4096, 4096, boxes=True)
    other = problem._replace(boxes=False)
    guesses = [tile_for(card, each) for each in (problem, other)]
    assert [kind_of(each) for each in guesses] == ["groups", "fragments"]
    known = [tuned(each, guess) for each, guess in zip((problem, other), guesses, strict=True)]
    assert known[0] != known[1]
    for tile in tiles_of(card, "groups"):
        candidate = candidate_of(Choice(tile))
        assert choice_from(card, problem, guesses[0], candidate) == (tile, 0)
        assert choice_from(card, other, guesses[1], candidate) == (guesses[1], 0)


def test_problems_that_come_up_are_measured_if_asked(cpu, monkeypatch):
    asked = []

    def measure(device, family, sizes):
        asked.append((device, family.name, sizes))
        return CHOSEN

    monkeypatch.setattr(choices, "_families", lambda: FAMILIES)
    monkeypatch.setattr(choices, "_measure", measure)
    problem, machine = Problem(td.float32, 1, 333, 900, 700), machine_of(cpu)
    choice_for(machine, problem)
    assert asked == []  # not unless asked
    choices.choices_of(cpu).forget()
    monkeypatch.setattr(settings, "tune", "1")
    graph = td.Graph(cpu)
    with graph.capture():  # where nothing can be measured
        assert choice_for(machine, problem).tile == tile_for(machine, problem)
    for _ in range(2):
        assert candidate_of(choice_for(machine, problem)).numbers[:10] == CHOSEN.numbers
    assert asked == [(cpu, "products", problem)]


def test_the_shipped_table():
    """Every entry is a choice that some device takes."""
    large = Machine(1024, 227 << 10, 32, matrix_products=frozenset({"f16", "bf16"}))
    for name, found in choices.shipped().items():
        assert name.split()[0] in ("cuda", "webgpu", "dawn")
        for text, candidate in found.items():
            family, edition, short, kind, *powers = text.split()
            assert candidate.kind == kind
            if family != best_tiles.FAMILY:
                assert family in {each.name for each in FAMILIES}
                continue
            assert edition == str(best_tiles._EDITION)
            dtype = {"f16": td.float16, "f32": td.float32, "i8": td.int8}[short]
            problem = Problem(dtype, *(2 ** int(power) for power in powers))
            first = tile_for(large, problem)
            if kind_of(first) == kind:  # else it is of a device that has no such tiles
                known = tuned(problem, first)
                assert known is not None
                assert known.name == text
                taken = candidate_of(choice_from(large, problem, first, candidate)).numbers
                assert taken[: len(candidate.numbers)] == candidate.numbers
    assert choices.shipped_for("cuda NVIDIA H1000", workload_of(10).problem) is None


def test_candidates_compute_the_same():
    """By drawn tiles, on the PTX evaluator."""
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    with ptx_device("sm_90") as device:
        for family, workload in (
            (PRODUCTS, PRODUCTS.workload(device, Problem(td.float16, 1, 33, 48, 136))),
            (PRODUCTS, PRODUCTS.workload(device, Problem(td.float32, 1, 33, 48, 136))),
            (PRODUCTS, PRODUCTS.workload(device, _along(td.uint8, other=td.int8))),
            (CONVOLUTIONS, tuned_convolutions.workload_of(Layer(2, 5, 9, 7, 3, 2))),
            (CONVOLUTIONS, tuned_convolutions.workload_of(Layer(2, 5, 9, 7, 3, 2, "f16"))),
            (ATTENTION, tuned_attention.workload_of(Heads(2, 33, 20))),
            (ATTENTION, tuned_attention.workload_of(Heads(2, 33, 20, "f16"))),
        ):
            assert workload is not None
            bench = family.prepare(device, workload)
            bench.run(bench.first, 0)
            reference = bench.result()
            assert np.any(reference)
            near = bench.near(bench.first) or bench.candidates
            for each in (rng.choice(len(bench.candidates)), -1):
                candidate = bench.candidates[each] if each >= 0 else near[rng.integers(len(near))]
                bench.clear()
                bench.run(candidate, 0)
                assert bench.agrees(reference, bench.result()), (workload.label, candidate)
        found = tiles_of(machine_of(device), "fragments")
        assert len(found) == len(set(found))


def _along(dtype: td.DType, **facts: Any) -> Problem:
    """A product of factors that lie along the inner axis."""
    return Problem(dtype, 1, 40, 72, 144, across=(False, False), **facts)


@pytest.mark.parametrize("name", ["tf32", "i8"])
def test_groups_of_threads_compute_the_same(monkeypatch, name):
    """TF32 and bytes as Hopper multiplies them, among the suite's problems where it does."""
    offered = frozenset({"tf32", "i8"})
    real = tuned_products.machine_of
    monkeypatch.setattr(
        tuned_products, "machine_of", lambda device: replace(real(device), group_products=offered)
    )
    monkeypatch.setattr(tiles, "_FEWEST_GROUPS", 1)
    with ptx_device("sm_90") as device:
        labels = [each.label for each in PRODUCTS.workloads(device)]
        assert {"tf32 256 x 256 x 256", "int8 256 x 256 x 256"} <= set(labels)
        dtype = td.float32 if name == "tf32" else td.int8
        problem = _along(dtype, rounded=name == "tf32", boxes=True)
        workload = PRODUCTS.workload(device, problem)
        assert workload is not None
        bench = PRODUCTS.prepare(device, workload)
        assert bench.first.kind == "groups"
        results = []
        for candidate in (bench.first, bench.candidates[-1]):
            bench.clear()
            bench.run(candidate, 0)
            results.append(bench.result())
        assert np.any(results[0])
        np.testing.assert_array_equal(*results)


def test_a_table_of_tiles_takes_what_was_found(cpu):
    """One that is not of products: what was measured, what is being measured, the first guess."""
    first, other = Tile(32, 32, 8, 4, 4), Tile(64, 64, 8, 4, 8)
    sizes = (64, 576, 5000)
    assert best_tile(cpu, TUNED, "f32", sizes, first) == first
    with choices.forcing("convolutions", TUNED.candidate(other)):
        assert best_tile(cpu, TUNED, "f32", sizes, first) == other
        assert choices.forced("products") is None
    choices.keep(
        cpu, TUNED.problem("f32", sizes), Result(TUNED.candidate(other), 1.0, 2.0, 2, True)
    )
    assert best_tile(cpu, TUNED, "f32", (60, 600, 4500), first) == other
    assert best_tile(cpu, TUNED, "f64", sizes, first) == first
    huge = Tile(1024, 1024, 8, 1, 1)
    choices.keep(cpu, TUNED.problem("f32", sizes), Result(TUNED.candidate(huge), 1.0, 2.0, 2, True))
    assert best_tile(cpu, TUNED, "f32", sizes, first) == first


def test_close_results():
    x = np.random.default_rng(1).standard_normal(100)
    assert are_close(x, x * 1.001)
    assert not are_close(x, x + 1)
    assert not are_close(x, np.where(x == x[5], np.nan, x))
    assert are_close(np.zeros(0), np.zeros(0))


def test_families_have_their_own_names():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert COPIES not in {family.name for family in FAMILIES}
