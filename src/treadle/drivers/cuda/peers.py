"""Copies from one card to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.drivers.cuda.stream import check_range

if TYPE_CHECKING:
    from treadle.drivers.cuda.memory import CudaBuffer


def copy(
    source: CudaBuffer, source_offset: int, target: CudaBuffer, target_offset: int, size: int
) -> None:
    """Append a copy, in the order of both default streams.

    It runs on the target's, after what the source's has been given so far; what that one is given
    from here on comes after the copy. Where the cards cannot reach each other's memory the driver
    goes through the host's.
    """
    there, here = source.device, target.device
    source = there.own(source)
    check_range(source, source_offset, size)
    check_range(target, target_offset, size)
    giver, taker = there.default_stream, here.default_stream
    for stream in (giver, taker):
        stream.refuse_capture("copy from another device")
    if not size:
        return
    here.reach(there)
    with there.lock:
        giver.wait_for_users((source,), ())
        giver.precede_on(taker)
    with here.lock:
        taker.wait_for_users((), (target,))
        here.do(
            "cuMemcpyPeerAsync", target.place + target_offset, here.context,
            source.place + source_offset, there.context, size, taker.handle,
        )  # fmt: skip
        taker.note((), (target,))
        taker.precede_on(giver)
    with there.lock:
        giver.note((source,), ())
