"""Memory that tensors share: what is written through one is seen in the others, as in PyTorch and
NumPy, also where strides cannot express the view."""

from __future__ import annotations

import copy
import io
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.numpy as our_numpy
import treadle.torch as ours
from tests.parity.comparing import torch
from treadle.tensor import computed_views

_DEVICES = ["cpu", pytest.param("webgpu", marks=pytest.mark.skipif(
    not td.is_available("webgpu"), reason="no WebGPU"))]  # fmt: skip


def _parts(lib: Any, x: Any, y: Any) -> list[Any]:
    """Writes through parts of a complex tensor, in all ways that programs write."""
    x.real[0] = 1
    x.imag[1:] = y[1:]
    x.real += y
    x.imag.mul_(3)
    x.real[lib.tensor([True, False, True, False, False], device=x.device)] *= 2
    x.imag[lib.tensor([4, 0], device=x.device)] -= 1
    kept = x.real
    x.mul_(2)  # seen through the view
    kept[2:] -= 1
    pairs = lib.view_as_real(x[1:])
    pairs[0] = y[:2]
    pairs[..., 1].clamp_(max=4)
    x.real = x.imag
    flat = lib.cat([y, -y]).view(5, 2)
    numbers = lib.view_as_complex(flat)
    numbers *= 1j
    numbers.imag[3] = 7
    return [x, kept, pairs, flat, numbers]


def _gradients(lib: Any, x: Any, y: Any) -> list[Any]:
    """The same in tensors with a history."""
    a = x.clone().requires_grad_()
    b = a * (1 + 2j)
    b.real.mul_(y)
    b.imag[1:] += y[1:]
    lib.view_as_real(b)[0, 0] *= y[1]
    made = (b * b).real
    made += y
    (made.sum() + b.imag.sum()).backward()
    with lib.no_grad():
        a.imag.fill_(5)
    return [b.detach(), a.grad, a.detach()]


@pytest.mark.parametrize("device", _DEVICES)
@pytest.mark.parametrize("program", [_parts, _gradients])
def test_parts_of_complex_tensors(program, device):
    pytest.importorskip("torch")
    rng = np.random.default_rng()
    data = rng.standard_normal((2, 5)).astype(np.float32)
    numbers = (data[0] + 1j * rng.standard_normal(5)).astype(np.complex64)
    found = program(ours, *[ours.tensor(each, device=device) for each in (numbers, data[1])])
    wanted = program(torch, torch.tensor(numbers), torch.tensor(data[1]))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other.numpy(), rtol=1e-5, atol=1e-5)


def test_parts_are_views():
    x = ours.zeros(3, dtype=ours.complex128)
    real = ours.ones(3)
    assert real.real is real
    assert x.real._base is not None
    x.imag.numpy()[1] = 5  # NumPy's array is the tensor's memory
    assert x.tolist() == [0, 5j, 0]
    x.real[1:].numpy()[0] = 2
    assert x.tolist() == [0, 2 + 5j, 0]
    weight = ours.nn.Parameter(x.real)
    optimizer = ours.optim.SGD([weight], lr=1.0)
    weight.sum().backward()
    optimizer.step()
    assert x.tolist() == [-1, 1 + 5j, -1]
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        x.real.add_(1)
    with ours.no_grad():
        kernel = td.kernel(_set_to_one)
        with pytest.raises(td.errors.AutogradError, match="into a copy"):
            kernel.launch(3, x.real.td)


def _set_to_one(x):
    i = td.grid(1)
    x[i] = 1


def test_parts_in_compiled_functions():
    def step(x, part):
        x.real[0] += 2
        return x.imag, x * 2, part * 2

    compiled = ours.compile(step)
    for at in range(4):
        x = ours.full((3,), 1 + at * 1j)
        y = ours.full((2,), 3 + at * 1j)
        imag, twice, part = compiled(x, y.imag)
        assert x.tolist() == [3 + at * 1j, 1 + at * 1j, 1 + at * 1j]
        assert (imag.tolist(), part.tolist()) == ([at] * 3, [2 * at] * 2)
        assert twice.tolist() == [2 * each for each in x.tolist()]

    @ours.compile
    def write(part):
        part += 1

    with pytest.raises(ValueError, match="read-only"):
        write(ours.zeros(2, dtype=ours.complex64).real)


