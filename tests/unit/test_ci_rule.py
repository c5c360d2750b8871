"""A skip is a failure in CI, unless the test is marked as needing absent hardware."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SUITE = """
import pytest

def test_passes():
    pass

def test_skips():
    pytest.skip("no adapter")

@pytest.mark.cuda
def test_needs_cuda():
    pytest.skip("no NVIDIA GPU")

@pytest.mark.xfail(reason="known")
def test_expected_failure():
    assert False
"""


def run_suite(folder: Path, ci: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "test_file_skipped.py").write_text("import pytest; pytest.importorskip('no_such')")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = cuda: needs CUDA\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--continue-on-collection-errors", "."]
    root = CONFTEST.parents[1]  # what conftest imports
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "CI": ci,
            "PYTEST_ADDOPTS": "",
            "PYTHONPATH": os.pathsep.join((str(root), str(root / "src"))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_skips_fail_in_ci(tmp_path):
    output = run_suite(tmp_path, "true")
    assert "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error" in output
    assert "no adapter" in output


def test_skips_are_skips_elsewhere(tmp_path):
    output = run_suite(tmp_path, "")
    assert "1 passed, 3 skipped, 1 xfailed" in output


def test_what_the_device_suite_leaves_out_is_there():
    from tests.device.conftest import _LEFT_OUT

    files = {path.stem for path in (CONFTEST.parent / "device").rglob("test_*.py")}
    assert sorted(_LEFT_OUT.keys() - files) == []
