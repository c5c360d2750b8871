"""Gradients of what moves elements: indexing, sorting, joining, scattering, writing in place."""

import asyncio

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError
from treadle.runtime import settings

try:
    import torch
except ImportError:  # there are machines that it has no wheel for
    torch = None


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch):
    """A kernel for each operation: all tests together need fewer than if each fused its own."""
    monkeypatch.setattr(settings, "eager", True)


def places(*values):
    return td.asarray(np.array(values, np.int32), device="cpu")


def leaf(*values, device="cpu"):
    return td.asarray(values, dtype="float32", device=device).requires_grad_()


# --- reading -------------------------------------------------------------------------------------


def test_that_taken_elements_have_gradients(rng):
    def function(x):
        return [
            x[places(2, 0, 2)], x[:, places(1, -1)][1:], x.T[1:, places(0, 9)], x[x > 0],
            td.take(x, places(0, 2, 2), axis=1), td.take_along_axis(x.T, td.argsort(x.T, axis=0)),
            td.gather(x, 0, places([0, 0, 1], [2, -1, 0])), td.index_select(x, 1, places(3, 3)),
            td.masked_select(x, x < 0), td.sort(x), td.sort(x, axis=0, descending=True),
            *(found.values for found in (td.topk(x, 2), td.topk(x, 1, axis=0, largest=False))),
        ]  # fmt: skip

    check_gradients(function, rng.standard_normal((3, 4)), second=False)


def test_that_what_is_joined_and_repeated_has_gradients(rng):
    def function(x, y):
        return [
            td.concat([x, y, x * 2]), td.concat([x.T, y.T], axis=1), td.stack([x, y[:2]], axis=1),
            td.roll(x, (1, -1), axis=(0, 1)), td.flip(x), td.repeat(x, 2, axis=0),
            td.repeat(x, places(1, 0, 2), axis=1), td.tile(x, (2, 2)), td.diff(x, n=2),
            td.diff(x, axis=0, prepend=y[:1]), td.tril(x), td.triu(x, k=1),
            *td.meshgrid(x[0], y[1]),
        ]  # fmt: skip

    check_gradients(
        function, rng.standard_normal((2, 3)), rng.standard_normal((4, 3)), second=False
    )


def test_that_views_have_gradients(rng):
    def function(x):
        return [
            td.diagonal(x, offset=1), td.moveaxis(x, 0, 1)[::-2], *td.unstack(x, axis=1),
            *td.split(x, [1], axis=0), td.broadcast_to(x, (2, 2, 3)), x[None, :, None, 1:],
            x.reshape(3, 2), x.T.reshape(-1)[::2], x[:, ::2] * x[:, 1:2], td.asarray(x, copy=True),
            x.clone().T.contiguous(), td.full((2, 2, 3), x), x.astype("complex128") * (1 + 2j),
        ]  # fmt: skip

    check_gradients(function, rng.standard_normal((2, 3)), second=False)


def test_that_parts_of_a_joined_gradient_are_not_copied():
    """A gradient of n parts is n views, not n arrays of the size of all."""
    parts = [td.ones(4, device="cpu").requires_grad_() for _ in range(3)]
    seen = []
    copies = [part * 1 for part in parts]
    for copy in copies:
        copy.register_hook(lambda g: seen.append(g._cell))
    weights = td.asarray(np.arange(12, dtype=np.float32), device="cpu")
    td.concat(copies).backward(weights)
    assert all(cell is weights._cell for cell in seen)
    assert len(seen) == 3
    assert [part.grad.tolist()[0] for part in parts] == [0.0, 4.0, 8.0]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_that_nothing_has_a_gradient(shape):
    x = td.ones(shape, device="cpu").requires_grad_()
    none = td.asarray(np.zeros(0, np.int32), device="cpu")
    found = [
        x[none], td.concat([x, x]), td.roll(x, 1), td.sort(x), td.prod(x, axis=0), td.sum(x),
        td.gather(x, 0, none.reshape(0, 1)[:, : shape[1]]), td.tile(x, 2), td.clip(x, 0, 1),
    ]  # fmt: skip
    for each in found:
        (slope,) = td.autograd.grad(each.sum(), x)
        assert slope.numpy().shape == shape


# --- scattering ----------------------------------------------------------------------------------


def test_that_scattered_values_have_gradients(rng):
    at, grid = places(0, 2, 0, 5), places([0, 0, 1, -1], [2, 0, 2, 2])

    def function(x, v):
        return [
            td.index_add(x, 0, at, v, alpha=2.0), td.index_copy(x, 0, at, v),
            td.index_fill(x, 0, at, 3.0), td.masked_fill(x, x > 0, v[0, 0]),
            td.scatter(x, 0, grid, v[1:3]), td.scatter(x, 0, grid, 2.0),
            td.scatter_add(x, 1, grid[:, :3], v), td.bincount(places(0, 2, 2, 1), weights=v[0]),
        ]  # fmt: skip

    check_gradients(function, rng.standard_normal((3, 4)), rng.standard_normal((4, 4)))


