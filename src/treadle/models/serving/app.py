"""The application: routes, what each does, and who may use them."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from treadle.core.errors import GrammarError
from treadle.models.sampling import Sampling, greedy
from treadle.models.serving import answers, page, requests
from treadle.models.serving import tools as tool_calls
from treadle.models.serving.engine_loop import EngineLoop
from treadle.models.serving.errors import ApiError, as_api_error
from treadle.models.serving.fields import parse_json
from treadle.models.serving.protocol import EmbeddingModel, Engine, TextModel, Tokenizer
from treadle.models.serving.running import Running
from treadle.models.serving.streams import EventStream, until_gone
from treadle.models.text.token_bounds import TooManyTokens

_Handler = Callable[[Request], Awaitable[Response]]
_SLOWEST_BODY = 60.0  # seconds for a body to arrive
_OPEN_PATHS = ("/", "/health")  # that show nothing of a model
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")


@dataclass(frozen=True)
class Settings:
    """How a server behaves."""

    api_key: str | None = None
    defaults: Sampling = greedy
    most_bytes: int = 8 << 20  # of a request's body
    most_queued: int = 256  # generations
    origins: tuple[str, ...] = ()  # of web pages elsewhere that may use the server; "*" for all
    only_local: bool = True  # whether only names of this machine are accepted as its name


@dataclass
class Served:
    """The models of a server."""

    texts: dict[str, tuple[TextModel, EngineLoop]] = field(default_factory=dict)
    embeddings: dict[str, EmbeddingModel] = field(default_factory=dict)
    started: int = field(default_factory=lambda: int(time.time()))

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return [*self.texts, *self.embeddings]

    def close(self) -> None:
        """End all generations."""
        for _, loop in self.texts.values():
            loop.close()


def served(
    texts: Sequence[tuple[TextModel, Engine]],
    embeddings: Sequence[EmbeddingModel] = (),
    most_queued: int = 256,
) -> Served:
    """Models and the threads in which they generate."""
    return Served(
        {model.name: (model, EngineLoop(engine, most_queued)) for model, engine in texts},
        {model.name: model for model in embeddings},
    )


def application(models: Served, settings: Settings) -> ASGIApp:
    """The application that answers for some models."""
    handlers = _Handlers(models, settings)
    routes = [
        Route("/", handlers.page),
        Route("/health", handlers.health),
        Route("/v1/models", handlers.models),
        Route("/v1/models/{name:path}", handlers.model),
        Route("/v1/completions", _answered(handlers.completions), methods=["POST"]),
        Route("/v1/chat/completions", _answered(handlers.chat), methods=["POST"]),
        Route("/v1/embeddings", _answered(handlers.embeddings), methods=["POST"]),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            ApiError: _failed, HTTPException: _not_found, ClientDisconnect: _gone,
        },
    )  # fmt: skip
    return _Guard(app, settings)


class _Handlers:
    def __init__(self, models: Served, settings: Settings) -> None:
        self._models, self._settings = models, settings
        self._embedding = asyncio.Lock()  # a model embeds one request at a time

    async def page(self, request: Request) -> Response:
        return Response(page.TEXT, media_type="text/html", headers=page.HEADERS)

    async def health(self, request: Request) -> Response:
        loops = [loop for _, loop in self._models.texts.values()]
        healthy = all(loop.failure is None for loop in loops)
        body = {
            "status": "ok" if healthy else "failed",
            "models": len(self._models.names),
            "active": sum(loop.active for loop in loops),
        }
        return _json(body, 200 if healthy else 503)

    async def models(self, request: Request) -> Response:
        return _json({"object": "list", "data": [self._described(n) for n in self._models.names]})

    async def model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._models.names:
            raise self._unknown(name)
        return _json(self._described(name))

    def _described(self, name: str) -> dict[str, Any]:
        return {
            "id": name, "object": "model", "created": self._models.started, "owned_by": "treadle",
            "capabilities": self._capabilities(name),
        }  # fmt: skip

    def _capabilities(self, name: str) -> list[str]:
        """What a model is for, as the paths are called."""
        if name in self._models.embeddings:
            return ["embeddings"]
        model, _ = self._models.texts[name]
        return ["completions"] if model.chat_template is None else ["chat", "completions"]

    def _unknown(self, name: str) -> ApiError:
        known = ", ".join(self._models.names)
        shown = name if len(name) <= 100 else f"{name[:97]}…"
        return ApiError(
            404, f"there is no model {shown} here: there is {known}", "model", "model_not_found"
        )

    def _text_model(self, name: str) -> tuple[TextModel, EngineLoop]:
        found = self._models.texts.get(name)
        if found is None:
            if name in self._models.embeddings:
                raise ApiError(400, f"{name} embeds texts: it does not generate any", "model")
            raise self._unknown(name)
        return found

    async def completions(self, request: Request) -> Response:
        body = await self._body(request)
        given = await asyncio.to_thread(requests.completion_request, body, self._settings.defaults)
        model, loop = self._text_model(given.model)
        prompts = await asyncio.to_thread(_prompt_tokens, model, given.prompts)
        echoed = await asyncio.to_thread(_echoed, model.tokenizer, given)
        shape = answers.CompletionShape(given, model.tokenizer, echoed)
        return await self._answer(request, given, model, loop, prompts, shape)

    async def chat(self, request: Request) -> Response:
        body = await self._body(request)
        given = await asyncio.to_thread(requests.chat_request, body, self._settings.defaults)
        model, loop = self._text_model(given.model)
        tokens = await asyncio.to_thread(_chat_tokens, model, given)
        shape = answers.ChatShape(given, model.tokenizer)
        return await self._answer(request, given, model, loop, [tokens], shape)

    async def _answer(
        self,
        request: Request,
        given: requests.Common,
        model: TextModel,
        loop: EngineLoop,
        prompts: Sequence[Sequence[int]],
        shape: answers.Shape,
    ) -> Response:
        for token, _ in given.sampling.biases:
            _check_token(model.tokenizer, token, "logit_bias")
        limits = [_limit(model, prompt, given.max_tokens) for prompt in prompts]
        running = Running(loop)
        try:
            await asyncio.to_thread(
                running.submit, prompts, given.choices, given.sampling, limits, given.stop
            )
        except GrammarError as error:
            param = "response_format" if given.sampling.grammar is None else "grammar"
            raise ApiError(400, str(error), param, "grammar") from None
        except ValueError as error:  # what else this model refuses
            raise ApiError(400, str(error)) from None
        except BaseException:
            running.close()
            raise
        envelope = answers.Envelope(shape, given.model)
        prompt_tokens = sum(map(len, prompts))
        if given.stream:
            chunks = _chunks(running, shape, envelope, prompt_tokens, given.include_usage)
            return EventStream(chunks, running.close)
        await _unless_gone(request, _all(running), running)
        counts = answers.usage(prompt_tokens, running.completion_tokens)
        return _json(envelope.whole(running.collected, counts))

    async def embeddings(self, request: Request) -> Response:
        given = requests.embedding_request(await self._body(request))
        model = self._models.embeddings.get(given.model)
        if model is None:
            if given.model in self._models.texts:
                raise ApiError(400, f"{given.model} generates text: it embeds none", "model")
            raise self._unknown(given.model)
        async with self._embedding:
            rows = await asyncio.to_thread(_rows, model, given.texts)
        count = sum(await asyncio.to_thread(model.count_tokens, given.texts))
        if given.dimensions not in (None, rows.shape[1]):
            raise ApiError(
                400, f"dimensions of {given.model} are {rows.shape[1]}, and no others", "dimensions"
            )
        data = [
            {"object": "embedding", "index": at, "embedding": _numbers(row, given.as_base64)}
            for at, row in enumerate(rows)
        ]
        counts = {"prompt_tokens": count, "total_tokens": count}
        return _json({"object": "list", "data": data, "model": given.model, "usage": counts})

    async def _body(self, request: Request) -> dict[str, Any]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # What a page of another site can send without asking has another type.
            raise ApiError(415, "the header Content-Type must be application/json")
        most, data = self._settings.most_bytes, bytearray()
        try:
            async with asyncio.timeout(_SLOWEST_BODY):
                async for chunk in request.stream():
                    data += chunk
                    if len(data) > most:
                        raise _too_large(most)
        except TimeoutError:
            raise ApiError(408, "the body did not arrive in time") from None
        return await asyncio.to_thread(parse_json, bytes(data))


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"the body may have at most {most} bytes", code="request_too_large")


def _limit(model: TextModel, prompt: Sequence[int], max_tokens: int | None) -> int:
    room = model.context - len(prompt)
    if not prompt:
        raise ApiError(400, "the prompt has no tokens: it must have some text", "prompt")
    if room < 1:
        raise _too_long(model, f"{len(prompt)}")
    return room if max_tokens is None else min(max_tokens, room)


def _too_long(model: TextModel, count: str) -> ApiError:
    return ApiError(
        400,
        f"the prompt has {count} tokens, and the context of {model.name} is {model.context}: "
        "shorten it, or start the server with a larger --context",
        code="context_length_exceeded",
    )


def _prompt_tokens(
    model: TextModel, prompts: Sequence[str | tuple[int, ...]]
) -> list[Sequence[int]]:
    found: list[Sequence[int]] = []
    for prompt in prompts:
        if isinstance(prompt, str):
            try:
                found.append(model.tokenizer.encode(prompt, most=model.context))
            except TooManyTokens as error:
                raise _too_long(model, f"at least {error.least}") from None
            continue
        if len(prompt) >= model.context:
            raise _too_long(model, f"{len(prompt)}")
        for token in prompt:
            _check_token(model.tokenizer, token, "prompt")
        found.append(prompt)
    return found


def _echoed(tokenizer: Tokenizer, given: requests.CompletionRequest) -> list[str]:
    """The texts of prompts, where the answer has them."""
    if not given.echo:
        return []
    return [
        prompt if isinstance(prompt, str) else tokenizer.decode(prompt) for prompt in given.prompts
    ]


def _check_token(tokenizer: Tokenizer, token: int, param: str) -> None:
    if not 0 <= token < tokenizer.vocabulary_size:
        last = tokenizer.vocabulary_size - 1
        raise ApiError(400, f"the model has no token {token}: the last one is {last}", param)


def _chat_tokens(model: TextModel, given: requests.ChatRequest) -> list[int]:
    messages: Sequence[dict[str, Any]] = given.messages
    tools = given.tools if given.tool_choice.may_call else ()
    try:
        if tools and "tools" in (model.chat_template or ""):
            return model.chat_tokens(messages, [tool.as_given() for tool in tools], model.context)
        if tools:
            messages = tool_calls.with_tools(messages, tools)
        return model.chat_tokens(messages, most=model.context)
    except TooManyTokens as error:
        raise _too_long(model, f"at least {error.least}") from None
    except ValueError as error:  # of the template: an order of roles that it refuses, for example
        raise ApiError(400, str(error), "messages") from None


def _rows(model: EmbeddingModel, texts: Sequence[str]) -> np.ndarray:
    found = model.embed(texts)
    rows = found if isinstance(found, np.ndarray) else found.numpy()
    return np.asarray(rows, np.float32).reshape(len(texts), -1)


def _numbers(row: np.ndarray, as_base64: bool) -> list[float] | str:
    if as_base64:
        return base64.b64encode(row.astype("<f4").tobytes()).decode()
    return [float(number) for number in row]


async def _all(running: Running) -> None:
    async for _ in running.events():
        pass


async def _unless_gone(request: Request, work: Any, running: Running) -> None:
    """Wait for some work, which ends when the client disconnects."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(until_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        task.result()
    finally:
        running.close()
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _chunks(
    running: Running,
    shape: answers.Shape,
    envelope: answers.Envelope,
    prompt_tokens: int,
    include_usage: bool,
) -> AsyncIterator[list[dict[str, Any]]]:
    """The chunks of a stream, as many at a time as there are."""
    others: dict[str, Any] = {"usage": None} if include_usage else {}
    choices = [choice for at in range(len(running.collected)) for choice in shape.first(at)]
    yield [envelope.chunk([choice], **others) for choice in choices]
    async for events in running.events():
        choices = []
        for number, piece in events:
            if piece is not None:
                choices += shape.piece(number, piece)
            else:
                reason = running.collected[number].finish_reason or "stop"
                choices += shape.last(number, reason)
        yield [envelope.chunk([choice], **others) for choice in choices]
    if include_usage:
        counts = answers.usage(prompt_tokens, running.completion_tokens)
        yield [envelope.chunk([], usage=counts)]


