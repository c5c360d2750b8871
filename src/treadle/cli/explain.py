"""`treadle explain`: what can be said of PTX without running it."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from treadle.cli.usage import WrongUsage
from treadle.core.errors import TreadleError
from treadle.core.paths import no_file
from treadle.ptx_analysis import Finding, KernelReport, report
from treadle.ptx_analysis.assembler import (
    Resources,
    assembled_for,
    blocks_at_once,
    find_ptxas,
    resources,
    warps_at_once,
)
from treadle.ptx_analysis.text import parse

NO_ASSEMBLER = (
    "registers and spills are not known: NVIDIA's assembler is not here "
    "(pip install nvidia-cuda-nvcc)"
)
Found = list[tuple[KernelReport, Resources | None]]


@dataclass(frozen=True)
class Explained:
    """What is said of each kernel. `target` is what registers are of ("sm_90"), or why they are not
    known; `refusal` is what the assembler has against the text."""

    target: str
    found: Found
    refusal: str = ""


_SHOWN = 6
"""Places of a finding that are listed one by one."""


def explain(
    file: Path, kernel: str | None, sm: str | None, block: tuple[int, int, int] | None
) -> Explained:
    """What is said of each kernel of a PTX file, or of the one that is named. "-" is the standard
    input. WrongUsage for a kernel, a GPU or a block that the text does not have."""
    if str(file) == "-":
        text = sys.stdin.read()
    elif file.is_dir():
        raise TreadleError(f"{file} is a folder: name a file of PTX")
    elif file.exists():  # a pipe, too, which is not a regular file
        text = file.read_text(encoding="utf-8", errors="replace")
    else:
        raise TreadleError(no_file(file))
    if re.search(r"\b__global__\b", text):
        raise TreadleError(
            f"{file} is CUDA C++, and PTX is explained: treadle transpile {file} --to ptx -o "
            f"{file.stem}.ptx, then treadle explain {file.stem}.ptx"
        )
    reports = report(text, block)
    if kernel is not None:
        names = [each.name for each in reports]
        reports = tuple(each for each in reports if each.name == kernel)
        if not reports:
            raise WrongUsage(f"{file} has no kernel {kernel!r}; it has {', '.join(names)}")
    if block is not None and all(one.block_is_required and one.block != block for one in reports):
        required = " x ".join(map(str, reports[0].block))
        raise WrongUsage(
            f"{reports[0].name} itself says that its blocks have {required} threads (.reqntid): "
            "leave out --block"
        )
    ptxas = find_ptxas()
    unknown: Found = [(each, None) for each in reports]
    if ptxas is None:
        return Explained(NO_ASSEMBLER, unknown)
    own = parse(text).target
    try:
        target = assembled_for(own, f"sm_{sm}" if sm else None, ptxas)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    if target is None:
        known = f"registers and spills are not known: the assembler here does not know {own}"
        return Explained(known, unknown)
    try:
        taken = resources(text, target, ptxas)
    except TreadleError as error:
        return Explained("", unknown, str(error))
    return Explained(target, [(each, taken.get(each.name)) for each in reports])


def as_json(explained: Explained) -> list[dict[str, Any]]:
    """The same as data."""
    listed = []
    for each, taken in explained.found:
        data = asdict(each)
        data["accesses"] = dict(each.accesses)
        data["findings"] = [
            {
                "kind": one.kind,
                "text": one.text,
                "places": [
                    {"line": at.line, "source_line": at.source, "instruction": str(at)}
                    for at in one.places
                ],
            }
            for one in each.findings
        ]
        data["assembled_for"] = explained.target if taken else None
        data["refusal"] = explained.refusal or None
        data["resources"] = asdict(taken) if taken else None
        listed.append(data)
    return listed


def show(explained: Explained, console: Console) -> None:
    """Print it for people, but for a refusal."""
    target, found = explained.target, explained.found
    for at, (each, taken) in enumerate(found):
        if at:
            console.print()
        for line in _lines(each, taken, target):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if not each.findings and not explained.refusal:
            console.print("  nothing to report", highlight=False)
        for one in each.findings:
            for line in (f"  {one.kind:<10} {_places(one)}", f"{'':13}{one.places[0]}: {one.text}"):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
    if target and all(taken is None for _, taken in found):
        console.print(target, markup=False, highlight=False, soft_wrap=True)


def _lines(each: KernelReport, taken: Resources | None, target: str) -> list[str]:
    threads = each.block[0] * each.block[1] * each.block[2]
    extent = " x ".join(str(part) for part in each.block)
    assumed = "" if each.block_is_required else " (assumed: --block X,Y,Z says otherwise)"
    lines = [f"{each.name}: {each.instructions} instructions, blocks of {extent} threads{assumed}"]
    if taken is not None:
        spills = f"{taken.spill_stores} bytes of spills" if taken.spill_stores else "no spills"
        stack = f", {taken.stack} bytes of stack" if taken.stack else ""
        lines.append(
            f"  {target}: {taken.registers} registers, {spills}{stack}, "
            f"{taken.shared} bytes of shared memory"
        )
        capability = int(re.sub(r"\D", "", target))
        fits = blocks_at_once(capability, threads, taken.registers, taken.shared)
        if fits is not None:
            warps = fits[0] * -(-threads // 32)
            dynamic = ", without its dynamic shared memory" if each.has_dynamic_shared else ""
            lines.append(
                f"  {fits[0]} of its blocks run at once on a multiprocessor: {warps} of "
                f"{warps_at_once(capability)} warps, limited by {fits[1]}{dynamic}"
            )
    accesses = ", ".join(f"{count} {space}" for space, count in each.accesses) or "none"
    lines.append(f"  barriers: {each.barriers}; memory accesses: {accesses}")
    if each.unknown:
        lines.append(f"  of {each.unknown} accesses the lanes' addresses could not be compared")
    return lines


def _places(finding: Finding) -> str:
    lines = [str(each.line) for each in finding.places]
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    sources = sorted({each.source for each in finding.places if each.source is not None})
    text = f", of the source {', '.join(map(str, sources[:_SHOWN]))}" if sources else ""
    return f"line{'s' * (len(lines) > 1)} {', '.join(lines[:_SHOWN])}{more}{text}"
