"""The commands of language models: their options; what they do is in modules of their own."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli.usage import (
    checked_origins,
    checked_text,
    text_of_file,
    text_of_input,
    wrong_usage,
)
from treadle.core.errors import TreadleError

if TYPE_CHECKING:
    from treadle.models.model import Model
    from treadle.models.sampling import Sampling

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL.gguf", help="The model's file.", show_default=False)
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="The device, as cuda, webgpu or cpu. The best one.")
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context",
        min=2,
        help="Tokens that a prompt and its answer may have together. 4096, if the model has them.",
    ),
]
CacheOption = Annotated[
    str, typer.Option("--cache", help="Keys and values are kept as f16, q8_0 (half of it) or f32.")
]
Shift = Annotated[
    bool,
    typer.Option("--shift", help="Where the context is full, drop its older half and go on."),
]
Temperature = Annotated[
    float,
    typer.Option("--temp", help="0 takes the most probable token; 1 draws as the model says."),
]
TopK = Annotated[int, typer.Option("--top-k", help="Draw among so many tokens. 0: all.")]
TopP = Annotated[
    float,
    typer.Option("--top-p", help="Draw among the most probable tokens with this share. 1: all."),
]
MinP = Annotated[
    float,
    typer.Option("--min-p", help="Leave out tokens below this share of the best one's. 0: none."),
]
RepeatPenalty = Annotated[
    float, typer.Option("--repeat-penalty", help="Above 1, tokens that occurred are less probable.")
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="The same seed draws the same text again.")
]
Stop = Annotated[list[str] | None, typer.Option("--stop", help="End before this text. Repeatable.")]
Grammar = Annotated[
    Path | None, typer.Option("--grammar", help="A file with a grammar, GBNF or Lark.")
]
JsonSchema = Annotated[
    Path | None, typer.Option("--json-schema", help="A file with a JSON schema.")
]


def generate(
    model: ModelFile,
    prompt: Annotated[
        str | None,
        typer.Option("-p", "--prompt", help="The text to go on with; - reads standard input."),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option("-n", "--max-tokens", min=1, help="At most so many tokens.")
    ] = 128,
    device: DeviceOption = None,
    context: ContextOption = None,
    cache: CacheOption = "f16",
    shift: Shift = False,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    repeat_penalty: RepeatPenalty = 1.0,
    seed: Seed = None,
    stop: Stop = None,
    grammar: Grammar = None,
    json_schema: JsonSchema = None,
) -> None:
    """Go on with a text: the answer streams to standard output.

    Without options, each token is the most probable one. How long loading and
    the prompt took, and tokens a second of the answer, go to standard error.
    Ctrl-C ends the answer.

    treadle generate model.gguf -p "Once upon a time" -n 100

    treadle generate model.gguf -p - --temp 0.8 --top-p 0.95 < prompt.txt

    treadle generate model.gguf -p "Facts: " --json-schema schema.json
    """
    if prompt is None and sys.stdin.isatty():
        raise typer.BadParameter("give the text to go on with", param_hint="-p")
    text = _text_of_prompt("-" if prompt is None else prompt)
    stops = _stops(stop)
    sampling = _sampling(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        repeat_penalty=repeat_penalty, seed=seed, **_constraint(grammar, json_schema),
    )  # fmt: skip
    from treadle.cli.text_generation import PromptTooLong, Writer, check_room

    loaded = _load(model, device, context, cache)
    given = loaded.encode(text)
    if not given:
        raise typer.BadParameter("the text is empty", param_hint="-p")
    if not shift:
        with wrong_usage("-p", PromptTooLong):
            check_room(len(given), loaded.context, "--shift drops its older half")
    writer = Writer(loaded)
    try:
        written = writer.write(given, sampling, max_tokens, stops, "shift" if shift else "error")
    finally:
        writer.close()
    typer.echo()
    _note(written.speeds())
    if written.finish_reason == "cancelled":
        raise typer.Exit(130)


def chat(
    model: ModelFile,
    prompt: Annotated[
        str | None,
        typer.Option(
            "-p", "--prompt", help="Answer this message, and leave; - reads standard input."
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", help="What the model is told first.")
    ] = None,
    device: DeviceOption = None,
    context: ContextOption = None,
    cache: CacheOption = "f16",
    shift: Shift = False,
    max_tokens: Annotated[
        int, typer.Option("-n", "--max-tokens", min=1, help="At most so many tokens an answer.")
    ] = 2048,
    temperature: Temperature = 0.8,
    top_k: TopK = 40,
    top_p: TopP = 0.95,
    min_p: MinP = 0.05,
    repeat_penalty: RepeatPenalty = 1.0,
    seed: Seed = None,
    stop: Stop = None,
    grammar: Grammar = None,
    json_schema: JsonSchema = None,
) -> None:
    """Talk with a model in the terminal.

    Ctrl-C stops an answer or drops what was typed, Ctrl-D leaves; /help lists
    the commands. Lines that are piped in are answered one after the other; the
    exit status is 1 if one could not be answered.

    treadle chat model.gguf --system "Answer in one sentence."

    treadle chat model.gguf -p "Why is the sky blue?" --temp 0
    """
    message = None if prompt is None else _text_of_prompt(prompt)
    if message is not None and not message.strip():
        raise typer.BadParameter("the message is empty", param_hint="-p")
    if system is not None:
        checked_text(system, "--system")
    stops = _stops(stop)
    sampling = _sampling(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        repeat_penalty=repeat_penalty, seed=seed, **_constraint(grammar, json_schema),
    )  # fmt: skip
    from treadle.cli.chat import Chat, read_line
    from treadle.cli.text_generation import PromptTooLong

    interactive = message is None and sys.stdin.isatty()
    conversation = Chat(
        _load(model, device, context, cache), sampling, max_tokens, system,
        "shift" if shift else "error", stops, _note, interactive,
    )  # fmt: skip
    with conversation:
        if message is not None:
            with wrong_usage("-p", PromptTooLong):
                conversation.answer(message)
            return
        if interactive:
            _note("/help lists the commands")
        if not conversation.run(read_line):
            raise typer.Exit(1)


def embed(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="An encoder's folder, as of Hugging Face.", show_default=False
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEXT]...", help="The texts. Without any: lines of standard input."
        ),
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Print the embeddings of texts, as a JSON object a line.

    treadle embed all-MiniLM-L6-v2 "a cat" "a dog"

    treadle embed all-MiniLM-L6-v2 < lines.txt > embeddings.jsonl
    """
    import json

    lines = [] if texts else text_of_input("TEXT").splitlines()
    given = [checked_text(text, "TEXT") for text in texts or ()]
    given += [line for line in lines if line.strip()]
    if not given:
        raise typer.BadParameter("give texts, or lines on standard input", param_hint="TEXT")
    encoder = _load_any(model, device)
    if not hasattr(encoder, "embed"):
        raise typer.BadParameter(
            f"{model} generates text and embeds none: treadle generate uses it", param_hint="MODEL"
        )
    rows = encoder.embed(given)
    for text, row in zip(given, rows.tolist(), strict=True):
        typer.echo(json.dumps({"text": text, "embedding": row}, ensure_ascii=False))


