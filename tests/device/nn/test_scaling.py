"""`td.GradScaler`: skipped steps, the scale's search, and both decided on the device."""

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import AutogradError


def _made(device, **options):
    w = td.asarray(np.array([1.0, -2.0, 3.0], np.float32), device=device).requires_grad_()
    optimizer = td.optim.AdamW([w], lr=0.1)
    return w, optimizer, td.GradScaler(init_scale=8.0, growth_interval=2, **options)


def test_a_step_that_overflows_is_skipped(device):
    w, optimizer, scaler = _made(device)
    plain = td.asarray(w.numpy(), device=device).requires_grad_()
    other = td.optim.AdamW([plain], lr=0.1)
    seen = []
    for factor in (1.0, np.inf, np.nan, 2.0, 0.5):
        optimizer.zero_grad()
        scaler.scale((w * w).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append(scaler.get_scale())
        if np.isfinite(factor):
            other.zero_grad()
            ((plain * plain).sum() * factor).backward()
            other.step()
        np.testing.assert_allclose(w.numpy(), plain.numpy(), rtol=1e-6)
    assert seen == [8.0, 4.0, 2.0, 2.0, 4.0]
    assert float(optimizer.state_dict()["state"][0]["step"]) == 3


def test_gradients_that_were_unscaled_are_stepped_with(device):
    w, optimizer, scaler = _made(device)
    scaler.scale((w * w).sum()).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_allclose(w.grad.numpy(), [2.0, -4.0, 6.0], rtol=1e-6)
    with pytest.raises(AutogradError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(AutogradError, match="already been called"):
        scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(np.abs(w.numpy() - [1.0, -2.0, 3.0]), 0.1, rtol=0.1)


def test_a_compiled_step_searches_the_scale(device):
    w, optimizer, scaler = _made(device)

    @td.compile
    def step(factor):
        optimizer.zero_grad()
        loss = (w * w).sum() * factor
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    before = w.numpy()
    scales = []
    for factor in (1.0, 1.0, np.inf, 1.0):
        step(td.asarray(factor, dtype=td.float32, device=device))
        scales.append(scaler.get_scale())
    assert scales == [8.0, 16.0, 8.0, 8.0]
    assert step.traces == 1
    assert np.isfinite(w.numpy()).all()
    assert (w.numpy() != before).all()


def test_states_move(device):
    w, optimizer, scaler = _made(device)
    scaler.scale((w * w).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
        "_growth_tracker": 1,
    }  # fmt: skip
    other = td.GradScaler(device)
    other.load_state_dict(state)
    assert other.state_dict() == state


def test_what_makes_no_sense_is_refused():
    w = td.ones(2, device="cpu").requires_grad_()
    optimizer = td.optim.SGD([w], lr=0.1)
    scaler = td.GradScaler("cpu")
    with pytest.raises(AutogradError, match="no parameter"):
        scaler.step(optimizer)
    with pytest.raises(AutogradError, match="no step"):
        scaler.update()
    with pytest.raises(ValueError, match="growth"):
        td.GradScaler(growth_factor=1.0)


def test_factors_can_be_changed(device):
    w, optimizer, scaler = _made(device)

    @td.compile
    def step():
        optimizer.zero_grad()
        scaler.scale((w * w).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    scales = []
    for turn in range(4):
        if turn == 2:  # a trace has the factors in itself: another one is made
            scaler.set_growth_factor(4.0)
            scaler.set_growth_interval(1)
            scaler.set_backoff_factor(0.25)
        step()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 16.0, 64.0, 256.0]
    assert (scaler.get_growth_factor(), scaler.get_growth_interval()) == (4.0, 1)
    assert (scaler.get_backoff_factor(), scaler.is_enabled()) == (0.25, True)
