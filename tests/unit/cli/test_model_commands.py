"""The commands of language models, with an engine that writes what a script says."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.support.small_engine import SmallEncoder, SmallEngine, SmallModel
from treadle.cli.app import app, main
from treadle.cli.chat import Chat
from treadle.cli.serve import name_of
from treadle.cli.text_generation import Writer, Written
from treadle.core import background
from treadle.core.errors import GrammarError
from treadle.models import loading
from treadle.models.sampling import Sampling
from treadle.models.serving import server as servers


def doubled(prompt: str) -> str:
    last = prompt.rpartition(": ")[2]
    return last + last


@pytest.fixture
def engine() -> SmallEngine:
    return SmallEngine(doubled)


@pytest.fixture
def run(engine, monkeypatch):
    """Runs a command with small models: a folder is an encoder, a file generates."""

    class Encoder(SmallEncoder):
        device = SimpleNamespace(id="cpu")

        def embed(self, texts):
            return np.asarray(super().embed(texts))

    def load(path, device=None, context=None, cache="f16"):
        if path.suffix != ".gguf":
            assert context is None
            return Encoder(path.name)
        model = SmallModel(path.stem, engine)
        model.device = SimpleNamespace(id=device or "cpu")
        return model

    monkeypatch.setattr(loading, "load", load)

    def running(*arguments: str, given: str | None = None):
        return CliRunner().invoke(app, list(arguments), input=given)

    return running


def test_generate(run, engine):
    done = run("generate", "m.gguf", "-p", "say: héy ", "-n", "20", "--temp", "0.5", "--top-k", "7",
               "--seed", "3", "--repeat-penalty", "1.1")  # fmt: skip
    assert done.exit_code == 0
    assert done.stdout == "héy héy  3\n"
    assert "loaded m.gguf on cpu" in done.stderr
    assert "prompt: 10 tokens in 0." in done.stderr
    assert "answer: 12 tokens" in done.stderr
    wanted = Sampling(temperature=0.5, top_k=7, seed=3, repeat_penalty=1.1)
    assert engine.ended[0].sampling == wanted


def test_generate_from_standard_input(run):
    assert run("generate", "m.gguf", "--stop", "c", given="say: abc").stdout == "ab\n"
    assert run("generate", "m.gguf", "-p", "-", "-n", "2", given="say: abc").stdout == "ab\n"


def test_generate_by_a_schema_and_a_grammar(run, tmp_path):
    schema, grammar = tmp_path / "schema.json", tmp_path / "grammar.gbnf"
    schema.write_text('{"const": {"a": 1}}')
    grammar.write_text('root ::= "yes"')
    options = ("generate", "m.gguf", "-p", "x")
    assert run(*options, "--json-schema", str(schema)).stdout == '{"a":1}\n'
    assert run(*options, "--grammar", str(grammar)).stdout == "yes\n"
    schema.write_text("{")
    done = run(*options, "--json-schema", str(schema))
    assert done.exit_code == 2
    assert "json_schema is not JSON" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "m.gguf", "-p", "x", "--top-p", "95"), "top_p is a number from 0 to 1"),
        (("generate", "m.gguf", "-p", ""), "the text is empty"),
        (("generate", "m.gguf", "-p", "x", "-n", "0"), "0 is not in the range"),
        (("generate",), "Missing argument"),
        (("generate", "m.gguf", "-p", "x", "--stop", ""), "give at least one character"),
        (("generate", "m.gguf", "-p", "x\udcff"), "not text in UTF-8 at character 1"),
        (("generate", "m.gguf", "-p", "x" * 2000), "--context makes it longer, --shift drops"),
        (("generate", "letters", "-p", "x"), "treadle embed uses it"),
        (("chat", "m.gguf", "-p", " "), "the message is empty"),
        (("chat", "m.gguf", "-p", "x" * 2000), "the message has 2006 tokens, and the context"),
        (("chat", "m.gguf", "-p", "x" * 2000, "--shift"), "--context makes it longer, or write"),
        (("chat", "m.gguf", "-p", "x", "--system", "\udcff"), "not text in UTF-8"),
        (("chat", "letters", "-p", "x"), "treadle embed uses it"),
        (("embed", "letters", "\udcff"), "not text in UTF-8 at character 0"),
        (("embed", "m.gguf", "x"), "treadle generate uses it"),
        (("embed", "letters"), "give texts"),
        (("serve", "m.gguf", "--name", "a", "--name", "b"), "give one for each of the 1 models"),
        (("serve", "a/m.gguf", "b/m.gguf"), "give each model another name"),
        (("serve", "m.gguf", "--allow-origin", "foo"), "as https://page.example"),
        (("serve", "m.gguf", "--allow-origin", "https://"), "as https://page.example"),
        (
            ("serve", "m.gguf", "--allow-origin", "HTTPS://a.example:443/x"),
            "write https://a.example",
        ),
        (("serve", "m.gguf", "--allow-origin", "http://[::1]:80"), "write http://[::1]"),
    ],
)
def test_wrong_usage(run, arguments, message):
    done = run(*arguments, given="")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize("command", ["generate", "chat", "embed"])
def test_input_that_is_not_text(run, command):
    arguments = (command, "letters") if command == "embed" else (command, "m.gguf", "-p", "-")
    done = run(*arguments, given=b"\xff\xfe bad")
    assert done.exit_code == 2
    assert "standard input is not text in utf-8" in " ".join(done.stderr.split()).replace("│ ", "")


@pytest.mark.parametrize("option", ["--grammar", "--json-schema"])
def test_files_that_are_not_text(run, tmp_path, option):
    (tmp_path / "x").write_bytes(b"ab\xff")
    done = run("generate", "m.gguf", "-p", "x", option, str(tmp_path / "x"))
    assert done.exit_code == 2
    assert "at byte 2" in done.stderr


def failing(monkeypatch, error):
    def load(*_):
        raise error

    monkeypatch.setattr(loading, "load", load)


@pytest.mark.parametrize("command", ["generate", "chat", "embed", "serve"])
@pytest.mark.parametrize("kind", [GrammarError, UnicodeError, MemoryError, OSError])
def test_errors_are_one_line(monkeypatch, capsys, command, kind):
    failing(monkeypatch, kind("what is wrong"))
    last = {"serve": [], "embed": ["x"]}.get(command, ["-p", "x"])
    with pytest.raises(SystemExit) as end:
        main([command, "m.gguf", *last])
    assert end.value.code == 1
    assert capsys.readouterr().err == "treadle: what is wrong\n"
    with pytest.raises(kind):
        main(["--debug", command, "m.gguf", *last])


def test_faults_keep_their_traceback(monkeypatch):
    failing(monkeypatch, KeyError("x"))
    with pytest.raises(KeyError):
        main(["generate", "m.gguf", "-p", "x"])


def test_a_model_without_a_tokenizer(run, engine, monkeypatch):
    model = SmallModel("m", engine)
    model.tokenizer, model.device = None, SimpleNamespace(id="cpu")
    monkeypatch.setattr(loading, "load", lambda *_: model)
    for arguments in (("generate", "-p", "x"), ("chat", "-p", "x"), ("serve",)):
        done = run(arguments[0], "m.gguf", *arguments[1:])
        assert done.exit_code == 1
        assert "m.gguf has no tokenizer" in str(done.exception)


def test_no_notice_overwrites_a_text(engine):
    """Kernels are prepared until the second token, whose text follows the first one's."""
    shown = []

    class Output(io.StringIO):
        def write(self, text):
            shown.append(background._without)
            return super().write(text)

    writer = Writer(SmallModel("m", engine), Output())
    writer.write(engine.tokenizer.encode("ab"), Sampling(), 9)
    writer.close()
    assert set(shown) == {1}
    assert background._without == 0


