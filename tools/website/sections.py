"""The pages of the reference: which public names stand on which page, under which heading.

`td`'s own names are listed here; a module's are those that it calls public. The test of the
reference fails when a public name is on no page: add it to the section where readers look for it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import ModuleType

import treadle as td


@dataclass(frozen=True)
class Section:
    """A heading, and the names below it, as users write them behind `td.`"""

    title: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A page of the reference, `reference/{name}.md`; `about` is its first paragraph."""

    name: str
    title: str
    about: str
    sections: tuple[Section, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the page."""
        return tuple(name for section in self.sections for name in section.names)


def public_names(module: ModuleType) -> list[str]:
    """What a module calls public: its `__all__`, or else the functions and classes made in it."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(set(listed))
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]


def _errors() -> tuple[str, ...]:
    return tuple(
        f"errors.{name}"
        for name in public_names(td.errors)
        if inspect.isclass(getattr(td.errors, name))
        and issubclass(getattr(td.errors, name), Exception)
    )


def _room(path: str, *but: str) -> tuple[str, ...]:
    """The public names of `td.{path}`, without modules and without those in `but`."""
    module = td
    for part in path.split("."):
        module = getattr(module, part)
    found = (name for name in public_names(module) if not inspect.ismodule(getattr(module, name)))
    return tuple(f"{path}.{name}" for name in found if f"{path}.{name}" not in but)


def _section(title: str, names: str) -> Section:
    return Section(title, tuple(names.split()))


def _parts(path: str, rest: str, *sections: Section) -> tuple[Section, ...]:
    """Sections of a module, and one with all its names that are in none of them."""
    listed = {name for section in sections for name in section.names}
    left = _room(path, *listed)
    return (*sections, *([Section(rest, left)] if left else []))


def _nn(title: str, names: str) -> Section:
    return Section(title, tuple(f"nn.{name}" for name in names.split()))


def _functional(title: str, names: str) -> Section:
    return Section(title, tuple(f"nn.functional.{name}" for name in names.split()))


