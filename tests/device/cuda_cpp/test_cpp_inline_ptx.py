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


def chosen(place):
    """A mode of prmt: the byte at each place, by that and by the last two bits of c."""

    def permuted(a: int, b: int, c: int) -> int:
        parts = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
        return sum(parts[place(c & 3, i) % 8] << 8 * i for i in range(4))

    return permuted


def low_24(value: int) -> int:
    return (value & 0xFFFFFF) - (value >> 23 & 1) * (1 << 24)


def within(value: int) -> int:
    return min(max(value, -(1 << 31)), (1 << 31) - 1) & MOST


def lanes(bits: int, function, signs: bool = False):
    """What each part of a word becomes."""

    def parts(word: int) -> list[int]:
        found = [word >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
        return [one - (one >> bits - 1 << bits) if signs else one for one in found]

    def whole(a: int, b: int, c: int) -> int:
        made = [function(x, y) for x, y in zip(parts(a), parts(b), strict=True)]
        return sum((one & (1 << bits) - 1) << bits * at for at, one in enumerate(made))

    return 3, whole


def mask(place: int, length: int) -> int:
    return ((1 << min(length, 32)) - 1 << place & MOST) if place < 32 else 0


def part(word: int, bits: int, at: int, signs: bool) -> int:
    one = word >> bits * at & (1 << bits) - 1
    return one - (1 << bits) if signs and one >> bits - 1 else one


def limited(value: int, bits: int, signs: bool) -> int:
    low = -(1 << bits - 1) if signs else 0
    return min(max(value, low), low + (1 << bits) - 1)


def dots(a: int, b: int, c: int, signs_a: bool, signs_b: bool, wide: int, first: int) -> int:
    count = 32 // wide
    pairs = ((part(a, wide, i, signs_a), part(b, 8, first + i, signs_b)) for i in range(count))
    return sum(x * y for x, y in pairs) + c & MOST


def extended(a: int, b: int, signs: bool) -> int:
    return a if b > 31 else part(a, b, 0, signs) & MOST if b else 0


# The parts of a destination are written `%0` and a selector.
SELECTED = {
    "vadd.s32.s32.s32 %0, %1.h1, %2.h0": lambda a, b, c: (
        part(a, 16, 1, True) + part(b, 16, 0, True)
    ),
    "vsub.s32.u32.u32 %0, %1.h0, %2.b3": lambda a, b, c: (
        part(a, 16, 0, False) - part(b, 8, 3, False)
    ),
    "vadd.u32.s32.s32.sat.min %0, %1, %2, %3": lambda a, b, c: min(
        limited(signed(a) + signed(b), 32, False), c
    ),
    "vmin.s32.s32.s32.min %0, %1, %2, %3": lambda a, b, c: min(map(signed, (a, b, c))),
    "vmax.s32.s32.s32.add %0, %1, %2, %3": lambda a, b, c: max(signed(a), signed(b)) + c,
    "vadd.u32.s32.s32.sat %0.b2, %1, %2, %3": lambda a, b, c: (
        c & ~0xFF0000 | limited(signed(a) + signed(b), 8, False) << 16
    ),
    "vabsdiff.s32.s32.s32.sat %0.h1, %1, %2, %3": lambda a, b, c: (
        c & 0xFFFF | limited(abs(signed(a) - signed(b)), 16, True) << 16
    ),
    "vmad.u32.u32.u32 %0, %1.b1, %2, %3": lambda a, b, c: part(a, 8, 1, False) * b + c,
    "vmad.s32.s32.s32.sat.shr7 %0, %1.h0, -%2.h1, %3": lambda a, b, c: limited(
        signed(c) - part(a, 16, 0, True) * part(b, 16, 1, True) >> 7, 32, True
    ),
    "vshl.u32.s32.u32.sat.clamp %0, %1, %2.b0": lambda a, b, c: limited(
        signed(a) << min(b & 255, 32), 32, False
    ),
    "vset.s32.u32.lt.add %0, %1.b0, %2, %3": lambda a, b, c: (part(a, 8, 0, True) < b) + c,
    "vsub2.s32.u32.u32 %0.h1, %1.h21, %2.h03, %3": lambda a, b, c: (
        part(b, 16, 0, False) - part(a, 16, 0, False) << 16 | c & 0xFFFF
    ),
    "vset4.u32.u32.ge.add %0, %1, %2, %3": lambda a, b, c: (
        c + sum(part(a, 8, i, False) >= part(b, 8, i, False) for i in range(4))
    ),
    "vadd4.s32.s32.s32.add %0, %1, %2, %3": lambda a, b, c: (
        c + sum(part(a, 8, i, True) + part(b, 8, i, True) for i in range(4))
    ),
    "cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3": lambda a, b, c: (
        c << 16 | (limited(signed(a), 8, True) & 255) << 8 | limited(signed(b), 8, True) & 255
    ),
    "cvt.pack.sat.u16.s32 %0, %1, %2": lambda a, b, c: (
        limited(signed(a), 16, False) << 16 | limited(signed(b), 16, False)
    ),
}
OPERATIONS = {
    **{name: (3, lambda *args, f=f: f(*args) & MOST) for name, f in SELECTED.items()},
    "dp4a.s32.u32": (3, lambda a, b, c: dots(a, b, c, True, False, 8, 0)),
    "dp2a.lo.u32.s32": (3, lambda a, b, c: dots(a, b, c, False, True, 16, 0)),
    "dp2a.hi.s32.s32": (3, lambda a, b, c: dots(a, b, c, True, True, 16, 2)),
    "szext.clamp.s32": (2, lambda a, b: extended(a, b, True)),
    "szext.wrap.u32": (2, lambda a, b: extended(a, b & 31, False)),
    "mul24.hi.s32": (2, lambda a, b: low_24(a) * low_24(b) >> 16 & MOST),
    "mad24.hi.u32": (3, lambda a, b, c: ((a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16) + c & MOST),
    "mad.hi.sat.s32": (
        3,
        lambda a, b, c: within((signed(a) * signed(b) >> 32) + signed(c)),
    ),
    "bfind.shiftamt.s32": (
        1,
        lambda a: 32 - (a ^ (MOST if a >> 31 else 0)).bit_length() if a not in (0, MOST) else MOST,
    ),
    "add.u16x2": (2, lambda a, b: (a + b & 0xFFFF) | (a >> 16) + (b >> 16) << 16 & MOST),
    "max.relu.s32": (2, lambda a, b: max(signed(a), signed(b), 0)),
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
    "prmt.b32.f4e": (3, chosen(lambda c, i: c + i)),
    "prmt.b32.b4e": (3, chosen(lambda c, i: c - i)),
    "prmt.b32.rc8": (3, chosen(lambda c, i: c)),
    "prmt.b32.ecl": (3, chosen(lambda c, i: max(c, i))),
    "prmt.b32.ecr": (3, chosen(lambda c, i: min(c, i))),
    "prmt.b32.rc16": (3, chosen(lambda c, i: 2 * (c & 1) + (i & 1))),
    "bmsk.clamp.b32": (2, mask),
    "bmsk.wrap.b32": (2, lambda a, b: mask(a & 31, b & 31)),
    "vadd4.u32.u32.u32": lanes(8, lambda x, y: x + y),
    "vmax4.s32.s32.s32": lanes(8, max, True),
    "vmin2.u32.u32.u32": lanes(16, min),
    "vadd2.s32.s32.s32.sat": lanes(16, lambda x, y: min(max(x + y, -32768), 32767), True),
    "vsub4.u32.u32.u32.sat": lanes(8, lambda x, y: max(x - y, 0)),
    "vabsdiff4.u32.u32.u32.add": (
        3,
        lambda a, b, c: (
            sum(abs((a >> at & 255) - (b >> at & 255)) for at in range(0, 32, 8)) + c & MOST
        ),
    ),
    "add.sat.s32": (2, lambda a, b: within(signed(a) + signed(b))),
    "sub.sat.s32": (2, lambda a, b: within(signed(a) - signed(b))),
    "mul24.lo.s32": (2, lambda a, b: low_24(a) * low_24(b) & MOST),
    "sad.s32": (3, lambda a, b, c: abs(signed(a) - signed(b)) + c & MOST),
    "sad.u32": (3, lambda a, b, c: abs(a - b) + c & MOST),
    "bfind.shiftamt.u32": (1, lambda a: 32 - a.bit_length() if a else MOST),
    "slct.s32.s32": (3, lambda a, b, c: a if signed(c) >= 0 else b),
    "vshr.u32.u32.u32.clamp.add": (3, lambda a, b, c: (0 if b > 31 else a >> b) + c & MOST),
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
        text = op if "%" in op else f"{op} %0, {places}"
        given = ", ".join(f'"r"(x[{at}])' for at in range(count))
        lines.append(f'asm volatile("{text};" : "=r"(r) : {given}); out[k++ * n + i] = r;')
    for table in (0x96, 0x1B, 0x00, 0xFF):
        given = '"r"(x[0]), "r"(x[1]), "r"(x[2])'
        lines.append(f'asm("lop3.b32 %0, %1, %2, %3, {table};" : "=r"(r) : {given});')
        lines.append("out[k++ * n + i] = r;")
    for table in (0x96, 0x1B):  # as an operand, and with a predicate
        given = f'"r"(x[0]), "r"(x[1]), "r"(x[2]), "n"({table})'
        lines.append(
            '{ asm("{ .reg .pred p, q; setp.eq.u32 q, %1, 0; lop3.or.b32 %0|p, %1, %2, %3, %4, q; '
            f'@p not.b32 %0, %0; }}" : "=r"(r) : {given}); out[k++ * n + i] = r; }}'
        )
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
    for t in (0x96, 0x1B):
        words = [looked_up(t, *row[:3]) for row in rows]
        pairs = zip(words, rows, strict=True)
        expected.append([~word & MOST if word or not row[0] else word for word, row in pairs])
    lanes = [i % 32 for i in range(len(rows))]
    expected += [lanes, [(lane + row[0] & MOST) ^ 5 for lane, row in zip(lanes, rows, strict=True)]]
    out = td.zeros((len(expected), len(rows)), dtype=td.uint32, device=device)
    td.cuda_module(source()).all[4, 32](td.asarray(x, device=device), out, len(rows))
    names = [
        *OPERATIONS,
        "lop3 0x96",
        "lop3 0x1b",
        "lop3 0",
        "lop3 0xff",
        "or",
        "or",
        "laneid",
        "two",
    ]
    for name, found, wanted in zip(names, out.tolist(), expected, strict=True):
        assert found == wanted, name


MEMORY = """
__global__ void memory(const unsigned *in, unsigned *out, float *sums, int n)
{
    __shared__ alignas(16) unsigned s[128];
    __shared__ unsigned other[64];
    int i = threadIdx.x;
    unsigned a = (unsigned)__cvta_generic_to_shared(s + 4 * i);
    unsigned b = (unsigned)__cvta_generic_to_shared(&other[2 * i]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(in + 4 * i));
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;"
                 :: "r"(b), "l"(in + 2 * i), "n"(8), "r"(i % 3 * 4));
    asm volatile("cp.async.commit_group;\\n" ::);
    asm volatile("cp.async.wait_group %0;\\n" :: "n"(0));
    __syncthreads();
    unsigned x, y, z, w, v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(a));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; mov.u32 %0, 77;"
                 "@p ld.shared.u32 %0, [%2+4]; }" : "=r"(v) : "r"(i & 1), "r"(b));
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" :: "l"(out + 5 * n + 2 * i), "r"(w), "r"(z));
    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1+-4];" : "=r"(z) : "l"(in + 4 * i + 1));
    out[i] = x; out[n + i] = y; out[2 * n + i] = z; out[3 * n + i] = w; out[4 * n + i] = v;
    asm volatile("red.global.add.u32 [%0], %1;" :: "l"(out + 7 * n), "r"(i));
    asm volatile("red.global.add.f32 [%0], %1;" :: "l"(sums), "f"(float(i)));
    asm volatile("atom.global.max.u32 %0, [%1], %2;" : "=r"(v) : "l"(out + 7 * n + 1), "r"(i));
    signed char *bytes = (signed char *)(out + 8 * n);
    int value;
    asm("{ .reg .u64 at; mad.wide.u32 at, %1, 4, %2; ld.global.s8 %0, [at]; }"
        : "=r"(value) : "r"(i), "l"(in));
    ((int *)bytes)[i] = value;
}
__global__ void carries(const unsigned *in, unsigned *out, int n)
{
    int i = threadIdx.x;
    unsigned a[2] = {in[i], in[n + i]}, b[2] = {in[2 * n + i], in[3 * n + i]}, r[3];
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r[0]) : "r"(a[0]), "r"(b[0]));
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r[1]) : "r"(a[1]), "r"(b[1]));
    asm volatile("addc.u32 %0, 0, 0;" : "=r"(r[2]));
    for (int k = 0; k < 3; k++) out[k * n + i] = r[k];
    asm("sub.cc.u32 %0, %3, %5; subc.cc.u32 %1, %4, %6; subc.u32 %2, 0, 0;"
        : "=&r"(r[0]), "=&r"(r[1]), "=r"(r[2]) : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
    for (int k = 0; k < 3; k++) out[(3 + k) * n + i] = r[k];
    asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;"
        : "=&r"(r[0]), "=r"(r[1]) : "r"(a[0]), "r"(b[0]), "r"(a[1]), "r"(b[1]));
    for (int k = 0; k < 2; k++) out[(6 + k) * n + i] = r[k];
}
__global__ void warps(const unsigned *in, unsigned *out, int n)
{
    int i = threadIdx.x;
    unsigned x = in[i], r[6], p;
    asm volatile("{ .reg .pred q; shfl.sync.bfly.b32 %0, %2, 5, 0x1f, 0xffffffff;"
                 "shfl.sync.up.b32 %1|q, %2, 3, 0, 0xffffffff; selp.u32 %3, 1, 0, q; }"
                 : "=r"(r[0]), "=r"(r[1]), "+r"(x), "=r"(p));
    asm volatile("shfl.sync.idx.b32 %0, %1, 2, 0x181f, -1;" : "=r"(r[2]) : "r"(x));
    asm volatile("{ .reg .pred q; setp.gt.u32 q, %1, 50; vote.sync.ballot.b32 %0, q, 0xffffffff; }"
                 : "=r"(r[3]) : "r"(x));
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r[4]) : "r"(x));
    asm volatile("bar.sync 0; bar.warp.sync 0xffffffff; membar.cta;" ::: "memory");
    asm volatile("" ::: "memory");
    r[5] = p;
    for (int k = 0; k < 6; k++) out[k * n + i] = r[k];
}
__global__ void floats(const float *in, float *out, int n)
{
    int i = threadIdx.x;
    float x = in[i], y = in[n + i], r[6];
    asm("fma.rn.f32 %0, %1, %2, 0f3F800000;" : "=f"(r[0]) : "f"(x), "f"(y));
    asm("{ .reg .f32 t; neg.f32 t, %1; max.ftz.f32 %0, t, %2; }" : "=f"(r[1]) : "f"(x), "f"(y));
    asm("add.sat.f32 %0, %1, %2;" : "=f"(r[2]) : "f"(x), "f"(y));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r[3]) : "f"(x));
    unsigned pair, sum;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(y));
    asm("add.f16x2 %0, %1, %1;" : "=r"(sum) : "r"(pair));
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
        : "=f"(r[4]), "=f"(r[5]) : "r"(sum));
    for (int k = 0; k < 6; k++) out[k * n + i] = r[k];
}
"""


@pytest.fixture(scope="module")
def module():
    return td.cuda_module(MEMORY)


def test_memory(device, module):
    n = 32
    x = np.random.default_rng().integers(0, 1 << 32, 128, dtype=np.uint64).astype(np.uint32)
    out, sums = td.zeros(9 * n, dtype=td.uint32, device=device), td.zeros(1, device=device)
    module.memory[1, n](td.asarray(x, device=device), out, sums, n)
    found = out.numpy().reshape(9, n)
    four = x.reshape(n, 4)
    wanted = [four[:, 0], four[:, 1], four[:, 0], four[:, 3]]
    assert (found[:4] == wanted).all()
    second = x[: 2 * n].reshape(n, 2)[:, 1].copy()
    lanes = np.arange(n)
    second[lanes % 3 != 2] = 0
    second[lanes % 2 == 0] = 77
    assert (found[4] == second).all()
    assert (found[5:7].reshape(n, 2) == four[:, [3, 2]]).all()
    assert found[7, :2].tolist() == [496, 31]
    assert sums.tolist() == [496]
    assert (found[8].view(np.int32) == x[:n].view(np.int8)[::4]).all()


def test_carries(device, module):
    n = 61
    x = np.random.default_rng().integers(0, 1 << 32, (4, n), dtype=np.uint64).astype(np.uint32)
    x[:, :9], x[1, 9:20] = [[0], [MOST], [0], [0]], x[3, 9:20]
    x[:2, 0], x[2:, 1] = MOST, MOST
    out = td.zeros(8 * n, dtype=td.uint32, device=device)
    module.carries[1, n](td.asarray(x, device=device), out, n)
    a, c, b, d = ([int(value) for value in row] for row in x)
    pairs = [(p | q << 32, r | s << 32) for p, q, r, s in zip(a, c, b, d, strict=True)]
    products = [p * r + (q | s << 32) for p, q, r, s in zip(a, c, b, d, strict=True)]
    numbers = [[p + q for p, q in pairs], [p - q for p, q in pairs], products]
    wanted = [
        [value >> 32 * at & MOST for value in row]
        for row, count in zip(numbers, (3, 3, 2), strict=True)
        for at in range(count)
    ]
    assert out.numpy().reshape(8, n).tolist() == wanted


def test_carries_through_functions(device):
    """Products of large integers, by functions of one instruction each."""
    one = 'asm volatile("OP %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }'
    three = 'asm volatile("OP %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }'
    functions = {"add.cc.u32": one, "addc.u32": one, "mad.lo.cc.u32": three, "madc.hi.u32": three}
    text = "".join(
        f"__device__ unsigned {op[:-4].replace('.', '_')}(unsigned a, unsigned b"
        f"{', unsigned c' if body is three else ''}) {{ unsigned r; {body.replace('OP', op)}"
        for op, body in functions.items()
    )
    module = td.cuda_module(
        text
        + """
    template <int N> __global__ void products(const unsigned *a, const unsigned *b, unsigned *out)
    {
        int i = threadIdx.x;
        unsigned r[2 * N] = {0};
        for (int j = 0; j < N; j++) {
            unsigned carry = 0;
            for (int k = 0; k < N; k++) {
                unsigned low = mad_lo_cc(a[i * N + j], b[i * N + k], r[j + k]);
                unsigned high = madc_hi(a[i * N + j], b[i * N + k], 0);
                r[j + k] = add_cc(low, carry);
                carry = addc(high, 0);
            }
            r[j + N] = carry;
        }
        for (int k = 0; k < 2 * N; k++) out[i * 2 * N + k] = r[k];
    }
    """
    )
    given = np.random.default_rng().integers(0, 1 << 32, (2, 9, 5), dtype=np.uint64)
    given[:, 0] = MOST
    out = td.zeros((9, 10), dtype=td.uint32, device=device)
    arrays = [td.asarray(one.astype(np.uint32), device=device) for one in given]
    module.kernel("products", 5)[1, 9](*arrays, out)
    numbers = [[sum(int(w) << 32 * k for k, w in enumerate(row)) for row in one] for one in given]
    wanted = [[x * y >> 32 * k & MOST for k in range(10)] for x, y in zip(*numbers, strict=True)]
    assert out.tolist() == wanted


def test_warps(device, module):
    n = 64
    x = np.random.default_rng().integers(0, 100, n).astype(np.uint32)
    out = td.zeros(6 * n, dtype=td.uint32, device=device)
    module.warps[1, n](td.asarray(x, device=device), out, n)
    found, lanes, w = out.numpy().reshape(6, 2, 32), np.arange(32), x.reshape(2, 32)
    assert (found[0] == w[:, lanes ^ 5]).all()
    assert (found[1] == w[:, np.where(lanes < 3, lanes, lanes - 3)]).all()
    assert (found[2] == w[:, lanes & ~7 | 2]).all()
    assert (((w > 50) << lanes).sum(1) == found[3].T).all()
    assert (w.max(1) == found[4].T).all()
    assert (found[5] == (lanes >= 3)).all()


def test_floats(device, module):
    n = 32
    x = (np.random.default_rng().integers(-64, 64, (2, n)) / 16).astype(np.float32)
    out = td.zeros(6 * n, device=device)
    module.floats[1, n](td.asarray(x, device=device), out, n)
    a, b = x.astype(np.float64)
    wanted = [a * b + 1, np.maximum(-a, b), np.clip(a + b, 0, 1), np.exp2(a), 2 * b, 2 * a]
    np.testing.assert_allclose(out.numpy().reshape(6, n), wanted, rtol=1e-6)


def test_the_nth_set_bit(device):
    module = td.cuda_module("""
    __global__ void nth(const unsigned *mask, const int *offset, unsigned *out)
    {
        int i = threadIdx.x;
        out[i] = __fns(mask[i], i % 32, offset[i]);
        unsigned r;
        asm("fns.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(mask[i]), "r"(i % 32), "r"(offset[i]));
        if (r != out[i]) out[i] = 99;
    }
    """)
    rng = np.random.default_rng()
    masks = rng.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    masks[::9] = 0
    offsets = rng.integers(-20, 21, 64).astype(np.int32)
    offsets[:3] = [0, 0, 1]
    out = td.zeros(64, dtype=td.uint32, device=device)
    module.nth[1, 64](*(td.asarray(one, device=device) for one in (masks, offsets)), out)
    wanted = []
    for i, (mask_, offset) in enumerate(zip(masks.tolist(), offsets.tolist(), strict=True)):
        base, step = i % 32, 1 if offset >= 0 else -1
        places = range(base, 32) if step > 0 else range(base, -1, -1)
        bits = [place for place in places if mask_ >> place & 1]
        if offset == 0:
            bits, offset = [base] if mask_ >> base & 1 else [], 1
        wanted.append(bits[abs(offset) - 1] if len(bits) >= abs(offset) else MOST)
    assert out.tolist() == wanted


def test_moves_and_conversions():
    module = td.cuda_module(r"""
    __global__ void k(unsigned *o, double *d)
    {
        unsigned low, high, v;
        unsigned short a, b;
        asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "d"(d[0]));
        o[0] = low; o[1] = high;
        asm("mov.b64 %0, {%1, %2};" : "=d"(d[1]) : "r"(low), "r"(high));
        asm("mov.b32 {%0, %1}, %2;" : "=h"(a), "=h"(b) : "r"(high));
        o[2] = a; o[3] = b;
        asm("{.reg.f64 t; cvt.f64.f32 t, %1; add.rn.f64 %0, t, 0d3FF0000000000000;}"
            : "=d"(d[2]) : "f"(2.5f));
        asm("{\n\t.reg .pred p;\n\tsetp.gt.s32 p, %1, %2; // the larger one\n\t"
            "@p mov.s32 %0, %1;\n\t@!p mov.s32 %0, %2;\n\t}" : "=r"(o[4]) : "r"(-5), "r"(3));
        asm("cvt.rni.s32.f64 %0, %1;" : "=r"(o[5]) : "d"(2.5));
        asm("cvt.sat.u8.s32 %0, %1;" : "=r"(o[6]) : "r"(300));
        asm("cvt.u16.u32 %0, %1;" : "=h"(a) : "r"(70000));
        o[7] = a;
        asm("set.lt.u32.f32 %0, %1, %2;" : "=r"(v) : "f"(1.f), "f"(2.f));
        o[8] = v;
    }
    """)
    out, x = np.zeros(9, np.uint32), np.array([np.pi, 0, 0])
    module.k[1, 1, 0, td.device("cpu").default_stream](out, x)
    low, high = (int(word) for word in x[:1].view(np.uint32))
    assert out.tolist() == [low, high, high & 0xFFFF, high >> 16, 3, 2, 255, 4464, MOST]
    assert x.tolist() == [np.pi, np.pi, 3.5]


def test_addresses_in_shared_memory(device):
    """Of arrays, objects and their members, through functions, as pointers again."""
    module = td.cuda_module("""
    struct Pair { int a, b; };
    __device__ unsigned number(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
    __device__ int load(unsigned a)
    {
        int v;
        asm volatile("ld.shared.s32 %0, [%1];" : "=r"(v) : "r"(a));
        return v;
    }
    __device__ __forceinline__ unsigned by_ptx(const void *p)
    {
        unsigned a;
        asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p));
        return a;
    }
    __global__ void addresses(int *out, int which)
    {
        extern __shared__ int s[];
        __shared__ int one;
        __shared__ Pair pair, pairs[4];
        if (threadIdx.x == 0) { one = 7; pair.b = 2; pairs[3].b = 9; s[5] = 55; }
        __syncthreads();
        int *chosen = which ? &one : s + 5;
        out[0] = load(number(&one));
        out[1] = load(number(&pair) + 4);
        out[2] = load(number(&pairs[3].b));
        out[3] = load(number(s) + 5 * sizeof(int));
        out[4] = load(by_ptx(s + 5));
        out[5] = load(number(chosen));
        out[6] = __isShared(chosen) * 10 + __isGlobal(chosen) + 100 * __isGlobal(out);
        out[7] = *(int *)__cvta_shared_to_generic(number(chosen));
        asm("st.global.s32 [%0+32], %1;" :: "l"(__cvta_generic_to_global(out)), "r"(8));
    }
    """)
    out = td.zeros(9, dtype=td.int32, device=device)
    module.addresses[1, 32, 256](out, 1)
    assert out.tolist() == [7, 2, 9, 55, 55, 7, 110, 7, 8]


BRANCHES = r"""
__global__ void branches(const int *x, int *o, int n)
{
    int i = threadIdx.x;
    int a = x[i], r, s, t, u, v;
    // gcd by subtraction: a loop with an exit in the middle
    asm("{ .reg .pred p; .reg .s32 b, c; mov.s32 b, %1; mov.s32 c, 36;\n"
        "LOOP: setp.eq.s32 p, b, c; @p bra DONE; setp.gt.s32 p, b, c; @p bra LARGER;\n"
        "sub.s32 c, c, b; bra.uni LOOP; LARGER: sub.s32 b, b, c; bra LOOP;\n"
        "DONE: mov.s32 %0, b; }" : "=r"(r) : "r"(a));
    asm("{ .reg .pred p; setp.lt.s32 p, %1, 10; @p bra ONE; mov.s32 %0, 1; bra END;"
        "ONE: mov.s32 %0, 2; END: }" : "=r"(s) : "r"(a));
    asm("{ .reg .pred p; mov.s32 %0, 5; setp.lt.s32 p, %1, 10; @!p bra L_%=;"
        "add.s32 %0, %0, 7; L_%=: }" : "=r"(t) : "r"(a));
    asm("{ .reg .pred p; .reg .s32 j; mov.s32 j, %1; mov.s32 %0, 0;\n"
        "L: add.s32 %0, %0, j; sub.s32 j, j, 1; setp.ge.s32 p, j, 0; @p bra L; }"
        : "=&r"(u) : "r"(a));
    // into a loop from outside
    asm("{ .reg .pred p; mov.s32 %0, %1; bra IN; OUT: mul.lo.s32 %0, %0, 3;"
        "IN: add.s32 %0, %0, 1; setp.lt.s32 p, %0, 100; @p bra OUT; }" : "=&r"(v) : "r"(a));
    o[i] = r; o[n + i] = s; o[2 * n + i] = t; o[3 * n + i] = u; o[4 * n + i] = v;
    asm volatile("{ .reg .pred p; setp.gt.s32 p, %0, 20; @p exit; }" :: "r"(a));
    o[5 * n + i] = 1;
}
"""


def test_branches(device):
    x = np.random.default_rng().integers(1, 60, 64).astype(np.int32)
    out = td.zeros((6, 64), dtype=td.int32, device=device)
    td.cuda_module(BRANCHES).branches[1, 64](td.asarray(x, device=device), out, 64)
    numbers = []
    for number in x.tolist():
        number += 1
        while number < 100:
            number = 3 * number + 1
        numbers.append(number)
    small = x < 10
    wanted = [np.gcd(x, 36), 1 + small, 5 + 7 * small, x * (x + 1) // 2, numbers, x <= 20]
    np.testing.assert_array_equal(out.numpy(), wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('asm("add.u32 %0, %1;" : "=r"(r) : "r"(r));', "add.u32 takes 3 operands"),
        ('asm("L: add.u32 %0, %0, 1; bra M;" : "+r"(r));', "its text has no label M"),
        ('asm("brx.idx %0, L;" :: "r"(r));', "brx.idx branches to a label by number"),
        ('[&] { asm("exit;"); }();', "exit and ret end a thread in inline PTX of the kernel"),
        ('asm("@p add.u32 %0, %1, %1;" : "=r"(r) : "r"(r));', "p is not a predicate"),
        ('asm("mov.u32 %0, %smid;" : "=r"(r));', "%smid is not translated"),
        ('asm("add.f32 %0, %0, %0;" : "+h"(h));', "%0 is not of type f32"),
        ('asm("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(r));', "none is made in this kernel"),
        ('asm("wgmma.fence.sync.aligned;");', "wgmma.fence.sync.aligned multiplies tiles"),
    ],
)
def test_other_instructions_are_refused(text, message):
    kernel = td.cuda_module(
        "__global__ void k(unsigned *out) { unsigned r = 1; unsigned short h = 1; "
        + text
        + " out[0] = r + h; }"
    ).kernel("k")
    with pytest.raises(td.errors.CompileError, match=message):
        kernel.source("ir")


SMALL_FLOATS = """
__global__ void small_floats(const float *in, unsigned *out, int n)
{
    int i = threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = in[n + i];
    unsigned a, b, r;
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(out[i]) : "f"(x), "f"(y));
    asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(out[n + i]) : "f"(x), "f"(y));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(a) : "f"(x), "f"(y));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(b) : "f"(y), "f"(1.0f));
    asm("add.sat.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); out[2 * n + i] = r;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); out[3 * n + i] = r;
    asm("{ .reg .pred p, q; setp.lt.f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p;"
        "@q add.u32 %0, %0, 2; }" : "=r"(r) : "r"(a), "r"(b));
    out[4 * n + i] = r;
    asm("{ .reg .pred p, q; testp.subnormal.f32 p, %1; testp.normal.f32 q, %1;"
        "selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }" : "=r"(r) : "f"(x));
    out[5 * n + i] = r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(in[i]), "f"(y));
    out[6 * n + i] = __float_as_uint(x);
    asm("max.xorsign.abs.f32 %0, %1, %2;" : "=f"(x) : "f"(in[i]), "f"(y));
    out[7 * n + i] = __float_as_uint(x);
    asm("{ .reg .b16 h; cvt.rn.bf16.s32 h, %1; mov.b32 %0, {h, h}; }"
        : "=r"(r) : "r"((int)(in[i] * 1000001.0f)));
    out[8 * n + i] = r;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.rpi.f16.f16 h, h; mov.b32 %0, {h, h}; }"
        : "=r"(r) : "f"(y));
    out[9 * n + i] = r;
}
"""


def test_floats_of_16_bits_and_special_values(device):
    rng = np.random.default_rng()
    x, y = rng.normal(0, 3, (2, 40)).astype(np.float32)
    x[:6] = [np.nan, 0.25, np.inf, -np.inf, 1e-40, 7e4]
    y[:6] = [1.0, np.nan, -2.0, 0.5, -0.0, 3.5]
    with np.errstate(over="ignore"):
        high, low = (one.astype(np.float16) for one in (x, y))
    out = td.zeros((10, 40), dtype=td.uint32, device=device)
    td.cuda_module(SMALL_FLOATS).small_floats[1, 64](
        td.asarray(np.stack([x, y]), device=device), out, 40
    )
    got = out.numpy()

    def two(row):
        pairs = [(got[row] >> by).astype(np.uint16).view(np.float16) for by in (16, 0)]
        return np.stack(pairs).astype(np.float32)

    one = np.ones(40, np.float16)
    with np.errstate(all="ignore"):
        pair = np.stack([high, low]).astype(np.float32)
        np.testing.assert_array_equal(two(0), np.where(pair < 0, 0, pair))
        sums = np.stack([high + low, low + one])
        sums = np.where(np.isnan(sums), 0, np.clip(sums, 0, 1)).astype(np.float32)
        np.testing.assert_array_equal(two(2), sums)
        np.testing.assert_array_equal(two(3), np.maximum([high, low], [low, one]))
        np.testing.assert_array_equal(got[4], (low < one) * 1 + (high < low) * 2)
        bits = x.view(np.uint32)
        exponent = bits >> 23 & 255
        normal = (exponent > 0) & (exponent < 255)
        subnormal = (exponent == 0) & (bits << 9 != 0)
        np.testing.assert_array_equal(got[5], subnormal * 1 + normal * 2)
        least = np.minimum(x, y)
        small = (np.abs(least) < 1e-37) & (least != 0)  # which devices may take for zeros
        found = got[6].view(np.float32)
        np.testing.assert_array_equal(found[~small], least[~small])
        most = np.fmax(np.abs(x), np.abs(y)) * np.sign(np.copysign(1, x) * np.copysign(1, y))
        small = (most < 1e-37) & (most > -1e-37) & (most != 0)
        found = got[7].view(np.float32)
        np.testing.assert_array_equal(found[~small], most.astype(np.float32)[~small])
        finite = np.isfinite(x) & (np.abs(x) < 2000)
        whole = (x * np.float32(1000001)).astype(np.int64)[finite]
        exact = (got[8][finite] << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(whole), 1))) - 7)
        assert (np.abs(exact - whole) <= unit / 2).all()
        np.testing.assert_array_equal(two(9)[1], np.ceil(low).astype(np.float32))
        largest = np.uint32(0x7F7F)
        assert got[1][2] >> 16 == largest
        assert got[1][3] >> 16 == largest | 0x8000


