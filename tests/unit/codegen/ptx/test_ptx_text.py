"""Small kernels and the text they become, so that a change of the text is seen in review."""

from __future__ import annotations

import re

from tests.support.printing import print_ptx
from treadle.codegen.records import Target
from treadle.ir.parser import from_text


def printed(text: str, architecture: str = "sm_70") -> str:
    kernel = from_text(text)
    slots = {buffer.name: i for i, buffer in enumerate(kernel.buffers)}
    return print_ptx(kernel, slots, Target("ptx", architecture)).source


SAXPY_IR = """\
kernel saxpy block(256, 1, 1) {
  buffer x: f32
  buffer y: f32
  parameter a: f32
  parameter x.size: i32 from ("size", "x")
  parameter y.size: i32 from ("size", "y")

  var i: i32 = (block_idx.x * 256) + thread_idx.x
  if (i < y.size) {
    y[i] = (a * x[i; i in x.size]) + y[i]
  }
}
"""

SAXPY = """\
// saxpy: blocks of 256 x 1 x 1 threads
.version 6.0
.target sm_70
.address_size 64

.visible .entry saxpy(
    .param .u64 x,
    .param .u64 y,
    .param .f32 a,
    .param .s32 x_size,
    .param .s32 y_size
)
.reqntid 256, 1, 1
{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<7>;
    .reg .f32 %f<5>;
    .reg .b64 %x, %y;
    .reg .f32 %a;
    .reg .b32 %x_size, %y_size, %i;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %x, %rd1;
    ld.param.u64 %rd2, [y];
    cvta.to.global.u64 %y, %rd2;
    ld.param.f32 %a, [a];
    ld.param.s32 %x_size, [x_size];
    ld.param.s32 %y_size, [y_size];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r3, %tid.x;
    // line 8
    mul.lo.s32 %r2, %r1, 256;
    add.s32 %i, %r2, %r3;
    // line 9
    setp.lt.s32 %p1, %i, %y_size;
    @!%p1 bra end_1;
    // line 10
    setp.lt.u32 %p2, %i, %x_size;
    mul.wide.s32 %rd3, %i, 4;
    add.s64 %rd4, %x, %rd3;
    mov.f32 %f1, 0f00000000;
    @%p2 ld.global.nc.f32 %f1, [%rd4];
    mul.f32 %f2, %a, %f1;
    mul.wide.s32 %rd5, %i, 4;
    add.s64 %rd6, %y, %rd5;
    ld.global.f32 %f3, [%rd6];
    add.f32 %f4, %f2, %f3;
    st.global.f32 [%rd6], %f4;
end_1:
    ret;
}
"""


def test_saxpy():
    assert printed(SAXPY_IR) == SAXPY


BLOCK_SUM_IR = """\
kernel block_sum block(40, 1, 1) {
  buffer x: f32
  buffer total: f32
  shared part: f32[64]

  var t: i32 = thread_idx.x
  part[t] = x[t]
  barrier block
  var sum: f32
  for k: i32 in range(0, 40) {
    sum = sum + part[39 - k]
  }
  sum = subgroup shuffle_down sum, 1
  if (t == 0) {
    atomic add total[0], sum
  }
}
"""

BLOCK_SUM = """\
// block_sum: blocks of 40 x 1 x 1 threads
.version 6.0
.target sm_70
.address_size 64

.shared .align 16 .b8 part[256];

.visible .entry block_sum(
    .param .u64 x,
    .param .u64 total
)
.reqntid 40, 1, 1
{
"""


def test_block_sum():
    text = printed(BLOCK_SUM_IR)
    assert text.startswith(BLOCK_SUM)
    body = text.partition("mov.f32 %sum, 0f00000000;")[2]
    assert re.findall(r"ld.shared.f32 %f\d+, \[(.*)\]", body) == [
        *(f"part+{4 * k}" for k in range(39, 0, -1)), "part",
    ]  # fmt: skip
    assert "bra loop" not in body
    assert re.search(r"setp.ge.s32 %p1, %r\d+, 32;", body)
    assert re.search(r"selp.b32 %r\d+, 255, -1, %p1;", body)  # the last warp's 8 threads
    assert "shfl.sync.down.b32 " in body
    assert "red.global.add.f32 [%total], %sum;" in body


PARTICLES_IR = """\
struct Particle {
  position: vec2<f32>
  alive: bool
  tags: array<u16, 3>
}

kernel age block(32, 1, 1) {
  buffer x: Particle
  buffer y: vec4<f32>
  parameter n: i32 from ("size", "x")

  var i: i32 = (block_idx.x * 32) + thread_idx.x
  var p: Particle = x[i; i in n]
  if (p->alive) {
    x[i; i in n]->position->y = p->position->x + 1.0
  }
  x[i + 1]->tags[thread_idx.x & 1] = 7:u16
  y[i] = y[i + 4]
}
"""

PARTICLES = """\
    // line 12
    mul.lo.s32 %r2, %r1, 32;
    add.s32 %i, %r2, %r3;
    // line 13
    setp.lt.u32 %p1, %i, %n;
    mul.wide.s32 %rd3, %i, 16;
    add.s64 %rd4, %x, %rd3;
    mov.f32 %p_0, 0f00000000;
    mov.f32 %p_1, 0f00000000;
    @%p1 ld.global.v2.f32 {%p_0, %p_1}, [%rd4];
    mov.u32 %r5, 0;
    @%p1 ld.global.u8 %r5, [%rd4+8];
    mov.u32 %p_3, 0;
    @%p1 ld.global.u16 %p_3, [%rd4+10];
    mov.u32 %p_4, 0;
    mov.u32 %p_5, 0;
    @%p1 ld.global.v2.u16 {%p_4, %p_5}, [%rd4+12];
    setp.ne.s32 %p_2, %r5, 0;
    // line 14
    @!%p_2 bra end_1;
    // line 15
    add.f32 %f3, %p_0, 0f3F800000;
    @%p1 st.global.f32 [%rd4+4], %f3;
end_1:
    // line 17
    and.b32 %r9, %r3, 1;
    mul.wide.s32 %rd5, %r9, 2;
    add.s64 %rd6, %rd4, %rd5;
    st.global.u16 [%rd6+26], 7;
    // line 18
    mul.wide.s32 %rd7, %i, 16;
    add.s64 %rd8, %y, %rd7;
    ld.global.v4.f32 {%f4, %f5, %f6, %f7}, [%rd8+64];
    st.global.v4.f32 [%rd8], {%f4, %f5, %f6, %f7};
    ret;
}
"""


def test_parts_of_structs_travel_together_where_they_are_aligned():
    assert printed(PARTICLES_IR).endswith(PARTICLES)
