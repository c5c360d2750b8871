"""Everything the kernel language refuses: the error, its line and its column."""

# ruff: noqa: RET503  a function that forgets to return is one of the mistakes here

from __future__ import annotations

import functools
import math  # noqa: F401  for kernels written as text
import types

import numpy as np
import pytest

import treadle.lang as td
from tests.support.kernels import array
from treadle.core.errors import CompileError
from treadle.ir import types as t
from treadle.ir.signature import Signature
from treadle.lang.refusals import REFUSALS

COEFFICIENTS = np.ones(3, np.float32)
MANY, NONE, NUMBER, TEXTS = np.ones(1025), np.ones(0), np.array(3.0), np.array(["a"])
TENSOR = types.SimpleNamespace(__dlpack__=None)  # as arrays of other libraries have
TABLE = {"a": 1}
LONG = tuple(range(1025))
HUGE = 10**5000


@td.func
def outside(x):
    return x + 1


@td.func
def nothing(x):
    pass


def ordinary(x):
    return x


@td.func
def endless(x):
    return endless(x)


@td.func
def sometimes(x):
    while x > 0:
        return x


@td.kernel
def other(x: td.Array[td.f32]):
    x[0] = 1.0


@td.kernel
def bool(x: td.Array[td.f32]):  # hides Python's own
    x[0] = 1.0


@td.func
def max(x, y):
    return max(x, y)


@td.struct
class Pair:
    a: td.f32
    b: td.f32


