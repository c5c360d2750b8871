"""Functions beside PyTorch's of the same meaning, on the samples that PyTorch tests its own with:
forward, and gradients."""

from __future__ import annotations

from typing import Any

import pytest

import treadle as td
from tests.parity import comparing
from tests.parity.comparing import (
    compare,
    compare_gradients,
    one_by_one,
    operators,
    shown,
    torch,
)
from tests.parity.pairs import PAIRS, Pair
from tests.parity.unlike import UNLIKE

# PyTorch warns of what it is going to change.
pytestmark = pytest.mark.filterwarnings("ignore")

# How many samples of a dtype: the first, the last, and some between.
FEW = {"float64": 2, "complex128": 1, "int64": 1, "bool": 1}
ALL = dict.fromkeys(FEW, 10_000)
# Of those how many are computed fused, which compiles a kernel for each; the others are computed
# one by one, by kernels that many functions share.
FEW_FUSED = {"float64": 1, "float32": 1}
ALL_FUSED = {"float64": 10, "complex128": 3, "int64": 3, "bool": 3}
LABELS = {pair.label: pair for pair in PAIRS}
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


def check(pair: Pair, counts: dict[str, int], fused: dict[str, int], device: str = "cpu") -> None:
    operator = operators()[pair.name, pair.variant]
    unlike = UNLIKE.get(pair.label, ())
    needed = set()
    for name, count in counts.items():
        dtype = getattr(torch, name)
        if dtype not in operator.supported_dtypes("cpu"):
            continue
        # Few complex samples are compared forward: all gradients of complex numbers are compared
        # with differences elsewhere (tests/device/gradients/test_gradients_everywhere.py).
        few = name == "complex128" and count <= 1
        tracked = operator.supports_autograd and dtype in operator.supported_backward_dtypes("cpu")
        tracked = tracked and not few
        samples = comparing.samples_of(operator, dtype, tracked)
        kept = []
        for number, sample in enumerate(samples):
            fits = [each for each in unlike if _fits(each, name, sample)]
            needed.update(fits)
            if not fits:
                kept.append((number, sample))
        together = {number for number, _ in comparing.spread_out(kept, fused.get(name, 0))}
        for number, sample in comparing.spread_out(kept, count):
            with one_by_one(number not in together):
                what = f"{pair.label}, {name}, sample {number}"
                _check_sample(pair, operator, sample, what, device)
    idle = [each.reason for each in unlike if each not in needed]
    if counts.keys() >= FEW.keys():
        assert not idle, f"exceptions that no sample needs: {idle}"


def _fits(unlike: Any, name: str, sample: Any) -> bool:
    return (not unlike.dtypes or name in unlike.dtypes) and unlike.when(sample)


def _check_sample(pair: Pair, operator: Any, sample: Any, what: str, device: str) -> None:
    what = f"{what} of {shown((sample.input, *sample.args))} {shown(sample.kwargs)}"
    # Before PyTorch's, for functions that write, as batch_norm does.
    mine = comparing.taken((sample.input, *sample.args), sample.kwargs, device)
    try:
        theirs = pair.theirs(operator.op, torch)(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, ValueError, IndexError):
        return  # some samples are what PyTorch refuses
    with td.use_device(device):
        found = pair.ours()(*mine.arguments, **mine.keywords)
    compare(found, theirs, what)
    compare_gradients(found, theirs, mine.tracked, what)


if torch is not None:

    @pytest.mark.parametrize("label", LABELS)
    def test_few_samples(label):
        check(LABELS[label], FEW, FEW_FUSED)

    @pytest.mark.parametrize("label", ON_A_GPU.split())
    def test_on_webgpu(label):
        try:
            td.device("webgpu")
        except td.errors.DeviceNotFound as error:
            pytest.skip(str(error))
        check(LABELS[label], {"float32": 1}, FEW_FUSED, "webgpu")

    @pytest.mark.slow
    @pytest.mark.parametrize("label", LABELS)
    def test_all_samples(label):
        check(LABELS[label], ALL, ALL_FUSED)
