"""The functions of neural networks, `td.nn.functional`, with PyTorch's names and defaults.

Functions made of array functions are lazy and fused with the operations around them; others call
the kernel library. float16 and bfloat16 are computed in float32 and rounded once.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.tensor.functional.activations": (
        "celu celu_ elu elu_ geglu gelu glu gumbel_softmax hardshrink hardsigmoid hardswish "
        "hardtanh hardtanh_ leaky_relu leaky_relu_ logsigmoid mish prelu reglu relu relu6 "
        "relu_ rrelu rrelu_ selu selu_ sigmoid silu softmin softplus softshrink softsign "
        "swiglu swish tanh tanhshrink threshold threshold_"
    ),
    "treadle.tensor.functional.affine": "bilinear linear",
    "treadle.tensor.functional.attention": "scaled_dot_product_attention",
    "treadle.tensor.functional.convolution": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "treadle.tensor.functional.distances": "cosine_similarity normalize pairwise_distance pdist",
    "treadle.tensor.functional.dropouts": (
        "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout"
    ),
    "treadle.tensor.functional.element_losses": (
        "binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss huber_loss "
        "kl_div l1_loss mse_loss poisson_nll_loss smooth_l1_loss"
    ),
    "treadle.tensor.functional.embeddings": "embedding embedding_bag one_hot",
    "treadle.tensor.functional.folding": (
        "channel_shuffle fold pixel_shuffle pixel_unshuffle unfold"
    ),
    "treadle.tensor.functional.interpolation": (
        "interpolate upsample upsample_bilinear upsample_nearest"
    ),
    "treadle.tensor.functional.losses": "cross_entropy nll_loss",
    "treadle.tensor.functional.margin_losses": (
        "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
        "multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss "
        "triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "treadle.tensor.functional.normalization": (
        "batch_norm group_norm instance_norm layer_norm local_response_norm log_softmax "
        "rms_norm softmax"
    ),
    "treadle.tensor.functional.packed_attention": "packed_attention",
    "treadle.tensor.functional.padding": "pad",
    "treadle.tensor.functional.pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d "
        "lp_pool2d lp_pool3d max_pool1d max_pool2d max_pool3d"
    ),
    "treadle.tensor.functional.sampling": "affine_grid grid_sample",
    "treadle.tensor.functional.sequence_losses": "ctc_loss",
    "treadle.tensor.functional.unpooling": "max_unpool1d max_unpool2d max_unpool3d",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
