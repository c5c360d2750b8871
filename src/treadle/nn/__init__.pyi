# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Neural networks: modules with PyTorch's names, arguments, defaults and state dicts.

Parameters are float32 unless `dtype` is given. Layers without parameters return the dtype of a
floating input. Docstrings write shapes with PyTorch's letters: N is the batch, C the channels, D,
H, W and L are extents. `functional` has the functions of layers, `init` the initial values.
"""

from treadle.nn import functional as functional
from treadle.nn import init as init
from treadle.nn import utils as utils
from treadle.nn.activations import CELU as CELU
from treadle.nn.activations import ELU as ELU
from treadle.nn.activations import GELU as GELU
from treadle.nn.activations import GLU as GLU
from treadle.nn.activations import SELU as SELU
from treadle.nn.activations import Hardshrink as Hardshrink
from treadle.nn.activations import Hardsigmoid as Hardsigmoid
from treadle.nn.activations import Hardswish as Hardswish
from treadle.nn.activations import Hardtanh as Hardtanh
from treadle.nn.activations import LeakyReLU as LeakyReLU
from treadle.nn.activations import LogSigmoid as LogSigmoid
from treadle.nn.activations import LogSoftmax as LogSoftmax
from treadle.nn.activations import Mish as Mish
from treadle.nn.activations import PReLU as PReLU
from treadle.nn.activations import ReLU as ReLU
from treadle.nn.activations import ReLU6 as ReLU6
from treadle.nn.activations import RReLU as RReLU
from treadle.nn.activations import Sigmoid as Sigmoid
from treadle.nn.activations import SiLU as SiLU
from treadle.nn.activations import Softmax as Softmax
from treadle.nn.activations import Softmax2d as Softmax2d
from treadle.nn.activations import Softmin as Softmin
from treadle.nn.activations import Softplus as Softplus
from treadle.nn.activations import Softshrink as Softshrink
from treadle.nn.activations import Softsign as Softsign
from treadle.nn.activations import Tanh as Tanh
from treadle.nn.activations import Tanhshrink as Tanhshrink
from treadle.nn.activations import Threshold as Threshold
from treadle.nn.attention import MultiheadAttention as MultiheadAttention
from treadle.nn.containers import ModuleDict as ModuleDict
from treadle.nn.containers import ModuleList as ModuleList
from treadle.nn.containers import ParameterDict as ParameterDict
from treadle.nn.containers import ParameterList as ParameterList
from treadle.nn.containers import Sequential as Sequential
from treadle.nn.convolution import Conv1d as Conv1d
from treadle.nn.convolution import Conv2d as Conv2d
from treadle.nn.convolution import Conv3d as Conv3d
from treadle.nn.convolution import ConvTranspose1d as ConvTranspose1d
from treadle.nn.convolution import ConvTranspose2d as ConvTranspose2d
from treadle.nn.convolution import ConvTranspose3d as ConvTranspose3d
from treadle.nn.dropout import AlphaDropout as AlphaDropout
from treadle.nn.dropout import Dropout as Dropout
from treadle.nn.dropout import Dropout1d as Dropout1d
from treadle.nn.dropout import Dropout2d as Dropout2d
from treadle.nn.dropout import Dropout3d as Dropout3d
from treadle.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from treadle.nn.embedding import Embedding as Embedding
from treadle.nn.embedding import EmbeddingBag as EmbeddingBag
from treadle.nn.linear import Bilinear as Bilinear
from treadle.nn.linear import Identity as Identity
from treadle.nn.linear import Linear as Linear
from treadle.nn.losses import BCELoss as BCELoss
from treadle.nn.losses import BCEWithLogitsLoss as BCEWithLogitsLoss
from treadle.nn.losses import CrossEntropyLoss as CrossEntropyLoss
from treadle.nn.losses import CTCLoss as CTCLoss
from treadle.nn.losses import GaussianNLLLoss as GaussianNLLLoss
from treadle.nn.losses import HuberLoss as HuberLoss
from treadle.nn.losses import KLDivLoss as KLDivLoss
from treadle.nn.losses import L1Loss as L1Loss
from treadle.nn.losses import MSELoss as MSELoss
from treadle.nn.losses import MultiLabelMarginLoss as MultiLabelMarginLoss
from treadle.nn.losses import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from treadle.nn.losses import MultiMarginLoss as MultiMarginLoss
from treadle.nn.losses import NLLLoss as NLLLoss
from treadle.nn.losses import PoissonNLLLoss as PoissonNLLLoss
from treadle.nn.losses import SmoothL1Loss as SmoothL1Loss
from treadle.nn.losses import SoftMarginLoss as SoftMarginLoss
from treadle.nn.module import Module as Module
from treadle.nn.normalization import BatchNorm1d as BatchNorm1d
from treadle.nn.normalization import BatchNorm2d as BatchNorm2d
from treadle.nn.normalization import BatchNorm3d as BatchNorm3d
from treadle.nn.normalization import GroupNorm as GroupNorm
from treadle.nn.normalization import InstanceNorm1d as InstanceNorm1d
from treadle.nn.normalization import InstanceNorm2d as InstanceNorm2d
from treadle.nn.normalization import InstanceNorm3d as InstanceNorm3d
from treadle.nn.normalization import LayerNorm as LayerNorm
from treadle.nn.normalization import LocalResponseNorm as LocalResponseNorm
from treadle.nn.normalization import RMSNorm as RMSNorm
from treadle.nn.padding import CircularPad1d as CircularPad1d
from treadle.nn.padding import CircularPad2d as CircularPad2d
from treadle.nn.padding import CircularPad3d as CircularPad3d
from treadle.nn.padding import ConstantPad1d as ConstantPad1d
from treadle.nn.padding import ConstantPad2d as ConstantPad2d
from treadle.nn.padding import ConstantPad3d as ConstantPad3d
from treadle.nn.padding import ReflectionPad1d as ReflectionPad1d
from treadle.nn.padding import ReflectionPad2d as ReflectionPad2d
from treadle.nn.padding import ReflectionPad3d as ReflectionPad3d
from treadle.nn.padding import ReplicationPad1d as ReplicationPad1d
from treadle.nn.padding import ReplicationPad2d as ReplicationPad2d
from treadle.nn.padding import ReplicationPad3d as ReplicationPad3d
from treadle.nn.padding import ZeroPad1d as ZeroPad1d
from treadle.nn.padding import ZeroPad2d as ZeroPad2d
from treadle.nn.padding import ZeroPad3d as ZeroPad3d
from treadle.nn.pair_losses import CosineEmbeddingLoss as CosineEmbeddingLoss
from treadle.nn.pair_losses import HingeEmbeddingLoss as HingeEmbeddingLoss
from treadle.nn.pair_losses import MarginRankingLoss as MarginRankingLoss
from treadle.nn.pair_losses import TripletMarginLoss as TripletMarginLoss
from treadle.nn.pair_losses import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from treadle.nn.parameter import Parameter as Parameter
from treadle.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from treadle.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from treadle.nn.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from treadle.nn.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from treadle.nn.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from treadle.nn.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from treadle.nn.pooling import AvgPool1d as AvgPool1d
from treadle.nn.pooling import AvgPool2d as AvgPool2d
from treadle.nn.pooling import AvgPool3d as AvgPool3d
from treadle.nn.pooling import LPPool1d as LPPool1d
from treadle.nn.pooling import LPPool2d as LPPool2d
from treadle.nn.pooling import LPPool3d as LPPool3d
from treadle.nn.pooling import MaxPool1d as MaxPool1d
from treadle.nn.pooling import MaxPool2d as MaxPool2d
from treadle.nn.pooling import MaxPool3d as MaxPool3d
from treadle.nn.pooling import MaxUnpool1d as MaxUnpool1d
from treadle.nn.pooling import MaxUnpool2d as MaxUnpool2d
from treadle.nn.pooling import MaxUnpool3d as MaxUnpool3d
from treadle.nn.recurrent import GRU as GRU
from treadle.nn.recurrent import LSTM as LSTM
from treadle.nn.recurrent import RNN as RNN
from treadle.nn.recurrent_cells import GRUCell as GRUCell
from treadle.nn.recurrent_cells import LSTMCell as LSTMCell
from treadle.nn.recurrent_cells import RNNCell as RNNCell
from treadle.nn.shapes import ChannelShuffle as ChannelShuffle
from treadle.nn.shapes import CosineSimilarity as CosineSimilarity
from treadle.nn.shapes import Flatten as Flatten
from treadle.nn.shapes import Fold as Fold
from treadle.nn.shapes import PairwiseDistance as PairwiseDistance
from treadle.nn.shapes import PixelShuffle as PixelShuffle
from treadle.nn.shapes import PixelUnshuffle as PixelUnshuffle
from treadle.nn.shapes import Unflatten as Unflatten
from treadle.nn.shapes import Unfold as Unfold
from treadle.nn.shapes import Upsample as Upsample
from treadle.nn.shapes import UpsamplingBilinear2d as UpsamplingBilinear2d
from treadle.nn.shapes import UpsamplingNearest2d as UpsamplingNearest2d
from treadle.nn.transformer import Transformer as Transformer
from treadle.nn.transformer import TransformerDecoder as TransformerDecoder
from treadle.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from treadle.nn.transformer import TransformerEncoder as TransformerEncoder
from treadle.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "CTCLoss",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "KLDivLoss",
    "L1Loss",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "NLLLoss",
    "PReLU",
    "PairwiseDistance",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "PoissonNLLLoss",
    "RMSNorm",
    "RNNCell",
    "RReLU",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
    "functional",
    "init",
    "utils",
]
