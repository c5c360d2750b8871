"""Which functions of treadle and PyTorch have the same meaning, and how the arguments of one are
handed to the other.

A `Pair` names an entry of PyTorch's list of operators (`op_db`). Where treadle follows the array
standard and the two differ in a name or a default, a function translates; where results are free,
as the signs of eigenvectors, both are made comparable. What stays different is in `unlike.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import treadle as td
import treadle.nn.functional as F
from tests.parity import translated as t

Function = Callable[..., Any]


@dataclass(frozen=True)
class Pair:
    """An entry of `op_db` by its name and variant, and treadle's function for its arguments.

    `names` are those of PyTorch's parameters behind the first. `both` makes comparable what either
    function gives.
    """

    name: str
    mine: Function
    names: str = ""
    variant: str = ""
    both: Callable[[Function, Any], Function] | None = None

    def ours(self) -> Function:
        """treadle's function of PyTorch's arguments."""

        def apply(*arguments: Any, **keywords: Any) -> Any:
            if self.names:
                keywords |= dict(zip(self.names.split(), arguments[1:], strict=False))
                arguments = arguments[:1]
            return self.mine(*arguments, **keywords)

        return apply if self.both is None else self.both(apply, td)

    def theirs(self, function: Function, torch: Any) -> Function:
        """PyTorch's function, comparable."""
        return function if self.both is None else self.both(function, torch)

    @property
    def label(self) -> str:
        """How tests name it."""
        return f"{self.name}-{self.variant}" if self.variant else self.name


def _same(module: Any, prefix: str, names: str) -> list[Pair]:
    return [Pair(f"{prefix}{name}", getattr(module, name)) for name in names.split()]


def _variants(
    name: str, function: Function, variants: str | tuple[str, ...], **others: Any
) -> list[Pair]:
    several = variants.split() if isinstance(variants, str) else variants
    return [Pair(name, function, variant=variant, **others) for variant in several]


# --- elementwise ---------------------------------------------------------------------------------

_ELEMENTWISE = """
abs acos acosh angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_or
bitwise_right_shift bitwise_xor ceil conj copysign cos cosh erf erfc exp exp2 expm1 floor
floor_divide hypot imag isfinite isinf isnan lgamma log log10 log1p log2 logaddexp logical_and
logical_not logical_or logical_xor maximum minimum nextafter positive pow real reciprocal remainder
rsqrt sigmoid sign signbit sin sinh sqrt square tan tanh trunc
"""
_OTHER_NAMES = {
    "bitwise_not": td.bitwise_invert, "neg": td.negative, "mul": td.multiply, "eq": td.equal,
    "ne": td.not_equal, "lt": td.less, "le": td.less_equal, "gt": td.greater,
    "ge": td.greater_equal, "sgn": td.sign, "add": t.add, "sub": t.subtract, "rsub": t.rsub,
    "clamp": td.clip, "clamp_min": td.clip, "clamp_max": t.clamp_max, "where": t.where,
    "float_power": t.float_power, "round": td.round, "__rdiv__": lambda x, y: y / x,
    "__rmatmul__": lambda x, y: y @ x,
}  # fmt: skip
_REFLECTED = "__radd__ __rand__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rxor__"

# --- layers --------------------------------------------------------------------------------------

