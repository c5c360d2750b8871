"""Gradients of what layers compute: beside PyTorch's and central differences."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from tests.support.torch_gradients import check_beside_torch, torch

F = td.nn.functional
T = None if torch is None else torch.nn.functional


# --- convolutions ---------------------------------------------------------------------------------

_CONVOLUTIONS = [
    ("conv1d", (2, 2, 7), (4, 1, 2), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    ("conv1d", (3, 9), (2, 3, 3), {"padding": "same", "dilation": 2}),
    ("conv2d", (2, 4, 7, 6), (4, 2, 2, 3), {"stride": (2, 3), "padding": (1, 2), "groups": 2}),
    ("conv3d", (1, 2, 4, 3, 5), (2, 2, 2, 1, 3), {"stride": 2, "padding": (1, 0, 1)}),
    ("conv_transpose1d", (2, 4, 3), (4, 1, 3), {"stride": 3, "output_padding": 1, "groups": 2}),
    ("conv_transpose2d", (1, 2, 3, 2), (2, 3, 2, 3), {"padding": 1, "dilation": (1, 2)}),
]

if torch is not None:

    @pytest.mark.parametrize(("name", "x", "w", "options"), _CONVOLUTIONS)
    def test_that_convolutions_have_gradients_as_pytorchs(name, x, w, options, rng):
        groups = options.get("groups", 1)
        outs = w[1] * groups if "transpose" in name else w[0]
        arrays = [rng.standard_normal(shape) for shape in (x, w, (outs,))]
        check_beside_torch(
            lambda x, w, b: getattr(F, name)(x, w, b, **options),
            lambda x, w, b: getattr(T, name)(x, w, b, **options),
            *arrays,
        )

    def test_that_convolutions_have_gradients_on_devices(device, rng):
        arrays = [rng.standard_normal(s).astype(np.float32) for s in ((2, 6, 9, 8), (8, 3, 3, 3))]
        check_beside_torch(
            lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2),
            lambda x, w: T.conv2d(x, w, stride=2, padding=1, groups=2),
            *arrays, device=device, second=False, rtol=1e-4, atol=1e-4,
        )  # fmt: skip

    def test_that_gradients_of_narrow_convolutions_are_added_up_in_float32(rng):
        x, w = rng.standard_normal((2, 2, 16, 16)), rng.standard_normal((2, 2, 3, 3))
        x, w = (each.astype(np.float16) for each in (x, w))
        mine = [td.asarray(each, device="cpu").requires_grad_() for each in (x, w)]
        theirs = [torch.tensor(each.astype(np.float32), requires_grad=True) for each in (x, w)]
        F.conv2d(*mine, padding=1).sum().backward()
        T.conv2d(*theirs, padding=1).sum().backward()
        for one, other in zip(mine, theirs, strict=True):
            assert one.grad.dtype is td.float16
            close = {"rtol": 1e-3, "atol": 1e-2}
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), **close)


# --- pooling --------------------------------------------------------------------------------------

_POOLS = [
    ("max_pool2d", (2, 7, 6), (3, 2, 1), {"ceil_mode": True}),
    ("max_pool1d", (2, 7), (2, 1, 0, 3), {}),
    ("max_pool3d", (1, 4, 4, 5), (2, 1), {}),
    ("avg_pool2d", (2, 7, 6), (3, 1, 1), {"count_include_pad": False}),
    ("avg_pool2d", (2, 7, 6), (3, 2, 1), {"ceil_mode": True}),
    ("avg_pool3d", (1, 4, 4, 5), ((2, 1, 3),), {"divisor_override": 5}),
    ("adaptive_avg_pool2d", (2, 5, 7), ((3, 9),), {}),
    ("adaptive_max_pool2d", (2, 5, 7), ((3, 4),), {}),
    ("adaptive_max_pool1d", (2, 5), (1,), {}),
    ("lp_pool2d", (2, 4, 4), (2, 2), {}),
]

if torch is not None:

    @pytest.mark.parametrize(("name", "shape", "sizes", "options"), _POOLS)
    def test_that_pooling_has_gradients_as_pytorchs(name, shape, sizes, options, rng):
        x = rng.permuted(np.linspace(0.1, 2.0, int(np.prod(shape)))).reshape(shape)
        check_beside_torch(
            lambda x: getattr(F, name)(x, *sizes, **options),
            lambda x: getattr(T, name)(x, *sizes, **options),
            x, second=not name.startswith("lp"),
        )  # fmt: skip

    @pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
    def test_that_pooling_has_gradients_on_devices(name, device, rng):
        x = rng.integers(0, 9, (2, 3, 9, 7)).astype(np.float32)  # with equal ones
        check_beside_torch(
            lambda x: getattr(F, name)(x, 3, 2, 1),
            lambda x: getattr(T, name)(x, 3, 2, 1),
            x, device=device, second=False, rtol=1e-5, atol=1e-6,
        )  # fmt: skip

    def test_that_unpooling_has_gradients_as_pytorchs(rng):
        def there_and_back(functions):
            def function(x):
                values, places = functions.max_pool2d(x, 2, 2, return_indices=True)
                return functions.max_unpool2d(values * values, places, 2)

            return function

        x = rng.standard_normal((2, 4, 6))
        check_beside_torch(there_and_back(F), there_and_back(T), x, second=False)


def test_that_roots_of_nothing_have_no_gradient():
    x = td.zeros((1, 4), device="cpu").requires_grad_()
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0, 0.0]]


# --- losses and distances -------------------------------------------------------------------------


def _numbers(kinds, rng):
    """Arrays of shape (3, 4): of normal numbers (r), of probabilities (p), of 1 and -1 (s)."""
    draw = {
        "r": lambda: rng.standard_normal((3, 4)),
        "p": lambda: rng.uniform(0.1, 0.9, (3, 4)),
        "s": lambda: rng.choice([-1.0, 1.0], (3, 4)),
    }
    return [draw[kind]() for kind in kinds]


_LOSSES = [
    ("mse_loss", "rrp", {}),
    ("huber_loss", "rr", {"reduction": "none"}),
    ("multilabel_soft_margin_loss", "rp", {}),
    ("pairwise_distance", "rr", {"p": 3.0}),
    ("binary_cross_entropy", "pp", {}),
    ("binary_cross_entropy_with_logits", "rp", {"reduction": "none"}),
    ("kl_div", "rp", {"reduction": "batchmean"}),
    ("poisson_nll_loss", "pp", {"log_input": False, "full": True}),
    ("gaussian_nll_loss", "rrp", {}),
    ("hinge_embedding_loss", "rs", {}),
    ("triplet_margin_loss", "rrr", {"swap": True}),
    ("cosine_similarity", "rr", {}),
]

_WITH_RULES = (
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "pairwise_distance",
)  # fmt: skip

if torch is not None:

    @pytest.mark.parametrize(("name", "kinds", "options"), _LOSSES)
    def test_that_losses_have_gradients_as_pytorchs(name, kinds, options, rng):
        def of(functions):
            def function(*args):
                named = {"weight": args[2]} if name == "mse_loss" else {}
                args = args[:2] if named else args
                return getattr(functions, name)(*args, **named, **options)

            return function

        second = name in _WITH_RULES
        check_beside_torch(of(F), of(T), *_numbers(kinds, rng), second=second, rtol=1e-5, atol=1e-8)

    def test_that_losses_of_classes_have_gradients_as_pytorchs(rng):
        x, classes = rng.standard_normal((3, 4)), rng.integers(0, 4, 3)
        check_beside_torch(
            lambda x: F.multi_margin_loss(x, td.asarray(classes, device="cpu"), 2, 0.5),
            lambda x: T.multi_margin_loss(x, torch.tensor(classes), 2, 0.5),
            x, second=False,
        )  # fmt: skip

    def test_that_sure_probabilities_have_gradients_as_pytorchs():
        check_beside_torch(
            lambda p: F.binary_cross_entropy(p, td.asarray([0.0, 1.0, 0.0, 1.0], device="cpu")),
            lambda p: T.binary_cross_entropy(p, torch.tensor([0.0, 1.0, 0.0, 1.0]).double()),
            np.array([0.0, 1.0, 1.0, 0.0]), second=False,
        )  # fmt: skip

    def test_that_scores_of_logits_have_gradients_as_pytorchs(rng):
        counts = np.array([0.5, 2.0, 1.0])
        check_beside_torch(
            lambda x, t: F.binary_cross_entropy_with_logits(
                x, t, pos_weight=td.asarray(counts, device="cpu")
            ),
            lambda x, t: T.binary_cross_entropy_with_logits(x, t, pos_weight=torch.tensor(counts)),
            np.array([[-900.0, 900.0, 0.0], [1.0, -2.0, 3.0]]),
            rng.uniform(0, 1, (2, 3)), second=False,
        )  # fmt: skip

    @pytest.mark.parametrize("p", [0.0, 1.5, 2.0, np.inf])
    def test_that_distances_of_equal_rows_have_gradients_as_pytorchs(p, rng):
        x = rng.standard_normal((4, 3))
        check_beside_torch(
            lambda x, y: td.cdist(x, y, p), lambda x, y: torch.cdist(x, y, p),
            x, x[1:3].copy(), second=False,
        )  # fmt: skip
        check_beside_torch(
            lambda x: F.pdist(x, p), lambda x: T.pdist(x, p), np.repeat(x[:2], 2, 0), second=False
        )


def test_that_distances_have_gradients_of_differences(rng):
    x, y = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    check_gradients(lambda x, y: td.cdist(x, y), x, y)


def test_that_rows_of_zeros_have_gradients():
    x = td.zeros((2, 3), device="cpu").requires_grad_()
    (F.normalize(x).sum() + F.cosine_similarity(x, td.ones((2, 3), device="cpu")).sum()).backward()
    assert bool(td.isfinite(x.grad).all())


# --- tables ---------------------------------------------------------------------------------------

_BAGS = [
    {"mode": "sum", "padding_idx": 1},
    {"mode": "mean", "padding_idx": -1},
    {"mode": "max", "padding_idx": 2},
    {"mode": "sum", "include_last_offset": True},
]

if torch is not None:

    @pytest.mark.parametrize("options", [{"padding_idx": -2}, {"scale_grad_by_freq": True}, {}])
    def test_that_tables_have_gradients_on_devices(options, device, rng):
        index, table = rng.integers(0, 5, (3, 4)), rng.standard_normal((5, 3)).astype(np.float32)
        narrow = index.astype(np.int32)
        check_beside_torch(
            lambda table: F.embedding(td.asarray(narrow, device=device), table, **options),
            lambda table: T.embedding(torch.tensor(index), table, **options),
            table, device=device, second=not options, rtol=1e-4, atol=1e-5,
        )  # fmt: skip

    @pytest.mark.parametrize("options", _BAGS)
    def test_that_bags_have_gradients_as_pytorchs(options, rng):
        index, offsets = rng.integers(0, 5, 9), np.array([0, 3, 3, 9])

        def of(functions, made):
            def function(table):
                return functions.embedding_bag(made(index), table, made(offsets), **options)

            return function

        mine, table = of(F, lambda x: td.asarray(x, device="cpu")), rng.standard_normal((5, 3))
        check_beside_torch(mine, of(T, torch.tensor), table, second=False)

    def test_that_samples_weights_have_gradients_as_pytorchs(rng):
        index = rng.integers(0, 5, (3, 4))
        here, named = td.asarray(index, device="cpu"), {"mode": "sum"}
        check_beside_torch(
            lambda t, w: F.embedding_bag(here, t, per_sample_weights=w, **named),
            lambda t, w: T.embedding_bag(torch.tensor(index), t, per_sample_weights=w, **named),
            rng.standard_normal((5, 3)), rng.standard_normal((3, 4)), second=False,
        )  # fmt: skip


def test_that_bags_divide_by_how_often_a_row_is_named():
    table = td.zeros((3, 1), device="cpu").requires_grad_()
    index, offsets = td.asarray([0, 1, 0, 2], device="cpu"), td.asarray([0, 3], device="cpu")
    F.embedding_bag(index, table, offsets, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1.0], [1.0], [1.0]]


def test_that_renormalized_tables_have_gradients():
    table = td.asarray([[3.0, 4.0], [0.3, 0.4]], device="cpu").requires_grad_()
    index = td.asarray([0, 1, 0], device="cpu")
    F.embedding(index, table, max_norm=1.0).sum().backward()
    assert table.grad.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    np.testing.assert_allclose(table.detach().numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


# --- what is taken from computed places -----------------------------------------------------------

_TAKEN = [
    ("pad", (4, 5), ((1, 2, -1, 1),), {"value": 2.0}),
    ("pad", (1, 4, 5), ((4, -2),), {"mode": "reflect"}),
    ("pad", (1, 4, 5), ((-6, 4),), {"mode": "replicate"}),
    ("pad", (1, 1, 4, 5), ((2, 5, 4, 1),), {"mode": "circular"}),
    ("unfold", (1, 2, 5, 4), ((2, 3), 1, 1, 2), {}),
    ("fold", (1, 8, 6), ((4, 3), 2, 1, 1, 2), {}),
    ("interpolate", (1, 1, 3, 5), ((6, 4),), {}),
    ("interpolate", (1, 1, 4, 5), ((6, 3),), {"mode": "bilinear", "align_corners": True}),
    ("interpolate", (1, 1, 4, 5), ((6, 3),), {"mode": "bicubic", "antialias": True}),
    ("pixel_shuffle", (1, 8, 1, 2), (2,), {}),
]

if torch is not None:

    @pytest.mark.parametrize(("name", "shape", "sizes", "options"), _TAKEN)
    def test_that_what_is_taken_has_gradients_as_pytorchs(name, shape, sizes, options, rng):
        check_beside_torch(
            lambda x: getattr(F, name)(x, *sizes, **options),
            lambda x: getattr(T, name)(x, *sizes, **options),
            rng.standard_normal(shape),
        )

    @pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_that_sampling_has_gradients_as_pytorchs(padding_mode, rng):
        named = {"padding_mode": padding_mode, "align_corners": False}
        check_beside_torch(
            lambda x, grid: F.grid_sample(x, grid, **named),
            lambda x, grid: T.grid_sample(x, grid, **named),
            rng.standard_normal((1, 1, 3, 4)), rng.uniform(-1.2, 1.2, (1, 2, 2, 2)), second=False,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["dropout", "dropout2d", "alpha_dropout"])
def test_that_gradients_are_dropped_where_elements_are(name, device):
    x = td.full((4, 3, 2, 5), 0.25, device=device).requires_grad_()
    y = getattr(F, name)(x, 0.5, training=True, generator=td.Generator(1))
    (y * y).sum().backward()
    kept = y.detach().numpy() != y.detach().numpy().min()
    assert 0 < kept.sum() < kept.size
    assert ((x.grad.numpy() != 0) == kept).all()
