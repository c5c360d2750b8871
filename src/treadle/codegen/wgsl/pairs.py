"""Vectors of four 16-bit numbers for which WGSL lacks a type, as a pair of words each.

A memory that holds nothing else is an array of vec2<u32>, so that a device moves 64 bits at once.
As an array of words it would have to find out that two loads are neighbours, past the bounds that
it may keep each of them to.
"""

from __future__ import annotations

from treadle.codegen.wgsl import casts
from treadle.codegen.wgsl.module import Module, giving
from treadle.codegen.wgsl.names import mangle
from treadle.ir.types import COMPONENTS, Vector

_HALVES = (("x", 0), ("x", 16), ("y", 0), ("y", 16))  # a number's word, and its bits there


def load_function(module: Module, variable: str, type: Vector, guarded: bool) -> str:
    """The name of a function that reads an element, or gives zeros if it is not inside."""
    key = ("load pair", variable, type, guarded)
    name, new = module.helper(key, f"load_{variable}_{_spelled(type)}")
    if not new:
        return name
    register = module.register(type)
    lines = [f"fn {name}({'inside: bool, ' if guarded else ''}index: i32) -> {register} {{"]
    parts = [casts.unpack(module, f"words.{word}", shift, type.element) for word, shift in _HALVES]
    value, first = f"{register}({', '.join(parts)})", [f"    let words = {variable}[index];"]
    lines += giving(value, "inside" if guarded else "", module.zero(type), register, first)
    module.add(key, "\n".join(lines))
    return name


def store_function(module: Module, variable: str, type: Vector) -> str:
    """The name of a function that writes an element."""
    key = ("store pair", variable, type)
    name, new = module.helper(key, f"store_{variable}_{_spelled(type)}")
    if not new:
        return name
    x, y, z, w = (casts.pack(module, f"value.{axis}", type.element) for axis in COMPONENTS)
    lines = [
        f"fn {name}(index: i32, value: {module.register(type)}) {{",
        f"    let low = ({x}) | (({y}) << 16u);",
        f"    let high = ({z}) | (({w}) << 16u);",
        f"    {variable}[index] = vec2<u32>(low, high);",
        "}",
    ]
    module.add(key, "\n".join(lines))
    return name


def _spelled(type: Vector) -> str:
    return mangle(str(type)).strip("_")
