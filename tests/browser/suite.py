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
    "test_actor_machine": "threads",
    "test_actor_profiles": "threads",
    "test_actors": "threads",
    "test_bad_input": "threads",
    "test_benchmark_cuda_cpp": "the folder `benchmarks`",
    "test_benchmark_kernels": "the folder `benchmarks`",
    "test_cpp_function_objects": "g++",
    "test_cpp_language": "g++",
    "test_cpp_class_templates": "g++",
    "test_cpp_constraints": "g++",
    "test_cpp_deduction": "g++",
    "test_cpp_packs": "g++",
    "test_cpp_recursion": "g++",
    "test_cpp_templates": "g++",
    "test_cpp_narrow_numbers": "the package ml_dtypes",
    "test_cuda_cards": "NVIDIA's driver",
    "test_further_math": "SciPy",
    "test_interop_cuda": "NVIDIA's driver",
    "test_interrupted_finalizers": "Ctrl-C",
    "test_interrupted_launches": "Ctrl-C",
    "test_large_arrays": "gigabytes of memory",
    "test_layers": "PyTorch",
    "test_many_actors": "threads",
    "test_math": "SciPy",
    "test_messages": "threads",
    "test_persistent_cards": "threads",
    "test_pipes": "threads",
    "test_prepared": "threads",
    "test_quantized": "the package gguf",
    "test_relaunched": "threads",
    "test_resident_kernel": "threads",
    "test_saved_state": "threads",
    "test_side_by_side": "threads",
    "test_stamps": "threads",
    "test_timeouts": "threads",
    "test_token_sampling": "SciPy",
    "test_topics": "threads",
}
_NEWER = "DLPack as NumPy has it from 2.1 on: Pyodide 0.27.7 has NumPy 2.0"
# Files of which a part needs that: which tests run (pytest's -k), and what the others need.
PARTS = {
    "test_cpp_virtual": ("not beside_the_host", "g++"),
    "test_interop": (
        "not (read_only_foreign or foreign_memory_interpreted or numpy_sees or host_copy_for or "
        "may_not_be_written or refuses_raises or read_only_memory_stays)",
        _NEWER,
    ),
    "test_large_scattering": ("not beyond_32_bits", "an array of 2 GiB"),
    "test_sharing": ("not (from_dlpack or copies_share_nothing or any_order_of_events)", _NEWER),
    "test_wide_integers": (
        "not (without_the_feature or refused_where_there_are_none)", "the native driver",
    ),
}  # fmt: skip
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


def run(page: Page, file: str) -> dict[str, Any]:
    """A file of the suite: its counts, and the tests that failed, with their texts."""
    arguments = [f"tests/device/{file}"]
    part = PARTS.get(Path(file).stem)
    if part is not None:
        arguments += ["-k", part[0]]
    found: dict[str, Any] = page.run(
        f"""
        import in_page, treadle
        await treadle.init()  # anew, if the device was lost
        in_page.run({arguments!r})
        """
    )
    return found
