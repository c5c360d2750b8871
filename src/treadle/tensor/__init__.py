"""The `Tensor` that people hold, the functions that make one, and the Array API's namespace."""

from treadle.core.environment import is_on
from treadle.graph.explain import explain_everything
from treadle.tensor import operators as _operators  # noqa: F401  gives Tensor its operators
from treadle.tensor import random
from treadle.tensor.creation import arange, asarray, empty, from_dlpack, full, ones, zeros
from treadle.tensor.dtypes import can_cast, finfo, iinfo, isdtype, result_type
from treadle.tensor.elementwise import elementwise
from treadle.tensor.elementwise_functions import angle, conj, imag, real
from treadle.tensor.explaining import explain
from treadle.tensor.generator import Generator, manual_seed
from treadle.tensor.info import __array_namespace_info__
from treadle.tensor.products import dot, matmul, outer, tensordot, vecdot
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
from treadle.tensor.searching import argwhere, nonzero, searchsorted, take, take_along_axis
from treadle.tensor.sets import unique_all, unique_counts, unique_inverse, unique_values
from treadle.tensor.sorting import argsort, sort
from treadle.tensor.tensor import Tensor

__all__ = [
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
    "can_cast",
    "conj",
    "count_nonzero",
    "dot",
    "elementwise",
    "empty",
    "explain",
    "finfo",
    "from_dlpack",
    "full",
    "iinfo",
    "imag",
    "isdtype",
    "logsumexp",
    "manual_seed",
    "matmul",
    "max",
    "mean",
    "min",
    "nonzero",
    "ones",
    "outer",
    "prod",
    "random",
    "real",
    "result_type",
    "searchsorted",
    "sort",
    "std",
    "sum",
    "take",
    "take_along_axis",
    "tensordot",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "var",
    "vecdot",
    "zeros",
]

if is_on("TREADLE_EXPLAIN"):
    explain_everything()