def test_speeds():
    """A speed is shown of enough tokens, and none of the prompt."""
    few = Written("x", 6, 11, "stop", 1.5, True, 9, 0.01)
    assert few.speeds() == "prompt: 6 tokens in 1.50 s with kernels prepared; answer: 11 tokens"
    many = Written("x", 3000, 102, "stop", 2.0, False, 100, 2.5)
    assert many.speeds() == "prompt: 3000 tokens in 2.00 s; answer: 102 tokens, 40.0 tokens/s"


def test_chat(run, engine):
    lines = ["/system", "one", "/speed", "two\\", "lines", "/undo", "/system be brief",
             "/system", "/nonsense", "/help", "three", "/speed", '/system ""', "four", "/exit",
             "never"]  # fmt: skip
    done = run("chat", "m.gguf", "--temp", "0", "--max-tokens", "19", given="\n".join(lines))
    assert done.exit_code == 0
    assert done.stdout == "oneone\ntwo\nlinestwo\nlines\nthreethree\nfourfour\n"
    assert done.stderr.count("prompt: ") == 2
    assert "tokens a second are shown after each answer" in done.stderr
    assert "tokens a second are hidden" in done.stderr
    assert "no system message\n" in done.stderr
    assert "the system message: be brief\n" in done.stderr
    assert "a new conversation, without a system message" in done.stderr
    assert "questions in the conversation: 1" in done.stderr
    assert "/nonsense is not a command" in done.stderr
    assert "Ctrl-C stops an answer" in done.stderr
    prompts = [each.prompt_tokens for each in engine.ended]
    assert prompts[1] == len("user: one\nassistant: oneone\nuser: two\nlines")
    assert prompts[2:] == [len("system: be brief\nuser: three"), len("user: four")]


