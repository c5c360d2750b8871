"""CUDA's functions of double, where `double` has the bits of a float: those of float take their
place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle.cuda_cpp.builtins.outputs import OutputOverload
from treadle.cuda_cpp.builtins.overload import Overload
from treadle.cuda_cpp.builtins.recipes import Table
from treadle.ir import types as t

# Functions that see the 64 bits of a double, which is a float here.
SEE_BITS = frozenset({
    "__double_as_longlong", "__longlong_as_double", "__double2hiint", "__double2loint",
    "__hiloint2double",
})  # fmt: skip
_TESTS = ("__isnan", "__isinf", "__isfinited", "__finite", "__signbitd", "__signbit")
_ARITHMETIC = ("add", "sub", "mul", "div", "rcp", "sqrt")
_MODES = ("rn", "rz", "ru", "rd")
_INTEGERS = ("int", "uint", "ll", "ull")

# The functions of float that do what those of double alone do.
OF_FLOAT: dict[str, str] = {
    **{f"__d{name}_{mode}": f"__f{name}_{mode}" for name in _ARITHMETIC for mode in _MODES},
    **{f"__fma_{mode}": f"__fmaf_{mode}" for mode in _MODES},
    **{f"__double2{to}_{mode}": f"__float2{to}_{mode}" for to in _INTEGERS for mode in _MODES},
    **{f"__{of}2double_{mode}": f"__{of}2float_{mode}" for of in _INTEGERS for mode in _MODES},
    "__double2half": "__float2half",
    "__double2bfloat16": "__float2bfloat16",
}


def has_double(one: Overload | OutputOverload) -> bool:
    """Whether a parameter or result of an overload is a double."""
    outputs = one.outputs if isinstance(one, OutputOverload) else ()
    return any(_is_double(type) for type in (*one.parameters, one.result, *outputs))


def _is_double(type: t.Type | None) -> bool:
    return type == t.F64 or (isinstance(type, t.Vector) and type.element == t.F64)


def as_floats(name: str, table: Table) -> Sequence[Overload]:
    """The overloads of a function where doubles are floats. None is left of SEE_BITS."""
    found = table.get(OF_FLOAT.get(name, name), ())
    if name.startswith("__double2float_"):
        return [Overload((t.F32,), t.F32, lambda maker, value: value)]
    if name in _TESTS:
        return [replace(one, parameters=(t.F32,)) for one in found]
    return [one for one in found if not has_double(one)]
