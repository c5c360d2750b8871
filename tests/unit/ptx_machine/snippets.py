"""Running a few lines of PTX on vectors of operands."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.ptx_machine.memory import GlobalMemory
from tests.support.ptx_machine.run import load

_LOADED = {"u1": "u8", "u2": "b16", "u4": "b32", "u8": "b64", "f4": "f32", "f8": "f64"}
_NAMES = "abcd"


def module(body: str, parameters: str = "", target: str = "sm_90", outside: str = "") -> str:
    """A module whose kernel `k` has this body and a few registers of each kind."""
    return f"""
    .version 8.0
    .target {target}
    .address_size 64
    {outside}
    .visible .entry k({parameters})
    {{
        .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %rd<9>;
        .reg .f32 %f<9>; .reg .f64 %fd<9>;
        {body}
        ret;
    }}
    """


def run(
    instruction: str,
    *operands: Any,
    types: Sequence[str] | str,
    result: str,
    target: str = "sm_90",
) -> list[Any]:
    """One instruction on each element of the operands: `%x` is its result, `%a %b %c` are its
    operands; `types` are dtypes of registers ("u4", "f8"; bits of half floats are "u2")."""
    if isinstance(types, str):
        types = (types,) * len(operands)
    arrays = [np.atleast_1d(np.array(o, t)) for o, t in zip(operands, types, strict=True)]
    count = max(array.size for array in arrays)
    arrays = [np.ascontiguousarray(np.broadcast_to(array, count)) for array in arrays]
    memory = GlobalMemory()
    addresses = [_upload(memory, array) for array in arrays]
    out = np.zeros(count, result)
    addresses.append(_upload(memory, out))
    lines = ["mov.u32 %r18, %tid.x; cvt.u64.u32 %rd8, %r18;"]
    for name, type, at in zip(_NAMES, types, range(len(arrays)), strict=False):
        kind = _LOADED[type]
        lines += [
            f".reg .{kind} %{name}; ld.param.u64 %rd7, [p{at}];",
            f"mad.lo.u64 %rd7, %rd8, {int(type[1])}, %rd7; ld.global.{kind} %{name}, [%rd7];",
        ]
    kind = _LOADED[result]
    lines += [
        f".reg .{kind} %x; {instruction}",
        f"ld.param.u64 %rd7, [p{len(arrays)}]; mad.lo.u64 %rd7, %rd8, {int(result[1])}, %rd7;",
        f"st.global.{kind} [%rd7], %x;",
    ]
    parameters = ", ".join(f".param .u64 p{i}" for i in range(len(addresses)))
    kernel = load(module("\n".join(lines), parameters, target), "k", memory)
    kernel.launch((1, 1, 1), (count, 1, 1), struct.pack(f"<{len(addresses)}Q", *addresses))
    found = memory.slice(addresses[-1], out.nbytes).view(result)
    return list(found.tolist())


def _upload(memory: GlobalMemory, array: np.ndarray[Any, Any]) -> int:
    address = memory.allocate(array.nbytes)
    memory.slice(address, array.nbytes)[:] = array.view(np.uint8)
    return address


def launch(
    body: str,
    out: Any,
    *,
    block: tuple[int, int, int] | int = 32,
    grid: int = 1,
    target: str = "sm_90",
    outside: str = "",
    dynamic_shared: int = 0,
) -> np.ndarray[Any, Any]:
    """A whole body whose `%rd0` is the address of `out`; what `out` holds afterwards."""
    memory = GlobalMemory()
    out = np.array(out)
    address = _upload(memory, out)
    text = module(f"ld.param.u64 %rd0, [out];\n{body}", ".param .u64 out", target, outside)
    shape = (block, 1, 1) if isinstance(block, int) else block
    kernel = load(text, "k", memory)
    kernel.launch((grid, 1, 1), shape, struct.pack("<Q", address), dynamic_shared)
    return memory.slice(address, out.nbytes).view(out.dtype).copy()
