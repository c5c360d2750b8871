"""Actors: kernels that keep their state on a device and answer messages.

The decorator is `td.actor`; what it makes starts actors, and a `Ref` is a running one.
"""

from treadle.core.deferred_imports import exports as _exports

NAMES = {
    "treadle.actors.decorator": "Actor actor",
    "treadle.actors.prepared": "PreparedMessage",
    "treadle.actors.publishing": "publish",
    "treadle.actors.ref": "Ref",
    "treadle.actors.stamps": "Stamp merge_stamp stamp",
    "treadle.actors.status": "Status Telemetry",
    "treadle.actors.topics": "Topics",
}
__all__, __getattr__, __dir__ = _exports(__name__, NAMES)
