"""Exchange through shared memory in the branch of one warp: what is found, and what is not."""

from __future__ import annotations

import pytest

import treadle as td

FOUND = {
    "unrolled": "if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 16]; }",
    "builtin": "if (threadIdx.x < 32) {\n s[t] += s[t + 32]; s[t] += s[threadIdx.x + 16]; }",
    "declared": "if (t < 16) { s[t] = 1; int other = s[t + 1]; x[t] = other; }",
    "below": "if (t < 32) { s[t] = 1; if (t > 0) x[t] = s[t - 1]; }",
    "narrower": "if (t < 16) s[t] += s[t + 16]; if (t < 8) s[t] += s[t + 8];",
    "halved": "if (t < 32) for (int n = 32; n > 0; n >>= 1) s[t] += s[t + n];",
    "halved, guarded": "for (unsigned n = 16; n; n /= 2) if (t < n) s[t] += s[t + n];",
    "doubled": "if (t < 32) for (int n = 1; n < 32; n *= 2) if (t >= n) s[t] += s[t - n];",
    "counted": "if (t < 32) for (int n = 0; n < 4; n++) s[t] += s[t + n];",
    "named": "const int half = 16; if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + half]; }",
    "unsigned": "unsigned u = threadIdx.x; if (u < 32u) { s[u] = 1; x[u] = s[u + 1]; }",
}
# Each thread reads its own, or what no thread of the branch writes; or there is a barrier.
FINE = {
    "own": "if (t < 32) { s[t] += 1; s[t] += 2; x[t] = s[t]; }",
    "beyond": "if (t < 32) { s[t] += s[t + 32]; s[t] += s[t + 64]; s[t] += s[t + 96]; }",
    "before": "if (t < 32) { x[t] = s[t + 1]; s[t] = 2; }",
    "barrier": "if (t < 32) { s[t] += s[t + 32]; __syncwarp(); s[t] += s[t + 16]; }",
    "shuffle": "if (t < 32) { s[t] = 1; x[t] = __shfl_sync(~0u, 1, 0); x[t] = s[t + 1]; }",
    "one thread": "if (t < 1) { s[t] = 1; x[t] = s[t + 1]; }",
    "more warps": "if (t < 64) { s[t] = 1; x[t] = s[t + 1]; }",
    "other number": "int u = t / 2; if (u < 32) { s[u] = 1; x[u] = s[u + 1]; }",
    "assigned": "int u = t; u = 0; if (u < 32) { s[u] = 1; x[u] = s[u + 1]; }",
    "one iteration": "if (t < 32) for (int n = 32; n > 16; n >>= 1) s[t] += s[t + n];",
    "halved, beyond": "if (t < 32) for (int n = 128; n > 16; n >>= 1) s[t] += s[t + n];",
    "halved, barrier": "if (t < 32) for (int n = 8; n; n /= 2) { s[t] += s[t + n]; __syncwarp(); }",
    "guarded below": "for (int n = 64; n > 32; n >>= 1) if (t < n) s[t] += s[t + n];",
    "unknown end": "if (t < 32) for (int n = 32; n > x[0]; n -= 32) s[t] += s[t + n];",
    "unknown number": "int n = 0; if (x[t]) n = 1; if (t < 32) { s[t] = 1; x[t] = s[t + n]; }",
    "left early": "if (t < 32) for (int n = 32; n; n /= 2) { s[t] += s[t + n]; break; }",
    "other array": "__shared__ int r[256]; if (t < 32) { r[t] = 1; x[t] = s[t + 1]; }",
}


def _warned(body: str):
    source = f"""
__global__ void k(int *x)
{{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    {body}
}}
"""
    return td.cuda_module(source).report()["k"].warned


@pytest.mark.parametrize("name", FOUND)
def test_what_counts_on_warps_in_step_is_found(name):
    (note,) = _warned(FOUND[name])
    assert note.span.line in (8, 9)
    assert "__syncwarp()" in note.reason


@pytest.mark.parametrize("name", FINE)
def test_what_does_not_is_left_alone(name):
    assert _warned(FINE[name]) == ()
