"""Every name of the kernel language, called in a kernel as `td.name`: nothing else that td has
under that name may stand in its place."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from treadle import lang
from treadle.lang import namespace

# A value that a kernel computes, and what it must be. In the kernel x is 0.75, y is 2.5 (both f32),
# n is 5, m is 3 (both i32); lane 2 of a block of 5 threads, block 1 of 3, writes it.
VALUES: dict[str, tuple[str, float]] = {
    # types, as casts and annotations
    "bool": ("td.bool(x)", 1), "f16": ("td.f16(0.1)", float(np.float16(0.1))),
    "bf16": ("td.bf16(0.1)", 0.10009765625), "f32": ("td.f32(n) / 2", 2.5),
    "f64": ("td.f64(n) / 3", 5 / 3), "i8": ("td.i8(n + 250)", -1), "i16": ("td.i16(n + 65530)", -1),
    "i32": ("td.i32(-y)", -2), "i64": ("td.i64(n) << 40", 5 << 40), "u8": ("td.u8(n - 8)", 253),
    "u16": ("td.u16(n - 8)", 65533), "u32": ("td.u32(n - 8)", 2**32 - 3),
    "u64": ("td.u64(n) << 60", 5 << 60 & (1 << 64) - 1),
    "float16": ("td.float16(0.1)", float(np.float16(0.1))),
    "bfloat16": ("td.bfloat16(0.1)", 0.10009765625), "float32": ("td.float32(n) / 2", 2.5),
    "float64": ("td.float64(n) / 3", 5 / 3), "int8": ("td.int8(n + 250)", -1),
    "int16": ("td.int16(n + 65530)", -1), "int32": ("td.int32(-y)", -2),
    "int64": ("td.int64(n) << 40", 5 << 40), "uint8": ("td.uint8(n - 8)", 253),
    "uint16": ("td.uint16(n - 8)", 65533), "uint32": ("td.uint32(n - 8)", 2**32 - 3),
    "uint64": ("td.uint64(n) << 60", 5 << 60 & (1 << 64) - 1),
    "c64": ("z[0].y", 2), "complex64": ("z[0].x", 1), "c128": ("w[0].y", 4),
    "complex128": ("w[0].x", 3), "Array": ("z.size", 1), "struct": ("Pair(n, m).second", 3),
    "func": ("halved(y)", 1.25),
    "vec2": ("td.vec2[td.f32](x, y).y", 2.5), "vec3": ("td.vec3[td.f32](x, y, 4).z", 4),
    "vec4": ("td.vec4[td.i32](n, m, 7, 8).w", 8),
    **{
        f"mat{rows}x{columns}": (f"td.mat{rows}x{columns}[td.f32](y)[1, 1]", 2.5)
        for rows in (2, 3, 4)
        for columns in (2, 3, 4)
    },
    # constants
    "e": ("td.f64(td.e)", math.e), "inf": ("td.inf", math.inf), "nan": ("td.nan != td.nan", 1),
    "pi": ("td.f64(td.pi)", math.pi),
    # places
    "thread_idx": ("td.thread_idx.x", 2), "block_idx": ("td.block_idx.x", 1),
    "block_dim": ("td.block_dim.x", 5), "grid_dim": ("td.grid_dim.x", 3),
    "grid": ("td.grid(1)", 7), "grid_size": ("td.grid_size(1)", 15), "lane": ("td.lane()", 2),
    "subgroup_size": ("td.subgroup_size()", 32),
    # memory, barriers, loops: what the kernel's other lines left
    "fragment": ("held[1]", 4.5),
    "shared": ("shared[4]", 40), "local": ("local[2]", 4), "static_range": ("turns", 3),
    "sync_threads": ("shared[3]", 30), "sync_subgroup": ("shared[0]", 0),
    "thread_fence": ("shared[2]", 20), "thread_fence_block": ("shared[1]", 10),
    # atomics: the old value times 100, and the new one
    "atomic_add": ("td.atomic_add(counts, 0, 3) * 100 + counts[0]", 1215),
    "atomic_sub": ("td.atomic_sub(counts, 1, 3) * 100 + counts[1]", 1209),
    "atomic_min": ("td.atomic_min(counts, 2, 3) * 100 + counts[2]", 1203),
    "atomic_max": ("td.atomic_max(counts, 3, 30) * 100 + counts[3]", 1230),
    "atomic_and": ("td.atomic_and(counts, 4, 6) * 100 + counts[4]", 1204),
    "atomic_or": ("td.atomic_or(counts, 5, 3) * 100 + counts[5]", 1215),
    "atomic_xor": ("td.atomic_xor(counts, 6, 6) * 100 + counts[6]", 1210),
    "atomic_exchange": ("td.atomic_exchange(counts, 7, 3) * 100 + counts[7]", 1203),
    "atomic_cas": ("td.atomic_cas(counts, 8, 12, 5) * 100 + counts[8]", 1205),
    # subgroups, of 5 * lane
    "shuffle": ("td.shuffle(five, 4)", 20), "shuffle_up": ("td.shuffle_up(five, 1)", 5),
    "shuffle_down": ("td.shuffle_down(five, 1)", 15),
    "shuffle_xor": ("td.shuffle_xor(five, 3)", 5), "vote_all": ("td.vote_all(five < 15)", 0),
    "vote_any": ("td.vote_any(five < 15)", 1), "ballot": ("td.ballot(five < 15)", 7),
    "subgroup_sum": ("td.subgroup_sum(five)", 50), "subgroup_min": ("td.subgroup_min(five)", 0),
    "subgroup_max": ("td.subgroup_max(five)", 20),
    "subgroup_prefix_sum": ("td.subgroup_prefix_sum(five)", 5),
    # values
    "bitcast": ("td.bitcast(y, td.i32)", 0x40200000), "where": ("td.where(x < y, n, m)", 5),
    "dot": ("td.dot(td.vec2[td.f32](x, y), td.vec2[td.f32](2, 10))", 26.5),
    "cross": ("td.cross(td.vec3[td.f32](x, y, 0), td.vec3[td.f32](2, 10, 0)).z", 2.5),
    "length": ("td.length(td.vec2[td.f32](y, 6))", 6.5),
    "normalize": ("td.normalize(td.vec2[td.f32](y, 6)).x", 2.5 / 6.5),
    # mathematics
    "abs": ("td.abs(-y)", 2.5), "sqrt": ("td.sqrt(y)", math.sqrt(2.5)),
    "floor": ("td.floor(-y)", -3), "ceil": ("td.ceil(-y)", -2), "trunc": ("td.trunc(-y)", -2),
    "round": ("td.round(y)", 2), "fma": ("td.fma(x, y, n)", 6.875),
    "minimum": ("td.minimum(n, m)", 3), "maximum": ("td.maximum(n, m)", 5),
    "clip": ("td.clip(y, 0.0, 1.0)", 1), "isnan": ("td.isnan(y)", 0),
    "isinf": ("td.isinf(y / (x - 0.75))", 1), "isfinite": ("td.isfinite(y)", 1),
    "signbit": ("td.signbit(-y)", 1), "sign": ("td.sign(-y)", -1),
    "copysign": ("td.copysign(y, -x)", -2.5), "square": ("td.square(y)", 6.25),
    "reciprocal": ("td.reciprocal(y)", 0.4), "negative": ("td.negative(y)", -2.5),
    "positive": ("td.positive(y)", 2.5), "popcount": ("td.popcount(n)", 2),
    "clz": ("td.clz(n)", 29), "ctz": ("td.ctz(n + 3)", 3),
    "reverse_bits": ("td.reverse_bits(td.u32(n))", 0xA0000000),
    "dot4_i8": ("td.dot4_i8(n - 6, n + 0x0102FD00, n)", 5 - (5 - 3 + 2 + 1)),
    "dot4_u8": ("td.dot4_u8(n - 6, n + 0x0102FD00, n)", 5 + 255 * (5 + 0xFD + 2 + 1)),
    "dot4_u8i8": ("td.dot4_u8i8(n - 6, n + 0x0102FD00, n)", 5 + 255 * (5 - 3 + 2 + 1)),
    "mul_high": ("td.mul_high(n << 28, n << 28)", (5 << 28) ** 2 >> 32),
    "add": ("td.add(n, m)", 8), "subtract": ("td.subtract(n, m)", 2),
    "multiply": ("td.multiply(n, m)", 15), "divide": ("td.divide(n, m)", 5 / 3),
    "floor_divide": ("td.floor_divide(-n, m)", -2), "remainder": ("td.remainder(-n, m)", 1),
    "equal": ("td.equal(n, m)", 0), "not_equal": ("td.not_equal(n, m)", 1),
    "less": ("td.less(n, m)", 0), "less_equal": ("td.less_equal(n, m)", 0),
    "greater": ("td.greater(n, m)", 1), "greater_equal": ("td.greater_equal(n, m)", 1),
    "bitwise_and": ("td.bitwise_and(n, m)", 1), "bitwise_or": ("td.bitwise_or(n, m)", 7),
    "bitwise_xor": ("td.bitwise_xor(n, m)", 6),
    "bitwise_left_shift": ("td.bitwise_left_shift(n, m)", 40),
    "bitwise_right_shift": ("td.bitwise_right_shift(-n, m)", -1),
    "bitwise_invert": ("td.bitwise_invert(n)", -6),
    "logical_and": ("td.logical_and(n, m)", 1), "logical_or": ("td.logical_or(n, m)", 1),
    "logical_xor": ("td.logical_xor(n, m)", 0), "logical_not": ("td.logical_not(n)", 0),
    "exp": ("td.exp(y)", math.exp(2.5)), "exp2": ("td.exp2(y)", 2**2.5),
    "expm1": ("td.expm1(x)", math.expm1(0.75)), "log": ("td.log(y)", math.log(2.5)),
    "log2": ("td.log2(y)", math.log2(2.5)), "log10": ("td.log10(y)", math.log10(2.5)),
    "log1p": ("td.log1p(y)", math.log1p(2.5)), "sin": ("td.sin(y)", math.sin(2.5)),
    "cos": ("td.cos(y)", math.cos(2.5)), "tan": ("td.tan(y)", math.tan(2.5)),
    "asin": ("td.asin(x)", math.asin(0.75)), "acos": ("td.acos(x)", math.acos(0.75)),
    "atan": ("td.atan(y)", math.atan(2.5)), "atan2": ("td.atan2(x, -y)", math.atan2(0.75, -2.5)),
    "sinh": ("td.sinh(y)", math.sinh(2.5)), "cosh": ("td.cosh(y)", math.cosh(2.5)),
    "tanh": ("td.tanh(x)", math.tanh(0.75)), "asinh": ("td.asinh(y)", math.asinh(2.5)),
    "acosh": ("td.acosh(y)", math.acosh(2.5)), "atanh": ("td.atanh(x)", math.atanh(0.75)),
    "pow": ("td.pow(y, x)", 2.5**0.75), "rsqrt": ("td.rsqrt(y)", 2.5**-0.5),
    "cbrt": ("td.cbrt(y)", 2.5 ** (1 / 3)), "hypot": ("td.hypot(x, y)", math.hypot(0.75, 2.5)),
    "logaddexp": ("td.logaddexp(x, y)", math.log(math.exp(0.75) + math.exp(2.5))),
    "nextafter": ("(td.nextafter(y, 3.0) - y) * 2 ** 22", 1), "erf": ("td.erf(x)", math.erf(0.75)),
    "erfc": ("td.erfc(x)", math.erfc(0.75)),
    "erfinv": ("td.erfinv(x)", 0.8134198475976185), "gamma": ("td.gamma(y)", math.gamma(2.5)),
    "lgamma": ("td.lgamma(x)", math.lgamma(0.75)),
    "sigmoid": ("td.sigmoid(x)", 1 / (1 + math.exp(-0.75))),
    # Philox, whose bits tests/device/arrays/test_random.py checks
    "rand_uniform": ("td.rand_uniform(n, m)", 0.6700757741928101),
    "rand_normal": ("td.rand_normal(n, m)", -0.5202521681785583),
}  # fmt: skip
OUTSIDE = {"GridPos", "interpret", "kernel"}  # what is around a kernel
AROUND = {"c64", "complex128", "func", "struct"}  # what its annotations and helpers use

KERNEL = """
def every_name(out: td.Array[td.f64], counts: td.Array[td.i32], z: td.Array[td.complex64],
               w: td.Array[td.c128], x: td.f32, y: td.f32, n: td.i32, m: td.i32):
    shared = td.shared(5, td.i32)
    local = td.local(4, td.i32)
    held = td.fragment(16, 8, td.f32, use="accumulator")
    held.fill(4.5)
    t = td.thread_idx.x
    five = 5 * td.lane()
    turns = 0
    for k in td.static_range(3):
        local[k] = k * k
        turns += 1
    shared[t] = 10 * t
    td.sync_threads()
    td.sync_subgroup()
    td.thread_fence()
    td.thread_fence_block()
