"""Cross-entropy on every device: against its formula in float64, and PyTorch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned
from treadle.runtime import settings

LAYOUTS = {"one": (13,), "images": (3, 7, 4, 5), "long": (2, 5003)}


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device):
        yield


def log_softmax(x, axis):
    below = x - x.max(axis=axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=axis, keepdims=True))


def losses_of(logs, classes, weight, ignored, smoothing=0.0):
    """A loss for each target, and what it counts, with the classes of `logs` last."""
    place = np.where(ignored, 0, classes)
    each = np.ones(logs.shape[-1]) if weight is None else weight
    picked = np.take_along_axis(logs, place[..., None], -1)[..., 0] * each[place]
    smooth = (logs * each).sum(axis=-1) / logs.shape[-1]
    found = -picked * (1 - smoothing) - smooth * smoothing
    return np.where(ignored, 0, found), np.where(ignored, 0, each[place])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_classes(device, rng, layout):
    shape = LAYOUTS[layout]
    axis = min(1, len(shape) - 1)
    scores = rng.standard_normal(shape).astype(np.float32) * 3
    count = shape[axis]
    target = rng.integers(0, count, shape[:axis] + shape[axis + 1 :]).astype(np.int32)
    ignored = np.asarray(rng.random(target.shape) < 0.3)
    weight = rng.random(count).astype(np.float32) + 0.1
    x, own = td.asarray(scores), np.where(ignored, 1, target)
    logs = np.moveaxis(log_softmax(scores.astype(np.float64), axis), axis, -1)
    t, w = td.asarray(np.asarray(own, dtype=np.int32)), td.asarray(weight)
    wanted, counted = losses_of(logs, own, weight, own == 1, 0.2)
    found = F.cross_entropy(x, t, w, ignore_index=1, label_smoothing=0.2)
    right = wanted.sum() / counted.sum() if counted.sum() else math.nan
    np.testing.assert_allclose(found.numpy(), right, 2e-5, 1e-5)
    wanted, _ = losses_of(logs, own, None, own == -100)
    found = F.cross_entropy(x, t, reduction="none")
    np.testing.assert_allclose(found.numpy(), wanted, 2e-5, 1e-5)
    wanted, _ = losses_of(logs, own, weight, own == 1)
    known = td.asarray(np.moveaxis(logs, -1, axis).astype(np.float32))
    found = F.nll_loss(known, t, w, ignore_index=1, reduction="sum")
    np.testing.assert_allclose(found.numpy(), wanted.sum(), 2e-5, 1e-5)


def test_probabilities(device, rng):
    shape = LAYOUTS["images"]
    scores = rng.standard_normal(shape).astype(np.float32) * 3
    goal = rng.random(shape).astype(np.float32)
    goal /= goal.sum(axis=1, keepdims=True)
    weight = rng.random(shape[1]).astype(np.float32)
    along = weight.reshape((1, -1) + (1,) * (len(shape) - 2))
    logs = log_softmax(scores.astype(np.float64), 1)
    x, t = td.asarray(scores), td.asarray(goal)
    wanted = -(logs * goal).sum(axis=1)
    np.testing.assert_allclose(F.cross_entropy(x, t, reduction="none").numpy(), wanted, 2e-5, 1e-5)
    mixed = goal * 0.9 + 0.1 / shape[1]
    wanted = -(logs * mixed * along).sum(axis=1).mean()
    found = F.cross_entropy(x, t, td.asarray(weight), label_smoothing=0.1)
    np.testing.assert_allclose(found.item(), wanted, 2e-5)


def test_dtypes_and_layouts(device, rng):
    scores = rng.standard_normal((6, 20)).astype(np.float32)
    target = rng.integers(0, 20, 6)
    wanted = -np.take_along_axis(log_softmax(scores.astype(float), 1), target[:, None], 1).mean()
    for kind in (np.int8, np.uint32):
        found = F.cross_entropy(td.asarray(scores), td.asarray(target.astype(kind)))
        assert found.item() == pytest.approx(wanted, 1e-5)
    t = td.asarray(target.astype(np.int32))
    turned = td.asarray(np.ascontiguousarray(scores.T)).T
    assert F.cross_entropy(turned, t).item() == pytest.approx(wanted, 1e-5)
    assert F.cross_entropy(turned * 0.5 + turned * 0.5, t).item() == pytest.approx(wanted, 1e-5)
    half = F.cross_entropy(td.asarray(scores).to(td.float16), t)
    assert half.dtype == td.float16
    assert half.item() == pytest.approx(wanted, 2e-3)


def test_special_values(device):
    inf, nan = math.inf, math.nan
    x = td.asarray([[-inf] * 2, [0.0, inf], [nan, 0.0], [0.0, -inf]])
    zero, one = (td.full((4,), k, dtype=td.int32) for k in (0, 1))
    found = F.cross_entropy(x, zero, reduction="none").numpy()
    assert np.isnan(found[:3]).all()
    assert found[3] == 0
    assert F.cross_entropy(x, one, reduction="none").numpy()[3] == inf
    rows = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    target = td.asarray([0, -100], dtype=td.int32)
    loss = math.log(1 + math.e)
    assert F.cross_entropy(rows, target).item() == pytest.approx(loss)
    assert F.cross_entropy(rows, target, reduction="none").tolist()[1] == 0.0
    all_ignored = td.full((2,), -100, dtype=td.int32)
    assert math.isnan(F.cross_entropy(rows, all_ignored).item())
    assert F.cross_entropy(rows, all_ignored, reduction="sum").item() == 0.0
    outside = F.cross_entropy(rows, td.asarray([1, 2], dtype=td.int32), reduction="none").tolist()
    assert outside[0] == pytest.approx(loss - 1)
    assert math.isnan(outside[1])
    assert math.isnan(F.nll_loss(rows, td.asarray([-1, 0], dtype=td.int32)).item())
    empty = td.zeros((0, 3)), td.zeros((0,), dtype=td.int32)
    assert math.isnan(F.cross_entropy(*empty).item())
    assert F.cross_entropy(*empty, reduction="none").shape == (0,)
    assert math.isnan(F.cross_entropy(td.zeros((2, 0)), td.zeros((2, 0))).item())
    assert F.cross_entropy(rows, td.asarray([[1.0, 0], [0, 1.0]]), reduction="sum").item() > 0


def test_what_is_refused(device, monkeypatch):
    x, target = td.zeros((2, 3)), td.zeros((2,), dtype=td.int32)
    with pytest.raises(td.errors.ShapeError, match=r"\(2, 3\) classes have shape \(2,\).*\(3,\)"):
        F.cross_entropy(x, td.zeros((3,), dtype=td.int32))
    with pytest.raises(td.errors.DtypeError, match="classes are integers, not"):
        F.nll_loss(x, td.zeros((2,)))
    with pytest.raises(td.errors.DtypeError, match="probabilities, which are floats"):
        F.cross_entropy(x, td.zeros((2, 3), dtype=td.int32))
    with pytest.raises(ValueError, match="ignore_index is 1, but the target is probabilities"):
        F.cross_entropy(x, x, ignore_index=1)
    with pytest.raises(ValueError, match='"mean", "sum", "none", not \'max\''):
        F.cross_entropy(x, target, reduction="max")
    with pytest.raises(ValueError, match="label_smoothing is 2"):
        F.cross_entropy(x, target, label_smoothing=2)
    with pytest.raises(td.errors.ShapeError, match=r"weight has shape \(2,\).* 3 classes"):
        F.cross_entropy(x, target, td.ones(2))
    with pytest.raises(td.errors.ShapeError, match="an axis of classes"):
        F.nll_loss(x[0, 0], target[0])
    assert F.cross_entropy(x, target, reduce=False).shape == (2,)
    monkeypatch.setattr(settings, "check", True)
    with pytest.raises(IndexError, match="not a class from 0 to 2"):
        F.cross_entropy(x, target + 3)


def test_scores_are_read_by_one_kernel():
    with td.use_device("cpu"):
        x, target = td.zeros((100, 300)).realize(), td.zeros((100,), dtype="int64").realize()
    told = td.explain(F.cross_entropy(x, target, reduction="none"))
    assert told.splitlines()[0].startswith("1 kernel")
    told = td.explain(F.cross_entropy(x, target))  # and another one makes a mean of the losses
    assert told.splitlines()[0].startswith("2 kernels")
    assert told.count("[100, 300]") == 1


try:
    import torch
except ImportError:
    torch = None

if torch is not None:

    def test_as_pytorch_has_it(device, rng):
        """Names, order of arguments and defaults."""
        x = rng.standard_normal((4, 6, 5)).astype(np.float32)
        target = rng.integers(0, 6, (4, 5))
        target[1, 2:] = 2
        weight = rng.random(6).astype(np.float32)
        ours = td.asarray(x), td.asarray(target.astype(np.int32)), td.asarray(weight)
        theirs = torch.tensor(x), torch.tensor(target), torch.tensor(weight)
        for rest in ((), (None, 2), (False, 2), (None, 2, False), (None, 2, None, "sum")):
            for name in ("nll_loss", "cross_entropy"):
                for k in (2, 3):
                    mine = getattr(F, name)(*ours[:k], *(rest if k == 3 else ()))
                    own = getattr(torch.nn.functional, name)
                    if k == 3 and (rest[:1] == (False,) or rest[2:3] == (False,)):
                        with pytest.warns(UserWarning, match="deprecated"):
                            wanted = own(*theirs, *rest)
                    else:
                        wanted = own(*theirs[:k], *(rest if k == 3 else ()))
                    np.testing.assert_allclose(mine.numpy(), wanted.numpy(), 2e-5, 1e-5)
        mine = F.cross_entropy(*ours, None, 2, None, "mean", 0.3)
        wanted = torch.nn.functional.cross_entropy(*theirs, None, 2, None, "mean", 0.3)
        np.testing.assert_allclose(mine.item(), wanted.item(), 2e-5)
