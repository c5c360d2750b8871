"""Connectionist temporal classification: losses and gradients beside PyTorch's."""

import itertools

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from tests.support.torch_gradients import check_beside_torch, torch
from treadle.core.errors import AutogradError, ShapeError

F = td.nn.functional


def _sequences(rng, times=7, batch=3, classes=4, longest=3):
    scores = rng.standard_normal((times, batch, classes))
    targets = rng.integers(1, classes, (batch, longest)).astype(np.int32)
    lengths = np.array([times, times - 1, 5][:batch], dtype=np.int32)
    sizes = np.array([longest, 1, 0][:batch], dtype=np.int32)
    return scores, targets, lengths, sizes


def test_that_all_alignments_are_counted(device, rng):
    scores = rng.standard_normal((4, 3))
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    wanted = 0.0
    for path in itertools.product(range(3), repeat=4):
        merged = [label for label, _ in itertools.groupby(path) if label != 2]
        if merged == [0, 0]:
            wanted += np.prod(probabilities[range(4), path])
    log_probs = td.asarray(np.log(probabilities).astype(np.float32), device=device)
    loss = F.ctc_loss(log_probs, np.array([0, 0]), 4, 2, blank=2, reduction="none")
    assert loss.shape == ()
    np.testing.assert_allclose(loss.item(), -np.log(wanted), rtol=1e-5)


def test_that_gradients_are_those_of_differences(rng):
    scores, targets, lengths, sizes = _sequences(rng, times=4, batch=2, longest=2)
    targets[0] = 1  # twice the same: a blank must be between
    check_gradients(
        lambda x: F.ctc_loss(x, targets, lengths, sizes, reduction="none"), scores, second=False
    )


if torch is not None:
    _T = torch.nn.functional

    @pytest.mark.parametrize("reduction", ["mean", "none"])
    def test_that_losses_and_gradients_are_pytorchs(reduction, device, rng):
        scores, targets, lengths, sizes = _sequences(rng)
        check_beside_torch(
            lambda x: F.ctc_loss(
                F.log_softmax(x, -1), targets, lengths, sizes, reduction=reduction
            ),
            lambda x: _T.ctc_loss(
                _T.log_softmax(x, -1), *map(torch.tensor, (targets, lengths, sizes)),
                reduction=reduction,
            ),
            scores.astype(np.float32), device=device, second=False, rtol=1e-3, atol=1e-4,
        )  # fmt: skip

    def test_that_targets_may_follow_each_other(rng):
        scores, _, lengths, sizes = _sequences(rng)
        targets = np.array([3, 1, 1, 2])
        check_beside_torch(
            lambda x: F.ctc_loss(F.log_softmax(x, -1), targets, lengths, sizes),
            lambda x: _T.ctc_loss(
                _T.log_softmax(x, -1), *map(torch.tensor, (targets, lengths, sizes))
            ),
            scores, second=False,
        )  # fmt: skip


def test_that_what_is_impossible_is_infinite_or_nothing(device):
    x = td.zeros((2, 2, 3), device=device).requires_grad_()
    given = np.array([[1, 1], [1, 2]], dtype=np.int32), [2, 2], [2, 2]
    losses = F.ctc_loss(F.log_softmax(x, -1), *given, reduction="none")
    assert losses.tolist()[0] == np.inf
    np.testing.assert_allclose(losses.tolist()[1], np.log(9), rtol=1e-6)
    F.ctc_loss(F.log_softmax(x, -1), *given, reduction="sum", zero_infinity=True).backward()
    gradient = x.grad.numpy()
    assert (gradient[:, 0] == 0).all()
    np.testing.assert_allclose(gradient[0, 1], [1 / 3, -2 / 3, 1 / 3], rtol=1e-5)


def test_what_is_refused():
    scores = td.zeros((4, 2, 3), device="cpu").requires_grad_()
    targets = np.ones((2, 2), np.int32)
    with pytest.raises(ValueError, match="input_lengths are from 0 to 4"):
        F.ctc_loss(scores, targets, [5, 4], [2, 2])
    with pytest.raises(ValueError, match="blank=3 is not one of 3 classes"):
        F.ctc_loss(scores, targets, [4, 4], [2, 2], blank=3)
    with pytest.raises(ShapeError, match="one for each of 2 sequences"):
        F.ctc_loss(scores, targets, [4], [2, 2])
    loss = F.ctc_loss(scores, targets, [4, 4], [2, 2])
    (first,) = td.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(AutogradError, match="align_backward has no derivative"):
        first.sum().backward()
