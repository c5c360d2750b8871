"""`treadle actors` shows what other processes publish."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

import treadle as td
from treadle.actors import publishing
from treadle.cli.actor_listing import table_of
from treadle.cli.app import app

PROGRAM = """
import sys
import treadle as td

@td.actor
def echo(message: td.i32) -> td.i32:
    return message

refs = [echo.spawn(device="cpu") for _ in range(2)]
refs[0].ask(1, timeout=30)
td.actors.publish("a program")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    return tmp_path / "actors"


def test_the_actors_of_another_process(folder) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert "No actors" in CliRunner().invoke(app, ["actors"]).output
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=environment, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (found,) = publishing.published()
        assert (found["name"], found["pid"]) == ("a program", process.pid)
        assert [each["messages_processed"] for each in found["actors"]] in ([0, 1], [1, 0])
        shown = CliRunner().invoke(app, ["actors"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert shown.output.count("echo") == 2
        process.communicate("")
    assert not list(folder.iterdir())  # it is removed at the end


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such question")
def test_a_process_that_was_killed_is_not_listed(folder) -> None:
    """Its file stays, and is not looked at again."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=environment, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert len(publishing.published()) == 1
        process.kill()
        process.wait()
        assert list(folder.glob("*.json"))
        assert publishing.published() == []


def test_a_process_that_is_gone_is_not_listed(folder) -> None:
    folder.mkdir()
    old = folder / "1.json"
    old.write_text('{"name": "old", "pid": 1, "actors": []}')
    os.utime(old, (0, 0))
    (folder / "2.json").write_text("no JSON")
    assert publishing.published() == []
    assert not old.exists()


def test_rates() -> None:
    actor = {
        "actor": "echo", "device": "cpu", "mode": "thread", "state": "active",
        "messages_processed": 100, "errors_encountered": 0, "input_depth": 1, "output_depth": 2,
    }  # fmt: skip
    process = {"name": "a [red]b[/red]", "pid": 3, "actors": [actor]}
    before = {(3, 0, "echo"): (0.0, 100)}
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table_of([process], before))
    assert "a [red]b[/red] (3)" in captured.get()
    assert captured.get().split()[-4:] == ["0", "0", "1", "2"]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_is_cut_off(width: int) -> None:
    """Numbers and words are whole at any usual width, and lines no longer than it."""
    actor = {
        "actor": "nearest_neighbour", "device": "webgpu:0", "mode": "persistent",
        "state": "terminated", "messages_processed": 9_876_543_210, "errors_encountered": 98765,
        "input_depth": 4096, "output_depth": 65535,
    }  # fmt: skip
    process = {
        "name": "simulation of waves",
        "pid": 1234567,
        "actors": [actor, actor | {"actor": "b"}],
    }
    before = {(1234567, at, name): (0.0, 0) for at, name in ((0, actor["actor"]), (1, "b"))}
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table_of([process], before, width))
    text = captured.get()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    whole = [
        "simulation of waves (1234567)",
        actor["actor"],
        "webgpu:0",
        "persistent",
        "terminated",
    ]
    whole += (
        ["9,876,543,210", "98,765", "65,535"]
        if width == 200
        else ["9.88G", "98.8k", "65.5k", "4,096"]
    )
    for each in whole:
        assert each in " ".join(text.split())


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 65, 3])
def test_names_that_are_refused(name) -> None:
    with pytest.raises(ValueError, match="1 to 64 printable characters"):
        td.actors.publish(name)
