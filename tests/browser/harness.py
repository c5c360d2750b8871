"""Chromium, and Python inside its pages.

Playwright's objects belong to one thread, whose event loop would be in the way of other tests in
the main thread. So they live in a thread of their own, and `Proxy` passes each call there: what
Playwright documents for a page works on `Page.tab` as usual.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.server import serving
from tools.browser_parts import cache_folder, fetch

ROOT = Path(__file__).resolve().parents[2]
# The watchdog ends the process for GPUs where a software GPU on a busy machine is slow.
_FLAGS = (
    "--enable-unsafe-webgpu", "--no-sandbox", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-gpu-watchdog",
    "--js-flags=--expose-gc",
)  # fmt: skip
# All that treadle's package requires, as names of wheels.
DEPENDENCIES = (
    "opt_einsum", "rich", "typer", "click", "shellingham", "markdown_it_py", "mdurl", "pygments",
    "typing_extensions", "annotated_doc",
)  # fmt: skip
PYTEST = ("pytest", "pluggy", "iniconfig", "pygments")


class PageError(AssertionError):
    """Python code in the page failed; the text is its traceback."""


class Proxy:
    """An object that lives in another thread: its methods are called there."""

    def __init__(self, thread: ThreadPoolExecutor, found: Any) -> None:
        self._thread = thread
        self._found = found

    def __getattr__(self, name: str) -> Any:
        found = self._thread.submit(getattr, self._found, name).result()
        if callable(found):
            return functools.partial(self._call, found)
        return self._wrapped(found)

    def _call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        call = functools.partial(function, *map(_unwrapped, args), **options)
        return self._wrapped(self._thread.submit(call).result())

    def _wrapped(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._wrapped(each) for each in value]
        return Proxy(self._thread, value) if _is_playwrights(value) else value


def _is_playwrights(value: Any) -> bool:
    return type(value).__module__.startswith("playwright.sync_api")


def _unwrapped(value: Any) -> Any:
    return value._found if isinstance(value, Proxy) else value


class Page:
    """A page of the browser. `tab` is Playwright's page; `console` is what was written to its
    console, as pairs of a kind ("error", "warning", "log", …) and a text."""

    def __init__(self, tab: Proxy, console: list[tuple[str, str]]) -> None:
        self.tab = tab
        self.console = console

    def complaints(self) -> list[str]:
        """The console's errors and warnings so far."""
        return [text for kind, text in self.console if kind in ("error", "warning")]

    def run(self, code: str, filename: str = "/home/pyodide/test_code.py") -> Any:
        """Run Python in the page, where `await` is allowed: what its last expression is, which must
        be something that JSON has. PageError with the traceback if it raises."""
        code = textwrap.dedent(code)
        found = self.tab.evaluate(
            "([code, filename]) => call('runPython', code, filename)", [code, filename]
        )
        if "error" in found:
            raise PageError(found["error"])
        return json.loads(found["json"])

    def load(self, address: str, packages: Sequence[str], wheels: Sequence[str]) -> None:
        """Load further packages of Pyodide's, and wheels that the server at an address has."""
        wanted = [*packages, *(f"{address}/wheels/{_wheel(name)}" for name in wheels)]
        self.run(
            f"""
            import pyodide_js
            from pyodide.ffi import to_js
            await pyodide_js.loadPackage(to_js({wanted!r}), messageCallback=lambda text: None)
            None
            """
        )

    def printed(self) -> list[str]:
        """The lines that Python printed since the last look."""
        lines: list[str] = self.tab.evaluate("call('printed')")
        return lines

    def close(self) -> None:
        """Close the tab."""
        self.tab.close()


class Browser:
    """A running Chromium with a server beside it."""

    def __init__(self, address: str, browser: Proxy, thread: ThreadPoolExecutor) -> None:
        self.address = address
        self.browser = browser  # Playwright's
        self._thread = thread

    def tab(self, path: str = "/", **context: Any) -> Page:
        """A new tab at an address of the server, in a context (storage, size, colours) of its own,
        or in the one given as `context=`."""
        given = context.pop("context", None)
        tab = (given or self.browser.new_context(**context)).new_page()
        console: list[tuple[str, str]] = []
        self._listen(tab, console)
        tab.goto(self.address + path)
        return Page(tab, console)

    def _listen(self, tab: Proxy, console: list[tuple[str, str]]) -> None:
        def listen() -> None:
            tab._found.on("console", lambda said: console.append((said.type, said.text)))
            tab._found.on("pageerror", lambda error: console.append(("error", str(error))))

        self._thread.submit(listen).result()

    def python(
        self,
        *,
        worker: bool = False,
        stack_switching: bool = True,
        packages: Sequence[str] = ("numpy",),
        wheels: Sequence[str] = ("opt_einsum", "treadle"),
        **context: Any,
    ) -> Page:
        """A tab in which Python runs, with treadle: in the window or in a Web Worker."""
        page = self.tab("/harness/index.html", **context)
        page.tab.evaluate("(where) => start(where)", "worker" if worker else "window")
        page.tab.evaluate(
            "(options) => call('boot', options)",
            {
                "stackSwitching": stack_switching,
                "packages": list(packages),
                "wheels": [f"{self.address}/wheels/{_wheel(name)}" for name in wheels],
            },
        )
        return page


@functools.cache
def wheel_folder() -> Path:
    """A folder with the wheels that pages install, and treadle's own, just built: without the hook
    that writes a file among the sources, which other tests may be reading."""
    fetch(cache_folder())
    folder = cache_folder() / f"served-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in (cache_folder() / "wheels").iterdir():
        (folder / path.name).symlink_to(path)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, env=os.environ | {"HATCH_BUILD_NO_HOOKS": "1"},
    )  # fmt: skip
    return folder


def _wheel(name: str) -> str:
    return next(wheel_folder().glob(f"{name}-*.whl")).name


def chromium() -> str:
    """Chromium's program: $TREADLE_CHROMIUM, or the one on the path."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("TREADLE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise FileNotFoundError("no Chromium: `make test` installs it, or set TREADLE_CHROMIUM")
    return found


@contextmanager
def running(folders: dict[str, Path] | None = None, *flags: str) -> Iterator[Browser]:
    """Chromium, headless, while the block runs; the server has further folders by prefix."""
    from playwright.sync_api import sync_playwright

    served = {
        "pyodide": cache_folder() / "pyodide",
        "wheels": wheel_folder(),
        "harness": Path(__file__).parent / "pages",
        **(folders or {}),
    }
    thread = ThreadPoolExecutor(1, thread_name_prefix="playwright")

    def begin() -> Any:
        playwright = sync_playwright().start()
        browser = playwright.chromium.launch(
            executable_path=chromium(), headless=True, args=[*_FLAGS, *flags]
        )
        return playwright, browser

    with serving(served) as address:
        playwright, browser = thread.submit(begin).result()
        try:
            yield Browser(address, Proxy(thread, browser), thread)
        finally:
            thread.submit(browser.close).result()
            thread.submit(playwright.stop).result()
            thread.shutdown()
            shutil.rmtree(served["wheels"], ignore_errors=True)
            wheel_folder.cache_clear()
