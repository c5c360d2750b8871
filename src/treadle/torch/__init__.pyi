# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""PyTorch's interface over treadle's tensors: `import treadle.torch as torch`.

Names, arguments, defaults, promotion and results are PyTorch's; what computes is treadle, on every
device that it has. `x.td` is the tensor of treadle that `x` shows. What PyTorch has and this has
not raises an AttributeError that names the nearest thing; `torch.missing()` lists it.
"""

from treadle import bfloat16 as bfloat16
from treadle import bool as bool
from treadle import complex64 as complex64
from treadle import complex128 as complex128
from treadle import e as e
from treadle import enable_grad as enable_grad
from treadle import float16 as float16
from treadle import float32 as float32
from treadle import float64 as float64
from treadle import inf as inf
from treadle import int8 as int8
from treadle import int16 as int16
from treadle import int32 as int32
from treadle import int64 as int64
from treadle import nan as nan
from treadle import newaxis as newaxis
from treadle import no_grad as no_grad
from treadle import pi as pi
from treadle import uint8 as uint8
from treadle import uint16 as uint16
from treadle import uint32 as uint32
from treadle import uint64 as uint64
from treadle.autograd.modes import is_grad_enabled as is_grad_enabled
from treadle.autograd.modes import set_grad_enabled as set_grad_enabled
from treadle.torch import accelerator as accelerator
from treadle.torch import amp as amp
from treadle.torch import autograd as autograd
from treadle.torch import backends as backends
from treadle.torch import compiler as compiler
from treadle.torch import cuda as cuda
from treadle.torch import distributed as distributed
from treadle.torch import distributions as distributions
from treadle.torch import fft as fft
from treadle.torch import func as func
from treadle.torch import linalg as linalg
from treadle.torch import mps as mps
from treadle.torch import multiprocessing as multiprocessing
from treadle.torch import nn as nn
from treadle.torch import onnx as onnx
from treadle.torch import optim as optim
from treadle.torch import random as random
from treadle.torch import return_types as return_types
from treadle.torch import serialization as serialization
from treadle.torch import signal as signal
from treadle.torch import sparse as sparse
from treadle.torch import special as special
from treadle.torch import testing as testing
from treadle.torch import utils as utils
from treadle.torch import version as version
from treadle.torch import xpu as xpu
from treadle.torch.amp.mixed_precision import GradScaler as GradScaler
from treadle.torch.amp.mixed_precision import autocast as autocast
from treadle.torch.amp.mixed_precision import get_autocast_dtype as get_autocast_dtype
from treadle.torch.amp.mixed_precision import is_autocast_enabled as is_autocast_enabled
from treadle.torch.attributes import is_tensor as is_tensor
from treadle.torch.attributes import typename as typename
from treadle.torch.autograd.gradients import inference_mode as inference_mode
from treadle.torch.autograd.gradients import is_inference_mode_enabled as is_inference_mode_enabled
from treadle.torch.compilation import compile as compile
from treadle.torch.cuda.streams import Event as Event
from treadle.torch.cuda.streams import Stream as Stream
from treadle.torch.devices import device as device
from treadle.torch.devices import get_default_device as get_default_device
from treadle.torch.devices import set_default_device as set_default_device
from treadle.torch.dtypes import can_cast as can_cast
from treadle.torch.dtypes import finfo as finfo
from treadle.torch.dtypes import get_default_dtype as get_default_dtype
from treadle.torch.dtypes import iinfo as iinfo
from treadle.torch.dtypes import promote_types as promote_types
from treadle.torch.dtypes import set_default_dtype as set_default_dtype
from treadle.torch.errors import OutOfMemoryError as OutOfMemoryError
from treadle.torch.func.transforms import vmap as vmap
from treadle.torch.functions import abs as abs
from treadle.torch.functions import abs_ as abs_
from treadle.torch.functions import absolute as absolute
from treadle.torch.functions import acos as acos
from treadle.torch.functions import acos_ as acos_
from treadle.torch.functions import acosh as acosh
from treadle.torch.functions import acosh_ as acosh_
from treadle.torch.functions import adaptive_avg_pool1d as adaptive_avg_pool1d
from treadle.torch.functions import adaptive_max_pool1d as adaptive_max_pool1d
from treadle.torch.functions import add as add
from treadle.torch.functions import addbmm as addbmm
from treadle.torch.functions import addcdiv as addcdiv
from treadle.torch.functions import addcmul as addcmul
from treadle.torch.functions import addmm as addmm
from treadle.torch.functions import addmv as addmv
from treadle.torch.functions import addmv_ as addmv_
from treadle.torch.functions import addr as addr
from treadle.torch.functions import adjoint as adjoint
from treadle.torch.functions import alias_copy as alias_copy
from treadle.torch.functions import all as all
from treadle.torch.functions import allclose as allclose
from treadle.torch.functions import alpha_dropout as alpha_dropout
from treadle.torch.functions import alpha_dropout_ as alpha_dropout_
from treadle.torch.functions import amax as amax
from treadle.torch.functions import amin as amin
from treadle.torch.functions import aminmax as aminmax
from treadle.torch.functions import angle as angle
from treadle.torch.functions import any as any
from treadle.torch.functions import arange as arange
from treadle.torch.functions import arccos as arccos
from treadle.torch.functions import arccos_ as arccos_
from treadle.torch.functions import arccosh as arccosh
from treadle.torch.functions import arccosh_ as arccosh_
from treadle.torch.functions import arcsin as arcsin
from treadle.torch.functions import arcsin_ as arcsin_
from treadle.torch.functions import arcsinh as arcsinh
from treadle.torch.functions import arcsinh_ as arcsinh_
from treadle.torch.functions import arctan as arctan
from treadle.torch.functions import arctan2 as arctan2
from treadle.torch.functions import arctan_ as arctan_
from treadle.torch.functions import arctanh as arctanh
from treadle.torch.functions import arctanh_ as arctanh_
from treadle.torch.functions import argmax as argmax
from treadle.torch.functions import argmin as argmin
from treadle.torch.functions import argsort as argsort
from treadle.torch.functions import argwhere as argwhere
from treadle.torch.functions import as_strided as as_strided
from treadle.torch.functions import as_strided_ as as_strided_
from treadle.torch.functions import as_strided_copy as as_strided_copy
from treadle.torch.functions import as_strided_scatter as as_strided_scatter
from treadle.torch.functions import as_tensor as as_tensor
from treadle.torch.functions import asarray as asarray
from treadle.torch.functions import asin as asin
from treadle.torch.functions import asin_ as asin_
from treadle.torch.functions import asinh as asinh
from treadle.torch.functions import asinh_ as asinh_
from treadle.torch.functions import atan as atan
from treadle.torch.functions import atan2 as atan2
from treadle.torch.functions import atan_ as atan_
from treadle.torch.functions import atanh as atanh
from treadle.torch.functions import atanh_ as atanh_
from treadle.torch.functions import atleast_1d as atleast_1d
from treadle.torch.functions import atleast_2d as atleast_2d
from treadle.torch.functions import atleast_3d as atleast_3d
from treadle.torch.functions import avg_pool1d as avg_pool1d
from treadle.torch.functions import baddbmm as baddbmm
from treadle.torch.functions import bartlett_window as bartlett_window
from treadle.torch.functions import batch_norm as batch_norm
from treadle.torch.functions import bernoulli as bernoulli
from treadle.torch.functions import bilinear as bilinear
from treadle.torch.functions import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from treadle.torch.functions import bincount as bincount
from treadle.torch.functions import binomial as binomial
from treadle.torch.functions import bitwise_and as bitwise_and
from treadle.torch.functions import bitwise_left_shift as bitwise_left_shift
from treadle.torch.functions import bitwise_not as bitwise_not
from treadle.torch.functions import bitwise_or as bitwise_or
from treadle.torch.functions import bitwise_right_shift as bitwise_right_shift
from treadle.torch.functions import bitwise_xor as bitwise_xor
from treadle.torch.functions import blackman_window as blackman_window
from treadle.torch.functions import block_diag as block_diag
from treadle.torch.functions import bmm as bmm
from treadle.torch.functions import broadcast_shapes as broadcast_shapes
from treadle.torch.functions import broadcast_tensors as broadcast_tensors
from treadle.torch.functions import broadcast_to as broadcast_to
from treadle.torch.functions import bucketize as bucketize
from treadle.torch.functions import cartesian_prod as cartesian_prod
from treadle.torch.functions import cat as cat
from treadle.torch.functions import cdist as cdist
from treadle.torch.functions import cdouble as cdouble
from treadle.torch.functions import ceil as ceil
from treadle.torch.functions import ceil_ as ceil_
from treadle.torch.functions import celu as celu
from treadle.torch.functions import celu_ as celu_
from treadle.torch.functions import cfloat as cfloat
from treadle.torch.functions import chain_matmul as chain_matmul
from treadle.torch.functions import channel_shuffle as channel_shuffle
from treadle.torch.functions import cholesky as cholesky
from treadle.torch.functions import cholesky_inverse as cholesky_inverse
from treadle.torch.functions import cholesky_solve as cholesky_solve
from treadle.torch.functions import chunk as chunk
from treadle.torch.functions import clamp as clamp
from treadle.torch.functions import clamp_ as clamp_
from treadle.torch.functions import clamp_max as clamp_max
from treadle.torch.functions import clamp_max_ as clamp_max_
from treadle.torch.functions import clamp_min as clamp_min
from treadle.torch.functions import clamp_min_ as clamp_min_
from treadle.torch.functions import clip as clip
from treadle.torch.functions import clip_ as clip_
from treadle.torch.functions import clone as clone
from treadle.torch.functions import column_stack as column_stack
from treadle.torch.functions import combinations as combinations
from treadle.torch.functions import complex as complex
from treadle.torch.functions import concat as concat
from treadle.torch.functions import concatenate as concatenate
from treadle.torch.functions import conj as conj
from treadle.torch.functions import conj_physical as conj_physical
from treadle.torch.functions import conj_physical_ as conj_physical_
from treadle.torch.functions import constant_pad_nd as constant_pad_nd
from treadle.torch.functions import conv1d as conv1d
from treadle.torch.functions import conv2d as conv2d
from treadle.torch.functions import conv3d as conv3d
from treadle.torch.functions import conv_tbc as conv_tbc
from treadle.torch.functions import conv_transpose1d as conv_transpose1d
from treadle.torch.functions import conv_transpose2d as conv_transpose2d
from treadle.torch.functions import conv_transpose3d as conv_transpose3d
from treadle.torch.functions import copysign as copysign
from treadle.torch.functions import corrcoef as corrcoef
from treadle.torch.functions import cos as cos
from treadle.torch.functions import cos_ as cos_
from treadle.torch.functions import cosh as cosh
from treadle.torch.functions import cosh_ as cosh_
from treadle.torch.functions import cosine_embedding_loss as cosine_embedding_loss
from treadle.torch.functions import cosine_similarity as cosine_similarity
from treadle.torch.functions import count_nonzero as count_nonzero
from treadle.torch.functions import cov as cov
from treadle.torch.functions import cross as cross
from treadle.torch.functions import ctc_loss as ctc_loss
from treadle.torch.functions import cummax as cummax
from treadle.torch.functions import cummin as cummin
from treadle.torch.functions import cumprod as cumprod
from treadle.torch.functions import cumsum as cumsum
from treadle.torch.functions import cumulative_trapezoid as cumulative_trapezoid
from treadle.torch.functions import deg2rad as deg2rad
from treadle.torch.functions import deg2rad_ as deg2rad_
from treadle.torch.functions import det as det
from treadle.torch.functions import detach as detach
from treadle.torch.functions import detach_ as detach_
from treadle.torch.functions import detach_copy as detach_copy
from treadle.torch.functions import diag as diag
from treadle.torch.functions import diag_embed as diag_embed
from treadle.torch.functions import diagflat as diagflat
from treadle.torch.functions import diagonal as diagonal
from treadle.torch.functions import diagonal_copy as diagonal_copy
from treadle.torch.functions import diagonal_scatter as diagonal_scatter
from treadle.torch.functions import diff as diff
from treadle.torch.functions import digamma as digamma
from treadle.torch.functions import dist as dist
from treadle.torch.functions import div as div
from treadle.torch.functions import divide as divide
from treadle.torch.functions import dot as dot
from treadle.torch.functions import double as double
from treadle.torch.functions import dropout as dropout
from treadle.torch.functions import dropout_ as dropout_
from treadle.torch.functions import dsplit as dsplit
from treadle.torch.functions import dstack as dstack
from treadle.torch.functions import einsum as einsum
from treadle.torch.functions import embedding as embedding
from treadle.torch.functions import empty as empty
from treadle.torch.functions import empty_like as empty_like
from treadle.torch.functions import empty_permuted as empty_permuted
from treadle.torch.functions import empty_strided as empty_strided
from treadle.torch.functions import eq as eq
from treadle.torch.functions import equal as equal
from treadle.torch.functions import erf as erf
from treadle.torch.functions import erf_ as erf_
from treadle.torch.functions import erfc as erfc
from treadle.torch.functions import erfc_ as erfc_
from treadle.torch.functions import erfinv as erfinv
from treadle.torch.functions import exp as exp
from treadle.torch.functions import exp2 as exp2
from treadle.torch.functions import exp2_ as exp2_
from treadle.torch.functions import exp_ as exp_
from treadle.torch.functions import expand_copy as expand_copy
from treadle.torch.functions import expm1 as expm1
from treadle.torch.functions import expm1_ as expm1_
from treadle.torch.functions import eye as eye
from treadle.torch.functions import feature_alpha_dropout as feature_alpha_dropout
from treadle.torch.functions import feature_dropout as feature_dropout
from treadle.torch.functions import fill as fill
from treadle.torch.functions import fill_ as fill_
from treadle.torch.functions import fix as fix
from treadle.torch.functions import fix_ as fix_
from treadle.torch.functions import flatten as flatten
from treadle.torch.functions import flip as flip
from treadle.torch.functions import fliplr as fliplr
from treadle.torch.functions import flipud as flipud
from treadle.torch.functions import float as float
from treadle.torch.functions import float_power as float_power
from treadle.torch.functions import floor as floor
from treadle.torch.functions import floor_ as floor_
from treadle.torch.functions import floor_divide as floor_divide
from treadle.torch.functions import fmax as fmax
from treadle.torch.functions import fmin as fmin
from treadle.torch.functions import fmod as fmod
from treadle.torch.functions import frac as frac
from treadle.torch.functions import frac_ as frac_
from treadle.torch.functions import frexp as frexp
from treadle.torch.functions import from_dlpack as from_dlpack
from treadle.torch.functions import from_numpy as from_numpy
from treadle.torch.functions import frombuffer as frombuffer
from treadle.torch.functions import full as full
from treadle.torch.functions import full_like as full_like
from treadle.torch.functions import gather as gather
from treadle.torch.functions import gcd as gcd
from treadle.torch.functions import gcd_ as gcd_
from treadle.torch.functions import ge as ge
from treadle.torch.functions import geqrf as geqrf
from treadle.torch.functions import ger as ger
from treadle.torch.functions import get_device as get_device
from treadle.torch.functions import gradient as gradient
from treadle.torch.functions import greater as greater
from treadle.torch.functions import greater_equal as greater_equal
from treadle.torch.functions import group_norm as group_norm
from treadle.torch.functions import gt as gt
from treadle.torch.functions import half as half
from treadle.torch.functions import hamming_window as hamming_window
from treadle.torch.functions import hann_window as hann_window
from treadle.torch.functions import hardshrink as hardshrink
from treadle.torch.functions import heaviside as heaviside
from treadle.torch.functions import hinge_embedding_loss as hinge_embedding_loss
from treadle.torch.functions import histc as histc
from treadle.torch.functions import histogram as histogram
from treadle.torch.functions import histogramdd as histogramdd
from treadle.torch.functions import hsplit as hsplit
from treadle.torch.functions import hstack as hstack
from treadle.torch.functions import hypot as hypot
from treadle.torch.functions import i0 as i0
from treadle.torch.functions import i0_ as i0_
from treadle.torch.functions import igamma as igamma
from treadle.torch.functions import igammac as igammac
from treadle.torch.functions import imag as imag
from treadle.torch.functions import index_add as index_add
from treadle.torch.functions import index_copy as index_copy
from treadle.torch.functions import index_fill as index_fill
from treadle.torch.functions import index_put as index_put
from treadle.torch.functions import index_put_ as index_put_
from treadle.torch.functions import index_reduce as index_reduce
from treadle.torch.functions import index_select as index_select
from treadle.torch.functions import inner as inner
from treadle.torch.functions import instance_norm as instance_norm
from treadle.torch.functions import int as int
from treadle.torch.functions import inverse as inverse
from treadle.torch.functions import is_complex as is_complex
from treadle.torch.functions import is_conj as is_conj
from treadle.torch.functions import is_floating_point as is_floating_point
from treadle.torch.functions import is_inference as is_inference
from treadle.torch.functions import is_neg as is_neg
from treadle.torch.functions import is_nonzero as is_nonzero
from treadle.torch.functions import is_same_size as is_same_size
from treadle.torch.functions import is_signed as is_signed
from treadle.torch.functions import isclose as isclose
from treadle.torch.functions import isfinite as isfinite
from treadle.torch.functions import isin as isin
from treadle.torch.functions import isinf as isinf
from treadle.torch.functions import isnan as isnan
from treadle.torch.functions import isneginf as isneginf
from treadle.torch.functions import isposinf as isposinf
from treadle.torch.functions import isreal as isreal
from treadle.torch.functions import istft as istft
from treadle.torch.functions import kaiser_window as kaiser_window
from treadle.torch.functions import kl_div as kl_div
from treadle.torch.functions import kron as kron
from treadle.torch.functions import kthvalue as kthvalue
from treadle.torch.functions import layer_norm as layer_norm
from treadle.torch.functions import lcm as lcm
from treadle.torch.functions import lcm_ as lcm_
from treadle.torch.functions import ldexp as ldexp
from treadle.torch.functions import ldexp_ as ldexp_
from treadle.torch.functions import le as le
from treadle.torch.functions import lerp as lerp
from treadle.torch.functions import less as less
from treadle.torch.functions import less_equal as less_equal
from treadle.torch.functions import lgamma as lgamma
from treadle.torch.functions import linspace as linspace
from treadle.torch.functions import log as log
from treadle.torch.functions import log1p as log1p
from treadle.torch.functions import log1p_ as log1p_
from treadle.torch.functions import log2 as log2
from treadle.torch.functions import log2_ as log2_
from treadle.torch.functions import log10 as log10
from treadle.torch.functions import log10_ as log10_
from treadle.torch.functions import log_ as log_
from treadle.torch.functions import log_softmax as log_softmax
from treadle.torch.functions import logaddexp as logaddexp
from treadle.torch.functions import logaddexp2 as logaddexp2
from treadle.torch.functions import logcumsumexp as logcumsumexp
from treadle.torch.functions import logdet as logdet
from treadle.torch.functions import logical_and as logical_and
from treadle.torch.functions import logical_not as logical_not
from treadle.torch.functions import logical_or as logical_or
from treadle.torch.functions import logical_xor as logical_xor
from treadle.torch.functions import logit as logit
from treadle.torch.functions import logit_ as logit_
from treadle.torch.functions import logspace as logspace
from treadle.torch.functions import logsumexp as logsumexp
from treadle.torch.functions import long as long
from treadle.torch.functions import lt as lt
from treadle.torch.functions import lu as lu
from treadle.torch.functions import lu_solve as lu_solve
from treadle.torch.functions import lu_unpack as lu_unpack
from treadle.torch.functions import margin_ranking_loss as margin_ranking_loss
from treadle.torch.functions import masked_fill as masked_fill
from treadle.torch.functions import masked_scatter as masked_scatter
from treadle.torch.functions import masked_select as masked_select
from treadle.torch.functions import matmul as matmul
from treadle.torch.functions import matrix_exp as matrix_exp
from treadle.torch.functions import matrix_power as matrix_power
from treadle.torch.functions import max as max
from treadle.torch.functions import max_pool1d as max_pool1d
from treadle.torch.functions import max_pool1d_with_indices as max_pool1d_with_indices
from treadle.torch.functions import max_pool2d as max_pool2d
from treadle.torch.functions import max_pool3d as max_pool3d
from treadle.torch.functions import maximum as maximum
from treadle.torch.functions import mean as mean
from treadle.torch.functions import median as median
from treadle.torch.functions import meshgrid as meshgrid
from treadle.torch.functions import min as min
from treadle.torch.functions import minimum as minimum
from treadle.torch.functions import mm as mm
from treadle.torch.functions import mode as mode
from treadle.torch.functions import moveaxis as moveaxis
from treadle.torch.functions import movedim as movedim
from treadle.torch.functions import msort as msort
from treadle.torch.functions import mul as mul
from treadle.torch.functions import multinomial as multinomial
from treadle.torch.functions import multiply as multiply
from treadle.torch.functions import mv as mv
from treadle.torch.functions import mvlgamma as mvlgamma
from treadle.torch.functions import nan_to_num as nan_to_num
from treadle.torch.functions import nan_to_num_ as nan_to_num_
from treadle.torch.functions import nanmean as nanmean
from treadle.torch.functions import nanmedian as nanmedian
from treadle.torch.functions import nanquantile as nanquantile
from treadle.torch.functions import nansum as nansum
from treadle.torch.functions import narrow as narrow
from treadle.torch.functions import narrow_copy as narrow_copy
from treadle.torch.functions import native_channel_shuffle as native_channel_shuffle
from treadle.torch.functions import ne as ne
from treadle.torch.functions import neg as neg
from treadle.torch.functions import neg_ as neg_
from treadle.torch.functions import negative as negative
from treadle.torch.functions import negative_ as negative_
from treadle.torch.functions import nextafter as nextafter
from treadle.torch.functions import nonzero as nonzero
from treadle.torch.functions import nonzero_static as nonzero_static
from treadle.torch.functions import norm as norm
from treadle.torch.functions import normal as normal
from treadle.torch.functions import not_equal as not_equal
from treadle.torch.functions import numel as numel
from treadle.torch.functions import ones as ones
from treadle.torch.functions import ones_like as ones_like
from treadle.torch.functions import orgqr as orgqr
from treadle.torch.functions import ormqr as ormqr
from treadle.torch.functions import outer as outer
from treadle.torch.functions import pairwise_distance as pairwise_distance
from treadle.torch.functions import pca_lowrank as pca_lowrank
from treadle.torch.functions import pdist as pdist
from treadle.torch.functions import permute as permute
from treadle.torch.functions import permute_copy as permute_copy
from treadle.torch.functions import pinverse as pinverse
from treadle.torch.functions import pixel_shuffle as pixel_shuffle
from treadle.torch.functions import pixel_unshuffle as pixel_unshuffle
from treadle.torch.functions import poisson as poisson
from treadle.torch.functions import polar as polar
from treadle.torch.functions import polygamma as polygamma
from treadle.torch.functions import positive as positive
from treadle.torch.functions import pow as pow
from treadle.torch.functions import prelu as prelu
from treadle.torch.functions import prod as prod
from treadle.torch.functions import put as put
from treadle.torch.functions import qr as qr
from treadle.torch.functions import quantile as quantile
from treadle.torch.functions import rad2deg as rad2deg
from treadle.torch.functions import rad2deg_ as rad2deg_
from treadle.torch.functions import rand as rand
from treadle.torch.functions import rand_like as rand_like
from treadle.torch.functions import randint as randint
from treadle.torch.functions import randint_like as randint_like
from treadle.torch.functions import randn as randn
from treadle.torch.functions import randn_like as randn_like
from treadle.torch.functions import randperm as randperm
from treadle.torch.functions import range as range
from treadle.torch.functions import ravel as ravel
from treadle.torch.functions import real as real
from treadle.torch.functions import reciprocal as reciprocal
from treadle.torch.functions import reciprocal_ as reciprocal_
from treadle.torch.functions import relu as relu
from treadle.torch.functions import relu_ as relu_
from treadle.torch.functions import remainder as remainder
from treadle.torch.functions import renorm as renorm
from treadle.torch.functions import repeat_interleave as repeat_interleave
from treadle.torch.functions import reshape as reshape
from treadle.torch.functions import resize_as_ as resize_as_
from treadle.torch.functions import resolve_conj as resolve_conj
from treadle.torch.functions import resolve_neg as resolve_neg
from treadle.torch.functions import result_type as result_type
from treadle.torch.functions import rms_norm as rms_norm
from treadle.torch.functions import roll as roll
from treadle.torch.functions import rot90 as rot90
from treadle.torch.functions import round as round
from treadle.torch.functions import round_ as round_
from treadle.torch.functions import row_stack as row_stack
from treadle.torch.functions import rrelu as rrelu
from treadle.torch.functions import rrelu_ as rrelu_
from treadle.torch.functions import rsqrt as rsqrt
from treadle.torch.functions import rsqrt_ as rsqrt_
from treadle.torch.functions import rsub as rsub
from treadle.torch.functions import scalar_tensor as scalar_tensor
from treadle.torch.functions import scatter as scatter
from treadle.torch.functions import scatter_add as scatter_add
from treadle.torch.functions import scatter_reduce as scatter_reduce
from treadle.torch.functions import searchsorted as searchsorted
from treadle.torch.functions import select as select
from treadle.torch.functions import select_copy as select_copy
from treadle.torch.functions import select_scatter as select_scatter
from treadle.torch.functions import selu as selu
from treadle.torch.functions import selu_ as selu_
from treadle.torch.functions import sgn as sgn
from treadle.torch.functions import sgn_ as sgn_
from treadle.torch.functions import short as short
from treadle.torch.functions import sigmoid as sigmoid
from treadle.torch.functions import sigmoid_ as sigmoid_
from treadle.torch.functions import sign as sign
from treadle.torch.functions import signbit as signbit
from treadle.torch.functions import sin as sin
from treadle.torch.functions import sin_ as sin_
from treadle.torch.functions import sinc as sinc
from treadle.torch.functions import sinc_ as sinc_
from treadle.torch.functions import sinh as sinh
from treadle.torch.functions import sinh_ as sinh_
from treadle.torch.functions import slice_copy as slice_copy
from treadle.torch.functions import slice_scatter as slice_scatter
from treadle.torch.functions import slogdet as slogdet
from treadle.torch.functions import softmax as softmax
from treadle.torch.functions import sort as sort
from treadle.torch.functions import split as split
from treadle.torch.functions import split_copy as split_copy
from treadle.torch.functions import split_with_sizes as split_with_sizes
from treadle.torch.functions import split_with_sizes_copy as split_with_sizes_copy
from treadle.torch.functions import sqrt as sqrt
from treadle.torch.functions import sqrt_ as sqrt_
from treadle.torch.functions import square as square
from treadle.torch.functions import square_ as square_
from treadle.torch.functions import squeeze as squeeze
from treadle.torch.functions import squeeze_copy as squeeze_copy
from treadle.torch.functions import stack as stack
from treadle.torch.functions import std as std
from treadle.torch.functions import std_mean as std_mean
from treadle.torch.functions import stft as stft
from treadle.torch.functions import sub as sub
from treadle.torch.functions import subtract as subtract
from treadle.torch.functions import sum as sum
from treadle.torch.functions import svd as svd
from treadle.torch.functions import svd_lowrank as svd_lowrank
from treadle.torch.functions import swapaxes as swapaxes
from treadle.torch.functions import swapdims as swapdims
from treadle.torch.functions import t as t
from treadle.torch.functions import t_copy as t_copy
from treadle.torch.functions import take as take
from treadle.torch.functions import take_along_dim as take_along_dim
from treadle.torch.functions import tan as tan
from treadle.torch.functions import tan_ as tan_
from treadle.torch.functions import tanh as tanh
from treadle.torch.functions import tanh_ as tanh_
from treadle.torch.functions import tensor as tensor
from treadle.torch.functions import tensor_split as tensor_split
from treadle.torch.functions import tensordot as tensordot
from treadle.torch.functions import threshold as threshold
from treadle.torch.functions import threshold_ as threshold_
from treadle.torch.functions import tile as tile
from treadle.torch.functions import to_dlpack as to_dlpack
from treadle.torch.functions import topk as topk
from treadle.torch.functions import trace as trace
from treadle.torch.functions import transpose as transpose
from treadle.torch.functions import transpose_copy as transpose_copy
from treadle.torch.functions import trapezoid as trapezoid
from treadle.torch.functions import trapz as trapz
from treadle.torch.functions import triangular_solve as triangular_solve
from treadle.torch.functions import tril as tril
from treadle.torch.functions import tril_indices as tril_indices
from treadle.torch.functions import triu as triu
from treadle.torch.functions import triu_indices as triu_indices
from treadle.torch.functions import true_divide as true_divide
from treadle.torch.functions import trunc as trunc
from treadle.torch.functions import trunc_ as trunc_
from treadle.torch.functions import unbind as unbind
from treadle.torch.functions import unbind_copy as unbind_copy
from treadle.torch.functions import unflatten as unflatten
from treadle.torch.functions import unfold_copy as unfold_copy
from treadle.torch.functions import unique as unique
from treadle.torch.functions import unique_consecutive as unique_consecutive
from treadle.torch.functions import unravel_index as unravel_index
from treadle.torch.functions import unsafe_chunk as unsafe_chunk
from treadle.torch.functions import unsafe_split as unsafe_split
from treadle.torch.functions import unsafe_split_with_sizes as unsafe_split_with_sizes
from treadle.torch.functions import unsqueeze as unsqueeze
from treadle.torch.functions import unsqueeze_copy as unsqueeze_copy
from treadle.torch.functions import vander as vander
from treadle.torch.functions import var as var
from treadle.torch.functions import var_mean as var_mean
from treadle.torch.functions import vdot as vdot
from treadle.torch.functions import view_as_complex as view_as_complex
from treadle.torch.functions import view_as_complex_copy as view_as_complex_copy
from treadle.torch.functions import view_as_real as view_as_real
from treadle.torch.functions import view_as_real_copy as view_as_real_copy
from treadle.torch.functions import view_copy as view_copy
from treadle.torch.functions import vsplit as vsplit
from treadle.torch.functions import vstack as vstack
from treadle.torch.functions import where as where
from treadle.torch.functions import xlogy as xlogy
from treadle.torch.functions import xlogy_ as xlogy_
from treadle.torch.functions import zero_ as zero_
from treadle.torch.functions import zeros as zeros
from treadle.torch.functions import zeros_like as zeros_like
from treadle.torch.lacking import missing as missing
from treadle.torch.layouts import Size as Size
from treadle.torch.layouts import channels_last as channels_last
from treadle.torch.layouts import channels_last_3d as channels_last_3d
from treadle.torch.layouts import contiguous_format as contiguous_format
from treadle.torch.layouts import layout as layout
from treadle.torch.layouts import memory_format as memory_format
from treadle.torch.layouts import preserve_format as preserve_format
from treadle.torch.layouts import sparse_coo as sparse_coo
from treadle.torch.layouts import sparse_csc as sparse_csc
from treadle.torch.layouts import sparse_csr as sparse_csr
from treadle.torch.layouts import strided as strided
from treadle.torch.legacy import BFloat16Tensor as BFloat16Tensor
from treadle.torch.legacy import BoolTensor as BoolTensor
from treadle.torch.legacy import ByteTensor as ByteTensor
from treadle.torch.legacy import CharTensor as CharTensor
from treadle.torch.legacy import DoubleTensor as DoubleTensor
from treadle.torch.legacy import FloatTensor as FloatTensor
from treadle.torch.legacy import HalfTensor as HalfTensor
from treadle.torch.legacy import IntTensor as IntTensor
from treadle.torch.legacy import LongTensor as LongTensor
from treadle.torch.legacy import ShortTensor as ShortTensor
from treadle.torch.legacy import dtype as dtype
from treadle.torch.printing import set_printoptions as set_printoptions
from treadle.torch.random import Generator as Generator
from treadle.torch.random import default_generator as default_generator
from treadle.torch.random import get_rng_state as get_rng_state
from treadle.torch.random import initial_seed as initial_seed
from treadle.torch.random import manual_seed as manual_seed
from treadle.torch.random import seed as seed
from treadle.torch.random import set_rng_state as set_rng_state
from treadle.torch.serialization import load as load
from treadle.torch.serialization import save as save
from treadle.torch.settings import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from treadle.torch.settings import compiled_with_cxx11_abi as compiled_with_cxx11_abi
from treadle.torch.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from treadle.torch.settings import get_float32_matmul_precision as get_float32_matmul_precision
from treadle.torch.settings import get_num_interop_threads as get_num_interop_threads
from treadle.torch.settings import get_num_threads as get_num_threads
from treadle.torch.settings import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from treadle.torch.settings import is_warn_always_enabled as is_warn_always_enabled
from treadle.torch.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from treadle.torch.settings import set_float32_matmul_precision as set_float32_matmul_precision
from treadle.torch.settings import set_flush_denormal as set_flush_denormal
from treadle.torch.settings import set_num_interop_threads as set_num_interop_threads
from treadle.torch.settings import set_num_threads as set_num_threads
from treadle.torch.settings import set_warn_always as set_warn_always
from treadle.torch.settings import use_deterministic_algorithms as use_deterministic_algorithms
from treadle.torch.sparse.creation import sparse_compressed_tensor as sparse_compressed_tensor
from treadle.torch.sparse.creation import sparse_coo_tensor as sparse_coo_tensor
from treadle.torch.sparse.creation import sparse_csc_tensor as sparse_csc_tensor
from treadle.torch.sparse.creation import sparse_csr_tensor as sparse_csr_tensor
from treadle.torch.sparse.products import dsmm as dsmm
from treadle.torch.sparse.products import smm as smm
from treadle.torch.sparse.products import spmm as spmm
from treadle.torch.tensors import Tensor as Tensor
from treadle.torch.tensors import wrap as wrap

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "Generator",
    "GradScaler",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Size",
    "Stream",
    "Tensor",
    "abs",
    "abs_",
    "absolute",
    "accelerator",
    "acos",
    "acos_",
    "acosh",
    "acosh_",
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addmv_",
    "addr",
    "adjoint",
    "alias_copy",
    "all",
    "allclose",
    "alpha_dropout",
    "alpha_dropout_",
    "amax",
    "amin",
    "aminmax",
    "amp",
    "angle",
    "any",
    "arange",
    "arccos",
    "arccos_",
    "arccosh",
    "arccosh_",
    "arcsin",
    "arcsin_",
    "arcsinh",
    "arcsinh_",
    "arctan",
    "arctan2",
    "arctan_",
    "arctanh",
    "arctanh_",
    "are_deterministic_algorithms_enabled",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "as_strided_",
    "as_strided_copy",
    "as_strided_scatter",
    "as_tensor",
    "asarray",
    "asin",
    "asin_",
    "asinh",
    "asinh_",
    "atan",
    "atan2",
    "atan_",
    "atanh",
    "atanh_",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast",
    "autograd",
    "avg_pool1d",
    "backends",
    "baddbmm",
    "bartlett_window",
    "batch_norm",
    "bernoulli",
    "bfloat16",
    "bilinear",
    "binary_cross_entropy_with_logits",
    "bincount",
    "binomial",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman_window",
    "block_diag",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cartesian_prod",
    "cat",
    "cdist",
    "cdouble",
    "ceil",
    "ceil_",
    "celu",
    "celu_",
    "cfloat",
    "chain_matmul",
    "channel_shuffle",
    "channels_last",
    "channels_last_3d",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_",
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "clip",
    "clip_",
    "clone",
    "column_stack",
    "combinations",
    "compile",
    "compiled_with_cxx11_abi",
    "compiler",
    "complex",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "conj",
    "conj_physical",
    "conj_physical_",
    "constant_pad_nd",
    "contiguous_format",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "copysign",
    "corrcoef",
    "cos",
    "cos_",
    "cosh",
    "cosh_",
    "cosine_embedding_loss",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cross",
    "ctc_loss",
    "cuda",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "default_generator",
    "deg2rad",
    "deg2rad_",
    "det",
    "detach",
    "detach_",
    "detach_copy",
    "device",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diff",
    "digamma",
    "dist",
    "distributed",
    "distributions",
    "div",
    "divide",
    "dot",
    "double",
    "dropout",
    "dropout_",
    "dsmm",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "einsum",
    "embedding",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "erf_",
    "erfc",
    "erfc_",
    "erfinv",
    "exp",
    "exp2",
    "exp2_",
    "exp_",
    "expand_copy",
    "expm1",
    "expm1_",
    "eye",
    "feature_alpha_dropout",
    "feature_dropout",
    "fft",
    "fill",
    "fill_",
    "finfo",
    "fix",
    "fix_",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frac",
    "frac_",
    "frexp",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "func",
    "gather",
    "gcd",
    "gcd_",
    "ge",
    "geqrf",
    "ger",
    "get_autocast_dtype",
    "get_default_device",
    "get_default_dtype",
    "get_deterministic_debug_mode",
    "get_device",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "get_rng_state",
    "gradient",
    "greater",
    "greater_equal",
    "group_norm",
    "gt",
    "half",
    "hamming_window",
    "hann_window",
    "hardshrink",
    "heaviside",
    "hinge_embedding_loss",
    "histc",
    "histogram",
    "histogramdd",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "i0_",
    "igamma",
    "igammac",
    "iinfo",
    "imag",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_put_",
    "index_reduce",
    "index_select",
    "inf",
    "inference_mode",
    "initial_seed",
    "inner",
    "instance_norm",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "inverse",
    "is_autocast_enabled",
    "is_complex",
    "is_conj",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "is_warn_always_enabled",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "istft",
    "kaiser_window",
    "kl_div",
    "kron",
    "kthvalue",
    "layer_norm",
    "layout",
    "lcm",
    "lcm_",
    "ldexp",
    "ldexp_",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "log",
    "log1p",
    "log1p_",
    "log2",
    "log2_",
    "log10",
    "log10_",
    "log_",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logit_",
    "logspace",
    "logsumexp",
    "long",
    "lt",
    "lu",
    "lu_solve",
    "lu_unpack",
    "manual_seed",
    "margin_ranking_loss",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "matrix_exp",
    "matrix_power",
    "max",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "median",
    "memory_format",
    "meshgrid",
    "min",
    "minimum",
    "missing",
    "mm",
    "mode",
    "moveaxis",
    "movedim",
    "mps",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "multiprocessing",
    "mv",
    "mvlgamma",
    "nan",
    "nan_to_num",
    "nan_to_num_",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "narrow_copy",
    "native_channel_shuffle",
    "ne",
    "neg",
    "neg_",
    "negative",
    "negative_",
    "newaxis",
    "nextafter",
    "nn",
    "no_grad",
    "nonzero",
    "nonzero_static",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "onnx",
    "optim",
    "orgqr",
    "ormqr",
    "outer",
    "pairwise_distance",
    "pca_lowrank",
    "pdist",
    "permute",
    "permute_copy",
    "pi",
    "pinverse",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson",
    "polar",
    "polygamma",
    "positive",
    "pow",
    "prelu",
    "preserve_format",
    "prod",
    "promote_types",
    "put",
    "qr",
    "quantile",
    "rad2deg",
    "rad2deg_",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "random",
    "randperm",
    "range",
    "ravel",
    "real",
    "reciprocal",
    "reciprocal_",
    "relu",
    "relu_",
    "remainder",
    "renorm",
    "repeat_interleave",
    "reshape",
    "resize_as_",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "return_types",
    "rms_norm",
    "roll",
    "rot90",
    "round",
    "round_",
    "row_stack",
    "rrelu",
    "rrelu_",
    "rsqrt",
    "rsqrt_",
    "rsub",
    "save",
    "scalar_tensor",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "seed",
    "select",
    "select_copy",
    "select_scatter",
    "selu",
    "selu_",
    "serialization",
    "set_default_device",
    "set_default_dtype",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "sgn",
    "sgn_",
    "short",
    "sigmoid",
    "sigmoid_",
    "sign",
    "signal",
    "signbit",
    "sin",
    "sin_",
    "sinc",
    "sinc_",
    "sinh",
    "sinh_",
    "slice_copy",
    "slice_scatter",
    "slogdet",
    "smm",
    "softmax",
    "sort",
    "sparse",
    "sparse_compressed_tensor",
    "sparse_coo",
    "sparse_coo_tensor",
    "sparse_csc",
    "sparse_csc_tensor",
    "sparse_csr",
    "sparse_csr_tensor",
    "special",
    "split",
    "split_copy",
    "split_with_sizes",
    "split_with_sizes_copy",
    "spmm",
    "sqrt",
    "sqrt_",
    "square",
    "square_",
    "squeeze",
    "squeeze_copy",
    "stack",
    "std",
    "std_mean",
    "stft",
    "strided",
    "sub",
    "subtract",
    "sum",
    "svd",
    "svd_lowrank",
    "swapaxes",
    "swapdims",
    "t",
    "t_copy",
    "take",
    "take_along_dim",
    "tan",
    "tan_",
    "tanh",
    "tanh_",
    "tensor",
    "tensor_split",
    "tensordot",
    "testing",
    "threshold",
    "threshold_",
    "tile",
    "to_dlpack",
    "topk",
    "trace",
    "transpose",
    "transpose_copy",
    "trapezoid",
    "trapz",
    "triangular_solve",
    "tril",
    "tril_indices",
    "triu",
    "triu_indices",
    "true_divide",
    "trunc",
    "trunc_",
    "typename",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unbind",
    "unbind_copy",
    "unflatten",
    "unfold_copy",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "unsqueeze_copy",
    "use_deterministic_algorithms",
    "utils",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "version",
    "view_as_complex",
    "view_as_complex_copy",
    "view_as_real",
    "view_as_real_copy",
    "view_copy",
    "vmap",
    "vsplit",
    "vstack",
    "where",
    "wrap",
    "xlogy",
    "xlogy_",
    "xpu",
    "zero_",
    "zeros",
    "zeros_like",
]
