"""Hold a device against the Array API's public test suite, and write docs/conformance.md.

    python tools/conformance.py CHECKOUT --device cpu --record

CHECKOUT is data-apis/array-api-tests with its submodule; its requirements must be installed. What
may fail stands in tests/conformance/exceptions.toml, each with its reason. The exit status is 0 if
all else passes and every exception is needed. `--record` keeps the counts in
tests/conformance/results.json, from which, and from the exceptions, the page is written.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
EXCEPTIONS = ROOT / "tests" / "conformance" / "exceptions.toml"
RESULTS = ROOT / "tests" / "conformance" / "results.json"
OUTCOMES = ("passed", "excepted", "not asked", "failed")
UNEXPECTED = "passed, though excepted"
_LONGEST = 110
_MESSAGES = 5  # for each function, of those that are heard most


@dataclass(frozen=True)
class Allowed:
    """Tests that may fail, the devices where they may, and why.

    In a test's name * stands for anything. A device is an id or a backend; no device is any.
    """

    tests: tuple[str, ...]
    reason: str
    devices: tuple[str, ...] = ()
    run: bool = True  # False where even running the tests does harm
    always: bool = True  # False where what is drawn decides whether they fail

    def counts_on(self, device: str) -> bool:
        """Whether it is one on a device, named by its id or backend."""
        return not self.devices or device in self.devices or device.split(":")[0] in self.devices


def exceptions() -> list[Allowed]:
    """The reviewed list."""
    listed = tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8")).get("exception", [])
    return [
        Allowed(**{key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()})
        for entry in listed
    ]


# --- running -------------------------------------------------------------------------------------


def run(
    suite: Path, allowed: list[Allowed], environment: dict[str, str], options: Iterable[str]
) -> dict[str, dict[str, str]]:
    """The outcome of each test of a checkout, by its name, with the reason or the message."""
    with tempfile.TemporaryDirectory() as scratch:
        given, heard = Path(scratch) / "exceptions.json", Path(scratch) / "outcomes.json"
        marks = [{"tests": one.tests, "run": one.run} for one in allowed]
        given.write_text(json.dumps(marks), encoding="utf-8")
        python_path = [str(ROOT / "tools"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        variables = {
            **inherited,
            "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
            "CONFORMANCE_EXCEPTIONS": str(given),
            "CONFORMANCE_OUTCOMES": str(heard),
            **environment,
        }
        command = [sys.executable, "-m", "pytest", "array_api_tests", "-p", "conformance_plugin"]
        command += ["-q", "--tb=no", "--no-summary", "--disable-warnings", "--disable-deadline"]
        subprocess.run([*command, *options], cwd=suite, env=variables, check=False)
        if not heard.exists():
            raise SystemExit("pytest did not get as far as the tests; its output says why")
        found: dict[str, dict[str, str]] = json.loads(heard.read_text(encoding="utf-8"))
        return found


def environment_of(device: str) -> dict[str, str]:
    """Variables that tell the suite what to test, on which device, with which of its dtypes."""
    import treadle as td

    info = td.__array_namespace_info__()
    missing = set(info.dtypes(device="cpu")) - set(info.dtypes(device=device))
    return {
        "TREADLE_DEVICE": device,
        "ARRAY_API_TESTS_MODULE": "treadle",
        "ARRAY_API_TESTS_VERSION": td.__array_api_version__,
        "ARRAY_API_TESTS_SKIP_DTYPES": ",".join(sorted(missing)),
    }


def unused(allowed: list[Allowed], outcomes: dict[str, dict[str, str]]) -> list[Allowed]:
    """Exceptions that match no test, or whose tests all pass though they should always fail."""
    met = {(o["outcome"], o["detail"]) for o in outcomes.values()}
    return [
        one
        for number, one in enumerate(allowed)
        if ("excepted", str(number)) not in met
        and (one.always or (UNEXPECTED, str(number)) not in met)
    ]


def surprises(allowed: list[Allowed], outcomes: dict[str, dict[str, str]]) -> list[str]:
    """The names of tests that pass although their exception says that they always fail."""
    return [
        name
        for name, found in outcomes.items()
        if found["outcome"] == UNEXPECTED and allowed[int(found["detail"])].always
    ]


def report(outcomes: dict[str, dict[str, str]], allowed: list[Allowed]) -> int:
    """Print what matters, by function, and give the exit status."""
    failed: dict[str, list[str]] = defaultdict(list)
    for name, found in outcomes.items():
        if found["outcome"] == "failed":
            failed[name.split("[")[0]].append(found["detail"])
    for function, messages in sorted(failed.items()):
        for message, count in Counter(messages).most_common(_MESSAGES):
            print(f"{count:4} {function}: {message[:_LONGEST]}")
    passing = surprises(allowed, outcomes) if allowed else []
    idle = unused(allowed, outcomes)
    for name in passing:
        print(f"passes, though an exception says that it fails: {name[:_LONGEST]}")
    for one in idle:
        print(f"an exception that nothing needs: {', '.join(one.tests)}")
    print(", ".join(f"{count} {word}" for word, count in counts(outcomes).items()))
    return 1 if failed or passing or idle or not outcomes else 0


def counts(outcomes: dict[str, dict[str, str]]) -> dict[str, int]:
    """How many tests had each outcome; one that may fail and does not has passed."""
    found = Counter(one["outcome"] for one in outcomes.values())
    return {word: found[word] + (word == "passed") * found[UNEXPECTED] for word in OUTCOMES}


# --- the page ------------------------------------------------------------------------------------


def record(
    suite: Path, environment: dict[str, str], examples: int, outcomes: dict[str, dict[str, str]]
) -> None:
    """Keep a device's counts."""
    import treadle as td

    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=suite, capture_output=True, text=True
    )
    skipped = Counter(o["detail"] for o in outcomes.values() if o["outcome"] == "not asked")
    device = environment["TREADLE_DEVICE"]
    results[device] = {
        "name": td.device(device).name,
        "suite": commit.stdout.strip() or "unknown",
        "version": environment["ARRAY_API_TESTS_VERSION"],
        "examples": examples,
        "lacks": [name for name in environment["ARRAY_API_TESTS_SKIP_DTYPES"].split(",") if name],
        "counts": counts(outcomes),
        "not asked": dict(sorted(skipped.items())),
    }
    text = json.dumps(dict(sorted(results.items())), indent=2)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def counts_table(results: dict[str, Any]) -> str:
    """A row for each device that was tried."""
    if not results:
        return "No run is recorded yet.\n"
    lines = ["| device | dtypes it lacks | " + " | ".join(OUTCOMES) + " |", "|---" * 6 + "|"]
    for device, found in results.items():
        cells = [f"`{device}`", ", ".join(found["lacks"]) or "none"]
        cells += [str(found["counts"][word]) for word in OUTCOMES]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for device, found in results.items():
        lines.append(
            f"`{device}` is {found['name']}: version {found['version']} of the standard, "
            f"{found['examples']} drawn "
            f"examples a test, array-api-tests at {found['suite']}. Not asked: "
            + ("; ".join(f"{n} × {why}" for why, n in found["not asked"].items()) or "nothing")
            + ".\n"
        )
    return "\n".join(lines)


