"""Calls of tools: how they are described to a model, and how they are found in its text.

Models write calls in the forms that they were trained with: `<tool_call>{…}</tool_call>` (Hermes,
Qwen), `[TOOL_CALLS][{…}]` (Mistral), or a JSON object alone (Llama 3), with "parameters" for
"arguments". All of these are read. Where a model's template says nothing about tools, they are
described in the system's message, with the first form.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.models.serving.errors import ApiError
from treadle.models.serving.fields import Fields, kind_of

MOST_TOOLS = 128
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_LIST = "[TOOL_CALLS]"
_TAG = "<|python_tag|>"
MARKERS = (_OPEN, _LIST, _TAG)


@dataclass(frozen=True)
class Tool:
    """A function that the client offers."""

    name: str
    description: str
    parameters: Any

    def as_given(self) -> dict[str, Any]:
        """As templates expect it."""
        function: dict[str, Any] = {"name": self.name, "description": self.description}
        function["parameters"] = self.parameters
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class ToolChoice:
    """Whether tools may or must be called, and which."""

    mode: str = "auto"  # "none", "auto" or "required"
    name: str | None = None

    @property
    def may_call(self) -> bool:
        """Whether the model may call a tool."""
        return self.mode != "none"

    @property
    def is_required(self) -> bool:
        """Whether it must."""
        return self.mode == "required"


@dataclass(frozen=True)
class ToolCall:
    """A call that a model made. Its arguments are JSON, as OpenAI's are."""

    name: str
    arguments: str
    number: str

    def as_answer(self) -> dict[str, Any]:
        """As an answer has it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.number, "type": "function", "function": function}


def tools_of(given: Sequence[Any]) -> tuple[Tool, ...]:
    """The tools of a request."""
    if len(given) > MOST_TOOLS:
        raise ApiError(400, f"tools may have at most {MOST_TOOLS} entries", "tools")
    found = []
    for at, each in enumerate(given):
        where = f"tools[{at}]"
        if not isinstance(each, dict):
            raise ApiError(400, f"{where} must be an object, not {kind_of(each)}", where)
        fields = Fields(each, where)
        if fields.one_of("type", ("function",)) is None:
            raise fields.wrong("type", "is missing")
        function = Fields(fields.need("function", dict), f"{where}.function")
        name = function.need("name", str)
        if not name or len(name) > 64:
            raise function.wrong("name", "must have 1 to 64 characters")
        description = function.take("description", str, default="")
        parameters = function.take("parameters", dict, default={"type": "object"})
        function.take("strict", bool)
        function.end()
        fields.end()
        found.append(Tool(name, description, parameters))
    if len({tool.name for tool in found}) != len(found):
        raise ApiError(400, "tools must have different names", "tools")
    return tuple(found)


def choice_of(given: Any, tools: Sequence[Tool]) -> ToolChoice:
    """What tool_choice says."""
    if given is None:
        return ToolChoice("auto" if tools else "none")
    name = None
    if isinstance(given, dict):
        fields = Fields(given, "tool_choice")
        fields.one_of("type", ("function",))
        name = Fields(fields.need("function", dict), "tool_choice.function").need("name", str)
        if name not in {tool.name for tool in tools}:
            raise ApiError(
                400, f"tool_choice names {name}, which is not among tools", "tool_choice"
            )
        return ToolChoice("required", name)
    if given not in ("none", "auto", "required"):
        raise ApiError(
            400, 'tool_choice must be "none", "auto", "required", or name a function', "tool_choice"
        )
    if given == "required" and not tools:
        raise ApiError(400, "tool_choice requires a tool, and tools is empty", "tool_choice")
    return ToolChoice(given if tools else "none")


def schema_of_calls(tools: Sequence[Tool], choice: ToolChoice) -> dict[str, Any]:
    """A JSON schema of one call, where one is required."""
    wanted = [tool for tool in tools if choice.name in (None, tool.name)]
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in wanted
    ]
    definitions: dict[str, Any] = {}
    for tool in wanted:  # references of a schema start at its root, which is another one now
        if isinstance(tool.parameters, dict):
            for key in ("$defs", "definitions"):
                definitions.setdefault(key, {}).update(tool.parameters.get(key, {}))
    found = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return {**found, **{key: value for key, value in definitions.items() if value}}


def with_tools(messages: Sequence[dict[str, Any]], tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Messages whose first one tells of the tools, for a template that does not."""
    listed = "\n".join(json.dumps(tool.as_given(), ensure_ascii=False) for tool in tools)
    text = (
        "You can call these functions, one JSON object a line:\n"
        f"{listed}\n"
        "To call one, answer with nothing but\n"
        f'{_OPEN}{{"name": "NAME", "arguments": {{…}}}}{_CLOSE}\n'
        "with its name and its arguments. The result is given to you in the next message."
    )
    first = messages[0]
    if first["role"] == "system":
        joined = f"{first['content']}\n\n{text}" if first["content"] else text
        found = [{**first, "content": joined}, *messages[1:]]
    else:
        found = [{"role": "system", "content": text}, *messages]
    return [_as_text(message) for message in found]


def _as_text(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the roles and fields of tools, which such a template does not know."""
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>{message['content']}</tool_response>"}
    calls = message.get("tool_calls", ())
    if not calls:
        return message
    texts = [json.dumps(call["function"], ensure_ascii=False) for call in calls]
    lines = [message["content"], *(f"{_OPEN}{text}{_CLOSE}" for text in texts)]
    return {"role": message["role"], "content": "\n".join(line for line in lines if line)}


# --- finding calls -------------------------------------------------------------------------------


def calls_in(text: str, tools: Sequence[Tool]) -> tuple[str, list[ToolCall]]:
    """The text beside calls, and the calls. What is not a call of one of the tools stays text."""
    names = {tool.name for tool in tools}
    before, marker, after = _at_marker(text)
    values = _values(after if marker else before)
    calls = [call for value in values for call in [_call(value, names)] if call is not None]
    if not calls or len(calls) != len(values):
        return text, []
    return (before.strip() if marker else ""), calls


def may_begin_call(text: str) -> int | None:
    """Where in a text a call begins, or may if more follows; None if nowhere.

    What precedes it may be shown; what follows is held back until the text is whole.
    """
    stripped = text.lstrip()
    if stripped[:1] in ("{", "[") or not stripped:
        return 0
    found = [at for marker in MARKERS if (at := text.find(marker)) >= 0]
    if found:
        return min(found)
    for length in range(min(len(text), max(map(len, MARKERS)) - 1), 0, -1):
        if any(marker.startswith(text[-length:]) for marker in MARKERS):
            return len(text) - length
    return None


def _at_marker(text: str) -> tuple[str, str, str]:
    found = [(at, marker) for marker in MARKERS if (at := text.find(marker)) >= 0]
    if not found:
        return text, "", ""
    at, marker = min(found)
    return text[:at], marker, text[at:]


def _values(text: str) -> list[Any]:
    """The JSON values in a text of calls; none if there is anything else in it."""
    found: list[Any] = []
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        skipped = next((m for m in (*MARKERS, _CLOSE, ";", ",") if text.startswith(m, at)), None)
        if skipped is not None:
            at += len(skipped)
        elif text[at].isspace():
            at += 1
        else:
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                return []
            found.extend(value if isinstance(value, list) else [value])
    return found


def _call(value: Any, names: set[str]) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    arguments = value.get("arguments", value.get("parameters", {}))
    if value.get("name") not in names or not isinstance(arguments, (dict, str)):
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(value["name"], text, f"call_{secrets.token_hex(12)}")
