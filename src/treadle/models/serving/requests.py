"""What a client asks for: its JSON, checked, as frozen dataclasses."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from treadle.models.sampling import MOST_LOGPROBS, Sampling
from treadle.models.serving import tools as tool_calls
from treadle.models.serving.errors import ApiError
from treadle.models.serving.fields import Fields, kind_of, shown
from treadle.models.serving.tools import Tool, ToolChoice

MOST_CHOICES = 16
MOST_PROMPTS = 64
MOST_STOPS = 16
MOST_TEXTS = 2048  # of a request for embeddings
_MOST_TOKENS = 2**31 - 1
# What changes nothing about the answer here: accounts, storage, routing and hints.
_WITHOUT_EFFECT = (
    "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "reasoning_effort", "verbosity",
)  # fmt: skip
_ROLES = ("system", "developer", "user", "assistant", "tool")
# Fields of Sampling, by the names that requests have for them.
_NUMBERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repeat_penalty",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_INTEGERS = {
    "top_k": "top_k",
    "seed": "seed",
    "penalty_window": "penalty_window",
    "repeat_last_n": "penalty_window",  # llama.cpp's name
}


@dataclass(frozen=True)
class Common:
    """What both kinds of completions have."""

    model: str
    sampling: Sampling
    max_tokens: int | None
    stop: tuple[str, ...]
    choices: int
    stream: bool
    include_usage: bool


@dataclass(frozen=True)
class CompletionRequest(Common):
    """A request to go on with texts."""

    prompts: tuple[str | tuple[int, ...], ...]
    echo: bool


@dataclass(frozen=True)
class ChatRequest(Common):
    """A request to answer a conversation."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    parallel_tool_calls: bool


@dataclass(frozen=True)
class EmbeddingRequest:
    """A request for the embeddings of texts."""

    model: str
    texts: tuple[str, ...]
    as_base64: bool
    dimensions: int | None


def completion_request(body: dict[str, Any], defaults: Sampling) -> CompletionRequest:
    """A request to go on with texts. ApiError says which field is wrong."""
    fields = Fields(body)
    logprobs = fields.integer("logprobs", 0, MOST_LOGPROBS)
    fields.refuse("suffix", "is not supported: put it into the prompt")
    fields.refuse("best_of", "is not supported: ask for n choices, and choose among them")
    prompts = _prompts(fields, "prompt", MOST_PROMPTS)
    if not prompts:
        raise fields.wrong("prompt", "is missing")
    found = CompletionRequest(
        **_common(fields, defaults, logprobs, 16), prompts=prompts,
        echo=fields.take("echo", bool, default=False),
    )  # fmt: skip
    if found.echo and logprobs is not None:
        raise fields.wrong("echo", "with logprobs is not supported: prompts have none")
    if len(prompts) * found.choices > MOST_PROMPTS:
        raise fields.wrong("n", f"times the number of prompts may be at most {MOST_PROMPTS}")
    fields.end()
    return found


def chat_request(body: dict[str, Any], defaults: Sampling) -> ChatRequest:
    """A request to answer a conversation. ApiError says which field is wrong."""
    fields = Fields(body)
    top = fields.integer("top_logprobs", 0, MOST_LOGPROBS)
    wanted = fields.take("logprobs", bool, default=False)
    if top is not None and not wanted:
        raise fields.wrong("top_logprobs", "needs logprobs to be true")
    for name in ("functions", "function_call"):
        fields.refuse(name, "was replaced by tools and tool_choice: use these")
    for name in ("audio", "prediction", "web_search_options"):
        fields.refuse(name, "is not supported")
    if fields.take("modalities", list, default=["text"]) != ["text"]:
        raise fields.wrong("modalities", 'can only be ["text"]')
    messages = _messages(fields.need("messages", list))
    tools = tool_calls.tools_of(fields.take("tools", list, default=[]))
    choice = tool_calls.choice_of(fields.take("tool_choice", str, dict), tools)
    parallel = fields.take("parallel_tool_calls", bool, default=True)
    schema = _response_schema(fields)
    if choice.is_required:
        if schema is not None:
            raise fields.wrong("response_format", "excludes a tool_choice that requires a tool")
        schema = tool_calls.schema_of_calls(tools, choice)
    elif schema is not None and tools and choice.may_call:
        raise fields.wrong(
            "response_format", 'excludes tools: set tool_choice to "none", or leave one out'
        )
    last = fields.integer("max_completion_tokens", 1, _MOST_TOKENS)
    common = _common(fields, defaults, (top or 0) if wanted else None, None, schema)
    if last is not None:
        common["max_tokens"] = last
    fields.end()
    return ChatRequest(
        **common, messages=messages, tools=tools, tool_choice=choice, parallel_tool_calls=parallel
    )


