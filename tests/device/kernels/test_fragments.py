"""Matrix fragments: products of every dtype, layout and alignment, edges, elements, what is
refused."""

from __future__ import annotations

import numpy as np

import treadle as td

DTYPES = {"f16": td.f16, "bf16": td.bf16, "tf32": td.f32, "i8": td.i8, "u8": td.u8}
DEEP = {"f16": 16, "bf16": 16, "tf32": 8, "i8": 32, "u8": 32}  # of the inner axis of a part
BYTES = {"i8": np.int8, "u8": np.uint8}
_TF32 = np.uint32(0xFFFFE000)


def _drawn(name, shape, rng):
    if name in BYTES:
        low = -128 if name == "i8" else 0
        return rng.integers(low, low + 256, shape).astype(BYTES[name])
    values = rng.standard_normal(shape).astype(np.float16 if name == "f16" else np.float32)
    if name == "bf16":  # numbers that it has
        values = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return values


def _exact(values, name):
    """The numbers that are multiplied: of TF32, those rounded to 10 bits."""
    if name != "tf32":
        return values.astype(np.float64)
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & _TF32).view(np.float32).astype(np.float64)


def _close(found, x, y, name, start=0.0):
    """Beside float64: sums of floats are rounded as float32, perhaps truncated."""
    left, right = _exact(x, name), _exact(y, name)
    wanted = left @ right + start
    if name in BYTES:
        np.testing.assert_array_equal(found, wanted)
    else:
        bound = (np.abs(left) @ np.abs(right) + np.abs(start)) * 2e-6
        assert np.all(np.abs(found - wanted) <= bound), np.max(np.abs(found - wanted) / bound)


