"""Compiled functions and gradients: what a replay can do, and when Python has to run."""

import numpy as np
import pytest

import treadle as td
from treadle import nn


@pytest.fixture(autouse=True)
def _on_the_device(device):
    with td.use_device(device):
        yield


def _x():
    return td.asarray(np.eye(4, 3, dtype=np.float32))


def test_a_compiled_function_is_differentiated():
    cube = td.compile(lambda a: (a**3).sum())
    a = td.asarray([1.0, 2.0], dtype=td.float32)
    assert cube(a).item() == 9.0
    np.testing.assert_allclose(td.grad(cube)(a).numpy(), [3.0, 12.0], rtol=1e-6)
    assert td.jvp(cube, (a,), (a,))[1].item() == pytest.approx(27.0)


def test_results_that_require_gradients_come_from_python():
    body, head = nn.Linear(3, 3), nn.Linear(3, 1)
    compiled, x = td.compile(body), _x()
    with pytest.warns(UserWarning, match="Compile the whole step"):
        (head(compiled(x)) ** 2).mean().backward()
    first = body.weight.grad.numpy()
    (head(compiled(x)) ** 2).mean().backward()
    np.testing.assert_allclose(body.weight.grad.numpy(), 2 * first, rtol=1e-5)
    with td.no_grad():  # these are replayed
        np.testing.assert_allclose(compiled(x).numpy(), body(x).numpy(), rtol=1e-6)


def test_gradients_go_to_their_places_as_soon_as_they_are_whole(rng):
    """Of a table that is used twice only then, and hooks see each gradient once."""
    table, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 3), (3, 3)))
    at = td.asarray(np.array([4, 0, 4], np.int32))

    def trained(compiled):
        seen = []
        leaves = [td.asarray(each).requires_grad_() for each in (table, weight)]
        for number, leaf in enumerate(leaves):
            leaf.register_post_accumulate_grad_hook(lambda _, number=number: seen.append(number))
        optimizer = td.optim.AdamW(leaves, lr=0.1)

        def step(at):
            optimizer.zero_grad()
            first, second = leaves
            y = td.tanh(first[at] @ second @ second) @ first.T
            loss = (y**2).mean() + (first * 0.1).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = td.compile(step) if compiled else step
        losses = [run(at).item() for _ in range(4)]
        assert not compiled or sorted(set(seen)) == [0, 1]
        return losses, [leaf.detach().numpy() for leaf in leaves]

    (losses, leaves), (right, others) = trained(True), trained(False)
    np.testing.assert_allclose(losses, right, rtol=1e-5)
    for leaf, other in zip(leaves, others, strict=True):
        np.testing.assert_allclose(leaf, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_are_handled_outside(to_none):
    def curve(is_compiled):
        td.manual_seed(0)
        model, x, y = nn.Linear(3, 1), _x(), td.ones((4, 1))
        optimizer = td.optim.SGD(model.parameters(), lr=0.5)

        def forward_and_back():
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            return loss

        run = td.compile(forward_and_back) if is_compiled else forward_and_back
        losses = []
        for _ in range(4):
            optimizer.zero_grad(set_to_none=to_none)
            run()
            losses.append(run().item())  # twice as much
            optimizer.step()
        return losses

    np.testing.assert_allclose(curve(True), curve(False), rtol=1e-5)


def test_gradients_add_up_without_an_optimizer():
    model, x = nn.Linear(3, 1), _x()
    run = td.compile(lambda: (model(x) ** 2).mean().backward())
    found = []
    for _ in range(3):
        run()
        found.append(model.bias.grad.item())
    np.testing.assert_allclose(found, found[0] * np.array([1, 2, 3]), rtol=1e-5)


def test_modes_are_looked_at():
    model, x = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)), _x()
    compiled = td.compile(model)
    with td.no_grad():
        compiled(x)
        model.eval()
        np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-5)
        with td.autocast(td.bfloat16):
            assert td.compile(lambda: nn.functional.linear(x, x))().dtype == td.bfloat16
        linear = td.compile(nn.functional.linear)
        assert linear(x, x).dtype == td.float32
        with td.autocast(td.bfloat16):
            assert linear(x, x).dtype == td.bfloat16


def test_an_optimizer_that_changes_is_traced_anew():
    def curve(is_compiled):
        td.manual_seed(0)
        model, x, y = nn.Linear(3, 1), _x(), td.ones((4, 1))
        optimizer = td.optim.SGD(model.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = td.compile(step) if is_compiled else step
        losses = [run().item()]
        optimizer.param_groups[0]["momentum"] = 0.9
        losses += [run().item() for _ in range(3)]
        optimizer = td.optim.SGD(model.parameters(), lr=0.0)
        return [*losses, run().item(), run().item()]

    np.testing.assert_allclose(curve(True), curve(False), rtol=1e-5)


def test_a_scaler_that_is_another_one_is_traced_anew():
    model, x = nn.Linear(3, 1), _x()
    scaler = td.GradScaler(init_scale=4.0)

    @td.compile
    def scaled(x):
        with td.no_grad():
            return scaler.scale(model(x).sum())

    first = scaled(x).item()
    scaler = td.GradScaler(init_scale=8.0)
    assert scaled(x).item() == pytest.approx(2 * first)


def test_batches_of_other_sizes_through_convolutions():
    def x(n):
        random = np.random.default_rng(n)
        return td.asarray(random.standard_normal((n, 2, 6, 6)).astype(np.float32))

    def run(compiled):
        td.manual_seed(3)
        model = td.nn.Sequential(
            td.nn.Conv2d(2, 8, 3), td.nn.ReLU(), td.nn.MaxPool2d(2), td.nn.Flatten(),
            td.nn.Linear(32, 3),
        )  # fmt: skip
        optimizer = td.optim.SGD(model.parameters(), lr=0.1)

        def step(images, at):
            optimizer.zero_grad()
            loss = td.nn.functional.cross_entropy(model(images), at)
            loss.backward()
            optimizer.step()
            return loss

        step = td.compile(step, dynamic=True) if compiled else step
        return [
            float(step(x(n), td.asarray(np.arange(n, dtype=np.int32) % 3))) for n in (8, 5, 8, 7, 3)
        ]

    np.testing.assert_allclose(run(True), run(False), 1e-4, 1e-5)


def test_sequences_of_other_lengths_through_an_lstm():
    def run(compiled):
        td.manual_seed(3)
        net = td.nn.LSTM(4, 8, batch_first=True)
        optimizer = td.optim.SGD(net.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            out, _ = net(x)
            loss = (out[:, -1] ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        step = td.compile(step) if compiled else step
        losses = []
        for n in (12, 9, 17, 15, 19):
            x = np.random.default_rng(n).standard_normal((2, n, 4)).astype(np.float32)
            losses.append(float(step(td.asarray(x))))
        return losses, step

    expected, _ = run(False)
    found, step = run(True)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    assert step.traces <= 4
