"""A front end of CUDA C++ whose kernels are in Python, for tests of what happens around it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import treadle as td
from treadle.core.errors import CompileError, CompileErrors
from treadle.core.source import Span
from treadle.cuda_cpp.program import (
    KernelInstance,
    KernelTemplate,
    Linked,
    Note,
    Symbol,
    TemplateParameter,
    WrittenParameter,
)
from treadle.ir import types as t
from treadle.ir.signature import DeclaredParameter, DeclaredPointer
from treadle.lang.lower import lower_kernel
from treadle.lang.source import function_from_text, source_of

__all__ = ["SYMBOLS", "Fake", "td"]  # the kernels' text has td in it

POINT = t.Struct("Point", (t.Field("x", t.F32), t.Field("tag", t.I32)))
FLOAT2 = t.Vector(t.F32, 2)
FLOAT3 = t.Vector(t.F32, 3)
FLOAT4 = t.Vector(t.F32, 4)


def pointer(element, spelling):
    return DeclaredPointer(element, spelling)


FLOATS = pointer(t.F32, "float *")
# name: (parameters as (name, declared, C++ type), variables it uses, text in Python)
KERNELS = {
    "scale": (
        [("x", FLOATS, "float *"), ("factor", t.F32, "float"), ("n", t.I32, "int")],
        [],
        "i = td.grid(1)\nif i < n:\n    x[i] = x[i] * factor",
    ),
    "sizes": (
        [("p", pointer(t.VOID, "const void *"), "const void *"), ("out", FLOATS, "float *")],
        [],
        "out[0] = td.f32(p.size)",
    ),
    "quads": (
        [("q", pointer(FLOAT4, "float4 *"), "float4 *"), ("n", t.I32, "int")],
        [],
        "i = td.grid(1)\nif i < n:\n    v = q[i]\n    v.w = v.x + 1.0\n    q[i] = v",
    ),
    "points": (
        [("p", pointer(POINT, "Point *"), "Point *"), ("by", POINT, "Point")],
        [],
        "i = td.grid(1)\nif i < p.size:\n    p[i].x = p[i].x + by.x\n    p[i].tag = by.tag",
    ),
    "place": (
        [("out", FLOATS, "float *"), ("at", FLOAT3, "float3"), ("on", t.BOOL, "bool")],
        [],
        "if on:\n    out[0] = at.x\n    out[1] = at.y\n    out[2] = at.z",
    ),
    "narrow": (
        [("out", pointer(t.I32, "int *"), "int *"), ("a", t.U8, "unsigned char"),
         ("b", t.U32, "unsigned int")],
        [],
        "out[0] = td.i32(a)\nout[1] = td.i32(b)",
    ),
    "polynomial": (
        [("x", FLOATS, "float *")],
        ["coeff", "count"],
        "i = td.grid(1)\nif i < x.size:\n    x[i] = coeff[0] + coeff[1] * x[i]\n"
        "    td.atomic_add(count, 0, 1)",
    ),
    "bounded": ([("x", FLOATS, "float *")], [], "x[0] = 1.0"),
}  # fmt: skip
SYMBOLS = {
    "coeff": Symbol("coeff", "constant", t.F32, (2,), np.float32([1, 2]).tobytes()),
    "count": Symbol("count", "device", t.I32),
    "table": Symbol("table", "constant", POINT, (2, 2)),
    "eye": Symbol("eye", "constant", FLOAT3),
}


class Fake:
    """A front end whose kernels are in Python."""

    sources = {"fake.cu": "__global__ void refused() {\n    goto away;\n}\n"}
    notes = (Note("noted", "#include <strange.h>", "it is not known, and nothing needs it"),)
    symbols = SYMBOLS
    references: ClassVar[dict[str, Span]] = {}
    linked: ClassVar[dict[str, Linked]] = {}
    refused_symbols = {"pointer": CompileError("pointer is a pointer", Span("fake.cu", 2, 1, 2))}

    def __init__(self):
        self.lowered = []
        self.kernels = {
            name: KernelTemplate(
                name,
                Span("fake.cu", 10 * at, 1, 2),
                tuple(WrittenParameter(one[0], one[2]) for one in KERNELS[name][0]),
            )
            for at, name in enumerate(KERNELS, 1)
        }
        self.kernels["refused"] = KernelTemplate("refused", Span("fake.cu", 1, 1, 2), ())
        self.kernels["filled"] = KernelTemplate(
            "filled",
            Span("fake.cu", 90, 1, 2),
            (WrittenParameter("x", "T *"),),
            (TemplateParameter("T", "type"), TemplateParameter("N", "value", "int", "3")),
        )
        self.kernels["inner::deep"] = KernelTemplate(
            "inner::deep", Span("fake.cu", 95, 1, 2), (WrittenParameter("x", "float *"),)
        )

    def instance(self, name, arguments):
        if name == "filled":
            kinds = {"float": t.F32, "int": t.I32}
            if arguments[0] not in kinds:
                raise CompileError(f"no type {arguments[0]}", Span("fake.cu", 2, 5, 9))
            element = kinds[arguments[0]]
            n = arguments[1] if len(arguments) > 1 else "3"
            parameter = DeclaredParameter("x", pointer(element, f"{arguments[0]} *"))
            full = f"filled<{arguments[0]}, {n}>"
            return KernelInstance(full, (parameter,), (f"{arguments[0]} *",))
        if name == "refused":
            return KernelInstance(name, (), ())
        if name == "inner::deep":
            return KernelInstance(name, (DeclaredParameter("x", FLOATS),), ("float *",))
        parameters, symbols, _ = KERNELS[name]
        declared = tuple(DeclaredParameter(one[0], one[1]) for one in parameters)
        types = tuple(one[2] for one in parameters)
        most = 64 if name == "bounded" else None
        return KernelInstance(name, declared, types, tuple(symbols), most)

    def needed_variables(self, kernel, signature):
        return ()

    def variable(self, name, arguments):
        return None

    def lower(self, instance, signature):
        self.lowered.append(instance.name)
        name = instance.name.partition("<")[0]
        if name == "refused":
            raise CompileErrors(
                [
                    CompileError("goto has no place in structured code", Span("fake.cu", 2, 5, 9)),
                    CompileError("another", Span("fake.cu", 3, 1, 2)),
                ]
            )
        names = [one.name for one in instance.parameters] + list(instance.symbols)
        if name == "filled":
            count = instance.name.rstrip(">").rpartition(", ")[2]
            text = f"for i in range({count}):\n    x[i] = x[i] + x[i]"
        elif name == "inner::deep":
            name, text = "deep", "x[0] = 7.0"
        else:
            text = KERNELS[name][2]
        lines = "\n".join(f"    {line}" for line in text.splitlines())
        function = function_from_text(
            f"def {name}({', '.join(names)}):\n{lines}\n", None, globals()
        )
        kernel = lower_kernel(function, source_of(function), signature, instance.options)
        used = Note("used", "blockIdx", span=Span("fake.cu", 12, 3, 4))
        again = Note("used", "blockIdx", span=Span("fake.cu", 14, 3, 4))
        how = Note("emulated", "__shfl_sync", "through shared memory", Span("fake.cu", 11, 1, 2))
        return kernel, (used, again, how)
