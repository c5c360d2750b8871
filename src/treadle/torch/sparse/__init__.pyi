# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.sparse`: tensors of which only some elements are kept, with their indices.

Layouts are coordinates (COO), and compressed rows and columns (CSR, CSC) of matrices. Indices and
values are ordinary tensors, so that products, sums and gradients run on every device.
"""

from treadle.torch.sparse.arithmetic import sum as sum
from treadle.torch.sparse.creation import BFloat16Tensor as BFloat16Tensor
from treadle.torch.sparse.creation import ByteTensor as ByteTensor
from treadle.torch.sparse.creation import CharTensor as CharTensor
from treadle.torch.sparse.creation import DoubleTensor as DoubleTensor
from treadle.torch.sparse.creation import FloatTensor as FloatTensor
from treadle.torch.sparse.creation import HalfTensor as HalfTensor
from treadle.torch.sparse.creation import IntTensor as IntTensor
from treadle.torch.sparse.creation import LongTensor as LongTensor
from treadle.torch.sparse.creation import ShortTensor as ShortTensor
from treadle.torch.sparse.creation import (
    check_sparse_tensor_invariants as check_sparse_tensor_invariants,
)
from treadle.torch.sparse.creation import spdiags as spdiags
from treadle.torch.sparse.products import addmm as addmm
from treadle.torch.sparse.products import mm as mm
from treadle.torch.sparse.products import sampled_addmm as sampled_addmm
from treadle.torch.sparse.softmaxes import log_softmax as log_softmax
from treadle.torch.sparse.softmaxes import softmax as softmax

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]
