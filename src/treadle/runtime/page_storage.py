"""The disk cache of a web page.

A page's files are in its memory and end with it. So the cache's folder is kept in the browser's
storage for the site (IndexedDB): it is loaded when the page begins to use treadle, and saved a
moment after entries were added. Where the browser gives no storage, as some do in private windows,
kernels are compiled again at each visit.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from treadle.runtime.cache_folder import cache_folder

_log = logging.getLogger("treadle")
_STORAGE = """
((folder) => {
  const { FS } = pyodide;
  if (typeof indexedDB === "undefined") return undefined;
  FS.mount(FS.filesystems.IDBFS, {}, folder);
  let last = Promise.resolve();  // one transfer at a time
  let waiting = false;
  const transfer = (load) => {
    last = last.then(() => new Promise((resolve) => {
      FS.syncfs(load, (error) => resolve(error ? String(error) : undefined));
    }));
    return last;
  };
  return {
    load: () => transfer(true),
    save: () => {
      if (waiting) return;
      waiting = true;
      setTimeout(() => { waiting = false; transfer(false); }, MOMENT);
    },
    saved: () => transfer(false),
  };
})
"""
_MOMENT = 300  # milliseconds after a first new entry, in which others may follow
_loaded = False


@cache
def _storage() -> Any:
    """JavaScript's side; None where there is no storage."""
    import pyodide_js
    from pyodide.code import run_js

    where = cache_folder()
    if where.fault:
        return None
    text = _STORAGE.replace("MOMENT", str(_MOMENT)).strip()
    return run_js(f"((pyodide) => {text})")(pyodide_js)(str(where.folder))


async def load() -> None:
    """Load what earlier visits kept."""
    global _loaded
    if not _loaded and _storage() is not None:
        _loaded = True
        _report(await _storage().load())


def load_if_possible() -> None:
    """`load` where Python can wait, unless it was loaded."""
    global _loaded
    from pyodide.ffi import can_run_sync, run_sync

    if not _loaded and can_run_sync() and _storage() is not None:
        _loaded = True
        _report(run_sync(_storage().load()))


def changed() -> None:
    """Entries were added or removed: save them in a moment."""
    if _loaded:
        _storage().save()


async def saved() -> None:
    """What was added is saved."""
    if _loaded:
        _report(await _storage().saved())


def _report(error: str | None) -> None:
    if error is not None:
        _log.info("the browser keeps no compiled kernels: %s", error)
