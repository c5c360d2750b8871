"""The server, driven by OpenAI's own client."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest

from tests.support.small_engine import Generation
from treadle.models.sampling import Sampling

HELLO = [{"role": "user", "content": "héllo"}]
TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": "The weather", "parameters": {
            "type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}},
            "required": ["city"], "additionalProperties": False}}},
    {"type": "function", "function": {"name": "now"}},
]  # fmt: skip


def until(condition, seconds: float = 20.0) -> None:
    """Wait for what another thread does soon."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# --- models, health, the page --------------------------------------------------------------------


def test_models(server):
    assert [model.id for model in server.client().models.list()] == ["small", "letters"]
    found = server.client().models.retrieve("letters")
    assert (found.owned_by, found.capabilities) == ("treadle", ["embeddings"])
    assert server.client().models.retrieve("small").capabilities == ["chat", "completions"]
    with pytest.raises(openai.NotFoundError, match="no model other here: there is small, letters"):
        server.client().models.retrieve("other")


def test_health_and_page(server):
    assert httpx.get(f"{server.url}/health").json() == {"status": "ok", "models": 2, "active": 0}
    page = httpx.get(server.url)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert 'name="viewport"' in page.text
    assert "http" not in page.text.replace("https://json", "")  # no resource from elsewhere


# --- completions ---------------------------------------------------------------------------------


def test_completion(server):
    found = server.client().completions.create(model="small", prompt="say: ab ", max_tokens=5)
    assert found.choices[0].text == "ab ab"
    assert found.choices[0].finish_reason == "length"
    assert found.usage.prompt_tokens == 8
    assert found.usage.completion_tokens == 5
    assert found.usage.total_tokens == 13
    assert found.object == "text_completion"


def test_completions_of_several_prompts(server):
    found = server.client().completions.create(
        model="small", prompt=["a: x", [98, 58, 32, 121]], n=2, echo=True, temperature=1, seed=5
    )
    texts = [(choice.index, choice.text) for choice in found.choices]
    assert texts == [(0, "a: xxx 5"), (1, "a: xxx 6"), (2, "b: yyy 5"), (3, "b: yyy 6")]
    assert {choice.finish_reason for choice in found.choices} == {"stop"}


def test_streamed_completion(server):
    with server.client().completions.create(
        model="small", prompt="say: é", stream=True, logprobs=2
    ) as stream:
        chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks) == "éé"
    assert chunks[-1].choices[0].finish_reason == "stop"
    logprobs = [chunk.choices[0].logprobs for chunk in chunks]
    assert [v for each in logprobs for v in each.token_logprobs] == [-0.25] * 4
    assert logprobs[0].top_logprobs[0] == {"\x00": -0.5, "\x01": -0.6}
    assert [v for each in logprobs for v in each.text_offset] == [0, 1, 2, 3]


# --- chat ----------------------------------------------------------------------------------------


def test_chat(server):
    found = server.client().chat.completions.create(model="small", messages=HELLO)
    assert found.choices[0].message.content == "héllohéllo"
    assert found.choices[0].message.role == "assistant"
    assert found.choices[0].finish_reason == "stop"
    assert found.usage.completion_tokens == 12
    assert found.object == "chat.completion"
    assert found.model == "small"


def test_streamed_chat(server):
    chat = server.client().chat.completions
    with chat.create(model="small", messages=HELLO, stream=True, n=2,
                     stream_options={"include_usage": True}) as stream:  # fmt: skip
        chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 24
    assert len({chunk.id for chunk in chunks}) == 1
    for number in range(2):
        own = [c.choices[0] for c in chunks[:-1] if c.choices[0].index == number]
        assert "".join(choice.delta.content or "" for choice in own) == "héllohéllo"
        assert [choice.finish_reason for choice in own][-1] == "stop"


def test_parts_of_content_and_roles(server):
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "to"},
                                     {"type": "text", "text": "gether"}]},
    ]  # fmt: skip
    found = server.client().chat.completions.create(model="small", messages=messages)
    assert found.choices[0].message.content == "togethertogether"
    until(lambda: server.engine.ended)  # its thread notes it after the answer
    assert server.engine.ended[0].prompt_tokens == len("system: be brief\nuser: together")


