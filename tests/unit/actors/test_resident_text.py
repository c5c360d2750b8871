"""What the kernel of a persistent actor is printed as."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.ptxas import ptxas_error
from treadle.actors.resident_kernel import Form, ResidentKernel
from treadle.ir.parser import from_text
from treadle.ir.printer import to_text
from treadle.ir.types import I32


@td.actor
def total(message: td.i32, sums: td.Array[td.i32]) -> td.i32:
    sums[0] = sums[0] + message
    return sums[0]


KERNEL = ResidentKernel(total._handler, I32)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_its_ptx(architecture: str, form: Form) -> None:
    more = architecture == "sm_90"
    kernel = ResidentKernel(total._handler, I32, form, stamped=more, fed=more)
    text = kernel.source("ptx", block=64)
    assert ("bar.sync" in text) == (form is not Form.SINGLE)
    assert "ld.acquire.sys.global.u64" in text
    assert "ld.volatile.global.u64" in text
    assert "st.volatile.global.u64" in text
    assert "fence.sc.sys" in text
    assert "fence.acq_rel.sys" in text
    assert "fence.acq_rel.gpu" not in text
    assert "ld.global.nc" not in text
    assert ptxas_error(text, architecture) is None


def test_what_it_cannot_be() -> None:
    for language in ("wgsl", "cuda", "msl", "numpy"):
        with pytest.raises(td.errors.UnsupportedOnTarget):
            KERNEL.source(language, block=1)
    assert "acquired volatile buffer treadle_bell: i64" in KERNEL.source("ir")


def test_its_text_can_be_read_back() -> None:
    text = KERNEL.source("ir")
    kernel = from_text(text)
    assert to_text(kernel) == text
    volatile = {buffer.name for buffer in kernel.buffers if buffer.volatile}
    assert "sums" not in volatile
    assert len(volatile) == len(kernel.buffers) - 1
