"""What a backward pass does beside computing gradients: hooks, choices, errors, threads, memory."""

import gc
import threading
import weakref

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import AutogradError
from treadle.graph.history import History, Leaf


def leaf(*values):
    return td.asarray(values, device="cpu").requires_grad_()


# --- hooks ---------------------------------------------------------------------------------------


def test_that_hooks_run_in_order_and_change_gradients():
    x, seen = leaf(1.0, 2.0), []
    y = x * 3
    y.retain_grad()
    first = y.register_hook(lambda g: seen.append(g.tolist()))
    second = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1.0, 1.0], [10.0, 10.0]]
    assert y.grad.tolist() == [10.0, 10.0]  # as the hooks left it
    assert x.grad.tolist() == [30.0, 30.0]
    first.remove()
    second.remove()
    first.remove()  # does nothing
    z = x * 3
    handle = z.register_hook(lambda g: g * 2)
    handle.remove()
    z.sum().backward()
    assert x.grad.tolist() == [33.0, 33.0]


def test_hooks_after_accumulation():
    x, seen = leaf(1.0), []
    handle = x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    x.register_hook(lambda g: g + 1)
    (x * 3).backward(td.asarray([1.0], device="cpu"))
    (x * 3).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    assert seen == [4.0, 8.0]
    with pytest.raises(AutogradError, match="only leaves"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(AutogradError, match="for tensors that require gradients"):
        td.ones(2, device="cpu").register_hook(print)


# --- what is asked for ---------------------------------------------------------------------------


def test_several_roots_and_chosen_inputs():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a, b = x * y, x + y
    weights = [td.asarray(w, device="cpu") for w in ([1.0, 1.0], [10.0, 20.0])]
    td.autograd.backward([a, b], weights, retain_graph=True, inputs=[x])
    assert y.grad is None
    assert x.grad.tolist() == [13.0, 24.0]
    (by_y,) = td.autograd.grad((a, b), y, weights, retain_graph=True)
    assert by_y.tolist() == [11.0, 22.0]
    (by_a,) = td.autograd.grad(a * a, [a], td.ones(2, device="cpu"))
    assert by_a.tolist() == [6.0, 16.0]


def test_that_nothing_else_is_visited():
    """What does not lead to an input is not gone through: neither hooks nor values of it."""
    x, y, seen = leaf(1.0), leaf(2.0), []
    y.register_hook(seen.append)
    z = y * y
    z.sum().backward()  # its values are gone
    seen.clear()
    (by_x,) = td.autograd.grad((x * z).sum(), x)
    assert by_x.item() == 4.0
    assert seen == []


def test_unused_inputs():
    x, y = leaf(1.0), leaf(2.0)
    total = (x * 2).sum()
    with pytest.raises(AutogradError, match="input 1 was not used"):
        td.autograd.grad(total, [x, y], retain_graph=True)
    assert td.autograd.grad(total, [x, y], retain_graph=True, allow_unused=True)[1] is None
    assert td.autograd.grad(total, [x, y], materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(ValueError, match="allow_unused"):
        td.autograd.grad(total, [x, y], allow_unused=False, materialize_grads=True)


# --- modes ---------------------------------------------------------------------------------------


def test_modes():
    x = leaf(1.0)

    @td.no_grad
    def one():
        return (x * 2).requires_grad

    @td.inference_mode()
    def two():
        return (x * 2).requires_grad

    @td.set_grad_enabled(False)
    def three():
        with td.enable_grad():
            assert (x * 2).requires_grad
        return (x * 2).requires_grad

    assert [one(), two(), three()] == [False] * 3
    assert td.is_grad_enabled()
    td.set_grad_enabled(False)
    assert not td.is_grad_enabled()
    with td.set_grad_enabled(True), td.inference_mode(False):
        assert td.is_grad_enabled()
    assert not td.is_grad_enabled()
    td.set_grad_enabled(True)


def test_threads(device):
    x = td.ones(3, device=device).requires_grad_()
    found = []
    with td.no_grad():  # is this thread's alone
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
    total = found[0].sum()
    thread = threading.Thread(target=total.backward)
    thread.start()
    thread.join()
    assert x.grad.tolist() == [2.0] * 3


# --- faults --------------------------------------------------------------------------------------


def test_that_the_first_nan_is_found():
    x = leaf(0.0, 1.0)
    with td.autograd.detect_anomaly():
        y = td.sqrt(x) * td.asarray([0.0, 1.0], device="cpu")  # this line
        with pytest.raises(AutogradError, match=r"(?s)gradient of sqrt.*test_backward.*this line"):
            y.sum().backward()
    with td.autograd.set_detect_anomaly(True), pytest.raises(AutogradError, match="began with"):
        (x * 2).backward(td.asarray([np.nan, 1.0], device="cpu"))
    assert not td.autograd.is_anomaly_enabled()
    (td.sqrt(x) * 0).sum().backward()
    assert np.isnan(x.grad.numpy()[0])


# --- kernels -------------------------------------------------------------------------------------


@td.kernel
def scale_in_place(x: td.Array[td.f32], factor: td.f32):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] * factor


@pytest.mark.parametrize("interpreted", [False, True])
def test_that_kernels_are_not_recorded_in_silence(device, interpreted):
    x = td.ones(3, device=device).requires_grad_()
    y = x * 2

    def launch(tensor):
        if interpreted:
            with td.interpret():
                scale_in_place[1, 4](tensor, 3.0)
        else:
            scale_in_place[1, 4](tensor, 3.0)

    for tensor in (x, y):
        with pytest.raises(AutogradError, match=r"kernel scale_in_place .* td.autograd.Function"):
            launch(tensor)
    with td.no_grad():
        launch(x)
    launch(y.detach())
    assert x.tolist() == [3.0] * 3
    assert y.tolist() == [6.0] * 3


def test_that_a_kernel_overwrites_what_a_gradient_needs(device):
    x, w = (td.ones(3, device=device).requires_grad_() for _ in range(2))
    buffer = td.ones(3, device=device)
    for turn in range(2):  # what is written before it is used is no fault
        scale_in_place[1, 4](buffer, 2.0)
        total = (w * buffer).sum()
        if turn:
            scale_in_place[1, 4](buffer, 2.0)
            with pytest.raises(AutogradError, match="changed in place"):
                total.backward()
        else:
            total.backward()
    y = td.exp(x)
    z = y * 3
    with td.no_grad():
        scale_in_place[1, 4](y, 2.0)
    with pytest.raises(AutogradError, match="changed in place"):
        z.sum().backward()


def test_that_a_product_is_called_one():
    w = leaf(1.0, 2.0)
    y = td.ones((2, 2), device="cpu").requires_grad_() @ w
    with td.no_grad():
        w *= 2
    with pytest.raises(AutogradError, match="the gradient of a product of arrays needs"):
        y.sum().backward()


def test_that_a_batch_is_no_way_round():
    x = leaf(1.0, 2.0)
    batch = td.CommandBatch("cpu")
    values = batch.upload(x)
    batch.launch(scale_in_place, 2, values, 2.0)
    with pytest.raises(AutogradError, match="scale_in_place"):
        batch.execute()


# --- size ----------------------------------------------------------------------------------------


def test_long_chains():
    """Neither a pass nor the end of a graph goes deep into the interpreter's stack."""
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    z = y.sum()
    made = weakref.ref(y._history)
    z.backward()
    assert x.grad.item() == 1.0
    del y, z
    assert made() is None


def test_that_training_leaves_nothing_behind():
    w = leaf(1.0, 2.0, 3.0)
    data = td.asarray(np.arange(12, dtype=np.float32).reshape(4, 3), device="cpu")

    def step():
        loss = ((data @ w) * w.sum()).mean()
        loss.backward()
        with td.no_grad():
            w.__isub__(w.grad * 0.1)
        w.grad = None
        w.realize()  # what waits to be computed has histories, too
        return weakref.ref(loss._history)

    def count():
        return sum(type(each) in (History, Leaf, td.Tensor) for each in gc.get_objects())

    step()
    gc.collect()
    gc.disable()
    try:
        before = count()
        assert all(step()() is None for _ in range(60))
        assert count() <= before + 2
    finally:
        gc.enable()


# --- leaves that are parts -----------------------------------------------------------------------


def test_a_leaf_that_is_a_part_of_an_array(device):
    base = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), device=device)
    x = base[:, 1].requires_grad_()  # 1 and 4
    (x * x + x[1:] * x[:1]).sum().backward()
    assert x.grad.tolist() == [2 + 2 * 4.0, 8 + 2 * 1.0]
    (found,) = td.autograd.grad((x[1:] * 3).sum(), x)
    assert found.tolist() == [0.0, 3.0]
    assert not base.requires_grad