def test_logprobs(server):
    found = server.client().chat.completions.create(
        model="small", messages=HELLO, logprobs=True, top_logprobs=3, max_completion_tokens=2
    )
    content = found.choices[0].logprobs.content
    assert [each.bytes for each in content] == [[104], [0xC3]]
    assert content[0].token == "h"
    assert content[0].logprob == -0.25
    assert [each.logprob for each in content[0].top_logprobs] == [-0.5, -0.6, -0.7]


def test_stop_strings(server):
    found = server.client().chat.completions.create(
        model="small", messages=HELLO, stop=["zz", "oh"]
    )
    assert found.choices[0].message.content == "héll"
    with server.client().chat.completions.create(
        model="small", messages=HELLO, stop="oh", stream=True
    ) as stream:
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "héll"


def test_sampling_of_a_request_and_of_the_server(start):
    server = start(defaults=Sampling(temperature=0.5, top_k=40, seed=7))
    client = server.client()
    client.chat.completions.create(model="small", messages=HELLO)
    client.chat.completions.create(
        model="small", messages=HELLO, temperature=0, top_p=0.5, presence_penalty=1,
        frequency_penalty=-1, seed=3, logit_bias={"65": -100, "66": 5},
        extra_body={"top_k": 5, "min_p": 0.1, "repeat_penalty": 1.1, "repeat_last_n": 9},
    )  # fmt: skip
    until(lambda: len(server.engine.ended) == 2)
    first, second = (each.sampling for each in server.engine.ended)
    assert first == Sampling(temperature=0.5, top_k=40, seed=7)
    assert second == Sampling(
        top_p=0.5, presence_penalty=1, frequency_penalty=-1, seed=3, top_k=5, min_p=0.1,
        repeat_penalty=1.1, penalty_window=9, logit_bias={65: -float("inf"), 66: 5},
    )  # fmt: skip


# --- schemas and tools ---------------------------------------------------------------------------


def test_json_schema(server):
    schema = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 9}},
              "required": ["age"], "additionalProperties": False}  # fmt: skip
    found = server.client().chat.completions.create(
        model="small", messages=HELLO,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )  # fmt: skip
    value = json.loads(found.choices[0].message.content)
    assert list(value) == ["age"]
    assert value["age"] <= 9
    found = server.client().chat.completions.create(
        model="small", messages=HELLO, response_format={"type": "json_object"}
    )
    assert isinstance(json.loads(found.choices[0].message.content), dict)


def test_a_required_tool(server):
    chat = server.client().chat.completions
    found = chat.create(
        model="small", messages=HELLO, tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "weather"}},
    )  # fmt: skip
    call = found.choices[0].message.tool_calls[0]
    assert found.choices[0].finish_reason == "tool_calls"
    assert found.choices[0].message.content is None
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Oslo", "Rome")
    with chat.create(model="small", messages=HELLO, tools=TOOLS[:1], tool_choice="required",
                     stream=True) as stream:  # fmt: skip
        chunks = list(stream)
    assert not any(chunk.choices[0].delta.content for chunk in chunks)
    calls = [c for chunk in chunks for c in chunk.choices[0].delta.tool_calls or ()]
    assert [(call.index, call.function.name) for call in calls] == [(0, "weather")]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("written", "content", "names"),
    [
        ('Let me see. <tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
         "Let me see.", ["now"]),
        ('<tool_call>{"name": "now"}</tool_call>'
         '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>',
         None, ["now", "weather"]),
        ('[TOOL_CALLS][{"name": "now", "arguments": {}}]', None, ["now"]),
        ('{"name": "weather", "parameters": {"city": "Rome"}}', None, ["weather"]),
        ('{"name": "unknown", "arguments": {}}', '{"name": "unknown", "arguments": {}}', []),
        ('<tool_call>{"name": "now"', '<tool_call>{"name": "now"', []),
        ("no <tool> is needed", "no <tool> is needed", []),
        ("[1, 2]", "[1, 2]", []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_calls_in_the_text_of_a_model(start, written, content, names, stream):
    chat = start(lambda prompt: written).client().chat.completions
    if stream:
        with chat.create(model="small", messages=HELLO, tools=TOOLS, stream=True) as chunks:
            choices = [chunk.choices[0] for chunk in chunks]
        calls = [call for choice in choices for call in choice.delta.tool_calls or ()]
        text = "".join(choice.delta.content or "" for choice in choices).strip() or None
        reason = choices[-1].finish_reason
    else:
        choice = chat.create(model="small", messages=HELLO, tools=TOOLS).choices[0]
        calls, text = choice.message.tool_calls or [], choice.message.content
        reason = choice.finish_reason
    assert text == content
    assert [call.function.name for call in calls] == names
    assert all(isinstance(json.loads(call.function.arguments), dict) for call in calls)
    assert reason == ("tool_calls" if names else "stop")


def test_results_of_tools_and_templates_without_tools(start):
    """A template that does not know tools is told of them in the system's message."""
    messages = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "noon"},
    ]  # fmt: skip
    prompts = []
    for template in ("{{ tools }}", "{{ messages }}", None):
        server = start(lambda prompt: prompts.append(prompt) or "yes", template=template)
        chat = server.client().chat.completions
        assert chat.create(model="small", messages=messages, tools=TOOLS).choices
    assert prompts[0].startswith("[weather]\n[now]\nuser: héllo\nassistant: \ntool: noon")
    for prompt in prompts[1:]:
        assert prompt.startswith("system: You can call")
        assert '"name": "weather"' in prompt
        assert '<tool_call>{"name": "now", "arguments": {}}</tool_call>' in prompt
        assert prompt.endswith("user: <tool_response>noon</tool_response>")


