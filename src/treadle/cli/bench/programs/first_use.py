"""The first step of a process: what there is to compile, from nothing and from disk.

`python -m treadle.cli.bench.programs.first_use PROGRAM DEVICE SIZES` is that process. It prints the
seconds of the step as JSON. Programs make their model and load its parameters before the clock
starts.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import SMALL, Setting, setting_for
from treadle.core.errors import TreadleError

_MODULES = {"decoder": "decoder", "resnet": "resnet", "resnet-compiled": "resnet"}
_AT_MOST = 120  # seconds
# Where compilers keep what they compiled: ours, CUDA's, and those of NVIDIA's and Mesa's Vulkan.
_CACHES = {
    "TREADLE_CACHE_DIR": "treadle",
    "CUDA_CACHE_PATH": "cuda",
    "__GL_SHADER_DISK_CACHE_PATH": "gl",
    "MESA_SHADER_CACHE_DIR": "mesa",
}


def first_uses(setting: Setting, program: str, name: str) -> list[Figure]:
    """A program's first step in two processes, the second of which finds what the first kept."""
    with tempfile.TemporaryDirectory(prefix="treadle-bench-", ignore_cleanup_errors=True) as folder:
        environment = os.environ | {key: str(Path(folder, at)) for key, at in _CACHES.items()}
        for at in _CACHES.values():
            Path(folder, at).mkdir()
        size = "small" if setting.sizes is SMALL else "full"
        command = [sys.executable, "-m", __name__, program, setting.device.id, size]
        found = [_process(command, environment) for _ in range(2)]
    return [
        Figure(setting.suite, f"{name} of a process, {how}", "s", seconds)
        for how, seconds in zip(("empty cache", "from disk"), found, strict=True)
    ]


def _process(command: list[str], environment: dict[str, str]) -> float:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_AT_MOST, env=environment, check=False
    )
    if done.returncode:
        last = (done.stderr.strip() or "nothing was printed").splitlines()[-1]
        raise TreadleError(f"{' '.join(command[2:])} ended with {done.returncode}: {last}")
    return float(json.loads(done.stdout)["seconds"])


def main(program: str, spec: str, size: str) -> None:
    """Run the first step of a program on a device."""
    find: Any = importlib.import_module("treadle")
    module = importlib.import_module(f"treadle.cli.bench.programs.{_MODULES[program]}")
    chosen = setting_for("", find.device(spec), size == "small")
    with find.use_device(chosen.device):
        step = module.first_step(chosen, program)
        chosen.ours.wait()
        began = time.perf_counter()
        step()
        chosen.ours.wait()
        sys.stdout.write(json.dumps({"seconds": time.perf_counter() - began}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
