"""`treadle chat`: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from treadle.cli.text_generation import Writer
from treadle.models.model import Model
from treadle.models.sampling import Sampling
from treadle.models.serving.protocol import Overflow

_HELP = """\
/clear        begin a new conversation
/system TEXT  set the system message, and begin a new conversation
/undo         take the last question and its answer back
/speed        show or hide tokens a second
/exit         leave (also Ctrl-D)
Ctrl-C stops an answer. A line that ends with \\ goes on in the next one."""


class Chat:
    """A conversation with a model."""

    def __init__(
        self, model: Model, sampling: Sampling, max_tokens: int, system: str | None,
        overflow: Overflow = "error",
    ) -> None:  # fmt: skip
        self._model, self._sampling, self._most = model, sampling, max_tokens
        self._overflow: Overflow = overflow
        self._system = system
        self._messages: list[dict[str, Any]] = []
        self._writer = Writer(model)
        self._shows_speed = False

    def run(self, read: Callable[[], str | None], say: Callable[[str], None]) -> None:
        """Answer the lines of a person, until there are no more."""
        try:
            while (line := read()) is not None:
                if line.startswith("/"):
                    if not self._command(line.strip(), say):
                        return
                elif line.strip():
                    self.answer(line, say)
        finally:
            self._writer.close()

    def answer(self, text: str, say: Callable[[str], None]) -> None:
        """Write the answer to a message, and keep both."""
        messages = [*self._messages, {"role": "user", "content": text}]
        if self._system:
            messages.insert(0, {"role": "system", "content": self._system})
        tokens = self._model.chat_tokens(messages)
        if len(tokens) >= self._model.context and self._overflow == "error":
            say(
                f"the conversation has {len(tokens)} tokens, and the context is "
                f"{self._model.context}: /clear begins a new one, --context makes it longer, "
                "--shift drops its older half"
            )
            return
        written = self._writer.write(tokens, self._sampling, self._most, overflow=self._overflow)
        sys.stdout.write("\n")
        sys.stdout.flush()
        self._messages.append({"role": "user", "content": text})
        self._messages.append({"role": "assistant", "content": written.text})
        if written.finish_reason == "length":
            say("the answer was cut at its limit: --max-tokens or --context makes it longer")
        if self._shows_speed:
            say(written.speeds())

    def _command(self, line: str, say: Callable[[str], None]) -> bool:
        """Do what a command says; False if it ends the conversation."""
        name, _, rest = line.partition(" ")
        if name in ("/exit", "/quit"):
            return False
        if name == "/clear":
            self._messages = []
            say("a new conversation")
        elif name == "/system":
            self._system, self._messages = rest.strip() or None, []
            say("a new conversation" + (", with this system message" if self._system else ""))
        elif name == "/undo":
            self._messages = self._messages[:-2]
            say(f"questions in the conversation: {len(self._messages) // 2}")
        elif name == "/speed":
            self._shows_speed = not self._shows_speed
        else:
            say(_HELP if name == "/help" else f"{name} is not a command\n{_HELP}")
        return True


def read_line() -> str | None:
    """A message of a person at the terminal; None at the end, or after Ctrl-C."""
    if sys.stdin.isatty():
        with suppress(ImportError):  # on Windows, whose consoles have history and keys themselves
            import readline  # noqa: F401 - gives them to input()
    lines: list[str] = []
    while True:
        try:
            line = input("> " if sys.stdin.isatty() and not lines else "")
        except (EOFError, KeyboardInterrupt):
            return None if not lines else "\n".join(lines)
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line[:-1])