# (key in the table, lines of the body, the text at which the error points)
BODIES: list[tuple[str, str, str]] = [
    ("FunctionDef", "def g(): pass", "def g"),
    ("AsyncFunctionDef", "async def g(): pass", "async def"),
    ("ClassDef", "class C: pass", "class C"),
    ("Delete", "del x", "del x"),
    ("Delete", "s = td.local(3, td.f32)\ndel s", "del s"),
    ("With", "with open(x): pass", "with"),
    ("Match", "match i:\n    case 1: pass", "match"),
    ("Raise", "raise ValueError", "raise"),
    ("Try", "try:\n    pass\nexcept ValueError:\n    pass", "try"),
    ("TryStar", "try:\n    pass\nexcept* ValueError:\n    pass", "try"),
    ("Import", "import os", "import os"),
    ("ImportFrom", "from os import path", "from os"),
    ("Global", "global g", "global"),
    ("loop_else", "for k in range(3):\n    pass\nelse:\n    i = 1", "i = 1"),
    ("loop_else", "while i < 3:\n    i += 1\nelse:\n    i = 1", "i = 1\n"),
    ("NamedExpr", "y[0] = (n := 1)", "n := 1"),
    ("Lambda", "f = lambda a: a", "lambda"),
    ("Dict", "d = {1: 2}", "{1"),
    ("Set", "d = {1, 2}", "{1"),
    ("List", "d = [1, 2]", "[1, 2"),
    ("ListComp", "d = [k for k in range(3)]", "[k for"),
    ("SetComp", "d = {k for k in range(3)}", "{k for"),
    ("DictComp", "d = {k: k for k in range(3)}", "{k:"),
    ("GeneratorExp", "d = max(k for k in range(3))", "(k for"),
    ("Yield", "yield x[0]", "yield"),
    ("YieldFrom", "yield from x", "yield"),
    ("JoinedStr", "s = f'{i}'", "f'"),
    ("JoinedStr", "print(f'{i:3d}')", "f'"),
    ("Starred", "outside(*x)", "*x"),
    ("Starred", "outside(**x)", "x)"),
    ("Starred", "a, *b = 1, 2, 3", "*b"),
    ("Slice", "y[0] = x[1:2]", "1:2"),
    ("string", "y[0] = 'text'", "y[0]"),
    ("string", "if x[0] == 'a': pass", "x[0] =="),
    ("string", "if 'a' != x: pass", "'a' !="),
    ("complex", "y[0] = 1j", "1j"),
    ("bytes", "y[0] = b'a'", "b'a'"),
    ("ellipsis", "y[...] = 1.0", "y[...]"),
    ("MatMult", "y[0] = x[0] @ x[1]", "x[0] @"),
    ("identity", "if x[0] is x[1]: pass", "x[0] is"),
    ("identity", "if x is None: pass", "x is"),
    ("identity", "if x[0] is not None: pass", "x[0] is"),
    ("membership", "if i in (1, 2): pass", "i in"),
    ("kernel_result", "return x[0]", "return"),
    ("missing_return", "y[0] = sometimes(x[0])", ""),
    ("recursion", "y[0] = endless(x[0])", ""),
    ("kernel_call", "other(x)", "other"),
    ("hidden_function", "y[0] = bool(x[0])", "bool("),
    ("hidden_function", "y[0] = max(x[0], x[1])", ""),
    ("foreign_call", "y[0] = ordinary(x[0])", "ordinary"),
    ("not_callable", "y[0] = i(3)", "i(3"),
    ("unknown_name", "y[0] = undefined", "undefined"),
    ("unknown_member", "y[0] = td.gird(1)", "td.gird"),
    ("unassigned", "y[0] = later\nlater = 1.0", "later"),
    ("captured_array", "y[0] = TENSOR[0]", "TENSOR"),
    ("captured_large_array", "y[0] = MANY[0]", "MANY"),
    ("captured_large_array", "y[0] = NONE[0]", "NONE"),
    ("captured_object", "y[0] = NUMBER", "NUMBER"),
    ("captured_object", "y[0] = TEXTS[0]", "TEXTS"),
    ("constant_array", "COEFFICIENTS[0] = x[0]", "COEFFICIENTS"),
    ("constant_array", "COEFFICIENTS[i] += x[0]", "COEFFICIENTS"),
    ("constant_array", "td.atomic_add(COEFFICIENTS, 0, 1.0)", "td.atomic"),
    ("captured_object", "y[0] = TABLE['a']", "TABLE"),
    ("unknown_attribute", "y[0] = x.length", "x.length"),
    ("unknown_attribute", "p = Pair(1.0, 2.0)\ny[0] = p.c", "p.c"),
    ("changed_type", "s = 0\ns += x[0]", "s += "),
    ("changed_type", "s = 0\ns = x[0]", "s = x"),
    ("rebound", "a = x\na = y", "a = x"),
    ("lossy", "n[0] = x[0]", "n[0]"),
    ("lossy", "n[0] = 1.5", "n[0]"),
    ("condition", "if i and x[0] > 0: pass", "i and"),
    ("whole_variable", "y[td.thread_idx] = 1.0", "y[td.th"),
    ("whole_variable", "y[td.thread_idx[0]] = 1.0", "td.thread_idx[0]"),
    ("uncalled", "y[0] = td.sin", "y[0]"),
    ("uncalled", "y[0] = outside", "y[0]"),
    ("uncalled", "s = td.shared[10, td.f32]", "td.shared["),
    ("nothing_returned", "y[0] = td.sync_threads()", "y[0]"),
    ("nothing_returned", "y[0] = nothing(x[0])", "y[0]"),
    ("value_needed", "y[0] = None", "y[0]"),
    ("axes", "y[0] = x[0, 1]", "x[0, 1]"),
    ("axes", "y[0] = m[0]", "m[0]"),
    ("whole_array", "y[0] = x + 1.0", "x + 1"),
    (
        "whole_fragment",
        "s = td.fragment(16, 8, td.f32, use='accumulator')\ny[0] = s + 1.0",
        "s + 1",
    ),
    ("tuple_index", "y[0] = LONG[i]", "LONG[i]"),
    ("component", "v = td.vec2[td.f32](1.0)\ny[0] = v[2]", "v[2]"),
    ("component", "v = td.vec2[td.f32](1.0)\nv[-1] = 1.0", "v[-1]"),
    ("number_index", "y[0][1] = 1.0", "y[0]["),
    ("number_index", "y[0] = x[0][1]", "x[0]["),
    ("static", "a = td.local(x.size, td.f32)", "td.local"),
    ("static", "for k in td.static_range(x.size): pass", "td.static_range"),
    ("array_assignment", "x.size = 3", "x.size"),
    ("number_attribute", "y[0] = x[0].astype(td.f32)", "x[0].astype"),
    ("array_function", "y[0] = np.interp(x[0], 0, 1)", "np.interp"),
    ("array_function", "a = np.zeros(4)", "np.zeros"),
    ("negative_power", "y[0] = n[0] ** -1", "n[0] **"),
    ("negative_power", "y[0] = n[0] ** td.i32(-2)", "n[0] **"),
    ("wide_integer", "y[0] = td.i32(9 ** 9 ** 9)", "9 ** 9"),
    ("wide_integer", "y[0] = 2 ** (2 ** 40)", "2 ** ("),
    ("wide_integer", "y[0] = 1 << (1 << 60)", "1 << (1 << 60)"),
    ("wide_integer", "y[0] = td.f32(10 ** 400)", "10 **"),
    ("wide_integer", "y[0] = (1 << 1000) * (1 << 1000)", "(1 <<"),
    ("wide_integer", "y[0] = HUGE", "HUGE"),
    ("no_value", "n[0] = 0 // 0", "0 // 0"),
    ("no_value", "y[0] = 1 / 0", "1 / 0"),
    ("text", "print('\\ud800')", "'\\ud800"),
    ("text", "print(f'{i} \\udfff')", "f'{i}"),
    ("text", "assert i > 0, '\\ud800'", "'\\ud800"),
    ("foreign_builtin", "y[0] = sorted(x)", "sorted"),
    ("foreign_builtin", "y[0] = np.spacing(x[0])", "np.spacing"),
    ("number_text", "y[0] = float('nan')", "float"),
    ("number_text", "n[0] = int('1')", "int"),
    ("bare_function", "td.sync_threads", "td.sync"),
    ("bare_function", "outside", "outside"),
    ("swizzle_assignment", "v = td.vec2[td.f32](1.0)\nv.xy = v", "v.xy"),
    ("swizzle_assignment", "v = td.vec2[td.f32](1.0)\nv.yx += v", "v.yx"),
    ("unrolled_exit", "for k in td.static_range(3):\n    break", "break"),
    ("unrolled_exit", "for k in (1, 2):\n    continue", "continue"),
]
SIGNATURE = Signature((array(), array(), array(t.I32), array(ndim=2)))
HEAD = "def kernel(x, y, n, m: td.Array[td.f32, 2]):\n    i = td.grid(1)\n"


