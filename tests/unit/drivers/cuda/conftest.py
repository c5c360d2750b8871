"""The CUDA driver over a fake one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.support.fake_cuda_driver import FakeDriver
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.once import once
from treadle.drivers.cuda import library, properties
from treadle.drivers.cuda.backend import CudaBackend
from treadle.drivers.cuda.device import CudaDevice


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeDriver]:
    """Put a fake driver into the place of the real one."""

    def put(fake: FakeDriver | None = None, *, driver: bool = True) -> FakeDriver:
        fake = FakeDriver() if fake is None else fake
        monkeypatch.setattr(library, "driver_installed", lambda: driver)
        monkeypatch.setattr(library, "_import_bindings", lambda: fake)
        monkeypatch.setattr(library, "load", once(library.load.__wrapped__))
        monkeypatch.setattr(properties, "_nvml", lambda: None)
        monkeypatch.setattr(properties, "_kernel_module_version", lambda: "580.95.05")
        return fake

    return put


@pytest.fixture
def fake(install: Callable[..., FakeDriver]) -> FakeDriver:
    return install()


@pytest.fixture
def device(fake: FakeDriver) -> Iterator[CudaDevice]:
    opened = open_device()
    yield opened
    fake.failures.clear()
    opened.close()


def open_device(ordinal: int = 0) -> CudaDevice:
    backend = CudaBackend()
    return backend.open(backend.list_devices()[ordinal])


def ptx(
    name: str = "add", writes: tuple[bool, ...] = (True,), source: str = "good", **more: object
) -> KernelCode:
    """A kernel that says which of its buffers it writes; blocks of 64 threads."""
    bindings = tuple(Binding((f"b{i}",), w) for i, w in enumerate(writes))
    facts = {"layout": ParameterLayout((), 0, "<"), "target": "ptx", "block": Dim3(64)} | more
    facts.setdefault("workgroup", facts["block"])
    return KernelCode(
        dialect="sm_90", name=name, entry=name, source=source, bindings=bindings, **facts
    )  # type: ignore[arg-type]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
