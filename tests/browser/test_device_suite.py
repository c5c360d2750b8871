"""The device suite, run by pytest inside the page: the same files that run on all other devices.

What CI runs is a part of it, with something of each theme; `make test-full` runs all files but
those in `suite.ELSEWHERE`, which need what a page does not have.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import suite
from tests.browser.conftest import Way
from tests.browser.harness import DEPENDENCIES, PYTEST, ROOT, Browser, Page

# Four hundred tests, most of them short. What numbers are (test_values), and rows, the WGSL of a
# page has in common with Dawn's, which takes all of those tests' kernels natively.
_IN_CI = (
    "kernels/test_control.py", "kernels/test_ir_atomics.py", "kernels/test_ir_kernels.py",
    "launching/test_batch.py", "launching/test_launch.py", "launching/test_profile.py",
    "launching/test_streams.py",
    "cuda_cpp/test_cpp_lockstep.py",
    "arrays/test_device_windows.py",
    "compiled/test_compile.py",
    "gradients/test_autograd.py",
)  # fmt: skip
_AT_LEAST = 365  # tests of these that pass
_AT_MOST = 8  # that want what Pyodide's page lacks: suite.LACKING
# In a worker only what crosses to JavaScript is another.
_IN_A_WORKER = ("launching/test_launch.py",)
# Wheels that those do without, and other files need.
_OF_THE_REST = (*DEPENDENCIES, "hypothesis", "sortedcontainers", "attrs", "mpmath", "einops")


@pytest.fixture(scope="module")
def tests_at(browser: Browser, suite_folder: Path) -> str:
    """The address of the tests."""
    suite.pack(suite_folder / "tests.zip")
    return f"{browser.address}/suite/tests.zip"


def _prepare(page: Page, browser: Browser, tests_at: str, *more: str) -> Page:
    page.load(browser.address, ("packaging",), (*PYTEST, *more))
    suite.install(page, tests_at)
    return page


def _run(page: Page, files: tuple[str, ...]) -> suite.Counts:
    counts = suite.Counts()
    for file in files:
        counts.add(suite.run(page, file))
    assert page.complaints() == []
    print(counts.summary())
    return counts


# In the pages that other tests have: to load Python and treadle takes seconds.
@pytest.mark.timeout(900)
def test_a_part_of_the_suite_in_the_window(browser: Browser, page: Page, tests_at: str) -> None:
    counts = _run(_prepare(page, browser, tests_at), _IN_CI)
    assert counts.failures == []
    assert counts.passed >= _AT_LEAST, counts.summary()
    assert sum(counts.lacking.values()) <= _AT_MOST, counts.summary()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["worker"], indirect=True)
def test_a_part_of_the_suite_in_a_worker(browser: Browser, way: Way, tests_at: str) -> None:
    counts = _run(_prepare(way.page, browser, tests_at), _IN_A_WORKER)
    assert counts.failures == []
    assert counts.passed >= 110, counts.summary()


# The folders of the suite, and how many tests of them pass beside those above.
_REST = {
    "arrays": 1480, "compiled": 380, "cuda_cpp": 160, "gradients": 700, "kernels": 250,
    "launching": 120, "nn": 320, "quant": 65, "stencils": 165,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("folder", _REST)
def test_the_rest_of_the_suite(browser: Browser, tests_at: str, folder: str) -> None:
    files = tuple(f for f in _files() if f.startswith(f"{folder}/") and f not in _IN_CI)
    page = _prepare(browser.python(), browser, tests_at, *_OF_THE_REST)
    counts = _run(page, files)
    page.close()
    assert counts.failures == []
    assert counts.passed >= _REST[folder], counts.summary()


def _files() -> list[str]:
    """All files of the suite that run in a page."""
    folder = ROOT / "tests" / "device"
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py"))
    return [file for file in found if Path(file).stem not in suite.ELSEWHERE]


def test_every_folder_is_run() -> None:
    assert {file.partition("/")[0] for file in _files()} == _REST.keys()


def test_files_left_out_exist() -> None:
    found = {path.stem for path in (ROOT / "tests" / "device").rglob("test_*.py")}
    assert suite.ELSEWHERE.keys() <= found
    assert suite.PARTS.keys() <= found
    assert {Path(file).stem for file in (*_IN_CI, *_IN_A_WORKER)} <= found
