"""Modules that only lay elements out anew, fill images up, or measure distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.nn.function_module import FunctionModule
from treadle.tensor.axes import one_axis
from treadle.tensor.functional import distances, folding, interpolation
from treadle.tensor.functional.windows import Sizes
from treadle.tensor.manipulation import flatten
from treadle.tensor.tensor import Tensor


class Flatten(FunctionModule):
    """Merge the axes from `start_dim` to `end_dim` into one.

    >>> import treadle as td
    >>> td.nn.Flatten()(td.ones((2, 3, 4), device="cpu")).shape
    (2, 12)
    """

    _text = "start_dim={start_dim}, end_dim={end_dim}"
    _function = staticmethod(flatten)

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__(start_dim=start_dim, end_dim=end_dim)


class Unflatten(FunctionModule):
    """Divide the axis `dim` into several, of which one extent may be -1.

    >>> import treadle as td
    >>> td.nn.Unflatten(1, (3, -1))(td.ones((2, 12), device="cpu")).shape
    (2, 3, 4)
    """

    _text = "dim={dim}, unflattened_size={unflattened_size}"

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__(dim=dim, unflattened_size=tuple(unflattened_size))

    def forward(self, input: Tensor) -> Tensor:
        """A view where strides can express it."""
        at = one_axis("Unflatten", self.dim, input.ndim)
        return input.reshape((*input.shape[:at], *self.unflattened_size, *input.shape[at + 1 :]))


# --- images --------------------------------------------------------------------------------------


class Upsample(FunctionModule):
    """Resize images (N, C, …) to `size`, or by `scale_factor`; see `td.nn.functional.interpolate`.

    >>> import treadle as td
    >>> td.nn.Upsample(scale_factor=2)(td.ones((1, 1, 2, 2), device="cpu")).shape
    (1, 1, 4, 4)
    """

    _function = staticmethod(interpolation.interpolate)

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        if isinstance(scale_factor, (tuple, list)):
            scale_factor = tuple(float(each) for each in scale_factor)
        elif scale_factor is not None:
            scale_factor = float(scale_factor)  # type: ignore[arg-type]
        super().__init__(
            size=size,
            scale_factor=scale_factor,
            mode=mode,
            align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The size, or how many times as large."""
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` with `mode="nearest"`, of (N, C, H, W).

    >>> import treadle as td
    >>> x = td.asarray([[[[1.0, 2.0]]]], device="cpu")
    >>> td.nn.UpsamplingNearest2d(scale_factor=2)(x).tolist()
    [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` with `mode="bilinear"` and aligned corners, of (N, C, H, W).

    >>> import treadle as td
    >>> x = td.asarray([[[[0.0, 2.0]]]], device="cpu")
    >>> td.nn.UpsamplingBilinear2d(size=(1, 3))(x).tolist()
    [[[[0.0, 1.0, 2.0]]]]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(FunctionModule):
    """Rearrange (N, C * r * r, H, W) to (N, C, H * r, W * r), where r is `upscale_factor`.

    >>> import treadle as td
    >>> td.nn.PixelShuffle(2)(td.ones((1, 4, 2, 2), device="cpu")).shape
    (1, 1, 4, 4)
    """

    _text = "upscale_factor={upscale_factor}"
    _function = staticmethod(folding.pixel_shuffle)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor=upscale_factor)


class PixelUnshuffle(FunctionModule):
    """The inverse of `PixelShuffle`: rearrange (N, C, H * r, W * r) to (N, C * r * r, H, W).

    >>> import treadle as td
    >>> td.nn.PixelUnshuffle(2)(td.ones((1, 1, 4, 6), device="cpu")).shape
    (1, 4, 2, 3)
    """

    _text = "downscale_factor={downscale_factor}"
    _function = staticmethod(folding.pixel_unshuffle)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor=downscale_factor)


class ChannelShuffle(FunctionModule):
    """The channels of (N, C, …) in another order: the first of each group, then the second of each,
    and so on.

    >>> import treadle as td
    >>> x = td.arange(6, device="cpu").reshape(1, 6, 1)
    >>> td.nn.ChannelShuffle(2)(x).ravel().tolist()
    [0, 3, 1, 4, 2, 5]
    """

    _text = "groups={groups}"
    _function = staticmethod(folding.channel_shuffle)

    def __init__(self, groups: int) -> None:
        super().__init__(groups=groups)


class Unfold(FunctionModule):
    """The windows of images (N, C, H, W), as columns: (N, C * kh * kw, L) for L windows.

    >>> import treadle as td
    >>> td.nn.Unfold(2)(td.ones((1, 1, 3, 3), device="cpu")).shape
    (1, 4, 4)
    """

    _text = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"
    _function = staticmethod(folding.unfold)

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class Fold(FunctionModule):
    """The inverse of `Unfold`: columns (N, C * kh * kw, L) are put at their windows of an image (N,
    C, *output_size), and added where they overlap.

    >>> import treadle as td
    >>> columns = td.ones((1, 4, 4), device="cpu")
    >>> td.nn.Fold(output_size=3, kernel_size=2)(columns).tolist()
    [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]
    """

    _text = "output_size={output_size}, " + Unfold._text
    _function = staticmethod(folding.fold)

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__(
            output_size=output_size,
            kernel_size=kernel_size,
            dilation=dilation,
            padding=padding,
            stride=stride,
        )


# --- distances -----------------------------------------------------------------------------------


class CosineSimilarity(FunctionModule):
    """The cosine of the angle between vectors along the axis `dim`.

    >>> import treadle as td
    >>> x, y = td.ones((3, 8), device="cpu"), td.ones((3, 8), device="cpu")
    >>> td.nn.CosineSimilarity()(x, y).shape
    (3,)
    """

    _function = staticmethod(distances.cosine_similarity)

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__(dim=dim, eps=eps)


class PairwiseDistance(FunctionModule):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> import treadle as td
    >>> x, y = td.asarray([[3.0, 4.0]], device="cpu"), td.zeros((1, 2), device="cpu")
    >>> td.nn.PairwiseDistance(eps=0.0)(x, y).tolist()
    [5.0]
    """

    _function = staticmethod(distances.pairwise_distance)

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__(p=p, eps=eps, keepdim=keepdim)
