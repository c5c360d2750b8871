"""`scaled_dot_product_attention` against its formula in float64, and against PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.tensor.dtypes import supports

try:
    import torch
except ImportError:
    torch = None

attend = td.nn.functional.scaled_dot_product_attention
TOLERANCES = {"float32": 3e-6, "float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-13}


@pytest.fixture(autouse=True)
def poison(device):
    with poisoned(device):
        yield


def formula(q, k, v, mask=None, scale=None, kept=None):
    """In float64; heads of key and value are already as many as those of the query. A mask is
    added; `kept` multiplies the weights."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -np.inf) if mask.dtype == bool else scores + mask
    most = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isfinite(most), most, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
    return (weights if kept is None else weights * kept) @ v


def visible(queries, keys, left=None, right=None):
    """Which keys a window lets each query see."""
    i, j = np.arange(queries)[:, None], np.arange(keys)
    seen = np.ones((queries, keys), bool)
    if left is not None:
        seen &= j >= i - left
    if right is not None:
        seen &= j <= i + right
    return seen


def drawn(rng, *shapes, dtype="float32"):
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def close(found, wanted, dtype="float32"):
    assert found.dtype == dtype
    values = (found.to(td.float32) if dtype == "bfloat16" else found).numpy()
    assert values.shape == wanted.shape
    np.testing.assert_allclose(values, wanted, 0, TOLERANCES[dtype] * max(1, np.abs(wanted).max()))


def test_shapes(device, rng):
    """One key, one query, primes, edges of tiles and lanes, columns that are no vectors of four."""
    for queries, keys, depth, width in (
        (1, 1, 1, 1), (3, 67, 5, 2), (17, 31, 8, 4), (33, 16, 12, 36), (6, 65, 16, 3),
    ):  # fmt: skip
        q, k, v = drawn(rng, (2, queries, depth), (2, keys, depth), (2, keys, width))
        close(attend(*map(td.asarray, (q, k, v))), formula(q, k, v))
        causal = attend(*map(td.asarray, (q, k, v)), is_causal=True, scale=0.7)
        close(causal, formula(q, k, v, visible(queries, keys, None, 0), 0.7))


def test_drawn(device, rng):
    """Axes in front of all kinds, strides of all kinds, windows, grouped heads."""
    for _ in range(12):
        queries, keys, depth, width = (int(n) for n in rng.integers(1, (40, 80, 40, 17)))
        heads, groups, batch = (int(n) for n in rng.integers(1, 4, 3))
        shapes = (
            (batch, queries, heads * groups, depth),
            (batch, keys, heads, depth),
            (1 if rng.random() < 0.3 else batch, keys, heads, width),
        )
        q, k, v = (x.transpose(0, 2, 1, 3) for x in drawn(rng, *shapes))
        left, right = (None if rng.random() < 0.3 else int(rng.integers(0, 50)) for _ in range(2))
        tensors = [td.asarray(x.transpose(0, 2, 1, 3)).permute(0, 2, 1, 3) for x in (q, k, v)]
        found = attend(*tensors, enable_gqa=True, window=(left, right))
        k, v = (np.repeat(x, groups, axis=1) for x in (k, v))
        close(found, formula(q, k, v, visible(queries, keys, left, right)))


