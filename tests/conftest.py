"""What holds for every test: no silent skips in CI, an own cache, Hypothesis's profiles."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator

import pytest

MAY_SKIP_IN_CI = ("cuda", "hardware")
"""Markers of tests for hardware that a CI machine does not have."""


def in_ci() -> bool:
    """Whether the run is a CI run, by the variable that CI systems agree on."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def pytest_configure(config: pytest.Config) -> None:
    # Kernels are trees of nodes without cycles: looking for those after each 700 objects took a
    # twentieth of the run.
    gc.set_threshold(50_000, 20, 20)
    # SciPy reads it when it is first imported, wherever that is: tests/ecosystem needs it.
    os.environ.setdefault("SCIPY_ARRAY_API", "1")
    # Neither read nor litter the user's cache of compiled kernels. Worker processes inherit it.
    if "TREADLE_CACHE_DIR" not in os.environ:
        scratch = tempfile.TemporaryDirectory(prefix="treadle-tests-")
        os.environ["TREADLE_CACHE_DIR"] = scratch.name
        config.add_cleanup(scratch.cleanup)
        config.add_cleanup(lambda: os.environ.pop("TREADLE_CACHE_DIR", None))
    _register_hypothesis_profiles()


def _register_hypothesis_profiles() -> None:
    try:
        from hypothesis import HealthCheck, settings
    except ImportError:  # inside a browser
        return
    _leave_the_code_unread()
    slow_ok = [HealthCheck.too_slow, HealthCheck.data_too_large]
    # In CI the drawn cases are the same for the same code, so that a change is judged by itself;
    # `make test-full` draws anew.
    settings.register_profile(
        "default",
        max_examples=100,
        deadline=None,
        derandomize=in_ci(),
        database=None if in_ci() else settings.default.database,
        suppress_health_check=slow_ok,
    )
    settings.register_profile(
        "full", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=slow_ok
    )
    settings.load_profile("default")


def _leave_the_code_unread() -> None:
    """Hypothesis reads all modules for constants that it may draw. Those are two thousand files,
    six seconds of each process; and any change of them would have other cases drawn."""
    from hypothesis.internal.conjecture import providers

    if hasattr(providers, "_get_local_constants"):
        none = providers._local_constants
        providers._get_local_constants = lambda: none


@pytest.fixture(scope="module", autouse=True)
def _few_objects() -> None:
    """The garbage collector looks at what a module's tests make alone. Twenty-five thousand tests
    and all that they have imported are millions of objects, at which it would look for seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _dawn() -> None:
    """Whatever a test launches on webgpu, Tint must accept as naga does; and Dawn has a device."""
    try:
        import wgpudawn  # noqa: F401
    except ImportError:
        if in_ci():
            raise
        return
    from tests.support.both_compilers import check_with_tint
    from tests.support.dawn import let_dawn_find_a_device

    check_with_tint()
    let_dawn_find_a_device()  # before anything lists devices, which is done once


def _refuse_skip(where: str, reason: object) -> str:
    if isinstance(reason, tuple):  # (path, line, text)
        reason = reason[2]
    return (
        f"{where} was skipped in CI, where everything on cpu and webgpu must run.\n{reason}\n"
        f"Only tests marked {' or '.join(MAY_SKIP_IN_CI)} may skip there."
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    allowed = any(item.get_closest_marker(name) for name in MAY_SKIP_IN_CI)
    if in_ci() and report.skipped and not hasattr(report, "wasxfail") and not allowed:
        report.outcome = "failed"
        report.longrepr = _refuse_skip(item.nodeid, report.longrepr)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if in_ci() and report.skipped:  # a whole file; its markers are not known yet
        report.outcome = "failed"
        report.longrepr = _refuse_skip(collector.nodeid, report.longrepr)
    return report
