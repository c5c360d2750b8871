"""The figures that are shown are those of the result files that lie in the repository."""

from __future__ import annotations

import doctest
import json
from dataclasses import asdict

import pytest

from benchmarks import __main__ as command
from benchmarks import host, table
from benchmarks.harness import Figure, keep

PAGE = f"# A page\n\n{table.BEGIN}old text\n{table.END}\nmore\n"


@pytest.mark.parametrize(("path", "library"), [(table.README, False), (table.PAGE, True)])
def test_pages_show_the_committed_results(path, library):
    page = path.read_text(encoding="utf-8")
    assert page == table.page_with_table(page, table.read_results(), library), (
        "run `python -m benchmarks.table`"
    )


def test_examples():
    for module in (table, host, command):
        assert doctest.testmod(module).failed == 0


def test_without_results(tmp_path):
    assert table.page_with_table(PAGE, table.read_results(tmp_path)) == (
        f"# A page\n\n{table.BEGIN}{table.NONE_YET}{table.END}\nmore\n"
    )


def test_what_the_harness_keeps_is_what_the_table_shows(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.RESULTS", tmp_path)
    saxpy = Figure("cpu", "saxpy", "GB/s", 38.04, 0.9, True, "copy", 40.0, True)
    path = keep([saxpy], "cpu", {"machine": "Some CPU, 2 cores", "card": ""})
    keep(
        [Figure("gpu", "add", "GB/s", 2871.3)],
        "gpu",
        {"machine": "Other CPU, 16 cores", "card": "H100", "webgpu": "H100 (580)"},
    )
    path.write_text(json.dumps(json.loads(path.read_text()) | {"date": "2026-01-01"}))

    assert table.tables(table.read_results(tmp_path)).splitlines()[:7] == [
        "**Some CPU, 2 cores**",
        "",
        "Measured 2026-01-01. In brackets: ours / peer.",
        "",
        "| suite | figure | treadle | peer, same run | target |",
        "|---|---|---|---|---|",
        "| cpu | saxpy | 38 GB/s | copy 40 GB/s (0.95) | at least 0.9 × copy |",
    ]
    text = table.tables(table.read_results(tmp_path))
    assert "**H100, Other CPU, 16 cores**" in text
    assert "WebGPU on H100 (580)" in text
    assert "| gpu | add | 2870 GB/s |  |  |" in text


def test_a_row_shows_every_peer_and_a_round_target():
    others = (("NumPy", 0.169), ("PyTorch", 1.0))
    mean = Figure("arrays-cpu", "mean", "GB/s", 49.0, 2 / 3, True, "read", 50.0, True, "", others)
    result = {
        "date": "2026-01-01",
        "machine": "M",
        "figures": [json.loads(json.dumps(asdict(mean)))],
    }
    assert table.tables([result]).splitlines()[-1] == (
        "| arrays-cpu | mean | 49 GB/s | read 50 GB/s (0.98), NumPy 0.169 GB/s, PyTorch 1 GB/s "
        "| at least 0.667 × read |"
    )


def test_the_newest_figure_counts():
    def result(date, ours):
        figures = [{"suite": "cpu", "name": "launch", "unit": "µs", "ours": ours, "target": 8}]
        return {"date": date, "machine": "M", "figures": figures}

    text = table.tables([result("2026-01-01", 9.0), result("2026-02-01", 7.0)])
    assert "| cpu | launch | 7 µs |  | at most 8 µs |" in text
    assert "9" not in text.split("|---|---|---|---|---|")[1]
    assert "Measured 2026-01-01 to 2026-02-01" in text


def test_a_device_stands_for_its_suites(monkeypatch):
    monkeypatch.setattr(command, "fits", lambda suite: suite != "gpu-webgpu")
    monkeypatch.setattr("treadle.device", lambda name: None)
    assert command.suites_of(["cuda"]) == [
        "launch-cuda", "gpu-cuda", "arrays-cuda", "library-cuda", "compiled-cuda",
        "training-cuda", "compile-cuda", "cuda_cpp-cuda", "ptx",
    ]  # fmt: skip
    assert command.suites_of(["webgpu", "cpu"]) == [
        "launch-webgpu", "arrays-webgpu", "library-webgpu", "compiled-webgpu", "training-webgpu",
        "compile-webgpu", "cuda_cpp-webgpu", "cpu",
    ]  # fmt: skip


def test_a_failed_measurement_leaves_the_others(capsys):
    failed = []
    figure = Figure("ptx", "saxpy", "runs/s", 1.0)

    def wrong():
        raise AssertionError("relative error 1, at most 1e-6 is right")

    figures = [f for one in (wrong, lambda: [figure]) for f in command.run(one, failed, "ptx")]
    assert figures == [figure]
    assert failed == ["ptx: AssertionError: relative error 1, at most 1e-6 is right"]
    assert "Traceback" in capsys.readouterr().err
