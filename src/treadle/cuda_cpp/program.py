"""What the front end hands to those who launch kernels and print them: a file of CUDA C++, read.

`load` makes a `Program` of text. It lowers a kernel when somebody asks, for a template once an
instance; the records here are all that people's side (`module.py`) knows of C++.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir.definition import KernelOptions
from treadle.ir.nodes import Kernel
from treadle.ir.signature import DeclaredParameter, Signature
from treadle.ir.types import Type


@dataclass(frozen=True, slots=True)
class WrittenParameter:
    """A kernel's parameter as the file has it: `type` is text, such as "const T *"."""

    name: str
    type: str

    def __str__(self) -> str:
        return declaration(self.type, self.name)


def declaration(type: str, name: str) -> str:
    """A declaration in C++.

    >>> declaration("const float*", "x"), declaration("int", "n"), declaration("int", "")
    ('const float *x', 'int n', 'int')
    """
    whole = type.rstrip("*& ")
    return f"{whole} {type[len(whole) :].strip()}{name}".rstrip()


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A template's parameter. `type` is that of a value, as text; `default`, too."""

    name: str
    kind: Literal["type", "value"]
    type: str = ""
    default: str | None = None

    def __str__(self) -> str:
        written = f"{'typename' if self.kind == 'type' else self.type} {self.name}"
        return written if self.default is None else f"{written} = {self.default}"


@dataclass(frozen=True, slots=True)
class KernelTemplate:
    """A `__global__` function: a template if it has template parameters.

    `name` is qualified with its namespaces ("ns::scale").
    """

    name: str
    span: Span
    parameters: tuple[WrittenParameter, ...]
    template: tuple[TemplateParameter, ...] = ()

    @property
    def needs_arguments(self) -> bool:
        """Whether there is no instance without template arguments."""
        return any(parameter.default is None for parameter in self.template)

    def example(self, type: str, value: str) -> str:
        """Template arguments that it might get, as few as it takes."""
        return ", ".join(
            type if one.kind == "type" else value for one in self.template if one.default is None
        )

    @property
    def head(self) -> str:
        """What C++ has before a template: "template <typename T, int N = 3>"; "" if it is none."""
        return f"template <{', '.join(map(str, self.template))}>" if self.template else ""

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        return f"{self.head} {self.name}({parameters})".lstrip()


@dataclass(frozen=True, slots=True)
class Symbol:
    """A `__constant__` or `__device__` variable of the file: `shape` () is no array. `initial` are
    its first bytes, None for zeros."""

    name: str
    space: Literal["constant", "device"]
    element: Type
    shape: tuple[int, ...] = ()
    initial: bytes | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Direct:
    """An argument, or a part of one, that is one parameter of the launch: its position."""

    position: int


@dataclass(frozen=True, slots=True)
class Split:
    """A struct with pointers in it, or an array of pointers, each field or item of which is a
    parameter of the launch, or is taken apart again. `type` is its C++ type, as text."""

    type: str
    parts: tuple[tuple[str | int, ArgumentLayout], ...]  # fields by name, items by number


ArgumentLayout: TypeAlias = Direct | Split


@dataclass(frozen=True, slots=True)
class KernelInstance:
    """A kernel whose types are known.

    Its `parameters` are those of a launch. A pointer is a `DeclaredPointer` to its element (Void
    for `void*`), the others are scalars, vectors and structs by value; an enum is its integer.
    `types` are their C++ types, as text. Where parameters in the file are structs with pointers in
    them, `written` are the file's, and `layouts` says which of the `parameters` each is. `uploaded`
    are large structs and arrays by value, by position with their types: a launch puts them into
    memory, and the kernel gets a pointer.

    `symbols` names the variables of the file that it uses: each is one more buffer behind the
    arguments, of that name and with one argument in the signature. `most_threads` is the block that
    `__launch_bounds__` allows.
    """

    name: str  # as a launch would name it: "reduce<float, 256>"
    parameters: tuple[DeclaredParameter, ...]
    types: tuple[str, ...]
    symbols: tuple[str, ...] = ()
    most_threads: int | None = None
    options: KernelOptions = field(default_factory=KernelOptions)
    span: Span = NOWHERE
    written: tuple[WrittenParameter, ...] = ()
    layouts: tuple[ArgumentLayout, ...] = ()
    uploaded: Mapping[int, Type] = field(default_factory=dict)
    warp_synchronous: bool = False  # its code counts on warps being in step

    @property
    def arguments(self) -> tuple[WrittenParameter, ...]:
        """Its parameters as a launch gives them."""
        if self.layouts:
            return self.written
        pairs = zip(self.parameters, self.types, strict=True)
        return tuple(WrittenParameter(parameter.name, type) for parameter, type in pairs)

    @property
    def declarations(self) -> str:
        """Its parameters in C++."""
        return ", ".join(map(str, self.arguments))


@dataclass(frozen=True, slots=True)
class Note:
    """A construct that a kernel has, and what became of it. `reason` says for "emulated" what by,
    for "warned" and "refused" why and what to do instead; "noted" is what may matter (an unknown
    header)."""

    kind: Literal["used", "emulated", "warned", "refused", "noted"]
    construct: str
    reason: str = ""
    span: Span = NOWHERE


class Program(Protocol):
    """A file of CUDA C++ with all that it includes."""

    @property
    def kernels(self) -> Mapping[str, KernelTemplate]:
        """Its kernels, in the order of the file, by qualified name."""

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        """Its `__constant__` and `__device__` variables, by qualified name."""

    @property
    def refused_symbols(self) -> Mapping[str, CompileError]:
        """Variables that there cannot be, and why: kernels that use one are refused."""

    @property
    def sources(self) -> Mapping[str, str]:
        """The texts of the user's files that were read, by the names that spans have."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be said of the file as a whole."""

    def instance(self, name: str, arguments: tuple[str, ...]) -> KernelInstance:
        """A kernel with its template arguments, each as C++ writes it ("float", "256").

        CompileError for arguments that the template does not take.
        """

    def lower(
        self, instance: KernelInstance, signature: Signature
    ) -> tuple[Kernel, tuple[Note, ...]]:
        """A kernel in IR, and what was met on the way. The signature has an argument for each
        parameter, then one for each symbol. CompileError for what cannot be done."""
