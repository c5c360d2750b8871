"""Cubes, gathers, smaller copies of images and sRGB in textures, beside a model in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.device.cuda_cpp.test_cpp_textures import _sampled
from treadle.core.errors import CompileError, LaunchError

MODULE = td.cuda_module("""
#define AT const float *p = at + 4 * threadIdx.x; float x = p[0], y = p[1], z = p[2], w = p[3]
__global__ void cube(float *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = texCubemap<float>(t, x, y, z); }
__global__ void cubes(float *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = texCubemapLayered<float>(t, x, y, z, (int)w); }
__global__ void gather(float4 *out, cudaTextureObject_t t, const float *at, int component)
{ AT; out[threadIdx.x] = tex2Dgather<float4>(t, x, y, component); }
__global__ void gather_bytes(uchar4 *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = tex2Dgather<uchar4>(t, x, y); }
__global__ void lod(float *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = tex2DLod<float>(t, x, y, w); }
__global__ void lod3(float *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = tex3DLod<float>(t, x, y, z, w); }
__global__ void lod_layers(float2 *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = tex2DLayeredLod<float2>(t, x, y, (int)z, w); }
__global__ void grad(float *out, cudaTextureObject_t t, const float *at, float2 dx, float2 dy)
{ AT; out[threadIdx.x] = tex2DGrad<float>(t, x, y, dx, dy); }
__global__ void colours(float4 *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = tex2D<float4>(t, x, y); }
__global__ void line_layers(float *out, cudaTextureObject_t t, const float *at)
{ AT; out[threadIdx.x] = tex1DLayered<float>(t, x, (int)w); }
__global__ void surfaces(cudaSurfaceObject_t to, cudaSurfaceObject_t from, int n)
{
    int x = threadIdx.x - 1, k = blockIdx.x;
    int value = surf1DLayeredread<int>(from, 4 * x, k, cudaBoundaryModeClamp);
    surfCubemapwrite(10 * value, to, 4 * x, k, 5, cudaBoundaryModeZero);
    surf1DLayeredwrite(value + 1, from, 4 * x, k + 2);
}
texture<float, cudaTextureTypeCubemap> sky;
texture<unsigned char, 2, cudaReadModeNormalizedFloat> grey;
__global__ void references(float *out, float4 *four, const float *at)
{
    AT;
    out[threadIdx.x] = texCubemap(sky, x, y, z);
    four[threadIdx.x] = tex2Dgather(grey, x, y);
}
""")
N = 32


def _on_cube(at: Any) -> tuple[Any, Any]:
    """The faces of a cube in directions, and where on them."""
    face, where = [], []
    for x, y, z in at[:, :3].astype(np.float64):
        axis = 2 - int(np.argmax(np.abs([z, y, x])))  # at edges z, then y
        negative = int((x, y, z)[axis] < 0)
        s, t = (((-z, -y), (z, -y)), ((x, z), (x, -z)), ((x, -y), (-x, -y)))[axis][negative]
        face.append(2 * axis + negative)
        where.append([(s / abs((x, y, z)[axis]) + 1) / 2, (t / abs((x, y, z)[axis]) + 1) / 2])
    return np.array(face), np.float32(where)


def _at(rng: Any, low: float, high: float) -> Any:
    return rng.uniform(low, high, (N, 4)).astype(np.float32)


def test_cubes(device, rng):
    image, at = rng.normal(size=(12, 5, 5)).astype(np.float32), _at(rng, -1, 1)
    at[:, 3] = rng.integers(-2, 4, N)
    at[:4, :3] = [(1, 1, 0.3), (-1, 1, 1), (1, 0.2, -1), (-1, -1, -1)]
    face, where = _on_cube(at)
    out = np.full(N, np.nan, np.float32)
    with td.use_device(device):
        MODULE.cube[1, N](out, td.texture(image[:6]), at)
        wanted = [_sampled(image[f], where[i : i + 1], {"normalized": True})[0]
                  for i, f in enumerate(face)]  # fmt: skip
        near = np.abs(where * 5 - np.round(where * 5)).min(1) < 1e-4  # between two texels
        np.testing.assert_allclose(out[~near], np.array(wanted)[~near], rtol=1e-6)
        MODULE.cubes[1, N](out, td.texture(image, filter="linear"), at)
        layer = np.clip(at[:, 3].astype(int), 0, 1) * 6 + face
        how = {"normalized": True, "filter": "linear"}
        wanted = [_sampled(image[k], where[i : i + 1], how)[0] for i, k in enumerate(layer)]
        np.testing.assert_allclose(out, wanted, atol=0.04)  # a step of 1/256 between texels


def _across(image: Any, face: int, i: int, j: int) -> Any:
    """A texel of a cube; beyond an edge that of the next face."""
    n = image.shape[1]
    s, t = (2 * i + 1) / n - 1, (2 * j + 1) / n - 1
    sign = 1 - 2 * (face % 2)
    direction = ((sign, -t, -s * sign), (s, sign, t * sign), (s * sign, -t, sign))[face // 2]
    faces, where = _on_cube(np.array([direction]))
    x, y = np.minimum((where[0] * n).astype(int), n - 1)
    return float(image[faces[0], y, x])


def test_seamless_cubes(device, rng):
    n = 4
    image, at = rng.normal(size=(6, n, n)).astype(np.float32), _at(rng, -1, 1)
    at[:8, :3] = np.sign(at[:8, :3]) * rng.uniform(0.9, 1, (8, 3))
    wanted = []
    for face, (s, t) in zip(*_on_cube(at), strict=True):
        x, y = s * n - 0.5, t * n - 0.5
        i, j = int(np.floor(x)), int(np.floor(y))
        u, v = (np.floor(256 * (z - np.floor(z)) + 0.5) / 256 for z in (x, y))
        found: dict[tuple[int, int], Any] = {
            (a, b): None
            if not 0 <= i + a < n and not 0 <= j + b < n
            else _across(image, face, i + a, j + b)
            for a in (0, 1)
            for b in (0, 1)
        }
        known = [one for one in found.values() if one is not None]
        texel = {key: np.mean(known) if one is None else one for key, one in found.items()}
        rows = [(1 - u) * texel[0, b] + u * texel[1, b] for b in (0, 1)]
        wanted.append((1 - v) * rows[0] + v * rows[1])
    out = np.full(N, np.nan, np.float32)
    with td.use_device(device):
        MODULE.cube[1, N](out, td.texture(image, filter="linear", seamless=True), at)
    np.testing.assert_allclose(out, wanted, atol=0.04)  # a step of 1/256 between texels


def test_gathers(device, rng):
    image = rng.normal(size=(4, 6, 2)).astype(np.float32)
    at = _at(rng, -1, 7)
    out = np.full((N, 4), np.nan, np.float32)
    x0, y0 = (np.floor(np.floor(256 * (at[:, k] - np.float32(0.5)) + 0.5) / 256) for k in (0, 1))
    wanted = [[image[min(max(int(y), 0), 3), min(max(int(x), 0), 5)] for x, y in
               ((i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j))]
              for i, j in zip(x0, y0, strict=True)]  # fmt: skip
    with td.use_device(device):
        MODULE.gather[1, N](out, image, at, 1)
        np.testing.assert_array_equal(out, np.array(wanted)[..., 1])
        MODULE.gather[1, N](out, image, at, 3)  # which its texels do not have
        assert not out.any()
        bytes_ = rng.integers(0, 256, (4, 6)).astype(np.uint8)
        found = np.zeros((N, 4), np.uint8)
        MODULE.gather_bytes[1, N](found, td.texture(bytes_, address="border"), at)
        padded = np.pad(bytes_, 9)
        ways = ((0, 1), (1, 1), (1, 0), (0, 0))
        wanted = [[padded[int(j + b) + 9, int(i + a) + 9] for a, b in ways]
                  for i, j in zip(x0, y0, strict=True)]  # fmt: skip
        np.testing.assert_array_equal(found, wanted)


def _levels(rng: Any, shape: tuple[int, ...], kept: tuple[int, ...] = ()) -> list[Any]:
    return [
        rng.normal(size=[n if k in kept else max(n >> level, 1) for k, n in enumerate(shape)])
        .astype(np.float32)
        for level in range(4)
    ]  # fmt: skip


def _between(levels: list[Any], at: Any, lod: Any, how: dict[str, Any], linear: bool) -> Any:
    lod = np.clip(lod.astype(np.float64), 0, len(levels) - 1)
    if not linear:
        lod = np.floor(lod + 0.5)
    low = np.floor(lod).astype(int)
    share = np.floor(256 * (lod - low) + 0.5) / 256
    found = []
    for i in range(len(at)):
        one, other = (_sampled(levels[min(k, len(levels) - 1)], at[i : i + 1], how)[0]
                      for k in (low[i], low[i] + 1))  # fmt: skip
        found.append((1 - share[i]) * one + share[i] * other)
    return np.array(found)


@pytest.mark.parametrize("mip", ["point", "linear"])
def test_levels(device, rng, mip):
    at = _at(rng, 0, 1)
    at[:, 3] = rng.uniform(-1, 5, N)
    how: dict[str, Any] = {"filter": "linear", "normalized": True, "address": "wrap"}
    out, two = np.full(N, np.nan, np.float32), np.full((N, 2), np.nan, np.float32)
    plane, volume = _levels(rng, (6, 9)), _levels(rng, (3, 6, 9))
    layers = _levels(rng, (3, 6, 9, 2), (0, 3))
    linear = mip == "linear"
    with td.use_device(device):
        texture = td.texture(plane, mip_filter=mip, **how)
        MODULE.lod[1, N](out, texture, at)
        wanted = _between(plane, at, at[:, 3], how, linear)
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
        MODULE.grad[1, N](out, texture, at, (0.1, 0.4), (-0.3, 0.2))
        lod = np.full(N, np.log2(max(np.hypot(0.9, 2.4), np.hypot(2.7, 1.2))))
        wanted = _between(plane, at, lod, how, linear)
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=0.03)  # 1/256 of a level
        if linear:
            return
        MODULE.lod3[1, N](out, td.texture(volume, **how), at)
        wanted = _between(volume, at, at[:, 3], how, linear)
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
        at[:, 2] = rng.integers(0, 3, N)
        MODULE.lod_layers[1, N](two, td.texture(layers, **how), at)
        for k in (0, 1):
            wanted = [_between([one[int(at[i, 2]), ..., k] for one in layers], at[i : i + 1],
                               at[i : i + 1, 3], how, linear)[0] for i in range(N)]  # fmt: skip
            np.testing.assert_allclose(two[:, k], wanted, rtol=1e-4, atol=1e-4)
        MODULE.lod[1, N](out, td.texture(plane[0], **how), at)  # without copies, the image itself
        np.testing.assert_allclose(out, _sampled(plane[0], at, how), rtol=1e-4, atol=1e-4)


def test_srgb_and_layers_of_lines(device, rng):
    bytes_, at = rng.integers(0, 256, (4, 6, 4)).astype(np.uint8), _at(rng, -1, 7)
    out, line = np.full((N, 4), np.nan, np.float32), np.full(N, np.nan, np.float32)
    given = bytes_ / 255
    light = np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)
    light[..., 3] = given[..., 3]
    with td.use_device(device):
        MODULE.colours[1, N](out, td.texture(bytes_, filter="linear", srgb=True), at)
        for k in range(4):
            wanted = _sampled(light[..., k], at, {"filter": "linear"})
            np.testing.assert_allclose(out[:, k], wanted, rtol=1e-4, atol=1e-5)
        image = rng.normal(size=(3, 7)).astype(np.float32)
        MODULE.line_layers[1, N](line, td.texture(image, filter="linear", address="border"), at)
    how = {"filter": "linear", "address": "border"}
    layer = np.clip(np.trunc(at[:, 3]).astype(int), 0, 2)
    wanted = [_sampled(image[k], at[i : i + 1], how)[0] for i, k in enumerate(layer)]
    np.testing.assert_allclose(line, wanted, rtol=1e-5, atol=1e-5)


def test_surfaces_of_layers_and_cubes(device, rng):
    lines = rng.integers(0, 100, (4, 5)).astype(np.int32)
    cube, given = np.zeros((6, 2, 5), np.int32), lines.copy()
    with td.use_device(device):
        MODULE.surfaces[2, 7](cube, given, 5)
    np.testing.assert_array_equal(cube[5], 10 * lines[:2])
    assert not cube[:5].any()
    np.testing.assert_array_equal(given[2:], lines[:2] + 1)


def test_references(device, rng):
    at = _at(rng, -1, 1)
    sky = rng.normal(size=(6, 1, 1)).astype(np.float32)
    grey = rng.integers(0, 256, (1, 1)).astype(np.uint8)
    out, four = np.zeros(N, np.float32), np.zeros((N, 4), np.float32)
    MODULE.textures.update(sky=sky, grey=grey)
    with td.use_device(device):
        MODULE.references[1, N](out, four, at)
    np.testing.assert_array_equal(out, sky[_on_cube(at)[0], 0, 0])
    np.testing.assert_allclose(four, grey[0, 0] / np.float32(255), rtol=1e-6)


def test_what_is_refused(device):
    image = np.zeros((4, 4), np.float32)
    with pytest.raises(LaunchError, match=r"the copy 1 of an image of \(4, 4\) has shape \(3, 2\)"):
        td.texture([image, image[:3, :2]], normalized=True)
    with pytest.raises(LaunchError, match=r"smaller copies takes coordinates from 0 to 1"):
        td.texture([image, image[:2, :2]])
    with pytest.raises(LaunchError, match=r'mip_filter is "point" or "linear", not .nearest.'):
        td.texture(image, mip_filter="nearest")  # type: ignore[arg-type]
    out = np.zeros(N, np.float32)
    with (
        td.use_device(device),
        pytest.raises(CompileError, match=r"shape \(levels, height, width\)"),
    ):
        MODULE.lod[1, N](out, td.texture([image[0], image[0, :2]], normalized=True), out)
