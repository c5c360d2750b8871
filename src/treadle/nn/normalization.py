"""What gives parts of a tensor mean 0 and variance 1, and then a learned scale and shift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from treadle.core.dtypes import float32
from treadle.core.errors import ShapeError
from treadle.nn import init
from treadle.nn.function_module import FunctionModule
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.creation import empty, ones, zeros
from treadle.tensor.dtypes import default_integer
from treadle.tensor.functional import normalization
from treadle.tensor.tensor import Tensor, computed_soon


class _Affine(Module):
    """With a weight that begins with ones, and a bias with zeros."""

    weight: Parameter | None
    bias: Parameter | None

    def _add(self, shape: Any, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
        for name, is_there in (("weight", weight), ("bias", bias)):
            made = Parameter(empty(shape, dtype=dtype, device=device)) if is_there else None
            self.register_parameter(name, made)

    def reset_parameters(self) -> None:
        """Begin anew: the weight with ones, the bias with zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        bias = self._parameters.get("bias")
        if bias is not None:
            init.zeros_(bias)


# --- by channels, over the batch -----------------------------------------------------------------


_INITIAL = {"running_mean": 0, "running_var": 1, "num_batches_tracked": 0}


class _Running(_Affine):
    """With a running mean and variance of each channel, for use after training."""

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _may_lack = frozenset({"num_batches_tracked"})
    _ranks: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._add(num_features, affine, affine and bias, device, dtype)
        running: dict[str, Tensor | None] = dict.fromkeys(_INITIAL)
        if track_running_stats:
            counts = default_integer(find_device(device))
            running = {
                "running_mean": zeros(num_features, dtype=dtype, device=device),
                "running_var": ones(num_features, dtype=dtype, device=device),
                "num_batches_tracked": zeros((), dtype=counts, device=device),
            }
        for name, value in running.items():
            self.register_buffer(name, value)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Begin anew with the running mean and variance."""
        for name, number in _INITIAL.items():
            buffer: Tensor | None = getattr(self, name)
            if buffer is not None:
                init.constant_(buffer, number)

    def reset_parameters(self) -> None:
        """Begin anew with everything."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_rank(self, input: Tensor) -> None:
        if len(input.shape) not in self._ranks:
            wanted = " or ".join(str(rank) for rank in self._ranks)
            raise ShapeError(
                f"{type(self).__name__} takes {wanted} axes, not an input of shape {input.shape}"
            )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm(_Running):
    """What batch norms of all numbers of axes have in common."""

    def forward(self, input: Any) -> Tensor:
        """A tensor of the input's shape; in training the running mean and variance move."""
        self._check_rank(input)
        looks = self.training or self.running_mean is None
        moves = self.training and self.track_running_stats
        return normalization.batch_norm(
            input,
            self.running_mean if moves or not looks else None,
            self.running_var if moves or not looks else None,
            self.weight,
            self.bias,
            looks,
            self.next_momentum() if moves else 0.0,
            self.eps,
        )

    def next_momentum(self) -> Any:
        """Count a batch. How far the running values move: a fixed part of the way, or, without a
        momentum, so that they are the mean of all batches so far. How many that were, the device
        knows."""
        counter = self.num_batches_tracked
        if counter is None:
            return 0.0 if self.momentum is None else self.momentum
        counter += 1
        computed_soon(counter)
        return 1.0 / counter.to(float32) if self.momentum is None else self.momentum


class BatchNorm1d(BatchNorm):
    """Normalize each channel of (N, C) or (N, C, L) to mean 0 and variance 1 over the batch.

    In training the mean and variance are those of the batch, and the running ones move towards them
    by `momentum` of the difference (None: they are the average over all batches). In evaluation
    mode the running ones are used.

    >>> import treadle as td
    >>> layer = td.nn.BatchNorm1d(4, device="cpu")
    >>> layer(td.ones((2, 4), device="cpu")).shape
    (2, 4)
    """

    _ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """`BatchNorm1d` for images of shape (N, C, H, W).

    >>> import treadle as td
    >>> layer = td.nn.BatchNorm2d(2, momentum=0.5, device="cpu")
    >>> layer(td.ones((3, 2, 4, 4), device="cpu")).shape
    (3, 2, 4, 4)
    >>> layer.running_mean.tolist()
    [0.5, 0.5]
    """

    _ranks = (4,)


