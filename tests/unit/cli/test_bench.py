"""`treadle bench`: what it says and writes. Never how fast it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle.cli.bench import arrays, command, harness
from treadle.cli.bench.expressions import full_sum, softmax
from treadle.cli.bench.harness import Figure
from treadle.core.errors import TreadleError

BANDWIDTH = [
    "gelu_tanh(x * w + b), 10007 float32",
    "mean(gelu_tanh(x * w + b)), 10007 float32",
    "sum of 10007 float32",
    "sum along axis 0 of 101 x 101",
    "sum along axis 1 of 101 x 101",
    "softmax of 67 x 67",
    "layer norm of 67 x 67",
    "two steps of Gray-Scott by rolls, 33 x 33",
]


def treadle(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "treadle", *map(str, arguments)],
        capture_output=True, text=True, env=os.environ, timeout=110, check=False,
    )  # fmt: skip


def test_arrays_on_the_cpu(tmp_path):
    file = tmp_path / "figures.json"
    done = treadle("bench", "arrays", "--small", "--device", "cpu", "--json", file)
    assert done.returncode == 0, done.stderr
    assert "softmax of 67 x 67" in done.stdout
    told = json.loads(file.read_text())
    assert told["machine"] == harness.machine()
    assert "llvmlite" in told["cpu"]
    figures = {entry["name"]: entry for entry in told["figures"]}
    assert list(figures)[: len(BANDWIDTH)] == BANDWIDTH
    for name in BANDWIDTH:
        entry = figures[name]
        assert (entry["suite"], entry["unit"], entry["peer"]) == ("arrays", "GB/s", "copy")
        assert entry["ours"] > 0
        assert entry["peers"] > 0
        assert entry["others"][0][0] == "NumPy"
    elements = {"sum of 10007 float32": 10007, "softmax of 67 x 67": 2 * 67 * 67}
    for name, count in elements.items():
        entry = figures[name]
        assert entry["ours"] * entry["seconds"] * 1e9 == pytest.approx(4 * count)
    assert [e["unit"] for e in told["figures"][len(BANDWIDTH) :]] == ["µs", "µs", "µs", "MiB"]
    memory = told["figures"][-1]
    assert 0 < memory["ours"] < 4 * arrays.SMALL.memory / 2**20


def test_arrays_fit_what_a_kernel_sees():
    class Small:
        limits = td.device("cpu").limits.__class__(max_binding_size=1 << 27)

    shapes = [one.shape for one in arrays.the_expressions(arrays.FULL, Small())]
    assert max(4 * int(np.prod(shape)) for shape in shapes) == 1 << 26
    assert (4096, 4096) in shapes


def test_wrong_usage():
    done = treadle("bench", "speed")
    assert done.returncode == 2
    assert "'speed' is not one of arrays, programs" in done.stderr


def test_a_wrong_result_is_not_timed():
    one = full_sum(1000)
    array = one.arrays()[0]
    other = array.copy()
    other[500] += 1.0
    arrays.check(one, [td.asarray(array, device="cpu")], [array])
    with pytest.raises(TreadleError, match=r"sum of 1000 float32 is wrong: .* relative error"):
        arrays.check(one, [td.asarray(other, device="cpu")], [array])


def test_a_result_with_nan_is_wrong():
    one = softmax(5)
    array = one.arrays()[0]
    array[2, 3] = np.nan
    right = one.arrays()[0]
    with pytest.raises(TreadleError, match="relative error nan"):
        arrays.check(one, [td.asarray(array, device="cpu")], [right])


def test_one_failure_leaves_the_other_figures(monkeypatch, capsys):
    def wrong():
        raise TreadleError("softmax is wrong")

    figure = Figure("arrays", "sum", "GB/s", 12.0)
    monkeypatch.setitem(command.SUITES, "arrays", lambda device, small: [wrong, lambda: [figure]])
    with pytest.raises(TreadleError, match="softmax is wrong"):
        command.run_bench(["arrays"], "cpu", None, True)
    assert "12 GB/s" in capsys.readouterr().out


def test_peak_beyond_counts_what_was_taken_in_between():
    device = td.device("cpu")
    x = td.ones(1 << 16, device=device).realize()

    def run():
        for _ in range(3):
            x.copied().realize()

    assert arrays.peak_beyond(device, run) == x.nbytes


def test_the_middle_of_several_runs():
    runs = [Figure("s", "f", "GB/s", ours, 0.5, True, "copy", 10.0, True) for ours in (9, 1, 4)]
    (middle,) = harness.medians([*runs])
    assert (middle.ours, middle.measure, middle.met) == (4, 0.4, False)


def test_collectives_in_processes(tmp_path):
    file = tmp_path / "figures.json"
    done = treadle("bench", "distributed", "--small", "--device", "cpu", "--json", file)
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())["figures"]
    kinds = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"]
    assert [each["name"].split()[0] for each in figures] == [k for k in kinds for _ in range(2)]
    for each in figures:
        assert (each["unit"], each["peer"]) == ("s", "mpi4py")
        assert each["ours"] > 0
        assert each["peers"] > 0
