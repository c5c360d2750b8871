"""Memory that others see: whoever writes it, and whenever, it never shows that tensors are lazy."""

from __future__ import annotations

import gc
import pickle
import threading

import numpy as np
import pytest

import treadle as td

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.filterwarnings("ignore:.*not writ:UserWarning")


@td.kernel
def add_one(x):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] + 1


def on_cpu(*shape: int) -> td.Tensor:
    count = int(np.prod(shape))
    return td.asarray(np.arange(count, dtype=np.float32).reshape(shape), device="cpu")


def is_lazy(x: td.Tensor) -> bool:
    """Whether what is made of a tensor waits until it is read."""
    return (x * 2)._cell.value.array is None


WAYS = {"asarray": np.asarray, "from_dlpack": np.from_dlpack}
if torch is not None:
    WAYS["torch"] = lambda x: torch.from_dlpack(x).numpy()


@pytest.fixture(params=WAYS)
def look(request):
    """A way to see a tensor's memory as a NumPy array."""
    return WAYS[request.param]


# --- reading -------------------------------------------------------------------------------------

READERS = {
    "directly": lambda x: x + 1,
    "through a view": lambda x: x[1:] + 1,
    "through two views": lambda x: x[1:][::-1] + 1,
    "in a long chain": lambda x: ((x * 2 + 3) * x - 1) * 0.5,
    "by a copy": lambda x: td.asarray(x, copy=True),
    "as another dtype": lambda x: x.to(td.i32),
    "of a part that is written then": lambda x: x[::2] * 3,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_was_asked_for_before_is_of_before(look, read):
    x = on_cpu(7)
    expected = read(x).tolist()
    pending = read(x)
    seen = look(x)
    seen[:] = -5
    assert pending.tolist() == expected
    assert x.tolist() == [-5] * 7


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_what_is_asked_for_meanwhile_is_of_then(look, read):
    x = on_cpu(7)
    seen = look(x)
    seen += 10
    expected = read(td.asarray(np.arange(10, 17, dtype=np.float32), device="cpu")).tolist()
    pending = read(x)
    seen[:] = -5
    assert pending.tolist() == expected


def test_views_from_before_read_at_once(look):
    x = on_cpu(6)
    part = x[2:]
    turned = part[::-1]
    before = part + 0, turned + 0
    seen = look(x)
    after = part + 0, turned + 0
    seen[:] = 9
    for straight, backwards in (before, after):
        assert straight.tolist() == [2, 3, 4, 5]
        assert backwards.tolist() == [5, 4, 3, 2]
    assert (part + 0).tolist() == [9] * 4


def test_what_is_pending_is_computed_to_be_seen(look):
    x = on_cpu(5) * 2
    x[1] = 50
    x += 1
    seen = look(x[::2])
    assert seen.tolist() == [1, 5, 9]
    seen[1] = -1
    assert x.tolist() == [1, 51, -1, 7, 9]


def test_all_readers_through_one_view_are_found():
    x = on_cpu(4)
    part = x[1:]
    found = []
    for _ in range(3):
        found.append(part * 1)
        add_one.launch(4, x)
    assert [one.tolist() for one in found] == [[1, 2, 3], [2, 3, 4], [3, 4, 5]]


# --- writing -------------------------------------------------------------------------------------


def test_every_way_of_writing_is_seen(look):
    x = on_cpu(2, 3)
    seen = look(x)
    x[0, 1] = 50
    assert seen.tolist() == [[0, 50, 2], [3, 4, 5]]
    x += 1
    assert seen.tolist() == [[1, 51, 3], [4, 5, 6]]
    x[:] = x[::-1]
    assert seen.tolist() == [[4, 5, 6], [1, 51, 3]]
    x[:, 1:] = x[:, :-1]
    assert seen.tolist() == [[4, 4, 5], [1, 1, 51]]
    part = x[1]
    part *= 2
    assert seen.tolist() == [[4, 4, 5], [2, 2, 102]]
    add_one.launch(3, x[0])
    assert seen.tolist() == [[5, 5, 6], [2, 2, 102]]
    x[...] = 0
    assert seen.tolist() == [[0] * 3] * 2


def test_a_kernel_writes_through_their_array(look):
    x = on_cpu(4)
    pending = x + 0
    add_one.launch(2, look(x)[1:3])
    assert x.tolist() == [0, 2, 3, 3]
    assert pending.tolist() == [0, 1, 2, 3]


def test_tensors_of_one_foreign_memory_see_each_other():
    data = np.arange(10, dtype=np.float32)
    whole = td.asarray(data, copy=False, device="cpu")
    part = td.asarray(data[2:8:2], copy=False, device="cpu")
    pending = whole * 1
    part[0] = 20
    assert whole.tolist() == [0, 1, 20, *range(3, 10)]
    whole += 1
    assert part.tolist() == [21, 5, 7]
    data[4] = -1
    assert part.tolist() == [21, -1, 7]
    assert (part * 1).tolist() == [21, -1, 7]
    assert pending.tolist() == list(range(10))
    # And the other way round: a part first.
    data = np.zeros(6, np.float32)
    part, whole = td.from_dlpack(data[3:]), td.from_dlpack(data)
    part[:] = 2
    assert whole.tolist() == [0, 0, 0, 2, 2, 2]


def test_memory_that_comes_back_to_us(look):
    x = on_cpu(4)
    back = td.from_dlpack(look(x))
    gc.collect()
    pending = back + 0
    x[0] = 5
    assert back.tolist() == [5, 1, 2, 3]
    back += 1
    assert x.tolist() == [6, 2, 3, 4]
    assert pending.tolist() == [0, 1, 2, 3]


def test_our_own_tensors_stay_lazy_among_us(device):
    x = td.zeros(3)
    try:
        twin = td.from_dlpack(x)
    except BufferError:
        assert device.backend == "webgpu"
        return
    twin[0] = 1
    x[1] = 2
    assert twin.tolist() == x.tolist() == [1, 2, 0]
    assert is_lazy(twin)


def test_read_only_memory():
    data = np.arange(3, dtype=np.float32)
    data.flags.writeable = False
    x = td.from_dlpack(data)
    assert (x + 1).tolist() == [1, 2, 3]
    assert not np.asarray(x).flags.writeable
    for write in (lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1)):
        with pytest.raises(ValueError, match="read-only: copy it first"):
            write()


