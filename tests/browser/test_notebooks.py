"""The notebooks of the documentation, opened and run in Chromium as `make site` builds them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.distribution import notebook_distribution
from tests.browser.harness import Browser, running
from tools.website.notebooks import build
from tools.website.playground.build import wheels

# Milliseconds for a notebook to run through: 15 seconds of a core, of which a machine that does
# other things at the same time may give little. The limit of a test is longer than all its waits;
# the first test also waits for the site, whose parts a fresh machine fetches.
_WAIT = 400_000
pytestmark = pytest.mark.timeout(900)
# That the last cell has ended, or that one has failed: then those behind it are not run.
_HAS_RUN = """() => {
    const prompts = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt");
    const output = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']";
    return [...prompts].at(-1).textContent.startsWith("[5]") || document.querySelector(output);
}"""
_HAS_STARTED = """() => {
    const prompts = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt");
    return [...prompts].some((one) => /\\[[*\\d]/.test(one.textContent));
}"""
_TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    site = tmp_path_factory.mktemp("site")
    wheels(site / "playground" / "wheels")
    build.build(site, pyodide="/distribution/")
    with running({"": site, "distribution": notebook_distribution()}) as browser:
        yield browser


def test_jupyterlite(chromium: Browser) -> None:
    from playwright.sync_api import TimeoutError as PlaywrightTimeout

    page = chromium.tab("/notebooks/jupyter/notebooks/index.html?path=treadle.ipynb")
    page.tab.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=_WAIT)
    for _ in range(3):  # JupyterLite drops the command if its kernel is not there yet
        page.tab.click(".lm-MenuBar-itemLabel:text-is('Run')")
        page.tab.click(".lm-Menu-itemLabel:text-is('Run All Cells')")
        with contextlib.suppress(PlaywrightTimeout):
            page.tab.wait_for_function(_HAS_STARTED, timeout=60_000)
            break
    page.tab.wait_for_function(_HAS_RUN, timeout=_WAIT)
    outputs = page.tab.locator(".jp-OutputArea-output").all_inner_texts()
    assert len(outputs) == 4, outputs
    device, kernel, cuda, training = outputs
    assert device.startswith("webgpu:0 ")
    assert kernel.strip() == "largest error: 0.0"
    assert cuda.strip() == "[0.5 1.5 2.5 3.5]"
    assert float(training.partition("loss:")[2]) < 0.05
    page.close()


def test_marimo(chromium: Browser) -> None:
    context = chromium.browser.new_context()
    context.route(lambda address: not address.startswith(chromium.address), _elsewhere)
    page = chromium.tab("/notebooks/marimo/index.html", context=context)
    page.tab.wait_for_function("document.body.innerText.includes('largest error')", timeout=_WAIT)
    text = page.tab.inner_text("body")
    assert "Device: " in text
    assert "sum: 100000000, largest error: 0.0" in text
    slider = page.tab.locator("[role=slider]")
    slider.focus()
    slider.press("ArrowRight")
    slider.press("Tab")
    page.tab.wait_for_function("document.body.innerText.includes('sum: 149995000')", timeout=_WAIT)
    page.close()


def _elsewhere(route: Any) -> None:
    """Pyodide's site and marimo's lock file, which the page names, from the distribution here."""
    path = notebook_distribution() / Path(route.request.url.partition("?")[0]).name
    if not path.is_file():
        route.abort()
        return
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    headers = {"Access-Control-Allow-Origin": "*", "Content-Type": kind}
    route.fulfill(path=str(path), headers=headers)
