"""Neural networks: modules with PyTorch's names, arguments, defaults and state dicts.

`functional` has what layers compute as functions of tensors, `init` the initial values.
"""

from treadle.nn import functional, init
from treadle.nn.containers import Sequential
from treadle.nn.linear import Linear
from treadle.nn.losses import MSELoss
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter

__all__ = ["Linear", "MSELoss", "Module", "Parameter", "Sequential", "functional", "init"]
