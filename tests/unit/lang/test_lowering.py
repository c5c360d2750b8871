"""What kernels become in the IR: small texts."""

from __future__ import annotations

import pytest

import treadle.lang as td
from tests.support.kernels import array, body_text, lower, number
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.printer import to_text
from treadle.ir.signature import ArrayArgument, Signature, ValueArgument

f32s, i32s = array(), array(t.I32)


def body(text: str, *arguments: object, **options: object) -> str:
    """The lowered body of a kernel `x, y, …` of float32 arrays, unless said otherwise."""
    lines = "\n".join("    " + line for line in text.strip().splitlines())
    names = "xyzuvw"[: len(arguments) or 2]
    kernel = td.kernel(source=f"def k({', '.join(names)}):\n{lines}\n", **options)
    return body_text(lower(kernel, *(arguments or (f32s, f32s))))


def test_the_whole_text_of_a_kernel() -> None:
    @td.kernel
    def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        if i < y.size:
            y[i] = a * x[i] + y[i]

    assert (
        to_text(lower(saxpy, number(), f32s, f32s))
        == """\
kernel saxpy {
  buffer x: f32
  buffer y: f32
  parameter a: f32 from ("value", "a")
  parameter x.size: i32 from ("size", "x")
  parameter y.size: i32 from ("size", "y")

  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  if (i < y.size) {
    y[i; i in y.size] = (a * x[i; i in x.size]) + y[i; i in y.size]
  }
}
"""
    )


def test_unchecked_kernels_have_no_checks() -> None:
    assert body("x[0] = y[1]", checked=False) == "x[0] = y[1]"


def test_grids_have_the_last_axis_fastest() -> None:
    assert body("i, j = td.grid(2)") == (
        "var i: i32 = (block_idx.y * block_dim.y) + thread_idx.y\n"
        "var j: i32 = (block_idx.x * block_dim.x) + thread_idx.x"
    )


def test_an_array_of_two_dimensions() -> None:
    assert body("x[td.lane(), 1] = y[2, 3]", array(ndim=2), array(ndim=2)) == (
        "x[(lane * x.shape.1) + 1; lane in x.shape.0, 1 in x.shape.1] = "
        "y[(2 * y.shape.1) + 3; 2 in y.shape.0, 3 in y.shape.1]"
    )


def test_strides_and_offsets() -> None:
    view = array(ndim=2, contiguous=False, has_offset=True)
    assert body("y[0] = x[1, 2]", view, f32s, checked=False) == (
        "y[0] = x[(x.offset + x.stride.0) + (2 * x.stride.1)]"
    )
    assert body("y[0] = x[3]", array(has_offset=True), f32s, checked=False) == (
        "y[0] = x[x.offset + 3]"
    )


def test_big_arrays_make_indices_64_bits_wide() -> None:
    assert body("i = td.grid(1)\nx[i] = y[i]", array(big=True), f32s) == (
        "var i: i64 = (i64(block_idx.x) * i64(block_dim.x)) + i64(thread_idx.x)\n"
        "x[i; i in x.size] = y[i32(i); i in i64(y.size)]"
    )


def test_a_launch_by_threads_returns_outside() -> None:
    kernel = td.kernel(source="def k(x):\n    i, j = td.grid(2)\n")
    lowered = lower(kernel, f32s, threads=2)
    assert [p.name for p in lowered.parameters] == ["threads.0", "threads.1"]
    assert body_text(lowered).splitlines()[1] == "  return"


def test_an_index_that_costs_something_is_computed_once() -> None:
    assert body("x[i32s[0] * 2] = 1.0".replace("i32s", "y"), f32s, i32s) == (
        "var i.0: i32 = y[0; 0 in y.size] * 2\nx[i.0; i.0 in x.size] = 1.0"
    )


def test_a_store_converts_as_numpy_does() -> None:
    assert body("x[0] = y[0]", array(t.U32), array(t.I8), checked=False) == "x[0] = u32(y[0])"
    assert body("x[0] = y[0]", array(t.F16), f32s, checked=False) == "x[0] = f16(y[0])"
    assert body("td.atomic_add(x, 0, y[0])", array(t.U32), i32s, checked=False) == (
        "atomic add x[0], u32(y[0])"
    )


