"""Every layer beside PyTorch's: arguments, the state dict's keys, the text, the results.

Gradients are compared for what has parameters; those of functions are compared where functions are
tested.
"""

import inspect
from typing import NamedTuple

import numpy as np
import pytest

import treadle as td

try:
    import torch
except ImportError:
    torch = None


class Case(NamedTuple):
    """A layer: its class, its arguments, and the shapes of its inputs."""

    name: str
    arguments: dict
    inputs: tuple

    def __str__(self):
        return f"{self.name}-{'-'.join(str(each) for each in self.arguments.values())}"


def case(name, *shapes, **arguments):
    return Case(name, arguments, shapes)


# --- what there is -------------------------------------------------------------------------------

ROW = (3, 4)
IMAGES = (2, 3, 5, 6)
INDICES = np.array([[0, 1, 4], [2, 2, 0]])
CLASSES, SIGNS = np.array([1, 0, 3]), np.array([1.0, -1.0, 1.0])
INSIDE, ONES = np.full((3, 4), 0.3), np.ones((3, 4))
_ACTIVATIONS = [
    "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus",
    "Softshrink", "Softsign", "Tanh", "Tanhshrink",
]  # fmt: skip
CASES = [
    *(case(name, ROW) for name in _ACTIVATIONS),
    case("GELU", ROW, approximate="tanh"),
    case("PReLU", (2, 3, 2), num_parameters=3),
    case("Threshold", ROW, threshold=0.1, value=20.0),
    case("GLU", ROW, dim=1),
    case("Softmax", ROW, dim=1),
    case("Softmin", ROW, dim=0),
    case("LogSoftmax", ROW, dim=1),
    case("Softmax2d", (2, 3, 2, 2)),
    case("Linear", ROW, in_features=4, out_features=5),
    case("Linear", ROW, in_features=4, out_features=5, bias=False),
    case("Bilinear", ROW, (3, 5), in1_features=4, in2_features=5, out_features=2),
    case("Identity", ROW),
    case("Flatten", (2, 3, 4)),
    case("Unflatten", ROW, dim=1, unflattened_size=(2, 2)),
    case("CosineSimilarity", ROW, ROW),
    case("PairwiseDistance", ROW, ROW),
    case("Dropout", ROW, p=0.0),
    case("Dropout2d", (2, 3, 2, 2), p=1.0),
    case("Embedding", INDICES, num_embeddings=5, embedding_dim=3, padding_idx=-1),
    case("Embedding", INDICES, num_embeddings=5, embedding_dim=3, scale_grad_by_freq=True),
    case("EmbeddingBag", INDICES, num_embeddings=5, embedding_dim=3),
    case("EmbeddingBag", INDICES, num_embeddings=5, embedding_dim=3, mode="sum", padding_idx=1),
    # images
    case("Conv1d", (2, 4, 7), in_channels=4, out_channels=6, kernel_size=3, groups=2, stride=2),
    case("Conv2d", (2, 2, 5, 6), in_channels=2, out_channels=3, kernel_size=(3, 2), padding=1),
    case("Conv2d", IMAGES, in_channels=3, out_channels=2, kernel_size=3, padding="same"),
    case(
        "Conv2d",
        IMAGES,
        in_channels=3,
        out_channels=2,
        kernel_size=3,
        padding=(1, 2),
        padding_mode="reflect",
        dilation=2,
        bias=False,
    ),
    case(
        "Conv1d",
        (2, 5),
        in_channels=2,
        out_channels=2,
        kernel_size=4,
        padding="same",
        padding_mode="circular",
    ),
    case("Conv3d", (1, 2, 3, 4, 3), in_channels=2, out_channels=2, kernel_size=2),
    case(
        "ConvTranspose1d",
        (2, 4, 5),
        in_channels=4,
        out_channels=6,
        kernel_size=3,
        groups=2,
        stride=2,
        padding=1,
        output_padding=1,
    ),
    case(
        "ConvTranspose2d",
        IMAGES,
        in_channels=3,
        out_channels=2,
        kernel_size=2,
        stride=2,
        dilation=2,
        bias=False,
    ),
    case("ConvTranspose3d", (2, 2, 3, 2), in_channels=2, out_channels=1, kernel_size=2),
    case("MaxPool1d", (2, 3, 7), kernel_size=3, stride=2, padding=1),
    case("MaxPool2d", IMAGES, kernel_size=2, return_indices=True),
    case("MaxPool3d", (1, 2, 4, 4, 3), kernel_size=2, ceil_mode=True),
    case("AvgPool1d", (2, 3, 7), kernel_size=3, padding=1),
    case("AvgPool2d", IMAGES, kernel_size=(2, 3), stride=1, count_include_pad=False, padding=1),
    case("AvgPool3d", (2, 4, 4, 3), kernel_size=2, divisor_override=3),
    case("LPPool1d", (2, 3, 7), norm_type=2, kernel_size=3),
    case("LPPool2d", IMAGES, norm_type=3, kernel_size=2),
    case("LPPool3d", (1, 2, 4, 4, 3), norm_type=1, kernel_size=2),
    case("AdaptiveMaxPool1d", (2, 3, 7), output_size=3),
    case("AdaptiveMaxPool2d", IMAGES, output_size=(2, None)),
    case("AdaptiveMaxPool3d", (1, 2, 4, 4, 3), output_size=2),
    case("AdaptiveAvgPool1d", (2, 3, 7), output_size=3),
    case("AdaptiveAvgPool2d", IMAGES, output_size=(2, 1)),
    case("AdaptiveAvgPool3d", (1, 2, 4, 4, 3), output_size=2),
    case("Upsample", IMAGES, scale_factor=2, mode="bilinear"),
    case("Upsample", (2, 3, 5), size=7),
    case("UpsamplingNearest2d", IMAGES, scale_factor=2),
    case("UpsamplingBilinear2d", IMAGES, size=(3, 7)),
    case("PixelShuffle", (1, 8, 2, 3), upscale_factor=2),
    case("PixelUnshuffle", (1, 2, 4, 6), downscale_factor=2),
    case("ChannelShuffle", (2, 6, 2, 2), groups=3),
    case("Unfold", IMAGES, kernel_size=2, padding=1),
    case("Fold", (2, 12, 20), output_size=(5, 6), kernel_size=2),
    *(
        case(f"{kind}Pad{axes}d", (2, 2, 4, 5, 3)[: axes + 2], padding=padding)
        for kind in ("Zero", "Reflection", "Replication", "Circular")
        for axes, padding in ((1, (2, 1)), (2, 1), (3, (1, 0, 2, 1, 1, 2)))
    ),
    *(
        case(f"ConstantPad{axes}d", (2, 2, 4, 5, 3)[: axes + 2], padding=1, value=3.5)
        for axes in (1, 2, 3)
    ),
    # norms
    *(
        case("BatchNorm1d", shape, num_features=4, momentum=momentum)
        for shape, momentum in ((ROW, 0.1), ((2, 4, 3), None))
    ),
    case("BatchNorm2d", IMAGES, num_features=3, affine=False),
    case("BatchNorm3d", (2, 2, 2, 3, 2), num_features=2, track_running_stats=False),
    case("InstanceNorm1d", (4, 3), num_features=4, affine=True),
    case("InstanceNorm2d", IMAGES, num_features=3, track_running_stats=True),
    case("InstanceNorm3d", (2, 2, 2, 3, 2), num_features=2),
    case("LayerNorm", ROW, normalized_shape=4),
    case("LayerNorm", (2, 3, 4), normalized_shape=(3, 4), bias=False, eps=1e-3),
    case("RMSNorm", ROW, normalized_shape=4),
    case("GroupNorm", (2, 4, 3), num_groups=2, num_channels=4),
    case("LocalResponseNorm", IMAGES, size=2),
]
LOSSES = [
    *(case(name, ROW, ROW, reduction="sum") for name in ("MSELoss", "L1Loss", "HuberLoss")),
    case("MSELoss", ROW, ROW),
    case("SmoothL1Loss", ROW, ROW, reduction="none", beta=0.5),
    case("BCELoss", INSIDE, ONES),
    case("BCEWithLogitsLoss", ROW, ONES, pos_weight=[1.0, 2.0, 3.0, 4.0]),
    case("KLDivLoss", ROW, INSIDE, reduction="batchmean"),
    case("PoissonNLLLoss", ROW, ONES, full=True),
    case("GaussianNLLLoss", ROW, ROW, INSIDE),
    case("SoftMarginLoss", (3,), SIGNS.astype(int)),
    case("NLLLoss", ROW, CLASSES, weight=[1.0, 2.0, 3.0, 4.0]),
    case("CrossEntropyLoss", ROW, CLASSES, label_smoothing=0.1, ignore_index=0),
    case("MultiMarginLoss", ROW, CLASSES, margin=0.5),
    case("MultiLabelMarginLoss", ROW, np.array([[1, 0, -1, 2]] * 3)),
    case("MultiLabelSoftMarginLoss", ROW, ONES, weight=[1.0, 2.0, 3.0, 4.0]),
    case("HingeEmbeddingLoss", (3,), SIGNS),
    case("MarginRankingLoss", (3,), (3,), SIGNS, margin=0.2),
    case("CosineEmbeddingLoss", ROW, ROW, SIGNS),
    case("TripletMarginLoss", ROW, ROW, ROW, swap=True),
    case("TripletMarginWithDistanceLoss", ROW, ROW, ROW),
]


