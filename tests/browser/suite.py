"""The device suite inside a page: the tests are copied there, and pytest runs them."""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser.harness import ROOT, Page

_COPIED = (
    "tests/__init__.py", "tests/conftest.py", "tests/device", "tests/support", "pyproject.toml",
)  # fmt: skip
# Files that need what a page does not have, by their names: they run elsewhere only.
ELSEWHERE = {
    "test_benchmark_cuda_cpp": "the folder `benchmarks`",
    "test_benchmark_kernels": "the folder `benchmarks`",
    "test_compile_guards": "functions of C in the process",
    "test_compile_training": "a compiler that is quick for gradients of convolutions",
    "test_convolution": "such a compiler",
    "test_cuda_cards": "NVIDIA's driver",
    "test_further_math": "SciPy",
    "test_gradients_layers": "such a compiler",
    "test_interop_cuda": "NVIDIA's driver",
    "test_interrupted_finalizers": "Ctrl-C",
    "test_interrupted_launches": "Ctrl-C",
    "test_large_arrays": "gigabytes of memory",
    "test_large_scattering": "gigabytes of memory",
    "test_math": "SciPy",
    "test_quantized": "the package gguf",
    "test_side_by_side": "threads",
    "test_token_sampling": "SciPy",
    "test_training": "such a compiler",
    "test_wide_integers": "devices of the native driver",
}
# What single tests want, by what their errors say: such a test is counted as one that lacks it.
LACKING = {
    "No module named 'ml_dtypes'": "ml_dtypes",
    "by the package ml_dtypes": "ml_dtypes",
    "No module named 'scipy'": "SciPy",
    "can't start new thread": "threads",
    "no device 'cpu'": "the CPU as a device",
    "only one device": "a second device",
}


@dataclass
class Counts:
    """What became of tests in the page."""

    passed: int = 0
    lacking: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, found: dict[str, Any]) -> None:
        """Add a run."""
        self.passed += found["passed"]
        self.seconds += found["seconds"]
        for name, text in found["failures"]:
            last = text.strip().rpartition("\n")[2]
            wanted = next((what for sign, what in LACKING.items() if sign in last), None)
            if wanted is None:
                self.failures.append((name, text[-2000:]))
            else:
                self.lacking[wanted] += 1
        # A file of which nothing runs belongs into `ELSEWHERE`.
        self.failures += [(name, text[-2000:]) for name, text in found["unread"]]
        if found["code"] not in (0, 1) and not found["unread"]:
            self.failures.append(("pytest", found["text"] or "no tests ran"))

    def summary(self) -> str:
        """The counts in a line."""
        lacking = ", ".join(f"{count} lack {what}" for what, count in self.lacking.items())
        return (
            f"{self.passed} passed, {len(self.failures)} failed, {lacking or 'none lacks anything'}"
            f" in {self.seconds:.0f} s"
        )


def pack(target: Path) -> None:
    """The tests as an archive for the page."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _COPIED:
            place = ROOT / name
            found = sorted(place.rglob("*")) if place.is_dir() else [place]
            for path in found:
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(ROOT))
        archive.write(Path(__file__).with_name("in_page.py"), "in_page.py")


def install(page: Page, address: str) -> None:
    """Unpack the archive, which is served at an address, in the page."""
    page.run(
        f"""
        import sys
        from pyodide.http import pyfetch
        response = await pyfetch({address!r})
        await response.unpack_archive(extract_dir="/home/pyodide/suite", format="zip")
        sys.path.insert(0, "/home/pyodide/suite")
        """
    )


def run(page: Page, *arguments: str) -> dict[str, Any]:
    """pytest with these arguments: its counts, and the tests that failed, with their texts."""
    found: dict[str, Any] = page.run(
        f"""
        import in_page, treadle
        await treadle.init()  # anew, if the device was lost
        in_page.run({list(arguments)!r})
        """
    )
    return found
