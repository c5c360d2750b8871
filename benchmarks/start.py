"""How long a fresh process takes: to import, and to its first kernel's result."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from benchmarks.harness import Figure, seconds

_FIRST = """
import numpy as np, treadle as td
@td.kernel(source='''
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]
''')
def saxpy(a, x, y): ...
x = td.ones(1000, device="cpu"); y = td.zeros(1000, device="cpu")
saxpy[4, 256](2.0, x, y)
assert y.numpy().sum() == 2000
"""


# As users have it: Python keeps the bytecode of modules between processes.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _process(code: str, **environment: str) -> float:
    def run() -> None:
        subprocess.run([sys.executable, "-c", code], check=True, env=_ENVIRONMENT | environment)

    return seconds(run, repeats=7, warm=1)


def _imported() -> float:
    """Seconds that `import treadle` takes inside a process that has just started."""
    code = "import time; t = time.perf_counter(); import treadle; print(time.perf_counter() - t)"
    times = []
    for _ in range(7):
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env=_ENVIRONMENT,
        )
        times.append(float(done.stdout))
    return sorted(times)[len(times) // 2]


def measurements() -> list[Callable[[], list[Figure]]]:
    """What this suite measures."""
    return [_run]


def _run() -> list[Figure]:
    numpy = _process("import numpy")
    _process(_FIRST)  # writes the bytecode
    with tempfile.TemporaryDirectory() as folder:
        cold = []
        for number in range(5):
            began = time.perf_counter()
            where = os.path.join(folder, str(number))
            subprocess.run(
                [sys.executable, "-c", _FIRST],
                check=True,
                env=_ENVIRONMENT | {"TREADLE_CACHE_DIR": where},
            )
            cold.append(time.perf_counter() - began)
        warm = _process(_FIRST, TREADLE_CACHE_DIR=os.path.join(folder, "0"))
    name = "first kernel result on cpu, whole process"
    return [
        Figure("start", "import treadle", "s", _imported(), 0.2),
        Figure(
            "start",
            f"{name}, empty cache",
            "s",
            sorted(cold)[2],
            0.6,
            peer="import numpy",
            peers=numpy,
        ),
        Figure(
            "start",
            f"{name}, from the disk cache",
            "s",
            warm,
            0.6,
            peer="import numpy",
            peers=numpy,
        ),
    ]
