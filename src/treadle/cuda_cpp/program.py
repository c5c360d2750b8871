"""The records through which the front end and the launching of kernels know each other.

`load` makes a `Program` of a text. It lowers a kernel on demand, a template once for each instance.
`module.py` and its neighbours know nothing else of C++.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir.definition import KernelOptions
from treadle.ir.nodes import Kernel
from treadle.ir.signature import DeclaredParameter, Signature
from treadle.ir.types import Type

LEVELS = 64  # how deep functions may call themselves, unless cuda_module gets another number


@dataclass(frozen=True, slots=True)
class WrittenParameter:
    """A kernel's parameter as the file declares it: `type` is text, such as "const T *"."""

    name: str
    type: str

    def __str__(self) -> str:
        return declaration(self.type, self.name)


def declaration(type: str, name: str) -> str:
    """A declaration as C++ text.

    >>> declaration("const float*", "x"), declaration("int", "n"), declaration("int", "")
    ('const float *x', 'int n', 'int')
    >>> declaration("float (*)(int)", "f"), declaration("float(int)", "f")
    ('float (*f)(int)', 'float f(int)')
    """
    if type.endswith(")") and not type.startswith("decltype"):  # of functions
        head, mark, rest = type.partition("(*)(")
        if mark:
            return f"{head}(*{name})({rest}"
        head, _, rest = type.partition("(")
        return f"{head} {name}({rest}"
    whole = type.rstrip("*& ")
    return f"{whole} {type[len(whole) :].strip()}{name}".rstrip()


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A template parameter. `type` is the type of a value, as text, like `default`."""

    name: str
    kind: Literal["type", "value"]
    type: str = ""
    default: str | None = None
    pack: bool = False

    def __str__(self) -> str:
        kind = "typename" if self.kind == "type" else self.type
        written = f"{kind}{'...' * self.pack} {self.name}"
        return written if self.default is None else f"{written} = {self.default}"


@dataclass(frozen=True, slots=True)
class KernelTemplate:
    """A `__global__` function: a template if it has template parameters.

    `name` is qualified with its namespaces ("ns::scale"). If several kernels of a file have the
    same name, it ends in the types of the parameters: "ns::scale(float*, int)".
    """

    name: str
    span: Span
    parameters: tuple[WrittenParameter, ...]
    template: tuple[TemplateParameter, ...] = ()

    @property
    def plain(self) -> str:
        """The name without parameters' types and namespaces."""
        return self.name.partition("(")[0].partition("<")[0].rpartition("::")[2]

    @property
    def unqualified(self) -> str:
        """The name with parameters' types, without namespaces and spaces."""
        head, _, types = self.name.partition("(")
        return (head.rpartition("::")[2] + ("(" + types if types else "")).replace(" ", "")

    def is_called(self, name: str) -> bool:
        """Whether a name means this kernel, if there is no other one that it means."""
        short = name.replace(" ", "")
        whole = self.name.replace(" ", "")
        return short in (self.plain, self.unqualified, whole, whole.partition("(")[0])

    def takes(self, count: int) -> bool:
        """Whether the kernel takes so many template arguments."""
        least = sum(one.default is None and not one.pack for one in self.template)
        most = sum(not one.pack for one in self.template)
        return least <= count and (count <= most or len(self.template) > most)

    @property
    def needs_arguments(self) -> bool:
        """Whether an instance needs template arguments."""
        return any(one.default is None and not one.pack for one in self.template)

    def example(self, type: str, value: str) -> str:
        """Template arguments for an example: those without a default."""
        return ", ".join(
            type if one.kind == "type" else value for one in self.template if one.default is None
        )

    @property
    def head(self) -> str:
        """The head of a template: "template <typename T, int N = 3>"; "" for other functions."""
        return f"template <{', '.join(map(str, self.template))}>" if self.template else ""

    def __str__(self) -> str:
        parameters = ", ".join(map(str, self.parameters))
        return f"{self.head} {self.name}({parameters})".lstrip()


@dataclass(frozen=True, slots=True)
class Symbol:
    """A `__constant__` or `__device__` variable of the file. `shape` is () if it is not an array.
    `initial` are its initial bytes, None for zeros."""

    name: str
    space: Literal["constant", "device"]
    element: Type
    shape: tuple[int, ...] = ()
    initial: bytes | None = None
    paired: Type | None = None  # the element with doubles, where `element` has pairs of floats
    span: Span = NOWHERE
    of_template: bool = False  # an instance, which the module has when something asks for it


