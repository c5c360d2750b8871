"""What a kernel does with its memory: reads, writes, atomics, and as what types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import Scalar, Type, scalars_in, size_of


@dataclass(frozen=True, slots=True)
class Access:
    """How one memory is used.

    `types` has the type of every value loaded, stored or updated: `vec4<f32>` for a whole vector,
    `f32` for one component of it. `elements` has the types that indices count. `scalars` are the
    leaves of `types`.
    """

    reads: bool = False
    writes: bool = False  # stores and atomics
    atomic: bool = False
    types: frozenset[Type] = field(default_factory=frozenset)
    elements: frozenset[Type] = field(default_factory=frozenset)

    @property
    def scalars(self) -> frozenset[Scalar]:
        """The numbers that travel."""
        return frozenset(leaf for type in self.types for leaf in scalars_in(type))

    @property
    def sizes(self) -> frozenset[int]:
        """The sizes in bytes of those numbers."""
        return frozenset(size_of(scalar) for scalar in self.scalars)

    def __or__(self, other: Access) -> Access:
        return Access(
            self.reads or other.reads,
            self.writes or other.writes,
            self.atomic or other.atomic,
            self.types | other.types,
            self.elements | other.elements,
        )


_ACCESSING = frozenset(
    (n.Load, n.Assign, n.OpaqueStore, n.Staged, n.Atomic, n.Call, n.CallStatement)
)


def buffer_access(kernel: n.Kernel) -> dict[str, Access]:
    """The use of every buffer and memory of the kernel, through the functions it calls as well.

    Memory that is never touched has an Access that says so. Memories that functions own are not
    in it (there are none after inlining).
    """
    functions: dict[str, dict[str, Access]] = {}
    parameters: dict[str, list[str]] = {}
    for function in kernel.functions:
        functions[function.name] = _body_access(function.body, functions, parameters)
        parameters[function.name] = [parameter.name for parameter in function.parameters]
    used = _body_access(kernel.body, functions, parameters)
    names = [buffer.name for buffer in kernel.buffers]
    names += [memory.name for memory in kernel.memories]
    return {name: used.get(name, Access()) for name in names}


def _body_access(
    body: n.Block, functions: dict[str, dict[str, Access]], parameters: dict[str, list[str]]
) -> dict[str, Access]:
    found: dict[str, Access] = {}
    seen: set[tuple[Any, ...]] = set()  # unrolled kernels have thousands of equal accesses

    def note(memory: str, access: Access) -> None:
        before = found.get(memory)
        found[memory] = access if before is None else before | access

    def touch(place: n.Place, **how: Any) -> None:
        root = root_of(place)
        if isinstance(root, n.Element):
            what = (root.memory, place.type, root.type, *how)
            if what in seen:
                return
            seen.add(what)
            types, elements = frozenset({place.type}), frozenset({root.type})
            note(root.memory, Access(types=types, elements=elements, **how))

    for node in walk(body):
        if type(node) not in _ACCESSING:  # most nodes: quicker than all the cases
            continue
        match node:
            case n.Load():
                touch(node.place, reads=True)
            case n.Assign() | n.OpaqueStore():
                touch(node.place, writes=True)
            case n.Staged():
                for place in node.places:
                    touch(place, reads=True, writes=True)
            case n.Atomic():
                touch(node.place, atomic=True, reads=True, writes=True)
            case n.Call() | n.CallStatement():
                inner = functions[node.function]
                for name, argument in zip(parameters[node.function], node.arguments, strict=True):
                    if isinstance(argument, n.MemoryReference) and name in inner:
                        note(argument.memory, inner[name])
    return found
