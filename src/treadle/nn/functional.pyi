# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""What layers compute, as functions of tensors."""

from treadle.tensor.functional.activations import celu as celu
from treadle.tensor.functional.activations import celu_ as celu_
from treadle.tensor.functional.activations import elu as elu
from treadle.tensor.functional.activations import elu_ as elu_
from treadle.tensor.functional.activations import geglu as geglu
from treadle.tensor.functional.activations import gelu as gelu
from treadle.tensor.functional.activations import glu as glu
from treadle.tensor.functional.activations import gumbel_softmax as gumbel_softmax
from treadle.tensor.functional.activations import hardshrink as hardshrink
from treadle.tensor.functional.activations import hardsigmoid as hardsigmoid
from treadle.tensor.functional.activations import hardswish as hardswish
from treadle.tensor.functional.activations import hardtanh as hardtanh
from treadle.tensor.functional.activations import hardtanh_ as hardtanh_
from treadle.tensor.functional.activations import leaky_relu as leaky_relu
from treadle.tensor.functional.activations import leaky_relu_ as leaky_relu_
from treadle.tensor.functional.activations import logsigmoid as logsigmoid
from treadle.tensor.functional.activations import mish as mish
from treadle.tensor.functional.activations import prelu as prelu
from treadle.tensor.functional.activations import reglu as reglu
from treadle.tensor.functional.activations import relu as relu
from treadle.tensor.functional.activations import relu6 as relu6
from treadle.tensor.functional.activations import relu_ as relu_
from treadle.tensor.functional.activations import rrelu as rrelu
from treadle.tensor.functional.activations import rrelu_ as rrelu_
from treadle.tensor.functional.activations import selu as selu
from treadle.tensor.functional.activations import selu_ as selu_
from treadle.tensor.functional.activations import sigmoid as sigmoid
from treadle.tensor.functional.activations import silu as silu
from treadle.tensor.functional.activations import softmin as softmin
from treadle.tensor.functional.activations import softplus as softplus
from treadle.tensor.functional.activations import softshrink as softshrink
from treadle.tensor.functional.activations import softsign as softsign
from treadle.tensor.functional.activations import swiglu as swiglu
from treadle.tensor.functional.activations import swish as swish
from treadle.tensor.functional.activations import tanh as tanh
from treadle.tensor.functional.activations import tanhshrink as tanhshrink
from treadle.tensor.functional.activations import threshold as threshold
from treadle.tensor.functional.activations import threshold_ as threshold_
from treadle.tensor.functional.affine import bilinear as bilinear
from treadle.tensor.functional.affine import linear as linear
from treadle.tensor.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from treadle.tensor.functional.convolution import conv1d as conv1d
from treadle.tensor.functional.convolution import conv2d as conv2d
from treadle.tensor.functional.convolution import conv3d as conv3d
from treadle.tensor.functional.convolution import conv_transpose1d as conv_transpose1d
from treadle.tensor.functional.convolution import conv_transpose2d as conv_transpose2d
from treadle.tensor.functional.convolution import conv_transpose3d as conv_transpose3d
from treadle.tensor.functional.distances import cosine_similarity as cosine_similarity
from treadle.tensor.functional.distances import normalize as normalize
from treadle.tensor.functional.distances import pairwise_distance as pairwise_distance
from treadle.tensor.functional.distances import pdist as pdist
from treadle.tensor.functional.dropouts import alpha_dropout as alpha_dropout
from treadle.tensor.functional.dropouts import dropout as dropout
from treadle.tensor.functional.dropouts import dropout1d as dropout1d
from treadle.tensor.functional.dropouts import dropout2d as dropout2d
from treadle.tensor.functional.dropouts import dropout3d as dropout3d
from treadle.tensor.functional.dropouts import feature_alpha_dropout as feature_alpha_dropout
from treadle.tensor.functional.element_losses import binary_cross_entropy as binary_cross_entropy
from treadle.tensor.functional.element_losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from treadle.tensor.functional.element_losses import gaussian_nll_loss as gaussian_nll_loss
from treadle.tensor.functional.element_losses import huber_loss as huber_loss
from treadle.tensor.functional.element_losses import kl_div as kl_div
from treadle.tensor.functional.element_losses import l1_loss as l1_loss
from treadle.tensor.functional.element_losses import mse_loss as mse_loss
from treadle.tensor.functional.element_losses import poisson_nll_loss as poisson_nll_loss
from treadle.tensor.functional.element_losses import smooth_l1_loss as smooth_l1_loss
from treadle.tensor.functional.embeddings import embedding as embedding
from treadle.tensor.functional.embeddings import embedding_bag as embedding_bag
from treadle.tensor.functional.embeddings import one_hot as one_hot
from treadle.tensor.functional.folding import channel_shuffle as channel_shuffle
from treadle.tensor.functional.folding import fold as fold
from treadle.tensor.functional.folding import pixel_shuffle as pixel_shuffle
from treadle.tensor.functional.folding import pixel_unshuffle as pixel_unshuffle
from treadle.tensor.functional.folding import unfold as unfold
from treadle.tensor.functional.interpolation import interpolate as interpolate
from treadle.tensor.functional.interpolation import upsample as upsample
from treadle.tensor.functional.interpolation import upsample_bilinear as upsample_bilinear
from treadle.tensor.functional.interpolation import upsample_nearest as upsample_nearest
from treadle.tensor.functional.losses import cross_entropy as cross_entropy
from treadle.tensor.functional.losses import nll_loss as nll_loss
from treadle.tensor.functional.margin_losses import cosine_embedding_loss as cosine_embedding_loss
from treadle.tensor.functional.margin_losses import hinge_embedding_loss as hinge_embedding_loss
from treadle.tensor.functional.margin_losses import margin_ranking_loss as margin_ranking_loss
from treadle.tensor.functional.margin_losses import multi_margin_loss as multi_margin_loss
from treadle.tensor.functional.margin_losses import multilabel_margin_loss as multilabel_margin_loss
from treadle.tensor.functional.margin_losses import (
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from treadle.tensor.functional.margin_losses import soft_margin_loss as soft_margin_loss
from treadle.tensor.functional.margin_losses import triplet_margin_loss as triplet_margin_loss
from treadle.tensor.functional.margin_losses import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from treadle.tensor.functional.normalization import batch_norm as batch_norm
from treadle.tensor.functional.normalization import group_norm as group_norm
from treadle.tensor.functional.normalization import instance_norm as instance_norm
from treadle.tensor.functional.normalization import layer_norm as layer_norm
from treadle.tensor.functional.normalization import local_response_norm as local_response_norm
from treadle.tensor.functional.normalization import log_softmax as log_softmax
from treadle.tensor.functional.normalization import rms_norm as rms_norm
from treadle.tensor.functional.normalization import softmax as softmax
from treadle.tensor.functional.packed_attention import packed_attention as packed_attention
from treadle.tensor.functional.padding import pad as pad
from treadle.tensor.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from treadle.tensor.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from treadle.tensor.functional.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from treadle.tensor.functional.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from treadle.tensor.functional.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from treadle.tensor.functional.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from treadle.tensor.functional.pooling import avg_pool1d as avg_pool1d
from treadle.tensor.functional.pooling import avg_pool2d as avg_pool2d
from treadle.tensor.functional.pooling import avg_pool3d as avg_pool3d
from treadle.tensor.functional.pooling import lp_pool1d as lp_pool1d
from treadle.tensor.functional.pooling import lp_pool2d as lp_pool2d
from treadle.tensor.functional.pooling import lp_pool3d as lp_pool3d
from treadle.tensor.functional.pooling import max_pool1d as max_pool1d
from treadle.tensor.functional.pooling import max_pool2d as max_pool2d
from treadle.tensor.functional.pooling import max_pool3d as max_pool3d
from treadle.tensor.functional.sampling import affine_grid as affine_grid
from treadle.tensor.functional.sampling import grid_sample as grid_sample
from treadle.tensor.functional.sequence_losses import ctc_loss as ctc_loss
from treadle.tensor.functional.unpooling import max_unpool1d as max_unpool1d
from treadle.tensor.functional.unpooling import max_unpool2d as max_unpool2d
from treadle.tensor.functional.unpooling import max_unpool3d as max_unpool3d

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
    "packed_attention",
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