def refused(text: str, signature: Signature = SIGNATURE) -> CompileError:
    with pytest.raises(CompileError) as caught:
        td.kernel(source=text).lower(signature)
    return caught.value


def place(text: str, fragment: str) -> tuple[int, int]:
    at = text.index(fragment, len(HEAD) if text.startswith(HEAD) else 0)
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


@pytest.mark.parametrize(("key", "body", "fragment"), BODIES)
def test_a_refused_construct_in_a_body(key: str, body: str, fragment: str) -> None:
    text = HEAD + "\n".join("    " + line for line in body.splitlines()) + "\n"
    error = refused(text)
    fixed = REFUSALS[key].advice.split("{")[0]
    assert fixed in error.message
    if fragment:
        assert (error.line, error.column) == place(text, fragment)
        shown = str(error).splitlines()
        assert shown[-2].strip().endswith(text.splitlines()[error.line - 1].strip())
        assert shown[-1].count("^") >= 1


HEADINGS = [
    ("star_parameters", "def kernel(*x): pass", "x)"),
    ("star_parameters", "def kernel(**x): pass", "x)"),
    ("default_value", "def kernel(x, y=None): pass", "y="),
]


@pytest.mark.parametrize(("key", "text", "fragment"), HEADINGS)
def test_a_refused_parameter_list(key: str, text: str, fragment: str) -> None:
    error = refused(text)
    assert REFUSALS[key].advice.split("{")[0] in error.message
    assert (error.line, error.column) == place(text, fragment)


def test_a_lambda_and_a_wrapped_function() -> None:
    @functools.wraps(ordinary)
    def wrapper(*arguments):
        return ordinary(*arguments)

    with pytest.raises(CompileError, match="not a lambda"):
        td.kernel(lambda x: None)
    with pytest.raises(CompileError, match="ordinary is a wrapped function"):
        td.kernel(wrapper)


def test_nonlocal() -> None:
    count = 0

    def kernel(x):
        nonlocal count
        count = 1

    with pytest.raises(CompileError, match="can't assign to names outside"):
        td.kernel(kernel).lower(Signature((array(),)))
    assert count == 0


