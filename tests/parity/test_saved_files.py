"""Files of `torch.save`: what one library writes the other reads."""

from __future__ import annotations

import copy
import io
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import treadle.torch as ours
from tests.parity.comparing import torch
from treadle.core.errors import FormatError


def _state(lib: Any) -> dict[Any, Any]:
    w = lib.arange(6).reshape(2, 3).float()
    return {
        "tensors": {
            "w": w, "tied": w, "t": w.t(), "row": w[1], "empty": lib.zeros(0, 3),
            "number": lib.tensor(2.5, dtype=lib.float64), "flags": lib.tensor([True, False]),
            "half": lib.ones(3, dtype=lib.float16), "wide": lib.tensor([1, 2], dtype=lib.uint16),
            "complex": lib.tensor([1 + 2j]), "bytes": lib.tensor([255], dtype=lib.uint8),
        },
        "brain": lib.ones(3, dtype=lib.bfloat16), "parameter": lib.nn.Parameter(lib.ones(2)),
        "plain": [1, 2**40, -(2**70), 1.5, None, True, "é", b"\x00\xff", 3 + 1j, (1,), ()],
        "ordered": OrderedDict(a=1), "set": {1, 2}, "dtype": lib.float16, "size": w.shape,
        "device": lib.device("cuda", 1), 3: {"x": lib.tensor(1)},
    }  # fmt: skip


def _through(save: Any, load: Any, state: Any) -> Any:
    file = io.BytesIO()
    save(state, file)
    file.seek(0)
    return load(file)


