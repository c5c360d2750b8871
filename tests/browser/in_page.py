"""pytest inside the page: this file is copied there and runs there."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

SUITE = "/home/pyodide/suite"
# Output to descriptors cannot be captured in a page.
_OPTIONS = ("-q", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--tb=short")


class Counter:
    """What became of each test."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.failures: list[tuple[str, str]] = []
        self.unread: list[tuple[str, str]] = []  # files that cannot be imported

    def pytest_addoption(self, parser: Any) -> None:
        """Of pytest-timeout, which needs threads or alarms."""
        parser.addini("timeout", "seconds of a test")

    def pytest_configure(self, config: Any) -> None:
        """Its marker, too."""
        config.addinivalue_line("markers", "timeout(seconds): of pytest-timeout")

    @pytest.fixture
    def capfd(self, capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
        """Of descriptors there are none to capture."""
        return capsys

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test, or what went wrong around it."""
        if report.when == "call" or report.outcome != "passed":
            self.counts[report.outcome] += 1
        if report.outcome == "failed":
            self.failures.append((report.nodeid, str(report.longrepr)))
        elif report.outcome == "skipped":
            self.failures.append((report.nodeid, f"skipped: {report.longrepr[2]}"))

    def pytest_collectreport(self, report: Any) -> None:
        """Keep a file that cannot be imported."""
        if report.failed:
            self.unread.append((report.nodeid, str(report.longrepr)))


def run(arguments: list[str]) -> dict[str, Any]:
    """Run pytest with these arguments: counts, failures (each with its text) and seconds."""
    before = os.getcwd(), os.environ.copy()
    os.chdir(SUITE)
    os.environ["TREADLE_DEVICE"] = "cpu"  # what tests without a device expect beside a software GPU
    os.environ["TREADLE_CACHE_DIR"] = "/home/pyodide/cache"  # the page's storage is mounted there
    counter, text, began = Counter(), io.StringIO(), time.perf_counter()
    try:
        with redirect_stdout(text), redirect_stderr(text):
            code = pytest.main(
                [*_OPTIONS, *arguments],
                plugins=[counter],
            )
    finally:  # other tests have the page afterwards
        os.chdir(before[0])
        os.environ.clear()
        os.environ.update(before[1])
    for name in [name for name in sys.modules if name.startswith("tests.device.")]:
        if name.rpartition(".")[2].startswith("test_"):
            del sys.modules[name]
    return {
        **counter.counts,
        "failures": counter.failures,
        "unread": counter.unread,
        "seconds": time.perf_counter() - began,
        "code": int(code),
        "text": text.getvalue()[-2000:] if code not in (0, 1) else "",
    }
