"""The commands of language models, with an engine that writes what a script says."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.support.small_engine import SmallEncoder, SmallEngine, SmallModel
from treadle.cli.app import app
from treadle.cli.chat import Chat
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
    assert "prompt: 10 tokens" in done.stderr
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
        (("embed", "letters"), "give texts"),
        (("serve", "m.gguf", "--name", "a", "--name", "b"), "give one for each of the 1 models"),
        (("serve", "a/m.gguf", "b/m.gguf"), "give each model another name"),
    ],
)
def test_wrong_usage(run, arguments, message):
    done = run(*arguments, given="")
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_chat(run, engine):
    lines = ["one", "/speed", "two\\", "lines", "/undo", "/system be brief", "/nonsense", "/help",
             "three", "/exit", "never"]  # fmt: skip
    done = run("chat", "m.gguf", "--temp", "0", "--max-tokens", "19", given="\n".join(lines))
    assert done.exit_code == 0
    assert done.stdout == "oneone\ntwo\nlinestwo\nlines\nthreethree\n"
    assert "tokens/s" in done.stderr
    assert "questions in the conversation: 1" in done.stderr
    assert "/nonsense is not a command" in done.stderr
    assert "Ctrl-C stops an answer" in done.stderr
    prompts = [each.prompt_tokens for each in engine.ended]
    assert prompts[1] == len("user: one\nassistant: oneone\nuser: two\nlines")
    assert prompts[2] == len("system: be brief\nuser: three")


def test_chat_with_one_message(run, engine):
    done = run("chat", "m.gguf", "-p", "hi", "--system", "s", "--max-tokens", "2")
    assert done.stdout == "hi\n"
    assert "cut at its limit" in done.stderr
    assert engine.ended[0].sampling.top_k == 40


def test_a_conversation_that_is_full(engine, capsys):
    said: list[str] = []
    model = SmallModel("m", engine)
    model.context = 30
    lines = iter(["x" * 40, "short"])
    Chat(model, Sampling(), 100, None).run(lambda: next(lines, None), said.append)
    assert "the context is 30: /clear begins a new one" in said[0]
    assert capsys.readouterr().out == "shortshort\n"
    lines = iter(["x" * 40])
    Chat(model, Sampling(), 100, None, "shift").run(lambda: next(lines, None), said.append)
    assert capsys.readouterr().out == "x" * 80 + "\n"
    assert engine.overflows == ["error", "shift"]


def test_embed(run):
    done = run("embed", "letters", "abc", "é")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["text"] for line in lines] == ["abc", "é"]
    assert lines[0]["embedding"] == [0, 1, 1, 1, 0, 0, 0, 0]
    assert len(run("embed", "letters", given="a\n\nb\n").stdout.splitlines()) == 2
    done = run("embed", "m.gguf", "a")
    assert done.exit_code == 1
    assert "embeds none" in str(done.exception)
    done = run("generate", "letters", "-p", "x")
    assert "treadle embed" in str(done.exception)


def test_serve(run, monkeypatch, tmp_path):
    """What the options make of the server, which does not run here."""
    made = []

    class Server(servers.Server):
        def run(self):
            made.append(self)
            self.close()

    key = tmp_path / "key"
    key.write_text("secret\n")
    monkeypatch.setattr("treadle.cli.serve.Server", Server)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    done = run("serve", "m-00001-of-00003.gguf", "letters", "--port", "0", "--context", "99")
    assert done.exit_code == 0, done.output
    assert "serving m, letters at http://127.0.0.1:" in done.stderr
    assert "page to chat in" in done.stderr
    assert "anyone" not in done.stderr
    done = run("serve", "m.gguf", "--host", "0.0.0.0", "--port", "0")
    assert "anyone who reaches this machine" in done.stderr
    done = run("serve", "m.gguf", "--host", "0.0.0.0", "--port", "0", "--api-key-file", str(key))
    assert "anyone" not in done.stderr
    assert len(made) == 3
    key.write_text("sésame")
    done = run("serve", "m.gguf", "--api-key-file", str(key))
    assert done.exit_code == 2
    assert "ASCII" in done.stderr
