"""The driver for browsers in Node, with the package "webgpu"."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.browser.harness import wheel_folder
from tools.browser_parts import cache_folder, making
from treadle.drivers.webgpu_native.dawn import swiftshader

_PACKAGE = "webgpu@0.6.2"
_PROGRAM = """
import json
import treadle as td

await td.init()

@td.kernel
def square(x, y):
    i = td.grid(1)
    y[i] = x[i] * x[i]

x = td.arange(1000, dtype=td.float32)
y = td.zeros(1000)
square.launch(1000, x, y)

@td.compile
def scaled(x):
    return (x * 2).sum()

weights = td.ones(1000).requires_grad_()
((weights * x).sum()).backward()
found = [
    td.device("webgpu").backend,
    (await y.tolist_async())[:4],
    await scaled(x).item_async(),
    await scaled(y).item_async(),
    (await weights.grad.tolist_async())[-1],
]
print(json.dumps(found))
"""


@pytest.mark.slow  # it fetches 130 MB
def test_node_computes_on_its_webgpu() -> None:
    modules = cache_folder() / "node-webgpu"
    with making(modules) as missing:
        if missing:
            subprocess.run(
                ["npm", "install", "--silent", "--prefix", str(modules), _PACKAGE], check=True
            )
    software = {} if (driver := swiftshader()) is None else {"VK_ICD_FILENAMES": str(driver)}
    wheels, pyodide = wheel_folder(), cache_folder() / "pyodide"
    arguments = [
        str(Path(__file__).parent / "pages" / "node.mjs"), str(modules), str(pyodide),
        *map(str, pyodide.glob("numpy-*.whl")),
        *(str(path) for name in ("treadle", "opt_einsum") for path in wheels.glob(f"{name}-*.whl")),
    ]  # fmt: skip
    done = subprocess.run(
        ["node", *arguments], input=_PROGRAM, capture_output=True, text=True, check=False,
        env=software | os.environ, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    sums = 2.0 * sum(range(1000)), 2.0 * sum(i * i for i in range(1000))
    backend, squares, once, twice, last = json.loads(done.stdout.splitlines()[-1])
    assert (backend, squares, last) == ("webgpu", [0.0, 1.0, 4.0, 9.0], 999.0)
    assert once == sums[0]
    assert twice == pytest.approx(sums[1], rel=1e-5)
