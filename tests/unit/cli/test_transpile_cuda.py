"""`treadle transpile` of CUDA C++. A stand-in reads the file; what is told of it is tested here."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.support.cuda_program import KERNELS, Fake
from tests.support.cut_kernels import LIFE, UNTIL
from treadle.cli import app, transpile_cuda
from treadle.core.dtypes import float32 as f32
from treadle.core.errors import TreadleError
from treadle.cuda_cpp.load import cuda_module
from treadle.cuda_cpp.module import CudaModule

LIFE_STEPS = """\
// A kernel with barriers of the grid, as 3 kernels: a launch ends where a barrier is.
// All are launched with the same grid, block and arguments. The host does these steps:
//   1. k = 0
//   2. if k < n: go to 3, else go to 7
//   3. launch life_1
//   4. launch life_2
//   5. k = k + 1
//   6. if k < n: go to 3, else go to 7
//   7. launch life_3, then end
// grid.kept is a buffer that lasts over all launches, of 2 words of 32 bits.
// The host's counters, which are parameters too: k.
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run `treadle transpile FILE …`: its status, what it prints, and what the front end got."""
    path = tmp_path / "fake.cu"
    path.write_text("")
    opened = {}

    def open_it(file, **how):
        opened.update(how)
        return CudaModule(Fake(), "fake.cu")

    monkeypatch.setattr(transpile_cuda, "cuda_module", open_it)

    def transpile(*arguments):
        done = CliRunner().invoke(app.app, ["transpile", str(path), *map(str, arguments)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    transpile.opened = opened
    return transpile


@pytest.mark.parametrize("target", ["wgsl", "cuda", "ptx", "msl", "llvm", "ir"])
def test_every_kernel_that_can_be_printed_is(run, target):
    done = run("--to", target)
    assert done.exit_code == 0
    for name in KERNELS:
        assert name in done.stdout
    told = " ".join(done.stderr.split())
    assert "kernel refused is left out: 2 errors fake.cu:2:5: goto has no place" in told
    assert "kernel filled is left out: it is a template <typename T, int N = 3>" in told
    assert "--kernel filled --template" in told


def test_an_instance_of_a_template(run):
    for options in (("--kernel", "filled"), ()):
        done = run("--to", "ir", "--template", "float, 5", *options)
        assert done.exit_code == 0
        assert "kernel filled {" in done.stdout
        assert "scale" not in done.stdout
    with pytest.raises(TreadleError, match=r"scale is not a template[^$]*no kernel of .* printed"):
        run("--kernel", "scale", "--template", "float")


def test_options_reach_the_front_end(run, tmp_path):
    options = ("-D", "N=4", "-DFAST", "-D", "TEXT=a=b", "-I", tmp_path, "--skip-missing-headers")
    options += ("--double", "float", "--recursion", "20")
    run(*options, "--kernel", "scale")
    assert run.opened == {
        "defines": {"N": "4", "FAST": None, "TEXT": "a=b"},
        "include": (tmp_path,),
        "skip_missing_headers": True,
        "double": "float",
        "recursion": 20,
    }
    done = run("--kernel", "scale", "--block", "8,4")
    assert "@workgroup_size(8, 4" in done.stdout
    assert "@workgroup_size(64" in run("--kernel", "bounded").stdout


def test_nothing_to_print_is_an_error(run):
    with pytest.raises(TreadleError, match=r"goto has no place[^$]*no kernel of .* can be printed"):
        run("--kernel", "refused")
    with pytest.raises(TreadleError, match=r"__launch_bounds__ allow 64"):
        run("--kernel", "bounded", "--block", "128")
    with pytest.raises(TreadleError, match=r"no kernel 'absent'; it has scale, "):
        run("--kernel", "absent")


def test_report(run, tmp_path):
    done = run("--report")
    assert done.exit_code == 0
    assert "fake.cu:10 scale\n  used      blockIdx (12, 14)\n" in done.stdout
    assert "  refused   line 2: goto has no place in structured code\n" in done.stdout
    assert "fake.cu:90 filled\n  template" in done.stdout
    out = tmp_path / "report.txt"
    done = run("--report", "--kernel", "filled", "--template", "int", "-o", out)
    assert done.stdout == ""
    assert out.read_text().count("fake.cu:") == 2  # this kernel, and a note of the file
    assert "filled<int, 3>" in out.read_text()


def test_the_report_is_a_table_where_somebody_looks(run, monkeypatch):
    table = transpile_cuda._table(CudaModule(Fake(), "fake.cu").report())
    assert table.row_count > len(KERNELS)


FILE = """
#include "factor.h"
#include <iostream>
__global__ void scale(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= FACTOR * GAIN;
}
int main() { std::cout << "host" << std::endl; }
"""


def treadle(*arguments):
    command = [sys.executable, "-m", "treadle", "transpile", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_a_real_file(tmp_path):
    path, folder = tmp_path / "scale.cu", tmp_path / "inc"
    folder.mkdir()
    path.write_text(FILE)
    (folder / "factor.h").write_text("#define FACTOR 2.0f\n")
    done = treadle(path, "-I", folder, "-DGAIN=4", "--to", "ir", "--block", "64")
    assert done.returncode == 0, done.stderr
    assert "kernel scale trusting {" in done.stdout
    assert "(2.0 * 4.0)" in done.stdout
    assert done.stderr == ""


def test_syntax_errors_are_told_at_once(tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text("__global__ void f(float *x)\n{\n    x[0] = 1\n    x[1] = ;\n}\n")
    done = treadle(path)
    assert done.returncode == 1
    assert f"{path}:3:" in done.stderr
    assert f"{path}:4:" in done.stderr
    assert "x[1] = ;\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_template_arguments_are_cut_at_commas_outside_of_brackets():
    cut = transpile_cuda.template_arguments
    assert cut("float,256") == ("float", "256")
    assert cut("Pair<int, 4>, (1, 2), x[3]") == ("Pair<int, 4>", "(1, 2)", "x[3]")


def test_options_of_cuda_are_refused_for_python(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text("")
    for options in (["--report"], ["-D", "X"], ["-I", "."], ["--template", "float"]):
        assert CliRunner().invoke(app.app, ["transpile", str(path), *options]).exit_code == 2


def test_several_kernels_are_written_to_a_file_each(tmp_path):
    source = tmp_path / "two.cu"
    source.write_text(
        "__global__ void up(int *x) { x[threadIdx.x] += 1; }\n"
        "__global__ void down(int *x) { x[threadIdx.x] -= 1; }\n"
    )
    done = CliRunner().invoke(app.app, ["transpile", str(source), "-o", str(tmp_path / "o.wgsl")])
    assert done.exit_code == 0
    assert "wrote one file for each kernel" in done.output
    assert sorted(path.name for path in tmp_path.glob("*.wgsl")) == ["o.down.wgsl", "o.up.wgsl"]
    for path in tmp_path.glob("*.wgsl"):
        assert path.read_text().count("@compute") == 1
    only = ["transpile", str(source), "--kernel", "up", "-o", str(tmp_path / "only.wgsl")]
    assert CliRunner().invoke(app.app, only).exit_code == 0
    assert "@compute" in (tmp_path / "only.wgsl").read_text()


def test_a_kernel_that_is_cut_at_barriers_of_the_grid(tmp_path):
    source = tmp_path / "life.cu"
    source.write_text(LIFE)
    for target, files in (("cuda", 1), ("msl", 1), ("wgsl", 3), ("ptx", 3)):
        out = ["--to", target, "--block", "64", "-o", str(tmp_path / f"o.{target}")]
        assert CliRunner().invoke(app.app, ["transpile", str(source), *out]).exit_code == 0
        made = [path.read_text() for path in sorted(tmp_path.glob(f"*.{target}"))]
        assert len(made) == files
        assert made[0].startswith(LIFE_STEPS)
        for number in (1, 2, 3):
            assert any(f" life_{number}(" in text for text in made)
    text = (tmp_path / "o.cuda").read_text()
    assert text.count("int wrap_mul(int a, int b) {") == 1
    assert text.count('extern "C" __global__ void') == 3
    assert (
        cuda_module(UNTIL).kernel("until", f32).source("wgsl").count(": a module of its own") == 4
    )


def test_doubles_where_there_are_none(tmp_path):
    file = tmp_path / "a.cu"
    file.write_text("// one\n__global__ void k(double *x) { x[0] = sin(x[0]); }\n")
    done = CliRunner().invoke(app.app, ["transpile", str(file), "--to", "wgsl"])
    said = str(done.exception)
    assert "a.cu:2:" in said
    assert "payne_hanek" not in said
    assert 'double="float") or "pair", --double in the terminal' in said


def test_cuda_text_with_another_name(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("__global__ void k(int *x) {}\n")
    done = CliRunner().invoke(app.app, ["transpile", str(file)])
    assert done.exit_code == 2
    assert "has kernels of CUDA C++" in " ".join(done.output.replace("│", " ").split())
