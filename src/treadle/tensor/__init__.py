"""`Tensor`, the functions that make tensors, and the Array API's namespace."""

import sys
from types import ModuleType
from typing import Any, NoReturn

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.tensor.array_api": "__array_namespace_info__",
    "treadle.tensor.assembly": "concat diff repeat roll stack tile",
    "treadle.tensor.batch": "CommandBatch",
    "treadle.tensor.comparing": "allclose isclose lerp nan_to_num",
    "treadle.tensor.compiled": "compile",
    "treadle.tensor.covariances": "corrcoef cov",
    "treadle.tensor.creation": (
        "asarray astype empty empty_like from_dlpack full full_like ones ones_like zeros zeros_like"
    ),
    "treadle.tensor.diagonals": "diag trace tril_indices triu_indices",
    "treadle.tensor.distances": "cdist",
    "treadle.tensor.dtypes": "can_cast finfo iinfo isdtype result_type",
    "treadle.tensor.einstein_summation": "einsum kron",
    "treadle.tensor.elementwise_decorator": "elementwise",
    "treadle.tensor.elementwise_functions": "angle conj imag real",
    "treadle.tensor.generator": "Generator manual_seed",
    "treadle.tensor.histograms": "bincount histc histogram",
    "treadle.tensor.indexing": "newaxis",
    "treadle.tensor.manipulation": (
        "broadcast_arrays broadcast_to diagonal expand_dims flip matrix_transpose moveaxis "
        "permute_dims reshape rot90 split squeeze swapaxes unstack"
    ),
    "treadle.tensor.nan_reductions": (
        "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum "
        "nanvar"
    ),
    "treadle.tensor.padding": "pad",
    "treadle.tensor.precision": (
        "autocast get_float32_matmul_precision set_float32_matmul_precision"
    ),
    "treadle.tensor.products": "inner matmul outer tensordot vecdot",
    "treadle.tensor.quantiles": (
        "kthvalue median nanmedian nanpercentile nanquantile percentile quantile"
    ),
    "treadle.tensor.ranges": "arange eye linspace meshgrid tril triu",
    "treadle.tensor.reductions": (
        "all any argmax argmin count_nonzero logsumexp max mean min prod std sum var"
    ),
    "treadle.tensor.representation": "explain",
    "treadle.tensor.sampled_functions": ("bucketize convolve digitize gradient interp trapezoid"),
    "treadle.tensor.scans": "cumulative_prod cumulative_sum",
    "treadle.tensor.scattering": (
        "gather index_add index_copy index_fill index_select masked_fill masked_select "
        "scatter scatter_add scatter_reduce"
    ),
    "treadle.tensor.searching": "argwhere nonzero searchsorted take take_along_axis",
    "treadle.tensor.sets": "unique unique_all unique_counts unique_inverse unique_values",
    "treadle.tensor.sorting": "argsort sort topk",
    "treadle.tensor.special": "digamma",
    "treadle.tensor.spectrograms": (
        "bartlett_window blackman_window hamming_window hann_window kaiser_window stft"
    ),
    "treadle.tensor.tensor": "Tensor",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "fft linalg random")


class _Package(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("td.tensor is a package: td.asarray(…) makes a tensor")


sys.modules[__name__].__class__ = _Package
