"""What is said of a kernel that took long to compile."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

import pytest

import treadle as td
from treadle.runtime import build


class Terminal(io.StringIO):
    """Standard error that a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("value", "stderr", "level"),
    [(1, Terminal(), "WARNING"), (2, io.StringIO(), "INFO"), (3, None, "INFO")],
)
def test_a_warning_at_a_terminal_alone(
    value: int,  # another kernel in each case: compiled ones are remembered
    stderr: io.StringIO | None,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(build, "_SLOW", -1.0)
    monkeypatch.setattr(sys, "stderr", stderr)
    kernel = td.kernel(source=f"def slow_one(x: td.Array[td.f32]):\n    x[0] = {value}\n")
    with caplog.at_level(logging.INFO, "treadle"):
        kernel.launch(1, td.zeros(1, device="cpu"))
    found = [record for record in caplog.records if "slow_one" in record.getMessage()]
    assert [record.levelname for record in found] == [level]
    assert found[0].getMessage().startswith("compiling kernel slow_one for cpu took ")


def test_the_output_of_other_programs_stays_theirs() -> None:
    program = (
        "import treadle as td\n"
        "from treadle.runtime import build\n"
        "build._SLOW = -1.0\n"
        "k = td.kernel(source='def k(x: td.Array[td.f32]): x[0] = 1.0')\n"
        "x = td.zeros(1, device='cpu')\n"
        "k.launch(1, x)\n"
        "print(x.item())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("1.0\n", "")
