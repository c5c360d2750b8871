"""How long a file of a thousand lines takes until its kernels could be printed."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import treadle as td
from benchmarks.cuda_cpp.workloads import KERNELS, WORKLOADS
from benchmarks.harness import Figure

LINES = 1000
_RUNS = 5
_NAMES = re.compile(
    r"\b(saxpy|matmul|warp_sum|block_sum|sum|warp_scan|block_scan|scan_blocks|scan_totals|add_totals|"
    r"histogram|transpose|pulled|nbody|weights|stencil)\b(?=[\[(])"
)
_MACROS = re.compile(r"\b(TILE|DEPTH|EACH|BLOCK|BINS|ROWS)\b")


def measurements() -> list[Callable[[], list[Figure]]]:
    """Of a realistic file, and of what its kernels become."""
    return [_parsing]


def long_file(lines: int = LINES) -> str:
    """The benchmarked kernels again and again under other names, up to so many lines."""
    found: list[str] = []
    copy = 0
    while len(found) < lines:
        for workload in WORKLOADS:
            text = (KERNELS / workload.file).read_text(encoding="utf-8")
            suffix = f"_{workload.path.stem}_{copy}"
            renamed = _NAMES.sub(rf"\1{suffix}", text)
            found += _MACROS.sub(rf"\1{suffix}", renamed).splitlines()
        copy += 1
    # Only whole functions: up to the last brace that ends one.
    last = max(number for number, line in enumerate(found[:lines]) if line == "}")
    return "\n".join(found[: last + 1]) + "\n"


def kernels_of(module: Any) -> list[Any]:
    """All kernels; of templates the instance that is benchmarked."""
    template = (32, 8)
    return [
        module.kernel(name, *(template if name.startswith("transpose") else ()))
        for name in module.kernels
    ]


def _parsing() -> list[Figure]:
    text = long_file()
    times, lowered = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(_RUNS):
            path = Path(folder) / f"long_{number}.cu"
            path.write_text(text, encoding="utf-8")
            began = time.perf_counter()
            module = td.cuda_module(path)
            kernels = kernels_of(module)
            for kernel in kernels:
                kernel.source("ir")
            times.append(time.perf_counter() - began)
            lowered = len(kernels)
    return [
        Figure(
            "parsing", "CUDA C++: parsing and lowering", "s", median(times), 1.0,
            note=f"{text.count(chr(10))} lines, {lowered} kernels, to IR",
        )
    ]  # fmt: skip
