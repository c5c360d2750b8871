"""Texts that are packed one after the other, each beside attention of its own in float64."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned

attend = td.nn.functional.packed_attention


@pytest.fixture(autouse=True)
def poison(device):
    with poisoned(device):
        yield


def alone(arrays, g, starts, key_starts, left=None, right=None):
    """The result, and the gradients of query, key and value, text by text."""
    q, k, v, g = (x.astype(np.float64) for x in (*arrays, g))
    found = [np.zeros((*q.shape[:-1], v.shape[-1])), *(np.zeros(x.shape) for x in (q, k, v))]
    for a, b, c, d in zip(starts, starts[1:], key_starts, key_starts[1:], strict=False):
        scores = q[..., a:b, :] @ k[..., c:d, :].swapaxes(-1, -2) * q.shape[-1] ** -0.5
        i, j = np.arange(b - a)[:, None], np.arange(d - c)
        hidden = (j < i - (left if left is not None else b)) | (
            j > i + (right if right is not None else d)
        )
        powers = np.where(hidden, 0, np.exp(scores))
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.divide(powers, total, out=np.zeros_like(powers), where=total != 0)
        found[0][..., a:b, :] = out = weights @ v[..., c:d, :]
        of_weights = g[..., a:b, :] @ v[..., c:d, :].swapaxes(-1, -2)
        slopes = of_weights - (g[..., a:b, :] * out).sum(axis=-1, keepdims=True)
        slopes = weights * slopes * q.shape[-1] ** -0.5
        found[1][..., a:b, :] = slopes @ k[..., c:d, :]
        found[2][..., c:d, :] = slopes.swapaxes(-1, -2) @ q[..., a:b, :]
        found[3][..., c:d, :] = weights.swapaxes(-1, -2) @ g[..., a:b, :]
    return found


def check(found, wanted, scale=1.0, rows=slice(None)):
    wanted = wanted[..., rows, :]
    bound = 2e-6 * max(1.0, np.abs(wanted).max(initial=0)) * scale
    np.testing.assert_allclose(found.detach().numpy()[..., rows, :], wanted, 0, bound)


def spoiled(rng, arrays, g, starts, key_starts):
    """The operands with NaN and infinities in rows of one text, or before and after all; and which
    rows of the queries and of the keys are of others."""
    text = int(rng.integers(-1, len(starts) - 1))
    print(f"text {text}")  # shown for a failed test
    sides = []
    for first, count in ((starts, arrays[0].shape[-2]), (key_starts, arrays[1].shape[-2])):
        own = np.searchsorted(first, np.arange(count), side="right") - 1
        sides.append(own == text if text >= 0 else (own < 0) | (own == len(first) - 1))
    made = []
    for x, own in zip((*arrays, g), (*sides, sides[1], sides[0]), strict=False):
        hit = own & (rng.random(own.size) < rng.choice([0.3, 1.0]))
        numbers = rng.choice([np.nan, np.inf, -np.inf], (*x.shape[:-2], hit.sum(), 1))
        made.append(x.copy())
        made[-1][..., hit, :] = numbers.astype(np.float32)
    return made, [~own for own in sides]


# Lengths of texts, of their keys where they have others, rows before and after, and a window.
CASES = {
    "lengths": ([5, 1, 0, 17, 64, 3], None, 0, 0, (None, None)),
    "causal": ([33, 2, 65], None, 0, 0, (None, 0)),
    "other keys": ([9, 0, 30], [40, 5, 2], 3, 4, (None, None)),
    "window past the keys": ([30, 4], [5, 20], 0, 2, (2, 1)),
    "nothing": ([0, 0], None, 2, 1, (None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_each_text_alone(device, rng, case):
    lengths, keys, before, after, (left, right) = CASES[case]
    starts = before + np.cumsum([0, *lengths])
    key_starts = starts if keys is None else before + np.cumsum([0, *keys])
    rows, columns = starts[-1] + after, key_starts[-1] + after
    shapes = (2, 3, rows, 20), (2, 3, columns, 20), (2, 3, columns, 12)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    g = rng.standard_normal((2, 3, rows, 12)).astype(np.float32)
    wanted = alone(arrays, g, starts, key_starts, left, right)
    given = starts, None if keys is None else key_starts
    causal = right == 0
    options = {"is_causal": causal, "window": (left, None if causal else right)}
    leaves = [td.asarray(x, device=device) for x in arrays]
    check(attend(*leaves, *given, **options), wanted[0])
    bad, (others, other_keys) = spoiled(rng, arrays, g, starts, key_starts)
    leaves_of_bad = [td.asarray(x, device=device) for x in bad[:3]]
    check(attend(*leaves_of_bad, *given, **options), wanted[0], rows=others)
    late = [None if x is None else td.asarray(x.astype("i4"), device=device) for x in given]
    out = attend(*[x.requires_grad_() for x in leaves], *late, **options)
    check(out, wanted[0])
    out.backward(td.asarray(g, device=device))
    for leaf, gradient in zip(leaves, wanted[1:], strict=True):
        check(leaf.grad, gradient, 4)
    out = attend(*[x.requires_grad_() for x in leaves_of_bad], *late, **options)
    check(out, wanted[0], rows=others)
    out.backward(td.asarray(bad[3], device=device))
    sides = others, other_keys, other_keys
    for leaf, gradient, side in zip(leaves_of_bad, wanted[1:], sides, strict=True):
        check(leaf.grad, gradient, 4, side)


def test_grouped_heads_and_views(device, rng):
    """As texts come from a projection: rows, then heads."""
    starts = np.array([0, 11, 30])
    q, k = (rng.standard_normal((30, heads, 16)).astype(np.float32) for heads in (4, 2))
    views = [td.asarray(x, device=device).permute(1, 0, 2) for x in (q, k, k)]
    found = attend(*views, starts, is_causal=True, enable_gqa=True)
    same = [q.swapaxes(0, 1), *[np.repeat(k.swapaxes(0, 1), 2, axis=0)] * 2]
    check(found, alone(same, same[0], starts, starts, right=0)[0])


def test_compiled_for_other_starts(device, rng):
    """What the texts are is data: no new plan, and nothing is read."""
    function = td.compile(lambda q, starts: attend(q, q, q, starts, is_causal=True) + 1)
    for starts in ([0, 4, 20], [0, 13, 20], [2, 2, 19]):
        q = rng.standard_normal((2, 20, 16)).astype(np.float32)
        given = td.asarray(np.array(starts, np.int32), device=device)
        found = function(td.asarray(q, device=device), given)
        check(found, 1 + alone([q] * 3, q, starts, starts, right=0)[0])


def test_nothing_is_read_behind_the_last_text(device, rng):
    """As in a cache that is not full."""
    q, k = (rng.standard_normal((2, rows, 16)).astype(np.float32) for rows in (21, 90))
    starts, key_starts = np.array([0, 13, 21]), np.array([0, 30, 43])
    wanted = alone([q, k, k], q, starts, key_starts)[0]
    k[:, 43:] = np.nan
    q, k = (td.asarray(x, device=device) for x in (q, k))
    check(attend(q, k, k, starts, key_starts), wanted)


def test_dropout_keeps_its_texts(device):
    """Weights that stay are divided by their probability; no other text's value appears."""
    starts = [0, 40, 100]
    q = td.zeros((1, 100, 16), device=device)
    values = np.repeat(np.array([1, 1000], np.float32), [40, 60])
    value = td.asarray(values[None, :, None], device=device)
    generator = td.Generator(5)
    found = attend(q, q, value, starts, dropout_p=0.5, generator=generator).numpy()[0, :, 0]
    assert set(np.round(found[:40] * 20).astype(int)) <= set(range(41))
    assert 0.8 < found[:40].mean() < 1.2
    assert 800 < found[40:].mean() < 1200


