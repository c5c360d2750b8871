"""`python -m benchmarks [SUITE …]`: measure, print ratios, write JSON.

A suite is named for what it measures and, where there are several, the device: `gpu-cuda` is the
throughput of a large GPU, `launch-cuda` what launches cost the host, `arrays-cuda` is about lazy
arrays, `library-cuda` about the kernel library, `compiled-cuda` what calls of compiled functions
cost the host, `crossover-cuda` from which size on a device is quicker than the host,
`training-cuda` is about steps of training, `programs-cuda` about whole programs, `quantized-cuda`
about products with quantized matrices, `encoders-cuda` about embeddings of texts,
`distributed-cuda` about several processes, `products-cuda`, `attention-cuda`, `convolutions-cuda`,
`algorithms-cuda` and `steps-cuda` about a card's rates beside PyTorch, `actors-cuda` about messages
to actors, `stencils-cuda` about grids beside a copy, `compile-cuda` about how long a new kernel
takes, `ptx` our PTX beside NVRTC's, `cuda_cpp-cuda` CUDA C++ beside NVRTC, `parsing` how long
reading CUDA C++ takes, `browser` a page of Chromium. A device's name stands for all its suites that
fit this machine.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import traceback
from collections.abc import Callable
from typing import Any

import treadle as td
from benchmarks import commits, harness
from benchmarks.harness import Figure

DEVICES = ("cuda", "webgpu", "dawn")
# The module of each suite, and what it measures there.
SUITES: dict[str, tuple[str, ...]] = {
    "start": ("start",),
    "cpu": ("cpu",),
    **{f"{suite}-{name}": (suite, name) for name in DEVICES for suite in ("launch", "gpu")},
    "arrays-cpu": ("arrays", "cpu"),
    **{f"arrays-{name}": ("arrays", name) for name in DEVICES},
    "library-cpu": ("library", "cpu"),
    **{f"library-{name}": ("library", name) for name in DEVICES},
    "compiled-cpu": ("compiled", "cpu"),
    **{f"compiled-{name}": ("compiled", name) for name in DEVICES},
    "training-cpu": ("training", "cpu"),
    **{f"training-{name}": ("training", name) for name in DEVICES},
    **{f"crossover-{name}": ("crossover", name) for name in DEVICES},
    "programs-cpu": ("programs", "cpu"),
    **{f"programs-{name}": ("programs", name) for name in DEVICES},
    "models-cpu": ("models", "cpu"),
    **{f"models-{name}": ("models", name) for name in DEVICES},
    "quantized-cpu": ("quantized", "cpu"),
    **{f"quantized-{name}": ("quantized", name) for name in DEVICES},
    "encoders-cpu": ("encoders", "cpu"),
    **{f"encoders-{name}": ("encoders", name) for name in DEVICES},
    "actors-cpu": ("actors", "cpu"),
    **{f"actors-{name}": ("actors", name) for name in DEVICES},
    "stencils-cpu": ("stencils", "cpu"),
    **{f"stencils-{name}": ("stencils", name) for name in DEVICES},
    "compile-cuda": ("compile", "cuda"),
    "compile-webgpu": ("compile", "webgpu"),
    **{
        f"{suite}-{name}": (f"cards.{suite}", name)
        for name, suites in {
            "cuda": ("products", "attention", "convolutions", "algorithms", "steps"),
            "webgpu": ("products", "algorithms"),
            "dawn": ("products", "attention", "algorithms"),
        }.items()
        for suite in suites
    },
    "distributed-cpu": ("distributed", "cpu"),
    "distributed-cuda": ("distributed", "cuda"),
    "ptx": ("ptx",),
    **{f"cuda_cpp-{name}": ("cuda_cpp", name) for name in DEVICES},
    "parsing": ("cuda_cpp.parsing",),
    "browser": ("browser",),
}


# Suites that large GPUs are for, and the CPU where it has them.
_OF_CARDS = frozenset({
    "gpu", "training", "programs", "encoders", "crossover", "cuda_cpp", "models", "products",
    "attention", "convolutions", "algorithms", "steps",
})  # fmt: skip


def fits(suite: str) -> bool:
    """Whether this machine has what a suite measures."""
    kind, _, name = suite.partition("-")
    name = "cuda" if suite == "ptx" else name
    if suite == "browser":
        return shutil.which("chromium") is not None
    if not name:
        return True
    return td.is_available(name) and (
        kind not in _OF_CARDS or name == "cpu" or td.device(name).kind == "discrete"
    )


def suites_of(words: list[str]) -> list[str]:
    """The suites that the words on the command line stand for; all that fit if there are none.

    >>> suites_of(["cpu", "start"])
    ['cpu', 'start']
    """
    if not words:
        return [suite for suite in SUITES if fits(suite)]
    found: list[str] = []
    for word in words:
        if word not in DEVICES:
            found.append(word)
            continue
        td.device(word)  # DeviceNotFound says what would make it appear
        of_device = [s for s, module in SUITES.items() if word in module]
        found += [s for s in of_device + ["ptx"] * (word == "cuda") if fits(s)]
    return list(dict.fromkeys(found))


def run(measurement: Callable[[], list[Figure]], failed: list[str], suite: str) -> list[Figure]:
    """A measurement's figures. One that fails is told of, and the others go on."""
    try:
        return measurement()
    except Exception as error:  # noqa: BLE001 - whatever it was, it was this measurement's
        traceback.print_exc()
        failed.append(f"{suite}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return []


def main() -> None:
    """Run the suites named on the command line, all that fit this machine if none is."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words = [*DEVICES, *SUITES]
    parser.add_argument("suite", nargs="*", choices=[*words, []], help="which; all if none")
    parser.add_argument("--name", help="the result file's name (default: the suites' names)")
    parser.add_argument("--runs", type=int, default=1, help="medians of this many runs of all")
    parser.add_argument("--commit", help="of the code, for a copy without git's history")
    chosen = parser.parse_args()
    suites = suites_of(chosen.suite)
    about: dict[str, Any] = {"machine": harness.machine(), "card": harness.card()}
    commit = chosen.commit or commits.here()
    print(", ".join(value for value in about.values() if value))
    figures: list[Figure] = []
    failed: list[str] = []
    for _ in range(chosen.runs):
        for suite in suites:
            name, *where = SUITES[suite]
            module = importlib.import_module(f"benchmarks.{name}")
            about.update(getattr(module, "about", dict)(*where))
            for measurement in module.measurements(*where):
                figures += run(measurement, failed, suite)
    figures = harness.medians(figures)
    harness.show(figures)
    about["commit"] = commit
    if not commit:
        print("the commit is not known here, and the tables need it: give it with --commit")
    if figures:
        print(harness.keep(figures, chosen.name or "-".join(chosen.suite or suites), about))
    if failed:
        sys.exit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    try:
        main()
    except td.errors.DeviceNotFound as missing:
        sys.exit(str(missing))
