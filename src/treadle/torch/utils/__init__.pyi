# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.utils`: data, checkpoints of activations, files for TensorBoard."""

from treadle.torch.utils import checkpoint as checkpoint
from treadle.torch.utils import data as data
from treadle.torch.utils import tensorboard as tensorboard

__all__ = [
    "checkpoint",
    "data",
    "tensorboard",
]
