"""Drawn inline PTX: what it becomes computes what the evaluator of PTX makes of its text."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest

import treadle as td
from tests.support.ptx_machine.memory import GlobalMemory
from tests.support.ptx_machine.run import load
from tests.unit.ptx_machine.snippets import module

LANES = 37
REGISTERS = {"r": 4, "d": 2, "f": 2, "p": 2}
CONSTRAINTS = {"r": "+r", "d": "+l", "f": "+f"}
# Instructions by the registers that they take, the result's first; `i` is a number.
DRAWN = {
    "rrr": "add.u32 sub.s32 mul.lo.u32 mul.hi.u32 mul.hi.s32 min.s32 max.u32 and.b32 or.b32 "
    "xor.b32 shl.b32 shr.u32 shr.s32",
    "rr": "not.b32 cnot.b32 neg.s32 popc.b32 clz.b32 brev.b32 bfind.u32 bfind.s32 mov.u32",
    "rrrr": "mad.lo.s32 mad.lo.u32 shf.l.wrap.b32 shf.r.clamp.b32 bfe.s32 prmt.b32 dp4a.s32.s32 "
    "dp4a.u32.u32",
    "rrri": "bfe.u32 bfe.s32 shf.r.wrap.b32 prmt.b32",
    "rri": "add.s32 and.b32 shl.b32 shr.s32",
    "rrrrr": "bfi.b32",
    "rrrrt": "lop3.b32",
    "drr": "mul.wide.u32 mul.wide.s32",
    "drrd": "mad.wide.u32",
    "ddd": "add.u64 sub.s64 mul.lo.u64 and.b64 min.s64 max.u64 mul.hi.u64",
    "ddr": "shl.b64 shr.u64 shr.s64",
    "rd": "popc.b64 clz.b64 cvt.u32.u64",
    "dd": "not.b64 brev.b64 neg.s64",
    "dr": "cvt.u64.u32 cvt.s64.s32",
    "fff": "add.rn.f32 sub.rn.f32 mul.rn.f32 min.f32 max.f32",
    "ffff": "fma.rn.f32",
    "ff": "neg.f32 abs.f32",
    "fr": "cvt.rn.f32.s32 cvt.rn.f32.u32 mov.b32",
    "rf": "cvt.rzi.s32.f32 cvt.rni.s32.f32 cvt.rmi.u32.f32 mov.b32",
    "prr": "setp.lt.s32 setp.ge.u32 setp.ne.b32 setp.hi.u32",
    "pff": "setp.lt.f32 setp.neu.f32 setp.gtu.f32",
    "prrp": "setp.le.and.s32 setp.gt.or.u32 setp.eq.xor.s32",
    "ppp": "and.pred or.pred xor.pred",
    "pp": "not.pred",
    "rrrp": "selp.b32",
    "fffp": "selp.f32",
}  # fmt: skip
KINDS = [(kinds, op) for kinds, ops in DRAWN.items() for op in ops.split()]


def drawn(rng: np.random.Generator) -> list[str]:
    """Instructions with their registers in angle brackets."""
    lines = []
    for _ in range(12):
        kinds, op = KINDS[rng.integers(len(KINDS))]
        operands = []
        for kind in kinds:
            if kind == "i":
                operands.append(str(rng.integers(0, 40)))
            elif kind == "t":
                operands.append(hex(rng.integers(0, 256)))
            else:
                operands.append(f"<{kind}{rng.integers(REGISTERS[kind])}>")
        guard = (
            f"@{'!' if rng.random() < 0.5 else ''}<p{rng.integers(2)}> "
            if rng.random() < 0.3
            else ""
        )
        lines.append(f"{guard}{op} {', '.join(operands)};")
    return lines


def with_branches(rng: np.random.Generator, lines: list[str]) -> list[str]:
    """The instructions with labels before some, and branches to these behind some; those that go
    back do so a few times at most."""
    labels = sorted(rng.choice(len(lines) + 1, rng.integers(1, 5), replace=False))
    found = [".reg .u32 left; .reg .pred more; mov.u32 left, 6;"]
    for at in range(len(lines) + 1):
        if at in labels:
            found.append(f"L{labels.index(at)}:")
        found += lines[at : at + 1]
        if rng.random() < 0.35:
            to = int(rng.integers(len(labels)))
            if labels[to] <= at:
                found.append("sub.u32 left, left, 1; setp.gt.s32 more, left, 0;")
                found.append(f"@more bra L{to};")
            else:
                guard = ("@<p0> ", "@!<p1> ", "")[rng.integers(3)]
                found.append(f"{guard}bra L{to};")
    return found


def inputs(rng: np.random.Generator) -> dict[str, np.ndarray]:
    r = rng.integers(0, 1 << 32, (4, LANES), dtype=np.uint64).astype(np.uint32)
    r[:, ::3] = rng.integers(0, 40, r[:, ::3].shape)
    d = rng.integers(0, 1 << 63, (2, LANES), dtype=np.uint64) << rng.integers(0, 2, dtype=np.uint64)
    f = (rng.normal(size=(2, LANES)) * 10.0 ** rng.integers(-3, 12, (2, LANES))).astype(np.float32)
    return {"r": r, "d": d, "f": f}


NAMES = [f"{kind}{at}" for kind, count in REGISTERS.items() for at in range(count)]
STORED = [name for name in NAMES if name[0] != "p"]


def of_cuda_cpp(lines: list[str], given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of a kernel in CUDA C++ around the instructions."""
    places = {name: f"%{at}" for at, name in enumerate(STORED)}
    text = re.sub(
        r"<(\w+)>", lambda found: places.get(found[1], f"%%{found[1]}"), "\\n".join(lines)
    )
    operands = ", ".join(f'"{CONSTRAINTS[name[0]]}"({name})' for name in STORED)
    first = "setp.lt.u32 %%p0, %0, %1; setp.lt.u32 %%p1, %1, %2;"
    declared = {"r": "unsigned", "d": "unsigned long long", "f": "float"}
    parameters = ", ".join(f"{type} *{kind}" for kind, type in declared.items())
    reads = "".join(
        f"{declared[name[0]]} {name} = {name[0]}[{name[1]} * {LANES} + i];" for name in STORED
    )
    writes = "".join(f"{name[0]}[{name[1]} * {LANES} + i] = {name};" for name in STORED)
    source = f"""__global__ void k({parameters}) {{
        int i = threadIdx.x;
        {reads}
        asm("{{ .reg .pred %%p<2>; {first} {text} }}" : {operands});
        {writes}
    }}"""
    source = source.replace("\\n", " ")
    arrays = {kind: td.asarray(values, device="cpu") for kind, values in given.items()}
    td.cuda_module(source).k[1, LANES](*arrays.values())
    return {kind: array.numpy() for kind, array in arrays.items()}


