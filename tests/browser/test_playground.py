"""The playground's page in Chromium: each example is run as a visitor would, and checked."""

from __future__ import annotations

import ast
import asyncio
import io
import json
import re
import sys
import threading
import types
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.browser.harness import Browser, Page, running
from tools.website import serve
from tools.website.playground import build

# Without these Chromium composites no canvas that a worker draws on the software adapter.
_FLAGS = ("--enable-features=Vulkan", "--use-vulkan=swiftshader", "--use-angle=swiftshader")
_WAIT = 100_000  # milliseconds
# The first test waits for the site, whose parts a fresh machine fetches first.
pytestmark = pytest.mark.timeout(300)


class Playground:
    """The page, and what a visitor does with it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.tab = page.tab

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        self.tab.wait_for_function(expression, timeout=_WAIT)

    def ready(self) -> Playground:
        """Wait until Python and the device are there."""
        self.wait(f"{_part('device-name')}.textContent !== 'not open yet'")
        return self

    def choose(self, example: str) -> None:
        self.tab.select_option("[data-part=examples]", example)

    def write(self, program: str) -> None:
        """Type another program into the editor."""
        self.tab.click(".playground-editor .cm-content")
        self.tab.keyboard.press("Control+a")
        self.tab.keyboard.press("Delete")
        self.tab.keyboard.insert_text(program)

    def start(self) -> None:
        self.tab.evaluate("document.querySelector('.playground').dataset.state = ''")
        self.tab.click("[data-part=run]")
        self.wait("document.querySelector('.playground').dataset.state")

    def ended(self) -> str:
        """Wait for the program's end: what it showed."""
        self.wait(
            "['done', 'failed'].includes(document.querySelector('.playground').dataset.state)"
        )
        return self.shown()

    def run(self) -> str:
        self.start()
        return self.ended()

    def stop(self) -> None:
        self.tab.click("[data-part=stop]")
        self.ended()

    def shown(self) -> str:
        text: str = self.tab.inner_text("[data-part=output]")
        return text

    def status(self) -> str:
        text: str = self.tab.inner_text("[data-part=status]")
        return text


def _part(name: str) -> str:
    return f"document.querySelector('[data-part={name}]')"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as `make site` builds it, with Python and a language model from this machine."""
    folder = tmp_path_factory.mktemp("site")
    build.page(folder)
    build.build(folder, pyodide="/pyodide/", model="/models/model.gguf")
    return folder


@pytest.fixture(scope="module")
def chromium(site: Path, model: Path) -> Iterator[Browser]:
    with running({"": site, "models": model.parent}, *_FLAGS) as browser:
        yield browser


@pytest.fixture(scope="module")
def opened(chromium: Browser) -> Playground:
    page = chromium.tab("/playground/", viewport={"width": 1280, "height": 1000})
    return Playground(page).ready()


@pytest.fixture
def playground(opened: Playground) -> Iterator[Playground]:
    """The page, which all tests share: loading Python takes seconds. The console stays empty."""
    yield opened
    assert opened.page.complaints() == []


def _until(
    measure: Callable[[Any], float], enough: float, playground: Playground
) -> Iterator[float]:
    """A measure of the canvas's pixels, again and again, until it is enough or time is up."""
    for _ in range(200):
        playground.tab.wait_for_timeout(100)
        value = measure(_pixels(playground))
        yield value
        if value > enough:
            return


def _redness(pixels: Any, at: tuple[float, float]) -> float:
    """How red a picture is around a place."""
    height, width = pixels.shape[:2]
    x, y = int(at[0] * width), int(at[1] * height)
    near = pixels[y - 4 : y + 5, x - 4 : x + 5]
    return float((near[..., 0] - near[..., 2]).max())


def _pixels(playground: Playground) -> Any:
    """The canvas as the screen shows it."""
    from PIL import Image

    picture = playground.tab.locator(".playground-canvas").screenshot()
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), np.float32) / 255


def test_a_kernel(playground: Playground) -> None:
    playground.choose("kernel")
    shown = playground.run()
    assert "largest error: 0.0" in shown
    assert playground.status().startswith("Done in ")
    facts = playground.tab.evaluate(f"{_part('device-facts')}.textContent")
    assert "threads in a block256" in facts
    assert "shared memory32 KiB" in facts


def test_cuda_and_its_wgsl(playground: Playground) -> None:
    playground.choose("cuda")
    shown = playground.run()
    assert "sum of 100000 ones: 100000.0" in shown
    columns = playground.tab.locator(".playground-columns section")
    cuda, wgsl = (columns.nth(i).inner_text() for i in range(2))
    assert cuda.startswith("CUDA C++")
    assert "__shared__ float part[128];" in cuda
    assert "128 x 1 x 1" in wgsl
    assert wgsl.startswith("WGSL")
    assert "var<workgroup> part: array<f32, 128>;" in wgsl


