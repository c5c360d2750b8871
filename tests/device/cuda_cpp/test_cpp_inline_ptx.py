"""Inline PTX: instructions on 32-bit integers, as PTX's manual defines them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

MOST = 0xFFFFFFFF


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def field(a: int, b: int, c: int, *, fills: bool) -> int:
    place, length = b & 255, c & 255
    sign = a >> min(place + length - 1, 31) & 1 if fills and length else 0
    bits = [a >> (place + i) & 1 if i < length and place + i <= 31 else sign for i in range(32)]
    return sum(bit << i for i, bit in enumerate(bits))


def inserted(a: int, b: int, c: int, d: int) -> int:
    place, length = c & 255, d & 255
    for i in range(min(length, 32)):
        if place + i < 32:
            b = b & ~(1 << (place + i)) | (a >> i & 1) << (place + i)
    return b


def permuted(a: int, b: int, c: int) -> int:
    parts = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    found = 0
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = parts[selector & 7]
        found |= ((255 if byte & 128 else 0) if selector & 8 else byte) << 8 * i
    return found


OPERATIONS = {
    "bfe.u32": (3, lambda a, b, c: field(a, b, c, fills=False)),
    "bfe.s32": (3, lambda a, b, c: field(a, b, c, fills=True)),
    "bfi.b32": (4, inserted),
    "prmt.b32": (3, permuted),
    "shl.b32": (2, lambda a, b: 0 if b > 31 else a << b & MOST),
    "shr.u32": (2, lambda a, b: 0 if b > 31 else a >> b),
    "shr.s32": (2, lambda a, b: signed(a) >> min(b, 31) & MOST),
    "shf.l.wrap.b32": (3, lambda a, b, c: (b << 32 | a) << (c & 31) >> 32 & MOST),
    "shf.r.clamp.b32": (3, lambda a, b, c: (b << 32 | a) >> min(c, 32) & MOST),
    "popc.b32": (1, lambda a: a.bit_count()),
    "clz.b32": (1, lambda a: 32 - a.bit_length()),
    "brev.b32": (1, lambda a: int(f"{a:032b}"[::-1], 2)),
    "mul.hi.u32": (2, lambda a, b: a * b >> 32),
    "mul.hi.s32": (2, lambda a, b: signed(a) * signed(b) >> 32 & MOST),
    "mad.lo.s32": (3, lambda a, b, c: a * b + c & MOST),
    "min.s32": (2, lambda a, b: min(signed(a), signed(b)) & MOST),
    "max.u32": (2, max),
    "sub.u32": (2, lambda a, b: a - b & MOST),
    "not.b32": (1, lambda a: ~a & MOST),
}


def operands() -> np.ndarray:
    rng = np.random.default_rng()
    x = rng.integers(0, 1 << 32, (97, 4), dtype=np.uint64)
    x[::2, 1:] = rng.integers(0, 40, x[::2, 1:].shape)
    x[:4] = [[0] * 4, [MOST] * 4, [1 << 31, 31, 1, 0], [1 << 31, 5, 32, 40]]
    return x.astype(np.uint32)


def source() -> str:
    lines = []
    for op, (count, _) in OPERATIONS.items():
        places = ", ".join(f"%{at + 1}" for at in range(count))
        given = ", ".join(f'"r"(x[{at}])' for at in range(count))
        lines.append(
            f'asm volatile("{op} %0, {places};" : "=r"(r) : {given}); out[k++ * n + i] = r;'
        )
    for table in (0x96, 0x1B, 0x00, 0xFF):
        given = '"r"(x[0]), "r"(x[1]), "r"(x[2])'
        lines.append(f'asm("lop3.b32 %0, %1, %2, %3, {table};" : "=r"(r) : {given});')
        lines.append("out[k++ * n + i] = r;")
    return """
        __global__ void all(const unsigned *in, unsigned *out, int n)
        {
            int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
            if (i >= n) return;
            unsigned x[4], r;
            for (int j = 0; j < 4; j++) x[j] = in[i * 4 + j];
            INSTRUCTIONS
            asm("mov.u32 %0, %%laneid;" : "=r"(r)); out[k++ * n + i] = r;
            asm("add.u32 %0, %0, %1;\\n\\txor.b32 %0, %0, 0x5;"
                : "+r"(r) : "r"(x[0]) : "memory");
            out[k++ * n + i] = r;
        }
    """.replace("INSTRUCTIONS", "\n".join(lines))


def looked_up(table: int, a: int, b: int, c: int) -> int:
    places = [(a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1) for i in range(32)]
    return sum((table >> place & 1) << i for i, place in enumerate(places))


def test_instructions(device):
    x = operands()
    rows = [[int(value) for value in row] for row in x]
    expected = [[function(*row[:count]) for row in rows] for count, function in OPERATIONS.values()]
    expected += [[looked_up(t, *row[:3]) for row in rows] for t in (0x96, 0x1B, 0x00, 0xFF)]
    lanes = [i % 32 for i in range(len(rows))]
    expected += [lanes, [(lane + row[0] & MOST) ^ 5 for lane, row in zip(lanes, rows, strict=True)]]
    out = td.zeros((len(expected), len(rows)), dtype=td.uint32, device=device)
    td.cuda_module(source()).all[4, 32](td.asarray(x, device=device), out, len(rows))
    names = [*OPERATIONS, "lop3 0x96", "lop3 0x1b", "lop3 0", "lop3 0xff", "laneid", "two"]
    for name, found, wanted in zip(names, out.tolist(), expected, strict=True):
        assert found == wanted, name


@pytest.mark.parametrize(
    "text",
    [
        'asm("trap;");',
        'asm("add.f32 %0, %1, %1;" : "=f"(f) : "f"(f));',
        'asm("add.u32 %0, %1;" : "=r"(r) : "r"(r));',
        'asm("{ .reg .u32 t; mov.u32 t, %1; mov.u32 %0, t; }" : "=r"(r) : "r"(r));',
        'asm("@p add.u32 %0, %1, %1;" : "=r"(r) : "r"(r));',
        'asm("mov.u32 %0, %clock;" : "=r"(r));',
        'asm("add.u32 %2, %1, %1;" : "=r"(r) : "r"(r));',
    ],
)
def test_other_instructions_are_refused(text):
    kernel = td.cuda_module(
        "__global__ void k(unsigned *out) { unsigned r = 1; float f = 1; " + text + " out[0] = r; }"
    ).kernel("k")
    with pytest.raises(td.errors.CompileError, match="inline assembly"):
        kernel.source("ir")