def of_machine(lines: list[str], given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The results of the instructions as PTX."""
    memory = GlobalMemory()
    addresses = {}
    for kind, values in given.items():
        addresses[kind] = memory.allocate(values.nbytes)
        memory.slice(addresses[kind], values.nbytes)[:] = values.reshape(-1).view(np.uint8)
    types = {"r": "b32", "d": "b64", "f": "f32"}
    head = [
        ".reg .b32 %x<4>; .reg .b64 %y<2>; .reg .f32 %z<2>; .reg .pred %q<2>; .reg .b64 %at<9>;"
    ]
    registers = {"r": "%x", "d": "%y", "f": "%z", "p": "%q"}
    head.append("mov.u32 %r18, %tid.x; cvt.u64.u32 %rd8, %r18;")
    tail = []
    for kind, type in types.items():
        size = given[kind].itemsize
        head.append(f"ld.param.u64 %rd7, [p{kind}]; mad.lo.u64 %rd7, %rd8, {size}, %rd7;")
        for at in range(REGISTERS[kind]):
            place = f"[%rd7 + {at * LANES * size}]"
            head.append(f"ld.global.{type} {registers[kind]}{at}, {place};")
        tail.append(f"ld.param.u64 %rd7, [p{kind}]; mad.lo.u64 %rd7, %rd8, {size}, %rd7;")
        for at in range(REGISTERS[kind]):
            place = f"[%rd7 + {at * LANES * size}]"
            tail.append(f"st.global.{type} {place}, {registers[kind]}{at};")
    head.append("setp.lt.u32 %q0, %x0, %x1; setp.lt.u32 %q1, %x1, %x2;")
    body = [
        re.sub(r"<(\w)(\d)>", lambda found: registers[found[1]] + found[2], one) for one in lines
    ]
    parameters = ", ".join(f".param .u64 p{kind}" for kind in types)
    kernel = load(module("\n".join([*head, *body, *tail]), parameters), "k", memory)
    kernel.launch((1, 1, 1), (LANES, 1, 1), struct.pack("<3Q", *addresses.values()))
    return {
        kind: memory.slice(addresses[kind], values.nbytes).view(values.dtype).reshape(values.shape)
        for kind, values in given.items()
    }


@pytest.mark.parametrize(("branches", "draws"), [(False, 5), (True, 3)])
def test_inline_ptx_is_what_its_text_says(branches: bool, draws: int) -> None:
    rng = np.random.default_rng()
    for _ in range(draws):
        lines, given = drawn(rng), inputs(rng)
        if branches:
            lines = with_branches(rng, lines)
        with np.errstate(all="ignore"):
            wanted = of_machine(lines, given)
            found = of_cuda_cpp(lines, given)
        for kind in given:
            np.testing.assert_array_equal(found[kind], wanted[kind], "\n".join(lines))
