"""Neural networks: modules with PyTorch's names, arguments, defaults and state dicts.

Parameters are float32 unless `dtype` is given. Layers without parameters return the dtype of a
floating input. Docstrings write shapes with PyTorch's letters: N is the batch, C the channels, D,
H, W and L are extents. `functional` has the functions of layers, `init` the initial values.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.nn.activations": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid "
        "LogSoftmax Mish PReLU ReLU ReLU6 RReLU SELU Sigmoid SiLU Softmax Softmax2d Softmin "
        "Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
    ),
    "treadle.nn.attention": "MultiheadAttention",
    "treadle.nn.containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "treadle.nn.convolution": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
    ),
    "treadle.nn.dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "treadle.nn.embedding": "Embedding EmbeddingBag",
    "treadle.nn.linear": "Bilinear Identity Linear",
    "treadle.nn.losses": (
        "BCELoss BCEWithLogitsLoss CrossEntropyLoss CTCLoss GaussianNLLLoss HuberLoss "
        "KLDivLoss L1Loss MSELoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
        "MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss"
    ),
    "treadle.nn.module": "Module",
    "treadle.nn.normalization": (
        "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LayerNorm LocalResponseNorm RMSNorm"
    ),
    "treadle.nn.padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
        "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
        "ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "treadle.nn.pair_losses": (
        "CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss"
    ),
    "treadle.nn.parameter": "Parameter",
    "treadle.nn.pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d "
        "AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d "
        "LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
    ),
    "treadle.nn.recurrent": "GRU LSTM RNN",
    "treadle.nn.recurrent_cells": "GRUCell LSTMCell RNNCell",
    "treadle.nn.shapes": (
        "ChannelShuffle CosineSimilarity Flatten Fold PairwiseDistance PixelShuffle "
        "PixelUnshuffle Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d"
    ),
    "treadle.nn.transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
        "TransformerEncoderLayer"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "functional init utils")
