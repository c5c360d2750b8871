"""`treadle explain`, on what `treadle transpile` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from treadle.cli import app
from treadle.cli.usage import WrongUsage
from treadle.core.errors import FormatError, TreadleError
from treadle.ptx_analysis import assembler

TURN = """
import treadle as td

def turn(width):
    @td.kernel
    def turn(a: td.Array[td.f32, 2], out: td.Array[td.f32, 2]):
        tile = td.shared((32, width), td.f32)
        x, y = td.thread_idx.x, td.thread_idx.y
        tile[y, x] = a[td.block_idx.y * 32 + y, td.block_idx.x * 32 + x]
        td.sync_threads()
        out[td.block_idx.x * 32 + y, td.block_idx.y * 32 + x] = tile[x, y]
    return turn

columns = turn(32)
padded = turn(33)
"""


def run(*arguments: str, standard_input: str | None = None) -> str:
    done = CliRunner().invoke(app.app, [*arguments], input=standard_input)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The PTX of a transposition, through a tile of 32 columns and through one of 33."""
    file = tmp_path_factory.mktemp("explain") / "turn.py"
    file.write_text(TURN)
    return {
        name: run("transpile", str(file), "--to", "ptx", "--block", "32,32", "--kernel", name)
        for name in ("columns", "padded")
    }


def test_columns_of_a_tile_are_in_one_bank_and_padded_ones_are_not(ptx):
    words = run("explain", "-", "--sm", "90", standard_input=ptx["columns"])
    assert "turn: 48 instructions, blocks of 32 x 32 x 1 threads" in words
    assert "no spills, 4096 bytes of shared memory" in words
    assert (
        "2 of its blocks run at once on a multiprocessor: 64 of 64 warps, limited by warps" in words
    )
    assert "of the source 11\n" in words
    assert "bank conflicts: 32 accesses for a warp instead of 1" in words
    words = run("explain", "-", "--sm", "90", standard_input=ptx["padded"])
    assert "4224 bytes" in words
    assert "nothing to report" in words


def test_json(ptx, tmp_path):
    file = tmp_path / "turn.ptx"
    file.write_text(ptx["columns"])
    (found,) = json.loads(run("explain", str(file), "--json", "--sm", "80"))
    assert (found["name"], found["block"], found["shared"]) == ("turn", [32, 32, 1], 4096)
    assert found["resources"]["shared"] == 4096
    assert found["assembled_for"] == "sm_80"
    (finding,) = found["findings"]
    (place,) = finding["places"]
    assert (finding["kind"], place["source_line"]) == ("banks", 11)
    assert file.read_text().splitlines()[place["line"] - 1].strip(" ;") == place["instruction"]


def test_what_cannot_be_explained(ptx, tmp_path):
    (tmp_path / "other").write_text("hello")
    with pytest.raises(FormatError, match="this is not PTX"):
        run("explain", str(tmp_path / "other"))
    (tmp_path / "a.cu").write_text("__global__ void k(int *x) {}")
    with pytest.raises(TreadleError, match=r"is CUDA C\+\+, .*transpile .*a.cu --to ptx"):
        run("explain", str(tmp_path / "a.cu"))
    with pytest.raises(TreadleError, match=r"missing\.ptx"):
        run("explain", str(tmp_path / "missing.ptx"))
    with pytest.raises(TreadleError, match="has no kernel 'x'; it has turn"):
        run("explain", "-", "--kernel", "x", standard_input=ptx["padded"])
    with pytest.raises(TreadleError, match="is a folder"):
        run("explain", str(tmp_path))
    for wrong in (["--sm", "ninety"], ["--block", "0"], ["--block", "1,2,3,4"]):
        done = CliRunner().invoke(app.app, ["explain", "-", *wrong], input=ptx["padded"])
        assert done.exit_code == 2


def test_without_the_assembler(ptx, monkeypatch):
    monkeypatch.setattr("treadle.cli.explain.find_ptxas", lambda: None)
    words = run("explain", "-", standard_input=ptx["columns"])
    assert "pip install nvidia-cuda-nvcc" in words
    assert "bank conflicts: 32" in words


def test_a_gpu_that_the_assembler_does_not_know(ptx):
    """It is assembled for the oldest one that can run it. Without one, what needs none is said."""
    old = ptx["columns"].replace(".target sm_70", ".target sm_60")
    words = run("explain", "-", standard_input=old)
    assert re.search(r"sm_7\d: \d+ registers", words)
    words = run("explain", "-", standard_input=old.replace("sm_60", "sm_999"))
    assert "the assembler here does not know sm_999" in words
    assert "bank conflicts: 32" in words


@pytest.mark.parametrize("options", [(), ("--sm", "80"), ("--json",)])
def test_text_that_the_assembler_refuses(ptx, options):
    """Its errors by lines, and status 1; findings are shown, and their absence says nothing."""
    text = ptx["padded"].replace("add.s32", "odd.s32", 1)
    line = next(at for at, each in enumerate(text.splitlines(), 1) if "odd.s32" in each)
    done = CliRunner().invoke(app.app, ["explain", "-", *options], input=text)
    assert isinstance(done.exception, TreadleError)
    assert "ptxas refuses the text for sm_" in str(done.exception)
    assert f"\n  line {line}: " in str(done.exception)
    assert "aborted" not in str(done.exception)
    assert "nothing to report" not in done.output
    if options == ("--json",):
        assert json.loads(done.output)[0]["refusal"] == str(done.exception)
    else:
        assert "turn: 48 instructions" in done.output


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("sm_90", ("--sm", "80"), "the text is for sm_90 and newer GPUs .*, which sm_80 is not"),
        ("sm_90a", ("--sm", "100"), "the text is for sm_90a and no other GPU"),
        ("sm_90a", ("--sm", "90"), "the text is for sm_90a and no other GPU"),
        ("sm_70", ("--sm", "72"), "does not know sm_72; it knows .*80"),
        ("sm_70", ("--block", "32"), "32 x 32 x 1 threads .*leave out --block"),
        ("sm_70", ("--kernel", "x"), "has no kernel 'x'; it has turn"),
    ],
)
def test_options_that_do_not_suit_the_text(ptx, target, options, words):
    text = ptx["columns"].replace(".target sm_70", f".target {target}")
    done = CliRunner().invoke(app.app, ["explain", "-", *options], input=text)
    assert isinstance(done.exception, WrongUsage)
    assert re.search(words, str(done.exception))
    assert run("explain", "-", "--block", "32,32", standard_input=ptx["columns"])


def test_the_assembler_is_found_where_a_toolkit_is(monkeypatch, tmp_path):
    def missing(_: str) -> None:
        raise assembler.metadata.PackageNotFoundError

    monkeypatch.setattr(assembler.metadata, "files", missing)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    find = assembler.find_ptxas.__wrapped__
    assert find() is None
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    tool.write_text("")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find() == Path(tool)


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "wanted"),
    [
        (90, 1024, 32, 0, (2, "warps")),
        (90, 1024, 33, 0, (1, "registers")),  # registers are given to a warp by 256
        (90, 32, 16, 0, (32, "blocks")),
        (90, 128, 16, 227 << 10, (1, "shared memory")),
        (75, 256, 32, 0, (4, "warps")),
        (89, 512, 128, 0, (1, "registers")),
    ],
)
def test_blocks_that_fit(capability, threads, registers, shared, wanted):
    assert assembler.blocks_at_once(capability, threads, registers, shared) == wanted
