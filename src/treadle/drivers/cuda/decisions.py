"""Loops and branches as conditional nodes of one CUDA graph.

The recordings of a program become child graphs, and a body is the graph of a conditional node. A
node's handle is set on the card: by a kernel of one thread before the node, and for a loop by
another one at the end of the body. The kernel is PTX text of our own, which calls a function that
NVIDIA's assembler knows, `cudaGraphSetConditional`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.codegen.records import KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.cuda.memory import CudaBuffer
from treadle.drivers.cuda.modules import CudaKernel, compile_kernel
from treadle.drivers.cuda.recording import Capture, CudaRecording
from treadle.drivers.program import Branch, Condition, Item, Loop, Work

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice

_OLDEST = 12040  # CUDA 12.4 has both kinds of nodes
_CONDITIONAL = 13  # CU_GRAPH_NODE_TYPE_CONDITIONAL
_IF, _WHILE = 0, 1  # CU_GRAPH_COND_TYPE_IF and _WHILE
# CUgraphNodeParams with CUDA_CONDITIONAL_NODE_PARAMS: type of node; handle, kind, number of bodies,
# where the driver writes the address of the bodies' graphs, context.
_NODE_BYTES, _BODIES_AT = 256, 32
_pack_node = struct.Struct("<I12xQIIQQ").pack
# The parameters of the kernel: handle; condition, bytes of a part, parts, mask; counter (0: there
# is none), limit; whether this is before the first iteration.
_pack_arguments = struct.Struct("<QQIIQQQI").pack
_ARGUMENT_BYTES = 52  # as the driver counts: without padding at the end

_PTX = """.version 8.3
.target sm_{architecture}
.address_size 64

.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);

.visible .entry treadle_decide (
    .param .u64 handle, .param .u64 condition, .param .u32 width, .param .u32 parts,
    .param .u64 mask, .param .u64 counter, .param .u64 limit, .param .u32 first)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<8>;
    .reg .b64 %d<16>;
    ld.param.u64 %d0, [handle];
    ld.param.u64 %d1, [condition];
    ld.param.u32 %r0, [width];
    ld.param.u32 %r1, [parts];
    ld.param.u64 %d2, [mask];
    ld.param.u64 %d3, [counter];
    ld.param.u64 %d4, [limit];
    ld.param.u32 %r2, [first];
    mov.u32 %r3, 0;                          // the value
part:
    setp.eq.u32 %p0, %r1, 0;
    @%p0 bra counted;
    sub.u32 %r1, %r1, 1;
    setp.eq.u32 %p1, %r0, 1;
    @%p1 ld.global.u8 %d5, [%d1];
    setp.eq.u32 %p2, %r0, 2;
    @%p2 ld.global.u16 %d5, [%d1];
    setp.eq.u32 %p3, %r0, 4;
    @%p3 ld.global.u32 %d5, [%d1];
    setp.eq.u32 %p4, %r0, 8;
    @%p4 ld.global.u64 %d5, [%d1];
    and.b64 %d5, %d5, %d2;
    setp.ne.u64 %p5, %d5, 0;
    @%p5 mov.u32 %r3, 1;
    cvt.u64.u32 %d6, %r0;
    add.u64 %d1, %d1, %d6;
    bra part;
counted:
    setp.eq.u64 %p0, %d3, 0;
    @%p0 bra decided;
    mov.u64 %d7, 0;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra store;
    ld.global.u64 %d7, [%d3];
    add.u64 %d7, %d7, 1;
store:
    st.global.u64 [%d3], %d7;
    setp.ge.u64 %p2, %d7, %d4;
    @%p2 mov.u32 %r3, 0;