def test_the_wave_is_drawn_and_steered(playground: Playground) -> None:
    playground.choose("wave")
    playground.start()
    playground.tab.wait_for_selector(".playground-canvas", timeout=_WAIT)
    canvas = playground.tab.locator(".playground-canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    at = (0.25, 0.7)  # no drop falls there
    playground.tab.mouse.move(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])
    playground.tab.mouse.down()
    red = max(_until(lambda pixels: _redness(pixels, at), 0.4, playground))
    playground.tab.mouse.up()
    assert red > 0.4  # the pointer lifts the water there, which is red
    blue = max(
        _until(lambda pixels: float((pixels[..., 2] - pixels[..., 0]).max()), 0.1, playground)
    )
    assert blue > 0.1  # and around it a trough follows
    playground.stop()
    assert playground.status() == "Stopped"


@pytest.mark.parametrize("held", [False, True])
def test_the_wave_goes_on_within_its_colours(
    held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a minute of it, without a page: it is neither still at last nor too high."""
    seen: list[tuple[float, float]] = []

    class Canvas:
        pointer = (128, 90) if held else None

        async def frames(self) -> AsyncIterator[int]:
            for frame in range(4800):
                self.is_seen = frame % 7 == 0
                yield frame

        def draw(self, array: td.Tensor, low: float, high: float) -> None:
            if self.is_seen:
                values = array.numpy()
                seen.append((float(np.abs(values).max()), float(values.std())))

    async def canvas(rows: int, columns: int) -> Canvas:
        return Canvas()

    module = types.ModuleType("playground")
    module.canvas = canvas  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "playground", module)
    program = (build.HERE / "examples" / "wave.py").read_text().replace("SIZE = 256", "SIZE = 128")
    path = tmp_path / "wave.py"  # where kernels find their source
    path.write_text(program)
    code = compile(program, str(path), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with td.use_device("cpu"):
        asyncio.run(eval(code, {"__name__": "wave"}))
    heights, sizes = np.array(seen[2:]).T
    assert heights.max() < 1.2
    assert heights.min() > 0.1
    assert sizes.min() > 0.03


def test_digits_are_learned_and_read(playground: Playground) -> None:
    playground.choose("digits")
    playground.start()
    playground.tab.wait_for_selector(".playground-sketch", timeout=_WAIT)
    right = re.search(r"right on ([\d.]+)% of 261 digits", playground.shown())
    assert right is not None
    assert float(right[1]) > 93
    points = playground.tab.get_attribute(".playground-chart polyline", "points")
    assert len(points.split()) == 144
    strokes = {"1": [(0.5, 0.1), (0.5, 0.9)], "7": [(0.2, 0.15), (0.8, 0.15), (0.45, 0.9)]}
    for digit, corners in strokes.items():
        playground.tab.click(".playground-sketch button")
        _draw(playground, corners)
        said = "document.querySelector('.playground-sketch output').textContent"
        playground.wait(said)
        assert playground.tab.evaluate(said).startswith(digit)
    playground.stop()


def _draw(playground: Playground, corners: list[tuple[float, float]]) -> None:
    sketch = playground.tab.locator(".playground-sketch canvas")
    sketch.scroll_into_view_if_needed()
    box = sketch.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    playground.tab.mouse.move(*places[0])
    playground.tab.mouse.down()
    for place in places[1:]:
        playground.tab.mouse.move(*place, steps=8)
    playground.tab.mouse.up()


def test_errors_have_their_line_and_column(playground: Playground) -> None:
    playground.write(
        "import treadle as td\n\n@td.kernel\ndef k(x):\n    i = td.grid(1)\n    x[i] = [1, 2]\n\n"
        "k.launch(4, td.zeros(4))\n"
    )
    shown = playground.run()
    assert playground.status() == "Error"
    assert "program.py:6:12: a kernel has no lists" in shown
    assert "6 |     x[i] = [1, 2]" in shown
    assert "|            ^^^^^^" in shown
    assert playground.tab.inner_text(".cm-lintRange-error") == "[1, 2]"

    playground.write('print("é", 1 + undefined)\n')
    shown = playground.run()
    assert "NameError: name 'undefined' is not defined" in shown
    assert playground.tab.inner_text(".cm-lintRange-error") == "undefined"

    playground.write("x = 3 +\n")
    shown = playground.run()
    assert shown.splitlines()[-1] == "SyntaxError: invalid syntax"
    assert "_pyodide" not in shown


def test_a_program_that_does_not_end_is_stopped(playground: Playground) -> None:
    playground.write("print('begun', flush=True)\nwhile True: pass\n")
    playground.start()
    playground.wait(f"{_part('output')}.textContent.includes('begun')")
    playground.stop()  # by ending its worker; the next program gets a new one
    playground.write("40 + 2\n")
    assert playground.run() == "42"


def test_codes_for_terminals_are_not_shown(playground: Playground) -> None:
    playground.write(
        "import sys\n"
        "print('\\x1b[1;31mred\\x1b[0m and \\x1b]8;;https://x.y\\x1b\\\\a link\\x1b]8;;\\x07.')\n"
        "for part in ('a\\x1b', '[38;5;2', '08mb', '\\x1b(Bc\\n'):\n"
        "    sys.stdout.write(part)\n"
        "    sys.stdout.flush()\n"
        "print('\\x1b[33mwarned\\x1b[m', file=sys.stderr)\n"
    )
    assert playground.run().split() == ["red", "and", "a", "link.", "abc", "warned"]


def test_a_flood_of_lines_leaves_the_page_usable(playground: Playground) -> None:
    """Its end is shown, after what was printed before it, and other texts keep their order."""
    playground.write(
        "for i in range(20_000):\n    print('line', i, 40 * '.')\nprint('the end')\n'value'\n"
    )
    shown = playground.run()
    assert shown.startswith("… earlier text is left out")
    lines = [line for line in shown.splitlines() if line]
    assert lines[-3:] == [f"line 19999 {40 * '.'}", "the end", "'value'"]
    assert len(shown) < 600_000
    playground.write("print('asks')\ninput()\n")
    assert "the playground have no input" in playground.run()


def test_a_link_has_the_program(playground: Playground, chromium: Browser) -> None:
    program = "print('from a link: ä')\n"
    playground.write(program)
    playground.tab.click("[data-part=share]")
    playground.wait("location.hash.startsWith('#code=')")
    address = playground.tab.evaluate("location.pathname + location.hash")
    other = Playground(chromium.tab(address))
    other.wait("document.querySelector('.playground').dataset.state === 'ready'")
    assert other.shown() == ""  # it is shown, not run
    assert other.tab.inner_text(".playground-editor .cm-line >> nth=0") == program.strip()
    other.page.close()
    damaged = Playground(chromium.tab(address[:-9]))
    damaged.wait(f"{_part('output')}.textContent")
    assert "The program in this link is damaged" in damaged.shown()
    damaged.page.close()


def test_a_phone_without_webgpu_by_keyboard(chromium: Browser, site: Path) -> None:
    """Programs run on the CPU; and a small, dark page is used without a mouse."""
    hidden = 'Object.defineProperty(navigator, "gpu", { value: undefined });\n'
    script = hidden + (site / "playground" / "worker.js").read_text()
    context = chromium.browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True
    )
    context.route(
        "**/playground/worker.js",
        lambda route: route.fulfill(body=script, content_type="text/javascript"),
    )
    phone = Playground(chromium.tab("/playground/#example=kernel", context=context)).ready()
    assert phone.tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert "Programs run on the CPU, more slowly. " in phone.shown()
    assert "NumPy" in phone.tab.evaluate(f"{_part('device-name')}.textContent")
    phone.tab.focus("[data-part=examples]")
    phone.tab.keyboard.press("Tab")
    assert phone.tab.evaluate("document.activeElement.dataset.part") == "run"
    phone.tab.focus(".playground-editor .cm-content")
    phone.tab.keyboard.press("Control+Enter")
    phone.wait("document.querySelector('.playground').dataset.state === 'running'")
    assert "largest error: 0.0" in phone.ended()
    phone.tab.keyboard.press("Escape")
    phone.tab.keyboard.press("Tab")
    assert phone.tab.evaluate("document.activeElement.dataset.part") == "output"
    assert phone.page.complaints() == []
    phone.choose("wave")
    phone.start()
    phone.tab.wait_for_selector(".playground-canvas", timeout=_WAIT)
    blue = _until(lambda pixels: float((pixels[..., 2] - pixels[..., 0]).max()), 0.1, phone)
    assert max(blue) > 0.1
    phone.page.close()


def test_text_is_generated_and_the_file_kept(playground: Playground, model: Path) -> None:
    here = td.models.load(model, "cpu", context=256)
    expected = here.generate("The capital of France is", max_tokens=24).text()
    playground.choose("text")
    shown = playground.run().splitlines()
    assert "0.1 of 0.1 MB" in shown[0]
    assert shown[-1] == expected
    again = playground.run().splitlines()  # from the browser's storage
    assert "MB" not in again[0]
    assert again[-1] == expected


def test_a_site_is_served_with_a_local_python(site: Path) -> None:
    with serve.server(site, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://localhost:{server.server_address[1]}"
        with urllib.request.urlopen(f"{address}/playground/config.json") as answer:
            assert json.load(answer)["pyodide"] == "/pyodide/"
        with urllib.request.urlopen(f"{address}/pyodide/pyodide.mjs") as answer:
            assert answer.headers["Content-Type"] == "text/javascript"
        with urllib.request.urlopen(f"{address}/playground/") as answer:
            assert b"playground-panes" in answer.read()
        server.shutdown()
        thread.join()
