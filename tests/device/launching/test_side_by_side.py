"""The kernels of a plan are compiled side by side: each once, and each launch waits for its own."""

from __future__ import annotations

import _thread
import threading
import traceback

import numpy as np
import pytest

import treadle as td
from treadle.core import background
from treadle.core.errors import CompileError
from treadle.core.recent_cache import RecentCache
from treadle.graph import recipes
from treadle.graph.realize import realize
from treadle.runtime import build, settings
from treadle.tensor.cells import cells_of
from treadle.tensor.compiled.decorator import recorded

SECONDS = 60


class Compiler:
    """What compiles for a device, watched: `begun` and `made` are the names of kernels; `before`
    and `after` are called in the worker."""

    def __init__(self, device, monkeypatch):
        self.begun: list[str] = []
        self.made: list[str] = []
        self.sources: list[str] = []  # kernels of one name may differ
        self.after = lambda: None
        self.before = lambda name: None
        self._driver = type(device.handle)
        compile, begin = self._driver.compile, background.begin

        def watched(driver, code, binary=None):
            self.before(code.name)
            made = compile(driver, code, binary)
            self.made.append(code.name)
            self.sources.append(code.source)
            self.after()
            return made

        def noted(call):
            self.begun.append(call.name)
            begin(call)

        monkeypatch.setattr(self._driver, "compile", watched)
        monkeypatch.setattr(background, "begin", noted)


@pytest.fixture
def compiler(device, monkeypatch):
    """Nothing is compiled yet, in memory or on disk."""
    workers = background._Workers()
    workers.most = 4
    monkeypatch.setattr(background, "_workers", workers)
    monkeypatch.setattr(settings, "disk_cache", False)
    monkeypatch.setattr(recipes, "_recipes", RecentCache(64))
    device.compiled.clear()
    device.programs.clear()
    return Compiler(device, monkeypatch)


def data(device, rows=6, columns=10):
    values = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) / 7 - 3
    return values, td.asarray(values, device=device)


def program(x):
    """Three kernels at least, each of which reads what the one before wrote."""
    first = x.sum(axis=0)
    second = (x * first).max(axis=1)
    return (x.T * second + first.sum()).sum(axis=1)


def expected(x):
    first = x.sum(axis=0)
    second = (x * first).max(axis=1)
    return (x.T * second + first.sum()).sum(axis=1)


def test_all_kernels_of_a_plan_are_begun_before_the_first_is_needed(device, compiler):
    values, x = data(device)
    hold = threading.Event()
    compiler.before = lambda name: hold.wait(SECONDS)
    waited, wait = [], background._workers.wait_for

    def noted(call):
        waited.append(list(compiler.begun))
        hold.set()
        wait(call)

    background._workers.wait_for = noted
    result = program(x)
    np.testing.assert_allclose(result.numpy(), expected(values), rtol=1e-5)
    assert len(waited[0]) >= 3
    assert compiler.begun == waited[0]  # no launch had to begin one
    assert sorted(compiler.made) == sorted(compiler.begun)


def test_results_do_not_depend_on_who_is_ready_first(device, compiler):
    values, x = data(device)
    last = threading.Event()

    def before(name):
        if not compiler.made and name == compiler.begun[0]:
            assert last.wait(SECONDS)

    compiler.before, compiler.after = before, last.set
    np.testing.assert_allclose(program(x).numpy(), expected(values), rtol=1e-5)
    assert compiler.made[0] != compiler.begun[0]


def test_kernels_of_the_library_are_compiled_side_by_side_too(device, compiler):
    values, x = data(device, 4, 64)
    weight = td.ones((2, 1, 3), device=device)
    images = x.reshape(4, 1, 64)
    ordered = td.sort(x.sum(axis=0) + 1.0)
    convolved = td.nn.functional.conv1d(images, weight).sum()
    waited, wait = [], background._workers.wait_for
    hold = threading.Event()
    compiler.before = lambda name: hold.wait(SECONDS)

    def noted(call):
        waited.append(list(compiler.begun))
        hold.set()
        wait(call)

    background._workers.wait_for = noted
    together = (ordered.sum() + convolved).item()
    sums = sum(values[:, n : n + 62].sum(dtype=np.float64) for n in range(3)) * 2
    assert together == pytest.approx(values.sum(dtype=np.float64) + 64 + sums, rel=1e-4)
    assert compiler.begun == (waited[0] if waited else [])


