"""`torch.sparse`: tensors of which only some elements are kept, with their indices.

Layouts are coordinates (COO), and compressed rows and columns (CSR, CSC) of matrices. Indices and
values are ordinary tensors, so that products, sums and gradients run on every device.
"""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.sparse.arithmetic": "sum",
    "treadle.torch.sparse.creation": (
        "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor "
        "LongTensor ShortTensor check_sparse_tensor_invariants spdiags"
    ),
    "treadle.torch.sparse.products": "addmm mm sampled_addmm",
    "treadle.torch.sparse.softmaxes": "log_softmax softmax",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "", within("sparse"))
