"""`td.compile(f, device="auto")`: results are right wherever a call runs, and what only one device
does right stays there. Times and costs are stated by the tests."""

from __future__ import annotations

import dataclasses
import sys
import threading
import warnings

import numpy as np
import pytest

import treadle as td
from tests.support.compiled import add_one
from tests.support.placing import fake_costs, kinds_of, placed, quick_on, runs_on
from treadle.tensor.compiled import kept_choices

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _stated(tmp_path, monkeypatch):
    """No device is measured, and nothing is on disk."""
    monkeypatch.setattr(kept_choices, "load", lambda key, choice: None)
    monkeypatch.setattr(kept_choices, "save", lambda key, choice: None)
    with fake_costs():
        yield


@pytest.fixture
def host():
    return td.device("cpu")


def repeated(function, make, calls=8):
    """The results of some calls, with arguments made anew."""
    return [function(*make()) for _ in range(calls)]


def pinned(function):
    (kind,) = kinds_of(function)
    return kind.choice.pinned


# --- NumPy in, NumPy out --------------------------------------------------------------------------


def test_calls_run_where_they_are_quicker(device, host):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for quick in (device, host):
        f = placed(lambda x, y: (x @ y.T, {"sum": [(x * y).sum()]}), quick_on(quick))
        for product, others in repeated(f, lambda: (x, x + 1), 12):
            assert type(product) is np.ndarray
            np.testing.assert_allclose(product, x @ (x + 1).T, rtol=1e-5)
            assert others["sum"][0] == (x * (x + 1)).sum()
        assert runs_on(f) == [quick.id]
        assert f.traces == (1 if device is host else 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(device, host, dtype):
    values = np.array([0, 1, 2, 3, 7], dtype)
    f = placed(lambda x: (x == x, x.reshape(5, 1), td.where(x == 0, x, x)), quick_on(device))
    for same, column, where in repeated(f, lambda: (values,)):
        assert same.dtype == np.bool_
        assert same.all()
        assert column.dtype == where.dtype == values.dtype
        np.testing.assert_array_equal(column[:, 0], values)
        np.testing.assert_array_equal(where, values)
    (kind,) = kinds_of(f)
    if dtype == "float32":
        assert runs_on(f) == [device.id]
    wide = dtype == "bool" or values.dtype.itemsize >= 8  # x == 0 is computed in int64
    assert kind.choice.pinned == "" or device is host or wide


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_of_results_are_those_of_the_host(device, host, dtype):
    """The default integer is narrower on some devices; results for NumPy do not depend on that."""
    values = np.array([1, 1, 2], dtype)
    f = placed(lambda x: (x.sum(), td.arange(3), (x + x)[0]), quick_on(device))
    expected = td.asarray(values, device=host)
    for total, index, first in repeated(f, lambda: (values,)):
        assert total.dtype == expected.sum().numpy().dtype
        assert index.dtype == np.int64
        assert first.dtype == dtype
        assert total == (3 if dtype == "bool" else 4)
        np.testing.assert_array_equal(index, [0, 1, 2])


def test_uploads_within_have_the_dtypes_of_the_host(device):
    f = placed(lambda x: (x + 1, td.asarray([1, 2]), td.full((2,), 7)), quick_on(device))
    for _, places, full in repeated(f, lambda: (np.ones(2, np.float32),)):
        assert places.dtype == full.dtype == np.int64
        assert places.tolist() == [1, 2]
        assert full.tolist() == [7, 7]


def test_no_elements_and_one(device):
    for shape in ((0,), (1,), (0, 3), (), (1, 1)):
        x = np.ones(shape, np.float32)
        f = placed(lambda x: (x + 1, x.sum()), quick_on(device))
        for y, total in repeated(f, lambda x=x: (x,)):
            assert y.shape == shape
            assert (y == 2).all()
            assert total == x.size
            assert total.shape == ()
        assert runs_on(f) == [device.id]


def test_a_size_on_each_side_of_a_crossover(device, host):
    """The device takes 3 for each call, the host 1 for every hundred elements."""
    size = [0]
    f = placed(lambda x: x * 2, lambda each: size[0] / 100 if each is host else 3.0)
    for n in (10, 100, 200, 400, 1000):
        size[0] = n
        for y in repeated(f, lambda n=n: (np.ones(n, np.float32),)):
            assert (y == 2).all()
    best = [host.id if n < 300 else device.id for n in (10, 100, 200, 400, 1000)]
    assert runs_on(f) == best


@pytest.mark.parametrize("dynamic", [False, None, True])
def test_sizes_that_never_come_up_again(device, host, dynamic):
    """Sizes near each other are placed together; a function that is not traced runs at home."""
    runs = []

    def body(x):
        runs.append(td.default_device())
        return x + x.shape[0]

    f = placed(body, quick_on(device), dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it runs as Python for many sizes
        for n in (1000, 1000, 1000, 1000, 1000, 1000, *range(1001, 1021)):
            assert f(np.zeros(n, np.float32)).tolist() == [n] * n
    (kind,) = kinds_of(f)
    assert kind.choice.pinned == "" or device is host
    assert runs_on(f) == [device.id]
    if dynamic is False:
        assert runs.count(host) == 21
    assert set(runs) == {device, host}


def test_python_away_from_home_runs_only_what_is_traced_there(device, host):
    """A function that only writes at one size writes there, whatever is known of similar sizes."""

    def f(x):
        if x.shape[0] == 1001:
            x += 1
        return x + 1

    g = placed(f, quick_on(host), dynamic=True)
    for _ in range(6):
        assert g(td.zeros(1000)).tolist() == [1] * 1000
    x = td.zeros(1001)
    for k in range(1, 4):
        assert g(x).tolist() == [k + 1] * 1001
        assert x.tolist() == [k] * 1001


def test_results_are_new_at_each_call(device, host):
    for quick in (device, host):
        f = placed(lambda x: x + 1, quick_on(quick))
        found = [f(np.full(3, k, np.float32)) for k in range(8)]
        assert [y.tolist() for y in found] == [[k + 1.0] * 3 for k in range(8)]


def test_layouts_of_numpy_arrays(device):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for x in (base.T, base[::2, ::-1], base.astype(">f4"), np.broadcast_to(base[0], (3, 6))):
        f = placed(lambda x: x * 1, quick_on(device))
        for y in repeated(f, lambda x=x: (x,)):
            np.testing.assert_array_equal(y, x)


@dataclasses.dataclass
class Pair:
    one: object
    two: object


def test_nested_arguments_and_results(device):
    def f(pair, values, *, k):
        return Pair(pair.one + values["x"], (pair.two * k, None, "text"))

    g = placed(f, quick_on(device))
    x = np.ones(3, np.float32)
    for _ in range(8):
        found = g(Pair(x, 2 * x), {"x": x}, k=3)
        assert type(found) is Pair
        assert type(found.one) is type(found.two[0]) is np.ndarray
        assert found.two[0].tolist() == [6.0] * 3
        assert found.two[1:] == (None, "text")
    assert runs_on(g) == [device.id]


# --- tensors --------------------------------------------------------------------------------------


def test_results_are_on_the_device_of_the_tensors(device, host):
    for home in (device, host):
        for quick in (device, host):
            f = placed(lambda x, y: [x + y, td.zeros(2), (x * y).sum()], quick_on(quick))
            x = td.asarray(np.arange(3, dtype=np.float32), device=home)
            for total, zeros, product in repeated(f, lambda x=x: (x, x + 1)):
                assert total.device is zeros.device is product.device is home
                assert total.tolist() == [1, 3, 5]
                assert product.item() == 8
            assert runs_on(f) == [quick.id]


def test_numpy_arrays_among_tensors(device, host):
    f = placed(lambda x, y: x + y, quick_on(host))
    x, y = td.ones(3), np.ones(3, np.float32)
    for total in repeated(f, lambda: (x, y)):
        assert total.device is device
        assert total.tolist() == [2] * 3
    assert runs_on(f) == [host.id]


def test_pending_tensors_and_views(device, host):
    base = td.arange(12, dtype=td.float32)
    f = placed(lambda x, y: x - y, quick_on(host))
    for k in range(8):
        pending = base + k
        found = f(pending[2:5], pending.reshape(3, 4)[1:, 0][:1])
        assert found.tolist() == [-2, -1, 0]


def test_one_tensor_passed_twice(device, host):
    f = placed(lambda x, y: (x + y, x is y), quick_on(host))
    x = td.ones(2)
    for _ in range(8):
        assert f(x, x)[0].tolist() == [2, 2]


def test_no_arrays_at_all(device, host):
    f = placed(lambda n: td.ones(n), quick_on(host))
    for y in repeated(f, lambda: (3,)):
        assert type(y) is td.Tensor
        assert y.device is device
        assert y.tolist() == [1] * 3


def test_tensors_on_two_devices(device, host):
    if device is host:
        return
    f = placed(lambda x, y: x + y, quick_on(host))
    with pytest.raises(td.errors.LaunchError, match="one tensor is on"):
        f(td.ones(2), td.ones(2, device=host))


# --- estimates ------------------------------------------------------------------------------------


def test_the_work_of_a_trace(device, host):
    """Amounts are those of the computation, on each device that it is traced on."""
    square = np.ones((64, 64), np.float32)
    image, weight = np.ones((1, 3, 10, 10), np.float32), np.ones((5, 3, 3, 3), np.float32)
    heads = np.ones((2, 3, 32, 8), np.float32)
    conv, attention = td.nn.functional.conv2d, td.nn.functional.scaled_dot_product_attention
    for function, arrays, kind, amount in (
        (lambda x, y: x @ y, (square, square), "product", 2 * 64**3),
        (lambda x, y: x @ y, (square.ravel(), square.ravel()), "reduction", 8 * 64 * 64),
        (lambda x: td.sort(x), (square,), "sort", 64 * 64),
        (lambda x, w: conv(x, w), (image, weight), "convolution", 2 * 5 * 8 * 8 * 27),
        (attention, (heads, heads, heads), "product", 4 * 6 * 32 * 32 * 8),
        (lambda x: x * 2 + 1, (square,), "elementwise", 8 * 64 * 64),
        (lambda x: x.sum(axis=1), (square,), "reduction", 4 * 64 * 65),
    ):
        for home in (device, host):
            f = placed(function, quick_on(device))
            for _ in range(4):
                f(*[td.asarray(each, device=home) for each in arrays])
            (found,) = kinds_of(f)
            amounts = {}
            for name, each in found.work.amounts:
                amounts[name] = amounts.get(name, 0) + each
            assert amounts[kind] == pytest.approx(amount, rel=0.3), (kind, home)
            assert found.work.arguments == len(arrays)
            assert found.work.uploaded == sum(each.nbytes for each in arrays)


# --- what stays at home ---------------------------------------------------------------------------


def test_writes_to_arguments(device, host):
    def f(x):
        x += 1
        return x.sum()

    for quick in (device, host):
        for make in (
            lambda: np.zeros(3, np.float32),
            lambda: td.zeros(3),
            lambda: td.zeros(3, device="cpu"),
        ):
            g, x = placed(f, quick_on(quick)), make()
            for k in range(1, 9):
                assert g(x) == 3 * k
                assert np.asarray(x).tolist() == [k] * 3
            assert device is host or "writes to its arguments" in pinned(g)


def test_changes_of_containers(device):
    def f(found, x):
        found.append(x + 1)
        return found

    for make in (lambda: np.ones(2, np.float32), lambda: td.ones(2)):
        g, x = placed(f, quick_on(device)), make()
        for k in range(1, 6):
            given = [x] * k
            assert g(given, x) is given
            assert len(given) == k + 1
            assert type(given[-1]) is type(x)
            assert np.asarray(given[-1]).tolist() == [2, 2]


def test_results_that_are_arguments(device, host):
    f = placed(lambda x: (x, x[1:], x + 1), quick_on(host))
    x = td.asarray(np.arange(3, dtype=np.float32))
    for _ in range(8):
        same, part, _ = f(x)
        assert same is x
        part[0] += 10
    assert x.tolist() == [0, 81, 2]
    y = np.arange(3, dtype=np.float32)
    for same, part, more in repeated(f, lambda: (y,)):
        assert same.tolist() == [0, 1, 2]
        assert part.tolist() == [1, 2]
        assert more.tolist() == [1, 2, 3]


def test_results_that_share_memory(device, host):
    def f(x):
        y = x + 1
        return y, y[1:]

    g, x = placed(f, quick_on(host)), td.zeros(3)
    for _ in range(8):
        whole, part = g(x)
        part[...] = 5
        assert whole.tolist() == [1, 5, 5]


def test_functions_with_tensors_of_their_own(device, host):
    weight = td.full((3,), 2.0)

    def f(x):
        return x * weight

    for quick in (device, host):
        g = placed(f, quick_on(quick))
        for y in repeated(g, lambda: (np.ones(3, np.float32),)):
            assert y.tolist() == [2] * 3
        assert device is host or "not arguments" in pinned(g)
        (kind,) = kinds_of(g)
        assert kind.home is device


def test_tensors_on_the_host_keep_a_function_there(device, host):
    weight = td.full((3,), 2.0, device=host)
    g = placed(lambda x: x * weight, quick_on(device))
    for y in repeated(g, lambda: (np.ones(3, np.float32),)):
        assert y.tolist() == [2] * 3


def test_tensors_that_appear_later(device, host):
    """A function is traced anew when what it reads has changed, and then stays with the tensors."""
    around = {"offset": None}

    def f(x):
        return x + 1 if around["offset"] is None else x + around["offset"]

    for first in (device, host):
        around["offset"] = None
        g, x = placed(f, quick_on(first)), np.zeros(2, np.float32)
        for y in repeated(g, lambda x=x: (x,)):
            assert y.tolist() == [1, 1]
        around["offset"] = td.full((2,), 5.0)
        for y in repeated(g, lambda x=x: (x,)):
            assert y.tolist() == [5, 5]
        around["offset"][...] = 7.0
        for y in repeated(g, lambda x=x: (x,)):
            assert y.tolist() == [7, 7]
        around["offset"] = None
        for y in repeated(g, lambda x=x: (x,)):
            assert y.tolist() == [1, 1]


def test_numbers_that_change_around(device):
    around = {"scale": 1.0}
    f, x = placed(lambda x: x * around["scale"], quick_on(device)), np.ones(2, np.float32)
    for scale in (1.0, 2.0, 1.0, 3.0):
        around["scale"] = scale
        for y in repeated(f, lambda: (x,)):
            assert y.tolist() == [scale, scale]
    assert runs_on(f) == [device.id]


def test_training_steps_stay_with_their_parameters(device, host):
    def trained(compiled, x):
        with td.use_device(device):
            model = td.nn.Linear(3, 1)
            with td.no_grad():
                model.weight[...] = td.asarray(np.ones((1, 3), np.float32))
                model.bias[...] = 0.0
            optimizer = td.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = compiled(step)
        return [float(run(x)) for _ in range(6)]

    x = np.ones((2, 3), np.float32)
    expected = trained(lambda f: lambda x: f(td.asarray(x, device=device)), x)
    found = trained(lambda f: placed(f, quick_on(host)), x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[0] > found[-1]


def test_gradients_of_arguments(device, host):
    f = placed(lambda x: (x * x).sum(), quick_on(host))
    for _ in range(6):
        x = td.ones(3).requires_grad_()
        f(x).backward()
        assert x.grad.tolist() == [2] * 3
        assert td.grad(f)(td.ones(3)).tolist() == [2] * 3
    with td.no_grad():
        assert f(td.ones(3)).item() == 3


def test_gradients_within(device, host):
    f = placed(lambda x: td.grad(lambda y: (y * y).sum())(x), quick_on(device))
    for y in repeated(f, lambda: (np.ones(3, np.float32),)):
        assert y.tolist() == [2] * 3


def test_functions_that_read(device, host):
    def f(x):
        while x.max().item() > 1:
            x = x * 0.5
        return x

    for quick in (device, host):
        for x in (np.full(2, 8, np.float32), td.full(2, 8.0)):
            g = placed(f, quick_on(quick))
            for y in repeated(g, lambda x=x: (x,)):
                assert y.tolist() == [1, 1]
                assert type(y) is type(x)
            assert device is host or "its Python runs at every call" in pinned(g)


def test_errors_of_the_function(device):
    def f(x):
        raise ValueError("no")

    g = placed(f, quick_on(device))
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            g(np.ones(2, np.float32))


def test_errors_away_from_home(device, host):
    """What raises elsewhere runs at home, and the reason is told."""
    if device is host:
        return

    def f(x):
        if td.default_device() is not host:
            raise td.errors.UnsupportedOnTarget("not here")
        return x + 1

    g = placed(f, quick_on(device))
    for y in repeated(g, lambda: (np.zeros(2, np.float32),)):
        assert y.tolist() == [1, 1]
    assert pinned(g) == f"it raised UnsupportedOnTarget on {device.id}: not here"


def test_costs_that_cannot_be_measured(device, host, monkeypatch):
    def fails(*_):
        raise td.errors.OutOfMemory("no room\nat all")

    monkeypatch.setattr("treadle.tensor.compiled.placement.costs_of", fails)
    f = placed(lambda x: x + 1, quick_on(device))
    for y in repeated(f, lambda: (np.zeros(2, np.float32),)):
        assert y.tolist() == [1, 1]
    if device is not host:
        assert pinned(f) == f"the costs of {device.id} could not be measured: no room"


def test_tensors_that_were_not_found(device, host):
    """An error that the choice has caused says so."""
    if device is host:
        return
    hidden = td.ones(2)
    HIDDEN.append(hidden)
    try:
        with pytest.raises(td.errors.LaunchError, match="one tensor is on") as caught:
            placed(lambda x: x + getattr(sys.modules[__name__], "HID" + "DEN")[0], quick_on(host))(
                np.ones(2, np.float32)
            )
    finally:
        HIDDEN.clear()
    assert "name their device instead" in caught.value.__notes__[0]


HIDDEN = []


def test_functions_that_differ_by_device(device, host):
    """A function that only writes on one device writes there, not into a copy."""

    def f(x):
        if td.default_device() is host:
            x += 1
        return x + 1

    for home in (device, host):
        g, x = placed(f, quick_on(device if home is host else host)), td.zeros(2, device=home)
        for k in range(1, 9):
            y = g(x)
            written = k if home is host else 0
            assert x.tolist() == [written] * 2
            assert y.tolist() == [written + 1] * 2
            other = td.zeros(2, device=host)
            g(other)
            assert other.tolist() == [1, 1]


def test_arrays_of_other_libraries(device, host):
    class Other:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __array__(self, dtype=None, copy=None):
            return self.array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    given = Other(np.ones(3, np.float32))
    f = placed(lambda x: x + 1, quick_on(device))
    expected = td.compile(lambda x: x + 1)(given)
    for y in repeated(f, lambda: (given,)):
        assert type(y) is td.Tensor
        assert y.device is expected.device
        assert y.tolist() == [2] * 3


# --- random draws ---------------------------------------------------------------------------------


def test_draws_are_those_of_every_device(device, host):
    def f(x):
        return x + td.random.uniform(x.shape)

    td.manual_seed(11)
    expected = [td.random.uniform((3,), device=host).numpy() for _ in range(10)]
    for quick in (device, host):
        g = placed(f, quick_on(quick))
        td.manual_seed(11)
        found = repeated(g, lambda: (np.zeros(3, np.float32),), 10)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert runs_on(g) == [quick.id]


def test_draws_continue_after_an_error_elsewhere(device, host):
    if device is host:
        return

    def f(x):
        y = x + td.random.uniform(x.shape)
        if td.default_device() is not host:
            raise td.errors.UnsupportedOnTarget("not here")
        return y

    g = placed(f, quick_on(device))
    td.manual_seed(5)
    expected = [td.random.uniform((3,), device=host).numpy() for _ in range(8)]
    td.manual_seed(5)
    np.testing.assert_array_equal(repeated(g, lambda: (np.zeros(3, np.float32),), 8), expected)


# --- around it ------------------------------------------------------------------------------------


def test_methods_and_objects(device):
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        def scaled(self, x):
            return x * self.factor

    Scaler.scaled = placed(Scaler.scaled, quick_on(device))
    one, two = Scaler(2.0), Scaler(3.0)
    for _ in range(8):
        assert one.scaled(np.ones(2, np.float32)).tolist() == [2, 2]
        assert two.scaled(np.ones(2, np.float32)).tolist() == [3, 3]
    assert runs_on(Scaler.scaled) == [device.id] * 2


def test_within_other_functions(device):
    inner = placed(lambda x: x + 1, quick_on(device))
    outer = td.compile(lambda x: inner(x) * 2)
    for _ in range(3):
        assert outer(td.ones(2)).tolist() == [4, 4]
    assert td.vmap(inner)(td.ones((2, 3))).tolist() == [[2] * 3] * 2
    both = placed(lambda x: inner(x) * 2, quick_on(device))
    for y in repeated(both, lambda: (np.ones(2, np.float32),)):
        assert y.tolist() == [4, 4]
    assert kinds_of(inner) == []


def test_within_a_graph(device, host):
    g, x = placed(lambda x: add_one.launch(3, x), quick_on(host)), td.zeros(3).realize()
    graph = td.Graph(device)
    with graph.capture():
        g(x)
    for _ in range(3):
        graph.replay()
    assert x.tolist() == [3] * 3
    y, pure = td.ones(3).realize(), placed(lambda x: x + 1, quick_on(host))
    for _ in range(8):
        pure(y)
    with graph.capture():
        z = pure(y)
    graph.replay()
    assert z.device is device
    assert z.tolist() == [2] * 3


def test_threads(device, host):
    f = placed(lambda x: (x * 2).sum(), quick_on(device))
    wrong = []

    def work(n):
        x = np.full(n, 1, np.float32)
        wrong.extend(n for _ in range(30) if f(x) != 2 * n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 3, 4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert len(kinds_of(f)) == 2


def test_the_default_device_decides_what_is_compared(device, host):
    f, x = placed(lambda x: x + 1, quick_on(device)), np.ones(2, np.float32)
    repeated(f, lambda: (x,))
    with td.use_device(host):
        assert f(x).tolist() == [2, 2]
    assert f(x).tolist() == [2, 2]
    if device is not host:
        assert len(kinds_of(f)) == 2
        assert runs_on(f) == [device.id, host.id]


def test_clear_forgets(device):
    f, x = placed(lambda x: x + 1, quick_on(device)), np.ones(2, np.float32)
    repeated(f, lambda: (x,))
    f.clear()
    assert f.traces == 0
    assert kinds_of(f) == []
    assert f(x).tolist() == [2, 2]


def test_capital_letters_do_not_matter(device):
    assert td.compile(lambda x: x, device="Auto")._placement is not None
    with pytest.raises(td.errors.DeviceNotFound):
        td.compile(lambda x: x, device="automatic")


def test_options_and_refusals(device):
    f = placed(lambda x: x + 1, quick_on(device), strict=True, dynamic=False)
    for n in range(1, 12):
        for y in repeated(f, lambda n=n: (np.zeros(n, np.float32),), 5):
            assert y.tolist() == [1] * n

    def reads(x):
        return x * x.sum().item()

    with pytest.raises(td.errors.LaunchError, match="strict=True refuses it"):
        placed(reads, quick_on(device), strict=True)(np.ones(2, np.float32))
    with pytest.raises(TypeError, match="has no hash"):
        f(np.ones(2, np.float32), {1, 2})


def test_many_sizes_run_as_python(device):
    f = placed(lambda x: x + 1, quick_on(device), dynamic=True)
    for n in range(1, 12):
        for y in repeated(f, lambda n=n: (np.zeros(n, np.float32),), 4):
            assert type(y) is np.ndarray
            assert y.tolist() == [1] * n


def test_compared_with_python(device, monkeypatch):
    from treadle.runtime import settings

    monkeypatch.setattr(settings, "check_compiled", True)
    f = placed(lambda x: (x * 3, x.sum()), quick_on(device))
    for y, total in repeated(f, lambda: (np.ones(3, np.float32),)):
        assert y.tolist() == [3] * 3
        assert total == 3


def test_explain_shows_the_choice_and_its_reason(device, host, capsys):
    f = placed(lambda x: x + 1, quick_on(device))
    assert "not called yet" in td.explain(f)
    repeated(f, lambda: (np.ones(3, np.float32),))
    text = td.explain(f)
    assert "1 kind of calls" in text
    assert f"on {device.id}" in text
    if device is not host:
        assert "which is 2 times as fast as cpu" in text
        assert f"measured: cpu 2 s (2 calls), {device.id} 1 s" in text
        assert f"estimated on {device.id}: " in text
    else:
        assert "since cpu is the only device" in text
    with pytest.raises(TypeError, match=r"td\.explain takes tensors"):
        td.explain(f, td.ones(2))
    assert "compiled" in td.explain(td.compile(lambda x: x))
    assert "1 kernel" in td.explain(td.ones(2) + 1)


def test_a_message_when_the_choice_is_made(device, host, capsys, monkeypatch):
    from treadle.graph import realize

    monkeypatch.setattr(realize, "watchers", [lambda group: None])
    monkeypatch.setattr("treadle.tensor.compiled.placement.watchers", [None])
    f = placed(lambda x: x + 1, quick_on(device))
    repeated(f, lambda: (np.ones(3, np.float32),))
    told = [line for line in capsys.readouterr().err.splitlines() if "x float32[3]" in line]
    assert len(told) == 1
    assert f"on {device.id}" in told[0]