PAGES = (
    Page(
        "kernels",
        "Kernels",
        "What a kernel is made of, and what may stand in one. The mathematical functions, which "
        "work on numbers in kernels and on arrays outside, have "
        "[a page of their own](mathematics.md). "
        "The guides: [kernels](../guides/kernels.md), [CUDA C++](../guides/cuda_cpp.md).",
        (
            _section(
                "Making kernels", "kernel func struct cuda_module texture elementwise interpret"
            ),
            _section(
                "Types of parameters",
                "Array vec2 vec3 vec4 mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4 mat4x2 mat4x3 "
                "mat4x4",
            ),
            _section(
                "Threads, blocks and grids",
                "grid grid_size thread_idx block_idx block_dim grid_dim static_range",
            ),
            _section(
                "Memory and barriers",
                "shared local fragment sync_threads sync_subgroup thread_fence thread_fence_block",
            ),
            _section(
                "Atomics",
                "atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor "
                "atomic_exchange atomic_cas",
            ),
            _section(
                "Subgroups",
                "lane subgroup_size shuffle shuffle_up shuffle_down shuffle_xor vote_all vote_any "
                "ballot subgroup_sum subgroup_min subgroup_max subgroup_prefix_sum",
            ),
            _section(
                "Vectors",
                "length normalize",
            ),
            _section(
                "Numbers of kernels only",
                "bitcast mul_high dot4_i8 dot4_u8 dot4_u8i8 popcount clz ctz reverse_bits "
                "rand_uniform rand_normal",
            ),
        ),
    ),
    Page(
        "mathematics",
        "Mathematical functions",
        "Each of these takes numbers in a kernel, and arrays outside of one. Their error bounds "
        "are on [a page of their own](../math.md).",
        (
            _section(
                "Arithmetic",
                "abs add subtract multiply divide floor_divide remainder negative positive "
                "reciprocal square sign copysign fma clip maximum minimum nextafter",
            ),
            _section(
                "Powers, exponentials, logarithms",
                "pow sqrt rsqrt cbrt hypot exp exp2 expm1 log log2 log10 log1p logaddexp",
            ),
            _section(
                "Trigonometry",
                "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh",
            ),
            _section("Special functions", "erf erfc erfinv gamma lgamma digamma sigmoid"),
            _section("Rounding", "ceil floor round trunc"),
            _section(
                "Comparing and choosing",
                "equal not_equal less less_equal greater greater_equal where isfinite isinf isnan "
                "signbit",
            ),
            _section(
                "Logic and bits",
                "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or "
                "bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift",
            ),
            _section("Complex numbers", "real imag conj angle"),
            _section("Constants", "e pi inf nan newaxis"),
        ),
    ),
    Page(
        "arrays",
        "Arrays",
        "Functions that make arrays and compute with them. Most are methods of "
        "[`td.Tensor`](tensor.md), too. The guide: [arrays](../guides/arrays.md).",
        (
            _section(
                "Making arrays",
                "asarray from_dlpack arange linspace zeros ones full empty eye zeros_like "
                "ones_like full_like empty_like meshgrid tril triu "
                "diag tril_indices triu_indices",
            ),
            _section(
                "Shapes",
                "reshape broadcast_to broadcast_arrays expand_dims squeeze permute_dims moveaxis "
                "swapaxes matrix_transpose diagonal flip rot90 pad roll repeat tile concat "
                "stack split unstack",
            ),
            _section(
                "Reductions",
                "sum prod mean var std max min argmax argmin all any count_nonzero logsumexp "
                "cumulative_sum cumulative_prod diff trace",
            ),
            _section(
                "Reductions without NaN",
                "nansum nanprod nanmean nanvar nanstd nanmax nanmin nanargmax nanargmin nancumsum "
                "nancumprod",
            ),
            _section(
                "Order statistics and correlations",
                "median quantile percentile nanmedian nanquantile nanpercentile kthvalue cov "
                "corrcoef",
            ),
            _section("Tolerances", "isclose allclose nan_to_num lerp"),
            _section("Sampled functions", "interp gradient trapezoid convolve"),
            _section(
                "Signals",
                "stft hann_window hamming_window blackman_window bartlett_window kaiser_window",
            ),
            _section("Products", "matmul dot vecdot inner outer cross tensordot einsum kron cdist"),
            _section(
                "Sorting, searching, counting",
                "sort argsort topk searchsorted digitize bucketize nonzero argwhere unique "
                "unique_all unique_counts unique_inverse unique_values bincount histc histogram",
            ),
            _section(
                "Gathering and scattering",
                "take take_along_axis gather index_select masked_select scatter scatter_add "
                "scatter_reduce index_add index_copy index_fill masked_fill",
            ),
            _section("Compiling and looking inside", "compile explain CommandBatch"),
            _section("The Array API standard", "__array_namespace_info__ __array_api_version__"),
        ),
    ),
    Page(
        "tensor",
        "td.Tensor",
        "An array on a device. `x.sum(axis=0)` and `td.sum(x, axis=0)` are the same.",
        (_section("The class", "Tensor"),),
    ),
    Page(
        "dtypes",
        "Dtypes",
        "Types of elements, and of numbers in kernels. Each has the standard's name and a short "
        "one.",
        (
            _section(
                "The class and its functions",
                "DType astype can_cast result_type isdtype finfo iinfo",
            ),
            _section("Floating point", "float16 f16 bfloat16 bf16 float32 f32 float64 f64"),
            _section(
                "Integers",
                "int8 i8 int16 i16 int32 i32 int64 i64 uint8 u8 uint16 u16 uint32 u32 uint64 u64",
            ),
            _section("Booleans and complex numbers", "bool complex64 c64 complex128 c128"),
        ),
    ),
    Page(
        "devices",
        "Devices and streams",
        "The guides: [devices](../guides/devices.md), "
        "[streams, events and graphs](../guides/streams.md), [profiling](../guides/profiling.md).",
        (
            _section(
                "Devices",
                "devices device Device init default_device set_default_device use_device "
                "is_available",
            ),
            _section("Streams, events, graphs", "Stream Event Graph"),
            _section("Memory and time", "memory_stats profile"),
            _section("The package", "__version__"),
        ),
    ),
    Page(
        "autograd",
        "Gradients",
        "The guide: [gradients](../guides/autograd.md).",
        (
            _section(
                "Derivatives of functions",
                "grad value_and_grad vjp jvp jacrev jacfwd hessian vmap checkpoint",
            ),
            _section(
                "Recording, or not",
                "no_grad enable_grad inference_mode set_grad_enabled is_grad_enabled",
            ),
            Section("td.autograd", _room("autograd")),
        ),
    ),
    Page(
        "nn",
        "td.nn",
        "Modules with PyTorch's names, arguments, defaults and keys in `state_dict`. "
        "The guides: [training](../guides/training.md), [layers](../guides/layers.md).",
        _parts(
            "nn",
            "Others",
            _nn(
                "The base, and containers",
                "Module Parameter Sequential ModuleList ModuleDict ParameterList ParameterDict "
                "Identity",
            ),
            _nn("Linear layers and embeddings", "Linear Bilinear Embedding EmbeddingBag"),
            _nn(
                "Convolution",
                "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Fold Unfold",
            ),
            _nn(
                "Pooling",
                "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d "
                "AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d AdaptiveAvgPool1d "
                "AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
                "AdaptiveMaxPool3d",
            ),
            _nn(
                "Normalization",
                "LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d "
                "InstanceNorm2d InstanceNorm3d LocalResponseNorm",
            ),
            _nn(
                "Attention and transformers",
                "MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer "
                "TransformerDecoder TransformerDecoderLayer",
            ),
            _nn("Recurrent layers", "RNN LSTM GRU RNNCell LSTMCell GRUCell"),
            _nn(
                "Activations",
                "ReLU GELU SiLU Sigmoid Tanh Softmax LogSoftmax LeakyReLU ELU CELU SELU GLU "
                "Hardshrink Hardsigmoid Hardswish Hardtanh LogSigmoid Mish PReLU RReLU ReLU6 "
                "Softmax2d Softmin Softplus Softshrink Softsign Tanhshrink Threshold",
            ),
            _nn(
                "Dropout",
                "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
            ),
            _nn(
                "Shapes, padding, sizes of pictures",
                "Flatten Unflatten ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d "
                "ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
                "ReplicationPad2d ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d "
                "PixelShuffle PixelUnshuffle ChannelShuffle Upsample UpsamplingNearest2d "
                "UpsamplingBilinear2d",
            ),
            _nn(
                "Losses",
                "CrossEntropyLoss NLLLoss MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss "
                "BCEWithLogitsLoss KLDivLoss CTCLoss PoissonNLLLoss GaussianNLLLoss "
                "HingeEmbeddingLoss MarginRankingLoss CosineEmbeddingLoss MultiMarginLoss "
                "MultiLabelMarginLoss MultiLabelSoftMarginLoss SoftMarginLoss TripletMarginLoss "
                "TripletMarginWithDistanceLoss",
            ),
            _nn("Distances", "CosineSimilarity PairwiseDistance"),
        ),
    ),
    Page(
        "functional",
        "td.nn.functional",
        "What layers compute, as functions of tensors. The guide: [layers](../guides/layers.md).",
        _parts(
            "nn.functional",
            "Others",
            _functional(
                "Products and embeddings",
                "linear bilinear embedding embedding_bag one_hot",
            ),
            _functional(
                "Convolution",
                "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d fold "
                "unfold",
            ),
            _functional(
                "Pooling",
                "max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d "
                "avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d lp_pool3d "
                "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
                "adaptive_max_pool2d adaptive_max_pool3d",
            ),
            _functional(
                "Normalization",
                "layer_norm rms_norm group_norm batch_norm instance_norm local_response_norm "
                "normalize",
            ),
            _functional("Attention", "packed_attention scaled_dot_product_attention"),
            _functional(
                "Activations",
                "relu relu_ gelu silu swish sigmoid tanh softmax log_softmax softmin "
                "gumbel_softmax leaky_relu leaky_relu_ elu elu_ celu celu_ selu selu_ glu geglu "
                "reglu swiglu hardshrink hardsigmoid hardswish hardtanh hardtanh_ logsigmoid mish "
                "prelu rrelu rrelu_ relu6 softplus softshrink softsign tanhshrink threshold "
                "threshold_",
            ),
            _functional(
                "Dropout",
                "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout",
            ),
            _functional(
                "Padding, sizes of pictures",
                "pad interpolate upsample upsample_nearest upsample_bilinear grid_sample "
                "affine_grid pixel_shuffle pixel_unshuffle channel_shuffle",
            ),
            _functional(
                "Losses",
                "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss "
                "binary_cross_entropy binary_cross_entropy_with_logits kl_div ctc_loss "
                "poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss "
                "cosine_embedding_loss multi_margin_loss multilabel_margin_loss "
                "multilabel_soft_margin_loss soft_margin_loss triplet_margin_loss "
                "triplet_margin_with_distance_loss",
            ),
            _functional("Distances", "cosine_similarity pairwise_distance pdist"),
        ),
    ),
    Page(
        "init",
        "td.nn.init and td.nn.utils",
        "Initial values of parameters, and what is done with all parameters of a model.",
        (
            Section("td.nn.init", _room("nn.init")),
            Section("td.nn.utils", _room("nn.utils")),
        ),
    ),
    Page(
        "optim",
        "td.optim",
        "Optimizers, schedules of learning rates, mixed precision. "
        "The guide: [training](../guides/training.md).",
        (
            Section("Optimizers", _room("optim", "optim.GradScaler")),
            Section("Schedules", _room("optim.lr_scheduler")),
            _section(
                "Mixed precision",
                "autocast GradScaler optim.GradScaler set_float32_matmul_precision "
                "get_float32_matmul_precision",
            ),
        ),
    ),
    Page(
        "data",
        "td.data",
        "Datasets, loaders, progress, files. The guides: [data](../guides/data.md), "
        "[saving and loading](../guides/checkpoints.md).",
        (
            _section("Files", "save load"),
            Section("td.data", _room("data")),
        ),
    ),
    Page(
        "distributed",
        "td.distributed",
        "Several processes that compute together. "
        "The guide: [several processes](../guides/distributed.md).",
        (
            Section("Ranks and collectives", _room("distributed")),
            _section("Arrays over a mesh", "shard"),
            Section("td.distributed.ray", _room("distributed.ray")),
        ),
    ),
    Page(
        "actors",
        "td.actors",
        "Kernels that keep their state and answer messages. "
        "The guide: [actors](../guides/actors.md).",
        (
            _section("Handlers", "actor actors.actor actors.Actor"),
            Section("Running actors", _room("actors", "actors.actor", "actors.Actor")),
        ),
    ),
    Page(
        "stencils",
        "td.stencils",
        "Grids whose cells are updated from their neighbours. "
        "The guide: [stencils](../guides/stencils.md).",
        (
            _section(
                "Stencils",
                "stencil stencil_loop GridPos stencils.stencil stencils.stencil_loop "
                "stencils.Stencil",
            ),
        ),
    ),
    Page(
        "quant",
        "td.quant",
        "Weights in blocks of a few bits. The guide: [quantized weights](../guides/quantized.md).",
        (
            _section("Files", "load_gguf quant.Gguf"),
            Section("td.quant", _room("quant", "quant.Gguf")),
        ),
    ),
    Page(
        "models",
        "td.models",
        "Language models from files. The guide: [language models](../guides/models.md).",
        (
            Section("td.models", _room("models")),
            Section("td.models.text", _room("models.text")),
        ),
    ),
    Page(
        "random",
        "td.random",
        "Arrays of random numbers, the same on every device. "
        "The guide: [random numbers](../guides/random.md).",
        (
            _section("Seeds", "manual_seed Generator"),
            Section("td.random", _room("random")),
        ),
    ),
    Page(
        "linalg",
        "td.linalg",
        "The guide: [linear algebra](../guides/linalg.md).",
        (Section("Functions", _room("linalg")),),
    ),
    Page(
        "fft",
        "td.fft",
        "The guide: [Fourier transforms](../guides/fft.md).",
        (Section("Functions", _room("fft")),),
    ),
    Page(
        "errors",
        "td.errors",
        "Every error that treadle raises. "
        "The guide says [when, and what to do](../guides/errors.md).",
        (Section("Errors and warnings", _errors()),),
    ),
)

# Modules whose public names the reference has, beside `td` itself; the modules have no entries.
ROOMS = (
    "actors", "autograd", "data", "distributed", "distributed.ray", "errors", "fft", "linalg",
    "models", "models.text", "nn", "nn.functional", "nn.init", "nn.utils",
    "optim", "optim.lr_scheduler", "quant", "random", "stencils",
)  # fmt: skip


def expected_names() -> set[str]:
    """Every public name that has to have an entry."""
    own = {name for name in public_names(td) if not inspect.ismodule(getattr(td, name))}
    rooms = {name for path in ROOMS if path != "errors" for name in _room(path)}
    return own | rooms | set(_errors())
