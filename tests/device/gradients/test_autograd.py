"""The backward pass: accumulation, second passes, writes in place, what is refused."""

import copy

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError


def test_that_gradients_are_those_of_differences(rng):
    x, w, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 5)), rng.standard_normal(5)
    check_gradients(lambda x, w, b: td.nn.functional.gelu(x @ w + b), x, w, b)


def test_that_views_and_parts_have_gradients(rng):
    x = rng.standard_normal((5, 6))
    check_gradients(lambda x: (x[1:3] * x[2:4], x[:, ::2] ** 3, x.T.reshape(-1)[3:]), x)


def test_that_writes_in_place_are_followed(rng):
    def function(x):
        y = x * 2
        y[1] = x[0] * 3
        y += 1
        return y * y

    check_gradients(function, rng.standard_normal((4, 3)))


def test_that_gradients_are_added_to_those_of_leaves(device):
    x = td.asarray([1.0, 2.0], device=device).requires_grad_()
    for _ in range(3):
        (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 12.0])


def test_that_a_second_pass_is_refused(device):
    x = td.ones(3, device=device).requires_grad_()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(AutogradError, match="second time"):
        y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [4.0, 4.0, 4.0])


def test_that_more_than_one_element_needs_a_gradient(device):
    x = td.ones(3, device=device).requires_grad_()
    with pytest.raises(AutogradError, match=r"shape \(3,\)"):
        (x * 2).backward()


def test_that_a_changed_value_is_noticed(device):
    x = td.ones(3, device=device).requires_grad_()
    z = x * 2
    w = (z * z).sum()
    z += 1
    with pytest.raises(AutogradError, match="changed in place"):
        w.backward()


def test_that_gradients_of_gradients_follow_results_that_nobody_has(device):
    x = td.asarray([0.5, 1.0], device=device).requires_grad_()
    y = td.exp(x) - x
    y.realize()
    (first,) = td.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = td.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), np.exp(x.detach().numpy()), rtol=1e-6)


def test_what_is_advised_for_writes_in_place(device):
    """The advice fits what is written: a leaf, a view of one, data, a value on the way."""
    x = td.asarray([1.0, 2.0, 3.0], device=device).requires_grad_()
    for write in (lambda: x.__iadd__(1), lambda: x.__setitem__(0, 1)):
        with pytest.raises(AutogradError, match=r"^a leaf that .*no_grad.*y = x\.clone\(\)$"):
            write()
    for view in (x[:2], x.reshape(3, 1), x[1:][:1]):
        with pytest.raises(AutogradError, match=r"^this tensor is a view of a leaf .*\[1\]$"):
            view += 1
    assert x.tolist() == [1.0, 2.0, 3.0]

    for part in (x, x[:2]):
        total = (part * part).sum()
        with td.no_grad():
            x += 1
        with pytest.raises(AutogradError, match=r"^a leaf that .* of multiply .*before the"):
            total.backward()
    data = td.ones(3, device=device)
    total = (x * data).sum()
    data += 1
    with pytest.raises(AutogradError, match=r"^a tensor that .*operand 2, .*after backward"):
        total.backward()
    y = td.exp(x)
    total = (y[:2] * 2.0 * y[:2]).sum()
    y[0] = 1
    with pytest.raises(AutogradError, match=r"^a value that .*shape \(2,\).*td\.where"):
        total.backward()
    y = td.exp(x)
    total = y.sum()
    y += 1
    with pytest.raises(AutogradError, match=r"^a value that .* exp needs \(the result,"):
        total.backward()


def test_copies_of_computed_tensors(device):
    leaf = td.asarray([1.0, 2.0]).requires_grad_()
    for computed in (leaf * 3, leaf[:]):
        with pytest.raises(td.errors.AutogradError, match=r"Copy x\.detach\(\) for its elements"):
            copy.deepcopy([computed])
        leaf.grad = None
        twin = copy.copy(computed)
        twin.sum().backward()
        assert leaf.grad.tolist() == ([3.0, 3.0] if computed.tolist()[0] == 3 else [1.0, 1.0])
        assert copy.deepcopy(computed.detach()).tolist() == computed.tolist()
    for again in (copy.copy, copy.deepcopy):
        twin = again(leaf)
        assert twin is not leaf
        assert twin.requires_grad
        assert twin.is_leaf