decided:
    {{
    .param .b64 to;
    .param .b32 value;
    st.param.b64 [to], %d0;
    st.param.b32 [value], %r3;
    call.uni cudaGraphSetConditional, (to, value);
    }}
    ret;
}}
"""


def composed(device: CudaDevice, items: Sequence[Item]) -> CudaRecording | None:
    """A program as one graph; None where the driver cannot."""
    if device.library.version < _OLDEST:
        return None
    if not device.calls.has("cuGraphConditionalHandleCreate"):
        return None
    root = Capture(device)
    try:
        _add(root, root, _kernel(device), items)
    except BaseException:
        root.release()
        raise
    try:
        return CudaRecording(device, root)
    except LaunchError:
        # Bodies cannot have all nodes that libraries may append to a graph: the host decides.
        device.check()
        return None


def _kernel(device: CudaDevice) -> CudaKernel:
    """The kernel that sets handles."""
    found = device.deciding
    if found is None:
        source = _PTX.format(architecture=device.architecture)
        code = KernelCode(
            target="ptx", dialect=f"sm_{device.architecture}", name="treadle_decide",
            entry="treadle_decide", source=source, block=Dim3(1), workgroup=Dim3(1), bindings=(),
            layout=ParameterLayout((), _ARGUMENT_BYTES, "<"),
        )  # fmt: skip
        found = device.deciding = compile_kernel(device, code, None)
    return found


def _add(root: Capture, graph: Capture, kernel: CudaKernel, items: Sequence[Item]) -> None:
    """Add items to a graph, after what it has. `root` collects what all graphs use."""
    for item in items:
        if isinstance(item, Work):
            recording = item.recording
            assert isinstance(recording, CudaRecording)
            graph.replay(recording)
            if graph is not root:
                root.hold(recording)
            continue
        handle = _handle(graph)
        counter = _counter(root, item)
        _add_decision(root, graph, kernel, item, handle, counter, first=True)
        body = Capture(
            graph.device, _body(graph, handle, _WHILE if isinstance(item, Loop) else _IF)
        )
        _add(root, body, kernel, item.body)
        if isinstance(item, Loop):
            _add_decision(root, body, kernel, item, handle, counter, first=False)


def _handle(graph: Capture) -> int:
    made = ctypes.c_uint64()
    device = graph.device
    device.do(
        "cuGraphConditionalHandleCreate", ctypes.addressof(made), graph.graph, device.context, 0, 0
    )
    return made.value


def _counter(root: Capture, item: Branch | Loop) -> CudaBuffer | None:
    """Memory that counts the iterations of a loop with a limit."""
    if isinstance(item, Branch) or item.limit is None:
        return None
    made = root.device.allocate_kept(8)
    root.owned.append(made)
    root.writes[made] = None
    return made


def _add_decision(
    root: Capture,
    graph: Capture,
    kernel: CudaKernel,
    item: Branch | Loop,
    handle: int,
    counter: CudaBuffer | None,
    *,
    first: bool,
) -> None:
    """Add the kernel that sets a handle."""
    condition: Condition = item.condition
    buffer = graph.device.own(condition.buffer)
    masks = condition.masks
    arguments = _pack_arguments(
        handle, buffer.place + condition.offset, condition.dtype.itemsize // len(masks),
        len(masks), masks[0], 0 if counter is None else counter.place,
        (item.limit or 0) if isinstance(item, Loop) else 0, first,
    )  # fmt: skip
    record = kernel.make_record(Dim3(1))
    assert record is not None
    graph.launch(kernel, record, arguments, ())
    root.kernels[kernel] = root.reads[buffer] = None


def _body(graph: Capture, handle: int, kind: int) -> int:
    """Add a conditional node; the graph of its body, which belongs to the driver."""
    packed = _pack_node(_CONDITIONAL, handle, kind, 1, 0, graph.device.context)
    node = ctypes.create_string_buffer(packed, _NODE_BYTES)
    graph.add("cuGraphAddNode", ctypes.addressof(node))
    bodies = ctypes.c_uint64.from_buffer(node, _BODIES_AT).value
    return ctypes.c_uint64.from_address(bodies).value