def test_a_kernel_is_compiled_once_for_several_plans_and_threads(device, compiler):
    values, x = data(device)
    start = threading.Barrier(4)
    results, errors = [], []

    def work():
        try:
            start.wait(SECONDS)
            results.append(program(x).numpy())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for result in results:
        np.testing.assert_allclose(result, expected(values), rtol=1e-5)
    assert len(results) == 4
    assert len(set(compiler.sources)) == len(compiler.sources)


def test_a_failure_is_raised_where_the_kernel_is_needed(device, compiler):
    values, x = data(device)
    first = x.sum(axis=0)
    second = td.sqrt(first * first).max()

    def before(name):
        if "max" in name:
            raise CompileError(f"the compiler refused kernel {name}")

    compiler.before = before
    with pytest.raises(CompileError, match=r"refused kernel .*max"):
        second.item()
    np.testing.assert_allclose(first.numpy(), values.sum(axis=0), rtol=1e-5)
    with pytest.raises(CompileError, match=r"refused kernel .*max"):  # again, and not another error
        td.sqrt(first * first).max().item()
    compiler.before = lambda name: None
    assert td.sqrt(first * first).max().item() == pytest.approx(np.abs(values.sum(0)).max(), 1e-5)


@pytest.mark.parametrize("kind", [CompileError, MemoryError, OSError])
def test_failures_of_any_kind_name_the_kernel(device, compiler, kind):
    """Also those whose texts do not, such as of a file that cannot be written."""
    values, x = data(device)

    def before(name):
        if "max" in name:
            raise kind("no space left")

    compiler.before = before
    for _ in range(2):
        with pytest.raises(kind, match="no space left") as caught:
            td.sqrt(x.sum(axis=0) ** 2).max().item()
        (note,) = [each for each in caught.value.__notes__ if "compiled" in each]
        assert note.startswith("while kernel ")
        assert "max" in note
    compiler.before = lambda name: None
    found = td.sqrt(x.sum(axis=0) ** 2).max().item()
    assert found == pytest.approx(np.abs(values.sum(0)).max(), 1e-5)


def test_a_failure_of_what_is_never_needed_is_not_raised(device, compiler):
    from treadle.graph.compiling import compile_all
    from treadle.graph.groups import groups_of
    from treadle.graph.schedule import Plan

    def before(name):
        raise CompileError("refused")

    compiler.before = before
    values, x = data(device)
    node = program(x)._node
    compile_all([recipes.task_of(group) for group in groups_of(Plan([node]))][::-1])
    assert len(compiler.begun) >= 3
    compiler.before = lambda name: None
    assert x.min().item() == values.min()


def test_an_interrupted_wait_leaves_the_compilation(device, compiler):
    values, x = data(device)
    waits, hold, wait = threading.Event(), threading.Event(), background._workers.wait_for

    def noted(call):
        waits.set()
        wait(call)

    def interrupt():
        assert waits.wait(SECONDS)
        _thread.interrupt_main()

    background._workers.wait_for = noted
    compiler.before = lambda name: hold.wait(SECONDS)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        program(x).realize()
    thread.join()
    hold.set()
    np.testing.assert_allclose(program(x).numpy(), expected(values), rtol=1e-5)
    assert len(set(compiler.sources)) == len(compiler.sources)  # none a second time


def test_imagined_arrays_have_no_memory(device):
    from treadle.runtime.arrays import DeviceArray

    array = DeviceArray.imagined(device, td.float32, (2, 3))
    real = DeviceArray.allocate(device, td.float32, (2, 3))
    assert array.key.of_memory is real.key
    assert array.key is not real.key
    assert array.view((3,), (1,), 0).key.imagined
    for use in (array.to_host, lambda: array.upload(np.zeros((2, 3), np.float32))):
        with pytest.raises(TypeError, match="imagined"):
            use()


def test_compiled_functions_compile_side_by_side(device, compiler):
    values, x = data(device)
    compiled = td.compile(program)
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).numpy(), expected(values), rtol=1e-5)
    assert len(set(compiler.sources)) == len(compiler.sources) >= 3


def test_nothing_is_compiled_that_is_not_launched(device, compiler, monkeypatch):
    """What is zero is cleared by the driver, without a kernel."""
    needed, result = set(), build.Build.result

    def noted(one):
        needed.add(one)
        return result(one)

    monkeypatch.setattr(build.Build, "result", noted)
    values, x = data(device)
    y = td.zeros(10, device=device)
    y[2:5] = x.sum(axis=0)[2:5]
    z = td.concat([y, x.max(axis=0)])
    wanted = np.zeros(20, np.float32)
    wanted[2:5] = values.sum(axis=0)[2:5]
    wanted[10:] = values.max(axis=0)
    np.testing.assert_allclose(z.numpy(), wanted, rtol=1e-5)
    assert len(compiler.begun) == len(needed) >= 2