def test_struct_fields_are_loaded_alone() -> None:
    pair = t.Struct("Pair", (t.Field("a", t.F32), t.Field("v", t.Vector(t.F32, 3))))
    assert body("y[0] = x[1].v.z\nx[1].v.x += 2.0", array(pair), f32s, checked=False) == (
        "y[0] = x[1]->v->z\nx[1]->v->x = x[1]->v->x + 2.0"
    )


def test_effects_keep_their_order() -> None:
    assert body("y[0] = x[0] + td.atomic_add(x, 0, 1.0) * x[0]", checked=False) == (
        "var t.0: f32 = x[0]\n"
        "var old.0: f32\n"
        "old.0 = atomic add x[0], 1.0\n"
        "y[0] = t.0 + (old.0 * x[0])"
    )


def test_an_effect_on_the_right_of_and_runs_only_if_needed() -> None:
    text = body(
        "if x[0] > 0 and td.atomic_add(y, 0, 1) == 0:\n    x[0] = 1.0", f32s, i32s, checked=False
    )
    assert text == (
        "var c.0: bool\n"
        "c.0 = x[0] > 0.0\n"
        "if (c.0) {\n"
        "  var old.0: i32\n"
        "  old.0 = atomic add y[0], 1\n"
        "  c.0 = old.0 == 0\n"
        "}\n"
        "if (c.0) {\n"
        "  x[0] = 1.0\n"
        "}"
    )


def test_bounds_tests_stay_expressions() -> None:
    text = body("i = td.grid(1)\nif i > 0 and x[i - 1] > 0 and y[i * 2 + 1] > 0:\n    x[i] = 0")
    assert text.count("if") == 1


def test_a_condition_with_effects_is_tested_inside_the_loop() -> None:
    assert body("while td.atomic_exchange(x, 0, 1) != 0:\n    pass", i32s, f32s, checked=False) == (
        "while (true) {\n"
        "  var old.0: i32\n"
        "  old.0 = atomic exchange x[0], 1\n"
        "  if (!(old.0 != 0)) {\n"
        "    break\n"
        "  }\n"
        "}"
    )


def test_cheap_choices_are_selected_and_loads_are_not() -> None:
    assert "select" in body("i = td.grid(1)\nj = i if i > 0 else 0").lower() or "?" in body(
        "i = td.grid(1)\nj = i if i > 0 else 0"
    )
    assert "if (" in body("i = td.grid(1)\ny[i] = x[i] if i > 0 else 0")


def test_swaps_take_every_value_first() -> None:
    assert body("a, b = 1, 2\na, b = b, a") == (
        "var a: i32 = 1\nvar b: i32 = 2\nvar t.0: i32 = b\nvar t.0.1: i32 = a\na = t.0\nb = t.0.1"
    )


def test_a_variable_lives_where_all_its_uses_are() -> None:
    assert body("if x[0] > 0:\n    s = 1.0\nelse:\n    s = 2.0\ny[0] = s", checked=False) == (
        "var s: f32\nif (x[0] > 0.0) {\n  s = 1.0\n} else {\n  s = 2.0\n}\ny[0] = s"
    )


def test_a_variable_keeps_its_value_from_turn_to_turn() -> None:
    assert body(
        "for k in range(3):\n    if k == 0:\n        s = 1.0\n    y[k] = s", checked=False
    ) == (
        "var s: f32\nfor k: i32 in range(0, 3) {\n  if (k == 0) {\n    s = 1.0\n  }\n  y[k] = s\n}"
    )


def test_loop_variables() -> None:
    assert body("for k in range(3):\n    pass\nfor k in range(9, 0, -2):\n    pass") == (
        "for k: i32 in range(0, 3) {\n}\nfor k.1: i32 in range(9, 0, -2) {\n}"
    )
    after = body("for k in range(3):\n    k = k * 2\ny[0] = k", checked=False)
    assert after == (
        "var k.1: i32\nfor k: i32 in range(0, 3) {\n  k.1 = k\n  k.1 = k.1 * 2\n}\ny[0] = f32(k.1)"
    )


def test_unrolled_loops() -> None:
    assert body("for k in td.static_range(2):\n    y[k] = k * 0.5", checked=False) == (
        "y[0] = 0.0\ny[1] = 0.5"
    )
    assert body("for w, k in ((0.5, 1), (2.0, 3)):\n    y[k] = w * x[k]", checked=False) == (
        "y[1] = 0.5 * x[1]\ny[3] = 2.0 * x[3]"
    )