# --- embeddings ----------------------------------------------------------------------------------


def test_embeddings(server):
    client = server.client()
    found = client.embeddings.create(model="letters", input=["abc", "ah"])  # base64 on the wire
    assert [each.index for each in found.data] == [0, 1]
    np.testing.assert_array_equal(found.data[1].embedding, [1, 1, 0, 0, 0, 0, 0, 0])
    assert found.usage.prompt_tokens == 5
    plain = client.embeddings.create(model="letters", input="ab", encoding_format="float")
    assert plain.data[0].embedding == [0, 1, 1, 0, 0, 0, 0, 0]
    with pytest.raises(openai.BadRequestError, match="dimensions of letters are 8"):
        client.embeddings.create(model="letters", input="a", dimensions=4)
    with pytest.raises(openai.BadRequestError, match="arrays of tokens are not supported"):
        client.embeddings.create(model="letters", input=[97, 98])
    with pytest.raises(openai.BadRequestError, match="generates text"):
        client.embeddings.create(model="small", input="a")
    with pytest.raises(openai.BadRequestError, match="does not generate"):
        client.completions.create(model="letters", prompt="a")


# --- many clients, and clients that go -----------------------------------------------------------


def test_64_clients_at_once(start):
    server = start(slots=32)
    client = server.client()

    def ask(number: int) -> str:
        messages = [{"role": "user", "content": f"number {number}"}]
        if number % 2:
            found = client.chat.completions.create(model="small", messages=messages)
            return found.choices[0].message.content
        with client.chat.completions.create(
            model="small", messages=messages, stream=True
        ) as stream:
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    barrier = threading.Barrier(64)
    with ThreadPoolExecutor(64) as pool:
        found = list(pool.map(lambda number: (barrier.wait(), ask(number))[1], range(64)))
    assert found == [f"number {number}number {number}" for number in range(64)]
    assert server.engine.most_at_once > 1
    assert not server.engine.running


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_disconnects_stops_its_generation(start, stream):
    server = start(lambda prompt: "x" * 100_000, delay=0.002)
    body = {"model": "small", "messages": HELLO, "stream": stream, "n": 2}
    with httpx.Client(timeout=20) as client:
        if stream:
            with client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as response:
                next(response.iter_lines())
        else:
            with pytest.raises(httpx.ReadTimeout):
                client.post(f"{server.url}/v1/chat/completions", json=body, timeout=0.2)
    until(lambda: len(server.engine.ended) == 2)
    assert [each.finish_reason for each in server.engine.ended] == ["cancelled"] * 2
    until(lambda: httpx.get(f"{server.url}/health").json()["active"] == 0)


@pytest.mark.parametrize("reading", ["encode", "decode"])
def test_streams_go_on_while_a_large_prompt_is_read(start, monkeypatch, reading):
    server = start(lambda prompt: "x" * 100_000, delay=0.002)
    tokenizer, begun, go_on = server.engine.tokenizer, threading.Event(), threading.Event()
    read = getattr(tokenizer, reading)

    def waiting(given, *arguments, **options):
        if len(given) > 1000:
            begun.set()
            assert go_on.wait(20)
        return read(given, *arguments, **options)

    create = server.client().completions.create
    with create(model="small", prompt="a", stream=True, max_tokens=1900) as stream:
        chunks = iter(stream)
        next(chunks)
        monkeypatch.setattr(tokenizer, reading, waiting)
        with ThreadPoolExecutor(1) as pool:
            prompt = "x" * 5000 if reading == "encode" else [120] * 1500
            found = pool.submit(
                create, model="small", prompt=prompt, echo=reading == "decode", max_tokens=2
            )
            try:
                assert begun.wait(20)
                for _ in range(10):
                    assert next(chunks).choices[0].text
            finally:
                go_on.set()
            if reading == "decode":
                assert found.result().choices[0].text == "x" * 1502
            else:
                with pytest.raises(openai.BadRequestError, match="at least 5000 tokens, and the"):
                    found.result()