class Steps:
    """Four kernels, each of which is launched before the next one is known."""

    def __init__(self):
        @td.kernel
        def doubled(x, n):
            i = td.grid(1)
            if i < n:
                x[i] *= 2.0

        self.doubled = doubled  # compiled by no test before

    def __call__(self, x, scale, between=lambda: None):
        first = (x.sum(axis=0) * scale).realize()
        self.doubled.launch(10, first, 10)
        between()
        second = (x * first).max(axis=1).realize()
        return (x.T * second + 1.0).sum(axis=1).realize()

    @staticmethod
    def expected(x, scale):
        first = x.sum(axis=0) * scale * 2
        second = (x * first).max(axis=1)
        return (x.T * second + 1.0).sum(axis=1)


def compiled_in(function, device, guarded):
    return td.compile(function) if guarded else recorded(function, device)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_function_is_recorded_before_its_kernels_are_compiled(device, compiler, guarded):
    values, x = data(device)
    scale = td.ones(10, device=device).realize()
    # A trace begins with what is pending, as are tensors that other tests have left.
    realize([cell.value for cell in cells_of(device)])
    compiler.begun.clear()
    compiler.made.clear()
    hold, wait, steps = threading.Event(), background._workers.wait_for, Steps()
    at_the_end, waits = [], []

    def step(x):
        found = steps(x, scale)
        at_the_end.append((list(compiler.begun), list(compiler.made)))
        return found

    def noted(call):
        waits.append("".join(traceback.format_stack()))
        hold.set()  # something is waited for: after the function, or in it, which is wrong
        wait(call)

    background._workers.wait_for = noted
    compiler.before = lambda name: hold.wait(SECONDS)
    function = compiled_in(step, device, guarded)
    for _ in range(3):
        np.testing.assert_allclose(function(x).numpy(), steps.expected(values, 1.0), rtol=1e-5)
    assert at_the_end[0] == (compiler.begun, []), waits[0]
    assert len(compiler.begun) >= 4


@pytest.mark.parametrize("guarded", [True, False])
def test_a_recording_keeps_the_order_of_what_waits_for_kernels(device, compiler, guarded):
    """Uploads, zeroing and copies too; and what is read within the function is there."""
    values, x = data(device)
    scale, steps, read = td.ones(10, device=device).realize(), Steps(), []

    def between():
        host = np.full(10, 3.0, np.float32)
        scale[...] = td.asarray(host, device=device)
        host[...] = 5.0  # not what was uploaded

    def step(x):
        found = steps(x, scale, between)
        return found, td.zeros(4, device=device).realize(), scale + 0.0

    function = compiled_in(step, device, guarded)
    for factor in (1.0, 3.0, 3.0):
        found, zeros, copied = function(x)
        np.testing.assert_allclose(found.numpy(), steps.expected(values, factor), rtol=1e-5)
        assert zeros.tolist() == [0.0] * 4
        assert copied.tolist() == scale.tolist() == [3.0] * 10

    def reading(x):
        first = steps(x, scale)
        read.append(first.numpy())
        return first + x.min()

    function = compiled_in(reading, device, guarded)
    for _ in range(2):
        found = function(x).numpy()
        np.testing.assert_allclose(read[-1], steps.expected(values, 3.0), rtol=1e-5)
        np.testing.assert_allclose(found, read[-1] + values.min(), rtol=1e-5)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_recording_of_a_kernel_that_is_not_compiled_has_no_effect(device, compiler, guarded):
    values, x = data(device)
    scale, steps = td.ones(10, device=device).realize(), Steps()

    def between():
        scale[...] = scale + 1.0

    def before(name):
        if name == "doubled":
            raise CompileError(f"the compiler refused kernel {name}")

    compiler.before = before
    function = compiled_in(lambda x: steps(x, scale, between), device, guarded)
    for _ in range(2):
        with pytest.raises(CompileError, match="refused kernel doubled"):
            function(x)
        assert scale.tolist() == [1.0] * 10
    compiler.before = lambda name: None
    for factor in (1.0, 2.0):
        np.testing.assert_allclose(function(x).numpy(), steps.expected(values, factor), rtol=1e-5)
    assert scale.tolist() == [3.0] * 10