def embedding_request(body: dict[str, Any]) -> EmbeddingRequest:
    """A request for embeddings. ApiError says which field is wrong."""
    fields = Fields(body)
    given = _prompts(fields, "input", MOST_TEXTS)
    if not given or any(not text for text in given):
        raise fields.wrong("input", "must have texts that are not empty")
    texts = tuple(text for text in given if isinstance(text, str))
    if len(texts) != len(given):
        # Clients that send tokens make them with the tokenizer of OpenAI's models.
        raise fields.wrong("input", "must have texts: arrays of tokens are not supported")
    found = EmbeddingRequest(
        model=fields.need("model", str),
        texts=texts,
        as_base64=fields.one_of("encoding_format", ("float", "base64"), "float") == "base64",
        dimensions=fields.integer("dimensions", 1, 2**20),
    )
    fields.ignore(*_WITHOUT_EFFECT)
    fields.end()
    return found


def _common(
    fields: Fields,
    defaults: Sampling,
    logprobs: int | None,
    max_tokens: int | None,
    schema: Any = None,
) -> dict[str, Any]:
    options = fields.take("stream_options", dict, default={})
    stream = fields.take("stream", bool, default=False)
    if options and not stream:
        raise fields.wrong("stream_options", "needs stream to be true")
    inner = Fields(options, "stream_options")
    include_usage = inner.take("include_usage", bool, default=False)
    inner.ignore("include_obfuscation")
    inner.end()
    found = {
        "model": fields.need("model", str),
        "sampling": _sampling(fields, defaults, logprobs, schema),
        "max_tokens": fields.integer("max_tokens", 1, _MOST_TOKENS, max_tokens),
        "stop": tuple(fields.strings("stop", MOST_STOPS)),
        "choices": fields.integer("n", 1, MOST_CHOICES, 1),
        "stream": stream,
        "include_usage": include_usage,
    }
    fields.ignore(*_WITHOUT_EFFECT)
    return found


def _sampling(fields: Fields, defaults: Sampling, logprobs: int | None, schema: Any) -> Sampling:
    given: dict[str, Any] = {}
    for name, target in _NUMBERS.items():
        given[target] = fields.take(name, int, float)
    for name, target in _INTEGERS.items():
        value = fields.take(name, int)
        if value is not None:
            given[target] = value
    biases = fields.take("logit_bias", dict)
    if biases is not None:
        given["logit_bias"] = _biases(fields, biases)
    grammar, own_schema = fields.take("grammar", str), fields.take("json_schema", dict, bool)
    if (grammar is not None) + (own_schema is not None) + (schema is not None) > 1:
        raise ApiError(
            400, "of grammar, json_schema, response_format and a required tool only one is possible"
        )
    given["grammar"] = grammar
    given["json_schema"] = own_schema if schema is None else schema
    given["logprobs"] = logprobs
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return dataclasses.replace(defaults, **given)
    except (TypeError, ValueError) as error:
        raise ApiError(400, str(error), param=_field_of(str(error))) from None


def _field_of(message: str) -> str | None:
    """The field that a message of Sampling begins with."""
    name = message.split(" ", 1)[0].rstrip(":")
    return name if name in (*_NUMBERS, *_INTEGERS, "logit_bias", "json_schema") else None


