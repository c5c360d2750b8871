"""The text under construction: what the parts of a printer share and add to."""

from __future__ import annotations

import math
from collections.abc import Callable

from treadle.codegen.c_family import literals
from treadle.codegen.c_family.language import Helper, Language
from treadle.codegen.c_family.names import Names, mangle
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import F32, SCALARS, U32, Array, Scalar, Struct, Type, Vector, Void


class Module:
    """Collects the types, helpers and features that the printed bodies need."""

    def __init__(self, language: Language, kernel: n.Kernel) -> None:
        self.language = language
        self.block = kernel.block or Dim3()
        self.fastmath = kernel.fastmath
        self.exchanges = False  # threads read from device memory what others wrote there
        self.names = Names(language.reserved, declared=language.declared)
        self.required: set[str] = set()
        self.helpers: dict[object, str] = {}  # texts of helper functions, callees first
        self.types: dict[object, str] = {}  # texts of declared types, in order
        self.builtins: dict[str, str] = {}  # what the entry point is handed, by name
        self.print_function: Callable[[Module, str, n.Function], str] | None = None
        self._type_names = self.names.inner()
        for body in (kernel.body, *(function.body for function in kernel.functions)):
            for node in walk(body):
                if isinstance(node, n.Variable):  # which would hide a type of its name
                    self._type_names.avoid(mangle(node.name))
        self._structs: dict[Struct, str] = {}
        self._fields: dict[Struct, dict[str, str]] = {}
        self._commented: set[str] = set()

    # --- types -----------------------------------------------------------------------------------

    def scalar(self, type: Scalar, node: n.Expression | None = None) -> str:
        """The type of a scalar in a variable."""
        self.language.allow(self, type, node)
        if type.name in self.language.structs:
            self.helper_type(type.name)
        return self.language.scalars[type.name]

    def helper_type(self, name: str) -> None:
        """Declare the struct that a 16-bit float is."""
        if name not in self.types:
            text = self.language.helpers[f"type {name}"].text
            self.types[name] = text.format(fn=self.language.function)

    def register(self, type: Type, node: n.Expression | None = None) -> str:
        """The type of a value in a variable."""
        match type:
            case Scalar():
                return self.scalar(type, node)
            case Vector():
                self.scalar(type.element, node)
                return self.language.vector(self, type)[0]
            case Struct():
                return self.struct(type)
            case Void():
                return "void"
        raise AssertionError("an array is no value")

    def stored(self, type: Type) -> str:
        """The type of a value in memory: a bool is a byte there, in which any bit counts."""
        if isinstance(type, Scalar) and type.kind == "bool":
            return self.language.scalars["u8"]
        if isinstance(type, Vector):
            self.scalar(type.element)
            return self.language.vector(self, type)[1]
        return self.register(type)

    def differs_in_memory(self, type: Type) -> bool:
        """Whether a value's type in memory is another than in a variable."""
        return isinstance(type, (Scalar, Vector)) and self.stored(type) != self.register(type)

    def declaration(self, type: Type, name: str) -> str:
        """A member or variable in memory: `float history[4]`."""
        if isinstance(type, Array):
            return self.declaration(type.element, f"{name}[{type.length}]")
        return f"{self.stored(type)} {name}"

    def struct(self, type: Struct) -> str:
        """The name of a struct, which is declared if it is new."""
        if self.language.opaque is not None:
            own = self.language.opaque(self, type)
            if own is not None:
                return own
        if type not in self._structs:
            names = self.names.inner()
            fields = self._fields[type] = {f.name: names.fresh(f.name) for f in type.fields}
            members = [f"    {self.declaration(f.type, fields[f.name])};" for f in type.fields]
            name = self._structs[type] = self._type_names.fresh(type.name)
            self.types[type] = "\n".join([f"struct {name} {{", *members, "};"])
        return self._structs[type]

    def field(self, type: Type, name: str) -> str:
        """The name of a component or field."""
        if not isinstance(type, Struct):
            return name
        self.struct(type)
        return self._fields[type][name]

    # --- constants -------------------------------------------------------------------------------

    def literal(self, value: bool | int | float, type: Scalar) -> str:
        """A constant."""
        self.scalar(type)
        if type.kind == "bool":
            return "true" if value else "false"
        if type.is_integer:
            return literals.integer(int(value), type, dict(self.language.suffixes))
        return self.real(float(value), type)

    def real(self, value: float, type: Scalar) -> str:
        if type.name in self.language.structs or type.bits == 16:
            return self._half(value, type)
        if math.isfinite(value):
            return literals.single(value) if type.bits == 32 else literals.double(value)
        name = "nan" if math.isnan(value) else "inf"
        text = self.language.special[name, type.name]
        if text in self.language.helpers:
            text = f"{self.helper(text)}()"
        return f"-{text}" if value < 0 else text

    def _half(self, value: float, type: Scalar) -> str:
        if math.isfinite(value) and type.name not in self.language.structs:
            return literals.half(value) + "h"
        text = self.real(value, F32)
        if type.name not in self.language.structs:
            return f"{self.language.scalars[type.name]}({text})"
        return f"{self.helper(f'to_{self.scalar(type)}')}({text})"

    def zero(self, type: Type) -> str:
        """The zero value of a type."""
        if isinstance(type, Scalar):
            return self.literal(False if type.kind == "bool" else 0, type)
        return f"{self.register(type)}{{}}"

    # --- functions -------------------------------------------------------------------------------

    def helper(self, name: str, type: Scalar | None = None, source: Scalar | None = None) -> str:
        """A helper's name as it is called; its text, for these types, is added if it is new."""
        helper = self._find(name, type)
        called = name.format(name=type.name if type else "")
        key = (name, type, source)
        if key in self.helpers:
            return called
        for other in helper.uses:
            used, colon, of = other.partition(":")
            self.helper(used, (SCALARS[of] if of else None) if colon else type)
        text = helper.text.format(**self._words(type, source))
        if helper.comment and name not in self._commented:
            text = f"// {helper.comment}\n{text}"
        self._commented.add(name)
        self.helpers[key] = text
        return called

    def _find(self, name: str, type: Scalar | None) -> Helper:
        """The helper for a type: its own, or the one for its kind, or the one for all."""
        found = self.language.helpers
        if type is not None:
            for special in (f"{name} {type.name}", f"{name} {type.kind}"):
                if special in found:
                    return found[special]
        return found[name]

    def _words(self, type: Scalar | None, source: Scalar | None) -> dict[str, object]:
        words: dict[str, object] = {
            "fn": self.language.function,
            "bits_of": self.language.bitcasts["f32", "u32"].format("sum"),
            "float_of": self.language.bitcasts["u32", "f32"].format("bits"),
        }
        if type is None:
            return words
        words |= {"T": self.scalar(type), "bits": type.bits, "name": type.name}
        words["U32"] = self.scalar(U32)
        if type.is_integer:
            digits = type.bits - type.is_signed
            low = -(1 << digits) if type.is_signed else 0
            words["U"] = self.scalar(Scalar(f"u{type.bits}", "uint", type.bits))
            words |= {
                "max": self.literal((1 << digits) - 1, type),
                "min": self.literal(low, type),
            }
            if source is not None:
                words["S"] = self.scalar(source)
                words |= {
                    "high": self.real(float(1 << digits), source),
                    "low": self.real(float(low), source),
                }
        return words

    def function(self, key: object, name: str, function: n.Function) -> str:
        """The name of a function made here, in IR; its text is added if it is new. Functions of
        one name differ by the types of their parameters."""
        if key not in self.helpers:
            assert self.print_function is not None
            text = self.print_function(self, name, function)
            self.helpers[key] = text
        return name
