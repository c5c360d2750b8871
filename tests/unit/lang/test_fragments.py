"""Matrix fragments: what is refused, with its line; the interpreter; the IR as text."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, LaunchError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import Builder, builtin, load
from treadle.ir.matrices import FIRST, SECOND
from treadle.ir.parser import from_text
from treadle.ir.printer import to_text
from treadle.ir.verify import verify
from treadle.runtime import settings

X, Z = np.zeros((32, 32), np.float16), np.zeros((32, 32), np.float32)


def _refused(kernel, *wanted: str, block: int = 32, arguments=(X, Z)) -> None:
    with pytest.raises((CompileError, LaunchError)) as caught:
        kernel.source("ptx", *arguments, block=block)
    for each in wanted:
        assert each in str(caught.value), caught.value


def _with(line: str):
    """A kernel with one of its lines given."""
    return td.kernel(
        source=f"""
def kernel(x: td.Array[td.f16, 2], z: td.Array[td.f32, 2]):
    a = td.fragment(16, 16, td.f16, use="a")
    b = td.fragment(16, 8, td.f16, use="b")
    c = td.fragment(32, 16, td.bf16, use="a")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    i = td.grid(1)
    {line}
"""
    )


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("d = td.fragment(8, 16, td.f16, use='a')", "multiples of 16 rows and of 16 columns"),
        ("d = td.fragment(16, 8, td.i8, use='b')", "multiples of 32 rows"),
        ("d = td.fragment(16, 8, td.f16, use='accumulator')", "one of td.f32, td.i32, not f16"),
        ("d = td.fragment(16, 8, td.f64, use='a')", "one of td.f16, td.bf16, td.f32, td.i8"),
        ("d = td.fragment(16, 16, td.f16, use='c')", "use is 'a', 'b' or 'accumulator'"),
        ("d = td.fragment(i, 16, td.f16, use='a')", "known when the kernel is compiled"),
        ("d = td.fragment(128, 128, td.f32, use='accumulator')", "at most 256"),
        ("d = td.fragment(16, 16, td.f16)", "takes 4 to 5 arguments, not 3"),
        ("a.multiply_add(a, b)", "an accumulator multiplies"),
        ("sums.multiply_add(b, a)", "an accumulator multiplies"),
        ("sums.multiply_add(a, x)", "takes two fragments"),
        ("sums.multiply_add(c, b)", "both factors have one dtype"),
        ("a.load(x, 3)", "is (row, column)"),
        ("a.load(x, (0, 0), 8)", "has its own stride"),
        ("a.load(x, (0, 0), layout='diagonal')", "layout is 'row' or 'column'"),
        ("a.load(z, (0, 0), aligned=True)", "an array of the fragment's dtype"),
        ("sums.load(z, (0, 0), aligned=True)", "loaded number by number"),
        ("a.store(z, (0, 0))", "only accumulators are stored"),
        ("a.load(sums, (0, 0))", "takes an array"),
        ("z[i, 0] = td.f32(a[0])", "has no numbers to index"),
        ("j = a.row(0)", "a method of accumulators"),
        ("a.transpose()", "has no"),
    ],
)
def test_refused_with_the_line(line, wanted):
    kernel = _with(line)
    _refused(kernel, wanted, line.split("=")[0].strip() if "=" in line else line[:8])


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("e = td.fragment(16, 8, td.f16, use='b', indexed=False)", "multiples of 16 rows"),
        ("e = td.fragment(16, 16, td.bf16, use='a', indexed=False)", "indexed=False is td.f16"),
        ("e = td.fragment(16, 16, td.i32, use='accumulator', indexed=False)", "is td.f32, not i32"),
        ("e = td.fragment(16, 16, td.f16, use='a', indexed=3)", "indexed is True or False"),
        ("e = td.fragment(256, 256, td.f32, use='accumulator', indexed=False)", "at most 256"),
        ("total.multiply_add(a, d)", "three fragments with indexed=False, or none"),
        ("total.multiply_add(d, d)", "an accumulator multiplies"),
        ("d.load(x, (0, 0))", "is loaded from td.shared arrays"),
        ("d.load(tile, 0)", "is (row, column)"),
        ("d.load(wide, (0, 0))", "takes an array of td.f16"),
        ("d.load(tile, (0, 0), aligned=True)", "for fragments that are indexed"),
        ("d.store(tile, (0, 0))", "only accumulators are stored"),
        ("d.load(tile, (0, 0), layout='up')", "layout is 'row' or 'column'"),
        ("total[0] = 1.0", "cannot be indexed: store it to td.shared"),
        ("z[0, 0] = total.size", "has no size in a thread"),
        ("j = total.row(0)", "has no places of its numbers"),
        ("f = total.part(2, 0)", "constant i below 2 and j below 1"),
        ("f = total.part(i, 0)", "constant i below 2 and j below 1"),
        ("f = sums.part(0, 0)", "a method of fragments with indexed=False"),
        ("d.load(tile, (0, 4))", "8 elements of td.f16, not 4"),
        ("total.store(narrow, 0, 17)", "4 elements of td.f32, not 17"),
    ],
)
def test_refused_where_elements_are_not_seen(line, wanted):
    kernel = td.kernel(
        source=f"""
