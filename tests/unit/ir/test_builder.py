"""What the builder makes is well typed and reads as intended."""

from __future__ import annotations

from treadle.ir import nodes as n
from treadle.ir.builder import (
    Builder,
    add,
    as_expression,
    binary,
    both,
    builtin,
    cast,
    check,
    constant,
    element,
    equal,
    extract,
    intrinsic,
    item,
    less,
    load,
    member,
    mul,
    negate,
    select,
    sub,
)  # fmt: skip
from treadle.ir.printer import to_text
from treadle.ir.types import BF16, F32, I16, I32, U8, Array, Field, Struct, Vector
from treadle.ir.verify import verify

PAIR = Struct("Pair", (Field("v", Vector(F32, 2)), Field("items", Array(I16, 3))))

EXPECTED = """\
struct Pair {
  v: vec2<f32>
  items: array<i16, 3>
}

function half(v: f32) -> f32 {
  return v * 0.5
}

kernel k block(8, 2, 1) {
  buffer pairs: Pair
  parameter n: i32 from ("value", "n")
  shared tile: f32[16]

  var t: i32 = thread_idx.x
  var total: vec2<f32>
  for j: i32 in range(0, n, 2) unroll {
    total = total + vec2<f32>{1.0, 1.0}
    if ((t < j) && !(j == 3)) {
      tile[t; t in 16] = @half(fma(total->x, 2.0, 1.0))
    } else {
      pairs[j]->items[1] = i16(t - 1)
    }
  }
  while (tile[0] > 0.0) {
    tile[0] = select(t < 0, pairs[0]->v->y, 0.0)
  } update {
    fence block
  }
}
"""


def test_a_kernel_with_everything() -> None:
    h = Builder("half")
    v = h.argument("v", F32)
    h.emit(n.Return(mul(v, 0.5)))
    b = Builder("k", block=(8, 2))
    b.functions.append(h.function(F32))
    pairs, size = b.buffer("pairs", PAIR), b.parameter("n", I32)
    tile = b.memory("shared", "tile", F32, 16)
    t = b.let("t", builtin("thread_idx"))
    total = b.variable("total", Vector(F32, 2))
    with b.loop("j", 0, size, 2, unroll=True) as j:
        b.assign(total, add(total, 1))
        with b.when(both(less(t, j), negate(equal(j, 3)))):
            value = intrinsic("fma", extract(total, "x"), 2, 1)
            b.store(tile, t, n.Call("half", (value,), F32), [check(t, 16)])
        with b.otherwise():
            b.assign(item(member(element(pairs, j), "items"), 1), cast(sub(t, 1), I16))
    with b.repeat(binary("gt", load(tile), 0), [n.Fence("block")]):
        first = load(member(member(element(pairs, 0), "v"), "y"))
        b.store(tile, 0, select(less(t, 0), first, 0))
    kernel = b.kernel()
    assert to_text(kernel) == EXPECTED
    verify(kernel)


def test_numbers_are_fitted_to_their_type() -> None:
    assert constant(257, U8).value == 1
    assert constant(0.1, F32).value == 0.10000000149011612
    assert constant(1, BF16).value == 1.0
    assert as_expression(True) == n.TRUE
    assert sub(1, n.Variable("x", F32)).left == n.Constant(1.0, F32)
