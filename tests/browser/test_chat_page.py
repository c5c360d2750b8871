"""The page of `treadle serve`, in Chromium: what it shows, keeps and sends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.harness import Browser, Page
from tests.support.small_server import Running, starting_servers

ANSWER = """Some **bold `code`**, *emphasis*, 2 * 3 * 4 and <b>no HTML</b>.

1. one
2. two
   - inner
   ```
   x  =  1
   ```
5. five

```html
<i>a</i>
**b**
```
the end

```
unfinished"""


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Running]]:
    with starting_servers() as starting:
        yield starting


@pytest.fixture
def opened(browser: Browser, start: Callable[..., Running]) -> Iterator[Callable[..., Any]]:
    """Opens the page of a server: Playwright's page, its console, and the server."""
    contexts = []

    def opening(
        answer: Callable[[str], str], size: tuple[int, int] = (1280, 800), **settings: Any
    ) -> tuple[Any, Page, Running]:
        running = start(answer, **settings)
        context = browser.browser.new_context(viewport={"width": size[0], "height": size[1]})
        contexts.append(context)
        page = Browser(running.url, browser.browser, browser._thread).tab(context=context)
        return page.tab, page, running

    yield opening
    for context in contexts:
        context.close()


def ask(tab: Any, text: str) -> None:
    tab.fill("#text", text)
    tab.press("#text", "Enter")


def said(tab: Any) -> list[str]:
    """The texts of all questions and answers."""
    found: list[str] = tab.locator(".message > div").all_text_contents()
    return found


def html(tab: Any) -> str:
    """The last answer's."""
    found: str = tab.locator(".assistant > div").last.inner_html()
    return found


def wait_for(tab: Any, condition: str) -> None:
    """Wait for what an expression says: Playwright's own way is `eval`, which the page forbids."""
    end = time.monotonic() + 30
    while not tab.evaluate(condition):
        assert time.monotonic() < end, condition
        tab.wait_for_timeout(10)


def test_answers_are_shown_with_their_markdown(opened: Callable[..., Any]) -> None:
    tab, page, _ = opened(lambda prompt: ANSWER)
    assert tab.is_visible("#intro")
    wait_for(tab, "document.querySelector('#model').value === 'small'")
    assert tab.locator("#model option").all_inner_texts() == ["small"]  # and no encoder
    ask(tab, "*plain* <b>text</b>")
    tab.wait_for_selector(".note")
    assert not tab.is_visible("#intro")
    assert tab.locator(".user > div").inner_text() == "*plain* <b>text</b>"
    assert html(tab).replace(' class=""', "") == (
        "<p>Some <strong>bold <code>code</code></strong>, <em>emphasis</em>, 2 * 3 * 4 and "
        "&lt;b&gt;no HTML&lt;/b&gt;.</p>"
        '<ol start="1"><li>one</li><li>two<ul><li>inner<pre><code>x  =  1</code></pre></li></ul>'
        "</li><li>five</li></ol>"
        "<pre><code>&lt;i&gt;a&lt;/i&gt;\n**b**</code></pre><p>the end</p>"
        "<pre><code>unfinished</code></pre>"
    )
    family = "(at) => getComputedStyle(document.querySelector(at)).fontFamily"
    assert "monospace" in tab.evaluate(family, "p code")
    assert "monospace" in tab.evaluate(family, "pre code")
    assert page.complaints() == []


def test_a_question_waits_for_the_answer_before(opened: Callable[..., Any]) -> None:
    go_on = threading.Event()

    def answer(prompt: str) -> str:
        if prompt.endswith("second"):
            return "another"
        return "a" * 60

    tab, page, running = opened(answer, delay=0.02)
    step = running.engine.step

    def held() -> bool:
        if any(each.prompt_tokens and len(each.tokens) == 5 for each in running.engine.running):
            assert go_on.wait(60)
        return step()

    running.engine.step = held
    try:
        ask(tab, "first")
        wait_for(tab, "document.querySelector('.assistant')?.textContent.includes('aaa')")
        ask(tab, "second")
        assert tab.input_value("#text") == ""
        assert tab.locator(".waiting").inner_text() == "second"
        assert len(running.engine.running) == 1
    finally:
        go_on.set()
    wait_for(tab, "document.querySelectorAll('.note').length === 2")
    assert said(tab) == ["first", "a" * 60, "second", "another"]
    assert [each.finish_reason for each in running.engine.ended] == ["stop", "stop"]
    assert page.complaints() == []


def test_stop_keeps_what_there_is(opened: Callable[..., Any]) -> None:
    tab, _, running = opened(lambda prompt: "a" * 100_000, delay=0.01)
    ask(tab, "go")
    wait_for(tab, "document.querySelector('.assistant')?.textContent.includes('aaa')")
    tab.click("#stop")
    wait_for(tab, "!document.querySelector('#send').hidden")
    assert "aaa" in html(tab)
    assert tab.locator(".error").count() == 0
    while not running.engine.ended:
        tab.wait_for_timeout(10)
    assert running.engine.ended[0].finish_reason == "cancelled"


def test_a_reload_keeps_what_was_answered_and_stops_the_answer(opened: Callable[..., Any]) -> None:
    tab, _, running = opened(lambda prompt: "a" * 100_000, delay=0.01)
    ask(tab, "go")
    wait_for(tab, "document.querySelector('.assistant')?.textContent.includes('aaa')")
    ask(tab, "on")
    tab.reload()
    assert said(tab)[0] == "go"
    assert said(tab)[1].startswith("aaa")
    assert len(said(tab)) == 2
    assert tab.input_value("#text") == "on"
    wait_for(tab, "document.querySelector('#model').value === 'small'")
    while not running.engine.ended:
        tab.wait_for_timeout(10)
    assert [each.finish_reason for each in running.engine.ended] == ["cancelled"]


def test_a_reload_keeps_the_conversation(opened: Callable[..., Any]) -> None:
    prompts: list[str] = []
    tab, _, _ = opened(lambda prompt: prompts.append(prompt) or f"**answer** {len(prompts)}")
    tab.click("#toggle")
    tab.fill("#system", "Be brief.")
    ask(tab, "one")
    tab.wait_for_selector(".note")
    tab.fill("#text", "a draft")
    tab.reload()
    assert said(tab) == ["one", "answer 1"]
    assert tab.locator("strong").inner_text() == "answer"
    assert tab.input_value("#text") == "a draft"
    ask(tab, "two")
    tab.wait_for_selector(".note")
    assert prompts[-1] == "system: Be brief.\nuser: one\nassistant: **answer** 1\nuser: two"
    tab.click("#clear")
    tab.reload()
    assert tab.is_visible("#intro")
    assert tab.locator(".message").count() == 0
    assert json.loads(tab.evaluate("sessionStorage.getItem('treadle')"))["messages"] == []


def test_an_api_key_is_asked_for(opened: Callable[..., Any]) -> None:
    tab, _, _ = opened(lambda prompt: "yes", api_key="sesame")
    wait_for(tab, "document.querySelector('.error')")
    assert "asks for an API key: enter it in the settings" in tab.locator(".error").inner_text()
    assert tab.is_visible("#key")
    tab.fill("#key", "wrong")
    tab.press("#key", "Tab")
    wait_for(tab, "document.querySelectorAll('.error').length === 2")
    assert "not the server's API key" in tab.locator(".error").last.inner_text()
    tab.fill("#key", "sesame")
    tab.press("#key", "Tab")
    wait_for(tab, "document.querySelector('#model').value === 'small'")
    assert tab.locator(".error").count() == 0
    ask(tab, "hello")
    tab.wait_for_selector(".note:not(.error)")
    assert "yes" in html(tab)


def test_a_question_that_fails_can_be_sent_again(opened: Callable[..., Any]) -> None:
    """Also settings that the server refuses: they are not sent."""
    tab, _, running = opened(lambda prompt: "yes")
    wait_for(tab, "document.querySelector('#model').value === 'small'")
    tab.click("#toggle")
    tab.fill("#temperature", "99")
    ask(tab, "hello")
    assert tab.evaluate("document.activeElement.id") == "temperature"
    assert tab.input_value("#text") == "hello"
    assert not running.engine.overflows  # nothing was asked
    tab.fill("#temperature", "0")
    ask(tab, "refuse me")
    wait_for(tab, "document.querySelector('.error')")
    assert "roles must alternate" in tab.locator(".error").inner_text()
    assert tab.input_value("#text") == "refuse me"
    assert tab.locator(".message").count() == 0
    ask(tab, "hello")
    tab.wait_for_selector(".note:not(.error)")
    assert said(tab) == ["hello", "yes"]
    assert tab.locator(".error").count() == 0


@pytest.mark.parametrize("size", [(1280, 800), (390, 800)])
def test_the_page_fits_its_window(opened: Callable[..., Any], size: tuple[int, int]) -> None:
    tab, page, _ = opened(lambda prompt: f"```\n{'word ' * 80}\n```\n{'w' * 300}", size)
    wait_for(tab, "document.querySelector('#model').value === 'small'")
    tab.click("#toggle")
    ask(tab, "hello")
    tab.wait_for_selector(".note")
    assert tab.evaluate("document.documentElement.scrollWidth") == size[0]
    tops = [tab.locator(each).bounding_box()["y"] for each in ("#clear", "#toggle")]
    assert tops[0] == tops[1] < tab.locator("#settings").bounding_box()["y"]
    if size[0] > 1000:  # the model's name has room
        assert abs(tab.locator("#model").bounding_box()["y"] - tops[0]) < 5
    assert page.complaints() == []