MORE_MEMORY = """
__global__ void more_memory(const unsigned *in, unsigned *out, int n)
{
    __shared__ unsigned s[64];
    __shared__ unsigned long long barrier;
    int i = threadIdx.x;
    unsigned r[8], x = in[i], p;
    unsigned own = (unsigned)__cvta_generic_to_shared(s + i), other, rank;
    unsigned words = (unsigned)__cvta_generic_to_shared(&barrier);
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(other) : "r"(own));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(own));
    if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(words));
    __syncthreads();
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(other), "r"(x + rank), "r"(words) : "memory");
    __syncthreads();
    out[i] = s[(i + 1) % 32];
    asm volatile("ld.global.v8.u32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
          "=r"(r[7]) : "l"(in + 8 * (i % 4)));
    out[n + i] = r[i % 8];
    asm volatile("st.global.v8.u32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};"
        :: "l"(out + 2 * n + 8 * (i % 4)), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]),
           "r"(r[5]), "r"(r[6]), "r"(r[7]));
    unsigned clamp = in[40];
    asm volatile("{ .reg .pred q; shfl.sync.down.b32 %0|q, %2, 3, %3, -1; selp.u32 %1, 1, 0, q; }"
                 : "=r"(r[0]), "=r"(p) : "r"(x), "r"(clamp));
    out[3 * n + i] = r[0];
    out[4 * n + i] = p;
    unsigned long long two = (unsigned long long)__float_as_uint((float)x) << 32;
    two |= __float_as_uint(2.0f);
    asm("fma.rn.f32x2 %0, %0, %0, %1;" : "+l"(two) : "l"(two));
    out[5 * n + i] = (unsigned)two;
    out[6 * n + i] = (unsigned)(two >> 32);
    asm("{ .reg .pred q; isspacep.global q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(r[0]) : "l"(in));
    out[7 * n + i] = r[0];
}
"""


