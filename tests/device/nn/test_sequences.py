"""Recurrent networks, attention and transformers beside PyTorch's."""

import numpy as np
import pytest

import treadle as td
from treadle import nn
from treadle.core.errors import ShapeError

try:
    import torch
except ImportError:
    torch = None

RECURRENT = [
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}, (3, 2, 3)),
    ("RNN", {"bias": False, "batch_first": True}, (2, 4, 3)),
    ("LSTM", {"num_layers": 2, "bidirectional": True}, (3, 2, 3)),
    ("LSTM", {"proj_size": 2, "bidirectional": True}, (3, 3)),
    ("GRU", {"batch_first": True}, (2, 2, 3)),
]
CELLS = [("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {"bias": False}), ("GRUCell", {})]
CAUSAL = np.triu(np.ones((4, 4), bool), k=1)
PADDING = np.array([[False, False, True, True], [False] * 4])
ADDED = np.where(np.tile(CAUSAL, (4, 1, 1)), -1.5, 0.5)
ATTENTION = [
    ({}, {}),
    ({"bias": False}, {"attn_mask": CAUSAL}),
    ({"batch_first": True}, {"key_padding_mask": PADDING, "attn_mask": ADDED}),
    ({"add_bias_kv": True, "add_zero_attn": True}, {"key_padding_mask": PADDING}),
    ({"add_zero_attn": True}, {"need_weights": False, "attn_mask": CAUSAL}),
    ({"kdim": 5, "vdim": 3}, {"average_attn_weights": False}),
    ({"batch_first": True}, {"need_weights": False, "is_causal": True, "attn_mask": CAUSAL}),
    ({}, {"need_weights": False, "key_padding_mask": PADDING, "attn_mask": ADDED}),
]


def layer(name, *arguments, **options):
    return getattr(nn, name)(*arguments, **options, device="cpu")


if torch is not None:

    def both(name, *arguments, **options):
        """Ours and PyTorch's, with the same values."""
        theirs = getattr(torch.nn, name)(*arguments, **options, dtype=torch.float64)
        ours = getattr(nn, name)(*arguments, **options, device="cpu", dtype=td.float64)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        with torch.no_grad():  # biases that begin with zeros say nothing
            for each in theirs.parameters():
                each.uniform_(-0.6, 0.6)
        ours.load_state_dict(theirs.state_dict())
        assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizable", "")
        return ours, theirs

    def flat(results):
        if isinstance(results, (tuple, list)):
            return [x for each in results for x in flat(each)]
        return [] if results is None else [results]

    def check_equal(ours, theirs, run, arrays, rng):
        """Results, and gradients of inputs and parameters."""
        mine = [td.asarray(x, device="cpu").requires_grad_() for x in arrays]
        other = [torch.tensor(x, requires_grad=True) for x in arrays]
        found = flat(run(ours, mine, lambda x: td.asarray(x, device="cpu")))
        expected = flat(run(theirs, other, torch.as_tensor))
        total, wanted = 0, 0
        for x, y in zip(found, expected, strict=True):
            assert x.shape == tuple(y.shape)
            weights = rng.standard_normal(x.shape)
            total = total + (x * td.asarray(weights, device="cpu")).sum()
            wanted = wanted + (y * torch.as_tensor(weights)).sum()
            np.testing.assert_allclose(x.numpy(), y.detach().numpy(), rtol=1e-6, atol=1e-9)
        total.backward()
        wanted.backward()
        pairs = zip([*mine, *ours.parameters()], [*other, *theirs.parameters()], strict=True)
        for x, y in pairs:
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5, atol=1e-8)

    @pytest.mark.parametrize(("name", "options", "shape"), RECURRENT)
    def test_recurrent_networks(name, options, shape, rng):
        ours, theirs = both(name, 3, 4, **options)
        arrays = [rng.standard_normal(shape)]
        if "num_layers" not in options:  # with the first states
            count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
            batch = shape[:-1][not options.get("batch_first")] if len(shape) == 3 else None
            widths = [options.get("proj_size", 4), 4][: 1 + (name == "LSTM")]
            for width in widths:
                state = (count, width) if batch is None else (count, batch, width)
                arrays.append(rng.standard_normal(state))

        def run(module, tensors, _):
            states = tensors[1:]
            if not states:
                return module(tensors[0])
            return module(tensors[0], tuple(states) if len(states) == 2 else states[0])

        check_equal(ours, theirs, run, arrays, rng)

    @pytest.mark.parametrize(("name", "options"), CELLS)
    def test_cells(name, options, rng):
        ours, theirs = both(name, 3, 4, **options)
        arrays = [rng.standard_normal((2, 3)), *rng.standard_normal((2, 2, 4))]

        def run(module, tensors, _):
            x, *states = tensors
            if name == "LSTMCell":
                return module(x), module(x, tuple(states))
            return module(x), module(x, states[0] * states[1])

        check_equal(ours, theirs, run, arrays, rng)

    @pytest.mark.filterwarnings("ignore:Support for mismatched")
    @pytest.mark.parametrize(("options", "masks"), ATTENTION)
    def test_attention(options, masks, rng):
        ours, theirs = both("MultiheadAttention", 6, 2, **options)
        sizes = (6, options.get("kdim", 6), options.get("vdim", 6))
        shape = (2, 4) if options.get("batch_first") else (4, 2)

        def run(module, tensors, as_tensor):
            given = {
                name: as_tensor(value) if isinstance(value, np.ndarray) else value
                for name, value in masks.items()
            }
            return module(*tensors, **given)

        check_equal(
            ours,
            theirs,
            run,
            [rng.standard_normal((*shape, n)) for n in sizes],
            rng,
        )

    def test_attention_of_one_tensor(rng):
        ours, theirs = both("MultiheadAttention", 6, 3)
        arrays = [rng.standard_normal((4, 6)), rng.standard_normal((3, 6))]

        def run(module, tensors, _):
            x, y = tensors
            alone = module(x, x, x, need_weights=False)
            return alone, module(y, x, x * 2)

        check_equal(ours, theirs, run, arrays, rng)

    def test_transformers(rng):
        ours, theirs = both("Transformer", 4, 2, 1, 1, 6, dropout=0.0, batch_first=True)

        def run(module, tensors, as_tensor):
            mask = module.generate_square_subsequent_mask(4)
            return module(*tensors, tgt_mask=mask, src_key_padding_mask=as_tensor(PADDING))

        with td.use_device("cpu"):
            check_equal(ours, theirs, run, [*rng.standard_normal((2, 2, 4, 4))], rng)

    def test_an_encoder_that_normalizes_first(rng):
        options = {"norm_first": True, "activation": "gelu", "bias": False, "dropout": 0.0}
        ours, theirs = both("TransformerEncoderLayer", 4, 2, 6, **options)

        def run(module, tensors, as_tensor):
            return module(*tensors, src_mask=as_tensor(CAUSAL), is_causal=True)

        check_equal(ours, theirs, run, [rng.standard_normal((4, 2, 4))], rng)


def test_chance_between_layers():
    module = layer("LSTM", 3, 4, num_layers=2, dropout=0.5)
    x = td.ones((1, 8, 3), device="cpu")
    outputs = [module(x)[0].tolist(), module(x)[0].tolist()]
    module.eval()
    outputs += [module(x)[0].tolist(), module(x)[0].tolist()]
    assert outputs[0] != outputs[1]
    assert outputs[2] == outputs[3]
    x = td.ones((3, 4), device="cpu")
    for needed in (True, False):
        attention = layer("MultiheadAttention", 4, 2, dropout=1.0)
        found, weights = attention(x, x, x, need_weights=needed)
        np.testing.assert_array_equal(found.numpy(), 0)
        assert weights is None or not weights.any()


def test_on_a_device(device):
    model = nn.Sequential(nn.Embedding(5, 4, device=device), nn.GRU(4, 4, device=device))
    states, _ = model(td.asarray(np.array([[1, 2], [3, 0]], np.int32), device=device))
    states.sum().backward()
    for parameter in model.parameters():
        assert np.isfinite(parameter.grad.numpy()).all()


def test_what_is_refused():
    rnn, attention = layer("RNN", 3, 4), layer("MultiheadAttention", 4, 2)
    x, y = td.ones((5, 2, 3), device="cpu"), td.ones((5, 2, 4), device="cpu")
    for made, error, text in (
        (lambda: rnn(("packed", "sequence")), TypeError, "no packed sequences"),
        (lambda: rnn(y), ShapeError, r"\(L, 3\)"),
        (lambda: rnn(x, td.ones((2, 2, 4), device="cpu")), ShapeError, r"not \(1, 2, 4\)"),
        (lambda: rnn(x[:0]), ShapeError, "without places"),
        (lambda: layer("LSTM", 3, 4)(x, y), TypeError, "2 states"),
        (lambda: layer("LSTM", 3, 4, proj_size=4), ValueError, "proj_size=4"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "'sin'"),
        (lambda: layer("GRUCell", 3, 4)(y[0]), ShapeError, "GRUCell"),
        (lambda: nn.MultiheadAttention(5, 2), ValueError, "num_heads=2"),
        (lambda: attention(y, y, x), ShapeError, r"\(5, 2, 3\)"),
        (lambda: attention(y, y, y, attn_mask=td.ones((5, 4))), ShapeError, "attn_mask"),
        (lambda: attention(y, y, y, td.ones((5, 4))), ShapeError, "key_padding_mask"),
        (lambda: attention(y, y, y, is_causal=True), ValueError, "is_causal"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), ValueError, "'tanh'"),
        (lambda: layer("Transformer", 4, 2, 1, 1, 8)(x, y), ShapeError, "extents"),
    ):
        with pytest.raises(error, match=text):
            made()


def test_that_all_weights_are_those_of_the_state():
    lstm = nn.LSTM(2, 3, num_layers=2, bidirectional=True, device="cpu")
    lstm.flatten_parameters()
    found = [each for row in lstm.all_weights for each in row]
    assert len(lstm.all_weights) == 4
    assert {id(each) for each in found} == {id(each) for each in lstm.parameters()}
