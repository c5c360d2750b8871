"""The command line: most of it called in this process, since each new one imports treadle first;
what depends on the process (its end, its standard streams, its modules) is run as people run it."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import platform
import re
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from typer.main import get_command

import treadle as td
from treadle.cli.app import app, main
from treadle.cli.demo import training
from treadle.core.errors import TreadleError
from treadle.drivers.webgpu_native import dawn
from treadle.runtime import devices

ROOT = Path(__file__).resolve().parents[3]
HAS_DIGITS = importlib.util.find_spec("sklearn") is not None

KERNELS = """
import treadle as td

@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]

@td.kernel
def double(x: td.Array[td.f32, 2]):
    i, j = td.grid(2)
    x[i, j] = 2.0 * x[i, j]
"""


def treadle(*arguments, **environment):
    """What a command prints, and its status."""
    written = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    given, status = [*map(str, arguments)], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "_default", None)
        patch.setattr(sys, "argv", ["treadle", *given])
        patch.setattr(sys, "path", [*sys.path])
        for name, value in environment.items():
            patch.setenv(name, value)
        with redirect_stdout(written[0]), redirect_stderr(written[1]):
            try:
                main(given)
            except SystemExit as end:
                status = end.code or 0
            except Exception:
                traceback.print_exc()
                status = 1
    out, err = (each.buffer.getvalue().decode() for each in written)
    return CompletedProcess(given, status, out, err)


def treadle_process(*arguments, **environment):
    """The same of a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "treadle", *map(str, arguments)],
        capture_output=True, text=True, env=os.environ | environment, timeout=100, check=False,
    )  # fmt: skip


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_devices():
    done = treadle_process("devices")
    assert done.returncode == 0
    assert "cpu" in done.stdout
    assert "webgpu:0" in done.stdout


def test_devices_says_what_is_missing():
    said = treadle("devices").stdout
    for backend in ("cpu", "cuda", "webgpu", "dawn"):
        assert f"\n{backend}" in said or f"\nNo {backend} device: " in said


def test_how_dawn_finds_a_software_driver(tmp_path, monkeypatch):
    monkeypatch.setattr(dawn, "_BROWSERS", (str(tmp_path),))
    assert "VK_DRIVER_FILES=/path/to/vk_swiftshader_icd.json in the" in dawn.DAWN.no_driver()
    file = tmp_path / "vk_swiftshader_icd.json"
    file.write_text("{}")
    assert dawn.swiftshader() == file
    assert f"VK_DRIVER_FILES={file} in the environment selects" in dawn.DAWN.no_driver()


def test_devices_as_json():
    found = json.loads(treadle("devices", "--json").stdout)
    assert {"cpu", "webgpu:0"} <= {device["id"] for device in found}
    assert all(device["limits"]["max_threads_per_block"] >= 16 for device in found)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("wgsl", "@compute @workgroup_size(64"),
        ("cuda", 'extern "C" __global__ void __launch_bounds__(64) saxpy('),
        ("msl", "kernel void saxpy("),
        ("llvm", "define void @"),
        ("ir", "kernel saxpy {"),
    ],
)
def test_transpile(kernels, target, words):
    done = treadle("transpile", kernels, "--to", target, "--block", "64")
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert "double" in done.stdout


def test_transpile_one_kernel_to_a_file(kernels, tmp_path):
    out = tmp_path / "out.wgsl"
    arguments = ("--to", "wgsl", "--kernel", "double", "--block", "8,8", "-o", out)
    done = treadle("transpile", kernels, *arguments)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "@workgroup_size(8, 8" in out.read_text()
    assert "saxpy" not in out.read_text()


