"""Every instruction of PTX is translated, or refused with words of its own."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.cuda_cpp.syntax.ptx_formulas import FORMULAS
from treadle.cuda_cpp.syntax.ptx_instructions import HANDLERS, WITHOUT_EFFECT
from treadle.cuda_cpp.syntax.ptx_text import REFUSED

# Those of PTX ISA 8.7, in the order of its chapters, but for what is not a statement of a function.
INSTRUCTIONS = """
add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi szext bmsk
dp4a dp2a addc subc madc testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh set setp selp slct
and or xor not cnot lop3 shf shl shr mov shfl prmt ld ldu st prefetch prefetchu applypriority
discard createpolicy isspacep cvta cvt mapa getctarank cp multimem tex tld4 txq istypep suld sust
sured suq bra brx call ret exit bar barrier membar fence atom red vote match activemask redux
griddepcontrol elect mbarrier tensormap clusterlaunchcontrol wmma mma ldmatrix stmatrix movmatrix
wgmma tcgen05 stacksave stackrestore alloca vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2
vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 brkpt
nanosleep pmevent trap setmaxnreg
"""


def test_each_is_known():
    known = {name.partition(".")[0] for name in FORMULAS} | set(HANDLERS) | WITHOUT_EFFECT | {"bra"}
    assert known.isdisjoint(REFUSED)
    assert set(INSTRUCTIONS.split()) - known == set(REFUSED)


@pytest.mark.parametrize("name", ["brx.idx", "multimem.red.add.f32", "sust.b.2d.b32", "alloca.u64"])
def test_others_say_what_to_do(name):
    with pytest.raises(td.errors.CompileError, match=f"{name}.*: (use|there is)"):
        td.cuda_module(f'__global__ void k() {{ asm("{name} %r1;"); }}').k.source("wgsl", block=1)
