"""Requests that are wrong, and requests that mean harm."""

from __future__ import annotations

import json
import socket

import httpx
import pytest

from tests.support.byte_tokenizer import ByteTokenizer

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "hi"}]


def refused(server, path: str, body, status: int = 400) -> dict:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = httpx.post(server.url + path, content=content, timeout=20,
                        headers={"content-type": "application/json"})  # fmt: skip
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("changed", "param", "message"),
    [
        ({"model": None}, "model", "model is missing"),
        ({"model": 5}, "model", "model must be a string, not 5"),
        ({"messages": None}, "messages", "messages is missing"),
        ({"messages": []}, "messages", "at least one"),
        ({"messages": "hi"}, "messages", "must be an array"),
        ({"messages": ["hi"]}, "messages[0]", "must be an object, not a string"),
        ({"messages": [{"role": "king", "content": "hi"}]}, "messages[0].role", "one of system"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id", "missing"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
         "messages[0].content[0].type", 'not "image_url"'),
        ({"messages": [{"role": "user", "content": "hi", "mood": 1}]}, "messages[0].mood",
         "not a field"),
        ({"temperature": "hot"}, "temperature", "must be an integer or a number"),
        ({"temperature": -1}, "temperature", "from 0 to 100"),
        ({"top_p": 2}, "top_p", "from 0 to 1"),
        ({"top_k": 1.5}, "top_k", "must be an integer"),
        ({"seed": 2**80}, "seed", "seed is an integer"),
        ({"n": 0}, "n", "from 1 to 16"),
        ({"n": True}, "n", "must be an integer, not true"),
        ({"max_tokens": 0}, "max_tokens", "from 1"),
        ({"stop": [""]}, "stop", "not empty"),
        ({"stop": ["a"] * 17}, "stop", "at most 16"),
        ({"logit_bias": {"a": 1}}, "logit_bias", "tokens' numbers"),
        ({"logit_bias": {"1": 1000}}, "logit_bias", "from -100 to 100"),
        ({"logit_bias": {"999": 1}}, "logit_bias", "no token 999"),
        ({"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "from 0 to 20"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "needs stream"),
        ({"stream": True, "stream_options": {"x": 1}}, "stream_options.x", "not a field"),
        ({"functions": []}, "functions", "replaced by tools"),
        ({"unknown": 1}, "unknown", "not a field that this server knows"),
        ({"u" * 5000: 1}, "u" * 57 + "…", "not a field"),
        ({"tools": [1]}, "tools[0]", "must be an object"),
        ({"tools": [{"type": "function"}]}, "tools[0].function", "missing"),
        ({"tools": [TOOL, TOOL]}, "tools", "different names"),
        ({"tool_choice": "required"}, "tool_choice", "tools is empty"),
        ({"tool_choice": "maybe"}, "tool_choice", "auto"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
         "tool_choice", "names g"),
        ({"tools": [TOOL], "response_format": {"type": "json_object"}}, "response_format",
         "excludes tools"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "one of text"),
        ({"response_format": {"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"type": "nonsense"}}}}, "response_format", "nonsense"),
        ({"grammar": "start: ("}, "grammar", "cannot be used"),
        ({"grammar": 'start: "a"', "response_format": {"type": "json_object"}}, None, "only one"),
        ({"messages": [{"role": "user", "content": "refuse me"}]}, "messages", "must alternate"),
        ({"messages": [{"role": "user", "content": "x" * 3000}]}, None, "the context of small is"),
        ({"modalities": ["audio"]}, "modalities", "text"),
    ],
)  # fmt: skip
def test_wrong_fields(shared, changed, param, message):
    body = {"model": "small", "messages": MESSAGES} | changed
    error = refused(shared, CHAT, {k: v for k, v in body.items() if v is not None})
    assert message in error["message"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert len(error["message"]) < 500


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "prompt is missing"),
        ({"prompt": [["a"]]}, "arrays of tokens"),
        ({"prompt": [999]}, "no token 999"),
        ({"prompt": ""}, "has no tokens"),
        ({"prompt": ["a"] * 65}, "at most 64"),
        ({"prompt": ["a"] * 10, "n": 10}, "at most 64"),
        ({"prompt": "a", "suffix": "b"}, "suffix is not supported"),
        ({"prompt": "a", "echo": True, "logprobs": 1}, "echo with logprobs"),
    ],
)
def test_wrong_completions(shared, body, message):
    assert message in refused(shared, COMPLETIONS, {"model": "small", **body})["message"]


def test_wrong_embeddings(shared):
    for body in ({}, {"input": []}, {"input": [""]}, {"input": ["a", ""]}, {"input": ["a"] * 2049}):
        assert "input" in refused(shared, "/v1/embeddings", {"model": "letters", **body})["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object, not an array"),
        (b"null", "must be a JSON object, not null"),
        (b'{"temperature": NaN}', "NaN is not a number"),
        (b'{"temperature": 1e999}', "messages is missing"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"model": "\\ud800", "messages": [{"role": "user", "content": "\\udfff"}]}', "surro"),
    ],
)  # fmt: skip
def test_bodies_that_are_not_requests(shared, body, message):
    assert message in refused(shared, CHAT, body)["message"]
    assert httpx.get(f"{shared.url}/health").status_code == 200


