"""What numbers are on every device: operators, casts, special values, structs, vectors."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import treadle as td

INTEGERS = [td.i8, td.u8, td.i16, td.u16, td.i32, td.u32, td.i64, td.u64]
FLOATS = [td.f16, td.bf16, td.f32, td.f64]
_NEEDS = {"int64": "int64", "uint64": "int64", "float64": "float64"}


def need(device, *dtypes):
    for dtype in dtypes:
        feature = _NEEDS.get(dtype.name)
        if feature and feature not in device.features:
            with pytest.raises(td.errors.DtypeError, match="has no"):
                td.zeros(1, dtype=dtype, device=device)
            return False
    return True


def edge_integers(rng, dtype, n=400):
    low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
    edges = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 31]
    edges += [-1, -2, -7] if low < 0 else []
    drawn = rng.integers(low, high, n, dtype=dtype.numpy, endpoint=True)
    return np.concatenate(
        [np.array(edges, dtype.numpy), drawn, rng.integers(0, 10, 50).astype(dtype.numpy)]
    )


def run_binary(table, dtype, a, b, result):
    """What each function of a table gives: with its name, its results and those of what the table
    has for it. One kernel computes all of them, since each takes longer to compile than to run."""
    functions = tuple(table)
    count = len(functions)

    @td.kernel
    def apply(a: td.Array[dtype], b: td.Array[dtype], out: td.Array[result, 2]):
        i = td.grid(1)
        if i < a.size:
            for k in td.static_range(count):
                out[k, i] = functions[k](a[i], b[i])

    out = td.zeros((count, a.size), dtype=result)
    apply[-(-a.size // 64), 64](td.asarray(a), td.asarray(b), out)
    with np.errstate(all="ignore"):
        expected = [table[each](a, b) for each in functions]
    return zip([each.__name__ for each in functions], out.numpy(), expected, strict=True)


@td.func
def add(a, b):
    return a + b


@td.func
def subtract(a, b):
    return a - b


@td.func
def multiply(a, b):
    return a * b


@td.func
def floor_divide(a, b):
    return a // b


@td.func
def modulo(a, b):
    return a % b


@td.func
def bit_and(a, b):
    return a & b


@td.func
def bit_or(a, b):
    return a | b


@td.func
def bit_xor(a, b):
    return a ^ b


@td.func
def larger(a, b):
    return td.maximum(a, b)


@td.func
def smaller(a, b):
    return td.minimum(a, b)


WRAPPING = {
    add: operator.add, subtract: operator.sub, multiply: operator.mul,
    floor_divide: operator.floordiv, modulo: operator.mod,
    bit_and: operator.and_, bit_or: operator.or_, bit_xor: operator.xor,
    larger: np.maximum, smaller: np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_operators(device, rng, dtype):
    if not need(device, dtype):
        return
    a = edge_integers(rng, dtype)
    b = rng.permutation(edge_integers(rng, dtype))
    for name, found, expected in run_binary(WRAPPING, dtype, a, b, dtype):
        np.testing.assert_array_equal(found, expected, name)


@td.func
def shift_left(a, b):
    return a << b


@td.func
def shift_right(a, b):
    return a >> b


SHIFTS = {shift_left: np.left_shift, shift_right: np.right_shift}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(device, rng, dtype):
    if not need(device, dtype):
        return
    a = edge_integers(rng, dtype)
    b = rng.integers(0, 8 * dtype.itemsize + 3, a.size).astype(dtype.numpy)
    for name, found, expected in run_binary(SHIFTS, dtype, a, b, dtype):
        np.testing.assert_array_equal(found, expected, name)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, 100.0, -7.25]


def special_pairs(rng, dtype):
    a, b = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    drawn = rng.standard_normal((2, 300)) * 10
    pairs = zip((a, b), drawn, strict=True)
    return (np.concatenate(pair).astype(dtype.numpy) for pair in pairs)


@td.func
def divide(a, b):
    return a / b


FLOATING = {
    add: operator.add, subtract: operator.sub, multiply: operator.mul, divide: operator.truediv,
    larger: np.maximum, smaller: np.minimum,
}  # fmt: skip
_ULPS = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 4e-7, "float64": 1e-15}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_operators(device, rng, dtype):
    if not need(device, dtype):
        return
    a, b = special_pairs(rng, dtype)
    for name, found, expected in run_binary(FLOATING, dtype, a, b, dtype):
        np.testing.assert_allclose(
            found.astype(np.float64), expected.astype(dtype.numpy).astype(np.float64),
            rtol=_ULPS[dtype.name], atol=1e-30, err_msg=name,
        )  # fmt: skip


@td.func
def less(a, b):
    return a < b


@td.func
def at_most(a, b):
    return a <= b


@td.func
def equal(a, b):
    return a == b


@td.func
def unequal(a, b):
    return a != b


COMPARING = {less: operator.lt, at_most: operator.le, equal: operator.eq, unequal: operator.ne}


@pytest.mark.parametrize("dtype", [td.i8, td.u16, td.i32, td.u32, td.i64, *FLOATS], ids=str)
def test_comparisons(device, rng, dtype):
    if not need(device, dtype):
        return
    if dtype.is_float:
        a, b = special_pairs(rng, dtype)
    else:
        a = edge_integers(rng, dtype)
        b = np.where(rng.random(a.size) < 0.3, a, rng.permutation(a))
    for name, found, expected in run_binary(COMPARING, dtype, a, b, td.bool):
        np.testing.assert_array_equal(found, expected, name)


def convert(x, targets):
    """An array cast to each of four dtypes, by one kernel: each takes longer to compile than to
    run, and a device may bind no more than eight arrays."""
    source = td.asarray(x).dtype
    t0, t1, t2, t3 = targets

    @td.kernel
    def cast(
        x: td.Array[source], a: td.Array[t0], b: td.Array[t1], c: td.Array[t2], d: td.Array[t3]
    ):
        i = td.grid(1)
        if i < x.size:
            a[i], b[i], c[i], d[i] = t0(x[i]), t1(x[i]), t2(x[i]), t3(x[i])

    found = [td.zeros(x.size, dtype=target) for target in targets]
    cast[-(-x.size // 64), 64](td.asarray(x), *found)
    return [each.numpy() for each in found]


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, td.bool], ids=str)
def test_casts(device, rng, source):
    if not need(device, source):
        return
    if source.is_float:
        values = [*SPECIAL, 127.9, -128.9, 255.5, 300.0, -300.0, 65535.9, 7e4, 3e9, -3e9, 1e10, 5e9]
        x = np.concatenate([values, rng.standard_normal(200) * 100])
        with np.errstate(all="ignore"):
            x = x.astype(source.numpy)
    elif source.is_integer:
        x = edge_integers(rng, source)
    else:
        x = np.array([True, False])
    targets = [each for each in (*INTEGERS, *FLOATS, td.bool) if need(device, each)]
    for first in range(0, len(targets), 4):
        four = (targets + targets[:3])[first : first + 4]
        for target, found in zip(four, convert(x, four), strict=True):
            expected = np.array([target(value) for value in x], dtype=target.numpy)
            if target.is_float:
                found, expected = found.astype(np.float64), expected.astype(np.float64)
            np.testing.assert_array_equal(found, expected, f"{source} to {target}")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_functions(device, rng, dtype):
    if not need(device, dtype):
        return

    @td.kernel
    def apply(x: td.Array[dtype], out: td.Array[dtype, 2], tests: td.Array[td.bool, 2]):
        i = td.grid(1)
        if i < x.size:
            v = x[i]
            out[0, i] = td.floor(v)
            out[1, i] = td.ceil(v)
            out[2, i] = td.trunc(v)
            out[3, i] = td.round(v)
            out[4, i] = abs(v)
            out[5, i] = td.where(v > 0, v, -v)
            tests[0, i] = td.isnan(v)
            tests[1, i] = td.isinf(v)
            tests[2, i] = td.isfinite(v)
            tests[3, i] = td.signbit(v)

    x = np.concatenate([SPECIAL, rng.standard_normal(100) * 10, [0.5, 1.5, 2.5, -0.5]]).astype(
        dtype.numpy
    )
    out, tests = td.zeros((6, x.size), dtype=dtype), td.zeros((4, x.size), dtype=td.bool)
    apply[-(-x.size // 64), 64](td.asarray(x), out, tests)
    wide = x.astype(np.float64)
    expected = np.stack(
        [
            np.floor(wide),
            np.ceil(wide),
            np.trunc(wide),
            np.rint(wide),
            np.abs(wide),
            np.where(wide > 0, wide, -wide),
        ]
    )
    found = out.numpy().astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        tests.numpy(), [np.isnan(wide), np.isinf(wide), np.isfinite(wide), np.signbit(wide)]
    )


@pytest.mark.parametrize("dtype", [td.i32, td.u32], ids=str)
def test_bit_counts(device, rng, dtype):
    @td.kernel
    def count(x: td.Array[dtype], out: td.Array[td.i32, 2]):
        i = td.grid(1)
        if i < x.size:
            out[0, i] = td.popcount(x[i])
            out[1, i] = td.clz(x[i])

    x = edge_integers(rng, dtype)
    out = td.zeros((2, x.size), dtype=td.i32)
    count[-(-x.size // 64), 64](td.asarray(x), out)
    bits = [int(v) & 0xFFFFFFFF for v in x]
    np.testing.assert_array_equal(out.numpy()[0], [b.bit_count() for b in bits])
    np.testing.assert_array_equal(out.numpy()[1], [32 - b.bit_length() for b in bits])


def test_division_of_integers_gives_float(device):
    @td.kernel
    def ratio(out: td.Array[td.f32], a: td.i32, b: td.i32):
        out[0] = a / b

    out = td.zeros(1)
    ratio[1, 1](out, 7, 2)
    assert out.item() == 3.5


# --- structs and vectors -------------------------------------------------------------------------


@td.struct
class Particle:
    position: td.vec3[td.f32]
    mass: td.f32
    charge: td.i16
    alive: td.bool
    velocity: td.vec2[td.f32]


@td.kernel
def move(particles: td.Array[Particle], dt: td.f32):
    i = td.grid(1)
    if i < particles.size and particles[i].alive:
        particles[i].position.x += dt * particles[i].velocity.x
        particles[i].charge = particles[i].charge + 1
        p = particles[i]
        p.mass = p.mass * 2.0
        particles[i] = p


def test_array_of_structs(device, rng):
    data = np.zeros(50, Particle.dtype)
    data["position"] = rng.standard_normal((50, 3))
    data["velocity"] = rng.standard_normal((50, 2))
    data["mass"] = rng.random(50)
    data["charge"] = rng.integers(-100, 100, 50)
    data["alive"] = rng.random(50) < 0.5
    x = td.asarray(data)
    move[1, 64](x, 0.5)
    alive = data["alive"]
    data["position"][alive, 0] += np.float32(0.5) * data["velocity"][alive, 0]
    data["charge"][alive] += 1
    data["mass"][alive] *= 2
    found = x.numpy()
    for name in data.dtype.names:
        np.testing.assert_allclose(found[name], data[name], rtol=1e-6, err_msg=name)


def test_struct_and_vector_by_value(device):
    @td.kernel
    def use(p: Particle, v: td.vec3[td.f32], out: td.Array[td.f32]):
        out[0] = p.mass + p.velocity.y + td.f32(p.charge)
        out[1] = v.x + 10.0 * v.z

    out = td.zeros(2)
    p = Particle(td.vec3[td.f32](1, 2, 3), 0.5, -7, True, td.vec2[td.f32](4, 5))
    use[1, 1](p, td.vec3[td.f32](1, 2, 3), out)
    assert out.tolist() == [-1.5, 31.0]


def test_array_of_vectors_takes_rows(device, rng):
    @td.kernel
    def scale(x: td.Array[td.vec4[td.f32]], y: td.Array[td.vec3[td.f32]]):
        i = td.grid(1)
        if i < x.size:
            x[i] = x[i] * 2.0
            y[i].z = x[i].w

    x = rng.standard_normal((10, 4)).astype(np.float32)
    y = rng.standard_normal((10, 3)).astype(np.float32)
    ours, others = td.asarray(x), td.asarray(y)
    scale[1, 32](ours, others)
    y[:, 2] = 2 * x[:, 3]
    np.testing.assert_array_equal(ours.numpy(), 2 * x)
    np.testing.assert_array_equal(others.numpy(), y)
    with pytest.raises(td.errors.LaunchError, match="last axis is 4"):
        scale[1, 32](td.zeros(7), others)


@pytest.mark.parametrize("dtype", [td.i8, td.u8, td.i16, td.u16, td.f16, td.bf16, td.bool], ids=str)
def test_neighbouring_narrow_stores_keep_each_other(device, dtype):
    @td.kernel
    def fill(out: td.Array[dtype]):
        i = td.grid(1)
        if i % 3 != 1:
            out[i] = dtype(i % 2)

    out = td.full(1001, 1, dtype=dtype)
    fill[16, 64](out)
    i = np.arange(1001)
    np.testing.assert_array_equal(out.numpy().astype(int), np.where(i % 3 != 1, i % 2, 1))


def test_division_by_a_literal_zero(device):
    @td.kernel
    def divide(x: td.Array[td.f32], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        out[0, i] = x[i] / 0.0
        out[1, i] = x[i] // 0.0
        out[2, i] = x[i] % 0.0
        out[3, i] = x[i] / -0.0

    data = np.array([1, -2, 0, np.inf, -np.inf, np.nan, 3e38], np.float32)
    out = td.full((4, 7), 5.0)
    divide[1, 7](td.asarray(data), out)
    with np.errstate(all="ignore"):
        quotient = data / np.float32(0)
        expected = [quotient, quotient, np.full(7, np.nan), -quotient]
    np.testing.assert_array_equal(out.numpy(), np.stack(expected))


@td.kernel
def named_as_in_helpers(index, value, byte, word, old, shift):
    i = td.grid(1)
    at = index[i]
    value[at] = byte[at] + value[at]
    td.atomic_add(old, at, td.f32(word[at]))
    td.atomic_add(shift, at, 1)


def test_arrays_may_be_named_as_what_printers_write(device):
    index = td.asarray(np.array([2, 0, 1, 7], np.int32))
    value = td.asarray(np.array([1, 2, 3], np.int8))
    byte = td.asarray(np.array([10, 20, 30], np.int8))
    word = td.asarray(np.array([0.5, 1.5, 2.5], np.float16))
    old, shift = td.zeros(3, dtype=td.f32), td.zeros(3, dtype=td.i32)
    named_as_in_helpers.launch(4, index, value, byte, word, old, shift)
    assert value.tolist() == [11, 22, 33]
    assert old.tolist() == [0.5, 1.5, 2.5]
    assert shift.tolist() == [1, 1, 1]


def test_integers_are_rounded_to_bfloat16_at_once(device):
    """Not by way of a float32, in which these lie in the middle between two."""
    middle = 1017118720
    near = np.array([middle + 10, middle - 10, middle], np.uint32)
    wanted = [1019215872.0, 1015021568.0, 1015021568.0]
    assert [float(td.bfloat16(value)) for value in near] == wanted

    @td.kernel
    def convert(x: td.Array[td.u32], out: td.Array[td.bf16]):
        i = td.grid(1)
        if i < out.size:
            out[i] = td.bf16(x[i])

    out = td.zeros(3, dtype=td.bfloat16)
    convert.launch(3, td.asarray(near), out)
    assert out.numpy().astype(np.float64).tolist() == wanted


@td.kernel
def powers(x, n, out):
    i = td.grid(1)
    out[i] = x[i] ** n[i]


def test_integers_to_negative_powers(device, monkeypatch):
    """The fraction without what is behind the point, as in PyTorch."""
    bases = [1, -1, 0, 2, -2, 127, -128, 1, -1, 0, -1, -1]
    exponents = [-1, -1, -1, -1, -1, -3, -2, -2, -2, 0, 7, -128]
    right = [1, -1, 0, 0, 0, 0, 0, 1, 1, 1, -1, 1]
    for dtype in (td.i8, td.i16, td.i32, td.i64):
        if not need(device, dtype):
            continue
        x, n = (np.array(values, dtype.numpy) for values in (bases, exponents))
        out = np.full(len(right), 99, dtype.numpy)
        powers[1, len(right)](x, n, out)
        assert out.tolist() == right
        with td.interpret():
            powers[1, len(right)](x, n, out)
        assert out.tolist() == right
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    x, n, out = (np.array(values, np.int32) for values in ([1, 3], [2, -1], [0, 0]))
    with pytest.raises(td.errors.LaunchError, match=r"x\[i\] \*\* n\[i\]: an integer has a neg"):
        powers[1, 2](x, n, out)
    with td.interpret(), pytest.raises(td.errors.LaunchError, match="has a negative exponent"):
        powers[1, 2](x, n, out)
    powers[1, 1](x, n, out)


@td.elementwise
def reciprocal_power(x, n):
    return x ** (0 - n)


def test_integers_to_negative_powers_of_every_element(device, monkeypatch):
    x = td.asarray([1, -1, 5], dtype=td.i32)
    assert reciprocal_power(x, 3).tolist() == [1, -1, 0]
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    fresh = td.elementwise(reciprocal_power.definition)
    with pytest.raises(td.errors.LaunchError, match="has a negative exponent"):
        fresh(x, 3).tolist()


@td.func
def scaled_if_given(x, factor=None):
    return x if factor is None else x * factor


MODE, NOTHING = "double", None


@td.kernel
def compared(x: td.Array[td.f32, 2], y: td.Array[td.f32, 2], out: td.Array[td.f32]):
    out[0] = 1.0 if x.shape == y.shape else 2.0
    out[1] = 1.0 if x.shape != y.shape else 2.0
    out[2] = 1.0 if x.shape == (2, 3) else 2.0
    out[3] = 1.0 if x.shape == (2, 3, 1) else 2.0
    out[4] = 1.0 if MODE == "double" and NOTHING is None else 2.0
    out[5] = scaled_if_given(3.0) + scaled_if_given(out[4], out[0])


def test_tuples_and_objects_from_outside_are_compared(device):
    x, same, other = td.zeros((2, 3)), td.ones((2, 3)), td.ones((2, 4))
    for y, expected in ((same, [1, 2, 1, 2, 1, 4]), (other, [2, 1, 1, 2, 1, 5])):
        out = td.zeros(6)
        compared[1, 1](x, y, out)
        assert out.tolist() == expected
        out = np.zeros(6, np.float32)
        with td.interpret():
            compared[1, 1](x.numpy(), y.numpy(), out)
        assert out.tolist() == expected