def test_clusters_of_one_block_and_wide_vectors(device):
    x = np.random.default_rng().integers(0, 1000, 48).astype(np.uint32)
    x[40] = 7 | 24 << 8  # segments of eight lanes
    out = td.zeros((8, 32), dtype=td.uint32, device=device)
    td.cuda_module(MORE_MEMORY).more_memory[1, 32](td.asarray(x, device=device), out, 32)
    got, lane = out.numpy(), np.arange(32)
    assert (got[0] == x[(lane + 1) % 32]).all()
    assert (got[1] == x[8 * (lane % 4) + lane % 8]).all()
    assert (got[2] == x[:32]).all()
    inside = lane % 8 + 3 <= 7
    assert (got[3] == x[np.where(inside, lane + 3, lane)]).all()
    assert (got[4] == inside).all()
    assert (got[5].view(np.float32) == 6).all()
    value = x[:32].astype(np.float32)
    assert (got[6].view(np.float32) == value * value + value).all()
    assert (got[7] == 1).all()


VECTOR_SUMS = """
__global__ void sums(float *x, float *y)
{
    float a = 1.5f, b = 2.0f, c, d;
    asm volatile("red.global.v2.f32.add [%0], {%1, %2};" :: "l"(x), "f"(a), "f"(b));
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" :: "l"(x), "f"(b), "f"(a));
    asm volatile("red.global.v4.f32.add [%0], {%1, %2, %2, %1};" :: "l"(x + 4), "f"(a), "f"(b));
    if (threadIdx.x == 0) {
        asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %4};"
                     : "=f"(c), "=f"(d) : "l"(y), "f"(a), "f"(b));
        y[2] = c; y[3] = d;
    }
}
"""


def test_sums_of_vectors_with_the_operation_last():
    x = td.zeros(8, device="cpu")
    y = td.asarray(np.array([5, 6, 0, 0], np.float32), device="cpu")
    td.cuda_module(VECTOR_SUMS).sums[1, 4](x, y)
    assert x.tolist() == [14, 14, 0, 0, 6, 8, 8, 6]
    assert y.tolist() == [6.5, 8, 5, 6]
