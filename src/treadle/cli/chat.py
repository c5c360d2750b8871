"""`treadle chat`: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from treadle.cli.text_generation import Writer, check_room
from treadle.core.errors import TreadleError
from treadle.models.model import Model
from treadle.models.sampling import Sampling
from treadle.models.serving.protocol import Overflow

_HELP = """\
/clear        begin a new conversation
/system TEXT  set the system message, and begin a new conversation; /system shows it,
              /system "" removes it
/undo         take the last question and its answer back
/speed        show or hide tokens a second
/exit         leave (also Ctrl-D)
Ctrl-C stops an answer, or drops what was typed. A line that ends with \\ goes on
in the next one."""
_NONE = ('""', "''")  # the text of no system message


class Chat:
    """A conversation with a model. As a context manager, it ends the model's thread."""

    def __init__(
        self, model: Model, sampling: Sampling, max_tokens: int, system: str | None,
        overflow: Overflow, stop: Sequence[str], say: Callable[[str], None], interactive: bool,
    ) -> None:  # fmt: skip
        self._model, self._sampling, self._most = model, sampling, max_tokens
        self._overflow: Overflow = overflow
        self._stop, self._say, self._interactive = stop, say, interactive
        self._system = system
        self._messages: list[dict[str, Any]] = []
        self._writer = Writer(model)
        self._shows_speed = False

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def run(self, read: Callable[[], str | None]) -> bool:
        """Answer the lines of a person, until there are no more; whether all were answered.

        KeyboardInterrupt if an answer was stopped whose question was not typed.
        """
        answered = True
        while True:
            try:
                line = read()
                if line is None:
                    break
                if line.startswith("/"):
                    if not self._command(line.strip()):
                        break
                elif line.strip():
                    answered = self._try_to_answer(line) and answered
            except KeyboardInterrupt:  # in an answer, or a second one that came right after
                if not self._interactive:
                    raise
        return answered or self._interactive  # who typed it has seen the error

    def _try_to_answer(self, line: str) -> bool:
        try:
            self.answer(line)
        except (TreadleError, ValueError) as error:
            if self._writer.has_failed:  # it generates no more
                raise
            self._say(str(error))
            return False
        return True

    def answer(self, text: str) -> None:
        """Write the answer to a message, and keep both.

        KeyboardInterrupt if it was stopped, after what there was of it.
        """
        tokens = self._tokens(text)
        written = self._writer.write(tokens, self._sampling, self._most, self._stop, self._overflow)
        sys.stdout.write("\n")
        sys.stdout.flush()
        self._messages.append({"role": "user", "content": text})
        self._messages.append({"role": "assistant", "content": written.text})
        if not written.text and written.finish_reason == "stop":
            self._say("the model ended its answer before it began")
        if written.finish_reason == "length":
            self._say("the answer was cut at its limit: --max-tokens or --context makes it longer")
        if self._shows_speed:
            self._say(written.speeds())
        if written.finish_reason == "cancelled":
            raise KeyboardInterrupt

    def _tokens(self, text: str) -> list[int]:
        """The tokens of the conversation with one more message. Where the context has no room for
        them, PromptTooLong, or the oldest messages are forgotten if it may shift."""
        question = {"role": "user", "content": text}
        messages, context = self._messages, self._model.context
        tokens = self._tokens_of([*messages, question])
        if len(tokens) < context:
            return tokens
        if messages and self._overflow == "error":
            check_room(
                len(tokens), context,
                "--shift forgets its older half, /clear begins a new one", "the conversation",
            )  # fmt: skip
        while messages and len(tokens) > context // 2:  # an answer needs room, too
            messages = messages[2:]
            tokens = self._tokens_of([*messages, question])
        check_room(len(tokens), context, "or write less", "the message")
        self._say(
            f"the context is full: {(len(self._messages) - len(messages)) // 2} of the oldest "
            "questions and their answers are forgotten"
        )
        self._messages = messages
        return tokens

    def _tokens_of(self, messages: list[dict[str, Any]]) -> list[int]:
        system = [{"role": "system", "content": self._system}] if self._system else []
        return self._model.chat_tokens([*system, *messages])

    def _command(self, line: str) -> bool:
        """Do what a command says; False if it ends the conversation."""
        name, _, rest = line.partition(" ")
        if name in ("/exit", "/quit"):
            return False
        if name == "/clear":
            self._messages = []
            self._say("a new conversation")
        elif name == "/system":
            self._set_system(rest.strip())
        elif name == "/undo":
            self._messages = self._messages[:-2]
            self._say(f"questions in the conversation: {len(self._messages) // 2}")
        elif name == "/speed":
            self._shows_speed = not self._shows_speed
            shown = "shown after each answer" if self._shows_speed else "hidden"
            self._say(f"tokens a second are {shown}")
        else:
            self._say(_HELP if name == "/help" else f"{name} is not a command\n{_HELP}")
        return True

    def _set_system(self, text: str) -> None:
        if not text:
            self._say(
                f"the system message: {self._system}" if self._system else "no system message"
            )
            return
        self._system, self._messages = None if text in _NONE else text, []
        found = "with this" if self._system else "without a"
        self._say(f"a new conversation, {found} system message")


def read_line() -> str | None:
    """A message of a person at the terminal, or of a pipe; None at the end. Ctrl-C at the terminal
    drops what was typed."""
    typed = sys.stdin.isatty()
    if typed:
        with suppress(ImportError):  # on Windows, whose consoles have history and keys themselves
            import readline  # noqa: F401 - gives them to input()
    lines: list[str] = []
    while True:
        try:
            line = input(("... " if lines else "> ") if typed else "")
        except EOFError:
            if typed:
                sys.stdout.write("\n")
            return None if not lines else "\n".join(lines)
        except KeyboardInterrupt:
            if not typed:
                raise
            sys.stdout.write("\n(Ctrl-D or /exit leaves)\n")
            lines = []
            continue
        if not line.endswith("\\"):
            return "\n".join([*lines, line])
        lines.append(line[:-1])
