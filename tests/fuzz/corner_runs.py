"""Drawn corner cases run: by g++, one process for many of them, and by devices."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import treadle as td
from tests.fuzz.cuda_corners import AMBIGUOUS, INPUTS, Case

_ASK = re.compile(r"ASK\((\w+), (.*)\)")
_HEAD = f"""
#include <cstdio>
#include <type_traits>
#include <utility>
#define __device__
template <class F, class... A> int ask(F f, A &&...a)
{{
    if constexpr (std::is_invocable_v<F, A &&...>) return f(std::forward<A>(a)...);
    else return {AMBIGUOUS};
}}
"""
_FLAGS = ("-std=c++17", "-O1", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-w")


def expected(cases: Sequence[Case], folder: Path) -> list[list[int]]:
    """What g++ makes of each case."""
    parts = [_HEAD]
    for number, case in enumerate(cases):
        parts.append(f"namespace case{number} {{\n{_ASK.sub(_asked, case.text)}\n}}\n")
    parts.append(f"int main() {{ int in[] = {{{', '.join(map(str, INPUTS))}}}, out[64];\n")
    for number, case in enumerate(cases):
        parts.append(
            f"case{number}::run(in, out);\n"
            f'for (int i = 0; i < {case.count}; i++) std::printf("%d ", out[i]);\nstd::puts("");\n'
        )
    source, program = folder / "cases.cpp", folder / "cases"
    source.write_text("".join(parts) + "}\n")
    made = subprocess.run(
        ["g++", *_FLAGS, str(source), "-o", str(program)], capture_output=True, text=True
    )
    assert made.returncode == 0, f"{made.stderr[:4000]}"
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    return [[int(one) for one in line.split()] for line in printed.splitlines()]


def _asked(call: re.Match[str]) -> str:
    """A call that may be ambiguous, as a question."""
    name, arguments = call[1], call[2]
    given = "static_cast<decltype(a)>(a)..."
    function = f"[](auto &&...a) -> decltype({name}({given})) {{ return {name}({given}); }}"
    return f"ask({function}, {arguments})"


def kernels_of(cases: Sequence[Case], numbers: Sequence[Sequence[int]]) -> str:
    """A file with a kernel for each case, without the calls that are ambiguous."""
    parts = []
    for number, (case, wanted) in enumerate(zip(cases, numbers, strict=True)):
        lines = case.text.split("\n")
        for at, line in enumerate(lines):
            asked = _ASK.search(line)
            if asked:
                place = int(line.split("[")[1].split("]")[0])
                plain = f"{asked[1]}({asked[2]})"
                lines[at] = "" if wanted[place] == AMBIGUOUS else line.replace(asked[0], plain)
        text = "\n".join(lines)
        parts.append(f"namespace case{number} {{\n{text}\n}}\n")
    return "".join(parts)


def kernel_of(members: Sequence[int], count: int) -> str:
    """A kernel that runs some of a file's cases, each with `count` numbers."""
    calls = "".join(f"case{one}::run(in, out + {at * count});" for at, one in enumerate(members))
    return f"__global__ void all(const int *in, int *out) {{ {calls} }}\n"


def run(
    device: td.Device, cases: Sequence[Case], numbers: Sequence[Sequence[int]]
) -> list[list[int]]:
    """What a device makes of each case; ambiguous numbers are taken as they are."""
    most = max(case.count for case in cases)
    source = kernels_of(cases, numbers) + kernel_of(range(len(cases)), most)
    out = td.zeros(len(cases) * most, dtype=td.int32, device=device)
    given = td.asarray(np.array(INPUTS, np.int32), device=device)
    td.cuda_module(source).all[1, 1](given, out)
    rows = out.numpy().reshape(len(cases), most).tolist()
    return [
        [AMBIGUOUS if w == AMBIGUOUS else f for w, f in zip(wanted, row, strict=False)]
        for wanted, row in zip(numbers, rows, strict=True)
    ]