class BatchNorm3d(BatchNorm):
    """`BatchNorm1d` for volumes of shape (N, C, D, H, W).

    >>> import treadle as td
    >>> layer = td.nn.BatchNorm3d(2, device="cpu")
    >>> layer(td.ones((3, 2, 4, 4, 4), device="cpu")).shape, layer.running_var.shape
    ((3, 2, 4, 4, 4), (2,))
    """

    _ranks = (5,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Any) -> Tensor:
        """A tensor of the input's shape, which may lack a batch."""
        self._check_rank(input)
        if len(input.shape) == self._ranks[0]:
            found: Tensor = self._normalized(input[None])[0]
            return found
        return self._normalized(input)

    def _normalized(self, input: Any) -> Tensor:
        return normalization.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each element of a batch, (N, C, L) or (C, L), to mean 0 and
    variance 1.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 3.0], [2.0, 8.0]]], device="cpu")
    >>> td.round(td.nn.InstanceNorm1d(2)(x)).tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for images of shape (N, C, H, W) or (C, H, W).

    >>> import treadle as td
    >>> td.nn.InstanceNorm2d(3)(td.ones((2, 3, 4, 4), device="cpu")).shape
    (2, 3, 4, 4)
    """

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for volumes of shape (N, C, D, H, W) or (C, D, H, W).

    >>> import treadle as td
    >>> td.nn.InstanceNorm3d(3)(td.ones((2, 3, 4, 4, 4), device="cpu")).shape
    (2, 3, 4, 4, 4)
    """

    _ranks = (4, 5)


# --- by rows and groups --------------------------------------------------------------------------


class LayerNorm(_Affine):
    """Normalize over the last axes, of extents `normalized_shape`, to mean 0 and variance 1.

    >>> import treadle as td
    >>> layer = td.nn.LayerNorm(4, device="cpu")
    >>> y = layer(td.asarray([[1.0, 2.0, 3.0, 4.0]], device="cpu"))
    >>> bool(abs(y.mean().item()) < 1e-6)
    True
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        both = elementwise_affine and bias
        self._add(self.normalized_shape, elementwise_affine, both, device, dtype)
        self.reset_parameters()

    def forward(self, input: ArrayLike) -> Tensor:
        """A tensor of the input's shape."""
        return normalization.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Divide by the root mean square over the last axes, of extents `normalized_shape`. By B. Zhang
    and R. Sennrich, 2019.

    >>> import treadle as td
    >>> layer = td.nn.RMSNorm(4, device="cpu")
    >>> layer(td.ones((2, 4), device="cpu")).shape
    (2, 4)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = None
        if elementwise_affine:
            made = Parameter(empty(self.normalized_shape, dtype=dtype, device=device))
        self.register_parameter("weight", made)
        self.reset_parameters()

    def forward(self, x: ArrayLike) -> Tensor:
        """A tensor of the input's shape."""
        return normalization.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Normalize each of `num_groups` groups of channels of (N, C, …) to mean 0 and variance 1. By
    Y. Wu and K. He, 2018.

    >>> import treadle as td
    >>> layer = td.nn.GroupNorm(2, 4, device="cpu")
    >>> layer(td.ones((2, 4, 8), device="cpu")).shape
    (2, 4, 8)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: {num_channels} channels are not {num_groups} groups of as many each"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: ArrayLike) -> Tensor:
        """A tensor of the input's shape."""
        return normalization.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(FunctionModule):
    """Divide each element of (N, C, …) by (k + alpha * m)**beta, where m is the mean square of
    `size` neighbouring channels.

    >>> import treadle as td
    >>> layer = td.nn.LocalResponseNorm(2, alpha=2.0, beta=1.0)
    >>> [round(y, 3) for y in layer(td.ones((1, 3, 1), device="cpu")).ravel().tolist()]
    [0.5, 0.333, 0.333]
    """

    _text = "{size}, alpha={alpha}, beta={beta}, k={k}"
    _function = staticmethod(normalization.local_response_norm)

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__(size=size, alpha=alpha, beta=beta, k=k)


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)
