"""The figures that are shown are those of the result files that lie in the repository."""

from __future__ import annotations

import doctest
import json
import subprocess
from dataclasses import asdict
from xml.etree import ElementTree as ET

import pytest

from benchmarks import __main__ as command
from benchmarks import charts, commits, curves, host, marks, programs_table, table
from benchmarks.actors_table import launch_or_actor
from benchmarks.harness import Figure, keep
from benchmarks.recorded import read_results

BEGIN, END = "<!-- benchmarks:begin -->\n", "<!-- benchmarks:end -->"
PAGE = f"# A page\n\n{BEGIN}old text\n{END}\nmore\n"


def test_pages_show_the_committed_results():
    # Which figures are marked as old changes with each commit, and is as it was when they were
    # last written.
    for path, text in table.pages(read_results()).items():
        written = marks.unmarked(path.read_text(encoding="utf-8"))
        assert written == text, "run `python -m benchmarks.table`"


def test_charts_show_the_committed_results():
    drawn = charts.charts(read_results())
    assert {path.name for path in charts.FOLDER.iterdir()} == set(drawn)
    for name, text in drawn.items():
        written = (charts.FOLDER / name).read_text(encoding="utf-8")
        assert written == text, f"{name}: run `python -m benchmarks.table`"


def test_the_front_page_has_ten_figures():
    rows = [line for line in table.ten(read_results()).splitlines() if line.startswith("| C")]
    rows += [line for line in table.ten(read_results()).splitlines() if line.startswith("| W")]
    assert len(rows) == len(table.TEN) == 10


def test_a_chart_has_every_bar_and_its_value():
    rows = (
        charts.Row("sum & mean", (("treadle", 3.0, "3 GB/s"), ("PyTorch", 1.5, "1.5 GB/s")), 4.0),
        charts.Row("exp", (("treadle", 1.0, "1 GB/s"),)),
    )
    tree = ET.fromstring(charts.draw("Rates", "longer is better", [charts.Group("", rows)]))
    svg = "{http://www.w3.org/2000/svg}"
    bars = [r for r in tree.iter(f"{svg}rect") if r.get("height") == "11"]
    # The mark at 4 is the longest, 440 wide.
    assert [float(bar.get("width")) for bar in bars] == [330.0, 165.0, 110.0]
    texts = [text.text for text in tree.iter(f"{svg}text")]
    assert texts == [
        "Rates", "longer is better", "treadle", "PyTorch", "sum & mean", "3 GB/s", "1.5 GB/s",
        "exp", "1 GB/s",
    ]  # fmt: skip


def test_speeds_are_relative_to_the_peer():
    rate = Figure("s", "a rate", "GB/s", 30.0, None, True, "PyTorch", 20.0)
    time = Figure(
        "s", "a time", "ms", 30.0, None, False, "NumPy", 15.0, others=(("PyTorch", 60.0),)
    )
    assert charts._speed(rate, "PyTorch") == 1.5
    assert charts._speed(time, "PyTorch") == 2.0
    assert charts._speed(rate, "Numba") is None


def test_examples():
    for module in (table, marks, host, command):
        assert doctest.testmod(module).failed == 0


def test_without_results(tmp_path):
    nothing = read_results(tmp_path)
    for text in (table.tables(nothing), table.ten(nothing)):
        assert marks.page_with(PAGE, text) == (f"# A page\n\n{BEGIN}{table.NONE_YET}{END}\nmore\n")
    assert programs_table.programs(nothing) == ""
    for picture in charts.charts(nothing).values():
        assert ET.fromstring(picture).tag.endswith("svg")