def kernel(x: td.Array[td.f16, 2], z: td.Array[td.f32, 2]):
    tile = td.shared((16, 16), td.f16)
    wide = td.shared((16, 16), td.f32)
    narrow = td.shared(600, td.f32)
    a = td.fragment(16, 16, td.f16, use="a")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    d = td.fragment(16, 16, td.f16, use="b", indexed=False)
    total = td.fragment(32, 16, td.f32, use="accumulator", indexed=False)
    i = td.grid(1)
    {line}
"""
    )
    _refused(kernel, wanted, line.split("=")[0].strip() if "=" in line else line[:8])


def test_whole_subgroups():
    kernel = _with("sums.multiply_add(a, b)")
    _refused(kernel, "a multiple of 32 threads", block=48)
    with pytest.raises(CompileError, match="if"):
        _with("if i < 5: sums.multiply_add(a, b)").source("ptx", X, Z, block=32)


BRANCHES = [
    ("if i >= 16: return\n", "return"),
    ("if x[td.lane(), 0] > 0: return\n", "return"),
    ("for k in range(i):\n        if k == 5: return\n", "return"),
    ("for k in range(3):\n        if i < k: continue\n    ", "continue"),
    ("while True:\n        if i < 5: break\n    ", "break"),
    ("for k in range(i):\n    ", "loop"),
    ("if i < 5:\n    ", "condition"),
]


@pytest.mark.parametrize(("before", "kind"), BRANCHES)
@pytest.mark.parametrize("call", ["sums.multiply_add(a, b)", "a.load(x, (0, 0), aligned=True)"])
def test_lanes_that_do_not_come(before, kind, call):
    """Are refused at the line of the call; in the interpreter, too."""
    end = "\n        break" if kind == "break" else ""
    kernel = _with(f"{before}    {call}{end}")
    for target in ("ptx", "llvm"):
        with pytest.raises(CompileError, match=kind) as caught:
            kernel.source(target, X, Z, block=64)
        shown = str(caught.value).splitlines()
        assert shown[1].endswith(call), shown
        assert shown[2].split()[-1] == "^" * len(call), shown
    with td.interpret(), pytest.raises(CompileError, match=kind):
        kernel[1, 64](X.copy(), Z.copy())


def test_warps_that_return_as_a_whole():
    for line in ("if td.thread_idx.x // 32 == 1: return", "if z.shape[0] == 3: return"):
        for target in ("ptx", "llvm", "wgsl"):
            _with(f"{line}\n    sums.multiply_add(a, b)").source(target, X, Z, block=64)
    with pytest.raises(CompileError, match="return"):  # a store without a product
        _with(
            "t = td.shared((16, 16), td.f32)\n    d = td.fragment(16, 16, td.f32, "
            "use='accumulator', indexed=False)\n    if i < 5: return\n    d.store(t, (0, 0))"
        ).source("llvm", X, Z, block=32)


@pytest.mark.parametrize("threads", [20, 40, 80, (3, 8), (2, 2, 8)])
def test_launches_by_threads_in_the_interpreter(threads):
    kernel = _with("sums.multiply_add(a, b)")
    with td.interpret(), pytest.raises(LaunchError, match="whole subgroups of 32 threads"):
        kernel.launch(threads, X.copy(), Z.copy())


@pytest.mark.parametrize(
    ("lines", "wanted", "shown"),
    [
        ("sums += 1", "sums[i] += 1", "sums += 1"),
        ("sums = sums + 1", "sums[i] += 1", "sums = sums + 1"),
        ("sums = a @ b", "sums.multiply_add(a, b)", "sums = a @ b"),
        ("z[0, 0] = sums * 2", "sums[i] += 1", "z[0, 0] = sums * 2"),
        ("d = made()", "make it in the kernel and pass it", "return sums"),
        ("d = a if i < 2 else c", "make it in the kernel", "d = a if i < 2 else c"),
        ("sums[4] = 1.0", "from 0 to 3, and this is number 4", "sums[4] = 1.0"),
        ("z[0, 0] = sums.column(99)", "this is number 99", "z[0, 0] = sums.column(99)"),
        ("a.load(x, (0.0, 0.0))", "an index is an integer", "a.load(x, (0.0, 0.0))"),
        ("a.fill('x')", "no strings", "a.fill('x')"),
    ],
)
def test_words_and_their_line(lines, wanted, shown):
    with pytest.raises(CompileError) as caught:
        _with(lines).source("ptx", X, Z, block=32)
    assert wanted in str(caught.value), caught.value
    assert str(caught.value).splitlines()[1].endswith(shown), caught.value


@td.func
def made():
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    sums.fill(1)
    return sums


@pytest.mark.parametrize(
    ("extents", "wanted"),
    [
        ((16, 32, 16, 8, 16, 8), "the columns of a (32) are not the rows of b (16)"),
        ((32, 16, 16, 8, 16, 8), "the rows of the accumulator (16) are not the rows of a (32)"),
        ((16, 16, 16, 16, 16, 8), "columns of the accumulator (8) are not the columns of b (16)"),
    ],
)
def test_extents_that_do_not_fit(extents, wanted):
    m, k, n, p, q, r = extents
    kernel = td.kernel(
        source=f"""