def serve(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            help="Files of models (.gguf) to generate with, and folders of encoders.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option("--host", help="The address to listen at; 0.0.0.0 is all of them.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")
    ] = 8080,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", help="The name for clients, for each model in turn. Its file's name."
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-key-file",
            help="A file with the key that clients must send. Or set TREADLE_API_KEY.",
        ),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            help="A web page's origin (https://page.example) that may use the server. Repeatable.",
        ),
    ] = None,
    sequences: Annotated[
        int, typer.Option("--sequences", min=1, max=256, help="Texts that are generated at once.")
    ] = 16,
    most_queued: Annotated[
        int, typer.Option("--queue", min=1, help="Texts that may be running or waiting.")
    ] = 256,
    device: DeviceOption = None,
    context: ContextOption = None,
    cache: CacheOption = "f16",
    temperature: Temperature = 0.8,
    top_k: TopK = 40,
    top_p: TopP = 0.95,
    min_p: MinP = 0.05,
    repeat_penalty: RepeatPenalty = 1.0,
) -> None:
    """Serve models over HTTP, with OpenAI's interface and a page to chat in.

    /v1/models, /v1/completions, /v1/chat/completions (streaming, tools, JSON
    schemas), /v1/embeddings, /health. Requests are generated together. How
    tokens are drawn is for requests that do not say it.

    treadle serve model.gguf

    treadle serve model.gguf all-MiniLM-L6-v2 --port 9000 --sequences 32

    TREADLE_API_KEY=… treadle serve model.gguf --host 0.0.0.0
    """
    if names is not None and len(names) != len(models):
        raise typer.BadParameter(
            f"give one for each of the {len(models)} models", param_hint="--name"
        )
    sampling = _sampling(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
        repeat_penalty=repeat_penalty,
    )  # fmt: skip
    key = _api_key(api_key_file)
    allowed = checked_origins(origins or (), "--allow-origin")
    try:
        from treadle.cli import serve as server
        from treadle.models.serving.app import Settings
    except ModuleNotFoundError as error:
        raise ImportError(f'{error.name} is missing: pip install "treadle[serve]"') from None

    settings = Settings(api_key=key, defaults=sampling, most_queued=most_queued, origins=allowed)
    texts, encoders = [], []
    called = names or [server.name_of(path) for path in models]
    if len(set(called)) != len(called):
        raise typer.BadParameter("give each model another name", param_hint="--name")
    for path, name in zip(models, called, strict=True):
        # The context is that of models that generate: encoders have folders, and their own.
        loaded = _load_any(path, device, None if path.is_dir() else context, cache)
        if hasattr(loaded, "embed"):
            loaded.name = name
            encoders.append(loaded)
        else:
            texts.append((name, _with_tokenizer(loaded, path)))
    made = server.served_models(texts, encoders, sequences, settings)
    server.serve(made, settings, host, port, _note)