def _multiplier(dtypes, rows, columns, deep, a_layout, b_layout, aligned):
    """A kernel of one warp: rows x columns sums over two steps of `deep`, from shared memory."""
    dtype, other = dtypes
    sums_type = td.i32 if dtype.itemsize == 1 else td.f32
    a_turned, b_turned = a_layout == "column", b_layout == "column"
    a_size, b_size = rows * 2 * deep, columns * 2 * deep
    a_pitch = rows if a_turned else 2 * deep
    b_pitch = 2 * deep if b_turned else columns

    @td.kernel
    def multiply(x: td.Array[dtype], y: td.Array[other], z: td.Array[sums_type, 2]):
        left = td.shared(a_size, dtype)
        right = td.shared((b_size // b_pitch, b_pitch), other)
        for i in range(td.lane(), a_size, 32):
            left[i] = x[i]
        for i in range(td.lane(), b_size, 32):
            right[i // b_pitch, i % b_pitch] = y[i]
        td.sync_threads()
        a = td.fragment(rows, deep, dtype, use="a")
        b = td.fragment(deep, columns, other, use="b")
        sums = td.fragment(rows, columns, sums_type, use="accumulator")
        sums.load(z, (0, 0))
        for k in range(0, 2 * deep, deep):
            start = k * a_pitch if a_turned else k
            a.load(left, start, a_pitch, layout=a_layout, aligned=aligned)
            if b_turned:
                b.load(right, (0, k), layout="column", aligned=aligned)
            else:
                b.load(right, (k, 0), aligned=aligned)
            sums.multiply_add(a, b)
        sums.store(z, (0, 0))

    return multiply


CASES = [
    (("f16", "f16"), "row", "row", True),
    (("i8", "i8"), "row", "column", True),
    (("f16", "f16"), "column", "column", True),
    (("bf16", "bf16"), "row", "column", False),
    (("bf16", "bf16"), "column", "row", True),
    (("tf32", "tf32"), "row", "column", True),
    (("i8", "i8"), "column", "row", False),
    (("u8", "u8"), "row", "column", True),
    (("u8", "i8"), "row", "row", False),
    (("i8", "u8"), "column", "column", False),
]
_ALL = ("cpu", "numpy", "ptx:0", "cuda")  # devices on which every case is tried, or half of them


def _has_all(device):
    return device.id.startswith(_ALL)


def test_products(device, rng):
    """On software GPUs, which compile an emulated subgroup for seconds, a small one."""
    rows, columns = (32, 24) if _has_all(device) else (16, 8)
    cases = CASES if _has_all(device) else CASES[:1]
    if device.backend == "cpu":
        cases = [CASES[i] for i in (0, 3, 5, 6, 8)]
    elif device.backend == "numpy":
        cases = [CASES[i] for i in (1, 2, 4, 5, 7, 9)]
    for names, a_layout, b_layout, aligned in cases:
        dtypes = [DTYPES[name] for name in names]
        deep = DEEP[names[0]]
        x, y = _drawn(names[0], (rows, 2 * deep), rng), _drawn(names[1], (2 * deep, columns), rng)
        start = rng.integers(-9, 9, (rows, columns))
        start = start.astype(np.int32 if names[0] in BYTES else np.float32)
        given = [
            np.ascontiguousarray(each.T if layout == "column" else each).reshape(-1)
            for each, layout in ((x, a_layout), (y, b_layout))
        ]
        left, right = (
            td.asarray(each, dtype=dtype, device=device)
            for each, dtype in zip(given, dtypes, strict=True)
        )
        z = td.asarray(start, device=device)
        kernel = _multiplier(dtypes, rows, columns, deep, a_layout, b_layout, aligned)
        kernel[1, 32](left, right, z)
        _close(z.numpy(), x, y, names[0], start)


@td.kernel
def edges(x: td.Array[td.f16, 2], y: td.Array[td.f16, 2], z: td.Array[td.f16, 2], scale: td.f32):
    """A product of any size, 16 x 16 sums a warp; then numbers by their places."""
    warp = td.thread_idx.x // 32
    row = (td.block_idx.y * 2 + warp) * 16
    column = td.block_idx.x * 16
    sums = td.fragment(16, 16, td.f32, use="accumulator")
    a = td.fragment(16, 16, td.f16, use="a")
    b = td.fragment(16, 16, td.f16, use="b")
    sums.fill(1.0)
    for k in range(0, x.shape[1], 16):
        a.load(x, (row, k))
        b.load(y, (k, column))
        sums.multiply_add(a, b)
    for i in td.static_range(sums.size):
        sums[i] = sums[i] * scale + 100.0 * (row + sums.row(i)) + (column + sums.column(i))
    sums.store(z, (row, column))


def test_edges_and_places(device, rng):
    if not _has_all(device):
        return
    rows, inner, columns = 37, 19, 29
    x = rng.standard_normal((rows, inner)).astype(np.float16)
    y = rng.standard_normal((inner, columns)).astype(np.float16)
    z = td.full((rows, columns), -7.0, dtype=td.f16, device=device)
    edges[(2, 2), 64](td.asarray(x, device=device), td.asarray(y, device=device), z, 0.5)
    wanted = (x.astype("f8") @ y.astype("f8") + 1) * 0.5
    wanted += 100.0 * np.arange(rows)[:, None] + np.arange(columns)
    np.testing.assert_allclose(z.numpy().astype("f8"), wanted, rtol=1e-3)


@td.kernel
def aligned_rows(x: td.Array[td.f16], row: td.i32, z: td.Array[td.f32, 2]):
    tile = td.shared((20, 24), td.f16)
    for i in range(td.lane(), 480, 32):
        tile[i // 24, i % 24] = x[i]
    td.sync_threads()
    a = td.fragment(16, 16, td.f16, use="a")
    b = td.fragment(16, 8, td.f16, use="b")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    a.load(tile, (row, 8), aligned=True)
    b.load(tile, (row, 16), aligned=True)
    sums.multiply_add(a, b)
    sums.store(z, (0, 0))


def test_aligned_rows_outside(device, rng):
    """They are zeros: the instruction that loads rows has no checks of its own."""
    if not _has_all(device):
        return
    x = rng.standard_normal((20, 24)).astype(np.float16)
    padded = np.zeros((80, 24), np.float16)
    padded[20:40] = x
    given = td.asarray(x.reshape(-1), device=device)
    for row in (3, 9, 19, -5):
        z = td.zeros((16, 8), device=device)
        aligned_rows[1, 32](given, row, z)
        part = padded[20 + row : 36 + row]
        _close(z.numpy(), part[:, 8:24], part[:, 16:24], "f16")


@td.func
def sums_of(sums, a, b):
    """Fragments are passed as arrays are."""
    a.fill(2)
    b.fill(-0.5)
    sums.multiply_add(a, b)


@td.kernel
def special(x: td.Array[td.f32], z: td.Array[td.f32]):
    a = td.fragment(16, 8, td.f32, use="a")
    b = td.fragment(8, 8, td.f32, use="b")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    sums_of(sums, a, b)
    a.load(x, 0, 8)
    b.fill(1)
    sums.multiply_add(a, b)
    sums.store(z, 0, 8)


def test_special_values_and_functions(device):
    x = np.zeros((16, 8), np.float32)
    x[0, 3], x[1, 0], x[2, 7], x[4, 4] = np.inf, -np.inf, np.nan, 2.0**100
    x[3, :2] = np.inf, -np.inf
    x[5] = np.array([0x7FFFFFFF], np.uint32).view(np.float32)  # NaN, as NVIDIA's cards make it
    x[6] = 1 + 2.0**-11  # rounded up to a number of TF32
    z = td.full(128, 7.0, device=device)
    special[1, 32](td.asarray(x.reshape(-1), device=device), z)
    found = z.numpy().reshape(16, 8)
    with np.errstate(invalid="ignore"):
        rounded = x.copy()
        rounded[6] = 1 + 2.0**-10
        wanted = np.broadcast_to(rounded.sum(1, keepdims=True) - 8, (16, 8))
    np.testing.assert_array_equal(found, wanted)
