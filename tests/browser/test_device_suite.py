"""The device suite, run by pytest inside the page: the same files that run on all other devices.

What CI runs is a part of it, with something of each theme; `make test-full` runs all files but
those in `suite.ELSEWHERE`, which need what a page does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import suite
from tests.browser.harness import DEPENDENCIES, PYTEST, ROOT, Browser, Page, running

# Five hundred tests, most of them short. What numbers are (test_values), and rows, the WGSL of a
# page has in common with Dawn's, which takes all of those tests' kernels natively.
_IN_CI = (
    "kernels/test_control.py", "kernels/test_ir_atomics.py", "kernels/test_ir_kernels.py",
    "launching/test_batch.py", "launching/test_launch.py", "launching/test_profile.py",
    "launching/test_streams.py",
    "cuda_cpp/test_cpp_atomics.py", "cuda_cpp/test_cpp_lockstep.py",
    "arrays/test_creation.py", "arrays/test_device_windows.py",
    "compiled/test_compile.py",
    "gradients/test_autograd.py",
)  # fmt: skip
_AT_LEAST = 500  # tests of these that pass
_AT_MOST = 8  # that want what Pyodide's page lacks: suite.LACKING
_IN_A_WORKER = ("launching/test_launch.py", "kernels/test_blocks.py")


@pytest.fixture(scope="module")
def browser_of_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("suite")
    suite.pack(folder / "tests.zip")
    with running({"suite": folder}) as browser:
        yield browser


def _page(browser: Browser, *, worker: bool = False) -> Page:
    page = browser.python(
        worker=worker,
        packages=("numpy", "packaging"),
        wheels=(*dict.fromkeys((*DEPENDENCIES, *PYTEST, "mpmath", "einops")), "treadle"),
    )
    suite.install(page, f"{browser.address}/suite/tests.zip")
    return page


def _run(page: Page, files: tuple[str, ...]) -> suite.Counts:
    counts = suite.Counts()
    for file in files:
        counts.add(suite.run(page, file))
    assert page.complaints() == []
    print(counts.summary())
    return counts


@pytest.mark.timeout(900)
def test_a_part_of_the_suite_in_the_window(browser_of_suite: Browser) -> None:
    page = _page(browser_of_suite)
    counts = _run(page, _IN_CI)
    page.close()
    assert counts.failures == []
    assert counts.passed >= _AT_LEAST, counts.summary()
    assert sum(counts.lacking.values()) <= _AT_MOST, counts.summary()


@pytest.mark.timeout(300)
def test_a_part_of_the_suite_in_a_worker(browser_of_suite: Browser) -> None:
    page = _page(browser_of_suite, worker=True)
    counts = _run(page, _IN_A_WORKER)
    page.close()
    assert counts.failures == []
    assert counts.passed >= 210, counts.summary()


# The folders of the suite, and how many tests of them pass beside those above.
_REST = {
    "arrays": 1480, "compiled": 380, "cuda_cpp": 160, "gradients": 700, "kernels": 250,
    "launching": 120, "nn": 320, "quant": 65, "stencils": 165,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("folder", _REST)
def test_the_rest_of_the_suite(browser_of_suite: Browser, folder: str) -> None:
    files = tuple(f for f in _files() if f.startswith(f"{folder}/") and f not in _IN_CI)
    page = _page(browser_of_suite)
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