def _api_key(file: Path | None) -> str | None:
    key = os.environ.get("TREADLE_API_KEY") or None
    if file is not None:
        key = text_of_file(file, "--api-key-file").strip()
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise typer.BadParameter("an API key has visible ASCII characters, at least one")
    return key


def _text_of_prompt(prompt: str) -> str:
    return text_of_input("-p") if prompt == "-" else checked_text(prompt, "-p")


def _stops(given: list[str] | None) -> tuple[str, ...]:
    if not all(given or ()):
        raise typer.BadParameter("give at least one character", param_hint="--stop")
    return tuple(checked_text(text, "--stop") for text in given or ())


def _constraint(grammar: Path | None, json_schema: Path | None) -> dict[str, str | None]:
    """The fields of a `Sampling` for what a text must be."""
    files = {"grammar": grammar, "json_schema": json_schema}
    return {
        name: None if path is None else text_of_file(path, f"--{name.replace('_', '-')}")
        for name, path in files.items()
    }


def _sampling(**fields: Any) -> Sampling:
    from treadle.models.grammars import check
    from treadle.models.sampling import Sampling

    with wrong_usage():
        found = Sampling(**fields)
        check(found)
    return found


def _load(path: Path, device: str | None, context: int | None, cache: str) -> Model:
    """A model that generates text from text."""
    found = _load_any(path, device, context, cache)
    if hasattr(found, "embed"):
        raise typer.BadParameter(
            f"{path} embeds texts and generates none: treadle embed uses it",
            param_hint="MODEL.gguf",
        )
    return _with_tokenizer(found, path)


def _with_tokenizer(model: Model, path: Path) -> Model:
    if model.tokenizer is None:
        raise TreadleError(
            f"{path} has no tokenizer, without which text cannot be turned into tokens: take a "
            "file that has one, or give token ids to td.models.load(…).generate in Python"
        )
    return model


def _load_any(
    path: Path, device: str | None, context: int | None = None, cache: str = "f16"
) -> Any:
    from treadle.models import loading

    start = time.perf_counter()
    try:
        found = loading.load(path, device, context, cache)  # type: ignore[arg-type]
    except ValueError as error:
        if type(error) is ValueError:  # an argument, and not the file
            raise typer.BadParameter(str(error)) from error
        raise
    seconds = time.perf_counter() - start
    _note(f"loaded {path.name} on {found.device.id} in {seconds:.1f} s")
    return found


def _note(text: str) -> None:
    typer.echo(text, err=True)
