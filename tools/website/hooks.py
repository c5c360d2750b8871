"""MkDocs' hooks: the reference's pages are made as the site is built, then links are checked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools.website import links, model, pages, torch_page  # noqa: E402  they lie beside the package


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and give mkdocstrings what it would otherwise look for in the source."""
    for name, text in {**pages.texts(), "torch": torch_page.text()}.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    collection = config.plugins["mkdocstrings"].get_handler("python")._modules_collection
    collection["td"] = model.package(pages.names())
    return files


def on_post_build(config: Any) -> None:
    """Fail if a link of the site leads nowhere, or a name has no entry."""
    site = Path(config.site_dir)
    wrong = links.broken(site) + links.missing(site, pages.anchors())
    if wrong:
        raise PluginError("\n".join(["the site's links are not right:", *wrong]))