def test_chat_with_one_message(run, engine):
    done = run("chat", "m.gguf", "-p", "hi", "--system", "s", "--max-tokens", "2")
    assert done.stdout == "hi\n"
    assert "cut at its limit" in done.stderr
    assert engine.ended[0].sampling.top_k == 40


def test_chat_with_the_options_of_generate(run, tmp_path):
    grammar = tmp_path / "grammar.gbnf"
    grammar.write_text('root ::= "yes"')
    assert run("chat", "m.gguf", "-p", "x", "--grammar", str(grammar)).stdout == "yes\n"
    options = ("chat", "m.gguf", "--temp", "0", "-p", "-")
    assert run(*options, "--stop", "c", given="abc").stdout == "ab\n"
    assert run(*options, "-n", "1", given="abc").stdout == "a\n"
    assert run("chat", "m.gguf", "--temp", "0", "-p", "/exit").stdout == "/exit/exit\n"


def test_all_options_of_generate_are_options_of_chat():
    commands = get_command(app).commands
    generate, chat = (
        {name for each in commands[command].params for name in each.opts}
        for command in ("generate", "chat")
    )
    assert generate - {"model"} <= chat


@pytest.mark.parametrize(
    "arguments", [("generate", "-p", "x"), ("chat", "-p", "x"), ("chat",)], ids=" ".join
)
def test_an_answer_that_was_stopped_is_status_130(run, engine, monkeypatch, arguments):
    stopped = Written("x", 1, 1, "cancelled", 0.1, False, 0, 0.1)
    monkeypatch.setattr(Writer, "write", lambda *_: stopped)
    assert run(arguments[0], "m.gguf", *arguments[1:], given="one\ntwo\n").exit_code == 130


def test_the_end_of_a_text_is_noticed_if_an_interrupt_took_it(engine, monkeypatch, capsys):
    class Interrupted(SimpleQueue):
        def get(self, timeout):
            found = super().get(timeout=timeout)
            if found is None:
                raise KeyboardInterrupt
            return found

    monkeypatch.setattr("treadle.cli.text_generation.queue.SimpleQueue", Interrupted)
    writer = Writer(SmallModel("m", engine))
    written = writer.write(engine.tokenizer.encode("ab"), Sampling(), 9)
    writer.close()
    assert (written.text, written.finish_reason) == ("abab", "stop")
    assert capsys.readouterr().out == "abab"


def test_an_empty_answer_is_noticed(run):
    done = run("chat", "m.gguf", "--temp", "0", "-p", "user: ")
    assert done.stdout == "\n"
    assert "the model ended its answer before it began" in done.stderr


def test_a_line_that_cannot_be_answered(run):
    done = run("chat", "m.gguf", "--temp", "0", given="refuse me\nfine\n")
    assert done.exit_code == 1
    assert done.stdout == "finefine\n"
    assert "the template refuses: roles must alternate" in done.stderr


def chat_of(engine, lines, said, overflow="error"):
    model = SmallModel("m", engine)
    model.context = 50
    left = iter(lines)
    with Chat(model, Sampling(), 100, None, overflow, (), said.append, False) as chat:
        return chat.run(lambda: next(left, None))


def test_a_conversation_that_is_full(engine, capsys):
    said: list[str] = []
    assert not chat_of(engine, ["one", "x" * 40, "x" * 60, "two"], said)
    assert "the context is 50: --context makes it longer, --shift forgets its older half" in said[0]
    assert capsys.readouterr().out == "oneone\ntwotwo\n"
    assert engine.overflows == ["error"] * 2


def test_a_conversation_that_shifts(engine, capsys):
    said: list[str] = []
    lines = ["one", "two", "three", "x" * 60, "y" * 20]
    assert not chat_of(engine, lines, said, "shift")
    assert capsys.readouterr().out == f"oneone\ntwotwo\nthreethree\n{'y' * 40}\n"
    assert said == [
        "the context is full: 2 of the oldest questions and their answers are forgotten",
        "the message has 66 tokens, and the context is 50: --context makes it longer, or write "
        "less",
        "the context is full: 1 of the oldest questions and their answers are forgotten",
    ]
    assert engine.overflows == ["shift"] * 4
    assert engine.ended[-1].prompt_tokens == len("user: ") + 20


