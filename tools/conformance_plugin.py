"""What tools/conformance.py loads into the pytest of array-api-tests: exceptions in, outcomes out.

`CONFORMANCE_EXCEPTIONS` names a JSON file with the exceptions that count, `CONFORMANCE_OUTCOMES`
one to write. Of several processes each marks its tests; the one that hears all reports writes.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

PREFIX = "array_api_tests/"
_outcomes: dict[str, dict[str, str]] = {}


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern, in which only * is special, is a test's name or its start up to [ or ::.

    Files, functions and single parameters of a test can thus be named.
    """
    known = re.escape(pattern).replace(r"\*", ".*")
    return re.fullmatch(rf"{known}(?:(?:\[|::).*)?", name, re.DOTALL) is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    exceptions = json.loads(Path(os.environ["CONFORMANCE_EXCEPTIONS"]).read_text(encoding="utf-8"))
    for item in items:
        for number, exception in enumerate(exceptions):
            if any(matches(one, item.nodeid.removeprefix(PREFIX)) for one in exception["tests"]):
                mark = pytest.mark.xfail(reason=f"exception {number}", run=exception["run"])
                item.add_marker(mark)
                break


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    expected = getattr(report, "wasxfail", None)
    if report.failed:
        outcome, detail = "failed", _first_line(report)
    elif expected is not None:
        number = re.findall(r"exception (\d+)", expected)[0]
        outcome, detail = ("excepted" if report.skipped else "passed, though excepted"), number
    elif report.skipped:
        outcome, detail = "not asked", _reason(report)
    elif report.when == "call":
        outcome, detail = "passed", ""
    else:
        return
    name = report.nodeid.removeprefix(PREFIX)
    if _outcomes.get(name, {}).get("outcome") != "failed":
        _outcomes[name] = {"outcome": outcome, "detail": detail}


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _outcomes[report.nodeid] = {"outcome": "failed", "detail": _first_line(report)}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # what xdist's workers have
        target = Path(os.environ["CONFORMANCE_OUTCOMES"])
        target.write_text(json.dumps(_outcomes), encoding="utf-8")


def _first_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(text).removeprefix("Skipped: ")
