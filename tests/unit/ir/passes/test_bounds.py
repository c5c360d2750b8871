"""Which checks go, which must stay, and that no kernel changes by it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from tests.support.ir_programs import outputs, random_kernel
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.bounds import drop_provable_checks
from treadle.ir.passes.fold import fold, specialize
from treadle.ir.passes.inline import inline
from treadle.ir.printer import to_text
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

HEAD = """
kernel k block(16, 16) {
  buffer x: f32
  buffer y: f32
  buffer z: i32
  parameter x.size: i32 from ("size", "x")
  parameter y.size: i32 from ("size", "y")
  parameter h: i32 from ("shape", "y", 0)
  parameter w: i32 from ("shape", "y", 1)
  parameter n: i32 from ("value", "n")
  parameter m: u32 from ("value", "m")
  parameter long: i64 from ("value", "long")
  shared tile: f32[256]
  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  var j: i32 = (block_idx.y * block_dim.y) + thread_idx.y
"""


def checks_left(body: str, head: str = HEAD) -> list[str]:
    """The checks that are left, as text."""
    kernel = from_text(head + body + "\n}")
    after = drop_provable_checks(kernel)
    verify(after)
    text = to_text(after)
    insides = [part.split("]")[0] for part in text.split("[")[1:]]
    return [inside.split("; ")[1] for inside in insides if "; " in inside]


PROVEN = {
    "guard": "if (i < y.size) {\ny[i; i in y.size] = 1.0\n}",
    "guard, the other way around": "if (y.size > i) {\ny[i; i in y.size] = 1.0\n}",
    "early return": "if (i >= y.size) {\nreturn\n}\ny[i; i in y.size] = 1.0",
    "negated guard": "if (!(i >= y.size)) {\ny[i; i in y.size] = 1.0\n}",
    "both axes": "if ((i < h) && (j < w)) {\ny[(i * w) + j; i in h, j in w] = 1.0\n}",
    "either axis outside": (
        "if ((i >= h) || (j >= w)) {\nreturn\n}\ny[(i * w) + j; i in h, j in w] = 1.0"
    ),
    "interior": (
        "if ((((i > 0) && (j > 0)) && (i < (h - 1))) && (j < (w - 1))) {\n"
        "y[0; i in h, j in w] = y[0; (i - 1) in h, (j + 1) in w]\n"
        "y[0; i in h, j in w] = y[0; (i + 1) in h, (j - 1) in w]\n}"
    ),
    "a condition in a variable": (
        "var inside: bool = (i < h) && (j < w)\nif (inside) {\ny[0; i in h, j in w] = 1.0\n}"
    ),
    "a lazy condition": "if ((i < y.size) && (y[i; i in y.size] > 0.0)) {\nx[0] = 1.0\n}",
    "a copy": "var c: i32 = i\nif (c < y.size) {\nvar d: i32 = c\ny[i; d in y.size] = 1.0\n}",
    "threads of the block": "tile[0; thread_idx.y in 16, thread_idx.x in 16] = 1.0",
    "flat": "tile[0; ((thread_idx.y * 16) + thread_idx.x) in 256] = 1.0",
    "loop over a tile": (
        "for k: i32 in range(0, 16) {\nx[0] = tile[0; thread_idx.y in 16, k in 16]\n}"
    ),
    "loop over an array": "for k: i32 in range(0, y.size) {\ny[k; k in y.size] = 1.0\n}",
    "loop downwards": "for k: i32 in range(y.size - 1, -1, -1) {\ny[k; k in y.size] = 1.0\n}",
    "steps that stay aligned": (
        "for k: i32 in range(0, 256, 16) {\ntile[0; (k + 15) in 256] = 1.0\n}"
    ),
    "while": (
        "var k: i32\nwhile (k < y.size) {\ny[k; k in y.size] = 1.0\n} update {\nk = k + 1\n}"
    ),
    "while, counted in the body": (
        "var k: i32\nwhile (k < y.size) {\ny[k; k in y.size] = 1.0\nk = k + 1\n}"
    ),
    "strided copy into a tile": (
        "for k: i32 in range(thread_idx.x, 324, 256) {\n"
        "x[0] = tile[0; (k // 18) in 18, (k %% 18) in 18]\n}"
    ),
    "C's division": (
        "for k: i32 in range(thread_idx.x, 324, 256) {\n"
        "x[0] = tile[0; (k / 18) in 18, (k % 18) in 18]\n}"
    ),
    "mask": "tile[0; (z[0] & 255) in 256] = 1.0",
    "remainder": "tile[0; (z[0] %% 256) in 256] = 1.0",
    "remainder of unsigned": "tile[0; i32(m % 256:u32) in 256] = 1.0",
    "a byte": "tile[0; i32(u8(z[0])) in 256] = 1.0",
    "wrapped around": "if (i < h) {\ny[0; ((i + 1) %% h) in h, ((i - 1) %% h) in h] = 1.0\n}",
    "clamped": "if (i < h) {\ny[0; max(i - 1, 0) in h, min(i + 1, h - 1) in h] = 1.0\n}",
    "clamped both ways": "if (h > 0) {\ny[0; min(max(z[0], 0), h - 1) in h] = 1.0\n}",
    "clamped by select": (
        "if (i < h) {\ny[0; select(i > 0, i - 1, 0) in h] = 1.0\n}"
    ),
    "clamped by if": (
        "if (i < h) {\nvar c: i32 = i - 1\nif (c < 0) {\nc = 0\n}\ny[0; c in h] = 1.0\n}"
    ),
    "not equal to the last": (
        "if (i < h) {\nif (i != 0) {\ny[0; (i - 1) in h] = 1.0\n}\n}"
    ),
    "equal to one inside": (
        "var e: i32 = z[0]\nif (e == thread_idx.x) {\ntile[0; e in 256] = 1.0\n}"
    ),
    "transitive": "if (i < n) {\nif (n <= y.size) {\ny[i; i in y.size] = 1.0\n}\n}",
    "64-bit extents": (
        "if (i64(i) < long) {\ny[0; i64(i) in long] = 1.0\n}"
    ),
    "halves": "if (i < y.size) {\ny[0; (i // 2) in y.size, (i >> 1) in y.size] = 1.0\n}",
    "after a loop that only counts down": (
        "var s: i32 = 128\nwhile (s > 0) {\nif (thread_idx.x < s) {\n"
        "tile[0; thread_idx.x in 256, (thread_idx.x + s) in 256] = 1.0\n}\n"
        "} update {\ns = s // 2\n}"
    ),
    "powers": (
        "for d: i32 in range(7, -1, -1) {\nvar s: i32 = 1 << d\nif (thread_idx.x >= s) {\n"
        "tile[0; (thread_idx.x - s) in 256] = 1.0\n}\n}"
    ),
    "behind a break": (
        "for k: i32 in range(0, n) {\nif (k >= y.size) {\nbreak\n}\ny[k; k in y.size] = 1.0\n}"
    ),
    "behind a continue": (
        "for k: i32 in range(0, n) {\nif (k >= y.size) {\ncontinue\n}\ny[k; k in y.size] = 1.0\n}"
    ),
    "a later check of the same": (
        "if (i < y.size) {\nx[0] = y[i; i in y.size]\nbarrier block\ny[i; i in y.size] = x[0]\n}"
    ),
}  # fmt: skip

KEPT = {
    "no guard": ("y[i; i in y.size] = 1.0", 1),
    "another array": ("if (i < y.size) {\nx[i; i in x.size] = 1.0\n}", 1),
    "other branch": ("if (i < y.size) {\n} else {\ny[i; i in y.size] = 1.0\n}", 1),
    "after the guard": ("if (i < y.size) {\n}\ny[i; i in y.size] = 1.0", 1),
    "a sign unknown": ("if (n < y.size) {\ny[n; n in y.size] = 1.0\n}", 1),
    "one too far": ("if (i < y.size) {\ny[0; (i + 1) in y.size, (i - 1) in y.size] = 1.0\n}", 2),
    "off by one": ("if (i <= y.size) {\ny[i; i in y.size] = 1.0\n}", 1),
    "or": ("if ((i < y.size) || (j < 3)) {\ny[i; i in y.size] = 1.0\n}", 1),
    "not and": ("if (!((i >= y.size) && (j < 3))) {\ny[i; i in y.size] = 1.0\n}", 1),
    "right of or": ("if ((i < y.size) || (y[i; i in y.size] > 0.0)) {\nx[0] = 1.0\n}", 1),
    "both values of a select": (
        "x[0] = select(i < y.size, y[i; i in y.size], 0.0)", 1),
    "assigned since": (
        "var k: i32 = i\nif (k < y.size) {\nk = k + 1\ny[k; k in y.size] = 1.0\n}", 1),
    "assigned in a branch": (
        "var k: i32 = i\nif (k < y.size) {\nif (j > 3) {\nk = n\n}\ny[k; k in y.size] = 1.0\n}", 1),
    "assigned in a loop": (
        "var k: i32 = i\nif (k < y.size) {\nfor t: i32 in range(0, 3) {\n"
        "y[k; k in y.size] = 1.0\nk = k + 1\n}\n}", 1),
    "assigned behind a break": (
        "var k: i32\nwhile (true) {\nk = n\nif (j > 3) {\nbreak\n}\nk = 0\n}\n"
        "tile[k; k in 256] = 1.0", 1),
    "assigned before a continue": (
        "var k: i32\nfor t: i32 in range(0, n) {\ntile[k; k in 256] = 1.0\nif (t > 3) {\nk = n\n"
        "continue\n}\nk = 0\n}", 1),
    "given by an atomic": (
        "var k: i32\nk = atomic add z[0], 1\ntile[k; k in 256] = 1.0", 1),
    "given by another thread": (
        "var k: i32\nk = subgroup shuffle k, 1\ntile[k; k in 256] = 1.0", 1),
    "a condition of before": (
        "var k: i32 = i\nvar inside: bool = k < y.size\nk = k + 1\nif (inside) {\n"
        "y[k; k in y.size] = 1.0\n}", 1),
    "loaded anew": ("if (z[0] == 3) {\ntile[0; z[0] in 256] = 1.0\n}", 1),
    "a product that wraps": ("tile[0; ((i * i) + 0) in 256] = 1.0", 1),
    "a sum that wraps": ("if ((i + n) < y.size) {\ny[0; (i + n) in y.size] = 1.0\n}", 1),
    "a sum that wraps to below": ("if (n >= 0) {\ny[0; (n + 1) in 2147483647] = 1.0\n}", 1),
    "a stride that may wrap": (
        "var k: i32 = i\nwhile (k < y.size) {\ny[k; k in y.size] = 1.0\n} update {\n"
        "k = k + (grid_dim.x * block_dim.x)\n}", 1),
    "a remainder by what may be 0": ("y[0; (i %% h) in h] = 1.0", 1),
    "C's remainder of what may be negative": ("tile[0; (n % 256) in 256] = 1.0", 1),
    "C's division of what may be negative": ("tile[0; ((n / 256) + 1) in 8388609] = 1.0", 1),
    "a cast that wraps": ("tile[0; i32(i8(z[0])) in 256] = 1.0", 1),
    "a cast to 32 bits": ("if (long < 256:i64) {\ntile[0; i32(long) in 256] = 1.0\n}", 1),
    "clamped to an empty array": ("y[0; min(max(z[0], 0), h - 1) in h] = 1.0", 1),
    "min and max in different branches": (
        "var k: i32 = n\nif (n > 3) {\nk = max(n, 0)\n}\nx[0; k in 256] = 1.0", 1),
    "a loop that grows": (
        "var s: i32 = 1\nwhile (s < 256) {\ntile[s; s in 256, (s * 2) in 256] = 1.0\n} update {\n"
        "s = s * 2\n}", 1),
    "a loop that sinks below": (
        "var s: i32 = 200\nwhile (s > -5) {\ntile[s; s in 256] = 1.0\n} update {\ns = s - 7\n}", 1),
    "after a loop": (
        "var k: i32\nwhile (k < 256) {\n} update {\nk = k + 1\n}\ntile[k; k in 256] = 1.0", 1),
    "outer loop, inner change": (
        "var k: i32\nfor a: i32 in range(0, n) {\ntile[k; k in 256] = 1.0\n"
        "for b: i32 in range(0, n) {\nk = k + 1\n}\n}", 1),
    "only one of two axes": ("if (i < h) {\ny[0; i in h, j in w] = 1.0\n}", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVEN)
def test_checks_that_go(name: str) -> None:
    assert checks_left(PROVEN[name]) == []


@pytest.mark.parametrize("name", KEPT)
def test_checks_that_stay(name: str) -> None:
    body, count = KEPT[name]
    kernel = from_text(HEAD + body + "\n}")
    after = drop_provable_checks(kernel)
    assert sum(isinstance(node, n.Check) for node in walk(after.body)) == count


def test_the_block_must_be_known() -> None:
    body = "tile[0; thread_idx.x in 256] = 1.0"
    assert checks_left(body) == []
    assert len(checks_left(body, HEAD.replace("block(16, 16)", "block(300)"))) == 1
    assert len(checks_left(body, HEAD.replace(" block(16, 16)", ""))) == 1


MATMUL = """
kernel matmul {
  buffer a: f32
  buffer b: f32
  buffer c: f32
  parameter a.shape.0: i32 from ("shape", "a", 0)
  parameter a.shape.1: i32 from ("shape", "a", 1)
  parameter c.shape.1: i32 from ("shape", "c", 1)
  shared ta: f32[256]
  shared tb: f32[256]
  var tx: i32 = thread_idx.x
  var ty: i32 = thread_idx.y
  var row: i32 = (block_idx.y * block_dim.y) + ty
  var col: i32 = (block_idx.x * block_dim.x) + tx
  var sum: f32
  for tile: i32 in range(0, (a.shape.1 + 15) // 16) {
    var k: i32 = (tile * 16) + tx
    ta[(ty * 16) + tx; ty in 16, tx in 16] = 0.0
    if ((row < a.shape.0) && (k < a.shape.1)) {
      var from_a: f32 = a[(row * a.shape.1) + k; row in a.shape.0, k in a.shape.1]
      ta[(ty * 16) + tx; ty in 16, tx in 16] = from_a
    }
    k = (tile * 16) + ty
    tb[(ty * 16) + tx; ty in 16, tx in 16] = 0.0
    if ((k < a.shape.1) && (col < c.shape.1)) {
      var from_b: f32 = b[(k * c.shape.1) + col; k in a.shape.1, col in c.shape.1]
      tb[(ty * 16) + tx; ty in 16, tx in 16] = from_b
    }
    barrier block
    for inner: i32 in range(0, 16) {
      var left: f32 = ta[(ty * 16) + inner; ty in 16, inner in 16]
      sum = sum + (left * tb[(inner * 16) + tx; inner in 16, tx in 16])
    }
    barrier block
  }
  if ((row < a.shape.0) && (col < c.shape.1)) {
    c[(row * c.shape.1) + col; row in a.shape.0, col in c.shape.1] = sum
  }
}
"""


def test_tiled_matmul_has_no_check_left() -> None:
    kernel = fold(specialize(from_text(MATMUL), Dim3(16, 16)))
    after = drop_provable_checks(kernel)
    assert [node for node in walk(after.body) if isinstance(node, n.Check)] == []
    a = np.random.default_rng(1).integers(-3, 4, (5, 18)).astype(np.float32)
    b = np.random.default_rng(2).integers(-3, 4, (18, 3)).astype(np.float32)
    c = np.zeros((5, 3), dtype=np.float32)
    run(after, 1, {"a": a, "b": b, "c": c})
    assert (c == a @ b).all()


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels_give_the_same(seed: int) -> None:
    kernel = random_kernel(seed)
    expected = outputs(kernel)
    for before in (kernel, fold(inline(specialize(kernel, Dim3(2))))):
        after = drop_provable_checks(before)
        verify(after)
        assert outputs(after) == expected


def test_random_kernels_lose_some_checks() -> None:
    def count(kernel: n.Kernel) -> int:
        return sum(isinstance(node, n.Check) for node in walk(kernel.body))

    kernels = [random_kernel(seed) for seed in range(40)]
    before = sum(map(count, kernels))
    assert 0 < sum(count(drop_provable_checks(kernel)) for kernel in kernels) < before