"""


@td.struct
class Pair:
    first: td.i32
    second: td.i32


@td.func
def halved(x):
    return x / 2


@pytest.fixture(scope="module", params=["cpu", "interpreted"])
def found(request: pytest.FixtureRequest) -> dict[str, float]:
    """The values, by the name that they show."""
    text = KERNEL
    for at, (value, _) in enumerate(VALUES.values()):
        # Subgroups take part as a whole.
        text += f"    value{at} = {value}\n" if "five" in value else ""
    text += "    if t == 2 and td.block_idx.x == 1:\n"
    for at, (value, _) in enumerate(VALUES.values()):
        text += f"        out[{at}] = td.f64({f'value{at}' if 'five' in value else value})\n"
    kernel = td.kernel(source=text)
    out, counts = np.zeros(len(VALUES)), np.full(9, 12, np.int32)
    z, w = np.array([1 + 2j], np.complex64), np.array([3 + 4j])
    arguments = (out, counts, z, w, 0.75, 2.5, 5, 3)
    if request.param == "interpreted":
        with td.interpret():
            kernel[3, 5](*arguments)
    else:
        with td.use_device("cpu"):
            kernel[3, 5](*arguments)
    return dict(zip(VALUES, out.tolist(), strict=True))


@pytest.mark.parametrize("name", VALUES)
def test_a_name_of_the_kernel_language(found: dict[str, float], name: str) -> None:
    assert found[name] == pytest.approx(VALUES[name][1], rel=2e-6)


def test_no_name_is_missing() -> None:
    missing = set(lang.__all__) - OUTSIDE - VALUES.keys()
    assert not missing, f"add a line for each of {sorted(missing)} to VALUES here"
    assert not VALUES.keys() - set(lang.__all__)
    for name, (value, _) in VALUES.items():
        assert f"td.{name}" in KERNEL + value or name in AROUND


@pytest.mark.parametrize("name", lang.__all__)
def test_td_has_the_kernel_languages_own(name: str) -> None:
    assert getattr(td, name) is getattr(lang, name)


def test_the_namespace_is_all_but_the_decorators():
    assert set(lang.__all__) == namespace.PUBLIC
    assert namespace.PUBLIC - set(namespace.__all__) == {"func", "interpret", "kernel"}
    assert all(getattr(lang, name) is getattr(namespace, name) for name in namespace.__all__)
