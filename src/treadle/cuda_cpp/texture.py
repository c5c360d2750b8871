"""`td.texture`: an array for a texture of CUDA C++, with the way that it is read."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from treadle.core.errors import LaunchError
from treadle.cuda_cpp.program import KernelInstance, Sampling

Address: TypeAlias = Literal["clamp", "border", "wrap", "mirror"]
_ADDRESSES = ("clamp", "border", "wrap", "mirror")
_MOST_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class Texture:
    """An array and how a kernel reads it, as `td.texture` makes it."""

    array: Any
    sampling: Sampling


def texture(
    array: Any,
    *,
    filter: Literal["point", "linear"] = "point",
    address: Address | Sequence[Address] = "clamp",
    normalized: bool = False,
    srgb: bool = False,
    mip_filter: Literal["point", "linear"] = "point",
    seamless: bool = False,
) -> Texture:
    """An array as the argument for a `cudaTextureObject_t` of a CUDA C++ kernel.

    `array` is what a pointer takes: a tensor or NumPy array in C order, of shape (width,),
    (height, width) or (depth, height, width); layers come first, and the numbers of a texel
    (2 or 4) last. `filter="linear"` interpolates between the nearest texels, with 8 bits of the
    fraction, as CUDA's hardware. `address` says what is outside, for all axes or for x, y and z:
    the nearest texel ("clamp"), zero ("border"), the array again ("wrap") or its mirror image
    ("mirror"); the last two take normalized coordinates, from 0 to 1. An array that is passed
    without `td.texture` is read with these defaults, which are those of a `cudaTextureDesc` of
    zeros except that it clamps.

    What is read are the array's numbers; 8 and 16-bit integers that a kernel reads as floats are
    from 0 or -1 to 1 (`cudaReadModeNormalizedFloat`), and with `srgb` those of 8 bits are numbers
    of sRGB, which become linear, but for a fourth one. The six faces of a cube are the first axis
    of shape (6, size, size), of several cubes one after the other; `seamless` ones are interpolated
    across the edges of their faces.

    A list of arrays is an image with its smaller copies (a mipmapped array), each of which has half
    of the extents of the one before, rounded down, and at least 1. `tex2DLod` and `tex2DGrad`
    select one, the nearest, or with `mip_filter="linear"` mix two. They take normalized
    coordinates. The copies are put into one array here, so later changes of theirs are not seen.
    LaunchError for an unknown filter or address mode, or copies of other shapes.

    >>> import numpy as np, treadle as td
    >>> module = td.cuda_module('''
    ... __global__ void middle(float *out, cudaTextureObject_t image) {
    ...     out[0] = tex2D<float>(image, 1.0f, 1.0f);
    ... }''')
    >>> out, image = np.zeros(1, np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)
    >>> module.middle[1, 1](out, td.texture(image, filter="linear"))
    >>> float(out[0])
    1.5
    """
    if filter not in ("point", "linear"):
        raise LaunchError(f'td.texture: filter is "point" or "linear", not {filter!r}')
    modes = (address,) * 3 if isinstance(address, str) else tuple(address)
    if not 1 <= len(modes) <= 3 or any(one not in _ADDRESSES for one in modes):
        listed = ", ".join(map(repr, _ADDRESSES))
        raise LaunchError(
            f"td.texture: address is one of {listed}, or up to three of them (for x, y and z), not "
            f"{address!r}"
        )
    if not normalized and any(one in ("wrap", "mirror") for one in modes):
        raise LaunchError(
            f"td.texture: address={address!r} needs coordinates from 0 to 1 (normalized=True): "
            "CUDA would clamp others"
        )
    modes = (*modes, *modes[-1:] * (3 - len(modes)))
    if mip_filter not in ("point", "linear"):
        raise LaunchError(f'td.texture: mip_filter is "point" or "linear", not {mip_filter!r}')
    levels = 1
    if isinstance(array, (list, tuple)):
        if not normalized:
            raise LaunchError(
                "td.texture: an image with smaller copies takes coordinates from 0 to 1: pass "
                "normalized=True"
            )
        levels, array = len(array), _with_levels(array)
    sampling = Sampling(
        filter,
        cast(tuple[str, str, str], modes),
        bool(normalized),
        levels=levels,
        between=mip_filter,
        srgb=bool(srgb),
        seamless=bool(seamless),
    )
    return Texture(array, sampling)


def _with_levels(arrays: Sequence[Any]) -> np.ndarray[Any, Any]:
    """An image and its smaller copies in one array, with an axis before its own."""
    if not arrays:
        raise LaunchError(
            "td.texture: an image with smaller copies is a list of at least one array"
        )
    arrays = [one if isinstance(one, np.ndarray) else one.numpy() for one in arrays]
    first = arrays[0]
    shape = tuple(first.shape)
    for level, one in enumerate(arrays):
        halved = (max(extent >> level, 1) for extent in shape)
        # Layers and the numbers of a texel are not halved.
        allowed = [(extent, half) for extent, half in zip(shape, halved, strict=True)]
        same = len(one.shape) == len(shape) and all(
            each in pair for each, pair in zip(one.shape, allowed, strict=False)
        )
        if not same or one.dtype != first.dtype:
            raise LaunchError(
                f"td.texture: the copy {level} of an image of {shape} has shape {tuple(one.shape)} "
                f"and dtype {one.dtype}: each has half of the extents of the one before"
            )
    return np.stack(
        [
            np.pad(one, [(0, size - own) for size, own in zip(shape, one.shape, strict=True)])
            for one in arrays
        ]
    )


class Textures(MutableMapping[str, Any]):
    """The texture references of a module by name, each with the array or `td.texture` that launches
    read."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._bound: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self._bound[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._names:
            listed = ", ".join(self._names)
            there = f"; there are {listed}" if listed else ", nor any other"
            raise LaunchError(f"no texture reference {name!r}{there}")
        self._bound[name] = value

    def __delitem__(self, name: str) -> None:
        del self._bound[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bound)

    def __len__(self) -> int:
        return len(self._bound)

    def __repr__(self) -> str:
        states = (f"{name}{'' if name in self._bound else ' (no array)'}" for name in self._names)
        return f"<textures: {', '.join(states) or 'none'}>"


def sampled_arguments(
    instance: KernelInstance, positions: Sequence[int], arguments: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[Sampling | None, ...]]:
    """The arguments with arrays for textures, and how those are read, for a KernelInstance."""
    made = list(arguments)
    found: list[Sampling | None] = [None] * len(instance.parameters)
    for position in positions:
        if position >= len(made):
            break  # too few: the error comes where arguments are counted
        value, sampling = made[position], Sampling()
        if isinstance(value, Texture):
            made[position], sampling = value.array, value.sampling
        sampling = replace(sampling, null=made[position] is None)
        shape: tuple[int, ...] = getattr(made[position], "shape", ())
        if len(shape) > 1 and 1 <= shape[-1] <= _MOST_CHANNELS:
            sampling = replace(sampling, channels=int(shape[-1]))
        found[position] = sampling
    return tuple(made), tuple(found)