def kernel(x: td.Array[td.f16, 2]):
    a = td.fragment({m}, {k}, td.f16, use="a")
    b = td.fragment({n}, {p}, td.f16, use="b")
    sums = td.fragment({q}, {r}, td.f32, use="accumulator")
    sums.multiply_add(a, b)
"""
    )
    _refused(kernel, wanted, "sums.multiply_add(a, b)", arguments=(X,))


@td.kernel
def rows(x: td.Array[td.f16], z: td.Array[td.f32]):
    a = td.fragment(16, 16, td.f16, use="a")
    b = td.fragment(16, 8, td.f16, use="b")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    a.load(x, 0, 16, aligned=True)
    b.fill(1)
    sums.multiply_add(a, b)
    sums[1] = sums.row(1) - 2.0 * sums.column(1)
    sums.store(z, 0, 8)


def test_the_interpreter():
    x = np.random.default_rng(1).integers(-9, 9, 256).astype(np.float16)
    z, found = np.zeros(128, np.float32), td.zeros(128, device="cpu")
    with td.interpret():
        rows[1, 32](x, z)
    rows[1, 32](td.asarray(x, device="cpu"), found)
    np.testing.assert_array_equal(z, found.numpy())
    assert z.reshape(16, 8)[3, 4] == x.reshape(16, 16)[3].sum()
    assert z.reshape(16, 8)[3, 5] == 3 - 2 * 5


@td.kernel
def ragged(x: td.Array[td.f16, 2], y: td.Array[td.f16, 2], z: td.Array[td.f32, 2], at: td.i32):
    a = td.fragment(16, 16, td.f16, use="a")
    b = td.fragment(16, 8, td.f16, use="b")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    a.load(x, (0, 0))
    b.load(y, (0, 0))
    sums.multiply_add(a, b)
    sums[at] += 1
    sums.store(z, (0, 0))


@td.kernel
def whole_rows(x: td.Array[td.f16, 2], column: td.i32, z: td.Array[td.f32, 2]):
    a = td.fragment(16, 16, td.f16, use="a")
    b = td.fragment(16, 8, td.f16, use="b")
    sums = td.fragment(16, 8, td.f32, use="accumulator")
    a.load(x, (0, column), aligned=True)
    b.fill(1)
    sums.multiply_add(a, b)
    sums.store(z, (0, 0))


def test_check_mode_reports_mistakes_but_no_edges(monkeypatch):
    monkeypatch.setattr(settings, "check", True)
    rng = np.random.default_rng()
    x = rng.integers(-9, 9, (7, 13)).astype(np.float16)
    y = rng.integers(-9, 9, (13, 5)).astype(np.float16)
    z = td.full((7, 5), -7.0, device="cpu")
    given = (td.asarray(x, device="cpu"), td.asarray(y, device="cpu"), z)
    ragged[1, 32](*given, 3)
    wanted = x.astype("f8") @ y.astype("f8")
    np.testing.assert_array_equal(z.numpy(), wanted)  # number 3 is in rows from 8 on
    with pytest.raises(LaunchError, match=r"\d+ of test_fragments.py: index 4 is outside sums"):
        ragged[1, 32](*given, 4)

    x, out = td.ones((16, 40), dtype=td.f16, device="cpu"), td.zeros((16, 8), device="cpu")
    whole_rows[1, 32](x, 8, out)
    assert out.numpy().min() == out.numpy().max() == 16
    with pytest.raises(LaunchError, match=r"of test_fragments.py: .*multiples of 16 bytes"):
        whole_rows[1, 32](x, 3, out)


def test_launches_by_threads_have_whole_subgroups():
    x = td.ones((16, 16), dtype=td.f16, device="cpu")
    y = td.ones((16, 8), dtype=td.f16, device="cpu")
    z = td.full((16, 8), -7.0, device="cpu")
    for threads in (20, 40, 1, (3, 8), (32, 33)):
        with pytest.raises(LaunchError, match="whole subgroups of 32"):
            ragged.launch(threads, x, y, z, 3)
    assert np.all(z.numpy() == -7)
    for threads in (32, 96, (4, 8)):
        ragged.launch(threads, x, y, z, 3)
        wanted = np.full((16, 8), 16.0)
        wanted[8:, 1::2] += 1
        np.testing.assert_array_equal(z.numpy(), wanted)


def _kernel() -> n.Kernel:
    b = Builder("matrices", block=32)
    out, source = b.buffer("out", t.F32), b.buffer("source", FIRST)
    tile = b.memory("shared", "tile", FIRST, 32)
    place = n.Element(tile.name, builtin("lane"), FIRST)
    b.emit(n.Assign(place, load(source, builtin("lane")), later=True))
    b.emit(n.Copies(), n.Copies(2), n.Copies(0), n.Barrier())
    words, second = b.variable("words", FIRST), b.variable("second", SECOND)
    sums = b.variable("sums", t.Vector(t.F32, 4))
    b.emit(n.Subgroup("matrix_rows", (n.Load(place, FIRST),), words))
    b.emit(n.Subgroup("multiply_f16", (words, second, sums), sums))
    b.store(out, builtin("lane"), n.Extract(sums, "x", t.F32))
    return b.kernel()


def test_the_ir_as_text():
    kernel = _kernel()
    verify(kernel)
    text = to_text(kernel)
    for line in (
        "later tile[lane] = source[lane]", "copies", "copies left 2",
        "words = subgroup matrix_rows tile[lane]",
        "sums = subgroup multiply_f16 words, second, sums",
    ):  # fmt: skip
        assert f"  {line}\n" in text, text
    assert from_text(text) == kernel


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("multiply_f16 words, second, sums", "multiply_i8 words, second, sums", "multiply_i8"),
        ("multiply_f16 words, second, sums", "multiply_f16 words, second", "operand"),
        ("later tile[lane] = source[lane]", "later source[lane] = tile[lane]", "shared memory"),
    ],
)
def test_what_the_verifier_refuses(old, new, wanted):
    text = to_text(_kernel())
    assert old in text
    with pytest.raises(CompileError, match=wanted):
        verify(from_text(text.replace(old, new)))


def test_checks_whose_outside_is_expected():
    """Edges of fragments: reports of check mode leave them out."""
    text = "kernel k {\n  buffer x: f32\n\n  x[0; 0 within 9] = x[1; 1 in 9]\n}\n"
    kernel = from_text(text)
    assert to_text(kernel) == text
    store = kernel.body[0]
    assert isinstance(store, n.Assign)
    assert isinstance(store.place, n.Element)
    assert store.place.checks[0].expected


OPAQUE = """
struct matrix.first {
  words: vec4<u32>
}

