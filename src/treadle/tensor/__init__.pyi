# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`Tensor`, the functions that make tensors, and the Array API's namespace."""

from treadle.tensor import fft as fft
from treadle.tensor import linalg as linalg
from treadle.tensor import random as random
from treadle.tensor.array_api import __array_namespace_info__ as __array_namespace_info__
from treadle.tensor.assembly import concat as concat
from treadle.tensor.assembly import diff as diff
from treadle.tensor.assembly import repeat as repeat
from treadle.tensor.assembly import roll as roll
from treadle.tensor.assembly import stack as stack
from treadle.tensor.assembly import tile as tile
from treadle.tensor.batch import CommandBatch as CommandBatch
from treadle.tensor.comparing import allclose as allclose
from treadle.tensor.comparing import isclose as isclose
from treadle.tensor.comparing import lerp as lerp
from treadle.tensor.comparing import nan_to_num as nan_to_num
from treadle.tensor.compiled import compile as compile
from treadle.tensor.covariances import corrcoef as corrcoef
from treadle.tensor.covariances import cov as cov
from treadle.tensor.creation import asarray as asarray
from treadle.tensor.creation import astype as astype
from treadle.tensor.creation import empty as empty
from treadle.tensor.creation import empty_like as empty_like
from treadle.tensor.creation import from_dlpack as from_dlpack
from treadle.tensor.creation import full as full
from treadle.tensor.creation import full_like as full_like
from treadle.tensor.creation import ones as ones
from treadle.tensor.creation import ones_like as ones_like
from treadle.tensor.creation import zeros as zeros
from treadle.tensor.creation import zeros_like as zeros_like
from treadle.tensor.diagonals import diag as diag
from treadle.tensor.diagonals import trace as trace
from treadle.tensor.diagonals import tril_indices as tril_indices
from treadle.tensor.diagonals import triu_indices as triu_indices
from treadle.tensor.distances import cdist as cdist
from treadle.tensor.dtypes import can_cast as can_cast
from treadle.tensor.dtypes import finfo as finfo
from treadle.tensor.dtypes import iinfo as iinfo
from treadle.tensor.dtypes import isdtype as isdtype
from treadle.tensor.dtypes import result_type as result_type
from treadle.tensor.einstein_summation import einsum as einsum
from treadle.tensor.einstein_summation import kron as kron
from treadle.tensor.elementwise_decorator import elementwise as elementwise
from treadle.tensor.elementwise_functions import angle as angle
from treadle.tensor.elementwise_functions import conj as conj
from treadle.tensor.elementwise_functions import imag as imag
from treadle.tensor.elementwise_functions import real as real
from treadle.tensor.generator import Generator as Generator
from treadle.tensor.generator import manual_seed as manual_seed
from treadle.tensor.histograms import bincount as bincount
from treadle.tensor.histograms import histc as histc
from treadle.tensor.histograms import histogram as histogram
from treadle.tensor.indexing import newaxis as newaxis
from treadle.tensor.manipulation import broadcast_arrays as broadcast_arrays
from treadle.tensor.manipulation import broadcast_to as broadcast_to
from treadle.tensor.manipulation import diagonal as diagonal
from treadle.tensor.manipulation import expand_dims as expand_dims
from treadle.tensor.manipulation import flip as flip
from treadle.tensor.manipulation import matrix_transpose as matrix_transpose
from treadle.tensor.manipulation import moveaxis as moveaxis
from treadle.tensor.manipulation import permute_dims as permute_dims
from treadle.tensor.manipulation import reshape as reshape
from treadle.tensor.manipulation import rot90 as rot90
from treadle.tensor.manipulation import split as split
from treadle.tensor.manipulation import squeeze as squeeze
from treadle.tensor.manipulation import swapaxes as swapaxes
from treadle.tensor.manipulation import unstack as unstack
from treadle.tensor.nan_reductions import nanargmax as nanargmax
from treadle.tensor.nan_reductions import nanargmin as nanargmin
from treadle.tensor.nan_reductions import nancumprod as nancumprod
from treadle.tensor.nan_reductions import nancumsum as nancumsum
from treadle.tensor.nan_reductions import nanmax as nanmax
from treadle.tensor.nan_reductions import nanmean as nanmean
from treadle.tensor.nan_reductions import nanmin as nanmin
from treadle.tensor.nan_reductions import nanprod as nanprod
from treadle.tensor.nan_reductions import nanstd as nanstd
from treadle.tensor.nan_reductions import nansum as nansum
from treadle.tensor.nan_reductions import nanvar as nanvar
from treadle.tensor.padding import pad as pad
from treadle.tensor.precision import autocast as autocast
from treadle.tensor.precision import get_float32_matmul_precision as get_float32_matmul_precision
from treadle.tensor.precision import set_float32_matmul_precision as set_float32_matmul_precision
from treadle.tensor.products import inner as inner
from treadle.tensor.products import matmul as matmul
from treadle.tensor.products import outer as outer
from treadle.tensor.products import tensordot as tensordot
from treadle.tensor.products import vecdot as vecdot
from treadle.tensor.quantiles import kthvalue as kthvalue
from treadle.tensor.quantiles import median as median
from treadle.tensor.quantiles import nanmedian as nanmedian
from treadle.tensor.quantiles import nanpercentile as nanpercentile
from treadle.tensor.quantiles import nanquantile as nanquantile
from treadle.tensor.quantiles import percentile as percentile
from treadle.tensor.quantiles import quantile as quantile
from treadle.tensor.ranges import arange as arange
from treadle.tensor.ranges import eye as eye
from treadle.tensor.ranges import linspace as linspace
from treadle.tensor.ranges import meshgrid as meshgrid
from treadle.tensor.ranges import tril as tril
from treadle.tensor.ranges import triu as triu
from treadle.tensor.reductions import all as all
from treadle.tensor.reductions import any as any
from treadle.tensor.reductions import argmax as argmax
from treadle.tensor.reductions import argmin as argmin
from treadle.tensor.reductions import count_nonzero as count_nonzero
from treadle.tensor.reductions import logsumexp as logsumexp
from treadle.tensor.reductions import max as max
from treadle.tensor.reductions import mean as mean
from treadle.tensor.reductions import min as min
from treadle.tensor.reductions import prod as prod
from treadle.tensor.reductions import std as std
from treadle.tensor.reductions import sum as sum
from treadle.tensor.reductions import var as var
from treadle.tensor.representation import explain as explain
from treadle.tensor.sampled_functions import bucketize as bucketize
from treadle.tensor.sampled_functions import convolve as convolve
from treadle.tensor.sampled_functions import digitize as digitize
from treadle.tensor.sampled_functions import gradient as gradient
from treadle.tensor.sampled_functions import interp as interp
from treadle.tensor.sampled_functions import trapezoid as trapezoid
from treadle.tensor.scans import cumulative_prod as cumulative_prod
from treadle.tensor.scans import cumulative_sum as cumulative_sum
from treadle.tensor.scattering import gather as gather
from treadle.tensor.scattering import index_add as index_add
from treadle.tensor.scattering import index_copy as index_copy
from treadle.tensor.scattering import index_fill as index_fill
from treadle.tensor.scattering import index_select as index_select
from treadle.tensor.scattering import masked_fill as masked_fill
from treadle.tensor.scattering import masked_select as masked_select
from treadle.tensor.scattering import scatter as scatter
from treadle.tensor.scattering import scatter_add as scatter_add
from treadle.tensor.scattering import scatter_reduce as scatter_reduce
from treadle.tensor.searching import argwhere as argwhere
from treadle.tensor.searching import nonzero as nonzero
from treadle.tensor.searching import searchsorted as searchsorted
from treadle.tensor.searching import take as take
from treadle.tensor.searching import take_along_axis as take_along_axis
from treadle.tensor.sets import unique as unique
from treadle.tensor.sets import unique_all as unique_all
from treadle.tensor.sets import unique_counts as unique_counts
from treadle.tensor.sets import unique_inverse as unique_inverse
from treadle.tensor.sets import unique_values as unique_values
from treadle.tensor.sorting import argsort as argsort
from treadle.tensor.sorting import sort as sort
from treadle.tensor.sorting import topk as topk
from treadle.tensor.special import digamma as digamma
from treadle.tensor.spectrograms import bartlett_window as bartlett_window
from treadle.tensor.spectrograms import blackman_window as blackman_window
from treadle.tensor.spectrograms import hamming_window as hamming_window
from treadle.tensor.spectrograms import hann_window as hann_window
from treadle.tensor.spectrograms import kaiser_window as kaiser_window
from treadle.tensor.spectrograms import stft as stft
from treadle.tensor.tensor import Tensor as Tensor

__all__ = [
    "CommandBatch",
    "Generator",
    "Tensor",
    "__array_namespace_info__",
    "all",
    "allclose",
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
    "bartlett_window",
    "bincount",
    "blackman_window",
    "broadcast_arrays",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cdist",
    "compile",
    "concat",
    "conj",
    "convolve",
    "corrcoef",
    "count_nonzero",
    "cov",
    "cumulative_prod",
    "cumulative_sum",
    "diag",
    "diagonal",
    "diff",
    "digamma",
    "digitize",
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
    "get_float32_matmul_precision",
    "gradient",
    "hamming_window",
    "hann_window",
    "histc",
    "histogram",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "inner",
    "interp",
    "isclose",
    "isdtype",
    "kaiser_window",
    "kron",
    "kthvalue",
    "lerp",
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
    "median",
    "meshgrid",
    "min",
    "moveaxis",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "newaxis",
    "nonzero",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "prod",
    "quantile",
    "random",
    "real",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "rot90",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "set_float32_matmul_precision",
    "sort",
    "split",
    "squeeze",
    "stack",
    "std",
    "stft",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "trapezoid",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "unique",
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