def _of_numpy(np: Any) -> list[Any]:
    a = np.zeros((2, 3), complex)
    a.real[0, 1] = 1
    a.imag += np.arange(3.0)
    np.real(a)[:, 2] = 8
    a.T.imag[0] = 5
    np.add(a.real, 1, out=a.real)
    a.imag[a.imag > 1] = -1
    a.real.sort(axis=1)
    a.real.flat[2] = 9
    a.imag.put([5], [-7])
    np.fill_diagonal(a.real, 6)
    b = np.arange(9.0).reshape(3, 3)
    np.einsum("ii->i", b)[0] = 100
    np.einsum("ij->ji", b)[0, 1] = -3
    c = np.ones((2, 3), dtype="int8")
    np.einsum(c, [0, 1], [1, 0])[1] = 7
    shared = [
        np.shares_memory(*each)
        for each in ((a, a.real), (a.real, a.imag), (a[1:], a[:1].real), (a.real[1:], a[1:].real))
    ]
    return [a, b, c, np.array(shared), a.imag, a.real.base]


@pytest.mark.parametrize("device", _DEVICES)
def test_parts_of_arrays(device, monkeypatch):
    monkeypatch.setenv("TREADLE_DEVICE", device)
    for one, other in zip(_of_numpy(our_numpy), _of_numpy(np), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="read-only"):
        our_numpy.ones(2).imag[0] = 1


def test_infinite_parts():
    # A sum with `imag * 1j` has NaN beside what is infinite.
    parts = np.array([[np.inf, 1, np.nan, -0.0], [1, -np.inf, 2, 0.0]])
    wanted = parts[0] + 0j
    wanted.imag = parts[1]
    one, other = (ours.tensor(each) for each in parts)
    x = ours.zeros(4, dtype=ours.complex128)
    x.real, x.imag = one, other
    a = our_numpy.zeros(4, complex)
    a.real, a.imag = our_numpy.array(parts[0]), our_numpy.array(parts[1])
    for found in (ours.complex(one, other), ours.view_as_complex(ours.stack([one, other], -1)),
                  x, a, computed_views.complex_of(one.td, other.td)):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(found), wanted)
    data = np.array([complex(np.inf, 1), complex(2, np.nan)])
    for library in (our_numpy, td):
        found = library.nan_to_num(library.asarray(data), posinf=np.inf)
        assert np.asarray(found).tolist() == [complex(np.inf, 1), 2]


def test_einsum_views():
    x = ours.arange(6.0).view(2, 3)
    ours.einsum("ij->ji", x)[2, 0] = 7
    assert x[0, 2] == 7
    square = ours.arange(4.0).view(2, 2).requires_grad_()
    (ours.einsum("ii->i", square) * ours.tensor([2.0, 3.0])).sum().backward()
    assert square.grad.tolist() == [[2, 0], [0, 3]]


# --- parameters and files ------------------------------------------------------------------------


