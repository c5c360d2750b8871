"""What is imported when: public names at their first use, and the compiler when a kernel is new."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
import threading
import types

import pytest

import treadle as td
from tools import stubs
from treadle.core import deferred_imports

# Rooms that `import treadle` does without.
HEAVY = (
    "numpy", "ml_dtypes", "llvmlite", "wgpu", "treadle.autograd", "treadle.cli", "treadle.codegen",
    "treadle.cuda_cpp", "treadle.data", "treadle.drivers", "treadle.formats", "treadle.ir",
    "treadle.kernels", "treadle.models", "treadle.nn", "treadle.optim", "treadle.quant",
    "treadle.tensor.tensor",
)  # fmt: skip
# What computing does without that finds its kernels on disk: the compiler, and what is not used.
COMPILER = (
    "ml_dtypes", "treadle.codegen.pipeline", "treadle.codegen.llvm", "treadle.codegen.wgsl",
    "treadle.ir.passes", "treadle.ir.parser", "treadle.lang.lower", "treadle.lang.interpreter",
    "treadle.autograd", "treadle.cli", "treadle.cuda_cpp", "treadle.data", "treadle.formats",
    "treadle.models", "treadle.nn", "treadle.optim", "treadle.quant", "treadle.tensor.compiled",
    "treadle.tensor.fft",
    "treadle.tensor.functional", "treadle.tensor.linalg", "treadle.tensor.random",
)  # fmt: skip
SMALL = "import treadle as td\nassert float((td.ones(3, device='cpu') + 1).sum()) == 6\n"
EXPORTING = list(stubs.exporting().values())


def _loaded(code: str, **variables: str) -> list[str]:
    """The modules that a process has after some code, in the order of their imports."""
    code += "\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def _those_of(heavy: tuple[str, ...], loaded: list[str]) -> list[str]:
    return [each for each in loaded if any(f"{each}.".startswith(f"{one}.") for one in heavy)]


@pytest.mark.parametrize(
    "package", ["treadle", "treadle.nn", "treadle.optim", "treadle.data", "treadle.quant"]
)
def test_modules_among_the_public_names_can_be_imported(package):
    owner = importlib.import_module(package)
    found = {name: getattr(owner, name) for name in owner.__all__}
    modules = {name: each for name, each in found.items() if isinstance(each, types.ModuleType)}
    assert package != "treadle" or {"errors", "fft", "linalg", "nn", "random"} <= set(modules)
    for name, module in modules.items():
        code = f"import {package}.{name} as found\nimport {package} as p\nassert p.{name} is found"
        assert importlib.import_module(f"{package}.{name}") is module
        assert _loaded(code), "also before any other import"


def test_importing_treadle_loads_only_tables():
    assert _those_of(HEAVY, _loaded("import treadle")) == []


def test_kernels_from_disk_need_no_compiler(tmp_path):
    folder = str(tmp_path)
    assert "treadle.codegen.pipeline" in _loaded(SMALL, TREADLE_CACHE_DIR=folder)
    assert _those_of(COMPILER, _loaded(SMALL, TREADLE_CACHE_DIR=folder)) == []


def test_looking_for_devices_opens_no_driver():
    rest = (
        "pycparser", "wgpu", "treadle.drivers.cuda.device", "treadle.drivers.cuda.stream",
        "treadle.drivers.webgpu_native.device", "treadle.drivers.webgpu_native.stream",
    )  # fmt: skip
    assert _those_of(rest, _loaded("import treadle as td\nassert td.devices()")) == []


@pytest.mark.parametrize("name", EXPORTING)
def test_every_exported_name_is_there(name):
    module = importlib.import_module(name)
    for each in module.__all__:
        assert getattr(module, each) is getattr(module, each)
        assert each in dir(module)


@pytest.mark.parametrize("name", EXPORTING)
def test_no_exported_name_is_that_of_another_submodule(name):
    module = importlib.import_module(name)
    for path in getattr(module, "__path__", ()):
        submodules = {each.removesuffix(".py") for each in os.listdir(path)}
        for each in submodules & {n for names in module.NAMES.values() for n in names.split()}:
            assert getattr(module, each) is importlib.import_module(f"{name}.{each}")


@pytest.mark.parametrize("code", [
    "from treadle import *\nassert float(exp(zeros(1, device='cpu'))) == 1\nassert nn and linalg",
    "import treadle.nn\nassert treadle.nn.Linear(2, 3, device='cpu').weight.shape == (3, 2)",
    "import treadle.nn.functional as F\nimport treadle as td\n"
    "assert F.relu(td.ones(2, device='cpu')).tolist() == [1, 1] and F is td.nn.functional",
    "from treadle.tensor.tensor import Tensor\nimport treadle as td\n"
    "assert isinstance(td.ones(1, device='cpu'), Tensor) and Tensor is td.Tensor",
    "from treadle.kernels import product",
    "from treadle.cli import app",
    # A module with the name of what it is for does not hide it.
    "import treadle.tensor.einstein_summation, treadle as td\nassert callable(td.tensor.einsum)",
    "import treadle as td\nassert td.runtime.sync_available()",
    "import treadle as td\nx = td.ones(2, device='cpu').requires_grad_()\n"
    "(x * x).sum().backward()\nassert x.grad.tolist() == [2, 2]",
    "import pydoc, treadle\ntext = pydoc.render_doc(treadle)\nassert 'autocast' in text",
])  # fmt: skip
def test_names_are_found_in_any_order(code):
    _loaded(code)


def test_what_is_not_there_is_an_attribute_error():
    assert not hasattr(td, "nonsense")
    with pytest.raises(AttributeError, match="module 'treadle' has no attribute 'conat'") as caught:
        td.conat  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("conat", td)  # Python suggests `concat`
    with pytest.raises(ImportError):
        from treadle import nonsense  # noqa: F401


def test_threads_get_the_same_object():
    code = """
