"""`Tensor`, the functions that make tensors, and the Array API's namespace."""

from treadle.tensor import fft, linalg, random
from treadle.tensor import methods as _methods
from treadle.tensor import operators as _operators
from treadle.tensor import products as _products
from treadle.tensor.array_api import __array_namespace_info__
from treadle.tensor.assembly import concat, diff, repeat, roll, stack, tile
from treadle.tensor.batch import CommandBatch
from treadle.tensor.compiled import compile
from treadle.tensor.creation import (
    asarray,
    astype,
    empty,
    empty_like,
    from_dlpack,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from treadle.tensor.distances import cdist
from treadle.tensor.dtypes import can_cast, finfo, iinfo, isdtype, result_type
from treadle.tensor.einsum import einsum, kron
from treadle.tensor.elementwise import elementwise
from treadle.tensor.elementwise_functions import angle, conj, imag, real
from treadle.tensor.generator import Generator, manual_seed
from treadle.tensor.histograms import bincount, histc, histogram
from treadle.tensor.indexing import newaxis
from treadle.tensor.manipulation import (
    broadcast_arrays,
    broadcast_to,
    diagonal,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    split,
    squeeze,
    swapaxes,
    unstack,
)
from treadle.tensor.precision import autocast
from treadle.tensor.products import matmul, outer, tensordot, vecdot
from treadle.tensor.ranges import arange, eye, linspace, meshgrid, tril, triu
from treadle.tensor.reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    logsumexp,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from treadle.tensor.representation import explain
from treadle.tensor.scans import cumulative_prod, cumulative_sum
from treadle.tensor.scattering import (
    gather,
    index_add,
    index_copy,
    index_fill,
    index_select,
    masked_fill,
    masked_select,
    scatter,
    scatter_add,
    scatter_reduce,
)
from treadle.tensor.searching import argwhere, nonzero, searchsorted, take, take_along_axis
from treadle.tensor.sets import unique_all, unique_counts, unique_inverse, unique_values
from treadle.tensor.sorting import argsort, sort, topk
from treadle.tensor.tensor import Tensor

__all__ = [
    "CommandBatch",
    "Generator",
    "Tensor",
    "__array_namespace_info__",
    "all",
    "angle",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "asarray",
    "astype",
    "autocast",
    "bincount",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "cdist",
    "compile",
    "concat",
    "conj",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diagonal",
    "diff",
    "einsum",
    "elementwise",
    "empty",
    "empty_like",
    "expand_dims",
    "explain",
    "eye",
    "fft",
    "finfo",
    "flip",
    "from_dlpack",
    "full",
    "full_like",
    "gather",
    "histc",
    "histogram",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "isdtype",
    "kron",
    "linalg",
    "linspace",
    "logsumexp",
    "manual_seed",
    "masked_fill",
    "masked_select",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "meshgrid",
    "min",
    "moveaxis",
    "newaxis",
    "nonzero",
    "ones",
    "ones_like",
    "outer",
    "permute_dims",
    "prod",
    "random",
    "real",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "sort",
    "split",
    "squeeze",
    "stack",
    "std",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "topk",
    "tril",
    "triu",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "zeros",
    "zeros_like",
]

_methods.install()
_operators.install(_products.OPERATORS)
