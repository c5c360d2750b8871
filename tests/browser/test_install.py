"""treadle installs in a page as people install it: by micropip, from an index of pure wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.harness import Browser, Page, PageError, wheel_folder

LARGEST = 4_500_000
"""Bytes of the wheel, which every visitor of a page fetches once."""
# What no page has, or what takes long to import and is not needed to begin.
ABSENT = (
    "llvmlite", "wgpu", "cffi", "ml_dtypes", "multiprocessing", "concurrent.futures.process",
    "opt_einsum", "rich", "typer",
)  # fmt: skip
LISTEN = """
    import logging
    from logging.handlers import QueueHandler
    from queue import SimpleQueue

    logging.heard = SimpleQueue()
    logging.getLogger("treadle").addHandler(QueueHandler(logging.heard))
"""


@pytest.fixture(scope="module")
def index(browser: Browser) -> str:
    """The address of a package index (PEP 503) on this machine, with the wheels that the server
    has: nothing else can be fetched by a page under test."""
    folder = wheel_folder() / "simple"
    for wheel in wheel_folder().glob("*.whl"):
        project = folder / wheel.name.partition("-")[0].lower().replace("_", "-")
        project.mkdir(parents=True, exist_ok=True)
        link = f'<!DOCTYPE html><a href="/wheels/{wheel.name}">{wheel.name}</a>'
        (project / "index.html").write_text(link, encoding="utf-8")
    return f"{browser.address}/wheels/simple/{{package_name}}/index.html"


@pytest.fixture(scope="module")
def installed(browser: Browser, index: str) -> Page:
    """A page with nothing but treadle, from the index, in a browser without WebGPU."""
    page = browser.python(packages=("micropip",), wheels=())
    page.tab.evaluate(
        "Object.defineProperty(navigator, 'gpu', {value: undefined, configurable: true})"
    )
    page.run(f"import micropip; await micropip.install('treadle', index_urls={index!r})")
    page.run(LISTEN)
    return page


def test_the_wheel_is_small() -> None:
    (wheel,) = wheel_folder().glob("treadle-*.whl")
    assert Path(wheel).stat().st_size <= LARGEST


def test_micropip_installs_it_from_an_index(installed: Page) -> None:
    names = installed.run("import micropip; [*micropip.list()]")
    assert {"treadle", "numpy", "opt-einsum", "rich", "typer"} <= {
        name.lower().replace("_", "-") for name in names
    }


def test_importing_it_imports_little(installed: Page) -> None:
    code = f"""
        import sys
        import treadle as td
        [name for name in {ABSENT!r} if name in sys.modules]
    """
    assert installed.run(code) == []
    assert installed.run("import treadle as td; td.asarray([1.0, 2.0], device='cpu').tolist()") == [
        1.0,
        2.0,
    ]
    assert installed.run("import threading; threading.active_count()") == 1


def test_bfloat16_says_what_is_missing_only_where_numpy_needs_it(installed: Page) -> None:
    code = """
        import treadle as td
        x = td.asarray([1.0, 2.5, 1 / 3], dtype=td.bfloat16, device="cpu")
        try:
            x.numpy()
        except ImportError as error:
            said = str(error)
        [(x * 2).tolist(), x[1].item(), repr(x), td.finfo(td.bfloat16).eps, said]
    """
    values, item, text, eps, said = installed.run(code)
    assert (values, item, eps) == ([2.0, 5.0, 0.66796875], 2.5, 0.0078125)
    assert text.startswith("tensor([1.")
    assert "bfloat16" in text
    for part in ("ml_dtypes", "micropip.install", "td.float32"):
        assert part in said


def test_files_with_bfloat16_are_read_without_it(installed: Page) -> None:
    code = """
        import json, struct, treadle as td
        header = {"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}
        text = json.dumps(header).encode()
        with open("/home/pyodide/halves.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.write(struct.pack("<3H", 0x3F80, 0x4020, 0xC000))
        x = td.load("/home/pyodide/halves.safetensors", device="cpu")["x"]
        [str(x.dtype), x.tolist()]
    """
    assert installed.run(code) == ["bfloat16", [1.0, 2.5, -2.0]]


def test_the_command_line_and_einsum_have_what_they_need(installed: Page) -> None:
    code = """
        import treadle as td
        import treadle.cli.app
        x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        td.einsum("ij,jk,kl->il", x, x, x).tolist()
    """
    assert installed.run(code) == [[37.0, 54.0], [81.0, 118.0]]


# --- without an adapter --------------------------------------------------------------------------


def test_no_adapter_is_said_with_what_to_do(installed: Page) -> None:
    code = """
        import treadle as td
        try:
            td.device("webgpu")
        except td.errors.DeviceNotFound as error:
            said = str(error)
        said
    """
    said = installed.run(code)
    assert "cpu (NumPy" in said
    assert "use a current Chrome" in said


def test_the_cpu_computes_arrays_through_numpy_and_says_so(installed: Page) -> None:
    code = """
        import logging, numpy as np, treadle as td

        x = td.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
        found = [((x + 1) * 2).sum(axis=1).tolist(), (x @ x.T).tolist()]
        heard = [logging.heard.get().getMessage() for _ in range(logging.heard.qsize())]
        [x.device.id, x.device.name, found, heard]
    """
    device, name, (sums, product), heard = installed.run(code)
    assert device == "cpu"
    assert name.startswith("NumPy on ")
    assert sums == [20.0, 52.0, 84.0]
    assert product == [[14, 38, 62], [38, 126, 214], [62, 214, 366]]
    assert any("through NumPy" in line for line in heard)
    assert any("navigator.gpu" in line for line in heard)


def test_kernels_are_found_in_code_without_a_file(installed: Page) -> None:
    """`pyodide.runPython` names the code "<exec>" unless the page gives it a file name."""
    code = """
        import treadle as td

        @td.kernel
        def double(x: td.Array[td.f32]):
            x[td.grid(1)] *= 2.0

        x = td.arange(4, dtype=td.f32, device="cpu")
        double[1, 4](x)
        x.tolist()
    """
    assert installed.run(code, filename="<exec>") == [0, 2, 4, 6]


def test_the_cpu_runs_kernels_and_training(installed: Page) -> None:
    code = """
        import treadle as td

        @td.kernel
        def block_sums(x: td.Array[td.f32], out: td.Array[td.f32]):
            part = td.shared(64, td.f32)
            t = td.thread_idx.x
            part[t] = x[td.grid(1)]
            td.sync_threads()
            if t == 0:
                total = 0.0
                for k in range(64):
                    total += part[k]
                td.atomic_add(out, 0, total)

        out = td.zeros(1)
        block_sums[4, 64](td.ones(256), out)
        w = td.zeros(2)
        w.requires_grad = True
        optimizer = td.optim.SGD([w], lr=0.1)
        for _ in range(50):
            optimizer.zero_grad()
            ((w - td.asarray([1.0, -2.0])) ** 2).sum().backward()
            optimizer.step()
        [out.item(), [round(v, 3) for v in w.tolist()]]
    """
    assert installed.run(code) == [256.0, [1.0, -2.0]]


def test_an_adapter_that_comes_later_is_found(installed: Page) -> None:
    """The last test of this page, which has WebGPU afterwards."""
    installed.console.clear()  # of what the index does not have
    ask = "import treadle as td; await td.init(); td.device('webgpu').id"
    with pytest.raises(PageError, match=r"DeviceNotFound: .*no WebGPU.*current Chrome"):
        installed.run(ask)
    installed.tab.evaluate("delete navigator.gpu; navigator.gpu.requestAdapter = async () => null")
    with pytest.raises(PageError, match=r"DeviceNotFound: .*gives no adapter.*chrome://gpu"):
        installed.run(ask)
    installed.tab.evaluate("delete navigator.gpu.requestAdapter")
    assert installed.run(ask) == "webgpu:0"
    assert installed.run("__import__('treadle').ones(3, device='webgpu').tolist()") == [1.0] * 3
    assert installed.complaints() == []
