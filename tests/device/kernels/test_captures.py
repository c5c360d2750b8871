"""Constants from outside, on every device: loops, closures, classes, cells, changes, dtypes."""

from __future__ import annotations

import enum
import linecache
import types

import numpy as np
import pytest

import treadle as td

SCALE = 2.0
NESTED = ((1.0, (2.0, 3.0)), (4.0,))
KIND = td.i32


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


class Settings:
    factor = 3
    kinds = types.SimpleNamespace(wide=td.f32, mode=Mode.FAST)


@td.func
def scaled(x):
    return x * SCALE


@td.func
def twice_scaled(x):
    return scaled(scaled(x))


def first(kernel, *arguments, dtype=td.f32):
    out = td.zeros(1, dtype=dtype)
    kernel[1, 1](out, *arguments)
    return out.item()


def test_kernels_made_in_a_loop_keep_their_own_values(device):
    kernels = []
    for number in range(4):

        def make(number):
            @td.kernel
            def k(out):
                out[0] = number

            return k

        kernels.append(make(number))
    assert [first(k) for k in kernels] == [0, 1, 2, 3]
    assert [first(k) for k in reversed(kernels)] == [3, 2, 1, 0]


def test_a_loops_variable_is_read_when_the_kernel_runs(device):
    kernels = []
    for number in range(3):

        @td.kernel
        def k(out):
            out[0] = number  # noqa: B023  this is what is tested

        kernels.append(k)
    # As Python's closures do: all see the last value.
    assert [first(k) for k in kernels] == [2, 2, 2]
    number = 7
    assert [first(k) for k in kernels] == [7, 7, 7]


def test_changed_globals(device, monkeypatch):
    @td.kernel
    def k(out):
        out[0] = twice_scaled(3.0)

    assert first(k) == 12
    for value, expected in ((3.0, 27), (3, 27), (True, 3), (np.float32(0.5), 0.75), (2.0, 12)):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert first(k) == expected


def test_zero_and_minus_zero_are_two_constants(device):
    zero = 0.0

    @td.kernel
    def k(out):
        out[0] = zero

    assert not np.signbit(first(k))
    zero = -0.0
    assert np.signbit(first(k))
    zero = float("nan")
    assert np.isnan(first(k))


def test_a_changed_function_is_called(device):
    @td.func
    def step(x):
        return x + 1.0

    @td.func
    def outer(x):
        return step(x)

    @td.kernel
    def k(out):
        out[0] = outer(1.0)

    assert first(k) == 2

    @td.func
    def step(x):  # noqa: F811  as in a notebook
        return x + 10.0

    assert first(k) == 11


def test_functions_as_values(device):
    def make(operation, start):
        @td.kernel
        def k(out):
            out[0] = operation(td.f32(start))

        return k

    assert [first(make(f, 3)) for f in (scaled, twice_scaled, td.sqrt, abs)] == pytest.approx(
        [6, 12, 3**0.5, 3]
    )


def test_functions_made_by_functions(device):
    def adder(amount):
        @td.func
        def add(x):
            return x + amount

        return add

    one, ten = adder(1.0), adder(10.0)

    @td.kernel
    def k(out):
        out[0] = one(ten(one(0.0)))

    assert first(k) == 12


def test_in_classes(device):
    class Model:
        rate = 0.5

        @td.kernel
        def k(out):
            out[0] = Settings.factor * Settings.kinds.wide(Settings.kinds.mode)

        def __init__(self, rate):
            @td.kernel
            def own(out):
                out[0] = self.rate * Settings.factor

            self.rate, self.own = rate, own

        @staticmethod
        @td.func
        def helper(x):
            return x * 4.0

    assert first(Model.k) == 6
    models = [Model(1.0), Model(2.0)]
    assert [first(model.own) for model in models] == [3, 6]
    models[0].rate = 5.0
    assert [first(model.own) for model in models] == [15, 6]

    @td.kernel
    def uses_a_static_method(out):
        out[0] = Model.helper(2.0)

    assert first(uses_a_static_method) == 8


