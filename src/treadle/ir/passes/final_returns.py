"""Returns of a loop that is the last statement of a kernel as breaks, which do the same there.

    while true:                    while true:
      barrier                        barrier
      if i >= n: return              if i >= n: break
      …                              …

So the passes that bring all threads to a barrier see a loop which threads leave one by one, as they
do in kernels whose threads fetch work until there is none.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n


def with_final_breaks(kernel: n.Kernel) -> n.Kernel:
    """The kernel with breaks in place of returns in its last loop, but for those of inner loops."""
    if not kernel.body:
        return kernel
    *before, last = kernel.body
    if not isinstance(last, (n.For, n.While)):
        return kernel
    body = _with_breaks(last.body)
    if body == last.body:
        return kernel
    return replace(kernel, body=(*before, replace(last, body=body)))


def _with_breaks(block: n.Block) -> n.Block:
    found: list[n.Statement] = []
    for statement in block:
        match statement:
            case n.Return():
                found.append(n.Break(statement.span))
            case n.If(_, then, otherwise):
                parts = _with_breaks(then), _with_breaks(otherwise)
                same = parts == (then, otherwise)
                found.append(
                    statement if same else replace(statement, then=parts[0], otherwise=parts[1])
                )
            case _:
                found.append(statement)
    return tuple(found)