def test_what_the_harness_keeps_is_what_the_table_shows(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.harness.RESULTS", tmp_path)
    saxpy = Figure("cpu", "saxpy", "GB/s", 38.04, 0.9, True, "copy", 40.0, True)
    path = keep([saxpy], "cpu", {"machine": "Some CPU, 2 cores", "card": ""})
    about = {"machine": "Other CPU, 16 cores", "card": "H100", "webgpu": "H100 (580)"}
    keep([Figure("gpu", "add", "GB/s", 2871.3)], "gpu", about | {"commit": "4527901d+changes"})
    path.write_text(json.dumps(json.loads(path.read_text()) | {"date": "2026-01-01"}))

    assert table.tables(read_results(tmp_path)).splitlines()[:8] == [
        '<details markdown="1">',
        "<summary>Some CPU, 2 cores: kernels, arrays, launches, training, programs</summary>",
        "",
        "Measured 2026-01-01. In brackets: treadle / peer.",
        "",
        "| suite | figure | treadle | peer, same run | target | commit |",
        "|---|---|---|---|---|---|",
        "| cpu | saxpy | 38 GB/s | copy 40 GB/s (0.95) | at least 0.9 × copy | unknown |",
    ]
    text = table.tables(read_results(tmp_path))
    assert "<summary>H100, Other CPU, 16 cores: " in text
    assert "WebGPU on H100 (580)" in text
    assert "| gpu | add | 2870 GB/s |  |  | 4527901d+changes |" in text


def test_a_row_shows_every_peer_and_a_round_target():
    others = (("NumPy", 0.169), ("PyTorch", 1.0))
    mean = Figure("arrays-cpu", "mean", "GB/s", 49.0, 2 / 3, True, "read", 50.0, True, "", others)
    result = {
        "date": "2026-01-01",
        "machine": "M",
        "figures": [json.loads(json.dumps(asdict(mean)))],
    }
    assert (
        "| arrays-cpu | mean | 49 GB/s | read 50 GB/s (0.98), NumPy 0.169 GB/s, PyTorch 1 GB/s "
        "| at least 0.667 × read | unknown |\n"
    ) in table.tables([result])


def test_the_newest_figure_counts():
    def result(date, ours):
        figures = [{"suite": "cpu", "name": "launch", "unit": "µs", "ours": ours, "target": 8}]
        return {"date": date, "machine": "M", "figures": figures}

    text = table.tables([result("2026-01-01", 9.0), result("2026-02-01", 7.0)])
    assert "| cpu | launch | 7 µs |  | at most 8 µs | unknown |" in text
    assert "9" not in text.split("|---|---|---|---|---|---|")[1]
    assert "Measured 2026-01-01 to 2026-02-01" in text


# --- commits -------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path):
    """A clone, and what commits a file's new text in it."""

    def git(*arguments):
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def change(file, text):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        git("add", ".")
        git("commit", "-qm", file)
        return git("rev-parse", "--short=10", "HEAD")

    git("init", "-q")
    return tmp_path, change


def test_a_figure_is_old_after_a_change_of_what_its_suite_measures(clone):
    root, change = clone
    first = change("src/treadle/graph/plan.py", "1")
    second = change("src/treadle/nn/linear.py", "1")
    change("docs/page.md", "1")
    is_old = commits.history(root)
    assert not is_old(second, "programs-cuda")
    assert is_old(first, "programs-cuda")
    assert not is_old(first, "arrays-cpu")  # which measures no layers
    change("src/treadle/core/limits.py", "# a comment")
    is_old = commits.history(root)
    assert all(is_old(second, suite) for suite in ("programs-cpu", "arrays-cpu", "parsing", "cpu"))
    assert is_old("", "cpu")
    assert is_old("0123456789", "cpu")  # of another history


def test_the_commit_that_is_measured(clone):
    root, change = clone
    commit = change("src/treadle/a.py", "1")
    assert commits.here(root) == commit
    (root / "benchmarks.json").write_text("{}")  # figures that another suite wrote
    assert commits.here(root) == commit
    (root / "src/treadle/a.py").write_text("2")
    assert commits.here(root) == f"{commit}+changes"
    assert commits.of_result({"commit": f"{commit}+changes"}) == (commit, f"{commit}+changes")
    assert commits.of_result({"recorded": commit}) == (commit, f"≤ {commit}")
    assert commits.of_result({}) == ("", "unknown")


def test_a_copy_without_history(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert commits.here(tmp_path) == ""
    with pytest.raises(commits.NoHistory):
        commits.history(tmp_path)


def test_every_suite_says_what_it_measures():
    suites = {entry["suite"] for result in read_results() for entry in result["figures"]}
    for suite in {*suites, *command.SUITES}:
        for folder in commits.MEASURED[suite.partition("-")[0]]:
            assert (commits.ROOT / "src" / "treadle" / folder).is_dir()


def test_old_figures_are_marked_and_nothing_else_differs():
    results = read_results()
    text = table.tables(results, lambda commit, suite: suite == "cpu")
    old = [line for line in text.splitlines() if line.endswith("(old) |")]
    assert old
    assert all(line.startswith("| cpu |") for line in old)
    assert marks.unmarked(text) == table.tables(results)
    first = table.ten(results, lambda commit, suite: suite == "launch-cuda").splitlines()
    assert [line for line in first if "(old)" in line] == [
        line for line in first if line.startswith("| CUDA: host time of a launch |")
    ]


def test_the_table_of_programs():
    def result(suite, card, *figures):
        entries = [asdict(Figure(f"programs-{suite}", *one)) for one in figures]
        return {
            "date": "2026-01-01", "machine": "M", "card": card, "commit": f"{suite}1",
            "figures": json.loads(json.dumps(entries)),
        }  # fmt: skip

    step = "ResNet-18, 64 channels, a step: eager"
    results = [
        result("cpu", "", (step, "s", 3.8e-3, None, False, "PyTorch", 1.2e-3)),
        result("cuda", "H100", (step, "s", 1.81e-3, 1.0, False, "PyTorch", 0.94e-3, True)),
        result("dawn", "H100", ("float((x + 1).sum()), 1000 elements", "s", 106e-6)),
    ]
    assert programs_table.programs(results, lambda commit, suite: commit == "dawn1") == (
        "| program | cpu | PyTorch, CPU | cuda | webgpu | dawn | PyTorch, CUDA |\n"
        "|---|---|---|---|---|---|---|\n"
        "| ResNet-18, a step | 3.8 ms | 1.2 ms | 1.81 ms | – | – | 940 µs |\n"
        "| float((x + 1).sum()) | – | – | – | – | 106 µs | – |\n"
        "\n"
        "CPU: M, smaller models; H100. Measured at cpu cpu1, cuda cuda1, dawn dawn1 (old).\n"
    )


def _crossing(host, device, auto=None):
    """Figures of a program whose calls took so long at sizes 10, 100, 1,000 …"""
    return [
        Figure(
            "crossover-cuda", f"sort: {10 ** (at + 1):,} elements", "s", (auto or host)[at], 1.2,
            peer="better of both", peers=min(one, two), ratio=True,
            others=(("host", one), ("device", two), ("NumPy", one)),
        )
        for at, (one, two) in enumerate(zip(host, device, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("host", "device", "at"),
    [
        ((1, 10, 100), (10, 10, 10), 100.0),  # equal at 100, quicker from there on
        ((1, 10, 100), (100, 100, 100), None),
        ((1, 10, 1000), (100, 100, 100), 10**2.5),
        ((1, 1, 1), (0.5, 0.5, 0.5), 10.0),
        ((1, 1, 1), (0.5, 0.5, 2), None),
        ((1, 1, 1), (0.5, 2, 0.5), 10**2.5),
    ],
)
def test_where_curves_cross(host, device, at):
    (panel,) = curves.panels(_crossing(host, device))
    assert (panel.name, panel.unit) == ("sort", "elements")
    assert panel.crossover == (None if at is None else pytest.approx(at))


def test_curves_show_every_point_and_the_page_every_device():
    figures = _crossing((1e-6, 1e-5, 1e-4), (1e-5, 1.5e-5, 2e-5), (1e-6, 1.2e-5, 3e-5))
    result = {
        "date": "2026-11-29", "machine": "A processor, 2 cores", "card": "A card",
        "cuda": "A card (driver 1)", "commit": "0123456789",
        "figures": [asdict(figure) for figure in figures],
    }  # fmt: skip
    drawn = curves.charts([result])
    assert list(drawn) == ["crossover-cuda.svg"]
    svg = "{http://www.w3.org/2000/svg}"
    tree = ET.fromstring(drawn["crossover-cuda.svg"])
    lines = [each.get("points", "").split() for each in tree.iter(f"{svg}polyline")]
    assert [len(line) for line in lines] == [3, 3, 3]
    assert len(list(tree.iter(f"{svg}circle"))) == 3
    texts = [each.text for each in tree.iter(f"{svg}text")]
    assert "the device is quicker from about 160 on" in texts
    assert {"10", "100", "1000", "1 µs", "100 µs", "elements"} <= set(texts)
    page = curves.page([result], lambda commit, suite: True)
    assert "## A card: CUDA\n" in page
    assert "at 0123456789 (old); A processor, 2 cores." in page
    assert "| sort | about 160 elements | 1.20, at most 1.50 |" in page
    assert curves.page([], commits.never) == "*No results are recorded yet.*\n"
    assert curves.charts([]) == {}


def test_a_device_stands_for_its_suites(monkeypatch):
    monkeypatch.setattr(command, "fits", lambda suite: suite != "gpu-webgpu")
    monkeypatch.setattr("treadle.device", lambda name: None)
    assert command.suites_of(["cuda"]) == [
        "launch-cuda", "gpu-cuda", "arrays-cuda", "library-cuda", "compiled-cuda",
        "training-cuda", "crossover-cuda", "programs-cuda", "models-cuda", "quantized-cuda",
        "encoders-cuda", "actors-cuda", "stencils-cuda", "compile-cuda", "products-cuda",
        "attention-cuda", "convolutions-cuda", "algorithms-cuda", "steps-cuda", "distributed-cuda",
        "cuda_cpp-cuda", "ptx",
    ]  # fmt: skip
    assert command.suites_of(["webgpu", "cpu"]) == [
        "launch-webgpu", "arrays-webgpu", "library-webgpu", "compiled-webgpu", "training-webgpu",
        "crossover-webgpu", "programs-webgpu", "models-webgpu", "quantized-webgpu",
        "encoders-webgpu", "actors-webgpu", "stencils-webgpu", "compile-webgpu",
        "products-webgpu", "algorithms-webgpu", "cuda_cpp-webgpu", "cpu",
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


def test_the_tables_of_actors():
    """One for each device with figures, a row for each figure with a peer."""
    figures = [
        Figure("actors-cpu", "round trip, median", "µs", 9.0, 20, peer="launch", peers=6.0),
        Figure("actors-cpu", "send_many, a message", "ns", 5.0, 20),
        Figure("actors-cpu", "nearest of 8 points, a query", "µs", 2.0, peer="l", peers=600.0),
        Figure("actors-webgpu", "300 commands: inject", "ms", 5.0, peer="launch", peers=20.0),
    ]
    about = {"date": "2026-01-01", "machine": "A processor", "card": "", "commit": "0123456789"}
    result = {
        **about, "webgpu": "a driver",
        "figures": [asdict(each) for each in figures],
    }  # fmt: skip
    text = launch_or_actor([result], lambda commit, suite: suite == "actors-cpu")
    assert "CPU: A processor, at 0123456789 (old).\n" in text
    assert "WebGPU: A processor, a driver, at 0123456789.\n" in text
    assert "| 9 µs | 6 µs | 0.67 times as long |" in text
    assert "| 2 µs | 600 µs | 300 times as long |" in text
    assert "| 5 ms | 20 ms | 4 times as long |" in text
    assert text.count("\n| ") == 5
    assert launch_or_actor([]) == "*No results are recorded yet.*\n"
