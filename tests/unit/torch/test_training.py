"""treadle.torch for training: data, mixed precision, compiled functions, cards, comparisons."""

import warnings

import numpy as np
import pytest

import treadle.torch as torch
from treadle.torch.utils import data


class _Items(data.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return {"x": torch.ones(3) * i, "i": i, "f": i / 2, "n": np.full(2, i, np.float32)}, str(i)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches(workers):
    (first, names), (second, _) = data.DataLoader(_Items(), 3, num_workers=workers)
    assert first["x"].tolist() == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
    assert (first["i"].dtype, first["f"].dtype) == (torch.int64, torch.float64)
    assert (tuple(names), second["n"].tolist()) == (("0", "1", "2"), [[3.0, 3.0], [4.0, 4.0]])


def test_rows_and_samplers():
    pairs = data.TensorDataset(torch.arange(7).float(), torch.arange(7))
    generator = torch.Generator().manual_seed(1)
    loader = data.DataLoader(pairs, batch_size=3, shuffle=True, generator=generator, num_workers=1)
    rows = [(x.tolist(), y.tolist()) for x, y in loader]
    assert [x for x, _ in rows] == [y for _, y in rows]
    assert sorted(each for _, y in rows for each in y) == list(range(7))
    first, second = data.random_split(pairs, [0.6, 0.4], generator)
    assert (len(first), len(second)) == (5, 2)
    weighted = data.WeightedRandomSampler(torch.tensor([0.0, 1.0, 0.0]), 4)
    assert list(weighted) == [1, 1, 1, 1]
    sampler = data.BatchSampler(data.SequentialSampler(pairs), 3, True)
    assert [y.tolist() for _, y in data.DataLoader(pairs, batch_sampler=sampler)] == [
        [0, 1, 2], [3, 4, 5],
    ]  # fmt: skip
    assert len(pairs + pairs) == 14
    stacked = data.StackDataset(a=range(3), b="xyz")
    assert stacked[1] == {"a": 1, "b": "y"}


def test_that_items_that_make_no_batch_say_so():
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([torch.ones(2), torch.ones(3)])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([(1,), (1, 2)])
    with pytest.raises(TypeError):
        data.default_collate([object()])


class _Momentum(torch.optim.Optimizer):
    """An optimizer as programs write them."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"], state["average"] = 0, torch.zeros_like(p)
                state["step"] += 1
                state["average"].mul_(0.5).add_(p.grad)
                p.add_(state["average"], alpha=-group["lr"])


def test_an_optimizer_of_a_program():
    p = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = _Momentum([p], 0.25)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
        schedule.step()
    # -0.25 * 2 p; then -0.125 * (2 p / 2 of before + 2 p)
    assert p.tolist() == [0.5 - 0.125 * (1 + 1), -1.0 + 0.125 * (2 + 2)]
    other = _Momentum([p], 0.25)
    other.load_state_dict(optimizer.state_dict())
    assert other.state[p]["step"] == 2
    assert other.state[p]["average"].tolist() == optimizer.state[p]["average"].tolist()
    assert other.state[p]["average"] is not optimizer.state[p]["average"]


def test_groups_and_states_are_those_of_tensors():
    p, q = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.Adam([{"params": [p]}, {"params": q, "lr": 0.5}], lr=0.25)
    assert optimizer.param_groups[0]["params"][0] is p
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5]
    (p.sum() + q.sum()).backward()
    optimizer.param_groups[1]["lr"] = 0.0
    optimizer.step()
    assert (p.numpy(force=True).round(3).tolist(), q.tolist()) == ([0.75, 0.75], [1.0, 1.0])
    assert p in optimizer.state
    optimizer.state[p]["exp_avg"].fill_(0.0)
    assert optimizer.state_dict()["state"][0]["exp_avg"].tolist() == [0.0, 0.0]
    with pytest.raises(NotImplementedError, match="Adam"):
        torch.optim.SparseAdam([p])


def test_scaled_gradients():
    for kind in (torch.optim.SGD, _Momentum):
        p = torch.tensor([1.0], requires_grad=True)
        optimizer, scaler = kind([p], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
        for factor in (1.0, float("inf")):
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        assert (p.tolist(), scaler.get_scale()) == ([0.5], 4.0)


def test_autocast():
    layer = torch.nn.Linear(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.is_autocast_enabled()
        assert layer(torch.ones(1, 2)).dtype is torch.bfloat16
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="there is none"), torch.cuda.amp.autocast():
            assert not torch.is_autocast_enabled()


def test_compiled_functions():
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.25)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = (layer(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    x = torch.ones(1, 2)
    losses = [step(x)["loss"].item() for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]
    compiled = torch.compile(layer)
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    with torch.no_grad():
        assert torch.equal(compiled(x), layer(x))
    compiled(x).sum().backward()


def test_another_device_as_cuda(monkeypatch):
    if torch.cuda.is_available():
        return
    with pytest.raises(RuntimeError, match="TREADLE_TORCH_CUDA"):
        torch.ones(2, device="cuda")
    monkeypatch.setenv("TREADLE_TORCH_CUDA", "cpu")
    assert not torch.cuda.is_available()  # tensors on "cuda" say that they are the CPU's
    x = torch.ones(2).to("cuda:0")
    assert (x * 2).sum().item() == 4.0
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    assert start.elapsed_time(end) >= 0.0
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() >= 0
    assert torch.cuda.get_device_name(0)


def test_comparisons():
    torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0 + 1e-7))
    torch.testing.assert_close([torch.ones(2), 1.5], [torch.ones(2), 1.5])
    nan = torch.tensor([float("nan")])
    torch.testing.assert_close(nan, nan, equal_nan=True)
    for one, other, words in (
        (torch.ones(2), torch.tensor([1.0, 2.0]), r"1 / 2 \(50.0%\)"),
        (torch.ones(2), torch.ones(3), "shape"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "dtype"),
        ({"a": [nan]}, {"a": [nan]}, r"item \['a'\]"),
        ({"a": 1}, {"b": 1}, "keys"),
        (1, 2, "Scalars"),
    ):
        with pytest.raises(AssertionError, match=words):
            torch.testing.assert_close(one, other)
    made = torch.testing.make_tensor((2, 3), dtype=torch.int32, low=2, high=4)
    assert made.dtype is torch.int32
    assert set(made.flatten().tolist()) <= {2, 3}


def test_switches():
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.get_float32_matmul_precision() == "high"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not torch.backends.mps.is_available()
    for name in ("jit", "hub"):
        with pytest.raises(AttributeError, match=name):
            getattr(torch, name)
