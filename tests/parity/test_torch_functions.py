"""`treadle.torch` with PyTorch's samples of its operators, called exactly as PyTorch is called: as
functions, methods, in place and with `out=`; values, dtypes and gradients.

`python tools/torch_parity.py` runs all samples; here it is one for each operator.
"""

from __future__ import annotations

import pytest

import treadle as td
from tests.parity import comparing
from tests.parity.comparing import torch

if torch is not None:
    from tests.parity import interface

# PyTorch warns of what it is going to change.
pytestmark = pytest.mark.filterwarnings("ignore")

# What PyTorch's list has and `treadle.torch` has not, by name: `treadle.torch.missing` says why.
REFUSED = """
_batch_norm_with_update _chunk_cat _native_batch_norm_legit _segment_reduce-lengths
_segment_reduce-offsets _softmax_backward_data _unsafe_masked_index
_unsafe_masked_index_put_accumulate _upsample_bilinear2d_aa chalf grid_sampler_2d grid_sampler_3d
hash_tensor linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve masked.amax masked.amin
masked.argmax masked.argmin masked.cumprod masked.cumsum masked.log_softmax masked.logaddexp
masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod masked.softmax
masked.softmin masked.std masked.sum masked.var max_pool2d_with_indices_backward native_batch_norm
native_dropout_backward native_group_norm native_layer_norm slice special.airy_ai
torch.ops.aten._safe_softmax.default
"""
# Beside float64, one of these for every second operator.
OTHERS = ("int64", "bool", "complex128")
# Whose samples alone take PyTorch seconds: they are among all samples, not here.
LONG = """
nn.functional.max_unpool1d nn.functional.max_unpool1d-grad nn.functional.max_unpool2d
nn.functional.max_unpool2d-grad nn.functional.max_unpool3d nn.functional.max_unpool3d-grad
"""
# What a GPU computes in another way than the CPU, in float32.
ON_A_GPU = """
sum prod std cumsum cumprod logsumexp max-reduction_no_dim msort matmul einsum cdist softmax
gather scatter_add index_add __getitem__ diff pow atan2 lgamma linalg.qr linalg.solve
linalg.vector_norm fft.rfft nn.functional.conv2d nn.functional.conv_transpose1d
nn.functional.max_pool2d nn.functional.avg_pool2d nn.functional.layer_norm
nn.functional.batch_norm nn.functional.cross_entropy nn.functional.embedding_bag
nn.functional.grid_sample nn.functional.interpolate-bilinear
nn.functional.scaled_dot_product_attention
"""


def _tally(label: str, dtypes: dict[str, int], device: str = "cpu") -> interface.Tally:
    operator = OPERATORS[label]
    tally = interface.Tally(label)
    for name, count in dtypes.items():
        dtype = getattr(torch, name)
        if dtype in operator.supported_dtypes("cpu"):
            interface.check(operator, dtype, count, device, tally)
    return tally


if torch is not None:
    OPERATORS = {
        f"{name}-{variant}".rstrip("-"): operator
        for (name, variant), operator in comparing.operators().items()
    }
    LABELS = [each for each in OPERATORS if each not in REFUSED.split()]

    FEW = [each for each in LABELS if each not in LONG.split()]

    @pytest.mark.parametrize("label", FEW)
    def test_a_sample(label):
        # Most are computed one operation after the other, by kernels that many share.
        number = FEW.index(label)
        with comparing.one_by_one(number % 8 > 0):
            other = OTHERS[0] if "with_dtype" in label else OTHERS[number % len(OTHERS)]
            tally = _tally(label, {"float64": 1} | ({other: 1} if number % 4 < 2 else {}))
            if not tally.samples:
                tally = _tally(label, {"int64": 1, "bool": 1})
        assert not tally.wrong + tally.refused, tally

    @pytest.mark.parametrize("label", REFUSED.split())
    def test_what_is_not_here_says_so(label):
        tally = _tally(label, {"float64": 1})
        assert not tally.wrong, tally
        assert not tally.right, tally

    @pytest.mark.parametrize("label", ON_A_GPU.split())
    def test_on_webgpu(label):
        try:
            td.device("webgpu")
        except td.errors.DeviceNotFound as error:
            pytest.skip(str(error))
        tally = _tally(label, {"float32": 1}, "webgpu")
        assert tally.right, tally

    @pytest.mark.slow
    @pytest.mark.parametrize("label", LABELS)
    def test_all_samples(label):
        with comparing.one_by_one():
            tally = _tally(label, dict.fromkeys(("float32", "float64", "int64", "bool"), 10_000))
        assert not tally.wrong, tally
