"""A server on this machine for pages under test: files of folders, by prefix of the path."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_TYPES = {".wasm": "application/wasm", ".js": "text/javascript", ".mjs": "text/javascript"}


@contextmanager
def serving(folders: Mapping[str, Path]) -> Iterator[str]:
    """Serve folders, each below its prefix ("" for the root), while the block runs: the address."""

    class Handler(SimpleHTTPRequestHandler):
        extensions_map = {**SimpleHTTPRequestHandler.extensions_map, **_TYPES}
        protocol_version = "HTTP/1.1"

        def translate_path(self, path: str) -> str:
            parts = [part for part in unquote(urlsplit(path).path).split("/") if part]
            if ".." in parts:
                return "/nonexistent"
            prefix = parts[0] if parts and parts[0] in folders else ""
            if prefix not in folders:
                return "/nonexistent"
            found = folders[prefix].joinpath(*parts[bool(prefix) :])
            return f"{found}/" if path.endswith("/") else str(found)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed for each request."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A browser that closes its connection is no error."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="test-server", daemon=True)
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
