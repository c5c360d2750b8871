# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""GPU computing that does not care whose GPU it is: one kernel, every GPU.

Write a kernel once, in Python, and run it on the CPU and on any GPU that WebGPU reaches:

>>> import numpy as np, treadle as td
>>> @td.kernel(source='''
... def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
...     i = td.grid(1)
...     if i < y.size:
...         y[i] = a * x[i] + y[i]
... ''')
... def saxpy(a, x, y): ...
>>> x, y = td.ones(4, device="cpu"), td.zeros(4, device="cpu")
>>> saxpy.launch(y.size, 2.0, x, y)
>>> y.tolist()
[2.0, 2.0, 2.0, 2.0]
"""

from treadle import actors as actors
from treadle import autograd as autograd
from treadle import data as data
from treadle import distributed as distributed
from treadle import models as models
from treadle import nn as nn
from treadle import optim as optim
from treadle import quant as quant
from treadle import stencils as stencils
from treadle.actors.decorator import actor as actor
from treadle.autograd.checkpoint import checkpoint as checkpoint
from treadle.autograd.jacobians import hessian as hessian
from treadle.autograd.jacobians import jacfwd as jacfwd
from treadle.autograd.jacobians import jacrev as jacrev
from treadle.autograd.modes import enable_grad as enable_grad
from treadle.autograd.modes import inference_mode as inference_mode
from treadle.autograd.modes import is_grad_enabled as is_grad_enabled
from treadle.autograd.modes import no_grad as no_grad
from treadle.autograd.modes import set_grad_enabled as set_grad_enabled
from treadle.autograd.transforms import grad as grad
from treadle.autograd.transforms import jvp as jvp
from treadle.autograd.transforms import value_and_grad as value_and_grad
from treadle.autograd.transforms import vjp as vjp
from treadle.autograd.vmap import vmap as vmap
from treadle.core import errors as errors
from treadle.core.dtypes import DType as DType
from treadle.core.version import __version__ as __version__
from treadle.cuda_cpp.load import cuda_module as cuda_module
from treadle.cuda_cpp.texture import texture as texture
from treadle.data.saving import load as load
from treadle.data.saving import save as save
from treadle.distributed.arrays.sharded import shard as shard
from treadle.lang import Array as Array
from treadle.lang import GridPos as GridPos
from treadle.lang import abs as abs
from treadle.lang import acos as acos
from treadle.lang import acosh as acosh
from treadle.lang import add as add
from treadle.lang import asin as asin
from treadle.lang import asinh as asinh
from treadle.lang import atan as atan
from treadle.lang import atan2 as atan2
from treadle.lang import atanh as atanh
from treadle.lang import atomic_add as atomic_add
from treadle.lang import atomic_and as atomic_and
from treadle.lang import atomic_cas as atomic_cas
from treadle.lang import atomic_exchange as atomic_exchange
from treadle.lang import atomic_max as atomic_max
from treadle.lang import atomic_min as atomic_min
from treadle.lang import atomic_or as atomic_or
from treadle.lang import atomic_sub as atomic_sub
from treadle.lang import atomic_xor as atomic_xor
from treadle.lang import ballot as ballot
from treadle.lang import bf16 as bf16
from treadle.lang import bfloat16 as bfloat16
from treadle.lang import bitcast as bitcast
from treadle.lang import bitwise_and as bitwise_and
from treadle.lang import bitwise_invert as bitwise_invert
from treadle.lang import bitwise_left_shift as bitwise_left_shift
from treadle.lang import bitwise_or as bitwise_or
from treadle.lang import bitwise_right_shift as bitwise_right_shift
from treadle.lang import bitwise_xor as bitwise_xor
from treadle.lang import block_dim as block_dim
from treadle.lang import block_idx as block_idx
from treadle.lang import bool as bool
from treadle.lang import c64 as c64
from treadle.lang import c128 as c128
from treadle.lang import cbrt as cbrt
from treadle.lang import ceil as ceil
from treadle.lang import clip as clip
from treadle.lang import clz as clz
from treadle.lang import complex64 as complex64
from treadle.lang import complex128 as complex128
from treadle.lang import copysign as copysign
from treadle.lang import cos as cos
from treadle.lang import cosh as cosh
from treadle.lang import cross as cross
from treadle.lang import ctz as ctz
from treadle.lang import divide as divide
from treadle.lang import dot as dot
from treadle.lang import dot4_i8 as dot4_i8
from treadle.lang import dot4_u8 as dot4_u8
from treadle.lang import dot4_u8i8 as dot4_u8i8
from treadle.lang import e as e
from treadle.lang import equal as equal
from treadle.lang import erf as erf
from treadle.lang import erfc as erfc
from treadle.lang import erfinv as erfinv
from treadle.lang import exp as exp
from treadle.lang import exp2 as exp2
from treadle.lang import expm1 as expm1
from treadle.lang import f16 as f16
from treadle.lang import f32 as f32
from treadle.lang import f64 as f64
from treadle.lang import float16 as float16
from treadle.lang import float32 as float32
from treadle.lang import float64 as float64
from treadle.lang import floor as floor
from treadle.lang import floor_divide as floor_divide
from treadle.lang import fma as fma
from treadle.lang import fragment as fragment
from treadle.lang import func as func
from treadle.lang import gamma as gamma
from treadle.lang import greater as greater
from treadle.lang import greater_equal as greater_equal
from treadle.lang import grid as grid
from treadle.lang import grid_dim as grid_dim
from treadle.lang import grid_size as grid_size
from treadle.lang import hypot as hypot
from treadle.lang import i8 as i8
from treadle.lang import i16 as i16
from treadle.lang import i32 as i32
from treadle.lang import i64 as i64
from treadle.lang import inf as inf
from treadle.lang import int8 as int8
from treadle.lang import int16 as int16
from treadle.lang import int32 as int32
from treadle.lang import int64 as int64
from treadle.lang import interpret as interpret
from treadle.lang import isfinite as isfinite
from treadle.lang import isinf as isinf
from treadle.lang import isnan as isnan
from treadle.lang import kernel as kernel
from treadle.lang import lane as lane
from treadle.lang import length as length
from treadle.lang import less as less
from treadle.lang import less_equal as less_equal
from treadle.lang import lgamma as lgamma
from treadle.lang import local as local
from treadle.lang import log as log
from treadle.lang import log1p as log1p
from treadle.lang import log2 as log2
from treadle.lang import log10 as log10
from treadle.lang import logaddexp as logaddexp
from treadle.lang import logical_and as logical_and
from treadle.lang import logical_not as logical_not
from treadle.lang import logical_or as logical_or
from treadle.lang import logical_xor as logical_xor
from treadle.lang import mat2x2 as mat2x2
from treadle.lang import mat2x3 as mat2x3
from treadle.lang import mat2x4 as mat2x4
from treadle.lang import mat3x2 as mat3x2
from treadle.lang import mat3x3 as mat3x3
from treadle.lang import mat3x4 as mat3x4
from treadle.lang import mat4x2 as mat4x2
from treadle.lang import mat4x3 as mat4x3
from treadle.lang import mat4x4 as mat4x4
from treadle.lang import maximum as maximum
from treadle.lang import minimum as minimum
from treadle.lang import mul_high as mul_high
from treadle.lang import multiply as multiply
from treadle.lang import nan as nan
from treadle.lang import negative as negative
from treadle.lang import nextafter as nextafter
from treadle.lang import normalize as normalize
from treadle.lang import not_equal as not_equal
from treadle.lang import pi as pi
from treadle.lang import popcount as popcount
from treadle.lang import positive as positive
from treadle.lang import pow as pow
from treadle.lang import rand_normal as rand_normal
from treadle.lang import rand_uniform as rand_uniform
from treadle.lang import reciprocal as reciprocal
from treadle.lang import remainder as remainder
from treadle.lang import reverse_bits as reverse_bits
from treadle.lang import round as round
from treadle.lang import rsqrt as rsqrt
from treadle.lang import shared as shared
from treadle.lang import shuffle as shuffle
from treadle.lang import shuffle_down as shuffle_down
from treadle.lang import shuffle_up as shuffle_up
from treadle.lang import shuffle_xor as shuffle_xor
from treadle.lang import sigmoid as sigmoid
from treadle.lang import sign as sign
from treadle.lang import signbit as signbit
from treadle.lang import sin as sin
from treadle.lang import sinh as sinh
from treadle.lang import sqrt as sqrt
from treadle.lang import square as square
from treadle.lang import static_range as static_range
from treadle.lang import struct as struct
from treadle.lang import subgroup_max as subgroup_max
from treadle.lang import subgroup_min as subgroup_min
from treadle.lang import subgroup_prefix_sum as subgroup_prefix_sum
from treadle.lang import subgroup_size as subgroup_size
from treadle.lang import subgroup_sum as subgroup_sum
from treadle.lang import subtract as subtract
from treadle.lang import sync_subgroup as sync_subgroup
from treadle.lang import sync_threads as sync_threads
from treadle.lang import tan as tan
from treadle.lang import tanh as tanh
from treadle.lang import thread_fence as thread_fence
from treadle.lang import thread_fence_block as thread_fence_block
from treadle.lang import thread_idx as thread_idx
from treadle.lang import trunc as trunc
from treadle.lang import u8 as u8
from treadle.lang import u16 as u16
from treadle.lang import u32 as u32
from treadle.lang import u64 as u64
from treadle.lang import uint8 as uint8
from treadle.lang import uint16 as uint16
from treadle.lang import uint32 as uint32
from treadle.lang import uint64 as uint64
from treadle.lang import vec2 as vec2
from treadle.lang import vec3 as vec3
from treadle.lang import vec4 as vec4
from treadle.lang import vote_all as vote_all
from treadle.lang import vote_any as vote_any
from treadle.lang import where as where
from treadle.optim.scaling import GradScaler as GradScaler
from treadle.quant.gguf_files import load_gguf as load_gguf
from treadle.runtime.devices import Device as Device
from treadle.runtime.devices import Stream as Stream
from treadle.runtime.devices import default_device as default_device
from treadle.runtime.devices import device as device
from treadle.runtime.devices import devices as devices
from treadle.runtime.devices import init as init
from treadle.runtime.devices import is_available as is_available
from treadle.runtime.devices import memory_stats as memory_stats
from treadle.runtime.devices import set_default_device as set_default_device
from treadle.runtime.devices import use_device as use_device
from treadle.runtime.events import Event as Event
from treadle.runtime.graphs import Graph as Graph
from treadle.runtime.profile.session import profile as profile
from treadle.stencils.decorator import stencil as stencil
from treadle.stencils.loop import stencil_loop as stencil_loop
from treadle.tensor import fft as fft
from treadle.tensor import linalg as linalg
from treadle.tensor import random as random
from treadle.tensor.array_api import __array_api_version__ as __array_api_version__
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
    "Array",
    "CommandBatch",
    "DType",
    "Device",
    "Event",
    "Generator",
    "GradScaler",
    "Graph",
    "GridPos",
    "Stream",
    "Tensor",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "actor",
    "actors",
    "add",
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
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "autocast",
    "autograd",
    "ballot",
    "bartlett_window",
    "bf16",
    "bfloat16",
    "bincount",
    "bitcast",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_dim",
    "block_idx",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "bucketize",
    "c64",
    "c128",
    "can_cast",
    "cbrt",
    "cdist",
    "ceil",
    "checkpoint",
    "clip",
    "clz",
    "compile",
    "complex64",
    "complex128",
    "concat",
    "conj",
    "convolve",
    "copysign",
    "corrcoef",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "ctz",
    "cuda_module",
    "cumulative_prod",
    "cumulative_sum",
    "data",
    "default_device",
    "device",
    "devices",
    "diag",
    "diagonal",
    "diff",
    "digamma",
    "digitize",
    "distributed",
    "divide",
    "dot",
    "dot4_i8",
    "dot4_u8",
    "dot4_u8i8",
    "e",
    "einsum",
    "elementwise",
    "empty",
    "empty_like",
    "enable_grad",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "errors",
    "exp",
    "exp2",
    "expand_dims",
    "explain",
    "expm1",
    "eye",
    "f16",
    "f32",
    "f64",
    "fft",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fma",
    "fragment",
    "from_dlpack",
    "full",
    "full_like",
    "func",
    "gamma",
    "gather",
    "get_float32_matmul_precision",
    "grad",
    "gradient",
    "greater",
    "greater_equal",
    "grid",
    "grid_dim",
    "grid_size",
    "hamming_window",
    "hann_window",
    "hessian",
    "histc",
    "histogram",
    "hypot",
    "i8",
    "i16",
    "i32",
    "i64",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "inf",
    "inference_mode",
    "init",
    "inner",
    "int8",
    "int16",
    "int32",
    "int64",
    "interp",
    "interpret",
    "is_available",
    "is_grad_enabled",
    "isclose",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "jacfwd",
    "jacrev",
    "jvp",
    "kaiser_window",
    "kernel",
    "kron",
    "kthvalue",
    "lane",
    "length",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "load_gguf",
    "local",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "manual_seed",
    "masked_fill",
    "masked_select",
    "mat2x2",
    "mat2x3",
    "mat2x4",
    "mat3x2",
    "mat3x3",
    "mat3x4",
    "mat4x2",
    "mat4x3",
    "mat4x4",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "median",
    "memory_stats",
    "meshgrid",
    "min",
    "minimum",
    "models",
    "moveaxis",
    "mul_high",
    "multiply",
    "nan",
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
    "negative",
    "newaxis",
    "nextafter",
    "nn",
    "no_grad",
    "nonzero",
    "normalize",
    "not_equal",
    "ones",
    "ones_like",
    "optim",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "pi",
    "popcount",
    "positive",
    "pow",
    "prod",
    "profile",
    "quant",
    "quantile",
    "rand_normal",
    "rand_uniform",
    "random",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "reverse_bits",
    "roll",
    "rot90",
    "round",
    "rsqrt",
    "save",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "set_default_device",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "shard",
    "shared",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "static_range",
    "std",
    "stencil",
    "stencil_loop",
    "stencils",
    "stft",
    "struct",
    "subgroup_max",
    "subgroup_min",
    "subgroup_prefix_sum",
    "subgroup_size",
    "subgroup_sum",
    "subtract",
    "sum",
    "swapaxes",
    "sync_subgroup",
    "sync_threads",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "texture",
    "thread_fence",
    "thread_fence_block",
    "thread_idx",
    "tile",
    "topk",
    "trace",
    "trapezoid",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "trunc",
    "u8",
    "u16",
    "u32",
    "u64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "use_device",
    "value_and_grad",
    "var",
    "vec2",
    "vec3",
    "vec4",
    "vecdot",
    "vjp",
    "vmap",
    "vote_all",
    "vote_any",
    "where",
    "zeros",
    "zeros_like",
]
