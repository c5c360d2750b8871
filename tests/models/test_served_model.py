"""SmolLM2 on the CPU, served: OpenAI's client, many clients at once, and the commands."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest

from treadle.cli.serve import served_models
from treadle.models.encoder import Encoder, load_encoder
from treadle.models.loading import load
from treadle.models.model import Model
from treadle.models.serving.app import Settings
from treadle.models.serving.server import Server

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def model(smollm: Path) -> Model:
    return load(smollm, "cpu", context=512, progress=False)


@pytest.fixture(scope="module")
def encoder(minilm: Path) -> Encoder:
    return load_encoder(minilm, "cpu")


@pytest.fixture(scope="module")
def client(model: Model, encoder: Encoder) -> Iterator[openai.OpenAI]:
    settings = Settings()
    server = Server(served_models([("smollm2", model)], [encoder], 4, settings), settings)
    with server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="-", timeout=100) as made:
        yield made


def test_an_answer(client):
    """Sent at once and in a stream: the most probable tokens, each by far."""
    chat = client.chat.completions
    messages = [{"role": "user", "content": "Hi!"}]
    found = chat.create(model="smollm2", messages=messages, max_tokens=8, temperature=0)
    assert found.choices[0].message.content == "Hello! How can I assist you today"
    assert found.choices[0].finish_reason == "length"
    with chat.create(
        model="smollm2", messages=messages, max_tokens=8, temperature=0, stream=True
    ) as stream:
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert text == found.choices[0].message.content


def test_more_clients_at_once_than_there_is_room_for(client):
    def ask(number: int) -> str:
        prompt = ", ".join(str(number + step) for step in range(5))
        found = client.completions.create(
            model="smollm2", prompt=f"{prompt},", max_tokens=5, temperature=0
        )
        return found.choices[0].text

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(1, 9)))
    for number, text in enumerate(found, 1):
        assert f" {number + 5}, {number + 6}".startswith(text)
        assert len(text) >= 4


def test_a_tool_that_is_required(client):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]},
              "size": {"type": "integer", "minimum": 0, "maximum": 99}},
              "required": ["city", "size"], "additionalProperties": False}  # fmt: skip
    tool = {"type": "function", "function": {"name": "lookup", "parameters": schema}}
    found = client.chat.completions.create(
        model="smollm2", messages=QUESTION, tools=[tool], tool_choice="required", max_tokens=80,
        temperature=0.7, seed=1, logprobs=True, top_logprobs=2,
    )  # fmt: skip
    call = found.choices[0].message.tool_calls[0]
    assert call.function.name == "lookup"
    value = json.loads(call.function.arguments)
    assert value["city"] in ("Paris", "Rome")
    assert 0 <= value["size"] <= 99
    content = found.choices[0].logprobs.content
    assert b"".join(bytes(each.bytes) for each in content).startswith(b'{"name":"lookup"')
    assert all(each.logprob <= each.top_logprobs[0].logprob <= 0 for each in content)


def test_embeddings(client, encoder):
    texts = ["A man is eating food.", "A man eats."]
    found = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts)
    vectors = np.array([each.embedding for each in found.data], np.float32)
    np.testing.assert_allclose(vectors, encoder.embed(texts), rtol=0, atol=1e-6)
    assert vectors.shape == (2, 384)
    assert found.usage.total_tokens == sum(encoder.count_tokens(texts)) == 8 + 6


def test_a_prompt_that_is_too_long(client):
    with pytest.raises(openai.BadRequestError, match="the context of smollm2 is 512"):
        client.completions.create(model="smollm2", prompt="word " * 600)


# --- the commands --------------------------------------------------------------------------------


def command(*arguments: str, **options) -> subprocess.Popen:
    environment = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.Popen(
        [sys.executable, "-m", "treadle", *arguments], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=os.environ | environment, **options,
    )  # fmt: skip


def test_generate_and_serve_end_in_order_after_ctrl_c(smollm):
    generating = command(
        "generate", str(smollm), "-p", "The capital of France is", "-n", "3000", "--device", "cpu"
    )
    serving = command("serve", str(smollm), "--port", "0", "--name", "small", "--device", "cpu")
    try:
        text = ""
        while len(text) < 10:
            text += (more := generating.stdout.read(1))
            assert more, generating.stderr.read()
        generating.send_signal(signal.SIGINT)
        assert generating.wait(60) == 130
        assert text.startswith(" Paris.")
        notes = generating.stderr.read()
        assert re.search(r"loaded \S+ on cpu in [\d.]+ s", notes)
        assert re.search(r"prompt: 5 tokens in [\d.]+ s.*; answer: \d+ tokens", notes)
        started = ""
        while "/v1" not in started:
            started = serving.stderr.readline()
            assert started, "the server has ended"
        url = re.search(r"http://\S+?(?=;| |$)", started)[0]
        assert httpx.get(f"{url}/v1/models", timeout=20).json()["data"][0]["id"] == "small"
        serving.send_signal(signal.SIGINT)
        assert serving.wait(60) == 0
        assert "stopped" in serving.stderr.read()
    finally:
        for each in (generating, serving):
            each.kill()
            each.communicate()
