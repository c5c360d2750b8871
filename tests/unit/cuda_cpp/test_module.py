"""Modules of CUDA C++ as people hold them: kernels, arguments, variables, reports.

The front end is stood in for by one that lowers kernels in Python: what is tested here is what
happens around it.
"""

from __future__ import annotations

import copy
import enum
import gc
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.support.cuda_program import SYMBOLS, Fake
from treadle.core.errors import CompileError, CompileErrors, DtypeError, LaunchError, ShapeError
from treadle.core.source import Span
from treadle.cuda_cpp.load import cuda_module
from treadle.cuda_cpp.module import CudaModule
from treadle.cuda_cpp.python_values import Mismatch, record_of
from treadle.cuda_cpp.template_arguments import as_written
from treadle.ir import types as t


@pytest.fixture
def module():
    return CudaModule(Fake(), "fake.cu")


def on(values, dtype=np.float32):
    return td.asarray(np.array(values, dtype=dtype), device="cpu")


# --- names ---------------------------------------------------------------------------------------


def test_kernels_are_attributes_in_the_order_of_the_file(module):
    assert module.kernels[:2] == ("scale", "sizes")
    assert module.scale is module.kernel("scale")
    assert "scale" in dir(module)
    assert "inner::deep" not in dir(module)
    assert module.deep is module.kernel("inner::deep")
    assert "scale(float *x, float factor, int n)" in repr(module)
    assert repr(module.scale) == ("<treadle CUDA C++ kernel scale(float *x, float factor, int n)>")


def test_a_wrong_name_lists_the_kernels(module):
    with pytest.raises(
        AttributeError, match=r"no kernel 'scales' \(did you mean scale\?\); it has"
    ):
        module.scales  # noqa: B018
    assert not hasattr(module, "absent")
    assert copy.copy(module).kernels == module.kernels


def test_templates_are_instantiated(module):
    words = r'template <typename T, int N = 3>.*module.kernel\("filled", td.f32\)'
    for use in (
        lambda: module.filled[1, 1],
        lambda: module.filled(td.f32),
        lambda: module.kernel("filled"),
    ):
        with pytest.raises(LaunchError, match=words):
            use()
    assert repr(module.filled) == (
        "<treadle CUDA C++ template <typename T, int N = 3> filled(T *x)>"
    )
    kernel = module.kernel("filled", td.f32, 2)
    assert kernel is module.kernel("filled", "float", np.int64(2))
    assert kernel.name == "filled<float, 2>"
    x = on([1, 2, 3])
    kernel[1, 1](x)
    assert x.tolist() == [2, 4, 3]
    x = on([1, 2, 3], np.int32)
    module.kernel("filled", td.i32)[1, 1](x)
    assert x.tolist() == [2, 4, 6]
    with pytest.raises(CompileError, match=r"(?s)no type Unknown.*goto away"):
        module.kernel("filled", "Unknown")
    with pytest.raises(LaunchError, match="scale is not a template"):
        module.kernel("scale", td.f32)


def test_template_arguments_as_cpp_writes_them():
    @td.struct
    class Particle:
        mass: td.f32

    cases = {
        td.f64: "double", td.u8: "unsigned char", np.float32: "float", "int": "int", float: "float",
        td.vec4[td.f32]: "float4", td.vec2[td.f16]: "__half2", td.vec3[td.u32]: "uint3",
        Particle: "Particle", False: "false", -3: "-3", bool: "bool", np.dtype("int16"): "short",
    }  # fmt: skip
    for given, written in cases.items():
        assert as_written(given) == written
    for bad in (2.5, None, td.complex64, td.vec3[td.f16], object()):
        with pytest.raises(DtypeError):
            as_written(bad)


# --- launches ------------------------------------------------------------------------------------


