"""Modules beside PyTorch's, with PyTorch's samples of arguments and inputs: results, and gradients
by inputs and parameters, from the same parameters."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import pytest

import treadle as td
from tests.parity import comparing
from tests.parity.comparing import compare, compare_gradients, torch

# PyTorch warns of what it is going to change.
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = """
AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d BatchNorm1d BatchNorm2d BatchNorm3d CELU Conv1d
Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss ELU L1Loss
SmoothL1Loss Linear Bilinear LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d KLDivLoss
MSELoss MarginRankingLoss MultiLabelMarginLoss MultiMarginLoss SoftMarginLoss
MultiLabelSoftMarginLoss NLLLoss GaussianNLLLoss PoissonNLLLoss HingeEmbeddingLoss HuberLoss
BCELoss BCEWithLogitsLoss CrossEntropyLoss GELU GLU GroupNorm Hardshrink Hardswish Hardtanh
InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm LayerNorm RMSNorm
TransformerEncoderLayer TransformerDecoderLayer Transformer MultiheadAttention Embedding ReLU
LeakyReLU ReLU6 PReLU RNNCell GRUCell LSTMCell Sigmoid LogSigmoid SiLU Softmax Softmax2d
LogSoftmax Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold Mish RNN GRU LSTM
ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
ReplicationPad3d SELU ZeroPad1d ZeroPad2d ZeroPad3d CircularPad1d CircularPad2d CircularPad3d
ConstantPad1d ConstantPad2d ConstantPad3d
"""
# Of the others of PyTorch's list: CTCLoss is compared behind a log_softmax (test_torch_functions.py), and
# TransformerEncoder, which is given a module, within Transformer. Lazy modules, FractionalMaxPool
# and LinearCrossEntropyLoss do not exist here.

FEW = 2


@cache
def _modules() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return {each.module_cls.__name__: each for each in module_db}


def check(name: str, count: int) -> None:
    entry = _modules()[name]
    for training in (True, False) if entry.train_and_eval_differ else (True,):
        comparing.seed(0)
        samples = entry.module_inputs_func(
            entry, device="cpu", dtype=torch.float64, requires_grad=True, training=training
        )
        for number, sample in enumerate(comparing.spread_out(samples, count)):
            _check_sample(name, sample, training, f"{name}, sample {number}: {sample.desc}")


def _check_sample(name: str, sample: Any, training: bool, what: str) -> None:
    construct, forward = sample.constructor_input, sample.forward_input
    if float(construct.kwargs.get("dropout", 0.0)) > 0.0 and training:
        return  # drawn numbers differ
    theirs = getattr(torch.nn, name)(*construct.args, **construct.kwargs).double().train(training)
    given = comparing.taken(construct.args, construct.kwargs, "cpu")
    mine = getattr(td.nn, name)(*given.arguments, **given.keywords).to(td.float64).train(training)
    mine.load_state_dict(
        {key: comparing.to_numpy(value) for key, value in theirs.state_dict().items()}
    )
    taken = comparing.taken(forward.args, forward.kwargs, "cpu")
    found = mine(*taken.arguments, **taken.keywords)
    wanted = theirs(*forward.args, **forward.kwargs)
    compare(found, wanted, what)
    own = dict(mine.named_parameters())
    parameters = [(own[key], value) for key, value in theirs.named_parameters()]
    compare_gradients(found, wanted, [*taken.tracked, *parameters], what)
    compare(dict(mine.state_dict()), dict(theirs.state_dict()), f"{what}, afterwards")


if torch is not None:

    @pytest.mark.parametrize("name", NAMES.split())
    def test_few_samples(name):
        with comparing.one_by_one():  # by kernels that many modules share
            check(name, FEW)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", NAMES.split())
    def test_all_samples(name):
        check(name, 1000)