@pytest.mark.parametrize("how", ["prod", "mean", "amax"])
def test_that_folded_values_have_gradients(rng, how):
    x, v = rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    if how == "prod":
        x[0, 0] = v[0, 0] = v[1, 2] = 0
    at = places([0, 0, 1], [2, 0, -2])

    def function(x, v):
        return [td.scatter_reduce(x, 0, at, v, how, include_self=own) for own in (True, False)]

    check_gradients(function, x, v)


# --- writing in place ----------------------------------------------------------------------------


def after(write):
    """What a tensor is after it was written to, squared."""

    def function(x, v):
        y = x * 2
        write(y, v)
        return y * y

    return function


WRITES = {
    "places": lambda y, v: y.__setitem__(places(0, 2, 0), v[:3]),
    "places_and_slices": lambda y, v: y[1:].__setitem__((places(0, 1, 0), slice(1, 3)), v[:3, :2]),
    "one_value": lambda y, v: y.__setitem__((slice(None), places(0, 3, 0)), v[0, 0]),
    "mask": lambda y, v: y.__setitem__(y > 0, v.reshape(-1)[: int((y > 0).sum().item())]),
    "mask_with_one_value": lambda y, v: y.T.__setitem__(y.T > 0, v[1, 1]),
    "view_of_a_view": lambda y, v: y[1:].T[::2].__imul__(v[0, 0]),
    "operators": lambda y, v: (y.__iadd__(v[:3]), y.__imul__(y), y.__itruediv__(v[:1] * v[:1] + 4),
                               y[:1].__ipow__(2)),
    "methods": lambda y, v: (y.index_add_(0, places(0, 0), v[:2]), y.masked_fill_(y > 0, v[0, 0]),
                             y.scatter_reduce_(0, places([0, 1]), v[:1], "prod")),
    "new": lambda y, v: y.__setitem__(slice(None), td.concat([v[:2], y[:1]])),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_that_writes_have_gradients(rng, write):
    x, v = rng.standard_normal((3, 4)), rng.standard_normal((4, 4))
    check_gradients(after(WRITES[write]), x, v, second=False)


def test_that_second_gradients_go_through_writes(rng):
    def write(y, v):
        y[places(0, 2, 0)] = v[:3] * v[1:]
        y[1] *= v[0]

    check_gradients(after(write), rng.standard_normal((3, 2)), rng.standard_normal((4, 2)))


def test_what_is_not_written_while_it_is_recorded(device):
    x, at = leaf(1.0, 2.0, 3.0, device=device), td.asarray([0], dtype="int32", device=device)
    for index in (at, slice(0, 1), td.asarray([True, False, False], device=device)):
        with pytest.raises(AutogradError, match="not written in place"):
            x[index] = 5.0
        with pytest.raises(AutogradError, match="cut off"):
            x.detach()[index] = x[:1] * 2
    assert x.tolist() == [1.0, 2.0, 3.0]
    with td.no_grad():
        x[at] = 5.0
    assert x.tolist() == [5.0, 2.0, 3.0]
    assert x.requires_grad


@pytest.mark.parametrize("shared", [False, True])
def test_that_an_overwritten_operand_is_noticed(shared):
    x = leaf(1.0, 2.0)
    for write in (lambda b: b.__setitem__(places(0), 3.0), lambda b: b.__setitem__(0, 3.0)):
        data = np.ones(2, np.float32)
        operand = td.asarray(data, device="cpu", copy=not shared)
        total = (x * operand).sum()
        write(operand)
        assert operand.tolist() == [3.0, 1.0]
        assert data.tolist() == ([3.0, 1.0] if shared else [1, 1])
        with pytest.raises(AutogradError, match="changed in place"):
            total.backward()


def test_that_what_is_written_without_recording_changes_no_gradient():
    x = leaf(1.0, 2.0)
    y = x * 3
    with td.no_grad():
        y[places(0)] = 0.0
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([0.0, 6.0], [3.0, 3.0])


def test_that_views_have_hooks_and_gradients_of_their_own():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 2
    view, seen = y[1:3], []
    view.register_hook(lambda g: seen.append(g.tolist()))
    view.retain_grad()
    view.realize()
    (view * view * y[0]).sum().backward(retain_graph=True)
    assert seen == [[16.0, 24.0]]
    assert view.grad.tolist() == [16.0, 24.0]
    assert x.grad.tolist() == [104.0, 32.0, 48.0, 0.0]


def test_that_moving_keeps_histories():
    x = leaf(1.0, 2.0)
    moved = asyncio.run(x.to_async("float64"))
    td.from_dlpack(moved.to("cpu") * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(AutogradError, match="unique_all has no derivative"):
        td.unique_values(x).sum().backward()


if torch is not None:

    def test_that_scattering_has_pytorchs_gradients(rng):
        x, v = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
        x[0, 0] = v[0, 0] = v[1, 0] = 1.0  # equal ones
        at = np.array([[0, 0, 1, 2], [0, 0, 2, 2], [1, 2, 2, 2]])
        found = []
        for space in (td, torch):
            a, b = (space.asarray(each, device="cpu").requires_grad_() for each in (x, v))
            index = space.asarray(at, device="cpu")
            total = 0.0
            for how in ("sum", "prod", "mean", "amax", "amin"):
                made = space.scatter_reduce(a, 0, index, b, how, include_self=how != "mean")
                total = total + (made * made).sum()
            total.backward()
            found.append((a.grad.numpy(), b.grad.numpy()))
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)