def test_a_full_queue(start, capfd, caplog):
    server = start(lambda prompt: "x" * 100_000, delay=0.002, most_queued=2)
    client = server.client()
    with client.chat.completions.create(model="small", messages=HELLO, stream=True, n=2) as stream:
        next(iter(stream))
        with pytest.raises(openai.InternalServerError, match="try again later") as failure:
            client.chat.completions.create(model="small", messages=HELLO)
        assert failure.value.status_code == 503
        assert failure.value.code == "queue_full"
    until(lambda: httpx.get(f"{server.url}/health").json()["active"] == 0)
    client.chat.completions.create(model="small", messages=HELLO, max_tokens=1)
    assert capfd.readouterr().err == ""  # uvicorn's log
    assert not caplog.records


def test_closing_the_server_ends_streams(start):
    server = start(lambda prompt: "x" * 100_000, delay=0.002)
    with server.client().chat.completions.create(
        model="small", messages=HELLO, stream=True
    ) as stream:
        next(iter(stream))
        server.server.close()
        with pytest.raises(openai.APIError, match="the server is stopping"):
            list(stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fails", ["engine", "generation", "handler"])
def test_what_fails_is_in_the_log_once(start, monkeypatch, capfd, caplog, fails, stream):
    server = start()
    secret = RuntimeError("a secret of the host")

    def fail(*_, **__):
        raise secret

    if fails == "engine":
        server.engine.broken = secret
    elif fails == "generation":
        monkeypatch.setattr(Generation, "_next", fail)
    else:
        monkeypatch.setattr(server.engine.tokenizer, "encode", fail)
    create = server.client().chat.completions.create
    requests = 2 if fails == "engine" else 1
    for _ in range(requests):
        with pytest.raises(openai.APIError, match="its log says why") as failure:
            list(create(model="small", messages=HELLO, stream=stream))
        assert "secret" not in str(failure.value)
    assert [str(record.exc_info[1]) for record in caplog.records] == [str(secret)]
    assert capfd.readouterr().err == ""  # uvicorn's log
    expected = 503 if fails == "engine" else 200
    assert httpx.get(f"{server.url}/health").status_code == expected


# --- access --------------------------------------------------------------------------------------


def test_an_api_key(start):
    server = start(api_key="sesame")
    assert len(list(server.client("sesame").models.list())) == 2
    for path in ("/", "/health"):
        assert httpx.get(server.url + path).status_code == 200
    with pytest.raises(openai.AuthenticationError, match="API key"):
        server.client("open").models.list()
    answer = httpx.get(f"{server.url}/v1/models")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


def test_other_hosts_and_origins(start):
    """A page of another site neither reads answers nor reaches the server by another name."""
    server = start()
    url = f"{server.url}/v1/models"
    assert httpx.get(url, headers={"host": "evil.example:80"}).status_code == 403
    assert httpx.get(url, headers={"host": "localhost:1"}).status_code == 200
    origin = {"origin": "https://page.example"}
    assert "access-control-allow-origin" not in httpx.get(url, headers=origin).headers
    assert httpx.options(url, headers=origin).status_code == 405
    body = b'{"model": "small", "prompt": "a"}'
    plain = httpx.post(f"{server.url}/v1/completions", content=body,
                       headers={"content-type": "text/plain"})  # fmt: skip
    assert plain.status_code == 415

    allowed = start(origins=("https://page.example",))
    answer = httpx.options(f"{allowed.url}/v1/models", headers=origin)
    assert answer.status_code == 204
    assert "Authorization" in answer.headers["access-control-allow-headers"]
    answer = httpx.get(f"{allowed.url}/v1/models", headers=origin)
    assert answer.headers["access-control-allow-origin"] == "https://page.example"
    other = httpx.get(f"{allowed.url}/v1/models", headers={"origin": "https://other.example"})
    assert "access-control-allow-origin" not in other.headers