@dataclass(frozen=True, slots=True)
class Linked:
    """A `__constant__` or `__device__` variable with pointers in it, whose value the host keeps.
    `shape` is () if it is not an array, and `type` its C++ type, as text. `zero` is the value of an
    element that is zeros, as the host writes it."""

    name: str
    space: Literal["constant", "device"]
    element: Type
    shape: tuple[int, ...]
    type: str
    zero: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Direct:
    """An argument, or a part of one, that is one parameter of the launch: its position."""

    position: int


@dataclass(frozen=True, slots=True)
class Split:
    """A struct with pointers in it, or an array of pointers, which is passed in parts: each field
    or item is a parameter of the launch, or is split again. `type` is its C++ type, as text."""

    type: str
    parts: tuple[tuple[str | int, ArgumentLayout], ...]  # fields by name, items by number


@dataclass(frozen=True, slots=True)
class Again:
    """What pointers point to, if that are elements of a table that leads to them: its position."""

    position: int


@dataclass(frozen=True, slots=True)
class PointerSlot:
    """Pointers in the elements of an array, whose type is `owner`: the members that lead there, and
    what is passed for what they point to. Messages call it `words`. What a `fixed` one points to is
    const. `number` is that array's number in pointers in memory, and `lasting` are the variables of
    the file that the pointers may point into, too."""

    owner: Type
    path: tuple[str, ...]
    layout: ArgumentLayout | Again
    words: str
    fixed: bool
    many: bool  # whether the member is an array of `count` pointers
    count: int = 1
    number: int = 0
    lasting: tuple[str, ...] = ()
    in_union: bool = False  # so that the bytes may be those of another member


@dataclass(frozen=True, slots=True)
class Table:
    """A pointer to pointers, or to structs with pointers in them: an array of `element`, in which
    each pointer is an offset in one array with all that they point to. `type` is its C++ type, as
    text; the caller passes a sequence of arrays, or of structs. `number` is what pointers into this
    array have in memory. `length` is that of an array by
    value, which no kernel changes."""

    type: str
    position: int
    element: Type
    slots: tuple[PointerSlot, ...]
    number: int = 0
    length: int | None = None


def number_of_memory(key: str) -> int:
    """The number of a memory in pointers that are kept in memory. It depends on nothing but the
    name, so all kernels of a file have the same one for a variable, or for what the pointers in a
    class point to. 0 is for null."""
    return zlib.crc32(key.encode()) & 0x7FFFFFFF or 1


@dataclass(frozen=True, slots=True)
class Within:
    """A pointer to elements of a table that an earlier argument has, as structs of this kind point
    to each other: its parameter is the place of the element, in bytes, -1 for null."""

    type: str
    position: int
    table: Table


