"""`treadle tune` and `treadle kernels` on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.tuned_copies import RIGHT, copies, workload_of
from tools.tuned import merged, written
from treadle.cli import app, tune
from treadle.runtime import settings


@pytest.fixture(autouse=True)
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies as the only suite, and an own cache."""
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path / "cache"))
    family = replace(copies(), workloads=lambda _: [workload_of(100), workload_of(1000)])
    monkeypatch.setattr(tune, "SUITES", {"copies": family})


def run(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(app.app, [*arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.output
    return done.output


def test_tuning_and_the_table(tmp_path):
    file = tmp_path / "found.json"
    shown = run("tune", "--device", "cpu", "--seconds", "20", "--json", str(file))
    assert "copies of 1000" in shown
    assert "6 of 6, 1 wrong" in shown
    assert "All 2 problems are tuned" in shown
    assert "are tuned already" in run("tune", "--device", "cpu")
    listed = run("tune", "--device", "cpu", "--list", "copies")
    assert listed.count("this machine") == 2
    content = json.loads(file.read_text())
    assert content["device"].startswith("cpu ")
    names = [workload_of(size).problem.name for size in (100, 1000)]
    assert list(content["results"]) == names
    for each in content["results"].values():
        assert each["choice"][1] in [one.numbers[0] for one in RIGHT]
        each["gain"] = 2.0
    table = merged({"devices": []}, content, ["cpu another"])
    assert json.loads(written(table)) == table
    assert list(table["devices"][0]["choices"]) == sorted(names)
    content["results"][names[0]]["gain"] = 1.01  # not worth an entry any more
    assert list(merged(table, content, [])["devices"][0]["choices"]) == [names[1]]


def test_nothing_to_choose(monkeypatch):
    monkeypatch.setattr(tune, "SUITES", {"copies": copies()})
    assert "nothing to choose on cpu" in run("tune", "--device", "cpu")
    assert "first guesses are used" in run("tune", "--device", "cpu", "--list")


def test_what_cannot_be(tmp_path, monkeypatch):
    assert "'sorts' is not one of copies" in run("tune", "sorts", status=2)
    run("tune", "--seconds", "0", status=2)
    monkeypatch.setattr(settings, "disk_cache", False)
    done = CliRunner().invoke(app.app, ["tune", "--device", "cpu"])
    assert "results are kept in the cache folder" in str(done.exception)


def test_a_folder_that_cannot_be_written_to(monkeypatch):
    """It is refused before anything is measured, however that shows."""
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.TemporaryFile", _refusing)
        done = CliRunner().invoke(app.app, ["tune", "--device", "cpu"])
    assert done.exit_code == 1
    assert "cannot be written to: TREADLE_CACHE_DIR chooses another one" in str(done.exception)


def _refusing(**_):
    raise PermissionError(13, "not here")


def test_kernels(tmp_path):
    assert "causal-attention" in run("kernels")
    assert "causal-attention" in run("kernels", "--list")
    file = tmp_path / "swiglu.ptx"
    run("kernels", "swiglu", "--dtype", "f32", "--sm", "90", "-o", str(file))
    assert file.read_text().startswith("// swiglu: silu(gate) * up\n// f32, for an NVIDIA card")
    assert "nothing to report" in run("explain", str(file))
    run("kernels", "quantized", "-o", str(tmp_path / "q.ptx"))
    assert {each.name for each in tmp_path.glob("q.*.ptx")} == {"q.pack.ptx", "q.multiply.ptx"}
    assert "there is no kernel 'sort'" in run("kernels", "sort", status=2)
    run("kernels", "gemm", "--target", "spirv", status=2)
