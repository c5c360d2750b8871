"""The records of what wgpu-native and Dawn do in their own way, held against the libraries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.dawn import dawn_device
from tests.unit.drivers.test_webgpu_native import INCREMENT, block, download, upload
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.drivers.webgpu_native import WebgpuBackend, dawn, dawn_backend, matrix_units
from treadle.drivers.webgpu_native import native as native_module
from treadle.drivers.webgpu_native.dawn import DAWN
from treadle.drivers.webgpu_native.native import load
from treadle.drivers.webgpu_native.provider import MatrixUnit, Provider
from treadle.drivers.webgpu_native.wgpu_native import WGPU_NATIVE

PROVIDERS = [WGPU_NATIVE, DAWN]
# As `DeviceInfo` has them.
FEATURES = {
    "float16", "float64", "int64", "subgroups", "tensor_cores", "timestamps", "float_atomics",
    "int64_atomics", "device_fences", "unified_memory",
}  # fmt: skip
# Names that the libraries' headers spell otherwise than by camel case.
SPELLED = {"shader-f16": "ShaderF16", "shader-f64": "ShaderF64", "shader-int64": "ShaderInt64"}


def by_name(provider: Provider) -> str:
    return provider.name


@pytest.mark.parametrize("provider", PROVIDERS, ids=by_name)
def test_feature_numbers_are_the_librarys(provider: Provider) -> None:
    lib = load(provider).lib
    for name, number in provider.features.items():
        words = "".join(word.capitalize() for word in name.split("-"))
        spellings = [
            f"{prefix}_{SPELLED.get(name, words)}"
            for prefix in ("WGPUFeatureName", "WGPUNativeFeature")
        ]
        (known,) = [getattr(lib, spelling) for spelling in spellings if hasattr(lib, spelling)]
        assert known == number, name


@pytest.mark.parametrize("provider", PROVIDERS, ids=by_name)
def test_shared_numbers_are_the_librarys(provider: Provider) -> None:
    lib = load(provider).lib
    for name in ("MapRead", "MapWrite", "CopySrc", "CopyDst", "Uniform", "Storage", "QueryResolve"):
        ours = "".join(f"_{c}" if c.isupper() else c for c in name).lstrip("_").upper()
        assert getattr(native_module, ours) == getattr(lib, f"WGPUBufferUsage_{name}")
    apis = {"D3D12": "d3d12", "Metal": "metal", "Vulkan": "vulkan", "OpenGL": "gl"}
    for name, api in apis.items():
        assert native_module.API_NAMES[getattr(lib, f"WGPUBackendType_{name}")] == api
    assert lib.WGPUErrorType_Validation == native_module.VALIDATION_ERROR
    assert lib.WGPUErrorType_OutOfMemory == native_module.OUT_OF_MEMORY_ERROR


@pytest.mark.parametrize("provider", PROVIDERS, ids=by_name)
def test_features_need_what_the_library_is_asked_for(provider: Provider) -> None:
    assert set(provider.needs) <= FEATURES
    for name, needed in provider.needs.items():
        assert provider.features.keys() >= set(needed), name


def test_dawn_knows_each_toggle_at_its_stage() -> None:
    native = load(DAWN)
    function, ffi = native.lib.wgpu_dawn_all_toggles, native.ffi
    count = function(native.null, native.null, native.null, 0)
    names, texts = ffi.new("const char *[]", count), ffi.new("const char *[]", count)
    stages = ffi.new("int[]", count)
    function(names, texts, stages, count)
    known = {ffi.string(names[i]).decode(): stages[i] for i in range(count)}
    for stage, toggles in enumerate([
        dawn._INSTANCE,
        dawn._ADAPTER,
        dawn._DEVICE + dawn._UNCHECKED + dawn._CHECKED + dawn._DEVICE_WITHOUT,
    ]):  # fmt: skip
        for toggle in toggles:
            assert known[toggle] == stage, toggle


def test_element_types_are_dawns() -> None:
    lib = load(DAWN).lib
    for number, element in dawn._ELEMENTS.items():
        name = f"WGPUSubgroupMatrixComponentType_{element.upper()}"
        assert getattr(lib, name) == number


def test_a_library_that_is_not_there_lists_nothing_and_says_what_brings_it() -> None:
    def missing() -> None:
        raise ImportError("No module named 'wgpudawn'")

    backend = WebgpuBackend(replace(DAWN, load=missing))
    assert backend.list_devices() == []
    assert 'pip install "treadle[dawn]"' in backend.why_none()


def test_both_libraries_work_side_by_side() -> None:
    dawn_device()  # sees to it that there is one
    backends = (WebgpuBackend(), dawn_backend())
    opened = [backend.open(backend.list_devices()[0]) for backend in backends]
    kernels = [device.compile(INCREMENT) for device in opened]
    streams = [device.default_stream for device in opened]
    buffers = [upload(stream, np.zeros(100, np.uint32)) for stream in streams]
    for step in range(300):
        for stream, kernel, buffer in zip(streams, kernels, buffers, strict=True):
            stream.launch(kernel, Dim3(2), (buffer,), block("II", 100, step))
    for stream, buffer in zip(streams, buffers, strict=True):
        np.testing.assert_array_equal(download(stream, buffer, 100), np.full(100, 44850))
    for device in opened:
        device.close()


# ---------------------------------------------------------------------- tensor cores

PRODUCT = """
@group(0) @binding(0) var<storage, read> left: array<f32>;
@group(0) @binding(1) var<storage, read> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<f32>;
@compute @workgroup_size(32)
fn multiply(@builtin(local_invocation_index) lane: u32) {
  for (var at = lane; at < 8u * 4u; at += 32u) {
    for (var i = 0u; i < 16u; i++) {
      result[at] += left[at / 4u * 16u + i] * right[i * 4u + at % 4u] * FACTOR;
    }
  }
}
"""


def test_only_units_that_multiply_right_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Software drivers have no tensor cores, so ordinary code stands in for them here."""
    dawn_device()
    backend = dawn_backend()
    device = backend.open(backend.list_devices()[0])
    check_code = matrix_units.check_code
    factors = {"f32": "1.0", "f16": "2.0", "i32": "no_number"}  # right, wrong, does not compile

    def stand_in(unit: MatrixUnit, subgroup: int) -> object:
        code = check_code(replace(unit, input="f32"), 32)
        return replace(code, source=PRODUCT.replace("FACTOR", factors[unit.result]))

    monkeypatch.setattr(matrix_units, "check_code", stand_in)
    monkeypatch.setitem(matrix_units._DTYPES, "f16", np.float32)
    monkeypatch.setitem(matrix_units._DTYPES, "i32", np.float32)
    claimed = tuple(MatrixUnit(8, 4, 16, "f32", result) for result in ("f16", "f32", "i32"))
    assert matrix_units.working_units(device, claimed) == claimed[1:2]
    # A device that claims some and has none that work takes no code for them.
    device.info = replace(device.info, features=device.info.features | {"tensor_cores"})
    device.try_matrix_units(claimed[:1])
    assert device.matrix_units() == ()
    assert "tensor_cores" not in device.info.features
    code = replace(INCREMENT, requires=frozenset({"tensor_cores"}))
    with pytest.raises(UnsupportedOnTarget, match="tensor_cores"):
        device.compile(code)
    device.info = replace(device.info, features=device.info.features | {"tensor_cores"})
    device.try_matrix_units(claimed)
    device.compile(code)
    assert device.matrix_units() == claimed[1:2]
    device.close()


@pytest.mark.parametrize(
    ("factor", "total"),
    [("f16", "f16"), ("f16", "f32"), ("f32", "f32"), ("u8", "u32"), ("i8", "i32")],
)
def test_tint_takes_the_code_that_tries_a_unit(factor: str, total: str) -> None:
    from tests.support.tint import tint_error

    unit = MatrixUnit(16, 8, 32, factor, total)  # type: ignore[arg-type]
    assert tint_error(matrix_units.check_code(unit, 128).source) is None
