# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.nn`: modules with PyTorch's interface over treadle's layers."""

from treadle.torch.nn import functional as functional
from treadle.torch.nn import init as init
from treadle.torch.nn import modules as modules
from treadle.torch.nn import parallel as parallel
from treadle.torch.nn import parameter as parameter
from treadle.torch.nn import utils as utils
from treadle.torch.nn.added import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from treadle.torch.nn.added import FractionalMaxPool2d as FractionalMaxPool2d
from treadle.torch.nn.added import FractionalMaxPool3d as FractionalMaxPool3d
from treadle.torch.nn.added import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from treadle.torch.nn.added import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from treadle.torch.nn.containers import ModuleDict as ModuleDict
from treadle.torch.nn.containers import ModuleList as ModuleList
from treadle.torch.nn.containers import ParameterDict as ParameterDict
from treadle.torch.nn.containers import ParameterList as ParameterList
from treadle.torch.nn.containers import Sequential as Sequential
from treadle.torch.nn.layers import CELU as CELU
from treadle.torch.nn.layers import ELU as ELU
from treadle.torch.nn.layers import GELU as GELU
from treadle.torch.nn.layers import GLU as GLU
from treadle.torch.nn.layers import GRU as GRU
from treadle.torch.nn.layers import LSTM as LSTM
from treadle.torch.nn.layers import RNN as RNN
from treadle.torch.nn.layers import SELU as SELU
from treadle.torch.nn.layers import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from treadle.torch.nn.layers import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from treadle.torch.nn.layers import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from treadle.torch.nn.layers import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from treadle.torch.nn.layers import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from treadle.torch.nn.layers import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from treadle.torch.nn.layers import AlphaDropout as AlphaDropout
from treadle.torch.nn.layers import AvgPool1d as AvgPool1d
from treadle.torch.nn.layers import AvgPool2d as AvgPool2d
from treadle.torch.nn.layers import AvgPool3d as AvgPool3d
from treadle.torch.nn.layers import BatchNorm1d as BatchNorm1d
from treadle.torch.nn.layers import BatchNorm2d as BatchNorm2d
from treadle.torch.nn.layers import BatchNorm3d as BatchNorm3d
from treadle.torch.nn.layers import BCELoss as BCELoss
from treadle.torch.nn.layers import BCEWithLogitsLoss as BCEWithLogitsLoss
from treadle.torch.nn.layers import Bilinear as Bilinear
from treadle.torch.nn.layers import ChannelShuffle as ChannelShuffle
from treadle.torch.nn.layers import CircularPad1d as CircularPad1d
from treadle.torch.nn.layers import CircularPad2d as CircularPad2d
from treadle.torch.nn.layers import CircularPad3d as CircularPad3d
from treadle.torch.nn.layers import ConstantPad1d as ConstantPad1d
from treadle.torch.nn.layers import ConstantPad2d as ConstantPad2d
from treadle.torch.nn.layers import ConstantPad3d as ConstantPad3d
from treadle.torch.nn.layers import Conv1d as Conv1d
from treadle.torch.nn.layers import Conv2d as Conv2d
from treadle.torch.nn.layers import Conv3d as Conv3d
from treadle.torch.nn.layers import ConvTranspose1d as ConvTranspose1d
from treadle.torch.nn.layers import ConvTranspose2d as ConvTranspose2d
from treadle.torch.nn.layers import ConvTranspose3d as ConvTranspose3d
from treadle.torch.nn.layers import CosineEmbeddingLoss as CosineEmbeddingLoss
from treadle.torch.nn.layers import CosineSimilarity as CosineSimilarity
from treadle.torch.nn.layers import CrossEntropyLoss as CrossEntropyLoss
from treadle.torch.nn.layers import CTCLoss as CTCLoss
from treadle.torch.nn.layers import Dropout as Dropout
from treadle.torch.nn.layers import Dropout1d as Dropout1d
from treadle.torch.nn.layers import Dropout2d as Dropout2d
from treadle.torch.nn.layers import Dropout3d as Dropout3d
from treadle.torch.nn.layers import Embedding as Embedding
from treadle.torch.nn.layers import EmbeddingBag as EmbeddingBag
from treadle.torch.nn.layers import FeatureAlphaDropout as FeatureAlphaDropout
from treadle.torch.nn.layers import Flatten as Flatten
from treadle.torch.nn.layers import Fold as Fold
from treadle.torch.nn.layers import GaussianNLLLoss as GaussianNLLLoss
from treadle.torch.nn.layers import GroupNorm as GroupNorm
from treadle.torch.nn.layers import GRUCell as GRUCell
from treadle.torch.nn.layers import Hardshrink as Hardshrink
from treadle.torch.nn.layers import Hardsigmoid as Hardsigmoid
from treadle.torch.nn.layers import Hardswish as Hardswish
from treadle.torch.nn.layers import Hardtanh as Hardtanh
from treadle.torch.nn.layers import HingeEmbeddingLoss as HingeEmbeddingLoss
from treadle.torch.nn.layers import HuberLoss as HuberLoss
from treadle.torch.nn.layers import Identity as Identity
from treadle.torch.nn.layers import InstanceNorm1d as InstanceNorm1d
from treadle.torch.nn.layers import InstanceNorm2d as InstanceNorm2d
from treadle.torch.nn.layers import InstanceNorm3d as InstanceNorm3d
from treadle.torch.nn.layers import KLDivLoss as KLDivLoss
from treadle.torch.nn.layers import L1Loss as L1Loss
from treadle.torch.nn.layers import LayerNorm as LayerNorm
from treadle.torch.nn.layers import LeakyReLU as LeakyReLU
from treadle.torch.nn.layers import Linear as Linear
from treadle.torch.nn.layers import LocalResponseNorm as LocalResponseNorm
from treadle.torch.nn.layers import LogSigmoid as LogSigmoid
from treadle.torch.nn.layers import LogSoftmax as LogSoftmax
from treadle.torch.nn.layers import LPPool1d as LPPool1d
from treadle.torch.nn.layers import LPPool2d as LPPool2d
from treadle.torch.nn.layers import LPPool3d as LPPool3d
from treadle.torch.nn.layers import LSTMCell as LSTMCell
from treadle.torch.nn.layers import MarginRankingLoss as MarginRankingLoss
from treadle.torch.nn.layers import MaxPool1d as MaxPool1d
from treadle.torch.nn.layers import MaxPool2d as MaxPool2d
from treadle.torch.nn.layers import MaxPool3d as MaxPool3d
from treadle.torch.nn.layers import MaxUnpool1d as MaxUnpool1d
from treadle.torch.nn.layers import MaxUnpool2d as MaxUnpool2d
from treadle.torch.nn.layers import MaxUnpool3d as MaxUnpool3d
from treadle.torch.nn.layers import Mish as Mish
from treadle.torch.nn.layers import MSELoss as MSELoss
from treadle.torch.nn.layers import MultiheadAttention as MultiheadAttention
from treadle.torch.nn.layers import MultiLabelMarginLoss as MultiLabelMarginLoss
from treadle.torch.nn.layers import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from treadle.torch.nn.layers import MultiMarginLoss as MultiMarginLoss
from treadle.torch.nn.layers import NLLLoss as NLLLoss
from treadle.torch.nn.layers import PairwiseDistance as PairwiseDistance
from treadle.torch.nn.layers import PixelShuffle as PixelShuffle
from treadle.torch.nn.layers import PixelUnshuffle as PixelUnshuffle
from treadle.torch.nn.layers import PoissonNLLLoss as PoissonNLLLoss
from treadle.torch.nn.layers import PReLU as PReLU
from treadle.torch.nn.layers import ReflectionPad1d as ReflectionPad1d
from treadle.torch.nn.layers import ReflectionPad2d as ReflectionPad2d
from treadle.torch.nn.layers import ReflectionPad3d as ReflectionPad3d
from treadle.torch.nn.layers import ReLU as ReLU
from treadle.torch.nn.layers import ReLU6 as ReLU6
from treadle.torch.nn.layers import ReplicationPad1d as ReplicationPad1d
from treadle.torch.nn.layers import ReplicationPad2d as ReplicationPad2d
from treadle.torch.nn.layers import ReplicationPad3d as ReplicationPad3d
from treadle.torch.nn.layers import RMSNorm as RMSNorm
from treadle.torch.nn.layers import RNNBase as RNNBase
from treadle.torch.nn.layers import RNNCell as RNNCell
from treadle.torch.nn.layers import RNNCellBase as RNNCellBase
from treadle.torch.nn.layers import RReLU as RReLU
from treadle.torch.nn.layers import Sigmoid as Sigmoid
from treadle.torch.nn.layers import SiLU as SiLU
from treadle.torch.nn.layers import SmoothL1Loss as SmoothL1Loss
from treadle.torch.nn.layers import SoftMarginLoss as SoftMarginLoss
from treadle.torch.nn.layers import Softmax as Softmax
from treadle.torch.nn.layers import Softmax2d as Softmax2d
from treadle.torch.nn.layers import Softmin as Softmin
from treadle.torch.nn.layers import Softplus as Softplus
from treadle.torch.nn.layers import Softshrink as Softshrink
from treadle.torch.nn.layers import Softsign as Softsign
from treadle.torch.nn.layers import Tanh as Tanh
from treadle.torch.nn.layers import Tanhshrink as Tanhshrink
from treadle.torch.nn.layers import Threshold as Threshold
from treadle.torch.nn.layers import Transformer as Transformer
from treadle.torch.nn.layers import TransformerDecoder as TransformerDecoder
from treadle.torch.nn.layers import TransformerDecoderLayer as TransformerDecoderLayer
from treadle.torch.nn.layers import TransformerEncoder as TransformerEncoder
from treadle.torch.nn.layers import TransformerEncoderLayer as TransformerEncoderLayer
from treadle.torch.nn.layers import TripletMarginLoss as TripletMarginLoss
from treadle.torch.nn.layers import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from treadle.torch.nn.layers import Unflatten as Unflatten
from treadle.torch.nn.layers import Unfold as Unfold
from treadle.torch.nn.layers import Upsample as Upsample
from treadle.torch.nn.layers import UpsamplingBilinear2d as UpsamplingBilinear2d
from treadle.torch.nn.layers import UpsamplingNearest2d as UpsamplingNearest2d
from treadle.torch.nn.layers import ZeroPad1d as ZeroPad1d
from treadle.torch.nn.layers import ZeroPad2d as ZeroPad2d
from treadle.torch.nn.layers import ZeroPad3d as ZeroPad3d
from treadle.torch.nn.lazy import LazyBatchNorm1d as LazyBatchNorm1d
from treadle.torch.nn.lazy import LazyBatchNorm2d as LazyBatchNorm2d
from treadle.torch.nn.lazy import LazyBatchNorm3d as LazyBatchNorm3d
from treadle.torch.nn.lazy import LazyConv1d as LazyConv1d
from treadle.torch.nn.lazy import LazyConv2d as LazyConv2d
from treadle.torch.nn.lazy import LazyConv3d as LazyConv3d
from treadle.torch.nn.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from treadle.torch.nn.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from treadle.torch.nn.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from treadle.torch.nn.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from treadle.torch.nn.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from treadle.torch.nn.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from treadle.torch.nn.lazy import LazyLinear as LazyLinear
from treadle.torch.nn.module import Module as Module
from treadle.torch.nn.parallel import DataParallel as DataParallel
from treadle.torch.nn.parameter import Buffer as Buffer
from treadle.torch.nn.parameter import Parameter as Parameter
from treadle.torch.nn.sync_batch_norm import SyncBatchNorm as SyncBatchNorm

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
    "AdaptiveLogSoftmaxWithLoss",
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
    "Buffer",
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
    "DataParallel",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
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
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LeakyReLU",
    "Linear",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
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
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
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
    "SyncBatchNorm",
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
    "modules",
    "parallel",
    "parameter",
    "utils",
]