def test_a_text_longer_than_the_longest_is_nan(device):
    x = td.ones((9, 16), device=device)
    found = attend(
        x.requires_grad_(),
        x,
        x,
        td.asarray(np.array([0, 2, 9], np.int32), device=device),
        longest=4,
    )
    if device.backend == "cuda":
        return  # padded on no card
    assert np.isnan(found.detach().numpy()[6:]).all()
    assert (found.detach().numpy()[:6] == 1).all()


@pytest.mark.parametrize(
    ("starts", "more", "error", "words"),
    [
        ([[0, 4]], {}, td.errors.ShapeError, "one axis"),
        ([], {}, td.errors.ShapeError, "one number more than there are texts"),
        ([0.0, 4.0], {}, td.errors.DtypeError, "integers"),
        ([True, 4], {}, td.errors.DtypeError, r"starts are integers.*not \[True, 4\]"),
        ("abc", {}, td.errors.DtypeError, "starts are integers, one more .*, not 'abc'"),
        ([0, 4], {"key_starts": "ab"}, td.errors.DtypeError, "key_starts are integers"),
        (None, {}, td.errors.DtypeError, "starts are integers, .* not None"),
        ([0, 3, 2], {}, ValueError, "must not decrease, and number 2, 2, is less"),
        ([0, 5], {}, ValueError, "from 0 to 5, and there are 4 rows"),
        ([-1, 4], {}, ValueError, "from -1 to 4"),
        ([0, 4], {"key_starts": [0, 1, 4]}, td.errors.ShapeError, "2 and 3 numbers"),
        ([0, 4], {"window": -1}, ValueError, "packed_attention: a window"),
    ],
)
def test_arguments_that_do_not_fit(device, starts, more, error, words):
    x = td.ones((4, 16), device=device)
    with pytest.raises(error, match=words):
        attend(x, x, x, starts, **more)


def test_other_keys_need_their_starts(device):
    x = td.ones((4, 16), device=device)
    with pytest.raises(td.errors.ShapeError, match="without key_starts"):
        attend(x, x[:3], x[:3], [0, 4])
