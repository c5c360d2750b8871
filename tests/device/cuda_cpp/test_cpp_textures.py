"""Textures and surfaces beside NumPy: filters, address modes, layers, layouts of texels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, LaunchError

MODULE = td.cuda_module("""
template <class T>
__device__ T read(cudaTextureObject_t image, float x, float y) { return tex2D<T>(image, x, y); }

__global__ void line(float *out, cudaTextureObject_t image, const float *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1D<float>(image, at[3 * i]);
}
__global__ void plane(float *out, cudaTextureObject_t image, const float *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = read<float>(image, at[3 * i], at[3 * i + 1]);
}
__global__ void volume(float *out, cudaTextureObject_t image, const float *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tex3D(&out[i], image, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
}
__global__ void layers(float *out, cudaTextureObject_t image, const float *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex2DLayered<float>(image, at[3 * i], at[3 * i + 1], i % 5 - 1);
}
__global__ void colours(float4 *out, cudaTextureObject_t image, const float *at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = read<float4>(image, at[3 * i], at[3 * i + 1]);
}
__global__ void bytes(uchar4 *out, cudaTextureObject_t image)
{
    out[threadIdx.x] = tex1Dfetch<uchar4>(image, (int)threadIdx.x - 1);
}
struct Pair { cudaTextureObject_t images[2]; float factor; };
__global__ void chosen(float *out, Pair pair, cudaTextureObject_t other)
{
    int i = threadIdx.x;
    cudaTextureObject_t image = i % 3 == 2 ? other : pair.images[i % 3];
    out[i] = pair.factor * tex1Dfetch<float>(image, i);
}
__global__ void write(cudaSurfaceObject_t to, cudaSurfaceObject_t from, int mode)
{
    int x = threadIdx.x - 1, y = blockIdx.x - 1;
    float2 value;
    if (mode == 1)
        value = surf2Dread<float2>(from, x * sizeof(float2), y, cudaBoundaryModeClamp);
    else
        surf2Dread(&value, from, x * sizeof(float2), y, cudaBoundaryModeZero);
    value.x += 1;
    surf2Dwrite(value, to, x * sizeof(float2), y);
}
texture<float, 2> image;
texture<short, cudaTextureType1D, cudaReadModeNormalizedFloat> signs;
texture<int2> doubles;
__global__ void references(float *out, double *halves, int n)
{
    int i = threadIdx.x;
    int2 words = tex1Dfetch(doubles, i);
    halves[i] = __hiloint2double(words.y, words.x) / 2;
    out[i] = tex2D(image, i + 0.5f, 1) + tex1Dfetch(signs, i);
}
__global__ void three(float *out, cudaTextureObject_t t) { out[0] = tex2D<float>(t, 0, 0); }
""")


def _axis(x: Any, extent: int, address: str, linear: bool, normalized: bool) -> Any:
    """The texels of a coordinate, and their weights."""
    if normalized:
        if address == "wrap":
            x = x - np.floor(x)
        if address == "mirror":
            whole = np.floor(x)
            x = np.where(whole % 2 != 0, 1 - (x - whole), x - whole)
        x = (x * np.float32(extent)).astype(np.float32)
    if linear:
        x = (x - np.float32(0.5)).astype(np.float32)
        weight = np.floor(256 * (x - np.floor(x)) + 0.5) / 256
    else:
        weight = np.zeros_like(x)
    first = np.floor(x).astype(int)
    found = []
    for at, share in ((first, 1 - weight), (first + 1, weight)):
        inside = (at >= 0) & (at < extent) if address == "border" else True
        at = at % extent if address == "wrap" else np.clip(at, 0, extent - 1)
        found.append((at, np.where(inside, share, 0)))
    return found


def _sampled(image: Any, at: Any, how: dict[str, Any]) -> Any:
    """Texels of an image (…, depth, height, width) at coordinates (x, y, z)."""
    modes = how.get("address", "clamp")
    modes = (modes,) * 3 if isinstance(modes, str) else modes
    linear, normalized = how.get("filter") == "linear", how.get("normalized", False)
    axes = [
        _axis(at[:, axis], extent, modes[axis], linear, normalized)
        for axis, extent in enumerate(image.shape[::-1])
    ]
    result = np.zeros(len(at))
    for choice in np.ndindex(*(2,) * len(axes)):
        picked = [axis[each] for axis, each in zip(axes, choice, strict=True)]
        weight = np.prod([share for _, share in picked], axis=0)
        index = tuple(place for place, _ in reversed(picked))
        result += np.where(weight == 0, 0, weight * image[index])
    return result


WAYS: list[dict[str, Any]] = [
    {"filter": "linear", "address": ("border", "clamp", "border")},
    {"normalized": True, "address": ("wrap", "mirror", "border")},
    {"normalized": True, "address": ("mirror", "wrap", "wrap"), "filter": "linear"},
]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_coordinates(device, rng, how):
    image = rng.normal(size=(3, 5, 7)).astype(np.float32)
    reach = 1 if how.get("normalized") else 7
    at = rng.uniform(-reach, 2 * reach, (64, 3)).astype(np.float32)
    at[:4, 0] = (0, reach, -0.0, reach / 2)
    with td.use_device(device):
        for kernel, given in (
            (MODULE.line, image[0, 0]), (MODULE.plane, image[0]), (MODULE.volume, image),
        ):  # fmt: skip
            out = np.full(64, np.nan, np.float32)
            kernel[2, 32](out, td.texture(given, **how), at)
            np.testing.assert_allclose(out, _sampled(given, at, how), rtol=1e-5, atol=1e-5)


def test_layers_and_texels_of_several_numbers(device, rng):
    image = rng.normal(size=(3, 4, 6)).astype(np.float32)
    at = rng.uniform(-1, 7, (32, 3)).astype(np.float32)
    bytes_ = rng.integers(0, 256, (4, 6, 4)).astype(np.uint8)
    halves = rng.normal(size=(4, 6, 4)).astype(np.float16)
    linear = {"filter": "linear"}
    with td.use_device(device):
        out = np.full(32, np.nan, np.float32)
        MODULE.layers[1, 32](out, td.texture(image, filter="linear"), at)
        layer = np.clip(np.arange(32) % 5 - 1, 0, 2)
        wanted = [_sampled(image[k], at[i : i + 1], linear)[0] for i, k in enumerate(layer)]
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)
        for texels, scale in (
            (bytes_, 255),
            (halves.astype(np.float32), 1),
            (halves, 1),
        ):
            out = np.full((32, 4), np.nan, np.float32)
            if texels.dtype == np.float16 and "float16" not in device.features:
                continue
            MODULE.colours[1, 32](out, td.texture(texels, filter="linear"), at)
            for k in range(4):
                wanted = _sampled(texels[..., k].astype(np.float64) / scale, at, linear)
                np.testing.assert_allclose(out[:, k], wanted, rtol=1e-5, atol=1e-5)
        fetched = np.full((26, 4), 7, np.uint8)
        MODULE.bytes[1, 26](fetched, bytes_)
        assert (fetched[1:25] == bytes_.reshape(-1, 4)).all()
        assert not fetched[0].any()
        assert not fetched[25].any()


def test_textures_are_chosen_at_run_time(device, rng):
    one, other, last = rng.normal(size=(3, 12)).astype(np.float32)
    out = np.full(12, np.nan, np.float32)
    at = np.arange(12)
    with td.use_device(device):
        MODULE.chosen[1, 12](out, {"images": [one, other], "factor": 2.0}, last)
        np.testing.assert_array_equal(out, 2 * np.choose(at % 3, [one, other, last]))
        MODULE.chosen[1, 12](out, {"images": [one, None], "factor": 1.0}, last[:5])
        wanted = np.choose(at % 3, [one, np.zeros(12), np.where(at < 5, last, 0)])
        np.testing.assert_array_equal(out, wanted.astype(np.float32))


@pytest.mark.parametrize("mode", [0, 1])
def test_surfaces(device, rng, mode):
    source = rng.normal(size=(4, 5, 2)).astype(np.float32)
    to = np.full((5, 6, 2), 9, np.float32)
    with td.use_device(device):
        MODULE.write[7, 8](to, source, mode)
    padded = np.pad(source, ((0, 1), (0, 1), (0, 0)), mode="edge" if mode else "constant")
    np.testing.assert_array_equal(to, padded + np.float32([1, 0]))


def test_references_of_the_file(device, rng):
    if "float64" not in device.features:  # the kernel has doubles
        return
    image = rng.normal(size=(3, 4)).astype(np.float32)
    signs = np.array([-32768, -32767, 1, 32767], np.int16)
    doubles = rng.normal(size=4)
    MODULE.textures.clear()
    out, halves = np.zeros(4, np.float32), np.zeros(4)
    with td.use_device(device):
        with pytest.raises(CompileError, match=r"reference image has no array: give it one before"):
            MODULE.references[1, 4](out, halves, 4)
        MODULE.textures.update(image=td.texture(image), signs=signs, doubles=doubles)
        MODULE.references[1, 4](out, halves, 4)
    np.testing.assert_allclose(out, image[1] + np.maximum(signs / 32767, -1), rtol=1e-6)
    np.testing.assert_array_equal(halves, doubles / 2)
    with pytest.raises(LaunchError, match=r"no texture reference 'img'; there are image, signs"):
        MODULE.textures["img"] = image


def test_refusals(device):
    out, image = np.zeros(1, np.float32), np.zeros((2, 3, 4), np.float32)
    with td.use_device(device):
        with pytest.raises(CompileError, match=r"reads a float as a texel, but 4 × f32 is one"):
            MODULE.three[1, 1](out, image)
        with pytest.raises(CompileError, match=r"shape \(height, width\), .* t has 1 dimension"):
            MODULE.three[1, 1](out, image[0, 0])
        with pytest.raises(CompileError, match=r"1 × f64 is one of t: pass an array"):
            MODULE.three[1, 1](out, np.zeros((2, 2)))
    with pytest.raises(LaunchError, match=r"address='wrap' needs coordinates from 0 to 1"):
        td.texture(image, address="wrap")
    with pytest.raises(LaunchError, match=r'filter is "point" or "linear", not .cubic.'):
        td.texture(image, filter="cubic")  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match=r"address is one of 'clamp', 'border', 'wrap', 'mirror'"):
        td.texture(image, address="edge")  # type: ignore[arg-type]
