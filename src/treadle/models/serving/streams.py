"""Server-sent events that end when the client has gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.models.serving.errors import as_api_error

_QUIET = 15.0  # seconds after which a comment keeps proxies from closing the connection


async def until_gone(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Objects as server-sent events, several at a time where there are several, ended by [DONE];
    `close` is called in any case."""

    media_type = "text/event-stream"

    def __init__(
        self, objects: AsyncIterator[list[dict[str, Any]]], close: Callable[[], None]
    ) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._objects, self._close = objects, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        gone = asyncio.ensure_future(until_gone(receive))
        sending = asyncio.ensure_future(self._send(send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._close()
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        async def body(text: str, more: bool = True) -> None:
            data = {"type": "http.response.body", "body": text.encode(), "more_body": more}
            await send(data)

        source = aiter(self._objects)
        pending: asyncio.Future[list[dict[str, Any]]] | None = None
        try:
            while True:
                pending = pending or asyncio.ensure_future(anext(source))
                done, _ = await asyncio.wait({pending}, timeout=_QUIET)
                if not done:
                    await body(": waiting\n\n")
                    continue
                found, pending = pending.result(), None
                if found:
                    await body("".join([f"data: {_json(each)}\n\n" for each in found]))
        except StopAsyncIteration:
            pass
        except Exception as error:  # noqa: BLE001 - the status is sent: the stream must say it
            await body(f"data: {_json(as_api_error(error).body())}\n\n")
        finally:
            if pending is not None:
                pending.cancel()
        await body("data: [DONE]\n\n", more=False)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