def exceptions_table(listed: list[Allowed]) -> str:
    """A row for each exception."""
    if not listed:
        return "There is none.\n"
    lines = ["| tests | devices | reason |", "|---|---|---|"]
    for one in listed:
        names = ", ".join(f"`{name}`" for name in one.tests).replace("|", "\\|")
        lines.append(f"| {names} | {', '.join(one.devices) or 'all'} | {one.reason} |")
    return "\n".join(lines) + "\n"


def page_with_tables(page: str) -> str:
    """The page's text with the tables as they should be now."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    tables = {"counts": counts_table(results), "exceptions": exceptions_table(exceptions())}
    for name, table in tables.items():
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def write_page() -> None:
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run array-api-tests, or only write the page.")
    parser.add_argument("suite", type=Path, nargs="?", help="a checkout; none: write the page")
    parser.add_argument("--device", default="cpu", help="an id or a backend, as TREADLE_DEVICE")
    parser.add_argument("--examples", type=int, default=100, help="drawn for each test")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--random", action="store_true", help="draw other examples than last time")
    parser.add_argument("--record", action="store_true", help="keep the counts, write the page")
    parser.epilog = "What follows -- is for pytest: -- -k sum -x"
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked, for_pytest = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    if asked.suite is None:
        write_page()
        return 0
    suite = asked.suite.resolve()
    if not (suite / "array-api" / "spec").is_dir():
        parser.error(f"{suite} has no array-api/spec: check array-api-tests out with its submodule")
    for module in ("ndindex", "pytest_jsonreport"):
        if importlib.util.find_spec(module) is None:
            parser.error(f"the suite needs {module}: pip install -r {suite}/requirements.txt")
    if asked.record and for_pytest:
        parser.error("--record keeps the counts of a whole run: leave pytest's options out")
    sys.path.insert(0, str(ROOT / "src"))
    environment = environment_of(asked.device)
    options = [f"--max-examples={asked.examples}", *for_pytest]
    options += [] if asked.random else ["--derandomize"]
    options += ["-n", str(asked.jobs)] if asked.jobs > 1 else []
    allowed = [one for one in exceptions() if one.counts_on(asked.device)]
    outcomes = run(suite, allowed, environment, options)
    # A part of the tests says nothing about exceptions for the others.
    status = report(outcomes, [] if for_pytest else allowed)
    if asked.record:
        record(suite, environment, asked.examples, outcomes)
        write_page()
    return status


if __name__ == "__main__":
    sys.exit(main())