def test_every_refusal_has_a_case() -> None:
    tested = {key for key, *_ in BODIES} | {key for key, *_ in HEADINGS} | {"Nonlocal"}
    assert tested == set(REFUSALS)


def test_source_that_is_not_python() -> None:
    error = refused("def kernel(x):\n    x[0] = = 1\n")
    assert (error.line, "not Python" in error.message) == (2, True)


ERRORS = [
    ("y[0] = x[i] + m", "can't be used as a number", "x[i] + m"),
    ("y[0] = i + td.u32(i)", "i32 and u32 do not mix", "i + td"),
    ("y[-1] = 1.0", "do not wrap around", "y[-1]"),
    ("y[1.5] = 1.0", "an index is an integer", "y[1.5]"),
    ("y[x[0]] = 1.0", "an index is an integer, not f32", "y[x[0]]"),
    ("y[i / 2] = 1.0", "// instead of /", "y[i / 2]"),
    ("y[0] = outside(1, 2)", "takes 1 argument, not 2", "outside(1"),
    ("y[0] = outside()", "takes 1 argument, not 0", "outside()"),
    ("y[0] = td.exp(1.0, 2.0)", "takes 1 argument, not 2", "td.exp"),
    ("y[0] = td.sqr(x[0])", "did you mean td.sqrt?", "td.sqr"),
    ("y[0] = td.grid(4)", "1, 2 or 3", "td.grid(4)"),
    ("y[0] = Pair(1.0, 2.0, 3.0).a", "has 2 fields", "Pair("),
    ("y[0] = 10.0 ** 400", "is too large for a float", "10.0 **"),
    ("n[0] = 1 << -1", "shifts by a negative number", "1 <<"),
    ("n[0] = 1.5 << 1", "<< works on integers", "1.5 <<"),
    ("y[2 ** 64] = 1.0", "is too large for any array", "y[2"),
    ("y[0] = abs()", "abs takes 1 argument, not 0", "abs()"),
    ("y[0] = pow(x[0])", "pow takes 2 arguments, not 1", "pow(x"),
    ("y[0] = ~x[0]", "~ works on integers", "~x"),
    ("y[0] = x[0] & 1", "works on integers", "x[0] &"),
    ("a, b = 1, 2, 3", "2 names for 3 values", "a, b"),
    ("for k in m: pass", "for i in range(a.size)", "m: pass"),
    ("for k in range(1.5): pass", "range counts integers", "range(1.5)"),
    ("for k in range(0, 3, 0): pass", "is not 0", "range(0, 3, 0)"),
    ("td.atomic_add(i, 0, 1)", "works on an array", "td.atomic_add"),
    ("td.atomic_or(x, 0, 1)", "works on integers", "td.atomic_or"),
    ("n[0] = 3000000000", "n[0] is i32", "n[0]"),
    ("k = 3000000000", "write td.i64(3000000000)", "k ="),
    ("y[0] = td.bitcast(x[0], td.u16)", "keeps the size", "td.bitcast"),
    ("v = td.vec3[td.f32](1.0, 2.0)", "has 3 components", "td.vec3"),
    ("y[0] = td.vec2[td.f32](1.0).z", "it has x, y", "td.vec2"),
    ("a = td.shared((i, 2), td.f32)", "must be known when the kernel is compiled", "td.shared"),
    ("a = td.local(0, td.f32)", "positive integers", "td.local"),
    ("a = td.local(None, td.f32)", "only td.shared", "td.local"),
    ("i: td.f32 = 0", "set at its first assignment", "i: td"),
    ("assert i > 0, i", "literal text", "i\n"),
]


@pytest.mark.parametrize(("body", "says", "fragment"), ERRORS)
def test_an_error_of_types_or_arguments(body: str, says: str, fragment: str) -> None:
    text = HEAD + "    " + body + "\n"
    error = refused(text)
    assert says in error.message
    assert (error.line, error.column) == place(text, fragment)


def test_an_error_inside_a_device_function_says_where_it_was_called() -> None:
    text = HEAD + "    y[0] = sometimes(x[0])\n"
    error = refused(text)
    assert error.file == __file__
    assert "is called at <kernel source" in error.__notes__[0]


def test_an_async_kernel() -> None:
    async def kernel(x):
        pass

    with pytest.raises(CompileError, match="async"):
        td.kernel(kernel)
