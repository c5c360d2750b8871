"""The WGSL module under construction: what the parts of the printer share and add to."""

from __future__ import annotations

import math
from collections.abc import Sequence

from treadle.codegen.wgsl import literals, matrix_parts
from treadle.codegen.wgsl.dialects import DIALECTS, Dialect
from treadle.codegen.wgsl.helpers import HELPERS, called
from treadle.codegen.wgsl.names import Names, is_reserved, mangle
from treadle.codegen.wgsl.options import WgslOptions
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.source import NOWHERE, Span
from treadle.ir.opaque import ELEMENTS
from treadle.ir.types import Array, Scalar, Struct, Type, Vector, Void

# The type that a value of each scalar type has in a register. Narrow integers are kept extended,
# narrow floats rounded; float16 is native where the device has it.
_REGISTERS = {
    "bool": "bool", "i8": "i32", "i16": "i32", "i32": "i32", "u8": "u32", "u16": "u32",
    "u32": "u32", "i64": "i64", "u64": "u64", "bf16": "f32", "f32": "f32", "f64": "f64",
}  # fmt: skip
_FEATURES = {"i64": "int64", "u64": "int64", "f64": "float64"}
_INSTEAD = {
    "int64": "use 32-bit integers, or a device that has it (features in `treadle devices`)",
    "float64": "use float32, or a device that has it (features in `treadle devices`)",
    "float16": "use float32, or a device that has it (features in `treadle devices`)",
    "subgroups": "exchange values through shared memory, or use a device that has it",
    "int64_atomics": "use 32-bit atomics, or a device that has it",
    "device_fences": "use atomics or a second kernel, or a device that has it",
}


# What literals cannot say: the bits in float32 and in float64.
_SPECIAL_BITS = {
    "nan": ("0x7fc00000u", "0x7ff8000000000000lu"),
    "infinity": ("0x7f800000u", "0x7ff0000000000000lu"),
    "negative_infinity": ("0xff800000u", "0xfff0000000000000lu"),
    "negative_zero": ("0x80000000u", "0x8000000000000000lu"),
}


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "infinity" if value > 0 else "negative_infinity"
    return "negative_zero" if value == 0 and math.copysign(1.0, value) < 0 else None