def test_what_repeats_in_memory_is_read_only():
    x = td.from_dlpack(np.broadcast_to(np.float32([1, 2, 3]), (2, 3)))
    seen = np.asarray(x)
    assert seen.tolist() == [[1, 2, 3]] * 2
    assert not seen.flags.writeable


# --- how long ------------------------------------------------------------------------------------


def test_lazy_again_when_they_are_done(look):
    x = on_cpu(5)
    seen = look(x)
    part = seen[1:]
    assert not is_lazy(x)
    assert not is_lazy(x[2:])
    del seen
    gc.collect()
    assert not is_lazy(x)
    del part
    gc.collect()
    assert is_lazy(x)
    assert is_lazy(x[2:])


def test_a_capsule_that_nobody_takes(device):
    x = td.asarray(np.ones(3, np.float32), device="cpu")
    capsules = [x.__dlpack__() for _ in range(3)]
    assert not is_lazy(x)
    del capsules
    assert is_lazy(x)


def test_copies_share_nothing():
    x = on_cpu(4)
    copies = [
        np.array(x), np.asarray(x, copy=True), np.asarray(x, dtype=np.int32), x.numpy(),
        np.from_dlpack(x, copy=True), pickle.loads(pickle.dumps(x)),
    ]  # fmt: skip
    assert is_lazy(x)
    x[0] = 9
    assert all(copy[0].item() == 0 for copy in copies)


def test_their_array_outlives_the_tensor(look):
    seen = look(on_cpu(1000) + 1)
    others = [td.full(1000, -1.0, device="cpu") for _ in range(10)]
    assert seen.tolist() == list(range(1, 1001))
    seen[:] = 5
    assert all(other.tolist() == [-1.0] * 1000 for other in others)


def test_arrays_in_cycles_let_go(look):
    x = on_cpu(4)
    ring = [look(x)]
    ring.append(ring)
    del ring
    gc.collect()
    assert is_lazy(x)