def test_changed_class_attributes(device, monkeypatch):
    @td.kernel
    def k(out):
        out[0] = Settings.factor + td.f32(Settings.kinds.mode)

    assert first(k) == 5
    monkeypatch.setattr(Settings, "factor", 10)
    assert first(k) == 12
    monkeypatch.setattr(Settings.kinds, "mode", Mode.SLOW)
    assert first(k) == 11
    monkeypatch.setattr(Settings, "kinds", types.SimpleNamespace(mode=-1))
    assert first(k) == 9


def test_tuples_of_tuples(device, monkeypatch):
    @td.kernel
    def k(out):
        total = 0.0
        for at in td.static_range(len(NESTED)):
            total += NESTED[at][0]
        (_, pair), _ = NESTED
        out[0] = total + 10.0 * pair[1] + 100.0 * len(pair)

    assert first(k) == 235
    monkeypatch.setitem(globals(), "NESTED", ((1.0, (2.0, 3.0, 4.0)), (5.0,), (6.0,)))
    with pytest.raises(td.errors.CompileError, match="2 names for 3 values"):
        first(k)
    monkeypatch.setitem(globals(), "NESTED", ((1, (0, np.float32(1.5), 4)), (5,)))
    assert first(k) == 321


NUMBERS = [
    (np.float32(0.1), td.f32), (np.int8(-3), td.i8), (np.uint16(65535), td.u16), (7, td.i32),
    (np.uint32(1 << 31), td.u32), (np.float16(0.1), td.f16), (True, td.bool), (1.5, td.f32),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n[0]).__name__)
def test_numbers_keep_their_types(device, number):
    value, dtype = number

    @td.elementwise
    def constant(x):
        return value

    found = constant(td.ones(1, dtype=td.bool))
    assert found.dtype == dtype
    assert found.item() == dtype(value)


def test_dtypes_as_values(device):
    def filled(kind, value):
        @td.kernel
        def k(out):
            tile = td.shared(4, kind)
            x: kind = kind(value)
            tile[td.thread_idx.x] = x + kind(1)
            td.sync_threads()
            out[0] = tile[0]

        return k

    assert first(filled(td.i32, 2.9), dtype=td.i32) == 3
    assert first(filled(td.f32, 2.5)) == 3.5
    assert first(filled(td.u32, 3), dtype=td.u32) == 4
    assert first(filled(KIND, -1), dtype=td.i32) == 0


def test_a_changed_dtype(device, monkeypatch):
    @td.kernel
    def k(out):
        out[0] = td.f32(KIND(2.75))

    assert first(k) == 2
    monkeypatch.setitem(globals(), "KIND", td.f32)
    assert first(k) == 2.75


def test_structs_and_vectors_as_values(device):
    @td.struct
    class Point:
        at: td.vec2[td.f32]

    vector = td.vec2[td.f32]

    @td.kernel
    def k(out):
        p = Point(vector(1.0, 2.0))
        out[0] = p.at.y

    assert first(k) == 2


def cell(text, number, namespace):
    """Run text as a notebook runs a cell: its source is in linecache under an invented name."""
    file = f"<ipython-input-{number}-5d1f>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), namespace)
    return file


def test_notebook_cells(device):
    namespace = {"td": td, "__name__": "__main__"}
    cell("factor = 2.0\n\n@td.func\ndef f(x):\n    return x * factor\n", 1, namespace)
    text = "@td.kernel\ndef k(out: td.Array[td.f32]):\n    out[0] = f(4.0)\n"
    cell(text, 2, namespace)
    assert first(namespace["k"]) == 8
    # A cell run again changes a name that an earlier kernel uses.
    cell("@td.func\ndef f(x):\n    return x - factor\n", 3, namespace)
    assert first(namespace["k"]) == 2
    cell("factor = 0.5\n", 4, namespace)
    assert first(namespace["k"]) == 3.5
    # The same cell once more makes a new kernel of the same name.
    old = namespace["k"]
    cell(text.replace("4.0", "5.0"), 5, namespace)
    assert (first(old), first(namespace["k"])) == (3.5, 4.5)