ArgumentLayout: TypeAlias = Direct | Split | Table | Within


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a kernel reads a texture: a filter, what happens outside on each axis (x, y, z), and
    whether coordinates are from 0 to 1. `channels` is the length of the array's last axis if it may
    be that of a texel's numbers, else 0. One that is `null` has no array, and is read as zeros. The
    first axis of an image with several `levels` is that of its smaller copies, between which
    `between` chooses. `srgb`: bytes are read as floats that are linear in light. A `seamless` cube
    is interpolated across the edges of its faces."""

    filter: Literal["point", "linear"] = "point"
    address: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    normalized: bool = False
    channels: int = 0
    null: bool = False
    levels: int = 1
    between: Literal["point", "linear"] = "point"
    srgb: bool = False
    seamless: bool = False


@dataclass(frozen=True, slots=True)
class KernelInstance:
    """A kernel whose types are known.

    Its `parameters` are those of a launch. A pointer is a `DeclaredPointer` to its element (Void
    for `void*`); the others are scalars, vectors and structs by value, and an enum is its integer.
    `types` are their C++ types, as text. If parameters in the file are structs with pointers in
    them, `written` are the file's parameters, and `layouts` maps each to `parameters`. `uploaded`
    are large structs and arrays by value, by position with their types: a launch writes them to
    memory, and the kernel gets a pointer.

    `symbols` names the variables of the file that it uses: each is a buffer after the arguments,
    of that name and with one argument in the signature. `most_threads` is the largest block that
    `__launch_bounds__` allows.
    """

    name: str  # with template arguments: "reduce<float, 256>"
    parameters: tuple[DeclaredParameter, ...]
    types: tuple[str, ...]
    symbols: tuple[str, ...] = ()
    most_threads: int | None = None
    options: KernelOptions = field(default_factory=KernelOptions)
    span: Span = NOWHERE
    written: tuple[WrittenParameter, ...] = ()
    layouts: tuple[ArgumentLayout, ...] = ()
    uploaded: Mapping[int, Type] = field(default_factory=dict)
    narrowed: tuple[int, ...] = ()  # pointers to doubles that are floats, by position
    # Types of parameters with doubles that are pairs of floats, by position, as the caller sees
    # them: with doubles. `parameters` have them with pairs.
    paired: Mapping[int, Type] = field(default_factory=dict)
    # The numbers that stand for functions, by name, of parameters that point to functions.
    functions: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    # The texture references of the file that it uses: the last ones of `parameters`.
    references: tuple[str, ...] = ()
    # The variables of the file with pointers in them: the last ones of `layouts`.
    linked: tuple[str, ...] = ()
    # How the textures among its parameters are read, by position; () before a launch says so.
    sampling: tuple[Sampling | None, ...] = ()
    warp_synchronous: bool = False  # its code expects the threads of a warp in step
    waits_for_grid: bool = False  # whether it may have barriers of the grid

    @property
    def arguments(self) -> tuple[WrittenParameter, ...]:
        """The parameters that the caller of a launch passes."""
        if self.layouts:
            return self.written
        pairs = zip(self.parameters, self.types, strict=True)
        return tuple(WrittenParameter(parameter.name, type) for parameter, type in pairs)

    @property
    def declarations(self) -> str:
        """Its parameters as C++ text."""
        return ", ".join(map(str, self.arguments))


def symbol_labels(instance: KernelInstance) -> tuple[str, ...]:
    """The names of a kernel's symbols as arguments of its launch: one may have the name of a
    parameter."""
    return own_labels([parameter.name for parameter in instance.parameters], instance.symbols)


def own_labels(taken: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Names of the file as arguments of a launch, different from those of its parameters."""
    return tuple(f"::{name}" if name in taken else name for name in names)


@dataclass(frozen=True, slots=True)
class QueuedKernel:
    """A kernel that a kernel launches: its name, template arguments as text, and the types of its
    arguments, None for pointers."""

    name: str
    arguments: tuple[str, ...]
    types: tuple[Type | None, ...]


@dataclass(frozen=True, slots=True)
class Queued:
    """All kernels that a kernel launches, and the names of the arguments of the launch that their
    pointers may point into; both are known by their places here."""

    kernels: tuple[QueuedKernel, ...] = ()
    arrays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A construct in a kernel, and how it was compiled. `reason` says what "emulated" ones are
    emulated by, and why one is "warned" of or "refused", with what to do instead. "noted" is what
    may matter, such as an unknown header."""

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
    def linked(self) -> Mapping[str, Linked]:
        """Its `__constant__` and `__device__` variables with pointers in them."""

    @property
    def references(self) -> Mapping[str, Span]:
        """Its texture references (`texture<float, 2> image;`), by qualified name."""

    @property
    def refused_symbols(self) -> Mapping[str, CompileError]:
        """Variables that are not supported, and why: kernels that use one are refused."""

    @property
    def sources(self) -> Mapping[str, str]:
        """The texts of the user's files that were read, by the file names in spans."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the file as a whole."""

    def instance(self, name: str, arguments: tuple[str, ...]) -> KernelInstance:
        """A kernel with its template arguments, each as C++ writes it ("float", "256").

        CompileError for arguments that the template does not take.
        """

    def needed_variables(self, kernel: KernelInstance, signature: Signature) -> tuple[str, ...]:
        """Variables of `symbols` that a kernel uses and does not name in its own: instances of
        variable templates, which only its lowering shows. Asked again, with these added, it has the
        next ones, and () when there are no more."""

    def variable(self, name: str, arguments: tuple[str, ...]) -> Symbol | None:
        """The instance of a variable template with these arguments, which is one of `symbols` from
        now on; None if there is no such template. CompileError for arguments that it does not
        take."""

    def queued(self, instance: KernelInstance) -> Queued:
        """What a kernel that was lowered launches."""

    def lower(
        self, instance: KernelInstance, signature: Signature
    ) -> tuple[Kernel, tuple[Note, ...]]:
        """A kernel in IR, and the notes on it. The signature has an argument for each parameter,
        then one for each symbol. CompileError for what is not supported."""