import threading, treadle as td
barrier, found = threading.Barrier(8), []
def use():
    barrier.wait()
    found.append((td.nn.Linear, td.linalg.qr, td.concat, td.Tensor.sum, td.exp))
threads = [threading.Thread(target=use) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert len(found) == 8 and len(set(found)) == 1
"""
    _loaded(code)


def test_faults_of_a_module_are_shown_as_they_are(monkeypatch, tmp_path):
    (tmp_path / "module_with_a_fault.py").write_text("1 / 0\n")
    (tmp_path / "module_that_lacks_another.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = {"module_with_a_fault": "wrong", "module_that_lacks_another": "lacking"}
    _, find, _ = deferred_imports.exports(__name__, names)
    with pytest.raises(ZeroDivisionError):
        find("wrong")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        find("lacking")


def test_deferred_methods_are_those_of_the_class():
    code = """
import inspect, treadle as td
T = td.Tensor
assert list(inspect.signature(T.flip).parameters)[0] == "x" and T.flip is td.flip
x = td.asarray([[1.0, 2.0]], device="cpu")
try:
    x.mT = x
except AttributeError as error:
    assert "setter" in str(error), error
else:
    raise AssertionError
assert x.mT.shape == (2, 1) and isinstance(vars(T)["mT"], property)
assert (1 - x).tolist() == [[0, -1]] and (x @ x.T).tolist() == [[5]] and 2 in x
assert [row.tolist() for row in x] == [[1, 2]] and x[0, 1] == 2 and "2" in repr(x)
class Own(T):
    pass
assert Own.cumsum is td.cumulative_sum and "cumsum" not in vars(Own)
"""
    _loaded(code)


def test_public_names_are_pickled():
    for value in (td.concat, td.exp, td.nn.Linear, td.float32, td.linalg.qr, td.errors.ShapeError):
        assert pickle.loads(pickle.dumps(value)) is value


def test_compiled_functions_import_what_they_use_first():
    code = """
import treadle as td
@td.compile(strict=True)
def step(x):
    y = td.nn.functional.softplus(td.linalg.matmul(x, x)).flip(axis=0)
    return td.nn.Flatten(0)(y)
x = td.eye(2, device="cpu")
first, second, third = (step(x).tolist() for _ in range(3))
assert first == second == third
assert step.traces == 1, step.traces
"""
    _loaded(code)


def test_threads_at_once_use_a_deferred_method():
    barrier, found = threading.Barrier(4), []

    def use() -> None:
        barrier.wait()
        found.append(td.Tensor.cumprod)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [td.cumulative_prod] * 4


FORKS = """
import os, threading, treadle as td
begun = threading.Event()
def use():
    begun.set()
    for name in td.nn.__all__:
        getattr(td.nn, name)
thread = threading.Thread(target=use)
thread.start()
begun.wait()
codes = []
for name in ("Linear", "Conv2d", "LSTM", "Transformer"):
    child = os.fork()
    if child == 0:
        os._exit(0 if callable(getattr(td.nn, name)) else 1)
    codes.append(os.waitpid(child, 0)[1])
thread.join()
assert codes == [0] * 4
"""


def test_a_fork_waits_for_imports_of_other_threads():
    _loaded(FORKS)


def test_imports_of_other_threads_are_waited_for():
    running = deferred_imports._Running()
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with running.one_more():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    assert not running.acquire(blocking=False)
    assert not running.acquire(timeout=0.01)
    leave.set()
    assert running.acquire(timeout=60)
    running.release()
    thread.join()
    with running.one_more():  # a module that forks while it is imported waits for others alone
        assert running.acquire(blocking=False)
        running.release()