struct matrix.second {
  left: vec2<u32>
  right: vec2<u32>
}

struct matrix.sums {
  left: vec4<f32>
  right: vec4<f32>
}

kernel k block(32, 1, 1) {
  buffer x: f16
  shared tile: f16[256]
  shared out: f32[256]

  var a: matrix.first
  a = subgroup opaque_rows tile[0], 16
  var b: matrix.second
  b = subgroup opaque_fill 1.0:f16
  var c: matrix.sums
  c = subgroup opaque_multiply a, b, c
  opaque rows out[0], 16, c
}
"""


def test_opaque_matrices_as_text():
    kernel = from_text(OPAQUE)
    verify(kernel)
    assert to_text(kernel) == OPAQUE.lstrip()


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("tile[0], 16", "x[0], 16", "takes shared memory, without checks"),
        ("tile[0], 16", "tile[0; 0 in 9], 16", "takes shared memory, without checks"),
        ("tile[0], 16", "out[0], 16", "takes elements of f16, or of 16 bytes"),
        ("tile[0], 16", "tile[0], 16:i64", "the stride"),
        ("tile[0], 16", "1.0:f16, 16", "the load of its first element"),
        ("fill 1.0:f16", "fill 1.0", "the operand of subgroup opaque_fill"),
        ("multiply a, b, c", "multiply b, a, c", "an operand of subgroup opaque_multiply"),
        ("multiply a, b, c", "multiply a, b", "operand"),
        ("out[0], 16, c", "out[0], 16, 1.0", "a matrix is stored, not f32"),
        ("out[0], 16, c", "tile[0], 16, c", "takes elements of f32, or of 16 bytes"),
        ("var b: matrix.second", "var b: f16", "gives a matrix, but 'b' is f16"),
    ],
)
def test_what_the_verifier_refuses_of_opaque_matrices(old, new, wanted):
    assert old in OPAQUE
    with pytest.raises(CompileError, match=wanted):
        verify(from_text(OPAQUE.replace(old, new)))