def test_shared_and_local_memory() -> None:
    lowered = lower(
        td.kernel(
            source=(
                "def k(x):\n"
                "    n = 16\n"
                "    tile = td.shared((n, 17), td.f32)\n"
                "    rest = td.shared(None, td.i32)\n"
                "    mine = td.local(4, td.vec2[td.f32])\n"
                "    tile[1, 2] = mine[0].x\n"
                "    rest[rest.size - 1] = len(tile)\n"
            )
        ),
        f32s,
    )
    assert [(m.name, m.space, m.length) for m in lowered.memories] == [
        ("tile", "shared", 272),
        ("rest", "shared", None),
        ("mine", "local", 4),
    ]
    assert [(p.name, p.origin) for p in lowered.parameters] == [("rest.size", ("length", "rest"))]


@td.func
def smooth(a, i):
    return (a[i] + a[i + 1]) / 2


@td.func
def both(x):
    return x, td.i32(x)


@td.func
def widened(x):
    if x > 0:
        return 0
    return x


def test_functions_with_arrays() -> None:
    lowered = lower(
        td.kernel(source="def k(x, y):\n    y[0] = smooth(x, 3)\n    y[1] = smooth(x, 4)\n"),
        f32s,
        f32s,
    )
    (function,) = lowered.functions
    assert [p.name for p in function.parameters] == ["a", "a.size", "i"]
    assert isinstance(function.parameters[0], n.Buffer)


def test_functions_for_each_type_of_argument() -> None:
    lowered = lower(
        td.kernel(
            source="def k(x, y):\n    y[0] = widened(x[0])\n    y[1] = widened(1) + widened(2)\n"
        ),
        f32s,
        f32s,
    )
    assert [(f.name, str(f.result)) for f in lowered.functions] == [
        ("widened", "f32"),
        ("widened.1", "i32"),
    ]


def test_functions_that_return_tuples() -> None:
    text = body("a, b = both(x[0])\ny[b] = a", checked=False)
    assert (
        text
        == (
            "var result.0: tuple_f32_i32 = @both(x[0])\n"
            "var a: f32 = result.0->item0\n"
            "var b: i32 = result.0->item1\n"
            "y[b] = a"
        )
        or "both(x[0])" in text
    )


def test_struct_arguments_come_leaf_by_leaf() -> None:
    pair = t.Struct("Pair", (t.Field("a", t.F32), t.Field("v", t.Vector(t.I32, 2))))
    kernel = td.kernel(source="def k(p, x):\n    x[0] = p.a + p.v.y\n")
    lowered = kernel.lower(Signature((ValueArgument(pair), ArrayArgument(t.F32, 1)))).kernel
    assert [p.origin for p in lowered.parameters] == [
        ("leaf", "p", "a"), ("leaf", "p", "v", "x"), ("leaf", "p", "v", "y"), ("size", "x"),
    ]  # fmt: skip


def test_print_and_assert() -> None:
    assert body(
        'print("x is", x[0], f"({td.lane()})")\nassert x[0] > 0, "positive"', checked=False
    ) == ('print "x is ", x[0], " (", lane, ")"\nassert x[0] > 0.0, "positive"')


def test_subgroups() -> None:
    assert body("y[0] = td.subgroup_sum(x[0]) + td.shuffle_down(x[1], 1)", checked=False) == (
        "var sum.0: f32\n"
        "sum.0 = subgroup sum x[0]\n"
        "var shuffle_down.0: f32\n"
        "shuffle_down.0 = subgroup shuffle_down x[1], 1\n"
        "y[0] = sum.0 + shuffle_down.0"
    )


def test_fast_mathematics_takes_the_targets_own() -> None:
    assert body("x[0] = td.exp(y[0]) ** 0.5", checked=False, fastmath=True) == (
        "x[0] = fast_pow(fast_exp(y[0]), 0.5)"
    )
    assert body("x[0] = td.exp(y[0])", checked=False) == "x[0] = @exp(y[0])"


def test_the_wrong_number_of_arguments() -> None:
    with pytest.raises(CompileError, match="takes 1 arguments, not 2"):
        td.kernel(source="def k(x): pass").lower(Signature((f32s, f32s)))