def _archive(pickled: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/data/0", b"\0" * 8)
    file.seek(0)
    return file


def _check(found: Any, lib: Any) -> None:
    wanted = _state(lib)
    for name, value in wanted["tensors"].items():
        np.testing.assert_array_equal(found["tensors"][name].numpy(), value.numpy(), name)
    assert str(found["brain"].dtype).endswith("bfloat16")
    assert found["parameter"].requires_grad
    assert found["plain"] == wanted["plain"]
    assert type(found["ordered"]) is OrderedDict
    assert found["set"] == {1, 2}
    assert tuple(found["size"]) == (2, 3)
    assert str(found["device"]) == "cuda:1"
    assert found[3]["x"].item() == 1


def test_own_files(tmp_path):
    _check(_through(ours.save, ours.load, _state(ours)), ours)
    for name in ("state.pt", "state.safetensors"):
        ours.save(_state(ours)["tensors"], tmp_path / name)
        found = ours.load(tmp_path / name, map_location="cpu")
        assert found["t"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        ours.save({"f": [lambda: 1]}, io.BytesIO())
    with pytest.raises(ValueError, match="pickle_module"):
        ours.save([], io.BytesIO(), pickle_module=io)


class Net(ours.nn.Module):
    """A module of a program's, with all that modules hold."""

    def __init__(self) -> None:
        super().__init__()
        self.first = ours.nn.Linear(4, 3)
        self.cells = ours.nn.LSTM(3, 2, batch_first=True)
        self.norm = ours.nn.BatchNorm1d(5)
        self.activation, self.axpy = ours.nn.functional.relu, ours.add
        self.scale = ours.nn.Parameter(ours.ones(2))
        self.scale.note = "s"
        self.tied = self.first.weight
        self.register_buffer("mask", ours.tensor([1.0, 0.0]))
        self.kinds = ours.float16, self.mask.shape, np.float32(2.5), np.arange(3)

    def forward(self, x: Any) -> Any:
        y, _ = self.cells(self.activation(self.norm(self.first(x))))
        return self.axpy(y * self.scale, self.mask)


def _trained() -> Any:
    model = Net()
    optimizer = ours.optim.Adam(model.parameters(), lr=0.1)
    schedule = ours.optim.lr_scheduler.StepLR(optimizer, 1)
    _step(model, optimizer)
    schedule.step()
    return {"model": model, "optimizer": optimizer, "schedule": schedule}


def _step(model: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    model(ours.arange(40).reshape(2, 5, 4) / 40).square().sum().backward()
    optimizer.step()


def test_whole_objects(tmp_path):
    saved = _trained()
    path = tmp_path / "whole.pt"
    ours.save(saved, path)
    with pytest.raises(pickle.UnpicklingError, match=r"Net, which is not loaded.*weights_only="):
        ours.load(path)
    found = ours.load(path, weights_only=False)
    model, optimizer = found["model"], found["optimizer"]
    assert type(model) is Net
    assert model.tied is model.first.weight
    assert optimizer.param_groups[0]["params"][0] is model.scale
    assert found["schedule"].optimizer is optimizer
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
    assert isinstance(model.scale, ours.nn.Parameter)
    assert model.scale.note == "s"
    assert model.kinds[:3] == saved["model"].kinds[:3]
    assert type(model.kinds[2]) is np.float32
    for each in (saved, found):
        _step(each["model"], each["optimizer"])
    for name, value in saved["model"].state_dict().items():
        np.testing.assert_array_equal(model.state_dict()[name].numpy(), value.numpy(), name)


def test_containers_that_share_and_contain_themselves():
    shared = [ours.ones(2)]
    ring: dict[str, Any] = {"a": shared, "b": shared, "bytes": bytearray(b"x")}
    ring["self"] = ring
    found = _through(ours.save, ours.load, ring)
    assert found["self"] is found
    assert found["a"] is found["b"]
    assert found["bytes"] == bytearray(b"x")


def test_admitted_names():
    admitted = [Net, ours.nn.Identity, (set, "builtins.set"), set]
    with ours.serialization.safe_globals(admitted):
        assert isinstance(_through(ours.save, ours.load, ours.nn.Identity()), ours.nn.Identity)
        assert Net in ours.serialization.get_safe_globals()
    assert ours.serialization.get_safe_globals() == []
    with pytest.raises(pickle.UnpicklingError, match=r"treadle\.torch\.nn\.Identity"):
        _through(ours.save, ours.load, ours.nn.Identity())


def test_copies_of_a_module_and_its_optimizer():
    model, optimizer = copy.deepcopy(list(_trained().values())[:2])
    assert model.tied is model.first.weight
    assert optimizer.param_groups[0]["params"][0] is model.scale
    again = pickle.loads(pickle.dumps(model))
    assert again.tied is again.first.weight
    assert again.activation is ours.nn.functional.relu


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps(print),
        b"cos\nsystem\n(X\x04\x00\x00\x00truetR.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NI0\nttN\x89NtR.",
        b"\x80\x02}(U\x01a",  # cut off
        b"",
    ],
)
def test_that_nothing_in_a_file_runs(pickled):
    with pytest.raises(FormatError):
        ours.load(_archive(pickled))


def test_that_elements_outside_of_a_file_are_refused():
    head = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage"
    head += b"ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ"
    for offset, extent, stride in ((0, 3, 1), (2, 1, 1), (0, 2, 2)):
        body = f"I{offset}\n(I{extent}\nt(I{stride}\nt".encode() + b"\x89NtR."
        with pytest.raises(FormatError):
            ours.load(_archive(head + body))
    assert ours.load(_archive(head + b"I1\n(I1\nt(I1\nt\x89NtR.")).tolist() == [0.0]


if torch is not None:

    @pytest.mark.parametrize("way", ["ours to theirs", "theirs to ours"])
    def test_exchange(way):
        if way == "ours to theirs":
            load = lambda file: torch.load(file, weights_only=True)  # noqa: E731
            _check(_through(ours.save, load, _state(ours)), torch)
        else:
            _check(_through(torch.save, ours.load, _state(torch)), ours)

    def test_checkpoints():
        def made(lib):
            model = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
            return model, lib.optim.Adam(model.parameters())

        model, optimizer = made(torch)
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        mine, own = made(ours)
        found = _through(torch.save, ours.load, state)
        mine.load_state_dict(found["model"])
        own.load_state_dict(found["optimizer"])
        back = _through(
            ours.save, torch.load, {"model": mine.state_dict(), "optimizer": own.state_dict()}
        )
        for name, value in state["model"].items():
            assert torch.equal(back["model"][name], value), name
        model.load_state_dict(back["model"])
        optimizer.load_state_dict(back["optimizer"])

    def test_modules_that_pytorch_has_saved():
        def load(file):
            return ours.load(file, weights_only=False)

        nn = torch.nn
        attention = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
        for module, shape in (
            (nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.Dropout(), nn.Flatten()), (5, 4)),
            (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.MaxPool2d(2)), (1, 2, 7, 7)),
            (nn.LSTM(3, 2, 2, bidirectional=True), (4, 2, 3)),
            (attention, (2, 3, 4)),
        ):
            module.eval()
            with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\."):
                _through(torch.save, ours.load, module)
            mine = _through(torch.save, load, module)
            x = np.random.default_rng().standard_normal(shape).astype(np.float32)
            found, wanted = mine(ours.tensor(x)), module(torch.tensor(x))
            if isinstance(found, tuple):
                found, wanted = found[0], wanted[0]
            np.testing.assert_allclose(found.detach(), wanted.detach(), rtol=1e-4, atol=1e-5)
        assert repr(mine) == repr(module)
        module.register_forward_hook(print)
        with pytest.raises(RuntimeError, match="with hooks"):
            _through(torch.save, load, module)
