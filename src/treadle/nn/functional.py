"""What layers compute, as functions of tensors."""

from treadle.tensor.functional import (
    elu,
    gelu,
    layer_norm,
    leaky_relu,
    log_softmax,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    swish,
    tanh,
)

__all__ = [
    "elu", "gelu", "layer_norm", "leaky_relu", "log_softmax", "relu", "sigmoid", "silu", "softmax",
    "softplus", "swish", "tanh",
]  # fmt: skip
