# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Actors: kernels that keep their state on a device and answer messages.

The decorator is `td.actor`; what it makes starts actors, and a `Ref` is a running one.
"""

from treadle.actors.decorator import Actor as Actor
from treadle.actors.decorator import actor as actor
from treadle.actors.prepared import PreparedMessage as PreparedMessage
from treadle.actors.publishing import publish as publish
from treadle.actors.ref import Ref as Ref
from treadle.actors.stamps import Stamp as Stamp
from treadle.actors.stamps import merge_stamp as merge_stamp
from treadle.actors.stamps import stamp as stamp
from treadle.actors.status import Status as Status
from treadle.actors.status import Telemetry as Telemetry
from treadle.actors.topics import Topics as Topics

__all__ = [
    "Actor",
    "PreparedMessage",
    "Ref",
    "Stamp",
    "Status",
    "Telemetry",
    "Topics",
    "actor",
    "merge_stamp",
    "publish",
    "stamp",
]
