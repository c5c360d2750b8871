"""What a rank says of operations on a device, which nothing waits for on the host."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys, time
from treadle.core.dtypes import float32
from treadle.distributed.client import Client
from treadle.distributed.world import World
from treadle.distributed.operation import Operation
from treadle.distributed.request import Request
from treadle.distributed.store import Progress, Store

store, group = Store(2), World(0, 2, 0, 1.0, False)
group.client, other = [
    Client(("127.0.0.1", store.port), rank, 2, "", 5.0, heard)
    for rank, heard in ((0, group.heard), (1, lambda progress: None))
]
other.progress = lambda: Progress(1, 2, "all_reduce number 2", is_initialized=True)
other.tell()
other.set("told", True)
other.get("told", 5.0)
request = Request("all_reduce", float32, (3,), "sum")
operations = [Operation(request, number, None, None) for number in (2, 3, 4)]
if sys.argv[1] == "left":
    other.bye("")
    while 1 not in group._ended:
        time.sleep(0.01)
group.look(operations, sys.argv[1] == "late")
"""


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("early", 0, ""),
        ("late", 1, "number 3 has not ended within 1 s: rank 1 has not started it"),
        ("left", 1, "number 3 cannot end: rank 1 has ended, after all_reduce number 2"),
    ],
)
def test_the_first_operation_that_a_rank_lacks(mode, status, words):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert words in done.stderr