BROKEN = {
    "syntax": ("def f(:\n", "broken.py:1"),
    "raises": ("1 / 0\n", "ZeroDivisionError"),
    "no kernel": ("x = 1\n", "no @td.kernel"),
    "refused": (KERNELS + "    x[0, 0] = [1]\n", "broken.py:14"),
    "no annotation": ("import treadle as td\n@td.kernel\ndef f(x):\n    x[0] = 1.0\n", "annotat"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_transpile_says_what_is_wrong_with_a_file(tmp_path, case):
    text, words = BROKEN[case]
    path = tmp_path / "broken.py"
    path.write_text(text)
    done = treadle("transpile", path)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in treadle("--debug", "transpile", path).stderr


def test_transpile_needs_a_file_and_a_target(kernels, tmp_path):
    done = treadle("transpile", tmp_path / "absent.py")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    done = treadle("transpile", kernels, "--kernel", "absent")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_guide_names_options_that_there_are():
    commands = get_command(app).commands
    guide = (ROOT / "docs/guides/command-line.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `treadle ([a-z]+).*", guide, re.MULTILINE)
    assert sorted(rows) == sorted(commands)
    for row in re.finditer(r"^\| `treadle ([a-z]+).*", guide, re.MULTILINE):
        known = {name for each in commands[row[1]].params for name in each.opts}
        known |= {name for each in commands[row[1]].params for name in each.secondary_opts}
        assert set(re.findall(r"`(-{1,2}[a-zA-Z][a-z-]*)", row[0])) <= known | {"--help"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kernels", "gemm", "--tile", "100x256x64"), "there is no tile of 100x256x64"),
        (("kernels", "gemm-tensor", "--dtype", "bf16", "--sm", "75"), "gemm-tiled needs none"),
        (("kernels", "gemm", "-o", "."), "is a folder"),
        (("kernels", "--dtype", "f16"), "name a kernel"),
        (("tune", "--device", "abacus"), "no device 'abacus'"),
        (("tune", "--seconds", "nan"), "--seconds"),
        (("tune", "--seconds", "inf"), "--seconds"),
    ],
)
def test_options_that_have_to_be_changed_are_status_2(arguments, words):
    done = treadle(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_text_on_standard_output(kernels):
    shown = treadle("transpile", kernels, "--to", "ptx", "--sm", "80", "-o", "-")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert ".visible .entry" in shown.stdout
    assert treadle("kernels", "swiglu", "-o", "-").stdout.startswith("// swiglu: ")
    listed = treadle("kernels", "--list", "gemv").stdout
    assert listed.startswith("gemv ")
    assert "gemm" not in listed


def test_wrong_usage_is_status_2(kernels):
    assert treadle("transpile").returncode == 2
    assert treadle("transpile", kernels, "--block", "0").returncode == 2
    assert treadle("transpile", kernels, "--block", "4096").returncode == 2
    assert treadle("transpile", kernels, "--to", "fortran").returncode == 2
    assert treadle("frobnicate").returncode == 2


def test_help_teaches():
    done = treadle_process("--help")
    assert done.returncode == 0
    for command in ("devices", "transpile", "profile", "cache", "demo"):
        assert command in done.stdout
    assert treadle().stdout == done.stdout or "Usage" in treadle().stdout


def test_help_keeps_the_names_of_extras():
    # In help texts, rich takes what stands in square brackets for a style, unless it is escaped.
    assert 'pip install "treadle[demo]"' in treadle("demo", "--help", COLUMNS="100").stdout


def test_version():
    from treadle import __version__

    said = treadle_process("--version").stdout
    assert said.startswith(f"treadle {__version__} (Python {platform.python_version()} on ")
    assert f"numpy {np.__version__}" in said


def test_cache(tmp_path):
    folder = tmp_path / "cache"
    assert treadle("cache", TREADLE_CACHE_DIR=str(folder)).stdout.startswith("0 kernels")
    program = tmp_path / "program.py"
    program.write_text(
        KERNELS + "\nx = td.asarray([[1.0, 1.0]] * 2, device='cpu')\ndouble.launch((2, 2), x)\n"
    )
    environment = {"TREADLE_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, str(program)], env=os.environ | environment, check=True)
    assert treadle("cache", **environment).stdout.startswith("1 kernels")
    assert treadle("cache", "--clear", **environment).stdout.startswith("removed 1 kernels")
    assert treadle("cache", **environment).stdout.startswith("0 kernels")
    for arguments in (("cache",), ("cache", "--clear")):
        done = treadle_process(*arguments, TREADLE_CACHE_DIR=str(program))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "is a file, not a folder" in done.stderr


def test_demo_on_the_cpu(tmp_path):
    picture = tmp_path / "demo.png"
    options = ("--epochs", 1) if HAS_DIGITS else ("--no-train",)
    done = treadle_process("demo", "--device", "cpu", *options, "-o", picture)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "wave" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr  # no progress where nobody looks
    if HAS_DIGITS:
        right, count = re.search(r"(\d+) of (\d+) new digits correctly", done.stdout).groups()
        assert int(right) > 0.5 * int(count)


def test_the_demo_has_to_show_something():
    done = treadle("demo", "--no-train", "--no-kernels")
    assert done.returncode == 2
    assert "nothing to show" in done.stderr


def test_the_demo_says_what_training_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(TreadleError, match=r"treadle\[demo\].*--no-train"):
        training.load_digits()


if HAS_DIGITS:

    @pytest.mark.slow
    def test_the_demo_reads_97_of_100():
        digits = training.load_digits()
        for seed in range(3):
            trained = training.train(digits, td.device("cpu"), 15, seed)
            assert trained.accuracies[-1] >= 0.97
            assert len(trained.losses) == 15


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["table", "json"])
def test_devices_where_the_environment_names_none(options):
    done = treadle("devices", *options, TREADLE_DEVICE="nonsense")
    assert done.returncode == 1
    assert "cpu" in done.stdout
    assert done.stderr.startswith("treadle: TREADLE_DEVICE is 'nonsense': no device")
    assert done.stderr.count("\n") == 1


def test_an_unknown_device_is_one_clear_line():
    done = treadle("demo", "--device", "abacus")
    assert done.returncode == 2
    assert "no device 'abacus'" in done.stderr
    assert "Traceback" not in done.stderr


DYNAMIC = (
    KERNELS
    + """
@td.kernel
def reverse(x: td.Array[td.f32]):
    copy = td.shared(None, td.f32)
    t = td.thread_idx.x
    copy[t] = x[t]
    td.sync_threads()
    x[t] = copy[td.block_dim.x - 1 - t]
"""
)


@pytest.mark.parametrize("target", ["wgsl", "cuda", "ptx", "msl", "llvm", "ir"])
def test_transpile_with_dynamic_shared_memory(tmp_path, target):
    path = tmp_path / "dynamic.py"
    path.write_text(DYNAMIC)
    done = treadle("transpile", path, "--to", target, "--block", "64", "--shared", "256")
    assert done.returncode == 0, done.stderr
    assert "reverse" in done.stdout
    assert "saxpy" in done.stdout


def test_transpile_asks_for_the_bytes_of_dynamic_shared_memory(tmp_path):
    path = tmp_path / "dynamic.py"
    path.write_text(DYNAMIC)
    done = treadle("transpile", path, "--kernel", "reverse")
    assert done.returncode == 1
    assert "--shared BYTES" in done.stderr
    assert "source(…, shared_bytes=" in done.stderr
    assert "--shared" in treadle("transpile", "--help", COLUMNS="200").stdout
    assert treadle("transpile", path, "--shared", "-1").returncode == 2


UNTYPED = """
@td.kernel
def loose(n, x: td.Array[td.f32], y):
    x[0] = n + y
"""


def test_transpile_leaves_out_kernels_without_types(tmp_path):
    path = tmp_path / "some.py"
    path.write_text(KERNELS + UNTYPED)
    done = treadle("transpile", path)
    assert done.returncode == 0
    assert "saxpy" in done.stdout
    assert "double" in done.stdout
    assert "loose" not in done.stdout
    assert done.stderr.count("\n") == 1
    for words in ("kernel loose", "annotate n, y", "--kernel"):
        assert words in done.stderr
    alone = treadle("transpile", path, "--kernel", "loose")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "annotate n, y" in alone.stderr
    assert treadle("transpile", path, "--kernel", "saxpy").stderr == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [("import sys\nsys.exit(5)\n", "sys.exit(5)"), ("raise ValueError('one\\ntwo')\n", "one two")],
)
def test_transpile_of_a_file_that_fails_is_one_line(tmp_path, text, words):
    path = tmp_path / "fails.py"
    path.write_text(text)
    done = treadle("transpile", path)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", [("transpile", "kernels.py"), ("demo", "--device", "cpu")], ids=["transpile", "demo"]
)
@pytest.mark.parametrize(
    ("output", "words"), [("", "is a folder"), ("absent/out.png", "there is no folder")]
)
def test_a_place_that_cannot_be_written_is_one_line(kernels, tmp_path, command, output, words):
    given = [kernels if part == "kernels.py" else part for part in command]
    done = treadle(*given, "-o", tmp_path / output)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_demo_refuses_unknown_pictures_before_the_work(tmp_path):
    done = treadle("demo", "--device", "cpu", "-o", tmp_path / "x.xyz")
    assert (done.returncode, done.stdout) == (2, "")
    assert "xyz" in done.stderr
    assert "png" in done.stderr
    assert done.stderr.count("\n") == 1


