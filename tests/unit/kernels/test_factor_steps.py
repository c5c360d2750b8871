"""Factors by panels on devices that are not here: what is launched fits each of them, and what a
card is given is right in the PTX machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.support.ptx_device import ptx_device
from tests.support.ptx_machine import driver as machine
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.drivers import offline
from treadle.kernels import cholesky, lu, qr, triangular
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

KIB = 1 << 10
SMALL = [(16, 16 * KIB, 0), (256, 16 * KIB, 0), (256, 32 * KIB, 32), (1024, 48 * KIB, 64),
         (1024, 227 * KIB, 32)]  # fmt: skip


def device_of(threads, shared, subgroup, **more):
    info = offline.generic_device("wgsl")
    limits = Limits(threads, Dim3(threads, threads, 64), max_shared_memory=shared,
                    subgroup_size=subgroup, **more)  # fmt: skip
    info = replace(info, limits=limits)
    return Device(offline.Backend(info), info)


@pytest.mark.parametrize("limits", SMALL, ids=str)
def test_steps_fit_the_device(limits):
    device = device_of(*limits)
    threads, shared, subgroup = limits
    for dtype in (td.float32, td.float64, td.complex64, td.complex128):
        for rows in (1, 31, 32, 33, 100, 256, 257, 1000, 1025, 2048, 2049, 4096):
            if not lu.has_room(device, dtype, rows):
                assert rows > 512 // dtype.itemsize * (threads // 16), "too few rows are accepted"
                continue
            panel = qr.panel_of(device, dtype, rows, rows)
            step = lu.step_of(device, dtype, rows, rows, panel.width)
            for found in (panel, step):
                assert found.threads * found.rows >= rows
                assert found.threads <= threads
                assert found.width >= 4
                assert found.shared_bytes <= shared
            assert panel.threads % panel.width == 0
            assert not subgroup or step.slots <= subgroup
            reflection = qr.reflection_of(device, dtype, panel.width)
            assert reflection.shared_bytes <= shared
            assert reflection.per_group <= reflection.threads <= threads
            assert reflection.threads % reflection.strip == 0
        for n in (5, 500):
            block = cholesky.step_of(device, dtype, n)
            assert block.shared_bytes <= shared
            assert block.width <= block.threads <= threads
        by = triangular.substitution_of(device, dtype)
        assert by.shared_bytes <= shared
        assert by.threads <= threads


def test_rows_that_no_block_has_room_for():
    device = device_of(1024, 227 * KIB, 32)
    assert lu.has_room(device, td.float32, 4096)
    assert not lu.has_room(device, td.float32, 4097)
    assert not lu.has_room(device, td.complex128, 4096)


def test_systems_on_cards(monkeypatch):
    """With subgroups, wide panels and their registers, which software devices do not use."""
    monkeypatch.setattr(machine, "TRAITS", replace(machine.TRAITS, software=False))
    rng = np.random.default_rng()
    a = rng.standard_normal((34, 34)).astype(np.float32)
    b = rng.standard_normal((34, 2)).astype(np.float32)
    with ptx_device() as device, td.use_device(device):
        x = td.linalg.solve(td.asarray(a), td.asarray(b)).numpy()
    eps = np.finfo(np.float32).eps
    size = np.linalg.norm(a) * np.linalg.norm(x)
    assert np.linalg.norm(a.astype(float) @ x - b) <= 34 * eps * size


def test_arrays_that_kernels_do_not_see():
    """With right sides behind its columns, a matrix takes more than a kernel of WebGPU may see."""
    device = device_of(256, 16 * KIB, 0, max_binding_size=400 * 400 * 4)
    a = DeviceArray.imagined(device, td.float32, (1, 400, 400))
    assert lu.fits(a, 0)
    assert not lu.fits(a, 1)
    assert qr.fits(a)
