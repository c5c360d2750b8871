"""`treadle tune` and `treadle kernels` on the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import treadle as td
from tests.support.tuned_copies import RIGHT, copies, workload_of
from tools.tuned import merged, written
from treadle.cli import app, tune
from treadle.runtime import settings
from treadle.tuning import choices
from treadle.tuning.records import Result


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
    assert "2 results" in listed
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


def test_all_results_are_listed(monkeypatch):
    """Those of problems that no suite has, of present editions, and those that are shipped, unless
    something was measured here."""
    device = td.device("cpu")
    asked, other, older = workload_of(100).problem, workload_of(30).problem, workload_of(10).problem
    older = replace(older, edition=older.edition + 7)
    for problem in (asked, other, older):
        choices.keep(device, problem, Result(RIGHT[0], 1.0, 1.5, 3, True))
    names = [workload_of(size).problem.name for size in (100, 1000, 10**6)]
    shipped = {
        "names": ["cpu"], "gains": {names[1]: 1.25},
        "choices": {name: [RIGHT[1].kind, *RIGHT[1].numbers] for name in names},
    }  # fmt: skip
    monkeypatch.setattr(choices, "_shipped_devices", lambda: [shipped])
    found = tune.known_results(device, list(tune.SUITES.values()))
    assert [(each.label, each.source, each.gain) for each in found] == [
        ("copies of 100", "this machine", 1.5),
        (other.name, "this machine", 1.5),
        ("copies of 1000", "treadle", 1.25),
        (names[2], "treadle", None),
    ]
    listed = run("tune", "--device", "cpu", "--list")
    assert "4 results: 3 are faster than the first guess, 1.41 times in the mean, 1.50" in listed
    assert "not noted" in listed


def test_nothing_to_choose(monkeypatch):
    monkeypatch.setattr(tune, "SUITES", {"copies": copies()})
    assert "nothing to choose on cpu" in run("tune", "--device", "cpu")
    assert "first guesses are used" in run("tune", "--device", "cpu", "--list")


def test_suites_that_have_nothing_are_named(tmp_path, monkeypatch):
    empty = replace(copies(), workloads=lambda _: [])
    monkeypatch.setattr(tune, "SUITES", {**tune.SUITES, "none": empty})
    file = tmp_path / "found.json"
    shown = run("tune", "none", "--device", "cpu", "--json", str(file))
    assert "nothing to choose on cpu" in shown
    assert json.loads(file.read_text())["results"] == {}
    shown = run("tune", "none", "--device", "cpu", "--list")
    assert "Nothing was measured of none on cpu" in shown
    monkeypatch.setattr(tune, "_checked", lambda *_: td.device("webgpu"))
    assert "none has no workload for it" in run("tune", "none")


def test_a_stop_shows_what_was_found(tmp_path, monkeypatch):
    whole = tune.tuner.tune

    def stopping(*arguments):
        yield next(whole(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(tune.tuner, "tune", stopping)
    file = tmp_path / "found.json"
    shown = run("tune", "--device", "cpu", "--seconds", "20", "--json", str(file), status=130)
    assert "Stopped: what was found is kept" in shown
    assert "copies of 100" in shown
    assert "1 of 2 problems are not done with all candidates: run it again to go on" in shown
    assert len(json.loads(file.read_text())["results"]) == 1


def test_what_cannot_be(tmp_path, monkeypatch):
    assert "'sorts' is not one of copies" in run("tune", "sorts", status=2)
    for seconds in ("0", "nan", "inf"):
        run("tune", "--seconds", seconds, status=2)
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