def test_schemas_that_nest(shared):
    schema: dict = {"type": "object"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    body = {"model": "small", "messages": MESSAGES, "json_schema": schema, "max_tokens": 2}
    answer = httpx.post(shared.url + CHAT, json=body, timeout=30)
    assert answer.status_code in (200, 400)
    assert httpx.get(f"{shared.url}/health").status_code == 200


def test_paths_and_methods(shared):
    answer = httpx.get(f"{shared.url}/v1/nothing")
    assert answer.status_code == 404
    assert "see /v1/models" in answer.json()["error"]["message"]
    answer = httpx.get(shared.url + CHAT)
    assert answer.status_code == 405
    assert "does not take GET" in answer.json()["error"]["message"]
    error = refused(shared, CHAT, {"model": "other", "messages": MESSAGES}, 404)
    assert error["code"] == "model_not_found"
    assert error["type"] == "not_found_error"


def test_large_bodies(start):
    server = start(most_bytes=1000)
    error = refused(server, CHAT, b" " * 2000, 413)
    assert error["message"] == "the body may have at most 1000 bytes"

    def chunks():
        for _ in range(50):
            yield b" " * 100

    answer = httpx.post(server.url + CHAT, content=chunks(),
                        headers={"content-type": "application/json"})  # fmt: skip
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTQ/9\r\n\r\n", b"\x00" * 100, b"GET /" + b"a" * 200_000,
     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
     b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000 + b"\r\n\r\n"],
)  # fmt: skip
def test_bytes_that_are_not_http(shared, data):
    with socket.create_connection((shared.server.host, shared.server.port), timeout=10) as raw:
        try:
            raw.sendall(data)
            assert b"400" in raw.recv(1000)
        except (ConnectionError, TimeoutError):
            pass
    assert httpx.get(f"{shared.url}/health").status_code == 200


def test_a_dead_end_of_a_grammar(start):
    """Where the model's tokens cannot fulfil a grammar, the client is told of it."""

    class Ascii(ByteTokenizer):
        def bytes_of(self, token, special=False):
            return b"" if 127 < token < 256 else super().bytes_of(token)

        def encode(self, text, special=False, add_bos=None, add_eos=None):
            return [token for token in super().encode(text) if token < 128]

    server = start()
    server.engine.tokenizer = Ascii()
    body = {"model": "small", "messages": MESSAGES, "grammar": 'start: "aé"'}
    error = refused(server, CHAT, body, 422)
    assert error["code"] == "grammar"
    assert "dead end" in error["message"]
    answer = httpx.post(server.url + CHAT, json={**body, "stream": True}, timeout=20)
    assert answer.status_code == 200
    lines = [line for line in answer.text.splitlines() if line]
    assert lines[-1] == "data: [DONE]"
    assert "dead end" in json.loads(lines[-2].removeprefix("data: "))["error"]["message"]


def test_an_address_that_is_taken(shared):
    from treadle.models.serving.app import Settings, served
    from treadle.models.serving.server import Server

    with pytest.raises(OSError, match=rf"port {shared.server.port} of 127.0.0.1 cannot be used"):
        Server(served([]), Settings(), port=shared.server.port)
    with pytest.raises(OSError, match="not an address"):
        Server(served([]), Settings(), host="no.such.name.invalid")
