"""The functions of neural networks, `td.nn.functional`, with PyTorch's names and defaults.

Functions made of array functions are lazy and fused with the operations around them; others call
the kernel library. float16 and bfloat16 are computed in float32 and rounded once.
"""

from treadle.tensor.functional.activations import *  # noqa: F403  what its __all__ names
from treadle.tensor.functional.affine import *  # noqa: F403
from treadle.tensor.functional.attention import *  # noqa: F403
from treadle.tensor.functional.convolution import *  # noqa: F403
from treadle.tensor.functional.distances import *  # noqa: F403
from treadle.tensor.functional.dropouts import *  # noqa: F403
from treadle.tensor.functional.element_losses import *  # noqa: F403
from treadle.tensor.functional.embeddings import *  # noqa: F403
from treadle.tensor.functional.folding import *  # noqa: F403
from treadle.tensor.functional.interpolation import *  # noqa: F403
from treadle.tensor.functional.losses import *  # noqa: F403
from treadle.tensor.functional.margin_losses import *  # noqa: F403
from treadle.tensor.functional.normalization import *  # noqa: F403
from treadle.tensor.functional.padding import *  # noqa: F403
from treadle.tensor.functional.pooling import *  # noqa: F403
from treadle.tensor.functional.sampling import *  # noqa: F403
from treadle.tensor.functional.sequence_losses import *  # noqa: F403
from treadle.tensor.functional.unpooling import *  # noqa: F403

# Functions that are also methods of tensors: `x.softmax(axis=0)`.
METHODS = {
    name: globals()[name]
    for name in (
        "elu", "gelu", "leaky_relu", "log_softmax", "relu", "silu", "softmax", "softplus",
    )
}  # fmt: skip

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "gaussian_nll_loss",
    "geglu",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "reglu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "swiglu",
    "swish",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
