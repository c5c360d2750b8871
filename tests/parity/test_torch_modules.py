"""`treadle.torch.nn` with PyTorch's samples of modules, called exactly as PyTorch is called:
results, gradients by inputs and parameters, and state dicts, from the same parameters.

`python -m tests.parity.test_torch_modules` calls all samples and says what came of them.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Any

import pytest

import treadle.torch as mine
from tests.parity import comparing, interface
from tests.parity.comparing import compare, compare_gradients, torch

pytestmark = pytest.mark.filterwarnings("ignore")

FEW = 2
# What treadle.torch does not have.
REFUSED: dict[str, str] = {}


@cache
def modules() -> dict[str, Any]:
    """PyTorch's entries by the names of the modules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return {each.module_cls.__name__: each for each in module_db}


def check(name: str, count: int) -> int:
    """Compare at most so many samples in each mode; how many there were."""
    entry, done = modules()[name], 0
    for training in (True, False) if entry.train_and_eval_differ else (True,):
        comparing.seed(0)
        samples = entry.module_inputs_func(
            entry, device="cpu", dtype=torch.float64, requires_grad=True, training=training
        )
        for number, sample in enumerate(comparing.spread_out(samples, count)):
            _check_sample(name, sample, training, f"{name}, sample {number}: {sample.desc}")
            done += 1
    return done


def _check_sample(name: str, sample: Any, training: bool, what: str) -> None:
    construct, forward = sample.constructor_input, sample.forward_input
    args, kwargs = construct.args, construct.kwargs
    theirs = getattr(torch.nn, name)(*args, **kwargs).double().train(training)
    found = getattr(mine.nn, name)(*_taken(args), **_taken(kwargs)).double().train(training)
    if not name.startswith("Lazy"):
        assert repr(found).replace("treadle.", "torch.") == repr(theirs)
        found.load_state_dict(theirs.state_dict())
    tracked: list[tuple[Any, Any]] = []
    given = _taken(forward.args, tracked)
    named = _taken(forward.kwargs, tracked)
    result = found(*given, **named)
    if name.startswith("Lazy"):  # their numbers are drawn now
        theirs(*forward.args, **forward.kwargs)
        found.load_state_dict(theirs.state_dict())
        result = found(*given, **named)
    wanted = theirs(*forward.args, **forward.kwargs)
    if training and any(getattr(each, "p", 0.0) > 0 for each in theirs.modules()):
        return  # drawn numbers differ
    compare(interface.inner(result), wanted, what)
    own = dict(found.named_parameters())
    pairs = [*tracked, *((own[key], value) for key, value in theirs.named_parameters())]
    inner = [(one.td, other) for one, other in pairs]
    compare_gradients(interface.inner(result), wanted, inner, what)
    state = found.state_dict()
    assert list(state) == list(theirs.state_dict())
    compare(interface.inner(dict(state)), dict(theirs.state_dict()), f"{what}, afterwards")


def _taken(value: Any, tracked: list[tuple[Any, Any]] | None = None) -> Any:
    """Arguments of PyTorch's as treadle.torch's."""
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return mine.nn.TransformerEncoderLayer(
            value.self_attn.embed_dim, value.self_attn.num_heads, value.linear1.out_features,
            value.dropout.p, _taken(value.activation), batch_first=value.self_attn.batch_first,
            norm_first=value.norm_first, bias=value.linear1.bias is not None,
        )  # fmt: skip
    if callable(value) and value is getattr(torch.nn.functional, value.__name__, None):
        return getattr(mine.nn.functional, value.__name__)
    if isinstance(value, dict):
        return {key: _taken(each, tracked) for key, each in value.items()}
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(_taken(each, tracked) for each in value)
    return interface.taken(value, "cpu", [] if tracked is None else tracked)


if torch is not None:
    NAMES = [name for name in modules() if name not in REFUSED]

    @pytest.mark.parametrize("name", NAMES)
    def test_few_samples(name):
        with comparing.one_by_one():  # by kernels that many modules share
            check(name, FEW if NAMES.index(name) % 2 else 1)


def main() -> None:
    """All samples of the modules named, or of all."""
    warnings.simplefilter("ignore")
    right, wrong = 0, 0
    for name in sys.argv[1:] or modules():
        try:
            with comparing.one_by_one():
                right += check(name, 10_000)
        except Exception as error:
            wrong += 1
            text = str(error).strip().replace("\n", " ")
            print(f"{name}: {type(error).__name__}: {text[:300]}", flush=True)
    print(f"{right} samples right, {wrong} modules with errors")


if __name__ == "__main__":
    main()