def _parameters(lib: Any) -> list[Any]:
    x = lib.arange(6.0).view(2, 3)
    row, turned = lib.nn.Parameter(x[0]), lib.nn.Parameter(x.t())
    optimizer = lib.optim.SGD([row, turned], lr=1.0, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        ((row * row).sum() + turned.sum()).backward()
        optimizer.step()
    with lib.no_grad():
        row[1] = 26
    module = lib.nn.Module()
    module.weight = lib.nn.Parameter((x * 2)[1:])
    module.double()
    return [x, row.detach(), turned.grad, module.weight.detach()]


def test_parameters_share_memory():
    pytest.importorskip("torch")
    for one, other in zip(_parameters(ours), _parameters(torch), strict=True):
        assert np.array_equal(one.numpy(), other.numpy())
    y = ours.ones(3, requires_grad=True) * 2
    weight = ours.nn.Parameter(y[1:])
    weight.sum().backward()
    assert (weight.is_leaf, weight.grad.tolist()) == (True, [1, 1])


def _saved(lib: Any) -> io.BytesIO:
    v = lib.arange(6.0)
    weight = lib.nn.Parameter(v.view(2, 3))
    file = io.BytesIO()
    lib.save([v, v[:3], v.view(2, 3).t(), v[1::2], weight, lib.zeros(0, 3), v[2].expand(3)], file)
    file.seek(0)
    return file


def _changed(lib: Any, file: io.BytesIO) -> list[Any]:
    found = lib.load(file)
    found[0][1] = 99
    found[2][1, 1] = 55
    with lib.no_grad():
        found[4][0, 2] = -1
    return [each.detach().numpy() for each in found]


@pytest.mark.parametrize("way", ["ours to ours", "torch to ours", "ours to torch"])
def test_files_keep_what_shares_memory(way):
    pytest.importorskip("torch")
    libs = {"ours": ours, "torch": torch}
    writer, _, reader = way.partition(" to ")
    wanted = _changed(torch, _saved(torch))
    for one, other in zip(_changed(libs[reader], _saved(libs[writer])), wanted, strict=True):
        assert np.array_equal(one, other)


def test_files_name_devices():
    file = io.BytesIO()
    if td.is_available("webgpu"):
        ours.save({"x": ours.ones(2, device="webgpu")}, file)
        file.seek(0)
        assert ours.load(file)["x"].device.type == "webgpu"
        file.seek(0)
        assert ours.load(file, map_location="cpu")["x"].device.type == "cpu"
        file.seek(0)
        assert ours.load(file, map_location={"webgpu": "cpu"})["x"].device.type == "cpu"
    file = io.BytesIO()
    ours.save(ours.ones(2), file)
    elsewhere = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(elsewhere, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"cpu", b"hpu"))
    elsewhere.seek(0)
    with pytest.raises(RuntimeError, match=r"'hpu'.*map_location=\"cpu\""):
        ours.load(elsewhere)
    elsewhere.seek(0)
    assert ours.load(elsewhere, map_location="cpu").tolist() == [1, 1]


def test_the_cpu_is_no_card(monkeypatch):
    if td.is_available("cuda"):
        pytest.skip("there is a card")
    monkeypatch.setenv("TREADLE_TORCH_CUDA", "cpu")
    x = ours.ones(2, device="cuda")
    assert (x.device.type, x.is_cuda, ours.cuda.is_available()) == ("cpu", False, False)


def _sparse(lib: Any) -> list[Any]:
    indices = lib.tensor([[0, 1, 1]])
    return [
        lib.sparse_coo_tensor(indices, lib.tensor([1.0, 2.0, 3.0]), (3,)),
        lib.eye(3).to_sparse(), lib.eye(3).to_sparse_csr(), lib.eye(3)[1:].to_sparse_csc(),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("way", ["ours to ours", "torch to ours", "ours to torch"])
def test_files_of_sparse_tensors(way):
    pytest.importorskip("torch")
    libs = {"ours": ours, "torch": torch}
    writer, _, reader = way.partition(" to ")
    file = io.BytesIO()
    libs[writer].save(_sparse(libs[writer]), file)
    file.seek(0)
    for found, wanted in zip(libs[reader].load(file), _sparse(ours), strict=True):
        assert str(found.layout) == str(wanted.layout)
        assert found.to_dense().tolist() == wanted.to_dense().tolist()
    if way == "ours to ours":
        again = pickle.loads(pickle.dumps(_sparse(ours)))
        assert [each.layout for each in again] == [each.layout for each in _sparse(ours)]
        assert again[0].to_dense().tolist() == [1, 5, 0]


def test_deep_copies_share_memory():
    v = ours.arange(4.0)
    module = ours.nn.Module()
    module.weight = ours.nn.Parameter(v.view(2, 2))
    module.register_buffer("all", v)
    made = copy.deepcopy(module)
    with ours.no_grad():
        made.weight[0, 0] = 7
    assert (made.all.tolist(), v.tolist()) == ([7, 1, 2, 3], [0, 1, 2, 3])
    assert type(made.state_dict()) is OrderedDict


def test_data_and_layers_that_are_views():
    x = ours.arange(6.0)
    old = x.data
    x.data = ours.zeros(2, dtype=ours.float64)
    assert (x.tolist(), x.dtype, old.tolist()) == ([0, 0], ours.float64, [0, 1, 2, 3, 4, 5])
    ours.nn.Flatten()(old.view(1, 2, 3))[0, 1] = 9
    assert old[1] == 9
