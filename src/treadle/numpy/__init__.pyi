# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""NumPy 2's interface over treadle's tensors: `import treadle.numpy as np`.

Names, arguments, promotion, results and errors are NumPy's; what computes is treadle, on every
device that it has. Arrays are made on the default device (`np.set_device("webgpu")`, or `device=`);
they are computed when their elements are needed. `x.td` is the tensor of treadle that `x` shows.
What NumPy has and this has not raises an AttributeError that says why; `np.missing()` lists it.
"""

from numpy import False_ as False_
from numpy import ScalarType as ScalarType
from numpy import True_ as True_
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import byte as byte
from numpy import cdouble as cdouble
from numpy import complex64 as complex64
from numpy import complex128 as complex128
from numpy import complexfloating as complexfloating
from numpy import csingle as csingle
from numpy import double as double
from numpy import dtype as dtype
from numpy import dtypes as dtypes
from numpy import e as e
from numpy import euler_gamma as euler_gamma
from numpy import exceptions as exceptions
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import floating as floating
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import generic as generic
from numpy import get_printoptions as get_printoptions
from numpy import half as half
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import int8 as int8
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import intp as intp
from numpy import isdtype as isdtype
from numpy import issubdtype as issubdtype
from numpy import little_endian as little_endian
from numpy import long as long
from numpy import longlong as longlong
from numpy import mintypecode as mintypecode
from numpy import nan as nan
from numpy import ndindex as ndindex
from numpy import newaxis as newaxis
from numpy import number as number
from numpy import pi as pi
from numpy import printoptions as printoptions
from numpy import promote_types as promote_types
from numpy import set_printoptions as set_printoptions
from numpy import short as short
from numpy import signedinteger as signedinteger
from numpy import single as single
from numpy import typecodes as typecodes
from numpy import typename as typename
from numpy import ubyte as ubyte
from numpy import uint as uint
from numpy import uint8 as uint8
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
from numpy import unsignedinteger as unsignedinteger
from numpy import ushort as ushort

from treadle.numpy import fft as fft
from treadle.numpy import lib as lib
from treadle.numpy import linalg as linalg
from treadle.numpy import random as random
from treadle.numpy import testing as testing
from treadle.numpy import typing as typing
from treadle.numpy.absent import missing as missing
from treadle.numpy.arrays import ndarray as ndarray
from treadle.numpy.arrays import wrap as wrap
from treadle.numpy.attributes import flatiter as flatiter
from treadle.numpy.broadcasting import broadcast as broadcast
from treadle.numpy.callbacks import apply_along_axis as apply_along_axis
from treadle.numpy.callbacks import apply_over_axes as apply_over_axes
from treadle.numpy.callbacks import fromfunction as fromfunction
from treadle.numpy.callbacks import mask_indices as mask_indices
from treadle.numpy.callbacks import ndenumerate as ndenumerate
from treadle.numpy.callbacks import piecewise as piecewise
from treadle.numpy.errors import errstate as errstate
from treadle.numpy.errors import getbufsize as getbufsize
from treadle.numpy.errors import geterr as geterr
from treadle.numpy.errors import setbufsize as setbufsize
from treadle.numpy.errors import seterr as seterr
from treadle.numpy.files import array2string as array2string
from treadle.numpy.files import array_repr as array_repr
from treadle.numpy.files import array_str as array_str
from treadle.numpy.files import genfromtxt as genfromtxt
from treadle.numpy.files import load as load
from treadle.numpy.files import loadtxt as loadtxt
from treadle.numpy.files import save as save
from treadle.numpy.files import savetxt as savetxt
from treadle.numpy.files import savez as savez
from treadle.numpy.files import savez_compressed as savez_compressed
from treadle.numpy.functions import all as all
from treadle.numpy.functions import allclose as allclose
from treadle.numpy.functions import amax as amax
from treadle.numpy.functions import amin as amin
from treadle.numpy.functions import angle as angle
from treadle.numpy.functions import any as any
from treadle.numpy.functions import append as append
from treadle.numpy.functions import arange as arange
from treadle.numpy.functions import argmax as argmax
from treadle.numpy.functions import argmin as argmin
from treadle.numpy.functions import argpartition as argpartition
from treadle.numpy.functions import argsort as argsort
from treadle.numpy.functions import argwhere as argwhere
from treadle.numpy.functions import around as around
from treadle.numpy.functions import array as array
from treadle.numpy.functions import array_equal as array_equal
from treadle.numpy.functions import array_equiv as array_equiv
from treadle.numpy.functions import array_split as array_split
from treadle.numpy.functions import asanyarray as asanyarray
from treadle.numpy.functions import asarray as asarray
from treadle.numpy.functions import asarray_chkfinite as asarray_chkfinite
from treadle.numpy.functions import ascontiguousarray as ascontiguousarray
from treadle.numpy.functions import astype as astype
from treadle.numpy.functions import atleast_1d as atleast_1d
from treadle.numpy.functions import atleast_2d as atleast_2d
from treadle.numpy.functions import atleast_3d as atleast_3d
from treadle.numpy.functions import average as average
from treadle.numpy.functions import bartlett as bartlett
from treadle.numpy.functions import bincount as bincount
from treadle.numpy.functions import blackman as blackman
from treadle.numpy.functions import block as block
from treadle.numpy.functions import broadcast_arrays as broadcast_arrays
from treadle.numpy.functions import broadcast_shapes as broadcast_shapes
from treadle.numpy.functions import broadcast_to as broadcast_to
from treadle.numpy.functions import choose as choose
from treadle.numpy.functions import clip as clip
from treadle.numpy.functions import column_stack as column_stack
from treadle.numpy.functions import compress as compress
from treadle.numpy.functions import concat as concat
from treadle.numpy.functions import concatenate as concatenate
from treadle.numpy.functions import convolve as convolve
from treadle.numpy.functions import copy as copy
from treadle.numpy.functions import copyto as copyto
from treadle.numpy.functions import corrcoef as corrcoef
from treadle.numpy.functions import correlate as correlate
from treadle.numpy.functions import count_nonzero as count_nonzero
from treadle.numpy.functions import cov as cov
from treadle.numpy.functions import cross as cross
from treadle.numpy.functions import cumprod as cumprod
from treadle.numpy.functions import cumsum as cumsum
from treadle.numpy.functions import cumulative_prod as cumulative_prod
from treadle.numpy.functions import cumulative_sum as cumulative_sum
from treadle.numpy.functions import delete as delete
from treadle.numpy.functions import diag as diag
from treadle.numpy.functions import diag_indices as diag_indices
from treadle.numpy.functions import diag_indices_from as diag_indices_from
from treadle.numpy.functions import diagflat as diagflat
from treadle.numpy.functions import diagonal as diagonal
from treadle.numpy.functions import diff as diff
from treadle.numpy.functions import digitize as digitize
from treadle.numpy.functions import dot as dot
from treadle.numpy.functions import dsplit as dsplit
from treadle.numpy.functions import dstack as dstack
from treadle.numpy.functions import ediff1d as ediff1d
from treadle.numpy.functions import einsum as einsum
from treadle.numpy.functions import einsum_path as einsum_path
from treadle.numpy.functions import empty as empty
from treadle.numpy.functions import empty_like as empty_like
from treadle.numpy.functions import expand_dims as expand_dims
from treadle.numpy.functions import extract as extract
from treadle.numpy.functions import eye as eye
from treadle.numpy.functions import fill_diagonal as fill_diagonal
from treadle.numpy.functions import fix as fix
from treadle.numpy.functions import flatnonzero as flatnonzero
from treadle.numpy.functions import flip as flip
from treadle.numpy.functions import fliplr as fliplr
from treadle.numpy.functions import flipud as flipud
from treadle.numpy.functions import from_dlpack as from_dlpack
from treadle.numpy.functions import frombuffer as frombuffer
from treadle.numpy.functions import fromfile as fromfile
from treadle.numpy.functions import fromiter as fromiter
from treadle.numpy.functions import fromstring as fromstring
from treadle.numpy.functions import full as full
from treadle.numpy.functions import full_like as full_like
from treadle.numpy.functions import geomspace as geomspace
from treadle.numpy.functions import gradient as gradient
from treadle.numpy.functions import hamming as hamming
from treadle.numpy.functions import hanning as hanning
from treadle.numpy.functions import histogram as histogram
from treadle.numpy.functions import histogram2d as histogram2d
from treadle.numpy.functions import histogram_bin_edges as histogram_bin_edges
from treadle.numpy.functions import histogramdd as histogramdd
from treadle.numpy.functions import hsplit as hsplit
from treadle.numpy.functions import hstack as hstack
from treadle.numpy.functions import i0 as i0
from treadle.numpy.functions import identity as identity
from treadle.numpy.functions import imag as imag
from treadle.numpy.functions import indices as indices
from treadle.numpy.functions import inner as inner
from treadle.numpy.functions import insert as insert
from treadle.numpy.functions import interp as interp
from treadle.numpy.functions import intersect1d as intersect1d
from treadle.numpy.functions import isclose as isclose
from treadle.numpy.functions import iscomplex as iscomplex
from treadle.numpy.functions import iscomplexobj as iscomplexobj
from treadle.numpy.functions import isfortran as isfortran
from treadle.numpy.functions import isin as isin
from treadle.numpy.functions import isneginf as isneginf
from treadle.numpy.functions import isposinf as isposinf
from treadle.numpy.functions import isreal as isreal
from treadle.numpy.functions import isrealobj as isrealobj
from treadle.numpy.functions import ix_ as ix_
from treadle.numpy.functions import kaiser as kaiser
from treadle.numpy.functions import kron as kron
from treadle.numpy.functions import lexsort as lexsort
from treadle.numpy.functions import linspace as linspace
from treadle.numpy.functions import logspace as logspace
from treadle.numpy.functions import matmul as matmul
from treadle.numpy.functions import matrix_transpose as matrix_transpose
from treadle.numpy.functions import matvec as matvec
from treadle.numpy.functions import max as max
from treadle.numpy.functions import may_share_memory as may_share_memory
from treadle.numpy.functions import mean as mean
from treadle.numpy.functions import median as median
from treadle.numpy.functions import meshgrid as meshgrid
from treadle.numpy.functions import min as min
from treadle.numpy.functions import moveaxis as moveaxis
from treadle.numpy.functions import nan_to_num as nan_to_num
from treadle.numpy.functions import nanargmax as nanargmax
from treadle.numpy.functions import nanargmin as nanargmin
from treadle.numpy.functions import nancumprod as nancumprod
from treadle.numpy.functions import nancumsum as nancumsum
from treadle.numpy.functions import nanmax as nanmax
from treadle.numpy.functions import nanmean as nanmean
from treadle.numpy.functions import nanmedian as nanmedian
from treadle.numpy.functions import nanmin as nanmin
from treadle.numpy.functions import nanpercentile as nanpercentile
from treadle.numpy.functions import nanprod as nanprod
from treadle.numpy.functions import nanquantile as nanquantile
from treadle.numpy.functions import nanstd as nanstd
from treadle.numpy.functions import nansum as nansum
from treadle.numpy.functions import nanvar as nanvar
from treadle.numpy.functions import ndim as ndim
from treadle.numpy.functions import nonzero as nonzero
from treadle.numpy.functions import ones as ones
from treadle.numpy.functions import ones_like as ones_like
from treadle.numpy.functions import outer as outer
from treadle.numpy.functions import packbits as packbits
from treadle.numpy.functions import pad as pad
from treadle.numpy.functions import partition as partition
from treadle.numpy.functions import percentile as percentile
from treadle.numpy.functions import permute_dims as permute_dims
from treadle.numpy.functions import place as place
from treadle.numpy.functions import prod as prod
from treadle.numpy.functions import ptp as ptp
from treadle.numpy.functions import put as put
from treadle.numpy.functions import put_along_axis as put_along_axis
from treadle.numpy.functions import putmask as putmask
from treadle.numpy.functions import quantile as quantile
from treadle.numpy.functions import ravel as ravel
from treadle.numpy.functions import ravel_multi_index as ravel_multi_index
from treadle.numpy.functions import real as real
from treadle.numpy.functions import real_if_close as real_if_close
from treadle.numpy.functions import repeat as repeat
from treadle.numpy.functions import require as require
from treadle.numpy.functions import reshape as reshape
from treadle.numpy.functions import resize as resize
from treadle.numpy.functions import roll as roll
from treadle.numpy.functions import rollaxis as rollaxis
from treadle.numpy.functions import rot90 as rot90
from treadle.numpy.functions import round as round
from treadle.numpy.functions import row_stack as row_stack
from treadle.numpy.functions import searchsorted as searchsorted
from treadle.numpy.functions import select as select
from treadle.numpy.functions import setdiff1d as setdiff1d
from treadle.numpy.functions import setxor1d as setxor1d
from treadle.numpy.functions import shape as shape
from treadle.numpy.functions import shares_memory as shares_memory
from treadle.numpy.functions import sinc as sinc
from treadle.numpy.functions import size as size
from treadle.numpy.functions import sort as sort
from treadle.numpy.functions import sort_complex as sort_complex
from treadle.numpy.functions import split as split
from treadle.numpy.functions import squeeze as squeeze
from treadle.numpy.functions import stack as stack
from treadle.numpy.functions import std as std
from treadle.numpy.functions import sum as sum
from treadle.numpy.functions import swapaxes as swapaxes
from treadle.numpy.functions import take as take
from treadle.numpy.functions import take_along_axis as take_along_axis
from treadle.numpy.functions import tensordot as tensordot
from treadle.numpy.functions import tile as tile
from treadle.numpy.functions import trace as trace
from treadle.numpy.functions import transpose as transpose
from treadle.numpy.functions import trapezoid as trapezoid
from treadle.numpy.functions import tri as tri
from treadle.numpy.functions import tril as tril
from treadle.numpy.functions import tril_indices as tril_indices
from treadle.numpy.functions import tril_indices_from as tril_indices_from
from treadle.numpy.functions import trim_zeros as trim_zeros
from treadle.numpy.functions import triu as triu
from treadle.numpy.functions import triu_indices as triu_indices
from treadle.numpy.functions import triu_indices_from as triu_indices_from
from treadle.numpy.functions import union1d as union1d
from treadle.numpy.functions import unique as unique
from treadle.numpy.functions import unique_all as unique_all
from treadle.numpy.functions import unique_counts as unique_counts
from treadle.numpy.functions import unique_inverse as unique_inverse
from treadle.numpy.functions import unique_values as unique_values
from treadle.numpy.functions import unpackbits as unpackbits
from treadle.numpy.functions import unravel_index as unravel_index
from treadle.numpy.functions import unstack as unstack
from treadle.numpy.functions import unwrap as unwrap
from treadle.numpy.functions import vander as vander
from treadle.numpy.functions import var as var
from treadle.numpy.functions import vdot as vdot
from treadle.numpy.functions import vecdot as vecdot
from treadle.numpy.functions import vecmat as vecmat
from treadle.numpy.functions import vsplit as vsplit
from treadle.numpy.functions import vstack as vstack
from treadle.numpy.functions import where as where
from treadle.numpy.functions import zeros as zeros
from treadle.numpy.functions import zeros_like as zeros_like
from treadle.numpy.index_tricks import c_ as c_
from treadle.numpy.index_tricks import index_exp as index_exp
from treadle.numpy.index_tricks import mgrid as mgrid
from treadle.numpy.index_tricks import ogrid as ogrid
from treadle.numpy.index_tricks import r_ as r_
from treadle.numpy.index_tricks import s_ as s_
from treadle.numpy.settings import can_cast as can_cast
from treadle.numpy.settings import common_type as common_type
from treadle.numpy.settings import finfo as finfo
from treadle.numpy.settings import get_device as get_device
from treadle.numpy.settings import iinfo as iinfo
from treadle.numpy.settings import isscalar as isscalar
from treadle.numpy.settings import iterable as iterable
from treadle.numpy.settings import min_scalar_type as min_scalar_type
from treadle.numpy.settings import result_type as result_type
from treadle.numpy.settings import set_device as set_device
from treadle.numpy.ufuncs import abs as abs
from treadle.numpy.ufuncs import absolute as absolute
from treadle.numpy.ufuncs import acos as acos
from treadle.numpy.ufuncs import acosh as acosh
from treadle.numpy.ufuncs import add as add
from treadle.numpy.ufuncs import arccos as arccos
from treadle.numpy.ufuncs import arccosh as arccosh
from treadle.numpy.ufuncs import arcsin as arcsin
from treadle.numpy.ufuncs import arcsinh as arcsinh
from treadle.numpy.ufuncs import arctan as arctan
from treadle.numpy.ufuncs import arctan2 as arctan2
from treadle.numpy.ufuncs import arctanh as arctanh
from treadle.numpy.ufuncs import asin as asin
from treadle.numpy.ufuncs import asinh as asinh
from treadle.numpy.ufuncs import atan as atan
from treadle.numpy.ufuncs import atan2 as atan2
from treadle.numpy.ufuncs import atanh as atanh
from treadle.numpy.ufuncs import bitwise_and as bitwise_and
from treadle.numpy.ufuncs import bitwise_count as bitwise_count
from treadle.numpy.ufuncs import bitwise_invert as bitwise_invert
from treadle.numpy.ufuncs import bitwise_left_shift as bitwise_left_shift
from treadle.numpy.ufuncs import bitwise_not as bitwise_not
from treadle.numpy.ufuncs import bitwise_or as bitwise_or
from treadle.numpy.ufuncs import bitwise_right_shift as bitwise_right_shift
from treadle.numpy.ufuncs import bitwise_xor as bitwise_xor
from treadle.numpy.ufuncs import cbrt as cbrt
from treadle.numpy.ufuncs import ceil as ceil
from treadle.numpy.ufuncs import conj as conj
from treadle.numpy.ufuncs import conjugate as conjugate
from treadle.numpy.ufuncs import copysign as copysign
from treadle.numpy.ufuncs import cos as cos
from treadle.numpy.ufuncs import cosh as cosh
from treadle.numpy.ufuncs import deg2rad as deg2rad
from treadle.numpy.ufuncs import degrees as degrees
from treadle.numpy.ufuncs import divide as divide
from treadle.numpy.ufuncs import divmod as divmod
from treadle.numpy.ufuncs import equal as equal
from treadle.numpy.ufuncs import exp as exp
from treadle.numpy.ufuncs import exp2 as exp2
from treadle.numpy.ufuncs import expm1 as expm1
from treadle.numpy.ufuncs import fabs as fabs
from treadle.numpy.ufuncs import float_power as float_power
from treadle.numpy.ufuncs import floor as floor
from treadle.numpy.ufuncs import floor_divide as floor_divide
from treadle.numpy.ufuncs import fmax as fmax
from treadle.numpy.ufuncs import fmin as fmin
from treadle.numpy.ufuncs import fmod as fmod
from treadle.numpy.ufuncs import frexp as frexp
from treadle.numpy.ufuncs import gcd as gcd
from treadle.numpy.ufuncs import greater as greater
from treadle.numpy.ufuncs import greater_equal as greater_equal
from treadle.numpy.ufuncs import heaviside as heaviside
from treadle.numpy.ufuncs import hypot as hypot
from treadle.numpy.ufuncs import invert as invert
from treadle.numpy.ufuncs import isfinite as isfinite
from treadle.numpy.ufuncs import isinf as isinf
from treadle.numpy.ufuncs import isnan as isnan
from treadle.numpy.ufuncs import lcm as lcm
from treadle.numpy.ufuncs import ldexp as ldexp
from treadle.numpy.ufuncs import left_shift as left_shift
from treadle.numpy.ufuncs import less as less
from treadle.numpy.ufuncs import less_equal as less_equal
from treadle.numpy.ufuncs import log as log
from treadle.numpy.ufuncs import log1p as log1p
from treadle.numpy.ufuncs import log2 as log2
from treadle.numpy.ufuncs import log10 as log10
from treadle.numpy.ufuncs import logaddexp as logaddexp
from treadle.numpy.ufuncs import logaddexp2 as logaddexp2
from treadle.numpy.ufuncs import logical_and as logical_and
from treadle.numpy.ufuncs import logical_not as logical_not
from treadle.numpy.ufuncs import logical_or as logical_or
from treadle.numpy.ufuncs import logical_xor as logical_xor
from treadle.numpy.ufuncs import maximum as maximum
from treadle.numpy.ufuncs import minimum as minimum
from treadle.numpy.ufuncs import mod as mod
from treadle.numpy.ufuncs import modf as modf
from treadle.numpy.ufuncs import multiply as multiply
from treadle.numpy.ufuncs import negative as negative
from treadle.numpy.ufuncs import nextafter as nextafter
from treadle.numpy.ufuncs import not_equal as not_equal
from treadle.numpy.ufuncs import positive as positive
from treadle.numpy.ufuncs import pow as pow
from treadle.numpy.ufuncs import power as power
from treadle.numpy.ufuncs import rad2deg as rad2deg
from treadle.numpy.ufuncs import radians as radians
from treadle.numpy.ufuncs import reciprocal as reciprocal
from treadle.numpy.ufuncs import remainder as remainder
from treadle.numpy.ufuncs import right_shift as right_shift
from treadle.numpy.ufuncs import rint as rint
from treadle.numpy.ufuncs import sign as sign
from treadle.numpy.ufuncs import signbit as signbit
from treadle.numpy.ufuncs import sin as sin
from treadle.numpy.ufuncs import sinh as sinh
from treadle.numpy.ufuncs import spacing as spacing
from treadle.numpy.ufuncs import sqrt as sqrt
from treadle.numpy.ufuncs import square as square
from treadle.numpy.ufuncs import subtract as subtract
from treadle.numpy.ufuncs import tan as tan
from treadle.numpy.ufuncs import tanh as tanh
from treadle.numpy.ufuncs import true_divide as true_divide
from treadle.numpy.ufuncs import trunc as trunc
from treadle.numpy.ufuncs import ufunc as ufunc

__all__ = [
    "False_",
    "ScalarType",
    "True_",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "apply_along_axis",
    "apply_over_axes",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "argwhere",
    "around",
    "array",
    "array2string",
    "array_equal",
    "array_equiv",
    "array_repr",
    "array_split",
    "array_str",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "average",
    "bartlett",
    "base_repr",
    "binary_repr",
    "bincount",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman",
    "block",
    "bool",
    "bool_",
    "broadcast",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "byte",
    "c_",
    "can_cast",
    "cbrt",
    "cdouble",
    "ceil",
    "choose",
    "clip",
    "column_stack",
    "common_type",
    "complex64",
    "complex128",
    "complexfloating",
    "compress",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "convolve",
    "copy",
    "copysign",
    "copyto",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cov",
    "cross",
    "csingle",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "deg2rad",
    "degrees",
    "delete",
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divmod",
    "dot",
    "double",
    "dsplit",
    "dstack",
    "dtype",
    "dtypes",
    "e",
    "ediff1d",
    "einsum",
    "einsum_path",
    "empty",
    "empty_like",
    "equal",
    "errstate",
    "euler_gamma",
    "exceptions",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "extract",
    "eye",
    "fabs",
    "fft",
    "fill_diagonal",
    "finfo",
    "fix",
    "flatiter",
    "flatnonzero",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floating",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "format_float_positional",
    "format_float_scientific",
    "frexp",
    "from_dlpack",
    "frombuffer",
    "fromfile",
    "fromfunction",
    "fromiter",
    "fromstring",
    "full",
    "full_like",
    "gcd",
    "generic",
    "genfromtxt",
    "geomspace",
    "get_device",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "gradient",
    "greater",
    "greater_equal",
    "half",
    "hamming",
    "hanning",
    "heaviside",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "identity",
    "iinfo",
    "imag",
    "index_exp",
    "indices",
    "inexact",
    "inf",
    "inner",
    "insert",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "intc",
    "integer",
    "interp",
    "intersect1d",
    "intp",
    "invert",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isfinite",
    "isfortran",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "iterable",
    "ix_",
    "kaiser",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "lexsort",
    "lib",
    "linalg",
    "linspace",
    "little_endian",
    "load",
    "loadtxt",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "long",
    "longlong",
    "mask_indices",
    "matmul",
    "matrix_transpose",
    "matvec",
    "max",
    "maximum",
    "may_share_memory",
    "mean",
    "median",
    "meshgrid",
    "mgrid",
    "min",
    "min_scalar_type",
    "minimum",
    "mintypecode",
    "missing",
    "mod",
    "modf",
    "moveaxis",
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
    "ndarray",
    "ndenumerate",
    "ndim",
    "ndindex",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "number",
    "ogrid",
    "ones",
    "ones_like",
    "outer",
    "packbits",
    "pad",
    "partition",
    "percentile",
    "permute_dims",
    "pi",
    "piecewise",
    "place",
    "positive",
    "pow",
    "power",
    "printoptions",
    "prod",
    "promote_types",
    "ptp",
    "put",
    "put_along_axis",
    "putmask",
    "quantile",
    "r_",
    "rad2deg",
    "radians",
    "random",
    "ravel",
    "ravel_multi_index",
    "real",
    "real_if_close",
    "reciprocal",
    "remainder",
    "repeat",
    "require",
    "reshape",
    "resize",
    "result_type",
    "right_shift",
    "rint",
    "roll",
    "rollaxis",
    "rot90",
    "round",
    "row_stack",
    "s_",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
    "searchsorted",
    "select",
    "set_device",
    "set_printoptions",
    "setbufsize",
    "setdiff1d",
    "seterr",
    "setxor1d",
    "shape",
    "shares_memory",
    "short",
    "sign",
    "signbit",
    "signedinteger",
    "sin",
    "sinc",
    "single",
    "sinh",
    "size",
    "sort",
    "sort_complex",
    "spacing",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "testing",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "tril_indices",
    "tril_indices_from",
    "trim_zeros",
    "triu",
    "triu_indices",
    "triu_indices_from",
    "true_divide",
    "trunc",
    "typecodes",
    "typename",
    "typing",
    "ubyte",
    "ufunc",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unpackbits",
    "unravel_index",
    "unsignedinteger",
    "unstack",
    "unwrap",
    "ushort",
    "vander",
    "var",
    "vdot",
    "vecdot",
    "vecmat",
    "vsplit",
    "vstack",
    "where",
    "wrap",
    "zeros",
    "zeros_like",
]
