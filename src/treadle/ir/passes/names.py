"""Fresh names for variables and memories that passes add."""

from __future__ import annotations

from treadle.ir import nodes as n
from treadle.ir.traverse import walk


class Names:
    """The names that a kernel uses, and new ones."""

    def __init__(self, kernel: n.Kernel) -> None:
        self._used = {buffer.name for buffer in kernel.buffers}
        self._used.update(parameter.name for parameter in kernel.parameters)
        self._used.update(memory.name for memory in kernel.memories)
        self._used.update(function.name for function in kernel.functions)
        for block in (kernel.body, *(function.body for function in kernel.functions)):
            self._used.update(node.name for node in walk(block) if isinstance(node, n.Variable))
        for function in kernel.functions:
            self._used.update(parameter.name for parameter in function.parameters)
        self._next: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """`name` if it is not used yet, else the name with a number."""
        candidate = name
        while candidate in self._used:
            count = self._next.get(name, 1)
            self._next[name] = count + 1
            candidate = f"{name}.{count}"
        self._used.add(candidate)
        return candidate
