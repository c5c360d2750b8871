"""Datasets, samplers and loaders: the same batches whoever makes them, and where they come from."""

from __future__ import annotations

import collections
import contextlib
import gc
import io
import itertools
import threading

import numpy as np
import pytest
from rich.console import Console

import treadle as td
from treadle.data import DataLoader, TensorDataset

try:
    import torch
    import torch.utils.data
except ImportError:
    torch = None

Point = collections.namedtuple("Point", "x y")


class Squares(td.data.Dataset):
    """Items that are made one by one."""

    def __init__(self, size, fail_at=None):
        self.size, self.fail_at = size, fail_at

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index == self.fail_at:
            raise KeyError(f"no square {index}")
        return np.float32(index * index), {"name": f"item {index}", "index": index}


class Count(td.data.IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(range(self.size))


def plain(batch):
    """A batch without tensors, to compare."""
    if isinstance(batch, td.Tensor):
        return batch.dtype, batch.tolist()
    if isinstance(batch, dict):
        return {key: plain(value) for key, value in batch.items()}
    return [plain(one) for one in batch] if isinstance(batch, (list, tuple)) else batch


def threads():
    return [one for one in threading.enumerate() if one.name.startswith("DataLoader")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    if threads():
        gc.collect()
    assert not threads()


# --- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_are_the_same_for_any_number_of_workers(workers, device):
    loader = DataLoader(
        Squares(23), 5, shuffle=True, num_workers=workers, generator=4, prefetch_factor=3
    )
    alone = DataLoader(Squares(23), 5, shuffle=True, generator=4)
    for _ in range(2):
        batches, expected = list(loader), list(alone)
        assert plain(batches) == plain(expected)
        assert len(batches) == len(loader) == 5
        assert batches[0][0].device is device
        numbers = [i for _, more in batches for i in more["index"].tolist()]
        assert sorted(numbers) == list(range(23))
        assert numbers != sorted(numbers)


def test_a_batch_of_arrays_is_taken_at_once_with_the_same_result(device, rng):
    data = TensorDataset(
        rng.normal(size=(11, 2, 3)).astype(np.float32),
        np.arange(11, dtype=np.int32),
        td.asarray(rng.normal(size=(11, 4)).astype(np.float32)),
        rng.normal(size=11) > 0,
    )
    part = td.data.Subset(data, [9, 3, 4, 0, 8])
    for dataset in (data, part):
        at_once = DataLoader(dataset, 3, shuffle=True, generator=1, num_workers=1)
        singly = DataLoader(
            dataset, 3, shuffle=True, generator=1, collate_fn=lambda b: td.data.default_collate(b)
        )
        assert plain(list(at_once)) == plain(list(singly))
    assert [len(x) for x, *_ in DataLoader(data, 4, drop_last=True)] == [4, 4]
    with pytest.raises(IndexError, match="of a dataset of 11"):
        list(DataLoader(data, 2, sampler=[0, 11]))


def test_batches_go_to_the_device_that_is_named(device):
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    with td.use_device("cpu"):
        mine = td.asarray([1.0, 2.0, 3.0])
        for workers in (0, 2):
            loader = DataLoader(TensorDataset(array, mine), 2, num_workers=workers, device=device)
            for rows, values in loader:
                assert rows.device is values.device is device
            custom = DataLoader(
                Squares(3), 2, num_workers=workers, device=device,
                collate_fn=lambda items: {"x": np.stack([x for x, _ in items])},
            )  # fmt: skip
            assert [batch["x"].device for batch in custom] == [device, device]
    (rows, values), _ = DataLoader(TensorDataset(array, mine), 2)
    assert (rows.device, values.device) == (device, td.device("cpu"))


def test_collate_of_everything(device):
    item = {
        "number": 2.5, "count": 3, "truth": True, "text": "a", "raw": b"b",
        "array": np.ones(2, np.float32), "scalar": np.float32(4), "tensor": td.ones(3),
        "point": Point(1.0, 2.0), "pair": (1, [2.0]),
    }  # fmt: skip
    batch = td.data.default_collate([item, item])
    default = td.asarray([1]).dtype
    assert plain(batch) == {
        "number": (td.float32, [2.5, 2.5]), "count": (default, [3, 3]),
        "truth": (td.bool, [True, True]), "text": ["a", "a"], "raw": [b"b", b"b"],
        "array": (td.float32, [[1, 1], [1, 1]]), "scalar": (td.float32, [4, 4]),
        "tensor": (td.float32, [[1, 1, 1]] * 2),
        "point": [(td.float32, [1, 1]), (td.float32, [2, 2])],
        "pair": [(default, [1, 1]), [(td.float32, [2, 2])]],
    }  # fmt: skip
    assert isinstance(batch["point"], Point)
    counter = td.data.default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
    assert type(counter) is collections.OrderedDict
    for bad, message in [
        ([np.ones(2), np.ones(3)], "shapes"), ([[1], [1, 2]], "lengths"),
    ]:  # fmt: skip
        with pytest.raises(td.errors.ShapeError, match=message):
            td.data.default_collate(bad)
    with pytest.raises(TypeError, match="collate_fn"):
        td.data.default_collate([object()])


def test_items_without_batches(device):
    loader = DataLoader(Squares(3), batch_size=None, num_workers=2)
    items = list(loader)
    assert [plain(x) for x, _ in items] == [(td.float32, 0), (td.float32, 1), (td.float32, 4)]
    assert [more["index"] for _, more in items] == [0, 1, 2]
    assert list(DataLoader(Count(3), batch_size=None)) == [0, 1, 2]


@pytest.mark.parametrize("workers", [0, 3])
def test_a_stream_comes_once_and_in_order(workers, device):
    loader = DataLoader(Count(11), 4, num_workers=workers)
    for _ in range(2):
        assert [x.tolist() for x in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert loader.epoch == 2
    assert len(list(DataLoader(Count(11), 4, drop_last=True, num_workers=workers))) == 2
    assert list(DataLoader(Count(0), 4, num_workers=workers)) == []
    with pytest.raises(TypeError, match="len"):
        len(loader)


# --- what can go wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_an_item_reaches_the_loop_with_its_place(workers):
    epoch = iter(DataLoader(Squares(9, fail_at=7), 2, num_workers=workers, device="cpu"))
    for _ in range(3):
        next(epoch)
    with pytest.raises(KeyError, match="no square 7") as failure:
        next(epoch)
    assert any("__getitem__" in str(entry) for entry in failure.traceback)
    (note,) = failure.value.__notes__
    assert "batch 3" in note
    assert "item 7" in note
    assert ("worker" in note) == (workers > 0)
    assert not threads()
    with pytest.raises(StopIteration):
        next(epoch)


def test_an_item_cannot_end_the_loop_unseen():
    class Ended(Squares):
        def __getitem__(self, index):
            return next(iter(()))

    for workers in (0, 1):
        with pytest.raises(RuntimeError, match="StopIteration"):
            list(DataLoader(Ended(2), num_workers=workers))


def test_a_stream_that_fails_says_so():
    def broken():
        yield from range(5)
        raise OSError("the disk is gone")

    class Broken(td.data.IterableDataset):
        def __iter__(self):
            return broken()

    for workers in (0, 2):
        taken = []
        with pytest.raises(OSError, match="disk is gone"):
            taken.extend(x.tolist() for x in DataLoader(Broken(), 2, num_workers=workers))
        assert taken in ([], [[0, 1], [2, 3]])  # extend keeps what came, or not


def test_leaving_the_loop_stops_the_workers():
    loader = DataLoader(Squares(1000), 2, num_workers=3, device="cpu")
    for _ in loader:
        assert threads()
        break
    gc.collect()
    assert not threads()
    try:
        for _ in loader:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    gc.collect()
    assert not threads()
    for one, two in zip(loader, loader, strict=True):
        assert plain(one) == plain(two)
        break


def test_a_slow_batch_is_a_timeout():
    gate = threading.Event()

    class Slow(Squares):
        def __getitem__(self, index):
            gate.wait(20)
            return index

    epoch = iter(DataLoader(Slow(4), num_workers=1, timeout=0.05, device="cpu"))
    threading.Timer(0.6, gate.set).start()
    with pytest.raises(TimeoutError, match="batch 0"):
        next(epoch)


def test_workers_know_which_they_are():
    seen = []
    loader = DataLoader(
        Squares(8), num_workers=2, device="cpu",
        worker_init_fn=lambda i: seen.append((i, td.data.get_worker_info())),
    )  # fmt: skip
    list(loader)
    assert sorted(i for i, _ in seen) == [0, 1]
    assert all(i == info.id and info.num_workers == 2 for i, info in seen)
    assert td.data.get_worker_info() is None

    def refuse(i):
        raise PermissionError("not today")

    with pytest.raises(PermissionError, match="not today"):
        list(DataLoader(Squares(8), num_workers=2, device="cpu", worker_init_fn=refuse))


def test_arguments_that_contradict_each_other():
    data = Squares(4)
    for options in (
        {"sampler": [1], "shuffle": True}, {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "drop_last": True}, {"batch_size": 0},
        {"batch_size": None, "drop_last": True}, {"num_workers": -1}, {"prefetch_factor": 0},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"."):
            DataLoader(data, **options)
    with pytest.raises(ValueError, match="order of its own"):
        DataLoader(Count(3), shuffle=True)
    with pytest.raises(td.errors.ShapeError, match="one length"):
        TensorDataset(np.ones(3), np.ones(4))


def test_a_worker_leaves_alone_what_the_loop_has_written(device):
    state = td.zeros(3).realize()
    state += 1  # is computed with what this thread computes next
    batches = list(DataLoader(TensorDataset(td.ones((4, 2))), 2, num_workers=1))
    assert state._cell.value.array is None
    assert [x.tolist() for (x,) in batches] == [[[1, 1], [1, 1]]] * 2
    assert state.tolist() == [1, 1, 1]


# --- order, and going on -------------------------------------------------------------------------


def loaders():
    """Loaders of each kind, made anew at each call with the same seeds."""
    data = Squares(13)
    seed = td.Generator(5)
    yield DataLoader(data, 3, shuffle=True, generator=seed, device="cpu")
    yield DataLoader(data, 3, shuffle=True, num_workers=2, generator=7, device="cpu")
    yield DataLoader(data, 3, shuffle=True, device="cpu")  # of the default generator
    yield DataLoader(data, 3, device="cpu")
    yield DataLoader(Count(13), 3, num_workers=2, device="cpu")
    weights = td.data.WeightedRandomSampler(np.arange(13), 10, generator=td.Generator(8))
    yield DataLoader(data, 4, sampler=weights, num_workers=1, device="cpu")
    chosen = td.data.RandomSampler(data, replacement=True, num_samples=9, generator=3)
    yield DataLoader(data, batch_sampler=td.data.BatchSampler(chosen, 2, True), device="cpu")


@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize("stop_at", [0, 2, "end"])
def test_a_loader_goes_on_where_it_was(which, stop_at, tmp_path):
    td.manual_seed(11)
    first = next(itertools.islice(loaders(), which, None))
    list(first)
    epoch = iter(first)
    for _ in range(len(list(epoch)) if stop_at == "end" else stop_at):
        next(epoch, None)
    td.save(first.state_dict(), tmp_path / "loader.safetensors")
    rest = [list(epoch), list(first), list(first)]

    td.manual_seed(99)
    second = next(itertools.islice(loaders(), which, None))
    second.load_state_dict(td.load(tmp_path / "loader.safetensors"))
    if stop_at == "end":
        rest.pop(0)  # nothing is left of that epoch, and the loader stands at the next one
    resumed = [list(second) for _ in rest]
    assert plain(resumed) == plain(rest)
    assert second.epoch == first.epoch


def test_going_on_leaves_other_draws_of_the_generator_alone():
    td.manual_seed(3)
    loader = DataLoader(Squares(8), 2, shuffle=True, device="cpu")
    epoch = iter(loader)
    next(epoch)
    td.random.uniform(2, device="cpu")  # as dropout does
    state = loader.state_dict()
    expected = td.random.uniform(2, device="cpu").tolist()
    td.manual_seed(4)
    other = DataLoader(Squares(8), 2, shuffle=True, device="cpu")
    other.load_state_dict(state)
    rest = list(other)
    assert td.random.uniform(2, device="cpu").tolist() == expected
    assert plain(rest) == plain(list(epoch))


def test_a_state_of_another_loader_is_refused():
    state = DataLoader(Squares(8), 2, shuffle=True).state_dict()
    with pytest.raises(ValueError, match="one with 4"):
        DataLoader(Squares(8), 4, shuffle=True).load_state_dict(state)
    with pytest.raises(ValueError, match="generators"):
        DataLoader(Squares(8), 2).load_state_dict(state)


def test_samplers_draw_what_they_say():
    order = list(td.data.RandomSampler(range(100), generator=1))
    assert sorted(order) == list(range(100))
    assert order == list(td.data.RandomSampler(range(100), generator=td.Generator(1)))
    assert order != list(td.data.RandomSampler(range(100), generator=2))
    assert len(list(td.data.RandomSampler(range(4), num_samples=10))) == 10
    many = list(td.data.RandomSampler(range(4), True, 4000, generator=1))
    assert np.all(np.abs(np.bincount(many, minlength=4) - 1000) < 150)
    assert sorted(td.data.SubsetRandomSampler([3, 5, 9], generator=1)) == [3, 5, 9]

    weights = np.array([0.0, 1.0, 3.0, 0.0])
    picked = np.bincount(list(td.data.WeightedRandomSampler(weights, 4000, generator=1)))
    assert picked[0] == 0
    assert picked.size == 3
    assert abs(picked[2] / 4000 - 0.75) < 0.05
    firsts = [
        next(iter(td.data.WeightedRandomSampler(weights, 2, False, generator=i)))
        for i in range(300)
    ]
    assert abs(np.mean(np.array(firsts) == 2) - 0.75) < 0.12
    assert set(firsts) == {1, 2}
    for bad in (([1.0, -1.0], 1, True), ([0.0], 1, True), ([1.0], 0, True), (weights, 3, False)):
        with pytest.raises(ValueError, match=r"."):
            td.data.WeightedRandomSampler(*bad)


def test_datasets_of_datasets():
    both = Squares(3) + Squares(2)
    assert [more["index"] for _, more in (both[i] for i in range(5))] == [0, 1, 2, 0, 1]
    assert both[-1][1]["index"] == 1
    with pytest.raises(IndexError):
        both[5]
    parts = td.data.random_split(range(10), [0.55, 0.25, 0.2], generator=1)
    assert [len(part) for part in parts] == [6, 2, 2]
    assert sorted(i for part in parts for i in part) == list(range(10))
    assert [len(part) for part in td.data.random_split(range(3), [1, 2])] == [1, 2]
    with pytest.raises(ValueError, match="add up"):
        td.data.random_split(range(3), [1, 1])


if torch is not None:

    def test_the_batches_of_pytorch():
        inputs, labels = np.arange(14, dtype=np.float32).reshape(7, 2), np.arange(7)
        ours = DataLoader(TensorDataset(inputs, labels), 3, device="cpu")
        theirs = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(torch.asarray(inputs), torch.asarray(labels)), 3
        )
        for mine, other in zip(ours, theirs, strict=True):
            assert type(mine) is type(other)
            assert [x.tolist() for x in mine] == [x.tolist() for x in other]
        for options in ({}, {"drop_last": True}, {"batch_size": None}):
            options = {"batch_size": 3} | options
            mine = DataLoader(Squares(7), **options, device="cpu")
            other = torch.utils.data.DataLoader(Squares(7), **options)
            assert len(mine) == len(other) == len(list(mine))
        lengths = [0.3, 0.3, 0.4]
        split = torch.utils.data.random_split(range(11), lengths)
        mine = td.data.random_split(range(11), lengths)
        assert [len(one) for one in mine] == [len(one) for one in split]


# --- progress ------------------------------------------------------------------------------------


def test_progress_is_shown_to_people_alone():
    def run(**options):
        out = io.StringIO()
        console = Console(file=out, width=120, **options.pop("console", {}))
        batches = td.data.progress([1, 2, 3], "epoch 1 [x]", console=console, **options)
        for batch in batches:
            batches.set(loss=td.asarray(float(batch), device="cpu") / 2, lr=0.1)
        assert len(batches) == 3
        return out.getvalue()

    assert run() == ""
    assert run(show=False, console={"force_terminal": True}) == ""
    for shown in (run(show=True), run(console={"force_terminal": True})):
        assert "epoch 1 [x]" in shown
        assert "3/3" in shown
        assert "loss 1.5  lr 0.1" in shown


def test_progress_of_what_has_no_length_and_what_raises():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    assert list(td.data.progress(iter("ab"), console=console)) == ["a", "b"]
    with contextlib.suppress(ZeroDivisionError):
        for _ in td.data.progress([1], console=console):
            raise ZeroDivisionError
    assert list(td.data.progress([1, 2], console=console)) == [1, 2]


# --- a whole run ---------------------------------------------------------------------------------


class Run:
    """A training with everything that has a state."""

    def __init__(self, seed):
        self.draws = td.manual_seed(seed)
        nn = td.nn
        self.model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
        self.optimizer = td.optim.AdamW(self.model.parameters(), lr=0.05)
        self.schedule = td.optim.lr_scheduler.StepLR(self.optimizer, 3, 0.5)
        rng = np.random.default_rng(0)
        inputs = rng.normal(size=(22, 3)).astype(np.float32)
        data = TensorDataset(inputs, inputs.sum(axis=1, keepdims=True))
        self.loader = DataLoader(data, 4, shuffle=True, num_workers=1)
        self.parts = {
            "model": self.model, "optimizer": self.optimizer, "schedule": self.schedule,
            "loader": self.loader,
        }  # fmt: skip

    def step(self, x, y):
        loss = td.nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


def test_a_dtype_that_the_device_lacks_is_told_with_its_tensor(device, tmp_path):
    path = tmp_path / "a.safetensors"
    td.save({"weight": td.asarray([1.5, 2.0], dtype=td.float64, device="cpu")}, path)
    if "float64" in device.features:
        assert td.load(path)["weight"].device is device
    else:
        with pytest.raises(td.errors.DtypeError, match=r"'weight'.*device=\"cpu\""):
            td.load(path)
    assert td.load(path, device="cpu")["weight"].tolist() == [1.5, 2.0]


def test_a_run_goes_on_from_the_middle_of_an_epoch_to_the_last_bit(device, tmp_path):
    path = tmp_path / "run.safetensors"
    whole, losses = Run(1), []
    for epoch in range(2):
        for number, batch in enumerate(whole.loader):
            losses.append(whole.step(*batch))
            if (epoch, number) == (0, 2):
                state = {name: part.state_dict() for name, part in whole.parts.items()}
                td.save({"parts": state, "draws": whole.draws.get_state()}, path)
    resumed, rest = Run(99), []
    saved = td.load(path)
    for name, part in resumed.parts.items():
        part.load_state_dict(saved["parts"][name])
    resumed.draws.set_state(saved["draws"])
    while resumed.loader.epoch < 2:
        rest += [resumed.step(*batch) for batch in resumed.loader]
    assert rest == losses[3:]
    for mine, other in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert mine.numpy().tobytes() == other.numpy().tobytes()