TERMINAL = """
from tests.support.small_engine import SmallEngine, SmallModel
from treadle.cli.chat import Chat, read_line
from treadle.models.sampling import Sampling

def answer(prompt):
    return prompt.upper() + "." * 9000 * prompt.endswith("long")

engine = SmallEngine(answer, delay=0.001)
with Chat(SmallModel("m", engine), Sampling(), 9999, None, "shift", (), print, True) as chat:
    assert chat.run(read_line)
print("left")
"""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
def test_ctrl_c_in_a_terminal():
    """It drops what was typed, or stops an answer; the conversation goes on.

    The signal is sent, since the terminal that makes one of a key may drop what was just written,
    and sent again, since Python's input() misses one that comes just before it waits for a key.
    """
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TERMINAL], stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    seen = ""

    def until(words: str, interrupts: bool = False) -> None:
        nonlocal seen
        if interrupts:
            process.send_signal(signal.SIGINT)
        while words not in seen:
            if select.select([ours], [], [], 2 if interrupts else None)[0]:
                seen += os.read(ours, 1000).decode()
            else:
                process.send_signal(signal.SIGINT)
        seen = seen.partition(words)[2]

    until("> ")
    os.write(ours, b"dropped\\\r")
    until("... ")
    os.write(ours, b"abc")
    until("abc")
    until("Ctrl-D or /exit leaves", interrupts=True)
    os.write(ours, b"hi\r")
    until("USER: HI\r\n")
    os.write(ours, b"long\r")
    until("LONG....")
    until("> ", interrupts=True)
    os.write(ours, b"\x04")
    until("left")
    assert process.wait(timeout=30) == 0
    os.close(ours)


def test_embed(run):
    done = run("embed", "letters", "abc", "é")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["text"] for line in lines] == ["abc", "é"]
    assert lines[0]["embedding"] == [0, 1, 1, 1, 0, 0, 0, 0]
    assert len(run("embed", "letters", given="a\n\nb\n").stdout.splitlines()) == 2


def test_serve(run, monkeypatch, tmp_path):
    """What the options make of the server, which does not run here."""
    made = []

    class Server(servers.Server):
        def __init__(self, models, settings, host, port):
            super().__init__(models, settings, host, port)
            self.origins = settings.origins

        def run(self):
            made.append(self)
            self.close()

    key = tmp_path / "key"
    key.write_text("secret\n")
    monkeypatch.setattr("treadle.cli.serve.Server", Server)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    allowed = (
        "https://page.example",
        "http://localhost:3000",
        "app://notes",
        "http://[::1]:8080",
        "*",
    )
    options = [word for origin in allowed for word in ("--allow-origin", origin)]
    done = run(
        "serve", "m-00001-of-00003.gguf", "letters", "--port", "0", "--context", "99", *options
    )
    assert done.exit_code == 0, done.output
    assert "serving m, letters at http://127.0.0.1:" in done.stderr
    assert "page to chat in" in done.stderr
    assert "anyone" not in done.stderr
    done = run("serve", "m.gguf", "--host", "0.0.0.0", "--port", "0")
    assert "anyone who reaches this machine" in done.stderr
    done = run("serve", "m.gguf", "--host", "0.0.0.0", "--port", "0", "--api-key-file", str(key))
    assert "anyone" not in done.stderr
    assert len(made) == 3
    assert made[0].origins == allowed
    key.write_text("sésame")
    done = run("serve", "m.gguf", "--api-key-file", str(key))
    assert done.exit_code == 2
    assert "ASCII" in done.stderr


def test_a_link_to_a_model_keeps_its_name(tmp_path, monkeypatch):
    """Folders of downloads have links to files that are called by their hashes."""
    (tmp_path / "0a1b2c").write_bytes(b"")
    (tmp_path / "small.gguf").symlink_to(tmp_path / "0a1b2c")
    assert name_of(tmp_path / "small.gguf") == "small"
    (tmp_path / "encoder").symlink_to(tmp_path)
    assert name_of(tmp_path / "encoder") == "encoder"
    monkeypatch.chdir(tmp_path)
    assert name_of(Path(".")) == tmp_path.name
    assert name_of(Path("big-00001-of-00003.gguf")) == "big"
