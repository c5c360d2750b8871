"""Compiled functions whose shapes and integers change: traces with symbols, and their guards."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import treadle as td
from treadle.nn import functional
from treadle.runtime.counters import counts


def prefix(x, n):
    return td.sum(x[:n] * 2, axis=0) + n


@pytest.fixture(autouse=True)
def used(device):
    with td.use_device(device):
        yield


def drawn(*shape, seed=0):
    return td.asarray(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def numbered(n, end):
    return td.asarray(np.arange(n, dtype=np.int32) % end)


def check(f, rows, n):
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    found = f(td.asarray(x), n)
    np.testing.assert_array_equal(found.numpy(), (x[:n] * 2).sum(0) + n)


@pytest.mark.parametrize("dynamic", [True, None])
def test_other_sizes_replay_one_trace(dynamic):
    f = td.compile(prefix, dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows, n in ((40, 20), (41, 21), (60, 33)):
            check(f, rows, n)
        traces = f.traces
        before = counts()
        for n in range(20, 60):
            check(f, 60, n)
    added = counts() - before
    assert added.traces <= 1  # for n that is 60 itself, or near the end of a range of facts
    assert added.resized >= 30
    assert added.kernels == 0
    assert f.traces <= traces + 1


def test_sizes_0_and_1_and_negative_ones_are_classes_of_their_own():
    f = td.compile(prefix, dynamic=True)
    for rows, n in ((9, 4), (9, 5), (8, 4), (3, 3), (1, 1), (5, 0), (9, 4), (5, -2), (6, -2)):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(f(td.asarray(x), n).numpy(), (x[:n] * 2).sum(0) + n)


def test_sizes_have_traces_if_not_dynamic():
    f = td.compile(prefix, dynamic=False)
    for n in range(1, 8):
        check(f, 9, n)
        check(f, 9, n)
    assert f.traces == 7
    with pytest.warns(UserWarning, match="8 values of its argument 2, the last one 8"):
        check(f, 9, 8)
    check(f, 9, 9)
    assert f.traces == 9


def attended(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v)


def of_rows(n):
    return (drawn(n, 8, seed=n),)


def of_heads(n):
    return drawn(2, 4, 1, 16), drawn(2, 4, n, 16, seed=n), drawn(2, 4, n, 16, seed=n + 1)


WEIGHT = np.random.default_rng(1).standard_normal((8, 12)).astype(np.float32)
# Functions, their arguments for a size, and how many traces they take for the sizes below.
CASES = {
    "reductions": (lambda x: (x.mean(0), x.var(0), x.max(), x.sum(1)), of_rows),
    "softmax": (lambda x: functional.softmax(x, 1) + functional.softmax(x, 0), of_rows),
    "layer_norm": (lambda x: functional.gelu(functional.layer_norm(x, (8,))), of_rows),
    "matmul": (lambda x: (x @ td.asarray(WEIGHT), x @ x.T), of_rows),
    "views": (lambda x: (x[1:-1] * 2, td.flip(x)[::2] + 1, x.T + 1, x[-1], x.reshape(-1)), of_rows),
    "joins": (lambda x: (td.concat([x, x[:2]]), td.roll(x, 1, axis=0), td.stack([x, x])), of_rows),
    "creation": (lambda x: td.zeros(x.shape) + x + td.arange(x.shape[0])[:, None], of_rows),
    "numbers": (lambda x: x.sum(0) / x.shape[0] + x.shape[0], of_rows),
    "attention": (attended, of_heads),
    "manual": (lambda q, k, v: functional.softmax(q @ td.permute_dims(k, (0, 1, 3, 2)), -1) @ v,
               of_heads),
    "embedding": (lambda at: td.asarray(WEIGHT)[at], lambda n: (numbered(n, 8),)),
    "loss": (lambda x, at: functional.cross_entropy(x, at),
             lambda n: (drawn(n, 8, seed=n), numbered(n, 8))),
    "sorting": (lambda x: (td.sort(x, axis=0), td.cumulative_sum(x, axis=0)), of_rows),
    "pooling": (lambda x: (functional.max_pool2d(x, 2), functional.avg_pool2d(x, 3, 1)),
                lambda n: (drawn(2, 3, 6, n, seed=n),)),
    "a view": (lambda x: x * 2 + 1, lambda n: (drawn(100, 8)[3 : 3 + n],)),
    "NumPy": (lambda x: x * 2, lambda n: (np.ones((n, 4), np.float32) * n,)),
}  # fmt: skip


def flat(found):
    if isinstance(found, (tuple, list)):
        return [each for one in found for each in flat(one)]
    return [found.numpy() if isinstance(found, td.Tensor) else found]


@pytest.mark.parametrize("name", CASES)
def test_what_a_trace_computes_for_other_sizes(name):
    function, arguments = CASES[name]
    f = td.compile(function, dynamic=True)
    for n in (17, 18, 23, 31, 40):
        for one, other in zip(flat(f(*arguments(n))), flat(function(*arguments(n))), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, 2e-4, 2e-5)
    # A GPU's tiles of products suit fewer sizes each.
    tiled = name == "matmul" and not td.ones(1).device.traits.serial_threads
    assert f.traces <= (4 if tiled else 3)


def test_a_cache_that_is_written_at_an_index_that_changes():
    cache = td.zeros((2, 64, 4))

    @td.compile
    def step(k, n):
        cache[:, n : n + 1] = k
        return cache[:, : n + 1].sum(1), cache[:, n]

    expected = np.zeros((2, 64, 4), np.float32)
    for n in range(2, 40):
        k = np.full((2, 1, 4), n, np.float32)
        expected[:, n : n + 1] = k
        total, last = step(td.asarray(k), n)
        np.testing.assert_allclose(total.numpy(), expected[:, : n + 1].sum(1))
        np.testing.assert_array_equal(last.numpy(), expected[:, n])
    np.testing.assert_array_equal(cache.numpy(), expected)
    assert step.traces <= 6


def test_an_index_on_the_device_has_one_trace():
    cache = td.zeros((2, 16, 4))

    @td.compile
    def step(k, n):
        cache[:, n] = k
        return cache * 2

    for n in (3, 5, 0, 15):
        step(td.full((2, 4), float(n)), td.asarray(n, dtype=td.int32))
        assert cache[:, n].tolist() == [[n] * 4] * 2
    assert step.traces == 1
    assert "Python" not in repr(step)


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_a_window_on_the_device_has_one_trace(dynamic):
    cache = td.zeros((2, 16, 4))

    @td.compile(dynamic=dynamic)
    def step(k, n):
        cache[:, n : n + 2] = k
        return cache[:, n - 1 : n + 1] * 2, n + 2

    n, expected = td.asarray(1, dtype=td.int32), np.zeros((2, 18, 4), np.float32)
    for value in range(8):  # the last window reaches over the end
        seen, after = step(td.full((2, 2, 4), float(value)), n)
        at = int(n)
        expected[:, at : at + 2] = value
        np.testing.assert_array_equal(seen.numpy(), expected[:, at - 1 : at + 1] * 2)
        n = after
    np.testing.assert_array_equal(cache.numpy(), expected[:, :16])
    assert step.traces == 1
    assert "Python" not in repr(step)


def test_a_window_whose_extent_is_an_argument():
    @td.compile
    def f(x, n, count):
        return x[n : n + count] * 2

    x, n = td.arange(64, dtype=td.float32), td.asarray(5)
    for count in (3, 4, 9, 20):
        assert f(x, n, count).tolist() == [2 * p for p in range(5, 5 + count)]
    assert "Python" not in repr(f)


def test_bounds_from_outside_that_change_are_read():
    """They were a number apart when the function was traced, and are not forever."""
    x, n = td.arange(16, dtype=td.float32), td.asarray(3)
    m = (n + 2).realize()

    @td.compile
    def f(x):
        return x[n:m] * 2

    assert f(x).tolist() == f(x).tolist() == [6, 8]
    m += 2
    assert f(x).tolist() == [6, 8, 10, 12]
    assert "a tensor is read" in repr(f)


def test_a_stop_on_the_device_ends_the_recording():
    f = td.compile(lambda x, n: (x * 2)[:n].sum())
    for n in (3, 5, 0):
        assert f(td.ones(8), td.asarray(n)).item() == 2 * n
    assert "a tensor is read" in repr(f)
    g = td.compile(lambda x, n: (x * 2)[:n].sum(), strict=True)
    with pytest.raises(td.errors.LaunchError, match="a tensor is read"):
        g(td.ones(8), td.asarray(3))


def test_a_cache_that_grows():
    @td.compile
    def step(cache, k):
        return td.concat([cache, k], axis=1)

    cache, expected = td.zeros((2, 1, 4)), np.zeros((2, 1, 4), np.float32)
    for n in range(1, 300):
        before = counts()
        cache = step(cache, td.full((2, 1, 4), float(n)))
        assert n < 100 or (counts() - before).kernels == 0, n
        expected = np.concatenate([expected, np.full((2, 1, 4), n, np.float32)], axis=1)
    np.testing.assert_array_equal(cache.numpy(), expected)
    assert step.traces <= 9  # memory for half as much again is a trace


def test_integers_of_a_program_are_integers():
    found = []

    @td.compile
    def f(x, n):
        rows = x.shape[0]
        assert isinstance(rows, int)
        found.append(rows)
        wide = 2 if rows > 20 else 3  # another trace
        return x[: n // 2] * wide, (rows, n % 3, -n, [rows * 2 + 1]), {"n": n}

    for rows, n in ((9, 4), (10, 6), (11, 7), (25, 8), (26, 9), (12, 5)):
        y, (a, b, c, d), e = f(td.ones(rows), n)
        assert y.tolist() == [2 if rows > 20 else 3] * (n // 2)
        assert (a, b, c, d, e) == (rows, n % 3, -n, [rows * 2 + 1], {"n": n})
        assert {type(each) for each in (a, b, c, *d, e["n"])} == {int}
    assert f.traces == len(found) == 3


@pytest.mark.parametrize(
    "use",
    [
        lambda n: len(range(n)),
        lambda n: int(f"{n}"),
        lambda n: {3: 5, 4: 7}.get(n, 11),
        lambda n: (5, 7, 11, 13, 17, 19, 23)[n],
        lambda n: int(np.zeros(n).size),
        lambda n: json.loads(json.dumps(n)),
        lambda n: n if type(n) is int else 0,
        lambda n: [1, 2, n].index(n),
        lambda n: round(n / 3, 2) + n**2 + 2**n,
        lambda n: 5 if n in {3, 5} else 6,
        lambda n: float(np.float32(2) * n),
    ],
)
def test_a_value_that_is_used_is_a_guard(use):
    for dynamic in (None, True):
        f = td.compile(lambda x, n: x * use(n), dynamic=dynamic)
        for n in (3, 4, 5, 3, 6):
            np.testing.assert_allclose(f(td.ones(2), n).numpy(), [use(n)] * 2, rtol=1e-6)


def test_a_function_that_uses_every_value_runs_in_python_at_last():
    f = td.compile(lambda x, n: sum((x * i for i in range(n)), x))

    def run():
        for n in range(1, 22):
            assert f(td.ones(2), n).tolist() == [1 + n * (n - 1) / 2] * 2

    with pytest.warns(UserWarning, match=r"traced 16 times for other sizes.*guard n == .*"):
        run()
    assert f.traces <= 19


def test_explain_shows_the_guards():
    f = td.compile(lambda x, n: (x * 2)[:n], dynamic=True)
    for n in (20, 21):
        f(td.ones(50), n)
    text = str(td.explain(f))
    assert "a trace for all sizes with" in text
    assert "n <= " in text


def test_a_trace_with_a_read_runs_in_python_for_such_sizes():
    f = td.compile(lambda x: x * x.sum().item() if x.shape[0] > 4 else x, dynamic=True)
    for n in (2, 3, 6, 7, 2):
        assert f(td.ones(n)).tolist() == [n if n > 4 else 1] * n
    assert "a tensor is read" in repr(f)


def test_arguments_that_share_memory():
    f = td.compile(lambda x, y: x.__iadd__(1) + y, dynamic=True)
    for n in (4, 5, 7):
        whole = td.zeros(3 * n)
        assert f(whole[:n], whole[n - 1 : 2 * n - 1]).tolist() == [2.0] + [1.0] * (n - 1)
        assert whole.tolist() == [1.0] * n + [0.0] * 2 * n


def test_a_training_step_whose_last_batch_is_smaller():
    def run(compiled):
        td.manual_seed(3)
        model = td.nn.Sequential(td.nn.Linear(6, 8), td.nn.ReLU(), td.nn.Linear(8, 3))
        optimizer = td.optim.Adam(model.parameters(), lr=0.01)

        def step(x, at):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), at)
            loss.backward()
            optimizer.step()
            return loss

        step = td.compile(step) if compiled else step
        losses = [
            float(step(drawn(n, 6, seed=n), numbered(n, 3))) for n in (16, 16, 7, 16, 16, 7, 11, 13)
        ]
        return losses, step

    expected, _ = run(False)
    found, step = run(True)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    assert step.traces <= 3


def test_random_draws_of_other_sizes():
    def noisy(x):
        y = x * 2
        return y + td.random.integers(x.shape, 0, 100, dtype=td.int32)

    f = td.compile(noisy, dynamic=True)
    sizes = (5, 6, 9, 6)
    td.manual_seed(1)
    found = [f(td.zeros(n, dtype=td.int32)).tolist() for n in sizes]
    td.manual_seed(1)
    assert found == [noisy(td.zeros(n, dtype=td.int32)).tolist() for n in sizes]


def test_the_words_of_draws_have_memory_of_their_own():
    """As large as memory that the function has freed before, which a replay writes first."""

    def f(x):
        y = (td.asarray(np.arange(1024, dtype=np.int32)) + 1).realize()
        total = y.sum().realize()
        del y
        return x + total * 0 + td.random.integers((4,), 0, 1000, dtype=td.int32)

    compiled, x = td.compile(f), td.zeros(4, dtype=td.int32)
    td.manual_seed(1)
    found = [compiled(x).tolist() for _ in range(3)]
    td.manual_seed(1)
    assert found == [f(x).tolist() for _ in range(3)]


def test_objects_and_floats_are_not_sizes():
    f = td.compile(lambda x, flag, rate: x * rate if flag else x, dynamic=True)
    for flag in (True, False):
        for rate in (0.5, 2.0):
            assert f(td.ones(2), flag, rate).tolist() == [rate if flag else 1.0] * 2
    assert f.traces == 4


def test_strict_functions_replay_other_sizes():
    f = td.compile(prefix, strict=True)
    for n in range(1, 12):
        check(f, 12, n)
    g = td.compile(lambda x, n: sum((x for _ in range(n)), x), strict=True)

    def run():
        for n in range(1, 30):
            g(td.ones(2), n)

    with pytest.raises(td.errors.LaunchError, match="traced 16 times for other sizes"):
        run()


def test_what_dynamic_is():
    with pytest.raises(TypeError, match="dynamic is True, False or None, not 3"):
        td.compile(prefix, dynamic=3)


@td.kernel
def add_one(x: td.Array[td.f32]):
    x[td.grid(1)] += 1.0


def test_more_parameters_than_a_batch_has_room_for():
    @td.compile(dynamic=True)
    def steps(x):
        for start in range(260):
            part = x[start:]
            add_one.launch(part.shape[0], part)
        return x

    for n in (310, 311, 400, 310):
        expected = np.minimum(np.arange(n) + 1, 260)
        np.testing.assert_array_equal(steps(td.zeros(n)).numpy(), expected)
    assert steps.traces == 1


def test_replays_that_wait_for_submission_keep_their_sizes():
    f = td.compile(lambda x: x * 2 + 1, dynamic=True)
    f(td.ones(40))
    found = [f(td.full((n,), float(n))) for n in range(41, 90)]
    for n, each in zip(range(41, 90), found, strict=True):
        assert each.tolist() == [2 * n + 1] * n


def test_strides_of_0_and_of_other_layouts_are_classes_of_their_own():
    f = td.compile(lambda x: (x * 2 + x.sum(0), x[1:] - x[:-1]), dynamic=True)
    for n in (5, 6, 9, 17, 18):
        whole = np.arange(40 * 8, dtype=np.float32).reshape(40, 8)
        device = td.asarray(whole)
        for numpy, ours in (
            (whole[:n], device[:n]),
            (np.broadcast_to(whole[3:4], (n, 8)), td.broadcast_to(device[3:4], (n, 8))),
            (whole[: 2 * n : 2], device[: 2 * n : 2]),
            (whole[n::-1], device[n::-1]),
            (whole[:8, :n].T, device[:8, :n].T),
        ):
            scaled, steps = f(ours)
            np.testing.assert_allclose(scaled.numpy(), numpy * 2 + numpy.sum(0), 1e-6)
            np.testing.assert_array_equal(steps.numpy(), numpy[1:] - numpy[:-1])


def test_what_is_broadcast_is_refused_for_every_size():
    f = td.compile(lambda x: x.__iadd__(1), dynamic=True)
    for n in (4, 5):
        assert f(td.zeros((9, 3))[:n]).tolist() == [[1.0] * 3] * n
        with pytest.raises(ValueError, match="several elements of this tensor are one in memory"):
            f(td.broadcast_to(td.zeros((1, 3)), (n, 3)))
