"""Fresh names for variables and memories that passes add."""

from __future__ import annotations

from treadle.ir import nodes as n
from treadle.ir.traverse import walk


class Names:
    """The names that a kernel uses, and new ones."""

    def __init__(self, kernel: n.Kernel) -> None:
        self._kernel = kernel
        self._taken: set[str] | None = None
        self._next: dict[str, int] = {}

    def _used(self) -> set[str]:
        """The kernel's names, looked up when a pass needs the first new one: many need none."""
        if self._taken is None:
            kernel = self._kernel
            self._taken = {buffer.name for buffer in kernel.buffers}
            self._taken.update(parameter.name for parameter in kernel.parameters)
            self._taken.update(memory.name for memory in kernel.memories)
            self._taken.update(function.name for function in kernel.functions)
            for block in (kernel.body, *(function.body for function in kernel.functions)):
                self._taken.update(node.name for node in walk(block) if type(node) is n.Variable)
            for function in kernel.functions:
                self._taken.update(parameter.name for parameter in function.parameters)
        return self._taken

    def fresh(self, name: str) -> str:
        """`name` if it is not used yet, else the name with a number."""
        used, candidate = self._used(), name
        while candidate in used:
            count = self._next.get(name, 1)
            self._next[name] = count + 1
            candidate = f"{name}.{count}"
        used.add(candidate)
        return candidate