def test_operands_are_read_in_place(device, rng):
    """Query, key and value as parts of one product, as models make them; every second head; rows
    from the last to the first, which are copied."""
    (qkv,) = drawn(rng, (2, 9, 3, 4, 8))
    whole = td.asarray(qkv)
    q, k, v = (td.permute_dims(whole[:, :, i], (0, 2, 1, 3)) for i in range(3))
    parts = [qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    close(attend(q, k, v), formula(*parts))
    close(attend(q[:, ::2], k[:, ::2], v[:, ::2]), formula(*(part[:, ::2] for part in parts)))
    close(
        attend(q[:, :, ::-1], k, v[..., ::2]),
        formula(parts[0][:, :, ::-1], parts[1], parts[2][..., ::2]),
    )
    assert td.explain(attend(q, k, v)).splitlines()[0].startswith("1 kernel")


def test_masks(device, rng):
    q, k, v = drawn(rng, (2, 3, 6, 8), (2, 3, 9, 8), (2, 3, 9, 8))
    tensors = [td.asarray(x) for x in (q, k, v)]
    for shape in ((6, 9), (9,), (2, 1, 6, 1), (3, 1, 9), (2, 3, 6, 9), ()):
        mask = rng.random(shape) < 0.5
        close(attend(*tensors, td.asarray(mask)), formula(q, k, v, mask))
        (bias,) = drawn(rng, shape)
        close(attend(*tensors, td.asarray(bias)), formula(q, k, v, bias))
    turned = rng.random((9, 6)) < 0.5
    close(attend(*tensors, td.asarray(turned).T), formula(q, k, v, turned.T))
    bias = np.where(turned.T, 0, -np.inf).astype("float32")
    bias[2] = -np.inf
    found = attend(*tensors, td.asarray(bias))
    close(found, formula(q, k, v, bias))
    assert not found.numpy()[:, :, 2].any()


@pytest.mark.parametrize("queries", [3, 70])
def test_masks_of_the_largest_numbers(device, rng, queries):
    """Which masks have in place of -infinity: rows that see nothing else see all keys alike."""
    q, k, v = drawn(rng, (1, 2, queries, 24), (1, 2, 67, 24), (1, 2, 67, 24))
    smallest = np.finfo(np.float32).min
    mask = np.where(visible(queries, 67, right=5), 0, smallest).astype(np.float32)
    mask[0], mask[1] = smallest, 3e38
    mask[2, 9:] = -np.inf
    arrays = [td.asarray(x) for x in (q, k, v, mask)]
    close(attend(*arrays), formula(q, k, v, mask.astype(np.float64)))


def test_hidden_rows_that_are_nan(device, rng):
    """A hidden key changes nothing. A hidden value, times a weight of 0, may make a row NaN, as it
    does in PyTorch, and never another number."""
    q, k, v = drawn(rng, (2, 3, 6, 8), (2, 3, 9, 8), (2, 3, 9, 8))
    mask = rng.random((6, 9)) < 0.5
    mask[:, 4] = [False, True] * 3
    given = {"attn_mask": td.asarray(mask)}, {"is_causal": True}
    for options, seen in zip(given, (mask, visible(6, 9, right=0)), strict=True):
        wanted = formula(q, k, v, seen)
        bad = k.copy(), v.copy()
        for x in bad:
            x[:, :, 4] = rng.choice([math.nan, math.inf])
        sees = seen[:, 4]
        found = attend(*(td.asarray(x) for x in (q, bad[0], v)), **options).numpy()
        np.testing.assert_allclose(found[:, :, ~sees], wanted[:, :, ~sees], 0, 3e-6)
        found = attend(*(td.asarray(x) for x in (q, k, bad[1])), **options).numpy()
        right = np.abs(found - wanted) < 3e-6
        assert (np.isnan(found) | right)[:, :, ~sees].all()
        assert not np.isfinite(found[:, :, sees]).any()


def test_heads_in_several_launches(device, rng, monkeypatch):
    """More axes of heads than a kernel has, and operands of more elements than one may reach."""
    q, k, v = drawn(rng, (2, 3, 2, 2, 5, 8), (2, 3, 1, 2, 7, 8), (2, 1, 2, 2, 7, 8))
    tensors = [td.asarray(x) for x in (q, k, v)]
    close(attend(*tensors), formula(q, k, v))
    bias = drawn(rng, (3, 1, 1, 5, 7))[0]
    kept = td.random.bernoulli((2, 3, 2, 2, 5, 7), 0.5, generator=td.Generator(2)).numpy()
    monkeypatch.setattr("treadle.kernels.attend._most", lambda arrays: 250)
    close(attend(*tensors, td.asarray(bias)), formula(q, k, v, bias))
    found = attend(*tensors, dropout_p=0.5, generator=td.Generator(2))
    close(found, formula(q, k, v, kept=kept / 0.5))
    with pytest.raises(td.errors.ShapeError, match=r"1 queries and 40 keys .* more than 250 elem"):
        attend(td.ones((1, 8)), td.ones((40, 8)), td.ones((40, 8))).numpy()


def test_nothing_to_see(device):
    ones, none = td.ones((2, 3, 4)), td.ones((2, 0, 4))
    assert attend(ones, none, none).tolist() == td.zeros((2, 3, 4)).tolist()
    assert attend(none, ones, ones).shape == (2, 0, 4)
    assert attend(ones, ones, ones[..., :0]).shape == (2, 3, 0)
    assert attend(ones[..., :0], ones[..., :0], ones).tolist() == ones.tolist()
    assert attend(ones[:0], ones[:1], ones[:1]).shape == (0, 3, 4)


def test_numbers_that_are_none(device):
    q, k, v = td.ones((4, 4)), td.asarray(np.ones((8, 4), np.float32)), td.ones((8, 4))
    q[1, 0] = math.nan
    found = attend(q, k, v).numpy()
    assert np.isnan(found[1]).all()
    assert (found[[0, 2, 3]] == 1).all()
    v[3, 2] = math.inf
    assert attend(td.ones((1, 4)), k, v).tolist() == [[1, 1, math.inf, 1]]
    huge = attend(
        td.full((1, 4), 1e18), td.asarray([[1e18] * 4, [-1e18] * 4]), td.asarray([[1.0], [2.0]])
    )
    assert huge.tolist() == [[1.0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes(device, rng, dtype):
    if dtype == "float64" and not supports(device, td.float64):
        with pytest.raises(td.errors.DtypeError):
            td.zeros((2, 2), dtype=td.float64)
        return
    numpys = td.bfloat16.numpy if dtype == "bfloat16" else dtype
    q, k, v = drawn(rng, (2, 10, 8), (2, 21, 8), (2, 21, 12), dtype=numpys)
    found = attend(*map(td.asarray, (q, k, v)))
    close(found, formula(q, k, v), dtype)


def test_dropout_is_that_of_bernoulli(device, rng):
    q, k, v = drawn(rng, (2, 3, 5, 8), (2, 3, 37, 8), (2, 3, 37, 8))
    tensors = [td.asarray(x) for x in (q, k, v)]
    kept = td.random.bernoulli((2, 3, 5, 37), 0.75, generator=td.Generator(5)).numpy()
    found = attend(*tensors, dropout_p=0.25, generator=td.Generator(5))
    close(found, formula(q, k, v, kept=kept / 0.75))
    if supports(device, td.float64):
        wide = [x.astype(float) for x in (q, k, v)]
        kept = td.random.bernoulli((2, 3, 5, 37), 0.7, generator=td.Generator(5)).numpy()
        found = attend(*map(td.asarray, wide), dropout_p=0.3, generator=td.Generator(5))
        close(found, formula(*wide, kept=kept / 0.7), "float64")
    assert not attend(*tensors, dropout_p=1.0).numpy().any()
    td.manual_seed(3)
    first, second = (attend(*tensors, dropout_p=0.5).numpy() for _ in range(2))
    td.manual_seed(3)
    np.testing.assert_array_equal(attend(*tensors, dropout_p=0.5).numpy(), first)
    assert (first != second).any()


if torch is not None:

    def test_as_pytorch(device, rng):
        theirs = torch.nn.functional.scaled_dot_product_attention
        q, k, v = drawn(rng, (2, 4, 4, 8), (2, 2, 19, 8), (2, 2, 19, 12))
        mask = rng.random((4, 4, 19)) < 0.4
        mask[1, 3] = False
        for options in (
            {"is_causal": True}, {"scale": 2.0}, {"attn_mask": mask},
            {"attn_mask": np.where(mask, 0.5, -np.inf).astype("float32")},
        ):  # fmt: skip
            found = attend(*map(td.asarray, (q, k, v)), enable_gqa=True, **options)
            given = {n: torch.asarray(o) if n == "attn_mask" else o for n, o in options.items()}
            wanted = theirs(*map(torch.asarray, (q, k, v)), enable_gqa=True, **given)
            close(found, wanted.numpy())


def test_what_does_not_fit(device):
    q, k, v = td.ones((2, 6, 5, 8)), td.ones((2, 6, 7, 8)), td.ones((2, 6, 7, 4))
    shape_error, dtype_error = td.errors.ShapeError, td.errors.DtypeError
    few, three, off = td.ones((2, 4, 7, 8)), td.ones((2, 3, 7, 8)), td.ones((7, 5))
    five, whole = td.ones((3, 1, 1, 1, 1)), td.ones((5, 7), dtype=td.int32)
    for error, words, arguments, options in (
        (
            shape_error,
            r"query of shape \(2, 6, 5, 8\) and key of shape \(2, 6, 7, 4\)",
            (q, v, v),
            {},
        ),
        (
            shape_error,
            r"key of shape .* and value of shape \(2, 6, 5, 8\).* 7 and 5",
            (q, k, q),
            {},
        ),
        (
            shape_error,
            r"query, shape \(2, 6, 5, 8\).* broadcast.* or 1$",
            (q, few, few),
            {},
        ),
        (shape_error, "; enable_gqa=True has 6 heads .* share 3 of key", (q, three, three), {}),
        (shape_error, "6 heads of query.* the 4 of key", (q, few, few), {"enable_gqa": True}),
        (shape_error, r"query has shape \(8,\)", (q[0, 0, 0], k, v), {}),
        (shape_error, r"attn_mask of shape \(7, 5\) .* \(2, 6, 5, 7\)", (q, k, v, off), {}),
        (shape_error, r"attn_mask of shape \(3, 1, 1, 1, 1\)", (q, k, v, five), {}),
        (dtype_error, "attn_mask is bool, or floating", (q, k, v, whole), {}),
        (dtype_error, "takes floating query", (whole, whole, whole), {}),
        (ValueError, "is_causal or", (q, k, v, td.ones((5, 7))), {"is_causal": True}),
        (ValueError, "a probability, from 0 to 1, not 1.5", (q, k, v), {"dropout_p": 1.5}),
        (ValueError, "and -1 is less", (q, k, v), {"window": -1}),
        (ValueError, "a pair", (q, k, v), {"window": (1, 2, 3)}),
        (TypeError, "integers and None, not 1.5", (q, k, v), {"window": 1.5}),
        (TypeError, "scale is a number", (q, k, v), {"scale": q}),
        (TypeError, "scale is a number", (q, k, v), {"scale": 1 + 1j}),
        (ValueError, "scale is 1e\\+40", (q, k, v), {"scale": 1e40}),
        (ValueError, "a probability", (q, k, v), {"dropout_p": True}),
    ):
        with pytest.raises(error, match=words):
            attend(*arguments, **options)


def test_few_queries_and_many_keys(device, rng):
    """On a GPU the keys are split over blocks, whose parts are joined."""
    q, k, v = drawn(rng, (3, 2, 1, 8), (3, 1, 300, 8), (3, 1, 300, 8))
    mask = rng.random((3, 1, 1, 300)) < 0.6
    mask[0, ..., 100:] = False  # of whole parts
    mask[1] = False
    found = attend(*map(td.asarray, (q, k, v, mask)))
    close(found, formula(q, k, v, mask))
    assert not found.numpy()[1].any()