class Module:
    """Collects the declarations, helpers and features that the printed bodies need."""

    def __init__(self, options: WgslOptions, threads: int) -> None:
        self.options = options
        self.threads = threads  # invocations that run a block
        self.dialect: Dialect = DIALECTS[options.dialect]
        self.unit = options.matrix_unit
        self.names = Names()
        for name in HELPERS:
            self.names.avoid(name)
        self.available = options.features & self.dialect.features
        self.required: set[str] = set()
        self.native_f16 = "float16" in self.available
        self.globals: list[str] = []  # private variables, in order
        self.functions: dict[object, str] = {}  # helpers by what they are for: their text
        self.builtins: dict[str, str] = {}  # entry point parameters by name: their declaration
        self.private_builtins: set[str] = set()  # builtins that functions read too
        self.ones: set[str] = set()  # where `unknown_one` is used
        self._structs: dict[Struct, str] = {}
        self.struct_texts: list[str] = []
        self._hidden: dict[tuple[str, str], str] = {}
        self._function_names: dict[object, str] = {}

    # --- features --------------------------------------------------------------------------------

    def require(self, feature: str, what: str, span: Span = NOWHERE, type: str = "") -> None:
        """Note that the text uses a feature; UnsupportedOnTarget if the device has it not. `type`
        is the scalar type that needs it, if it is a type."""
        if feature not in self.available:
            instead = _INSTEAD.get(feature, "use a device that has it")
            error = UnsupportedOnTarget(
                f"{what} needs the feature {feature!r}, which this WebGPU device "
                f"({self.dialect.name}) does not have; {instead}",
                span,
            )
            error.missing = type
            raise error
        self.required.add(feature)

    def headers(self) -> list[str]:
        """The lines at the top of the text that say what it uses."""
        used = (
            line for name in sorted(self.required) for line in self.dialect.headers.get(name, ())
        )
        lines = list(dict.fromkeys(used))
        return sorted(lines, key=lambda line: not line.startswith("enable"))

    # --- types -----------------------------------------------------------------------------------

    def scalar_register(self, type: Scalar, span: Span = NOWHERE) -> str:
        """The WGSL type that holds a scalar in a register."""
        if type.name == "f16":
            if self.native_f16:
                self.required.add("float16")
            return "f16" if self.native_f16 else "f32"
        if feature := _FEATURES.get(type.name):
            self.require(feature, f"the type {type.name}", span, type.name)
        return _REGISTERS[type.name]

    def register(self, type: Type, span: Span = NOWHERE) -> str:
        """The WGSL type that holds a value in a variable."""
        match type:
            case Scalar():
                return self.scalar_register(type, span)
            case Vector():
                return f"vec{type.count}<{self.scalar_register(type.element, span)}>"
            case Array():
                return f"array<{self.register(type.element, span)}, {type.length}>"
            case Struct():
                if self.unit is not None and type in ELEMENTS:
                    return matrix_parts.register(type, self.unit)
                return self.struct(type, span)
            case Void():
                raise AssertionError("void is no value")

    def struct(self, type: Struct, span: Span = NOWHERE) -> str:
        """The name of a struct's declaration, which is added if it is new."""
        if type not in self._structs:
            members = [
                f"    {mangle_field(field.name)}: {self.register(field.type, span)},"
                for field in type.fields
            ]
            name = self.names.fresh(type.name)
            self._structs[type] = name
            if not members:
                members = ["    nothing: u32,"]
            self.struct_texts.append("\n".join([f"struct {name} {{", *members, "}"]))
        return self._structs[type]

    def is_rounded(self, type: Type) -> bool:
        """Whether values of a type are float32 in registers, rounded to fewer bits."""
        element = type.element if isinstance(type, Vector) else type
        if not isinstance(element, Scalar):
            return False
        return element.name == "bf16" or (element.name == "f16" and not self.native_f16)

    # --- constants -------------------------------------------------------------------------------

    def literal(self, value: bool | int | float, type: Scalar, span: Span = NOWHERE) -> str:
        """A constant. What is not finite, and -0.0, comes from bits in a variable: compilers
        refuse it as a constant expression, or fold it wrongly."""
        register = self.scalar_register(type, span)
        if type.kind == "bool":
            return "true" if value else "false"
        if type.is_integer:
            return literals.integer(int(value), type)
        value = float(value)
        name = _special(value)
        if name is None:
            return literals.real(value, register)
        single, double = _SPECIAL_BITS[name]
        if register == "f64":
            return f"bitcast<f64>({self._variable(f'{name}64_bits', 'u64', double)})"
        text = f"bitcast<f32>({self._variable(f'{name}_bits', 'u32', single)})"
        return f"f16({text})" if register == "f16" else text

    def hidden(self, value: bool | int | float, type: Scalar, span: Span = NOWHERE) -> str:
        """A constant that compilers do not evaluate with: they refuse what overflows."""
        text = self.literal(value, type, span)
        if "bitcast" in text:
            return text
        return self._variable("constant", self.scalar_register(type), text)

    def _variable(self, name: str, register: str, value: str) -> str:
        """A number from a variable. The variable is a function's: one of the module's would count
        as different for each thread, and a barrier could not hang on anything made of it."""
        key = (register, value)
        if key not in self._hidden:
            self._hidden[key] = made = self.names.fresh(name)
            self.globals.append(
                f"fn {made}() -> {register} {{\n"
                f"    var value: {register} = {value};\n"
                "    return value;\n"
                "}"
            )
        return f"{self._hidden[key]}()"

    def zero(self, type: Type) -> str:
        """The zero value of a type."""
        if isinstance(type, Scalar):
            return self.literal(False if type.kind == "bool" else 0, type)
        return f"{self.register(type)}()"

    # --- functions -------------------------------------------------------------------------------

    def helper(self, key: object, name: str) -> tuple[str, bool]:
        """The name of the helper function for `key`, and whether its text is still to be added
        (with `add`); `name` is a wish."""
        new = key not in self._function_names
        if new:
            self._function_names[key] = self.names.fresh(name)
        return self._function_names[key], new

    def add(self, key: object, text: str) -> None:
        """Add a helper's text."""
        self.functions[key] = text

    def builtin(self, name: str, declaration: str) -> None:
        """Make a built-in value a parameter of the entry point."""
        self.builtins.setdefault(name, declaration)

    def unknown_one(self, in_entry: bool) -> str:
        """Two float64 that are 1, which compilers cannot know."""
        for name in ("workgroup_id", "num_workgroups"):
            self.builtin(name, f"@builtin({name}) {name}: vec3<u32>")
        self.ones.add("entry" if in_entry else "function")
        return "unknown_one"

    def fixed_helpers(self, texts: list[str]) -> list[str]:
        """The texts of the fixed helpers that these texts call, directly or through another."""
        found: dict[str, None] = {}
        waiting = list(texts)
        while waiting:
            for name in called(waiting.pop(0)):
                if name not in found:
                    found[name] = None
                    waiting.append(HELPERS[name])
        return [HELPERS[name].strip("\n") for name in HELPERS if name in found]


def giving(
    value: str, guard: str, zero: str, register: str, first: Sequence[str] = ()
) -> list[str]:
    """The lines of a function's body that gives a value where a guard holds ("" for always), and
    else zero. It is left at one place (`ir.passes.returns.with_one_return` says why); `first` are
    lines that the value needs."""
    if not guard:
        return [*first, f"    return {value};", "}"]
    return [
        f"    var result: {register} = {zero};",
        f"    if ({guard}) {{",
        *(f"    {line}" for line in first),
        f"        result = {value};",
        "    }",
        "    return result;",
        "}",
    ]


def mangle_field(name: str) -> str:
    """The name of a struct's member."""
    name = mangle(name)
    return f"{name}_" if is_reserved(name) else name
