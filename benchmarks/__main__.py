"""`python -m benchmarks [SUITE …]`: measure, print ratios, write JSON."""

from __future__ import annotations

import argparse
import importlib

from benchmarks import harness

SUITES = ("start", "cpu", "webgpu", "gpu")


def main() -> None:
    """Run the suites named on the command line, all that fit this machine if none is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", nargs="*", choices=[*SUITES, []], help="which; all if none")
    parser.add_argument("--name", help="the result file's name (default: the suites' names)")
    parser.add_argument("--runs", type=int, default=1, help="medians of this many runs of all")
    chosen = parser.parse_args()
    suites = chosen.suite or [s for s in SUITES if s != "gpu" or harness.card()]
    runs: list[list[harness.Figure]] = [[] for _ in range(chosen.runs)]
    about = {"machine": harness.machine(), "card": harness.card()}
    print(", ".join(value for value in about.values() if value))
    for figures in runs:
        for suite in suites:
            module = importlib.import_module(f"benchmarks.{suite}")
            figures += module.run()
            about.update(getattr(module, "about", dict)())
    figures = harness.medians(runs)
    harness.show(figures)
    print(harness.keep(figures, chosen.name or "-".join(suites), about))


if __name__ == "__main__":
    main()
