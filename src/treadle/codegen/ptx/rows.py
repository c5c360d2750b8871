"""A printed kernel whose blocks each have arguments of their own, out of the rows of a table.

So one launch runs many programs that differ in their arguments alone, each in a block. A row is
what a launch of such a block alone would be given: the addresses of its buffers, then its parameter
block. The text is the printer's own, and differs in where parameters are loaded from.
"""

from __future__ import annotations

import re
from dataclasses import replace

from treadle.codegen.records import Binding, KernelCode, ParameterLayout

_ENTRY = re.compile(r"(\.visible \.entry \S+)\((.*?)\)\n", re.DOTALL)
_DECLARED = re.compile(r"\.param \.\w+ ([\w$]+)")
_LOADED = re.compile(r"ld\.param\.(\w+) (\S+), \[([\w$]+)\];")
_TABLE = "rows$table"  # the printer's names have no dollar
_HEAD = """\
{{
    .reg .b64 %rows$all, %rows$own;
    .reg .b32 %rows$block;
    ld.param.u64 %rows$all, [{table}];
    cvta.to.global.u64 %rows$all, %rows$all;
    mov.u32 %rows$block, %ctaid.x;
    mad.wide.u32 %rows$own, %rows$block, {size}, %rows$all;
"""


def row_bytes(code: KernelCode) -> int:
    """The size of a row for a kernel."""
    return 8 * len(code.bindings) + code.layout.size


def with_rows(code: KernelCode) -> KernelCode:
    """The kernel that takes a table of rows as its only argument: its n-th block along x is the
    first one of a launch with the n-th row's arguments. The kernel asks for no index of blocks."""
    found = _ENTRY.search(code.source)
    assert found is not None
    names = _DECLARED.findall(found[2])
    offsets = [8 * at for at in range(len(code.bindings))]
    offsets += [8 * len(code.bindings) + slot.offset for slot in code.layout.slots]
    places = dict(zip(names, offsets, strict=True))
    head = _HEAD.format(table=_TABLE, size=row_bytes(code))
    body = _LOADED.sub(
        lambda load: f"ld.global.{load[1]} {load[2]}, [%rows$own+{places[load[3]]}];",
        code.source[found.end() :],
    )
    body = body.replace("{\n", head, 1)
    source = f"{code.source[: found.start()]}{found[1]}(\n    .param .u64 {_TABLE}\n)\n{body}"
    return replace(
        code, source=source, bindings=(Binding((_TABLE,), False),), layout=ParameterLayout.of(())
    )
