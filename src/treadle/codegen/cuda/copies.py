"""Copies from global to shared memory that happen while the thread goes on."""

from __future__ import annotations

from treadle.codegen.c_family.places import place_text
from treadle.codegen.c_family.scope import Scope
from treadle.codegen.nvidia import copied_from
from treadle.ir import nodes as n
from treadle.ir.types import size_of

_WHOLE_LINES = 16  # bytes, that pass the first cache by

_COPY = """{fn} void copy_later_{size}(void* target, const void* source, bool all) {{
    asm volatile("cp.async.{cached}.shared.global [%0], [%1], {size}, %2;"
        : : "r"((unsigned int)__cvta_generic_to_shared(target)),
        "l"(__cvta_generic_to_global(source)), "r"(all ? {size} : 0) : "memory");
}}"""
_END = """{fn} void end_copies() {{
    asm volatile("cp.async.commit_group;" : : : "memory");
}}"""
_WAIT = """// Until at most so many groups are left.
{fn} void wait_copies_{left}() {{
    asm volatile("cp.async.wait_group {left};" : : : "memory");
}}"""


def copies(scope: Scope, node: n.Copies | n.Assign) -> str:
    """The call that begins a copy (zeros where its condition does not hold), ends a group of them,
    or waits."""
    module = scope.module
    fn = module.language.function
    if isinstance(node, n.Copies):
        name = "end_copies" if node.left is None else f"wait_copies_{node.left}"
        text = _END if node.left is None else _WAIT
        module.helpers.setdefault(name, text.format(fn=fn, left=node.left))
        return f"{name}()"
    size = size_of(node.value.type)
    name = f"copy_later_{size}"
    cached = "cg" if size == _WHOLE_LINES else "ca"
    module.helpers.setdefault(name, _COPY.format(fn=fn, size=size, cached=cached))
    source, condition = copied_from(node.value)
    assert source is not None
    inside = "true" if condition is None else scope.text(condition)
    return f"{name}(&{place_text(scope, node.place)}, &{place_text(scope, source)}, {inside})"
