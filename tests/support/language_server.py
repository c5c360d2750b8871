"""What an editor asks of Pyright's language server: completion, hover, where a name is defined."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_SERVER = "from basedpyright.langserver import main; main()"


class Editor:
    """An editor with one file open in a folder. `settings` are those of the language server."""

    def __init__(self, folder: Path, text: str, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-c", _SERVER, "--stdio"]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._settings, self._asked = settings, 0
        self._lines = text.splitlines()
        self._file = (folder / "edited.py").as_uri()
        root = folder.as_uri()
        can = {"workspace": {"configuration": True}}
        folders = [{"uri": root, "name": folder.name}]
        self._ask("initialize", rootUri=root, capabilities=can, workspaceFolders=folders)
        self._send({"method": "initialized", "params": {}})
        opened = {"uri": self._file, "languageId": "python", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": opened}})

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.communicate()

    def completions(self, line: str) -> set[str]:
        """The names that are offered at the end of a line."""
        found = self._at("completion", line)
        return {each["label"] for each in (found["items"] if isinstance(found, dict) else found)}

    def hover(self, line: str) -> str:
        """What is shown of the name that a line ends with."""
        return str(self._at("hover", line)["contents"]["value"])

    def definitions(self, line: str) -> list[str]:
        """The files where the name that a line ends with is defined."""
        return [each["uri"] for each in self._at("definition", line)]

    def _at(self, what: str, line: str) -> Any:
        place = {"line": self._lines.index(line), "character": len(line)}
        return self._ask(f"textDocument/{what}", textDocument={"uri": self._file}, position=place)

    def _ask(self, method: str, **parameters: Any) -> Any:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": parameters})
        while True:
            message = self._read()
            if "method" not in message and message.get("id") == self._asked:
                return message["result"]
            if "method" in message and "id" in message:  # the server asks, too
                asked = message["params"].get("items", []) if "params" in message else []
                self._send({"id": message["id"], "result": [self._settings for _ in asked]})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        size = 0
        while line := self._server.stdout.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        found: dict[str, Any] = json.loads(self._server.stdout.read(size))
        return found