def test_threads_share_and_let_go():
    x = on_cpu(64)
    wrong = []

    def work() -> None:
        for _ in range(200):
            seen = np.asarray(x)
            part = np.from_dlpack(x[3:])
            if seen[3] != 3 or part[0] != 3 or (x + 1).tolist()[5] != 6:
                wrong.append(seen)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    assert is_lazy(x)


def test_any_order_of_events(rng):
    """Lazy reads, writes of all kinds, and arrays of others that come and go, as NumPy has it."""
    size = 12
    x, mirror = on_cpu(size), np.arange(size, dtype=np.float32)
    views = [(x, mirror)]
    pending, lent = [], []
    for _ in range(600):
        tensor, known = views[rng.integers(len(views))]
        value = float(rng.integers(100))
        match int(rng.integers(11)):
            case 0:
                start, step = int(rng.integers(2)), int(rng.choice([-1, 1]))
                views.append((tensor[start::step], known[start::step]))
                if views[-1][0].size < 3:
                    views.pop()
                del views[8 - int(rng.integers(7)) :]
            case 1:
                pending.append((tensor + value, known + np.float32(value)))
            case 2:
                pending.append((tensor * tensor - x[: tensor.size],
                                known * known - mirror[: known.size]))  # fmt: skip
            case 3:
                tensor[0], known[0] = value, value
            case 4:
                tensor += 1
                known += 1
            case 5:
                tensor[1:] = tensor[:-1]
                known[1:] = known[:-1].copy()
            case 6:
                add_one.launch(tensor.size, tensor)
                known += 1
            case 7:
                ways = list(WAYS.values())[: None if tensor.strides[0] > 0 else 2]  # not PyTorch
                lent.append((ways[rng.integers(len(ways))](tensor), known))
            case 8 if lent:
                seen, whole = lent[rng.integers(len(lent))]
                seen[-1] = whole[-1] = value
                del seen
            case 9:
                del lent[rng.integers(2) :]
            case 10 if pending:
                result, expected = pending.pop(int(rng.integers(len(pending))))
                np.testing.assert_array_equal(result.numpy(), expected)
        if mirror.max() > 900:
            x[:] = 1
            mirror[:] = 1
        for seen, whole in lent:
            np.testing.assert_array_equal(seen, whole)
        if rng.integers(4) == 0:
            np.testing.assert_array_equal(x.numpy(), mirror)
    for result, expected in pending:
        np.testing.assert_array_equal(result.numpy(), expected)


# --- what can be shared --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128"]
)
def test_dtypes(look, dtype):
    x = td.asarray(np.arange(4).astype(dtype), device="cpu")
    seen = look(x)
    assert seen.dtype == dtype
    seen[0] = 1
    assert x[0].item() == 1
    assert td.asarray(seen, copy=False, device="cpu").dtype == dtype


def test_bfloat16_and_structs_with_numpy():
    data = np.ones(3, td.bfloat16.numpy)
    x = td.asarray(data, copy=False, device="cpu")
    x[1] = 3
    seen = np.asarray(x)
    assert seen.dtype == data.dtype
    assert data.tolist() == seen.tolist() == [1, 3, 1]
    record = np.zeros(2, np.dtype([("a", "f4"), ("b", "i4")]))
    seen = np.asarray(td.asarray(record, copy=False, device="cpu"))
    seen["b"] = 4
    assert record["b"].tolist() == [4, 4]


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()], ids=str)
def test_nothing_and_one_element(look, shape):
    x = td.full(shape, 2.0, device="cpu")
    seen = look(x)
    assert seen.shape == shape
    x += 1
    assert seen.tolist() == x.tolist() == np.full(shape, 3.0).tolist()


@pytest.mark.parametrize(
    "cut", [np.s_[::2], np.s_[::-1], np.s_[:, 1], np.s_[1, ::-2], np.s_[:, None, 1:]], ids=str
)
def test_cuts_lie_as_they_are_seen(cut):
    x = on_cpu(4, 5)
    seen = np.asarray(x[cut])
    expected = np.arange(20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_array_equal(seen, expected[cut])
    seen[...] = -1
    expected[cut] = -1
    np.testing.assert_array_equal(x.numpy(), expected)
