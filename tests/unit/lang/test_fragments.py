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
        ("later tile[lane]", "later tile[lane; lane in 32]", "without checks"),
    ],
)
def test_what_the_verifier_refuses(old, new, wanted):
    text = to_text(_kernel())
    assert old in text
    with pytest.raises(CompileError, match=wanted):
        verify(from_text(text.replace(old, new)))


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