def test_errors_in_notebook_cells_show_the_cells_line(device):
    namespace = {"td": td}
    file = cell(
        "# a comment\n@td.kernel\ndef k(out: td.Array[td.f32]):\n    out[0] = missing\n",
        6,
        namespace,
    )
    with pytest.raises(td.errors.CompileError, match="missing") as caught:
        first(namespace["k"])
    assert (caught.value.span.file, caught.value.span.line) == (file, 4)
    namespace["missing"] = 3
    assert first(namespace["k"]) == 3
    del namespace["missing"]
    with pytest.raises(td.errors.CompileError, match="missing"):
        first(namespace["k"])


def test_what_cannot_be_captured_says_what_to_do(device):
    array = np.ones(2000)
    tensor = td.ones(3)
    table = {"a": 1}

    @td.kernel
    def takes_array(out):
        out[0] = array[0]

    @td.kernel
    def takes_tensor(out):
        out[0] = tensor[0]

    @td.kernel
    def takes_table(out):
        out[0] = table["a"]

    for kernel, name in ((takes_array, "array"), (takes_tensor, "tensor"), (takes_table, "table")):
        with pytest.raises(td.errors.CompileError, match=name):
            first(kernel)
    array = 4
    assert_fails_no_more = td.kernel(source="def k(out):\n    out[0] = array")
    assert first(assert_fails_no_more) == 4


# --- arrays of NumPy -----------------------------------------------------------------------------

WEIGHTS = np.array([0.25, 0.5, 0.25], np.float32)
GRID = np.arange(12, dtype=np.int32).reshape(4, 3).T  # not in row-major order
FLAGS = types.SimpleNamespace(on=np.array([True, False, True]))


@td.func
def weighted(x, i, weights):
    total = 0.0
    for k in td.static_range(3):
        total += x[i + k] * weights[k]
    return total


@td.kernel
def with_arrays(x: td.Array[td.f32], out: td.Array[td.f32, 2]):
    i = td.grid(1)
    if i < out.shape[1]:
        out[0, i] = weighted(x, i, WEIGHTS)
        out[1, i] = GRID[i % 3, i % 4] + GRID[2, 3]
        out[2, i] = WEIGHTS[i]  # outside: 0
        out[3, i] = td.f32(FLAGS.on[i % 3]) + GRID.shape[0] * 10 + len(GRID) + GRID.size
        total = 0.0
        for k, w in enumerate(WEIGHTS):
            total += w * td.f32(k)
        for w in WEIGHTS:
            total += w
        out[4, i] = total


def arrays_expected(x, n):
    i = np.arange(n)
    return [
        sum(x[k : k + n] * WEIGHTS[k] for k in range(3)),
        GRID[i % 3, i % 4] + GRID[2, 3],
        np.where(i < 3, WEIGHTS[i % 3], 0),
        FLAGS.on[i % 3] + 30 + 3 + 12,
        np.full(n, (WEIGHTS * np.arange(3)).sum() + WEIGHTS.sum()),
    ]


def test_arrays_are_constants(device):
    x = np.random.default_rng().normal(size=9).astype(np.float32)
    out, host = td.zeros((5, 7)), np.zeros((5, 7), np.float32)
    with_arrays.launch(7, td.asarray(x), out)
    np.testing.assert_allclose(out.numpy(), arrays_expected(x, 7), rtol=1e-6, atol=1e-6)
    with td.interpret():
        with_arrays[1, 8](x, host)
    np.testing.assert_allclose(host, out.numpy(), rtol=1e-6, atol=1e-6)


def test_elements_that_change_compile_anew(device):
    table = np.array([1, 2, 3], np.int32)

    @td.kernel
    def k(out, at):
        out[0] = table[at]

    assert [first(k, at, dtype=td.i32) for at in (0, 2, 3)] == [1, 3, 0]
    table[2] = 30
    assert first(k, 2, dtype=td.i32) == 30
    table = np.array([[5, 6]], np.int16)  # another array of two axes
    with pytest.raises(td.errors.CompileError, match="2 dimensions"):
        first(k, 0, dtype=td.i32)


def test_special_values_in_arrays(device):
    special = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)

    @td.kernel
    def k(out):
        i = td.grid(1)
        out[i] = special[i]

    out = td.ones(5)
    k.launch(5, out)
    np.testing.assert_array_equal(out.numpy(), [*special, 0])
