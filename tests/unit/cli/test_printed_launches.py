"""What `treadle kernels` prints is launched as its comment says: on the software Vulkan adapter,
whose subgroups have 8 threads, by plain wgpu."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest

from tests.support.wgsl import device
from treadle.cli.kernels import print_kernels
from treadle.core.dim3 import Dim3
from treadle.core.folding import fit_grid

Array = np.ndarray[Any, Any]
_STORED = {"i32": ("<i", int), "u32": ("<I", int), "f32": ("<f", float)}


def launched(text: str, inputs: list[Array], nbytes: int) -> bytes:
    """The last buffer after a launch of printed WGSL by what its comment says of it."""
    import wgpu

    found = re.search(r"grid (\(.+?\)), block", text)
    size = re.search(r"^// Numbers, a block of (\d+) bytes:", text, re.MULTILINE)
    entry = re.search(r"@compute.*?fn (\w+)\(", text, re.DOTALL)
    assert found is not None
    assert size is not None
    assert entry is not None
    block = bytearray(-(-int(size[1]) // 16) * 16)
    for at, stored, value in re.findall(r"^//   at +(\d+)  \S+ +(\w+) = (\S+)", text, re.MULTILINE):
        form, kind = _STORED[stored]
        struct.pack_into(form, block, int(at), kind(value))
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    contents = [one.tobytes() for one in inputs] + [b"\xff" * nbytes]
    padded = [one + b"\0" * (-len(one) % 16) for one in contents]
    buffers = [device().create_buffer_with_data(data=one, usage=usage) for one in padded]
    uniform = device().create_buffer_with_data(data=block, usage=wgpu.BufferUsage.UNIFORM)
    module = device().create_shader_module(code=text)
    pipeline = device().create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": entry[1]}
    )
    encoder = device().create_command_encoder()
    step = encoder.begin_compute_pass()
    step.set_pipeline(pipeline)
    for group, members in enumerate((buffers, [uniform])):
        entries = [{"binding": i, "resource": {"buffer": one}} for i, one in enumerate(members)]
        layout = pipeline.get_bind_group_layout(group)
        step.set_bind_group(group, device().create_bind_group(layout=layout, entries=entries))
    step.dispatch_workgroups(*map(int, found[1].strip("()").split(",")))
    step.end()
    device().queue.submit([encoder.finish()])
    return bytes(device().queue.read_buffer(buffers[-1]))[:nbytes]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def rms_norm(x: Array, weight: Array) -> Array:
    epsilon = np.finfo(np.float32).eps
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight


CASES = {
    "softmax": ("5x77", [(5, 77)], softmax),
    "layer-norm": ("3x131", [(3, 131), (131,), (131,)], layer_norm),
    "rms-norm": ("4x33", [(4, 33), (33,)], rms_norm),
    "gemv": ("7x129", [(7, 129), (129,)], np.matmul),
    "gemm": ("33x35x37", [(33, 37), (37, 35)], np.matmul),
    "swiglu": ("3x41", [(3, 41), (3, 41)], lambda gate, up: gate / (1 + np.exp(-gate)) * up),
}


@pytest.mark.parametrize("name", CASES)
def test_wgsl_needs_no_subgroups_of_a_size(name):
    sizes, shapes, expected = CASES[name]
    rng = np.random.default_rng()
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    (text,) = print_kernels(name, "f32", sizes, None, None, "wgsl", None).texts.values()
    assert "Needs" not in text
    wanted = expected(*(one.astype(float) for one in inputs))
    got = np.frombuffer(launched(text, inputs, wanted.size * 4), np.float32).reshape(wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["quantized", "softmax", "rms-norm", "gemm-bias-residual"])
def test_what_a_text_needs_is_said(name):
    for text in print_kernels(name, None, None, None, None, "wgsl", None).texts.values():
        assert "subgroup" not in text
        assert ("// Needs the feature shader-f16." in text) == ("enable f16;" in text)
    for text in print_kernels(name, None, None, None, None, "msl", None).texts.values():
        assert ("// Needs SIMD groups of 32 threads" in text) == ("simd" in text)


def test_ptx_says_which_cards_take_it():
    (text,) = print_kernels("gemm", None, None, None, "90a", "ptx", None).texts.values()
    assert "// For compute capability 9.0 alone: no other card takes this text." in text
    assert "(elements of A)" in text
    (text,) = print_kernels("gemm", None, None, None, "90", "ptx", None).texts.values()
    assert "// Cards of compute capability 8.0 and newer take it" in text
    assert "(loads, each of 4 elements, of A)" in text


@pytest.mark.parametrize(
    ("name", "size", "target", "sm", "most"),
    [
        ("gemm", "10000000x64x64", "ptx", "80", (2**31 - 1, 65535, 65535)),
        ("gemm-naive", "10000000x8x8", "ptx", "75", (2**31 - 1, 65535, 65535)),
        ("gemm-naive", "10000000x8x8", "cuda", "90", (2**31 - 1, 65535, 65535)),
        ("gemm-tiled", "10000000x64x64", "wgsl", None, (65535, 65535, 65535)),
        ("softmax", "70001x3", "wgsl", None, (65535, 65535, 65535)),
    ],
)
def test_grids_are_printed_as_devices_take_them(name, size, target, sm, most):
    (text,) = print_kernels(name, "f32", size, None, sm, target, None).texts.values()
    shown = re.search(r"grid \((\d+), (\d+), (\d+)\), block", text)
    assert shown is not None
    grid = tuple(map(int, shown.groups()))
    whole = [int(each) for each in re.findall(r"grid\.\d +i32 = (\d+)", text)]
    assert all(part <= limit for part, limit in zip(grid, most, strict=True))
    if whole:
        assert grid == fit_grid(Dim3(*whole), Dim3(*most), True)
        assert f"The grid of ({', '.join(map(str, whole))}) blocks is folded" in text
    else:
        assert "is folded" not in text
    assert name == "softmax" or np.prod([float(part) for part in grid]) >= np.prod(whole) > 65535
    if target in ("ptx", "cuda"):
        assert f"cuLaunchKernel(kernel, {', '.join(map(str, grid))}, " in text


def test_a_folded_launch_computes_all_rows():
    """More rows of blocks than a device takes along an axis."""
    rng = np.random.default_rng()
    x = rng.standard_normal((70001, 3)).astype(np.float32)
    (text,) = print_kernels("softmax", "f32", "70001x3", None, None, "wgsl", None).texts.values()
    got = np.frombuffer(launched(text, [x], x.nbytes), np.float32).reshape(x.shape)
    np.testing.assert_allclose(got, softmax(x.astype(float)), rtol=1e-5, atol=1e-6)