if torch is not None:

    def both(each, dtype="float64"):
        """Our layer and PyTorch's, with the same values."""
        ours = getattr(td.nn, each.name)(**each.arguments, **options(each, td, dtype))
        theirs = getattr(torch.nn, each.name)(**weighted(each), **options(each, torch, dtype))
        state = theirs.state_dict()
        assert list(ours.state_dict()) == list(state)
        ours.load_state_dict(state)
        for name, value in state.items():
            assert ours.state_dict()[name].dtype.name == str(value.dtype).removeprefix("torch.")
        return ours, theirs

    def weighted(each):
        """PyTorch's losses take tensors as weights alone."""
        return {
            name: torch.tensor(value, dtype=torch.float64) if isinstance(value, list) else value
            for name, value in each.arguments.items()
        }

    def options(each, library, dtype):
        known = inspect.signature(getattr(td.nn, each.name).__init__).parameters
        return {"device": "cpu", "dtype": getattr(library, dtype)} if "dtype" in known else {}

    def listed(results):
        return results if isinstance(results, (tuple, list)) else (results,)

    def check_equal(ours, theirs, arrays, rng, rtol=1e-6):
        """Results, gradients of inputs and parameters, and buffers."""
        mine = [leaf(td, x) for x in arrays]
        other = [leaf(torch, x) for x in arrays]
        found, expected = listed(ours(*mine)), listed(theirs(*other))
        total, wanted = 0, 0
        for x, y in zip(found, expected, strict=True):
            assert x.shape == tuple(y.shape)
            close(x, y, rtol)
            if y.requires_grad:
                weights = rng.standard_normal(x.shape)
                total = total + (x * td.asarray(weights, device="cpu")).sum()
                wanted = wanted + (y * torch.as_tensor(weights)).sum()
        if theirs.state_dict():
            total.backward()
            wanted.backward()
        for x, y in zip(mine, other, strict=True):
            if y.grad is not None:
                close(x.grad, y.grad, rtol)
        for (name, x), (_, y) in zip(
            ours.named_parameters(), theirs.named_parameters(), strict=True
        ):
            assert (x.grad is None) == (y.grad is None), name
            if y.grad is not None:
                close(x.grad, y.grad, rtol)
        for x, y in zip(ours.buffers(), theirs.buffers(), strict=True):
            close(x, y, rtol)

    def leaf(library, x):
        made = library.asarray(x) if library is torch else td.asarray(x, device="cpu")
        return made.requires_grad_() if x.dtype.kind == "f" else made

    def close(x, y, rtol):
        expected = y.detach().numpy()
        np.testing.assert_allclose(x.numpy(), expected, rtol=rtol, atol=1e-9)

    NAMES = [name for name in td.nn.__all__ if hasattr(torch.nn, name)]

    def test_that_arguments_are_pytorchs():
        differ = []
        for name in NAMES:
            ours, theirs = getattr(td.nn, name), getattr(torch.nn, name)
            if not inspect.isclass(ours) or name == "Parameter":
                continue
            for method in ("__init__", "forward"):
                mine, other = (arguments_of(getattr(each, method)) for each in (ours, theirs))
                if mine != other and "args" not in [name for name, _ in (*mine, *other)]:
                    differ.append((name, method, mine, other))
        assert not differ

    def arguments_of(function):
        found = inspect.signature(function).parameters.values()
        # These two are PyTorch's older names of Hardtanh's, and warned about.
        old = ("min_value", "max_value")
        return [
            (each.name, getattr(each.default, "__name__", each.default))
            for each in found
            if each.name not in old
        ]

    @pytest.mark.parametrize("each", CASES, ids=str)
    def test_that_a_layer_is_pytorchs(each, rng):
        ours, theirs = both(each)
        assert repr(ours) == repr(theirs)
        check_equal(ours, theirs, inputs_of(each, rng), rng)

    @pytest.mark.parametrize("each", LOSSES, ids=str)
    def test_that_a_loss_is_pytorchs(each, rng):
        ours = getattr(td.nn, each.name)(**each.arguments)
        theirs = getattr(torch.nn, each.name)(**weighted(each))
        check_equal(ours, theirs, inputs_of(each, rng), rng)

    def test_that_a_loss_of_sequences_is_pytorchs(rng):
        scores, targets = rng.standard_normal((4, 2, 3)), np.array([[1, 2], [2, 0]])
        found = {}
        for library, as_tensor in ((td, td.asarray), (torch, torch.as_tensor)):
            loss = library.nn.CTCLoss(blank=0, reduction="sum", zero_infinity=True)
            x = as_tensor(scores, device="cpu").requires_grad_()
            rest = (as_tensor(each, device="cpu") for each in (targets, [4, 3], [2, 1]))
            value = loss(library.nn.LogSoftmax(dim=-1)(x), *rest)
            value.backward()
            found[library] = value.item(), x.grad.numpy()
        assert found[td][0] == pytest.approx(found[torch][0], rel=1e-6)
        np.testing.assert_allclose(found[td][1], found[torch][1], rtol=1e-6, atol=1e-9)

    def inputs_of(each, rng):
        return [
            rng.standard_normal(x) if isinstance(x, tuple) else np.array(x) for x in each.inputs
        ]
