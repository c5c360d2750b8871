"""The `Tensor` that people hold, the functions that make one, and the Array API's namespace."""

from treadle.core.environment import is_on
from treadle.graph.explain import explain_everything
from treadle.tensor import operators as _operators  # noqa: F401  gives Tensor its operators
from treadle.tensor.creation import arange, asarray, empty, from_dlpack, full, ones, zeros
from treadle.tensor.dtypes import can_cast, finfo, iinfo, isdtype, result_type
from treadle.tensor.elementwise import elementwise
from treadle.tensor.elementwise_functions import conj, imag, real
from treadle.tensor.explaining import explain
from treadle.tensor.info import __array_namespace_info__
from treadle.tensor.tensor import Tensor

__all__ = [
    "Tensor",
    "__array_namespace_info__",
    "arange",
    "asarray",
    "can_cast",
    "conj",
    "elementwise",
    "empty",
    "explain",
    "finfo",
    "from_dlpack",
    "full",
    "iinfo",
    "imag",
    "isdtype",
    "ones",
    "real",
    "result_type",
    "zeros",
]

if is_on("TREADLE_EXPLAIN"):
    explain_everything()