def test_that_an_inner_value_keeps_its_own_graph(device):
    x = td.ones(2, device=device).requires_grad_()
    y = x * x
    (by_y,) = td.autograd.grad((y * y).sum(), y)
    assert by_y.tolist() == [2.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "wrong", [lambda g: td.ones((3, 2), device="cpu"), lambda g: g.to(td.float64), lambda g: "g"]
)
def test_that_a_hook_gives_a_gradient_of_the_same_kind(wrong):
    x = td.ones(2, device="cpu").requires_grad_()
    x.register_hook(wrong)
    with pytest.raises(AutogradError, match="hook"):
        (x * 2).sum().backward()


def test_that_the_mean_of_nothing_has_a_history():
    x = td.zeros((0, 3), device="cpu").requires_grad_()
    loss = x.mean()
    loss.backward()
    assert np.isnan(loss.item())
    assert x.grad.shape == (0, 3)


def test_that_many_slices_in_any_order_have_their_gradients(rng):
    data, weights = rng.standard_normal((40, 3)), rng.standard_normal(40)
    x = td.asarray(data, device="cpu").requires_grad_()
    order = rng.permutation(40)
    total = sum((x[int(i)] * float(weights[i])).sum() for i in order)
    (total + (x[3:9] * 2).sum() + (x[:, 1] * 3).sum()).backward()
    wanted = np.repeat(weights[:, None], 3, axis=1)
    wanted[3:9] += 2
    wanted[:, 1] += 3
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-12)