def test_launch_with_arrays_of_several_kinds(module):
    x = on([1, 2, 3, 4])
    module.scale[2, 2](x, 2.0, 3)
    assert x.tolist() == [2, 4, 6, 4]
    rows = on([[1, 2], [3, 4]])  # any number of dimensions
    module.scale[1, 4](rows, 2, 4)
    assert rows.tolist() == [[2, 4], [6, 8]]
    module.scale[(1, 1, 1), (2, 1), 0, None](x[2:], 10, 2)  # a view with an offset
    assert x.tolist() == [2, 4, 60, 40]
    host = np.ones(3, np.float32)
    with td.use_device("cpu"):
        module.scale[1, 3](host, 3, 3)
    assert host.tolist() == [3, 3, 3]


def test_the_lowering_happens_once_a_signature(module):
    x = on([1, 2, 3, 4])
    for block in (1, 2, 4):
        module.scale[4 // block, block](x, 2.0, 4)
    assert module._program.lowered == ["scale"]


def test_null_pointers(module):
    out = on([9])
    for null in (None, td.zeros(0, device="cpu")):
        module.sizes[1, 1](null, out)
        assert out.tolist() == [0]
    module.sizes[1, 1](on([1, 2], np.int64), out)  # void *: anything
    assert out.tolist() == [2]
    module.quads[1, 1](None, 0)


def test_pointers_to_vectors_take_flat_arrays(module):
    for shape in ((2, 4), (8,), (2, 2, 2)):
        x = td.reshape(on(range(8)), shape)
        module.quads[1, 2](x, 2)
        assert td.reshape(x, (8,)).tolist() == [0, 1, 2, 1, 4, 5, 6, 5]
    x = on(range(12))
    module.quads[1, 2](x[4:], 2)
    assert x.tolist()[4:] == [4, 5, 6, 5, 8, 9, 10, 9]
    module.quads[1, 1](on(range(8)), 1)
    with pytest.raises(LaunchError, match=r"argument q: 4 elements .* begins 2 elements into"):
        module.quads[1, 2](x[2:10], 2)
    with pytest.raises(LaunchError, match=r"argument q: 4 elements .* has 6 elements"):
        module.quads[1, 1](on(range(6)), 1)


def test_pointers_take_signed_for_unsigned_and_parts_of_complex_numbers(module):
    z = td.asarray(np.array([1 + 2j, 3 + 4j], np.complex64), device="cpu")
    module.scale[1, 4](z, 2, 3)
    assert z.tolist() == [2 + 4j, 6 + 4j]
    out = on([0, 0], np.uint32)
    module.narrow[1, 1](out, 5, 7)
    assert out.tolist() == [5, 7]


def test_structs_in_arrays_and_by_value(module):
    @td.struct
    class Point:
        x: td.f32
        tag: td.i32

    host = np.zeros(2, Point.dtype)
    host["x"] = [1, 2]
    record = np.zeros(1, np.dtype([("x", np.float32), ("tag", np.int32)], align=True))[0]
    record["x"], record["tag"] = 10, 4
    values = [Point(10, 4), (10, 4), [10.0, 4.0], {"tag": 4, "x": 10}, record, np.array([10, 4])]
    with td.use_device("cpu"):
        for count, value in enumerate(values, 1):
            module.points[1, 2](host, value)
            assert host["x"].tolist() == [1 + 10 * count, 2 + 10 * count]
            assert host["tag"].tolist() == [4, 4]
    for bad, words in {
        (1, 2, 3): "3 parts were given, where there are 2",
        (1, 2.5): r"for tag 2.5 was given, which is not a whole number",
        (1, 1 << 40): r"for tag 1099511627776 does not fit",
        3: "the number 3 was given",
        "text": "a str was given",
    }.items():
        with pytest.raises(
            DtypeError, match=rf"argument 2 \(by\) of kernel points is Point.*{words}"
        ):
            module.points[1, 2](host, bad)
    with pytest.raises(
        DtypeError, match=r"float64 was given, and Point is 8 bytes: x \(f32\) at 0, tag"
    ):
        module.points[1, 2](on([1], np.float64), (1, 2))
    with pytest.raises(
        DtypeError, match=r"tag is missing and y is none of its parts \(there are x, tag\)"
    ):
        module.points[1, 2](host, {"x": 1, "y": 2})


def test_what_c_leaves_free_is_nobodys_to_give():
    free = t.Field("padding.1.0", t.U32)
    aligned = t.Struct("Aligned", (t.Field("n", t.I32), free))
    union = t.Struct("Union", (t.Field("union.words", t.Array(t.U32, 1)),))
    empty = t.Struct("Empty", (t.Field("padding.0", t.U8),))
    whole = t.Struct(
        "Whole", (t.Field("a", aligned), t.Field("u", union), t.Field("nothing", empty))
    )
    made = record_of(whole, ((7,), np.float32(1.5), ()))
    assert made["a"]["n"] == 7
    assert made["u"]["union.words"].view(np.float32).tolist() == [1.5]
    made = record_of(whole, {"a": {"n": 8}, "u": b"\x01\x02\x00\x00", "nothing": {}})
    assert made["u"]["union.words"].tolist() == [0x201]
    for bad in (1.5, b"\x01", np.float64(1)):
        with pytest.raises(Mismatch, match=r"for u .* union of 4 bytes"):
            record_of(whole, ((7,), bad, ()))


def test_vectors_and_bools_by_value(module):
    out = on([0, 0, 0])
    for count, value in enumerate(
        [(1, 2, 3), [2, 3, 4], np.array([3, 4, 5]), td.vec3[td.f32](4, 5, 6)], 1
    ):
        module.place[1, 1](out, value, True)
        assert out.tolist() == [count, count + 1, count + 2]
    for off in (False, 0, 0.0, np.bool_(False)):
        module.place[1, 1](out, (7, 7, 7), off)
    assert out.tolist() == [4, 5, 6]
    module.place[1, 1](out, (7, 8, 9), 0.5)
    assert out.tolist() == [7, 8, 9]
    with pytest.raises(
        DtypeError, match=r"argument 2 \(at\) of kernel place is float3, but 2 parts"
    ):
        module.place[1, 1](out, (1, 2), True)


def test_numbers_are_converted_and_checked(module):
    class Mode(enum.IntEnum):
        FAST = 3

    out = on([0, 0], np.int32)
    for a, b in ((Mode.FAST, 4.0), (True, np.int64(5)), (np.float32(2), np.array(6))):
        module.narrow[1, 1](out, a, b)
        assert out.tolist() == [int(a), int(b)]
    for a, b, words in (
        (256, 0, r"argument 2 \(a\) of kernel narrow is unsigned char, but 256 does not fit"),
        (0, -1, r"argument 3 \(b\) of kernel narrow is unsigned int, but -1 does not fit"),
        (0, 1 << 32, r"is unsigned int, but 4294967296 does not fit"),
    ):
        with pytest.raises(LaunchError, match=words):
            module.narrow[1, 1](out, a, b)
    for b in (2.5, np.float64("nan"), 1j, "3", None, out, np.ones(2)):
        with pytest.raises(DtypeError, match=r"argument 3 \(b\) of kernel narrow is unsigned int"):
            module.narrow[1, 1](out, 1, b)
    assert out.tolist() == [2, 6]


def test_fast_mathematics(module):
    fast = CudaModule(Fake(), "fake.cu", fastmath=True)
    for one, expected in ((module, False), (fast, True)):
        assert one.scale.options.fastmath is expected
        assert one.scale.lower(one.scale.signature).kernel.fastmath is expected


def test_wrong_arguments_are_refused_in_words(module):
    x = on([1, 2])
    cases = [
        ((x, 2.0), r"scale takes 3 arguments \(float \*x, float factor, int n\), not 2"),
        ((2.0, 2.0, 3), r"argument 1 \(x\) of kernel scale is float \*, but the number 2.0 was"),
        (([1.0], 2.0, 3), r"is float \*, but a list was given: pass an array"),
        ((np.zeros(2, "f4,i4"), 2.0, 3), "an array of .* was given"),
        ((on([1], np.int32), 2.0, 3), r"argument 1 \(x\) .* float \*, but an array of int32 "),
        ((on([1], np.float64), 2.0, 3), "an array of float64 was given"),
        ((np.zeros((2, 4), np.float32)[:, :2], 2.0, 3), "ascontiguousarray"),
        ((td.zeros((4, 2), device="cpu").T, 2.0, 3), r"x\.contiguous\(\)"),
    ]
    for arguments, words in cases:
        with pytest.raises((LaunchError, DtypeError), match=words):
            module.scale[1, 2](*arguments)
    with pytest.raises(LaunchError, match=r"scale\[grid, block\]\(…\), where C\+\+ has scale<<<"):
        module.scale(x, 2.0, 2)
    with pytest.raises(
        LaunchError, match=r"block of \(65, 1, 1\) is 65 threads.*__launch_bounds__"
    ):
        module.bounded[1, 65]
    with pytest.raises(LaunchError, match="1 given"):
        module.scale[1]
    with td.interpret(), pytest.raises(LaunchError, match=r"td\.interpret"):
        module.scale[1, 2](x, 2.0, 2)
    assert x.tolist() == [1, 2]


# --- variables -----------------------------------------------------------------------------------


def test_variables_are_shared_by_kernels_and_read_back(module):
    x = on([1, 2, 3])
    module.polynomial[1, 4](x)
    assert x.tolist() == [3, 5, 7]
    assert module.constants["count"] == 3
    module.constants["coeff"] = [10, 0.5]
    module.constants["count"] = 100
    module.polynomial[1, 4](x)
    assert x.tolist() == [11.5, 12.5, 13.5]
    assert module.constants["count"] == 103
    assert module.constants["coeff"].tolist() == [10, 0.5]
    assert CudaModule(Fake(), "other").constants["count"] == 0  # a module has its own


def test_variables_are_one_a_device(module):
    for name, steps in (("cpu", 1), ("webgpu", 2)):
        x = td.asarray(np.float32([1, 2, 3]), device=name)
        for _ in range(steps):
            module.polynomial[1, 4](x)
    gpu = td.device("webgpu").id
    with pytest.raises(LaunchError, match=r"count has a value of its own .* constants.on\('cpu'\)"):
        module.constants["count"]
    assert module.constants.on("cpu")["count"] == 3
    assert module.constants.on(gpu)["count"] == 6
    module.constants.on(gpu)["count"] = 50
    assert (module.constants.on("cpu")["count"], module.constants.on(gpu)["count"]) == (3, 50)
    module.constants["coeff"] = (5, 0)
    for name in ("cpu", gpu):
        x = td.asarray(np.float32([1]), device=name)
        module.polynomial[1, 1](x)
        assert x.tolist() == [5]
    assert module.constants["coeff"].tolist() == [5, 0]


@pytest.mark.parametrize("name", ["cpu", "webgpu"])
def test_a_recording_does_not_set_variables_anew(module, name):
    x = td.zeros(3, device=name).realize()
    graph = td.Graph(name)
    with graph.capture():
        module.polynomial[1, 4](x)
    graph.replay()
    graph.replay()
    assert x.tolist() == [3, 3, 3]
    module.constants["coeff"] = [0, 1]
    graph.replay()
    assert x.tolist() == [3, 3, 3]
    assert module.constants["count"] == 9


def test_variables_go_with_their_module():
    device = td.device("cpu")
    module = cuda_module("""
        __device__ float large[1 << 20];
        __global__ void touch(float *out) { large[threadIdx.x] = 1; out[0] = large[0]; }
    """)
    out = td.zeros(1, device="cpu").realize()
    gc.collect()
    before = device.memory_stats()["used"]
    module.touch[1, 1](out)
    assert device.memory_stats()["used"] - before >= 4 << 20
    del module
    gc.collect()
    assert device.memory_stats()["used"] - before < 4 << 20


def test_a_closed_device_gets_its_variables_anew(module):
    for _ in range(2):
        x = on([1, 2, 3])
        module.constants["coeff"] = [10, 1]
        module.polynomial[1, 4](x)
        module.quads[1, 1](None, 0)
        assert x.tolist() == [11, 12, 13]
        assert module.constants["count"] == 3
        del x
        td.device("cpu").close()


def test_variables_of_structs_and_vectors(module):
    constants = module.constants
    assert list(constants) == list(SYMBOLS)
    assert constants["eye"].tolist() == [0, 0, 0]
    constants["eye"] = (1, 2, 3)
    assert constants["eye"].tolist() == [1, 2, 3]
    constants["table"] = [[(1, 2), (3, 4)], [{"x": 5, "tag": 6}, (7, 8)]]
    assert constants["table"]["x"].tolist() == [[1, 3], [5, 7]]
    constants["table"] = constants["table"]
    assert constants["table"]["tag"].tolist() == [[2, 4], [6, 8]]
    with pytest.raises(ValueError, match="read-only"):
        constants["eye"][0] = 1


def test_wrong_values_of_variables_are_refused_in_words(module):
    constants = module.constants
    for name, value, error, words in (
        ("coeff", [1, 2, 3], ShapeError, r"__constant__ coeff is f32\[2\] of shape \(2,\), but.*3"),
        ("coeff", 1.0, ShapeError, r"shape \(\)"),
        ("coeff", ["a", "b"], DtypeError, "a list was given"),
        ("coeff", [[1], [1, 2]], DtypeError, "inhomogeneous"),
        ("count", 1 << 31, DtypeError, "2147483648 does not fit"),
        ("count", 1.5, DtypeError, "whole number"),
        ("table", [(1, 2), (3, 4), (5, 6)], ShapeError, "3 were given along axis 0"),
        ("eye", [1, 2], DtypeError, "2 parts were given"),
    ):
        with pytest.raises(error, match=words):
            constants[name] = value
    with pytest.raises(KeyError, match=r"^no __constant__ or __device__ variable 'absent'; there"):
        constants["absent"]
    with pytest.raises(KeyError):
        constants["absent"] = 1
    assert "absent" not in constants
    with pytest.raises(CompileError, match="pointer is a pointer"):
        constants["pointer"] = 1
    assert "pointer" not in list(constants)
    with pytest.raises(TypeError):
        del constants["eye"]


# --- sources and reports -------------------------------------------------------------------------


def test_source_of_every_target(module):
    for target in ("wgsl", "cuda", "ptx", "msl", "llvm", "ir"):
        assert "polynomial" in module.polynomial.source(target, block=64)
    assert "@workgroup_size(64" in module.bounded.source("wgsl")
    with pytest.raises(
        CompileError, match=r"(?s)^2 errors\n\nfake.cu:2:5: goto.*goto away;\n.*fake.cu:3"
    ):
        module.refused.source("wgsl")


def test_report(module):
    module.kernel("filled", td.f32)
    report = module.report("wgsl")
    scale = report["scale"]
    assert [note.construct for note in scale.used] == ["blockIdx", "blockIdx"]
    assert [note.reason for note in scale.emulated] == ["through shared memory"]
    assert [note.span.line for note in report["refused"].refused] == [2, 3]
    assert [one.name for one in report][-2:] == ["filled<float, 3>", "inner::deep"]
    hidden = [note.construct for note in report["polynomial"].emulated]
    assert hidden == ["__constant__ coeff", "__device__ count", "__shfl_sync"]
    text = str(report)
    assert (
        "fake.cu:10 scale\n  used      blockIdx (12, 14)\n  emulated  line 11: __shfl_sync: thr"
        in text
    )
    assert "refused   line 2: goto has no place" in text
    assert "#include <strange.h>: it is not known" in text
    assert CudaModule(Fake(), "f.cu").report()["filled"].needs_arguments


# --- sources of modules --------------------------------------------------------------------------


def test_text_that_names_a_file_gets_a_hint(tmp_path):
    path = tmp_path / "kernels"
    path.write_text("")
    for name in ("saxpy.cu", str(path)):
        with pytest.raises(CompileError, match=r"write td.cuda_module\(pathlib.Path\("):
            cuda_module(name)
    with pytest.raises(td.errors.TreadleError, match="there is no file"):
        cuda_module(Path("absent.cu"))
    with pytest.raises(TypeError, match=r"text or a pathlib\.Path, not bytes"):
        cuda_module(b"x")
    with pytest.raises(td.errors.TreadleError, match="include: there is no folder"):
        cuda_module("", include=["absent"])
    with pytest.raises(CompileError, match="'2X' is not a name for a macro"):
        cuda_module("", defines={"2X": 1})
    with pytest.raises(TypeError, match="X is a list"):
        cuda_module("", defines={"X": []})


def test_several_errors_in_one():
    first = CompileError("one", Span("a.cu", 1, 1, 2))
    both = CompileErrors([first, CompileError("two", Span("a.cu", 2, 3, 4))])
    assert (both.line, both.message, len(both.errors)) == (1, "one", 2)
    shown = str(both.with_source("first\nsecond\n"))
    assert shown.startswith("2 errors\n\na.cu:1:1: one\n    1 | first\n")
    assert "a.cu:2:3: two\n    2 | second\n" in shown
    assert str(CompileErrors([first])) == str(first)
    assert str(copy.copy(both)) == shown


# --- real files whose types are odd ---------------------------------------------------------------


def test_one_name_is_another_struct_in_another_file():
    out = td.zeros(1, device="cpu")
    kernel = "__global__ void k(P *p, float *o) { o[0] = p[1].x; }"
    for text, values, expected in (
        ("struct P { float x; };", [1, 2], 2),
        ("struct P { float y, x; };", [1, 2, 3, 4], 4),
        ("struct __align__(16) P { float y, x; };", None, 6),
    ):
        module = cuda_module(f"{text} {kernel}")
        if values is None:
            array = np.zeros(2, [("y", "f4"), ("x", "f4"), ("unused", "u4", 2)])
            array["x"] = [5, 6]
        else:
            array = on(values)
        module.k[1, 1](array, out)
        assert out.tolist() == [expected]


VAST = {
    "nested": "struct S0 { int a; };"
    + "".join(f"struct S{at} {{ S{at - 1} a; }};" for at in range(1, 200))
    + "__device__ S199 x;",
    "doubled": "struct S0 { int a; };"
    + "".join(f"struct S{at} {{ S{at - 1} a, b; }};" for at in range(1, 60))
    + "__device__ S59 x;",
    "inherited": "struct S0 {};struct T0 {};"
    + "".join(
        f"struct S{at} : S{at - 1}, T{at - 1} {{}};struct T{at} : S{at - 1}, T{at - 1} {{}};"
        for at in range(1, 60)
    )
    + "__device__ S59 x;",
    "large": "__device__ float x[1ll << 40];",
    "by value": "struct P { float x[1 << 20]; }; __device__ int x; __global__ void other(P p) {}",
}


@pytest.mark.parametrize("case", VAST)
def test_vast_types_are_refused(case):
    module = cuda_module(VAST[case] + "__global__ void k(int *o) { o[0] = sizeof(x); }")
    name = "other" if case == "by value" else "k"
    with pytest.raises(CompileError, match=r"more than 4,096 fields|bytes, and"):
        getattr(module, name)[1, 1]


MASK = "template <class T> __constant__ T mask[2]; __global__ void k() {}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "mask",
            r'mask is a template of variables: say which instance, as in constants\["mask<flo',
        ),
        ("mask<nothing>", "nothing is not a known type"),
        ("mask<int, 2>", "2 template arguments"),
        ("other<int>", "no __constant__ or __device__ variable 'other<int>'"),
    ],
)
def test_instances_of_variables_that_are_none(name, words):
    module = td.cuda_module(MASK)
    with pytest.raises((CompileError, KeyError), match=words):
        module.constants[name]


def test_the_value_of_an_instance_is_checked():
    module = td.cuda_module(MASK)
    with pytest.raises(DtypeError, match=r"__constant__ mask<int> is i32\[2\], but 1.5 was"):
        module.constants["mask<int>"] = [1.5, 2]