_LAYERS = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_transpose1d
conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy elu
gaussian_nll_loss gelu glu grid_sample group_norm hardshrink hardsigmoid hardswish hardtanh
hinge_embedding_loss huber_loss instance_norm kl_div l1_loss layer_norm leaky_relu linear
local_response_norm logsigmoid margin_ranking_loss max_pool1d max_pool2d max_pool3d max_unpool1d
max_unpool2d max_unpool3d mish mse_loss multi_margin_loss multilabel_margin_loss
multilabel_soft_margin_loss nll_loss normalize one_hot pairwise_distance pdist pixel_shuffle
pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm rrelu scaled_dot_product_attention selu
silu smooth_l1_loss soft_margin_loss softplus softshrink softsign tanhshrink threshold
triplet_margin_loss unfold upsample_bilinear upsample_nearest
"""

PAIRS: tuple[Pair, ...] = (
    *_same(td, "", _ELEMENTWISE),
    *[Pair(name, function) for name, function in _OTHER_NAMES.items()],
    *[Pair(name, t.reflected(name)) for name in _REFLECTED.split()],
    *_variants("round", td.round, "decimals_0 decimals_3 decimals_neg_3"),
    Pair("div", t.divide, variant="no_rounding_mode"),
    Pair("div", t.divide, variant="floor_rounding"),
    # reductions
    *[Pair(name, t.reduction(getattr(td, name)), "dim keepdim") for name in ("all", "any")],
    *[
        Pair(name, t.reduction(getattr(td, name)), "dim keepdim dtype")
        for name in ("sum", "prod", "mean")
    ],
    Pair("count_nonzero", t.reduction(td.count_nonzero), "dim"),
    *[
        Pair(name, t.spread(getattr(td, name)), variant=variant)
        for name in ("std", "var")
        for variant in ("", "unbiased")
    ],
    Pair("amax", t.reduction(td.max), "dim keepdim"),
    Pair("amin", t.reduction(td.min), "dim keepdim"),
    Pair("max", td.maximum, variant="binary"),
    Pair("min", td.minimum, variant="binary"),
    Pair("max", td.max, variant="reduction_no_dim"),
    Pair("min", td.min, variant="reduction_no_dim"),
    Pair("max", t.with_place(td.max, td.argmax), "dim keepdim", "reduction_with_dim"),
    Pair("min", t.with_place(td.min, td.argmin), "dim keepdim", "reduction_with_dim"),
    Pair("argmax", td.argmax, "dim keepdim"),
    Pair("argmin", td.argmin, "dim keepdim"),
    Pair("logsumexp", t.reduction(td.logsumexp), "dim keepdim"),
    Pair("cumsum", td.cumulative_sum, "dim dtype"),
    Pair("cumprod", td.cumulative_prod, "dim dtype"),
    # order
    Pair("sort", t.sort, "dim descending", both=t.sorted_places),
    Pair("argsort", t.argsort, "dim descending", both=t.places_of_sorted),
    Pair("msort", lambda x: td.sort(x, axis=0)),
    Pair("topk", lambda *a, **k: tuple(td.topk(*a, **k)), both=t.chosen_places),
    Pair("searchsorted", t.searchsorted),
    Pair("bucketize", t.bucketize),
    Pair("bincount", td.bincount),
    Pair("histc", td.histc),
    Pair("histogram", t.histogram),
    Pair("nonzero", t.nonzero),
    Pair("argwhere", td.argwhere),
    # other axes for the same elements
    Pair("T", lambda x: x.T),
    Pair("mT", lambda x: x.mT),
    Pair("__getitem__", t.item),
    Pair("broadcast_to", td.broadcast_to),
    Pair("broadcast_tensors", td.broadcast_arrays),
    Pair("expand", t.expand),
    Pair("clone", lambda x, **_: x.clone()),
    Pair("contiguous", lambda x, **_: x.contiguous()),
    Pair("flatten", td.Tensor.flatten),
    Pair("ravel", lambda x: x.ravel()),
    Pair("flip", lambda x, dims: td.flip(x, axis=tuple(dims))),
    Pair("fliplr", lambda x: td.flip(x, axis=1)),
    Pair("flipud", lambda x: td.flip(x, axis=0)),
    Pair("roll", t.roll),
    Pair("reshape", td.reshape),
    Pair("view", lambda x, *shape: x.reshape(*shape)),
    Pair("squeeze", t.squeeze),
    Pair("squeeze", t.squeeze, variant="multiple"),
    Pair("unsqueeze", lambda x, dim: x.unsqueeze(dim)),
    Pair("permute", td.permute_dims),
    Pair("transpose", td.swapaxes),
    Pair("movedim", td.moveaxis),
    Pair("stack", td.stack, "dim"),
    Pair("cat", td.concat, "dim"),
    Pair("split", t.split),
    Pair("split", t.split, variant="list_args"),
    Pair("unbind", td.unstack, "dim"),
    Pair("repeat", lambda x, *n: td.tile(x, n[0] if isinstance(n[0], tuple) else n)),
    Pair("tile", lambda x, dims: td.tile(x, tuple(dims))),
    Pair("repeat_interleave", t.repeat_interleave),
    Pair("tril", lambda x, diagonal=0: td.tril(x, k=diagonal)),
    Pair("triu", lambda x, diagonal=0: td.triu(x, k=diagonal)),
    Pair("diagonal", t.diagonal(0, 1)),
    Pair("linalg.diagonal", t.diagonal(-2, -1)),
    Pair("diff", t.diff),
    *_variants("meshgrid", t.meshgrid, "variadic_tensors list_of_tensors"),
    # indices
    *_same(td, "", """gather scatter scatter_add index_add index_copy index_fill index_select
                      masked_fill masked_select"""),
    *_variants("scatter_reduce", td.scatter_reduce, "sum prod mean amax amin"),
    Pair("take", lambda x, index: td.take(x.ravel(), index)),
    Pair("take_along_dim", t.take_along_dim),
    # creation
    Pair("arange", lambda start, end=None, step=1, **k: td.arange(start, end, step, **k)),
    Pair("linspace", td.linspace),
    Pair("eye", td.eye),
    Pair("full", td.full),
    Pair("ones", t.of_shape(td.ones)),
    Pair("zeros", t.of_shape(td.zeros)),
    *_same(td, "", "full_like ones_like zeros_like"),
    # products
    *_same(td, "", "dot matmul outer kron"),
    *[Pair(name, td.matmul) for name in ("mm", "bmm", "mv")],
    Pair("inner", t.inner),
    Pair("vdot", td.vecdot),
    Pair("linalg.vecdot", lambda x, y, dim=-1: td.vecdot(x, y, axis=dim)),
    Pair("einsum", lambda arrays, equation: td.einsum(equation, *arrays)),
    Pair("tensordot", lambda x, y, dims=2: td.tensordot(x, y, axes=dims)),
    Pair("cdist", lambda x, y, p=2.0, *_, **__: td.cdist(x, y, p)),
    # layers
    *_same(F, "nn.functional.", _LAYERS),
    *[Pair(name, getattr(F, name), variant=variant, names="dim dtype")
      for name in ("softmax", "log_softmax") for variant in ("", "with_dtype")],
    *[Pair("nn.functional.softmin", F.softmin, variant=variant, names="dim dtype")
      for variant in ("", "with_dtype")],
    *[Pair(f"nn.functional.max_unpool{n}d", getattr(F, f"max_unpool{n}d"), variant="grad")
      for n in (1, 2, 3)],
    *_variants("nn.functional.interpolate", F.interpolate,
               "nearest nearest-exact linear bilinear bicubic trilinear area"),
    *_variants("nn.functional.pad", F.pad,
               "constant reflect replicate replicate_negative circular"),
    Pair("nn.functional.embedding", lambda weight, index, **k: F.embedding(index, weight, **k)),
    Pair("nn.functional.embedding_bag",
         lambda weight, index, **k: F.embedding_bag(index, weight, **k)),
    Pair("nn.functional.ctc_loss", F.ctc_loss, both=t.of_log_softmax),
    Pair("nn.functional.triplet_margin_with_distance_loss", t.triplet_with_distance),
    # linear algebra
    *_same(td.linalg, "linalg.",
           "cond det inv matrix_power multi_dot slogdet svdvals solve_triangular"),
    Pair("linalg.cholesky", td.linalg.cholesky, both=t.of_hermitian),
    Pair("linalg.eig", td.linalg.eig, both=t.eigenvectors_in_order),
    Pair("linalg.eigvals", td.linalg.eigvals, both=t.eigenvalues_in_order),
    Pair("linalg.eigh", t.eigh, both=t.sizes_of_vectors),
    Pair("linalg.eigvalsh", lambda x, UPLO="L": t.eigh(x, UPLO)[0]),
    Pair("linalg.qr", td.linalg.qr, both=t.sizes_of_factors),
    Pair("linalg.svd", td.linalg.svd, both=t.sizes_of_singular_vectors),
    Pair("linalg.solve", t.solve),
    *_variants("linalg.lstsq", t.lstsq, ("", "grad_oriented"), both=t.solution),
    Pair("linalg.pinv", td.linalg.pinv),
    Pair("linalg.pinv", t.pinv_of_hermitian, variant="hermitian", both=t.of_hermitian),
    Pair("linalg.pinv", lambda a, b: td.linalg.pinv(a @ b.mT), variant="singular"),
    *_variants("linalg.matrix_rank", t.matrix_rank, ("", "hermitian")),
    Pair("linalg.cross", lambda x, y, dim=-1: td.linalg.cross(x, y, axis=dim)),
    *_variants("linalg.norm", t.norm(td.linalg.norm, None, None), ("", "subgradients_at_zero"),
               names="ord dim keepdim dtype"),
    Pair("linalg.matrix_norm", t.norm(td.linalg.matrix_norm, "fro", (-2, -1)),
         "ord dim keepdim dtype"),
    Pair("linalg.vector_norm", t.norm(td.linalg.vector_norm, 2, None), "ord dim keepdim dtype"),
    Pair("matrix_exp", td.linalg.matrix_exp),
    Pair("trace", td.linalg.trace),
    # Fourier transforms
    *[Pair(f"fft.{name}", t.transform(getattr(td.fft, name), "axis", -1), "n dim norm")
      for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]],
    *[Pair(f"fft.{name}", t.transform(getattr(td.fft, name), "axes", (-2, -1)), "s dim norm")
      for name in ["fft2", "ifft2", "rfft2", "irfft2"]],
    *[Pair(f"fft.{name}", t.transform(getattr(td.fft, name), "axes", None), "s dim norm")
      for name in ["fftn", "ifftn", "rfftn", "irfftn"]],
    Pair("fft.fftshift", lambda x, dim=None: td.fft.fftshift(x, axes=dim)),
    Pair("fft.ifftshift", lambda x, dim=None: td.fft.ifftshift(x, axes=dim)),
)  # fmt: skip
