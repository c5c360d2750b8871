"""Chat templates of architectures whose files often have none, in their published formats."""

from __future__ import annotations

_GEMMA = """\
{{- bos_token }}
{%- set turns = namespace(first='', messages=messages) %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set turns.first = messages[0]['content'] ~ '\\n\\n' %}
    {%- set turns.messages = messages[1:] %}
{%- endif %}
{%- for message in turns.messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('turns must alternate: user, assistant, user, ...') }}
    {%- endif %}
    {{- '<start_of_turn>' ~ ('model' if message['role'] == 'assistant' else message['role']) }}
    {{- '\\n' ~ (turns.first if loop.first else '') ~ message['content'] | trim }}
    {{- '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
"""

_CHAT_ML = """\
{%- for message in messages %}
    {{- '<|im_start|>' ~ message['role'] ~ '\\n' ~ message['content'] ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

_PHI_3 = """\
{%- for message in messages %}
    {{- '<|' ~ message['role'] ~ '|>\\n' ~ message['content'] ~ '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}
"""

DEFAULT_TEMPLATES: dict[str, str] = {
    **dict.fromkeys(("gemma", "gemma2", "gemma3"), _GEMMA),
    **dict.fromkeys(("qwen2", "qwen2moe", "qwen3", "qwen3moe"), _CHAT_ML),
    "phi3": _PHI_3,
}
