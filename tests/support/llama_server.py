"""llama.cpp's server, as the package xllamacpp brings it."""

from __future__ import annotations

from pathlib import Path


def answer(model: Path, prompt: str, tokens: int) -> int:
    """How many tokens llama.cpp adds to a prompt when it is asked for so many."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.n_ctx = 64
    settings.n_parallel = 1
    settings.warmup = False
    settings.cpuparams.n_threads = 1
    server = xllamacpp.Server(settings)
    request = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    made: int = server.handle_completions(request)["usage"]["completion_tokens"]
    return made
