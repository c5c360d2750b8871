# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.backends`: the switches of PyTorch's libraries, of which treadle has none. Those that
change how treadle computes do so; all others are kept, and change nothing.
"""

from treadle.torch.backends import cpu as cpu
from treadle.torch.backends import cuda as cuda
from treadle.torch.backends import cudnn as cudnn
from treadle.torch.backends import mha as mha
from treadle.torch.backends import mkl as mkl
from treadle.torch.backends import mkldnn as mkldnn
from treadle.torch.backends import mps as mps
from treadle.torch.backends import openmp as openmp
from treadle.torch.backends import opt_einsum as opt_einsum

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "openmp",
    "opt_einsum",
]