PROGRAM = (
    KERNELS
    + """
import sys
from pathlib import Path
x = td.ones((5, 7))
for _ in range(3):
    double.launch((5, 7), x)
print("result", sys.argv[1:], x.device.id, x.numpy().sum())
"""
)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_profile(program, tmp_path):
    trace = tmp_path / "trace.json"
    done = treadle_process("profile", program, "5", "--rate", "3", "-o", trace, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    result, *table = done.stdout.splitlines()
    assert result == "result ['5', '--rate', '3'] cpu 280.0"
    (row,) = (line.split() for line in table if line.startswith("double"))
    assert row[:3] == ["double", "cpu", "3"]
    assert table[-1].startswith(f"saved {trace}")
    names = [event["name"] for event in json.loads(trace.read_text())["traceEvents"]]
    assert names.count("double") == names.count("launch double") == 3


def test_profile_passes_options_after_dashes(program):
    done = treadle("profile", "--device", "cpu", program, "--", "-o", "theirs", "--device", "x")
    assert done.returncode == 0, done.stderr
    assert "result ['-o', 'theirs', '--device', 'x'] cpu" in done.stdout


def test_a_profiled_program_finds_its_neighbours_and_ends_as_it_likes(tmp_path):
    (tmp_path / "neighbour.py").write_text(KERNELS)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom neighbour import double, td\nassert __name__ == '__main__'\n"
        "double.launch((2, 2), td.ones((2, 2), device='cpu'))\nsys.exit(7)\n"
    )
    done = treadle_process("profile", program)
    assert done.returncode == 7, done.stderr
    assert "double" in done.stdout


FAILING = {
    "raises": ("double.launch((2, 2), td.ones((2, 2)))\n1 / 0\n", "ZeroDivisionError", "double"),
    "syntax": ("def f(:\n", "failing.py:14", "nothing ran"),
    "treadle": ("td.device('abacus')\n", "no device 'abacus'", "nothing ran"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_profiled_program_that_fails(tmp_path, case):
    more, words, shown = FAILING[case]
    path = tmp_path / "failing.py"
    path.write_text(KERNELS + more)
    done = treadle("profile", path, TREADLE_DEVICE="cpu")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert words in done.stderr.splitlines()[-1]
    assert shown in done.stdout
    assert "Traceback" in treadle("--debug", "profile", path).stderr


def test_profile_says_what_is_wrong_before_it_runs(program, tmp_path):
    wrong = {
        "there is no file": (tmp_path / "absent.py",),
        "no device 'abacus'": (program, "--device", "abacus"),
        "there is no folder": (program, "-o", tmp_path / "absent" / "trace.json"),
    }
    for words, given in wrong.items():
        done = treadle("profile", *given)
        assert (done.returncode, done.stdout) == (1 if words == "there is no file" else 2, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    assert treadle("profile").returncode == 2