def _biases(fields: Fields, given: dict[str, Any]) -> dict[int, float]:
    found = {}
    for token, bias in given.items():
        if not (token.isascii() and token.isdigit() and len(token) < 10):
            raise fields.wrong(
                "logit_bias",
                f'has tokens\' numbers as keys, as in {{"42": -100}}, not {shown(token)}',
            )
        if type(bias) not in (int, float) or not -100 <= bias <= 100:
            raise fields.wrong("logit_bias", f"has numbers from -100 to 100, not {shown(bias)}")
        # -100 is documented to ban a token, which a number alone does not do for certain.
        found[int(token)] = -float("inf") if bias == -100 else float(bias)
    return found


def _response_schema(fields: Fields) -> Any:
    given = fields.take("response_format", dict)
    if given is None:
        return None
    inner = Fields(given, "response_format")
    kind = inner.one_of("type", ("text", "json_object", "json_schema"))
    if kind is None:
        raise inner.wrong("type", "is missing")
    schema: Any = {"type": "object"} if kind == "json_object" else None
    if kind == "json_schema":
        named = Fields(inner.need("json_schema", dict), "response_format.json_schema")
        named.take("name", str)
        named.take("description", str)
        named.take("strict", bool)
        schema = named.take("schema", dict, default={})
        named.end()
    inner.end()
    return schema


def _prompts(fields: Fields, field: str, most: int) -> tuple[str | tuple[int, ...], ...]:
    """A text, texts, tokens, or several lists of tokens."""
    given = fields.take(field, str, list, default=[])
    if isinstance(given, str):
        return (given,)
    if given and type(given[0]) is int:
        given = [given]
    if len(given) > most:
        raise fields.wrong(field, f"may have at most {most} texts, not {len(given)}")
    found: list[str | tuple[int, ...]] = []
    for each in given:
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, list) and all(type(token) is int for token in each):
            found.append(tuple(each))
        else:
            raise fields.wrong(field, f"must have texts or arrays of tokens, not {kind_of(each)}")
    return tuple(found)


def _messages(given: list[Any]) -> tuple[dict[str, Any], ...]:
    if not given:
        raise ApiError(400, "messages is empty: it needs at least one message", "messages")
    return tuple(_message(each, f"messages[{at}]") for at, each in enumerate(given))


def _message(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ApiError(400, f"{where} must be an object, not {kind_of(given)}", where)
    fields = Fields(given, where)
    role = fields.one_of("role", _ROLES)
    if role is None:
        raise fields.wrong("role", "is missing")
    content = _content(fields)
    found: dict[str, Any] = {"role": "system" if role == "developer" else role}
    calls = fields.take("tool_calls", list, default=[]) if role == "assistant" else []
    if content is None and not calls:
        raise fields.wrong("content", "is missing")
    # Templates test for content and join it with text: "" is what they expect of a call alone.
    found["content"] = "" if content is None else content
    if calls:
        found["tool_calls"] = [
            _earlier_call(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)
        ]
    if role == "tool":
        found["tool_call_id"] = fields.need("tool_call_id", str)
    name = fields.take("name", str)
    if name is not None:
        found["name"] = name
    fields.ignore("refusal", "audio", "annotations", "function_call", "reasoning_content")
    fields.end()
    return found


def _content(fields: Fields) -> str | None:
    given = fields.take("content", str, list)
    if not isinstance(given, list):
        return given  # type: ignore[no-any-return]
    texts = []
    for at, part in enumerate(given):
        inner = Fields(part if isinstance(part, dict) else {}, fields.name(f"content[{at}]"))
        kind = inner.take("type", str)
        if kind not in ("text", "refusal"):
            raise inner.wrong("type", f"must be text, since this server reads nothing else, not "
                              f"{shown(kind)}")  # fmt: skip
        texts.append(inner.need(kind, str))
    return "".join(texts)


def _earlier_call(given: Any, where: str) -> dict[str, Any]:
    """A call of a tool in an earlier answer, whose arguments templates want as an object."""
    fields = Fields(given if isinstance(given, dict) else {}, where)
    function = Fields(fields.need("function", dict), fields.name("function"))
    name, arguments = function.need("name", str), function.take("arguments", str, dict, default={})
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            parsed = arguments  # what a model wrote before, and should see again
        arguments = parsed
    found = {"type": "function", "function": {"name": name, "arguments": arguments}}
    number = fields.take("id", str)
    if number is not None:
        found["id"] = number
    return found