# --- errors and access ---------------------------------------------------------------------------


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text, status, headers, media_type="application/json")


def _answered(handler: _Handler) -> _Handler:
    """A handler all of whose errors are answers: Starlette would raise those without a class of
    their own again once it has answered them, and uvicorn write each to the log."""

    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - as_api_error logs what is unknown
            return await _failed(request, error)

    return answered


async def _failed(request: Request, error: Exception) -> Response:
    found = as_api_error(error)
    return _json(found.body(), found.status)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:100]
    message = {
        404: f"there is nothing at {path}: see /v1/models, /v1/chat/completions, /v1/completions "
        "and /v1/embeddings",
        405: f"{path} does not take {request.method}",
    }.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    return _json(ApiError(error.status_code, message).body(), error.status_code, headers)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # which no one reads


class _Guard:
    """Checks each request before the application sees it: its host, key and size."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        origin = self._origin(request)
        if request.method == "OPTIONS" and origin is not None:
            await Response(status_code=204, headers=_preflight(origin))(scope, receive, send)
            return
        try:
            self._check(request)
        except ApiError as error:
            headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
            if origin is not None:
                headers |= _allowed(origin)
            # The body is not read: the connection cannot be used again.
            headers["connection"] = "close"
            await _json(error.body(), error.status, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send if origin is None else _adding(send, origin))

    def _origin(self, request: Request) -> str | None:
        """The origin of a web page that may use the server."""
        origin = request.headers.get("origin")
        allowed = self._settings.origins
        return origin if origin is not None and (origin in allowed or "*" in allowed) else None

    def _check(self, request: Request) -> None:
        if self._settings.only_local:
            host = request.headers.get("host", "").rpartition("@")[2]
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower() not in _LOCAL_NAMES:
                # A name that someone else has pointed at this machine, to reach it from a web page.
                raise ApiError(403, "this server answers only to localhost: start it with --host")
        key = self._settings.api_key
        if key is not None and request.url.path not in _OPEN_PATHS:
            kind, _, given = request.headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(
                given.strip().encode(), key.encode()
            ):
                raise ApiError(
                    401, "the header Authorization must be Bearer and this server's API key",
                    code="invalid_api_key",
                )  # fmt: skip
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length[:20]) > self._settings.most_bytes:
            raise _too_large(self._settings.most_bytes)


def _allowed(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "Origin"}


def _preflight(origin: str) -> dict[str, str]:
    return {
        **_allowed(origin),
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": "Authorization, Content-Type",
        "access-control-max-age": "600",
    }


def _adding(send: Send, origin: str) -> Send:
    async def adding(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in _allowed(origin).items()]
            message = {**message, "headers": [*message.get("headers", []), *own]}
        await send(message)

    return adding
