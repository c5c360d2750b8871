"""The docstrings of functions that only kernels can call, with an example of each.

`help(td.atomic_add)` and the type stubs for editors show this text.
"""

from __future__ import annotations

_WHERE = {
    "atomic": "`array` is a parameter of the kernel or shared memory; `index` is an integer, or a "
    "tuple\nwith one for each axis.",
    "barrier": "It takes no arguments.",
    "loop": "The bounds are constants.",
    "math": "Its arguments are numbers.",
    "fragment": '`rows`, `columns`, `dtype` and `use` ("a", "b" or "accumulator") are '
    "constants.\nThe guide to kernels has the methods of fragments.",
    "memory": "`shape` is an integer or a tuple of constants, `dtype` a dtype, a vector type or a "
    "struct.",
    "index": "`axes` is 1, 2 or 3.",
    "subgroup": "All threads of the subgroup take part.",
    "value": "Its arguments are values of the kernel.",
}

# The dtype of the arrays, the elements of x, the body of each thread, and the resulting elements
# of y.
_EXAMPLES: dict[str, tuple[str, str, str, str]] = {
    "atomic_add": ("i32", "[1, 2, 3]", "td.atomic_add(y, 0, x[i])", "[6, 0, 0]"),
    "atomic_and": ("i32", "[6, 3, 7]", "td.atomic_and(x, 0, x[2])\ny[0] = x[0]", "[6, 0, 0]"),
    "atomic_cas": ("i32", "[7, 7, 7]", "td.atomic_cas(y, i, 0, x[i])", "[7, 7, 7]"),
    "atomic_exchange": ("i32", "[1, 2, 3]", "td.atomic_exchange(y, i, x[i])", "[1, 2, 3]"),
    "atomic_max": ("i32", "[1, 3, 2]", "td.atomic_max(y, 0, x[i])", "[3, 0, 0]"),
    "atomic_min": ("i32", "[1, -3, 2]", "td.atomic_min(y, 0, x[i])", "[-3, 0, 0]"),
    "atomic_or": ("i32", "[1, 4, 2]", "td.atomic_or(y, 0, x[i])", "[7, 0, 0]"),
    "atomic_sub": ("i32", "[1, 2, 3]", "td.atomic_sub(y, 0, x[i])", "[-6, 0, 0]"),
    "atomic_xor": ("i32", "[1, 5, 2]", "td.atomic_xor(y, 0, x[i])", "[6, 0, 0]"),
    "ballot": ("i32", "[1, 0, 1]", "y[i] = td.i32(td.ballot(x[i] > 0))", "[5, 5, 5]"),
    "bitcast": ("f32", "[1.0, 2.0]", "y[i] = td.f32(td.bitcast(x[i], td.i32) >> 23)",
                "[127.0, 128.0]"),
    "clz": ("i32", "[1, 16]", "y[i] = td.clz(x[i])", "[31, 27]"),
    "cross": ("f32", "[1.0, 2.0, 3.0]",
              "v = td.vec3[td.f32](x[0], x[1], x[2])\n"
              "y[i] = td.cross(v, td.vec3[td.f32](0, 0, 1))[i]", "[2.0, -1.0, 0.0]"),
    "ctz": ("i32", "[1, 16]", "y[i] = td.ctz(x[i])", "[0, 4]"),
    "dot4_i8": ("i32", "[0x01020304]", "y[i] = td.dot4_i8(x[i], -1, 100)", "[90]"),
    "dot4_u8": ("i32", "[0x01020304]", "y[i] = td.dot4_u8(x[i], -1, 100)", "[2650]"),
    "dot4_u8i8": ("i32", "[-1]", "y[i] = td.dot4_u8i8(x[i], -1, 100)", "[-920]"),
    "fma": ("f32", "[1.0, 2.0]", "y[i] = td.fma(x[i], 2.0, 0.5)", "[2.5, 4.5]"),
    "fragment": ("f32", "[2.0] * 32",
                 'a = td.fragment(16, 8, td.f32, use="a")\n'
                 'b = td.fragment(8, 8, td.f32, use="b")\n'
                 'sums = td.fragment(16, 8, td.f32, use="accumulator")\n'
                 "a.fill(3)\nb.fill(2)\nsums.multiply_add(a, b)\ny[i] = x[i] * sums[0]",
                 str([96.0] * 32)),
    "grid": ("i32", "[0, 0, 0]", "y[i] = i", "[0, 1, 2]"),
    "grid_size": ("i32", "[0, 0, 0]", "y[i] = td.grid_size(1)", "[3, 3, 3]"),
    "lane": ("i32", "[0, 0, 0]", "y[i] = td.lane()", "[0, 1, 2]"),
    "length": ("f32", "[3.0, 4.0]", "y[i] = td.length(td.vec2[td.f32](x[0], x[1]))", "[5.0, 5.0]"),
    "local": ("i32", "[5, 6]", "a = td.local(2, td.i32)\na[1] = x[i]\ny[i] = a[1] + a[1]",
              "[10, 12]"),
    "mul_high": ("i32", "[2, 1 << 30]", "y[i] = td.mul_high(x[i], 1 << 30)", "[0, 268435456]"),
    "normalize": ("f32", "[0.0, 4.0]",
                  "y[i] = td.normalize(td.vec2[td.f32](x[0], x[1]))[i]", "[0.0, 1.0]"),
    "popcount": ("i32", "[7, 8]", "y[i] = td.popcount(x[i])", "[3, 1]"),
    "rand_normal": ("f32", "[0.0]", "y[i] = td.f32(td.rand_normal(1, i) == td.rand_normal(1, i))",
                    "[1.0]"),
    "rand_uniform": ("f32", "[0.0]", "y[i] = td.f32(td.rand_uniform(1, i) < 1.0)", "[1.0]"),
    "reverse_bits": ("i32", "[2, 4]", "y[i] = td.reverse_bits(x[i])", "[1073741824, 536870912]"),
    "shared": ("i32", "[5, 6]",
               "a = td.shared(2, td.i32)\na[i] = x[i]\ntd.sync_threads()\ny[i] = a[1 - i]",
               "[6, 5]"),
    "shuffle": ("i32", "[5, 6, 7]", "y[i] = td.shuffle(x[i], 1)", "[6, 6, 6]"),
    "shuffle_down": ("i32", "[5, 6, 7]", "v = td.shuffle_down(x[i], 1)\nif i < 2:\n    y[i] = v",
                     "[6, 7, 0]"),
    "shuffle_up": ("i32", "[5, 6, 7]", "v = td.shuffle_up(x[i], 1)\nif i > 0:\n    y[i] = v",
                   "[0, 5, 6]"),
    "shuffle_xor": ("i32", "[5, 6]", "y[i] = td.shuffle_xor(x[i], 1)", "[6, 5]"),
    "static_range": ("i32", "[5, 6]", "for k in td.static_range(3):\n    y[i] += x[i] * k",
                     "[15, 18]"),
    "subgroup_max": ("i32", "[5, 7, 6]", "y[i] = td.subgroup_max(x[i])", "[7, 7, 7]"),
    "subgroup_min": ("i32", "[5, 7, 6]", "y[i] = td.subgroup_min(x[i])", "[5, 5, 5]"),
    "subgroup_prefix_sum": ("i32", "[5, 7, 6]", "y[i] = td.subgroup_prefix_sum(x[i])",
                            "[0, 5, 12]"),
    "subgroup_size": ("i32", "[0]", "y[i] = td.i32(td.lane() < td.subgroup_size())", "[1]"),
    "subgroup_sum": ("i32", "[5, 7, 6]", "y[i] = td.subgroup_sum(x[i])", "[18, 18, 18]"),
    "sync_subgroup": ("i32", "[5, 6]", "y[i] = x[i]\ntd.sync_subgroup()\ny[i] += 1", "[6, 7]"),
    "sync_threads": ("i32", "[5, 6]",
                     "a = td.shared(2, td.i32)\na[i] = x[i]\ntd.sync_threads()\ny[i] = a[1 - i]",
                     "[6, 5]"),
    "thread_fence": ("i32", "[5, 6]",
                     "x[i] += 1\ntd.thread_fence()\ntd.atomic_add(y, 0, 1)", "[2, 0]"),
    "thread_fence_block": ("i32", "[5, 6]",
                           "x[i] += 1\ntd.thread_fence_block()\ntd.atomic_add(y, 0, 1)",
                           "[2, 0]"),
    "vote_all": ("i32", "[1, 0]", "y[i] = td.i32(td.vote_all(x[i] > 0))", "[0, 0]"),
    "vote_any": ("i32", "[1, 0]", "y[i] = td.i32(td.vote_any(x[i] > 0))", "[1, 1]"),
}  # fmt: skip


def document(name: str, group: str, doc: str) -> str:
    """The docstring of a function of the kernel language."""
    example = _EXAMPLES.get(name)
    if example is None:  # also a function of tensors, whose docstring it takes
        return doc
    dtype, elements, body, shown = example
    array = f"td.Array[td.{dtype}]"
    body = body.replace("\n", "\n...     ")
    return f"""{doc}

{_WHERE.get(name) or _WHERE[group]} It works in kernels only, and raises TreadleError elsewhere.

>>> import treadle as td
>>> @td.kernel
... def example(x: {array}, y: {array}):
...     i = td.grid(1)
...     {body}
>>> x = td.asarray({elements}, dtype=td.{dtype}, device="cpu")
>>> y = td.zeros_like(x)
>>> example[1, x.size](x, y)
>>> y.tolist()
{shown}
"""
