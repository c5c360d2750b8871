"""Shows a built site on this machine, with a local copy of Python for its playground:

    python -m tools.website.serve site [--port 8000]

WebGPU is there on pages from `localhost`, and on pages that are served securely.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tools.browser_parts import cache_folder, fetch

_PYODIDE = "/pyodide/"
_CONFIG = "/playground/config.json"


class _Handler(SimpleHTTPRequestHandler):
    """Files of the site; Python's from the cache."""

    extensions_map = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm",
    }  # fmt: skip

    def translate_path(self, path: str) -> str:
        found = super().translate_path(path)
        if not path.startswith(_PYODIDE):
            return found
        below = Path(found).relative_to(self.directory)
        return str(cache_folder() / below)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != _CONFIG:
            super().do_GET()
            return
        config = json.loads(Path(self.translate_path(self.path)).read_text())
        answer = json.dumps({**config, "pyodide": _PYODIDE}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # what was built anew is seen at once
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed for each request."""


def server(site: Path, port: int) -> ThreadingHTTPServer:
    """A server for a built site, on this machine alone."""
    fetch(cache_folder())
    handler = partial(_Handler, directory=str(site.resolve()))
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    if not (given.site / "playground" / "config.json").exists():
        raise SystemExit(f"{given.site} has no playground: `make site` builds it")
    with server(given.site, given.port) as found:
        print(f"http://localhost:{found.server_address[1]}/playground/ (Ctrl+C ends)")
        try:
            found.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
