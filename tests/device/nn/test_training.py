"""One training script on every device: the same curve, compiled and not."""

import numpy as np

import treadle as td
from treadle import nn

_STEPS = 12


class _Reader(nn.Module):
    """A small classifier of pictures with something of everything."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1, bias=False)  # the norm would undo it
        self.norm = nn.BatchNorm2d(4)
        self.dropout = nn.Dropout(0.1)
        self.last = nn.Linear(4 * 4 * 4, 5)

    def forward(self, x):
        x = nn.functional.max_pool2d(nn.functional.gelu(self.norm(self.first(x))), 2)
        return self.last(self.dropout(x.flatten(1)))


def _curve(device, compiled):
    """The losses of a short training, and the parameters after it."""
    rng = np.random.default_rng(3)
    x = td.asarray(rng.standard_normal((10, 1, 8, 8)).astype(np.float32), device=device)
    target = td.asarray(rng.integers(0, 5, 10).astype(np.int32), device=device)
    with td.use_device(device):
        td.manual_seed(11)
        model = _Reader()
        optimizer = td.optim.AdamW(model.parameters(), lr=0.02)
        schedule = td.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)

        def step(x, target):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), target, label_smoothing=0.1)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        run = td.compile(step) if compiled else step
        losses = []
        for _ in range(_STEPS):
            losses.append(run(x, target).item())
            schedule.step()
        if compiled:
            assert run.traces == 1
        return losses, {name: value.numpy() for name, value in model.state_dict().items()}


def test_that_a_script_has_the_same_curve_everywhere(device):
    losses, state = _curve(device, compiled=False)
    again, same = _curve(device, compiled=True)
    np.testing.assert_allclose(again, losses, rtol=1e-5)
    expected, wanted = _curve("cpu", compiled=False)
    assert expected[-1] < 0.8 * expected[0]
    np.testing.assert_allclose(losses, expected, rtol=2e-3)
    for name, value in wanted.items():
        np.testing.assert_allclose(state[name], value, rtol=0.02, atol=0.02, err_msg=name)
        np.testing.assert_allclose(same[name], state[name], rtol=1e-3, atol=1e-4, err_msg=name)
