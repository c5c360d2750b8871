"""Kernels as PTX, the assembly of NVIDIA's GPUs, which the driver compiles to machine code.

What is printed keeps to few forms, so that other tools (our evaluator for tests among them) can
read it. A line holds one instruction, one label, or one declaration; `//` begins a comment.

    [@%p1 | @!%p1] opcode operands;       a guard may stand before any instruction
    label:                                on a line of its own

**Registers.** `%p1` (.pred, bools), `%r1` (.b32: all integers up to 32 bits), `%rd1` (.b64: wide
integers, addresses), `%f1` (.f32: f32 and bf16), `%fd1` (.f64), `%h1` (.b16: f16); and those of the
user's variables, declared by name: `.reg .f32 %total, %x;`. Integers of 8 and 16 bits live in %r,
sign or zero extended; a bf16 is an f32 whose low half is zero; memory holds a bool as a byte.

**Operands.** Registers; integers in decimal (`-5`); floats as `0f3F800000` and `0d…`; a .b16 float
as `0x3C00`; `{a, b}` where several registers are meant; addresses `[reg+4]`, `[reg+-4]`, `[reg]`,
`[name+4]`.
A memory's name by itself (mov.u32) is its address in its space. Any operand may be an immediate.

**Directives.** `.version`, `.target sm_NN`, `.address_size 64`; `.shared .align N .b8 name[bytes];`
or `.extern .shared .align N .b8 name[];` before `.visible .entry name(.param .T name, …)`, and
`.reqntid x, y, z`, perhaps `.minnctapersm n`; inside, `.reg .T name, name;`, `.reg .T %r<20>;`,
`.local .align N .b8 name[bytes];`. Every function is printed in place of its calls.

**Instructions** (T: s32 u32 s64 u64, B: b32 b64, F: f32 f64, all operands as PTX has them):

    mov.{pred,b16,u32,u64,f32,f64}         also of %tid.x %ctaid.y %nctaid.z %laneid, and of names
    mov.b32 %f, %r; mov.b32 %r, %f; mov.b64 %fd, %rd; mov.b64 %rd, %fd       bits
    mov.b64 {%r, %r}, %rd; mov.b64 %rd, {%r, %r}         halves (of %fd too), low first
    cvt.u32.u16 %r, %h; cvt.s32.s16 %r, %h; cvt.u16.u32 %h, %r               the bits of an f16
    add sub .{T,F,f16}; mul.{F,f16}; mul.lo.T; mul.hi.T; mul.wide.s32; mad.lo.{s32,s64}
    div.T; rem.T; div.rn.F; rcp.rn.F; div.full.f32; fma.rn.{F,f16}; neg.{s32,s64,F}; abs.{s32,s64,F}
    min max .{T,F}; {min,max}.NaN.f32
    and or xor .{pred,b16,b32,b64}; not.{pred,b32,b64}; shl.B; shr.{T}; popc.B; clz.B; brev.B
    sqrt.rn.F; sqrt.approx.f32; rsqrt.approx.F; {lg2,sin,cos,tanh}.approx.f32
    {ex2,rcp}.approx.ftz.f32
    setp.{eq,ne,lt,le,gt,ge}.{T}; setp.{eq,neu,lt,le,gt,ge,nan}.{F,f16}; selp.{b16,b32,b64,f32,f64}
    cvt.T.T (narrowing: `cvt.s32.s8 %r, %r` takes the low byte), cvt.{s32,u32}.{s8,u8,s16,u16}
    cvt.rzi.T.F; cvt.{rn,rz}.F.T; cvt.{rni,rmi,rpi,rzi}.F.F; cvt.f64.f32; cvt.{rn,rz}.f32.f64
    cvt.f32.f16; cvt.rn.f16.{f32,f64,T}; cvt.rn.{bf16,f16x2,bf16x2}.f32 (sm_80)
    ld.param.T; cvta.to.global.u64
    ld.{global,global.nc,volatile.global,acquire.sys.global,shared,local}[.v2|.v4].{u8,s8,u16,s16,b16,u32,u64,f32,f64}
    st.{global,shared,local}[.v2|.v4].{u8,u16,b16,u32,u64,f32,f64}
    atom.{global,shared}.{add.{u32,u64,f32,f64},min.T,max.T,and.B,or.B,xor.B,exch.B,cas.B}; red.…
    bra label; ret; bar.sync 0; bar.warp.sync mask; fence.acq_rel.{cta,gpu}; fence.{acq_rel,sc}.sys
    shfl.sync.{idx,up,down,bfly}.b32 %r|%p, value, by, clamp, mask
    redux.sync.{add,min,max}.{s32,u32} %r, %r, mask
    vote.sync.{all,any}.pred %p, %p, mask; vote.sync.ballot.b32 %r, %p, mask
"""

from treadle.codegen.ptx.printer import print_kernel

__all__ = ["print_kernel"]
