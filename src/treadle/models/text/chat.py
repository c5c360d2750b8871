"""Chat messages as the text, or the tokens, that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from treadle.core.errors import ChatTemplateError, FormatError
from treadle.models.text.default_templates import DEFAULT_TEMPLATES

if TYPE_CHECKING:
    from jinja2 import Template

    from treadle.models.text.special_tokens import SpecialTokens
    from treadle.models.text.tokenizer import Tokenizer

SECONDS = 5.0
_UNITS, _UNITS_PER_CHARACTER = 2_000_000, 200
_LONGEST_TEMPLATE = 1_000_000
_LONGEST_TIME_FORMAT = 200

Message = Mapping[str, Any]


def chat_template_of_gguf(metadata: Mapping[str, Any]) -> str:
    """The chat template of a GGUF file, or the one that its architecture is known to use."""
    template = metadata.get("tokenizer.chat_template")
    if isinstance(template, str) and template:
        return template
    architecture = metadata.get("general.architecture")
    default = DEFAULT_TEMPLATES.get(str(architecture))
    if default is None:
        raise FormatError(
            "the file has no chat template (tokenizer.chat_template), and none is known for the "
            f"architecture {architecture!r} ({', '.join(DEFAULT_TEMPLATES)} have one): use "
            "generate() with a prompt in the model's own format"
        )
    return default


def chat_text(
    template: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    *,
    add_generation_prompt: bool = True,
    **names: Any,
) -> str:
    """The text of messages by a chat template, which is a Jinja program.

    `add_generation_prompt` ends it where the assistant's answer begins. `names` are further
    variables of the template: `bos_token`, `enable_thinking`. A template that loops too long,
    builds too much, or reaches for what it may not is stopped with `ChatTemplateError`.
    """
    from jinja2.exceptions import TemplateError

    from treadle.models.text.template_sandbox import BUDGET, Budget, plain, size_of

    _check_list(messages)
    variables = {
        "messages": plain(messages, "messages"),
        "tools": None if tools is None else plain(tools, "tools"),
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
        **{name: plain(value, name) for name, value in names.items()},
    }
    given = size_of(variables, 1 << 40)
    program = _compiled(template)
    token = BUDGET.set(Budget(_UNITS + _UNITS_PER_CHARACTER * given, SECONDS))
    try:
        return program.render(variables)
    except _Refusal as error:
        raise ChatTemplateError(f"the chat template refuses these messages: {error}") from None
    except (RecursionError, MemoryError) as error:
        raise ChatTemplateError(
            f"the chat template was stopped: it nests too deep ({type(error).__name__})"
        ) from None
    except TemplateError as error:
        raise ChatTemplateError(f"the chat template was stopped: {error}") from error
    except Exception as error:
        raise ChatTemplateError(
            f"the chat template failed on these messages: {type(error).__name__}: {error}"
        ) from error
    finally:
        BUDGET.reset(token)


def chat_tokens(
    tokenizer: Tokenizer,
    template: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None = None,
    most: int | None = None,
    **names: Any,
) -> list[int]:
    """The tokens of messages by a chat template. TooManyTokens if the length of its text alone says
    that there are more than `most`.

    Control tokens come from the template alone: what looks like one within a message stays text,
    so that a message cannot end its turn and speak for another role.
    """
    messages = _with_texts(messages)
    mark = _unused_character(template, messages, tools, names)
    texts = {"bos_token": _text_of(tokenizer, tokenizer.bos)}
    texts["eos_token"] = _text_of(tokenizer, tokenizer.eos)
    special, tokens = tokenizer.control_tokens, tokenizer.vocabulary.tokens
    text = chat_text(
        template,
        _marked(messages, special, tokens, mark),
        None if tools is None else _marked(tools, special, tokens, mark),
        **texts | names,
    )
    return tokenizer.encode_prompt(text, mark, most)


def _with_texts(messages: Sequence[Message]) -> list[Message]:
    """Messages whose contents are texts: parts of a text, as OpenAI's clients may have them, are
    joined, since most templates cannot."""
    _check_list(messages)
    found: list[Message] = []
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise TypeError(f"messages[{at}] must be a dict with role and content: {message!r:.80}")
        if not isinstance(message.get("role"), str):
            raise ValueError(
                f'messages[{at}] must have a role, as {{"role": "user", "content": "Hello"}}: '
                f"{message!r:.80}"
            )
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list, tuple)):
            raise TypeError(
                f"messages[{at}].content must be a text or a list of parts, not {content!r:.80}"
            )
        if isinstance(content, (list, tuple)):
            parts = [_text_of_part(part, f"messages[{at}].content") for part in content]
            message = {**message, "content": "".join(parts)}
        found.append(message)
    return found


def _text_of_part(part: Any, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    text = part.get("text") if isinstance(part, Mapping) else None
    if kind != "text" or not isinstance(text, str):
        raise ValueError(
            f'{where} has parts {{"type": "text", "text": …}}, since models here read only texts, '
            f"not {part!r:.80}"
        )
    return text


def _check_list(messages: Any) -> None:
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise TypeError(f"messages must be a list of dicts with role and content: {messages!r:.80}")
    if not messages:
        raise ValueError("messages is empty: an answer needs at least one message")


class _Refusal(Exception):
    """What a template raises by `raise_exception`."""


def _raise_exception(message: str) -> None:
    raise _Refusal(message)


def _strftime_now(form: str) -> str:
    if len(form) > _LONGEST_TIME_FORMAT:
        raise ValueError(f"a format of time of {len(form)} characters")
    return datetime.now().strftime(form)


@lru_cache(16)
def _compiled(template: str) -> Template:
    try:
        from jinja2.exceptions import TemplateSyntaxError
    except ImportError as error:
        raise ImportError(
            "chat templates are Jinja programs: pip install 'treadle[llm]'"
        ) from error

    from treadle.models.text.template_sandbox import compiled

    if len(template) > _LONGEST_TEMPLATE:
        raise FormatError(
            f"the chat template has {len(template)} characters, more than {_LONGEST_TEMPLATE}"
        )
    try:
        return compiled(
            template, {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
        )
    except TemplateSyntaxError as error:
        raise FormatError(
            f"the chat template is not valid Jinja: line {error.lineno}: {error.message}"
        ) from error
    except Exception as error:  # what Python says of the code that Jinja makes of it
        raise FormatError(
            f"the chat template cannot be used: {type(error).__name__}: {error}"
        ) from error


def _text_of(tokenizer: Tokenizer, token: int | None) -> str:
    return "" if token is None else tokenizer.vocabulary.tokens[token]


def _unused_character(*values: Any) -> str:
    """A character of private use that stands nowhere in these values."""
    text = repr(values)
    return next(
        character for character in map(chr, range(0xF0000, 0xFFFFE)) if character not in text
    )


def _marked(value: Any, special: SpecialTokens, tokens: Sequence[str], mark: str) -> Any:
    """The value with the mark within each control token's text in its strings."""
    if isinstance(value, str):
        return "".join(
            piece if isinstance(piece, str) else tokens[piece][:1] + mark + tokens[piece][1:]
            for piece in special.split(value)
        )
    if isinstance(value, Mapping):
        return {
            _marked(key, special, tokens, mark): _marked(each, special, tokens, mark)
            for key, each in value.items()
        }
    if isinstance(value, Sequence):
        return [_marked(each, special, tokens, mark) for each in value]
    return value
